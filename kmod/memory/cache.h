/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cache of registrations.  See cache.c, again.c and inner.c.
 */
#ifndef RPOST_CACHE_H
#define RPOST_CACHE_H

#include <linux/mmu_notifier.h>

#include "memory/memory.h"

/* ------------------------------------------------------------ watch.c */

/**
 * struct rpost_watch - follows the changes of a part of a process's memory
 * @notifier: tells of changes; keeps the process's struct mm_struct
 * @file: the open file, which is charged; holds a reference
 * @seq: the notifier's sequence number before the memory was pinned
 * @limit: most pages that the process may have kept, through all files of the user
 * @mr: the region, or NULL: not yet registered, or ended
 * @recent: @mr has become idle since the shrinker looked at it
 * @node: in the list of all watches of a memory cgroup; empty once the shrinker
 *        has doomed the region
 * @ended: in @ended of the user's struct rpost_kept, once it has ended
 *
 * @mr and @recent are guarded by the lock of the user's struct rpost_kept.
 *
 * The notifier says each change of a page table before it happens, whatever the
 * cause.  It cannot tell a harmless one, so after any change the region is not
 * used for anything new.  The region itself may end later, or before the
 * notifier can be removed: that waits for changes that are under way, and so
 * never happens where others wait.
 */
struct rpost_watch {
	struct mmu_interval_notifier notifier;
	struct rpost_file *file;
	unsigned long seq;
	unsigned long limit;
	struct rpost_mr *mr;
	bool recent;
	struct list_head node;
	struct llist_node ended;
};

int rpost_watch_init(void);
void rpost_watch_user_init(struct rpost_kept *kept);
void rpost_watch_exit(void);
struct rpost_watch *rpost_watch_begin(struct rpost_file *file, u64 addr, u64 length);
void rpost_watch_follow(struct rpost_watch *watch, struct rpost_mr *mr);
void rpost_watch_end(struct rpost_watch *watch);

/* -------------------------------------------------------------- pin.c */

/**
 * struct rpost_pin - memory that a task is about to pin
 * @notifier: tells of changes, if @armed
 * @armed: the kernel would pin memory of any file for writing
 * @unmapped: part of it was unmapped since; a file may be mapped there now
 * @file: the open file
 * @pinner: charged for @pages; NULL if they are not pinned, or a region has taken the
 *          charge over
 * @pages: pages of the memory
 * @watch: follows the memory, so that the region can be kept; NULL if it cannot, or the
 *         region has taken the watch over
 * @dmabuf: holds the memory; NULL if the process does
 *
 * Belongs to the task.  It begins before the device is entered, and ends after the
 * device has been left.
 */
struct rpost_pin {
	struct mmu_interval_notifier notifier;
	bool armed;
	bool unmapped;
	struct rpost_file *file;
	struct rpost_pinner *pinner;
	unsigned long pages;
	struct rpost_watch *watch;
	struct dma_buf *dmabuf;
};

int rpost_pin_charge(struct rpost_pin *pin, struct rpost_file *file, unsigned long pages);
int rpost_pin_begin(struct rpost_pin *pin, struct rpost_file *file, u64 addr, u64 length,
		    u32 access);
void rpost_pin_end(struct rpost_pin *pin);
unsigned long rpost_user_pin_limit(void);
unsigned long rpost_pin_limit(void);
bool rpost_memlock_allows(u64 pages);

/* Credentials for pinning, and those of before; @cred is NULL if they are the same. */
struct rpost_pin_cred {
	const struct cred *cred, *old;
};

int rpost_pin_cred_begin(struct rpost_pin_cred *pin);
void rpost_pin_cred_end(const struct rpost_pin_cred *pin);
int rpost_vmas_check(unsigned long addr, unsigned long end,
		     bool (*good)(struct vm_area_struct *vma));
void rpost_unpin(struct rpost_file *file, struct rpost_pinner *pinner, unsigned long pages);

/* ------------------------------------------------------------ cache.c */

static inline struct rpost_kept *rpost_kept(const struct rpost_file *file)
{
	return &file->user->kept;
}

extern unsigned long rpost_cache_pages;

int rpost_cache_init(void);
void rpost_cache_exit(void);
void rpost_cache_user_init(struct rpost_kept *kept);
void rpost_cache_pd_end(struct rpost_pd *pd);
void rpost_cache_move(struct rpost_mr *mr, enum rpost_mr_keep keep);
void rpost_cache_rest(struct rpost_mr *mr);
struct rpost_mr *rpost_cache_use(struct rpost_pd *pd, const struct rpost_reg_mr *cmd, bool inner);
void rpost_cache_changed(struct rpost_mr *mr);
bool rpost_cache_doom_idle(struct list_head *item);
bool rpost_cache_give_back(struct rpost_user *user, int error, long refused);

/* ------------------------------------------------------------ again.c */

void rpost_again_init(void);
bool rpost_cache_expects(struct rpost_file *file, const struct rpost_reg_mr *cmd, bool *seen);
struct rpost_mr *rpost_cache_take(struct rpost_pd *pd, const struct rpost_reg_mr *cmd);
bool rpost_cache_keep(struct rpost_obj *obj);

/* ------------------------------------------------------------ inner.c */

struct rpost_mr *rpost_cache_find(struct rpost_pd *pd, u64 addr, u64 length, u32 access);
struct rpost_watch *rpost_cache_watch(struct rpost_file *file, u64 addr, u64 length);
struct rpost_mr *rpost_cache_get(struct rpost_pd *pd, u64 addr, u64 length,
				 u32 access, struct rpost_pin *pin);
bool rpost_cache_has(const struct rpost_pd *pd, struct rpost_mr *mr);
void rpost_mr_unuse(struct rpost_mr *mr);

#endif /* RPOST_CACHE_H */
