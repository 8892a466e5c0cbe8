/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion rings, which programs map.
 */
#ifndef RPOST_RING_H
#define RPOST_RING_H

#include "base/base.h"

/* ------------------------------------------------------------- ring.c */

/**
 * struct rpost_ring_mem - pages of one ring, or the page that small rings share
 * @refs: one for the ring, or for all that share the page, and one for each mapping
 * @file: the open file, which is charged for the pages until @refs is 0
 * @number: identifies a shared page to the program, and no other page of the file has
 *          had it; 0 for pages of one ring
 * @link: of a shared page, in the pool of @file; under its lock
 * @used: of a shared page, a bit for each unit; under the same lock
 * @num_pages: number of @pages
 * @pages: the pages, each allocated singly
 *
 * Small rings share a page, as both of a connection often can.  They are of one file,
 * since a mapping of one ring shows all of them.
 */
struct rpost_ring_mem {
	refcount_t refs;
	struct rpost_file *file;
	u64 number;
	struct list_head link;
	unsigned long used;
	unsigned int num_pages;
	struct page *pages[];
};

/**
 * struct rpost_cring - a ring of completions that the program maps
 * @hdr: its control words, see struct rpost_ring
 * @wcs: its entries, each the first @entry_size bytes of a struct rpost_wc
 * @mem: its pages
 * @entry_size: bytes of an entry
 * @entries: number of entries, a power of two
 * @tail: number of entries written; posters read it without the lock
 * @fired: the last @hdr->arm that was answered
 * @flags: RPOST_RING_*
 * @overrun: an entry has been lost; rpost_cq_publish() tells the program
 *
 * The completion queue's @lock guards @tail and @overrun, and its @arm_lock
 * guards @fired and @flags.  The kernel never reads the copies of them in @hdr,
 * which the program can overwrite.
 */
struct rpost_cring {
	struct rpost_ring *hdr;
	void *wcs;
	struct rpost_ring_mem *mem;
	size_t entry_size;
	u32 entries;
	u32 tail;
	u32 fired;
	u32 flags;
	bool overrun;
};

/* At some time @tail entries had been written, of which the program had not consumed @waiting. */
struct rpost_ring_seen {
	u32 tail;
	u32 waiting;
};

/*
 * Had the program consumed an entry?  seen is from rpost_ring_see(), called after
 * the entry was written, and pos is the number of the entry, plus 1.
 */
static inline bool rpost_ring_consumed(struct rpost_ring_seen seen, u32 pos)
{
	return seen.tail - pos >= seen.waiting;
}

/* pos is the number of the entry, modulo 2^32.  The entry has only entry_size bytes. */
static inline struct rpost_wc *rpost_ring_entry(const struct rpost_cring *ring, u32 pos)
{
	return ring->wcs + (pos & (ring->entries - 1)) * ring->entry_size;
}

/*
 * Take the next entry, to fill it.  Return NULL if the ring is full.  The program
 * does not read the entry before rpost_ring_publish().
 */
static inline struct rpost_wc *rpost_ring_next(struct rpost_cring *ring)
{
	/* Pairs with the program's release of @head, see ring.c. */
	u32 head = smp_load_acquire(&ring->hdr->head);
	u32 tail = ring->tail;

	if (tail - head >= ring->entries)
		return NULL;
	WRITE_ONCE(ring->tail, tail + 1);
	return rpost_ring_entry(ring, tail);
}

struct rpost_cring *rpost_ring_alloc(struct rpost_file *file, bool share, u32 entries,
				     u32 entry_size);
void rpost_ring_free(struct rpost_cring *ring);
void rpost_ring_copy(struct rpost_cring *to, const struct rpost_cring *from, u32 begin, u32 end);
void rpost_ring_take_over(struct rpost_cring *to, const struct rpost_cring *from, u32 head);
int rpost_ring_mmap(struct rpost_cring *ring, struct vm_area_struct *vma);
struct rpost_ring_seen rpost_ring_see(struct rpost_cring *ring);
void rpost_ring_publish(struct rpost_cring *ring);
bool rpost_ring_take_arm(struct rpost_cring *ring);
void rpost_ring_set_flags(struct rpost_cring *ring, u32 set, u32 clear);

#endif /* RPOST_RING_H */
