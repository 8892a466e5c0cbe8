// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waiting for completion events while librdma_post looks at the ring before it
 * sleeps (userlib/notify.c).  What a program sees is the same over both libraries.
 *
 * Whether the library spins is seen by its looks at the clock, which can be stopped
 * here so that a spin does not end, and that it does not sleep by the channel's not
 * being read: the functions it calls for both are replaced.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "rdma_test.h"
#include "../../uapi/rdma/rdma_post_abi.h"

#define MSG	64

static __thread bool watched;		/* this thread's looks at the clock count */
static atomic_bool clock_stopped;	/* for those */
static atomic_int clock_looks;
static atomic_int channel_fd = -1;
static atomic_int channel_reads;
static atomic_bool device_gone;

/* The harness's macros take no atomic types. */
static int looks(void)
{
	return clock_looks;
}

static int reads(void)
{
	return channel_reads;
}

static int (*real_clock_gettime)(clockid_t id, struct timespec *now);
static ssize_t (*real_read)(int fd, void *buf, size_t count);
static int (*real_ioctl)(int fd, unsigned long cmd, ...);

/* Others' constructors may come first. */
__attribute__((constructor(101))) static void find_real(void)
{
	real_clock_gettime = (int (*)(clockid_t, struct timespec *))
		dlsym(RTLD_NEXT, "clock_gettime");
	real_read = (ssize_t (*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	real_ioctl = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	if (!real_clock_gettime)
		find_real();
	if (watched) {
		clock_looks++;
		if (clock_stopped) {
			*now = (struct timespec) { .tv_sec = 1 };
			return 0;
		}
	}
	return real_clock_gettime(id, now);
}

ssize_t read(int fd, void *buf, size_t count)
{
	if (!real_read)
		find_real();
	if (fd == channel_fd)
		channel_reads++;
	return real_read(fd, buf, count);
}

int ioctl(int fd, unsigned long cmd, ...)
{
	va_list args;
	void *arg;

	if (!real_ioctl)
		find_real();
	if (device_gone && cmd == RPOST_IOC_QUERY_DEVICE) {
		errno = ENODEV;
		return -1;
	}
	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	return real_ioctl(fd, cmd, arg);
}

/* The server receives on a queue and a channel of the program's. */
struct wired {
	struct pair p;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	uintptr_t posted;	/* receives */
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
	channel_fd = w->channel->fd;
	/* From now on the program polls without calls. */
	return ibv_poll_cq(w->cq, 1, &w->wc);
}

static int wired_close(struct wired *w)
{
	pair_close(&w->p);
	return (w->cq && ibv_destroy_cq(w->cq)) ||
	       (w->channel && ibv_destroy_comp_channel(w->channel)) ? -1 : 0;
}

/* A message, with a receive for it. */
static int message(struct wired *w, int flags)
{
	struct end *c = &w->p.client, *s = &w->p.server;

	return rdma_post_recv(s->id, (void *)w->posted++, s->buf, MSG, s->mr) ||
	       rdma_post_send(c->id, NULL, c->buf, MSG, c->mr, flags) ? -1 : 0;
}

static int set_nonblock(int fd, bool nonblock)
{
	int flags = fcntl(fd, F_GETFL) & ~O_NONBLOCK;

	return fcntl(fd, F_SETFL, flags | (nonblock ? O_NONBLOCK : 0));
}

/* A thread in ibv_get_cq_event(). */
struct waiter {
	struct ibv_comp_channel *channel;
	pthread_t thread;
	struct ibv_cq *cq;
	void *context;
	int err;
	atomic_int ret;		/* 1: not yet */
};

static void *wait_for_event(void *arg)
{
	struct waiter *waiter = arg;

	int ret;

	watched = true;
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

/* Over the incumbent it sleeps instead. */
static bool spins(void)
{
	int before = clock_looks;

	if (over_incumbent()) {
		usleep(QUIET_MS * 1000);
		return true;
	}
	return at_least(&clock_looks, before + 2);
}

static bool still_waits(const struct waiter *waiter)
{
	usleep(QUIET_MS * 1000);
	return waiter->ret == 1;
}

/* Asleep, as far as one can know: it has come to read the channel once more. */
static bool sleeps(int reads_before)
{
	bool reads = over_incumbent() ||
		     at_least(&channel_reads, reads_before + 1);

	usleep(QUIET_MS * 1000 / 10);
	return reads;
}

/* Returns what ibv_get_cq_event() has; 1 after the deadline. */
static int finish(struct waiter *waiter)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += DEADLINE_MS / 1000;
	if (pthread_timedjoin_np(waiter->thread, NULL, &end))
		return 1;
	return waiter->ret;
}

FIXTURE(spin) {
	struct wired w;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	struct waiter waiter;
	bool abandoned;
};

FIXTURE_SETUP(spin)
{
	ASSERT_EQ(0, wired_open(&self->w, 16));
	self->channel = self->w.channel;
	self->cq = self->w.cq;
	clock_stopped = true;
}

FIXTURE_TEARDOWN(spin)
{
	if (self->abandoned)
		return;
	EXPECT_EQ(0, wired_close(&self->w));
}

#define ASSERT_WAITS() do { \
	ASSERT_EQ(0, start(&self->waiter, self->channel)); \
	ASSERT_TRUE(spins()); \
} while (0)

#define ASSERT_EVENT() do { \
	ASSERT_EQ(0, finish(&self->waiter)); \
	EXPECT_EQ(self->cq, self->waiter.cq); \
	EXPECT_EQ(&self->w, self->waiter.context); \
	ibv_ack_cq_events(self->waiter.cq, 1); \
} while (0)

#define ASSERT_RECEIVED(n) \
	ASSERT_COMP_OK(self->cq, &self->wc, IBV_WC_RECV, n)

/* How often the channel has been read, as far as one can know. */
#define EXPECT_READS(n) do { \
	if (!over_incumbent()) { \
		EXPECT_EQ(n, reads()); \
	} \
} while (0)

TEST_F(spin, in_time)
{
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_WAITS();
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_EVENT();
		EXPECT_READS(0);
		ASSERT_RECEIVED(i);
		/* That was the event. */
		EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	}
}

TEST_F(spin, in_vain)
{
	int i;

	clock_stopped = false;
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_EQ(0, start(&self->waiter, self->channel));
		ASSERT_TRUE(sleeps(i));
		EXPECT_TRUE(still_waits(&self->waiter));
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_EVENT();
		EXPECT_READS(i + 1);
		ASSERT_RECEIVED(i);
		EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	}
	/* Not every time. */
	if (!over_incumbent()) {
		EXPECT_LT(0, looks());
	}
}

/* Each spin in vain costs twice as many waits theirs as the one before. */
TEST_F(spin, less_and_less)
{
	int i, before, spun = 0;

	clock_stopped = false;
	for (i = 0; i < 30; i++) {
		before = clock_looks;
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_EQ(0, start(&self->waiter, self->channel));
		ASSERT_TRUE(sleeps(i));
		spun += clock_looks != before;
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_EVENT();
		ASSERT_RECEIVED(i);
	}
	/* The 1st, 3rd, 6th, 11th, 20th. */
	EXPECT_EQ(over_incumbent() ? 0 : 5, spun);
}

TEST_F(spin, the_event_is_there)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	ASSERT_EVENT();
	EXPECT_EQ(0, looks());
	EXPECT_READS(1);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

/* The completion was found without it, and more has been asked for since. */
TEST_F(spin, an_older_event_is_there)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
	ASSERT_RECEIVED(0);
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	ASSERT_EVENT();
	EXPECT_EQ(0, looks());
	EXPECT_READS(1);
	/* The request still stands. */
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	EXPECT_READS(1);
	ASSERT_RECEIVED(1);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

/* What came before it was asked for is no reason for an event. */
TEST_F(spin, a_completion_waits)
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

/* Nobody has asked. */
TEST_F(spin, not_asked)
{
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_RECEIVED(0);
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	EXPECT_TRUE(still_waits(&self->waiter));
	EXPECT_EQ(0, looks());
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
}

/* One event wakes one of them. */
TEST_F(spin, two_wait)
{
	struct waiter second;

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, start(&second, self->channel));
	if (!over_incumbent()) {
		ASSERT_TRUE(at_least(&channel_reads, 1));
	}
	ASSERT_TRUE(still_waits(&second));
	ASSERT_EQ(0, message(&self->w, 0));
	while (self->waiter.ret == 1 && second.ret == 1)
		usleep(1000);
	usleep(QUIET_MS * 1000);
	EXPECT_EQ(1, self->waiter.ret + second.ret);
	EXPECT_READS(1);
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_EQ(0, finish(&second));
	ibv_ack_cq_events(second.cq, 1);
	EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
}

/* The same when the one that spins has given up. */
TEST_F(spin, two_wait_in_vain)
{
	struct waiter second;

	clock_stopped = false;
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
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
}

TEST_F(spin, another_asks)
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
	/* One for each, if it is so. */
	if (readable(self->channel->fd, QUIET_MS)) {
		ASSERT_FALSE(over_incumbent());
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	}
}

/*
 * The stronger request stands, though completions have to be fetched by system call
 * from here on.
 */
TEST_F(spin, another_asks_for_solicited_ones)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 1));
	EXPECT_TRUE(still_waits(&self->waiter));
	EXPECT_READS(1);
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
}

TEST_F(spin, resized)
{
	int i;

	for (i = 0; i < 6; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_WAITS();
		ASSERT_EQ(0, ibv_resize_cq(self->cq, i % 2 ? 16 : 500));
		EXPECT_TRUE(still_waits(&self->waiter));
		EXPECT_READS(i + 1);
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_EVENT();
		ASSERT_RECEIVED(i);
		EXPECT_FALSE(readable(self->channel->fd, QUIET_MS));
	}
}

/* A queue that is in use cannot be destroyed, and nobody notices the attempt. */
TEST_F(spin, not_destroyed)
{
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(EBUSY, ibv_destroy_cq(self->cq));
	EXPECT_TRUE(still_waits(&self->waiter));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);
	/* And it spins as before. */
	channel_reads = 0;
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	EXPECT_READS(0);
}

static void on_signal(int number)
{
	(void)number;
}

/* Who waits for its events waits on. */
TEST_F(spin, destroyed)
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
	ASSERT_TRUE(spins());
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

/* An event that never was in the channel has to be acknowledged all the same. */
TEST_F(spin, not_acknowledged)
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
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &ret, &end));
	ibv_ack_cq_events(self->cq, 1);
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	self->w.cq = NULL;
}

/* With several on the channel nobody knows which to look at. */
TEST_F(spin, two_queues)
{
	struct ibv_cq *other;

	other = ibv_create_cq(self->channel->context, 16, NULL, self->channel, 0);
	ASSERT_NE(NULL, other);
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	EXPECT_TRUE(still_waits(&self->waiter));
	EXPECT_EQ(0, looks());
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	EXPECT_READS(1);
	ASSERT_RECEIVED(0);
	ASSERT_EQ(0, ibv_destroy_cq(other));

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	EXPECT_READS(1);
}

TEST_F(spin, nonblocking)
{
	struct ibv_cq *cq;
	void *context;
	int i;

	watched = true;
	ASSERT_EQ(0, set_nonblock(self->channel->fd, true));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		clock_looks = 0;
		errno = 0;
		EXPECT_EQ(-1, ibv_get_cq_event(self->channel, &cq, &context));
		EXPECT_EQ(EAGAIN, errno);
		EXPECT_EQ(0, looks());
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		ASSERT_RECEIVED(i);
	}
}

/* One wait later it is known, and soon if it blocks again. */
TEST_F(spin, nonblocking_for_a_while)
{
	struct ibv_cq *cq;
	void *context;
	int i, before;

	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_WAITS();
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
	ASSERT_RECEIVED(0);

	clock_stopped = false;
	watched = true;
	ASSERT_EQ(0, set_nonblock(self->channel->fd, true));
	for (i = 0; i < 5; i++) {
		if (i == 1)
			clock_looks = 0;
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		errno = 0;
		EXPECT_EQ(-1, ibv_get_cq_event(self->channel, &cq, &context));
		EXPECT_EQ(EAGAIN, errno);
	}
	EXPECT_EQ(0, looks());
	watched = false;

	ASSERT_EQ(0, set_nonblock(self->channel->fd, false));
	for (i = 0; i < 140; i++) {
		before = clock_looks;
		channel_reads = 0;
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_EQ(0, start(&self->waiter, self->channel));
		ASSERT_TRUE(sleeps(0));
		ASSERT_EQ(0, message(&self->w, 0));
		ASSERT_EVENT();
		ASSERT_RECEIVED(i + 1);
		if (clock_looks != before)
			break;
	}
	if (!over_incumbent()) {
		EXPECT_GT(140, i);
	}
}

/* A child has no rings to look at. */
TEST_F(spin, child)
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
		/* No search for leaks here, where the parent's threads are not. */
		syscall(SYS_exit_group, status);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, set_nonblock(self->channel->fd, false));
	ASSERT_EQ(0, message(&self->w, 0));
	ASSERT_EVENT();
}

/* Who spins while its device goes away is told. */
TEST_F(spin, device_removed)
{
	if (over_incumbent())
		SKIP(return, "only librdma_post spins");
	clock_stopped = false;
	device_gone = true;
	ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	ASSERT_EQ(0, start(&self->waiter, self->channel));
	ASSERT_EVENT();
	EXPECT_READS(0);
	device_gone = false;
}

/* A spin that always ends in time leaves no point at which to be cancelled. */
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

TEST_F(spin, cancelled)
{
	struct timespec end;
	pthread_t thread;
	void *ret;

	/* Who is cancelled as it reads may have an event that nobody acknowledges. */
	if (over_incumbent())
		SKIP(return, "librdmacm may wait for it for ever");
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_ever, &self->w));
	usleep(10 * QUIET_MS * 1000);
	ASSERT_EQ(0, pthread_cancel(thread));
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += DEADLINE_MS / 1000;
	ASSERT_EQ(0, pthread_timedjoin_np(thread, &ret, &end));
	EXPECT_EQ(PTHREAD_CANCELED, ret);
}

/* Where it is full when the program asks, its tail does not tell. */
TEST(overrun)
{
	struct wired w = { .posted = 0 };
	struct waiter waiter;

	if (over_incumbent())
		SKIP(return, "the device's queues do something else each");
	ASSERT_EQ(0, wired_open(&w, 1));
	ASSERT_EQ(1, w.cq->cqe);
	clock_stopped = true;
	ASSERT_EQ(0, ibv_req_notify_cq(w.cq, 0));
	ASSERT_EQ(0, message(&w, 0));
	ASSERT_EQ(0, start(&waiter, w.channel));
	ASSERT_EQ(0, finish(&waiter));
	ibv_ack_cq_events(w.cq, 1);

	ASSERT_EQ(0, ibv_req_notify_cq(w.cq, 0));
	ASSERT_EQ(0, start(&waiter, w.channel));
	ASSERT_TRUE(spins());
	ASSERT_EQ(0, message(&w, 0));
	ASSERT_EQ(0, finish(&waiter));
	ibv_ack_cq_events(w.cq, 1);
	EXPECT_EQ(1, ibv_poll_cq(w.cq, 1, &w.wc));
	EXPECT_EQ(-EOVERFLOW, ibv_poll_cq(w.cq, 1, &w.wc));
	EXPECT_EQ(0, wired_close(&w));
}

/* In a process of its own, which reads its environment: 1 if the library spins. */
static int spins_with(const char *us)
{
	struct wired w = { .posted = 0 };
	struct waiter waiter;
	int status;
	pid_t pid;

	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		if ((us ? setenv("RDMA_POST_SPIN_US", us, 1) :
			  unsetenv("RDMA_POST_SPIN_US")) ||
		    wired_open(&w, 16) || ibv_req_notify_cq(w.cq, 0) ||
		    start(&waiter, w.channel))
			_exit(10);
		/* After a spin, if there is one. */
		if (!sleeps(0))
			_exit(13);
		if (message(&w, 0) || finish(&waiter))
			_exit(11);
		ibv_ack_cq_events(w.cq, 1);
		if (wired_close(&w))
			_exit(12);
		_exit(clock_looks > 0);
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

TEST(environment)
{
	static const char *const nonsense[] = {
		"", "-1", "+1", "10001", "4294967296", "18446744073709551616",
		"0x10", "100us", " 0", "no",
	};
	int yes = !over_incumbent();
	unsigned int i;

	EXPECT_EQ(yes, spins_with(NULL));
	EXPECT_EQ(0, spins_with("0"));
	EXPECT_EQ(0, spins_with("000"));
	EXPECT_EQ(yes, spins_with("1"));
	EXPECT_EQ(yes, spins_with("10000"));
	for (i = 0; i < sizeof(nonsense) / sizeof(*nonsense); i++)
		EXPECT_EQ(yes, spins_with(nonsense[i]))
			TH_LOG("nonsense[%u]", i);
}

#define RACES	(under_valgrind() ? 300 : 1500)
#define RACE_US	200	/* a spin takes half of that */

struct race {
	struct wired *w;
	int count;
	atomic_int received, failed, gone;
	atomic_int error;	/* of what failed first: errno, or -status */
	bool asked_for_more;
	bool two;		/* receivers, in any order */
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

/* As ibv_get_cq_event(3) has it, with an event for each request. */
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

/* Waits until what has been sent has arrived. */
static bool arrives(struct race *race, int n)
{
	uint64_t end = now_ms() + LOAD_MS;

	while (race->received < n && !race->failed && now_ms() < end)
		usleep(10);
	return race->received >= n && !race->failed;
}

/* Sends, at once or a while after the one before has arrived. */
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

/* One of two may have gone while the other sleeps. */
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

/* True if no message is lost, and nobody's sleep is without end. */
static bool run(struct race *race, bool disturbed)
{
	int i, receivers = race->two ? 2 : 1;
	pthread_t threads[3];

	clock_stopped = false;
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

/* What sleeps for ever keeps the queue from being destroyed. */
#define ASSERT_RUNS(race, disturbed) do { \
	if (!run(race, disturbed)) { \
		self->abandoned = true; \
		ASSERT_TRUE(false); \
	} \
} while (0)

/* Messages arrive about when the library gives up. */
TEST_F(spin, race)
{
	struct race race = { .w = &self->w, .count = RACES };

	ASSERT_RUNS(&race, false);
}

TEST_F(spin, race_with_resizes)
{
	struct race race = { .w = &self->w, .count = RACES / 3 };

	ASSERT_RUNS(&race, true);
}

TEST_F(spin, race_with_others_that_ask)
{
	struct race race = { .w = &self->w, .count = RACES / 3,
			     .asked_for_more = true };

	ASSERT_RUNS(&race, true);
}

/*
 * Two sleep on one channel: whichever is woken asks for the other's event before it
 * sleeps again.
 */
TEST_F(spin, race_of_two)
{
	struct race race = { .w = &self->w, .count = RACES / 3, .two = true,
			     .asked_for_more = true };

	ASSERT_RUNS(&race, true);
}

TEST_HARNESS_MAIN
