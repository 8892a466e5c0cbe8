// SPDX-License-Identifier: GPL-2.0
/*
 * The engine executes the work requests of a queue pair one after the other.
 *
 * It runs in any context, and takes references to all that it uses.  Only one
 * context runs the engine of a queue pair at a time; if another one arrives, it
 * makes the first look once more.
 */
#include <linux/delay.h>

#include "rdmasim.h"

#define SIM_MAX_MESSAGE	BIT(30)

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

/* Returns true if the queue pair was stopped meanwhile. */
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
 * @wc: the completion, without the fields that identify the receive
 * @solicited: whether the sender asked for a solicited event
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

/**
 * sim_receive_pd() - find the domain of the keys of receives
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

	/* A program that sees the completion finds room and the state. */
	sim_sq_retire(&qp->sq);
	if (status && status != IB_WC_WR_FLUSH_ERR)
		sim_qp_fail(qp);
	if (signaled)
		sim_cq_add(qp->ibqp.send_cq, &wc, false);
}

/* Decode ib_qp_attr.min_rnr_timer, in microseconds. */
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
 * The oldest send could not be executed.  Returns the status if the retries are
 * used up, or @why if the send is tried again.
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
	/* Without a timeout, the send is not tried again. */
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

/* The queue pair takes no more receives from the shared queue. */
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
	/* The RDMA core would wait for ever as it drains queue pair 1. */
	if (READ_ONCE(sim_options.never_flushes) &&
	    qp->ibqp.qp_type != IB_QPT_GSI)
		return;
	sim_flush_sends(qp);
	/* If a receive is claimed, its end kicks the engine, which flushes. */
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
 * sim_engine_kick() - let the engine look for work
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
 * sim_engine_stop() - wait until the engine has stopped
 * @qp: the queue pair, in a state in which no work begins
 */
void sim_engine_stop(struct sim_qp *qp)
{
	int i;

	/* A round that ran at first may have queued either work again. */
	for (i = 0; i < 2; i++) {
		cancel_delayed_work_sync(&qp->late);
		cancel_delayed_work_sync(&qp->retry);
		irq_work_sync(&qp->irq);
		tasklet_kill(&qp->tasklet);
		cancel_work_sync(&qp->work);
		while (atomic_read(&qp->kicks) || READ_ONCE(qp->busy))
			usleep_range(10, 50);
	}
}
