// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the promise of the manual pages on ids without a connection: "[...]
 * operations may not be posted to an rdma_cm_id or the corresponding queue pair
 * until it has been connected."  A failure means that a post is accepted too
 * early, or that a refused one is executed later.
 *
 * Over rdma-core with rxe the post fails with EINVAL, too, but its request
 * stays in the queue that it shares with the kernel, and is executed later.  So
 * the tests of refused posts check the call; only the last one checks that
 * nothing is executed later.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

FIXTURE(unconnected) {
	PAIR_MEMBERS;
	struct end *end;	/* its id is self->id */
	struct ibv_sge list;
};

FIXTURE_VARIANT(unconnected) {
	bool server;	/* use the server, which has not answered yet */
};

FIXTURE_VARIANT_ADD(unconnected, client) { .server = false };
FIXTURE_VARIANT_ADD(unconnected, server) { .server = true };

static int connect_to_server(struct pair *p, struct pair_opts *opts)
{
	return pair_connect(p, opts) || pair_server_qp(p, opts) ? -1 : 0;
}

FIXTURE_SETUP(unconnected)
{
	PAIR_SETUP(pair_to_client_qp);
	self->end = self->c;
	if (variant->server) {
		ASSERT_EQ(0, connect_to_server(&self->p, &self->opts));
		self->end = self->s;
	}
	self->id = self->end->id;
	self->list = sge(self->end, 0, 100);
}

FIXTURE_TEARDOWN(unconnected)
{
	pair_close(&self->p);
}

TEST_F(unconnected, posts_are_refused)
{
	struct rdma_cm_id *id = self->id;
	uint8_t *buf = self->end->buf;
	struct ibv_mr *mr = self->end->mr;
	int on = IBV_SEND_SIGNALED;

	EXPECT_ERRNO(EINVAL, rdma_post_read(id, CONTEXT, buf, 10, mr, on, 4096, 1));
	EXPECT_ERRNO(EINVAL, rdma_post_readv(id, CONTEXT, &self->list, 1, on, 4096, 1));
	EXPECT_ERRNO(EINVAL, rdma_post_write(id, CONTEXT, buf, 10, mr, on, 4096, 1));
	EXPECT_ERRNO(EINVAL, rdma_post_writev(id, CONTEXT, &self->list, 1, on, 4096, 1));
	EXPECT_ERRNO(EINVAL, rdma_post_send(id, CONTEXT, buf, 10, mr, on));
	EXPECT_ERRNO(EINVAL, rdma_post_sendv(id, CONTEXT, &self->list, 1, on));
	EXPECT_TRUE(no_comp(id->send_cq));
}

/*
 * "Messages may be posted to an rdma_cm_id only after a queue pair has been
 * associated with it".
 */
TEST_F(unconnected, recv_may_be_posted)
{
	struct end *other = variant->server ? self->c : self->s;

	ASSERT_EQ(0, rdma_post_recv(self->id, CONTEXT, self->end->buf, 100,
				    self->end->mr));
	ASSERT_EQ(0, rdma_post_recvv(self->id, self, &self->list, 1));
	if (!variant->server)
		ASSERT_EQ(0, connect_to_server(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	fill(other->buf, 200, 1);
	ASSERT_EQ(0, end_send(other, NULL, 0, 50, 0));
	ASSERT_COMP_OK(self->id->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_EQ(50, self->wc.byte_len);
	EXPECT_TRUE(filled(self->end->buf, 50, 1));
	ASSERT_EQ(0, end_send(other, NULL, 0, 90, 0));
	ASSERT_COMP_OK(self->id->recv_cq, &self->wc, IBV_WC_RECV, self);
	EXPECT_EQ(90, self->wc.byte_len);
	EXPECT_TRUE(filled(self->end->buf, 90, 1));
}

/* The refused send must not be executed after the connection is established. */
TEST_F(unconnected, refused_send_is_not_sent_later)
{
	struct end *other = variant->server ? self->c : self->s;

	ASSERT_EQ(-1, rdma_post_send(self->id, CONTEXT, self->end->buf, 100,
				     self->end->mr, IBV_SEND_SIGNALED));
	if (over_incumbent() && on_rxe(self->id))
		SKIP(return, "rxe's provider keeps the refused request in its queue");
	if (!variant->server)
		ASSERT_EQ(0, connect_to_server(&self->p, &self->opts));
	ASSERT_EQ(0, end_recv(other, NULL, 0, 100));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	fill(self->end->buf, 100, 2);
	ASSERT_EQ(0, rdma_post_send(self->id, self, self->end->buf, 100,
				    self->end->mr, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, self);
	ASSERT_COMP_OK(other->id->recv_cq, &self->wc, IBV_WC_RECV, NULL);
	EXPECT_TRUE(filled(other->buf, 100, 2));
}

TEST_HARNESS_MAIN
