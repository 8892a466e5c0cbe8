// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests rings in shared pages, RPOST_CQ_SMALL_ENTRIES and RPOST_CQ_SHARED_PAGE:
 * the rings of one open file may share pages, but do not overlap.  A failure
 * means that programs see each other's rings, or that one ring corrupts
 * another.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rpost_own.h"

#define BOTH	(RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE)
#define MANY	40

FIXTURE(share) {
	int fd, other;
	uint32_t device;
	struct rp_cq cq[MANY];
	unsigned int n;
	long pages;
};

/* Returns the number of the module's ring pages, or -1. */
static long ring_pages(void)
{
	return rp_debug_number("objects", "ring_pages");
}

FIXTURE_SETUP(share)
{
	rp_cq_flags = BOTH;
	self->pages = ring_pages();
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	self->other = rp_open();
	ASSERT_LE(0, self->other);
	self->device = rp_first_device(self->fd);
	ASSERT_NE(0, self->device);
}

FIXTURE_TEARDOWN(share)
{
	unsigned int i;

	for (i = 0; i < self->n; i++)
		rp_unmap_cq(&self->cq[i]);
	close(self->fd);
	close(self->other);
	EXPECT_EQ(self->pages, ring_pages());
}

static int make_in(FIXTURE_DATA(share) *self, int fd, uint32_t cqe)
{
	RP_TRY(rp_create_cq(fd, self->device, cqe, -1, &self->cq[self->n]));
	return self->n++;
}

static int make(FIXTURE_DATA(share) *self, uint32_t cqe)
{
	return make_in(self, self->fd, cqe);
}

static size_t ring_size(const struct rp_cq *cq)
{
	return sizeof(struct rpost_ring) + cq->cmd.cqe * rp_wc_size(cq);
}

static void fill(struct rp_cq *cq, int byte)
{
	memset(cq->ring, byte, ring_size(cq));
}

static bool is_filled(const struct rp_cq *cq, int byte)
{
	const char *p = (const char *)cq->ring;
	size_t i;

	for (i = 0; i < ring_size(cq); i++)
		if (p[i] != (char)byte)
			return false;
	return true;
}

/* Returns true if all is zero but the flags, which are NEED_POLL. */
static bool is_new(const struct rp_cq *cq)
{
	const uint32_t *words = (const uint32_t *)cq->ring;
	size_t i;

	if (cq->ring->flags != RPOST_RING_NEED_POLL)
		return false;
	for (i = 0; i < ring_size(cq) / 4; i++)
		if (words[i] && &words[i] != &cq->ring->flags)
			return false;
	return true;
}

static bool fits(const struct rp_cq *cq)
{
	return cq->cmd.mmap_size % getpagesize() == 0 &&
	       cq->cmd.ring_offset % sizeof(struct rpost_ring) == 0 &&
	       cq->cmd.ring_offset + ring_size(cq) <= cq->cmd.mmap_size;
}

/* No two rings overlap. */
TEST_F(share, apart)
{
	unsigned int i;

	for (i = 0; i < MANY; i++) {
		ASSERT_LE(0, make(self, 1 + i * 37 % 80));
		ASSERT_TRUE(fits(&self->cq[i]));
		ASSERT_TRUE(is_new(&self->cq[i])) TH_LOG("ring %u", i);
		fill(&self->cq[i], i + 1);
	}
	for (i = 0; i < MANY; i++)
		EXPECT_TRUE(is_filled(&self->cq[i], i + 1)) TH_LOG("ring %u", i);
}

/* The two queues of a connection take one page; so do 16 of one entry. */
TEST_F(share, pages)
{
	long before = ring_pages();
	int i;

	if (before < 0)
		SKIP(return, "no debugfs");
	if (getpagesize() != 4096)
		SKIP(return, "other pages");
	ASSERT_LE(0, make(self, 1));
	ASSERT_LE(0, make(self, 64));
	EXPECT_EQ(before + 1, ring_pages());
	EXPECT_EQ(self->cq[0].cmd.mmap_size, self->cq[1].cmd.mmap_size);
	EXPECT_NE(self->cq[0].cmd.ring_offset, self->cq[1].cmd.ring_offset);
	for (i = 0; i < 18; i++)
		ASSERT_LE(0, make(self, 1));
	EXPECT_EQ(before + 2, ring_pages());
	/* A larger ring gets pages of its own. */
	ASSERT_LE(0, make(self, 128));
	EXPECT_EQ(0, self->cq[self->n - 1].cmd.ring_offset);
	EXPECT_EQ(before + 4, ring_pages());
	while (self->n) {
		struct rp_cq *cq = &self->cq[--self->n];

		ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ, cq->cmd.handle));
		rp_unmap_cq(cq);
	}
	EXPECT_EQ(before, ring_pages());
}

/* Rings with the same number are in one page, of which one mapping is enough. */
TEST_F(share, numbers)
{
	struct rpost_resize_cq resize;
	struct rpost_ring *second;
	uint64_t number;

	ASSERT_LE(0, make(self, 1));
	ASSERT_LE(0, make(self, 1));
	number = self->cq[0].cmd.shared_page;
	EXPECT_NE(0, number);
	EXPECT_EQ(number, self->cq[1].cmd.shared_page);
	second = (void *)((char *)rp_cq_map(&self->cq[0]) + self->cq[1].cmd.ring_offset);
	EXPECT_EQ(RPOST_RING_NEED_POLL, second->flags);
	second->head = 77;
	EXPECT_EQ(77, self->cq[1].ring->head);

	/* Large rings, and those of programs that do not ask, have their own pages. */
	second->head = 0;
	ASSERT_EQ(0, rp_resize_cq(&self->cq[1], 4096, &resize));
	EXPECT_EQ(0, resize.shared_page);
	ASSERT_EQ(0, rp_resize_cq(&self->cq[1], 1, &resize));
	EXPECT_EQ(number, resize.shared_page);
	rp_cq_flags = RPOST_CQ_SMALL_ENTRIES;
	ASSERT_LE(0, make(self, 1));
	EXPECT_EQ(0, self->cq[2].cmd.shared_page);
	rp_cq_flags = BOTH;

	/* The next page has another number. */
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ, self->cq[0].cmd.handle));
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ, self->cq[1].cmd.handle));
	ASSERT_LE(0, make(self, 1));
	EXPECT_LT(number, self->cq[3].cmd.shared_page);
}

/* A new ring is zero, and creating and destroying rings changes no other. */
TEST_F(share, used_again)
{
	unsigned int i, at, x = 1;

	for (i = 0; i < MANY / 2; i++) {
		ASSERT_LE(0, make(self, 1 + i % 3 * 8));
		fill(&self->cq[i], i + 1);
	}
	for (i = 0; i < 400; i++) {
		x = x * 1664525 + 1013904223;
		at = (x >> 16) % self->n;
		ASSERT_TRUE(is_filled(&self->cq[at], at + 1));
		ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ,
					self->cq[at].cmd.handle));
		rp_unmap_cq(&self->cq[at]);
		ASSERT_EQ(0, rp_create_cq(self->fd, self->device,
					  1 + (x >> 8) % 60, -1,
					  &self->cq[at]));
		ASSERT_TRUE(fits(&self->cq[at]));
		ASSERT_TRUE(is_new(&self->cq[at]));
		fill(&self->cq[at], at + 1);
	}
	for (i = 0; i < self->n; i++)
		EXPECT_TRUE(is_filled(&self->cq[i], i + 1)) TH_LOG("ring %u", i);
}

/* Files do not share pages: filling all that one maps changes no other. */
TEST_F(share, not_with_another_file)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		ASSERT_LE(0, make_in(self, i % 2 ? self->fd : self->other, 1));
	for (i = 1; i < 8; i += 2)
		memset(rp_cq_map(&self->cq[i]), 0xff,
		       self->cq[i].cmd.mmap_size);
	for (i = 0; i < 8; i += 2)
		EXPECT_TRUE(is_new(&self->cq[i]));
}

/* After its queue is destroyed, a mapping shows the next ring there. */
TEST_F(share, mapping_outlives_the_queue)
{
	ASSERT_LE(0, make(self, 4));
	ASSERT_LE(0, make(self, 4));
	fill(&self->cq[0], 0x11);
	fill(&self->cq[1], 0x22);
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ,
				self->cq[0].cmd.handle));
	EXPECT_TRUE(is_filled(&self->cq[0], 0x11));
	ASSERT_LE(0, make(self, 4));
	EXPECT_TRUE(is_new(&self->cq[2]));
	EXPECT_TRUE(is_filled(&self->cq[1], 0x22));
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ,
				self->cq[1].cmd.handle));
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ,
				self->cq[2].cmd.handle));
	/* No ring is in the page now, but the mapping remains valid. */
	memset(rp_cq_map(&self->cq[0]), 0x33, self->cq[0].cmd.mmap_size);
	ASSERT_LE(0, make(self, 4));
	EXPECT_TRUE(is_new(&self->cq[3]));
}

/* ---------------------------------------------------------------- races */

struct worker {
	FIXTURE_DATA(share) *self;
	unsigned int seed;
	bool wrong;
};

static void *come_and_go(void *arg)
{
	struct worker *w = arg;
	unsigned int i, x = w->seed;
	struct rp_cq cq;

	for (i = 0; i < 400 && !w->wrong; i++) {
		x = x * 1664525 + 1013904223;
		if (rp_create_cq(w->self->fd, w->self->device,
				 1 + (x >> 8) % 40, -1, &cq)) {
			w->wrong = true;
			break;
		}
		w->wrong = !is_new(&cq);
		fill(&cq, w->seed);
		if (x >> 30)
			sched_yield();
		w->wrong |= !is_filled(&cq, w->seed);
		w->wrong |= rp_destroy(w->self->fd, RPOST_OBJ_CQ, cq.cmd.handle);
		rp_unmap_cq(&cq);
	}
	return NULL;
}

TEST_F(share, many_at_once)
{
	struct worker w[4];
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++) {
		w[i] = (struct worker) { .self = self, .seed = i + 1 };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, come_and_go,
					    &w[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(thread[i], NULL));
		EXPECT_FALSE(w[i].wrong);
	}
	EXPECT_EQ(0, rp_num_objects(self->fd));
}

/* The file is closed with rings in shared pages, mapped and unmapped. */
TEST_F(share, closed)
{
	int i;

	for (i = 0; i < 30; i++)
		ASSERT_LE(0, make(self, 1 + i));
	for (i = 0; i < 30; i += 3)
		ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_CQ,
					self->cq[i].cmd.handle));
	for (i = 0; i < 30; i++)
		if (i % 2)
			rp_unmap_cq(&self->cq[i]);
	for (i = 0; i < 30; i += 2)
		self->cq[i / 2] = self->cq[i];
	self->n = 15;
}

/* Traffic through two neighboring rings arrives in order in each. */
TEST_F(share, neighbours_work)
{
	struct rp_end a, b, peer_a, peer_b;
	struct rp_send send = rp_empty_send(RPOST_WR_RDMA_WRITE, 0);
	struct rpost_wc wc;
	struct rp_cq more;
	uint64_t i;

	ASSERT_EQ(0, rp_end_init(&a));
	b = a;
	rp_unmap_cq(&a.cq);
	ASSERT_EQ(0, rp_create_cq(a.fd, a.device, 16, -1, &a.cq));
	ASSERT_EQ(0, rp_create_cq(b.fd, b.device, 16, -1, &b.cq));
	ASSERT_EQ(0, rp_end_init(&peer_a));
	peer_b = peer_a;
	ASSERT_EQ(0, rp_own_join(&a, &peer_a, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_own_join(&b, &peer_b, RPOST_QPT_RC));
	for (i = 0; i < 200; i++) {
		send.wr.wr_id = 2 * i;
		ASSERT_EQ(0, rp_post_send(&a, &send));
		send.wr.wr_id = 2 * i + 1;
		ASSERT_EQ(0, rp_post_send(&b, &send));
		/*
		 * A third ring in the same page is created and destroyed
		 * meanwhile.
		 */
		ASSERT_EQ(0, rp_create_cq(a.fd, a.device, 1 + i % 4, -1, &more));
		fill(&more, 0xff);
		ASSERT_EQ(0, rp_destroy(a.fd, RPOST_OBJ_CQ, more.cmd.handle));
		rp_unmap_cq(&more);
		ASSERT_EQ(1, rp_wait_cq(&a.cq, &wc));
		EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
		EXPECT_EQ(2 * i, wc.wr_id);
		EXPECT_EQ(a.qp_num, wc.qp_num);
		ASSERT_EQ(1, rp_wait_cq(&b.cq, &wc));
		EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
		EXPECT_EQ(2 * i + 1, wc.wr_id);
		EXPECT_EQ(b.qp_num, wc.qp_num);
	}
	EXPECT_EQ(i, a.cq.ring->tail);
	EXPECT_EQ(i, b.cq.ring->tail);
	rp_unmap_cq(&b.cq);
	rp_end_close(&a);
	rp_end_close(&peer_a);
}

TEST_HARNESS_MAIN
