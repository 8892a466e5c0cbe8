// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lets devices refuse or lose registrations and deregistrations.  A failure
 * means that programs get a wrong error, that memory stays pinned, or that the
 * next try does not work.
 *
 * Needs root and a kernel with fault injection; some tests also need
 * RPOST_TEST_REMOVE and RPOST_TEST_ADD, see removal.c.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/wait.h>

#include "injection.h"

FIXTURE(inject) {
	struct injection in;
};

FIXTURE_SETUP(inject)
{
	ASSERT_EQ(0, inject_begin(&self->in));
}

FIXTURE_TEARDOWN(inject)
{
	EXPECT_EQ(0, inject_end(&self->in));
}

/* The module's objects, and the bytes that this process has pinned. */
struct amounts {
	char objects[1024];
	long pinned;
};

static struct amounts amounts(void)
{
	struct amounts a = { .pinned = rp_pinned() };
	int fd = open(RP_DEBUGFS "objects", O_RDONLY | O_CLOEXEC);

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
	*mr = rp_mr(end->pd, addr, INJECT_BYTES, RPOST_ACCESS_LOCAL_WRITE);
	mr->flags = RPOST_MR_NO_CACHE;
	return rp_ioctl(end->fd, RPOST_IOC_REG_MR, mr);
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

/* REG_MR registers the memory, but cannot copy its answer. */
static int reg_without_answer(struct rp_end *end, void *addr)
{
	const struct rpost_reg_mr cmd = rp_mr(end->pd, addr, INJECT_BYTES, 0);

	return rp_ioctl_unanswered(end->fd, RPOST_IOC_REG_MR, &cmd, sizeof(cmd));
}

/* ALLOC_PD allocates the domain, but cannot copy its answer. */
static int alloc_pd_without_answer(const struct rp_end *end)
{
	const struct rpost_alloc_pd cmd = {
		.size = sizeof(cmd), .device = end->device,
	};

	return rp_ioctl_unanswered(end->fd, RPOST_IOC_ALLOC_PD, &cmd,
				   sizeof(cmd));
}

static const char * const ways[] = { "direct", "fast" };

/* A device refuses to deregister: the region stays until it agrees. */
TEST_F(inject, refused_deregistration)
{
	struct rp_end *c = &self->in.c;
	struct rp_send send = rp_send(RPOST_WR_SEND, 7, self->in.buf, 8, 0);
	struct amounts before, with_mr;
	struct rpost_reg_mr mr;
	struct rpost_wc wc;
	unsigned int i, n;

	NEED_INJECTION();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, inject_set_way(ways[i]));
		ASSERT_EQ(0, rp_join(c, &self->in.s, self->in.listener, 0));
		before = amounts();
		ASSERT_EQ(0, reg(c, self->in.buf, &mr));
		with_mr = amounts();
		EXPECT_EQ(before.pinned + INJECT_BYTES, with_mr.pinned);
		ASSERT_EQ(0, inject("fail_dereg", 2));
		for (n = 0; n < 2; n++) {
			EXPECT_EQ(-ENOMEM, dereg(c, &mr));
			EXPECT_TRUE(same(&with_mr));
			EXPECT_EQ(-EBUSY, rp_destroy(c->fd, RPOST_OBJ_PD,
						     c->pd));
		}
		/* No work request can use the region any more. */
		send.sge.lkey = mr.lkey;
		ASSERT_EQ(0, rp_post_send(c, &send));
		ASSERT_EQ(1, rp_wait_cq(&c->cq, &wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, wc.status);
		EXPECT_EQ(0, dereg(c, &mr));
		EXPECT_TRUE(same(&before));
		EXPECT_EQ(0, reg_works(c, self->in.buf));
		EXPECT_TRUE(same(&before));
		ASSERT_EQ(0, rp_leave(c));
		ASSERT_EQ(0, rp_leave(&self->in.s));
	}
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* The same for a region that was kept, when its memory goes. */
TEST_F(inject, refused_when_kept)
{
	struct rp_end *c = &self->in.c;
	char *mem = rp_pages(INJECT_BYTES);
	long before = rp_pinned(), refused;
	struct rpost_reg_mr mr;
	unsigned int n;

	NEED_INJECTION();
	ASSERT_NE(NULL, mem);
	for (n = 0; n < 2; n++) {
		ASSERT_EQ(0, rp_reg_mr(c->fd, c->pd, mem, INJECT_BYTES,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
		ASSERT_EQ(0, dereg(c, &mr));
	}
	EXPECT_EQ(before + INJECT_BYTES, rp_pinned());
	refused = rp_debug_number("injected", "fail_dereg");
	ASSERT_EQ(0, inject("fail_dereg", 1));
	ASSERT_EQ(0, munmap(mem, INJECT_BYTES));
	for (n = 0; n < INJECT_MS && rp_debug_number("injected", "fail_dereg") == refused; n++)
		usleep(1000);
	EXPECT_LT(refused, rp_debug_number("injected", "fail_dereg"));
	EXPECT_EQ(before + INJECT_BYTES, rp_pinned());
	/* A registration in the domain asks again, if the region is listed by then. */
	for (n = 0; n < INJECT_MS && rp_pinned() != before; n++) {
		EXPECT_EQ(0, reg_works(c, self->in.buf));
		usleep(1000);
	}
	EXPECT_EQ(before, rp_pinned());
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* What a device has refused to deregister once is not kept later. */
TEST_F(inject, refused_before)
{
	struct rp_end *c = &self->in.c, *s = &self->in.s;
	char *mem = rp_pages(INJECT_BYTES);
	long before = rp_pinned();
	struct rpost_reg_mr mr;
	unsigned int n;

	NEED_INJECTION();
	ASSERT_NE(NULL, mem);
	ASSERT_EQ(0, rp_join(c, s, self->in.listener, 0));
	for (n = 0; n < 3; n++) {
		if (n)
			ASSERT_EQ(0, dereg(c, &mr));
		ASSERT_EQ(0, rp_reg_mr(c->fd, c->pd, mem, INJECT_BYTES,
				       RPOST_ACCESS_LOCAL_WRITE, &mr));
	}
	/* A work request uses it, so that it has to be deregistered. */
	ASSERT_EQ(0, rp_post_recv(c, 5, mem, INJECT_BYTES, mr.lkey));
	ASSERT_EQ(0, inject("fail_dereg", 1));
	EXPECT_EQ(-ENOMEM, dereg(c, &mr));
	ASSERT_EQ(0, rp_leave(c));
	ASSERT_EQ(0, rp_leave(s));
	EXPECT_EQ(0, dereg(c, &mr));
	EXPECT_EQ(before, rp_pinned_soon(before));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* The same for a region whose handle the program never got. */
TEST_F(inject, refused_after_failure)
{
	struct rp_end *c = &self->in.c, other = *c;
	struct amounts before, left, with_other;
	struct rpost_reg_mr mr;
	unsigned int i;

	NEED_INJECTION();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, inject_set_way(ways[i]));
		before = amounts();
		EXPECT_EQ(-EFAULT, reg_without_answer(c, self->in.buf));
		EXPECT_TRUE(same(&before));
		ASSERT_EQ(0, inject("fail_dereg", 2));
		EXPECT_EQ(-EFAULT, reg_without_answer(c, self->in.buf));
		left = amounts();
		EXPECT_EQ(before.pinned + INJECT_BYTES, left.pinned);
		/*
		 * The next registration deregisters the leftover region first.
		 */
		ASSERT_EQ(0, reg(c, self->in.buf, &mr));
		EXPECT_EQ(before.pinned + 2 * INJECT_BYTES, rp_pinned());
		ASSERT_EQ(0, dereg(c, &mr));
		EXPECT_TRUE(same(&left));
		EXPECT_EQ(0, reg_works(c, self->in.buf));
		EXPECT_TRUE(same(&before));

		/*
		 * So does destroying the domain, which has a region of its own.
		 */
		ASSERT_EQ(0, rp_alloc_pd(other.fd, other.device, &other.pd));
		ASSERT_EQ(0, inject("fail_dereg", 3));
		EXPECT_EQ(-EFAULT, reg_without_answer(&other, self->in.buf));
		EXPECT_EQ(-ENOMEM, rp_destroy(other.fd, RPOST_OBJ_PD, other.pd));
		EXPECT_EQ(before.pinned + INJECT_BYTES, rp_pinned());
		EXPECT_EQ(0, inject("fail_dereg", 0));
		EXPECT_EQ(0, reg_works(&other, self->in.buf));
		EXPECT_EQ(before.pinned, rp_pinned());
		ASSERT_EQ(0, inject("fail_dereg", 1));
		EXPECT_EQ(-ENOMEM, rp_destroy(other.fd, RPOST_OBJ_PD, other.pd));
		EXPECT_EQ(0, reg_works(&other, self->in.buf));
		EXPECT_EQ(0, rp_destroy(other.fd, RPOST_OBJ_PD, other.pd));
		EXPECT_TRUE(same(&before));
	}

	/*
	 * A domain whose handle the program never got ends with the last close.
	 */
	ASSERT_EQ(0, rp_end_init(&other));
	EXPECT_EQ(-EFAULT, alloc_pd_without_answer(&other));
	with_other = amounts();
	ASSERT_EQ(0, inject("fail_dereg", 1));
	EXPECT_EQ(-EFAULT, alloc_pd_without_answer(&other));
	EXPECT_FALSE(same(&with_other));
	rp_end_close(&other);
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, inject_next_works(&self->in));
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
	rp_end_close(&self->in.c);
	rp_end_close(&self->in.s);
	nothing = amounts();
	EXPECT_EQ(0, nothing.pinned);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, inject_set_way(ways[i]));
		ASSERT_EQ(0, rp_end_init(&end));
		ASSERT_EQ(0, rp_reg_mr_soon(&end, self->in.buf, INJECT_BYTES,
					    RPOST_ACCESS_LOCAL_WRITE, &mr));
		ASSERT_EQ(0, inject("fail_dereg", -1));
		rp_end_close(&end);
		EXPECT_EQ(INJECT_BYTES, rp_pinned());
		/* Other files work meanwhile, and leave nothing behind. */
		ASSERT_EQ(0, inject("fail_dereg", 0));
		before = amounts();
		ASSERT_EQ(0, rp_end_init(&end));
		EXPECT_EQ(0, reg_works(&end, self->in.buf));
		rp_end_close(&end);
		EXPECT_TRUE(same(&before));
		ASSERT_EQ(0, rp_remove_device());
		EXPECT_TRUE(same(&nothing));
		ASSERT_EQ(0, rp_add_device());
	}
	ASSERT_EQ(0, inject_set_way("auto"));
	ASSERT_EQ(0, inject_init(&self->in));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* A removed device is asked more than once to deregister. */
TEST_F(inject, refused_at_removal)
{
	struct rp_end *c = &self->in.c;
	struct rpost_reg_mr mr[2];
	unsigned int i, n;
	long before;

	NEED_INJECTION();
	RP_NEED_REMOVAL();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, inject_set_way(ways[i]));
		for (n = 0; n < 2; n++)
			ASSERT_EQ(0, rp_reg_mr_soon(c, self->in.buf, INJECT_BYTES,
						    RPOST_ACCESS_LOCAL_WRITE,
						    &mr[n]));
		before = injected("fail_dereg");
		ASSERT_EQ(0, inject("fail_dereg", 2));
		ASSERT_EQ(0, rp_remove_device());
		EXPECT_EQ(before + 2, injected("fail_dereg"));
		EXPECT_EQ(0, rp_pinned());
		for (n = 0; n < 2; n++)
			EXPECT_EQ(0, dereg(c, &mr[n]));
		rp_end_close(&self->in.c);
		rp_end_close(&self->in.s);
		ASSERT_EQ(0, rp_add_device());
		ASSERT_EQ(0, inject_set_way("auto"));
		ASSERT_EQ(0, inject_init(&self->in));
		EXPECT_EQ(0, inject_next_works(&self->in));
	}
}

/* A work request is refused, and repeated once with a new queue pair. */
TEST_F(inject, refused_registration)
{
	struct rp_end *c = &self->in.c;
	struct amounts before;
	struct rpost_reg_mr mr;
	long n;

	NEED_INJECTION();
	before = amounts();
	ASSERT_EQ(0, inject_set_way("fast"));
	n = injected("fail_reg_post");
	/* The first queue pair's request, or also the new one's, is refused. */
	ASSERT_EQ(0, inject("fail_reg_post", 1));
	EXPECT_EQ(-EIO, reg(c, self->in.buf, &mr));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, reg_works(c, self->in.buf));
	ASSERT_EQ(0, inject("fail_reg_post", 2));
	EXPECT_EQ(-EIO, reg(c, self->in.buf, &mr));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, reg_works(c, self->in.buf));
	ASSERT_EQ(0, inject("fail_reg_post", 1));
	EXPECT_EQ(0, reg_works(c, self->in.buf));
	EXPECT_EQ(n + 4, injected("fail_reg_post"));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/*
 * The work request completes with an error, with a new queue pair and with one
 * that has worked.
 */
TEST_F(inject, failed_registration)
{
	struct rp_end *c = &self->in.c;
	struct amounts before;
	struct rpost_reg_mr mr;
	int i;

	NEED_INJECTION();
	before = amounts();
	ASSERT_EQ(0, inject_set_way("fast"));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, inject("fail_reg_wc", 1));
		EXPECT_EQ(-EIO, reg(c, self->in.buf, &mr));
		EXPECT_TRUE(same(&before));
		EXPECT_EQ(0, reg_works(c, self->in.buf));
	}
	/* The device also refuses to deregister the failed region. */
	ASSERT_EQ(0, inject("fail_reg_wc", 1));
	ASSERT_EQ(0, inject("fail_dereg", 1));
	EXPECT_EQ(-EIO, reg(c, self->in.buf, &mr));
	EXPECT_EQ(before.pinned + INJECT_BYTES, rp_pinned());
	EXPECT_EQ(0, reg_works(c, self->in.buf));
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

#define WAIT_MS		10000	/* the module waits this long for a device */
#define TRIES		6

/* Start a registration whose completion is lost. */
static pid_t lose_in_child(FIXTURE_DATA(inject) *self)
{
	long n = injected("fail_reg_wait");
	pid_t pid;

	RP_TRY(inject("fail_reg_wait", 1));
	pid = fork();
	if (!pid)
		_exit(reg(&self->in.c, rp_pages(INJECT_BYTES),
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

	return (void *)(intptr_t)reg(&self->in.c, self->in.buf, &mr);
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
 * The completion is lost, and the registration ends when the time is up, when
 * the process dies, or when the device is removed.  If one of the last two took
 * as long as the module waits, it came too late to show anything, and is tried
 * again.
 */
TEST_F(inject, lost_registration)
{
	struct rp_end *c = &self->in.c;
	struct amounts before;
	struct rpost_reg_mr mr;
	pthread_t thread;
	uint64_t began, took;
	int status, tries;
	void *ret;
	pid_t pid;

	NEED_INJECTION();
	before = amounts();
	ASSERT_EQ(0, inject_set_way("fast"));
	ASSERT_EQ(0, inject("fail_reg_wait", 1));
	began = rp_now_ms();
	EXPECT_EQ(-ETIMEDOUT, reg(c, self->in.buf, &mr));
	EXPECT_LE(WAIT_MS - TEST_TICKS_MS, rp_now_ms() - began);
	EXPECT_TRUE(same(&before));
	EXPECT_EQ(0, reg_works(c, self->in.buf));

	tries = 0;
	do {
		began = rp_now_ms();
		pid = lose_in_child(self);
		ASSERT_LT(0, pid);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		took = rp_now_ms() - began;
		EXPECT_TRUE(same(&before));
		EXPECT_EQ(0, reg_works(c, self->in.buf));
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
		rp_end_close(&self->in.c);
		rp_end_close(&self->in.s);
		ASSERT_EQ(0, rp_add_device());
		ASSERT_EQ(0, inject_init(&self->in));
	} while ((intptr_t)ret == -ETIMEDOUT && took >= WAIT_MS &&
		 ++tries < TRIES);
	EXPECT_EQ(-ENODEV, (intptr_t)ret);
	ASSERT_EQ(0, inject_set_way("auto"));
	rp_end_close(&self->in.c);
	rp_end_close(&self->in.s);
	ASSERT_EQ(0, inject_init(&self->in));
	EXPECT_EQ(0, inject_next_works(&self->in));
}

/* Every point has failed in some test. */
TEST_F(inject, every_point_was_hit)
{
	unsigned int missed;

	NEED_INJECTION();
	EXPECT_LT(0, inject_points(true, &missed));
	EXPECT_EQ(0, missed);
}

TEST_HARNESS_MAIN
