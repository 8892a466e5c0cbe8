// SPDX-License-Identifier: GPL-2.0
/*
 * Limits of an open file that no cgroup enforces.  Drivers do not charge the
 * queues that a device reads to anyone, so their entries are limited here for
 * each open file.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "base/base.h"

static unsigned int max_objects = 65536;
module_param(max_objects, uint, 0644);
MODULE_PARM_DESC(max_objects,
		 "Objects that one open of the device may have (65536)");

static unsigned int max_wr = 1048576;
module_param(max_wr, uint, 0644);
MODULE_PARM_DESC(max_wr,
		 "Work requests that the queues of one open may hold together (1048576)");

static unsigned int max_cqe = 4194304;
module_param(max_cqe, uint, 0644);
MODULE_PARM_DESC(max_cqe,
		 "Completions that the device's queues of one open may hold together (4194304)");

/*
 * Like kvmalloc() with RPOST_GFP, but it does not try hard to find contiguous pages where
 * others will do.  zero is 0 or __GFP_ZERO.  Return the memory, to be freed by kvfree(),
 * or NULL.
 */
void *rpost_kvmalloc(size_t bytes, gfp_t zero)
{
	gfp_t gfp = RPOST_GFP;
	void *mem = NULL;

	if (bytes > PAGE_SIZE)
		gfp = (gfp & ~__GFP_RETRY_MAYFAIL) | __GFP_NORETRY;
	if (bytes <= KMALLOC_MAX_SIZE)
		mem = kmalloc(bytes, gfp | zero);
	if (!mem && bytes > PAGE_SIZE)
		mem = __vmalloc(bytes, RPOST_GFP | zero);
	return mem;
}

static int rpost_limit_take(struct rpost_file *file, atomic_long_t *used, u32 n,
			    unsigned int limit, unsigned long bytes)
{
	long now = atomic_long_read(used);
	int ret;

	do {
		if (n > limit || now > (long)(limit - n))
			return -EMFILE;
	} while (!atomic_long_try_cmpxchg(used, &now, now + n));
	ret = rpost_charge(file, bytes);
	if (ret)
		atomic_long_sub(n, used);
	return ret;
}

/* The administrator can change the limits. */
unsigned int rpost_limit_objects(void)
{
	return READ_ONCE(max_objects);
}

unsigned int rpost_limit_wr(void)
{
	return READ_ONCE(max_wr);
}

unsigned int rpost_limit_cqe(void)
{
	return READ_ONCE(max_cqe);
}

/*
 * Charge for the n work requests of a new queue.  bytes is the estimated size of the
 * device's queues.  Return 0, -EMFILE at the limit, or -ENOMEM at the user's.
 */
int rpost_limit_take_wr(struct rpost_file *file, u32 n, unsigned long bytes)
{
	return rpost_limit_take(file, &file->num_wr, n, rpost_limit_wr(), bytes);
}

/* Undo rpost_limit_take_wr() with the same n and bytes. */
void rpost_limit_give_wr(struct rpost_file *file, u32 n, unsigned long bytes)
{
	rpost_uncharge(file, bytes);
	atomic_long_sub(n, &file->num_wr);
}

/*
 * Charge for the n entries of a device completion queue.  Return 0, -EMFILE at the limit,
 * or -ENOMEM at the user's.
 */
int rpost_limit_take_cqe(struct rpost_file *file, u32 n)
{
	return rpost_limit_take(file, &file->num_cqe, n, rpost_limit_cqe(),
				rpost_device_cq_bytes(n));
}

/* Undo rpost_limit_take_cqe() with the same n. */
void rpost_limit_give_cqe(struct rpost_file *file, u32 n)
{
	rpost_uncharge(file, rpost_device_cq_bytes(n));
	atomic_long_sub(n, &file->num_cqe);
}
