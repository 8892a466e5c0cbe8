// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests completion queues of devices that complete a post before it returns:
 * posts fill the ring.  A failure means that a program sleeps although a
 * completion is there.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "cq_pair.h"
#include "kernel_release.h"

CQ_FIXTURE()

/* Make a write from the server, whose queue has a channel, to the client. */
static int write_back(FIXTURE_DATA(cq) *self, struct rp_send *send)
{
	struct rpost_reg_mr mr;
	int ret;

	ret = rp_reg_mr(self->p.c.fd, self->p.c.pd, self->p.buf, CQ_BYTES,
			RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			&mr);
	*send = rp_send(RPOST_WR_RDMA_WRITE, 0, self->p.buf + CQ_BYTES, 8,
			self->p.smr.lkey);
	send->wr.remote_addr = (uintptr_t)self->p.buf;
	send->wr.rkey = mr.rkey;
	return ret;
}

/* A post fetches the completions of a device that completes it at once. */
TEST_F(cq, prompt_posts)
{
	bool expected = rxe_works_in_posts() &&
			rp_is_rxe(self->p.s.fd, self->p.s.device);
	struct rp_cq *cq = &self->p.s.cq;
	struct rp_send send;
	int i, prompt = 0;
	uint32_t tail;

	ASSERT_EQ(0, write_back(self, &send));
	for (i = 0; i < 300; i++) {
		tail = cq->ring->tail;
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->p.s, &send));
		prompt += cq->ring->tail == tail + 1;
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		ASSERT_EQ(i, (int)self->wc.wr_id);
	}
	TH_LOG("%d of 300 posts prompt", prompt);
	if (expected)
		EXPECT_LT(0, prompt);
}

struct burst {
	struct rp_end *end;
	struct rp_send send;
	unsigned int count;
	bool stop;
	int err;
};

static void *post_in_bursts(void *arg)
{
	struct burst *b = arg;
	unsigned int i = 0;

	while (i < b->count && !b->err &&
	       !__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
		b->err = rp_post_send(b->end, &b->send);
		if (!b->err && ++i % 50 == 0)
			usleep(i % 7 * 40);
		if (b->err == -ENOMEM) {
			b->err = 0;
			sched_yield();
		}
	}
	return NULL;
}

/* Request an event.  Returns 0 if the ring has a completion already. */
static int may_sleep(struct rp_cq *cq, uint32_t *arms)
{
	RP_TRY(rp_ask_event(cq, arms));
	return __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE) ==
	       cq->ring->head;
}

/* Posts fetch completions while the program is about to sleep. */
TEST_F(cq, asleep_between_prompt_posts)
{
	struct burst b = { .end = &self->p.s, .count = 5000 };
	struct rp_cq *cq = &self->p.s.cq;
	struct rpost_comp_event event;
	unsigned int got = 0, slept = 0;
	uint32_t arms = 0;
	pthread_t thread;
	int sleep;

	ASSERT_EQ(0, write_back(self, &b.send));
	ASSERT_EQ(0, pthread_create(&thread, NULL, post_in_bursts, &b));
	while (got < b.count) {
		if (rp_poll_cq(cq, &self->wc) == 1) {
			EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
			got++;
			continue;
		}
		sleep = may_sleep(cq, &arms);
		ASSERT_LE(0, sleep);
		if (sleep) {
			if (!rp_readable(self->p.comp, TEST_TIMEOUT_MS))
				break;
			slept++;
			ASSERT_EQ(sizeof(event),
				  read(self->p.comp, &event, sizeof(event)));
		}
	}
	EXPECT_EQ(b.count, got);
	EXPECT_LT(0, slept);
	__atomic_store_n(&b.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, b.err);
}

TEST_HARNESS_MAIN
