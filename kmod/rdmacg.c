// SPDX-License-Identifier: GPL-2.0
/*
 * The rdma cgroup, charged as uverbs charges it: a handle for each device that
 * an open file has objects on, and an object for each of those.  Connection ids
 * are free, as with ucma.
 */
#include <linux/cgroup_rdma.h>
#include <linux/slab.h>

#include "rpost.h"

/**
 * struct rpost_context - what an open file has on a device, as a verbs context
 * @link: in the file's list
 * @dev: the device
 * @cgroup: has been charged for the handle
 * @num_objs: objects; the last one ends it
 */
struct rpost_context {
	struct list_head link;
	struct rpost_device *dev;
	struct rdma_cgroup *cgroup;
	unsigned int num_objs;
};

static struct rpost_context *rpost_context_get(struct rpost_file *file,
					       struct rpost_device *dev)
{
	struct rpost_context *context;
	int ret;

	lockdep_assert_held(&file->charge_lock);

	list_for_each_entry(context, &file->contexts, link) {
		if (context->dev == dev)
			goto found;
	}
	context = kzalloc(sizeof(*context), RPOST_GFP);
	if (!context)
		return ERR_PTR(-ENOMEM);
	ret = rdmacg_try_charge(&context->cgroup, &dev->ib_dev->cg_device,
				RDMACG_RESOURCE_HCA_HANDLE);
	if (ret) {
		kfree(context);
		return ERR_PTR(ret);
	}
	context->dev = dev;
	list_add(&context->link, &file->contexts);
found:
	context->num_objs++;
	return context;
}

static void rpost_context_put(struct rpost_context *context)
{
	if (--context->num_objs)
		return;
	rdmacg_uncharge(context->cgroup, &context->dev->ib_dev->cg_device,
			RDMACG_RESOURCE_HCA_HANDLE);
	list_del(&context->link);
	kfree(context);
}

/**
 * rpost_obj_charge() - charge the caller's rdma cgroup for an object
 * @obj: the object, on a device that cannot be removed just now
 *
 * Return: 0, -EAGAIN at the cgroup's limit, or -ENOMEM.
 */
int rpost_obj_charge(struct rpost_obj *obj)
{
	struct rpost_file *file = obj->file;
	struct rpost_context *context;
	int ret;

	mutex_lock(&file->charge_lock);
	context = rpost_context_get(file, obj->dev);
	ret = PTR_ERR_OR_ZERO(context);
	if (ret)
		goto out;
	ret = rdmacg_try_charge(&obj->cgroup, &obj->dev->ib_dev->cg_device,
				RDMACG_RESOURCE_HCA_OBJECT);
	if (ret)
		rpost_context_put(context);
	else
		obj->context = context;
out:
	mutex_unlock(&file->charge_lock);
	return ret;
}

/**
 * rpost_obj_uncharge() - give the charge back to the cgroup that has it
 * @obj: the object; does nothing the second time
 *
 * While something is charged, removal of the device has yet to come to the file;
 * so the device, and what the cgroups know of it, are there.
 */
void rpost_obj_uncharge(struct rpost_obj *obj)
{
	struct rpost_file *file = obj->file;

	if (!obj->dev)
		return;
	mutex_lock(&file->charge_lock);
	if (obj->context) {
		rdmacg_uncharge(obj->cgroup, &obj->dev->ib_dev->cg_device,
				RDMACG_RESOURCE_HCA_OBJECT);
		rpost_context_put(obj->context);
		obj->context = NULL;
	}
	mutex_unlock(&file->charge_lock);
}
