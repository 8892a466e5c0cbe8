// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests ibv_reg_dmabuf_mr(3).  A failure means that a program which asks whether the
 * device has dma-bufs gets a wrong answer, or that a region of one covers wrong memory.
 *
 * rxe has none over either library; librdma_post has them on rdmasim.
 */
#include <kselftest_harness.h>
#include <sys/mman.h>

#include "../lib/udmabuf.h"
#include "rdma_test.h"

#define BYTES		(8 * 4096)
#define NO_DMA_BUFS	"the device has no dma-bufs"

FIXTURE(dmabuf) {
	PAIR_MEMBERS;
	const char *skip;
	int fd;
	uint8_t *mem;		/* the dma-buf */
	struct ibv_pd *pd;
};

FIXTURE_SETUP(dmabuf)
{
	PAIR_SETUP(pair_open);
	self->pd = self->s->id->pd;
	self->fd = -1;
	if (!ibv_reg_dmabuf_mr(self->pd, 0, BYTES, 0, -1, ALL_RIGHTS) &&
	    errno == EOPNOTSUPP) {
		self->skip = NO_DMA_BUFS;
		return;
	}
	self->fd = udmabuf(BYTES, &self->skip);
	if (self->fd < 0)
		return;
	self->mem = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
}

FIXTURE_TEARDOWN(dmabuf)
{
	pair_close(&self->p);
	if (self->mem)
		munmap(self->mem, BYTES);
	if (self->fd >= 0)
		close(self->fd);
}

/*
 * UCX takes EBADF for yes.  NCCL takes EOPNOTSUPP and EPROTONOSUPPORT for no, and calls
 * with a length of 0.
 */
TEST_F(dmabuf, ask)
{
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->pd, 0, 4096, 0, -1, ALL_RIGHTS));
	EXPECT_EQ(on_rxe(self->s->id) ? EOPNOTSUPP : EBADF, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->pd, 0, 0, 0, -1, 0));
	EXPECT_EQ(on_rxe(self->s->id), errno == EOPNOTSUPP);
}

TEST_F(dmabuf, region)
{
	const uint64_t iova = 0x123450000 + 64;
	struct ibv_mr *mr;

	if (self->skip)
		SKIP(return, "%s", self->skip);
	mr = ibv_reg_dmabuf_mr(self->pd, 4096 + 64, 5000, iova, self->fd, ALL_RIGHTS);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(self->pd, mr->pd);
	EXPECT_EQ(self->s->id->verbs, mr->context);
	/* As libibverbs does. */
	EXPECT_EQ(4096 + 64, addr64(mr->addr));
	EXPECT_EQ(5000, mr->length);
	close(self->fd);
	self->fd = -1;

	fill(self->c->buf, 5000, 3);
	ASSERT_EQ(0, end_write(self->c, 5000, (void *)(uintptr_t)iova, mr->rkey));
	ASSERT_EQ(1, wait_comp(self->c->id->send_cq, &self->wc));
	ASSERT_EQ(IBV_WC_SUCCESS, self->wc.status);
	EXPECT_TRUE(filled(self->mem + 4096 + 64, 5000, 3));
	EXPECT_TRUE(all_bytes(self->mem, 4096 + 64, 0));

	/* Memory of a dma-buf has no address by which it could be registered anew. */
	errno = 0;
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	ASSERT_EQ(0, end_write(self->c, 1, (void *)(uintptr_t)iova, 0));
	ASSERT_EQ(1, wait_comp(self->c->id->send_cq, &self->wc));
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, self->wc.status);
}

TEST_F(dmabuf, errors)
{
	int memfd;

	if (self->skip)
		SKIP(return, "%s", self->skip);
	memfd = memfd_create("rdma_post", MFD_CLOEXEC);
	ASSERT_LE(0, memfd);
#define EXPECT_NO_DMABUF(err, ...) do {					\
	errno = 0;							\
	EXPECT_EQ(NULL, ibv_reg_dmabuf_mr(self->pd, __VA_ARGS__));	\
	EXPECT_EQ(err, errno);						\
} while (0)
	EXPECT_NO_DMABUF(EINVAL, 0, BYTES, 0, memfd, ALL_RIGHTS);
	EXPECT_NO_DMABUF(EINVAL, 0, 0, 0, self->fd, ALL_RIGHTS);
	EXPECT_NO_DMABUF(EINVAL, 0, BYTES + 1, 0, self->fd, ALL_RIGHTS);
	EXPECT_NO_DMABUF(EINVAL, BYTES, 1, 0, self->fd, ALL_RIGHTS);
	EXPECT_NO_DMABUF(EINVAL, 64, 1, 0, self->fd, ALL_RIGHTS);
	EXPECT_NO_DMABUF(EINVAL, 0, 1, 0, self->fd, IBV_ACCESS_REMOTE_WRITE);
	EXPECT_NO_DMABUF(EOPNOTSUPP, 0, 1, 0, self->fd, IBV_ACCESS_ON_DEMAND);
	close(memfd);
}

TEST_HARNESS_MAIN
