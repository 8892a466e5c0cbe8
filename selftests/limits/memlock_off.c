// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests memlock=0: RLIMIT_MEMLOCK does not bound registered memory, but max_user_pinned and
 * the memory cgroup do.  A failure means that a program cannot register what it may, or can
 * pin what belongs to others.
 */
#include <kselftest_harness.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "rpost_test.h"

#define NOBODY	65534
#define MB	(1 << 20)
#define REGION	MB
#define REGIONS	16

static const struct cgroup parameters = {
	.path = "/sys/module/rdma_post/parameters",
};

FIXTURE(off) {
	const char *skip;
	char way[16], most[32];
};

FIXTURE_VARIANT(off) {
	const char *way;
};

FIXTURE_VARIANT_ADD(off, direct) { "direct" };
FIXTURE_VARIANT_ADD(off, fast) { "fast" };

FIXTURE_SETUP(off)
{
	struct rpost_reg_mr mr;
	struct rp_end end;

	if (geteuid()) {
		self->skip = "not root";
		return;
	}
	ASSERT_EQ(0, cg_read(&parameters, "registration", self->way, sizeof(self->way)));
	ASSERT_EQ(0, cg_read(&parameters, "max_user_pinned", self->most, sizeof(self->most)));
	ASSERT_EQ(0, rp_set_parameter("registration", variant->way));
	ASSERT_EQ(0, rp_end_init(&end));
	if (rp_reg_mr(end.fd, end.pd, rp_pages(1), 1, 0, &mr) == -EOPNOTSUPP)
		self->skip = "the driver cannot register this way";
	rp_end_close(&end);
	ASSERT_EQ(0, rp_set_parameter("memlock", "0"));
	ASSERT_EQ(0, rp_set_parameter("max_user_pinned", "20971520"));
}

FIXTURE_TEARDOWN(off)
{
	if (geteuid())
		return;
	EXPECT_EQ(0, rp_set_parameter("memlock", "1"));
	EXPECT_EQ(0, rp_set_parameter("max_user_pinned", self->most));
	EXPECT_EQ(0, rp_set_parameter("registration", self->way));
}

/* Give up root, and the right to lock more than a page. */
static int become_nobody(void)
{
	const struct rlimit limit = { 4096, 4096 };

	RP_TRY(setrlimit(RLIMIT_MEMLOCK, &limit));
	return setresuid(NOBODY, NOBODY, NOBODY) ? -errno : 0;
}

/* Register @num regions.  Return how many were. */
static int reg_regions(const struct rp_end *end, char *mem, int num, struct rpost_reg_mr *mr)
{
	int i;

	for (i = 0; i < num; i++)
		if (rp_reg_mr(end->fd, end->pd, mem + i * REGION, REGION,
			      RPOST_ACCESS_LOCAL_WRITE, &mr[i]))
			break;
	return i;
}

/* In a child, which has given up root. */
static int more_than_memlock(void)
{
	struct rpost_reg_mr mr[REGIONS + 8];
	char *mem = rp_pages(ARRAY_SIZE(mr) * REGION);
	struct rp_end end, other;

	RP_TRY(become_nobody());
	RP_TRY(rp_end_init(&end));
	if (reg_regions(&end, mem, REGIONS, mr) != REGIONS)
		return -EIO;
	/* 20 MB is what the user may have, in all files together. */
	RP_TRY(rp_end_init(&other));
	if (reg_regions(&other, mem, 8, mr + REGIONS) != 4)
		return -EDQUOT;
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_MR, mr[0].handle));
	if (reg_regions(&other, mem, 1, mr) != 1)
		return -ENOMEM;
	return rp_pinned() == 20 * MB ? 0 : -ERANGE;
}

static int in_a_user_namespace(void)
{
	struct rpost_reg_mr mr[REGIONS];
	char *mem = rp_pages(REGIONS * REGION);
	struct rp_end end;

	RP_TRY(become_nobody());
	if (unshare(CLONE_NEWUSER))
		return -errno;
	RP_TRY(rp_end_init(&end));
	return reg_regions(&end, mem, REGIONS, mr) == REGIONS ? 0 : -EIO;
}

/* What is kept and not used gives way. */
static int kept_gives_way(void)
{
	struct rpost_reg_mr mr[20];
	char *mem = rp_pages(ARRAY_SIZE(mr) * REGION);
	struct rp_end end;
	int i;

	RP_TRY(become_nobody());
	RP_TRY(rp_end_init(&end));
	/* It is kept from the second time on. */
	for (i = 0; i < 3; i++) {
		RP_TRY(rp_reg_mr(end.fd, end.pd, mem, REGION, RPOST_ACCESS_LOCAL_WRITE, mr));
		RP_TRY(rp_destroy(end.fd, RPOST_OBJ_MR, mr[0].handle));
	}
	return reg_regions(&end, mem, 20, mr) == 20 ? 0 : -ENOMEM;
}

static int privileges_are_not_lent(void)
{
	struct rpost_reg_mr mr;
	struct rp_end end;
	char *mem = rp_pages(REGION);

	RP_TRY(become_nobody());
	RP_TRY(rp_end_init(&end));
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, REGION, 0, &mr));
	/* The limit holds for all else. */
	return mlock(mem, REGION) ? 0 : -EPERM;
}

static int run(int (*test)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(-test());
	return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? -ECHILD :
		-WEXITSTATUS(status);
}

TEST_F(off, more_than_memlock)
{
	RP_SKIP_IF_SETUP_SAID();
	EXPECT_EQ(0, run(more_than_memlock));
	EXPECT_EQ(0, run(in_a_user_namespace));
}

TEST_F(off, kept_gives_way)
{
	RP_SKIP_IF_SETUP_SAID();
	EXPECT_EQ(0, run(kept_gives_way));
}

TEST_F(off, privileges_are_not_lent)
{
	RP_SKIP_IF_SETUP_SAID();
	EXPECT_EQ(0, run(privileges_are_not_lent));
}

/* Back to 1, RLIMIT_MEMLOCK counts for what is registered from then on. */
TEST_F(off, and_on_again)
{
	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, rp_set_parameter("memlock", "1"));
	rp_mute = true;
	EXPECT_EQ(-EIO, run(in_a_user_namespace));
	rp_mute = false;
}

TEST_HARNESS_MAIN
