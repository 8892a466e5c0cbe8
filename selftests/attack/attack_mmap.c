// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Everything that a program can do to the mapping of a completion ring in use.
 * It harms at most itself: completions go on, as another mapping of the same
 * ring shows, and nothing is left when the program is gone.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/syscall.h>

#include "attack_ring.h"

#define RACE_MS		300
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP	4
#endif

/* A number of /proc/self/status, or -1. */
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
	const size_t page = self->page, size = self->size;
	struct rp_end *c = &self->c;
	const uint64_t handle = c->cq.cmd.handle;
	const uint32_t others[] = { 0, c->pd, c->qp, c->id, handle + 1000,
				    INT32_MAX, UINT32_MAX };
	struct rpost_reg_mr mr;
	uint64_t offset;
	unsigned int i;
	int ret;

	EXPECT_EQ(0, try_map(c->fd, self->offset, size, RW, MAP_SHARED));
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		EXPECT_EQ(-ENOENT, try_map(c->fd, (uint64_t)others[i] * page,
					   size, RW, MAP_SHARED))
			TH_LOG("handle %u", others[i]);
	}
	ASSERT_EQ(0, rp_reg_mr(c->fd, c->pd, rp_pages(page), page, 0, &mr));
	EXPECT_EQ(-ENOENT, try_map(c->fd, (uint64_t)mr.handle * page, size, RW,
				   MAP_SHARED));
	/* Bits above those of a handle, and in a page. */
	for (offset = 1ull << 44; offset; offset <<= 1) {
		ret = try_map(c->fd, self->offset | offset, size, RW,
			      MAP_SHARED);
		EXPECT_TRUE(ret == -EINVAL || ret == -EOVERFLOW)
			TH_LOG("%#llx: %d", (long long)offset, ret);
	}
	for (offset = 1; offset < page; offset <<= 1) {
		EXPECT_EQ(-EINVAL, try_map(c->fd, self->offset + offset, size,
					   RW, MAP_SHARED));
	}
	ret = try_map(c->fd, -(uint64_t)page, size, RW, MAP_SHARED);
	EXPECT_TRUE(ret == -EINVAL || ret == -EOVERFLOW);
	EXPECT_EQ(0, works(self));
}

/* A handle is of one open file, the queue's, and as long as it lives. */
TEST_F(ring, foreign_and_destroyed)
{
	struct rp_end *c = &self->c;
	int other = rp_open(), channel;
	struct rp_cq cq;

	ASSERT_LE(0, other);
	EXPECT_EQ(-ENOENT, try_map(other, self->offset, self->size, RW,
				   MAP_SHARED));
	close(other);

	ASSERT_EQ(0, rp_create_cq(c->fd, c->device, c->cq.cmd.cqe, -1, &cq));
	EXPECT_EQ(0, try_map(c->fd, cq.cmd.mmap_offset, self->size, RW,
			     MAP_SHARED));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_CQ, cq.cmd.handle));
	EXPECT_EQ(-ENOENT, try_map(c->fd, cq.cmd.mmap_offset, self->size, RW,
				   MAP_SHARED));
	rp_unmap_cq(&cq);

	/* Channels are files without memory. */
	EXPECT_EQ(-ENODEV, try_map(c->channel, self->offset, self->size,
				   PROT_READ, MAP_SHARED));
	channel = rp_comp_channel(c->fd);
	EXPECT_EQ(-ENODEV, try_map(channel, self->offset, self->size,
				   PROT_READ, MAP_SHARED));
	close(channel);
}

TEST_F(ring, sizes)
{
	const size_t page = self->page, size = self->size;
	const int fd = self->c.fd;
	size_t bytes;
	int ret;

	for (bytes = 0; bytes < 4 * size; bytes += page) {
		EXPECT_EQ(bytes == size ? 0 : -EINVAL,
			  try_map(fd, self->offset, bytes, RW, MAP_SHARED))
			TH_LOG("%zu bytes", bytes);
	}
	/* mmap() itself rounds up. */
	EXPECT_EQ(0, try_map(fd, self->offset, size - 1, RW, MAP_SHARED));
	EXPECT_EQ(0, try_map(fd, self->offset, size - page + 1, RW,
			     MAP_SHARED));
	EXPECT_EQ(-EINVAL, try_map(fd, self->offset, size - page, RW,
				   MAP_SHARED));
	for (bytes = 1ul << 24; bytes; bytes <<= 1) {
		ret = try_map(fd, self->offset, bytes, RW, MAP_SHARED);
		EXPECT_TRUE(ret == -EINVAL || ret == -ENOMEM)
			TH_LOG("%#zx bytes: %d", bytes, ret);
	}
	ret = try_map(fd, self->offset, SIZE_MAX & ~(page - 1), RW, MAP_SHARED);
	EXPECT_EQ(-ENOMEM, ret);
}

TEST_F(ring, protections)
{
	const uint64_t offset = self->offset;
	const size_t size = self->size;
	const int fd = self->c.fd;
	int prot;

	for (prot = 0; prot < 8; prot++) {
		EXPECT_EQ(prot & PROT_EXEC ? -EACCES : 0,
			  try_map(fd, offset, size, prot, MAP_SHARED));
		EXPECT_EQ(-EINVAL, try_map(fd, offset, size, prot,
					   MAP_PRIVATE));
		/* Nor later, whatever it is now. */
		if (prot & PROT_EXEC) {
			EXPECT_EQ(-1, mprotect(self->ring, size, prot));
			EXPECT_EQ(EACCES, errno);
		} else {
			EXPECT_EQ(0, mprotect(self->ring, size, prot));
		}
		EXPECT_EQ(0, works(self));
	}
	EXPECT_EQ(0, try_map(fd, offset, size, RW, MAP_SHARED_VALIDATE));
	EXPECT_EQ(-EOPNOTSUPP, try_map(fd, offset, size, RW,
				       MAP_SHARED_VALIDATE | MAP_SYNC));
	EXPECT_EQ(-EINVAL, try_map(fd, offset, size, RW, 0));
	EXPECT_EQ(-EINVAL, try_map(fd, offset, size, RW,
				   MAP_SHARED | MAP_HUGETLB));
	EXPECT_EQ(0, try_map(fd, offset, size, RW, MAP_SHARED | MAP_POPULATE |
			     MAP_LOCKED | MAP_NORESERVE | MAP_STACK));
	/* In place of itself. */
	EXPECT_EQ(self->ring, mmap(self->ring, size, RW, MAP_SHARED | MAP_FIXED,
				   fd, offset));
	EXPECT_EQ(0, works(self));
}

/* Is there a mapping at an address, and may it be executed? */
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

/* Where all that can be read can be executed, a ring is not mapped. */
TEST_F(ring, read_implies_exec)
{
	int old = personality(0xffffffff);

	ASSERT_NE(-1, personality(old | READ_IMPLIES_EXEC));
	EXPECT_EQ(-EACCES, try_map(self->c.fd, self->offset, self->size,
				   PROT_READ, MAP_SHARED));
	/* Where it is mapped already, that reading implies nothing. */
	EXPECT_EQ(0, mprotect(self->ring, self->size, RW));
	EXPECT_FALSE(executable(self->ring));
	EXPECT_EQ(-1, mprotect(self->ring, self->size, RW | PROT_EXEC));
	personality(old);
	EXPECT_EQ(0, works(self));
}

/* The ring is for both, and so must the file be. */
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
	const size_t size = self->size, page = self->page;
	size_t more;

	for (more = page; more <= 4 * size; more *= 2) {
		EXPECT_EQ(MAP_FAILED, mremap(self->ring, size, size + more, 0));
		EXPECT_EQ(MAP_FAILED, mremap(self->ring, size, size + more,
					     MREMAP_MAYMOVE));
		EXPECT_EQ(MAP_FAILED, mremap(self->ring + page, page,
					     page + more, MREMAP_MAYMOVE));
	}
	/* No second mapping of a shared one either. */
	EXPECT_EQ(MAP_FAILED, mremap(self->ring, 0, size, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(self->ring, size, size,
				     MREMAP_MAYMOVE | MREMAP_DONTUNMAP));
	EXPECT_EQ(0, works(self));
}

TEST_F(ring, mremap_move)
{
	char *to = rp_pages(self->size), *p = self->ring;
	unsigned int i;

	ASSERT_NE(NULL, to);
	p = mremap(p, self->size, self->size, MREMAP_MAYMOVE | MREMAP_FIXED,
		   to);
	ASSERT_EQ(to, p);
	EXPECT_FALSE(mapped(self->ring, self->page));
	ASSERT_EQ(0, works(self));
	EXPECT_EQ(0, memcmp(to, self->c.cq.ring, self->size));

	/* Page by page, in another order. */
	p = rp_pages(self->size);
	ASSERT_NE(NULL, p);
	for (i = 0; i < self->size / self->page; i++) {
		ASSERT_EQ(p + self->size - (i + 1) * self->page,
			  mremap(to + i * self->page, self->page, self->page,
				 MREMAP_MAYMOVE | MREMAP_FIXED,
				 p + self->size - (i + 1) * self->page));
	}
	ASSERT_EQ(0, works(self));
	EXPECT_EQ(0, memcmp(p + self->size - self->page, self->c.cq.ring,
			    self->page));
	EXPECT_EQ(0, munmap(p, self->size));
}

TEST_F(ring, shrink)
{
	const size_t page = self->page;
	size_t size;

	for (size = self->size - page; size >= page; size -= page) {
		ASSERT_EQ(self->ring, mremap(self->ring, size + page, size, 0));
		EXPECT_FALSE(mapped(self->ring + size, page));
		EXPECT_TRUE(mapped(self->ring, size));
		EXPECT_EQ(0, works(self));
	}
	EXPECT_EQ(0, memcmp(self->ring, self->c.cq.ring, page));
}

TEST_F(ring, munmap_part)
{
	const size_t page = self->page;
	unsigned int i;

	/* A hole, then every other page, then what is left. */
	ASSERT_EQ(0, munmap(self->ring + 2 * page, page));
	EXPECT_EQ(0, works(self));
	EXPECT_EQ(0, memcmp(self->ring, self->c.cq.ring, 2 * page));
	EXPECT_EQ(0, memcmp(self->ring + 3 * page,
			    (char *)self->c.cq.ring + 3 * page, page));
	for (i = 0; i < self->size / page; i += 2) {
		ASSERT_EQ(0, munmap(self->ring + i * page, page));
	}
	EXPECT_EQ(0, works(self));
	ASSERT_EQ(0, munmap(self->ring, self->size));
	/* All round. */
	EXPECT_EQ(0, works_for(self, self->c.cq.cmd.cqe + 2));
}

/* Nobody has the ring mapped, and completions still come to it. */
TEST_F(ring, munmap_all_in_use)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 0, NULL, 0, 0);
	struct rp_cq *cq = &self->c.cq;
	struct rpost_wc wc;
	uint64_t i;

	ASSERT_EQ(0, works(self));
	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	ASSERT_EQ(0, munmap(self->ring, self->size));
	rp_unmap_cq(cq);
	for (i = 0; i < 10; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->c, &send));
	}
	cq->ring = map(cq->fd, self->offset, self->size, RW, MAP_SHARED);
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

/* Write a byte: 0, or the signal that it got. */
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

/* Pages that the program threw away do not come back by themselves. */
TEST_F(ring, dontneed)
{
	ASSERT_EQ(0, touch(self->ring));
	ASSERT_EQ(0, madvise(self->ring, self->size, MADV_DONTNEED));
	EXPECT_EQ(SIGBUS, touch(self->ring));
	EXPECT_EQ(SIGBUS, touch(self->ring + self->size - 1));
	EXPECT_EQ(-1, madvise(self->ring, self->size, 23));
	EXPECT_EQ(0, works(self));
	/* What the kernel is given there, it cannot read either. */
	EXPECT_EQ(-EFAULT, rp_ioctl(self->c.fd, RPOST_IOC_POLL_CQ, self->ring));
	ASSERT_EQ(self->ring, mmap(self->ring, self->size, RW,
				   MAP_SHARED | MAP_FIXED, self->c.fd,
				   self->offset));
	EXPECT_EQ(0, memcmp(self->ring, self->c.cq.ring, self->size));
}

/* All that there is and will be; some is refused, none matters. */
TEST_F(ring, every_advice)
{
	int advice;

	for (advice = 0; advice < 128; advice++) {
		/* To break memory on purpose is root's right. */
		if (advice == MADV_HWPOISON || advice == 101)
			continue;
		madvise(self->ring, self->size, advice);
		madvise(self->ring + self->page, 2 * self->page, advice);
		ASSERT_EQ(0, works(self)) TH_LOG("advice %d", advice);
	}
	/* Not in core dumps, by no means. */
	EXPECT_EQ(-1, madvise(self->ring, self->size, MADV_DODUMP));
	EXPECT_EQ(EINVAL, errno);
}

/* No limit is spent on what is not the program's memory, nor given back. */
TEST_F(ring, locked)
{
	long before = status_kb("VmLck");

	ASSERT_LE(0, before);
	EXPECT_EQ(0, mlock(self->ring, self->size));
	EXPECT_EQ(before, status_kb("VmLck"));
	EXPECT_EQ(0, munlock(self->ring, self->size));
	ASSERT_EQ(0, mlockall(MCL_CURRENT | MCL_FUTURE));
	before = status_kb("VmLck");
	EXPECT_EQ(0, try_map(self->c.fd, self->offset, self->size, RW,
			     MAP_SHARED));
	EXPECT_EQ(0, munmap(self->ring, self->size));
	EXPECT_EQ(before, status_kb("VmLck"));
	EXPECT_EQ(0, works(self));
	munlockall();
	EXPECT_EQ(0, status_kb("VmLck"));
}

/* Replaced, in place, by a queue's, by no queue's, by part of it. */
TEST_F(ring, remap_file_pages)
{
#ifdef SYS_remap_file_pages
	uint64_t handle = self->offset / self->page;
	struct rp_cq cq;

	ASSERT_EQ(0, rp_create_cq(self->c.fd, self->c.device,
				  self->c.cq.cmd.cqe, -1, &cq));
	ASSERT_EQ(self->size, cq.cmd.mmap_size);
	EXPECT_EQ(0, syscall(SYS_remap_file_pages, self->ring, self->size, 0,
			     (long)cq.cmd.handle, 0));
	cq.ring->head = 0x5a5a5a5a;
	EXPECT_EQ(0x5a5a5a5a, ((struct rpost_ring *)self->ring)->head);
	EXPECT_EQ(0, works(self));
	EXPECT_EQ(-1, syscall(SYS_remap_file_pages, self->ring + self->page,
			      self->page, 0, (long)handle, 0));
	EXPECT_EQ(-1, syscall(SYS_remap_file_pages, self->ring, self->page, 0,
			      0l, 0));
	EXPECT_EQ(0, works(self));
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
		maps[i] = map(self->c.fd, self->offset, self->size,
			      i % 3 ? RW : PROT_READ, MAP_SHARED);
		ASSERT_NE(MAP_FAILED, (void *)maps[i]);
	}
	ASSERT_EQ(0, works(self));
	for (i = 0; i < N; i += 97) {
		EXPECT_EQ(0, memcmp(maps[i], self->c.cq.ring, self->size));
	}
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_CQ,
				self->c.cq.cmd.handle));
	/* The pages are theirs alone now. */
	ring = (void *)maps[N - 1];
	ring->head = 0x600df00d;
	for (i = 0; i < N; i++) {
		EXPECT_EQ(0x600df00d, ((struct rpost_ring *)maps[i])->head);
		EXPECT_EQ(0, munmap(maps[i], self->size));
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

/* A life of a mapping, some of it refused. */
static int attack_once(struct attack *a, unsigned long i)
{
	FIXTURE_DATA(ring) *self = a->self;
	char *p = mmap(a->place, self->size, RW, MAP_SHARED | MAP_FIXED,
		       self->c.fd, self->offset);

	if (p == MAP_FAILED)
		return -errno;
	/* Written to, but not changed: completions are being read. */
	__atomic_fetch_add(&p[i * 8 % self->size], 0, __ATOMIC_RELAXED);
	mprotect(p + i % 5 * self->page, self->page, PROT_READ);
	madvise(p + i % 4 * self->page, self->page, MADV_DONTNEED);
	mremap(p, self->page, 2 * self->page, 0);
	if (i % 2)
		munmap(p + i % 3 * self->page, self->page);
	else
		mprotect(p, self->size, PROT_NONE);
	if (mmap(p, self->size, PROT_NONE,
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
		a[i].place = rp_pages(self->size);
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, attack, &a[i]));
	}
	while (rp_now_ms() < end ||
	       ((rounds(&a[0]) < 20 || !rounds(&a[1])) && rp_now_ms() < last)) {
		ASSERT_EQ(0, works(self));
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&a[i].stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, a[i].wrong);
		EXPECT_LT(0, a[i].rounds);
	}
	EXPECT_EQ(0, works(self));
}

TEST_HARNESS_MAIN
