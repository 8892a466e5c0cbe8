/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two UD queue pairs of two open files.  Functions return 0 or a negative errno
 * unless their comment says otherwise.
 */
#ifndef UD_PAIR_H
#define UD_PAIR_H

#include "rpost_own.h"

#define UD_BYTES	4096	/* size of a buffer */
#define UD_MSG		100

/* @a has an address handle @ah for this host, whose address is @addr. */
struct ud_pair {
	struct rp_end a, b;
	struct rpost_ah_attr addr;
	uint32_t ah;
	char *abuf, *bbuf;
	struct rpost_reg_mr amr, bmr;
};

int ud_pair_init(struct ud_pair *p);
void ud_pair_close(struct ud_pair *p);
int ud_receive(struct ud_pair *p, uint64_t wr_id);
struct rp_send ud_datagram(const struct ud_pair *p, uint64_t wr_id);

#define EXPECT_SENT(id) do {						\
	ASSERT_EQ(1, rp_wait_cq(&self->p.a.cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(RPOST_WC_SEND, self->wc.opcode);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
} while (0)

#define EXPECT_RECEIVED(id, len) do {					\
	ASSERT_EQ(1, rp_wait_cq(&self->p.b.cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(RPOST_WC_RECV, self->wc.opcode);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ(RP_GRH + (len), self->wc.byte_len);			\
	EXPECT_EQ(self->p.a.qp_num, self->wc.src_qp);			\
	EXPECT_EQ(self->p.b.qp_num, self->wc.qp_num);			\
	EXPECT_EQ(RPOST_WC_F_GRH, self->wc.wc_flags & RPOST_WC_F_GRH);	\
} while (0)

/* Expect that the queue pairs still work. */
#define EXPECT_ALIVE() do {						\
	struct rp_send alive = ud_datagram(&self->p, 4444);			\
									\
	ASSERT_EQ(0, ud_receive(&self->p, 5555));				\
	ASSERT_EQ(0, rp_post_send(&self->p.a, &alive));			\
	EXPECT_SENT(4444);						\
	EXPECT_RECEIVED(5555, UD_MSG);					\
} while (0)

#define UD_FIXTURE() \
	RP_ENDS_FIXTURE(ud, struct ud_pair, p, ud_pair_init(&self->p), ud_pair_close)

#endif /* UD_PAIR_H */
