// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests completion queues: the ring, its mapping, sleeping for an event, and a
 * program that writes to the ring.  A failure means that a completion or an
 * event is lost, or that a program harms more than its own ring.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "cq_pair.h"
#include "mapping.h"

CQ_FIXTURE()

/* Send a message from the client; the server receives it with @wr_id. */
static int message(FIXTURE_DATA(cq) *self, uint64_t wr_id, uint32_t flags)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, wr_id, self->p.buf, 8,
				      self->p.cmr.lkey);
	struct rpost_wc wc;
	int ret;

	send.wr.send_flags |= flags;
	ret = rp_post_recv(&self->p.s, wr_id, self->p.buf + CQ_BYTES, 64,
			   self->p.smr.lkey);
	if (!ret)
		ret = rp_post_send(&self->p.c, &send);
	if (!ret)
		ret = rp_wait_cq(&self->p.c.cq, &wc) == 1 ? 0 : -ETIME;
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
	struct rp_cq *cq = &self->p.s.cq;
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
	/* No other handle or offset has a ring. */
	EXPECT_EQ(-ENOENT, map(cq, rw, MAP_SHARED, size, self->p.s.qp * page));
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
	struct rp_cq *cq = &self->p.s.cq;

	ASSERT_EQ(0, message(self, 7, 0));
	ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	ASSERT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_QP, self->p.s.qp));
	ASSERT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_CQ, cq->cmd.handle));
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

	ASSERT_EQ(0, rp_create_cq(self->p.s.fd, self->p.s.device, 1, -1, &cq));
	EXPECT_EQ(1, cq.cmd.cqe);
	EXPECT_EQ(RPOST_RING_NEED_POLL, cq.ring->flags);
	rp_unmap_cq(&cq);
	ASSERT_EQ(0, rp_create_cq(self->p.s.fd, self->p.s.device, 33, -1, &cq));
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

/*
 * The ring says NEED_POLL until the program has polled in vain for a while, and
 * again when a completion has come.
 */
TEST_F(cq, polled_or_armed)
{
	struct rp_cq *cq = &self->p.s.cq;
	uint64_t end;
	int i;

	EXPECT_EQ(RPOST_RING_NEED_POLL, cq->ring->flags);
	ASSERT_EQ(0, message(self, 1, 0));
	usleep(20000);
	/* Nothing polls the device before the program does. */
	EXPECT_EQ(0, cq->ring->tail);
	ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	EXPECT_EQ(1, self->wc.wr_id);

	/* Again and again. */
	for (i = 2; i < 40; i++) {
		ASSERT_EQ(0, rp_poll_in_vain(cq));
		EXPECT_EQ(0, cq->ring->flags);
		ASSERT_EQ(0, message(self, i, 0));
		end = rp_now_ms() + TEST_TIMEOUT_MS;
		while (!rp_need_poll(cq) && rp_now_ms() < end)
			sched_yield();
		EXPECT_EQ(cq->ring->head, cq->ring->tail);
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		EXPECT_EQ(i, (int)self->wc.wr_id);
	}
	EXPECT_TRUE(rp_quiet(self->p.comp));
}

TEST_F(cq, event_by_the_arm_word)
{
	struct rp_cq *cq = &self->p.s.cq;
	struct rpost_comp_event event;
	uint32_t i;

	for (i = 1; i <= 5; i++) {
		ASSERT_EQ(0, rp_poll_in_vain(cq));
		EXPECT_FALSE(rp_readable(self->p.comp, 0));
		__atomic_store_n(&cq->ring->arm, i, __ATOMIC_SEQ_CST);
		ASSERT_EQ(0, message(self, i, 0));
		ASSERT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
		event.user_data = 0;
		ASSERT_EQ(sizeof(event),
			  read(self->p.comp, &event, sizeof(event)));
		EXPECT_EQ((uintptr_t)cq, event.user_data);
		EXPECT_EQ(i, cq->ring->fired);
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		EXPECT_EQ(i, self->wc.wr_id);
	}
	/* Without a request there is no event. */
	ASSERT_EQ(0, message(self, i, 0));
	ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
	EXPECT_TRUE(rp_quiet(self->p.comp));
}

TEST_F(cq, event_by_ioctl)
{
	struct rpost_comp_event event;

	ASSERT_EQ(0, rp_arm_cq(&self->p.s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
	ASSERT_EQ(sizeof(event), read(self->p.comp, &event, sizeof(event)));
	/* One request gives one event. */
	ASSERT_EQ(0, message(self, 2, 0));
	EXPECT_TRUE(rp_quiet(self->p.comp));
	EXPECT_EQ(-EOPNOTSUPP, rp_arm_cq(&self->p.s.cq, 2));
}

TEST_F(cq, solicited)
{
	struct rp_cq *cq = &self->p.s.cq;
	struct rpost_comp_event event;
	int i;

	/*
	 * siw_rqe_complete() does not pass the solicited flag to
	 * siw_cq_notify_now().
	 */
	RP_SKIP_IWARP(self->p.s.fd, "events for solicited receives, with siw");
	ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, message(self, 1, 0));
		EXPECT_TRUE(rp_quiet(self->p.comp));
		ASSERT_EQ(0, message(self, 2, RPOST_SEND_SOLICITED));
		ASSERT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
		ASSERT_EQ(sizeof(event),
			  read(self->p.comp, &event, sizeof(event)));
		EXPECT_EQ(RPOST_RING_NEED_POLL, cq->ring->flags);
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		EXPECT_EQ(1, self->wc.wr_id);
		ASSERT_EQ(1, rp_wait_cq(cq, &self->wc));
		EXPECT_EQ(2, self->wc.wr_id);
		ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	}
	/* A request for any completion outlasts one for solicited ones. */
	ASSERT_EQ(0, rp_arm_cq(cq, 0));
	ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	ASSERT_EQ(0, message(self, 3, 0));
	EXPECT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
}

/* The same if the program requested any completion in the ring. */
TEST_F(cq, solicited_after_the_arm_word)
{
	struct rp_cq *cq = &self->p.s.cq;

	ASSERT_EQ(0, rp_poll_in_vain(cq));
	__atomic_store_n(&cq->ring->arm, 1, __ATOMIC_SEQ_CST);
	ASSERT_EQ(0, rp_arm_cq(cq, RPOST_ARM_SOLICITED));
	ASSERT_EQ(0, message(self, 1, 0));
	EXPECT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
	EXPECT_EQ(1, cq->ring->fired);
}

TEST_F(cq, channel_reads)
{
	struct rpost_comp_event events[3];
	void *bad = mmap(NULL, getpagesize(), PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, bad);
	ASSERT_EQ(0, fcntl(self->p.comp, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-1, read(self->p.comp, events, sizeof(events)));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_EQ(-1, read(self->p.comp, events, sizeof(events[0]) - 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->p.comp, events, sizeof(events[0])));
	ASSERT_EQ(0, rp_arm_cq(&self->p.s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
	/* The event that could not be copied is not lost. */
	EXPECT_EQ(-1, read(self->p.comp, bad, sizeof(events)));
	EXPECT_EQ(EFAULT, errno);
	EXPECT_EQ(sizeof(events[0]), read(self->p.comp, events, sizeof(events)));
}

static void on_signal(int nr)
{
	(void)nr;
}

/* A reader whose first event goes to a page that comes late, after a signal */
struct interrupted {
	int fd;
	void *page;
	pthread_t reader;
};

static void *interrupt_reader(void *arg)
{
	struct interrupted *in = arg;
	struct uffdio_zeropage zero = { .range = { (uintptr_t)in->page, getpagesize() } };
	struct pollfd pfd = { .fd = in->fd, .events = POLLIN };

	if (poll(&pfd, 1, TEST_TIMEOUT_MS) != 1)
		return in;
	pthread_kill(in->reader, SIGUSR1);
	return (void *)(intptr_t)ioctl(in->fd, UFFDIO_ZEROPAGE, &zero);
}

/* A signal ends a read that has something to return: events can come without end. */
TEST_F(cq, channel_reads_end_by_a_signal)
{
	const size_t one = sizeof(struct rpost_comp_event), page = getpagesize();
	struct sigaction action = { .sa_handler = on_signal };
	struct interrupted in = { .page = rp_pages(page), .reader = pthread_self() };
	pthread_t thread;
	void *ret;
	int i;

	ASSERT_NE(NULL, in.page);
	in.fd = fault_fd(in.page, page, O_NONBLOCK);
	if (in.fd < 0)
		SKIP(return, "no userfaultfd");
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, rp_arm_cq(&self->p.s.cq, 0));
		ASSERT_EQ(0, message(self, i, 0));
		ASSERT_EQ(1, rp_wait_cq(&self->p.s.cq, &self->wc));
		ASSERT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
	}
	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, interrupt_reader, &in));
	EXPECT_EQ(one, read(self->p.comp, in.page, 2 * one));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
	close(in.fd);
	munmap(in.page, page);
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

	ASSERT_EQ(0, rp_arm_cq(&self->p.s.cq, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, message_later, self));
	EXPECT_EQ(sizeof(event), read(self->p.comp, &event, sizeof(event)));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_EQ(1, rp_wait_cq(&self->p.s.cq, &self->wc));
	EXPECT_EQ(9, self->wc.wr_id);
}

TEST_F(cq, two_queues_on_a_channel)
{
	struct rpost_comp_event event;
	struct rp_cq other;

	ASSERT_EQ(0, rp_create_cq(self->p.s.fd, self->p.s.device, 4, self->p.comp,
				  &other));
	ASSERT_EQ(0, rp_arm_cq(&other, 0));
	ASSERT_EQ(0, rp_arm_cq(&self->p.s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_EQ(sizeof(event), read(self->p.comp, &event, sizeof(event)));
	EXPECT_EQ((uintptr_t)&self->p.s.cq, event.user_data);
	EXPECT_TRUE(rp_quiet(self->p.comp));
	EXPECT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_CQ, other.cmd.handle));
	rp_unmap_cq(&other);
}

/* Destroying a queue drops its unread event. */
TEST_F(cq, destroyed_with_an_unread_event)
{
	ASSERT_EQ(0, rp_arm_cq(&self->p.s.cq, 0));
	ASSERT_EQ(0, message(self, 1, 0));
	ASSERT_TRUE(rp_readable(self->p.comp, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_QP, self->p.s.qp));
	ASSERT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_CQ,
				self->p.s.cq.cmd.handle));
	EXPECT_FALSE(rp_readable(self->p.comp, 0));
}

TEST_F(cq, overrun)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rp_cq tiny;
	struct rp_end c2, s2;
	int i;

	/*
	 * A second connection, whose server's queue has room for two
	 * completions.
	 */
	ASSERT_EQ(0, rp_end_init(&c2));
	ASSERT_EQ(0, rp_end_init(&s2));
	ASSERT_EQ(0, rp_create_cq(s2.fd, s2.device, 2, -1, &tiny));
	rp_unmap_cq(&s2.cq);
	s2.cq = tiny;
	ASSERT_EQ(0, rp_listener(&s2, &self->p.listener));
	ASSERT_EQ(0, rp_join(&c2, &s2, self->p.listener, 0));
	ASSERT_EQ(0, rp_poll_cq(&s2.cq, &self->wc));
	for (i = 0; i < RP_DEPTH; i++)
		ASSERT_EQ(0, rp_post_recv(&s2, i, NULL, 0, 0));
	/*
	 * The ring keeps two of the flushed receives, and reports an overrun.
	 */
	ASSERT_EQ(0, rp_move(&s2, RPOST_QPS_ERR));
	while (!(__atomic_load_n(&s2.cq.ring->flags, __ATOMIC_ACQUIRE) &
		 RPOST_RING_OVERRUN) && rp_now_ms() < end)
		ASSERT_EQ(0, rp_fetch(&s2.cq));
	/* The program finds the completions that are not lost. */
	EXPECT_EQ(2, s2.cq.ring->tail);
	EXPECT_EQ(RPOST_RING_OVERRUN, s2.cq.ring->flags & RPOST_RING_OVERRUN);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, rp_poll_cq(&s2.cq, &self->wc));
		EXPECT_EQ(i, (int)self->wc.wr_id);
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, self->wc.status);
	}
	/* More may be flushed into the free room; at least one is lost. */
	for (; rp_poll_cq(&s2.cq, &self->wc) == 1; i++)
		EXPECT_LT(i, (int)self->wc.wr_id);
	EXPECT_GT(RP_DEPTH, i);
	rp_end_close(&c2);
	rp_end_close(&s2);
}

/*
 * One small queue serves many queue pairs: the device's queues grow with them,
 * and no completion is lost while the program polls.
 */
TEST_F(cq, many_queue_pairs)
{
	enum { PAIRS = 6 };
	uint32_t ids[PAIRS], qps[PAIRS], cids[PAIRS], cqps[PAIRS];
	struct rp_send send = rp_send(RPOST_WR_SEND, 0, NULL, 0, 0);
	unsigned int i, j, got = 0;

	for (i = 0; i < PAIRS; i++) {
		ASSERT_EQ(0, rp_join(&self->p.c, &self->p.s, self->p.listener, 0));
		ids[i] = self->p.s.id;
		qps[i] = self->p.s.qp;
		cids[i] = self->p.c.id;
		cqps[i] = self->p.c.qp;
	}
	for (i = 0; i < PAIRS; i++) {
		self->p.s.qp = qps[i];
		self->p.c.qp = cqps[i];
		for (j = 0; j < 4; j++) {
			ASSERT_EQ(0, rp_post_recv(&self->p.s, i, NULL, 0, 0));
			ASSERT_EQ(0, rp_post_send(&self->p.c, &send));
			ASSERT_EQ(1, rp_wait_cq(&self->p.c.cq, &self->wc));
		}
	}
	while (got < PAIRS * 4 && rp_wait_cq(&self->p.s.cq, &self->wc) == 1) {
		EXPECT_EQ(RPOST_WC_SUCCESS, self->wc.status);
		got++;
	}
	EXPECT_EQ(PAIRS * 4, got);
	EXPECT_EQ(0, self->p.s.cq.ring->flags & RPOST_RING_OVERRUN);
	for (i = 0; i < PAIRS; i++) {
		EXPECT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_QP, qps[i]));
		EXPECT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_ID, ids[i]));
		EXPECT_EQ(0, rp_destroy(self->p.c.fd, RPOST_OBJ_QP, cqps[i]));
		EXPECT_EQ(0, rp_destroy(self->p.c.fd, RPOST_OBJ_ID, cids[i]));
	}
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

/* A program that writes to its ring harms only itself. */
TEST_F(cq, scribbled_ring)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 1, self->p.buf, 8,
				      self->p.cmr.lkey);
	uint64_t end = rp_now_ms() + 500;
	pthread_t thread[2];
	int ret, posted = 0;

	send.wr.remote_addr = (uintptr_t)self->p.buf + CQ_BYTES;
	send.wr.rkey = self->p.smr.rkey;
	scribbling = true;
	ASSERT_EQ(0, pthread_create(&thread[0], NULL, scribble, &self->p.c.cq));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, scribble, &self->p.s.cq));
	while (rp_now_ms() < end || (posted <= RP_DEPTH &&
				     rp_now_ms() < end + TEST_CHANCE_MS)) {
		ret = rp_post_send(&self->p.c, &send);
		ASSERT_TRUE(!ret || ret == -ENOMEM);
		posted += !ret;
		rp_post_recv(&self->p.s, 1, NULL, 0, 0);
		ASSERT_EQ(0, rp_fetch(&self->p.s.cq));
		ASSERT_EQ(0, rp_fetch(&self->p.c.cq));
		ASSERT_EQ(0, rp_arm_cq(&self->p.s.cq, 0));
	}
	EXPECT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_QP, self->p.s.qp));
	EXPECT_EQ(0, rp_destroy(self->p.c.fd, RPOST_OBJ_QP, self->p.c.qp));
	scribbling = false;
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	EXPECT_EQ(0, rp_destroy(self->p.s.fd, RPOST_OBJ_CQ,
				self->p.s.cq.cmd.handle));
	RP_SKIP_UNMET(posted > RP_DEPTH, "%d posts", posted);
}

TEST_HARNESS_MAIN
