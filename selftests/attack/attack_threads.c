// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that ten threads can post while another thread closes the file,
 * destroys or resets the queue pair, resizes the completion queue or
 * deregisters the memory.  A failure means that a post uses an object that is
 * freed.
 */
#include <kselftest_harness.h>
#include <sys/mman.h>

#include "race.h"

#define POSTERS	10
#define SECRET	's'
#define ARRIVES	'v'
#define READ	4096	/* several packets */
#define MESSAGE	1024	/* one packet, see rxe_repeats_a_packet() */

FIXTURE(threads) {
	struct race r;
	struct worker w[POSTERS];
	struct rpost_reg_mr victim_mr;
	char *victim;
};

FIXTURE_SETUP(threads)
{
	struct race *r = &self->r;

	self->victim = rp_pages(getpagesize());
	ASSERT_NE(NULL, self->victim);
	ASSERT_EQ(0, race_init(r));
	memset(r->mem, 'm', getpagesize());
	ASSERT_EQ(0, rp_reg_mr(r->server.fd, r->server.pd, self->victim,
			       getpagesize(), RPOST_ACCESS_LOCAL_WRITE |
			       RPOST_ACCESS_REMOTE_WRITE |
			       RPOST_ACCESS_REMOTE_READ, &self->victim_mr));
}

FIXTURE_TEARDOWN(threads)
{
	rp_end_close(&self->r.client);
	rp_end_close(&self->r.server);
	munmap(self->r.mem, getpagesize());
	munmap(self->victim, getpagesize());
}

/* Post RDMA writes; @r->handle is the rkey of the region at the victim. */
static int step_write(struct race *r)
{
	/* Read before the keys: an old key would fail a new queue pair. */
	uint32_t qp = load(&r->client.qp);
	struct rp_send block[4];
	int i, ret;

	for (i = 0; i < 4; i++) {
		block[i] = rp_send(RPOST_WR_RDMA_WRITE, i, r->mem, 64,
				   load(&r->mr.lkey));
		block[i].wr.remote_addr = r->mr.iova;
		block[i].wr.rkey = load(&r->handle);
	}
	ret = rp_post(load((uint32_t *)&r->client.fd), RPOST_IOC_POST_SEND,
		      qp, block, sizeof(block), 4, NULL);
	/* Let the other threads run, also if the queue is full. */
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
	int i;

	for (i = 0; i < POSTERS; i++)
		self->w[i] = (struct worker) {
			.step = i % 3 ? step_write : step_receive,
			.errors = { -ENOENT, -EINVAL, -ENOMEM, -EBADF },
		};
	/* Requests name the victim's address by @mr.iova. */
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

/* Wait until the posters have posted more requests. */
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

/* Wait until the posters' writes have reached the victim. */
static bool writes_arrive(FIXTURE_DATA(threads) *self)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (__atomic_load_n(self->victim, __ATOMIC_RELAXED) != 'm') {
		if (rp_now_ms() > end)
			return false;
		step_poll(&self->r);
		usleep(200);
	}
	return true;
}

/* Take completions; return the number of protection errors, or -EPROTO. */
static int take_completions(struct race *r)
{
	struct rpost_wc wc = { 0 };
	int ret, gone = 0;

	while ((ret = rp_poll_cq(&r->server.cq, &wc)) == 1)
		;
	while (!ret && (ret = rp_poll_cq(&r->client.cq, &wc)) == 1) {
		ret = 0;
		if (wc.status == RPOST_WC_LOC_PROT_ERR ||
		    wc.status == RPOST_WC_LOC_QP_OP_ERR) {
			gone++;
		} else if (wc.status != RPOST_WC_SUCCESS &&
			   wc.status != RPOST_WC_WR_FLUSH_ERR) {
			fprintf(stderr, "# request %llu: status %u\n",
				(unsigned long long)wc.wr_id, wc.status);
			return -EPROTO;
		}
	}
	return ret ? ret : gone;
}

/* Wait until a request has failed because the region is gone. */
static int wait_for_error(struct race *r)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	do {
		ret = take_completions(r);
	} while (!ret && rp_now_ms() < end && !usleep(200));
	return ret > 0 ? 0 : ret ? ret : -ETIME;
}

/* Create and connect the queue pairs that the posters use. */
static int connect_pair(FIXTURE_DATA(threads) *self)
{
	struct race *r = &self->r;
	struct rp_end client = r->client, server = r->server;

	RP_TRY(rp_create_own(&server, RPOST_QPT_RC, 0));
	RP_TRY(rp_create_own(&client, RPOST_QPT_RC, 0));
	RP_TRY(rp_bring_up(&server, RPOST_QPT_RC, client.qp_num));
	RP_TRY(rp_bring_up(&client, RPOST_QPT_RC, server.qp_num));
	/* Publish them once both are in RTS: a send before that fails soon. */
	r->client.qp_num = client.qp_num;
	r->server.qp_num = server.qp_num;
	store(&r->client.qp, client.qp);
	store(&r->server.qp, server.qp);
	return 0;
}

static int destroy_pair(FIXTURE_DATA(threads) *self)
{
	struct race *r = &self->r;

	RP_TRY(rp_destroy(r->client.fd, RPOST_OBJ_QP, r->client.qp));
	RP_TRY(rp_destroy(r->server.fd, RPOST_OBJ_QP, r->server.qp));
	return 0;
}

/* Each post must succeed or fail with a documented error; no object is left. */
TEST_F(threads, queue_pair_destroyed)
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

/* The queue pair moves to ERR and RESET, and is brought up again. */
TEST_F(threads, queue_pair_reset)
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

/* RESIZE_CQ replaces the ring while the posters post. */
TEST_F(threads, completion_queue_resized)
{
	struct rpost_resize_cq cmd;
	struct race *r = &self->r;
	struct rp_cq *cq = &r->client.cq, old;
	int i;

	posters(self);
	ASSERT_EQ(0, connect_pair(self));
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 40; i++) {
		/* Posters whose queue is full can go on. */
		step_poll(r);
		ASSERT_EQ(0, rp_resize_cq(cq, 64 << i % 3, &cmd));
		old = *cq;
		ASSERT_EQ(0, rp_use_resized(cq, &cmd));
		rp_unmap_cq(&old);
	}
	EXPECT_TRUE(posts_go_on(self));
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
	EXPECT_EQ(0, cq->ring->flags & RPOST_RING_OVERRUN);
}

/*
 * The file is closed, and another file gets its number a moment later.  Each
 * post must find the objects in that file, or none.
 */
TEST_F(threads, file_closed)
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
 * After the region is deregistered, its memory holds a secret.  The victim of
 * the writes may only receive the contents from before.
 */
TEST_F(threads, memory_deregistered)
{
	struct race *r = &self->r;
	struct rpost_reg_mr mr = r->mr;
	int i;

	posters(self);
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 12; i++) {
		self->victim[0] = 0;
		ASSERT_EQ(0, connect_pair(self));
		EXPECT_TRUE(posts_go_on(self));
		EXPECT_TRUE(writes_arrive(self));
		/* Leave no error of the queue pair before. */
		ASSERT_EQ(0, step_poll(r));
		ASSERT_EQ(0, rp_destroy(r->client.fd, RPOST_OBJ_MR,
					mr.handle));
		memset(r->mem, SECRET, getpagesize());
		/* The writes before the first that fails have been done then. */
		ASSERT_EQ(0, wait_for_error(r));
		ASSERT_EQ(NULL, memchr(self->victim, SECRET, getpagesize()));
		ASSERT_EQ(0, destroy_pair(self));
		ASSERT_EQ(NULL, memchr(self->victim, SECRET, getpagesize()));
		memset(r->mem, 'm', getpagesize());
		ASSERT_EQ(0, rp_reg_mr(r->client.fd, r->client.pd, r->mem, 64,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
		store(&r->mr.lkey, mr.lkey);
	}
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
}

/* ---------------------------------- the device writes into the region */

static int step_read(struct race *r)
{
	uint32_t qp = load(&r->client.qp);	/* first, as in step_write() */
	struct rp_send send = rp_send(RPOST_WR_RDMA_READ, 3, r->mem, READ,
				      load(&r->mr.lkey));
	int ret;

	send.wr.remote_addr = r->mr.iova;
	send.wr.rkey = load(&r->handle);
	ret = rp_post(r->client.fd, RPOST_IOC_POST_SEND, qp, &send,
		      sizeof(send), 1, NULL);
	sched_yield();
	return ret;
}

static int step_receive_data(struct race *r)
{
	struct rp_end end = { .fd = r->client.fd, .qp = load(&r->client.qp) };
	int ret = rp_post_recv(&end, 4, r->mem, MESSAGE, load(&r->mr.lkey));

	sched_yield();
	return ret;
}

/* Send by the peer; @r->handle is the key of its own region. */
static int step_send_data(struct race *r)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 5,
				      (void *)(uintptr_t)r->mr.iova, MESSAGE,
				      load(&r->handle));
	int ret = rp_post(r->server.fd, RPOST_IOC_POST_SEND,
			  load(&r->server.qp), &send, sizeof(send), 1, NULL);

	sched_yield();
	return ret;
}

/* Wait until data has arrived in @mem; an error ends the wait. */
static int wait_for_data(struct race *r, const char *mem)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	while (__atomic_load_n(mem, __ATOMIC_RELAXED) != ARRIVES) {
		ret = take_completions(r);
		if (ret)
			return ret;
		if (rp_now_ms() > end)
			return -ETIME;
		usleep(200);
	}
	return 0;
}

/*
 * The workers let the device write into a region, which is then deregistered.
 * From then on the device must write neither to its pages, which have another
 * mapping, nor to the pages that are mapped in their place.
 */
static void sink_deregistered(struct __test_metadata *_metadata,
			      FIXTURE_DATA(threads) *self)
{
	int prot = PROT_READ | PROT_WRITE, size = getpagesize(), fd, i;
	struct race *r = &self->r;
	struct rpost_reg_mr mr;
	char *pages;

	ASSERT_EQ(0, rp_destroy(r->client.fd, RPOST_OBJ_MR, r->mr.handle));
	memset(self->victim, ARRIVES, size);
	r->mr.iova = self->victim_mr.addr;
	fd = memfd_create("sink", MFD_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ftruncate(fd, size));
	pages = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, (void *)pages);
	ASSERT_EQ(0, start(r, self->w, POSTERS));
	for (i = 0; i < 12; i++) {
		ASSERT_EQ(r->mem, mmap(r->mem, size, prot,
				       MAP_SHARED | MAP_FIXED, fd, 0));
		memset(pages, 'm', size);
		ASSERT_EQ(0, rp_reg_mr(r->client.fd, r->client.pd, r->mem, size,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
		store(&r->mr.lkey, mr.lkey);
		ASSERT_EQ(0, connect_pair(self));
		ASSERT_EQ(0, wait_for_data(r, pages));
		usleep(i % 4 * 500);
		ASSERT_EQ(0, rp_destroy(r->client.fd, RPOST_OBJ_MR, mr.handle));
		if (i % 2)
			ASSERT_EQ(r->mem, mmap(r->mem, size, prot,
					       MAP_PRIVATE | MAP_ANONYMOUS |
					       MAP_FIXED, -1, 0));
		memset(r->mem, SECRET, size);
		memset(pages, SECRET, size);
		ASSERT_EQ(0, wait_for_error(r));
		usleep(3000);
		ASSERT_TRUE(all_bytes(pages, size, SECRET));
		ASSERT_TRUE(all_bytes(r->mem, size, SECRET));
		ASSERT_EQ(0, destroy_pair(self));
		ASSERT_TRUE(all_bytes(pages, size, SECRET));
		ASSERT_TRUE(all_bytes(r->mem, size, SECRET));
		ASSERT_LE(0, take_completions(r));
	}
	EXPECT_EQ(0, stop(r, self->w, POSTERS));
	EXPECT_EQ(2, rp_num_objects(r->client.fd));
	EXPECT_TRUE(all_bytes(self->victim, size, ARRIVES));
	munmap(pages, size);
	close(fd);
}

TEST_F(threads, memory_of_receives_deregistered)
{
	int i;

	for (i = 0; i < POSTERS; i++)
		self->w[i] = (struct worker) {
			.step = i % 3 ? step_receive_data : step_send_data,
			.errors = { -ENOENT, -EINVAL, -ENOMEM },
		};
	store(&self->r.handle, self->victim_mr.lkey);
	sink_deregistered(_metadata, self);
}

TEST_F(threads, memory_of_reads_deregistered)
{
	int i;

	for (i = 0; i < POSTERS; i++)
		self->w[i] = (struct worker) {
			.step = step_read,
			.errors = { -ENOENT, -EINVAL, -ENOMEM },
		};
	store(&self->r.handle, self->victim_mr.rkey);
	sink_deregistered(_metadata, self);
}

TEST_HARNESS_MAIN
