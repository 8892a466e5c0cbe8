// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of work requests that no program has registered: entries with the lkey
 * 0, on queue pairs with RPOST_QP_ANY_MEMORY.
 *
 * Short sends are copied.  For the others the module finds or registers a
 * region, whose key then takes the place of the 0.
 *
 * A post holds a reference on its queue pair, with which nobody may wait for
 * pages of the program or enter the device (struct rpost_context).  So a work
 * request whose memory is not there ends the post with RPOST_NEEDS_MEMORY.
 * rpost_memory_get() is called without a reference, and makes the pages
 * present, then enters the device and registers them.  The next attempt to post
 * the work request takes the uses over.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/inject.h"
#include "compat/compat.h"
#include "memory/cache.h"
#include "post/post.h"

/* Return the bytes of all entries, or a negative errno. */
static s64 rpost_memory_bytes(const struct rpost_sge *sges, u32 num)
{
	s64 bytes = 0;
	u32 i;

	for (i = 0; i < num; i++)
		bytes += sges[i].length;
	return bytes <= RPOST_MAX_MSG ? bytes : -EINVAL;
}

static bool rpost_sge_needs(const struct rpost_sge *sge)
{
	return sge->length && !sge->lkey;
}

/*
 * Are the regions that a work request has waited for in the domain of its queue pair?  Since
 * rpost_memory_get() its handle may be that of another, and a key may stand for anything there.
 */
static bool rpost_memory_fits(const struct rpost_memory *memory, const struct rpost_pd *pd)
{
	u32 i;

	for (i = 0; i < memory->uses.num; i++) {
		if (!rpost_cache_has(pd, rpost_uses_at(&memory->uses, i)))
			return false;
	}
	return !rpost_inject(RPOST_INJECT_DOMAIN);
}

/*
 * Find regions for the entries with the lkey 0; the entries stay as they are.
 * @check gets the uses, in the order of these entries; after an error the caller drops
 * them.  Return 0; RPOST_NEEDS_MEMORY if a region has to be registered first; or a
 * negative errno.
 */
int rpost_memory_find(const struct rpost_check *check, struct rpost_sge *sges, u32 num)
{
	struct rpost_memory *memory = check->memory;
	struct rpost_mr *mr;
	u32 i;
	int ret;

	if (memory->uses.num && rpost_memory_fits(memory, check->pd)) {
		*check->uses = memory->uses;
		memory->uses.num = 0;
		return 0;
	}
	rpost_uses_drop(&memory->uses);
	if (rpost_memory_bytes(sges, num) < 0)
		return -EINVAL;
	for (i = 0; i < num; i++) {
		if (!rpost_sge_needs(&sges[i]))
			continue;
		mr = NULL;
		/* A range that wraps is refused later. */
		if (sges[i].addr <= ULONG_MAX - sges[i].length)
			mr = rpost_cache_find(check->pd, sges[i].addr,
					      sges[i].length, check->access);
		if (!mr) {
			memory->sges = sges;
			memory->num = num;
			memory->access = check->access;
			return RPOST_NEEDS_MEMORY;
		}
		ret = rpost_uses_add(check->uses, mr);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Can the data of a send be copied?  Return the bytes of all entries, if they all
 * have the lkey 0 and are not more than @max; or 0.
 */
u32 rpost_memory_short(const struct rpost_sge *sges, u32 num, u32 max)
{
	s64 bytes = rpost_memory_bytes(sges, num);
	u32 i;

	for (i = 0; i < num; i++) {
		if (sges[i].length && sges[i].lkey)
			return 0;
	}
	return bytes > 0 && bytes <= max ? bytes : 0;
}

/*
 * Copy the data of a short send, whose entries all have the lkey 0 and together have
 * @bytes bytes.  rpost_fill_send() or rpost_drop_sends() frees the copy.  Return 0;
 * -ENOBUFS; or -EFAULT if it would have to wait for a page.
 */
int rpost_memory_copy(struct rpost_swr *swr, const struct rpost_sge *sges, u32 num, u32 bytes)
{
	void *data = kmalloc(bytes, RPOST_GFP);
	u32 i, done = 0;

	if (!data)
		return -ENOBUFS;
	for (i = 0; i < num; i++) {
		if (sges[i].addr > ULONG_MAX ||
		    copy_from_user_nofault(data + done,
					   u64_to_user_ptr(sges[i].addr),
					   sges[i].length)) {
			kfree(data);
			return -EFAULT;
		}
		done += sges[i].length;
	}
	swr->data = data;
	swr->copied = true;
	return 0;
}

/* Make the memory of an entry present, look at it, and follow it. */
static int rpost_memory_pin(struct rpost_file *file, const struct rpost_sge *sge,
			    u32 access, struct rpost_pin *pin)
{
	const struct rpost_reg_mr cmd = {
		.addr = sge->addr,
		.iova = sge->addr,
		.length = sge->length,
		.access = access,
	};
	int ret = rpost_mr_validate(&cmd);

	if (ret)
		return ret;
	ret = rpost_mr_fault_in(&cmd);
	if (ret)
		return ret;
	pin->watch = rpost_cache_watch(file, sge->addr, sge->length);
	/*
	 * Before 6.2 the driver pins by force.  The watch sees a change of the rights from
	 * here on, so look now whether the program may read.
	 */
	if (rpost_compat_gup_flags(access) & FOLL_FORCE) {
		ret = rpost_mr_touch(sge->addr, sge->length, 0);
		if (ret)
			return ret;
	}
	return rpost_pin_begin(pin, file, sge->addr, sge->length, access);
}

/* Get a use for each entry with the lkey 0, or none. */
static int rpost_memory_register(struct rpost_pd *pd, struct rpost_memory *memory,
				 struct rpost_pin *pins)
{
	const struct rpost_sge *sge = memory->sges;
	struct rpost_mr *mr;
	int ret = 0;
	u32 i;

	for (i = 0; i < memory->num && !ret; i++, sge++) {
		if (!rpost_sge_needs(sge))
			continue;
		mr = rpost_cache_get(pd, sge->addr, sge->length, memory->access, &pins[i]);
		if (IS_ERR(mr))
			ret = PTR_ERR(mr);
		else
			ret = rpost_uses_add(&memory->uses, mr);
	}
	if (ret)
		rpost_uses_drop(&memory->uses);
	return ret;
}

/* Get uses of all entries with the lkey 0, or return a negative errno. */
static int rpost_memory_enter(struct rpost_file *file, u32 handle, struct rpost_memory *memory,
			      struct rpost_pin *pins)
{
	struct rpost_ucmd ucmd rpost_uninitialized;
	struct rpost_qp *qp;
	int ret;

	ucmd.file = file;
	ucmd.context = NULL;
	qp = rpost_qp_enter_get(&ucmd, handle);
	ret = PTR_ERR_OR_ZERO(qp);
	if (!ret) {
		ret = -ENODEV;
		if (rpost_device_alive(qp->obj.dev))
			ret = rpost_memory_register(qp->pd, memory, pins);
		rpost_obj_put(&qp->obj);
	}
	/* It has been entered even if it has no such queue pair any more. */
	rpost_leave_device(&ucmd);
	return ret;
}

static int rpost_memory_try(struct rpost_file *file, u32 qp, struct rpost_memory *memory)
{
	const struct rpost_sge *sges = memory->sges;
	struct rpost_pin *pins;
	int ret = 0;
	u32 i;

	pins = kcalloc(memory->num, sizeof(*pins), RPOST_GFP);
	if (!pins)
		return -ENOMEM;
	for (i = 0; i < memory->num && !ret; i++) {
		if (rpost_sge_needs(&sges[i]))
			ret = rpost_memory_pin(file, &sges[i], memory->access, &pins[i]);
	}
	if (!ret)
		ret = rpost_memory_enter(file, qp, memory, pins);
	for (i = 0; i < memory->num; i++)
		rpost_pin_end(&pins[i]);
	kfree(pins);
	return ret;
}

/*
 * Register the memory that a work request waits for.  The post is to the queue pair
 * that has the handle qp, on which it has no reference.  @memory gets uses for all entries with
 * the lkey 0.  Return 0; or a negative errno, without uses, but never -ENOMEM or -EAGAIN.
 */
int rpost_memory_get(struct rpost_file *file, u32 qp, struct rpost_memory *memory)
{
	struct rpost_user *user = file->user;
	long refused = atomic_long_read(&user->refused);
	int ret = rpost_memory_try(file, qp, memory);

	if ((ret == -ENOMEM || ret == -EAGAIN) && rpost_cache_give_back(user, ret, refused))
		ret = rpost_memory_try(file, qp, memory);
	/* ENOMEM would mean a full queue. */
	return ret == -ENOMEM || ret == -EAGAIN ? -ENOBUFS : ret;
}
