// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: does the work requests of a queue pair, one after the other.
 *
 * It runs in any context, and takes references on what it uses.  Of each queue pair
 * only one runs at a time; who comes second makes the first look once more.
 */
#include <linux/delay.h>

#include "rdmasim.h"

#define SIM_MAX_MESSAGE	BIT(30)

static DEFINE_SPINLOCK(sim_atomic_lock);

/* ------------------------------------------------- receiving */

/**
 * sim_can_receive() - is the queue pair in a state to receive?
 * @qp: the queue pair
 *
 * Return: true if so.
 */
bool sim_can_receive(const struct sim_qp *qp)
{
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RTR:
	case IB_QPS_RTS:
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		return true;
	default:
		return false;
	}
}

static bool sim_receive_claim(struct sim_qp *qp, bool flush)
{
	unsigned long flags;
	bool claimed;

	spin_lock_irqsave(&qp->lock, flags);
	claimed = !qp->busy && (flush ? qp->state == IB_QPS_ERR :
					sim_can_receive(qp));
	if (claimed)
		qp->busy = true;
	spin_unlock_irqrestore(&qp->lock, flags);
	return claimed;
}

/* Tells whether the queue pair has been stopped meanwhile. */
static bool sim_receive_release(struct sim_qp *qp)
{
	unsigned long flags;
	bool stopped;

	spin_lock_irqsave(&qp->lock, flags);
	qp->busy = false;
	stopped = qp->state == IB_QPS_ERR;
	spin_unlock_irqrestore(&qp->lock, flags);
	return stopped;
}

/**
 * sim_receive_begin() - take a receive
 * @qp: the queue pair, with a reference
 *
 * Return: 0, and then @qp->rwqe and @qp->to are the caller's until
 * sim_receive_end(), or SIM_NO_ANSWER or SIM_NOT_READY.
 */
int sim_receive_begin(struct sim_qp *qp)
{
	bool taken;

	if (!sim_can_receive(qp))
		return SIM_NO_ANSWER;
	if (!sim_receive_claim(qp, false))
		return SIM_NOT_READY;
	taken = qp->srq ? sim_srq_take(qp->srq, qp->rwqe) :
			  sim_rq_take(&qp->rq, qp->rwqe);
	if (taken)
		return 0;
	if (sim_receive_release(qp))
		sim_engine_kick(qp);
	return SIM_NOT_READY;
}

/**
 * sim_receive_end() - complete a receive
 * @qp: the queue pair
 * @wc: the completion, but for what names the receive
 * @solicited: as the sender says
 */
void sim_receive_end(struct sim_qp *qp, const struct ib_wc *wc, bool solicited)
{
	struct ib_wc done = *wc;

	sim_sg_put(&qp->to);
	done.wr_id = qp->rwqe->wr_id;
	done.qp = &qp->ibqp;
	done.port_num = SIM_PORT;
	sim_cq_add(qp->ibqp.recv_cq, &done, solicited);
	if (sim_receive_release(qp))
		sim_engine_kick(qp);
}

/*
 * Stop the other side because of what it was asked for.  What is not acknowledged
 * is only ignored.
 */
static void sim_stop_peer(struct sim_qp *peer, enum ib_event_type event)
{
	if (peer->ibqp.qp_type == IB_QPT_UC)
		return;
	sim_qp_stop(peer);
	sim_qp_event(peer, event);
	sim_engine_kick(peer);
}

/* The other side has taken a receive; how it completes is @wc->status. */
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

/**
 * sim_receive_pd() - the domain in which the keys of receives are looked up
 * @qp: the queue pair
 *
 * Return: the domain.
 */
struct ib_pd *sim_receive_pd(const struct sim_qp *qp)
{
	if (qp->srq && !(READ_ONCE(sim_options.bad_rkeys) & SIM_BAD_RKEY_SRQ))
		return qp->srq->ibsrq.pd;
	return qp->ibqp.pd;
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

/* May the other side's memory be used?  If not, it stops. */
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
		/* A program may write to the same word. */
		if (cmpxchg64(target, old, new) == old)
			break;
	} while (true);
	spin_unlock_irqrestore(&sim_atomic_lock, flags);

	sim_sg_add_kernel(&result, &old, sizeof(old));
	sim_sg_copy(&qp->from, &result);
	return IB_WC_SUCCESS;
}

/* ------------------------------------------------- sending */

static bool sim_reads(const struct sim_swqe *wqe)
{
	return wqe->opcode == IB_WR_RDMA_READ ||
	       wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static int sim_gather(struct sim_qp *qp, struct sim_swqe *wqe)
{
	if (wqe->flags & IB_SEND_INLINE) {
		sim_sg_add_kernel(&qp->from, wqe->sge, wqe->length);
		return IB_WC_SUCCESS;
	}
	if (sim_sg_add_local(&qp->from, qp->ibqp.pd, wqe->sge, wqe->num_sge,
			     sim_reads(wqe) ? IB_ACCESS_LOCAL_WRITE : 0))
		return IB_WC_LOC_PROT_ERR;
	return sim_sg_length(&qp->from) > SIM_MAX_MESSAGE ? IB_WC_LOC_LEN_ERR :
							    IB_WC_SUCCESS;
}

/* The other end of a connection, if it would answer. */
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

/* As long as a queue pair cannot send, its owner may not know of the connection. */
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

static int sim_connected(struct sim_qp *qp, const struct sim_swqe *wqe)
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

static int sim_execute(struct sim_qp *qp, struct sim_swqe *wqe)
{
	int ret;

	if (wqe->opcode == IB_WR_REG_MR)
		return sim_mr_register(qp->ibqp.pd, wqe->reg.mr, wqe->reg.key,
				       wqe->reg.access) ?
			       IB_WC_MW_BIND_ERR : IB_WC_SUCCESS;
	if (wqe->opcode == IB_WR_LOCAL_INV)
		return sim_mr_invalidate(qp->ibqp.pd, wqe->ex.rkey) ?
			       IB_WC_LOC_QP_OP_ERR : IB_WC_SUCCESS;
	if (sim_reads(wqe) && !qp->attr.max_rd_atomic)
		return IB_WC_LOC_QP_OP_ERR;
	ret = sim_gather(qp, wqe);
	if (!ret)
		ret = sim_is_datagram(qp) ? sim_datagram(qp, wqe) :
					    sim_connected(qp, wqe);
	sim_sg_put(&qp->from);
	sim_sg_put(&qp->remote);
	return ret;
}

static enum ib_wc_opcode sim_wc_opcode(enum ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

static void sim_send_end(struct sim_qp *qp, const struct sim_swqe *wqe,
			 enum ib_wc_status status)
{
	bool signaled = qp->signal_all || (wqe->flags & IB_SEND_SIGNALED) || status;
	struct ib_wc wc = {
		.wr_id = wqe->wr_id,
		.status = status,
		.opcode = sim_wc_opcode(wqe->opcode),
		.byte_len = wqe->length,
		.qp = &qp->ibqp,
		.port_num = SIM_PORT,
	};

	/* Who sees the completion must find room, and the state. */
	sim_sq_retire(&qp->sq);
	if (status && status != IB_WC_WR_FLUSH_ERR)
		sim_qp_fail(qp);
	if (signaled)
		sim_cq_add(qp->ibqp.send_cq, &wc, false);
}

/* As encoded for ib_qp_attr.min_rnr_timer. */
static unsigned int sim_rnr_usecs(unsigned int timer)
{
	if (timer == 1)
		return 10;
	if (!timer)
		timer = 32;
	return (timer % 2 ? 15 : 10) << (timer / 2);
}

static unsigned long sim_ack_jiffies(const struct sim_qp *qp)
{
	return nsecs_to_jiffies(4096ULL << qp->attr.timeout) + 1;
}

/*
 * The oldest send has not been done.  Returns the status if that was once too
 * often, and @why if it is to be tried again.
 */
static int sim_try_later(struct sim_qp *qp, int why)
{
	unsigned long delay;

	if (why == SIM_NO_ANSWER) {
		if (qp->tries++ >= qp->attr.retry_cnt && qp->attr.timeout)
			return IB_WC_RETRY_EXC_ERR;
		delay = sim_ack_jiffies(qp);
	} else {
		if (qp->attr.rnr_retry != 7 &&
		    qp->rnr_tries++ >= qp->attr.rnr_retry)
			return IB_WC_RNR_RETRY_EXC_ERR;
		delay = usecs_to_jiffies(sim_rnr_usecs(qp->rnr_timer));
	}
	qp->waiting = true;
	/* Without a time-out nobody looks again. */
	if (why != SIM_NO_ANSWER || qp->attr.timeout)
		queue_delayed_work(sim_wq, &qp->retry, delay);
	return why;
}

static void sim_send_all(struct sim_qp *qp)
{
	struct sim_swqe *wqe;
	int ret;

	while (READ_ONCE(qp->state) == IB_QPS_RTS && !READ_ONCE(qp->waiting)) {
		wqe = sim_sq_first(&qp->sq);
		if (!wqe)
			return;
		ret = sim_execute(qp, wqe);
		if (ret < 0)
			ret = sim_try_later(qp, ret);
		if (ret < 0)
			return;
		qp->tries = 0;
		qp->rnr_tries = 0;
		sim_send_end(qp, wqe, ret);
	}
}

/* ------------------------------------------------- stopping */

static void sim_flush_sends(struct sim_qp *qp)
{
	struct sim_swqe *wqe;

	for (;;) {
		wqe = sim_sq_first(&qp->sq);
		if (!wqe)
			return;
		sim_send_end(qp, wqe, IB_WC_WR_FLUSH_ERR);
	}
}

static void sim_flush_receives(struct sim_qp *qp)
{
	struct ib_wc wc = {
		.status = IB_WC_WR_FLUSH_ERR,
		.opcode = IB_WC_RECV,
		.qp = &qp->ibqp,
		.port_num = SIM_PORT,
	};

	while (sim_rq_take(&qp->rq, qp->rwqe)) {
		wc.wr_id = qp->rwqe->wr_id;
		sim_cq_add(qp->ibqp.recv_cq, &wc, false);
	}
}

/* No receive will be taken from the shared queue any more. */
static void sim_tell_last_wqe(struct sim_qp *qp)
{
	unsigned long flags;
	bool tell;

	spin_lock_irqsave(&qp->lock, flags);
	tell = qp->srq && !qp->last_wqe;
	qp->last_wqe = true;
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!tell || READ_ONCE(sim_options.no_last_wqe))
		return;
	if (sim_options.last_wqe_late)
		queue_delayed_work(sim_wq, &qp->late,
				   msecs_to_jiffies(sim_options.last_wqe_late));
	else
		sim_qp_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

static void sim_flush(struct sim_qp *qp)
{
	/* The RDMA core drains queue pair 1 and waits for ever. */
	if (READ_ONCE(sim_options.never_flushes) &&
	    qp->ibqp.qp_type != IB_QPT_GSI)
		return;
	sim_flush_sends(qp);
	/* Else who has claimed it comes back here. */
	if (!sim_receive_claim(qp, true))
		return;
	sim_flush_receives(qp);
	sim_receive_release(qp);
	sim_tell_last_wqe(qp);
}

static void sim_drained(struct sim_qp *qp)
{
	unsigned long flags;
	bool tell;

	spin_lock_irqsave(&qp->lock, flags);
	tell = !qp->sqd_told && qp->attr.en_sqd_async_notify;
	qp->sqd_told = true;
	spin_unlock_irqrestore(&qp->lock, flags);
	if (tell)
		sim_qp_event(qp, IB_EVENT_SQ_DRAINED);
}

/* ------------------------------------------------- the engine itself */

static void sim_engine_round(struct sim_qp *qp)
{
	sim_send_all(qp);
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_SQD:
		sim_drained(qp);
		break;
	case IB_QPS_SQE:
		sim_flush_sends(qp);
		break;
	case IB_QPS_ERR:
		sim_flush(qp);
		break;
	default:
		break;
	}
}

static void sim_engine_run(struct sim_qp *qp)
{
	int seen;

	if (atomic_inc_return(&qp->kicks) > 1)
		return;
	do {
		seen = atomic_read(&qp->kicks);
		sim_engine_round(qp);
	} while (!atomic_sub_and_test(seen, &qp->kicks));
}

static void sim_engine_irq(struct irq_work *irq)
{
	sim_engine_run(container_of(irq, struct sim_qp, irq));
}

static void sim_engine_softirq(struct tasklet_struct *tasklet)
{
	sim_engine_run(container_of(tasklet, struct sim_qp, tasklet));
}

static void sim_engine_work(struct work_struct *work)
{
	sim_engine_run(container_of(work, struct sim_qp, work));
}

static void sim_engine_retry(struct work_struct *work)
{
	struct sim_qp *qp = container_of(work, struct sim_qp, retry.work);

	WRITE_ONCE(qp->waiting, false);
	sim_engine_kick(qp);
}

static void sim_engine_late(struct work_struct *work)
{
	sim_qp_event(container_of(work, struct sim_qp, late.work),
		     IB_EVENT_QP_LAST_WQE_REACHED);
}

/**
 * sim_engine_kick() - there may be something to do
 * @qp: the queue pair; the caller keeps it from being destroyed
 */
void sim_engine_kick(struct sim_qp *qp)
{
	switch (qp->dev->engine) {
	case SIM_INLINE:
		sim_engine_run(qp);
		break;
	case SIM_SOFTIRQ:
		tasklet_schedule(&qp->tasklet);
		break;
	case SIM_HARDIRQ:
		irq_work_queue(&qp->irq);
		break;
	default:
		queue_work(sim_wq, &qp->work);
	}
}

/**
 * sim_engine_init() - prepare a queue pair's engine
 * @qp: the queue pair
 */
void sim_engine_init(struct sim_qp *qp)
{
	init_irq_work(&qp->irq, sim_engine_irq);
	tasklet_setup(&qp->tasklet, sim_engine_softirq);
	INIT_WORK(&qp->work, sim_engine_work);
	INIT_DELAYED_WORK(&qp->retry, sim_engine_retry);
	INIT_DELAYED_WORK(&qp->late, sim_engine_late);
}

/**
 * sim_engine_stop() - wait until nothing goes on any more
 * @qp: the queue pair, in a state in which nothing begins
 */
void sim_engine_stop(struct sim_qp *qp)
{
	cancel_delayed_work_sync(&qp->late);
	cancel_delayed_work_sync(&qp->retry);
	irq_work_sync(&qp->irq);
	tasklet_kill(&qp->tasklet);
	cancel_work_sync(&qp->work);
	while (atomic_read(&qp->kicks) || READ_ONCE(qp->busy))
		usleep_range(10, 50);
}
