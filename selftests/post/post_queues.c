// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests what the queues of a queue pair hold: before it is connected, when they
 * are full, and when the queue pair is flushed or destroyed.  Also tests two
 * threads that post to one queue pair.  A failure means that a work request is
 * lost, completes twice, or completes out of order.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#define RP_DEPTH	64
#include "post_pair.h"

RP_USE_DEPTH()

#define BUF	16384

POST_FIXTURE(BUF)

TEST_F(post, before_the_connection)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_SEND, 1, 8);
	struct rp_end *c = &self->p.c, *s = &self->p.s;
	uint32_t posted = 77;

	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(s));
	ASSERT_EQ(0, rp_client_route(c, rp_port(s->fd, self->p.listener)));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	EXPECT_EQ(-EINVAL, rp_post(c->fd, RPOST_IOC_POST_SEND, c->qp, &send,
				   sizeof(send), 1, &posted));
	EXPECT_EQ(0, posted);
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	EXPECT_EQ(-EINVAL, rp_post_send(c, &send));
	ASSERT_EQ(0, rp_take_request(s, self->p.listener));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	EXPECT_EQ(-EINVAL, rp_post_send(s, &send));
	/* A receive can be posted before the queue pair is connected. */
	ASSERT_EQ(0, pair_recv(&self->p, 5, 8));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_NOTHING(c);
	ASSERT_EQ(0, rp_post_send(c, &send));
	EXPECT_DONE(c, 1, RPOST_WC_SEND);
	EXPECT_DONE(s, 5, RPOST_WC_RECV);
}

TEST_F(post, receive_queue_full)
{
	struct rpost_recv_wr block[RP_DEPTH + 5];
	struct rp_send send = pair_op(&self->p, RPOST_WR_SEND, 1, 0);
	uint32_t posted, i;

	for (i = 0; i < ARRAY_SIZE(block); i++)
		block[i] = (struct rpost_recv_wr) {
			.wr_id = i, .size = sizeof(block[i]),
		};
	EXPECT_EQ(-ENOMEM, rp_post(self->p.s.fd, RPOST_IOC_POST_RECV, self->p.s.qp,
				   block, sizeof(block), ARRAY_SIZE(block),
				   &posted));
	EXPECT_EQ(RP_DEPTH, posted);
	EXPECT_EQ(-ENOMEM, rp_post(self->p.s.fd, RPOST_IOC_POST_RECV, self->p.s.qp,
				   block, sizeof(block[0]), 1, &posted));
	EXPECT_EQ(0, posted);
	/* A message uses one receive, so one can be posted. */
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 0, RPOST_WC_RECV);
	block[0].wr_id = 1000;
	EXPECT_EQ(0, rp_post(self->p.s.fd, RPOST_IOC_POST_RECV, self->p.s.qp,
			     block, sizeof(block[0]), 1, &posted));
	EXPECT_EQ(-ENOMEM, rp_post(self->p.s.fd, RPOST_IOC_POST_RECV, self->p.s.qp,
				   block, sizeof(block[0]), 1, &posted));
	/* The receives complete in order. */
	for (i = 1; i <= RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
		EXPECT_DONE(&self->p.s, i < RP_DEPTH ? i : 1000, RPOST_WC_RECV);
	}
}

/* Sends stay in the queue while the peer has no receives. */
TEST_F(post, send_queue_full)
{
	struct rp_send block[RP_DEPTH + 5];
	uint32_t posted, i;

	for (i = 0; i < ARRAY_SIZE(block); i++)
		block[i] = pair_op(&self->p, RPOST_WR_SEND, i, 8);
	EXPECT_EQ(-ENOMEM, rp_post(self->p.c.fd, RPOST_IOC_POST_SEND, self->p.c.qp,
				   block, sizeof(block), ARRAY_SIZE(block),
				   &posted));
	EXPECT_EQ(RP_DEPTH, posted);
	EXPECT_EQ(-ENOMEM, rp_post_send(&self->p.c, &block[0]));
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, pair_recv(&self->p, i, 8));
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_DONE(&self->p.c, i, RPOST_WC_SEND);
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_DONE(&self->p.s, i, RPOST_WC_RECV);
	ASSERT_EQ(0, pair_recv(&self->p, 1, 8));
	ASSERT_EQ(0, rp_post_send(&self->p.c, &block[RP_DEPTH]));
	EXPECT_DONE(&self->p.c, RP_DEPTH, RPOST_WC_SEND);
}

TEST_F(post, flushed_in_order)
{
	struct rp_send send;
	uint64_t sends = 0, recvs = 100;
	int i;

	/* The peer posts no receives and no sends. */
	for (i = 0; i < 10; i++) {
		send = pair_op(&self->p, RPOST_WR_SEND, i, 8);
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
		ASSERT_EQ(0, rp_post_recv(&self->p.c, 100 + i, self->p.cbuf, 8,
					  self->p.cmr.lkey));
	}
	ASSERT_EQ(0, rp_disconnect(self->p.c.fd, self->p.c.id));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
		EXPECT_EQ(self->p.c.qp_num, self->wc.qp_num);
		EXPECT_EQ(self->wc.wr_id < 100 ? sends++ : recvs++,
			  self->wc.wr_id);
	}
	EXPECT_EQ(10, sends);
	EXPECT_EQ(110, recvs);
	/* Later sends and receives are flushed, too. */
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	ASSERT_EQ(0, rp_post_recv(&self->p.c, 5, self->p.cbuf, 8, self->p.cmr.lkey));
	ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	EXPECT_EQ(5, self->wc.wr_id);
}

/* The program moves the queue pair to ERR: the connection stays. */
TEST_F(post, flushed_by_the_program)
{
	int i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, rp_post_recv(&self->p.c, i, self->p.cbuf, 8,
					  self->p.cmr.lkey));
	ASSERT_EQ(0, rp_move(&self->p.c, RPOST_QPS_ERR));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
		EXPECT_EQ(i, (int)self->wc.wr_id);
	}
	EXPECT_NOTHING_FLUSHED(&self->p.c);
	EXPECT_TRUE(rp_quiet(self->p.s.channel));
	EXPECT_EQ(0, rp_disconnect(self->p.c.fd, self->p.c.id));
}

/* After the queue pair is destroyed, none of its work completes. */
TEST_F(post, discarded_by_destroy)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_SEND, 1, 8);
	uint32_t tail;
	int i;

	/* From the first poll on, the ring fills without calls. */
	ASSERT_EQ(0, rp_poll_cq(&self->p.c.cq, &self->wc));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, rp_post_recv(&self->p.c, i, self->p.cbuf, 8,
					  self->p.cmr.lkey));
		/* The peer has posted no receive. */
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	}
	ASSERT_EQ(0, rp_destroy(self->p.c.fd, RPOST_OBJ_QP, self->p.c.qp));
	tail = self->p.c.cq.ring->tail;
	EXPECT_EQ(0, tail);
	EXPECT_TRUE(rp_quiet_cq(&self->p.c.cq));
	EXPECT_EQ(tail, self->p.c.cq.ring->tail);
	EXPECT_EQ(0, self->p.c.cq.ring->flags & RPOST_RING_OVERRUN);
}

/* Completions that are in the ring stay when the queue pair is destroyed. */
TEST_F(post, completed_before_destroy)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_RDMA_WRITE, 1, 8);
	int i;

	for (i = 0; i < 10; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
		/* Poll until it is in the ring; do not consume it. */
		do {
			ASSERT_EQ(0, rp_fetch(&self->p.c.cq));
		} while (self->p.c.cq.ring->tail != (uint32_t)i + 1);
	}
	ASSERT_EQ(0, rp_destroy(self->p.c.fd, RPOST_OBJ_QP, self->p.c.qp));
	for (i = 0; i < 10; i++)
		EXPECT_DONE(&self->p.c, i, RPOST_WC_RDMA_WRITE);
	EXPECT_TRUE(rp_quiet_cq(&self->p.c.cq));
}

TEST_F(post, message_too_long_for_its_receive)
{
	struct rp_send send = pair_op(&self->p, RPOST_WR_SEND, 1, 100);

	ASSERT_EQ(0, pair_recv(&self->p, 2, 99));
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->p.s.cq, &self->wc));
	/* rxe reports LOC_QP_OP_ERR, and REM_OP_ERR at the sender. */
	EXPECT_TRUE(self->wc.status == RPOST_WC_LOC_LEN_ERR ||
		    self->wc.status == RPOST_WC_LOC_QP_OP_ERR);
	EXPECT_EQ(2, self->wc.wr_id);
	ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
	EXPECT_TRUE(self->wc.status == RPOST_WC_REM_INV_REQ_ERR ||
		    self->wc.status == RPOST_WC_REM_OP_ERR);
	EXPECT_EQ('s', self->p.sbuf[99]);
}

/* ------------------------------------------------------------- threads */

#define PER_THREAD	200

static void *post_many(void *arg)
{
	FIXTURE_DATA(post) *self = arg;
	struct rp_send send = pair_op(&self->p, RPOST_WR_RDMA_WRITE, 1, 8);
	intptr_t i, ret;

	for (i = 0; i < PER_THREAD; i++) {
		do {
			ret = rp_post_send(&self->p.c, &send);
			if (ret)
				sched_yield();
		} while (ret == -ENOMEM);
		if (ret)
			return (void *)ret;
	}
	return NULL;
}

TEST_F(post, two_threads)
{
	pthread_t threads[2];
	void *ret;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, post_many,
					    self));
	for (i = 0; i < 2 * PER_THREAD; i++)
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &ret));
		EXPECT_EQ(NULL, ret);
	}
	EXPECT_NOTHING(&self->p.c);
}

TEST_HARNESS_MAIN
