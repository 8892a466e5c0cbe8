// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat.h"
#include "rdmasim.h"

/**
 * sim_cq_call() - call who waits
 * @cq: the queue
 */
void sim_cq_call(struct sim_cq *cq)
{
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

static void sim_cq_irq(struct irq_work *irq)
{
	sim_cq_call(container_of(irq, struct sim_cq, irq));
}

static void sim_cq_softirq(struct tasklet_struct *tasklet)
{
	sim_cq_call(container_of(tasklet, struct sim_cq, tasklet));
}

static void sim_cq_work(struct work_struct *work)
{
	sim_cq_call(container_of(work, struct sim_cq, work));
}

static void sim_cq_notify(struct sim_cq *cq)
{
	switch (cq->dev->notify) {
	case SIM_HARDIRQ:
		irq_work_queue(&cq->irq);
		break;
	case SIM_SOFTIRQ:
		tasklet_schedule(&cq->tasklet);
		break;
	case SIM_WORK:
		queue_work(sim_wq, &cq->work);
		break;
	default:
		sim_cq_call(cq);
	}
}

static void sim_cq_overrun(struct sim_cq *cq)
{
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* Decide whether the completion that was added is notified at once. */
static bool sim_cq_due(struct sim_cq *cq, const struct ib_wc *wc, bool solicited)
{
	lockdep_assert_held(&cq->lock);

	if (!cq->armed ||
	    (cq->armed == IB_CQ_SOLICITED && !solicited && !wc->status))
		return false;
	if (!cq->moderate_us || ++cq->delayed >= cq->moderate_count)
		return true;
	if (cq->delayed == 1)
		queue_delayed_work(sim_wq, &cq->timer,
				   usecs_to_jiffies(cq->moderate_us));
	return false;
}

/* Disarm, and notify if the handler is called with the lock held. */
static bool sim_cq_disarm(struct sim_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	cq->armed = 0;
	cq->delayed = 0;
	if (cq->dev->notify != SIM_LOCKED)
		return true;
	sim_cq_notify(cq);
	return false;
}

static void sim_cq_timer(struct work_struct *work)
{
	struct sim_cq *cq = container_of(work, struct sim_cq, timer.work);
	unsigned long flags;
	bool notify;

	spin_lock_irqsave(&cq->lock, flags);
	notify = cq->delayed && sim_cq_disarm(cq);
	spin_unlock_irqrestore(&cq->lock, flags);
	if (notify)
		sim_cq_notify(cq);
}

/**
 * sim_cq_add() - complete a work request
 * @ibcq: the queue
 * @wc: the completion
 * @solicited: also notify a consumer that waits for solicited completions
 */
void sim_cq_add(struct ib_cq *ibcq, const struct ib_wc *wc, bool solicited)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	bool overrun = false, notify = false;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->count < cq->size) {
		cq->ring[(cq->head + cq->count++) % cq->size] = *wc;
		notify = sim_cq_due(cq, wc, solicited);
	} else if (!cq->overrun) {
		cq->overrun = true;
		overrun = true;
	}
	if (notify)
		notify = sim_cq_disarm(cq);
	spin_unlock_irqrestore(&cq->lock, flags);

	if (notify)
		sim_cq_notify(cq);
	if (overrun)
		sim_cq_overrun(cq);
}

/**
 * sim_cq_purge() - remove the completions of a queue pair
 * @ibcq: the queue
 * @ibqp: the queue pair
 */
void sim_cq_purge(struct ib_cq *ibcq, const struct ib_qp *ibqp)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	struct ib_wc *wc;
	unsigned long flags;
	u32 i, kept = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < cq->count; i++) {
		wc = &cq->ring[(cq->head + i) % cq->size];
		if (wc->qp != ibqp)
			cq->ring[(cq->head + kept++) % cq->size] = *wc;
	}
	cq->count = kept;
	spin_unlock_irqrestore(&cq->lock, flags);
}

static int sim_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 sim_compat_cq_udata *udata)
{
	struct sim_cq *cq = to_sim_cq(ibcq);

	if (udata || attr->flags)
		return -EOPNOTSUPP;
	if (attr->cqe < 1 || attr->cqe > ibcq->device->attrs.max_cqe)
		return -EINVAL;
	cq->dev = to_sim_dev(ibcq->device);
	cq->size = sim_options.round_up ? roundup_pow_of_two(attr->cqe + 1) - 1 :
					  attr->cqe;
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	INIT_DELAYED_WORK(&cq->timer, sim_cq_timer);
	init_irq_work(&cq->irq, sim_cq_irq);
	tasklet_setup(&cq->tasklet, sim_cq_softirq);
	INIT_WORK(&cq->work, sim_cq_work);
	ibcq->cqe = cq->size;
	return 0;
}

static int sim_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct sim_cq *cq = to_sim_cq(ibcq);

	cancel_delayed_work_sync(&cq->timer);
	irq_work_sync(&cq->irq);
	tasklet_kill(&cq->tasklet);
	cancel_work_sync(&cq->work);
	kvfree(cq->ring);
	return 0;
}

static int sim_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	unsigned long flags;
	int i;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < num && cq->count; i++) {
		*wc++ = cq->ring[cq->head];
		if (++cq->head == cq->size)
			cq->head = 0;
		cq->count--;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

/* A notification that waits already does so until its old time. */
static int sim_modify_cq(struct ib_cq *ibcq, u16 count, u16 us)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	cq->moderate_count = count;
	cq->moderate_us = us;
	spin_unlock_irqrestore(&cq->lock, flags);
	return 0;
}

static int sim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct sim_cq *cq = to_sim_cq(ibcq);
	unsigned int armed = flags & IB_CQ_SOLICITED_MASK;
	unsigned long irq_flags;
	bool missed;

	spin_lock_irqsave(&cq->lock, irq_flags);
	if (cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = armed;
	missed = cq->count;
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	return (flags & IB_CQ_REPORT_MISSED_EVENTS) && missed;
}

const struct ib_device_ops sim_cq_ops = {
	.create_cq = sim_create_cq,
	.destroy_cq = sim_destroy_cq,
	.modify_cq = sim_modify_cq,
	.poll_cq = sim_poll_cq,
	.req_notify_cq = sim_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, sim_cq, ibcq),
};
