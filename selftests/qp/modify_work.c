// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests two queue pairs that the program connects by hand.  Messages must pass
 * between them, and outstanding work must be flushed in ERR and discarded by
 * RESET and DESTROY.
 */
#include <kselftest_harness.h>

#include "rpost_own.h"

#define BUF	4096
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

/* Two queue pairs connected by hand, each with a buffer. */
FIXTURE(pair) {
	struct rp_end a, b;
	char *abuf, *bbuf;
	struct rpost_reg_mr amr, bmr;
	struct rpost_wc wc;
};

FIXTURE_VARIANT(pair) {
	uint32_t type;
};

FIXTURE_VARIANT_ADD(pair, rc) { .type = RPOST_QPT_RC };
FIXTURE_VARIANT_ADD(pair, uc) { .type = RPOST_QPT_UC };

FIXTURE_SETUP(pair)
{
	self->abuf = rp_pages(BUF);
	self->bbuf = rp_pages(BUF);
	memset(self->abuf, 'a', BUF);
	memset(self->bbuf, 'b', BUF);
	ASSERT_EQ(0, rp_own_pair(&self->a, &self->b, variant->type));
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->abuf, BUF, ALL,
			       &self->amr));
	ASSERT_EQ(0, rp_reg_mr(self->b.fd, self->b.pd, self->bbuf, BUF, ALL,
			       &self->bmr));
}

FIXTURE_TEARDOWN(pair)
{
	rp_end_close(&self->a);
	rp_end_close(&self->b);
}

#define EXPECT_DONE(end, id) do {					\
	ASSERT_EQ(1, rp_wait_cq(&(end)->cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ((end)->qp_num, self->wc.qp_num);			\
} while (0)

#define EXPECT_FLUSHED(end, id) do {					\
	ASSERT_EQ(1, rp_wait_cq(&(end)->cq, &self->wc));		\
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);		\
	EXPECT_EQ((int)(id), (int)self->wc.wr_id);					\
	EXPECT_EQ((end)->qp_num, self->wc.qp_num);			\
} while (0)

static struct rp_send op(FIXTURE_DATA(pair) *self, uint32_t opcode,
			 uint64_t wr_id, uint32_t length)
{
	struct rp_send send = rp_send(opcode, wr_id, self->abuf, length,
				      self->amr.lkey);

	send.wr.remote_addr = self->bmr.addr;
	send.wr.rkey = self->bmr.rkey;
	return send;
}

/* Send one message from a to b. */
static int message(FIXTURE_DATA(pair) *self, uint64_t wr_id)
{
	struct rp_send send = op(self, RPOST_WR_SEND, wr_id, 100);

	RP_TRY(rp_post_recv(&self->b, wr_id, self->bbuf, BUF, self->bmr.lkey));
	RP_TRY(rp_post_send(&self->a, &send));
	if (rp_wait_cq(&self->b.cq, &self->wc) != 1 || self->wc.status ||
	    self->wc.wr_id != wr_id || self->wc.byte_len != 100)
		return -EPROTO;
	return rp_wait_cq(&self->a.cq, &self->wc) == 1 ? 0 : -ETIME;
}

TEST_F(pair, messages)
{
	struct rpost_query_qp q;

	EXPECT_EQ(0, message(self, 7));
	EXPECT_EQ(0, memcmp(self->abuf, self->bbuf, 100));
	EXPECT_EQ('b', self->bbuf[100]);
	ASSERT_EQ(0, rp_query_qp(&self->a, &q));
	EXPECT_EQ(RPOST_QPS_RTS, q.attr.qp_state);
	EXPECT_EQ(variant->type, q.qp_type);
	EXPECT_EQ(self->b.qp_num, q.attr.dest_qp_num);
	EXPECT_EQ(3, q.attr.path_mtu);
	EXPECT_EQ(0, q.srq);
}

TEST_F(pair, opcodes)
{
	const uint32_t ops[] = {
		RPOST_WR_RDMA_WRITE, RPOST_WR_RDMA_WRITE_WITH_IMM,
		RPOST_WR_SEND, RPOST_WR_SEND_WITH_IMM, RPOST_WR_RDMA_READ,
		RPOST_WR_ATOMIC_CMP_AND_SWP, RPOST_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct rp_send send;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		send = op(self, ops[i], i, 8);
		ASSERT_EQ(0, rp_post_recv(&self->b, i, self->bbuf, 64,
					  self->bmr.lkey));
		/* UC has neither reads nor atomic operations. */
		if (variant->type == RPOST_QPT_UC &&
		    ops[i] >= RPOST_WR_RDMA_READ) {
			EXPECT_EQ(-EINVAL, rp_post_send(&self->a, &send))
				TH_LOG("opcode %u", ops[i]);
			continue;
		}
		ASSERT_EQ(0, rp_post_send(&self->a, &send))
			TH_LOG("opcode %u", ops[i]);
		EXPECT_DONE(&self->a, i);
	}
}

/* QUERY_QP returns the right values in each state. */
TEST_F(pair, queried)
{
	struct rpost_ah_attr ah;
	struct rpost_query_qp q;

	ASSERT_EQ(0, rp_own_addr(&self->a, &ah));
	ASSERT_EQ(0, rp_query_qp(&self->a, &q));
	EXPECT_EQ(0, q.attr.reserved[0]);
	EXPECT_EQ(RPOST_QPS_RTS, q.attr.qp_state);
	EXPECT_EQ(3, q.attr.path_mtu);
	EXPECT_EQ(RP_PSN, q.attr.rq_psn);
	EXPECT_EQ(self->b.qp_num, q.attr.dest_qp_num);
	EXPECT_EQ(ah.port_num, q.attr.port_num);
	EXPECT_EQ(0, memcmp(ah.dgid, q.attr.ah.dgid, 16));
	EXPECT_EQ(0, memcmp(ah.dgid, q.attr.ah.dgid, 16));
	EXPECT_EQ(ah.sgid_index, q.attr.ah.sgid_index);
	EXPECT_EQ(1, q.attr.ah.is_global);
	EXPECT_EQ(64, q.attr.ah.hop_limit);
	EXPECT_EQ(RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_REMOTE_READ |
		  RPOST_ACCESS_REMOTE_ATOMIC, q.attr.access & ALL);
	if (variant->type == RPOST_QPT_RC) {
		EXPECT_EQ(18, q.attr.timeout);
		EXPECT_EQ(7, q.attr.retry_cnt);
		EXPECT_EQ(7, q.attr.rnr_retry);
		EXPECT_EQ(4, q.attr.max_rd_atomic);
		EXPECT_EQ(4, q.attr.max_dest_rd_atomic);
		EXPECT_EQ(1, q.attr.min_rnr_timer);
	}
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_ERR));
	EXPECT_EQ(RPOST_QPS_ERR, rp_qp_state(&self->a));
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_RESET));
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->a));
}

/* The queue pair of the responder does not allow the access. */
TEST_F(pair, access_flags)
{
	struct rpost_qp_attr attr = {
		.attr_mask = RPOST_QP_ACCESS_FLAGS,
		.access = RPOST_ACCESS_REMOTE_READ,
	};
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 1, 8);

	ASSERT_EQ(0, rp_modify(&self->b, &attr));
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->a.cq, &self->wc));
	if (variant->type == RPOST_QPT_RC)
		EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ('b', self->bbuf[0]);
}

/* ------------------------------------------------ outstanding work */

/* ERR flushes all work, each request with a completion, in order. */
TEST_F(pair, error_flushes)
{
	int i;

	for (i = 0; i < RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post_recv(&self->b, i, self->bbuf, 64,
					  self->bmr.lkey));
	}
	EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	for (i = 0; i < RP_DEPTH; i++) {
		EXPECT_FLUSHED(&self->b, i);
	}
	/* Later requests are flushed, too. */
	struct rp_send send = rp_send(RPOST_WR_SEND, 77, self->bbuf, 8,
				      self->bmr.lkey);

	ASSERT_EQ(0, rp_post_send(&self->b, &send));
	EXPECT_FLUSHED(&self->b, 77);
	ASSERT_EQ(0, rp_post_recv(&self->b, 78, self->bbuf, 8, self->bmr.lkey));
	EXPECT_FLUSHED(&self->b, 78);
	/* ERR to ERR changes nothing. */
	EXPECT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
}

/* A receive with a bad key is flushed, because no message has used it. */
TEST_F(pair, error_flushes_bad_keys)
{
	ASSERT_EQ(0, rp_post_recv(&self->b, 1, self->bbuf, 64, 0x4711));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	EXPECT_FLUSHED(&self->b, 1);
}

/*
 * RESET discards all work without completions and frees all slots; the queue
 * pair can be brought up again.
 */
TEST_F(pair, reset_gives_up)
{
	int i, round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < RP_DEPTH; i++) {
			ASSERT_EQ(0, rp_post_recv(&self->b, i, self->bbuf, 64,
						  self->bmr.lkey));
		}
		EXPECT_EQ(-ENOMEM, rp_post_recv(&self->b, i, self->bbuf, 64,
						self->bmr.lkey));
		if (variant->type == RPOST_QPT_RC) {
			/* The peer's receives are used up, so these wait. */
			for (i = 0; i < RP_DEPTH; i++) {
				struct rp_send send;

				send = rp_send(RPOST_WR_SEND, i, self->bbuf, 8,
					       self->bmr.lkey);
				ASSERT_EQ(0, rp_post_send(&self->b, &send));
			}
		}
		ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_RESET));
		EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->b));
		EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
		EXPECT_EQ(-EINVAL, rp_post_recv(&self->b, 1, self->bbuf, 64,
						self->bmr.lkey));
		ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_bring_up(&self->a, variant->type,
					 self->b.qp_num));
		ASSERT_EQ(0, rp_bring_up(&self->b, variant->type,
					 self->a.qp_num));
		for (i = 0; i < RP_DEPTH + 3; i++) {
			ASSERT_EQ(0, message(self, i));
		}
	}
}

/* RESET keeps completions that happened before it and were not polled. */
TEST_F(pair, reset_with_completions_waiting)
{
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 1, 8);
	int i, got = 0;

	for (i = 0; i < RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post_send(&self->a, &send));
	}
	usleep(TEST_QUIET_MS * 1000);
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_RESET));
	while (rp_poll_cq(&self->a.cq, &self->wc) == 1) {
		EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
		got++;
	}
	EXPECT_GE(RP_DEPTH, got);
	EXPECT_TRUE(rp_quiet_cq(&self->a.cq));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_RESET));
	ASSERT_EQ(0, rp_bring_up(&self->b, variant->type, self->a.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->a, variant->type, self->b.qp_num));
	for (i = 0; i < 2 * RP_DEPTH; i++) {
		ASSERT_EQ(0, message(self, i));
	}
}

/* DESTROY discards outstanding work without completions. */
TEST_F(pair, destroy_discards)
{
	uint32_t tail;
	int i;

	ASSERT_EQ(0, rp_poll_cq(&self->b.cq, &self->wc));
	for (i = 0; i < RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post_recv(&self->b, i, self->bbuf, 64,
					  self->bmr.lkey));
	}
	tail = self->b.cq.ring->tail;
	ASSERT_EQ(0, rp_destroy(self->b.fd, RPOST_OBJ_QP, self->b.qp));
	EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
	EXPECT_EQ(tail, self->b.cq.ring->tail);
	EXPECT_EQ(0, self->b.cq.ring->flags & RPOST_RING_OVERRUN);
	EXPECT_EQ(0, rp_destroy(self->b.fd, RPOST_OBJ_CQ,
				self->b.cq.cmd.handle));
}

TEST_HARNESS_MAIN
