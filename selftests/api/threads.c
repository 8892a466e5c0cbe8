// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests many threads at once: on one queue pair and its completion queues, on
 * one event channel, and on one protection domain.  A failure means that a lock
 * is missing in the library or the module.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "kselftest_harness.h"
#include "verbs_test.h"

#define POSTERS	2
#define POLLERS	2
#define POSTS	50	/* of each thread */
#define ROUNDS	6

struct traffic {
	struct pair p;
	atomic_int posted, polled, failed, wrong;
	atomic_int seen[POSTERS * POSTS];
};

FIXTURE(threads) {
	struct traffic *t;
};

FIXTURE_SETUP(threads)
{
	struct pair_opts opts;

	pair_defaults(&opts);
	self->t = calloc(1, sizeof(*self->t));
	ASSERT_NE(NULL, self->t);
	ASSERT_EQ(0, pair_open(&self->t->p, &opts));
}

FIXTURE_TEARDOWN(threads)
{
	pair_close(&self->t->p);
	free(self->t);
}

struct poster {
	struct traffic *t;
	int first;
	pthread_t thread;
};

/* Post, and wait until the post has completed, so that the queue has room. */
static void *post_all(void *arg)
{
	struct poster *poster = arg;
	struct traffic *t = poster->t;
	struct end *c = &t->p.client, *s = &t->p.server;
	uint64_t end = now_ms() + DEADLINE_MS;
	int i;

	for (i = poster->first; i < poster->first + POSTS; i++) {
		if (rdma_post_write(c->id, (void *)(uintptr_t)i, c->buf, 64,
				    c->mr, IBV_SEND_SIGNALED, addr64(s->buf),
				    s->mr->rkey))
			t->failed++;
		else
			t->posted++;
		while (!t->seen[i] && now_ms() < end)
			sched_yield();
	}
	return NULL;
}

static void *poll_some(void *arg)
{
	struct traffic *t = arg;
	uint64_t end = now_ms() + DEADLINE_MS;
	struct ibv_wc wc[4];
	int i, n;

	while (t->polled < POSTERS * POSTS && now_ms() < end) {
		n = ibv_poll_cq(t->p.client.id->send_cq, 4, wc);
		for (i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS ||
			    wc[i].wr_id >= POSTERS * POSTS ||
			    t->seen[wc[i].wr_id]++)
				t->wrong++;
			t->polled++;
		}
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* Each post completes once, in one of the polling threads. */
TEST_F(threads, post_and_poll)
{
	struct poster posters[POSTERS];
	pthread_t pollers[POLLERS];
	int i;

	for (i = 0; i < POLLERS; i++)
		ASSERT_EQ(0, pthread_create(&pollers[i], NULL, poll_some,
					    self->t));
	for (i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster) {
			.t = self->t, .first = i * POSTS,
		};
		ASSERT_EQ(0, pthread_create(&posters[i].thread, NULL, post_all,
					    &posters[i]));
	}
	for (i = 0; i < POSTERS; i++)
		ASSERT_EQ(0, pthread_join(posters[i].thread, NULL));
	for (i = 0; i < POLLERS; i++)
		ASSERT_EQ(0, pthread_join(pollers[i], NULL));
	EXPECT_EQ(0, atomic_load(&self->t->failed));
	EXPECT_EQ(0, atomic_load(&self->t->wrong));
	EXPECT_EQ(POSTERS * POSTS, atomic_load(&self->t->posted));
	EXPECT_EQ(POSTERS * POSTS, atomic_load(&self->t->polled));
}

struct ids {
	struct rdma_event_channel *channel;
	struct sockaddr_storage addr;
	atomic_int answered, other, failed, asked;
};

/* Create, resolve and destroy ids, whether or not their events were fetched. */
static void *ids_come_and_go(void *arg)
{
	struct ids *ids = arg;
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (rdma_create_id(ids->channel, &id, ids, RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, NULL, (struct sockaddr *)&ids->addr,
				      10000)) {
			ids->failed++;
			return NULL;
		}
		ids->asked++;
		if (i % 2)
			sched_yield();
		if (rdma_destroy_id(id))
			ids->failed++;
	}
	return NULL;
}

static void *get_events(void *arg)
{
	struct ids *ids = arg;
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(ids->channel, &event)) {
		/* With so many requests at a time, the kernel fails some. */
		if ((event->event == RDMA_CM_EVENT_ADDR_RESOLVED ||
		     event->event == RDMA_CM_EVENT_ADDR_ERROR) &&
		    event->id->context == ids)
			ids->answered++;
		else
			ids->other++;
		if (rdma_ack_cm_event(event))
			ids->failed++;
	}
	return NULL;
}

/* Some threads create and destroy ids while others fetch their events. */
TEST_F(threads, ids_of_one_channel)
{
	struct ids ids = { .channel = rdma_create_event_channel() };
	pthread_t makers[3], getters[2];
	int i;

	ASSERT_NE(NULL, ids.channel);
	ASSERT_TRUE(test_addr(AF_INET, &ids.addr));
	set_port(&ids.addr, htobe16(7471));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&getters[i], NULL, get_events, &ids));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&makers[i], NULL, ids_come_and_go,
					    &ids));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_join(makers[i], NULL));
	/* The threads sleep in a call that is a cancellation point. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_cancel(getters[i]));
		ASSERT_EQ(0, pthread_join(getters[i], NULL));
	}
	EXPECT_EQ(0, atomic_load(&ids.failed));
	EXPECT_EQ(0, atomic_load(&ids.other));
	EXPECT_EQ(3 * ROUNDS, atomic_load(&ids.asked));
	EXPECT_GE(3 * ROUNDS, atomic_load(&ids.answered));
	rdma_destroy_event_channel(ids.channel);
}

struct connector {
	pthread_t thread;
	int made;
};

static void *connect_and_part(void *arg)
{
	struct connector *c = arg;
	struct pair p;
	int i;

	for (i = 0; i < ROUNDS / 2; i++) {
		if (!pair_open(&p, NULL) && !rdma_disconnect(p.client.id) &&
		    !expect_event(p.server.channel, RDMA_CM_EVENT_DISCONNECTED,
				  &p.server.event))
			c->made++;
		pair_close(&p);
	}
	return NULL;
}

TEST(connections)
{
	struct connector connectors[4];
	int i;

	for (i = 0; i < 4; i++) {
		connectors[i] = (struct connector) {};
		ASSERT_EQ(0, pthread_create(&connectors[i].thread, NULL,
					    connect_and_part, &connectors[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(connectors[i].thread, NULL));
		EXPECT_EQ(ROUNDS / 2, connectors[i].made);
	}
}

struct maker {
	struct device *dev;
	pthread_t thread;
	int made;
};

static void *make_sides(void *arg)
{
	struct maker *m = arg;
	struct side side;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		memset(&side, 0, sizeof(side));
		if (!side_open(m->dev, &side, i % 2 ? IBV_QPT_RC : IBV_QPT_UD,
			       NULL, NULL))
			m->made++;
		side_close(&side);
	}
	return NULL;
}

/* The threads create queue pairs, completion queues and regions. */
TEST_F(threads, objects_of_one_domain)
{
	struct device dev;
	struct maker makers[4];
	int i;

	ASSERT_EQ(0, device_open(&dev));
	for (i = 0; i < 4; i++) {
		makers[i] = (struct maker) { .dev = &dev };
		ASSERT_EQ(0, pthread_create(&makers[i].thread, NULL, make_sides,
					    &makers[i]));
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(makers[i].thread, NULL));
		EXPECT_EQ(ROUNDS, makers[i].made);
	}
	device_close(&dev);
}

TEST_HARNESS_MAIN
