// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the limits of a shared receive queue: its size, which can be changed, the
 * entries of its receives, and the limit whose event tells the program that few
 * receives are left.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>

#include "srq_ends.h"

SRQ_FIXTURE()

TEST_F(srq, limit)
{
	int async = rp_async_channel(self->e.r1.fd, self->e.r1.device);
	struct rpost_async_event event;
	struct rpost_query_srq q;
	uint32_t i;

	ASSERT_LE(0, async);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, srq_give(&self->e, i));
	}
	ASSERT_EQ(0, rp_srq_limit(self->e.r1.fd, self->e.srq.handle, 3));
	ASSERT_EQ(0, rp_query_srq(self->e.r1.fd, self->e.srq.handle, &q));
	EXPECT_EQ(3, q.limit);
	ASSERT_EQ(0, srq_message(&self->e.s1, "x"));
	EXPECT_TRUE(rp_quiet(async));
	ASSERT_EQ(0, srq_message(&self->e.s1, "x"));
	ASSERT_EQ(0, rp_async_wait(async, RPOST_ASYNC_SRQ_LIMIT_REACHED,
				   &event));
	EXPECT_EQ(self->e.srq.handle, event.handle);
	EXPECT_EQ(RPOST_OBJ_SRQ, event.obj_type);
	EXPECT_EQ(0x5152, event.user_data);
	EXPECT_EQ(0, event.port);
	/* The event occurs once, and the limit is 0 then. */
	ASSERT_EQ(0, rp_query_srq(self->e.r1.fd, self->e.srq.handle, &q));
	EXPECT_EQ(0, q.limit);
	ASSERT_EQ(0, srq_message(&self->e.s2, "x"));
	EXPECT_TRUE(rp_quiet(async));
	ASSERT_EQ(0, rp_srq_limit(self->e.r1.fd, self->e.srq.handle, 0));
	close(async);
}

TEST_F(srq, limit_errors)
{
	EXPECT_EQ(-EINVAL, rp_srq_limit(self->e.r1.fd, self->e.srq.handle,
					self->e.srq.max_wr + 1));
	EXPECT_EQ(0, rp_srq_limit(self->e.r1.fd, self->e.srq.handle,
				  self->e.srq.max_wr));
}

TEST_F(srq, creation)
{
	struct rpost_create_srq cmd, good = {
		.size = sizeof(good),
		.pd = self->e.r1.pd,
		.max_wr = 4,
		.max_sge = 1,
	};
	int objects = rp_num_objects(self->e.r1.fd);

	cmd = good;
	cmd.max_wr = self->e.dev.max_srq_wr + 1;
	EXPECT_EQ(-EINVAL, rp_ioctl(self->e.r1.fd, RPOST_IOC_CREATE_SRQ, &cmd));
	cmd = good;
	cmd.max_sge = self->e.dev.max_srq_sge + 1;
	EXPECT_EQ(-EINVAL, rp_ioctl(self->e.r1.fd, RPOST_IOC_CREATE_SRQ, &cmd));
	EXPECT_EQ(0, cmd.handle);
	EXPECT_EQ(objects, rp_num_objects(self->e.r1.fd));
	/* The maxima that the device reports can be used. */
	cmd = good;
	cmd.max_wr = self->e.dev.max_srq_wr;
	cmd.max_sge = self->e.dev.max_srq_sge;
	ASSERT_EQ(0, rp_ioctl(self->e.r1.fd, RPOST_IOC_CREATE_SRQ, &cmd));
	EXPECT_LE(self->e.dev.max_srq_wr, cmd.max_wr);
	EXPECT_EQ(0, rp_destroy(self->e.r1.fd, RPOST_OBJ_SRQ, cmd.handle));
}

/* A receive with too many entries, and a queue that allows none. */
TEST_F(srq, entries)
{
	struct {
		struct rpost_recv_wr wr;
		struct rpost_sge sge[3];
	} block = {
		.wr = { .size = sizeof(block), .num_sge = 3 },
	};
	uint32_t posted = 9;

	EXPECT_EQ(-EINVAL, rp_post(self->e.r1.fd, RPOST_IOC_POST_SRQ_RECV,
				   self->e.srq.handle, &block, sizeof(block), 1,
				   &posted));
	EXPECT_EQ(0, posted);
	block.wr.num_sge = 2;
	block.wr.size -= sizeof(block.sge[0]);
	block.sge[0] = (struct rpost_sge) { (uintptr_t)self->e.buf, 3,
					    self->e.mr.lkey };
	block.sge[1] = (struct rpost_sge) { (uintptr_t)self->e.buf + 10, 20,
					    self->e.mr.lkey };
	ASSERT_EQ(0, rp_post(self->e.r1.fd, RPOST_IOC_POST_SRQ_RECV,
			     self->e.srq.handle, &block, block.wr.size, 1,
			     NULL));
	ASSERT_EQ(0, srq_message(&self->e.s1, "abcdefg"));
	EXPECT_RECEIVED(0, &self->e.r1, 8);
	EXPECT_EQ(0, memcmp(self->e.buf, "abcr", 4));
	EXPECT_STREQ("defg", self->e.buf + 10);
}

static bool can_resize(const struct rpost_query_device *dev)
{
	return dev->device_cap_flags & IB_UVERBS_DEVICE_SRQ_RESIZE;
}

static int resize(struct srq_ends *e, uint32_t max_wr)
{
	struct rpost_modify_srq cmd = {
		.size = sizeof(cmd),
		.handle = e->srq.handle,
		.attr_mask = RPOST_SRQ_MAX_WR,
		.max_wr = max_wr,
	};

	return rp_ioctl(e->r1.fd, RPOST_IOC_MODIFY_SRQ, &cmd);
}

/* Post receives from number @first to the last that there is room for. */
static uint32_t give_all(struct srq_ends *e, uint32_t first)
{
	uint32_t i = first;
	int ret;

	while (!(ret = srq_give(e, i)))
		i++;
	return ret == -ENOMEM ? i : 0;
}

#define EXPECT_SIZE(n) do {						\
	struct rpost_query_srq q;					\
	ASSERT_EQ(0, rp_query_srq(self->e.r1.fd, self->e.srq.handle, &q)); \
	EXPECT_EQ(n, q.max_wr);						\
} while (0)

/* Receives from @from to @to get the next messages, in this order. */
#define EXPECT_IN_ORDER(from, to) do {					\
	uint32_t id;							\
	for (id = from; id < (to); id++) {				\
		ASSERT_EQ(0, srq_message(&self->e.s1, "x"));		\
		EXPECT_RECEIVED(id, &self->e.r1, 8);			\
	}								\
} while (0)

TEST_F(srq, resize)
{
	struct srq_ends *e = &self->e;

	if (!can_resize(&e->dev)) {
		EXPECT_EQ(-EOPNOTSUPP, resize(e, SRQ_SLOTS));
		return;
	}
	ASSERT_EQ(SRQ_SLOTS, give_all(e, 0));
	ASSERT_EQ(0, resize(e, 3 * SRQ_SLOTS));
	EXPECT_SIZE(3 * SRQ_SLOTS);
	ASSERT_EQ(3 * SRQ_SLOTS, give_all(e, SRQ_SLOTS));
	EXPECT_IN_ORDER(0, SRQ_SLOTS);
	/* There are twice SRQ_SLOTS in it. */
	EXPECT_EQ(-EINVAL, resize(e, 2 * SRQ_SLOTS - 1));
	EXPECT_SIZE(3 * SRQ_SLOTS);
	ASSERT_EQ(0, resize(e, 2 * SRQ_SLOTS));
	EXPECT_SIZE(2 * SRQ_SLOTS);
	EXPECT_EQ(-ENOMEM, srq_give(e, 0));
	EXPECT_IN_ORDER(SRQ_SLOTS, 3 * SRQ_SLOTS);
	ASSERT_EQ(0, resize(e, 1));
	ASSERT_EQ(1, give_all(e, 0));
	ASSERT_EQ(0, resize(e, 1));
	ASSERT_EQ(0, resize(e, 3 * SRQ_SLOTS));
	ASSERT_EQ(3 * SRQ_SLOTS, give_all(e, 1));
	EXPECT_IN_ORDER(0, 3 * SRQ_SLOTS);
}

TEST_F(srq, resize_errors)
{
	struct rpost_modify_srq cmd = {
		.size = sizeof(cmd),
		.handle = self->e.srq.handle,
		.attr_mask = RPOST_SRQ_MAX_WR | RPOST_SRQ_LIMIT,
		.max_wr = 2,
		.limit = 3,
	};
	struct srq_ends *e = &self->e;
	struct rpost_query_srq q;

	if (!can_resize(&e->dev))
		return;
	EXPECT_EQ(-EINVAL, resize(e, 0));
	EXPECT_EQ(-EINVAL, resize(e, e->dev.max_srq_wr + 1));
	EXPECT_EQ(-EINVAL, resize(e, UINT32_MAX));
	EXPECT_EQ(-EINVAL, rp_ioctl(e->r1.fd, RPOST_IOC_MODIFY_SRQ, &cmd));
	EXPECT_SIZE(SRQ_SLOTS);
	cmd.limit = 2;
	EXPECT_EQ(0, rp_ioctl(e->r1.fd, RPOST_IOC_MODIFY_SRQ, &cmd));
	ASSERT_EQ(0, rp_query_srq(e->r1.fd, e->srq.handle, &q));
	EXPECT_EQ(2, q.max_wr);
	EXPECT_EQ(2, q.limit);
	/* The device refuses, and the queue is as it was. */
	EXPECT_EQ(-EINVAL, resize(e, 1));
	EXPECT_SIZE(2);
	ASSERT_EQ(2, give_all(e, 0));
	EXPECT_IN_ORDER(0, 2);
}

/* More than the file may have in all, if sizes that a queue had stayed charged. */
TEST_F(srq, resize_charges)
{
	struct srq_ends *e = &self->e;
	struct rpost_create_srq srq = self->e.srq;
	uint64_t sum;

	if (!can_resize(&e->dev))
		return;
	ASSERT_EQ(0, rp_create_srq(e->r1.fd, e->r1.pd, SRQ_SLOTS, &e->srq));
	for (sum = 0; sum < 2 << 20; sum += e->dev.max_srq_wr) {
		ASSERT_EQ(0, resize(e, e->dev.max_srq_wr));
		ASSERT_EQ(0, resize(e, SRQ_SLOTS));
	}
	ASSERT_EQ(SRQ_SLOTS, give_all(e, 0));
	EXPECT_EQ(0, rp_destroy(e->r1.fd, RPOST_OBJ_SRQ, e->srq.handle));
	e->srq = srq;
}

struct resizer {
	struct srq_ends *e;
	bool stop;
	int ret;
	unsigned int num;
};

static void *resizes(void *arg)
{
	struct resizer *r = arg;
	struct rpost_query_srq q;

	while (!r->ret && !__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		r->ret = resize(r->e, r->num % 2 ? SRQ_SLOTS : 8 * SRQ_SLOTS);
		if (!r->ret)
			r->ret = rp_query_srq(r->e->r1.fd, r->e->srq.handle, &q);
		__atomic_add_fetch(&r->num, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static unsigned int resized(const struct resizer *r)
{
	return __atomic_load_n(&r->num, __ATOMIC_RELAXED);
}

/* No receive is lost if the queue is resized while messages come. */
TEST_F(srq, resize_under_traffic)
{
	struct resizer r[2] = { { .e = &self->e }, { .e = &self->e } };
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	pthread_t threads[2];
	uint32_t i;

	if (!can_resize(&self->e.dev))
		return;
	for (i = 0; i < SRQ_SLOTS / 2; i++) {
		ASSERT_EQ(0, srq_give(&self->e, i));
	}
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, resizes, &r[i]));
	for (i = 0; i < 500 || ((resized(&r[0]) < 2 || resized(&r[1]) < 2) &&
				rp_now_ms() < end); i++) {
		ASSERT_EQ(0, srq_message(&self->e.s1, "x"));
		EXPECT_RECEIVED(i, &self->e.r1, 8);
		ASSERT_EQ(0, srq_give(&self->e, i + SRQ_SLOTS / 2));
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&r[i].stop, true, __ATOMIC_RELAXED);
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, r[i].ret);
		EXPECT_LT(1, r[i].num);
	}
}

TEST_HARNESS_MAIN
