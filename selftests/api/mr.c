// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests memory regions: access rights, ranges, keys and lifetime.  A failure
 * means that a peer or the program itself reaches bytes that it may not, or
 * fails to reach bytes that it may.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

MR_FIXTURE(mr)

TEST_F(mr, fields)
{
	self->mr = ibv_reg_mr(self->id->pd, self->mem + 5, 1000, 0);
	ASSERT_NE(NULL, self->mr);
	EXPECT_EQ(self->mem + 5, self->mr->addr);
	EXPECT_EQ(1000, self->mr->length);
	EXPECT_EQ(self->id->pd, self->mr->pd);
	EXPECT_EQ(self->id->verbs, self->mr->context);
}

/*
 * The three helpers of <rdma/rdma_verbs.h>, and the access that their regions
 * give to a peer.
 */
TEST_F(mr, reg_msgs_refuses_remote_write)
{
	self->mr = rdma_reg_msgs(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, end_write(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

TEST_F(mr, reg_msgs_refuses_remote_read)
{
	self->mr = rdma_reg_msgs(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	memset(self->c->buf, 0, 10);
	ASSERT_EQ(0, end_read(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->c->buf, 10, 0));
}

TEST_F(mr, reg_msgs_is_for_messages)
{
	self->mr = rdma_reg_msgs(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	fill(self->mem + 500, 100, 1);
	fill(self->c->buf, 100, 2);
	ASSERT_EQ(0, rdma_post_recv(self->peer, CONTEXT, self->mem, 100, self->mr));
	ASSERT_EQ(0, end_recv(self->c, CONTEXT, 200, 100));
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 100, 0));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->mem, 100, 2));
	ASSERT_EQ(0, rdma_post_send(self->peer, CONTEXT, self->mem + 500, 100,
				    self->mr, 0));
	ASSERT_COMP_OK(self->id->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf + 200, 100, 1));
}

/* The target of a read, and the source of a write. */
TEST_F(mr, reg_msgs_is_for_the_local_end)
{
	self->mr = rdma_reg_msgs(self->id, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	fill(self->s->buf, 100, 1);
	ASSERT_EQ(0, rdma_post_read(self->id, CONTEXT, self->mem, 100, self->mr,
				    IBV_SEND_SIGNALED, self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->mem, 100, 1));
	fill(self->mem + 500, 100, 2);
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->mem + 500, 100,
				     self->mr, IBV_SEND_SIGNALED, self->remote,
				     self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, 100, 2));
}

TEST_F(mr, helpers_take_the_domain_of_the_id)
{
	struct ibv_mr *(*const helpers[])(struct rdma_cm_id *, void *, size_t) = {
		rdma_reg_msgs, rdma_reg_read, rdma_reg_write,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(helpers); i++) {
		self->mr = helpers[i](self->id, self->mem + 5, 1000);
		ASSERT_NE(NULL, self->mr);
		EXPECT_EQ(self->id->pd, self->mr->pd);
		EXPECT_EQ(self->mem + 5, self->mr->addr);
		EXPECT_EQ(1000, self->mr->length);
		ASSERT_EQ(0, rdma_dereg_mr(self->mr));
		self->mr = NULL;
		EXPECT_NULL_ERRNO(EFAULT, helpers[i](self->id, NULL, 4096));
	}
}

TEST_F(mr, reg_read_allows_remote_read)
{
	self->mr = rdma_reg_read(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	fill(self->mem, 1000, 1);
	ASSERT_READ(self->c, 1000, self->mem, self->mr->rkey);
	EXPECT_TRUE(filled(self->c->buf, 1000, 1));
}

TEST_F(mr, reg_read_refuses_remote_write)
{
	self->mr = rdma_reg_read(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, end_write(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

TEST_F(mr, reg_write_allows_remote_write)
{
	self->mr = rdma_reg_write(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 1000, 1);
	ASSERT_WRITE(self->c, 1000, self->mem, self->mr->rkey);
	EXPECT_TRUE(filled(self->mem, 1000, 1));
	EXPECT_TRUE(all_bytes(self->mem + 1000, 1000, POISON));
}

TEST_F(mr, reg_write_refuses_remote_read)
{
	self->mr = rdma_reg_write(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	memset(self->c->buf, 0, 10);
	ASSERT_EQ(0, end_read(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->c->buf, 10, 0));
}

TEST_F(mr, atomics_need_their_right)
{
	struct ibv_sge list = sge(self->c, 0, 8);
	struct ibv_device_attr attr;
	struct ibv_send_wr *bad, wr = {
		.wr_id = addr64(CONTEXT), .sg_list = &list, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = addr64(self->mem), .compare_add = 1 },
	};

	ASSERT_EQ(0, ibv_query_device(self->id->verbs, &attr));
	if (attr.atomic_cap == IBV_ATOMIC_NONE)
		SKIP(return, "the device has no atomic operations");
	self->mr = ibv_reg_mr(self->peer->pd, self->mem, 1000, IBV_ACCESS_LOCAL_WRITE |
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	ASSERT_NE(NULL, self->mr);
	wr.wr.atomic.rkey = self->mr->rkey;
	ASSERT_EQ(0, ibv_post_send(self->id->qp, &wr, &bad));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

/* ------------------------------------------------ local rights */
TEST_F(mr, read_needs_local_write)
{
	struct ibv_sge list = { .addr = addr64(self->mem), .length = 100 };

	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000, IBV_ACCESS_REMOTE_READ);
	ASSERT_NE(NULL, self->mr);
	list.lkey = self->mr->lkey;
	fill(self->s->buf, 100, 1);
	ASSERT_EQ(0, rdma_post_readv(self->id, CONTEXT, &list, 1,
				     IBV_SEND_SIGNALED, addr64(self->s->buf),
				     self->s->mr->rkey));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

TEST_F(mr, recv_needs_local_write)
{
	self->mr = ibv_reg_mr(self->peer->pd, self->mem, 1000, 0);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 100, 1);
	ASSERT_EQ(0, rdma_post_recv(self->peer, CONTEXT, self->mem, 100, self->mr));
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 100, 0));
	ASSERT_COMP_PROT(self->peer->recv_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

TEST_F(mr, write_needs_no_local_write)
{
	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000, 0);
	ASSERT_NE(NULL, self->mr);
	fill(self->mem, 1000, 1);
	ASSERT_EQ(0, end_write_from(self->c, addr64(self->mem), 1000,
				    self->mr->lkey, self->s));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, 1000, 1));
}

/* The regions of the range tests are in the middle of valid memory. */
static int open_ranges(struct pair *p, struct pair_opts *opts)
{
	struct end *s = &p->server, *c = &p->client;

	if (pair_open(p, opts) || ibv_dereg_mr(s->mr) || ibv_dereg_mr(c->mr))
		return -1;
	s->mr = ibv_reg_mr(s->id->pd, s->buf + 8192, 8192, ALL_RIGHTS);
	c->mr = ibv_reg_mr(c->id->pd, c->buf + 8192, 8192, ALL_RIGHTS);
	return s->mr && c->mr ? 0 : -1;
}

PAIR_FIXTURE(range, open_ranges)

FIXTURE_VARIANT(range) {
	long offset;	/* from the start of a region of 8192 bytes */
	uint32_t length;
};

FIXTURE_VARIANT_ADD(range, one_byte_too_many) { .offset = 0, .length = 8193 };
FIXTURE_VARIANT_ADD(range, one_byte_before) { .offset = -1, .length = 2 };
FIXTURE_VARIANT_ADD(range, over_the_end) { .offset = 8191, .length = 2 };
FIXTURE_VARIANT_ADD(range, after_the_end) { .offset = 8192, .length = 1 };
FIXTURE_VARIANT_ADD(range, far_away) { .offset = 1l << 40, .length = 10 };
FIXTURE_VARIANT_ADD(range, wraps_around) { .offset = 4096, .length = 0xfffffff0 };

TEST_F(range, remote_write)
{
	struct end *c = self->c, *s = self->s;
	uint64_t remote = addr64(s->buf + 8192) + variant->offset;
	uint32_t length = variant->length;

	/* No local region is so long; a high address wraps, too. */
	if (length > BUF_SIZE) {
		length = 8192;
		remote = -4096ul;
	}
	ASSERT_EQ(0, ibv_dereg_mr(c->mr));
	c->mr = rdma_reg_msgs(c->id, c->buf, BUF_SIZE);
	ASSERT_NE(NULL, c->mr);
	memset(c->buf, 1, BUF_SIZE);
	ASSERT_EQ(0, end_write(c, length, (void *)(uintptr_t)remote, s->mr->rkey));
	ASSERT_COMP(c->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(s->buf, 8192, POISON));
	EXPECT_TRUE(all_bytes(s->buf + 16384, BUF_SIZE - 16384, POISON));
}

TEST_F(range, local_write)
{
	struct end *c = self->c, *s = self->s;

	ASSERT_EQ(0, ibv_dereg_mr(s->mr));
	s->mr = rdma_reg_write(s->id, s->buf, BUF_SIZE);
	ASSERT_NE(NULL, s->mr);
	memset(c->buf, 1, BUF_SIZE);
	ASSERT_EQ(0, end_write_from(c, addr64(c->buf + 8192) + variant->offset,
				    variant->length, c->mr->lkey, s));
	ASSERT_COMP_PROT(c->id->send_cq, &self->wc, CONTEXT);
	/* A device may send its first packets before it finds the error. */
	if (!over_incumbent())
		EXPECT_TRUE(all_bytes(s->buf, BUF_SIZE, POISON));
}

TEST_F(mr, whole_region_is_usable)
{
	self->mr = ibv_reg_mr(self->peer->pd, self->mem + 4093, 8195, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 8195, 1);
	ASSERT_WRITE(self->c, 8195, self->mem + 4093, self->mr->rkey);
	EXPECT_TRUE(filled(self->mem + 4093, 8195, 1));
	EXPECT_TRUE(all_bytes(self->mem, 4093, POISON));
	EXPECT_TRUE(all_bytes(self->mem + 4093 + 8195, 100, POISON));
	/* Write the last byte only. */
	self->c->buf[0] = 0x11;
	ASSERT_WRITE(self->c, 1, self->mem + 4093 + 8194, self->mr->rkey);
	EXPECT_EQ(0x11, self->mem[4093 + 8194]);
}

/* -------------------------------------------------------- keys */
TEST_F(mr, local_key_of_another_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->id->verbs);

	ASSERT_NE(NULL, pd);
	self->mr = ibv_reg_mr(pd, self->mem, 1000, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, end_write_from(self->c, addr64(self->mem), 10,
				    self->mr->lkey, self->s));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 100, POISON));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(mr, remote_key_of_another_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->peer->verbs);

	ASSERT_NE(NULL, pd);
	self->mr = ibv_reg_mr(pd, self->mem, 1000, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, end_write(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

PAIR_FIXTURE(guess, pair_open)

FIXTURE_VARIANT(guess) {
	bool absolute;
	uint32_t key;	/* or the offset to a valid key */
};

FIXTURE_VARIANT_ADD(guess, zero) { .absolute = true, .key = 0 };
FIXTURE_VARIANT_ADD(guess, all_ones) { .absolute = true, .key = UINT32_MAX };
FIXTURE_VARIANT_ADD(guess, other_low_byte) { .key = 1 };
FIXTURE_VARIANT_ADD(guess, other_index) { .key = 0x10000 };

TEST_F(guess, local_key)
{
	struct end *c = self->c, *s = self->s;
	uint32_t key = variant->key + (variant->absolute ? 0 : c->mr->lkey);

	memset(c->buf, 1, 100);
	ASSERT_EQ(0, end_write_from(c, addr64(c->buf), 100, key, s));
	ASSERT_COMP_PROT(c->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(s->buf, BUF_SIZE, POISON));
}

TEST_F(guess, remote_key)
{
	struct end *c = self->c, *s = self->s;
	uint32_t key = variant->key + (variant->absolute ? 0 : s->mr->rkey);

	memset(c->buf, 1, 100);
	ASSERT_EQ(0, end_write(c, 100, s->buf, key));
	ASSERT_COMP(c->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(s->buf, BUF_SIZE, POISON));
}

TEST_F(mr, deregistered_key)
{
	uint32_t lkey;

	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	lkey = self->mr->lkey;
	ASSERT_EQ(0, end_write_from(self->c, addr64(self->mem), 10, lkey, self->s));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	ASSERT_EQ(0, rdma_dereg_mr(self->mr));
	self->mr = NULL;
	memset(self->s->buf, POISON, 10);
	memset(self->mem, 1, 10);
	ASSERT_EQ(0, end_write_from(self->c, addr64(self->mem), 10, lkey, self->s));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 10, POISON));
}

/* Memory that is registered twice has two keys with their own rights. */
TEST_F(mr, same_memory_twice)
{
	struct ibv_mr *other;

	self->mr = rdma_reg_read(self->peer, self->mem, 1000);
	other = rdma_reg_write(self->peer, self->mem, 1000);
	ASSERT_TRUE(self->mr && other);
	EXPECT_NE(self->mr->rkey, other->rkey);
	fill(self->c->buf, 1000, 1);
	ASSERT_WRITE(self->c, 1000, self->mem, other->rkey);
	ASSERT_EQ(0, ibv_dereg_mr(other));
	memset(self->c->buf, 0, 1000);
	ASSERT_READ(self->c, 1000, self->mem, self->mr->rkey);
	EXPECT_TRUE(filled(self->c->buf, 1000, 1));
}

TEST_F(mr, iova)
{
	const uint64_t iova = 0x123456789000;

	self->mr = ibv_reg_mr_iova(self->peer->pd, self->mem + 5, 5000,
				   iova + 5, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 5000, 1);
	ASSERT_WRITE(self->c, 5000, (void *)(uintptr_t)(iova + 5), self->mr->rkey);
	EXPECT_TRUE(filled(self->mem + 5, 5000, 1));
	EXPECT_TRUE(all_bytes(self->mem, 5, POISON));
}

TEST_HARNESS_MAIN
