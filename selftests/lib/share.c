// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include "rpost_test.h"
#include "share.h"

int share_device(int fd, uint32_t device)
{
	struct rpost_share_device cmd = { .size = sizeof(cmd), .device = device };
	int ret = rp_ioctl(fd, RPOST_IOC_SHARE_DEVICE, &cmd);

	return ret ? ret : cmd.fd;
}

int named_device(int fd)
{
	struct rpost_query_device cmd;
	int ret = rp_query_device(fd, 0, &cmd);

	return ret ? ret : (int)cmd.device;
}

int query_object(int fd, uint32_t type, uint32_t handle,
		 struct rpost_query_object *cmd)
{
	RP_QUERY(cmd);
	cmd->type = type;
	cmd->handle = handle;
	return rp_ioctl(fd, RPOST_IOC_QUERY_OBJECT, cmd);
}
