// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests every opcode and flag of a work request.  A failure means that data or
 * the fields of a completion are wrong.
 */
#include <kselftest_harness.h>

#define RP_DEPTH	64
#include "post_pair.h"

RP_USE_DEPTH()

#define BUF	16384
POST_FIXTURE(BUF)

TEST_F(post, send)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_SEND, 11, 1000);

	ASSERT_EQ(0, pair_recv(&self->p, 12, 2000));
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 11, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 12, RPOST_WC_RECV);
	EXPECT_EQ(1000, self->wc.byte_len);
	EXPECT_EQ(0, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ(0, memcmp(self->p.cbuf, self->p.sbuf, 1000));
	EXPECT_EQ('s', self->p.sbuf[1000]);
}

TEST_F(post, send_with_imm)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_SEND_WITH_IMM, UINT64_MAX, 5);

	RP_SKIP_IWARP(self->p.c.fd, "immediate data");
	send.wr.imm_data = htonl(0x12345678);
	ASSERT_EQ(0, pair_recv(&self->p, 0, 5));
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, UINT64_MAX, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 0, RPOST_WC_RECV);
	EXPECT_EQ(5, self->wc.byte_len);
	EXPECT_EQ(RPOST_WC_F_WITH_IMM, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ(htonl(0x12345678), self->wc.imm_data);
}

TEST_F(post, write)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_RDMA_WRITE, 1, BUF - 8);

	ASSERT_EQ(0, pair_recv(&self->p, 2, 8));
	send.wr.remote_addr += 4;
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, memcmp(self->p.cbuf, self->p.sbuf + 4, BUF - 8));
	EXPECT_EQ('s', self->p.sbuf[3]);
	EXPECT_EQ('s', self->p.sbuf[BUF - 4]);
	EXPECT_NOTHING(&self->p.s);
}

TEST_F(post, write_with_imm)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_RDMA_WRITE_WITH_IMM, 1, 300);

	RP_SKIP_IWARP(self->p.c.fd, "immediate data");
	send.wr.imm_data = 0xa1b2c3d4;
	/* The receive names no memory; the write does. */
	ASSERT_EQ(0, rp_post_recv(&self->p.s, 2, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(300, self->wc.byte_len);
	EXPECT_EQ(0xa1b2c3d4, self->wc.imm_data);
	EXPECT_EQ(RPOST_WC_F_WITH_IMM, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ(0, memcmp(self->p.cbuf, self->p.sbuf, 300));
}

TEST_F(post, read)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_RDMA_READ, 1, 5000);
	char after = self->p.cbuf[5000];

	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_READ);
	EXPECT_EQ(5000, self->wc.byte_len);
	EXPECT_EQ(0, memcmp(self->p.cbuf, self->p.sbuf, 5000));
	EXPECT_EQ(after, self->p.cbuf[5000]);
	EXPECT_NOTHING(&self->p.s);
}

TEST_F(post, cmp_and_swp)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_ATOMIC_CMP_AND_SWP, 1, 8);
	volatile uint64_t *remote = (void *)self->p.sbuf;
	volatile uint64_t *former = (void *)self->p.cbuf;

	RP_SKIP_IWARP(self->p.c.fd, "atomic operations");
	*remote = 100;
	send.wr.compare_add = 100;
	send.wr.swap = 0x123456789abcdef0;
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_COMP_SWAP);
	EXPECT_EQ(100, *former);
	EXPECT_EQ(0x123456789abcdef0, *remote);

	/* The compare fails, so nothing is stored. */
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_COMP_SWAP);
	EXPECT_EQ(0x123456789abcdef0, *former);
	EXPECT_EQ(0x123456789abcdef0, *remote);
}

TEST_F(post, fetch_and_add)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	volatile uint64_t *remote = (void *)self->p.sbuf;
	volatile uint64_t *former = (void *)self->p.cbuf;

	RP_SKIP_IWARP(self->p.c.fd, "atomic operations");
	*remote = 40;
	send.wr.compare_add = 2;
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_FETCH_ADD);
	EXPECT_EQ(40, *former);
	EXPECT_EQ(42, *remote);
	send.wr.compare_add = -43ull;
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_FETCH_ADD);
	EXPECT_EQ(42, *former);
	EXPECT_EQ(UINT64_MAX, *remote);
}

/* --------------------------------------------------------------- lists */

struct list {
	union {
		struct rpost_send_wr send;
		struct rpost_recv_wr recv;
	};
	struct rpost_sge sges[RP_SGE + 1];
};

/* Entries for pieces of a buffer, with gaps and odd offsets. */
static void pieces(struct rpost_sge *sges, uint32_t num, char *buf,
		   uint32_t lkey)
{
	const uint32_t lengths[] = { 1, 777, 0, 4096, 13 };
	uint32_t i, offset = 3;

	for (i = 0; i < num; i++) {
		sges[i].addr = (uintptr_t)buf + offset;
		sges[i].length = lengths[i];
		sges[i].lkey = lkey;
		offset += lengths[i] + 5;
	}
}

static int send_list(FIXTURE_DATA(post) *self, uint32_t opcode, uint32_t num)
{
	struct list list;

	list.send = pair_op(&self->p, opcode, 1, 0).wr;
	list.send.num_sge = num;
	list.send.size = sizeof(list.send) + num * sizeof(*list.sges);
	pieces((void *)(&list.send + 1), num, self->p.cbuf, self->p.cmr.lkey);
	return rp_post(self->p.c.fd, RPOST_IOC_POST_SEND, self->p.c.qp, &list,
		       list.send.size, 1, NULL);
}

TEST_F(post, gather)
{
	const uint32_t total = 1 + 777 + 4096;
	char want[1 + 777 + 4096];

	want[0] = self->p.cbuf[3];
	memcpy(want + 1, self->p.cbuf + 9, 777);
	memcpy(want + 778, self->p.cbuf + 796, 4096);
	ASSERT_EQ(0, send_list(self, RPOST_WR_RDMA_WRITE, 4));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, memcmp(want, self->p.sbuf, total));
	EXPECT_EQ('s', self->p.sbuf[total]);

	memset(self->p.sbuf, 's', BUF);
	ASSERT_EQ(0, pair_recv(&self->p, 2, BUF));
	ASSERT_EQ(0, send_list(self, RPOST_WR_SEND, 4));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
	EXPECT_EQ(total, self->wc.byte_len);
	EXPECT_EQ(0, memcmp(want, self->p.sbuf, total));
}

TEST_F(post, scatter)
{
	struct list list = { .recv = { .wr_id = 2, .num_sge = 4 } };
	struct rp_send send = pair_op(&self->p, RPOST_WR_SEND, 1, 1 + 777 + 1000);
	unsigned int i;

	RP_SKIP_IWARP(self->p.c.fd, "reads into more than one entry");
	/* An RDMA read into four entries. */
	for (i = 0; i < BUF; i++)
		self->p.sbuf[i] = i * 3;
	memset(self->p.cbuf, 'c', BUF);
	ASSERT_EQ(0, send_list(self, RPOST_WR_RDMA_READ, 4));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_READ);
	EXPECT_EQ(1 + 777 + 4096, self->wc.byte_len);
	EXPECT_EQ('c', self->p.cbuf[2]);
	EXPECT_EQ(self->p.sbuf[0], self->p.cbuf[3]);
	EXPECT_EQ('c', self->p.cbuf[4]);
	EXPECT_EQ(0, memcmp(self->p.sbuf + 1, self->p.cbuf + 9, 777));
	EXPECT_EQ('c', self->p.cbuf[9 + 777]);
	EXPECT_EQ(0, memcmp(self->p.sbuf + 778, self->p.cbuf + 796, 4096));
	EXPECT_EQ('c', self->p.cbuf[796 + 4096]);

	/* A message that ends within the last entry. */
	memset(self->p.sbuf, 's', BUF);
	list.recv.size = sizeof(list.recv) + 4 * sizeof(*list.sges);
	pieces((void *)(&list.recv + 1), 4, self->p.sbuf, self->p.smr.lkey);
	ASSERT_EQ(0, rp_post(self->p.s.fd, RPOST_IOC_POST_RECV, self->p.s.qp,
			     &list, list.recv.size, 1, NULL));
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
	EXPECT_EQ(self->p.cbuf[0], self->p.sbuf[3]);
	EXPECT_EQ(0, memcmp(self->p.cbuf + 1, self->p.sbuf + 9, 777));
	EXPECT_EQ(0, memcmp(self->p.cbuf + 778, self->p.sbuf + 796, 1000));
	EXPECT_EQ('s', self->p.sbuf[796 + 1000]);
}

/* Messages of 0 bytes, with entries and without. */
TEST_F(post, nothing)
{
	const uint32_t ops[][2] = {
		{ RPOST_WR_SEND, RPOST_WC_SEND },
		{ RPOST_WR_SEND_WITH_IMM, RPOST_WC_SEND },
		{ RPOST_WR_RDMA_WRITE, RPOST_WC_RDMA_WRITE },
		{ RPOST_WR_RDMA_WRITE_WITH_IMM, RPOST_WC_RDMA_WRITE },
		{ RPOST_WR_RDMA_READ, RPOST_WC_RDMA_READ },
	};
	struct rpost_recv_wr recv = { .wr_id = 2, .size = sizeof(recv) };
	bool iwarp = rp_is_iwarp(self->p.c.fd, self->p.c.device);
	struct rp_send send;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		bool received = ops[i][0] != RPOST_WR_RDMA_WRITE &&
				ops[i][0] != RPOST_WR_RDMA_READ;

		if (iwarp && (ops[i][0] == RPOST_WR_SEND_WITH_IMM ||
			      ops[i][0] == RPOST_WR_RDMA_WRITE_WITH_IMM))
			continue;
		if (received)
			ASSERT_EQ(0, rp_post(self->p.s.fd, RPOST_IOC_POST_RECV,
					     self->p.s.qp, &recv, sizeof(recv),
					     1, NULL));
		send = pair_op(&self->p, ops[i][0], i, 0);
		/* On iWARP a read request names its local entry to the peer. */
		if (!iwarp || ops[i][0] != RPOST_WR_RDMA_READ) {
			send.wr.num_sge = 0;
			send.wr.size = sizeof(send.wr);
		}
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send))
			TH_LOG("opcode %u", ops[i][0]);
		EXPECT_DONE(&self->p.c, i, ops[i][1]);
		if (received) {
			ASSERT_EQ(1, rp_wait_cq(&self->p.s.cq, &self->wc));
			EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
			EXPECT_EQ(0, self->wc.byte_len);
		}
	}
	EXPECT_EQ('s', self->p.sbuf[0]);
	EXPECT_EQ(1, self->p.cbuf[0]);
}

/* -------------------------------------------------------------- inline */

struct inline_send {
	struct rpost_send_wr wr;
	char data[RP_INLINE + 8];
};

static struct inline_send inline_op(FIXTURE_DATA(post) *self, uint32_t opcode,
				    uint32_t length)
{
	struct inline_send send = { .wr = pair_op(&self->p, opcode, 1, 0).wr };

	send.wr.send_flags |= RPOST_SEND_INLINE;
	send.wr.num_sge = 0;
	send.wr.inline_len = length;
	send.wr.size = sizeof(send.wr) + ((length + 7) & ~7u);
	memset(send.data, 'i', sizeof(send.data));
	return send;
}

static int post_inline(FIXTURE_DATA(post) *self, struct inline_send *send)
{
	return rp_post(self->p.c.fd, RPOST_IOC_POST_SEND, self->p.c.qp, send,
		       send->wr.size, 1, NULL);
}

TEST_F(post, inline_data)
{
	const uint32_t lengths[] = { 1, 7, 8, 9, 63, RP_INLINE };
	struct inline_send send;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(self->p.sbuf, 's', 128);
		send = inline_op(self, RPOST_WR_RDMA_WRITE, lengths[i]);
		ASSERT_EQ(0, post_inline(self, &send));
		memset(&send, 'x', sizeof(send));
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
		EXPECT_EQ('i', self->p.sbuf[0]);
		EXPECT_EQ('i', self->p.sbuf[lengths[i] - 1]);
		EXPECT_EQ('s', self->p.sbuf[lengths[i]]);

		ASSERT_EQ(0, pair_recv(&self->p, 2, 128));
		send = inline_op(self, RPOST_WR_SEND, lengths[i]);
		send.data[0] = 'j';
		ASSERT_EQ(0, post_inline(self, &send));
		memset(&send, 'x', sizeof(send));
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
		EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
		EXPECT_EQ(lengths[i], self->wc.byte_len);
		EXPECT_EQ('j', self->p.sbuf[0]);
	}
	/* Inline data of 0 bytes. */
	send = inline_op(self, RPOST_WR_RDMA_WRITE, 0);
	ASSERT_EQ(0, post_inline(self, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
}

/* Fill the queue with inline data; each work request keeps its own. */
TEST_F(post, inline_slots)
{
	struct inline_send send;
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		memset(self->p.sbuf, 's', BUF);
		for (i = 0; i < RP_DEPTH; i++) {
			send = inline_op(self, RPOST_WR_RDMA_WRITE, RP_INLINE);
			send.wr.remote_addr += i * RP_INLINE;
			memset(send.data, i + round, RP_INLINE);
			ASSERT_EQ(0, post_inline(self, &send));
		}
		for (i = 0; i < RP_DEPTH; i++)
			EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
		for (i = 0; i < RP_DEPTH; i++) {
			EXPECT_EQ((char)(i + round), self->p.sbuf[i * RP_INLINE]);
			EXPECT_EQ((char)(i + round),
				  self->p.sbuf[(i + 1) * RP_INLINE - 1]);
		}
	}
}

/* --------------------------------------------------------------- flags */

/* More unsignaled requests than fit: only requested completions appear. */
TEST_F(post, unsignaled)
{
	const bool all = variant->qp_flags & RPOST_QP_SIG_ALL;
	struct rp_send send = pair_op(&self->p, RPOST_WR_RDMA_WRITE, 1, 8);
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	unsigned int i;
	int ret;

	send.wr.send_flags = 0;
	for (i = 0; i < 4 * RP_DEPTH; i++) {
		send.wr.wr_id = i;
		/* Without completions, there is nothing to poll for. */
		do {
			ret = rp_post_send(&self->p.c, &send);
		} while (ret == -ENOMEM && rp_now_ms() < end);
		ASSERT_EQ(0, ret)
			TH_LOG("work request %u", i);
		if (all)
			EXPECT_DONE(&self->p.c, i, RPOST_WC_RDMA_WRITE);
	}
	EXPECT_NOTHING(&self->p.c);
	send.wr.send_flags = RPOST_SEND_SIGNALED;
	send.wr.wr_id = 777;
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 777, RPOST_WC_RDMA_WRITE);
	EXPECT_NOTHING(&self->p.c);
}

/*
 * A full queue stays full until the program has consumed completions from the
 * ring, so a program that posts until ENOMEM overruns no ring.
 */
TEST_F(post, full_until_consumed)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_RDMA_WRITE, 1, 8);
	unsigned int i;

	ASSERT_EQ(0, rp_poll_cq(&self->p.c.cq, &self->wc));
	for (i = 0; i < RP_DEPTH; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	}
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(-ENOMEM, rp_post_send(&self->p.c, &send));
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_DONE(&self->p.c, i, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, RP_DEPTH - 1, RPOST_WC_RDMA_WRITE);
}

/* The fenced send must carry the data that the read before it has fetched. */
TEST_F(post, fence)
{
	struct rp_send block[2];
	int i;

	for (i = 0; i < 20; i++) {
		memset(self->p.sbuf, i, 4096);
		memset(self->p.cbuf, 'c', 4096);
		block[0] = pair_op(&self->p, RPOST_WR_RDMA_READ, 1, 4096);
		block[1] = pair_op(&self->p, RPOST_WR_SEND, 2, 4096);
		block[1].wr.send_flags |= RPOST_SEND_FENCE;
		ASSERT_EQ(0, rp_post_recv(&self->p.s, 3, self->p.sbuf + 8192, 4096,
					  self->p.smr.lkey));
		ASSERT_EQ(0, rp_post(self->p.c.fd, RPOST_IOC_POST_SEND,
				     self->p.c.qp, block, sizeof(block), 2,
				     NULL));
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_READ);
		EXPECT_DONE(&self->p.c, 2, RPOST_WC_SEND);
		EXPECT_DONE(&self->p.s, 3, RPOST_WC_RECV);
		EXPECT_EQ((char)i, self->p.sbuf[8192]);
		EXPECT_EQ((char)i, self->p.sbuf[8192 + 4095]);
	}
}

TEST_F(post, all_flags_at_once)
{
	struct inline_send send = inline_op(self, RPOST_WR_SEND_WITH_IMM, 16);

	send.wr.send_flags |= RPOST_SEND_FENCE | RPOST_SEND_SOLICITED |
			      RPOST_SEND_SIGNALED;
	ASSERT_EQ(0, pair_recv(&self->p, 2, 16));
	ASSERT_EQ(0, post_inline(self, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
}

TEST_HARNESS_MAIN
