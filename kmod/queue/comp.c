// SPDX-License-Identifier: GPL-2.0
/*
 * Completions: from the device to the program's ring.
 *
 * rpost_hwcq_poll_locked() calls rpost_*_done(), or rpost_drain_wr_done(), for each
 * completion that it polls, in task context, with the lock of the rpost_cq held.
 * Drivers set the fields that verbs define for a completion; the others may hold old
 * data of the kernel, and must not reach the program.
 */
#include "base/inject.h"
#include "core/stats.h"
#include "core/trace.h"
#include "queue/srq.h"

static_assert(RPOST_WC_LOC_PROT_ERR == (int)IB_WC_LOC_PROT_ERR);
static_assert(RPOST_WC_LOC_QP_OP_ERR == (int)IB_WC_LOC_QP_OP_ERR);
static_assert(RPOST_WC_WR_FLUSH_ERR == (int)IB_WC_WR_FLUSH_ERR);
static_assert(RPOST_WC_RNR_RETRY_EXC_ERR == (int)IB_WC_RNR_RETRY_EXC_ERR);
static_assert(RPOST_WC_GENERAL_ERR == (int)IB_WC_GENERAL_ERR);

/* Opcodes from RPOST_WC_COMP_SWAP on are of atomic operations. */
static_assert(RPOST_WRS_SEND == (int)RPOST_WC_SEND);
static_assert(RPOST_WRS_RDMA_WRITE == (int)RPOST_WC_RDMA_WRITE);
static_assert(RPOST_WRS_RDMA_READ == (int)RPOST_WC_RDMA_READ);
static_assert(RPOST_WRS_ATOMIC == (int)RPOST_WC_COMP_SWAP);

/* Fields that every completion has, as in struct rpost_wc. */
struct rpost_told {
	u64 wr_id;
	u32 status;
	u32 opcode;
	u32 byte_len;
	u32 vendor_err;
	u32 qp_num;
};

/*
 * Write a completion to the program's ring.  Return its entry, or NULL if the
 * ring is full.  @pos is the number of the entry, plus 1; of the last one if the ring is
 * full.
 */
static __always_inline struct rpost_wc *
rpost_tell(struct rpost_cq *cq, struct rpost_told told, u32 *pos)
{
	struct rpost_cring *ring = rpost_cq_ring(cq);
	struct rpost_wc *entry = NULL;

	trace_rpost_complete(&cq->obj, told.qp_num, told.wr_id, told.opcode,
			     told.status, told.byte_len);
	if (!rpost_inject(RPOST_INJECT_RING))
		entry = rpost_ring_next(ring);
	*pos = ring->tail;
	this_cpu_inc(cq->obj.file->stats->completions);
	if (unlikely(told.status != RPOST_WC_SUCCESS))
		rpost_stat_error(cq->obj.file, told.status);
	if (!entry) {
		this_cpu_inc(cq->obj.file->stats->overruns);
		ring->overrun = true;
		return NULL;
	}
	entry->wr_id = told.wr_id;
	entry->status = told.status;
	entry->opcode = told.opcode;
	entry->vendor_err = told.vendor_err;
	entry->byte_len = told.byte_len;
	entry->imm_data = 0;
	entry->qp_num = told.qp_num;
	entry->src_qp = 0;
	entry->wc_flags = 0;
	entry->pkey_index = 0;
	entry->slid = 0;
	entry->sl = 0;
	entry->dlid_path_bits = 0;
	entry->vlan = 0;
	return entry;
}

/* Queues complete in order: this retires the unsignaled slots before, too. */
static void rpost_queue_retire(struct rpost_cq *cq, struct rpost_queue *q,
			       struct rpost_wqe *wqe)
{
	u32 tail = q->tail;

	tail += (((u32)(wqe - q->wqes) - tail) & q->mask) + 1;
	if (unlikely(READ_ONCE(q->uses))) {
		cq->budget -= tail - q->tail;
		rpost_queue_drop_uses(q, q->tail, tail);
	}
	/* Pairs with the acquire in rpost_queue_reclaim(). */
	smp_store_release(&q->tail, tail);
}

/*
 * Verbs report an invalid key as LOC_PROT_ERR, but devices differ.  rxe reports
 * LOC_QP_OP_ERR; since 6.9 it even flushes the work request with the bad key,
 * and those before it that are not acknowledged.  So a flush with a bad key is
 * reported as a flush only if something else has stopped the queue pair.
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

static noinline void rpost_qp_count(struct rpost_qp *qp, u32 op, bool success)
{
	if (success)
		qp->counts[op].succeeded++;
	else
		qp->counts[op].failed++;
}

#define RPOST_WC_WITH_BYTES						\
	(BIT(RPOST_WC_RDMA_READ) | BIT(RPOST_WC_COMP_SWAP) |		\
	 BIT(RPOST_WC_FETCH_ADD))

/* Complete a send, RDMA or atomic operation. */
void rpost_send_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	struct rpost_wqe *wqe = container_of(wc->wr_cqe, struct rpost_wqe, cqe);
	struct rpost_qp *qp = wqe->qp;
	bool success = wc->status == IB_WC_SUCCESS;
	struct rpost_told told = {
		.wr_id = wqe->wr_id,
		.status = rpost_wc_status(qp, wqe->kind.bad_key, wc),
		.opcode = wqe->kind.opcode,
		.vendor_err = success ? 0 : wc->vendor_err,
		.byte_len = success &&
			    BIT(wqe->kind.opcode) & RPOST_WC_WITH_BYTES ?
			    wc->byte_len : 0,
		.qp_num = qp->qp_num,
	};

	if (unlikely(qp->ahs))
		rpost_qp_release_ah(qp, wqe);
	if (unlikely(READ_ONCE(qp->counting)) && !READ_ONCE(qp->discard))
		rpost_qp_count(qp, min_t(u32, wqe->kind.opcode, RPOST_WRS_ATOMIC), success);
	/* The slot stays in use until the program consumes the completion. */
	if ((wqe->kind.signaled || !success) && !READ_ONCE(qp->discard)) {
		rpost_tell(qp->send_cq, told, &wqe->pos);
		wqe->kind.waits = true;
	}
	rpost_queue_retire(qp->send_cq, &qp->sq, wqe);
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

static __always_inline void rpost_tell_recv(struct rpost_qp *qp,
					    u64 wr_id, u32 status,
					    const struct ib_wc *wc, u32 *pos)
{
	bool success = wc->status == IB_WC_SUCCESS;
	struct rpost_told told = {
		.wr_id = wr_id,
		.status = status,
		.opcode = success && wc->opcode == IB_WC_RECV_RDMA_WITH_IMM ?
			  RPOST_WC_RECV_RDMA_WITH_IMM : RPOST_WC_RECV,
		.byte_len = success ? wc->byte_len : 0,
		.vendor_err = success ? 0 : wc->vendor_err,
		.qp_num = qp->qp_num,
	};
	struct rpost_wc *entry = rpost_tell(qp->recv_cq, told, pos);

	if (unlikely(READ_ONCE(qp->counting)))
		rpost_qp_count(qp, RPOST_WRS_RECV, success);
	if (success)
		rpost_stat_op(qp->obj.file, RPOST_STAT_RECV, wc->byte_len);
	if (!entry || !success)
		return;
	entry->wc_flags = rpost_wc_flags(wc->wc_flags);
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		entry->imm_data = wc->ex.invalidate_rkey;
	else if (wc->wc_flags & IB_WC_WITH_IMM)
		entry->imm_data = (__force u32)wc->ex.imm_data;
	if (wc->wc_flags & IB_WC_WITH_VLAN)
		entry->vlan = wc->vlan_id;
	if (qp->qp_type != RPOST_QPT_UD)
		return;
	entry->src_qp = wc->src_qp;
	entry->pkey_index = wc->pkey_index;
	entry->slid = wc->slid;
	entry->sl = wc->sl;
	entry->dlid_path_bits = wc->dlid_path_bits;
}

void rpost_recv_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	struct rpost_wqe *wqe = container_of(wc->wr_cqe, struct rpost_wqe, cqe);
	struct rpost_qp *qp = wqe->qp;
	u32 status = rpost_wc_status(qp, wqe->kind.bad_key, wc);

	if (!READ_ONCE(qp->discard)) {
		rpost_tell_recv(qp, wqe->wr_id, status, wc, &wqe->pos);
		wqe->kind.waits = true;
	}
	rpost_queue_retire(qp->recv_cq, &qp->rq, wqe);
}

void rpost_srq_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	struct rpost_srq_wqe *wqe = container_of(wc->wr_cqe,
						 struct rpost_srq_wqe, cqe);
	struct rpost_srq *srq = wqe->srq;
	struct rpost_qp *qp = rpost_srq_find_qp(srq, wc->qp);
	bool bad_key = wqe->bad_key;
	u64 wr_id = wqe->wr_id;
	u32 pos;

	spin_lock(&srq->lock);
	rpost_srq_slot_free(srq, wqe);
	spin_unlock(&srq->lock);

	if (WARN_ON_ONCE(!qp) || READ_ONCE(qp->discard))
		return;
	rpost_tell_recv(qp, wr_id, rpost_wc_status(qp, bad_key, wc), wc, &pos);
}
