/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Handles: which numbers there are, and what they stand for.
 */
#ifndef RPOST_HANDLE_H
#define RPOST_HANDLE_H

#include <linux/nospec.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#define RPOST_INDEX_BITS	20
#define RPOST_INDEX_MASK	((1u << RPOST_INDEX_BITS) - 1)
#define RPOST_LEAF_SLOTS	128u

struct rpost_obj;

/**
 * struct rpost_slot - one handle at a time
 * @obj: what lookups find, or NULL; written by who has reserved the handle
 * @handle: the handle that it is, or will be next: its index in the low
 *          RPOST_INDEX_BITS, and above how often it was used, modulo 2,048;
 *          from 1 to INT_MAX
 * @next: index of the next free slot, if it is free and not the last one
 */
struct rpost_slot {
	struct rpost_obj __rcu *obj;
	u32 handle;
	u32 next;
};

/**
 * struct rpost_leaves - all slots of an open file
 * @rcu: it is replaced when there are more
 * @num: how many leaves; none is ever removed
 * @leaf: each is RPOST_LEAF_SLOTS slots, which stay where they are
 */
struct rpost_leaves {
	struct rcu_head rcu;
	u32 num;
	struct rpost_slot *leaf[];
};

/**
 * struct rpost_handles - the handles of an open file
 * @lock: guards what follows, and the users of the objects
 * @leaves: slots, one for each handle that there can be at a time
 * @num: handles that are not free; a query reads it without @lock
 * @num_free: slots that are free
 * @first: index of the slot that has been free longest
 * @last: index of the slot that has been free shortest
 *
 * A handle is free, or reserved, or stands for an object that lookups find.  It
 * is the index of a slot and, above, how often the slot has been used.  Slots come
 * in leaves, stay where they are, and are freed with the open file: who looks a
 * handle up, under RCU, reads two pointers.  Free ones wait in a queue that is not
 * let become short, and each slot has 2,048 handles in turn: so a handle comes
 * again after 130,000 others at the earliest.
 */
struct rpost_handles {
	spinlock_t lock;
	struct rpost_leaves __rcu *leaves;
	u32 num;
	u32 num_free;
	u32 first;
	u32 last;
};

/* The slot of a handle, whoever says that it is one, or NULL. */
static inline struct rpost_slot *rpost_slot(const struct rpost_leaves *leaves,
					    u32 handle)
{
	u32 index = handle & RPOST_INDEX_MASK, i = index / RPOST_LEAF_SLOTS;

	if (!leaves || i >= leaves->num)
		return NULL;
	return leaves->leaf[array_index_nospec(i, leaves->num)] +
	       index % RPOST_LEAF_SLOTS;
}

/*
 * What is found in the slot of a handle: the object, or one with another handle,
 * or NULL.  Under RCU it may be about to be destroyed, with the lock it is not.
 */
static inline struct rpost_obj *rpost_handle_find(struct rpost_handles *handles,
						  u32 handle)
{
	struct rpost_slot *slot;

	slot = rpost_slot(rcu_dereference_check(handles->leaves,
						lockdep_is_held(&handles->lock)),
			  handle);
	return slot ? rcu_dereference_check(slot->obj,
					    lockdep_is_held(&handles->lock)) :
		      NULL;
}

void rpost_handles_init(struct rpost_handles *handles);
void rpost_handles_destroy(struct rpost_handles *handles);
int rpost_handle_reserve(struct rpost_handles *handles, u32 limit, gfp_t gfp,
			 struct rpost_slot **reserved);
void rpost_handle_unreserve(struct rpost_handles *handles,
			    struct rpost_slot *slot);
struct rpost_obj *rpost_handle_next(struct rpost_handles *handles, u32 *index);

#endif /* RPOST_HANDLE_H */
