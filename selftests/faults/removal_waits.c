// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Removes the device while many threads wait for a neighbour that does not
 * answer.  A failure means that a program holds up the removal as long as it
 * likes.  Needs RPOST_TEST_REMOVE and RPOST_TEST_ADD as removal.c does, and
 * RPOST_TEST_LATE as limits.c does.  RPOST_TEST_SLOW says that the kernel is for debugging.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "faults.h"
#include "rpost_own.h"

#define THREADS		64
/*
 * That removal may take more than if the threads do nothing, and with KASAN or KCSAN.  A
 * removal that waits for each call in turn takes a second for each thread.
 */
#define MOST_MS		3000
#define MOST_MS_SLOW	15000
#define LEAST_MS	500	/* that one of the calls takes */

struct waiter {
	struct rp_end end;
	struct rpost_ah_attr addr;
	int (*step)(struct waiter *w);
	int first;		/* what the first call returned */
	unsigned int calls;
	uint64_t longest_ms;
	pthread_t thread;
};

static int create_ah(struct waiter *w)
{
	uint32_t ah;

	return rp_create_ah(w->end.fd, w->end.pd, &w->addr, &ah);
}

static int modify_qp(struct waiter *w)
{
	struct rpost_qp_attr attr = rp_rtr_attr(RPOST_QPT_RC, &w->addr, RP_NO_QPN);

	return rp_modify(&w->end, &attr);
}

/* Begin to resolve, and cancel it half-way. */
static int resolve_addr(struct waiter *w)
{
	struct in_addr ip;
	uint32_t id;
	int ret;

	memcpy(&ip, w->addr.dgid + 12, sizeof(ip));
	RP_TRY(rp_create_id(w->end.fd, w->end.channel, &id));
	ret = rp_resolve_ip(w->end.fd, id, ip, 4711, 1000);
	usleep(1000 * LEAST_MS);
	RP_TRY(rp_destroy(w->end.fd, RPOST_OBJ_ID, id));
	return ret;
}

static bool removed;

static void *wait_again_and_again(void *arg)
{
	struct waiter *w = arg;
	uint64_t start;
	int ret;

	while (!__atomic_load_n(&removed, __ATOMIC_RELAXED)) {
		start = rp_now_ms();
		ret = w->step(w);
		if (!w->calls)
			w->first = ret;
		if (ret == -ENODEV)
			usleep(10000);
		if (rp_now_ms() - start > w->longest_ms)
			w->longest_ms = rp_now_ms() - start;
		__atomic_fetch_add(&w->calls, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Returns how long it takes to remove the device, in ms. */
static uint64_t removal_ms(void)
{
	uint64_t start = rp_now_ms();

	return rp_remove_device() ? REMOVAL_MS : rp_now_ms() - start;
}

FIXTURE(waits) {
	struct waiter w[THREADS];
	char counts[RP_COUNTS];
	uint64_t plain_ms;
	bool able;
};

FIXTURE_VARIANT(waits) {
	int (*step)(struct waiter *w);
	int first;
	bool one;		/* all threads have the same queue pair */
	unsigned int files;
};

FIXTURE_VARIANT_ADD(waits, paths) {
	.step = modify_qp, .first = -ETIMEDOUT, .files = 1
};
FIXTURE_VARIANT_ADD(waits, paths_of_one) {
	.step = modify_qp, .first = -ETIMEDOUT, .one = true, .files = 1
};
FIXTURE_VARIANT_ADD(waits, paths_of_many_files) {
	.step = modify_qp, .first = -ETIMEDOUT, .files = 16
};
FIXTURE_VARIANT_ADD(waits, address_handles) {
	.step = create_ah, .first = -ETIMEDOUT, .files = 1
};
FIXTURE_VARIANT_ADD(waits, address_handles_of_many_files) {
	.step = create_ah, .first = -ETIMEDOUT, .files = 16
};
FIXTURE_VARIANT_ADD(waits, ids) { .step = resolve_addr, .files = 1 };

/* Make all that the threads need. */
static int make_waiters(struct waiter *waiters, int (*step)(struct waiter *w), bool one,
			unsigned int files)
{
	struct rpost_qp_attr attr;
	struct in_addr late;
	struct waiter *w;
	unsigned int i;

	RP_TRY(rp_late_address(&late));
	memset(waiters, 0, THREADS * sizeof(*waiters));
	for (i = 0; i < THREADS; i++) {
		w = &waiters[i];
		w->step = step;
		w->end = waiters[i % files].end;
		if (i < files)
			RP_TRY(rp_end_init(&w->end));
		RP_TRY(rp_own_addr(&w->end, &w->addr));
		memcpy(w->addr.dgid + 12, &late, sizeof(late));
		if (step != modify_qp || (i && one))
			continue;
		attr = rp_init_attr(RPOST_QPT_RC, w->addr.port_num);
		RP_TRY(rp_create_own(&w->end, RPOST_QPT_RC, 0));
		RP_TRY(rp_modify(&w->end, &attr));
	}
	return 0;
}

static void close_waiters(struct waiter *waiters, unsigned int files)
{
	unsigned int i;

	for (i = 0; i < files; i++)
		rp_end_close(&waiters[i].end);
}

FIXTURE_SETUP(waits)
{
	self->able = rp_can_remove() && getenv("RPOST_TEST_LATE");
	if (!self->able)
		return;
	rp_counts(self->counts);
	ASSERT_EQ(0, make_waiters(self->w, variant->step, variant->one, variant->files));
	self->plain_ms = removal_ms();
	close_waiters(self->w, variant->files);
	ASSERT_EQ(0, rp_add_device());
	ASSERT_EQ(0, make_waiters(self->w, variant->step, variant->one, variant->files));
}

FIXTURE_TEARDOWN(waits)
{
	if (!self->able)
		return;
	close_waiters(self->w, variant->files);
	EXPECT_EQ(0, rp_add_device());
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	SURVIVED(FAULT_REMOVAL);
}

TEST_F(waits, removal)
{
	const uint64_t most_ms = getenv("RPOST_TEST_SLOW") ? MOST_MS_SLOW : MOST_MS;
	uint64_t longest_ms = 0, ms;
	unsigned int i;

	if (!self->able)
		SKIP(return, "RPOST_TEST_REMOVE, _ADD and _LATE are not set");
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&self->w[i].thread, NULL,
					    wait_again_and_again, &self->w[i]));
	/* When the first call has ended, the others are under way. */
	while (!__atomic_load_n(&self->w[0].calls, __ATOMIC_RELAXED))
		usleep(10000);
	ms = removal_ms();
	__atomic_store_n(&removed, true, __ATOMIC_RELAXED);
	EXPECT_GT(self->plain_ms + most_ms, ms);
	for (i = 0; i < THREADS; i++) {
		ASSERT_EQ(0, pthread_join(self->w[i].thread, NULL));
		EXPECT_EQ(variant->first, self->w[i].first);
		if (self->w[i].longest_ms > longest_ms)
			longest_ms = self->w[i].longest_ms;
	}
	EXPECT_LE(LEAST_MS, longest_ms);
	TH_LOG("removal took %llu ms, %llu ms if they do nothing; a call at most %llu ms",
	       (unsigned long long)ms, (unsigned long long)self->plain_ms,
	       (unsigned long long)longest_ms);
}

TEST_HARNESS_MAIN
