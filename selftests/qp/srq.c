// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shared receive queues: who may have them, what they take, and that no slot
 * is lost, whatever becomes of the queue pairs that use them.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "kernel_release.h"
#include "rpost_own.h"

#define BUF	4096
#define SLOTS	8
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE)

/*
 * Two senders and two receivers, which share a queue.  The receivers are of one
 * file; @r2 has @r1's descriptor and queues.
 */
FIXTURE(srq) {
	struct rp_end s1, s2, r1, r2;
	struct rpost_create_srq srq;
	struct rpost_query_device dev;
	char *buf;
	struct rpost_reg_mr mr;
	struct rpost_wc wc;
};

static int join(struct rp_end *sender, struct rp_end *receiver, uint32_t srq)
{
	RP_TRY(rp_create_own(sender, RPOST_QPT_RC, 0));
	RP_TRY(rp_create_own(receiver, RPOST_QPT_RC, srq));
	RP_TRY(rp_bring_up(sender, RPOST_QPT_RC, receiver->qp_num));
	RP_TRY(rp_bring_up(receiver, RPOST_QPT_RC, sender->qp_num));
	return 0;
}

FIXTURE_SETUP(srq)
{
	self->buf = rp_pages(BUF);
	memset(self->buf, 'r', BUF);
	ASSERT_EQ(0, rp_end_init(&self->s1));
	ASSERT_EQ(0, rp_end_init(&self->s2));
	ASSERT_EQ(0, rp_end_init(&self->r1));
	self->dev.size = sizeof(self->dev);
	self->dev.device = self->r1.device;
	ASSERT_EQ(0, rp_ioctl(self->r1.fd, RPOST_IOC_QUERY_DEVICE, &self->dev));
	ASSERT_LT(0, self->dev.max_srq);
	ASSERT_EQ(0, rp_create_srq(self->r1.fd, self->r1.pd, SLOTS,
				   &self->srq));
	ASSERT_EQ(0, rp_reg_mr(self->r1.fd, self->r1.pd, self->buf, BUF, ALL,
			       &self->mr));
	self->r2 = self->r1;
	ASSERT_EQ(0, join(&self->s1, &self->r1, self->srq.handle));
	ASSERT_EQ(0, join(&self->s2, &self->r2, self->srq.handle));
}

FIXTURE_TEARDOWN(srq)
{
	rp_end_close(&self->s1);
	rp_end_close(&self->s2);
	rp_end_close(&self->r1);
}

/* A message of 8 bytes from a sender, which has completed there. */
static int message(struct rp_end *sender, const char *text)
{
	struct {
		struct rpost_send_wr wr;
		char data[8];
	} send = {
		.wr = {
			.wr_id = 99,
			.size = sizeof(send),
			.opcode = RPOST_WR_SEND,
			.send_flags = RPOST_SEND_SIGNALED | RPOST_SEND_INLINE,
			.inline_len = 8,
		},
	};
	struct rpost_wc wc;

	memcpy(send.data, text, strnlen(text, 8));
	RP_TRY(rp_post(sender->fd, RPOST_IOC_POST_SEND, sender->qp, &send,
		       sizeof(send), 1, NULL));
	if (rp_wait_cq(&sender->cq, &wc) != 1)
		return -ETIME;
	return wc.status ? -EIO : 0;
}

/* Receive number @i, into its own place. */
static int give(FIXTURE_DATA(srq) *self, uint32_t i)
{
	return rp_post_srq(self->r1.fd, self->srq.handle, i,
			   self->buf + i % 64 * 64, 64, self->mr.lkey);
}

/*
 * Exactly all slots can be taken, and one for each queue pair that has been
 * stopped, since it may have lost one.
 */
static void all_slots(struct __test_metadata *_metadata,
		      FIXTURE_DATA(srq) *self, uint32_t stopped)
{
	uint32_t i, more = 0;

	for (i = 0; i < self->srq.max_wr; i++) {
		ASSERT_EQ(0, give(self, 1000 + i))
			TH_LOG("slot %u of %u", i, self->srq.max_wr);
	}
	while (more <= stopped && !give(self, 0))
		more++;
	EXPECT_GE(stopped, more);
	EXPECT_EQ(-ENOMEM, give(self, 0));
}

#define EXPECT_RECEIVED(id, end, len) do {				\
	ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(RPOST_WC_RECV, self->wc.opcode);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ((end)->qp_num, self->wc.qp_num);			\
	EXPECT_EQ(len, self->wc.byte_len);				\
} while (0)

TEST_F(srq, answer)
{
	struct rpost_query_srq q;
	struct rpost_query_qp qp;

	EXPECT_LE(SLOTS, self->srq.max_wr);
	EXPECT_EQ(2, self->srq.max_sge);
	EXPECT_NE(0, self->srq.handle);
	ASSERT_EQ(0, rp_query_srq(self->r1.fd, self->srq.handle, &q));
	EXPECT_EQ(self->srq.max_wr, q.max_wr);
	EXPECT_EQ(2, q.max_sge);
	EXPECT_EQ(0, q.limit);
	ASSERT_EQ(0, rp_query_qp(&self->r1, &qp));
	EXPECT_EQ(self->srq.handle, qp.srq);
	EXPECT_EQ(0, qp.max_recv_wr);
	EXPECT_EQ(0, qp.max_recv_sge);
	ASSERT_EQ(0, rp_query_qp(&self->s1, &qp));
	EXPECT_EQ(0, qp.srq);
	EXPECT_EQ(RP_DEPTH, qp.max_recv_wr);
}

/* Whoever has a message gets the next receive. */
TEST_F(srq, two_queue_pairs)
{
	ASSERT_EQ(0, give(self, 0));
	ASSERT_EQ(0, give(self, 1));
	ASSERT_EQ(0, give(self, 2));
	ASSERT_EQ(0, message(&self->s2, "two"));
	EXPECT_RECEIVED(0, &self->r2, 8);
	ASSERT_EQ(0, message(&self->s1, "one"));
	EXPECT_RECEIVED(1, &self->r1, 8);
	ASSERT_EQ(0, message(&self->s2, "again"));
	EXPECT_RECEIVED(2, &self->r2, 8);
	EXPECT_STREQ("two", self->buf);
	EXPECT_STREQ("one", self->buf + 64);
	EXPECT_STREQ("again", self->buf + 128);
}

TEST_F(srq, full)
{
	uint32_t i, posted = 77;
	struct rpost_recv_wr block[4];

	all_slots(_metadata, self, 0);
	/* One is used, one can be posted. */
	ASSERT_EQ(0, message(&self->s1, "x"));
	ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));
	for (i = 0; i < 4; i++)
		block[i] = (struct rpost_recv_wr) {
			.wr_id = 500 + i, .size = sizeof(block[i]),
		};
	EXPECT_EQ(-ENOMEM, rp_post(self->r1.fd, RPOST_IOC_POST_SRQ_RECV,
				   self->srq.handle, block, sizeof(block), 4,
				   &posted));
	EXPECT_EQ(1, posted);
}

/* Far more than there are slots: each comes back. */
TEST_F(srq, many_rounds)
{
	uint32_t i;

	for (i = 0; i < 20 * SLOTS; i++) {
		ASSERT_EQ(0, give(self, i));
		ASSERT_EQ(0, message(i % 3 ? &self->s1 : &self->s2, "m"));
		EXPECT_RECEIVED(i, i % 3 ? &self->r1 : &self->r2, 8);
	}
	all_slots(_metadata, self, 0);
}

/*
 * Two queue pairs with messages of different length: the shorter may complete
 * first.  Each receive completes once, under the number of its place.
 */
TEST_F(srq, out_of_order)
{
	static char big[1 << 16];
	struct rpost_reg_mr from, to;
	struct rp_send send;
	bool seen[64];
	uint32_t i, k, n;
	char *into = rp_pages(1 << 20);

	ASSERT_EQ(0, rp_reg_mr(self->s1.fd, self->s1.pd, big, sizeof(big), 0,
			       &from));
	ASSERT_EQ(0, rp_reg_mr(self->r1.fd, self->r1.pd, into, 1 << 20, ALL,
			       &to));
	for (k = 0; k < 6; k++) {
		memset(seen, 0, sizeof(seen));
		for (i = 0; i < SLOTS; i++) {
			ASSERT_EQ(0, rp_post_srq(self->r1.fd, self->srq.handle,
						 i, into + (i << 16), 1 << 16,
						 to.lkey));
		}
		send = rp_send(RPOST_WR_SEND, 1, big, sizeof(big), from.lkey);
		for (i = 0; i < SLOTS / 2; i++) {
			ASSERT_EQ(0, rp_post_send(&self->s1, &send));
		}
		for (i = 0; i < SLOTS / 2; i++) {
			ASSERT_EQ(0, message(&self->s2, "short"));
		}
		for (n = 0; n < SLOTS; n++) {
			ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));
			ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
			ASSERT_GT(SLOTS, self->wc.wr_id);
			EXPECT_FALSE(seen[self->wc.wr_id]);
			seen[self->wc.wr_id] = true;
			if (self->wc.qp_num == self->r2.qp_num)
				EXPECT_STREQ("short", into +
					     (self->wc.wr_id << 16));
		}
		for (i = 0; i < SLOTS / 2; i++) {
			ASSERT_EQ(1, rp_wait_cq(&self->s1.cq, &self->wc));
		}
	}
	all_slots(_metadata, self, 0);
	munmap(into, 1 << 20);
}

/* -------------------------------------------------------- an attacker's */

/* Keys that are not the domain's: an error, and no byte moves. */
TEST_F(srq, bad_keys)
{
	struct rpost_reg_mr ro, gone, other, foreign;
	const uint64_t buf = (uintptr_t)self->buf;
	uint32_t pd, i;
	struct rp_end *r = &self->r1;

	ASSERT_EQ(0, rp_reg_mr(r->fd, r->pd, self->buf, BUF, 0, &ro));
	ASSERT_EQ(0, rp_reg_mr(r->fd, r->pd, self->buf, BUF, ALL, &gone));
	ASSERT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_MR, gone.handle));
	ASSERT_EQ(0, rp_alloc_pd(r->fd, r->device, &pd));
	ASSERT_EQ(0, rp_reg_mr(r->fd, pd, self->buf, BUF, ALL, &other));
	ASSERT_EQ(0, rp_reg_mr(self->s1.fd, self->s1.pd, self->buf, BUF, ALL,
			       &foreign));
	const struct {
		uint64_t addr;
		uint32_t length, lkey;
	} bad[] = {
		{ buf, 64, 0 },
		{ buf, 64, UINT32_MAX },
		{ buf, 64, self->mr.lkey ^ 1 },
		{ buf, 64, ro.lkey },
		{ buf, 64, gone.lkey },
		{ buf, 64, other.lkey },
		{ buf, 64, foreign.lkey },
		{ buf - 1, 64, self->mr.lkey },
		{ buf + BUF - 63, 64, self->mr.lkey },
		{ 0xffff888000000000, 64, 0 },
		{ 0xffffffff81000000, 64, self->mr.lkey },
	};

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_EQ(0, rp_post_srq_at(r->fd, self->srq.handle, i,
					    bad[i].addr, bad[i].length,
					    bad[i].lkey));
		EXPECT_EQ(-EIO, message(&self->s1, "attack"));
		ASSERT_EQ(1, rp_wait_cq(&r->cq, &self->wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status)
			TH_LOG("key %u", i);
		EXPECT_EQ(i, self->wc.wr_id);
		EXPECT_EQ(r->qp_num, self->wc.qp_num);
		EXPECT_EQ('r', self->buf[0]);
		EXPECT_EQ('r', self->buf[BUF - 1]);
		/* The other queue pair on it goes on. */
		ASSERT_EQ(0, give(self, 3));
		ASSERT_EQ(0, message(&self->s2, "fine"));
		EXPECT_RECEIVED(3, &self->r2, 8);
		ASSERT_EQ(0, rp_destroy(self->s1.fd, RPOST_OBJ_QP,
					self->s1.qp));
		ASSERT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_QP, r->qp));
		ASSERT_EQ(0, join(&self->s1, r, self->srq.handle));
	}
	all_slots(_metadata, self, ARRAY_SIZE(bad));
}

/*
 * Keys are checked in the shared queue's domain, and rxe looks them up in the queue
 * pair's: so the two must be one.  What is refused leaves no trace.
 */
TEST_F(srq, of_another_domain)
{
	static const uint32_t types[] = { RPOST_QPT_RC, RPOST_QPT_UD };
	struct rp_end r = self->r1;
	uint32_t i;

	ASSERT_EQ(0, rp_alloc_pd(r.fd, r.device, &r.pd));
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		r.qp = 0;
		EXPECT_EQ(-EINVAL, rp_create_own(&r, types[i],
						 self->srq.handle));
		EXPECT_EQ(0, r.qp);
	}
	EXPECT_EQ(0, rp_destroy(r.fd, RPOST_OBJ_PD, r.pd));

	ASSERT_EQ(0, give(self, 4));
	ASSERT_EQ(0, message(&self->s1, "fine"));
	EXPECT_RECEIVED(4, &self->r1, 8);
}

/* The region goes while its receive waits: what the device says, no crash. */
TEST_F(srq, region_goes_meanwhile)
{
	struct rpost_reg_mr mr;

	ASSERT_EQ(0, rp_reg_mr(self->r1.fd, self->r1.pd, self->buf, BUF, ALL,
			       &mr));
	ASSERT_EQ(0, rp_post_srq(self->r1.fd, self->srq.handle, 1, self->buf,
				 64, mr.lkey));
	ASSERT_EQ(0, rp_destroy(self->r1.fd, RPOST_OBJ_MR, mr.handle));
	memset(self->buf, 'r', BUF);
	EXPECT_EQ(-EIO, message(&self->s1, "attack"));
	ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));
	EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_EQ('r', self->buf[0]);
}

/* ------------------------------------------------------- ends of things */

TEST_F(srq, busy)
{
	struct rp_end *r = &self->r1;

	EXPECT_EQ(-EBUSY, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->srq.handle));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_QP, self->r1.qp));
	EXPECT_EQ(-EBUSY, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->srq.handle));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_QP, self->r2.qp));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_MR, self->mr.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(r->fd, RPOST_OBJ_PD, r->pd));
	/* With receives in it, which nobody hears of again. */
	ASSERT_EQ(0, give(self, 1));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->srq.handle));
	EXPECT_EQ(-ENOENT, rp_destroy(r->fd, RPOST_OBJ_SRQ, self->srq.handle));
	EXPECT_TRUE(rp_quiet_cq(&r->cq));
	EXPECT_EQ(0, rp_destroy(r->fd, RPOST_OBJ_PD, r->pd));
}

/* The queue pair's own command does not know the shared queue. */
TEST_F(srq, post_recv_is_refused)
{
	EXPECT_EQ(-EINVAL, rp_post_recv(&self->r1, 1, self->buf, 8,
					self->mr.lkey));
	/* Nor the other way round. */
	EXPECT_EQ(-ENOENT, rp_post_srq(self->r1.fd, self->r1.qp, 1, self->buf,
				       8, self->mr.lkey));
	EXPECT_EQ(-ENOENT, rp_post_srq(self->r1.fd, self->r1.pd, 1, self->buf,
				       8, self->mr.lkey));
	EXPECT_EQ(-ENOENT, rp_post_srq(self->s1.fd, self->srq.handle, 1,
				       self->buf, 8, self->mr.lkey));
}

/*
 * Both queue pairs go, the receiver's out of @state, and two others come.
 *
 * Where rxe has workers the sender has to stop first if a packet may come during a
 * reset, or a long message is under way: there, who hands a packet to a queue pair
 * that goes away touches it after it is gone (rxe_resp_queue_pkt()), and a packet
 * that comes during a reset is kept, with its reference, until destroying has waited
 * for 50 seconds (rxe_qp_reset()).
 */
static int replace(FIXTURE_DATA(srq) *self, uint32_t state,
		   bool sender_first)
{
	struct rp_end *s = &self->s1, *r = &self->r1;

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
	return join(s, r, self->srq.handle);
}

/*
 * Queue pairs go with messages for them under way, again and again: every slot
 * that a message took comes back.
 */
TEST_F(srq, destroyed_under_traffic)
{
	static const uint32_t states[] = {
		RPOST_QPS_ERR, RPOST_QPS_RESET, RPOST_QPS_RTS,
	};
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, NULL, 0, 0);
	uint32_t i, round;

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	for (round = 0; round < 3 * SLOTS; round++) {
		uint32_t state = states[round % 3];

		while (!give(self, round))
			;
		for (i = 0; i < SLOTS; i++) {
			ASSERT_EQ(0, rp_post_send(&self->s1, &send));
		}
		if (round % 2)
			usleep(round * 10);
		ASSERT_EQ(0, replace(self, state, state == RPOST_QPS_RESET &&
				     !rxe_works_in_posts()));
	}
	/* Use up what is there, then see that all of it can be had again. */
	while (!give(self, 1))
		;
	for (i = 0; i < self->srq.max_wr; i++) {
		ASSERT_EQ(0, message(&self->s1, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	}
	EXPECT_TRUE(rp_quiet_cq(&self->r1.cq));
	all_slots(_metadata, self, 0);
}

/*
 * A long message is stopped in the middle.  Since 6.9 rxe forgets the receive
 * that it had taken; the queue takes as many as before, and all are used.
 *
 * Where rxe crashes if the last packet has just come, the message is as long as can
 * be: rxe may keep the program from its CPU for as long as half a MiB takes.
 */
TEST_F(srq, stopped_in_the_middle)
{
	const uint32_t size = rxe_repeats_a_packet() &&
			      rp_is_rxe(self->s1.fd, self->s1.device) ?
			      8 << 20 : 1 << 19;
	const uint32_t rounds = 3 * SLOTS;
	char *from = rp_pages(size), *into = rp_pages(size);
	struct rpost_reg_mr from_mr, into_mr;
	struct rp_send send;
	uint32_t i, round;

	ASSERT_EQ(0, rp_reg_mr(self->s1.fd, self->s1.pd, from, size, 0,
			       &from_mr));
	ASSERT_EQ(0, rp_reg_mr(self->r1.fd, self->r1.pd, into, size, ALL,
			       &into_mr));
	send = rp_send(RPOST_WR_SEND, 1, from, size, from_mr.lkey);
	for (round = 0; round < rounds; round++) {
		while (!rp_post_srq(self->r1.fd, self->srq.handle, round, into,
				    size, into_mr.lkey))
			;
		ASSERT_EQ(0, rp_post_send(&self->s1, &send));
		usleep(round % 8 * 200);
		ASSERT_EQ(0, replace(self, round % 2 ? RPOST_QPS_RESET :
				     RPOST_QPS_RTS, !rxe_works_in_posts()));
	}
	while (!give(self, 1))
		;
	for (i = 0; i < self->srq.max_wr; i++) {
		ASSERT_EQ(0, message(&self->s1, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	}
	all_slots(_metadata, self, rounds);
	munmap(from, size);
	munmap(into, size);
}

/* ----------------------------------------------------------- the limit */

TEST_F(srq, limit)
{
	int async = rp_async_channel(self->r1.fd, self->r1.device);
	struct rpost_async_event event;
	struct rpost_query_srq q;
	uint32_t i;

	ASSERT_LE(0, async);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, give(self, i));
	}
	ASSERT_EQ(0, rp_srq_limit(self->r1.fd, self->srq.handle, 3));
	ASSERT_EQ(0, rp_query_srq(self->r1.fd, self->srq.handle, &q));
	EXPECT_EQ(3, q.limit);
	ASSERT_EQ(0, message(&self->s1, "x"));
	EXPECT_TRUE(rp_quiet(async));
	ASSERT_EQ(0, message(&self->s1, "x"));
	ASSERT_EQ(0, rp_async_wait(async, RPOST_ASYNC_SRQ_LIMIT_REACHED,
				   &event));
	EXPECT_EQ(self->srq.handle, event.handle);
	EXPECT_EQ(RPOST_OBJ_SRQ, event.obj_type);
	EXPECT_EQ(0x5152, event.user_data);
	EXPECT_EQ(0, event.port);
	/* One time. */
	ASSERT_EQ(0, rp_query_srq(self->r1.fd, self->srq.handle, &q));
	EXPECT_EQ(0, q.limit);
	ASSERT_EQ(0, message(&self->s2, "x"));
	EXPECT_TRUE(rp_quiet(async));
	ASSERT_EQ(0, rp_srq_limit(self->r1.fd, self->srq.handle, 0));
	close(async);
}

TEST_F(srq, limit_errors)
{
	struct rpost_modify_srq cmd, good = {
		.size = sizeof(good),
		.handle = self->srq.handle,
		.attr_mask = RPOST_SRQ_LIMIT,
		.limit = 1,
	};

#define REFUSED(err, field, value) do {					\
	cmd = good;							\
	cmd.field = (value);						\
	EXPECT_EQ(err, rp_ioctl(self->r1.fd, RPOST_IOC_MODIFY_SRQ, &cmd)) \
		TH_LOG(#field " = " #value);				\
} while (0)
	REFUSED(-EINVAL, limit, self->srq.max_wr + 1);
	REFUSED(-EINVAL, limit, UINT32_MAX);
	REFUSED(-EOPNOTSUPP, attr_mask, RPOST_SRQ_LIMIT | RPOST_SRQ_MAX_WR);
	REFUSED(-EOPNOTSUPP, attr_mask, RPOST_SRQ_MAX_WR);
	REFUSED(-EOPNOTSUPP, attr_mask, 4);
	REFUSED(-EOPNOTSUPP, attr_mask, UINT32_MAX);
	REFUSED(-ENOENT, handle, 0);
	REFUSED(-ENOENT, handle, self->r1.pd);
#undef REFUSED
	EXPECT_EQ(0, rp_srq_limit(self->r1.fd, self->srq.handle,
				  self->srq.max_wr));
}

TEST_F(srq, creation)
{
	struct rpost_create_srq cmd, good = {
		.size = sizeof(good),
		.pd = self->r1.pd,
		.max_wr = 4,
		.max_sge = 1,
	};
	int objects = rp_num_objects(self->r1.fd);

#define REFUSED(err, field, value) do {					\
	cmd = good;							\
	cmd.field = (value);						\
	EXPECT_EQ(err, rp_ioctl(self->r1.fd, RPOST_IOC_CREATE_SRQ, &cmd)) \
		TH_LOG(#field " = " #value);				\
	EXPECT_EQ(0, cmd.handle);					\
} while (0)
	REFUSED(-EINVAL, max_wr, 0);
	REFUSED(-EINVAL, max_wr, self->dev.max_srq_wr + 1);
	REFUSED(-EINVAL, max_wr, UINT32_MAX);
	REFUSED(-EINVAL, max_sge, self->dev.max_srq_sge + 1);
	REFUSED(-EINVAL, max_sge, UINT32_MAX);
	REFUSED(-EINVAL, limit, UINT32_MAX);
	REFUSED(-ENOENT, pd, 0);
	REFUSED(-ENOENT, pd, self->srq.handle);
#undef REFUSED
	EXPECT_EQ(objects, rp_num_objects(self->r1.fd));
	/* What the device says, holds. */
	cmd = good;
	cmd.max_wr = self->dev.max_srq_wr;
	cmd.max_sge = self->dev.max_srq_sge;
	ASSERT_EQ(0, rp_ioctl(self->r1.fd, RPOST_IOC_CREATE_SRQ, &cmd));
	EXPECT_LE(self->dev.max_srq_wr, cmd.max_wr);
	EXPECT_EQ(0, rp_destroy(self->r1.fd, RPOST_OBJ_SRQ, cmd.handle));
}

/* Too many entries; and a queue for none. */
TEST_F(srq, entries)
{
	struct {
		struct rpost_recv_wr wr;
		struct rpost_sge sge[3];
	} block = {
		.wr = { .size = sizeof(block), .num_sge = 3 },
	};
	uint32_t posted = 9;

	EXPECT_EQ(-EINVAL, rp_post(self->r1.fd, RPOST_IOC_POST_SRQ_RECV,
				   self->srq.handle, &block, sizeof(block), 1,
				   &posted));
	EXPECT_EQ(0, posted);
	block.wr.num_sge = 2;
	block.wr.size -= sizeof(block.sge[0]);
	block.sge[0] = (struct rpost_sge) { (uintptr_t)self->buf, 3,
					    self->mr.lkey };
	block.sge[1] = (struct rpost_sge) { (uintptr_t)self->buf + 10, 20,
					    self->mr.lkey };
	ASSERT_EQ(0, rp_post(self->r1.fd, RPOST_IOC_POST_SRQ_RECV,
			     self->srq.handle, &block, block.wr.size, 1,
			     NULL));
	ASSERT_EQ(0, message(&self->s1, "abcdefg"));
	EXPECT_RECEIVED(0, &self->r1, 8);
	EXPECT_EQ(0, memcmp(self->buf, "abcr", 4));
	EXPECT_STREQ("defg", self->buf + 10);
}

/* ------------------------------------------------------------- threads */

struct poster {
	FIXTURE_DATA(srq) *self;
	bool stop;
	int wrong;
};

static void *post_for_ever(void *arg)
{
	struct poster *p = arg;
	int ret;

	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		ret = give(p->self, 1);
		if (ret && ret != -ENOMEM)
			p->wrong = ret;
		if (ret)
			sched_yield();
	}
	return NULL;
}

/* Two threads post while both queue pairs receive. */
TEST_F(srq, posted_by_threads)
{
	struct poster p = { .self = self };
	pthread_t threads[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, post_for_ever,
					    &p));
	}
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, message(i % 2 ? &self->s1 : &self->s2, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));
		ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);
	}
	__atomic_store_n(&p.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	}
	EXPECT_EQ(0, p.wrong);
	while (!give(self, 1))
		;
	for (i = 0; i < self->srq.max_wr; i++) {
		ASSERT_EQ(0, message(&self->s1, "x"));
		ASSERT_EQ(1, rp_wait_cq(&self->r1.cq, &self->wc));
	}
	all_slots(_metadata, self, 0);
}

TEST_HARNESS_MAIN
