// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Send rings: what they take and refuse, in which order it completes, when the
 * kernel's thread sleeps and wakes, and how many there may be.
 */
#include <kselftest_harness.h>

#include "cgroup.h"
#include "sring.h"

#define PARAMETER	"/sys/module/rdma_post/parameters/"
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

/* With an entry of @length bytes, and the same place on the other side. */
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
	/* A queue pair has one. */
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

/* If the answer cannot be written there is no ring. */
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
	/* The domain's handle. */
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

/* Shown by one tail, around the end of the ring, more than the queue holds. */
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

/* Without a completion of their own. */
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

/* A program that does not poll: what does not fit waits. */
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
	/* The thread does not wait awake. */
	EXPECT_TRUE(sr_wait_asleep(&self->ring));
	EXPECT_EQ(BYTES, self->ring.tail - sr_head(&self->ring));
	for (i = 0; i < n; i++)
		EXPECT_DONE(i, SUCCESS);
	EXPECT_EQ(self->ring.tail, sr_head(&self->ring));
	POST(sr_nop(n));
	EXPECT_DONE(n, SUCCESS);
	EXPECT_EQ(0, sr_flags(&self->ring) & RPOST_SEND_RING_BLOCKED);
}

/* Calls can be used beside it. */
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
		/* It says so, and then looks once more. */
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

/* Completions come while it sleeps, without a call. */
TEST_F(sring, receives_while_it_sleeps)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, NULL, 0, 0);

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	/* The device is armed from the first time on that the program asks. */
	ASSERT_EQ(0, rp_poll_cq(&self->c.cq, &self->wc));
	POST(sr_nop(1));
	EXPECT_DONE(1, SUCCESS);
	ASSERT_EQ(0, rp_post_recv(&self->c, 9, self->cmem, 8, self->cmr.lkey));
	ASSERT_TRUE(sr_wait_asleep(&self->ring));
	EXPECT_FALSE(rp_need_poll(&self->c.cq));
	ASSERT_EQ(0, rp_post_send(&self->s, &send));
	ASSERT_EQ(0, sr_expect(&self->s.cq, 1, RPOST_WC_SUCCESS));
	EXPECT_DONE(9, SUCCESS);
}

static int set_parameter(const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	return cg_put(PARAMETER, name, text);
}

#define NEED_ROOT()							\
	do {								\
		if (access(PARAMETER "max_pollers", W_OK))		\
			SKIP(return, "needs root");			\
	} while (0)

/* While it is awake, neither posts nor polls call the kernel. */
TEST_F(sring, no_calls)
{
	long idle = rp_module_number("parameters/poller_idle_ms");
	int i, polls = 0;

	NEED_ROOT();
	ASSERT_EQ(0, set_parameter("poller_idle_ms", 1000));
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
	EXPECT_EQ(0, set_parameter("poller_idle_ms", idle));
	EXPECT_EQ(0, self->ring.entered);
	EXPECT_EQ(0, polls);
}

/* ------------------------------------------------------------ refusals */

/* In its turn, and what comes later is flushed. */
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

/* A key is another matter. */
TEST_F(sring, bad_key)
{
	struct rp_send bad = request(self, RPOST_WR_RDMA_WRITE, 12, 8);

	bad.sge.lkey ^= 0x5555;
	POST(bad);
	POST(request(self, RPOST_WR_RDMA_WRITE, 13, 8));
	EXPECT_DONE(12, LOC_PROT_ERR);
	EXPECT_DONE(13, WR_FLUSH_ERR);
}

/* ------------------------------------------- queue pairs of the program */

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

/* What is written before the queue pair takes sends waits. */
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

/* On the way to RESET what it holds is given up; then it goes on. */
TEST_F(own, reset)
{
	struct rp_send send;
	uint64_t i;

	RP_SKIP_IWARP(self->a.fd, "queue pairs of its own");
	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	ASSERT_EQ(0, sr_setup(self->a.fd, self->a.qp, BYTES, &self->ring));
	/* The completions of the first fill the queue. */
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

/* In its turn, and the others are not concerned. */
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

/* ------------------------------------------------------------- limits */

#define NUM_FILES	3
#define NOBODY		65534

/* Who opens the file is charged, and root would not be. */
static int end_as(uid_t uid, struct rp_end *end)
{
	int ret;

	if (geteuid())
		return rp_end_init(end);
	if (setresuid(uid, uid, 0))
		return -errno;
	ret = rp_end_init(end);
	return setresuid(0, 0, 0) ? -errno : ret;
}

FIXTURE(limits) {
	struct rp_end end[NUM_FILES];
	struct sring ring[NUM_FILES];
	long pollers, user_pollers;
};

FIXTURE_SETUP(limits)
{
	int i;

	memset(self->ring, 0, sizeof(self->ring));
	self->pollers = rp_module_number("parameters/max_pollers");
	self->user_pollers = rp_module_number("parameters/max_user_pollers");
	for (i = 0; i < NUM_FILES; i++) {
		ASSERT_EQ(0, end_as(NOBODY, &self->end[i]));
		ASSERT_EQ(0, rp_create_own(&self->end[i], RPOST_QPT_RC, 0));
	}
}

FIXTURE_TEARDOWN(limits)
{
	int i;

	for (i = 0; i < NUM_FILES; i++) {
		sr_unmap(&self->ring[i]);
		rp_end_close(&self->end[i]);
	}
	if (!access(PARAMETER "max_pollers", W_OK)) {
		set_parameter("max_pollers", self->pollers);
		set_parameter("max_user_pollers", self->user_pollers);
	}
}

static int ring_of(FIXTURE_DATA(limits) *self, int i)
{
	return sr_setup(self->end[i].fd, self->end[i].qp, BYTES,
			&self->ring[i]);
}

TEST_F(limits, of_a_user)
{
	uint32_t qp = self->end[0].qp;
	struct rp_end other;
	struct sring more;
	int i;

	NEED_ROOT();
	ASSERT_EQ(0, set_parameter("max_user_pollers", 2));
	ASSERT_EQ(0, ring_of(self, 0));
	ASSERT_EQ(0, ring_of(self, 1));
	EXPECT_EQ(-EMFILE, ring_of(self, 2));
	/* Others are not hindered. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, end_as(i ? 0 : NOBODY - 1, &other));
		ASSERT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
		ASSERT_EQ(0, sr_setup(other.fd, other.qp, BYTES, &more));
		sr_unmap(&more);
		rp_end_close(&other);
	}
	/* A file has one for all of its rings. */
	ASSERT_EQ(0, rp_create_own(&self->end[0], RPOST_QPT_RC, 0));
	ASSERT_EQ(0, sr_setup(self->end[0].fd, self->end[0].qp, BYTES, &more));
	sr_unmap(&more);
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP, qp));
	EXPECT_EQ(-EMFILE, ring_of(self, 2));
	/* It ends with the file. */
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP,
				self->end[0].qp));
	EXPECT_EQ(-EMFILE, ring_of(self, 2));
	sr_unmap(&self->ring[0]);
	rp_end_close(&self->end[0]);
	EXPECT_EQ(0, ring_of(self, 2));
	ASSERT_EQ(0, rp_end_init(&self->end[0]));
}

TEST_F(limits, of_all)
{
	NEED_ROOT();
	ASSERT_EQ(0, set_parameter("max_pollers", 1));
	ASSERT_EQ(0, ring_of(self, 0));
	EXPECT_EQ(-EMFILE, ring_of(self, 1));
	ASSERT_EQ(0, set_parameter("max_pollers", 0));
	EXPECT_EQ(-EMFILE, ring_of(self, 1));
	ASSERT_EQ(0, set_parameter("max_pollers", 2));
	EXPECT_EQ(0, ring_of(self, 1));
}

/* Nothing is left of rings that are destroyed, or closed, with things in them. */
TEST_F(limits, nothing_is_left)
{
	long pages = rp_debug_number("objects", "ring_pages");
	long before = rp_debug_number("objects", "poller");
	struct rp_send send = sr_nop(1);

	if (pages < 0)
		SKIP(return, "no debugfs");
	ASSERT_EQ(0, ring_of(self, 0));
	EXPECT_EQ(before + 1, rp_debug_number("objects", "poller"));
	ASSERT_EQ(0, sr_post(&self->ring[0], &send));
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP,
				self->end[0].qp));
	EXPECT_EQ(ENODEV, sr_error(&self->ring[0]));
	/* It has been mapped until now. */
	sr_unmap(&self->ring[0]);
	EXPECT_EQ(pages, rp_debug_number("objects", "ring_pages"));
	/* The thread waits for the next ring, or for the last close. */
	EXPECT_EQ(before + 1, rp_debug_number("objects", "poller"));
	rp_end_close(&self->end[0]);
	EXPECT_EQ(before, rp_debug_number("objects", "poller"));
	ASSERT_EQ(0, rp_end_init(&self->end[0]));
}

/* Lines of a file of a cgroup that name a kernel thread of ours. */
static int pollers_in(const struct cgroup *cg)
{
	char text[4096], path[64], name[32] = "";
	char *at = text;
	int found = 0;
	FILE *f;

	if (cg_read(cg, "cgroup.procs", text, sizeof(text)))
		return -1;
	for (; *at; at = strchr(at, '\n') + 1) {
		snprintf(path, sizeof(path), "/proc/%d/comm", atoi(at));
		f = fopen(path, "r");
		if (f && fscanf(f, "%31s", name) == 1)
			found += !strncmp(name, "rdma_post-", 10);
		if (f)
			fclose(f);
	}
	return found;
}

/* The thread is in the program's cgroup, which pays for its time. */
TEST_F(limits, cgroup)
{
	struct rp_send send = sr_nop(1);
	struct cgroup cg;
	long long used;

	if (geteuid() || !cg_has("cpu"))
		SKIP(return, "no cpu controller");
	ASSERT_EQ(0, cg_create(&cg, "sring"));
	ASSERT_EQ(0, cg_enter(&cg));
	EXPECT_EQ(0, pollers_in(&cg));
	ASSERT_EQ(0, ring_of(self, 0));
	EXPECT_EQ(1, pollers_in(&cg));
	/* Not that of this process. */
	ASSERT_EQ(0, cg_enter(NULL));
	EXPECT_EQ(1, pollers_in(&cg));
	ASSERT_TRUE(sr_wait_asleep(&self->ring[0]));
	used = cg_number(&cg, "cpu.stat", "usage_usec");
	ASSERT_LE(0, used);
	ASSERT_EQ(0, sr_post(&self->ring[0], &send));
	usleep(50000);
	ASSERT_TRUE(sr_wait_asleep(&self->ring[0]));
	EXPECT_LT(used, cg_number(&cg, "cpu.stat", "usage_usec"));
	/* The next ring's is where the program is now. */
	ASSERT_EQ(0, rp_destroy(self->end[0].fd, RPOST_OBJ_QP,
				self->end[0].qp));
	EXPECT_EQ(1, pollers_in(&cg));
	sr_unmap(&self->ring[0]);
	ASSERT_EQ(0, rp_create_own(&self->end[0], RPOST_QPT_RC, 0));
	ASSERT_EQ(0, ring_of(self, 0));
	EXPECT_EQ(0, pollers_in(&cg));
	EXPECT_EQ(0, cg_remove(&cg));
}

TEST_HARNESS_MAIN
