// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions. */
#include <stdlib.h>

#include "internal.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* The optional flags that the ABI has.  The library drops the others. */
#define KNOWN_OPTIONAL_ACCESS IBV_ACCESS_RELAXED_ORDERING

struct rpost_mr {
	struct ibv_mr ibv;
	struct rpost_made made;
	uint64_t iova;
	unsigned int access;
};

static struct rpost_mr *rpost_mr(struct ibv_mr *mr)
{
	return rpost_container_of(mr, struct rpost_mr, ibv);
}

/* Drops flags that the kernel does not know and that change nothing. */
static unsigned int known_access(unsigned int access)
{
	access &= ~IBV_ACCESS_OPTIONAL_RANGE | KNOWN_OPTIONAL_ACCESS;
	/* It only concerns pages that are not pinned, see ibv_reg_mr(3). */
	if (!(access & IBV_ACCESS_ON_DEMAND))
		access &= ~IBV_ACCESS_HUGETLB;
	return access;
}

/* Fills @mr in.  Returns 0, or an errno value without changing @mr. */
static int register_mr(struct rpost_mr *mr, struct ibv_pd *pd, void *addr,
		       size_t length, uint64_t iova, unsigned int access)
{
	struct rpost_reg_mr cmd = {
		.size = sizeof(cmd),
		.pd = pd->handle,
		.access = known_access(access),
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = iova,
	};
	int err;

	err = rpost_ioctl(pd->context->cmd_fd, RPOST_IOC_REG_MR, &cmd);
	if (err)
		return err;

	mr->iova = iova;
	mr->access = access;
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.handle = cmd.handle;
	mr->ibv.lkey = cmd.lkey;
	mr->ibv.rkey = cmd.rkey;
	return 0;
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
 * The memory is pinned and charged to RLIMIT_MEMLOCK.
 *
 * Return: the region, to be released by ibv_dereg_mr(), or NULL with errno:
 * EFAULT for memory that is not mapped as needed, ENOMEM above RLIMIT_MEMLOCK,
 * EINVAL, EOPNOTSUPP for on-demand paging, memory windows and zero based
 * regions.
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
	if (!err) {
		rpost_made_del(mr->context, &rpost_mr(mr)->made);
		free(rpost_mr(mr));
	}
	return err;
}

static int check_rereg(const struct ibv_mr *mr, int flags,
		       const struct ibv_pd *pd, const void *addr, size_t length,
		       int access)
{
	if (!flags || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
		return EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!addr || !length))
		return EINVAL;
	if ((flags & IBV_REREG_MR_CHANGE_PD) &&
	    (!pd || pd->context != mr->context))
		return EINVAL;
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return EINVAL;
	return 0;
}

/**
 * ibv_rereg_mr() - change a registration, ibv_rereg_mr(3)
 * @mr: the region; its fields, keys included, become those of the new one
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

	err = check_rereg(mr, flags, pd, addr, length, access);
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
