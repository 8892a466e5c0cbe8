// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests events after a neighbour's hardware address has changed, which the
 * connection manager reports as RDMA_CM_EVENT_UNREACHABLE
 * (cma_netevent_callback(), since 6.0).  Later events of the connection must
 * not be lost.
 *
 * With RPOST_TEST_LINK the tests change the neighbour entry of the device's own
 * address, which nothing else uses.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

#include "rdma_test.h"

FIXTURE(neighbour) {
	struct pair p;
	struct pair_opts opts;
	struct end *c, *s;
	struct event event;
	char ifname[IF_NAMESIZE];
	int changes;
};

static void neigh(const char *verb, const char *ifname, const char *rest)
{
	char command[200];

	snprintf(command, sizeof(command),
		 "ip neigh %s %s dev %s %s 2>/dev/null", verb,
		 getenv("RPOST_TEST_ADDR"), ifname, rest);
	if (system(command))
		fprintf(stderr, "# failed: %s\n", command);
}

static void find_interface(char *ifname, struct rdma_cm_id *id)
{
	struct ibv_gid_entry table[64];
	ssize_t i, n;

	n = ibv_query_gid_table(id->verbs, table, 64, 0);
	for (i = 0; i < n; i++)
		if (!memcmp(&table[i].gid, &id->route.addr.addr.ibaddr.sgid, 16))
			if_indextoname(table[i].ndev_ifindex, ifname);
}

FIXTURE_SETUP(neighbour)
{
	pair_defaults(&self->opts);
	self->c = &self->p.client;
	self->s = &self->p.server;
	if (!getenv("RPOST_TEST_LINK"))
		SKIP(return, "RPOST_TEST_LINK is not set");
	ASSERT_EQ(0, pair_to_resolve(&self->p, &self->opts));
	if (on_iwarp(self->c->id))
		SKIP(return, "TCP looks for the neighbour itself");
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	find_interface(self->ifname, self->c->id);
	ASSERT_NE(0, self->ifname[0]);
}

FIXTURE_TEARDOWN(neighbour)
{
	if (self->ifname[0])
		neigh("del", self->ifname, "");
	pair_close(&self->p);
}

static void change(const char *ifname, int *changes)
{
	neigh("replace", ifname, ++*changes % 2 ?
	      "lladdr 02:00:00:00:00:01 nud permanent" :
	      "lladdr 02:00:00:00:00:02 nud permanent");
}

#define CHANGE() change(self->ifname, &self->changes)

#define EXPECT_UNREACHABLE(end) do { \
	ASSERT_EQ(RDMA_CM_EVENT_UNREACHABLE, \
		  next_event((end)->channel, &self->event)); \
	EXPECT_EQ((end)->id, self->event.id); \
	EXPECT_EQ(-ETIMEDOUT, self->event.status); \
} while (0)

TEST_F(neighbour, while_connecting)
{
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	CHANGE();
	EXPECT_UNREACHABLE(self->c);
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	/* The connection is established, so both sides get its end. */
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
	EXPECT_EQ(0, rdma_disconnect(self->s->id));
	EXPECT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
}

/* rdma_disconnect() flushes the receives, although there is no connection. */
TEST_F(neighbour, then_disconnect)
{
	struct ibv_wc wc;

	ASSERT_EQ(0, end_recv(self->c, CONTEXT, 0, 8));
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	CHANGE();
	EXPECT_UNREACHABLE(self->c);
	EXPECT_TRUE(no_comp(self->c->id->recv_cq));
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_COMP(self->c->id->recv_cq, &wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	EXPECT_TRUE(no_event(self->c->channel));
}

/* The program owns the queue pair and confirms the answer itself. */
TEST_F(neighbour, before_the_answer)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;

	rdma_destroy_qp(self->c->id);
	attr.send_cq = ibv_create_cq(self->c->id->verbs, 1, NULL, NULL, 0);
	ASSERT_NE(NULL, attr.send_cq);
	attr.recv_cq = attr.send_cq;
	qp = ibv_create_qp(self->c->id->pd, &attr);
	ASSERT_NE(NULL, qp);
	self->opts.connect.qp_num = qp->qp_num;
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	CHANGE();
	EXPECT_UNREACHABLE(self->c);
	ASSERT_EQ(0, rdma_accept(self->s->id, &self->opts.accept));
	ASSERT_EQ(0, expect_event(self->c->channel,
				  RDMA_CM_EVENT_CONNECT_RESPONSE, &self->event));
	EXPECT_EQ(0, rdma_establish(self->c->id));
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_ESTABLISHED,
				  &self->event));
	/* An answer can be confirmed only once. */
	EXPECT_EQ(-1, rdma_establish(self->c->id));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
	ASSERT_EQ(0, ibv_destroy_cq(attr.send_cq));
}

TEST_F(neighbour, while_connected)
{
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	CHANGE();
	EXPECT_UNREACHABLE(self->c);
	CHANGE();
	EXPECT_UNREACHABLE(self->c);
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
}

/* Changes of the entry must not fill the kernel's memory with events. */
TEST_F(neighbour, many_changes)
{
	int i, events = 0;

	if (over_incumbent())
		SKIP(return, "ucma keeps all events");
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	for (i = 0; i < 20; i++)
		CHANGE();
	while (!no_event(self->c->channel)) {
		EXPECT_UNREACHABLE(self->c);
		events++;
	}
	/* One event waits; another may come while the first is fetched. */
	EXPECT_LE(1, events);
	EXPECT_GE(2, events);
	/* The next change causes an event again. */
	CHANGE();
	EXPECT_UNREACHABLE(self->c);
}

TEST_HARNESS_MAIN
