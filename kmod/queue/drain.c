// SPDX-License-Identifier: GPL-2.0
/*
 * Stops queue pairs and gets their work requests back from the device, before
 * they are destroyed and when they are moved to RESET.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched/signal.h>

#include "base/inject.h"
#include "core/device.h"
#include "queue/srq.h"

#define RPOST_DRAIN_MAX_MS	60000U
#define RPOST_LAST_WQE_MS	20
#define RPOST_DROP_BATCH	64U

static unsigned int drain_ms = 10000;
module_param(drain_ms, uint, 0644);
MODULE_PARM_DESC(drain_ms,
		 "Milliseconds for a device to flush a queue pair that ends, up to 60000 (10000)");

static void rpost_drain_wr_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct rpost_drain_wr, cqe)->done);
}

/*
 * Poll only this queue pair's device queues: another queue of the same completion queue
 * could keep us busy for ever.
 */
static u32 rpost_qp_fetch(struct rpost_qp *qp)
{
	u32 n;

	cond_resched();
	n = rpost_hwcq_poll(qp->send_hwcq, RPOST_POLL_MOST);
	if (qp->recv_hwcq != qp->send_hwcq)
		n += rpost_hwcq_poll(qp->recv_hwcq, RPOST_POLL_MOST);
	return n;
}

static bool rpost_send_drained(struct rpost_qp *qp)
{
	if (rpost_inject(RPOST_INJECT_DRAIN))
		return false;
	if (qp->qp_type == RPOST_QPT_UD)
		return READ_ONCE(qp->sq.tail) == qp->sq.head;
	return completion_done(&qp->send_drain_wr.done);
}

static bool rpost_recv_drained(struct rpost_qp *qp)
{
	return !rpost_inject(RPOST_INJECT_DRAIN) &&
	       completion_done(&qp->recv_drain_wr.done);
}

/* A device queue is first in, first out: this polls all completions of ours. */
static void rpost_hwcq_fetch_rest(struct rpost_hwcq *hwcq)
{
	u32 n, left = hwcq->size;

	while (left) {
		cond_resched();
		n = rpost_hwcq_poll(hwcq, min_t(u32, left, RPOST_POLL_MOST));
		if (!n)
			break;
		left -= n;
	}
}

/* Poll for all completions of a queue pair that the device has added so far. */
void rpost_qp_fetch_rest(struct rpost_qp *qp)
{
	rpost_hwcq_fetch_rest(qp->send_hwcq);
	if (qp->recv_hwcq != qp->send_hwcq)
		rpost_hwcq_fetch_rest(qp->recv_hwcq);
}

/*
 * A faulty device may never flush, and destroying the queue pair ends its
 * completions, too.  So killed tasks do not wait, and once a queue pair has
 * missed its deadline (@end), no task waits for the device until a drain
 * succeeds.
 */
static bool rpost_qp_patient(struct rpost_qp *qp, unsigned long end)
{
	return !fatal_signal_pending(current) && time_before(jiffies, end) &&
	       !READ_ONCE(qp->obj.dev->stuck);
}

/* A drain has failed: has the device missed its deadline, as far as the task knows? */
static void rpost_qp_give_up(struct rpost_qp *qp, unsigned long end)
{
	if (time_after_eq(jiffies, end) && !fatal_signal_pending(current))
		WRITE_ONCE(qp->obj.dev->stuck, true);
}

/* Most devices flush within microseconds. */
static void rpost_qp_nap(void)
{
	usleep_range(10, 20);
}

static int rpost_qp_wait(struct rpost_qp *qp, unsigned long end,
			 bool (*drained)(struct rpost_qp *qp))
{
	while (!drained(qp)) {
		if (!rpost_qp_patient(qp, end)) {
			/* Poll again: this task may not have run for long. */
			usleep_range(500, 1000);
			rpost_qp_fetch_rest(qp);
			if (drained(qp))
				break;
			rpost_qp_give_up(qp, end);
			return fatal_signal_pending(current) ? -EINTR : -ETIMEDOUT;
		}
		if (!rpost_qp_fetch(qp))
			rpost_qp_nap();
	}
	return 0;
}

static void rpost_queue_close(struct rpost_queue *q, int error)
{
	spin_lock_bh(&q->lock);
	WRITE_ONCE(q->closed, error);
	spin_unlock_bh(&q->lock);
}

/* Requests that are unsignaled on the device may have completed unseen. */
static bool rpost_drain_wr_fits(struct rpost_qp *qp)
{
	return qp->sq.head - READ_ONCE(qp->sq.tail) < rpost_sq_entries(qp);
}

/*
 * Prepare a drain WR.  Return false if the device still has it, since an earlier
 * drain has given up: nothing was posted behind it.
 */
static bool rpost_drain_wr_begin(struct rpost_drain_wr *wr)
{
	if (wr->posted && !completion_done(&wr->done))
		return false;
	wr->cqe.done = rpost_drain_wr_done;
	wr->posted = false;
	init_completion(&wr->done);
	return true;
}

/* A driver's tasklet runs before this returns, as after other posts. */
static int rpost_drain_post_send(struct rpost_qp *qp)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &qp->send_drain_wr.cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int ret;

	local_bh_disable();
	ret = ib_post_send(qp->ib_qp, &wr.wr, NULL);
	local_bh_enable();
	qp->send_drain_wr.posted = !ret;
	return ret;
}

static int rpost_drain_post_recv(struct rpost_qp *qp)
{
	struct ib_recv_wr wr = { .wr_cqe = &qp->recv_drain_wr.cqe };
	int ret;

	if (!rpost_drain_wr_begin(&qp->recv_drain_wr))
		return 0;
	local_bh_disable();
	ret = ib_post_recv(qp->ib_qp, &wr, NULL);
	local_bh_enable();
	qp->recv_drain_wr.posted = !ret;
	return ret;
}

static int rpost_drain_sq(struct rpost_qp *qp, unsigned long end)
{
	int ret = 0;

	/* Some drivers report a completion before they free its entry. */
	while (qp->qp_type != RPOST_QPT_UD &&
	       rpost_drain_wr_begin(&qp->send_drain_wr)) {
		ret = rpost_qp_wait(qp, end, rpost_drain_wr_fits);
		ret = ret ? : rpost_drain_post_send(qp);
		if (ret != -ENOMEM || !rpost_qp_patient(qp, end))
			break;
		rpost_qp_nap();
	}
	if (ret == -ENOMEM)
		rpost_qp_give_up(qp, end);
	return ret ? : rpost_qp_wait(qp, end, rpost_send_drained);
}

/*
 * The receives that the queue pair has taken complete; the others stay in the
 * shared queue.  Not every device reports the last completion (rxe before 6.9
 * does not), but none takes long.
 */
static void rpost_drain_srq(struct rpost_qp *qp)
{
	unsigned long end = qp->stopped_at + msecs_to_jiffies(RPOST_LAST_WQE_MS);
	unsigned long now = jiffies;

	if (!qp->can_take)
		return;
	if (time_before(now, end) && !READ_ONCE(qp->obj.dev->stuck))
		wait_for_completion_timeout(&qp->last_wqe, end - now);
	rpost_srq_may_lose(qp->srq);
}

/* Close the queues with @error for posts, and flush the queue pair. */
static int rpost_qp_stop(struct rpost_qp *qp, int error)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int ret;

	rpost_queue_close(&qp->sq, error);
	rpost_queue_close(&qp->rq, error);
	WRITE_ONCE(qp->failed, true);
	if (qp->stopped)
		return 0;
	qp->can_take = qp->state >= RPOST_QPS_RTR;
	rpost_qp_lock_handler(qp);
	ret = ib_modify_qp(qp->ib_qp, &attr, IB_QP_STATE);
	rpost_qp_unlock_handler(qp);
	qp->stopped = !ret;
	qp->stopped_at = jiffies;
	return ret;
}

/*
 * The program gets no completions any more, nor events, if no other queue pair uses the
 * completion queues.
 */
void rpost_qp_discard(struct rpost_qp *qp)
{
	unsigned int users = qp->send_cq == qp->recv_cq ? 2 : 1;

	WRITE_ONCE(qp->discard, true);
	rpost_cq_mute(qp->send_cq, users);
	rpost_cq_mute(qp->recv_cq, users);
}

/* The queue pair may complete work requests from now on. */
void rpost_qp_unmute_cqs(struct rpost_qp *qp)
{
	rpost_cq_unmute(qp->send_cq);
	rpost_cq_unmute(qp->recv_cq);
}

/*
 * Stop one of many queue pairs that will be shut down.  The waits of rpost_drain_srq()
 * then overlap.
 */
void rpost_qp_stop_early(struct rpost_obj *obj)
{
	struct rpost_qp *qp = rpost_obj_as(qp, obj);

	if (!qp->srq)
		return;
	rpost_qp_lock(qp);
	if (qp->ib_qp && qp->state != RPOST_QPS_RESET)
		rpost_qp_stop(qp, -ENODEV);
	rpost_qp_unlock(qp);
}

/*
 * Get all work requests of a queue pair, which is locked, back from the device.  Posts
 * fail with error from now on.
 *
 * Like ib_drain_qp(), but it polls the device itself, and does not WARN().
 *
 * Return 0; or -ETIMEDOUT, -EINTR or the driver's errno: some may be missing.
 */
int rpost_qp_drain(struct rpost_qp *qp, int error)
{
	unsigned int ms = min(READ_ONCE(drain_ms), RPOST_DRAIN_MAX_MS);
	unsigned long end;
	int ret, err = 0;

	/* In RESET it has no work requests. */
	if (qp->state == RPOST_QPS_RESET) {
		rpost_queue_close(&qp->sq, error);
		rpost_queue_close(&qp->rq, error);
		return 0;
	}
	ret = rpost_qp_stop(qp, error);
	if (!ret) {
		end = jiffies + msecs_to_jiffies(ms);
		/* Post both drain WRs, then wait. */
		if (!qp->srq)
			err = rpost_drain_post_recv(qp);
		ret = rpost_drain_sq(qp, end);
		if (qp->srq)
			rpost_drain_srq(qp);
		else if (!err && ret != -ETIMEDOUT)
			err = rpost_qp_wait(qp, end, rpost_recv_drained);
		ret = ret ? : err;
	}
	/*
	 * At RESET and destroy mlx5, mlx4 and hns remove the queue pair's
	 * completions from the completion queue.  Slots whose completions have
	 * not been polled by then would be lost.
	 */
	if (qp->srq)
		rpost_hwcq_fetch_rest(qp->recv_hwcq);
	/* An idle UD queue pair with an SRQ drains without a completion. */
	if (!ret && (qp->qp_type != RPOST_QPT_UD || !qp->srq))
		WRITE_ONCE(qp->obj.dev->stuck, false);
	if (ret && ret != -EINTR)
		pr_warn_ratelimited("rdma_post: %s: queue pair %u cannot be drained: %d\n",
				    qp->obj.dev->ib_dev->name, qp->qp_num,
				    ret);
	return ret;
}

/*
 * The queue is closed.  None of its slots is on the device, unless that has kept the
 * queue pair.
 */
void rpost_queue_drop_all_uses(struct rpost_queue *q, struct rpost_cq *cq)
{
	u32 from, to;

	for (from = 0; q->uses && from <= q->mask; from = to) {
		to = min(from + RPOST_DROP_BATCH, q->mask + 1);
		/* If the device has kept the queue pair, it may still complete some. */
		spin_lock(&cq->lock);
		rpost_queue_drop_uses(q, from, to);
		spin_unlock(&cq->lock);
		cond_resched();
	}
}

/* Mark all slots as free; none is in use. */
static void rpost_queue_rewind(struct rpost_queue *q)
{
	spin_lock_bh(&q->lock);
	/* A poster may read @tail after it has dropped the lock. */
	WRITE_ONCE(q->tail, q->head);
	q->free = q->head;
	q->unsignaled = 0;
	spin_unlock_bh(&q->lock);
}

/*
 * Open the queues that a state, RPOST_QPS_*, allows to take work requests.  The queue
 * pair has been moved to it, is locked, and is one that the program moves.
 */
void rpost_qp_open(struct rpost_qp *qp, u32 state)
{
	/* A reset has failed, and only the next one ends that. */
	if (qp->discard)
		return;
	if (state >= RPOST_QPS_INIT)
		rpost_queue_close(&qp->rq, 0);
	/* In the error state the device flushes. */
	if (state >= RPOST_QPS_RTS)
		rpost_queue_close(&qp->sq, 0);
}

/*
 * Since 6.9 a task of rxe that is about to end may overwrite RESET by the error
 * state; there is no such task the second time.
 */
static int rpost_qp_modify_reset(struct rpost_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr now = {};
	int ret;

	rpost_qp_lock_handler(qp);
	ret = ib_modify_qp(qp->ib_qp, &attr, IB_QP_STATE);
	if (!ret)
		ret = ib_query_qp(qp->ib_qp, &now, IB_QP_STATE, &init);
	if (!ret && now.qp_state != IB_QPS_RESET)
		ret = ib_modify_qp(qp->ib_qp, &attr, IB_QP_STATE);
	rpost_qp_unlock_handler(qp);
	return ret;
}

/*
 * Move a queue pair to the RESET state.  It is locked, and without an id, or was
 * connected.  Its work requests are dropped without completions.  After an error posts
 * fail until a reset succeeds.
 */
int rpost_qp_reset(struct rpost_qp *qp)
{
	int ret;

	/* Count what has completed. */
	if (qp->counting)
		rpost_qp_fetch_rest(qp);
	rpost_qp_discard(qp);
	ret = rpost_qp_drain(qp, -EINVAL);
	if (!ret)
		ret = rpost_qp_modify_reset(qp);
	if (ret)
		return ret;
	WRITE_ONCE(qp->state, RPOST_QPS_RESET);
	WRITE_ONCE(qp->released, true);
	qp->stopped = false;
	WRITE_ONCE(qp->failed, false);
	WRITE_ONCE(qp->discard, false);
	reinit_completion(&qp->last_wqe);
	rpost_queue_drop_all_uses(&qp->sq, qp->send_cq);
	rpost_queue_drop_all_uses(&qp->rq, qp->recv_cq);
	rpost_queue_rewind(&qp->sq);
	rpost_queue_rewind(&qp->rq);
	return 0;
}
