// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues.  See struct rpost_cq.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/device.h"
#include "core/stats.h"
#include "queue/qp.h"

/*
 * A queue is armed if the program polls in vain so many times.  That takes some 10 us if
 * it does nothing else: longer than an operation of a hardware device, as an interrupt
 * costs more than a poll.
 */
#define RPOST_VAIN_POLLS	32

/*
 * There are completions, or the device has gone: let posts and POLL_CQ poll, and notify.
 * Devices call this in any context, some with a lock of their own held that ib_poll_cq()
 * takes, so it does not poll.
 */
void rpost_cq_interrupt(struct rpost_cq *cq)
{
	struct rpost_cring *ring;
	unsigned long flags;

	spin_lock_irqsave(&cq->arm_lock, flags);
	if (cq->muted)
		goto out;
	ring = rcu_dereference_protected(cq->ring, lockdep_is_held(&cq->arm_lock));
	WRITE_ONCE(cq->armed, 0);
	rpost_ring_set_flags(ring, RPOST_RING_NEED_POLL, 0);
	if (rpost_ring_take_arm(ring) || cq->notify)
		rpost_comp_channel_post(cq);
	cq->notify = false;
out:
	spin_unlock_irqrestore(&cq->arm_lock, flags);
}

/* Show the program the new entries of the ring, with the lock of the queue held. */
void rpost_cq_publish(struct rpost_cq *cq)
{
	struct rpost_cring *ring = rpost_cq_ring(cq);
	bool first;

	cq->vain = 0;
	rpost_ring_publish(ring);
	if (unlikely(ring->overrun)) {
		ring->overrun = false;
		spin_lock_irq(&cq->arm_lock);
		first = !(ring->flags & RPOST_RING_OVERRUN);
		rpost_ring_set_flags(ring, RPOST_RING_OVERRUN, 0);
		spin_unlock_irq(&cq->arm_lock);
		/* Once: the queue stays in error, and the channel has little room. */
		if (first)
			rpost_async_post(&cq->obj, cq->user_data, RPOST_ASYNC_CQ_ERR);
	}
}

/* Unless this uses up the budget, the device's queues were empty. */
static u32 rpost_cq_poll_locked(struct rpost_cq *cq, int budget)
{
	struct rpost_hwcq *hwcq;
	u32 done = 0;

	lockdep_assert_held(&cq->lock);

	cq->budget = budget;
	list_for_each_entry(hwcq, &cq->hwcqs, link)
		done += rpost_hwcq_poll_locked(hwcq);
	if (done)
		rpost_cq_publish(cq);
	return done;
}

void rpost_cq_poll(struct rpost_cq *cq)
{
	spin_lock(&cq->lock);
	rpost_cq_poll_locked(cq, RPOST_POLL_MOST);
	spin_unlock(&cq->lock);
}

/*
 * Arm the device, then poll it for completions that came before.  With
 * IB_CQ_NEXT_COMP the program need not call again before the interrupt.
 */
static void rpost_cq_arm(struct rpost_cq *cq, u32 kind, bool notify)
{
	struct rpost_hwcq *hwcq;
	bool failed = false;

	lockdep_assert_held(&cq->lock);

	/* The interrupt may come as soon as the first device queue is armed. */
	spin_lock_irq(&cq->arm_lock);
	/* A device that is armed for any completion cannot be narrowed. */
	if (cq->armed == IB_CQ_NEXT_COMP)
		kind = IB_CQ_NEXT_COMP;
	WRITE_ONCE(cq->armed, kind);
	cq->notify |= notify;
	spin_unlock_irq(&cq->arm_lock);
	list_for_each_entry(hwcq, &cq->hwcqs, link) {
		if (ib_req_notify_cq(hwcq->ib_cq, kind) < 0)
			failed = true;
	}

	rpost_cq_poll_locked(cq, RPOST_POLL_MOST);
	spin_lock_irq(&cq->arm_lock);
	/*
	 * A program that polls must not wait for a delayed interrupt, and one that sleeps
	 * not for a device that has gone.
	 */
	if (cq->armed == IB_CQ_NEXT_COMP && cq->budget > 0 && !failed &&
	    !cq->moderate_us && rpost_device_alive(cq->obj.dev))
		rpost_ring_set_flags(rpost_cq_ring(cq), 0, RPOST_RING_NEED_POLL);
	spin_unlock_irq(&cq->arm_lock);
}

/* Mute the queue, unless it has more than these @users. */
void rpost_cq_mute(struct rpost_cq *cq, unsigned int users)
{
	/* A queue pair that comes is a user before it calls rpost_cq_unmute(). */
	spin_lock(&cq->obj.file->handles.lock);
	spin_lock_irq(&cq->arm_lock);
	if (cq->obj.users == users)
		cq->muted = true;
	spin_unlock_irq(&cq->arm_lock);
	spin_unlock(&cq->obj.file->handles.lock);
}

/* A queue pair is about to use the queue, or the device is removed. */
void rpost_cq_unmute(struct rpost_cq *cq)
{
	u32 kind = 0;

	spin_lock(&cq->lock);
	spin_lock_irq(&cq->arm_lock);
	if (cq->muted && cq->armed) {
		/* The device is not armed any more if an interrupt was ignored. */
		kind = cq->armed;
		rpost_ring_set_flags(rpost_cq_ring(cq), RPOST_RING_NEED_POLL, 0);
	}
	cq->muted = false;
	spin_unlock_irq(&cq->arm_lock);
	if (kind)
		rpost_cq_arm(cq, kind, false);
	spin_unlock(&cq->lock);
}

/*
 * Poll and arm, as the program has read an event of the queue.  The program will poll
 * now, and probably sleep again.  As the device is armed by then, the program finds the
 * completions and requests the next event in memory, without a call.
 */
void rpost_cq_event_taken(struct rpost_cq *cq)
{
	spin_lock(&cq->lock);
	if (cq->exact)
		rpost_cq_poll_locked(cq, RPOST_POLL_MOST);
	else
		rpost_cq_arm(cq, IB_CQ_NEXT_COMP, false);
	spin_unlock(&cq->lock);
}

/* Poll once after a post.  cq gets the completions of the posted work requests. */
void rpost_cq_posted(struct rpost_cq *cq)
{
	if (READ_ONCE(cq->armed) || !spin_trylock(&cq->lock))
		return;
	cq->vain = 0;
	rpost_cq_poll_locked(cq, RPOST_POLL_BUDGET);
	spin_unlock(&cq->lock);
}

/*
 * Read how far the program has consumed its ring, for rpost_ring_consumed().  A caller
 * that has seen an entry in a ring gets that ring or a later one.
 */
struct rpost_ring_seen rpost_cq_see(struct rpost_cq *cq)
{
	struct rpost_ring_seen seen;

	rcu_read_lock();
	seen = rpost_ring_see(rcu_dereference(cq->ring));
	rcu_read_unlock();
	return seen;
}

/* Return the number of entries in the ring. */
u32 rpost_cq_size(struct rpost_cq *cq)
{
	u32 entries;

	rcu_read_lock();
	entries = rcu_dereference(cq->ring)->entries;
	rcu_read_unlock();
	return entries;
}

/* Destroy the device queues of a completion queue.  No queue pair is attached.  Return 0. */
int rpost_cq_shutdown(struct rpost_obj *obj)
{
	struct rpost_cq *cq = rpost_obj_as(cq, obj);
	LIST_HEAD(hwcqs);

	spin_lock(&cq->lock);
	list_splice_init(&cq->hwcqs, &hwcqs);
	spin_unlock(&cq->lock);
	/*
	 * When the device is removed, wake the tasks that sleep for an event of the
	 * queue, and let the next ask by ARM_CQ.  When the program destroys it, there is no
	 * event.
	 */
	if (!obj->ending) {
		rpost_cq_unmute(cq);
		rpost_cq_interrupt(cq);
	}

	rpost_hwcqs_destroy(cq, &hwcqs);
	return 0;
}

static struct rpost_cring *rpost_cq_ring_alloc(struct rpost_file *file, u32 flags, u32 entries)
{
	u32 entry_size = flags & RPOST_CQ_SMALL_ENTRIES ?
			 RPOST_WC_SMALL_SIZE : sizeof(struct rpost_wc);

	return rpost_ring_alloc(file, flags & RPOST_CQ_SHARED_PAGE, entries, entry_size);
}

void rpost_cq_free(struct rpost_obj *obj)
{
	struct rpost_cq *cq = rpost_obj_as(cq, obj);

	rpost_comp_channel_forget(cq);
	rpost_ring_free(rcu_dereference_protected(cq->ring, true));
	kfree_rcu(cq, obj.rcu);
}

/* Map the ring of the completion queue whose handle is the offset of vma, in pages. */
int rpost_cq_mmap(struct rpost_file *file, struct vm_area_struct *vma)
{
	struct rpost_cq *cq;
	int ret;

	if (vma->vm_pgoff > U32_MAX)
		return -EINVAL;
	cq = rpost_cq_get(file, vma->vm_pgoff);
	if (!cq)
		return -ENOENT;
	mutex_lock(&cq->setup_lock);
	ret = rpost_ring_mmap(rcu_dereference_protected(cq->ring, lockdep_is_held(&cq->setup_lock)),
			      vma);
	mutex_unlock(&cq->setup_lock);
	rpost_obj_put(&cq->obj);
	return ret;
}

int rpost_arm_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_arm_cq *cmd = &ucmd->cmd.arm_cq;
	struct rpost_cq *cq;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	cq = rpost_cq_get(ucmd->file, cmd->handle);
	if (!cq)
		return -ENOENT;

	spin_lock(&cq->lock);
	cq->exact = cmd->flags & RPOST_ARM_SOLICITED;
	rpost_cq_arm(cq, cq->exact ? IB_CQ_SOLICITED : IB_CQ_NEXT_COMP, true);
	spin_unlock(&cq->lock);
	/* A device that goes from here on finds the request, see rpost_cq_shutdown(). */
	ret = rpost_device_alive(cq->obj.dev) ? 0 : -ENODEV;

	rpost_obj_put(&cq->obj);
	return ret;
}

/* The program has polled in vain.  Arm the device if it has done so for a while. */
static void rpost_cq_idle(struct rpost_cq *cq)
{
	lockdep_assert_held(&cq->lock);

	if (cq->exact || cq->moderate_us)
		return;
	if (!READ_ONCE(cq->armed) && ++cq->vain < RPOST_VAIN_POLLS)
		return;
	cq->vain = 0;
	rpost_cq_arm(cq, IB_CQ_NEXT_COMP, false);
}

/*
 * Poll the device for a program that found too few entries in its ring.  Return the
 * number of new ones.
 */
static u32 rpost_cq_fetch(struct rpost_cq *cq)
{
	u32 tail, count;

	spin_lock(&cq->lock);
	tail = rpost_cq_ring(cq)->tail;
	/* Poll until the ring has a new entry, or the device no completion. */
	while (rpost_cq_poll_locked(cq, RPOST_POLL_MOST) &&
	       rpost_cq_ring(cq)->tail == tail && !fatal_signal_pending(current)) {
		spin_unlock(&cq->lock);
		cond_resched();
		spin_lock(&cq->lock);
	}
	if (rpost_cq_ring(cq)->tail == tail)
		rpost_cq_idle(cq);
	count = rpost_cq_ring(cq)->tail - tail;
	spin_unlock(&cq->lock);
	return count;
}

int rpost_poll_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_poll_cq *cmd = &ucmd->cmd.poll_cq;
	struct rpost_cq *cq;
	int count;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	cq = rpost_cq_get(ucmd->file, cmd->handle);
	if (!cq)
		return -ENOENT;
	count = rpost_cq_fetch(cq);
	rpost_obj_put(&cq->obj);
	return count;
}

static int rpost_create_cq_validate(const struct rpost_create_cq *cmd,
				    const struct ib_device *ib_dev)
{
	if (cmd->reserved || cmd->reserved2)
		return -EOPNOTSUPP;
	if (!cmd->cqe || cmd->cqe > ib_dev->attrs.max_cqe ||
	    cmd->comp_vector >= ib_dev->num_comp_vectors)
		return -EINVAL;
	return 0;
}

int rpost_create_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_cq *cmd = &ucmd->cmd.create_cq;
	struct rpost_cring *ring;
	struct rpost_device *dev;
	struct rpost_cq *cq;
	int ret;

	dev = rpost_enter_device(ucmd, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = rpost_create_cq_validate(cmd, dev->ib_dev);
	if (ret)
		return ret;

	cq = kzalloc(sizeof(*cq), RPOST_GFP);
	if (!cq)
		return -ENOMEM;
	mutex_init(&cq->setup_lock);
	spin_lock_init(&cq->lock);
	spin_lock_init(&cq->arm_lock);
	INIT_LIST_HEAD(&cq->hwcqs);
	INIT_LIST_HEAD(&cq->event_link);
	cq->user_data = cmd->user_data;
	cq->comp_vector = cmd->comp_vector;
	cq->flags = cmd->flags;
	if (cmd->channel_fd != -1) {
		ret = -EBADF;
		cq->channel = rpost_comp_channel_get(ucmd->file, cmd->channel_fd);
		if (!cq->channel)
			goto err_free;
	}
	ret = -ENOMEM;
	ring = rpost_cq_ring_alloc(ucmd->file, cq->flags, roundup_pow_of_two(cmd->cqe));
	if (!ring)
		goto err_channel;
	rpost_ring_set_flags(ring, RPOST_RING_NEED_POLL, 0);
	RCU_INIT_POINTER(cq->ring, ring);
	ret = rpost_obj_reserve(ucmd->file, &cq->obj, RPOST_OBJ_CQ, dev, RPOST_GFP);
	if (ret)
		goto err_ring;

	cmd->cqe = ring->entries;
	cmd->mmap_offset = (u64)cq->obj.handle << PAGE_SHIFT;
	cmd->mmap_size = ring->mem->num_pages << PAGE_SHIFT;
	cmd->entries_offset = sizeof(struct rpost_ring);
	cmd->ring_offset = offset_in_page(ring->hdr);
	cmd->shared_page = ring->mem->number;
	cmd->handle = cq->obj.handle;
	return rpost_obj_answer(ucmd, &cq->obj);

err_ring:
	rpost_ring_free(ring);
err_channel:
	rpost_comp_channel_forget(cq);
err_free:
	kfree(cq);
	return ret;
}

/*
 * Return -EINVAL if more than @room completions wait, or if @head, which the
 * program writes, is impossible.
 */
static int rpost_ring_waiting(const struct rpost_cring *ring, u32 head, u32 room)
{
	u32 waiting = ring->tail - head;

	return waiting > ring->entries || waiting > room ? -EINVAL : 0;
}

static int rpost_resize_cq_check(struct rpost_cq *cq, u32 entries)
{
	struct rpost_cring *ring;
	int ret;

	spin_lock(&cq->lock);
	ring = rpost_cq_ring(cq);
	ret = rpost_ring_waiting(ring, READ_ONCE(ring->hdr->head), entries);
	spin_unlock(&cq->lock);
	return ret;
}

/*
 * Replace the ring @old by @ring, unless that has too few entries for the completions
 * that wait.  The caller frees @old after a grace period.
 */
static int rpost_cq_switch(struct rpost_cq *cq, struct rpost_cring *ring, struct rpost_cring *old)
{
	u32 head, seen;
	int ret;

	lockdep_assert_held(&cq->setup_lock);

	/* Copy without the lock: entries that wait do not change. */
	spin_lock(&cq->lock);
	head = READ_ONCE(old->hdr->head);
	seen = old->tail;
	ret = rpost_ring_waiting(old, head, ring->entries);
	spin_unlock(&cq->lock);
	if (ret)
		return ret;
	rpost_ring_copy(ring, old, head, seen);

	spin_lock(&cq->lock);
	ret = rpost_ring_waiting(old, head, ring->entries);
	if (!ret) {
		rpost_ring_copy(ring, old, seen, old->tail);
		spin_lock_irq(&cq->arm_lock);
		rpost_ring_take_over(ring, old, head);
		rcu_assign_pointer(cq->ring, ring);
		spin_unlock_irq(&cq->arm_lock);
	}
	spin_unlock(&cq->lock);
	return ret;
}

/*
 * Give @ring to the queue that has this handle now, and set @unused to the ring
 * to be freed.  The program may have destroyed the queue for which the ring was
 * made, and another queue may have the handle.  Its entries must have the same
 * size.
 */
static int rpost_cq_replace(struct rpost_file *file, u32 handle,
			    struct rpost_cring *ring, struct rpost_cring **unused)
{
	struct rpost_cq *cq = rpost_cq_get(file, handle);
	struct rpost_cring *old;
	int ret;

	if (!cq)
		return -ENOENT;
	mutex_lock(&cq->setup_lock);
	old = rcu_dereference_protected(cq->ring, lockdep_is_held(&cq->setup_lock));
	ret = -ENOENT;
	if (old->entry_size == ring->entry_size)
		ret = rpost_cq_switch(cq, ring, old);
	mutex_unlock(&cq->setup_lock);
	if (!ret) {
		*unused = old;
		synchronize_rcu();
	}
	rpost_obj_put(&cq->obj);
	return ret;
}

/* The device queues stay: the queue pairs determine their sizes. */
int rpost_resize_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_resize_cq *cmd = &ucmd->cmd.resize_cq;
	const struct rpost_resize_cq asked = *cmd;
	struct rpost_cring *ring, *unused;
	struct rpost_cq *cq;
	int ret;

	if (cmd->reserved || cmd->reserved2)
		return -EOPNOTSUPP;
	cq = rpost_cq_enter_get(ucmd, cmd->handle);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ret = -ENODEV;
	if (!rpost_device_alive(cq->obj.dev))
		goto out_put;
	ret = -EINVAL;
	if (!cmd->cqe || cmd->cqe > cq->obj.dev->ib_dev->attrs.max_cqe)
		goto out_put;
	cmd->cqe = roundup_pow_of_two(cmd->cqe);
	ret = rpost_resize_cq_check(cq, cmd->cqe);
	if (ret)
		goto out_put;
	ret = -ENOMEM;
	ring = rpost_cq_ring_alloc(ucmd->file, cq->flags, cmd->cqe);
	if (!ring)
		goto out_put;

	cmd->mmap_offset = (u64)cq->obj.handle << PAGE_SHIFT;
	cmd->mmap_size = ring->mem->num_pages << PAGE_SHIFT;
	cmd->ring_offset = offset_in_page(ring->hdr);
	cmd->shared_page = ring->mem->number;
	unused = ring;
	/* DESTROY waits for references, but never for the program's memory. */
	rpost_obj_put(&cq->obj);
	ret = rpost_respond(ucmd);
	if (!ret)
		ret = rpost_cq_replace(ucmd->file, cmd->handle, ring, &unused);
	if (ret) {
		/* Take the answer back. */
		*cmd = asked;
		rpost_respond(ucmd);
	}
	rpost_ring_free(unused);
	return ret;

out_put:
	rpost_obj_put(&cq->obj);
	return ret;
}
