// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests which memory can be registered, how much of it, and how long its pages
 * stay.  A failure means that bad memory is accepted, that good memory is
 * refused, or that the pages of a region go too early.
 */
#include <kselftest_harness.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "rdma_test.h"

MR_FIXTURE(mr)

/* Expect that the memory cannot be registered. */
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
	/* The memory before the hole can be registered. */
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

/* Memory that is only a source of sends need not be writable. */
TEST_F(mr, read_only_memory_is_a_source)
{
	fill(self->mem, 1000, 1);
	ASSERT_EQ(0, mprotect(self->mem, 4096, PROT_READ));
	self->mr = ibv_reg_mr(self->id->pd, self->mem, 1000, 0);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, end_write_from(self->c, addr64(self->mem), 1000,
				    self->mr->lkey, self->s));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, 1000, 1));
}

/* ibv_reg_mr(3): remote write and atomic rights need local write. */
TEST_F(mr, remote_write_without_local_write)
{
	EXPECT_NO_MR(EINVAL, self->id->pd, self->mem, 100, IBV_ACCESS_REMOTE_WRITE);
	EXPECT_NO_MR(EINVAL, self->id->pd, self->mem, 100, IBV_ACCESS_REMOTE_ATOMIC);
}

/*
 * On-demand paging needs a device that supports it.  librdma_post has none, since
 * nobody has set the module's parameter.
 */
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
	/* uverbs of 6.1 returns EINVAL. */
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
	/* A refused region is not charged to the limit. */
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
	/* The domain still works for another region. */
	self->mr = ibv_reg_mr(pd, self->mem, 100, ALL_RIGHTS);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, ibv_dereg_mr(self->mr));
	self->mr = NULL;
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	/* The ids' domain has queue pairs. */
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->id->pd));
	fill(self->c->buf, 100, 1);
	ASSERT_WRITE(self->c, 100, self->s->buf, self->s->mr->rkey);
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
		ASSERT_WRITE(self->c, 100, mr[i]->addr, mr[i]->rkey);
		EXPECT_TRUE(filled(mr[i]->addr, 100, i + 1));
	}
	for (i = 0; i < 200; i++)
		EXPECT_EQ(0, ibv_dereg_mr(mr[i]));
}

/* Write and read the first, the last and the middle bytes of the region. */
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
		if (end_write(c, len, place[i], mr->rkey) ||
		    wait_comp(c->id->send_cq, wc) != 1 || wc->status ||
		    !filled(place[i], len, i + 1))
			return false;
		memset(c->buf, 0, len);
		if (end_read(c, len, place[i], mr->rkey) ||
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

/* Pages of a file are shared with its other mappings. */
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
	ASSERT_WRITE(self->c, 8192, mem, self->mr->rkey);
	EXPECT_TRUE(filled(other, 8192, 1));
}

/* The region keeps its pages when the program unmaps them. */
TEST_F(mr, unmapped_after_registration)
{
	self->mr = rdma_reg_read(self->peer, self->mem, 4096);
	ASSERT_NE(NULL, self->mr);
	fill(self->mem, 4096, 1);
	ASSERT_EQ(0, munmap(self->mem, 4096));
	ASSERT_READ(self->c, 4096, self->mem, self->mr->rkey);
	EXPECT_TRUE(filled(self->c->buf, 4096, 1));
}

TEST_HARNESS_MAIN
