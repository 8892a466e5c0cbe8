// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /proc/PID/fdinfo of an open file against what the test has done with it.  A
 * failure means that a wrong number is shown, or one to somebody else, or that
 * a program with many objects makes it long or slow.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fdinfo.h"
#include "pass_fd.h"
#include "rpost_own.h"
#include "share.h"

#define PAGES		5
#define FEW_IDS		256
#define MANY_IDS	(16 * FEW_IDS)
#define SHOWN_IDS	64
#define MAX_BYTES	32768
#define TRIES		5

static char text[FDINFO_BYTES];

TEST(empty)
{
	int fd = rp_open(), other = rp_open(), same = dup(fd);
	static const char * const zero[] = {
		"objects-pd", "objects-mr", "objects-cq", "objects-qp",
		"objects-id", "objects-srq", "objects-ah",
		"objects-comp-channel", "objects-event-channel",
		"objects-async-channel", "objects-share",
		"bytes-pinned", "bytes-cached", "cached-mr", "bytes-rings", "wr", "cqe", "sq-size", "sq-used", "rq-size",
		"rq-used", "srq-size", "srq-used", "cq-size", "cq-used",
		"total-ops-send", "total-ops-write", "total-ops-read",
		"total-ops-atomic", "total-ops-recv", "total-bytes-send",
		"total-bytes-write", "total-bytes-read", "total-bytes-recv",
		"total-completions", "total-overruns", "total-commands",
		"total-comp-events", "total-comp-wakeups", "total-comp-sleeps",
		"total-cm-events", "total-cm-sleeps", "total-errors",
		"total-cache-hits",
		"connections",
	};
	unsigned int i;

	ASSERT_LE(0, fd);
	ASSERT_LE(0, other);
	ASSERT_LT(0, fdinfo_read(fd, text));
	for (i = 0; i < ARRAY_SIZE(zero); i++) {
		EXPECT_EQ(0, fdinfo_number(text, zero[i])) {
			TH_LOG("%s", zero[i]);
		}
		EXPECT_EQ(1, fdinfo_lines(text, zero[i]));
	}
	EXPECT_LT(0, fdinfo_number(text, "bytes-charged"));
	EXPECT_EQ(0, fdinfo_lines(text, "device"));
	EXPECT_EQ(rp_module_number("parameters/max_objects"),
		  fdinfo_number(text, "limit-objects"));
	EXPECT_EQ(rp_module_number("parameters/max_wr"),
		  fdinfo_number(text, "limit-wr"));
	EXPECT_EQ(rp_module_number("parameters/max_cqe"),
		  fdinfo_number(text, "limit-cqe"));
	ASSERT_NE(NULL, fdinfo_text(text, "limit-user-bytes"));
	EXPECT_LT(0, fdinfo_number(text, "file"));
	EXPECT_EQ(fdinfo_number(text, "file"), fdinfo_get(same, "file"));
	EXPECT_NE(fdinfo_number(text, "file"), fdinfo_get(other, "file"));
	close(fd);
	close(same);
	close(other);
}

FIXTURE(pair) {
	struct rp_end client, server;
	struct rpost_reg_mr mr, peer;
	char *mem;
};

FIXTURE_SETUP(pair)
{
	uint32_t access = RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE |
			  RPOST_ACCESS_REMOTE_READ;

	self->mem = rp_pages(PAGES * getpagesize());
	ASSERT_EQ(0, rp_connect_pair(&self->client, &self->server, 0));
	ASSERT_EQ(0, rp_reg_mr(self->client.fd, self->client.pd, self->mem,
			       PAGES * getpagesize(), access, &self->mr));
	ASSERT_EQ(0, rp_reg_mr(self->server.fd, self->server.pd, self->mem,
			       getpagesize(), access, &self->peer));
}

FIXTURE_TEARDOWN(pair)
{
	rp_end_close(&self->client);
	rp_end_close(&self->server);
}

TEST_F(pair, objects)
{
	int fd = self->client.fd;
	long long charged;

	ASSERT_LT(0, fdinfo_read(fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "objects-pd"));
	EXPECT_EQ(1, fdinfo_number(text, "objects-mr"));
	EXPECT_EQ(1, fdinfo_number(text, "objects-cq"));
	EXPECT_EQ(1, fdinfo_number(text, "objects-qp"));
	EXPECT_EQ(1, fdinfo_number(text, "objects-id"));
	EXPECT_EQ(0, fdinfo_number(text, "objects-ah"));
	EXPECT_EQ(1, fdinfo_number(text, "objects-event-channel"));
	EXPECT_EQ(1, fdinfo_lines(text, "device"));
	EXPECT_EQ(PAGES * getpagesize(), fdinfo_number(text, "bytes-pinned"));
	EXPECT_LE(getpagesize(), fdinfo_number(text, "bytes-rings"));
	EXPECT_EQ(RP_DEPTH, fdinfo_number(text, "sq-size"));
	EXPECT_EQ(RP_DEPTH, fdinfo_number(text, "rq-size"));
	EXPECT_EQ(self->client.cq.cmd.cqe, fdinfo_number(text, "cq-size"));
	charged = fdinfo_number(text, "bytes-charged");

	/* The other file has its own numbers. */
	EXPECT_EQ(getpagesize(), fdinfo_get(self->server.fd, "bytes-pinned"));

	ASSERT_EQ(0, rp_destroy(fd, RPOST_OBJ_MR, self->mr.handle));
	ASSERT_LT(0, fdinfo_read(fd, text));
	EXPECT_EQ(0, fdinfo_number(text, "objects-mr"));
	EXPECT_EQ(0, fdinfo_number(text, "bytes-pinned"));
	EXPECT_GT(charged, fdinfo_number(text, "bytes-charged"));
}

TEST_F(pair, connection)
{
	char line[256], want[64];
	struct rpost_query_id id;

	ASSERT_EQ(0, rp_post_recv(&self->client, 1, self->mem, 8, self->mr.lkey));
	ASSERT_EQ(0, rp_query_id(self->client.fd, self->client.id, &id));
	ASSERT_LT(0, fdinfo_read(self->client.fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "connections"));
	EXPECT_EQ(-1, fdinfo_number(text, "connections-left-out"));
	ASSERT_TRUE(fdinfo_connection(text, self->client.id, line));
	TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " state=connected device="));
	snprintf(want, sizeof(want), ":%u dst=",
		 ntohs(((struct sockaddr_in *)&id.src)->sin_port));
	EXPECT_NE(NULL, strstr(line, want));
	snprintf(want, sizeof(want), ":%u qp=%u sq=0/%d rq=1/%d",
		 ntohs(((struct sockaddr_in *)&id.dst)->sin_port),
		 self->client.qp_num, RP_DEPTH, RP_DEPTH);
	EXPECT_NE(NULL, strstr(line, want));
	EXPECT_EQ(1, fdinfo_number(text, "rq-used"));

	ASSERT_EQ(0, rp_disconnect(self->server.fd, self->server.id));
	ASSERT_EQ(0, rp_expect(self->client.channel, self->client.id,
			       RPOST_EVENT_DISCONNECTED));
	ASSERT_LT(0, fdinfo_read(self->client.fd, text));
	ASSERT_TRUE(fdinfo_connection(text, self->client.id, line));
	EXPECT_NE(NULL, strstr(line, " state=disconnected "));

	/* Without the id there is no connection. */
	ASSERT_EQ(0, rp_leave(&self->client));
	ASSERT_LT(0, fdinfo_read(self->client.fd, text));
	EXPECT_EQ(0, fdinfo_number(text, "connections"));
	EXPECT_EQ(0, fdinfo_lines(text, "connection"));
	EXPECT_EQ(0, fdinfo_number(text, "sq-size"));
}

/* A process that is sent a descriptor of the device. */
static void importer(int sock)
{
	int fd = recv_fd(sock);
	char byte;

	CHILD_CHECK(fd >= 0);
	CHILD_CHECK(fdinfo_read(fd, text) > 0);
	CHILD_CHECK(send(sock, &fd, sizeof(fd), 0) == sizeof(fd));
	CHILD_CHECK(recv(sock, &byte, 1, 0) == 1);
	_exit(0);
}

/* The file's numbers are shown by all its descriptors, in all processes. */
TEST_F(pair, by_a_share)
{
	static char theirs[FDINFO_BYTES];
	const char *want;
	int socks[2], share, fd, status;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		importer(socks[1]);
	share = share_device(self->client.fd, self->client.device);
	ASSERT_LE(0, share);
	ASSERT_EQ(0, send_fd(socks[0], share));
	ASSERT_EQ(sizeof(fd), recv(socks[0], &fd, sizeof(fd), 0));

	ASSERT_LT(0, fdinfo_read(self->client.fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "objects-mr"));
	EXPECT_EQ(1, fdinfo_number(text, "objects-share"));
	EXPECT_LT(0, fdinfo_number(text, "file"));
	want = strstr(text, "rpost-");
	ASSERT_LT(0, fdinfo_read(share, theirs));
	EXPECT_STREQ(want, strstr(theirs, "rpost-"));
	ASSERT_LT(0, fdinfo_read_of(pid, fd, theirs));
	EXPECT_STREQ(want, strstr(theirs, "rpost-"));

	ASSERT_EQ(1, send(socks[0], "x", 1, 0));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(share);
	EXPECT_EQ(0, fdinfo_get(self->client.fd, "objects-share"));
	close(socks[0]);
	close(socks[1]);
}

static int do_op(FIXTURE_DATA(pair) *self, uint32_t opcode, uint32_t bytes)
{
	struct rp_send send = rp_send(opcode, 7, self->mem, bytes, self->mr.lkey);
	struct rpost_wc wc;

	if (opcode != RPOST_WR_SEND) {
		send.wr.remote_addr = (uintptr_t)self->mem;
		send.wr.rkey = self->peer.rkey;
	}
	RP_TRY(rp_post_send(&self->client, &send));
	RP_TRY(rp_wait_cq(&self->client.cq, &wc) - 1);
	return wc.status;
}

TEST_F(pair, traffic)
{
	struct rpost_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, rp_post_recv(&self->server, i, self->mem, 64,
					  self->peer.lkey));
		ASSERT_EQ(0, do_op(self, RPOST_WR_SEND, 10 + i));
		ASSERT_EQ(1, rp_wait_cq(&self->server.cq, &wc));
	}
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, do_op(self, RPOST_WR_RDMA_WRITE, 100));
	for (i = 0; i < 7; i++)
		ASSERT_EQ(0, do_op(self, RPOST_WR_RDMA_READ, 1000));

	ASSERT_LT(0, fdinfo_read(self->server.fd, text));
	EXPECT_EQ(3, fdinfo_number(text, "total-ops-recv"));
	EXPECT_EQ(33, fdinfo_number(text, "total-bytes-recv"));
	EXPECT_EQ(3, fdinfo_number(text, "total-completions"));
	EXPECT_EQ(0, fdinfo_number(text, "total-ops-send"));

	/* The totals keep what the queue pair has done, after it is destroyed. */
	for (i = 0; i < 2; i++) {
		ASSERT_LT(0, fdinfo_read(self->client.fd, text));
		EXPECT_EQ(3, fdinfo_number(text, "total-ops-send"));
		EXPECT_EQ(33, fdinfo_number(text, "total-bytes-send"));
		EXPECT_EQ(5, fdinfo_number(text, "total-ops-write"));
		EXPECT_EQ(500, fdinfo_number(text, "total-bytes-write"));
		EXPECT_EQ(7, fdinfo_number(text, "total-ops-read"));
		EXPECT_EQ(7000, fdinfo_number(text, "total-bytes-read"));
		EXPECT_EQ(0, fdinfo_number(text, "total-ops-recv"));
		EXPECT_EQ(15, fdinfo_number(text, "total-completions"));
		EXPECT_EQ(0, fdinfo_number(text, "total-errors"));
		EXPECT_EQ(0, fdinfo_number(text, "sq-used"));
		EXPECT_EQ(0, fdinfo_number(text, "cq-used"));
		if (!i)
			ASSERT_EQ(0, rp_leave(&self->client));
	}
}

/* A message is inline, and its completion waits in the ring. */
TEST_F(pair, inline_and_waiting)
{
	struct {
		struct rpost_send_wr wr;
		char data[16];
	} send = {
		.wr = {
			.size = sizeof(send), .opcode = RPOST_WR_RDMA_WRITE,
			.send_flags = RPOST_SEND_SIGNALED | RPOST_SEND_INLINE,
			.inline_len = sizeof(send.data),
			.remote_addr = (uintptr_t)self->mem,
			.rkey = self->peer.rkey,
		},
	};
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long long commands;

	ASSERT_EQ(0, rp_post(self->client.fd, RPOST_IOC_POST_SEND, self->client.qp,
			     &send, sizeof(send), 1, NULL));
	EXPECT_EQ(16, fdinfo_get(self->client.fd, "total-bytes-write"));
	while (fdinfo_get(self->client.fd, "cq-used") != 1 && rp_now_ms() < end)
		ASSERT_LE(0, rp_fetch(&self->client.cq));
	EXPECT_EQ(1, fdinfo_get(self->client.fd, "cq-used"));
	commands = fdinfo_get(self->client.fd, "total-commands");
	ASSERT_LE(0, rp_num_objects(self->client.fd));
	EXPECT_EQ(commands + 1, fdinfo_get(self->client.fd, "total-commands"));
}

TEST_F(pair, errors)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 7, self->mem, 8,
				      self->mr.lkey ^ 0xffffff00);
	struct rpost_wc wc;
	int i, failed = 0;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, rp_post_recv(&self->client, i, self->mem, 8,
					  self->mr.lkey));
	ASSERT_EQ(0, rp_post_send(&self->client, &send));
	/* Sends and receives have no order among them. */
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(1, rp_wait_cq(&self->client.cq, &wc));
		failed += wc.wr_id == 7;
		EXPECT_EQ(wc.wr_id == 7 ? RPOST_WC_LOC_PROT_ERR :
			  RPOST_WC_WR_FLUSH_ERR, wc.status);
	}
	EXPECT_EQ(1, failed);
	ASSERT_LT(0, fdinfo_read(self->client.fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "total-errors-loc-prot"));
	EXPECT_EQ(4, fdinfo_number(text, "total-errors-wr-flush"));
	EXPECT_EQ(-1, fdinfo_number(text, "total-errors-general"));
	EXPECT_EQ(5, fdinfo_number(text, "total-errors"));
	EXPECT_EQ(5, fdinfo_number(text, "total-completions"));
	EXPECT_EQ(0, fdinfo_number(text, "total-ops-recv"));
}

struct sleeper {
	pthread_t thread;
	pid_t tid;
	int fd;
	int ret;
};

static void *read_comp(void *arg)
{
	struct rpost_comp_event event;
	struct sleeper *s = arg;

	rp_put_tid(&s->tid);
	s->ret = read(s->fd, &event, sizeof(event));
	return NULL;
}

static void *read_cm(void *arg)
{
	struct rpost_get_event event = { .size = sizeof(event) };
	struct sleeper *s = arg;

	rp_put_tid(&s->tid);
	s->ret = rp_ioctl(s->fd, RPOST_IOC_GET_EVENT, &event);
	return NULL;
}

TEST(sleeps)
{
	struct sleeper comp = { 0 }, cm = { 0 };
	struct rp_end client, server;
	uint32_t listener;
	long long slept;

	ASSERT_EQ(0, rp_end_init(&client));
	ASSERT_EQ(0, rp_end_init(&server));
	comp.fd = rp_end_add_channel(&client, 4 * RP_DEPTH);
	ASSERT_LE(0, comp.fd);
	ASSERT_EQ(0, rp_listener(&server, &listener));
	ASSERT_EQ(0, rp_join(&client, &server, listener, 0));
	ASSERT_LT(0, fdinfo_read(client.fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "objects-comp-channel"));
	EXPECT_EQ(0, fdinfo_number(text, "total-comp-sleeps"));
	EXPECT_EQ(0, fdinfo_number(text, "total-comp-events"));
	/* The address, the route and the connection. */
	EXPECT_EQ(3, fdinfo_number(text, "total-cm-events"));
	slept = fdinfo_number(text, "total-cm-sleeps");

	ASSERT_EQ(0, rp_arm_cq(&client.cq, 0));
	ASSERT_EQ(0, pthread_create(&comp.thread, NULL, read_comp, &comp));
	ASSERT_TRUE(rp_wait_asleep(&comp.tid));
	ASSERT_LT(0, fdinfo_read(client.fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "total-comp-sleeps"));
	EXPECT_EQ(0, fdinfo_number(text, "total-comp-wakeups"));
	/* The receive is flushed. */
	ASSERT_EQ(0, rp_post_recv(&client, 1, NULL, 0, 0));
	ASSERT_EQ(0, rp_disconnect(client.fd, client.id));
	ASSERT_EQ(0, pthread_join(comp.thread, NULL));
	EXPECT_EQ(sizeof(struct rpost_comp_event), comp.ret);
	ASSERT_LT(0, fdinfo_read(client.fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "total-comp-sleeps"));
	EXPECT_EQ(1, fdinfo_number(text, "total-comp-wakeups"));
	EXPECT_EQ(1, fdinfo_number(text, "total-comp-events"));

	cm.fd = rp_event_channel(client.fd);
	ASSERT_LE(0, cm.fd);
	ASSERT_EQ(0, pthread_create(&cm.thread, NULL, read_cm, &cm));
	ASSERT_TRUE(rp_wait_asleep(&cm.tid));
	EXPECT_LT(slept, fdinfo_get(client.fd, "total-cm-sleeps"));
	rp_unmap_cq(&client.cq);
	close(client.fd);
	ASSERT_EQ(0, pthread_join(cm.thread, NULL));
	close(client.channel);
	close(cm.fd);
	close(comp.fd);
	rp_end_close(&server);
}

TEST(shared_receive_queue)
{
	struct rpost_create_srq srq;
	struct rp_end end;
	int i;

	ASSERT_EQ(0, rp_end_init(&end));
	ASSERT_EQ(0, rp_create_srq(end.fd, end.pd, 8, &srq));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, rp_post_srq(end.fd, srq.handle, i, NULL, 0, 0));
	ASSERT_LT(0, fdinfo_read(end.fd, text));
	EXPECT_EQ(1, fdinfo_number(text, "objects-srq"));
	EXPECT_EQ(8, fdinfo_number(text, "srq-size"));
	EXPECT_EQ(3, fdinfo_number(text, "srq-used"));
	rp_end_close(&end);
}

/*
 * The least CPU time in us that @times reads take: a guest's CPU time includes the
 * delays of a busy host.
 */
static long read_us(int fd, int times)
{
	long least = LONG_MAX, took;
	int i, n;

	for (i = 0; i < TRIES; i++) {
		took = rp_cpu_us();
		for (n = 0; n < times; n++) {
			if (fdinfo_read(fd, text) <= 0)
				return -1;
		}
		took = rp_cpu_us() - took;
		if (took < least)
			least = took;
	}
	return least;
}

/*
 * Ids that are too many to be listed: the rest is counted, which takes no longer
 * for each among many than among few.  If each walked all, it would take 16 times
 * as long; allow 4 times.
 */
TEST(many_ids)
{
	int fd = rp_open(), channel = rp_event_channel(fd), i, bytes;
	long few = 0, many;
	uint32_t id;

	ASSERT_LE(0, channel);
	for (i = 0; i < MANY_IDS; i++) {
		if (i == FEW_IDS)
			few = read_us(fd, MANY_IDS / FEW_IDS);
		ASSERT_EQ(0, rp_create_id(fd, channel, &id));
	}
	many = read_us(fd, 1);
	bytes = fdinfo_read(fd, text);
	TH_LOG("%d bytes; %d times %d ids in %ld us, %d in %ld us", bytes,
	       MANY_IDS / FEW_IDS, FEW_IDS, few, MANY_IDS, many);
	ASSERT_LT(0, bytes);
	EXPECT_GT(MAX_BYTES, bytes);
	EXPECT_LT(0, few);
	EXPECT_LT(0, many);
	EXPECT_GE(4 * few, many);
	EXPECT_EQ(MANY_IDS, fdinfo_number(text, "objects-id"));
	EXPECT_EQ(MANY_IDS, fdinfo_number(text, "connections"));
	EXPECT_EQ(SHOWN_IDS, fdinfo_lines(text, "connection"));
	EXPECT_EQ(MANY_IDS - SHOWN_IDS,
		  fdinfo_number(text, "connections-left-out"));
	close(channel);
	close(fd);
}

/* Only root and the user can read it, as all files of that folder. */
TEST(other_user)
{
	int fd = rp_open(), status;
	pid_t pid, parent = getpid();

	if (geteuid())
		SKIP(return, "not root");
	ASSERT_LE(0, fd);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(fdinfo_read_of(parent, fd, text) > 0);
		CHILD_CHECK(!setresuid(4711, 4711, 4711));
		CHILD_CHECK(fdinfo_read_of(parent, fd, text) == -EACCES);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(fd);
}

/* Nothing in it looks like an address of the kernel. */
TEST_F(pair, no_pointers)
{
	const char *c = text;
	int digits = 0;

	ASSERT_LT(0, fdinfo_read(self->client.fd, text));
	for (; *c; c++) {
		digits = isxdigit(*c) ? digits + 1 : 0;
		ASSERT_GT(16, digits);
	}
	EXPECT_EQ(NULL, strstr(text, "ffff"));
	EXPECT_EQ(NULL, strstr(text, "0x"));
}

TEST_HARNESS_MAIN
