// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a thread may overwrite every word that a program shares with the
 * kernel while the kernel works on the ring.  A second queue of the same file,
 * whose ring is left alone, shows that the program harms only itself.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rpost_own.h"

#define BUF	4096
#define CQE	16	/* few, so that the ring wraps around */
#define RING_WORDS	(sizeof(struct rpost_ring) / 4)
#define WC_WORDS	(sizeof(struct rpost_wc) / 4)

/*
 * Two pairs of queue pairs: @bad and its peer, @good and its peer.  @good
 * belongs to the same open file as @bad.
 */
FIXTURE(words) {
	struct rp_end bad, bad_peer, good, good_peer;
	char *mem;
	struct rpost_reg_mr mr, peer_mr;
	int comp;
	uint64_t messages;
	struct scribbler {
		pthread_t thread;
		uint32_t *words;
		uint32_t first, num;	/* words that are overwritten */
		uint32_t value;
		bool random;
		bool stop;
	} s;
};

FIXTURE_VARIANT(words) {
	uint32_t flags;		/* RPOST_CQ_*; the rings share no page */
};

FIXTURE_VARIANT_ADD(words, plain) { 0 };
FIXTURE_VARIANT_ADD(words, small) { RPOST_CQ_SMALL_ENTRIES };

FIXTURE_SETUP(words)
{
	struct rp_end *bad = &self->bad, *good = &self->good;

	rp_cq_flags = variant->flags;
	self->mem = rp_pages(2 * BUF);
	ASSERT_NE(NULL, self->mem);
	ASSERT_EQ(0, rp_end_init(bad));
	rp_unmap_cq(&bad->cq);
	self->comp = rp_comp_channel(bad->fd);
	ASSERT_LE(0, self->comp);
	ASSERT_EQ(0, fcntl(self->comp, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, rp_create_cq(bad->fd, bad->device, CQE, self->comp,
				  &bad->cq));
	*good = *bad;
	ASSERT_EQ(0, rp_create_cq(good->fd, good->device, CQE, -1, &good->cq));
	ASSERT_EQ(0, rp_end_init(&self->bad_peer));
	self->good_peer = self->bad_peer;
	ASSERT_EQ(0, rp_own_join(bad, &self->bad_peer, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_own_join(good, &self->good_peer, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_reg_mr(bad->fd, bad->pd, self->mem, BUF,
			       RPOST_ACCESS_LOCAL_WRITE, &self->mr));
	ASSERT_EQ(0, rp_reg_mr(self->bad_peer.fd, self->bad_peer.pd,
			       self->mem + BUF, BUF, RPOST_ACCESS_LOCAL_WRITE |
			       RPOST_ACCESS_REMOTE_WRITE, &self->peer_mr));
}

FIXTURE_TEARDOWN(words)
{
	rp_unmap_cq(&self->good.cq);
	close(self->comp);
	rp_end_close(&self->bad);
	rp_end_close(&self->bad_peer);
	munmap(self->mem, 2 * BUF);
}

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint32_t i, x = 1;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		for (i = s->first; i < s->first + s->num; i++) {
			x = x * 1664525 + 1013904223;
			__atomic_store_n(&s->words[i],
					 s->random ? x : s->value,
					 __ATOMIC_RELAXED);
		}
	}
	return NULL;
}

static int scribble_start(FIXTURE_DATA(words) *self)
{
	self->s.words = (void *)self->bad.cq.ring;
	self->s.stop = false;
	return pthread_create(&self->s.thread, NULL, scribble, &self->s);
}

static void scribble_stop(FIXTURE_DATA(words) *self)
{
	__atomic_store_n(&self->s.stop, true, __ATOMIC_RELAXED);
	pthread_join(self->s.thread, NULL);
}

static int write_by(FIXTURE_DATA(words) *self, struct rp_end *end,
		    uint64_t wr_id)
{
	/* Late writes of one queue pair must not reach the other's place. */
	uint32_t at = end == &self->good ? 0 : BUF / 2;
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, wr_id,
				      self->mem + at, 8, self->mr.lkey);

	send.wr.remote_addr = self->peer_mr.addr + at;
	send.wr.rkey = self->peer_mr.rkey;
	return rp_post_send(end, &send);
}

/* Use the ring that is overwritten; only documented errors may occur. */
static int work(FIXTURE_DATA(words) *self)
{
	struct rp_end *bad = &self->bad;
	struct rpost_comp_event events[4];
	int i, ret;

	for (i = 0; i < 3; i++) {
		ret = write_by(self, bad, 1);
		if (ret && ret != -ENOMEM)
			return ret;
	}
	ret = rp_fetch(&bad->cq);
	if (!ret)
		ret = rp_arm_cq(&bad->cq, 0);
	if (read(self->comp, events, sizeof(events)) < 0 && errno != EAGAIN)
		ret = -errno;
	return ret;
}

/* Use the other queue: one more message, its completion and no other. */
static void others_work(struct __test_metadata *_metadata,
			FIXTURE_DATA(words) *self)
{
	const struct rpost_ring *ring = self->good.cq.ring;
	uint64_t n = ++self->messages;
	struct rpost_wc wc;
	unsigned int i;

	memcpy(self->mem, &n, 8);
	ASSERT_EQ(0, write_by(self, &self->good, n));
	ASSERT_EQ(1, rp_wait_cq(&self->good.cq, &wc));
	EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
	EXPECT_EQ(n, wc.wr_id);
	EXPECT_EQ(self->good.qp_num, wc.qp_num);
	EXPECT_EQ(0, memcmp(self->mem, self->mem + BUF, 8));
	EXPECT_EQ(n, ring->tail);
	EXPECT_EQ(0, ring->flags & RPOST_RING_OVERRUN);
	for (i = 0; i < ARRAY_SIZE(ring->reserved); i++)
		ASSERT_EQ(0, ring->reserved[i]);
}

/*
 * Each word of the ring's control block and of one entry takes each of several
 * values while completions arrive.  Posts must succeed or find the queue full,
 * polling and arming must return, and the other queue must not be affected.
 */
TEST_F(words, one_at_a_time)
{
	const uint32_t values[] = { 0, 1, CQE, CQE + 1, 0x7fffffff, 0x80000000,
				    UINT32_MAX - CQE, UINT32_MAX };
	struct rpost_ring *ring = self->bad.cq.ring;
	unsigned int i;

	self->s.num = 1;
	for (self->s.first = 0; self->s.first < RING_WORDS + WC_WORDS;
	     self->s.first++) {
		for (i = 0; i < ARRAY_SIZE(values); i++) {
			/* The kernel does not read these words: try fewer. */
			if (self->s.first > 2 && (self->s.first < 16 ||
						  self->s.first > 17) &&
			    i % 4)
				continue;
			self->s.value = values[i];
			ASSERT_EQ(0, scribble_start(self));
			ASSERT_EQ(0, work(self))
				TH_LOG("word %u value %#x", self->s.first,
				       values[i]);
			others_work(_metadata, self);
			scribble_stop(self);
		}
		/* Consume completions as a program does. */
		__atomic_store_n(&ring->head, ring->tail, __ATOMIC_RELEASE);
	}
	EXPECT_EQ(0, rp_destroy(self->bad.fd, RPOST_OBJ_QP, self->bad.qp));
	EXPECT_EQ(0, rp_destroy(self->bad.fd, RPOST_OBJ_CQ,
				self->bad.cq.cmd.handle));
	others_work(_metadata, self);
}

/*
 * A thread overwrites the whole mapping with random values at full speed while
 * the queue works, is resized and is destroyed.  The same must hold, except
 * that a resize may fail with EINVAL.
 */
TEST_F(words, all_at_once)
{
	uint64_t end = rp_now_ms() + 700;
	struct rpost_resize_cq resize;
	struct rp_cq old;
	unsigned int i = 0;
	int ret;

	self->s.random = true;
	self->s.num = self->bad.cq.cmd.mmap_size / 4;
	ASSERT_EQ(0, scribble_start(self));
	do {
		ASSERT_EQ(0, work(self));
		others_work(_metadata, self);
		if (++i % 16)
			continue;
		/* Only the old ring is mapped; the kernel no longer uses it. */
		scribble_stop(self);
		ret = rp_resize_cq(&self->bad.cq, CQE, &resize);
		ASSERT_TRUE(!ret || ret == -EINVAL)
			TH_LOG("%d", ret);
		if (!ret) {
			old = self->bad.cq;
			ASSERT_EQ(0, rp_use_resized(&self->bad.cq, &resize));
			rp_unmap_cq(&old);
		}
		ASSERT_EQ(0, scribble_start(self));
	} while (rp_now_ms() < end || i < 32);
	EXPECT_EQ(0, rp_destroy(self->bad.fd, RPOST_OBJ_QP, self->bad.qp));
	EXPECT_EQ(0, rp_destroy(self->bad.fd, RPOST_OBJ_CQ,
				self->bad.cq.cmd.handle));
	others_work(_metadata, self);
	scribble_stop(self);
}

TEST_HARNESS_MAIN
