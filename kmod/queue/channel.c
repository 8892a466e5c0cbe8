// SPDX-License-Identifier: GPL-2.0
/*
 * Completion channels: files that are readable when a completion queue has an
 * event.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/stats.h"
#include "queue/cq.h"

static void rpost_comp_channel_free(struct kref *kref)
{
	struct rpost_comp_channel *channel =
		container_of(kref, struct rpost_comp_channel, kref);

	rpost_uncharge(channel->file, RPOST_CHANNEL_BYTES);
	rpost_file_count(channel->file, RPOST_COUNT_COMP_CHANNEL, -1);
	rpost_file_put(channel->file);
	kfree(channel);
}

void rpost_comp_channel_put(struct rpost_comp_channel *channel)
{
	kref_put(&channel->kref, rpost_comp_channel_free);
}

/* Copy the oldest event, which stays.  Return its queue's handle, or 0. */
static u32 rpost_comp_channel_offer(struct rpost_comp_channel *channel,
				    struct rpost_comp_event *event)
{
	struct rpost_cq *cq;
	u32 handle = 0;

	spin_lock_irq(&channel->lock);
	cq = list_first_entry_or_null(&channel->ready, struct rpost_cq,
				      event_link);
	if (cq) {
		handle = cq->obj.handle;
		event->user_data = cq->user_data;
	}
	spin_unlock_irq(&channel->lock);
	return handle;
}

/*
 * Remove the event that the program has got, unless its queue has gone
 * meanwhile.
 */
static void rpost_comp_channel_taken(struct rpost_comp_channel *channel,
				     u32 handle)
{
	struct rpost_cq *cq;

	spin_lock_irq(&channel->lock);
	cq = list_first_entry_or_null(&channel->ready, struct rpost_cq,
				      event_link);
	if (cq && cq->obj.handle == handle) {
		if (--cq->events)
			list_move_tail(&cq->event_link, &channel->ready);
		else
			list_del_init(&cq->event_link);
		/* A queue without references is about to be shut down. */
		if (!refcount_inc_not_zero(&cq->obj.refs))
			cq = NULL;
	} else {
		cq = NULL;
	}
	spin_unlock_irq(&channel->lock);
	if (!cq)
		return;
	rpost_cq_event_taken(cq);
	rpost_obj_put(&cq->obj);
}

/* Copy all events that fit.  Return their bytes, or a negative errno. */
static ssize_t rpost_comp_channel_fetch(struct rpost_comp_channel *channel,
					char __user *buf, size_t count)
{
	struct rpost_comp_event event;
	ssize_t done = 0;
	u32 handle;

	if (mutex_lock_interruptible(&channel->fetch))
		return -ERESTARTSYS;
	while (count - done >= sizeof(event)) {
		handle = rpost_comp_channel_offer(channel, &event);
		if (!handle)
			break;
		if (copy_to_user(buf + done, &event, sizeof(event))) {
			done = done ? : -EFAULT;
			break;
		}
		rpost_comp_channel_taken(channel, handle);
		done += sizeof(event);
	}
	mutex_unlock(&channel->fetch);
	return done;
}

static int rpost_comp_channel_wait(struct rpost_comp_channel *channel)
{
	this_cpu_inc(channel->file->stats->comp_sleeps);
	return wait_event_interruptible(channel->wait,
					!list_empty_careful(&channel->ready));
}

static ssize_t rpost_comp_channel_read(struct file *filp, char __user *buf,
				       size_t count, loff_t *pos)
{
	struct rpost_comp_channel *channel = filp->private_data;
	ssize_t done;
	int ret;

	if (count < sizeof(struct rpost_comp_event))
		return -EINVAL;

	for (;;) {
		done = rpost_comp_channel_fetch(channel, buf, count);
		if (done)
			return done;
		if (filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = rpost_comp_channel_wait(channel);
		if (ret)
			return rpost_comp_channel_fetch(channel, buf, count) ? : ret;
	}
}

static __poll_t rpost_comp_channel_poll(struct file *filp, poll_table *wait)
{
	struct rpost_comp_channel *channel = filp->private_data;

	poll_wait(filp, &channel->wait, wait);
	return list_empty_careful(&channel->ready) ? 0 : EPOLLIN | EPOLLRDNORM;
}

static int rpost_comp_channel_release(struct inode *inode, struct file *filp)
{
	rpost_comp_channel_put(filp->private_data);
	return 0;
}

static int rpost_comp_channel_fasync(int fd, struct file *filp, int on)
{
	struct rpost_comp_channel *channel = filp->private_data;

	return fasync_helper(fd, filp, on, &channel->fasync);
}

static const struct file_operations rpost_comp_channel_fops = {
	.owner		= THIS_MODULE,
	.read		= rpost_comp_channel_read,
	.poll		= rpost_comp_channel_poll,
	.fasync		= rpost_comp_channel_fasync,
	.release	= rpost_comp_channel_release,
	.llseek		= noop_llseek,
};

/* Return the channel, which must belong to the open file, with a reference, or NULL. */
struct rpost_comp_channel *rpost_comp_channel_get(struct rpost_file *file,
						  int fd)
{
	struct rpost_comp_channel *channel = NULL;
	struct file *filp = fget(fd);

	if (!filp)
		return NULL;
	if (filp->f_op == &rpost_comp_channel_fops) {
		channel = filp->private_data;
		if (channel->file == file)
			kref_get(&channel->kref);
		else
			channel = NULL;
	}
	fput(filp);
	return channel;
}

/* Add an event of a completion queue, with its arm_lock held. */
void rpost_comp_channel_post(struct rpost_cq *cq)
{
	struct rpost_comp_channel *channel = cq->channel;

	if (!channel)
		return;
	spin_lock(&channel->lock);
	if (list_empty(&cq->event_link))
		list_add_tail(&cq->event_link, &channel->ready);
	if (cq->events != U32_MAX)
		cq->events++;
	spin_unlock(&channel->lock);
	this_cpu_inc(channel->file->stats->comp_events);
	/*
	 * This may miss a task that is about to sleep, which is fine for a statistic: the
	 * wake-up below is unconditional.
	 */
	if (waitqueue_active(&channel->wait))
		this_cpu_inc(channel->file->stats->comp_wakeups);
	wake_up_interruptible(&channel->wait);
	kill_fasync(&channel->fasync, SIGIO, POLL_IN);
}

/* Drop the events of a completion queue, which posts no more events. */
void rpost_comp_channel_forget(struct rpost_cq *cq)
{
	struct rpost_comp_channel *channel = cq->channel;

	if (!channel)
		return;
	spin_lock_irq(&channel->lock);
	cq->events = 0;
	list_del_init(&cq->event_link);
	spin_unlock_irq(&channel->lock);
}

int rpost_create_comp_channel_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_comp_channel *cmd = &ucmd->cmd.create_comp_channel;
	struct rpost_comp_channel *channel;
	struct file *filp;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (rpost_charge(ucmd->file, RPOST_CHANNEL_BYTES))
		return -ENOMEM;
	channel = kzalloc(sizeof(*channel), RPOST_GFP);
	if (!channel) {
		rpost_uncharge(ucmd->file, RPOST_CHANNEL_BYTES);
		return -ENOMEM;
	}
	kref_init(&channel->kref);
	rpost_file_count(ucmd->file, RPOST_COUNT_COMP_CHANNEL, 1);
	kref_get(&ucmd->file->kref);
	channel->file = ucmd->file;
	mutex_init(&channel->fetch);
	spin_lock_init(&channel->lock);
	INIT_LIST_HEAD(&channel->ready);
	init_waitqueue_head(&channel->wait);

	filp = anon_inode_getfile("[rdma_post_comp]", &rpost_comp_channel_fops,
				  channel, O_RDONLY | O_CLOEXEC);
	if (IS_ERR(filp)) {
		rpost_comp_channel_put(channel);
		return PTR_ERR(filp);
	}
	return rpost_respond_fd(ucmd, &cmd->fd, filp);
}
