// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests RESIZE_CQ: the new ring takes over all waiting completions and the
 * requested event, whatever the program writes meanwhile.  A failure means that
 * resizing loses, repeats or reorders completions.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#define RP_DEPTH	64
#include "rpost_own.h"

RP_USE_DEPTH()

/* A connected queue pair and its completion queue. */
FIXTURE(resize) {
	struct rp_end e, peer;
	int comp;
	struct rpost_query_device dev;
	struct rpost_wc wc;
};

FIXTURE_VARIANT(resize) {
	uint32_t flags;		/* RPOST_CQ_* */
};

FIXTURE_VARIANT_ADD(resize, plain) { 0 };
FIXTURE_VARIANT_ADD(resize, small) { RPOST_CQ_SMALL_ENTRIES };
FIXTURE_VARIANT_ADD(resize, shared) {
	RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE
};

FIXTURE_SETUP(resize)
{
	rp_cq_flags = variant->flags;
	ASSERT_EQ(0, rp_end_init(&self->e));
	ASSERT_EQ(0, rp_end_init(&self->peer));
	self->comp = rp_end_add_channel(&self->e, 64);
	ASSERT_LE(0, self->comp);
	ASSERT_EQ(0, fcntl(self->comp, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, rp_own_join(&self->e, &self->peer, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_query_device(self->e.fd, self->e.device, &self->dev));
}

FIXTURE_TEARDOWN(resize)
{
	close(self->comp);
	rp_end_close(&self->e);
	rp_end_close(&self->peer);
}

/* Resize, map the new ring and use it. */
static int resize(struct rp_cq *cq, uint32_t cqe)
{
	struct rpost_resize_cq cmd;
	struct rp_cq old = *cq;

	RP_TRY(rp_resize_cq(cq, cqe, &cmd));
	RP_TRY(rp_use_resized(cq, &cmd));
	rp_unmap_cq(&old);
	return 0;
}

/* Post a write without data. */
static int post(FIXTURE_DATA(resize) *self, uint64_t wr_id)
{
	struct rp_send send = rp_empty_send(RPOST_WR_RDMA_WRITE, wr_id);

	return rp_post_send(&self->e, &send);
}

/* Poll until @n completions wait in the ring. */
static int wait_for(FIXTURE_DATA(resize) *self, uint32_t n)
{
	struct rpost_ring *ring = self->e.cq.ring;
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	do {
		RP_TRY(rp_fetch(&self->e.cq));
		if (__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) -
		    ring->head == n)
			return 0;
	} while (rp_now_ms() < end);
	return -ETIME;
}

#define EXPECT_NEXT(id) do {						\
	ASSERT_EQ(1, rp_wait_cq(&self->e.cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
} while (0)

TEST_F(resize, answer)
{
	struct rpost_resize_cq cmd;

	ASSERT_EQ(0, rp_resize_cq(&self->e.cq, 65, &cmd));
	EXPECT_EQ(128, cmd.cqe);
	EXPECT_EQ(0, cmd.reserved);
	EXPECT_EQ(0, cmd.reserved2);
	/* The ring is too large to share a page. */
	EXPECT_EQ(0, cmd.ring_offset);
	EXPECT_LE(sizeof(struct rpost_ring) + 128 * rp_wc_size(&self->e.cq),
		  cmd.mmap_size);
	ASSERT_EQ(0, rp_resize_cq(&self->e.cq, 1, &cmd));
	EXPECT_EQ(1, cmd.cqe);
	ASSERT_EQ(0, rp_resize_cq(&self->e.cq, self->dev.max_cqe, &cmd));
	EXPECT_LE(self->dev.max_cqe, cmd.cqe);
}

TEST_F(resize, errors)
{
	struct rpost_resize_cq cmd;
	struct rpost_ring before;

	ASSERT_EQ(0, rp_poll_cq(&self->e.cq, &self->wc));
	memcpy(&before, self->e.cq.ring, sizeof(before));
	EXPECT_EQ(-EINVAL, rp_resize_cq(&self->e.cq, self->dev.max_cqe + 1, &cmd));
	EXPECT_EQ(self->dev.max_cqe + 1, cmd.cqe);
	EXPECT_EQ(0, cmd.mmap_offset);
	EXPECT_EQ(0, memcmp(&before, self->e.cq.ring, sizeof(before)));
	/* The queue still uses its old ring. */
	ASSERT_EQ(0, post(self, 1));
	EXPECT_NEXT(1);
}

/* Completions that wait are in the new ring, at the same indices. */
TEST_F(resize, takes_along)
{
	const uint32_t sizes[] = { 128, 16, 10, 64, 256, 10, 16 };
	uint64_t next = 0, first = 0;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (j = 0; j < 7; j++)
			ASSERT_EQ(0, post(self, next++));
		ASSERT_EQ(0, wait_for(self, next - first));
		ASSERT_EQ(0, resize(&self->e.cq, sizes[i]));
		EXPECT_EQ((uint32_t)next, self->e.cq.ring->tail);
		EXPECT_EQ((uint32_t)first, self->e.cq.ring->head);
		for (j = 0; j < 6 + i % 2; j++)
			EXPECT_NEXT(first++);
	}
	while (first < next)
		EXPECT_NEXT(first++);
	EXPECT_TRUE(rp_quiet_cq(&self->e.cq));
	EXPECT_EQ(0, self->e.cq.ring->flags & RPOST_RING_OVERRUN);
}

TEST_F(resize, below_what_waits)
{
	struct rpost_resize_cq cmd;
	int i;

	for (i = 0; i < 17; i++)
		ASSERT_EQ(0, post(self, i));
	ASSERT_EQ(0, wait_for(self, 17));
	EXPECT_EQ(-EINVAL, rp_resize_cq(&self->e.cq, 1, &cmd));
	EXPECT_EQ(-EINVAL, rp_resize_cq(&self->e.cq, 16, &cmd));
	for (i = 0; i < 10; i++)
		EXPECT_NEXT((unsigned int)i);
	ASSERT_EQ(0, resize(&self->e.cq, 7));
	for (; i < 17; i++)
		EXPECT_NEXT((unsigned int)i);
	/* A ring that is exactly full becomes larger. */
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, post(self, i));
	ASSERT_EQ(0, wait_for(self, 8));
	ASSERT_EQ(0, resize(&self->e.cq, 9));
	for (i = 8; i < 16; i++)
		ASSERT_EQ(0, post(self, i));
	ASSERT_EQ(0, wait_for(self, 16));
	for (i = 0; i < 16; i++)
		EXPECT_NEXT((unsigned int)i);
}

/* The old ring stays as it was, and writing to it changes nothing. */
TEST_F(resize, old_ring)
{
	struct rpost_ring *old = self->e.cq.ring;
	struct rpost_resize_cq cmd;
	struct rp_cq cq = self->e.cq;

	ASSERT_EQ(0, post(self, 1));
	ASSERT_EQ(0, wait_for(self, 1));
	ASSERT_EQ(0, rp_resize_cq(&self->e.cq, 256, &cmd));
	ASSERT_EQ(0, rp_use_resized(&self->e.cq, &cmd));
	ASSERT_EQ(0, post(self, 2));
	ASSERT_EQ(0, wait_for(self, 2));
	EXPECT_EQ(1, old->tail);
	EXPECT_EQ(1, cq.wcs[0].wr_id);
	memset(rp_cq_map(&cq), 0xff, cq.cmd.mmap_size);
	EXPECT_NEXT(1);
	EXPECT_NEXT(2);
	rp_unmap_cq(&cq);
	/* The old size does not fit the new ring's mapping. */
	EXPECT_EQ(MAP_FAILED, mmap(NULL, cq.cmd.mmap_size, PROT_READ,
				   MAP_SHARED, cq.fd, cmd.mmap_offset));
}

/* A requested event comes, whether the old or the new ring has the request. */
TEST_F(resize, armed)
{
	struct rpost_comp_event event;
	struct pollfd pfd = { .fd = self->comp, .events = POLLIN };
	uint32_t i;

	ASSERT_EQ(0, rp_poll_cq(&self->e.cq, &self->wc));
	for (i = 1; i < 6; i++) {
		__atomic_store_n(&self->e.cq.ring->arm, i, __ATOMIC_SEQ_CST);
		if (rp_need_poll(&self->e.cq))
			ASSERT_EQ(0, rp_arm_cq(&self->e.cq, 0));
		ASSERT_EQ(0, resize(&self->e.cq, 16 << i % 3));
		EXPECT_EQ(i, self->e.cq.ring->arm);
		EXPECT_EQ(i - 1, self->e.cq.ring->fired);
		EXPECT_EQ(0, self->e.cq.ring->flags);
		ASSERT_EQ(0, post(self, i));
		ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
		ASSERT_EQ(sizeof(event),
			  read(self->comp, &event, sizeof(event)));
		EXPECT_EQ((uintptr_t)&self->e.cq, event.user_data);
		EXPECT_NEXT((unsigned int)i);
	}
	EXPECT_TRUE(rp_quiet(self->comp));
}

/* A ring that lost a completion reports it even after a resize. */
TEST_F(resize, overrun_stays)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int i;

	ASSERT_EQ(0, resize(&self->e.cq, 2));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, post(self, i));
	ASSERT_EQ(0, wait_for(self, 2));
	while (!(self->e.cq.ring->flags & RPOST_RING_OVERRUN) &&
	       rp_now_ms() < end)
		ASSERT_EQ(0, rp_fetch(&self->e.cq));
	EXPECT_NE(0, self->e.cq.ring->flags & RPOST_RING_OVERRUN);
	ASSERT_EQ(0, resize(&self->e.cq, 64));
	EXPECT_NE(0, self->e.cq.ring->flags & RPOST_RING_OVERRUN);
	EXPECT_NEXT(0);
	EXPECT_NEXT(1);
}

/* ---------------------------------------------------------------- races */

struct traffic {
	FIXTURE_DATA(resize) *self;
	bool stop;
	uint64_t posted;
	unsigned int resized;
	int wrong;
};

static void *post_for_ever(void *arg)
{
	struct traffic *t = arg;
	int ret;

	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		ret = post(t->self, t->posted);
		if (!ret)
			t->posted++;
		else if (ret != -ENOMEM)
			t->wrong = ret;
		else
			sched_yield();
	}
	return NULL;
}

/* Resize during traffic: each completion comes once, and in order. */
TEST_F(resize, under_traffic)
{
	struct traffic t = { .self = self };
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS, next = 0;
	unsigned int rounds = 0, i;
	pthread_t thread;
	int ret;

	ASSERT_EQ(0, pthread_create(&thread, NULL, post_for_ever, &t));
	do {
		ret = resize(&self->e.cq, 64 + rounds % 3 * 100);
		/* More completions may wait than the smaller ring takes. */
		ASSERT_TRUE(!ret || ret == -EINVAL);
		rounds++;
		for (i = 0; i < 100 && rp_poll_cq(&self->e.cq,
						  &self->wc) == 1; i++) {
			ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
			ASSERT_EQ(next, self->wc.wr_id);
			next++;
		}
	} while (rounds < 12 && rp_now_ms() < end);
	__atomic_store_n(&t.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, t.wrong);
	while (next < t.posted) {
		ASSERT_EQ(1, rp_wait_cq(&self->e.cq, &self->wc));
		ASSERT_EQ(next, self->wc.wr_id);
		next++;
	}
	EXPECT_LT(5, rounds);
	EXPECT_EQ(0, self->e.cq.ring->flags & RPOST_RING_OVERRUN);
}

static void *map_for_ever(void *arg)
{
	struct traffic *t = arg;
	struct rp_cq *cq = &t->self->e.cq;
	size_t page = getpagesize(), pages = 1;
	void *p;

	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		p = mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_SHARED,
			 cq->fd, cq->cmd.mmap_offset);
		if (p != MAP_FAILED) {
			((volatile char *)p)[pages * page - 1] = 1;
			munmap(p, pages * page);
			__atomic_add_fetch(&t->posted, 1, __ATOMIC_RELAXED);
		} else if (errno != EINVAL) {
			t->wrong = -errno;
		}
		pages = pages % 12 + 1;
	}
	return NULL;
}

static void *resize_for_ever(void *arg)
{
	struct traffic *t = arg;
	struct rpost_resize_cq cmd;
	uint32_t i = 0;
	int ret;

	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		ret = rp_resize_cq(&t->self->e.cq, 64 + i++ % 4 * 150, &cmd);
		if (!ret)
			__atomic_add_fetch(&t->resized, 1, __ATOMIC_RELAXED);
		else if (ret != -EINVAL)
			t->wrong = ret;
	}
	return NULL;
}

/* The least number of mappings and resizes. */
#define MAPPED		200
#define RESIZED		20

/* One thread maps the ring while two others resize it. */
TEST_F(resize, mapped_meanwhile)
{
	struct traffic t = { .self = self };
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	pthread_t threads[3];
	int i;

	ASSERT_EQ(0, pthread_create(&threads[0], NULL, map_for_ever, &t));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, resize_for_ever, &t));
	ASSERT_EQ(0, pthread_create(&threads[2], NULL, resize_for_ever, &t));
	while ((__atomic_load_n(&t.posted, __ATOMIC_RELAXED) < MAPPED ||
		__atomic_load_n(&t.resized, __ATOMIC_RELAXED) < RESIZED) &&
	       rp_now_ms() < end)
		usleep(1000);
	__atomic_store_n(&t.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, t.wrong);
	EXPECT_LE(MAPPED, t.posted);
	EXPECT_LE(RESIZED, t.resized);
	ASSERT_EQ(0, resize(&self->e.cq, 64));
	ASSERT_EQ(0, post(self, 5));
	EXPECT_NEXT(5);
}

static void *scribble(void *arg)
{
	struct traffic *t = arg;
	uint32_t *words = rp_cq_map(&t->self->e.cq), i, x = 1;

	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) {
		for (i = 0; i < t->self->e.cq.cmd.mmap_size / 4; i++) {
			x = x * 1664525 + 1013904223;
			words[i] = x;
		}
	}
	return NULL;
}

/* The program writes to the old ring's words before each resize. */
TEST_F(resize, scribbled)
{
	struct traffic t = { .self = self };
	const uint32_t heads[] = { 1, 63, 64, 65, 0x7fffffff, 0x80000000,
				   UINT32_MAX };
	uint64_t end = rp_now_ms() + 300;
	struct rpost_resize_cq cmd;
	struct rpost_ring *fresh;
	unsigned int i = 0;
	pthread_t thread;
	char *map;
	int ret;

	ASSERT_EQ(0, pthread_create(&thread, NULL, scribble, &t));
	do {
		ret = post(self, 1);
		ASSERT_TRUE(!ret || ret == -ENOMEM);
		ret = rp_resize_cq(&self->e.cq, 1 + i++ % 200, &cmd);
		ASSERT_TRUE(!ret || ret == -EINVAL)
			TH_LOG("%d", ret);
		if (ret)
			continue;
		/* It also writes to the new ring's words. */
		map = mmap(NULL, cmd.mmap_size, PROT_READ | PROT_WRITE,
			   MAP_SHARED, self->e.fd, cmd.mmap_offset);
		ASSERT_NE(MAP_FAILED, (void *)map);
		fresh = (void *)(map + cmd.ring_offset);
		fresh->head = heads[i % ARRAY_SIZE(heads)];
		fresh->tail = heads[(i + 1) % ARRAY_SIZE(heads)];
		fresh->flags = UINT32_MAX;
		munmap(map, cmd.mmap_size);
	} while (rp_now_ms() < end);
	__atomic_store_n(&t.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, self->e.qp));
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_CQ,
				self->e.cq.cmd.handle));
}

/* One thread destroys the queue while another resizes it. */
TEST_F(resize, destroyed_meanwhile)
{
	struct traffic t = { .self = self };
	pthread_t thread;
	int i;

	ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, self->e.qp));
	for (i = 0; i < 20; i++) {
		t.stop = false;
		t.wrong = 0;
		ASSERT_EQ(0, pthread_create(&thread, NULL, resize_for_ever,
					    &t));
		usleep(i * 200);
		EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_CQ,
					self->e.cq.cmd.handle));
		usleep(300);
		__atomic_store_n(&t.stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_TRUE(!t.wrong || t.wrong == -ENOENT);
		rp_unmap_cq(&self->e.cq);
		ASSERT_EQ(0, rp_create_cq(self->e.fd, self->e.device, 64,
					  self->comp, &self->e.cq));
	}
}

TEST_HARNESS_MAIN
