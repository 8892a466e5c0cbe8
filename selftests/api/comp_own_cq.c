// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests completion queues and channels that the program creates itself: shared
 * by queue pairs, small, and destroyed while they are in use.  A failure means
 * that a completion or an event is lost, or that a queue is destroyed too early
 * or never.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rdma_test.h"

FIXTURE(own) {
	PAIR_MEMBERS;
	struct ibv_context *verbs;
	struct ibv_comp_channel *channel;
};

FIXTURE_SETUP(own)
{
	PAIR_SETUP(pair_to_resolve);
	self->verbs = self->c->id->verbs;
	ASSERT_NE(NULL, self->verbs);
	self->channel = ibv_create_comp_channel(self->verbs);
	ASSERT_NE(NULL, self->channel);
}

FIXTURE_TEARDOWN(own)
{
	EXPECT_EQ(0, ibv_destroy_comp_channel(self->channel));
	pair_close(&self->p);
}

TEST_F(own, queues_on_one_channel)
{
	struct ibv_cq *send, *recv, *idle, *cq = NULL;
	int tag[3];
	void *context;

	send = ibv_create_cq(self->verbs, 16, tag, self->channel, 0);
	recv = ibv_create_cq(self->verbs, 16, tag + 1, self->channel, 0);
	idle = ibv_create_cq(self->verbs, 16, tag + 2, self->channel, 0);
	ASSERT_TRUE(send && recv && idle);
	EXPECT_LE(16, send->cqe);
	EXPECT_EQ(&tag[0], send->cq_context);
	EXPECT_EQ(self->channel, send->channel);
	EXPECT_EQ(self->verbs, self->channel->context);
	EXPECT_EQ(3, self->channel->refcnt);
	self->opts.client_qp.send_cq = send;
	self->opts.client_qp.recv_cq = recv;
	ASSERT_EQ(0, pair_after_resolve(&self->p, &self->opts));
	EXPECT_EQ(send, self->c->id->qp->send_cq);
	EXPECT_EQ(recv, self->c->id->qp->recv_cq);
	/* The id points only to queues that it has created itself. */
	EXPECT_EQ(NULL, self->c->id->send_cq);
	EXPECT_EQ(NULL, self->c->id->recv_cq);
	ASSERT_EQ(0, ibv_req_notify_cq(send, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(recv, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(idle, 0));

	ASSERT_EQ(0, end_recv(self->c, NULL, 0, 64));
	ASSERT_EQ(0, end_send(self->s, NULL, 0, 64, 0));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
	EXPECT_EQ(recv, cq);
	EXPECT_EQ(&tag[1], context);
	ibv_ack_cq_events(cq, 1);
	ASSERT_EQ(0, pair_write(&self->p, 5, IBV_SEND_SIGNALED));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
	EXPECT_EQ(send, cq);
	EXPECT_EQ(&tag[0], context);
	ibv_ack_cq_events(cq, 1);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));

	EXPECT_EQ(EBUSY, ibv_destroy_cq(send));
	EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(self->channel));
	end_close(self->c);
	EXPECT_EQ(0, ibv_destroy_cq(send));
	EXPECT_EQ(0, ibv_destroy_cq(recv));
	EXPECT_EQ(0, ibv_destroy_cq(idle));
	EXPECT_EQ(0, self->channel->refcnt);
}

/* Connect with @cq as both queues of the client. */
static int connect_with(FIXTURE_DATA(own) *self, struct ibv_cq *cq)
{
	self->opts.client_qp.send_cq = cq;
	self->opts.client_qp.recv_cq = cq;
	return pair_after_resolve(&self->p, &self->opts);
}

/* An end's sends and receives share a queue without a channel. */
TEST_F(own, send_and_recv_share_a_queue)
{
	struct ibv_cq *cq = ibv_create_cq(self->verbs, 32, NULL, NULL, 0);

	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	ASSERT_EQ(0, end_recv(self->c, CONTEXT, 0, 64));
	ASSERT_EQ(0, pair_write(&self->p, 5, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, 5ul);
	ASSERT_EQ(0, end_send(self->s, NULL, 0, 64, 0));
	ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RECV, CONTEXT);
	end_close(self->c);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* Two connections share a queue; qp_num tells their completions apart. */
TEST_F(own, two_queue_pairs_share_a_queue)
{
	struct ibv_cq *cq = ibv_create_cq(self->verbs, 32, NULL, NULL, 0);
	unsigned int i, count[2] = { 0, 0 };
	struct pair *p[2], other;
	struct ibv_wc wc;

	ASSERT_NE(NULL, cq);
	p[0] = &self->p;
	p[1] = &other;
	self->opts.client_qp.send_cq = cq;
	self->opts.client_qp.recv_cq = cq;
	ASSERT_EQ(0, pair_after_resolve(p[0], &self->opts));
	ASSERT_EQ(0, pair_open(p[1], &self->opts));
	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, pair_write(p[i % 2], 100 * (i % 2) + i / 2,
					IBV_SEND_SIGNALED));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(1, wait_comp(cq, &wc));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_GT(2, wc.wr_id / 100);
		EXPECT_EQ(p[wc.wr_id / 100]->client.id->qp->qp_num, wc.qp_num);
		EXPECT_EQ(count[wc.wr_id / 100]++, wc.wr_id % 100);
	}
	end_close(&p[0]->client);
	EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
	/* The end of one queue pair does not disturb the other. */
	ASSERT_EQ(0, pair_write(p[1], 1, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(cq, &wc, IBV_WC_RDMA_WRITE, 1ul);
	pair_close(p[1]);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

static void *destroy_in_thread(void *arg)
{
	return (void *)(intptr_t)ibv_destroy_cq(*(struct ibv_cq **)arg);
}

/* ibv_destroy_cq(3) waits until all fetched events are acknowledged. */
TEST_F(own, destroy_waits_for_acks)
{
	struct ibv_cq *cq, *got;
	struct timespec ts;
	pthread_t thread;
	void *context, *ret = NULL;
	int i;

	cq = ibv_create_cq(self->verbs, 32, NULL, self->channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &got, &context));
		ASSERT_EQ(cq, got);
	}
	end_close(self->c);
	ibv_ack_cq_events(cq, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_in_thread, &cq));
	ts = real_time_in(50);
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &ret, &ts));
	ibv_ack_cq_events(cq, 1);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
}

/*
 * Destroying a queue in use must return EBUSY at once, even with an event to
 * acknowledge: the caller may be the thread that has to do so, as in fio.  If
 * the call waits, the harness ends the test.
 */
TEST_F(own, destroy_in_use_does_not_wait)
{
	struct ibv_cq *cq, *got;
	void *context;
	uintptr_t i;

	cq = ibv_create_cq(self->verbs, 32, NULL, self->channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	/* Two rounds, to see that a refused call has changed nothing. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &got, &context));
		ASSERT_EQ(cq, got);
		EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	}
	ibv_ack_cq_events(cq, 2);
	EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
	end_close(self->c);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* An event that was not fetched goes with its queue. */
TEST_F(own, destroy_with_an_event_waiting)
{
	struct ibv_cq *cq;

	cq = ibv_create_cq(self->verbs, 32, NULL, self->channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	ASSERT_EQ(0, pair_write(&self->p, 1, IBV_SEND_SIGNALED));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	end_close(self->c);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

TEST_F(own, size_of_a_queue)
{
	struct ibv_device_attr attr;
	struct ibv_cq *cq;

	ASSERT_EQ(0, ibv_query_device(self->verbs, &attr));
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->verbs, 0, NULL, NULL, 0));
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->verbs, attr.max_cqe + 1, NULL, NULL, 0));
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_cq(self->verbs, 1, NULL, NULL,
						self->verbs->num_comp_vectors));
	cq = ibv_create_cq(self->verbs, 1, NULL, NULL,
			   self->verbs->num_comp_vectors - 1);
	ASSERT_NE(NULL, cq);
	EXPECT_LE(1, cq->cqe);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* The indices of a small queue wrap around many times. */
TEST_F(own, small_queue_wraps)
{
	struct ibv_cq *cq = ibv_create_cq(self->verbs, 3, NULL, NULL, 0);
	uintptr_t i;

	ASSERT_NE(NULL, cq);
	self->opts.client_qp.send_cq = cq;
	self->opts.client_qp.recv_cq = cq;
	self->opts.client_qp.cap.max_send_wr = 2;
	self->opts.client_qp.cap.max_recv_wr = 1;
	ASSERT_EQ(0, pair_after_resolve(&self->p, &self->opts));
	for (i = 0; i < 100; i += 2) {
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_EQ(0, pair_write(&self->p, i + 1, IBV_SEND_SIGNALED));
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i);
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i + 1);
	}
	EXPECT_TRUE(no_comp(cq));
	end_close(self->c);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_HARNESS_MAIN
