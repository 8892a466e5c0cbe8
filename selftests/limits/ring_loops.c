// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a loop that creates and destroys submission rings does not create
 * a thread for each.  Otherwise every fork on the host would wait while a new
 * thread is put into the program's cgroups.
 */
#include <kselftest_harness.h>

#include <grp.h>
#include <pthread.h>
#include <sys/wait.h>

#include "sring.h"

#define BYTES	4096
#define LOOP_MS	3000
#define WAIT_MS	1000	/* delay before the next thread */
#define MOST	8
#define NOBODY	65534

/* Create a queue pair with a ring, and destroy both. */
static int make_one(struct rp_end *end)
{
	struct sring ring;

	RP_TRY(rp_create_own(end, RPOST_QPT_RC, 0));
	RP_TRY(sr_setup(end->fd, end->qp, BYTES, &ring));
	sr_unmap(&ring);
	return rp_destroy(end->fd, RPOST_OBJ_QP, end->qp);
}

/* One thread serves all rings that a file has one after the other. */
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

struct loop {
	long files, ms;
};

/* As nobody: open more than @most files with one ring each for LOOP_MS. */
static struct loop open_files(long most)
{
	uint64_t began = rp_now_ms();
	struct loop loop = { 0 };
	struct rp_end end;

	CHILD_CHECK(!setgroups(0, NULL) && !setuid(NOBODY));
	do {
		CHILD_CHECK(!rp_end_init(&end));
		CHILD_CHECK(!make_one(&end));
		rp_end_close(&end);
		loop.files++;
		loop.ms = rp_now_ms() - began;
	} while (loop.files <= most || loop.ms < LOOP_MS);
	return loop;
}

/* An unprivileged user cannot get more threads by more files. */
TEST(files_in_a_loop)
{
	long most = rp_module_number("parameters/max_user_pollers");
	struct loop loop;
	int status, fds[2];
	pid_t pid;

	if (geteuid())
		SKIP(return, "not root");
	ASSERT_EQ(0, pipe(fds));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		loop = open_files(most);
		_exit(write(fds[1], &loop, sizeof(loop)) != sizeof(loop));
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(sizeof(loop), read(fds[0], &loop, sizeof(loop)));
	TH_LOG("%ld files with a ring in %ld ms", loop.files, loop.ms);
	EXPECT_GE(most * (loop.ms / 1000 + 2), loop.files);
}

struct waiter {
	struct rp_end end;
	struct sring ring;
	uint64_t took_ms;
	int ret;
	bool done;
};

static void *set_up(void *arg)
{
	struct waiter *waiter = arg;
	uint64_t began = rp_now_ms();

	waiter->ret = sr_setup(waiter->end.fd, waiter->end.qp, BYTES,
			       &waiter->ring);
	waiter->took_ms = rp_now_ms() - began;
	__atomic_store_n(&waiter->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void open_own(struct rp_end *end)
{
	CHILD_CHECK(!rp_end_init(end));
	CHILD_CHECK(!rp_create_own(end, RPOST_QPT_RC, 0));
}

/*
 * Create the largest number of threads, end one, and request the next.
 * Meanwhile, destroy queue pairs of the same file.  Return whether the request
 * had to wait.
 */
static bool make_too_many(long most)
{
	struct rp_end made[MOST], other;
	struct waiter waiter = {};
	uint64_t began, longest = 0;
	struct sring ring;
	pthread_t thread;
	long i;

	open_own(&waiter.end);
	for (i = 0; i < most; i++)
		open_own(&made[i]);
	for (i = 0; i < most; i++) {
		CHILD_CHECK(!sr_setup(made[i].fd, made[i].qp, BYTES, &ring));
		sr_unmap(&ring);
	}
	rp_end_close(&made[0]);
	CHILD_CHECK(!pthread_create(&thread, NULL, set_up, &waiter));
	other = waiter.end;
	while (!__atomic_load_n(&waiter.done, __ATOMIC_ACQUIRE)) {
		CHILD_CHECK(!rp_create_own(&other, RPOST_QPT_RC, 0));
		began = rp_now_ms();
		CHILD_CHECK(!rp_destroy(other.fd, RPOST_OBJ_QP, other.qp));
		if (rp_now_ms() - began > longest)
			longest = rp_now_ms() - began;
	}
	CHILD_CHECK(!pthread_join(thread, NULL) && !waiter.ret);
	sr_unmap(&waiter.ring);
	rp_end_close(&waiter.end);
	for (i = 1; i < most; i++)
		rp_end_close(&made[i]);
	if (waiter.took_ms < WAIT_MS / 2)
		return false;
	fprintf(stderr, "# waited %llu ms, destroyed others in up to %llu ms\n",
		(unsigned long long)waiter.took_ms, (unsigned long long)longest);
	/* They may be slow on a busy host, but must not wait for the thread. */
	CHILD_CHECK(longest < waiter.took_ms / 4 * 3);
	return true;
}

/* While a ring waits for its thread, other queue pairs can be destroyed. */
TEST(others_end_meanwhile)
{
	long most = rp_module_number("parameters/max_user_pollers");
	int status, tries;
	pid_t pid;

	if (geteuid() || most < 1 || most > MOST)
		SKIP(return, "not root, or not a few threads for each user");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(!setgroups(0, NULL) && !setuid(NOBODY));
		for (tries = 0; tries < 10; tries++)
			if (make_too_many(most))
				_exit(0);
		_exit(KSFT_SKIP);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFEXITED(status));
	if (WEXITSTATUS(status) == KSFT_SKIP)
		SKIP(return, "threads are made too slowly here");
	EXPECT_EQ(0, WEXITSTATUS(status));
}

TEST_HARNESS_MAIN
