// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a program harms only itself by what it does to the mapping of a
 * completion ring in use.  Completions must still arrive in another mapping of
 * the same ring, and nothing may be left once the program has exited.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#include "ring_map.h"

#define RACE_MS		300
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP	4
#endif

FIXTURE(ring) {
	struct ring_map r;
};

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, ring_map_init(&self->r));
}

FIXTURE_TEARDOWN(ring)
{
	EXPECT_EQ(0, ring_map_close(&self->r));
}

/* Return a number of /proc/self/status, or -1. */
static long status_kb(const char *name)
{
	FILE *f = fopen("/proc/self/status", "r");
	size_t len = strlen(name);
	char line[256];
	long kb = -1;

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, len) && line[len] == ':')
			kb = atol(line + len + 1);
	}
	if (f)
		fclose(f);
	return kb;
}

/* ----------------------------------------------- offsets, sizes, rights */

TEST_F(ring, offsets)
{
	const size_t page = self->r.page, size = self->r.size;
	struct rp_end *c = &self->r.c;
	const uint64_t handle = c->cq.cmd.handle;
	const uint32_t others[] = { 0, c->pd, c->qp, c->id, handle + 1000,
				    INT32_MAX, UINT32_MAX };
	struct rpost_reg_mr mr;
	uint64_t offset;
	unsigned int i;
	int ret;

	EXPECT_EQ(0, try_map(c->fd, self->r.offset, size, RW, MAP_SHARED));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		EXPECT_EQ(-ENOENT, try_map(c->fd, (uint64_t)others[i] * page,
					   size, RW, MAP_SHARED))
			TH_LOG("handle %u", others[i]);
	}
	ASSERT_EQ(0, rp_reg_mr(c->fd, c->pd, rp_pages(page), page, 0, &mr));
	EXPECT_EQ(-ENOENT, try_map(c->fd, (uint64_t)mr.handle * page, size, RW,
				   MAP_SHARED));
	/* Bits above those of a handle, then bits below a page. */
	for (offset = 1ull << 44; offset; offset <<= 1) {
		ret = try_map(c->fd, self->r.offset | offset, size, RW,
			      MAP_SHARED);
		EXPECT_TRUE(ret == -EINVAL || ret == -EOVERFLOW)
			TH_LOG("%#llx: %d", (long long)offset, ret);
	}
	for (offset = 1; offset < page; offset <<= 1) {
		EXPECT_EQ(-EINVAL, try_map(c->fd, self->r.offset + offset, size,
					   RW, MAP_SHARED));
	}
	ret = try_map(c->fd, -(uint64_t)page, size, RW, MAP_SHARED);
	EXPECT_TRUE(ret == -EINVAL || ret == -EOVERFLOW);
	EXPECT_EQ(0, works(&self->r));
}

/* A handle is valid in its own open file only, until its queue is destroyed. */
TEST_F(ring, foreign_and_destroyed)
{
	struct rp_end *c = &self->r.c;
	int other = rp_open(), channel;
	struct rp_cq cq;

	ASSERT_LE(0, other);
	EXPECT_EQ(-ENOENT, try_map(other, self->r.offset, self->r.size, RW,
				   MAP_SHARED));
	close(other);

	ASSERT_EQ(0, rp_create_cq(c->fd, c->device, c->cq.cmd.cqe, -1, &cq));
	EXPECT_EQ(0, try_map(c->fd, cq.cmd.mmap_offset, self->r.size, RW,
			     MAP_SHARED));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_CQ, cq.cmd.handle));
	EXPECT_EQ(-ENOENT, try_map(c->fd, cq.cmd.mmap_offset, self->r.size, RW,
				   MAP_SHARED));
	rp_unmap_cq(&cq);

	/* Channels have no memory to map. */
	EXPECT_EQ(-ENODEV, try_map(c->channel, self->r.offset, self->r.size,
				   PROT_READ, MAP_SHARED));
	channel = rp_comp_channel(c->fd);
	EXPECT_EQ(-ENODEV, try_map(channel, self->r.offset, self->r.size,
				   PROT_READ, MAP_SHARED));
	close(channel);
}

TEST_F(ring, sizes)
{
	const size_t page = self->r.page, size = self->r.size;
	const int fd = self->r.c.fd;
	size_t bytes;
	int ret;

	for (bytes = 0; bytes < 4 * size; bytes += page) {
		EXPECT_EQ(bytes == size ? 0 : -EINVAL,
			  try_map(fd, self->r.offset, bytes, RW, MAP_SHARED))
			TH_LOG("%zu bytes", bytes);
	}
	/* mmap() rounds the size up to a page. */
	EXPECT_EQ(0, try_map(fd, self->r.offset, size - 1, RW, MAP_SHARED));
	EXPECT_EQ(0, try_map(fd, self->r.offset, size - page + 1, RW,
			     MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(fd, self->r.offset, size - page, RW,
				   MAP_SHARED));
	for (bytes = 1ul << 24; bytes; bytes <<= 1) {
		ret = try_map(fd, self->r.offset, bytes, RW, MAP_SHARED);
		EXPECT_TRUE(ret == -EINVAL || ret == -ENOMEM)
			TH_LOG("%#zx bytes: %d", bytes, ret);
	}
	ret = try_map(fd, self->r.offset, SIZE_MAX & ~(page - 1), RW, MAP_SHARED);
	EXPECT_EQ(-ENOMEM, ret);
}

TEST_F(ring, protections)
{
	const uint64_t offset = self->r.offset;
	const size_t size = self->r.size;
	const int fd = self->r.c.fd;
	int prot;

	for (prot = 0; prot < 8; prot++) {
		EXPECT_EQ(prot & PROT_EXEC ? -EACCES : 0,
			  try_map(fd, offset, size, prot, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(fd, offset, size, prot,
					   MAP_PRIVATE));
		/* mprotect() must not make a mapping executable, either. */
		if (prot & PROT_EXEC) {
			EXPECT_EQ(-1, mprotect(self->r.ring, size, prot));
			EXPECT_EQ(EACCES, errno);
		} else {
			EXPECT_EQ(0, mprotect(self->r.ring, size, prot));
		}
		EXPECT_EQ(0, works(&self->r));
	}
	EXPECT_EQ(0, try_map(fd, offset, size, RW, MAP_SHARED_VALIDATE));
	EXPECT_EQ(-EOPNOTSUPP, try_map(fd, offset, size, RW,
				       MAP_SHARED_VALIDATE | MAP_SYNC));
	EXPECT_EQ(-EINVAL, try_map(fd, offset, size, RW, 0));
	EXPECT_EQ(-EINVAL, try_map(fd, offset, size, RW,
				   MAP_SHARED | MAP_HUGETLB));
	EXPECT_EQ(0, try_map(fd, offset, size, RW, MAP_SHARED | MAP_POPULATE |
			     MAP_LOCKED | MAP_NORESERVE | MAP_STACK));
	/* Map the ring over its own mapping. */
	EXPECT_EQ(self->r.ring, mmap(self->r.ring, size, RW, MAP_SHARED | MAP_FIXED,
				   fd, offset));
	EXPECT_EQ(0, works(&self->r));
}

/* True if there is a mapping at @p and it is executable. */
static bool executable(void *p)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	bool found = false;
	char rights[5];
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 &&
		    start <= (uintptr_t)p && (uintptr_t)p < end)
			found = rights[2] == 'x';
	}
	if (f)
		fclose(f);
	return found;
}

/* A ring cannot be mapped if all readable memory must be executable. */
TEST_F(ring, read_implies_exec)
{
	int old = personality(0xffffffff);

	ASSERT_NE(-1, personality(old | READ_IMPLIES_EXEC));
	EXPECT_EQ(-EACCES, try_map(self->r.c.fd, self->r.offset, self->r.size,
				   PROT_READ, MAP_SHARED));
	/* In a mapping that exists, PROT_READ does not imply PROT_EXEC. */
	EXPECT_EQ(0, mprotect(self->r.ring, self->r.size, RW));
	EXPECT_FALSE(executable(self->r.ring));
	EXPECT_EQ(-1, mprotect(self->r.ring, self->r.size, RW | PROT_EXEC));
	personality(old);
	EXPECT_EQ(0, works(&self->r));
}

/* The file must be open for reading and writing to map a ring. */
TEST_F(ring, rights_of_the_open_file)
{
	const int modes[] = { O_RDONLY, O_WRONLY };
	struct rp_cq cq;
	unsigned int i;
	int fd;

	for (i = 0; i < 2; i++) {
		fd = open(RPOST_DEVICE_PATH, modes[i] | O_CLOEXEC);
		ASSERT_LE(0, fd);
		EXPECT_EQ(-EACCES, rp_create_cq(fd, rp_first_device(fd), 16,
						-1, &cq));
		EXPECT_LT(0, cq.cmd.mmap_size);
		EXPECT_EQ(modes[i] == O_RDONLY ? -EINVAL : -EACCES,
			  try_map(fd, cq.cmd.mmap_offset, cq.cmd.mmap_size,
				  PROT_READ, MAP_SHARED));
		EXPECT_EQ(modes[i] == O_RDONLY ? -EINVAL : -EACCES,
			  try_map(fd, cq.cmd.mmap_offset, cq.cmd.mmap_size,
				  PROT_READ, MAP_PRIVATE));
		close(fd);
	}
}

/* ------------------------------------------- moved, cut and thrown away */

TEST_F(ring, mremap_grow)
{
	const size_t size = self->r.size, page = self->r.page;
	size_t more;

	for (more = page; more <= 4 * size; more *= 2) {
		EXPECT_EQ(MAP_FAILED, mremap(self->r.ring, size, size + more, 0));
		EXPECT_EQ(MAP_FAILED, mremap(self->r.ring, size, size + more,
					     MREMAP_MAYMOVE));
		EXPECT_EQ(MAP_FAILED, mremap(self->r.ring + page, page,
					     page + more, MREMAP_MAYMOVE));
	}
	/* A shared mapping cannot be duplicated by an old size of 0. */
	EXPECT_EQ(MAP_FAILED, mremap(self->r.ring, 0, size, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(self->r.ring, size, size,
				     MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
	EXPECT_EQ(0, works(&self->r));
}

TEST_F(ring, mremap_move)
{
	char *to = rp_pages(self->r.size), *p = self->r.ring;
	unsigned int i;

	ASSERT_NE(NULL, to);
	p = mremap(p, self->r.size, self->r.size, MREMAP_MAYMOVE | MREMAP_FIXED,
		   to);
	ASSERT_EQ(to, p);
	EXPECT_FALSE(mapped(self->r.ring, self->r.page));
	ASSERT_EQ(0, works(&self->r));
	EXPECT_EQ(0, memcmp(to, self->r.c.cq.ring, self->r.size));

	/* Move page by page into another order. */
	p = rp_pages(self->r.size);
	ASSERT_NE(NULL, p);
	for (i = 0; i < self->r.size / self->r.page; i++) {
		ASSERT_EQ(p + self->r.size - (i + 1) * self->r.page,
			  mremap(to + i * self->r.page, self->r.page, self->r.page,
				 MREMAP_MAYMOVE | MREMAP_FIXED,
				 p + self->r.size - (i + 1) * self->r.page));
	}
	ASSERT_EQ(0, works(&self->r));
	EXPECT_EQ(0, memcmp(p + self->r.size - self->r.page, self->r.c.cq.ring,
			    self->r.page));
	EXPECT_EQ(0, munmap(p, self->r.size));
}

TEST_F(ring, shrink)
{
	const size_t page = self->r.page;
	size_t size;

	for (size = self->r.size - page; size >= page; size -= page) {
		ASSERT_EQ(self->r.ring, mremap(self->r.ring, size + page, size, 0));
		EXPECT_FALSE(mapped(self->r.ring + size, page));
		EXPECT_TRUE(mapped(self->r.ring, size));
		EXPECT_EQ(0, works(&self->r));
	}
	EXPECT_EQ(0, memcmp(self->r.ring, self->r.c.cq.ring, page));
}

TEST_F(ring, munmap_part)
{
	const size_t page = self->r.page;
	unsigned int i;

	/* Unmap one page, then every other page, then the rest. */
	ASSERT_EQ(0, munmap(self->r.ring + 2 * page, page));
	EXPECT_EQ(0, works(&self->r));
	EXPECT_EQ(0, memcmp(self->r.ring, self->r.c.cq.ring, 2 * page));
	EXPECT_EQ(0, memcmp(self->r.ring + 3 * page,
			    (char *)self->r.c.cq.ring + 3 * page, page));
	for (i = 0; i < self->r.size / page; i += 2) {
		ASSERT_EQ(0, munmap(self->r.ring + i * page, page));
	}
	EXPECT_EQ(0, works(&self->r));
	ASSERT_EQ(0, munmap(self->r.ring, self->r.size));
	/* Fill every entry of the ring once and wrap around. */
	EXPECT_EQ(0, works_for(&self->r, self->r.c.cq.cmd.cqe + 2));
}

/* Completions still arrive while the ring is not mapped at all. */
TEST_F(ring, munmap_all_in_use)
{
	struct rp_send send = rp_empty_send(RPOST_WR_RDMA_WRITE, 0);
	struct rp_cq *cq = &self->r.c.cq;
	struct rpost_wc wc;
	uint64_t i;

	ASSERT_EQ(0, works(&self->r));
	ASSERT_EQ(0, munmap(self->r.ring, self->r.size));
	rp_unmap_cq(cq);
	for (i = 0; i < 10; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->r.c, &send));
	}
	cq->ring = map(cq->fd, self->r.offset, self->r.size, RW, MAP_SHARED);
	ASSERT_NE(MAP_FAILED, (void *)cq->ring);
	cq->wcs = (void *)((char *)cq->ring + cq->cmd.entries_offset);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, rp_wait_cq(cq, &wc));
		EXPECT_EQ(i, wc.wr_id);
	}
}

static sigjmp_buf jump;

static void on_signal(int sig)
{
	siglongjmp(jump, sig);
}

/* Write a byte; return 0, or the signal that this raised. */
static int touch(volatile char *p)
{
	struct sigaction sa = { .sa_handler = on_signal }, bus, segv;
	int sig;

	sigaction(SIGBUS, &sa, &bus);
	sigaction(SIGSEGV, &sa, &segv);
	sig = sigsetjmp(jump, 1);
	if (!sig)
		*p = *p;
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return sig;
}

/* Pages that MADV_DONTNEED discards are not mapped again by a fault. */
TEST_F(ring, dontneed)
{
	ASSERT_EQ(0, touch(self->r.ring));
	ASSERT_EQ(0, madvise(self->r.ring, self->r.size, MADV_DONTNEED));
	EXPECT_EQ(SIGBUS, touch(self->r.ring));
	EXPECT_EQ(SIGBUS, touch(self->r.ring + self->r.size - 1));
	EXPECT_EQ(-1, madvise(self->r.ring, self->r.size, 23));
	EXPECT_EQ(0, works(&self->r));
	/* A command struct at that address is EFAULT for the kernel, too. */
	EXPECT_EQ(-EFAULT, rp_ioctl(self->r.c.fd, RPOST_IOC_POLL_CQ, self->r.ring));
	ASSERT_EQ(self->r.ring, mmap(self->r.ring, self->r.size, RW,
				   MAP_SHARED | MAP_FIXED, self->r.c.fd,
				   self->r.offset));
	EXPECT_EQ(0, memcmp(self->r.ring, self->r.c.cq.ring, self->r.size));
}

/* Some advice is refused; none may disturb completions. */
TEST_F(ring, every_advice)
{
	int advice;

	for (advice = 0; advice < 128; advice++) {
		/* Neither MADV_HWPOISON nor MADV_SOFT_OFFLINE. */
		if (advice == MADV_HWPOISON || advice == 101)
			continue;
		madvise(self->r.ring, self->r.size, advice);
		madvise(self->r.ring + self->r.page, 2 * self->r.page, advice);
		ASSERT_EQ(0, works(&self->r)) TH_LOG("advice %d", advice);
	}
	/* A ring is never part of a core dump. */
	EXPECT_EQ(-1, madvise(self->r.ring, self->r.size, MADV_DODUMP));
	EXPECT_EQ(EINVAL, errno);
}

/* The ring is not the program's memory, so it does not count as locked. */
TEST_F(ring, locked)
{
	long before = status_kb("VmLck");

	ASSERT_LE(0, before);
	EXPECT_EQ(0, mlock(self->r.ring, self->r.size));
	EXPECT_EQ(before, status_kb("VmLck"));
	EXPECT_EQ(0, munlock(self->r.ring, self->r.size));
	ASSERT_EQ(0, mlockall(MCL_CURRENT | MCL_FUTURE));
	before = status_kb("VmLck");
	EXPECT_EQ(0, try_map(self->r.c.fd, self->r.offset, self->r.size, RW,
			     MAP_SHARED));
	EXPECT_EQ(0, munmap(self->r.ring, self->r.size));
	EXPECT_EQ(before, status_kb("VmLck"));
	EXPECT_EQ(0, works(&self->r));
	munlockall();
	EXPECT_EQ(0, status_kb("VmLck"));
}

/* Replace the mapping in place: by another ring, by no ring, by a part. */
TEST_F(ring, remap_file_pages)
{
#ifdef SYS_remap_file_pages
	uint64_t handle = self->r.offset / self->r.page;
	struct rp_cq cq;

	ASSERT_EQ(0, rp_create_cq(self->r.c.fd, self->r.c.device,
				  self->r.c.cq.cmd.cqe, -1, &cq));
	ASSERT_EQ(self->r.size, cq.cmd.mmap_size);
	EXPECT_EQ(0, syscall(SYS_remap_file_pages, self->r.ring, self->r.size, 0,
			     (long)cq.cmd.handle, 0));
	cq.ring->head = 0x5a5a5a5a;
	EXPECT_EQ(0x5a5a5a5a, ((struct rpost_ring *)self->r.ring)->head);
	EXPECT_EQ(0, works(&self->r));
	EXPECT_EQ(-1, syscall(SYS_remap_file_pages, self->r.ring + self->r.page,
			      self->r.page, 0, (long)handle, 0));
	EXPECT_EQ(-1, syscall(SYS_remap_file_pages, self->r.ring, self->r.page, 0,
			      0l, 0));
	EXPECT_EQ(0, works(&self->r));
	rp_unmap_cq(&cq);
#else
	SKIP(return, "no such call on this machine");
#endif
}

TEST_F(ring, many)
{
	enum { N = 300 };
	char **maps = calloc(N, sizeof(*maps));
	struct rpost_ring *ring;
	int i;

	ASSERT_NE(NULL, maps);
	for (i = 0; i < N; i++) {
		maps[i] = map(self->r.c.fd, self->r.offset, self->r.size,
			      i % 3 ? RW : PROT_READ, MAP_SHARED);
		ASSERT_NE(MAP_FAILED, (void *)maps[i]);
	}
	ASSERT_EQ(0, works(&self->r));
	for (i = 0; i < N; i += 97) {
		EXPECT_EQ(0, memcmp(maps[i], self->r.c.cq.ring, self->r.size));
	}
	ASSERT_EQ(0, rp_destroy(self->r.c.fd, RPOST_OBJ_QP, self->r.c.qp));
	ASSERT_EQ(0, rp_destroy(self->r.c.fd, RPOST_OBJ_CQ,
				self->r.c.cq.cmd.handle));
	/* The queue is destroyed; only mappings keep its pages. */
	ring = (void *)maps[N - 1];
	ring->head = 0x600df00d;
	for (i = 0; i < N; i++) {
		EXPECT_EQ(0x600df00d, ((struct rpost_ring *)maps[i])->head);
		EXPECT_EQ(0, munmap(maps[i], self->r.size));
	}
	free(maps);
}

/* ------------------------------------------------------------- all at once */

struct attack {
	FIXTURE_DATA(ring) *self;
	char *place;		/* reserved for this thread */
	unsigned long rounds;
	int wrong;
	bool stop;
};

/* Map, change and unmap the ring; some calls are refused. */
static int attack_once(struct attack *a, unsigned long i)
{
	FIXTURE_DATA(ring) *self = a->self;
	char *p = mmap(a->place, self->r.size, RW, MAP_SHARED | MAP_FIXED,
		       self->r.c.fd, self->r.offset);

	if (p == MAP_FAILED)
		return -errno;
	/* An atomic add of 0 writes without changing what the test reads. */
	__atomic_fetch_add(&p[i * 8 % self->r.size], 0, __ATOMIC_RELAXED);
	mprotect(p + i % 5 * self->r.page, self->r.page, PROT_READ);
	madvise(p + i % 4 * self->r.page, self->r.page, MADV_DONTNEED);
	mremap(p, self->r.page, 2 * self->r.page, 0);
	if (i % 2)
		munmap(p + i % 3 * self->r.page, self->r.page);
	else
		mprotect(p, self->r.size, PROT_NONE);
	if (mmap(p, self->r.size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		return -errno;
	return 0;
}

static void *attack(void *arg)
{
	struct attack *a = arg;

	while (!__atomic_load_n(&a->stop, __ATOMIC_RELAXED) && !a->wrong) {
		a->wrong = attack_once(a, a->rounds);
		__atomic_fetch_add(&a->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static unsigned long rounds(const struct attack *a)
{
	return __atomic_load_n(&a->rounds, __ATOMIC_RELAXED);
}

TEST_F(ring, under_traffic)
{
	uint64_t end = rp_now_ms() + RACE_MS, last = end + TEST_CHANCE_MS;
	struct attack a[2] = { 0 };
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++) {
		a[i].self = self;
		a[i].place = rp_pages(self->r.size);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, attack, &a[i]));
	}
	while (rp_now_ms() < end ||
	       ((rounds(&a[0]) < 20 || !rounds(&a[1])) && rp_now_ms() < last)) {
		ASSERT_EQ(0, works(&self->r));
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&a[i].stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, a[i].wrong);
		EXPECT_LT(0, a[i].rounds);
	}
	EXPECT_EQ(0, works(&self->r));
}

TEST_HARNESS_MAIN
