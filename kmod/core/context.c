// SPDX-License-Identifier: GPL-2.0
/*
 * Contexts, and the removal of devices.  See struct rpost_context.
 */
#include <linux/slab.h>

#include "core/device.h"

static void rpost_context_free(struct kref *kref)
{
	struct rpost_context *context = container_of(kref, struct rpost_context, kref);
	struct rpost_device *dev = context->dev;
	struct rpost_file *file = context->file;

	list_del(&context->link);
	mutex_lock(&dev->contexts_lock);
	list_del(&context->dev_link);
	mutex_unlock(&dev->contexts_lock);
	mutex_unlock(&file->charge_lock);
	rpost_device_put(dev);
	rpost_file_put(file);
	kfree(context);
}

void rpost_context_put(struct rpost_context *context)
{
	struct rpost_file *file = context->file;

	kref_put_mutex(&context->kref, rpost_context_free, &file->charge_lock);
}

/* End the paths that have lost their GID, see rpost_type.recheck. */
static void rpost_context_recheck(struct work_struct *work)
{
	struct rpost_context *context = container_of(to_delayed_work(work),
						     struct rpost_context, recheck_work);
	struct rpost_device *dev = context->dev;
	struct rpost_file *file = context->file;

	mutex_lock(&dev->contexts_lock);
	context->recheck = false;
	mutex_unlock(&dev->contexts_lock);

	down_read(&context->rwsem);
	if (rpost_device_alive(dev))
		rpost_file_recheck(file, dev);
	up_read(&context->rwsem);

	/* For rpost_context_put(), which unlocks a mutex of the file's. */
	kref_get(&file->kref);
	rpost_context_put(context);
	rpost_file_put(file);
}

static struct rpost_context *rpost_context_new(struct rpost_file *file, struct rpost_device *dev)
{
	struct rpost_context *context = kzalloc(sizeof(*context), RPOST_GFP);

	if (!context)
		return NULL;
	kref_init(&context->kref);
	kref_get(&file->kref);
	context->file = file;
	kref_get(&dev->kref);
	context->dev = dev;
	init_rwsem(&context->rwsem);
	INIT_DELAYED_WORK(&context->recheck_work, rpost_context_recheck);
	list_add(&context->link, &file->contexts);
	mutex_lock(&dev->contexts_lock);
	list_add(&context->dev_link, &dev->contexts);
	mutex_unlock(&dev->contexts_lock);
	return context;
}

/* Find or create a context.  Return it with a reference, or NULL without memory. */
struct rpost_context *rpost_context_get(struct rpost_file *file, struct rpost_device *dev)
{
	struct rpost_context *context;

	mutex_lock(&file->charge_lock);
	list_for_each_entry(context, &file->contexts, link) {
		if (context->dev == dev) {
			kref_get(&context->kref);
			goto out;
		}
	}
	context = rpost_context_new(file, dev);
out:
	mutex_unlock(&file->charge_lock);
	return context;
}

/* Lock the context for the command, which takes over the caller's reference. */
static int rpost_ucmd_lock(struct rpost_ucmd *ucmd, struct rpost_context *context)
{
	if (down_read_killable(&context->rwsem)) {
		rpost_context_put(context);
		return -EINTR;
	}
	ucmd->context = context;
	return 0;
}

/*
 * Keep a device from being removed: the command holds the context, and so the device,
 * until rpost_leave_device().  Return the device, or ERR_PTR() of -ENODEV, -ENOMEM or
 * -EINTR.
 */
struct rpost_device *rpost_enter_device(struct rpost_ucmd *ucmd, u32 id)
{
	struct rpost_device *dev = rpost_device_find(ucmd->file, id);
	struct rpost_context *context;
	int ret = -ENOMEM;

	if (IS_ERR(dev))
		return dev;
	context = rpost_context_get(ucmd->file, dev);
	if (context)
		ret = rpost_ucmd_lock(ucmd, context);
	if (!ret && !rpost_device_alive(dev))
		ret = -ENODEV;
	rpost_device_unfind(dev);
	return ret ? ERR_PTR(ret) : dev;
}

/*
 * Keep an object's device from being removed, until rpost_leave_device().  The command
 * must not hold a reference on an object yet.  type is one of those on devices.
 *
 * The device may have been removed already.  While the command waits for the lock, the
 * object may be destroyed, and the handle may be given to an object on another device.
 * So only rpost_enter_get(), rpost_enter_use() and DESTROY, which compare its context
 * with that of the command, look the handle up after this.
 *
 * Return 0, -ENOENT or -EINTR.
 */
int rpost_enter_object(struct rpost_ucmd *ucmd, u32 handle, enum rpost_obj_type type)
{
	struct rpost_context *context = rpost_obj_context(ucmd->file, handle, type);

	return context ? rpost_ucmd_lock(ucmd, context) : -ENOENT;
}

/*
 * Let the command's device, if it has one, be removed.  A command calls this before it
 * touches the program's memory, and each ends with it.
 */
void rpost_leave_device(struct rpost_ucmd *ucmd)
{
	struct rpost_context *context = ucmd->context;

	if (!context)
		return;
	ucmd->context = NULL;
	up_read(&context->rwsem);
	rpost_context_put(context);
}

/* Return a referenced context that this round has not tried, or NULL. */
static struct rpost_context *rpost_context_next(struct rpost_device *dev, unsigned int round)
{
	struct rpost_context *context;

	mutex_lock(&dev->contexts_lock);
	list_for_each_entry(context, &dev->contexts, dev_link) {
		if (context->tried < round &&
		    kref_get_unless_zero(&context->kref)) {
			context->tried = round;
			/* Untried contexts stay in front for the next call. */
			list_move_tail(&context->dev_link, &dev->contexts);
			mutex_unlock(&dev->contexts_lock);
			return context;
		}
	}
	mutex_unlock(&dev->contexts_lock);
	return NULL;
}

static void rpost_context_device_gone(struct rpost_context *context, bool wait)
{
	if (wait)
		down_write(&context->rwsem);
	else if (!down_write_trylock(&context->rwsem))
		return;
	context->tried = 2;
	rpost_file_shutdown_device(context->file, context->dev);
	up_write(&context->rwsem);
	rpost_file_retry_end(context->file);
}

/*
 * Shut down every object on a device, which is dead: nothing new is created on it.  Round
 * one takes the contexts whose rwsem is free, round two the others.
 */
void rpost_contexts_device_gone(struct rpost_device *dev)
{
	struct rpost_context *context;
	struct rpost_file *file;
	unsigned int round;

	for (round = 1; round <= 2; round++) {
		while ((context = rpost_context_next(dev, round))) {
			file = context->file;
			/* It has a reference, and this is not the last one. */
			if (cancel_delayed_work(&context->recheck_work))
				rpost_context_put(context);
			/* For rpost_context_put(), which unlocks a mutex of the file's. */
			kref_get(&file->kref);
			rpost_context_device_gone(context, round == 2);
			rpost_context_put(context);
			rpost_file_put(file);
		}
	}
}

/* Addresses that go and come again at once, as when a bond fails over, harm no path. */
#define RPOST_RECHECK_DELAY	(HZ / 10)

/*
 * A GID of the device has gone, or is in another namespace.  Each context has work of its
 * own, so that no program waits for another's locks.  The caller may hold the core's lock
 * of the GIDs.
 */
void rpost_contexts_recheck(struct rpost_device *dev)
{
	struct rpost_context *context;

	mutex_lock(&dev->contexts_lock);
	list_for_each_entry(context, &dev->contexts, dev_link) {
		if (context->recheck || !kref_get_unless_zero(&context->kref))
			continue;
		context->recheck = true;
		queue_delayed_work(rpost_wq, &context->recheck_work, RPOST_RECHECK_DELAY);
	}
	mutex_unlock(&dev->contexts_lock);
}
