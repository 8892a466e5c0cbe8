// SPDX-License-Identifier: GPL-2.0
/*
 * The completion ring that a program maps.
 *
 * The program can write anything to any of its pages at any time.  So the
 * kernel reads only two words of it, @head and @arm, with one load per use, and
 * keeps its own @tail, @flags and @fired.  A wrong @head makes the ring look
 * full or empty, or frees slots of work requests too early or too late; a wrong
 * @arm asks for one event too many.  Both harm only the program that wrote them,
 * and so do writes to the other rings in a shared page, which belong to the same
 * open file.
 *
 * Barriers, kernel here and program in userlib/core/comp.c:
 *
 *   entry, then @tail (release)     pairs with  @tail (acquire), then entry
 *   @tail, then @flags (release)    pairs with  @flags (acquire), then @tail
 *   @head (acquire), then entry     pairs with  entry, then @head (release)
 *   @flags, full barrier, @arm      pairs with  @arm, full barrier, @flags
 *
 * By the second pair, a program that reads RPOST_RING_OVERRUN finds all entries
 * before the loss, and one that finds RPOST_RING_NEED_POLL clear finds all that
 * were written before the device was armed.  What comes later interrupts: by the
 * last pair, either the interrupt sees the @arm or the program sees
 * RPOST_RING_NEED_POLL.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "base/ring.h"
#include "compat/compat.h"

#define RPOST_RING_UNITS	32

/* Number of pages that are searched for room before one is allocated. */
#define RPOST_RING_TRIES	4
#define RPOST_RING_UNIT		(PAGE_SIZE / RPOST_RING_UNITS)

static_assert(sizeof(struct rpost_ring) <= RPOST_RING_UNIT);

static unsigned long rpost_ring_mem_bytes(unsigned int num_pages)
{
	const struct rpost_ring_mem *mem;

	return struct_size(mem, pages, num_pages) +
	       ((unsigned long)num_pages << PAGE_SHIFT);
}

static void rpost_ring_mem_put(struct rpost_ring_mem *mem)
{
	unsigned int i;

	if (!refcount_dec_and_test(&mem->refs))
		return;
	for (i = 0; i < mem->num_pages && mem->pages[i]; i++) {
		__free_page(mem->pages[i]);
		rpost_file_count(mem->file, RPOST_COUNT_RING_PAGES, -1);
	}
	rpost_uncharge(mem->file, rpost_ring_mem_bytes(mem->num_pages));
	kvfree(mem);
}

static struct rpost_ring_mem *rpost_ring_mem_alloc(struct rpost_file *file, unsigned int num_pages)
{
	struct rpost_ring_mem *mem;
	unsigned int i;

	if (rpost_charge(file, rpost_ring_mem_bytes(num_pages)))
		return NULL;
	mem = rpost_kvmalloc(struct_size(mem, pages, num_pages), __GFP_ZERO);
	if (!mem) {
		rpost_uncharge(file, rpost_ring_mem_bytes(num_pages));
		return NULL;
	}
	refcount_set(&mem->refs, 1);
	mem->file = file;
	mem->num_pages = num_pages;
	for (i = 0; i < num_pages; i++) {
		mem->pages[i] = alloc_page(RPOST_GFP | __GFP_ZERO);
		if (!mem->pages[i]) {
			rpost_ring_mem_put(mem);
			return NULL;
		}
		rpost_file_count(file, RPOST_COUNT_RING_PAGES, 1);
	}
	return mem;
}

static bool rpost_ring_page_take(struct rpost_cring *ring, struct rpost_ring_mem *mem, u32 units)
{
	unsigned long first;

	lockdep_assert_held(&mem->file->rings.lock);

	first = bitmap_find_next_zero_area(&mem->used, RPOST_RING_UNITS, 0, units, 0);
	if (first >= RPOST_RING_UNITS)
		return false;
	bitmap_set(&mem->used, first, units);
	ring->mem = mem;
	ring->hdr = page_address(mem->pages[0]) + first * RPOST_RING_UNIT;
	return true;
}

static u32 rpost_ring_units(size_t size)
{
	return DIV_ROUND_UP(size, RPOST_RING_UNIT);
}

static int rpost_ring_share(struct rpost_cring *ring, struct rpost_file *file, u32 units)
{
	struct rpost_ring_pool *pool = &file->rings;
	struct rpost_ring_mem *mem;
	unsigned int tries = 0;
	bool found = false;

	mutex_lock(&pool->lock);
	list_for_each_entry(mem, &pool->pages, link) {
		found = rpost_ring_page_take(ring, mem, units);
		if (found || ++tries == RPOST_RING_TRIES)
			break;
	}
	mutex_unlock(&pool->lock);
	if (found) {
		/* A freed ring may have left data there. */
		memset(ring->hdr, 0, units * RPOST_RING_UNIT);
		return 0;
	}

	mem = rpost_ring_mem_alloc(file, 1);
	if (!mem)
		return -ENOMEM;
	mutex_lock(&pool->lock);
	mem->number = ++pool->last;
	rpost_ring_page_take(ring, mem, units);
	list_add(&mem->link, &pool->pages);
	mutex_unlock(&pool->lock);
	return 0;
}

/* The page goes with the last ring in it, and its mappings. */
static void rpost_ring_unshare(struct rpost_cring *ring)
{
	size_t size = sizeof(*ring->hdr) +
		      (size_t)ring->entries * ring->entry_size;
	u32 first = offset_in_page(ring->hdr) / RPOST_RING_UNIT;
	struct rpost_ring_mem *mem = ring->mem;
	struct rpost_ring_pool *pool = &mem->file->rings;
	bool last;

	mutex_lock(&pool->lock);
	bitmap_clear(&mem->used, first, rpost_ring_units(size));
	last = !mem->used;
	if (last)
		list_del(&mem->link);
	else
		list_move(&mem->link, &pool->pages);
	mutex_unlock(&pool->lock);
	if (last)
		rpost_ring_mem_put(mem);
}

/*
 * Return a zeroed ring, for which the file is charged, or NULL without memory or at the
 * user's limit.  The ring may @share a page with others of the file.  @entries is a power
 * of two, and @entry_size a multiple of 8, in bytes.
 */
struct rpost_cring *rpost_ring_alloc(struct rpost_file *file, bool share, u32 entries,
				     u32 entry_size)
{
	struct rpost_cring *ring = kzalloc(sizeof(*ring), RPOST_GFP);
	size_t size = sizeof(*ring->hdr) + (size_t)entries * entry_size;
	unsigned int n = DIV_ROUND_UP(size, PAGE_SIZE);

	if (!ring)
		return NULL;
	ring->entries = entries;
	ring->entry_size = entry_size;
	if (share && rpost_ring_units(size) < RPOST_RING_UNITS) {
		if (rpost_ring_share(ring, file, rpost_ring_units(size)))
			goto err_free;
	} else {
		ring->mem = rpost_ring_mem_alloc(file, n);
		if (!ring->mem)
			goto err_free;
		/* A single page has a kernel address without vmap(). */
		if (n == 1)
			ring->hdr = page_address(ring->mem->pages[0]);
		else
			ring->hdr = vmap(ring->mem->pages, n, VM_MAP, PAGE_KERNEL);
		if (!ring->hdr)
			goto err_mem;
	}
	ring->wcs = ring->hdr + 1;
	return ring;

err_mem:
	rpost_ring_mem_put(ring->mem);
err_free:
	kfree(ring);
	return NULL;
}

/*
 * Mappings of the ring stay valid and keep its last contents, until another ring
 * takes its place in a shared page.
 */
void rpost_ring_free(struct rpost_cring *ring)
{
	if (ring->mem->number) {
		rpost_ring_unshare(ring);
	} else {
		if (is_vmalloc_addr(ring->hdr))
			vunmap(ring->hdr);
		rpost_ring_mem_put(ring->mem);
	}
	kfree(ring);
}

/*
 * Copy the entries with the numbers @begin to @end - 1, which have been written.
 * The other ring has room for them, and entries of the same size.
 */
void rpost_ring_copy(struct rpost_cring *to, const struct rpost_cring *from, u32 begin, u32 end)
{
	for (; begin != end; begin++)
		memcpy(rpost_ring_entry(to, begin), rpost_ring_entry(from, begin), to->entry_size);
}

/*
 * Copy the state of a ring that is replaced, and to which nothing is written from
 * now on.  The new ring has the entries and is not mapped yet.  head is the number
 * of entries that the program has consumed.
 */
void rpost_ring_take_over(struct rpost_cring *to, const struct rpost_cring *from, u32 head)
{
	to->tail = from->tail;
	WRITE_ONCE(to->fired, from->fired);
	to->flags = from->flags;
	to->overrun = from->overrun;
	to->hdr->tail = from->tail;
	to->hdr->flags = from->flags;
	to->hdr->fired = from->fired;
	to->hdr->head = head;
	to->hdr->arm = READ_ONCE(from->hdr->arm);
}

/* The kernel calls this when it splits or moves a mapping. */
static void rpost_ring_vm_open(struct vm_area_struct *vma)
{
	struct rpost_ring_mem *mem = vma->vm_private_data;

	refcount_inc(&mem->refs);
}

/* The mapping holds the open file until this returns. */
static void rpost_ring_vm_close(struct vm_area_struct *vma)
{
	rpost_ring_mem_put(vma->vm_private_data);
}

static const struct vm_operations_struct rpost_ring_vm_ops = {
	.open	= rpost_ring_vm_open,
	.close	= rpost_ring_vm_close,
};

/*
 * Return 0; -EINVAL unless the mapping is shared and of all pages of the ring;
 * -EACCES if it is executable; or -ENOMEM.
 */
int rpost_ring_mmap(struct rpost_cring *ring, struct vm_area_struct *vma)
{
	struct rpost_ring_mem *mem = ring->mem;
	int ret;

	if (vma_pages(vma) != mem->num_pages || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	/* A copy of the mapping in a child would keep the file open. */
	rpost_compat_vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY, VM_MAYEXEC);
	/* vm_pgoff is the handle, not an offset into the pages. */
	ret = vm_map_pages_zero(vma, mem->pages, mem->num_pages);
	if (ret)
		return ret;
	refcount_inc(&mem->refs);
	vma->vm_private_data = mem;
	vma->vm_ops = &rpost_ring_vm_ops;
	return 0;
}

/*
 * Return how far the program has consumed, for rpost_ring_consumed().  An impossible
 * head counts as if all were consumed: the program that wrote it then overruns its
 * own ring.
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

void rpost_ring_publish(struct rpost_cring *ring)
{
	/* The entries have been written. */
	smp_store_release(&ring->hdr->tail, ring->tail);
}

/*
 * Return true once for each time that the program asked for an event.  Call it after
 * the new flags have been stored, see the barriers above.
 */
bool rpost_ring_take_arm(struct rpost_cring *ring)
{
	u32 arm;

	/* Pairs with the program's barrier between @arm and @flags. */
	smp_mb();
	arm = READ_ONCE(ring->hdr->arm);
	if (arm == ring->fired)
		return false;
	WRITE_ONCE(ring->fired, arm);
	WRITE_ONCE(ring->hdr->fired, arm);
	return true;
}

/* Change the flags that the program reads; @set and @clear are of RPOST_RING_*. */
void rpost_ring_set_flags(struct rpost_cring *ring, u32 set, u32 clear)
{
	ring->flags = (ring->flags & ~clear) | set;
	/* The tail has been stored before, see userlib/core/comp.c. */
	smp_store_release(&ring->hdr->flags, ring->flags);
}
