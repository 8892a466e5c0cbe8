// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Send rings that begin and end in a loop do not make a thread each: to put one into
 * the program's cgroups has all that fork wait, on all of the host.
 */
#include <kselftest_harness.h>

#include <grp.h>
#include <sys/wait.h>

#include "sring.h"

#define BYTES	4096
#define LOOP_MS	3000
#define NOBODY	65534

/* Make a queue pair with a ring, and destroy it. */
static int make_one(struct rp_end *end)
{
	struct sring ring;

	RP_TRY(rp_create_own(end, RPOST_QPT_RC, 0));
	RP_TRY(sr_setup(end->fd, end->qp, BYTES, &ring));
	sr_unmap(&ring);
	return rp_destroy(end->fd, RPOST_OBJ_QP, end->qp);
}

/* Of all rings of a file there is one thread, with others between them or not. */
TEST(one_thread)
{
	long before = rp_debug_number("objects", "poller");
	struct rp_end end;
	int i;

	if (before < 0)
		SKIP(return, "no debugfs");
	ASSERT_EQ(0, rp_end_init(&end));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, make_one(&end));
		EXPECT_EQ(before + 1, rp_debug_number("objects", "poller"));
	}
	rp_end_close(&end);
	EXPECT_EQ(before, rp_debug_number("objects", "poller"));
}

/* Nor does it help to open another file for each, for a user without privileges. */
TEST(files_in_a_loop)
{
	long most = rp_module_number("parameters/max_user_pollers");
	uint64_t began = rp_now_ms();
	struct rp_end end;
	int status, n = 0;
	pid_t pid;

	if (geteuid())
		SKIP(return, "not root");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(!setgroups(0, NULL) && !setuid(NOBODY));
		do {
			CHILD_CHECK(!rp_end_init(&end));
			CHILD_CHECK(!make_one(&end));
			rp_end_close(&end);
			n++;
		} while (rp_now_ms() < began + LOOP_MS);
		_exit(n);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	n = WEXITSTATUS(status);
	TH_LOG("%d files with a ring in %d ms", n, LOOP_MS);
	EXPECT_LT(most, n);
	EXPECT_GE(most * (LOOP_MS / 1000 + 2), n);
}

TEST_HARNESS_MAIN
