// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests connections whose queue pairs belong to the program instead of the id,
 * the options of ids, and paths.  A failure means that a connection ends with
 * the wrong queue pair, or that an id accepts a command in a wrong state.
 */
#include <kselftest_harness.h>

#include "path.h"
#include "rpost_own.h"

#define REJ_VENDOR	35

/* A client with its route resolved and a server that listens. */
FIXTURE(own) {
	struct rp_end c, s;
	uint32_t listener;
	uint16_t port;
	struct rpost_wc wc;
	struct rpost_get_event event;
};

FIXTURE_SETUP(own)
{
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_listener(&self->s, &self->listener));
	self->port = rp_port(self->s.fd, self->listener);
	ASSERT_EQ(0, rp_create_own(&self->c, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&self->s, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_client_route(&self->c, self->port));
}

FIXTURE_TEARDOWN(own)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

static int accept_qp(struct rp_end *end, uint32_t qp_num)
{
	struct rpost_accept cmd = { .size = sizeof(cmd), .id = end->id };

	rp_conn_param(&cmd.param);
	cmd.param.qp_num = qp_num;
	return rp_ioctl(end->fd, RPOST_IOC_ACCEPT, &cmd);
}

static int reject(struct rp_end *end, uint32_t reason)
{
	struct rpost_reject cmd = {
		.size = sizeof(cmd), .id = end->id, .reason = reason,
	};

	return rp_ioctl(end->fd, RPOST_IOC_REJECT, &cmd);
}

/* Connect up to CONNECT_RESPONSE at the client. */
static int respond(FIXTURE_DATA(own) *self)
{
	RP_TRY(rp_move_connected(&self->c, RPOST_QPS_INIT));
	RP_TRY(rp_connect_qp(&self->c, self->c.qp_num));
	RP_TRY(rp_take_request(&self->s, self->listener));
	RP_TRY(rp_move_connected(&self->s, RPOST_QPS_INIT));
	RP_TRY(rp_move_connected(&self->s, RPOST_QPS_RTR));
	RP_TRY(rp_move_connected(&self->s, RPOST_QPS_RTS));
	RP_TRY(accept_qp(&self->s, self->s.qp_num));
	return rp_expect(self->c.channel, self->c.id,
			 RPOST_EVENT_CONNECT_RESPONSE);
}

static int connected(FIXTURE_DATA(own) *self)
{
	RP_TRY(respond(self));
	RP_TRY(rp_move_connected(&self->c, RPOST_QPS_RTR));
	RP_TRY(rp_move_connected(&self->c, RPOST_QPS_RTS));
	RP_TRY(rp_establish(&self->c));
	return rp_expect(self->s.channel, self->s.id, RPOST_EVENT_ESTABLISHED);
}

TEST_F(own, connected_and_disconnected)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, connected(self));
	EXPECT_EQ(RPOST_ID_CONNECTED, rp_id_state(c->fd, c->id));
	EXPECT_EQ(RPOST_ID_CONNECTED, rp_id_state(s->fd, s->id));
	EXPECT_EQ(0, rp_empty_message(c, s));
	EXPECT_EQ(0, rp_empty_message(s, c));
	EXPECT_TRUE(rp_quiet(c->channel));
	EXPECT_EQ(-EINVAL, rp_establish(c));
	/* Disconnecting does not move the program's queue pair. */
	ASSERT_EQ(0, rp_disconnect(c->fd, c->id));
	ASSERT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_DISCONNECTED));
	ASSERT_EQ(0, rp_disconnect(s->fd, s->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(c));
	ASSERT_EQ(0, rp_post_recv(c, 9, NULL, 0, 0));
	ASSERT_EQ(0, rp_move(c, RPOST_QPS_ERR));
	ASSERT_EQ(1, rp_wait_cq(&c->cq, &self->wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	/*
	 * An id and its program's queue pair can be destroyed in either order.
	 */
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, s->id));
}

/* The client's program owns its queue pair; the server's belongs to the id. */
TEST_F(own, with_an_ordinary_side)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	ASSERT_EQ(0, rp_move_connected(c, RPOST_QPS_INIT));
	ASSERT_EQ(0, rp_connect_qp(c, c->qp_num));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	ASSERT_EQ(0, rp_get_event(c->channel, &self->event));
	ASSERT_EQ(RPOST_EVENT_CONNECT_RESPONSE, self->event.event);
	EXPECT_EQ(s->qp_num, self->event.param.qp_num);
	ASSERT_EQ(0, rp_move_connected(c, RPOST_QPS_RTR));
	ASSERT_EQ(0, rp_move_connected(c, RPOST_QPS_RTS));
	ASSERT_EQ(0, rp_establish(c));
	ASSERT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(0, rp_empty_message(c, s));
	EXPECT_EQ(0, rp_empty_message(s, c));
}

/* Numbers of queue pairs of other files, and of none. */
TEST_F(own, queue_pairs_of_others)
{
	const uint32_t bad[] = { 0, 1, self->s.qp_num, 0xffffff,
				 self->c.qp_num + 1000, UINT32_MAX };
	struct rp_end *c = &self->c, *s = &self->s;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, rp_connect_qp(c, bad[i])) {
			TH_LOG("queue pair %#x", bad[i]);
		}
		EXPECT_EQ(RPOST_ID_ROUTE_RESOLVED, rp_id_state(c->fd, c->id));
	}
	EXPECT_TRUE(rp_quiet(s->channel));
	ASSERT_EQ(0, rp_connect_qp(c, c->qp_num));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	EXPECT_EQ(-EINVAL, accept_qp(s, c->qp_num));
	EXPECT_EQ(-EINVAL, accept_qp(s, 0));
	EXPECT_EQ(RPOST_ID_REQUEST, rp_id_state(s->fd, s->id));
	/* The number of a queue pair that was destroyed. */
	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	EXPECT_EQ(-EINVAL, accept_qp(s, s->qp_num));
}

/*
 * A connection ends when its queue pair is destroyed: its number may be given
 * to another queue pair, even another program's, at once.
 */
TEST_F(own, connection_ends_with_its_queue_pair)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, connected(self));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	EXPECT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(RPOST_ID_DISCONNECTED, rp_id_state(s->fd, s->id));
	/* The peer disconnects, and disconnecting twice does no harm. */
	ASSERT_EQ(0, rp_disconnect(s->fd, s->id));
	EXPECT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(0, rp_disconnect(c->fd, c->id));
}

TEST_F(own, response_ends_with_its_queue_pair)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, respond(self));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	ASSERT_EQ(0, rp_get_event(s->channel, &self->event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, self->event.event);
	EXPECT_EQ(-EINVAL, rp_establish(c));
}

TEST_F(own, acceptance_ends_with_its_queue_pair)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, respond(self));
	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	EXPECT_TRUE(rp_quiet(c->channel));
	/* The connection ends as soon as it is established. */
	ASSERT_EQ(0, rp_establish(c));
	EXPECT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_DISCONNECTED));
}

/* The queue pair is destroyed before the response arrives. */
TEST_F(own, queue_pair_gone_before_the_response)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_connect_qp(c, c->qp_num));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	ASSERT_EQ(0, accept_qp(s, s->qp_num));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_CONNECT_RESPONSE));
	EXPECT_EQ(-EINVAL, rp_establish(c));
}

/* The server's queue pair belongs to its id. */
TEST_F(own, ordinary_connection_ends_with_its_queue_pair)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	ASSERT_EQ(0, rp_connect_qp(c, c->qp_num));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_CONNECT_RESPONSE));
	ASSERT_EQ(0, rp_establish(c));
	ASSERT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED));
	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	EXPECT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_DISCONNECTED));
}

/* Create a second queue pair of the client. */
static int another_qp(struct rp_end *c, struct rp_end *other)
{
	*other = *c;
	return rp_create_own(other, RPOST_QPT_RC, 0);
}

/* CONNECT with too much private data. */
static int connect_too_long(struct rp_end *end, uint32_t qp_num)
{
	struct rpost_connect cmd = { .size = sizeof(cmd), .id = end->id };

	rp_conn_param(&cmd.param);
	cmd.param.qp_num = qp_num;
	cmd.param.private_data_len = UINT8_MAX;
	return rp_ioctl(end->fd, RPOST_IOC_CONNECT, &cmd);
}

/* Connect two ids that have queue pairs; the server's is created here. */
static int connected_by_ids(FIXTURE_DATA(own) *self)
{
	struct rp_end *c = &self->c, *s = &self->s;

	RP_TRY(rp_connect(c->fd, c->id));
	RP_TRY(rp_take_request(s, self->listener));
	RP_TRY(rp_create_qp(s, 0));
	RP_TRY(rp_accept(s->fd, s->id));
	RP_TRY(rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	return rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED);
}

/* A second CONNECT names another queue pair, and fails. */
TEST_F(own, connection_keeps_its_queue_pair)
{
	struct rp_end *c = &self->c, *s = &self->s, other;

	ASSERT_EQ(0, connected(self));
	ASSERT_EQ(0, another_qp(c, &other));
	EXPECT_EQ(-EINVAL, rp_connect_qp(c, other.qp_num));
	ASSERT_EQ(0, rp_destroy(other.fd, RPOST_OBJ_QP, other.qp));
	EXPECT_TRUE(rp_quiet(s->channel));
	EXPECT_EQ(0, rp_empty_message(c, s));
	/* The same, but the other queue pair remains. */
	ASSERT_EQ(0, another_qp(c, &other));
	EXPECT_EQ(-EINVAL, rp_connect_qp(c, other.qp_num));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	EXPECT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_DISCONNECTED));
}

/*
 * The same after CONNECT_RESPONSE: once the first queue pair is destroyed, the
 * connection cannot be established with the other one.
 */
TEST_F(own, response_keeps_its_queue_pair)
{
	struct rp_end *c = &self->c, *s = &self->s, other;

	ASSERT_EQ(0, respond(self));
	ASSERT_EQ(0, another_qp(c, &other));
	EXPECT_EQ(-EINVAL, rp_connect_qp(c, other.qp_num));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	ASSERT_EQ(0, rp_get_event(s->channel, &self->event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, self->event.event);
	EXPECT_EQ(-EINVAL, rp_establish(c));
}

/* A failed CONNECT names a queue pair; then the id gets another one. */
TEST_F(own, failed_attempt_names_nothing)
{
	struct rp_end *c = &self->c, *s = &self->s, first = self->c;

	EXPECT_EQ(-EINVAL, connect_too_long(c, first.qp_num));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, connected_by_ids(self));
	ASSERT_EQ(0, rp_destroy(first.fd, RPOST_OBJ_QP, first.qp));
	EXPECT_TRUE(rp_quiet(s->channel));
	EXPECT_EQ(0, rp_empty_message(c, s));
}

/* The queue pair that a failed CONNECT named is destroyed before connecting. */
TEST_F(own, failed_attempt_ends_nothing)
{
	struct rp_end *c = &self->c, *s = &self->s;

	EXPECT_EQ(-EINVAL, connect_too_long(c, c->qp_num));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, connected_by_ids(self));
	EXPECT_TRUE(rp_quiet(s->channel));
	EXPECT_EQ(0, rp_empty_message(c, s));
}

/* Both ids connect after their first queue pairs have been destroyed. */
TEST_F(own, second_queue_pairs_of_ids)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	ASSERT_EQ(0, rp_create_qp(s, 0));
	ASSERT_EQ(0, rp_accept(s->fd, s->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	ASSERT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_TRUE(rp_quiet(s->channel));
	EXPECT_TRUE(rp_quiet(c->channel));
	EXPECT_EQ(0, rp_empty_message(c, s));
	/* The second queue pair has a connection, which ends with it. */
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_QP, c->qp));
	EXPECT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_DISCONNECTED));
}

/* CREATE_QP fails as it copies its answer; the program then tries again. */
TEST_F(own, queue_pair_whose_answer_failed)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.id = c->id,
		.pd = c->pd,
		.send_cq = c->cq.cmd.handle,
		.recv_cq = c->cq.cmd.handle,
		.max_send_wr = 1,
		.max_recv_wr = 1,
	};

	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(c->fd, RPOST_IOC_CREATE_QP, &cmd,
					       sizeof(cmd)));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, connected_by_ids(self));
	EXPECT_TRUE(rp_quiet(s->channel));
	EXPECT_EQ(0, rp_empty_message(c, s));
}

/* INIT_QP_ATTR fails for states that the connection has not reached. */
TEST_F(own, states_of_attributes)
{
	struct rp_end *c = &self->c, idle = self->c;
	struct rpost_qp_attr attr;
	uint32_t state;

	ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &idle.id));
	for (state = 0; state <= RPOST_QPS_ERR + 1; state++) {
		EXPECT_GT(0, rp_init_qp_attr(&idle, state, &attr));
		/* The route is resolved, but the id is not connected. */
		if (state != RPOST_QPS_INIT)
			EXPECT_EQ(-EINVAL, rp_init_qp_attr(c, state, &attr)) {
				TH_LOG("state %u", state);
			}
	}
	EXPECT_EQ(-EINVAL, rp_init_qp_attr(c, UINT32_MAX, &attr));
	ASSERT_EQ(0, rp_init_qp_attr(c, RPOST_QPS_INIT, &attr));
	EXPECT_EQ(RPOST_QPS_INIT, attr.qp_state);
	EXPECT_EQ(RPOST_QP_STATE | RPOST_QP_PKEY_INDEX | RPOST_QP_PORT |
		  RPOST_QP_ACCESS_FLAGS, attr.attr_mask);
	EXPECT_LE(1, attr.port_num);
	ASSERT_EQ(0, respond(self));
	ASSERT_EQ(0, rp_init_qp_attr(c, RPOST_QPS_RTR, &attr));
	EXPECT_EQ(self->s.qp_num, attr.dest_qp_num);
	EXPECT_LE(1, attr.path_mtu);
	EXPECT_EQ(1, attr.ah.is_global);
	EXPECT_EQ(RP_MASK_RTR_RC, attr.attr_mask & RP_MASK_RTR_RC);
	ASSERT_EQ(0, rp_init_qp_attr(c, RPOST_QPS_RTS, &attr));
	EXPECT_EQ(7, attr.retry_cnt);
	EXPECT_EQ(7, attr.rnr_retry);
	EXPECT_EQ(RP_MASK_RTS_RC, attr.attr_mask & RP_MASK_RTS_RC);
}

TEST_F(own, states_of_commands)
{
	struct rp_end *c = &self->c, *s = &self->s, listener = self->s;

	listener.id = self->listener;
	EXPECT_EQ(-EINVAL, rp_establish(c));
	EXPECT_EQ(-EINVAL, rp_establish(&listener));
	EXPECT_EQ(-EINVAL, reject(c, 0));
	EXPECT_EQ(-EINVAL, rp_notify(c, RPOST_ASYNC_COMM_EST));
	EXPECT_EQ(-EINVAL, rp_notify(c, RPOST_ASYNC_QP_FATAL));
	EXPECT_EQ(-EINVAL, rp_notify(c, UINT32_MAX));
	EXPECT_EQ(-EOPNOTSUPP, rp_notify(c, RPOST_ASYNC_PATH_MIG));
	EXPECT_EQ(-EINVAL, rp_notify(&listener, RPOST_ASYNC_COMM_EST));
	ASSERT_EQ(0, rp_connect_qp(c, c->qp_num));
	EXPECT_EQ(-EINVAL, rp_establish(c));
	EXPECT_EQ(-EINVAL, reject(c, 0));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	EXPECT_EQ(-EINVAL, rp_establish(s));
	EXPECT_EQ(-EINVAL, reject(s, 1));
	EXPECT_EQ(-EINVAL, reject(s, UINT32_MAX));
	EXPECT_EQ(RPOST_ID_REQUEST, rp_id_state(s->fd, s->id));
	ASSERT_EQ(0, accept_qp(s, s->qp_num));
	EXPECT_EQ(-EINVAL, rp_establish(s));
	ASSERT_EQ(0, rp_expect(c->channel, c->id,
			       RPOST_EVENT_CONNECT_RESPONSE));
	ASSERT_EQ(0, rp_establish(c));
	EXPECT_EQ(-EINVAL, rp_establish(c));
	EXPECT_EQ(-EINVAL, reject(c, 0));
}

/*
 * The reason of a rejection arrives, also when the client rejects a response.
 */
TEST_F(own, rejected_with_a_reason)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, rp_connect_qp(c, c->qp_num));
	ASSERT_EQ(0, rp_take_request(s, self->listener));
	ASSERT_EQ(0, reject(s, RPOST_REJ_VENDOR_OPTION_NOT_SUPPORTED));
	ASSERT_EQ(0, rp_get_event(c->channel, &self->event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, self->event.event);
	EXPECT_EQ(REJ_VENDOR, self->event.status);
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
	ASSERT_EQ(0, rp_client_route(c, self->port));
	ASSERT_EQ(0, respond(self));
	ASSERT_EQ(0, reject(c, 0));
	ASSERT_EQ(0, rp_get_event(s->channel, &self->event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, self->event.event);
	EXPECT_EQ(RPOST_REJ_CONSUMER_DEFINED, self->event.status);
	EXPECT_EQ(RPOST_ID_ERROR, rp_id_state(c->fd, c->id));
	EXPECT_EQ(RPOST_ID_ERROR, rp_id_state(s->fd, s->id));
}

/* NOTIFY reports data that came before the message that establishes. */
TEST_F(own, notified)
{
	struct rp_end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, respond(self));
	ASSERT_EQ(0, rp_notify(s, RPOST_ASYNC_COMM_EST));
	EXPECT_EQ(0, rp_expect(s->channel, s->id, RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(RPOST_ID_CONNECTED, rp_id_state(s->fd, s->id));
	ASSERT_EQ(0, rp_establish(c));
	EXPECT_EQ(-EISCONN, rp_notify(s, RPOST_ASYNC_COMM_EST));
}

TEST_F(own, enhanced_connection_establishment)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_connect connect_cmd = {
		.size = sizeof(connect_cmd),
		.id = c->id,
		.ece = { .vendor_id = 0x1234, .attr_mod = 0x55667788 },
	};
	struct rpost_accept accept_cmd = {
		.size = sizeof(accept_cmd),
		.ece = { .vendor_id = 0x4321, .attr_mod = 0x11223344 },
	};

	rp_conn_param(&connect_cmd.param);
	connect_cmd.param.qp_num = c->qp_num;
	rp_conn_param(&accept_cmd.param);
	accept_cmd.param.qp_num = s->qp_num;
	ASSERT_EQ(0, rp_ioctl(c->fd, RPOST_IOC_CONNECT, &connect_cmd));
	ASSERT_EQ(0, rp_get_event(s->channel, &self->event));
	ASSERT_EQ(RPOST_EVENT_CONNECT_REQUEST, self->event.event);
	EXPECT_EQ(0x1234, self->event.ece.vendor_id);
	EXPECT_EQ(0x55667788, self->event.ece.attr_mod);
	accept_cmd.id = self->event.id;
	ASSERT_EQ(0, rp_ioctl(s->fd, RPOST_IOC_ACCEPT, &accept_cmd));
	ASSERT_EQ(0, rp_get_event(c->channel, &self->event));
	ASSERT_EQ(RPOST_EVENT_CONNECT_RESPONSE, self->event.event);
	EXPECT_EQ(0x4321, self->event.ece.vendor_id & 0xffffff);
	EXPECT_EQ(0x11223344, self->event.ece.attr_mod);
}

/* Either side destroys its id at each step while the other side waits. */
TEST_F(own, destroyed_at_each_step)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_get_event event;
	int step;

	for (step = 0; step < 6; step++) {
		ASSERT_EQ(0, rp_connect_qp(c, c->qp_num));
		ASSERT_EQ(0, rp_take_request(s, self->listener));
		if (step >= 2) {
			ASSERT_EQ(0, accept_qp(s, s->qp_num));
			ASSERT_EQ(0, rp_get_event(c->channel, &event));
		}
		if (step >= 4)
			ASSERT_EQ(0, rp_establish(c));
		ASSERT_EQ(0, rp_destroy(step % 2 ? c->fd : s->fd, RPOST_OBJ_ID,
					step % 2 ? c->id : s->id));
		usleep(1000);
		ASSERT_EQ(0, rp_destroy(step % 2 ? s->fd : c->fd, RPOST_OBJ_ID,
					step % 2 ? s->id : c->id));
		ASSERT_EQ(0, rp_client_route(c, self->port));
	}
	/* The program's queue pairs have not been moved. */
	EXPECT_EQ(RPOST_QPS_RESET, rp_qp_state(c));
	EXPECT_EQ(4, rp_num_objects(c->fd));
}

/* -------------------------------------------------------------- options */

TEST_F(own, option_values)
{
	struct rpost_set_option cmd = { .size = sizeof(cmd) };
	const struct {
		uint32_t option, good, bad;
	} rows[] = {
		{ RPOST_OPTION_ID_TOS, 0xff, 0x100 },
		{ RPOST_OPTION_ID_REUSEADDR, 1, 2 },
		{ RPOST_OPTION_ID_AFONLY, 1, 2 },
		{ RPOST_OPTION_ID_ACK_TIMEOUT, 31, 32 },
	};
	struct rp_end *c = &self->c;
	unsigned int i;
	uint32_t id;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &id));
		EXPECT_EQ(-EINVAL, rp_set_option(c, id, RPOST_OPTION_ID, rows[i].option,
						 rows[i].bad));
		EXPECT_EQ(-EINVAL, rp_set_option(c, id, RPOST_OPTION_ID, rows[i].option,
						 UINT32_MAX));
		EXPECT_EQ(0, rp_set_option(c, id, RPOST_OPTION_ID, rows[i].option, rows[i].good)) {
			TH_LOG("option %u", rows[i].option);
		}
		EXPECT_EQ(0, rp_set_option(c, id, RPOST_OPTION_ID, rows[i].option, 0));
	}
	EXPECT_EQ(-EOPNOTSUPP, rp_set_option(c, id, RPOST_OPTION_ID, 4, 0));
	EXPECT_EQ(-EOPNOTSUPP, rp_set_option(c, id, RPOST_OPTION_ID, UINT32_MAX, 0));
	EXPECT_EQ(-EOPNOTSUPP, rp_set_option(c, id, RPOST_OPTION_IB, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, rp_set_option(c, id, 2, 0, 0));
	EXPECT_EQ(-EOPNOTSUPP, rp_set_option(c, id, UINT32_MAX, 0, 0));
	EXPECT_EQ(-ENOENT, rp_set_option(c, 0, RPOST_OPTION_ID, 0, 0));
	/* The data of an option that has a value. */
	cmd.id = id;
	cmd.data = (uintptr_t)&cmd;
	EXPECT_EQ(-EINVAL, rp_ioctl(c->fd, RPOST_IOC_SET_OPTION, &cmd));
	cmd.data = 0;
	cmd.data_len = 8;
	EXPECT_EQ(-EINVAL, rp_ioctl(c->fd, RPOST_IOC_SET_OPTION, &cmd));
	/* A listening id refuses the option. */
	EXPECT_EQ(-EINVAL, rp_set_option(&self->s, self->listener, RPOST_OPTION_ID,
					 RPOST_OPTION_ID_AFONLY, 1));
}

/* Two ids bind the same port if both have REUSEADDR. */
TEST_F(own, reused_address)
{
	struct rp_end *c = &self->c;
	uint32_t a, b;

	ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &a));
	ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &b));
	ASSERT_EQ(0, rp_set_option(c, a, RPOST_OPTION_ID, RPOST_OPTION_ID_REUSEADDR, 1));
	ASSERT_EQ(0, rp_bind(c->fd, a, 0));
	EXPECT_EQ(-EADDRINUSE, rp_bind(c->fd, b, rp_port(c->fd, a)));
	ASSERT_EQ(0, rp_set_option(c, b, RPOST_OPTION_ID, RPOST_OPTION_ID_REUSEADDR, 1));
	EXPECT_EQ(0, rp_bind(c->fd, b, rp_port(c->fd, a)));
}

/* The attributes for the queue pair have the timeout that was set. */
TEST_F(own, ack_timeout)
{
	struct rp_end *c = &self->c;
	struct rpost_qp_attr attr;

	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
	ASSERT_EQ(0, rp_create_id(c->fd, c->channel, &c->id));
	ASSERT_EQ(0, rp_set_option(c, c->id, RPOST_OPTION_ID, RPOST_OPTION_ID_ACK_TIMEOUT, 9));
	ASSERT_EQ(0, rp_resolve_addr(c->fd, c->id, self->port));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ADDR_RESOLVED));
	ASSERT_EQ(0, rp_resolve_route(c->fd, c->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ROUTE_RESOLVED));
	ASSERT_EQ(0, respond(self));
	ASSERT_EQ(0, rp_init_qp_attr(c, RPOST_QPS_RTS, &attr));
	EXPECT_EQ(9, attr.timeout);
}

/* ---------------------------------------------------------------- paths */

TEST_F(own, paths_of_an_id)
{
	struct rpost_query_id q;

	memset(&q, 0, sizeof(q));
	ASSERT_EQ(0, rp_query_id(self->c.fd, self->c.id, &q));
	EXPECT_LE(1, q.num_paths);
	EXPECT_EQ(0, memcmp(q.sgid, q.paths[0].sgid, 16));
	EXPECT_EQ(0, memcmp(q.dgid, q.paths[0].dgid, 16));
	EXPECT_EQ(q.path_mtu, q.paths[0].mtu);
	EXPECT_EQ(htons(0xffff), q.paths[0].pkey);
	EXPECT_EQ(0, q.paths[1].mtu);
	ASSERT_EQ(0, rp_query_id(self->s.fd, self->listener, &q));
	EXPECT_EQ(0, q.num_paths);
	EXPECT_EQ(0, q.paths[0].mtu);
}

TEST_F(own, path_that_is_set)
{
	struct ib_path_rec_data data[65], good;
	struct rp_end *c = &self->c;
	struct rpost_query_id q;
	int i;

	ASSERT_EQ(0, rp_query_id(c->fd, c->id, &q));
	rp_pack_path(&good, q.dgid, q.sgid);
	/* The route is resolved already. */
	EXPECT_EQ(-EINVAL, rp_set_path(c, &good, sizeof(good)));
	ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
	ASSERT_EQ(0, rp_client_addr(c, self->port));
	/* Data that is not a path record, or a record that is invalid. */
	EXPECT_EQ(-EINVAL, rp_set_path(c, &good, 0));
	EXPECT_EQ(-EINVAL, rp_set_path(c, &good, sizeof(good) - 1));
	EXPECT_EQ(-EINVAL, rp_set_path(c, &good, UINT32_MAX));
	EXPECT_EQ(-EFAULT, rp_set_path(c, NULL, sizeof(good)));
	EXPECT_EQ(-EFAULT, rp_set_path(c, (void *)-4096l, sizeof(good)));
	for (i = 0; i < 65; i++)
		data[i] = good;
	EXPECT_EQ(-EINVAL, rp_set_path(c, data, sizeof(data)));
	data[0].flags = IB_PATH_PRIMARY;
	EXPECT_EQ(-EINVAL, rp_set_path(c, data, sizeof(data[0])));
	memset(data, 0, sizeof(data[0]));
	EXPECT_EQ(-EINVAL, rp_set_path(c, data, sizeof(data[0])));
	memset(data, 0xff, sizeof(data[0]));
	EXPECT_EQ(-EINVAL, rp_set_path(c, data, sizeof(data[0])));
	data[0].flags = good.flags;
	EXPECT_EQ(-EINVAL, rp_set_path(c, data, sizeof(data[0])));
	EXPECT_EQ(RPOST_ID_ADDR_RESOLVED, rp_id_state(c->fd, c->id));
	EXPECT_TRUE(rp_quiet(c->channel));
	/* SET_PATH takes the place of RESOLVE_ROUTE. */
	ASSERT_EQ(0, rp_set_path(c, &good, sizeof(good)));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ROUTE_RESOLVED));
	EXPECT_EQ(RPOST_ID_ROUTE_RESOLVED, rp_id_state(c->fd, c->id));
	ASSERT_EQ(0, rp_query_id(c->fd, c->id, &q));
	EXPECT_EQ(1, q.num_paths);
	EXPECT_EQ(3, q.paths[0].mtu);
}

TEST_HARNESS_MAIN
