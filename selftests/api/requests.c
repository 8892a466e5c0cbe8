// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests connection requests.  Until a request is accepted its id must get no
 * events, since the program has not set the id's context yet; and two threads
 * that fetch from one channel must lose no event of a request's id.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdma_test.h"

FIXTURE(requests) {
	PAIR_MEMBERS;
};

FIXTURE_SETUP(requests)
{
	PAIR_SETUP(pair_listen);
	self->p.listen->context = self;
}

FIXTURE_TEARDOWN(requests)
{
	pair_close(&self->p);
}

static int ask(struct pair *p, struct pair_opts *opts)
{
	return pair_resolve(p, opts) || pair_client_qp(p, opts) ||
	       rdma_connect(p->client.id, &opts->connect) ? -1 : 0;
}

static void leave(struct end *end)
{
	end_close(end);
	rdma_destroy_event_channel(end->channel);
	end->channel = NULL;
}

/*
 * The client is destroyed, so it rejects its own request.  The next client's
 * request comes after that.
 */
TEST_F(requests, given_up)
{
	struct ibv_qp_init_attr qp;
	struct rdma_cm_id *given_up;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, ask(&self->p, &self->opts));
		ASSERT_EQ(0, expect_event(self->s->channel,
					  RDMA_CM_EVENT_CONNECT_REQUEST,
					  &self->event));
		given_up = self->event.id;
		EXPECT_EQ(self, given_up->context);
		leave(self->c);

		ASSERT_EQ(0, ask(&self->p, &self->opts));
		ASSERT_EQ(0, expect_event(self->s->channel,
					  RDMA_CM_EVENT_CONNECT_REQUEST,
					  &self->event));
		EXPECT_TRUE(no_event(self->s->channel));
		/*
		 * Its queue pair cannot be created, and it cannot be accepted.
		 */
		qp = self->opts.server_qp;
		EXPECT_EQ(-1, rdma_create_qp(given_up, NULL, &qp));
		EXPECT_EQ(-1, rdma_accept(given_up, &self->opts.accept));
		EXPECT_TRUE(no_event(self->s->channel));
		EXPECT_EQ(0, rdma_destroy_id(given_up));

		self->s->id = self->event.id;
		ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
		ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
		leave(self->c);
		EXPECT_EQ(0, expect_event(self->s->channel,
					  RDMA_CM_EVENT_DISCONNECTED,
					  &self->event));
		end_close(self->s);
	}
}

/* A request that was given up is still fetched, but no event follows it. */
TEST_F(requests, given_up_before_it_was_fetched)
{
	ASSERT_EQ(0, ask(&self->p, &self->opts));
	ASSERT_TRUE(readable(self->s->channel->fd, DEADLINE_MS));
	leave(self->c);
	ASSERT_EQ(0, expect_event(self->s->channel,
				  RDMA_CM_EVENT_CONNECT_REQUEST, &self->event));
	self->s->id = self->event.id;
	EXPECT_TRUE(no_event(self->s->channel));
}

TEST_F(requests, rejected)
{
	ASSERT_EQ(0, ask(&self->p, &self->opts));
	ASSERT_EQ(0, expect_event(self->s->channel,
				  RDMA_CM_EVENT_CONNECT_REQUEST, &self->event));
	self->s->id = self->event.id;
	ASSERT_EQ(0, rdma_reject(self->s->id, NULL, 0));
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED,
		  next_event(self->c->channel, &self->event));
	leave(self->c);
	EXPECT_TRUE(no_event(self->s->channel));
}

#define CLIENTS	12

struct fetchers {
	struct rdma_event_channel *channel;
	struct rdma_conn_param accept;
	struct ibv_qp_init_attr qp;
	atomic_int requests, established, disconnected, others;
};

static void serve(struct fetchers *f, struct rdma_cm_event *event)
{
	struct ibv_qp_init_attr qp = f->qp;
	struct rdma_cm_id *id = event->id;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		id->context = &f->requests;
		if (rdma_create_qp(id, NULL, &qp) ||
		    rdma_accept(id, &f->accept))
			f->others++;
		f->requests++;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (id->context != &f->requests)
			f->others++;
		f->established++;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		f->disconnected++;
		break;
	default:
		f->others++;
		break;
	}
}

/*
 * Fetch until all clients have disconnected.  The other thread sleeps then and
 * is cancelled.
 */
static void *fetch(void *arg)
{
	struct fetchers *f = arg;
	struct rdma_cm_event *event;

	while (f->disconnected < CLIENTS) {
		if (rdma_get_cm_event(f->channel, &event))
			return arg;
		serve(f, event);
		if (rdma_ack_cm_event(event))
			return arg;
	}
	return NULL;
}

TEST_F(requests, two_fetchers)
{
	struct fetchers f = {
		.channel = self->s->channel,
		.accept = self->opts.accept,
		.qp = self->opts.server_qp,
	};
	uint64_t end = now_ms() + 2 * DEADLINE_MS;
	pthread_t threads[2];
	void *ret;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, fetch, &f));
	for (i = 0; i < CLIENTS; i++) {
		ASSERT_EQ(0, ask(&self->p, &self->opts));
		ASSERT_EQ(0, expect_event(self->c->channel,
					  RDMA_CM_EVENT_ESTABLISHED,
					  &self->event));
		leave(self->c);
	}
	/* A thread may still be busy with an earlier event. */
	while ((f.disconnected < CLIENTS || f.established < CLIENTS) &&
	       now_ms() < end)
		usleep(1000);
	for (i = 0; i < 2; i++) {
		pthread_cancel(threads[i]);
		ASSERT_EQ(0, pthread_join(threads[i], &ret));
		EXPECT_TRUE(ret == NULL || ret == PTHREAD_CANCELED);
	}
	EXPECT_EQ(CLIENTS, atomic_load(&f.requests));
	EXPECT_EQ(CLIENTS, atomic_load(&f.established));
	EXPECT_EQ(CLIENTS, atomic_load(&f.disconnected));
	EXPECT_EQ(0, atomic_load(&f.others));
	/* The ids of the requests end with the process. */
	self->p.listen = NULL;
	self->s->channel = NULL;
}

TEST_HARNESS_MAIN
