// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests completion queues whose events the device delays.  A failure means that
 * a program sleeps forever, or that one that polls waits for the device's event.
 * Only rdmasim can delay events; other devices refuse.
 */
#include <kselftest_harness.h>
#include <poll.h>

#include "rpost_test.h"

#define BYTES		64
#define COUNT		3
#define PERIOD_US	60000
#define LEAST_MS	30	/* the device counts in ticks, which an emulator makes late */
#define TRIES		20	/* on a busy host */

FIXTURE(moderate) {
	struct rp_end c, s;
	struct rpost_reg_mr cmr, smr;
	struct rpost_query_device dev;
	char *buf;
	int comp;
};

static int modify(struct rp_end *end, uint32_t count, uint32_t us)
{
	struct rpost_modify_cq cmd = {
		.size = sizeof(cmd),
		.handle = end->cq.cmd.handle,
		.count = count,
		.period_us = us,
	};

	return rp_ioctl(end->fd, RPOST_IOC_MODIFY_CQ, &cmd);
}

FIXTURE_SETUP(moderate)
{
	self->buf = rp_pages(BYTES);
	ASSERT_NE(NULL, self->buf);
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	self->comp = rp_end_add_channel(&self->s, 4 * RP_DEPTH);
	ASSERT_LE(0, self->comp);
	ASSERT_EQ(0, rp_query_device(self->s.fd, self->s.device, &self->dev));
}

FIXTURE_TEARDOWN(moderate)
{
	close(self->comp);
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	munmap(self->buf, BYTES);
}

#define NEED_MODERATION()						\
	do {								\
		if (!self->dev.max_moderate_us)				\
			SKIP(return, "the device does not delay events"); \
	} while (0)

static int join(FIXTURE_DATA(moderate) *self)
{
	uint32_t listener;

	RP_TRY(rp_listener(&self->s, &listener));
	RP_TRY(rp_join(&self->c, &self->s, listener, 0));
	RP_TRY(rp_destroy(self->s.fd, RPOST_OBJ_ID, listener));
	RP_TRY(rp_reg_mr(self->c.fd, self->c.pd, self->buf, BYTES,
			 RPOST_ACCESS_LOCAL_WRITE, &self->cmr));
	return rp_reg_mr(self->s.fd, self->s.pd, self->buf, BYTES,
			 RPOST_ACCESS_LOCAL_WRITE, &self->smr);
}

/* Sends messages, and waits until the receiver must have acknowledged them. */
static int messages(FIXTURE_DATA(moderate) *self, int count)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, self->buf, 1,
				      self->cmr.lkey);
	struct rpost_wc wc;
	int i;

	for (i = 0; i < count; i++) {
		RP_TRY(rp_post_recv(&self->s, 1, self->buf, BYTES,
				    self->smr.lkey));
		RP_TRY(rp_post_send(&self->c, &send));
		if (rp_wait_cq(&self->c.cq, &wc) != 1)
			return -ETIME;
	}
	return 0;
}

static bool has_event(int comp, int ms)
{
	struct pollfd fd = { .fd = comp, .events = POLLIN };

	return poll(&fd, 1, ms) == 1;
}

/* Takes what has come, so that the next event is of later completions. */
static int take_all(FIXTURE_DATA(moderate) *self, int count)
{
	struct rpost_comp_event event;
	struct rpost_wc wc;

	while (count--)
		if (rp_wait_cq(&self->s.cq, &wc) != 1)
			return -ETIME;
	if (!has_event(self->comp, TEST_TIMEOUT_MS))
		return -ETIME;
	return read(self->comp, &event, sizeof(event)) == sizeof(event) ? 0 : -EIO;
}

/* Returns how long the event of @count messages takes, or a negative errno. */
static long event_ms(FIXTURE_DATA(moderate) *self, int count)
{
	uint64_t began;

	RP_TRY(rp_arm_cq(&self->s.cq, 0));
	began = rp_now_ms();
	RP_TRY(messages(self, count));
	if (!has_event(self->comp, TEST_TIMEOUT_MS))
		return -ETIME;
	began = rp_now_ms() - began;
	RP_TRY(take_all(self, count));
	return began;
}

/* Does the event of @count messages come before the time? */
static bool comes_early(FIXTURE_DATA(moderate) *self, int count)
{
	long ms = LEAST_MS;
	int i;

	for (i = 0; i < TRIES && ms >= LEAST_MS; i++)
		ms = event_ms(self, count);
	return ms >= 0 && ms < LEAST_MS;
}

TEST_F(moderate, refused)
{
	if (!self->dev.max_moderate_us) {
		EXPECT_EQ(-EOPNOTSUPP, modify(&self->s, 0, 0));
		EXPECT_EQ(-EOPNOTSUPP, modify(&self->s, 1, 1));
		return;
	}
	EXPECT_EQ(-EINVAL, modify(&self->s, self->dev.max_moderate_count + 1, 1));
	EXPECT_EQ(-EINVAL, modify(&self->s, UINT32_MAX, 1));
	EXPECT_EQ(-EINVAL, modify(&self->s, 1, self->dev.max_moderate_us + 1));
	EXPECT_EQ(-EINVAL, modify(&self->s, 1, UINT32_MAX));
	/* This event could wait forever. */
	EXPECT_EQ(-EINVAL, modify(&self->s, 2, 0));
	EXPECT_EQ(0, modify(&self->s, 1, 0));
	EXPECT_EQ(0, modify(&self->s, 0, 0));
	EXPECT_EQ(0, modify(&self->s, self->dev.max_moderate_count,
			    self->dev.max_moderate_us));
}

/* Event by time, by number, and at once, of a queue pair made before or later. */
static void delays(struct __test_metadata *_metadata, FIXTURE_DATA(moderate) *self)
{
	EXPECT_LE(LEAST_MS, event_ms(self, 1));
	EXPECT_LE(LEAST_MS, event_ms(self, COUNT - 1));
	EXPECT_TRUE(comes_early(self, COUNT));
	ASSERT_EQ(0, modify(&self->s, 0, 0));
	EXPECT_TRUE(comes_early(self, 1));
}

TEST_F(moderate, before_queue_pairs)
{
	NEED_MODERATION();
	ASSERT_EQ(0, modify(&self->s, COUNT, PERIOD_US));
	ASSERT_EQ(0, join(self));
	delays(_metadata, self);
}

TEST_F(moderate, after_queue_pairs)
{
	NEED_MODERATION();
	ASSERT_EQ(0, join(self));
	EXPECT_LE(0, event_ms(self, 1));
	ASSERT_EQ(0, modify(&self->s, COUNT, PERIOD_US));
	delays(_metadata, self);
}

/* A program finds the completion by polling before the event has come. */
TEST_F(moderate, polling)
{
	struct rpost_wc wc;
	bool early = false;
	int i;

	NEED_MODERATION();
	ASSERT_EQ(0, join(self));
	ASSERT_EQ(0, rp_poll_in_vain(&self->s.cq));
	ASSERT_FALSE(rp_need_poll(&self->s.cq));
	ASSERT_EQ(0, modify(&self->s, COUNT, PERIOD_US));
	/* The queue was armed, and no program must rely on that any more. */
	EXPECT_TRUE(rp_need_poll(&self->s.cq));
	for (i = 0; i < TRIES && !early; i++) {
		ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
		EXPECT_TRUE(rp_need_poll(&self->s.cq));
		ASSERT_EQ(0, messages(self, 1));
		ASSERT_EQ(1, rp_wait_cq(&self->s.cq, &wc));
		early = !has_event(self->comp, 0);
		ASSERT_EQ(0, take_all(self, 0));
	}
	EXPECT_TRUE(early);
	ASSERT_EQ(0, modify(&self->s, 0, 0));
	ASSERT_EQ(0, rp_poll_in_vain(&self->s.cq));
	EXPECT_FALSE(rp_need_poll(&self->s.cq));
}

/* The program may destroy the completion queue, too, and expects no event. */
TEST_F(moderate, none_of_a_queue_pair_that_ends)
{
	NEED_MODERATION();
	ASSERT_EQ(0, modify(&self->s, self->dev.max_moderate_count, PERIOD_US));
	ASSERT_EQ(0, join(self));
	ASSERT_EQ(0, rp_post_recv(&self->s, 1, self->buf, BYTES, self->smr.lkey));
	ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
	ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
	EXPECT_FALSE(has_event(self->comp, 2 * PERIOD_US / 1000));
}

TEST_HARNESS_MAIN
