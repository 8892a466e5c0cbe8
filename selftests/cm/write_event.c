// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests events that programs write.  A failure means that one is lost or
 * changed, comes to the wrong channel, or outlives its id, or that a program
 * makes the kernel keep too many.
 */
#include <kselftest_harness.h>

#include "rpost_test.h"

#define MOST	8	/* events that wait on an id */

FIXTURE(write_event) {
	struct rp_end e;
};

FIXTURE_SETUP(write_event)
{
	ASSERT_EQ(0, rp_end_init(&self->e));
	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &self->e.id));
}

FIXTURE_TEARDOWN(write_event)
{
	rp_end_close(&self->e);
}

static int write_event(struct rp_end *end, uint32_t id, int32_t status,
		       uint64_t user_data)
{
	struct rpost_write_event cmd = {
		.size = sizeof(cmd),
		.id = id,
		.event = RPOST_EVENT_USER,
		.status = status,
		.user_data = user_data,
	};

	return rp_ioctl(end->fd, RPOST_IOC_WRITE_EVENT, &cmd);
}

/* Returns the next event's user_data, or 0 if it is not as written. */
static uint64_t next_data(int channel, uint32_t id, int32_t status)
{
	struct rpost_get_event event;

	if (rp_get_event(channel, &event) || event.event != RPOST_EVENT_USER ||
	    event.id != id || event.listen_id || event.status != status ||
	    event.param.private_data_len)
		return 0;
	return event.user_data;
}

TEST_F(write_event, values)
{
	const int32_t status[] = { 0, 1, -1, INT32_MIN, INT32_MAX };
	unsigned int i;

	EXPECT_TRUE(rp_quiet(self->e.channel));
	for (i = 0; i < ARRAY_SIZE(status); i++)
		ASSERT_EQ(0, write_event(&self->e, self->e.id, status[i],
					 UINT64_MAX - i));
	for (i = 0; i < ARRAY_SIZE(status); i++)
		EXPECT_EQ(UINT64_MAX - i, next_data(self->e.channel, self->e.id,
						    status[i]));
	EXPECT_TRUE(rp_quiet(self->e.channel));
}

TEST_F(write_event, refused)
{
	struct rpost_write_event cmd = {
		.size = sizeof(cmd), .id = self->e.id,
	};
	uint32_t event;

	for (event = 0; event < 64; event++) {
		cmd.event = event;
		if (event != RPOST_EVENT_USER &&
		    event != RPOST_EVENT_ADDRINFO_RESOLVED)
			EXPECT_EQ(-EINVAL, rp_ioctl(self->e.fd,
						    RPOST_IOC_WRITE_EVENT, &cmd));
	}
	cmd.event = UINT32_MAX;
	EXPECT_EQ(-EINVAL, rp_ioctl(self->e.fd, RPOST_IOC_WRITE_EVENT, &cmd));
	EXPECT_TRUE(rp_quiet(self->e.channel));
}

/* Fetching makes room.  Events of the connection manager come all the same. */
TEST_F(write_event, no_more_than_eight)
{
	uint64_t i;

	ASSERT_EQ(0, rp_resolve_addr(self->e.fd, self->e.id, 1));
	ASSERT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ADDR_RESOLVED));
	ASSERT_EQ(0, rp_resolve_route(self->e.fd, self->e.id));
	ASSERT_TRUE(rp_id_reaches(self->e.fd, self->e.id,
				  RPOST_ID_ROUTE_RESOLVED));
	for (i = 1; i < MOST; i++)
		ASSERT_EQ(0, write_event(&self->e, self->e.id, 0, i));
	EXPECT_EQ(-ENOMEM, write_event(&self->e, self->e.id, 0, i));
	ASSERT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ROUTE_RESOLVED));
	EXPECT_EQ(0, write_event(&self->e, self->e.id, 0, i));
	EXPECT_EQ(-ENOMEM, write_event(&self->e, self->e.id, 0, i + 1));
	for (i = 1; i <= MOST; i++)
		EXPECT_EQ(i, next_data(self->e.channel, self->e.id, 0));
	EXPECT_TRUE(rp_quiet(self->e.channel));
}

TEST_F(write_event, goes_with_its_id)
{
	int other = rp_event_channel(self->e.fd);

	ASSERT_LE(0, other);
	ASSERT_EQ(0, write_event(&self->e, self->e.id, 0, 1));
	ASSERT_EQ(0, rp_migrate(self->e.fd, self->e.id, other));
	EXPECT_TRUE(rp_quiet(self->e.channel));
	ASSERT_EQ(0, write_event(&self->e, self->e.id, 0, 2));
	EXPECT_EQ(1, next_data(other, self->e.id, 0));
	ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_ID, self->e.id));
	EXPECT_TRUE(rp_quiet(other));
	close(other);
}

/* The program would take the event of a request for the listener's. */
TEST_F(write_event, of_a_request)
{
	struct rp_end s;
	uint32_t listener;

	ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_ID, self->e.id));
	ASSERT_EQ(0, rp_end_init(&s));
	ASSERT_EQ(0, rp_listener(&s, &listener));
	ASSERT_EQ(0, write_event(&s, listener, 0, 9));
	EXPECT_EQ(9, next_data(s.channel, listener, 0));
	ASSERT_EQ(0, rp_ask(&self->e, &s, listener, 0));
	EXPECT_EQ(-EINVAL, write_event(&s, s.id, 0, 1));
	ASSERT_EQ(0, rp_create_qp(&s, 0));
	ASSERT_EQ(0, rp_accept(s.fd, s.id));
	ASSERT_EQ(0, rp_expect(s.channel, s.id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(0, write_event(&s, s.id, 0, 1));
	EXPECT_EQ(1, next_data(s.channel, s.id, 0));
	rp_end_close(&s);
}

TEST_HARNESS_MAIN
