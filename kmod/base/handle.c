// SPDX-License-Identifier: GPL-2.0
/*
 * The table of handles.  See struct rpost_handles.
 */
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "base/base.h"

#define RPOST_MAX_LEAVES	((1u << RPOST_INDEX_BITS) / RPOST_LEAF_SLOTS)
#define RPOST_LEAF_BYTES	(RPOST_LEAF_SLOTS * sizeof(struct rpost_slot) + \
				 sizeof(struct rpost_slot *))

/* The table grows when no more are free, so that no handle is reused soon. */
#define RPOST_MIN_FREE		64u

static struct rpost_leaves *rpost_leaves_locked(struct rpost_handles *handles)
{
	return rcu_dereference_protected(handles->leaves,
					 lockdep_is_held(&handles->lock));
}

/* Allocate a table for @num leaves, and the last leaf, its slots in a list. */
static struct rpost_leaves *rpost_leaves_alloc(u32 num, gfp_t gfp)
{
	u32 i, base = (num - 1) * RPOST_LEAF_SLOTS;
	struct rpost_leaves *leaves;
	struct rpost_slot *leaf;

	leaves = kmalloc(struct_size(leaves, leaf, num), gfp);
	leaf = kcalloc(RPOST_LEAF_SLOTS, sizeof(*leaf), gfp);
	if (!leaves || !leaf) {
		kfree(leaves);
		kfree(leaf);
		return NULL;
	}
	for (i = 0; i < RPOST_LEAF_SLOTS; i++) {
		leaf[i].handle = base + i;
		leaf[i].next = base + i + 1;
	}
	leaves->num = num;
	leaves->leaf[num - 1] = leaf;
	return leaves;
}

/* Replace the table by @more.  Return false if another task was faster. */
static bool rpost_handles_add(struct rpost_handles *handles,
			      struct rpost_leaves *more)
{
	struct rpost_leaves *old = rpost_leaves_locked(handles);
	u32 num = old ? old->num : 0;
	/* 0 is not a handle. */
	u32 begin = num ? num * RPOST_LEAF_SLOTS : 1;
	u32 end = (num + 1) * RPOST_LEAF_SLOTS;

	if (more->num != num + 1) {
		kfree(more->leaf[more->num - 1]);
		kfree(more);
		return false;
	}
	if (old)
		memcpy(more->leaf, old->leaf, flex_array_size(old, leaf, num));
	if (handles->num_free)
		rpost_slot(more, handles->last)->next = begin;
	else
		handles->first = begin;
	handles->last = end - 1;
	handles->num_free += end - begin;
	rcu_assign_pointer(handles->leaves, more);
	if (old)
		kfree_rcu(old, rcu);
	return true;
}

/* Return the number of leaves to grow to, or 0 (enough, or at the maximum). */
static u32 rpost_handles_wanted(struct rpost_handles *handles)
{
	struct rpost_leaves *leaves = rpost_leaves_locked(handles);
	u32 num = leaves ? leaves->num : 0;

	return handles->num_free <= RPOST_MIN_FREE && num < RPOST_MAX_LEAVES ?
	       num + 1 : 0;
}

static int rpost_handles_grow(struct rpost_handles *handles, u32 num, gfp_t gfp)
{
	struct rpost_file *file = container_of(handles, struct rpost_file, handles);
	struct rpost_leaves *leaves;
	bool added = false;

	if (rpost_charge(file, RPOST_LEAF_BYTES))
		return -ENOMEM;
	leaves = rpost_leaves_alloc(num, gfp);
	if (leaves) {
		spin_lock(&handles->lock);
		added = rpost_handles_add(handles, leaves);
		spin_unlock(&handles->lock);
	}
	if (!added)
		rpost_uncharge(file, RPOST_LEAF_BYTES);
	return leaves ? 0 : -ENOMEM;
}

/* All handles are free, and no lookup is running. */
void rpost_handles_destroy(struct rpost_handles *handles)
{
	struct rpost_file *file = container_of(handles, struct rpost_file, handles);
	struct rpost_leaves *leaves = rcu_dereference_protected(handles->leaves,
								true);
	u32 i;

	if (!leaves)
		return;
	for (i = 0; i < leaves->num; i++)
		kfree(leaves->leaf[i]);
	rpost_uncharge(file, leaves->num * RPOST_LEAF_BYTES);
	kfree(leaves);
}

/*
 * Reserve a handle that no lookup finds, unless there are limit handles, and set reserved
 * to its slot.  Return 0, -EMFILE at the limit, or -ENOMEM.
 */
int rpost_handle_reserve(struct rpost_handles *handles, u32 limit, gfp_t gfp,
			 struct rpost_slot **reserved)
{
	struct rpost_slot *slot;
	int ret = 0;
	u32 num;

	spin_lock(&handles->lock);
	if (handles->num >= limit) {
		ret = -EMFILE;
		goto out;
	}
	/* Count it before the lock is dropped, so that @limit holds. */
	WRITE_ONCE(handles->num, handles->num + 1);
	while (!ret && unlikely(num = rpost_handles_wanted(handles))) {
		spin_unlock(&handles->lock);
		ret = rpost_handles_grow(handles, num, gfp);
		spin_lock(&handles->lock);
	}
	if (!ret && !handles->num_free)
		ret = -EMFILE;
	if (ret) {
		WRITE_ONCE(handles->num, handles->num - 1);
		goto out;
	}
	slot = rpost_slot(rpost_leaves_locked(handles), handles->first);
	handles->first = slot->next;
	handles->num_free--;
	*reserved = slot;
out:
	spin_unlock(&handles->lock);
	return ret;
}

/* Give back the handle of a slot, which lookups do not find. */
void rpost_handle_unreserve(struct rpost_handles *handles,
			    struct rpost_slot *slot)
{
	u32 index = slot->handle & RPOST_INDEX_MASK;

	spin_lock(&handles->lock);
	slot->handle = (slot->handle + RPOST_INDEX_MASK + 1) & INT_MAX;
	if (handles->num_free++)
		rpost_slot(rpost_leaves_locked(handles), handles->last)->next =
			index;
	else
		handles->first = index;
	handles->last = index;
	WRITE_ONCE(handles->num, handles->num - 1);
	spin_unlock(&handles->lock);
}

/*
 * Iterate over all objects, under RCU.  index is 0, or where the last call ended; it is
 * set to where this one ended.  Return the next object that lookups find, or NULL.
 */
struct rpost_obj *rpost_handle_next(struct rpost_handles *handles, u32 *index)
{
	const struct rpost_leaves *leaves = rcu_dereference(handles->leaves);
	struct rpost_obj *obj = NULL;

	while (!obj && leaves && *index < leaves->num * RPOST_LEAF_SLOTS)
		obj = rcu_dereference(rpost_slot(leaves, (*index)++)->obj);
	return obj;
}
