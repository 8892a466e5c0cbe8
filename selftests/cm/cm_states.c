// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests which command an id accepts in which state.  A failure means that a
 * command works in a state where it must not, or moves the id although it
 * fails.
 */
#include <kselftest_harness.h>

#include "rpost_test.h"

FIXTURE(cm) {
	struct rp_end c, s;
	uint32_t listener;
	uint16_t port;
};

FIXTURE_SETUP(cm)
{
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_listener(&self->s, &self->listener));
	self->port = rp_port(self->s.fd, self->listener);
}

FIXTURE_TEARDOWN(cm)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

enum cmd {
	BIND, RESOLVE_ADDR, RESOLVE_ROUTE, LISTEN, CREATE_QP, CONNECT, ACCEPT,
	REJECT, DISCONNECT, NUM_CMDS
};

static const char *const cmd_names[] = {
	"bind", "resolve_addr", "resolve_route", "listen", "create_qp",
	"connect", "accept", "reject", "disconnect",
};

/* Run each command but @works: it must fail, and the state must remain. */
static void refuses(struct __test_metadata *_metadata, struct rp_end *end,
		    uint32_t id, uint32_t state, unsigned int works)
{
	struct rp_end with_id = *end;
	int objects = rp_num_objects(end->fd), cmd, ret = 0, want;

	ASSERT_EQ(state, rp_id_state(end->fd, id));
	with_id.id = id;
	for (cmd = 0; cmd < NUM_CMDS; cmd++) {
		if (works & 1u << cmd)
			continue;
		switch (cmd) {
		case BIND:
			ret = rp_bind(end->fd, id, 0);
			break;
		case RESOLVE_ADDR:
			ret = rp_resolve_addr(end->fd, id, 1);
			break;
		case RESOLVE_ROUTE:
			ret = rp_resolve_route(end->fd, id);
			break;
		case LISTEN:
			ret = rp_listen(end->fd, id, 1);
			break;
		case CREATE_QP:
			ret = rp_create_qp(&with_id, 0);
			break;
		case CONNECT:
			ret = rp_connect(end->fd, id);
			break;
		case ACCEPT:
			ret = rp_accept(end->fd, id);
			break;
		case REJECT:
			ret = rp_reject(end, id, NULL, 0);
			break;
		case DISCONNECT:
			ret = rp_disconnect(end->fd, id);
			break;
		}
		want = cmd == DISCONNECT ? -ENOTCONN : -EINVAL;
		EXPECT_EQ(want, ret)
			TH_LOG("%s in state %u", cmd_names[cmd], state);
		EXPECT_EQ(state, rp_id_state(end->fd, id))
			TH_LOG("%s in state %u", cmd_names[cmd], state);
		EXPECT_EQ(objects, rp_num_objects(end->fd));
	}
	/* TIMEWAIT may end while the commands are tried. */
	if (state == RPOST_ID_DISCONNECTED && !rp_quiet(end->channel))
		EXPECT_EQ(0, rp_expect(end->channel, id,
				       RPOST_EVENT_TIMEWAIT_EXIT));
	EXPECT_TRUE(rp_quiet(end->channel))
		TH_LOG("an event in state %u", state);
}

#define M(cmd) (1u << (cmd))

TEST_F(cm, states_before_a_connection)
{
	struct rp_end *c = &self->c;
	uint32_t id;

	ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &id));
	refuses(_metadata, c, id, RPOST_ID_IDLE,
		M(BIND) | M(RESOLVE_ADDR) | M(LISTEN));
	ASSERT_EQ(0, rp_bind(c->fd, id, 0));
	refuses(_metadata, c, id, RPOST_ID_BOUND,
		M(RESOLVE_ADDR) | M(LISTEN) | M(CREATE_QP));
	/* RESOLVE_ADDR works on a bound id. */
	ASSERT_EQ(0, rp_resolve_addr(c->fd, id, self->port));
	ASSERT_EQ(0, rp_expect(c->channel, id, RPOST_EVENT_ADDR_RESOLVED));
	refuses(_metadata, c, id, RPOST_ID_ADDR_RESOLVED,
		M(RESOLVE_ROUTE) | M(CREATE_QP));
	ASSERT_EQ(0, rp_resolve_route(c->fd, id));
	ASSERT_EQ(0, rp_expect(c->channel, id, RPOST_EVENT_ROUTE_RESOLVED));
	/* Without a queue pair, CONNECT fails. */
	refuses(_metadata, c, id, RPOST_ID_ROUTE_RESOLVED, M(CREATE_QP));
	c->id = id;
	ASSERT_EQ(0, rp_create_qp(c, 0));
	refuses(_metadata, c, id, RPOST_ID_ROUTE_RESOLVED, M(CONNECT));
	refuses(_metadata, &self->s, self->listener, RPOST_ID_LISTEN, 0);
}

TEST_F(cm, states_of_a_connection)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_ask(c, s, self->listener, 0));
	refuses(_metadata, c, c->id, RPOST_ID_CONNECTING, 0);
	refuses(_metadata, s, s->id, RPOST_ID_REQUEST,
		M(CREATE_QP) | M(REJECT));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	refuses(_metadata, s, s->id, RPOST_ID_REQUEST, M(ACCEPT) | M(REJECT));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	ASSERT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED));
	refuses(_metadata, c, c->id, RPOST_ID_CONNECTED, M(DISCONNECT));
	refuses(_metadata, s, s->id, RPOST_ID_CONNECTED, M(DISCONNECT));

	ASSERT_EQ(0, rp_disconnect(c->fd, c->id));
	ASSERT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(RPOST_ID_DISCONNECTED, rp_id_state(s->fd, s->id));
	ASSERT_EQ(0, rp_disconnect(s->fd, s->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(RPOST_ID_DISCONNECTED, rp_id_state(c->fd, c->id));
	refuses(_metadata, s, s->id, RPOST_ID_DISCONNECTED, M(DISCONNECT));
	refuses(_metadata, c, c->id, RPOST_ID_DISCONNECTED, M(DISCONNECT));
	/* Disconnecting twice does no harm. */
	EXPECT_EQ(0, rp_disconnect(c->fd, c->id));
	EXPECT_EQ(RPOST_ID_DISCONNECTED, rp_id_state(c->fd, c->id));
}

TEST_F(cm, states_after_a_rejection)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_get_event event;

	ASSERT_EQ(0, rp_ask(c, s, self->listener, 0));
	ASSERT_EQ(0, rp_reject(s, s->id, NULL, 0));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	refuses(_metadata, s, s->id, RPOST_ID_ERROR, 0);
	refuses(_metadata, c, c->id, RPOST_ID_ERROR, 0);
	EXPECT_EQ(RPOST_ID_LISTEN, rp_id_state(s->fd, self->listener));
}

TEST_HARNESS_MAIN
