// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the eight posts: the data that they move and the fields of their
 * completions.  Each test has a new connection and owns both its ends; a
 * failure means that a post moves wrong bytes or completes wrongly.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

PAIR_FIXTURE(posts, pair_open)

TEST_F(posts, write)
{
	fill(self->c->buf, 5000, 1);
	ASSERT_WRITE(self->c, 5000, self->s->buf + 10, self->rkey);
	EXPECT_EQ(self->id->qp->qp_num, self->wc.qp_num);
	EXPECT_TRUE(filled(self->s->buf + 10, 5000, 1));
	EXPECT_TRUE(all_bytes(self->s->buf, 10, POISON));
	EXPECT_TRUE(all_bytes(self->s->buf + 5010, 1000, POISON));
	/* The post has one completion, and the other end has none. */
	EXPECT_TRUE(no_comp(self->id->send_cq));
	EXPECT_TRUE(no_comp(self->peer->recv_cq));
}

TEST_F(posts, writev)
{
	struct ibv_sge sgl[] = {
		sge(self->c, 100, 1000), sge(self->c, 5000, 1),
		sge(self->c, 3000, 2000),
	};

	fill(self->c->buf + 100, 1000, 1);
	fill(self->c->buf + 5000, 1, 2);
	fill(self->c->buf + 3000, 2000, 3);
	ASSERT_EQ(0, rdma_post_writev(self->id, CONTEXT, sgl, 3,
				      IBV_SEND_SIGNALED, self->remote,
				      self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, 1000, 1));
	EXPECT_TRUE(filled(self->s->buf + 1000, 1, 2));
	EXPECT_TRUE(filled(self->s->buf + 1001, 2000, 3));
	EXPECT_TRUE(all_bytes(self->s->buf + 3001, 1000, POISON));
}

TEST_F(posts, read)
{
	fill(self->s->buf + 10, 5000, 1);
	ASSERT_EQ(0, rdma_post_read(self->id, CONTEXT, self->c->buf + 100, 5000,
				    self->c->mr, IBV_SEND_SIGNALED,
				    self->remote + 10, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_EQ(self->id->qp->qp_num, self->wc.qp_num);
	EXPECT_EQ(5000, self->wc.byte_len);
	EXPECT_TRUE(filled(self->c->buf + 100, 5000, 1));
	EXPECT_TRUE(all_bytes(self->c->buf, 100, POISON));
	EXPECT_TRUE(all_bytes(self->c->buf + 5100, 1000, POISON));
	EXPECT_TRUE(filled(self->s->buf + 10, 5000, 1));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	EXPECT_TRUE(no_comp(self->id->recv_cq));
	EXPECT_TRUE(no_comp(self->peer->recv_cq));
}

TEST_F(posts, readv)
{
	struct ibv_sge sgl[] = {
		sge(self->c, 4096, 1000), sge(self->c, 1, 1),
		sge(self->c, 100, 2000),
	};

	fill(self->s->buf, 1000, 1);
	fill(self->s->buf + 1000, 1, 2);
	fill(self->s->buf + 1001, 2000, 3);
	ASSERT_EQ(0, rdma_post_readv(self->id, CONTEXT, sgl, 3,
				     IBV_SEND_SIGNALED, self->remote,
				     self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_EQ(3001, self->wc.byte_len);
	EXPECT_TRUE(filled(self->c->buf + 4096, 1000, 1));
	EXPECT_TRUE(filled(self->c->buf + 1, 1, 2));
	EXPECT_TRUE(filled(self->c->buf + 100, 2000, 3));
	EXPECT_TRUE(all_bytes(self->c->buf + 2, 98, POISON));
	EXPECT_TRUE(all_bytes(self->c->buf + 2100, 1996, POISON));
}

TEST_F(posts, send_and_recv)
{
	fill(self->c->buf, 5000, 1);
	ASSERT_EQ(0, end_recv(self->s, self->s, 10, 6000));
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 5000, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
	EXPECT_EQ(self->id->qp->qp_num, self->wc.qp_num);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	EXPECT_EQ(self->peer->qp->qp_num, self->wc.qp_num);
	EXPECT_EQ(5000, self->wc.byte_len);
	EXPECT_EQ(0, self->wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_TRUE(filled(self->s->buf + 10, 5000, 1));
	EXPECT_TRUE(all_bytes(self->s->buf + 5010, 1010, POISON));
	EXPECT_TRUE(no_comp(self->peer->recv_cq));
}

TEST_F(posts, sendv_and_recvv)
{
	struct ibv_sge out[] = {
		sge(self->c, 0, 700), sge(self->c, 2000, 33), sge(self->c, 1000, 500),
	};
	struct ibv_sge in[] = {
		sge(self->s, 9000, 650), sge(self->s, 100, 83), sge(self->s, 300, 2000),
	};

	fill(self->c->buf, 700, 1);
	fill(self->c->buf + 2000, 33, 2);
	fill(self->c->buf + 1000, 500, 3);
	ASSERT_EQ(0, rdma_post_recvv(self->peer, self->s, in, 3));
	ASSERT_EQ(0, rdma_post_sendv(self->id, CONTEXT, out, 3,
				     IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	EXPECT_EQ(1233, self->wc.byte_len);
	/* Join the pieces of each message again to compare them. */
	memmove(self->s->buf + 9650, self->s->buf + 100, 83);
	memmove(self->s->buf + 9733, self->s->buf + 300, 500);
	EXPECT_TRUE(filled(self->s->buf + 9000, 700, 1));
	EXPECT_TRUE(filled(self->s->buf + 9700, 33, 2));
	EXPECT_TRUE(filled(self->s->buf + 9733, 500, 3));
	EXPECT_TRUE(all_bytes(self->s->buf + 183, 117, POISON));
	EXPECT_TRUE(all_bytes(self->s->buf + 800, 1500, POISON));
}

/* An entry of no bytes needs no memory and no key. */
TEST_F(posts, vectors_with_an_empty_entry)
{
	struct ibv_sge out[] = {
		sge(self->c, 0, 50), { .length = 0 }, sge(self->c, 200, 70),
	};
	struct ibv_sge in[] = {
		sge(self->s, 0, 50), { .length = 0 }, sge(self->s, 1000, 100),
	};

	fill(self->c->buf, 50, 1);
	fill(self->c->buf + 200, 70, 2);
	ASSERT_EQ(0, rdma_post_recvv(self->peer, self->s, in, 3));
	ASSERT_EQ(0, rdma_post_sendv(self->id, CONTEXT, out, 3,
				     IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	EXPECT_EQ(120, self->wc.byte_len);
	EXPECT_TRUE(filled(self->s->buf, 50, 1));
	EXPECT_TRUE(filled(self->s->buf + 1000, 70, 2));
	EXPECT_TRUE(all_bytes(self->s->buf + 50, 950, POISON));

	ASSERT_EQ(0, rdma_post_writev(self->id, CONTEXT, out, 3,
				      IBV_SEND_SIGNALED, self->remote + 4096,
				      self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf + 4096, 50, 1));
	EXPECT_TRUE(filled(self->s->buf + 4146, 70, 2));
	EXPECT_TRUE(all_bytes(self->s->buf + 4216, 100, POISON));

	memset(self->c->buf, POISON, 300);
	ASSERT_EQ(0, rdma_post_readv(self->id, CONTEXT, out, 3,
				     IBV_SEND_SIGNALED, self->remote + 4096,
				     self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf, 50, 1));
	EXPECT_TRUE(filled(self->c->buf + 200, 70, 2));
	EXPECT_TRUE(all_bytes(self->c->buf + 50, 150, POISON));
}

/* The passive end of the connection may post, too. */
TEST_F(posts, from_the_passive_end)
{
	fill(self->s->buf, 3000, 1);
	fill(self->c->buf + 30000, 2000, 2);
	ASSERT_WRITE(self->s, 3000, self->c->buf, self->c->mr->rkey);
	EXPECT_TRUE(filled(self->c->buf, 3000, 1));
	ASSERT_EQ(0, rdma_post_read(self->peer, CONTEXT, self->s->buf + 9000,
				    2000, self->s->mr, IBV_SEND_SIGNALED,
				    addr64(self->c->buf + 30000),
				    self->c->mr->rkey));
	ASSERT_COMP_OK(self->peer->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf + 9000, 2000, 2));
	ASSERT_EQ(0, end_recv(self->c, self->c, 40000, 3000));
	ASSERT_EQ(0, end_send(self->s, CONTEXT, 0, 3000, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->peer->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->id->recv_cq, &self->wc, IBV_WC_RECV, self->c);
	EXPECT_TRUE(filled(self->c->buf + 40000, 3000, 1));
}

/* Lengths around those of packets and pages, at unaligned addresses. */
TEST_F(posts, odd_lengths)
{
	static const size_t lengths[] = {
		1, 2, 3, 5, 63, 255, 1023, 1025, 2047, 4095, 4096, 4097, 8193,
		16385,
	};
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		memset(self->c->buf, POISON, BUF_SIZE);
		memset(self->s->buf, POISON, BUF_SIZE);
		fill(self->c->buf + 7, len, i + 1);
		ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf + 7,
					     len, self->c->mr, IBV_SEND_SIGNALED,
					     self->remote + 4099, self->rkey));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
		ASSERT_TRUE(filled(self->s->buf + 4099, len, i + 1));
		ASSERT_TRUE(all_bytes(self->s->buf, 4099, POISON));
		ASSERT_TRUE(all_bytes(self->s->buf + 4099 + len, 64, POISON));
		ASSERT_EQ(0, rdma_post_read(self->id, CONTEXT,
					    self->c->buf + 32769, len,
					    self->c->mr, IBV_SEND_SIGNALED,
					    self->remote + 4099, self->rkey));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
		ASSERT_EQ(len, self->wc.byte_len);
		ASSERT_TRUE(filled(self->c->buf + 32769, len, i + 1));
		ASSERT_TRUE(all_bytes(self->c->buf + 32769 + len, 64, POISON));
	}
}

TEST_F(posts, zero_bytes)
{
	/* Operations of no bytes need no valid keys. */
	ASSERT_EQ(0, rdma_post_writev(self->id, CONTEXT, NULL, 0,
				      IBV_SEND_SIGNALED, 0, 0));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	ASSERT_EQ(0, rdma_post_readv(self->id, CONTEXT, NULL, 0,
				     IBV_SEND_SIGNALED, 0, 0));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_EQ(0, self->wc.byte_len);
	ASSERT_EQ(0, rdma_post_recvv(self->peer, self->s, NULL, 0));
	ASSERT_EQ(0, rdma_post_sendv(self->id, CONTEXT, NULL, 0,
				     IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	EXPECT_EQ(0, self->wc.byte_len);
	EXPECT_TRUE(all_bytes(self->s->buf, BUF_SIZE, POISON));
	EXPECT_TRUE(all_bytes(self->c->buf, BUF_SIZE, POISON));
}

TEST_F(posts, send_of_no_bytes_into_a_buffer)
{
	ASSERT_EQ(0, end_recv(self->s, self->s, 0, 100));
	ASSERT_EQ(0, rdma_post_sendv(self->id, CONTEXT, NULL, 0, 0));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	EXPECT_EQ(0, self->wc.byte_len);
	EXPECT_TRUE(all_bytes(self->s->buf, 100, POISON));
}

TEST_F(posts, send_with_imm)
{
	struct ibv_sge list = sge(self->c, 0, 200);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 7, .sg_list = &list, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0x12345678),
	};

	fill(self->c->buf, 200, 1);
	ASSERT_EQ(0, end_recv(self->s, self->s, 0, 300));
	ASSERT_EQ(0, ibv_post_send(self->id->qp, &wr, &bad));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, 7ul);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	EXPECT_EQ(200, self->wc.byte_len);
	EXPECT_NE(0, self->wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(0x12345678, be32toh(self->wc.imm_data));
	EXPECT_TRUE(filled(self->s->buf, 200, 1));
}

/* The write consumes a receive, but its data go to the remote address. */
TEST_F(posts, write_with_imm)
{
	struct ibv_sge list = sge(self->c, 0, 5000);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 7, .sg_list = &list, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0x87654321),
		.wr.rdma.remote_addr = self->remote + 8000,
		.wr.rdma.rkey = self->rkey,
	};

	fill(self->c->buf, 5000, 1);
	ASSERT_EQ(0, end_recv(self->s, self->s, 0, 300));
	ASSERT_EQ(0, ibv_post_send(self->id->qp, &wr, &bad));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 7ul);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc,
		       IBV_WC_RECV_RDMA_WITH_IMM, self->s);
	EXPECT_EQ(5000, self->wc.byte_len);
	EXPECT_NE(0, self->wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(0x87654321, be32toh(self->wc.imm_data));
	EXPECT_TRUE(filled(self->s->buf + 8000, 5000, 1));
	EXPECT_TRUE(all_bytes(self->s->buf, 8000, POISON));
}

TEST_F(posts, write_with_imm_of_no_bytes)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htobe32(99),
	};

	ASSERT_EQ(0, rdma_post_recvv(self->peer, self->s, NULL, 0));
	ASSERT_EQ(0, ibv_post_send(self->id->qp, &wr, &bad));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc,
		       IBV_WC_RECV_RDMA_WITH_IMM, self->s);
	EXPECT_EQ(0, self->wc.byte_len);
	EXPECT_EQ(99, be32toh(self->wc.imm_data));
}

/* Each vector has as many entries as the queue pair takes, of a byte each. */
TEST_F(posts, vectors_of_the_largest_size)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sgl[256];
	int i, n, in;

	ASSERT_EQ(0, ibv_query_qp(self->id->qp, &attr, IBV_QP_CAP, &init));
	n = init.cap.max_send_sge;
	in = init.cap.max_recv_sge;
	ASSERT_LE(4, n);
	ASSERT_LE(4, in);
	if (n > 256 || in > 256)
		n = in = 256;
	fill(self->c->buf, 1000, 1);
	for (i = 0; i < n; i++)
		sgl[i] = sge(self->c, 2 * i, 1);
	ASSERT_EQ(0, rdma_post_writev(self->id, CONTEXT, sgl, n,
				      IBV_SEND_SIGNALED, self->remote,
				      self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	for (i = 0; i < n; i++)
		EXPECT_EQ(self->c->buf[2 * i], self->s->buf[i]);
	EXPECT_TRUE(all_bytes(self->s->buf + n, 100, POISON));
	for (i = 0; i < in; i++)
		sgl[i] = sge(self->s, 4096 + 3 * i, 1);
	ASSERT_EQ(0, rdma_post_recvv(self->peer, self->s, sgl, in));
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, in, 0));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->s);
	for (i = 0; i < in; i++)
		EXPECT_EQ(self->c->buf[i], self->s->buf[4096 + 3 * i]);
}

TEST(megabyte)
{
	const size_t size = 1 << 20;
	struct pair_opts opts;
	struct ibv_wc wc;
	struct pair p;

	pair_defaults(&opts);
	opts.size = 2 * size;
	ASSERT_EQ(0, pair_open(&p, &opts));
	fill(p.client.buf, size, 1);
	ASSERT_EQ(0, end_write(&p.client, size, p.server.buf, p.server.mr->rkey));
	ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_RDMA_WRITE, CONTEXT);
	ASSERT_TRUE(filled(p.server.buf, size, 1));
	ASSERT_EQ(0, rdma_post_read(p.client.id, CONTEXT, p.client.buf + size,
				    size, p.client.mr, IBV_SEND_SIGNALED,
				    addr64(p.server.buf), p.server.mr->rkey));
	ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_RDMA_READ, CONTEXT);
	ASSERT_EQ(size, wc.byte_len);
	ASSERT_TRUE(filled(p.client.buf + size, size, 1));
	ASSERT_EQ(0, end_recv(&p.server, CONTEXT, size, size));
	ASSERT_EQ(0, end_send(&p.client, CONTEXT, 0, size, 0));
	ASSERT_COMP_OK(p.server.id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	ASSERT_EQ(size, wc.byte_len);
	ASSERT_TRUE(filled(p.server.buf + size, size, 1));
	pair_close(&p);
}

/* Keep the queue full of small writes that each have a completion. */
TEST_F(posts, stream)
{
	const unsigned int total = 500;
	unsigned int posted = 0, done = 0;

	fill(self->c->buf, 32000, 1);
	while (done < total) {
		while (posted < total && posted - done < 16) {
			ASSERT_EQ(0, rdma_post_write(self->id,
						     (void *)(uintptr_t)posted,
						     self->c->buf + posted * 64,
						     64, self->c->mr,
						     IBV_SEND_SIGNALED,
						     self->remote + posted * 64,
						     self->rkey));
			posted++;
		}
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE,
			       (uintptr_t)done);
		done++;
	}
	EXPECT_TRUE(filled(self->s->buf, 32000, 1));
}

TEST_F(posts, both_directions_at_once)
{
	uintptr_t i;

	fill(self->c->buf, 8000, 1);
	fill(self->s->buf, 8000, 2);
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, rdma_post_write(self->id, (void *)i,
					     self->c->buf + i * 1000, 1000,
					     self->c->mr, IBV_SEND_SIGNALED,
					     self->remote + 10000 + i * 1000,
					     self->rkey));
		ASSERT_EQ(0, rdma_post_write(self->peer, (void *)i,
					     self->s->buf + i * 1000, 1000,
					     self->s->mr, IBV_SEND_SIGNALED,
					     addr64(self->c->buf) + 10000 + i * 1000,
					     self->c->mr->rkey));
	}
	for (i = 0; i < 8; i++) {
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, i);
		ASSERT_COMP_OK(self->peer->send_cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	}
	EXPECT_TRUE(filled(self->s->buf + 10000, 8000, 1));
	EXPECT_TRUE(filled(self->c->buf + 10000, 8000, 2));
}

TEST_HARNESS_MAIN
