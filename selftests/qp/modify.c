// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs that the program brings up itself: states, attributes, what is
 * refused, and what becomes of the work that a queue pair holds.
 */
#include <kselftest_harness.h>
#include <grp.h>
#include <sys/wait.h>

#include "rpost_own.h"

#define BUF	4096
#define NOBODY	65534
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

/* One message from a to b. */
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
	EXPECT_EQ(RPOST_QPS_RTS, q.qp_state);
	EXPECT_EQ(variant->type, q.qp_type);
	EXPECT_EQ(self->b.qp_num, q.dest_qp_num);
	EXPECT_EQ(3, q.path_mtu);
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
		/* UC neither reads nor has atomics. */
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

/* What a queue pair says of itself, in each of its states. */
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
	EXPECT_EQ(0, memcmp(ah.dgid, q.dgid, 16));
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

/* Access that was not granted to the other side. */
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

/* ------------------------------------------------- work that is held */

/* Into the error state: all is flushed, each with a completion, in order. */
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
	/* More of both, too. */
	struct rp_send send = rp_send(RPOST_WR_SEND, 77, self->bbuf, 8,
				      self->bmr.lkey);

	ASSERT_EQ(0, rp_post_send(&self->b, &send));
	EXPECT_FLUSHED(&self->b, 77);
	ASSERT_EQ(0, rp_post_recv(&self->b, 78, self->bbuf, 8, self->bmr.lkey));
	EXPECT_FLUSHED(&self->b, 78);
	/* Once more is no change. */
	EXPECT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
}

/* A flush under a bad key is a flush: nothing has used the key. */
TEST_F(pair, error_flushes_bad_keys)
{
	ASSERT_EQ(0, rp_post_recv(&self->b, 1, self->bbuf, 64, 0x4711));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	EXPECT_FLUSHED(&self->b, 1);
}

/*
 * Into the reset state: nothing completes, all slots are free, and the queue
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
			/* Nobody receives these. */
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

/* With completions that nobody has fetched: they were before the reset. */
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

/* Destroyed with work outstanding: nothing of it completes any more. */
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

/* ----------------------------------------------- what is refused */

FIXTURE(own) {
	struct rp_end e;
	struct rpost_ah_attr ah;
	struct rpost_query_device dev;
	struct rpost_query_port port;
};

FIXTURE_VARIANT(own) {
	uint32_t type;
};

FIXTURE_VARIANT_ADD(own, rc) { .type = RPOST_QPT_RC };
FIXTURE_VARIANT_ADD(own, uc) { .type = RPOST_QPT_UC };
FIXTURE_VARIANT_ADD(own, ud) { .type = RPOST_QPT_UD };

FIXTURE_SETUP(own)
{
	ASSERT_EQ(0, rp_end_init(&self->e));
	ASSERT_EQ(0, rp_own_addr(&self->e, &self->ah));
	ASSERT_EQ(0, rp_create_own(&self->e, variant->type, 0));
	self->dev.size = sizeof(self->dev);
	self->dev.device = self->e.device;
	ASSERT_EQ(0, rp_ioctl(self->e.fd, RPOST_IOC_QUERY_DEVICE, &self->dev));
	self->port.size = sizeof(self->port);
	self->port.device = self->e.device;
	self->port.port = self->ah.port_num;
	ASSERT_EQ(0, rp_ioctl(self->e.fd, RPOST_IOC_QUERY_PORT, &self->port));
}

FIXTURE_TEARDOWN(own)
{
	rp_end_close(&self->e);
}

/* Up to a state, one that exists for all types. */
static int up_to(FIXTURE_DATA(own) *self, uint32_t type, uint32_t state)
{
	struct rpost_qp_attr attr;

	if (state >= RPOST_QPS_INIT) {
		attr = rp_init_attr(type, self->ah.port_num);
		RP_TRY(rp_modify(&self->e, &attr));
	}
	if (state >= RPOST_QPS_RTR) {
		attr = rp_rtr_attr(type, &self->ah, self->e.qp_num);
		RP_TRY(rp_modify(&self->e, &attr));
	}
	if (state >= RPOST_QPS_RTS) {
		attr = rp_rts_attr(type);
		RP_TRY(rp_modify(&self->e, &attr));
	}
	return 0;
}

TEST_F(own, starts_in_reset)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, NULL, 0, 0);
	struct rpost_query_qp q;

	ASSERT_EQ(0, rp_query_qp(&self->e, &q));
	EXPECT_EQ(RPOST_QPS_RESET, q.qp_state);
	EXPECT_EQ(RPOST_QPS_RESET, q.attr.qp_state);
	EXPECT_EQ(variant->type, q.qp_type);
	EXPECT_EQ(-EINVAL, rp_post_recv(&self->e, 1, NULL, 0, 0));
	EXPECT_EQ(-EINVAL, rp_post_send(&self->e, &send));
	ASSERT_EQ(0, up_to(self, variant->type, RPOST_QPS_INIT));
	EXPECT_EQ(0, rp_post_recv(&self->e, 1, NULL, 0, 0));
	EXPECT_EQ(-EINVAL, rp_post_send(&self->e, &send));
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, self->e.qp));
}

/* Every state from every state, with nothing but the state. */
TEST_F(own, transitions_need_attributes)
{
	const struct rpost_qp_attr base = { .attr_mask = RPOST_QP_STATE };
	struct rpost_qp_attr attr;
	uint32_t from, to;

	for (from = RPOST_QPS_RESET; from <= RPOST_QPS_RTS; from++) {
		for (to = 0; to <= RPOST_QPS_ERR; to++) {
			if (to == RPOST_QPS_RESET || to == RPOST_QPS_ERR ||
			    to == from || to == RPOST_QPS_SQD)
				continue;
			/* A UD queue pair needs no more to receive. */
			if (variant->type == RPOST_QPT_UD &&
			    from == RPOST_QPS_INIT && to == RPOST_QPS_RTR)
				continue;
			ASSERT_EQ(0, rp_move(&self->e, RPOST_QPS_RESET));
			ASSERT_EQ(0, up_to(self, variant->type, from));
			attr = base;
			attr.qp_state = to;
			EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
				TH_LOG("%u to %u", from, to);
			EXPECT_EQ((int)from, rp_qp_state(&self->e));
		}
	}
	/* States that do not exist. */
	attr = base;
	for (to = 7; to; to <<= 1) {
		attr.qp_state = to;
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
			TH_LOG("state %u", to);
	}
	/* More than the state on the way back. */
	attr = base;
	attr.attr_mask |= RPOST_QP_PORT;
	attr.port_num = self->ah.port_num;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	attr.attr_mask = RPOST_QP_STATE | RPOST_QP_CUR_STATE;
	attr.cur_qp_state = RPOST_QPS_SQE;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&self->e));
	/* From an assumed state that is not its own. */
	attr = rp_init_attr(variant->type, self->ah.port_num);
	attr.attr_mask |= RPOST_QP_CUR_STATE;
	attr.cur_qp_state = RPOST_QPS_RTS;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&self->e));
	/* Such a claim does not make the way shorter. */
	ASSERT_EQ(0, rp_move(&self->e, RPOST_QPS_RESET));
	attr = rp_rts_attr(variant->type);
	attr.attr_mask |= RPOST_QP_CUR_STATE;
	attr.cur_qp_state = RPOST_QPS_RTR;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	attr.cur_qp_state = RPOST_QPS_SQD;
	EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
}

/* One attribute less, and one too many. */
TEST_F(own, attributes_of_a_transition)
{
	struct rpost_qp_attr good, attr;
	unsigned int state, bit;
	uint32_t mask;

	for (state = RPOST_QPS_INIT; state <= RPOST_QPS_RTS; state++) {
		good = state == RPOST_QPS_INIT ?
		       rp_init_attr(variant->type, self->ah.port_num) :
		       state == RPOST_QPS_RTR ?
		       rp_rtr_attr(variant->type, &self->ah, self->e.qp_num) :
		       rp_rts_attr(variant->type);
		for (bit = 0; bit < 32; bit++) {
			attr = good;
			mask = 1u << bit;
			if (mask == RPOST_QP_STATE)
				continue;
			if (good.attr_mask & mask)
				attr.attr_mask &= ~mask;
			else if (mask == RPOST_QP_EN_SQD_ASYNC_NOTIFY ||
				 mask == RPOST_QP_RATE_LIMIT ||
				 (state == RPOST_QPS_INIT &&
				  mask == RPOST_QP_DEST_QPN))
				attr.attr_mask |= mask;
			else
				continue;
			/* A rate is something that devices may not have. */
			EXPECT_EQ(mask == RPOST_QP_RATE_LIMIT ? -EOPNOTSUPP :
								-EINVAL,
				  rp_modify(&self->e, &attr))
				TH_LOG("state %u without or with %#x", state,
				       mask);
			EXPECT_EQ((int)state - 1, rp_qp_state(&self->e));
		}
		ASSERT_EQ(0, rp_modify(&self->e, &good));
		EXPECT_EQ((int)state, rp_qp_state(&self->e));
	}
}

/* Bits that no version of verbs has, or that are not a program's. */
TEST_F(own, unknown_attributes)
{
	const uint32_t known = 0x21fffff & ~0x080000u;
	struct rpost_qp_attr attr;
	struct rpost_modify_qp cmd;
	unsigned int bit, i;

	for (bit = 0; bit < 32; bit++) {
		attr = rp_init_attr(variant->type, self->ah.port_num);
		attr.attr_mask |= 1u << bit;
		if (!(known & 1u << bit))
			EXPECT_EQ(-EOPNOTSUPP, rp_modify(&self->e, &attr))
				TH_LOG("mask %#x", attr.attr_mask);
	}
	attr.attr_mask = UINT32_MAX;
	EXPECT_EQ(-EOPNOTSUPP, rp_modify(&self->e, &attr));
	for (i = 0; i < sizeof(attr.reserved); i++) {
		attr = rp_init_attr(variant->type, self->ah.port_num);
		attr.reserved[i] = 1;
		EXPECT_EQ(-EOPNOTSUPP, rp_modify(&self->e, &attr));
	}
	cmd = (struct rpost_modify_qp) {
		.size = sizeof(cmd),
		.handle = self->e.qp,
		.reserved = 1,
		.attr = rp_init_attr(variant->type, self->ah.port_num),
	};
	EXPECT_EQ(-EOPNOTSUPP, rp_ioctl(self->e.fd, RPOST_IOC_MODIFY_QP, &cmd));
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
}

TEST_F(own, ports_and_indices)
{
	const struct rpost_qp_attr good = rp_init_attr(variant->type,
						       self->ah.port_num);
	const uint8_t ports[] = { 0, self->dev.phys_port_cnt + 1, 255 };
	const uint16_t pkeys[] = { self->port.pkey_tbl_len, 0x8000, 0xffff };
	struct rpost_qp_attr attr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		attr = good;
		attr.port_num = ports[i];
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
			TH_LOG("port %u", ports[i]);
		/* On the way to RESET the port does not count, or is wrong. */
		EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
	}
	for (i = 0; i < ARRAY_SIZE(pkeys); i++) {
		attr = good;
		attr.pkey_index = pkeys[i];
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr))
			TH_LOG("P_Key index %u", pkeys[i]);
		EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
	}
	if (variant->type == RPOST_QPT_UD)
		return;
	/* Rights that mean nothing to a queue pair, or do not exist. */
	attr = good;
	attr.access = 0x80000000;
	EXPECT_GT(0, rp_modify(&self->e, &attr));
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(&self->e));
}

TEST_F(own, addresses)
{
	struct rpost_qp_attr good, attr;
	struct rpost_ah_attr ah;
	unsigned int i;

	if (variant->type == RPOST_QPT_UD)
		SKIP(return, "datagram queue pairs have no address");
	ASSERT_EQ(0, up_to(self, variant->type, RPOST_QPS_INIT));
	good = rp_rtr_attr(variant->type, &self->ah, 1);
#define REFUSED(err, field, value) do {					\
	attr = good;							\
	attr.field = (value);						\
	EXPECT_EQ(err, rp_modify(&self->e, &attr))			\
		TH_LOG(#field " = " #value);				\
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));		\
} while (0)
	REFUSED(-EINVAL, ah.sgid_index, 255);
	REFUSED(-EINVAL, ah.port_num, 0);
	REFUSED(-EINVAL, ah.port_num, 255);
	REFUSED(-EINVAL, ah.is_global, 2);
	REFUSED(-EOPNOTSUPP, ah.reserved[0], 1);
	REFUSED(-EOPNOTSUPP, ah.reserved[1], 1);
	REFUSED(-EINVAL, path_mtu, 0);
	REFUSED(-EINVAL, path_mtu, 6);
	REFUSED(-EINVAL, path_mtu, UINT32_MAX);
#undef REFUSED
	if (self->port.link_layer == 2) {
		/* No GID, no Ethernet address. */
		attr = good;
		attr.ah.is_global = 0;
		EXPECT_EQ(-EINVAL, rp_modify(&self->e, &attr));
		attr = good;
		memset(attr.ah.dgid, 0, sizeof(attr.ah.dgid));
		EXPECT_GT(0, rp_modify(&self->e, &attr));
		EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));
	}
	/* Entries of the GID table that are not valid. */
	for (i = 0; i < self->port.gid_tbl_len && i < 256; i++) {
		struct rpost_gid gid;
		uint32_t count = 1;

		if (!rp_query_gids(self->e.fd, self->e.device,
				   self->ah.port_num, i, &gid, &count) &&
		    count && gid.index == i)
			continue;
		ah = self->ah;
		ah.sgid_index = i;
		attr = rp_rtr_attr(variant->type, &ah, 1);
		EXPECT_GT(0, rp_modify(&self->e, &attr))
			TH_LOG("GID %u", i);
		break;
	}
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));
	ASSERT_EQ(0, rp_modify(&self->e, &good));
}

/* Values that are not named by the mask do not count. */
TEST_F(own, values_without_their_bit)
{
	struct rpost_qp_attr attr = rp_init_attr(variant->type,
						 self->ah.port_num), fill;

	memset(&fill, 0xff, sizeof(fill));
	memset(fill.reserved, 0, sizeof(fill.reserved));
	memset(&fill.ah, 0, sizeof(fill.ah));
	memset(&fill.alt_ah, 0, sizeof(fill.alt_ah));
	fill.attr_mask = attr.attr_mask;
	fill.qp_state = attr.qp_state;
	fill.pkey_index = attr.pkey_index;
	fill.port_num = attr.port_num;
	fill.qkey = attr.qkey;
	fill.access = attr.access;
	EXPECT_EQ(0, rp_modify(&self->e, &fill));
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&self->e));
}

/* Handles that are no queue pair's of this file. */
TEST_F(own, handles)
{
	struct rp_end other = self->e;

	other.fd = rp_open();
	ASSERT_LE(0, other.fd);
	EXPECT_EQ(-ENOENT, rp_move(&other, RPOST_QPS_ERR));
	close(other.fd);
	other = self->e;
	other.qp = self->e.pd;
	EXPECT_EQ(-ENOENT, rp_move(&other, RPOST_QPS_ERR));
	other.qp = self->e.cq.cmd.handle;
	EXPECT_EQ(-ENOENT, rp_move(&other, RPOST_QPS_ERR));
	other.qp = 0;
	EXPECT_EQ(-ENOENT, rp_move(&other, RPOST_QPS_ERR));
	ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, self->e.qp));
	EXPECT_EQ(-ENOENT, rp_move(&self->e, RPOST_QPS_ERR));
}

/* What is needed, and what is not, to make one. */
TEST_F(own, creation)
{
	struct rpost_create_qp cmd, good = {
		.size = sizeof(good),
		.pd = self->e.pd,
		.send_cq = self->e.cq.cmd.handle,
		.recv_cq = self->e.cq.cmd.handle,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = variant->type,
	};
	const uint32_t types[] = { 1, 5, 6, 8, 9, 0xff, 0x100, UINT32_MAX };
	int objects = rp_num_objects(self->e.fd);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		cmd = good;
		cmd.qp_type = types[i];
		EXPECT_EQ(-EINVAL, rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP,
					    &cmd))
			TH_LOG("type %u", types[i]);
	}
	cmd = good;
	cmd.id = 0x7ffffff0;
	EXPECT_GT(0, rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, &cmd));
	cmd = good;
	cmd.srq = self->e.pd;
	EXPECT_EQ(-ENOENT, rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, &cmd));
	cmd = good;
	cmd.pd = 0;
	EXPECT_EQ(-ENOENT, rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, &cmd));
	EXPECT_EQ(objects, rp_num_objects(self->e.fd));
	cmd = good;
	ASSERT_EQ(0, rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, &cmd));
	EXPECT_EQ(-EBUSY, rp_destroy(self->e.fd, RPOST_OBJ_PD, self->e.pd));
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, cmd.handle));
}

/* Only an RC queue pair can be an id's. */
TEST_F(own, type_of_an_id)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.pd = self->e.pd,
		.send_cq = self->e.cq.cmd.handle,
		.recv_cq = self->e.cq.cmd.handle,
		.qp_type = variant->type,
	};

	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &cmd.id));
	ASSERT_EQ(0, rp_bind(self->e.fd, cmd.id, 0));
	EXPECT_EQ(variant->type == RPOST_QPT_RC ? 0 : -EINVAL,
		  rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, &cmd));
}

/* ---------------------------------------------------- the id's queue pair */

/* Its states are the connection manager's, but for the error state. */
TEST(state_of_an_ids_queue_pair)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;
	struct rpost_wc wc;
	struct rp_end c, s;
	uint32_t state;

	ASSERT_EQ(0, rp_connect_pair(&c, &s, 0));
	ASSERT_EQ(0, rp_own_addr(&c, &ah));
	for (state = RPOST_QPS_RESET; state < RPOST_QPS_ERR; state++) {
		EXPECT_EQ(-EINVAL, rp_move(&c, state))
			TH_LOG("state %u", state);
		EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&c));
	}
	attr = rp_rts_attr(RPOST_QPT_RC);
	EXPECT_EQ(-EINVAL, rp_modify(&c, &attr));
	attr = rp_rtr_attr(RPOST_QPT_RC, &ah, 1);
	EXPECT_EQ(-EINVAL, rp_modify(&c, &attr));
	/* What may change in its state may. */
	attr = (struct rpost_qp_attr) {
		.attr_mask = RPOST_QP_MIN_RNR_TIMER, .min_rnr_timer = 5,
	};
	EXPECT_EQ(0, rp_modify(&c, &attr));
	/* And what may not, does not. */
	attr = (struct rpost_qp_attr) {
		.attr_mask = RPOST_QP_DEST_QPN, .dest_qp_num = 1,
	};
	EXPECT_EQ(-EINVAL, rp_modify(&c, &attr));
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&c));
	ASSERT_EQ(0, rp_post_recv(&c, 9, NULL, 0, 0));
	ASSERT_EQ(0, rp_move(&c, RPOST_QPS_ERR));
	ASSERT_EQ(1, rp_wait_cq(&c.cq, &wc));
	EXPECT_EQ(9, wc.wr_id);
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(RPOST_QPS_ERR, rp_qp_state(&c));
	EXPECT_EQ(-EINVAL, rp_move(&c, RPOST_QPS_RESET));
	/* The connection still ends as others do. */
	EXPECT_EQ(0, rp_disconnect(c.fd, c.id));
	EXPECT_EQ(0, rp_expect(s.channel, s.id, RPOST_EVENT_DISCONNECTED));
	rp_end_close(&c);
	rp_end_close(&s);
}

/* Before the connection, and with receives posted. */
TEST(error_before_the_connection)
{
	struct rp_end e;
	struct rpost_wc wc;

	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, rp_create_id(e.fd, e.channel, &e.id));
	ASSERT_EQ(0, rp_bind(e.fd, e.id, 0));
	ASSERT_EQ(0, rp_create_qp(&e, 0));
	EXPECT_EQ(RPOST_QPS_INIT, rp_qp_state(&e));
	ASSERT_EQ(0, rp_post_recv(&e, 3, NULL, 0, 0));
	ASSERT_EQ(0, rp_move(&e, RPOST_QPS_ERR));
	ASSERT_EQ(1, rp_wait_cq(&e.cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(0, rp_destroy(e.fd, RPOST_OBJ_QP, e.qp));
	EXPECT_EQ(0, rp_destroy(e.fd, RPOST_OBJ_ID, e.id));
	rp_end_close(&e);
}

/* ------------------------------------------------------ privileged keys */

/* As nobody: 0 if a privileged key is refused and an ordinary one is not. */
static int try_qkeys(void)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;
	struct rp_end e;

	RP_TRY(rp_end_init(&e));
	RP_TRY(rp_own_addr(&e, &ah));
	RP_TRY(rp_create_own(&e, RPOST_QPT_UD, 0));
	attr = rp_init_attr(RPOST_QPT_UD, ah.port_num);
	attr.qkey = 0x80000000;
	if (rp_modify(&e, &attr) != -EPERM)
		return 10;
	attr.qkey = 0x80010000;
	if (rp_modify(&e, &attr) != -EPERM)
		return 11;
	attr.qkey = UINT32_MAX;
	if (rp_modify(&e, &attr) != -EPERM)
		return 12;
	if (rp_qp_state(&e) != RPOST_QPS_RESET)
		return 13;
	attr.qkey = 0x7fffffff;
	RP_TRY(rp_modify(&e, &attr));
	/* Nor later. */
	attr = (struct rpost_qp_attr) {
		.attr_mask = RPOST_QP_QKEY, .qkey = 0x80000001,
	};
	if (rp_modify(&e, &attr) != -EPERM)
		return 14;
	attr.qkey = 0x11;
	RP_TRY(rp_modify(&e, &attr));
	return 0;
}

TEST(privileged_queue_keys)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;
	int status = -1, ret;
	struct rp_end e;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root to become nobody");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(1);
		ret = try_qkeys();
		_exit(ret < 0 ? 99 : ret);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status >> 8);
	/* With the capability it is a key like others. */
	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, rp_own_addr(&e, &ah));
	ASSERT_EQ(0, rp_create_own(&e, RPOST_QPT_UD, 0));
	attr = rp_init_attr(RPOST_QPT_UD, ah.port_num);
	attr.qkey = 0x80000000;
	EXPECT_EQ(0, rp_modify(&e, &attr));
	rp_end_close(&e);
}

TEST_HARNESS_MAIN
