// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests posts from and into memory that no program has registered.  A failure
 * means that data is wrong, that a program gets at memory that it may not access,
 * or that pages stay pinned.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "kernel_release.h"
#include "mapping.h"
#include "memory_kinds.h"
#include "post_pair.h"

#define BUF	65536
#define ANY	(RPOST_QP_ANY_MEMORY | RPOST_QP_SIG_ALL)
#define NOBODY	65534

/* Each way of registration, each on the devices that have it. */
FIXTURE(any) {
	const char *skip;
	struct post_pair p;
	struct rpost_wc wc;
	long pinned;
	size_t page;
	char *mem, *peer;	/* BUF bytes that are not registered */
};

FIXTURE_VARIANT(any) {
	const char *way;
};

FIXTURE_VARIANT_ADD(any, direct) { .way = "direct" };
FIXTURE_VARIANT_ADD(any, fast) { .way = "fast" };

FIXTURE_SETUP(any)
{
	struct rpost_reg_mr mr;
	struct rp_end end;
	size_t i;

	self->page = getpagesize();
	self->pinned = rp_pinned();
	self->mem = rp_pages(BUF);
	self->peer = rp_pages(BUF);
	ASSERT_NE(NULL, self->mem);
	ASSERT_NE(NULL, self->peer);
	for (i = 0; i < BUF; i++)
		self->mem[i] = i * 11 + 3;
	if (access(RP_PARAMETERS "registration", W_OK)) {
		self->skip = "needs root to set the parameter 'registration'";
		return;
	}
	ASSERT_EQ(0, rp_set_parameter("registration", variant->way));
	ASSERT_EQ(0, rp_end_init(&end));
	if (rp_reg_mr(end.fd, end.pd, self->mem, 1, 0, &mr) == -EOPNOTSUPP)
		self->skip = "the device cannot register this way";
	rp_end_close(&end);
	if (self->skip)
		return;
	ASSERT_EQ(0, post_pair_init(&self->p, BUF, ANY));
	post_pair_fill(&self->p);
}

/* Whatever a test did, all pages come back. */
FIXTURE_TEARDOWN(any)
{
	if (!self->skip) {
		post_pair_close(&self->p);
		EXPECT_EQ(self->pinned, rp_pinned_soon(self->pinned));
	}
	if (!access(RP_PARAMETERS "registration", W_OK))
		EXPECT_EQ(0, rp_set_parameter("registration", "auto"));
}

static struct rp_send any_op(const struct post_pair *p, uint32_t opcode,
			     uint64_t wr_id, const void *addr, uint32_t length)
{
	struct rp_send send = pair_op(p, opcode, wr_id, length);

	send.sge.addr = (uintptr_t)addr;
	send.sge.lkey = 0;
	return send;
}

static int any_post(struct post_pair *p, uint32_t opcode, uint64_t wr_id,
		    const void *addr, uint32_t length)
{
	struct rp_send send = any_op(p, opcode, wr_id, addr, length);

	return rp_post_send(&p->c, &send);
}

static int any_recv(struct post_pair *p, uint64_t wr_id, void *addr,
		    uint32_t length)
{
	return rp_post_recv(&p->s, wr_id, addr, length, 0);
}

TEST_F(any, send_and_receive)
{
	const uint32_t lengths[] = { 1, 64, 65, 4096, 10000, BUF };
	unsigned int i;

	RP_SKIP_IF_SETUP_SAID();
	for (i = 0; i < 6; i++) {
		memset(self->peer, 's', BUF);
		ASSERT_EQ(0, any_recv(&self->p, 2, self->peer, BUF));
		ASSERT_EQ(0, any_post(&self->p, RPOST_WR_SEND, 1, self->mem,
				      lengths[i]));
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
		EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
		EXPECT_EQ(lengths[i], self->wc.byte_len);
		EXPECT_EQ(0, memcmp(self->mem, self->peer, lengths[i]));
	}
}

TEST_F(any, write_and_read)
{
	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->mem + 7,
			      BUF - 7));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, memcmp(self->mem + 7, self->p.sbuf, BUF - 7));
	EXPECT_EQ('s', self->p.sbuf[BUF - 7]);

	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_RDMA_READ, 2, self->peer + 1,
			      5000));
	EXPECT_DONE(&self->p.c, 2, RPOST_WC_RDMA_READ);
	EXPECT_EQ(0, memcmp(self->peer + 1, self->p.sbuf, 5000));
	EXPECT_EQ(0, self->peer[0]);
	EXPECT_EQ(0, self->peer[5001]);
}

TEST_F(any, immediate_and_atomic)
{
	volatile uint64_t *remote = (void *)self->p.sbuf;
	struct rp_send send;

	RP_SKIP_IF_SETUP_SAID();
	RP_SKIP_IWARP(self->p.c.fd, "immediate data");
	send = any_op(&self->p, RPOST_WR_RDMA_WRITE_WITH_IMM, 1, self->mem, 300);
	send.wr.imm_data = 0xa1b2c3d4;
	ASSERT_EQ(0, rp_post_recv(&self->p.s, 2, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(0xa1b2c3d4, self->wc.imm_data);
	EXPECT_EQ(0, memcmp(self->mem, self->p.sbuf, 300));

	*remote = 40;
	send = any_op(&self->p, RPOST_WR_ATOMIC_FETCH_AND_ADD, 3, self->peer, 8);
	send.wr.compare_add = 2;
	ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	EXPECT_DONE(&self->p.c, 3, RPOST_WC_FETCH_ADD);
	EXPECT_EQ(40, *(uint64_t *)self->peer);
	EXPECT_EQ(42, *remote);

	/* Of the wrong size, in memory that can be pinned. */
	send.sge.length = 16;
	EXPECT_EQ(-EINVAL, rp_post_send(&self->p.c, &send));
}

/* A short send is copied at the post, so its memory can change at once. */
TEST_F(any, short_sends_are_copied)
{
	char was = self->mem[5];

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, any_recv(&self->p, 2, self->peer, BUF));
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_SEND, 1, self->mem, RP_INLINE));
	memset(self->mem, 'n', RP_INLINE);
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
	EXPECT_EQ(was, self->peer[5]);
}

/* Entries with and without keys, and empty ones, in one list. */
TEST_F(any, lists)
{
	struct {
		struct rpost_send_wr wr;
		struct rpost_sge sges[4];
	} send = {
		.wr = any_op(&self->p, RPOST_WR_SEND, 1, NULL, 0).wr,
		.sges = {
			{ (uintptr_t)self->mem, 3000, 0 },
			{ 8, 0, 0 },
			{ (uintptr_t)self->p.cbuf, 200, self->p.cmr.lkey },
			{ (uintptr_t)self->mem + 9000, 1000, 0 },
		},
	};
	struct {
		struct rpost_recv_wr wr;
		struct rpost_sge sges[2];
	} recv = {
		.wr = { .wr_id = 2, .size = sizeof(recv), .num_sge = 2 },
		.sges = {
			{ (uintptr_t)self->peer, 3000, 0 },
			{ (uintptr_t)self->peer + 8192, 5000, 0 },
		},
	};
	int i;

	RP_SKIP_IF_SETUP_SAID();
	send.wr.size = sizeof(send);
	send.wr.num_sge = 4;
	for (i = 0; i < 3 * RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post(self->p.s.fd, RPOST_IOC_POST_RECV,
				     self->p.s.qp, &recv, sizeof(recv), 1, NULL));
		ASSERT_EQ(0, rp_post(self->p.c.fd, RPOST_IOC_POST_SEND,
				     self->p.c.qp, &send, sizeof(send), 1, NULL));
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
		EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
		EXPECT_EQ(4200, self->wc.byte_len);
	}
	EXPECT_EQ(0, memcmp(self->mem, self->peer, 3000));
	EXPECT_EQ(0, memcmp(self->p.cbuf, self->peer + 8192, 200));
	EXPECT_EQ(0, memcmp(self->mem + 9000, self->peer + 8392, 1000));

	/* A bad key fails as ever. */
	send.sges[2].lkey ^= 0x5a5a00;
	ASSERT_EQ(0, rp_post(self->p.c.fd, RPOST_IOC_POST_SEND, self->p.c.qp,
			     &send, sizeof(send), 1, NULL));
	ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status);
}

/* The work requests before the one that is refused are posted, no others. */
TEST_F(any, posted)
{
	struct rp_send block[4];
	uint32_t posted = 9;
	int i;

	RP_SKIP_IF_SETUP_SAID();
	for (i = 0; i < 4; i++)
		block[i] = any_op(&self->p, RPOST_WR_RDMA_WRITE, i, self->mem, 8000);
	block[2].sge.addr = 0x1000;
	EXPECT_EQ(-EFAULT, rp_post(self->p.c.fd, RPOST_IOC_POST_SEND,
				   self->p.c.qp, block, sizeof(block), 4, &posted));
	EXPECT_EQ(2, posted);
	EXPECT_DONE(&self->p.c, 0, RPOST_WC_RDMA_WRITE);
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_NOTHING(&self->p.c);
}

/* Expect the same error for each use of a range, and no work request. */
static void refused(struct __test_metadata *_metadata, FIXTURE_DATA(any) *self,
		    uint64_t addr, uint32_t length, int want)
{
	const uint32_t opcodes[] = {
		RPOST_WR_SEND, RPOST_WR_RDMA_WRITE, RPOST_WR_RDMA_READ,
	};
	unsigned int i;

	for (i = 0; i < 3; i++) {
		struct rp_send send = any_op(&self->p, opcodes[i], 1, NULL, length);

		send.sge.addr = addr;
		EXPECT_EQ(want, rp_post_send(&self->p.c, &send))
			TH_LOG("%#llx, %u bytes, opcode %u", (long long)addr,
			       length, opcodes[i]);
	}
	EXPECT_EQ(want, any_recv(&self->p, 1, (void *)(uintptr_t)addr, length));
}

TEST_F(any, bad_ranges)
{
	char *hole = rp_pages(3 * self->page);
	uint64_t at = (uintptr_t)hole;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, munmap(hole + self->page, self->page));
	ASSERT_EQ(0, mprotect(hole + 2 * self->page, self->page, PROT_NONE));
	refused(_metadata, self, 0, 8, -EFAULT);
	refused(_metadata, self, 0, 8000, -EFAULT);
	refused(_metadata, self, at + self->page, 8, -EFAULT);
	refused(_metadata, self, at + self->page, self->page, -EFAULT);
	refused(_metadata, self, at, 2 * self->page, -EFAULT);
	refused(_metadata, self, at + self->page - 4, 8, -EFAULT);
	refused(_metadata, self, at + 2 * self->page, 8, -EFAULT);
	refused(_metadata, self, at + 2 * self->page, self->page, -EFAULT);
#if __SIZEOF_POINTER__ == 8
	refused(_metadata, self, UINT64_MAX - 3, 8, -EOVERFLOW);
	refused(_metadata, self, UINT64_MAX - 3, 8000, -EOVERFLOW);
	refused(_metadata, self, 0xffff888000000000, 8, -EFAULT);
	refused(_metadata, self, 0xffff888000000000, 8000, -EFAULT);
	refused(_metadata, self, 0xffffffff81000000, 8000, -EFAULT);
	refused(_metadata, self, 0x4141414141414141, 8000, -EFAULT);
#endif
	EXPECT_EQ(-EINVAL, any_post(&self->p, RPOST_WR_SEND, 1, hole, 0x80000001));
	/* Nothing is lost: the queues take as much as ever. */
	EXPECT_NOTHING(&self->p.c);
	ASSERT_EQ(0, any_recv(&self->p, 2, self->peer, BUF));
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_SEND, 1, self->mem, BUF));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
	munmap(hole, self->page);
	munmap(hole + 2 * self->page, self->page);
}

TEST_F(any, read_only)
{
	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, mprotect(self->mem, BUF, PROT_READ));
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->mem, BUF));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_EQ(0, memcmp(self->mem, self->p.sbuf, BUF));
	EXPECT_EQ(-EFAULT, any_post(&self->p, RPOST_WR_RDMA_READ, 1, self->mem, 8));
	EXPECT_EQ(-EFAULT, any_post(&self->p, RPOST_WR_RDMA_READ, 1, self->mem, BUF));
	EXPECT_EQ(-EFAULT, any_recv(&self->p, 1, self->mem, BUF));
	EXPECT_EQ(3, self->mem[0]);
}

/* A range that was written to is not written to once it is read-only. */
TEST_F(any, becomes_read_only)
{
	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_RDMA_READ, 1, self->mem, BUF));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_READ);
	ASSERT_EQ(0, mprotect(self->mem, BUF, PROT_READ));
	EXPECT_EQ(-EFAULT, any_post(&self->p, RPOST_WR_RDMA_READ, 1, self->mem, BUF));
	ASSERT_EQ(0, mprotect(self->mem, BUF, PROT_NONE));
	EXPECT_EQ(-EFAULT, any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->mem, BUF));
	ASSERT_EQ(0, munmap(self->mem, BUF));
	EXPECT_EQ(-EFAULT, any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->mem, BUF));
	EXPECT_NOTHING(&self->p.c);
}

/* The same address may have other memory at the next post. */
TEST_F(any, mapped_anew)
{
	int i;

	RP_SKIP_IF_SETUP_SAID();
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(self->mem, mmap(self->mem, BUF, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
					  -1, 0));
		memset(self->mem, 'a' + i, BUF);
		ASSERT_EQ(0, any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->mem,
				      BUF));
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
		EXPECT_TRUE(all_bytes(self->p.sbuf, BUF, 'a' + i));
	}
}

/* A message goes to the pages that were there at the post, and to no others. */
TEST_F(any, unmapped_in_flight)
{
	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, any_recv(&self->p, 2, self->peer, BUF));
	ASSERT_EQ(0, munmap(self->peer, BUF));
	ASSERT_EQ(self->peer, mmap(self->peer, BUF, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memset(self->peer, 'n', BUF);
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_SEND, 1, self->mem, BUF));
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_SEND);
	EXPECT_DONE(&self->p.s, 2, RPOST_WC_RECV);
	EXPECT_TRUE(all_bytes(self->peer, BUF, 'n'));
}

TEST_F(any, queue_full)
{
	int i, n, round;

	RP_SKIP_IF_SETUP_SAID();
	for (round = 0; round < 3; round++) {
		for (n = 0; n < RP_DEPTH; n++)
			ASSERT_EQ(0, any_recv(&self->p, n, self->peer, BUF));
		EXPECT_EQ(-ENOMEM, any_recv(&self->p, n, self->peer, BUF));
		EXPECT_EQ(-ENOMEM, any_recv(&self->p, n, self->peer + 8, 10000));
		for (n = 0; n < RP_DEPTH; n++)
			ASSERT_EQ(0, any_post(&self->p, RPOST_WR_SEND, n,
					      self->mem + n * 8, 5000));
		EXPECT_EQ(-ENOMEM, any_post(&self->p, RPOST_WR_SEND, n, self->mem,
					    8000));
		EXPECT_EQ(-ENOMEM, any_post(&self->p, RPOST_WR_SEND, n, self->mem,
					    8));
		for (i = 0; i < n; i++) {
			EXPECT_DONE(&self->p.c, (uint64_t)i, RPOST_WC_SEND);
			EXPECT_DONE(&self->p.s, (uint64_t)i, RPOST_WC_RECV);
		}
	}
}

/* Receives that are outstanding end with the queue pair. */
TEST_F(any, flushed)
{
	int i;

	RP_SKIP_IF_SETUP_SAID();
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, any_recv(&self->p, i, self->peer + i * 16, 20000));
	ASSERT_EQ(0, rp_disconnect(self->p.s.fd, self->p.s.id));
	for (i = 0; i < RP_DEPTH; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->p.s.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	}
}

TEST_F(any, destroyed)
{
	int i;

	RP_SKIP_IF_SETUP_SAID();
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, any_recv(&self->p, i, self->peer + i * 16, 20000));
	ASSERT_EQ(0, rp_leave(&self->p.s));
}

TEST_F(any, closed)
{
	int i;

	RP_SKIP_IF_SETUP_SAID();
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, any_recv(&self->p, i, self->peer + i * 16, 20000));
}

TEST_F(any, removed)
{
	int i;

	RP_SKIP_IF_SETUP_SAID();
	RP_NEED_REMOVAL();
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, any_recv(&self->p, i, self->peer + i * 16, 20000));
	ASSERT_EQ(0, rp_remove_device());
	EXPECT_EQ(-ENODEV, any_recv(&self->p, i, self->peer, BUF));
	EXPECT_EQ(self->pinned, rp_pinned_soon(self->pinned));
	ASSERT_EQ(0, rp_add_device());
}

/* The memory is that of the process that posts, not that of the opener. */
TEST_F(any, shared_descriptor)
{
	pid_t pid;
	int status;

	RP_SKIP_IF_SETUP_SAID();
	memset(self->mem, 'p', BUF);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		memset(self->mem, 'c', BUF);
		CHILD_CHECK(!any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->mem,
				      BUF));
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
	EXPECT_TRUE(all_bytes(self->p.sbuf, BUF, 'c'));
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_RDMA_WRITE, 2, self->mem, BUF));
	EXPECT_DONE(&self->p.c, 2, RPOST_WC_RDMA_WRITE);
	EXPECT_TRUE(all_bytes(self->p.sbuf, BUF, 'p'));
}

/* The memory of a process that has been killed with a receive comes back. */
TEST_F(any, killed)
{
	long pages = rp_debug_number("objects", "pinned_pages");
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int pipefd[2], status;
	char c;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct rp_end a, b;

		CHILD_CHECK(!rp_connect_pair(&a, &b, ANY));
		CHILD_CHECK(!rp_post_recv(&a, 1, self->peer, BUF, 0));
		CHILD_CHECK(write(pipefd[1], "", 1) == 1);
		pause();
	}
	ASSERT_EQ(1, read(pipefd[0], &c, 1));
	EXPECT_LE(pages + BUF / (long)self->page,
		  rp_debug_number("objects", "pinned_pages"));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	while (rp_debug_number("objects", "pinned_pages") != pages &&
	       rp_now_ms() < end)
		usleep(1000);
	EXPECT_EQ(pages, rp_debug_number("objects", "pinned_pages"));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_F(any, memlock)
{
	struct rlimit limit = { 0, 0 };
	int status;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
		CHILD_CHECK(!rp_become(NOBODY));
		CHILD_CHECK(any_post(&self->p, RPOST_WR_RDMA_WRITE, 1,
				     self->mem + 4096, 8000) == -ENOBUFS);
		CHILD_CHECK(!any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->mem,
				      RP_INLINE));
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
}

/* ------------------------------------------------- other threads */

struct poster {
	struct post_pair *p;
	char *to;
	int ret;
};

static void *post_one_recv(void *arg)
{
	struct poster *poster = arg;

	poster->ret = any_recv(poster->p, 1, poster->to, 4096);
	return NULL;
}

/* A post that waits for a page holds up neither the queue pair's end nor removal. */
TEST_F(any, page_does_not_come)
{
	char *p = rp_pages(self->page);
	int fd = fault_fd(p, self->page, O_NONBLOCK);
	struct poster poster = { &self->p, p, 0 };
	struct uffdio_zeropage zero = { .range = { (uintptr_t)p, self->page } };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	pthread_t thread;

	RP_SKIP_IF_SETUP_SAID();
	if (fd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, pthread_create(&thread, NULL, post_one_recv, &poster));
	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_QP, self->p.s.qp));
	if (rp_can_remove()) {
		EXPECT_EQ(0, rp_remove_device());
		EXPECT_EQ(0, rp_add_device());
	}
	ASSERT_EQ(0, ioctl(fd, UFFDIO_ZEROPAGE, &zero));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-ENOENT, poster.ret);
	close(fd);
}

/* Whatever changes meanwhile, a post fails as a whole or works as a whole. */
TEST_F(any, changed_while_posted)
{
	struct change c = { .p = rp_pages(8 * self->page), .page = self->page };
	uint64_t end = rp_now_ms() + 500, last = rp_now_ms() + TEST_CHANCE_MS;
	unsigned int good = 0, bad = 0, i = 0;
	pthread_t thread;
	int ret;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, pthread_create(&thread, NULL, change_mappings, &c));
	while (rp_now_ms() < end ||
	       ((!good || !bad || !__atomic_load_n(&c.rounds, __ATOMIC_RELAXED)) &&
		rp_now_ms() < last)) {
		ret = any_post(&self->p, i++ % 2 ? RPOST_WR_RDMA_READ :
			       RPOST_WR_RDMA_WRITE, 1, c.p, 8 * self->page);
		if (ret) {
			ASSERT_EQ(-EFAULT, ret);
			bad++;
			continue;
		}
		good++;
		ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_LT(0, c.rounds);
	munmap(c.p, 8 * self->page);
	RP_SKIP_UNMET(good && bad, "%u good, %u bad", good, bad);
}

/* ------------------------------------------------- signals and states */

FIXTURE(plain) {
	struct post_pair p;
	struct rpost_wc wc;
	long pinned;
};

FIXTURE_SETUP(plain)
{
	self->pinned = rp_pinned();
}

FIXTURE_TEARDOWN(plain)
{
	post_pair_close(&self->p);
	EXPECT_EQ(self->pinned, rp_pinned_soon(self->pinned));
}

/* Sends without a completion of their own release their memory later. */
TEST_F(plain, unsignaled)
{
	struct rp_send send;
	char *mem = rp_pages(BUF);
	int i;

	ASSERT_EQ(0, post_pair_init(&self->p, BUF, RPOST_QP_ANY_MEMORY));
	memset(mem, 'u', BUF);
	for (i = 1; i <= 100; i++) {
		send = any_op(&self->p, RPOST_WR_RDMA_WRITE, i,
			      mem + i * 64, 20000);
		if (i % 10)
			send.wr.send_flags = 0;
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
		if (i % 10)
			continue;
		EXPECT_DONE(&self->p.c, (uint64_t)i, RPOST_WC_RDMA_WRITE);
	}
	/* The last ones are released with the queue pair. */
	for (i = 0; i < 3; i++) {
		send = any_op(&self->p, RPOST_WR_RDMA_WRITE, i, mem + i * 64, 20000);
		send.wr.send_flags = 0;
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	}
	EXPECT_TRUE(all_bytes(self->p.sbuf, 20000, 'u'));
}

/* However large the queue is: a completion must not have to release much. */
TEST_F(plain, unsignaled_in_a_large_queue)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	size_t page = getpagesize(), bytes = 16 * page;
	char *first = rp_pages(bytes), *mem = rp_pages(bytes);
	int i, depth = rp_depth;
	struct rp_send send;
	long before;

	rp_depth = 1000;
	ASSERT_EQ(0, post_pair_init(&self->p, bytes, RPOST_QP_ANY_MEMORY));
	rp_depth = depth;
	before = rp_pinned();
	for (i = 0; i < 100; i++) {
		send = any_op(&self->p, RPOST_WR_RDMA_WRITE, i, i ? mem : first, bytes);
		send.wr.send_flags = 0;
		ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
	}
	if (rp_pinned() != before + 2 * (long)bytes)
		SKIP(return, "the device's regions cannot be kept");
	ASSERT_EQ(0, munmap(first, bytes));
	while (rp_pinned() != before + (long)bytes && rp_now_ms() < end)
		ASSERT_EQ(0, rp_poll_cq(&self->p.c.cq, &self->wc));
	EXPECT_EQ(before + (long)bytes, rp_pinned());
}

/* Without the flag 0 is a bad key. */
TEST_F(plain, not_opted_in)
{
	ASSERT_EQ(0, post_pair_init(&self->p, BUF, 0));
	ASSERT_EQ(0, any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, self->p.cbuf, 8));
	ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status);
}

static int create_any(struct rp_end *end)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd), .flags = RPOST_QP_ANY_MEMORY, .pd = end->pd,
		.send_cq = end->cq.cmd.handle, .recv_cq = end->cq.cmd.handle,
		.max_send_wr = RP_DEPTH, .max_recv_wr = RP_DEPTH,
		.max_send_sge = 1, .max_recv_sge = 1, .qp_type = RPOST_QPT_RC,
	};
	int ret = rp_ioctl(end->fd, RPOST_IOC_CREATE_QP, &cmd);

	end->qp = cmd.handle;
	end->qp_num = cmd.qp_num;
	return ret;
}

/* RESET drops work requests, and what they use. */
TEST_F(plain, reset)
{
	struct rp_end *end = &self->p.s;
	char *mem = rp_pages(BUF);
	int i, round;

	ASSERT_EQ(0, rp_end_init(&self->p.c));
	ASSERT_EQ(0, rp_end_init(end));
	RP_SKIP_IWARP(end->fd, "queue pairs without ids");
	ASSERT_EQ(0, create_any(end));
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, rp_bring_up(end, RPOST_QPT_RC, RP_NO_QPN));
		for (i = 0; i < RP_DEPTH; i++)
			ASSERT_EQ(0, rp_post_recv(end, i, mem + i * 16, 20000, 0));
		EXPECT_EQ(-ENOMEM, rp_post_recv(end, i, mem, 20000, 0));
		ASSERT_EQ(0, rp_move(end, RPOST_QPS_RESET));
	}
	munmap(mem, BUF);
	EXPECT_EQ(self->pinned, rp_pinned_soon(self->pinned));
}

/* ------------------------------------------------------- kinds of memory */

FIXTURE(kind) {
	struct post_pair p;
	struct rpost_wc wc;
	long pinned;
};

FIXTURE_VARIANT(kind) {
	struct kind kind;
};

KINDS(KIND_VARIANT)

FIXTURE_SETUP(kind)
{
	self->pinned = rp_pinned();
	ASSERT_EQ(0, post_pair_init(&self->p, 8192, ANY));
	post_pair_fill(&self->p);
}

FIXTURE_TEARDOWN(kind)
{
	post_pair_close(&self->p);
	EXPECT_EQ(self->pinned, rp_pinned_soon(self->pinned));
}

/* The errno of a post, which pins nothing that the program cannot access. */
static int post_errno(const struct kind *k, bool write)
{
	return k->make == kind_none ? EFAULT : kind_errno(k, write);
}

TEST_F(kind, posted)
{
	const struct kind *k = &variant->kind;
	int from = post_errno(k, false), into = post_errno(k, true);
	size_t bytes = k->bytes < 8192 ? k->bytes : 8192;
	const char *reason;
	char *p;

	p = kind_make(k, &reason);
	if (!p)
		SKIP(return, "%s", reason);
	EXPECT_EQ(-from, any_post(&self->p, RPOST_WR_RDMA_WRITE, 1, p, bytes));
	if (!from) {
		EXPECT_DONE(&self->p.c, 1, RPOST_WC_RDMA_WRITE);
		if (!k->no_loads)
			EXPECT_EQ(0, memcmp(p, self->p.sbuf, bytes));
	}
	memset(self->p.sbuf, 'r', bytes);
	/* The stack is in use. */
	if (k->make != kind_stack)
		EXPECT_EQ(-into, any_post(&self->p, RPOST_WR_RDMA_READ, 2, p, bytes));
	if (k->make != kind_stack && !into) {
		EXPECT_DONE(&self->p.c, 2, RPOST_WC_RDMA_READ);
		if (!k->no_loads)
			EXPECT_TRUE(all_bytes(p, bytes, 'r'));
	}
	EXPECT_EQ(-into, any_recv(&self->p, 3, p, bytes));
	EXPECT_NOTHING(&self->p.c);
	if (kind_is_huge(k)) {
		EXPECT_EQ(0, munmap(p, k->bytes));
		huge_pages(-1);
	}
}

TEST_HARNESS_MAIN
