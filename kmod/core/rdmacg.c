// SPDX-License-Identifier: GPL-2.0
/*
 * Charges the rdma cgroup as uverbs does: one HCA handle for each device on
 * which an open file has objects, and one HCA object for each of them.
 * Connection ids are not charged, as in ucma.
 */
#include <linux/cgroup_rdma.h>

#include "core/device.h"

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

/*
 * Charge the caller's rdma cgroup for an object, whose device cannot be removed
 * meanwhile.  Return 0, -EAGAIN at the cgroup's limit, or -ENOMEM.
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
out:
	mutex_unlock(&file->charge_lock);
	return ret;
}

/*
 * Uncharge the cgroup that was charged for an object; the second time nothing happens.
 * Removal of the device uncharges all objects of each file, so the cgroups still know the
 * device while an object on it is charged.
 */
void rpost_obj_uncharge(struct rpost_obj *obj)
{
	struct rpost_file *file = obj->file;

	if (!obj->dev)
		return;
	mutex_lock(&file->charge_lock);
	if (obj->cgroup) {
		rdmacg_uncharge(obj->cgroup, &obj->dev->ib_dev->cg_device,
				RDMACG_RESOURCE_HCA_OBJECT);
		rpost_context_uncharge(obj->context);
		obj->cgroup = NULL;
	}
	mutex_unlock(&file->charge_lock);
}
