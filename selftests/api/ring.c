// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posts through a send ring, which only librdma_post has: they do what posts by
 * system call do.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include <rdma/rdma_post.h>

#include "rdma_test.h"

#pragma weak rdma_post_setup_ring

#define DEPTH	16	/* of pair_defaults() */

FIXTURE(ring) {
	struct pair p;
	struct end *c, *s;
	struct rdma_cm_id *id;
	uint64_t remote;
	uint32_t rkey;
	struct ibv_wc wc;
};

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, pair_open(&self->p, NULL));
	self->c = &self->p.client;
	self->s = &self->p.server;
	self->id = self->c->id;
	self->remote = addr64(self->s->buf);
	self->rkey = self->s->mr->rkey;
}

FIXTURE_TEARDOWN(ring)
{
	pair_close(&self->p);
}

#define SETUP_RING() do {						\
	if (over_incumbent())						\
		SKIP(return, "only librdma_post has rings");		\
	ASSERT_EQ(0, rdma_post_setup_ring(self->id, 0));		\
	/* The first goes by system call. */				\
	ASSERT_EQ(0, write_one(self, 999, 8));				\
	ASSERT_COMP_OK(self->id->send_cq, &self->wc,			\
		       IBV_WC_RDMA_WRITE, 999);				\
} while (0)

static int write_one(FIXTURE_DATA(ring) *self, uint64_t context, size_t length)
{
	return rdma_post_write(self->id, (void *)(uintptr_t)context,
			       self->c->buf, length, self->c->mr,
			       IBV_SEND_SIGNALED, self->remote, self->rkey);
}

TEST_F(ring, once)
{
	if (over_incumbent())
		SKIP(return, "only librdma_post has rings");
	errno = 0;
	EXPECT_EQ(-1, rdma_post_setup_ring(self->id, 1 << 30));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, rdma_post_setup_ring(self->p.listen, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, rdma_post_setup_ring(self->id, 0));
	EXPECT_EQ(-1, rdma_post_setup_ring(self->id, 0));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(ring, write_and_read)
{
	SETUP_RING();
	fill(self->c->buf, 5000, 1);
	ASSERT_EQ(0, write_one(self, 1, 5000));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 1);
	EXPECT_TRUE(filled(self->s->buf, 5000, 1));
	EXPECT_EQ(self->id->qp->qp_num, self->wc.qp_num);
	fill(self->s->buf, 300, 2);
	ASSERT_EQ(0, rdma_post_read(self->id, (void *)2, self->c->buf, 300,
				    self->c->mr, IBV_SEND_SIGNALED,
				    self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, 2);
	EXPECT_TRUE(filled(self->c->buf, 300, 2));
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

TEST_F(ring, inline_send)
{
	SETUP_RING();
	ASSERT_EQ(0, rdma_post_recv(self->s->id, (void *)3, self->s->buf, 64,
				    self->s->mr));
	fill(self->c->buf, 33, 3);
	ASSERT_EQ(0, rdma_post_send(self->id, (void *)4, self->c->buf, 33, NULL,
				    IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	/* It has been copied. */
	memset(self->c->buf, 0, 33);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, 4);
	ASSERT_COMP_OK(self->s->id->recv_cq, &self->wc, IBV_WC_RECV, 3);
	EXPECT_TRUE(filled(self->s->buf, 33, 3));
}

/* As many as the queue holds, in one list, time and again. */
TEST_F(ring, lists)
{
	struct ibv_sge entry = sge(self->c, 0, 64);
	struct ibv_send_wr wr[DEPTH], *bad;
	int i, round;

	SETUP_RING();
	for (i = 0; i < DEPTH; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i,
			.next = i + 1 < DEPTH ? &wr[i + 1] : NULL,
			.sg_list = &entry,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = self->remote,
			.wr.rdma.rkey = self->rkey,
		};
	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, ibv_post_send(self->id->qp, wr, &bad));
		for (i = 0; i < DEPTH; i++)
			ASSERT_COMP_OK(self->id->send_cq, &self->wc,
				       IBV_WC_RDMA_WRITE, i);
	}
}

/* What the library sees is told by the post, and what comes before is posted. */
TEST_F(ring, refused_at_once)
{
	struct ibv_sge entry = sge(self->c, 0, 64);
	struct ibv_send_wr wr[3], *bad = NULL;
	int i;

	SETUP_RING();
	for (i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i,
			.next = i < 2 ? &wr[i + 1] : NULL,
			.sg_list = &entry,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = self->remote,
			.wr.rdma.rkey = self->rkey,
		};
	wr[1].opcode = IBV_WR_TSO;
	EXPECT_EQ(EOPNOTSUPP, ibv_post_send(self->id->qp, wr, &bad));
	EXPECT_EQ(&wr[1], bad);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 0);
	wr[1].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	EXPECT_EQ(EINVAL, ibv_post_send(self->id->qp, &wr[1], &bad));
	EXPECT_EQ(&wr[1], bad);
	EXPECT_TRUE(no_comp(self->id->send_cq));
	/* Nothing is broken. */
	ASSERT_EQ(0, write_one(self, 7, 8));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 7);
}

TEST_F(ring, bad_key)
{
	SETUP_RING();
	ASSERT_EQ(0, rdma_post_write(self->id, (void *)5, self->s->buf, 8,
				     self->c->mr, IBV_SEND_SIGNALED,
				     self->remote, self->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_LOC_PROT_ERR, 5);
}

/* Who does not poll is told at last, and loses nothing. */
TEST_F(ring, full)
{
	uint64_t n = 0, i;

	SETUP_RING();
	while (!write_one(self, n, 8))
		n++;
	EXPECT_EQ(ENOMEM, errno);
	EXPECT_LE(DEPTH, n);
	for (i = 0; i < n; i++)
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE,
			       i);
	ASSERT_EQ(0, write_one(self, n, 8));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, n);
}

#define NUM_THREADS	4
#define PER_THREAD	(DEPTH / NUM_THREADS)

struct poster {
	FIXTURE_DATA(ring) *self;
	int failed;
};

static void *post_some(void *arg)
{
	struct poster *poster = arg;
	int i;

	for (i = 0; i < PER_THREAD; i++)
		poster->failed |= write_one(poster->self, 50, 8);
	return NULL;
}

TEST_F(ring, threads)
{
	struct poster posters[NUM_THREADS];
	pthread_t threads[NUM_THREADS];
	int i, round;

	SETUP_RING();
	for (round = 0; round < 10; round++) {
		for (i = 0; i < NUM_THREADS; i++) {
			posters[i] = (struct poster) { .self = self };
			ASSERT_EQ(0, pthread_create(&threads[i], NULL,
						    post_some, &posters[i]));
		}
		for (i = 0; i < NUM_THREADS; i++) {
			pthread_join(threads[i], NULL);
			EXPECT_EQ(0, posters[i].failed);
		}
		for (i = 0; i < DEPTH; i++)
			ASSERT_COMP_OK(self->id->send_cq, &self->wc,
				       IBV_WC_RDMA_WRITE, 50);
	}
}

/* It ends with the queue pair, and another can have one. */
TEST_F(ring, again)
{
	struct pair other;

	SETUP_RING();
	ASSERT_EQ(0, pair_open(&other, NULL));
	ASSERT_EQ(0, rdma_post_setup_ring(other.client.id, 4096));
	pair_close(&other);
	ASSERT_EQ(0, write_one(self, 8, 8));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 8);
}

TEST_HARNESS_MAIN
