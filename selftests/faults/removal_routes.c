// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Removes the device while ids of programs query routes.  The RDMA core looks
 * at the device of such an id after it has reported the removal, when the id
 * may have been destroyed already.  A failure means that the kernel crashes,
 * or that a program is told twice or not at all.
 *
 * Needs RPOST_TEST_REMOVE and RPOST_TEST_ADD, see removal.c, and the module of
 * selftests/slow_routes, since a query of RoCE ends at once.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "faults.h"

#define QUERY		"/sys/module/slow_routes/parameters/query_ms"
#define CANCEL		"/sys/module/slow_routes/parameters/cancel_ms"
#define IDS		100

static int set(const char *parameter, const char *ms)
{
	int fd = open(parameter, O_WRONLY), ret;

	if (fd < 0)
		return -errno;
	ret = write(fd, ms, strlen(ms)) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

FIXTURE(removal_routes) {
	int fd, channel;
	uint32_t ids[IDS];
	char counts[RP_COUNTS];
	bool able;
};

FIXTURE_SETUP(removal_routes)
{
	struct rpost_get_event event;
	int i;

	self->able = rp_can_remove() && !access(QUERY, W_OK);
	if (!self->able)
		return;
	rp_counts(self->counts);
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	self->channel = rp_event_channel(self->fd);
	ASSERT_LE(0, self->channel);
	for (i = 0; i < IDS; i++) {
		ASSERT_EQ(0, rp_create_id(self->fd, self->channel,
					  &self->ids[i]));
		ASSERT_EQ(0, rp_resolve_addr(self->fd, self->ids[i], 7471));
		ASSERT_EQ(0, rp_get_event(self->channel, &event));
		ASSERT_EQ(RPOST_EVENT_ADDR_RESOLVED, event.event);
	}
	ASSERT_EQ(0, set(CANCEL, "10"));
	ASSERT_EQ(0, set(QUERY, "100"));
	for (i = 0; i < IDS; i++)
		ASSERT_EQ(0, rp_resolve_route(self->fd, self->ids[i]));
	ASSERT_EQ(RPOST_ID_ROUTE_QUERY,
		  rp_id_state(self->fd, self->ids[IDS - 1]));
}

FIXTURE_TEARDOWN(removal_routes)
{
	if (!self->able)
		return;
	EXPECT_EQ(0, set(QUERY, "0"));
	EXPECT_EQ(0, set(CANCEL, "0"));
	close(self->channel);
	close(self->fd);
	EXPECT_EQ(0, rp_add_device());
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	SURVIVED(FAULT_REMOVAL);
}

#define NEED_SLOW_ROUTES()						\
	do {								\
		if (!self->able)					\
			SKIP(return, "the test module slow_routes is not loaded"); \
	} while (0)

/* Each id reports the removal once, and a route never after it. */
TEST_F(removal_routes, are_told)
{
	struct rpost_get_event event;
	unsigned int told = 0, resolved = 0, i;
	bool gone[IDS] = { false };

	NEED_SLOW_ROUTES();
	ASSERT_EQ(0, rp_remove_device());
	while (told < IDS) {
		ASSERT_EQ(0, rp_get_event(self->channel, &event));
		for (i = 0; i < IDS && self->ids[i] != event.id; i++)
			;
		ASSERT_LT(i, IDS);
		EXPECT_FALSE(gone[i]);
		gone[i] = event.event == RPOST_EVENT_DEVICE_REMOVAL;
		told += gone[i];
		resolved += event.event == RPOST_EVENT_ROUTE_RESOLVED;
	}
	EXPECT_TRUE(rp_quiet(self->channel));
	/* Else nothing was shown. */
	EXPECT_LT(resolved, IDS);
	for (i = 0; i < IDS; i++) {
		EXPECT_EQ(-ENODEV, rp_resolve_route(self->fd, self->ids[i]));
		EXPECT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_ID, self->ids[i]));
	}
}

struct destroyer {
	int fd;
	uint32_t id;
	bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;
	int ret = rp_destroy(d->fd, RPOST_OBJ_ID, d->id);

	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return (void *)(intptr_t)ret;
}

/* The removal waits for a program that destroys an id, here the last in the queue. */
TEST_F(removal_routes, are_destroyed)
{
	struct destroyer d = { .fd = self->fd };
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	pthread_t thread;
	void *status;
	int i;

	NEED_SLOW_ROUTES();
	d.id = self->ids[IDS - 1];
	ASSERT_EQ(0, set(CANCEL, "0"));
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy, &d));
	while (rp_id_state(self->fd, d.id) == RPOST_ID_ROUTE_QUERY &&
	       rp_now_ms() < end)
		usleep(1000);
	ASSERT_EQ(0, set(CANCEL, "10"));
	EXPECT_FALSE(__atomic_load_n(&d.done, __ATOMIC_ACQUIRE));
	EXPECT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, pthread_join(thread, &status));
	EXPECT_EQ(NULL, status);
	for (i = 0; i < IDS - 1; i++)
		EXPECT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_ID, self->ids[i]));
}

TEST_HARNESS_MAIN
