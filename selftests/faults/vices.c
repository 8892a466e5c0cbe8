// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Devices that do not flush, and devices that forget completions.  Needs root and
 * selftests/rdmasim, whose vices these are.
 */
#include <kselftest_harness.h>

#include "cgroup.h"
#include "rpost_own.h"

#define PARAMETERS	"/sys/module/rdma_post/parameters"
#define VICES		"/sys/module/rdmasim/parameters"
#define PAIRS		500
#define DRAIN_MS	2000
#define EACH_MS		5	/* for a queue pair that is not waited for */
#define RECVS		16
#define BYTES		64

static int set_vice(const char *name, bool on)
{
	return cg_put(VICES, name, on ? "1" : "0");
}

#define NEED_VICES()							\
	do {								\
		if (!self->able)					\
			SKIP(return, "needs root and rdmasim");		\
	} while (0)

FIXTURE(vices) {
	struct rp_end c, s;
	bool able;
};

FIXTURE_SETUP(vices)
{
	self->able = !geteuid() && !access(VICES "/purge", W_OK);
	if (!self->able)
		return;
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
}

FIXTURE_TEARDOWN(vices)
{
	if (!self->able)
		return;
	EXPECT_EQ(0, set_vice("never_flushes", false));
	EXPECT_EQ(0, set_vice("purge", false));
	EXPECT_EQ(0, cg_put(PARAMETERS, "drain_ms", "10000"));
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* A device that does not flush is waited for once, until it has flushed again. */
TEST_F(vices, never_flushes)
{
	struct rp_end c, s;
	uint64_t began;
	int i, round;

	NEED_VICES();
	ASSERT_EQ(0, cg_put(PARAMETERS, "drain_ms", "2000"));
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, rp_end_init(&c));
		ASSERT_EQ(0, rp_end_init(&s));
		for (i = 0; i < PAIRS; i++)
			ASSERT_EQ(0, rp_own_join(&c, &s, RPOST_QPT_RC));
		ASSERT_EQ(0, set_vice("never_flushes", true));
		began = rp_now_ms();
		rp_end_close(&c);
		EXPECT_LE(DRAIN_MS, rp_now_ms() - began);
		rp_end_close(&s);
		TH_LOG("%d queue pairs: %d ms", 2 * PAIRS,
		       (int)(rp_now_ms() - began));
		EXPECT_GT(DRAIN_MS + 2 * PAIRS * EACH_MS, rp_now_ms() - began);
		ASSERT_EQ(0, set_vice("never_flushes", false));
		/* This one flushes. */
		ASSERT_EQ(0, rp_own_join(&self->c, &self->s, RPOST_QPT_RC));
		ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
		ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
	}
}

/*
 * Receives of a shared queue complete, and nobody looks; then the queue pair ends, or
 * is reset, and the device forgets the completions.  Each can be posted again.
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
		/* The last is there: all others have completed. */
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

TEST_HARNESS_MAIN
