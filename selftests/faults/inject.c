// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lets callbacks of the module fail: connection requests, completions, events,
 * the draining of queue pairs, new devices.  A failure means that programs get
 * a wrong error, that something is left behind, or that the next try does not
 * work.
 *
 * Needs root and a kernel with fault injection; tests with devices also need
 * RPOST_TEST_REMOVE and RPOST_TEST_ADD, see removal.c.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/wait.h>

#include "injection.h"
#include "path.h"
#include "rpost_own.h"

FIXTURE(inject) {
	struct injection in;
};

FIXTURE_SETUP(inject)
{
	ASSERT_EQ(0, inject_begin(&self->in));
}

FIXTURE_TEARDOWN(inject)
{
	EXPECT_EQ(0, inject_end(&self->in));
}

static const char * const request_points[] = { "fail_backlog", "fail_request" };

/* A request fails once; the client's next repetition is answered. */
TEST_F(inject, request_once)
{
	unsigned int i;
	long before;

	NEED_INJECTION();
	for (i = 0; i < ARRAY_SIZE(request_points); i++) {
		before = injected(request_points[i]);
		ASSERT_EQ(0, inject(request_points[i], 1));
		ASSERT_EQ(0, rp_client_route(&self->in.c, rp_port(self->in.s.fd,
							       self->in.listener)));
		ASSERT_EQ(0, rp_create_qp(&self->in.c, 0));
		ASSERT_EQ(0, rp_connect(self->in.c.fd, self->in.c.id));
		ASSERT_TRUE(rp_readable(self->in.s.channel, INJECT_MS));
		EXPECT_EQ(before + 1, injected(request_points[i]));
		ASSERT_EQ(0, rp_take_request(&self->in.s, self->in.listener));
		ASSERT_EQ(0, rp_create_qp(&self->in.s, 0));
		ASSERT_EQ(0, rp_accept(self->in.s.fd, self->in.s.id));
		ASSERT_TRUE(rp_readable(self->in.c.channel, INJECT_MS));
		ASSERT_EQ(0, rp_expect(self->in.c.channel, self->in.c.id,
				       RPOST_EVENT_ESTABLISHED));
		ASSERT_TRUE(rp_readable(self->in.s.channel, INJECT_MS));
		ASSERT_EQ(0, rp_expect(self->in.s.channel, self->in.s.id,
				       RPOST_EVENT_ESTABLISHED));
		EXPECT_EQ(0, inject_writes_work(&self->in));
		ASSERT_EQ(0, rp_leave(&self->in.c));
		ASSERT_EQ(0, rp_leave(&self->in.s));
	}
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* Each request fails, and the client gives up. */
TEST_F(inject, request_never)
{
	unsigned int i;
	long before;
	int objects;

	NEED_INJECTION();
	objects = rp_num_objects(self->in.s.fd);
	for (i = 0; i < ARRAY_SIZE(request_points); i++) {
		before = injected(request_points[i]);
		ASSERT_EQ(0, inject(request_points[i], -1));
		ASSERT_EQ(0, rp_client_route(&self->in.c, rp_port(self->in.s.fd,
							       self->in.listener)));
		ASSERT_EQ(0, rp_create_qp(&self->in.c, 0));
		ASSERT_EQ(0, rp_connect(self->in.c.fd, self->in.c.id));
		EXPECT_TRUE(wait_injected(request_points[i], before));
		EXPECT_TRUE(rp_quiet(self->in.s.channel));
		ASSERT_EQ(0, rp_leave(&self->in.c));
		EXPECT_EQ(objects, rp_num_objects(self->in.s.fd));
		ASSERT_EQ(0, inject(request_points[i], 0));
		EXPECT_EQ(0, inject_next_works(&self->in));
	}
}

static bool wait_overrun(struct rp_cq *cq)
{
	uint64_t end = rp_now_ms() + INJECT_MS;

	while (rp_now_ms() < end) {
		if (__atomic_load_n(&cq->ring->flags, __ATOMIC_RELAXED) &
		    RPOST_RING_OVERRUN)
			return true;
		if (rp_fetch(cq))
			return false;
		usleep(1000);
	}
	return false;
}

/* A completion is lost: the ring reports an overrun; the slot is free. */
TEST_F(inject, lost_completion)
{
	struct rp_end *c = &self->in.c;
	struct rpost_wc wc;
	long before;

	NEED_INJECTION();
	ASSERT_EQ(0, rp_join(c, &self->in.s, self->in.listener, 0));
	ASSERT_EQ(0, inject_writes_work(&self->in));
	before = injected("fail_ring");
	ASSERT_EQ(0, inject("fail_ring", 1));
	ASSERT_EQ(0, inject_write(&self->in));
	EXPECT_TRUE(wait_overrun(&c->cq));
	EXPECT_LT(before, injected("fail_ring"));
	EXPECT_EQ(0, rp_poll_cq(&c->cq, &wc));
	EXPECT_EQ(0, inject_writes_work(&self->in));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(&self->in.s));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* A user is at a limit, so a charge fails. */
TEST_F(inject, user_at_the_limit)
{
	struct rp_end *c = &self->in.c;
	uint32_t device;
	struct rp_cq cq;
	long before;
	int objects;

	NEED_INJECTION();
	device = rp_first_device(c->fd);
	before = injected("fail_charge");
	objects = rp_num_objects(c->fd);
	ASSERT_EQ(0, inject("fail_charge", 1));
	EXPECT_EQ(-ENOMEM, rp_create_cq(c->fd, device, 16, -1, &cq));
	EXPECT_EQ(before + 1, injected("fail_charge"));
	EXPECT_EQ(objects, rp_num_objects(c->fd));
	ASSERT_EQ(0, rp_create_cq(c->fd, device, 16, -1, &cq));
	rp_unmap_cq(&cq);
}

/*
 * A write of memory without a key has waited for it, and the handle of its queue pair is
 * another's now: what was registered is not used there.
 */
TEST_F(inject, another_queue_pair)
{
	const uint32_t flags = RPOST_QP_ANY_MEMORY | RPOST_QP_SIG_ALL;
	char *mem = rp_pages(INJECT_BYTES);
	struct rp_end *c = &self->in.c;
	struct rp_send write;
	struct rpost_wc wc;
	long before;

	NEED_INJECTION();
	ASSERT_NE(NULL, mem);
	memset(mem, 0x5a, INJECT_BYTES);
	write = rp_send(RPOST_WR_RDMA_WRITE, 1, mem, INJECT_BYTES, 0);
	write.wr.remote_addr = (uintptr_t)self->in.buf;
	write.wr.rkey = self->in.mr.rkey;
	ASSERT_EQ(0, rp_join(c, &self->in.s, self->in.listener, flags));
	before = injected("fail_domain");
	ASSERT_EQ(0, inject("fail_domain", 1));
	ASSERT_EQ(0, rp_post_send(c, &write));
	EXPECT_EQ(before + 1, injected("fail_domain"));
	ASSERT_EQ(1, rp_wait_cq(&c->cq, &wc));
	EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
	EXPECT_EQ(0, memcmp(mem, self->in.buf, INJECT_BYTES));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(&self->in.s));
	munmap(mem, INJECT_BYTES);
}

/* A completion has a general error. */
TEST_F(inject, failed_completion)
{
	struct rp_end *c = &self->in.c;
	struct rpost_wc wc;

	NEED_INJECTION();
	ASSERT_EQ(0, rp_join(c, &self->in.s, self->in.listener, 0));
	ASSERT_EQ(0, inject("fail_completion", 1));
	ASSERT_EQ(0, inject_write(&self->in));
	ASSERT_EQ(1, rp_wait_cq(&c->cq, &wc));
	EXPECT_EQ(RPOST_WC_GENERAL_ERR, wc.status);
	EXPECT_EQ(c->qp_num, wc.qp_num);
	/* The other side is told only when the program disconnects. */
	ASSERT_EQ(0, rp_disconnect(c->fd, c->id));
	ASSERT_EQ(0, rp_expect(self->in.s.channel, self->in.s.id,
			       RPOST_EVENT_DISCONNECTED));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(&self->in.s));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* One asynchronous event is lost; the next one arrives. */
TEST_F(inject, lost_event)
{
	struct rpost_async_event event;
	struct rpost_create_srq srq;
	long before;
	int channel;

	NEED_INJECTION();
	ASSERT_EQ(0, rp_create_srq(self->in.s.fd, self->in.s.pd, 8, &srq));
	ASSERT_EQ(0, rp_create_own(&self->in.c, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&self->in.s, RPOST_QPT_RC, srq.handle));
	ASSERT_EQ(0, rp_bring_up(&self->in.c, RPOST_QPT_RC, self->in.s.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->in.s, RPOST_QPT_RC, self->in.c.qp_num));
	channel = rp_async_channel(self->in.s.fd, self->in.s.device);
	ASSERT_LE(0, channel);
	/* A port may have events as well, so let all events fail. */
	before = injected("fail_async");
	ASSERT_EQ(0, inject("fail_async", -1));
	ASSERT_EQ(0, rp_reach_limit(&self->in.c, &self->in.s, srq.handle));
	EXPECT_TRUE(wait_injected("fail_async", before));
	EXPECT_TRUE(rp_quiet(channel));
	ASSERT_EQ(0, inject("fail_async", 0));
	ASSERT_EQ(0, rp_reach_limit(&self->in.c, &self->in.s, srq.handle));
	EXPECT_EQ(0, rp_async_wait(channel, RPOST_ASYNC_SRQ_LIMIT_REACHED,
				   &event));
	close(channel);
}

/* Connect two queue pairs, and post receives and sends. */
static int join_busy(FIXTURE_DATA(inject) *self)
{
	int i;

	RP_TRY(rp_join(&self->in.c, &self->in.s, self->in.listener, 0));
	for (i = 0; i < 8; i++) {
		RP_TRY(rp_post_recv(&self->in.c, i, NULL, 0, 0));
		RP_TRY(rp_post_recv(&self->in.s, i, NULL, 0, 0));
		RP_TRY(inject_write(&self->in));
	}
	return 0;
}

/* A device does not flush, so destroying the queue pair ends its work. */
TEST_F(inject, no_flush)
{
	long before;
	int i;

	NEED_INJECTION();
	ASSERT_EQ(0, inject_set_drain("100"));
	before = injected("fail_drain");
	ASSERT_EQ(0, inject("fail_drain", -1));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, join_busy(self));
		ASSERT_EQ(0, rp_leave(&self->in.c));
		EXPECT_TRUE(rp_quiet_cq(&self->in.c.cq));
		ASSERT_EQ(0, rp_leave(&self->in.s));
	}
	EXPECT_LT(before, injected("fail_drain"));
	ASSERT_EQ(0, inject("fail_drain", 0));
	EXPECT_EQ(0, inject_next_works(&self->in));
	/* The last close must end a queue pair that is not flushed, too. */
	ASSERT_EQ(0, inject("fail_drain", -1));
	ASSERT_EQ(0, join_busy(self));
}

#define DRAIN_MS	2000
#define DRAIN_PAIRS	20

/* Only the first queue pair is waited for, until the device flushes again. */
TEST_F(inject, no_flush_of_many)
{
	struct rp_end c, s;
	uint64_t began;
	int i, round;

	NEED_INJECTION();
	ASSERT_EQ(0, inject_set_drain("2000"));
	for (round = 0; round < 2; round++) {
		/*
		 * The device has flushed, so the next queue pair is waited for.  A
		 * slow guest may need more than a millisecond for one of them.
		 */
		for (i = 0; i < 5; i++)
			ASSERT_EQ(0, inject_next_works(&self->in));
		ASSERT_EQ(0, rp_end_init(&c));
		ASSERT_EQ(0, rp_end_init(&s));
		for (i = 0; i < DRAIN_PAIRS; i++)
			ASSERT_EQ(0, rp_own_join(&c, &s, RPOST_QPT_RC));
		ASSERT_EQ(0, inject("fail_drain", -1));
		began = rp_now_ms();
		rp_end_close(&c);
		EXPECT_LE(DRAIN_MS - TEST_TICKS_MS, rp_now_ms() - began);
		rp_end_close(&s);
		/*
		 * If each were waited for, closing would take four times as
		 * long.
		 */
		EXPECT_GT(DRAIN_PAIRS / 2 * DRAIN_MS, rp_now_ms() - began);
		ASSERT_EQ(0, inject("fail_drain", 0));
		EXPECT_EQ(0, inject_next_works(&self->in));
	}
}

/* A program that is killed does not wait for the device. */
TEST_F(inject, no_flush_killed)
{
	struct rp_end end;
	uint64_t began;
	long before;
	int status;
	pid_t pid;

	NEED_INJECTION();
	ASSERT_EQ(0, inject_set_drain("60000"));
	/* The device has flushed, so destroying the queue pair waits. */
	ASSERT_EQ(0, inject_next_works(&self->in));
	before = injected("fail_drain");
	ASSERT_EQ(0, inject("fail_drain", -1));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!rp_end_init(&end) && !rp_create_own(&end, RPOST_QPT_RC, 0) &&
		    !rp_bring_up(&end, RPOST_QPT_RC, RP_NO_QPN))
			rp_destroy(end.fd, RPOST_OBJ_QP, end.qp);
		_exit(1);
	}
	EXPECT_TRUE(wait_injected("fail_drain", before));
	began = rp_now_ms();
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_GT(TEST_TIMEOUT_MS, rp_now_ms() - began);
	ASSERT_EQ(0, inject("fail_drain", 0));
}

/* ------------------------------------------------------------- devices */

/* A device that does not flush goes; the module fails to add it again. */
TEST_F(inject, devices)
{
	static const char * const points[] = { "fail_device", "fail_device_id" };
	unsigned int i;
	long before;
	int fd;

	NEED_INJECTION();
	RP_NEED_REMOVAL();
	ASSERT_EQ(0, inject_set_drain("100"));
	ASSERT_EQ(0, inject("fail_drain", -1));
	ASSERT_EQ(0, join_busy(self));
	fd = rp_open();
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		before = injected(points[i]);
		ASSERT_EQ(0, rp_remove_device());
		ASSERT_EQ(0, inject(points[i], 1));
		ASSERT_EQ(0, rp_add_device());
		EXPECT_EQ(before + 1, injected(points[i]));
		EXPECT_EQ(0, rp_first_device(fd));
	}
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, rp_add_device());
	EXPECT_NE(0, rp_first_device(fd));
	close(fd);
	/* The files still have objects of the old device until they close. */
	rp_end_close(&self->in.c);
	rp_end_close(&self->in.s);
	ASSERT_EQ(0, inject_init(&self->in));
	ASSERT_EQ(0, inject("fail_drain", 0));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* Give an id a path from the host's address to itself. */
static int set_path_to_self(struct rp_end *end)
{
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };
	struct ib_path_rec_data path;

	memcpy(gid + 12, &rp_addr4.sin_addr, 4);
	rp_pack_path(&path, gid, gid);
	return rp_set_path(end, &path, sizeof(path));
}

/*
 * The connection manager knows a device that the module failed to add.  Its ids
 * and its removal find nothing of the module's, and they get no route, which
 * the removal would have to end (kmod/id/route.c).
 */
static void not_added(struct __test_metadata *_metadata, FIXTURE_DATA(inject) *self,
		      const char *point)
{
	const uint16_t port = 7480;
	struct rpost_connect connect = { .size = sizeof(connect) };
	struct rpost_query_id query;
	struct rpost_get_event event;
	struct rp_end c, s;
	uint64_t end = rp_now_ms() + INJECT_MS;
	int ret;

	rp_end_close(&self->in.c);
	rp_end_close(&self->in.s);
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, inject(point, 1));
	ASSERT_EQ(0, rp_add_device());
	c.fd = rp_open();
	s.fd = rp_open();
	c.channel = rp_event_channel(c.fd);
	s.channel = rp_event_channel(s.fd);
	ASSERT_EQ(0, rp_create_id_of(c.fd, c.channel, RPOST_PS_UDP,
				     RPOST_QPT_UD, &c.id));
	ASSERT_EQ(0, rp_create_id_of(s.fd, s.channel, RPOST_PS_UDP,
				     RPOST_QPT_UD, &s.id));
	/* The addresses of the new device appear after a moment. */
	do {
		ret = rp_bind(s.fd, s.id, port);
	} while (ret == -ENODEV && rp_now_ms() < end && !usleep(1000));
	ASSERT_EQ(0, ret);
	EXPECT_EQ(-ENODEV, rp_query_id(s.fd, s.id, &query));
	ASSERT_EQ(0, rp_listen(s.fd, s.id, 4));
	ASSERT_EQ(0, rp_resolve_addr(c.fd, c.id, port));
	ASSERT_EQ(0, rp_expect(c.channel, c.id, RPOST_EVENT_ADDR_RESOLVED));
	EXPECT_EQ(-ENODEV, rp_resolve_route(c.fd, c.id));
	EXPECT_EQ(-ENODEV, rp_query_id(c.fd, c.id, &query));
	ASSERT_EQ(0, set_path_to_self(&c));
	ASSERT_EQ(0, rp_expect(c.channel, c.id, RPOST_EVENT_ROUTE_RESOLVED));
	connect.id = c.id;
	ASSERT_EQ(0, rp_ioctl(c.fd, RPOST_IOC_CONNECT, &connect));
	/* The client is told UNREACHABLE, and no request reaches the server. */
	ASSERT_EQ(0, rp_get_event(c.channel, &event));
	EXPECT_EQ(RPOST_EVENT_UNREACHABLE, event.event);
	EXPECT_FALSE(rp_readable(s.channel, 0));
	close(c.channel);
	close(s.channel);
	close(c.fd);
	close(s.fd);
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, rp_add_device());
	ASSERT_EQ(0, inject_init(&self->in));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

TEST_F(inject, unknown_device)
{
	NEED_INJECTION();
	RP_NEED_REMOVAL();
	not_added(_metadata, self, "fail_device");
}

/* The add failed late, when the module had allocated its struct of the device. */
TEST_F(inject, unnumbered_device)
{
	NEED_INJECTION();
	RP_NEED_REMOVAL();
	not_added(_metadata, self, "fail_device_id");
}

/* Every point has failed in some test. */
TEST_F(inject, every_point_was_hit)
{
	unsigned int missed;

	NEED_INJECTION();
	EXPECT_LT(0, inject_points(false, &missed));
	EXPECT_EQ(0, missed);
}

TEST_HARNESS_MAIN
