// SPDX-License-Identifier: GPL-2.0
//
// Puts what Linux 7.2 has in the place of what compat/compat.h has, and removes what only
// older kernels need. upstream.sh runs it.

// ------------------------------------------------------- names

@@
symbol RPOST_COMPAT_DRIVER_MANA, RPOST_COMPAT_DRIVER_IONIC;
symbol RPOST_COMPAT_USER_CAPS;
symbol rpost_compat_umem_get, rpost_compat_lru_add, rpost_compat_lru_del;
symbol rpost_compat_direct_max_size;
@@
(
- RPOST_COMPAT_DRIVER_MANA
+ RDMA_DRIVER_MANA
|
- RPOST_COMPAT_DRIVER_IONIC
+ RDMA_DRIVER_IONIC
|
- RPOST_COMPAT_USER_CAPS
+ IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_FLUSH_PERSISTENT | IB_DEVICE_ATOMIC_WRITE
|
- rpost_compat_umem_get
+ ib_umem_get_va
|
- rpost_compat_lru_add
+ list_lru_add_obj
|
- rpost_compat_lru_del
+ list_lru_del_obj
|
- rpost_compat_direct_max_size
+ rpost_mr_direct_max_size
)

@@ expression vma, set, clear; @@
- rpost_compat_vm_flags_mod(vma, set, clear)
+ vm_flags_mod(vma, set, clear)

@@ expression writable; @@
- if (rpost_compat_gup_flags(writable) & FOLL_FORCE) { ... }

@@ expression writable; @@
- rpost_compat_gup_flags(writable)
+ writable ? FOLL_WRITE : 0

// ------------------------------------------------------- the largest region of rxe

@@ typedef bool, u64; identifier dev; @@
  bool rpost_mr_can_keep(const struct rpost_device *dev) { ... }
+/*
+ * rxe describes a region in contiguous memory, 16 bytes for each page; an allocation
+ * beyond KMALLOC_MAX_SIZE makes the kernel warn.
+ */
+static u64 rpost_mr_direct_max_size(const struct ib_device *ib_dev)
+{
+	if (ib_dev->ops.driver_id != RDMA_DRIVER_RXE)
+		return ib_dev->attrs.max_mr_size;
+	return (u64)(KMALLOC_MAX_SIZE / 16 - 1) << PAGE_SHIFT;
+}

// ------------------------------------------------------- the shrinker

@@ identifier shrinker, sc; @@
  static unsigned long rpost_watch_count(struct shrinker *shrinker, struct shrink_control *sc)
  { ... }
+/* Called with the list's lock held. */
+static enum lru_status rpost_watch_one(struct list_head *item, struct list_lru_one *lru, void *arg)
+{
+	if (!rpost_cache_doom_idle(item))
+		return LRU_ROTATE;
+	list_lru_isolate(lru, item);
+	return LRU_REMOVED;
+}

@@ expression lru, sc; identifier left; symbol rpost_cache_doom_idle; @@
- rpost_compat_lru_walk(lru, sc, left, rpost_cache_doom_idle)
+ list_lru_walk_one(lru, sc->nid, sc->memcg, rpost_watch_one, NULL, &left)

@@ expression shrinker, count, scan, lru, name; identifier err; @@
- shrinker = rpost_compat_shrinker_add(count, scan, lru, name);
+ shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE | SHRINKER_MEMCG_AWARE,
+ 	name);
  if (!shrinker)
  	goto err;
+ if (list_lru_init_memcg(lru, shrinker)) {
+ 	shrinker_free(shrinker);
+ 	goto err;
+ }
+ shrinker->count_objects = count;
+ shrinker->scan_objects = scan;
+ shrinker_register(shrinker);

@@ expression shrinker, lru; @@
- rpost_compat_shrinker_del(shrinker, lru);
+ shrinker_free(shrinker);
+ list_lru_destroy(lru);

// ------------------------------------------------------- only for older kernels

@@ expression can; @@
- return (can) && rpost_compat_can_resize_srq(...);
+ return can;

@@ @@
- if (...) rpost_compat_flush_handlers(...);

// Flush
@@ expression access; symbol RPOST_QP_ACCESS_VOID; @@
- access & ~RPOST_QP_ACCESS_VOID
+ access

@@ expression none; @@
- #define RPOST_QP_ACCESS_VOID none

// Pins of memory that a file system writes back
@@ expression pin; symbol ret, false; @@
(
- if (!ret && rpost_compat_pins_tracked() && ...) ret = rpost_pin_arm(...);
|
- if (pin->armed) mmu_interval_notifier_remove(&pin->notifier);
- pin->armed = false;
|
- if (!ret && READ_ONCE(pin->unmapped)) ret = -EFAULT;
)

@@ @@
(
- static int rpost_pin_arm(...) { ... }
|
- static bool rpost_pin_invalidate(...) { ... }
|
- static bool rpost_vma_untracked(...) { ... }
)

@@ symbol rpost_pin_ops; @@
- static const struct mmu_interval_notifier_ops rpost_pin_ops = { ... };

@@ @@
  struct rpost_pin {
- 	struct mmu_interval_notifier notifier;
- 	bool armed;
- 	bool unmapped;
  	...
  };
