// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests address handles, also while sends use them, and multicast groups.  A
 * failure means that an invalid address is accepted, or that an address handle
 * is freed while a send still uses it.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "ud_pair.h"

UD_FIXTURE()

/* ------------------------------------------------------ address handles */

TEST_F(ud, ah_errors)
{
	struct rpost_ah_attr local = self->p.addr;
	struct rpost_query_port port;
	uint32_t ah;
	int objects = rp_num_objects(self->p.a.fd);

	ASSERT_EQ(0, rp_query_port(self->p.a.fd, self->p.a.device, self->p.addr.port_num, &port));
	local.is_global = 0;
	if (port.link_layer == 2) {
		EXPECT_EQ(-EINVAL, rp_create_ah(self->p.a.fd, self->p.a.pd, &local, &ah));
		EXPECT_EQ(0, ah);
	}
	EXPECT_EQ(objects, rp_num_objects(self->p.a.fd));
	EXPECT_EQ(-EBUSY, rp_destroy(self->p.a.fd, RPOST_OBJ_PD, self->p.a.pd));
}

/* An address without a route. */
TEST_F(ud, ah_without_a_route)
{
	struct rpost_ah_attr attr = self->p.addr;
	uint32_t ah;
	int ret;

	attr.dgid[12] = 192;
	attr.dgid[13] = 0;
	attr.dgid[14] = 2;
	attr.dgid[15] = 77;
	ret = rp_create_ah(self->p.a.fd, self->p.a.pd, &attr, &ah);
	EXPECT_TRUE(!ret || ret == -EINVAL || ret == -ENETUNREACH ||
		    ret == -EHOSTUNREACH)
		TH_LOG("%d", ret);
	memset(attr.dgid, 0, sizeof(attr.dgid));
	EXPECT_GT(0, rp_create_ah(self->p.a.fd, self->p.a.pd, &attr, &ah));
}

/* Create and destroy many address handles several times. */
TEST_F(ud, many_ahs)
{
	enum { N = 200 };
	uint32_t ahs[N];
	int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < N; i++) {
			ASSERT_EQ(0, rp_create_ah(self->p.a.fd, self->p.a.pd,
						  &self->p.addr, &ahs[i]));
		}
		for (i = 0; i < N; i++) {
			ASSERT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_AH,
						ahs[i]));
		}
	}
	EXPECT_EQ(-ENOENT, rp_destroy(self->p.a.fd, RPOST_OBJ_AH, ahs[0]));
	EXPECT_ALIVE();
}

/* Destroy an address handle; poll while sends still use it. */
static int destroy_ah(struct rp_end *end, uint32_t ah)
{
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rpost_wc wc;
	int ret;

	do {
		ret = rp_destroy(end->fd, RPOST_OBJ_AH, ah);
		if (ret != -EBUSY)
			break;
		while (rp_poll_cq(&end->cq, &wc) == 1)
			;
	} while (rp_now_ms() < until);
	return ret;
}

/* The handle can be destroyed at last although sends use it. */
TEST_F(ud, ah_destroyed_with_sends)
{
	struct rp_send send;
	uint32_t ah;
	int i, round, ret;

	for (round = 0; round < 50; round++) {
		ASSERT_EQ(0, rp_create_ah(self->p.a.fd, self->p.a.pd, &self->p.addr,
					  &ah));
		for (i = 0; i < RP_DEPTH / 2; i++) {
			send = ud_datagram(&self->p, i);
			send.wr.ah = ah;
			/* Every second round is unsignaled. */
			if (round % 2)
				send.wr.send_flags = 0;
			ret = rp_post_send(&self->p.a, &send);
			if (ret == -ENOMEM)
				break;
			ASSERT_EQ(0, ret);
		}
		ASSERT_EQ(0, destroy_ah(&self->p.a, ah));
		while (rp_poll_cq(&self->p.a.cq, &self->wc) == 1)
			;
	}
	usleep(TEST_QUIET_MS * 1000);
	while (rp_poll_cq(&self->p.a.cq, &self->wc) == 1)
		;
	EXPECT_ALIVE();
}

/* Destroying the queue pair drops its references to address handles. */
TEST_F(ud, ah_after_the_queue_pair)
{
	struct rp_send send = ud_datagram(&self->p, 1);
	int i;

	for (i = 0; i < RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	}
	ASSERT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_QP, self->p.a.qp));
	EXPECT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_AH, self->p.ah));
	ASSERT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_MR, self->p.amr.handle));
	EXPECT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_PD, self->p.a.pd));
	/* A reset drops them, too. */
	for (i = 0; i < 3; i++) {
		uint32_t ah;

		ASSERT_EQ(0, rp_create_ah(self->p.b.fd, self->p.b.pd, &self->p.addr,
					  &ah));
		send = rp_empty_datagram(ah, 5, 1);
		ASSERT_EQ(0, rp_post_send(&self->p.b, &send));
		ASSERT_EQ(0, rp_move(&self->p.b, RPOST_QPS_RESET));
		EXPECT_EQ(0, rp_destroy(self->p.b.fd, RPOST_OBJ_AH, ah));
		ASSERT_EQ(0, rp_bring_up(&self->p.b, RPOST_QPT_UD, 0));
	}
}

/* ---------------------------------------------------------- multicast */

static int mcast_lid(struct rp_end *end, unsigned long nr, uint32_t qp,
		     const uint8_t *gid, uint32_t lid)
{
	struct rpost_attach_mcast cmd = {
		.size = sizeof(cmd), .qp = qp, .lid = lid,
	};

	memcpy(cmd.gid, gid, sizeof(cmd.gid));
	return rp_ioctl(end->fd, nr, &cmd);
}

static int mcast(struct rp_end *end, unsigned long nr, uint32_t qp,
		 const uint8_t *gid)
{
	return mcast_lid(end, nr, qp, gid, 0);
}

/* Return 239.1.2.x as a GID. */
static const uint8_t *group(uint8_t x)
{
	static uint8_t gid[16] = {
		0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2,
	};

	gid[15] = x;
	return gid;
}

#define ATTACH(end, x) \
	mcast(end, RPOST_IOC_ATTACH_MCAST, (end)->qp, group(x))
#define DETACH(end, x) \
	mcast(end, RPOST_IOC_DETACH_MCAST, (end)->qp, group(x))

TEST_F(ud, groups)
{
	int ret, i;

	ret = ATTACH(&self->p.a, 1);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	ASSERT_EQ(0, ret);
	/* Attaching twice has the effect of attaching once. */
	EXPECT_EQ(0, ATTACH(&self->p.a, 1));
	EXPECT_EQ(0, DETACH(&self->p.a, 1));
	EXPECT_EQ(-EINVAL, DETACH(&self->p.a, 1));
	EXPECT_EQ(-EINVAL, DETACH(&self->p.a, 2));
	/* Two queue pairs, several groups, detached in another order. */
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, ATTACH(&self->p.a, i));
		EXPECT_EQ(0, ATTACH(&self->p.b, i));
	}
	EXPECT_EQ(0, DETACH(&self->p.a, 3));
	EXPECT_EQ(0, DETACH(&self->p.b, 0));
	/* A queue pair can be destroyed while it is in groups. */
	EXPECT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_QP, self->p.a.qp));
	EXPECT_EQ(-ENOENT, ATTACH(&self->p.a, 1));
	EXPECT_EQ(-ENOENT, DETACH(&self->p.a, 1));
}

/* Only the GID names a group, so the queue pair is in it once. */
TEST_F(ud, group_with_two_lids)
{
	int ret = ATTACH(&self->p.a, 1);

	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	ASSERT_EQ(0, ret);
	ret = mcast_lid(&self->p.a, RPOST_IOC_ATTACH_MCAST, self->p.a.qp, group(1),
			0xc001);
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, DETACH(&self->p.a, 1));
	EXPECT_EQ(-EINVAL, DETACH(&self->p.a, 1));
	EXPECT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_QP, self->p.a.qp));
}

TEST_F(ud, group_errors)
{
	uint8_t gid[16] = { 0 };
	struct rp_end rc = self->p.a;

	EXPECT_EQ(-EINVAL, mcast(&self->p.a, RPOST_IOC_ATTACH_MCAST, self->p.a.qp,
				 gid));
	EXPECT_EQ(-EINVAL, mcast(&self->p.a, RPOST_IOC_ATTACH_MCAST, self->p.a.qp,
				 self->p.addr.dgid));
	/* Other queue pair types cannot join a group. */
	ASSERT_EQ(0, rp_create_own(&rc, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EINVAL, ATTACH(&rc, 1));
	EXPECT_EQ(-EINVAL, DETACH(&rc, 1));
}

/* Join groups until the device refuses. */
TEST_F(ud, many_groups)
{
	int i, n, ret = 0;

	for (n = 0; n < 250 && !ret; n++)
		ret = ATTACH(&self->p.a, n);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	EXPECT_TRUE(!ret || ret == -ENOMEM || ret == -EINVAL ||
		    ret == -ENOSPC)
		TH_LOG("group %d: %d", n, ret);
	if (ret)
		n--;
	EXPECT_LT(4, n);
	for (i = 0; i < n; i += 2) {
		EXPECT_EQ(0, DETACH(&self->p.a, i));
	}
}

/* ---------------------------------------------------------------- races */

struct race {
	struct ud_pair *pair;
	uint32_t ah;
	bool stop;
	int wrong;
	unsigned int good, refused;
};

static void *send_for_ever(void *arg)
{
	struct race *r = arg;
	struct rp_send send = ud_datagram(r->pair, 1);
	struct rpost_wc wc;
	int ret;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		send.wr.ah = __atomic_load_n(&r->ah, __ATOMIC_RELAXED);
		ret = rp_post_send(&r->pair->a, &send);
		if (!ret)
			r->good++;
		else if (ret == -ENOENT)
			r->refused++;
		else if (ret != -ENOMEM)
			r->wrong = ret;
		while (rp_poll_cq(&r->pair->a.cq, &wc) == 1)
			;
	}
	return NULL;
}

/* Another thread sends while address handles are created and destroyed. */
TEST_F(ud, ahs_race_with_sends)
{
	struct race r = { .pair = &self->p };
	uint64_t end = rp_now_ms() + 400;
	int rounds = 0, ret;
	pthread_t thread;
	uint32_t ah;

	ASSERT_EQ(0, pthread_create(&thread, NULL, send_for_ever, &r));
	do {
		ASSERT_EQ(0, rp_create_ah(self->p.a.fd, self->p.a.pd, &self->p.addr,
					  &ah));
		__atomic_store_n(&r.ah, ah, __ATOMIC_RELAXED);
		usleep(rounds % 5 * 50);
		do {
			ret = rp_destroy(self->p.a.fd, RPOST_OBJ_AH, ah);
			if (ret == -EBUSY)
				__atomic_store_n(&r.ah, 0, __ATOMIC_RELAXED);
			sched_yield();
		} while (ret == -EBUSY);
		ASSERT_EQ(0, ret);
		rounds++;
	} while (rp_now_ms() < end ||
		 ((!__atomic_load_n(&r.good, __ATOMIC_RELAXED) ||
		   !__atomic_load_n(&r.refused, __ATOMIC_RELAXED)) &&
		  rp_now_ms() < end + TEST_CHANCE_MS));
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, r.wrong);
	RP_SKIP_UNMET(r.good && r.refused, "%u sent, %u refused", r.good, r.refused);
}

TEST_HARNESS_MAIN
