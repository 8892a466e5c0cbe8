// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests regions on demand: that the administrator must allow them, which are
 * refused, that nothing is pinned, what the user is charged, and data in pages
 * that nobody has touched.  A failure means that the device uses wrong memory,
 * that a program gets around a limit, or that capabilities are not true.
 *
 * The module parameter is the host's, so this needs root and no other test
 * beside it.  Advice is in advise.c.
 */
#include <kselftest_harness.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../limits/user_bytes.h"
#include "odp_pair.h"

#define NOBODY		65534
#define GB		(1ul << 30)

FIXTURE(odp) {
	struct odp_pair p;
	struct rpost_wc wc;
	long pinned;
};

FIXTURE_SETUP(odp)
{
	self->pinned = rp_pinned();
	ASSERT_EQ(0, odp_pair_init(&self->p));
}

FIXTURE_TEARDOWN(odp)
{
	EXPECT_EQ(self->pinned, rp_pinned());
	EXPECT_EQ(0, odp_pair_close(&self->p));
}

static int reg(struct odp_pair *p, const void *addr, uint64_t length,
	       uint64_t iova, uint32_t access)
{
	struct rpost_reg_mr cmd = rp_mr(p->a.pd, addr, length, access);

	cmd.iova = iova;
	RP_TRY(rp_ioctl(p->a.fd, RPOST_IOC_REG_MR, &cmd));
	return rp_destroy(p->a.fd, RPOST_OBJ_MR, cmd.handle);
}

static int reg_at(struct odp_pair *p, const void *addr, uint64_t length,
		  uint32_t access)
{
	return reg(p, addr, length, (uintptr_t)addr, access);
}

static bool no_caps(const struct rpost_query_device *dev)
{
	return !dev->odp_general_caps && !dev->odp_rc_caps &&
	       !dev->odp_uc_caps && !dev->odp_ud_caps && !dev->odp_xrc_caps &&
	       !dev->odp_limits && !dev->reserved2;
}

/* ------------------------------------------------- who may, and where */

TEST_F(odp, not_allowed)
{
	struct odp_pair *p = &self->p;
	struct rpost_query_device dev;

	if (!geteuid())
		ASSERT_EQ(0, odp_allow(false));
	ASSERT_EQ(0, rp_query_device(p->a.fd, p->a.device, &dev));
	EXPECT_TRUE(no_caps(&dev));
	rp_mute = true;
	EXPECT_EQ(-EOPNOTSUPP, reg_at(p, p->amem, p->page, ODP_RW));
	EXPECT_EQ(-EOPNOTSUPP, reg_at(p, NULL, -1, ODP_RW));
	/* Others are as ever. */
	EXPECT_EQ(0, reg_at(p, p->amem, p->page, RPOST_ACCESS_LOCAL_WRITE));
	if (!p->has)
		return;
	/* Regions that were made before go on. */
	p->amem[0] = 'x';
	ASSERT_EQ(0, odp_run(p, &(struct rp_send[]) {
		odp_op(p, RPOST_WR_RDMA_WRITE, 0, 0, 1) }[0]));
	EXPECT_EQ('x', p->bmem[0]);
}

TEST_F(odp, not_the_device)
{
	struct odp_pair *p = &self->p;

	NEED_ROOT_ODP();
	if (p->has)
		SKIP(return, "the device has on-demand paging");
	EXPECT_TRUE(no_caps(&p->dev));
	rp_mute = true;
	EXPECT_EQ(-EOPNOTSUPP, reg_at(p, p->amem, p->page, ODP_RW));
	EXPECT_EQ(-EOPNOTSUPP, reg_at(p, NULL, -1, ODP_RW));
	EXPECT_EQ(0, reg_at(p, p->amem, p->page, RPOST_ACCESS_LOCAL_WRITE));
}

TEST_F(odp, capabilities)
{
	struct odp_pair *p = &self->p;

	NEED_ODP(p);
	EXPECT_EQ(RPOST_ODP_SUPPORT, p->dev.odp_general_caps);
	/* rxe: send, receive, write, read, atomic, shared receive queue. */
	EXPECT_EQ(0x3f, p->dev.odp_rc_caps & 0x3f);
	EXPECT_EQ(0x23, p->dev.odp_ud_caps & 0x23);
	EXPECT_EQ(0, p->dev.odp_uc_caps);
	EXPECT_EQ(0, p->dev.odp_xrc_caps);
}

/* Only direct registration has regions on demand. */
TEST_F(odp, not_with_fast_registration)
{
	struct odp_pair *p = &self->p;
	struct rpost_query_device dev;

	NEED_ODP(p);
	ASSERT_EQ(0, rp_set_parameter("registration", "fast"));
	rp_mute = true;
	EXPECT_EQ(-EOPNOTSUPP, reg_at(p, p->amem, p->page, ODP_RW));
	EXPECT_EQ(0, rp_query_device(p->a.fd, p->a.device, &dev));
	EXPECT_TRUE(no_caps(&dev));
	ASSERT_EQ(0, rp_set_parameter("registration", "auto"));
}

TEST_F(odp, refused)
{
	struct odp_pair *p = &self->p;
	int objects = rp_num_objects(p->a.fd);
	uint64_t at = (uintptr_t)p->amem;
	void *low = (void *)GB;
	int partly = 0;

	NEED_ODP(p);
	rp_mute = true;
	if (p->dev.odp_limits & RPOST_ODP_WHOLE_PAGES)
		partly = -EOPNOTSUPP;
	EXPECT_EQ(partly, reg_at(p, p->amem + 1, 8, ODP_RW));
	/* rxe would use its list of pages far beyond the end. */
	EXPECT_EQ(partly, reg(p, p->amem, p->page, at + p->page, ODP_RW));
	EXPECT_EQ(partly, reg(p, p->amem, p->page, at - p->page, ODP_RW));
	EXPECT_EQ(partly, reg(p, p->amem, p->page, 0, ODP_RW));

	EXPECT_EQ(-EOPNOTSUPP, reg(p, NULL, -1, 0, ODP_RW));
	EXPECT_EQ(-EINVAL, reg_at(p, p->amem, 0, ODP_RW));
	EXPECT_EQ(-EINVAL, reg_at(p, p->amem, 8, ODP | RPOST_ACCESS_REMOTE_WRITE));
	EXPECT_EQ(-EFAULT, reg_at(p, (void *)(1ul << 63), 4096, ODP_RW));
	EXPECT_EQ(-EOVERFLOW, reg_at(p, p->amem, -1, ODP_RW));
	/* Huge pages. */
	EXPECT_EQ(-EOPNOTSUPP, reg_at(p, p->amem, p->page, ODP_RW | 0x80));
	if (rp_is_rxe(p->a.fd, p->a.device)) {
		EXPECT_EQ(-EMSGSIZE, reg_at(p, low, 2 * GB, ODP_RW));
		EXPECT_EQ(-EMSGSIZE, reg_at(p, low, 4 * GB + 4096, ODP_RW));
	}
	EXPECT_EQ(objects, rp_num_objects(p->a.fd));
}

/* ------------------------------------------------- limits and charges */

/* The charge is that of an ordinary region and what the lists of pages take. */
TEST_F(odp, user_is_charged)
{
	struct odp_pair *p = &self->p;
	struct rpost_reg_mr mr;
	struct rp_end end;
	long before, limit;
	char *mem;

	NEED_ODP(p);
	mem = odp_untouched(GB);
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, rp_end_as(NOBODY, &end));
	before = user_bytes(NOBODY);
	ASSERT_EQ(0, rp_reg_mr(end.fd, end.pd, mem, GB, ODP_RW, &mr));
	EXPECT_LE(4 * MB, user_bytes(NOBODY) - before);
	EXPECT_GE(4 * MB + 16384, user_bytes(NOBODY) - before);
	EXPECT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(before, user_bytes(NOBODY));

	limit = rp_module_number("parameters/max_user_bytes");
	ASSERT_EQ(0, user_set_limit(before + 2 * MB));
	rp_mute = true;
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end.fd, end.pd, mem, GB, ODP_RW, &mr));
	EXPECT_EQ(before, user_bytes(NOBODY));
	EXPECT_EQ(0, rp_reg_mr(end.fd, end.pd, mem, GB / 4, ODP_RW, &mr));
	ASSERT_EQ(0, user_set_limit(limit));
	rp_end_close(&end);
	EXPECT_EQ(0, user_bytes(NOBODY));
}

/* Without any memory that may be locked. */
TEST_F(odp, beyond_memlock)
{
	struct odp_pair *p = &self->p;
	struct rlimit none = { 0, 0 };
	struct rpost_reg_mr mr;
	struct rp_send send;
	size_t i;

	NEED_ODP(p);
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &none));
	ASSERT_EQ(0, rp_become(NOBODY));
	rp_mute = true;
	EXPECT_EQ(-EPERM, reg_at(p, p->amem, p->page, RPOST_ACCESS_LOCAL_WRITE));
	EXPECT_EQ(0, rp_reg_mr(p->a.fd, p->a.pd, p->amem, ODP_PAGES * p->page,
			       ODP_ALL, &mr));
	EXPECT_EQ(self->pinned, rp_pinned());
	p->amr = mr;
	for (i = 0; i < ODP_PAGES; i++) {
		memset(p->amem + i * p->page, 'a' + i, 256);
		send = odp_op(p, RPOST_WR_RDMA_WRITE, i * p->page, i * p->page,
			      256);
		ASSERT_EQ(0, odp_run(p, &send));
		EXPECT_TRUE(all_bytes(p->bmem + i * p->page, 256, 'a' + i));
	}
	ASSERT_EQ(0, rp_become(0));
}

/* ------------------------------------------------------------ data */

TEST_F(odp, send_and_receive)
{
	struct odp_pair *p = &self->p;
	struct rp_send send;
	size_t at = 3 * p->page;

	NEED_ODP(p);
	memset(p->amem + at, 'm', 200);
	EXPECT_EQ(0, odp_present(p->bmem, ODP_PAGES));
	ASSERT_EQ(0, rp_post_recv(&p->b, 7, p->bmem + p->page, 256, p->bmr.lkey));
	send = odp_op(p, RPOST_WR_SEND, at, 0, 200);
	ASSERT_EQ(0, odp_run(p, &send));
	ASSERT_EQ(1, rp_wait_cq(&p->b.cq, &self->wc));
	EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(7, self->wc.wr_id);
	EXPECT_EQ(200, self->wc.byte_len);
	EXPECT_EQ(1, odp_present(p->bmem, ODP_PAGES));
	EXPECT_TRUE(all_bytes(p->bmem + p->page, 200, 'm'));
	EXPECT_TRUE(all_bytes(p->bmem + p->page + 200, 56, 0));
}

TEST_F(odp, write_and_read)
{
	struct odp_pair *p = &self->p;
	struct rp_send send;

	NEED_ODP(p);
	memset(p->amem, 'w', 128);
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 0, 2 * p->page, 128);
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->bmem + 2 * p->page, 128, 'w'));

	/* Into memory that was not touched, from such memory. */
	send = odp_op(p, RPOST_WR_RDMA_READ, 5 * p->page, 2 * p->page, 128);
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->amem + 5 * p->page, 128, 'w'));
	send = odp_op(p, RPOST_WR_RDMA_READ, 5 * p->page, 9 * p->page, 128);
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->amem + 5 * p->page, 128, 0));
}

TEST_F(odp, atomic)
{
	struct odp_pair *p = &self->p;
	size_t at = 4 * p->page + 64;
	uint64_t *word = (void *)(p->bmem + at);
	uint64_t *old = (void *)p->amem;
	struct rp_send send;

	NEED_ODP(p);
	send = odp_op(p, RPOST_WR_ATOMIC_FETCH_AND_ADD, 0, at, 8);
	send.wr.compare_add = 5;
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_EQ(0, *old);
	EXPECT_EQ(5, *word);
	send = odp_op(p, RPOST_WR_ATOMIC_CMP_AND_SWP, 0, at, 8);
	send.wr.compare_add = 5;
	send.wr.swap = 99;
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_EQ(5, *old);
	EXPECT_EQ(99, *word);
}

/*
 * Data at another place than the beginning of a page goes there, or the device
 * says that it does not.
 */
TEST_F(odp, limits_are_true)
{
	struct odp_pair *p = &self->p;
	struct rp_send send;
	bool whole, right;

	NEED_ODP(p);
	whole = p->dev.odp_limits & RPOST_ODP_WHOLE_PAGES;
	memset(p->amem, '-', p->page);
	memset(p->bmem, '=', p->page);
	memset(p->amem + 1024, 'x', 64);
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 1024, 2048, 64);
	ASSERT_EQ(0, odp_run(p, &send));
	right = all_bytes(p->bmem + 2048, 64, 'x') &&
		all_bytes(p->bmem, 2048, '=');
	EXPECT_EQ(!whole, right);
	/* Nothing else but the page is touched. */
	EXPECT_TRUE(all_bytes(p->bmem + p->page, p->page, 0));
}

/* ------------------------------------------------- memory that goes */

TEST_F(odp, memory_is_unmapped)
{
	struct odp_pair *p = &self->p;
	struct rp_send send;

	NEED_ODP(p);
	memset(p->amem, 'u', 64);
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 0, 0, 64);
	ASSERT_EQ(0, odp_run(p, &send));
	/* Other memory takes the place: the device follows. */
	ASSERT_EQ(p->bmem, mmap(p->bmem, p->page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->bmem, 64, 'u'));
	ASSERT_EQ(0, munmap(p->bmem, p->page));
	EXPECT_NE(0, odp_run(p, &send));
}

TEST_F(odp, memory_becomes_read_only)
{
	struct odp_pair *p = &self->p;
	struct rp_send send = {};

	NEED_ODP(p);
	memset(p->amem, 'r', 64);
	memset(p->bmem, 'o', 64);
	ASSERT_EQ(0, mprotect(p->bmem, p->page, PROT_READ));
	send = odp_op(p, RPOST_WR_RDMA_READ, p->page, 0, 64);
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->amem + p->page, 64, 'o'));
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 0, 0, 64);
	EXPECT_NE(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->bmem, 64, 'o'));
}

static void say(const int *pipefd)
{
	if (write(pipefd[1], "x", 1) != 1)
		_exit(99);
}

static bool hear(const int *pipefd)
{
	char byte;

	return rp_readable(pipefd[0], TEST_TIMEOUT_MS) &&
	       read(pipefd[0], &byte, 1) == 1;
}

/* fork() makes the memory copy on write; the region stays the parent's. */
TEST_F(odp, fork_copies)
{
	struct odp_pair *p = &self->p;
	int status, done[2], go[2];
	struct rp_send send;
	pid_t pid;

	NEED_ODP(p);
	ASSERT_EQ(0, pipe(done));
	ASSERT_EQ(0, pipe(go));
	memset(p->amem, '1', 64);
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 0, 0, 64);
	ASSERT_EQ(0, odp_run(p, &send));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(all_bytes(p->bmem, 64, '1'));
		memset(p->amem, '2', 64);
		memset(p->bmem, '3', 64);
		say(done);
		CHILD_CHECK(hear(go));
		CHILD_CHECK(all_bytes(p->bmem, 64, '3'));
		_exit(0);
	}
	ASSERT_TRUE(hear(done));
	EXPECT_TRUE(all_bytes(p->bmem, 64, '1'));
	memset(p->amem, '4', 64);
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->bmem, 64, '4'));
	say(go);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/*
 * A process that got the file registers its memory, and goes.  Until then, the
 * device uses its memory, afterwards nobody's.
 */
TEST_F(odp, process_has_gone)
{
	struct odp_pair *p = &self->p;
	int status, done[2], go[2];
	struct rpost_reg_mr *mr;
	struct rp_send send;
	pid_t pid;

	NEED_ODP(p);
	ASSERT_EQ(0, pipe(done));
	ASSERT_EQ(0, pipe(go));
	mr = mmap(NULL, p->page, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, mr);
	memset(p->amem, 'p', 64);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		memset(p->amem, 'c', 64);
		CHILD_CHECK(!rp_reg_mr(p->a.fd, p->a.pd, p->amem, p->page,
				       ODP_ALL, mr));
		say(done);
		_exit(!hear(go));
	}
	ASSERT_TRUE(hear(done));
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 0, 0, 64);
	send.sge.lkey = mr->lkey;
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->bmem, 64, 'c'));
	say(go);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 2 * p->page, p->page, 64);
	send.sge.lkey = mr->lkey;
	send.sge.addr = (uintptr_t)p->amem;
	EXPECT_NE(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->bmem + p->page, 64, 0));
	EXPECT_EQ(0, rp_destroy(p->a.fd, RPOST_OBJ_MR, mr->handle));
}

/* A process dies while the device reads and writes its memory. */
TEST_F(odp, killed_with_traffic)
{
	struct odp_pair *p = &self->p;
	struct rpost_query query = { .size = sizeof(query) };
	int status, ready[2];
	struct rp_send send;
	unsigned int i;
	char byte;
	pid_t pid;

	NEED_ODP(p);
	ASSERT_EQ(0, pipe(ready));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct odp_pair own;

		CHILD_CHECK(!odp_pair_init(&own));
		for (i = 0;; i++) {
			send = odp_op(&own, RPOST_WR_RDMA_WRITE,
				      i % ODP_PAGES * own.page,
				      (i + 5) % ODP_PAGES * own.page, 256);
			CHILD_CHECK(!odp_run(&own, &send));
			madvise(own.bmem, ODP_PAGES * own.page, MADV_DONTNEED);
			if (i == 20)
				CHILD_CHECK(write(ready[1], "x", 1) == 1);
		}
	}
	close(ready[1]);
	EXPECT_EQ(1, read(ready[0], &byte, 1));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(0, rp_ioctl(p->a.fd, RPOST_IOC_QUERY, &query));
}

TEST_F(odp, device_is_removed)
{
	struct odp_pair *p = &self->p;
	struct rp_send send;

	NEED_ODP(p);
	RP_NEED_REMOVAL();
	memset(p->amem, 'd', 64);
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 0, 0, 64);
	ASSERT_EQ(0, odp_run(p, &send));
	ASSERT_EQ(0, rp_remove_device());
	rp_mute = true;
	EXPECT_EQ(-ENODEV, reg_at(p, p->amem, p->page, ODP_RW));
	EXPECT_EQ(0, rp_destroy(p->a.fd, RPOST_OBJ_MR, p->amr.handle));
	ASSERT_EQ(0, rp_add_device());
}

TEST_HARNESS_MAIN
