// SPDX-License-Identifier: GPL-2.0
/*
 * The completion ring that a program maps.  Nothing here knows RDMA.
 *
 * The program can write anything to any of its pages at any time.  So the
 * kernel reads just two words of it, @head and @arm, each once and by value,
 * and keeps its own @tail, @flags and @fired.  A wrong @head makes the ring
 * look full or empty; a wrong @arm asks for an event too many.  Both harm the
 * program that wrote it, nobody else.
 *
 * Barriers, kernel here and program in userlib/comp.c:
 *
 *   entry, then @tail (release)     pairs with  @tail (acquire), then entry
 *   @tail, then @flags (release)    pairs with  @flags (acquire), then @tail
 *   @head (acquire), then entry     pairs with  entry, then @head (release)
 *   @tail, full barrier, @arm       pairs with  @arm, full barrier, @tail
 *   @flags, full barrier, @arm      pairs with  @arm, full barrier, @flags
 *
 * By the second, who is told of a loss finds all that came before it; by the
 * fourth, either the program sees the new tail or the kernel the arm; by the last,
 * either the program sees that the arm is not looked at or the kernel does look.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "rpost.h"

/**
 * rpost_ring_alloc() - make a ring
 * @ring: zeroed
 * @entries: a power of two
 *
 * Return: 0, or -ENOMEM.
 */
int rpost_ring_alloc(struct rpost_cring *ring, u32 entries)
{
	size_t size = sizeof(*ring->hdr) + (size_t)entries * sizeof(*ring->wcs);
	unsigned int n = DIV_ROUND_UP(size, PAGE_SIZE);
	struct page **pages;

	/*
	 * Single pages: a mapping holds references on them, so that it may
	 * outlive the ring.
	 */
	pages = rpost_kvcalloc(n, sizeof(*pages));
	if (!pages)
		return -ENOMEM;
	ring->pages = pages;
	for (; ring->num_pages < n; ring->num_pages++) {
		pages[ring->num_pages] = alloc_page(RPOST_GFP |
						    __GFP_ZERO);
		if (!pages[ring->num_pages])
			goto err;
		rpost_count(RPOST_COUNT_RING_PAGES, 1);
	}
	/* One page has an address already. */
	if (n == 1)
		ring->hdr = page_address(pages[0]);
	else
		ring->hdr = vmap(pages, n, VM_MAP, PAGE_KERNEL);
	if (!ring->hdr)
		goto err;
	ring->wcs = (struct rpost_wc *)(ring->hdr + 1);
	ring->entries = entries;
	return 0;
err:
	rpost_ring_free(ring);
	return -ENOMEM;
}

/**
 * rpost_ring_free() - free a ring
 * @ring: the ring; mappings of it stay valid, with what it held last
 */
void rpost_ring_free(struct rpost_cring *ring)
{
	if (is_vmalloc_addr(ring->hdr))
		vunmap(ring->hdr);
	ring->hdr = NULL;
	rpost_count(RPOST_COUNT_RING_PAGES, -(long)ring->num_pages);
	while (ring->num_pages)
		__free_page(ring->pages[--ring->num_pages]);
	kvfree(ring->pages);
	ring->pages = NULL;
}

/**
 * rpost_ring_copy() - copy entries, which are complete, to another ring
 * @to: the other ring, with room for them
 * @from: the ring
 * @begin: number of the first
 * @end: number of the one after the last
 */
void rpost_ring_copy(struct rpost_cring *to, const struct rpost_cring *from,
		     u32 begin, u32 end)
{
	for (; begin != end; begin++)
		to->wcs[begin & (to->entries - 1)] =
			from->wcs[begin & (from->entries - 1)];
}

/**
 * rpost_ring_take_over() - let a new ring go on where another stands
 * @to: the new ring, with the entries, not yet mapped
 * @from: the ring, from now on without a producer
 * @head: entries that the program has consumed
 */
void rpost_ring_take_over(struct rpost_cring *to,
			  const struct rpost_cring *from, u32 head)
{
	to->tail = from->tail;
	WRITE_ONCE(to->fired, from->fired);
	to->flags = from->flags;
	to->hdr->tail = from->tail;
	to->hdr->flags = from->flags;
	to->hdr->fired = from->fired;
	to->hdr->head = head;
	to->hdr->arm = READ_ONCE(from->hdr->arm);
}

/**
 * rpost_ring_mmap() - map a ring into a program
 * @ring: the ring
 * @vma: where; all of the ring or nothing, shared, and never executable
 *
 * Return: 0, or -EINVAL, -EACCES or -ENOMEM.
 */
int rpost_ring_mmap(struct rpost_cring *ring, struct vm_area_struct *vma)
{
	if (vma_pages(vma) != ring->num_pages || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	/* vm_pgoff is the handle, and no offset into the pages. */
	/* Nor would a child's copy do it any good: it keeps the file open. */
	rpost_compat_vm_flags_mod(vma,
				  VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY,
				  VM_MAYEXEC);
	return vm_map_pages_zero(vma, ring->pages, ring->num_pages);
}

/**
 * rpost_ring_see() - how far has the program consumed?
 * @ring: the ring
 *
 * Return: what rpost_ring_consumed() asks for.  An index of the program's that
 * cannot be has all consumed: the program then overruns its own ring.
 */
struct rpost_ring_seen rpost_ring_see(struct rpost_cring *ring)
{
	u32 tail = READ_ONCE(ring->tail);
	u32 waiting = tail - READ_ONCE(ring->hdr->head);

	return (struct rpost_ring_seen) {
		.tail = tail,
		.waiting = waiting <= ring->entries ? waiting : 0,
	};
}

/**
 * rpost_ring_overrun() - what would be the next entry is lost
 * @ring: the ring; rpost_ring_publish() tells the program
 */
void rpost_ring_overrun(struct rpost_cring *ring)
{
	ring->flags |= RPOST_RING_OVERRUN;
}

/**
 * rpost_ring_publish() - show the program what has been filled
 * @ring: the ring
 */
void rpost_ring_publish(struct rpost_cring *ring)
{
	/* After the entries. */
	smp_store_release(&ring->hdr->tail, ring->tail);
	/* After the entries that are not lost. */
	smp_store_release(&ring->hdr->flags, ring->flags);
}

/**
 * rpost_ring_take_arm() - has the program asked for an event?
 * @ring: the ring, after rpost_ring_publish()
 *
 * Return: true once for each time it asked.
 */
bool rpost_ring_take_arm(struct rpost_cring *ring)
{
	u32 arm;

	/* Pairs with the program's barrier between @arm and @tail. */
	smp_mb();
	arm = READ_ONCE(ring->hdr->arm);
	if (arm == ring->fired)
		return false;
	WRITE_ONCE(ring->fired, arm);
	WRITE_ONCE(ring->hdr->fired, arm);
	return true;
}

/**
 * rpost_ring_armed() - does the program wait for an event?
 * @ring: the ring
 *
 * Return: true if so; not more than a hint unless the caller sees to the order.
 */
bool rpost_ring_armed(const struct rpost_cring *ring)
{
	return READ_ONCE(ring->hdr->arm) != READ_ONCE(ring->fired);
}

/**
 * rpost_ring_set_flags() - change the flags that the program reads
 * @ring: the ring
 * @set: RPOST_RING_* to set
 * @clear: RPOST_RING_* to clear
 */
void rpost_ring_set_flags(struct rpost_cring *ring, u32 set, u32 clear)
{
	ring->flags = (ring->flags & ~clear) | set;
	WRITE_ONCE(ring->hdr->flags, ring->flags);
}
