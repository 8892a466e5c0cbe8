/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory of work requests that no program has registered.
 */
#ifndef RPOST_ANY_MEMORY_H
#define RPOST_ANY_MEMORY_H

#include "memory/cache.h"
#include "post/post.h"

/**
 * struct rpost_memory - memory that a work request waits for
 * @sges: entries of the work request, some with the lkey 0
 * @num: number of @sges
 * @access: RPOST_ACCESS_* that it needs
 * @uses: uses of regions with that memory, in the order of these entries, for
 *        the next attempt to post the work request
 * @paid: policies have charged it, see rpost_policy_charge()
 * @bytes: what they have charged it for
 */
struct rpost_memory {
	struct rpost_sge *sges;
	u32 num;
	u32 access;
	struct rpost_uses uses;
	bool paid;
	u32 bytes;
};

int rpost_memory_get(struct rpost_file *file, u32 qp, struct rpost_memory *memory);
int rpost_memory_find(const struct rpost_check *check, struct rpost_sge *sges, u32 num);
u32 rpost_memory_short(const struct rpost_sge *sges, u32 num, u32 max);
int rpost_memory_copy(struct rpost_swr *swr, const struct rpost_sge *sges, u32 num, u32 bytes);

#endif /* RPOST_ANY_MEMORY_H */
