// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests ADVISE_MR: which keys and ranges it takes, what becomes present, and
 * that nothing waits for a command that waits for a page.  A failure means that
 * a driver is given a key that it does not expect, that a program's page holds
 * others up, or that a command cannot be killed.
 *
 * Lengths, flags and reserved fields are tested for all commands in abi.c.  The
 * module parameter is the host's, so this needs root and no other test beside
 * it.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "odp_pair.h"
#include "race.h"

#define FLUSH	RPOST_ADVISE_FLUSH

FIXTURE(advise) {
	struct odp_pair p;
};

FIXTURE_SETUP(advise)
{
	ASSERT_EQ(0, odp_pair_init(&self->p));
	rp_mute = true;
}

FIXTURE_TEARDOWN(advise)
{
	EXPECT_EQ(0, odp_pair_close(&self->p));
}

static int advise(int fd, uint32_t pd, uint32_t advice, uint32_t flags,
		  const struct rpost_sge *sges, uint32_t n)
{
	struct rpost_advise_mr cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.pd = pd,
		.advice = advice,
		.sges = (uintptr_t)sges,
		.num_sge = n,
	};

	return rp_ioctl(fd, RPOST_IOC_ADVISE_MR, &cmd);
}

static int advise_one(struct odp_pair *p, uint32_t advice, uint32_t flags,
		      const void *addr, uint32_t length, uint32_t lkey)
{
	struct rpost_sge sge = {
		.addr = (uintptr_t)addr, .length = length, .lkey = lkey,
	};

	return advise(p->a.fd, p->a.pd, advice, flags, &sge, 1);
}

/* Works on every device, since no device has such a region. */
TEST_F(advise, bad_calls)
{
	struct odp_pair *p = &self->p;
	struct rpost_sge sges[RPOST_MAX_ADVISE_SGE] = {};

	EXPECT_EQ(-EFAULT, advise(p->a.fd, p->a.pd, 0, 0, NULL, 1));
	EXPECT_EQ(-EFAULT, advise(p->a.fd, p->a.pd, 0, 0, sges,
				  RPOST_MAX_ADVISE_SGE));
}

/* Each key that is not one of a region on demand of the domain. */
TEST_F(advise, keys)
{
	struct odp_pair *p = &self->p;
	struct rpost_reg_mr plain, other, gone;
	char *mem = p->amem;
	uint32_t pd, advice;

	NEED_ODP(p);
	ASSERT_EQ(0, rp_reg_mr(p->a.fd, p->a.pd, mem, p->page,
			       RPOST_ACCESS_LOCAL_WRITE, &plain));
	ASSERT_EQ(0, rp_alloc_pd(p->a.fd, p->a.device, &pd));
	ASSERT_EQ(0, rp_reg_mr(p->a.fd, pd, mem, p->page, ODP_RW, &other));
	ASSERT_EQ(0, rp_reg_mr(p->a.fd, p->a.pd, mem, p->page, ODP_RW, &gone));
	ASSERT_EQ(0, rp_destroy(p->a.fd, RPOST_OBJ_MR, gone.handle));
	for (advice = 0; advice < 3; advice++) {
		EXPECT_EQ(-EFAULT, advise_one(p, advice, 0, mem, 8, 0));
		EXPECT_EQ(-EFAULT, advise_one(p, advice, 0, mem, 8, plain.lkey));
		EXPECT_EQ(-EFAULT, advise_one(p, advice, 0, mem, 8, other.lkey));
		EXPECT_EQ(-EFAULT, advise_one(p, advice, 0, mem, 8, gone.lkey));
		EXPECT_EQ(-EFAULT, advise_one(p, advice, 0, p->bmem, 8,
					      p->bmr.lkey));
		EXPECT_EQ(-EFAULT, advise_one(p, advice, 0, mem, 8,
					      p->amr.lkey ^ 1));
		EXPECT_EQ(0, advise_one(p, advice, 0, mem, 8, p->amr.lkey));
	}
}

TEST_F(advise, ranges)
{
	struct odp_pair *p = &self->p;
	size_t bytes = ODP_PAGES * p->page;
	uint32_t key = p->amr.lkey, flags;

	NEED_ODP(p);
	for (flags = 0; flags <= FLUSH; flags += FLUSH) {
		EXPECT_EQ(-EFAULT, advise_one(p, 0, flags, p->amem - 1, 8, key));
		EXPECT_EQ(-EFAULT, advise_one(p, 0, flags, p->amem, bytes + 1, key));
		EXPECT_EQ(-EFAULT, advise_one(p, 0, flags, p->amem + bytes, 0, key));
		/* An int of rxe's would be negative. */
		EXPECT_EQ(-EFAULT, advise_one(p, 0, flags, p->amem, ~0u, key));
		EXPECT_EQ(-EFAULT, advise_one(p, 0, flags, p->amem, 1u << 31, key));
		EXPECT_EQ(-EFAULT, advise_one(p, 0, flags, NULL, 8, key));
		EXPECT_EQ(-EFAULT, advise_one(p, 0, flags, (void *)-8ul, 16, key));
	}
	EXPECT_EQ(0, advise_one(p, 0, FLUSH, p->amem, 0, key));
	EXPECT_EQ(0, odp_present(p->amem, ODP_PAGES));
	EXPECT_EQ(0, advise_one(p, 0, FLUSH, p->amem, bytes, key));
	EXPECT_EQ(0, advise_one(p, 0, FLUSH, p->amem + bytes - 1, 1, key));
	EXPECT_EQ(ODP_PAGES, odp_present(p->amem, ODP_PAGES));
}

/* A bad entry anywhere: nothing becomes present. */
TEST_F(advise, one_bad_of_many)
{
	struct odp_pair *p = &self->p;
	struct rpost_sge sges[RPOST_MAX_ADVISE_SGE];
	unsigned int i;

	NEED_ODP(p);
	for (i = 0; i < RPOST_MAX_ADVISE_SGE; i++)
		sges[i] = (struct rpost_sge) {
			.addr = (uintptr_t)p->amem + i % ODP_PAGES * p->page,
			.length = 1 + i, .lkey = p->amr.lkey,
		};
	sges[i - 1].lkey ^= 1;
	EXPECT_EQ(-EFAULT, advise(p->a.fd, p->a.pd, 1, 0, sges, i));
	EXPECT_EQ(0, odp_present(p->amem, ODP_PAGES));
	EXPECT_EQ(0, advise(p->a.fd, p->a.pd, 1, FLUSH, sges, i - 1));
	EXPECT_EQ(ODP_PAGES, odp_present(p->amem, ODP_PAGES));
}

TEST_F(advise, makes_present)
{
	struct odp_pair *p = &self->p;
	uint32_t key = p->amr.lkey;
	struct rp_send send;

	NEED_ODP(p);
	/* Only looks. */
	EXPECT_EQ(0, advise_one(p, 2, FLUSH, p->amem, 4 * p->page, key));
	EXPECT_EQ(0, odp_present(p->amem, ODP_PAGES));
	EXPECT_EQ(0, advise_one(p, 0, 0, p->amem, 1, key));
	EXPECT_EQ(1, odp_present(p->amem, ODP_PAGES));
	EXPECT_EQ(0, advise_one(p, 1, 0, p->amem + 2 * p->page, p->page + 1, key));
	EXPECT_EQ(3, odp_present(p->amem, ODP_PAGES));
	EXPECT_EQ(0, advise_one(p, 2, 0, p->amem, ODP_PAGES * p->page, key));
	EXPECT_EQ(3, odp_present(p->amem, ODP_PAGES));
	memset(p->amem + 2 * p->page, 'p', 64);
	send = odp_op(p, RPOST_WR_RDMA_WRITE, 2 * p->page, 0, 64);
	ASSERT_EQ(0, odp_run(p, &send));
	EXPECT_TRUE(all_bytes(p->bmem, 64, 'p'));
}

TEST_F(advise, memory_without_the_access)
{
	struct odp_pair *p = &self->p;
	uint32_t key = p->amr.lkey;
	struct rpost_reg_mr mr;

	NEED_ODP(p);
	ASSERT_EQ(0, munmap(p->amem + p->page, p->page));
	EXPECT_EQ(-EFAULT, advise_one(p, 0, FLUSH, p->amem, 2 * p->page, key));
	EXPECT_EQ(0, advise_one(p, 0, 0, p->amem, 2 * p->page, key));
	ASSERT_EQ(0, mprotect(p->amem, p->page, PROT_READ));
	EXPECT_EQ(-EFAULT, advise_one(p, 1, FLUSH, p->amem, 8, key));
	EXPECT_EQ(0, advise_one(p, 1, 0, p->amem, 8, key));
	EXPECT_EQ(0, advise_one(p, 0, FLUSH, p->amem, 8, key));
	/* A region that cannot be written to. */
	ASSERT_EQ(0, rp_reg_mr(p->a.fd, p->a.pd, p->amem, p->page, ODP, &mr));
	EXPECT_EQ(-EFAULT, advise_one(p, 1, 0, p->amem, 8, mr.lkey));
	EXPECT_EQ(0, advise_one(p, 0, 0, p->amem, 8, mr.lkey));
}

/* Memory of another process is not made present, here or there. */
TEST_F(advise, another_process)
{
	struct odp_pair *p = &self->p;
	int status;
	pid_t pid;

	NEED_ODP(p);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(advise_one(p, 1, FLUSH, p->amem, 8, p->amr.lkey) ==
			    -EFAULT);
		CHILD_CHECK(advise_one(p, 2, 0, p->amem, 8, p->amr.lkey) ==
			    -EFAULT);
		CHILD_CHECK(!odp_present(p->amem, ODP_PAGES));
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, odp_present(p->amem, ODP_PAGES));
}

/* ------------------------------------------- a page that does not come */

static int watch(const void *page, size_t bytes)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uintptr_t)page, bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api) ||
	    ioctl(uffd, UFFDIO_REGISTER, &reg))
		return -1;
	return uffd;
}

struct waiting {
	struct odp_pair *p;
	uint32_t flags;
	int ret;
};

static void *wait_for_page(void *arg)
{
	struct waiting *w = arg;

	w->ret = advise_one(w->p, 0, w->flags, w->p->amem, 8, w->p->amr.lkey);
	return NULL;
}

/*
 * A command waits for a page.  The region, the domain and the device go
 * meanwhile, and the command ends when the page comes.
 */
TEST_F(advise, nobody_waits_for_it)
{
	struct odp_pair *p = &self->p;
	struct waiting w = { .p = p, .flags = FLUSH };
	struct uffdio_zeropage zero = {
		.range = { (uintptr_t)p->amem, p->page },
	};
	pthread_t thread;
	int uffd;

	NEED_ODP(p);
	RP_NEED_REMOVAL();
	uffd = watch(p->amem, p->page);
	ASSERT_LE(0, uffd);
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_page, &w));
	ASSERT_TRUE(rp_readable(uffd, TEST_TIMEOUT_MS));
	EXPECT_EQ(0, rp_destroy(p->a.fd, RPOST_OBJ_MR, p->amr.handle));
	EXPECT_EQ(0, rp_remove_device());
	ASSERT_EQ(EBUSY, pthread_tryjoin_np(thread, NULL));
	EXPECT_EQ(0, ioctl(uffd, UFFDIO_ZEROPAGE, &zero));
	EXPECT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-ENODEV, w.ret);
	EXPECT_EQ(0, rp_add_device());
}

TEST_F(advise, can_be_killed)
{
	struct odp_pair *p = &self->p;
	int status, uffd;
	pid_t pid, waiter;

	NEED_ODP(p);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct odp_pair own;
		struct waiting w = { .p = &own };

		CHILD_CHECK(!odp_pair_init(&own));
		uffd = watch(own.amem, own.page);
		CHILD_CHECK(uffd >= 0);
		waiter = getpid();
		if (!fork()) {
			/* Keeps userfaultfd open, and tells when it is asked. */
			if (rp_readable(uffd, TEST_TIMEOUT_MS) &&
			    getppid() == waiter)
				kill(waiter, SIGKILL);
			_exit(0);
		}
		wait_for_page(&w);
		_exit(1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(SIGKILL, WTERMSIG(status));
}

/* ------------------------------------------------------------- races */

static struct {
	struct odp_pair *p;
	uint32_t lkey;
} shared;

static int step_advise(struct race *r)
{
	(void)r;
	return advise_one(shared.p, 1, FLUSH, shared.p->amem,
			  ODP_PAGES * shared.p->page, load(&shared.lkey));
}

static int step_advise_later(struct race *r)
{
	(void)r;
	return advise_one(shared.p, 0, 0, shared.p->amem,
			  ODP_PAGES * shared.p->page, load(&shared.lkey));
}

static int step_withdraw(struct race *r)
{
	(void)r;
	return madvise(shared.p->amem, ODP_PAGES * shared.p->page,
		       MADV_DONTNEED) ? -errno : 0;
}

static int renew_region(struct race *r)
{
	struct odp_pair *p = shared.p;
	struct rpost_reg_mr mr;

	(void)r;
	RP_TRY(rp_reg_mr(p->a.fd, p->a.pd, p->amem, ODP_PAGES * p->page, ODP_RW, &mr));
	store(&shared.lkey, mr.lkey);
	usleep(200);
	return rp_destroy(p->a.fd, RPOST_OBJ_MR, mr.handle);
}

TEST_F(advise, region_goes_meanwhile)
{
	struct odp_pair *p = &self->p;
	struct race r = {};
	struct worker w[] = {
		{ .step = step_advise, .errors = { -EFAULT },
		  .succeeds = true, .fails = true },
		{ .step = step_advise_later, .errors = { -EFAULT },
		  .succeeds = true, .fails = true },
		{ .step = step_withdraw, .succeeds = true },
	};

	NEED_ODP(p);
	shared.p = p;
	EXPECT_EQ(0, run_race(&r, w, ARRAY_SIZE(w), renew_region));
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

TEST_HARNESS_MAIN
