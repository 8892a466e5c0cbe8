// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the flags of the eight posts: inline data, posts without a completion,
 * and fences.  A failure means that a post ignores a flag.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

PAIR_FIXTURE(posts, pair_open)

/* The post copies the bytes of an unregistered buffer before it returns. */
TEST_F(posts, inline_write)
{
	char buf[64];
	int i;

	for (i = 0; i < 8; i++) {
		fill(buf, sizeof(buf), i + 1);
		ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, buf, sizeof(buf),
					     NULL, IBV_SEND_INLINE |
					     (i == 7 ? IBV_SEND_SIGNALED : 0),
					     self->remote + i * 64, self->rkey));
		memset(buf, 0, sizeof(buf));
	}
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	for (i = 0; i < 8; i++)
		EXPECT_TRUE(filled(self->s->buf + i * 64, 64, i + 1));
	EXPECT_TRUE(all_bytes(self->s->buf + 512, 64, POISON));
}

TEST_F(posts, inline_send)
{
	char buf[64];
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, rdma_post_recv(self->peer, self->s + i,
					    self->s->buf + i * 100, 100,
					    self->s->mr));
	for (i = 0; i < 4; i++) {
		fill(buf, sizeof(buf), i + 1);
		ASSERT_EQ(0, rdma_post_send(self->id, CONTEXT, buf, 61 + i,
					    NULL, IBV_SEND_INLINE));
		memset(buf, 0, sizeof(buf));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV,
			       self->s + i);
		EXPECT_EQ(61 + i, self->wc.byte_len);
		EXPECT_TRUE(filled(self->s->buf + i * 100, 61 + i, i + 1));
	}
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

TEST_F(posts, inline_vector)
{
	static const char a[] = "read-only ", b[] = "memory, ", c[] = "no key";
	struct ibv_sge sgl[] = {
		{ .addr = addr64(a), .length = 10 },
		{ .addr = addr64(b), .length = 8 },
		{ .addr = addr64(c), .length = 7 },
	};

	ASSERT_EQ(0, rdma_post_writev(self->id, CONTEXT, sgl, 3,
				      IBV_SEND_INLINE | IBV_SEND_SIGNALED,
				      self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_STREQ("read-only memory, no key", (char *)self->s->buf);
}

/* The key of inline data is not checked. */
TEST_F(posts, inline_ignores_the_key)
{
	char buf[20];
	struct ibv_sge list = {
		.addr = addr64(buf), .length = sizeof(buf), .lkey = 0xdeadbeef,
	};

	fill(buf, sizeof(buf), 1);
	ASSERT_EQ(0, rdma_post_writev(self->id, CONTEXT, &list, 1,
				      IBV_SEND_INLINE | IBV_SEND_SIGNALED,
				      self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, sizeof(buf), 1));
}

TEST_F(posts, unsignaled)
{
	int i;

	fill(self->c->buf, 4 * 1000, 1);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, rdma_post_write(self->id, (void *)(uintptr_t)i,
					     self->c->buf + i * 1000, 1000,
					     self->c->mr, 0,
					     self->remote + i * 1000, self->rkey));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf + 3000,
				     1000, self->c->mr, IBV_SEND_SIGNALED,
				     self->remote + 3000, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(no_comp(self->id->send_cq));
	EXPECT_TRUE(filled(self->s->buf, 4000, 1));
}

/* The completion of a signaled post frees the entries of earlier ones. */
TEST_F(posts, unsignaled_many)
{
	unsigned int i;

	fill(self->c->buf, 400, 1);
	for (i = 1; i <= 200; i++) {
		ASSERT_EQ(0, rdma_post_write(self->id, (void *)(uintptr_t)i,
					     self->c->buf, 2 * i, self->c->mr,
					     i % 8 ? 0 : IBV_SEND_SIGNALED,
					     self->remote, self->rkey)) {
			TH_LOG("post %u: %s", i, strerror(errno));
		}
		if (i % 8 == 0)
			ASSERT_COMP_OK(self->id->send_cq, &self->wc,
				       IBV_WC_RDMA_WRITE, (uintptr_t)i);
	}
	EXPECT_TRUE(filled(self->s->buf, 400, 1));
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

/* A post that fails has a completion even if it is not signaled. */
TEST_F(posts, unsignaled_error)
{
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf, 100,
				     self->c->mr, 0, self->remote + BUF_SIZE,
				     self->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_EQ(self->id->qp->qp_num, self->wc.qp_num);
	EXPECT_TRUE(all_bytes(self->s->buf, BUF_SIZE, POISON));
}

TEST(signal_all)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair_opts opts;
	struct ibv_wc wc;
	struct pair p;
	uintptr_t i;

	pair_defaults(&opts);
	opts.client_qp.sq_sig_all = 1;
	ASSERT_EQ(0, pair_open(&p, &opts));
	fill(p.client.buf, 300, 1);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, rdma_post_write(p.client.id, (void *)i,
					     p.client.buf + i * 100, 100,
					     p.client.mr, 0,
					     addr64(p.server.buf + i * 100),
					     p.server.mr->rkey));
	for (i = 0; i < 3; i++)
		ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(filled(p.server.buf, 300, 1));
	ASSERT_EQ(0, ibv_query_qp(p.client.id->qp, &attr, IBV_QP_CAP, &init));
	EXPECT_EQ(1, init.sq_sig_all);
	pair_close(&p);
}

/*
 * The fence holds the send back until the long read before it has filled its
 * buffer.  Without the fence, the send would read the end of the buffer too
 * early.
 */
TEST(fence)
{
	const size_t size = 1 << 20, last = 1000;
	struct pair_opts opts;
	struct end *c, *s;
	struct ibv_wc wc;
	struct pair p;

	pair_defaults(&opts);
	opts.size = size + last;
	ASSERT_EQ(0, pair_open(&p, &opts));
	c = &p.client;
	s = &p.server;
	fill(s->buf + size - last, last, 1);
	ASSERT_EQ(0, rdma_post_recv(s->id, s, s->buf + size, last, s->mr));
	ASSERT_EQ(0, rdma_post_read(c->id, NULL, c->buf, size, c->mr, 0,
				    addr64(s->buf), s->mr->rkey));
	ASSERT_EQ(0, rdma_post_send(c->id, CONTEXT, c->buf + size - last, last,
				    c->mr, IBV_SEND_FENCE | IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(c->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(s->id->recv_cq, &wc, IBV_WC_RECV, s);
	EXPECT_TRUE(filled(s->buf + size, last, 1));
	pair_close(&p);
}

/* A read sees the writes that were posted before it, without a fence. */
TEST_F(posts, read_after_write)
{
	int i;

	for (i = 0; i < 4; i++) {
		fill(self->c->buf, 9000, i + 1);
		ASSERT_EQ(0, rdma_post_write(self->id, NULL, self->c->buf, 9000,
					     self->c->mr, 0, self->remote,
					     self->rkey));
		ASSERT_EQ(0, rdma_post_read(self->id, CONTEXT,
					    self->c->buf + 20000, 9000,
					    self->c->mr, IBV_SEND_SIGNALED,
					    self->remote, self->rkey));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
		ASSERT_TRUE(filled(self->c->buf + 20000, 9000, i + 1));
	}
}

TEST_HARNESS_MAIN
