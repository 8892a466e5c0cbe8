// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One end of a connection closes its file during traffic.  A failure means that
 * the other end is not told, or that a message is missing although its send
 * completed with success.
 */
#include <kselftest_harness.h>

#include "faults.h"
#include "kernel_release.h"

#define ROUNDS	20

FIXTURE(closed) {
	struct rp_end from, to;
	struct msgs out, in;
	uint64_t sent, done;	/* messages posted, completed with success */
	uint64_t received;
};

FIXTURE_VARIANT(closed) {
	bool sender;
};

FIXTURE_VARIANT_ADD(closed, by_the_sender) { .sender = true };
FIXTURE_VARIANT_ADD(closed, by_the_receiver) { .sender = false };

FIXTURE_SETUP(closed)
{
}

FIXTURE_TEARDOWN(closed)
{
}

/* Post sends while at most half of the receives are in use. */
static int fill(FIXTURE_DATA(closed) *self)
{
	while (self->sent < self->received + RP_DEPTH / 2 &&
	       self->sent < self->done + RP_DEPTH)
		RP_TRY(msg_post_send(&self->from, &self->out, self->sent++));
	return 0;
}

static int take_messages(FIXTURE_DATA(closed) *self)
{
	struct rpost_wc wc;

	while (rp_poll_cq(&self->to.cq, &wc) == 1) {
		if (wc.status)
			continue;
		if (wc.wr_id != self->received ||
		    !msg_is(&self->in.m[wc.wr_id % RP_DEPTH], wc.wr_id))
			return -EBADMSG;
		self->received++;
		msg_post_recv(&self->to, &self->in, wc.wr_id + RP_DEPTH);
	}
	return 0;
}

static int take_sends(FIXTURE_DATA(closed) *self)
{
	struct rpost_wc wc;

	while (rp_poll_cq(&self->from.cq, &wc) == 1) {
		if (wc.status)
			continue;
		if (wc.wr_id != self->done)
			return -EBADMSG;
		self->done++;
	}
	return 0;
}

static int traffic(FIXTURE_DATA(closed) *self, uint64_t messages)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (self->done < messages) {
		RP_TRY(take_messages(self));
		RP_TRY(take_sends(self));
		RP_TRY(fill(self));
		if (rp_now_ms() > end)
			return -ETIME;
	}
	/*
	 * Post more sends, so that some are outstanding even on a fast machine.
	 */
	while (self->sent < self->done + 4)
		RP_TRY(msg_post_send(&self->from, &self->out, self->sent++));
	return 0;
}

/* The other end has closed: wait for the event, and disconnect. */
static int left_alone(struct rp_end *end)
{
	RP_TRY(rp_expect(end->channel, end->id, RPOST_EVENT_DISCONNECTED));
	RP_TRY(rp_disconnect(end->fd, end->id));
	return 0;
}

/*
 * rxe may repeat a message that it has not acknowledged.  A receiver that
 * closes at such a message has it in all receives posted after the first.
 */
static bool is_repeated(FIXTURE_DATA(closed) *self, uint64_t n, uint64_t *at)
{
	const struct msg *m = &self->in.m[n % RP_DEPTH];

	if (!rxe_repeats_a_packet() || n >= self->received)
		return false;
	if (!*at)
		*at = m->number;
	return m->number == *at && *at >= self->done && *at < n + RP_DEPTH &&
	       msg_is(m, *at);
}

/*
 * After the receiver has closed, each message whose send succeeded is in its
 * memory, unless the memory was posted again for a later message.
 */
static int look_at_memory(FIXTURE_DATA(closed) *self)
{
	uint64_t n = self->done > RP_DEPTH ? self->done - RP_DEPTH : 0;
	uint64_t at = 0;

	for (; n < self->done; n++) {
		const struct msg *m = &self->in.m[n % RP_DEPTH];

		if (msg_is(m, n) || m->number == n + RP_DEPTH)
			continue;
		if (is_repeated(self, n, &at))
			continue;
		fprintf(stderr, "# message %llu of %llu that were sent, of which %llu are done and %llu were taken: there is %llu\n",
			(unsigned long long)n, (unsigned long long)self->sent,
			(unsigned long long)self->done,
			(unsigned long long)self->received,
			(unsigned long long)m->number);
		return -EBADMSG;
	}
	return 0;
}

TEST_F(closed, under_traffic)
{
	char counts[RP_COUNTS];
	unsigned int i, n;

	rp_counts(counts);
	for (i = 0; i < ROUNDS; i++) {
		self->sent = self->done = self->received = 0;
		ASSERT_EQ(0, rp_connect_pair(&self->from, &self->to, 0));
		ASSERT_EQ(0, msgs_init(&self->from, &self->out));
		ASSERT_EQ(0, msgs_init(&self->to, &self->in));
		for (n = 0; n < RP_DEPTH; n++)
			ASSERT_EQ(0, msg_post_recv(&self->to, &self->in, n));
		ASSERT_EQ(0, traffic(self, 50));
		usleep(random() % 1000);
		EXPECT_LT(self->done, self->sent);
		if (variant->sender) {
			ASSERT_EQ(0, take_sends(self));
			rp_end_close(&self->from);
			ASSERT_EQ(0, left_alone(&self->to));
			ASSERT_EQ(0, take_messages(self));
			ASSERT_EQ(0, rp_destroy(self->to.fd, RPOST_OBJ_QP,
						self->to.qp));
			EXPECT_LE(self->done, self->received);
			EXPECT_GE(self->sent, self->received);
			rp_end_close(&self->to);
		} else {
			rp_end_close(&self->to);
			ASSERT_EQ(0, left_alone(&self->from));
			ASSERT_EQ(0, take_sends(self));
			ASSERT_EQ(0, rp_destroy(self->from.fd, RPOST_OBJ_QP,
						self->from.qp));
			EXPECT_EQ(0, look_at_memory(self));
			rp_end_close(&self->from);
		}
		munmap(self->out.m, RP_DEPTH * MSG_BYTES);
		munmap(self->in.m, RP_DEPTH * MSG_BYTES);
		EXPECT_EQ(0, rp_wait_counts(counts));
		SURVIVED(FAULT_CLOSE);
	}
}

TEST_HARNESS_MAIN
