// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waiting for completion events.  A failure means that a thread misses an event
 * and sleeps for ever, or that it gets an event without a request.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "rdma_test.h"

#define MSG	64

/* The server receives on a completion queue and a channel of this program. */
struct wired {
	struct pair p;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	uintptr_t posted;	/* number of receives */
};

static int wired_open(struct wired *w, int cqe)
{
	struct pair_opts opts;
	struct ibv_context *verbs;

	pair_defaults(&opts);
	if (pair_listen(&w->p, &opts) || pair_resolve(&w->p, &opts) ||
	    pair_client_qp(&w->p, &opts) || pair_connect(&w->p, &opts))
		return -1;
	verbs = w->p.server.id->verbs;
	w->channel = ibv_create_comp_channel(verbs);
	if (!w->channel)
		return -1;
	w->cq = ibv_create_cq(verbs, cqe, w, w->channel, 0);
	if (!w->cq)
		return -1;
	opts.server_qp.recv_cq = w->cq;
	if (pair_server_qp(&w->p, &opts) || pair_accept(&w->p, &opts))
		return -1;
	return 0;
}

static int wired_close(struct wired *w)
{
	pair_close(&w->p);
	return (w->cq && ibv_destroy_cq(w->cq)) ||
	       (w->channel && ibv_destroy_comp_channel(w->channel)) ? -1 : 0;
}

/* Posts a receive, and sends a message to it. */
static int message(struct wired *w, int flags)
{
	struct end *c = &w->p.client, *s = &w->p.server;

	return end_recv(s, (void *)w->posted++, 0, MSG) ||
	       rdma_post_send(c->id, NULL, c->buf, MSG, c->mr, flags) ? -1 : 0;
}

/* A thread in ibv_get_cq_event(). */
struct waiter {
	struct ibv_comp_channel *channel;
	pthread_t thread;
	struct ibv_cq *cq;
	void *context;
	int err;
	atomic_int ret;		/* 1 until the call returns */
};

static void *wait_for_event(void *arg)
{
	struct waiter *waiter = arg;
	int ret;

	ret = ibv_get_cq_event(waiter->channel, &waiter->cq, &waiter->context);
	waiter->err = errno;
	waiter->ret = ret;
	return NULL;
}

static int start(struct waiter *waiter, struct ibv_comp_channel *channel)
{
	*waiter = (struct waiter) { .channel = channel, .ret = 1 };
	return pthread_create(&waiter->thread, NULL, wait_for_event, waiter);
}

static bool at_least(const atomic_int *n, int wanted)
{
	uint64_t end = now_ms() + DEADLINE_MS;

	while (*n < wanted && now_ms() < end)
		usleep(100);
	return *n >= wanted;
}

static bool still_waits(const struct waiter *waiter)
{
	usleep(QUIET_MS * 1000);
	return waiter->ret == 1;
}

/* Returns the result of ibv_get_cq_event(), or 1 after the deadline. */
static int finish(struct waiter *waiter)
{
	struct timespec end;

	end = real_time_in(DEADLINE_MS);
	if (pthread_timedjoin_np(waiter->thread, NULL, &end))
		return 1;
	return waiter->ret;
}

FIXTURE(wait) {
	struct wired w;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct waiter waiter;
	bool abandoned;
};

FIXTURE_SETUP(wait)
{
	ASSERT_EQ(0, wired_open(&self->w, 16));
	self->channel = self->w.channel;
	self->cq = self->w.cq;
}

FIXTURE_TEARDOWN(wait)
{
	if (self->abandoned)
		return;
	EXPECT_EQ(0, wired_close(&self->w));
}

#define ASSERT_WAITS() do { \
	ASSERT_EQ(0, start(&self->waiter, self->channel)); \
	ASSERT_TRUE(still_waits(&self->waiter)); \
} while (0)

#define ASSERT_EVENT() do { \
	ASSERT_EQ(0, finish(&self->waiter)); \
	EXPECT_EQ(self->cq, self->waiter.cq); \
	EXPECT_EQ(&self->w, self->waiter.context); \
	ibv_ack_cq_events(self->waiter.cq, 1); \
} while (0)

#define ASSERT_RECEIVED(n) \
	ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RECV, n)

TEST_F(wait, event_for_each_request)
{
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_WAITS();
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_EVENT();
		ASSERT_RECEIVED(i);
		/* There is no second event. */
		EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	}
}

TEST_F(wait, the_event_is_there)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	ASSERT_EVENT();
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

/*
 * Before it reads the event, the program polls the completion and requests
 * another event.
 */
TEST_F(wait, an_older_event_is_there)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_RECEIVED(0);
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	ASSERT_EVENT();
	/* The second request has not been answered. */
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(1);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

/* A completion that came before the request causes no event. */
TEST_F(wait, a_completion_waits)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	ASSERT_EVENT();

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
	ASSERT_RECEIVED(1);
}

/* A completion causes no event without a request. */
TEST_F(wait, not_asked)
{
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_RECEIVED(0);
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
}

/* One event wakes one of two threads. */
TEST_F(wait, two_wait)
{
	struct waiter second;

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, start(&second, self->channel));
	ASSERT_TRUE(still_waits(&second));
	ASSERT_EQ(0, message(&self->w, 0));
	while (self->waiter.ret == 1 && second.ret == 1)
		usleep(1000);
	usleep(QUIET_MS * 1000);
	EXPECT_EQ(1, self->waiter.ret + second.ret);
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_EQ(0, finish(&second));
	ibv_ack_cq_events(second.cq, 1);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

TEST_F(wait, another_asks)
{
	struct ibv_cq *cq;
	void *context;

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
	/* librdma_post may send an event for each request. */
	if (readable(self->channel->fd, QUIET_MS)) {
		ASSERT_FALSE(over_incumbent());
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	}
}

/* A request for any completion outlasts one for solicited ones. */
TEST_F(wait, another_asks_for_solicited_ones)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 1));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
}

TEST_F(wait, resized)
{
	int i;

	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_WAITS();
		ASSERT_EQ(0, ibv_resize_cq(self->cq, i % 2 ? 16 : 500));
		EXPECT_TRUE(still_waits(&self->waiter));
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_EVENT();
		ASSERT_RECEIVED(i);
		EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	}
}

/*
 * A queue that is in use cannot be destroyed, and the attempt does not wake a
 * thread that waits.
 */
TEST_F(wait, not_destroyed)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(EBUSY, ibv_destroy_cq(self->cq));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
}

static atomic_int signals;

static void on_signal(int number)
{
	(void)number;
	signals++;
}

/* A signal with a handler ends the wait, so that the program can react. */
TEST_F(wait, interrupted)
{
	struct sigaction action = { .sa_handler = on_signal };

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, pthread_kill(self->waiter.thread, SIGUSR1));
	ASSERT_EQ(-1, finish(&self->waiter));
	EXPECT_EQ(EINTR, self->waiter.err);
	EXPECT_TRUE(at_least(&signals, 1));
	/* The queue is still armed. */
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
}

/*
 * A signal with SA_RESTART does not end the wait, see signal(7), and neither
 * does an ignored signal.
 */
TEST_F(wait, not_interrupted)
{
	struct sigaction restart = {
		.sa_handler = on_signal,
		.sa_flags = SA_RESTART,
	};

	ASSERT_EQ(0, sigaction(SIGUSR1, &restart, NULL));
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, pthread_kill(self->waiter.thread, SIGCHLD));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, pthread_kill(self->waiter.thread, SIGUSR1));
	EXPECT_TRUE(at_least(&signals, 1));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
}

/* A thread that waits for events of the queue waits on. */
TEST_F(wait, destroyed)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;

	channel = ibv_create_comp_channel(self->w.p.client.id->verbs);
	ASSERT_NE(NULL, channel);
	cq = ibv_create_cq(channel->context, 16, NULL, channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, ibv_poll_cq(cq, 1, &self->wc));
	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	ASSERT_EQ(0, start(&self->waiter, channel));
	ASSERT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_kill(self->waiter.thread, SIGUSR1));
	EXPECT_EQ(-1, finish(&self->waiter));
	EXPECT_EQ(EINTR, self->waiter.err);
	EXPECT_EQ(0, ibv_destroy_comp_channel(channel));
}

static void *destroy_cq(void *arg)
{
	return (void *)(intptr_t)ibv_destroy_cq(arg);
}

/* ibv_destroy_cq() waits until the event has been acknowledged. */
TEST_F(wait, not_acknowledged)
{
	struct timespec end;
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EQ(0, finish(&self->waiter));
	rdma_destroy_qp(self->w.p.server.id);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_cq, self->cq));
	end = real_time_in(1000);
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &ret, &end));
	ibv_ack_cq_events(self->cq, 1);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	self->w.cq = NULL;
}

TEST_F(wait, nonblocking)
{
	struct ibv_cq *cq;
	void *context;
	int i;

	ASSERT_EQ(0, set_nonblock(self->channel->fd, true));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		EXPECT_ERRNO(EAGAIN, ibv_get_cq_event(self->channel, &cq, &context));
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		ASSERT_RECEIVED(i);
	}
}

/* A child of fork() has no mapping of the ring, but can read the channel. */
TEST_F(wait, child)
{
	struct ibv_cq *cq;
	void *context;
	int status;
	pid_t pid;

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, set_nonblock(self->channel->fd, true));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		status = ibv_get_cq_event(self->channel, &cq, &context) != -1 ?
			 10 : errno == EAGAIN ? 0 : 11;
		/* LeakSanitizer would miss the parent's threads. */
		syscall(SYS_exit_group, status);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, set_nonblock(self->channel->fd, false));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
}

/* A thread that waits can be cancelled, even if it never has to sleep. */
static void *wait_for_ever(void *arg)
{
	struct wired *w = arg;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;

	while (!ibv_req_notify_cq(w->cq, 0) && !message(w, 0) &&
	       !ibv_get_cq_event(w->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		while (ibv_poll_cq(w->cq, 1, &wc) > 0)
			;
	}
	return NULL;
}

TEST_F(wait, cancelled)
{
	struct timespec end;
	pthread_t thread;
	void *ret;

	/* A thread may be cancelled before it acknowledges its event. */
	if (over_incumbent())
		SKIP(return, "librdmacm may wait for it for ever");
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_ever, &self->w));
	usleep(10 * QUIET_MS * 1000);
	ASSERT_EQ(0, pthread_cancel(thread));
	end = real_time_in(DEADLINE_MS);
	ASSERT_EQ(0, pthread_timedjoin_np(thread, &ret, &end));
	EXPECT_EQ(PTHREAD_CANCELED, ret);
}

/* A lost completion wakes a reader, too. */
TEST(overrun)
{
	struct wired w = { .posted = 0 };
	struct waiter waiter;

	if (over_incumbent())
		SKIP(return, "the device's queues do something else each");
	ASSERT_EQ(0, wired_open(&w, 1));
	ASSERT_EQ(1, w.cq->cqe);
	ASSERT_EQ(0, ibv_req_notify_cq(w.cq, 0));
	ASSERT_EQ(0, message(&w, 0));
	ASSERT_EQ(0, start(&waiter, w.channel));
	ASSERT_EQ(0, finish(&waiter));
	ibv_ack_cq_events(w.cq, 1);

	ASSERT_EQ(0, ibv_req_notify_cq(w.cq, 0));
	ASSERT_EQ(0, start(&waiter, w.channel));
	ASSERT_TRUE(still_waits(&waiter));
	ASSERT_EQ(0, message(&w, 0));
	ASSERT_EQ(0, finish(&waiter));
	ibv_ack_cq_events(w.cq, 1);
	EXPECT_EQ(1, ibv_poll_cq(w.cq, 1, &w.wc));
	EXPECT_EQ(-EOVERFLOW, ibv_poll_cq(w.cq, 1, &w.wc));
	EXPECT_EQ(0, wired_close(&w));
}

#define RACES	(under_valgrind() ? 300 : 1500)
#define RACE_US	200

struct race {
	struct wired *w;
	int count;
	atomic_int received, failed, gone;
	atomic_int error;	/* the first one: errno, or -status */
	bool asked_for_more;
	bool two;		/* two receivers, in any order */
};

static void fail(struct race *race, int error)
{
	if (!race->failed++)
		race->error = error;
}

static void busy_us(unsigned int us)
{
	struct timespec now;
	uint64_t end = 0, ns;

	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
		ns = (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec;
		if (!end)
			end = ns + us * 1000;
	} while (ns < end);
}

/* Polls, requests an event, polls, and waits, as in ibv_get_cq_event(3). */
static void *receive_all(void *arg)
{
	struct race *race = arg;
	struct wired *w = race->w;
	unsigned int events = 0;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;
	int n;

	while (race->received < race->count && !race->failed) {
		n = ibv_poll_cq(w->cq, 1, &wc);
		if (!n) {
			n = ibv_req_notify_cq(w->cq, 0);
			if (!n)
				n = ibv_poll_cq(w->cq, 1, &wc);
			else
				n = -n;
		}
		if (n < 0) {
			fail(race, -n);
			break;
		}
		if (n) {
			if (wc.status != IBV_WC_SUCCESS)
				fail(race, -(int)wc.status);
			else if (!race->two &&
				 wc.wr_id != (uint64_t)race->received)
				fail(race, EILSEQ);
			race->received++;
			continue;
		}
		if (ibv_get_cq_event(w->channel, &cq, &context) || cq != w->cq) {
			fail(race, errno);
			break;
		}
		events++;
	}
	if (events)
		ibv_ack_cq_events(w->cq, events);
	race->gone++;
	return NULL;
}

static void *resize_and_ask(void *arg)
{
	struct race *race = arg;
	unsigned int seed = 7;
	int err;

	while (race->received < race->count && !race->failed) {
		if (rand_r(&seed) % 4 == 0) {
			err = ibv_resize_cq(race->w->cq,
					    16 + rand_r(&seed) % 500);
			if (err)
				fail(race, err);
		} else if (race->asked_for_more) {
			err = ibv_req_notify_cq(race->w->cq, 0);
			if (err)
				fail(race, err);
		}
		usleep(rand_r(&seed) % 1000);
	}
	return NULL;
}

#define LOAD_MS	(6 * DEADLINE_MS)	/* a resize waits for all CPUs */

/* Waits until @n messages have arrived. */
static bool arrives(struct race *race, int n)
{
	uint64_t end = now_ms() + LOAD_MS;

	while (race->received < n && !race->failed && now_ms() < end)
		usleep(10);
	return race->received >= n && !race->failed;
}

/* Sends each message up to RACE_US after the last one has arrived. */
static bool send_all(struct race *race)
{
	unsigned int seed = 3;
	int i;

	for (i = 0; i < race->count; i++) {
		if (!arrives(race, i))
			break;
		busy_us(rand_r(&seed) % RACE_US);
		if (message(race->w, 0))
			return false;
	}
	if (arrives(race, i))
		return true;
	fprintf(stderr, "# %d of %d arrived, error %d, %s waits\n",
		race->received, i, race->error,
		readable(race->w->channel->fd, 0) ? "an event" : "no event");
	return false;
}

/* Lets all receivers end: the last messages may have gone to one of two. */
static bool wake(struct race *race, int receivers)
{
	uint64_t end = now_ms() + LOAD_MS;

	while (race->gone < receivers && now_ms() < end) {
		if (receivers > 1 && (ibv_req_notify_cq(race->w->cq, 0) ||
				      message(race->w, 0)))
			return false;
		usleep(QUIET_MS * 1000);
	}
	return race->gone == receivers;
}

/* True if no message is lost, and no receiver sleeps for ever. */
static bool run(struct race *race, bool disturbed)
{
	int i, receivers = race->two ? 2 : 1;
	pthread_t threads[3];

	for (i = 0; i < receivers; i++)
		if (pthread_create(&threads[i], NULL, receive_all, race))
			return false;
	if (disturbed && pthread_create(&threads[i++], NULL, resize_and_ask, race))
		return false;
	if (!send_all(race) || !wake(race, receivers))
		return false;
	while (i)
		pthread_join(threads[--i], NULL);
	return !race->failed;
}

/* A thread that sleeps for ever keeps the queue from being destroyed. */
#define ASSERT_RUNS(race, disturbed) do { \
	if (!run(race, disturbed)) { \
		self->abandoned = true; \
		ASSERT_TRUE(false); \
	} \
} while (0)

/* Messages arrive at about the time at which a reader begins to sleep. */
TEST_F(wait, race)
{
	struct race race = { .w = &self->w, .count = RACES };

	ASSERT_RUNS(&race, false);
}

TEST_F(wait, race_with_resizes)
{
	struct race race = { .w = &self->w, .count = RACES / 3 };

	ASSERT_RUNS(&race, true);
}

TEST_F(wait, race_with_others_that_ask)
{
	struct race race = { .w = &self->w, .count = RACES / 3,
			     .asked_for_more = true };

	ASSERT_RUNS(&race, true);
}

/*
 * Two threads sleep on one channel.  The thread that is woken requests the next
 * event before it sleeps again.
 */
TEST_F(wait, race_of_two)
{
	struct race race = { .w = &self->w, .count = RACES / 3, .two = true,
			     .asked_for_more = true };

	ASSERT_RUNS(&race, true);
}

TEST_HARNESS_MAIN
