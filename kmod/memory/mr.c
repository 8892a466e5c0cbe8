// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions, and the keys that programs may use.
 */
#include <linux/delay.h>
#include <linux/hash.h>
#include <linux/llist.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>

#include "base/inject.h"
#include "compat/compat.h"
#include "memory/cache.h"

/* Pages that rpost_mr_touch() makes present at once. */
#define RPOST_FAULT_BATCH	32

#define RPOST_ACCESS_MASK						\
	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE |		\
	 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC |	\
	 RPOST_ACCESS_ON_DEMAND | RPOST_ACCESS_RELAXED_ORDERING |	\
	 RPOST_COMPAT_ACCESS_FLUSH)

static_assert(RPOST_ACCESS_LOCAL_WRITE == (int)IB_ACCESS_LOCAL_WRITE);
static_assert(RPOST_ACCESS_REMOTE_WRITE == (int)IB_ACCESS_REMOTE_WRITE);
static_assert(RPOST_ACCESS_REMOTE_READ == (int)IB_ACCESS_REMOTE_READ);
static_assert(RPOST_ACCESS_REMOTE_ATOMIC == (int)IB_ACCESS_REMOTE_ATOMIC);
static_assert(RPOST_ACCESS_RELAXED_ORDERING == (int)IB_ACCESS_RELAXED_ORDERING);

/* Devices choose keys, so a program cannot make many of them collide. */
static inline u32 rpost_key_hash(const void *key, u32 len, u32 seed)
{
	return (u64)(*(const u32 *)key ^ seed) * GOLDEN_RATIO_64 >> 32;
}

static inline int rpost_key_cmp(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct rpost_mr *mr = obj;

	return mr->lkey != *(const u32 *)arg->key;
}

/* Static, like the functions above, so that posts have them inline. */
static const struct rhashtable_params rpost_mr_params = {
	.key_len = sizeof(u32),
	.key_offset = offsetof(struct rpost_mr, lkey),
	.head_offset = offsetof(struct rpost_mr, node),
	.hashfn = rpost_key_hash,
	.obj_cmpfn = rpost_key_cmp,
	.automatic_shrinking = true,
	.min_size = 4,
};

int rpost_mr_table_init(struct rpost_pd *pd)
{
	return rhashtable_init(&pd->mrs, &rpost_mr_params);
}

enum rpost_registration {
	RPOST_REG_AUTO,
	RPOST_REG_DIRECT,
	RPOST_REG_FAST,
};

static const char * const rpost_registrations[] = {
	[RPOST_REG_AUTO] = "auto",
	[RPOST_REG_DIRECT] = "direct",
	[RPOST_REG_FAST] = "fast",
};

static int rpost_registration;

static int rpost_registration_set(const char *val, const struct kernel_param *kp)
{
	int ret = sysfs_match_string(rpost_registrations, val);

	if (ret < 0)
		return ret;
	WRITE_ONCE(rpost_registration, ret);
	return 0;
}

static int rpost_registration_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%s\n", rpost_registrations[READ_ONCE(rpost_registration)]);
}

static const struct kernel_param_ops rpost_registration_ops = {
	.set = rpost_registration_set,
	.get = rpost_registration_get,
};

module_param_cb(registration, &rpost_registration_ops, NULL, 0644);
MODULE_PARM_DESC(registration, "How memory is registered: auto (default), direct, fast");

/* May memory be registered by fast registration? */
bool rpost_mr_may_fast(const struct rpost_device *dev)
{
	return READ_ONCE(rpost_registration) != RPOST_REG_DIRECT && rpost_fastreg_possible(dev);
}

/* The way to register, or -EOPNOTSUPP; never one that could crash a driver. */
static int rpost_mr_strategy(const struct rpost_device *dev)
{
	if (READ_ONCE(rpost_registration) != RPOST_REG_FAST && dev->driver->direct &&
	    dev->ib_dev->ops.reg_user_mr)
		return RPOST_REG_DIRECT;
	if (rpost_mr_may_fast(dev))
		return RPOST_REG_FAST;
	return -EOPNOTSUPP;
}

/* Does the device register by its driver's reg_user_mr()? */
bool rpost_mr_is_direct(const struct rpost_device *dev)
{
	return rpost_mr_strategy(dev) == RPOST_REG_DIRECT;
}

/*
 * Can the cache keep regions of the device?  A peer can end regions of fast
 * registration by a send with invalidation, and all regions of siw
 * (siw_invalidate_stag()).
 */
bool rpost_mr_can_keep(const struct rpost_device *dev)
{
	return rpost_mr_is_direct(dev) &&
	       !rdma_protocol_iwarp(dev->ib_dev, rdma_start_port(dev->ib_dev));
}

/* Return how many bytes a region of the device can have. */
u64 rpost_mr_max_size(const struct rpost_device *dev)
{
	u64 size = dev->ib_dev->attrs.max_mr_size;

	if (rpost_mr_strategy(dev) == RPOST_REG_FAST)
		return min(size, rpost_fastreg_max_size(dev->ib_dev));
	return min(size, rpost_compat_direct_max_size(dev->ib_dev));
}

/* Call under RCU. */
static struct rpost_mr *rpost_mr_find(struct rpost_pd *pd, const struct rpost_sge *sge, u32 access)
{
	struct rpost_mr *mr;
	u64 offset;

	mr = rhashtable_lookup(&pd->mrs, &sge->lkey, rpost_mr_params);
	if (!mr)
		return NULL;
	/* Below the region, this wraps to a large offset. */
	offset = sge->addr - mr->iova;
	return offset < mr->length && sge->length <= mr->length - offset &&
	       (mr->access & access) == access ? mr : NULL;
}

/*
 * May the program use the key of an entry, whose length is not 0, on a queue pair of
 * the domain?  access is RPOST_ACCESS_LOCAL_WRITE if the device will write to the
 * memory, or 0.
 *
 * If true, the key belongs to a live region of the domain that contains the range and
 * grants the access.  False also if the region's uses are counted, so that the post must
 * call rpost_mr_take().
 */
bool rpost_mr_check(struct rpost_pd *pd, const struct rpost_sge *sge, u32 access)
{
	struct rpost_mr *mr;
	bool good;

	rcu_read_lock();
	mr = rpost_mr_find(pd, sge, access);
	good = mr && !mr->counted;
	rcu_read_unlock();

	return good;
}

/*
 * Check a key for a queue pair of the domain, and take a use of its region, which must
 * have all of access (RPOST_ACCESS_*).  If cut is set, cut the entry at the end of its
 * region, which must then contain the first byte.  Set used to the region with a use, to
 * be dropped by rpost_mr_unuse(), or to NULL if its uses are not counted.  Return true
 * if the program may use the key.
 */
bool rpost_mr_take(struct rpost_pd *pd, struct rpost_sge *sge, u32 access,
		   bool cut, struct rpost_mr **used)
{
	struct rpost_sge part = *sge;
	struct rpost_mr *mr;

	*used = NULL;
	if (cut)
		part.length = 1;
	rcu_read_lock();
	mr = rpost_mr_find(pd, &part, access);
	if (mr && mr->counted) {
		if (atomic_inc_not_zero(&mr->uses))
			*used = mr;
		else
			mr = NULL;
	}
	if (mr && cut)
		sge->length = min_t(u64, sge->length, mr->iova + mr->length - sge->addr);
	rcu_read_unlock();
	return mr;
}

/*
 * Return the region of an entry, which must have all of access (RPOST_ACCESS_*), with a
 * reference, to be dropped by rpost_obj_put(); or NULL where rpost_mr_check() returns
 * false, except that a counted region is returned, too.  The rwsem of the domain's
 * context is held.
 */
struct rpost_mr *rpost_mr_get(struct rpost_pd *pd, const struct rpost_sge *sge, u32 access)
{
	struct rpost_mr *mr;

	rcu_read_lock();
	mr = rpost_mr_find(pd, sge, access);
	if (mr && !refcount_inc_not_zero(&mr->obj.refs))
		mr = NULL;
	rcu_read_unlock();
	return mr;
}

/*
 * If the device is being removed, this is the last chance, and the driver is asked
 * three times, unless dev->refuses.  Return 0; the driver's errno, if it can be asked
 * again; or 1 if the device keeps the region for ever.
 */
int rpost_dereg_mr(struct rpost_device *dev, struct ib_mr *ib_mr)
{
	/* Read once: a caller that sees it alive leaves it to removal. */
	bool alive = rpost_device_alive(dev);
	int ret, tries = alive || READ_ONCE(dev->refuses) ? 1 : 3;

	for (;;) {
		ret = rpost_inject(RPOST_INJECT_DEREG) ? -ENOMEM : ib_dereg_mr(ib_mr);
		if (!ret || alive)
			return ret;
		if (!--tries)
			break;
		msleep(20);
	}
	WRITE_ONCE(dev->refuses, true);
	return 1;
}

/* Let posts no longer find the region's key.  It need not be in the table. */
void rpost_mr_unlist(struct rpost_mr *mr)
{
	rhashtable_remove_fast(&mr->pd->mrs, &mr->node, rpost_mr_params);
}

/*
 * A region ends in one of two ways:
 *
 * - One with a handle by rpost_obj_end(), which calls rpost_mr_shutdown() and
 *   rpost_mr_free().  If the device refuses, the handle stays.  If the device is removed,
 *   the shutdown comes then, and the rest when the program destroys the region.
 * - One that the program does not know, of the cache or of a command that has failed, by
 *   rpost_mr_drop().  If the device refuses, the domain has the region (rpost_pd.refused),
 *   and asks again before it registers another on the device, and at its own end.
 */

/*
 * Deregister a region and unpin its memory.  Return 0, or the driver's errno; then it is
 * still pinned, but posts no longer find it.
 */
int rpost_mr_shutdown(struct rpost_obj *obj)
{
	struct rpost_mr *mr = rpost_obj_as(mr, obj);
	int ret;

	if (!mr->ib_mr)
		return 0;
	/* Remove it first: the device may give the key to the next region. */
	rpost_mr_unlist(mr);
	ret = rpost_dereg_mr(mr->pd->obj.dev, mr->ib_mr);
	if (ret < 0) {
		/* The device may have revoked the key by now. */
		WRITE_ONCE(mr->no_cache, true);
		return ret;
	}
	mr->ib_mr = NULL;
	if (mr->watch)
		rpost_watch_end(mr->watch);
	mr->watch = NULL;
	if (mr->mm)
		mmdrop(mr->mm);
	mr->mm = NULL;
	if (ret) {
		pr_warn_ratelimited("rdma_post: %lu pages stay pinned\n", mr->num_pages);
		mr->pd->leaked = true;
		rpost_dmabuf_leak(mr);
	} else {
		rpost_dmabuf_unaccount(mr);
		ib_umem_release(mr->umem);
		mr->umem = NULL;
		rpost_file_count(mr->obj.file, RPOST_COUNT_PINNED_PAGES, -(long)mr->num_pages);
	}
	if (mr->pinner)
		rpost_unpin(mr->obj.file, mr->pinner, mr->num_pages);
	mr->pinner = NULL;
	return 0;
}

/*
 * After rpost_mr_shutdown() has returned ret: drop the owner's use, and free the region with
 * the last one; or, if the device has refused, leave the region to the domain.  One that was
 * kept for REG_MR has no use to drop.  Return ret.
 */
static int rpost_mr_forget(struct rpost_mr *mr, int ret)
{
	if (ret)
		llist_add(&mr->refused, &mr->pd->refused);
	else if (atomic_dec_if_positive(&mr->uses) <= 0)
		kfree_rcu(mr, obj.rcu);
	return ret;
}

void rpost_mr_free(struct rpost_obj *obj)
{
	struct rpost_mr *mr = rpost_obj_as(mr, obj);

	rpost_obj_unuse(&mr->pd->obj);
	rpost_mr_forget(mr, 0);
}

/* Deregister a region of which the program does not know. */
void rpost_mr_drop(struct rpost_mr *mr)
{
	int ret = rpost_mr_shutdown(&mr->obj);

	rpost_obj_unreserve(&mr->obj);
	rpost_mr_forget(mr, ret);
}

/* rpost_mr_drop() for a region that uses its domain. */
void rpost_mr_abort(struct rpost_obj *obj)
{
	struct rpost_mr *mr = rpost_obj_as(mr, obj);
	struct rpost_pd *pd = mr->pd;

	rpost_mr_drop(mr);
	rpost_obj_unuse(&pd->obj);
}

/*
 * Deregister the regions that the device has refused to deregister.  Return 0, or the
 * driver's errno; then some are still registered.
 */
int rpost_mr_retry_refused(struct rpost_pd *pd)
{
	struct rpost_mr *mr, *next;
	struct llist_node *list;
	int err = 0;

	if (likely(llist_empty(&pd->refused)))
		return 0;
	list = llist_del_all(&pd->refused);
	llist_for_each_entry_safe(mr, next, list, refused)
		err = rpost_mr_forget(mr, rpost_mr_shutdown(&mr->obj)) ? : err;
	return err;
}

/* Look at what does not depend on whose memory it is. */
int rpost_mr_validate_any(const struct rpost_reg_mr *cmd)
{
	u64 end;

	if (cmd->access & ~RPOST_ACCESS_MASK)
		return -EOPNOTSUPP;
	/*
	 * All memory on demand: the driver would allocate for what the device
	 * touches, and nobody could be charged.
	 */
	if ((cmd->access & RPOST_ACCESS_ON_DEMAND) && !cmd->addr && cmd->length == U64_MAX)
		return -EOPNOTSUPP;
	/* rxe would flush it all at a peer's request, without a pause. */
	if ((cmd->access & RPOST_ACCESS_ON_DEMAND) && (cmd->access & RPOST_ACCESS_FLUSH_PERSISTENT))
		return -EOPNOTSUPP;
	if ((cmd->access & (RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_REMOTE_ATOMIC)) &&
	    !(cmd->access & RPOST_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (!cmd->length)
		return -EINVAL;
	if (check_add_overflow(cmd->addr, cmd->length, &end) ||
	    check_add_overflow(cmd->iova, cmd->length, &end))
		return -EOVERFLOW;
	if ((cmd->addr ^ cmd->iova) & ~PAGE_MASK)
		return -EINVAL;
	return 0;
}

/* Return 0, -EOPNOTSUPP, -EINVAL, -EOVERFLOW, or -EFAULT. */
int rpost_mr_validate(const struct rpost_reg_mr *cmd)
{
	int ret = rpost_mr_validate_any(cmd);

	if (ret)
		return ret;
	/*
	 * More cannot be mapped, and the core counts pages in 32 bits.  The CPU
	 * ignores tags in the upper bits; ib_umem_get() strips them.
	 */
	if (cmd->addr > ULONG_MAX ||
	    untagged_addr((unsigned long)cmd->addr) + cmd->length > TASK_SIZE_MAX)
		return -EFAULT;
	return 0;
}

/* Does no policy forbid it?  Return 0 or -EPERM. */
int rpost_mr_allowed(const struct rpost_file *file, const struct rpost_reg_mr *cmd)
{
	return cmd->access & (RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_REMOTE_READ |
			      RPOST_ACCESS_REMOTE_ATOMIC | RPOST_ACCESS_FLUSH_GLOBAL |
			      RPOST_ACCESS_FLUSH_PERSISTENT) ?
		rpost_policy_permits(&file->tenant, RPOST_FORBID_REMOTE) : 0;
}

static int rpost_mr_register(struct rpost_mr *mr, const struct rpost_reg_mr *cmd,
			     struct dma_buf *dmabuf)
{
	struct rpost_device *dev = mr->pd->obj.dev;
	bool on_demand = cmd->access & RPOST_ACCESS_ON_DEMAND;
	int ret, strategy = rpost_mr_strategy(dev);
	struct rpost_pin_cred cred;
	struct ib_mr *ib_mr;

	if (dmabuf)
		return rpost_fastreg_mr(mr, cmd, dmabuf);
	if (strategy < 0)
		return strategy;
	if (on_demand) {
		if (strategy != RPOST_REG_DIRECT)
			return -EOPNOTSUPP;
		ret = rpost_odp_prepare(mr, cmd);
		if (ret)
			return ret;
	}
	if (strategy == RPOST_REG_FAST)
		return rpost_fastreg_mr(mr, cmd, NULL);

	if (!on_demand && cmd->length > rpost_compat_direct_max_size(dev->ib_dev))
		return -EMSGSIZE;
	if (dev->driver->no_iova && cmd->iova != cmd->addr)
		return -EOPNOTSUPP;
	ret = rpost_pin_cred_begin(&cred);
	if (ret)
		return ret;
	ib_mr = ib_reg_user_mr(mr->pd->ib_pd, cmd->addr, cmd->length, cmd->iova, cmd->access);
	rpost_pin_cred_end(&cred);
	if (IS_ERR(ib_mr))
		return PTR_ERR(ib_mr);
	mr->ib_mr = ib_mr;
	if (on_demand) {
		mr->mm = current->mm;
		mmgrab(mr->mm);
	}
	return 0;
}

/*
 * Make memory of the task present, with FOLL_* flags.  The caller holds nothing that
 * others wait for, since the pages may never come.  Return 0, -EINTR if the task is
 * killed, -EFAULT, or another negative errno.
 */
int rpost_mr_touch(unsigned long addr, u64 length, unsigned int flags)
{
	unsigned long left = rpost_mr_pages(addr, length);
	struct page *pages[RPOST_FAULT_BATCH];
	int n, i;

	addr &= PAGE_MASK;
	while (left) {
		if (fatal_signal_pending(current))
			return -EINTR;
		n = get_user_pages_fast(addr, min_t(u64, left, RPOST_FAULT_BATCH), flags, pages);
		if (n <= 0)
			return n ? : -EFAULT;
		for (i = 0; i < n; i++)
			put_page(pages[i]);
		addr += (unsigned long)n << PAGE_SHIFT;
		left -= n;
		cond_resched();
	}
	return 0;
}

/*
 * Fault the pages in before the driver pins them with the context's rwsem held, so that the
 * driver need not wait for them.  Return 0, -ENOBUFS, or an errno of rpost_mr_touch().
 */
int rpost_mr_fault_in(const struct rpost_reg_mr *cmd)
{
	unsigned int flags = rpost_compat_gup_flags(ib_access_writable(cmd->access));
	unsigned long pages = rpost_mr_pages(cmd->addr, cmd->length);

	/* More than this is refused later. */
	if (pages > totalram_pages() || (pages > rpost_pin_limit() && !capable(CAP_IPC_LOCK)))
		return -ENOBUFS;
	return rpost_mr_touch(cmd->addr, cmd->length, flags);
}

/*
 * Register memory for a validated command.  The region takes the charge of pin over, and
 * its watch, if regions of the device can be kept.  An inner region has no handle.  Return
 * the region, which only the caller knows, or ERR_PTR().
 */
struct rpost_mr *rpost_mr_make(struct rpost_pd *pd, const struct rpost_reg_mr *cmd,
			       struct rpost_pin *pin, bool inner)
{
	struct rpost_file *file = pd->obj.file;
	struct rpost_mr *mr;
	int ret;

	mr = kzalloc(sizeof(*mr), RPOST_GFP);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->pd = pd;
	mr->addr = cmd->addr;
	mr->iova = cmd->iova;
	mr->length = cmd->length;
	mr->access = cmd->access;
	mr->no_cache = cmd->flags & RPOST_MR_NO_CACHE;
	mr->inner = inner;
	atomic_set(&mr->uses, 1);
	mr->span.start = cmd->addr;
	mr->span.last = cmd->addr + cmd->length - 1;
	ret = inner ? rpost_obj_reserve_inner(file, &mr->obj, RPOST_OBJ_MR, pd->obj.dev) :
		      rpost_obj_reserve(file, &mr->obj, RPOST_OBJ_MR, pd->obj.dev, RPOST_GFP);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}

	ret = rpost_mr_register(mr, cmd, pin->dmabuf);
	if (!mr->ib_mr)
		goto err;
	mr->pinner = pin->pinner;
	pin->pinner = NULL;
	mr->num_pages = pin->pages;
	rpost_file_count(file, RPOST_COUNT_PINNED_PAGES, mr->num_pages);
	if (!ret && READ_ONCE(pin->unmapped))
		ret = -EFAULT;
	if (ret)
		goto err;
	mr->lkey = mr->ib_mr->lkey;
	if (pin->watch && !mr->umem && rpost_mr_can_keep(pd->obj.dev)) {
		mr->watch = pin->watch;
		pin->watch = NULL;
		rpost_watch_follow(mr->watch, mr);
	}
	mr->counted = mr->watch || inner;
	return mr;

err:
	rpost_mr_drop(mr);
	return ERR_PTR(ret);
}

/* List a region, which uses its domain, and tell the program. */
static int rpost_reg_mr_finish(struct rpost_ucmd *ucmd, struct rpost_mr *mr)
{
	struct rpost_reg_mr *cmd = &ucmd->cmd.reg_mr;
	int ret;

	ret = rhashtable_insert_fast(&mr->pd->mrs, &mr->node, rpost_mr_params);
	/*
	 * A region from the cache has no handle yet.  It comes last, as from then on whoever
	 * has found the old one under RCU can get a reference.
	 */
	if (!ret && !mr->obj.slot)
		ret = rpost_obj_take_handle(&mr->obj, RPOST_GFP);
	if (ret) {
		rpost_mr_abort(&mr->obj);
		return ret;
	}
	cmd->handle = mr->obj.handle;
	cmd->lkey = mr->ib_mr->lkey;
	cmd->rkey = mr->ib_mr->rkey;
	return rpost_obj_answer(ucmd, &mr->obj);
}

/* Take the region from the cache, if it is there.  Return 1 if it is not. */
static int rpost_reg_mr_again(struct rpost_ucmd *ucmd)
{
	struct rpost_reg_mr *cmd = &ucmd->cmd.reg_mr;
	struct rpost_pd *pd = rpost_pd_use(ucmd, cmd->pd);
	struct rpost_mr *mr;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	mr = rpost_cache_take(pd, cmd);
	if (mr)
		return rpost_reg_mr_finish(ucmd, mr);
	rpost_obj_unuse(&pd->obj);
	rpost_leave_device(ucmd);
	return 1;
}

/*
 * Register memory as cmd.reg_mr says, which has been validated, and tell the program.
 * The command enters the domain's device.
 */
int rpost_mr_new(struct rpost_ucmd *ucmd, struct rpost_pin *pin)
{
	struct rpost_reg_mr *cmd = &ucmd->cmd.reg_mr;
	struct rpost_pd *pd = rpost_pd_use(ucmd, cmd->pd);
	struct rpost_mr *mr;
	int ret;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	/* Does the device have the flush rights? */
	ret = ib_check_mr_access(pd->obj.dev->ib_dev, cmd->access & RPOST_COMPAT_ACCESS_FLUSH);
	if (ret)
		goto err;
	/* The program is charged for the memory of refused regions. */
	rpost_mr_retry_refused(pd);

	mr = rpost_mr_make(pd, cmd, pin, false);
	if (!IS_ERR(mr))
		return rpost_reg_mr_finish(ucmd, mr);
	ret = PTR_ERR(mr);
err:
	rpost_obj_unuse(&pd->obj);
	return ret;
}

int rpost_reg_mr_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_reg_mr *cmd = &ucmd->cmd.reg_mr;
	struct rpost_pin pin = { };
	bool seen = false;
	int ret;

	if (cmd->fd)
		return -EOPNOTSUPP;
	ret = rpost_mr_validate(cmd) ? : rpost_mr_allowed(ucmd->file, cmd);
	if (ret)
		return ret;
	if (rpost_cache_expects(ucmd->file, cmd, &seen)) {
		ret = rpost_reg_mr_again(ucmd);
		if (ret <= 0)
			return ret;
	}
	/*
	 * This comes before the charge: memory that is not there must not use up a bound that
	 * others share.  -ENOBUFS is left to rpost_pin_begin() or to the driver.
	 */
	if (!(cmd->access & RPOST_ACCESS_ON_DEMAND))
		ret = rpost_mr_fault_in(cmd);
	if (ret && ret != -ENOBUFS)
		return ret;
	ret = rpost_pin_begin(&pin, ucmd->file, cmd->addr, cmd->length, cmd->access);
	if (ret)
		return ret;
	if (seen)
		pin.watch = rpost_watch_begin(ucmd->file, cmd->addr, cmd->length);
	ret = rpost_mr_new(ucmd, &pin);
	rpost_leave_device(ucmd);
	rpost_pin_end(&pin);
	return ret;
}
