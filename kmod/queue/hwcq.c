// SPDX-License-Identifier: GPL-2.0
/*
 * The device's completion queues that feed a rpost_cq.  See struct rpost_hwcq.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "base/inject.h"
#include "compat/compat.h"
#include "core/device.h"
#include "queue/qp.h"

static void rpost_hwcq_interrupt(struct ib_cq *ib_cq, void *context)
{
	struct rpost_hwcq *hwcq = context;

	/* A queue that the device keeps outlives @cq. */
	rcu_read_lock();
	if (!READ_ONCE(hwcq->closing))
		rpost_cq_interrupt(hwcq->cq);
	rcu_read_unlock();
}

/* The device calls this in any context. */
static void rpost_hwcq_event(struct ib_event *ib_event, void *context)
{
	struct rpost_hwcq *hwcq = context;
	struct rpost_cq *cq = hwcq->cq;

	if (!READ_ONCE(hwcq->closing))
		rpost_async_post(&cq->obj, cq->user_data, ib_event->event);
}

/*
 * Poll one device queue until it is empty, or the budget of the rpost_cq is used up.  The
 * caller holds the lock of the rpost_cq, and publishes the ring.  Return the number of
 * completions polled, of which those of unsignaled and drain work requests add no entry.
 */
u32 rpost_hwcq_poll_locked(struct rpost_hwcq *hwcq)
{
	struct rpost_cq *cq = hwcq->cq;
	struct ib_wc wc[RPOST_POLL_BATCH] rpost_uninitialized;
	u32 done = 0;
	int i, n;

	lockdep_assert_held(&cq->lock);

	while (cq->budget > 0) {
		n = ib_poll_cq(hwcq->ib_cq, min(RPOST_POLL_BATCH, cq->budget), wc);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++) {
			if (rpost_inject(RPOST_INJECT_COMPLETION))
				wc[i].status = IB_WC_GENERAL_ERR;
			wc[i].wr_cqe->done(hwcq->ib_cq, &wc[i]);
		}
		cq->budget -= n;
		done += n;
		if (n < RPOST_POLL_BATCH)
			break;
	}
	return done;
}

u32 rpost_hwcq_poll(struct rpost_hwcq *hwcq, u32 budget)
{
	struct rpost_cq *cq = hwcq->cq;
	u32 done;

	spin_lock(&cq->lock);
	cq->budget = budget;
	done = rpost_hwcq_poll_locked(hwcq);
	if (done)
		rpost_cq_publish(cq);
	spin_unlock(&cq->lock);
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
	u32 armed;
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
	ib_cq = __ib_create_cq(cq->obj.dev->ib_dev, rpost_hwcq_interrupt,
			       rpost_hwcq_event, hwcq, &attr,
			       cq->obj.file->name);
	ret = PTR_ERR_OR_ZERO(ib_cq);
	if (ret)
		goto err_free;
	hwcq->ib_cq = ib_cq;
	/* Without it, events come earlier than the program asked for. */
	if (cq->moderate_count || cq->moderate_us)
		rdma_set_cq_moderation(ib_cq, cq->moderate_count,
				       cq->moderate_us);

	spin_lock(&cq->lock);
	list_add_tail(&hwcq->link, &cq->hwcqs);
	/* Arm it like the others. */
	armed = READ_ONCE(cq->armed);
	if (armed)
		ib_req_notify_cq(ib_cq, armed);
	spin_unlock(&cq->lock);
	return hwcq;

err_free:
	kfree(hwcq);
err_limit:
	rpost_limit_give_cqe(cq->obj.file, size);
	return ERR_PTR(ret);
}

/* Drivers round a queue, plus one unused entry, up to a power of two. */
static u32 rpost_hwcq_size(u32 size, u32 entries)
{
	return is_power_of_2(size) && size > entries ? size - 1 : size;
}

/*
 * Reserve room for a queue pair's completions, of which entries can be outstanding.
 * Return the device queue to use, until rpost_cq_detach(), or an ERR_PTR().
 */
struct rpost_hwcq *rpost_cq_attach(struct rpost_cq *cq, u32 entries)
{
	u32 size = max(entries, rpost_cq_size(cq));
	u32 max_cqe = cq->obj.dev->ib_dev->attrs.max_cqe;
	struct rpost_hwcq *hwcq;
	u32 num = 0;

	if (entries > max_cqe)
		return ERR_PTR(-EINVAL);

	mutex_lock(&cq->setup_lock);
	list_for_each_entry(hwcq, &cq->hwcqs, link) {
		if (hwcq->size - hwcq->used >= entries)
			goto found;
		/* Each queue is larger than the last, so that there are few. */
		size = max(size, 2 * hwcq->size + 1);
		num++;
	}
	size = min(rpost_hwcq_size(size, entries), max_cqe);
	hwcq = rpost_hwcq_create(cq, size);
	/* Near a limit take no more than is needed; but a poll visits all, under a lock. */
	if ((hwcq == ERR_PTR(-EMFILE) || hwcq == ERR_PTR(-ENOMEM)) &&
	    size > entries && num < RPOST_MANY_HWCQS)
		hwcq = rpost_hwcq_create(cq, entries);
	if (IS_ERR(hwcq))
		goto out;
found:
	hwcq->used += entries;
out:
	mutex_unlock(&cq->setup_lock);
	return hwcq;
}

/*
 * Reserve room for more completions in a device queue from rpost_cq_attach(), until
 * rpost_cq_detach().  Return -ENOMEM if it has not as much.
 */
int rpost_cq_grow(struct rpost_hwcq *hwcq, u32 entries)
{
	struct rpost_cq *cq = hwcq->cq;
	int ret = -ENOMEM;

	mutex_lock(&cq->setup_lock);
	if (hwcq->size - hwcq->used >= entries) {
		hwcq->used += entries;
		ret = 0;
	}
	mutex_unlock(&cq->setup_lock);
	return ret;
}

/*
 * Give back room from rpost_cq_attach() or rpost_cq_grow().  None of its completions is
 * outstanding.
 */
void rpost_cq_detach(struct rpost_hwcq *hwcq, u32 entries)
{
	struct rpost_cq *cq = hwcq->cq;

	mutex_lock(&cq->setup_lock);
	hwcq->used -= entries;
	mutex_unlock(&cq->setup_lock);
}

/*
 * Destroy device queues, or leave them behind.  They have fed cq, but are not in its list
 * any more, and no queue pair is attached.
 */
void rpost_hwcqs_destroy(struct rpost_cq *cq, struct list_head *hwcqs)
{
	struct rpost_device *dev = cq->obj.dev;
	struct rpost_hwcq *hwcq, *next;
	bool kept, any_kept = false;

	list_for_each_entry(hwcq, hwcqs, link)
		WRITE_ONCE(hwcq->closing, true);
	if (!list_empty(hwcqs))
		rpost_compat_flush_handlers(dev->ib_dev);

	list_for_each_entry_safe(hwcq, next, hwcqs, link) {
		/* The device refuses if it has kept a queue pair, see rpost_qp_leak(). */
		kept = ib_destroy_cq_user(hwcq->ib_cq, NULL);
		rpost_limit_give_cqe(cq->obj.file, hwcq->size);
		if (kept)
			rpost_leave_behind(&hwcq->ib_cq->res, dev);
		else
			kfree(hwcq);
		any_kept |= kept;
	}
	/* A handler of such a queue may still use @cq. */
	if (any_kept)
		synchronize_rcu();
}

static void rpost_cq_set_moderation(struct rpost_cq *cq, u16 count, u16 us)
{
	spin_lock(&cq->lock);
	cq->moderate_count = count;
	cq->moderate_us = us;
	spin_lock_irq(&cq->arm_lock);
	if (us)
		rpost_ring_set_flags(rpost_cq_ring(cq), RPOST_RING_NEED_POLL, 0);
	spin_unlock_irq(&cq->arm_lock);
	spin_unlock(&cq->lock);
}

/* Have all device queues delay events, or none if one of them fails. */
static int rpost_cq_moderate(struct rpost_cq *cq, u16 count, u16 us)
{
	u16 old_count = cq->moderate_count, old_us = cq->moderate_us;
	struct rpost_hwcq *hwcq;
	int ret = 0;

	lockdep_assert_held(&cq->setup_lock);

	/* A program that polls must not wait for what the device delays yet. */
	rpost_cq_set_moderation(cq, count, max(us, old_us));
	list_for_each_entry(hwcq, &cq->hwcqs, link) {
		ret = rdma_set_cq_moderation(hwcq->ib_cq, count, us);
		if (ret)
			break;
	}
	if (!ret) {
		rpost_cq_set_moderation(cq, count, us);
		return 0;
	}
	list_for_each_entry_continue_reverse(hwcq, &cq->hwcqs, link)
		rdma_set_cq_moderation(hwcq->ib_cq, old_count, old_us);
	rpost_cq_set_moderation(cq, old_count, old_us);
	return ret;
}

static int rpost_modify_cq_validate(const struct rpost_modify_cq *cmd,
				    const struct ib_device *ib_dev)
{
	const struct ib_cq_caps *caps = &ib_dev->attrs.cq_caps;

	if (!ib_dev->ops.modify_cq || !caps->max_cq_moderation_count)
		return -EOPNOTSUPP;
	if (cmd->count > caps->max_cq_moderation_count ||
	    cmd->period_us > caps->max_cq_moderation_period)
		return -EINVAL;
	/* The event after the last completion would never come. */
	return cmd->count > 1 && !cmd->period_us ? -EINVAL : 0;
}

int rpost_modify_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_modify_cq *cmd = &ucmd->cmd.modify_cq;
	struct rpost_cq *cq;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	cq = rpost_cq_enter_get(ucmd, cmd->handle);
	if (IS_ERR(cq))
		return PTR_ERR(cq);

	ret = -ENODEV;
	if (rpost_device_alive(cq->obj.dev))
		ret = rpost_modify_cq_validate(cmd, cq->obj.dev->ib_dev);
	if (!ret) {
		mutex_lock(&cq->setup_lock);
		ret = rpost_cq_moderate(cq, cmd->count, cmd->period_us);
		mutex_unlock(&cq->setup_lock);
	}
	rpost_obj_put(&cq->obj);
	return ret;
}
