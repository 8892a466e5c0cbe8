// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests connections by asynchronous ids: the order of the events, private data,
 * connection parameters, rejections and listeners.  A failure means that a
 * program sees other events, or other data in them, than librdmacm promises.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>

#include "rdma_test.h"

#define CM_REJ_CONSUMER_DEFINED 28	/* the InfiniBand specification, table 115 */

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

/* Connect step by step, in both address families. */
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

FIXTURE_VARIANT_ADD(steps, ipv4) { .family = AF_INET };
FIXTURE_VARIANT_ADD(steps, ipv6) { .family = AF_INET6 };

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
PAIR_FIXTURE(cm, pair_listen)

TEST_F(cm, private_data_both_ways)
{
	char there[56], back[100];

	fill(there, sizeof(there), 1);
	fill(back, sizeof(back), 2);
	self->opts.connect.private_data = there;
	self->opts.connect.private_data_len = sizeof(there);
	self->opts.accept.private_data = back;
	self->opts.accept.private_data_len = sizeof(back);
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_LE(sizeof(there), self->s->event.conn.private_data_len);
	EXPECT_TRUE(filled(self->s->event.data, sizeof(there), 1));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	ASSERT_LE(sizeof(back), self->c->event.conn.private_data_len);
	EXPECT_TRUE(filled(self->c->event.data, sizeof(back), 2));
}

/* rdma_connect(3): InfiniBand allows 56 bytes at most. */
TEST_F(cm, private_data_too_long)
{
	char data[255];

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	if (on_iwarp(self->c->id))
		SKIP(return, "the limit is InfiniBand's");
	memset(data, 1, sizeof(data));
	self->opts.connect.private_data = data;
	self->opts.connect.private_data_len = 57;
	EXPECT_ERRNO(EINVAL, rdma_connect(self->c->id, &self->opts.connect));
	self->opts.connect.private_data_len = 56;
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
}

TEST_F(cm, reject_with_data)
{
	char why[] = "not today";

	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_reject(self->s->id, why, sizeof(why)));
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->c->event));
	EXPECT_EQ(self->c->id, self->c->event.id);
	EXPECT_NE(0, self->c->event.status);
	if (!on_iwarp(self->c->id))
		EXPECT_EQ(CM_REJ_CONSUMER_DEFINED, self->c->event.status);
	ASSERT_LE(sizeof(why), self->c->event.conn.private_data_len);
	EXPECT_STREQ(why, (char *)self->c->event.data);
}

/* The client must be told when the server drops its request. */
TEST_F(cm, destroying_a_request_rejects_it)
{
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_destroy_id(self->s->id));
	self->s->id = NULL;
	ASSERT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->c->event));
}

/* The server destroys its listener before it has fetched the request. */
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

/*
 * The request's event counts for the listener; the new id may be destroyed
 * before the event is acknowledged.
 */
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

/* 203.0.113.0/24 is reserved for documentation. */
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

/* Each side sees the other side's parameters from its own point of view. */
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
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	EXPECT_EQ(2, conn->responder_resources);
	EXPECT_EQ(1, conn->initiator_depth);
	if (!on_iwarp(self->c->id)) {
		EXPECT_EQ(5, conn->retry_count);
		EXPECT_EQ(6, conn->rnr_retry_count);
		EXPECT_EQ(self->c->id->qp->qp_num, conn->qp_num);
	}
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	if (on_iwarp(self->c->id))
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

/*
 * The wire has three bits for a count of retries, so 7 is the most; programs
 * ask for more, fio for 10.
 */
TEST_F(cm, more_retries_than_there_are)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct end *end;
	int i;

	self->opts.connect.retry_count = 10;
	self->opts.connect.rnr_retry_count = 10;
	self->opts.accept.rnr_retry_count = 10;
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	if (on_iwarp(self->c->id))
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

/* rdma_connect(3): the device limits the reads and atomics. */
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
	EXPECT_ERRNO(EINVAL, rdma_connect(self->c->id, param));
	param->responder_resources = dev.max_qp_rd_atom;
	param->initiator_depth = dev.max_qp_init_rd_atom + 1;
	EXPECT_ERRNO(EINVAL, rdma_connect(self->c->id, param));
	param->initiator_depth = dev.max_qp_init_rd_atom;
	EXPECT_EQ(0, pair_connect(&self->p, &self->opts));
}

/* rdma_accept(3): without parameters, the request's apply. */
TEST_F(cm, accept_without_parameters)
{
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_accept(self->s->id, NULL));
	ASSERT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_ESTABLISHED,
				  &self->c->event));
	EXPECT_EQ(4, self->c->event.conn.responder_resources);
	EXPECT_EQ(4, self->c->event.conn.initiator_depth);
	fill(self->s->buf, 100, 1);
	ASSERT_EQ(0, end_read(self->c, 100, self->s->buf, self->s->mr->rkey));
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
		ASSERT_EQ(0, pair_after_listen(&tmp, &self->opts));
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

#define HANDLED_MS	300	/* more than most requests need */
#define REPEATED_MS	4000	/* InfiniBand's CM repeats it after 4.3 s */

/*
 * Send two requests to a listener whose backlog is one.  Return the time at
 * which the second was sent.
 */
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
	/* The second request must arrive before the first is fetched. */
	usleep(HANDLED_MS * 1000);
	return start;
}

/*
 * A request above the backlog must not be presented.  The server rejects it, or
 * drops it as ucma does, and the client repeats it later.
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
		/*
		 * If the request has been handled late, or repeated by now, this
		 * round proves nothing.
		 */
		late = now_ms() - start >= REPEATED_MS;
		if (!late && none)
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
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	end_close(&first.client);
	end_close(&first.server);
	rdma_destroy_event_channel(first.client.channel);
}

/* A listener on the wildcard address gets requests to any address. */
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
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	EXPECT_EQ(self->p.listen, self->s->event.listen_id ?: self->p.listen);
	EXPECT_NE(NULL, self->s->id->verbs);
}

TEST_HARNESS_MAIN
