// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the cache of registrations: what is kept after DESTROY, that each change
 * of the memory ends it, and that nobody is refused because of it.  A failure
 * means that data is moved from or to memory that the program no longer has, or
 * that memory stays pinned.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <grp.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "fdinfo.h"
#include "memory_kinds.h"
#include "mr_cache.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE	25
#endif

#define NOBODY		65534
#define SLEEP		"--sleep"

FIXTURE(mr_cache) {
	struct cache_pair p;
};

FIXTURE_SETUP(mr_cache)
{
	ASSERT_EQ(0, cache_pair_init(&self->p, CACHE_PAGES));
}

FIXTURE_TEARDOWN(mr_cache)
{
	cache_pair_close(&self->p);
}

TEST_F(mr_cache, kept)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr old, mr;

	ASSERT_EQ(0, cache_reg(p, &old));
	EXPECT_EQ(0, cache_kept(p));
	ASSERT_EQ(0, cache_dereg(p, &old));
	/* Nothing tells yet that it comes again. */
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(p->pinned, rp_pinned());

	ASSERT_EQ(0, cache_reg(p, &old));
	ASSERT_EQ(0, cache_dereg(p, &old));
	EXPECT_EQ(1, cache_kept(p));
	EXPECT_EQ(p->bytes, fdinfo_get(p->c.fd, "bytes-cached"));
	EXPECT_EQ(0, cache_hits(p));
	/* It is pinned once, and charged once, while it is kept and after. */
	EXPECT_EQ(p->pinned + (long)p->bytes, rp_pinned());
	EXPECT_EQ(-ENOENT, rp_destroy(p->c.fd, RPOST_OBJ_MR, old.handle));
	EXPECT_EQ(0, fdinfo_get(p->c.fd, "objects-mr"));

	ASSERT_EQ(0, cache_reg(p, &mr));
	EXPECT_EQ(1, cache_hits(p));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(1, fdinfo_get(p->c.fd, "objects-mr"));
	EXPECT_EQ(p->pinned + (long)p->bytes, rp_pinned());
	EXPECT_NE(old.handle, mr.handle);
	EXPECT_EQ(0, cache_move(p, &mr));
	EXPECT_EQ(-ENOENT, rp_destroy(p->c.fd, RPOST_OBJ_MR, old.handle));
	EXPECT_EQ(0, cache_dereg(p, &mr));
	EXPECT_EQ(1, cache_kept(p));
}

/*
 * A region that the cache keeps counts for the bound of its file's policy, and is given back
 * before a registration fails at that bound.
 */
TEST_F(mr_cache, policy)
{
	struct cache_pair *p = &self->p;
	struct rpost_set_policy cmd = {
		.size = sizeof(cmd),
		.rules = { .has = RPOST_POLICY_PINNED, .max_pinned = p->bytes },
	};
	struct rpost_get_policy now = { .size = sizeof(now) };
	struct rpost_reg_mr mr, other;

	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, rp_ioctl(p->c.fd, RPOST_IOC_SET_POLICY, &cmd));
	ASSERT_EQ(0, rp_ioctl(p->c.fd, RPOST_IOC_GET_POLICY, &now));
	EXPECT_EQ(p->bytes, now.pinned);
	ASSERT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, p->far, p->bytes, 0, &other));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(-ENOMEM, cache_reg(p, &mr));
	ASSERT_EQ(0, cache_dereg(p, &other));
	EXPECT_EQ(0, cache_reg(p, &mr));
}

/* A key is refused as soon as its region is deregistered, kept or not. */
TEST_F(mr_cache, key)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	struct rp_send send;
	struct rpost_wc wc;

	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, cache_reg(p, &mr));
	ASSERT_EQ(0, cache_dereg(p, &mr));
	ASSERT_EQ(1, cache_kept(p));
	send = cache_op(p, &mr, RPOST_WR_RDMA_WRITE);
	ASSERT_EQ(0, rp_post_send(&p->c, &send));
	ASSERT_EQ(1, rp_wait_cq(&p->c.cq, &wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(1, cache_kept(p));
}

/* A region that a work request names is really deregistered. */
TEST_F(mr_cache, in_use)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr, far;
	struct rp_send send;
	struct rpost_wc wc;

	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, cache_reg(p, &mr));
	EXPECT_EQ(1, cache_hits(p));
	ASSERT_EQ(0, rp_post_recv(&p->c, 5, p->mem, p->bytes, mr.lkey));
	ASSERT_EQ(0, cache_dereg(p, &mr));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(p->pinned, rp_pinned());

	/* What the peer sends does not come into the memory. */
	memset(p->mem, 1, p->bytes);
	memset(p->far, 2, p->bytes);
	ASSERT_EQ(0, rp_reg_mr(p->s.fd, p->s.pd, p->far, p->bytes, 0, &far));
	send = rp_send(RPOST_WR_SEND, 6, p->far, p->bytes, far.lkey);
	ASSERT_EQ(0, rp_post_send(&p->s, &send));
	ASSERT_EQ(1, rp_wait_cq(&p->c.cq, &wc));
	EXPECT_EQ(5, wc.wr_id);
	EXPECT_NE(RPOST_WC_SUCCESS, wc.status);
	EXPECT_EQ(1, p->mem[0]);
	EXPECT_EQ(1, p->mem[p->bytes - 1]);
}

/* The same with other work requests that have completed, or were refused. */
TEST_F(mr_cache, used_before)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	struct rp_send send;
	unsigned int n;

	ASSERT_EQ(0, cache_warm(p));
	for (n = 0; n < 20; n++) {
		ASSERT_EQ(0, cache_reg(p, &mr));
		EXPECT_EQ(n + 1, cache_hits(p));
		ASSERT_EQ(0, cache_move(p, &mr));
		/* Its opcode is wrong, and it takes no slot. */
		send = cache_op(p, &mr, 99);
		EXPECT_EQ(-EOPNOTSUPP, rp_post_send(&p->c, &send));
		ASSERT_EQ(0, cache_dereg(p, &mr));
		EXPECT_EQ(1, cache_kept(p));
	}
}

/* Only the same memory, access and iova in the same domain. */
TEST_F(mr_cache, other)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr = rp_mr(p->c.pd, p->mem, p->bytes, RPOST_ACCESS_LOCAL_WRITE);
	uint32_t pd;

	mr.iova = 1ull << 40;
	ASSERT_EQ(0, cache_warm(p));
	EXPECT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, p->mem, p->bytes, 0, &(struct rpost_reg_mr){}));
	EXPECT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, p->mem, p->bytes - 1,
			       RPOST_ACCESS_LOCAL_WRITE, &(struct rpost_reg_mr){}));
	EXPECT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, p->mem + 1, p->bytes - 1,
			       RPOST_ACCESS_LOCAL_WRITE, &(struct rpost_reg_mr){}));
	if (!rp_is_iwarp(p->c.fd, p->c.device)) {
		EXPECT_EQ(0, rp_ioctl(p->c.fd, RPOST_IOC_REG_MR, &mr));
	}
	ASSERT_EQ(0, rp_alloc_pd(p->c.fd, p->c.device, &pd));
	EXPECT_EQ(0, rp_reg_mr(p->c.fd, pd, p->mem, p->bytes,
			       RPOST_ACCESS_LOCAL_WRITE, &(struct rpost_reg_mr){}));
	EXPECT_EQ(0, cache_hits(p));
	EXPECT_EQ(1, cache_kept(p));
}

TEST_F(mr_cache, remote)
{
	static const uint32_t remote[] = {
		RPOST_ACCESS_REMOTE_READ,
		RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_LOCAL_WRITE,
		RPOST_ACCESS_REMOTE_ATOMIC | RPOST_ACCESS_LOCAL_WRITE,
	};
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(remote); i++) {
		for (n = 0; n < 4; n++) {
			ASSERT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, p->mem, p->bytes,
					       remote[i], &mr));
			ASSERT_EQ(0, cache_dereg(p, &mr));
			EXPECT_EQ(p->pinned, rp_pinned());
		}
	}
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(0, cache_hits(p));
}

/* A program, and the administrator, can switch it off. */
TEST_F(mr_cache, off)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	unsigned int n;

	for (n = 0; n < 4; n++) {
		ASSERT_EQ(0, cache_reg_flags(p, &mr, RPOST_MR_NO_CACHE));
		ASSERT_EQ(0, cache_dereg(p, &mr));
		EXPECT_EQ(p->pinned, rp_pinned());
	}
	/* It does not take what is kept either. */
	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, cache_reg_flags(p, &mr, RPOST_MR_NO_CACHE));
	ASSERT_EQ(0, cache_dereg(p, &mr));
	EXPECT_EQ(0, cache_hits(p));
	EXPECT_EQ(1, cache_kept(p));
	if (geteuid())
		SKIP(return, "only root sets parameters");

	ASSERT_EQ(0, rp_set_number("mr_cache_pages", 0));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(p->pinned, rp_pinned_soon(p->pinned));
	for (n = 0; n < 4; n++) {
		ASSERT_EQ(0, cache_reg(p, &mr));
		ASSERT_EQ(0, cache_dereg(p, &mr));
		EXPECT_EQ(p->pinned, rp_pinned());
	}
	ASSERT_EQ(0, rp_set_number("mr_cache_pages", CACHE_DEFAULT));
}

/* The domain and the file end as if nothing was kept. */
TEST_F(mr_cache, domain)
{
	struct cache_pair *p = &self->p;
	char *mem = rp_pages(p->bytes);
	struct rpost_reg_mr mr;
	unsigned int n;
	uint32_t pd;

	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, rp_alloc_pd(p->c.fd, p->c.device, &pd));
	for (n = 0; n < 2; n++) {
		ASSERT_EQ(0, rp_reg_mr(p->c.fd, pd, mem, p->bytes,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
		ASSERT_EQ(0, cache_dereg(p, &mr));
	}
	ASSERT_EQ(1, cache_kept(p));
	EXPECT_EQ(0, rp_destroy(p->c.fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(p->pinned, rp_pinned());
}

/* The limit of the user, and one region that is larger. */
TEST_F(mr_cache, limit)
{
	struct cache_pair *p = &self->p;
	size_t page = getpagesize();
	struct rpost_reg_mr mr;
	unsigned int i, n;

	if (geteuid())
		SKIP(return, "only root sets parameters");
	ASSERT_EQ(0, rp_set_number("mr_cache_pages", CACHE_PAGES - 1));
	for (n = 0; n < 3; n++) {
		ASSERT_EQ(0, cache_reg(p, &mr));
		ASSERT_EQ(0, cache_dereg(p, &mr));
		EXPECT_EQ(0, cache_kept(p));
		for (i = 0; i < CACHE_PAGES; i++) {
			ASSERT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, p->mem + i * page,
					       page, RPOST_ACCESS_LOCAL_WRITE, &mr));
			ASSERT_EQ(0, cache_dereg(p, &mr));
		}
		EXPECT_EQ(n ? CACHE_PAGES - 1 : 0, cache_kept(p));
		EXPECT_EQ(0, cache_hits(p));
		ASSERT_EQ(0, rp_set_number("mr_cache_pages", CACHE_PAGES - 1));
	}
	ASSERT_EQ(0, rp_set_number("mr_cache_pages", CACHE_DEFAULT));
}

/* Bytes that one process has kept: a fork would copy more. */
#define KEPT_BYTES	(16 << 20)

TEST_F(mr_cache, limit_of_a_process)
{
	const size_t bytes = KEPT_BYTES / 4;
	struct cache_pair *p = &self->p;
	char *mem = rp_pages(6 * bytes);
	struct rpost_reg_mr mr;
	unsigned int i;

	if (geteuid())
		SKIP(return, "only root locks so much memory");
	ASSERT_NE(NULL, mem);
	for (i = 0; i < 12; i++) {
		ASSERT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, mem + i / 2 * bytes, bytes,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
		ASSERT_EQ(0, cache_dereg(p, &mr));
		EXPECT_EQ(i / 2 + i % 2 < 4 ? i / 2 + i % 2 : 4, cache_kept(p));
	}
	/* The oldest has gone. */
	ASSERT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, mem, bytes, RPOST_ACCESS_LOCAL_WRITE, &mr));
	EXPECT_EQ(0, cache_hits(p));
	ASSERT_EQ(0, cache_dereg(p, &mr));
	/* One that is larger is not kept. */
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, mem, KEPT_BYTES + 4096,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
		ASSERT_EQ(0, cache_dereg(p, &mr));
		EXPECT_EQ(0, cache_hits(p));
	}
	munmap(mem, 6 * bytes);
}

/* ------------------------------------------------- memory that others need */

static char *map_at(void *addr, size_t bytes)
{
	char *mem = mmap(addr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | (addr ? MAP_FIXED : 0), -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

static int map_memfd_as(struct cache_pair *p, int flags)
{
	p->memfd = memfd_create("mr_cache", MFD_CLOEXEC);
	if (p->memfd < 0 || ftruncate(p->memfd, p->bytes))
		return -errno;
	return mmap(p->mem, p->bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED,
		    p->memfd, 0) == p->mem ? 0 : -errno;
}

/* Register the memory again and again; it is never kept. */
static int never_kept(struct cache_pair *p)
{
	struct rpost_reg_mr mr;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		RP_TRY(cache_reg(p, &mr));
		RP_TRY(cache_dereg(p, &mr));
		RP_TRY(cache_kept(p) || cache_hits(p));
		RP_TRY(rp_pinned() != p->pinned);
	}
	return 0;
}

/* A process that maps a shared page, or seals its file, would see that it is pinned. */
TEST_F(mr_cache, shared)
{
	struct cache_pair *p = &self->p;

	ASSERT_EQ(p->mem, mmap(p->mem, p->bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	EXPECT_EQ(0, never_kept(p));
	ASSERT_EQ(0, map_memfd_as(p, MAP_SHARED));
	EXPECT_EQ(0, never_kept(p));
	/* One shared page is enough. */
	ASSERT_NE(NULL, map_at(p->mem, p->bytes - getpagesize()));
	EXPECT_EQ(0, never_kept(p));
}

/* Huge pages are few: a fork and a new mapping need them. */
TEST_F(mr_cache, huge_tlb)
{
	const size_t huge = 2 << 20;
	struct cache_pair *p = &self->p;
	unsigned int i;
	pid_t pid;

	if (!huge_pages(1))
		SKIP(return, "no huge pages");
	p->bytes = huge;
	for (i = 0; i < 5; i++) {
		p->mem = mmap(NULL, huge, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
		ASSERT_NE(MAP_FAILED, p->mem);
		EXPECT_EQ(0, never_kept(p));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(0);
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		ASSERT_EQ(0, munmap(p->mem, huge));
	}
	EXPECT_TRUE(huge_pages(-1));
}

/* Threads differ in what a protection key lets them access. */
TEST_F(mr_cache, protection_key)
{
	struct cache_pair *p = &self->p;
	int key = pkey_alloc(0, 0);

	if (key < 0)
		SKIP(return, "no protection keys");
	EXPECT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, pkey_mprotect(p->mem, getpagesize(), PROT_READ | PROT_WRITE, key));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(p->pinned, rp_pinned_soon(p->pinned));
	EXPECT_EQ(0, never_kept(p));
	/* The memory keeps its key when the program gives the key up. */
	ASSERT_EQ(0, pkey_free(key));
	EXPECT_EQ(0, never_kept(p));
}

/* ------------------------------------------------- changes of the memory */

/* Returns 0, or 1 where the host cannot do it. */
typedef int cache_change(struct cache_pair *p);

static int change_unmap(struct cache_pair *p)
{
	return munmap(p->mem, p->bytes) || !map_at(p->mem, p->bytes) ? -errno : 0;
}

static int change_map_over(struct cache_pair *p)
{
	return map_at(p->mem, p->bytes) ? 0 : -errno;
}

static int change_one_page(struct cache_pair *p)
{
	size_t page = getpagesize();

	return map_at(p->mem + p->bytes - page, page) ? 0 : -errno;
}

static int change_move_away(struct cache_pair *p)
{
	char *to = map_at(NULL, p->bytes);

	if (mremap(p->mem, p->bytes, p->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) !=
	    to)
		return -errno;
	return map_at(p->mem, p->bytes) ? 0 : -errno;
}

static int change_move_here(struct cache_pair *p)
{
	char *from = map_at(NULL, p->bytes);

	memset(from, 7, p->bytes);
	return mremap(from, p->bytes, p->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		      p->mem) == p->mem ? 0 : -errno;
}

static int change_discard(struct cache_pair *p)
{
	return madvise(p->mem, p->bytes, MADV_DONTNEED) ? -errno : 0;
}

static int change_free(struct cache_pair *p)
{
	return madvise(p->mem, p->bytes, MADV_FREE) ? -errno : 0;
}

static int change_protect(struct cache_pair *p)
{
	return mprotect(p->mem, p->bytes, PROT_READ) ||
	       mprotect(p->mem, p->bytes, PROT_READ | PROT_WRITE) ? -errno : 0;
}

/* The child ends after the parent has written. */
static int change_fork(struct cache_pair *p)
{
	int pipes[2];
	pid_t pid;

	if (pipe(pipes))
		return -errno;
	pid = fork();
	if (!pid) {
		close(pipes[1]);
		_exit(read(pipes[0], &pid, 1));
	}
	close(pipes[0]);
	memset(p->mem, 3, p->bytes);
	close(pipes[1]);
	return waitpid(pid, NULL, 0) == pid ? 0 : -errno;
}

/* Memory of a file: it goes with the end of the file. */
static int map_memfd(struct cache_pair *p)
{
	return map_memfd_as(p, MAP_PRIVATE);
}

static int change_truncate(struct cache_pair *p)
{
	return ftruncate(p->memfd, 0) || ftruncate(p->memfd, p->bytes) ? -errno : 0;
}

static int change_write_protect(struct cache_pair *p)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uintptr_t)p->mem, p->bytes },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	struct uffdio_writeprotect wp = { .range = reg.range };
	int ret, fd;

	fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		return 1;
	wp.mode = UFFDIO_WRITEPROTECT_MODE_WP;
	ret = ioctl(fd, UFFDIO_WRITEPROTECT, &wp) ? -errno : 0;
	wp.mode = 0;
	if (!ret)
		ret = ioctl(fd, UFFDIO_WRITEPROTECT, &wp) ? -errno : 0;
	close(fd);
	return ret;
}

FIXTURE(mr_change) {
	struct cache_pair p;
};

FIXTURE_VARIANT(mr_change) {
	cache_change *prepare, *change;
};

#define CHANGE(name, before)						\
	FIXTURE_VARIANT_ADD(mr_change, name)				\
	{								\
		.prepare = before, .change = change_##name,		\
	}

CHANGE(unmap, NULL);
CHANGE(map_over, NULL);
CHANGE(one_page, NULL);
CHANGE(move_away, NULL);
CHANGE(move_here, NULL);
CHANGE(discard, NULL);
CHANGE(free, NULL);
CHANGE(protect, NULL);
CHANGE(fork, NULL);
CHANGE(truncate, map_memfd);
CHANGE(write_protect, NULL);

FIXTURE_SETUP(mr_change)
{
	ASSERT_EQ(0, cache_pair_init(&self->p, CACHE_PAGES));
	if (variant->prepare) {
		ASSERT_EQ(0, variant->prepare(&self->p));
	}
}

FIXTURE_TEARDOWN(mr_change)
{
	cache_pair_close(&self->p);
}

/* While it is kept. */
TEST_F(mr_change, kept)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	int ret;

	ASSERT_EQ(0, cache_warm(p));
	ret = variant->change(p);
	if (ret == 1)
		SKIP(return, "not on this host");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(p->pinned, rp_pinned_soon(p->pinned));
	ASSERT_EQ(0, cache_reg(p, &mr));
	EXPECT_EQ(0, cache_hits(p));
	EXPECT_EQ(0, cache_move(p, &mr));
	EXPECT_EQ(0, cache_dereg(p, &mr));
}

/* While it is registered: it is not kept then. */
TEST_F(mr_change, registered)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	int ret;

	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, cache_reg(p, &mr));
	EXPECT_EQ(1, cache_hits(p));
	ret = variant->change(p);
	if (ret == 1)
		SKIP(return, "not on this host");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, cache_dereg(p, &mr));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(p->pinned, rp_pinned());
	ASSERT_EQ(0, cache_reg(p, &mr));
	EXPECT_EQ(1, cache_hits(p));
	EXPECT_EQ(0, cache_move(p, &mr));
	EXPECT_EQ(0, cache_dereg(p, &mr));
}

/* What the kernel does on its own may end it or not; data are right. */
TEST_F(mr_cache, kernel)
{
	static const int advice[] = { MADV_PAGEOUT, MADV_MERGEABLE, MADV_COLD,
				      MADV_COLLAPSE, MADV_HUGEPAGE, MADV_NOHUGEPAGE };
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	unsigned int i, n;

	ASSERT_EQ(0, cache_warm(p));
	for (i = 0; i < ARRAY_SIZE(advice); i++) {
		for (n = 0; n < 2; n++) {
			madvise(p->mem, p->bytes, advice[i]);
			ASSERT_EQ(0, cache_reg(p, &mr));
			EXPECT_EQ(0, cache_move(p, &mr));
			ASSERT_EQ(0, cache_dereg(p, &mr));
		}
	}
}

#define KSM	"/sys/kernel/mm/ksm"

/* Equal pages of memory that is kept become one page of the kernel's. */
TEST_F(mr_cache, same_pages)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;

	if (geteuid() || rp_file_number(KSM "/run") || rp_file_number(KSM "/pages_shared"))
		SKIP(return, "no KSM, or somebody uses it, or not root");
	memset(p->mem, 5, p->bytes);
	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, madvise(p->mem, p->bytes, MADV_MERGEABLE));
	EXPECT_EQ(1, cache_kept(p));
	ASSERT_EQ(0, cg_put(KSM, "run", "1"));
	while (rp_file_number(KSM "/pages_sharing") < CACHE_PAGES - 1 && rp_now_ms() < end)
		usleep(1000);
	EXPECT_EQ(CACHE_PAGES - 1, rp_file_number(KSM "/pages_sharing"));
	EXPECT_EQ(0, cg_put(KSM, "run", "0"));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(0, cache_reg(p, &mr));
	EXPECT_EQ(0, cache_move(p, &mr));
	EXPECT_EQ(0, cache_dereg(p, &mr));
	/* Nothing stays merged. */
	EXPECT_EQ(0, cg_put(KSM, "run", "2"));
	EXPECT_EQ(0, cg_put(KSM, "run", "0"));
}

/* Huge pages that come together and are split. */
TEST_F(mr_cache, huge)
{
	struct cache_pair p;
	struct rpost_reg_mr mr;
	size_t huge = 2 << 20;
	unsigned int n;
	char *at;

	ASSERT_EQ(0, cache_pair_init(&p, 2 * huge / getpagesize()));
	at = (char *)(((uintptr_t)p.mem + huge - 1) & ~(huge - 1));
	p.bytes = huge;
	p.mem = at;
	madvise(at, huge, MADV_HUGEPAGE);
	memset(at, 1, huge);
	for (n = 0; n < 3; n++) {
		ASSERT_EQ(0, cache_warm(&p));
		madvise(at, huge, MADV_COLLAPSE);
		ASSERT_EQ(0, cache_reg(&p, &mr));
		EXPECT_EQ(0, cache_move(&p, &mr));
		ASSERT_EQ(0, cache_dereg(&p, &mr));
		/* This splits one. */
		ASSERT_NE(NULL, map_at(at + 4096, 4096));
		EXPECT_EQ(0, cache_kept(&p));
		ASSERT_EQ(0, cache_reg(&p, &mr));
		EXPECT_EQ(0, cache_move(&p, &mr));
		ASSERT_EQ(0, cache_dereg(&p, &mr));
	}
	close(p.c.fd);
	close(p.s.fd);
}

/* Memory that is not there, or not writable, any more. */
TEST_F(mr_cache, taken_away)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;

	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, mprotect(p->mem, getpagesize(), PROT_READ));
	EXPECT_EQ(-EFAULT, cache_reg(p, &mr));
	ASSERT_EQ(0, mprotect(p->mem, getpagesize(), PROT_READ | PROT_WRITE));
	ASSERT_EQ(0, cache_warm(p));
	ASSERT_EQ(0, munmap(p->mem, getpagesize()));
	EXPECT_EQ(-EFAULT, cache_reg(p, &mr));
	EXPECT_EQ(0, cache_kept(p));
}

/* ------------------------------------------------- processes */

/*
 * Have a child keep a region in the parent's file, and return its id.  Then it
 * waits, or executes a program that waits; its end of @pipes is closed then.
 */
static pid_t child_keeps(struct cache_pair *p, const int pipes[2], bool exec)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	CHILD_CHECK(!cache_warm(p));
	CHILD_CHECK(cache_kept(p) == 1);
	CHILD_CHECK(fcntl(p->c.fd, F_SETFD, 0) == 0);
	if (exec)
		execl("/proc/self/exe", "mr_cache", SLEEP, NULL);
	CHILD_CHECK(!close(pipes[0]) && !close(pipes[1]));
	pause();
	_exit(2);
}

/* Register and deregister memory at @addr. */
static int register_once(int fd, uint32_t pd, void *addr)
{
	struct rpost_reg_mr mr;

	if (mmap(addr, getpagesize(), PROT_READ | PROT_WRITE, MAP_PRIVATE |
		 MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != addr)
		return -errno;
	RP_TRY(rp_reg_mr(fd, pd, addr, getpagesize(), RPOST_ACCESS_LOCAL_WRITE, &mr));
	return rp_destroy(fd, RPOST_OBJ_MR, mr.handle);
}

/* The program that a child executes is this one. */
static void __attribute__((constructor(101))) child_program(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], SLEEP))
		return;
	if (argc == 5 && register_once(atoi(argv[2]), atoi(argv[3]),
				       (void *)strtoul(argv[4], NULL, 0)))
		_exit(3);
	close(STDIN_FILENO);
	pause();
	_exit(2);
}

/* Wait until the child has closed its end. */
static int wait_closed(const int pipes[2])
{
	char byte;

	close(pipes[1]);
	return read(pipes[0], &byte, 1);
}

static int wait_kept(struct cache_pair *p, int want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (cache_kept(p) != want) {
		if (rp_now_ms() > end)
			return -ETIME;
		usleep(1000);
	}
	return 0;
}

TEST_F(mr_cache, exit)
{
	struct cache_pair *p = &self->p;
	struct rpost_reg_mr mr;
	int pipes[2];
	pid_t pid;

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	pid = child_keeps(p, pipes, false);
	ASSERT_EQ(0, wait_closed(pipes));
	EXPECT_EQ(1, cache_kept(p));
	/* The parent has the same address, but other memory. */
	ASSERT_EQ(0, cache_reg(p, &mr));
	EXPECT_EQ(0, cache_hits(p));
	EXPECT_EQ(0, cache_move(p, &mr));
	ASSERT_EQ(0, cache_dereg(p, &mr));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, cache_kept(p));
	EXPECT_EQ(0, cache_wait_file_pinned(p, 0));
}

TEST_F(mr_cache, exec)
{
	struct cache_pair *p = &self->p;
	int pipes[2];
	pid_t pid;

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	pid = child_keeps(p, pipes, true);
	ASSERT_EQ(0, wait_closed(pipes));
	EXPECT_EQ(0, wait_kept(p, 0));
	EXPECT_EQ(0, cache_wait_file_pinned(p, 0));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

/*
 * The module remembers deregistered memory by a hash with the process's number in it.  With
 * the address of struct mm_struct in its place a program could find that address out, by
 * what the module forgets.  A process keeps its number, but not that address, when it
 * executes a program; so the module still knows the memory then.
 */
TEST_F(mr_cache, remembered_after_exec)
{
	const char *addr = "0x200000000";
	struct cache_pair *p = &self->p;
	char fd[16], pd[16];
	int pipes[2];
	pid_t pid;

	ASSERT_EQ(0, pipe2(pipes, O_CLOEXEC));
	snprintf(fd, sizeof(fd), "%d", p->c.fd);
	snprintf(pd, sizeof(pd), "%d", (int)p->c.pd);
	pid = fork();
	if (!pid) {
		/* The other program closes the end that is its standard input. */
		CHILD_CHECK(dup2(pipes[1], STDIN_FILENO) == STDIN_FILENO);
		CHILD_CHECK(fcntl(p->c.fd, F_SETFD, 0) == 0);
		CHILD_CHECK(!register_once(p->c.fd, p->c.pd,
					   (void *)strtoul(addr, NULL, 0)));
		CHILD_CHECK(!cache_kept(p));
		execl("/proc/self/exe", "mr_cache", SLEEP, fd, pd, addr, NULL);
		_exit(4);
	}
	ASSERT_EQ(0, wait_closed(pipes));
	EXPECT_EQ(1, cache_kept(p));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

/* ------------------------------------------------- limits */

/* Run @run as nobody with a limit of locked memory, in a new pair. */
static int as_nobody(size_t locked, int (*run)(struct cache_pair *p))
{
	struct rlimit limit = { locked, locked };
	struct cache_pair p;
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		CHILD_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
		CHILD_CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
		CHILD_CHECK(!cache_pair_init(&p, 2 * CACHE_PAGES));
		_exit(run(&p));
	}
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The limit is 2 * CACHE_PAGES, a quarter of which can be kept. */
static int child_memlock(struct cache_pair *p)
{
	size_t page = getpagesize(), i, n;
	struct rpost_reg_mr mr;

	for (n = 0; n < 2; n++) {
		for (i = 0; i < CACHE_PAGES; i++) {
			CHILD_CHECK(!rp_reg_mr(p->c.fd, p->c.pd, p->mem + i * page, page,
					       RPOST_ACCESS_LOCAL_WRITE, &mr));
			CHILD_CHECK(!cache_dereg(p, &mr));
		}
	}
	CHILD_CHECK(cache_kept(p) == CACHE_PAGES / 2);
	/* All that the limit allows can be registered at once. */
	CHILD_CHECK(!cache_reg(p, &mr));
	CHILD_CHECK(!cache_kept(p));
	CHILD_CHECK(rp_pinned() == (long)p->bytes);
	return 0;
}

TEST(memlock)
{
	if (geteuid())
		SKIP(return, "only root becomes another user");
	EXPECT_EQ(0, as_nobody(2 * CACHE_PAGES * getpagesize(), child_memlock));
}

/* A lower limit holds for what is kept, too. */
static int child_lower(struct cache_pair *p)
{
	struct rlimit limit = { 4096, 4096 };
	struct rpost_reg_mr mr;

	p->bytes = CACHE_PAGES / 2 * getpagesize();
	CHILD_CHECK(!cache_warm(p));
	CHILD_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	CHILD_CHECK(cache_reg(p, &mr) == -ENOMEM);
	return 0;
}

TEST(memlock_lower)
{
	if (geteuid())
		SKIP(return, "only root becomes another user");
	EXPECT_EQ(0, as_nobody(2 * CACHE_PAGES * getpagesize(), child_lower));
}

/* Fail at the limit of a process, again and again, with something kept each time. */
static void fail_again(int pipefd)
{
	struct rpost_reg_mr mr;
	struct cache_pair p;
	char byte;
	int i;

	CHILD_CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	CHILD_CHECK(!cache_pair_init(&p, 3 * CACHE_PAGES));
	CHILD_CHECK(read(pipefd, &byte, 1) == 1);
	p.bytes = CACHE_PAGES / 2 * getpagesize();
	for (i = 0; i < 5; i++) {
		CHILD_CHECK(!cache_warm(&p));
		CHILD_CHECK(rp_reg_mr(p.c.fd, p.c.pd, p.mem, 3 * CACHE_PAGES * getpagesize(),
				      0, &mr) == -ENOMEM);
		CHILD_CHECK(!cache_kept(&p));
	}
	_exit(0);
}

/* The region that this process has kept stays, although its neighbour fails. */
static int child_beside(struct cache_pair *p)
{
	int status, pipefd[2];
	pid_t pid;

	p->bytes = CACHE_PAGES / 2 * getpagesize();
	CHILD_CHECK(!pipe(pipefd));
	pid = fork();
	CHILD_CHECK(pid >= 0);
	if (!pid)
		fail_again(pipefd[0]);
	CHILD_CHECK(!cache_warm(p));
	CHILD_CHECK(write(pipefd[1], "x", 1) == 1);
	CHILD_CHECK(waitpid(pid, &status, 0) == pid && !status);
	CHILD_CHECK(cache_kept(p) == 1);
	return 0;
}

TEST(neighbour_at_its_limit)
{
	if (geteuid())
		SKIP(return, "only root becomes another user");
	EXPECT_EQ(0, as_nobody(2 * CACHE_PAGES * getpagesize(), child_beside));
}

#define FORK_PAGES	(192 << 20 >> 12)
#define FORK_KEPT	40
#define FORK_TRIES	10

/* What two processes, of different users, tell each other. */
struct two {
	int fd;			/* of the one that forks */
	volatile int turn;	/* of the one that waits */
};

/* Fork, slowly, beside many regions that are kept. */
static int child_forks(struct cache_pair *p, struct two *two)
{
	size_t page = getpagesize(), i;
	struct rpost_reg_mr mr;
	int turn, n;
	pid_t pid;

	two->fd = p->c.fd;
	for (turn = 1; turn <= FORK_TRIES; turn++) {
		for (i = 0; i < 2 * FORK_KEPT; i++) {
			CHILD_CHECK(!rp_reg_mr(p->c.fd, p->c.pd,
					       p->mem + i / 2 * 2 * page, page,
					       RPOST_ACCESS_LOCAL_WRITE, &mr));
			CHILD_CHECK(!cache_dereg(p, &mr));
		}
		CHILD_CHECK(cache_kept(p) == FORK_KEPT);
		two->turn = turn;
		pid = fork();
		if (!pid)
			_exit(0);
		CHILD_CHECK(pid > 0 && waitpid(pid, &n, 0) == pid);
		while (two->turn == turn)
			usleep(1000);
	}
	return 0;
}

/*
 * A notifier's removal waits for a fork of its process, but not for one of another
 * user's process.
 */
TEST_F(mr_cache, slow_fork)
{
	struct cache_pair *p = &self->p, other;
	char *text = malloc(FDINFO_BYTES);
	long long bytes = fdinfo_get(p->c.fd, "bytes-charged");
	struct two *two;
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long left = 0;
	int turn;
	pid_t pid;

	if (geteuid())
		SKIP(return, "only root becomes another user");
	ASSERT_NE(NULL, text);
	two = mmap(NULL, sizeof(*two), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, two);
	pid = fork();
	if (!pid) {
		CHILD_CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
		CHILD_CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		/* Fork copies an entry for each small page. */
		CHILD_CHECK(!prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
		CHILD_CHECK(!cache_pair_init(&other, FORK_PAGES));
		_exit(child_forks(&other, two));
	}
	for (turn = 1; turn <= FORK_TRIES && left <= FORK_KEPT / 2; turn++) {
		while (two->turn != turn && !waitpid(pid, NULL, WNOHANG))
			usleep(1000);
		ASSERT_EQ(turn, two->turn);
		ASSERT_EQ(0, cache_warm(p));
		do {
			ASSERT_LT(0, fdinfo_read_of(pid, two->fd, text));
		} while (fdinfo_number(text, "bytes-pinned") && rp_now_ms() < end);
		ASSERT_EQ(0, madvise(p->mem, p->bytes, MADV_DONTNEED));
		while (fdinfo_get(p->c.fd, "bytes-charged") != bytes && rp_now_ms() < end)
			sched_yield();
		left = rp_debug_number("objects", "watch");
		two->turn = 0;
	}
	/* Those of the other user's wait for the end of the fork. */
	EXPECT_LT(FORK_KEPT / 2, left);
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(pid, waitpid(pid, NULL, 0));
	free(text);
}

/* What is kept counts for the user's bytes, until somebody needs them. */
static int child_bytes(struct cache_pair *p)
{
	size_t page = getpagesize(), i, n;
	struct rpost_reg_mr mr;
	uint32_t pd;
	int ret;

	for (n = 0; n < 2; n++) {
		for (i = 0; i < CACHE_PAGES; i++) {
			CHILD_CHECK(!rp_reg_mr(p->c.fd, p->c.pd, p->mem + i * page, page,
					       RPOST_ACCESS_LOCAL_WRITE, &mr));
			CHILD_CHECK(!cache_dereg(p, &mr));
		}
	}
	CHILD_CHECK(cache_kept(p) == CACHE_PAGES);
	rp_mute = true;
	for (n = 0; n < 10000; n++) {
		ret = rp_alloc_pd(p->c.fd, p->c.device, &pd);
		if (ret)
			break;
	}
	CHILD_CHECK(ret == -ENOMEM);
	CHILD_CHECK(n > 8 && !cache_kept(p));
	return 0;
}

TEST(user_bytes)
{
	long bytes = rp_module_number("parameters/max_user_bytes");

	if (geteuid())
		SKIP(return, "only root becomes another user");
	ASSERT_EQ(0, rp_set_number("max_user_bytes", 1 << 20));
	EXPECT_EQ(0, as_nobody(64 * CACHE_PAGES * getpagesize(), child_bytes));
	ASSERT_EQ(0, rp_set_number("max_user_bytes", bytes));
}

/*
 * Have the kernel shrink its caches until @p keeps nothing; return the CPU time in
 * us, or a negative errno.
 */
static long drop_until_empty(struct cache_pair *p)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long begin = rp_cpu_us();

	while (cache_kept(p) && rp_now_ms() < end)
		RP_TRY(cg_put("/proc/sys/vm", "drop_caches", "2"));
	return cache_kept(p) ? -ETIME : rp_cpu_us() - begin;
}

/* The kernel takes back what is idle when it needs memory. */
TEST_F(mr_cache, shrink)
{
	struct cache_pair *p = &self->p;

	if (geteuid())
		SKIP(return, "only root drops caches");
	ASSERT_EQ(0, cache_warm(p));
	EXPECT_LE(0, drop_until_empty(p));
	EXPECT_EQ(p->pinned, rp_pinned_soon(p->pinned));
}

#define BUSY_PAGES	1000
#define IDLE_PAGES	(KEPT_BYTES >> 12)
#define SHRINK_TRIES	5

/* Fill the cache, and return the least time that it takes to have it emptied. */
static long shrink_us(struct cache_pair *p)
{
	long least = LONG_MAX, us;
	int i;

	/* A guest's CPU time includes the delays of a busy host. */
	for (i = 0; i < SHRINK_TRIES; i++) {
		RP_TRY(cache_warm(p));
		us = drop_until_empty(p);
		if (us < least)
			least = us;
	}
	return least;
}

/* Regions in use cost the shrinker little, however large the idle ones are. */
TEST_F(mr_cache, shrink_beside_many)
{
	struct cache_pair *p = &self->p, idle;
	size_t page = getpagesize(), i;
	struct rpost_reg_mr mr;
	char *busy = rp_pages(BUSY_PAGES * page);
	long few, many;
	int n;

	if (geteuid())
		SKIP(return, "only root drops caches");
	ASSERT_NE(NULL, busy);
	for (i = 0; i < BUSY_PAGES; i++) {
		for (n = 0; n < 2; n++) {
			if (n)
				ASSERT_EQ(0, cache_dereg(p, &mr));
			ASSERT_EQ(0, rp_reg_mr(p->c.fd, p->c.pd, busy + i * page, page,
					       RPOST_ACCESS_LOCAL_WRITE, &mr));
		}
	}
	few = shrink_us(p);
	ASSERT_EQ(0, cache_pair_init(&idle, IDLE_PAGES));
	many = shrink_us(&idle);
	TH_LOG("%d idle pages: %ld us, %d: %ld us", CACHE_PAGES, few, IDLE_PAGES, many);
	EXPECT_LT(0, few);
	EXPECT_LT(0, many);
	EXPECT_GE(4 * few, many);
	cache_pair_close(&idle);
}

/* A memory cgroup takes back what is idle of its own, and no more. */
TEST_F(mr_cache, cgroup)
{
	struct cache_pair *p = &self->p, own;
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	struct cgroup cg;
	int fd;

	if (geteuid() || !cg_has("memory"))
		SKIP(return, "no memory cgroup, or not root");
	ASSERT_EQ(0, cg_create(&cg, "cache"));
	fd = cg_open(cg.path, "memory.reclaim", O_WRONLY);
	if (fd >= 0) {
		ASSERT_EQ(0, cache_warm(p));
		ASSERT_EQ(0, cg_enter(&cg));
		ASSERT_EQ(0, cache_pair_init(&own, CACHE_PAGES));
		ASSERT_EQ(0, cache_warm(&own));
		/* The write fails if there is nothing else to reclaim. */
		while (cache_kept(&own) && rp_now_ms() < end) {
			if (write(fd, "1G", 2) < 0)
				ASSERT_EQ(EAGAIN, errno);
		}
		EXPECT_EQ(0, cache_kept(&own));
		EXPECT_EQ(1, cache_kept(p));
		EXPECT_EQ(0, cache_wait_file_pinned(&own, 0));
		ASSERT_EQ(0, cg_enter(NULL));
		cache_pair_close(&own);
		close(fd);
	}
	EXPECT_EQ(0, cg_remove(&cg));
	if (fd < 0)
		SKIP(return, "no memory.reclaim");
}

/* The shrinker finds a region that was kept in a memory cgroup that has gone. */
TEST_F(mr_cache, cgroup_gone)
{
	struct cache_pair own;
	struct cgroup cg;

	if (geteuid() || !cg_has("memory"))
		SKIP(return, "no memory cgroup, or not root");
	ASSERT_EQ(0, cg_create(&cg, "cache"));
	ASSERT_EQ(0, cg_enter(&cg));
	ASSERT_EQ(0, cache_pair_init(&own, CACHE_PAGES));
	ASSERT_EQ(0, cache_warm(&own));
	ASSERT_EQ(0, cg_enter(NULL));
	ASSERT_EQ(0, cg_remove(&cg));
	EXPECT_EQ(1, cache_kept(&own));
	EXPECT_LE(0, drop_until_empty(&own));
	cache_pair_close(&own);
}

/* Register as much again as is kept, with room for half of it. */
static int child_swap(const struct cgroup *cg)
{
	const size_t pages = CACHE_SWAP_PAGES / 2, bytes = pages * getpagesize();
	struct rpost_reg_mr mr;
	struct cache_pair p;
	char *other;

	CHILD_CHECK(!cg_enter(cg));
	CHILD_CHECK(!cache_pair_init(&p, pages));
	CHILD_CHECK(!cache_warm(&p));
	CHILD_CHECK(!cg_write(cg, "memory.max", "%lld", cg_memory(cg) + (long long)bytes / 2));
	other = rp_pages(bytes);
	CHILD_CHECK(other);
	memset(other, 2, bytes);
	/* Reclaim of 7.2 looks at statistics that may be two seconds old, but for this. */
	CHILD_CHECK(cg_number(cg, "memory.stat", "anon") > 0);
	CHILD_CHECK(!rp_reg_mr(p.c.fd, p.c.pd, other, bytes, RPOST_ACCESS_LOCAL_WRITE, &mr));
	CHILD_CHECK(!cache_kept(&p));
	return 0;
}

/*
 * A memory cgroup with swap takes idle regions back before the kernel kills a program
 * of the cgroup for want of memory.
 */
TEST(swap)
{
	struct cgroup cg;
	int status;
	pid_t pid;

	if (geteuid() || !cg_has("memory"))
		SKIP(return, "no memory cgroup, or not root");
	status = cache_swap_on();
	if (status == -ENOENT || status == -ENOSYS)
		SKIP(return, "nothing to swap to");
	ASSERT_EQ(0, status);
	EXPECT_EQ(0, cg_create(&cg, "swap"));
	pid = fork();
	if (!pid)
		_exit(child_swap(&cg));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, cache_swap_off());
	EXPECT_EQ(0, cg_remove(&cg));
}

TEST_HARNESS_MAIN
