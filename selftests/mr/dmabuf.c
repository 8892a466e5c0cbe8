// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests regions of dma-bufs.  A failure means that a region covers wrong memory, that a
 * program reaches more of it than its descriptor allows, or that memory stays pinned.
 *
 * The dma-bufs are those of udmabuf, and of the heap of the kernel's memory, which root
 * can have.
 */
#include <kselftest_harness.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "fdinfo.h"
#include "race.h"
#include "udmabuf.h"

#define PAGES		16
#define NOBODY		65534
#define RW		RPOST_ACCESS_LOCAL_WRITE
#define ALL		(RW | RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_REMOTE_READ)
#define NO_DMA_BUFS	"the device has no dma-bufs"

/* Defined here because <linux/dma-heap.h> may be missing. */
struct heap_alloc {
	__u64 len;
	__u32 fd;
	__u32 fd_flags;
	__u64 heap_flags;
};

#define HEAP		"/dev/dma_heap/system"
#define HEAP_ALLOC	_IOWR('H', 0, struct heap_alloc)

/* Return a dma-buf of few pieces, or -1; flags are those of open(). */
static int heap(size_t bytes, int flags)
{
	struct heap_alloc alloc = { .len = bytes, .fd_flags = flags | O_CLOEXEC };
	int dev = open(HEAP, O_RDWR | O_CLOEXEC), ret;

	if (dev < 0)
		return -1;
	ret = ioctl(dev, HEAP_ALLOC, &alloc);
	close(dev);
	return ret ? -1 : (int)alloc.fd;
}

static struct rpost_reg_mr of_dmabuf(const struct rp_end *end, int fd, uint64_t offset,
				     uint64_t length, uint32_t access)
{
	return (struct rpost_reg_mr) {
		.size = sizeof(struct rpost_reg_mr), .pd = end->pd, .access = access,
		.addr = offset, .length = length, .iova = offset, .fd = fd,
	};
}

static int reg(const struct rp_end *end, int fd, uint64_t offset, uint64_t length,
	       uint32_t access, struct rpost_reg_mr *mr)
{
	*mr = of_dmabuf(end, fd, offset, length, access);
	return rp_ioctl(end->fd, RPOST_IOC_REG_DMABUF_MR, mr);
}

/* Return how many references the dma-buf has, or -1.  A region has one. */
static long holders(int fd)
{
	static char text[FDINFO_BYTES];
	const char *at;

	if (fdinfo_read_of(getpid(), fd, text) < 0)
		return -1;
	at = strstr(text, "\ncount:\t");
	return at ? atol(at + strlen("\ncount:\t")) : -1;
}

/* The last one may go a little later than the call returns. */
static bool holders_are(int fd, long want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (holders(fd) != want) {
		if (rp_now_ms() > end)
			return false;
		usleep(1000);
	}
	return true;
}

static int dereg(const struct rp_end *end, const struct rpost_reg_mr *mr)
{
	return rp_destroy(end->fd, RPOST_OBJ_MR, mr->handle);
}

/* ------------------------------------------------- which devices */

/*
 * Programs call with a descriptor of -1 to learn whether the device has dma-bufs, some
 * with no length: EOPNOTSUPP says that it has none.
 */
TEST(ask)
{
	struct rpost_reg_mr mr;
	struct rp_end end;
	bool sim = !access("/sys/module/rdmasim", F_OK);

	if (!sim && access("/sys/module/rdma_rxe", F_OK))
		SKIP(return, "neither rdmasim nor rxe");
	ASSERT_EQ(0, rp_end_init(&end));
	EXPECT_EQ(sim ? -EBADF : -EOPNOTSUPP, reg(&end, -1, 0, 4096, ALL, &mr));
	EXPECT_EQ(sim ? -EINVAL : -EOPNOTSUPP, reg(&end, -1, 0, 0, 0, &mr));
	EXPECT_EQ(0, rp_pinned());
	rp_end_close(&end);
}

/* ------------------------------------------------- regions */

FIXTURE(dmabuf) {
	size_t page, size;
	const char *skip;
	struct rp_end c, s;
	int fd;
	char *mem;		/* the dma-buf */
	char *own;		/* memory of the process, registered as from */
	struct rpost_reg_mr from;
};

FIXTURE_SETUP(dmabuf)
{
	struct rpost_reg_mr mr;

	self->page = getpagesize();
	self->size = PAGES * self->page;
	ASSERT_EQ(0, rp_connect_pair(&self->c, &self->s, 0));
	self->fd = udmabuf(self->size, &self->skip);
	if (self->fd < 0)
		return;
	if (reg(&self->s, self->fd, 0, self->size, ALL, &mr) == -EOPNOTSUPP) {
		self->skip = NO_DMA_BUFS;
		return;
	}
	ASSERT_EQ(0, dereg(&self->s, &mr));
	self->mem = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
	ASSERT_NE(MAP_FAILED, self->mem);
	self->own = rp_pages(self->size);
	ASSERT_NE(NULL, self->own);
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->own, self->size, ALL,
			       &self->from));
}

FIXTURE_TEARDOWN(dmabuf)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	EXPECT_EQ(0, rp_pinned());
}

/* Write from the own memory to a region.  Returns the status or a negative errno. */
static int rdma(FIXTURE_DATA(dmabuf) *self, uint32_t opcode, const struct rpost_reg_mr *to,
		uint64_t iova, uint32_t length)
{
	struct rp_send send = rp_send(opcode, 1, self->own, length, self->from.lkey);
	struct rpost_wc wc;

	send.wr.remote_addr = iova;
	send.wr.rkey = to->rkey;
	RP_TRY(rp_post_send(&self->c, &send));
	return rp_wait_cq(&self->c.cq, &wc) == 1 ? (int)wc.status : -ETIME;
}

static int write_to(FIXTURE_DATA(dmabuf) *self, const struct rpost_reg_mr *to,
		    uint64_t iova, uint32_t length)
{
	return rdma(self, RPOST_WR_RDMA_WRITE, to, iova, length);
}

static void fill(char *p, size_t bytes, unsigned int seed)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		p[i] = i * 13 + (i >> 12) + seed;
}

/* A peer writes to and reads from all pages of a dma-buf. */
TEST_F(dmabuf, remote)
{
	struct rpost_reg_mr to;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, reg(&self->s, self->fd, 0, self->size, ALL, &to));
	EXPECT_EQ(0, to.iova);
	fill(self->own, self->size, 1);
	ASSERT_EQ(RPOST_WC_SUCCESS, write_to(self, &to, 0, self->size));
	EXPECT_EQ(0, memcmp(self->mem, self->own, self->size));

	fill(self->mem, self->size, 2);
	ASSERT_EQ(RPOST_WC_SUCCESS,
		  rdma(self, RPOST_WR_RDMA_READ, &to, 0, self->size));
	EXPECT_EQ(0, memcmp(self->mem, self->own, self->size));
	ASSERT_EQ(0, dereg(&self->s, &to));
	EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR, write_to(self, &to, 0, 1));
}

/* The program's own work requests name it, too. */
TEST_F(dmabuf, local)
{
	struct rpost_reg_mr mr;
	struct rp_send send;
	struct rpost_wc wc;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, reg(&self->s, self->fd, 0, self->size, RW, &mr));
	ASSERT_EQ(0, rp_post_recv(&self->s, 7, (void *)(uintptr_t)(2 * self->page + 100),
				  5000, mr.lkey));
	fill(self->own, self->page, 3);
	send = rp_send(RPOST_WR_SEND, 1, self->own, self->page, self->from.lkey);
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->s.cq, &wc));
	ASSERT_EQ(RPOST_WC_SUCCESS, wc.status);
	EXPECT_EQ(0, memcmp(self->mem + 2 * self->page + 100, self->own, self->page));
}

/* The region ends where it was told to, with another name for its first byte. */
TEST_F(dmabuf, edges)
{
	const uint64_t offset = 3 * self->page + 64, name = 0x7fff0000ull * 4096 + 64;
	struct rpost_query_object query = {
		.size = sizeof(query), .type = RPOST_OBJ_MR,
	};
	struct rpost_reg_mr to;

	RP_SKIP_IF_SETUP_SAID();
	to = of_dmabuf(&self->s, self->fd, offset, 2 * self->page, ALL);
	to.iova = name;
	ASSERT_EQ(0, rp_ioctl(self->s.fd, RPOST_IOC_REG_DMABUF_MR, &to));
	query.handle = to.handle;
	ASSERT_EQ(0, rp_ioctl(self->s.fd, RPOST_IOC_QUERY_OBJECT, &query));
	EXPECT_EQ(name, query.iova);
	EXPECT_EQ(2 * self->page, query.length);
	EXPECT_EQ(to.rkey, query.rkey);

	memset(self->own, 'e', self->size);
	ASSERT_EQ(RPOST_WC_SUCCESS, write_to(self, &to, name, 2 * self->page));
	EXPECT_TRUE(all_bytes(self->mem, offset, 0));
	EXPECT_TRUE(all_bytes(self->mem + offset, 2 * self->page, 'e'));
	EXPECT_TRUE(all_bytes(self->mem + offset + 2 * self->page,
			      self->size - offset - 2 * self->page, 0));
	EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR, write_to(self, &to, name + 1, 2 * self->page));
	EXPECT_TRUE(all_bytes(self->mem + offset + 2 * self->page,
			      self->size - offset - 2 * self->page, 0));
}

TEST_F(dmabuf, before_the_region)
{
	struct rpost_reg_mr to;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, reg(&self->s, self->fd, self->page + 64, self->page, ALL, &to));
	EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR, write_to(self, &to, to.iova - 1, 2));
	EXPECT_TRUE(all_bytes(self->mem, self->size, 0));
}

/* Without the right to write, the peer cannot. */
TEST_F(dmabuf, no_write_access)
{
	struct rpost_reg_mr to;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, reg(&self->s, self->fd, 0, self->size, RPOST_ACCESS_REMOTE_READ, &to));
	fill(self->mem, self->page, 5);
	ASSERT_EQ(RPOST_WC_SUCCESS, rdma(self, RPOST_WR_RDMA_READ, &to, 0, self->page));
	EXPECT_EQ(0, memcmp(self->mem, self->own, self->page));
	EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR, write_to(self, &to, 0, 1));
}

/* The region keeps the memory when the descriptor and the mapping are gone. */
TEST_F(dmabuf, outlives_the_descriptor)
{
	struct rpost_reg_mr to;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, reg(&self->s, self->fd, 0, self->size, ALL, &to));
	ASSERT_EQ(0, close(self->fd));
	ASSERT_EQ(0, munmap(self->mem, self->size));
	fill(self->own, self->size, 4);
	ASSERT_EQ(RPOST_WC_SUCCESS, write_to(self, &to, 0, self->size));
	memset(self->own, 0, self->size);
	ASSERT_EQ(RPOST_WC_SUCCESS, rdma(self, RPOST_WR_RDMA_READ, &to, 0, self->size));
	self->mem = rp_pages(self->size);
	ASSERT_NE(NULL, self->mem);
	fill(self->mem, self->size, 4);
	EXPECT_EQ(0, memcmp(self->mem, self->own, self->size));
}

/* ------------------------------------------------- what is refused */

TEST_F(dmabuf, refused)
{
	const uint64_t size = self->size;
	const struct {
		uint64_t offset, length, iova;
		uint32_t access;
		int want;
	} calls[] = {
		{ 0, 0, 0, ALL, -EINVAL },
		{ 0, size + 1, 0, ALL, -EINVAL },
		{ size, 1, 0, ALL, -EINVAL },
		{ size - 1, 2, 4095, ALL, -EINVAL },
		{ 1ull << 62, 1, 0, ALL, -EINVAL },
		{ 0, 1ull << 62, 0, ALL, -EINVAL },
		{ -4096ull, 8192, 0, ALL, -EOVERFLOW },
		{ 0, 8192, -4096ull, ALL, -EOVERFLOW },
		{ 64, 8, 0, ALL, -EINVAL },
		{ 0, size, 0, RPOST_ACCESS_REMOTE_WRITE, -EINVAL },
		{ 0, size, 0, RPOST_ACCESS_REMOTE_ATOMIC, -EINVAL },
		{ 0, size, 0, RW | RPOST_ACCESS_ON_DEMAND, -EOPNOTSUPP },
		{ 0, size, 0, RW | 0x10, -EOPNOTSUPP },
		{ 0, size, 0, 1u << 31, -EOPNOTSUPP },
	};
	struct rpost_reg_mr mr, before;
	long users;
	int objects, i;
	long pinned;

	RP_SKIP_IF_SETUP_SAID();
	users = holders(self->fd);
	objects = rp_num_objects(self->s.fd);
	pinned = rp_pinned();
	for (i = 0; i < (int)ARRAY_SIZE(calls); i++) {
		mr = of_dmabuf(&self->s, self->fd, calls[i].offset, calls[i].length,
			       calls[i].access);
		mr.iova = calls[i].iova;
		before = mr;
		EXPECT_EQ(calls[i].want, rp_ioctl(self->s.fd, RPOST_IOC_REG_DMABUF_MR, &mr))
			TH_LOG("call %d", i);
		EXPECT_EQ(0, memcmp(&before, &mr, sizeof(mr)));
	}
	EXPECT_TRUE(holders_are(self->fd, users));
	EXPECT_EQ(objects, rp_num_objects(self->s.fd));
	EXPECT_EQ(pinned, rp_pinned());
}

TEST_F(dmabuf, other_files)
{
	struct rpost_reg_mr mr;
	int memfd;

	RP_SKIP_IF_SETUP_SAID();
	EXPECT_EQ(-EBADF, reg(&self->s, -1, 0, 1, RW, &mr));
	EXPECT_EQ(-EBADF, reg(&self->s, 1 << 30, 0, 1, RW, &mr));
	memfd = memfd_create("rdma_post", MFD_CLOEXEC);
	ASSERT_LE(0, memfd);
	EXPECT_EQ(-EINVAL, reg(&self->s, memfd, 0, 1, RW, &mr));
	EXPECT_EQ(-EINVAL, reg(&self->s, self->s.fd, 0, 1, RW, &mr));
	/* REG_MR takes none. */
	mr = of_dmabuf(&self->s, self->fd, (uintptr_t)self->own, 1, RW);
	EXPECT_EQ(-EOPNOTSUPP, rp_ioctl(self->s.fd, RPOST_IOC_REG_MR, &mr));
}

/* The device may read or write a dma-buf only where its descriptor lets the program. */
TEST_F(dmabuf, descriptors_mode)
{
	struct rpost_reg_mr mr;
	int rdonly, wronly;

	RP_SKIP_IF_SETUP_SAID();
	rdonly = heap(self->size, O_RDONLY);
	wronly = heap(self->size, O_WRONLY);
	if (rdonly < 0 || wronly < 0)
		SKIP(return, "no " HEAP);
	EXPECT_EQ(-EACCES, reg(&self->s, rdonly, 0, self->size, RW, &mr));
	EXPECT_EQ(-EACCES, reg(&self->s, rdonly, 0, self->size, ALL, &mr));
	EXPECT_EQ(-EACCES, reg(&self->s, wronly, 0, self->size, RW, &mr));
	EXPECT_EQ(-EACCES, reg(&self->s, wronly, 0, self->size, 0, &mr));
	ASSERT_EQ(0, reg(&self->s, rdonly, 0, self->size, RPOST_ACCESS_REMOTE_READ, &mr));
	EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR, write_to(self, &mr, 0, 1));
	close(rdonly);
	close(wronly);
}

/* Where fast registration is forbidden, there is no other way. */
TEST_F(dmabuf, direct)
{
	struct rpost_reg_mr mr;

	RP_SKIP_IF_SETUP_SAID();
	if (access(RP_PARAMETERS "registration", W_OK))
		SKIP(return, "needs root to set the parameter 'registration'");
	ASSERT_EQ(0, rp_set_parameter("registration", "direct"));
	EXPECT_EQ(-EOPNOTSUPP, reg(&self->s, self->fd, 0, self->size, RW, &mr));
	EXPECT_EQ(0, rp_set_parameter("registration", "auto"));
	EXPECT_EQ(0, reg(&self->s, self->fd, 0, self->size, RW, &mr));
}

/* ------------------------------------------------- sizes */

/* More pieces than the device takes are too many; the same bytes in few are not. */
TEST_F(dmabuf, many_pages)
{
	const size_t bytes = 1024 * self->page;
	struct rpost_reg_mr mr;
	long pinned;
	int fd;

	RP_SKIP_IF_SETUP_SAID();
	if (rp_max_mr_size(self->s.fd, self->s.device) >= bytes)
		SKIP(return, "the device takes more pages than are tried here");
	pinned = rp_pinned();
	fd = udmabuf(bytes, &self->skip);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-EMSGSIZE, reg(&self->s, fd, 0, bytes, RW, &mr));
	EXPECT_EQ(pinned, rp_pinned());
	/* A part of it. */
	ASSERT_EQ(0, reg(&self->s, fd, 512 * self->page, 512 * self->page, RW, &mr));
	close(fd);
}

TEST_F(dmabuf, large_pages)
{
	const size_t bytes = 4 << 20;
	struct rpost_reg_mr to;
	char *p;
	int fd;

	RP_SKIP_IF_SETUP_SAID();
	if (rp_max_mr_size(self->s.fd, self->s.device) >= bytes)
		SKIP(return, "the device takes more pages than are tried here");
	fd = heap(bytes, O_RDWR);
	if (fd < 0)
		SKIP(return, "no " HEAP);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	ASSERT_EQ(0, reg(&self->s, fd, 0, bytes, ALL, &to));
	fill(self->own, self->size, 6);
	ASSERT_EQ(RPOST_WC_SUCCESS, write_to(self, &to, bytes - self->size, self->size));
	EXPECT_EQ(0, memcmp(p + bytes - self->size, self->own, self->size));
	ASSERT_EQ(RPOST_WC_SUCCESS, write_to(self, &to, (1 << 20) - 100, 200));
	EXPECT_EQ(0, memcmp(p + (1 << 20) - 100, self->own, 200));
	EXPECT_TRUE(all_bytes(p, (1 << 20) - 100, 0));
	munmap(p, bytes);
	close(fd);
}

/* ------------------------------------------------- locked memory */

/* Each region counts as all of its dma-buf, until it ends. */
TEST_F(dmabuf, counted)
{
	struct rpost_reg_mr a, b;
	long users;
	long pinned;

	RP_SKIP_IF_SETUP_SAID();
	pinned = rp_pinned();
	users = holders(self->fd);
	ASSERT_LT(0, users);
	ASSERT_EQ(0, reg(&self->s, self->fd, 0, 1, RW, &a));
	EXPECT_EQ(pinned + (long)self->size, rp_pinned());
	EXPECT_TRUE(holders_are(self->fd, users + 1));
	ASSERT_EQ(0, reg(&self->c, self->fd, 0, self->size, RW, &b));
	EXPECT_EQ(pinned + 2 * (long)self->size, rp_pinned());
	ASSERT_EQ(0, dereg(&self->s, &a));
	EXPECT_EQ(pinned + (long)self->size, rp_pinned());
	/* The last close ends the other. */
	rp_end_close(&self->c);
	EXPECT_EQ(0, rp_pinned());
	EXPECT_TRUE(holders_are(self->fd, users));
	ASSERT_EQ(0, rp_end_init(&self->c));
}

/* The cache keeps none: each counts no longer once it has been deregistered. */
TEST_F(dmabuf, not_kept)
{
	struct rpost_reg_mr mr;
	long pinned;
	int i;

	RP_SKIP_IF_SETUP_SAID();
	pinned = rp_pinned();
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, reg(&self->s, self->fd, 0, self->size, RW, &mr));
		ASSERT_EQ(0, dereg(&self->s, &mr));
		EXPECT_EQ(pinned, rp_pinned());
	}
}

/* In a child without privileges that may lock one and a half times the dma-buf. */
static int limited(const FIXTURE_DATA(dmabuf) *self)
{
	const struct rlimit limit = { 3 * self->size / 2, 3 * self->size / 2 };
	struct rpost_reg_mr a, b;
	struct rp_end end;

	CHILD_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	CHILD_CHECK(!setresuid(NOBODY, NOBODY, NOBODY));
	CHILD_CHECK(!rp_end_init(&end));
	CHILD_CHECK(!rp_reg_mr(end.fd, end.pd, self->own, self->size / 2 + 1, 0, &a));
	CHILD_CHECK(reg(&end, self->fd, 0, 1, 0, &b) == -ENOMEM);
	CHILD_CHECK(rp_pinned() == (long)(self->size / 2 + self->page));
	CHILD_CHECK(!dereg(&end, &a));
	CHILD_CHECK(!reg(&end, self->fd, 0, 1, 0, &a));
	CHILD_CHECK(reg(&end, self->fd, 0, 1, 0, &b) == -ENOMEM);
	CHILD_CHECK(rp_reg_mr(end.fd, end.pd, self->own, self->size / 2 + 1, 0, &b) ==
		    -ENOMEM);
	CHILD_CHECK(!rp_reg_mr(end.fd, end.pd, self->own, self->size / 2, 0, &b));
	return 0;
}

TEST_F(dmabuf, limit)
{
	int status;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	if (geteuid())
		SKIP(return, "cannot give up root");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(limited(self));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* The charge ends with the region, whoever destroys it, also after its process. */
TEST_F(dmabuf, of_another_process)
{
	struct rpost_reg_mr mr;
	int status, pipes[2];
	long pinned;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	pinned = rp_pinned();
	ASSERT_EQ(0, pipe(pipes));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(reg(&self->s, self->fd, 0, self->size, ALL, &mr) ||
		      write(pipes[1], &mr, sizeof(mr)) != sizeof(mr));
	ASSERT_EQ(sizeof(mr), read(pipes[0], &mr, sizeof(mr)));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(pinned, rp_pinned());
	memset(self->own, 'c', self->page);
	ASSERT_EQ(RPOST_WC_SUCCESS, write_to(self, &mr, 0, self->page));
	EXPECT_TRUE(all_bytes(self->mem, self->page, 'c'));
	ASSERT_EQ(0, dereg(&self->s, &mr));
	EXPECT_EQ(pinned, rp_pinned());
	close(pipes[0]);
	close(pipes[1]);
}

/* ------------------------------------------------- many at once */

static int step_reg(struct race *r)
{
	struct rpost_reg_mr mr;
	int ret = reg(&r->client, r->channel, 0, 5000, ALL, &mr);

	return ret ? : dereg(&r->client, &mr);
}

TEST_F(dmabuf, threads)
{
	struct worker w[] = { [0 ... 3] = { .step = step_reg, .succeeds = true } };
	struct race r = { .client = self->s, .channel = self->fd };
	long pinned;
	int objects;

	RP_SKIP_IF_SETUP_SAID();
	objects = rp_num_objects(self->s.fd);
	pinned = rp_pinned();
	EXPECT_EQ(0, run_race(&r, w, ARRAY_SIZE(w), no_change));
	EXPECT_EQ(objects, rp_num_objects(self->s.fd));
	EXPECT_EQ(pinned, rp_pinned());
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

struct exchange {
	int fd, bad, good;
	bool stop;
};

static void *exchange(void *arg)
{
	struct exchange *e = arg;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		dup2(e->bad, e->fd);
		dup2(e->good, e->fd);
	}
	return NULL;
}

/*
 * Another thread exchanges the descriptor with one for reading only: what was looked at
 * is what is registered, or nothing is (EBADF).
 */
TEST_F(dmabuf, exchanged_descriptor)
{
	struct exchange e = { .good = self->fd };
	unsigned long changed = 0;
	long users, bad_users;
	struct rpost_reg_mr mr;
	pthread_t thread;
	uint64_t since;
	long pinned;
	char *p;
	int ret;

	RP_SKIP_IF_SETUP_SAID();
	e.bad = heap(self->size, O_RDONLY);
	if (e.bad < 0)
		SKIP(return, "no " HEAP);
	e.fd = dup(self->fd);
	ASSERT_LE(0, e.fd);
	p = mmap(NULL, self->size, PROT_READ, MAP_SHARED, e.bad, 0);
	ASSERT_NE(MAP_FAILED, p);
	memset(self->own, 'x', self->page);
	users = holders(self->fd);
	bad_users = holders(e.bad);
	pinned = rp_pinned();
	since = rp_now_ms();
	ASSERT_EQ(0, pthread_create(&thread, NULL, exchange, &e));
	do {
		ret = reg(&self->s, e.fd, 0, self->size, ALL, &mr);
		if (!ret)
			ret = write_to(self, &mr, 0, 1) ? : dereg(&self->s, &mr);
		changed += ret == -EBADF;
	} while ((!ret || ret == -EBADF || ret == -EACCES) &&
		 rp_now_ms() < since + (changed ? RACE_MS : TEST_CHANCE_MS));
	__atomic_store_n(&e.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	EXPECT_TRUE(holders_are(self->fd, users));
	EXPECT_TRUE(holders_are(e.bad, bad_users));
	EXPECT_TRUE(!ret || ret == -EBADF || ret == -EACCES)
		TH_LOG("%d", ret);
	EXPECT_TRUE(all_bytes(p, self->size, 0));
	EXPECT_EQ(pinned, rp_pinned());
	munmap(p, self->size);
	close(e.bad);
	close(e.fd);
	RP_SKIP_UNMET(changed, "the descriptor was never exchanged in between");
}

/* Children that are killed while they register leave nothing behind. */
TEST_F(dmabuf, killed)
{
	struct race r = { .channel = self->fd };
	int pipes[2], i, status;
	long users;
	char byte = 0;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	users = holders(self->fd);
	ASSERT_EQ(0, pipe(pipes));
	for (i = 0; i < 10; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			CHILD_CHECK(!rp_end_init(&r.client) && !step_reg(&r));
			CHILD_CHECK(write(pipes[1], &byte, 1) == 1);
			while (!step_reg(&r))
				;
			_exit(2);
		}
		ASSERT_EQ(1, read(pipes[0], &byte, 1));
		usleep(i * 300);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
	}
	EXPECT_TRUE(holders_are(self->fd, users));
	close(pipes[0]);
	close(pipes[1]);
}

/* ------------------------------------------------- the device goes away */

/* The device must not be gone before the exporters have unmapped the memory for it. */
TEST_F(dmabuf, removal)
{
	struct rpost_reg_mr mr;
	struct worker w[] = {
		[0 ... 2] = { .step = step_reg, .errors = { -ENODEV }, .succeeds = true },
	};
	struct race r = { .client = self->s, .channel = self->fd };
	long users;

	RP_SKIP_IF_SETUP_SAID();
	RP_NEED_REMOVAL();
	users = holders(self->fd);
	ASSERT_EQ(0, reg(&self->c, self->fd, 0, self->size, ALL, &mr));
	EXPECT_EQ(0, run_over_removal(&r, w, ARRAY_SIZE(w)));
	EXPECT_EQ(-ENODEV, reg(&self->c, self->fd, 0, self->size, ALL, &mr));
	EXPECT_EQ(0, rp_pinned());
	EXPECT_TRUE(holders_are(self->fd, users));
	EXPECT_EQ(0, rp_add_device());
}

TEST_HARNESS_MAIN
