// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asynchronous events.  Each context has a channel of its device in the kernel,
 * and its async_fd is that channel's file.
 *
 * The kernel reports to every channel of a device what happens to any object
 * that this process has on it.  A program expects in a context only its own
 * objects, and only those that it has not destroyed, so that an event is looked
 * up by its number among the live objects before the program sees it.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "internal.h"

/*
 * The file descriptor of a new channel, or -1 and errno.  A module that reports
 * no events yet has no channels either, and there is a limit of them: then it is
 * one that is never readable; programs may still poll it and change its flags.
 */
int rpost_async_open(struct rpost_file *file, uint32_t device)
{
	struct rpost_create_async_channel cmd = {
		.size = sizeof(cmd),
		.device = device,
	};
	int err;

	err = rpost_ioctl(file->fd, RPOST_IOC_CREATE_ASYNC_CHANNEL, &cmd);
	if (!err)
		return cmd.fd;
	if (err == EOPNOTSUPP || err == EMFILE)
		return eventfd(0, EFD_CLOEXEC);
	return rpost_fail(err);
}

void rpost_async_init(struct rpost_async *async, struct ibv_context *context,
		      uint32_t type)
{
	static atomic_ullong number;

	async->node.key = atomic_fetch_add(&number, 1) + 1;
	async->context = context;
	async->type = type;
	async->reported = 0;
}

static struct rpost_table *objects(const struct rpost_async *async)
{
	return &rpost_ctx(async->context)->file->objects;
}

void rpost_async_add(struct rpost_async *async)
{
	rpost_table_add(objects(async), &async->node);
}

void rpost_async_del(struct rpost_async *async)
{
	rpost_table_del(objects(async), &async->node);
}

void rpost_async_wait(const struct rpost_async *async, pthread_mutex_t *mutex,
		      pthread_cond_t *cond, const uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	while (*completed != async->reported)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}

static void set_element(struct ibv_async_event *event,
			struct rpost_async *async)
{
	switch (async->type) {
	case RPOST_OBJ_CQ:
		event->element.cq = &rpost_container_of(async, struct rpost_cq,
							async)->ibv;
		break;
	case RPOST_OBJ_QP:
		event->element.qp = &rpost_container_of(async, struct rpost_qp,
							async)->ibv;
		break;
	default:
		event->element.srq = &rpost_container_of(async,
							 struct rpost_srq,
							 async)->ibv;
		break;
	}
}

/* Finds what the event concerns and counts it.  False if it is not for here. */
static bool accept_event(struct ibv_context *context,
			 const struct rpost_async_event *in,
			 struct ibv_async_event *event)
{
	struct rpost_table *table = &rpost_ctx(context)->file->objects;
	struct rpost_async *async = NULL;
	struct rpost_node *node;

	memset(event, 0, sizeof(*event));
	event->event_type = in->event;
	if (!in->obj_type) {
		event->element.port_num = (int)in->port;
		return true;
	}

	pthread_mutex_lock(&table->lock);
	node = rpost_table_find(table, in->user_data);
	if (node)
		async = rpost_container_of(node, struct rpost_async, node);
	if (async && (async->context != context || async->type != in->obj_type))
		async = NULL;
	if (async) {
		async->reported++;
		set_element(event, async);
	}
	pthread_mutex_unlock(&table->lock);
	return async;
}

/**
 * ibv_get_async_event() - wait for an asynchronous event,
 * ibv_get_async_event(3)
 * @context: of the device
 * @event: filled in; for an event of a port the element is port_num, for
 *         IBV_EVENT_DEVICE_FATAL there is none
 *
 * Each event must be acknowledged by ibv_ack_async_event().  Events of objects
 * that have been destroyed meanwhile are dropped.
 *
 * Return: 0, or -1 with errno: EAGAIN if there is none and the context's
 * async_fd is non-blocking, EINTR.
 */
RPOST_API int ibv_get_async_event(struct ibv_context *context,
				  struct ibv_async_event *event)
{
	struct ibv_async_event found;
	struct rpost_async_event in;
	ssize_t n;

	do {
		n = read(context->async_fd, &in, sizeof(in));
		if (n < 0)
			return -1;
		if (n != sizeof(in))
			return rpost_fail(EIO);
	} while (!accept_event(context, &in, &found));
	*event = found;
	return 0;
}

static void ack(pthread_mutex_t *mutex, pthread_cond_t *cond,
		uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

/**
 * ibv_ack_async_event() - acknowledge an asynchronous event,
 * ibv_get_async_event(3)
 * @event: from ibv_get_async_event()
 */
RPOST_API void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		cq = event->element.cq;
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		qp = event->element.qp;
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		srq = event->element.srq;
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	default:
		break;
	}
}
