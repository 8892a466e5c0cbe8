// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests asynchronous event channels.  The test reaches the limit of a shared
 * receive queue as often as it needs an event.  A failure means that an event
 * is lost, comes twice, or names an object that is gone.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <signal.h>

#include "rpost_own.h"

#define KEPT	256	/* events that a channel keeps */

FIXTURE(async) {
	struct rp_end s, r;
	struct rpost_create_srq srq;
	int ch;
};

FIXTURE_SETUP(async)
{
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_end_init(&self->r));
	ASSERT_EQ(0, rp_create_srq(self->r.fd, self->r.pd, 8, &self->srq));
	ASSERT_EQ(0, rp_create_own(&self->s, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&self->r, RPOST_QPT_RC, self->srq.handle));
	ASSERT_EQ(0, rp_bring_up(&self->s, RPOST_QPT_RC, self->r.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->r, RPOST_QPT_RC, self->s.qp_num));
	self->ch = rp_async_channel(self->r.fd, self->r.device);
	ASSERT_LE(0, self->ch);
	ASSERT_EQ(0, fcntl(self->ch, F_SETFL, O_NONBLOCK));
}

FIXTURE_TEARDOWN(async)
{
	close(self->ch);
	rp_end_close(&self->s);
	rp_end_close(&self->r);
}

/* Receive one message, so that the limit is reached. */
static int make_event(FIXTURE_DATA(async) *self)
{
	return rp_reach_limit(&self->s, &self->r, self->srq.handle);
}

/* Read events of this file's objects; a port may have events at any time. */
static int read_some(int fd, struct rpost_async_event *events, int max)
{
	int n = 0;

	while (n < max && read(fd, &events[n], sizeof(*events)) ==
	       sizeof(*events)) {
		if (events[n].event == RPOST_ASYNC_SRQ_LIMIT_REACHED)
			n++;
	}
	return n;
}

/* Returns true if no event but those of ports comes for a while. */
static bool no_more(int fd)
{
	struct rpost_async_event event;

	while (rp_readable(fd, TEST_QUIET_MS)) {
		if (read(fd, &event, sizeof(event)) != sizeof(event) ||
		    event.handle || !event.port)
			return false;
	}
	return true;
}

TEST_F(async, reads)
{
	struct rpost_async_event events[4];
	char *bad = rp_pages(getpagesize());

	EXPECT_EQ(FD_CLOEXEC, fcntl(self->ch, F_GETFD));
	EXPECT_EQ(O_RDONLY, fcntl(self->ch, F_GETFL) & O_ACCMODE);
	while (read(self->ch, events, sizeof(events)) > 0)
		;
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_FALSE(rp_readable(self->ch, 0));
	EXPECT_EQ(-1, read(self->ch, events, sizeof(events[0]) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, read(self->ch, events, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->ch, events, sizeof(events[0])));
	EXPECT_EQ(-ENOTTY, rp_ioctl(self->ch, RPOST_IOC_GET_EVENT, events));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, 4096, PROT_READ, MAP_SHARED, self->ch,
				   0));
	ASSERT_EQ(0, make_event(self));
	ASSERT_TRUE(rp_readable(self->ch, TEST_TIMEOUT_MS));
	/* Read into memory that the kernel cannot write to. */
	ASSERT_EQ(0, mprotect(bad, getpagesize(), PROT_READ));
	EXPECT_EQ(-1, read(self->ch, bad, sizeof(events[0])));
	EXPECT_EQ(EFAULT, errno);
	/* The event is not lost. */
	EXPECT_EQ(1, read_some(self->ch, events, 4));
}

TEST_F(async, event_of_an_object)
{
	struct rpost_async_event event;

	ASSERT_EQ(0, make_event(self));
	memset(&event, 0xa5, sizeof(event));
	ASSERT_EQ(0, rp_async_wait(self->ch, RPOST_ASYNC_SRQ_LIMIT_REACHED,
				   &event));
	EXPECT_EQ(self->srq.handle, event.handle);
	EXPECT_EQ(RPOST_OBJ_SRQ, event.obj_type);
	EXPECT_EQ(0x5152, event.user_data);
	EXPECT_EQ(0, event.port);
	EXPECT_TRUE(no_more(self->ch));
}

/* A read returns as many events as fit into the buffer, oldest first. */
TEST_F(async, several_at_once)
{
	struct rpost_async_event events[8];
	int i;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, make_event(self));
	}
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(3 * sizeof(events[0]),
		  read(self->ch, events, 4 * sizeof(events[0]) - 1));
	EXPECT_EQ(2, read_some(self->ch, events, 8));
}

/* A full channel drops new events, and takes new ones after a read. */
TEST_F(async, overflow)
{
	static struct rpost_async_event events[KEPT + 64];
	struct rpost_create_srq first = self->srq, second;
	struct rp_end r = self->r;
	int i, n;

	for (i = 0; i < KEPT; i++) {
		ASSERT_EQ(0, make_event(self));
	}
	/* Events of a second queue, which find the channel full. */
	ASSERT_EQ(0, rp_create_srq(self->r.fd, self->r.pd, 8, &second));
	ASSERT_EQ(0, rp_destroy(self->r.fd, RPOST_OBJ_QP, self->r.qp));
	ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
	self->srq = second;
	ASSERT_EQ(0, rp_create_own(&self->s, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&self->r, RPOST_QPT_RC, second.handle));
	ASSERT_EQ(0, rp_bring_up(&self->s, RPOST_QPT_RC, self->r.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->r, RPOST_QPT_RC, self->s.qp_num));
	for (i = 0; i < 40; i++) {
		ASSERT_EQ(0, make_event(self));
	}
	usleep(TEST_QUIET_MS * 1000);
	n = read(self->ch, events, sizeof(events)) / sizeof(events[0]);
	EXPECT_EQ(KEPT, n);
	for (i = 0; i < n; i++) {
		EXPECT_EQ(first.handle, events[i].handle);
	}
	EXPECT_FALSE(rp_readable(self->ch, 0));
	ASSERT_EQ(0, make_event(self));
	EXPECT_EQ(0, rp_async_wait(self->ch, RPOST_ASYNC_SRQ_LIMIT_REACHED,
				   &events[0]));
	EXPECT_EQ(second.handle, events[0].handle);
	EXPECT_EQ(r.fd, self->r.fd);
}

/* Every channel of the file gets the event, if it is open by then. */
TEST_F(async, channels)
{
	int second = rp_async_channel(self->r.fd, self->r.device);
	int foreign = rp_async_channel(self->s.fd, self->s.device);
	struct rpost_async_event events[4];
	int late;

	ASSERT_LE(0, second);
	ASSERT_LE(0, foreign);
	ASSERT_EQ(0, fcntl(second, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, fcntl(foreign, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, make_event(self));
	ASSERT_TRUE(rp_readable(second, TEST_TIMEOUT_MS));
	late = rp_async_channel(self->r.fd, self->r.device);
	ASSERT_EQ(0, fcntl(late, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(1, read_some(self->ch, events, 4));
	EXPECT_EQ(1, read_some(second, events, 4));
	EXPECT_EQ(0, read_some(foreign, events, 4));
	EXPECT_EQ(0, read_some(late, events, 4));
	close(second);
	close(foreign);
	close(late);
	/*
	 * Closing a channel with an unread event leaves other channels alone.
	 */
	second = rp_async_channel(self->r.fd, self->r.device);
	ASSERT_EQ(0, make_event(self));
	close(second);
	EXPECT_EQ(1, read_some(self->ch, events, 4));
}

/* Destroying an object drops its unread events. */
TEST_F(async, object_destroyed)
{
	struct rpost_async_event events[4];

	ASSERT_EQ(0, make_event(self));
	ASSERT_TRUE(rp_readable(self->ch, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_destroy(self->r.fd, RPOST_OBJ_QP, self->r.qp));
	ASSERT_EQ(0, rp_destroy(self->r.fd, RPOST_OBJ_SRQ, self->srq.handle));
	EXPECT_EQ(0, read_some(self->ch, events, 4));
}

TEST_F(async, creation)
{
	struct rpost_create_async_channel cmd = { .size = sizeof(cmd) };
	const uint32_t bad[] = { 0, self->r.device + 1000, UINT32_MAX };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		cmd.device = bad[i];
		EXPECT_EQ(-ENODEV, rp_ioctl(self->r.fd,
					    RPOST_IOC_CREATE_ASYNC_CHANNEL,
					    &cmd));
		EXPECT_EQ(0, cmd.fd);
	}
	/* Commands for other kinds of channels refuse it. */
	EXPECT_EQ(-EBADF, rp_create_id(self->r.fd, self->ch, &cmd.device));
	struct rp_cq cq;

	EXPECT_EQ(-EBADF, rp_create_cq(self->r.fd, self->r.device, 1, self->ch,
				       &cq));
}

/* ------------------------------------------------------------- sleeping */

struct reader {
	int fd;
	int ret;
	pid_t tid;
	struct rpost_async_event event;
};

static void *read_one(void *arg)
{
	struct reader *r = arg;

	rp_put_tid(&r->tid);
	do {
		r->ret = read(r->fd, &r->event, sizeof(r->event)) < 0 ? -errno :
								       0;
	} while (!r->ret && r->event.event != RPOST_ASYNC_SRQ_LIMIT_REACHED);
	return NULL;
}

TEST_F(async, sleeping)
{
	struct reader r = { .fd = self->ch, .ret = 1 };
	pthread_t thread;

	ASSERT_EQ(0, fcntl(self->ch, F_SETFL, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_one, &r));
	ASSERT_TRUE(rp_wait_asleep(&r.tid));
	EXPECT_EQ(1, r.ret);
	ASSERT_EQ(0, make_event(self));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, r.ret);
	EXPECT_EQ(self->srq.handle, r.event.handle);
}

static void on_signal(int sig)
{
	(void)sig;
}

/* The device file and the channel are closed while a thread reads. */
TEST_F(async, closed_while_reading)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct reader r = { .fd = self->ch, .ret = 1 };
	pthread_t thread;
	int copy;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, fcntl(self->ch, F_SETFL, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_one, &r));
	ASSERT_TRUE(rp_wait_asleep(&r.tid));
	copy = dup(self->r.fd);
	close(self->ch);
	close(self->r.fd);
	self->r.fd = copy;
	self->r.cq.fd = copy;
	ASSERT_EQ(0, make_event(self));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, r.ret);
	self->ch = rp_async_channel(self->r.fd, self->r.device);
	/* A signal ends the read, and no event is lost. */
	r = (struct reader) { .fd = self->ch, .ret = 1 };
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_one, &r));
	ASSERT_TRUE(rp_wait_asleep(&r.tid));
	ASSERT_EQ(0, pthread_kill(thread, SIGUSR1));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-EINTR, r.ret);
}

/* The channel stays open after its device file is closed. */
TEST_F(async, channel_stays)
{
	struct rpost_async_event events[4];
	struct rp_end end;
	int ch;

	ASSERT_EQ(0, rp_end_init(&end));
	ch = rp_async_channel(end.fd, end.device);
	ASSERT_LE(0, ch);
	rp_end_close(&end);
	ASSERT_EQ(0, fcntl(ch, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(0, read_some(ch, events, 4));
	close(ch);
}

/* ------------------------------------------------------------ a race */

struct churn {
	struct rp_end *end;
	bool stop;
	int wrong;
};

static void *open_and_close(void *arg)
{
	struct churn *c = arg;
	struct rpost_async_event event;
	int fd;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		fd = rp_async_channel(c->end->fd, c->end->device);
		if (fd < 0) {
			c->wrong = fd;
			break;
		}
		fcntl(fd, F_SETFL, O_NONBLOCK);
		if (read(fd, &event, sizeof(event)) < 0 && errno != EAGAIN)
			c->wrong = -errno;
		close(fd);
	}
	return NULL;
}

/* Threads open and close channels while events happen. */
TEST_F(async, channels_race_with_events)
{
	struct churn c = { .end = &self->r };
	uint64_t end = rp_now_ms() + 300;
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, open_and_close,
					    &c));
	}
	do {
		ASSERT_EQ(0, make_event(self));
	} while (rp_now_ms() < end);
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	}
	EXPECT_EQ(0, c.wrong);
}

TEST_HARNESS_MAIN
