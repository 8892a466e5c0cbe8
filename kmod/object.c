// SPDX-License-Identifier: GPL-2.0
/*
 * Objects: their life and death.  See struct rpost_obj.
 */
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "rpost.h"

static unsigned int max_objects = 65536;
module_param(max_objects, uint, 0644);
MODULE_PARM_DESC(max_objects,
		 "Objects that one open of the device may have (65536)");

/**
 * struct rpost_type - how the objects of one type end
 * @shutdown: give back all that is not memory: runs once for each object and
 *            does nothing the second time; an error leaves the object as it
 *            was
 * @free: free the memory, after shutdown
 * @events: asynchronous events may name it
 */
struct rpost_type {
	int (*shutdown)(struct rpost_obj *obj);
	void (*free)(struct rpost_obj *obj);
	bool events;
};

static const struct rpost_type rpost_types[] = {
	[RPOST_OBJ_PD] = { rpost_pd_shutdown, rpost_pd_free },
	[RPOST_OBJ_MR] = { rpost_mr_shutdown, rpost_mr_free },
	[RPOST_OBJ_CQ] = { rpost_cq_shutdown, rpost_cq_free, true },
	[RPOST_OBJ_QP] = { rpost_qp_shutdown, rpost_qp_free, true },
	[RPOST_OBJ_ID] = { rpost_id_shutdown, rpost_id_free },
	[RPOST_OBJ_SRQ] = { rpost_srq_shutdown, rpost_srq_free, true },
	[RPOST_OBJ_AH] = { rpost_ah_shutdown, rpost_ah_free },
};

/*
 * What an object takes beside its queues: in the module, the RDMA core and the driver.
 * An id may have eight events.  A queue pair of rxe has a socket, and what it answers
 * again; a domain has a queue pair for fast registration.
 */
static const unsigned long rpost_obj_bytes[] = {
	[RPOST_OBJ_PD] = SZ_32K,
	[RPOST_OBJ_MR] = SZ_4K,
	[RPOST_OBJ_CQ] = SZ_2K,
	[RPOST_OBJ_QP] = SZ_16K,
	[RPOST_OBJ_ID] = SZ_8K,
	[RPOST_OBJ_SRQ] = SZ_4K,
	[RPOST_OBJ_AH] = SZ_1K,
};

/* Dependents come before what they depend on. */
static const enum rpost_obj_type rpost_teardown_order[] = {
	RPOST_OBJ_QP, RPOST_OBJ_SRQ, RPOST_OBJ_AH, RPOST_OBJ_MR, RPOST_OBJ_ID,
	RPOST_OBJ_CQ, RPOST_OBJ_PD,
};

/**
 * rpost_obj_take_bytes() - charge the file's user for an object's memory
 * @obj: the object, until rpost_obj_unreserve()
 * @bytes: how much more
 *
 * Return: 0, or -ENOMEM at the user's limit.
 */
int rpost_obj_take_bytes(struct rpost_obj *obj, unsigned long bytes)
{
	int ret = rpost_user_charge(obj->file->user, bytes);

	if (!ret)
		obj->bytes += bytes;
	return ret;
}

static int rpost_obj_reserve_gfp(struct rpost_file *file,
				 struct rpost_obj *obj,
				 enum rpost_obj_type type,
				 struct rpost_device *dev, gfp_t gfp)
{
	int ret;

	obj->file = file;
	obj->type = type;
	obj->dev = dev;
	refcount_set(&obj->refs, 1);
	init_completion(&obj->unused);

	ret = rpost_obj_take_bytes(obj, rpost_obj_bytes[type]);
	if (ret)
		return ret;
	ret = rpost_handle_reserve(&file->handles, READ_ONCE(max_objects), gfp,
				   &obj->slot);
	if (ret) {
		rpost_user_uncharge(file->user, obj->bytes);
		return ret;
	}
	obj->handle = obj->slot->handle;
	rpost_count(type, 1);
	ret = dev ? rpost_obj_charge(obj) : 0;
	if (ret)
		rpost_obj_unreserve(obj);
	return ret;
}

/**
 * rpost_obj_reserve() - begin an object's life
 * @file: the open file
 * @obj: zeroed memory
 * @type: its type
 * @dev: the device that it is on, which cannot be removed just now, or NULL
 *
 * The object has a handle, but no lookup finds it.
 *
 * Return: 0, -EMFILE at the file's limit, -EAGAIN at that of the rdma cgroup, or
 * -ENOMEM, also at the user's.
 */
int rpost_obj_reserve(struct rpost_file *file, struct rpost_obj *obj,
		      enum rpost_obj_type type, struct rpost_device *dev)
{
	return rpost_obj_reserve_gfp(file, obj, type, dev, RPOST_GFP);
}

/**
 * rpost_obj_reserve_nowait() - begin an object's life for another task
 * @file: the open file
 * @obj: zeroed memory
 * @type: its type, which is not on a device
 *
 * Does not wait for memory.
 *
 * Return: as rpost_obj_reserve().
 */
int rpost_obj_reserve_nowait(struct rpost_file *file, struct rpost_obj *obj,
			     enum rpost_obj_type type)
{
	return rpost_obj_reserve_gfp(file, obj, type, NULL, RPOST_GFP_NOWAIT);
}

/**
 * rpost_obj_unreserve() - free the handle of an object that is not found
 * @obj: the object
 */
void rpost_obj_unreserve(struct rpost_obj *obj)
{
	rpost_obj_uncharge(obj);
	rpost_handle_unreserve(&obj->file->handles, obj->slot);
	rpost_user_uncharge(obj->file->user, obj->bytes);
	rpost_count(obj->type, -1);
}

/**
 * rpost_obj_publish() - let lookups find an object
 * @obj: the object, complete; the program has its answer
 *
 * The object may be gone when this returns: the program can guess handles.
 */
void rpost_obj_publish(struct rpost_obj *obj)
{
	WARN_ON_ONCE(rcu_access_pointer(obj->slot->obj));
	rcu_assign_pointer(obj->slot->obj, obj);
}

/* Under RCU, or with the lock of the handles held. */
static struct rpost_obj *rpost_obj_find(struct rpost_file *file, u32 handle,
					enum rpost_obj_type type)
{
	struct rpost_obj *obj = rpost_handle_find(&file->handles, handle);

	return obj && obj->handle == handle && obj->type == type ? obj : NULL;
}

/**
 * rpost_obj_get() - look an object up
 * @file: the open file
 * @handle: its handle
 * @type: the type that it must have
 *
 * Return: the object with a reference, to be dropped by rpost_obj_put(), or
 * NULL.
 */
struct rpost_obj *rpost_obj_get(struct rpost_file *file, u32 handle,
				enum rpost_obj_type type)
{
	struct rpost_obj *obj;

	rcu_read_lock();
	obj = rpost_obj_find(file, handle, type);
	if (obj && !refcount_inc_not_zero(&obj->refs))
		obj = NULL;
	rcu_read_unlock();
	return obj;
}

/**
 * rpost_obj_next() - go through the objects of one type
 * @file: the open file
 * @index: 0 to begin with; where to go on
 * @type: the type
 *
 * Return: the next object with a reference, to be dropped by rpost_obj_put(), or
 * NULL.  What comes or goes meanwhile may be found or not.
 */
struct rpost_obj *rpost_obj_next(struct rpost_file *file, u32 *index,
				 enum rpost_obj_type type)
{
	struct rpost_obj *obj;

	rcu_read_lock();
	do {
		obj = rpost_handle_next(&file->handles, index);
	} while (obj && (obj->type != type ||
			 !refcount_inc_not_zero(&obj->refs)));
	rcu_read_unlock();
	return obj;
}

/**
 * rpost_obj_put() - drop the reference of rpost_obj_get()
 * @obj: the object
 */
void rpost_obj_put(struct rpost_obj *obj)
{
	if (refcount_dec_and_test(&obj->refs))
		complete(&obj->unused);
}

/**
 * rpost_obj_use() - depend on an object
 * @file: the open file
 * @handle: its handle
 * @type: the type that it must have
 *
 * Return: the object, which stays until rpost_obj_unuse(), or NULL.
 */
struct rpost_obj *rpost_obj_use(struct rpost_file *file, u32 handle,
				enum rpost_obj_type type)
{
	struct rpost_obj *obj;

	spin_lock(&file->handles.lock);
	obj = rpost_obj_find(file, handle, type);
	if (obj)
		obj->users++;
	spin_unlock(&file->handles.lock);
	return obj;
}

/**
 * rpost_obj_unuse() - no longer depend on an object
 * @obj: the object
 */
void rpost_obj_unuse(struct rpost_obj *obj)
{
	spin_lock(&obj->file->handles.lock);
	obj->users--;
	spin_unlock(&obj->file->handles.lock);
}

/*
 * Take an object out of the table, so that the caller is the only one who has
 * it.  The handle stays reserved.
 */
static struct rpost_obj *rpost_obj_claim(struct rpost_file *file, u32 handle,
					 enum rpost_obj_type type)
{
	struct rpost_obj *obj;

	spin_lock(&file->handles.lock);
	obj = rpost_obj_find(file, handle, type);
	if (!obj)
		obj = ERR_PTR(-ENOENT);
	else if (obj->users)
		obj = ERR_PTR(-EBUSY);
	else
		RCU_INIT_POINTER(obj->slot->obj, NULL);
	spin_unlock(&file->handles.lock);
	if (IS_ERR(obj))
		return obj;

	if (!refcount_dec_and_test(&obj->refs))
		wait_for_completion(&obj->unused);
	return obj;
}

static int rpost_obj_destroy(struct rpost_file *file, u32 handle,
			     enum rpost_obj_type type)
{
	struct rpost_obj *obj;
	int ret;

	/*
	 * Removal finds the object in the table, or waits until it has been
	 * shut down.
	 */
	lockdep_assert_held(&file->rwsem);

	obj = rpost_obj_claim(file, handle, type);
	if (IS_ERR(obj))
		return PTR_ERR(obj);

	obj->ending = true;
	ret = rpost_types[type].shutdown(obj);
	if (ret) {
		obj->ending = false;
		reinit_completion(&obj->unused);
		refcount_set(&obj->refs, 1);
		rpost_obj_publish(obj);
		return ret;
	}
	if (rpost_types[type].events)
		rpost_async_forget(obj->dev, obj);
	rpost_obj_unreserve(obj);
	rpost_types[type].free(obj);
	return 0;
}

/**
 * rpost_destroy_ioctl() - destroy an object
 * @ucmd: the command
 *
 * Return: 0, -ENOENT, -EBUSY, or what the device says.
 */
int rpost_destroy_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_destroy *cmd = &ucmd->cmd.destroy;

	if (cmd->type >= ARRAY_SIZE(rpost_types) ||
	    !rpost_types[array_index_nospec(cmd->type,
					    ARRAY_SIZE(rpost_types))].shutdown)
		return -EINVAL;
	return rpost_obj_destroy(ucmd->file, cmd->handle, cmd->type);
}

/**
 * rpost_file_destroy_all() - destroy every object of an open file
 * @file: the open file, with its rwsem held; no command is running on it any
 *        more, except fetches of events
 *
 * Return: true if no device has refused to give something up.
 */
bool rpost_file_destroy_all(struct rpost_file *file)
{
	enum rpost_obj_type type;
	struct rpost_obj *obj;
	bool again, all = true;
	u32 index;
	int i, ret;

	for (index = 0; (obj = rpost_obj_next(file, &index, RPOST_OBJ_QP));) {
		rpost_qp_stop_early(obj);
		rpost_obj_put(obj);
	}
	for (i = 0; i < ARRAY_SIZE(rpost_teardown_order); i++) {
		type = rpost_teardown_order[i];
		do {
			/*
			 * A fetch that was under way on an event channel may
			 * have published an id meanwhile.
			 */
			again = false;
			for (index = 0;
			     (obj = rpost_obj_next(file, &index, type));) {
				rpost_obj_put(obj);
				/* Only this destroys any more. */
				ret = rpost_obj_destroy(file, obj->handle, type);
				if (!ret) {
					again = true;
					continue;
				}
				rpost_obj_uncharge(obj);
				all = false;
				pr_warn_ratelimited("rdma_post: object of type %d not destroyed: %d\n",
						    type, ret);
			}
		} while (again && type == RPOST_OBJ_ID);
	}
	rpost_poller_stop(file);
	return all;
}

/**
 * rpost_file_shutdown_device() - shut down an open file's objects on a device
 * @file: the open file, with its rwsem held for writing
 * @dev: the device
 *
 * The objects stay, as shells that can only be destroyed.
 */
void rpost_file_shutdown_device(struct rpost_file *file,
				struct rpost_device *dev)
{
	enum rpost_obj_type type;
	struct rpost_obj *obj;
	u32 index;
	int i;

	for (index = 0; (obj = rpost_obj_next(file, &index, RPOST_OBJ_QP));) {
		if (obj->dev == dev)
			rpost_qp_stop_early(obj);
		rpost_obj_put(obj);
	}
	for (i = 0; i < ARRAY_SIZE(rpost_teardown_order); i++) {
		type = rpost_teardown_order[i];
		for (index = 0; (obj = rpost_obj_next(file, &index, type));) {
			/* cma tells ids about removal itself. */
			if (obj->dev == dev) {
				rpost_types[type].shutdown(obj);
				rpost_obj_uncharge(obj);
			}
			rpost_obj_put(obj);
		}
	}
}
