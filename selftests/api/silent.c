// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests a connection to a host that exists but does not answer RDMA: it must
 * end with RDMA_CM_EVENT_UNREACHABLE, and rdma_disconnect() must flush the
 * receives.  RPOST_TEST_SILENT is the host's IPv4 address; see
 * selftests/cm/unreachable.c.
 */
#include <kselftest_harness.h>

#include <arpa/inet.h>
#include <stdlib.h>

#include "rdma_test.h"

/* The attempt ends after 102 s, or later on a busy machine. */
#define SILENCE_MS	400000

FIXTURE(silent) {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct event event;
};

FIXTURE_SETUP(silent)
{
	self->channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->channel);
	ASSERT_EQ(0, rdma_create_id(self->channel, &self->id, self,
				    RDMA_PS_TCP));
}

FIXTURE_TEARDOWN(silent)
{
	if (self->id && self->id->qp)
		rdma_destroy_qp(self->id);
	EXPECT_EQ(0, rdma_destroy_id(self->id));
	rdma_destroy_event_channel(self->channel);
}

TEST_F_TIMEOUT(silent, host, SILENCE_MS / 1000 + 60)
{
	const char *silent = getenv("RPOST_TEST_SILENT");
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(7471),
	};
	struct rdma_conn_param conn = { .retry_count = 7 };
	struct pair_opts opts;
	struct ibv_wc wc;
	uint64_t began;

	if (!silent)
		SKIP(return, "RPOST_TEST_SILENT is not set; it takes two minutes");
	addr.sin_addr.s_addr = inet_addr(silent);
	pair_defaults(&opts);
	ASSERT_EQ(0, rdma_resolve_addr(self->id, NULL,
				       (struct sockaddr *)&addr, 2000));
	ASSERT_EQ(0, expect_event(self->channel, RDMA_CM_EVENT_ADDR_RESOLVED,
				  &self->event));
	ASSERT_EQ(0, rdma_resolve_route(self->id, 2000));
	ASSERT_EQ(0, expect_event(self->channel, RDMA_CM_EVENT_ROUTE_RESOLVED,
				  &self->event));
	ASSERT_EQ(0, rdma_create_qp(self->id, NULL, &opts.client_qp));
	/* A receive without memory needs no key. */
	ASSERT_EQ(0, rdma_post_recvv(self->id, CONTEXT, NULL, 0));
	ASSERT_EQ(0, rdma_connect(self->id, &conn));
	ASSERT_TRUE(readable(self->channel->fd, SILENCE_MS));
	ASSERT_EQ(RDMA_CM_EVENT_UNREACHABLE,
		  next_event(self->channel, &self->event));
	EXPECT_EQ(-ETIMEDOUT, self->event.status);
	EXPECT_EQ(self->id, self->event.id);
	EXPECT_TRUE(no_event(self->channel));
	/* The id cannot connect again, and its queue pair is destroyed soon. */
	EXPECT_ERRNO(EINVAL, rdma_connect(self->id, &conn));
	/* The receive waits until the program disconnects. */
	EXPECT_TRUE(no_comp(self->id->recv_cq));
	EXPECT_EQ(0, rdma_disconnect(self->id));
	ASSERT_COMP(self->id->recv_cq, &wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	EXPECT_TRUE(no_event(self->channel));
	began = now_ms();
	rdma_destroy_qp(self->id);
	EXPECT_GT(DEADLINE_MS, now_ms() - began);
}

TEST_HARNESS_MAIN
