// SPDX-License-Identifier: GPL-2.0
/*
 * Memory regions, their keys, and copies between regions.
 */
#include <linux/dma-direct.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "compat.h"
#include "rdmasim.h"

/* Indices in a device's table of regions; the next is the local DMA lkey. */
#define SIM_MR_LIMIT	XA_LIMIT(1, 0xfffffe)

static u32 sim_key_index(u32 key)
{
	return key >> 8;
}

/*
 * The device reaches memory as others do that have no IOMMU: its DMA addresses are
 * physical addresses, perhaps with an offset.
 */
static phys_addr_t sim_dma_phys(u64 addr)
{
	return dma_to_phys(&sim_parent->dev, addr);
}

static void *sim_dma_pointer(u64 addr)
{
	return phys_to_virt(sim_dma_phys(addr));
}

static bool sim_dma_is_memory(u64 addr)
{
	return pfn_valid(PHYS_PFN(sim_dma_phys(addr)));
}

/* ------------------------------------------------- keys */

static void sim_mr_put(struct sim_mr *mr)
{
	if (refcount_dec_and_test(&mr->refs))
		complete(&mr->gone);
}

static struct sim_mr *sim_mr_get(struct sim_dev *dev, u32 key)
{
	struct sim_mr *mr;
	unsigned long flags;

	xa_lock_irqsave(&dev->mrs, flags);
	mr = xa_load(&dev->mrs, sim_key_index(key));
	if (mr)
		refcount_inc(&mr->refs);
	xa_unlock_irqrestore(&dev->mrs, flags);
	return mr;
}

static bool sim_mr_in_range(const struct sim_mr *mr, u64 addr, u64 length)
{
	return addr >= mr->iova && length <= mr->length &&
	       addr - mr->iova <= mr->length - length;
}

/* True for one byte before or behind a region, if its pages contain it. */
static bool sim_mr_almost_in_range(const struct sim_mr *mr, u64 addr, u64 length)
{
	u64 mask = BIT_ULL(mr->page_shift) - 1;
	u64 room = (u64)mr->num_pages << mr->page_shift;
	u64 offset = addr - (mr->iova & ~mask);

	return mr->kind != SIM_MR_DMA && addr + 1 >= mr->iova &&
	       length <= mr->length + 1 && addr >= (mr->iova & ~mask) &&
	       addr + length <= mr->iova + mr->length + 1 &&
	       offset + length <= room;
}

/*
 * A bad key gives access to kernel memory only for reads of a page at most, so
 * that the host survives.
 */
static bool sim_kernel_shows(u64 addr, u64 length, int access)
{
	return access == IB_ACCESS_REMOTE_READ && length <= PAGE_SIZE &&
	       sim_dma_is_memory(addr) && sim_dma_is_memory(addr + length - 1);
}

/* True if a work request of @pd may use the region; @bad skips checks. */
static bool sim_mr_allows(const struct sim_mr *mr, const struct ib_pd *pd,
			  u32 key, u64 addr, u64 length, int access, uint bad)
{
	/* Pairs with smp_store_release() in sim_mr_register(). */
	if (!smp_load_acquire(&mr->valid))
		return false;
	if (mr->key != key && !(bad & SIM_BAD_RKEY_STALE))
		return false;
	if (mr->ibmr.pd != pd && !(bad & SIM_BAD_RKEY_DOMAIN))
		return false;
	if ((mr->access & access) != access && !(bad & SIM_BAD_RKEY_ACCESS))
		return false;
	if (sim_mr_in_range(mr, addr, length))
		return true;
	return (bad & SIM_BAD_RKEY_RANGE) &&
	       sim_mr_almost_in_range(mr, addr, length);
}

static int sim_sg_add(struct sim_sg *sg, const struct ib_pd *pd, u32 key,
		      u64 addr, u64 length, int access, uint bad)
{
	struct sim_seg *seg = &sg->seg[sg->num];
	struct sim_mr *mr = sim_mr_get(to_sim_dev(pd->device), key);

	if (!mr)
		return -EACCES;
	if (!sim_mr_allows(mr, pd, key, addr, length, access, bad) ||
	    (bad && mr->kind == SIM_MR_DMA &&
	     !sim_kernel_shows(addr, length, access))) {
		sim_mr_put(mr);
		return -EACCES;
	}
	seg->mr = mr;
	seg->addr = addr;
	seg->length = length;
	sg->num++;
	return 0;
}

/**
 * sim_sg_add_kernel() - add memory of the kernel
 * @sg: the pieces
 * @addr: its start
 * @length: in bytes
 */
void sim_sg_add_kernel(struct sim_sg *sg, void *addr, u64 length)
{
	struct sim_seg *seg = &sg->seg[sg->num++];

	seg->mr = NULL;
	seg->addr = (uintptr_t)addr;
	seg->length = length;
}

/**
 * sim_sg_add_local() - add the memory of a work request's entries
 * @sg: the pieces; the caller releases them, even after an error
 * @pd: domain of the queue
 * @sge: the work request's entries
 * @num: the number of @sge
 * @access: IB_ACCESS_* that the work request needs
 *
 * Return: 0 or -EACCES.
 */
int sim_sg_add_local(struct sim_sg *sg, struct ib_pd *pd,
		     const struct ib_sge *sge, unsigned int num, int access)
{
	u32 dma_lkey = pd->device->local_dma_lkey;
	int ret;

	for (; num; num--, sge++) {
		if (!sge->length)
			continue;
		if (dma_lkey && sge->lkey == dma_lkey) {
			sim_sg_add_kernel(sg, sim_dma_pointer(sge->addr), sge->length);
			continue;
		}
		ret = sim_sg_add(sg, pd, sge->lkey, sge->addr, sge->length,
				 access, 0);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * sim_sg_add_remote() - add memory that the peer names by an rkey
 * @sg: the pieces; the caller releases them, even after an error
 * @pd: domain of the queue pair at this side
 * @rkey: the key
 * @addr: its start
 * @length: in bytes
 * @access: IB_ACCESS_* that the peer needs
 *
 * Return: 0 or -EACCES.
 */
int sim_sg_add_remote(struct sim_sg *sg, struct ib_pd *pd, u32 rkey, u64 addr,
		      u64 length, int access)
{
	uint bad = READ_ONCE(sim_options.bad_rkeys);

	if (!length)
		return 0;
	if (!rkey && (bad & SIM_BAD_RKEY_ZERO)) {
		if (!sim_kernel_shows(addr, length, access))
			return -EACCES;
		sim_sg_add_kernel(sg, sim_dma_pointer(addr), length);
		return 0;
	}
	return sim_sg_add(sg, pd, rkey, addr, length, access, bad);
}

/**
 * sim_sg_put() - release the pieces
 * @sg: the pieces; empty afterwards
 */
void sim_sg_put(struct sim_sg *sg)
{
	while (sg->num) {
		struct sim_seg *seg = &sg->seg[--sg->num];

		if (seg->mr)
			sim_mr_put(seg->mr);
	}
}

/**
 * sim_sg_length() - get the total length of the pieces
 * @sg: the pieces
 *
 * Return: bytes.
 */
u64 sim_sg_length(const struct sim_sg *sg)
{
	u64 length = 0;
	unsigned int i;

	for (i = 0; i < sg->num; i++)
		length += sg->seg[i].length;
	return length;
}

/* ------------------------------------------------- copying */

/**
 * sim_seg_pointer() - get the address of a byte
 * @seg: the piece
 * @offset: offset of the byte
 * @room: out: number of contiguous bytes from there
 *
 * Return: the address.
 */
void *sim_seg_pointer(const struct sim_seg *seg, u64 offset, u64 *room)
{
	const struct sim_mr *mr = seg->mr;
	u64 in_page, mask;

	*room = seg->length - offset;
	if (!mr)
		return (void *)(uintptr_t)(seg->addr + offset);
	if (mr->kind == SIM_MR_DMA)
		return sim_dma_pointer(seg->addr + offset);

	mask = BIT_ULL(mr->page_shift) - 1;
	offset += seg->addr - (mr->iova & ~mask);
	in_page = offset & mask;
	*room = min(*room, mask + 1 - in_page);
	return sim_dma_pointer(mr->pages[offset >> mr->page_shift] + in_page);
}

/**
 * sim_sg_copy() - copy a message
 * @to: destination, at least as long as @from
 * @from: source
 */
void sim_sg_copy(const struct sim_sg *to, const struct sim_sg *from)
{
	u64 to_offset = 0, from_offset = 0, left = sim_sg_length(from);
	unsigned int t = 0, f = 0;

	while (left) {
		u64 to_room, from_room, bytes;
		void *dst, *src;

		dst = sim_seg_pointer(&to->seg[t], to_offset, &to_room);
		src = sim_seg_pointer(&from->seg[f], from_offset, &from_room);
		bytes = min3(to_room, from_room, left);
		/* The source and the destination may overlap. */
		memmove(dst, src, bytes);
		left -= bytes;
		to_offset += bytes;
		from_offset += bytes;
		if (to_offset == to->seg[t].length) {
			to_offset = 0;
			t++;
		}
		if (from_offset == from->seg[f].length) {
			from_offset = 0;
			f++;
		}
	}
}

/* ------------------------------------------------- regions */

static struct sim_mr *sim_mr_create(struct ib_pd *pd, enum sim_mr_kind kind,
				    u32 max_pages)
{
	struct sim_dev *dev = to_sim_dev(pd->device);
	struct sim_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	int ret = -ENOMEM;
	u32 index;

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->kind = kind;
	mr->ibmr.pd = pd;
	mr->ibmr.device = pd->device;
	mr->max_pages = max_pages;
	refcount_set(&mr->refs, 1);
	init_completion(&mr->gone);
	if (max_pages) {
		mr->pages = kvcalloc(max_pages, sizeof(*mr->pages), GFP_KERNEL);
		if (!mr->pages)
			goto err;
	}
	ret = xa_alloc_cyclic_irq(&dev->mrs, &index, mr, SIM_MR_LIMIT,
				  &dev->next_mr, GFP_KERNEL);
	if (ret < 0)
		goto err;
	mr->key = index << 8;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	return mr;

err:
	kvfree(mr->pages);
	kfree(mr);
	return ERR_PTR(ret);
}

static void sim_mr_destroy(struct sim_mr *mr)
{
	struct sim_dev *dev = to_sim_dev(mr->ibmr.device);

	xa_erase_irq(&dev->mrs, sim_key_index(mr->key));
	sim_mr_put(mr);
	wait_for_completion(&mr->gone);
	ib_umem_release(mr->umem);
	kvfree(mr->pages);
	kfree(mr);
}

/**
 * sim_get_dma_mr() - create a region of all kernel memory
 * @pd: its domain
 * @access: IB_ACCESS_*
 *
 * Return: the region or ERR_PTR().
 */
struct ib_mr *sim_get_dma_mr(struct ib_pd *pd, int access)
{
	struct sim_mr *mr = sim_mr_create(pd, SIM_MR_DMA, 0);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->access = access;
	mr->length = U64_MAX;
	WRITE_ONCE(mr->valid, true);
	return &mr->ibmr;
}

static void sim_mr_fill(struct sim_mr *mr)
{
	struct scatterlist *sg;
	unsigned int offset;
	int i;

	for_each_sgtable_dma_sg(&mr->umem->sgt_append.sgt, sg, i)
		for (offset = 0; offset < sg_dma_len(sg); offset += PAGE_SIZE)
			mr->pages[mr->num_pages++] = sg_dma_address(sg) + offset;
}

static struct ib_mr *sim_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				     u64 iova, int access, SIM_COMPAT_DMAH_ARG
				     struct ib_udata *udata)
{
	struct ib_umem *umem;
	struct sim_mr *mr;

	/* Refused; drivers that read arguments from @udata crash instead. */
	if (sim_options.no_user_mr || sim_compat_has_dmah(dmah) ||
	    (access & (IB_ACCESS_ON_DEMAND | IB_ACCESS_MW_BIND)))
		return ERR_PTR(-EOPNOTSUPP);

	umem = sim_compat_umem_get(pd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = sim_mr_create(pd, SIM_MR_USER, ib_umem_num_pages(umem));
	if (IS_ERR(mr)) {
		ib_umem_release(umem);
		return ERR_CAST(mr);
	}
	mr->umem = umem;
	mr->page_shift = PAGE_SHIFT;
	mr->iova = iova;
	mr->length = length;
	mr->access = access;
	sim_mr_fill(mr);
	WRITE_ONCE(mr->valid, true);
	return &mr->ibmr;
}

static struct ib_mr *sim_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				  u32 max_pages)
{
	struct sim_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG ||
	    max_pages > pd->device->attrs.max_fast_reg_page_list_len)
		return ERR_PTR(-EINVAL);
	mr = sim_mr_create(pd, SIM_MR_FAST, max_pages);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ibmr;
}

static int sim_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct sim_mr *mr = to_sim_mr(ibmr);

	if (mr->num_pages == mr->max_pages)
		return -ENOMEM;
	/* Memory of another device is not mapped in the kernel. */
	if (!sim_dma_is_memory(addr))
		return -EFAULT;
	mr->pages[mr->num_pages++] = addr;
	return 0;
}

static int sim_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sgl, int nents,
			 unsigned int *offset)
{
	struct sim_mr *mr = to_sim_mr(ibmr);

	if (mr->valid)
		return -EBUSY;
	mr->num_pages = 0;
	mr->page_shift = ilog2(ibmr->page_size);
	return ib_sg_to_pages(ibmr, sgl, nents, offset, sim_set_page);
}

/**
 * sim_mr_register() - fast registration
 * @pd: domain of the queue pair with the work request
 * @ibmr: the region
 * @key: its new key
 * @access: IB_ACCESS_*
 *
 * Return: 0 or -EACCES.
 */
int sim_mr_register(struct ib_pd *pd, struct ib_mr *ibmr, u32 key, int access)
{
	struct sim_mr *mr = to_sim_mr(ibmr);

	if (mr->kind != SIM_MR_FAST || mr->valid || ibmr->pd != pd ||
	    sim_key_index(key) != sim_key_index(mr->key) || !mr->num_pages)
		return -EACCES;
	mr->key = key;
	mr->access = access;
	mr->iova = ibmr->iova;
	mr->length = ibmr->length;
	/* Set last; pairs with smp_load_acquire() in sim_mr_allows(). */
	smp_store_release(&mr->valid, true);
	return 0;
}

/**
 * sim_mr_invalidate() - invalidate the key of a fast registration
 * @pd: domain of the queue pair with the request
 * @key: the key
 *
 * Accesses to the region that have begun go on.
 *
 * Return: 0 or -EACCES.
 */
int sim_mr_invalidate(struct ib_pd *pd, u32 key)
{
	struct sim_mr *mr = sim_mr_get(to_sim_dev(pd->device), key);
	int ret = -EACCES;

	if (!mr)
		return -EACCES;
	if (mr->kind == SIM_MR_FAST && mr->key == key && mr->ibmr.pd == pd) {
		WRITE_ONCE(mr->valid, false);
		ret = 0;
	}
	sim_mr_put(mr);
	return ret;
}

static int sim_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	if (sim_fail(&sim_options.fail_dereg_mr))
		return -EBUSY;
	sim_mr_destroy(to_sim_mr(ibmr));
	return 0;
}

const struct ib_device_ops sim_mr_ops = {
	.dereg_mr = sim_dereg_mr,
	.get_dma_mr = sim_get_dma_mr,
	.reg_user_mr = sim_reg_user_mr,
};

const struct ib_device_ops sim_fast_reg_ops = {
	.alloc_mr = sim_alloc_mr,
	.map_mr_sg = sim_map_mr_sg,
};
