// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that closing a file takes no longer for each of many ids with unread
 * events than for each of few.
 */
#include <kselftest_harness.h>
#include <limits.h>

#include "rpost_test.h"

#define EVENTS	8
#define FEW	128
#define MANY	(16 * FEW)
#define TRIES	5

/* Each join ends with an event. */
static int join_groups(struct rp_end *end, uint32_t id)
{
	struct rpost_join_mcast cmd = {
		.size = sizeof(cmd),
		.id = id,
		.join_flags = RPOST_JOIN_SENDONLY,
		.addr_len = sizeof(struct sockaddr_in),
	};
	struct sockaddr_in group = { .sin_family = AF_INET };
	unsigned int i;

	for (i = 0; i < EVENTS; i++) {
		group.sin_addr.s_addr = htonl(0xefc0a000 + i);
		memcpy(&cmd.addr, &group, sizeof(group));
		RP_TRY(rp_ioctl(end->fd, RPOST_IOC_JOIN_MCAST, &cmd));
	}
	return 0;
}

static int bound_id(struct rp_end *end, uint16_t port, uint32_t *id)
{
	RP_TRY(rp_create_id_of(end->fd, end->channel, RPOST_PS_UDP,
			       RPOST_QPT_UD, id));
	RP_TRY(rp_set_option(end, *id, RPOST_OPTION_ID, RPOST_OPTION_ID_REUSEADDR, 1));
	return rp_bind(end->fd, *id, port);
}

/*
 * Return the CPU time in us that closing a file with so many ids takes, or a
 * negative errno.
 */
static long time_to_close(unsigned int ids)
{
	uint64_t until = rp_now_ms() + 60 * TEST_TIMEOUT_MS;
	struct rp_end end = { 0 };
	unsigned int i;
	uint32_t id;
	long begin;

	end.fd = rp_open();
	if (end.fd < 0)
		return -errno;
	end.channel = rp_event_channel(end.fd);
	for (i = 0; i < ids; i++) {
		/* Several ports, because cma searches all ids of a port. */
		RP_TRY(bound_id(&end, 7471 + i % 64, &id));
		RP_TRY(join_groups(&end, id));
	}
	while (rp_debug_number("objects", "event") < (long)ids * EVENTS) {
		if (rp_now_ms() > until)
			return -ETIME;
		usleep(1000);
	}
	close(end.channel);
	begin = rp_cpu_us();
	close(end.fd);
	return rp_cpu_us() - begin;
}

static long min_of(long a, long b)
{
	return a < b ? a : b;
}

TEST(closing_takes_no_longer_for_each)
{
	long few, many, least_few = LONG_MAX, least_many = LONG_MAX;
	int fd = rp_open(), tries;

	RP_SKIP_IWARP(fd, "multicast");
	close(fd);
	if (rp_debug_number("objects", "event"))
		SKIP(return, "cannot see in debugfs that there are no events");
	/*
	 * If each id walked the events of all, it would take 16 times as long
	 * among many.  Allow 4 times, and try again, because a guest's CPU time
	 * includes the delays of a busy host.
	 */
	for (tries = 0; tries < TRIES; tries++) {
		few = time_to_close(FEW);
		many = time_to_close(MANY);
		ASSERT_LT(0, few);
		ASSERT_LT(0, many);
		least_few = min_of(few, least_few);
		least_many = min_of(many, least_many);
		printf("# ids with %u events each: %u closed in %ld us, %u in %ld us\n",
		       EVENTS, FEW, few, MANY, many);
		if (least_many <= 4 * least_few * (MANY / FEW))
			break;
	}
	EXPECT_GE(4 * least_few * (MANY / FEW), least_many);
}

TEST_HARNESS_MAIN
