// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests ibv_rereg_mr(3): a changed region must have its new memory, domain and
 * rights only, and a failed change must leave it as it was.  Over rdma-core, a
 * device's driver may support this in part or not at all.
 */
#include <kselftest_harness.h>
#include <sys/mman.h>

#include "rdma_test.h"

#define LEN 8192
#define ALL (IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | \
	     IBV_REREG_MR_CHANGE_ACCESS)
#define WRITABLE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

FIXTURE(rereg) {
	PAIR_MEMBERS;
	struct ibv_pd *pd;	/* of the server's queue pair */
	struct ibv_pd *other;	/* of no queue pair */
	uint8_t *mem, *mem2;	/* not registered by the fixture */
	struct ibv_mr *mr;
};

FIXTURE_SETUP(rereg)
{
	PAIR_SETUP(pair_open);
	self->pd = self->peer->pd;
	self->other = ibv_alloc_pd(self->peer->verbs);
	ASSERT_NE(NULL, self->other);
	self->mem = poisoned_pages(2 * LEN);
	ASSERT_NE(NULL, self->mem);
	self->mem2 = self->mem + LEN;
}

FIXTURE_TEARDOWN(rereg)
{
	if (self->mr) {
		EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	}
	EXPECT_EQ(0, ibv_dealloc_pd(self->other));
	pair_close(&self->p);
}

/* Change self->mr; skip the test if the device cannot, over rdma-core. */
#define REREG(flags, pd, addr, length, access) do { \
	int ret_; \
	errno = 0; \
	ret_ = ibv_rereg_mr(self->mr, flags, pd, addr, length, access); \
	if (ret_ && over_incumbent() && errno == EOPNOTSUPP) \
		SKIP(return, "the device's driver cannot change this"); \
	ASSERT_EQ(0, ret_) \
		TH_LOG("ibv_rereg_mr: %s", strerror(errno)); \
} while (0)

#define ASSERT_WRITABLE(to, seed) do { \
	fill(self->c->buf, 100, seed); \
	ASSERT_EQ(0, end_write(self->c, 100, to, self->mr->rkey)); \
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT); \
	ASSERT_TRUE(filled(to, 100, seed)); \
} while (0)

/* A test does this last, since the error ends the connection. */
#define ASSERT_NOT_WRITABLE(to, key) do { \
	memset((void *)(to), POISON, 100); \
	ASSERT_EQ(0, end_write(self->c, 100, to, key)); \
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT); \
	ASSERT_TRUE(all_bytes((void *)(to), 100, POISON)); \
} while (0)

TEST_F(rereg, more_access)
{
	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, self->mr);
	REREG(IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WRITABLE);
	EXPECT_EQ(self->mem, self->mr->addr);
	EXPECT_EQ(LEN, self->mr->length);
	EXPECT_EQ(self->pd, self->mr->pd);
	ASSERT_WRITABLE(self->mem, 1);
	ASSERT_WRITABLE(self->mem + LEN - 100, 2);
}

TEST_F(rereg, less_access)
{
	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE);
	ASSERT_NE(NULL, self->mr);
	ASSERT_WRITABLE(self->mem, 1);
	REREG(IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NOT_WRITABLE(self->mem, self->mr->rkey);
}

TEST_F(rereg, into_the_protection_domain)
{
	self->mr = ibv_reg_mr(self->other, self->mem, LEN, WRITABLE);
	ASSERT_NE(NULL, self->mr);
	REREG(IBV_REREG_MR_CHANGE_PD, self->pd, NULL, 0, 0);
	EXPECT_EQ(self->pd, self->mr->pd);
	ASSERT_WRITABLE(self->mem, 1);
	/* No region is in the old domain any more. */
	EXPECT_EQ(0, ibv_dealloc_pd(self->other));
	self->other = ibv_alloc_pd(self->p.server.id->verbs);
	ASSERT_NE(NULL, self->other);
}

TEST_F(rereg, out_of_the_protection_domain)
{
	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE);
	ASSERT_NE(NULL, self->mr);
	REREG(IBV_REREG_MR_CHANGE_PD, self->other, NULL, 0, 0);
	EXPECT_EQ(self->other, self->mr->pd);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->other));
	ASSERT_NOT_WRITABLE(self->mem, self->mr->rkey);
}

TEST_F(rereg, other_memory)
{
	uint32_t rkey;

	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE);
	ASSERT_NE(NULL, self->mr);
	rkey = self->mr->rkey;
	REREG(IBV_REREG_MR_CHANGE_TRANSLATION, NULL, self->mem2, 1000, 0);
	EXPECT_EQ(self->mem2, self->mr->addr);
	EXPECT_EQ(1000, self->mr->length);
	/* The region has kept its access rights. */
	ASSERT_WRITABLE(self->mem2, 1);
	ASSERT_WRITABLE(self->mem2 + 900, 2);
	ASSERT_NOT_WRITABLE(self->mem, rkey);
}

TEST_F(rereg, all_of_it)
{
	self->mr = ibv_reg_mr(self->other, self->mem, LEN, 0);
	ASSERT_NE(NULL, self->mr);
	REREG(ALL, self->pd, self->mem2 + 7, 500, WRITABLE);
	ASSERT_WRITABLE(self->mem2 + 7, 1);
	ASSERT_WRITABLE(self->mem2 + 407, 2);
	ASSERT_NOT_WRITABLE(self->mem2 + 408, self->mr->rkey);
}

/* The iova stays unless the memory changes. */
TEST_F(rereg, iova_stays)
{
	uint64_t iova = 0x7000000000ull;

	self->mr = ibv_reg_mr_iova(self->pd, self->mem, LEN, iova,
				   IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, self->mr);
	REREG(IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, WRITABLE);
	fill(self->c->buf, 100, 1);
	ASSERT_WRITE(self->c, 100, (void *)(uintptr_t)(iova + 50), self->mr->rkey);
	EXPECT_TRUE(filled(self->mem + 50, 100, 1));
}

TEST_F(rereg, again_and_again)
{
	unsigned int i;

	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE);
	ASSERT_NE(NULL, self->mr);
	for (i = 0; i < 50; i++) {
		uint8_t *to = i % 2 ? self->mem : self->mem2 + i;

		REREG(IBV_REREG_MR_CHANGE_TRANSLATION, NULL, to, 100 + i, 0);
		ASSERT_WRITABLE(to, i + 1);
	}
}

TEST_F(rereg, wrong_input)
{
	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE);
	ASSERT_NE(NULL, self->mr);
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(self->mr, 1 << 10, NULL, NULL, 0, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(self->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			       NULL, 100, 0));
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(self->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			       self->mem, 0, 0));
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(self->mr, IBV_REREG_MR_CHANGE_PD, self->pd, NULL,
			       0, WRITABLE));
	EXPECT_NE(0, ibv_rereg_mr(self->mr, 0, NULL, NULL, 0, 0));
	ASSERT_WRITABLE(self->mem, 1);
}

/* After a failure the old region is unchanged. */
TEST_F(rereg, failure_changes_nothing)
{
	struct ibv_mr before;
	uint8_t *hole;

	if (over_incumbent())
		SKIP(return, "ibv_rereg_mr(3): the region shouldn't be used then");
	hole = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, hole);
	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE);
	ASSERT_NE(NULL, self->mr);
	before = *self->mr;
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(self->mr, ALL, self->other, hole, LEN, WRITABLE));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(0, memcmp(&before, self->mr, sizeof(before)));
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(self->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			       0, IBV_ACCESS_REMOTE_WRITE));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, memcmp(&before, self->mr, sizeof(before)));
	ASSERT_WRITABLE(self->mem, 1);
}

/* ibv_reg_mr(3): optional flags are ignored if they are not supported. */
TEST_F(rereg, optional_access)
{
	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE |
			      IBV_ACCESS_RELAXED_ORDERING |
			      IBV_ACCESS_OPTIONAL_FIRST << 5);
	ASSERT_NE(NULL, self->mr);
	ASSERT_WRITABLE(self->mem, 1);
}

/* ibv_reg_mr(3): the flag matters only for on-demand paging. */
TEST_F(rereg, huge_pages)
{
	self->mr = ibv_reg_mr(self->pd, self->mem, LEN, WRITABLE |
			      IBV_ACCESS_HUGETLB);
	if (!self->mr && over_incumbent() && errno == EOPNOTSUPP)
		SKIP(return, "the device's driver refuses the flag");
	ASSERT_NE(NULL, self->mr);
	ASSERT_WRITABLE(self->mem, 2);
}

/* In-kernel verbs lack these kinds of memory. */
TEST_F(rereg, other_kinds_of_memory)
{
	struct ibv_alloc_dm_attr dm = { .length = 100 };
	struct ibv_sge list = { .addr = addr64(self->mem), .length = 10 };

	if (over_incumbent() && !on_rxe(self->id))
		SKIP(return, "the device may have them");
	EXPECT_NULL_ERRNO(EOPNOTSUPP, ibv_alloc_dm(self->id->verbs, &dm));
	EXPECT_NULL_ERRNO(EOPNOTSUPP, ibv_alloc_null_mr(self->pd));
	if (over_incumbent())
		SKIP(return, "rdma_rxe of some kernels prefetches");
	EXPECT_EQ(EOPNOTSUPP, ibv_advise_mr(self->pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
					    0, &list, 1));
}

TEST_HARNESS_MAIN
