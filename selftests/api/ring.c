// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests posts through a submission ring, which only librdma_post has.  They
 * must have the same results as posts by system call.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include <rdma/rdma_post.h>

#include "rdma_test.h"

#pragma weak rdma_post_setup_ring

#define DEPTH	16	/* of pair_defaults() */

PAIR_FIXTURE(ring, pair_open)

#define SETUP_RING() do {						\
	if (over_incumbent())						\
		SKIP(return, "only librdma_post has rings");		\
	ASSERT_EQ(0, rdma_post_setup_ring(self->id, 0));		\
	/* The first post is an ioctl(2). */				\
	ASSERT_EQ(0, write_one(self, 999, 8));				\
	ASSERT_COMP_OK(self->id->send_cq, &self->wc,			\
		       IBV_WC_RDMA_WRITE, 999);				\
} while (0)

/* Build a list of writes of the same 64 bytes. */
static void write_list(FIXTURE_DATA(ring) *self, struct ibv_sge *entry,
		       struct ibv_send_wr *wr, int n)
{
	int i;

	*entry = sge(self->c, 0, 64);
	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = entry,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = self->remote,
			.wr.rdma.rkey = self->rkey,
		};
}

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
	EXPECT_ERRNO(EINVAL, rdma_post_setup_ring(self->id, 1 << 30));
	EXPECT_ERRNO(EINVAL, rdma_post_setup_ring(self->p.listen, 0));
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
	/* The post has copied the bytes. */
	memset(self->c->buf, 0, 33);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, 4);
	ASSERT_COMP_OK(self->s->id->recv_cq, &self->wc, IBV_WC_RECV, 3);
	EXPECT_TRUE(filled(self->s->buf, 33, 3));
}

/* Post a list that fills the queue, many times. */
TEST_F(ring, lists)
{
	struct ibv_send_wr wr[DEPTH], *bad;
	struct ibv_sge entry;
	int i, round;

	SETUP_RING();
	write_list(self, &entry, wr, DEPTH);
	for (round = 0; round < 20; round++) {
		ASSERT_EQ(0, ibv_post_send(self->id->qp, wr, &bad));
		for (i = 0; i < DEPTH; i++)
			ASSERT_COMP_OK(self->id->send_cq, &self->wc,
				       IBV_WC_RDMA_WRITE, i);
	}
}

/* The post returns an error that the library sees, and posts all before it. */
TEST_F(ring, refused_at_once)
{
	struct ibv_send_wr wr[3], *bad = NULL;
	struct ibv_sge entry;

	SETUP_RING();
	write_list(self, &entry, wr, 3);
	wr[1].opcode = IBV_WR_TSO;
	EXPECT_EQ(EOPNOTSUPP, ibv_post_send(self->id->qp, wr, &bad));
	EXPECT_EQ(&wr[1], bad);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 0);
	wr[1].opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	EXPECT_EQ(EINVAL, ibv_post_send(self->id->qp, &wr[1], &bad));
	EXPECT_EQ(&wr[1], bad);
	EXPECT_TRUE(no_comp(self->id->send_cq));
	/* The ring still works. */
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

/* If a program does not poll, posts fail at last, but no completion is lost. */
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

/*
 * A second queue pair can have a ring, whose end leaves the first ring alone.
 */
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
