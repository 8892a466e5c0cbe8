// SPDX-License-Identifier: GPL-2.0
/*
 * The counted regions that work requests use.  See struct rpost_uses.
 */
#include <linux/slab.h>

#include "memory/cache.h"
#include "queue/qp.h"

#define RPOST_USES_BYTES	(RPOST_MAX_SGE * sizeof(struct rpost_mr *))

/*
 * Pass the use of @mr on to @uses.  Return 0; or -ENOBUFS, and the use has been
 * dropped.
 */
int rpost_uses_add(struct rpost_uses *uses, struct rpost_mr *mr)
{
	struct rpost_mr **mrs;

	if (!uses->num) {
		uses->mr = mr;
		uses->num = 1;
		return 0;
	}
	if (uses->num == 1) {
		mrs = rpost_charged_zalloc(mr->obj.file, RPOST_USES_BYTES, RPOST_USES_BYTES);
		if (!mrs) {
			rpost_mr_unuse(mr);
			return -ENOBUFS;
		}
		mrs[0] = uses->mr;
		uses->mrs = mrs;
	}
	uses->mrs[uses->num++] = mr;
	return 0;
}

/* Call in any context, also with spinlocks held. */
void rpost_uses_drop(struct rpost_uses *uses)
{
	u32 i, num = uses->num;
	struct rpost_mr *last;

	uses->num = 0;
	if (!num)
		return;
	last = uses->mr;
	if (num > 1) {
		last = uses->mrs[0];
		for (i = 1; i < num; i++)
			rpost_mr_unuse(uses->mrs[i]);
		rpost_charged_free(last->obj.file, uses->mrs, RPOST_USES_BYTES);
	}
	/* The file may go with this last use. */
	rpost_mr_unuse(last);
}

static unsigned long rpost_queue_uses_bytes(const struct rpost_queue *q)
{
	return (q->mask + 1ul) * sizeof(*q->uses);
}

/*
 * Make room for the uses of a queue's work requests; most queues never need it.
 * rpost_queue_uncharge_uses() undoes the charge.  Return 0 or -ENOBUFS.
 */
int rpost_queue_add_uses(struct rpost_queue *q)
{
	struct rpost_file *file = q->wqes->qp->obj.file;
	struct rpost_uses *uses;

	if (READ_ONCE(q->uses))
		return 0;
	if (rpost_charge(file, rpost_queue_uses_bytes(q)))
		return -ENOBUFS;
	uses = rpost_kvcalloc(q->mask + 1, sizeof(*uses));
	if (uses && !cmpxchg(&q->uses, NULL, uses))
		return 0;
	kvfree(uses);
	rpost_uncharge(file, rpost_queue_uses_bytes(q));
	return uses ? 0 : -ENOBUFS;
}

/* All uses of the queue have been dropped. */
void rpost_queue_uncharge_uses(struct rpost_queue *q)
{
	if (q->uses)
		rpost_uncharge(q->wqes->qp->obj.file, rpost_queue_uses_bytes(q));
}

/*
 * Drop the uses of slots that end.  @from is the number of the first slot, and @to
 * that of the slot behind the last.
 */
void rpost_queue_drop_uses(struct rpost_queue *q, u32 from, u32 to)
{
	while (from != to)
		rpost_uses_drop(&q->uses[from++ & q->mask]);
}
