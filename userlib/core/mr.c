// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions. */
#include <stdlib.h>

#include "core/internal.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* The optional flags that the ABI has.  The library drops the others. */
#define KNOWN_OPTIONAL_ACCESS IBV_ACCESS_RELAXED_ORDERING

struct rpost_mr {
	struct ibv_mr ibv;
	struct rpost_made made;
	uint64_t iova;
	unsigned int access;
	bool imported;			/* @made is unused */
	bool dmabuf;
};

static struct rpost_mr *rpost_mr(struct ibv_mr *mr)
{
	return rpost_container_of(mr, struct rpost_mr, ibv);
}

/* Drops flags that the kernel does not know and that change nothing. */
static unsigned int known_access(unsigned int access)
{
	access &= ~IBV_ACCESS_OPTIONAL_RANGE | KNOWN_OPTIONAL_ACCESS;
	/* The module takes regions of small pages, which serve any memory. */
	return access & ~IBV_ACCESS_HUGETLB;
}

/* Does the device treat any region on demand as it treats pinned memory? */
static bool odp_is_complete(const struct rpost_query_device *query)
{
	const uint32_t rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			    IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			    IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t ud = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;

	return !(query->odp_limits & RPOST_ODP_WHOLE_PAGES) &&
	       (query->odp_rc_caps & rc) == rc &&
	       (query->odp_ud_caps & ud) == ud;
}

enum rpost_odp_use rpost_odp_use(const struct rpost_query_device *query)
{
	if (!(query->odp_general_caps & RPOST_ODP_SUPPORT) || rpost_env_is("RDMA_POST_ODP", "0"))
		return RPOST_ODP_NEVER;
	if (rpost_env_is("RDMA_POST_ODP", "force"))
		return RPOST_ODP_ALWAYS;
	if (!odp_is_complete(query))
		return RPOST_ODP_NEVER;
	return rpost_env_is("RDMA_POST_ODP", "1") ? RPOST_ODP_ALWAYS : RPOST_ODP_INSTEAD;
}

static int reg_on_demand(int fd, struct rpost_reg_mr *cmd)
{
	struct rpost_reg_mr odp = *cmd;
	int err;

	odp.access |= RPOST_ACCESS_ON_DEMAND;
	err = rpost_ioctl(fd, RPOST_IOC_REG_MR, &odp);
	if (!err)
		*cmd = odp;
	return err;
}

/* Registers memory, on demand if RDMA_POST_ODP says so. */
static int reg_any(const struct rpost_ctx *ctx, int fd, struct rpost_reg_mr *cmd)
{
	enum rpost_odp_use use = ctx->odp_use;
	int err;

	if (cmd->access & RPOST_ACCESS_ON_DEMAND)
		use = RPOST_ODP_NEVER;
	if (use == RPOST_ODP_ALWAYS && !reg_on_demand(fd, cmd))
		return 0;
	err = rpost_ioctl(fd, RPOST_IOC_REG_MR, cmd);
	/* EPERM: nothing may be locked. */
	if ((err == ENOMEM || err == EPERM) && use == RPOST_ODP_INSTEAD &&
	    !reg_on_demand(fd, cmd))
		return 0;
	return err;
}

static void fill_mr(struct rpost_mr *mr, struct ibv_pd *pd, unsigned int access,
		    const struct rpost_reg_mr *cmd)
{
	mr->iova = cmd->iova;
	mr->access = access;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = (void *)(uintptr_t)cmd->addr;
	mr->ibv.length = cmd->length;
	mr->ibv.handle = cmd->handle;
	mr->ibv.lkey = cmd->lkey;
	mr->ibv.rkey = cmd->rkey;
}

/* Fills @mr in.  Returns 0, or an errno value without changing @mr. */
static int register_mr(struct rpost_mr *mr, struct ibv_pd *pd, void *addr,
		       size_t length, uint64_t iova, unsigned int access)
{
	struct rpost_reg_mr cmd = {
		.flags = rpost_ctx(pd->context)->mr_flags,
		.pd = pd->handle,
		.access = known_access(access),
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = iova,
	};
	int err;

	err = reg_any(rpost_ctx(pd->context), pd->context->cmd_fd, &cmd);
	if (!err)
		fill_mr(mr, pd, access, &cmd);
	return err;
}

/**
 * ibv_reg_mr_iova2() - register memory, ibv_reg_mr(3)
 * @pd: the protection domain
 * @addr: first byte
 * @length: bytes, at least 1
 * @iova: the address by which work requests name the first byte; its offset in
 *        its page must be the same as that of @addr
 * @access: enum ibv_access_flags; unknown optional flags are dropped
 *
 * The memory is pinned and charged to RLIMIT_MEMLOCK, but not with
 * IBV_ACCESS_ON_DEMAND, or where RDMA_POST_ODP in the environment has the same
 * effect (see rdma-post-run(1)).  After ibv_dereg_mr() it may stay pinned for
 * the next registration, unless peers had access, or RDMA_POST_MR_CACHE is 0.
 *
 * Return: the region, to be released by ibv_dereg_mr(), or NULL with errno:
 * EFAULT for memory that is not mapped as needed, ENOMEM above RLIMIT_MEMLOCK,
 * EINVAL, EOPNOTSUPP for memory windows, zero based regions, and on-demand
 * paging of all memory or where ibv_query_device_ex() does not report it.
 */
RPOST_API struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr,
					  size_t length, uint64_t iova,
					  unsigned int access)
{
	struct rpost_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = register_mr(mr, pd, addr, length, iova, access);
	if (err) {
		free(mr);
		return rpost_null(err);
	}
	rpost_made_add(pd->context, &mr->made, RPOST_OBJ_MR, &mr->ibv.handle);
	return &mr->ibv;
}

/**
 * ibv_reg_mr() - register memory, ibv_reg_mr(3)
 * @pd: the protection domain
 * @addr: first byte
 * @length: bytes
 * @access: enum ibv_access_flags
 *
 * Return: as ibv_reg_mr_iova2() with the address itself as iova.
 */
RPOST_API struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr,
				    size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, access);
}

/**
 * ibv_reg_mr_iova() - register memory under another address, ibv_reg_mr(3)
 * @pd: the protection domain
 * @addr: first byte
 * @length: bytes
 * @iova: as for ibv_reg_mr_iova2()
 * @access: enum ibv_access_flags
 *
 * Return: as ibv_reg_mr_iova2().
 */
RPOST_API struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr,
					 size_t length, uint64_t iova,
					 int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, access);
}

/**
 * ibv_reg_dmabuf_mr() - register memory of a dma-buf, ibv_reg_mr(3)
 * @pd: the protection domain
 * @offset: of the first byte in the dma-buf
 * @length: bytes, at least 1
 * @iova: the address by which work requests name the first byte; its offset in
 *        its page must be the same as that of @offset
 * @fd: the dma-buf, which the region keeps; may be closed
 * @access: enum ibv_access_flags; unknown optional flags are dropped
 *
 * The whole dma-buf is pinned, and charged to RLIMIT_MEMLOCK.
 *
 * Return: the region, to be released by ibv_dereg_mr(), or NULL with errno:
 * EOPNOTSUPP if the device has no dma-bufs, whatever @fd is; EBADF if @fd is not
 * open, or is exchanged meanwhile; EINVAL if it is no dma-buf, for memory beyond
 * its end, no length, another offset in the page, or remote write or atomic
 * access without local write; EACCES if it was opened for reading only and the
 * device may write; EMSGSIZE for more than the device takes; EOVERFLOW; ENOMEM,
 * also above RLIMIT_MEMLOCK; ENODEV, ETIMEDOUT or EIO if the device has gone,
 * does not answer, or refuses.
 */
RPOST_API struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
					   size_t length, uint64_t iova, int fd,
					   int access)
{
	struct rpost_reg_mr cmd = {
		.pd = pd->handle,
		.access = known_access(access),
		.addr = offset,
		.length = length,
		.iova = iova,
		.fd = fd,
	};
	struct rpost_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = rpost_ioctl(pd->context->cmd_fd, RPOST_IOC_REG_DMABUF_MR, &cmd);
	if (err) {
		free(mr);
		return rpost_null(err);
	}
	mr->dmabuf = true;
	fill_mr(mr, pd, access, &cmd);
	rpost_made_add(pd->context, &mr->made, RPOST_OBJ_MR, &mr->ibv.handle);
	return &mr->ibv;
}

static void forget(struct rpost_mr *mr)
{
	if (!mr->imported)
		rpost_made_del(mr->ibv.context, &mr->made);
	free(mr);
}

/**
 * ibv_dereg_mr() - end a registration, ibv_dereg_mr(3)
 * @mr: the region
 *
 * Return: 0, or an errno value, after which the region remains.
 */
RPOST_API int ibv_dereg_mr(struct ibv_mr *mr)
{
	int err;

	err = rpost_destroy_handle(mr->context->cmd_fd, RPOST_OBJ_MR,
				   mr->handle);
	if (!err)
		forget(rpost_mr(mr));
	return err;
}

/**
 * ibv_import_mr() - use a memory region of another process, ibv_import_mr(3)
 * @pd: from ibv_import_pd()
 * @mr_handle: handle of the region in the other process
 *
 * Its memory is the other process's; addr is NULL.
 *
 * Return: the region, to be released by ibv_unimport_mr(), or by ibv_dereg_mr()
 * for all processes; or NULL with errno: ENOENT, EINVAL for a region of another
 * domain, EOPNOTSUPP, ENODEV, ENOMEM.
 */
RPOST_API struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct rpost_query_object cmd;
	struct rpost_mr *mr;
	int err;

	err = rpost_query_object(pd->context, RPOST_OBJ_MR, mr_handle, &cmd);
	if (!err && cmd.pd != pd->handle)
		err = EINVAL;
	if (err)
		return rpost_null(err);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->imported = true;
	mr->iova = cmd.iova;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.length = cmd.length;
	mr->ibv.handle = mr_handle;
	mr->ibv.lkey = cmd.lkey;
	mr->ibv.rkey = cmd.rkey;
	return &mr->ibv;
}

/**
 * ibv_unimport_mr() - release an import, ibv_import_mr(3)
 * @mr: the region, which stays; or one of this process that an importer has
 *      ended
 */
RPOST_API void ibv_unimport_mr(struct ibv_mr *mr)
{
	forget(rpost_mr(mr));
}

static int check_rereg(const struct rpost_mr *mr, int flags,
		       const struct ibv_pd *pd, const void *addr, size_t length,
		       int access)
{
	if (mr->imported || mr->dmabuf)
		return EINVAL;
	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length))
		return EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_PD) &&
	    (!pd || pd->context != mr->ibv.context))
		return EINVAL;
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return EINVAL;
	return 0;
}

/**
 * ibv_rereg_mr() - change a registration, ibv_rereg_mr(3)
 * @mr: the region, not an import or of a dma-buf; its fields, keys included,
 *      become those of the new one
 * @flags: enum ibv_rereg_mr_flags of the changes
 * @pd: the new protection domain
 * @addr: the new first byte, also the new iova
 * @length: the new number of bytes
 * @access: the new enum ibv_access_flags; 0 without IBV_REREG_MR_CHANGE_ACCESS
 *
 * Works on any device, since the library makes the new region before it ends
 * the old one: for a moment both are pinned and charged.  The old keys become
 * invalid.
 *
 * Return: 0, or IBV_REREG_MR_ERR_INPUT with errno as ibv_reg_mr_iova2(), after
 * which the old region is valid and unchanged.
 */
RPOST_API int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			   void *addr, size_t length, int access)
{
	struct rpost_mr *old = rpost_mr(mr);
	struct rpost_mr new = { .ibv = old->ibv, .iova = old->iova,
				.access = old->access };
	int err;

	err = check_rereg(old, flags, pd, addr, length, access);
	if (err)
		goto out;

	if (flags & IBV_REREG_MR_CHANGE_PD)
		new.ibv.pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		new.access = access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		new.ibv.addr = addr;
		new.ibv.length = length;
		new.iova = (uintptr_t)addr;
	}
	err = register_mr(&new, new.ibv.pd, new.ibv.addr, new.ibv.length,
			  new.iova, new.access);
	if (err)
		goto out;
	err = rpost_destroy_handle(mr->context->cmd_fd, RPOST_OBJ_MR,
				   mr->handle);
	if (err) {
		rpost_destroy_handle(mr->context->cmd_fd, RPOST_OBJ_MR,
				     new.ibv.handle);
		goto out;
	}
	/* old->made stays in the context's list. */
	old->ibv = new.ibv;
	old->iova = new.iova;
	old->access = new.access;
out:
	return rpost_fail(err) ? IBV_REREG_MR_ERR_INPUT : 0;
}

static int advise_some(struct ibv_pd *pd, uint32_t advice, uint32_t flags,
		       const struct ibv_sge *sges, uint32_t num_sge)
{
	struct rpost_sge copy[RPOST_MAX_ADVISE_SGE];
	struct rpost_advise_mr cmd = {
		.flags = flags,
		.pd = pd->handle,
		.advice = advice,
		.sges = (uintptr_t)copy,
		.num_sge = num_sge,
	};
	uint32_t i;

	for (i = 0; i < num_sge; i++)
		copy[i] = (struct rpost_sge) {
			.addr = sges[i].addr,
			.length = sges[i].length,
			.lkey = sges[i].lkey,
		};
	return rpost_ioctl(pd->context->cmd_fd, RPOST_IOC_ADVISE_MR, &cmd);
}

/**
 * rpost_advise_mr() - make memory of regions ready, ibv_advise_mr(3)
 * @pd: the protection domain
 * @advice: enum ibv_advise_mr_advice
 * @flags: IBV_ADVISE_MR_FLAG_FLUSH or 0
 * @sges: memory of regions with IBV_ACCESS_ON_DEMAND
 * @num_sge: how many, at least 1
 *
 * Waits for pages that are not present, with and without the flag.  A region
 * without write access is EFAULT for IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, where
 * rxe's own provider says EPERM.
 *
 * Return: 0, or an errno value: EFAULT for a key or memory that is not one of
 * such a region, EINVAL, EOPNOTSUPP without on-demand paging.
 */
int rpost_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		    uint32_t flags, struct ibv_sge *sges, uint32_t num_sge)
{
	uint32_t done, n;
	int err;

	if (!rpost_ctx(pd->context)->has_odp)
		return EOPNOTSUPP;
	if (!num_sge || (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH))
		return EINVAL;
	for (done = 0; done < num_sge; done += n) {
		n = num_sge - done;
		if (n > RPOST_MAX_ADVISE_SGE)
			n = RPOST_MAX_ADVISE_SGE;
		err = advise_some(pd, advice, flags, sges + done, n);
		if (err)
			return err;
	}
	return 0;
}
