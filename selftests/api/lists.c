// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests work requests that only <infiniband/verbs.h> offers: lists and atomics.
 * A failure means that a list is not posted up to the request that is refused,
 * or that an atomic operation changes the wrong value.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

PAIR_FIXTURE(lists, pair_open)

/* Build writes of 100 bytes, each at the same offset of both buffers. */
static void make_list(struct end *c, struct end *s, struct ibv_send_wr *wr,
		      struct ibv_sge *sgl, int n)
{
	int i;

	memset(wr, 0, n * sizeof(*wr));
	for (i = 0; i < n; i++) {
		sgl[i] = sge(c, i * 100, 100);
		wr[i].wr_id = i;
		wr[i].next = i + 1 < n ? wr + i + 1 : NULL;
		wr[i].sg_list = sgl + i;
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].send_flags = IBV_SEND_SIGNALED;
		wr[i].wr.rdma.remote_addr = addr64(s->buf) + i * 100;
		wr[i].wr.rdma.rkey = s->mr->rkey;
	}
}

TEST_F(lists, list_of_writes)
{
	struct ibv_send_wr wr[10], *bad;
	struct ibv_sge sgl[10];
	uintptr_t i;

	fill(self->c->buf, 1000, 1);
	make_list(self->c, self->s, wr, sgl, 10);
	ASSERT_EQ(0, ibv_post_send(self->id->qp, wr, &bad));
	for (i = 0; i < 10; i++)
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(filled(self->s->buf, 1000, 1));
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

/* The writes before the bad one are done; the bad and later ones are not. */
TEST_F(lists, list_with_a_bad_write)
{
	struct ibv_sge sgl[10], many[MANY_SGE];
	struct ibv_send_wr wr[10], *bad = NULL;
	uintptr_t i;

	fill(self->c->buf, 1000, 1);
	make_list(self->c, self->s, wr, sgl, 10);
	for (i = 0; i < MANY_SGE; i++)
		many[i] = sge(self->c, 0, 1);
	wr[6].sg_list = many;
	wr[6].num_sge = MANY_SGE;
	ASSERT_EQ(EINVAL, ibv_post_send(self->id->qp, wr, &bad));
	EXPECT_EQ(&wr[6], bad);
	for (i = 0; i < 6; i++)
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(filled(self->s->buf, 600, 1));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	EXPECT_TRUE(all_bytes(self->s->buf + 600, 400, POISON));
	/* The program may correct the rest of the list and post it again. */
	wr[6].sg_list = &sgl[6];
	wr[6].num_sge = 1;
	bad = NULL;
	ASSERT_EQ(0, ibv_post_send(self->id->qp, &wr[6], &bad));
	for (i = 6; i < 10; i++)
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(filled(self->s->buf, 1000, 1));
}

TEST_F(lists, list_of_receives)
{
	struct ibv_recv_wr wr[8], *bad = NULL;
	struct ibv_sge sgl[MANY_SGE];
	uintptr_t i;

	memset(wr, 0, sizeof(wr));
	for (i = 0; i < MANY_SGE; i++)
		sgl[i] = sge(self->s, i % 8 * 1000, 1000);
	for (i = 0; i < 8; i++)
		wr[i] = (struct ibv_recv_wr) {
			.wr_id = i, .next = i < 7 ? wr + i + 1 : NULL,
			.sg_list = sgl + i, .num_sge = 1,
		};
	wr[5].sg_list = sgl;
	wr[5].num_sge = MANY_SGE;
	ASSERT_EQ(EINVAL, ibv_post_recv(self->peer->qp, wr, &bad));
	ASSERT_EQ(&wr[5], bad);
	wr[5].sg_list = &sgl[5];
	wr[5].num_sge = 1;
	bad = NULL;
	ASSERT_EQ(0, ibv_post_recv(self->peer->qp, &wr[5], &bad));
	for (i = 0; i < 8; i++) {
		fill(self->c->buf + 100 * i, 100, i + 1);
		ASSERT_EQ(0, end_send(self->c, NULL, 100 * i, 100, 0));
	}
	for (i = 0; i < 8; i++) {
		ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, i);
		EXPECT_TRUE(filled(self->s->buf + 1000 * i, 100, i + 1));
	}
}

/* Work requests of different opcodes complete in the order of the list. */
TEST_F(lists, mixed_list)
{
	struct ibv_send_wr wr[4], *bad;
	struct ibv_sge sgl[4];

	fill(self->c->buf, 400, 1);
	make_list(self->c, self->s, wr, sgl, 4);
	sgl[1] = sge(self->c, 5000, 100);
	wr[1].opcode = IBV_WR_RDMA_READ;
	wr[1].wr.rdma.remote_addr = self->remote;
	wr[2].opcode = IBV_WR_SEND;
	wr[3].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr[3].imm_data = htobe32(3);
	ASSERT_EQ(0, end_recv(self->s, self->c, 6000, 100));
	ASSERT_EQ(0, end_recv(self->s, self->s, 7000, 100));
	ASSERT_EQ(0, ibv_post_send(self->id->qp, wr, &bad));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 0ul);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, 1ul);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, 2ul);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 3ul);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self->c);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc,
		       IBV_WC_RECV_RDMA_WITH_IMM, self->s);
	EXPECT_TRUE(filled(self->c->buf + 5000, 100, 1));
	EXPECT_TRUE(!memcmp(self->s->buf + 6000, self->c->buf + 200, 100));
	EXPECT_TRUE(!memcmp(self->s->buf + 300, self->c->buf + 300, 100));
	EXPECT_TRUE(all_bytes(self->s->buf + 7000, 100, POISON));
}

#define LONG 300	/* more than one system call takes */

TEST(long_lists)
{
	struct ibv_recv_wr recv[LONG], *bad_recv = NULL;
	struct ibv_send_wr send[LONG], *bad_send = NULL;
	struct pair_opts opts;
	struct ibv_wc wc;
	struct pair p;
	uintptr_t i;

	pair_defaults(&opts);
	opts.client_qp.cap.max_send_wr = LONG;
	opts.server_qp.cap.max_recv_wr = LONG;
	ASSERT_EQ(0, pair_open(&p, &opts));
	for (i = 0; i < LONG; i++) {
		recv[i] = (struct ibv_recv_wr) {
			.wr_id = i, .next = i + 1 < LONG ? recv + i + 1 : NULL,
		};
		send[i] = (struct ibv_send_wr) {
			.wr_id = i, .next = i + 1 < LONG ? send + i + 1 : NULL,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data = htobe32((uint32_t)i),
		};
	}
	ASSERT_EQ(0, ibv_post_recv(p.server.id->qp, recv, &bad_recv));
	ASSERT_EQ(0, ibv_post_send(p.client.id->qp, send, &bad_send));
	for (i = 0; i < LONG; i++) {
		ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_SEND, i);
		ASSERT_COMP_OK(p.server.id->recv_cq, &wc, IBV_WC_RECV, i);
		ASSERT_EQ(i, be32toh(wc.imm_data));
	}
	EXPECT_TRUE(no_comp(p.client.id->send_cq));
	EXPECT_TRUE(no_comp(p.server.id->recv_cq));
	pair_close(&p);
}

#define INLINE_WRS 24
#define INLINE_BAD 20

/* Write the longest inline data in two pieces; every other is not inline. */
TEST(list_of_long_inline_writes)
{
	struct ibv_sge sgl[INLINE_WRS][2];
	struct ibv_send_wr wr[INLINE_WRS], *bad = NULL;
	struct pair_opts opts;
	struct end *c, *s;
	struct ibv_wc wc;
	struct pair p;
	uintptr_t i;
	size_t max;

	pair_defaults(&opts);
	opts.client_qp.cap.max_inline_data = 512;
	opts.client_qp.cap.max_send_wr = INLINE_WRS;
	ASSERT_EQ(0, pair_open(&p, &opts));
	c = &p.client;
	s = &p.server;
	max = opts.client_qp.cap.max_inline_data;
	ASSERT_LE(512, max);
	ASSERT_GE(BUF_SIZE / INLINE_WRS, max);
	fill(c->buf, INLINE_WRS * max, 1);
	for (i = 0; i < INLINE_WRS; i++) {
		sgl[i][0] = sge(c, i * max, 3);
		sgl[i][1] = sge(c, i * max + 3, max - 3);
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i,
			.next = i + 1 < INLINE_WRS ? wr + i + 1 : NULL,
			.sg_list = sgl[i], .num_sge = 2,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = addr64(s->buf + i * max),
			.wr.rdma.rkey = s->mr->rkey,
		};
		if (i % 2)
			continue;
		wr[i].send_flags |= IBV_SEND_INLINE;
		sgl[i][0].lkey = 0;
		sgl[i][1].lkey = 0;
	}
	ASSERT_EQ(0, ibv_post_send(c->id->qp, wr, &bad));
	for (i = 0; i < INLINE_WRS; i++)
		ASSERT_COMP_OK(c->id->send_cq, &wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(filled(s->buf, INLINE_WRS * max, 1));
	EXPECT_TRUE(all_bytes(s->buf + INLINE_WRS * max,
			      BUF_SIZE - INLINE_WRS * max, POISON));

	/* The bad write has a byte too many, beyond the first system call. */
	memset(s->buf, POISON, BUF_SIZE);
	sgl[INLINE_BAD][1].length++;
	EXPECT_EQ(EINVAL, ibv_post_send(c->id->qp, wr, &bad));
	EXPECT_EQ(&wr[INLINE_BAD], bad);
	for (i = 0; i < INLINE_BAD; i++)
		ASSERT_COMP_OK(c->id->send_cq, &wc, IBV_WC_RDMA_WRITE, i);
	EXPECT_TRUE(no_comp(c->id->send_cq));
	EXPECT_TRUE(filled(s->buf, INLINE_BAD * max, 1));
	EXPECT_TRUE(all_bytes(s->buf + INLINE_BAD * max,
			      (INLINE_WRS - INLINE_BAD) * max, POISON));
	pair_close(&p);
}

static int post_atomic(struct end *end, enum ibv_wr_opcode opcode,
		       uint64_t compare_add, uint64_t swap, uint64_t remote,
		       uint32_t rkey)
{
	struct ibv_sge list = sge(end, 8, 8);
	struct ibv_send_wr *bad, wr = {
		.wr_id = addr64(CONTEXT), .sg_list = &list, .num_sge = 1,
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = remote, .rkey = rkey,
			.compare_add = compare_add, .swap = swap,
		},
	};

	return ibv_post_send(end->id->qp, &wr, &bad);
}

static bool has_atomics(struct rdma_cm_id *id)
{
	struct ibv_device_attr attr;

	return !ibv_query_device(id->verbs, &attr) &&
	       attr.atomic_cap != IBV_ATOMIC_NONE;
}

#define NO_ATOMICS "the device has no atomic operations"

TEST_F(lists, compare_and_swap)
{
	uint64_t *local = (uint64_t *)self->c->buf;
	uint64_t *remote = (uint64_t *)self->s->buf;

	if (!has_atomics(self->id))
		SKIP(return, NO_ATOMICS);
	remote[2] = 0x1111222233334444;
	ASSERT_EQ(0, post_atomic(self->c, IBV_WR_ATOMIC_CMP_AND_SWP,
				 0x1111222233334444, 0x5555666677778888,
				 self->remote + 16, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_COMP_SWAP, CONTEXT);
	EXPECT_EQ(8, self->wc.byte_len);
	EXPECT_EQ(0x1111222233334444, local[1]);
	EXPECT_EQ(0x5555666677778888, remote[2]);
	/* The values differ: nothing changes, but the old value returns. */
	ASSERT_EQ(0, post_atomic(self->c, IBV_WR_ATOMIC_CMP_AND_SWP,
				 0x5555666677778889, 1, self->remote + 16,
				 self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_COMP_SWAP, CONTEXT);
	EXPECT_EQ(0x5555666677778888, local[1]);
	EXPECT_EQ(0x5555666677778888, remote[2]);
	EXPECT_TRUE(all_bytes(remote, 16, POISON));
	EXPECT_TRUE(all_bytes(remote + 3, 16, POISON));
	EXPECT_TRUE(all_bytes(local + 2, 16, POISON));
}

TEST_F(lists, fetch_and_add)
{
	uint64_t *local = (uint64_t *)self->c->buf;
	uint64_t *remote = (uint64_t *)self->s->buf;

	if (!has_atomics(self->id))
		SKIP(return, NO_ATOMICS);
	remote[2] = 0xffffffff;
	ASSERT_EQ(0, post_atomic(self->c, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0,
				 self->remote + 16, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_FETCH_ADD, CONTEXT);
	EXPECT_EQ(8, self->wc.byte_len);
	EXPECT_EQ(0xffffffff, local[1]);
	EXPECT_EQ(0x100000000, remote[2]);
	ASSERT_EQ(0, post_atomic(self->c, IBV_WR_ATOMIC_FETCH_AND_ADD,
				 (uint64_t)-0x100000001, 0, self->remote + 16,
				 self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_FETCH_ADD, CONTEXT);
	EXPECT_EQ(0x100000000, local[1]);
	EXPECT_EQ(UINT64_MAX, remote[2]);
	EXPECT_TRUE(all_bytes(remote, 16, POISON));
	EXPECT_TRUE(all_bytes(remote + 3, 16, POISON));
}

/* Some devices refuse it at the post, others when they execute it. */
TEST_F(lists, atomic_on_an_odd_address)
{
	int ret;

	if (!has_atomics(self->id))
		SKIP(return, NO_ATOMICS);
	ret = post_atomic(self->c, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0,
			  self->remote + 12, self->rkey);
	if (ret) {
		ASSERT_EQ(EINVAL, ret);
		EXPECT_TRUE(no_comp(self->id->send_cq));
	} else {
		ASSERT_COMP(self->id->send_cq, &self->wc,
			    IBV_WC_REM_INV_REQ_ERR, CONTEXT);
	}
	EXPECT_TRUE(all_bytes(self->s->buf, BUF_SIZE, POISON));
}

TEST_HARNESS_MAIN
