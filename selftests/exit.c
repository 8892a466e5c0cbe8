// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Programs that die: nothing of them stays behind, and their peers are told.
 */
#include <kselftest_harness.h>
#include <sys/wait.h>

#include "rpost_test.h"

enum stage {
	OPENED,
	BOUND,
	LISTENING,
	RESOLVING,
	RESOLVED,
	WITH_QP,
	CONNECTING,
};

FIXTURE(stage) {
	long refcnt;
};

FIXTURE_VARIANT(stage) {
	enum stage stage;
};

FIXTURE_VARIANT_ADD(stage, opened) { .stage = OPENED };
FIXTURE_VARIANT_ADD(stage, bound) { .stage = BOUND };
FIXTURE_VARIANT_ADD(stage, listening) { .stage = LISTENING };
FIXTURE_VARIANT_ADD(stage, resolving) { .stage = RESOLVING };
FIXTURE_VARIANT_ADD(stage, resolved) { .stage = RESOLVED };
FIXTURE_VARIANT_ADD(stage, with_qp) { .stage = WITH_QP };
FIXTURE_VARIANT_ADD(stage, connecting) { .stage = CONNECTING };

FIXTURE_SETUP(stage)
{
	self->refcnt = rp_module_number("refcnt");
	ASSERT_LE(0, self->refcnt);
}

FIXTURE_TEARDOWN(stage)
{
}

/* A program that gets as far as @stage, with memory registered. */
static int live_until(enum stage stage)
{
	struct rp_end end, server;
	struct rpost_reg_mr mr;
	uint32_t listener;
	void *mem = rp_pages(1 << 20);

	RP_TRY(rp_end_init(&end));
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, 1 << 20,
			 RPOST_ACCESS_LOCAL_WRITE, &mr));
	if (stage == OPENED)
		return 0;
	if (stage == BOUND || stage == LISTENING) {
		RP_TRY(rp_create_id(end.fd, end.channel, &end.id));
		RP_TRY(rp_bind(end.fd, end.id, 0));
		return stage == LISTENING ? rp_listen(end.fd, end.id, 1) : 0;
	}
	RP_TRY(rp_end_init(&server));
	RP_TRY(rp_listener(&server, &listener));
	if (stage == RESOLVING) {
		RP_TRY(rp_create_id(end.fd, end.channel, &end.id));
		return rp_resolve_addr(end.fd, end.id,
				       rp_port(server.fd, listener));
	}
	RP_TRY(rp_client_route(&end, rp_port(server.fd, listener)));
	if (stage == RESOLVED)
		return 0;
	RP_TRY(rp_create_qp(&end, 0));
	RP_TRY(rp_post_recv(&end, 1, mem, 64, mr.lkey));
	if (stage == WITH_QP)
		return 0;
	/* The request is not even fetched. */
	return rp_connect(end.fd, end.id);
}

TEST_F(stage, killed)
{
	int pipefd[2], status;
	char ret = 1;
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		ret = live_until(variant->stage) != 0;
		if (write(pipefd[1], &ret, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	ASSERT_EQ(1, read(pipefd[0], &ret, 1));
	EXPECT_EQ(0, ret);
	EXPECT_LT(self->refcnt, rp_module_number("refcnt"));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	/* All was undone before the process was gone. */
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
	close(pipefd[0]);
	close(pipefd[1]);
}

/* The client dies while both ends have work posted. */
static int connect_to(uint16_t port)
{
	struct rp_end end;
	struct rpost_reg_mr mr;
	void *mem = rp_pages(4096);

	RP_TRY(rp_end_init(&end));
	RP_TRY(rp_client_route(&end, port));
	RP_TRY(rp_create_qp(&end, 0));
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, 4096, RPOST_ACCESS_LOCAL_WRITE,
			 &mr));
	RP_TRY(rp_post_recv(&end, 1, mem, 64, mr.lkey));
	RP_TRY(rp_connect(end.fd, end.id));
	return rp_expect(end.channel, end.id, RPOST_EVENT_ESTABLISHED);
}

TEST(peer_of_a_killed_program)
{
	struct rp_end server;
	struct rpost_wc wc;
	uint32_t listener;
	int status;
	pid_t pid;

	ASSERT_EQ(0, rp_end_init(&server));
	ASSERT_EQ(0, rp_listener(&server, &listener));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		connect_to(rp_port(server.fd, listener));
		for (;;)
			pause();
	}
	ASSERT_EQ(0, rp_take_request(&server, listener));
	ASSERT_EQ(0, rp_create_qp(&server, 0));
	ASSERT_EQ(0, rp_post_recv(&server, 42, NULL, 0, 0));
	ASSERT_EQ(0, rp_accept(server.fd, server.id));
	ASSERT_EQ(0, rp_expect(server.channel, server.id,
			       RPOST_EVENT_ESTABLISHED));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));

	EXPECT_EQ(0, rp_expect(server.channel, server.id,
			       RPOST_EVENT_DISCONNECTED));
	EXPECT_EQ(0, rp_disconnect(server.fd, server.id));
	ASSERT_EQ(1, rp_wait_cq(&server.cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(42, wc.wr_id);
	rp_end_close(&server);
}

/* Both ends in one program, which dies in the middle of its traffic. */
static void talk_for_ever(int pipefd)
{
	struct rp_end c, s;
	struct rpost_reg_mr from, to;
	struct rp_send send;
	struct rpost_wc wc;
	char *mem = rp_pages(1 << 17), ok = 1;
	unsigned int done = 0;

	if (rp_connect_pair(&c, &s, 0) ||
	    rp_reg_mr(c.fd, c.pd, mem, 1 << 16, 0, &from) ||
	    rp_reg_mr(s.fd, s.pd, mem + (1 << 16), 1 << 16,
		      RPOST_ACCESS_LOCAL_WRITE, &to))
		_exit(1);
	send = rp_send(RPOST_WR_SEND, 1, mem, 1 << 16, from.lkey);
	for (;;) {
		rp_post_recv(&s, 1, mem + (1 << 16), 1 << 16, to.lkey);
		rp_post_send(&c, &send);
		while (rp_poll_cq(&c.cq, &wc) == 1)
			done++;
		while (rp_poll_cq(&s.cq, &wc) == 1)
			;
		if (done > 20 && ok) {
			if (write(pipefd, &ok, 1) != 1)
				_exit(1);
			ok = 0;
		}
	}
}

TEST(killed_with_traffic)
{
	long refcnt = rp_module_number("refcnt");
	int pipefd[2], status, i;
	char ok;
	pid_t pid;

	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			close(pipefd[0]);
			talk_for_ever(pipefd[1]);
		}
		close(pipefd[1]);
		ASSERT_EQ(1, read(pipefd[0], &ok, 1));
		usleep(i * 777);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
		close(pipefd[0]);
	}
}

TEST(many_killed_at_once)
{
	enum { N = 20 };
	long refcnt = rp_module_number("refcnt");
	pid_t pids[N];
	int i, status;

	for (i = 0; i < N; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i]) {
			live_until(i % (CONNECTING + 1));
			for (;;)
				pause();
		}
	}
	/* Each is somewhere else by now. */
	usleep(200000);
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, kill(pids[i], SIGKILL));
	for (i = 0; i < N; i++)
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
	EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
}

TEST_HARNESS_MAIN
