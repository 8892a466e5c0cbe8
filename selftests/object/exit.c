// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Kills programs at each stage of their lives.  A failure means that something
 * of them stays behind, or that their peers are not told.
 */
#include <kselftest_harness.h>
#include <sys/wait.h>

#include "kernel_release.h"
#include "rpost_own.h"

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

/* Live up to @stage, with registered memory. */
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
	/* The server does not fetch the request. */
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
	/* The kernel undid everything before the process was gone. */
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
	close(pipefd[0]);
	close(pipefd[1]);
}

/* Connect and post work; the client is then killed. */
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

/* The length of a message: many packets, unless rxe may repeat one. */
static size_t long_message(void)
{
	return rxe_repeats_a_packet() ? 1024 : 1 << 16;
}

/* Connect two ends of one program, and send until it is killed. */
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
	send = rp_send(RPOST_WR_SEND, 1, mem, long_message(), from.lkey);
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

/* The objects of a program with datagrams, all in use. */
struct own {
	struct rp_end ud, rc, peer;
	struct rpost_create_srq srq;
	uint32_t ahs[20];
	int async;
	char *mem;
	struct rpost_reg_mr mr;
};

static int own_attach(struct own *o, uint8_t x)
{
	int ret = rp_mcast(o->ud.fd, RPOST_IOC_ATTACH_MCAST, o->ud.qp, x);

	return ret == -EOPNOTSUPP ? 0 : ret;
}

static int own_make(struct own *o)
{
	int i;

	o->mem = rp_pages(1 << 16);
	RP_TRY(rp_end_init(&o->ud));
	RP_TRY(rp_end_init(&o->peer));
	o->rc = o->ud;
	o->async = rp_async_channel(o->ud.fd, o->ud.device);
	RP_TRY(rp_create_srq(o->ud.fd, o->ud.pd, 16, &o->srq));
	RP_TRY(rp_reg_mr(o->ud.fd, o->ud.pd, o->mem, 1 << 16,
			 RPOST_ACCESS_LOCAL_WRITE, &o->mr));
	RP_TRY(rp_create_own(&o->ud, RPOST_QPT_UD, 0));
	RP_TRY(rp_bring_up(&o->ud, RPOST_QPT_UD, 0));
	RP_TRY(rp_create_own(&o->rc, RPOST_QPT_RC, o->srq.handle));
	RP_TRY(rp_create_own(&o->peer, RPOST_QPT_RC, 0));
	RP_TRY(rp_bring_up(&o->rc, RPOST_QPT_RC, o->peer.qp_num));
	RP_TRY(rp_bring_up(&o->peer, RPOST_QPT_RC, o->rc.qp_num));
	RP_TRY(rp_srq_limit(o->ud.fd, o->srq.handle, 4));
	for (i = 0; i < 20; i++)
		RP_TRY(rp_own_ah(&o->ud, &o->ahs[i]));
	for (i = 0; i < 4; i++)
		RP_TRY(own_attach(o, i));
	return 0;
}

/* Send datagrams to itself, and messages to the shared receive queue. */
static void own_talk(struct own *o, unsigned int i)
{
	struct rp_send send = rp_datagram(o->ahs[i % 20], o->ud.qp_num, 1,
					  o->mem, 256, o->mr.lkey);
	struct rpost_wc wc;

	rp_post_recv(&o->ud, 1, o->mem + 4096, 4096, o->mr.lkey);
	rp_post_send(&o->ud, &send);
	rp_post_srq(o->ud.fd, o->srq.handle, 2, o->mem + 8192, 4096,
		    o->mr.lkey);
	send = rp_empty_send(RPOST_WR_SEND, 3);
	rp_post_send(&o->peer, &send);
	while (rp_poll_cq(&o->ud.cq, &wc) == 1)
		;
	while (rp_poll_cq(&o->peer.cq, &wc) == 1)
		;
}

TEST(own_objects_killed)
{
	long refcnt = rp_module_number("refcnt");
	int pipefd[2], status, round;
	unsigned int i;
	struct own o;
	char ok;
	pid_t pid;

	for (round = 0; round < 5; round++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			ok = own_make(&o) == 0;
			for (i = 0;; i++) {
				own_talk(&o, i);
				if (i == 50 && write(pipefd[1], &ok, 1) != 1)
					_exit(1);
			}
		}
		ASSERT_EQ(1, read(pipefd[0], &ok, 1));
		EXPECT_EQ(1, ok);
		usleep(round * 777);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
		close(pipefd[0]);
		close(pipefd[1]);
	}
}

/*
 * Destroy some objects in an order that changes with each round, and leave the
 * others to the close: no order may matter.
 */
TEST(own_objects_closed)
{
	long refcnt = rp_module_number("refcnt");
	unsigned int round, i, n;
	struct own o;

	for (round = 0; round < 24; round++) {
		ASSERT_EQ(0, own_make(&o));
		for (i = 0; i < 20; i++)
			own_talk(&o, i);
		const struct {
			uint32_t type, handle;
		} objs[] = {
			{ RPOST_OBJ_QP, o.ud.qp },
			{ RPOST_OBJ_QP, o.rc.qp },
			{ RPOST_OBJ_SRQ, o.srq.handle },
			{ RPOST_OBJ_MR, o.mr.handle },
			{ RPOST_OBJ_AH, o.ahs[0] },
			{ RPOST_OBJ_CQ, o.ud.cq.cmd.handle },
			{ RPOST_OBJ_PD, o.ud.pd },
		};

		/*
		 * The step has no common factor with 7, so it meets all
		 * objects.
		 */
		n = round % 8;
		for (i = 0; i < n; i++)
			rp_destroy(o.ud.fd,
				   objs[(i * (1 + round % 6) + round) % 7].type,
				   objs[(i * (1 + round % 6) + round) % 7].handle);
		/* The channel is closed before the file, or after it. */
		if (round % 2)
			close(o.async);
		rp_end_close(&o.ud);
		rp_end_close(&o.peer);
		if (round % 2 == 0)
			close(o.async);
		munmap(o.mem, 1 << 16);
		EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt)) {
			TH_LOG("round %u", round);
		}
	}
}

TEST(many_killed_at_once)
{
	enum { N = 20 };
	long refcnt = rp_module_number("refcnt");
	pid_t pids[N];
	int pipefd[2], i, status;
	char done = 0;

	ASSERT_EQ(0, pipe(pipefd));
	for (i = 0; i < N; i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i]) {
			live_until(i % (CONNECTING + 1));
			CHILD_CHECK(write(pipefd[1], &done, 1) == 1);
			for (;;)
				pause();
		}
	}
	/*
	 * Half of the programs are ready; the others may still be on their way.
	 */
	for (i = 0; i < N / 2; i++)
		ASSERT_EQ(1, read(pipefd[0], &done, 1));
	for (i = 0; i < N; i++)
		ASSERT_EQ(0, kill(pids[i], SIGKILL));
	for (i = 0; i < N; i++)
		ASSERT_EQ(pids[i], waitpid(pids[i], &status, 0));
	EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
	close(pipefd[0]);
	close(pipefd[1]);
}

TEST_HARNESS_MAIN
