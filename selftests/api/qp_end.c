// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that no completion of a queue pair stays in its completion queue after
 * the queue pair is destroyed or reset, and that those of others stay.
 * rdma_rxe's own provider leaves completions there; librdma_post and other
 * devices' providers remove them.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "verbs_test.h"

/* Enough time for completions to reach the queue. */
#define SETTLE_US	200000

#define MARK		8192	/* an offset without messages */

FIXTURE(shared) {
	struct device dev;
	struct ibv_cq *cq;	/* of both sides, for sends and receives */
	struct side a, b;
	uint32_t a_num, b_num;
};

FIXTURE_VARIANT(shared) {
	bool polled;
};

/* The first poll may change how completions reach the program. */
FIXTURE_VARIANT_ADD(shared, polled) { .polled = true };
FIXTURE_VARIANT_ADD(shared, new) { .polled = false };

FIXTURE_SETUP(shared)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, device_open(&self->dev));
	self->cq = ibv_create_cq(self->dev.verbs, 64, NULL, NULL, 0);
	ASSERT_NE(NULL, self->cq);
	ASSERT_EQ(0, side_open(&self->dev, &self->a, IBV_QPT_RC, self->cq, NULL));
	ASSERT_EQ(0, side_open(&self->dev, &self->b, IBV_QPT_RC, self->cq, NULL));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	if (variant->polled)
		ASSERT_EQ(0, ibv_poll_cq(self->cq, 1, &wc));
	self->a_num = self->a.qp->qp_num;
	self->b_num = self->b.qp->qp_num;
}

FIXTURE_TEARDOWN(shared)
{
	side_close(&self->a);
	side_close(&self->b);
	if (self->cq)
		EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	device_close(&self->dev);
}

/*
 * Send n messages from a to b, with wr_ids from 100 for sends and from 200 for
 * receives, and leave the completions of both in the queue, mixed.  The answer
 * to the READ that follows shows that all have completed.
 */
static int exchange(struct side *a, struct side *b, int n)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	struct ibv_sge sge = side_sge(a, MARK, 1);
	struct ibv_send_wr *bad, read = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {
			.remote_addr = addr64(b->buf + MARK),
			.rkey = b->mr->rkey,
		},
	};
	int i, err = 0;

	a->buf[MARK] = 0;
	b->buf[MARK] = 1;
	for (i = 0; i < n && !err; i++) {
		fill(a->buf + i * 256, 100, i + 1);
		err = post_recv(b, 200 + i, i * 256, 256);
	}
	for (i = 0; i < n && !err; i++) {
		err = post_send(a, 100 + i, i * 256, 100);
		usleep(2000);
	}
	if (!err)
		err = ibv_post_send(a->qp, &read, &bad);
	while (!err && !__atomic_load_n(a->buf + MARK, __ATOMIC_RELAXED)) {
		if (now_ms() > end)
			return ETIME;
		usleep(2000);
	}
	usleep(SETTLE_US);
	return err;
}

static int destroy(struct side *side)
{
	int err = ibv_destroy_qp(side->qp);

	side->qp = NULL;
	return err;
}

/*
 * Poll until the queue is empty, and return the number of completions of queue
 * pair @keep, which should be @want with wr_ids in order from @first.
 * Completions of queue pair @gone are an error.
 */
static int left(struct ibv_cq *cq, int want, uint32_t keep, uint64_t first,
		uint32_t gone)
{
	uint64_t quiet = now_ms() + QUIET_MS, end = now_ms() + DEADLINE_MS;
	struct ibv_wc wc;
	int n = 0, ret;

	while ((ret = ibv_poll_cq(cq, 1, &wc)) || now_ms() < quiet ||
	       (n < want && now_ms() < end)) {
		if (!ret)
			continue;
		if (ret < 0)
			return ret;
		if (wc.qp_num == gone && over_incumbent())
			continue;
		if (wc.qp_num != keep || wc.wr_id != first + n) {
			fprintf(stderr, "# queue pair %u, context %lu, %s\n",
				wc.qp_num, wc.wr_id,
				ibv_wc_status_str(wc.status));
			return -1;
		}
		n++;
		quiet = now_ms() + QUIET_MS;
	}
	return n;
}

#define EXPECT_LEFT(want, keep, first, gone)				\
	EXPECT_EQ(want, left(self->cq, want, keep, first, gone))

TEST_F(shared, sender_goes)
{
	int i;

	ASSERT_EQ(0, exchange(&self->a, &self->b, 6));
	ASSERT_EQ(0, destroy(&self->a));
	EXPECT_LEFT(6, self->b_num, 200, self->a_num);
	for (i = 0; i < 6; i++)
		EXPECT_TRUE(filled(self->b.buf + i * 256, 100, i + 1));
}

TEST_F(shared, receiver_goes)
{
	ASSERT_EQ(0, exchange(&self->a, &self->b, 6));
	ASSERT_EQ(0, destroy(&self->b));
	EXPECT_LEFT(6, self->a_num, 100, self->b_num);
}

TEST_F(shared, both_go)
{
	ASSERT_EQ(0, exchange(&self->a, &self->b, 6));
	ASSERT_EQ(0, destroy(&self->b));
	ASSERT_EQ(0, destroy(&self->a));
	if (over_incumbent())
		return;
	EXPECT_TRUE(no_comp(self->cq));
}

/* Some completions have been polled; the others stay. */
TEST_F(shared, after_some_were_polled)
{
	uint64_t next_b = 200;
	struct ibv_wc wc;
	int i;

	ASSERT_EQ(0, exchange(&self->a, &self->b, 8));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, wait_comp(self->cq, &wc));
		if (wc.qp_num == self->b_num)
			EXPECT_EQ(next_b++, wc.wr_id);
	}
	ASSERT_EQ(0, destroy(&self->a));
	EXPECT_LEFT(208 - (int)next_b, self->b_num, next_b, self->a_num);
}

/* Flushed receives whose completions have not been polled. */
TEST_F(shared, flushed)
{
	int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, post_recv(&self->a, 100 + i, 0, 64));
		ASSERT_EQ(0, post_recv(&self->b, 200 + i, 0, 64));
	}
	ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_ERR));
	ASSERT_EQ(0, set_state(self->b.qp, IBV_QPS_ERR));
	usleep(SETTLE_US);
	ASSERT_EQ(0, destroy(&self->a));
	EXPECT_LEFT(4, self->b_num, 200, self->a_num);
}

/* Receives that have not completed must not complete after the end. */
TEST_F(shared, receives_that_wait)
{
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, post_recv(&self->a, 100 + i, 0, 64));
	ASSERT_EQ(0, destroy(&self->a));
	EXPECT_LEFT(0, self->b_num, 200, self->a_num);
}

TEST_F(shared, reset)
{
	ASSERT_EQ(0, exchange(&self->a, &self->b, 6));
	ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
	EXPECT_LEFT(6, self->b_num, 200, self->a_num);
	/* The queue pairs can be connected again. */
	ASSERT_EQ(0, set_state(self->b.qp, IBV_QPS_RESET));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	ASSERT_EQ(0, exchange(&self->a, &self->b, 3));
	ASSERT_EQ(0, destroy(&self->a));
	EXPECT_LEFT(3, self->b_num, 200, self->a_num);
}

/* Removed completions make room in the queue. */
TEST_F(shared, room)
{
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct side c;
	int i, j;

	if (over_incumbent())
		SKIP(return, "rxe's provider leaves completions, so that the queue overflows");
	cq = ibv_create_cq(self->dev.verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	if (variant->polled)
		ASSERT_EQ(0, ibv_poll_cq(cq, 1, &wc));
	ASSERT_EQ(0, destroy(&self->a));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, side_open(&self->dev, &c, IBV_QPT_RC, cq, NULL));
		ASSERT_EQ(0, bring_up(&self->dev, c.qp, self->b_num, 1, 1));
		for (j = 0; j < 16; j++)
			ASSERT_EQ(0, post_recv(&c, j, 0, 64));
		ASSERT_EQ(0, set_state(c.qp, IBV_QPS_ERR));
		usleep(SETTLE_US / 4);
		for (j = 0; i == 4 && j < 16; j++) {
			ASSERT_EQ(1, wait_comp(cq, &wc));
			EXPECT_EQ(j, wc.wr_id);
		}
		side_close(&c);
	}
	EXPECT_EQ(0, ibv_poll_cq(cq, 1, &wc));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* The end of a queue pair leaves its shared receive queue intact. */
TEST_F(shared, with_a_shared_receive_queue)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 16, .max_sge = 1 },
	};
	struct ibv_sge sge = side_sge(&self->a, 0, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct side c, d;
	struct ibv_srq *srq;
	struct ibv_wc wc;
	uint32_t gone;
	int i;

	srq = ibv_create_srq(self->dev.pd, &init);
	ASSERT_NE(NULL, srq);
	for (i = 0; i < 8; i++) {
		wr.wr_id = 300 + i;
		ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
	}
	ASSERT_EQ(0, side_open(&self->dev, &c, IBV_QPT_RC, self->cq, srq));
	ASSERT_EQ(0, side_open(&self->dev, &d, IBV_QPT_RC, NULL, NULL));
	EXPECT_EQ(srq, c.qp->srq);
	gone = c.qp->qp_num;
	ASSERT_EQ(0, bring_up_pair(&self->dev, &d, &c));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, post_send(&d, i, 0, 64));
		ASSERT_EQ(1, wait_comp(d.cq, &wc));
	}
	ASSERT_EQ(0, destroy(&c));
	EXPECT_LEFT(0, self->b_num, 200, gone);
	side_close(&c);

	/* Another queue pair takes the receives that are left. */
	ASSERT_EQ(0, side_open(&self->dev, &c, IBV_QPT_RC, self->cq, srq));
	ASSERT_EQ(0, set_state(d.qp, IBV_QPS_RESET));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &d, &c));
	for (i = 3; i < 8; i++) {
		ASSERT_EQ(0, post_send(&d, i, 0, 64));
		ASSERT_COMP(self->cq, &wc, IBV_WC_SUCCESS, 300 + i);
		EXPECT_EQ(c.qp->qp_num, wc.qp_num);
	}
	side_close(&c);
	side_close(&d);
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

struct poller {
	struct ibv_cq *cq;
	atomic_int destroyed;	/* greatest wr_id that must not come any more */
	atomic_bool stop;
	int seen, late, errors;
};

static void *poll_all(void *arg)
{
	struct poller *p = arg;
	struct ibv_wc wc;
	int destroyed, ret;

	while (!p->stop) {
		destroyed = p->destroyed;
		ret = ibv_poll_cq(p->cq, 1, &wc);
		p->seen += ret > 0;
		p->errors += ret < 0;
		p->late += ret > 0 && (int)wc.wr_id <= destroyed;
	}
	return NULL;
}

/* No late completion may reach a thread that polls all the time. */
TEST_F(shared, while_another_thread_polls)
{
	struct poller p = { .cq = self->cq };
	pthread_t thread;
	/* valgrind runs one thread at a time, and slowly. */
	const int rounds = under_valgrind() ? 4 : 40;
	struct side c;
	int i, j;

	if (over_incumbent())
		SKIP(return, "rxe's provider leaves completions");
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_all, &p));
	for (i = 1; i <= rounds; i++) {
		ASSERT_EQ(0, side_open(&self->dev, &c, IBV_QPT_RC, self->cq,
				       NULL));
		ASSERT_EQ(0, bring_up(&self->dev, c.qp, self->b_num, 1, 1));
		for (j = 0; j < 16; j++)
			ASSERT_EQ(0, post_recv(&c, i, 0, 64));
		ASSERT_EQ(0, set_state(c.qp, IBV_QPS_ERR));
		ASSERT_EQ(0, destroy(&c));
		p.destroyed = i;
		side_close(&c);
	}
	p.stop = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, p.late);
	EXPECT_EQ(0, p.errors);
	EXPECT_GE(rounds * 16, p.seen);
}

FIXTURE(event) {
	struct device dev;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;	/* of a */
	struct side a, b;
};

FIXTURE_VARIANT(event) {
	bool solicited;		/* the event that is requested */
	bool unpolled;		/* a completion stays in the queue, after its event */
};

FIXTURE_VARIANT_ADD(event, next) { .solicited = false };
FIXTURE_VARIANT_ADD(event, solicited) { .solicited = true };
FIXTURE_VARIANT_ADD(event, unpolled) { .unpolled = true };

FIXTURE_SETUP(event)
{
	ASSERT_EQ(0, device_open(&self->dev));
	self->channel = ibv_create_comp_channel(self->dev.verbs);
	ASSERT_NE(NULL, self->channel);
	self->cq = ibv_create_cq(self->dev.verbs, 64, NULL, self->channel, 0);
	ASSERT_NE(NULL, self->cq);
	ASSERT_EQ(0, side_open(&self->dev, &self->a, IBV_QPT_RC, self->cq, NULL));
	ASSERT_EQ(0, side_open(&self->dev, &self->b, IBV_QPT_RC, NULL, NULL));
}

FIXTURE_TEARDOWN(event)
{
	side_close(&self->a);
	side_close(&self->b);
	EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	EXPECT_EQ(0, ibv_destroy_comp_channel(self->channel));
	device_close(&self->dev);
}

/* Connect b to another queue pair, and give that receives. */
static int connect_to(FIXTURE_DATA(event) *self, struct side *to)
{
	int i, err;

	err = set_state(self->b.qp, IBV_QPS_RESET);
	err = err ? err : bring_up_pair(&self->dev, to, &self->b);
	for (i = 0; i < 4 && !err; i++)
		err = post_recv(to, 100 + i, 0, 64);
	return err;
}

/* Send a message, and wait for the event that tells of it. */
static int message(FIXTURE_DATA(event) *self, bool solicited)
{
	struct ibv_sge sge = side_sge(&self->b, 0, 64);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | (solicited ? IBV_SEND_SOLICITED : 0),
	};
	struct ibv_cq *cq = NULL;
	void *context;
	struct ibv_wc wc;

	if (ibv_post_send(self->b.qp, &wr, &bad) ||
	    !readable(self->channel->fd, DEADLINE_MS) ||
	    ibv_get_cq_event(self->channel, &cq, &context) || cq != self->cq)
		return -1;
	ibv_ack_cq_events(cq, 1);
	return wait_comp(self->b.cq, &wc) == 1 ? 0 : -1;
}

static bool got_message(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	return wait_comp(cq, &wc) == 1 && wc.wr_id == 100 && wc.status == IBV_WC_SUCCESS;
}

/* Give a receives, which will not complete, and request an event. */
static int begin(FIXTURE_DATA(event) *self, const FIXTURE_VARIANT(event) *variant)
{
	int err = connect_to(self, &self->a);

	if (!err && variant->unpolled) {
		err = ibv_req_notify_cq(self->cq, 0);
		err = err ? err : message(self, false);
	}
	return err ? err : ibv_req_notify_cq(self->cq, variant->solicited);
}

/* a has ended.  A program may destroy the completion queue next, and expects no event. */
static void expect_none(struct __test_metadata *_metadata, FIXTURE_DATA(event) *self,
			const FIXTURE_VARIANT(event) *variant)
{
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	/* rxe's own provider leaves the completion. */
	if (variant->unpolled && over_incumbent())
		EXPECT_TRUE(got_message(self->cq));
}

/* The request holds for the next message, to whichever queue pair. */
static void expect_next(struct __test_metadata *_metadata, FIXTURE_DATA(event) *self,
			struct side *to, bool solicited)
{
	ASSERT_EQ(0, connect_to(self, to));
	ASSERT_EQ(0, message(self, solicited));
	EXPECT_TRUE(got_message(self->cq));
}

TEST_F(event, none_when_destroyed)
{
	ASSERT_EQ(0, begin(self, variant));
	ASSERT_EQ(0, destroy(&self->a));
	expect_none(_metadata, self, variant);
	side_close(&self->a);
	ASSERT_EQ(0, side_open(&self->dev, &self->a, IBV_QPT_RC, self->cq, NULL));
	expect_next(_metadata, self, &self->a, variant->solicited);
}

TEST_F(event, none_when_reset)
{
	const int rounds = under_valgrind() ? 2 : 10;
	int i;

	for (i = 0; i < rounds; i++) {
		ASSERT_EQ(0, begin(self, variant));
		ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
		expect_none(_metadata, self, variant);
		expect_next(_metadata, self, &self->a, variant->solicited);
		ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
	}
}

TEST_F(event, of_another_queue_pair)
{
	struct side c;

	ASSERT_EQ(0, begin(self, variant));
	ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
	expect_none(_metadata, self, variant);
	ASSERT_EQ(0, side_open(&self->dev, &c, IBV_QPT_RC, self->cq, NULL));
	expect_next(_metadata, self, &c, variant->solicited);
	side_close(&c);
}

/* The end of one queue pair holds back no event of another that is there. */
TEST_F(event, of_one_that_stays)
{
	struct side c;

	ASSERT_EQ(0, side_open(&self->dev, &c, IBV_QPT_RC, self->cq, NULL));
	ASSERT_EQ(0, connect_to(self, &c));
	ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, variant->solicited));
	ASSERT_EQ(0, message(self, variant->solicited));
	EXPECT_TRUE(got_message(self->cq));
	ASSERT_EQ(0, destroy(&self->a));
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, variant->solicited));
	ASSERT_EQ(0, message(self, variant->solicited));
	side_close(&c);
}

/* A request for a solicited event does not narrow one for any. */
TEST_F(event, of_any_message)
{
	ASSERT_EQ(0, begin(self, variant));
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 1));
	ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
	expect_none(_metadata, self, variant);
	expect_next(_metadata, self, &self->a, false);
}

TEST_HARNESS_MAIN
