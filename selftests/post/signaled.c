// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests writes that one call posts.  A failure means that a signaled write has
 * no completion, one out of order, or one that reports success before the data
 * has arrived.
 */
#include <kselftest_harness.h>

#define RP_DEPTH	32	/* two batches of the module */
#include "rpost_own.h"

RP_USE_DEPTH()

#define SLOT	64		/* bytes of each write */
#define BUF	(RP_DEPTH * SLOT)
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ)

FIXTURE(signaled) {
	struct rp_end c, s;
	char *cbuf, *sbuf;
	struct rpost_reg_mr cmr, smr;
	struct rp_send block[RP_DEPTH];
	struct rpost_wc wc;
	uint32_t posted;
};

/* Prepare writes of SLOT bytes, all signaled. */
static void fill(FIXTURE_DATA(signaled) *self)
{
	unsigned int i;

	for (i = 0; i < RP_DEPTH; i++) {
		struct rp_send *send = &self->block[i];

		*send = rp_send(RPOST_WR_RDMA_WRITE, i, self->cbuf + i * SLOT,
				SLOT, self->cmr.lkey);
		send->wr.send_flags = RPOST_SEND_SIGNALED;
		send->wr.remote_addr = self->smr.addr + i * SLOT;
		send->wr.rkey = self->smr.rkey;
	}
}

FIXTURE_SETUP(signaled)
{
	unsigned int i;

	self->cbuf = rp_pages(BUF);
	self->sbuf = rp_pages(BUF);
	ASSERT_NE(NULL, self->cbuf);
	ASSERT_NE(NULL, self->sbuf);
	for (i = 0; i < BUF; i++)
		self->cbuf[i] = 1 + i / SLOT % 100;
	ASSERT_EQ(0, rp_own_pair(&self->c, &self->s, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->cbuf, BUF, ALL,
			       &self->cmr));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->sbuf, BUF, ALL,
			       &self->smr));
	fill(self);
}

FIXTURE_TEARDOWN(signaled)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* Post the work requests from @first to @end - 1 by one call. */
static int post(FIXTURE_DATA(signaled) *self, unsigned int first, unsigned int end)
{
	return rp_post(self->c.fd, RPOST_IOC_POST_SEND, self->c.qp,
		       &self->block[first], (end - first) * sizeof(*self->block),
		       end - first, &self->posted);
}

static bool arrived(FIXTURE_DATA(signaled) *self, unsigned int i)
{
	return !memcmp(self->sbuf + i * SLOT, self->cbuf + i * SLOT, SLOT);
}

#define EXPECT_DONE(id) do {						\
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));		\
	EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ(self->c.qp_num, self->wc.qp_num);			\
} while (0)

/*
 * Expect completions of @n writes.  From @bad on they fail: write @bad with the
 * device's error, or flushed if the device flushes the write that fails, and
 * the others flushed.  Data of each success has arrived.
 */
#define EXPECT_FAILED_AT(bad, n) do {					\
	unsigned int n_;						\
									\
	for (n_ = 0; n_ < (n); n_++) {					\
		ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));	\
		EXPECT_EQ(n_, self->wc.wr_id);				\
		if (n_ >= (bad))					\
			EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);	\
		if (n_ != (bad) && self->wc.status)			\
			EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status); \
		if (!self->wc.status)					\
			EXPECT_TRUE(arrived(self, n_));			\
	}								\
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, rp_no_other(&self->c));	\
} while (0)

static int part(FIXTURE_DATA(signaled) *self)
{
	RP_TRY(rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	return rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp);
}

/* Replace both queue pairs by new ones. */
static int again(FIXTURE_DATA(signaled) *self)
{
	RP_TRY(part(self));
	return rp_own_join(&self->c, &self->s, RPOST_QPT_RC);
}

TEST_F(signaled, each_completes)
{
	unsigned int n, i;

	for (n = 1; n <= RP_DEPTH; n++) {
		memset(self->sbuf, 0, BUF);
		ASSERT_EQ(0, post(self, 0, n));
		for (i = 0; i < n; i++) {
			EXPECT_DONE(i);
			EXPECT_EQ(RPOST_WC_RDMA_WRITE, self->wc.opcode);
			EXPECT_EQ(0, self->wc.byte_len);
			EXPECT_TRUE(arrived(self, i));
		}
	}
	EXPECT_EQ(RPOST_WC_SUCCESS, rp_no_other(&self->c));
}

/* Unsignaled writes between signaled ones must not complete in the ring. */
TEST_F(signaled, unsignaled_among_them)
{
	unsigned int i, round;

	/* Signal the last one, so that the queue is empty after it. */
	for (i = 0; i < RP_DEPTH - 1; i++) {
		if (i % 5 == 1 || i % 7 == 2)
			self->block[i].wr.send_flags = 0;
	}
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, post(self, 0, RP_DEPTH));
		for (i = 0; i < RP_DEPTH; i++) {
			if (self->block[i].wr.send_flags)
				EXPECT_DONE(i);
		}
		EXPECT_EQ(RPOST_WC_SUCCESS, rp_no_other(&self->c));
	}
}

/* Writes must complete while the send after them waits for its receive. */
TEST_F(signaled, before_a_send)
{
	unsigned int i;

	self->block[5].wr.opcode = RPOST_WR_SEND;
	ASSERT_EQ(0, post(self, 0, 10));
	for (i = 0; i < 5; i++)
		EXPECT_DONE(i);
	EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
	ASSERT_EQ(0, rp_post_recv(&self->s, 99, self->sbuf, SLOT,
				  self->smr.lkey));
	for (; i < 10; i++)
		EXPECT_DONE(i);
}

TEST_F(signaled, refused_after_them)
{
	unsigned int i, bad;

	for (bad = 1; bad < RP_DEPTH; bad += 6) {
		fill(self);
		self->block[bad].wr.opcode = 7;
		EXPECT_EQ(-EOPNOTSUPP, post(self, 0, RP_DEPTH));
		ASSERT_EQ(bad, self->posted);
		for (i = 0; i < bad; i++)
			EXPECT_DONE(i);
	}
	EXPECT_EQ(RPOST_WC_SUCCESS, rp_no_other(&self->c));
}

/* Each write completes once and in order: successes first, then flushes. */
TEST_F(signaled, stopped)
{
	unsigned int round, i, flushed;

	for (round = 0; round < 20; round++) {
		memset(self->sbuf, 0, BUF);
		ASSERT_EQ(0, post(self, 0, RP_DEPTH));
		if (round % 2)
			usleep(round * 20);
		ASSERT_EQ(0, rp_move(&self->c, RPOST_QPS_ERR));
		for (i = 0, flushed = 0; i < RP_DEPTH; i++) {
			ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
			EXPECT_EQ(i, self->wc.wr_id);
			flushed += self->wc.status == RPOST_WC_WR_FLUSH_ERR;
			EXPECT_EQ(flushed ? RPOST_WC_WR_FLUSH_ERR :
				  RPOST_WC_SUCCESS, self->wc.status);
			if (!self->wc.status)
				EXPECT_TRUE(arrived(self, i));
		}
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, rp_no_other(&self->c));
		ASSERT_EQ(0, again(self));
	}
}

/* Make one write after another fail; @lkey and @rkey flip bits of its keys. */
static void fails(struct __test_metadata *_metadata, FIXTURE_DATA(signaled) *self,
		  uint32_t lkey, uint32_t rkey)
{
	const unsigned int at[] = { 0, 1, 7, 14, 15, 16, 17, 30 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		memset(self->sbuf, 0, BUF);
		fill(self);
		self->block[at[i]].sge.lkey ^= lkey;
		self->block[at[i]].wr.rkey ^= rkey;
		ASSERT_EQ(0, post(self, 0, RP_DEPTH));
		EXPECT_FAILED_AT(at[i], RP_DEPTH);
		ASSERT_EQ(0, again(self));
	}
}

/* The peer refuses the write. */
TEST_F(signaled, error)
{
	fails(_metadata, self, 0, 0x80);
}

/* The module finds the bad key and makes the device refuse the write. */
TEST_F(signaled, bad_key)
{
	fails(_metadata, self, 0x80, 0);
}

TEST_HARNESS_MAIN
