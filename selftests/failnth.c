// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every allocation of a command fails in its turn: the command says ENOMEM,
 * leaves nothing behind, and works the next time.  Needs a kernel with fault
 * injection, and root.
 */
#include <kselftest_harness.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "rpost_own.h"

#define DEBUGFS		"/sys/kernel/debug"
#define MAX_NTH		2000

static bool write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n > 0;
}

/* Let allocations that may sleep fail too, and the log stay quiet. */
static bool have_injection(void)
{
	static const char * const what[] = { "failslab", "fail_page_alloc" };
	char path[128];
	unsigned int i;

	if (geteuid() || access("/proc/thread-self/fail-nth", W_OK))
		return false;
	if (access(DEBUGFS "/failslab", F_OK) &&
	    mount("none", DEBUGFS, "debugfs", 0, NULL))
		return false;
	for (i = 0; i < ARRAY_SIZE(what); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/%s/verbose", what[i]);
		if (!write_to(path, "0"))
			return false;
		snprintf(path, sizeof(path), DEBUGFS "/%s/ignore-gfp-wait",
			 what[i]);
		if (!write_to(path, "N"))
			return false;
	}
	return true;
}

static int nth_fd = -1;

/* User copies fail, too: this one's, if the count is about to end. */
static int set_nth(int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", nth), i;

	for (i = 0; i < 3; i++) {
		if (pwrite(nth_fd, text, n, 0) == n)
			return 0;
	}
	return -errno;
}

/* Has the failure not been used up?  Sets the count back. */
static bool nth_left(void)
{
	char text[16] = "";
	bool left = pread(nth_fd, text, sizeof(text) - 1, 0) <= 0 ||
		    atoi(text) > 0;

	return set_nth(0) || left;
}

FIXTURE(fail) {
	struct rp_end e;
	struct rpost_ah_attr addr;
	struct rpost_create_srq srq;
	bool able;
	int objects;
};

FIXTURE_SETUP(fail)
{
	self->able = have_injection();
	if (!self->able)
		return;
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, nth_fd);
	ASSERT_EQ(0, rp_end_init(&self->e));
	ASSERT_EQ(0, rp_own_addr(&self->e, &self->addr));
	ASSERT_EQ(0, rp_create_srq(self->e.fd, self->e.pd, 8, &self->srq));
}

FIXTURE_TEARDOWN(fail)
{
	if (!self->able)
		return;
	close(nth_fd);
	rp_end_close(&self->e);
}

#define NEED_INJECTION()						\
	do {								\
		if (!self->able)					\
			SKIP(return, "needs root and a kernel with fault injection"); \
	} while (0)

/* What a command may say: drivers and the network have words of their own. */
static bool may_say(int ret)
{
	return ret == -ENOMEM || ret == -EFAULT || ret == -EMFILE ||
	       ret == -ENFILE || ret == -ENOBUFS;
}

/*
 * Call @step with the first allocation failing, then the second, until none
 * fails: it has succeeded then.  How often it failed, or a negative errno that
 * it must not give.
 */
static int sweep(FIXTURE_DATA(fail) *self,
		 int (*step)(FIXTURE_DATA(fail) *self),
		 int (*undo)(FIXTURE_DATA(fail) *self))
{
	int nth, ret, failed = 0, objects = rp_num_objects(self->e.fd);
	bool left;

	for (nth = 1; nth < MAX_NTH; nth++) {
		RP_TRY(set_nth(nth));
		ret = step(self);
		left = nth_left();
		if (!ret) {
			if (undo)
				RP_TRY(undo(self));
			/* What is optional may fail without harm. */
			if (left)
				return failed;
		} else if (may_say(ret)) {
			failed++;
		} else {
			fprintf(stderr, "# allocation %d: %d\n", nth, ret);
			return ret;
		}
		if (rp_num_objects(self->e.fd) != objects) {
			fprintf(stderr, "# allocation %d: objects left\n", nth);
			return -EPROTO;
		}
	}
	return -ELOOP;
}

/* What ends things does not fail, but for a struct that cannot be read. */
static int ends(FIXTURE_DATA(fail) *self,
		int (*step)(FIXTURE_DATA(fail) *self), int nth)
{
	int ret;

	RP_TRY(set_nth(nth));
	ret = step(self);
	nth_left();
	return ret == -EFAULT ? step(self) : ret;
}

static int create_qp(FIXTURE_DATA(fail) *self)
{
	return rp_create_own(&self->e, RPOST_QPT_RC, 0);
}

static int create_qp_with_srq(FIXTURE_DATA(fail) *self)
{
	return rp_create_own(&self->e, RPOST_QPT_RC, self->srq.handle);
}

static int create_ud(FIXTURE_DATA(fail) *self)
{
	return rp_create_own(&self->e, RPOST_QPT_UD, 0);
}

static int destroy_qp(FIXTURE_DATA(fail) *self)
{
	return rp_destroy(self->e.fd, RPOST_OBJ_QP, self->e.qp);
}

TEST_F(fail, create_qp)
{
	NEED_INJECTION();
	EXPECT_LT(0, sweep(self, create_qp, destroy_qp));
	EXPECT_LT(0, sweep(self, create_qp_with_srq, destroy_qp));
	EXPECT_LT(0, sweep(self, create_ud, destroy_qp));
}

static uint32_t made;

static int create_srq(FIXTURE_DATA(fail) *self)
{
	struct rpost_create_srq cmd;
	int ret = rp_create_srq(self->e.fd, self->e.pd, 8, &cmd);

	made = cmd.handle;
	return ret;
}

static int destroy_srq(FIXTURE_DATA(fail) *self)
{
	return rp_destroy(self->e.fd, RPOST_OBJ_SRQ, made);
}

TEST_F(fail, create_srq)
{
	NEED_INJECTION();
	EXPECT_LT(0, sweep(self, create_srq, destroy_srq));
}

static int create_ah(FIXTURE_DATA(fail) *self)
{
	return rp_create_ah(self->e.fd, self->e.pd, &self->addr, &made);
}

static int destroy_ah(FIXTURE_DATA(fail) *self)
{
	return rp_destroy(self->e.fd, RPOST_OBJ_AH, made);
}

TEST_F(fail, create_ah)
{
	NEED_INJECTION();
	EXPECT_LT(0, sweep(self, create_ah, destroy_ah));
}

static int create_async(FIXTURE_DATA(fail) *self)
{
	int fd = rp_async_channel(self->e.fd, self->e.device);

	made = fd;
	return fd < 0 ? fd : 0;
}

static int close_async(FIXTURE_DATA(fail) *self)
{
	(void)self;
	return close(made) ? -errno : 0;
}

TEST_F(fail, create_async_channel)
{
	NEED_INJECTION();
	EXPECT_LT(0, sweep(self, create_async, close_async));
}

/* Up, with allocations of the driver's. */
static int bring_up(FIXTURE_DATA(fail) *self)
{
	struct rpost_qp_attr attr;
	int ret;

	attr = rp_init_attr(RPOST_QPT_RC, self->addr.port_num);
	ret = rp_modify(&self->e, &attr);
	if (ret)
		return ret;
	attr = rp_rtr_attr(RPOST_QPT_RC, &self->addr, self->e.qp_num);
	ret = rp_modify(&self->e, &attr);
	if (ret)
		return ret;
	attr = rp_rts_attr(RPOST_QPT_RC);
	return rp_modify(&self->e, &attr);
}

static int reset(FIXTURE_DATA(fail) *self)
{
	return rp_move(&self->e, RPOST_QPS_RESET);
}

TEST_F_TIMEOUT(fail, modify_qp, 60)
{
	int nth, ret;
	bool left;

	NEED_INJECTION();
	for (nth = 1; nth < 100; nth++) {
		ASSERT_EQ(0, create_qp(self));
		ASSERT_EQ(0, set_nth(nth));
		ret = bring_up(self);
		left = nth_left();
		EXPECT_TRUE(!ret || may_say(ret)) {
			TH_LOG("allocation %d: %d", nth, ret);
		}
		/*
		 * One of them makes rxe stop the receive queue for good, which
		 * then takes its time here.
		 */
		ASSERT_EQ(0, destroy_qp(self));
		if (left)
			break;
	}
	EXPECT_LT(2, nth);
	EXPECT_GT(100, nth);
}

/* Neither the reset nor the destruction. */
TEST_F(fail, endings)
{
	int nth, i;

	NEED_INJECTION();
	for (nth = 1; nth < 8; nth++) {
		ASSERT_EQ(0, create_qp(self));
		ASSERT_EQ(0, bring_up(self));
		for (i = 0; i < 4; i++)
			ASSERT_EQ(0, rp_post_recv(&self->e, i, NULL, 0, 0));
		EXPECT_EQ(0, ends(self, reset, nth));
		ASSERT_EQ(0, bring_up(self));
		EXPECT_EQ(0, ends(self, destroy_qp, nth));
		ASSERT_EQ(0, create_ah(self));
		EXPECT_EQ(0, ends(self, destroy_ah, nth));
		ASSERT_EQ(0, create_srq(self));
		EXPECT_EQ(0, ends(self, destroy_srq, nth));
	}
}

static int attach(FIXTURE_DATA(fail) *self, unsigned long nr)
{
	struct rpost_attach_mcast cmd = {
		.size = sizeof(cmd),
		.qp = self->e.qp,
		.gid = { 0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239,
			 1, 2, 3 },
	};

	return rp_ioctl(self->e.fd, nr, &cmd);
}

static int attach_one(FIXTURE_DATA(fail) *self)
{
	return attach(self, RPOST_IOC_ATTACH_MCAST);
}

static int detach_one(FIXTURE_DATA(fail) *self)
{
	return attach(self, RPOST_IOC_DETACH_MCAST);
}

TEST_F(fail, attach_mcast)
{
	NEED_INJECTION();
	ASSERT_EQ(0, create_ud(self));
	EXPECT_LT(0, sweep(self, attach_one, detach_one));
}

static int resize(FIXTURE_DATA(fail) *self)
{
	struct rpost_resize_cq cmd = {
		.size = sizeof(cmd),
		.handle = self->e.cq.cmd.handle,
		.cqe = 300,
	};

	return rp_ioctl(self->e.fd, RPOST_IOC_RESIZE_CQ, &cmd);
}

TEST_F(fail, resize_cq)
{
	NEED_INJECTION();
	EXPECT_LT(0, sweep(self, resize, NULL));
}

static int create_id(FIXTURE_DATA(fail) *self)
{
	return rp_create_id(self->e.fd, self->e.channel, &made);
}

static int destroy_id(FIXTURE_DATA(fail) *self)
{
	return rp_destroy(self->e.fd, RPOST_OBJ_ID, made);
}

static int create_bound_id(FIXTURE_DATA(fail) *self)
{
	int ret = create_id(self);

	if (ret)
		return ret;
	ret = rp_bind(self->e.fd, made, 0);
	if (ret) {
		nth_left();
		destroy_id(self);
	}
	return ret;
}

TEST_F(fail, create_id)
{
	NEED_INJECTION();
	EXPECT_LT(0, sweep(self, create_id, destroy_id));
	EXPECT_LT(0, sweep(self, create_bound_id, destroy_id));
}

TEST_HARNESS_MAIN
