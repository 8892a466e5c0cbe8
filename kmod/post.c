// SPDX-License-Identifier: GPL-2.0
/*
 * Posts: work requests from the program to the device.
 *
 * A block of work requests is copied once into kernel memory, and checked and
 * built there, in batches.  Each batch goes to the device as one chain.  The
 * memory is kept for later posts, see struct rpost_scratch.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "post.h"
#include "trace.h"

#define RPOST_STACK_BYTES	256

/**
 * rpost_check_many() - check the scatter/gather entries of a work request
 * @pd: the domain of the regions
 * @sges: the entries; empty ones are left out
 * @num: number of @sges
 * @access: required access to the regions, RPOST_ACCESS_*
 * @recv: it is a receive
 * @total: out: bytes of all entries
 * @bad_key: out: an entry names memory that the program may not use
 *
 * The first entry whose key the program may not use gets the key that the
 * device refuses.  Its length no longer matters, but must pass the check of the
 * sum: it is cut to half the maximum, which leaves half for the entries before.
 * Later entries no longer matter either, and are left out.
 *
 * The last entry of a receive may be longer than the rest of its region, and is
 * cut to that: devices only look at the memory that a message needs, and programs
 * rely on it (perftest).
 *
 * Return: how many entries there are, or -EINVAL.
 */
int rpost_check_many(struct rpost_pd *pd, struct rpost_sge *sges, u32 num,
		     u32 access, bool recv, u32 *total, bool *bad_key)
{
	u32 i, n = 0, sum = 0;
	bool good, bad = false;

	for (i = 0; i < num && !bad; i++) {
		if (!sges[i].length)
			continue;
		if (n != i)
			sges[n] = sges[i];
		if (recv && i == num - 1)
			good = rpost_mr_cut(pd, &sges[n], access);
		else
			good = rpost_mr_check(pd, &sges[n], access);
		if (unlikely(!good)) {
			if (!pd->bad_lkey)
				return -EINVAL;
			bad = true;
			sges[n].lkey = pd->bad_lkey;
			sges[n].length = min(sges[n].length, RPOST_MAX_MSG / 2);
		}
		if (sges[n].length > RPOST_MAX_MSG - sum)
			return -EINVAL;
		sum += sges[n].length;
		n++;
	}
	*total = sum;
	*bad_key = bad;
	return n;
}

/*
 * Free the slots whose completions the program has consumed, if less than @n
 * are free.  Return the number of slots that can be taken.
 */
static u32 rpost_queue_reclaim(struct rpost_queue *q, struct rpost_cq *cq,
			       u32 n)
{
	struct rpost_ring_seen seen;
	struct rpost_wqe *wqe;
	u32 tail;

	if (q->head - q->free + n > q->max_wr) {
		/* Pairs with the release in rpost_queue_retire(). */
		tail = smp_load_acquire(&q->tail);
		seen = rpost_cq_see(cq);
		while (q->free != tail) {
			wqe = &q->wqes[q->free & q->mask];
			if (wqe->kind.waits && !rpost_ring_consumed(seen, wqe->pos))
				break;
			q->free++;
		}
	}
	return q->max_wr - (q->head - q->free);
}

/**
 * rpost_queue_room() - are there free slots?
 * @q: the queue, locked
 * @cq: the completion queue of @q
 * @n: number of slots wanted, at least 1
 *
 * Return: the number of slots that can be taken, @n at most.
 */
u32 rpost_queue_room(struct rpost_queue *q, struct rpost_cq *cq, u32 n)
{
	u32 room;

	lockdep_assert_held(&q->lock);

	room = rpost_queue_reclaim(q, cq, n);
	if (room < n) {
		/* Poll the device, in case the program does not. */
		rpost_cq_poll(cq, RPOST_POLL_MOST);
		room = rpost_queue_reclaim(q, cq, n);
	}
	return min(room, n);
}

/* Without memory return NULL: then work requests are posted one by one. */
static struct rpost_scratch *rpost_scratch_take(struct rpost_file *file)
{
	struct rpost_scratch *scratch;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++) {
		if (!READ_ONCE(file->scratch[i]))
			continue;
		scratch = xchg(&file->scratch[i], NULL);
		if (scratch)
			return scratch;
	}
	return kmalloc(sizeof(*scratch), RPOST_GFP);
}

static void rpost_scratch_give(struct rpost_file *file,
			       struct rpost_scratch *scratch)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++) {
		if (!READ_ONCE(file->scratch[i]) &&
		    !cmpxchg(&file->scratch[i], NULL, scratch))
			return;
	}
	kfree(scratch);
}

/**
 * rpost_scratch_free() - free the memory that an open file keeps for posts
 * @file: the open file, on which no post runs any more
 */
void rpost_scratch_free(struct rpost_file *file)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++)
		kfree(file->scratch[i]);
}

/* Do @count work requests of at least @min bytes make up the block? */
static int rpost_check_block(const void *block, u32 bytes, u32 count, u32 min)
{
	u32 size, i;

	static_assert(offsetof(struct rpost_send_wr, size) ==
		      offsetof(struct rpost_recv_wr, size));

	for (i = 0; i < count; i++) {
		if (bytes < min)
			return -EINVAL;
		size = ((const struct rpost_recv_wr *)block)->size;
		if (size < min || size > bytes || size % 8)
			return -EINVAL;
		block += size;
		bytes -= size;
	}
	return bytes ? -EINVAL : 0;
}

static int rpost_post(struct rpost_ucmd *ucmd, u32 min_size,
		      enum rpost_obj_type type,
		      int (*post)(struct rpost_obj *obj, struct rpost_post *cmd,
				  void *block, struct rpost_scratch *scratch))
{
	struct rpost_post *cmd = &ucmd->cmd.post_send;
	u32 __user *posted = &((struct rpost_post __user *)ucmd->ubuf)->posted;
	u64 small[RPOST_STACK_BYTES / sizeof(u64)] rpost_uninitialized;
	struct rpost_scratch *scratch = NULL;
	struct rpost_obj *obj;
	void *block = small;
	int ret = -EINVAL;

	/*
	 * Write it first, so that nothing is posted if the program cannot be
	 * told.  Most posts take all work requests, and so write it only once.
	 */
	cmd->posted = 0;
	if (put_user(cmd->count, posted))
		return -EFAULT;
	if (!cmd->count || cmd->wrs_size > RPOST_MAX_WR_BYTES)
		goto out;
	if (cmd->count > 1)
		scratch = rpost_scratch_take(ucmd->file);
	if (cmd->wrs_size > sizeof(small)) {
		if (scratch && cmd->wrs_size <= sizeof(scratch->block))
			block = scratch->block;
		else
			block = rpost_kvmalloc(cmd->wrs_size, 0);
		/* ENOMEM would mean a full queue. */
		ret = -ENOBUFS;
		if (!block)
			goto out;
	}
	ret = -EFAULT;
	if (copy_from_user(block, u64_to_user_ptr(cmd->wrs), cmd->wrs_size))
		goto out;
	ret = rpost_check_block(block, cmd->wrs_size, cmd->count, min_size);
	if (ret)
		goto out;

	ret = -ENOENT;
	obj = rpost_obj_get(ucmd->file, cmd->qp, type);
	if (!obj)
		goto out;
	ret = post(obj, cmd, block, scratch);
	trace_rpost_post(obj, type == RPOST_OBJ_QP ?
			 container_of(obj, struct rpost_qp, obj)->qp_num : 0,
			 post == rpost_post_sends, cmd->count, cmd->posted, ret);
	rpost_obj_put(obj);
out:
	if (block != small && !(scratch && block == scratch->block))
		kvfree(block);
	if (scratch)
		rpost_scratch_give(ucmd->file, scratch);
	if (cmd->posted != cmd->count && put_user(cmd->posted, posted))
		ret = -EFAULT;
	return ret;
}

/**
 * rpost_post_send_ioctl() - post to the send queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_post_send_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, sizeof(struct rpost_send_wr), RPOST_OBJ_QP,
			  rpost_post_sends);
}

/**
 * rpost_post_recv_ioctl() - post to the receive queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_post_recv_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, sizeof(struct rpost_recv_wr), RPOST_OBJ_QP,
			  rpost_post_recvs);
}

/**
 * rpost_post_srq_recv_ioctl() - post to a shared receive queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_post_srq_recv_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, sizeof(struct rpost_recv_wr), RPOST_OBJ_SRQ,
			  rpost_post_recvs);
}

/**
 * rpost_post_ring() - post work requests that came from a ring
 * @qp: the queue pair
 * @block: work requests of valid sizes, in kernel memory; all but their sizes
 *         may be changed
 * @count: how many
 * @posted: out: number of work requests that were posted
 *
 * Return: 0, or a negative errno for the first that was not posted.
 */
int rpost_post_ring(struct rpost_qp *qp, void *block, u32 count, u32 *posted)
{
	struct rpost_scratch *scratch = rpost_scratch_take(qp->obj.file);
	struct rpost_post cmd = { .count = count };
	int ret;

	ret = rpost_post_sends(&qp->obj, &cmd, block, scratch);
	trace_rpost_post(&qp->obj, qp->qp_num, true, count, cmd.posted, ret);
	if (scratch)
		rpost_scratch_give(qp->obj.file, scratch);
	*posted = cmd.posted;
	return ret;
}
