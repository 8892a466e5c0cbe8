// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests restricted descriptors, which only librdma_post has: rdma_post_open(),
 * rdma_post_use() and RDMA_POST_FD. Each test is a process of its own. A failure means that a
 * worker does what its descriptor does not allow, or that an unmodified program fails when it
 * has to wait.
 */
#include <kselftest_harness.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_post.h>
#include <rdma/rdma_post_abi.h>

#include "rdma_test.h"

#pragma weak rdma_post_open
#pragma weak rdma_post_use

#define ONLY	"only librdma_post has this"

static const struct rpost_policy_rules no_listen = { .forbid = RPOST_FORBID_LISTEN };

/* Returns the error of listening, or 0. */
static int listen_once(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	int err = 0;

	if (!channel)
		return errno;
	if (!test_addr(AF_INET, &addr) || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		return EPROTO;
	if (rdma_bind_addr(id, (struct sockaddr *)&addr) || rdma_listen(id, 1))
		err = errno;
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return err;
}

static int in_child(int (*test)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(test());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(narrowed)
{
	int fd;

	if (over_incumbent())
		SKIP(return, ONLY);
	fd = rdma_post_open(&no_listen);
	ASSERT_LE(0, fd);
	/* The process itself is not restricted, nor are its children. */
	EXPECT_EQ(0, in_child(listen_once));
	ASSERT_EQ(0, rdma_post_use(fd));
	EXPECT_EQ(EPERM, listen_once());
	EXPECT_EQ(EPERM, in_child(listen_once));
	/* Once is enough. */
	EXPECT_ERRNO(EBUSY, rdma_post_use(fd));
}

TEST(not_narrowed)
{
	int fd;

	if (over_incumbent())
		SKIP(return, ONLY);
	fd = rdma_post_open(NULL);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, rdma_post_use(fd));
	EXPECT_EQ(0, listen_once());
}

TEST(inherited)
{
	char text[16];
	int fd;

	if (over_incumbent())
		SKIP(return, ONLY);
	fd = rdma_post_open(&no_listen);
	ASSERT_LE(0, fd);
	snprintf(text, sizeof(text), "%d", fd);
	ASSERT_EQ(0, setenv("RDMA_POST_FD", text, 1));
	EXPECT_EQ(EPERM, listen_once());
}

TEST(wrong)
{
	const struct rpost_policy_rules senseless = { .bytes_per_s = 1 }, unknown = { .has = 1u << 31 };
	int pipes[2];

	if (over_incumbent())
		SKIP(return, ONLY);
	EXPECT_ERRNO(EINVAL, rdma_post_open(&senseless));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_post_open(&unknown));
	EXPECT_ERRNO(EBADF, rdma_post_use(-1));
	ASSERT_EQ(0, pipe(pipes));
	EXPECT_ERRNO(EOPNOTSUPP, rdma_post_use(pipes[0]));
	/* A descriptor that is closed, and none */
	ASSERT_EQ(0, close(pipes[0]));
	ASSERT_EQ(0, close(pipes[1]));
	ASSERT_EQ(0, setenv("RDMA_POST_FD", "1000", 1));
	EXPECT_NULL_ERRNO(EBADF, rdma_create_event_channel());
	ASSERT_EQ(0, setenv("RDMA_POST_FD", "node", 1));
	EXPECT_NULL_ERRNO(EBADF, rdma_create_event_channel());
}

static void nothing(int sig)
{
	(void)sig;
}

/* Signals end the wait for a rate; the call goes on, and posts all. */
TEST(signals)
{
	const struct rpost_policy_rules rules = { .has = RPOST_POLICY_OPS, .ops_per_s = 20 };
	const struct itimerval often = { { 0, 30000 }, { 0, 30000 } };
	const struct sigaction action = { .sa_handler = nothing };
	struct ibv_send_wr wrs[8], *bad;
	struct pair_opts opts;
	struct pair p = {};
	struct ibv_sge sge;
	struct ibv_wc wc;
	unsigned int i;

	if (over_incumbent())
		SKIP(return, ONLY);
	ASSERT_EQ(0, rdma_post_use(rdma_post_open(&rules)));
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_open(&p, &opts));
	sge = (struct ibv_sge) {
		.addr = addr64(p.client.buf), .length = 8, .lkey = p.client.mr->lkey,
	};
	for (i = 0; i < 8; i++) {
		wrs[i] = (struct ibv_send_wr) {
			.wr_id = i, .next = i < 7 ? &wrs[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { addr64(p.server.buf), p.server.mr->rkey },
		};
	}
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &often, NULL));
	EXPECT_EQ(0, ibv_post_send(p.client.id->qp, wrs, &bad));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &(struct itimerval){}, NULL));
	for (i = 0; i < 8; i++) {
		ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_RDMA_WRITE, i);
	}
	pair_close(&p);
}

TEST_HARNESS_MAIN
