// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests shared receive queues.  A failure means that another file can use one,
 * that a forged key moves data, or that a slot is lost when a queue pair goes.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "kernel_release.h"
#include "srq_ends.h"

#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE)

SRQ_FIXTURE()

/*
 * Expect that all slots can be posted, and at most one more for each queue pair
 * that was stopped, since the device may have lost its receive.
 */
static void all_slots(struct __test_metadata *_metadata,
		      FIXTURE_DATA(srq) *self, uint32_t stopped)
{
	uint32_t i, more = 0;

	for (i = 0; i < self->e.srq.max_wr; i++) {
		ASSERT_EQ(0, srq_give(&self->e, 1000 + i))
			TH_LOG("slot %u of %u", i, self->e.srq.max_wr);
	}
	while (more <= stopped && !srq_give(&self->e, 0))
		more++;
	EXPECT_GE(stopped, more);
	EXPECT_EQ(-ENOMEM, srq_give(&self->e, 0));
}

TEST_F(srq, answer)
{
	struct rpost_query_srq q;
	struct rpost_query_qp qp;

	EXPECT_LE(SRQ_SLOTS, self->e.srq.max_wr);
	EXPECT_EQ(2, self->e.srq.max_sge);
	EXPECT_NE(0, self->e.srq.handle);
	ASSERT_EQ(0, rp_query_srq(self->e.r1.fd, self->e.srq.handle, &q));
	EXPECT_EQ(self->e.srq.max_wr, q.max_wr);
	EXPECT_EQ(2, q.max_sge);
	EXPECT_EQ(0, q.limit);
	ASSERT_EQ(0, rp_query_qp(&self->e.r1, &qp));
	EXPECT_EQ(self->e.srq.handle, qp.srq);
	EXPECT_EQ(0, qp.max_recv_wr);
	EXPECT_EQ(0, qp.max_recv_sge);
	ASSERT_EQ(0, rp_query_qp(&self->e.s1, &qp));
	EXPECT_EQ(0, qp.srq);
	EXPECT_EQ(RP_DEPTH, qp.max_recv_wr);
}

/* A message takes the next receive, whichever queue pair it arrives at. */
TEST_F(srq, two_queue_pairs)
{
	ASSERT_EQ(0, srq_give(&self->e, 0));
	ASSERT_EQ(0, srq_give(&self->e, 1));
	ASSERT_EQ(0, srq_give(&self->e, 2));
	ASSERT_EQ(0, srq_message(&self->e.s2, "two"));
	EXPECT_RECEIVED(0, &self->e.r2, 8);
	ASSERT_EQ(0, srq_message(&self->e.s1, "one"));
	EXPECT_RECEIVED(1, &self->e.r1, 8);
	ASSERT_EQ(0, srq_message(&self->e.s2, "again"));
	EXPECT_RECEIVED(2, &self->e.r2, 8);
	EXPECT_STREQ("two", self->e.buf);
	EXPECT_STREQ("one", self->e.buf + 64);
	EXPECT_STREQ("again", self->e.buf + 128);
}

TEST_F(srq, full)
{
	uint32_t i, posted = 77;
	struct rpost_recv_wr block[4];

	all_slots(_metadata, self, 0);
	/* A message uses one receive, so one can be posted. */
	ASSERT_EQ(0, srq_message(&self->e.s1, "x"));
	ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));
	for (i = 0; i < 4; i++)
		block[i] = (struct rpost_recv_wr) {
			.wr_id = 500 + i, .size = sizeof(block[i]),
		};
	EXPECT_EQ(-ENOMEM, rp_post(self->e.r1.fd, RPOST_IOC_POST_SRQ_RECV,
				   self->e.srq.handle, block, sizeof(block), 4,
				   &posted));
	EXPECT_EQ(1, posted);
}

/* More messages than slots: each slot comes back. */
TEST_F(srq, many_rounds)
{
	uint32_t i;

	for (i = 0; i < 20 * SRQ_SLOTS; i++) {
		ASSERT_EQ(0, srq_give(&self->e, i));
		ASSERT_EQ(0, srq_message(i % 3 ? &self->e.s1 : &self->e.s2, "m"));
		EXPECT_RECEIVED(i, i % 3 ? &self->e.r1 : &self->e.r2, 8);
	}
	all_slots(_metadata, self, 0);
}

/*
 * Two queue pairs receive messages of different lengths, so the shorter may
 * complete first.  Each receive completes once, with the wr_id of its place.
 */
TEST_F(srq, out_of_order)
{
	static char big[1 << 16];
	struct rpost_reg_mr from, to;
	struct rp_send send;
	bool seen[64];
	uint32_t i, k, n;
	char *into = rp_pages(1 << 20);

	ASSERT_EQ(0, rp_reg_mr(self->e.s1.fd, self->e.s1.pd, big, sizeof(big), 0,
			       &from));
	ASSERT_EQ(0, rp_reg_mr(self->e.r1.fd, self->e.r1.pd, into, 1 << 20, ALL,
			       &to));
	for (k = 0; k < 6; k++) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < SRQ_SLOTS; i++) {
			ASSERT_EQ(0, rp_post_srq(self->e.r1.fd, self->e.srq.handle,
						 i, into + (i << 16), 1 << 16,
						 to.lkey));
		}
		send = rp_send(RPOST_WR_SEND, 1, big, sizeof(big), from.lkey);
		for (i = 0; i < SRQ_SLOTS / 2; i++) {
			ASSERT_EQ(0, rp_post_send(&self->e.s1, &send));
		}
		for (i = 0; i < SRQ_SLOTS / 2; i++) {
			ASSERT_EQ(0, srq_message(&self->e.s2, "short"));
		}
		for (n = 0; n < SRQ_SLOTS; n++) {
			ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));
			ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
			ASSERT_GT(SRQ_SLOTS, self->wc.wr_id);
			EXPECT_FALSE(seen[self->wc.wr_id]);
			seen[self->wc.wr_id] = true;
			if (self->wc.qp_num == self->e.r2.qp_num)
				EXPECT_STREQ("short", into +
					     (self->wc.wr_id << 16));
		}
		for (i = 0; i < SRQ_SLOTS / 2; i++) {
			ASSERT_EQ(1, rp_wait_cq(&self->e.s1.cq, &self->wc));
		}
	}
	all_slots(_metadata, self, 0);
	munmap(into, 1 << 20);
}

/* ------------------------------------------------------ attacks */

/* Keys that are not of the queue's domain: an error, and no byte moves. */
TEST_F(srq, bad_keys)
{
	struct rpost_reg_mr ro, gone, other, foreign;
	const uint64_t buf = (uintptr_t)self->e.buf;
	uint32_t pd, i;
	struct rp_end *r = &self->e.r1;

	ASSERT_EQ(0, rp_reg_mr(r->fd, r->pd, self->e.buf, SRQ_BYTES, 0, &ro));
	ASSERT_EQ(0, rp_reg_mr(r->fd, r->pd, self->e.buf, SRQ_BYTES, ALL, &gone));
	ASSERT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_MR, gone.handle));
	ASSERT_EQ(0, rp_alloc_pd(r->fd, r->device, &pd));
	ASSERT_EQ(0, rp_reg_mr(r->fd, pd, self->e.buf, SRQ_BYTES, ALL, &other));
	ASSERT_EQ(0, rp_reg_mr(self->e.s1.fd, self->e.s1.pd, self->e.buf, SRQ_BYTES, ALL,
			       &foreign));
	const struct {
		uint64_t addr;
		uint32_t length, lkey;
	} bad[] = {
		{ buf, 64, 0 },
		{ buf, 64, UINT32_MAX },
		{ buf, 64, self->e.mr.lkey ^ 1 },
		{ buf, 64, ro.lkey },
		{ buf, 64, gone.lkey },
		{ buf, 64, other.lkey },
		{ buf, 64, foreign.lkey },
		{ buf - 1, 64, self->e.mr.lkey },
		{ buf + SRQ_BYTES, 64, self->e.mr.lkey },
		{ 0xffff888000000000, 64, 0 },
		{ 0xffffffff81000000, 64, self->e.mr.lkey },
	};

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_EQ(0, rp_post_srq_at(r->fd, self->e.srq.handle, i,
					    bad[i].addr, bad[i].length,
					    bad[i].lkey));
		EXPECT_EQ(-EIO, srq_message(&self->e.s1, "attack"));
		ASSERT_EQ(1, rp_wait_cq(&r->cq, &self->wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status)
			TH_LOG("key %u", i);
		EXPECT_EQ(i, self->wc.wr_id);
		EXPECT_EQ(r->qp_num, self->wc.qp_num);
		EXPECT_EQ('r', self->e.buf[0]);
		EXPECT_EQ('r', self->e.buf[SRQ_BYTES - 1]);
		/* The other queue pair of the shared queue still works. */
		ASSERT_EQ(0, srq_give(&self->e, 3));
		ASSERT_EQ(0, srq_message(&self->e.s2, "fine"));
		EXPECT_RECEIVED(3, &self->e.r2, 8);
		ASSERT_EQ(0, rp_destroy(self->e.s1.fd, RPOST_OBJ_QP,
					self->e.s1.qp));
		ASSERT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_QP, r->qp));
		ASSERT_EQ(0, srq_join(&self->e.s1, r, self->e.srq.handle));
	}
	all_slots(_metadata, self, ARRAY_SIZE(bad));
}

/*
 * A queue pair must have the domain of its shared queue: the module checks keys
 * in the queue's domain, and rxe looks them up in the queue pair's.  A refused
 * command leaves no object behind.
 */
TEST_F(srq, of_another_domain)
{
	static const uint32_t types[] = { RPOST_QPT_RC, RPOST_QPT_UD };
	struct rp_end r = self->e.r1;
	uint32_t i;

	ASSERT_EQ(0, rp_alloc_pd(r.fd, r.device, &r.pd));
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		r.qp = 0;
		EXPECT_EQ(-EINVAL, rp_create_own(&r, types[i],
						 self->e.srq.handle));
		EXPECT_EQ(0, r.qp);
	}
	EXPECT_EQ(0, rp_destroy(r.fd, RPOST_OBJ_PD, r.pd));

	ASSERT_EQ(0, srq_give(&self->e, 4));
	ASSERT_EQ(0, srq_message(&self->e.s1, "fine"));
	EXPECT_RECEIVED(4, &self->e.r1, 8);
}

/* The region of a waiting receive is deregistered: an error of the device. */
TEST_F(srq, region_goes_meanwhile)
{
	struct rpost_reg_mr mr;

	ASSERT_EQ(0, rp_reg_mr(self->e.r1.fd, self->e.r1.pd, self->e.buf, SRQ_BYTES, ALL,
			       &mr));
	ASSERT_EQ(0, rp_post_srq(self->e.r1.fd, self->e.srq.handle, 1, self->e.buf,
				 64, mr.lkey));
	ASSERT_EQ(0, rp_destroy(self->e.r1.fd, RPOST_OBJ_MR, mr.handle));
	memset(self->e.buf, 'r', SRQ_BYTES);
	EXPECT_EQ(-EIO, srq_message(&self->e.s1, "attack"));
	ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));
	EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_EQ('r', self->e.buf[0]);
}

/* ------------------------------------------------ destroyed objects */

TEST_F(srq, busy)
{
	struct rp_end *r = &self->e.r1;

	EXPECT_EQ(-EBUSY, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->e.srq.handle));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_QP, self->e.r1.qp));
	EXPECT_EQ(-EBUSY, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->e.srq.handle));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_QP, self->e.r2.qp));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_MR, self->e.mr.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(r->fd, RPOST_OBJ_PD, r->pd));
	/* The queue has a receive, which never completes. */
	ASSERT_EQ(0, srq_give(&self->e, 1));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->e.srq.handle));
	EXPECT_EQ(-ENOENT, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->e.srq.handle));
	EXPECT_TRUE(rp_quiet_cq(&r->cq));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_PD, r->pd));
}

/* POST_RECV is refused on a queue pair with a shared queue. */
TEST_F(srq, post_recv_is_refused)
{
	EXPECT_EQ(-EINVAL, rp_post_recv(&self->e.r1, 1, self->e.buf, 8,
					self->e.mr.lkey));
}

/*
 * Destroy both queue pairs, the receiver's from @state, and create two new
 * ones.
 *
 * The sender must stop first where rxe uses workers, if a packet may arrive
 * during a reset or within a long message.  rxe_resp_queue_pkt() accesses the
 * receiving queue pair after it is freed; rxe_qp_reset() keeps a packet that
 * arrives during a reset, with its reference, so that destroying waits for 50
 * seconds.
 */
static int replace(FIXTURE_DATA(srq) *self, uint32_t state,
		   bool sender_first)
{
	struct rp_end *s = &self->e.s1, *r = &self->e.r1;

	if (sender_first)
		RP_TRY(rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	if (state != RPOST_QPS_RTS)
		RP_TRY(rp_move(r, state));
	RP_TRY(rp_destroy(r->fd, RPOST_OBJ_QP, r->qp));
	if (!sender_first)
		RP_TRY(rp_destroy(s->fd, RPOST_OBJ_QP, s->qp));
	while (rp_poll_cq(&r->cq, &self->wc) == 1)
		;
	while (rp_poll_cq(&s->cq, &self->wc) == 1)
		;
	return srq_join(s, r, self->e.srq.handle);
}

/* Queue pairs are destroyed while messages arrive: each slot comes back. */
TEST_F(srq, destroyed_under_traffic)
{
	static const uint32_t states[] = {
		RPOST_QPS_ERR, RPOST_QPS_RESET, RPOST_QPS_RTS,
	};
	struct rp_send send = rp_empty_send(RPOST_WR_SEND, 1);
	uint32_t i, round;

	for (round = 0; round < 3 * SRQ_SLOTS; round++) {
		uint32_t state = states[round % 3];

		while (!srq_give(&self->e, round))
			;
		for (i = 0; i < SRQ_SLOTS; i++) {
			ASSERT_EQ(0, rp_post_send(&self->e.s1, &send));
		}
		if (round % 2)
			usleep(round * 10);
		ASSERT_EQ(0, replace(self, state, state == RPOST_QPS_RESET &&
				     !rxe_works_in_posts()));
	}
	/* Use up the posted receives, then check that all slots come back. */
	while (!srq_give(&self->e, 1))
		;
	for (i = 0; i < self->e.srq.max_wr; i++) {
		ASSERT_EQ(0, srq_message(&self->e.s1, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	}
	EXPECT_TRUE(rp_quiet_cq(&self->e.r1.cq));
	all_slots(_metadata, self, 0);
}

/*
 * A queue pair is destroyed within a long message.  Since 6.9 rxe loses the
 * receive of that message; the shared queue must still take as many receives as
 * before, and all must be used.
 *
 * Where rxe crashes if the last packet has just arrived, the message is as long
 * as possible: rxe may keep the CPU busy for half a MiB before the program
 * runs.
 */
TEST_F(srq, stopped_in_the_middle)
{
	const uint32_t size = rxe_repeats_a_packet() &&
			      rp_is_rxe(self->e.s1.fd, self->e.s1.device) ?
			      8 << 20 : 1 << 19;
	const uint32_t rounds = 3 * SRQ_SLOTS;
	char *from = rp_pages(size), *into = rp_pages(size);
	struct rpost_reg_mr from_mr, into_mr;
	struct rp_send send;
	uint32_t i, round;

	ASSERT_EQ(0, rp_reg_mr(self->e.s1.fd, self->e.s1.pd, from, size, 0,
			       &from_mr));
	ASSERT_EQ(0, rp_reg_mr(self->e.r1.fd, self->e.r1.pd, into, size, ALL,
			       &into_mr));
	send = rp_send(RPOST_WR_SEND, 1, from, size, from_mr.lkey);
	for (round = 0; round < rounds; round++) {
		while (!rp_post_srq(self->e.r1.fd, self->e.srq.handle, round, into,
				    size, into_mr.lkey))
			;
		ASSERT_EQ(0, rp_post_send(&self->e.s1, &send));
		usleep(round % 8 * 200);
		ASSERT_EQ(0, replace(self, round % 2 ? RPOST_QPS_RESET :
				     RPOST_QPS_RTS, !rxe_works_in_posts()));
	}
	while (!srq_give(&self->e, 1))
		;
	for (i = 0; i < self->e.srq.max_wr; i++) {
		ASSERT_EQ(0, srq_message(&self->e.s1, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	}
	all_slots(_metadata, self, rounds);
	munmap(from, size);
	munmap(into, size);
}

/* ------------------------------------------------------------- threads */

struct poster {
	struct srq_ends *e;
	bool stop;
	int wrong;
};

static void *post_for_ever(void *arg)
{
	struct poster *p = arg;
	int ret;

	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		ret = srq_give(p->e, 1);
		if (ret && ret != -ENOMEM)
			p->wrong = ret;
		if (ret)
			sched_yield();
	}
	return NULL;
}

/* Two threads post receives while both queue pairs receive. */
TEST_F(srq, posted_by_threads)
{
	struct poster p = { .e = &self->e };
	pthread_t threads[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, post_for_ever,
					    &p));
	}
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, srq_message(i % 2 ? &self->e.s1 : &self->e.s2, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	}
	__atomic_store_n(&p.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	}
	EXPECT_EQ(0, p.wrong);
	while (!srq_give(&self->e, 1))
		;
	for (i = 0; i < self->e.srq.max_wr; i++) {
		ASSERT_EQ(0, srq_message(&self->e.s1, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->e.r1.cq, &self->wc));
	}
	all_slots(_metadata, self, 0);
}

TEST_HARNESS_MAIN
