// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests ibv_resize_cq(3): no completion and no event may be lost, even if
 * another thread polls at the same time.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/resource.h>

#include "rdma_test.h"

#define CQE	16
#define WRS	16

FIXTURE(resize) {
	struct pair p;
	struct end *c, *s;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;	/* of the client's sends */
	struct ibv_wc wc;
};

FIXTURE_SETUP(resize)
{
	struct ibv_context *verbs;
	struct pair_opts opts;

	pair_defaults(&opts);
	opts.client_qp.cap.max_send_wr = WRS;
	ASSERT_EQ(0, pair_to_resolve(&self->p, &opts));
	verbs = self->p.client.id->verbs;
	self->channel = ibv_create_comp_channel(verbs);
	ASSERT_NE(NULL, self->channel);
	self->cq = ibv_create_cq(verbs, CQE, self, self->channel, 0);
	ASSERT_NE(NULL, self->cq);
	opts.client_qp.send_cq = self->cq;
	ASSERT_EQ(0, pair_after_resolve(&self->p, &opts));
	self->c = &self->p.client;
	self->s = &self->p.server;
}

FIXTURE_TEARDOWN(resize)
{
	pair_close(&self->p);
	if (self->cq) {
		EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	}
	if (self->channel) {
		EXPECT_EQ(0, ibv_destroy_comp_channel(self->channel));
	}
}

/* Post a write; writes complete in order. */
static int post(struct end *c, struct end *s, unsigned long i)
{
	return rdma_post_write(c->id, (void *)i, c->buf, 8, c->mr,
			       IBV_SEND_SIGNALED, addr64(s->buf), s->mr->rkey);
}

/*
 * Wait without polling until all work requests have completed.  Reads complete
 * in order, so all are done when the data of a last read have come.
 */
static bool settle(struct end *c, struct end *s)
{
	volatile uint8_t *last = c->buf + 100;
	uint8_t mark = *last + 1;
	uint64_t end = now_ms() + DEADLINE_MS;

	s->buf[100] = mark;
	if (rdma_post_read(c->id, NULL, c->buf + 100, 1, c->mr, 0,
			   addr64(s->buf + 100), s->mr->rkey))
		return false;
	while (*last != mark && now_ms() < end)
		sched_yield();
	return *last == mark;
}

TEST_F(resize, larger_with_completions_in_it)
{
	unsigned long i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post(self->c, self->s, i));
	ASSERT_TRUE(settle(self->c, self->s));
	ASSERT_EQ(0, ibv_resize_cq(self->cq, 200));
	EXPECT_LE(200, self->cq->cqe);
	for (; i < 15; i++)
		ASSERT_EQ(0, post(self->c, self->s, i));
	for (i = 0; i < 15; i++)
		ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(no_comp(self->cq));
}

TEST_F(resize, smaller_with_completions_in_it)
{
	unsigned long i;

	ASSERT_EQ(0, ibv_resize_cq(self->cq, 500));
	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post(self->c, self->s, i));
	ASSERT_TRUE(settle(self->c, self->s));
	ASSERT_EQ(0, ibv_resize_cq(self->cq, 12));
	EXPECT_LE(12, self->cq->cqe);
	for (i = 0; i < 10; i++)
		ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(no_comp(self->cq));
}

TEST_F(resize, below_what_waits)
{
	unsigned long i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, post(self->c, self->s, i));
	ASSERT_TRUE(settle(self->c, self->s));
	EXPECT_EQ(EINVAL, ibv_resize_cq(self->cq, 4));
	EXPECT_LE(CQE, self->cq->cqe);
	for (i = 0; i < 10; i++)
		ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RDMA_WRITE, i);
}

TEST_F(resize, wrong_sizes)
{
	struct ibv_device_attr attr;
	int before = self->cq->cqe;

	ASSERT_EQ(0, ibv_query_device(self->c->id->verbs, &attr));
	EXPECT_EQ(EINVAL, ibv_resize_cq(self->cq, 0));
	EXPECT_EQ(EINVAL, ibv_resize_cq(self->cq, -1));
	EXPECT_EQ(EINVAL, ibv_resize_cq(self->cq, attr.max_cqe + 1));
	EXPECT_EQ(before, self->cq->cqe);
	ASSERT_EQ(0, post(self->c, self->s, 3));
	ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RDMA_WRITE, 3ul);
}

/* An event that was asked for before the resize comes after it. */
TEST_F(resize, armed)
{
	struct ibv_cq *cq;
	void *context;
	int round;

	for (round = 1; round < 4; round++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_EQ(0, ibv_resize_cq(self->cq, round * 100));
		EXPECT_FALSE(readable(self->channel->fd, 0));
		ASSERT_EQ(0, post(self->c, self->s, round));
		ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
		EXPECT_EQ(self->cq, cq);
		EXPECT_EQ(self, context);
		ibv_ack_cq_events(cq, 1);
		ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RDMA_WRITE,
			       (unsigned long)round);
	}
}

/* A resize causes no event that was not asked for. */
TEST_F(resize, not_armed)
{
	ASSERT_EQ(0, ibv_resize_cq(self->cq, 100));
	ASSERT_EQ(0, post(self->c, self->s, 1));
	ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RDMA_WRITE, 1ul);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

/* Resize rings that have wrapped around. */
TEST_F(resize, again_and_again)
{
	static const int sizes[] = { 16, 300, 17, 1000, 33, 64 };
	unsigned long posted = 0, polled = 0;
	unsigned int round, i;

	for (round = 0; round < 60; round++) {
		for (i = 0; i < round % 12 + 1; i++)
			ASSERT_EQ(0, post(self->c, self->s, posted++));
		ASSERT_EQ(0, ibv_resize_cq(self->cq, sizes[round % 6]));
		while (polled < posted) {
			ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RDMA_WRITE, polled);
			polled++;
		}
	}
	EXPECT_TRUE(no_comp(self->cq));
}

#define MESSAGES 2000

struct poller {
	struct ibv_cq *cq;
	unsigned int count;
	bool bad;
};

#define LOAD_MS	(6 * DEADLINE_MS)	/* for KASAN on a busy machine */

static void *poll_all(void *arg)
{
	struct poller *p = arg;
	uint64_t end = now_ms() + LOAD_MS;
	struct ibv_wc wc[8];
	bool bad;
	int i, n;

	while (p->count < MESSAGES) {
		n = ibv_poll_cq(p->cq, 8, wc);
		bad = n < 0 || now_ms() > end;
		for (i = 0; i < n; i++)
			bad |= wc[i].wr_id != p->count + i ||
			       wc[i].status != IBV_WC_SUCCESS;
		if (bad) {
			__atomic_store_n(&p->bad, true, __ATOMIC_RELEASE);
			break;
		}
		__atomic_add_fetch(&p->count, n, __ATOMIC_RELEASE);
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* One thread polls; this one posts, asks for events, and resizes. */
TEST_F(resize, under_load)
{
	struct poller p = { .cq = self->cq };
	unsigned long i, resized = 0;
	pthread_t thread;
	int err;

	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_all, &p));
	for (i = 0; i < MESSAGES; i++) {
		while (i - __atomic_load_n(&p.count, __ATOMIC_ACQUIRE) >= WRS &&
		       !__atomic_load_n(&p.bad, __ATOMIC_ACQUIRE))
			sched_yield();
		ASSERT_FALSE(__atomic_load_n(&p.bad, __ATOMIC_ACQUIRE));
		ASSERT_EQ(0, post(self->c, self->s, i));
		if (i % 16 == 7) {
			ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
			err = ibv_resize_cq(self->cq, i % 32 < 16 ? 600 : WRS);
			ASSERT_EQ(0, err);
			resized++;
		}
	}
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_FALSE(p.bad);
	EXPECT_EQ(MESSAGES, p.count);
	EXPECT_LE(100, resized);
	EXPECT_TRUE(no_comp(self->cq));
}

/* Forbid further mappings; return the old limit in @old. */
static int limit_mappings(struct rlimit *old)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;
	struct rlimit limit;
	int n;

	if (!f)
		return -1;
	n = fscanf(f, "%lu", &pages);
	fclose(f);
	if (n != 1 || getrlimit(RLIMIT_AS, old))
		return -1;
	limit = *old;
	limit.rlim_cur = pages * getpagesize();
	return setrlimit(RLIMIT_AS, &limit);
}

/* The kernel has changed to a ring that the process cannot map. */
TEST_F(resize, no_room_for_the_ring)
{
	struct rlimit old;
	int i, err;

	if (over_incumbent() || under_valgrind())
		SKIP(return, "nothing to compare with");
	if (under_sanitizer())
		SKIP(return, "the sanitizer needs mappings, too");
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post(self->c, self->s, i));
	ASSERT_TRUE(settle(self->c, self->s));
	ASSERT_EQ(0, limit_mappings(&old));
	err = ibv_resize_cq(self->cq, 4096);
	ASSERT_EQ(0, setrlimit(RLIMIT_AS, &old));
	ASSERT_EQ(ENOMEM, err);
	/* The queue has no ring now; calls fail and touch no other memory. */
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-ENOMEM, ibv_poll_cq(self->cq, 1, &self->wc));
		EXPECT_EQ(ENOMEM, ibv_resize_cq(self->cq, 16));
		EXPECT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	}
	/* The teardown destroys the queue pair and then the queue. */
}

/* Return the number of the process's mappings of the device. */
static int ring_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += !!strstr(line, "rdma_post") && !!strstr(line, " rw-s ");
	if (f)
		fclose(f);
	return n;
}

/* Small queues share a page, and the library maps it once. */
TEST_F(resize, mappings)
{
	struct ibv_cq *cq[8];
	unsigned int i;
	int before;

	if (over_incumbent())
		SKIP(return, "nothing to compare with");
	before = ring_mappings();
	ASSERT_LT(0, before);
	for (i = 0; i < ARRAY_SIZE(cq); i++) {
		cq[i] = ibv_create_cq(self->cq->context, 1, NULL, NULL, 0);
		ASSERT_NE(NULL, cq[i]);
	}
	EXPECT_GE(before + 1, ring_mappings());
	before = ring_mappings();
	ASSERT_EQ(0, ibv_resize_cq(cq[0], 4096));
	EXPECT_EQ(before + 1, ring_mappings());
	ASSERT_EQ(0, ibv_resize_cq(cq[0], 1));
	EXPECT_EQ(before, ring_mappings());
	/* The others still have their mapping. */
	for (i = 0; i < ARRAY_SIZE(cq); i++) {
		EXPECT_EQ(0, ibv_poll_cq(cq[ARRAY_SIZE(cq) - 1], 1, &self->wc));
		ASSERT_EQ(0, ibv_destroy_cq(cq[i]));
		if (i == ARRAY_SIZE(cq) - 2)
			ASSERT_EQ(0, ibv_req_notify_cq(cq[i + 1], 0));
	}
	EXPECT_GE(before, ring_mappings());
}

TEST_HARNESS_MAIN
