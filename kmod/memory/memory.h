/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Protection domains and memory regions.
 */
#ifndef RPOST_MEMORY_H
#define RPOST_MEMORY_H

#include <linux/interval_tree.h>
#include <linux/rhashtable.h>

#include "core/device.h"

struct dma_buf;
struct rpost_pin;
struct rpost_watch;

/* --------------------------------------------------------------- pd.c */

/**
 * struct rpost_pd - protection domain
 * @obj: its handle
 * @ib_pd: NULL once shut down
 * @bad_mr: a region that is never made valid.  Posts replace each key that the
 *          program may not use by its key, so that the device fails the work
 *          request in order, as verbs require; rpost_wc_status() corrects the
 *          status.
 * @bad_lkey: lkey of @bad_mr for posts; 0 if there is none
 * @local_dma_lkey: the privileged key, which only inline data uses
 * @mrs: regions with a handle by lkey, until they are shut down or kept; posts look keys
 *       up here
 * @refused: regions without a handle that the device has refused to deregister so far
 * @cached: regions that the module keeps, see cache.c; under the lock of the user's
 *          struct rpost_kept
 * @spans: by address, those of @cached that can be found; under the same lock
 * @leaked: the device keeps an object for ever; nothing that it needs may be
 *          freed
 * @fast_lock: serialises fast registrations; guards @fast_qp
 * @fast_qp: takes the work requests of fast registrations only.  Programs
 *           register before they connect, so it is connected to itself.  An
 *           error destroys it; the next registration creates it anew.
 */
struct rpost_pd {
	struct rpost_obj obj;
	struct ib_pd *ib_pd;
	struct ib_mr *bad_mr;
	u32 bad_lkey;
	u32 local_dma_lkey;
	struct rhashtable mrs;
	struct llist_head refused;
	struct list_head cached;
	struct rb_root_cached spans;
	bool leaked;
	struct mutex fast_lock;
	struct ib_qp *fast_qp;
};

RPOST_OBJ_ENTER_GETTER(pd, RPOST_OBJ_PD)

struct rpost_pd *rpost_pd_use(struct rpost_ucmd *ucmd, u32 handle);
int rpost_pd_shutdown(struct rpost_obj *obj);
void rpost_pd_free(struct rpost_obj *obj);

/* --------------------------------------------------------------- mr.c */

/**
 * enum rpost_mr_keep - what the cache has of a region
 * @RPOST_MR_OUT: nothing: it has a handle, or has none yet, or is being deregistered
 * @RPOST_MR_STALE: an inner region that posts use.  Its memory has changed or is not
 *                  followed, so no other post finds it
 * @RPOST_MR_IN_USE: an inner region that posts use; in the domain's tree
 * @RPOST_MR_IDLE: nobody uses it; in the domain's tree, and in the user's idle list
 * @RPOST_MR_DOOMED: is to be deregistered; in the user's doomed list, until the reaper
 *                   finds that its device is being removed
 *
 * All but the first are entries of the cache, which are in the list of their domain.
 * rpost_cache_move() changes the state, under the lock of the user's struct rpost_kept:
 *
 *   OUT -> IN_USE, STALE           a post has registered it
 *   OUT -> IDLE, DOOMED            DESTROY; DOOMED if there is no room, or its memory has
 *                                  just changed
 *   IN_USE -> IDLE, DOOMED         its last post has ended
 *   STALE -> DOOMED                its last post has ended
 *   IDLE -> IN_USE                 a post finds it
 *   IDLE -> OUT                    REG_MR takes it
 *   IN_USE -> STALE                the notifier: its memory changes
 *   IDLE -> DOOMED                 the notifier, the shrinker, whoever needs room or sets
 *                                  mr_cache_pages
 *   STALE, IN_USE, IDLE -> DOOMED  its domain ends
 *   DOOMED -> OUT                  the reaper or the end of the domain, which then
 *                                  deregisters it
 */
enum rpost_mr_keep {
	RPOST_MR_OUT,
	RPOST_MR_STALE,
	RPOST_MR_IN_USE,
	RPOST_MR_IDLE,
	RPOST_MR_DOOMED,
};

/**
 * struct rpost_mr - memory region
 * @obj: its handle
 * @pd: depends on it
 * @ib_mr: NULL once shut down
 * @umem: memory of a fast registration, or a dma-buf, pinned until the device has
 *        given up @ib_mr; NULL if the driver pins it
 * @node: in @pd->mrs
 * @refused: in @pd->refused, if it has no handle
 * @lkey: key of @node
 * @addr: address of its first byte in the process that registered it, or in its dma-buf
 * @iova: address of its first byte in work requests
 * @length: bytes
 * @access: RPOST_ACCESS_*
 * @num_pages: pages that it pins
 * @mm: of the process that registered it, if it is on demand; else NULL
 * @pinner: charged for @num_pages, or NULL
 * @no_cache: it is not kept: the program does not want it, its memory has changed, or
 *            the device has refused to deregister it.  Never becomes false again
 * @counted: posts count their uses of it (rpost_mr_take()); never changes
 * @inner: the module has registered it for posts; it never has a handle
 * @keep: what the cache has of it
 * @uses: one for the handle, or for the cache if @inner, and those of work requests if
 *        @counted.  0 while it is kept for REG_MR: a post that has found its key under
 *        RCU before knows nothing of @keep, and must get no use
 * @watch: sees changes of its memory; NULL if it is not kept
 * @span: in @pd->spans
 * @entry: in @pd->cached
 * @lru: in the user's list of idle or of doomed regions
 *
 * Posts read a region under RCU and keep no reference: its key may be destroyed, or given
 * to another region, between the check and the device's use.  That is safe inside the
 * domain, whose keys alone the device accepts: it then finds nothing, or another region of
 * the same program, and the domain's privileged key is never given out again.  In another
 * domain the number could be the privileged key.  So shared receive queues and address
 * handles must be of the queue pair's domain.
 */
struct rpost_mr {
	struct rpost_obj obj;
	struct rpost_pd *pd;
	struct ib_mr *ib_mr;
	struct ib_umem *umem;
	struct rhash_head node;
	struct llist_node refused;
	u32 lkey;
	u64 addr;
	u64 iova;
	u64 length;
	u32 access;
	unsigned long num_pages;
	struct mm_struct *mm;
	struct rpost_pinner *pinner;
	bool no_cache;
	bool counted;
	bool inner;
	enum rpost_mr_keep keep;
	atomic_t uses;
	struct rpost_watch *watch;
	struct interval_tree_node span;
	struct list_head entry;
	struct list_head lru;
};

/* Count the pages that length bytes of memory touch. */
static inline u64 rpost_mr_pages(u64 addr, u64 length)
{
	return (offset_in_page(addr) + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

int rpost_mr_table_init(struct rpost_pd *pd);
bool rpost_mr_may_fast(const struct rpost_device *dev);
bool rpost_mr_is_direct(const struct rpost_device *dev);
bool rpost_mr_can_keep(const struct rpost_device *dev);
u64 rpost_mr_max_size(const struct rpost_device *dev);
int rpost_mr_shutdown(struct rpost_obj *obj);
void rpost_mr_free(struct rpost_obj *obj);
void rpost_mr_unlist(struct rpost_mr *mr);
void rpost_mr_drop(struct rpost_mr *mr);
int rpost_mr_validate_any(const struct rpost_reg_mr *cmd);
int rpost_mr_validate(const struct rpost_reg_mr *cmd);
int rpost_mr_allowed(const struct rpost_file *file, const struct rpost_reg_mr *cmd);
struct rpost_mr *rpost_mr_make(struct rpost_pd *pd, const struct rpost_reg_mr *cmd,
			       struct rpost_pin *pin, bool inner);
int rpost_mr_new(struct rpost_ucmd *ucmd, struct rpost_pin *pin);
void rpost_mr_abort(struct rpost_obj *obj);
int rpost_mr_retry_refused(struct rpost_pd *pd);
int rpost_dereg_mr(struct rpost_device *dev, struct ib_mr *ib_mr);
bool rpost_mr_check(struct rpost_pd *pd, const struct rpost_sge *sge, u32 access);
bool rpost_mr_take(struct rpost_pd *pd, struct rpost_sge *sge, u32 access,
		   bool cut, struct rpost_mr **used);
struct rpost_mr *rpost_mr_get(struct rpost_pd *pd, const struct rpost_sge *sge, u32 access);
int rpost_mr_touch(unsigned long addr, u64 length, unsigned int flags);
int rpost_mr_fault_in(const struct rpost_reg_mr *cmd);

/* -------------------------------------------------------------- odp.c */

void rpost_odp_query(const struct rpost_device *dev, struct rpost_query_device *cmd);
int rpost_odp_prepare(struct rpost_mr *mr, const struct rpost_reg_mr *cmd);

/* ---------------------------------------------------------- fastreg.c */

bool rpost_fastreg_possible(const struct rpost_device *dev);
u64 rpost_fastreg_max_size(const struct ib_device *ib_dev);
int rpost_fastreg_mr(struct rpost_mr *mr, const struct rpost_reg_mr *cmd, struct dma_buf *dmabuf);
void rpost_fastreg_destroy(struct rpost_pd *pd);

/* ----------------------------------------------------------- dmabuf.c */

struct ib_umem *rpost_dmabuf_get(struct rpost_device *dev, const struct rpost_reg_mr *cmd,
				 struct dma_buf *dmabuf);
void rpost_dmabuf_unaccount(struct rpost_mr *mr);
void rpost_dmabuf_leak(struct rpost_mr *mr);

#endif /* RPOST_MEMORY_H */
