// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests connections of queue pairs that the program creates and brings up
 * itself, with rdma_init_qp_attr(), rdma_establish() and rdma_notify();
 * endpoints of each type of queue pair; and shared receive queues of ids.  A
 * failure means that such a connection is not established or carries no data.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rdma_test.h"

#define MSG_SIZE 4096
#define WRS 16
#define MADE_UP_QPN 0x1234

/* An end whose queue pair is unknown to the id. */
struct own {
	struct end *end;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

FIXTURE(own) {
	PAIR_MEMBERS;
	struct own co, so;
};

FIXTURE_SETUP(own)
{
	PAIR_SETUP(pair_to_resolve);
	self->co.end = self->c;
	self->so.end = self->s;
}

static void own_close(struct own *own)
{
	if (own->qp && own->end->id && own->end->id->qp == own->qp)
		own->end->id->qp = NULL;
	if (own->qp)
		ibv_destroy_qp(own->qp);
	if (own->cq)
		ibv_destroy_cq(own->cq);
}

FIXTURE_TEARDOWN(own)
{
	own_close(&self->co);
	own_close(&self->so);
	pair_close(&self->p);
}

static const struct ibv_qp_init_attr own_qp = {
	.cap = {
		.max_send_wr = WRS, .max_recv_wr = WRS,
		.max_send_sge = 1, .max_recv_sge = 1,
	},
	.qp_type = IBV_QPT_RC,
	.sq_sig_all = 1,
};

static int make_qp(struct own *own)
{
	struct ibv_qp_init_attr attr = own_qp;

	own->cq = ibv_create_cq(own->end->id->verbs, 2 * WRS, NULL, NULL, 0);
	if (!own->cq)
		return -1;
	attr.send_cq = attr.recv_cq = own->cq;
	own->qp = ibv_create_qp(own->end->id->pd, &attr);
	return own->qp ? end_buffer(own->end, BUF_SIZE) : -1;
}

static int modify(struct own *own, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr;
	int mask = 0;

	memset(&attr, POISON, sizeof(attr));
	attr.qp_state = state;
	if (rdma_init_qp_attr(own->end->id, &attr, &mask))
		return -1;
	if (!(mask & IBV_QP_STATE) || attr.qp_state != state) {
		fprintf(stderr, "# mask %#x, state %d\n", mask, attr.qp_state);
		return -1;
	}
	return ibv_modify_qp(own->qp, &attr, mask);
}

static int own_connect(struct pair *p, struct own *c, struct pair_opts *opts)
{
	opts->connect.qp_num = c->qp->qp_num;
	return pair_connect(p, opts);
}

/* Accept, and wait for the response; the client has not confirmed it yet. */
static int own_accept(struct pair *p, struct own *c, struct own *s,
		      struct pair_opts *opts)
{
	if (make_qp(s) || modify(s, IBV_QPS_INIT) || modify(s, IBV_QPS_RTR) ||
	    modify(s, IBV_QPS_RTS))
		return -1;
	opts->accept.qp_num = s->qp->qp_num;
	if (rdma_accept(p->server.id, &opts->accept))
		return -1;
	return expect_event(p->client.channel, RDMA_CM_EVENT_CONNECT_RESPONSE,
			    &c->end->event);
}

static int own_open(struct pair *p, struct own *c, struct own *s,
		    struct pair_opts *opts)
{
	if (make_qp(c) || modify(c, IBV_QPS_INIT) || own_connect(p, c, opts) ||
	    own_accept(p, c, s, opts) || modify(c, IBV_QPS_RTR) ||
	    modify(c, IBV_QPS_RTS) || rdma_establish(c->end->id))
		return -1;
	return expect_event(p->server.channel, RDMA_CM_EVENT_ESTABLISHED,
			    &s->end->event);
}

static int post(struct own *own, enum ibv_wr_opcode opcode, size_t offset)
{
	struct ibv_sge entry = sge(own->end, offset, MSG_SIZE);
	struct ibv_recv_wr recv = {
		.wr_id = addr64(CONTEXT), .sg_list = &entry, .num_sge = 1,
	}, *bad_recv;
	struct ibv_send_wr send = {
		.wr_id = addr64(CONTEXT), .sg_list = &entry, .num_sge = 1,
		.opcode = opcode,
	}, *bad_send;

	if (opcode == IBV_WR_SEND)
		return ibv_post_send(own->qp, &send, &bad_send);
	return ibv_post_recv(own->qp, &recv, &bad_recv);
}

#define RECV IBV_WR_DRIVER1	/* for post() */

TEST_F(own, attributes_by_state)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask = 0;

	ASSERT_EQ(0, rdma_init_qp_attr(self->c->id, &attr, &mask));
	EXPECT_EQ(IBV_QPS_INIT, attr.qp_state);
	EXPECT_EQ(IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
		  IBV_QP_PORT, mask);
	EXPECT_EQ(self->c->id->port_num, attr.port_num);
	EXPECT_EQ(0, attr.pkey_index);

	/* No answer has come yet. */
	ASSERT_EQ(0, make_qp(&self->co));
	ASSERT_EQ(0, own_connect(&self->p, &self->co, &self->opts));
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_ERRNO(EINVAL, rdma_init_qp_attr(self->c->id, &attr, &mask));
	attr.qp_state = IBV_QPS_SQD;
	EXPECT_ERRNO(EINVAL, rdma_init_qp_attr(self->c->id, &attr, &mask));
}

TEST_F(own, attributes_of_the_server)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int mask = 0;

	ASSERT_EQ(0, make_qp(&self->co));
	ASSERT_EQ(0, own_connect(&self->p, &self->co, &self->opts));
	EXPECT_EQ(self->co.qp->qp_num, self->s->event.conn.qp_num);
	ASSERT_EQ(0, rdma_init_qp_attr(self->s->id, &attr, &mask));
	EXPECT_TRUE(mask & IBV_QP_AV);
	EXPECT_TRUE(mask & IBV_QP_DEST_QPN);
	EXPECT_EQ(self->co.qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(0, memcmp(&attr.ah_attr.grh.dgid,
			    &self->s->id->route.addr.addr.ibaddr.dgid, 16));
	EXPECT_EQ(self->c->id->route.path_rec[0].mtu, attr.path_mtu);
}

TEST_F(own, events_and_data)
{
	struct own *c = &self->co, *s = &self->so;
	struct ibv_wc wc;

	ASSERT_EQ(0, own_open(&self->p, c, s, &self->opts));
	EXPECT_EQ(s->qp->qp_num, self->c->event.conn.qp_num);
	EXPECT_EQ(NULL, self->c->id->qp);
	EXPECT_EQ(NULL, self->s->id->qp);
	/* The side that confirms gets no event. */
	EXPECT_TRUE(no_event(self->c->channel));

	fill(self->c->buf, MSG_SIZE, 1);
	ASSERT_EQ(0, post(s, RECV, 0));
	ASSERT_EQ(0, post(c, IBV_WR_SEND, 0));
	ASSERT_COMP_OK(c->cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(s->cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, MSG_SIZE, 1));

	fill(self->s->buf + MSG_SIZE, MSG_SIZE, 2);
	ASSERT_EQ(0, post(c, RECV, MSG_SIZE));
	ASSERT_EQ(0, post(s, IBV_WR_SEND, MSG_SIZE));
	ASSERT_COMP_OK(s->cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(c->cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf + MSG_SIZE, MSG_SIZE, 2));
}

TEST_F(own, disconnect)
{
	ASSERT_EQ(0, own_open(&self->p, &self->co, &self->so, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	ASSERT_EQ(0, rdma_disconnect(self->s->id));
	ASSERT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->c->event));
}

TEST_F(own, private_data_in_the_response)
{
	static const char data[] = "response";

	self->opts.accept.private_data = data;
	self->opts.accept.private_data_len = sizeof(data);
	ASSERT_EQ(0, make_qp(&self->co));
	ASSERT_EQ(0, own_connect(&self->p, &self->co, &self->opts));
	ASSERT_EQ(0, own_accept(&self->p, &self->co, &self->so, &self->opts));
	EXPECT_EQ(0, memcmp(data, self->c->event.data, sizeof(data)));
}

/* The client may reject the response. */
TEST_F(own, response_rejected)
{
	static const char data[] = "no, thanks";

	ASSERT_EQ(0, make_qp(&self->co));
	ASSERT_EQ(0, own_connect(&self->p, &self->co, &self->opts));
	ASSERT_EQ(0, own_accept(&self->p, &self->co, &self->so, &self->opts));
	ASSERT_EQ(0, rdma_reject(self->c->id, data, sizeof(data)));
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->s->channel, &self->s->event));
	EXPECT_EQ(0, memcmp(data, self->s->event.data, sizeof(data)));
}

TEST_F(own, establish_in_wrong_states)
{
	EXPECT_ERRNO(EINVAL, rdma_establish(self->c->id));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	EXPECT_ERRNO(EINVAL, rdma_establish(self->c->id));
}

/* Data may arrive before the client's confirmation does. */
TEST_F(own, notify_establishes)
{
	ASSERT_EQ(0, make_qp(&self->co));
	ASSERT_EQ(0, own_connect(&self->p, &self->co, &self->opts));
	ASSERT_EQ(0, own_accept(&self->p, &self->co, &self->so, &self->opts));
	EXPECT_TRUE(no_event(self->s->channel));
	ASSERT_EQ(0, rdma_notify(self->s->id, IBV_EVENT_COMM_EST));
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_ESTABLISHED,
				  &self->s->event));
	EXPECT_ERRNO(EISCONN, rdma_notify(self->s->id, IBV_EVENT_COMM_EST));
}

TEST_F(own, notify_of_nothing)
{
	EXPECT_ERRNO(EINVAL, rdma_notify(self->c->id, IBV_EVENT_COMM_EST));
	EXPECT_ERRNO(EINVAL, rdma_notify(self->p.listen, IBV_EVENT_COMM_EST));
}

TEST_F(own, notify_of_an_unknown_event)
{
	ASSERT_EQ(0, own_open(&self->p, &self->co, &self->so, &self->opts));
	EXPECT_ERRNO(EINVAL, rdma_notify(self->s->id, IBV_EVENT_PORT_ERR));
}

/* The server leaves its queue pair to the library. */
TEST_F(own, other_end_as_usual)
{
	struct own *c = &self->co;
	struct ibv_wc wc;

	ASSERT_EQ(0, make_qp(c));
	ASSERT_EQ(0, modify(c, IBV_QPS_INIT));
	ASSERT_EQ(0, own_connect(&self->p, c, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_accept(self->s->id, &self->opts.accept));
	ASSERT_EQ(0, expect_event(self->c->channel,
				  RDMA_CM_EVENT_CONNECT_RESPONSE,
				  &self->c->event));
	ASSERT_EQ(0, modify(c, IBV_QPS_RTR));
	ASSERT_EQ(0, modify(c, IBV_QPS_RTS));
	ASSERT_EQ(0, rdma_establish(self->c->id));
	ASSERT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_ESTABLISHED,
				  &self->s->event));
	fill(self->c->buf, MSG_SIZE, 4);
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, MSG_SIZE));
	ASSERT_EQ(0, post(c, IBV_WR_SEND, 0));
	ASSERT_COMP_OK(self->s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, MSG_SIZE, 4));
}

/* librdmacm accepts any number; librdma_post needs a queue pair's. */
TEST_F(own, made_up_number)
{
	int ret;

	self->opts.connect.qp_num = MADE_UP_QPN;
	ret = rdma_connect(self->c->id, &self->opts.connect);
	if (over_incumbent()) {
		EXPECT_EQ(0, ret);
	} else {
		EXPECT_EQ(-1, ret);
		EXPECT_EQ(EINVAL, errno);
	}
}

/* The library brings up a queue pair that the program has put into the id. */
TEST_F(own, put_into_the_id)
{
	struct own *c = &self->co;
	struct ibv_wc wc;

	ASSERT_EQ(0, make_qp(c));
	ASSERT_EQ(0, modify(c, IBV_QPS_INIT));
	self->c->id->qp = c->qp;
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	EXPECT_EQ(c->qp->qp_num, self->s->event.conn.qp_num);
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	/* The client gets ESTABLISHED, without CONNECT_RESPONSE before it. */
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	EXPECT_EQ(IBV_QPS_RTS, c->qp->state);
	fill(self->c->buf, MSG_SIZE, 5);
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, MSG_SIZE));
	ASSERT_EQ(0, post(c, IBV_WR_SEND, 0));
	ASSERT_COMP_OK(self->s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, MSG_SIZE, 5));
	self->c->id->qp = NULL;
}

/* Make an id that has an address and a queue pair, but no connection. */
static struct rdma_cm_id *bound_id_with_qp(struct own *own, struct pair *p)
{
	struct ibv_qp_init_attr attr = own_qp;
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;

	if (!test_addr(AF_INET, &addr) ||
	    rdma_create_id(p->client.channel, &id, NULL, RDMA_PS_TCP))
		return NULL;
	if (rdma_bind_addr(id, (struct sockaddr *)&addr))
		goto err;
	own->cq = ibv_create_cq(id->verbs, 2 * WRS, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = own->cq;
	if (!own->cq || rdma_create_qp(id, NULL, &attr))
		goto err;
	own->qp = id->qp;
	return id;
err:
	rdma_destroy_id(id);
	return NULL;
}

/*
 * A server may make queue pairs before there are requests, each on an id of its
 * own, from which it moves to the request.  DAPL does.
 */
TEST_F(own, moved_to_the_request)
{
	struct own *s = &self->so;
	struct rdma_cm_id *first;
	struct ibv_wc wc;

	if (on_iwarp(self->c->id))
		SKIP(return, "an iWARP connection needs the queue pair's id");
	first = bound_id_with_qp(s, &self->p);
	ASSERT_NE(NULL, first);
	EXPECT_EQ(IBV_QPS_INIT, s->qp->state);
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, end_buffer(self->s, BUF_SIZE));
	self->s->id->qp = s->qp;
	first->qp = NULL;
	EXPECT_EQ(0, rdma_destroy_id(first));
	ASSERT_EQ(0, post(s, RECV, 0));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	EXPECT_EQ(s->qp->qp_num, self->c->event.conn.qp_num);

	fill(self->c->buf, MSG_SIZE, 7);
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, MSG_SIZE, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->c->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(s->cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, MSG_SIZE, 7));
	ASSERT_EQ(0, end_write(self->c, MSG_SIZE, self->s->buf + MSG_SIZE,
			       self->s->mr->rkey));
	ASSERT_COMP_OK(self->c->id->send_cq, &wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf + MSG_SIZE, MSG_SIZE, 7));

	ASSERT_EQ(0, post(s, RECV, 0));
	ASSERT_EQ(0, rdma_disconnect(self->s->id));
	ASSERT_COMP(s->cq, &wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	EXPECT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->c->event));
}

/* Two ids exchange their queue pairs; the first one makes another. */
TEST_F(own, exchanged)
{
	struct ibv_qp_init_attr attr = self->opts.client_qp;
	struct own *c = &self->co, *s = &self->so;
	struct ibv_qp *again;
	struct rdma_cm_id *id[2];

	if (on_iwarp(self->c->id))
		SKIP(return, "an iWARP connection needs the queue pair's id");
	id[0] = bound_id_with_qp(c, &self->p);
	ASSERT_NE(NULL, id[0]);
	id[1] = bound_id_with_qp(s, &self->p);
	ASSERT_NE(NULL, id[1]);
	id[0]->qp = NULL;
	attr.send_cq = attr.recv_cq = c->cq;
	ASSERT_EQ(0, rdma_create_qp(id[0], NULL, &attr));
	again = id[0]->qp;
	id[0]->qp = s->qp;
	id[1]->qp = again;
	rdma_destroy_qp(id[0]);
	s->qp = NULL;
	EXPECT_EQ(again, id[1]->qp);
	rdma_destroy_qp(id[1]);
	EXPECT_EQ(NULL, id[1]->qp);
	EXPECT_EQ(0, rdma_destroy_id(id[0]));
	EXPECT_EQ(0, rdma_destroy_id(id[1]));
	/* Its id has gone, and it is still there. */
	EXPECT_EQ(0, ibv_destroy_qp(c->qp));
	c->qp = NULL;
}

/* An id may have its queue pair before it has resolved an address. */
TEST_F(own, made_before_the_address)
{
	struct sockaddr_storage dst;
	struct own *c = &self->co;
	struct ibv_wc wc;

	ASSERT_EQ(0, rdma_destroy_id(self->c->id));
	self->c->id = bound_id_with_qp(c, &self->p);
	ASSERT_NE(NULL, self->c->id);
	ASSERT_TRUE(test_addr(AF_INET, &dst));
	set_port(&dst, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, end_resolve(self->c, NULL, &dst));
	ASSERT_EQ(0, end_buffer(self->c, BUF_SIZE));
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	EXPECT_EQ(c->qp->qp_num, self->s->event.conn.qp_num);
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));

	fill(self->c->buf, MSG_SIZE, 8);
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, MSG_SIZE));
	ASSERT_EQ(0, post(c, IBV_WR_SEND, 0));
	ASSERT_COMP_OK(c->cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, MSG_SIZE, 8));
	ASSERT_EQ(0, end_read(self->s, MSG_SIZE, self->c->buf + MSG_SIZE,
			      self->c->mr->rkey));
	ASSERT_COMP_OK(self->s->id->send_cq, &wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_EQ(0, memcmp(self->s->buf, self->c->buf + MSG_SIZE, MSG_SIZE));

	ASSERT_EQ(0, post(c, RECV, 0));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_COMP(c->cq, &wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	rdma_destroy_qp(self->c->id);
	c->qp = NULL;
}

/*
 * Both ids have had another queue pair before the connection was established.
 */
TEST_F(own, second_queue_pairs)
{
	struct ibv_qp_init_attr attr = self->opts.client_qp;
	struct ibv_wc wc;

	ASSERT_EQ(0, rdma_create_qp(self->c->id, NULL, &attr));
	rdma_destroy_qp(self->c->id);
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	attr = self->opts.server_qp;
	ASSERT_EQ(0, rdma_create_qp(self->s->id, NULL, &attr));
	rdma_destroy_qp(self->s->id);
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	EXPECT_TRUE(no_event(self->c->channel));
	EXPECT_TRUE(no_event(self->s->channel));
	fill(self->c->buf, MSG_SIZE, 3);
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, MSG_SIZE));
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, MSG_SIZE, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->c->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, MSG_SIZE, 3));
}

/* Endpoints with each type of queue pair that ids can connect. */
FIXTURE(ep) {
	struct rdma_cm_id *listen, *client, *server;
	struct ibv_mr *mr[2];
};

FIXTURE_VARIANT(ep) {
	int ps;
	int type;
};

FIXTURE_VARIANT_ADD(ep, tcp_rc) { .ps = RDMA_PS_TCP, .type = IBV_QPT_RC };
FIXTURE_VARIANT_ADD(ep, ib_rc) { .ps = RDMA_PS_IB, .type = IBV_QPT_RC };
FIXTURE_VARIANT_ADD(ep, ib_uc) { .ps = RDMA_PS_IB, .type = IBV_QPT_UC };

FIXTURE_SETUP(ep) { }

FIXTURE_TEARDOWN(ep)
{
	int i;

	for (i = 0; i < 2; i++)
		if (self->mr[i])
			EXPECT_EQ(0, ibv_dereg_mr(self->mr[i]));
	if (self->client)
		rdma_destroy_ep(self->client);
	if (self->server)
		rdma_destroy_ep(self->server);
	if (self->listen)
		rdma_destroy_ep(self->listen);
}

static const struct ibv_qp_init_attr ep_qp = {
	.cap = {
		.max_send_wr = 4, .max_recv_wr = 4,
		.max_send_sge = 1, .max_recv_sge = 1,
	},
	.sq_sig_all = 1,
};

struct ep_server {
	struct rdma_cm_id *listen, *id;
	int err;
};

static void *ep_serve(void *arg)
{
	struct ep_server *server = arg;

	server->err = rdma_get_request(server->listen, &server->id);
	if (!server->err)
		server->err = rdma_accept(server->id, NULL);
	return NULL;
}

static int make_ep(struct rdma_cm_id **id, struct sockaddr_storage *addr,
		   int flags, int ps, int type)
{
	struct ibv_qp_init_attr attr = ep_qp;
	struct rdma_addrinfo info = {
		.ai_flags = flags,
		.ai_family = addr->ss_family,
		.ai_port_space = ps,
		.ai_qp_type = type,
	};

	if (flags & RAI_PASSIVE) {
		info.ai_src_addr = (struct sockaddr *)addr;
		info.ai_src_len = sizeof(struct sockaddr_in);
	} else {
		info.ai_dst_addr = (struct sockaddr *)addr;
		info.ai_dst_len = sizeof(struct sockaddr_in);
	}
	return rdma_create_ep(id, &info, NULL, &attr);
}

TEST_F(ep, connect_and_send)
{
	static uint8_t out[MSG_SIZE], in[MSG_SIZE];
	struct sockaddr_storage addr;
	struct ep_server server = {};
	pthread_t thread;
	struct ibv_wc wc;
	uint64_t limit;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, make_ep(&self->listen, &addr, RAI_PASSIVE, variant->ps,
			     variant->type));
	ASSERT_EQ(0, rdma_listen(self->listen, 1));
	server.listen = self->listen;
	ASSERT_EQ(0, pthread_create(&thread, NULL, ep_serve, &server));
	set_port(&addr, rdma_get_src_port(self->listen));
	ASSERT_EQ(0, make_ep(&self->client, &addr, 0, variant->ps,
			     variant->type));
	EXPECT_EQ((enum ibv_qp_type)variant->type,
		  self->client->qp->qp_type);
	ASSERT_EQ(0, rdma_connect(self->client, NULL));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	ASSERT_EQ(0, server.err);
	self->server = server.id;
	EXPECT_EQ((enum ibv_qp_type)variant->type,
		  self->server->qp->qp_type);

	fill(out, sizeof(out), 6);
	self->mr[0] = rdma_reg_msgs(self->client, out, sizeof(out));
	self->mr[1] = rdma_reg_write(self->server, in, sizeof(in));
	ASSERT_NE(NULL, self->mr[0]);
	ASSERT_NE(NULL, self->mr[1]);
	ASSERT_EQ(0, rdma_post_recv(self->server, CONTEXT, in, sizeof(in),
				    self->mr[1]));
	ASSERT_EQ(0, rdma_post_send(self->client, CONTEXT, out, sizeof(out),
				    self->mr[0], 0));
	ASSERT_COMP_OK(self->client->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->server->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(in, sizeof(in), 6));

	fill(out, sizeof(out), 9);
	ASSERT_EQ(0, rdma_post_write(self->client, CONTEXT, out, sizeof(out),
				     self->mr[0], 0, addr64(in),
				     self->mr[1]->rkey));
	ASSERT_COMP_OK(self->client->send_cq, &wc, IBV_WC_RDMA_WRITE, CONTEXT);
	/* The write of an unreliable connection completes when it has left. */
	for (limit = now_ms() + DEADLINE_MS; now_ms() < limit; sched_yield())
		if (!memcmp(in, out, sizeof(in)))
			break;
	EXPECT_TRUE(filled(in, sizeof(in), 9));
}

FIXTURE(srq) {
	PAIR_MEMBERS;
};

FIXTURE_SETUP(srq)
{
	PAIR_SETUP(pair_to_connect);
}

FIXTURE_TEARDOWN(srq)
{
	if (self->s->id && self->s->id->qp)
		rdma_destroy_qp(self->s->id);
	if (self->s->id && self->s->id->srq)
		rdma_destroy_srq(self->s->id);
	pair_close(&self->p);
}

TEST_F(srq, queue_pair_takes_the_queue_of_its_id)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = WRS, .max_sge = 1 },
	};
	struct end *c = self->c, *s = self->s;
	struct ibv_wc wc;

	ASSERT_EQ(0, rdma_create_srq(s->id, NULL, &attr));
	ASSERT_NE(NULL, s->id->srq);
	EXPECT_LE(WRS, attr.attr.max_wr);
	EXPECT_EQ(s->id->pd, s->id->srq->pd);
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	EXPECT_EQ(s->id->srq, s->id->qp->srq);
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));

	/* rdma_post_recv() posts to the shared queue, since the id has one. */
	ASSERT_EQ(0, end_recv(s, CONTEXT, 0, MSG_SIZE));
	fill(c->buf, MSG_SIZE, 8);
	ASSERT_EQ(0, end_send(c, CONTEXT, 0, MSG_SIZE, 0));
	ASSERT_COMP_OK(s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(s->buf, MSG_SIZE, 8));

	rdma_destroy_qp(s->id);
	rdma_destroy_srq(s->id);
	EXPECT_EQ(NULL, s->id->srq);
}

TEST_F(srq, extended)
{
	struct ibv_srq_init_attr_ex attr = {
		.srq_context = CONTEXT,
		.attr = { .max_wr = WRS, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
	};

	ASSERT_EQ(0, rdma_create_srq_ex(self->s->id, &attr));
	ASSERT_NE(NULL, self->s->id->srq);
	EXPECT_EQ(CONTEXT, self->s->id->srq->srq_context);
	EXPECT_LE(2, attr.attr.max_sge);
}

TEST_F(srq, queue_of_the_callers)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = WRS, .max_sge = 1 },
	};
	struct ibv_srq *srq;

	srq = ibv_create_srq(self->s->id->pd, &attr);
	ASSERT_NE(NULL, srq);
	self->opts.server_qp.srq = srq;
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	EXPECT_EQ(srq, self->s->id->qp->srq);
	EXPECT_EQ(EBUSY, ibv_destroy_srq(srq));
	rdma_destroy_qp(self->s->id);
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

TEST_HARNESS_MAIN
