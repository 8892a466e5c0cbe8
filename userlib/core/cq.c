// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion channels and queues, and their events.  comp.c reads the rings.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core/internal.h"

/**
 * ibv_create_comp_channel() - make a completion channel,
 * ibv_create_comp_channel(3)
 * @context: of the device
 *
 * The channel's fd is the kernel's: poll(2) and epoll(7) report it readable
 * while an event waits, and it may be made non-blocking.
 *
 * Return: the channel, to be released by ibv_destroy_comp_channel(), or NULL
 * with errno: EMFILE, ENFILE, ENOMEM.
 */
RPOST_API struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct rpost_create_comp_channel cmd = {};
	struct ibv_comp_channel *channel;
	int err;

	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;

	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_CREATE_COMP_CHANNEL, &cmd);
	if (err) {
		free(channel);
		return rpost_null(err);
	}
	channel->context = context;
	channel->fd = cmd.fd;
	return channel;
}

/**
 * ibv_destroy_comp_channel() - release a completion channel,
 * ibv_destroy_comp_channel(3)
 * @channel: the channel
 *
 * Return: 0, or an errno value: EBUSY while completion queues use it.
 */
RPOST_API int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ibv_context *context = channel->context;
	int refcnt;

	pthread_mutex_lock(&context->mutex);
	refcnt = channel->refcnt;
	pthread_mutex_unlock(&context->mutex);
	if (refcnt)
		return EBUSY;

	close(channel->fd);
	free(channel);
	return 0;
}

static void channel_use(struct ibv_comp_channel *channel, int n)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += n;
	pthread_mutex_unlock(&channel->context->mutex);
}

static void set_ring(struct rpost_cq *cq, struct rpost_map *map,
		     uint32_t offset, uint32_t cqe)
{
	char *ring = map->addr + offset;

	cq->map = map;
	cq->ring = (void *)ring;
	cq->entries = ring + cq->entries_offset;
	cq->mask = cqe - 1;
	cq->ibv.cqe = (int)cqe;
}

struct rpost_cq *rpost_cq_create(struct ibv_context *context, uint32_t cqe,
				 void *cq_context,
				 struct ibv_comp_channel *channel,
				 uint32_t comp_vector)
{
	struct rpost_create_cq cmd = {
		.device = rpost_ctx(context)->dev->num,
		.cqe = cqe,
		.comp_vector = comp_vector,
		.channel_fd = channel ? channel->fd : -1,
		.flags = RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE,
	};
	struct rpost_file *file = rpost_ctx(context)->file;
	struct rpost_map *map;
	struct rpost_cq *cq;
	int err;

	if (cqe < 1 || cqe > INT32_MAX ||
	    comp_vector >= (uint32_t)context->num_comp_vectors)
		return rpost_null(EINVAL);
	cq = calloc(1, sizeof(*cq));
	map = calloc(1, sizeof(*map));
	if (!cq || !map) {
		err = ENOMEM;
		goto free;
	}

	rpost_async_init(&cq->async, context, RPOST_OBJ_CQ);
	cmd.user_data = cq->async.node.key;
	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_CREATE_CQ, &cmd);
	if (err)
		goto free;
	map = rpost_map_get(map, file, cmd.shared_page, cmd.mmap_offset, cmd.mmap_size);
	if (!map) {
		err = errno;
		goto destroy;
	}

	cq->entries_offset = cmd.entries_offset;
	set_ring(cq, map, cmd.ring_offset, cmd.cqe);
	cq->ibv.context = context;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.handle = cmd.handle;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
	pthread_mutex_init(&cq->arm_lock, NULL);
	channel_use(channel, 1);
	rpost_async_add(&cq->async);
	rpost_made_add(context, &cq->made, RPOST_OBJ_CQ, &cq->ibv.handle);
	return cq;

destroy:
	rpost_destroy_handle(context->cmd_fd, RPOST_OBJ_CQ, cmd.handle);
free:
	free(map);
	free(cq);
	return rpost_null(err);
}

/**
 * ibv_create_cq() - make a completion queue, ibv_create_cq(3)
 * @context: of the device
 * @cqe: entries wanted, at least 1; the queue's cqe is the actual number
 * @cq_context: handed back by ibv_get_cq_event()
 * @channel: completion channel, or NULL
 * @comp_vector: from 0 to below the context's num_comp_vectors
 *
 * Return: the completion queue, to be released by ibv_destroy_cq(), or NULL
 * with errno: EINVAL for a value out of range, EMFILE, ENOMEM, ENODEV.
 */
RPOST_API struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				       void *cq_context,
				       struct ibv_comp_channel *channel,
				       int comp_vector)
{
	struct rpost_cq *cq;

	/* Negative values become large ones, and are out of range, too. */
	cq = rpost_cq_create(context, cqe, cq_context, channel, comp_vector);
	return cq ? &cq->ibv : NULL;
}

/*
 * Polls the device until it has no more completions, or until the ring is full.
 * A smaller ring must have room for all completions that wait, but the kernel
 * counts only those in the ring.
 */
static int fetch_waiting(struct rpost_cq *cq)
{
	uint32_t fetched = 0;
	int n;

	do {
		n = rpost_cq_fetch(cq);
		if (n < 0)
			return -n;
		fetched += n;
	} while (n && fetched <= cq->mask);
	return 0;
}

/*
 * Replaces the ring, whose memory may belong to another queue by now.  All
 * queues without a ring share an empty one, to which nothing is ever written.
 */
static void lose_ring(struct rpost_cq *cq, int err)
{
	static struct rpost_ring none = { .flags = RPOST_RING_NEED_POLL };

	cq->head = 0;
	cq->ring = &none;
	cq->map = NULL;
	cq->lost = err;
}

void rpost_cq_destroy_handle(struct rpost_cq *cq)
{
	/* The kernel may give handle and ring to the next queue at once. */
	rpost_destroy_handle(cq->ibv.context->cmd_fd, RPOST_OBJ_CQ,
			     cq->ibv.handle);
	rpost_async_del(&cq->async);
	rpost_map_put(cq->map);
	lose_ring(cq, ENODEV);
}

/* The caller holds poll_lock and arm_lock. */
static int resize(struct rpost_cq *cq, uint32_t cqe)
{
	struct ibv_context *context = cq->ibv.context;
	struct rpost_resize_cq cmd = { .handle = cq->ibv.handle, .cqe = cqe };
	struct rpost_map *map;
	int err;

	if (cq->lost)
		return cq->lost;
	map = calloc(1, sizeof(*map));
	if (!map)
		return ENOMEM;
	err = cqe <= cq->mask ? fetch_waiting(cq) : 0;
	if (!err)
		err = rpost_ioctl(context->cmd_fd, RPOST_IOC_RESIZE_CQ, &cmd);
	if (err) {
		free(map);
		return err;
	}

	/* The kernel writes to the new ring from now on. */
	map = rpost_map_get(map, rpost_ctx(context)->file, cmd.shared_page,
			    cmd.mmap_offset, cmd.mmap_size);
	err = errno;
	rpost_map_put(cq->map);
	if (!map) {
		lose_ring(cq, err);
		return err;
	}
	set_ring(cq, map, cmd.ring_offset, cmd.cqe);
	return 0;
}

/**
 * ibv_resize_cq() - change the number of entries of a completion queue,
 * ibv_resize_cq(3)
 * @cq: the completion queue; its cqe is the actual number afterwards
 * @cqe: entries wanted, at least as many as completions wait
 *
 * Other threads may poll the queue and ask for its events meanwhile, unless it
 * was made IBV_CREATE_CQ_ATTR_SINGLE_THREADED.
 *
 * Return: 0, or an errno value: EINVAL for a value out of range or below the
 * number of completions that wait, EOPNOTSUPP, ENODEV, ENOMEM.  If there is no
 * room in the address space for the new ring, polling fails with ENOMEM, too,
 * and the queue can only be destroyed.
 */
RPOST_API int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct rpost_cq *rcq = rpost_cq(cq);
	int err;

	if (cqe < 1)
		return EINVAL;
	pthread_mutex_lock(&rcq->poll_lock);
	pthread_mutex_lock(&rcq->arm_lock);
	err = resize(rcq, cqe);
	pthread_mutex_unlock(&rcq->arm_lock);
	pthread_mutex_unlock(&rcq->poll_lock);
	return err;
}

/**
 * rpost_modify_cq() - let the device delay events, ibv_modify_cq(3)
 * @cq: the completion queue
 * @attr: attr_mask must be IBV_CQ_ATTR_MODERATE
 *
 * Return: 0, or an errno value: EOPNOTSUPP if the device cannot do it, EINVAL
 * for an unknown attribute, a value above those of ibv_query_device_ex(), or a
 * cq_count above 1 with a cq_period of 0, ENODEV.
 */
int rpost_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct rpost_modify_cq cmd = {
		.handle = cq->handle,
		.count = attr->moderate.cq_count,
		.period_us = attr->moderate.cq_period,
	};

	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	return rpost_ioctl(cq->context->cmd_fd, RPOST_IOC_MODIFY_CQ, &cmd);
}

static void wait_for_acks(struct rpost_cq *cq)
{
	struct ibv_cq *ibv = &cq->ibv;

	pthread_mutex_lock(&ibv->mutex);
	while (ibv->comp_events_completed != cq->comp_events_reported ||
	       ibv->async_events_completed != cq->async.reported)
		pthread_cond_wait(&ibv->cond, &ibv->mutex);
	pthread_mutex_unlock(&ibv->mutex);
}

/**
 * ibv_destroy_cq() - release a completion queue, ibv_destroy_cq(3)
 * @cq: the completion queue
 *
 * Waits until the events that ibv_get_cq_event() and ibv_get_async_event()
 * returned for it have been acknowledged.  Drops events that were not fetched.
 *
 * Return: 0, or an errno value: EBUSY, at once, while queue pairs use it.
 */
RPOST_API int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct rpost_cq *rcq = rpost_cq(cq);
	int err;

	err = rpost_destroy_handle(cq->context->cmd_fd, RPOST_OBJ_CQ,
				   cq->handle);
	if (err)
		return err;

	rpost_made_del(cq->context, &rcq->made);
	rpost_async_del(&rcq->async);
	wait_for_acks(rcq);

	channel_use(cq->channel, -1);
	rpost_map_put(rcq->map);
	pthread_mutex_destroy(&rcq->arm_lock);
	pthread_mutex_destroy(&rcq->poll_lock);
	pthread_cond_destroy(&cq->cond);
	pthread_mutex_destroy(&cq->mutex);
	free(rcq);
	return 0;
}

/* Finds the queue of an event and counts the event.  NULL if it has gone. */
static struct ibv_cq *cq_of_event(struct rpost_file *file, uint64_t number)
{
	struct rpost_async *async;
	struct rpost_node *node;
	struct rpost_cq *cq = NULL;

	pthread_mutex_lock(&file->objects.lock);
	node = rpost_table_find(&file->objects, number);
	if (node) {
		async = rpost_container_of(node, struct rpost_async, node);
		cq = rpost_container_of(async, struct rpost_cq, async);
		cq->comp_events_reported++;
	}
	pthread_mutex_unlock(&file->objects.lock);
	return cq ? &cq->ibv : NULL;
}

/**
 * ibv_get_cq_event() - wait for a completion event, ibv_get_cq_event(3)
 * @channel: the completion channel
 * @cq: set to the completion queue that has the event
 * @cq_context: set to the context that the queue was made with
 *
 * Each event must be acknowledged by ibv_ack_cq_events().  The completion that
 * caused an event may have been polled before.
 *
 * Return: 0, or -1 with errno: EAGAIN if there is none and the channel is
 * non-blocking, EINTR.
 */
RPOST_API int ibv_get_cq_event(struct ibv_comp_channel *channel,
			       struct ibv_cq **cq, void **cq_context)
{
	struct rpost_file *file = rpost_ctx(channel->context)->file;
	struct rpost_comp_event event;
	struct ibv_cq *found = NULL;
	ssize_t n;

	while (!found) {
		n = read(channel->fd, &event, sizeof(event));
		if (n < 0)
			return -1;
		if (n != sizeof(event))
			return rpost_fail(EIO);
		found = cq_of_event(file, event.user_data);
	}

	/* A call that fails changes neither, as in rdma-core. */
	*cq = found;
	*cq_context = found->cq_context;
	return 0;
}

/**
 * ibv_ack_cq_events() - acknowledge completion events, ibv_get_cq_event(3)
 * @cq: the completion queue
 * @nevents: number of its events
 */
RPOST_API void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
