// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The memory that is charged to users.
 */
#define _GNU_SOURCE
#include "user_bytes.h"

/* Open the device as another user. */
int user_open(uid_t uid)
{
	int fd, ret;

	if (rp_become(uid))
		return -errno;
	fd = rp_open();
	ret = fd < 0 ? -errno : fd;
	return rp_become(ROOT) ? -errno : ret;
}

/*
 * Return the bytes charged to a user's files, either those opened with
 * CAP_SYS_RESOURCE (@exempt) or the others; 0 if none.
 */
long user_charged(uid_t uid, bool exempt)
{
	char line[128];
	long bytes = 0, n;
	unsigned int id;
	FILE *f;

	f = fopen(USERS, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%u bytes %ld", &id, &n) == 2 && id == uid &&
		    !!strstr(line, "exempt") == exempt)
			bytes = n;
	}
	fclose(f);
	return bytes;
}

/* Return the free memory of the system in bytes. */
long user_free_memory(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) &&
	       sscanf(line, "MemFree: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb * 1024;
}

/* Create a queue pair of some size with its own completion queue. */
int user_take(struct rp_end *end, uint32_t depth)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.pd = end->pd,
		.max_send_wr = depth,
		.max_recv_wr = depth,
		.max_send_sge = 2,
		.max_recv_sge = 2,
	};
	struct rp_cq cq;

	rp_mute = true;
	RP_TRY(rp_create_cq(end->fd, end->device, 2 * depth + 1, -1, &cq));
	cmd.send_cq = cq.cmd.handle;
	cmd.recv_cq = cq.cmd.handle;
	return rp_ioctl(end->fd, RPOST_IOC_CREATE_QP, &cmd);
}
