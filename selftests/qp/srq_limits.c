// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the limits of a shared receive queue: its size, the entries of its
 * receives, and the limit whose event tells the program that few receives are
 * left.
 */
#include <kselftest_harness.h>

#include "srq_ends.h"

FIXTURE(srq) {
	struct srq_ends e;
	struct rpost_wc wc;
};

FIXTURE_SETUP(srq)
{
	ASSERT_EQ(0, srq_ends_init(&self->e));
}

FIXTURE_TEARDOWN(srq)
{
	srq_ends_close(&self->e);
}

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
	struct rpost_modify_srq cmd, good = {
		.size = sizeof(good),
		.handle = self->e.srq.handle,
		.attr_mask = RPOST_SRQ_LIMIT,
		.limit = 1,
	};

#define REFUSED(err, field, value) do {					\
	cmd = good;							\
	cmd.field = (value);						\
	EXPECT_EQ(err, rp_ioctl(self->e.r1.fd, RPOST_IOC_MODIFY_SRQ, &cmd)) \
		TH_LOG(#field " = " #value);				\
} while (0)
	REFUSED(-EINVAL, limit, self->e.srq.max_wr + 1);
	REFUSED(-EINVAL, limit, UINT32_MAX);
	REFUSED(-EOPNOTSUPP, attr_mask, RPOST_SRQ_LIMIT | RPOST_SRQ_MAX_WR);
	REFUSED(-EOPNOTSUPP, attr_mask, RPOST_SRQ_MAX_WR);
	REFUSED(-EOPNOTSUPP, attr_mask, 4);
	REFUSED(-EOPNOTSUPP, attr_mask, UINT32_MAX);
	REFUSED(-ENOENT, handle, 0);
	REFUSED(-ENOENT, handle, self->e.r1.pd);
#undef REFUSED
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

#define REFUSED(err, field, value) do {					\
	cmd = good;							\
	cmd.field = (value);						\
	EXPECT_EQ(err, rp_ioctl(self->e.r1.fd, RPOST_IOC_CREATE_SRQ, &cmd)) \
		TH_LOG(#field " = " #value);				\
	EXPECT_EQ(0, cmd.handle);					\
} while (0)
	REFUSED(-EINVAL, max_wr, 0);
	REFUSED(-EINVAL, max_wr, self->e.dev.max_srq_wr + 1);
	REFUSED(-EINVAL, max_wr, UINT32_MAX);
	REFUSED(-EINVAL, max_sge, self->e.dev.max_srq_sge + 1);
	REFUSED(-EINVAL, max_sge, UINT32_MAX);
	REFUSED(-EINVAL, limit, UINT32_MAX);
	REFUSED(-ENOENT, pd, 0);
	REFUSED(-ENOENT, pd, self->e.srq.handle);
#undef REFUSED
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

TEST_HARNESS_MAIN
