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

#define CQ_FIXTURE()							\
FIXTURE(cq) {								\
	struct cq_pair p;						\
	struct rpost_wc wc;						\
};									\
FIXTURE_VARIANT(cq) {							\
	uint32_t flags;		/* RPOST_CQ_* */			\
};									\
FIXTURE_VARIANT_ADD(cq, plain) { 0 };					\
FIXTURE_VARIANT_ADD(cq, small) { RPOST_CQ_SMALL_ENTRIES };		\
FIXTURE_VARIANT_ADD(cq, shared) {					\
	RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE			\
};									\
FIXTURE_SETUP(cq)							\
{									\
	ASSERT_EQ(0, cq_pair_init(&self->p, variant->flags));		\
}									\
FIXTURE_TEARDOWN(cq)							\
{									\
	cq_pair_close(&self->p);					\
}

#endif /* CQ_PAIR_H */
