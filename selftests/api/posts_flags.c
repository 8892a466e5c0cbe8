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
		ASSERT_EQ(0, end_recv(self->s, self->s + i, i * 100, 100));
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

/* ibv_post_send(3): inline data are for sends and writes; reads take the other flags. */
TEST_F(posts, flags_of_reads)
{
	static const int flags[] = {
		0, IBV_SEND_FENCE, IBV_SEND_SOLICITED,
		IBV_SEND_FENCE | IBV_SEND_SOLICITED,
	};
	struct ibv_sge list = sge(self->c, 100, 100);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		fill(self->s->buf, 100, i + 1);
		ASSERT_EQ(0, rdma_post_read(self->id, CONTEXT, self->c->buf, 100,
					    self->c->mr, flags[i], self->remote,
					    self->rkey));
		ASSERT_EQ(0, rdma_post_readv(self->id, self, &list, 1,
					     flags[i] | IBV_SEND_SIGNALED,
					     self->remote, self->rkey));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, self);
		EXPECT_TRUE(filled(self->c->buf, 100, i + 1));
		EXPECT_TRUE(filled(self->c->buf + 100, 100, i + 1));
	}
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

TEST_F(posts, inline_read)
{
	struct ibv_sge list = sge(self->c, 0, 10);

	if (over_incumbent())
		SKIP(return, "its providers do not look");
	EXPECT_ERRNO(EINVAL, rdma_post_read(self->id, CONTEXT, self->c->buf, 10,
					    self->c->mr, IBV_SEND_INLINE,
					    self->remote, self->rkey));
	EXPECT_ERRNO(EINVAL, rdma_post_readv(self->id, CONTEXT, &list, 1,
					     IBV_SEND_INLINE, self->remote,
					     self->rkey));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	ASSERT_READ(self->c, 10, self->s->buf, self->rkey);
}

static const int write_flags[] = {
	0, IBV_SEND_FENCE, IBV_SEND_SOLICITED, IBV_SEND_INLINE,
	IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_INLINE,
};

/* Inline data have no key here. */
TEST_F(posts, flags_of_writes)
{
	struct ibv_sge list;
	struct ibv_mr *mr;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(write_flags); i++) {
		fill(self->c->buf, 60, i + 1);
		list = sge(self->c, 0, 60);
		mr = self->c->mr;
		if (write_flags[i] & IBV_SEND_INLINE) {
			list.lkey = 0;
			mr = NULL;
		}
		ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf, 60,
					     mr, write_flags[i], self->remote,
					     self->rkey));
		ASSERT_EQ(0, rdma_post_writev(self->id, self, &list, 1,
					      write_flags[i] | IBV_SEND_SIGNALED,
					      self->remote + 100, self->rkey));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, self);
		EXPECT_TRUE(filled(self->s->buf, 60, i + 1));
		EXPECT_TRUE(filled(self->s->buf + 100, 60, i + 1));
	}
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

/* Only a solicited message gives the event that the receiver has asked for. */
TEST_F(posts, flags_of_vectors_of_sends)
{
	struct ibv_comp_channel *channel = self->peer->recv_cq_channel;
	struct ibv_sge list;
	struct ibv_cq *cq;
	void *context;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(write_flags); i++) {
		ASSERT_EQ(0, end_recv(self->s, self->s, 0, 100));
		ASSERT_EQ(0, ibv_req_notify_cq(self->peer->recv_cq, 1));
		fill(self->c->buf, 60, i + 1);
		list = sge(self->c, 0, 60);
		if (write_flags[i] & IBV_SEND_INLINE)
			list.lkey = 0;
		ASSERT_EQ(0, rdma_post_sendv(self->id, CONTEXT, &list, 1,
					     write_flags[i]));
		ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
		EXPECT_TRUE(filled(self->s->buf, 60, i + 1));
		if (!(write_flags[i] & IBV_SEND_SOLICITED)) {
			EXPECT_FALSE(readable(channel->fd, QUIET_MS));
			continue;
		}
		ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	EXPECT_TRUE(no_comp(self->id->send_cq));
	ASSERT_EQ(0, end_recv(self->s, NULL, 0, 100));
	ASSERT_EQ(0, rdma_post_sendv(self->id, CONTEXT, &list, 0,
				     IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
}

/* Posts that the fence holds back until the read before them has ended. */
#define FENCED	(IBV_SEND_FENCE | IBV_SEND_SIGNALED)

static int fenced_send(struct pair *p, struct ibv_sge *from, uint64_t to)
{
	(void)to;
	return rdma_post_send(p->client.id, CONTEXT,
			      (void *)(uintptr_t)from->addr, from->length,
			      p->client.mr, FENCED);
}

static int fenced_sendv(struct pair *p, struct ibv_sge *from, uint64_t to)
{
	(void)to;
	return rdma_post_sendv(p->client.id, CONTEXT, from, 1, FENCED);
}

static int fenced_write(struct pair *p, struct ibv_sge *from, uint64_t to)
{
	return rdma_post_write(p->client.id, CONTEXT,
			       (void *)(uintptr_t)from->addr, from->length,
			       p->client.mr, FENCED, to, p->server.mr->rkey);
}

static int fenced_writev(struct pair *p, struct ibv_sge *from, uint64_t to)
{
	return rdma_post_writev(p->client.id, CONTEXT, from, 1, FENCED, to,
				p->server.mr->rkey);
}

#define READ_BYTES	(BUF_SIZE / 2)
#define LAST_BYTES	1000

FIXTURE(fence) {
	PAIR_MEMBERS;
};

FIXTURE_VARIANT(fence) {
	int (*post)(struct pair *p, struct ibv_sge *from, uint64_t to);
	bool message;
};

FIXTURE_VARIANT_ADD(fence, send) { fenced_send, true };
FIXTURE_VARIANT_ADD(fence, sendv) { fenced_sendv, true };
FIXTURE_VARIANT_ADD(fence, write) { fenced_write, false };
FIXTURE_VARIANT_ADD(fence, writev) { fenced_writev, false };

FIXTURE_SETUP(fence)
{
	PAIR_SETUP(pair_open_patient);
}

FIXTURE_TEARDOWN(fence)
{
	pair_close(&self->p);
}

/*
 * Without the fence, the post would take the end of the buffer too early.  A
 * send in front of the read waits for its receive, so that the queue pair has
 * the read and the post at the same time.
 */
TEST_F(fence, waits_for_the_read)
{
	struct ibv_sge last = sge(self->c, READ_BYTES - LAST_BYTES, LAST_BYTES);
	uint8_t *to = self->s->buf + READ_BYTES;

	fill(to - LAST_BYTES, LAST_BYTES, 1);
	ASSERT_EQ(0, end_send(self->c, NULL, 0, 10, 0));
	ASSERT_EQ(0, rdma_post_read(self->id, NULL, self->c->buf, READ_BYTES,
				    self->c->mr, 0, self->remote, self->rkey));
	ASSERT_EQ(0, variant->post(&self->p, &last, addr64(to)));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	ASSERT_EQ(0, end_recv(self->s, self->c, 0, 10));
	if (variant->message)
		ASSERT_EQ(0, rdma_post_recv(self->peer, self->s, to, LAST_BYTES,
					    self->s->mr));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc,
		       variant->message ? IBV_WC_SEND : IBV_WC_RDMA_WRITE, CONTEXT);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->c);
	if (variant->message)
		ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	EXPECT_TRUE(filled(to, LAST_BYTES, 1));
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
