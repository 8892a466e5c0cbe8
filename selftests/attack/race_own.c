// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests races on queue pairs that the program creates itself, shared receive
 * queues, address handles and multicast groups.  A failure is an undocumented
 * error, a hang, a lost slot, or an object that is left.
 */
#include <kselftest_harness.h>

#include "race.h"

FIXTURE(race) {
	struct race r;
};

FIXTURE_SETUP(race)
{
	self->r.refcnt = rp_module_number("refcnt");
	ASSERT_EQ(0, race_init(&self->r));
}

FIXTURE_TEARDOWN(race)
{
	rp_end_close(&self->r.client);
	rp_end_close(&self->r.server);
	EXPECT_EQ(self->r.refcnt, rp_wait_refcnt(self->r.refcnt));
}

/*
 * Microseconds between changes.  They grow, so that at last a queue pair keeps
 * its state long enough to be brought up on any machine.
 */
static unsigned int calm;

/* The client's end, with the queue pair of this moment. */
static struct rp_end client_of(struct race *r)
{
	struct rp_end end = r->client;

	end.qp = load(&r->client.qp);
	return end;
}

static int step_error(struct race *r)
{
	struct rp_end end = client_of(r);

	usleep(300 + load(&calm) / 4);
	return rp_move(&end, RPOST_QPS_ERR);
}

static int step_reset(struct race *r)
{
	struct rp_end end = client_of(r);

	usleep(700 + load(&calm) / 2);
	return rp_move(&end, RPOST_QPS_RESET);
}

static int step_bring_up(struct race *r)
{
	struct rp_end end = client_of(r);
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;
	int ret;

	ret = rp_own_addr(&end, &ah);
	if (ret)
		return ret;
	attr = rp_init_attr(RPOST_QPT_RC, ah.port_num);
	ret = rp_modify(&end, &attr);
	if (ret)
		return ret;
	attr = rp_rtr_attr(RPOST_QPT_RC, &ah, r->server.qp_num);
	ret = rp_modify(&end, &attr);
	if (ret)
		return ret;
	attr = rp_rts_attr(RPOST_QPT_RC);
	return rp_modify(&end, &attr);
}

/* Read the counts, and begin to count where that is possible. */
static int step_count(struct race *r)
{
	struct rpost_count_wrs cmd;
	struct rp_end end = client_of(r);

	rp_count_wrs(&end, RPOST_COUNT_WRS_START, &cmd);
	return rp_count_wrs(&end, 0, &cmd);
}

/* Replace the client's queue pair. */
static int renew_qp(struct race *r)
{
	struct rp_end end = r->client;

	usleep(5000 + calm);
	store(&calm, calm + calm / 16 + 200);
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_QP, end.qp));
	RP_TRY(rp_create_own(&end, RPOST_QPT_RC, 0));
	r->client.qp_num = end.qp_num;
	store(&r->client.qp, end.qp);
	return 0;
}

/*
 * Several threads move a working queue pair to all states, while it is
 * destroyed.
 */
TEST_F(race, modified_posted_destroyed)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_post_send, .errors = { -ENOENT, -EINVAL, -ENOMEM },
		  .succeeds = true },
		{ .step = step_post_recv, .errors = { -ENOENT, -EINVAL, -ENOMEM },
		  .succeeds = true },
		{ .step = step_query_qp, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_count, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
		{ .step = step_poll, .succeeds = true },
		{ .step = step_error, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
		{ .step = step_reset, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
		{ .step = step_bring_up, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
		{ .step = step_bring_up, .errors = { -ENOENT, -EINVAL } },
	};
	int i;

	ASSERT_EQ(0, rp_create_own(&r->server, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&r->client, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, run_race(r, w, ARRAY_SIZE(w), renew_qp));
	/*
	 * The last queue pair has all of its slots and only its own
	 * completions.
	 */
	ASSERT_EQ(0, rp_move(&r->client, RPOST_QPS_RESET));
	ASSERT_EQ(0, step_poll(r));
	EXPECT_TRUE(rp_quiet_cq(&r->client.cq));
	ASSERT_EQ(0, step_bring_up(r));
	for (i = 0; i < RP_DEPTH; i++) {
		ASSERT_EQ(0, step_post_recv(r));
		ASSERT_EQ(0, step_post_send(r));
	}
	EXPECT_EQ(-ENOMEM, step_post_recv(r));
	EXPECT_EQ(-ENOMEM, step_post_send(r));
	EXPECT_EQ(4, rp_num_objects(r->client.fd));
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

/* ------------------------------------------------- shared receive queues */

static int step_post_srq(struct race *r)
{
	return rp_post_srq(r->client.fd, load(&r->handle), 1, r->mem, 64,
			   r->mr.lkey);
}

static int step_srq_limit(struct race *r)
{
	return rp_srq_limit(r->client.fd, load(&r->handle), 1);
}

static int step_query_srq(struct race *r)
{
	struct rpost_query_srq cmd;

	return rp_query_srq(r->client.fd, load(&r->handle), &cmd);
}

static int step_qp_on_srq(struct race *r)
{
	struct rp_end end = r->client;
	int ret = rp_create_own(&end, RPOST_QPT_RC, load(&r->handle));

	/* A queue pair with srq 0 has no shared queue. */
	return ret ? ret : rp_destroy(end.fd, RPOST_OBJ_QP, end.qp);
}

static int renew_srq(struct race *r)
{
	struct rpost_create_srq srq;
	int ret;

	RP_TRY(rp_create_srq(r->client.fd, r->client.pd, 16, &srq));
	store(&r->handle, srq.handle);
	usleep(1000);
	do {
		ret = rp_destroy(r->client.fd, RPOST_OBJ_SRQ, srq.handle);
		if (ret == -EBUSY)
			store(&r->handle, INT32_MAX);
		sched_yield();
	} while (ret == -EBUSY);
	return ret;
}

TEST_F(race, srq_destroyed)
{
	struct worker w[] = {
		{ .step = step_post_srq, .errors = { -ENOENT, -ENOMEM },
		  .succeeds = true, .fails = true },
		{ .step = step_post_srq, .errors = { -ENOENT, -ENOMEM } },
		{ .step = step_srq_limit, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_query_srq, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_qp_on_srq, .errors = { -ENOENT }, .succeeds = true },
	};

	RUN_RACE(&self->r, w, renew_srq, 3);
}

/* Messages arrive for a shared queue while receivers come and go. */
static int step_send_to(struct race *r)
{
	struct rp_send send = rp_empty_send(RPOST_WR_SEND, 1);
	struct rp_end *s = &r->server;
	struct rpost_wc wc;
	int ret;

	ret = rp_post(s->fd, RPOST_IOC_POST_SEND, load(&s->qp), &send,
		      send.wr.size, 1, NULL);
	while (rp_poll_cq(&s->cq, &wc) == 1)
		;
	return ret;
}

/* Connect a sender and a receiver, which takes from the shared queue. */
static int connect_receiver(struct race *r, struct rp_end *end, struct rp_end *peer)
{
	*end = r->client;
	*peer = r->server;
	RP_TRY(rp_create_own(peer, RPOST_QPT_RC, 0));
	RP_TRY(rp_create_own(end, RPOST_QPT_RC, r->handle));
	RP_TRY(rp_bring_up(peer, RPOST_QPT_RC, end->qp_num));
	RP_TRY(rp_bring_up(end, RPOST_QPT_RC, peer->qp_num));
	store(&r->server.qp, peer->qp);
	return 0;
}

static int renew_receiver(struct race *r)
{
	struct rp_end end, peer;

	RP_TRY(connect_receiver(r, &end, &peer));
	usleep(3000);
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_QP, end.qp));
	return rp_destroy(peer.fd, RPOST_OBJ_QP, peer.qp);
}

TEST_F(race, receivers_of_a_srq)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_post_srq, .errors = { -ENOMEM }, .succeeds = true },
		{ .step = step_send_to, .errors = { -ENOENT, -EINVAL, -ENOMEM },
		  .succeeds = true },
		{ .step = step_poll, .succeeds = true },
	};
	struct rpost_create_srq srq;
	struct rp_end end, peer;
	uint32_t i;

	ASSERT_EQ(0, rp_create_srq(r->client.fd, r->client.pd, 8, &srq));
	store(&r->handle, srq.handle);
	EXPECT_EQ(0, run_race(r, w, ARRAY_SIZE(w), renew_receiver));
	/* No slot was lost: as many messages arrive as the queue has slots. */
	while (!step_post_srq(r))
		;
	ASSERT_EQ(0, connect_receiver(r, &end, &peer));
	ASSERT_EQ(0, step_poll(r));
	for (i = 0; i < srq.max_wr; i++) {
		struct rpost_wc wc;

		ASSERT_EQ(0, step_send_to(r));
		ASSERT_EQ(1, rp_wait_cq(&r->client.cq, &wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, wc.status);
	}
	for (i = 0; i < srq.max_wr; i++)
		ASSERT_EQ(0, step_post_srq(r));
	EXPECT_EQ(-ENOMEM, step_post_srq(r));
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

/* --------------------------------------------------------------- groups */

static int group_cmd(struct race *r, unsigned long nr)
{
	return rp_mcast(r->client.fd, nr, load(&r->handle), 3);
}

static int step_attach(struct race *r)
{
	return group_cmd(r, RPOST_IOC_ATTACH_MCAST);
}

static int step_detach(struct race *r)
{
	return group_cmd(r, RPOST_IOC_DETACH_MCAST);
}

static int renew_member(struct race *r)
{
	struct rp_end end = r->client;

	usleep(1000);
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_QP, r->handle));
	RP_TRY(rp_create_own(&end, RPOST_QPT_UD, 0));
	store(&r->handle, end.qp);
	return 0;
}

TEST_F(race, attached_and_destroyed)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_attach, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_attach, .errors = { -ENOENT } },
		{ .step = step_detach, .errors = { -ENOENT, -EINVAL }, .succeeds = true },
	};
	struct rp_end end = r->client;

	ASSERT_EQ(0, rp_create_own(&end, RPOST_QPT_UD, 0));
	store(&r->handle, end.qp);
	if (step_attach(r) == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	EXPECT_EQ(0, run_race(r, w, ARRAY_SIZE(w), renew_member));
	EXPECT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_QP, r->handle));
	EXPECT_EQ(3, rp_num_objects(r->client.fd));
	SKIP_UNMET(w, ARRAY_SIZE(w));
}

/* Two threads destroy the same handle, and a third uses it. */
static int step_destroy(struct race *r)
{
	int ret = rp_destroy(r->client.fd, RPOST_OBJ_QP, load(&r->client.qp));

	if (ret)
		return ret;
	struct rp_end end = r->client;

	ret = rp_create_own(&end, RPOST_QPT_RC, 0);
	if (!ret)
		store(&r->client.qp, end.qp);
	return ret;
}

TEST_F(race, destroyed_by_two)
{
	struct race *r = &self->r;
	struct worker w[] = {
		{ .step = step_destroy, .errors = { -ENOENT }, .succeeds = true },
		{ .step = step_destroy, .errors = { -ENOENT } },
		{ .step = step_bring_up, .errors = { -ENOENT, -EINVAL } },
		{ .step = step_reset, .errors = { -ENOENT, -EINVAL } },
		{ .step = step_post_recv, .errors = { -ENOENT, -EINVAL, -ENOMEM } },
	};

	ASSERT_EQ(0, rp_create_own(&r->server, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&r->client, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, run_race(r, w, ARRAY_SIZE(w), no_change));
	EXPECT_EQ(4, rp_num_objects(r->client.fd));
}

TEST_HARNESS_MAIN
