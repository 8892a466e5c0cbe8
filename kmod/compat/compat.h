/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernels.  No other file checks the kernel's version.
 */
#ifndef RPOST_COMPAT_H
#define RPOST_COMPAT_H

#include <linux/cpu.h>
#include <linux/list_lru.h>
#include <linux/mm.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/workqueue.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

/*
 * The kernel whose RDMA interface the headers have. OFED's may have another one
 * than the kernel; Kbuild finds out which.
 */
#ifndef RPOST_RDMA_VERSION
#define RPOST_RDMA_VERSION	LINUX_VERSION_CODE
#endif

/* Since 6.3 vm_flags changes through its accessors only. */
static inline void rpost_compat_vm_flags_mod(struct vm_area_struct *vma,
					     vm_flags_t set, vm_flags_t clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/* 6.2 added mana, and 6.18 ionic. */
#if RPOST_RDMA_VERSION >= KERNEL_VERSION(6, 2, 0)
#define RPOST_COMPAT_DRIVER_MANA	RDMA_DRIVER_MANA
#else
#define RPOST_COMPAT_DRIVER_MANA	(RDMA_DRIVER_ERDMA + 1)
#endif
#if RPOST_RDMA_VERSION >= KERNEL_VERSION(6, 18, 0)
#define RPOST_COMPAT_DRIVER_IONIC	RDMA_DRIVER_IONIC
#else
#define RPOST_COMPAT_DRIVER_IONIC	(RDMA_DRIVER_ERDMA + 2)
#endif

/* 6.2 added flush and atomic write, for user queue pairs only. */
#if RPOST_RDMA_VERSION >= KERNEL_VERSION(6, 2, 0)
#define RPOST_COMPAT_ACCESS_FLUSH \
	(IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_FLUSH_PERSISTENT)
#define RPOST_COMPAT_USER_CAPS \
	(IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_FLUSH_PERSISTENT | \
	 IB_DEVICE_ATOMIC_WRITE)
#else
#define RPOST_COMPAT_ACCESS_FLUSH	0
#define RPOST_COMPAT_USER_CAPS		0
#endif

/*
 * Since 6.12.114 rxe describes a region in contiguous memory, 16 bytes for each
 * page; an allocation beyond KMALLOC_MAX_SIZE makes the kernel warn.
 */
static inline u64 rpost_compat_direct_max_size(const struct ib_device *ib_dev)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 114)
	if (ib_dev->ops.driver_id == RDMA_DRIVER_RXE)
		return (u64)(KMALLOC_MAX_SIZE / 16 - 1) << PAGE_SHIFT;
#endif
	return ib_dev->attrs.max_mr_size;
}

/*
 * If it could not resize a shared receive queue, rxe freed the ring and went on
 * using it, until 503a5e4690ae ("RDMA/rxe: Fix null deref on srq->rq.queue after
 * resize failure"), which Debian's 6.1.191, 6.12.63 and 7.2 have.
 */
static inline bool rpost_compat_can_resize_srq(const struct ib_device *ib_dev)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 0, 0) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 63) && \
	 LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)) || \
	(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 191) && \
	 LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0))
	return true;
#else
	return ib_dev->ops.driver_id != RDMA_DRIVER_RXE;
#endif
}

/*
 * Flags with which ib_umem_get() pins pages.  Before 6.2 it wrote even to pages
 * that a device only reads, to get a private copy of them.
 */
static inline unsigned int rpost_compat_gup_flags(bool writable)
{
#if RPOST_RDMA_VERSION >= KERNEL_VERSION(6, 2, 0)
	return writable ? FOLL_WRITE : 0;
#else
	return writable ? FOLL_WRITE : FOLL_WRITE | FOLL_FORCE;
#endif
}

/*
 * Can pages of a shared mapping that tracks which pages are dirty be pinned for writing?
 * Since 6.5 get_user_pages() refuses it for the long term (a6e79df92e4a, "mm/gup: disallow
 * FOLL_LONGTERM GUP-fast writing to file-backed mappings", and the two before).
 */
static inline bool rpost_compat_pins_tracked(void)
{
	return LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0);
}

/* 7.2 renamed ib_umem_get(). */
static inline struct ib_umem *rpost_compat_umem_get(struct ib_device *ib_dev,
						    u64 addr, u64 length,
						    u32 access)
{
#if RPOST_RDMA_VERSION >= KERNEL_VERSION(7, 2, 0)
	return ib_umem_get_va(ib_dev, addr, length, access);
#else
	return ib_umem_get(ib_dev, addr, length, access);
#endif
}

/* Since 6.8 list_lru_add() wants the node and the memory cgroup. */
static inline void rpost_compat_lru_add(struct list_lru *lru, struct list_head *item)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	list_lru_add_obj(lru, item);
#else
	list_lru_add(lru, item);
#endif
}

static inline void rpost_compat_lru_del(struct list_lru *lru, struct list_head *item)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
	list_lru_del_obj(lru, item);
#else
	list_lru_del(lru, item);
#endif
}

typedef bool rpost_compat_lru_take(struct list_head *item);

/* Since 6.13 the callback is not told the lock. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
static inline enum lru_status
rpost_compat_lru_offer(struct list_head *item, struct list_lru_one *list, void *arg)
#else
static inline enum lru_status
rpost_compat_lru_offer(struct list_head *item, struct list_lru_one *list,
		       spinlock_t *lock, void *arg)
#endif
{
	rpost_compat_lru_take *take = arg;

	if (!take(item))
		return LRU_ROTATE;
	list_lru_isolate(list, item);
	return LRU_REMOVED;
}

/*
 * Offer up to @max entries of the list that @sc names to @take, with the lock of
 * the list held.  Remove and count those that it takes; the others go to the end.
 */
static inline unsigned long
rpost_compat_lru_walk(struct list_lru *lru, struct shrink_control *sc,
		      unsigned long max, rpost_compat_lru_take *take)
{
	return list_lru_walk_one(lru, sc->nid, sc->memcg, rpost_compat_lru_offer, take,
				 &max);
}

/* Since 6.7 the kernel allocates shrinkers.  This also initializes @lru. */
static inline struct shrinker *
rpost_compat_shrinker_add(unsigned long (*count)(struct shrinker *, struct shrink_control *),
			  unsigned long (*scan)(struct shrinker *, struct shrink_control *),
			  struct list_lru *lru, const char *name)
{
	const unsigned int flags = SHRINKER_NUMA_AWARE | SHRINKER_MEMCG_AWARE;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	struct shrinker *shrinker = shrinker_alloc(flags, "%s", name);

	if (!shrinker)
		return NULL;
	if (list_lru_init_memcg(lru, shrinker)) {
		shrinker_free(shrinker);
		return NULL;
	}
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker_register(shrinker);
	return shrinker;
#else
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (!shrinker)
		return NULL;
	shrinker->seeks = DEFAULT_SEEKS;
	shrinker->flags = flags;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	if (list_lru_init_memcg(lru, shrinker))
		goto err_free;
	if (register_shrinker(shrinker, "%s", name))
		goto err_lru;
#ifdef CONFIG_MEMCG_KMEM
	/* The id exists only now; @lru is still empty. */
	lru->shrinker_id = shrinker->id;
#endif
	return shrinker;

err_lru:
	list_lru_destroy(lru);
err_free:
	kfree(shrinker);
	return NULL;
#endif
}

/* Undo rpost_compat_shrinker_add(). */
static inline void rpost_compat_shrinker_del(struct shrinker *shrinker,
					     struct list_lru *lru)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	shrinker_free(shrinker);
#else
	unregister_shrinker(shrinker);
	kfree(shrinker);
#endif
	list_lru_destroy(lru);
}

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
static inline long rpost_compat_run_tasklets(void *unused)
{
	local_bh_disable();
	local_bh_enable();
	return 0;
}
#endif

/*
 * 6.1's rxe calls completion handlers from a tasklet, which ib_destroy_cq()
 * does not wait for.  So before that call every CPU is made to run its pending
 * tasklets.  The queue pairs' tasklets, which would schedule more, were killed
 * with the queue pairs.
 */
static inline void rpost_compat_flush_handlers(const struct ib_device *ib_dev)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
	int cpu;

	if (ib_dev->ops.driver_id != RDMA_DRIVER_RXE)
		return;
	/* A CPU that goes offline hands its tasklets to another. */
	cpus_read_lock();
	for_each_online_cpu(cpu)
		work_on_cpu(cpu, rpost_compat_run_tasklets, NULL);
	cpus_read_unlock();
#endif
}

#endif /* RPOST_COMPAT_H */
