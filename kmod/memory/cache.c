// SPDX-License-Identifier: GPL-2.0
/*
 * The cache of registrations: its entries, and their end.
 *
 * A region that the program deregisters (again.c), or that the module has registered
 * for a post and that no work request uses any more (inner.c), may stay registered.
 * It has no handle then, and posts of the program cannot name its key.  A later
 * registration of the same memory takes it, and so is cheap.
 *
 * Reusing a region must be indistinguishable from registering again.  So only
 * memory of the calling process is kept, without access for peers, and without
 * keys that differ between its threads; and a notifier (struct rpost_watch)
 * makes a region unfindable the moment that anything changes in its memory.
 *
 * An entry is a struct rpost_mr without a handle.  enum rpost_mr_keep has its
 * states, and rpost_cache_move() alone changes them.
 *
 * An entry that is idle keeps what it is charged: RLIMIT_MEMLOCK, the user's
 * bytes, the rdma cgroup.  Before a command fails for want of these, what is idle
 * and charged to the same limit is given back (rpost_cache_give_back()).
 *
 * All of this is under the lock of the user's struct rpost_kept, which is held
 * for short: nobody deregisters under it.  Entries to be ended are moved to its
 * doomed list, and a work item of the user takes them out and deregisters them, with the
 * context's rwsem held for reading.  If it does not get that, then the device is
 * being removed, and removal ends the domain, which deregisters all entries itself.
 *
 * A device may be slow to deregister, and so may a file system be with a page.
 * Then all that the user keeps waits, and nobody else's.
 */
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "core/stats.h"
#include "memory/cache.h"

/* Bounds of what is done with a lock held. */
#define RPOST_CACHE_LOOK	64
#define RPOST_CACHE_ROUNDS	65536

#define RPOST_CACHE_WAIT	(2 * HZ)

static struct workqueue_struct *rpost_cache_wq;

unsigned long rpost_cache_pages = SZ_64M >> PAGE_SHIFT;

/* ------------------------------------------------- entries and lists */

static void rpost_cache_count(struct rpost_mr *mr, int sign)
{
	long pages = sign * (long)mr->num_pages;

	rpost_kept(mr->obj.file)->pages += pages;
	mr->pinner->kept += pages;
	rpost_file_count(mr->obj.file, RPOST_COUNT_KEPT, sign);
	rpost_file_count(mr->obj.file, RPOST_COUNT_KEPT_PAGES, pages);
}

static bool rpost_mr_in_tree(enum rpost_mr_keep keep)
{
	return keep == RPOST_MR_IN_USE || keep == RPOST_MR_IDLE;
}

/* Move a region to another state, with the lock of its user's struct rpost_kept held. */
void rpost_cache_move(struct rpost_mr *mr, enum rpost_mr_keep keep)
{
	struct rpost_kept *kept = rpost_kept(mr->obj.file);
	enum rpost_mr_keep old = mr->keep;

	lockdep_assert_held(&kept->lock);

	mr->keep = keep;
	if (old == RPOST_MR_OUT)
		list_add_tail(&mr->entry, &mr->pd->cached);
	if (keep == RPOST_MR_OUT)
		list_del(&mr->entry);
	if (rpost_mr_in_tree(old) && !rpost_mr_in_tree(keep))
		interval_tree_remove(&mr->span, &mr->pd->spans);
	if (!rpost_mr_in_tree(old) && rpost_mr_in_tree(keep))
		interval_tree_insert(&mr->span, &mr->pd->spans);
	if (old == RPOST_MR_IDLE || old == RPOST_MR_DOOMED)
		list_del_init(&mr->lru);
	if (old == RPOST_MR_IDLE)
		rpost_cache_count(mr, -1);
	if (keep == RPOST_MR_IDLE) {
		mr->watch->recent = true;
		list_add_tail(&mr->lru, &kept->idle);
		rpost_cache_count(mr, 1);
	}
	if (keep == RPOST_MR_DOOMED) {
		kept->num_doomed++;
		list_add_tail(&mr->lru, &kept->doomed);
		queue_work(rpost_cache_wq, &kept->reap);
	}
}

/*
 * Look at idle entries, beginning with the one that was idle first, and doom those of a
 * process, or all if mm is NULL; the others go to the end of the list.  Return the pages
 * of what was looked at.
 */
static unsigned long rpost_cache_doom_pages(struct rpost_kept *kept, unsigned long pages,
					    const struct mm_struct *mm)
{
	unsigned long done = 0;
	struct rpost_mr *mr;
	int i;

	lockdep_assert_held(&kept->lock);

	for (i = 0; i < RPOST_CACHE_LOOK && done < pages; i++) {
		mr = list_first_entry_or_null(&kept->idle, struct rpost_mr, lru);
		if (!mr)
			break;
		done += mr->num_pages;
		if (!mm || mr->pinner->mm == mm)
			rpost_cache_move(mr, RPOST_MR_DOOMED);
		else
			list_move_tail(&mr->lru, &kept->idle);
	}
	return done;
}

/* Make room for a region; false if it cannot be kept. */
static bool rpost_cache_room(struct rpost_mr *mr)
{
	unsigned long limit = READ_ONCE(rpost_cache_pages), own = mr->watch->limit;
	struct rpost_kept *kept = rpost_kept(mr->obj.file);
	struct rpost_mr *other, *next;
	int tries = RPOST_CACHE_LOOK;

	if (mr->num_pages > min(limit, own))
		return false;
	list_for_each_entry_safe(other, next, &kept->idle, lru) {
		if (mr->pinner->kept <= own - mr->num_pages)
			break;
		if (!tries--)
			return false;
		if (other->pinner == mr->pinner)
			rpost_cache_move(other, RPOST_MR_DOOMED);
	}
	if (kept->pages > limit - mr->num_pages)
		rpost_cache_doom_pages(kept, kept->pages - (limit - mr->num_pages), NULL);
	return kept->pages <= limit - mr->num_pages;
}

/* Keep a region that nobody uses any more, or doom it, as rpost_cache_move() does. */
void rpost_cache_rest(struct rpost_mr *mr)
{
	bool good = mr->watch && !mr->no_cache && !READ_ONCE(mr->obj.file->dead);

	rpost_cache_move(mr, good && rpost_cache_room(mr) ? RPOST_MR_IDLE : RPOST_MR_DOOMED);
}

/* Is the entry one that rpost_cache_use() looks for? */
static bool rpost_cache_fits(const struct rpost_mr *mr, const struct rpost_reg_mr *cmd, bool inner)
{
	unsigned long first = cmd->addr, last = cmd->addr + cmd->length - 1;

	if (mr->inner != inner || mr->watch->notifier.mm != current->mm)
		return false;
	if (inner)
		return mr->span.start <= first && mr->span.last >= last &&
		       !(cmd->access & ~mr->access);
	return mr->span.start == first && mr->span.last == last &&
	       mr->iova == cmd->iova && mr->access == cmd->access;
}

/*
 * Find an entry with memory of the task: what the command would register, which then leaves
 * the cache; or, if inner, a region for posts that contains the command's range and has its
 * access, which stays.  Return it with one more use, or NULL.
 */
struct rpost_mr *rpost_cache_use(struct rpost_pd *pd, const struct rpost_reg_mr *cmd, bool inner)
{
	enum rpost_mr_keep keep = inner ? RPOST_MR_IN_USE : RPOST_MR_OUT;
	unsigned long first = cmd->addr, last = cmd->addr + cmd->length - 1, flags;
	struct rpost_kept *kept = rpost_kept(pd->obj.file);
	struct rpost_mr *mr, *found = NULL;
	struct interval_tree_node *node;
	int tries = RPOST_CACHE_LOOK;

	spin_lock_irqsave(&kept->lock, flags);
	node = interval_tree_iter_first(&pd->spans, first, last);
	for (; node && tries--; node = interval_tree_iter_next(node, first, last)) {
		mr = container_of(node, struct rpost_mr, span);
		if (!rpost_cache_fits(mr, cmd, inner))
			continue;
		if (mr->keep != keep)
			rpost_cache_move(mr, keep);
		atomic_inc(&mr->uses);
		found = mr;
		break;
	}
	spin_unlock_irqrestore(&kept->lock, flags);
	if (found)
		this_cpu_inc(pd->obj.file->stats->cache_hits);
	return found;
}

/* The memory of a region is about to change.  Its user's rpost_kept.lock is held. */
void rpost_cache_changed(struct rpost_mr *mr)
{
	WRITE_ONCE(mr->no_cache, true);
	if (mr->keep == RPOST_MR_IDLE)
		rpost_cache_move(mr, RPOST_MR_DOOMED);
	else if (mr->keep == RPOST_MR_IN_USE)
		rpost_cache_move(mr, RPOST_MR_STALE);
}

/* ------------------------------------------------- the end of entries */

/* Deregister a doomed entry; false if there is none. */
static bool rpost_cache_reap(struct rpost_kept *kept)
{
	struct rpost_context *context;
	struct rpost_mr *mr;

	spin_lock_irq(&kept->lock);
	mr = list_first_entry_or_null(&kept->doomed, struct rpost_mr, lru);
	if (!mr) {
		spin_unlock_irq(&kept->lock);
		return false;
	}
	context = mr->pd->obj.context;
	/* Only removal takes it for writing, and ends the domain with all entries. */
	if (!down_read_trylock(&context->rwsem)) {
		list_del_init(&mr->lru);
		spin_unlock_irq(&kept->lock);
		return true;
	}
	rpost_cache_move(mr, RPOST_MR_OUT);
	kept->ending = mr->pd;
	spin_unlock_irq(&kept->lock);

	rpost_mr_drop(mr);
	up_read(&context->rwsem);

	spin_lock_irq(&kept->lock);
	kept->ending = NULL;
	kept->num_doomed--;
	wake_up_all(&kept->wait);
	spin_unlock_irq(&kept->lock);
	return true;
}

static void rpost_cache_work(struct work_struct *work)
{
	struct rpost_kept *kept = container_of(work, struct rpost_kept, reap);

	while (rpost_cache_reap(kept))
		cond_resched();
}

void rpost_cache_user_init(struct rpost_kept *kept)
{
	spin_lock_init(&kept->lock);
	INIT_LIST_HEAD(&kept->idle);
	INIT_LIST_HEAD(&kept->doomed);
	init_waitqueue_head(&kept->wait);
	INIT_WORK(&kept->reap, rpost_cache_work);
	rpost_watch_user_init(kept);
}

/*
 * Deregister all entries of a domain, which gets no more; its context's rwsem is held.
 * Posts that are about to find their queue closed may have uses of entries.
 */
void rpost_cache_pd_end(struct rpost_pd *pd)
{
	struct rpost_kept *kept = rpost_kept(pd->obj.file);
	struct rpost_mr *mr;

	lockdep_assert_held(&pd->obj.context->rwsem);

	spin_lock_irq(&kept->lock);
	while ((mr = list_first_entry_or_null(&pd->cached, struct rpost_mr, entry))) {
		if (mr->keep != RPOST_MR_DOOMED)
			rpost_cache_move(mr, RPOST_MR_DOOMED);
		rpost_cache_move(mr, RPOST_MR_OUT);
		spin_unlock_irq(&kept->lock);

		rpost_mr_drop(mr);
		cond_resched();

		spin_lock_irq(&kept->lock);
		if (!--kept->num_doomed)
			wake_up_all(&kept->wait);
	}
	/* The work may have the last one. */
	wait_event_lock_irq(kept->wait, kept->ending != pd, kept->lock);
	spin_unlock_irq(&kept->lock);
}

/*
 * Give back what is idle, after a command has failed with an errno.  refused is
 * user->refused before the command.  The caller holds nothing for which others wait.
 *
 * Everything, if others of the user may count for the limit as well: that of the
 * user's bytes, or the rdma cgroup's, whose errno is -EAGAIN.  Else what the calling
 * process has kept, so that one that fails again and again leaves the others theirs.
 *
 * Return true if there was anything and the task has not been killed meanwhile.
 */
bool rpost_cache_give_back(struct rpost_user *user, int error, long refused)
{
	bool all = error == -EAGAIN || atomic_long_read(&user->refused) != refused;
	struct rpost_kept *kept = &user->kept;
	unsigned long left, flags;

	if (!READ_ONCE(kept->pages) && !READ_ONCE(kept->num_doomed))
		return false;
	for (left = READ_ONCE(kept->pages); left;) {
		spin_lock_irqsave(&kept->lock, flags);
		left = min(left, kept->pages);
		left -= min(left, rpost_cache_doom_pages(kept, left, all ? NULL :
							 current->mm));
		spin_unlock_irqrestore(&kept->lock, flags);
		cond_resched();
	}
	return wait_event_killable_timeout(kept->wait, !READ_ONCE(kept->num_doomed),
					   RPOST_CACHE_WAIT) >= 0;
}

/* ------------------------------------------------- limits */

/*
 * Give back the region of a watch, if it is idle.  item is in the list of all, whose lock is
 * held.  Return false if it is in use, or has become idle since the last call.
 */
bool rpost_cache_doom_idle(struct list_head *item)
{
	struct rpost_watch *watch = container_of(item, struct rpost_watch, node);
	struct rpost_kept *kept = rpost_kept(watch->file);
	unsigned long flags;
	bool doom;

	spin_lock_irqsave(&kept->lock, flags);
	doom = watch->mr && watch->mr->keep == RPOST_MR_IDLE && !watch->recent;
	watch->recent = false;
	if (doom)
		rpost_cache_move(watch->mr, RPOST_MR_DOOMED);
	spin_unlock_irqrestore(&kept->lock, flags);
	return doom;
}

/* Give idle regions of a user back; arg is set if there may be more. */
static void rpost_cache_empty(struct rpost_user *user, void *arg)
{
	struct rpost_kept *kept = &user->kept;
	unsigned long flags;
	bool *more = arg;

	spin_lock_irqsave(&kept->lock, flags);
	rpost_cache_doom_pages(kept, ULONG_MAX, NULL);
	*more |= !list_empty(&kept->idle);
	spin_unlock_irqrestore(&kept->lock, flags);
}

static int rpost_cache_set_pages(const char *val, const struct kernel_param *kp)
{
	int i, ret = param_set_ulong(val, kp);
	bool more = true;

	/*
	 * The idle regions may exceed the new limit, and nobody may want them.
	 * Programs may go on to keep regions meanwhile.
	 */
	for (i = 0; !ret && more && i < RPOST_CACHE_ROUNDS; i++) {
		more = false;
		rpost_users_each(rpost_cache_empty, &more);
		cond_resched();
	}
	return ret;
}

static const struct kernel_param_ops rpost_cache_pages_ops = {
	.set = rpost_cache_set_pages,
	.get = param_get_ulong,
};

module_param_cb(mr_cache_pages, &rpost_cache_pages_ops, &rpost_cache_pages, 0644);
MODULE_PARM_DESC(mr_cache_pages,
		 "Pages of deregistered memory that may stay registered for each user (64 MiB); 0 for none");

int rpost_cache_init(void)
{
	rpost_again_init();
	rpost_cache_wq = alloc_workqueue("rdma_post_cache", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!rpost_cache_wq)
		return -ENOMEM;
	if (!rpost_watch_init())
		return 0;
	destroy_workqueue(rpost_cache_wq);
	return -ENOMEM;
}

/* No file is open. */
void rpost_cache_exit(void)
{
	destroy_workqueue(rpost_cache_wq);
	rpost_watch_exit();
}
