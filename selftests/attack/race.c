// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that objects can be destroyed while other threads use them.  A failure
 * is an undocumented error, a hang, or an object that is left.
 */
#include <kselftest_harness.h>

#include "race.h"

FIXTURE(race) {
	struct race r;
};

FIXTURE_SETUP(race)
{
	struct race *r = &self->r;

	r->refcnt = rp_module_number("refcnt");
	ASSERT_EQ(0, race_init(r));
	ASSERT_EQ(0, rp_listener(&r->server, &r->listener));
}

FIXTURE_TEARDOWN(race)
{
	rp_end_close(&self->r.client);
	rp_end_close(&self->r.server);
	EXPECT_EQ(self->r.refcnt, rp_wait_refcnt(self->r.refcnt));
}

/* ------------------------------------------------------- queue pairs */

static int step_disconnect(struct race *r)
{
	int ret = rp_disconnect(r->client.fd, load(&r->client.id));

	usleep(2000);
	return ret;
}

static int connect_and_leave(struct race *r)
{
	RP_TRY(rp_join(&r->client, &r->server, r->listener, 0));
	usleep(3000);
	RP_TRY(rp_leave(&r->client));
	return rp_leave(&r->server);
}

TEST_F(race, qp_destroyed)
{
	struct worker w[] = {
		{ .step = step_post_send, .errors = { -ENOENT, -EINVAL, -ENOMEM },
		  .succeeds = true, .fails = true },
		{ .step = step_post_recv, .errors = { -ENOENT, -ENOMEM }, .succeeds = true },
		{ .step = step_query_qp, .errors = { -ENOENT }, .succeeds = true, .fails = true },
		{ .step = step_poll, .succeeds = true },
	};

	/* Domain and completion queue; the region, or the listener. */
	EXPECT_EQ(0, run_race(&self->r, w, ARRAY_SIZE(w), connect_and_leave));
	EXPECT_EQ(3, rp_num_objects(self->r.client.fd));
	EXPECT_EQ(3, rp_num_objects(self->r.server.fd));
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

TEST_F(race, disconnected_while_posting)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_post_send, .errors = { -ENOENT, -EINVAL, -ENOMEM } },
		{ .step = step_post_recv, .errors = { -ENOENT, -ENOMEM } },
		{ .step = step_disconnect, .errors = { -ENOENT, -ENOTCONN } },
		{ .step = step_poll },
	};
	uint64_t since = rp_now_ms();
	struct rpost_get_event event;

	do {
		ASSERT_EQ(0, rp_join(&r->client, &r->server, r->listener, 0));
		ASSERT_EQ(0, start(r, w, ARRAY_SIZE(w)));
		ASSERT_EQ(0, rp_get_event(r->server.channel, &event));
		EXPECT_EQ(RPOST_EVENT_DISCONNECTED, event.event);
		ASSERT_EQ(0, rp_disconnect(r->server.fd, r->server.id));
		ASSERT_EQ(0, rp_leave(&r->client));
		EXPECT_EQ(0, stop(r, w, ARRAY_SIZE(w)));
		ASSERT_EQ(0, rp_leave(&r->server));
	} while (go_on(since, w, ARRAY_SIZE(w)));
}

/* ------------------------------------------- completion queues, regions */

static int step_poll_any(struct race *r)
{
	struct rp_cq cq = { .fd = r->client.fd, .cmd.handle = load(&r->handle) };

	return rp_fetch(&cq);
}

static int step_arm_any(struct race *r)
{
	struct rp_cq cq = { .fd = r->client.fd, .cmd.handle = load(&r->handle) };

	return rp_arm_cq(&cq, cq.cmd.handle & RPOST_ARM_SOLICITED);
}

static int step_map_any(struct race *r)
{
	size_t page = getpagesize();
	void *p = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED,
		       r->client.fd, load(&r->handle) * page);

	if (p == MAP_FAILED)
		return -errno;
	*(volatile char *)((char *)p + offsetof(struct rpost_ring, head)) = 1;
	munmap(p, page);
	return 0;
}

static int renew_cq(struct race *r)
{
	struct rp_cq cq;

	RP_TRY(rp_create_cq(r->client.fd, r->client.device, 16, -1, &cq));
	rp_unmap_cq(&cq);
	store(&r->handle, cq.cmd.handle);
	if (r->rounds % 2)
		usleep(100);
	return rp_destroy(r->client.fd, RPOST_OBJ_CQ, cq.cmd.handle);
}

TEST_F(race, cq_destroyed)
{
	struct worker w[] = {
		{ .step = step_poll_any, .errors = { -ENOENT }, .succeeds = true, .fails = true },
		{ .step = step_arm_any, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_map_any, .errors = { -ENOENT }, .succeeds = true },
	};

	RUN_RACE(&self->r, w, renew_cq, 3);
}

/*
 * Destroy the object @r->handle; if it stays busy, hide it from the others.
 * Return how often it was busy, or a negative errno.
 */
static int destroy_busy(struct race *r, uint32_t type)
{
	uint32_t handle = load(&r->handle);
	int ret, busy = 0;

	while ((ret = rp_destroy(r->client.fd, type, handle)) == -EBUSY) {
		if (++busy == 20)
			store(&r->handle, 0);
		sched_yield();
	}
	return ret ? ret : busy;
}

static int step_register(struct race *r)
{
	struct rpost_reg_mr mr;
	int ret = rp_reg_mr(r->client.fd, load(&r->handle), r->mem, 64, 0, &mr);

	return ret ? ret : rp_destroy(r->client.fd, RPOST_OBJ_MR, mr.handle);
}

static int renew_pd(struct race *r)
{
	uint32_t pd;
	int ret;

	RP_TRY(rp_alloc_pd(r->client.fd, r->client.device, &pd));
	store(&r->handle, pd);
	usleep(200);
	ret = destroy_busy(r, RPOST_OBJ_PD);
	if (ret > 0)
		r->waits = false;
	return ret < 0 ? ret : 0;
}

TEST_F(race, pd_destroyed)
{
	struct worker w[] = {
		{ .step = step_register, .errors = { -ENOENT }, .succeeds = true, .fails = true },
		{ .step = step_register, .errors = { -ENOENT }, .succeeds = true },
	};
	struct race *r = &self->r;

	r->waits = true;
	EXPECT_EQ(0, run_race(r, w, ARRAY_SIZE(w), renew_pd));
	EXPECT_EQ(3, rp_num_objects(r->client.fd));
	RP_SKIP_UNMET(!r->waits, "no domain was busy");
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

/* Several threads destroy the same domain; one succeeds. */
static int step_destroy_pd(struct race *r)
{
	return rp_destroy(r->client.fd, RPOST_OBJ_PD, load(&r->handle));
}

static int alloc_pd(struct race *r)
{
	uint32_t pd;

	RP_TRY(rp_alloc_pd(r->client.fd, r->client.device, &pd));
	store(&r->handle, pd);
	while (rp_num_objects(r->client.fd) != 3)
		sched_yield();
	return 0;
}

TEST_F(race, destroyed_twice)
{
	struct worker w[] = {
		{ .step = step_destroy_pd, .errors = { -ENOENT } },
		{ .step = step_destroy_pd, .errors = { -ENOENT } },
	};

	EXPECT_EQ(0, run_race(&self->r, w, ARRAY_SIZE(w), alloc_pd));
	EXPECT_EQ(self->r.rounds, w[0].good + w[1].good);
}

/* ------------------------------------------------------ ids and events */

static int step_bind(struct race *r)
{
	return rp_bind(r->client.fd, load(&r->handle), 0);
}

static int step_resolve(struct race *r)
{
	return rp_resolve_addr(r->client.fd, load(&r->handle), 1);
}

static int step_listen(struct race *r)
{
	return rp_listen(r->client.fd, load(&r->handle), 1);
}

static int step_query_id(struct race *r)
{
	struct rpost_query_id cmd;

	return rp_query_id(r->client.fd, load(&r->handle), &cmd);
}

static int step_create_qp(struct race *r)
{
	struct rp_end end = r->client;
	int ret;

	end.id = load(&r->handle);
	ret = rp_create_qp(&end, 0);
	return ret ? ret : rp_destroy(end.fd, RPOST_OBJ_QP, end.qp);
}

static int step_migrate(struct race *r)
{
	static unsigned int turn;

	return rp_migrate(r->client.fd, load(&r->handle),
			  turn++ % 2 ? r->channel : r->client.channel);
}

static int step_fetch(struct race *r)
{
	struct rpost_get_event event = { .size = sizeof(event) };

	return rp_ioctl(r->client.channel, RPOST_IOC_GET_EVENT, &event);
}

static int renew_id(struct race *r)
{
	uint32_t id;
	int ret;

	RP_TRY(rp_create_id(r->client.fd, r->client.channel, &id));
	store(&r->handle, id);
	usleep(500);
	ret = destroy_busy(r, RPOST_OBJ_ID);
	return ret < 0 ? ret : 0;
}

TEST_F(race, id_destroyed)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_bind, .errors = { -ENOENT, -EINVAL },
		  .succeeds = true, .fails = true },
		{ .step = step_resolve, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
		{ .step = step_listen, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
		{ .step = step_query_id, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_create_qp, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
		{ .step = step_migrate, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_fetch, .errors = { -EAGAIN }, .succeeds = true },
	};

	r->channel = rp_event_channel(r->client.fd);
	ASSERT_LE(0, r->channel);
	ASSERT_EQ(0, fcntl(r->client.channel, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(0, run_race(r, w, ARRAY_SIZE(w), renew_id));
	EXPECT_EQ(3, rp_num_objects(r->client.fd));
	close(r->channel);
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

/* The id is destroyed as soon as its event comes, while rdma_cm's handler ends. */
static int step_resolved(struct race *r)
{
	int channel = rp_event_channel(r->client.fd), ret;
	struct rpost_get_event event;
	uint32_t id;

	if (channel < 0)
		return channel;
	ret = rp_create_id(r->client.fd, channel, &id);
	if (!ret) {
		ret = rp_resolve_addr(r->client.fd, id, 1);
		if (!ret)
			ret = rp_get_event(channel, &event);
		if (rp_destroy(r->client.fd, RPOST_OBJ_ID, id))
			ret = -EINVAL;
	}
	close(channel);
	return ret;
}

TEST_F(race, destroyed_when_resolved)
{
	struct worker w[] = {
		{ .step = step_resolved, .succeeds = true },
		{ .step = step_resolved, .succeeds = true },
		{ .step = step_resolved, .succeeds = true },
	};

	RUN_RACE(&self->r, w, no_change, 3);
}

/* Two threads create a queue pair on the same id; one succeeds. */
TEST_F(race, two_queue_pairs)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_create_qp, .errors = { -EINVAL }, .succeeds = true, .fails = true },
		{ .step = step_create_qp, .errors = { -EINVAL }, .succeeds = true, .fails = true },
	};
	uint32_t id;

	ASSERT_EQ(0, rp_create_id(r->client.fd, r->client.channel, &id));
	ASSERT_EQ(0, rp_bind(r->client.fd, id, 0));
	store(&r->handle, id);
	RUN_RACE(r, w, no_change, 4);
}

/*
 * Connection requests arrive, and are fetched and rejected, while their
 * listener is destroyed.  A rejection is sent only once; if it is lost, ib_cm
 * gives up after at most 102 s.
 */
static int step_ask(struct race *r)
{
	struct rp_end *end = &r->client;
	struct rpost_get_event event;
	unsigned int tries;
	int ret;

	ret = rp_client_route(end, load(&r->handle));
	if (ret)
		return ret;
	ret = rp_create_qp(end, 0);
	if (!ret)
		ret = rp_connect(end->fd, end->id);
	if (!ret)
		ret = rp_get_event(end->channel, &event);
	for (tries = 0; ret == -ETIME && tries < 5; tries++)
		ret = rp_get_event(end->channel, &event);
	if (!ret && event.event != RPOST_EVENT_REJECTED &&
	    event.event != RPOST_EVENT_UNREACHABLE)
		ret = -EPROTO;
	rp_leave(end);
	return ret;
}

static int step_reject(struct race *r)
{
	struct rpost_get_event event = { .size = sizeof(event) };
	int ret;

	ret = rp_ioctl(r->server.channel, RPOST_IOC_GET_EVENT, &event);
	if (ret || event.event != RPOST_EVENT_CONNECT_REQUEST)
		return ret;
	return rp_destroy(r->server.fd, RPOST_OBJ_ID, event.id);
}

TEST_F(race, listener_destroyed)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_ask, .succeeds = true },
		{ .step = step_reject, .errors = { -EAGAIN }, .succeeds = true },
		{ .step = step_reject, .errors = { -EAGAIN } },
	};
	uint64_t since = rp_now_ms();
	int rounds = 0;

	ASSERT_EQ(0, fcntl(r->server.channel, F_SETFL, O_NONBLOCK));
	store(&r->handle, rp_port(r->server.fd, r->listener));
	ASSERT_EQ(0, start(r, w, ARRAY_SIZE(w)));
	do {
		/* Some rounds are long enough to connect. */
		usleep(1000 << (rounds++ % 10));
		ASSERT_EQ(0, rp_destroy(r->server.fd, RPOST_OBJ_ID,
					r->listener));
		ASSERT_EQ(0, rp_listener(&r->server, &r->listener));
		store(&r->handle, rp_port(r->server.fd, r->listener));
	} while (go_on(since, w, ARRAY_SIZE(w)));
	/* Destroying the last listener also destroys its request. */
	ASSERT_EQ(0, rp_destroy(r->server.fd, RPOST_OBJ_ID, r->listener));
	EXPECT_EQ(0, stop(r, w, ARRAY_SIZE(w)));
	EXPECT_EQ(2, rp_num_objects(r->server.fd));
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

/* The file is closed while another thread runs a command on it. */
static int step_use_fd(struct race *r)
{
	uint32_t pd;
	int ret;

	ret = rp_alloc_pd(load(&r->handle), r->client.device, &pd);
	if (!ret)
		ret = rp_destroy(load(&r->handle), RPOST_OBJ_PD, pd);
	return ret;
}

static int open_and_close(struct race *r)
{
	int fd = rp_open();

	if (fd < 0)
		return -errno;
	store(&r->handle, fd);
	usleep(300);
	return close(fd);
}

TEST_F(race, file_closed)
{
	struct worker w[] = {
		{ .step = step_use_fd, .errors = { -EBADF, -ENOENT },
		  .succeeds = true, .fails = true },
		{ .step = step_use_fd, .errors = { -EBADF, -ENOENT }, .succeeds = true },
	};

	store(&self->r.handle, UINT32_MAX);
	RUN_RACE(&self->r, w, open_and_close, 3);
}

TEST_HARNESS_MAIN
