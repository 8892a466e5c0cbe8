// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests event channels: fetching with and without blocking, acknowledgements,
 * and ids that move to another channel.  A failure means that an event is lost,
 * comes to the wrong channel, or outlives its id.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rdma_test.h"

PAIR_FIXTURE(cm, pair_listen)

TEST_F(cm, nonblocking_channel)
{
	struct rdma_event_channel *channel = self->s->channel;
	struct rdma_cm_event *ev;

	ASSERT_EQ(0, set_nonblock(channel->fd, true));
	EXPECT_ERRNO(EAGAIN, rdma_get_cm_event(channel, &ev));
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
}

static void *get_event_in_thread(void *arg)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(arg, &ev))
		return NULL;
	id = ev->id;
	return rdma_ack_cm_event(ev) ? NULL : id;
}

/* rdma_get_cm_event() sleeps until an event comes. */
TEST_F(cm, get_event_sleeps)
{
	pthread_t thread;
	void *got;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pthread_create(&thread, NULL, get_event_in_thread,
				    self->s->channel));
	usleep(30000);
	ASSERT_EQ(0, rdma_connect(self->c->id, &self->opts.connect));
	ASSERT_EQ(0, pthread_join(thread, &got));
	EXPECT_NE(NULL, got);
	self->s->id = got;
}

static void *destroy_id_in_thread(void *arg)
{
	return (void *)(intptr_t)rdma_destroy_id(arg);
}

TEST_F(cm, destroy_waits_for_acks)
{
	struct rdma_cm_event *ev;
	struct timespec ts;
	pthread_t thread;
	void *ret = NULL;

	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, rdma_get_cm_event(self->s->channel, &ev));
	ASSERT_EQ(self->s->id, ev->id);
	rdma_destroy_qp(self->s->id);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_id_in_thread,
				    self->s->id));
	ts = real_time_in(50);
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &ret, &ts));
	ASSERT_EQ(0, rdma_ack_cm_event(ev));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	self->s->id = NULL;
}

TEST_F(cm, ack_of_nothing)
{
	EXPECT_ERRNO(EINVAL, rdma_ack_cm_event(NULL));
}

/* An id that moves takes its waiting events to the new channel. */
TEST_F(cm, migrate)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_TRUE(readable(self->s->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, rdma_migrate_id(self->s->id, channel));
	EXPECT_EQ(channel, self->s->id->channel);
	EXPECT_FALSE(readable(self->s->channel->fd, QUIET_MS));
	ASSERT_EQ(0, expect_event(channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->s->event));
	EXPECT_EQ(self->s->id, self->s->event.id);
	end_close(self->s);
	rdma_destroy_event_channel(channel);
}

/* Functions of version 57, which Debian 12's librdmacm does not have. */
int rdma_write_cm_event(struct rdma_cm_id *id, enum rdma_cm_event_type event,
			int status, uint64_t arg);
#pragma weak rdma_write_cm_event

#define EVENT_USER		((enum rdma_cm_event_type)18)
#define OLD_LIBRARY		"librdmacm is older than version 57"

TEST_F(cm, written_event)
{
	struct rdma_cm_event *ev;
	uint64_t arg;

	if (!rdma_write_cm_event)
		SKIP(return, OLD_LIBRARY);
	EXPECT_ERRNO(EINVAL, rdma_write_cm_event(self->p.listen,
						 RDMA_CM_EVENT_ESTABLISHED, 0, 0));
	if (rdma_write_cm_event(self->p.listen, EVENT_USER, -5,
				0x123456789abcdef0)) {
		ASSERT_EQ(EOPNOTSUPP, errno);
		SKIP(return, "the kernel does not support it");
	}
	ASSERT_TRUE(readable(self->s->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, rdma_get_cm_event(self->s->channel, &ev));
	EXPECT_EQ(EVENT_USER, ev->event);
	EXPECT_EQ(self->p.listen, ev->id);
	EXPECT_EQ(NULL, ev->listen_id);
	EXPECT_EQ(-5, ev->status);
	/* param.arg */
	memcpy(&arg, &ev->param, sizeof(arg));
	EXPECT_EQ(0x123456789abcdef0, arg);
	EXPECT_EQ(0, rdma_ack_cm_event(ev));
	EXPECT_FALSE(readable(self->s->channel->fd, 0));
}

TEST_HARNESS_MAIN
