// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that convert structs between uverbs and libibverbs, or read sysfs,
 * for programs that use uverbs or sysfs directly.  Debian's headers do not
 * declare them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/internal.h"

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

/**
 * ibv_copy_ah_attr_from_kern() - convert an address vector of uverbs
 * @to: filled in
 * @from: the kernel's
 */
RPOST_API void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from)
{
	RPOST_AH_MEMBERS(RPOST_COPY)
	to->is_global = from->is_global;
	memcpy(to->grh.dgid.raw, from->grh.dgid, sizeof(to->grh.dgid));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.sgid_index = from->grh.sgid_index;
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
}

/**
 * ibv_copy_qp_attr_from_kern() - convert a queue pair's attributes of uverbs
 * @to: filled in
 * @from: the kernel's
 */
RPOST_API void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from)
{
	RPOST_QP_MEMBERS(RPOST_COPY)
	to->qp_access_flags = from->qp_access_flags;
	to->cap.max_send_wr = from->max_send_wr;
	to->cap.max_recv_wr = from->max_recv_wr;
	to->cap.max_send_sge = from->max_send_sge;
	to->cap.max_recv_sge = from->max_recv_sge;
	to->cap.max_inline_data = from->max_inline_data;
	ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
	ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
}

/**
 * ibv_copy_path_rec_from_kern() - convert a path record from the kernel
 * @to: filled in
 * @from: the kernel's
 */
RPOST_API void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to,
					   struct ib_user_path_rec *from)
{
	memcpy(to->dgid.raw, from->dgid, sizeof(to->dgid));
	memcpy(to->sgid.raw, from->sgid, sizeof(to->sgid));
	RPOST_PATH_MEMBERS(RPOST_COPY)
}

/**
 * ibv_copy_path_rec_to_kern() - convert a path record for the kernel
 * @to: filled in
 * @from: the library's
 */
RPOST_API void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to,
					 struct ibv_sa_path_rec *from)
{
	memcpy(to->dgid, from->dgid.raw, sizeof(to->dgid));
	memcpy(to->sgid, from->sgid.raw, sizeof(to->sgid));
	RPOST_PATH_MEMBERS(RPOST_COPY)
}

/**
 * ibv_get_sysfs_path() - get the mount point of sysfs
 *
 * Return: SYSFS_PATH of the environment, or "/sys" if that is not set.
 */
RPOST_API const char *ibv_get_sysfs_path(void)
{
	const char *path = secure_getenv("SYSFS_PATH");

	return path && *path ? path : "/sys";
}

/**
 * ibv_read_sysfs_file() - read a file
 * @dir: its directory
 * @file: its name
 * @buf: gets the content without the last newline, and a NUL
 * @size: room in @buf
 *
 * Return: bytes before the NUL, or -1 with errno; EINVAL if @buf is too short.
 */
RPOST_API int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
				  size_t size)
{
	char path[4096];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >=
	    (int)sizeof(path))
		return rpost_fail(ENAMETOOLONG);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n < 0)
		return -1;
	if (n && buf[n - 1] == '\n')
		n--;
	if ((size_t)n == size)
		return rpost_fail(EINVAL);
	buf[n] = '\0';
	return n;
}
