// SPDX-License-Identifier: GPL-2.0
/*
 * Completion queues.  See struct rpost_cq and enum rpost_cq_mode.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "rpost.h"

/**
 * rpost_cq_deliver() - show what was pushed, and wake who asked
 * @cq: the queue, with its lock held
 * @interrupt: the device was armed, and has told of it
 */
void rpost_cq_deliver(struct rpost_cq *cq, bool interrupt)
{
	struct rpost_cring *ring = rpost_cq_ring(cq);
	bool wake;

	rpost_ring_publish(ring);
	if (cq->mode == RPOST_CQ_EXACT) {
		/* The program may have polled what the interrupt was for. */
		wake = interrupt && cq->notify;
	} else {
		wake = (cq->mode == RPOST_CQ_AUTO ||
			cq->mode == RPOST_CQ_POLLED) &&
		       rpost_ring_take_arm(ring);
		wake |= !!cq->notify;
	}
	if (wake) {
		WRITE_ONCE(cq->notify, 0);
		rpost_comp_channel_post(cq);
	}
}

static u32 rpost_cq_drain_locked(struct rpost_cq *cq, u32 budget)
{
	struct rpost_hwcq *hwcq;
	u32 done = 0;

	list_for_each_entry(hwcq, &cq->hwcqs, link)
		done += rpost_hwcq_process(hwcq, budget - done);
	if (done)
		rpost_cq_deliver(cq, false);
	return done;
}

/**
 * rpost_cq_drain() - fetch what the device has into the ring
 * @cq: the queue
 * @budget: completions at most
 *
 * Return: completions fetched, of which not all go into the ring.
 */
u32 rpost_cq_drain(struct rpost_cq *cq, u32 budget)
{
	u32 done;

	spin_lock_bh(&cq->lock);
	done = rpost_cq_drain_locked(cq, budget);
	spin_unlock_bh(&cq->lock);
	return done;
}

/*
 * The device stays as it is armed, for one interrupt at most.  Who has armed the
 * ring meanwhile keeps it.
 */
static void rpost_cq_go_idle(struct rpost_cq *cq)
{
	struct rpost_cring *ring;

	spin_lock_bh(&cq->lock);
	ring = rpost_cq_ring(cq);
	if (cq->mode == RPOST_CQ_AUTO && !cq->notify &&
	    !rpost_ring_armed(ring)) {
		rpost_ring_set_flags(ring, RPOST_RING_NEED_POLL, 0);
		/* Pairs with the program's barrier between @arm and @flags. */
		smp_mb();
		if (rpost_ring_armed(ring)) {
			rpost_ring_set_flags(ring, 0, RPOST_RING_NEED_POLL);
		} else {
			WRITE_ONCE(cq->mode, RPOST_CQ_IDLE);
			cq->idle_posts = 0;
		}
	}
	spin_unlock_bh(&cq->lock);
}

/*
 * The program asks, and the device is armed from now on.  If it asks after few
 * posts, as who polls until nothing is left does, interrupts cost it less.
 */
static void rpost_cq_end_idle(struct rpost_cq *cq, enum rpost_cq_mode mode)
{
	lockdep_assert_held(&cq->lock);

	if (cq->armed && cq->mode == RPOST_CQ_IDLE) {
		u32 posts = RPOST_PROMPT_MIN;

		if (cq->idle_posts < cq->prompt_posts)
			posts = min(2 * cq->prompt_posts, RPOST_PROMPT_MAX);
		WRITE_ONCE(cq->prompt_posts, posts);
	}
	cq->armed = true;
	WRITE_ONCE(cq->mode, mode);
}

static void rpost_cq_idle_post(struct rpost_cq *cq)
{
	spin_lock_bh(&cq->lock);
	if (cq->mode == RPOST_CQ_IDLE &&
	    rpost_cq_drain_locked(cq, RPOST_DRAIN_BATCH))
		cq->idle_posts++;
	spin_unlock_bh(&cq->lock);
}

/* Does the device work in posts?  Of one that is not known to, few are looked at. */
static bool rpost_device_prompt(struct rpost_device *dev, struct rpost_queue *sq,
				u32 head)
{
	u32 prompt = READ_ONCE(dev->prompt), n;

	if (prompt >= RPOST_PROMPT_DEVICE)
		return true;
	n = READ_ONCE(sq->prompt);
	WRITE_ONCE(sq->prompt, (n + 1) % RPOST_PROMPT_SAMPLE);
	if (n)
		return false;
	if ((s32)(READ_ONCE(sq->tail) - head) >= 0)
		WRITE_ONCE(dev->prompt, prompt + 1);
	else if (prompt)
		WRITE_ONCE(dev->prompt, 0);
	return false;
}

/**
 * rpost_cq_posted() - work requests have been posted
 * @cq: the queue that gets their completions
 * @sq: where, not locked
 * @head: its head after the last of them, which is signaled
 *
 * A device whose protocol runs before the post returns (rxe before 6.9) needs no
 * interrupt: the poster finds the completions, and the program need not ask.
 */
void rpost_cq_posted(struct rpost_cq *cq, struct rpost_queue *sq, u32 head)
{
	u32 prompt;

	switch (READ_ONCE(cq->mode)) {
	case RPOST_CQ_IDLE:
		if (READ_ONCE(cq->obj.dev->prompt) >= RPOST_PROMPT_DEVICE)
			rpost_cq_idle_post(cq);
		break;
	case RPOST_CQ_AUTO:
		if (!rpost_device_prompt(cq->obj.dev, sq, head))
			break;
		prompt = READ_ONCE(sq->prompt);
		if ((s32)(READ_ONCE(sq->tail) - head) < 0) {
			if (prompt)
				WRITE_ONCE(sq->prompt, 0);
		} else if (++prompt < READ_ONCE(cq->prompt_posts)) {
			WRITE_ONCE(sq->prompt, prompt);
		} else {
			WRITE_ONCE(sq->prompt, 0);
			rpost_cq_go_idle(cq);
		}
		break;
	case RPOST_CQ_EXACT:
	case RPOST_CQ_POLLED:
		break;
	}
}

/**
 * rpost_cq_complete() - complete a work request that the device has not
 * @cq: the queue, not locked
 * @wc: what the device would say; an error
 */
void rpost_cq_complete(struct rpost_cq *cq, struct ib_wc *wc)
{
	spin_lock_bh(&cq->lock);
	wc->wr_cqe->done(NULL, wc);
	rpost_cq_deliver(cq, true);
	spin_unlock_bh(&cq->lock);
}

/**
 * rpost_cq_poller_fetch() - fetch what the device has, for the poller of rings
 * @cq: the queue; what it gets until rpost_cq_poller_leaves() is the poller's to
 *      fetch
 *
 * A queue whose device has never been armed is left as it is, see enum
 * rpost_cq_mode.
 *
 * Return: completions fetched.
 */
u32 rpost_cq_poller_fetch(struct rpost_cq *cq)
{
	u32 done = 0;

	spin_lock_bh(&cq->lock);
	if (cq->mode == RPOST_CQ_AUTO ||
	    (cq->mode == RPOST_CQ_IDLE && cq->armed)) {
		rpost_ring_set_flags(rpost_cq_ring(cq), 0,
				     RPOST_RING_NEED_POLL);
		WRITE_ONCE(cq->mode, RPOST_CQ_POLLED);
	}
	if (cq->mode != RPOST_CQ_EXACT)
		done = rpost_cq_drain_locked(cq, RPOST_POLL_BUDGET);
	spin_unlock_bh(&cq->lock);
	return done;
}

/**
 * rpost_cq_poller_leaves() - the poller of rings fetches no more for now
 * @cq: the queue
 *
 * Its device is armed again.
 */
void rpost_cq_poller_leaves(struct rpost_cq *cq)
{
	struct rpost_hwcq *hwcq;

	spin_lock_bh(&cq->lock);
	if (cq->mode == RPOST_CQ_POLLED) {
		WRITE_ONCE(cq->mode, RPOST_CQ_AUTO);
		list_for_each_entry(hwcq, &cq->hwcqs, link)
			rpost_hwcq_arm(hwcq);
	}
	spin_unlock_bh(&cq->lock);
}

/**
 * rpost_cq_tell() - add a completion of what no device has had, and show it
 * @cq: the queue, not locked
 * @wc: the completion
 */
void rpost_cq_tell(struct rpost_cq *cq, const struct rpost_wc *wc)
{
	struct rpost_wc *entry;

	spin_lock_bh(&cq->lock);
	entry = rpost_ring_next(rpost_cq_ring(cq));
	/* What is beyond is reserved. */
	if (entry)
		memcpy(entry, wc, RPOST_WC_SMALL_SIZE);
	else
		rpost_ring_overrun(rpost_cq_ring(cq));
	rpost_cq_deliver(cq, true);
	spin_unlock_bh(&cq->lock);
}

/**
 * rpost_cq_see() - how far has the program consumed?
 * @cq: the queue
 *
 * The ring that is found here is not older than a completion that has been seen
 * to be in it.
 *
 * Return: what rpost_ring_consumed() asks for.
 */
struct rpost_ring_seen rpost_cq_see(struct rpost_cq *cq)
{
	struct rpost_ring_seen seen;

	rcu_read_lock();
	seen = rpost_ring_see(rcu_dereference(cq->ring));
	rcu_read_unlock();
	return seen;
}

/**
 * rpost_cq_shutdown() - give a completion queue back to its device
 * @obj: the queue; no queue pair is attached
 *
 * Return: 0.
 */
int rpost_cq_shutdown(struct rpost_obj *obj)
{
	struct rpost_cq *cq = container_of(obj, struct rpost_cq, obj);
	LIST_HEAD(hwcqs);

	spin_lock_bh(&cq->lock);
	list_splice_init(&cq->hwcqs, &hwcqs);
	/*
	 * Who sleeps for a device that has gone would sleep for ever.  Of a queue that
	 * the program destroys there is no event.
	 */
	if (!obj->ending &&
	    (cq->notify || rpost_ring_take_arm(rpost_cq_ring(cq)))) {
		WRITE_ONCE(cq->notify, 0);
		rpost_comp_channel_post(cq);
	}
	spin_unlock_bh(&cq->lock);

	rpost_hwcqs_destroy(cq, &hwcqs);
	return 0;
}

static struct rpost_cring *rpost_cq_ring_alloc(struct rpost_file *file, u32 flags,
					       u32 entries)
{
	struct rpost_cring *ring = kzalloc(sizeof(*ring), RPOST_GFP);
	u32 entry_size = flags & RPOST_CQ_SMALL_ENTRIES ?
			 RPOST_WC_SMALL_SIZE : sizeof(struct rpost_wc);

	if (ring && rpost_ring_alloc(ring, file->user, flags & RPOST_CQ_SHARED_PAGE ?
				     &file->rings : NULL, entries, entry_size)) {
		kfree(ring);
		ring = NULL;
	}
	return ring;
}

static void rpost_cq_ring_free(struct rpost_cring *ring)
{
	rpost_ring_free(ring);
	kfree(ring);
}

/**
 * rpost_cq_free() - free a completion queue's memory
 * @obj: the queue, shut down
 */
void rpost_cq_free(struct rpost_obj *obj)
{
	struct rpost_cq *cq = container_of(obj, struct rpost_cq, obj);

	rpost_comp_channel_forget(cq);
	if (cq->channel)
		rpost_comp_channel_put(cq->channel);
	rpost_cq_ring_free(rcu_dereference_protected(cq->ring, true));
	rpost_device_put(cq->obj.dev);
	kfree_rcu(cq, obj.rcu);
}

/**
 * rpost_cq_mmap() - map a completion queue's ring
 * @file: the open file
 * @vma: where; its offset is the queue's handle in pages
 *
 * Return: 0 or a negative errno.
 */
int rpost_cq_mmap(struct rpost_file *file, struct vm_area_struct *vma)
{
	struct rpost_obj *obj;
	struct rpost_cq *cq;
	int ret;

	if (vma->vm_pgoff > U32_MAX)
		return -EINVAL;
	obj = rpost_obj_get(file, vma->vm_pgoff, RPOST_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	cq = container_of(obj, struct rpost_cq, obj);
	mutex_lock(&cq->setup_lock);
	ret = rpost_ring_mmap(rcu_dereference_protected(cq->ring, lockdep_is_held(&cq->setup_lock)),
			      vma);
	mutex_unlock(&cq->setup_lock);
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_arm_cq_ioctl() - ask for an event
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_arm_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_arm_cq *cmd = &ucmd->cmd.arm_cq;
	u32 kind = IB_CQ_NEXT_COMP;
	struct rpost_cring *ring;
	struct rpost_hwcq *hwcq;
	struct rpost_obj *obj;
	struct rpost_cq *cq;
	bool taken = false;

	if (cmd->reserved || (cmd->flags & ~RPOST_ARM_SOLICITED))
		return -EOPNOTSUPP;
	obj = rpost_obj_get(ucmd->file, cmd->handle, RPOST_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	cq = container_of(obj, struct rpost_cq, obj);

	spin_lock_bh(&cq->lock);
	ring = rpost_cq_ring(cq);
	if (cmd->flags & RPOST_ARM_SOLICITED) {
		bool looked_at = cq->mode == RPOST_CQ_AUTO ||
				 cq->mode == RPOST_CQ_POLLED;

		kind = IB_CQ_SOLICITED;
		rpost_cq_end_idle(cq, RPOST_CQ_EXACT);
		/* From now on the program asks by call, and has to look again. */
		rpost_ring_set_flags(ring, RPOST_RING_NEED_POLL, 0);
		taken = looked_at && rpost_ring_take_arm(ring);
		if (taken)
			kind = IB_CQ_NEXT_COMP;
	} else if (cq->mode == RPOST_CQ_IDLE) {
		rpost_cq_end_idle(cq, RPOST_CQ_AUTO);
	}
	/* The stronger of two requests stands. */
	if (cq->notify != IB_CQ_NEXT_COMP)
		WRITE_ONCE(cq->notify, kind);
	if (cq->mode != RPOST_CQ_EXACT)
		rpost_ring_set_flags(ring, 0, RPOST_RING_NEED_POLL);

	/* What was to be fetched for the ring's arm may be there already. */
	list_for_each_entry(hwcq, &cq->hwcqs, link) {
		if (cq->mode == RPOST_CQ_EXACT && !taken)
			ib_req_notify_cq(hwcq->ib_cq, cq->notify);
		else
			rpost_hwcq_arm(hwcq);
	}
	spin_unlock_bh(&cq->lock);

	rpost_obj_put(obj);
	return 0;
}

/**
 * rpost_poll_cq_ioctl() - fetch completions into the ring
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_poll_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_poll_cq *cmd = &ucmd->cmd.poll_cq;
	struct rpost_hwcq *hwcq;
	struct rpost_obj *obj;
	struct rpost_cq *cq;
	u32 tail;

	obj = rpost_obj_get(ucmd->file, cmd->handle, RPOST_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	cq = container_of(obj, struct rpost_cq, obj);

	spin_lock_bh(&cq->lock);
	if (cq->mode == RPOST_CQ_IDLE) {
		rpost_cq_end_idle(cq, RPOST_CQ_AUTO);
		rpost_ring_set_flags(rpost_cq_ring(cq), 0,
				     RPOST_RING_NEED_POLL);
		list_for_each_entry(hwcq, &cq->hwcqs, link)
			rpost_hwcq_arm(hwcq);
	}
	tail = rpost_cq_ring(cq)->tail;
	/* Something for the program, or nothing is left. */
	while (rpost_cq_drain_locked(cq, RPOST_DRAIN_BATCH) &&
	       rpost_cq_ring(cq)->tail == tail) {
		spin_unlock_bh(&cq->lock);
		cond_resched();
		spin_lock_bh(&cq->lock);
	}
	cmd->count = rpost_cq_ring(cq)->tail - tail;
	spin_unlock_bh(&cq->lock);

	rpost_obj_put(obj);
	return rpost_respond(ucmd);
}

static int rpost_create_cq_validate(const struct rpost_ucmd *ucmd,
				    struct ib_device *ib_dev)
{
	const struct rpost_create_cq *cmd = &ucmd->cmd.create_cq;

	if (cmd->reserved || cmd->reserved2 ||
	    (cmd->flags & ~(RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE)))
		return -EOPNOTSUPP;
	/* It could not tell where the ring is. */
	if ((cmd->flags & RPOST_CQ_SHARED_PAGE) &&
	    ucmd->size < offsetofend(struct rpost_create_cq, ring_offset))
		return -EINVAL;
	if (!cmd->cqe || cmd->cqe > ib_dev->attrs.max_cqe ||
	    cmd->comp_vector >= ib_dev->num_comp_vectors)
		return -EINVAL;
	return 0;
}

/**
 * rpost_create_cq_ioctl() - create a completion queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_create_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_cq *cmd = &ucmd->cmd.create_cq;
	struct rpost_cring *ring;
	struct rpost_device *dev;
	struct rpost_cq *cq;
	int ret;

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ret = rpost_create_cq_validate(ucmd, dev->ib_dev);
	if (ret)
		goto err_exit;

	ret = -ENOMEM;
	cq = kzalloc(sizeof(*cq), RPOST_GFP);
	if (!cq)
		goto err_exit;
	mutex_init(&cq->setup_lock);
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->hwcqs);
	INIT_LIST_HEAD(&cq->event_link);
	INIT_LIST_HEAD(&cq->kick_link);
	cq->user_data = cmd->user_data;
	cq->comp_vector = cmd->comp_vector;
	cq->flags = cmd->flags;
	cq->cqe = roundup_pow_of_two(cmd->cqe);
	cq->prompt_posts = RPOST_PROMPT_MIN;
	if (cmd->channel_fd != -1) {
		ret = -EBADF;
		cq->channel = rpost_comp_channel_get(ucmd->file,
						     cmd->channel_fd);
		if (!cq->channel)
			goto err_free;
	}
	ret = -ENOMEM;
	ring = rpost_cq_ring_alloc(ucmd->file, cq->flags, cq->cqe);
	if (!ring)
		goto err_channel;
	rpost_ring_set_flags(ring, RPOST_RING_NEED_POLL, 0);
	RCU_INIT_POINTER(cq->ring, ring);
	ret = rpost_obj_reserve(ucmd->file, &cq->obj, RPOST_OBJ_CQ, dev);
	if (ret)
		goto err_ring;

	cmd->cqe = cq->cqe;
	cmd->mmap_offset = (u64)cq->obj.handle << PAGE_SHIFT;
	cmd->mmap_size = ring->mem->num_pages << PAGE_SHIFT;
	cmd->entries_offset = sizeof(struct rpost_ring);
	cmd->ring_offset = rpost_ring_offset(ring);
	cmd->handle = cq->obj.handle;
	ret = rpost_respond(ucmd);
	if (ret)
		goto err_unreserve;
	rpost_obj_publish(&cq->obj);
	return 0;

err_unreserve:
	rpost_obj_unreserve(&cq->obj);
err_ring:
	rpost_cq_ring_free(ring);
err_channel:
	if (cq->channel)
		rpost_comp_channel_put(cq->channel);
err_free:
	kfree(cq);
err_exit:
	rpost_device_put(dev);
	return ret;
}

/* Completions that wait.  A program's index that cannot be is an error. */
static int rpost_ring_waiting(const struct rpost_cring *ring, u32 head,
			      u32 room)
{
	u32 waiting = ring->tail - head;

	return waiting > ring->entries || waiting > room ? -EINVAL : 0;
}

static int rpost_resize_cq_check(struct rpost_cq *cq, u32 entries)
{
	struct rpost_cring *ring;
	int ret;

	spin_lock_bh(&cq->lock);
	ring = rpost_cq_ring(cq);
	ret = rpost_ring_waiting(ring, READ_ONCE(ring->hdr->head), entries);
	spin_unlock_bh(&cq->lock);
	return ret;
}

/*
 * Go over to @ring.  Fails if more completions wait now than fit.  The old ring
 * is left, for its owner to free after a grace period.
 */
static int rpost_cq_switch(struct rpost_cq *cq, struct rpost_cring *ring,
			   struct rpost_cring **old)
{
	u32 head, seen;
	int ret;

	lockdep_assert_held(&cq->setup_lock);

	/* Most of the copying needs no lock: what waits does not change. */
	spin_lock_bh(&cq->lock);
	*old = rpost_cq_ring(cq);
	head = READ_ONCE((*old)->hdr->head);
	seen = (*old)->tail;
	ret = rpost_ring_waiting(*old, head, ring->entries);
	spin_unlock_bh(&cq->lock);
	if (ret)
		return ret;
	rpost_ring_copy(ring, *old, head, seen);

	spin_lock_bh(&cq->lock);
	ret = rpost_ring_waiting(*old, head, ring->entries);
	if (!ret) {
		rpost_ring_copy(ring, *old, seen, (*old)->tail);
		rpost_ring_take_over(ring, *old, head);
		rcu_assign_pointer(cq->ring, ring);
		WRITE_ONCE(cq->cqe, ring->entries);
	}
	spin_unlock_bh(&cq->lock);
	return ret;
}

/**
 * rpost_resize_cq_ioctl() - give a completion queue a new ring
 * @ucmd: the command
 *
 * The device's queues stay as they are: their sizes come from the queue pairs.
 *
 * Return: 0 or a negative errno.
 */
int rpost_resize_cq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_resize_cq *cmd = &ucmd->cmd.resize_cq;
	const struct rpost_resize_cq asked = *cmd;
	struct rpost_cring *ring, *unused;
	struct rpost_obj *obj;
	struct rpost_cq *cq;
	u32 flags;
	int ret;

	if (cmd->reserved || cmd->reserved2)
		return -EOPNOTSUPP;
	obj = rpost_obj_get(ucmd->file, cmd->handle, RPOST_OBJ_CQ);
	if (!obj)
		return -ENOENT;
	cq = container_of(obj, struct rpost_cq, obj);
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
	flags = cq->flags;
	if (ucmd->size < offsetofend(struct rpost_resize_cq, ring_offset))
		flags &= ~RPOST_CQ_SHARED_PAGE;
	ring = rpost_cq_ring_alloc(ucmd->file, flags, cmd->cqe);
	if (!ring)
		goto out_put;

	cmd->mmap_offset = (u64)cq->obj.handle << PAGE_SHIFT;
	cmd->mmap_size = ring->mem->num_pages << PAGE_SHIFT;
	cmd->ring_offset = rpost_ring_offset(ring);
	unused = ring;
	ret = rpost_respond(ucmd);
	if (!ret) {
		mutex_lock(&cq->setup_lock);
		ret = rpost_cq_switch(cq, ring, &unused);
		mutex_unlock(&cq->setup_lock);
		if (ret) {
			/* The answer does not hold. */
			*cmd = asked;
			rpost_respond(ucmd);
			unused = ring;
		} else {
			synchronize_rcu();
		}
	}
	rpost_cq_ring_free(unused);
out_put:
	rpost_obj_put(obj);
	return ret;
}
