// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs, completion queues and shared receive queues of ids. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/*
 * Guards rpost_qp.id and rpost_id.qp of queue pairs that cma does not own.  A
 * program may put them into another id, and destroy them while another thread
 * destroys the first id.
 */
static pthread_mutex_t links_lock = PTHREAD_MUTEX_INITIALIZER;

static void destroy_cqs(struct rpost_default_cqs *cqs)
{
	if (cqs->send_cq)
		ibv_destroy_cq(cqs->send_cq);
	if (cqs->recv_cq)
		ibv_destroy_cq(cqs->recv_cq);
	if (cqs->send_channel)
		ibv_destroy_comp_channel(cqs->send_channel);
	if (cqs->recv_channel)
		ibv_destroy_comp_channel(cqs->recv_channel);
	memset(cqs, 0, sizeof(*cqs));
}

static void forget_cqs(struct rpost_id *priv)
{
	struct rdma_cm_id *id = &priv->id;

	if (priv->default_cqs.send_cq) {
		id->send_cq = NULL;
		id->send_cq_channel = NULL;
	}
	if (priv->default_cqs.recv_cq) {
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

/* The program may have put its queue pair into another id. */
static void forget_moved_qp(struct rpost_id *priv)
{
	struct rpost_qp *qp;

	pthread_mutex_lock(&links_lock);
	qp = priv->qp;
	if (qp && !qp->of_cm && priv->id.qp != &qp->ibv) {
		qp->id = NULL;
		priv->qp = NULL;
	}
	pthread_mutex_unlock(&links_lock);
}

/* Makes missing completion queues.  Returns 0 or an errno value. */
static int create_cqs(struct rpost_id *priv,
		      const struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *id = &priv->id;
	struct rpost_default_cqs cqs = {};
	int err = 0;

	if (!attr->recv_cq && !id->recv_cq && attr->cap.max_recv_wr)
		err = create_cq(id, attr->cap.max_recv_wr, &cqs.recv_channel,
				&cqs.recv_cq);
	if (!err && !attr->send_cq && !id->send_cq && attr->cap.max_send_wr)
		err = create_cq(id, attr->cap.max_send_wr, &cqs.send_channel,
				&cqs.send_cq);
	if (err) {
		destroy_cqs(&cqs);
		return err;
	}

	/* The id may still have queues made for an earlier queue pair. */
	if (cqs.recv_cq) {
		priv->default_cqs.recv_cq = id->recv_cq = cqs.recv_cq;
		priv->default_cqs.recv_channel = cqs.recv_channel;
		id->recv_cq_channel = cqs.recv_channel;
	}
	if (cqs.send_cq) {
		priv->default_cqs.send_cq = id->send_cq = cqs.send_cq;
		priv->default_cqs.send_channel = cqs.send_channel;
		id->send_cq_channel = cqs.send_channel;
	}
	return 0;
}

static int check_init_attr(const struct rdma_cm_id *id,
			   const struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs || id->qp || rpost_id((struct rdma_cm_id *)id)->qp)
		return EINVAL;
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq) ||
	    (id->srq && attr->srq && id->srq != attr->srq))
		return EINVAL;
	return attr->qp_type == id->qp_type ? 0 : EINVAL;
}

/*
 * Shall the kernel's connection manager own a new queue pair of this id?
 *
 * That saves calls when it connects, and iWARP needs it, but the queue pair
 * cannot leave the id.  A program that makes it before there is a request or an
 * address may put it into the id of a request later.  cma joins no group for an
 * id that has a queue pair, and has none for unreliable connections.
 */
static bool of_cm(const struct rpost_id *priv)
{
	const struct rdma_cm_id *id = &priv->id;

	if (id->qp_type != IBV_QPT_RC)
		return false;
	return id->route.addr.dst_addr.sa_family ||
	       id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

static int create_qp(struct rpost_id *priv, struct ibv_qp_init_attr_ex *attr,
		     struct rpost_qp **qp)
{
	int err;

	if (of_cm(priv))
		return rpost_qp_create(priv->id.verbs, rpost_id_handle(priv),
				       attr, qp);
	err = rpost_qp_create(priv->id.verbs, 0, attr, qp);
	if (err)
		return err;
	err = rpost_id_init_qp(priv, &(*qp)->ibv);
	if (err)
		ibv_destroy_qp(&(*qp)->ibv);
	return err;
}

/**
 * rdma_create_qp_ex() - make a queue pair for an id, rdma_create_qp(3)
 * @id: bound to a device, without a queue pair
 * @attr: as for ibv_create_qp_ex(), but a missing protection domain is that of
 *        the id (the device's default one), a missing shared receive queue is
 *        id->srq, and missing completion queues are made, with channels, and
 *        put into the id; cap, pd and the queues are set to the actual ones
 *
 * The queue pair takes receives at once; one for datagrams takes sends, too.
 *
 * Return: 0, or -1 with errno: EINVAL for an id without a device or with a
 * queue pair, another type than the id's, objects of another context, or sizes
 * above the device's; EOPNOTSUPP as for ibv_create_qp_ex(); ENOMEM, EMFILE.
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
	forget_moved_qp(priv);
	err = check_init_attr(id, &actual);
	if (err)
		return rpost_fail(err);
	if (!actual.pd)
		actual.pd = id->pd;
	actual.comp_mask |= IBV_QP_INIT_ATTR_PD;

	err = create_cqs(priv, &actual);
	if (err)
		return rpost_fail(err);
	if (!actual.send_cq)
		actual.send_cq = id->send_cq;
	if (!actual.recv_cq)
		actual.recv_cq = id->recv_cq;
	if (!actual.srq)
		actual.srq = id->srq;
	err = create_qp(priv, &actual, &qp);
	if (err)
		goto err_cqs;

	qp->id = priv;
	priv->qp = qp;
	id->qp = &qp->ibv;
	id->pd = actual.pd;
	*attr = actual;
	return 0;

err_cqs:
	forget_cqs(priv);
	destroy_cqs(&priv->default_cqs);
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

void rpost_qp_leave_id(struct rpost_qp *qp)
{
	struct rpost_id *priv;

	pthread_mutex_lock(&links_lock);
	priv = qp->id;
	if (priv) {
		qp->id = NULL;
		priv->qp = NULL;
		if (priv->id.qp == &qp->ibv)
			priv->id.qp = NULL;
	}
	pthread_mutex_unlock(&links_lock);
}

int rpost_id_leave_qp(struct rpost_id *priv)
{
	struct rpost_qp *qp;
	int err;

	pthread_mutex_lock(&links_lock);
	qp = priv->qp;
	if (qp && !qp->of_cm) {
		qp->id = NULL;
		priv->qp = NULL;
	}
	pthread_mutex_unlock(&links_lock);
	if (!priv->qp)
		return 0;
	err = rpost_qp_destroy_handle(qp);
	if (err)
		return err;
	rpost_qp_detach_cntrs(qp);
	qp->ibv.state = IBV_QPS_ERR;
	qp->orphan = true;
	qp->id = NULL;
	priv->qp = NULL;
	return 0;
}

/**
 * rdma_destroy_qp() - destroy an id's queue pair, rdma_destroy_qp(3)
 * @id: the id
 *
 * Also destroys completion queues and channels that rdma_create_qp() made,
 * after the program has acknowledged their events.  If ibv_destroy_qp() fails,
 * errno has its error, and the queue pair stays in id->qp.
 */
RPOST_API void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct rpost_id *priv = rpost_id(id);
	int err = 0;

	forget_moved_qp(priv);
	/* The program may have put another queue pair into id->qp. */
	if (id->qp)
		err = ibv_destroy_qp(id->qp);
	if (!err && priv->qp)
		err = ibv_destroy_qp(&priv->qp->ibv);
	if (err) {
		errno = err;
		return;
	}
	id->qp = NULL;
	forget_cqs(priv);
	destroy_cqs(&priv->default_cqs);
}

/* ------------------------------------------------ shared receive queues */

/**
 * rdma_create_srq_ex() - make a shared receive queue for an id,
 * rdma_create_srq(3)
 * @id: bound to a device
 * @attr: as for ibv_create_srq_ex(), but without a protection domain the id's
 *        is used
 *
 * Later queue pairs of the id use it.
 *
 * Return: 0, or -1 with errno: EINVAL for an id without a device or a
 * protection domain of another one, else as ibv_create_srq_ex().
 */
RPOST_API int rdma_create_srq_ex(struct rdma_cm_id *id,
				 struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq;

	if (!id->verbs)
		return rpost_fail(EINVAL);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd->context != id->verbs)
		return rpost_fail(EINVAL);

	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq)
		return -1;
	if (!id->pd)
		id->pd = attr->pd;
	id->srq = srq;
	return 0;
}

/**
 * rdma_create_srq() - make a shared receive queue for an id, rdma_create_srq(3)
 * @id: bound to a device
 * @pd: protection domain of the id's verbs, or NULL for the id's
 * @attr: as for ibv_create_srq()
 *
 * Return: as rdma_create_srq_ex().
 */
RPOST_API int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};

	if (rdma_create_srq_ex(id, &attr_ex))
		return -1;
	attr->attr = attr_ex.attr;
	return 0;
}

/**
 * rdma_destroy_srq() - destroy an id's shared receive queue,
 * rdma_destroy_srq(3)
 * @id: the id; its queue pair must have been destroyed
 */
RPOST_API void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq && !ibv_destroy_srq(id->srq))
		id->srq = NULL;
}
