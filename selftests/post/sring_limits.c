// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the kernel's threads for submission rings: their limits for a user and
 * for all, their end, and their control group.  A failure means that a user can
 * have more threads, or that a thread runs on at another's expense.
 */
#include <kselftest_harness.h>

#include "cgroup.h"
#include "sring.h"

#define BYTES		4096
#define NUM_FILES	3
#define NOBODY		65534

FIXTURE(limits) {
	struct rp_end end[NUM_FILES];
	struct sring ring[NUM_FILES];
	long pollers, user_pollers;
};

FIXTURE_SETUP(limits)
{
	int i;

	memset(self->ring, 0, sizeof(self->ring));
	self->pollers = rp_module_number("parameters/max_pollers");
	self->user_pollers = rp_module_number("parameters/max_user_pollers");
	for (i = 0; i < NUM_FILES; i++) {
		/* These files are of a user, since root has no limit. */
		ASSERT_EQ(0, rp_end_as(NOBODY, &self->end[i]));
		ASSERT_EQ(0, rp_create_own(&self->end[i], RPOST_QPT_RC, 0));
	}
}

FIXTURE_TEARDOWN(limits)
{
	int i;

	for (i = 0; i < NUM_FILES; i++) {
		sr_unmap(&self->ring[i]);
		rp_end_close(&self->end[i]);
	}
	if (!access(RP_PARAMETERS "max_pollers", W_OK)) {
		rp_set_number("max_pollers", self->pollers);
		rp_set_number("max_user_pollers", self->user_pollers);
	}
}

static int ring_of(FIXTURE_DATA(limits) *self, int i)
{
	return sr_setup(self->end[i].fd, self->end[i].qp, BYTES,
			&self->ring[i]);
}

#define NEED_ROOT()							\
	do {								\
		if (access(RP_PARAMETERS "max_pollers", W_OK))		\
			SKIP(return, "needs root");			\
	} while (0)

TEST_F(limits, of_a_user)
{
	uint32_t qp = self->end[0].qp;
	struct rp_end other;
	struct sring more;
	int i;

	NEED_ROOT();
	ASSERT_EQ(0, rp_set_number("max_user_pollers", 2));
	ASSERT_EQ(0, ring_of(self, 0));
	ASSERT_EQ(0, ring_of(self, 1));
	EXPECT_EQ(-EMFILE, ring_of(self, 2));
	/* Another user and root can still have threads. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, rp_end_as(i ? 0 : NOBODY - 1, &other));
		ASSERT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
		ASSERT_EQ(0, sr_setup(other.fd, other.qp, BYTES, &more));
		sr_unmap(&more);
		rp_end_close(&other);
	}
	/* All rings of a file share one thread. */
	ASSERT_EQ(0, rp_create_own(&self->end[0], RPOST_QPT_RC, 0));
	ASSERT_EQ(0, sr_setup(self->end[0].fd, self->end[0].qp, BYTES, &more));
	sr_unmap(&more);
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP, qp));
	EXPECT_EQ(-EMFILE, ring_of(self, 2));
	/* The thread ends with the file. */
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP,
				self->end[0].qp));
	EXPECT_EQ(-EMFILE, ring_of(self, 2));
	sr_unmap(&self->ring[0]);
	rp_end_close(&self->end[0]);
	EXPECT_EQ(0, ring_of(self, 2));
	ASSERT_EQ(0, rp_end_init(&self->end[0]));
}

TEST_F(limits, of_all)
{
	NEED_ROOT();
	ASSERT_EQ(0, rp_set_number("max_pollers", 1));
	ASSERT_EQ(0, ring_of(self, 0));
	EXPECT_EQ(-EMFILE, ring_of(self, 1));
	ASSERT_EQ(0, rp_set_number("max_pollers", 0));
	EXPECT_EQ(-EMFILE, ring_of(self, 1));
	ASSERT_EQ(0, rp_set_number("max_pollers", 2));
	EXPECT_EQ(0, ring_of(self, 1));
}

/* Destroyed and closed rings leave nothing behind, even with entries. */
TEST_F(limits, nothing_is_left)
{
	long pages = rp_debug_number("objects", "ring_pages");
	long before = rp_debug_number("objects", "poller");
	struct rp_send send = sr_nop(1);

	if (pages < 0)
		SKIP(return, "no debugfs");
	ASSERT_EQ(0, ring_of(self, 0));
	EXPECT_EQ(before + 1, rp_debug_number("objects", "poller"));
	ASSERT_EQ(0, sr_post(&self->ring[0], &send));
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP,
				self->end[0].qp));
	EXPECT_EQ(ENODEV, sr_error(&self->ring[0]));
	/* The ring's pages stay until it is unmapped. */
	sr_unmap(&self->ring[0]);
	EXPECT_EQ(pages, rp_debug_number("objects", "ring_pages"));
	/* The thread waits for the next ring or for the last close. */
	EXPECT_EQ(before + 1, rp_debug_number("objects", "poller"));
	rp_end_close(&self->end[0]);
	EXPECT_EQ(before, rp_debug_number("objects", "poller"));
	ASSERT_EQ(0, rp_end_init(&self->end[0]));
}

/* Returns how many of the module's threads are in the cgroup. */
static int pollers_in(const struct cgroup *cg)
{
	char text[4096], path[64], name[32] = "";
	char *at = text;
	int found = 0;
	FILE *f;

	if (cg_read(cg, "cgroup.procs", text, sizeof(text)))
		return -1;
	for (; *at; at = strchr(at, '\n') + 1) {
		snprintf(path, sizeof(path), "/proc/%d/comm", atoi(at));
		f = fopen(path, "r");
		if (f && fscanf(f, "%31s", name) == 1)
			found += !strncmp(name, "rdma_post-", 10);
		if (f)
			fclose(f);
	}
	return found;
}

/* The thread is in the program's cgroup, to which its time counts. */
TEST_F(limits, cgroup)
{
	struct rp_send send = sr_nop(1);
	struct cgroup cg;
	long long used;
	uint64_t end;

	if (geteuid() || !cg_has("cpu"))
		SKIP(return, "no cpu controller");
	ASSERT_EQ(0, cg_create(&cg, "sring"));
	ASSERT_EQ(0, cg_enter(&cg));
	EXPECT_EQ(0, pollers_in(&cg));
	ASSERT_EQ(0, ring_of(self, 0));
	EXPECT_EQ(1, pollers_in(&cg));
	/* The thread stays when the process moves to another cgroup. */
	ASSERT_EQ(0, cg_enter(NULL));
	EXPECT_EQ(1, pollers_in(&cg));
	ASSERT_TRUE(sr_wait_asleep(&self->ring[0]));
	used = cg_number(&cg, "cpu.stat", "usage_usec");
	ASSERT_LE(0, used);
	ASSERT_EQ(0, sr_post(&self->ring[0], &send));
	end = rp_now_ms() + TEST_TIMEOUT_MS;
	while (cg_number(&cg, "cpu.stat", "usage_usec") <= used &&
	       rp_now_ms() < end)
		usleep(1000);
	EXPECT_LT(used, cg_number(&cg, "cpu.stat", "usage_usec"));
	ASSERT_TRUE(sr_wait_asleep(&self->ring[0]));
	/*
	 * The thread moves to the program's present cgroup with the next ring.
	 */
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP,
				self->end[0].qp));
	EXPECT_EQ(1, pollers_in(&cg));
	sr_unmap(&self->ring[0]);
	ASSERT_EQ(0, rp_create_own(&self->end[0], RPOST_QPT_RC, 0));
	ASSERT_EQ(0, ring_of(self, 0));
	/* kthread_stop() returns before the old thread has left its cgroup. */
	end = rp_now_ms() + TEST_TIMEOUT_MS;
	while (pollers_in(&cg) && rp_now_ms() < end)
		usleep(1000);
	EXPECT_EQ(0, pollers_in(&cg));
	EXPECT_EQ(0, cg_remove(&cg));
}

TEST_HARNESS_MAIN
