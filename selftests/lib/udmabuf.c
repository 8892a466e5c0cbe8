// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory that the kernel's udmabuf exports.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "udmabuf.h"

#define MAX_ITEMS	1024

/* Defined here because <linux/udmabuf.h> may be missing. */
struct create_list {
	__u32 flags;
	__u32 count;
	struct {
		__u32 memfd;
		__u32 pad;
		__u64 offset;
		__u64 size;
	} items[];
};

#define CREATE_CLOEXEC	1
#define CREATE_LIST	_IOW('u', 0x43, struct create_list)

static int create(int dev, int memfd, size_t bytes)
{
	char room[sizeof(struct create_list) +
		  MAX_ITEMS * sizeof(((struct create_list *)0)->items[0])]
		__attribute__((aligned(8))) = { 0 };
	struct create_list *list = (struct create_list *)room;
	size_t page = getpagesize(), i;

	if (bytes / page > MAX_ITEMS) {
		errno = EINVAL;
		return -1;
	}
	list->flags = CREATE_CLOEXEC;
	list->count = bytes / page;
	for (i = 0; i < list->count; i++) {
		list->items[i].memfd = memfd;
		list->items[i].offset = bytes - (i + 1) * page;
		list->items[i].size = page;
	}
	return ioctl(dev, CREATE_LIST, list);
}

int udmabuf(size_t bytes, const char **reason)
{
	int dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), memfd, fd = -1;

	if (dev < 0) {
		*reason = "no /dev/udmabuf";
		return -1;
	}
	memfd = memfd_create("rdma_post", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (memfd >= 0 && !ftruncate(memfd, bytes) &&
	    !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK))
		fd = create(dev, memfd, bytes);
	if (fd < 0)
		*reason = strerror(errno);
	close(memfd);
	close(dev);
	return fd;
}
