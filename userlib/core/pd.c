// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection domains, thread domains and parent domains.
 *
 * A parent domain has the handle of its protection domain.  The library ignores
 * its additions, allocators and thread domains.
 */
#include <stdlib.h>

#include "core/internal.h"

struct rpost_td {
	struct ibv_td ibv;
	atomic_uint users;		/* parent domains that use it */
};

struct rpost_pd {
	struct ibv_pd ibv;
	struct rpost_made made;		/* unused in a parent domain or import */
	bool imported;
	atomic_uint users;		/* parent domains that use it */
	struct rpost_pd *of;		/* only in a parent domain */
	struct rpost_td *td;		/* only in a parent domain, or NULL */
};

static struct rpost_pd *rpost_pd(struct ibv_pd *pd)
{
	return rpost_container_of(pd, struct rpost_pd, ibv);
}

static struct rpost_td *rpost_td(struct ibv_td *td)
{
	return rpost_container_of(td, struct rpost_td, ibv);
}

/**
 * ibv_alloc_pd() - allocate a protection domain, ibv_alloc_pd(3)
 * @context: of the device
 *
 * Return: the protection domain, to be released by ibv_dealloc_pd(), or NULL
 * with errno: ENODEV, EMFILE, ENOMEM.
 */
RPOST_API struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct rpost_alloc_pd cmd = { .device = rpost_ctx(context)->dev->num };
	struct rpost_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_ALLOC_PD, &cmd);
	if (err) {
		free(pd);
		return rpost_null(err);
	}
	pd->ibv.context = context;
	pd->ibv.handle = cmd.handle;
	rpost_made_add(context, &pd->made, RPOST_OBJ_PD, &pd->ibv.handle);
	return &pd->ibv;
}

static void forget(struct rpost_pd *pd)
{
	if (!pd->imported && !pd->of)
		rpost_made_del(pd->ibv.context, &pd->made);
	free(pd);
}

/**
 * ibv_dealloc_pd() - release a protection domain, ibv_alloc_pd(3),
 * ibv_alloc_parent_domain(3)
 * @pd: the protection domain, or a parent domain
 *
 * Return: 0, or an errno value: EBUSY while memory regions, queues or parent
 * domains use it.
 */
RPOST_API int ibv_dealloc_pd(struct ibv_pd *pd)
{
	struct rpost_pd *rpd = rpost_pd(pd);
	int err = 0;

	if (rpd->users)
		return EBUSY;
	if (rpd->of) {
		rpd->of->users--;
		if (rpd->td)
			rpd->td->users--;
	} else {
		rpost_ah_reap(rpost_ctx(pd->context));
		err = rpost_destroy_handle(pd->context->cmd_fd, RPOST_OBJ_PD,
					   pd->handle);
	}
	if (!err)
		forget(rpd);
	return err;
}

int rpost_query_object(struct ibv_context *context, uint32_t type,
		       uint32_t handle, struct rpost_query_object *cmd)
{
	int err;

	*cmd = (struct rpost_query_object) { .type = type, .handle = handle };
	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_QUERY_OBJECT, cmd);
	if (!err && cmd->device != rpost_ctx(context)->dev->num)
		err = EINVAL;
	return err;
}

/**
 * ibv_import_pd() - use a protection domain of another process,
 * ibv_import_pd(3)
 * @context: from ibv_import_device()
 * @pd_handle: handle of the domain in the other process
 *
 * Return: the protection domain, to be released by ibv_unimport_pd(), or by
 * ibv_dealloc_pd() for all processes; or NULL with errno: ENOENT, EINVAL for a
 * domain of another device, EOPNOTSUPP, ENODEV, ENOMEM.
 */
RPOST_API struct ibv_pd *ibv_import_pd(struct ibv_context *context,
				       uint32_t pd_handle)
{
	struct rpost_query_object cmd;
	struct rpost_pd *pd;
	int err;

	err = rpost_query_object(context, RPOST_OBJ_PD, pd_handle, &cmd);
	if (err)
		return rpost_null(err);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv.context = context;
	pd->ibv.handle = pd_handle;
	pd->imported = true;
	return &pd->ibv;
}

/**
 * ibv_unimport_pd() - release an import, ibv_import_pd(3)
 * @pd: the protection domain, which stays; or one of this process that an
 *      importer has ended
 */
RPOST_API void ibv_unimport_pd(struct ibv_pd *pd)
{
	forget(rpost_pd(pd));
}

/**
 * rpost_alloc_td() - allocate a thread domain, ibv_alloc_td(3)
 * @context: of the device
 * @attr: its comp_mask must be 0
 *
 * The library locks the queues of a thread domain, too.
 *
 * Return: the thread domain, to be released by ibv_dealloc_td(), or NULL with
 * errno: EINVAL, ENOMEM.
 */
struct ibv_td *rpost_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr)
{
	struct rpost_td *td;

	if (attr->comp_mask)
		return rpost_null(EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = context;
	return &td->ibv;
}

/**
 * rpost_dealloc_td() - release a thread domain, ibv_dealloc_td(3)
 * @td: the thread domain
 *
 * Return: 0, or EBUSY while parent domains use it.
 */
int rpost_dealloc_td(struct ibv_td *td)
{
	struct rpost_td *rtd = rpost_td(td);

	if (rtd->users)
		return EBUSY;
	free(rtd);
	return 0;
}

/**
 * rpost_alloc_parent_domain() - make a parent domain,
 * ibv_alloc_parent_domain(3)
 * @context: of the device
 * @attr: the protection domain, and optionally a thread domain; allocators are
 *        accepted but not called, since the library allocates nothing for a
 *        device
 *
 * Return: the parent domain, to be released by ibv_dealloc_pd(), or NULL with
 * errno: EINVAL without a protection domain, for a parent domain in its place
 * or for objects of another context; EOPNOTSUPP for unknown bits of comp_mask;
 * ENOMEM.
 */
struct ibv_pd *
rpost_alloc_parent_domain(struct ibv_context *context,
			  struct ibv_parent_domain_init_attr *attr)
{
	struct rpost_pd *pd;

	if (attr->comp_mask & ~(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
		return rpost_null(EOPNOTSUPP);
	if (!attr->pd || attr->pd->context != context ||
	    rpost_pd(attr->pd)->of ||
	    (attr->td && attr->td->context != context))
		return rpost_null(EINVAL);

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv = *attr->pd;
	pd->of = rpost_pd(attr->pd);
	pd->of->users++;
	if (attr->td) {
		pd->td = rpost_td(attr->td);
		pd->td->users++;
	}
	return &pd->ibv;
}
