// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests threads that sleep in a read of a completion channel: several at once,
 * with signals, and with queues that are destroyed.  A failure means that a
 * reader sleeps on although its event has come, or gets one too many.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <signal.h>

#include "rpost_own.h"

#define BUF_SIZE	4096
#define ROUNDS		300

/* The server writes to the client and sleeps for the completions. */
FIXTURE(sleepers) {
	struct rp_end c, s;
	int comp;
	char *buf;
	struct rp_send write;
	uint32_t arms;
};

FIXTURE_SETUP(sleepers)
{
	struct rpost_reg_mr to, from;
	uint32_t listener;

	self->buf = rp_pages(2 * BUF_SIZE);
	ASSERT_NE(NULL, self->buf);
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	self->comp = rp_end_add_channel(&self->s, 4 * RP_DEPTH);
	ASSERT_LE(0, self->comp);
	ASSERT_EQ(0, rp_listener(&self->s, &listener));
	ASSERT_EQ(0, rp_join(&self->c, &self->s, listener, 0));
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->buf, BUF_SIZE,
			       RPOST_ACCESS_LOCAL_WRITE |
			       RPOST_ACCESS_REMOTE_WRITE, &to));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->buf + BUF_SIZE,
			       BUF_SIZE, 0, &from));
	self->write = rp_send(RPOST_WR_RDMA_WRITE, 1, self->buf + BUF_SIZE, 8,
			      from.lkey);
	self->write.wr.remote_addr = (uintptr_t)self->buf;
	self->write.wr.rkey = to.rkey;
}

FIXTURE_TEARDOWN(sleepers)
{
	close(self->comp);
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	munmap(self->buf, 2 * BUF_SIZE);
}

/* A thread that reads events until it is stopped. */
struct reader {
	pthread_t thread;
	int comp;
	bool stop;
	unsigned int events;
	unsigned int interrupted;
	int err;
};

static void nothing(int number)
{
	(void)number;
}

static void *read_events(void *arg)
{
	struct rpost_comp_event event;
	struct reader *r = arg;
	ssize_t n;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED) && !r->err) {
		n = read(r->comp, &event, sizeof(event));
		if (n == sizeof(event))
			__atomic_fetch_add(&r->events, 1, __ATOMIC_RELAXED);
		else if (n < 0 && errno == EINTR)
			r->interrupted++;
		else
			r->err = n < 0 ? errno : EIO;
	}
	return NULL;
}

static int start_reader(struct reader *r, int comp)
{
	struct sigaction action = { .sa_handler = nothing };

	if (sigaction(SIGUSR1, &action, NULL))
		return -errno;
	*r = (struct reader) { .comp = comp };
	return pthread_create(&r->thread, NULL, read_events, r);
}

static int stop_reader(struct reader *r)
{
	__atomic_store_n(&r->stop, true, __ATOMIC_RELAXED);
	/* A signal may come just before the thread sleeps, so repeat it. */
	while (pthread_tryjoin_np(r->thread, NULL)) {
		pthread_kill(r->thread, SIGUSR1);
		usleep(1000);
	}
	return r->err;
}

static unsigned int events_of(const struct reader *r, unsigned int n)
{
	unsigned int i, sum = 0;

	for (i = 0; i < n; i++)
		sum += __atomic_load_n(&r[i].events, __ATOMIC_RELAXED);
	return sum;
}

static int wait_events(const struct reader *r, unsigned int n,
		       unsigned int want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (events_of(r, n) < want && rp_now_ms() < end)
		usleep(50);
	return events_of(r, n);
}

/* Take a completion from the ring without a call to the kernel. */
static int take(FIXTURE_DATA(sleepers) *self, struct rpost_wc *wc)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rpost_ring *ring = self->s.cq.ring;

	while (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == ring->head) {
		if (rp_now_ms() > end)
			return -ETIME;
		usleep(20);
	}
	return rp_poll_cq(&self->s.cq, wc) == 1 ? 0 : -EPROTO;
}

/* Each request gives one event, whichever thread reads it. */
TEST_F(sleepers, several)
{
	struct reader r[4];
	struct rpost_wc wc;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(r); i++)
		ASSERT_EQ(0, start_reader(&r[i], self->comp));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, rp_ask_event(&self->s.cq, &self->arms));
		ASSERT_EQ(0, rp_post_send(&self->s, &self->write));
		ASSERT_EQ(0, take(self, &wc));
		EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
		ASSERT_EQ(i + 1, wait_events(r, ARRAY_SIZE(r), i + 1));
	}
	for (i = 0; i < ARRAY_SIZE(r); i++)
		EXPECT_EQ(0, stop_reader(&r[i]));
	EXPECT_EQ(ROUNDS, events_of(r, ARRAY_SIZE(r)));
}

/* A completion is in the ring even if its reader returns with EINTR. */
TEST_F(sleepers, interrupted)
{
	struct reader r;
	struct rpost_wc wc;
	unsigned int i;

	ASSERT_EQ(0, start_reader(&r, self->comp));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, rp_ask_event(&self->s.cq, &self->arms));
		if (i & 1)
			ASSERT_EQ(0, pthread_kill(r.thread, SIGUSR1));
		ASSERT_EQ(0, rp_post_send(&self->s, &self->write));
		if (!(i & 1)) {
			usleep(i * 2);
			ASSERT_EQ(0, pthread_kill(r.thread, SIGUSR1));
		}
		ASSERT_EQ(0, take(self, &wc)) TH_LOG("round %u", i);
		EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
		ASSERT_EQ(i + 1, wait_events(&r, 1, i + 1));
	}
	EXPECT_LT(0, r.interrupted);
	EXPECT_EQ(0, stop_reader(&r));
	EXPECT_EQ(ROUNDS, r.events);
}

/* Queues are destroyed while the device notifies and the reader fetches. */
TEST_F(sleepers, of_queues_that_go)
{
	struct rp_end own = self->s;
	struct reader r[2];
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(r); i++)
		ASSERT_EQ(0, start_reader(&r[i], self->comp));
	for (i = 0; i < ROUNDS / 4; i++) {
		ASSERT_EQ(0, rp_create_cq(own.fd, own.device, 16, self->comp,
					  &own.cq));
		ASSERT_EQ(0, rp_create_own(&own, RPOST_QPT_RC, 0));
		ASSERT_EQ(0, rp_bring_up(&own, RPOST_QPT_RC, RP_NO_QPN));
		for (j = 0; j < 4; j++)
			ASSERT_EQ(0, rp_post_recv(&own, j, NULL, 0, 0));
		ASSERT_EQ(0, rp_arm_cq(&own.cq, 0));
		/*
		 * The device flushes the receives while the queue is being
		 * destroyed.
		 */
		ASSERT_EQ(0, rp_move(&own, RPOST_QPS_ERR));
		if (i & 1)
			usleep(i * 4);
		ASSERT_EQ(0, rp_destroy(own.fd, RPOST_OBJ_QP, own.qp));
		rp_unmap_cq(&own.cq);
		ASSERT_EQ(0, rp_destroy(own.fd, RPOST_OBJ_CQ,
					own.cq.cmd.handle));
	}
	for (i = 0; i < ARRAY_SIZE(r); i++)
		EXPECT_EQ(0, stop_reader(&r[i]));
	EXPECT_LT(0, events_of(r, ARRAY_SIZE(r)));
}

/* Destroying an armed queue gives no event. */
TEST_F(sleepers, of_armed_queues_that_go)
{
	struct reader r;
	struct rp_cq cq;
	unsigned int i;
	uint32_t arms;

	ASSERT_EQ(0, start_reader(&r, self->comp));
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, rp_create_cq(self->s.fd, self->s.device, 16,
					  self->comp, &cq));
		if (i & 1) {
			ASSERT_EQ(0, rp_poll_in_vain(&cq));
			arms = 0;
			ASSERT_EQ(0, rp_ask_event(&cq, &arms));
			ASSERT_EQ(1, arms);
		} else {
			ASSERT_EQ(0, rp_arm_cq(&cq, 0));
		}
		rp_unmap_cq(&cq);
		ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_CQ,
					cq.cmd.handle));
	}
	EXPECT_EQ(0, stop_reader(&r));
	EXPECT_EQ(0, r.events);
}

TEST_HARNESS_MAIN
