// SPDX-License-Identifier: GPL-2.0
/*
 * Protection domains.
 */
#include <linux/slab.h>

#include "memory/cache.h"

/*
 * Nothing depends on the domain.  Return 0, or the driver's errno if it refuses to
 * deregister a region.
 */
int rpost_pd_shutdown(struct rpost_obj *obj)
{
	struct rpost_pd *pd = rpost_obj_as(pd, obj);
	int ret;

	if (!pd->ib_pd)
		return 0;
	rpost_cache_pd_end(pd);
	ret = rpost_mr_retry_refused(pd);
	if (ret)
		return ret;
	if (pd->bad_mr) {
		ret = rpost_dereg_mr(pd->obj.dev, pd->bad_mr);
		if (ret < 0)
			return ret;
		if (ret)
			pd->leaked = true;
		pd->bad_mr = NULL;
	}
	rpost_fastreg_destroy(pd);
	if (pd->leaked)
		rpost_leave_behind(&pd->ib_pd->res, pd->obj.dev);
	else
		ib_dealloc_pd(pd->ib_pd);
	pd->ib_pd = NULL;
	return 0;
}

void rpost_pd_free(struct rpost_obj *obj)
{
	struct rpost_pd *pd = rpost_obj_as(pd, obj);

	rhashtable_destroy(&pd->mrs);
	kfree_rcu(pd, obj.rcu);
}

/*
 * Use a domain, to create something in it.  The command enters the domain's device.
 * Return the domain, which stays until rpost_obj_unuse(), or ERR_PTR() of -ENOENT,
 * -ENODEV or -EINTR.
 */
struct rpost_pd *rpost_pd_use(struct rpost_ucmd *ucmd, u32 handle)
{
	struct rpost_pd *pd = rpost_obj_as(pd, rpost_enter_use(ucmd, handle, RPOST_OBJ_PD));

	if (!IS_ERR(pd) && !rpost_device_alive(pd->obj.dev)) {
		rpost_obj_unuse(&pd->obj);
		return ERR_PTR(-ENODEV);
	}
	return pd;
}

int rpost_alloc_pd_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_alloc_pd *cmd = &ucmd->cmd.alloc_pd;
	struct rpost_device *dev;
	struct rpost_pd *pd;
	int ret;

	dev = rpost_enter_device(ucmd, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);

	pd = kzalloc(sizeof(*pd), RPOST_GFP);
	if (!pd)
		return -ENOMEM;
	mutex_init(&pd->fast_lock);
	pd->spans = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&pd->cached);
	ret = rpost_mr_table_init(pd);
	if (ret)
		goto err_free;
	ret = rpost_obj_reserve(ucmd->file, &pd->obj, RPOST_OBJ_PD, dev, RPOST_GFP);
	if (ret)
		goto err_table;

	pd->ib_pd = __ib_alloc_pd(dev->ib_dev, 0, ucmd->file->name);
	if (IS_ERR(pd->ib_pd)) {
		ret = PTR_ERR(pd->ib_pd);
		goto err_unreserve;
	}
	/* Without @bad_mr, posts with a bad key fail at once. */
	pd->bad_mr = ib_alloc_mr(pd->ib_pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(pd->bad_mr)) {
		ret = PTR_ERR(pd->bad_mr);
		pd->bad_mr = NULL;
		if (ret != -EOPNOTSUPP)
			goto err_shutdown;
	}
	if (pd->bad_mr)
		pd->bad_lkey = pd->bad_mr->lkey;
	pd->local_dma_lkey = pd->ib_pd->local_dma_lkey;

	cmd->handle = pd->obj.handle;
	return rpost_obj_answer(ucmd, &pd->obj);

err_shutdown:
	if (rpost_pd_shutdown(&pd->obj)) {
		/* The last close destroys it, if the program does not. */
		rpost_obj_publish(&pd->obj);
		return ret;
	}
err_unreserve:
	rpost_obj_unreserve(&pd->obj);
err_table:
	rhashtable_destroy(&pd->mrs);
err_free:
	kfree(pd);
	return ret;
}
