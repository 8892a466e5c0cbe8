/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two connected ends; the server's completion queue has a channel.
 */
#ifndef CQ_PAIR_H
#define CQ_PAIR_H

#include "rpost_own.h"

#define CQ_BYTES	4096

/* The first half of @buf is the client's, the second half the server's. */
struct cq_pair {
	struct rp_end c, s;
	uint32_t listener;
	int comp;
	char *buf;
	struct rpost_reg_mr cmr, smr;
};

int cq_pair_init(struct cq_pair *p, uint32_t flags);
void cq_pair_close(struct cq_pair *p);

#endif /* CQ_PAIR_H */
