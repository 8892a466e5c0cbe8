// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection domains and memory regions.
 */
#include <stdlib.h>

#include "internal.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* The optional flags that the ABI has; others may be dropped without notice. */
#define KNOWN_OPTIONAL_ACCESS IBV_ACCESS_RELAXED_ORDERING

/**
 * ibv_alloc_pd() - allocate a protection domain, ibv_alloc_pd(3)
 * @context: of the device
 *
 * Return: the protection domain, to be released by ibv_dealloc_pd(), or NULL
 * with errno: ENODEV, EMFILE, ENOMEM.
 */
RPOST_API struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct rpost_alloc_pd cmd = {
		.size = sizeof(cmd),
		.device = rpost_ctx(context)->dev->num,
	};
	struct ibv_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_ALLOC_PD, &cmd);
	if (err) {
		free(pd);
		return rpost_null(err);
	}
	pd->context = context;
	pd->handle = cmd.handle;
	return pd;
}

/**
 * ibv_dealloc_pd() - release a protection domain, ibv_dealloc_pd(3)
 * @pd: the protection domain
 *
 * Return: 0, or an errno value: EBUSY while there are regions or queue pairs
 * on it, in which case it stays.
 */
RPOST_API int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int err;

	err = rpost_destroy_handle(pd->context->cmd_fd, RPOST_OBJ_PD,
				   pd->handle);
	if (!err)
		free(pd);
	return err;
}

/**
 * ibv_reg_mr_iova2() - register memory, ibv_reg_mr(3)
 * @pd: the protection domain
 * @addr: first byte
 * @length: bytes, at least 1
 * @iova: the address by which work requests name the first byte; it has the
 *        same offset in its page as @addr
 * @access: enum ibv_access_flags; optional flags that are not known are dropped
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
	struct rpost_reg_mr cmd = {
		.size = sizeof(cmd),
		.pd = pd->handle,
		.access = access & (~IBV_ACCESS_OPTIONAL_RANGE |
				    KNOWN_OPTIONAL_ACCESS),
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = iova,
	};
	struct ibv_mr *mr;
	int err;

	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;

	err = rpost_ioctl(pd->context->cmd_fd, RPOST_IOC_REG_MR, &cmd);
	if (err) {
		free(mr);
		return rpost_null(err);
	}
	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->handle = cmd.handle;
	mr->lkey = cmd.lkey;
	mr->rkey = cmd.rkey;
	return mr;
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
 * Return: 0, or an errno value; the region stays then.
 */
RPOST_API int ibv_dereg_mr(struct ibv_mr *mr)
{
	int err;

	err = rpost_destroy_handle(mr->context->cmd_fd, RPOST_OBJ_MR,
				   mr->handle);
	if (!err)
		free(mr);
	return err;
}
