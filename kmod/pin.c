// SPDX-License-Identifier: GPL-2.0
/*
 * What comes before and after memory of a program is pinned.  See struct rpost_pin.
 */
#include <linux/backing-dev.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "cache.h"
#include "compat/compat.h"

/*
 * A device writes to pinned pages at any time, and their file system does not know:
 * it may have written a page back, and lose what comes later.  At the end of the pin
 * the page is made dirty, for which its lock is needed.  A FUSE server can keep that
 * for ever (fuse_notify_inval_inode() while a page is written back).
 */
static bool rpost_vma_tracked(const struct vm_area_struct *vma)
{
	const struct vm_operations_struct *ops = vma->vm_ops;

	if (!(vma->vm_flags & VM_SHARED))
		return false;
	return (ops && (ops->page_mkwrite || ops->pfn_mkwrite)) ||
	       (vma->vm_file && mapping_can_writeback(vma->vm_file->f_mapping));
}

/* A hole could be filled unnoticed, so it is refused, too. */
static int rpost_pin_look(struct mm_struct *mm, unsigned long addr, unsigned long end)
{
	struct vm_area_struct *vma;
	struct vma_iterator vmi;

	vma_iter_init(&vmi, mm, addr);
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	for_each_vma_range(vmi, vma, end) {
		if (vma->vm_start > addr || rpost_vma_tracked(vma))
			break;
		addr = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return addr < end ? -EFAULT : 0;
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

/**
 * rpost_pin_begin() - look at memory of the task before it is pinned
 * @pin: in memory of the caller
 * @addr: first byte; the range has been checked
 * @length: bytes
 * @access: RPOST_ACCESS_* of the region
 *
 * The caller holds nothing for which others wait.  It has made the pages present:
 * the stack has grown.
 *
 * Return: 0, and rpost_pin_end() ends it; -EFAULT if the memory may not be pinned
 * for this access; -EINTR if the task is killed; or -ENOMEM.
 */
int rpost_pin_begin(struct rpost_pin *pin, u64 addr, u64 length, u32 access)
{
	unsigned long start = untagged_addr((unsigned long)addr);
	struct mm_struct *mm = current->mm;
	int ret;

	pin->armed = false;
	pin->unmapped = false;
	if (!rpost_compat_pins_tracked() || !ib_access_writable(access) ||
	    (access & RPOST_ACCESS_ON_DEMAND))
		return 0;
	ret = mmu_interval_notifier_insert(&pin->notifier, mm, start, length,
					   &rpost_pin_ops);
	if (ret)
		return ret;
	pin->armed = true;
	/* Before changes that are under way have ended, it may not be told of others. */
	mmu_interval_read_begin(&pin->notifier);
	ret = rpost_pin_look(mm, start, start + length);
	if (ret)
		rpost_pin_end(pin);
	return ret;
}

/**
 * rpost_pin_end() - end what rpost_pin_begin() began
 * @pin: nothing is done if it has failed or is zero
 *
 * Waits for changes of the memory that are under way, so the caller holds nothing
 * for which others wait.
 */
void rpost_pin_end(struct rpost_pin *pin)
{
	if (pin->armed)
		mmu_interval_notifier_remove(&pin->notifier);
	pin->armed = false;
}
