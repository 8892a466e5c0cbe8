/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two connected ends, each with a buffer that allows all access.  The client
 * posts operations from its own buffer on the server's.
 */
#ifndef POST_PAIR_H
#define POST_PAIR_H

#include "rpost_own.h"

struct post_pair {
	struct rp_end c, s;
	uint32_t listener;
	size_t bytes;
	char *cbuf, *sbuf;
	struct rpost_reg_mr cmr, smr;
};

int post_pair_init(struct post_pair *p, size_t bytes, uint32_t qp_flags);
void post_pair_fill(struct post_pair *p);
void post_pair_close(struct post_pair *p);
struct rp_send pair_op(const struct post_pair *p, uint32_t opcode,
		       uint64_t wr_id, uint32_t length);
struct rp_send pair_write(const struct post_pair *p, uint64_t wr_id);
int pair_recv(struct post_pair *p, uint64_t wr_id, uint32_t length);

/* Expect the next completion of an end: a success. */
#define EXPECT_DONE(end, id, op) do {					\
	ASSERT_EQ(1, rp_wait_cq(&(end)->cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ(op, self->wc.opcode);					\
	EXPECT_EQ((end)->qp_num, self->wc.qp_num);			\
} while (0)

/* Expect no other completion of an end: it is connected, or flushes all requests. */
#define EXPECT_NOTHING(end) EXPECT_EQ(RPOST_WC_SUCCESS, rp_no_other(end))
#define EXPECT_NOTHING_FLUSHED(end) EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, rp_no_other(end))

#define BLOCKS_FIXTURE(bytes)						\
	RP_ENDS_FIXTURE(blocks, struct post_pair, p,			\
			post_pair_init(&self->p, bytes, 0), post_pair_close)

/* A pair with memory that is filled, once as it is and once with all sends signaled. */
#define POST_FIXTURE(bytes)						\
FIXTURE(post) {								\
	struct post_pair p;						\
	struct rpost_wc wc;						\
};									\
FIXTURE_VARIANT(post) {							\
	uint32_t qp_flags;						\
};									\
FIXTURE_VARIANT_ADD(post, plain) { .qp_flags = 0 };			\
FIXTURE_VARIANT_ADD(post, sig_all) { .qp_flags = RPOST_QP_SIG_ALL };	\
FIXTURE_SETUP(post)							\
{									\
	ASSERT_EQ(0, post_pair_init(&self->p, bytes, variant->qp_flags));\
	post_pair_fill(&self->p);					\
}									\
FIXTURE_TEARDOWN(post)							\
{									\
	post_pair_close(&self->p);					\
}

#endif /* POST_PAIR_H */
