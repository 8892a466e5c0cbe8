// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the end of a connection by asynchronous ids.  Whichever side ends it,
 * and whether by a call or by dying, work requests must be flushed and the
 * other side must get RDMA_CM_EVENT_DISCONNECTED.
 */
#include <kselftest_harness.h>
#include <signal.h>

#include "rdma_test.h"

PAIR_FIXTURE(cm, pair_listen)

TEST_F(cm, disconnect_flushes)
{
	uintptr_t i;

	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, end_recv(self->c, (void *)i, 0, 10));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	for (i = 0; i < 4; i++) {
		ASSERT_COMP(self->c->id->recv_cq, &self->wc,
			    IBV_WC_WR_FLUSH_ERR, i);
		EXPECT_EQ(self->c->id->qp->qp_num, self->wc.qp_num);
	}
	EXPECT_TRUE(no_comp(self->c->id->recv_cq));
}

/* Sends that wait for a receive at the other side are flushed, too. */
TEST_F(cm, disconnect_flushes_sends)
{
	uintptr_t i;

	self->opts.connect.rnr_retry_count = 7;
	self->opts.accept.rnr_retry_count = 7;
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, end_send(self->c, (void *)i, 0, 10, 0));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	for (i = 0; i < 4; i++)
		ASSERT_COMP(self->c->id->send_cq, &self->wc,
			    IBV_WC_WR_FLUSH_ERR, i);
	EXPECT_TRUE(no_comp(self->c->id->send_cq));
}

/* Destroying a connected id disconnects it. */
TEST_F(cm, destroyed_when_connected)
{
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	end_close(self->c);
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	EXPECT_EQ(self->s->id, self->s->event.id);
}

/* In the error state a queue pair accepts work requests and flushes them. */
TEST_F(cm, posts_after_disconnect_are_flushed)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, ibv_query_qp(self->c->id->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_ERR, attr.qp_state);
	ASSERT_EQ(0, rdma_post_write(self->c->id, CONTEXT, self->c->buf, 10,
				     self->c->mr, 0, addr64(self->s->buf),
				     self->s->mr->rkey));
	ASSERT_COMP(self->c->id->send_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 100, POISON));
}

TEST_F(cm, receives_after_disconnect_are_flushed)
{
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	if (over_incumbent() && on_rxe(self->c->id))
		SKIP(return, "rdma_rxe does not see a program's receives in the error state");
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, end_recv(self->c, CONTEXT, 0, 10));
	ASSERT_COMP(self->c->id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
}

/*
 * A disconnect by the other side does not flush this queue pair; its own does.
 */
TEST_F(cm, posts_at_the_other_end_of_a_disconnect)
{
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, 10));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	ASSERT_EQ(0, rdma_disconnect(self->s->id));
	ASSERT_COMP(self->s->id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
}

/* The peer of a client that is killed gets DISCONNECTED. */
TEST(killed_client)
{
	struct pair_opts opts;
	struct pair p, peer;
	__be16 port;
	int fds[2];
	pid_t pid;

	/* Fork before the parent opens files that the child would inherit. */
	ASSERT_EQ(0, pipe(fds));
	pair_defaults(&opts);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct sockaddr_storage addr;

		memset(&peer, 0, sizeof(peer));
		if (read(fds[0], &port, 2) != 2 || !test_addr(AF_INET, &addr))
			_exit(1);
		/*
		 * pair_resolve() reads no more of the listener than its port.
		 */
		peer.listen = calloc(1, sizeof(*peer.listen));
		if (!peer.listen)
			_exit(1);
		set_port(&peer.listen->route.addr.src_storage, port);
		peer.listen->route.addr.src_addr.sa_family = AF_INET;
		if (pair_resolve(&peer, &opts) || pair_client_qp(&peer, &opts) ||
		    rdma_connect(peer.client.id, &opts.connect) ||
		    expect_event(peer.client.channel, RDMA_CM_EVENT_ESTABLISHED,
				 &peer.client.event))
			_exit(1);
		pause();
		_exit(0);
	}
	ASSERT_EQ(0, pair_listen(&p, &opts));
	port = rdma_get_src_port(p.listen);
	ASSERT_EQ(2, write(fds[1], &port, 2));
	ASSERT_EQ(0, expect_event(p.server.channel,
				  RDMA_CM_EVENT_CONNECT_REQUEST, &p.server.event));
	p.server.id = p.server.event.id;
	ASSERT_EQ(0, pair_server_qp(&p, &opts));
	ASSERT_EQ(0, rdma_accept(p.server.id, &opts.accept));
	ASSERT_EQ(0, expect_event(p.server.channel, RDMA_CM_EVENT_ESTABLISHED,
				  &p.server.event));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, expect_event(p.server.channel, RDMA_CM_EVENT_DISCONNECTED,
				  &p.server.event));
	EXPECT_EQ(p.server.id, p.server.event.id);
	pair_close(&p);
}

/* A child of fork() can connect, and its parent's connection goes on. */
TEST(child_of_fork)
{
	struct pair p, own;
	struct ibv_wc wc;
	int status;
	pid_t pid;

	ASSERT_EQ(0, pair_open(&p, NULL));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (pair_open(&own, NULL))
			_exit(1);
		pair_close(&own);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	fill(p.client.buf, 100, 1);
	ASSERT_EQ(0, end_recv(&p.server, CONTEXT, 0, 100));
	ASSERT_EQ(0, end_send(&p.client, CONTEXT, 0, 100, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(p.server.id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(p.server.buf, 100, 1));
	pair_close(&p);
}

TEST_HARNESS_MAIN
