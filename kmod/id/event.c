// SPDX-License-Identifier: GPL-2.0
/*
 * Event channels: files from which the events of connection ids are fetched.
 */
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/stats.h"
#include "id/id.h"

static_assert(!offsetof(struct rpost_event_channel, fd));

static void rpost_event_channel_free(struct rpost_fd *fd)
{
	struct rpost_event_channel *channel = container_of(fd, struct rpost_event_channel, fd);

	spin_lock(&fd->file->event_lock);
	list_del(&channel->link);
	spin_unlock(&fd->file->event_lock);
}

/* Wake all fetchers of the file, which is dead. */
void rpost_event_channels_wake(struct rpost_file *file)
{
	struct rpost_event_channel *channel;

	spin_lock(&file->event_lock);
	list_for_each_entry(channel, &file->event_channels, link)
		wake_up_interruptible_all(&channel->fd.wait);
	spin_unlock(&file->event_lock);
}

/* The event is in no list. */
static void rpost_event_free(struct rpost_event *event)
{
	kfree(event);
	rpost_count(RPOST_COUNT_EVENT, -1);
}

/* Append an event to the lists of its id and of the id's channel. */
static void rpost_event_list(struct rpost_event *event, struct rpost_id *id)
{
	list_add_tail(&event->link, &id->channel->events);
	list_add_tail(&event->id_link, &id->events);
	WRITE_ONCE(id->num_events, id->num_events + 1);
	this_cpu_inc(id->obj.file->stats->cm_events);
	wake_up_interruptible(&id->channel->fd.wait);
}

/*
 * Detach an event from its id.  Return true if the caller owns it now;
 * otherwise a fetcher is copying it to the program, and frees it.
 */
static bool rpost_event_detach(struct rpost_event *event)
{
	struct rpost_id *id = event->id;

	list_del(&event->id_link);
	event->id = NULL;
	if (event->fetching)
		return false;
	list_del(&event->link);
	WRITE_ONCE(id->num_events, id->num_events - 1);
	return true;
}

/* Free the events of this join, or all if it is NULL, but for those that are being fetched. */
static void rpost_events_detach(struct rpost_id *id, const struct rpost_join *join)
{
	struct rpost_event *event, *next;

	list_for_each_entry_safe(event, next, &id->events, id_link) {
		if ((!join || event->join == join) && rpost_event_detach(event))
			rpost_event_free(event);
	}
}

static bool rpost_event_is_change(const struct rpost_event *event)
{
	return event->event.event == RPOST_EVENT_UNREACHABLE ||
	       event->event.event == RPOST_EVENT_ADDR_CHANGE;
}

/*
 * cma reports each change of a neighbour's or a bond's address.  Of changes
 * with no other event between them, only one of each kind is queued.
 */
static bool rpost_event_is_repeated(const struct rpost_event *event)
{
	const struct rpost_event *last;

	if (!rpost_event_is_change(event))
		return false;
	list_for_each_entry_reverse(last, &event->id->events, id_link) {
		if (last->fetching || !rpost_event_is_change(last))
			break;
		if (last->event.event == event->event.event)
			return true;
	}
	return false;
}

/*
 * Queue an event on the channel of its id.  The channel owns it from now on, or it
 * is freed if it repeats a change.  @listener is the id that listens, for a request;
 * else NULL.
 */
void rpost_event_queue(struct rpost_event *event, struct rpost_id *listener)
{
	struct rpost_id *id = event->id;
	struct rpost_file *file = id->obj.file;

	spin_lock(&file->event_lock);
	if (rpost_event_is_repeated(event)) {
		spin_unlock(&file->event_lock);
		rpost_event_free(event);
		return;
	}
	if (listener) {
		/* In one step, or the listener could migrate in between. */
		id->listener = listener;
		list_add_tail(&id->request_link, &listener->requests);
		id->channel = listener->channel;
		kref_get(&id->channel->fd.kref);
	}
	rpost_event_list(event, id);
	spin_unlock(&file->event_lock);
}

static int rpost_event_write(struct rpost_id *id, const struct rpost_write_event *cmd)
{
	struct rpost_event *event;
	int ret;

	lockdep_assert_held(&id->lock);

	if (id->unaccepted)
		return -EINVAL;
	ret = rpost_id_check_events(id);
	if (ret)
		return ret;
	event = kzalloc(sizeof(*event), RPOST_GFP);
	if (!event)
		return -ENOMEM;
	rpost_count(RPOST_COUNT_EVENT, 1);
	event->id = id;
	event->event.id = id->obj.handle;
	event->event.event = cmd->event;
	event->event.status = cmd->status;
	event->event.user_data = cmd->user_data;
	rpost_event_queue(event, NULL);
	return 0;
}

/* The id's device may have gone. */
int rpost_write_event_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_write_event *cmd = &ucmd->cmd.write_event;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (cmd->event != RPOST_EVENT_USER &&
	    cmd->event != RPOST_EVENT_ADDRINFO_RESOLVED)
		return -EINVAL;
	id = rpost_id_get(ucmd->file, cmd->id);
	if (!id)
		return -ENOENT;
	mutex_lock(&id->lock);
	ret = rpost_event_write(id, cmd);
	rpost_id_exit(id);
	return ret;
}

/* Take an unfetched request from an id that listens. */
static struct rpost_id *rpost_request_take(struct rpost_id *listener)
{
	struct rpost_file *file = listener->obj.file;
	struct rpost_id *id;

	spin_lock(&file->event_lock);
	id = list_first_entry_or_null(&listener->requests, struct rpost_id, request_link);
	if (id) {
		list_del(&id->request_link);
		/* Its events could be fetched once it has no @listener. */
		rpost_events_detach(id, NULL);
		id->listener = NULL;
	}
	spin_unlock(&file->event_lock);
	return id;
}

/*
 * Free the unfetched events of an id, for which no handler runs any more.  The ids
 * of its unfetched requests are destroyed.
 */
void rpost_events_drop(struct rpost_id *id)
{
	struct rpost_file *file = id->obj.file;
	struct rpost_id *request;

	while ((request = rpost_request_take(id)))
		rpost_id_destroy_unpublished(request);
	spin_lock(&file->event_lock);
	rpost_events_detach(id, NULL);
	spin_unlock(&file->event_lock);
}

/*
 * Forget a join, which causes no more events, and free its unfetched events.  Call
 * with the id's lock held.
 */
void rpost_events_drop_join(struct rpost_id *id, struct rpost_join *join)
{
	struct rpost_file *file = id->obj.file;

	spin_lock(&file->event_lock);
	list_del(&join->link);
	rpost_events_detach(id, join);
	spin_unlock(&file->event_lock);
}

static void rpost_events_move(struct rpost_id *id, struct rpost_event_channel *to)
{
	struct rpost_event *event;

	list_for_each_entry(event, &id->events, id_link) {
		if (!event->fetching)
			list_move_tail(&event->link, &to->events);
	}
}

/*
 * Let an id report to another channel.  Call with the id's lock held.  The id takes
 * over the caller's reference on the channel.
 *
 * The requests of an id that listens, and their later events, move with it.
 */
void rpost_events_migrate(struct rpost_id *id, struct rpost_event_channel *to)
{
	struct rpost_event_channel *from = id->channel;
	struct rpost_file *file = id->obj.file;
	struct rpost_id *request;
	unsigned int unheld = 0;

	if (to == from) {
		rpost_fd_put(&to->fd);
		return;
	}
	spin_lock(&file->event_lock);
	list_for_each_entry(request, &id->requests, request_link) {
		rpost_events_move(request, to);
		request->channel = to;
		kref_get(&to->fd.kref);
		unheld++;
	}
	/*
	 * Move the listener's own events last, so that its DEVICE_REMOVAL stays after its
	 * connection requests.
	 */
	rpost_events_move(id, to);
	id->channel = to;
	wake_up_interruptible(&to->fd.wait);
	spin_unlock(&file->event_lock);

	do {
		rpost_fd_put(&from->fd);
	} while (unheld--);
}

/* Can it be fetched?  Events of an id that is being destroyed are dropped. */
static bool rpost_event_ready(const struct rpost_event *event)
{
	const struct rpost_id *id = event->id;

	/* A request, its id's first event, is dropped with its listener. */
	return refcount_read(id->listener ? &id->listener->obj.refs : &id->obj.refs);
}

/* Take the oldest event off the channel's list; its id still lists it. */
static struct rpost_event *rpost_event_take(struct rpost_event_channel *channel)
{
	struct rpost_file *file = channel->fd.file;
	struct rpost_event *event;

	spin_lock(&file->event_lock);
	list_for_each_entry(event, &channel->events, link) {
		if (!rpost_event_ready(event))
			continue;
		list_del(&event->link);
		WRITE_ONCE(event->id->num_events, event->id->num_events - 1);
		event->fetching = true;
		spin_unlock(&file->event_lock);
		return event;
	}
	spin_unlock(&file->event_lock);
	return NULL;
}

/*
 * The program has the event: publish the id of a request.  Return false if the
 * event was detached from its id meanwhile.
 */
static bool rpost_event_taken(struct rpost_event *event, struct rpost_file *file)
{
	struct rpost_id *id, *listener;

	spin_lock(&file->event_lock);
	id = event->id;
	if (id) {
		list_del(&event->id_link);
		listener = id->listener;
		if (listener) {
			list_del(&id->request_link);
			id->listener = NULL;
			atomic_inc(&listener->backlog);
			/* Under the lock, so that teardown misses no id. */
			rpost_obj_publish(&id->obj);
		}
	}
	spin_unlock(&file->event_lock);
	rpost_event_free(event);
	return id;
}

/* The program did not get the event: put it back in front. */
static void rpost_event_return(struct rpost_event *event, struct rpost_file *file)
{
	struct rpost_id *id;

	spin_lock(&file->event_lock);
	id = event->id;
	if (id) {
		event->fetching = false;
		list_add(&event->link, &id->channel->events);
		WRITE_ONCE(id->num_events, id->num_events + 1);
		wake_up_interruptible(&id->channel->fd.wait);
	}
	spin_unlock(&file->event_lock);
	if (!id)
		rpost_event_free(event);
}

static int rpost_event_wait(struct rpost_event_channel *channel)
{
	struct rpost_file *file = channel->fd.file;

	/* The events belong to ids that are being destroyed. */
	if (!list_empty_careful(&channel->events)) {
		schedule_timeout_interruptible(1);
		return signal_pending(current) ? -ERESTARTSYS : 0;
	}
	this_cpu_inc(file->stats->cm_sleeps);
	return wait_event_interruptible(channel->fd.wait,
					!list_empty_careful(&channel->events) ||
					READ_ONCE(file->dead));
}

/* Return the oldest event, with the fetch lock held, or an ERR_PTR(). */
static struct rpost_event *rpost_event_first(struct rpost_event_channel *channel, bool nonblock)
{
	struct rpost_event *event;
	int ret;

	for (;;) {
		if (mutex_lock_interruptible(&channel->fd.fetch))
			return ERR_PTR(-ERESTARTSYS);
		ret = -ENODEV;
		if (READ_ONCE(channel->fd.file->dead))
			break;
		event = rpost_event_take(channel);
		if (event)
			return event;
		ret = -EAGAIN;
		if (nonblock)
			break;
		mutex_unlock(&channel->fd.fetch);
		ret = rpost_event_wait(channel);
		if (ret)
			return ERR_PTR(ret);
	}
	mutex_unlock(&channel->fd.fetch);
	return ERR_PTR(ret);
}

/* The command is on the channel's descriptor. */
int rpost_get_event_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_event_channel *channel = ucmd->filp->private_data;
	struct rpost_get_event *cmd = &ucmd->cmd.get_event;
	struct rpost_event *event;
	u32 size = cmd->size;
	bool taken = false;
	int ret;

	/* Events whose id is destroyed while they are copied are dropped. */
	do {
		event = rpost_event_first(channel, ucmd->filp->f_flags & O_NONBLOCK);
		if (IS_ERR(event))
			return PTR_ERR(event);
		*cmd = event->event;
		cmd->size = size;
		ret = rpost_respond(ucmd);
		if (ret)
			rpost_event_return(event, channel->fd.file);
		else
			taken = rpost_event_taken(event, channel->fd.file);
		mutex_unlock(&channel->fd.fetch);
	} while (!ret && !taken);
	return ret;
}

static const struct rpost_cmd_row rpost_channel_cmds[] = {
#define RPOST_COMMAND(...)
#define RPOST_CHANNEL_COMMAND(nr, name, type, first, size, flags) \
	[RPOST_CMD_##nr - RPOST_CMD_GET_EVENT] = RPOST_ROW(name, first, size, flags, false),
#include "core/commands.h"
};

static long rpost_event_channel_ioctl(struct file *filp, unsigned int nr, unsigned long arg)
{
	struct rpost_event_channel *channel = filp->private_data;

	if (nr != RPOST_IOC_GET_EVENT)
		return -ENOTTY;
	return rpost_ucmd_run(channel->fd.file, filp, rpost_channel_cmds, arg);
}

static __poll_t rpost_event_channel_poll(struct file *filp, poll_table *wait)
{
	struct rpost_event_channel *channel = filp->private_data;
	__poll_t mask = 0;

	poll_wait(filp, &channel->fd.wait, wait);
	if (!list_empty_careful(&channel->events))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(channel->fd.file->dead))
		mask |= EPOLLHUP;
	return mask;
}

static const struct file_operations rpost_event_channel_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= rpost_event_channel_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.poll		= rpost_event_channel_poll,
	.release	= rpost_fd_release,
	.llseek		= noop_llseek,
};

static const struct rpost_fd_type rpost_event_channel_type = {
	.fops = &rpost_event_channel_fops,
	.name = "[rdma_post_event]",
	.count = RPOST_COUNT_EVENT_CHANNEL,
	.bytes = RPOST_CHANNEL_BYTES,
	.free = rpost_event_channel_free,
};

/* Return the channel with a reference, or NULL if @nr is not a channel of @file. */
struct rpost_event_channel *rpost_event_channel_get(struct rpost_file *file, int nr)
{
	return rpost_fd_get(file, nr, &rpost_event_channel_type);
}

int rpost_create_event_channel_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_event_channel *cmd = &ucmd->cmd.create_event_channel;
	struct rpost_file *file = ucmd->file;
	struct rpost_event_channel *channel;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	channel = rpost_fd_alloc(file, &rpost_event_channel_type, sizeof(*channel));
	if (!channel)
		return -ENOMEM;
	INIT_LIST_HEAD(&channel->events);
	spin_lock(&file->event_lock);
	list_add_tail(&channel->link, &file->event_channels);
	spin_unlock(&file->event_lock);
	return rpost_fd_open(ucmd, &channel->fd, &cmd->fd, O_RDWR);
}
