// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections by asynchronous ids: events and their order, private data, who may
 * do what when, and what is left after a disconnect.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "rdma_test.h"

#define CONTEXT ((void *)0x1234ul)
#define CM_REJ_CONSUMER_DEFINED 28	/* the InfiniBand specification, table 115 */

static bool is_iwarp(struct rdma_cm_id *id)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

static bool same_addr(struct sockaddr *a, struct sockaddr *b)
{
	struct sockaddr_in6 *a6 = (struct sockaddr_in6 *)a;
	struct sockaddr_in6 *b6 = (struct sockaddr_in6 *)b;

	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((struct sockaddr_in *)b)->sin_addr.s_addr;
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr));
}

/* A connection, step by step, in both address families. */
FIXTURE(steps) {
	struct pair p;
	struct pair_opts opts;
	struct end *c, *s;
	struct sockaddr_storage addr;
	bool present;
};

FIXTURE_VARIANT(steps) {
	int family;
};

FIXTURE_VARIANT_ADD(steps, ipv4) {
	.family = AF_INET,
};

FIXTURE_VARIANT_ADD(steps, ipv6) {
	.family = AF_INET6,
};

FIXTURE_SETUP(steps)
{
	pair_defaults(&self->opts);
	self->opts.family = variant->family;
	self->c = &self->p.client;
	self->s = &self->p.server;
	self->present = test_addr(variant->family, &self->addr);
}

FIXTURE_TEARDOWN(steps)
{
	if (self->present)
		pair_close(&self->p);
}

#define NO_FAMILY "no RDMA device has an address of this family"

TEST_F(steps, events_in_order)
{
	struct event *ev;

	if (!self->present)
		SKIP(return, NO_FAMILY);
	ASSERT_EQ(0, pair_listen(&self->p, &self->opts));
	self->p.listen->context = CONTEXT;
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	EXPECT_EQ(self->c->id, self->c->event.id);
	EXPECT_EQ(NULL, self->c->event.listen_id);
	EXPECT_TRUE(no_event(self->c->channel));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	EXPECT_TRUE(no_event(self->s->channel));

	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ev = &self->s->event;
	EXPECT_EQ(self->p.listen, ev->listen_id);
	EXPECT_NE(self->p.listen, ev->id);
	EXPECT_EQ(CONTEXT, ev->id->context);
	EXPECT_EQ(self->s->channel, ev->id->channel);
	EXPECT_EQ(RDMA_PS_TCP, ev->id->ps);
	EXPECT_NE(NULL, ev->id->verbs);
	EXPECT_NE(NULL, ev->id->pd);
	EXPECT_EQ(self->c->id->port_num, ev->id->port_num);
	EXPECT_EQ(NULL, ev->id->qp);
	EXPECT_TRUE(no_event(self->c->channel));
	EXPECT_TRUE(no_event(self->s->channel));

	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	EXPECT_EQ(self->c->id, self->c->event.id);
	EXPECT_EQ(self->s->id, self->s->event.id);
	EXPECT_TRUE(no_event(self->c->channel));
	EXPECT_TRUE(no_event(self->s->channel));
}

TEST_F(steps, what_the_ids_know)
{
	struct sockaddr *addr = (struct sockaddr *)&self->addr;
	struct rdma_cm_id *id;

	if (!self->present)
		SKIP(return, NO_FAMILY);
	ASSERT_EQ(0, pair_open(&self->p, &self->opts));
	id = self->c->id;
	EXPECT_EQ(RDMA_PS_TCP, id->ps);
	EXPECT_EQ(IBV_QPT_RC, id->qp_type);
	EXPECT_NE(NULL, id->verbs);
	EXPECT_LE(1, id->port_num);
	EXPECT_EQ(id->verbs, id->qp->context);
	EXPECT_EQ(id->pd, id->qp->pd);
	EXPECT_EQ(IBV_QPT_RC, id->qp->qp_type);
	EXPECT_NE(id->qp->qp_num, self->s->id->qp->qp_num);
	EXPECT_TRUE(same_addr(addr, rdma_get_local_addr(id)));
	EXPECT_TRUE(same_addr(addr, rdma_get_peer_addr(id)));
	EXPECT_TRUE(same_addr(addr, rdma_get_local_addr(self->s->id)));
	EXPECT_TRUE(same_addr(addr, rdma_get_peer_addr(self->s->id)));
	EXPECT_EQ(rdma_get_src_port(self->p.listen), rdma_get_dst_port(id));
	EXPECT_EQ(rdma_get_src_port(self->p.listen), rdma_get_src_port(self->s->id));
	EXPECT_NE(0, rdma_get_src_port(id));
	EXPECT_EQ(rdma_get_src_port(id), rdma_get_dst_port(self->s->id));
}

TEST_F(steps, disconnect_by_the_client)
{
	if (!self->present)
		SKIP(return, NO_FAMILY);
	ASSERT_EQ(0, pair_open(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	EXPECT_EQ(self->s->id, self->s->event.id);
	ASSERT_EQ(0, rdma_disconnect(self->s->id));
	ASSERT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->c->event));
	EXPECT_EQ(self->c->id, self->c->event.id);
}

TEST_F(steps, disconnect_by_the_server)
{
	if (!self->present)
		SKIP(return, NO_FAMILY);
	ASSERT_EQ(0, pair_open(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->s->id));
	ASSERT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->c->event));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
}

/* The tests below are independent of the address family. */
FIXTURE(cm) {
	struct pair p;
	struct pair_opts opts;
	struct end *c, *s;
	struct ibv_wc wc;
};

FIXTURE_SETUP(cm)
{
	pair_defaults(&self->opts);
	self->c = &self->p.client;
	self->s = &self->p.server;
	ASSERT_EQ(0, pair_listen(&self->p, &self->opts));
}

FIXTURE_TEARDOWN(cm)
{
	pair_close(&self->p);
}

/* From listening and resolved to a request at the server. */
static int request(struct pair *p, struct pair_opts *opts)
{
	return pair_resolve(p, opts) || pair_client_qp(p, opts) ||
	       pair_connect(p, opts) ? -1 : 0;
}

static int connect_all(struct pair *p, struct pair_opts *opts)
{
	return request(p, opts) || pair_server_qp(p, opts) ||
	       pair_accept(p, opts) ? -1 : 0;
}

TEST_F(cm, private_data_both_ways)
{
	char there[56], back[100];

	fill(there, sizeof(there), 1);
	fill(back, sizeof(back), 2);
	self->opts.connect.private_data = there;
	self->opts.connect.private_data_len = sizeof(there);
	self->opts.accept.private_data = back;
	self->opts.accept.private_data_len = sizeof(back);
	ASSERT_EQ(0, request(&self->p, &self->opts));
	ASSERT_LE(sizeof(there), self->s->event.conn.private_data_len);
	EXPECT_TRUE(filled(self->s->event.data, sizeof(there), 1));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	ASSERT_LE(sizeof(back), self->c->event.conn.private_data_len);
	EXPECT_TRUE(filled(self->c->event.data, sizeof(back), 2));
}

/* rdma_connect(3): at most 56 bytes over InfiniBand. */
TEST_F(cm, private_data_too_long)
{
	char data[255];

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	if (is_iwarp(self->c->id))
		SKIP(return, "the limit is InfiniBand's");
	memset(data, 1, sizeof(data));
	self->opts.connect.private_data = data;
	self->opts.connect.private_data_len = 57;
	errno = 0;
	EXPECT_EQ(-1, rdma_connect(self->c->id, &self->opts.connect));
	EXPECT_EQ(EINVAL, errno);
	self->opts.connect.private_data_len = 56;
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
}

TEST_F(cm, reject_with_data)
{
	char why[] = "not today";

	ASSERT_EQ(0, request(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_reject(self->s->id, why, sizeof(why)));
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->c->event));
	EXPECT_EQ(self->c->id, self->c->event.id);
	EXPECT_NE(0, self->c->event.status);
	if (!is_iwarp(self->c->id))
		EXPECT_EQ(CM_REJ_CONSUMER_DEFINED, self->c->event.status);
	ASSERT_LE(sizeof(why), self->c->event.conn.private_data_len);
	EXPECT_STREQ(why, (char *)self->c->event.data);
}

/* A request that the server drops is answered all the same. */
TEST_F(cm, destroying_a_request_rejects_it)
{
	ASSERT_EQ(0, request(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_destroy_id(self->s->id));
	self->s->id = NULL;
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->c->event));
}

/* So is one that it has not seen when it stops to listen. */
TEST_F(cm, destroying_the_listener_rejects_what_waits)
{
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_connect(self->c->id, &self->opts.connect));
	ASSERT_TRUE(readable(self->s->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, rdma_destroy_id(self->p.listen));
	self->p.listen = NULL;
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->c->event));
	EXPECT_TRUE(no_event(self->s->channel));
}

/* A request's event counts for the listener, and the new id may go before it. */
TEST_F(cm, request_goes_before_its_event)
{
	struct rdma_cm_event *ev;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_connect(self->c->id, &self->opts.connect));
	ASSERT_EQ(0, rdma_get_cm_event(self->s->channel, &ev));
	ASSERT_EQ(RDMA_CM_EVENT_CONNECT_REQUEST, ev->event);
	ASSERT_EQ(0, rdma_reject(ev->id, NULL, 0));
	ASSERT_EQ(0, rdma_destroy_id(ev->id));
	ASSERT_EQ(0, rdma_ack_cm_event(ev));
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->c->event));
}

TEST_F(cm, nobody_listens)
{
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_destroy_id(self->p.listen));
	self->p.listen = NULL;
	ASSERT_EQ(0, rdma_connect(self->c->id, &self->opts.connect));
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->c->event));
	EXPECT_NE(0, self->c->event.status);
}

/* 203.0.113.0/24 is for documentation only. */
TEST_F(cm, no_such_host)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(7471),
		.sin_addr.s_addr = inet_addr("203.0.113.77"),
	};
	struct rdma_cm_id *id;

	ASSERT_EQ(0, rdma_create_id(self->s->channel, &id, NULL, RDMA_PS_TCP));
	if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 200)) {
		ASSERT_EQ(RDMA_CM_EVENT_ADDR_ERROR,
			  next_event(self->s->channel, &self->s->event));
		EXPECT_EQ(id, self->s->event.id);
		EXPECT_GT(0, self->s->event.status);
	} else {
		EXPECT_TRUE(errno == ENODEV || errno == ENETUNREACH ||
			    errno == EHOSTUNREACH)
			TH_LOG("errno: %s", strerror(errno));
	}
	EXPECT_EQ(0, rdma_destroy_id(id));
}

/* What this side asks for, the other side sees from its own. */
TEST_F(cm, connection_parameters)
{
	struct rdma_conn_param *conn = &self->s->event.conn;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	self->opts.connect.responder_resources = 1;
	self->opts.connect.initiator_depth = 2;
	self->opts.connect.retry_count = 5;
	self->opts.connect.rnr_retry_count = 6;
	self->opts.accept.responder_resources = 2;
	self->opts.accept.initiator_depth = 1;
	ASSERT_EQ(0, request(&self->p, &self->opts));
	EXPECT_EQ(2, conn->responder_resources);
	EXPECT_EQ(1, conn->initiator_depth);
	if (!is_iwarp(self->c->id)) {
		EXPECT_EQ(5, conn->retry_count);
		EXPECT_EQ(6, conn->rnr_retry_count);
		EXPECT_EQ(self->c->id->qp->qp_num, conn->qp_num);
	}
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	if (is_iwarp(self->c->id))
		return;
	EXPECT_EQ(self->s->id->qp->qp_num, self->c->event.conn.qp_num);
	EXPECT_EQ(1, self->c->event.conn.responder_resources);
	EXPECT_EQ(2, self->c->event.conn.initiator_depth);
	ASSERT_EQ(0, ibv_query_qp(self->c->id->qp, &attr, IBV_QP_STATE |
				  IBV_QP_RETRY_CNT | IBV_QP_DEST_QPN |
				  IBV_QP_MAX_QP_RD_ATOMIC, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(5, attr.retry_cnt);
	EXPECT_EQ(self->s->id->qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(2, attr.max_rd_atomic);
}

/* Of retries the wire knows seven; programs ask for more, fio for ten. */
TEST_F(cm, more_retries_than_there_are)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct end *end;
	int i;

	self->opts.connect.retry_count = 10;
	self->opts.connect.rnr_retry_count = 10;
	self->opts.accept.rnr_retry_count = 10;
	ASSERT_EQ(0, request(&self->p, &self->opts));
	if (is_iwarp(self->c->id))
		SKIP(return, "the limit is InfiniBand's");
	EXPECT_EQ(7, self->s->event.conn.retry_count);
	EXPECT_EQ(7, self->s->event.conn.rnr_retry_count);
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	EXPECT_EQ(7, self->c->event.conn.rnr_retry_count);
	for (i = 0; i < 2; i++) {
		end = i ? self->s : self->c;
		ASSERT_EQ(0, ibv_query_qp(end->id->qp, &attr, IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY, &init));
		EXPECT_EQ(7, attr.retry_cnt);
		EXPECT_EQ(7, attr.rnr_retry);
	}
}

/* rdma_connect(3): no more reads and atomics than the device has room for. */
TEST_F(cm, deeper_than_the_device)
{
	struct rdma_conn_param *param = &self->opts.connect;
	struct ibv_device_attr dev;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, ibv_query_device(self->c->id->verbs, &dev));
	if (dev.max_qp_rd_atom >= RDMA_MAX_RESP_RES - 1 ||
	    dev.max_qp_init_rd_atom >= RDMA_MAX_INIT_DEPTH - 1)
		SKIP(return, "the device takes whatever can be said");
	param->responder_resources = dev.max_qp_rd_atom + 1;
	errno = 0;
	EXPECT_EQ(-1, rdma_connect(self->c->id, param));
	EXPECT_EQ(EINVAL, errno);
	param->responder_resources = dev.max_qp_rd_atom;
	param->initiator_depth = dev.max_qp_init_rd_atom + 1;
	errno = 0;
	EXPECT_EQ(-1, rdma_connect(self->c->id, param));
	EXPECT_EQ(EINVAL, errno);
	param->initiator_depth = dev.max_qp_init_rd_atom;
	EXPECT_EQ(0, pair_connect(&self->p, &self->opts));
}

/* rdma_accept(3) without parameters takes those of the request. */
TEST_F(cm, accept_without_parameters)
{
	ASSERT_EQ(0, request(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_accept(self->s->id, NULL));
	ASSERT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_ESTABLISHED,
				  &self->c->event));
	EXPECT_EQ(4, self->c->event.conn.responder_resources);
	EXPECT_EQ(4, self->c->event.conn.initiator_depth);
	fill(self->s->buf, 100, 1);
	ASSERT_EQ(0, rdma_post_read(self->c->id, CONTEXT, self->c->buf, 100,
				    self->c->mr, IBV_SEND_SIGNALED,
				    addr64(self->s->buf), self->s->mr->rkey));
	ASSERT_COMP_OK(self->c->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->c->buf, 100, 1));
}

TEST_F(cm, several_connections)
{
	struct end c[3], s[3];
	struct pair tmp;
	struct ibv_wc wc;
	int i, j;

	for (i = 0; i < 3; i++) {
		tmp = self->p;
		ASSERT_EQ(0, connect_all(&tmp, &self->opts));
		c[i] = tmp.client;
		s[i] = tmp.server;
		EXPECT_EQ(self->p.listen, s[i].event.listen_id ?: self->p.listen);
	}
	for (i = 0; i < 3; i++)
		for (j = 0; j < i; j++) {
			EXPECT_NE(s[i].id, s[j].id);
			EXPECT_NE(s[i].id->qp->qp_num, s[j].id->qp->qp_num);
		}
	for (i = 0; i < 3; i++) {
		fill(c[i].buf, 1000, i + 1);
		ASSERT_EQ(0, rdma_post_write(c[i].id, c + i, c[i].buf, 1000,
					     c[i].mr, IBV_SEND_SIGNALED,
					     addr64(s[i].buf), s[i].mr->rkey));
	}
	for (i = 0; i < 3; i++) {
		ASSERT_COMP_OK(c[i].id->send_cq, &wc, IBV_WC_RDMA_WRITE, c + i);
		EXPECT_TRUE(filled(s[i].buf, 1000, i + 1));
	}
	for (i = 0; i < 3; i++) {
		end_close(c + i);
		end_close(s + i);
		rdma_destroy_event_channel(c[i].channel);
	}
}

#define HANDLED_MS	2000	/* much more than a request needs */
#define REPEATED_MS	4000	/* InfiniBand's kind send it again after 4.3 s */

/* Ask twice where one may wait; when the second was sent. */
static uint64_t ask_twice(struct __test_metadata *_metadata,
			  FIXTURE_DATA(cm) *self, struct pair *first,
			  struct pair *second)
{
	struct sockaddr_storage addr;
	uint64_t start;

	ASSERT_EQ(0, rdma_destroy_id(self->p.listen));
	ASSERT_EQ(0, rdma_create_id(self->s->channel, &self->p.listen, NULL,
				    RDMA_PS_TCP));
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_bind_addr(self->p.listen, (struct sockaddr *)&addr));
	ASSERT_EQ(0, rdma_listen(self->p.listen, 1));
	*first = self->p;
	*second = self->p;
	ASSERT_EQ(0, pair_resolve(first, &self->opts));
	ASSERT_EQ(0, pair_client_qp(first, &self->opts));
	ASSERT_EQ(0, pair_resolve(second, &self->opts));
	ASSERT_EQ(0, pair_client_qp(second, &self->opts));
	ASSERT_EQ(0, rdma_connect(first->client.id, &self->opts.connect));
	ASSERT_TRUE(readable(self->s->channel->fd, DEADLINE_MS));
	start = now_ms();
	ASSERT_EQ(0, rdma_connect(second->client.id, &self->opts.connect));
	/* It must have come before the first is fetched. */
	usleep(HANDLED_MS * 1000);
	return start;
}

/*
 * A request above the backlog is not presented, whether it is rejected or, as
 * ucma has it, dropped for the client to repeat it later.
 */
TEST_F(cm, backlog)
{
	struct pair first, second;
	bool none, late;
	uint64_t start;
	int tries = 0;

	do {
		start = ask_twice(_metadata, self, &first, &second);
		ASSERT_EQ(0, expect_event(self->s->channel,
					  RDMA_CM_EVENT_CONNECT_REQUEST,
					  &first.server.event));
		none = no_event(self->s->channel);
		first.server.id = first.server.event.id;
		/* It may have been repeated by now: that would tell nothing. */
		late = now_ms() - start >= REPEATED_MS;
		if (!late)
			break;
		ASSERT_EQ(0, rdma_destroy_id(first.server.id));
		end_close(&first.client);
		rdma_destroy_event_channel(first.client.channel);
		end_close(&second.client);
		rdma_destroy_event_channel(second.client.channel);
	} while (++tries < 10);
	ASSERT_FALSE(late);
	EXPECT_TRUE(none);
	end_close(&second.client);
	rdma_destroy_event_channel(second.client.channel);

	EXPECT_EQ(rdma_get_src_port(first.client.id),
		  rdma_get_dst_port(first.server.id));
	ASSERT_EQ(0, pair_server_qp(&first, &self->opts));
	ASSERT_EQ(0, pair_accept(&first, &self->opts));
	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	end_close(&first.client);
	end_close(&first.server);
	rdma_destroy_event_channel(first.client.channel);
}

TEST_F(cm, disconnect_flushes)
{
	uintptr_t i;

	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, rdma_post_recv(self->c->id, (void *)i,
					    self->c->buf, 10, self->c->mr));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	for (i = 0; i < 4; i++) {
		ASSERT_COMP(self->c->id->recv_cq, &self->wc,
			    IBV_WC_WR_FLUSH_ERR, i);
		EXPECT_EQ(self->c->id->qp->qp_num, self->wc.qp_num);
	}
	EXPECT_TRUE(no_comp(self->c->id->recv_cq));
}

/* Those that wait for the other side to receive them, too. */
TEST_F(cm, disconnect_flushes_sends)
{
	uintptr_t i;

	self->opts.connect.rnr_retry_count = 7;
	self->opts.accept.rnr_retry_count = 7;
	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, rdma_post_send(self->c->id, (void *)i,
					    self->c->buf, 10, self->c->mr, 0));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	for (i = 0; i < 4; i++)
		ASSERT_COMP(self->c->id->send_cq, &self->wc,
			    IBV_WC_WR_FLUSH_ERR, i);
	EXPECT_TRUE(no_comp(self->c->id->send_cq));
}

/* Who goes without a word has disconnected. */
TEST_F(cm, destroyed_when_connected)
{
	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	end_close(self->c);
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	EXPECT_EQ(self->s->id, self->s->event.id);
}

/* A queue pair in the error state takes work requests, and flushes them. */
TEST_F(cm, posts_after_disconnect_are_flushed)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, ibv_query_qp(self->c->id->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_ERR, attr.qp_state);
	ASSERT_EQ(0, rdma_post_write(self->c->id, CONTEXT, self->c->buf, 10,
				     self->c->mr, 0, addr64(self->s->buf),
				     self->s->mr->rkey));
	ASSERT_COMP(self->c->id->send_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 100, POISON));
}

TEST_F(cm, receives_after_disconnect_are_flushed)
{
	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	if (over_incumbent() && on_rxe(self->c->id))
		SKIP(return, "rdma_rxe does not see a program's receives in the error state");
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, rdma_post_recv(self->c->id, CONTEXT, self->c->buf, 10,
				    self->c->mr));
	ASSERT_COMP(self->c->id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
}

/* The other side's disconnect alone does not take the queue pair down here. */
TEST_F(cm, posts_at_the_other_end_of_a_disconnect)
{
	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_post_recv(self->s->id, CONTEXT, self->s->buf, 10,
				    self->s->mr));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	ASSERT_EQ(0, rdma_disconnect(self->s->id));
	ASSERT_COMP(self->s->id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
}

/* A client that dies is a disconnect. */
TEST(killed_client)
{
	struct pair_opts opts;
	struct pair p, peer;
	__be16 port;
	int fds[2];
	pid_t pid;

	/* It forks before the parent opens anything that it would inherit. */
	ASSERT_EQ(0, pipe(fds));
	pair_defaults(&opts);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct sockaddr_storage addr;

		memset(&peer, 0, sizeof(peer));
		if (read(fds[0], &port, 2) != 2 || !test_addr(AF_INET, &addr))
			_exit(1);
		/* Only the port of the listener is looked at. */
		peer.listen = calloc(1, sizeof(*peer.listen));
		if (!peer.listen)
			_exit(1);
		set_port(&peer.listen->route.addr.src_storage, port);
		peer.listen->route.addr.src_addr.sa_family = AF_INET;
		if (pair_resolve(&peer, &opts) || pair_client_qp(&peer, &opts) ||
		    rdma_connect(peer.client.id, &opts.connect) ||
		    expect_event(peer.client.channel, RDMA_CM_EVENT_ESTABLISHED,
				 &peer.client.event))
			_exit(1);
		pause();
		_exit(0);
	}
	ASSERT_EQ(0, pair_listen(&p, &opts));
	port = rdma_get_src_port(p.listen);
	ASSERT_EQ(2, write(fds[1], &port, 2));
	ASSERT_EQ(0, expect_event(p.server.channel,
				  RDMA_CM_EVENT_CONNECT_REQUEST, &p.server.event));
	p.server.id = p.server.event.id;
	ASSERT_EQ(0, pair_server_qp(&p, &opts));
	ASSERT_EQ(0, rdma_accept(p.server.id, &opts.accept));
	ASSERT_EQ(0, expect_event(p.server.channel, RDMA_CM_EVENT_ESTABLISHED,
				  &p.server.event));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	EXPECT_EQ(0, expect_event(p.server.channel, RDMA_CM_EVENT_DISCONNECTED,
				  &p.server.event));
	EXPECT_EQ(p.server.id, p.server.event.id);
	pair_close(&p);
}

/* A child of fork() has connections of its own, and its parent's go on. */
TEST(child_of_fork)
{
	struct pair p, own;
	struct ibv_wc wc;
	int status;
	pid_t pid;

	ASSERT_EQ(0, pair_open(&p, NULL));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (pair_open(&own, NULL))
			_exit(1);
		pair_close(&own);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	fill(p.client.buf, 100, 1);
	ASSERT_EQ(0, rdma_post_recv(p.server.id, CONTEXT, p.server.buf, 100,
				    p.server.mr));
	ASSERT_EQ(0, rdma_post_send(p.client.id, CONTEXT, p.client.buf, 100,
				    p.client.mr, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(p.server.id->recv_cq, &wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(p.server.buf, 100, 1));
	pair_close(&p);
}

/* A listener on the wildcard address hears of connections to any. */
TEST_F(cm, wildcard_listener)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };

	ASSERT_EQ(0, rdma_destroy_id(self->p.listen));
	ASSERT_EQ(0, rdma_create_id(self->s->channel, &self->p.listen, NULL,
				    RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_bind_addr(self->p.listen, (struct sockaddr *)&addr));
	EXPECT_EQ(NULL, self->p.listen->verbs);
	EXPECT_EQ(NULL, self->p.listen->pd);
	ASSERT_EQ(0, rdma_listen(self->p.listen, 0));
	ASSERT_NE(0, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	EXPECT_EQ(self->p.listen, self->s->event.listen_id ?: self->p.listen);
	EXPECT_NE(NULL, self->s->id->verbs);
}

TEST_F(cm, nonblocking_channel)
{
	struct rdma_event_channel *channel = self->s->channel;
	struct rdma_cm_event *ev;

	ASSERT_EQ(0, fcntl(channel->fd, F_SETFL,
			   fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	errno = 0;
	EXPECT_EQ(-1, rdma_get_cm_event(channel, &ev));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, request(&self->p, &self->opts));
}

static void *get_event_in_thread(void *arg)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(arg, &ev))
		return NULL;
	id = ev->id;
	return rdma_ack_cm_event(ev) ? NULL : id;
}

/* rdma_get_cm_event() sleeps until there is one. */
TEST_F(cm, get_event_sleeps)
{
	pthread_t thread;
	void *got;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pthread_create(&thread, NULL, get_event_in_thread,
				    self->s->channel));
	usleep(30000);
	ASSERT_EQ(0, rdma_connect(self->c->id, &self->opts.connect));
	ASSERT_EQ(0, pthread_join(thread, &got));
	EXPECT_NE(NULL, got);
	self->s->id = got;
}

static void *destroy_id_in_thread(void *arg)
{
	return (void *)(intptr_t)rdma_destroy_id(arg);
}

TEST_F(cm, destroy_waits_for_acks)
{
	struct rdma_cm_event *ev;
	struct timespec ts;
	pthread_t thread;
	void *ret = NULL;

	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, rdma_get_cm_event(self->s->channel, &ev));
	ASSERT_EQ(self->s->id, ev->id);
	rdma_destroy_qp(self->s->id);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_id_in_thread,
				    self->s->id));
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += 50000000;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &ret, &ts));
	ASSERT_EQ(0, rdma_ack_cm_event(ev));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	self->s->id = NULL;
}

TEST_F(cm, ack_of_nothing)
{
	errno = 0;
	EXPECT_EQ(-1, rdma_ack_cm_event(NULL));
	EXPECT_EQ(EINVAL, errno);
}

/* Events of an id that moves come to its new channel, those that wait, too. */
TEST_F(cm, migrate)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, connect_all(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_TRUE(readable(self->s->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, rdma_migrate_id(self->s->id, channel));
	EXPECT_EQ(channel, self->s->id->channel);
	EXPECT_FALSE(readable(self->s->channel->fd, QUIET_MS));
	ASSERT_EQ(0, expect_event(channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	EXPECT_EQ(self->s->id, self->s->event.id);
	end_close(self->s);
	rdma_destroy_event_channel(channel);
}

TEST_HARNESS_MAIN
