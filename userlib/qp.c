// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs of connection ids.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define KNOWN_ATTRS (((IBV_QP_DEST_QPN << 1) - 1) | IBV_QP_RATE_LIMIT)

/* Destroys those that there are; without @wait not those with unacked events,
 * which are left behind.
 */
void rpost_own_cqs_destroy(struct rpost_own_cqs *own, bool wait)
{
	if (own->send_cq && (wait || !rpost_cq_has_unacked_events(own->send_cq)))
		ibv_destroy_cq(own->send_cq);
	if (own->recv_cq && (wait || !rpost_cq_has_unacked_events(own->recv_cq)))
		ibv_destroy_cq(own->recv_cq);
	if (own->send_channel)
		ibv_destroy_comp_channel(own->send_channel);
	if (own->recv_channel)
		ibv_destroy_comp_channel(own->recv_channel);
	memset(own, 0, sizeof(*own));
}

static void forget_cqs(struct rpost_id *priv)
{
	struct rdma_cm_id *id = &priv->id;

	if (priv->own.send_cq) {
		id->send_cq = NULL;
		id->send_cq_channel = NULL;
	}
	if (priv->own.recv_cq) {
		id->recv_cq = NULL;
		id->recv_cq_channel = NULL;
	}
}

static int create_cq(struct rdma_cm_id *id, uint32_t size,
		     struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (size > INT32_MAX)
		return EINVAL;
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return errno;
	*cq = ibv_create_cq(id->verbs, (int)size, id, *channel, 0);
	return *cq ? 0 : errno;
}

/* Makes what neither the caller nor the id has.  Returns 0 or an errno. */
static int create_cqs(struct rpost_id *priv,
		      const struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &priv->id;
	struct rpost_own_cqs own = {};
	int err = 0;

	if (!attr->recv_cq && !id->recv_cq && attr->cap.max_recv_wr)
		err = create_cq(id, attr->cap.max_recv_wr, &own.recv_channel,
				&own.recv_cq);
	if (!err && !attr->send_cq && !id->send_cq && attr->cap.max_send_wr)
		err = create_cq(id, attr->cap.max_send_wr, &own.send_channel,
				&own.send_cq);
	if (err) {
		rpost_own_cqs_destroy(&own, true);
		return err;
	}

	/* Others may be there from an earlier queue pair. */
	if (own.recv_cq) {
		priv->own.recv_cq = id->recv_cq = own.recv_cq;
		priv->own.recv_channel = own.recv_channel;
		id->recv_cq_channel = own.recv_channel;
	}
	if (own.send_cq) {
		priv->own.send_cq = id->send_cq = own.send_cq;
		priv->own.send_channel = own.send_channel;
		id->send_cq_channel = own.send_channel;
	}
	return 0;
}

static int check_init_attr(const struct rdma_cm_id *id,
			   const struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs || rpost_id((struct rdma_cm_id *)id)->qp)
		return EINVAL;
	if (attr->comp_mask & ~IBV_QP_INIT_ATTR_PD)
		return EOPNOTSUPP;
	if (attr->pd && attr->pd->context != id->verbs)
		return EINVAL;
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return EINVAL;
	if ((attr->send_cq && attr->send_cq->context != id->verbs) ||
	    (attr->recv_cq && attr->recv_cq->context != id->verbs))
		return EINVAL;
	if (attr->srq || attr->qp_type != IBV_QPT_RC)
		return attr->srq || attr->qp_type == IBV_QPT_UC ||
		       attr->qp_type == IBV_QPT_UD ? EOPNOTSUPP : EINVAL;
	return 0;
}

static int create_kernel_qp(struct rpost_id *priv, struct rpost_qp *qp,
			    struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_cq *send_cq = attr->send_cq ? attr->send_cq : attr->recv_cq;
	struct ibv_cq *recv_cq = attr->recv_cq ? attr->recv_cq : attr->send_cq;
	struct rpost_create_qp cmd;
	int err;

	/* A queue of no length needs no completion queue, but the device one */
	if (!send_cq || !recv_cq)
		return EINVAL;

	cmd = (struct rpost_create_qp) {
		.size = sizeof(cmd),
		.flags = attr->sq_sig_all ? RPOST_QP_SIG_ALL : 0,
		.id = rpost_id_handle(priv),
		.pd = attr->pd->handle,
		.send_cq = send_cq->handle,
		.recv_cq = recv_cq->handle,
		.max_send_wr = attr->cap.max_send_wr,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_sge = attr->cap.max_recv_sge,
		.max_inline_data = attr->cap.max_inline_data,
	};
	rpost_async_init(&qp->async, priv->id.verbs, RPOST_OBJ_QP);
	if (priv->file->features & RPOST_FEATURE_ASYNC)
		cmd.user_data = qp->async.node.key;
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_CREATE_QP, &cmd);
	if (err)
		return err;

	attr->cap.max_send_wr = cmd.max_send_wr;
	attr->cap.max_recv_wr = cmd.max_recv_wr;
	attr->cap.max_send_sge = cmd.max_send_sge;
	attr->cap.max_recv_sge = cmd.max_recv_sge;
	attr->cap.max_inline_data = cmd.max_inline_data;

	qp->cap = attr->cap;
	qp->sig_all = !!attr->sq_sig_all;
	qp->ibv.context = priv->id.verbs;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = attr->pd;
	qp->ibv.send_cq = send_cq;
	qp->ibv.recv_cq = recv_cq;
	qp->ibv.handle = cmd.handle;
	qp->ibv.qp_num = cmd.qp_num;
	qp->ibv.state = IBV_QPS_INIT;
	qp->ibv.qp_type = attr->qp_type;
	return 0;
}

/**
 * rdma_create_qp_ex() - make a queue pair for an id, rdma_create_qp(3)
 * @id: bound to a device, without a queue pair
 * @attr: comp_mask may have IBV_QP_INIT_ATTR_PD; a missing protection domain
 *        is the device's default one, missing completion queues are made with
 *        channels of their own and put into the id; cap, pd and the queues are
 *        set to what was taken
 *
 * Return: 0, or -1 with errno: EINVAL for an id without a device or with a
 * queue pair, objects of another context, or more than the device has;
 * EOPNOTSUPP for other types than IBV_QPT_RC, shared receive queues, and other
 * bits of comp_mask; ENOMEM, EMFILE.
 */
RPOST_API int rdma_create_qp_ex(struct rdma_cm_id *id,
				struct ibv_qp_init_attr_ex *attr)
{
	struct rpost_id *priv = rpost_id(id);
	struct ibv_qp_init_attr_ex actual = *attr;
	struct rpost_qp *qp;
	int err;

	if (!(actual.comp_mask & IBV_QP_INIT_ATTR_PD))
		actual.pd = NULL;
	err = check_init_attr(id, &actual);
	if (err)
		return rpost_fail(err);
	if (!actual.pd)
		actual.pd = id->pd;
	actual.comp_mask |= IBV_QP_INIT_ATTR_PD;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return -1;
	err = create_cqs(priv, &actual);
	if (err)
		goto free;
	if (!actual.send_cq)
		actual.send_cq = id->send_cq;
	if (!actual.recv_cq)
		actual.recv_cq = id->recv_cq;
	err = create_kernel_qp(priv, qp, &actual);
	if (err)
		goto destroy_cqs;

	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	rpost_async_add(&qp->async);
	qp->id = priv;
	priv->qp = qp;
	id->qp = &qp->ibv;
	id->pd = actual.pd;
	*attr = actual;
	return 0;

destroy_cqs:
	forget_cqs(priv);
	rpost_own_cqs_destroy(&priv->own, true);
free:
	free(qp);
	return rpost_fail(err);
}

/**
 * rdma_create_qp() - make a queue pair for an id, rdma_create_qp(3)
 * @id: bound to a device, without a queue pair
 * @pd: protection domain of the id's verbs, or NULL for the default one
 * @qp_init_attr: as for rdma_create_qp_ex()
 *
 * Return: as rdma_create_qp_ex().
 */
RPOST_API int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = qp_init_attr->qp_context,
		.send_cq = qp_init_attr->send_cq,
		.recv_cq = qp_init_attr->recv_cq,
		.srq = qp_init_attr->srq,
		.cap = qp_init_attr->cap,
		.qp_type = qp_init_attr->qp_type,
		.sq_sig_all = qp_init_attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};

	if (rdma_create_qp_ex(id, &attr))
		return -1;
	qp_init_attr->send_cq = attr.send_cq;
	qp_init_attr->recv_cq = attr.recv_cq;
	qp_init_attr->cap = attr.cap;
	return 0;
}

static void qp_free(struct rpost_qp *qp)
{
	rpost_async_del(&qp->async);
	rpost_async_wait(&qp->async, &qp->ibv.mutex, &qp->ibv.cond,
			 &qp->ibv.events_completed);
	pthread_cond_destroy(&qp->ibv.cond);
	pthread_mutex_destroy(&qp->ibv.mutex);
	free(qp);
}

void rpost_qp_orphan(struct rpost_qp *qp)
{
	struct rpost_id *priv = qp->id;

	rpost_destroy_handle(priv->file->fd, RPOST_OBJ_QP, qp->ibv.handle);
	qp->ibv.state = IBV_QPS_ERR;
	qp->own = priv->own;
	qp->id = NULL;
	memset(&priv->own, 0, sizeof(priv->own));
	priv->qp = NULL;
}

/**
 * ibv_destroy_qp() - destroy a queue pair, ibv_destroy_qp(3)
 * @qp: the queue pair; one whose id has been destroyed is fine
 *
 * What it still held has completed in its completion queues when the call
 * returns.  Waits until the events that ibv_get_async_event() returned for it
 * have been acknowledged.
 *
 * Return: 0 or an errno value.
 */
RPOST_API int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct rpost_qp *rqp = rpost_qp(qp);
	struct rpost_id *priv = rqp->id;
	int err;

	if (priv) {
		err = rpost_destroy_handle(priv->file->fd, RPOST_OBJ_QP,
					   qp->handle);
		if (err)
			return err;
		priv->qp = NULL;
		if (priv->id.qp == qp)
			priv->id.qp = NULL;
	} else {
		rpost_own_cqs_destroy(&rqp->own, false);
	}
	qp_free(rqp);
	return 0;
}

/**
 * rdma_destroy_qp() - destroy an id's queue pair, rdma_destroy_qp(3)
 * @id: the id; without a queue pair nothing is done
 *
 * Completion queues and channels that rdma_create_qp() made go too, after
 * their events have been acknowledged.
 */
RPOST_API void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct rpost_id *priv = rpost_id(id);

	if (priv->qp && ibv_destroy_qp(&priv->qp->ibv))
		return;
	id->qp = NULL;
	forget_cqs(priv);
	rpost_own_cqs_destroy(&priv->own, true);
}

static void query_address(struct ibv_qp_attr *attr,
			  const struct rpost_query_qp *q)
{
	attr->ah_attr.is_global = 1;
	memcpy(attr->ah_attr.grh.dgid.raw, q->dgid, sizeof(q->dgid));
	attr->ah_attr.grh.sgid_index = q->sgid_index;
	attr->ah_attr.grh.hop_limit = q->hop_limit;
	attr->ah_attr.grh.traffic_class = q->traffic_class;
	attr->ah_attr.sl = q->sl;
	attr->ah_attr.port_num = q->port_num;
}

/**
 * ibv_query_qp() - a queue pair's attributes, ibv_query_qp(3)
 * @qp: the queue pair
 * @attr: filled in
 * @attr_mask: enum ibv_qp_attr_mask of what is wanted; all of it is filled in
 * @init_attr: filled in with what the queue pair was made with
 *
 * Return: 0, or an errno value: EOPNOTSUPP for bits of @attr_mask that do not
 * exist, ENOENT if the queue pair's id is gone.
 */
RPOST_API int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			   int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct rpost_qp *rqp = rpost_qp(qp);
	struct rpost_query_qp q = {
		.size = sizeof(q),
		.handle = qp->handle,
	};
	int err;

	if (attr_mask & ~KNOWN_ATTRS)
		return EOPNOTSUPP;
	if (!rqp->id)
		return ENOENT;
	err = rpost_ioctl(qp->context->cmd_fd, RPOST_IOC_QUERY_QP, &q);
	if (err)
		return err;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = q.qp_state;
	attr->cur_qp_state = q.qp_state;
	attr->path_mtu = q.path_mtu;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->qkey = q.qkey;
	attr->rq_psn = q.rq_psn;
	attr->sq_psn = q.sq_psn;
	attr->dest_qp_num = q.dest_qp_num;
	attr->qp_access_flags = q.access;
	attr->cap = rqp->cap;
	query_address(attr, &q);
	attr->pkey_index = q.pkey_index;
	attr->sq_draining = q.sq_draining;
	attr->max_rd_atomic = q.max_rd_atomic;
	attr->max_dest_rd_atomic = q.max_dest_rd_atomic;
	attr->min_rnr_timer = q.min_rnr_timer;
	attr->port_num = q.port_num;
	attr->timeout = q.timeout;
	attr->retry_cnt = q.retry_cnt;
	attr->rnr_retry = q.rnr_retry;

	memset(init_attr, 0, sizeof(*init_attr));
	init_attr->qp_context = qp->qp_context;
	init_attr->send_cq = qp->send_cq;
	init_attr->recv_cq = qp->recv_cq;
	init_attr->srq = qp->srq;
	init_attr->cap = rqp->cap;
	init_attr->qp_type = qp->qp_type;
	init_attr->sq_sig_all = rqp->sig_all;
	qp->state = q.qp_state;
	return 0;
}
