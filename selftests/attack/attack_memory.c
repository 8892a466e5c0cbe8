// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a region keeps its pages, whatever the program does to its memory:
 * every kind of memory is registered, and unmapped, cut, protected, moved or
 * split while it is.  A failure means that the device writes to pages that now
 * belong to somebody else, or that pages are not freed.
 */
#include <kselftest_harness.h>
#include <sys/syscall.h>

#include "kernel_release.h"
#include "memory.h"

/* ------------------------------------------------------------- every kind */

FIXTURE(kind) {
	struct memory m;
};

FIXTURE_VARIANT(kind) {
	struct kind kind;
};

KINDS(KIND_VARIANT)

FIXTURE_SETUP(kind)
{
	ASSERT_EQ(0, memory_init(&self->m));
}

FIXTURE_TEARDOWN(kind)
{
	EXPECT_EQ(0, memory_exit(&self->m));
}

/* The region and the program share pages: each sees the other's writes. */
static void same_memory(struct __test_metadata *_metadata, struct memory *m,
			unsigned char *p, size_t bytes,
			struct rpost_reg_mr *ro, struct rpost_reg_mr *rw)
{
	const size_t offsets[] = { 0, bytes / 2 - 32, bytes - 64 };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		if (rw) {
			ASSERT_EQ(RPOST_WC_SUCCESS, put(m, rw, offsets[i], 64));
			EXPECT_EQ(0, memcmp(m->buf, p + offsets[i], 64));
			p[offsets[i]] ^= 0x55;
		}
		if (ro) {
			ASSERT_EQ(RPOST_WC_SUCCESS, get(m, ro, offsets[i], 64));
			EXPECT_EQ(0, memcmp(m->buf, p + offsets[i], 64));
		}
	}
}

TEST_F(kind, registered)
{
	const struct kind *k = &variant->kind;
	int read = kind_errno(k, false), write = kind_errno(k, true);
	struct memory *m = &self->m;
	const char *reason;
	struct rpost_reg_mr ro, rw;
	long more = 0;
	char *p;

	p = kind_make(k, &reason);
	if (!p)
		SKIP(return, "%s", reason);
	EXPECT_EQ(-read, reg(m, p, k->bytes, READ, &ro));
	more += read ? 0 : k->bytes;
	EXPECT_EQ(m->pinned + BUF + more, rp_pinned());
	EXPECT_EQ(-write, reg(m, p, k->bytes, WRITE, &rw));
	more += write ? 0 : k->bytes;
	EXPECT_EQ(m->pinned + BUF + more, rp_pinned());
	if (!k->no_loads)
		same_memory(_metadata, m, (unsigned char *)p, k->bytes,
			    read ? NULL : &ro, write ? NULL : &rw);
	if (!read)
		EXPECT_EQ(0, dereg(m, &ro));
	if (!write)
		EXPECT_EQ(0, dereg(m, &rw));
	EXPECT_EQ(m->pinned + BUF, rp_pinned());
	if (kind_is_huge(k)) {
		EXPECT_EQ(0, munmap(p, k->bytes));
		EXPECT_TRUE(huge_pages(-1));
	}
}

/* ------------------------------------- mixtures, and a completion ring */

FIXTURE(memory) {
	struct memory m;
	size_t page;
	unsigned char *p;	/* four pages, anonymous */
	struct rpost_reg_mr mr;
};

FIXTURE_SETUP(memory)
{
	self->page = getpagesize();
	ASSERT_EQ(0, memory_init(&self->m));
	self->p = rp_pages(4 * self->page);
	ASSERT_NE(NULL, self->p);
	memset(self->p, 'o', 4 * self->page);
}

FIXTURE_TEARDOWN(memory)
{
	EXPECT_EQ(0, memory_exit(&self->m));
}

/* Map @q, of one page, over page @n of @p. */
static void replace(struct __test_metadata *_metadata,
		    FIXTURE_DATA(memory) *self, void *q, unsigned int n)
{
	unsigned char *to = self->p + n * self->page;

	ASSERT_EQ(to, mremap(q, self->page, self->page,
			     MREMAP_MAYMOVE | MREMAP_FIXED, to));
}

/* A region of several kinds of memory needs the right from each of them. */
TEST_F(memory, mixture)
{
	const size_t page = self->page, all = 4 * page;
	const char *reason = "";
	char *q;

	replace(_metadata, self, kind_memfd_shared(page, &reason), 1);
	replace(_metadata, self, kind_zero_private(page, &reason), 2);
	ASSERT_EQ(0, reg(&self->m, self->p, all, WRITE, &self->mr));
	/* This range crosses all borders between the kinds. */
	ASSERT_EQ(RPOST_WC_SUCCESS, put(&self->m, &self->mr, page - 100, BUF));
	EXPECT_EQ(0, memcmp(self->m.buf, self->p + page - 100, BUF));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(&self->m, &self->mr, all - BUF - 1,
					BUF));
	EXPECT_EQ(0, memcmp(self->m.buf, self->p + all - BUF - 1, BUF));
	EXPECT_EQ('o', self->p[all - 1]);
	ASSERT_EQ(0, dereg(&self->m, &self->mr));

	replace(_metadata, self, kind_read_only(page, &reason), 3);
	EXPECT_EQ(-EFAULT, reg(&self->m, self->p, all, WRITE, &self->mr));
	ASSERT_EQ(0, reg(&self->m, self->p, all, READ, &self->mr));
	ASSERT_EQ(0, dereg(&self->m, &self->mr));
	/* Many pages are pinned before the hole at the end is found. */
	q = rp_pages(1024 * page);
	ASSERT_NE(NULL, q);
	ASSERT_EQ(0, munmap(q + 1023 * page, page));
	EXPECT_EQ(-EFAULT, reg(&self->m, q, 1024 * page, WRITE, &self->mr));
	EXPECT_EQ(-EFAULT, reg(&self->m, q, 1024 * page, READ, &self->mr));
	EXPECT_EQ(self->m.pinned + BUF, rp_pinned());
}

/* The device writes into the completion ring of a queue in use. */
TEST_F(memory, completion_ring)
{
	struct memory *m = &self->m;
	struct rp_cq *cq = &m->s.cq;
	const size_t size = cq->cmd.mmap_size;
	struct rpost_reg_mr ro;
	uint32_t tail;
	void *view;

	view = mmap(NULL, size, PROT_READ, MAP_SHARED, cq->fd,
		    cq->cmd.mmap_offset);
	ASSERT_NE(MAP_FAILED, view);
	EXPECT_EQ(-EFAULT, reg(m, view, size, WRITE, &ro));
	EXPECT_EQ(pins_by_force() ? -EFAULT : 0, reg(m, view, size, READ, &ro));
	ASSERT_EQ(0, reg(m, cq->ring, size, WRITE, &self->mr));
	/* The device overwrites the program's words and the kernel's. */
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
	EXPECT_EQ(0, memcmp(m->buf, view, BUF));
	ASSERT_EQ(0, rp_fetch(cq));
	ASSERT_EQ(0, rp_post_recv(&m->s, 9, NULL, 0, 0));
	ASSERT_EQ(0, rp_destroy(m->s.fd, RPOST_OBJ_QP, m->s.qp));
	/* The kernel keeps its own indices: the tail stays. */
	tail = cq->ring->tail;
	ASSERT_EQ(0, rp_fetch(cq));
	EXPECT_EQ(tail, cq->ring->tail);
	ASSERT_EQ(0, rp_destroy(m->s.fd, RPOST_OBJ_CQ, cq->cmd.handle));
	ASSERT_EQ(0, munmap(view, size));
	cq->wcs[0].wr_id = 0x77;
	ASSERT_EQ(0, dereg(m, &self->mr));
	EXPECT_EQ(0x77, cq->wcs[0].wr_id);
}

TEST_F(memory, stack)
{
	unsigned char here[2 * BUF];

	memset(here, 's', sizeof(here));
	ASSERT_EQ(0, reg(&self->m, here, sizeof(here), WRITE, &self->mr));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(&self->m, &self->mr, 1000, BUF));
	EXPECT_EQ(0, memcmp(self->m.buf, here + 1000, BUF));
	EXPECT_EQ('s', here[999]);
	EXPECT_EQ('s', here[1000 + BUF]);
	ASSERT_EQ(0, dereg(&self->m, &self->mr));
}

/* ------------------------------------- changed while it is registered */

/*
 * The region's pages are no longer the program's: data written to the region
 * can be read from the region, and appears nowhere in the program.
 */
static void parted(struct __test_metadata *_metadata, struct memory *m,
		   struct rpost_reg_mr *mr, const void *p, size_t bytes,
		   unsigned char value)
{
	unsigned char copy[BUF];

	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, mr, 0, BUF));
	memcpy(copy, m->buf, BUF);
	EXPECT_TRUE(all_bytes(p, bytes, value));
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, mr, 0, BUF));
	EXPECT_EQ(0, memcmp(copy, m->buf, BUF));
}

/* The program unmaps the region's memory and maps other memory there. */
TEST_F(memory, remapped)
{
	const size_t bytes = 4 * self->page, more = 16 << 20;
	struct memory *m = &self->m;
	unsigned char *q;

	ASSERT_EQ(0, reg(m, self->p, bytes, WRITE, &self->mr));
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &self->mr, 0, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'o'));
	ASSERT_EQ(self->p, mmap(self->p, bytes, RW, MAP_PRIVATE |
				MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memset(self->p, 'n', bytes);
	parted(_metadata, m, &self->mr, self->p, bytes, 'n');
	ASSERT_EQ(0, munmap(self->p, bytes));
	q = rp_pages(more);
	ASSERT_NE(NULL, q);
	memset(q, 'q', more);
	parted(_metadata, m, &self->mr, q, more, 'q');
	EXPECT_EQ(m->pinned + BUF + (long)bytes, rp_pinned());
	ASSERT_EQ(0, dereg(m, &self->mr));
	munmap(q, more);
}

TEST_F(memory, dontneed)
{
	const size_t bytes = 4 * self->page;
	struct memory *m = &self->m;

	ASSERT_EQ(0, reg(m, self->p, bytes, WRITE, &self->mr));
	ASSERT_EQ(0, madvise(self->p, bytes, MADV_DONTNEED));
	parted(_metadata, m, &self->mr, self->p, bytes, 0);
	ASSERT_EQ(0, dereg(m, &self->mr));
	EXPECT_TRUE(all_bytes(self->p, bytes, 0));
}

/* A file is cut and grows again: the region keeps the old pages. */
static void cut(struct __test_metadata *_metadata, FIXTURE_DATA(memory) *self,
		int fd, bool punch)
{
	struct memory *m = &self->m;
	const size_t bytes = 4 * self->page;
	unsigned char *p = mmap(NULL, bytes, RW, MAP_SHARED, fd, 0);
	char byte = 'x';

	ASSERT_NE(MAP_FAILED, (void *)p);
	memset(p, 'f', bytes);
	ASSERT_EQ(0, reg(m, p, bytes, WRITE, &self->mr));
	if (punch) {
		ASSERT_EQ(0, fallocate(fd, FALLOC_FL_PUNCH_HOLE |
				       FALLOC_FL_KEEP_SIZE, 0, bytes));
	} else {
		ASSERT_EQ(0, ftruncate(fd, 0));
		ASSERT_EQ(0, ftruncate(fd, bytes));
	}
	parted(_metadata, m, &self->mr, p, bytes, 0);
	ASSERT_EQ(1, pread(fd, &byte, 1, 100));
	EXPECT_EQ(0, byte);
	ASSERT_EQ(0, dereg(m, &self->mr));
	EXPECT_TRUE(all_bytes(p, bytes, 0));
	munmap(p, bytes);
	close(fd);
}

TEST_F(memory, truncated)
{
	cut(_metadata, self, kind_memfd(4 * self->page, 0), false);
}

TEST_F(memory, hole_punched)
{
	cut(_metadata, self, kind_memfd(4 * self->page, 0), true);
}

/* A file on disk is truncated; not all kernels pin it for writing. */
TEST_F(memory, file_truncated)
{
	const size_t bytes = 4 * self->page;
	struct memory *m = &self->m;
	int fd = kind_file(bytes);
	unsigned char *p;

	if (fd < 0)
		SKIP(return, "RPOST_TEST_DIR is not set");
	p = mmap(NULL, bytes, RW, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	memset(p, 'f', bytes);
	ASSERT_EQ(0, reg(m, p, bytes, READ, &self->mr));
	ASSERT_EQ(0, ftruncate(fd, 0));
	ASSERT_EQ(0, ftruncate(fd, bytes));
	EXPECT_TRUE(all_bytes(p, bytes, 0));
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &self->mr, self->page, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'f'));
	ASSERT_EQ(0, dereg(m, &self->mr));
	munmap(p, bytes);
	close(fd);
}

/* mprotect() after the registration does not change the region's rights. */
TEST_F(memory, protected_later)
{
	const size_t bytes = 4 * self->page;
	const int prots[] = { PROT_READ, PROT_NONE, RW };
	struct memory *m = &self->m;
	struct rpost_reg_mr mr;
	unsigned int i;

	ASSERT_EQ(0, reg(m, self->p, bytes, WRITE, &self->mr));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, mprotect(self->p, bytes, prots[i]));
		EXPECT_EQ(prots[i] == RW ? 0 : -EFAULT,
			  reg(m, self->p, bytes, WRITE, &mr));
		ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
		if (prots[i] != PROT_NONE)
			EXPECT_EQ(0, memcmp(m->buf, self->p, BUF));
	}
}

/* Advice and moves: pinned pages stay in memory, and the mapping can move. */
TEST_F(memory, advised_and_moved)
{
	const size_t bytes = 4 * self->page;
	const int advices[] = { MADV_FREE, MADV_COLD, MADV_PAGEOUT,
				MADV_MERGEABLE, MADV_HUGEPAGE, MADV_DONTFORK };
	struct memory *m = &self->m;
	unsigned char *q = rp_pages(bytes);
	unsigned int i;

	ASSERT_EQ(0, reg(m, self->p, bytes, WRITE, &self->mr));
	for (i = 0; i < ARRAY_SIZE(advices); i++) {
		/* Not every kernel has each advice, so errors are ignored. */
		madvise(self->p, bytes, advices[i]);
		ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
		EXPECT_EQ(0, memcmp(m->buf, self->p, BUF))
			TH_LOG("advice %d", advices[i]);
	}
	ASSERT_EQ(q, mremap(self->p, bytes, bytes,
			    MREMAP_MAYMOVE | MREMAP_FIXED, q));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
	EXPECT_EQ(0, memcmp(m->buf, q, BUF));
	ASSERT_EQ(0, dereg(m, &self->mr));
	munmap(q, bytes);
}

/* Return the frame number of a page, or 0 if the program may not read it. */
static uint64_t frame(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	if (fd < 0)
		return 0;
	if (pread64(fd, &entry, 8, (uintptr_t)p / getpagesize() * 8ull) != 8)
		entry = 0;
	close(fd);
	return entry & ((1ull << 55) - 1);
}

TEST_F(memory, migrated)
{
	const size_t bytes = 4 * self->page;
	int nodes[4] = { 0 }, status[4] = { 0 }, fd;
	struct memory *m = &self->m;
	void *pages[4];
	uint64_t before;
	unsigned int i;

	ASSERT_EQ(0, reg(m, self->p, bytes, WRITE, &self->mr));
	before = frame(self->p);
	for (i = 0; i < 4; i++)
		pages[i] = self->p + i * self->page;
	syscall(SYS_move_pages, 0, 4ul, pages, nodes, status, 2);
	fd = open("/proc/sys/vm/compact_memory", O_WRONLY);
	if (fd >= 0) {
		EXPECT_EQ(1, write(fd, "1", 1));
		close(fd);
	}
	EXPECT_EQ(before, frame(self->p));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
	EXPECT_EQ(0, memcmp(m->buf, self->p, BUF));
}

/* The program splits a transparent huge page that the device uses. */
TEST_F(memory, huge_page_split)
{
	const char *reason = "";
	unsigned char *p = (void *)kind_transparent_huge(HUGE_BYTES, &reason);
	struct memory *m = &self->m;

	if (!p)
		SKIP(return, "%s", reason);
	memset(p, 'h', HUGE_BYTES);
	ASSERT_EQ(0, reg(m, p, HUGE_BYTES, WRITE, &self->mr));
	ASSERT_EQ(0, munmap(p + 16 * self->page, self->page));
	ASSERT_EQ(0, madvise(p + 32 * self->page, self->page, MADV_DONTNEED));
	ASSERT_EQ(0, mprotect(p + 48 * self->page, self->page, PROT_READ));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 16 * self->page, BUF));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 32 * self->page, BUF));
	EXPECT_TRUE(all_bytes(p + 32 * self->page, self->page, 0));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 48 * self->page, BUF));
	EXPECT_EQ(0, memcmp(m->buf, p + 48 * self->page, BUF));
	EXPECT_TRUE(all_bytes(p, 16 * self->page, 'h'));
	ASSERT_EQ(0, munmap(p, HUGE_BYTES));
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &self->mr, 0, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'h'));
	ASSERT_EQ(0, dereg(m, &self->mr));
}

/* A huge page has no mapping and no file any more; only the region holds it. */
TEST_F(memory, huge_page_gone)
{
	struct memory *m = &self->m;
	unsigned char *p, *q;
	int fd;

	if (!huge_pages(2))
		SKIP(return, "no huge pages");
	fd = kind_memfd(HUGE_BYTES, MFD_HUGETLB);
	ASSERT_LE(0, fd);
	p = mmap(NULL, HUGE_BYTES, RW, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)p);
	memset(p, 'h', HUGE_BYTES);
	ASSERT_EQ(0, reg(m, p, HUGE_BYTES, WRITE, &self->mr));
	ASSERT_EQ(0, munmap(p, HUGE_BYTES));
	ASSERT_EQ(0, ftruncate(fd, 0));
	close(fd);
	q = mmap(NULL, HUGE_BYTES, RW, MAP_PRIVATE | MAP_ANONYMOUS |
		 MAP_HUGETLB, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)q);
	memset(q, 'q', HUGE_BYTES);
	parted(_metadata, m, &self->mr, q, HUGE_BYTES, 'q');
	ASSERT_EQ(0, dereg(m, &self->mr));
	ASSERT_EQ(0, munmap(q, HUGE_BYTES));
	EXPECT_TRUE(huge_pages(-2));
}

TEST_HARNESS_MAIN
