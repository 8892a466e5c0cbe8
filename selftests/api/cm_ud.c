// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests datagrams by connection ids: queue pairs, the resolution of a service
 * to a queue pair, and data in both directions.  A failure means that a client
 * does not learn the right queue pair or that datagrams get lost or changed.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "verbs_test.h"

#define MSG_SIZE 1024

static const char question[] = "who is there?", answer[] = "it is me";

FIXTURE(ud) {
	struct sockaddr_storage addr;
	struct rdma_cm_id *listen;
	struct end c, s;
	struct ibv_ah *ah;
};

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

#define UD_SETUP() do { \
	ASSERT_TRUE(test_addr(AF_INET, &self->addr)); \
	self->s.channel = rdma_create_event_channel(); \
	ASSERT_NE(NULL, self->s.channel); \
	ASSERT_EQ(0, ud_listen(self->s.channel, &self->listen, &self->addr)); \
	ASSERT_EQ(0, end_client(&self->c, RDMA_PS_UDP)); \
	ASSERT_EQ(0, end_resolve(&self->c, NULL, &self->addr)); \
} while (0)

#define UD_TEARDOWN() do { \
	if (self->ah) \
		EXPECT_EQ(0, ibv_destroy_ah(self->ah)); \
	end_close(&self->c); \
	end_close(&self->s); \
	rdma_destroy_id(self->listen); \
	rdma_destroy_event_channel(self->c.channel); \
	rdma_destroy_event_channel(self->s.channel); \
} while (0)

FIXTURE_SETUP(ud)
{
	UD_SETUP();
}

FIXTURE_TEARDOWN(ud)
{
	UD_TEARDOWN();
}

/* Ask for the server's queue pair; the server gets the request. */
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
	if (end_ud_qp(c) || ud_connect(c, s) || end_ud_qp(s))
		return -1;
	return ud_accept(c, s, s->id->qp->qp_num);
}

TEST_F(ud, ids_and_queue_pairs)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	EXPECT_EQ(RDMA_PS_UDP, self->c.id->ps);
	EXPECT_EQ(IBV_QPT_UD, self->c.id->qp_type);
	ASSERT_EQ(0, end_ud_qp(&self->c));
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

	ASSERT_EQ(0, end_ud_qp(&self->c));
	EXPECT_ERRNO(EINVAL, rdma_create_qp(self->c.id, NULL, &attr));
}

TEST_F(ud, resolution_tells_the_queue_pair)
{
	struct event *ev = &self->s.event;

	ASSERT_EQ(0, end_ud_qp(&self->c));
	ASSERT_EQ(0, ud_connect(&self->c, &self->s));
	EXPECT_EQ(self->listen, ev->listen_id);
	EXPECT_EQ(CONTEXT, ev->id->context);
	EXPECT_EQ(RDMA_PS_UDP, ev->id->ps);
	EXPECT_EQ(IBV_QPT_UD, ev->id->qp_type);
	EXPECT_NE(NULL, ev->id->verbs);
	ASSERT_LE(sizeof(question), ev->ud.private_data_len);
	EXPECT_EQ(0, memcmp(question, ev->data, sizeof(question)));

	ASSERT_EQ(0, end_ud_qp(&self->s));
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
	/* The server gets no event for its own answer. */
	EXPECT_TRUE(no_event(self->s.channel));
	EXPECT_TRUE(no_event(self->c.channel));
}

/* The server answers with a queue pair that is unknown to its id. */
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

/* rdma_connect(3) has 180 bytes for private data, rdma_accept(3) 136. */
TEST_F(ud, private_data_too_long)
{
	struct rdma_conn_param param = { .private_data_len = 181 };
	char data[181];

	memset(data, 1, sizeof(data));
	param.private_data = data;
	ASSERT_EQ(0, end_ud_qp(&self->c));
	EXPECT_ERRNO(EINVAL, rdma_connect(self->c.id, &param));
	param.private_data_len = 180;
	ASSERT_EQ(0, rdma_connect(self->c.id, &param));
	ASSERT_EQ(0, expect_event(self->s.channel, RDMA_CM_EVENT_CONNECT_REQUEST,
				  &self->s.event));
	self->s.id = self->s.event.id;
	ASSERT_EQ(180, self->s.event.ud.private_data_len);
	EXPECT_TRUE(all_bytes(self->s.event.data, 180, 1));
	ASSERT_EQ(0, end_ud_qp(&self->s));
	param.private_data_len = 137;
	EXPECT_ERRNO(EINVAL, rdma_accept(self->s.id, &param));
}

TEST_F(ud, rejected)
{
	ASSERT_EQ(0, end_ud_qp(&self->c));
	ASSERT_EQ(0, ud_connect(&self->c, &self->s));
	ASSERT_EQ(0, rdma_reject(self->s.id, NULL, 0));
	EXPECT_EQ(RDMA_CM_EVENT_UNREACHABLE,
		  next_event(self->c.channel, &self->c.event));
	EXPECT_NE(0, self->c.event.status);
}

TEST_F(ud, nobody_listens)
{
	ASSERT_EQ(0, end_ud_qp(&self->c));
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
	ASSERT_EQ(0, end_recv(s, CONTEXT, 0, GRH_BYTES + MSG_SIZE));
	ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, MSG_SIZE, c->mr,
				       0, self->ah, c->event.ud.qp_num));
	ASSERT_COMP_OK(c->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_EQ(GRH_BYTES + MSG_SIZE, wc.byte_len);
	EXPECT_EQ(c->id->qp->qp_num, wc.src_qp);
	EXPECT_TRUE(wc.wc_flags & IBV_WC_GRH);
	EXPECT_TRUE(filled(s->buf + GRH_BYTES, MSG_SIZE, 1));
	EXPECT_TRUE(all_bytes(s->buf + GRH_BYTES + MSG_SIZE, 64, POISON));

	/* Reply to the sender's address. */
	back = ibv_create_ah_from_wc(s->id->pd, &wc, (struct ibv_grh *)s->buf,
				     s->id->port_num);
	ASSERT_NE(NULL, back);
	fill(s->buf, MSG_SIZE, 2);
	ASSERT_EQ(0, end_recv(c, CONTEXT, 0, GRH_BYTES + MSG_SIZE));
	ASSERT_EQ(0, rdma_post_ud_send(s->id, CONTEXT, s->buf, MSG_SIZE, s->mr,
				       0, back, wc.src_qp));
	ASSERT_COMP_OK(s->id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(c->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_EQ(GRH_BYTES + MSG_SIZE, wc.byte_len);
	EXPECT_TRUE(filled(c->buf + GRH_BYTES, MSG_SIZE, 2));
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
	ASSERT_EQ(0, end_recv(s, CONTEXT, 0, GRH_BYTES + 64));
	ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, 64, NULL,
				       IBV_SEND_INLINE, self->ah,
				       c->event.ud.qp_num));
	memset(c->buf, 0, 64);
	ASSERT_COMP_OK(s->id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(s->buf + GRH_BYTES, 64, 3));
}

/*
 * rdma_post_ud_send(3).  ud_qp signals all sends, so the client has a queue pair
 * of its own.
 */
FIXTURE(send) {
	struct sockaddr_storage addr;
	struct rdma_cm_id *listen;
	struct end c, s;
	struct ibv_ah *ah;
	struct ibv_qp_init_attr attr;
	struct ibv_wc wc;
	uint32_t qp_num;	/* the server's */
};

FIXTURE_SETUP(send)
{
	struct end *c = &self->c, *s = &self->s;

	UD_SETUP();
	self->attr = ud_qp;
	self->attr.sq_sig_all = 0;
	ASSERT_EQ(0, rdma_create_qp(c->id, NULL, &self->attr));
	ASSERT_EQ(0, end_buffer(c, BUF_SIZE));
	ASSERT_EQ(0, ud_connect(c, s));
	ASSERT_EQ(0, end_ud_qp(s));
	ASSERT_EQ(0, ud_accept(c, s, s->id->qp->qp_num));
	self->ah = ibv_create_ah(c->id->pd, &c->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	self->qp_num = c->event.ud.qp_num;
}

FIXTURE_TEARDOWN(send)
{
	UD_TEARDOWN();
}

/* "For a list of supported flags, see ibv_post_send": the fence is for RC only. */
TEST_F(send, takes_the_flags)
{
	static const int flags[] = {
		0, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_SEND_INLINE,
		IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE,
	};
	struct end *c = &self->c, *s = &self->s;
	struct ibv_cq *cq;
	void *context;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		fill(c->buf, 60, i + 1);
		ASSERT_EQ(0, end_recv(s, s, 0, GRH_BYTES + 60));
		ASSERT_EQ(0, ibv_req_notify_cq(s->id->recv_cq, 1));
		ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, 60,
					       flags[i] & IBV_SEND_INLINE ? NULL :
					       c->mr, flags[i], self->ah,
					       self->qp_num));
		ASSERT_COMP_OK(s->id->recv_cq, &self->wc, IBV_WC_RECV, s);
		EXPECT_TRUE(filled(s->buf + GRH_BYTES, 60, i + 1));
		if (flags[i] & IBV_SEND_SIGNALED)
			ASSERT_COMP_OK(c->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
		else
			EXPECT_TRUE(no_comp(c->id->send_cq));
		if (!(flags[i] & IBV_SEND_SOLICITED)) {
			EXPECT_FALSE(readable(s->id->recv_cq_channel->fd, QUIET_MS));
			continue;
		}
		ASSERT_TRUE(readable(s->id->recv_cq_channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(s->id->recv_cq_channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
}

TEST_F(send, returns_the_context)
{
	static const uintptr_t contexts[] = { 0, 1, UINTPTR_MAX, 0x123456789abcdef0 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(contexts); i++) {
		ASSERT_EQ(0, rdma_post_ud_send(self->c.id, (void *)contexts[i],
					       self->c.buf, 10, self->c.mr,
					       IBV_SEND_SIGNALED, self->ah,
					       self->qp_num));
		ASSERT_COMP_OK(self->c.id->send_cq, &self->wc, IBV_WC_SEND,
			       contexts[i]);
	}
}

TEST_F(send, returns_minus_one_and_errno)
{
	ASSERT_GT(BUF_SIZE, self->attr.cap.max_inline_data);
	EXPECT_ERRNO(EINVAL, rdma_post_ud_send(self->c.id, CONTEXT, self->c.buf,
					       self->attr.cap.max_inline_data + 1,
					       NULL, IBV_SEND_INLINE |
					       IBV_SEND_SIGNALED, self->ah,
					       self->qp_num));
	EXPECT_TRUE(no_comp(self->c.id->send_cq));
}

/* "[...] the destination queue pair has queued a receive request [...]" */
TEST_F(send, needs_a_receive_at_the_destination)
{
	struct end *c = &self->c, *s = &self->s;
	int i;

	for (i = 0; i < 2; i++) {
		fill(c->buf, 100, i);
		ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, 100, c->mr,
					       IBV_SEND_SIGNALED, self->ah,
					       self->qp_num));
		ASSERT_COMP_OK(c->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
		if (i)
			break;
		/* The first datagram is lost before there is a receive. */
		EXPECT_TRUE(no_comp(s->id->recv_cq));
		ASSERT_EQ(0, end_recv(s, s, 0, GRH_BYTES + 100));
		EXPECT_TRUE(no_comp(s->id->recv_cq));
	}
	ASSERT_COMP_OK(s->id->recv_cq, &self->wc, IBV_WC_RECV, s);
	EXPECT_TRUE(filled(s->buf + GRH_BYTES, 100, 1));
}

/* "Unless the send request is using inline data [...] registered [...]" */
TEST_F(send, needs_an_mr_unless_inline)
{
	struct end *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, end_recv(s, s, 0, GRH_BYTES + 100));
	ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, 100, NULL,
				       IBV_SEND_SIGNALED, self->ah, self->qp_num));
	ASSERT_COMP_PROT(c->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(no_comp(s->id->recv_cq));
	EXPECT_TRUE(all_bytes(s->buf, GRH_BYTES + 100, POISON));
}

TEST_F(send, needs_the_registration_to_stay)
{
	struct end *c = &self->c, *s = &self->s;
	struct ibv_mr gone = *c->mr;

	ASSERT_EQ(0, ibv_dereg_mr(c->mr));
	c->mr = NULL;
	ASSERT_EQ(0, end_recv(s, s, 0, GRH_BYTES + 100));
	ASSERT_EQ(0, rdma_post_ud_send(c->id, CONTEXT, c->buf, 100, &gone,
				       IBV_SEND_SIGNALED, self->ah, self->qp_num));
	ASSERT_COMP_PROT(c->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(no_comp(s->id->recv_cq));
	EXPECT_TRUE(all_bytes(s->buf, GRH_BYTES + 100, POISON));
}

/* The receiver drops a datagram whose queue key is wrong. */
TEST_F(ud, wrong_queue_key)
{
	struct end *c = &self->c, *s = &self->s;
	struct ibv_send_wr wr = {}, *bad;
	struct ibv_sge entry;
	struct ibv_wc wc;

	ASSERT_EQ(0, ud_open(c, s));
	self->ah = ibv_create_ah(c->id->pd, &c->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	ASSERT_EQ(0, end_recv(s, CONTEXT, 0, GRH_BYTES + MSG_SIZE));
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
	EXPECT_TRUE(all_bytes(s->buf, GRH_BYTES + MSG_SIZE, POISON));
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

/* Calls of synchronous ids wait, and leave the event in the id. */
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
	struct server server = {};
	struct rdma_cm_id *id;
	pthread_t thread;

	addr_text(host, port, NULL);
	ASSERT_EQ(0, rdma_getaddrinfo(host, port, &hints, &info));
	ASSERT_EQ(0, rdma_create_ep(&server.listen, info, NULL, &attr));
	rdma_freeaddrinfo(info);
	EXPECT_EQ(IBV_QPT_UD, server.listen->qp_type);
	ASSERT_EQ(0, rdma_listen(server.listen, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, serve, &server));

	addr_text(host, port, server.listen);
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

TEST_HARNESS_MAIN
