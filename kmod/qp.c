// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs.  See struct rpost_qp.
 */
#include <linux/delay.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "inject.h"
#include "rpost.h"

#define RPOST_DRAIN_MAX_MS	60000U
#define RPOST_LAST_WQE_MS	20

static unsigned int drain_ms = 10000;
module_param(drain_ms, uint, 0644);
MODULE_PARM_DESC(drain_ms,
		 "Milliseconds for a device to flush a queue pair that ends, up to 60000 (10000)");

/* One more than the program may post: the marker that drains the queue. */
static u32 rpost_queue_entries(const struct rpost_queue *q)
{
	return max(q->max_wr, 1u) + 1;
}

/* What counts for the limit of the open file; a shared queue counts by itself. */
static u32 rpost_qp_entries(const struct rpost_qp *qp)
{
	return rpost_queue_entries(&qp->sq) +
	       (qp->srq ? 0 : rpost_queue_entries(&qp->rq));
}

static int rpost_queue_init(struct rpost_qp *qp, struct rpost_queue *q,
			    u32 max_wr, u32 max_sge,
			    void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	u32 i, slots = roundup_pow_of_two(max(max_wr, 1u));

	spin_lock_init(&q->lock);
	/* That of the program opens as it moves the queue pair. */
	q->closed = qp->id ? 0 : -EINVAL;
	q->max_wr = max_wr;
	q->max_sge = max_sge;
	q->room = max_wr;
	q->mask = slots - 1;
	q->wqes = rpost_kvcalloc(slots, sizeof(*q->wqes));
	if (!q->wqes)
		return -ENOMEM;
	for (i = 0; i < slots; i++) {
		q->wqes[i].cqe.done = done;
		q->wqes[i].qp = qp;
	}
	return 0;
}

static int rpost_queues_init(struct rpost_qp *qp,
			     const struct rpost_create_qp *cmd)
{
	int ret;

	static_assert(sizeof(struct rpost_wqe) <= 32);

	ret = rpost_queue_init(qp, &qp->sq, cmd->max_send_wr,
			       cmd->max_send_sge, rpost_send_done);
	if (ret)
		return ret;
	ret = rpost_hold_init(qp);
	if (ret)
		return ret;
	ret = rpost_queue_init(qp, &qp->rq, cmd->max_recv_wr,
			       cmd->max_recv_sge, rpost_recv_done);
	if (ret || qp->qp_type != RPOST_QPT_UD)
		return ret;
	qp->ahs = rpost_kvcalloc(qp->sq.mask + 1, sizeof(*qp->ahs));
	return qp->ahs ? 0 : -ENOMEM;
}

static void rpost_queues_free(struct rpost_qp *qp)
{
	kvfree(qp->sq.wqes);
	kvfree(qp->rq.wqes);
	kvfree(qp->ahs);
	kfree(qp->hold.sges);
}

static void rpost_inline_free(struct rpost_qp *qp)
{
	struct rpost_inline_page *ip;
	u32 n = qp->num_inline_pages;

	WRITE_ONCE(qp->num_inline_pages, 0);
	while (n) {
		ip = &qp->inline_pages[--n];
		ib_dma_unmap_page(qp->obj.dev->ib_dev, ip->dma, PAGE_SIZE,
				  DMA_TO_DEVICE);
		__free_page(ip->page);
	}
	if (qp->inline_pages != &qp->inline_page)
		kvfree(qp->inline_pages);
	qp->inline_pages = NULL;
}

static int rpost_inline_alloc(struct rpost_qp *qp, u32 max_inline)
{
	struct ib_device *ib_dev = qp->obj.dev->ib_dev;
	struct rpost_inline_page *ip;
	u32 n;

	if (!max_inline)
		return 0;
	qp->max_inline = max_inline;
	qp->inline_stride = ALIGN(max_inline, 8);
	qp->inline_per_page = PAGE_SIZE / qp->inline_stride;
	n = DIV_ROUND_UP(qp->sq.mask + 1, qp->inline_per_page);
	/* Many programs ask for some room, and never use it. */
	if (n == 1)
		return 0;
	qp->inline_pages = rpost_kvcalloc(n, sizeof(*ip));
	if (!qp->inline_pages)
		return -ENOMEM;

	while (qp->num_inline_pages < n) {
		ip = &qp->inline_pages[qp->num_inline_pages];
		ip->page = alloc_page(RPOST_GFP | __GFP_ZERO);
		if (!ip->page)
			goto err;
		ip->dma = ib_dma_map_page(ib_dev, ip->page, 0, PAGE_SIZE,
					  DMA_TO_DEVICE);
		if (ib_dma_mapping_error(ib_dev, ip->dma)) {
			__free_page(ip->page);
			goto err;
		}
		qp->num_inline_pages++;
	}
	return 0;
err:
	rpost_inline_free(qp);
	return -ENOMEM;
}

/**
 * rpost_qp_inline_room() - have room for inline data
 * @qp: the queue pair; it takes inline data
 *
 * Return: 0, -ENOBUFS, or why nothing can be posted.
 */
int rpost_qp_inline_room(struct rpost_qp *qp)
{
	struct ib_device *ib_dev = qp->obj.dev->ib_dev;
	struct rpost_queue *sq = &qp->sq;
	struct page *page;
	int ret = 0;
	u64 dma;

	if (READ_ONCE(qp->num_inline_pages))
		return 0;
	page = alloc_page(RPOST_GFP | __GFP_ZERO);
	if (!page)
		return -ENOBUFS;

	spin_lock_bh(&sq->lock);
	if (sq->closed) {
		/* The device may be gone. */
		ret = sq->closed;
	} else if (!qp->num_inline_pages) {
		dma = ib_dma_map_page(ib_dev, page, 0, PAGE_SIZE, DMA_TO_DEVICE);
		if (ib_dma_mapping_error(ib_dev, dma)) {
			ret = -ENOBUFS;
		} else {
			qp->inline_page.page = page;
			qp->inline_page.dma = dma;
			qp->inline_pages = &qp->inline_page;
			WRITE_ONCE(qp->num_inline_pages, 1);
			page = NULL;
		}
	}
	spin_unlock_bh(&sq->lock);
	if (page)
		__free_page(page);
	return ret;
}

static struct rpost_hwcq *rpost_qp_attach_recv_cq(struct rpost_qp *qp)
{
	if (qp->srq)
		return rpost_srq_attach_cq(qp->srq, qp->recv_cq);
	return rpost_cq_attach(qp->recv_cq, rpost_queue_entries(&qp->rq));
}

static int rpost_qp_attach_cqs(struct rpost_qp *qp)
{
	u32 send = qp->hold.room;
	u32 recv = rpost_queue_entries(&qp->rq);

	if (qp->send_cq == qp->recv_cq && !qp->srq) {
		qp->send_hwcq = rpost_cq_attach(qp->send_cq, send + recv);
		qp->recv_hwcq = qp->send_hwcq;
		return PTR_ERR_OR_ZERO(qp->send_hwcq);
	}
	qp->send_hwcq = rpost_cq_attach(qp->send_cq, send);
	if (IS_ERR(qp->send_hwcq))
		return PTR_ERR(qp->send_hwcq);
	qp->recv_hwcq = rpost_qp_attach_recv_cq(qp);
	if (IS_ERR(qp->recv_hwcq)) {
		rpost_cq_detach(qp->send_hwcq, send);
		return PTR_ERR(qp->recv_hwcq);
	}
	return 0;
}

static void rpost_qp_detach_cqs(struct rpost_qp *qp)
{
	rpost_cq_detach(qp->send_hwcq, qp->hold.room);
	if (qp->srq)
		rpost_srq_detach_cq(qp->srq, qp->recv_cq);
	else
		rpost_cq_detach(qp->recv_hwcq, rpost_queue_entries(&qp->rq));
}

/* Enters from the device, in any context. */
static void rpost_qp_event(struct ib_event *event, void *context)
{
	struct rpost_qp *qp = context;
	struct rpost_async_event async = {
		.user_data = qp->user_data,
		.event = event->event,
		.obj_type = RPOST_OBJ_QP,
		.handle = qp->obj.handle,
	};

	/*
	 * Data came before the message that completes the connection, which
	 * may be lost.  The cm_id outlives the queue pair.
	 */
	if (event->event == IB_EVENT_COMM_EST && qp->id)
		rdma_notify(qp->id->cm_id, event->event);
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		complete_all(&qp->last_wqe);
	if (event->event <= IB_EVENT_GID_CHANGE && !READ_ONCE(qp->discard))
		rpost_async_post(qp->obj.dev, qp->obj.file, &async);
}

static void rpost_marker_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct rpost_marker, cqe)->done);
}

/*
 * Fetch what the device has; it may be unarmed, see enum rpost_cq_mode.  From
 * these device queues only: others of the same completion queue may be so busy
 * that it never comes to ours.
 */
static u32 rpost_qp_fetch(struct rpost_qp *qp)
{
	u32 n;

	cond_resched();
	n = rpost_hwcq_drain(qp->send_hwcq, RPOST_DRAIN_BATCH);
	if (qp->recv_hwcq != qp->send_hwcq)
		n += rpost_hwcq_drain(qp->recv_hwcq, RPOST_DRAIN_BATCH);
	return n;
}

static bool rpost_send_drained(struct rpost_qp *qp)
{
	if (rpost_inject(RPOST_INJECT_DRAIN))
		return false;
	if (qp->qp_type == RPOST_QPT_UD)
		return READ_ONCE(qp->sq.tail) == qp->sq.head;
	return completion_done(&qp->send_marker.done);
}

static bool rpost_recv_drained(struct rpost_qp *qp)
{
	return !rpost_inject(RPOST_INJECT_DRAIN) &&
	       completion_done(&qp->recv_marker.done);
}

/* A device's queue is first in, first out: this finds all that is ours. */
static void rpost_hwcq_fetch_rest(struct rpost_hwcq *hwcq)
{
	u32 n, left = hwcq->size;

	while (left) {
		cond_resched();
		n = rpost_hwcq_drain(hwcq, min_t(u32, left, RPOST_DRAIN_BATCH));
		if (!n)
			break;
		left -= n;
	}
}

static void rpost_qp_fetch_rest(struct rpost_qp *qp)
{
	rpost_hwcq_fetch_rest(qp->send_hwcq);
	rpost_hwcq_fetch_rest(qp->recv_hwcq);
}

/*
 * A device that has lost its way may never flush.  Destroying the queue pair
 * ends its completions, too, so that nobody has to wait: neither who has been
 * killed, nor for a device on which somebody has waited until @end, in vain.
 */
static bool rpost_qp_patient(struct rpost_qp *qp, unsigned long end)
{
	if (fatal_signal_pending(current))
		return false;
	if (time_after_eq(jiffies, end))
		WRITE_ONCE(qp->obj.dev->stuck, true);
	return !READ_ONCE(qp->obj.dev->stuck);
}

static int rpost_qp_wait(struct rpost_qp *qp, unsigned long end,
			 bool (*drained)(struct rpost_qp *qp))
{
	while (!drained(qp)) {
		if (!rpost_qp_patient(qp, end)) {
			/* One look at all there is: it may be us who were away. */
			usleep_range(500, 1000);
			rpost_qp_fetch_rest(qp);
			if (drained(qp))
				break;
			return fatal_signal_pending(current) ? -EINTR : -ETIMEDOUT;
		}
		if (!rpost_qp_fetch(qp))
			usleep_range(10, 100);
	}
	return 0;
}

static void rpost_queue_close(struct rpost_queue *q, int error)
{
	spin_lock_bh(&q->lock);
	WRITE_ONCE(q->closed, error);
	spin_unlock_bh(&q->lock);
}

static int rpost_drain_sq(struct rpost_qp *qp, unsigned long end)
{
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &qp->send_marker.cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int ret = 0;

	/* Some drivers show a completion first and then give its entry back. */
	while (qp->qp_type != RPOST_QPT_UD) {
		ret = rpost_qp_wait(qp, end, rpost_hold_drained);
		ret = ret ? : ib_post_send(qp->ib_qp, &wr.wr, NULL);
		if (ret != -ENOMEM || !rpost_qp_patient(qp, end))
			break;
		usleep_range(10, 100);
	}
	ret = ret ? : rpost_qp_wait(qp, end, rpost_send_drained);
	if (!ret)
		rpost_hold_flush(qp);
	return ret;
}

/*
 * Receives of a shared queue that the device has taken complete, the others
 * stay there.  Not every device says when the last has completed (rxe does not,
 * before 6.9), but none takes long.
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

static int rpost_drain_rq(struct rpost_qp *qp, unsigned long end)
{
	struct ib_recv_wr wr = { .wr_cqe = &qp->recv_marker.cqe };
	int ret = ib_post_recv(qp->ib_qp, &wr, NULL);

	return ret ? : rpost_qp_wait(qp, end, rpost_recv_drained);
}

/* Let nothing more happen; posts fail with @error from now on. */
static int rpost_qp_stop(struct rpost_qp *qp, int error)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int ret;

	rpost_queue_close(&qp->sq, error);
	rpost_queue_close(&qp->rq, error);
	WRITE_ONCE(qp->failed, true);
	if (qp->stopped)
		return 0;
	qp->can_take = qp->id || qp->state >= RPOST_QPS_RTR;
	/* cma's handlers modify it, too, and not every driver has a lock. */
	if (qp->id)
		rdma_lock_handler(qp->id->cm_id);
	ret = ib_modify_qp(qp->ib_qp, &attr, IB_QP_STATE);
	if (qp->id)
		rdma_unlock_handler(qp->id->cm_id);
	qp->stopped = !ret;
	qp->stopped_at = jiffies;
	return ret;
}

/**
 * rpost_qp_stop_early() - stop one of many queue pairs that will be shut down
 * @obj: the queue pair
 *
 * So that the waits of rpost_drain_rq() run at the same time.
 */
void rpost_qp_stop_early(struct rpost_obj *obj)
{
	struct rpost_qp *qp = container_of(obj, struct rpost_qp, obj);

	if (!qp->srq)
		return;
	rpost_qp_lock(qp);
	if (qp->ib_qp && (qp->id || qp->state != RPOST_QPS_RESET))
		rpost_qp_stop(qp, -ENODEV);
	rpost_qp_unlock(qp);
}

/*
 * Get all work requests back; posts fail with @error from now on.  As
 * ib_drain_qp(), but without its warnings, and fetching completions itself.
 */
static int rpost_qp_drain(struct rpost_qp *qp, int error)
{
	unsigned int ms = min(READ_ONCE(drain_ms), RPOST_DRAIN_MAX_MS);
	unsigned long end;
	int ret, err = 0;

	/* It has never taken anything. */
	if (!qp->id && qp->state == RPOST_QPS_RESET) {
		rpost_queue_close(&qp->sq, error);
		rpost_queue_close(&qp->rq, error);
		return 0;
	}
	qp->send_marker.cqe.done = rpost_marker_done;
	qp->recv_marker.cqe.done = rpost_marker_done;
	init_completion(&qp->send_marker.done);
	init_completion(&qp->recv_marker.done);

	ret = rpost_qp_stop(qp, error);
	if (!ret) {
		end = jiffies + msecs_to_jiffies(ms);
		ret = rpost_drain_sq(qp, end);
		if (qp->srq)
			rpost_drain_srq(qp);
		else if (ret != -ETIMEDOUT)
			err = rpost_drain_rq(qp, end);
		ret = ret ? : err;
	}
	/*
	 * Drivers that take what is left of a queue pair out of the completion queue
	 * (mlx5, mlx4, hns), as it is reset or destroyed, tell nobody of the slots.
	 */
	if (qp->srq)
		rpost_hwcq_fetch_rest(qp->recv_hwcq);
	/* An idle queue pair for datagrams with a shared queue has shown nothing. */
	if (!ret && (qp->qp_type != RPOST_QPT_UD || !qp->srq))
		WRITE_ONCE(qp->obj.dev->stuck, false);
	if (ret && ret != -EINTR)
		pr_warn_ratelimited("rdma_post: %s: queue pair %u cannot be drained: %d\n",
				    qp->obj.dev->ib_dev->name, qp->qp_num,
				    ret);
	return ret;
}

/* Nothing is in it. */
static void rpost_queue_rewind(struct rpost_queue *q)
{
	spin_lock_bh(&q->lock);
	/* A poster that has given the lock back may look at it. */
	WRITE_ONCE(q->tail, q->head);
	q->free = q->head;
	q->unsignaled = 0;
	spin_unlock_bh(&q->lock);
}

/**
 * rpost_qp_open() - let the queues take what they take in a state
 * @qp: the queue pair, without an id, locked
 * @state: where it has been moved to, RPOST_QPS_*
 */
void rpost_qp_open(struct rpost_qp *qp, u32 state)
{
	if (state >= RPOST_QPS_INIT)
		rpost_queue_close(&qp->rq, 0);
	/* In the error state, the device flushes. */
	if (state >= RPOST_QPS_RTS)
		rpost_queue_close(&qp->sq, 0);
}

/*
 * Since 6.9 a task of rxe's that is about to end may write the error state over
 * that of RESET; a second time there is no task.
 */
static int rpost_qp_modify_reset(struct rpost_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr now = {};
	int ret;

	ret = ib_modify_qp(qp->ib_qp, &attr, IB_QP_STATE);
	if (ret)
		return ret;
	ret = ib_query_qp(qp->ib_qp, &now, IB_QP_STATE, &init);
	if (ret || now.qp_state == IB_QPS_RESET)
		return ret;
	return ib_modify_qp(qp->ib_qp, &attr, IB_QP_STATE);
}

/**
 * rpost_qp_reset() - move a queue pair without an id to the RESET state
 * @qp: the queue pair, locked
 *
 * What it holds is given up without completions.
 *
 * Return: 0 or a negative errno; then nothing can be posted until the next
 * attempt.
 */
int rpost_qp_reset(struct rpost_qp *qp)
{
	int ret;

	WRITE_ONCE(qp->discard, true);
	ret = rpost_qp_drain(qp, -EINVAL);
	if (!ret)
		ret = rpost_qp_modify_reset(qp);
	if (ret)
		return ret;
	rpost_sring_discard(qp);
	WRITE_ONCE(qp->state, RPOST_QPS_RESET);
	qp->stopped = false;
	WRITE_ONCE(qp->failed, false);
	WRITE_ONCE(qp->discard, false);
	reinit_completion(&qp->last_wqe);
	rpost_queue_rewind(&qp->sq);
	rpost_queue_rewind(&qp->rq);
	return 0;
}

/* Sends that a device has lost hold their addresses no longer. */
static void rpost_qp_release_ahs(struct rpost_qp *qp)
{
	u32 i;

	if (!qp->ahs)
		return;
	for (i = 0; i <= qp->sq.mask; i++)
		rpost_qp_release_ah(qp, &qp->sq.wqes[i]);
}

static int rpost_qp_destroy_ib_qp(struct rpost_qp *qp)
{
	int ret = 0;

	if (qp->id) {
		rdma_destroy_qp(qp->id->cm_id);
		qp->id->qp = NULL;
	} else {
		ret = ib_destroy_qp(qp->ib_qp);
	}
	qp->ib_qp = NULL;
	return ret;
}

static void rpost_qp_give_back(struct rpost_qp *qp)
{
	struct ib_qp *ib_qp = qp->ib_qp;
	int ret;

	ret = rpost_qp_drain(qp, -ENODEV);
	rpost_qp_detach_mcasts(qp);
	if (qp->srq)
		mutex_lock(&qp->srq->qp_lock);
	if (WARN_ON_ONCE(rpost_qp_destroy_ib_qp(qp))) {
		qp->leaked = true;
		qp->pd->leaked = true;
		rpost_leave_behind(&ib_qp->res, qp->obj.dev);
	}
	if (ret || qp->srq)
		rpost_qp_fetch_rest(qp);
	/* After all that the device had, if it could not be drained, too. */
	rpost_hold_flush(qp);
	rpost_hold_stop(qp);
	if (!qp->discard)
		rpost_sring_flush(qp);
	if (qp->srq && !qp->leaked)
		rpost_srq_del_qp(qp->srq, ib_qp);
	rpost_qp_detach_cqs(qp);
	if (qp->srq)
		mutex_unlock(&qp->srq->qp_lock);
	rpost_limit_give_wr(qp->obj.file, rpost_qp_entries(qp),
			    rpost_qp_device_bytes(qp));
	rpost_qp_release_ahs(qp);
	if (!qp->leaked)
		rpost_inline_free(qp);
}

/**
 * rpost_qp_shutdown() - drain a queue pair and give it back to its device
 * @obj: the queue pair
 *
 * Return: 0.
 */
int rpost_qp_shutdown(struct rpost_obj *obj)
{
	struct rpost_qp *qp = container_of(obj, struct rpost_qp, obj);

	/* It posts, and takes no lock that follows. */
	rpost_sring_stop(qp);
	rpost_qp_lock(qp);
	if (obj->ending)
		WRITE_ONCE(qp->discard, true);
	if (qp->ib_qp)
		rpost_qp_give_back(qp);
	rpost_qp_unlock(qp);
	return 0;
}

static void rpost_qp_unuse_parts(struct rpost_qp *qp)
{
	if (qp->id)
		rpost_obj_unuse(&qp->id->obj);
	if (qp->pd)
		rpost_obj_unuse(&qp->pd->obj);
	if (qp->send_cq)
		rpost_obj_unuse(&qp->send_cq->obj);
	if (qp->recv_cq)
		rpost_obj_unuse(&qp->recv_cq->obj);
	if (qp->srq)
		rpost_obj_unuse(&qp->srq->obj);
}

/**
 * rpost_qp_free() - free a queue pair's memory
 * @obj: the queue pair, shut down
 */
void rpost_qp_free(struct rpost_obj *obj)
{
	struct rpost_qp *qp = container_of(obj, struct rpost_qp, obj);

	rpost_qp_unuse_parts(qp);
	rpost_device_put(qp->obj.dev);
	rpost_sring_free(qp);
	if (qp->leaked)
		return;
	rpost_queues_free(qp);
	kfree_rcu(qp, obj.rcu);
}

static int rpost_create_qp_validate(struct rpost_create_qp *cmd,
				    struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;
	u32 max_wr = rpost_device_max_wr(ib_dev);

	switch (cmd->qp_type) {
	case 0:
		cmd->qp_type = RPOST_QPT_RC;
		break;
	case RPOST_QPT_RC:
		break;
	case RPOST_QPT_UC:
	case RPOST_QPT_UD:
		if (cmd->id)
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	if (cmd->srq) {
		cmd->max_recv_wr = 0;
		cmd->max_recv_sge = 0;
	}
	if (cmd->max_send_wr > max_wr || cmd->max_recv_wr > max_wr ||
	    cmd->max_send_sge > min(attr->max_send_sge, RPOST_MAX_SGE) ||
	    cmd->max_recv_sge > min(attr->max_recv_sge, RPOST_MAX_SGE) ||
	    cmd->max_inline_data > RPOST_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static int rpost_qp_create_ib_qp(struct rpost_qp *qp,
				 struct ib_qp_init_attr *attr)
{
	struct ib_qp *ib_qp;
	int ret;

	if (!qp->id) {
		ib_qp = ib_create_qp(qp->pd->ib_pd, attr);
		if (IS_ERR(ib_qp))
			return PTR_ERR(ib_qp);
		qp->ib_qp = ib_qp;
	} else {
		ret = rdma_create_qp(qp->id->cm_id, qp->pd->ib_pd, attr);
		if (ret)
			return ret;
		qp->ib_qp = qp->id->cm_id->qp;
	}
	if (!qp->srq)
		return 0;
	ret = rpost_srq_add_qp(qp->srq, qp);
	if (ret)
		rpost_qp_destroy_ib_qp(qp);
	return ret;
}

/* Connect the queues with the device. */
static int rpost_qp_take(struct rpost_qp *qp, const struct rpost_create_qp *cmd)
{
	struct ib_qp_init_attr attr = {
		.event_handler = rpost_qp_event,
		.qp_context = qp,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = qp->qp_type,
	};
	int ret;

	if (qp->srq) {
		lockdep_assert_held(&qp->srq->qp_lock);
		attr.srq = qp->srq->ib_srq;
	}
	ret = rpost_qp_attach_cqs(qp);
	if (ret)
		return ret;
	attr.send_cq = qp->send_hwcq->ib_cq;
	attr.recv_cq = qp->recv_hwcq->ib_cq;
	attr.cap.max_send_wr = qp->hold.room;
	/* Inline data takes an entry. */
	attr.cap.max_send_sge = max(cmd->max_send_sge, 1u);
	if (!qp->srq) {
		attr.cap.max_recv_wr = rpost_queue_entries(&qp->rq);
		attr.cap.max_recv_sge = max(cmd->max_recv_sge, 1u);
	}
	ret = rpost_qp_create_ib_qp(qp, &attr);
	if (ret)
		rpost_qp_detach_cqs(qp);
	return ret;
}

static int rpost_qp_build(struct rpost_qp *qp,
			  const struct rpost_create_qp *cmd)
{
	int ret;

	ret = rpost_obj_take_bytes(&qp->obj, rpost_qp_own_bytes(cmd));
	if (ret)
		return ret;
	ret = rpost_queues_init(qp, cmd);
	if (ret)
		goto err_queues;
	ret = rpost_inline_alloc(qp, cmd->max_inline_data);
	if (ret)
		goto err_queues;
	ret = rpost_limit_take_wr(qp->obj.file, rpost_qp_entries(qp),
				  rpost_qp_device_bytes(qp));
	if (ret)
		goto err_inline;

	if (qp->srq)
		mutex_lock(&qp->srq->qp_lock);
	ret = rpost_qp_take(qp, cmd);
	if (qp->srq)
		mutex_unlock(&qp->srq->qp_lock);
	if (ret)
		goto err_limit;
	qp->qp_num = qp->ib_qp->qp_num;
	qp->max_sge_rd = min_t(u32, cmd->max_send_sge,
			       rpost_device_max_sge_rd(qp->obj.dev->ib_dev));
	qp->iwarp = rdma_protocol_iwarp(qp->obj.dev->ib_dev,
					rdma_start_port(qp->obj.dev->ib_dev));
	return 0;

err_limit:
	rpost_limit_give_wr(qp->obj.file, rpost_qp_entries(qp),
			    rpost_qp_device_bytes(qp));
err_inline:
	rpost_inline_free(qp);
err_queues:
	rpost_queues_free(qp);
	return ret;
}

/* What a new queue pair depends on; the caller unuses also after an error. */
static int rpost_qp_use_parts(struct rpost_qp *qp, struct rpost_file *file,
			      const struct rpost_create_qp *cmd)
{
	struct rpost_device *dev;
	struct rpost_obj *obj;

	obj = rpost_obj_use(file, cmd->pd, RPOST_OBJ_PD);
	if (!obj)
		return -ENOENT;
	qp->pd = container_of(obj, struct rpost_pd, obj);
	dev = obj->dev;
	obj = rpost_obj_use(file, cmd->send_cq, RPOST_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	qp->send_cq = container_of(obj, struct rpost_cq, obj);
	obj = rpost_obj_use(file, cmd->recv_cq, RPOST_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	qp->recv_cq = container_of(obj, struct rpost_cq, obj);
	if (cmd->srq) {
		obj = rpost_obj_use(file, cmd->srq, RPOST_OBJ_SRQ);
		if (!obj)
			return -ENOENT;
		qp->srq = container_of(obj, struct rpost_srq, obj);
	}
	if (cmd->id) {
		obj = rpost_obj_use(file, cmd->id, RPOST_OBJ_ID);
		if (!obj)
			return -ENOENT;
		qp->id = container_of(obj, struct rpost_id, obj);
	}

	if (!rpost_device_alive(dev))
		return -ENODEV;
	if (qp->send_cq->obj.dev != dev || qp->recv_cq->obj.dev != dev)
		return -EINVAL;
	/* Keys of its receives are checked in its domain, see struct rpost_mr. */
	if (qp->srq && qp->srq->pd != qp->pd)
		return -EINVAL;
	return 0;
}

/* May the id have a queue pair on this device? */
static int rpost_id_check_qp(struct rpost_id *id, struct rpost_device *dev)
{
	if (!id->cm_id)
		return -ENODEV;
	if (id->qp || id->cm_id->device != dev->ib_dev ||
	    id->cm_id->qp_type != IB_QPT_RC)
		return -EINVAL;
	switch (READ_ONCE(id->state)) {
	case RPOST_ID_BOUND:
	case RPOST_ID_ADDR_RESOLVED:
	case RPOST_ID_ROUTE_QUERY:
	case RPOST_ID_ROUTE_RESOLVED:
	case RPOST_ID_REQUEST:
		return 0;
	default:
		return -EINVAL;
	}
}

static int rpost_create_qp_locked(struct rpost_ucmd *ucmd, struct rpost_qp *qp)
{
	struct rpost_create_qp *cmd = &ucmd->cmd.create_qp;
	struct rpost_device *dev = qp->pd->obj.dev;
	int ret;

	if (qp->id) {
		ret = rpost_id_check_qp(qp->id, dev);
		if (ret)
			return ret;
	}
	ret = rpost_obj_reserve(ucmd->file, &qp->obj, RPOST_OBJ_QP, dev);
	if (ret)
		return ret;
	ret = rpost_qp_build(qp, cmd);
	if (ret)
		goto err_unreserve;

	cmd->handle = qp->obj.handle;
	cmd->qp_num = qp->qp_num;
	ret = rpost_respond(ucmd);
	if (ret)
		goto err_destroy;
	rpost_device_hold(dev);
	if (qp->id)
		qp->id->qp = qp;
	return 0;

err_destroy:
	rpost_qp_give_back(qp);
	if (!qp->leaked)
		rpost_queues_free(qp);
err_unreserve:
	rpost_obj_unreserve(&qp->obj);
	return ret;
}

/**
 * rpost_create_qp_ioctl() - create a queue pair
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_create_qp_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_qp *cmd = &ucmd->cmd.create_qp;
	struct rpost_qp *qp;
	int ret;

	if (cmd->reserved || (cmd->flags & ~RPOST_QP_SIG_ALL))
		return -EOPNOTSUPP;
	qp = kzalloc(sizeof(*qp), RPOST_GFP);
	if (!qp)
		return -ENOMEM;
	mutex_init(&qp->lock);
	INIT_LIST_HEAD(&qp->mcasts);
	init_completion(&qp->last_wqe);
	ret = rpost_qp_use_parts(qp, ucmd->file, cmd);
	if (ret)
		goto err;
	ret = rpost_create_qp_validate(cmd, qp->pd->obj.dev->ib_dev);
	if (ret)
		goto err;
	qp->qp_type = cmd->qp_type;
	qp->qp_flags = cmd->flags;
	qp->user_data = cmd->user_data;

	rpost_qp_lock(qp);
	ret = rpost_create_qp_locked(ucmd, qp);
	rpost_qp_unlock(qp);
	if (ret)
		goto err;
	rpost_obj_publish(&qp->obj);
	return 0;
err:
	rpost_qp_unuse_parts(qp);
	if (!qp->leaked)
		kfree(qp);
	return ret;
}
