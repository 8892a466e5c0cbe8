// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asynchronous events.  Each context has a channel of its device in the kernel,
 * and its async_fd is that channel's file.
 *
 * The kernel puts the events of all objects that the open file has on a device
 * into every channel of the device.  Processes that import the device have the
 * same file.  A program expects only events of live objects of the context, so
 * the library looks the object of each event up and drops the others.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/internal.h"

/*
 * Returns the file descriptor of a new channel, or -1 with errno.  If the
 * module has no such channels, or the limit is reached, it is an eventfd that
 * never becomes readable, so that programs can poll(2) it and set its flags.
 */
int rpost_async_open(struct rpost_file *file, uint32_t device)
{
	struct rpost_create_async_channel cmd = { .device = device };
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

	async->node.key = atomic_fetch_add(&number, 1) + 1 +
			  rpost_ctx(context)->file->first_number;
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

/* Converts and counts an event.  Returns false if it is to be dropped. */
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
 * @event: filled in; the element is port_num for an event of a port, and unused
 *         for IBV_EVENT_DEVICE_FATAL
 *
 * The program must acknowledge each event by ibv_ack_async_event().  Events of
 * objects that have been destroyed meanwhile are dropped.
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
