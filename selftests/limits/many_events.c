// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of ids with events that nobody has fetched takes as long for each of many
 * as for each of few.  With a number of ids as RPOST_TEST_IDS, 65536 at most, only
 * the time for so many is printed.
 */
#include <kselftest_harness.h>

#include "rpost_test.h"

#define EVENTS	8
#define FEW	256
#define MANY	(8 * FEW)

/* Each of these ends with an event. */
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

static int bound_id(struct rp_end *end, uint32_t *id)
{
	struct rpost_set_option reuse = {
		.size = sizeof(reuse),
		.level = RPOST_OPTION_ID,
		.option = RPOST_OPTION_ID_REUSEADDR,
		.value = 1,
	};

	RP_TRY(rp_create_id_of(end->fd, end->channel, RPOST_PS_UDP,
			       RPOST_QPT_UD, id));
	reuse.id = *id;
	RP_TRY(rp_ioctl(end->fd, RPOST_IOC_SET_OPTION, &reuse));
	return rp_bind(end->fd, *id, 7471);
}

/* In ms, how long the file with so many ids takes to close, or a negative errno. */
static long time_to_close(unsigned int ids)
{
	uint64_t until = rp_now_ms() + 60 * TEST_TIMEOUT_MS, begin;
	struct rp_end end = { 0 };
	unsigned int i;
	uint32_t id;

	end.fd = rp_open();
	if (end.fd < 0)
		return -errno;
	end.channel = rp_event_channel(end.fd);
	for (i = 0; i < ids; i++) {
		RP_TRY(bound_id(&end, &id));
		RP_TRY(join_groups(&end, id));
	}
	while (rp_debug_number("objects", "event") < (long)ids * EVENTS) {
		if (rp_now_ms() > until)
			return -ETIME;
		usleep(1000);
	}
	close(end.channel);
	begin = rp_now_ms();
	close(end.fd);
	return rp_now_ms() - begin;
}

TEST(closing_takes_no_longer_for_each)
{
	const char *ids = getenv("RPOST_TEST_IDS");
	int fd = rp_open();
	long few, many;

	RP_SKIP_IWARP(fd, "multicast");
	close(fd);
	if (rp_debug_number("objects", "event"))
		SKIP(return, "cannot see in debugfs that there are no events");
	if (ids) {
		many = time_to_close(atoi(ids));
		printf("# %s ids with %u events each: closed in %ld ms\n", ids,
		       EVENTS, many);
		ASSERT_LE(0, many);
		return;
	}
	few = time_to_close(FEW);
	many = time_to_close(MANY);
	printf("# ids with %u events each: %u closed in %ld ms, %u in %ld ms\n",
	       EVENTS, FEW, few, MANY, many);
	ASSERT_LE(0, few);
	ASSERT_LE(0, many);
	/* Twice as long for each is for what else the host does. */
	EXPECT_GE(2 * (few + 10) * (MANY / FEW), many);
}

TEST_HARNESS_MAIN
