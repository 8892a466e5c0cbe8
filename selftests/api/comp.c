// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests completions: polling, sleeping, completion channels and threads.  A
 * failure means that a program misses a completion, sleeps for ever, or gets
 * events that it has not asked for.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rdma_test.h"

PAIR_FIXTURE(comp, pair_open)

static int post_send(struct pair *p, int flags)
{
	return end_send(&p->client, NULL, 0, 64, flags);
}

static int post_recv(struct pair *p, uintptr_t context)
{
	return end_recv(&p->server, (void *)context, 0, 64);
}

TEST_F(comp, get_send_comp)
{
	uintptr_t i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
		memset(&self->wc, POISON, sizeof(self->wc));
		ASSERT_EQ(1, rdma_get_send_comp(self->id, &self->wc));
		EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
		EXPECT_EQ(i, self->wc.wr_id);
	}
}

TEST_F(comp, get_send_comp_of_each_operation)
{
	ASSERT_EQ(0, post_recv(&self->p, 0));
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 64, IBV_SEND_SIGNALED));
	ASSERT_EQ(1, rdma_get_send_comp(self->id, &self->wc));
	EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(IBV_WC_SEND, self->wc.opcode);
	EXPECT_EQ(addr64(CONTEXT), self->wc.wr_id);

	fill(self->s->buf, 64, 1);
	ASSERT_EQ(0, rdma_post_read(self->id, self, self->c->buf, 64,
				    self->c->mr, IBV_SEND_SIGNALED,
				    self->remote, self->rkey));
	ASSERT_EQ(1, rdma_get_send_comp(self->id, &self->wc));
	EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(IBV_WC_RDMA_READ, self->wc.opcode);
	EXPECT_EQ(addr64(self), self->wc.wr_id);
	EXPECT_TRUE(filled(self->c->buf, 64, 1));

	ASSERT_EQ(0, pair_write(&self->p, 7, IBV_SEND_SIGNALED));
	ASSERT_EQ(1, rdma_get_send_comp(self->id, &self->wc));
	EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(IBV_WC_RDMA_WRITE, self->wc.opcode);
	EXPECT_EQ(7, self->wc.wr_id);
}

static void *read_later(void *arg)
{
	struct pair *p = arg;

	usleep(50000);
	return (void *)(intptr_t)end_read(&p->client, 64, p->server.buf,
					  p->server.mr->rkey);
}

/* The read is posted only after the caller has slept for long. */
TEST_F(comp, get_send_comp_wakes_up)
{
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, pthread_create(&thread, NULL, read_later, &self->p));
	ASSERT_EQ(1, rdma_get_send_comp(self->id, &self->wc));
	EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
	EXPECT_EQ(addr64(CONTEXT), self->wc.wr_id);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
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

/* The message comes only after the receiver has slept for long. */
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

/* The end of the connection wakes a receiver that sleeps. */
TEST_F(comp, disconnect_wakes_up_the_receiver)
{
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, post_recv(&self->p, 7));
	ASSERT_EQ(0, pthread_create(&thread, NULL, disconnect_later, &self->p));
	/* The peer's queue pair is flushed by the peer's own disconnect. */
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

/* Post a read.  When its data have come, what was posted before it is done. */
static int read_and_wait(struct pair *p, void *context, int flags)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	struct end *c = &p->client, *s = &p->server;

	fill(s->buf + 100, 64, 3);
	c->buf[163] = ~s->buf[163];
	if (rdma_post_read(c->id, context, c->buf + 100, 64, c->mr, flags,
			   addr64(s->buf + 100), s->mr->rkey))
		return -1;
	while (*(volatile uint8_t *)&c->buf[163] != s->buf[163]) {
		if (now_ms() >= end)
			return -1;
		usleep(1000);
	}
	/* Its completion can be polled some time after its data. */
	usleep(100000);
	return 0;
}

TEST_F(comp, poll_in_batches)
{
	struct ibv_cq *cq = self->id->send_cq;
	struct ibv_wc wc[16];
	uintptr_t i;

	for (i = 0; i < 10; i++)
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, read_and_wait(&self->p, NULL, 0));
	memset(wc, POISON, sizeof(wc));
	ASSERT_EQ(4, ibv_poll_cq(cq, 4, wc));
	ASSERT_EQ(1, ibv_poll_cq(cq, 1, wc + 4));
	ASSERT_EQ(5, ibv_poll_cq(cq, 10, wc + 5));
	ASSERT_EQ(0, ibv_poll_cq(cq, 6, wc + 10));
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(i, wc[i].wr_id);
		EXPECT_EQ(IBV_WC_SUCCESS, wc[i].status);
	}
	/* ibv_poll_cq() must not touch entries that it does not return. */
	EXPECT_TRUE(all_bytes(wc + 10, 6 * sizeof(*wc), POISON));
}

/*
 * The second read puts the completions of the writes into rdma_post's ring, and
 * its own is on the device.  Fewer than were asked for means that there are no
 * more, as ib_poll_cq() says.
 */
TEST_F(comp, poll_takes_all_that_are_done)
{
	struct ibv_wc wc[16];
	uintptr_t i;

	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, read_and_wait(&self->p, NULL, 0));
	ASSERT_EQ(0, read_and_wait(&self->p, (void *)i, IBV_SEND_SIGNALED));
	ASSERT_EQ(4, ibv_poll_cq(self->id->send_cq, 16, wc));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(i, wc[i].wr_id);
		EXPECT_EQ(IBV_WC_SUCCESS, wc[i].status);
	}
}

TEST_F(comp, poll_fd_and_get_event)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
	ASSERT_EQ(0, pair_write(&self->p, 1, IBV_SEND_SIGNALED));
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
	ASSERT_EQ(0, pair_write(&self->p, 1, IBV_SEND_SIGNALED));
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
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
	for (i = 0; i < 3; i++)
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
	ASSERT_EQ(0, pair_write(&self->p, 9, IBV_SEND_SIGNALED));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 2);
}

/*
 * As in the example of ibv_get_cq_event(3): a completion that the program has
 * polled must not cause another event.  Races cause a few.
 */
TEST_F(comp, events_for_nothing)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	const int rounds = 1000;
	int done = 0, nothing = 0, n;
	struct ibv_cq *cq;
	void *context;

	ASSERT_EQ(0, ibv_req_notify_cq(self->id->send_cq, 0));
	ASSERT_EQ(0, pair_write(&self->p, 0, IBV_SEND_SIGNALED));
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
		ASSERT_EQ(0, pair_write(&self->p, 0, IBV_SEND_SIGNALED));
	}
	EXPECT_GE(rounds / 10, nothing);
	TH_LOG("%d of %d events", nothing, rounds + nothing);
}

/* Asking twice before an event comes gives one event. */
TEST_F(comp, asked_twice)
{
	struct ibv_comp_channel *channel = self->id->send_cq_channel;
	struct ibv_cq *cq = self->id->send_cq;
	void *context;
	uintptr_t i;

	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pair_write(&self->p, i, IBV_SEND_SIGNALED));
		ASSERT_COMP_OK(cq, &self->wc, IBV_WC_RDMA_WRITE, i);
	}
	ASSERT_TRUE(readable(channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_cq_event(channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	EXPECT_FALSE(readable(channel->fd, QUIET_MS));
}

/*
 * The loop of ibv_get_cq_event(3): ask for an event, poll, sleep.  No
 * completion may be lost, whenever it comes.
 */
TEST_F(comp, ask_look_sleep)
{
	unsigned int posted = 0, done = 0, events = 0;
	struct ibv_cq *cq;
	void *context;
	int n;

	while (done < 300) {
		while (posted < 300 && posted - done < 1 + done % 7)
			ASSERT_EQ(0, pair_write(&self->p, posted++, IBV_SEND_SIGNALED));
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

/* ibv_req_notify_cq(3): an error counts as a solicited completion. */
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

/* A request for any completion replaces one for solicited completions. */
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

	ASSERT_EQ(0, set_nonblock(channel->fd, true));
	EXPECT_ERRNO(EAGAIN, ibv_get_cq_event(channel, &cq, &context));
	EXPECT_ERRNO(EAGAIN, rdma_get_send_comp(self->id, &self->wc));
	ASSERT_EQ(0, pair_write(&self->p, 1, IBV_SEND_SIGNALED));
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

/* Four threads sleep, one for each queue of both ends. */
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
		ASSERT_EQ(0, end_recv(self->c, (void *)i, 0, 64));
	}
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, wait_in_thread, w + i));
	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, end_send(self->c, (void *)i, 0, 64, IBV_SEND_SIGNALED));
		ASSERT_EQ(0, end_send(self->s, (void *)i, 0, 64, IBV_SEND_SIGNALED));
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
		if (pair_write(poster->p, i, IBV_SEND_SIGNALED))
			poster->failed++;
	return NULL;
}

/* Two threads post to one queue pair; each thread's posts complete in order. */
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

TEST_HARNESS_MAIN
