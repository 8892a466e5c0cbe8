// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests devices that do not flush, that forget completions, or that refuse to
 * destroy objects.  A failure means that a program waits too long, that a
 * receive is lost, or that a kept object is used again.  Needs root and
 * selftests/rdmasim, which has parameters for these vices.
 */
#include <kselftest_harness.h>

#include "cgroup.h"
#include "faults.h"
#include "rpost_own.h"

#define VICES		"/sys/module/rdmasim/parameters"
#define PAIRS		500
#define DRAIN_MS	2000
#define REST_MS		5000	/* for all queue pairs but the first */
#define TRIES		50	/* on a busy host */
#define RECVS		16
#define BYTES		64

static int set_vice(const char *name, unsigned int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	return cg_put(VICES, name, text);
}

#define NEED_VICES()							\
	do {								\
		if (!self->able)					\
			SKIP(return, "needs root and rdmasim");		\
	} while (0)

FIXTURE(vices) {
	struct rp_end c, s;
	char counts[RP_COUNTS];
	char *buf;
	long drain_ms;
	bool able;
};

FIXTURE_SETUP(vices)
{
	self->able = !geteuid() && !access(VICES "/purge", W_OK);
	if (!self->able)
		return;
	self->drain_ms = rp_module_number("parameters/drain_ms");
	rp_counts(self->counts);
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	self->buf = rp_pages(BYTES);
	ASSERT_NE(NULL, self->buf);
}

FIXTURE_TEARDOWN(vices)
{
	if (!self->able)
		return;
	EXPECT_EQ(0, set_vice("never_flushes", false));
	EXPECT_EQ(0, set_vice("purge", false));
	EXPECT_EQ(0, set_vice("fail_dereg_mr", 0));
	EXPECT_EQ(0, set_vice("fail_destroy_qp", 0));
	EXPECT_EQ(0, rp_set_number("drain_ms", self->drain_ms));
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* Returns how long connected queue pairs take to close, which @drain_ms belong to. */
static long close_pairs(struct __test_metadata *_metadata, bool flushes, long drain_ms)
{
	struct rp_end c, s;
	uint64_t began;
	long ms;
	int i;

	ASSERT_EQ(0, rp_end_init(&c));
	ASSERT_EQ(0, rp_end_init(&s));
	for (i = 0; i < PAIRS; i++)
		ASSERT_EQ(0, rp_own_join(&c, &s, RPOST_QPT_RC));
	ASSERT_EQ(0, set_vice("never_flushes", !flushes));
	began = rp_now_ms();
	rp_end_close(&c);
	EXPECT_LE(drain_ms, (long)(rp_now_ms() - began) + TEST_TICKS_MS);
	rp_end_close(&s);
	ms = rp_now_ms() - began;
	ASSERT_EQ(0, set_vice("never_flushes", false));
	TH_LOG("%d queue pairs%s: %ld ms", 2 * PAIRS,
	       flushes ? "" : " that are not flushed", ms);
	return ms;
}

/*
 * Returns what closing may take beside the drain, on a busy host twice the time
 * of queue pairs that are flushed.
 */
static long allowed_ms(struct __test_metadata *_metadata, long ms)
{
	long flushed = ms > REST_MS ? 2 * close_pairs(_metadata, true, 0) : 0;

	return flushed > REST_MS ? flushed : REST_MS;
}

/*
 * The events of ibv_get_async_event(3), with the type of object that each one names.  The
 * RDMA core itself reports changes of GIDs (api/async link.gid_change).
 */
static const struct {
	uint32_t event, obj_type;
} async_events[] = {
	{ RPOST_ASYNC_QP_FATAL, RPOST_OBJ_QP },
	{ RPOST_ASYNC_QP_REQ_ERR, RPOST_OBJ_QP },
	{ RPOST_ASYNC_QP_ACCESS_ERR, RPOST_OBJ_QP },
	{ RPOST_ASYNC_COMM_EST, RPOST_OBJ_QP },
	{ RPOST_ASYNC_SQ_DRAINED, RPOST_OBJ_QP },
	{ RPOST_ASYNC_PATH_MIG, RPOST_OBJ_QP },
	{ RPOST_ASYNC_PATH_MIG_ERR, RPOST_OBJ_QP },
	{ RPOST_ASYNC_QP_LAST_WQE_REACHED, RPOST_OBJ_QP },
	{ RPOST_ASYNC_CQ_ERR, RPOST_OBJ_CQ },
	{ RPOST_ASYNC_SRQ_ERR, RPOST_OBJ_SRQ },
	{ RPOST_ASYNC_SRQ_LIMIT_REACHED, RPOST_OBJ_SRQ },
	{ RPOST_ASYNC_DEVICE_FATAL, 0 },
	{ RPOST_ASYNC_PORT_ACTIVE, 0 },
	{ RPOST_ASYNC_PORT_ERR, 0 },
	{ RPOST_ASYNC_LID_CHANGE, 0 },
	{ RPOST_ASYNC_PKEY_CHANGE, 0 },
	{ RPOST_ASYNC_SM_CHANGE, 0 },
	{ RPOST_ASYNC_CLIENT_REREGISTER, 0 },
};

TEST_F(vices, every_event)
{
	struct rpost_create_srq srq;
	uint32_t handles[RPOST_OBJ_SRQ + 1] = {};
	struct rpost_async_event event;
	unsigned int i;
	int ch;

	NEED_VICES();
	ASSERT_EQ(0, rp_create_srq(self->c.fd, self->c.pd, 8, &srq));
	ASSERT_EQ(0, rp_create_own(&self->c, RPOST_QPT_RC, srq.handle));
	handles[RPOST_OBJ_QP] = self->c.qp;
	handles[RPOST_OBJ_CQ] = self->c.cq.cmd.handle;
	handles[RPOST_OBJ_SRQ] = srq.handle;
	ch = rp_async_channel(self->c.fd, self->c.device);
	ASSERT_LE(0, ch);
	for (i = 0; i < ARRAY_SIZE(async_events); i++) {
		while (rp_readable(ch, 0))
			ASSERT_EQ(sizeof(event), (size_t)read(ch, &event, sizeof(event)));
		ASSERT_EQ(0, set_vice("raise", async_events[i].event));
		ASSERT_EQ(0, rp_async_wait(ch, async_events[i].event, &event))
			TH_LOG("event %u", async_events[i].event);
		EXPECT_EQ(async_events[i].obj_type, event.obj_type);
		EXPECT_EQ(handles[async_events[i].obj_type], event.handle);
		EXPECT_EQ(!event.obj_type && event.event != RPOST_ASYNC_DEVICE_FATAL, event.port);
	}
	close(ch);
}

/*
 * A device that does not flush is waited for once, until it flushes again.  As
 * the module is loaded, it waits for 10 s, and closing takes 15 s at most.
 */
TEST_F(vices, never_flushes)
{
	const long drain_ms[] = { self->drain_ms, DRAIN_MS };
	int i, ret, round;
	long rest;

	NEED_VICES();
	rp_expect_log("rdma_post: [a-z0-9]+: queue pair [0-9]+ cannot be drained: -110");
	for (round = 0; round < (int)ARRAY_SIZE(drain_ms); round++) {
		ASSERT_EQ(0, rp_set_number("drain_ms", drain_ms[round]));
		rest = close_pairs(_metadata, false, drain_ms[round]) -
		       drain_ms[round];
		EXPECT_GE(allowed_ms(_metadata, rest), rest);
		/*
		 * Reset queue pairs until one is flushed: the device is waited
		 * for again.
		 */
		for (i = 0, ret = -1; ret && i < TRIES; i++) {
			ASSERT_EQ(0, rp_own_join(&self->c, &self->s, RPOST_QPT_RC));
			ret = rp_move(&self->c, RPOST_QPS_RESET);
			ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
			ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
		}
		ASSERT_EQ(0, ret);
	}
}

/*
 * After a reset that failed, posts fail until one succeeds, also in the error state:
 * they would get no completions.
 */
TEST_F(vices, posts_after_a_failed_reset)
{
	struct rp_send send = rp_empty_send(RPOST_WR_RDMA_WRITE, 1);
	struct rp_end *c = &self->c;
	struct rpost_wc wc;
	int i, ret = -1;

	NEED_VICES();
	rp_expect_log("rdma_post: [a-z0-9]+: queue pair [0-9]+ cannot be drained: -110");
	ASSERT_EQ(0, rp_set_number("drain_ms", DRAIN_MS));
	ASSERT_EQ(0, rp_own_join(c, &self->s, RPOST_QPT_RC));
	ASSERT_EQ(0, set_vice("never_flushes", true));
	EXPECT_EQ(-ETIMEDOUT, rp_move(c, RPOST_QPS_RESET));
	EXPECT_EQ(-EINVAL, rp_post_send(c, &send));
	EXPECT_EQ(0, rp_move(c, RPOST_QPS_ERR));
	EXPECT_EQ(-EINVAL, rp_post_send(c, &send));
	EXPECT_EQ(-EINVAL, rp_post_recv(c, 2, self->buf, 0, 0));
	ASSERT_EQ(0, set_vice("never_flushes", false));
	for (i = 0; ret && i < TRIES; i++)
		ret = rp_move(c, RPOST_QPS_RESET);
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, rp_bring_up(c, RPOST_QPT_RC, self->s.qp_num));
	ASSERT_EQ(0, rp_move(c, RPOST_QPS_ERR));
	EXPECT_EQ(0, rp_post_send(c, &send));
	ASSERT_EQ(1, rp_wait_cq(&c->cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	EXPECT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
}

/*
 * Receives of a shared receive queue complete, but are not polled.  Then the
 * queue pair is destroyed or reset, and the device forgets the completions.
 * Each receive can be posted again.
 */
static void purged(struct __test_metadata *_metadata, FIXTURE_DATA(vices) *self,
		   bool reset)
{
	struct rpost_create_srq srq;
	struct rpost_reg_mr cmr, smr;
	volatile char *to;
	struct rp_send send;
	struct rpost_wc wc;
	uint64_t end;
	uint32_t ah;
	char *buf;
	int i, round;

	ASSERT_EQ(0, set_vice("purge", true));
	buf = rp_pages(RECVS * (RP_GRH + BYTES));
	ASSERT_NE(NULL, buf);
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, buf, BYTES, 0, &cmr));
	ASSERT_EQ(0, rp_create_own(&self->c, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_bring_up(&self->c, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_own_ah(&self->c, &ah));

	to = rp_pages(RECVS * (RP_GRH + BYTES));
	ASSERT_NE(NULL, to);
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, (void *)to,
			       RECVS * (RP_GRH + BYTES),
			       RPOST_ACCESS_LOCAL_WRITE, &smr));
	ASSERT_EQ(0, rp_create_srq(self->s.fd, self->s.pd, RECVS, &srq));
	memset(buf, 1, BYTES);
	for (round = 0; round < 3; round++) {
		if (!round || !reset) {
			ASSERT_EQ(0, rp_create_own(&self->s, RPOST_QPT_UD,
						   srq.handle));
		}
		ASSERT_EQ(0, rp_bring_up(&self->s, RPOST_QPT_UD, 0));
		for (i = 0; i < RECVS; i++) {
			to[i * (RP_GRH + BYTES) + RP_GRH + BYTES - 1] = 0;
			ASSERT_EQ(0, rp_post_srq(self->s.fd, srq.handle, i,
						 (char *)to + i * (RP_GRH + BYTES),
						 RP_GRH + BYTES, smr.lkey));
		}
		for (i = 0; i < RECVS; i++) {
			send = rp_datagram(ah, self->s.qp_num, i, buf, BYTES,
					   cmr.lkey);
			ASSERT_EQ(0, rp_post_send(&self->c, &send));
			ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &wc));
			ASSERT_EQ(RPOST_WC_SUCCESS, wc.status);
		}
		/*
		 * When the last datagram has arrived, all others have
		 * completed.
		 */
		end = rp_now_ms() + TEST_TIMEOUT_MS;
		while (!to[RECVS * (RP_GRH + BYTES) - 1] && rp_now_ms() < end)
			usleep(100);
		ASSERT_EQ(1, to[RECVS * (RP_GRH + BYTES) - 1]);
		if (reset) {
			ASSERT_EQ(0, rp_move(&self->s, RPOST_QPS_RESET));
			continue;
		}
		ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
	}
}

TEST_F(vices, purges_at_destroy)
{
	NEED_VICES();
	purged(_metadata, self, false);
}

TEST_F(vices, purges_at_reset)
{
	NEED_VICES();
	purged(_metadata, self, true);
}

/* Connect, and register a region to send from. */
static int join_with_region(FIXTURE_DATA(vices) *self, struct rpost_reg_mr *mr)
{
	RP_TRY(rp_own_join(&self->c, &self->s, RPOST_QPT_RC));
	return rp_reg_mr(self->c.fd, self->c.pd, self->buf, BYTES, 0, mr);
}

/* The device keeps a region for a while, and is asked again. */
TEST_F(vices, keeps_a_region)
{
	struct rpost_reg_mr mr;
	struct rp_send send;
	struct rpost_wc wc;
	int i;

	NEED_VICES();
	ASSERT_EQ(0, join_with_region(self, &mr));
	ASSERT_EQ(0, set_vice("fail_dereg_mr", 2));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-EBUSY, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
	/* No work request can use the region meanwhile. */
	send = rp_send(RPOST_WR_SEND, 1, self->buf, BYTES, mr.lkey);
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(-ENOENT, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
}

/* The device keeps a queue pair for a while; posts to it fail. */
TEST_F(vices, keeps_a_queue_pair)
{
	struct rpost_reg_mr mr;
	struct rp_send send;
	int i;

	NEED_VICES();
	ASSERT_EQ(0, join_with_region(self, &mr));
	ASSERT_EQ(0, set_vice("fail_destroy_qp", 2));
	for (i = 0; i < 2; i++)
		EXPECT_EQ(-EBUSY, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	send = rp_send(RPOST_WR_SEND, 1, self->buf, BYTES, mr.lkey);
	EXPECT_EQ(-ENODEV, rp_post_send(&self->c, &send));
	EXPECT_EQ(-EBUSY, rp_destroy(self->c.fd, RPOST_OBJ_CQ, self->c.cq.cmd.handle));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	EXPECT_EQ(-ENOENT, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
}

static int refused_destroy(struct rp_end *end)
{
	RP_TRY(set_vice("fail_destroy_qp", 1));
	return rp_destroy(end->fd, RPOST_OBJ_QP, end->qp);
}

/* A queue pair that the device refused to destroy cannot be used again. */
TEST_F(vices, kept_queue_pair_is_not_used_again)
{
	struct rpost_qp_attr attr;
	struct rp_end *c = &self->c;

	NEED_VICES();
	ASSERT_EQ(0, rp_create_own(c, RPOST_QPT_RC, 0));
	attr = rp_init_attr(RPOST_QPT_RC, 1);
	ASSERT_EQ(-EBUSY, refused_destroy(c));
	EXPECT_EQ(-ENODEV, rp_modify(c, &attr));
	EXPECT_EQ(-ENODEV, rp_post_recv(c, 1, self->buf, 0, 0));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	ASSERT_EQ(0, rp_own_join(c, &self->s, RPOST_QPT_RC));
	ASSERT_EQ(-EBUSY, refused_destroy(c));
	EXPECT_EQ(-ENODEV, rp_move(c, RPOST_QPS_RESET));
	EXPECT_EQ(-ENODEV, rp_post_recv(c, 1, self->buf, 0, 0));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
}

/* The device keeps an object of a closed file until it is removed. */
static void of_nobody(struct __test_metadata *_metadata, FIXTURE_DATA(vices) *self,
		      const char *vice)
{
	struct rpost_reg_mr mr;

	ASSERT_EQ(0, join_with_region(self, &mr));
	rp_expect_log("rdma_post: object of type [0-9]+ not destroyed: -16");
	ASSERT_EQ(0, set_vice(vice, 1));
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	/* The device refuses once more, at removal. */
	ASSERT_EQ(0, set_vice(vice, 1));
	ASSERT_EQ(0, rp_remove_device());
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	ASSERT_EQ(0, rp_add_device());
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
}

TEST_F(vices, keeps_a_region_of_nobody)
{
	NEED_VICES();
	RP_NEED_REMOVAL();
	of_nobody(_metadata, self, "fail_dereg_mr");
}

TEST_F(vices, keeps_a_queue_pair_of_nobody)
{
	NEED_VICES();
	RP_NEED_REMOVAL();
	of_nobody(_metadata, self, "fail_destroy_qp");
}

/*
 * Create a queue pair with a shared receive queue, which the module keeps as
 * well if the device keeps the queue pair.
 */
static int make_kept(struct rp_end *end, struct rpost_create_srq *srq)
{
	RP_TRY(rp_create_srq(end->fd, end->pd, RECVS, srq));
	RP_TRY(rp_create_own(end, RPOST_QPT_RC, srq->handle));
	return rp_bring_up(end, RPOST_QPT_RC, end->qp_num);
}

#define KEPT_LOG "rdma_post: [a-z0-9]+: queue pair [0-9]+ not destroyed: -16"

/* The device keeps a queue pair for ever, which the module reports. */
TEST_F(vices, keeps_a_queue_pair_for_ever)
{
	struct rp_end *c = &self->c;
	struct rpost_create_srq srq;

	NEED_VICES();
	RP_NEED_REMOVAL();
	rp_expect_log(KEPT_LOG);
	rp_end_close(&self->s);
	ASSERT_EQ(0, make_kept(c, &srq));
	ASSERT_EQ(0, set_vice("fail_destroy_qp", 3));
	ASSERT_EQ(0, rp_remove_device());
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_SRQ, srq.handle));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_CQ, c->cq.cmd.handle));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_PD, c->pd));
	rp_end_close(c);
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	ASSERT_EQ(0, rp_add_device());
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
}

TEST_F(vices, keeps_a_queue_pair_of_nobody_for_ever)
{
	struct rpost_create_srq srq;

	NEED_VICES();
	RP_NEED_REMOVAL();
	rp_expect_log(KEPT_LOG);
	rp_expect_log("rdma_post: object of type [0-9]+ not destroyed: -16");
	rp_end_close(&self->s);
	ASSERT_EQ(0, make_kept(&self->c, &srq));
	/* The device refuses at the last close and three times at removal. */
	ASSERT_EQ(0, set_vice("fail_destroy_qp", 4));
	rp_end_close(&self->c);
	ASSERT_EQ(0, rp_remove_device());
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	ASSERT_EQ(0, rp_add_device());
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
}

TEST_HARNESS_MAIN
