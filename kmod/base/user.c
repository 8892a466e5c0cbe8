// SPDX-License-Identifier: GPL-2.0
/*
 * Counts the bytes that the module and the drivers allocate for each user, and
 * keeps them below the administrator's limit.  See struct rpost_user.
 *
 * The drivers' part is estimated, since the RDMA core does not report it.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/debugfs.h>
#include <linux/hashtable.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "base/base.h"
#include "base/inject.h"

static unsigned long max_user_bytes;
module_param(max_user_bytes, ulong, 0644);
MODULE_PARM_DESC(max_user_bytes,
		 "Bytes that one user can make the module and devices allocate (an eighth of the memory)");

/* rpost_user_init() sets it. */
static void (*rpost_kept_init)(struct rpost_kept *kept);

static DEFINE_SPINLOCK(rpost_users_lock);
static DEFINE_HASHTABLE(rpost_users, 6);

/*
 * Return a task's user id in the initial user namespace; for a task in another,
 * the owner of the outermost namespace below the initial one.
 */
static kuid_t rpost_user_uid(const struct cred *cred)
{
	const struct user_namespace *ns = cred->user_ns;

	if (ns == &init_user_ns)
		return cred->uid;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return ns->owner;
}

/*
 * Return the task's user with a reference, for rpost_user_put(), or NULL without
 * memory.
 */
struct rpost_user *rpost_user_get(void)
{
	bool exempt = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	kuid_t uid = rpost_user_uid(current_cred());
	struct rpost_user *user, *found;

	user = kzalloc(sizeof(*user), RPOST_GFP);
	if (!user)
		return NULL;
	user->uid = uid;
	user->exempt = exempt;
	user->refs = 1;
	rpost_kept_init(&user->kept);
	mutex_init(&user->pin_lock);
	hash_init(user->pinners);
	spin_lock(&rpost_users_lock);
	hash_for_each_possible(rpost_users, found, node, __kuid_val(uid)) {
		if (uid_eq(found->uid, uid) && found->exempt == exempt)
			break;
	}
	if (found)
		found->refs++;
	else
		hash_add(rpost_users, &user->node, __kuid_val(uid));
	spin_unlock(&rpost_users_lock);
	if (!found)
		return user;
	kfree(user);
	return found;
}

void rpost_user_put(struct rpost_user *user)
{
	bool last;

	spin_lock(&rpost_users_lock);
	last = !--user->refs;
	if (last)
		hash_del(&user->node);
	spin_unlock(&rpost_users_lock);
	if (!last)
		return;
	WARN_ON_ONCE(atomic_long_read(&user->bytes) || user->pages);
	/* The user has no domain any more. */
	cancel_work_sync(&user->kept.reap);
	kfree(user);
}

/* Return the bytes that a user may be charged, LONG_MAX at most. */
unsigned long rpost_user_limit(void)
{
	return min_t(unsigned long, READ_ONCE(max_user_bytes), LONG_MAX);
}

/*
 * Charge the user of @file for memory that is about to be allocated, until
 * rpost_uncharge() with the same bytes.  Return 0; or -ENOMEM at the user's limit,
 * with nothing charged.
 */
int rpost_charge(struct rpost_file *file, unsigned long bytes)
{
	struct rpost_user *user = file->user;
	unsigned long limit = user->exempt ? LONG_MAX : rpost_user_limit();
	long now = atomic_long_read(&user->bytes);

	if (rpost_inject(RPOST_INJECT_CHARGE))
		return -ENOMEM;
	do {
		/* @now is not negative. */
		if (bytes > limit || now > limit - bytes) {
			atomic_long_inc(&user->refused);
			return -ENOMEM;
		}
	} while (!atomic_long_try_cmpxchg(&user->bytes, &now, now + bytes));
	atomic_long_add(bytes, &file->bytes);
	return 0;
}

void rpost_uncharge(struct rpost_file *file, unsigned long bytes)
{
	WARN_ON_ONCE(atomic_long_sub_return(bytes, &file->bytes) < 0);
	WARN_ON_ONCE(atomic_long_sub_return(bytes, &file->user->bytes) < 0);
}

/*
 * Return zeroed memory, for which the user of @file is charged @bytes, until
 * rpost_charged_free(); or NULL without memory or at the user's limit.
 */
void *rpost_charged_zalloc(struct rpost_file *file, size_t size, unsigned long bytes)
{
	void *mem;

	if (rpost_charge(file, bytes))
		return NULL;
	mem = kzalloc(size, RPOST_GFP);
	if (!mem)
		rpost_uncharge(file, bytes);
	return mem;
}

/* Free memory of rpost_charged_zalloc(), with the same @bytes. */
void rpost_charged_free(struct rpost_file *file, void *mem, unsigned long bytes)
{
	kfree(mem);
	rpost_uncharge(file, bytes);
}

static unsigned long rpost_device_bytes(u32 entries, unsigned long bytes)
{
	/* Some devices never use one of the entries. */
	return roundup_pow_of_two(entries + 1ul) * roundup_pow_of_two(bytes);
}

/*
 * Estimate the bytes of a device's send queue that is asked to have room for
 * @entries work requests, with @sges scatter/gather entries in each.
 *
 * rxe's struct rxe_send_wqe has less than 192 bytes.  mlx5's work requests are
 * shorter, and its driver adds 40 bytes for each block of 64 bytes.
 */
unsigned long rpost_device_sq_bytes(u32 entries, u32 sges)
{
	return rpost_device_bytes(entries, 256 + sges * sizeof(struct ib_sge));
}

/* Estimate the bytes of a receive queue with room for @entries of @sges each. */
unsigned long rpost_device_rq_bytes(u32 entries, u32 sges)
{
	return rpost_device_bytes(entries, 64 + sges * sizeof(struct ib_sge));
}

/* Estimate the bytes of a completion queue with room for @entries completions. */
unsigned long rpost_device_cq_bytes(u32 entries)
{
	return SZ_4K + rpost_device_bytes(entries, 128);
}

/* @look must not sleep. */
void rpost_users_each(void (*look)(struct rpost_user *user, void *arg), void *arg)
{
	struct rpost_user *user;
	unsigned int i;

	spin_lock(&rpost_users_lock);
	hash_for_each(rpost_users, i, user, node)
		look(user, arg);
	spin_unlock(&rpost_users_lock);
}

static int rpost_users_show(struct seq_file *s, void *unused)
{
	struct rpost_user *user;
	unsigned int i;

	spin_lock(&rpost_users_lock);
	hash_for_each(rpost_users, i, user, node)
		seq_printf(s, "%u bytes %ld files %u%s\n",
			   from_kuid_munged(&init_user_ns, user->uid),
			   atomic_long_read(&user->bytes), user->refs,
			   user->exempt ? " exempt" : "");
	spin_unlock(&rpost_users_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rpost_users);

/*
 * Set the limit, and show root the bytes of each user in debugfs.  kept_init prepares the
 * regions that the cache keeps for a new user.
 */
void rpost_user_init(struct dentry *parent, void (*kept_init)(struct rpost_kept *kept))
{
	rpost_kept_init = kept_init;
	if (!max_user_bytes)
		max_user_bytes = totalram_pages() / 8 << PAGE_SHIFT;
	debugfs_create_file("users", 0400, parent, NULL, &rpost_users_fops);
}
