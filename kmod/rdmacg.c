// SPDX-License-Identifier: GPL-2.0
/*
 * The rdma cgroup, charged as uverbs charges it: a handle for each device that
 * an open file has objects on, and an object for each of those.  Connection ids
 * are free, as with ucma.
 */
#include <linux/cgroup_rdma.h>

#include "rpost.h"

static int rpost_context_charge(struct rpost_context *context)
{
	int ret = 0;

	lockdep_assert_held(&context->file->charge_lock);

	if (!context->num_charged)
		ret = rdmacg_try_charge(&context->cgroup,
					&context->dev->ib_dev->cg_device,
					RDMACG_RESOURCE_HCA_HANDLE);
	if (!ret)
		context->num_charged++;
	return ret;
}

static void rpost_context_uncharge(struct rpost_context *context)
{
	if (--context->num_charged)
		return;
	rdmacg_uncharge(context->cgroup, &context->dev->ib_dev->cg_device,
			RDMACG_RESOURCE_HCA_HANDLE);
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
	int ret;

	mutex_lock(&file->charge_lock);
	ret = rpost_context_charge(obj->context);
	if (ret)
		goto out;
	ret = rdmacg_try_charge(&obj->cgroup, &obj->dev->ib_dev->cg_device,
				RDMACG_RESOURCE_HCA_OBJECT);
	if (ret)
		rpost_context_uncharge(obj->context);
	else
		obj->charged = true;
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
	if (obj->charged) {
		rdmacg_uncharge(obj->cgroup, &obj->dev->ib_dev->cg_device,
				RDMACG_RESOURCE_HCA_OBJECT);
		rpost_context_uncharge(obj->context);
		obj->charged = false;
	}
	mutex_unlock(&file->charge_lock);
}
