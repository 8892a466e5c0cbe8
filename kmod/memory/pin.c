// SPDX-License-Identifier: GPL-2.0
/*
 * Charges a process for memory before it is pinned, and looks at its mappings.  See
 * struct rpost_pin.
 */
#include <linux/backing-dev.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>

#include "compat/compat.h"
#include "memory/cache.h"

/* ------------------------------------------------- locked memory */

static bool memlock = true;
module_param(memlock, bool, 0644);
MODULE_PARM_DESC(memlock,
		 "RLIMIT_MEMLOCK bounds registered memory; if not, max_user_pinned does (on)");

static unsigned long max_user_pinned;
module_param(max_user_pinned, ulong, 0644);
MODULE_PARM_DESC(max_user_pinned,
		 "Bytes that one user's programs may register with memlock=0 (half of the memory)");

/* Return how many pages a user may have pinned where RLIMIT_MEMLOCK does not count, or 0. */
unsigned long rpost_user_pin_limit(void)
{
	unsigned long most = READ_ONCE(max_user_pinned);

	if (READ_ONCE(memlock))
		return 0;
	return most >= PAGE_SIZE ? most >> PAGE_SHIFT : totalram_pages() / 2;
}

/* Return how many pages a process without CAP_IPC_LOCK may pin. */
unsigned long rpost_pin_limit(void)
{
	return rpost_user_pin_limit() ? : rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
}

/* Does RLIMIT_MEMLOCK let the calling process have so many pages pinned? */
bool rpost_memlock_allows(u64 pages)
{
	return !READ_ONCE(memlock) || pages <= rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT ||
	       capable(CAP_IPC_LOCK);
}

/*
 * ib_umem_get() knows RLIMIT_MEMLOCK only, and CAP_IPC_LOCK in the initial user namespace.
 * Where that limit does not count, the caller has this capability and no other meanwhile.
 * The pages are present, so nothing else is asked of its credentials.  SELinux and others
 * may refuse it, and then the limit counts.
 *
 * Return 0, and rpost_pin_cred_end() ends it, or -ENOMEM.
 */
int rpost_pin_cred_begin(struct rpost_pin_cred *pin)
{
	struct cred *cred;

	pin->cred = NULL;
	if (READ_ONCE(memlock))
		return 0;
	cred = prepare_creds();
	if (!cred)
		return -ENOMEM;
	cap_clear(cred->cap_effective);
	cap_raise(cred->cap_effective, CAP_IPC_LOCK);
	put_user_ns(cred->user_ns);
	cred->user_ns = get_user_ns(&init_user_ns);
	pin->cred = cred;
	pin->old = override_creds(cred);
	return 0;
}

void rpost_pin_cred_end(const struct rpost_pin_cred *pin)
{
	if (!pin->cred)
		return;
	revert_creds(pin->old);
	put_cred(pin->cred);
}

/*
 * ib_umem_get() compares RLIMIT_MEMLOCK with what the calling process has pinned.  A
 * region of a process that has ended stays pinned if others have its file open, and
 * counts for nobody there.  So here it counts beside the own pages of each process
 * that registers through a file of the same user.  Processes that live count for
 * themselves only: ranks of one job have a limit each, as over uverbs.
 */

/* How long a process that has given up its memory may take to close its files. */
#define RPOST_PIN_ENDS		HZ
#define RPOST_PIN_WAIT		max(HZ / 50, 1)

/* Find the struct of a process, or add @fresh, if there is one, and set it to NULL. */
static struct rpost_pinner *rpost_pinner_get(struct rpost_user *user, struct mm_struct *mm,
					     struct rpost_pinner **fresh)
{
	struct rpost_pinner *pinner;

	lockdep_assert_held(&user->pin_lock);

	hash_for_each_possible(user->pinners, pinner, node, (unsigned long)mm) {
		if (pinner->mm == mm)
			return pinner;
	}
	pinner = *fresh;
	*fresh = NULL;
	if (!pinner)
		return NULL;
	mmgrab(mm);
	pinner->mm = mm;
	hash_add(user->pinners, &pinner->node, (unsigned long)mm);
	return pinner;
}

static void rpost_pinner_take(struct rpost_user *user, struct rpost_pinner *pinner, long pages)
{
	lockdep_assert_held(&user->pin_lock);

	pinner->pages += pages;
	user->pages += pages;
	if (hlist_unhashed(&pinner->node))
		user->pages_left += pages;
	if (pinner->pages)
		return;
	hash_del(&pinner->node);
	mmdrop(pinner->mm);
	kfree(pinner);
}

/* Find the processes that have ended. */
static void rpost_pinners_look(struct rpost_user *user)
{
	struct rpost_pinner *pinner;
	struct hlist_node *next;
	int i;

	hash_for_each_safe(user->pinners, i, next, pinner, node) {
		cond_resched();
		if (atomic_read(&pinner->mm->mm_users))
			continue;
		hash_del(&pinner->node);
		user->pages_left += pinner->pages;
		user->left_at = jiffies;
	}
}

/* May the calling process pin these pages, which are charged already? */
static bool rpost_pin_fits(const struct rpost_pin *pin)
{
	unsigned long limit = rpost_user_pin_limit(), own;
	struct rpost_user *user = pin->file->user;

	if (limit) {
		if (user->pages <= limit || capable(CAP_IPC_LOCK))
			return true;
		rpost_pinners_look(user);
		/* What others of the user keep counts, too. */
		atomic_long_inc(&user->refused);
		return false;
	}
	limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;

	/* Other drivers pin, too, and other threads are about to. */
	own = max_t(u64, atomic64_read(&current->mm->pinned_vm) + pin->pages,
		    pin->pinner->pages);
	if (own + user->pages - pin->pinner->pages <= limit)
		return true;
	rpost_pinners_look(user);
	/* If nothing is left, ib_umem_get() has the errors. */
	return !user->pages_left || own + user->pages_left <= limit || capable(CAP_IPC_LOCK);
}

/*
 * Charge the calling process for the pages.  Return -ENOENT if a struct for it is
 * missing; -EAGAIN if processes that have ended lately may yet close their files; or
 * -ENOMEM.
 */
static int rpost_pin_try(struct rpost_pin *pin, struct rpost_pinner **fresh)
{
	struct rpost_user *user = pin->file->user;
	int ret = -ENOENT;

	mutex_lock(&user->pin_lock);
	pin->pinner = rpost_pinner_get(user, current->mm, fresh);
	if (!pin->pinner)
		goto out;
	rpost_pinner_take(user, pin->pinner, pin->pages);
	ret = 0;
	if (rpost_pin_fits(pin))
		goto out;
	ret = time_before(jiffies, user->left_at + RPOST_PIN_ENDS) ? -EAGAIN : -ENOMEM;
	rpost_pinner_take(user, pin->pinner, -(long)pin->pages);
	pin->pinner = NULL;
out:
	mutex_unlock(&user->pin_lock);
	return ret;
}

/*
 * Charge the calling process for pages until rpost_pin_end(), or until a region takes the
 * charge over.  The caller holds nothing for which others wait.  Return 0, -ENOMEM, -EPERM
 * or -EINTR.
 */
int rpost_pin_charge(struct rpost_pin *pin, struct rpost_file *file, unsigned long pages)
{
	unsigned long end = jiffies + RPOST_PIN_ENDS;
	struct rpost_pinner *fresh = NULL;
	bool shared;
	int ret;

	/* As ib_umem_get() says. */
	if (pages > rpost_pin_limit() && !capable(CAP_IPC_LOCK))
		return rpost_pin_limit() ? -ENOMEM : -EPERM;
	if (!rpost_policy_take(&file->tenant, RPOST_HELD_PAGES, pages, &shared)) {
		/* What others of the user keep may count for a cgroup's bound. */
		if (shared)
			atomic_long_inc(&file->user->refused);
		return -ENOMEM;
	}
	pin->file = file;
	pin->pages = pages;
	while ((ret = rpost_pin_try(pin, &fresh)) == -EAGAIN || ret == -ENOENT) {
		if (ret == -ENOENT) {
			/* Without the lock: reclaim may need regions of the user to end. */
			fresh = kzalloc(sizeof(*fresh), RPOST_GFP);
			if (fresh)
				continue;
			ret = -ENOMEM;
			break;
		}
		if (time_after(jiffies, end)) {
			ret = -ENOMEM;
			break;
		}
		schedule_timeout_killable(RPOST_PIN_WAIT);
		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
	}
	kfree(fresh);
	if (ret)
		rpost_policy_give(&file->tenant, RPOST_HELD_PAGES, pages);
	return ret;
}

/* End the charge of pages that are no longer pinned. */
void rpost_unpin(struct rpost_file *file, struct rpost_pinner *pinner, unsigned long pages)
{
	struct rpost_user *user = file->user;

	mutex_lock(&user->pin_lock);
	rpost_pinner_take(user, pinner, -(long)pages);
	mutex_unlock(&user->pin_lock);
	rpost_policy_give(&file->tenant, RPOST_HELD_PAGES, pages);
}

/* ------------------------------------------------- shared files */

/*
 * Look at all mappings of memory of the task; end is the byte behind the last one.  A
 * hole is not good: something could be mapped there, of which a notifier is not told.
 * Return 0 if all are good, -EFAULT if not, or -EINTR if the task is killed.
 */
int rpost_vmas_check(unsigned long addr, unsigned long end,
		     bool (*good)(struct vm_area_struct *vma))
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	vma_iter_init(&vmi, mm, addr);
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	for_each_vma_range(vmi, vma, end) {
		if (vma->vm_start > addr || !good(vma))
			break;
		addr = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return addr < end ? -EFAULT : 0;
}

/*
 * A device writes to pinned pages at any time, and their file system does not know:
 * it may have written a page back, and lose what comes later.  At the end of the pin
 * the page is made dirty, for which its lock is needed.  A FUSE server can keep that
 * for ever (fuse_notify_inval_inode() while a page is written back).
 */
static bool rpost_vma_untracked(struct vm_area_struct *vma)
{
	const struct vm_operations_struct *ops = vma->vm_ops;

	if (!(vma->vm_flags & VM_SHARED))
		return true;
	return !(ops && (ops->page_mkwrite || ops->pfn_mkwrite)) &&
	       !(vma->vm_file && mapping_can_writeback(vma->vm_file->f_mapping));
}

static bool rpost_pin_invalidate(struct mmu_interval_notifier *notifier,
				 const struct mmu_notifier_range *range,
				 unsigned long seq)
{
	struct rpost_pin *pin = container_of(notifier, struct rpost_pin, notifier);

	mmu_interval_set_seq(notifier, seq);
	/* Each exchange of a mapping begins so, see unmap_vmas() and move_page_tables(). */
	if (range->event == MMU_NOTIFY_UNMAP)
		WRITE_ONCE(pin->unmapped, true);
	return true;
}

static const struct mmu_interval_notifier_ops rpost_pin_ops = {
	.invalidate = rpost_pin_invalidate,
};

/* Look at memory that a device will write to. */
static int rpost_pin_arm(struct rpost_pin *pin, unsigned long addr, u64 length)
{
	int ret;

	ret = mmu_interval_notifier_insert(&pin->notifier, current->mm, addr, length,
					   &rpost_pin_ops);
	/* The first notifier of a process gives way to any signal (mm_take_all_locks()). */
	if (ret == -EINTR && !fatal_signal_pending(current))
		return -ERESTARTNOINTR;
	if (ret)
		return ret;
	pin->armed = true;
	/* The notifier is told of no change before those under way have ended. */
	mmu_interval_read_begin(&pin->notifier);
	return rpost_vmas_check(addr, addr + length, rpost_vma_untracked);
}

/*
 * Look at memory of the task, and charge for it, before it is pinned.  pin is zero, but
 * for its watch.  The range has been checked.  access is RPOST_ACCESS_* of the region.
 *
 * The caller holds nothing for which others wait.  It has made the pages present: the
 * stack has grown.
 *
 * Return 0, and rpost_pin_end() ends it; -EFAULT if the memory may not be pinned for this
 * access; -EINTR if the task is killed; -ERESTARTNOINTR for another signal; or -ENOMEM,
 * without memory or above RLIMIT_MEMLOCK.
 */
int rpost_pin_begin(struct rpost_pin *pin, struct rpost_file *file, u64 addr, u64 length,
		    u32 access)
{
	int ret;

	if (access & RPOST_ACCESS_ON_DEMAND)
		return 0;
	ret = rpost_pin_charge(pin, file, rpost_mr_pages(addr, length));
	if (!ret && rpost_compat_pins_tracked() && ib_access_writable(access))
		ret = rpost_pin_arm(pin, untagged_addr((unsigned long)addr), length);
	if (ret)
		rpost_pin_end(pin);
	return ret;
}

/*
 * End what is left of rpost_pin_begin(), and the watch in pin.  Do nothing the second
 * time, or if pin is zero.  This waits for changes of the memory that are under way, so
 * the caller holds nothing for which others wait.
 */
void rpost_pin_end(struct rpost_pin *pin)
{
	if (pin->armed)
		mmu_interval_notifier_remove(&pin->notifier);
	pin->armed = false;
	if (pin->watch)
		rpost_watch_end(pin->watch);
	pin->watch = NULL;
	if (pin->pinner)
		rpost_unpin(pin->file, pin->pinner, pin->pages);
	pin->pinner = NULL;
}
