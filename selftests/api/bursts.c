// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests receives that a program posts again one by one.  A failure means that a
 * message finds no receive, although the program has posted enough, or that receives
 * are lost, come twice, or complete in another order.
 *
 * The peer is another process, which calls nothing of this one's library.
 */
#include <kselftest_harness.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma_test.h"

#define RECVS	64	/* that are posted at first */
#define MSG	64
#define ANSWERS	100	/* at most */

/* What the peer does next. */
struct order {
	int messages;	/* to send, or 0 to disconnect */
};

FIXTURE(bursts) {
	struct rdma_cm_id *listen, *id;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;		/* for the receives */
	struct ibv_mr *mr;
	char *buf;
	uintptr_t posted, taken;	/* numbers of receives */
	pid_t peer;
	int orders, answers;		/* pipes */
	char counter[256];
};

static struct ibv_qp_init_attr attr(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = {
			.max_send_wr = 2 * RECVS, .max_recv_wr = 2 * RECVS,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
}

static int resolve(const char *service, int flags, struct ibv_qp_init_attr *qp,
		   struct rdma_cm_id **id)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_flags = flags };
	struct rdma_addrinfo *info;
	int ret;

	if (rdma_getaddrinfo(getenv("RPOST_TEST_ADDR"), service, &hints, &info))
		return -1;
	ret = rdma_create_ep(id, info, NULL, qp);
	rdma_freeaddrinfo(info);
	return ret;
}

static int send_messages(struct rdma_cm_id *id, struct ibv_mr *mr, char *buf, int n)
{
	struct ibv_wc wc;

	while (n--)
		if (rdma_post_send(id, NULL, buf, MSG, mr, n ? 0 : IBV_SEND_SIGNALED))
			return -1;
	return rdma_get_send_comp(id, &wc) == 1 && !wc.status ? 0 : -1;
}

/* Connects, and sends as it is told until the pipe is closed. */
static int peer_main(int orders, int answers)
{
	struct ibv_qp_init_attr qp = attr();
	static char buf[MSG];
	struct rdma_cm_id *id;
	struct order order;
	struct ibv_mr *mr;
	char service[8];
	int i;

	if (read(orders, service, sizeof(service)) != sizeof(service) ||
	    resolve(service, 0, &qp, &id))
		return 1;
	mr = rdma_reg_msgs(id, buf, MSG);
	if (!mr)
		return 1;
	/* For answers, at which nobody looks. */
	for (i = 0; i < ANSWERS; i++)
		if (rdma_post_recv(id, NULL, buf, MSG, mr))
			return 1;
	if (rdma_connect(id, NULL))
		return 1;
	while (read(orders, &order, sizeof(order)) == sizeof(order)) {
		if (order.messages && send_messages(id, mr, buf, order.messages))
			return 1;
		if (!order.messages)
			rdma_disconnect(id);
		if (write(answers, &order, sizeof(order)) != sizeof(order))
			return 1;
	}
	return 0;
}

/* Finds the device's counter of messages that found no receive. */
static void find_counter(FIXTURE_DATA(bursts) *self)
{
	static const char *const dirs[] = { "hw_counters", "ports/1/hw_counters" };
	const char *device = ibv_get_device_name(self->id->verbs->device);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		snprintf(self->counter, sizeof(self->counter),
			 "/sys/class/infiniband/%s/%s/send_rnr_err", device, dirs[i]);
		if (!access(self->counter, R_OK))
			return;
	}
	self->counter[0] = 0;
}

static long rnr(FIXTURE_DATA(bursts) *self)
{
	FILE *f = self->counter[0] ? fopen(self->counter, "r") : NULL;
	long n = 0;

	if (f && fscanf(f, "%ld", &n) != 1)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

static int post(FIXTURE_DATA(bursts) *self)
{
	return rdma_post_recv(self->id, (void *)self->posted++, self->buf, MSG, self->mr);
}

FIXTURE_SETUP(bursts)
{
	struct ibv_qp_init_attr qp = attr();
	int to[2], from[2], i;
	char service[8] = "";

	/* uverbs refuses a child what its parent has opened. */
	ASSERT_EQ(0, pipe(to));
	ASSERT_EQ(0, pipe(from));
	self->peer = fork();
	ASSERT_LE(0, self->peer);
	if (!self->peer) {
		close(to[1]);
		close(from[0]);
		_exit(peer_main(to[0], from[1]));
	}
	close(to[0]);
	close(from[1]);
	self->orders = to[1];
	self->answers = from[0];
	ASSERT_EQ(0, resolve("0", RAI_PASSIVE, &qp, &self->listen));
	ASSERT_EQ(0, rdma_listen(self->listen, 1));
	snprintf(service, sizeof(service), "%u",
		 be16toh(rdma_get_src_port(self->listen)));
	ASSERT_EQ(sizeof(service), write(to[1], service, sizeof(service)));

	ASSERT_EQ(0, rdma_get_request(self->listen, &self->id));
	self->channel = self->id->recv_cq_channel;
	self->cq = self->id->recv_cq;
	self->buf = calloc(1, MSG);
	ASSERT_NE(NULL, self->buf);
	self->mr = rdma_reg_msgs(self->id, self->buf, MSG);
	ASSERT_NE(NULL, self->mr);
	for (i = 0; i < RECVS; i++)
		ASSERT_EQ(0, post(self));
	ASSERT_EQ(0, rdma_accept(self->id, NULL));
	find_counter(self);
}

FIXTURE_TEARDOWN(bursts)
{
	int status = -1;

	close(self->orders);
	if (self->peer > 0)
		waitpid(self->peer, &status, 0);
	EXPECT_EQ(0, status);
	if (self->mr)
		rdma_dereg_mr(self->mr);
	if (self->id)
		rdma_destroy_ep(self->id);
	if (self->listen)
		rdma_destroy_ep(self->listen);
	free(self->buf);
}

/* The peer sends @n messages; returns when this device has them. */
static int peer_does(FIXTURE_DATA(bursts) *self, int n)
{
	struct order order = { n };

	if (write(self->orders, &order, sizeof(order)) != sizeof(order))
		return -1;
	/* The peer waits for ever if its messages find no receives. */
	if (!readable(self->answers, DEADLINE_MS)) {
		kill(self->peer, SIGKILL);
		return -1;
	}
	if (read(self->answers, &order, sizeof(order)) != sizeof(order))
		return -1;
	return 0;
}

/* Takes a completion with this status; returns 0 if it is the next receive's. */
static int take(FIXTURE_DATA(bursts) *self, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (wait_comp(self->cq, &wc) != 1)
		return -1;
	return wc.status == status && wc.wr_id == self->taken++ ? 0 : -1;
}

/* Takes @n messages, and posts the receives again when all have been taken. */
static int take_and_post(FIXTURE_DATA(bursts) *self, int n)
{
	int i;

	for (i = 0; i < n; i++)
		if (take(self, IBV_WC_SUCCESS))
			return -1;
	for (i = 0; i < n; i++)
		if (post(self))
			return -1;
	return 0;
}

static int answer(FIXTURE_DATA(bursts) *self)
{
	struct ibv_wc wc;

	return rdma_post_send(self->id, NULL, self->buf, MSG, self->mr,
			      IBV_SEND_SIGNALED) ||
	       rdma_get_send_comp(self->id, &wc) != 1 || wc.status ? -1 : 0;
}

/* No call follows the posts, and the device has all receives. */
TEST_F(bursts, without_a_call)
{
	long before = rnr(self);
	int i;

	for (i = 1; i <= 16; i++) {
		ASSERT_EQ(0, peer_does(self, i));
		ASSERT_EQ(0, take_and_post(self, i));
		ASSERT_EQ(0, peer_does(self, RECVS));
		ASSERT_EQ(0, take_and_post(self, RECVS));
	}
	EXPECT_EQ(before, rnr(self));
}

/* The device has no receive any more, so it gets the next one at once. */
TEST_F(bursts, none_left)
{
	long before = rnr(self);
	int i;

	ASSERT_EQ(0, peer_does(self, RECVS));
	for (i = 0; i < RECVS; i++)
		ASSERT_EQ(0, take(self, IBV_WC_SUCCESS));
	ASSERT_EQ(0, post(self));
	ASSERT_EQ(0, peer_does(self, 1));
	EXPECT_EQ(before, rnr(self));
	ASSERT_EQ(0, take(self, IBV_WC_SUCCESS));
}

/* The program sleeps for the next message: all receives are with the device. */
TEST_F(bursts, asleep)
{
	long before = rnr(self);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 16; i++) {
		ASSERT_EQ(0, peer_does(self, 4));
		ASSERT_EQ(0, take_and_post(self, 4));
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
		ASSERT_EQ(0, ibv_poll_cq(self->cq, 1, &wc));
		ASSERT_EQ(0, peer_does(self, RECVS));
		ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, take_and_post(self, RECVS));
	}
	EXPECT_EQ(before, rnr(self));
}

/* At the end each receive that was posted completes, in order. */
TEST_F(bursts, flushed)
{
	struct order order = { 0 };

	ASSERT_EQ(0, peer_does(self, 16));
	ASSERT_EQ(0, take_and_post(self, 16));
	ASSERT_EQ(sizeof(order), write(self->orders, &order, sizeof(order)));
	EXPECT_EQ(0, rdma_disconnect(self->id));
	ASSERT_EQ(sizeof(order), read(self->answers, &order, sizeof(order)));
	while (self->taken < self->posted)
		ASSERT_EQ(0, take(self, IBV_WC_WR_FLUSH_ERR));
	EXPECT_TRUE(no_comp(self->cq));
}

/*
 * With ASan sanitize.c looks for leaks in _exit().  That takes locks which the
 * interrupted code may have held.
 */
static void fork_one(int signal)
{
	int err = errno;

	(void)signal;
	if (!fork())
		_Exit(0);
	errno = err;
}

/* Has a signal handler fork that many microseconds from now, unless that is 0. */
static int fork_after(int us)
{
	struct sigaction action = { .sa_handler = fork_one, .sa_flags = SA_RESTART };
	struct itimerval timer = { .it_value.tv_usec = us };

	if (us && sigaction(SIGALRM, &action, NULL))
		return -1;
	if (setitimer(ITIMER_REAL, &timer, NULL))
		return -1;
	while (!us && waitpid(-1, NULL, WNOHANG) > 0)
		;
	return 0;
}

/* With other threads, which TSan has, too, a fork takes locks (glibc's bug 4737). */
#define NEED_SINGLE_THREAD() do {					\
	if (!__libc_single_threaded)					\
		SKIP(return, "no handler can fork beside other threads"); \
} while (0)

/* A signal handler interrupts posts, and forks without a call of the library. */
TEST_F(bursts, child_of_a_handler)
{
	int i;

	NEED_SINGLE_THREAD();
	for (i = 0; i < ANSWERS; i++) {
		ASSERT_EQ(0, peer_does(self, 1));
		ASSERT_EQ(0, take(self, IBV_WC_SUCCESS));
		ASSERT_EQ(0, fork_after(i % 50 * 5 + 1));
		ASSERT_EQ(0, post(self));
		ASSERT_EQ(0, answer(self));
		ASSERT_EQ(0, fork_after(0));
	}
}

/* A signal handler forks while the library maps the ring of a completion queue. */
TEST_F(bursts, queues_beside_a_handler)
{
	struct ibv_cq *cq;
	int i;

	NEED_SINGLE_THREAD();
	for (i = 0; i < ANSWERS; i++) {
		ASSERT_EQ(0, fork_after(i * 5 + 1));
		/* Each ring has pages of its own. */
		cq = ibv_create_cq(self->id->verbs, 1024, NULL, NULL, 0);
		ASSERT_NE(NULL, cq);
		ASSERT_EQ(0, fork_after(0));
		ASSERT_EQ(0, ibv_destroy_cq(cq));
	}
}

TEST_HARNESS_MAIN
