// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams by connection ids: queue pairs, the resolution of a service to a
 * queue pair, data both ways, multicast groups.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <pthread.h>

#include "rdma_test.h"

#define CONTEXT ((void *)0x1234ul)
#define GRH_SIZE sizeof(struct ibv_grh)
#define MSG_SIZE 1024
#define MULTICAST_QPN 0xffffffu
#define GROUP "239.255.17.4"
#define OTHER_GROUP "239.255.17.5"

static const struct ibv_qp_init_attr ud_qp = {
	.cap = {
		.max_send_wr = 8, .max_recv_wr = 8,
		.max_send_sge = 1, .max_recv_sge = 1,
		.max_inline_data = 64,
	},
	.qp_type = IBV_QPT_UD,
	.sq_sig_all = 1,
};

static const char question[] = "who is there?", answer[] = "it is me";

FIXTURE(ud) {
	struct sockaddr_storage addr;
	struct rdma_cm_id *listen;
	struct end c, s;
	struct ibv_ah *ah;
};

static int make_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = ud_qp;

	if (rdma_create_qp(end->id, NULL, &attr))
		return -1;
	return end_buffer(end, BUF_SIZE);
}

static int ud_listen(struct rdma_event_channel *channel,
		     struct rdma_cm_id **listen, struct sockaddr_storage *addr)
{
	if (rdma_create_id(channel, listen, CONTEXT, RDMA_PS_UDP) ||
	    rdma_bind_addr(*listen, (struct sockaddr *)addr) ||
	    rdma_listen(*listen, 4))
		return -1;
	set_port(addr, rdma_get_src_port(*listen));
	return 0;
}

static int ud_resolve(struct end *c, struct sockaddr_storage *addr)
{
	if (rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_UDP) ||
	    rdma_resolve_addr(c->id, NULL, (struct sockaddr *)addr, 10000) ||
	    expect_event(c->channel, RDMA_CM_EVENT_ADDR_RESOLVED, &c->event) ||
	    rdma_resolve_route(c->id, 10000) ||
	    expect_event(c->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, &c->event))
		return -1;
	return 0;
}

FIXTURE_SETUP(ud)
{
	ASSERT_TRUE(test_addr(AF_INET, &self->addr));
	self->c.channel = rdma_create_event_channel();
	self->s.channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->c.channel);
	ASSERT_NE(NULL, self->s.channel);
	ASSERT_EQ(0, ud_listen(self->s.channel, &self->listen, &self->addr));
	ASSERT_EQ(0, ud_resolve(&self->c, &self->addr));
}

FIXTURE_TEARDOWN(ud)
{
	if (self->ah)
		EXPECT_EQ(0, ibv_destroy_ah(self->ah));
	end_close(&self->c);
	end_close(&self->s);
	rdma_destroy_id(self->listen);
	rdma_destroy_event_channel(self->c.channel);
	rdma_destroy_event_channel(self->s.channel);
}

/* Asks for the server's queue pair, and lets the server answer. */
static int ud_connect(struct end *c, struct end *s)
{
	struct rdma_conn_param param = {
		.private_data = question,
		.private_data_len = sizeof(question),
	};

	if (rdma_connect(c->id, &param) ||
	    expect_event(s->channel, RDMA_CM_EVENT_CONNECT_REQUEST, &s->event))
		return -1;
	s->id = s->event.id;
	return 0;
}

static int ud_accept(struct end *c, struct end *s, uint32_t qp_num)
{
	struct rdma_conn_param param = {
		.private_data = answer,
		.private_data_len = sizeof(answer),
		.qp_num = qp_num,
	};

	if (rdma_accept(s->id, &param))
		return -1;
	return expect_event(c->channel, RDMA_CM_EVENT_ESTABLISHED, &c->event);
}

static int ud_open(struct end *c, struct end *s)
{
	if (make_qp(c) || ud_connect(c, s) || make_qp(s))
		return -1;
	return ud_accept(c, s, s->id->qp->qp_num);
}

TEST_F(ud, ids_and_queue_pairs)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	EXPECT_EQ(RDMA_PS_UDP, self->c.id->ps);
	EXPECT_EQ(IBV_QPT_UD, self->c.id->qp_type);
	ASSERT_EQ(0, make_qp(&self->c));
	EXPECT_EQ(IBV_QPT_UD, self->c.id->qp->qp_type);
	EXPECT_EQ(self->c.id->pd, self->c.id->qp->pd);
	EXPECT_NE(NULL, self->c.id->send_cq);
	EXPECT_NE(NULL, self->c.id->recv_cq);

	memset(&attr, POISON, sizeof(attr));
	ASSERT_EQ(0, ibv_query_qp(self->c.id->qp, &attr, IBV_QP_STATE |
				  IBV_QP_QKEY | IBV_QP_PORT, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(RDMA_UDP_QKEY, attr.qkey);
	EXPECT_EQ(self->c.id->port_num, attr.port_num);
	EXPECT_EQ(IBV_QPT_UD, init.qp_type);
	EXPECT_EQ(IBV_QPS_RTS, self->c.id->qp->state);
}

TEST_F(ud, one_queue_pair)
{
	struct ibv_qp_init_attr attr = ud_qp;

	ASSERT_EQ(0, make_qp(&self->c));
	EXPECT_EQ(-1, rdma_create_qp(self->c.id, NULL, &attr));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(ud, resolution_tells_the_queue_pair)
{
	struct event *ev = &self->s.event;

	ASSERT_EQ(0, make_qp(&self->c));
	ASSERT_EQ(0, ud_connect(&self->c, &self->s));
	EXPECT_EQ(self->listen, ev->listen_id);
	EXPECT_EQ(CONTEXT, ev->id->context);
	EXPECT_EQ(RDMA_PS_UDP, ev->id->ps);
	EXPECT_EQ(IBV_QPT_UD, ev->id->qp_type);
	EXPECT_NE(NULL, ev->id->verbs);
	ASSERT_LE(sizeof(question), ev->ud.private_data_len);
	EXPECT_EQ(0, memcmp(question, ev->data, sizeof(question)));

	ASSERT_EQ(0, make_qp(&self->s));
	ASSERT_EQ(0, ud_accept(&self->c, &self->s, 0));
	ev = &self->c.event;
	EXPECT_EQ(self->c.id, ev->id);
	EXPECT_EQ(self->s.id->qp->qp_num, ev->ud.qp_num);
	EXPECT_EQ(RDMA_UDP_QKEY, ev->ud.qkey);
	EXPECT_EQ(self->c.id->port_num, ev->ud.ah_attr.port_num);
	EXPECT_EQ(1, ev->ud.ah_attr.is_global);
	EXPECT_EQ(0, memcmp(&self->s.id->route.addr.addr.ibaddr.sgid,
			    &ev->ud.ah_attr.grh.dgid, 16));
	ASSERT_LE(sizeof(answer), ev->ud.private_data_len);
	EXPECT_EQ(0, memcmp(answer, ev->data, sizeof(answer)));
	/* The one that answers hears no more. */
	EXPECT_TRUE(no_event(self->s.channel));
	EXPECT_TRUE(no_event(self->c.channel));
}

/* The answer names a queue pair that the library does not know of. */
TEST_F(ud, queue_pairs_of_the_program)
{
	struct ibv_qp_init_attr attr = ud_qp;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	ASSERT_EQ(0, ud_connect(&self->c, &self->s));
	cq = ibv_create_cq(self->s.id->verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(self->s.id->pd, &attr);
	ASSERT_NE(NULL, qp);
	ASSERT_EQ(0, ud_accept(&self->c, &self->s, qp->qp_num));
	EXPECT_EQ(qp->qp_num, self->c.event.ud.qp_num);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_F(ud, rejected)
{
	ASSERT_EQ(0, make_qp(&self->c));
	ASSERT_EQ(0, ud_connect(&self->c, &self->s));
	ASSERT_EQ(0, rdma_reject(self->s.id, NULL, 0));
	EXPECT_EQ(RDMA_CM_EVENT_UNREACHABLE,
		  next_event(self->c.channel, &self->c.event));
	EXPECT_NE(0, self->c.event.status);
}

TEST_F(ud, nobody_listens)
{
	ASSERT_EQ(0, make_qp(&self->c));
	ASSERT_EQ(0, rdma_destroy_id(self->listen));
	self->listen = NULL;
	ASSERT_EQ(0, rdma_connect(self->c.id, NULL));
	EXPECT_EQ(RDMA_CM_EVENT_UNREACHABLE,
		  next_event(self->c.channel, &self->c.event));
	EXPECT_NE(0, self->c.event.status);
	ASSERT_EQ(0, rdma_create_id(self->s.channel, &self->listen, NULL,
				    RDMA_PS_UDP));
}

TEST_F(ud, data_both_ways)
{
	struct end *c = &self->c, *s = &self->s;
	struct ibv_ah *back;
	struct ibv_wc wc;

	ASSERT_EQ(0, ud_open(c, s));
	self->ah = ibv_create_ah(c->id->pd, &c->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);

	fill(c->buf, MSG_SIZE, 1);
	ASSERT_EQ(0, rdma_post_recv(s->id, CONTEXT, s->buf,
				    GRH_SIZE + MSG_SIZE, s->mr));
	ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, MSG_SIZE, c->mr,
				       0, self->ah, c->event.ud.qp_num));
	ASSERT_COMP_OK(c->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_EQ(GRH_SIZE + MSG_SIZE, wc.byte_len);
	EXPECT_EQ(c->id->qp->qp_num, wc.src_qp);
	EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);
	EXPECT_TRUE(filled(s->buf + GRH_SIZE, MSG_SIZE, 1));
	EXPECT_TRUE(all_bytes(s->buf + GRH_SIZE + MSG_SIZE, 64, POISON));

	/* Back to where it came from. */
	back = ibv_create_ah_from_wc(s->id->pd, &wc, (struct ibv_grh *)s->buf,
				     s->id->port_num);
	ASSERT_NE(NULL, back);
	fill(s->buf, MSG_SIZE, 2);
	ASSERT_EQ(0, rdma_post_recv(c->id, CONTEXT, c->buf,
				    GRH_SIZE + MSG_SIZE, c->mr));
	ASSERT_EQ(0, rdma_post_ud_send(s->id, CONTEXT, s->buf, MSG_SIZE, s->mr,
				       0, back, wc.src_qp));
	ASSERT_COMP_OK(s->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(c->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_EQ(GRH_SIZE + MSG_SIZE, wc.byte_len);
	EXPECT_TRUE(filled(c->buf + GRH_SIZE, MSG_SIZE, 2));
	EXPECT_EQ(0, ibv_destroy_ah(back));
}

TEST_F(ud, inline_data)
{
	struct end *c = &self->c, *s = &self->s;
	struct ibv_wc wc;

	ASSERT_EQ(0, ud_open(c, s));
	self->ah = ibv_create_ah(c->id->pd, &c->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	fill(c->buf, 64, 3);
	ASSERT_EQ(0, rdma_post_recv(s->id, CONTEXT, s->buf, GRH_SIZE + 64, s->mr));
	ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, 64, NULL,
				       IBV_SEND_INLINE, self->ah,
				       c->event.ud.qp_num));
	memset(c->buf, 0, 64);
	ASSERT_COMP_OK(s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(s->buf + GRH_SIZE, 64, 3));
}

/* The receiver checks the key, and drops what does not have it. */
TEST_F(ud, wrong_queue_key)
{
	struct end *c = &self->c, *s = &self->s;
	struct ibv_send_wr wr = {}, *bad;
	struct ibv_sge entry;
	struct ibv_wc wc;

	ASSERT_EQ(0, ud_open(c, s));
	self->ah = ibv_create_ah(c->id->pd, &c->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	ASSERT_EQ(0, rdma_post_recv(s->id, CONTEXT, s->buf,
				    GRH_SIZE + MSG_SIZE, s->mr));
	entry = sge(c, 0, MSG_SIZE);
	wr.wr_id = addr64(CONTEXT);
	wr.sg_list = &entry;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.wr.ud.ah = self->ah;
	wr.wr.ud.remote_qpn = c->event.ud.qp_num;
	wr.wr.ud.remote_qkey = RDMA_UDP_QKEY + 1;
	ASSERT_EQ(0, ibv_post_send(c->id->qp, &wr, &bad));
	ASSERT_COMP_OK(c->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	EXPECT_TRUE(no_comp(s->id->recv_cq));
	EXPECT_TRUE(all_bytes(s->buf, GRH_SIZE + MSG_SIZE, POISON));
}

TEST_F(ud, queue_pair_outlives_the_id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	cq = ibv_create_cq(self->c.id->verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	init = ud_qp;
	init.send_cq = init.recv_cq = cq;
	ASSERT_EQ(0, rdma_create_qp(self->c.id, NULL, &init));
	qp = self->c.id->qp;
	ASSERT_EQ(0, rdma_destroy_id(self->c.id));
	self->c.id = NULL;
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

static struct sockaddr *group(struct sockaddr_storage *addr, const char *text)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	in->sin_family = AF_INET;
	inet_pton(AF_INET, text, &in->sin_addr);
	return (struct sockaddr *)addr;
}

/* An id for multicast, with or without a queue pair. */
FIXTURE(mcast) {
	struct sockaddr_storage addr, group;
	struct end e;
	struct ibv_ah *ah;
};

FIXTURE_SETUP(mcast)
{
	ASSERT_TRUE(test_addr(AF_INET, &self->addr));
	self->e.channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->e.channel);
	ASSERT_EQ(0, rdma_create_id(self->e.channel, &self->e.id, NULL,
				    RDMA_PS_UDP));
	ASSERT_EQ(0, rdma_bind_addr(self->e.id, (struct sockaddr *)&self->addr));
	ASSERT_NE(NULL, self->e.id->verbs);
}

FIXTURE_TEARDOWN(mcast)
{
	if (self->ah)
		EXPECT_EQ(0, ibv_destroy_ah(self->ah));
	end_close(&self->e);
	rdma_destroy_event_channel(self->e.channel);
}

static int join(struct end *e, struct sockaddr *addr, void *context)
{
	if (rdma_join_multicast(e->id, addr, context))
		return -1;
	return expect_event(e->channel, RDMA_CM_EVENT_MULTICAST_JOIN,
			    &e->event);
}

TEST_F(mcast, join_tells_where_to_send)
{
	struct event *ev = &self->e.event;

	ASSERT_EQ(0, make_qp(&self->e));
	ASSERT_EQ(0, join(&self->e, group(&self->group, GROUP), CONTEXT));
	EXPECT_EQ(self->e.id, ev->id);
	EXPECT_EQ(CONTEXT, (void *)ev->ud.private_data);
	EXPECT_EQ(MULTICAST_QPN, ev->ud.qp_num);
	EXPECT_EQ(RDMA_UDP_QKEY, ev->ud.qkey);
	EXPECT_EQ(1, ev->ud.ah_attr.is_global);
	EXPECT_EQ(self->e.id->port_num, ev->ud.ah_attr.port_num);
	self->ah = ibv_create_ah(self->e.id->pd, &ev->ud.ah_attr);
	EXPECT_NE(NULL, self->ah);
	EXPECT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&self->group));
}

static int send_to_group(struct end *e, struct ibv_ah *ah, unsigned int seed)
{
	struct ibv_wc wc;

	fill(e->buf, MSG_SIZE, seed);
	if (rdma_post_ud_send(e->id, CONTEXT, e->buf, MSG_SIZE, e->mr, 0, ah,
			      MULTICAST_QPN))
		return -1;
	return wait_comp(e->id->send_cq, &wc) == 1 && !wc.status ? 0 : -1;
}

TEST_F(mcast, members_hear_it_until_they_leave)
{
	struct end *e = &self->e;
	uint8_t *to = e->buf;
	struct ibv_wc wc;

	ASSERT_EQ(0, make_qp(e));
	to = e->buf + 8192;
	ASSERT_EQ(0, join(e, group(&self->group, GROUP), CONTEXT));
	self->ah = ibv_create_ah(e->id->pd, &e->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	ASSERT_EQ(0, rdma_post_recv(e->id, to, to, GRH_SIZE + MSG_SIZE, e->mr));
	ASSERT_EQ(0, send_to_group(e, self->ah, 5));
	ASSERT_COMP_OK(e->id->recv_cq, &wc, IBV_WC_RECV, to);
	EXPECT_EQ(GRH_SIZE + MSG_SIZE, wc.byte_len);
	EXPECT_TRUE(filled(to + GRH_SIZE, MSG_SIZE, 5));

	memset(to, POISON, GRH_SIZE + MSG_SIZE);
	ASSERT_EQ(0, rdma_leave_multicast(e->id,
					  (struct sockaddr *)&self->group));
	ASSERT_EQ(0, rdma_post_recv(e->id, to, to, GRH_SIZE + MSG_SIZE, e->mr));
	ASSERT_EQ(0, send_to_group(e, self->ah, 6));
	EXPECT_TRUE(no_comp(e->id->recv_cq));
	EXPECT_TRUE(all_bytes(to, GRH_SIZE + MSG_SIZE, POISON));
}

TEST_F(mcast, program_attaches_its_own)
{
	struct end *e = &self->e;
	struct event *ev = &e->event;

	/* No queue pair when the event comes: nothing is attached. */
	ASSERT_EQ(0, join(e, group(&self->group, GROUP), NULL));
	EXPECT_EQ(NULL, ev->ud.private_data);
	ASSERT_EQ(0, make_qp(e));
	EXPECT_EQ(0, ibv_attach_mcast(e->id->qp, &ev->ud.ah_attr.grh.dgid,
				      ev->ud.ah_attr.dlid));
	EXPECT_EQ(0, ibv_detach_mcast(e->id->qp, &ev->ud.ah_attr.grh.dgid,
				      ev->ud.ah_attr.dlid));
}

TEST_F(mcast, several_groups)
{
	struct sockaddr_storage other;
	int one, two;

	ASSERT_EQ(0, make_qp(&self->e));
	ASSERT_EQ(0, join(&self->e, group(&self->group, GROUP), &one));
	EXPECT_EQ(&one, self->e.event.ud.private_data);
	ASSERT_EQ(0, join(&self->e, group(&other, OTHER_GROUP), &two));
	EXPECT_EQ(&two, self->e.event.ud.private_data);
	EXPECT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&self->group));
	EXPECT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&other));
	EXPECT_EQ(-1, rdma_leave_multicast(self->e.id,
					   (struct sockaddr *)&other));
	EXPECT_EQ(EADDRNOTAVAIL, errno);
}

/* Destroying the id leaves the group. */
TEST_F(mcast, joined_to_the_end)
{
	ASSERT_EQ(0, join(&self->e, group(&self->group, GROUP), CONTEXT));
	ASSERT_EQ(0, rdma_destroy_id(self->e.id));
	ASSERT_EQ(0, rdma_create_id(self->e.channel, &self->e.id, NULL,
				    RDMA_PS_UDP));
	EXPECT_TRUE(no_event(self->e.channel));
}

TEST_F(mcast, left_before_the_event_is_fetched)
{
	ASSERT_EQ(0, make_qp(&self->e));
	ASSERT_EQ(0, rdma_join_multicast(self->e.id,
					 group(&self->group, GROUP), CONTEXT));
	ASSERT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&self->group));
	EXPECT_TRUE(no_event(self->e.channel));
}

/* Who may only send is not attached, and hears nothing. */
TEST_F(mcast, send_only)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = group(&self->group, GROUP),
	};
	struct end *e = &self->e;
	uint8_t *to;

	ASSERT_EQ(0, make_qp(e));
	to = e->buf + 8192;
	ASSERT_EQ(0, rdma_join_multicast_ex(e->id, &attr, CONTEXT));
	ASSERT_EQ(0, expect_event(e->channel, RDMA_CM_EVENT_MULTICAST_JOIN,
				  &e->event));
	EXPECT_EQ(CONTEXT, (void *)e->event.ud.private_data);
	self->ah = ibv_create_ah(e->id->pd, &e->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	ASSERT_EQ(0, rdma_post_recv(e->id, to, to, GRH_SIZE + MSG_SIZE, e->mr));
	ASSERT_EQ(0, send_to_group(e, self->ah, 7));
	EXPECT_TRUE(no_comp(e->id->recv_cq));
	EXPECT_EQ(0, rdma_leave_multicast(e->id, attr.addr));
}

TEST_F(mcast, what_is_refused)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_RESERVED,
		.addr = group(&self->group, GROUP),
	};
	struct sockaddr_storage none = { .ss_family = AF_UNSPEC };

	EXPECT_EQ(-1, rdma_join_multicast_ex(self->e.id, &attr, NULL));
	attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	EXPECT_EQ(-1, rdma_join_multicast_ex(self->e.id, &attr, NULL));
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	EXPECT_EQ(-1, rdma_join_multicast_ex(self->e.id, &attr, NULL));
	EXPECT_EQ(-1, rdma_join_multicast(self->e.id, (struct sockaddr *)&none,
					  NULL));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, rdma_leave_multicast(self->e.id,
					   (struct sockaddr *)&self->group));
	EXPECT_EQ(EADDRNOTAVAIL, errno);
	EXPECT_TRUE(no_event(self->e.channel));
}

/* Synchronous ids: calls wait, and leave the event in the id. */
struct server {
	struct rdma_cm_id *listen;
	int err;
	uint32_t qp_num;
	bool asked;
};

static void *serve(void *arg)
{
	struct rdma_conn_param param = {
		.private_data = answer,
		.private_data_len = sizeof(answer),
	};
	struct server *server = arg;
	struct rdma_cm_id *id;

	server->err = -1;
	if (rdma_get_request(server->listen, &id))
		return NULL;
	server->asked = id->event && id->event->param.ud.private_data &&
			!memcmp(id->event->param.ud.private_data, question,
				sizeof(question));
	server->qp_num = id->qp ? id->qp->qp_num : 0;
	server->err = rdma_accept(id, &param);
	rdma_destroy_ep(id);
	return NULL;
}

TEST(synchronous_endpoints)
{
	struct rdma_conn_param param = {
		.private_data = question,
		.private_data_len = sizeof(question),
	};
	struct rdma_addrinfo hints = {
		.ai_port_space = RDMA_PS_UDP,
		.ai_flags = RAI_PASSIVE,
	}, *info;
	struct ibv_qp_init_attr attr = ud_qp;
	char host[INET_ADDRSTRLEN], port[8];
	struct sockaddr_storage addr;
	struct server server = {};
	struct rdma_cm_id *id;
	pthread_t thread;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	inet_ntop(AF_INET, &((struct sockaddr_in *)&addr)->sin_addr, host,
		  sizeof(host));
	ASSERT_EQ(0, rdma_getaddrinfo(host, "0", &hints, &info));
	ASSERT_EQ(0, rdma_create_ep(&server.listen, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	EXPECT_EQ(IBV_QPT_UD, server.listen->qp_type);
	ASSERT_EQ(0, rdma_listen(server.listen, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, serve, &server));

	snprintf(port, sizeof(port), "%u",
		 ntohs(rdma_get_src_port(server.listen)));
	hints.ai_flags = 0;
	ASSERT_EQ(0, rdma_getaddrinfo(host, port, &hints, &info));
	attr = ud_qp;
	ASSERT_EQ(0, rdma_create_ep(&id, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	ASSERT_NE(NULL, id->qp);
	ASSERT_EQ(0, rdma_connect(id, &param));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, server.err);
	EXPECT_TRUE(server.asked);
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, id->event->event);
	EXPECT_EQ(server.qp_num, id->event->param.ud.qp_num);
	EXPECT_EQ(0, memcmp(answer, id->event->param.ud.private_data,
			    sizeof(answer)));
	rdma_destroy_ep(id);
	rdma_destroy_ep(server.listen);
}

TEST(synchronous_multicast)
{
	struct sockaddr_storage addr, to;
	struct rdma_cm_id *id;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
	ASSERT_EQ(0, rdma_bind_addr(id, (struct sockaddr *)&addr));
	ASSERT_EQ(0, rdma_join_multicast(id, group(&to, GROUP), CONTEXT));
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_MULTICAST_JOIN, id->event->event);
	EXPECT_EQ(CONTEXT, (void *)id->event->param.ud.private_data);
	EXPECT_EQ(0, rdma_destroy_id(id));
}

TEST_HARNESS_MAIN
