// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the last close of a file with all kinds of objects, queued events and
 * requests, and threads that wait.  A failure means that a peer is not told, a
 * thread sleeps on, or an object stays behind.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rpost_own.h"

FIXTURE(last) {
	long refcnt;
	struct rp_end client, server;
	uint32_t listener;
};

FIXTURE_SETUP(last)
{
	self->refcnt = rp_module_number("refcnt");
	ASSERT_EQ(0, rp_end_init(&self->client));
	ASSERT_EQ(0, rp_end_init(&self->server));
	ASSERT_EQ(0, rp_listener(&self->server, &self->listener));
	ASSERT_EQ(0, rp_join(&self->client, &self->server, self->listener, 0));
}

FIXTURE_TEARDOWN(last)
{
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
}

TEST_F(last, all_alive)
{
	struct rpost_get_event event;
	struct rpost_reg_mr mr;
	struct rp_send send;
	void *mem = rp_pages(getpagesize());
	int i;

	/* Both sides have outstanding work, which uses registered memory. */
	ASSERT_EQ(0, rp_reg_mr(self->client.fd, self->client.pd, mem, 64,
			       RPOST_ACCESS_LOCAL_WRITE, &mr));
	for (i = 0; i < RP_DEPTH; i++) {
		send = rp_send(RPOST_WR_SEND, i, mem, 64, mr.lkey);
		ASSERT_EQ(0, rp_post_send(&self->client, &send));
		ASSERT_EQ(0, rp_post_recv(&self->client, i, mem, 64, mr.lkey));
	}
	rp_end_close(&self->client);
	ASSERT_EQ(0, rp_get_event(self->server.channel, &event));
	EXPECT_EQ(RPOST_EVENT_DISCONNECTED, event.event);
	EXPECT_EQ(self->server.id, event.id);
	rp_end_close(&self->server);
}

TEST_F(last, events_and_requests_queued)
{
	struct rp_end *clients = calloc(3, sizeof(*clients));
	struct rpost_get_event event;
	int i, objects = rp_num_objects(self->server.fd);

	ASSERT_NE(NULL, clients);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, rp_end_init(&clients[i]));
		ASSERT_EQ(0, rp_client_route(&clients[i],
					     rp_port(self->server.fd,
						     self->listener)));
		ASSERT_EQ(0, rp_create_qp(&clients[i], 0));
		ASSERT_EQ(0, rp_connect(clients[i].fd, clients[i].id));
	}
	ASSERT_EQ(0, rp_disconnect(self->client.fd, self->client.id));
	ASSERT_EQ(objects + 3, rp_wait_objects(self->server.fd, objects + 3));
	ASSERT_TRUE(rp_id_reaches(self->server.fd, self->server.id,
				  RPOST_ID_DISCONNECTED));

	/* Neither events nor requests were fetched. */
	rp_end_close(&self->server);
	rp_end_close(&self->client);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, rp_get_event(clients[i].channel, &event));
		EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
		rp_end_close(&clients[i]);
	}
	free(clients);
}

/* Channels may stay open after the file; GET_EVENT then fails. */
TEST_F(last, channels_stay)
{
	struct pollfd pfd = { .fd = self->server.channel, .events = POLLIN };
	struct rpost_get_event event = { .size = sizeof(event) };
	int comp = rp_comp_channel(self->server.fd);

	ASSERT_LE(0, comp);
	rp_unmap_cq(&self->server.cq);
	close(self->server.fd);
	EXPECT_EQ(-ENODEV, rp_ioctl(self->server.channel, RPOST_IOC_GET_EVENT,
				    &event));
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_NE(0, pfd.revents & POLLHUP);
	ASSERT_LT(self->refcnt, rp_module_number("refcnt"));
	close(self->server.channel);
	close(comp);
	EXPECT_EQ(0, rp_expect(self->client.channel, self->client.id,
			       RPOST_EVENT_DISCONNECTED));
	rp_end_close(&self->client);
}

struct waiter {
	pthread_t thread;
	pid_t tid;
	int channel;
	int ret;
};

static void *wait_event(void *arg)
{
	struct rpost_get_event event = { .size = sizeof(event) };
	struct waiter *w = arg;

	rp_put_tid(&w->tid);
	w->ret = rp_ioctl(w->channel, RPOST_IOC_GET_EVENT, &event);
	return NULL;
}

TEST_F(last, close_wakes_fetchers)
{
	struct waiter w[2] = {
		{ .channel = self->server.channel, .ret = 1 },
		{ .channel = self->server.channel, .ret = 1 },
	};
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, wait_event,
					    &w[i]));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(rp_wait_asleep(&w[i].tid));
		EXPECT_EQ(1, w[i].ret);
	}
	rp_unmap_cq(&self->server.cq);
	close(self->server.fd);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(-ENODEV, w[i].ret);
	}
	close(self->server.channel);
	rp_end_close(&self->client);
}

/* The module cannot be unloaded while anything of it is in use. */
TEST_F(last, module_is_in_use)
{
	int comp = rp_comp_channel(self->client.fd);

	if (geteuid())
		SKIP(goto out, "needs root");
#define STAYS() do {							\
	ASSERT_LT(self->refcnt, rp_module_number("refcnt"));		\
	EXPECT_EQ(-EAGAIN, rp_unload_module());				\
} while (0)
	STAYS();
	rp_end_close(&self->server);
	close(self->client.fd);
	/* Only the ring's mapping is left. */
	close(self->client.channel);
	close(comp);
	STAYS();
	rp_unmap_cq(&self->client.cq);
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
	/* Only a channel is left. */
	ASSERT_EQ(0, rp_end_init(&self->client));
	comp = rp_comp_channel(self->client.fd);
	rp_end_close(&self->client);
	STAYS();
	close(comp);
	return;
out:
	close(comp);
	rp_end_close(&self->server);
	rp_end_close(&self->client);
}

TEST_HARNESS_MAIN
