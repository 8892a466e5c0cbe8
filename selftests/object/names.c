// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * "rdma resource show" names the program and pid of an open file for its queue
 * pairs, completion queues, domains, regions and ids.  A failure means that an
 * administrator does not see whose an object is, or that a name is used after
 * its memory was freed.
 *
 * Needs iproute2's rdma.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "pass_fd.h"
#include "rpost_test.h"

static bool has_rdma(void)
{
	static int has = -1;

	if (has < 0)
		has = !system("rdma resource >/dev/null 2>&1");
	return has;
}

#define NEED_RDMA()						\
	do {							\
		if (!has_rdma())				\
			SKIP(return, "no rdma of iproute2");	\
	} while (0)

/* Return how many objects of a type have this owner, or -1. */
static int count_owner(const char *type, const char *owner)
{
	char command[64], line[1024], text[64];
	FILE *out;
	int n = 0;

	snprintf(command, sizeof(command), "rdma resource show %s", type);
	snprintf(text, sizeof(text), "[%s]", owner);
	out = popen(command, "r");
	if (!out)
		return -1;
	while (fgets(line, sizeof(line), out))
		n += !!strstr(line, text);
	return pclose(out) ? -1 : n;
}

/* The owner of what a program opens: its name may be cut, its pid never. */
static const char *owner_of(const char *name, pid_t pid)
{
	static char owner[32];
	char number[16];
	int n = snprintf(number, sizeof(number), ".%d", pid);

	snprintf(owner, sizeof(owner), "%.*s%s", 15 - n, name, number);
	return owner;
}

TEST(connection)
{
	const char *owner = owner_of("names", getpid());
	struct rp_end client, server;
	struct rpost_reg_mr mr;
	uint32_t listener;

	NEED_RDMA();
	ASSERT_EQ(0, prctl(PR_SET_NAME, "names"));
	ASSERT_EQ(0, rp_end_init(&client));
	ASSERT_EQ(0, rp_end_init(&server));
	ASSERT_EQ(0, rp_listener(&server, &listener));
	ASSERT_EQ(0, rp_join(&client, &server, listener, 0));

	EXPECT_EQ(2, count_owner("pd", owner));
	EXPECT_EQ(2, count_owner("cq", owner));
	EXPECT_EQ(2, count_owner("qp", owner));
	/* Both ends and the listener. */
	EXPECT_EQ(3, count_owner("cm_id", owner));
	/* With fast registration the domain gets a queue pair of its own. */
	ASSERT_EQ(0, rp_reg_mr(client.fd, client.pd, rp_pages(4096), 4096, 0,
			       &mr));
	EXPECT_LE(1, count_owner("mr", owner));

	rp_end_close(&client);
	EXPECT_EQ(1, count_owner("pd", owner));
	EXPECT_EQ(1, count_owner("qp", owner));
	rp_end_close(&server);
	EXPECT_EQ(0, count_owner("pd", owner));
	EXPECT_EQ(0, count_owner("cq", owner));
	EXPECT_EQ(0, count_owner("qp", owner));
	EXPECT_EQ(0, count_owner("cm_id", owner));
	EXPECT_EQ(0, count_owner("mr", owner));
}

/* Control characters and what looks like JSON do not get through. */
TEST(name_is_harmless)
{
	uint32_t pd;
	int fd;

	NEED_RDMA();
	ASSERT_EQ(0, prctl(PR_SET_NAME, "a\033[2J\"\n]\377 %n"));
	fd = rp_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, prctl(PR_SET_NAME, "later"));
	ASSERT_EQ(0, rp_alloc_pd(fd, rp_first_device(fd), &pd));
	EXPECT_EQ(1, count_owner("pd", owner_of("a__2J______n", getpid())));
	close(fd);

	ASSERT_EQ(0, prctl(PR_SET_NAME, ""));
	fd = rp_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, rp_alloc_pd(fd, rp_first_device(fd), &pd));
	EXPECT_EQ(1, count_owner("pd", owner_of("", getpid())));
	close(fd);
}

/* An object keeps its name while it lives, also if its program has ended. */
TEST(outlives_its_program)
{
	int sock[2], status, fd;
	uint32_t pd;
	pid_t pid;

	NEED_RDMA();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sock));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(!prctl(PR_SET_NAME, "opener"));
		fd = rp_open();
		CHILD_CHECK(fd >= 0);
		CHILD_CHECK(!rp_alloc_pd(fd, rp_first_device(fd), &pd));
		CHILD_CHECK(!send_fd(sock[1], fd));
		_exit(0);
	}
	fd = recv_fd(sock[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(1, count_owner("pd", owner_of("opener", pid)));
	ASSERT_EQ(0, rp_alloc_pd(fd, rp_first_device(fd), &pd));
	EXPECT_EQ(2, count_owner("pd", owner_of("opener", pid)));
	close(fd);
	EXPECT_EQ(0, count_owner("pd", owner_of("opener", pid)));
	close(sock[0]);
	close(sock[1]);
}

struct maker {
	pthread_t thread;
	bool stop;
	unsigned long made;
	int ret;
};

static void *make(void *arg)
{
	struct rp_end client, server;
	struct maker *m = arg;

	while (!__atomic_load_n(&m->stop, __ATOMIC_RELAXED) && !m->ret) {
		m->ret = rp_connect_pair(&client, &server, 0);
		if (m->ret)
			break;
		rp_end_close(&client);
		rp_end_close(&server);
		__atomic_add_fetch(&m->made, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Objects come and go while the core reads their names. */
TEST(names_race)
{
	static const char * const types[] = { "qp", "cm_id", "cq", "pd", "mr" };
	uint64_t since = rp_now_ms();
	struct maker m = { 0 };
	unsigned int i = 0;

	NEED_RDMA();
	ASSERT_EQ(0, pthread_create(&m.thread, NULL, make, &m));
	while (i < 25 || (__atomic_load_n(&m.made, __ATOMIC_RELAXED) < 10 &&
			   rp_now_ms() - since < TEST_CHANCE_MS))
		EXPECT_LE(0, count_owner(types[i++ % 5], "no.1"));
	__atomic_store_n(&m.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(m.thread, NULL));
	EXPECT_EQ(0, m.ret);
	RP_SKIP_UNMET(m.made >= 10, "objects came and went %lu times", m.made);
}

TEST_HARNESS_MAIN
