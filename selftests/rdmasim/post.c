// SPDX-License-Identifier: GPL-2.0
/*
 * Posting of work requests.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "rdmasim.h"

static struct sim_swqe *sim_sq_slot(const struct sim_sq *sq, u32 index)
{
	return sq->ring + (size_t)(index % sq->size) * sq->stride;
}

/**
 * sim_sq_init() - allocate a send queue
 * @sq: the queue
 * @cap: number and size of the sends
 *
 * Return: 0 or -ENOMEM.
 */
int sim_sq_init(struct sim_sq *sq, const struct ib_qp_cap *cap)
{
	size_t data = max_t(size_t, cap->max_send_sge * sizeof(struct ib_sge),
			    cap->max_inline_data);

	spin_lock_init(&sq->lock);
	sq->stride = ALIGN(sizeof(struct sim_swqe) + data, sizeof(u64));
	sq->size = cap->max_send_wr;
	if (!sq->size)
		return 0;
	sq->ring = kvcalloc(sq->size, sq->stride, GFP_KERNEL);
	return sq->ring ? 0 : -ENOMEM;
}

/**
 * sim_sq_free() - undo sim_sq_init()
 * @sq: the queue
 */
void sim_sq_free(struct sim_sq *sq)
{
	kvfree(sq->ring);
}

/**
 * sim_sq_first() - get the oldest send
 * @sq: the queue
 *
 * Return: the send, which is valid until sim_sq_retire(), or NULL.
 */
struct sim_swqe *sim_sq_first(struct sim_sq *sq)
{
	struct sim_swqe *wqe = NULL;
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	if (sq->count)
		wqe = sim_sq_slot(sq, sq->head);
	spin_unlock_irqrestore(&sq->lock, flags);
	return wqe;
}

/**
 * sim_sq_retire() - free the slot of the oldest send
 * @sq: the queue
 */
void sim_sq_retire(struct sim_sq *sq)
{
	unsigned long flags;

	spin_lock_irqsave(&sq->lock, flags);
	sq->head = (sq->head + 1) % sq->size;
	sq->count--;
	spin_unlock_irqrestore(&sq->lock, flags);
}

static bool sim_opcode_fits(const struct sim_qp *qp, enum ib_wr_opcode opcode)
{
	enum ib_qp_type type = qp->ibqp.qp_type;

	switch (opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return true;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return type == IB_QPT_RC || type == IB_QPT_UC;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return type == IB_QPT_RC;
	case IB_WR_LOCAL_INV:
	case IB_WR_REG_MR:
		return type == IB_QPT_RC &&
		       qp->ibqp.device->attrs.max_fast_reg_page_list_len;
	default:
		return false;
	}
}

/* Set the fields that depend on the opcode. */
static void sim_build_ex(const struct sim_qp *qp, struct sim_swqe *wqe,
			 const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = atomic_wr(wr)->remote_addr;
		wqe->rkey = atomic_wr(wr)->rkey;
		wqe->compare_add = atomic_wr(wr)->compare_add;
		wqe->swap = atomic_wr(wr)->swap;
		break;
	case IB_WR_REG_MR:
		wqe->reg.mr = reg_wr(wr)->mr;
		wqe->reg.key = reg_wr(wr)->key;
		wqe->reg.access = reg_wr(wr)->access;
		break;
	default:
		if (!sim_is_datagram(qp))
			break;
		wqe->ud.path = to_sim_ah(ud_wr(wr)->ah)->path;
		wqe->ud.qpn = ud_wr(wr)->remote_qpn;
		wqe->ud.qkey = ud_wr(wr)->remote_qkey;
	}
}

static int sim_build_data(const struct sim_qp *qp, struct sim_swqe *wqe,
			  const struct ib_send_wr *wr)
{
	void *data = wqe->sge;
	int i;

	wqe->num_sge = wr->num_sge;
	wqe->length = 0;
	for (i = 0; i < wr->num_sge; i++)
		wqe->length += wr->sg_list[i].length;
	if (!(wr->send_flags & IB_SEND_INLINE)) {
		memcpy(data, wr->sg_list, wr->num_sge * sizeof(*wqe->sge));
		return 0;
	}
	if (wqe->length > qp->cap.max_inline_data)
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(data, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		data += wr->sg_list[i].length;
	}
	return 0;
}

static int sim_post_one(struct sim_qp *qp, const struct ib_send_wr *wr)
{
	struct sim_sq *sq = &qp->sq;
	struct sim_swqe *wqe;
	int ret;

	if (!sim_opcode_fits(qp, wr->opcode) ||
	    wr->num_sge < 0 || wr->num_sge > qp->cap.max_send_sge)
		return -EINVAL;
	if (sq->count == sq->size)
		return -ENOMEM;
	wqe = sim_sq_slot(sq, sq->head + sq->count);
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	wqe->ex.imm = wr->ex.imm_data;
	sim_build_ex(qp, wqe, wr);
	ret = sim_build_data(qp, wqe, wr);
	if (!ret)
		sq->count++;
	return ret;
}

static int sim_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad_wr)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	enum ib_qp_state state = READ_ONCE(qp->state);
	unsigned long flags;
	int ret = 0;

	if (state < IB_QPS_RTS) {
		*bad_wr = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->sq.lock, flags);
	for (; wr; wr = wr->next) {
		ret = sim_post_one(qp, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	sim_engine_kick(qp);
	return ret;
}

static int sim_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	unsigned long flags;
	int ret = 0;

	if (qp->srq || READ_ONCE(qp->state) == IB_QPS_RESET) {
		*bad_wr = wr;
		return -EINVAL;
	}
	spin_lock_irqsave(&qp->rq.lock, flags);
	for (; wr; wr = wr->next) {
		ret = sim_rq_post(&qp->rq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		sim_engine_kick(qp);
	return ret;
}

const struct ib_device_ops sim_post_ops = {
	.post_recv = sim_post_recv,
	.post_send = sim_post_send,
};
