/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Descriptors that a command makes beside that of /dev/rdma_post: channels, and those of
 * SHARE_DEVICE.
 */
#ifndef RPOST_FD_H
#define RPOST_FD_H

#include <linux/fs.h>

#include "core/core.h"

/* The most bytes of an event that is read. */
#define RPOST_FD_EVENT_BYTES	24

struct rpost_fd;

/**
 * struct rpost_fd_type - what differs between descriptors of one kind and those of another
 * @fops: rpost_fd_fops, or others with rpost_fd_release()
 * @name: in /proc/PID/fd
 * @count: counts them
 * @bytes: charged for one
 * @count_sleeps: count them for fdinfo
 * @event_size: bytes of an event, RPOST_FD_EVENT_BYTES at most
 * @offer: copy the oldest event, which stays; return false if there is none
 * @taken: the program has the event that was offered last
 * @ready: would @offer have one?  Called without a lock
 * @free: release all but what rpost_fd_alloc() has done; or NULL
 *
 * @event_size, @offer, @taken and @ready are for rpost_fd_fops.
 */
struct rpost_fd_type {
	const struct file_operations *fops;
	const char *name;
	enum rpost_count count;
	unsigned long bytes;
	bool count_sleeps;
	size_t event_size;
	bool (*offer)(struct rpost_fd *fd, void *event);
	void (*taken)(struct rpost_fd *fd);
	bool (*ready)(struct rpost_fd *fd);
	void (*free)(struct rpost_fd *fd);
};

/**
 * struct rpost_fd - begins the struct behind a descriptor, its private_data
 * @kref: held by the descriptor, and by each object that reports here
 * @type: its kind
 * @file: the open file that it belongs to; holds a reference
 * @fetch: taken by one reader at a time, so that events come once and in order
 * @wait: readers sleep here
 * @fasync: tasks that get SIGIO
 */
struct rpost_fd {
	struct kref kref;
	const struct rpost_fd_type *type;
	struct rpost_file *file;
	struct mutex fetch;
	wait_queue_head_t wait;
	struct fasync_struct *fasync;
};

void *rpost_fd_alloc(struct rpost_file *file, const struct rpost_fd_type *type, size_t size);
int rpost_fd_open(struct rpost_ucmd *ucmd, struct rpost_fd *fd, s32 *to, int flags);
void *rpost_fd_get(struct rpost_file *file, int nr, const struct rpost_fd_type *type);
void rpost_fd_put(struct rpost_fd *fd);
void rpost_fd_wake(struct rpost_fd *fd);
int rpost_fd_release(struct inode *inode, struct file *filp);

/* Descriptors from which events are read have these. */
extern const struct file_operations rpost_fd_fops;

#endif /* RPOST_FD_H */
