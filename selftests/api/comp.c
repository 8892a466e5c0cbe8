// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completions: polling, sleeping, completion channels, shared queues, threads.
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <pthread.h>

#include "rdma_test.h"

#define CONTEXT ((void *)0x1234ul)

FIXTURE(comp) {
	struct pair p;
	struct end *c, *s;
	struct rdma_cm_id *id, *peer;
	struct ibv_wc wc;
};

FIXTURE_SETUP(comp)
{
	ASSERT_EQ(0, pair_open(&self->p, NULL));
	self->c = &self->p.client;
	self->s = &self->p.server;
	self->id = self->c->id;
	self->peer = self->s->id;
}

FIXTURE_TEARDOWN(comp)
{
	pair_close(&self->p);
}

static int post_write(struct pair *p, uintptr_t context, int flags)
{
	return rdma_post_write(p->client.id, (void *)context, p->client.buf, 64,
			       p->client.mr, flags, addr64(p->server.buf),
			       p->server.mr->rkey);
}

static int post_send(struct pair *p, int flags)
{
	return rdma_post_send(p->client.id, NULL, p->client.buf, 64,
			      p->client.mr, flags);
}

static int post_recv(struct pair *p, uintptr_t context)
{
	return rdma_post_recv(p->server.id, (void *)context, p->server.buf, 64,
			      p->server.mr);
}

static int set_nonblock(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

TEST_F(comp, get_send_comp)
{
	uintptr_t i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, post_write(&self->p, i, IBV_SEND_SIGNALED));
		memset(&self->wc, POISON, sizeof(self->wc));
		ASSERT_EQ(1, rdma_get_send_comp(self->id, &self->wc));
		EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
		EXPECT_EQ(i, self->wc.wr_id);
	}
}

TEST_F(comp, get_recv_comp)
{
	uintptr_t i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, post_recv(&self->p, i));
		ASSERT_EQ(0, post_send(&self->p, 0));
		memset(&self->wc, POISON, sizeof(self->wc));
		ASSERT_EQ(1, rdma_get_recv_comp(self->peer, &self->wc));
		EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
		EXPECT_EQ(i, self->wc.wr_id);
		EXPECT_EQ(64, self->wc.byte_len);
	}
}

static void *send_later(void *arg)
{
	usleep(50000);
	return (void *)(intptr_t)post_send(arg, 0);
}

/* It really sleeps: the message comes when it has been waiting for long. */
TEST_F(comp, get_recv_comp_wakes_up)
{
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, post_recv(&self->p, 7));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_later, &self->p));
	ASSERT_EQ(1, rdma_get_recv_comp(self->peer, &self->wc));
	EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(7, self->wc.wr_id);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
}

static void *disconnect_later(void *arg)
{
	struct pair *p = arg;

	usleep(50000);
	return (void *)(intptr_t)rdma_disconnect(p->client.id);
}

/* A receiver asleep is told when the connection ends. */
TEST_F(comp, disconnect_wakes_up_the_receiver)
{
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, post_recv(&self->p, 7));
	ASSERT_EQ(0, pthread_create(&thread, NULL, disconnect_later, &self->p));
	/* The peer's queue pair follows when the peer says so. */
	ASSERT_EQ(0, expect_event(self->s->channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	ASSERT_EQ(0, rdma_disconnect(self->peer));
	ASSERT_EQ(1, rdma_get_recv_comp(self->peer, &self->wc));
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, self->wc.status);
	EXPECT_EQ(7, self->wc.wr_id);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
}

TEST_F(comp, poll_of_an_empty_queue)
{
	struct ibv_wc wc[4];

	EXPECT_EQ(0, ibv_poll_cq(self->id->send_cq, 4, wc));
	EXPECT_EQ(0, ibv_poll_cq(self->peer->recv_cq, 1, wc));
}

/* Ten writes, and a read whose data are there when all the writes are done. */
static int ten_writes(struct pair *p)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	struct end *c = &p->client, *s = &p->server;
	uintptr_t i;

	for (i = 0; i < 10; i++)
		if (post_write(p, i, IBV_SEND_SIGNALED))
			return -1;
	fill(s->buf + 100, 64, 3);
	c->buf[163] = ~s->buf[163];
	if (rdma_post_read(c->id, NULL, c->buf + 100, 64, c->mr, 0,
			   addr64(s->buf + 100), s->mr->rkey))
		return -1;
	while (*(volatile uint8_t *)&c->buf[163] != s->buf[163]) {
		if (now_ms() >= end)
			return -1;
		usleep(1000);
	}
	return 0;
}

/* How soon after that their completions can be polled nobody says. */
TEST_F(comp, poll_in_batches)
{
	struct ibv_wc wc[16];
	int n, ms, left;
	uintptr_t i;

	for (ms = 1;; ms *= 10) {
		ASSERT_EQ(0, ten_writes(&self->p));
		usleep(ms * 1000);
		memset(wc, POISON, sizeof(wc));
		n = ibv_poll_cq(self->id->send_cq, 4, wc);
		if (n == 4 || ms == 1000)
			break;
		for (left = 10 - n; left; left--)
			ASSERT_COMP_OK(self->id->send_cq, &self->wc,
				       IBV_WC_RDMA_WRITE, 10 - left);
	}
	ASSERT_EQ(4, n);
	ASSERT_EQ(1, ibv_poll_cq(self->id->send_cq, 1, wc + 4));
	ASSERT_EQ(5, ibv_poll_cq(self->id->send_cq, 10, wc + 5));
	ASSERT_EQ(0, ibv_poll_cq(self->id->send_cq, 6, wc + 10));
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(i, wc[i].wr_id);
		EXPECT_EQ(IBV_WC_SUCCESS, wc[i].status);
	}
	/* What it does not return it does not touch. */
	EXPECT_TRUE(all_bytes(wc + 10, 6 * sizeof(*wc), POISON));
}

TEST_F(comp, poll_fd_and_get_event)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
	ASSERT_EQ(0, post_write(&self->p, 1, IBV_SEND_SIGNALED));
	ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	EXPECT_EQ(self->id->send_cq, cq);
	EXPECT_EQ(self->id, context);
	ibv_ack_cq_events(cq, 1);
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 1ul);
}

TEST_F(comp, no_event_unless_asked)
{
	ASSERT_EQ(0, post_write(&self->p, 1, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, 1ul);
	EXPECT_FALSE(readable(self->id->send_cq_channel->fd, QUIET_MS));
}

TEST_F(comp, one_event_for_each_time_asked)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	struct ibv_cq *cq;
	void *context;
	uintptr_t i;

	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_write(&self->p, i, IBV_SEND_SIGNALED));
	for (i = 0; i < 3; i++)
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
	ASSERT_EQ(0, post_write(&self->p, 9, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 2);
}

/*
 * As in the example of ibv_get_cq_event(3): a completion that the program has found
 * is no reason for another event.  One now and then cannot be helped.
 */
TEST_F(comp, events_for_nothing)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	const int rounds = 1000;
	int done = 0, nothing = 0, n;
	struct ibv_cq *cq;
	void *context;

	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
	ASSERT_EQ(0, post_write(&self->p, 0, IBV_SEND_SIGNALED));
	while (done < rounds) {
		ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
		n = ibv_poll_cq(cq, 1, &self->wc);
		ASSERT_LE(0, n);
		if (!n) {
			nothing++;
			continue;
		}
		ASSERT_EQ(IBV_WC_SUCCESS, self->wc.status);
		done++;
		ASSERT_EQ(0, post_write(&self->p, 0, IBV_SEND_SIGNALED));
	}
	EXPECT_GE(rounds / 10, nothing);
	TH_LOG("%d of %d events", nothing, rounds + nothing);
}

/* Asking again before the event comes makes no second one. */
TEST_F(comp, asked_twice)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	struct ibv_cq *cq = self->id->send_cq;
	void *context;
	uintptr_t i;

	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, post_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	}
	ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
}

/*
 * The loop of ibv_get_cq_event(3): ask, then look, then sleep.  Nothing is lost
 * however completions and requests for events fall together.
 */
TEST_F(comp, ask_look_sleep)
{
	unsigned int posted = 0, done = 0, events = 0;
	struct ibv_cq *cq;
	void *context;
	int n;

	while (done < 300) {
		while (posted < 300 && posted - done < 1 + done % 7)
			ASSERT_EQ(0, post_write(&self->p, posted++, IBV_SEND_SIGNALED));
		ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
		while ((n = ibv_poll_cq(self->id->send_cq, 1, &self->wc)) == 1)
			ASSERT_EQ(done++, self->wc.wr_id);
		ASSERT_EQ(0, n);
		if (posted == done)
			continue;
		ASSERT_TRUE(readable(self->id->send_cq_channel->fd, DEADLINE_MS))
			TH_LOG("asleep with %u of %u done", done, posted);
		ASSERT_EQ(0, ibv_get_cq_event(self->id->send_cq_channel, &cq,
					      &context));
		events++;
		while ((n = ibv_poll_cq(self->id->send_cq, 1, &self->wc)) == 1)
			ASSERT_EQ(done++, self->wc.wr_id);
	}
	ibv_ack_cq_events(self->id->send_cq, events);
}

TEST_F(comp, solicited_only)
{
	struct ibv_comp_channel *channel = self->peer->recv_cq_channel;
	struct ibv_cq *cq = NULL;
	void *context;
	uintptr_t i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post_recv(&self->p, i));
	ASSERT_EQ(0, ibv_req_notify_cq(self->peer->recv_cq, 1));
	ASSERT_EQ(0, post_send(&self->p, 0));
	ASSERT_EQ(0, post_send(&self->p, 0));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, 0ul);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, 1ul);
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
	ASSERT_EQ(0, post_send(&self->p, IBV_SEND_SOLICITED));
	ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	EXPECT_EQ(self->peer->recv_cq, cq);
	ibv_ack_cq_events(cq, 1);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, 2ul);
}

/* ibv_req_notify_cq(3): a work completion in error counts as solicited. */
TEST_F(comp, solicited_only_and_an_error)
{
	if (on_rxe(self->id))
		SKIP(return, "rdma_rxe gives no solicited event for a send in error");
	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 1));
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf, 64,
				     self->c->mr, 0, 0, self->s->mr->rkey));
	EXPECT_TRUE(readable(self->id->send_cq_channel->fd, DEADLINE_MS));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
}

/* A request for all completions covers the one for solicited ones. */
TEST_F(comp, solicited_then_all)
{
	ASSERT_EQ(0, post_recv(&self->p, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(self->peer->recv_cq, 1));
	ASSERT_EQ(0, ibv_req_notify_cq(self->peer->recv_cq, 0));
	ASSERT_EQ(0, post_send(&self->p, 0));
	EXPECT_TRUE(readable(self->peer->recv_cq_channel->fd, DEADLINE_MS));
}

TEST_F(comp, nonblocking_channel)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	struct ibv_cq *cq;
	void *context;

	ASSERT_EQ(0, set_nonblock(channel->fd));
	errno = 0;
	EXPECT_EQ(-1, ibv_get_cq_event(channel, &cq, &context));
	EXPECT_EQ(EAGAIN, errno);
	errno = 0;
	EXPECT_EQ(-1, rdma_get_send_comp(self->id, &self->wc));
	EXPECT_EQ(EAGAIN, errno);
	ASSERT_EQ(0, post_write(&self->p, 1, IBV_SEND_SIGNALED));
	ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
	EXPECT_EQ(1, rdma_get_send_comp(self->id, &self->wc));
	EXPECT_EQ(1, self->wc.wr_id);
}

struct waiter {
	struct rdma_cm_id *id;
	bool send;
	unsigned int count, done;
	pthread_t thread;
};

static void *wait_in_thread(void *arg)
{
	struct waiter *w = arg;
	struct ibv_wc wc;

	while (w->done < w->count) {
		if ((w->send ? rdma_get_send_comp(w->id, &wc) :
			       rdma_get_recv_comp(w->id, &wc)) != 1)
			break;
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id != w->done)
			break;
		w->done++;
	}
	return NULL;
}

/* A thread asleep for each queue of both ends, while messages go both ways. */
TEST_F(comp, four_threads)
{
	struct waiter w[] = {
		{ .id = self->id, .send = true, .count = 16 },
		{ .id = self->id, .send = false, .count = 16 },
		{ .id = self->peer, .send = true, .count = 16 },
		{ .id = self->peer, .send = false, .count = 16 },
	};
	uintptr_t i;

	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, post_recv(&self->p, i));
		ASSERT_EQ(0, rdma_post_recv(self->id, (void *)i, self->c->buf,
					    64, self->c->mr));
	}
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, wait_in_thread, w + i));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, rdma_post_send(self->id, (void *)i, self->c->buf,
					    64, self->c->mr, IBV_SEND_SIGNALED));
		ASSERT_EQ(0, rdma_post_send(self->peer, (void *)i, self->s->buf,
					    64, self->s->mr, IBV_SEND_SIGNALED));
		if (i % 4 == 3)
			usleep(1000);
	}
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(16, w[i].done);
	}
}

struct poster {
	struct pair *p;
	int first, failed;
	pthread_t thread;
};

static void *post_in_thread(void *arg)
{
	struct poster *poster = arg;
	int i;

	for (i = poster->first; i < poster->first + 8; i++)
		if (post_write(poster->p, i, IBV_SEND_SIGNALED))
			poster->failed++;
	return NULL;
}

/* Two threads post to one queue pair: each post completes once, in order. */
TEST_F(comp, two_threads_post)
{
	struct poster t[2] = {
		{ .p = &self->p, .first = 0 }, { .p = &self->p, .first = 8 },
	};
	uint64_t next[2] = { 0, 8 };
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&t[i].thread, NULL, post_in_thread, t + i));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(1, wait_comp(self->id->send_cq, &self->wc));
		ASSERT_EQ(IBV_WC_SUCCESS, self->wc.status);
		ASSERT_GT(16, self->wc.wr_id);
		EXPECT_EQ(next[self->wc.wr_id / 8], self->wc.wr_id);
		next[self->wc.wr_id / 8]++;
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(t[i].thread, NULL));
		EXPECT_EQ(0, t[i].failed);
	}
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

/*
 * Completion queues and channels that the program makes itself, on the context
 * of an id that has found its device.
 */
FIXTURE(own) {
	struct pair p;
	struct pair_opts opts;
	struct ibv_context *verbs;
	struct ibv_comp_channel *channel;
	struct ibv_wc wc;
};

FIXTURE_SETUP(own)
{
	pair_defaults(&self->opts);
	ASSERT_EQ(0, pair_listen(&self->p, &self->opts));
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	self->verbs = self->p.client.id->verbs;
	ASSERT_NE(NULL, self->verbs);
	self->channel = ibv_create_comp_channel(self->verbs);
	ASSERT_NE(NULL, self->channel);
}

FIXTURE_TEARDOWN(own)
{
	EXPECT_EQ(0, ibv_destroy_comp_channel(self->channel));
	pair_close(&self->p);
}

static int connect_rest(struct pair *p, struct pair_opts *opts)
{
	return pair_client_qp(p, opts) || pair_connect(p, opts) ||
	       pair_server_qp(p, opts) || pair_accept(p, opts) ? -1 : 0;
}

TEST_F(own, queues_on_one_channel)
{
	struct ibv_cq *send, *recv, *idle, *cq = NULL;
	int tag[3];
	void *context;

	send = ibv_create_cq(self->verbs, 16, tag, self->channel, 0);
	recv = ibv_create_cq(self->verbs, 16, tag + 1, self->channel, 0);
	idle = ibv_create_cq(self->verbs, 16, tag + 2, self->channel, 0);
	ASSERT_TRUE(send && recv && idle);
	EXPECT_LE(16, send->cqe);
	EXPECT_EQ(&tag[0], send->cq_context);
	EXPECT_EQ(self->channel, send->channel);
	EXPECT_EQ(self->verbs, self->channel->context);
	EXPECT_EQ(3, self->channel->refcnt);
	self->opts.client_qp.send_cq = send;
	self->opts.client_qp.recv_cq = recv;
	ASSERT_EQ(0, connect_rest(&self->p, &self->opts));
	EXPECT_EQ(send, self->p.client.id->qp->send_cq);
	EXPECT_EQ(recv, self->p.client.id->qp->recv_cq);
	/* The id has those that it made, and these are not. */
	EXPECT_EQ(NULL, self->p.client.id->send_cq);
	EXPECT_EQ(NULL, self->p.client.id->recv_cq);
	ASSERT_EQ(0, ibv_req_notify_cq(send, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(recv, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(idle, 0));

	ASSERT_EQ(0, rdma_post_recv(self->p.client.id, NULL, self->p.client.buf,
				    64, self->p.client.mr));
	ASSERT_EQ(0, rdma_post_send(self->p.server.id, NULL, self->p.server.buf,
				    64, self->p.server.mr, 0));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
	EXPECT_EQ(recv, cq);
	EXPECT_EQ(&tag[1], context);
	ibv_ack_cq_events(cq, 1);
	ASSERT_EQ(0, post_write(&self->p, 5, IBV_SEND_SIGNALED));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
	EXPECT_EQ(send, cq);
	EXPECT_EQ(&tag[0], context);
	ibv_ack_cq_events(cq, 1);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));

	EXPECT_EQ(EBUSY, ibv_destroy_cq(send));
	EXPECT_EQ(EBUSY, ibv_destroy_comp_channel(self->channel));
	end_close(&self->p.client);
	EXPECT_EQ(0, ibv_destroy_cq(send));
	EXPECT_EQ(0, ibv_destroy_cq(recv));
	EXPECT_EQ(0, ibv_destroy_cq(idle));
	EXPECT_EQ(0, self->channel->refcnt);
}

/* Connects with @cq for all that the client completes. */
static int connect_with(FIXTURE_DATA(own) *self, struct ibv_cq *cq)
{
	self->opts.client_qp.send_cq = cq;
	self->opts.client_qp.recv_cq = cq;
	return connect_rest(&self->p, &self->opts);
}

/* One queue for sends and receives of an end, polled without a channel. */
TEST_F(own, send_and_recv_share_a_queue)
{
	struct ibv_cq *cq = ibv_create_cq(self->verbs, 32, NULL, NULL, 0);

	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	ASSERT_EQ(0, rdma_post_recv(self->p.client.id, CONTEXT,
				    self->p.client.buf, 64, self->p.client.mr));
	ASSERT_EQ(0, post_write(&self->p, 5, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, 5ul);
	ASSERT_EQ(0, rdma_post_send(self->p.server.id, NULL, self->p.server.buf,
				    64, self->p.server.mr, 0));
	ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RECV, CONTEXT);
	end_close(&self->p.client);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* The queue of two connections: qp_num tells whose a completion is. */
TEST_F(own, two_queue_pairs_share_a_queue)
{
	struct ibv_cq *cq = ibv_create_cq(self->verbs, 32, NULL, NULL, 0);
	unsigned int i, count[2] = { 0, 0 };
	struct pair *p[2], other;
	struct ibv_wc wc;

	ASSERT_NE(NULL, cq);
	p[0] = &self->p;
	p[1] = &other;
	self->opts.client_qp.send_cq = cq;
	self->opts.client_qp.recv_cq = cq;
	ASSERT_EQ(0, connect_rest(p[0], &self->opts));
	ASSERT_EQ(0, pair_open(p[1], &self->opts));
	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, post_write(p[i % 2], 100 * (i % 2) + i / 2,
					IBV_SEND_SIGNALED));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(1, wait_comp(cq, &wc));
		ASSERT_EQ(IBV_WC_SUCCESS, wc.status);
		ASSERT_GT(2, wc.wr_id / 100);
		EXPECT_EQ(p[wc.wr_id / 100]->client.id->qp->qp_num, wc.qp_num);
		EXPECT_EQ(count[wc.wr_id / 100]++, wc.wr_id % 100);
	}
	end_close(&p[0]->client);
	EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
	/* What is left of a queue pair that has gone does not disturb the other. */
	ASSERT_EQ(0, post_write(p[1], 1, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(cq, &wc, IBV_WC_RDMA_WRITE, 1ul);
	pair_close(p[1]);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

static void *destroy_in_thread(void *arg)
{
	return (void *)(intptr_t)ibv_destroy_cq(*(struct ibv_cq **)arg);
}

/* ibv_destroy_cq(3) waits until every event that was fetched is acknowledged. */
TEST_F(own, destroy_waits_for_acks)
{
	struct ibv_cq *cq, *got;
	struct timespec ts;
	pthread_t thread;
	void *context, *ret = NULL;
	int i;

	cq = ibv_create_cq(self->verbs, 32, NULL, self->channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
		ASSERT_EQ(0, post_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &got, &context));
		ASSERT_EQ(cq, got);
	}
	end_close(&self->p.client);
	ibv_ack_cq_events(cq, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_in_thread, &cq));
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += 50000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &ret, &ts));
	ibv_ack_cq_events(cq, 1);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
}

/*
 * A queue in use is busy at once, acknowledged or not: who gets EBUSY may be the
 * one who has yet to acknowledge, as in fio.  If it waits, the harness ends it.
 */
TEST_F(own, destroy_in_use_does_not_wait)
{
	struct ibv_cq *cq, *got;
	void *context;
	uintptr_t i;

	cq = ibv_create_cq(self->verbs, 32, NULL, self->channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	/* Twice: what is refused has changed nothing. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
		ASSERT_EQ(0, post_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &got, &context));
		ASSERT_EQ(cq, got);
		EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	}
	ibv_ack_cq_events(cq, 2);
	EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
	end_close(&self->p.client);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* An event that nobody fetched goes with its queue. */
TEST_F(own, destroy_with_an_event_waiting)
{
	struct ibv_cq *cq;

	cq = ibv_create_cq(self->verbs, 32, NULL, self->channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, connect_with(self, cq));
	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	ASSERT_EQ(0, post_write(&self->p, 1, IBV_SEND_SIGNALED));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	end_close(&self->p.client);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

TEST_F(own, size_of_a_queue)
{
	struct ibv_device_attr attr;
	struct ibv_cq *cq;

	ASSERT_EQ(0, ibv_query_device(self->verbs, &attr));
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq(self->verbs, 0, NULL, NULL, 0));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq(self->verbs, attr.max_cqe + 1, NULL, NULL, 0));
	EXPECT_EQ(EINVAL, errno);
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_cq(self->verbs, 1, NULL, NULL,
				      self->verbs->num_comp_vectors));
	EXPECT_EQ(EINVAL, errno);
	cq = ibv_create_cq(self->verbs, 1, NULL, NULL,
			   self->verbs->num_comp_vectors - 1);
	ASSERT_NE(NULL, cq);
	EXPECT_LE(1, cq->cqe);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* The indices of a small queue come round many times. */
TEST_F(own, small_queue_wraps)
{
	struct ibv_cq *cq = ibv_create_cq(self->verbs, 3, NULL, NULL, 0);
	uintptr_t i;

	ASSERT_NE(NULL, cq);
	self->opts.client_qp.send_cq = cq;
	self->opts.client_qp.recv_cq = cq;
	self->opts.client_qp.cap.max_send_wr = 2;
	self->opts.client_qp.cap.max_recv_wr = 1;
	ASSERT_EQ(0, connect_rest(&self->p, &self->opts));
	for (i = 0; i < 100; i += 2) {
		ASSERT_EQ(0, post_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_EQ(0, post_write(&self->p, i + 1, IBV_SEND_SIGNALED));
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i);
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i + 1);
	}
	EXPECT_TRUE(no_comp(cq));
	end_close(&self->p.client);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_HARNESS_MAIN
