// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ten threads post while another closes the file, destroys or resets the queue
 * pair, resizes the completion queue, deregisters the memory.
 */
#include <kselftest_harness.h>

#include "race.h"

#define POSTERS	10
#define SECRET	's'

FIXTURE(threads) {
	struct race r;
	struct worker w[POSTERS];
	struct rpost_reg_mr victim_mr;
	char *victim;
};

FIXTURE_SETUP(threads)
{
	struct race *r = &self->r;

	r->mem = rp_pages(getpagesize());
	self->victim = rp_pages(getpagesize());
	ASSERT_NE(NULL, r->mem);
	ASSERT_NE(NULL, self->victim);
	memset(r->mem, 'm', getpagesize());
	ASSERT_EQ(0, rp_end_init(&r->client));
	ASSERT_EQ(0, rp_end_init(&r->server));
	ASSERT_EQ(0, rp_reg_mr(r->client.fd, r->client.pd, r->mem, 64,
			       RPOST_ACCESS_LOCAL_WRITE, &r->mr));
	ASSERT_EQ(0, rp_reg_mr(r->server.fd, r->server.pd, self->victim,
			       getpagesize(), RPOST_ACCESS_LOCAL_WRITE |
			       RPOST_ACCESS_REMOTE_WRITE, &self->victim_mr));
}

FIXTURE_TEARDOWN(threads)
{
	rp_end_close(&self->r.client);
	rp_end_close(&self->r.server);
	munmap(self->r.mem, getpagesize());
	munmap(self->victim, getpagesize());
}

/* Where writes go to; @r->handle is the region's key at the other side. */
static int step_write(struct race *r)
{
	struct rp_send block[4];
	int i, ret;

	for (i = 0; i < 4; i++) {
		block[i] = rp_send(RPOST_WR_RDMA_WRITE, i, r->mem, 64,
				   load(&r->mr.lkey));
		block[i].wr.remote_addr = r->mr.iova;
		block[i].wr.rkey = load(&r->handle);
	}
	ret = rp_post(load((uint32_t *)&r->client.fd), RPOST_IOC_POST_SEND,
		      load(&r->client.qp), block, sizeof(block), 4, NULL);
	/* It waits for the others; those who are full, too. */
	sched_yield();
	return ret;
}

static int step_receive(struct race *r)
{
	struct rpost_recv_wr recv = { .wr_id = 2, .size = sizeof(recv) };

	return rp_post(load((uint32_t *)&r->client.fd), RPOST_IOC_POST_RECV,
		       load(&r->client.qp), &recv, sizeof(recv), 1, NULL);
}

static void posters(FIXTURE_DATA(threads) *self)
{
	const struct worker writer = {
		.step = step_write,
		.errors = { -ENOENT, -EINVAL, -ENOMEM, -EBADF },
	}, receiver = {
		.step = step_receive,
		.errors = { -ENOENT, -EINVAL, -ENOMEM, -EBADF },
	};
	int i;

	for (i = 0; i < POSTERS; i++)
		self->w[i] = i % 3 ? writer : receiver;
	/* Named by the iova, which is the victim's address here. */
	self->r.mr.iova = self->victim_mr.addr;
	store(&self->r.handle, self->victim_mr.rkey);
}

static unsigned long taken(FIXTURE_DATA(threads) *self)
{
	unsigned long sum = 0;
	int i;

	for (i = 0; i < POSTERS; i++)
		sum += __atomic_load_n(&self->w[i].good, __ATOMIC_RELAXED);
	return sum;
}

/* Wait until the posters have posted something more. */
static bool posts_go_on(FIXTURE_DATA(threads) *self)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	unsigned long before = taken(self);

	while (taken(self) == before) {
		if (rp_now_ms() > end)
			return false;
		step_poll(&self->r);
		usleep(200);
	}
	return true;
}

/* Connect what the posters use, to begin with or again. */
static int connect_pair(FIXTURE_DATA(threads) *self)
{
	struct race *r = &self->r;
	struct rp_end end = r->client;

	RP_TRY(rp_create_own(&r->server, RPOST_QPT_RC, 0));
	RP_TRY(rp_create_own(&end, RPOST_QPT_RC, 0));
	RP_TRY(rp_bring_up(&r->server, RPOST_QPT_RC, end.qp_num));
	RP_TRY(rp_bring_up(&end, RPOST_QPT_RC, r->server.qp_num));
	r->client.qp_num = end.qp_num;
	store(&r->client.qp, end.qp);
	return 0;
}

static int destroy_pair(FIXTURE_DATA(threads) *self)
{
	struct race *r = &self->r;

	RP_TRY(rp_destroy(r->client.fd, RPOST_OBJ_QP, r->client.qp));
	RP_TRY(rp_destroy(r->server.fd, RPOST_OBJ_QP, r->server.qp));
	return 0;
}

/* Posters must meet success or a documented error; nothing is left. */
TEST_F_TIMEOUT(threads, queue_pair_destroyed, 200)
{
	struct race *r = &self->r;
	int i;

	posters(self);
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 12; i++) {
		ASSERT_EQ(0, connect_pair(self));
		EXPECT_TRUE(posts_go_on(self));
		ASSERT_EQ(0, destroy_pair(self));
	}
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
	EXPECT_EQ(3, rp_num_objects(r->client.fd));
}

/* Moved to the error state and to RESET, and brought up again. */
TEST_F_TIMEOUT(threads, queue_pair_reset, 200)
{
	struct race *r = &self->r;
	int i;

	posters(self);
	ASSERT_EQ(0, connect_pair(self));
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 12; i++) {
		EXPECT_TRUE(posts_go_on(self));
		if (i % 2)
			ASSERT_EQ(0, rp_move(&r->client, RPOST_QPS_ERR));
		ASSERT_EQ(0, rp_move(&r->client, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_move(&r->server, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_bring_up(&r->server, RPOST_QPT_RC,
					 r->client.qp_num));
		ASSERT_EQ(0, rp_bring_up(&r->client, RPOST_QPT_RC,
					 r->server.qp_num));
	}
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
	EXPECT_EQ(4, rp_num_objects(r->client.fd));
}

/* The completion queue's ring is replaced under the posters. */
TEST_F_TIMEOUT(threads, completion_queue_resized, 200)
{
	struct rpost_resize_cq cmd;
	struct race *r = &self->r;
	struct rp_cq *cq = &r->client.cq;
	int i, ret;

	posters(self);
	ASSERT_EQ(0, connect_pair(self));
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 40; i++) {
		/* Who is full goes on. */
		step_poll(r);
		cmd = (struct rpost_resize_cq) {
			.size = sizeof(cmd),
			.handle = cq->cmd.handle,
			.cqe = 64 << i % 3,
		};
		ret = rp_ioctl(cq->fd, RPOST_IOC_RESIZE_CQ, &cmd);
		ASSERT_EQ(0, ret);
		munmap(cq->ring, cq->cmd.mmap_size);
		cq->ring = mmap(NULL, cmd.mmap_size, PROT_READ | PROT_WRITE,
				MAP_SHARED, cq->fd, cmd.mmap_offset);
		ASSERT_NE(MAP_FAILED, (void *)cq->ring);
		cq->cmd.mmap_size = cmd.mmap_size;
		cq->wcs = (void *)((char *)cq->ring + cq->cmd.entries_offset);
	}
	EXPECT_TRUE(posts_go_on(self));
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
	EXPECT_EQ(0, cq->ring->flags & RPOST_RING_OVERRUN);
}

/*
 * The file is closed, and its number is that of another a moment later.  The
 * posters must find what they name in it, or nothing.
 */
TEST_F_TIMEOUT(threads, file_closed, 200)
{
	struct race *r = &self->r;
	struct rp_end next;
	int i;

	posters(self);
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 12; i++) {
		ASSERT_EQ(0, connect_pair(self));
		EXPECT_TRUE(posts_go_on(self));
		ASSERT_EQ(0, rp_end_init(&next));
		next.qp = r->client.qp;
		rp_unmap_cq(&r->client.cq);
		close(r->client.channel);
		close(r->client.fd);
		ASSERT_EQ(0, rp_reg_mr(next.fd, next.pd, r->mem, 64,
				       RPOST_ACCESS_LOCAL_WRITE, &r->mr));
		r->mr.iova = self->victim_mr.addr;
		store((uint32_t *)&r->client.fd, next.fd);
		r->client = next;
		ASSERT_EQ(0, rp_destroy(r->server.fd, RPOST_OBJ_QP,
					r->server.qp));
	}
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
}

/*
 * The region is deregistered, and then its memory holds a secret.  What the
 * victim of the writes gets must be what was there before.
 */
TEST_F_TIMEOUT(threads, memory_deregistered, 200)
{
	struct race *r = &self->r;
	struct rpost_reg_mr mr = r->mr;
	int i;

	posters(self);
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 12; i++) {
		ASSERT_EQ(0, connect_pair(self));
		EXPECT_TRUE(posts_go_on(self));
		ASSERT_EQ(0, rp_destroy(r->client.fd, RPOST_OBJ_MR,
					mr.handle));
		memset(r->mem, SECRET, getpagesize());
		usleep(3000);
		ASSERT_EQ(NULL, memchr(self->victim, SECRET, getpagesize()));
		ASSERT_EQ(0, destroy_pair(self));
		ASSERT_EQ(NULL, memchr(self->victim, SECRET, getpagesize()));
		memset(r->mem, 'm', getpagesize());
		ASSERT_EQ(0, rp_reg_mr(r->client.fd, r->client.pd, r->mem, 64,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
		store(&r->mr.lkey, mr.lkey);
	}
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
	EXPECT_EQ('m', self->victim[0]);
}

TEST_HARNESS_MAIN
