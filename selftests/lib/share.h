/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Descriptors that name a device, and what a handle names.
 */
#ifndef SHARE_H
#define SHARE_H

#include <rdma/rdma_post_abi.h>

/* Returns a descriptor of the device, or a negative errno. */
int share_device(int fd, uint32_t device);
/* Returns the number of the device that a descriptor names, or an errno. */
int named_device(int fd);
int query_object(int fd, uint32_t type, uint32_t handle,
		 struct rpost_query_object *cmd);

#endif /* SHARE_H */
