// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests registration of memory: which memory and access it accepts, the limit
 * of locked memory, and addresses (iova) of a region.  A failure means that a
 * program can register memory that it may not access, or more than its limit.
 */
#include <kselftest_harness.h>
#include <grp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "kernel_release.h"
#include "rpost_test.h"

#define NOBODY		65534
#define RW		RPOST_ACCESS_LOCAL_WRITE
#define ALL		(RW | RPOST_ACCESS_REMOTE_WRITE | \
			 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

FIXTURE(mr) {
	size_t page;
	int fd;
	uint32_t pd;
	char *mem;	/* four pages */
};

FIXTURE_SETUP(mr)
{
	self->page = getpagesize();
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rp_alloc_pd(self->fd, rp_first_device(self->fd),
				 &self->pd));
	self->mem = rp_pages(4 * self->page);
	ASSERT_NE(NULL, self->mem);
}

FIXTURE_TEARDOWN(mr)
{
	close(self->fd);
}

/* Expect an error; nothing may be registered and nothing written. */
static void refused(struct __test_metadata *_metadata, FIXTURE_DATA(mr) *self,
		    struct rpost_reg_mr *cmd, int want)
{
	struct rpost_reg_mr before;

	cmd->size = sizeof(*cmd);
	cmd->pd = self->pd;
	cmd->handle = 0xa5a5a5a5;
	cmd->lkey = 0xa5a5a5a5;
	cmd->rkey = 0xa5a5a5a5;
	before = *cmd;
	EXPECT_EQ(want, rp_ioctl(self->fd, RPOST_IOC_REG_MR, cmd))
		TH_LOG("addr %#llx length %#llx iova %#llx access %#x",
		       (long long)before.addr, (long long)before.length,
		       (long long)before.iova, before.access);
	EXPECT_EQ(0, memcmp(&before, cmd, sizeof(before)));
	EXPECT_EQ(1, rp_num_objects(self->fd));
}

/* The same with the address as the iova. */
static void refused_at(struct __test_metadata *_metadata,
		       FIXTURE_DATA(mr) *self, const void *addr,
		       uint64_t length, uint32_t access, int want)
{
	struct rpost_reg_mr cmd = {
		.access = access,
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = (uintptr_t)addr,
	};

	refused(_metadata, self, &cmd, want);
}

TEST_F(mr, answer)
{
	struct rpost_reg_mr mr, other;

	memset(self->mem, 'x', self->page);
	ASSERT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem + 1, 100, ALL,
			       &mr));
	EXPECT_NE(0, mr.handle);
	EXPECT_NE(self->pd, mr.handle);
	EXPECT_EQ((uintptr_t)self->mem + 1, mr.addr);
	EXPECT_EQ(100, mr.length);
	EXPECT_EQ((uintptr_t)self->mem + 1, mr.iova);
	EXPECT_EQ(ALL, mr.access);
	EXPECT_EQ('x', self->mem[1]);
	EXPECT_EQ(2, rp_num_objects(self->fd));

	/* A second region of the same memory has different keys. */
	ASSERT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem + 1, 100, ALL,
			       &other));
	EXPECT_NE(mr.handle, other.handle);
	EXPECT_NE(mr.lkey, other.lkey);
	EXPECT_NE(mr.rkey, other.rkey);
	EXPECT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_MR, other.handle));
	EXPECT_EQ(1, rp_num_objects(self->fd));
}

TEST_F(mr, not_mapped)
{
	struct rpost_reg_mr cmd = { .access = RW, .length = 4096 };
	char *end = self->mem + 4 * self->page;
	unsigned int i;

	ASSERT_EQ(0, munmap(self->mem + 3 * self->page, self->page));
	refused_at(_metadata, self, NULL, 1, RW, -EFAULT);
	refused_at(_metadata, self, NULL, 1, 0, -EFAULT);
	refused_at(_metadata, self, end - self->page, 1, 0, -EFAULT);
	refused_at(_metadata, self, end - self->page - 1, 2, 0, -EFAULT);
	refused_at(_metadata, self, self->mem, 4 * self->page, RW, -EFAULT);
	/* Addresses outside of user space. */
	for (i = 0; i < 2; i++) {
		cmd.addr = i ? -8192ull : 1ull << 63;
		cmd.iova = cmd.addr;
		refused(_metadata, self, &cmd, -EFAULT);
	}
	refused_at(_metadata, self, self->mem, 1ull << 62, RW, -EFAULT);
	refused_at(_metadata, self, self->mem, 1ull << 48, 0, -EFAULT);
}

TEST_F(mr, memory_without_the_access)
{
	struct rpost_reg_mr mr;

	ASSERT_EQ(0, mprotect(self->mem + self->page, self->page, PROT_READ));
	refused_at(_metadata, self, self->mem + self->page, 8, RW, -EFAULT);
	refused_at(_metadata, self, self->mem + self->page - 1, 2, ALL,
		   -EFAULT);

	/* Readable memory is enough for a region without write access. */
	EXPECT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem + self->page, 8,
			       0, &mr));
	EXPECT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem + self->page, 8,
			       RPOST_ACCESS_REMOTE_READ, &mr));
	/* A string constant is such memory. */
	EXPECT_EQ(0, rp_reg_mr(self->fd, self->pd, "constant", 8, 0, &mr));
	EXPECT_EQ(4, rp_num_objects(self->fd));
}

TEST_F(mr, memory_without_any_access)
{
	ASSERT_EQ(0, mprotect(self->mem + self->page, self->page, PROT_NONE));
	refused_at(_metadata, self, self->mem + self->page, 8, RW, -EFAULT);
	if (pins_by_force())
		SKIP(return, "this kernel pins PROT_NONE memory for reading");
	refused_at(_metadata, self, self->mem + self->page, 8, 0, -EFAULT);
	refused_at(_metadata, self, self->mem + self->page - 1, 2, 0, -EFAULT);
}

TEST_F(mr, length)
{
	refused_at(_metadata, self, self->mem, 0, RW, -EINVAL);
	refused_at(_metadata, self, self->mem, 0, 0, -EINVAL);
}

TEST_F(mr, wraps)
{
	const uint64_t addr = (uintptr_t)self->mem, low = addr & 0xfff;
	struct rpost_reg_mr cmd = { .access = RW };

	cmd.addr = addr;
	cmd.iova = addr;
	cmd.length = -addr + 1;
	refused(_metadata, self, &cmd, -EOVERFLOW);
	cmd.length = UINT64_MAX;
	refused(_metadata, self, &cmd, -EOVERFLOW);
	cmd.addr = UINT64_MAX;
	cmd.iova = UINT64_MAX;
	cmd.length = 2;
	refused(_metadata, self, &cmd, -EOVERFLOW);
	/* Only the iova wraps around. */
	cmd.addr = addr;
	cmd.iova = (UINT64_MAX & ~0xfffull) | low;
	cmd.length = self->page + 1;
	refused(_metadata, self, &cmd, -EOVERFLOW);
}

TEST_F(mr, iova_offset)
{
	struct rpost_reg_mr cmd = {
		.access = RW,
		.addr = (uintptr_t)self->mem + 16,
		.length = 16,
	};
	const uint64_t good[] = { 16, self->page + 16, 1ull << 40 | 16,
				  0xffffffffffff0010ull };
	const uint64_t bad[] = { 0, 15, 17, 8, 32, 1ull << 40, UINT64_MAX - 16 };
	struct rpost_reg_mr mr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		cmd.iova = bad[i];
		refused(_metadata, self, &cmd, -EINVAL);
	}
	RP_SKIP_IWARP(self->fd, "other names than the address, with siw");
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		mr = (struct rpost_reg_mr) {
			.size = sizeof(mr),
			.pd = self->pd,
			.access = RW,
			.addr = cmd.addr,
			.length = cmd.length,
			.iova = good[i],
		};
		EXPECT_EQ(0, rp_ioctl(self->fd, RPOST_IOC_REG_MR, &mr))
			TH_LOG("iova %#llx", (long long)good[i]);
	}
}

TEST_F(mr, access_flags)
{
	const uint32_t flush = RPOST_ACCESS_FLUSH_GLOBAL |
			       RPOST_ACCESS_FLUSH_PERSISTENT;
	const uint32_t known = ALL | RPOST_ACCESS_RELAXED_ORDERING | flush;
	struct rpost_reg_mr mr;
	uint32_t access, bit;
	int want;

	for (bit = 0; bit < 32; bit++) {
		if (1u << bit & known)
			continue;
		refused_at(_metadata, self, self->mem, 8, 1u << bit,
			   -EOPNOTSUPP);
		refused_at(_metadata, self, self->mem, 8, 1u << bit | RW,
			   -EOPNOTSUPP);
	}
	/* Kernels may lack these, and ordinary memory is not persistent. */
	for (bit = 8; bit <= 9; bit++) {
		want = rp_reg_mr(self->fd, self->pd, self->mem, 8,
				 1u << bit | RW, &mr);
		if (!want) {
			ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_MR,
						mr.handle));
			continue;
		}
		EXPECT_TRUE(want == -EOPNOTSUPP || (bit == 9 && want == -EINVAL))
			TH_LOG("bit %u: %d", bit, want);
		refused_at(_metadata, self, self->mem, 8, 1u << bit | RW, want);
	}
	for (access = 0; access <= ALL; access++) {
		want = 0;
		if ((access & (RPOST_ACCESS_REMOTE_WRITE |
			       RPOST_ACCESS_REMOTE_ATOMIC)) && !(access & RW))
			want = -EINVAL;
		if (want) {
			refused_at(_metadata, self, self->mem, 8, access, want);
			continue;
		}
		ASSERT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem, 8,
				       access, &mr))
			TH_LOG("access %#x", access);
		ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_MR, mr.handle));
		ASSERT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem, 8, access |
				       RPOST_ACCESS_RELAXED_ORDERING, &mr))
			TH_LOG("access %#x, relaxed", access);
		ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_MR, mr.handle));
	}
}

/* ------------------------------------------------------- locked memory */

TEST_F(mr, pinned)
{
	const long page = self->page;
	struct rpost_reg_mr mr, two;
	long before = rp_pinned();

	ASSERT_LE(0, before);
	ASSERT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem, 3 * self->page,
			       RW, &mr));
	EXPECT_EQ(before + 3 * page, rp_pinned());
	/* Two bytes in two pages count as two pages. */
	ASSERT_EQ(0, rp_reg_mr(self->fd, self->pd, self->mem + self->page - 1,
			       2, 0, &two));
	EXPECT_EQ(before + 5 * page, rp_pinned());
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(before + 2 * page, rp_pinned());
	close(self->fd);
	EXPECT_EQ(before, rp_pinned());
	self->fd = -1;
}

TEST_F(mr, failure_unpins)
{
	long before = rp_pinned();

	ASSERT_EQ(0, munmap(self->mem + 3 * self->page, self->page));
	refused_at(_metadata, self, self->mem, 4 * self->page, RW, -EFAULT);
	EXPECT_EQ(before, rp_pinned());
}

/*
 * Fork: the child continues as nobody, with a limit, and the parent gets its
 * exit status.
 */
static int as_nobody(rlim_t limit)
{
	struct rlimit memlock = { limit, limit };
	int status = -1;
	pid_t pid;

	pid = fork();
	if (pid) {
		waitpid(pid, &status, 0);
		return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	}
	if (setrlimit(RLIMIT_MEMLOCK, &memlock) || setgroups(0, NULL) ||
	    setgid(NOBODY) || setuid(NOBODY))
		_exit(255);
	return 0;
}

TEST_F(mr, memlock_limit)
{
	const size_t page = self->page;
	struct rpost_reg_mr mr, more;
	uint32_t pd;
	pid_t me = getpid();
	int fd, status;

	if (geteuid())
		SKIP(return, "needs root to become nobody");
	status = as_nobody(3 * page);
	if (getpid() == me) {
		EXPECT_EQ(0, status);
		return;
	}
	fd = rp_open();
	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(!rp_alloc_pd(fd, rp_first_device(fd), &pd));
	CHILD_CHECK(rp_reg_mr(fd, pd, self->mem, 4 * page, RW, &mr) == -ENOMEM);
	CHILD_CHECK(rp_num_objects(fd) == 1);
	CHILD_CHECK(!rp_reg_mr(fd, pd, self->mem, 2 * page, RW, &mr));
	/* One page is left of the limit. */
	CHILD_CHECK(rp_reg_mr(fd, pd, self->mem, 2 * page, RW, &more) ==
		    -ENOMEM);
	CHILD_CHECK(!rp_reg_mr(fd, pd, self->mem + 3 * page, 8, 0, &more));
	CHILD_CHECK(rp_reg_mr(fd, pd, self->mem, 8, 0, &more) == -ENOMEM);
	/* Destroying a region returns its charge. */
	CHILD_CHECK(!rp_destroy(fd, RPOST_OBJ_MR, mr.handle));
	CHILD_CHECK(!rp_reg_mr(fd, pd, self->mem, 2 * page, RW, &mr));
	/* Closing the file returns the charges of its regions. */
	close(fd);
	fd = rp_open();
	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(!rp_alloc_pd(fd, rp_first_device(fd), &pd));
	CHILD_CHECK(!rp_reg_mr(fd, pd, self->mem, 3 * page, RW, &mr));
	_exit(0);
}

TEST_F(mr, memlock_none)
{
	struct rpost_reg_mr mr;
	pid_t me = getpid();
	int status;

	if (geteuid())
		SKIP(return, "needs root to become nobody");
	status = as_nobody(0);
	if (getpid() == me) {
		EXPECT_EQ(0, status);
		return;
	}
	CHILD_CHECK(rp_reg_mr(self->fd, self->pd, self->mem, 8, RW, &mr) ==
		    -EPERM);
	_exit(0);
}

/* ------------------------------------------------------ iova */

FIXTURE(mrdata) {
	size_t page;
	struct rp_end client, server;
	char *from, *to;
};

FIXTURE_SETUP(mrdata)
{
	self->page = getpagesize();
	ASSERT_EQ(0, rp_connect_pair(&self->client, &self->server, 0));
	self->from = rp_pages(600 * self->page);
	self->to = rp_pages(600 * self->page);
	ASSERT_NE(NULL, self->from);
	ASSERT_NE(NULL, self->to);
}

FIXTURE_TEARDOWN(mrdata)
{
	rp_end_close(&self->client);
	rp_end_close(&self->server);
}

static int reg_at(struct rp_end *end, void *addr, uint64_t length,
		  uint64_t iova, struct rpost_reg_mr *mr)
{
	*mr = rp_mr(end->pd, addr, length, ALL);
	mr->iova = iova;
	return rp_ioctl(end->fd, RPOST_IOC_REG_MR, mr);
}

/* RDMA write from an iova to an iova; return the status, or an errno. */
static int write_named(struct rp_end *end, uint64_t from, uint32_t lkey,
		       uint64_t to, uint32_t rkey, uint32_t length)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 1, NULL, length,
				      lkey);
	struct rpost_wc wc;
	int ret;

	send.sge.addr = from;
	send.wr.remote_addr = to;
	send.wr.rkey = rkey;
	ret = rp_post_send(end, &send);
	if (ret)
		return ret;
	return rp_wait_cq(&end->cq, &wc) == 1 ? (int)wc.status : -ETIME;
}

TEST_F(mrdata, iova)
{
	const uint64_t names[] = { 0, self->page, 1ull << 52 };
	struct rpost_reg_mr from, to;
	unsigned int i, j;

	RP_SKIP_IWARP(self->client.fd, "other names than the address, with siw");
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		for (j = 0; j < 100; j++)
			self->from[100 + j] = i * 50 + j;
		memset(self->to, 0, self->page);
		ASSERT_EQ(0, reg_at(&self->client, self->from + 100, 100,
				    names[i] + 100, &from));
		ASSERT_EQ(0, reg_at(&self->server, self->to + 200, 100,
				    names[i] + 200, &to));
		ASSERT_EQ(RPOST_WC_SUCCESS,
			  write_named(&self->client, names[i] + 110, from.lkey,
				      names[i] + 220, to.rkey, 80));
		EXPECT_EQ(0, memcmp(self->from + 110, self->to + 220, 80));
		EXPECT_EQ(0, self->to[219]);
		EXPECT_EQ(0, self->to[300]);
	}
}

/* If the iova differs, the address is not valid. */
TEST_F(mrdata, address_is_not_the_name)
{
	struct rpost_reg_mr from, to;

	RP_SKIP_IWARP(self->client.fd, "other names than the address, with siw");
	memset(self->from, 'c', self->page);
	ASSERT_EQ(0, reg_at(&self->client, self->from, self->page, 1ull << 40,
			    &from));
	ASSERT_EQ(0, reg_at(&self->server, self->to, self->page,
			    (uintptr_t)self->to, &to));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR,
		  write_named(&self->client, (uintptr_t)self->from, from.lkey,
			      to.iova, to.rkey, 8));
	EXPECT_EQ(0, self->to[0]);
}

/* Many pages, unaligned ends, and pieces that cross pages. */
TEST_F(mrdata, large_and_odd)
{
	/* The unaligned ends need one more page each. */
	const size_t most = rp_max_mr_size(self->client.fd,
					   rp_first_device(self->client.fd)) /
			    self->page;
	const size_t pages = most < 515 ? most - 2 : 513;
	const size_t bytes = pages * self->page + 123;
	const size_t pieces[][2] = {
		{ 0, 1 }, { bytes - 1, 1 }, { self->page - 8, 16 },
		{ (pages - 2) * self->page - 77, 2 * self->page },
		{ 0, bytes < 64 << 10 ? bytes : 64 << 10 },
		{ bytes - 9999, 9999 },
	};
	struct rpost_reg_mr from, to;
	unsigned int i;
	size_t j;

	ASSERT_LE(8, most);
	for (j = 0; j < bytes; j++)
		self->from[77 + j] = j * 7 + (j >> 12);
	ASSERT_EQ(0, rp_reg_mr(self->client.fd, self->client.pd,
			       self->from + 77, bytes, 0, &from));
	ASSERT_EQ(0, rp_reg_mr(self->server.fd, self->server.pd,
			       self->to + 1001, bytes, ALL, &to));
	for (i = 0; i < ARRAY_SIZE(pieces); i++) {
		memset(self->to, 0, 600 * self->page);
		ASSERT_EQ(RPOST_WC_SUCCESS,
			  write_named(&self->client, from.iova + pieces[i][0],
				      from.lkey, to.iova + pieces[i][0],
				      to.rkey, pieces[i][1]));
		EXPECT_EQ(0, memcmp(self->from + 77 + pieces[i][0],
				    self->to + 1001 + pieces[i][0],
				    pieces[i][1]));
		EXPECT_EQ(0, self->to[1001 + pieces[i][0] - 1]);
		EXPECT_EQ(0, self->to[1001 + pieces[i][0] + pieces[i][1]]);
	}
}

/* A region keeps its pages after the program has unmapped them. */
TEST_F(mrdata, unmapped_later)
{
	struct rpost_reg_mr from, to;

	memset(self->from, 'u', self->page);
	ASSERT_EQ(0, rp_reg_mr(self->client.fd, self->client.pd, self->from,
			       self->page, 0, &from));
	ASSERT_EQ(0, rp_reg_mr(self->server.fd, self->server.pd, self->to,
			       self->page, ALL, &to));
	ASSERT_EQ(0, munmap(self->from, self->page));
	ASSERT_EQ(RPOST_WC_SUCCESS,
		  write_named(&self->client, from.iova, from.lkey, to.iova,
			      to.rkey, self->page));
	EXPECT_EQ('u', self->to[0]);
	EXPECT_EQ('u', self->to[self->page - 1]);
	ASSERT_EQ(0, rp_destroy(self->client.fd, RPOST_OBJ_MR, from.handle));
}

/* Shared memory is shared with the device, too. */
TEST_F(mrdata, shared_memory)
{
	char *shared = mmap(NULL, self->page, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct rpost_reg_mr from, to;
	int status = -1;
	pid_t pid;

	ASSERT_NE(MAP_FAILED, (void *)shared);
	ASSERT_EQ(0, rp_reg_mr(self->client.fd, self->client.pd, shared,
			       self->page, 0, &from));
	ASSERT_EQ(0, rp_reg_mr(self->server.fd, self->server.pd, self->to,
			       self->page, ALL, &to));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		memset(shared, 's', self->page);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(RPOST_WC_SUCCESS,
		  write_named(&self->client, from.iova, from.lkey, to.iova,
			      to.rkey, self->page));
	EXPECT_EQ('s', self->to[self->page - 1]);
}

static void nothing(int sig)
{
	(void)sig;
}

/* The first registration of a process, with a signal after so many microseconds. */
static void register_beside_signal(FIXTURE_DATA(mr) *self, long us)
{
	const struct itimerval soon = { .it_value.tv_usec = us }, never = {};
	struct sigaction action = { .sa_handler = nothing };
	struct rpost_reg_mr mr;

	CHILD_CHECK(!sigaction(SIGALRM, &action, NULL));
	CHILD_CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
	CHILD_CHECK(!rp_reg_mr(self->fd, self->pd, self->mem, 4 * self->page, RW, &mr));
	CHILD_CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	_exit(0);
}

TEST_F(mr, beside_signals)
{
	int i, status;
	pid_t pid;

	for (i = 1; i <= 100; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			register_beside_signal(self, i);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status);
	}
}

TEST_HARNESS_MAIN
