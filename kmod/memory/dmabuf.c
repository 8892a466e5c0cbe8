// SPDX-License-Identifier: GPL-2.0
/*
 * Registers memory of a dma-buf: of another device, or of the kernel.
 *
 * The RDMA core attaches the device to the dma-buf (ib_umem_dmabuf_get_pinned()), and the
 * exporter, a driver, pins all of the memory and maps it for the device.  The device gets
 * it by fast registration (fastreg.c): only uverbs can call the drivers' own
 * reg_user_mr_dmabuf().  The exporter cannot take the memory back before the region ends;
 * one that must be able to refuses to be attached in this way.
 *
 * The exporter may wait for its device with the context's rwsem held, as a driver may that
 * pins memory.  No program can make that longer: nobody waits for a page of a program with
 * the dma-buf's lock (dma_resv) held, and the kernel's fences end in a finite time.
 *
 * An exporter lists all pages of the dma-buf for each attachment, and charges nobody.  So a
 * region counts as all of its dma-buf, whatever its own length.
 */
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <rdma/ib_umem.h>

#include "memory/cache.h"

/* MODULE_IMPORT_NS() takes a string on newer kernels only. */
MODULE_INFO(import_ns, "DMA_BUF");

/* rxe and siw do no DMA: they copy. */
static bool rpost_dmabuf_possible(const struct rpost_device *dev)
{
	return rpost_mr_may_fast(dev) && !ib_uses_virt_dma(dev->ib_dev);
}

/*
 * Attach a device to the dma-buf of a command.  Return its memory, to be released by
 * ib_umem_release(), or ERR_PTR().
 */
struct ib_umem *rpost_dmabuf_get(struct rpost_device *dev, const struct rpost_reg_mr *cmd,
				 struct dma_buf *dmabuf)
{
	struct ib_umem_dmabuf *got;

	/* The parameter may have changed, and the handle may be another domain's by now. */
	if (!rpost_dmabuf_possible(dev))
		return ERR_PTR(-EOPNOTSUPP);
	got = ib_umem_dmabuf_get_pinned(dev->ib_dev, cmd->addr, cmd->length, cmd->fd,
					cmd->access);
	if (IS_ERR(got))
		return ERR_CAST(got);
	/* Another thread may have exchanged the descriptor. */
	if (got->attach->dmabuf != dmabuf) {
		ib_umem_release(&got->umem);
		return ERR_PTR(-EBADF);
	}
	/* The core counts pages by it. */
	got->umem.iova = cmd->iova;
	return &got->umem;
}

/* ------------------------------------------------- locked memory */

/* ib_umem_get() does this for memory of a process. */
static int rpost_dmabuf_charge(struct rpost_pin *pin, struct rpost_file *file)
{
	int ret = rpost_pin_charge(pin, file, PFN_UP(pin->dmabuf->size));

	if (ret)
		return ret;
	return rpost_memlock_allows(atomic64_add_return(pin->pages, &current->mm->pinned_vm)) ?
		0 : -ENOMEM;
}

/* Nothing is done if a region has taken the charge over, or there is none. */
static void rpost_dmabuf_uncharge(struct rpost_pin *pin)
{
	if (pin->pinner)
		atomic64_sub(pin->pages, &current->mm->pinned_vm);
	rpost_pin_end(pin);
}

/* Do what ib_umem_release() does for other memory only. */
void rpost_dmabuf_unaccount(struct rpost_mr *mr)
{
	if (mr->umem && mr->umem->is_dmabuf)
		atomic64_sub(mr->num_pages, &mr->pinner->mm->pinned_vm);
}

/* The device has not given the memory up; the exporter lists it for ever. */
void rpost_dmabuf_leak(struct rpost_mr *mr)
{
	if (mr->umem && mr->umem->is_dmabuf) {
		get_device(mr->umem->ibdev->dma_device);
		get_device(&mr->umem->ibdev->dev);
	}
}

/* ------------------------------------------------- the command */

/* Return 0, -EOPNOTSUPP, or an errno of rpost_pd_use(). */
static int rpost_dmabuf_ask(struct rpost_ucmd *ucmd)
{
	struct rpost_pd *pd = rpost_pd_use(ucmd, ucmd->cmd.reg_mr.pd);
	bool possible;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	possible = rpost_dmabuf_possible(pd->obj.dev);
	rpost_obj_unuse(&pd->obj);
	rpost_leave_device(ucmd);
	return possible ? 0 : -EOPNOTSUPP;
}

/*
 * A program that got a descriptor for reading only cannot write by a device either.  Such
 * a file cannot be opened anew for writing.  The command has been validated.
 */
static int rpost_dmabuf_check(const struct dma_buf *dmabuf, const struct rpost_reg_mr *cmd)
{
	fmode_t mode = dmabuf->file->f_mode;

	if (!(mode & FMODE_READ) ||
	    (ib_access_writable(cmd->access) && !(mode & FMODE_WRITE)))
		return -EACCES;
	return cmd->addr + cmd->length > dmabuf->size ? -EINVAL : 0;
}

int rpost_reg_dmabuf_mr_ioctl(struct rpost_ucmd *ucmd)
{
	const struct rpost_reg_mr *cmd = &ucmd->cmd.reg_mr;
	struct rpost_pin pin = { };
	int ret;

	/* UCX and NCCL call with a descriptor of -1 to learn this. */
	ret = rpost_dmabuf_ask(ucmd);
	if (ret)
		return ret;
	if (cmd->access & RPOST_ACCESS_ON_DEMAND)
		return -EOPNOTSUPP;
	ret = rpost_mr_validate_any(cmd) ? : rpost_mr_allowed(ucmd->file, cmd);
	if (ret)
		return ret;
	pin.dmabuf = dma_buf_get(cmd->fd);
	if (IS_ERR(pin.dmabuf))
		return PTR_ERR(pin.dmabuf);
	ret = rpost_dmabuf_check(pin.dmabuf, cmd);
	if (!ret)
		ret = rpost_dmabuf_charge(&pin, ucmd->file);
	if (!ret)
		ret = rpost_mr_new(ucmd, &pin);
	rpost_leave_device(ucmd);
	rpost_dmabuf_uncharge(&pin);
	dma_buf_put(pin.dmabuf);
	return ret;
}
