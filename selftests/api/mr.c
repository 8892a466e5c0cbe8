// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory regions: who may do what with which bytes, by which key, for how long.
 */
#include <kselftest_harness.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "rdma_test.h"

#define CONTEXT ((void *)0x1234ul)
#define ALL_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
		    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

FIXTURE(mr) {
	struct pair p;
	struct end *c, *s;
	struct rdma_cm_id *id, *peer;
	struct ibv_mr *mr;	/* made by a test, for it or the teardown */
	uint8_t *mem;		/* 64 KiB of the server, not registered */
	struct ibv_wc wc;
};

FIXTURE_SETUP(mr)
{
	ASSERT_EQ(0, pair_open(&self->p, NULL));
	self->c = &self->p.client;
	self->s = &self->p.server;
	self->id = self->c->id;
	self->peer = self->s->id;
	self->mem = mmap(NULL, BUF_SIZE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
	memset(self->mem, POISON, BUF_SIZE);
}

FIXTURE_TEARDOWN(mr)
{
	if (self->mr)
		ibv_dereg_mr(self->mr);
	pair_close(&self->p);
}

static int write_to(struct end *end, size_t len, const void *to, uint32_t rkey)
{
	return rdma_post_write(end->id, CONTEXT, end->buf, len, end->mr,
			       IBV_SEND_SIGNALED, addr64(to), rkey);
}

static int read_from(struct end *end, size_t len, const void *from, uint32_t rkey)
{
	return rdma_post_read(end->id, CONTEXT, end->buf, len, end->mr,
			      IBV_SEND_SIGNALED, addr64(from), rkey);
}

/* A write out of local memory named by an address and a key. */
static int write_out_of(struct end *end, uint64_t addr, uint32_t len,
			uint32_t lkey, struct end *to)
{
	struct ibv_sge list = { .addr = addr, .length = len, .lkey = lkey };

	return rdma_post_writev(end->id, CONTEXT, &list, 1, IBV_SEND_SIGNALED,
				addr64(to->buf), to->mr->rkey);
}

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
 * The three helpers of <rdma/rdma_verbs.h>, and what a peer may do with their
 * regions.
 */
TEST_F(mr, reg_msgs_refuses_remote_write)
{
	self->mr = rdma_reg_msgs(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, write_to(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

TEST_F(mr, reg_msgs_refuses_remote_read)
{
	self->mr = rdma_reg_msgs(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	memset(self->c->buf, 0, 10);
	ASSERT_EQ(0, read_from(self->c, 10, self->mem, self->mr->rkey));
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
	ASSERT_EQ(0, rdma_post_recv(self->id, CONTEXT, self->c->buf + 200, 100,
				    self->c->mr));
	ASSERT_EQ(0, rdma_post_send(self->id, CONTEXT, self->c->buf, 100,
				    self->c->mr, 0));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->mem, 100, 2));
	ASSERT_EQ(0, rdma_post_send(self->peer, CONTEXT, self->mem + 500, 100,
				    self->mr, 0));
	ASSERT_COMP_OK(self->id->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf + 200, 100, 1));
}

TEST_F(mr, reg_read_allows_remote_read)
{
	self->mr = rdma_reg_read(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	fill(self->mem, 1000, 1);
	ASSERT_EQ(0, read_from(self->c, 1000, self->mem, self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf, 1000, 1));
}

TEST_F(mr, reg_read_refuses_remote_write)
{
	self->mr = rdma_reg_read(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, write_to(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

TEST_F(mr, reg_write_allows_remote_write)
{
	self->mr = rdma_reg_write(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 1000, 1);
	ASSERT_EQ(0, write_to(self->c, 1000, self->mem, self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->mem, 1000, 1));
	EXPECT_TRUE(all_bytes(self->mem + 1000, 1000, POISON));
}

TEST_F(mr, reg_write_refuses_remote_read)
{
	self->mr = rdma_reg_write(self->peer, self->mem, 1000);
	ASSERT_NE(NULL, self->mr);
	memset(self->c->buf, 0, 10);
	ASSERT_EQ(0, read_from(self->c, 10, self->mem, self->mr->rkey));
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

/* Local rights. */
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
	ASSERT_EQ(0, rdma_post_send(self->id, CONTEXT, self->c->buf, 100,
				    self->c->mr, 0));
	ASSERT_COMP_PROT(self->peer->recv_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
}

TEST_F(mr, write_needs_no_local_write)
{
	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000, 0);
	ASSERT_NE(NULL, self->mr);
	fill(self->mem, 1000, 1);
	ASSERT_EQ(0, write_out_of(self->c, addr64(self->mem), 1000,
				  self->mr->lkey, self->s));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, 1000, 1));
}

/* Ranges: each test has a connection of its own, since it fails. */
FIXTURE(range) {
	struct pair p;
	struct ibv_wc wc;
};

FIXTURE_VARIANT(range) {
	long offset;	/* from the start of a region of 8192 bytes */
	uint32_t length;
};

FIXTURE_VARIANT_ADD(range, one_byte_too_many) {
	.offset = 0, .length = 8193,
};

FIXTURE_VARIANT_ADD(range, one_byte_before) {
	.offset = -1, .length = 2,
};

FIXTURE_VARIANT_ADD(range, over_the_end) {
	.offset = 8191, .length = 2,
};

FIXTURE_VARIANT_ADD(range, after_the_end) {
	.offset = 8192, .length = 1,
};

FIXTURE_VARIANT_ADD(range, far_away) {
	.offset = 1l << 40, .length = 10,
};

FIXTURE_VARIANT_ADD(range, wraps_around) {
	.offset = 4096, .length = 0xfffffff0,
};

FIXTURE_SETUP(range)
{
	struct pair_opts opts;
	struct end *s = &self->p.server, *c = &self->p.client;

	/* The regions are in the middle of memory that may be touched. */
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_open(&self->p, &opts));
	ASSERT_EQ(0, ibv_dereg_mr(s->mr));
	ASSERT_EQ(0, ibv_dereg_mr(c->mr));
	s->mr = ibv_reg_mr(s->id->pd, s->buf + 8192, 8192, ALL_RIGHTS);
	c->mr = ibv_reg_mr(c->id->pd, c->buf + 8192, 8192, ALL_RIGHTS);
	ASSERT_TRUE(s->mr && c->mr);
}

FIXTURE_TEARDOWN(range)
{
	pair_close(&self->p);
}

TEST_F(range, remote_write)
{
	struct end *c = &self->p.client, *s = &self->p.server;
	uint64_t remote = addr64(s->buf + 8192) + variant->offset;
	uint32_t length = variant->length;

	/* No local region is so long; a high address wraps as well. */
	if (length > BUF_SIZE) {
		length = 8192;
		remote = -4096ul;
	}
	ASSERT_EQ(0, ibv_dereg_mr(c->mr));
	c->mr = rdma_reg_msgs(c->id, c->buf, BUF_SIZE);
	ASSERT_NE(NULL, c->mr);
	memset(c->buf, 1, BUF_SIZE);
	ASSERT_EQ(0, rdma_post_write(c->id, CONTEXT, c->buf, length, c->mr,
				     IBV_SEND_SIGNALED, remote, s->mr->rkey));
	ASSERT_COMP(c->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(s->buf, 8192, POISON));
	EXPECT_TRUE(all_bytes(s->buf + 16384, BUF_SIZE - 16384, POISON));
}

TEST_F(range, local_write)
{
	struct end *c = &self->p.client, *s = &self->p.server;

	ASSERT_EQ(0, ibv_dereg_mr(s->mr));
	s->mr = rdma_reg_write(s->id, s->buf, BUF_SIZE);
	ASSERT_NE(NULL, s->mr);
	memset(c->buf, 1, BUF_SIZE);
	ASSERT_EQ(0, write_out_of(c, addr64(c->buf + 8192) + variant->offset,
				  variant->length, c->mr->lkey, s));
	ASSERT_COMP_PROT(c->id->send_cq, &self->wc, CONTEXT);
	/* A device may have sent its first packets before it sees the end. */
	if (!over_incumbent())
		EXPECT_TRUE(all_bytes(s->buf, BUF_SIZE, POISON));
}

TEST_F(mr, whole_region_is_usable)
{
	self->mr = ibv_reg_mr(self->peer->pd, self->mem + 4093, 8195, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 8195, 1);
	ASSERT_EQ(0, write_to(self->c, 8195, self->mem + 4093, self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->mem + 4093, 8195, 1));
	EXPECT_TRUE(all_bytes(self->mem, 4093, POISON));
	EXPECT_TRUE(all_bytes(self->mem + 4093 + 8195, 100, POISON));
	/* The last byte alone. */
	self->c->buf[0] = 0x11;
	ASSERT_EQ(0, write_to(self->c, 1, self->mem + 4093 + 8194, self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_EQ(0x11, self->mem[4093 + 8194]);
}

/* Keys. */
TEST_F(mr, local_key_of_another_pd)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->id->verbs);

	ASSERT_NE(NULL, pd);
	self->mr = ibv_reg_mr(pd, self->mem, 1000, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, write_out_of(self->c, addr64(self->mem), 10,
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
	ASSERT_EQ(0, write_to(self->c, 10, self->mem, self->mr->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->mem, 1000, POISON));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

FIXTURE(guess) {
	struct pair p;
	struct ibv_wc wc;
};

FIXTURE_VARIANT(guess) {
	bool absolute;
	uint32_t key;	/* or what is added to a good one */
};

FIXTURE_VARIANT_ADD(guess, zero) {
	.absolute = true, .key = 0,
};

FIXTURE_VARIANT_ADD(guess, all_ones) {
	.absolute = true, .key = UINT32_MAX,
};

FIXTURE_VARIANT_ADD(guess, other_low_byte) {
	.key = 1,
};

FIXTURE_VARIANT_ADD(guess, other_index) {
	.key = 0x10000,
};

FIXTURE_SETUP(guess)
{
	ASSERT_EQ(0, pair_open(&self->p, NULL));
}

FIXTURE_TEARDOWN(guess)
{
	pair_close(&self->p);
}

TEST_F(guess, local_key)
{
	struct end *c = &self->p.client, *s = &self->p.server;
	uint32_t key = variant->key + (variant->absolute ? 0 : c->mr->lkey);

	memset(c->buf, 1, 100);
	ASSERT_EQ(0, write_out_of(c, addr64(c->buf), 100, key, s));
	ASSERT_COMP_PROT(c->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(s->buf, BUF_SIZE, POISON));
}

TEST_F(guess, remote_key)
{
	struct end *c = &self->p.client, *s = &self->p.server;
	uint32_t key = variant->key + (variant->absolute ? 0 : s->mr->rkey);

	memset(c->buf, 1, 100);
	ASSERT_EQ(0, write_to(c, 100, s->buf, key));
	ASSERT_COMP(c->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(s->buf, BUF_SIZE, POISON));
}

TEST_F(mr, deregistered_key)
{
	uint32_t lkey;

	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	lkey = self->mr->lkey;
	ASSERT_EQ(0, write_out_of(self->c, addr64(self->mem), 10, lkey, self->s));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	ASSERT_EQ(0, rdma_dereg_mr(self->mr));
	self->mr = NULL;
	memset(self->s->buf, POISON, 10);
	memset(self->mem, 1, 10);
	ASSERT_EQ(0, write_out_of(self->c, addr64(self->mem), 10, lkey, self->s));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 10, POISON));
}

/* Registered twice, the same bytes have two sets of rights. */
TEST_F(mr, same_memory_twice)
{
	struct ibv_mr *other;

	self->mr = rdma_reg_read(self->peer, self->mem, 1000);
	other = rdma_reg_write(self->peer, self->mem, 1000);
	ASSERT_TRUE(self->mr && other);
	EXPECT_NE(self->mr->rkey, other->rkey);
	fill(self->c->buf, 1000, 1);
	ASSERT_EQ(0, write_to(self->c, 1000, self->mem, other->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	ASSERT_EQ(0, ibv_dereg_mr(other));
	memset(self->c->buf, 0, 1000);
	ASSERT_EQ(0, read_from(self->c, 1000, self->mem, self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf, 1000, 1));
}

TEST_F(mr, iova)
{
	const uint64_t iova = 0x123456789000;

	self->mr = ibv_reg_mr_iova(self->peer->pd, self->mem + 5, 5000,
				   iova + 5, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 5000, 1);
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf, 5000,
				     self->c->mr, IBV_SEND_SIGNALED, iova + 5,
				     self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->mem + 5, 5000, 1));
	EXPECT_TRUE(all_bytes(self->mem, 5, POISON));
}

/* What cannot be registered. */
#define EXPECT_NO_MR(err, pd, addr, length, access) do { \
	errno = 0; \
	EXPECT_EQ(NULL, ibv_reg_mr(pd, addr, length, access)); \
	EXPECT_EQ(err, errno) \
		TH_LOG("errno: %s", strerror(errno)); \
} while (0)

TEST_F(mr, unmapped_memory)
{
	struct ibv_pd *pd = self->id->pd;

	ASSERT_EQ(0, munmap(self->mem + 8192, 4096));
	EXPECT_NO_MR(EFAULT, pd, self->mem + 8192, 4096, ALL_RIGHTS);
	EXPECT_NO_MR(EFAULT, pd, self->mem + 4096, 4097, ALL_RIGHTS);
	EXPECT_NO_MR(EFAULT, pd, self->mem, BUF_SIZE, ALL_RIGHTS);
	EXPECT_NO_MR(EFAULT, pd, self->mem + 8192, 4096, 0);
	EXPECT_NO_MR(EFAULT, pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE);
	/* Up to the hole it may. */
	self->mr = ibv_reg_mr(pd, self->mem + 4096, 4096, ALL_RIGHTS);
	EXPECT_NE(NULL, self->mr);
}

TEST_F(mr, no_bytes)
{
	EXPECT_NO_MR(EINVAL, self->id->pd, self->mem, 0, ALL_RIGHTS);
}

TEST_F(mr, read_only_memory)
{
	ASSERT_EQ(0, mprotect(self->mem, 4096, PROT_READ));
	EXPECT_NO_MR(EFAULT, self->id->pd, self->mem, 100, IBV_ACCESS_LOCAL_WRITE);
	EXPECT_NO_MR(EFAULT, self->id->pd, self->mem, 100, ALL_RIGHTS);
}

/* A source of sends need not be writable. */
TEST_F(mr, read_only_memory_is_a_source)
{
	fill(self->mem, 1000, 1);
	ASSERT_EQ(0, mprotect(self->mem, 4096, PROT_READ));
	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000, 0);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, write_out_of(self->c, addr64(self->mem), 1000,
				  self->mr->lkey, self->s));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, 1000, 1));
}

/* ibv_reg_mr(3): remote write and atomic need local write. */
TEST_F(mr, remote_write_without_local_write)
{
	EXPECT_NO_MR(EINVAL, self->id->pd, self->mem, 100, IBV_ACCESS_REMOTE_WRITE);
	EXPECT_NO_MR(EINVAL, self->id->pd, self->mem, 100, IBV_ACCESS_REMOTE_ATOMIC);
}

/* On demand where the device says so; over rdma_post none does. */
TEST_F(mr, on_demand)
{
	struct ibv_device_attr_ex attr;

	ASSERT_EQ(0, ibv_query_device_ex(self->id->verbs, NULL, &attr));
	errno = 0;
	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	if (attr.odp_caps.general_caps & IBV_ODP_SUPPORT) {
		EXPECT_TRUE(over_incumbent());
		EXPECT_NE(NULL, self->mr)
			TH_LOG("errno: %s", strerror(errno));
		return;
	}
	EXPECT_EQ(NULL, self->mr);
	/* The uverbs of 6.1 says EINVAL. */
	EXPECT_TRUE(errno == EOPNOTSUPP || (over_incumbent() && errno == EINVAL))
		TH_LOG("errno: %s", strerror(errno));
}

TEST_F(mr, end_of_the_address_space)
{
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_mr(self->id->pd, (void *)-4096l, 8192, ALL_RIGHTS));
	EXPECT_TRUE(errno == EINVAL || errno == EOVERFLOW || errno == EFAULT)
		TH_LOG("errno: %s", strerror(errno));
}

static bool drop_ipc_lock(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return false;
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	return !syscall(SYS_capset, &header, data);
}

TEST_F(mr, locked_memory_limit)
{
	struct rlimit limit = { .rlim_cur = 1 << 20, .rlim_max = 1 << 20 };
	uint8_t *big;

	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	ASSERT_TRUE(drop_ipc_lock());
	big = mmap(NULL, 4 << 20, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, big);
	EXPECT_NO_MR(ENOMEM, self->id->pd, big, 2 << 20, ALL_RIGHTS);
	/* It fails again, and again a smaller one is possible. */
	EXPECT_NO_MR(ENOMEM, self->id->pd, big, 2 << 20, ALL_RIGHTS);
	self->mr = ibv_reg_mr(self->id->pd, big, 512 << 10, ALL_RIGHTS);
	EXPECT_NE(NULL, self->mr);
	EXPECT_NO_MR(ENOMEM, self->id->pd, big, 768 << 10, ALL_RIGHTS);
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = ibv_reg_mr(self->id->pd, big, 768 << 10, ALL_RIGHTS);
	EXPECT_NE(NULL, self->mr);
}

TEST_F(mr, pd_in_use)
{
	struct ibv_pd *pd = ibv_alloc_pd(self->id->verbs);

	ASSERT_NE(NULL, pd);
	EXPECT_EQ(self->id->verbs, pd->context);
	self->mr = ibv_reg_mr(pd, self->mem, 100, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	/* It is still there, and good for another region. */
	self->mr = ibv_reg_mr(pd, self->mem, 100, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	/* The ids' PD has queue pairs. */
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->id->pd));
	fill(self->c->buf, 100, 1);
	ASSERT_EQ(0, write_to(self->c, 100, self->s->buf, self->s->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
}

TEST_F(mr, many_regions)
{
	struct ibv_mr *mr[200];
	int i, j;

	for (i = 0; i < 200; i++) {
		mr[i] = rdma_reg_write(self->peer, self->mem + i * 100, 100);
		ASSERT_NE(NULL, mr[i]);
		for (j = 0; j < i; j++) {
			ASSERT_NE(mr[i]->rkey, mr[j]->rkey);
			ASSERT_NE(mr[i]->lkey, mr[j]->lkey);
		}
	}
	for (i = 0; i < 200; i += 33) {
		fill(self->c->buf, 100, i + 1);
		ASSERT_EQ(0, write_to(self->c, 100, mr[i]->addr, mr[i]->rkey));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
		EXPECT_TRUE(filled(mr[i]->addr, 100, i + 1));
	}
	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, ibv_dereg_mr(mr[i]));
}

/* Writes and reads over the first, the last, and the middle page. */
static bool edges_work(struct end *c, struct ibv_mr *mr, struct ibv_wc *wc)
{
	uint8_t *place[3], *start = mr->addr;
	size_t len = mr->length < 3000 ? mr->length : 3000;
	int i;

	place[0] = start;
	place[1] = start + (mr->length - len) / 2;
	place[2] = start + mr->length - len;
	for (i = 0; i < 3; i++) {
		fill(c->buf, len, i + 1);
		if (write_to(c, len, place[i], mr->rkey) ||
		    wait_comp(c->id->send_cq, wc) != 1 || wc->status ||
		    !filled(place[i], len, i + 1))
			return false;
		memset(c->buf, 0, len);
		if (read_from(c, len, place[i], mr->rkey) ||
		    wait_comp(c->id->send_cq, wc) != 1 || wc->status ||
		    !filled(c->buf, len, i + 1))
			return false;
	}
	return true;
}

TEST_F(mr, sizes)
{
	static const size_t sizes[] = {
		1, 4095, 4096, 4097, 65536, 1 << 20, (1 << 21) + 1, 16 << 20,
	};
	struct ibv_device_attr attr;
	uint8_t *mem;
	size_t i;

	ASSERT_EQ(0, ibv_query_device(self->peer->verbs, &attr));
	mem = mmap(NULL, (16 << 20) + 4096, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mem);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (sizes[i] + 4096 > attr.max_mr_size)
			break;
		self->mr = ibv_reg_mr(self->peer->pd, mem + 7, sizes[i], ALL_RIGHTS);
		ASSERT_NE(NULL, self->mr)
			TH_LOG("%zu bytes: %s", sizes[i], strerror(errno));
		ASSERT_TRUE(edges_work(self->c, self->mr, &self->wc))
			TH_LOG("%zu bytes", sizes[i]);
		ASSERT_EQ(0, ibv_dereg_mr(self->mr));
		self->mr = NULL;
	}
}

/* Pages of a file, shared with whoever maps it. */
TEST_F(mr, shared_memory)
{
	uint8_t *mem, *other;
	int fd;

	fd = memfd_create("mr", 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, 8192));
	mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	other = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_TRUE(mem != MAP_FAILED && other != MAP_FAILED);
	self->mr = rdma_reg_write(self->peer, mem, 8192);
	ASSERT_NE(NULL, self->mr);
	fill(self->c->buf, 8192, 1);
	ASSERT_EQ(0, write_to(self->c, 8192, mem, self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(other, 8192, 1));
}

/* The pages stay the region's when the program unmaps them. */
TEST_F(mr, unmapped_after_registration)
{
	self->mr = rdma_reg_read(self->peer, self->mem, 4096);
	ASSERT_NE(NULL, self->mr);
	fill(self->mem, 4096, 1);
	ASSERT_EQ(0, munmap(self->mem, 4096));
	ASSERT_EQ(0, read_from(self->c, 4096, self->mem, self->mr->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf, 4096, 1));
}

TEST_HARNESS_MAIN
