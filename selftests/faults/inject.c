// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the module does in callbacks fails: connection requests, completions,
 * events, the draining of queue pairs, new devices; and what devices do for it:
 * registrations and their end.  Programs get a clear answer, nothing is left
 * behind, and the next try works.  Needs root and a kernel with fault injection;
 * for devices, RPOST_TEST_REMOVE and RPOST_TEST_ADD as well, see removal.c.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "rpost_own.h"

#define DIRECTORY	"/sys/kernel/debug/rdma_post"
#define PARAMETERS	"/sys/module/rdma_post/parameters"
#define BUF_BYTES	4096
#define PATIENCE_MS	60000	/* the connection manager repeats after 4 s */

FIXTURE(inject) {
	struct rp_end c, s;
	uint32_t listener;
	struct rpost_reg_mr mr;
	char *buf;
	bool able;
};

/* Every count in the list of objects is 0, before long. */
static bool nothing_left(void)
{
	uint64_t end = rp_now_ms() + PATIENCE_MS;
	char name[32];
	long n, sum;
	FILE *f;

	do {
		f = fopen(DIRECTORY "/objects", "r");
		if (!f)
			return false;
		sum = 0;
		while (fscanf(f, "%31s %ld", name, &n) == 2)
			sum += n;
		fclose(f);
		if (!sum)
			return true;
		usleep(1000);
	} while (rp_now_ms() < end);
	return false;
}

/* Two sides, of which one listens and has memory to be written to. */
static int ends_init(FIXTURE_DATA(inject) *self)
{
	RP_TRY(rp_end_init(&self->c));
	RP_TRY(rp_end_init(&self->s));
	RP_TRY(rp_listener(&self->s, &self->listener));
	return rp_reg_mr(self->s.fd, self->s.pd, self->buf, BUF_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			 &self->mr);
}

FIXTURE_SETUP(inject)
{
	self->able = !geteuid() && !access(DIRECTORY "/injected", R_OK);
	if (!self->able)
		return;
	/* What the test before left to the kernel must not count in this one. */
	ASSERT_TRUE(nothing_left());
	self->buf = rp_pages(BUF_BYTES);
	ASSERT_NE(NULL, self->buf);
	ASSERT_EQ(0, ends_init(self));
}

#define NEED_INJECTION()						\
	do {								\
		if (!self->able)					\
			SKIP(return, "needs root and a kernel with fault injection"); \
	} while (0)

static int set_number(const char *point, const char *name, long value)
{
	char path[128], text[32];
	int fd, n, ret = 0;

	snprintf(path, sizeof(path), DIRECTORY "/%s/%s", point, name);
	n = snprintf(text, sizeof(text), "%ld", value);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, n) != n)
		ret = -errno;
	close(fd);
	return ret;
}

/* Let a point fail so many times, -1 for always, 0 for never. */
static int inject(const char *point, long times)
{
	int ret = set_number(point, "times", times);

	return ret ? ret : set_number(point, "probability", times ? 100 : 0);
}

/* How often a point has failed, or -1. */
static long injected(const char *point)
{
	return rp_debug_number("injected", point);
}

static bool wait_injected(const char *point, long before)
{
	uint64_t end = rp_now_ms() + PATIENCE_MS;

	while (injected(point) <= before && rp_now_ms() < end)
		usleep(1000);
	return injected(point) > before;
}

/* How memory is registered from now on: auto, direct, fast. */
static int set_way(const char *way)
{
	return cg_put(PARAMETERS, "registration", way);
}

/* How long a device has to flush from now on, in ms. */
static int set_drain(const char *ms)
{
	return cg_put(PARAMETERS, "drain_ms", ms);
}

static int wait_event(int channel)
{
	struct pollfd pfd = { .fd = channel, .events = POLLIN };

	return poll(&pfd, 1, PATIENCE_MS) == 1 ? 0 : -ETIME;
}

FIXTURE_TEARDOWN(inject)
{
	static const char * const points[] = {
		"fail_backlog", "fail_request", "fail_ring", "fail_completion",
		"fail_async", "fail_drain", "fail_dereg", "fail_reg_post",
		"fail_reg_wc", "fail_reg_wait", "fail_device", "fail_device_id",
		"fail_charge",
	};
	unsigned int i;

	if (!self->able)
		return;
	for (i = 0; i < ARRAY_SIZE(points); i++)
		EXPECT_EQ(0, inject(points[i], 0));
	EXPECT_EQ(0, set_way("auto"));
	EXPECT_EQ(0, set_drain("10000"));
	rp_end_close(&self->c);
	rp_end_close(&self->s);
}

static int write_one(FIXTURE_DATA(inject) *self)
{
	struct rpost_send_wr wr = {
		.size = sizeof(wr),
		.opcode = RPOST_WR_RDMA_WRITE,
		.send_flags = RPOST_SEND_SIGNALED,
		.remote_addr = (uintptr_t)self->buf,
		.rkey = self->mr.rkey,
	};

	return rp_post(self->c.fd, RPOST_IOC_POST_SEND, self->c.qp, &wr,
		       sizeof(wr), 1, NULL);
}

/* Writes that complete, more of them than the queue has slots. */
static int writes_work(FIXTURE_DATA(inject) *self)
{
	struct rpost_wc wc;
	int i;

	for (i = 0; i < 3 * RP_DEPTH; i++) {
		RP_TRY(write_one(self));
		if (rp_wait_cq(&self->c.cq, &wc) != 1)
			return -ETIME;
		if (wc.status)
			return -EIO;
	}
	return 0;
}

/* A new connection does all that it should. */
static int next_works(FIXTURE_DATA(inject) *self)
{
	RP_TRY(rp_join(&self->c, &self->s, self->listener, 0));
	RP_TRY(writes_work(self));
	RP_TRY(rp_leave(&self->c));
	return rp_leave(&self->s);
}

static const char * const request_points[] = { "fail_backlog", "fail_request" };

/* A request is not answered; the next of its repetitions is. */
TEST_F(inject, request_once)
{
	unsigned int i;
	long before;

	NEED_INJECTION();
	for (i = 0; i < ARRAY_SIZE(request_points); i++) {
		before = injected(request_points[i]);
		ASSERT_EQ(0, inject(request_points[i], 1));
		ASSERT_EQ(0, rp_client_route(&self->c, rp_port(self->s.fd,
							       self->listener)));
		ASSERT_EQ(0, rp_create_qp(&self->c, 0));
		ASSERT_EQ(0, rp_connect(self->c.fd, self->c.id));
		ASSERT_EQ(0, wait_event(self->s.channel));
		EXPECT_EQ(before + 1, injected(request_points[i]));
		ASSERT_EQ(0, rp_take_request(&self->s, self->listener));
		ASSERT_EQ(0, rp_create_qp(&self->s, 0));
		ASSERT_EQ(0, rp_accept(self->s.fd, self->s.id));
		ASSERT_EQ(0, wait_event(self->c.channel));
		ASSERT_EQ(0, rp_expect(self->c.channel, self->c.id,
				       RPOST_EVENT_ESTABLISHED));
		ASSERT_EQ(0, wait_event(self->s.channel));
		ASSERT_EQ(0, rp_expect(self->s.channel, self->s.id,
				       RPOST_EVENT_ESTABLISHED));
		EXPECT_EQ(0, writes_work(self));
		ASSERT_EQ(0, rp_leave(&self->c));
		ASSERT_EQ(0, rp_leave(&self->s));
	}
	EXPECT_EQ(0, next_works(self));
}

/* Nobody answers, and the client gives up. */
TEST_F(inject, request_never)
{
	unsigned int i;
	long before;
	int objects;

	NEED_INJECTION();
	objects = rp_num_objects(self->s.fd);
	for (i = 0; i < ARRAY_SIZE(request_points); i++) {
		before = injected(request_points[i]);
		ASSERT_EQ(0, inject(request_points[i], -1));
		ASSERT_EQ(0, rp_client_route(&self->c, rp_port(self->s.fd,
							       self->listener)));
		ASSERT_EQ(0, rp_create_qp(&self->c, 0));
		ASSERT_EQ(0, rp_connect(self->c.fd, self->c.id));
		EXPECT_TRUE(wait_injected(request_points[i], before));
		EXPECT_TRUE(rp_quiet(self->s.channel));
		ASSERT_EQ(0, rp_leave(&self->c));
		EXPECT_EQ(objects, rp_num_objects(self->s.fd));
		ASSERT_EQ(0, inject(request_points[i], 0));
		EXPECT_EQ(0, next_works(self));
	}
}

static bool wait_overrun(const struct rp_cq *cq)
{
	uint64_t end = rp_now_ms() + PATIENCE_MS;

	while (rp_now_ms() < end) {
		if (__atomic_load_n(&cq->ring->flags, __ATOMIC_RELAXED) &
		    RPOST_RING_OVERRUN)
			return true;
		usleep(1000);
	}
	return false;
}

/* A completion is lost: the ring says so, and the slot comes back. */
TEST_F(inject, lost_completion)
{
	struct rp_end *c = &self->c;
	struct rpost_wc wc;
	long before;

	NEED_INJECTION();
	ASSERT_EQ(0, rp_join(c, &self->s, self->listener, 0));
	ASSERT_EQ(0, writes_work(self));
	before = injected("fail_ring");
	ASSERT_EQ(0, inject("fail_ring", 1));
	ASSERT_EQ(0, write_one(self));
	EXPECT_TRUE(wait_injected("fail_ring", before));
	EXPECT_EQ(0, rp_poll_cq(&c->cq, &wc));
	/* The count comes first. */
	EXPECT_TRUE(wait_overrun(&c->cq));
	EXPECT_EQ(0, writes_work(self));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(&self->s));
	EXPECT_EQ(0, next_works(self));
}

/* The user has what one may have. */
TEST_F(inject, user_at_the_limit)
{
	struct rp_end *c = &self->c;
	uint32_t device;
	struct rp_cq cq;
	long before;
	int objects;

	NEED_INJECTION();
	device = rp_first_device(c->fd);
	before = injected("fail_charge");
	objects = rp_num_objects(c->fd);
	ASSERT_EQ(0, inject("fail_charge", 1));
	EXPECT_EQ(-ENOMEM, rp_create_cq(c->fd, device, 16, -1, &cq));
	EXPECT_EQ(before + 1, injected("fail_charge"));
	EXPECT_EQ(objects, rp_num_objects(c->fd));
	ASSERT_EQ(0, rp_create_cq(c->fd, device, 16, -1, &cq));
	rp_unmap_cq(&cq);
}

/* A device reports an error of its own. */
TEST_F(inject, failed_completion)
{
	struct rp_end *c = &self->c;
	struct rpost_wc wc;

	NEED_INJECTION();
	ASSERT_EQ(0, rp_join(c, &self->s, self->listener, 0));
	ASSERT_EQ(0, inject("fail_completion", 1));
	ASSERT_EQ(0, write_one(self));
	ASSERT_EQ(1, rp_wait_cq(&c->cq, &wc));
	EXPECT_EQ(RPOST_WC_GENERAL_ERR, wc.status);
	EXPECT_EQ(c->qp_num, wc.qp_num);
	/* The other side learns of it from the program. */
	ASSERT_EQ(0, rp_disconnect(c->fd, c->id));
	ASSERT_EQ(0, rp_expect(self->s.channel, self->s.id,
			       RPOST_EVENT_DISCONNECTED));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(&self->s));
	EXPECT_EQ(0, next_works(self));
}

/* An asynchronous event is lost, and the next one comes. */
TEST_F(inject, lost_event)
{
	struct rpost_async_event event;
	struct rpost_create_srq srq;
	long before;
	int channel;

	NEED_INJECTION();
	ASSERT_EQ(0, rp_create_srq(self->s.fd, self->s.pd, 8, &srq));
	ASSERT_EQ(0, rp_create_own(&self->c, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_own(&self->s, RPOST_QPT_RC, srq.handle));
	ASSERT_EQ(0, rp_bring_up(&self->c, RPOST_QPT_RC, self->s.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->s, RPOST_QPT_RC, self->c.qp_num));
	channel = rp_async_channel(self->s.fd, self->s.device);
	ASSERT_LE(0, channel);
	/* Ports may have events, too: this one's is lost if all are. */
	before = injected("fail_async");
	ASSERT_EQ(0, inject("fail_async", -1));
	ASSERT_EQ(0, rp_reach_limit(&self->c, &self->s, srq.handle));
	EXPECT_TRUE(wait_injected("fail_async", before));
	EXPECT_TRUE(rp_quiet(channel));
	ASSERT_EQ(0, inject("fail_async", 0));
	ASSERT_EQ(0, rp_reach_limit(&self->c, &self->s, srq.handle));
	EXPECT_EQ(0, rp_async_wait(channel, RPOST_ASYNC_SRQ_LIMIT_REACHED,
				   &event));
	close(channel);
}

/* Two queue pairs with receives and sends under way. */
static int join_busy(FIXTURE_DATA(inject) *self)
{
	int i;

	RP_TRY(rp_join(&self->c, &self->s, self->listener, 0));
	for (i = 0; i < 8; i++) {
		RP_TRY(rp_post_recv(&self->c, i, NULL, 0, 0));
		RP_TRY(rp_post_recv(&self->s, i, NULL, 0, 0));
		RP_TRY(write_one(self));
	}
	return 0;
}

/* A device does not flush: the end of the queue pair ends what it holds. */
TEST_F(inject, no_flush)
{
	long before;
	int i;

	NEED_INJECTION();
	ASSERT_EQ(0, set_drain("100"));
	before = injected("fail_drain");
	ASSERT_EQ(0, inject("fail_drain", -1));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, join_busy(self));
		ASSERT_EQ(0, rp_leave(&self->c));
		EXPECT_TRUE(rp_quiet_cq(&self->c.cq));
		ASSERT_EQ(0, rp_leave(&self->s));
	}
	EXPECT_LT(before, injected("fail_drain"));
	ASSERT_EQ(0, inject("fail_drain", 0));
	EXPECT_EQ(0, next_works(self));
	/* The last close meets it as well. */
	ASSERT_EQ(0, inject("fail_drain", -1));
	ASSERT_EQ(0, join_busy(self));
}

#define DRAIN_MS	2000
#define DRAIN_PAIRS	20

/* Only the first is waited for, until the device has flushed one again. */
TEST_F(inject, no_flush_of_many)
{
	struct rp_end c, s;
	uint64_t began;
	int i, round;

	NEED_INJECTION();
	ASSERT_EQ(0, set_drain("2000"));
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, rp_end_init(&c));
		ASSERT_EQ(0, rp_end_init(&s));
		for (i = 0; i < DRAIN_PAIRS; i++)
			ASSERT_EQ(0, rp_own_join(&c, &s, RPOST_QPT_RC));
		ASSERT_EQ(0, inject("fail_drain", -1));
		began = rp_now_ms();
		rp_end_close(&c);
		EXPECT_LE(DRAIN_MS, rp_now_ms() - began);
		rp_end_close(&s);
		EXPECT_GT(2 * DRAIN_MS, rp_now_ms() - began);
		ASSERT_EQ(0, inject("fail_drain", 0));
		EXPECT_EQ(0, next_works(self));
	}
}

/* Nobody has to wait who has been killed. */
TEST_F(inject, no_flush_killed)
{
	struct rp_end end;
	uint64_t began;
	long before;
	int status;
	pid_t pid;

	NEED_INJECTION();
	ASSERT_EQ(0, set_drain("60000"));
	before = injected("fail_drain");
	ASSERT_EQ(0, inject("fail_drain", -1));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (!rp_end_init(&end) && !rp_create_own(&end, RPOST_QPT_RC, 0) &&
		    !rp_bring_up(&end, RPOST_QPT_RC, RP_NO_QPN))
			rp_destroy(end.fd, RPOST_OBJ_QP, end.qp);
		_exit(1);
	}
	EXPECT_TRUE(wait_injected("fail_drain", before));
	began = rp_now_ms();
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_GT(TEST_TIMEOUT_MS, rp_now_ms() - began);
	ASSERT_EQ(0, inject("fail_drain", 0));
}

/* ------------------------------------------------------- registrations */

/* What the module has, and what this process has pinned. */
struct amounts {
	char objects[1024];
	long pinned;
};

static struct amounts amounts(void)
{
	struct amounts a = { .pinned = rp_pinned() };
	int fd = open(DIRECTORY "/objects", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, a.objects, sizeof(a.objects) - 1) < 0)
		a.pinned = -1;
	close(fd);
	return a;
}

static bool same(const struct amounts *before)
{
	struct amounts now = amounts();

	if (now.pinned >= 0 && now.pinned == before->pinned &&
	    !strcmp(now.objects, before->objects))
		return true;
	fprintf(stderr, "# there was: %ld bytes pinned\n%s", before->pinned,
		before->objects);
	fprintf(stderr, "# there is: %ld bytes pinned\n%s", now.pinned,
		now.objects);
	return false;
}

static int reg(struct rp_end *end, void *addr, struct rpost_reg_mr *mr)
{
	return rp_reg_mr(end->fd, end->pd, addr, BUF_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE, mr);
}

static int dereg(struct rp_end *end, const struct rpost_reg_mr *mr)
{
	return rp_destroy(end->fd, RPOST_OBJ_MR, mr->handle);
}

static int reg_works(struct rp_end *end, void *addr)
{
	struct rpost_reg_mr mr;

	RP_TRY(reg(end, addr, &mr));
	return dereg(end, &mr);
}

/* The memory is registered, but the program cannot be told. */
static int reg_without_answer(struct rp_end *end, void *addr)
{
	const struct rpost_reg_mr cmd = {
		.size = sizeof(cmd), .pd = end->pd,
		.addr = (uintptr_t)addr, .iova = (uintptr_t)addr,
		.length = BUF_BYTES,
	};

	return rp_ioctl_unanswered(end->fd, RPOST_IOC_REG_MR, &cmd, sizeof(cmd));
}

/* The same for a domain. */
static int alloc_pd_without_answer(const struct rp_end *end)
{
	const struct rpost_alloc_pd cmd = {
		.size = sizeof(cmd), .device = end->device,
	};

	return rp_ioctl_unanswered(end->fd, RPOST_IOC_ALLOC_PD, &cmd,
				   sizeof(cmd));
}

static const char * const ways[] = { "direct", "fast" };

/* A device refuses to give a region up: the region stays, until it does. */
TEST_F(inject, refused_deregistration)
{
	struct rp_end *c = &self->c;
	struct rp_send send = rp_send(RPOST_WR_SEND, 7, self->buf, 8, 0);
	struct amounts before, with_mr;
	struct rpost_reg_mr mr;
	struct rpost_wc wc;
	unsigned int i, n;

	NEED_INJECTION();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, set_way(ways[i]));
		ASSERT_EQ(0, rp_join(c, &self->s, self->listener, 0));
		before = amounts();
		ASSERT_EQ(0, reg(c, self->buf, &mr));
		with_mr = amounts();
		EXPECT_EQ(before.pinned + BUF_BYTES, with_mr.pinned);
		ASSERT_EQ(0, inject("fail_dereg", 2));
		for (n = 0; n < 2; n++) {
			EXPECT_EQ(-ENOMEM, dereg(c, &mr));
			EXPECT_TRUE(same(&with_mr));
			EXPECT_EQ(-EBUSY, rp_destroy(c->fd, RPOST_OBJ_PD,
						     c->pd));
		}
		/* The program has said that it is done with it. */
		send.sge.lkey = mr.lkey;
		ASSERT_EQ(0, rp_post_send(c, &send));
		ASSERT_EQ(1, rp_wait_cq(&c->cq, &wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, wc.status);
		EXPECT_EQ(0, dereg(c, &mr));
		EXPECT_TRUE(same(&before));
		EXPECT_EQ(0, reg_works(c, self->buf));
		EXPECT_TRUE(same(&before));
		ASSERT_EQ(0, rp_leave(c));
		ASSERT_EQ(0, rp_leave(&self->s));
	}
	EXPECT_EQ(0, next_works(self));
}

/* The same for a region that the program never got. */
TEST_F(inject, refused_after_failure)
{
	struct rp_end *c = &self->c, other = *c;
	struct amounts before, left, with_other;
	struct rpost_reg_mr mr;
	unsigned int i;

	NEED_INJECTION();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, set_way(ways[i]));
		before = amounts();
		EXPECT_EQ(-EFAULT, reg_without_answer(c, self->buf));
		EXPECT_TRUE(same(&before));
		ASSERT_EQ(0, inject("fail_dereg", 2));
		EXPECT_EQ(-EFAULT, reg_without_answer(c, self->buf));
		left = amounts();
		EXPECT_EQ(before.pinned + BUF_BYTES, left.pinned);
		/* The next registration asks again, and is none the worse. */
		ASSERT_EQ(0, reg(c, self->buf, &mr));
		EXPECT_EQ(before.pinned + 2 * BUF_BYTES, rp_pinned());
		ASSERT_EQ(0, dereg(c, &mr));
		EXPECT_TRUE(same(&left));
		EXPECT_EQ(0, reg_works(c, self->buf));
		EXPECT_TRUE(same(&before));

		/* Or the end of the domain, which has a region of its own, too. */
		ASSERT_EQ(0, rp_alloc_pd(other.fd, other.device, &other.pd));
		ASSERT_EQ(0, inject("fail_dereg", 3));
		EXPECT_EQ(-EFAULT, reg_without_answer(&other, self->buf));
		EXPECT_EQ(-ENOMEM, rp_destroy(other.fd, RPOST_OBJ_PD, other.pd));
		EXPECT_EQ(before.pinned + BUF_BYTES, rp_pinned());
		EXPECT_EQ(0, inject("fail_dereg", 0));
		EXPECT_EQ(0, reg_works(&other, self->buf));
		EXPECT_EQ(before.pinned, rp_pinned());
		ASSERT_EQ(0, inject("fail_dereg", 1));
		EXPECT_EQ(-ENOMEM, rp_destroy(other.fd, RPOST_OBJ_PD, other.pd));
		EXPECT_EQ(0, reg_works(&other, self->buf));
		EXPECT_EQ(0, rp_destroy(other.fd, RPOST_OBJ_PD, other.pd));
		EXPECT_TRUE(same(&before));
	}

	/* A domain that the program never got is there until the last close. */
	ASSERT_EQ(0, rp_end_init(&other));
	EXPECT_EQ(-EFAULT, alloc_pd_without_answer(&other));
	with_other = amounts();
	ASSERT_EQ(0, inject("fail_dereg", 1));
	EXPECT_EQ(-EFAULT, alloc_pd_without_answer(&other));
	EXPECT_FALSE(same(&with_other));
	rp_end_close(&other);
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, next_works(self));
}

/* Regions that a device refuses at the last close end with the device. */
TEST_F(inject, refused_at_close)
{
	struct amounts nothing, before;
	struct rpost_reg_mr mr;
	struct rp_end end;
	unsigned int i;

	NEED_INJECTION();
	RP_NEED_REMOVAL();
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	nothing = amounts();
	EXPECT_EQ(0, nothing.pinned);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, set_way(ways[i]));
		ASSERT_EQ(0, rp_end_init(&end));
		ASSERT_EQ(0, rp_reg_mr_soon(&end, self->buf, BUF_BYTES,
					    RPOST_ACCESS_LOCAL_WRITE, &mr));
		ASSERT_EQ(0, inject("fail_dereg", -1));
		rp_end_close(&end);
		EXPECT_EQ(BUF_BYTES, rp_pinned());
		/* Others go on meanwhile, and what they leave goes. */
		ASSERT_EQ(0, inject("fail_dereg", 0));
		before = amounts();
		ASSERT_EQ(0, rp_end_init(&end));
		EXPECT_EQ(0, reg_works(&end, self->buf));
		rp_end_close(&end);
		EXPECT_TRUE(same(&before));
		ASSERT_EQ(0, rp_remove_device());
		EXPECT_TRUE(same(&nothing));
		ASSERT_EQ(0, rp_add_device());
	}
	ASSERT_EQ(0, set_way("auto"));
	ASSERT_EQ(0, ends_init(self));
	EXPECT_EQ(0, next_works(self));
}

/* A device that goes is asked more than once. */
TEST_F(inject, refused_at_removal)
{
	struct rp_end *c = &self->c;
	struct rpost_reg_mr mr[2];
	unsigned int i, n;
	long before;

	NEED_INJECTION();
	RP_NEED_REMOVAL();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, set_way(ways[i]));
		for (n = 0; n < 2; n++)
			ASSERT_EQ(0, rp_reg_mr_soon(c, self->buf, BUF_BYTES,
						    RPOST_ACCESS_LOCAL_WRITE,
						    &mr[n]));
		before = injected("fail_dereg");
		ASSERT_EQ(0, inject("fail_dereg", 2));
		ASSERT_EQ(0, rp_remove_device());
		EXPECT_EQ(before + 2, injected("fail_dereg"));
		EXPECT_EQ(0, rp_pinned());
		for (n = 0; n < 2; n++)
			EXPECT_EQ(0, dereg(c, &mr[n]));
		rp_end_close(&self->c);
		rp_end_close(&self->s);
		ASSERT_EQ(0, rp_add_device());
		ASSERT_EQ(0, set_way("auto"));
		ASSERT_EQ(0, ends_init(self));
		EXPECT_EQ(0, next_works(self));
	}
}

/* A work request is refused: tried again, once, with a new queue pair. */
TEST_F(inject, refused_registration)
{
	struct rp_end *c = &self->c;
	struct amounts before;
	struct rpost_reg_mr mr;
	long n;

	NEED_INJECTION();
	before = amounts();
	ASSERT_EQ(0, set_way("fast"));
	n = injected("fail_reg_post");
	/* There is no queue pair yet, or a new one is refused as well. */
	ASSERT_EQ(0, inject("fail_reg_post", 1));
	EXPECT_EQ(-EIO, reg(c, self->buf, &mr));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, reg_works(c, self->buf));
	ASSERT_EQ(0, inject("fail_reg_post", 2));
	EXPECT_EQ(-EIO, reg(c, self->buf, &mr));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, reg_works(c, self->buf));
	ASSERT_EQ(0, inject("fail_reg_post", 1));
	EXPECT_EQ(0, reg_works(c, self->buf));
	EXPECT_EQ(n + 4, injected("fail_reg_post"));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, next_works(self));
}

/* It completes with an error: at once, and with a queue pair that has worked. */
TEST_F(inject, failed_registration)
{
	struct rp_end *c = &self->c;
	struct amounts before;
	struct rpost_reg_mr mr;
	int i;

	NEED_INJECTION();
	before = amounts();
	ASSERT_EQ(0, set_way("fast"));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, inject("fail_reg_wc", 1));
		EXPECT_EQ(-EIO, reg(c, self->buf, &mr));
		EXPECT_TRUE(same(&before));
		EXPECT_EQ(0, reg_works(c, self->buf));
	}
	/* And the region that came to nothing is refused. */
	ASSERT_EQ(0, inject("fail_reg_wc", 1));
	ASSERT_EQ(0, inject("fail_dereg", 1));
	EXPECT_EQ(-EIO, reg(c, self->buf, &mr));
	EXPECT_EQ(before.pinned + BUF_BYTES, rp_pinned());
	EXPECT_EQ(0, reg_works(c, self->buf));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, next_works(self));
}

#define WAIT_MS		10000	/* of the module, for a device */
#define TRIES		6

/* A registration that waits for a completion that never comes. */
static pid_t lose_in_child(FIXTURE_DATA(inject) *self)
{
	long n = injected("fail_reg_wait");
	pid_t pid;

	RP_TRY(inject("fail_reg_wait", 1));
	pid = fork();
	if (!pid)
		_exit(reg(&self->c, rp_pages(BUF_BYTES),
			  &(struct rpost_reg_mr){}) != -ETIMEDOUT);
	if (pid < 0 || wait_injected("fail_reg_wait", n))
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -ETIME;
}

static void *reg_in_thread(void *arg)
{
	FIXTURE_DATA(inject) *self = arg;
	struct rpost_reg_mr mr;

	return (void *)(intptr_t)reg(&self->c, self->buf, &mr);
}

static int lose_in_thread(FIXTURE_DATA(inject) *self, pthread_t *thread)
{
	long n = injected("fail_reg_wait");

	RP_TRY(inject("fail_reg_wait", 1));
	if (pthread_create(thread, NULL, reg_in_thread, self))
		return -EAGAIN;
	return wait_injected("fail_reg_wait", n) ? 0 : -ETIME;
}

/*
 * It does not complete: until time is up, the process dies, the device goes.
 * Where the last two took as long as the module waits, they came too late, and
 * have shown nothing: once more then.
 */
TEST_F(inject, lost_registration)
{
	struct rp_end *c = &self->c;
	struct amounts before;
	struct rpost_reg_mr mr;
	pthread_t thread;
	uint64_t began, took;
	int status, tries;
	void *ret;
	pid_t pid;

	NEED_INJECTION();
	before = amounts();
	ASSERT_EQ(0, set_way("fast"));
	ASSERT_EQ(0, inject("fail_reg_wait", 1));
	began = rp_now_ms();
	EXPECT_EQ(-ETIMEDOUT, reg(c, self->buf, &mr));
	EXPECT_LE(WAIT_MS - 100, rp_now_ms() - began);
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, reg_works(c, self->buf));

	tries = 0;
	do {
		began = rp_now_ms();
		pid = lose_in_child(self);
		ASSERT_LT(0, pid);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		took = rp_now_ms() - began;
		EXPECT_TRUE(same(&before));
		EXPECT_EQ(0, reg_works(c, self->buf));
	} while (took >= WAIT_MS && ++tries < TRIES);
	EXPECT_GT(WAIT_MS, took);
	EXPECT_TRUE(WIFSIGNALED(status));

	RP_NEED_REMOVAL();
	tries = 0;
	do {
		began = rp_now_ms();
		ASSERT_EQ(0, lose_in_thread(self, &thread));
		ASSERT_EQ(0, rp_remove_device());
		ASSERT_EQ(0, pthread_join(thread, &ret));
		took = rp_now_ms() - began;
		EXPECT_EQ(0, rp_pinned());
		rp_end_close(&self->c);
		rp_end_close(&self->s);
		ASSERT_EQ(0, rp_add_device());
		ASSERT_EQ(0, ends_init(self));
	} while ((intptr_t)ret == -ETIMEDOUT && took >= WAIT_MS &&
		 ++tries < TRIES);
	EXPECT_EQ(-ENODEV, (intptr_t)ret);
	ASSERT_EQ(0, set_way("auto"));
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	ASSERT_EQ(0, ends_init(self));
	EXPECT_EQ(0, next_works(self));
}

/* ------------------------------------------------------------- devices */

/* A queue pair is not flushed as its device goes, and no new one can be had. */
TEST_F(inject, devices)
{
	static const char * const points[] = { "fail_device", "fail_device_id" };
	unsigned int i;
	long before;
	int fd;

	NEED_INJECTION();
	RP_NEED_REMOVAL();
	ASSERT_EQ(0, set_drain("100"));
	ASSERT_EQ(0, inject("fail_drain", -1));
	ASSERT_EQ(0, join_busy(self));
	fd = rp_open();
	ASSERT_LE(0, fd);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		before = injected(points[i]);
		ASSERT_EQ(0, rp_remove_device());
		ASSERT_EQ(0, inject(points[i], 1));
		ASSERT_EQ(0, rp_add_device());
		EXPECT_EQ(before + 1, injected(points[i]));
		EXPECT_EQ(0, rp_first_device(fd));
	}
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, rp_add_device());
	EXPECT_NE(0, rp_first_device(fd));
	close(fd);
	/* With what is left of the old one, until it closes. */
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	ASSERT_EQ(0, ends_init(self));
	ASSERT_EQ(0, inject("fail_drain", 0));
	EXPECT_EQ(0, next_works(self));
}

/* The connection manager knows a device that the module does not. */
TEST_F(inject, unknown_device)
{
	const uint16_t port = 7480;
	struct rpost_connect connect = { .size = sizeof(connect) };
	struct rpost_query_id query;
	struct rpost_get_event event;
	struct rp_end c, s;
	uint64_t end = rp_now_ms() + PATIENCE_MS;
	int ret;

	NEED_INJECTION();
	RP_NEED_REMOVAL();
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, inject("fail_device", 1));
	ASSERT_EQ(0, rp_add_device());
	c.fd = rp_open();
	s.fd = rp_open();
	c.channel = rp_event_channel(c.fd);
	s.channel = rp_event_channel(s.fd);
	ASSERT_EQ(0, rp_create_id_of(c.fd, c.channel, RPOST_PS_UDP,
				     RPOST_QPT_UD, &c.id));
	ASSERT_EQ(0, rp_create_id_of(s.fd, s.channel, RPOST_PS_UDP,
				     RPOST_QPT_UD, &s.id));
	/* Its addresses take a moment. */
	do {
		ret = rp_bind(s.fd, s.id, port);
	} while (ret == -ENODEV && rp_now_ms() < end && !usleep(1000));
	ASSERT_EQ(0, ret);
	EXPECT_EQ(-ENODEV, rp_query_id(s.fd, s.id, &query));
	ASSERT_EQ(0, rp_listen(s.fd, s.id, 4));
	ASSERT_EQ(0, rp_resolve(&c, port));
	EXPECT_EQ(-ENODEV, rp_query_id(c.fd, c.id, &query));
	connect.id = c.id;
	ASSERT_EQ(0, rp_ioctl(c.fd, RPOST_IOC_CONNECT, &connect));
	/* Refused: there is an answer, and nobody was asked. */
	ASSERT_EQ(0, rp_get_event(c.channel, &event));
	EXPECT_EQ(RPOST_EVENT_UNREACHABLE, event.event);
	EXPECT_FALSE(rp_readable(s.channel, 0));
	close(c.channel);
	close(s.channel);
	close(c.fd);
	close(s.fd);
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, rp_add_device());
	ASSERT_EQ(0, ends_init(self));
	EXPECT_EQ(0, next_works(self));
}

/* Every point has failed, so that none of the tests above tested nothing. */
TEST_F(inject, every_point_was_hit)
{
	FILE *f;
	char name[32];
	unsigned int points = 0;
	long n;

	NEED_INJECTION();
	f = fopen(DIRECTORY "/injected", "r");
	ASSERT_NE(NULL, f);
	while (fscanf(f, "%31s %ld", name, &n) == 2) {
		points++;
		printf("# %s: injected %ld times\n", name, n);
		if (strncmp(name, "fail_device", 11) ||
		    rp_can_remove())
			EXPECT_LT(0, n);
	}
	fclose(f);
	EXPECT_LT(0, points);
	printf("# injection points in callbacks: %u\n", points);
	fflush(stdout);
}

TEST_HARNESS_MAIN
