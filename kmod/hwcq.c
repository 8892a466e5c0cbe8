// SPDX-License-Identifier: GPL-2.0
/*
 * The device's completion queues that feed a rpost_cq: how they are armed, what
 * happens in their interrupts, and which queue pairs they serve.  See struct
 * rpost_hwcq.
 */
#include <linux/indirect_call_wrapper.h>
#include <linux/log2.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "inject.h"
#include "rpost.h"

/**
 * rpost_hwcq_arm() - have the device tell of the next completion
 * @hwcq: the device queue, with the lock of its rpost_cq held
 */
void rpost_hwcq_arm(struct rpost_hwcq *hwcq)
{
	if (ib_req_notify_cq(hwcq->ib_cq, IB_CQ_NEXT_COMP |
					  IB_CQ_REPORT_MISSED_EVENTS) > 0)
		irq_poll_sched(&hwcq->iop);
}

/* Has the program asked for an event?  A hint. */
static bool rpost_cq_waited_for(struct rpost_cq *cq)
{
	bool armed;

	rcu_read_lock();
	armed = READ_ONCE(cq->notify) ||
		rpost_ring_armed(rcu_dereference(cq->ring));
	rcu_read_unlock();
	return armed;
}

/*
 * Enters from the device, in any context; since 6.9 rxe holds a lock of its
 * own here, under which its queue must not be polled.  A softirq that is raised
 * in a thread runs in ksoftirqd, when that has its turn, which is no better than
 * the reader who waits for it; raised in an interrupt it runs at once.
 */
static void rpost_hwcq_interrupt(struct ib_cq *ib_cq, void *context)
{
	struct rpost_hwcq *hwcq = context;

	if (!in_interrupt() && rpost_cq_waited_for(hwcq->cq) &&
	    rpost_comp_channel_kick(hwcq->cq))
		return;
	/* Where irq_work has a thread as well, that would be one more. */
	if (in_interrupt() || IS_ENABLED(CONFIG_PREEMPT_RT)) {
		irq_poll_sched(&hwcq->iop);
	} else {
		WRITE_ONCE(hwcq->thread, current);
		irq_work_queue(&hwcq->work);
	}
}

/* Enters from the device, in any context. */
static void rpost_hwcq_event(struct ib_event *ib_event, void *context)
{
	struct rpost_cq *cq = ((struct rpost_hwcq *)context)->cq;
	struct rpost_async_event event = {
		.user_data = cq->user_data,
		.event = ib_event->event,
		.obj_type = RPOST_OBJ_CQ,
		.handle = cq->obj.handle,
	};

	rpost_async_post(cq->obj.dev, cq->obj.file, &event);
}

/**
 * rpost_hwcq_process() - handle what one device queue has
 * @hwcq: the device queue, with the lock of its rpost_cq held
 * @budget: completions at most
 *
 * Return: completions handled, of which not all go into the ring.
 */
u32 rpost_hwcq_process(struct rpost_hwcq *hwcq, u32 budget)
{
	struct ib_wc wc[RPOST_POLL_BATCH] rpost_uninitialized;
	u32 done = 0;
	int i, n;

	lockdep_assert_held(&hwcq->cq->lock);

	while (done < budget) {
		n = ib_poll_cq(hwcq->ib_cq,
			       min_t(u32, RPOST_POLL_BATCH, budget - done), wc);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++) {
			if (rpost_inject(RPOST_INJECT_COMPLETION))
				wc[i].status = IB_WC_GENERAL_ERR;
			INDIRECT_CALL_2(wc[i].wr_cqe->done, rpost_send_done,
					rpost_recv_done, hwcq->ib_cq, &wc[i]);
		}
		done += n;
		if (n < RPOST_POLL_BATCH)
			break;
	}
	return done;
}

/*
 * Fetch and show what there is, for a program that polls memory.  False if there is
 * something left to do for the softirq, which alone may wake who sleeps.
 */
static bool rpost_hwcq_show(struct rpost_hwcq *hwcq)
{
	struct rpost_cq *cq = hwcq->cq;
	u32 done;

	/* Without queues, it is being shut down. */
	if (list_empty(&cq->hwcqs) || cq->mode != RPOST_CQ_AUTO || hwcq->srq)
		return false;
	WRITE_ONCE(cq->sq_empty, false);
	done = rpost_hwcq_process(hwcq, RPOST_POLL_BATCH);
	if (!done)
		return false;
	rpost_ring_publish(rpost_cq_ring(cq));
	/*
	 * Pairs with the program's barrier between @arm and @tail: who asks from now
	 * on has seen these.
	 */
	smp_mb();
	hwcq->owed |= rpost_cq_waited_for(cq);
	WRITE_ONCE(hwcq->shown, true);
	/* Neither may wait for the next post. */
	if (hwcq->owed || done == RPOST_POLL_BATCH) {
		WRITE_ONCE(cq->sq_empty, false);
		return false;
	}
	/*
	 * Who has waited for its only send posts the next as soon as it sees this.
	 * A device that works in a thread, which may stay awake for it, is armed
	 * after that.
	 */
	if (READ_ONCE(cq->sq_empty))
		return false;
	WRITE_ONCE(hwcq->shown, false);
	rpost_hwcq_arm(hwcq);
	return true;
}

/*
 * In an interrupt, as soon as the driver has given its locks back.  Whoever has the
 * lock of the queue may be what was interrupted; everybody else has it with bottom
 * halves disabled.
 */
static void rpost_hwcq_work(struct irq_work *work)
{
	struct rpost_hwcq *hwcq = container_of(work, struct rpost_hwcq, work);
	struct rpost_cq *cq = hwcq->cq;
	bool shown = false;

	if (!softirq_count() && !rpost_cq_waited_for(cq) &&
	    spin_trylock(&cq->lock)) {
		shown = rpost_hwcq_show(hwcq);
		spin_unlock(&cq->lock);
	}
	if (!shown)
		irq_poll_sched(&hwcq->iop);
}

static void rpost_hwcq_lingered_in_vain(struct rpost_hwcq *hwcq, u32 most)
{
	if (hwcq->backoff < most)
		hwcq->backoff = min(2 * hwcq->backoff + 1, most);
	hwcq->skip = min(hwcq->backoff, most);
}

/*
 * The interrupt came out of a thread of the device, which goes to sleep when it
 * finds nothing to do, and whose wake-up may take longer than all that it does.  So
 * it is kept here for as long as a program takes that posts as soon as it sees its
 * only send complete.  That was of no use if nothing has been posted, or if the
 * thread has not gone on without another's turn until the next completion.  Then
 * some that follow do without: the latter comes and goes by the millisecond.
 */
static void rpost_hwcq_linger(struct rpost_hwcq *hwcq)
{
	unsigned long switches = current->nvcsw + current->nivcsw;
	u64 end;

	if (hwcq->lingerer == current && hwcq->switches == switches)
		hwcq->backoff /= 2;
	else if (hwcq->lingerer)
		rpost_hwcq_lingered_in_vain(hwcq, RPOST_LINGER_SKIP_SWITCHED);
	hwcq->lingerer = NULL;
	/* Who posts needs a CPU, too. */
	if (num_online_cpus() == 1)
		return;
	if (hwcq->skip) {
		hwcq->skip--;
		return;
	}
	end = local_clock() + RPOST_LINGER_NS;
	while (READ_ONCE(hwcq->cq->sq_empty) && !need_resched()) {
		/* They wait here, too, and say nothing of the program. */
		if (local_softirq_pending())
			return;
		if (local_clock() >= end) {
			rpost_hwcq_lingered_in_vain(hwcq, RPOST_LINGER_SKIP_MAX);
			return;
		}
		cpu_relax();
	}
	hwcq->lingerer = current;
	hwcq->switches = switches;
}

/* Enters in softirq context, after an interrupt. */
static int rpost_hwcq_poll(struct irq_poll *iop, int budget)
{
	struct rpost_hwcq *hwcq = container_of(iop, struct rpost_hwcq, iop);
	struct rpost_cq *cq = hwcq->cq;
	u32 done = 0;

	if (READ_ONCE(hwcq->shown) && READ_ONCE(cq->sq_empty) &&
	    READ_ONCE(hwcq->thread) == current)
		rpost_hwcq_linger(hwcq);
	spin_lock(&cq->lock);
	/* Should more have come since, arming tells. */
	if (!hwcq->shown)
		done = rpost_hwcq_process(hwcq, budget);
	if (done || hwcq->owed || cq->mode == RPOST_CQ_EXACT)
		rpost_cq_deliver(cq, true);
	hwcq->owed = false;
	WRITE_ONCE(hwcq->shown, false);
	if (done < budget) {
		irq_poll_complete(iop);
		if (cq->mode == RPOST_CQ_AUTO)
			rpost_hwcq_arm(hwcq);
	}
	spin_unlock(&cq->lock);
	return done;
}

/**
 * rpost_cq_kicked() - do what rpost_hwcq_poll() does, for a reader
 * @cq: the queue
 */
void rpost_cq_kicked(struct rpost_cq *cq)
{
	u32 budget = RPOST_POLL_BUDGET, done, all = 0;
	struct rpost_hwcq *hwcq;

	spin_lock_bh(&cq->lock);
	list_for_each_entry(hwcq, &cq->hwcqs, link) {
		done = rpost_hwcq_process(hwcq, budget);
		all += done;
		if (done == budget)
			irq_poll_sched(&hwcq->iop);
		else if (cq->mode == RPOST_CQ_AUTO)
			rpost_hwcq_arm(hwcq);
	}
	if (all || cq->mode == RPOST_CQ_EXACT)
		rpost_cq_deliver(cq, true);
	spin_unlock_bh(&cq->lock);
}

/**
 * rpost_hwcq_drain() - fetch what one device queue has into the ring
 * @hwcq: the device queue
 * @budget: completions at most
 *
 * Return: completions fetched, of which not all go into the ring.
 */
u32 rpost_hwcq_drain(struct rpost_hwcq *hwcq, u32 budget)
{
	struct rpost_cq *cq = hwcq->cq;
	u32 done;

	spin_lock_bh(&cq->lock);
	done = rpost_hwcq_process(hwcq, budget);
	if (done)
		rpost_cq_deliver(cq, false);
	spin_unlock_bh(&cq->lock);
	return done;
}

static struct rpost_hwcq *rpost_hwcq_create(struct rpost_cq *cq, u32 size)
{
	struct ib_cq_init_attr attr = {
		.cqe = size,
		.comp_vector = cq->comp_vector,
	};
	struct rpost_hwcq *hwcq;
	struct ib_cq *ib_cq;
	int ret;

	ret = rpost_limit_take_cqe(cq->obj.file, size);
	if (ret)
		return ERR_PTR(ret);
	hwcq = kzalloc(sizeof(*hwcq), RPOST_GFP);
	ret = -ENOMEM;
	if (!hwcq)
		goto err_limit;
	hwcq->cq = cq;
	hwcq->size = size;
	init_irq_work(&hwcq->work, rpost_hwcq_work);
	irq_poll_init(&hwcq->iop, RPOST_POLL_BUDGET, rpost_hwcq_poll);
	ib_cq = ib_create_cq(cq->obj.dev->ib_dev, rpost_hwcq_interrupt,
			     rpost_hwcq_event, hwcq, &attr);
	ret = PTR_ERR_OR_ZERO(ib_cq);
	if (ret)
		goto err_free;
	hwcq->ib_cq = ib_cq;

	spin_lock_bh(&cq->lock);
	list_add_tail(&hwcq->link, &cq->hwcqs);
	if (cq->mode == RPOST_CQ_AUTO)
		rpost_hwcq_arm(hwcq);
	else if (cq->notify)
		ib_req_notify_cq(ib_cq, cq->notify);
	spin_unlock_bh(&cq->lock);
	return hwcq;

err_free:
	kfree(hwcq);
err_limit:
	rpost_limit_give_cqe(cq->obj.file, size);
	return ERR_PTR(ret);
}

/*
 * Drivers make a device's queue of one entry more a power of two: a power of two is
 * the worst to ask for.
 */
static u32 rpost_hwcq_size(u32 size, u32 entries)
{
	return is_power_of_2(size) && size > entries ? size - 1 : size;
}

/**
 * rpost_cq_attach() - get room for a queue pair's completions
 * @cq: the queue
 * @entries: completions that can be outstanding
 *
 * Return: the device queue to use, until rpost_cq_detach(), or an ERR_PTR.
 */
struct rpost_hwcq *rpost_cq_attach(struct rpost_cq *cq, u32 entries)
{
	u32 size = max(entries, READ_ONCE(cq->cqe));
	u32 max_cqe = cq->obj.dev->ib_dev->attrs.max_cqe;
	struct rpost_hwcq *hwcq;

	if (entries > max_cqe)
		return ERR_PTR(-EINVAL);

	mutex_lock(&cq->setup_lock);
	list_for_each_entry(hwcq, &cq->hwcqs, link) {
		if (hwcq->size - hwcq->used >= entries)
			goto found;
		/* Each is larger than the last, so that they stay few. */
		size = max(size, 2 * hwcq->size + 1);
	}
	size = min(rpost_hwcq_size(size, entries), max_cqe);
	hwcq = rpost_hwcq_create(cq, size);
	if ((hwcq == ERR_PTR(-EMFILE) || hwcq == ERR_PTR(-ENOMEM)) &&
	    size > entries)
		hwcq = rpost_hwcq_create(cq, entries);
	if (IS_ERR(hwcq))
		goto out;
found:
	hwcq->used += entries;
out:
	mutex_unlock(&cq->setup_lock);
	return hwcq;
}

/**
 * rpost_cq_detach() - give the room back
 * @hwcq: from rpost_cq_attach()
 * @entries: as there; none of them is outstanding
 */
void rpost_cq_detach(struct rpost_hwcq *hwcq, u32 entries)
{
	struct rpost_cq *cq = hwcq->cq;

	mutex_lock(&cq->setup_lock);
	hwcq->used -= entries;
	mutex_unlock(&cq->setup_lock);
}

/**
 * rpost_hwcqs_destroy() - give device queues back
 * @cq: whom they have fed
 * @hwcqs: the queues, no longer in its list; no queue pair is attached
 */
void rpost_hwcqs_destroy(struct rpost_cq *cq, struct list_head *hwcqs)
{
	struct rpost_device *dev = cq->obj.dev;
	struct rpost_hwcq *hwcq, *next;
	bool armed;

	/* From here on the handler has nothing done, and the interrupt does nothing. */
	list_for_each_entry(hwcq, hwcqs, link)
		irq_poll_disable(&hwcq->iop);
	/* A poll that has completed, or the interrupt, may still be arming. */
	spin_lock_bh(&cq->lock);
	armed = cq->armed && !list_empty(hwcqs);
	spin_unlock_bh(&cq->lock);
	if (armed)
		rpost_compat_flush_handlers(dev->ib_dev);

	list_for_each_entry_safe(hwcq, next, hwcqs, link) {
		ib_destroy_cq(hwcq->ib_cq);
		irq_work_sync(&hwcq->work);
		rpost_limit_give_cqe(cq->obj.file, hwcq->size);
		kfree(hwcq);
	}
}
