// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests ids for datagrams, which ask a peer for its queue pair, and multicast
 * groups.  A failure means that a program gets a wrong address, uses a queue
 * pair of another file, or that a group's event is lost or comes too late.
 */
#include <kselftest_harness.h>
#include <grp.h>
#include <sys/wait.h>

#include "rpost_own.h"

#define NOBODY		65534
#define BUF		4096
#define UDP_QKEY	0x01234567	/* of RPOST_PS_UDP */
#define REQUEST_DATA	180
#define REPLY_DATA	136
#define MAX_JOINS	64
#define MCAST_QPN	0xffffff

/* Both ends have a datagram queue pair; the server has a listener. */
FIXTURE(ud) {
	struct rp_end c, s;
	uint32_t listener;
	uint16_t port;
	char *buf;
	struct rpost_reg_mr mr;
	struct rpost_wc wc;
	struct rpost_get_event event;
};

static int create_id(struct rp_end *end, uint32_t port_space, uint32_t type,
		     uint32_t *handle)
{
	return rp_create_id_of(end->fd, end->channel, port_space, type, handle);
}

/* Create a queue pair with the Q_Key of the port space. */
static int bring_up(struct rp_end *end)
{
	const struct rpost_qp_attr qkey = {
		.attr_mask = RPOST_QP_QKEY, .qkey = UDP_QKEY,
	};

	RP_TRY(rp_create_own(end, RPOST_QPT_UD, 0));
	RP_TRY(rp_bring_up(end, RPOST_QPT_UD, 0));
	return rp_modify(end, &qkey);
}

FIXTURE_SETUP(ud)
{
	self->buf = rp_pages(BUF);
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, bring_up(&self->c));
	ASSERT_EQ(0, bring_up(&self->s));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->buf, BUF,
			       RPOST_ACCESS_LOCAL_WRITE, &self->mr));
	ASSERT_EQ(0, create_id(&self->s, RPOST_PS_UDP, RPOST_QPT_UD,
			       &self->listener));
	ASSERT_EQ(0, rp_bind(self->s.fd, self->listener, 0));
	ASSERT_EQ(0, rp_listen(self->s.fd, self->listener, 4));
	self->port = rp_port(self->s.fd, self->listener);
}

FIXTURE_TEARDOWN(ud)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* Create the client's id and resolve its route. */
static int route(FIXTURE_DATA(ud) *self)
{
	struct rp_end *c = &self->c;

	RP_TRY(create_id(c, RPOST_PS_UDP, RPOST_QPT_UD, &c->id));
	return rp_resolve(c, self->port);
}

static int connect_data(struct rp_end *end, uint8_t len, uint8_t fill)
{
	struct rpost_connect cmd = { .size = sizeof(cmd), .id = end->id };

	cmd.param.private_data_len = len;
	memset(cmd.param.private_data, fill, sizeof(cmd.param.private_data));
	return rp_ioctl(end->fd, RPOST_IOC_CONNECT, &cmd);
}

static int accept_as(struct rp_end *end, uint32_t qp_num, uint32_t qkey,
		     uint8_t len)
{
	struct rpost_accept cmd = {
		.size = sizeof(cmd), .id = end->id, .qkey = qkey,
	};

	cmd.param.qp_num = qp_num;
	cmd.param.private_data_len = len;
	memset(cmd.param.private_data, 'p', sizeof(cmd.param.private_data));
	return rp_ioctl(end->fd, RPOST_IOC_ACCEPT, &cmd);
}

/* Connect the client's id and fetch the request. */
static int ask(FIXTURE_DATA(ud) *self)
{
	RP_TRY(route(self));
	RP_TRY(connect_data(&self->c, 10, 'q'));
	return rp_take_request(&self->s, self->listener);
}

/* Send a datagram to the address in an event; the server must receive it. */
static int send_by(FIXTURE_DATA(ud) *self, const struct rpost_ud_param *ud)
{
	struct rp_send send;
	uint32_t ah;

	RP_TRY(rp_create_ah(self->c.fd, self->c.pd, &ud->ah, &ah));
	RP_TRY(rp_post_recv(&self->s, 5, self->buf, BUF, self->mr.lkey));
	send = rp_empty_datagram(ah, ud->qp_num, 6);
	send.wr.remote_qkey = ud->qkey;
	RP_TRY(rp_post_send(&self->c, &send));
	if (rp_wait_cq(&self->s.cq, &self->wc) != 1 || self->wc.status ||
	    self->wc.wr_id != 5 || self->wc.src_qp != self->c.qp_num)
		return -EIO;
	return rp_wait_cq(&self->c.cq, &self->wc) == 1 ? 0 : -EIO;
}

static bool filled(const uint8_t *p, size_t bytes, uint8_t value)
{
	while (bytes--) {
		if (*p++ != value)
			return false;
	}
	return true;
}

TEST_F(ud, asked_and_answered)
{
	struct rp_end *c = &self->c, *s = &self->s;
	struct rpost_get_event *event = &self->event;

	ASSERT_EQ(0, route(self));
	EXPECT_EQ(RPOST_ID_ROUTE_RESOLVED, rp_id_state(c->fd, c->id));
	ASSERT_EQ(0, connect_data(c, 10, 'q'));
	ASSERT_EQ(0, rp_get_event(s->channel, event));
	EXPECT_EQ(RPOST_EVENT_CONNECT_REQUEST, event->event);
	EXPECT_EQ(self->listener, event->listen_id);
	EXPECT_LE(10, event->param.private_data_len);
	EXPECT_TRUE(filled(event->param.private_data, 10, 'q'));
	s->id = event->id;
	EXPECT_EQ(RPOST_ID_REQUEST, rp_id_state(s->fd, s->id));
	ASSERT_EQ(0, accept_as(s, s->qp_num, 0, 20));
	ASSERT_EQ(0, rp_get_event(c->channel, event));
	EXPECT_EQ(RPOST_EVENT_ESTABLISHED, event->event);
	EXPECT_EQ(0, event->status);
	EXPECT_EQ(c->id, event->id);
	EXPECT_EQ(s->qp_num, event->ud.qp_num);
	EXPECT_EQ(UDP_QKEY, event->ud.qkey);
	EXPECT_EQ(1, event->ud.ah.port_num);
	EXPECT_LE(20, event->param.private_data_len);
	EXPECT_TRUE(filled(event->param.private_data, 20, 'p'));
	EXPECT_EQ(RPOST_ID_CONNECTED, rp_id_state(c->fd, c->id));
	EXPECT_EQ(RPOST_ID_CONNECTED, rp_id_state(s->fd, s->id));
	EXPECT_EQ(0, send_by(self, &event->ud));
	EXPECT_TRUE(rp_quiet(s->channel));
	/* The ids have no connection to end. */
	EXPECT_EQ(-ENOTCONN, rp_disconnect(c->fd, c->id));
	EXPECT_EQ(-ENOTCONN, rp_disconnect(s->fd, s->id));
	EXPECT_EQ(-EINVAL, accept_as(s, s->qp_num, 0, 0));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
	EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, s->id));
}

/* The server answers with a Q_Key of its program's. */
TEST_F(ud, own_key)
{
	const struct rpost_qp_attr attr = {
		.attr_mask = RPOST_QP_QKEY, .qkey = 0x777,
	};

	ASSERT_EQ(0, ask(self));
	ASSERT_EQ(0, rp_modify(&self->s, &attr));
	ASSERT_EQ(0, accept_as(&self->s, self->s.qp_num, 0x777, 0));
	ASSERT_EQ(0, rp_get_event(self->c.channel, &self->event));
	ASSERT_EQ(RPOST_EVENT_ESTABLISHED, self->event.event);
	EXPECT_EQ(0x777, self->event.ud.qkey);
	EXPECT_EQ(0, send_by(self, &self->event.ud));
}

/* ACCEPT refuses queue pairs that are not of its file. */
TEST_F(ud, queue_pairs_of_others)
{
	const uint32_t bad[] = { 0, 1, self->c.qp_num, self->s.qp_num + 1000,
				 0xffffff, UINT32_MAX };
	unsigned int i;

	ASSERT_EQ(0, ask(self));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, accept_as(&self->s, bad[i], 0, 0)) {
			TH_LOG("queue pair %#x", bad[i]);
		}
		EXPECT_EQ(RPOST_ID_REQUEST, rp_id_state(self->s.fd, self->s.id));
	}
	EXPECT_TRUE(rp_quiet(self->c.channel));
	EXPECT_EQ(0, accept_as(&self->s, self->s.qp_num, 0, 0));
}

TEST_F(ud, refused)
{
	struct rpost_reject cmd = { .size = sizeof(cmd) };

	ASSERT_EQ(0, ask(self));
	cmd.id = self->s.id;
	ASSERT_EQ(0, rp_ioctl(self->s.fd, RPOST_IOC_REJECT, &cmd));
	ASSERT_EQ(0, rp_get_event(self->c.channel, &self->event));
	EXPECT_TRUE(self->event.event == RPOST_EVENT_UNREACHABLE ||
		    self->event.event == RPOST_EVENT_REJECTED);
	EXPECT_NE(0, self->event.status);
	EXPECT_EQ(RPOST_ID_ERROR, rp_id_state(self->c.fd, self->c.id));
	EXPECT_EQ(RPOST_ID_ERROR, rp_id_state(self->s.fd, self->s.id));
	EXPECT_EQ(-EINVAL, accept_as(&self->s, self->s.qp_num, 0, 0));
}

TEST_F(ud, longest_private_data)
{
	ASSERT_EQ(0, route(self));
	EXPECT_EQ(-EINVAL, connect_data(&self->c, REQUEST_DATA + 1, 'q'));
	EXPECT_EQ(-EINVAL, connect_data(&self->c, 255, 'q'));
	EXPECT_EQ(RPOST_ID_ROUTE_RESOLVED, rp_id_state(self->c.fd, self->c.id));
	ASSERT_EQ(0, connect_data(&self->c, REQUEST_DATA, 'q'));
	ASSERT_EQ(0, rp_take_request(&self->s, self->listener));
	EXPECT_EQ(-EINVAL, accept_as(&self->s, self->s.qp_num, 0,
				     REPLY_DATA + 1));
	EXPECT_EQ(-EINVAL, accept_as(&self->s, self->s.qp_num, 0, 255));
	EXPECT_EQ(RPOST_ID_REQUEST, rp_id_state(self->s.fd, self->s.id));
	ASSERT_EQ(0, accept_as(&self->s, self->s.qp_num, 0, REPLY_DATA));
	ASSERT_EQ(0, rp_get_event(self->c.channel, &self->event));
	EXPECT_EQ(RPOST_EVENT_ESTABLISHED, self->event.event);
	EXPECT_TRUE(filled(self->event.param.private_data, REPLY_DATA, 'p'));
}

/* Commands that ids for datagrams refuse. */
TEST_F(ud, what_makes_no_sense)
{
	struct rpost_establish establish = { .size = sizeof(establish) };
	struct rpost_create_qp qp = {
		.size = sizeof(qp),
		.pd = self->c.pd,
		.send_cq = self->c.cq.cmd.handle,
		.recv_cq = self->c.cq.cmd.handle,
		.qp_type = RPOST_QPT_UD,
	};

	ASSERT_EQ(0, route(self));
	qp.id = self->c.id;
	EXPECT_EQ(-EINVAL, rp_ioctl(self->c.fd, RPOST_IOC_CREATE_QP, &qp));
	qp.qp_type = RPOST_QPT_RC;
	EXPECT_EQ(-EINVAL, rp_ioctl(self->c.fd, RPOST_IOC_CREATE_QP, &qp));
	establish.id = self->c.id;
	EXPECT_EQ(-EINVAL, rp_ioctl(self->c.fd, RPOST_IOC_ESTABLISH,
				    &establish));
	EXPECT_EQ(-EINVAL, accept_as(&self->c, self->c.qp_num, 0, 0));
	EXPECT_EQ(RPOST_ID_ROUTE_RESOLVED, rp_id_state(self->c.fd, self->c.id));
	/* A Q_Key on an id for connections. */
	ASSERT_EQ(0, create_id(&self->s, RPOST_PS_TCP, RPOST_QPT_RC,
			       &self->s.id));
	EXPECT_EQ(-EINVAL, accept_as(&self->s, self->s.qp_num, 1, 0));
}

/* INIT_QP_ATTR for an id for datagrams. */
TEST_F(ud, attributes)
{
	struct rpost_init_qp_attr cmd = { .size = sizeof(cmd) };
	struct rp_end *c = &self->c;
	struct rpost_query_qp q;

	ASSERT_EQ(0, create_id(c, RPOST_PS_UDP, RPOST_QPT_UD, &c->id));
	cmd.id = c->id;
	cmd.attr.qp_state = RPOST_QPS_INIT;
	EXPECT_EQ(-EINVAL, rp_ioctl(c->fd, RPOST_IOC_INIT_QP_ATTR, &cmd));
	ASSERT_EQ(0, rp_bind(c->fd, c->id, 0));
	ASSERT_EQ(0, rp_ioctl(c->fd, RPOST_IOC_INIT_QP_ATTR, &cmd));
	EXPECT_EQ(RPOST_QPS_INIT, cmd.attr.qp_state);
	EXPECT_EQ(UDP_QKEY, cmd.attr.qkey);
	EXPECT_EQ(RPOST_QP_QKEY, cmd.attr.attr_mask & RPOST_QP_QKEY);
	ASSERT_EQ(0, rp_move(c, RPOST_QPS_RESET));
	ASSERT_EQ(0, rp_modify(c, &cmd.attr));
	ASSERT_EQ(0, rp_query_qp(c, &q));
	EXPECT_EQ(RPOST_QPS_INIT, q.attr.qp_state);
	EXPECT_EQ(UDP_QKEY, q.attr.qkey);
}

/* An unprivileged program answers with a privileged Q_Key. */
TEST_F(ud, privileged_key)
{
	int status = -1;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root to become nobody");
	ASSERT_EQ(0, ask(self));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(1);
		_exit(accept_as(&self->s, self->s.qp_num, 0x80000000, 0) ==
		      -EPERM ? 0 : 2);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(RPOST_ID_REQUEST, rp_id_state(self->s.fd, self->s.id));
	EXPECT_EQ(0, accept_as(&self->s, self->s.qp_num, 0x80000000, 0));
}

/* Each side destroys its id in several states while the other side waits. */
TEST_F(ud, destroyed_in_any_state)
{
	struct rp_end *c = &self->c, *s = &self->s;
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, ask(self));
		if (i == 0)
			ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
		EXPECT_EQ(i == 1 ? -EINVAL : 0,
			  accept_as(s, i == 1 ? 0 : s->qp_num, 0, 0));
		EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, s->id));
		if (i > 0)
			ASSERT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
	}
	EXPECT_EQ(3, rp_num_objects(c->fd));
	EXPECT_EQ(5, rp_num_objects(s->fd));
	/* The listener is destroyed with a request that was not fetched. */
	ASSERT_EQ(0, route(self));
	ASSERT_EQ(0, connect_data(c, 0, 0));
	EXPECT_EQ(6, rp_wait_objects(s->fd, 6));
	EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, self->listener));
	EXPECT_EQ(4, rp_num_objects(s->fd));
}

/* --------------------------------------------------------------- groups */

/* Bind an id, so that it has a device and can join groups. */
static int bound(struct rp_end *end)
{
	RP_TRY(create_id(end, RPOST_PS_UDP, RPOST_QPT_UD, &end->id));
	return rp_bind(end->fd, end->id, 0);
}

TEST_F(ud, joined_and_left)
{
	struct rpost_attach_mcast attach = { .size = sizeof(attach) };
	struct rpost_get_event *event = &self->event;
	struct rp_end *c = &self->c;
	uint32_t ah;
	int ret;

	ASSERT_EQ(0, bound(c));
	ret = rp_join_mcast(c, c->id, "239.1.2.3", 0xabcdef0123456789);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, rp_get_event(c->channel, event));
	EXPECT_EQ(RPOST_EVENT_MULTICAST_JOIN, event->event);
	EXPECT_EQ(0, event->status);
	EXPECT_EQ(c->id, event->id);
	EXPECT_EQ(0xabcdef0123456789, event->user_data);
	EXPECT_EQ(MCAST_QPN, event->ud.qp_num);
	EXPECT_EQ(UDP_QKEY, event->ud.qkey);
	EXPECT_EQ(1, event->ud.ah.is_global);
	EXPECT_EQ(239, event->ud.ah.dgid[12]);
	EXPECT_EQ(3, event->ud.ah.dgid[15]);
	/*
	 * The program creates the address handle and attaches its queue pair.
	 */
	EXPECT_EQ(0, rp_create_ah(c->fd, c->pd, &event->ud.ah, &ah));
	attach.qp = c->qp;
	memcpy(attach.gid, event->ud.ah.dgid, sizeof(attach.gid));
	EXPECT_EQ(0, rp_ioctl(c->fd, RPOST_IOC_ATTACH_MCAST, &attach));
	struct rp_send send = rp_empty_datagram(ah, MCAST_QPN, 1);

	send.wr.remote_qkey = event->ud.qkey;
	ASSERT_EQ(0, rp_post_send(c, &send));
	ASSERT_EQ(1, rp_wait_cq(&c->cq, &self->wc));
	EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(0, rp_ioctl(c->fd, RPOST_IOC_DETACH_MCAST, &attach));

	EXPECT_EQ(0, rp_leave_mcast(c, c->id, "239.1.2.3"));
	EXPECT_EQ(-ENOENT, rp_leave_mcast(c, c->id, "239.1.2.3"));
	EXPECT_EQ(-ENOENT, rp_leave_mcast(c, c->id, "239.9.9.9"));
	EXPECT_TRUE(rp_quiet(c->channel));
	/* Join again; leaving drops the event that was not read. */
	ASSERT_EQ(0, rp_join_mcast(c, c->id, "239.1.2.3", 1));
	usleep(TEST_QUIET_MS * 1000);
	ASSERT_EQ(0, rp_leave_mcast(c, c->id, "239.1.2.3"));
	EXPECT_TRUE(rp_quiet(c->channel));
	/* Destroying the id leaves the group and drops its event. */
	ASSERT_EQ(0, rp_join_mcast(c, c->id, "239.1.2.3", 1));
	EXPECT_EQ(0, rp_destroy(c->fd, RPOST_OBJ_ID, c->id));
	EXPECT_TRUE(rp_quiet(c->channel));
}

TEST_F(ud, join_errors)
{
	struct rpost_join_mcast cmd = { .size = sizeof(cmd) };
	struct rp_end *c = &self->c;
	uint32_t rc, idle;

	ASSERT_EQ(0, create_id(c, RPOST_PS_UDP, RPOST_QPT_UD, &idle));
	EXPECT_EQ(-EINVAL, rp_join_mcast(c, idle, "239.1.2.3", 0));
	ASSERT_EQ(0, create_id(c, RPOST_PS_TCP, RPOST_QPT_RC, &rc));
	ASSERT_EQ(0, rp_bind(c->fd, rc, 0));
	EXPECT_EQ(-EINVAL, rp_join_mcast(c, rc, "239.1.2.3", 0));
	EXPECT_EQ(-EINVAL, rp_join_mcast(&self->s, self->listener, "239.1.2.3", 0));
	ASSERT_EQ(0, bound(c));
	EXPECT_EQ(-EINVAL, rp_join_mcast(c, c->id, "10.1.2.3", 0));
	EXPECT_EQ(-EINVAL, rp_join_mcast(c, c->id, "255.255.255.255", 0));
	cmd.id = c->id;
	rp_group_addr(&cmd.addr, "239.1.2.3");
	cmd.addr_len = sizeof(struct sockaddr_in) - 1;
	EXPECT_EQ(-EINVAL, rp_ioctl(c->fd, RPOST_IOC_JOIN_MCAST, &cmd));
	cmd.addr_len = UINT32_MAX;
	EXPECT_EQ(-EINVAL, rp_ioctl(c->fd, RPOST_IOC_JOIN_MCAST, &cmd));
	cmd.addr_len = sizeof(struct sockaddr_in);
	cmd.join_flags = 2;
	EXPECT_GT(0, rp_ioctl(c->fd, RPOST_IOC_JOIN_MCAST, &cmd));
	cmd.join_flags = 0;
	cmd.addr.ss_family = AF_UNIX;
	EXPECT_EQ(-EAFNOSUPPORT, rp_ioctl(c->fd, RPOST_IOC_JOIN_MCAST, &cmd));
	EXPECT_EQ(-ENOENT, rp_leave_mcast(c, c->id, "239.1.2.3"));
	EXPECT_TRUE(rp_quiet(c->channel));
}

TEST_F(ud, limit_of_joins)
{
	struct rp_end *c = &self->c;
	char ip[32];
	int i;

	ASSERT_EQ(0, bound(c));
	for (i = 0; i < MAX_JOINS; i++) {
		snprintf(ip, sizeof(ip), "239.2.0.%d", i);
		ASSERT_EQ(0, rp_join_mcast(c, c->id, ip, i));
	}
	EXPECT_EQ(-ENOMEM, rp_join_mcast(c, c->id, "239.3.0.1", 0));
	ASSERT_EQ(0, rp_leave_mcast(c, c->id, "239.2.0.7"));
	EXPECT_EQ(0, rp_join_mcast(c, c->id, "239.3.0.1", 0));
	EXPECT_EQ(-ENOMEM, rp_join_mcast(c, c->id, "239.3.0.2", 0));
	/* Closing the file leaves all groups and drops their events. */
}

TEST_HARNESS_MAIN
