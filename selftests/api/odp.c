// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests on-demand paging: ibv_reg_mr(), ibv_advise_mr(), and RDMA_POST_ODP,
 * which only librdma_post has.  A failure means that a region or an advice
 * behaves in another way than over rdma-core, or that memory is pinned.
 *
 * Needs root, for librdma_post's module parameter.  Skips where the device has
 * no on-demand paging.
 */
#include <kselftest_harness.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "verbs_test.h"

#define NOBODY		65534
#define PAGE		4096
#define BYTES		(8 * PAGE)
#define PARAMETER	"/sys/module/rdma_post/parameters/odp"

FIXTURE(odp) {
	struct device dev;
	struct ibv_device_attr_ex attr;
	uint8_t *mem;		/* untouched */
	bool has;
};

static bool allow(bool yes)
{
	FILE *f = fopen(PARAMETER, "we");

	if (!f)
		return false;
	fputs(yes ? "Y" : "N", f);
	return !fclose(f);
}

static int become_root(void)
{
	return setresuid(0, 0, 0);
}

FIXTURE_SETUP(odp)
{
	self->mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
	ASSERT_EQ(0, madvise(self->mem, BYTES, MADV_NOHUGEPAGE));
	if (!over_incumbent() && !geteuid())
		ASSERT_TRUE(allow(true));
	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, ibv_query_device_ex(self->dev.verbs, NULL, &self->attr));
	self->has = self->attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
}

FIXTURE_TEARDOWN(odp)
{
	if (self->dev.verbs)
		device_close(&self->dev);
	/* A test that failed may have left it poor. */
	become_root();
	if (!over_incumbent() && !geteuid())
		EXPECT_TRUE(allow(false));
}

#define NEED_ODP()							\
	do {								\
		if (!self->has)						\
			SKIP(return, "the device has no on-demand paging"); \
	} while (0)

/* The number of pages that are present. */
static int present(const void *mem)
{
	unsigned char vec[BYTES / PAGE];
	int i, n = 0;

	if (mincore((void *)mem, BYTES, vec))
		return -1;
	for (i = 0; i < BYTES / PAGE; i++)
		n += vec[i] & 1;
	return n;
}

TEST_F(odp, capabilities)
{
	uint32_t rc = self->attr.odp_caps.per_transport_caps.rc_odp_caps;

	NEED_ODP();
	EXPECT_TRUE(rc & IBV_ODP_SUPPORT_SEND);
	EXPECT_TRUE(rc & IBV_ODP_SUPPORT_WRITE);
	EXPECT_TRUE(rc & IBV_ODP_SUPPORT_READ);
}

TEST_F(odp, not_there)
{
	struct ibv_sge sge = { .addr = addr64(self->mem), .length = PAGE };

	if (self->has)
		SKIP(return, "the device has on-demand paging");
	EXPECT_EQ(NULL, ibv_reg_mr(self->dev.pd, self->mem, BYTES,
				   ALL_RIGHTS | IBV_ACCESS_ON_DEMAND));
	EXPECT_EQ(EOPNOTSUPP,
		  ibv_advise_mr(self->dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0,
				&sge, 1));
}

TEST_F(odp, advice)
{
	struct ibv_pd *pd = self->dev.pd;
	struct ibv_sge sge = { .addr = addr64(self->mem), .length = BYTES };
	struct ibv_sge many[200];
	struct ibv_mr *mr;
	unsigned int i;
	int err;

	NEED_ODP();
	mr = ibv_reg_mr(pd, self->mem, BYTES, ALL_RIGHTS | IBV_ACCESS_ON_DEMAND);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(0, present(self->mem));
	sge.lkey = mr->lkey;
	err = ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
			    IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	if (err == EOPNOTSUPP && over_incumbent())
		SKIP(return, "the provider has no ibv_advise_mr()");
	EXPECT_EQ(0, err);
	EXPECT_EQ(0, present(self->mem));
	sge.length = 1;
	EXPECT_EQ(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				   IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	EXPECT_EQ(1, present(self->mem));
	for (i = 0; i < 200; i++) {
		many[i] = sge;
		many[i].addr += i % 8 * PAGE;
	}
	EXPECT_EQ(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				   IBV_ADVISE_MR_FLAG_FLUSH, many, 200));
	EXPECT_EQ(BYTES / PAGE, present(self->mem));
	EXPECT_EQ(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, many,
				   200));
	many[100].lkey ^= 1;
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				   IBV_ADVISE_MR_FLAG_FLUSH, many, 200));
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, &sge, 1));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_NE(0, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH,
				   IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
}

/* Programs give a queue pair the access of their regions. */
TEST_F(odp, access_of_a_queue_pair)
{
	struct ibv_qp_attr attr;
	struct side side;
	int mask;

	NEED_ODP();
	ASSERT_EQ(0, side_prepare(&self->dev, &side, NULL));
	side.qp = ibv_create_qp(self->dev.pd, &(struct ibv_qp_init_attr) {
		.send_cq = side.cq, .recv_cq = side.cq, .cap = side_cap(),
		.qp_type = IBV_QPT_RC });
	ASSERT_NE(NULL, side.qp);
	mask = attr_init(&self->dev, side.qp, &attr);
	attr.qp_access_flags |= IBV_ACCESS_ON_DEMAND;
	EXPECT_EQ(0, ibv_modify_qp(side.qp, &attr, mask));
	side_close(&side);
}

/* rxe puts the data of a packet at the beginning of a page. */
static bool is_rxe(const struct device *dev)
{
	return !strncmp(ibv_get_device_name(dev->verbs->device), "rxe", 3);
}

/* An ordinary user who may lock no memory; open the device again. */
static int become_poor(FIXTURE_DATA(odp) *self, const char *env)
{
	struct rlimit none = { 0, 0 };

	device_close(&self->dev);
	self->dev.verbs = NULL;
	if (env)
		setenv("RDMA_POST_ODP", env, 1);
	else
		unsetenv("RDMA_POST_ODP");
	if (setrlimit(RLIMIT_MEMLOCK, &none) || setresuid(NOBODY, NOBODY, 0))
		return -1;
	return device_open(&self->dev);
}

#define NEED_ENV()							\
	do {								\
		if (over_incumbent())					\
			SKIP(return, "only librdma_post has RDMA_POST_ODP"); \
		if (geteuid())						\
			SKIP(return, "needs root");			\
		NEED_ODP();						\
	} while (0)

TEST_F(odp, without_locked_memory)
{
	struct device *dev = &self->dev;
	struct ibv_mr *from, *to;
	struct side a, b;
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.wr_id = 5, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_wc wc;

	NEED_ENV();
	ASSERT_EQ(0, become_poor(self, "force"));
	ASSERT_EQ(0, side_open(dev, &a, IBV_QPT_RC, NULL, NULL));
	ASSERT_EQ(0, side_open(dev, &b, IBV_QPT_RC, NULL, NULL));
	ASSERT_EQ(0, bring_up_pair(dev, &a, &b));
	from = ibv_reg_mr(dev->pd, self->mem, PAGE, ALL_RIGHTS);
	ASSERT_NE(NULL, from);
	to = ibv_reg_mr(dev->pd, self->mem + 4 * PAGE, PAGE, ALL_RIGHTS);
	ASSERT_NE(NULL, to);
	EXPECT_EQ(0, present(self->mem));
	fill(self->mem, 500, 3);
	sge = (struct ibv_sge) {
		.addr = addr64(self->mem), .length = 500, .lkey = from->lkey,
	};
	wr.wr.rdma.remote_addr = addr64(self->mem + 4 * PAGE);
	wr.wr.rdma.rkey = to->rkey;
	ASSERT_EQ(0, ibv_post_send(a.qp, &wr, &bad));
	ASSERT_EQ(1, wait_comp(a.cq, &wc));
	EXPECT_EQ(IBV_WC_SUCCESS, wc.status);
	EXPECT_TRUE(filled(self->mem + 4 * PAGE, 500, 3));
	/* Cannot be on demand here, and no memory may be locked. */
	if (is_rxe(dev)) {
		EXPECT_NULL_ERRNO(EPERM, ibv_reg_mr(dev->pd, self->mem + 1, 100, ALL_RIGHTS));
	}
	ASSERT_EQ(0, ibv_dereg_mr(from));
	ASSERT_EQ(0, ibv_dereg_mr(to));
	side_close(&a);
	side_close(&b);
	ASSERT_EQ(0, become_root());
}

/* Only devices that treat regions on demand as others are used without force. */
TEST_F(odp, not_forced)
{
	static const char * const envs[] = { NULL, "0", "1", "nonsense" };
	struct ibv_mr *mr;
	unsigned int i;

	NEED_ENV();
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, become_poor(self, envs[i]));
		errno = 0;
		mr = ibv_reg_mr(self->dev.pd, self->mem, PAGE, ALL_RIGHTS);
		if (is_rxe(&self->dev) || i == 1) {
			EXPECT_EQ(NULL, mr);
			EXPECT_EQ(EPERM, errno);
		} else {
			EXPECT_NE(NULL, mr);
		}
		if (mr)
			ibv_dereg_mr(mr);
		/* Asked for, it is given. */
		mr = ibv_reg_mr(self->dev.pd, self->mem, PAGE,
				ALL_RIGHTS | IBV_ACCESS_ON_DEMAND);
		EXPECT_NE(NULL, mr);
		if (mr)
			ibv_dereg_mr(mr);
		ASSERT_EQ(0, become_root());
	}
}

TEST_HARNESS_MAIN
