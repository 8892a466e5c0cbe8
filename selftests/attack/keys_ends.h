/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An attacker, and a victim that has all rights on its own memory.
 */
#ifndef KEYS_ENDS_H
#define KEYS_ENDS_H

#include "rpost_own.h"

#define KEYS_MSG	64
#define KEYS_RW		RPOST_ACCESS_LOCAL_WRITE
#define KEYS_ALL	(KEYS_RW | RPOST_ACCESS_REMOTE_WRITE | \
			 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

/*
 * The attacker has a region for reading and writing at @mr.addr within @mem,
 * and a second region of the same memory that may only be read.  The victim has
 * a region with all rights.
 */
struct keys {
	size_t bytes;
	struct rp_end attacker, victim;
	uint32_t listener;
	char *mem, *victim_mem;
	struct rpost_reg_mr mr, ro, victim_mr;
};

int keys_ends_init(struct keys *k);
void keys_ends_close(struct keys *k);

static inline bool is_atomic(uint32_t op)
{
	return op == RPOST_WR_ATOMIC_CMP_AND_SWP ||
	       op == RPOST_WR_ATOMIC_FETCH_AND_ADD;
}

#endif /* KEYS_ENDS_H */
