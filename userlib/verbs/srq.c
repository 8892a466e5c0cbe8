// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues.  post.c posts to them. */
#include <stdlib.h>

#include "core/internal.h"

/**
 * ibv_create_srq() - make a shared receive queue, ibv_create_srq(3)
 * @pd: the protection domain
 * @attr: max_wr and max_sge are set to the actual sizes; srq_limit is the limit
 *        below which IBV_EVENT_SRQ_LIMIT_REACHED comes, none if it is 0 or
 *        above max_wr
 *
 * Return: the queue, to be released by ibv_destroy_srq(), or NULL with errno:
 * EINVAL for sizes above the device's, EOPNOTSUPP for a device without shared
 * receive queues, ENODEV, EMFILE, ENOMEM.
 */
RPOST_API struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
					 struct ibv_srq_init_attr *attr)
{
	struct rpost_create_srq cmd = {
		.pd = pd->handle,
		.max_wr = attr->attr.max_wr,
		.max_sge = attr->attr.max_sge,
	};
	struct rpost_srq *srq;
	int err;

	/* ibv_create_srq(3) calls it irrelevant: it may be uninitialised. */
	if (attr->attr.srq_limit <= attr->attr.max_wr)
		cmd.limit = attr->attr.srq_limit;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	rpost_async_init(&srq->async, pd->context, RPOST_OBJ_SRQ);
	cmd.user_data = srq->async.node.key;
	err = rpost_ioctl(pd->context->cmd_fd, RPOST_IOC_CREATE_SRQ, &cmd);
	if (err) {
		free(srq);
		return rpost_null(err);
	}

	attr->attr.max_wr = cmd.max_wr;
	attr->attr.max_sge = cmd.max_sge;
	srq->max_sge = cmd.max_sge;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.pd = pd;
	srq->ibv.handle = cmd.handle;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	rpost_async_add(&srq->async);
	rpost_made_add(pd->context, &srq->made, RPOST_OBJ_SRQ,
		       &srq->ibv.handle);
	return &srq->ibv;
}

/**
 * ibv_modify_srq() - set the limit of a shared receive queue, or its size,
 *		      ibv_modify_srq(3)
 * @srq: the queue
 * @srq_attr: limit, and number of work requests
 * @srq_attr_mask: IBV_SRQ_LIMIT, IBV_SRQ_MAX_WR
 *
 * Return: 0, or an errno value: see struct rpost_modify_srq; EOPNOTSUPP for a
 * new size without the capability IBV_DEVICE_SRQ_RESIZE, and for other bits.
 */
RPOST_API int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr,
			     int srq_attr_mask)
{
	struct rpost_modify_srq cmd = {
		.handle = srq->handle,
		.attr_mask = srq_attr_mask,
	};

	if (srq_attr_mask & IBV_SRQ_LIMIT)
		cmd.limit = srq_attr->srq_limit;
	if (srq_attr_mask & IBV_SRQ_MAX_WR)
		cmd.max_wr = srq_attr->max_wr;
	if (!srq_attr_mask)
		return 0;
	return rpost_ioctl(srq->context->cmd_fd, RPOST_IOC_MODIFY_SRQ, &cmd);
}

/**
 * ibv_query_srq() - get a shared receive queue's attributes, ibv_query_srq(3)
 * @srq: the queue
 * @srq_attr: filled in; srq_limit is 0 if no limit is set or it was reached
 *
 * Return: 0 or an errno value.
 */
RPOST_API int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	struct rpost_query_srq cmd = { .handle = srq->handle };
	int err;

	err = rpost_ioctl(srq->context->cmd_fd, RPOST_IOC_QUERY_SRQ, &cmd);
	if (err)
		return err;

	srq_attr->max_wr = cmd.max_wr;
	srq_attr->max_sge = cmd.max_sge;
	srq_attr->srq_limit = cmd.limit;
	return 0;
}

/**
 * ibv_destroy_srq() - release a shared receive queue, ibv_create_srq(3)
 * @srq: the queue
 *
 * Outstanding receives do not complete.  Waits until the program has
 * acknowledged the events that ibv_get_async_event() returned for the queue.
 *
 * Return: 0, or an errno value: EBUSY, at once, while queue pairs use it.
 */
RPOST_API int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct rpost_srq *rsrq = rpost_srq(srq);
	int err;

	err = rpost_destroy_handle(srq->context->cmd_fd, RPOST_OBJ_SRQ,
				   srq->handle);
	if (err)
		return err;

	rpost_made_del(srq->context, &rsrq->made);
	rpost_async_del(&rsrq->async);
	rpost_async_wait(&rsrq->async, &srq->mutex, &srq->cond,
			 &srq->events_completed);
	pthread_cond_destroy(&srq->cond);
	pthread_mutex_destroy(&srq->mutex);
	free(rsrq);
	return 0;
}
