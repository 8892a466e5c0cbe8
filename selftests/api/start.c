// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests how programs start where something is missing: a device, or memory that
 * may be locked; and what the library says of it.  A failure means that a server
 * waits for ever, or that a user is not told why it does not work.
 *
 * RPOST_TEST_REMOVE and RPOST_TEST_ADD remove the device and bring it back, see
 * hotplug.c.
 */
#include <kselftest_harness.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma_test.h"

#define NOBODY		65534
#define NO_MEMORY	"RLIMIT_MEMLOCK is 0 bytes"

/* ------------------------------------------------ a program of its own */

static void open_twice(void)
{
	int i;

	for (i = 0; i < 2; i++)
		ibv_free_device_list(ibv_get_device_list(NULL));
}

static bool limit_memory(rlim_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	return !setrlimit(RLIMIT_MEMLOCK, &limit);
}

static int play_root(void)
{
	if (!limit_memory(0))
		return 1;
	open_twice();
	return 0;
}

static int play_nobody(rlim_t bytes)
{
	if (!limit_memory(bytes) || setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	open_twice();
	return 0;
}

static int play_nobody_none(void)
{
	return play_nobody(0);
}

static int play_nobody_some(void)
{
	return play_nobody(64 << 10);
}

/* No more files may be opened, except by sanitizers at the end. */
static int play_open(void)
{
	struct rlimit old, limit;
	bool failed;

	if (getrlimit(RLIMIT_NOFILE, &old))
		return 1;
	limit = old;
	limit.rlim_cur = 3;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return 1;
	failed = !ibv_get_device_list(NULL) && errno == EMFILE;
	return !failed || setrlimit(RLIMIT_NOFILE, &old);
}

static int play_bind(void)
{
	struct sockaddr_in documentation = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0xc0000201),	/* 192.0.2.1 */
	};
	struct rdma_cm_id *id;

	return rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
	       !rdma_bind_addr(id, (struct sockaddr *)&documentation) ||
	       rdma_destroy_id(id);
}

/* Is there no event, and does the queue become full? */
static int play_ordinary(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage addr;
	struct rdma_cm_event *event;
	struct pair_opts opts;
	struct rdma_cm_id *id;
	int posts;

	pair_defaults(&opts);
	if (!channel || set_nonblock(channel->fd, true) ||
	    !rdma_get_cm_event(channel, &event) || errno != EAGAIN ||
	    !test_addr(AF_INET, &addr) ||
	    rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(id, (struct sockaddr *)&addr) ||
	    rdma_create_qp(id, NULL, &opts.client_qp))
		return 1;
	for (posts = 0; posts < 1 << 16; posts++)
		if (rdma_post_recvv(id, NULL, NULL, 0))
			break;
	if (errno != ENOMEM)
		return 1;
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return 0;
}

static const struct {
	const char *name;
	int (*play)(void);
} plays[] = {
	{ "root", play_root },
	{ "nobody_none", play_nobody_none },
	{ "nobody_some", play_nobody_some },
	{ "open", play_open },
	{ "bind", play_bind },
	{ "ordinary", play_ordinary },
};

/* Play instead of the tests if run() has started this program. */
static void __attribute__((constructor)) play(void)
{
	const char *name = getenv("RPOST_TEST_PLAY");
	size_t i;

	for (i = 0; name && i < ARRAY_SIZE(plays); i++)
		if (!strcmp(name, plays[i].name))
			_exit(plays[i].play());
}

/* Run a play; get what it has said on standard error.  Return its exit status. */
static int run(const char *name, const char *debug, char said[4096])
{
	int fds[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		setenv("RPOST_TEST_PLAY", name, 1);
		if (debug)
			setenv("RDMA_POST_DEBUG", debug, 1);
		execl(program_invocation_name, program_invocation_name, NULL);
		_exit(127);
	}
	close(fds[1]);
	while ((n = read(fds[0], said + len, 4095 - len)) > 0)
		len += (size_t)n;
	said[len] = 0;
	close(fds[0]);
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static int count(const char *text, const char *what)
{
	int n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

/* ------------------------------------------------------- without a device */

FIXTURE(devices) {
	const char *remove, *add;
	bool removed;
};

FIXTURE_SETUP(devices)
{
	self->remove = getenv("RPOST_TEST_REMOVE");
	self->add = getenv("RPOST_TEST_ADD");
}

static bool is_usable(void)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	bool usable;

	if (!test_addr(AF_INET, &addr) ||
	    rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return false;
	usable = !rdma_bind_addr(id, (struct sockaddr *)&addr) && id->verbs;
	rdma_destroy_id(id);
	return usable;
}

/* Later tests want the device, with its address. */
FIXTURE_TEARDOWN(devices)
{
	uint64_t end = now_ms() + DEADLINE_MS;

	if (!self->removed)
		return;
	ASSERT_EQ(0, system(self->add));
	while (!is_usable())
		ASSERT_GT(end, now_ms());
}

TEST_F(devices, none)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	struct rdma_addrinfo *info, ep = {
		.ai_flags = RAI_PASSIVE,
		.ai_family = AF_INET,
		.ai_port_space = RDMA_PS_TCP,
		.ai_qp_type = IBV_QPT_RC,
		.ai_src_addr = (struct sockaddr *)&any,
		.ai_src_len = sizeof(any),
	};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	if (!self->remove || !self->add)
		SKIP(return, "RPOST_TEST_REMOVE and RPOST_TEST_ADD are not set");
	self->removed = true;
	ASSERT_EQ(0, system(self->remove));
	EXPECT_NULL_ERRNO(ENODEV, rdma_create_event_channel());
	EXPECT_NULL_ERRNO(ENODEV, rdma_get_devices(NULL));
	EXPECT_ERRNO(ENODEV, rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	EXPECT_ERRNO(ENODEV, rdma_create_ep(&id, &ep, NULL, NULL));
	EXPECT_ERRNO(ENODEV, rdma_getaddrinfo(NULL, "7471", &ep, &info));

	/* It looks again, and then goes on without. */
	ASSERT_EQ(0, system(self->add));
	channel = rdma_create_event_channel();
	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, system(self->remove));
	EXPECT_EQ(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_EQ(0, rdma_bind_addr(id, (struct sockaddr *)&any));
	EXPECT_EQ(0, rdma_listen(id, 1));
	EXPECT_EQ(0, rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	EXPECT_EQ(0, rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	EXPECT_EQ(0, rdma_destroy_id(id));
	EXPECT_EQ(0, rdma_getaddrinfo(NULL, "7471", &ep, &info));
	rdma_freeaddrinfo(info);
}

/* --------------------------------------------------------------- messages */

TEST(warns_of_no_memory)
{
	char said[4096];

	if (geteuid())
		SKIP(return, "needs root");
	EXPECT_EQ(0, run("nobody_none", NULL, said));
	EXPECT_EQ(1, count(said, NO_MEMORY))
		TH_LOG("%s", said);
	EXPECT_EQ(0, run("nobody_some", NULL, said));
	EXPECT_EQ(0, count(said, "RLIMIT_MEMLOCK"))
		TH_LOG("%s", said);
	EXPECT_EQ(0, run("root", NULL, said));
	EXPECT_EQ(0, count(said, "RLIMIT_MEMLOCK"))
		TH_LOG("%s", said);
}

TEST(tells_failures)
{
	const char *tool = "; rdma-post doctor looks for the cause\n";
	char said[4096];

	if (over_incumbent())
		SKIP(return, "only librdma_post has RDMA_POST_DEBUG");
	/* valgrind opens files for the program, which it does not limit. */
	if (!under_valgrind()) {
		EXPECT_EQ(0, run("open", "1", said));
		EXPECT_EQ(1, count(said, "\n"));
		EXPECT_EQ(1, count(said, tool));
		EXPECT_EQ(1, count(said, "librdma_post: open /dev/rdma_post: Too many open files;"))
			TH_LOG("%s", said);
		EXPECT_EQ(0, run("open", NULL, said));
		EXPECT_STREQ("", said);
	}
	EXPECT_EQ(0, run("bind", "1", said));
	EXPECT_EQ(1, count(said, "\n"));
	EXPECT_EQ(1, count(said, tool));
	EXPECT_EQ(1, count(said, "librdma_post: BIND_ADDR: "))
		TH_LOG("%s", said);
	EXPECT_EQ(0, run("ordinary", "1", said));
	EXPECT_STREQ("", said);
	EXPECT_EQ(0, run("bind", "0", said));
	EXPECT_STREQ("", said);
}

TEST_HARNESS_MAIN
