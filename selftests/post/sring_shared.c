// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests submission rings as shared memory: a thread overwrites indices and
 * entries while the kernel reads them, and queue pairs, files and devices go
 * meanwhile.  A failure means that this harms more than the ring itself.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "sring.h"

#define BYTES	4096
#define RACE_MS	1500

FIXTURE(shared) {
	long refcnt;
	struct rp_end c, s;
	struct sring ring;
};

FIXTURE_VARIANT(shared) {
	uint32_t tail;		/* value of the tail */
	uint32_t size;		/* size of the first entry, or 0: correct */
};

FIXTURE_VARIANT_ADD(shared, odd) { .tail = 63 };
FIXTURE_VARIANT_ADD(shared, far) { .tail = BYTES + 8 };
FIXTURE_VARIANT_ADD(shared, behind) { .tail = -8 };
FIXTURE_VARIANT_ADD(shared, part) { .tail = 56 };
FIXTURE_VARIANT_ADD(shared, tiny) { .tail = 64, .size = 8 };
FIXTURE_VARIANT_ADD(shared, crooked) { .tail = 128, .size = 68 };
FIXTURE_VARIANT_ADD(shared, long_) { .tail = 64, .size = 72 };
FIXTURE_VARIANT_ADD(shared, huge) { .tail = 64, .size = 0xfffffff8 };
FIXTURE_VARIANT_ADD(shared, longer_than_the_ring) { .tail = BYTES, .size = 8192 };

FIXTURE_SETUP(shared)
{
	self->refcnt = rp_module_number("refcnt");
	memset(&self->ring, 0, sizeof(self->ring));
	ASSERT_EQ(0, rp_connect_pair(&self->c, &self->s, 0));
	ASSERT_EQ(0, sr_setup(self->c.fd, self->c.qp, BYTES, &self->ring));
}

FIXTURE_TEARDOWN(shared)
{
	sr_unmap(&self->ring);
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
}

/* Without its ring, the queue pair still works by calls. */
static int works_by_calls(FIXTURE_DATA(shared) *self)
{
	struct rp_send send = sr_nop(77);

	RP_TRY(rp_post_send(&self->c, &send));
	return sr_expect(&self->c.cq, 77, RPOST_WC_SUCCESS);
}

/* ------------------------------------------- values that break a ring */

TEST_F(shared, breaks)
{
	struct rpost_send_wr *wr = (void *)self->ring.data;
	int i;

	for (i = 0; i < BYTES / (int)sizeof(*wr); i++)
		wr[i] = sr_nop(i).wr;
	if (variant->size)
		wr->size = variant->size;
	self->ring.tail = variant->tail;
	ASSERT_EQ(0, sr_show(&self->ring));
	ASSERT_EQ(0, sr_enter(self->c.fd, self->c.qp));
	EXPECT_TRUE(sr_wait(&self->ring.hdr->error, UINT32_MAX, EINVAL));
	EXPECT_EQ(0, sr_head(&self->ring));
	EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
	/* The ring stays broken. */
	self->ring.hdr->error = 0;
	self->ring.hdr->tail = 0;
	EXPECT_EQ(0, works_by_calls(self));
	wr->size = sizeof(*wr);
	self->ring.hdr->tail = 64;
	EXPECT_EQ(0, sr_enter(self->c.fd, self->c.qp));
	EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
	EXPECT_EQ(0, works_by_calls(self));
}

FIXTURE(words) {
	struct rp_end c, s;
	struct sring ring;
};

FIXTURE_SETUP(words)
{
	ASSERT_EQ(0, rp_connect_pair(&self->c, &self->s, 0));
	ASSERT_EQ(0, sr_setup(self->c.fd, self->c.qp, BYTES, &self->ring));
}

FIXTURE_TEARDOWN(words)
{
	sr_unmap(&self->ring);
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* The kernel does not read back the words that it writes. */
TEST_F(words, of_the_kernel)
{
	struct rp_send send = sr_nop(1);
	uint32_t i;

	for (i = 0; i < 20; i++) {
		self->ring.hdr->head = i * 0x01234567;
		self->ring.hdr->flags = i * 0x89abcdef;
		self->ring.hdr->error = i;
		memcpy(self->ring.data + i * 64, &send, 64);
		__atomic_store_n(&self->ring.hdr->tail, (i + 1) * 64,
				 __ATOMIC_RELEASE);
		ASSERT_EQ(0, sr_enter(self->c.fd, self->c.qp));
		ASSERT_EQ(0, sr_expect(&self->c.cq, 1, RPOST_WC_SUCCESS));
		EXPECT_TRUE(sr_wait(&self->ring.hdr->head, UINT32_MAX,
				    (i + 1) * 64));
	}
}

/* -------------------------------------------------------------- threads */

struct scribbler {
	pthread_t thread;
	struct sring *ring;
	bool tails;
	bool stop;
};

static void *scribble(void *arg)
{
	struct scribbler *s = arg;
	uint32_t *words = (uint32_t *)s->ring->data;
	unsigned int seed = 1;
	uint32_t at;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		at = rand_r(&seed) % (s->ring->cmd.bytes / 4);
		__atomic_store_n(&words[at], rand_r(&seed) % 200,
				 __ATOMIC_RELAXED);
		/* Restore the size of the entry. */
		at = at / 16 * 16 + 2;
		__atomic_store_n(&words[at], 64, __ATOMIC_RELAXED);
		if (s->tails)
			__atomic_store_n(&s->ring->hdr->tail,
					 rand_r(&seed), __ATOMIC_RELAXED);
	}
	return NULL;
}

static void scribble_start(struct scribbler *s, struct sring *ring, bool tails)
{
	*s = (struct scribbler) { .ring = ring, .tails = tails };
	pthread_create(&s->thread, NULL, scribble, s);
}

static void scribble_stop(struct scribbler *s)
{
	__atomic_store_n(&s->stop, true, __ATOMIC_RELAXED);
	pthread_join(s->thread, NULL);
}

/* The kernel uses its copy of an entry that changes. */
TEST_F(words, entries_change)
{
	uint64_t end = rp_now_ms() + RACE_MS;
	struct scribbler scribbler;
	struct rpost_wc wc;
	uint32_t tail = 0;
	int i;

	for (i = 0; i < BYTES / 64; i++)
		((struct rpost_send_wr *)self->ring.data)[i] = sr_nop(i).wr;
	scribble_start(&scribbler, &self->ring, false);
	while (rp_now_ms() < end && !sr_error(&self->ring)) {
		tail += 64;
		__atomic_store_n(&self->ring.hdr->tail, tail, __ATOMIC_RELEASE);
		ASSERT_EQ(0, sr_enter(self->c.fd, self->c.qp));
		while (tail - sr_head(&self->ring) == BYTES &&
		       !sr_error(&self->ring) && rp_now_ms() < end)
			rp_poll_cq(&self->c.cq, &wc);
		rp_poll_cq(&self->c.cq, &wc);
	}
	scribble_stop(&scribbler);
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
}

TEST_F(words, tails_change)
{
	uint64_t end = rp_now_ms() + RACE_MS / 3;
	struct scribbler scribbler;

	scribble_start(&scribbler, &self->ring, true);
	while (rp_now_ms() < end)
		ASSERT_EQ(0, sr_enter(self->c.fd, self->c.qp));
	scribble_stop(&scribbler);
	EXPECT_EQ(EINVAL, sr_error(&self->ring));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
}

/* ---------------------------------------------------------------- races */

struct poster {
	pthread_t thread;
	struct sring *ring;
	struct rp_cq *cq;
	bool stop;
	uint64_t posted, done;
};

static void *post_on(void *arg)
{
	struct poster *p = arg;
	struct rp_send send = sr_nop(5);
	struct rpost_wc wc;

	while (!__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
		if (!sr_put(p->ring, &send, send.wr.size)) {
			sr_show(p->ring);
			p->posted++;
		}
		if (rp_poll_cq(p->cq, &wc) == 1)
			p->done++;
	}
	return NULL;
}

static void post_start(struct poster *p, struct sring *ring, struct rp_cq *cq)
{
	*p = (struct poster) { .ring = ring, .cq = cq };
	pthread_create(&p->thread, NULL, post_on, p);
}

static void post_stop(struct poster *p)
{
	__atomic_store_n(&p->stop, true, __ATOMIC_RELAXED);
	pthread_join(p->thread, NULL);
}

FIXTURE(race) {
	struct rp_end c, s;
	uint32_t listener;
	struct sring ring;
};

FIXTURE_SETUP(race)
{
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_listener(&self->s, &self->listener));
}

FIXTURE_TEARDOWN(race)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

/* The queue pair is destroyed while a thread writes to its ring. */
TEST_F(race, destroy)
{
	uint64_t end = rp_now_ms() + RACE_MS, all = 0;
	struct poster poster;

	do {
		ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
		ASSERT_EQ(0, sr_setup(self->c.fd, self->c.qp, BYTES,
				      &self->ring));
		post_start(&poster, &self->ring, &self->c.cq);
		/* In one round at least, requests must complete first. */
		while (!all && !__atomic_load_n(&poster.done, __ATOMIC_RELAXED) &&
		       rp_now_ms() < end + 10000)
			usleep(1000);
		usleep(rand() % 20000);
		ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
		post_stop(&poster);
		all += poster.done;
		EXPECT_EQ(ENODEV, sr_error(&self->ring));
		sr_unmap(&self->ring);
		ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_ID, self->c.id));
		ASSERT_EQ(0, rp_leave(&self->s));
		self->c.cq.ring->head = self->c.cq.ring->tail;
	} while (rp_now_ms() < end);
	EXPECT_LT(0, all);
}

/* Other rings of the file begin and end while one is in use. */
TEST_F(race, others_begin)
{
	uint64_t end = rp_now_ms() + RACE_MS;
	struct poster poster;
	struct rp_end other;
	struct sring ring;
	uint64_t before;

	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	ASSERT_EQ(0, sr_setup(self->c.fd, self->c.qp, BYTES, &self->ring));
	post_start(&poster, &self->ring, &self->c.cq);
	other = self->c;
	do {
		ASSERT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
		ASSERT_EQ(0, sr_setup(other.fd, other.qp, BYTES, &ring));
		sr_unmap(&ring);
		ASSERT_EQ(0, rp_destroy(other.fd, RPOST_OBJ_QP, other.qp));
	} while (rp_now_ms() < end);
	before = __atomic_load_n(&poster.done, __ATOMIC_RELAXED);
	end = rp_now_ms() + TEST_TIMEOUT_MS;
	while (__atomic_load_n(&poster.done, __ATOMIC_RELAXED) == before &&
	       rp_now_ms() < end)
		usleep(1000);
	EXPECT_LT(before, __atomic_load_n(&poster.done, __ATOMIC_RELAXED));
	post_stop(&poster);
	sr_unmap(&self->ring);
}

/* A program is killed while the kernel's thread is awake. */
TEST_F(race, kill)
{
	long pollers = rp_debug_number("objects", "poller");
	long refcnt = rp_module_number("refcnt");
	struct poster poster;
	int i, status;
	pid_t pid;

	for (i = 0; i < 10; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			struct rp_end c, s;
			struct sring ring;

			CHILD_CHECK(!rp_connect_pair(&c, &s, 0));
			CHILD_CHECK(!sr_setup(c.fd, c.qp, BYTES, &ring));
			post_start(&poster, &ring, &c.cq);
			usleep(i * 1000);
			kill(getpid(), SIGKILL);
			_exit(1);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
		EXPECT_EQ(pollers, rp_debug_number("objects", "poller"));
	}
}

/* exec() keeps the descriptor but not the mapping. */
TEST_F(race, exec)
{
	struct rp_send send = sr_nop(1);
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		struct rp_end c, s;
		struct sring ring;

		CHILD_CHECK(!rp_connect_pair(&c, &s, 0));
		CHILD_CHECK(!sr_setup(c.fd, c.qp, BYTES, &ring));
		CHILD_CHECK(!fcntl(c.fd, F_SETFD, 0));
		CHILD_CHECK(!sr_post(&ring, &send));
		execl("/bin/sh", "sh", "-c", "sleep 0.1", NULL);
		_exit(1);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status) && !WEXITSTATUS(status));
}

/* ------------------------------------------- the device is removed */

/* Each posted request completes, or its post is refused. */
TEST_F(race, removal)
{
	struct rp_send send = sr_nop(1);
	uint64_t posted = 0, done = 0, end;
	struct rpost_wc wc;
	pthread_t thread;
	void *ret;
	int n;

	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	ASSERT_EQ(0, sr_setup(self->c.fd, self->c.qp, BYTES, &self->ring));
	ASSERT_EQ(0, pthread_create(&thread, NULL, rp_remove_soon, NULL));
	end = rp_now_ms() + TEST_TIMEOUT_MS;
	while (!sr_error(&self->ring) && rp_now_ms() < end) {
		/* Post no more than the completion queue has room for. */
		if (posted - done < 4 * RP_DEPTH &&
		    !sr_put(&self->ring, &send, send.wr.size)) {
			n = sr_show(&self->ring);
			ASSERT_TRUE(!n || n == -ENODEV);
			if (!sr_error(&self->ring) ||
			    sr_head(&self->ring) == self->ring.tail)
				posted++;
		}
		n = rp_poll_cq(&self->c.cq, &wc);
		ASSERT_LE(0, n);
		done += n;
	}
	EXPECT_EQ(ENODEV, sr_error(&self->ring));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	while (done < posted && rp_poll_cq(&self->c.cq, &wc) == 1)
		done++;
	EXPECT_EQ(posted, done);
	EXPECT_LT(0, done);
	EXPECT_EQ(-ENODEV, sr_enter(self->c.fd, self->c.qp));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	EXPECT_EQ(0, rp_add_device());
	sr_unmap(&self->ring);
}

TEST_HARNESS_MAIN
