// SPDX-License-Identifier: GPL-2.0
/*
 * The check of a work request's entries, and its room in a queue.  send.c and recv.c
 * call both.
 */
#include "post/post.h"

/* Check an entry, and take a use of its region if they are counted. */
static int rpost_check_entry(struct rpost_check *check, struct rpost_sge *sge,
			     bool last)
{
	bool cut = last && check->kind->opcode == RPOST_WC_RECV;
	struct rpost_mr *used;
	bool good;
	int ret;

	good = rpost_mr_take(check->pd, sge, check->access, cut, &used);
	if (used) {
		ret = rpost_uses_add(check->uses, used);
		if (ret)
			return ret;
	}
	if (likely(good))
		return 0;
	if (!check->pd->bad_lkey)
		return -EINVAL;
	check->kind->bad_key = true;
	sge->lkey = check->pd->bad_lkey;
	sge->length = min(sge->length, RPOST_MAX_MSG / 2);
	return 0;
}

static int rpost_check_entries(struct rpost_check *check, struct rpost_sge *sges,
			       u32 num)
{
	u32 i, n = 0, taken = 0, found = check->uses->num;
	int ret;

	for (i = 0; i < num && !check->kind->bad_key; i++) {
		if (!sges[i].length)
			continue;
		if (n != i)
			sges[n] = sges[i];
		if (!sges[n].lkey && taken < found) {
			sges[n].lkey = rpost_uses_at(check->uses, taken++)->lkey;
		} else {
			ret = rpost_check_entry(check, &sges[n], i == num - 1);
			if (ret)
				return ret;
		}
		if (sges[n].length > RPOST_MAX_MSG - check->total)
			return -EINVAL;
		check->total += sges[n].length;
		n++;
	}
	return n;
}

/*
 * Check the scatter/gather entries of a work request.  The fields of @check for
 * results are 0, and there are no uses yet.  Empty entries are left out.
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
 * Return how many entries there are; or -EINVAL, -ENOBUFS, or RPOST_NEEDS_MEMORY with the
 * entries as they were; without uses after an error.
 */
int rpost_check_many(struct rpost_check *check, struct rpost_sge *sges, u32 num)
{
	int ret = 0;

	if (check->memory)
		ret = rpost_memory_find(check, sges, num);
	if (!ret)
		ret = rpost_check_entries(check, sges, num);
	if (ret >= 0 && check->uses->num && check->queue &&
	    rpost_queue_add_uses(check->queue))
		ret = -ENOBUFS;
	if (ret < 0)
		rpost_uses_drop(check->uses);
	return ret;
}

/* Free the slots whose completions the program has consumed. */
static void rpost_queue_reclaim(struct rpost_queue *q, struct rpost_cq *cq)
{
	struct rpost_ring_seen seen;
	struct rpost_wqe *wqe;
	u32 tail;

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

/*
 * Free slots, as rpost_queue_room() has found less than @n.  The queue is locked.  Return the
 * number of slots that can be taken, at most @n.
 */
u32 rpost_queue_make_room(struct rpost_queue *q, struct rpost_cq *cq, u32 n)
{
	rpost_queue_reclaim(q, cq);
	if (rpost_queue_free(q) < n) {
		/* Poll the device, in case the program does not. */
		rpost_cq_poll(cq);
		rpost_queue_reclaim(q, cq);
	}
	return min(rpost_queue_free(q), n);
}
