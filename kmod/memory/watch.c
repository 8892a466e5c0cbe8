// SPDX-License-Identifier: GPL-2.0
/*
 * Follows the changes of the memory of regions that the cache may keep.  See
 * struct rpost_watch.
 */
#include <linux/mm.h>
#include <linux/pkeys.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "memory/cache.h"

/* Report each watch as SHRINK_BATCH objects, so that the shrinker asks for one at a time. */
#define RPOST_WATCH_WEIGHT	128

/*
 * Most bytes that a process has kept.  A fork copies what is pinned
 * (copy_present_page()), and begins before the regions have been deregistered, for
 * which a notifier must not wait.
 */
#define RPOST_WATCH_FORK	SZ_16M

static struct workqueue_struct *rpost_watch_wq;
static struct kmem_cache *rpost_watch_slab;
static struct shrinker *rpost_watch_shrinker;
/* All watches, by the memory cgroup of their creator. */
static struct list_lru rpost_watches;

/* For the user: the struct, and what the kernel has for a notifier. */
#define RPOST_WATCH_BYTES	SZ_512

static_assert(sizeof(struct rpost_watch) <= RPOST_WATCH_BYTES);

/*
 * Called before a page table changes, in the task that changes it, or in one
 * that wants memory.  It must not wait.
 */
static bool rpost_watch_invalidate(struct mmu_interval_notifier *notifier,
				   const struct mmu_notifier_range *range,
				   unsigned long seq)
{
	struct rpost_watch *watch = container_of(notifier, struct rpost_watch, notifier);
	struct rpost_kept *kept = rpost_kept(watch->file);
	unsigned long flags;

	spin_lock_irqsave(&kept->lock, flags);
	mmu_interval_set_seq(notifier, seq);
	/* Before it is there, rpost_watch_follow() compares the numbers. */
	if (watch->mr)
		rpost_cache_changed(watch->mr);
	spin_unlock_irqrestore(&kept->lock, flags);
	return true;
}

static const struct mmu_interval_notifier_ops rpost_watch_ops = {
	.invalidate = rpost_watch_invalidate,
};

static void rpost_watch_free(struct rpost_watch *watch)
{
	struct rpost_file *file = watch->file;

	/* The shrinker uses a watch only under the list's lock. */
	rpost_compat_lru_del(&rpost_watches, &watch->node);
	kmem_cache_free(rpost_watch_slab, watch);
	rpost_uncharge(file, RPOST_WATCH_BYTES);
	rpost_file_count(file, RPOST_COUNT_WATCH, -1);
	rpost_file_put(file);
}

static void rpost_watch_work(struct work_struct *work)
{
	struct rpost_kept *kept = container_of(work, struct rpost_kept, work);
	struct llist_node *ended = llist_del_all(&kept->ended);
	struct rpost_watch *watch, *next;

	llist_for_each_entry_safe(watch, next, ended, ended) {
		mmu_interval_notifier_remove(&watch->notifier);
		/* The user may go with the last one. */
		rpost_watch_free(watch);
		cond_resched();
	}
}

void rpost_watch_user_init(struct rpost_kept *kept)
{
	init_llist_head(&kept->ended);
	INIT_WORK(&kept->work, rpost_watch_work);
}

/*
 * Can a region of the mapping be kept?  Only what is the process's own: others that
 * map a shared page, or seal its file, would see that it is pinned, and hugetlbfs has
 * few pages, which new mappings and forks need.  Threads differ in what a protection
 * key lets them access.
 */
static bool rpost_vma_own(struct vm_area_struct *vma)
{
	return !(vma->vm_flags & (VM_MAYSHARE | VM_HUGETLB)) && !vma_pkey(vma);
}

static struct rpost_watch *rpost_watch_alloc(struct rpost_file *file)
{
	struct rpost_watch *watch;

	if (rpost_charge(file, RPOST_WATCH_BYTES))
		return NULL;
	watch = kmem_cache_alloc_lru(rpost_watch_slab, &rpost_watches, RPOST_GFP | __GFP_ZERO);
	if (!watch) {
		rpost_uncharge(file, RPOST_WATCH_BYTES);
		return NULL;
	}
	kref_get(&file->kref);
	watch->file = file;
	watch->limit = RPOST_WATCH_FORK >> PAGE_SHIFT;
	if (!ns_capable_noaudit(&init_user_ns, CAP_IPC_LOCK))
		watch->limit = min(watch->limit, rpost_pin_limit() / 4);
	INIT_LIST_HEAD(&watch->node);
	rpost_compat_lru_add(&rpost_watches, &watch->node);
	rpost_file_count(file, RPOST_COUNT_WATCH, 1);
	return watch;
}

/*
 * Begin to follow memory of the task, before it is pinned.  The range has been checked.
 * Waits for changes of the memory that are under way, so the caller holds nothing for
 * which others wait.
 *
 * Return the watch, to be ended by rpost_watch_end(); or NULL, and the region cannot be
 * kept.
 */
struct rpost_watch *rpost_watch_begin(struct rpost_file *file, u64 addr, u64 length)
{
	unsigned long start = untagged_addr((unsigned long)addr);
	struct rpost_watch *watch = rpost_watch_alloc(file);

	if (!watch)
		return NULL;
	if (mmu_interval_notifier_insert(&watch->notifier, current->mm, start, length,
					 &rpost_watch_ops)) {
		rpost_watch_free(watch);
		return NULL;
	}
	watch->seq = mmu_interval_read_begin(&watch->notifier);
	/* Now another mapping would be noticed, and pkey_mprotect(). */
	if (rpost_vmas_check(start, start + length, rpost_vma_own)) {
		rpost_watch_end(watch);
		return NULL;
	}
	return watch;
}

/* Tell a watch which region it is for.  The region has been registered. */
void rpost_watch_follow(struct rpost_watch *watch, struct rpost_mr *mr)
{
	struct rpost_kept *kept = rpost_kept(watch->file);
	unsigned long flags;

	spin_lock_irqsave(&kept->lock, flags);
	if (mmu_interval_read_retry(&watch->notifier, watch->seq))
		WRITE_ONCE(mr->no_cache, true);
	watch->mr = mr;
	spin_unlock_irqrestore(&kept->lock, flags);
}

/* End a watch, whose region cannot be found any more. */
void rpost_watch_end(struct rpost_watch *watch)
{
	struct rpost_kept *kept = rpost_kept(watch->file);
	unsigned long flags;

	spin_lock_irqsave(&kept->lock, flags);
	watch->mr = NULL;
	spin_unlock_irqrestore(&kept->lock, flags);
	/* The work takes all that are there, so only the first one queues it. */
	if (llist_add(&watch->ended, &kept->ended))
		queue_work(rpost_watch_wq, &kept->work);
}

static unsigned long rpost_watch_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long watches = list_lru_shrink_count(&rpost_watches, sc);

	if (!watches)
		return SHRINK_EMPTY;
	return rpost_count_read(RPOST_COUNT_KEPT) ? watches * RPOST_WATCH_WEIGHT : 0;
}

/*
 * Give idle regions of a memory cgroup back, on one node.  The kernel calls this
 * for each that it wants memory from.  Most watches may be those of regions in
 * use, so the number of watches that are looked at is bounded, too.
 */
static unsigned long rpost_watch_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long left = DIV_ROUND_UP(sc->nr_to_scan, RPOST_WATCH_WEIGHT);

	if (!rpost_count_read(RPOST_COUNT_KEPT))
		return SHRINK_STOP;
	left = min(left, list_lru_shrink_count(&rpost_watches, sc));
	return rpost_compat_lru_walk(&rpost_watches, sc, left, rpost_cache_doom_idle) *
	       RPOST_WATCH_WEIGHT;
}

int rpost_watch_init(void)
{
	rpost_watch_wq = alloc_workqueue("rdma_post_watch", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rpost_watch_wq)
		return -ENOMEM;
	rpost_watch_slab = KMEM_CACHE(rpost_watch, SLAB_ACCOUNT);
	if (!rpost_watch_slab)
		goto err_wq;
	rpost_watch_shrinker = rpost_compat_shrinker_add(rpost_watch_count, rpost_watch_scan,
							 &rpost_watches, "rdma_post");
	if (!rpost_watch_shrinker)
		goto err_slab;
	return 0;

err_slab:
	kmem_cache_destroy(rpost_watch_slab);
err_wq:
	destroy_workqueue(rpost_watch_wq);
	return -ENOMEM;
}

/* Undo rpost_watch_init(), when no file is open. */
void rpost_watch_exit(void)
{
	destroy_workqueue(rpost_watch_wq);
	rpost_compat_shrinker_del(rpost_watch_shrinker, &rpost_watches);
	kmem_cache_destroy(rpost_watch_slab);
}
