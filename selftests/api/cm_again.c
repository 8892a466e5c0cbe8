// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests queue pairs that a program keeps, and uses for one connection after the
 * other.  A failure means that such a queue pair cannot connect again, or that
 * something of the last connection is left in it.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

#define WRS		16
#define MSG_SIZE	64
#define ROUNDS		10
#define STALE_CONN	10	/* of the InfiniBand specification, 12.6.7.2 */

/* One side: what it keeps, and the id of the connection. */
struct side {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t buf[MSG_SIZE];
};

FIXTURE(again) {
	struct rdma_event_channel *cc, *sc;
	struct rdma_cm_id *listen;
	struct ibv_pd *pd;
	struct side c, s;
	struct event event;
};

static int open_side(struct side *side, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = WRS, .max_recv_wr = WRS,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
	};

	side->cq = ibv_create_cq(pd->context, 2 * WRS, NULL, NULL, 0);
	if (!side->cq)
		return -1;
	attr.send_cq = attr.recv_cq = side->cq;
	side->qp = ibv_create_qp(pd, &attr);
	side->mr = ibv_reg_mr(pd, side->buf, MSG_SIZE, IBV_ACCESS_LOCAL_WRITE);
	return side->qp && side->mr ? 0 : -1;
}

static void close_side(struct side *side)
{
	if (side->id)
		rdma_destroy_id(side->id);
	ibv_destroy_qp(side->qp);
	ibv_destroy_cq(side->cq);
	ibv_dereg_mr(side->mr);
}

FIXTURE_SETUP(again)
{
	struct sockaddr_storage addr;

	self->cc = rdma_create_event_channel();
	self->sc = rdma_create_event_channel();
	ASSERT_TRUE(self->cc && self->sc);
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_create_id(self->sc, &self->listen, NULL, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_bind_addr(self->listen, (struct sockaddr *)&addr));
	if (on_iwarp(self->listen))
		SKIP(return, "iWARP takes queue pairs of ids only");
	ASSERT_EQ(0, rdma_listen(self->listen, 8));
	self->pd = ibv_alloc_pd(self->listen->verbs);
	ASSERT_NE(NULL, self->pd);
	ASSERT_EQ(0, open_side(&self->c, self->pd));
	ASSERT_EQ(0, open_side(&self->s, self->pd));
}

FIXTURE_TEARDOWN(again)
{
	if (self->pd) {
		close_side(&self->c);
		close_side(&self->s);
		ibv_dealloc_pd(self->pd);
	}
	rdma_destroy_id(self->listen);
	rdma_destroy_event_channel(self->cc);
	rdma_destroy_event_channel(self->sc);
}

static int move(struct side *side, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;

	if (rdma_init_qp_attr(side->id, &attr, &mask))
		return -1;
	return ibv_modify_qp(side->qp, &attr, mask);
}

static int reset(struct side *side)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(side->qp, &attr, IBV_QP_STATE);
}

static int post_recv(struct side *side, uint64_t wr_id)
{
	struct ibv_sge sge = {
		.addr = addr64(side->buf), .length = MSG_SIZE,
		.lkey = side->mr->lkey,
	};
	struct ibv_recv_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
	}, *bad;

	return ibv_post_recv(side->qp, &wr, &bad);
}

static int post_send(struct side *side, uint64_t wr_id)
{
	struct ibv_sge sge = {
		.addr = addr64(side->buf), .length = MSG_SIZE,
		.lkey = side->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND,
	}, *bad;

	return ibv_post_send(side->qp, &wr, &bad);
}

/* Make the client's id and resolve the listener's address. */
static int resolve(FIXTURE_DATA(again) *self, struct rdma_cm_id **id)
{
	/* rxe's retransmission timer goes on after a RESET, and may fire in this connection. */
	struct rdma_conn_param param = {
		.qp_num = self->c.qp->qp_num, .retry_count = 7,
	};
	struct sockaddr_storage addr;

	test_addr(AF_INET, &addr);
	set_port(&addr, rdma_get_src_port(self->listen));
	if (rdma_create_id(self->cc, id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(*id, NULL, (struct sockaddr *)&addr, 10000) ||
	    expect_event(self->cc, RDMA_CM_EVENT_ADDR_RESOLVED, &self->event) ||
	    rdma_resolve_route(*id, 10000) ||
	    expect_event(self->cc, RDMA_CM_EVENT_ROUTE_RESOLVED, &self->event))
		return -1;
	return rdma_connect(*id, &param);
}

static int accept_request(FIXTURE_DATA(again) *self)
{
	struct rdma_conn_param param = { .qp_num = self->s.qp->qp_num };
	struct side *s = &self->s;

	if (expect_event(self->sc, RDMA_CM_EVENT_CONNECT_REQUEST, &self->event))
		return -1;
	s->id = self->event.id;
	return move(s, IBV_QPS_INIT) || move(s, IBV_QPS_RTR) ||
	       move(s, IBV_QPS_RTS) ? -1 : rdma_accept(s->id, &param);
}

static int join(FIXTURE_DATA(again) *self)
{
	struct side *c = &self->c;

	if (resolve(self, &c->id) || accept_request(self) ||
	    expect_event(self->cc, RDMA_CM_EVENT_CONNECT_RESPONSE,
			 &self->event) ||
	    move(c, IBV_QPS_INIT) || move(c, IBV_QPS_RTR) ||
	    move(c, IBV_QPS_RTS) || rdma_establish(c->id))
		return -1;
	return expect_event(self->sc, RDMA_CM_EVENT_ESTABLISHED, &self->event);
}

/* End the connection in order: both sides know of it. */
static int leave(FIXTURE_DATA(again) *self)
{
	if (rdma_disconnect(self->c.id) ||
	    expect_event(self->sc, RDMA_CM_EVENT_DISCONNECTED, &self->event) ||
	    rdma_disconnect(self->s.id))
		return -1;
	return expect_event(self->cc, RDMA_CM_EVENT_DISCONNECTED, &self->event);
}

static int destroy_ids(FIXTURE_DATA(again) *self)
{
	struct rdma_cm_id *c = self->c.id, *s = self->s.id;

	self->c.id = self->s.id = NULL;
	return rdma_destroy_id(c) || rdma_destroy_id(s) ? -1 : 0;
}

/* Expect that a message arrives with this number and this content. */
#define ASSERT_MESSAGE(from, to, number) do { \
	struct ibv_wc wc_; \
	memset((to)->buf, POISON, MSG_SIZE); \
	fill((from)->buf, MSG_SIZE, number); \
	ASSERT_EQ(0, post_recv(to, number)); \
	ASSERT_EQ(0, post_send(from, number)); \
	ASSERT_COMP((to)->cq, &wc_, IBV_WC_SUCCESS, number); \
	EXPECT_EQ((to)->qp->qp_num, wc_.qp_num); \
	ASSERT_COMP((from)->cq, &wc_, IBV_WC_SUCCESS, number); \
	EXPECT_TRUE(filled((to)->buf, MSG_SIZE, number)); \
} while (0)

static uint32_t send_psn(struct side *side)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {};

	ibv_query_qp(side->qp, &attr, IBV_QP_SQ_PSN, &init);
	return attr.sq_psn;
}

/*
 * As soon as both ends know of the end of a connection, the same numbers make
 * the next one.  Receives that were still posted are gone.
 */
TEST_F(again, at_once)
{
	struct side *c = &self->c, *s = &self->s;
	unsigned int i, psns = 0;
	uint32_t psn = 0;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_EQ(0, join(self))
			TH_LOG("round %u", i);
		psns += psn != send_psn(c);
		psn = send_psn(c);
		ASSERT_MESSAGE(c, s, 2 * i);
		ASSERT_MESSAGE(s, c, 2 * i + 1);
		ASSERT_EQ(0, post_recv(c, 1000 + i));
		ASSERT_EQ(0, post_recv(s, 1000 + i));
		ASSERT_EQ(0, leave(self));
		ASSERT_EQ(0, reset(c));
		ASSERT_EQ(0, reset(s));
		ASSERT_EQ(0, destroy_ids(self));
	}
	/* They are random. */
	EXPECT_LT(1, psns);
	EXPECT_TRUE(no_comp(c->cq));
	EXPECT_TRUE(no_comp(s->cq));
	EXPECT_TRUE(no_event(self->cc));
	EXPECT_TRUE(no_event(self->sc));
}

/* The event says when packets of the connection cannot come any more. */
TEST_F(again, after_timewait)
{
	ASSERT_EQ(0, join(self));
	ASSERT_EQ(0, leave(self));
	ASSERT_EQ(0, reset(&self->c));
	ASSERT_EQ(0, reset(&self->s));
	ASSERT_EQ(0, expect_event(self->cc, RDMA_CM_EVENT_TIMEWAIT_EXIT,
				  &self->event));
	ASSERT_EQ(0, expect_event(self->sc, RDMA_CM_EVENT_TIMEWAIT_EXIT,
				  &self->event));
	ASSERT_EQ(0, destroy_ids(self));
	ASSERT_EQ(0, join(self));
	ASSERT_MESSAGE(&self->c, &self->s, 1);
}

/*
 * A server that has not heard of the end takes the next connection with the
 * number for a sign that the first is stale: it rejects the one and ends the
 * other.  After that the number is free.
 */
TEST_F(again, before_the_server_knows)
{
	struct rdma_cm_id *second;
	struct side *c = &self->c, *s = &self->s;

	ASSERT_EQ(0, join(self));
	ASSERT_EQ(0, resolve(self, &second));
	/* Two messages, in any order. */
	ASSERT_LE(0, next_event(self->cc, &self->event));
	if (self->event.id == c->id) {
		ASSERT_EQ(RDMA_CM_EVENT_DISCONNECTED, self->event.type);
		ASSERT_LE(0, next_event(self->cc, &self->event));
	} else {
		struct event other;

		ASSERT_EQ(0, expect_event(self->cc, RDMA_CM_EVENT_DISCONNECTED,
					  &other));
		ASSERT_EQ(c->id, other.id);
	}
	ASSERT_EQ(second, self->event.id);
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED, self->event.type);
	EXPECT_EQ(STALE_CONN, self->event.status);
	ASSERT_EQ(0, rdma_destroy_id(second));
	ASSERT_EQ(0, rdma_disconnect(c->id));
	ASSERT_EQ(0, expect_event(self->sc, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
	rdma_disconnect(s->id);
	ASSERT_EQ(0, reset(c));
	ASSERT_EQ(0, reset(s));
	ASSERT_EQ(0, destroy_ids(self));
	ASSERT_EQ(0, join(self));
	ASSERT_MESSAGE(c, s, 1);
}

TEST_HARNESS_MAIN
