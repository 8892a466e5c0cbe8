// SPDX-License-Identifier: GPL-2.0
/*
 * Receive queues, and shared receive queues.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "rdmasim.h"

static struct sim_rwqe *sim_rq_slot(const struct sim_rq *rq, u32 index)
{
	return rq->ring + index % rq->size *
	       struct_size_t(struct sim_rwqe, sge, rq->max_sge);
}

/**
 * sim_rq_init() - allocate a receive queue
 * @rq: the queue
 * @size: number of receives
 * @max_sge: entries of each
 *
 * Return: 0 or -ENOMEM.
 */
int sim_rq_init(struct sim_rq *rq, u32 size, u32 max_sge)
{
	spin_lock_init(&rq->lock);
	rq->size = size;
	rq->max_sge = max_sge;
	if (!size)
		return 0;
	rq->ring = kvcalloc(size, struct_size_t(struct sim_rwqe, sge, max_sge),
			    GFP_KERNEL);
	return rq->ring ? 0 : -ENOMEM;
}

/**
 * sim_rq_free() - undo sim_rq_init()
 * @rq: the queue
 */
void sim_rq_free(struct sim_rq *rq)
{
	kvfree(rq->ring);
}

/**
 * sim_rq_post() - post a receive
 * @rq: the queue, with its lock held
 * @wr: the receive
 *
 * Return: 0 or a negative errno.
 */
int sim_rq_post(struct sim_rq *rq, const struct ib_recv_wr *wr)
{
	struct sim_rwqe *wqe;

	lockdep_assert_held(&rq->lock);

	if (wr->num_sge < 0 || wr->num_sge > rq->max_sge)
		return -EINVAL;
	if (rq->count == rq->size)
		return -ENOMEM;
	wqe = sim_rq_slot(rq, rq->head + rq->count++);
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = wr->num_sge;
	memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(*wqe->sge));
	return 0;
}

static bool sim_rq_take_locked(struct sim_rq *rq, struct sim_rwqe *to)
{
	const struct sim_rwqe *wqe;

	if (!rq->count)
		return false;
	wqe = sim_rq_slot(rq, rq->head);
	rq->head = (rq->head + 1) % rq->size;
	rq->count--;
	to->wr_id = wqe->wr_id;
	to->num_sge = wqe->num_sge;
	memcpy(to->sge, wqe->sge, wqe->num_sge * sizeof(*wqe->sge));
	return true;
}

/**
 * sim_rq_take() - take the oldest receive
 * @rq: the queue
 * @to: out: the receive, with room for the maximum of entries
 *
 * Return: false if there is none.
 */
bool sim_rq_take(struct sim_rq *rq, struct sim_rwqe *to)
{
	unsigned long flags;
	bool taken;

	spin_lock_irqsave(&rq->lock, flags);
	taken = sim_rq_take_locked(rq, to);
	spin_unlock_irqrestore(&rq->lock, flags);
	return taken;
}

/**
 * sim_srq_take() - take the oldest receive of a shared queue
 * @srq: the queue
 * @to: out: the receive, with room for the maximum of entries
 *
 * Return: false if there is none.
 */
bool sim_srq_take(struct sim_srq *srq, struct sim_rwqe *to)
{
	struct ib_event event = {
		.device = srq->ibsrq.device,
		.element.srq = &srq->ibsrq,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};
	bool taken, tell = false;
	unsigned long flags;

	spin_lock_irqsave(&srq->rq.lock, flags);
	taken = sim_rq_take_locked(&srq->rq, to);
	if (taken && srq->rq.count < srq->limit) {
		srq->limit = 0;
		tell = true;
	}
	spin_unlock_irqrestore(&srq->rq.lock, flags);

	if (tell && srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
	return taken;
}

static int sim_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			  struct ib_udata *udata)
{
	const struct ib_device_attr *limits = &ibsrq->device->attrs;
	struct sim_srq *srq = to_sim_srq(ibsrq);
	struct ib_srq_attr *attr = &init->attr;

	if (udata || init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->max_wr || attr->max_wr > limits->max_srq_wr ||
	    attr->max_sge > limits->max_srq_sge || attr->srq_limit > attr->max_wr)
		return -EINVAL;
	if (sim_options.round_up)
		attr->max_wr = roundup_pow_of_two(attr->max_wr);
	srq->limit = attr->srq_limit;
	return sim_rq_init(&srq->rq, attr->max_wr, attr->max_sge);
}

static int sim_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			  enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);
	unsigned long flags;
	int ret = 0;

	if (mask & ~IB_SRQ_LIMIT)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&srq->rq.lock, flags);
	if (attr->srq_limit > srq->rq.size)
		ret = -EINVAL;
	else if (mask & IB_SRQ_LIMIT)
		srq->limit = attr->srq_limit;
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	return ret;
}

static int sim_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);

	attr->max_wr = srq->rq.size;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

static int sim_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	sim_rq_free(&to_sim_srq(ibsrq)->rq);
	return 0;
}

static int sim_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad_wr)
{
	struct sim_srq *srq = to_sim_srq(ibsrq);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&srq->rq.lock, flags);
	for (; wr && !ret; wr = wr->next) {
		ret = sim_rq_post(&srq->rq, wr);
		if (ret)
			*bad_wr = wr;
	}
	spin_unlock_irqrestore(&srq->rq.lock, flags);
	return ret;
}

const struct ib_device_ops sim_srq_ops = {
	.create_srq = sim_create_srq,
	.destroy_srq = sim_destroy_srq,
	.modify_srq = sim_modify_srq,
	.post_srq_recv = sim_post_srq_recv,
	.query_srq = sim_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, sim_srq, ibsrq),
};
