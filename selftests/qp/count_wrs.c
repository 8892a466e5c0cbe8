// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests COUNT_WRS.  A failure means that the counts of a queue pair are not those of the
 * work requests that have completed, or that counting changes what the program gets.
 */
#include <kselftest_harness.h>

#include "srq_ends.h"

#define BUF	4096
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

/* Two queue pairs in RESET that count, and are yet to be connected. */
FIXTURE(count) {
	struct rp_end a, b;
	char *buf;
	struct rpost_reg_mr amr, bmr;
	struct rpost_count_wrs cmd;
	struct rpost_wc wc;
};

FIXTURE_SETUP(count)
{
	self->buf = rp_pages(BUF);
	ASSERT_EQ(0, rp_end_init(&self->a));
	ASSERT_EQ(0, rp_end_init(&self->b));
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->buf, BUF, ALL, &self->amr));
	ASSERT_EQ(0, rp_reg_mr(self->b.fd, self->b.pd, self->buf, BUF, ALL, &self->bmr));
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&self->b, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	ASSERT_EQ(0, rp_count_wrs(&self->b, RPOST_COUNT_WRS_START, &self->cmd));
}

FIXTURE_TEARDOWN(count)
{
	rp_end_close(&self->a);
	rp_end_close(&self->b);
}

static int connect_both(FIXTURE_DATA(count) *self)
{
	RP_TRY(rp_bring_up(&self->a, RPOST_QPT_RC, self->b.qp_num));
	return rp_bring_up(&self->b, RPOST_QPT_RC, self->a.qp_num);
}

static struct rp_send op(FIXTURE_DATA(count) *self, uint32_t opcode, uint32_t flags)
{
	struct rp_send send = rp_send(opcode, opcode, self->buf, 8, self->amr.lkey);

	send.wr.send_flags = flags;
	send.wr.remote_addr = self->bmr.addr;
	send.wr.rkey = self->bmr.rkey;
	return send;
}

static int post(FIXTURE_DATA(count) *self, uint32_t opcode, uint32_t flags, int n)
{
	struct rp_send send = op(self, opcode, flags);

	while (n--)
		RP_TRY(rp_post_send(&self->a, &send));
	return 0;
}

static int receive(struct rp_end *end, struct rpost_reg_mr *mr, int n)
{
	while (n--)
		RP_TRY(rp_post_recv(end, 7, (void *)(uintptr_t)mr->addr, 64, mr->lkey));
	return 0;
}

/* Are these the counts of an end?  Each pair is what has succeeded, and failed. */
static bool are(struct rp_end *end, const uint64_t want[RPOST_NUM_WRS][2])
{
	struct rpost_count_wrs cmd;
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;
	unsigned int i;

	do {
		if (rp_count_wrs(end, 0, &cmd))
			return false;
		if (!memcmp(cmd.counts, want, sizeof(cmd.counts)))
			return true;
	} while (rp_now_ms() < limit);
	for (i = 0; i < RPOST_NUM_WRS; i++)
		fprintf(stderr, "# %u: %llu succeeded, %llu failed\n", i,
			cmd.counts[i].succeeded, cmd.counts[i].failed);
	return false;
}

#define ARE(end, ...) are(end, (const uint64_t[RPOST_NUM_WRS][2]){ __VA_ARGS__ })
#define ARE_NONE(end) ARE(end, {})

/* True if the counts of an end do not change. */
static bool stay(struct rp_end *end)
{
	struct rpost_count_wrs before, after;

	if (rp_count_wrs(end, 0, &before))
		return false;
	usleep(TEST_QUIET_MS * 1000);
	return !rp_count_wrs(end, 0, &after) && !memcmp(&before, &after, sizeof(after));
}

TEST_F(count, each_operation)
{
	static const struct {
		uint32_t opcode;
		enum rpost_wrs wrs;
		bool takes;
	} ops[] = {
		{ RPOST_WR_RDMA_WRITE, RPOST_WRS_RDMA_WRITE, false },
		{ RPOST_WR_RDMA_WRITE_WITH_IMM, RPOST_WRS_RDMA_WRITE, true },
		{ RPOST_WR_SEND, RPOST_WRS_SEND, true },
		{ RPOST_WR_SEND_WITH_IMM, RPOST_WRS_SEND, true },
		{ RPOST_WR_RDMA_READ, RPOST_WRS_RDMA_READ, false },
		{ RPOST_WR_ATOMIC_CMP_AND_SWP, RPOST_WRS_ATOMIC, false },
		{ RPOST_WR_ATOMIC_FETCH_AND_ADD, RPOST_WRS_ATOMIC, false },
	};
	uint64_t a[RPOST_NUM_WRS][2] = {}, b[RPOST_NUM_WRS][2] = {};
	unsigned int i, signaled;

	ASSERT_EQ(0, connect_both(self));
	EXPECT_TRUE(ARE_NONE(&self->a));
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		for (signaled = 0; signaled < 2; signaled++) {
			ASSERT_EQ(0, receive(&self->b, &self->bmr, ops[i].takes));
			ASSERT_EQ(0, post(self, ops[i].opcode, signaled * RPOST_SEND_SIGNALED, 1));
			a[ops[i].wrs][0]++;
			b[RPOST_WRS_RECV][0] += ops[i].takes;
			EXPECT_TRUE(are(&self->a, a)) TH_LOG("opcode %u", ops[i].opcode);
			EXPECT_TRUE(are(&self->b, b)) TH_LOG("opcode %u", ops[i].opcode);
		}
	}
	/* The ring has the completions that it would have without counts. */
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		ASSERT_EQ(1, rp_poll_cq(&self->a.cq, &self->wc));
		EXPECT_EQ(ops[i].opcode, self->wc.wr_id);
	}
	EXPECT_EQ(0, rp_poll_cq(&self->a.cq, &self->wc));
	EXPECT_TRUE(stay(&self->a));
	EXPECT_TRUE(stay(&self->b));
}

/* The last unsignaled sends are counted, too, and the program need not poll. */
TEST_F(count, unsignaled_without_end)
{
	struct rp_send send = op(self, RPOST_WR_RDMA_WRITE, 0);
	unsigned int i;
	int ret;

	ASSERT_EQ(0, connect_both(self));
	for (i = 0; i < 10 * RP_DEPTH + 1;) {
		ret = rp_post_send(&self->a, &send);
		if (ret != -ENOMEM)
			ASSERT_EQ(0, ret);
		i += !ret;
	}
	EXPECT_TRUE(ARE(&self->a, [RPOST_WRS_RDMA_WRITE] = { 10 * RP_DEPTH + 1 }));
	EXPECT_EQ(0, self->a.cq.ring->tail);
	EXPECT_TRUE(stay(&self->a));
}

/* Work requests that fail, or are flushed, count as failed. */
TEST_F(count, failures)
{
	struct rp_send bad = op(self, RPOST_WR_RDMA_WRITE, 0);

	bad.wr.rkey ^= 0xff;
	ASSERT_EQ(0, connect_both(self));
	ASSERT_EQ(0, receive(&self->a, &self->amr, 3));
	ASSERT_EQ(0, receive(&self->b, &self->bmr, 2));
	ASSERT_EQ(0, post(self, RPOST_WR_SEND, 0, 1));
	ASSERT_EQ(0, rp_post_send(&self->a, &bad));
	ASSERT_EQ(0, post(self, RPOST_WR_RDMA_READ, 0, 4));
	EXPECT_TRUE(ARE(&self->a, [RPOST_WRS_SEND] = { 1, 0 }, [RPOST_WRS_RDMA_WRITE] = { 0, 1 },
			[RPOST_WRS_RDMA_READ] = { 0, 4 }, [RPOST_WRS_RECV] = { 0, 3 }));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	EXPECT_TRUE(ARE(&self->b, [RPOST_WRS_RECV] = { 1, 1 }));
	EXPECT_TRUE(stay(&self->a));
}

/* A key that the module has refused fails on the device. */
TEST_F(count, bad_key)
{
	struct rp_send bad = op(self, RPOST_WR_RDMA_WRITE, 0);

	bad.sge.lkey ^= 0xff;
	ASSERT_EQ(0, connect_both(self));
	ASSERT_EQ(0, rp_post_send(&self->a, &bad));
	EXPECT_TRUE(ARE(&self->a, [RPOST_WRS_RDMA_WRITE] = { 0, 1 }));
	ASSERT_EQ(1, rp_poll_cq(&self->a.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status);
}

/* The ring loses completions, and the counts do not. */
TEST_F(count, ring_overrun)
{
	struct rp_cq large = self->a.cq;

	ASSERT_EQ(0, rp_create_cq(self->a.fd, self->a.device, 2, -1, &self->a.cq));
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	ASSERT_EQ(0, connect_both(self));
	ASSERT_EQ(0, post(self, RPOST_WR_RDMA_WRITE, RPOST_SEND_SIGNALED, RP_DEPTH));
	EXPECT_TRUE(ARE(&self->a, [RPOST_WRS_RDMA_WRITE] = { RP_DEPTH }));
	EXPECT_TRUE(self->a.cq.ring->flags & RPOST_RING_OVERRUN);
	rp_unmap_cq(&large);
}

/* Sends and receives may have a completion queue each. */
TEST_F(count, two_rings)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, self->buf, 8, self->bmr.lkey);
	struct rp_cq recvs;
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.pd = self->b.pd,
		.send_cq = self->b.cq.cmd.handle,
		.max_send_wr = RP_DEPTH,
		.max_recv_wr = RP_DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = RPOST_QPT_RC,
	};

	ASSERT_EQ(0, rp_create_cq(self->b.fd, self->b.device, RP_DEPTH, -1, &recvs));
	cmd.recv_cq = recvs.cmd.handle;
	ASSERT_EQ(0, rp_ioctl(self->b.fd, RPOST_IOC_CREATE_QP, &cmd));
	self->b.qp = cmd.handle;
	self->b.qp_num = cmd.qp_num;
	ASSERT_EQ(0, rp_count_wrs(&self->b, RPOST_COUNT_WRS_START, &self->cmd));
	ASSERT_EQ(0, connect_both(self));
	ASSERT_EQ(0, receive(&self->a, &self->amr, 1));
	ASSERT_EQ(0, receive(&self->b, &self->bmr, 2));
	ASSERT_EQ(0, post(self, RPOST_WR_SEND, 0, 2));
	EXPECT_TRUE(ARE(&self->b, [RPOST_WRS_RECV] = { 2 }));
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_ERR));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	ASSERT_EQ(0, rp_post_send(&self->b, &send));
	EXPECT_TRUE(ARE(&self->b, [RPOST_WRS_SEND] = { 0, 1 }, [RPOST_WRS_RECV] = { 2 }));
	rp_unmap_cq(&recvs);
}

/* RESET keeps the counts, and adds what has completed before it, but not what it drops. */
TEST_F(count, reset)
{
	uint32_t arms = 0;
	int channel;

	ASSERT_EQ(0, rp_destroy(self->b.fd, RPOST_OBJ_QP, self->b.qp));
	channel = rp_end_add_channel(&self->b, 2 * RP_DEPTH);
	ASSERT_LE(0, channel);
	ASSERT_EQ(0, rp_create_own(&self->b, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_count_wrs(&self->b, RPOST_COUNT_WRS_START, &self->cmd));
	ASSERT_EQ(0, connect_both(self));
	ASSERT_EQ(0, receive(&self->a, &self->amr, 5));
	ASSERT_EQ(0, receive(&self->b, &self->bmr, 1));
	ASSERT_EQ(0, post(self, RPOST_WR_SEND, 0, 1));
	EXPECT_TRUE(ARE(&self->b, [RPOST_WRS_RECV] = { 1 }));

	/* The event says that the device has flushed the receive, and nobody polls. */
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_ERR));
	ASSERT_EQ(0, rp_ask_event(&self->b.cq, &arms));
	ASSERT_EQ(0, receive(&self->b, &self->bmr, 1));
	ASSERT_TRUE(rp_readable(channel, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_RESET));
	EXPECT_TRUE(ARE(&self->b, [RPOST_WRS_RECV] = { 1, 1 }));
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_RESET));
	EXPECT_TRUE(ARE(&self->a, [RPOST_WRS_SEND] = { 1 }));
	EXPECT_TRUE(stay(&self->a));

	ASSERT_EQ(0, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	EXPECT_EQ(1, self->cmd.counts[RPOST_WRS_SEND].succeeded);
	ASSERT_EQ(0, connect_both(self));
	ASSERT_EQ(0, receive(&self->b, &self->bmr, 1));
	ASSERT_EQ(0, post(self, RPOST_WR_SEND, 0, 1));
	EXPECT_TRUE(ARE(&self->a, [RPOST_WRS_SEND] = { 2 }));
	EXPECT_TRUE(ARE(&self->b, [RPOST_WRS_RECV] = { 2, 1 }));
	close(channel);
}

/* Counting begins in RESET or INIT only, and does not end. */
TEST_F(count, states)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;

	ASSERT_EQ(0, rp_own_addr(&self->a, &ah));
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EINVAL, rp_count_wrs(&self->a, 0, &self->cmd));
	EXPECT_TRUE(all_bytes(self->cmd.counts, sizeof(self->cmd.counts), 0xa5));
	attr = rp_init_attr(RPOST_QPT_RC, ah.port_num);
	ASSERT_EQ(0, rp_modify(&self->a, &attr));
	EXPECT_EQ(-EINVAL, rp_count_wrs(&self->a, 0, &self->cmd));
	EXPECT_EQ(0, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	EXPECT_EQ(0, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	EXPECT_TRUE(all_bytes(self->cmd.counts, sizeof(self->cmd.counts), 0));
	attr = rp_rtr_attr(RPOST_QPT_RC, &ah, self->b.qp_num);
	ASSERT_EQ(0, rp_modify(&self->a, &attr));
	EXPECT_EQ(-EINVAL, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	attr = rp_rts_attr(RPOST_QPT_RC);
	ASSERT_EQ(0, rp_modify(&self->a, &attr));
	EXPECT_EQ(-EINVAL, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	EXPECT_EQ(0, rp_count_wrs(&self->a, 0, &self->cmd));
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_ERR));
	EXPECT_EQ(-EINVAL, rp_count_wrs(&self->a, RPOST_COUNT_WRS_START, &self->cmd));
	EXPECT_EQ(0, rp_count_wrs(&self->a, 0, &self->cmd));
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_RESET));
	EXPECT_EQ(0, rp_count_wrs(&self->a, 0, &self->cmd));
}

TEST_F(count, destroyed)
{
	ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_QP, self->a.qp));
	EXPECT_EQ(-ENOENT, rp_count_wrs(&self->a, 0, &self->cmd));
}

TEST(with_an_id)
{
	struct rp_end c, s;
	struct rpost_count_wrs cmd;
	struct rp_send send = rp_empty_send(RPOST_WR_SEND, 1);
	uint32_t listener;

	ASSERT_EQ(0, rp_end_init(&c));
	ASSERT_EQ(0, rp_end_init(&s));
	ASSERT_EQ(0, rp_listener(&s, &listener));
	ASSERT_EQ(0, rp_client_route(&c, rp_port(s.fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&c, 0));
	ASSERT_EQ(0, rp_count_wrs(&c, RPOST_COUNT_WRS_START, &cmd));
	ASSERT_EQ(0, rp_connect(c.fd, c.id));
	ASSERT_EQ(0, rp_take_request(&s, listener));
	ASSERT_EQ(0, rp_create_qp(&s, 0));
	ASSERT_EQ(0, rp_count_wrs(&s, RPOST_COUNT_WRS_START, &cmd));
	ASSERT_EQ(0, rp_post_recv(&s, 1, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_recv(&c, 2, NULL, 0, 0));
	ASSERT_EQ(0, rp_accept(s.fd, s.id));
	ASSERT_EQ(0, rp_expect(c.channel, c.id, RPOST_EVENT_ESTABLISHED));
	ASSERT_EQ(0, rp_expect(s.channel, s.id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(-EINVAL, rp_count_wrs(&c, RPOST_COUNT_WRS_START, &cmd));

	send.wr.send_flags = 0;
	ASSERT_EQ(0, rp_post_send(&c, &send));
	EXPECT_TRUE(ARE(&c, [RPOST_WRS_SEND] = { 1 }));
	EXPECT_TRUE(ARE(&s, [RPOST_WRS_RECV] = { 1 }));
	ASSERT_EQ(0, rp_disconnect(c.fd, c.id));
	EXPECT_TRUE(ARE(&c, [RPOST_WRS_SEND] = { 1 }, [RPOST_WRS_RECV] = { 0, 1 }));
	rp_end_close(&c);
	rp_end_close(&s);
}

TEST(datagrams)
{
	struct rp_end end;
	struct rpost_count_wrs cmd;
	struct rp_send send;
	uint32_t ah;
	char *buf = rp_pages(BUF);
	struct rpost_reg_mr mr;
	int i;

	ASSERT_EQ(0, rp_end_init(&end));
	ASSERT_EQ(0, rp_reg_mr(end.fd, end.pd, buf, BUF, ALL, &mr));
	ASSERT_EQ(0, rp_own_ah(&end, &ah));
	ASSERT_EQ(0, rp_create_own(&end, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_count_wrs(&end, RPOST_COUNT_WRS_START, &cmd));
	ASSERT_EQ(0, rp_bring_up(&end, RPOST_QPT_UD, 0));
	send = rp_empty_datagram(ah, end.qp_num, 1);
	send.wr.send_flags = 0;
	ASSERT_EQ(0, receive(&end, &mr, 3));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, rp_post_send(&end, &send));
	EXPECT_TRUE(ARE(&end, [RPOST_WRS_SEND] = { 3 }, [RPOST_WRS_RECV] = { 3 }));
	rp_end_close(&end);
}

/* A receive of a shared queue counts for the queue pair that has taken it. */
TEST(shared_receives)
{
	struct srq_ends e = {};
	struct rpost_count_wrs cmd;
	struct rp_end *ends[] = { &e.r1, &e.r2, &e.s1, &e.s2 };
	unsigned int i;

	ASSERT_EQ(0, srq_ends_init(&e));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, rp_move(ends[i], RPOST_QPS_RESET));
	ASSERT_EQ(0, rp_count_wrs(&e.r1, RPOST_COUNT_WRS_START, &cmd));
	ASSERT_EQ(0, rp_count_wrs(&e.r2, RPOST_COUNT_WRS_START, &cmd));
	ASSERT_EQ(0, rp_bring_up(&e.s1, RPOST_QPT_RC, e.r1.qp_num));
	ASSERT_EQ(0, rp_bring_up(&e.r1, RPOST_QPT_RC, e.s1.qp_num));
	ASSERT_EQ(0, rp_bring_up(&e.s2, RPOST_QPT_RC, e.r2.qp_num));
	ASSERT_EQ(0, rp_bring_up(&e.r2, RPOST_QPT_RC, e.s2.qp_num));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, srq_give(&e, i));
	ASSERT_EQ(0, srq_message(&e.s1, "one"));
	ASSERT_EQ(0, srq_message(&e.s2, "two"));
	ASSERT_EQ(0, srq_message(&e.s2, "three"));
	EXPECT_TRUE(ARE(&e.r1, [RPOST_WRS_RECV] = { 1 }));
	EXPECT_TRUE(ARE(&e.r2, [RPOST_WRS_RECV] = { 2 }));
	srq_ends_close(&e);
}

TEST_HARNESS_MAIN
