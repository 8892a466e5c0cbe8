// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rdma_disconnect() in every state: the queue pair goes to the error state, what
 * it holds is flushed, and only who never asked for a connection is refused.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

#define NUM_RECVS 3

FIXTURE(disconnect) {
	struct pair p;
	struct pair_opts opts;
	struct end *c, *s;
	struct event event;
	struct ibv_wc wc;
};

FIXTURE_SETUP(disconnect)
{
	pair_defaults(&self->opts);
	self->c = &self->p.client;
	self->s = &self->p.server;
	ASSERT_EQ(0, pair_listen(&self->p, &self->opts));
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
}

FIXTURE_TEARDOWN(disconnect)
{
	pair_close(&self->p);
}

static bool is_iwarp(struct end *end)
{
	return end->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

static int post_recvs(struct end *end)
{
	uintptr_t i;

	for (i = 0; i < NUM_RECVS; i++)
		if (rdma_post_recv(end->id, (void *)i, end->buf, 8, end->mr))
			return -1;
	return 0;
}

static int qp_state(struct end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(end->id->qp, &attr, IBV_QP_STATE, &init))
		return -1;
	return attr.qp_state;
}

/* What was posted comes back, and so does what is posted from now on. */
#define EXPECT_STOPPED(end) do { \
	uintptr_t i_; \
	EXPECT_EQ(IBV_QPS_ERR, qp_state(end)); \
	for (i_ = 0; i_ < NUM_RECVS; i_++) \
		ASSERT_COMP((end)->id->recv_cq, &self->wc, \
			    IBV_WC_WR_FLUSH_ERR, i_); \
	ASSERT_EQ(0, rdma_post_send((end)->id, (void *)7, (end)->buf, 8, \
				    (end)->mr, IBV_SEND_SIGNALED)); \
	ASSERT_COMP((end)->id->send_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, 7); \
} while (0)

/* Nobody has asked for anything. */
TEST_F(disconnect, before_connecting)
{
	if (is_iwarp(self->c))
		SKIP(return, "iWARP's queue pairs end with their connections");
	ASSERT_EQ(0, post_recvs(self->c));
	errno = 0;
	EXPECT_EQ(-1, rdma_disconnect(self->c->id));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_STOPPED(self->c);
	EXPECT_TRUE(no_event(self->c->channel));
}

TEST_F(disconnect, unanswered)
{
	if (is_iwarp(self->c))
		SKIP(return, "iWARP waits for the answer");
	ASSERT_EQ(0, post_recvs(self->c));
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_STOPPED(self->c);
	EXPECT_TRUE(no_event(self->c->channel));
}

/* An answer that comes after all finds no queue pair to connect. */
TEST_F(disconnect, answered_too_late)
{
	if (is_iwarp(self->c))
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
	if (is_iwarp(self->c))
		SKIP(return, "iWARP's queue pairs end with their connections");
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, post_recvs(self->s));
	EXPECT_EQ(0, rdma_disconnect(self->s->id));
	EXPECT_STOPPED(self->s);
	/* The other side hears of it when the id goes. */
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

/* Without a device there is nothing to ask. */
TEST_F(disconnect, without_a_device)
{
	struct rdma_cm_id *id;

	ASSERT_EQ(0, rdma_create_id(self->c->channel, &id, NULL, RDMA_PS_TCP));
	errno = 0;
	EXPECT_EQ(-1, rdma_disconnect(id));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, rdma_destroy_id(id));
}

/* Datagrams have no connection, but they have a queue pair. */
TEST_F(disconnect, datagrams)
{
	struct sockaddr_storage addr;
	struct pair_opts opts;
	struct end end = {};

	if (is_iwarp(self->c))
		SKIP(return, "iWARP has no datagrams");
	pair_defaults(&opts);
	opts.client_qp.qp_type = IBV_QPT_UD;
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_create_id(self->c->channel, &end.id, NULL,
				    RDMA_PS_UDP));
	ASSERT_EQ(0, rdma_bind_addr(end.id, (struct sockaddr *)&addr));
	ASSERT_EQ(0, rdma_create_qp(end.id, NULL, &opts.client_qp));
	ASSERT_EQ(0, end_buffer(&end, 4096));
	EXPECT_EQ(IBV_QPS_RTS, qp_state(&end));
	ASSERT_EQ(0, post_recvs(&end));
	errno = 0;
	EXPECT_EQ(-1, rdma_disconnect(end.id));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(IBV_QPS_ERR, qp_state(&end));
	ASSERT_COMP(end.id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, 0);
	end_close(&end);
}

TEST_HARNESS_MAIN
