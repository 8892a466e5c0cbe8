/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two connected ends, and memory of the client's that is registered again and
 * again, without access for the server.  Functions return 0 or a negative errno
 * unless their comment says otherwise.
 */
#ifndef MR_CACHE_H
#define MR_CACHE_H

#include "fdinfo.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif

#define CACHE_PAGES	8
#define CACHE_DEFAULT	(64 << 20 >> 12)	/* mr_cache_pages */

struct cache_pair {
	struct rp_end c, s;
	char *mem, *far;
	size_t bytes;
	struct rpost_reg_mr peer;
	long pinned;		/* by this process without @mem */
	int memfd;
	unsigned int turn;
};

int cache_pair_init(struct cache_pair *p, size_t pages);
void cache_pair_close(struct cache_pair *p);
int cache_reg_flags(struct cache_pair *p, struct rpost_reg_mr *mr, uint32_t flags);
struct rp_send cache_op(const struct cache_pair *p, const struct rpost_reg_mr *mr,
			uint32_t opcode);
/* Write new data to the memory and move it there and back. */
int cache_move(struct cache_pair *p, const struct rpost_reg_mr *mr);
int cache_wait_file_pinned(struct cache_pair *p, long long want);

static inline int cache_reg(struct cache_pair *p, struct rpost_reg_mr *mr)
{
	return cache_reg_flags(p, mr, 0);
}

static inline int cache_dereg(struct cache_pair *p, const struct rpost_reg_mr *mr)
{
	return rp_destroy(p->c.fd, RPOST_OBJ_MR, mr->handle);
}

/* The regions that are kept. */
static inline int cache_kept(struct cache_pair *p)
{
	return fdinfo_get(p->c.fd, "cached-mr");
}

static inline int cache_hits(struct cache_pair *p)
{
	return fdinfo_get(p->c.fd, "total-cache-hits");
}

/* Register and deregister until the region is kept. */
int cache_warm(struct cache_pair *p);

/*
 * Swap to a small disk in memory, if nobody has written to it: -ENOENT if there is
 * no such disk, -ENOSYS if the kernel does not swap.
 */
#define CACHE_SWAP_PAGES	1024
int cache_swap_on(void);
int cache_swap_off(void);

#endif /* MR_CACHE_H */
