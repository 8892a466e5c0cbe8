// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The connection manager takes a neighbour's new hardware address for
 * RDMA_CM_EVENT_UNREACHABLE (cma_netevent_callback(), since 6.0).  What it tells
 * later counts nevertheless.  With RPOST_TEST_LINK the tests change the entry of
 * the device's own address, which nothing else uses.
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
	ASSERT_EQ(0, pair_listen(&self->p, &self->opts));
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	if (self->c->id->verbs->device->transport_type == IBV_TRANSPORT_IWARP)
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
	/* It is a connection, so that its end is told. */
	EXPECT_EQ(0, rdma_disconnect(self->c->id));
	EXPECT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
	EXPECT_EQ(0, rdma_disconnect(self->s->id));
	EXPECT_EQ(0, expect_event(self->c->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->event));
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

/* Whoever can change the entry cannot fill the kernel's memory with events. */
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
	EXPECT_EQ(1, events);
	/* The next one is told again. */
	CHANGE();
	EXPECT_UNREACHABLE(self->c);
}

TEST_HARNESS_MAIN
