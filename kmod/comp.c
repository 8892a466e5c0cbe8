// SPDX-License-Identifier: GPL-2.0
/*
 * Completions: from the device back to the program.
 *
 * Called for each completion that a device queue is polled for, with the lock
 * of the rpost_cq held.
 */
#include "rpost.h"
#include "trace.h"

static_assert(RPOST_WC_LOC_PROT_ERR == (int)IB_WC_LOC_PROT_ERR);
static_assert(RPOST_WC_WR_FLUSH_ERR == (int)IB_WC_WR_FLUSH_ERR);
static_assert(RPOST_WC_RNR_RETRY_EXC_ERR == (int)IB_WC_RNR_RETRY_EXC_ERR);
static_assert(RPOST_WC_GENERAL_ERR == (int)IB_WC_GENERAL_ERR);

static u32 rpost_tell(struct rpost_cq *cq, const struct rpost_wc *wc)
{
	trace_rpost_complete(wc->qp_num, wc->wr_id, wc->opcode, wc->status,
			     wc->byte_len);
	return rpost_cq_push(cq, wc);
}

/* The program gets a completion, and its slot waits until it is consumed. */
static void rpost_complete(struct rpost_cq *cq, struct rpost_wqe *wqe,
			   const struct rpost_wc *wc)
{
	wqe->pos = rpost_tell(cq, wc);
	wqe->waits = true;
}

/* Queues complete in order: older slots have completed silently. */
static void rpost_queue_retire(struct rpost_queue *q, struct rpost_wqe *wqe)
{
	u32 tail = q->tail;

	tail += (((u32)(wqe - q->wqes) - tail) & q->mask) + 1;
	/* Pairs with the acquire in rpost_queue_full(). */
	smp_store_release(&q->tail, tail);
}

/*
 * Devices differ in what they call a key that is not valid; verbs do not.  rxe
 * says LOC_QP_OP_ERR, and since 6.9 even flushes the very work request whose
 * error stops the queue pair, and those before it that are not acknowledged.
 * It has been flushed only if something else stopped the queue pair.
 */
static u32 rpost_wc_status(struct rpost_qp *qp, bool bad_key,
			   const struct ib_wc *wc)
{
	if (wc->status == IB_WC_SUCCESS)
		return RPOST_WC_SUCCESS;
	if (wc->status == IB_WC_WR_FLUSH_ERR &&
	    (!bad_key || rpost_qp_stopped(qp)))
		return RPOST_WC_WR_FLUSH_ERR;

	WRITE_ONCE(qp->failed, true);
	return bad_key ? RPOST_WC_LOC_PROT_ERR : wc->status;
}

/**
 * rpost_send_done() - a send, RDMA or atomic operation has completed
 * @ib_cq: the device's queue
 * @wc: its completion
 */
void rpost_send_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	struct rpost_wqe *wqe = container_of(wc->wr_cqe, struct rpost_wqe, cqe);
	struct rpost_qp *qp = wqe->qp;
	struct rpost_wc out = {
		.wr_id = wqe->wr_id,
		.status = rpost_wc_status(qp, wqe->bad_key, wc),
		.opcode = wqe->opcode,
		.vendor_err = wc->vendor_err,
		.byte_len = wc->byte_len,
		.qp_num = qp->qp_num,
	};

	if (wqe->ah)
		atomic_dec(&wqe->ah->pending);
	wqe->ah = NULL;
	if ((wqe->signaled || wc->status != IB_WC_SUCCESS) &&
	    !READ_ONCE(qp->discard))
		rpost_complete(qp->send_cq, wqe, &out);
	rpost_queue_retire(&qp->sq, wqe);
}

static u32 rpost_wc_flags(int ib_flags)
{
	u32 flags = 0;

	if (ib_flags & IB_WC_GRH)
		flags |= RPOST_WC_F_GRH;
	if (ib_flags & IB_WC_WITH_IMM)
		flags |= RPOST_WC_F_WITH_IMM;
	if (ib_flags & IB_WC_WITH_INVALIDATE)
		flags |= RPOST_WC_F_WITH_INV;
	return flags;
}

static void rpost_recv_fill(struct rpost_wc *out, const struct ib_wc *wc)
{
	if (wc->opcode == IB_WC_RECV_RDMA_WITH_IMM)
		out->opcode = RPOST_WC_RECV_RDMA_WITH_IMM;
	out->byte_len = wc->byte_len;
	out->src_qp = wc->src_qp;
	out->wc_flags = rpost_wc_flags(wc->wc_flags);
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		out->imm_data = wc->ex.invalidate_rkey;
	else
		out->imm_data = (__force u32)wc->ex.imm_data;
	out->pkey_index = wc->pkey_index;
	out->slid = wc->slid;
	out->sl = wc->sl;
	out->dlid_path_bits = wc->dlid_path_bits;
}

/**
 * rpost_recv_done() - a receive has completed
 * @ib_cq: the device's queue
 * @wc: its completion
 */
void rpost_recv_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	struct rpost_wqe *wqe = container_of(wc->wr_cqe, struct rpost_wqe, cqe);
	struct rpost_qp *qp = wqe->qp;
	struct rpost_wc out = {
		.wr_id = wqe->wr_id,
		.status = rpost_wc_status(qp, wqe->bad_key, wc),
		.opcode = RPOST_WC_RECV,
		.vendor_err = wc->vendor_err,
		.qp_num = qp->qp_num,
	};

	if (wc->status == IB_WC_SUCCESS)
		rpost_recv_fill(&out, wc);
	if (!READ_ONCE(qp->discard))
		rpost_complete(qp->recv_cq, wqe, &out);
	rpost_queue_retire(&qp->rq, wqe);
}

/**
 * rpost_srq_done() - a receive of a shared receive queue has completed
 * @ib_cq: the device's queue
 * @wc: its completion
 */
void rpost_srq_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	struct rpost_srq_wqe *wqe = container_of(wc->wr_cqe,
						 struct rpost_srq_wqe, cqe);
	struct rpost_srq *srq = wqe->srq;
	struct rpost_qp *qp = rpost_srq_find_qp(srq, wc->qp);
	struct rpost_wc out = {
		.wr_id = wqe->wr_id,
		.opcode = RPOST_WC_RECV,
		.vendor_err = wc->vendor_err,
	};
	bool bad_key = wqe->bad_key;

	spin_lock(&srq->lock);
	rpost_srq_slot_free(srq, wqe);
	spin_unlock(&srq->lock);

	if (WARN_ON_ONCE(!qp) || READ_ONCE(qp->discard))
		return;
	out.status = rpost_wc_status(qp, bad_key, wc);
	out.qp_num = qp->qp_num;
	if (wc->status == IB_WC_SUCCESS)
		rpost_recv_fill(&out, wc);
	rpost_tell(qp->recv_cq, &out);
}
