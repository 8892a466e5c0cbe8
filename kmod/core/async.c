// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous channels: files that report events on a device, its ports, and
 * the program's objects on it.
 */
#include "base/inject.h"
#include "core/device.h"
#include "core/fd.h"

#define RPOST_MAX_ASYNC_EVENTS		256
#define RPOST_MAX_ASYNC_CHANNELS	128	/* of a file, for each device */

static_assert(RPOST_ASYNC_CQ_ERR == (int)IB_EVENT_CQ_ERR);
static_assert(RPOST_ASYNC_COMM_EST == (int)IB_EVENT_COMM_EST);
static_assert(RPOST_ASYNC_DEVICE_FATAL == (int)IB_EVENT_DEVICE_FATAL);
static_assert(RPOST_ASYNC_GID_CHANGE == (int)IB_EVENT_GID_CHANGE);
static_assert(sizeof(struct rpost_async_event) <= RPOST_FD_EVENT_BYTES);

/**
 * struct rpost_async_channel - asynchronous channel
 * @fd: its descriptor
 * @dev: the device; holds a reference
 * @dev_link: in @dev->async_channels; under @dev->async_lock
 * @file_link: in async_channels of the open file; under its async_lock
 * @lock: guards all that follows
 * @gone: the device's removal has been reported
 * @offered: the first event is being copied to the program
 * @first: the oldest event in @events
 * @count: events in @events
 * @events: a ring; the last place is kept for RPOST_ASYNC_DEVICE_FATAL
 */
struct rpost_async_channel {
	struct rpost_fd fd;
	struct rpost_device *dev;
	struct list_head dev_link;
	struct list_head file_link;
	spinlock_t lock;
	bool gone;
	bool offered;
	unsigned int first;
	unsigned int count;
	struct rpost_async_event events[RPOST_MAX_ASYNC_EVENTS + 1];
};

static_assert(!offsetof(struct rpost_async_channel, fd));

static struct rpost_async_channel *rpost_async_channel(struct rpost_fd *fd)
{
	return container_of(fd, struct rpost_async_channel, fd);
}

static struct rpost_async_event *
rpost_async_channel_at(struct rpost_async_channel *channel, unsigned int i)
{
	return &channel->events[(channel->first + i) %
				ARRAY_SIZE(channel->events)];
}

static void rpost_async_channel_push(struct rpost_async_channel *channel,
				     const struct rpost_async_event *event,
				     bool last)
{
	unsigned int room = RPOST_MAX_ASYNC_EVENTS + last;
	unsigned long flags;

	spin_lock_irqsave(&channel->lock, flags);
	if (!channel->gone && channel->count < room &&
	    (last || !rpost_inject(RPOST_INJECT_ASYNC))) {
		*rpost_async_channel_at(channel, channel->count) = *event;
		WRITE_ONCE(channel->count, channel->count + 1);
		channel->gone = last;
		rpost_fd_wake(&channel->fd);
	}
	spin_unlock_irqrestore(&channel->lock, flags);
}

static bool rpost_async_channel_offer(struct rpost_fd *fd, void *event)
{
	struct rpost_async_channel *channel = rpost_async_channel(fd);
	bool offered;

	spin_lock_irq(&channel->lock);
	offered = channel->count;
	if (offered)
		*(struct rpost_async_event *)event = *rpost_async_channel_at(channel, 0);
	channel->offered = offered;
	spin_unlock_irq(&channel->lock);
	return offered;
}

static void rpost_async_channel_taken(struct rpost_fd *fd)
{
	struct rpost_async_channel *channel = rpost_async_channel(fd);

	spin_lock_irq(&channel->lock);
	/* Otherwise rpost_async_forget() has dropped it. */
	if (channel->offered) {
		channel->offered = false;
		channel->first = (channel->first + 1) %
				 ARRAY_SIZE(channel->events);
		WRITE_ONCE(channel->count, channel->count - 1);
	}
	spin_unlock_irq(&channel->lock);
}

/* Report an event, RPOST_ASYNC_*, on an object, in any context. */
void rpost_async_post(const struct rpost_obj *obj, u64 user_data, u32 event)
{
	const struct rpost_async_event async = {
		.user_data = user_data,
		.event = event,
		.obj_type = obj->type,
		.handle = obj->handle,
	};
	struct rpost_file *file = obj->file;
	struct rpost_async_channel *channel;
	unsigned long flags;

	spin_lock_irqsave(&file->async_lock, flags);
	list_for_each_entry(channel, &file->async_channels, file_link) {
		if (channel->dev == obj->dev)
			rpost_async_channel_push(channel, &async, false);
	}
	spin_unlock_irqrestore(&file->async_lock, flags);
}

/* Keep only the events that concern other objects. */
static void rpost_async_channel_forget(struct rpost_async_channel *channel,
				       const struct rpost_obj *obj)
{
	unsigned int i, n = channel->count, kept = 0;
	struct rpost_async_event *event;

	for (i = 0; i < n; i++) {
		event = rpost_async_channel_at(channel, i);
		if (event->obj_type != obj->type ||
		    event->handle != obj->handle)
			*rpost_async_channel_at(channel, kept++) = *event;
		else if (!i)
			channel->offered = false;
	}
	WRITE_ONCE(channel->count, kept);
}

/* Drop the unread events of an object that is shut down, its handle still reserved. */
void rpost_async_forget(struct rpost_device *dev, const struct rpost_obj *obj)
{
	struct rpost_file *file = obj->file;
	struct rpost_async_channel *channel;

	spin_lock_irq(&file->async_lock);
	list_for_each_entry(channel, &file->async_channels, file_link) {
		if (channel->dev != dev)
			continue;
		spin_lock(&channel->lock);
		rpost_async_channel_forget(channel, obj);
		spin_unlock(&channel->lock);
	}
	spin_unlock_irq(&file->async_lock);
}

static void rpost_async_post_all(struct rpost_device *dev,
				 const struct rpost_async_event *event,
				 bool last)
{
	struct rpost_async_channel *channel;

	mutex_lock(&dev->async_lock);
	list_for_each_entry(channel, &dev->async_channels, dev_link) {
		rpost_async_channel_push(channel, event, last);
		cond_resched();
	}
	mutex_unlock(&dev->async_lock);
}

/* The RDMA core calls this from its work queue. */
static void rpost_async_device_event(struct ib_event_handler *handler, struct ib_event *ib_event)
{
	struct rpost_device *dev =
		container_of(handler, struct rpost_device, event_handler);
	struct rpost_async_event event = { .event = ib_event->event };

	switch (ib_event->event) {
	case IB_EVENT_DEVICE_FATAL:
		break;
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
	case IB_EVENT_GID_CHANGE:
		event.port = ib_event->element.port_num;
		break;
	default:
		/* Objects have handlers of their own. */
		return;
	}
	rpost_async_post_all(dev, &event, false);
	if (ib_event->event == IB_EVENT_GID_CHANGE &&
	    rdma_protocol_roce(dev->ib_dev, event.port))
		rpost_contexts_recheck(dev);
}

/* Begin to follow the events of a device, which lookups do not find yet. */
void rpost_async_device_add(struct rpost_device *dev)
{
	mutex_init(&dev->async_lock);
	INIT_LIST_HEAD(&dev->async_channels);
	INIT_IB_EVENT_HANDLER(&dev->event_handler, dev->ib_dev, rpost_async_device_event);
	ib_register_event_handler(&dev->event_handler);
}

/* Report the removal of a device, which is dead and gets no more channels. */
void rpost_async_device_gone(struct rpost_device *dev)
{
	static const struct rpost_async_event event = {
		.event = RPOST_ASYNC_DEVICE_FATAL,
	};

	ib_unregister_event_handler(&dev->event_handler);
	rpost_async_post_all(dev, &event, true);
}

static bool rpost_async_channel_ready(struct rpost_fd *fd)
{
	return READ_ONCE(rpost_async_channel(fd)->count);
}

static void rpost_async_channel_free(struct rpost_fd *fd)
{
	struct rpost_async_channel *channel = rpost_async_channel(fd);
	struct rpost_device *dev = channel->dev;

	mutex_lock(&dev->async_lock);
	list_del(&channel->dev_link);
	mutex_unlock(&dev->async_lock);
	spin_lock_irq(&fd->file->async_lock);
	list_del(&channel->file_link);
	spin_unlock_irq(&fd->file->async_lock);
	rpost_device_put(dev);
}

static const struct rpost_fd_type rpost_async_channel_type = {
	.fops = &rpost_fd_fops,
	.name = "[rdma_post_async]",
	.count = RPOST_COUNT_ASYNC_CHANNEL,
	.bytes = RPOST_ASYNC_CHANNEL_BYTES,
	.event_size = sizeof(struct rpost_async_event),
	.offer = rpost_async_channel_offer,
	.taken = rpost_async_channel_taken,
	.ready = rpost_async_channel_ready,
	.free = rpost_async_channel_free,
};

static int rpost_async_channel_list(struct rpost_async_channel *channel)
{
	struct rpost_file *file = channel->fd.file;
	struct rpost_device *dev = channel->dev;
	struct rpost_async_channel *other;
	unsigned int n = 0;
	int ret = 0;

	mutex_lock(&dev->async_lock);
	spin_lock_irq(&file->async_lock);
	list_for_each_entry(other, &file->async_channels, file_link)
		n += other->dev == dev;
	/* Removal may have sent its event, which the channel would miss. */
	if (!rpost_device_alive(dev)) {
		ret = -ENODEV;
	} else if (n >= RPOST_MAX_ASYNC_CHANNELS) {
		ret = -EMFILE;
	} else {
		list_add_tail(&channel->dev_link, &dev->async_channels);
		list_add_tail(&channel->file_link, &file->async_channels);
	}
	spin_unlock_irq(&file->async_lock);
	mutex_unlock(&dev->async_lock);
	return ret;
}

int rpost_create_async_channel_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_async_channel *cmd =
		&ucmd->cmd.create_async_channel;
	struct rpost_async_channel *channel;
	struct rpost_device *dev;
	int ret;

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ib_device_put(dev->ib_dev);
	channel = rpost_fd_alloc(ucmd->file, &rpost_async_channel_type, sizeof(*channel));
	if (!channel) {
		rpost_device_put(dev);
		return -ENOMEM;
	}
	channel->dev = dev;
	INIT_LIST_HEAD(&channel->dev_link);
	INIT_LIST_HEAD(&channel->file_link);
	spin_lock_init(&channel->lock);
	ret = rpost_async_channel_list(channel);
	if (ret) {
		rpost_fd_put(&channel->fd);
		return ret;
	}
	return rpost_fd_open(ucmd, &channel->fd, &cmd->fd, O_RDONLY);
}
