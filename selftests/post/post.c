// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Work requests: every opcode and flag, and what their completions say.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#define RP_DEPTH	64
#include "rpost_own.h"

#define BUF	16384
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

/* Two connected ends, each with a buffer that may be used in every way. */
FIXTURE(post) {
	struct rp_end c, s;
	uint32_t listener;
	char *cbuf, *sbuf;
	struct rpost_reg_mr cmr, smr;
	struct rpost_wc wc;
};

FIXTURE_VARIANT(post) {
	uint32_t qp_flags;
};

FIXTURE_VARIANT_ADD(post, plain) { .qp_flags = 0 };
FIXTURE_VARIANT_ADD(post, sig_all) { .qp_flags = RPOST_QP_SIG_ALL };

FIXTURE_SETUP(post)
{
	unsigned int i;

	self->cbuf = rp_pages(BUF);
	self->sbuf = rp_pages(BUF);
	ASSERT_NE(NULL, self->cbuf);
	ASSERT_NE(NULL, self->sbuf);
	for (i = 0; i < BUF; i++) {
		self->cbuf[i] = i * 7 + 1;
		self->sbuf[i] = 's';
	}
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_listener(&self->s, &self->listener));
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener,
			     variant->qp_flags));
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->cbuf, BUF, ALL,
			       &self->cmr));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->sbuf, BUF, ALL,
			       &self->smr));
}

FIXTURE_TEARDOWN(post)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* The next completion of an end, of a work request that succeeded. */
#define EXPECT_DONE(end, id, op) do {					\
	ASSERT_EQ(1, rp_wait_cq(&(end)->cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ(op, self->wc.opcode);					\
	EXPECT_EQ((end)->qp_num, self->wc.qp_num);			\
} while (0)

#define EXPECT_NOTHING(end) EXPECT_TRUE(rp_quiet_cq(&(end)->cq))

/* An operation of the client's from its buffer on the server's. */
static struct rp_send op(FIXTURE_DATA(post) *self, uint32_t opcode,
			 uint64_t wr_id, uint32_t length)
{
	struct rp_send send = rp_send(opcode, wr_id, self->cbuf, length,
				      self->cmr.lkey);

	send.wr.remote_addr = self->smr.addr;
	send.wr.rkey = self->smr.rkey;
	return send;
}

static int recv_into(FIXTURE_DATA(post) *self, uint64_t wr_id, uint32_t length)
{
	return rp_post_recv(&self->s, wr_id, self->sbuf, length,
			    self->smr.lkey);
}

TEST_F(post, send)
{
	struct rp_send send = op(self, RPOST_WR_SEND, 11, 1000);

	ASSERT_EQ(0, recv_into(self, 12, 2000));
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 11, RPOST_WC_SEND);
	EXPECT_DONE(&self->s, 12, RPOST_WC_RECV);
	EXPECT_EQ(1000, self->wc.byte_len);
	EXPECT_EQ(0, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ(0, memcmp(self->cbuf, self->sbuf, 1000));
	EXPECT_EQ('s', self->sbuf[1000]);
}

TEST_F(post, send_with_imm)
{
	struct rp_send send = op(self, RPOST_WR_SEND_WITH_IMM, UINT64_MAX, 5);

	RP_SKIP_IWARP(self->c.fd, "immediate data");
	send.wr.imm_data = htonl(0x12345678);
	ASSERT_EQ(0, recv_into(self, 0, 5));
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, UINT64_MAX, RPOST_WC_SEND);
	EXPECT_DONE(&self->s, 0, RPOST_WC_RECV);
	EXPECT_EQ(5, self->wc.byte_len);
	EXPECT_EQ(RPOST_WC_F_WITH_IMM, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ(htonl(0x12345678), self->wc.imm_data);
}

TEST_F(post, write)
{
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 1, BUF - 8);

	ASSERT_EQ(0, recv_into(self, 2, 8));
	send.wr.remote_addr += 4;
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, memcmp(self->cbuf, self->sbuf + 4, BUF - 8));
	EXPECT_EQ('s', self->sbuf[3]);
	EXPECT_EQ('s', self->sbuf[BUF - 4]);
	EXPECT_NOTHING(&self->s);
}

TEST_F(post, write_with_imm)
{
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE_WITH_IMM, 1, 300);

	RP_SKIP_IWARP(self->c.fd, "immediate data");
	send.wr.imm_data = 0xa1b2c3d4;
	/* The receive gives no memory: the write names it. */
	ASSERT_EQ(0, rp_post_recv(&self->s, 2, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_DONE(&self->s, 2, RPOST_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(300, self->wc.byte_len);
	EXPECT_EQ(0xa1b2c3d4, self->wc.imm_data);
	EXPECT_EQ(RPOST_WC_F_WITH_IMM, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ(0, memcmp(self->cbuf, self->sbuf, 300));
}

TEST_F(post, read)
{
	struct rp_send send = op(self, RPOST_WR_RDMA_READ, 1, 5000);
	char after = self->cbuf[5000];

	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_READ);
	EXPECT_EQ(5000, self->wc.byte_len);
	EXPECT_EQ(0, memcmp(self->cbuf, self->sbuf, 5000));
	EXPECT_EQ(after, self->cbuf[5000]);
	EXPECT_NOTHING(&self->s);
}

TEST_F(post, cmp_and_swp)
{
	struct rp_send send = op(self, RPOST_WR_ATOMIC_CMP_AND_SWP, 1, 8);
	volatile uint64_t *remote = (void *)self->sbuf;
	volatile uint64_t *former = (void *)self->cbuf;

	RP_SKIP_IWARP(self->c.fd, "atomic operations");
	*remote = 100;
	send.wr.compare_add = 100;
	send.wr.swap = 0x123456789abcdef0;
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_COMP_SWAP);
	EXPECT_EQ(100, *former);
	EXPECT_EQ(0x123456789abcdef0, *remote);

	/* Not what is there: nothing is stored. */
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_COMP_SWAP);
	EXPECT_EQ(0x123456789abcdef0, *former);
	EXPECT_EQ(0x123456789abcdef0, *remote);
}

TEST_F(post, fetch_and_add)
{
	struct rp_send send = op(self, RPOST_WR_ATOMIC_FETCH_AND_ADD, 1, 8);
	volatile uint64_t *remote = (void *)self->sbuf;
	volatile uint64_t *former = (void *)self->cbuf;

	RP_SKIP_IWARP(self->c.fd, "atomic operations");
	*remote = 40;
	send.wr.compare_add = 2;
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_FETCH_ADD);
	EXPECT_EQ(40, *former);
	EXPECT_EQ(42, *remote);
	send.wr.compare_add = -43ull;
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_FETCH_ADD);
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

/* Pieces of a buffer, which begin at odd places. */
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

	list.send = op(self, opcode, 1, 0).wr;
	list.send.num_sge = num;
	list.send.size = sizeof(list.send) + num * sizeof(*list.sges);
	pieces((void *)(&list.send + 1), num, self->cbuf, self->cmr.lkey);
	return rp_post(self->c.fd, RPOST_IOC_POST_SEND, self->c.qp, &list,
		       list.send.size, 1, NULL);
}

TEST_F(post, gather)
{
	const uint32_t total = 1 + 777 + 4096;
	char want[1 + 777 + 4096];

	want[0] = self->cbuf[3];
	memcpy(want + 1, self->cbuf + 9, 777);
	memcpy(want + 778, self->cbuf + 796, 4096);
	ASSERT_EQ(0, send_list(self, RPOST_WR_RDMA_WRITE, 4));
	EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, memcmp(want, self->sbuf, total));
	EXPECT_EQ('s', self->sbuf[total]);

	memset(self->sbuf, 's', BUF);
	ASSERT_EQ(0, recv_into(self, 2, BUF));
	ASSERT_EQ(0, send_list(self, RPOST_WR_SEND, 4));
	EXPECT_DONE(&self->c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->s, 2, RPOST_WC_RECV);
	EXPECT_EQ(total, self->wc.byte_len);
	EXPECT_EQ(0, memcmp(want, self->sbuf, total));
}

TEST_F(post, scatter)
{
	struct list list = { .recv = { .wr_id = 2, .num_sge = 4 } };
	struct rp_send send = op(self, RPOST_WR_SEND, 1, 1 + 777 + 1000);
	unsigned int i;

	RP_SKIP_IWARP(self->c.fd, "reads into more than one entry");
	/* A read into pieces. */
	for (i = 0; i < BUF; i++)
		self->sbuf[i] = i * 3;
	memset(self->cbuf, 'c', BUF);
	ASSERT_EQ(0, send_list(self, RPOST_WR_RDMA_READ, 4));
	EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_READ);
	EXPECT_EQ(1 + 777 + 4096, self->wc.byte_len);
	EXPECT_EQ('c', self->cbuf[2]);
	EXPECT_EQ(self->sbuf[0], self->cbuf[3]);
	EXPECT_EQ('c', self->cbuf[4]);
	EXPECT_EQ(0, memcmp(self->sbuf + 1, self->cbuf + 9, 777));
	EXPECT_EQ('c', self->cbuf[9 + 777]);
	EXPECT_EQ(0, memcmp(self->sbuf + 778, self->cbuf + 796, 4096));
	EXPECT_EQ('c', self->cbuf[796 + 4096]);

	/* A message that ends within the last piece. */
	memset(self->sbuf, 's', BUF);
	list.recv.size = sizeof(list.recv) + 4 * sizeof(*list.sges);
	pieces((void *)(&list.recv + 1), 4, self->sbuf, self->smr.lkey);
	ASSERT_EQ(0, rp_post(self->s.fd, RPOST_IOC_POST_RECV, self->s.qp,
			     &list, list.recv.size, 1, NULL));
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->s, 2, RPOST_WC_RECV);
	EXPECT_EQ(self->cbuf[0], self->sbuf[3]);
	EXPECT_EQ(0, memcmp(self->cbuf + 1, self->sbuf + 9, 777));
	EXPECT_EQ(0, memcmp(self->cbuf + 778, self->sbuf + 796, 1000));
	EXPECT_EQ('s', self->sbuf[796 + 1000]);
}

/* Messages without a byte, with and without entries. */
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
	bool iwarp = rp_is_iwarp(self->c.fd, self->c.device);
	struct rp_send send;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		bool received = ops[i][0] != RPOST_WR_RDMA_WRITE &&
				ops[i][0] != RPOST_WR_RDMA_READ;

		if (iwarp && (ops[i][0] == RPOST_WR_SEND_WITH_IMM ||
			      ops[i][0] == RPOST_WR_RDMA_WRITE_WITH_IMM))
			continue;
		if (received)
			ASSERT_EQ(0, rp_post(self->s.fd, RPOST_IOC_POST_RECV,
					     self->s.qp, &recv, sizeof(recv),
					     1, NULL));
		send = op(self, ops[i][0], i, 0);
		/* There a read names its entry to the peer. */
		if (!iwarp || ops[i][0] != RPOST_WR_RDMA_READ) {
			send.wr.num_sge = 0;
			send.wr.size = sizeof(send.wr);
		}
		ASSERT_EQ(0, rp_post_send(&self->c, &send))
			TH_LOG("opcode %u", ops[i][0]);
		EXPECT_DONE(&self->c, i, ops[i][1]);
		if (received) {
			ASSERT_EQ(1, rp_wait_cq(&self->s.cq, &self->wc));
			EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
			EXPECT_EQ(0, self->wc.byte_len);
		}
	}
	EXPECT_EQ('s', self->sbuf[0]);
	EXPECT_EQ(1, self->cbuf[0]);
}

/* -------------------------------------------------------------- inline */

struct inline_send {
	struct rpost_send_wr wr;
	char data[RP_INLINE + 8];
};

static struct inline_send inline_op(FIXTURE_DATA(post) *self, uint32_t opcode,
				    uint32_t length)
{
	struct inline_send send = { .wr = op(self, opcode, 1, 0).wr };

	send.wr.send_flags |= RPOST_SEND_INLINE;
	send.wr.num_sge = 0;
	send.wr.inline_len = length;
	send.wr.size = sizeof(send.wr) + ((length + 7) & ~7u);
	memset(send.data, 'i', sizeof(send.data));
	return send;
}

static int post_inline(FIXTURE_DATA(post) *self, struct inline_send *send)
{
	return rp_post(self->c.fd, RPOST_IOC_POST_SEND, self->c.qp, send,
		       send->wr.size, 1, NULL);
}

TEST_F(post, inline_data)
{
	const uint32_t lengths[] = { 1, 7, 8, 9, 63, RP_INLINE };
	struct inline_send send;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		memset(self->sbuf, 's', 128);
		send = inline_op(self, RPOST_WR_RDMA_WRITE, lengths[i]);
		ASSERT_EQ(0, post_inline(self, &send));
		memset(&send, 'x', sizeof(send));
		EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_WRITE);
		EXPECT_EQ('i', self->sbuf[0]);
		EXPECT_EQ('i', self->sbuf[lengths[i] - 1]);
		EXPECT_EQ('s', self->sbuf[lengths[i]]);

		ASSERT_EQ(0, recv_into(self, 2, 128));
		send = inline_op(self, RPOST_WR_SEND, lengths[i]);
		send.data[0] = 'j';
		ASSERT_EQ(0, post_inline(self, &send));
		memset(&send, 'x', sizeof(send));
		EXPECT_DONE(&self->c, 1, RPOST_WC_SEND);
		EXPECT_DONE(&self->s, 2, RPOST_WC_RECV);
		EXPECT_EQ(lengths[i], self->wc.byte_len);
		EXPECT_EQ('j', self->sbuf[0]);
	}
	/* No bytes at all. */
	send = inline_op(self, RPOST_WR_RDMA_WRITE, 0);
	ASSERT_EQ(0, post_inline(self, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_WRITE);
}

/* A queue full of inline data, each with its own. */
TEST_F(post, inline_slots)
{
	struct inline_send send;
	unsigned int i, round;

	for (round = 0; round < 3; round++) {
		memset(self->sbuf, 's', BUF);
		for (i = 0; i < RP_DEPTH; i++) {
			send = inline_op(self, RPOST_WR_RDMA_WRITE, RP_INLINE);
			send.wr.remote_addr += i * RP_INLINE;
			memset(send.data, i + round, RP_INLINE);
			ASSERT_EQ(0, post_inline(self, &send));
		}
		for (i = 0; i < RP_DEPTH; i++)
			EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_WRITE);
		for (i = 0; i < RP_DEPTH; i++) {
			EXPECT_EQ((char)(i + round), self->sbuf[i * RP_INLINE]);
			EXPECT_EQ((char)(i + round),
				  self->sbuf[(i + 1) * RP_INLINE - 1]);
		}
	}
}

/* --------------------------------------------------------------- flags */

/* Many more than fit, and the program sees of them what it asked for. */
TEST_F(post, unsignaled)
{
	const bool all = variant->qp_flags & RPOST_QP_SIG_ALL;
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 1, 8);
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	unsigned int i;
	int ret;

	send.wr.send_flags = 0;
	for (i = 0; i < 4 * RP_DEPTH; i++) {
		send.wr.wr_id = i;
		/* Without completions there is nothing to poll for. */
		do {
			ret = rp_post_send(&self->c, &send);
		} while (ret == -ENOMEM && rp_now_ms() < end);
		ASSERT_EQ(0, ret)
			TH_LOG("work request %u", i);
		if (all)
			EXPECT_DONE(&self->c, i, RPOST_WC_RDMA_WRITE);
	}
	EXPECT_NOTHING(&self->c);
	send.wr.send_flags = RPOST_SEND_SIGNALED;
	send.wr.wr_id = 777;
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 777, RPOST_WC_RDMA_WRITE);
	EXPECT_NOTHING(&self->c);
}

/*
 * A full queue is full until its completions have been taken out of the ring:
 * a program that goes by ENOMEM alone loses none.
 */
TEST_F(post, full_until_consumed)
{
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 1, 8);
	unsigned int i;

	ASSERT_EQ(0, rp_poll_cq(&self->c.cq, &self->wc));
	for (i = 0; i < RP_DEPTH; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->c, &send));
	}
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(-ENOMEM, rp_post_send(&self->c, &send));
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_DONE(&self->c, i, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, RP_DEPTH - 1, RPOST_WC_RDMA_WRITE);
}

/* What the fenced send takes along is what the read has brought. */
TEST_F(post, fence)
{
	struct rp_send block[2];
	int i;

	for (i = 0; i < 20; i++) {
		memset(self->sbuf, i, 4096);
		memset(self->cbuf, 'c', 4096);
		block[0] = op(self, RPOST_WR_RDMA_READ, 1, 4096);
		block[1] = op(self, RPOST_WR_SEND, 2, 4096);
		block[1].wr.send_flags |= RPOST_SEND_FENCE;
		ASSERT_EQ(0, rp_post_recv(&self->s, 3, self->sbuf + 8192, 4096,
					  self->smr.lkey));
		ASSERT_EQ(0, rp_post(self->c.fd, RPOST_IOC_POST_SEND,
				     self->c.qp, block, sizeof(block), 2,
				     NULL));
		EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_READ);
		EXPECT_DONE(&self->c, 2, RPOST_WC_SEND);
		EXPECT_DONE(&self->s, 3, RPOST_WC_RECV);
		EXPECT_EQ((char)i, self->sbuf[8192]);
		EXPECT_EQ((char)i, self->sbuf[8192 + 4095]);
	}
}

TEST_F(post, all_flags_at_once)
{
	struct inline_send send = inline_op(self, RPOST_WR_SEND_WITH_IMM, 16);

	send.wr.send_flags |= RPOST_SEND_FENCE | RPOST_SEND_SOLICITED |
			      RPOST_SEND_SIGNALED;
	ASSERT_EQ(0, recv_into(self, 2, 16));
	ASSERT_EQ(0, post_inline(self, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->s, 2, RPOST_WC_RECV);
}

/* ----------------------------------------------------- states and queues */

TEST_F(post, before_the_connection)
{
	struct rp_send send = op(self, RPOST_WR_SEND, 1, 8);
	struct rp_end *c = &self->c, *s = &self->s;
	uint32_t posted = 77;

	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(s));
	ASSERT_EQ(0, rp_client_route(c, rp_port(s->fd, self->listener)));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	EXPECT_EQ(-EINVAL, rp_post(c->fd, RPOST_IOC_POST_SEND, c->qp, &send,
				   sizeof(send), 1, &posted));
	EXPECT_EQ(0, posted);
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	EXPECT_EQ(-EINVAL, rp_post_send(c, &send));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	EXPECT_EQ(-EINVAL, rp_post_send(s, &send));
	/* Receives are taken from the beginning, and used later. */
	ASSERT_EQ(0, recv_into(self, 5, 8));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_NOTHING(c);
	ASSERT_EQ(0, rp_post_send(c, &send));
	EXPECT_DONE(c, 1, RPOST_WC_SEND);
	EXPECT_DONE(s, 5, RPOST_WC_RECV);
}

TEST_F(post, receive_queue_full)
{
	struct rpost_recv_wr block[RP_DEPTH + 5];
	struct rp_send send = op(self, RPOST_WR_SEND, 1, 0);
	uint32_t posted, i;

	for (i = 0; i < ARRAY_SIZE(block); i++)
		block[i] = (struct rpost_recv_wr) {
			.wr_id = i, .size = sizeof(block[i]),
		};
	EXPECT_EQ(-ENOMEM, rp_post(self->s.fd, RPOST_IOC_POST_RECV, self->s.qp,
				   block, sizeof(block), ARRAY_SIZE(block),
				   &posted));
	EXPECT_EQ(RP_DEPTH, posted);
	EXPECT_EQ(-ENOMEM, rp_post(self->s.fd, RPOST_IOC_POST_RECV, self->s.qp,
				   block, sizeof(block[0]), 1, &posted));
	EXPECT_EQ(0, posted);
	/* One is used, one can be posted. */
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(&self->c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->s, 0, RPOST_WC_RECV);
	block[0].wr_id = 1000;
	EXPECT_EQ(0, rp_post(self->s.fd, RPOST_IOC_POST_RECV, self->s.qp,
			     block, sizeof(block[0]), 1, &posted));
	EXPECT_EQ(-ENOMEM, rp_post(self->s.fd, RPOST_IOC_POST_RECV, self->s.qp,
				   block, sizeof(block[0]), 1, &posted));
	/* All of them are used in order. */
	for (i = 1; i <= RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post_send(&self->c, &send));
		EXPECT_DONE(&self->c, 1, RPOST_WC_SEND);
		EXPECT_DONE(&self->s, i < RP_DEPTH ? i : 1000, RPOST_WC_RECV);
	}
}

/* Sends wait for receives that are not there yet. */
TEST_F(post, send_queue_full)
{
	struct rp_send block[RP_DEPTH + 5];
	uint32_t posted, i;

	for (i = 0; i < ARRAY_SIZE(block); i++)
		block[i] = op(self, RPOST_WR_SEND, i, 8);
	EXPECT_EQ(-ENOMEM, rp_post(self->c.fd, RPOST_IOC_POST_SEND, self->c.qp,
				   block, sizeof(block), ARRAY_SIZE(block),
				   &posted));
	EXPECT_EQ(RP_DEPTH, posted);
	EXPECT_EQ(-ENOMEM, rp_post_send(&self->c, &block[0]));
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, recv_into(self, i, 8));
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_DONE(&self->c, i, RPOST_WC_SEND);
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_DONE(&self->s, i, RPOST_WC_RECV);
	ASSERT_EQ(0, recv_into(self, 1, 8));
	ASSERT_EQ(0, rp_post_send(&self->c, &block[RP_DEPTH]));
	EXPECT_DONE(&self->c, RP_DEPTH, RPOST_WC_SEND);
}

TEST_F(post, flushed_in_order)
{
	struct rp_send send;
	uint64_t sends = 0, recvs = 100;
	int i;

	/* Sends that nobody receives, receives that nobody sends to. */
	for (i = 0; i < 10; i++) {
		send = op(self, RPOST_WR_SEND, i, 8);
		ASSERT_EQ(0, rp_post_send(&self->c, &send));
		ASSERT_EQ(0, rp_post_recv(&self->c, 100 + i, self->cbuf, 8,
					  self->cmr.lkey));
	}
	ASSERT_EQ(0, rp_disconnect(self->c.fd, self->c.id));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
		EXPECT_EQ(self->c.qp_num, self->wc.qp_num);
		EXPECT_EQ(self->wc.wr_id < 100 ? sends++ : recvs++,
			  self->wc.wr_id);
	}
	EXPECT_EQ(10, sends);
	EXPECT_EQ(110, recvs);
	/* More of both are flushed, too. */
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	ASSERT_EQ(0, rp_post_recv(&self->c, 5, self->cbuf, 8, self->cmr.lkey));
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	EXPECT_EQ(5, self->wc.wr_id);
}

/* The program's own word has the same effect, and the connection stays. */
TEST_F(post, flushed_by_the_program)
{
	int i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, rp_post_recv(&self->c, i, self->cbuf, 8,
					  self->cmr.lkey));
	ASSERT_EQ(0, rp_move(&self->c, RPOST_QPS_ERR));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
		EXPECT_EQ(i, (int)self->wc.wr_id);
	}
	EXPECT_NOTHING(&self->c);
	EXPECT_TRUE(rp_quiet(self->s.channel));
	EXPECT_EQ(0, rp_disconnect(self->c.fd, self->c.id));
}

/* Destroying gives up what the queue pair holds: not a word of it comes. */
TEST_F(post, discarded_by_destroy)
{
	struct rp_send send = op(self, RPOST_WR_SEND, 1, 8);
	uint32_t tail;
	int i;

	/* The ring fills by itself from now on. */
	ASSERT_EQ(0, rp_poll_cq(&self->c.cq, &self->wc));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, rp_post_recv(&self->c, i, self->cbuf, 8,
					  self->cmr.lkey));
		/* Nobody receives these. */
		ASSERT_EQ(0, rp_post_send(&self->c, &send));
	}
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	tail = self->c.cq.ring->tail;
	EXPECT_EQ(0, tail);
	EXPECT_NOTHING(&self->c);
	EXPECT_EQ(tail, self->c.cq.ring->tail);
	EXPECT_EQ(0, self->c.cq.ring->flags & RPOST_RING_OVERRUN);
}

/* What was complete before is not given up. */
TEST_F(post, completed_before_destroy)
{
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 1, 8);
	int i;

	for (i = 0; i < 10; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->c, &send));
		/* In the ring, and not taken out. */
		do {
			struct rpost_poll_cq cmd = {
				.size = sizeof(cmd),
				.handle = self->c.cq.cmd.handle,
			};

			ASSERT_EQ(0, rp_ioctl(self->c.fd, RPOST_IOC_POLL_CQ,
					      &cmd));
		} while (self->c.cq.ring->tail != (uint32_t)i + 1);
	}
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	for (i = 0; i < 10; i++)
		EXPECT_DONE(&self->c, i, RPOST_WC_RDMA_WRITE);
	EXPECT_NOTHING(&self->c);
}

TEST_F(post, message_too_long_for_its_receive)
{
	struct rp_send send = op(self, RPOST_WR_SEND, 1, 100);

	ASSERT_EQ(0, recv_into(self, 2, 99));
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->s.cq, &self->wc));
	/* rxe calls it LOC_QP_OP_ERR, and REM_OP_ERR at the other side. */
	EXPECT_TRUE(self->wc.status == RPOST_WC_LOC_LEN_ERR ||
		    self->wc.status == RPOST_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(2, self->wc.wr_id);
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
	EXPECT_TRUE(self->wc.status == RPOST_WC_REM_INV_REQ_ERR ||
		    self->wc.status == RPOST_WC_REM_OP_ERR);
	EXPECT_EQ('s', self->sbuf[99]);
}

/* ------------------------------------------------------------- threads */

#define PER_THREAD	200

static void *post_many(void *arg)
{
	FIXTURE_DATA(post) *self = arg;
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 1, 8);
	intptr_t i, ret;

	for (i = 0; i < PER_THREAD; i++) {
		do {
			ret = rp_post_send(&self->c, &send);
			if (ret)
				sched_yield();
		} while (ret == -ENOMEM);
		if (ret)
			return (void *)ret;
	}
	return NULL;
}

TEST_F(post, two_threads)
{
	pthread_t threads[2];
	void *ret;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, post_many,
					    self));
	for (i = 0; i < 2 * PER_THREAD; i++)
		EXPECT_DONE(&self->c, 1, RPOST_WC_RDMA_WRITE);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &ret));
		EXPECT_EQ(NULL, ret);
	}
	EXPECT_NOTHING(&self->c);
}

TEST_HARNESS_MAIN
