// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Takes a CPU offline and online while threads make queue pairs and completion
 * queues, post to them, and poll.  A failure means that a completion is lost, that
 * an object does not end, or that the CPU cannot be taken offline.  Needs root and
 * a CPU that can be.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "cgroup.h"
#include "rpost_own.h"

#define CPU		"/sys/devices/system/cpu/cpu1"
#define TIMES		10
#define THREADS		2
#define WRITES		16

static unsigned int rounds[THREADS];
static bool stop;

/* Wait for each write before the next. */
static int use_pair(struct rp_end *c, struct rp_end *s)
{
	struct rp_send send = rp_empty_send(RPOST_WR_RDMA_WRITE, 0);
	struct rpost_wc wc;
	int i;

	RP_TRY(rp_own_pair(c, s, RPOST_QPT_RC));
	for (i = 0; i < WRITES; i++) {
		send.wr.wr_id = i;
		RP_TRY(rp_post_send(c, &send));
		if (rp_wait_cq(&c->cq, &wc) != 1)
			return -ETIME;
		if (wc.wr_id != (uint64_t)i || wc.status != RPOST_WC_SUCCESS)
			return -EPROTO;
	}
	RP_TRY(rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	return rp_destroy(c->fd, RPOST_OBJ_CQ, c->cq.cmd.handle);
}

static void *work(void *count)
{
	struct rp_end c, s;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		if (use_pair(&c, &s))
			return count;
		rp_end_close(&c);
		rp_end_close(&s);
		__atomic_add_fetch((unsigned int *)count, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Set the CPU's state; then each thread begins and ends a round in it. */
static int work_with_cpu(const char *online)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	unsigned int want;
	int i;

	RP_TRY(cg_put(CPU, "online", online));
	for (i = 0; i < THREADS; i++) {
		want = __atomic_load_n(&rounds[i], __ATOMIC_ACQUIRE) + 2;
		while (__atomic_load_n(&rounds[i], __ATOMIC_ACQUIRE) < want) {
			if (rp_now_ms() > end)
				return -ETIME;
			usleep(1000);
		}
	}
	return 0;
}

FIXTURE(hotplug) {
	bool able;
};

FIXTURE_SETUP(hotplug)
{
	self->able = !geteuid() && !access(CPU "/online", W_OK);
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->able)
		EXPECT_EQ(0, cg_put(CPU, "online", "1"));
}

TEST_F_TIMEOUT(hotplug, while_threads_work, 300)
{
	pthread_t threads[THREADS];
	void *status;
	int i;

	if (!self->able)
		SKIP(return, "needs root, and a second CPU that can be offline");
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, work, &rounds[i]));
	for (i = 0; i < TIMES; i++) {
		EXPECT_EQ(0, work_with_cpu("0"));
		EXPECT_EQ(0, work_with_cpu("1"));
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &status));
		EXPECT_EQ(NULL, status);
		TH_LOG("thread %d: %u rounds", i, rounds[i]);
	}
}

TEST_HARNESS_MAIN
