// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors that a command makes.  See struct rpost_fd.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uaccess.h>

#include "core/fd.h"
#include "core/stats.h"

/*
 * Return zeroed memory of @size bytes that begins with a struct rpost_fd, to be opened by
 * rpost_fd_open() or dropped by rpost_fd_put(); or NULL without memory or at the user's
 * limit.
 */
void *rpost_fd_alloc(struct rpost_file *file, const struct rpost_fd_type *type, size_t size)
{
	struct rpost_fd *fd = rpost_charged_zalloc(file, size, type->bytes);

	if (!fd)
		return NULL;
	kref_init(&fd->kref);
	fd->type = type;
	kref_get(&file->kref);
	fd->file = file;
	mutex_init(&fd->fetch);
	init_waitqueue_head(&fd->wait);
	rpost_file_count(file, type->count, 1);
	return fd;
}

static void rpost_fd_free(struct kref *kref)
{
	struct rpost_fd *fd = container_of(kref, struct rpost_fd, kref);
	const struct rpost_fd_type *type = fd->type;
	struct rpost_file *file = fd->file;

	if (type->free)
		type->free(fd);
	rpost_charged_free(file, fd, type->bytes);
	rpost_file_count(file, type->count, -1);
	rpost_file_put(file);
}

void rpost_fd_put(struct rpost_fd *fd)
{
	kref_put(&fd->kref, rpost_fd_free);
}

/*
 * Give the program a descriptor, which takes over the caller's reference, also after an
 * error.  @to is the field of the command's struct for it, and @flags are O_RDONLY or
 * O_RDWR.  Return 0, -EMFILE, -ENFILE, -ENOMEM or -EFAULT.
 */
int rpost_fd_open(struct rpost_ucmd *ucmd, struct rpost_fd *fd, s32 *to, int flags)
{
	struct file *filp = anon_inode_getfile(fd->type->name, fd->type->fops, fd,
					       flags | O_CLOEXEC);
	int ret;

	if (IS_ERR(filp)) {
		rpost_fd_put(fd);
		return PTR_ERR(filp);
	}
	/* The file has the reference now. */
	*to = get_unused_fd_flags(O_CLOEXEC);
	if (*to < 0) {
		ret = *to;
		goto err_file;
	}
	ret = rpost_respond(ucmd);
	if (ret)
		goto err_fd;
	fd_install(*to, filp);
	return 0;

err_fd:
	put_unused_fd(*to);
err_file:
	fput(filp);
	return ret;
}

/*
 * Return what is behind a descriptor of this kind, which must belong to the open file,
 * with a reference; or NULL.
 */
void *rpost_fd_get(struct rpost_file *file, int nr, const struct rpost_fd_type *type)
{
	struct file *filp = fget(nr);
	struct rpost_fd *fd = NULL;

	if (!filp)
		return NULL;
	if (filp->f_op == type->fops) {
		fd = filp->private_data;
		if (fd->type == type && fd->file == file)
			kref_get(&fd->kref);
		else
			fd = NULL;
	}
	fput(filp);
	return fd;
}

/* Tell readers of a new event, in any context. */
void rpost_fd_wake(struct rpost_fd *fd)
{
	wake_up_interruptible(&fd->wait);
	kill_fasync(&fd->fasync, SIGIO, POLL_IN);
}

/*
 * Copy all events that fit, which may come as fast as they are copied, until a signal comes.
 * Return their bytes, 0 if there is none, or a negative errno.
 */
static ssize_t rpost_fd_fetch(struct rpost_fd *fd, char __user *buf, size_t count)
{
	u64 event[RPOST_FD_EVENT_BYTES / sizeof(u64)];
	const struct rpost_fd_type *type = fd->type;
	ssize_t done = 0;

	if (mutex_lock_interruptible(&fd->fetch))
		return -ERESTARTSYS;
	while (count - done >= type->event_size && type->offer(fd, event)) {
		if (copy_to_user(buf + done, event, type->event_size)) {
			done = done ? : -EFAULT;
			break;
		}
		type->taken(fd);
		done += type->event_size;
		if (signal_pending(current))
			break;
		cond_resched();
	}
	mutex_unlock(&fd->fetch);
	return done;
}

static int rpost_fd_sleep(struct rpost_fd *fd)
{
	if (fd->type->count_sleeps)
		this_cpu_inc(fd->file->stats->comp_sleeps);
	return wait_event_interruptible(fd->wait, fd->type->ready(fd));
}

static ssize_t rpost_fd_read(struct file *filp, char __user *buf, size_t count, loff_t *pos)
{
	struct rpost_fd *fd = filp->private_data;
	ssize_t done;
	int ret;

	if (count < fd->type->event_size)
		return -EINVAL;

	for (;;) {
		done = rpost_fd_fetch(fd, buf, count);
		if (done)
			return done;
		if (filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = rpost_fd_sleep(fd);
		if (ret)
			return rpost_fd_fetch(fd, buf, count) ? : ret;
	}
}

static __poll_t rpost_fd_poll(struct file *filp, poll_table *wait)
{
	struct rpost_fd *fd = filp->private_data;

	poll_wait(filp, &fd->wait, wait);
	return fd->type->ready(fd) ? EPOLLIN | EPOLLRDNORM : 0;
}

static int rpost_fd_fasync(int nr, struct file *filp, int on)
{
	struct rpost_fd *fd = filp->private_data;

	return fasync_helper(nr, filp, on, &fd->fasync);
}

int rpost_fd_release(struct inode *inode, struct file *filp)
{
	rpost_fd_put(filp->private_data);
	return 0;
}

const struct file_operations rpost_fd_fops = {
	.owner		= THIS_MODULE,
	.read		= rpost_fd_read,
	.poll		= rpost_fd_poll,
	.fasync		= rpost_fd_fasync,
	.release	= rpost_fd_release,
	.llseek		= noop_llseek,
};
