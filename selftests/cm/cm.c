// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the events and private data of a connection: connect, reject,
 * disconnect, the backlog of a listener, and moving an id to another channel.
 * A failure means that a program is told something wrong about its connection,
 * or nothing at all.
 */
#include <kselftest_harness.h>

#include "rpost_test.h"

/* The limits of InfiniBand and RoCE, see rdma_connect(3). */
#define REQUEST_DATA	56
#define REPLY_DATA	196
#define REJECT_DATA	148
#define REJ_CONSUMER_DEFINED	28
#define REJ_INVALID_SERVICE_ID	8

FIXTURE(cm) {
	struct rp_end c, s;
	uint32_t listener;
	uint16_t port;
	bool iwarp;
};

FIXTURE_SETUP(cm)
{
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_listener(&self->s, &self->listener));
	self->port = rp_port(self->s.fd, self->listener);
	self->iwarp = rp_is_iwarp(self->c.fd, self->c.device);
}

FIXTURE_TEARDOWN(cm)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

static int connect_data(struct rp_end *end, uint8_t len, uint8_t fill)
{
	struct rpost_connect cmd = { .size = sizeof(cmd), .id = end->id };

	rp_conn_param(&cmd.param);
	cmd.param.private_data_len = len;
	memset(cmd.param.private_data, fill, sizeof(cmd.param.private_data));
	return rp_ioctl(end->fd, RPOST_IOC_CONNECT, &cmd);
}

static int accept_data(struct rp_end *end, uint8_t len, uint8_t fill)
{
	struct rpost_accept cmd = { .size = sizeof(cmd), .id = end->id };

	rp_conn_param(&cmd.param);
	cmd.param.private_data_len = len;
	memset(cmd.param.private_data, fill, sizeof(cmd.param.private_data));
	return rp_ioctl(end->fd, RPOST_IOC_ACCEPT, &cmd);
}

/* -------------------------------------------------- a connection's events */

static bool zeros(const void *p, size_t bytes)
{
	const char *b = p;

	while (bytes--) {
		if (*b++)
			return false;
	}
	return true;
}

static bool filled(const uint8_t *p, size_t bytes, uint8_t value)
{
	while (bytes--) {
		if (*p++ != value)
			return false;
	}
	return true;
}

TEST_F(cm, events_and_data)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_get_event event;
	struct rpost_query_id cq, sq;

	ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &c->id));
	ASSERT_EQ(0, rp_resolve_addr(c->fd, c->id, self->port));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_ADDR_RESOLVED, event.event);
	EXPECT_EQ(c->id, event.id);
	EXPECT_EQ(0, event.listen_id);
	EXPECT_EQ(0, event.status);
	EXPECT_TRUE(zeros(&event.param, sizeof(event.param)));
	ASSERT_EQ(0, rp_resolve_route(c->fd, c->id));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_ROUTE_RESOLVED, event.event);
	EXPECT_TRUE(zeros(&event.param, sizeof(event.param)));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, connect_data(c, 10, 'q'));

	ASSERT_EQ(0, rp_get_event(s->channel, &event));
	EXPECT_EQ(RPOST_EVENT_CONNECT_REQUEST, event.event);
	EXPECT_EQ(0, event.status);
	EXPECT_EQ(self->listener, event.listen_id);
	EXPECT_NE(self->listener, event.id);
	EXPECT_EQ(c->qp_num, event.param.qp_num);
	EXPECT_EQ(0, event.param.srq);
	EXPECT_EQ(4, event.param.responder_resources);
	EXPECT_EQ(4, event.param.initiator_depth);
	EXPECT_LE(10, event.param.private_data_len);
	EXPECT_TRUE(filled(event.param.private_data, 10, 'q'));
	EXPECT_TRUE(zeros(event.param.private_data + 10, 246));
	EXPECT_TRUE(zeros(event.param.reserved, sizeof(event.param.reserved)));
	s->id = event.id;
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, accept_data(s, 20, 'p'));

	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_ESTABLISHED, event.event);
	EXPECT_EQ(c->id, event.id);
	EXPECT_EQ(0, event.listen_id);
	EXPECT_EQ(s->qp_num, event.param.qp_num);
	EXPECT_LE(20, event.param.private_data_len);
	EXPECT_TRUE(filled(event.param.private_data, 20, 'p'));
	EXPECT_TRUE(zeros(event.param.private_data + 20, 236));
	ASSERT_EQ(0, rp_get_event(s->channel, &event));
	EXPECT_EQ(RPOST_EVENT_ESTABLISHED, event.event);
	EXPECT_EQ(s->id, event.id);
	EXPECT_EQ(0, event.listen_id);

	/* Each id knows the addresses of both ends. */
	ASSERT_EQ(0, rp_query_id(c->fd, c->id, &cq));
	ASSERT_EQ(0, rp_query_id(s->fd, s->id, &sq));
	EXPECT_EQ(AF_INET, cq.src.ss_family);
	EXPECT_EQ(0, memcmp(&cq.src, &sq.dst, sizeof(struct sockaddr_in)));
	EXPECT_EQ(0, memcmp(&cq.dst, &sq.src, sizeof(struct sockaddr_in)));
	EXPECT_EQ(0, memcmp(cq.sgid, sq.dgid, sizeof(cq.sgid)));
	EXPECT_EQ(0, memcmp(cq.dgid, sq.sgid, sizeof(cq.sgid)));
	EXPECT_FALSE(zeros(cq.sgid, sizeof(cq.sgid)));
	EXPECT_EQ(c->device, cq.device);
	EXPECT_LE(1, cq.port_num);
	EXPECT_LE(1, cq.num_paths);
	EXPECT_LE(1, cq.path_mtu);
	EXPECT_TRUE(rp_quiet(c->channel));
	EXPECT_TRUE(rp_quiet(s->channel));
}

TEST_F(cm, query_grows_with_the_id)
{
	struct rp_end *c = &self->c;
	struct rpost_query_id query;

	ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &c->id));
	ASSERT_EQ(0, rp_query_id(c->fd, c->id, &query));
	EXPECT_EQ(RPOST_ID_IDLE, query.state);
	EXPECT_EQ(0, query.device);
	EXPECT_EQ(0, query.port_num);
	EXPECT_EQ(0, query.path_mtu);
	EXPECT_EQ(0, query.num_paths);
	EXPECT_EQ(0, query.src.ss_family);
	EXPECT_EQ(0, query.dst.ss_family);
	ASSERT_EQ(0, rp_bind(c->fd, c->id, 0));
	ASSERT_EQ(0, rp_query_id(c->fd, c->id, &query));
	EXPECT_EQ(c->device, query.device);
	EXPECT_NE(0, rp_port(c->fd, c->id));
	EXPECT_EQ(0, query.dst.ss_family);
	EXPECT_EQ(0, query.num_paths);
}

TEST_F(cm, longest_private_data)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_get_event event;
	char data[256];

	if (self->iwarp)
		SKIP(return, "the limits are InfiniBand's");
	memset(data, 'r', sizeof(data));
	ASSERT_EQ(0, rp_client_route(c, self->port));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	/* Private data that is too long is refused, and no request is sent. */
	EXPECT_EQ(-EINVAL, connect_data(c, REQUEST_DATA + 1, 'q'));
	EXPECT_EQ(-EINVAL, connect_data(c, 255, 'q'));
	EXPECT_EQ(RPOST_ID_ROUTE_RESOLVED, rp_id_state(c->fd, c->id));
	EXPECT_TRUE(rp_quiet(s->channel));
	ASSERT_EQ(0, connect_data(c, REQUEST_DATA, 'q'));
	ASSERT_EQ(0, rp_get_event(s->channel, &event));
	ASSERT_EQ(RPOST_EVENT_CONNECT_REQUEST, event.event);
	EXPECT_EQ(REQUEST_DATA, event.param.private_data_len);
	EXPECT_TRUE(filled(event.param.private_data, REQUEST_DATA, 'q'));
	s->id = event.id;
	ASSERT_EQ(0, rp_create_qp(s, 0));
	EXPECT_EQ(-EINVAL, accept_data(s, REPLY_DATA + 1, 'p'));
	EXPECT_EQ(-EINVAL, accept_data(s, 255, 'p'));
	EXPECT_EQ(-EINVAL, rp_reject(s, s->id, data, REJECT_DATA + 1));
	EXPECT_EQ(-EINVAL, rp_reject(s, s->id, data, 256));
	EXPECT_EQ(-EINVAL, rp_reject(s, s->id, data, UINT32_MAX));
	EXPECT_EQ(RPOST_ID_REQUEST, rp_id_state(s->fd, s->id));
	EXPECT_TRUE(rp_quiet(c->channel));
	ASSERT_EQ(0, accept_data(s, REPLY_DATA, 'p'));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	ASSERT_EQ(RPOST_EVENT_ESTABLISHED, event.event);
	EXPECT_EQ(REPLY_DATA, event.param.private_data_len);
	EXPECT_TRUE(filled(event.param.private_data, REPLY_DATA, 'p'));
}

TEST_F(cm, rejected_with_data)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_get_event event;
	char data[REJECT_DATA];

	memset(data, 'r', sizeof(data));
	ASSERT_EQ(0, rp_ask(c, s, self->listener, 0));
	ASSERT_EQ(0, rp_reject(s, s->id, data, sizeof(data)));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	EXPECT_EQ(c->id, event.id);
	if (!self->iwarp)
		EXPECT_EQ(REJ_CONSUMER_DEFINED, event.status);
	EXPECT_EQ(REJECT_DATA, event.param.private_data_len);
	EXPECT_TRUE(filled(event.param.private_data, REJECT_DATA, 'r'));
	EXPECT_EQ(-EINVAL, rp_reject(s, s->id, NULL, 0));
	/* The rejected id remains until it is destroyed. */
	EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, s->id));
	/* The listener accepts further requests. */
	ASSERT_EQ(0, rp_leave(c));
	EXPECT_EQ(0, rp_join(c, s, self->listener, 0));
}

TEST_F(cm, nobody_listens)
{
	struct rp_end *c = &self->c;
	struct rpost_get_event event;

	ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_ID, self->listener));
	ASSERT_EQ(0, rp_client_route(c, self->port));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	if (!self->iwarp)
		EXPECT_EQ(REJ_INVALID_SERVICE_ID, event.status);
	EXPECT_EQ(RPOST_ID_ERROR, rp_id_state(c->fd, c->id));
}

/* ------------------------------------------------------------ both ends */

/* Both ends get DISCONNECTED, and their posted receives are flushed. */
static void disconnected(struct __test_metadata *_metadata, struct rp_end *one,
			 struct rp_end *other)
{
	struct rpost_wc wc;

	ASSERT_EQ(0, rp_post_recv(one, 1, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_recv(other, 2, NULL, 0, 0));
	ASSERT_EQ(0, rp_disconnect(one->fd, one->id));
	ASSERT_EQ(1, rp_wait_cq(&one->cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(1, wc.wr_id);
	ASSERT_EQ(0, rp_expect(other->channel, other->id,
			       RPOST_EVENT_DISCONNECTED));
	/* After this answer, the first end need not wait for a timeout. */
	ASSERT_EQ(0, rp_disconnect(other->fd, other->id));
	ASSERT_EQ(0, rp_expect(one->channel, one->id,
			       RPOST_EVENT_DISCONNECTED));
	ASSERT_EQ(1, rp_wait_cq(&other->cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(2, wc.wr_id);
}

TEST_F(cm, client_disconnects)
{
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	disconnected(_metadata, &self->c, &self->s);
}

TEST_F(cm, server_disconnects)
{
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	disconnected(_metadata, &self->s, &self->c);
}

TEST_F(cm, both_disconnect)
{
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	ASSERT_EQ(0, rp_disconnect(self->c.fd, self->c.id));
	ASSERT_EQ(0, rp_disconnect(self->s.fd, self->s.id));
	EXPECT_EQ(0, rp_expect(self->c.channel, self->c.id,
			       RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(0, rp_expect(self->s.channel, self->s.id,
			       RPOST_EVENT_DISCONNECTED));
}

TEST_F(cm, peer_destroyed)
{
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	ASSERT_EQ(0, rp_leave(&self->c));
	EXPECT_EQ(0, rp_expect(self->s.channel, self->s.id,
			       RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(RPOST_ID_DISCONNECTED, rp_id_state(self->s.fd, self->s.id));
	EXPECT_EQ(0, rp_disconnect(self->s.fd, self->s.id));
}

/*
 * The client gives up before the server accepts: ACCEPT fails, without an
 * event.
 */
TEST_F(cm, peer_destroyed_before_accept)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_ask(c, s, self->listener, 0));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_TRUE(rp_id_reaches(s->fd, s->id, RPOST_ID_ERROR));
	EXPECT_EQ(-EINVAL, rp_accept(s->fd, s->id));
	EXPECT_EQ(-EINVAL, rp_reject(s, s->id, NULL, 0));
	EXPECT_TRUE(rp_quiet(s->channel));
	ASSERT_EQ(0, rp_leave(s));
	/*
	 * The same before the request is fetched: its id is in the error state.
	 */
	ASSERT_EQ(0, rp_client_route(c, self->port));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	struct pollfd pfd = { .fd = s->channel, .events = POLLIN };

	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	ASSERT_TRUE(rp_id_reaches(s->fd, s->id, RPOST_ID_ERROR));
	EXPECT_TRUE(rp_quiet(s->channel));
	EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, s->id));
}

/* ----------------------------------------------------------- listeners */

#define HANDLED_MS	300	/* handling a request takes less */
#define REPEATED_MS	4000	/* InfiniBand and RoCE repeat after 4.3 s */

/* Send three requests to a backlog of two.  Returns when the third was sent. */
static uint64_t ask_thrice(struct __test_metadata *_metadata, struct rp_end *s,
			   struct rp_end *clients, uint32_t *listener)
{
	struct rp_end last, other;
	uint64_t start = 0;
	int i, objects;
	uint32_t others;

	ASSERT_EQ(0, rp_end_init(&last));
	ASSERT_EQ(0, rp_end_init(&other));
	ASSERT_EQ(0, rp_listener(&other, &others));
	ASSERT_EQ(0, rp_create_id(s->fd, s->channel, listener));
	ASSERT_EQ(0, rp_bind(s->fd, *listener, 0));
	ASSERT_EQ(0, rp_listen(s->fd, *listener, 2));
	objects = rp_num_objects(s->fd);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, rp_end_init(&clients[i]));
		ASSERT_EQ(0, rp_client_route(&clients[i],
					     rp_port(s->fd, *listener)));
		ASSERT_EQ(0, rp_create_qp(&clients[i], 0));
		start = rp_now_ms();
		ASSERT_EQ(0, rp_connect(clients[i].fd, clients[i].id));
		while (i < 2 && rp_num_objects(s->fd) <= objects + i &&
		       rp_now_ms() - start < TEST_TIMEOUT_MS)
			usleep(1000);
	}
	/*
	 * Two processors handle requests.  When a request that is sent later,
	 * to another listener, has arrived, the third has most likely been
	 * handled as well.
	 */
	ASSERT_EQ(0, rp_ask(&last, &other, others, 0));
	usleep(HANDLED_MS * 1000);
	rp_end_close(&last);
	rp_end_close(&other);
	/* Two requests wait; the third is dropped. */
	EXPECT_EQ(objects + 2, rp_num_objects(s->fd));
	return start;
}

TEST_F(cm, backlog)
{
	struct rp_end *s = &self->s, clients[3];
	bool told, quiet, late;
	uint32_t listener;
	uint64_t start;
	int i, tries = 0;

	do {
		start = ask_thrice(_metadata, s, clients, &listener);
		told = !rp_quiet(clients[2].channel);
		for (i = 0; i < 2; i++)
			ASSERT_EQ(0, rp_take_request(s, listener));
		quiet = rp_quiet(s->channel);
		/*
		 * The third request may have been handled late, or repeated by
		 * now; then try again.
		 */
		late = rp_now_ms() - start >= REPEATED_MS;
		if (!late && quiet)
			break;
		for (i = 0; i < 3; i++)
			rp_end_close(&clients[i]);
		rp_end_close(s);
		ASSERT_EQ(0, rp_end_init(s));
	} while (++tries < 10);
	ASSERT_FALSE(late);
	EXPECT_FALSE(told);
	EXPECT_TRUE(quiet);
	/* Now the backlog has room when the third request is repeated. */
	if (self->iwarp)
		SKIP(goto out, "requests are repeated by InfiniBand's kind only");
	ASSERT_EQ(0, rp_take_request(s, listener));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	EXPECT_EQ(0, rp_expect(clients[2].channel, clients[2].id,
			       RPOST_EVENT_ESTABLISHED));
out:
	for (i = 0; i < 3; i++)
		rp_end_close(&clients[i]);
}

TEST_F(cm, listener_destroyed_with_requests)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct pollfd pfd = { .fd = s->channel, .events = POLLIN };
	struct rpost_get_event event;

	ASSERT_EQ(0, rp_client_route(c, self->port));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	EXPECT_EQ(4, rp_num_objects(s->fd));
	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, self->listener));
	EXPECT_EQ(0, poll(&pfd, 1, 0));
	EXPECT_EQ(2, rp_num_objects(s->fd));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
}

/* A fetched request does not need its listener any more. */
TEST_F(cm, request_outlives_the_listener)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_ask(c, s, self->listener, 0));
	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, self->listener));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	EXPECT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED));
}

/* ------------------------------------------------------------ migration */

TEST_F(cm, migrate_with_events)
{
	struct rp_end *c = &self->c;
	struct pollfd pfd = { .fd = c->channel, .events = POLLIN };
	int other = rp_event_channel(c->fd);

	ASSERT_LE(0, other);
	ASSERT_EQ(0, rp_client_addr(c, self->port));
	ASSERT_EQ(0, rp_resolve_route(c->fd, c->id));
	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_migrate(c->fd, c->id, other));
	EXPECT_EQ(0, poll(&pfd, 1, 0));
	EXPECT_EQ(0, rp_expect(other, c->id, RPOST_EVENT_ROUTE_RESOLVED));
	/* Later events come to the new channel, too. */
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	ASSERT_EQ(0, rp_take_request(&self->s, self->listener));
	ASSERT_EQ(0, rp_reject(&self->s, self->s.id, NULL, 0));
	pfd.fd = other;
	EXPECT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	EXPECT_TRUE(rp_quiet(c->channel));
	/* Migrate to the same channel, then back with the unread event. */
	ASSERT_EQ(0, rp_migrate(c->fd, c->id, other));
	ASSERT_EQ(0, rp_migrate(c->fd, c->id, c->channel));
	EXPECT_EQ(0, poll(&pfd, 1, 0));
	close(other);
	pfd.fd = c->channel;
	EXPECT_EQ(1, poll(&pfd, 1, 0));
}

TEST_F(cm, migrate_a_listener)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct pollfd pfd = { .fd = s->channel, .events = POLLIN };
	int other = rp_event_channel(s->fd), first = s->channel;

	ASSERT_LE(0, other);
	ASSERT_EQ(0, rp_client_route(c, self->port));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_migrate(s->fd, self->listener, other));
	EXPECT_EQ(0, poll(&pfd, 1, 0));
	s->channel = other;
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	/*
	 * The new id reports to the channel on which its request was fetched.
	 */
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	EXPECT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(0, rp_expect(other, s->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(0, poll(&pfd, 1, 0));
	close(first);
}

TEST_F(cm, migrate_errors)
{
	int comp = rp_comp_channel(self->s.fd);

	ASSERT_LE(0, comp);
	EXPECT_EQ(-EBADF, rp_migrate(self->s.fd, self->listener, -1));
	EXPECT_EQ(-EBADF, rp_migrate(self->s.fd, self->listener, 9999));
	EXPECT_EQ(-EBADF, rp_migrate(self->s.fd, self->listener, 0));
	EXPECT_EQ(-EBADF, rp_migrate(self->s.fd, self->listener, comp));
	EXPECT_EQ(-EBADF, rp_migrate(self->s.fd, self->listener, self->s.fd));
	EXPECT_EQ(-EBADF, rp_migrate(self->s.fd, self->listener, self->c.channel));
	/* The listener still reports to its old channel. */
	EXPECT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	close(comp);
}

TEST_HARNESS_MAIN
