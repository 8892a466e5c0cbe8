// SPDX-License-Identifier: GPL-2.0
/*
 * The life of objects.  See struct rpost_obj.
 */
#include <linux/nospec.h>
#include <linux/slab.h>

#include "core/device.h"

/*
 * Charge the file's user for more memory of an object, until rpost_obj_give_bytes() or
 * rpost_obj_unreserve().  Return 0, or -ENOMEM at the user's limit.
 */
int rpost_obj_take_bytes(struct rpost_obj *obj, unsigned long bytes)
{
	int ret = rpost_charge(obj->file, bytes);

	if (!ret)
		obj->bytes += bytes;
	return ret;
}

void rpost_obj_give_bytes(struct rpost_obj *obj, unsigned long bytes)
{
	obj->bytes -= bytes;
	rpost_uncharge(obj->file, bytes);
}

/* Do as rpost_obj_reserve(), but for the handle; so there is no -EMFILE. */
int rpost_obj_reserve_inner(struct rpost_file *file, struct rpost_obj *obj,
			    enum rpost_obj_type type, struct rpost_device *dev)
{
	int ret;

	obj->file = file;
	obj->type = type;
	obj->dev = dev;

	ret = rpost_obj_take_bytes(obj, rpost_types[type].bytes);
	if (ret)
		return ret;
	if (dev) {
		ret = -ENOMEM;
		obj->context = rpost_context_get(file, dev);
		if (!obj->context)
			goto err_bytes;
		ret = rpost_obj_charge(obj);
		if (ret)
			goto err_context;
	}
	return 0;

err_context:
	rpost_context_put(obj->context);
err_bytes:
	rpost_uncharge(file, obj->bytes);
	return ret;
}

/*
 * Give an object without a handle one, by which it is found once it is published.
 * Return 0, -EMFILE, or -ENOMEM.
 */
int rpost_obj_take_handle(struct rpost_obj *obj, gfp_t gfp)
{
	struct rpost_file *file = obj->file;
	int ret;

	ret = rpost_handle_reserve(&file->handles, rpost_limit_objects(), gfp, &obj->slot);
	if (ret)
		return ret;
	obj->handle = obj->slot->handle;
	init_completion(&obj->unused);
	refcount_set(&obj->refs, 1);
	rpost_file_count(file, obj->type, 1);
	return 0;
}

/*
 * Reserve a handle that no lookup finds, for an object in zeroed memory, until
 * rpost_obj_unreserve().  The device that the object is on cannot be removed meanwhile;
 * NULL is for none.  gfp is RPOST_GFP; or RPOST_GFP_NOWAIT for an object on no device.
 * Return 0, -EMFILE at the file's limit, -EAGAIN at the rdma cgroup's, or -ENOMEM, also
 * at the user's.
 */
int rpost_obj_reserve(struct rpost_file *file, struct rpost_obj *obj,
		      enum rpost_obj_type type, struct rpost_device *dev, gfp_t gfp)
{
	int ret = rpost_obj_reserve_inner(file, obj, type, dev);

	if (ret)
		return ret;
	ret = rpost_obj_take_handle(obj, gfp);
	if (ret)
		rpost_obj_unreserve(obj);
	return ret;
}

/* Free the handle of a claimed object, which stays charged. */
void rpost_obj_give_handle(struct rpost_obj *obj)
{
	rpost_handle_unreserve(&obj->file->handles, obj->slot);
	obj->slot = NULL;
	rpost_file_count(obj->file, obj->type, -1);
}

/*
 * Free the handle, if it has one, of an object that no lookup finds, end its charges,
 * and drop its reference on its context.
 */
void rpost_obj_unreserve(struct rpost_obj *obj)
{
	rpost_obj_uncharge(obj);
	if (obj->slot)
		rpost_obj_give_handle(obj);
	rpost_uncharge(obj->file, obj->bytes);
	/* Last: it may hold the last reference on the file. */
	if (obj->context)
		rpost_context_put(obj->context);
}

/*
 * The object is complete; it is hidden, or the program knows it.  Unless hidden, it may
 * be gone when this returns: programs can guess handles.
 */
void rpost_obj_publish(struct rpost_obj *obj)
{
	WARN_ON_ONCE(rcu_access_pointer(obj->slot->obj));
	rcu_assign_pointer(obj->slot->obj, obj);
}

/* Call under RCU or with the lock of the handles held. */
static struct rpost_obj *rpost_obj_find(struct rpost_file *file, u32 handle,
					enum rpost_obj_type type)
{
	struct rpost_obj *obj = rpost_handle_find(&file->handles, handle);

	return obj && obj->handle == handle && obj->type == type &&
	       !READ_ONCE(obj->hidden) ? obj : NULL;
}

/*
 * Return the context that an object belongs to, with a reference, to be dropped by
 * rpost_context_put(); or NULL if there is no such object, or if it is on no device.
 */
struct rpost_context *rpost_obj_context(struct rpost_file *file, u32 handle,
					enum rpost_obj_type type)
{
	struct rpost_context *context = NULL;
	struct rpost_obj *obj;

	spin_lock(&file->handles.lock);
	obj = rpost_obj_find(file, handle, type);
	/* An object that is found has a reference on its context. */
	if (obj && obj->context) {
		context = obj->context;
		kref_get(&context->kref);
	}
	spin_unlock(&file->handles.lock);
	return context;
}

/* Return the object with a reference, to be dropped by rpost_obj_put(), or NULL. */
struct rpost_obj *rpost_obj_get(struct rpost_file *file, u32 handle, enum rpost_obj_type type)
{
	struct rpost_obj *obj;

	rcu_read_lock();
	obj = rpost_obj_find(file, handle, type);
	if (obj && !refcount_inc_not_zero(&obj->refs))
		obj = NULL;
	rcu_read_unlock();
	return obj;
}

/*
 * Return the next object of a type, or of any if that is RPOST_NUM_OBJ_TYPES, with a
 * reference, to be dropped by rpost_obj_put(); or NULL.  Before, index is 0, or where the
 * last call ended; after, where this one ended.  Hidden objects are returned, too.  Objects
 * that come or go meanwhile may be missed.
 */
struct rpost_obj *rpost_obj_next(struct rpost_file *file, u32 *index, enum rpost_obj_type type)
{
	struct rpost_obj *obj;

	rcu_read_lock();
	do {
		obj = rpost_handle_next(&file->handles, index);
	} while (obj && ((obj->type != type && type != RPOST_NUM_OBJ_TYPES) ||
			 !refcount_inc_not_zero(&obj->refs)));
	rcu_read_unlock();
	return obj;
}

void rpost_obj_put(struct rpost_obj *obj)
{
	if (refcount_dec_and_test(&obj->refs))
		complete(&obj->unused);
}

/*
 * Let another object depend on an object.  Return it, and it stays until
 * rpost_obj_unuse(); or return NULL.
 */
struct rpost_obj *rpost_obj_use(struct rpost_file *file, u32 handle, enum rpost_obj_type type)
{
	struct rpost_obj *obj;

	spin_lock(&file->handles.lock);
	obj = rpost_obj_find(file, handle, type);
	if (obj)
		obj->users++;
	spin_unlock(&file->handles.lock);
	return obj;
}

void rpost_obj_unuse(struct rpost_obj *obj)
{
	spin_lock(&obj->file->handles.lock);
	obj->users--;
	spin_unlock(&obj->file->handles.lock);
}

/*
 * Keep the device of an object from being removed, and look the object up.  Its type is
 * one of those on devices, and the command holds no reference on an object yet, as for
 * rpost_enter_object().  Return the object with a reference, to be dropped by
 * rpost_obj_put(), or ERR_PTR() of -ENOENT or -EINTR.
 */
struct rpost_obj *rpost_enter_get(struct rpost_ucmd *ucmd, u32 handle, enum rpost_obj_type type)
{
	int ret = rpost_enter_object(ucmd, handle, type);
	struct rpost_obj *obj;

	if (ret)
		return ERR_PTR(ret);
	obj = rpost_obj_get(ucmd->file, handle, type);
	if (obj && obj->context != ucmd->context) {
		rpost_obj_put(obj);
		obj = NULL;
	}
	return obj ? : ERR_PTR(-ENOENT);
}

/*
 * Keep the device of an object from being removed, and depend on the object.  The same
 * must hold as for rpost_enter_get().  Return the object, which stays until
 * rpost_obj_unuse(), or ERR_PTR() of -ENOENT or -EINTR.
 */
struct rpost_obj *rpost_enter_use(struct rpost_ucmd *ucmd, u32 handle, enum rpost_obj_type type)
{
	int ret = rpost_enter_object(ucmd, handle, type);
	struct rpost_obj *obj;

	if (ret)
		return ERR_PTR(ret);
	obj = rpost_obj_use(ucmd->file, handle, type);
	if (obj && obj->context != ucmd->context) {
		rpost_obj_unuse(obj);
		obj = NULL;
	}
	return obj ? : ERR_PTR(-ENOENT);
}

/* Wait until no command uses an object that lookups no longer find. */
static void rpost_obj_wait_unused(struct rpost_obj *obj)
{
	if (!refcount_dec_and_test(&obj->refs))
		wait_for_completion(&obj->unused);
}

/*
 * Take an object of @context out of the table, so that only the caller has it.
 * Its handle stays reserved.
 */
static struct rpost_obj *rpost_obj_claim(struct rpost_file *file, u32 handle,
					 enum rpost_obj_type type,
					 const struct rpost_context *context)
{
	struct rpost_obj *obj;

	spin_lock(&file->handles.lock);
	obj = rpost_obj_find(file, handle, type);
	if (!obj || obj->context != context)
		obj = ERR_PTR(-ENOENT);
	else if (obj->users)
		obj = ERR_PTR(-EBUSY);
	else
		RCU_INIT_POINTER(obj->slot->obj, NULL);
	spin_unlock(&file->handles.lock);
	if (!IS_ERR(obj))
		rpost_obj_wait_unused(obj);
	return obj;
}

/*
 * Destroy a claimed object, with its context's rwsem held.  After an error it
 * is still there.
 */
static int rpost_obj_end(struct rpost_obj *obj)
{
	const struct rpost_type *type = &rpost_types[obj->type];
	int ret;

	/* Removal finds the object in the table, or waits for its shutdown. */
	if (obj->context)
		lockdep_assert_held(&obj->context->rwsem);

	obj->ending = true;
	ret = type->shutdown(obj);
	if (ret) {
		obj->ending = false;
		return ret;
	}
	if (type->events)
		rpost_async_forget(obj->dev, obj);
	rpost_obj_unreserve(obj);
	type->free(obj);
	return 0;
}

/* The device refused to destroy the object: let lookups find it again. */
static void rpost_obj_unclaim(struct rpost_obj *obj)
{
	reinit_completion(&obj->unused);
	refcount_set(&obj->refs, 1);
	rpost_obj_publish(obj);
}

/* Call with the rwsem of @context held; NULL is for objects on no device. */
static int rpost_obj_destroy(struct rpost_file *file, u32 handle,
			     enum rpost_obj_type type,
			     const struct rpost_context *context)
{
	struct rpost_obj *obj = rpost_obj_claim(file, handle, type, context);
	int ret;

	if (IS_ERR(obj))
		return PTR_ERR(obj);
	if (rpost_types[obj->type].keep && rpost_types[obj->type].keep(obj))
		return 0;
	ret = rpost_obj_end(obj);
	if (ret)
		rpost_obj_unclaim(obj);
	return ret;
}

/*
 * Do as rpost_obj_destroy(), for the last close: this takes the context's rwsem, and
 * unlike a command cannot be killed while it waits.
 */
static int rpost_obj_destroy_last(struct rpost_file *file, u32 handle, enum rpost_obj_type type)
{
	struct rpost_context *context = rpost_obj_context(file, handle, type);
	int ret;

	if (context)
		down_read(&context->rwsem);
	ret = rpost_obj_destroy(file, handle, type, context);
	if (context) {
		up_read(&context->rwsem);
		rpost_context_put(context);
	}
	return ret;
}

/* Destroy a hidden object that the program could not be told of. */
static void rpost_obj_abort(struct rpost_obj *obj)
{
	struct rpost_context *context = obj->context;
	struct rpost_file *file = obj->file;

	kref_get(&context->kref);
	down_read(&context->rwsem);
	spin_lock(&file->handles.lock);
	RCU_INIT_POINTER(obj->slot->obj, NULL);
	spin_unlock(&file->handles.lock);
	rpost_obj_wait_unused(obj);
	if (rpost_types[obj->type].abort) {
		rpost_types[obj->type].abort(obj);
	} else if (rpost_obj_end(obj)) {
		/* The last close ends it, if the program does not. */
		WRITE_ONCE(obj->hidden, false);
		rpost_obj_unclaim(obj);
	}
	up_read(&context->rwsem);
	rpost_context_put(context);
}

/*
 * Tell the program of a new object, which is complete, and publish it.  The rwsem of its
 * context is held by the command, which leaves the device here.
 *
 * The command may wait for the program's memory for ever; meanwhile only removal of the
 * device finds the object.
 *
 * Return 0; or -EFAULT, and the object is destroyed, unless the device refuses: then it
 * is left to its domain, if it is a region, or to the last close.
 */
int rpost_obj_answer(struct rpost_ucmd *ucmd, struct rpost_obj *obj)
{
	int ret;

	lockdep_assert_held(&obj->context->rwsem);

	obj->hidden = true;
	rpost_obj_publish(obj);
	/* A GID may have gone before rpost_file_recheck() could find the object. */
	if (rpost_types[obj->type].recheck)
		rpost_types[obj->type].recheck(obj);
	ret = rpost_respond(ucmd);
	if (ret)
		rpost_obj_abort(obj);
	else
		WRITE_ONCE(obj->hidden, false);
	return ret;
}

/* Return 0, -EINVAL, -ENOENT, -EBUSY, -EINTR, or the driver's errno. */
int rpost_destroy_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_destroy *cmd = &ucmd->cmd.destroy;
	int ret;

	if (cmd->type >= RPOST_NUM_OBJ_TYPES ||
	    !rpost_types[array_index_nospec(cmd->type, RPOST_NUM_OBJ_TYPES)].shutdown)
		return -EINVAL;
	/* Ids are on no device. */
	if (cmd->type != RPOST_OBJ_ID) {
		ret = rpost_enter_object(ucmd, cmd->handle, cmd->type);
		if (ret)
			return ret;
	}
	return rpost_obj_destroy(ucmd->file, cmd->handle, cmd->type, ucmd->context);
}

/* Stop objects that will be shut down: those on @dev, or all if it is NULL. */
static void rpost_file_stop(struct rpost_file *file, const struct rpost_device *dev)
{
	enum rpost_obj_type type;
	struct rpost_obj *obj;
	u32 index;

	for (type = 0; type < RPOST_NUM_OBJ_TYPES; type++) {
		if (!rpost_types[type].stop)
			continue;
		for (index = 0; (obj = rpost_obj_next(file, &index, type));) {
			if (!dev || obj->dev == dev)
				rpost_types[type].stop(obj);
			rpost_obj_put(obj);
		}
	}
}

/*
 * No command runs on the file any more but fetches of events.  Return true if no device
 * has refused to destroy something.
 */
bool rpost_file_destroy_all(struct rpost_file *file)
{
	enum rpost_obj_type type;
	struct rpost_obj *obj;
	bool again, all = true;
	u32 index;
	int i, ret;

	rpost_file_stop(file, NULL);
	for (i = 0; i < ARRAY_SIZE(rpost_teardown_order); i++) {
		type = rpost_teardown_order[i];
		do {
			/* A fetch may have published an id meanwhile. */
			again = false;
			for (index = 0; (obj = rpost_obj_next(file, &index, type));) {
				rpost_obj_put(obj);
				/* Nothing else destroys objects any more. */
				ret = rpost_obj_destroy_last(file, obj->handle, type);
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
	return all;
}

/* The rwsem of the file's context on the device is held. */
void rpost_file_recheck(struct rpost_file *file, struct rpost_device *dev)
{
	struct rpost_obj *obj;
	u32 index = 0;

	while (rpost_device_alive(dev) &&
	       (obj = rpost_obj_next(file, &index, RPOST_NUM_OBJ_TYPES))) {
		if (obj->dev == dev && rpost_types[obj->type].recheck)
			rpost_types[obj->type].recheck(obj);
		rpost_obj_put(obj);
		cond_resched();
	}
}

/*
 * The rwsem of the file's context on the device is held for writing.  The objects stay,
 * but can only be destroyed.
 */
void rpost_file_shutdown_device(struct rpost_file *file, struct rpost_device *dev)
{
	enum rpost_obj_type type;
	struct rpost_obj *obj;
	u32 index;
	int i;

	rpost_file_stop(file, dev);
	for (i = 0; i < ARRAY_SIZE(rpost_teardown_order); i++) {
		type = rpost_teardown_order[i];
		for (index = 0; (obj = rpost_obj_next(file, &index, type));) {
			/* Ids are told later: id/route.c, cma. */
			if (obj->dev == dev) {
				rpost_types[type].shutdown(obj);
				rpost_obj_uncharge(obj);
			}
			rpost_obj_put(obj);
		}
	}
}
