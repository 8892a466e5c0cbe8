// SPDX-License-Identifier: GPL-2.0
/*
 * The regions that the cache keeps for posts: the module has registered them, for memory
 * without a key.  See post/any_memory.c.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "memory/cache.h"

/*
 * Find memory of the task that is registered for posts.  length is at least 1, and the
 * range does not wrap; access is RPOST_ACCESS_LOCAL_WRITE or 0.  Return a region that
 * contains the range, with a use, to be dropped by rpost_mr_unuse(); or NULL.
 */
struct rpost_mr *rpost_cache_find(struct rpost_pd *pd, u64 addr, u64 length, u32 access)
{
	const struct rpost_reg_mr cmd = { .addr = addr, .length = length, .access = access };

	return rpost_cache_use(pd, &cmd, true);
}

/*
 * Follow memory of the task that may be registered.  length is at least 1, and
 * rpost_mr_validate() accepts the range.  The caller holds nothing for which others
 * wait, see rpost_watch_begin().  Return the watch, for a struct rpost_pin; or NULL, and
 * rpost_cache_get() keeps nothing.
 */
struct rpost_watch *rpost_cache_watch(struct rpost_file *file, u64 addr, u64 length)
{
	u64 first = addr & PAGE_MASK;

	if (!READ_ONCE(rpost_cache_pages))
		return NULL;
	return rpost_watch_begin(file, first, PAGE_ALIGN(addr + length) - first);
}

/*
 * Find or register memory of the task for a work request, in whole pages, on a device that
 * is alive and cannot be removed meanwhile.  length is at least 1, and rpost_mr_validate()
 * accepts the range; access is RPOST_ACCESS_LOCAL_WRITE or 0.  The memory is present.  pin
 * is of it, with the watch from rpost_cache_watch().
 *
 * Return a region with a use, to be dropped by rpost_mr_unuse(); or ERR_PTR().  After -ENOMEM
 * or -EAGAIN the caller leaves the device, calls rpost_cache_give_back(), and tries again.
 */
struct rpost_mr *rpost_cache_get(struct rpost_pd *pd, u64 addr, u64 length, u32 access,
				 struct rpost_pin *pin)
{
	struct rpost_kept *kept = rpost_kept(pd->obj.file);
	struct rpost_reg_mr cmd = { .addr = addr & PAGE_MASK, .access = access };
	struct rpost_mr *mr;
	unsigned long flags;

	mr = rpost_cache_find(pd, addr, length, access);
	if (mr)
		return mr;

	cmd.length = PAGE_ALIGN(addr + length) - cmd.addr;
	cmd.iova = cmd.addr;
	mr = rpost_mr_make(pd, &cmd, pin, true);
	if (IS_ERR(mr))
		return mr;

	spin_lock_irqsave(&kept->lock, flags);
	atomic_set(&mr->uses, 2);
	rpost_cache_move(mr, mr->watch && !mr->no_cache ? RPOST_MR_IN_USE : RPOST_MR_STALE);
	spin_unlock_irqrestore(&kept->lock, flags);
	return mr;
}

/*
 * Is a region from rpost_cache_get(), of which the caller has a use, still registered, and
 * in this domain, which the caller keeps?  A domain that ends deregisters all of its regions.
 */
bool rpost_cache_has(const struct rpost_pd *pd, struct rpost_mr *mr)
{
	struct rpost_kept *kept = rpost_kept(mr->obj.file);
	unsigned long flags;
	bool has;

	spin_lock_irqsave(&kept->lock, flags);
	has = mr->keep != RPOST_MR_OUT && mr->pd == pd;
	spin_unlock_irqrestore(&kept->lock, flags);
	return has;
}

/* Does not sleep; the caller may hold spinlocks and be in a softirq. */
void rpost_mr_unuse(struct rpost_mr *mr)
{
	struct rpost_kept *kept;
	unsigned long flags;
	int left;

	if (mr->inner) {
		kept = rpost_kept(mr->obj.file);
		spin_lock_irqsave(&kept->lock, flags);
		left = atomic_dec_return(&mr->uses);
		if (left == 1 && (mr->keep == RPOST_MR_IN_USE || mr->keep == RPOST_MR_STALE))
			rpost_cache_rest(mr);
		spin_unlock_irqrestore(&kept->lock, flags);
	} else {
		/* The handle's use is the last one to go, or the region has ended. */
		left = atomic_dec_return(&mr->uses);
	}
	if (!left)
		kfree_rcu(mr, obj.rcu);
}
