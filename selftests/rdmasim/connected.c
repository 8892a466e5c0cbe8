// SPDX-License-Identifier: GPL-2.0
/*
 * Executes work requests of connected queue pairs on the peer, and decides
 * whether the peer acknowledges them.
 */
#include "rdmasim.h"

static DEFINE_SPINLOCK(sim_atomic_lock);

/*
 * Stop the peer because of an invalid request.  A queue pair of type UC
 * acknowledges nothing, and only ignores the request.
 */
static void sim_stop_peer(struct sim_qp *peer, enum ib_event_type event)
{
	if (peer->ibqp.qp_type == IB_QPT_UC)
		return;
	sim_qp_stop(peer);
	sim_qp_event(peer, event);
	sim_engine_kick(peer);
}

/* Complete the receive that the peer has taken, with @wc->status. */
static int sim_end_message(struct sim_qp *peer, const struct sim_swqe *wqe,
			   const struct ib_wc *wc)
{
	bool solicited = wqe->flags & IB_SEND_SOLICITED;

	if (wc->status)
		sim_qp_stop(peer);
	sim_receive_end(peer, wc, solicited);
	switch (wc->status) {
	case IB_WC_SUCCESS:
		return IB_WC_SUCCESS;
	case IB_WC_LOC_PROT_ERR:
		sim_qp_event(peer, IB_EVENT_QP_FATAL);
		return IB_WC_REM_OP_ERR;
	default:
		sim_qp_event(peer, IB_EVENT_QP_REQ_ERR);
		return IB_WC_REM_INV_REQ_ERR;
	}
}

static int sim_send(struct sim_qp *qp, struct sim_qp *peer,
		    const struct sim_swqe *wqe)
{
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.byte_len = wqe->length,
		.src_qp = qp->ibqp.qp_num,
	};
	int ret = sim_receive_begin(peer);

	if (ret)
		return ret;
	if (wqe->opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = wqe->ex.imm;
	}
	if (sim_sg_add_local(&peer->to, sim_receive_pd(peer), peer->rwqe->sge,
			     peer->rwqe->num_sge, IB_ACCESS_LOCAL_WRITE)) {
		wc.status = IB_WC_LOC_PROT_ERR;
	} else if (sim_sg_length(&peer->to) < wqe->length) {
		wc.status = IB_WC_LOC_LEN_ERR;
	} else {
		sim_sg_copy(&peer->to, &qp->from);
		if (wqe->opcode == IB_WR_SEND_WITH_INV) {
			wc.wc_flags = IB_WC_WITH_INVALIDATE;
			wc.ex.invalidate_rkey = wqe->ex.rkey;
			if (sim_mr_invalidate(peer->ibqp.pd, wqe->ex.rkey))
				wc.status = IB_WC_REM_ACCESS_ERR;
		}
	}
	return sim_end_message(peer, wqe, &wc);
}

/* Check the access to the peer's memory.  If it is invalid, the peer stops. */
static int sim_check_remote(struct sim_qp *qp, struct sim_qp *peer,
			    const struct sim_swqe *wqe, u64 length, int access)
{
	if (!(peer->attr.qp_access_flags & access)) {
		sim_stop_peer(peer, IB_EVENT_QP_REQ_ERR);
		return IB_WC_REM_INV_REQ_ERR;
	}
	if (sim_sg_add_remote(&qp->remote, peer->ibqp.pd, wqe->rkey,
			      wqe->remote_addr, length, access)) {
		sim_stop_peer(peer, IB_EVENT_QP_ACCESS_ERR);
		return IB_WC_REM_ACCESS_ERR;
	}
	return IB_WC_SUCCESS;
}

static int sim_write(struct sim_qp *qp, struct sim_qp *peer,
		     const struct sim_swqe *wqe)
{
	struct ib_wc wc = {
		.opcode = IB_WC_RECV_RDMA_WITH_IMM,
		.byte_len = wqe->length,
		.src_qp = qp->ibqp.qp_num,
		.wc_flags = IB_WC_WITH_IMM,
		.ex.imm_data = wqe->ex.imm,
	};
	int ret = sim_check_remote(qp, peer, wqe, wqe->length,
				   IB_ACCESS_REMOTE_WRITE);

	if (ret)
		return ret;
	if (wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		ret = sim_receive_begin(peer);
		if (ret)
			return ret;
	}
	sim_sg_copy(&qp->remote, &qp->from);
	if (wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		return sim_end_message(peer, wqe, &wc);
	return IB_WC_SUCCESS;
}

static int sim_read(struct sim_qp *qp, struct sim_qp *peer,
		    const struct sim_swqe *wqe)
{
	int ret = sim_check_remote(qp, peer, wqe, wqe->length,
				   IB_ACCESS_REMOTE_READ);

	if (!ret)
		sim_sg_copy(&qp->from, &qp->remote);
	return ret;
}

static int sim_atomic(struct sim_qp *qp, struct sim_qp *peer,
		      const struct sim_swqe *wqe)
{
	struct sim_sg result = {};
	unsigned long flags;
	u64 *target, old, room;
	int ret;

	if (wqe->remote_addr % sizeof(u64)) {
		sim_stop_peer(peer, IB_EVENT_QP_REQ_ERR);
		return IB_WC_REM_INV_REQ_ERR;
	}
	ret = sim_check_remote(qp, peer, wqe, sizeof(u64),
			       IB_ACCESS_REMOTE_ATOMIC);
	if (ret)
		return ret;
	target = sim_seg_pointer(&qp->remote.seg[0], 0, &room);
	spin_lock_irqsave(&sim_atomic_lock, flags);
	do {
		u64 new;

		old = READ_ONCE(*target);
		new = wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD ?
			      old + wqe->compare_add :
		      old == wqe->compare_add ? wqe->swap : old;
		/* A program may write to the same word, so repeat. */
		if (cmpxchg64(target, old, new) == old)
			break;
	} while (true);
	spin_unlock_irqrestore(&sim_atomic_lock, flags);

	sim_sg_add_kernel(&result, &old, sizeof(old));
	sim_sg_copy(&qp->from, &result);
	return IB_WC_SUCCESS;
}

/* Returns the peer, with a reference, if it would answer. */
static struct sim_qp *sim_peer(const struct sim_qp *qp)
{
	struct sim_qp *peer;

	if (!sim_port_up(qp->dev))
		return NULL;
	peer = sim_qp_get(qp->attr.dest_qp_num);
	if (!peer)
		return NULL;
	if (peer->ibqp.qp_type == qp->ibqp.qp_type && sim_can_receive(peer) &&
	    peer->attr.dest_qp_num == qp->ibqp.qp_num && sim_port_up(peer->dev))
		return peer;
	sim_qp_put(peer);
	return NULL;
}

/* While a queue pair cannot send, its owner may not know the connection. */
static void sim_tell_established(struct sim_qp *peer)
{
	unsigned long flags;
	bool tell;

	spin_lock_irqsave(&peer->lock, flags);
	tell = peer->state == IB_QPS_RTR && !peer->comm_est;
	peer->comm_est |= tell;
	spin_unlock_irqrestore(&peer->lock, flags);
	if (tell)
		sim_qp_event(peer, IB_EVENT_COMM_EST);
}

/**
 * sim_connected() - execute a work request of a connected queue pair
 * @qp: the queue pair
 * @wqe: the work request; its data is in @qp->from
 *
 * Return: the status, or SIM_NO_ANSWER or SIM_NOT_READY.
 */
int sim_connected(struct sim_qp *qp, const struct sim_swqe *wqe)
{
	bool unreliable = qp->ibqp.qp_type == IB_QPT_UC;
	struct sim_qp *peer = sim_peer(qp);
	int ret;

	if (!peer)
		return unreliable ? IB_WC_SUCCESS : SIM_NO_ANSWER;
	sim_tell_established(peer);
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		ret = sim_write(qp, peer, wqe);
		break;
	case IB_WR_RDMA_READ:
		ret = sim_read(qp, peer, wqe);
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		ret = wqe->length == sizeof(u64) ? sim_atomic(qp, peer, wqe) :
						   IB_WC_LOC_LEN_ERR;
		break;
	default:
		ret = sim_send(qp, peer, wqe);
	}
	if (ret == SIM_NOT_READY)
		qp->rnr_timer = peer->attr.min_rnr_timer;
	sim_qp_put(peer);
	return unreliable ? IB_WC_SUCCESS : ret;
}
