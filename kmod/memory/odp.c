// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging: regions whose memory is not pinned.
 *
 * The driver brings in a page when the device needs it, in a kernel thread that
 * nobody can kill.  If the page does not come, since a FUSE server or a network
 * file system does not answer, the end of the region and of its queue pairs
 * waits, and so do the last close and the removal of the device.  Therefore
 * the administrator must allow it.  See Documentation/registration.rst.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

#include "memory/memory.h"

/* A page in each of the kernel's lists: struct ib_umem_odp's. */
#define RPOST_ODP_PAGE_BYTES	16
/* The rest: its struct, and those of the process that must stay. */
#define RPOST_ODP_BYTES		SZ_4K
/* Lists of INT_MAX bytes or more make kvcalloc() of some kernels warn. */
#define RPOST_ODP_MAX_PAGES	(INT_MAX / 8)

static_assert(RPOST_ACCESS_ON_DEMAND == (int)IB_ACCESS_ON_DEMAND);
static_assert(RPOST_ODP_SUPPORT == (int)IB_ODP_SUPPORT);
static_assert(RPOST_ADVICE_PREFETCH == (int)IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH);
static_assert(RPOST_ADVICE_PREFETCH_WRITE ==
	      (int)IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE);
static_assert(RPOST_ADVICE_PREFETCH_NO_FAULT ==
	      (int)IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);

static bool odp;
module_param(odp, bool, 0644);
MODULE_PARM_DESC(odp,
		 "Allow on-demand paging (off): a page that never comes holds up close and removal, and rxe frees memory in use after 50 s");

static bool rpost_odp_possible(const struct rpost_device *dev)
{
	const struct ib_device_attr *attr = &dev->ib_dev->attrs;

	return READ_ONCE(odp) && dev->driver->odp && rpost_mr_is_direct(dev) &&
	       (attr->kernel_cap_flags & IBK_ON_DEMAND_PAGING) &&
	       (attr->odp_caps.general_caps & IB_ODP_SUPPORT);
}

/* cmd gets the capabilities of the device, if there are any. */
void rpost_odp_query(const struct rpost_device *dev,
		     struct rpost_query_device *cmd)
{
	const struct ib_odp_caps *caps = &dev->ib_dev->attrs.odp_caps;
	u32 mask = ~0;

	if (!rpost_odp_possible(dev))
		return;
	if (dev->driver->odp_no_recv)
		mask = ~(IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_SRQ_RECV);
	/* The module offers neither regions of all memory nor XRC. */
	cmd->odp_general_caps = RPOST_ODP_SUPPORT;
	cmd->odp_rc_caps = caps->per_transport_caps.rc_odp_caps & mask;
	cmd->odp_uc_caps = caps->per_transport_caps.uc_odp_caps & mask;
	cmd->odp_ud_caps = caps->per_transport_caps.ud_odp_caps & mask;
	if (dev->driver->odp_whole_pages)
		cmd->odp_limits = RPOST_ODP_WHOLE_PAGES;
}

/*
 * Check that a region, which is reserved, can be on demand, and charge for it.  The
 * command has been validated.  Return 0; -EOPNOTSUPP, -EMSGSIZE or -EFAULT; -ENOMEM at
 * the user's limit.
 */
int rpost_odp_prepare(struct rpost_mr *mr, const struct rpost_reg_mr *cmd)
{
	const struct rpost_device *dev = mr->obj.dev;
	u64 pages = rpost_mr_pages(cmd->addr, cmd->length);
	u64 max = dev->ib_dev->attrs.max_mr_size;

	if (!rpost_odp_possible(dev))
		return -EOPNOTSUPP;
	if (dev->driver->odp_whole_pages) {
		/* rxe takes the iova for the address, and does not check. */
		if (cmd->iova != cmd->addr || offset_in_page(cmd->addr))
			return -EOPNOTSUPP;
		/* rxe keeps lengths in an int. */
		max = min_t(u64, max, INT_MAX & PAGE_MASK);
	}
	if (cmd->length > max || pages > RPOST_ODP_MAX_PAGES)
		return -EMSGSIZE;
	/* Nobody strips tags. */
	if (cmd->addr + cmd->length > TASK_SIZE_MAX)
		return -EFAULT;
	return rpost_obj_take_bytes(&mr->obj, RPOST_ODP_BYTES +
				    pages * RPOST_ODP_PAGE_BYTES);
}

/* ------------------------------------------------------------ advice */

/*
 * Enter the device and get the region of an entry, or ERR_PTR().  The driver
 * must not be given another key: rxe does not ask whether the region is one on
 * demand.
 */
static struct rpost_mr *rpost_advise_enter(struct rpost_ucmd *ucmd,
					   const struct rpost_sge *sge)
{
	const struct rpost_advise_mr *cmd = &ucmd->cmd.advise_mr;
	struct rpost_mr *mr = ERR_PTR(-ENODEV);
	u32 access = RPOST_ACCESS_ON_DEMAND;
	struct rpost_pd *pd;

	pd = rpost_pd_enter_get(ucmd, cmd->pd);
	if (IS_ERR(pd))
		return ERR_CAST(pd);
	if (cmd->advice == RPOST_ADVICE_PREFETCH_WRITE)
		access |= RPOST_ACCESS_LOCAL_WRITE;
	if (rpost_device_alive(pd->obj.dev))
		mr = rpost_mr_get(pd, sge, access) ? : ERR_PTR(-EFAULT);
	/* The region keeps the domain. */
	rpost_obj_put(&pd->obj);
	if (IS_ERR(mr))
		rpost_leave_device(ucmd);
	return mr;
}

/* Is the entry valid, and where is its memory in this process? */
static int rpost_advise_look(struct rpost_ucmd *ucmd, const struct rpost_sge *sge,
			     unsigned long *addr)
{
	struct rpost_mr *mr = rpost_advise_enter(ucmd, sge);
	int ret;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	*addr = sge->addr - mr->iova + mr->addr;
	/* The driver would wait for the memory map of another process. */
	ret = mr->mm == current->mm ? 0 : -EFAULT;
	rpost_obj_put(&mr->obj);
	rpost_leave_device(ucmd);
	return ret;
}

/*
 * The driver only takes over pages that are present.  It locks this process's
 * memory map for that, as a registration does.
 */
static int rpost_advise_device(struct rpost_ucmd *ucmd,
			       const struct rpost_sge *sge)
{
	struct ib_sge ib_sge = {
		.addr = sge->addr,
		.length = sge->length,
		.lkey = sge->lkey,
	};
	struct rpost_mr *mr;
	int ret;

	/* It may have been deregistered meanwhile. */
	mr = rpost_advise_enter(ucmd, sge);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	ret = ib_advise_mr(mr->pd->ib_pd,
			   IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
			   IB_UVERBS_ADVISE_MR_FLAG_FLUSH, &ib_sge, 1);
	rpost_obj_put(&mr->obj);
	rpost_leave_device(ucmd);
	return ret;
}

/*
 * The pages are made present by this task, which can be killed, without a lock
 * or a reference.
 */
static int rpost_advise_one(struct rpost_ucmd *ucmd, const struct rpost_sge *sge)
{
	const struct rpost_advise_mr *cmd = &ucmd->cmd.advise_mr;
	bool write = cmd->advice == RPOST_ADVICE_PREFETCH_WRITE;
	unsigned long addr;
	int ret;

	ret = rpost_advise_look(ucmd, sge, &addr);
	if (ret || !sge->length)
		return ret;
	if (cmd->advice != RPOST_ADVICE_PREFETCH_NO_FAULT) {
		ret = rpost_mr_touch(addr, sge->length, write ? FOLL_WRITE : 0);
		if (ret)
			return ret;
	}
	return rpost_advise_device(ucmd, sge);
}

static int rpost_advise_all(struct rpost_ucmd *ucmd, const struct rpost_sge *sges)
{
	const struct rpost_advise_mr *cmd = &ucmd->cmd.advise_mr;
	unsigned long addr;
	int ret;
	u32 i;

	for (i = 0; i < cmd->num_sge; i++) {
		ret = rpost_advise_look(ucmd, &sges[i], &addr);
		if (ret)
			return ret;
	}
	for (i = 0; i < cmd->num_sge; i++) {
		ret = rpost_advise_one(ucmd, &sges[i]);
		if (fatal_signal_pending(current))
			return -EINTR;
		if (ret && (cmd->flags & RPOST_ADVISE_FLUSH))
			return ret;
		cond_resched();
	}
	return 0;
}

/*
 * The drivers' own work for later is not used: it keeps a region that is being
 * deregistered, and waits for pages.
 */
int rpost_advise_mr_ioctl(struct rpost_ucmd *ucmd)
{
	const struct rpost_advise_mr *cmd = &ucmd->cmd.advise_mr;
	struct rpost_sge *sges;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (cmd->advice > RPOST_ADVICE_PREFETCH_NO_FAULT || !cmd->num_sge ||
	    cmd->num_sge > RPOST_MAX_ADVISE_SGE)
		return -EINVAL;
	sges = kmalloc_array(cmd->num_sge, sizeof(*sges), RPOST_GFP);
	if (!sges)
		return -ENOMEM;
	ret = -EFAULT;
	if (!copy_from_user(sges, u64_to_user_ptr(cmd->sges),
			    cmd->num_sge * sizeof(*sges)))
		ret = rpost_advise_all(ucmd, sges);
	kfree(sges);
	return ret;
}
