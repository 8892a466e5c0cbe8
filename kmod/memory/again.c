// SPDX-License-Identifier: GPL-2.0
/*
 * The regions that the cache keeps for REG_MR: the program has deregistered them.
 *
 * A work request on the device may still write to memory whose region the
 * program has deregistered, if the region stays registered.  So posts count
 * their uses of a region, and one that is in use is really deregistered.  This
 * costs a post two atomic operations, so only regions are counted whose memory
 * has been registered, deregistered and registered again: an open file
 * remembers hashes of what was deregistered lately (rpost_file.ghosts).  The
 * first registration of memory, and programs that register once, have no cost.
 */
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/siphash.h>

#include "memory/cache.h"

/* Access that a kept region may have. */
#define RPOST_CACHE_ACCESS	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_RELAXED_ORDERING)

#define RPOST_CACHE_WAYS	4

static hsiphash_key_t rpost_cache_key __ro_after_init;

void rpost_again_init(void)
{
	get_random_bytes(&rpost_cache_key, sizeof(rpost_cache_key));
}

/*
 * A program can find out which hashes share a place, by what is forgotten.  So no
 * address of the kernel's is in them, and nobody knows the key.
 */
static u32 rpost_cache_hash(u32 pd, u64 addr, u64 length, u64 iova, u32 access)
{
	const u64 words[] = { addr, length ^ (u64)access << 32, iova,
			      (u64)pd << 32 | task_tgid_nr(current) };

	/* 0 is for nothing. */
	return hsiphash(words, sizeof(words), &rpost_cache_key) ? : 1;
}

/* Its place is one of RPOST_CACHE_WAYS, the one that came last is first. */
static u32 *rpost_cache_ghosts(struct rpost_file *file, u32 hash)
{
	return &file->ghosts[hash % (RPOST_NUM_GHOSTS / RPOST_CACHE_WAYS) * RPOST_CACHE_WAYS];
}

static bool rpost_cache_seen(struct rpost_file *file, u32 hash)
{
	u32 *ghosts = rpost_cache_ghosts(file, hash);
	int i;

	for (i = 0; i < RPOST_CACHE_WAYS; i++) {
		if (READ_ONCE(ghosts[i]) == hash)
			return true;
	}
	return false;
}

/*
 * Could the region of a validated command be in the cache?  Set seen if it was
 * deregistered lately, and should be kept next time.
 */
bool rpost_cache_expects(struct rpost_file *file, const struct rpost_reg_mr *cmd, bool *seen)
{
	u32 hash;

	if ((cmd->access & ~RPOST_CACHE_ACCESS) || (cmd->flags & RPOST_MR_NO_CACHE) ||
	    !READ_ONCE(rpost_cache_pages))
		return false;
	hash = rpost_cache_hash(cmd->pd, cmd->addr, cmd->length, cmd->iova, cmd->access);
	*seen = rpost_cache_seen(file, hash);
	return *seen || atomic_long_read(&file->counts[RPOST_COUNT_KEPT]);
}

static void rpost_cache_remember(const struct rpost_mr *mr)
{
	u32 *ghosts, hash;
	int i;

	if (mr->access & ~RPOST_CACHE_ACCESS)
		return;
	hash = rpost_cache_hash(mr->pd->obj.handle, mr->addr, mr->length, mr->iova, mr->access);
	if (rpost_cache_seen(mr->obj.file, hash))
		return;
	/* Two tasks at once may lose a hash, which then is remembered later. */
	ghosts = rpost_cache_ghosts(mr->obj.file, hash);
	for (i = RPOST_CACHE_WAYS - 1; i > 0; i--)
		WRITE_ONCE(ghosts[i], READ_ONCE(ghosts[i - 1]));
	WRITE_ONCE(ghosts[0], hash);
}

/*
 * Take a region for a validated command from the cache.  It becomes a user of the
 * domain.  Return it, to be given a handle and listed; or NULL.
 */
struct rpost_mr *rpost_cache_take(struct rpost_pd *pd, const struct rpost_reg_mr *cmd)
{
	/*
	 * Would a new registration succeed?  RLIMIT_MEMLOCK may have become less.  What
	 * other processes have left since is looked at when more is pinned.
	 */
	if (!rpost_memlock_allows(atomic64_read(&current->mm->pinned_vm)))
		return NULL;
	return rpost_cache_use(pd, cmd, false);
}

/*
 * Keep a region that the program destroys.  It is claimed, and its context's rwsem is
 * held.  Return false if it must be destroyed; posts may then still find its key.
 */
bool rpost_cache_keep(struct rpost_obj *obj)
{
	struct rpost_mr *mr = rpost_obj_as(mr, obj);
	struct rpost_kept *kept = rpost_kept(mr->obj.file);
	struct rpost_pd *pd = mr->pd;

	/* At the last close the commands of the file have ended. */
	if (!mr->ib_mr || mr->umem || READ_ONCE(mr->no_cache) || READ_ONCE(obj->file->dead))
		return false;
	if (!mr->watch) {
		if (rpost_mr_can_keep(obj->dev))
			rpost_cache_remember(mr);
		return false;
	}
	if (mr->watch->notifier.mm != current->mm ||
	    mr->num_pages > min(READ_ONCE(rpost_cache_pages), mr->watch->limit) ||
	    !rpost_device_alive(obj->dev))
		return false;
	/* The key is refused from here on. */
	rpost_mr_unlist(mr);
	if (atomic_cmpxchg(&mr->uses, 1, 0) != 1)
		return false;
	rpost_obj_give_handle(obj);
	spin_lock_irq(&kept->lock);
	rpost_cache_rest(mr);
	spin_unlock_irq(&kept->lock);
	/* The domain can end from here on, and the region with it. */
	rpost_obj_unuse(&pd->obj);
	return true;
}
