// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the creation of queue pairs and QUERY_QP.  A failure means that an
 * invalid size is accepted, or that the answer differs from the queue pair.
 */
#include <kselftest_harness.h>

#include "rpost_own.h"

#define STATE_INIT	1
#define STATE_RTS	3
#define STATE_ERR	6

FIXTURE(qp) {
	struct rp_end e;
	struct rpost_query_device dev;
	struct rpost_create_qp good;
};

FIXTURE_SETUP(qp)
{
	ASSERT_EQ(0, rp_end_init(&self->e));
	ASSERT_EQ(0, rp_query_device(self->e.fd, self->e.device, &self->dev));
	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &self->e.id));
	ASSERT_EQ(0, rp_bind(self->e.fd, self->e.id, 0));
	self->good = (struct rpost_create_qp) {
		.size = sizeof(self->good),
		.id = self->e.id,
		.pd = self->e.pd,
		.send_cq = self->e.cq.cmd.handle,
		.recv_cq = self->e.cq.cmd.handle,
		.max_send_wr = 3,
		.max_recv_wr = 5,
		.max_send_sge = 2,
		.max_recv_sge = 1,
		.max_inline_data = 33,
	};
}

FIXTURE_TEARDOWN(qp)
{
	rp_end_close(&self->e);
}

static int create(FIXTURE_DATA(qp) *self, struct rpost_create_qp *cmd)
{
	return rp_ioctl(self->e.fd, RPOST_IOC_CREATE_QP, cmd);
}

static int query(struct rp_end *end, uint32_t qp, struct rpost_query_qp *cmd)
{
	return rp_query_qp(&(struct rp_end){ .fd = end->fd, .qp = qp }, cmd);
}

TEST_F(qp, answer)
{
	struct rpost_create_qp cmd = self->good;
	struct rpost_query_qp q;

	ASSERT_EQ(0, create(self, &cmd));
	EXPECT_NE(0, cmd.handle);
	EXPECT_NE(0, cmd.qp_num);
	EXPECT_LE(3, cmd.max_send_wr);
	EXPECT_LE(5, cmd.max_recv_wr);
	EXPECT_EQ(2, cmd.max_send_sge);
	EXPECT_EQ(1, cmd.max_recv_sge);
	EXPECT_LE(33, cmd.max_inline_data);
	ASSERT_EQ(0, query(&self->e, cmd.handle, &q));
	EXPECT_EQ(cmd.handle, q.handle);
	EXPECT_EQ(STATE_INIT, q.attr.qp_state);
	EXPECT_EQ(cmd.max_send_wr, q.max_send_wr);
	EXPECT_EQ(cmd.max_recv_wr, q.max_recv_wr);
	EXPECT_EQ(cmd.max_send_sge, q.max_send_sge);
	EXPECT_EQ(cmd.max_recv_sge, q.max_recv_sge);
	EXPECT_EQ(cmd.max_inline_data, q.max_inline_data);
	EXPECT_EQ(0, q.qp_flags);
	/* An id has only one queue pair. */
	cmd = self->good;
	EXPECT_EQ(-EINVAL, create(self, &cmd));
	EXPECT_EQ(0, cmd.handle);
}

TEST_F(qp, flags_are_told)
{
	struct rpost_create_qp cmd = self->good;
	struct rpost_query_qp q;

	cmd.flags = RPOST_QP_SIG_ALL;
	ASSERT_EQ(0, create(self, &cmd));
	ASSERT_EQ(0, query(&self->e, cmd.handle, &q));
	EXPECT_EQ(RPOST_QP_SIG_ALL, q.qp_flags);
}

/* All sizes may be 0; the sizes of the answer can be used. */
TEST_F(qp, of_size_nothing)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.id = self->good.id,
		.pd = self->good.pd,
		.send_cq = self->good.send_cq,
		.recv_cq = self->good.recv_cq,
	};
	struct rpost_recv_wr recv = { .size = sizeof(recv) };
	uint32_t i;
	int ret;

	ASSERT_EQ(0, create(self, &cmd));
	for (i = 0; i < cmd.max_recv_wr; i++)
		EXPECT_EQ(0, rp_post(self->e.fd, RPOST_IOC_POST_RECV,
				     cmd.handle, &recv, sizeof(recv), 1, NULL));
	ret = rp_post(self->e.fd, RPOST_IOC_POST_RECV, cmd.handle, &recv,
		      sizeof(recv), 1, NULL);
	EXPECT_EQ(-ENOMEM, ret);
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, cmd.handle));
}

/* An id that has no device: new, or bound to the wildcard address. */
TEST_F(qp, needs_a_device)
{
	struct rpost_bind_addr any = {
		.size = sizeof(any),
		.addr_len = sizeof(struct sockaddr_in),
	};
	struct rpost_create_qp cmd = self->good;

	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &cmd.id));
	EXPECT_EQ(-EINVAL, create(self, &cmd));
	any.id = cmd.id;
	any.addr.ss_family = AF_INET;
	ASSERT_EQ(0, rp_ioctl(self->e.fd, RPOST_IOC_BIND_ADDR, &any));
	EXPECT_EQ(-EINVAL, create(self, &cmd));
	EXPECT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_ID, cmd.id));
}

/* An id can have one queue pair after another. */
TEST_F(qp, again)
{
	struct rpost_create_qp cmd;
	uint32_t last = 0;
	int i;

	for (i = 0; i < 10; i++) {
		cmd = self->good;
		ASSERT_EQ(0, create(self, &cmd));
		EXPECT_LT(last, cmd.handle);
		last = cmd.handle;
		ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, cmd.handle));
	}
	EXPECT_EQ(3, rp_num_objects(self->e.fd));
}

/* Separate completion queues for sends and receives. */
TEST_F(qp, two_completion_queues)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, NULL, 0, 0);
	struct rp_end *e = &self->e, s;
	struct rpost_get_event event;
	struct rpost_create_qp cmd;
	struct rp_cq recv_cq;
	struct rpost_wc wc;
	uint32_t listener;

	ASSERT_EQ(0, rp_create_cq(e->fd, e->device, 8, -1, &recv_cq));
	ASSERT_EQ(0, rp_listen(e->fd, e->id, 1));
	listener = e->id;
	ASSERT_EQ(0, rp_end_init(&s));
	ASSERT_EQ(0, rp_client_route(&s, rp_port(e->fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&s, 0));
	ASSERT_EQ(0, rp_connect(s.fd, s.id));
	ASSERT_EQ(0, rp_take_request(e, listener));
	cmd = self->good;
	cmd.id = e->id;
	cmd.recv_cq = recv_cq.cmd.handle;
	ASSERT_EQ(0, create(self, &cmd));
	e->qp = cmd.handle;
	ASSERT_EQ(0, rp_post_recv(e, 2, NULL, 0, 0));
	ASSERT_EQ(0, rp_accept(e->fd, e->id));
	ASSERT_EQ(0, rp_get_event(s.channel, &event));
	ASSERT_EQ(RPOST_EVENT_ESTABLISHED, event.event);

	ASSERT_EQ(0, rp_post_recv(&s, 3, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_send(&s, &send));
	ASSERT_EQ(0, rp_post_send(e, &send));
	ASSERT_EQ(1, rp_wait_cq(&recv_cq, &wc));
	EXPECT_EQ(2, wc.wr_id);
	EXPECT_EQ(RPOST_WC_RECV, wc.opcode);
	ASSERT_EQ(1, rp_wait_cq(&e->cq, &wc));
	EXPECT_EQ(1, wc.wr_id);
	EXPECT_EQ(RPOST_WC_SEND, wc.opcode);
	EXPECT_TRUE(rp_quiet_cq(&recv_cq));
	EXPECT_TRUE(rp_quiet_cq(&e->cq));
	rp_end_close(&s);
	rp_unmap_cq(&recv_cq);
}

TEST_F(qp, states_of_a_connection)
{
	struct rpost_query_qp q, other;
	struct rp_end c, s;

	ASSERT_EQ(0, rp_connect_pair(&c, &s, 0));
	ASSERT_EQ(0, query(&c, c.qp, &q));
	ASSERT_EQ(0, query(&s, s.qp, &other));
	EXPECT_EQ(STATE_RTS, q.attr.qp_state);
	EXPECT_EQ(STATE_RTS, other.attr.qp_state);
	EXPECT_EQ(s.qp_num, q.attr.dest_qp_num);
	EXPECT_EQ(c.qp_num, other.attr.dest_qp_num);
	EXPECT_LE(1, q.attr.port_num);
	EXPECT_LE(1, q.attr.path_mtu);
	EXPECT_GE(5, q.attr.path_mtu);
	EXPECT_EQ(q.attr.path_mtu, other.attr.path_mtu);
	EXPECT_EQ(q.attr.sq_psn & 0xffffff, q.attr.sq_psn);
	EXPECT_EQ(7, q.attr.retry_cnt);
	EXPECT_EQ(7, q.attr.rnr_retry);
	EXPECT_EQ(4, q.attr.max_rd_atomic);
	EXPECT_EQ(4, q.attr.max_dest_rd_atomic);
	EXPECT_EQ(RP_DEPTH, q.max_send_wr);
	ASSERT_EQ(0, rp_disconnect(c.fd, c.id));
	ASSERT_EQ(0, query(&c, c.qp, &q));
	EXPECT_EQ(STATE_ERR, q.attr.qp_state);
	rp_end_close(&c);
	rp_end_close(&s);
}

/* Many queue pairs, all with different numbers. */
TEST_F(qp, many)
{
	enum { N = 50 };
	uint32_t nums[N], qps[N], ids[N];
	struct rpost_create_qp cmd;
	int i, j;

	for (i = 0; i < N; i++) {
		cmd = self->good;
		ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel,
					  &ids[i]));
		ASSERT_EQ(0, rp_bind(self->e.fd, ids[i], 0));
		cmd.id = ids[i];
		ASSERT_EQ(0, create(self, &cmd));
		nums[i] = cmd.qp_num;
		qps[i] = cmd.handle;
		for (j = 0; j < i; j++)
			EXPECT_NE(nums[j], nums[i]);
	}
	EXPECT_EQ(3 + 2 * N, rp_num_objects(self->e.fd));
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_QP, qps[i]));
		ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_ID, ids[i]));
	}
	EXPECT_EQ(3, rp_num_objects(self->e.fd));
}

TEST_HARNESS_MAIN
