/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Handles, and the objects that they stand for.
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
 * struct rpost_slot - an entry of the handle table
 * @obj: the object that lookups find, or NULL; written with @handle reserved
 * @handle: its handle, or its next one if it is free: the slot's index in the
 *          low RPOST_INDEX_BITS, and above how often it was used, modulo 2,048;
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
 * @rcu: frees it, once a larger one has replaced it
 * @num: number of leaves; none is ever removed
 * @leaf: arrays of RPOST_LEAF_SLOTS slots, which never move
 */
struct rpost_leaves {
	struct rcu_head rcu;
	u32 num;
	struct rpost_slot *leaf[];
};

/**
 * struct rpost_handles - the handles of an open file
 * @lock: guards the following, and @users of the objects
 * @leaves: slots, one for each handle that can exist at a time
 * @num: handles in use or reserved; a query reads it without @lock
 * @num_free: slots that are free
 * @first: index of the slot that has been free longest
 * @last: index of the slot that has been free shortest
 *
 * A handle is free, or reserved, or stands for an object that lookups find.
 * Slots never move and are freed with the open file, so that a lookup, under
 * RCU, reads two pointers.  Free slots wait in a queue of at least
 * RPOST_MIN_FREE, and each has 2,048 handles in turn: a handle is reused after
 * 130,000 others at the earliest.  Once the table has its maximum of 2^20 slots
 * the queue may become shorter, and a handle may be reused after 2,047 others.
 */
struct rpost_handles {
	spinlock_t lock;
	struct rpost_leaves __rcu *leaves;
	u32 num;
	u32 num_free;
	u32 first;
	u32 last;
};

/* Find the slot of any number that a program names, or NULL. */
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
 * Return the object in the slot of a handle, which may have another handle, or
 * NULL.  Under RCU it may be about to be destroyed; under the lock it is not.
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

void rpost_handles_destroy(struct rpost_handles *handles);
int rpost_handle_reserve(struct rpost_handles *handles, u32 limit, gfp_t gfp,
			 struct rpost_slot **reserved);
void rpost_handle_unreserve(struct rpost_handles *handles,
			    struct rpost_slot *slot);
struct rpost_obj *rpost_handle_next(struct rpost_handles *handles, u32 *index);

#endif /* RPOST_HANDLE_H */
