// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the limit of the bytes that one user can make the module and the
 * devices allocate.  A failure means that the wrong user is charged, or that
 * the limit is exceeded.  Needs root, which opens the device as other users.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "pass_fd.h"
#include "rpost_own.h"
#include "user_bytes.h"

#define NESTED	7

/* Drop CAP_SYS_RESOURCE permanently. */
static void drop_capability(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return;
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
	syscall(SYS_capset, &header, data);
}

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

#define MANY_FILES	64

/*
 * More files do not give a user more memory.  Without the limit for each user,
 * this test takes all memory of the host.
 */
TEST(many_files)
{
	struct rp_end *end = calloc(MANY_FILES, sizeof(*end)), other;
	long limit = rp_module_number("parameters/max_user_bytes");
	long before, taken;
	int n, ret = 0;

	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_NE(NULL, end);
	/* Without the parameter there is no limit, and the rest fails. */
	EXPECT_EQ(0, user_set_limit(48 * MB));
	before = user_free_memory();
	for (n = 0; n < MANY_FILES && !ret; n++) {
		ret = rp_end_as(ALICE, &end[n]);
		if (!ret)
			ret = user_take(&end[n], 4096);
	}
	taken = before - user_free_memory();
	printf("# %ld MiB in %d files of one user\n", taken / MB, n);
	EXPECT_EQ(-ENOMEM, ret);
	EXPECT_GE(48 * MB, user_bytes(ALICE));
	/* The memory taken is within the limit, give or take noise. */
	EXPECT_GE(56 * MB, taken);
	/* Other users are not affected. */
	EXPECT_EQ(0, rp_end_as(BOB, &other));
	EXPECT_EQ(0, user_take(&other, 4096));
	user_set_limit(limit);
}

TEST_F(users, enomem)
{
	struct rp_end end;
	struct rpost_create_srq srq;
	int fd;

	NEED_ROOT();
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	ASSERT_EQ(0, user_set_limit(user_bytes(ALICE) + 4096));
	EXPECT_EQ(-ENOMEM, user_open(ALICE));
	EXPECT_EQ(-ENOMEM, user_take(&end, 64));
	EXPECT_EQ(-ENOMEM, rp_create_srq(end.fd, end.pd, 1024, &srq));
	EXPECT_EQ(-ENOMEM, rp_create_own(&end, RPOST_QPT_RC, 0));
	EXPECT_EQ(3 - 1, rp_num_objects(end.fd));
	/* Root is another user, even in the same process. */
	fd = user_open(ROOT);
	EXPECT_LE(0, fd);
	rp_unmap_cq(&end.cq);
	close(fd);
}

TEST_F(users, limit_can_be_changed)
{
	struct rp_end end;
	long has;

	NEED_ROOT();
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	ASSERT_EQ(0, user_take(&end, 64));
	has = user_bytes(ALICE);
	/* A lower limit does not affect existing objects. */
	ASSERT_EQ(0, user_set_limit(1));
	EXPECT_EQ(-ENOMEM, rp_comp_channel(end.fd));
	EXPECT_EQ(has, user_bytes(ALICE));
	ASSERT_EQ(0, user_set_limit(has));
	EXPECT_EQ(-ENOMEM, rp_comp_channel(end.fd));
	ASSERT_EQ(0, user_set_limit(has + 2048));
	EXPECT_LE(0, rp_comp_channel(end.fd));
	EXPECT_EQ(-ENOMEM, rp_comp_channel(end.fd));
	/* The largest number. */
	ASSERT_EQ(0, rp_set_parameter("max_user_bytes",
				      sizeof(long) == 8 ?
				      "18446744073709551615" : "4294967295"));
	EXPECT_LE(0, rp_comp_channel(end.fd));
}

/* Only the capability of the opener at the time of opening counts. */
TEST_F(users, privileged)
{
	struct rp_end privileged, end;
	long has, root = user_charged(ROOT, true);

	NEED_ROOT();
	ASSERT_EQ(0, rp_end_as(ALICE, &end));
	ASSERT_EQ(0, rp_end_init(&privileged));
	has = user_bytes(ALICE);
	ASSERT_EQ(0, user_set_limit(1));
	EXPECT_EQ(0, user_take(&privileged, 64));
	EXPECT_LT(root + 65536, user_charged(ROOT, true));
	/* A privileged program uses a file of another user, */
	EXPECT_EQ(-ENOMEM, user_take(&end, 64));
	/* and another user's program uses a privileged file. */
	ASSERT_EQ(0, rp_become(ALICE));
	EXPECT_EQ(0, user_take(&privileged, 64));
	ASSERT_EQ(0, rp_become(ROOT));
	EXPECT_EQ(has, user_bytes(ALICE));
	/* Root without the capability is a user like others. */
	drop_capability();
	EXPECT_EQ(-ENOMEM, user_open(ROOT));
	ASSERT_EQ(0, user_set_limit(self->limit));
	EXPECT_EQ(0, user_bytes(ROOT));
	EXPECT_LE(0, user_open(ROOT));
	EXPECT_LT(0, user_bytes(ROOT));
}

/* ---------------------------------------------------- user namespaces */

/* A process in a new user namespace with all ids; it sends its file. */
struct below {
	int sock;
	pid_t pid;
};

static void in_namespace(uid_t uid, int sock)
{
	struct rp_end end;
	char c = 0;

	CHILD_CHECK(!setresuid(ALICE, ALICE, ALICE));
	/* Let the process write to its own files in /proc again. */
	CHILD_CHECK(!prctl(PR_SET_DUMPABLE, 1));
	if (unshare(CLONE_NEWUSER))
		_exit(2);
	CHILD_CHECK(write(sock, &c, 1) == 1);
	CHILD_CHECK(read(sock, &c, 1) == 1);
	/* Root in the namespace has all capabilities in it. */
	CHILD_CHECK(!setresuid(uid, uid, uid));
	/* A namespace within the namespace, without any ids. */
	if (uid == NESTED)
		CHILD_CHECK(!unshare(CLONE_NEWUSER));
	CHILD_CHECK(!rp_end_init(&end));
	CHILD_CHECK(send_fd(sock, end.fd) == 0);
	CHILD_CHECK(read(sock, &c, 1) == 1);
	rp_mute = true;
	_exit(user_take(&end, 64) == (c == 'y' ? 0 : -ENOMEM) ? 0 : 1);
}

static int map_ids(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	RP_TRY(cg_put(path, "uid_map", "0 100000 65536\n"));
	return cg_put(path, "gid_map", "0 0 65536\n");
}

static int below_start(struct below *below, uid_t uid, int *fd)
{
	int sv[2], status;
	char c;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		return -errno;
	below->pid = fork();
	if (!below->pid) {
		close(sv[0]);
		in_namespace(uid, sv[1]);
	}
	close(sv[1]);
	below->sock = sv[0];
	if (read(sv[0], &c, 1) != 1) {
		waitpid(below->pid, &status, 0);
		return WIFEXITED(status) && WEXITSTATUS(status) == 2 ?
		       -EOPNOTSUPP : -EIO;
	}
	RP_TRY(map_ids(below->pid));
	if (write(sv[0], &c, 1) != 1)
		return -EIO;
	*fd = recv_fd(sv[0]);
	return *fd < 0 ? -EIO : 0;
}

/* Let the process take a queue pair; true if the result is as expected. */
static bool below_takes(struct below *below, bool possible)
{
	int status;

	if (write(below->sock, possible ? "y" : "n", 1) != 1)
		return false;
	return waitpid(below->pid, &status, 0) == below->pid && !status;
}

/* A namespace of Alice has 65,536 user ids, all of which count as Alice. */
TEST_F(users, namespace)
{
	const uid_t ids[] = { 0, 5, NESTED };
	struct below below[3];
	long has, each;
	int i, ret, fd;

	NEED_ROOT();
	signal(SIGPIPE, SIG_IGN);
	fd = user_open(ALICE);
	ASSERT_LE(0, fd);
	has = user_bytes(ALICE);
	close(fd);
	for (i = 0; i < 3; i++) {
		ret = below_start(&below[i], ids[i], &fd);
		if (ret == -EOPNOTSUPP)
			SKIP(return, "no user namespaces");
		ASSERT_EQ(0, ret);
		close(fd);
		each = user_bytes(ALICE) / (i + 1);
		EXPECT_LT(has, each);
		EXPECT_EQ(0, user_bytes(100000 + ids[i]));
		EXPECT_EQ(0, user_charged(100000 + ids[i], true));
		EXPECT_EQ(0, user_bytes(ids[i]));
	}
	EXPECT_EQ(3 * each, user_bytes(ALICE));
	ASSERT_EQ(0, user_set_limit(user_bytes(ALICE) + 65536));
	EXPECT_TRUE(below_takes(&below[0], false));
	EXPECT_TRUE(below_takes(&below[1], false));
	ASSERT_EQ(0, user_set_limit(self->limit));
	EXPECT_TRUE(below_takes(&below[2], true));
	EXPECT_EQ(0, user_bytes(ALICE));
	for (i = 0; i < 3; i++)
		close(below[i].sock);
}

/* ------------------------------------------------------ at the same time */

#define THREADS		4

struct racer {
	pthread_t thread;
	struct rp_end end;
	unsigned int taken;
	int ret;
};

/* Create completion queues until one fails. */
static void *race(void *arg)
{
	struct racer *racer = arg;
	struct rp_cq cq;

	do {
		racer->ret = rp_create_cq(racer->end.fd, racer->end.device, 64,
					  -1, &cq);
		racer->taken += !racer->ret;
	} while (!racer->ret);
	return NULL;
}

TEST_F(users, race)
{
	struct racer racers[THREADS];
	long limit, each, has;
	struct rp_cq cq;
	int i;

	NEED_ROOT();
	for (i = 0; i < THREADS; i++) {
		memset(&racers[i], 0, sizeof(racers[i]));
		ASSERT_EQ(0, rp_end_as(ALICE, &racers[i].end));
	}
	has = user_bytes(ALICE);
	ASSERT_EQ(0, rp_create_cq(racers[0].end.fd, racers[0].end.device, 64, -1,
				  &cq));
	each = user_bytes(ALICE) - has;
	limit = user_bytes(ALICE) + 60 * each + 5;
	ASSERT_EQ(0, user_set_limit(limit));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&racers[i].thread, NULL, race,
					    &racers[i]));
	for (i = 0; i < 100; i++)
		EXPECT_GE(limit, user_bytes(ALICE));
	for (i = 0; i < THREADS; i++) {
		pthread_join(racers[i].thread, NULL);
		EXPECT_EQ(-ENOMEM, racers[i].ret);
	}
	EXPECT_GE(limit, user_bytes(ALICE));
	/* Each thread is refused only within one queue of the limit. */
	EXPECT_LT(limit - THREADS * each, user_bytes(ALICE));
}

TEST_HARNESS_MAIN
