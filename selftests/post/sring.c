// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests submission rings: which requests they accept and refuse, the order of
 * completions, and when the kernel's thread sleeps and wakes.  A failure means
 * that a request is lost or out of order, or that a ring stops.
 */
#include <kselftest_harness.h>

#include "../cq/cq_pair.h"
#include "sring.h"

#define MEM		4096
#define BYTES		4096
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

FIXTURE(sring) {
	struct rp_end c, s;
	struct sring ring;
	char *cmem, *smem;
	struct rpost_reg_mr cmr, smr;
	struct rpost_wc wc;
};

FIXTURE_SETUP(sring)
{
	self->cmem = rp_pages(MEM);
	self->smem = rp_pages(MEM);
	memset(self->cmem, 'c', MEM);
	memset(self->smem, 's', MEM);
	ASSERT_EQ(0, rp_connect_pair(&self->c, &self->s, 0));
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->cmem, MEM, ALL,
			       &self->cmr));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->smem, MEM, ALL,
			       &self->smr));
	ASSERT_EQ(0, sr_setup(self->c.fd, self->c.qp, BYTES, &self->ring));
}

FIXTURE_TEARDOWN(sring)
{
	sr_unmap(&self->ring);
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* Return a request with @length bytes at the same offset on both sides. */
static struct rp_send request(FIXTURE_DATA(sring) *self, uint32_t opcode,
			      uint64_t wr_id, uint32_t length)
{
	struct rp_send send = rp_send(opcode, wr_id, self->cmem, length,
				      self->cmr.lkey);

	send.wr.remote_addr = (uintptr_t)self->smem;
	send.wr.rkey = self->smr.rkey;
	return send;
}

#define POST(...) do {							\
	struct rp_send post = __VA_ARGS__;				\
									\
	ASSERT_EQ(0, sr_post(&self->ring, &post));			\
} while (0)

#define EXPECT_DONE(id, st)						\
	ASSERT_EQ(0, sr_expect(&self->c.cq, id, RPOST_WC_##st))

/* -------------------------------------------------------------- set up */

TEST_F(sring, values)
{
	const struct rpost_setup_send_ring *cmd = &self->ring.cmd;
	struct sring other;
	uint32_t qp;

	EXPECT_EQ(BYTES, cmd->bytes);
	EXPECT_EQ(sizeof(struct rpost_send_ring), cmd->data_offset);
	EXPECT_LE(cmd->data_offset + BYTES, cmd->mmap_size);
	EXPECT_EQ(0, cmd->mmap_size % getpagesize());
	/* A queue pair has only one ring. */
	EXPECT_EQ(-EINVAL, sr_setup(self->c.fd, self->c.qp, BYTES, &other));
	EXPECT_EQ(-ENOENT, sr_setup(self->c.fd, self->c.pd, BYTES, &other));
	EXPECT_EQ(-ENOENT, sr_setup(self->c.fd, 0x7ffffff0, BYTES, &other));
	qp = self->s.qp;
	EXPECT_EQ(-EINVAL, sr_setup(self->s.fd, qp, 0, &other));
	EXPECT_EQ(-EINVAL, sr_setup(self->s.fd, qp, 65537, &other));
	EXPECT_EQ(-EINVAL, sr_setup(self->s.fd, qp, UINT32_MAX, &other));
	EXPECT_EQ(-EINVAL, sr_enter(self->s.fd, qp));
	EXPECT_EQ(-ENOENT, sr_enter(self->s.fd, 0x7ffffff0));
	ASSERT_EQ(0, sr_setup(self->s.fd, qp, 1, &other));
	EXPECT_EQ(4096, other.cmd.bytes);
	EXPECT_EQ(0, sr_enter(self->s.fd, qp));
	sr_unmap(&other);
}

TEST_F(sring, largest)
{
	struct sring other;

	ASSERT_EQ(0, sr_setup(self->s.fd, self->s.qp, 40000, &other));
	EXPECT_EQ(65536, other.cmd.bytes);
	sr_unmap(&other);
}

/* If the answer cannot be written, no ring exists. */
TEST_F(sring, unanswered)
{
	struct rpost_setup_send_ring cmd = {
		.size = sizeof(cmd), .qp = self->s.qp, .bytes = BYTES,
	};
	struct sring other;

	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(self->s.fd,
					       RPOST_IOC_SETUP_SEND_RING, &cmd,
					       sizeof(cmd)));
	EXPECT_EQ(-EINVAL, sr_enter(self->s.fd, self->s.qp));
	ASSERT_EQ(0, sr_setup(self->s.fd, self->s.qp, BYTES, &other));
	sr_unmap(&other);
}

static int map_as(FIXTURE_DATA(sring) *self, size_t size, int prot, int flags,
		  uint64_t offset)
{
	void *p = mmap(NULL, size, prot, flags, self->c.fd, offset);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

TEST_F(sring, mapping)
{
	const struct rpost_setup_send_ring *cmd = &self->ring.cmd;
	int rw = PROT_READ | PROT_WRITE;
	size_t page = getpagesize();

	EXPECT_EQ(0, map_as(self, cmd->mmap_size, rw, MAP_SHARED,
			    cmd->mmap_offset));
	EXPECT_EQ(-EINVAL, map_as(self, cmd->mmap_size, rw, MAP_PRIVATE,
				  cmd->mmap_offset));
	EXPECT_EQ(-EINVAL, map_as(self, page, rw, MAP_SHARED,
				  cmd->mmap_offset));
	EXPECT_EQ(-EINVAL, map_as(self, cmd->mmap_size + page, rw, MAP_SHARED,
				  cmd->mmap_offset));
	EXPECT_EQ(-EACCES, map_as(self, cmd->mmap_size, rw | PROT_EXEC,
				  MAP_SHARED, cmd->mmap_offset));
	EXPECT_EQ(-1, mprotect(self->ring.hdr, page, rw | PROT_EXEC));
	/* A handle of a domain cannot be mapped. */
	EXPECT_EQ(-ENOENT, map_as(self, cmd->mmap_size, rw, MAP_SHARED,
				  (uint64_t)self->c.pd * page));
}

/* ------------------------------------------------------------- opcodes */

TEST_F(sring, write_and_read)
{
	memset(self->cmem, 'w', 100);
	POST(request(self, RPOST_WR_RDMA_WRITE, 1, 100));
	EXPECT_DONE(1, SUCCESS);
	EXPECT_TRUE(all_bytes(self->smem, 100, 'w'));
	EXPECT_EQ('s', self->smem[100]);
	memset(self->smem, 'r', 50);
	POST(request(self, RPOST_WR_RDMA_READ, 2, 50));
	EXPECT_DONE(2, SUCCESS);
	EXPECT_TRUE(all_bytes(self->cmem, 50, 'r'));
	EXPECT_EQ('w', self->cmem[50]);
}

TEST_F(sring, send)
{
	struct rp_send send = request(self, RPOST_WR_SEND_WITH_IMM, 3, 64);

	send.wr.rkey = 0;
	send.wr.remote_addr = 0;
	send.wr.imm_data = htonl(42);
	ASSERT_EQ(0, rp_post_recv(&self->s, 4, self->smem, 64,
				  self->smr.lkey));
	POST(send);
	EXPECT_DONE(3, SUCCESS);
	ASSERT_EQ(1, rp_wait_cq(&self->s.cq, &self->wc));
	EXPECT_EQ(4, self->wc.wr_id);
	EXPECT_EQ(htonl(42), self->wc.imm_data);
	EXPECT_TRUE(all_bytes(self->smem, 64, 'c'));
}

TEST_F(sring, inline_data)
{
	struct {
		struct rpost_send_wr wr;
		char data[RP_INLINE];
	} send = { .wr = request(self, RPOST_WR_RDMA_WRITE, 5, 0).wr };

	send.wr.send_flags |= RPOST_SEND_INLINE;
	send.wr.num_sge = 0;
	send.wr.inline_len = RP_INLINE;
	send.wr.size = sizeof(send);
	memset(send.data, 'i', RP_INLINE);
	ASSERT_EQ(0, sr_put(&self->ring, &send, sizeof(send)));
	ASSERT_EQ(0, sr_show(&self->ring));
	EXPECT_DONE(5, SUCCESS);
	EXPECT_TRUE(all_bytes(self->smem, RP_INLINE, 'i'));
	EXPECT_EQ('s', self->smem[RP_INLINE]);
}

TEST_F(sring, atomic)
{
	struct rp_send send = request(self, RPOST_WR_ATOMIC_FETCH_AND_ADD, 6, 8);

	RP_SKIP_IWARP(self->c.fd, "atomics");
	*(uint64_t *)self->smem = 40;
	send.wr.compare_add = 2;
	POST(send);
	EXPECT_DONE(6, SUCCESS);
	EXPECT_EQ(42, *(uint64_t *)self->smem);
	EXPECT_EQ(40, *(uint64_t *)self->cmem);
}

/* ------------------------------------------------------ order and room */

/* Publish more requests at once than the queue holds, around the ring's end. */
TEST_F(sring, many_at_once)
{
	struct rp_send send;
	uint64_t id = 0, seen = 0;
	int round;

	for (round = 0; round < 8; round++) {
		for (; id < (round + 1) * 40ull; id++) {
			send = request(self, RPOST_WR_RDMA_WRITE, id, 8);
			ASSERT_EQ(0, sr_put(&self->ring, &send, send.wr.size));
		}
		ASSERT_EQ(0, sr_show(&self->ring));
		for (; seen < id; seen++)
			EXPECT_DONE(seen, SUCCESS);
	}
	EXPECT_EQ(self->ring.tail, sr_head(&self->ring));
	EXPECT_EQ(0, sr_error(&self->ring));
}

/* Unsignaled requests have no completions. */
TEST_F(sring, unsignaled)
{
	struct rp_send send;
	int i;

	for (i = 0; i < 300; i++) {
		send = sr_nop(i);
		if (i % 100 != 99)
			send.wr.send_flags = 0;
		while (sr_post(&self->ring, &send) == -ENOMEM)
			usleep(100);
		if (i % 100 == 99)
			EXPECT_DONE(i, SUCCESS);
	}
	EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
}

/* While the program does not poll, requests wait in the full ring. */
TEST_F(sring, full)
{
	struct rp_send send;
	uint64_t i, n = 0;

	for (;;) {
		send = sr_nop(n);
		if (sr_put(&self->ring, &send, send.wr.size)) {
			ASSERT_EQ(0, sr_show(&self->ring));
			if (n == RP_DEPTH + BYTES / sizeof(send.wr))
				break;
			usleep(100);
			continue;
		}
		n++;
	}
	EXPECT_TRUE(sr_wait(&self->ring.hdr->flags, RPOST_SEND_RING_BLOCKED,
			    RPOST_SEND_RING_BLOCKED));
	/* The thread sleeps while the ring is blocked. */
	EXPECT_TRUE(sr_wait_asleep(&self->ring));
	EXPECT_EQ(BYTES, self->ring.tail - sr_head(&self->ring));
	for (i = 0; i < n; i++)
		EXPECT_DONE(i, SUCCESS);
	EXPECT_EQ(self->ring.tail, sr_head(&self->ring));
	POST(sr_nop(n));
	EXPECT_DONE(n, SUCCESS);
	EXPECT_EQ(0, sr_flags(&self->ring) & RPOST_SEND_RING_BLOCKED);
}

/* POST_SEND can be used together with the ring. */
TEST_F(sring, calls_beside)
{
	struct rp_send send = sr_nop(2);

	POST(sr_nop(1));
	EXPECT_DONE(1, SUCCESS);
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	EXPECT_DONE(2, SUCCESS);
	POST(sr_nop(3));
	EXPECT_DONE(3, SUCCESS);
}

/* ----------------------------------------------------- sleep and wake */

TEST_F(sring, sleeps_until_entered)
{
	struct rp_send send = sr_nop(7);
	int slept = 0, tries;

	for (tries = 0; slept < 3 && tries < 50; tries++) {
		ASSERT_TRUE(sr_wait_asleep(&self->ring));
		/* The thread looks once more after it has set the flag. */
		usleep(20000);
		ASSERT_EQ(0, sr_put(&self->ring, &send, send.wr.size));
		__atomic_store_n(&self->ring.hdr->tail, self->ring.tail,
				 __ATOMIC_RELEASE);
		usleep(TEST_QUIET_MS * 1000);
		slept += self->ring.tail != sr_head(&self->ring);
		ASSERT_EQ(0, sr_enter(self->c.fd, self->c.qp));
		EXPECT_DONE(7, SUCCESS);
	}
	EXPECT_EQ(3, slept);
}

/*
 * The thread arms the device before it sleeps, so that a completion interrupts.  A
 * late interrupt for the one before may disarm it, but not each time.
 */
TEST_F(sring, receives_while_it_sleeps)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, NULL, 0, 0);
	int armed = 0, tries;

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	/* The first poll arms the device's queue. */
	ASSERT_EQ(0, rp_poll_cq(&self->c.cq, &self->wc));
	for (tries = 0; !armed && tries < 50; tries++) {
		POST(sr_nop(1));
		EXPECT_DONE(1, SUCCESS);
		ASSERT_EQ(0, rp_post_recv(&self->c, 9, self->cmem, 8,
					  self->cmr.lkey));
		ASSERT_TRUE(sr_wait_asleep(&self->ring));
		armed += !rp_need_poll(&self->c.cq);
		ASSERT_EQ(0, rp_post_send(&self->s, &send));
		ASSERT_EQ(0, sr_expect(&self->s.cq, 1, RPOST_WC_SUCCESS));
		EXPECT_DONE(9, SUCCESS);
	}
	EXPECT_EQ(1, armed);
}

/* While the thread is awake, neither posts nor polls call the kernel. */
TEST_F(sring, no_calls)
{
	long idle = rp_module_number("parameters/poller_idle_ms");
	int i, polls = 0;

	if (access(RP_PARAMETERS "poller_idle_ms", W_OK))
		SKIP(return, "needs root");
	ASSERT_EQ(0, rp_set_number("poller_idle_ms", 1000));
	ASSERT_EQ(0, rp_poll_cq(&self->c.cq, &self->wc));
	POST(sr_nop(0));
	EXPECT_DONE(0, SUCCESS);
	self->ring.entered = 0;
	for (i = 0; i < 500; i++) {
		POST(sr_nop(i));
		polls += rp_need_poll(&self->c.cq);
		EXPECT_DONE(i, SUCCESS);
		polls += rp_need_poll(&self->c.cq);
	}
	EXPECT_EQ(0, rp_set_number("poller_idle_ms", idle));
	EXPECT_EQ(0, self->ring.entered);
	EXPECT_EQ(0, polls);
}

/*
 * Each request for an event in the completion ring is answered, whichever task
 * polls the completion: the thread, or the post that it makes.
 */
TEST(event_for_each_request)
{
	long idle = rp_module_number("parameters/poller_idle_ms");
	struct rpost_comp_event event;
	struct rp_send send;
	struct sring ring;
	struct cq_pair p;
	struct rpost_wc wc;
	uint32_t arms = 0;
	int i;

	if (access(RP_PARAMETERS "poller_idle_ms", W_OK))
		SKIP(return, "needs root");
	/* The thread sleeps once in a while only, however slow the program is. */
	ASSERT_EQ(0, rp_set_number("poller_idle_ms", 1000));
	ASSERT_EQ(0, cq_pair_init(&p, 0));
	ASSERT_EQ(0, sr_setup(p.s.fd, p.s.qp, BYTES, &ring));
	for (i = 0; i < 200; i++) {
		/* The device is unarmed afterwards. */
		send = sr_nop(i);
		ASSERT_EQ(0, sr_post(&ring, &send));
		ASSERT_EQ(1, rp_wait_cq(&p.s.cq, &wc));
		ASSERT_EQ(0, rp_ask_event(&p.s.cq, &arms));
		ASSERT_EQ(0, sr_post(&ring, &send));
		ASSERT_TRUE(rp_readable(p.comp, TEST_TIMEOUT_MS));
		ASSERT_EQ(sizeof(event), read(p.comp, &event, sizeof(event)));
		ASSERT_EQ(1, rp_wait_cq(&p.s.cq, &wc));
		ASSERT_EQ(i, (int)wc.wr_id);
	}
	EXPECT_EQ(0, rp_set_number("poller_idle_ms", idle));
	/* Most of them were in memory. */
	EXPECT_LT(100, (int)arms);
	sr_unmap(&ring);
	cq_pair_close(&p);
}

/* ------------------------------------------------------------ refusals */

/* The bad request fails in its turn, and later ones are flushed. */
#define REFUSED(...) do {						\
	struct rp_send bad = request(self, RPOST_WR_RDMA_WRITE, 12, 8);	\
									\
	bad.__VA_ARGS__;						\
	ASSERT_EQ(0, sr_put(&self->ring, &(struct rp_send[]){		\
			request(self, RPOST_WR_RDMA_WRITE, 10, 8) },	\
			sizeof(bad)));					\
	POST(request(self, RPOST_WR_RDMA_WRITE, 11, 8));		\
	EXPECT_DONE(10, SUCCESS);					\
	EXPECT_DONE(11, SUCCESS);					\
	POST(bad);							\
	POST(request(self, RPOST_WR_RDMA_WRITE, 13, 8));		\
	EXPECT_DONE(12, LOC_QP_OP_ERR);					\
	EXPECT_DONE(13, WR_FLUSH_ERR);					\
	POST(request(self, RPOST_WR_RDMA_WRITE, 14, 8));		\
	EXPECT_DONE(14, WR_FLUSH_ERR);					\
	EXPECT_EQ(0, sr_error(&self->ring));				\
} while (0)

TEST_F(sring, refuses_opcode)
{
	REFUSED(wr.opcode = 77);
}

TEST_F(sring, refuses_flag)
{
	REFUSED(wr.send_flags |= 0x100);
}

TEST_F(sring, refuses_reserved)
{
	REFUSED(wr.reserved = 1);
}

TEST_F(sring, refuses_count)
{
	REFUSED(wr.num_sge = 2);
}

TEST_F(sring, refuses_inline)
{
	REFUSED(wr.send_flags |= RPOST_SEND_INLINE);
}

TEST_F(sring, refuses_odd_atomic)
{
	RP_SKIP_IWARP(self->c.fd, "atomics");
	REFUSED(wr = (struct rpost_send_wr) {
		.wr_id = 12,
		.size = sizeof(bad),
		.opcode = RPOST_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = RPOST_SEND_SIGNALED,
		.num_sge = 1,
		.remote_addr = 1,
	});
}

/* A bad lkey is a protection error. */
TEST_F(sring, bad_key)
{
	struct rp_send bad = request(self, RPOST_WR_RDMA_WRITE, 12, 8);

	bad.sge.lkey ^= 0x5555;
	POST(bad);
	POST(request(self, RPOST_WR_RDMA_WRITE, 13, 8));
	EXPECT_DONE(12, LOC_PROT_ERR);
	EXPECT_DONE(13, WR_FLUSH_ERR);
}

/* ------------------------- queue pairs that the program creates itself */

FIXTURE(own) {
	struct rp_end a, b;
	struct sring ring;
};

FIXTURE_SETUP(own)
{
	ASSERT_EQ(0, rp_end_init(&self->a));
	ASSERT_EQ(0, rp_end_init(&self->b));
	memset(&self->ring, 0, sizeof(self->ring));
}

FIXTURE_TEARDOWN(own)
{
	sr_unmap(&self->ring);
	rp_end_close(&self->a);
	rp_end_close(&self->b);
}

/* Requests wait in the ring until the queue pair can send. */
TEST_F(own, waits_for_the_state)
{
	struct rp_send send = sr_nop(1);

	RP_SKIP_IWARP(self->a.fd, "queue pairs of its own");
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&self->b, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, sr_setup(self->a.fd, self->a.qp, BYTES, &self->ring));
	ASSERT_EQ(0, sr_post(&self->ring, &send));
	EXPECT_TRUE(sr_wait(&self->ring.hdr->flags, RPOST_SEND_RING_BLOCKED,
			    RPOST_SEND_RING_BLOCKED));
	EXPECT_EQ(0, sr_head(&self->ring));
	ASSERT_EQ(0, rp_bring_up(&self->b, RPOST_QPT_RC, self->a.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->a, RPOST_QPT_RC, self->b.qp_num));
	EXPECT_EQ(0, sr_expect(&self->a.cq, 1, RPOST_WC_SUCCESS));
}

/* RESET discards the requests in the ring; then the ring works again. */
TEST_F(own, reset)
{
	struct rp_send send;
	uint64_t i;

	RP_SKIP_IWARP(self->a.fd, "queue pairs of its own");
	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	ASSERT_EQ(0, sr_setup(self->a.fd, self->a.qp, BYTES, &self->ring));
	/* Completions of the first RP_DEPTH requests fill the queue. */
	for (i = 0; i < RP_DEPTH + 20; i++) {
		send = sr_nop(i);
		ASSERT_EQ(0, sr_post(&self->ring, &send));
	}
	EXPECT_TRUE(sr_wait(&self->a.cq.ring->tail, UINT32_MAX, RP_DEPTH));
	EXPECT_TRUE(sr_wait(&self->ring.hdr->flags, RPOST_SEND_RING_BLOCKED,
			    RPOST_SEND_RING_BLOCKED));
	ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_RESET));
	EXPECT_EQ(self->ring.tail, sr_head(&self->ring));
	for (i = 0; i < RP_DEPTH; i++)
		EXPECT_EQ(0, sr_expect(&self->a.cq, i, RPOST_WC_SUCCESS));
	EXPECT_TRUE(rp_quiet_cq(&self->a.cq));
	ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_RESET));
	ASSERT_EQ(0, rp_bring_up(&self->b, RPOST_QPT_RC, self->a.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->a, RPOST_QPT_RC, self->b.qp_num));
	send = sr_nop(100);
	ASSERT_EQ(0, sr_post(&self->ring, &send));
	EXPECT_EQ(0, sr_expect(&self->a.cq, 100, RPOST_WC_SUCCESS));
}

/* A bad request completes in its turn; the others are sent. */
TEST_F(own, datagrams)
{
	struct rp_send send;
	uint32_t ah, i;

	RP_SKIP_IWARP(self->a.fd, "datagrams");
	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_UD));
	ASSERT_EQ(0, rp_own_ah(&self->a, &ah));
	ASSERT_EQ(0, sr_setup(self->a.fd, self->a.qp, BYTES, &self->ring));
	for (i = 0; i < 30; i++) {
		send = rp_empty_datagram(ah, self->b.qp_num, i);
		switch (i % 6) {
		case 2:
			send.wr.ah = 0x7ffffff0;
			break;
		case 3:
			send.wr.opcode = RPOST_WR_RDMA_WRITE;
			break;
		}
		ASSERT_EQ(0, sr_put(&self->ring, &send, send.wr.size));
	}
	ASSERT_EQ(0, sr_show(&self->ring));
	for (i = 0; i < 30; i++)
		EXPECT_EQ(0, sr_expect(&self->a.cq, i, i % 6 / 2 == 1 ?
				       RPOST_WC_LOC_QP_OP_ERR :
				       RPOST_WC_SUCCESS));
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_AH, ah));
}

TEST_HARNESS_MAIN
