// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests a full send queue.  A failure means that fewer sends can be posted than
 * requested, or that the last is not completed or flushed in its order.  The
 * peer has no receives at first, so that no send completes.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rpost_own.h"

#define SLOT	64	/* bytes of a message */
#define BUF	(4 * RP_DEPTH * SLOT)
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

FIXTURE(sq_full) {
	struct rp_end c, s;
	char *cbuf, *sbuf;
	struct rpost_reg_mr cmr, smr;
	struct rpost_wc wc;
};

FIXTURE_SETUP(sq_full)
{
	/* 0.64 ms; the connection manager's value is 655 ms. */
	const struct rpost_qp_attr soon = {
		.attr_mask = RPOST_QP_MIN_RNR_TIMER, .min_rnr_timer = 12,
	};
	unsigned int i;

	self->cbuf = rp_pages(BUF);
	self->sbuf = rp_pages(BUF);
	ASSERT_NE(NULL, self->cbuf);
	ASSERT_NE(NULL, self->sbuf);
	for (i = 0; i < BUF; i++)
		self->cbuf[i] = 1 + i / SLOT;
	ASSERT_EQ(0, rp_connect_pair(&self->c, &self->s, 0));
	if (!rp_is_iwarp(self->s.fd, self->s.device))
		ASSERT_EQ(0, rp_modify(&self->s, &soon));
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->cbuf, BUF, ALL,
			       &self->cmr));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->sbuf, BUF, ALL,
			       &self->smr));
}

FIXTURE_TEARDOWN(sq_full)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

static struct rp_send message(FIXTURE_DATA(sq_full) *self, unsigned int i)
{
	return rp_send(RPOST_WR_SEND, i, self->cbuf + i * SLOT, SLOT,
		       self->cmr.lkey);
}

/* Post messages @first to @end - 1 with @flags. */
static int send_some(FIXTURE_DATA(sq_full) *self, unsigned int first,
		     unsigned int end, uint32_t flags)
{
	struct rp_send send;

	for (; first < end; first++) {
		send = message(self, first);
		send.wr.send_flags = flags;
		RP_TRY(rp_post_send(&self->c, &send));
	}
	return 0;
}

static int send_all(FIXTURE_DATA(sq_full) *self, uint32_t flags)
{
	return send_some(self, 0, RP_DEPTH, flags);
}

static int receive_some(FIXTURE_DATA(sq_full) *self, unsigned int first,
			unsigned int end)
{
	for (; first < end; first++)
		RP_TRY(rp_post_recv(&self->s, first, self->sbuf + first * SLOT,
				    SLOT, self->smr.lkey));
	return 0;
}

#define EXPECT_FULL() do {						\
	struct rp_send full_ = message(self, 0);			\
									\
	EXPECT_EQ(-ENOMEM, rp_post_send(&self->c, &full_));		\
} while (0)

#define EXPECT_COMPLETION(end, id, expected) do {			\
	ASSERT_EQ(1, rp_wait_cq(&(end)->cq, &self->wc));		\
	EXPECT_EQ(expected, self->wc.status);				\
	EXPECT_EQ(id, self->wc.wr_id);					\
} while (0)

/* An error flushes messages that are not acknowledged, even if they arrived. */
#define EXPECT_COMPLETION_BEFORE_ERROR(id) do {				\
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));		\
	EXPECT_TRUE(self->wc.status == RPOST_WC_SUCCESS ||		\
		    self->wc.status == RPOST_WC_WR_FLUSH_ERR);		\
	EXPECT_EQ(id, self->wc.wr_id);					\
} while (0)

/* Expect all messages from @first on, each at its place. */
#define EXPECT_ARRIVED(first, end_) do {				\
	unsigned int n_;						\
									\
	for (n_ = first; n_ < (end_); n_++) {				\
		EXPECT_COMPLETION(&self->s, n_, RPOST_WC_SUCCESS);	\
		EXPECT_TRUE(all_bytes(self->sbuf + n_ * SLOT, SLOT, 1 + n_)); \
	}								\
} while (0)

TEST_F(sq_full, all_are_taken)
{
	unsigned int round, i;

	for (round = 0; round < 3; round++) {
		memset(self->sbuf, 0, BUF);
		ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
		EXPECT_FULL();
		EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
		ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
		EXPECT_ARRIVED(0, RP_DEPTH);
		for (i = 0; i < RP_DEPTH; i++)
			EXPECT_COMPLETION(&self->c, i, RPOST_WC_SUCCESS);
	}
	EXPECT_EQ(RPOST_WC_SUCCESS, rp_no_other(&self->c));
}

/* The last send goes out although the sender neither polls, posts nor waits. */
TEST_F(sq_full, nobody_looks)
{
	ASSERT_EQ(0, send_all(self, 0));
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
	EXPECT_ARRIVED(0, RP_DEPTH);
	EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
}

/* The same if the sender waits for solicited events and none occurs. */
TEST_F(sq_full, nobody_looks_for_solicited_events)
{
	int comp;

	ASSERT_EQ(0, rp_leave(&self->c));
	ASSERT_EQ(0, rp_leave(&self->s));
	comp = rp_end_add_channel(&self->c, 4 * RP_DEPTH);
	ASSERT_LE(0, comp);
	ASSERT_EQ(0, rp_own_join(&self->c, &self->s, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_arm_cq(&self->c.cq, RPOST_ARM_SOLICITED));
	ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
	EXPECT_ARRIVED(0, RP_DEPTH);
	EXPECT_TRUE(rp_quiet(comp));
	close(comp);
}

/* Only the last send is signaled; it must cause the event. */
TEST_F(sq_full, event)
{
	uint32_t arms = 0;
	unsigned int i;
	int comp;

	ASSERT_EQ(0, rp_leave(&self->c));
	ASSERT_EQ(0, rp_leave(&self->s));
	comp = rp_end_add_channel(&self->c, 4 * RP_DEPTH);
	ASSERT_LE(0, comp);
	ASSERT_EQ(0, rp_own_join(&self->c, &self->s, RPOST_QPT_RC));
	ASSERT_EQ(0, send_some(self, 0, RP_DEPTH - 1, 0));
	ASSERT_EQ(0, send_some(self, RP_DEPTH - 1, RP_DEPTH,
			       RPOST_SEND_SIGNALED));
	ASSERT_EQ(0, rp_ask_event(&self->c.cq, &arms));
	EXPECT_TRUE(rp_quiet(comp));
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
	EXPECT_TRUE(rp_readable(comp, TEST_TIMEOUT_MS));
	EXPECT_COMPLETION(&self->c, RP_DEPTH - 1, RPOST_WC_SUCCESS);
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_COMPLETION(&self->s, i, RPOST_WC_SUCCESS);
	close(comp);
}

/* Each completion makes room for one more send, and the order stays. */
TEST_F(sq_full, order)
{
	unsigned int done = 0, i;

	ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
	for (i = RP_DEPTH; i < 3 * RP_DEPTH; i++) {
		ASSERT_EQ(0, receive_some(self, done, done + 1));
		EXPECT_COMPLETION(&self->c, done, RPOST_WC_SUCCESS);
		EXPECT_ARRIVED(done, done + 1);
		done++;
		ASSERT_EQ(0, send_some(self, i, i + 1, RPOST_SEND_SIGNALED));
		EXPECT_FULL();
	}
	ASSERT_EQ(0, receive_some(self, done, i));
	EXPECT_ARRIVED(done, i);
	for (; done < i; done++)
		EXPECT_COMPLETION(&self->c, done, RPOST_WC_SUCCESS);
}

/* A list with one send more than there is room for: all others are posted. */
TEST_F(sq_full, list)
{
	struct rp_send sends[RP_DEPTH + 1];
	uint32_t posted;
	unsigned int i;

	for (i = 0; i <= RP_DEPTH; i++)
		sends[i] = message(self, i);
	EXPECT_EQ(-ENOMEM, rp_post(self->c.fd, RPOST_IOC_POST_SEND, self->c.qp,
				   sends, sizeof(sends), RP_DEPTH + 1, &posted));
	EXPECT_EQ(RP_DEPTH, posted);
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
	EXPECT_ARRIVED(0, RP_DEPTH);
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_COMPLETION(&self->c, i, RPOST_WC_SUCCESS);
	ASSERT_EQ(0, receive_some(self, RP_DEPTH, 2 * RP_DEPTH));
	for (i = 0; i < RP_DEPTH; i++)
		sends[i] = message(self, RP_DEPTH + i);
	EXPECT_EQ(0, rp_post(self->c.fd, RPOST_IOC_POST_SEND, self->c.qp, sends,
			     RP_DEPTH * sizeof(*sends), RP_DEPTH, &posted));
	EXPECT_ARRIVED(RP_DEPTH, 2 * RP_DEPTH);
}

/* The program may overwrite its inline data after the post. */
TEST_F(sq_full, inline_data)
{
	struct {
		struct rpost_send_wr wr;
		char data[SLOT];
	} send = {
		.wr = {
			.size = sizeof(send), .opcode = RPOST_WR_SEND,
			.send_flags = RPOST_SEND_SIGNALED | RPOST_SEND_INLINE,
			.inline_len = SLOT,
		},
	};
	unsigned int i;

	ASSERT_EQ(SLOT, RP_INLINE);
	for (i = 0; i < RP_DEPTH; i++) {
		send.wr.wr_id = i;
		memset(send.data, 1 + i, SLOT);
		ASSERT_EQ(0, rp_post(self->c.fd, RPOST_IOC_POST_SEND,
				     self->c.qp, &send, sizeof(send), 1, NULL));
	}
	memset(&send, 0, sizeof(send));
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
	EXPECT_ARRIVED(0, RP_DEPTH);
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_COMPLETION(&self->c, i, RPOST_WC_SUCCESS);
}

TEST_F(sq_full, every_operation)
{
	static const uint32_t ops[] = {
		RPOST_WR_RDMA_WRITE, RPOST_WR_RDMA_READ,
		RPOST_WR_ATOMIC_FETCH_AND_ADD, RPOST_WR_ATOMIC_CMP_AND_SWP,
	};
	uint64_t *local = (uint64_t *)(self->cbuf + BUF - SLOT);
	uint64_t *remote = (uint64_t *)(self->sbuf + BUF - SLOT);
	struct rp_send send;
	unsigned int op, i;

	RP_SKIP_IWARP(self->c.fd, "atomic operations");
	for (op = 0; op < ARRAY_SIZE(ops); op++) {
		*local = 5;
		*remote = 7;
		ASSERT_EQ(0, send_some(self, 0, RP_DEPTH - 1,
				       RPOST_SEND_SIGNALED));
		send = rp_send(ops[op], RP_DEPTH - 1, local, 8, self->cmr.lkey);
		send.wr.remote_addr = (uintptr_t)remote;
		send.wr.rkey = self->smr.rkey;
		send.wr.compare_add = 7;
		send.wr.swap = 100;
		ASSERT_EQ(0, rp_post_send(&self->c, &send));
		EXPECT_FULL();
		ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH - 1));
		EXPECT_ARRIVED(0, RP_DEPTH - 1);
		for (i = 0; i < RP_DEPTH; i++)
			EXPECT_COMPLETION(&self->c, i, RPOST_WC_SUCCESS);
		EXPECT_EQ(op == 0 ? 5 : 7, *local);
		EXPECT_EQ(op == 0 ? 5 : op == 1 ? 7 : op == 2 ? 14 : 100, *remote);
	}
}

/*
 * A bad key fails the last send in its turn.  rxe of 6.1 stops at such a send
 * while those before it wait for receives, so the program disconnects.
 */
TEST_F(sq_full, bad_key)
{
	struct rp_send send = message(self, RP_DEPTH - 1);
	unsigned int i;

	ASSERT_EQ(0, send_some(self, 0, RP_DEPTH - 1, RPOST_SEND_SIGNALED));
	send.sge.lkey ^= 0x5a5a00;
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH - 1));
	ASSERT_EQ(0, rp_disconnect(self->c.fd, self->c.id));
	for (i = 0; i < RP_DEPTH - 1; i++)
		EXPECT_COMPLETION_BEFORE_ERROR(i);
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
	EXPECT_EQ(RP_DEPTH - 1, self->wc.wr_id);
	EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);
}

/* A region that is deregistered before the last send's turn is not read. */
TEST_F(sq_full, region_goes)
{
	struct rp_send send = message(self, RP_DEPTH - 1);
	struct rpost_reg_mr mr;
	unsigned int i;

	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->cbuf, BUF, ALL,
			       &mr));
	ASSERT_EQ(0, send_some(self, 0, RP_DEPTH - 1, RPOST_SEND_SIGNALED));
	send.sge.lkey = mr.lkey;
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
	ASSERT_EQ(0, rp_disconnect(self->c.fd, self->c.id));
	for (i = 0; i < RP_DEPTH - 1; i++)
		EXPECT_COMPLETION_BEFORE_ERROR(i);
	ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
	EXPECT_EQ(RP_DEPTH - 1, self->wc.wr_id);
	EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_TRUE(all_bytes(self->sbuf + (RP_DEPTH - 1) * SLOT, SLOT, 0));
}

TEST_F(sq_full, flushed_when_disconnected)
{
	unsigned int i;

	ASSERT_EQ(0, send_all(self, 0));
	ASSERT_EQ(0, rp_disconnect(self->c.fd, self->c.id));
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_COMPLETION(&self->c, i, RPOST_WC_WR_FLUSH_ERR);
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, rp_no_other(&self->c));
	/* Later sends are flushed, too. */
	ASSERT_EQ(0, send_all(self, 0));
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_COMPLETION(&self->c, i, RPOST_WC_WR_FLUSH_ERR);
}

TEST_F(sq_full, destroyed)
{
	ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
}

/* FIXTURE_TEARDOWN() closes the file while the queue is full. */
TEST_F(sq_full, closed)
{
	ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
}

TEST_F(sq_full, device_goes)
{
	unsigned int i;

	RP_NEED_REMOVAL();
	ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
	ASSERT_EQ(0, rp_remove_device());
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_COMPLETION(&self->c, i, RPOST_WC_WR_FLUSH_ERR);
	ASSERT_EQ(0, rp_add_device());
}

/* RESET empties the queue, and it can be filled again. */
TEST_F(sq_full, reset)
{
	unsigned int round, i;

	ASSERT_EQ(0, rp_leave(&self->c));
	ASSERT_EQ(0, rp_leave(&self->s));
	ASSERT_EQ(0, rp_own_join(&self->c, &self->s, RPOST_QPT_RC));
	for (round = 0; round < 3; round++) {
		ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
		ASSERT_EQ(0, rp_move(&self->c, 0));
		ASSERT_EQ(0, rp_move(&self->s, 0));
		EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
		ASSERT_EQ(0, rp_bring_up(&self->c, RPOST_QPT_RC,
					 self->s.qp_num));
		ASSERT_EQ(0, rp_bring_up(&self->s, RPOST_QPT_RC,
					 self->c.qp_num));
	}
	ASSERT_EQ(0, send_all(self, RPOST_SEND_SIGNALED));
	ASSERT_EQ(0, receive_some(self, 0, RP_DEPTH));
	EXPECT_ARRIVED(0, RP_DEPTH);
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_COMPLETION(&self->c, i, RPOST_WC_SUCCESS);
}

/* Several threads post while there is room; one takes the completions. */
#define POSTERS		3
#define MESSAGES	5000

struct posters {
	struct rp_end *end;
	struct rp_send write;
	uint32_t left;
	int err;
};

static void *post_writes(void *arg)
{
	struct posters *p = arg;
	struct rp_send send = p->write;
	int ret;

	while (__atomic_fetch_sub(&p->left, 1, __ATOMIC_RELAXED) - 1 < MESSAGES) {
		do {
			ret = rp_post_send(p->end, &send);
		} while (ret == -ENOMEM && !sched_yield());
		if (ret)
			p->err = ret;
	}
	return NULL;
}

TEST_F(sq_full, posters)
{
	struct posters p = {
		.end = &self->c,
		.write = rp_send(RPOST_WR_RDMA_WRITE, 1, self->cbuf, 8,
				 self->cmr.lkey),
		.left = MESSAGES,
	};
	pthread_t threads[POSTERS];
	unsigned int i;

	p.write.wr.remote_addr = self->smr.addr;
	p.write.wr.rkey = self->smr.rkey;
	for (i = 0; i < POSTERS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, post_writes, &p));
	for (i = 0; i < MESSAGES; i++)
		EXPECT_COMPLETION(&self->c, 1, RPOST_WC_SUCCESS);
	for (i = 0; i < POSTERS; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, p.err);
	EXPECT_EQ(RPOST_WC_SUCCESS, rp_no_other(&self->c));
}

TEST_HARNESS_MAIN
