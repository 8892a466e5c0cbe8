/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two senders, and two receivers that share a receive queue.  Functions return
 * 0 or a negative errno.
 */
#ifndef SRQ_ENDS_H
#define SRQ_ENDS_H

#include "rpost_own.h"

#define SRQ_SLOTS	8
#define SRQ_BYTES	4096

/* Both receivers belong to one file; @r2 has @r1's descriptor and queues. */
struct srq_ends {
	struct rp_end s1, s2, r1, r2;
	struct rpost_create_srq srq;
	struct rpost_query_device dev;
	char *buf;
	struct rpost_reg_mr mr;
};

int srq_join(struct rp_end *sender, struct rp_end *receiver, uint32_t srq);
int srq_ends_init(struct srq_ends *e);
void srq_ends_close(struct srq_ends *e);
int srq_message(struct rp_end *sender, const char *text);
int srq_give(struct srq_ends *e, uint32_t i);

#define EXPECT_RECEIVED(id, end, len) do {				\
	ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(RPOST_WC_RECV, self->wc.opcode);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ((end)->qp_num, self->wc.qp_num);			\
	EXPECT_EQ(len, self->wc.byte_len);				\
} while (0)

#define SRQ_FIXTURE() \
	RP_ENDS_FIXTURE(srq, struct srq_ends, e, srq_ends_init(&self->e), srq_ends_close)

#endif /* SRQ_ENDS_H */
