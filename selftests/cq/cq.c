// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: the shared ring, its mapping, sleeping, and what a
 * program can do to the words it shares with the kernel.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "kernel_release.h"
#include "rpost_own.h"

#define BUF_SIZE	4096

/* Two connected ends; the server's queue has a completion channel. */
FIXTURE(cq) {
	struct rp_end c, s;
	int comp;
	char *buf;
	struct rpost_reg_mr cmr, smr;
	struct rpost_wc wc;
	uint32_t listener;
};

FIXTURE_VARIANT(cq) {
	uint32_t flags;		/* RPOST_CQ_* */
};

FIXTURE_VARIANT_ADD(cq, plain) { 0 };
FIXTURE_VARIANT_ADD(cq, small) { RPOST_CQ_SMALL_ENTRIES };
FIXTURE_VARIANT_ADD(cq, shared) {
	RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE
};

FIXTURE_SETUP(cq)
{
	rp_cq_flags = variant->flags;
	self->buf = rp_pages(2 * BUF_SIZE);
	ASSERT_NE(NULL, self->buf);
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	self->comp = rp_end_add_channel(&self->s, 4 * RP_DEPTH);
	ASSERT_LE(0, self->comp);
	ASSERT_EQ(0, rp_listener(&self->s, &self->listener));
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->buf, BUF_SIZE,
			       RPOST_ACCESS_LOCAL_WRITE, &self->cmr));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->buf + BUF_SIZE,
			       BUF_SIZE, RPOST_ACCESS_LOCAL_WRITE |
			       RPOST_ACCESS_REMOTE_WRITE, &self->smr));
}

FIXTURE_TEARDOWN(cq)
{
	close(self->comp);
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	munmap(self->buf, 2 * BUF_SIZE);
}

/* One message from the client to the server, received under @wr_id. */
static int message(FIXTURE_DATA(cq) *self, uint64_t wr_id, uint32_t flags)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, wr_id, self->buf, 8,
				      self->cmr.lkey);
	struct rpost_wc wc;
	int ret;

	send.wr.send_flags |= flags;
	ret = rp_post_recv(&self->s, wr_id, self->buf + BUF_SIZE, 64,
			   self->smr.lkey);
	if (!ret)
		ret = rp_post_send(&self->c, &send);
	if (!ret)
		ret = rp_wait_cq(&self->c.cq, &wc) == 1 ? 0 : -ETIME;
	return ret;
}

static int map(struct rp_cq *cq, int prot, int flags, size_t size, off_t offset)
{
	void *p = mmap(NULL, size, prot, flags, cq->fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

TEST_F(cq, mapping)
{
	struct rp_cq *cq = &self->s.cq;
	size_t size = cq->cmd.mmap_size, page = getpagesize();
	off_t off = cq->cmd.mmap_offset;
	int rw = PROT_READ | PROT_WRITE;

	EXPECT_EQ(0, map(cq, rw, MAP_SHARED, size, off));
	EXPECT_EQ(0, map(cq, PROT_READ, MAP_SHARED, size, off));
	EXPECT_EQ(-EINVAL, map(cq, rw, MAP_PRIVATE, size, off));
	EXPECT_EQ(-EINVAL, map(cq, rw, MAP_SHARED, size + page, off));
	EXPECT_EQ(-EINVAL, map(cq, rw, MAP_SHARED, size - page, off));
	EXPECT_EQ(-EACCES, map(cq, rw | PROT_EXEC, MAP_SHARED, size, off));
	EXPECT_EQ(-ENOENT, map(cq, rw, MAP_SHARED, size, 0));
	/* Handles of other types have no ring. */
	EXPECT_EQ(-ENOENT, map(cq, rw, MAP_SHARED, size, self->s.qp * page));
	EXPECT_EQ(-ENOENT, map(cq, rw, MAP_SHARED, size, 1ll << 30));
	EXPECT_EQ(-EINVAL, map(cq, rw, MAP_SHARED, size, 1ll << 50));

	EXPECT_EQ(-1, mprotect(rp_cq_map(cq), size, rw | PROT_EXEC));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, mremap(rp_cq_map(cq), size, 2 * size,
				     MREMAP_MAYMOVE));
	EXPECT_EQ(0, message(self, 1, 0));
	EXPECT_EQ(1, rp_wait_cq(cq, &self->wc));
	EXPECT_EQ(1, self->wc.wr_id);
}

TEST_F(cq, mapping_outlives_the_queue)
{
	struct rp_cq *cq = &self->s.cq;

	ASSERT_EQ(0, message(self, 7, 0));
	ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
	ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_CQ, cq->cmd.handle));
	EXPECT_EQ(7, cq->wcs[0].wr_id);
	memset(rp_cq_map(cq), 0xff, cq->cmd.mmap_size);
	EXPECT_EQ(-ENOENT, map(cq, PROT_READ, MAP_SHARED, cq->cmd.mmap_size,
			       cq->cmd.mmap_offset));
}

TEST_F(cq, mapping_outlives_the_file)
{
	struct rp_end end;

	ASSERT_EQ(0, rp_end_init(&end));
	close(end.channel);
	close(end.fd);
	end.cq.ring->head = 5;
	EXPECT_EQ(5, end.cq.ring->head);
	EXPECT_EQ(RPOST_RING_NEED_POLL, end.cq.ring->flags);
	rp_unmap_cq(&end.cq);
}

TEST_F(cq, created_as_asked)
{
	struct rp_cq cq;

	ASSERT_EQ(0, rp_create_cq(self->s.fd, self->s.device, 1, -1, &cq));
	EXPECT_EQ(1, cq.cmd.cqe);
	EXPECT_EQ(RPOST_RING_NEED_POLL, cq.ring->flags);
	rp_unmap_cq(&cq);
	ASSERT_EQ(0, rp_create_cq(self->s.fd, self->s.device, 33, -1, &cq));
	EXPECT_EQ(64, cq.cmd.cqe);
	EXPECT_EQ(sizeof(struct rpost_ring), cq.cmd.entries_offset);
	EXPECT_EQ(variant->flags, cq.cmd.flags);
	EXPECT_EQ(0, cq.cmd.mmap_size % getpagesize());
	EXPECT_LE(cq.cmd.ring_offset + cq.cmd.entries_offset +
		  64 * rp_wc_size(&cq), cq.cmd.mmap_size);
	if (!(variant->flags & RPOST_CQ_SHARED_PAGE))
		EXPECT_EQ(0, cq.cmd.ring_offset);
	rp_unmap_cq(&cq);
}

TEST_F(cq, create_errors)
{
	struct rpost_create_cq good = {
		.size = sizeof(good),
		.device = self->s.device,
		.cqe = 4,
		.channel_fd = -1,
	}, cmd;
	int objects = rp_num_objects(self->s.fd), other;

#define REFUSED(err, field, value)					\
	do {								\
		cmd = good;						\
		cmd.field = (value);					\
		EXPECT_EQ(err, rp_ioctl(self->s.fd, RPOST_IOC_CREATE_CQ, &cmd)) \
			TH_LOG(#field " = " #value);			\
		EXPECT_EQ(0, cmd.handle);				\
	} while (0)

	REFUSED(-EINVAL, cqe, 0);
	REFUSED(-EINVAL, cqe, UINT32_MAX);
	REFUSED(-EINVAL, cqe, 1 << 30);
	REFUSED(-EINVAL, comp_vector, UINT32_MAX);
	REFUSED(-ENODEV, device, 0);
	REFUSED(-ENODEV, device, UINT32_MAX);
	REFUSED(-EOPNOTSUPP, reserved, 1);
	REFUSED(-EOPNOTSUPP, reserved2, 1);
	REFUSED(-EOPNOTSUPP, flags, 4);
	REFUSED(-EOPNOTSUPP, flags, 7);
	REFUSED(-EOPNOTSUPP, flags, 1u << 31);
	REFUSED(-EBADF, channel_fd, 9999);
	REFUSED(-EBADF, channel_fd, -2);
	REFUSED(-EBADF, channel_fd, self->s.fd);
	REFUSED(-EBADF, channel_fd, self->s.channel);
	other = rp_comp_channel(self->c.fd);
	ASSERT_LE(0, other);
	REFUSED(-EBADF, channel_fd, other);
	close(other);
#undef REFUSED
	EXPECT_EQ(objects, rp_num_objects(self->s.fd));
}

TEST_F(cq, need_poll_ends_with_the_first_poll)
{
	struct rp_cq *cq = &self->s.cq;
	struct rpost_poll_cq cmd = {
		.size = sizeof(cmd),
		.handle = cq->cmd.handle,
	};

	EXPECT_EQ(RPOST_RING_NEED_POLL, cq->ring->flags);
	ASSERT_EQ(0, message(self, 1, 0));
	usleep(20000);
	/* Nobody has fetched it. */
	EXPECT_EQ(0, cq->ring->tail);
	ASSERT_EQ(0, rp_ioctl(cq->fd, RPOST_IOC_POLL_CQ, &cmd));
	EXPECT_EQ(1, cmd.count);
	EXPECT_EQ(1, cq->ring->tail);
	EXPECT_EQ(0, cq->ring->flags);

	/* From now on the ring fills by itself. */
	ASSERT_EQ(0, message(self, 2, 0));
	ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	EXPECT_EQ(2, self->wc.wr_id);
	ASSERT_EQ(0, rp_ioctl(cq->fd, RPOST_IOC_POLL_CQ, &cmd));
	EXPECT_EQ(0, cmd.count);
}

TEST_F(cq, event_by_the_arm_word)
{
	struct rp_cq *cq = &self->s.cq;
	struct rpost_comp_event event;
	uint32_t i;

	/* The first poll makes the ring fill by itself. */
	ASSERT_EQ(0, rp_poll_cq(cq, &self->wc));
	for (i = 1; i <= 5; i++) {
		EXPECT_FALSE(rp_readable(self->comp, 0));
		__atomic_store_n(&cq->ring->arm, i, __ATOMIC_SEQ_CST);
		ASSERT_EQ(0, message(self, i, 0));
		ASSERT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
		event.user_data = 0;
		ASSERT_EQ(sizeof(event),
			  read(self->comp, &event, sizeof(event)));
		EXPECT_EQ((uintptr_t)cq, event.user_data);
		EXPECT_EQ(i, cq->ring->fired);
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		EXPECT_EQ(i, self->wc.wr_id);
	}
	/* Not armed: no event. */
	ASSERT_EQ(0, message(self, i, 0));
	ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	EXPECT_TRUE(rp_quiet(self->comp));
}

TEST_F(cq, event_by_ioctl)
{
	struct rpost_comp_event event;

	ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
	ASSERT_EQ(sizeof(event), read(self->comp, &event, sizeof(event)));
	/* One event for one request. */
	ASSERT_EQ(0, message(self, 2, 0));
	EXPECT_TRUE(rp_quiet(self->comp));
	EXPECT_EQ(-EOPNOTSUPP, rp_arm_cq(&self->s.cq, 2));
}

TEST_F(cq, solicited)
{
	struct rp_cq *cq = &self->s.cq;
	struct rpost_comp_event event;
	int i;

	/* siw_rqe_complete() does not tell siw_cq_notify_now() of it. */
	RP_SKIP_IWARP(self->s.fd, "events for solicited receives, with siw");
	ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, message(self, 1, 0));
		EXPECT_TRUE(rp_quiet(self->comp));
		ASSERT_EQ(0, message(self, 2, RPOST_SEND_SOLICITED));
		ASSERT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
		ASSERT_EQ(sizeof(event),
			  read(self->comp, &event, sizeof(event)));
		EXPECT_EQ(RPOST_RING_NEED_POLL, cq->ring->flags);
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		EXPECT_EQ(1, self->wc.wr_id);
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		EXPECT_EQ(2, self->wc.wr_id);
		ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	}
	/* Any completion, then: the stronger request stands. */
	ASSERT_EQ(0, rp_arm_cq(cq, 0));
	ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	ASSERT_EQ(0, message(self, 3, 0));
	EXPECT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
}

/* The stronger request stands, also if it was made in the ring. */
TEST_F(cq, solicited_after_the_arm_word)
{
	struct rp_cq *cq = &self->s.cq;

	ASSERT_EQ(0, rp_poll_cq(cq, &self->wc));
	ASSERT_FALSE(rp_need_poll(cq));
	__atomic_store_n(&cq->ring->arm, 1, __ATOMIC_SEQ_CST);
	ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	EXPECT_EQ(1, cq->ring->fired);
	ASSERT_EQ(0, message(self, 1, 0));
	EXPECT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
}

TEST_F(cq, channel_reads)
{
	struct rpost_comp_event events[3];
	void *bad = mmap(NULL, getpagesize(), PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, bad);
	ASSERT_EQ(0, fcntl(self->comp, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-1, read(self->comp, events, sizeof(events)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, read(self->comp, events, sizeof(events[0]) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->comp, events, sizeof(events[0])));
	ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
	/* What could not be given is not lost. */
	EXPECT_EQ(-1, read(self->comp, bad, sizeof(events)));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(sizeof(events[0]), read(self->comp, events, sizeof(events)));
}

static void *message_later(void *arg)
{
	usleep(50000);
	return (void *)(intptr_t)message(arg, 9, 0);
}

TEST_F(cq, sleeping)
{
	struct rpost_comp_event event;
	pthread_t thread;
	void *ret;

	ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, message_later, self));
	EXPECT_EQ(sizeof(event), read(self->comp, &event, sizeof(event)));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_EQ(1, rp_wait_cq(&self->s.cq, &self->wc));
	EXPECT_EQ(9, self->wc.wr_id);
}

TEST_F(cq, two_queues_on_a_channel)
{
	struct rpost_comp_event event;
	struct rp_cq other;

	ASSERT_EQ(0, rp_create_cq(self->s.fd, self->s.device, 4, self->comp,
				  &other));
	ASSERT_EQ(0, rp_arm_cq(&other, 0));
	ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_EQ(sizeof(event), read(self->comp, &event, sizeof(event)));
	EXPECT_EQ((uintptr_t)&self->s.cq, event.user_data);
	EXPECT_TRUE(rp_quiet(self->comp));
	EXPECT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_CQ, other.cmd.handle));
	rp_unmap_cq(&other);
}

/* Events that nobody has read go with the queue. */
TEST_F(cq, destroyed_with_an_unread_event)
{
	ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
	ASSERT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_CQ,
				self->s.cq.cmd.handle));
	EXPECT_FALSE(rp_readable(self->comp, 0));
}

TEST_F(cq, overrun)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rp_cq tiny;
	struct rp_end c2, s2;
	int i;

	/* Two more ends; the server's queue has room for two. */
	ASSERT_EQ(0, rp_end_init(&c2));
	ASSERT_EQ(0, rp_end_init(&s2));
	ASSERT_EQ(0, rp_create_cq(s2.fd, s2.device, 2, -1, &tiny));
	rp_unmap_cq(&s2.cq);
	s2.cq = tiny;
	ASSERT_EQ(0, rp_listener(&s2, &self->listener));
	ASSERT_EQ(0, rp_join(&c2, &s2, self->listener, 0));
	ASSERT_EQ(0, rp_poll_cq(&s2.cq, &self->wc));
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, rp_post_recv(&s2, i, NULL, 0, 0));
	/* What cannot be delivered is lost, and said to be. */
	ASSERT_EQ(0, rp_move(&s2, RPOST_QPS_ERR));
	while (!(__atomic_load_n(&s2.cq.ring->flags, __ATOMIC_ACQUIRE) &
		 RPOST_RING_OVERRUN) && rp_now_ms() < end)
		sched_yield();
	/* Who is told finds what is not lost. */
	EXPECT_EQ(2, s2.cq.ring->tail);
	EXPECT_EQ(RPOST_RING_OVERRUN, s2.cq.ring->flags & RPOST_RING_OVERRUN);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, rp_poll_cq(&s2.cq, &self->wc));
		EXPECT_EQ(i, (int)self->wc.wr_id);
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	}
	EXPECT_EQ(0, rp_poll_cq(&s2.cq, &self->wc));
	rp_end_close(&c2);
	rp_end_close(&s2);
}

/*
 * One small queue serves many queue pairs: the device's queues grow with them,
 * and nothing is lost while the program polls.
 */
TEST_F(cq, many_queue_pairs)
{
	enum { PAIRS = 6 };
	uint32_t ids[PAIRS], qps[PAIRS], cids[PAIRS], cqps[PAIRS];
	struct rp_send send = rp_send(RPOST_WR_SEND, 0, NULL, 0, 0);
	unsigned int i, j, got = 0;

	for (i = 0; i < PAIRS; i++) {
		ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
		ids[i] = self->s.id;
		qps[i] = self->s.qp;
		cids[i] = self->c.id;
		cqps[i] = self->c.qp;
	}
	for (i = 0; i < PAIRS; i++) {
		self->s.qp = qps[i];
		self->c.qp = cqps[i];
		for (j = 0; j < 4; j++) {
			ASSERT_EQ(0, rp_post_recv(&self->s, i, NULL, 0, 0));
			ASSERT_EQ(0, rp_post_send(&self->c, &send));
			ASSERT_EQ(1, rp_wait_cq(&self->c.cq, &self->wc));
		}
	}
	while (got < PAIRS * 4 && rp_wait_cq(&self->s.cq, &self->wc) == 1) {
		EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
		got++;
	}
	EXPECT_EQ(PAIRS * 4, got);
	EXPECT_EQ(0, self->s.cq.ring->flags & RPOST_RING_OVERRUN);
	for (i = 0; i < PAIRS; i++) {
		EXPECT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, qps[i]));
		EXPECT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_ID, ids[i]));
		EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, cqps[i]));
		EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_ID, cids[i]));
	}
}

/* The server's sends have a channel, so it writes to the client. */
static int write_back(FIXTURE_DATA(cq) *self, struct rp_send *send)
{
	struct rpost_reg_mr mr;
	int ret;

	ret = rp_reg_mr(self->c.fd, self->c.pd, self->buf, BUF_SIZE,
			RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			&mr);
	*send = rp_send(RPOST_WR_RDMA_WRITE, 0, self->buf + BUF_SIZE, 8,
			self->smr.lkey);
	send->wr.remote_addr = (uintptr_t)self->buf;
	send->wr.rkey = mr.rkey;
	return ret;
}

static uint32_t flags_of(struct rp_cq *cq)
{
	return __atomic_load_n(&cq->ring->flags, __ATOMIC_SEQ_CST);
}

/*
 * Posts that have completed when they return, again and again, end the
 * interrupts.  Then it is the post that fills the ring.
 */
TEST_F(cq, prompt_posts)
{
	/* Where it is not expected, a few show that nothing is lost. */
	bool expected = rxe_works_in_posts() &&
			rp_is_rxe(self->s.fd, self->s.device);
	int i, j, most = expected ? 2000 : 200;
	int prompt = 0, changes = 0;
	struct rp_cq *cq = &self->s.cq;
	struct rpost_comp_event event;
	struct rp_send send;
	uint32_t tail;

	ASSERT_EQ(0, write_back(self, &send));
	for (j = 0; j < 3; j++) {
		/* The first poll makes the ring fill by itself. */
		ASSERT_EQ(0, rp_poll_cq(cq, &self->wc));
		for (i = 0; i < most && !flags_of(cq); i++) {
			send.wr.wr_id = i;
			ASSERT_EQ(0, rp_post_send(&self->s, &send));
			ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
			ASSERT_EQ(i, (int)self->wc.wr_id);
		}
		changes += flags_of(cq) == RPOST_RING_NEED_POLL;
		for (i = 0; i < 100; i++) {
			tail = cq->ring->tail;
			ASSERT_EQ(0, rp_post_send(&self->s, &send));
			prompt += cq->ring->tail == tail + 1;
			ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		}
		/* Who asks is told. */
		ASSERT_EQ(0, rp_arm_cq(cq, 0));
		ASSERT_EQ(0, rp_post_send(&self->s, &send));
		ASSERT_TRUE(rp_readable(self->comp, TEST_TIMEOUT_MS));
		ASSERT_EQ(sizeof(event),
			  read(self->comp, &event, sizeof(event)));
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	}
	TH_LOG("%d times without interrupts, %d of 300 posts prompt", changes,
	       prompt);
	if (expected) {
		EXPECT_LT(0, changes);
		EXPECT_LT(0, prompt);
	}
}

struct burst {
	struct rp_end *end;
	struct rp_send send;
	unsigned int count;
	bool stop;
	int err;
};

/* In bursts that are longer than it takes to end the interrupts. */
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

/* Asks for an event.  0: look at the ring again. */
static int may_sleep(struct rp_cq *cq, uint32_t *arms)
{
	RP_TRY(rp_ask_event(cq, arms));
	return __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE) ==
	       cq->ring->head;
}

/* Whatever ends the interrupts, nobody sleeps for ever. */
TEST_F(cq, asleep_between_prompt_posts)
{
	struct burst b = { .end = &self->s, .count = 5000 };
	struct rp_cq *cq = &self->s.cq;
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
			if (!rp_readable(self->comp, TEST_TIMEOUT_MS))
				break;
			slept++;
			ASSERT_EQ(sizeof(event),
				  read(self->comp, &event, sizeof(event)));
		}
	}
	EXPECT_EQ(b.count, got);
	EXPECT_LT(0, slept);
	__atomic_store_n(&b.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, b.err);
}

static volatile bool scribbling;

static void *scribble(void *arg)
{
	struct rp_cq *cq = arg;
	uint32_t *words = rp_cq_map(cq), i, x = 1;

	while (scribbling) {
		for (i = 0; i < cq->cmd.mmap_size / 4; i++) {
			x = x * 1664525 + 1013904223;
			words[i] = x;
		}
	}
	return NULL;
}

/* The program owns its ring's memory, and can harm only itself. */
TEST_F(cq, scribbled_ring)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 1, self->buf, 8,
				      self->cmr.lkey);
	struct rpost_poll_cq poll = { .size = sizeof(poll) };
	uint64_t end = rp_now_ms() + 500;
	pthread_t thread[2];
	int ret, posted = 0;

	send.wr.remote_addr = (uintptr_t)self->buf + BUF_SIZE;
	send.wr.rkey = self->smr.rkey;
	scribbling = true;
	ASSERT_EQ(0, pthread_create(&thread[0], NULL, scribble, &self->c.cq));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, scribble, &self->s.cq));
	while (rp_now_ms() < end || (posted <= RP_DEPTH &&
				     rp_now_ms() < end + TEST_CHANCE_MS)) {
		ret = rp_post_send(&self->c, &send);
		ASSERT_TRUE(!ret || ret == -ENOMEM);
		posted += !ret;
		rp_post_recv(&self->s, 1, NULL, 0, 0);
		poll.handle = self->s.cq.cmd.handle;
		ASSERT_EQ(0, rp_ioctl(self->s.fd, RPOST_IOC_POLL_CQ, &poll));
		poll.handle = self->c.cq.cmd.handle;
		ASSERT_EQ(0, rp_ioctl(self->c.fd, RPOST_IOC_POLL_CQ, &poll));
		ASSERT_EQ(0, rp_arm_cq(&self->s.cq, 0));
	}
	EXPECT_LT(RP_DEPTH, posted);
	EXPECT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_QP, self->s.qp));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	scribbling = false;
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	EXPECT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_CQ,
				self->s.cq.cmd.handle));
}

TEST_HARNESS_MAIN
