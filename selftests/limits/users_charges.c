// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the charge of each object to its user.  A failure means that an object
 * takes more memory than is charged, or that a charge is not returned.  Needs
 * root, which opens the device as other users.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "rpost_own.h"
#include "share.h"
#include "user_bytes.h"

FIXTURE(users) {
	long limit;
	bool skip;
};

FIXTURE_SETUP(users)
{
	self->limit = rp_module_number("parameters/max_user_bytes");
	self->skip = geteuid() || access(USERS, R_OK);
	if (self->skip)
		return;
	ASSERT_EQ(0, user_bytes(ALICE));
	ASSERT_EQ(0, user_bytes(BOB));
}

/* The exit of the test's process closes its files. */
FIXTURE_TEARDOWN(users)
{
	if (!self->skip)
		EXPECT_EQ(0, user_set_limit(self->limit));
}

/* Each object has a charge, and destroying it returns the same. */
TEST_F(users, objects)
{
	struct rpost_resize_cq resize;
	struct rpost_create_srq srq;
	struct rpost_reg_mr mr;
	void *page = rp_pages(4096);
	long at[12], first, second;
	struct rp_end end, ud;
	uint32_t ah, pd;
	int fds[4], i;

	NEED_ROOT();
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	RP_SKIP_IWARP(end.fd, "datagrams");
	/* The first queue pair creates the device's queue, which stays. */
	ASSERT_EQ(0, rp_create_own(&end, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_QP, end.qp));

	at[0] = user_bytes(ALICE);
	ASSERT_EQ(0, rp_alloc_pd(end.fd, end.device, &pd));
	at[1] = user_bytes(ALICE);
	ASSERT_EQ(0, rp_reg_mr(end.fd, end.pd, page, 4096, 0, &mr));
	at[2] = user_bytes(ALICE);
	ASSERT_EQ(0, rp_create_srq(end.fd, end.pd, 100, &srq));
	at[3] = user_bytes(ALICE);
	ASSERT_EQ(0, rp_own_ah(&end, &ah));
	at[4] = user_bytes(ALICE);
	ASSERT_EQ(0, rp_create_id(end.fd, end.channel, &end.id));
	at[5] = user_bytes(ALICE);
	ud = end;
	ASSERT_EQ(0, rp_create_own(&ud, RPOST_QPT_UD, 0));
	at[6] = user_bytes(ALICE);
	ASSERT_EQ(0, rp_mcast(end.fd, RPOST_IOC_ATTACH_MCAST, ud.qp, 1));
	at[7] = user_bytes(ALICE);
	ASSERT_EQ(0, rp_mcast(end.fd, RPOST_IOC_DETACH_MCAST, ud.qp, 1));
	EXPECT_EQ(at[6], user_bytes(ALICE));
	ASSERT_EQ(0, rp_mcast(end.fd, RPOST_IOC_ATTACH_MCAST, ud.qp, 2));
	fds[0] = rp_comp_channel(end.fd);
	at[8] = user_bytes(ALICE);
	fds[1] = rp_event_channel(end.fd);
	at[9] = user_bytes(ALICE);
	fds[2] = rp_async_channel(end.fd, end.device);
	at[10] = user_bytes(ALICE);
	fds[3] = share_device(end.fd, end.device);
	at[11] = user_bytes(ALICE);
	for (i = 0; i < 11; i++) {
		if (at[i] >= at[i + 1])
			printf("# step %d costs nothing\n", i + 1);
		EXPECT_LT(at[i], at[i + 1]);
	}

	close(fds[3]);
	EXPECT_EQ(at[10], user_bytes(ALICE));
	close(fds[2]);
	EXPECT_EQ(at[9], user_bytes(ALICE));
	close(fds[1]);
	EXPECT_EQ(at[8], user_bytes(ALICE));
	close(fds[0]);
	EXPECT_EQ(at[7], user_bytes(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_QP, ud.qp));
	EXPECT_EQ(at[5], user_bytes(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_ID, end.id));
	EXPECT_EQ(at[4], user_bytes(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_AH, ah));
	EXPECT_EQ(at[3], user_bytes(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_SRQ, srq.handle));
	EXPECT_EQ(at[2], user_bytes(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(at[1], user_bytes(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(at[0], user_bytes(ALICE));

	/* The ring of the last resize is charged, and no earlier one. */
	rp_unmap_cq(&end.cq);
	ASSERT_EQ(0, rp_resize_cq(&end.cq, 4096, &resize));
	first = user_bytes(ALICE);
	EXPECT_LT(at[0] + 4096 * 64 / 2, first);
	ASSERT_EQ(0, rp_resize_cq(&end.cq, 64, &resize));
	second = user_bytes(ALICE);
	ASSERT_EQ(0, rp_resize_cq(&end.cq, 4096, &resize));
	EXPECT_EQ(first, user_bytes(ALICE));
	ASSERT_EQ(0, rp_resize_cq(&end.cq, 64, &resize));
	EXPECT_EQ(second, user_bytes(ALICE));
	close(end.channel);
	close(end.fd);
	EXPECT_EQ(0, user_bytes(ALICE));
}

TEST_F(users, failures_take_nothing)
{
	struct rp_end end;
	struct rpost_create_qp qp = {
		.size = sizeof(qp),
		.max_send_wr = 64,
		.max_recv_wr = 64,
		.max_inline_data = 256,
	};
	struct rpost_create_srq srq = {
		.size = sizeof(srq),
		.max_wr = 64,
		.max_sge = 1,
	};
	struct rpost_create_cq cq = { .size = sizeof(cq), .cqe = 1024,
				      .channel_fd = -1 };
	struct rpost_resize_cq resize = { .size = sizeof(resize), .cqe = 2048 };
	long has;
	int i;

	NEED_ROOT();
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	qp.pd = end.pd;
	srq.pd = end.pd;
	cq.device = end.device;
	qp.send_cq = end.cq.cmd.handle;
	qp.recv_cq = end.cq.cmd.handle;
	resize.handle = end.cq.cmd.handle;
	for (i = 0; i < 2; i++) {
		/* The first round creates the device's queue, which stays. */
		has = user_bytes(ALICE);
		EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_CREATE_QP,
						       &qp, sizeof(qp)));
	}
	EXPECT_EQ(has, user_bytes(ALICE));
	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_CREATE_SRQ, &srq,
					       sizeof(srq)));
	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_CREATE_CQ, &cq,
					       sizeof(cq)));
	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_RESIZE_CQ, &resize,
					       sizeof(resize)));
	EXPECT_EQ(has, user_bytes(ALICE));
	qp.send_cq = 0;
	EXPECT_EQ(-ENOENT, rp_ioctl(end.fd, RPOST_IOC_CREATE_QP, &qp));
	EXPECT_EQ(has, user_bytes(ALICE));
}

/*
 * A mapping keeps the charge of its ring; otherwise a program could map rings
 * and destroy their queues without end.
 */
TEST_F(users, mapping_keeps_its_ring)
{
	const long size = 1024 * sizeof(struct rpost_wc);
	struct rp_end end;
	struct rp_cq cq;
	long has, with;

	NEED_ROOT();
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	has = user_bytes(ALICE);
	ASSERT_EQ(0, rp_create_cq(end.fd, end.device, 1024, -1, &cq));
	with = user_bytes(ALICE);
	EXPECT_LE(has + size, with);
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_CQ, cq.cmd.handle));
	EXPECT_LE(has + size, user_bytes(ALICE));
	/* Unmapping a part returns nothing. */
	ASSERT_EQ(0, munmap((char *)cq.ring + 8192, 4096));
	EXPECT_LE(has + size, user_bytes(ALICE));
	ASSERT_EQ(0, munmap(cq.ring, 8192));
	EXPECT_LE(has + size, user_bytes(ALICE));
	rp_unmap_cq(&cq);
	EXPECT_EQ(has, user_bytes(ALICE));
}

TEST_F(users, killed)
{
	struct rp_end end;
	int status, sv[2];
	pid_t pid;
	char c;

	NEED_ROOT();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	pid = fork();
	if (!pid) {
		CHILD_CHECK(!rp_end_as(ALICE, &end));
		CHILD_CHECK(!user_take(&end, 64));
		CHILD_CHECK(write(sv[1], &c, 1) == 1);
		pause();
	}
	ASSERT_EQ(1, read(sv[0], &c, 1));
	EXPECT_LT(65536, user_bytes(ALICE));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, user_bytes(ALICE));
}

/* Removal returns the charge of the device's part, DESTROY the rest. */
TEST_F(users, removal)
{
	struct rpost_create_srq srq;
	struct rp_end end;
	long has;

	NEED_ROOT();
	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	ASSERT_EQ(0, user_take(&end, 1024));
	ASSERT_EQ(0, rp_create_srq(end.fd, end.pd, 1024, &srq));
	has = user_bytes(ALICE);
	ASSERT_EQ(0, rp_remove_device());
	/* A work request takes more in the device than in the module. */
	EXPECT_LT(user_bytes(ALICE), has / 2);
	EXPECT_LT(0, user_bytes(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_SRQ, srq.handle));
	rp_unmap_cq(&end.cq);
	close(end.channel);
	close(end.fd);
	ASSERT_EQ(0, rp_add_device());
	/* The mapped ring of user_take() keeps the open file. */
	EXPECT_LT(0, user_bytes(ALICE));
}

/* ------------------------------------------------------- estimates */

static int make_qp(struct rp_end *end)
{
	return user_take(end, 1);
}

static int make_srq(struct rp_end *end)
{
	struct rpost_create_srq srq;

	return rp_create_srq(end->fd, end->pd, 1, &srq);
}

static int make_pd(struct rp_end *end)
{
	uint32_t pd;

	return rp_alloc_pd(end->fd, end->device, &pd);
}

static int make_mr(struct rp_end *end)
{
	static void *pages;
	struct rpost_reg_mr mr;

	if (!pages)
		pages = rp_pages(8 * 4096);
	return rp_reg_mr(end->fd, end->pd, pages, 8 * 4096, 0, &mr);
}

static int make_id(struct rp_end *end)
{
	uint32_t id;

	RP_TRY(rp_create_id(end->fd, end->channel, &id));
	return rp_bind(end->fd, id, 0);
}

static int make_file(struct rp_end *end)
{
	struct rpost_alloc_pd cmd = { .size = sizeof(cmd),
				      .device = end->device };

	return rp_ioctl(user_open(ALICE), RPOST_IOC_ALLOC_PD, &cmd);
}

static int make_channel(struct rp_end *end)
{
	return rp_comp_channel(end->fd) < 0 ? -errno : 0;
}

static int make_async_channel(struct rp_end *end)
{
	int fd = user_open(ALICE);

	return rp_async_channel(fd, end->device) < 0 ? -errno : 0;
}

static int make_share(struct rp_end *end)
{
	int fd = share_device(end->fd, end->device);

	return fd < 0 ? fd : 0;
}

/* The smallest objects of each kind, whose charges are estimates. */
TEST_F(users, no_less_than_is_taken)
{
	static const struct {
		const char *what;
		int (*make)(struct rp_end *end);
	} rows[] = {
		{ "qp", make_qp }, { "srq", make_srq }, { "pd", make_pd },
		{ "mr", make_mr }, { "id", make_id }, { "file", make_file },
		{ "channel", make_channel },
		{ "async_channel", make_async_channel },
		{ "share", make_share },
	};
	/* Five kinds are descriptors, which stay open. */
	const struct rlimit limit = { 8192, 8192 };
	const int n = 150;
	long taken, has;
	struct rp_end end;
	unsigned int i;
	int j, round;

	NEED_ROOT();
	if (!access("/proc/lockdep", F_OK))
		SKIP(return, "a kernel with debugging aids takes more");
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (j = 0; j < 20; j++)
			ASSERT_EQ(0, rows[i].make(&end));
		/* Other processes take memory, too, so try again. */
		for (round = 0; round < 5; round++) {
			has = user_bytes(ALICE);
			taken = user_free_memory();
			for (j = 0; j < n; j++)
				ASSERT_EQ(0, rows[i].make(&end));
			taken -= user_free_memory();
			has = user_bytes(ALICE) - has;
			if (taken <= has + MB / 4)
				break;
		}
		printf("# %s: %ld bytes taken, %ld charged\n", rows[i].what,
		       taken / n, has / n);
		EXPECT_GT(5, round);
	}
}

TEST_HARNESS_MAIN
