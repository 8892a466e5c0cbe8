// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An attacker, and a victim that has all rights on its own memory.
 */
#define _GNU_SOURCE
#include "keys_ends.h"

#define MEM_PAGES	4

int keys_ends_init(struct keys *k)
{
	k->bytes = MEM_PAGES * getpagesize();
	k->mem = rp_pages(k->bytes);
	k->victim_mem = rp_pages(k->bytes);
	if (!k->mem || !k->victim_mem)
		return -ENOMEM;
	memset(k->mem, 'a', k->bytes);
	memset(k->victim_mem, 'v', k->bytes);
	RP_TRY(rp_end_init(&k->attacker));
	RP_TRY(rp_end_init(&k->victim));
	RP_TRY(rp_listener(&k->victim, &k->listener));
	RP_TRY(rp_reg_mr(k->attacker.fd, k->attacker.pd,
			 k->mem + k->bytes / 4, k->bytes / 2, KEYS_RW, &k->mr));
	RP_TRY(rp_reg_mr(k->attacker.fd, k->attacker.pd,
			 k->mem + k->bytes / 4, k->bytes / 2, 0, &k->ro));
	RP_TRY(rp_reg_mr(k->victim.fd, k->victim.pd, k->victim_mem, k->bytes,
			 KEYS_ALL, &k->victim_mr));
	return 0;
}

void keys_ends_close(struct keys *k)
{
	rp_end_close(&k->attacker);
	rp_end_close(&k->victim);
}
