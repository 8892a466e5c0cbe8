// SPDX-License-Identifier: GPL-2.0
/*
 * The send that waits for room on the device.  See struct rpost_hold.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "rpost.h"

/* Below, a queue of the device takes the same pages anyway. */
#define RPOST_HOLD_MIN_WR	16
#define RPOST_HOLD_MAX_DELAY	(HZ / 8)

/* Where one entry is never used, a queue needs one more than a power of two has. */
static bool rpost_hold_worthwhile(const struct rpost_qp *qp)
{
	return qp->obj.dev->driver->one_unused &&
	       qp->qp_type != RPOST_QPT_UD &&
	       qp->sq.max_wr >= RPOST_HOLD_MIN_WR &&
	       is_power_of_2(qp->sq.max_wr);
}

static bool rpost_hold_no_room(const struct rpost_qp *qp, u32 pos)
{
	return pos - READ_ONCE(qp->sq.tail) >= qp->hold.room;
}

/* Completions look whether one is held, under the lock of the completion queue. */
static void rpost_hold_end(struct rpost_qp *qp)
{
	spin_lock_bh(&qp->send_cq->lock);
	qp->sq.room = min(qp->hold.room, qp->sq.max_wr);
	spin_unlock_bh(&qp->send_cq->lock);
}

static int rpost_hold_release(struct rpost_qp *qp)
{
	const struct ib_send_wr *bad;
	int ret;

	lockdep_assert_held(&qp->sq.lock);

	if (rpost_hold_no_room(qp, qp->hold.pos))
		return -ENOMEM;
	ret = ib_post_send(qp->ib_qp, &qp->hold.wr.wr, &bad);
	if (!ret)
		rpost_hold_end(qp);
	return ret;
}

static void rpost_hold_work(struct work_struct *work)
{
	struct rpost_qp *qp = container_of(to_delayed_work(work),
					   struct rpost_qp, hold.work);
	struct rpost_hold *hold = &qp->hold;

	spin_lock_bh(&qp->sq.lock);
	if (rpost_holds(qp) && !qp->sq.closed) {
		rpost_hwcq_drain(qp->send_hwcq, RPOST_DRAIN_BATCH);
		if (rpost_hold_release(qp)) {
			queue_delayed_work(system_highpri_wq, &hold->work,
					   hold->delay);
			hold->delay = min(2 * hold->delay,
					  (unsigned long)RPOST_HOLD_MAX_DELAY);
		}
	}
	spin_unlock_bh(&qp->sq.lock);
}

/**
 * rpost_hold_init() - say how many sends the device is to have room for
 * @qp: the queue pair, with its send queue
 *
 * Return: 0 or -ENOMEM.
 */
int rpost_hold_init(struct rpost_qp *qp)
{
	struct rpost_queue *sq = &qp->sq;
	struct rpost_hold *hold = &qp->hold;

	hold->room = max(sq->max_wr, 1u);
	if (rpost_hold_worthwhile(qp)) {
		hold->room--;
		INIT_DELAYED_WORK(&hold->work, rpost_hold_work);
		hold->sges = kcalloc(max(sq->max_sge, 1u), sizeof(*hold->sges),
				     RPOST_GFP);
		if (!hold->sges)
			return -ENOMEM;
	}
	sq->room = min(hold->room, sq->max_wr);
	return 0;
}

/**
 * rpost_hold_make_room() - bring the device up to date before a post
 * @qp: the queue pair, with its send queue's lock held, and slots taken
 *
 * Return: 0, or a negative errno if the device does not take the send that was
 * held, so that it takes none after it either.
 */
int rpost_hold_make_room(struct rpost_qp *qp)
{
	int ret = 0;

	if (rpost_holds(qp))
		ret = rpost_hold_release(qp);
	if (!ret && rpost_hold_no_room(qp, qp->sq.head - 1))
		rpost_hwcq_drain(qp->send_hwcq, RPOST_DRAIN_BATCH);
	return ret;
}

/**
 * rpost_hold_back() - hold the last send if the device has no room for it
 * @qp: the queue pair, with its send queue's lock held
 * @wr: the send in the last slot that was taken
 *
 * Return: true if it is held, and not to be posted.
 */
bool rpost_hold_back(struct rpost_qp *qp, const struct ib_atomic_wr *wr)
{
	struct rpost_hold *hold = &qp->hold;
	bool full;

	lockdep_assert_held(&qp->sq.lock);

	if (!rpost_hold_no_room(qp, qp->sq.head - 1))
		return false;

	/* So that the completion which makes room finds it. */
	spin_lock(&qp->send_cq->lock);
	full = rpost_hold_no_room(qp, qp->sq.head - 1);
	if (full) {
		hold->wr = *wr;
		memcpy(hold->sges, wr->wr.sg_list,
		       wr->wr.num_sge * sizeof(*hold->sges));
		hold->wr.wr.sg_list = hold->sges;
		hold->wr.wr.next = NULL;
		hold->pos = qp->sq.head - 1;
		hold->delay = 1;
		hold->kicked = false;
		qp->sq.room = 0;
	}
	spin_unlock(&qp->send_cq->lock);
	if (full)
		queue_delayed_work(system_highpri_wq, &hold->work, 1);
	return full;
}

/**
 * rpost_hold_cancel() - what was before the send was not posted
 * @qp: the queue pair, which holds it, with its send queue's lock held
 */
void rpost_hold_cancel(struct rpost_qp *qp)
{
	lockdep_assert_held(&qp->sq.lock);

	rpost_hold_end(qp);
}

/**
 * rpost_hold_kick() - the device has room
 * @qp: the queue pair, which holds a send, with the lock of its completion queue
 */
void rpost_hold_kick(struct rpost_qp *qp)
{
	struct rpost_hold *hold = &qp->hold;

	lockdep_assert_held(&qp->send_cq->lock);

	/* Most often the next post comes before the device runs out of work. */
	if (hold->kicked || hold->pos - qp->sq.tail > hold->room / 2)
		return;
	hold->kicked = true;
	mod_delayed_work(system_highpri_wq, &hold->work, 0);
}

/**
 * rpost_hold_drained() - is there room for the marker?
 * @qp: the queue pair, whose queues are closed
 *
 * Return: true if so.
 */
bool rpost_hold_drained(struct rpost_qp *qp)
{
	return !rpost_hold_no_room(qp, rpost_holds(qp) ? qp->hold.pos : qp->sq.head);
}

/**
 * rpost_hold_flush() - complete the send that the device has never had
 * @qp: the queue pair, whose queues are closed; the device holds nothing
 */
void rpost_hold_flush(struct rpost_qp *qp)
{
	struct ib_wc wc = {
		.wr_cqe = qp->hold.wr.wr.wr_cqe,
		.status = IB_WC_WR_FLUSH_ERR,
	};

	if (!rpost_holds(qp))
		return;
	spin_lock_bh(&qp->sq.lock);
	rpost_hold_end(qp);
	spin_unlock_bh(&qp->sq.lock);
	rpost_cq_complete(qp->send_cq, &wc);
}

/**
 * rpost_hold_stop() - hold nothing any more
 * @qp: the queue pair, whose queues are closed
 */
void rpost_hold_stop(struct rpost_qp *qp)
{
	if (!qp->hold.sges)
		return;
	spin_lock_bh(&qp->sq.lock);
	rpost_hold_end(qp);
	spin_unlock_bh(&qp->sq.lock);
	cancel_delayed_work_sync(&qp->hold.work);
}
