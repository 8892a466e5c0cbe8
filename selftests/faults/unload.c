// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that the module cannot be unloaded while a program uses it, and can be
 * unloaded afterwards.  A failure means a leaked reference, or code that is
 * gone while it is in use.
 *
 * Needs root and RPOST_TEST_MODULE, the module's file, from which the module is
 * loaded again with the parameters in RPOST_TEST_PARAMS, by default none.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "faults.h"

/* The one descriptor or mapping that still keeps the module. */
enum holder { HOLD_FILE, HOLD_EVENTS, HOLD_COMPLETIONS, HOLD_ASYNC, HOLD_RING };

FIXTURE(unload) {
	const char *path;
};

FIXTURE_VARIANT(unload) {
	enum holder holder;
};

FIXTURE_VARIANT_ADD(unload, file) { .holder = HOLD_FILE };
FIXTURE_VARIANT_ADD(unload, event_channel) { .holder = HOLD_EVENTS };
FIXTURE_VARIANT_ADD(unload, comp_channel) { .holder = HOLD_COMPLETIONS };
FIXTURE_VARIANT_ADD(unload, async_channel) { .holder = HOLD_ASYNC };
FIXTURE_VARIANT_ADD(unload, ring) { .holder = HOLD_RING };

FIXTURE_SETUP(unload)
{
	self->path = getenv("RPOST_TEST_MODULE");
}

FIXTURE_TEARDOWN(unload)
{
}

TEST_F(unload, refused_while_used)
{
	int fds[HOLD_RING], i;
	struct rp_end end;

	if (!self->path)
		SKIP(return, "RPOST_TEST_MODULE is not set");
	ASSERT_EQ(0, rp_end_init(&end));
	fds[HOLD_FILE] = end.fd;
	fds[HOLD_EVENTS] = end.channel;
	fds[HOLD_COMPLETIONS] = rp_comp_channel(end.fd);
	fds[HOLD_ASYNC] = rp_async_channel(end.fd, end.device);
	for (i = 0; i < HOLD_RING; i++) {
		ASSERT_LE(0, fds[i]);
		if (i != (int)variant->holder)
			close(fds[i]);
	}
	if (variant->holder != HOLD_RING)
		rp_unmap_cq(&end.cq);
	/* A mapping keeps its file open. */
	for (i = 0; i < 10; i++)
		ASSERT_EQ(-EAGAIN, rp_unload_module());
	if (variant->holder == HOLD_RING)
		rp_unmap_cq(&end.cq);
	else
		close(fds[variant->holder]);
	ASSERT_EQ(0, rp_unload_soon());
	EXPECT_EQ(-1, rp_module_number("refcnt"));
	ASSERT_EQ(0, rp_load_again());
	EXPECT_EQ(0, rp_module_number("refcnt"));
	SURVIVED(FAULT_UNLOAD);
}

struct user {
	pthread_t thread;
	bool inside, connected, stop;
};

/* Open, connect and close, again and again. */
static void *connect_again(void *arg)
{
	struct user *user = arg;
	struct rp_end end;
	uint32_t listener;

	while (!__atomic_load_n(&user->stop, __ATOMIC_RELAXED)) {
		end.fd = rp_open();
		if (end.fd < 0)
			continue;
		__atomic_store_n(&user->inside, true, __ATOMIC_RELAXED);
		end.channel = rp_event_channel(end.fd);
		if (end.channel >= 0 && !rp_listener(&end, &listener))
			__atomic_store_n(&user->connected, true,
					 __ATOMIC_RELAXED);
		__atomic_store_n(&user->inside, false, __ATOMIC_RELAXED);
		close(end.channel);
		close(end.fd);
		/* Sleep, so that at some moments no program uses the module. */
		usleep(2000);
	}
	return NULL;
}

static bool connected(const struct user *user)
{
	return __atomic_load_n(&user->connected, __ATOMIC_RELAXED);
}

static bool inside(const struct user *user)
{
	return __atomic_load_n(&user->inside, __ATOMIC_RELAXED);
}

TEST(unloaded_again_and_again)
{
	const char *path = getenv("RPOST_TEST_MODULE");
	unsigned int unloaded = 0, refused = 0;
	struct user users[2] = { 0 };
	struct rp_end c, s;
	uint64_t end;
	int ret, i;

	if (!path)
		SKIP(return, "RPOST_TEST_MODULE is not set");
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&users[i].thread, NULL,
					    connect_again, &users[i]));
	end = rp_now_ms() + TEST_TIMEOUT_MS;
	while ((unloaded < 10 || !refused || !connected(&users[0]) ||
		!connected(&users[1])) && rp_now_ms() < end) {
		/*
		 * While it was never refused, wait until a program has the file
		 * open.
		 */
		while (unloaded && !refused && !inside(&users[0]) &&
		       !inside(&users[1]) && rp_now_ms() < end)
			usleep(100);
		ret = rp_unload_module();
		if (ret == -EAGAIN) {
			refused++;
			continue;
		}
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, rp_load_again());
		unloaded++;
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&users[i].stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(users[i].thread, NULL));
		EXPECT_TRUE(users[i].connected);
	}
	printf("# unloaded %u times, refused %u times\n", unloaded, refused);
	EXPECT_LT(0, unloaded);
	EXPECT_LT(0, refused);

	ASSERT_EQ(0, rp_connect_pair(&c, &s, 0));
	EXPECT_EQ(0, msgs_exchange(&c, &s));
	rp_end_close(&c);
	rp_end_close(&s);
	for (i = 0; i < (int)unloaded; i++)
		SURVIVED(FAULT_UNLOAD);
}

TEST_HARNESS_MAIN
