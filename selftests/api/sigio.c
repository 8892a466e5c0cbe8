// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests O_ASYNC on the descriptors of completion channels and contexts: each
 * event must cause a SIGIO.
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "verbs_test.h"

FIXTURE(sigio) {
	struct device dev;
	struct side side;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	sigset_t set;
};

FIXTURE_SETUP(sigio)
{
	sigemptyset(&self->set);
	sigaddset(&self->set, SIGIO);
	ASSERT_EQ(0, sigprocmask(SIG_BLOCK, &self->set, NULL));
	ASSERT_EQ(0, device_open(&self->dev));
	self->channel = ibv_create_comp_channel(self->dev.verbs);
	ASSERT_NE(NULL, self->channel);
	self->cq = ibv_create_cq(self->dev.verbs, 16, NULL, self->channel, 0);
	ASSERT_NE(NULL, self->cq);
	ASSERT_EQ(0, side_open(&self->dev, &self->side, IBV_QPT_RC, self->cq,
			       NULL));
	ASSERT_EQ(0, bring_up(&self->dev, self->side.qp, self->side.qp->qp_num,
			      TEST_PSN, TEST_PSN));
}

FIXTURE_TEARDOWN(sigio)
{
	side_close(&self->side);
	EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	EXPECT_EQ(0, ibv_destroy_comp_channel(self->channel));
	device_close(&self->dev);
}

static int set_async(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (fcntl(fd, F_SETOWN, getpid()))
		return -1;
	return fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC);
}

static bool comes(const sigset_t *set, int timeout_ms)
{
	struct timespec timeout = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000,
	};

	return sigtimedwait(set, NULL, &timeout) == SIGIO;
}

/* Write to the side's own buffer and get the event of the completion. */
static int get_event(struct ibv_cq *cq, struct side *side)
{
	struct ibv_sge sge = side_sge(side, 0, 64);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = addr64(side->buf + 64),
			     .rkey = side->mr->rkey },
	};
	struct ibv_wc wc;
	void *context;

	if (ibv_req_notify_cq(cq, 0) || ibv_post_send(side->qp, &wr, &bad) ||
	    !readable(cq->channel->fd, DEADLINE_MS) ||
	    ibv_get_cq_event(cq->channel, &cq, &context))
		return -1;
	ibv_ack_cq_events(cq, 1);
	return ibv_poll_cq(cq, 1, &wc) == 1 && !wc.status ? 0 : -1;
}

TEST_F(sigio, completion)
{
	ASSERT_EQ(0, get_event(self->cq, &self->side));
	EXPECT_FALSE(comes(&self->set, QUIET_MS));
	ASSERT_EQ(0, set_async(self->channel->fd, true));
	ASSERT_EQ(0, get_event(self->cq, &self->side));
	EXPECT_TRUE(comes(&self->set, DEADLINE_MS));
	ASSERT_EQ(0, set_async(self->channel->fd, false));
	ASSERT_EQ(0, get_event(self->cq, &self->side));
	EXPECT_FALSE(comes(&self->set, QUIET_MS));
	/* Closing the descriptor must be enough to end it. */
	ASSERT_EQ(0, set_async(self->channel->fd, true));
}

TEST_F(sigio, asynchronous_event)
{
	struct ibv_qp_attr to_sqd = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};
	struct ibv_async_event event;

	ASSERT_EQ(0, set_async(self->dev.verbs->async_fd, true));
	ASSERT_EQ(0, ibv_modify_qp(self->side.qp, &to_sqd, IBV_QP_STATE |
				   IBV_QP_EN_SQD_ASYNC_NOTIFY));
	EXPECT_TRUE(comes(&self->set, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_async_event(self->dev.verbs, &event));
	EXPECT_EQ(IBV_EVENT_SQ_DRAINED, event.event_type);
	ibv_ack_async_event(&event);
}

TEST_HARNESS_MAIN
