// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests ibv_close_device(): it ends the objects of the context that were not
 * destroyed.  Their memory must be unpinned and out of a peer's reach, and
 * objects of another context of the device must go on.
 */
#include <kselftest_harness.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_test.h"

#define BIG (1u << 20)

FIXTURE(close) {
	struct device dev, other;
	struct side side, peer;
	struct ibv_wc wc;
};

FIXTURE_SETUP(close)
{
	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, device_open(&self->other));
	ASSERT_EQ(0, side_open(&self->other, &self->peer, IBV_QPT_RC, NULL,
			       NULL));
}

FIXTURE_TEARDOWN(close)
{
	side_close(&self->peer);
	device_close(&self->other);
	if (self->dev.verbs) {
		side_close(&self->side);
		device_close(&self->dev);
	}
}

/* Return the number in a file of the kernel, or -1. */
static long number_in(const char *path, const char *format)
{
	FILE *file = fopen(path, "r");
	char line[200];
	long number = -1;

	while (file && number < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, format, &number) != 1)
			number = -1;
	if (file)
		fclose(file);
	return number;
}

/* Return the KiB that this process has pinned. */
static long pinned(void)
{
	return number_in("/proc/self/status", "VmPin: %ld kB");
}

/* Return the number of the module's protection domains. */
static long domains(void)
{
	return number_in("/sys/kernel/debug/rdma_post/objects", "pd %ld");
}

static int bring_up_fast(struct device *dev, struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr;
	int mask;

	mask = attr_init(dev, qp, &attr);
	if (ibv_modify_qp(qp, &attr, mask))
		return -1;
	mask = attr_rtr(dev, qp, dest, TEST_PSN, &attr);
	if (ibv_modify_qp(qp, &attr, mask))
		return -1;
	mask = attr_rts(qp, TEST_PSN, &attr);
	/* Fail after two tries of 67 ms. */
	attr.timeout = 14;
	attr.retry_cnt = 1;
	return ibv_modify_qp(qp, &attr, mask);
}

static int write_to(struct side *from, struct side *to)
{
	struct ibv_sge sge = side_sge(from, 0, 64);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = addr64(to->buf),
			     .rkey = to->mr->rkey },
	};

	return ibv_post_send(from->qp, &wr, &bad);
}

/*
 * Objects that the program has not destroyed stay allocated, as in libibverbs.
 * The context refers to them, so that LeakSanitizer can reach them from here.
 */
static struct ibv_context *closed __attribute__((used));

static int close_dev(struct device *dev)
{
	int ret = ibv_close_device(dev->verbs);

	closed = dev->verbs;

	dev->verbs = NULL;
	return ret;
}

TEST_F(close, memory_is_given_back)
{
	long before = pinned();
	struct ibv_mr *mr;
	void *buf = NULL;

	ASSERT_LE(0, before);
	ASSERT_EQ(0, posix_memalign(&buf, 4096, BIG));
	mr = ibv_reg_mr(self->dev.pd, buf, BIG, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_WRITE);
	ASSERT_NE(NULL, mr);
	EXPECT_LE(before + (long)BIG / 1024, pinned());
	EXPECT_EQ(0, close_dev(&self->dev));
	EXPECT_EQ(before, pinned());
}

#define MAPPED "the queues that rdma_rxe's provider has mapped keep the file open"

TEST_F(close, no_peer_writes_to_it)
{
	struct side *side = &self->side, *peer = &self->peer;

	if (over_incumbent())
		SKIP(return, MAPPED);

	ASSERT_EQ(0, side_open(&self->dev, side, IBV_QPT_RC, NULL, NULL));
	ASSERT_EQ(0, bring_up_fast(&self->dev, side->qp, peer->qp->qp_num));
	ASSERT_EQ(0, bring_up_fast(&self->other, peer->qp, side->qp->qp_num));
	fill(peer->buf, 64, 1);
	ASSERT_EQ(0, write_to(peer, side));
	ASSERT_COMP_OK(peer->cq, &self->wc, IBV_WC_RDMA_WRITE, 1);
	ASSERT_TRUE(filled(side->buf, 64, 1));

	EXPECT_EQ(0, close_dev(&self->dev));
	fill(peer->buf, 64, 2);
	ASSERT_EQ(0, write_to(peer, side));
	ASSERT_EQ(1, wait_comp(peer->cq, &self->wc));
	EXPECT_NE(IBV_WC_SUCCESS, self->wc.status);
	EXPECT_TRUE(filled(side->buf, 64, 1));
}

/* Close a context with an object of each kind, which use each other. */
TEST_F(close, all_kinds_in_use)
{
	struct ibv_ah_attr addr = own_address(&self->dev);
	struct ibv_srq_init_attr srq_attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct ibv_comp_channel *channel;
	long before = pinned();
	struct side waiting;
	struct ibv_srq *srq;
	struct ibv_cq *cq;

	if (over_incumbent())
		SKIP(return, MAPPED);
	channel = ibv_create_comp_channel(self->dev.verbs);
	ASSERT_NE(NULL, channel);
	cq = ibv_create_cq(self->dev.verbs, 16, NULL, channel, 0);
	ASSERT_NE(NULL, cq);
	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	srq = ibv_create_srq(self->dev.pd, &srq_attr);
	ASSERT_NE(NULL, srq);
	ASSERT_NE(NULL, ibv_create_ah(self->dev.pd, &addr));
	ASSERT_EQ(0, side_open(&self->dev, &self->side, IBV_QPT_RC, cq, srq));
	ASSERT_EQ(0, side_open(&self->dev, &waiting, IBV_QPT_RC, cq, NULL));
	ASSERT_EQ(0, bring_up(&self->dev, waiting.qp, waiting.qp->qp_num,
			      TEST_PSN, TEST_PSN));
	ASSERT_EQ(0, post_recv(&waiting, 1, 0, 64));
	EXPECT_EQ(0, close_dev(&self->dev));
	EXPECT_EQ(before, pinned());

	/* The other context's queue pair sends to itself. */
	ASSERT_EQ(0, bring_up(&self->other, self->peer.qp,
			      self->peer.qp->qp_num, TEST_PSN, TEST_PSN));
	ASSERT_EQ(0, post_recv(&self->peer, 1, 64, 64));
	ASSERT_EQ(0, post_send(&self->peer, 2, 0, 64));
	ASSERT_EQ(1, wait_comp(self->peer.cq, &self->wc));
	EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
	ASSERT_EQ(1, wait_comp(self->peer.cq, &self->wc));
	EXPECT_EQ(IBV_WC_SUCCESS, self->wc.status);
}

/* A child of fork() closes the inherited context; the parent's goes on. */
TEST_F(close, parent_goes_on)
{
	struct side *side = &self->side, *peer = &self->peer;
	long before;
	int status;
	pid_t pid;

	ASSERT_EQ(0, side_open(&self->dev, side, IBV_QPT_RC, NULL, NULL));
	before = pinned();
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(ibv_close_device(self->dev.verbs));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(before, pinned());
	ASSERT_EQ(0, bring_up_fast(&self->dev, side->qp, peer->qp->qp_num));
	ASSERT_EQ(0, bring_up_fast(&self->other, peer->qp, side->qp->qp_num));
	fill(peer->buf, 64, 1);
	ASSERT_EQ(0, write_to(peer, side));
	ASSERT_COMP_OK(peer->cq, &self->wc, IBV_WC_RDMA_WRITE, 1);
	EXPECT_TRUE(filled(side->buf, 64, 1));
}

/* The send keeps the destroyed handle, which keeps its domain. */
TEST_F(close, address_in_use)
{
	struct ibv_ah_attr addr = own_address(&self->dev);
	struct side *side = &self->side;
	long before = domains();
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (over_incumbent() || before < 0)
		SKIP(return, "there are no counts of the module's to read");
	ASSERT_EQ(0, side_open(&self->dev, side, IBV_QPT_UD, NULL, NULL));
	ASSERT_EQ(0, bring_up(&self->dev, side->qp, 0, TEST_PSN, TEST_PSN));
	wr.wr.ud.ah = ibv_create_ah(self->dev.pd, &addr);
	ASSERT_NE(NULL, wr.wr.ud.ah);
	wr.wr.ud.remote_qpn = side->qp->qp_num;
	wr.wr.ud.remote_qkey = TEST_QKEY;
	ASSERT_EQ(0, ibv_post_send(side->qp, &wr, &bad));
	ASSERT_EQ(0, ibv_destroy_ah(wr.wr.ud.ah));
	close_dev(&self->dev);
	EXPECT_EQ(before - 1, domains());
}

#define NEVER_KEPT	5

/*
 * A region that was deregistered may stay pinned for the next registration, until the
 * context is closed, and not at all with RDMA_POST_MR_CACHE=0.
 */
static int kept_after_dereg(const char *env)
{
	long before = pinned(), kept;
	struct device dev;
	struct ibv_mr *mr;
	char *mem;
	int i;

	mem = mmap(NULL, BIG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (setenv("RDMA_POST_MR_CACHE", env, 1) || mem == MAP_FAILED ||
	    device_open(&dev))
		return 1;
	for (i = 0; i < 3; i++) {
		mr = ibv_reg_mr(dev.pd, mem, BIG, IBV_ACCESS_LOCAL_WRITE);
		if (!mr || ibv_dereg_mr(mr))
			return 2;
	}
	kept = pinned() - before;
	device_close(&dev);
	if (pinned() != before)
		return 3;
	if (strcmp(env, "0") && !kept)
		return NEVER_KEPT;
	return kept == (strcmp(env, "0") ? BIG / 1024 : 0) ? 0 : 4;
}

TEST(kept_registrations)
{
	const char * const envs[] = { "0", "1" };
	int i, status;
	pid_t pid;

	if (over_incumbent())
		SKIP(return, "only librdma_post keeps registrations");
	for (i = 0; i < 2; i++) {
		/* The library opens its file anew in a child. */
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(kept_after_dereg(envs[i]));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFEXITED(status));
		if (WEXITSTATUS(status) == NEVER_KEPT)
			SKIP(return, "the device's regions cannot be kept");
		EXPECT_EQ(0, WEXITSTATUS(status));
	}
}

TEST_HARNESS_MAIN
