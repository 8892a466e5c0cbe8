// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "rdmasim.h"

#define SIM_QPN_GSI	1
#define SIM_QPN_LIMIT	XA_LIMIT(16, 0xfffffe)

/* All devices' queue pairs by number, so that the number finds the peer. */
static DEFINE_XARRAY_FLAGS(sim_qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
static u32 sim_next_qpn;

/**
 * sim_qp_get() - find a queue pair
 * @qpn: the number
 *
 * Return: the queue pair with a reference, or NULL.
 */
struct sim_qp *sim_qp_get(u32 qpn)
{
	struct sim_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(&sim_qps, flags);
	qp = xa_load(&sim_qps, qpn);
	if (qp)
		refcount_inc(&qp->refs);
	xa_unlock_irqrestore(&sim_qps, flags);
	return qp;
}

/**
 * sim_qp_put() - drop a reference
 * @qp: the queue pair
 */
void sim_qp_put(struct sim_qp *qp)
{
	if (refcount_dec_and_test(&qp->refs))
		complete(&qp->gone);
}

/**
 * sim_qp_event() - deliver an event of a queue pair
 * @qp: the queue pair, with a reference
 * @type: the event
 */
void sim_qp_event(struct sim_qp *qp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = type,
	};

	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

static void sim_qp_move(struct sim_qp *qp, enum ib_qp_state state)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (qp->state != IB_QPS_RESET && qp->state != IB_QPS_ERR)
		WRITE_ONCE(qp->state, state);
	spin_unlock_irqrestore(&qp->lock, flags);
}

/**
 * sim_qp_fail() - stop a queue pair whose send has failed
 * @qp: the queue pair
 */
void sim_qp_fail(struct sim_qp *qp)
{
	sim_qp_move(qp, sim_is_datagram(qp) ? IB_QPS_SQE : IB_QPS_ERR);
}

/**
 * sim_qp_stop() - stop a queue pair whose receive has failed
 * @qp: the queue pair
 */
void sim_qp_stop(struct sim_qp *qp)
{
	sim_qp_move(qp, IB_QPS_ERR);
}

/* Return the queue pair with the next number, with a reference, or NULL. */
static struct sim_qp *sim_qp_next(unsigned long *qpn)
{
	struct sim_qp *qp = NULL;

	while (!qp && xa_find_after(&sim_qps, qpn, ULONG_MAX, XA_PRESENT))
		qp = sim_qp_get(*qpn);
	return qp;
}

/**
 * sim_qps_kick() - run the engines of all queue pairs
 */
void sim_qps_kick(void)
{
	unsigned long qpn = 0;
	struct sim_qp *qp;

	while ((qp = sim_qp_next(&qpn))) {
		sim_engine_kick(qp);
		sim_qp_put(qp);
	}
}

static void sim_raise_of(struct sim_qp *qp, enum ib_event_type type)
{
	struct ib_event event = { .device = qp->ibqp.device, .event = type };
	struct ib_srq *srq = qp->ibqp.srq;
	struct ib_cq *cq = qp->ibqp.recv_cq;

	switch (type) {
	case IB_EVENT_CQ_ERR:
		event.element.cq = cq;
		if (cq && cq->event_handler)
			cq->event_handler(&event, cq->cq_context);
		break;
	case IB_EVENT_SRQ_ERR:
	case IB_EVENT_SRQ_LIMIT_REACHED:
		event.element.srq = srq;
		if (srq && srq->event_handler)
			srq->event_handler(&event, srq->srq_context);
		break;
	default:
		sim_qp_event(qp, type);
	}
}

/**
 * sim_qps_raise() - deliver an event of all queue pairs, or of their other queues
 * @type: the event
 */
void sim_qps_raise(enum ib_event_type type)
{
	unsigned long qpn = 0;
	struct sim_qp *qp;

	while ((qp = sim_qp_next(&qpn))) {
		if (qp->ibqp.qp_type != IB_QPT_GSI)
			sim_raise_of(qp, type);
		sim_qp_put(qp);
	}
}

/* ------------------------------------------------- creation */

static int sim_check_init(const struct ib_device *ib_dev,
			  const struct ib_qp_init_attr *init)
{
	const struct ib_device_attr *limits = &ib_dev->attrs;
	const struct ib_qp_cap *cap = &init->cap;

	if (init->create_flags ||
	    (init->qp_type != IB_QPT_RC && init->qp_type != IB_QPT_UC &&
	     init->qp_type != IB_QPT_UD && init->qp_type != IB_QPT_GSI))
		return -EOPNOTSUPP;
	/* ib_mad requests 512 entries, whatever max_wr is. */
	if (init->qp_type == IB_QPT_GSI)
		return 0;
	if (cap->max_send_wr > limits->max_qp_wr ||
	    cap->max_send_sge > limits->max_send_sge ||
	    cap->max_inline_data > SIM_MAX_INLINE)
		return -EINVAL;
	if (!init->srq && (cap->max_recv_wr > limits->max_qp_wr ||
			   cap->max_recv_sge > limits->max_recv_sge))
		return -EINVAL;
	return 0;
}

static u32 sim_round(u32 size)
{
	return size && sim_options.round_up ? roundup_pow_of_two(size) : size;
}

static int sim_queues_init(struct sim_qp *qp, const struct ib_qp_init_attr *init)
{
	u32 max_sge = init->cap.max_recv_sge;
	int ret;

	qp->cap = init->cap;
	qp->cap.max_send_wr = sim_round(init->cap.max_send_wr);
	if (init->srq) {
		qp->srq = to_sim_srq(init->srq);
		max_sge = qp->srq->rq.max_sge;
		qp->cap.max_recv_wr = 0;
		qp->cap.max_recv_sge = 0;
	}
	qp->cap.max_recv_wr = sim_round(qp->cap.max_recv_wr);
	ret = sim_sq_init(&qp->sq, &qp->cap);
	if (ret)
		return ret;
	ret = sim_rq_init(&qp->rq, qp->cap.max_recv_wr, qp->cap.max_recv_sge);
	if (ret)
		goto err_sq;
	qp->rwqe = kzalloc(struct_size(qp->rwqe, sge, max_sge), GFP_KERNEL);
	if (qp->rwqe)
		return 0;
	ret = -ENOMEM;
	sim_rq_free(&qp->rq);
err_sq:
	sim_sq_free(&qp->sq);
	return ret;
}

static void sim_queues_free(struct sim_qp *qp)
{
	kfree(qp->rwqe);
	sim_rq_free(&qp->rq);
	sim_sq_free(&qp->sq);
}

/* From here on the queue pair can receive messages. */
static int sim_qp_publish(struct sim_qp *qp)
{
	struct sim_dev *dev = qp->dev;
	int ret = 0;

	if (qp->ibqp.qp_type != IB_QPT_GSI) {
		ret = xa_alloc_cyclic_irq(&sim_qps, &qp->ibqp.qp_num, qp,
					  SIM_QPN_LIMIT, &sim_next_qpn,
					  GFP_KERNEL);
		return min(ret, 0);
	}
	qp->ibqp.qp_num = SIM_QPN_GSI;
	spin_lock_irq(&sim_dev_lock);
	if (dev->gsi)
		ret = -EBUSY;
	else
		dev->gsi = qp;
	spin_unlock_irq(&sim_dev_lock);
	return ret;
}

static void sim_qp_withdraw(struct sim_qp *qp)
{
	if (qp->ibqp.qp_type != IB_QPT_GSI) {
		xa_erase_irq(&sim_qps, qp->ibqp.qp_num);
		return;
	}
	spin_lock_irq(&sim_dev_lock);
	qp->dev->gsi = NULL;
	spin_unlock_irq(&sim_dev_lock);
}

static int sim_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			 struct ib_udata *udata)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	int ret;

	if (udata)
		return -EOPNOTSUPP;
	ret = sim_check_init(ibqp->device, init);
	if (ret)
		return ret;
	ret = sim_queues_init(qp, init);
	if (ret)
		return ret;
	qp->dev = to_sim_dev(ibqp->device);
	qp->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	refcount_set(&qp->refs, 1);
	init_completion(&qp->gone);
	spin_lock_init(&qp->lock);
	spin_lock_init(&qp->datagram_lock);
	sim_engine_init(qp);
	ret = sim_qp_publish(qp);
	if (ret) {
		sim_queues_free(qp);
		return ret;
	}
	init->cap = qp->cap;
	return 0;
}

/* ------------------------------------------------- states */

static void sim_purge(struct sim_qp *qp)
{
	if (!READ_ONCE(sim_options.purge))
		return;
	sim_cq_purge(qp->ibqp.send_cq, &qp->ibqp);
	sim_cq_purge(qp->ibqp.recv_cq, &qp->ibqp);
}

/* Discard all posted work requests and all modified attributes. */
static void sim_qp_reset(struct sim_qp *qp)
{
	spin_lock_irq(&qp->lock);
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	spin_unlock_irq(&qp->lock);
	sim_engine_stop(qp);

	qp->sq.head = 0;
	qp->sq.count = 0;
	qp->rq.head = 0;
	qp->rq.count = 0;
	qp->tries = 0;
	qp->rnr_tries = 0;
	qp->waiting = false;
	spin_lock_irq(&qp->lock);
	qp->last_wqe = false;
	qp->comm_est = false;
	memset(&qp->attr, 0, sizeof(qp->attr));
	spin_unlock_irq(&qp->lock);
	sim_purge(qp);
}

static int sim_check_attr(const struct sim_qp *qp, const struct ib_qp_attr *attr,
			  int mask)
{
	const struct ib_device_attr *limits = &qp->ibqp.device->attrs;

	if (((mask & IB_QP_PORT) && attr->port_num != SIM_PORT) ||
	    ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index) ||
	    (mask & IB_QP_CAP) ||
	    ((mask & IB_QP_PATH_MTU) &&
	     ib_mtu_enum_to_int(attr->path_mtu) > (int)sim_port_mtu(qp->dev)) ||
	    ((mask & IB_QP_MAX_QP_RD_ATOMIC) &&
	     attr->max_rd_atomic > limits->max_qp_init_rd_atom) ||
	    ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	     attr->max_dest_rd_atomic > limits->max_qp_rd_atom) ||
	    ((mask & IB_QP_TIMEOUT) && attr->timeout > 31) ||
	    ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
	    ((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > 7) ||
	    ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31) ||
	    ((mask & IB_QP_AV) &&
	     !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH)))
		return -EINVAL;
	if (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE | IB_QP_RATE_LIMIT))
		return -EOPNOTSUPP;
	return 0;
}

static void sim_copy_attr(struct ib_qp_attr *to, const struct ib_qp_attr *from,
			  int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS)
		to->qp_access_flags = from->qp_access_flags;
	if (mask & IB_QP_PKEY_INDEX)
		to->pkey_index = from->pkey_index;
	if (mask & IB_QP_PORT)
		to->port_num = from->port_num;
	if (mask & IB_QP_QKEY)
		to->qkey = from->qkey;
	if (mask & IB_QP_AV)
		to->ah_attr = from->ah_attr;
	if (mask & IB_QP_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & IB_QP_RETRY_CNT)
		to->retry_cnt = from->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		to->rnr_retry = from->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		to->rq_psn = from->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		to->sq_psn = from->sq_psn;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = from->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		to->dest_qp_num = from->dest_qp_num;
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = from->en_sqd_async_notify;
	/* The RDMA core owns this pointer. */
	to->ah_attr.grh.sgid_attr = NULL;
}

static int sim_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			 struct ib_udata *udata)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	enum ib_qp_state cur, next;
	int ret;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	spin_lock_irq(&qp->lock);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	ret = sim_check_attr(qp, attr, mask);
	if (!ret && !ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask))
		ret = -EINVAL;
	if (ret || next == IB_QPS_RESET) {
		spin_unlock_irq(&qp->lock);
		if (!ret)
			sim_qp_reset(qp);
		return ret;
	}
	sim_copy_attr(&qp->attr, attr, mask);
	if (mask & IB_QP_STATE) {
		if (next == IB_QPS_SQD && qp->state != IB_QPS_SQD)
			qp->sqd_told = false;
		WRITE_ONCE(qp->state, next);
	}
	spin_unlock_irq(&qp->lock);
	sim_engine_kick(qp);
	return 0;
}

static int sim_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			struct ib_qp_init_attr *init)
{
	struct sim_qp *qp = to_sim_qp(ibqp);

	spin_lock_irq(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = qp->state;
	spin_unlock_irq(&qp->lock);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	attr->sq_draining = attr->qp_state == IB_QPS_SQD &&
			    atomic_read(&qp->kicks);

	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR :
					     IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	return 0;
}

/* ------------------------------------------------- destruction */

static int sim_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct sim_qp *qp = to_sim_qp(ibqp);

	/* A device that goes is no longer in the list. */
	if (qp->ibqp.qp_type != IB_QPT_GSI && !list_empty(&qp->dev->link) &&
	    sim_fail(&sim_options.fail_destroy_qp))
		return -EBUSY;
	if (qp->ibqp.qp_type != IB_QPT_GSI && sim_options.slow_destroy)
		msleep(sim_options.slow_destroy);
	sim_mcast_leave_all(qp);
	sim_qp_withdraw(qp);
	sim_qp_put(qp);
	wait_for_completion(&qp->gone);
	sim_qp_reset(qp);
	sim_queues_free(qp);
	return 0;
}

static void sim_kept_cq_end(struct ib_cq *ibcq)
{
	sim_cq_call(to_sim_cq(ibcq));
	if (!atomic_read(&ibcq->usecnt))
		ib_destroy_cq(ibcq);
}

static void sim_kept_end(struct sim_qp *qp)
{
	struct ib_cq *send_cq = qp->ibqp.send_cq, *recv_cq = qp->ibqp.recv_cq;
	struct ib_srq *srq = qp->ibqp.srq;
	struct ib_pd *pd = qp->ibqp.pd;

	sim_qp_event(qp, IB_EVENT_QP_FATAL);
	WARN_ON(ib_destroy_qp(&qp->ibqp));
	sim_kept_cq_end(send_cq);
	if (recv_cq != send_cq)
		sim_kept_cq_end(recv_cq);
	if (srq && !atomic_read(&srq->usecnt))
		ib_destroy_srq(srq);
	if (!atomic_read(&pd->usecnt))
		ib_dealloc_pd(pd);
}

/**
 * sim_qps_end() - end the queue pairs that were refused to be destroyed for good
 * @dev: the device, which is about to go, and has no other queue pairs
 *
 * Their owners are told of them and of their completion queues a last time.
 */
void sim_qps_end(struct sim_dev *dev)
{
	unsigned long index;
	struct sim_qp *qp;

	xa_for_each(&sim_qps, index, qp)
		if (qp->dev == dev)
			sim_kept_end(qp);
	/* The RDMA core frees their addresses there. */
	flush_workqueue(ib_wq);
}

const struct ib_device_ops sim_qp_ops = {
	.create_qp = sim_create_qp,
	.destroy_qp = sim_destroy_qp,
	.modify_qp = sim_modify_qp,
	.query_qp = sim_query_qp,

	INIT_RDMA_OBJ_SIZE(ib_qp, sim_qp, ibqp),
};
