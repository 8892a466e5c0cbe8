// SPDX-License-Identifier: GPL-2.0
/*
 * Completion channels: files that are readable when a completion queue has an
 * event.
 */
#include "core/stats.h"
#include "queue/cq.h"

static_assert(sizeof(struct rpost_comp_event) <= RPOST_FD_EVENT_BYTES);
static_assert(!offsetof(struct rpost_comp_channel, fd));

static struct rpost_comp_channel *rpost_comp_channel(struct rpost_fd *fd)
{
	return container_of(fd, struct rpost_comp_channel, fd);
}

static bool rpost_comp_channel_offer(struct rpost_fd *fd, void *to)
{
	struct rpost_comp_channel *channel = rpost_comp_channel(fd);
	struct rpost_comp_event *event = to;
	struct rpost_cq *cq;

	spin_lock_irq(&channel->lock);
	cq = list_first_entry_or_null(&channel->ready, struct rpost_cq,
				      event_link);
	if (cq) {
		channel->offered = cq->obj.handle;
		event->user_data = cq->user_data;
	}
	spin_unlock_irq(&channel->lock);
	return cq;
}

/* Remove the event, unless its queue has gone meanwhile. */
static void rpost_comp_channel_taken(struct rpost_fd *fd)
{
	struct rpost_comp_channel *channel = rpost_comp_channel(fd);
	struct rpost_cq *cq;

	spin_lock_irq(&channel->lock);
	cq = list_first_entry_or_null(&channel->ready, struct rpost_cq,
				      event_link);
	if (cq && cq->obj.handle == channel->offered) {
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

static bool rpost_comp_channel_ready(struct rpost_fd *fd)
{
	return !list_empty_careful(&rpost_comp_channel(fd)->ready);
}

static const struct rpost_fd_type rpost_comp_channel_type = {
	.fops = &rpost_fd_fops,
	.name = "[rdma_post_comp]",
	.count = RPOST_COUNT_COMP_CHANNEL,
	.bytes = RPOST_CHANNEL_BYTES,
	.count_sleeps = true,
	.event_size = sizeof(struct rpost_comp_event),
	.offer = rpost_comp_channel_offer,
	.taken = rpost_comp_channel_taken,
	.ready = rpost_comp_channel_ready,
};

/* Return the channel, which must belong to the open file, with a reference, or NULL. */
struct rpost_comp_channel *rpost_comp_channel_get(struct rpost_file *file, int nr)
{
	return rpost_fd_get(file, nr, &rpost_comp_channel_type);
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
	this_cpu_inc(channel->fd.file->stats->comp_events);
	/*
	 * This may miss a task that is about to sleep, which is fine for a statistic: the
	 * wake-up below is unconditional.
	 */
	if (waitqueue_active(&channel->fd.wait))
		this_cpu_inc(channel->fd.file->stats->comp_wakeups);
	rpost_fd_wake(&channel->fd);
}

/* Leave the channel, if there is one: the completion queue posts no more events. */
void rpost_comp_channel_forget(struct rpost_cq *cq)
{
	struct rpost_comp_channel *channel = cq->channel;

	if (!channel)
		return;
	spin_lock_irq(&channel->lock);
	list_del(&cq->event_link);
	spin_unlock_irq(&channel->lock);
	rpost_fd_put(&channel->fd);
}

int rpost_create_comp_channel_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_comp_channel *cmd = &ucmd->cmd.create_comp_channel;
	struct rpost_comp_channel *channel;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	channel = rpost_fd_alloc(ucmd->file, &rpost_comp_channel_type, sizeof(*channel));
	if (!channel)
		return -ENOMEM;
	spin_lock_init(&channel->lock);
	INIT_LIST_HEAD(&channel->ready);
	return rpost_fd_open(ucmd, &channel->fd, &cmd->fd, O_RDONLY);
}
