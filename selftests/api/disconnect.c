// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests rdma_disconnect() in every state.  It must move the queue pair to the
 * error state and flush its work requests, and fail only on ids that have never
 * requested a connection.
 */
#include <kselftest_harness.h>

#include "verbs_test.h"

#define NUM_RECVS 3

PAIR_FIXTURE(disconnect, pair_to_client_qp)

static int post_recvs(struct end *end)
{
	uintptr_t i;

	for (i = 0; i < NUM_RECVS; i++)
		if (rdma_post_recv(end->id, (void *)i, end->buf, 8, end->mr))
			return -1;
	return 0;
}

/* Check that the receives are flushed, and a send that is posted now, too. */
#define EXPECT_STOPPED(end) do { \
	uintptr_t i_; \
	EXPECT_EQ(IBV_QPS_ERR, query_state((end)->id->qp)); \
	for (i_ = 0; i_ < NUM_RECVS; i_++) \
		ASSERT_COMP((end)->id->recv_cq, &self->wc, \
			    IBV_WC_WR_FLUSH_ERR, i_); \
	ASSERT_EQ(0, rdma_post_send((end)->id, (void *)7, (end)->buf, 8, \
				    (end)->mr, IBV_SEND_SIGNALED)); \
	ASSERT_COMP((end)->id->send_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, 7); \
} while (0)

/* The id has not requested a connection. */
TEST_F(disconnect, before_connecting)
{
	if (on_iwarp(self->c->id))
		SKIP(return, "iWARP's queue pairs end with their connections");
	ASSERT_EQ(0, post_recvs(self->c));
	EXPECT_ERRNO(EINVAL, rdma_disconnect(self->c->id));
	EXPECT_STOPPED(self->c);
	EXPECT_TRUE(no_event(self->c->channel));
}

TEST_F(disconnect, unanswered)
{
	if (on_iwarp(self->c->id))
		SKIP(return, "iWARP waits for the answer");
	ASSERT_EQ(0, post_recvs(self->c));
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_STOPPED(self->c);
	EXPECT_TRUE(no_event(self->c->channel));
}

/* The client's queue pair can no longer be connected when the answer comes. */
TEST_F(disconnect, answered_too_late)
{
	if (on_iwarp(self->c->id))
		SKIP(return, "iWARP waits for the answer");
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, rdma_accept(self->s->id, &self->opts.accept));
	EXPECT_EQ(RDMA_CM_EVENT_CONNECT_ERROR,
		  next_event(self->c->channel, &self->event));
	EXPECT_GT(0, self->event.status);
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
}

TEST_F(disconnect, instead_of_accepting)
{
	if (on_iwarp(self->c->id))
		SKIP(return, "iWARP's queue pairs end with their connections");
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, post_recvs(self->s));
	EXPECT_EQ(0, rdma_disconnect(self->s->id));
	EXPECT_STOPPED(self->s);
	/* Destroying the id tells the other side. */
	EXPECT_TRUE(no_event(self->c->channel));
	end_close(self->s);
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->event));
}

TEST_F(disconnect, rejected)
{
	ASSERT_EQ(0, post_recvs(self->c));
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_reject(self->s->id, NULL, 0));
	EXPECT_EQ(0, rdma_disconnect(self->s->id));
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->event));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_STOPPED(self->c);
}

TEST_F(disconnect, twice)
{
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	ASSERT_EQ(0, post_recvs(self->c));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_STOPPED(self->c);
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
	EXPECT_EQ(0, rdma_disconnect(self->s->id));
	EXPECT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
}

/* An id without a device has nothing to disconnect. */
TEST_F(disconnect, without_a_device)
{
	struct rdma_cm_id *id;

	ASSERT_EQ(0, rdma_create_id(self->c->channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_ERRNO(EINVAL, rdma_disconnect(id));
	EXPECT_EQ(0, rdma_destroy_id(id));
}

/* An id for datagrams has no connection, but it has a queue pair. */
TEST_F(disconnect, datagrams)
{
	struct sockaddr_storage addr;
	struct pair_opts opts;
	struct end end = {};

	if (on_iwarp(self->c->id))
		SKIP(return, "iWARP has no datagrams");
	pair_defaults(&opts);
	opts.client_qp.qp_type = IBV_QPT_UD;
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_create_id(self->c->channel, &end.id, NULL,
				    RDMA_PS_UDP));
	ASSERT_EQ(0, rdma_bind_addr(end.id, (struct sockaddr *)&addr));
	ASSERT_EQ(0, rdma_create_qp(end.id, NULL, &opts.client_qp));
	ASSERT_EQ(0, end_buffer(&end, 4096));
	EXPECT_EQ(IBV_QPS_RTS, query_state(end.id->qp));
	ASSERT_EQ(0, post_recvs(&end));
	EXPECT_ERRNO(EINVAL, rdma_disconnect(end.id));
	EXPECT_EQ(IBV_QPS_ERR, query_state(end.id->qp));
	ASSERT_COMP(end.id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, 0);
	end_close(&end);
}

TEST_HARNESS_MAIN
