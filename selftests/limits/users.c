// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The bytes that one user can make the module and the devices allocate: who is
 * charged, that nothing is exceeded, and that all of it comes back.  Needs root, who
 * opens the device as others.
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
#include "sring.h"

#define PARAMETERS	"/sys/module/rdma_post/parameters/"
#define USERS		RP_DEBUGFS "users"
#define ALICE		65533
#define BOB		65532
#define ROOT		0
#define NESTED		7
#define MB		(1l << 20)

/* Real and effective id; capabilities in effect go and come with the latter. */
static int become(uid_t uid)
{
	return setresuid(uid, uid, 0) ? -errno : 0;
}

static int open_as(uid_t uid)
{
	int fd, ret;

	if (become(uid))
		return -errno;
	fd = rp_open();
	ret = fd < 0 ? -errno : fd;
	return become(ROOT) ? -errno : ret;
}

static int end_as(uid_t uid, struct rp_end *end)
{
	int ret;

	if (become(uid))
		return -errno;
	ret = rp_end_init(end);
	return become(ROOT) ? -errno : ret;
}

/* What is charged to a user, with CAP_SYS_RESOURCE or without; 0 if there is none. */
static long charged(uid_t uid, bool exempt)
{
	char line[128];
	long bytes = 0, n;
	unsigned int id;
	FILE *f;

	f = fopen(USERS, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%u bytes %ld", &id, &n) == 2 && id == uid &&
		    !!strstr(line, "exempt") == exempt)
			bytes = n;
	}
	fclose(f);
	return bytes;
}

static long of(uid_t uid)
{
	return charged(uid, false);
}

static int set_limit(long bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", bytes);
	return cg_put(PARAMETERS, "max_user_bytes", text);
}

static long free_memory(void)
{
	char line[128];
	long kb = -1;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) &&
	       sscanf(line, "MemFree: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb * 1024;
}

/* CAP_SYS_RESOURCE, for good. */
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
	ASSERT_EQ(0, of(ALICE));
	ASSERT_EQ(0, of(BOB));
}

/* Whatever a test has left open is closed when its process has ended. */
FIXTURE_TEARDOWN(users)
{
	if (!self->skip)
		EXPECT_EQ(0, set_limit(self->limit));
}

#define NEED_ROOT()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "needs root and debugfs");		\
	} while (0)

/* A queue pair of some size, on a completion queue of its own. */
static int take(struct rp_end *end, uint32_t depth)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.pd = end->pd,
		.max_send_wr = depth,
		.max_recv_wr = depth,
		.max_send_sge = 2,
		.max_recv_sge = 2,
	};
	struct rp_cq cq;

	rp_mute = true;
	RP_TRY(rp_create_cq(end->fd, end->device, 2 * depth + 1, -1, &cq));
	cmd.send_cq = cq.cmd.handle;
	cmd.recv_cq = cq.cmd.handle;
	return rp_ioctl(end->fd, RPOST_IOC_CREATE_QP, &cmd);
}

#define MANY_FILES	64

/*
 * Files cost a program nothing.  Before there was a limit for each user this took as
 * much memory as there was.
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
	/* On a module without the parameter, the rest shows why there is one. */
	EXPECT_EQ(0, set_limit(48 * MB));
	before = free_memory();
	for (n = 0; n < MANY_FILES && !ret; n++) {
		ret = end_as(ALICE, &end[n]);
		if (!ret)
			ret = take(&end[n], 4096);
	}
	taken = before - free_memory();
	printf("# %ld MiB in %d files of one user\n", taken / MB, n);
	EXPECT_EQ(-ENOMEM, ret);
	EXPECT_GE(48 * MB, of(ALICE));
	/* Less than is charged: pages are freed late, and others work, too. */
	EXPECT_GE(56 * MB, taken);
	/* Nobody else is hindered. */
	EXPECT_EQ(0, end_as(BOB, &other));
	EXPECT_EQ(0, take(&other, 4096));
	set_limit(limit);
}

TEST_F(users, without_memory_is_what_programs_are_told)
{
	struct rp_end end;
	struct rpost_create_srq srq;
	int fd;

	NEED_ROOT();
	ASSERT_EQ(0, end_as(ALICE, &end));
	ASSERT_EQ(0, set_limit(of(ALICE) + 4096));
	EXPECT_EQ(-ENOMEM, open_as(ALICE));
	EXPECT_EQ(-ENOMEM, take(&end, 64));
	EXPECT_EQ(-ENOMEM, rp_create_srq(end.fd, end.pd, 1024, &srq));
	EXPECT_EQ(-ENOMEM, rp_create_own(&end, RPOST_QPT_RC, 0));
	EXPECT_EQ(3 - 1, rp_num_objects(end.fd));
	/* The program itself is not what is looked at, but who has opened it. */
	fd = open_as(ROOT);
	EXPECT_LE(0, fd);
	rp_unmap_cq(&end.cq);
	close(fd);
}

TEST_F(users, limit_can_be_changed)
{
	struct rp_end end;
	long has;

	NEED_ROOT();
	ASSERT_EQ(0, end_as(ALICE, &end));
	ASSERT_EQ(0, take(&end, 64));
	has = of(ALICE);
	/* What there is stays. */
	ASSERT_EQ(0, set_limit(1));
	EXPECT_EQ(-ENOMEM, rp_comp_channel(end.fd));
	EXPECT_EQ(has, of(ALICE));
	ASSERT_EQ(0, set_limit(has));
	EXPECT_EQ(-ENOMEM, rp_comp_channel(end.fd));
	ASSERT_EQ(0, set_limit(has + 1024));
	EXPECT_LE(0, rp_comp_channel(end.fd));
	EXPECT_EQ(-ENOMEM, rp_comp_channel(end.fd));
	/* Everything, of a 64-bit kernel. */
	ASSERT_EQ(0, cg_put(PARAMETERS, "max_user_bytes",
			    sizeof(long) == 8 ? "18446744073709551615" :
						"4294967295"));
	EXPECT_LE(0, rp_comp_channel(end.fd));
}

/* The opener's capability counts, when the file is opened, and nobody else's. */
TEST_F(users, privileged)
{
	struct rp_end privileged, end;
	long has, root = charged(ROOT, true);

	NEED_ROOT();
	ASSERT_EQ(0, end_as(ALICE, &end));
	ASSERT_EQ(0, rp_end_init(&privileged));
	has = of(ALICE);
	ASSERT_EQ(0, set_limit(1));
	EXPECT_EQ(0, take(&privileged, 64));
	EXPECT_LT(root + 65536, charged(ROOT, true));
	/* A privileged program with another's file, */
	EXPECT_EQ(-ENOMEM, take(&end, 64));
	/* and the other way round. */
	ASSERT_EQ(0, become(ALICE));
	EXPECT_EQ(0, take(&privileged, 64));
	ASSERT_EQ(0, become(ROOT));
	EXPECT_EQ(has, of(ALICE));
	/* Root without the capability is a user like others. */
	drop_capability();
	EXPECT_EQ(-ENOMEM, open_as(ROOT));
	ASSERT_EQ(0, set_limit(self->limit));
	EXPECT_EQ(0, of(ROOT));
	EXPECT_LE(0, open_as(ROOT));
	EXPECT_LT(0, of(ROOT));
}

/* ---------------------------------------------------- user namespaces */

/* A process in a namespace below, with all ids; says when it has it. */
struct below {
	int sock;
	pid_t pid;
};

static void in_namespace(uid_t uid, int sock)
{
	struct rp_end end;
	char c = 0;

	CHILD_CHECK(!setresuid(ALICE, ALICE, ALICE));
	/* Its files in /proc are its own again. */
	CHILD_CHECK(!prctl(PR_SET_DUMPABLE, 1));
	if (unshare(CLONE_NEWUSER))
		_exit(2);
	CHILD_CHECK(write(sock, &c, 1) == 1);
	CHILD_CHECK(read(sock, &c, 1) == 1);
	/* Root there has every capability, there. */
	CHILD_CHECK(!setresuid(uid, uid, uid));
	/* One more below, without any id. */
	if (uid == NESTED)
		CHILD_CHECK(!unshare(CLONE_NEWUSER));
	CHILD_CHECK(!rp_end_init(&end));
	CHILD_CHECK(send_fd(sock, end.fd) == 0);
	CHILD_CHECK(read(sock, &c, 1) == 1);
	rp_mute = true;
	_exit(take(&end, 64) == (c == 'y' ? 0 : -ENOMEM) ? 0 : 1);
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

/* It takes a queue pair: has it got what was to be expected? */
static bool below_takes(struct below *below, bool possible)
{
	int status;

	if (write(below->sock, possible ? "y" : "n", 1) != 1)
		return false;
	return waitpid(below->pid, &status, 0) == below->pid && !status;
}

/* Alice's namespace has 65,536 user ids, and all of them are Alice. */
TEST_F(users, namespace)
{
	const uid_t ids[] = { 0, 5, NESTED };
	struct below below[3];
	long has, each;
	int i, ret, fd;

	NEED_ROOT();
	signal(SIGPIPE, SIG_IGN);
	fd = open_as(ALICE);
	ASSERT_LE(0, fd);
	has = of(ALICE);
	close(fd);
	for (i = 0; i < 3; i++) {
		ret = below_start(&below[i], ids[i], &fd);
		if (ret == -EOPNOTSUPP)
			SKIP(return, "no user namespaces");
		ASSERT_EQ(0, ret);
		close(fd);
		each = of(ALICE) / (i + 1);
		EXPECT_LT(has, each);
		EXPECT_EQ(0, of(100000 + ids[i]));
		EXPECT_EQ(0, charged(100000 + ids[i], true));
		EXPECT_EQ(0, of(ids[i]));
	}
	EXPECT_EQ(3 * each, of(ALICE));
	ASSERT_EQ(0, set_limit(of(ALICE) + 65536));
	EXPECT_TRUE(below_takes(&below[0], false));
	EXPECT_TRUE(below_takes(&below[1], false));
	ASSERT_EQ(0, set_limit(self->limit));
	EXPECT_TRUE(below_takes(&below[2], true));
	EXPECT_EQ(0, of(ALICE));
	for (i = 0; i < 3; i++)
		close(below[i].sock);
}

/* ------------------------------------------------------ all comes back */

static int resize(struct rp_cq *cq, uint32_t cqe)
{
	struct rpost_resize_cq cmd = {
		.size = sizeof(cmd),
		.handle = cq->cmd.handle,
		.cqe = cqe,
	};

	return rp_ioctl(cq->fd, RPOST_IOC_RESIZE_CQ, &cmd);
}

/* Each object costs something, and gives back just that. */
TEST_F(users, objects)
{
	struct rpost_create_srq srq;
	struct rpost_reg_mr mr;
	void *page = rp_pages(4096);
	long at[12], first, second;
	struct rp_end end, ud;
	struct sring ring;
	uint32_t ah, pd;
	int fds[3], i;

	NEED_ROOT();
	ASSERT_EQ(0, end_as(ALICE, &end));
	RP_SKIP_IWARP(end.fd, "datagrams");
	/* The device's completion queue stays with that of the program. */
	ASSERT_EQ(0, rp_create_own(&end, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_QP, end.qp));

	at[0] = of(ALICE);
	ASSERT_EQ(0, rp_alloc_pd(end.fd, end.device, &pd));
	at[1] = of(ALICE);
	ASSERT_EQ(0, rp_reg_mr(end.fd, end.pd, page, 4096, 0, &mr));
	at[2] = of(ALICE);
	ASSERT_EQ(0, rp_create_srq(end.fd, end.pd, 100, &srq));
	at[3] = of(ALICE);
	ASSERT_EQ(0, rp_own_ah(&end, &ah));
	at[4] = of(ALICE);
	ASSERT_EQ(0, rp_create_id(end.fd, end.channel, &end.id));
	at[5] = of(ALICE);
	ud = end;
	ASSERT_EQ(0, rp_create_own(&ud, RPOST_QPT_UD, 0));
	at[6] = of(ALICE);
	ASSERT_EQ(0, rp_mcast(end.fd, RPOST_IOC_ATTACH_MCAST, ud.qp, 1));
	at[7] = of(ALICE);
	ASSERT_EQ(0, rp_mcast(end.fd, RPOST_IOC_DETACH_MCAST, ud.qp, 1));
	EXPECT_EQ(at[6], of(ALICE));
	ASSERT_EQ(0, rp_mcast(end.fd, RPOST_IOC_ATTACH_MCAST, ud.qp, 2));
	ASSERT_EQ(0, sr_setup(end.fd, ud.qp, 4096, &ring));
	at[8] = of(ALICE);
	fds[0] = rp_comp_channel(end.fd);
	at[9] = of(ALICE);
	fds[1] = rp_event_channel(end.fd);
	at[10] = of(ALICE);
	fds[2] = rp_async_channel(end.fd, end.device);
	at[11] = of(ALICE);
	for (i = 0; i < 11; i++) {
		if (at[i] >= at[i + 1])
			printf("# step %d costs nothing\n", i + 1);
		EXPECT_LT(at[i], at[i + 1]);
	}

	close(fds[2]);
	EXPECT_EQ(at[10], of(ALICE));
	close(fds[1]);
	EXPECT_EQ(at[9], of(ALICE));
	close(fds[0]);
	EXPECT_EQ(at[8], of(ALICE));
	sr_unmap(&ring);
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_QP, ud.qp));
	EXPECT_EQ(at[5], of(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_ID, end.id));
	EXPECT_EQ(at[4], of(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_AH, ah));
	EXPECT_EQ(at[3], of(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_SRQ, srq.handle));
	EXPECT_EQ(at[2], of(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(at[1], of(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(at[0], of(ALICE));

	/* A queue has the ring that it was last given; twice the same is the same. */
	rp_unmap_cq(&end.cq);
	ASSERT_EQ(0, resize(&end.cq, 4096));
	first = of(ALICE);
	EXPECT_LT(at[0] + 4096 * 64 / 2, first);
	ASSERT_EQ(0, resize(&end.cq, 64));
	second = of(ALICE);
	ASSERT_EQ(0, resize(&end.cq, 4096));
	EXPECT_EQ(first, of(ALICE));
	ASSERT_EQ(0, resize(&end.cq, 64));
	EXPECT_EQ(second, of(ALICE));
	close(end.channel);
	close(end.fd);
	EXPECT_EQ(0, of(ALICE));
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
	ASSERT_EQ(0, end_as(ALICE, &end));
	qp.pd = end.pd;
	srq.pd = end.pd;
	cq.device = end.device;
	qp.send_cq = end.cq.cmd.handle;
	qp.recv_cq = end.cq.cmd.handle;
	resize.handle = end.cq.cmd.handle;
	for (i = 0; i < 2; i++) {
		/* The device's completion queue, which the first one brings, stays. */
		has = of(ALICE);
		EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_CREATE_QP,
						       &qp, sizeof(qp)));
	}
	EXPECT_EQ(has, of(ALICE));
	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_CREATE_SRQ, &srq,
					       sizeof(srq)));
	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_CREATE_CQ, &cq,
					       sizeof(cq)));
	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end.fd, RPOST_IOC_RESIZE_CQ, &resize,
					       sizeof(resize)));
	EXPECT_EQ(has, of(ALICE));
	qp.send_cq = 0;
	EXPECT_EQ(-ENOENT, rp_ioctl(end.fd, RPOST_IOC_CREATE_QP, &qp));
	EXPECT_EQ(has, of(ALICE));
}

/* Else a program could have as many rings as it likes, mapped and destroyed. */
TEST_F(users, mapping_keeps_its_ring)
{
	const long size = 1024 * sizeof(struct rpost_wc);
	struct rp_end end;
	struct rp_cq cq;
	long has, with;

	NEED_ROOT();
	ASSERT_EQ(0, end_as(ALICE, &end));
	has = of(ALICE);
	ASSERT_EQ(0, rp_create_cq(end.fd, end.device, 1024, -1, &cq));
	with = of(ALICE);
	EXPECT_LE(has + size, with);
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_CQ, cq.cmd.handle));
	EXPECT_LE(has + size, of(ALICE));
	/* A part of it. */
	ASSERT_EQ(0, munmap((char *)cq.ring + 8192, 4096));
	EXPECT_LE(has + size, of(ALICE));
	ASSERT_EQ(0, munmap(cq.ring, 8192));
	EXPECT_LE(has + size, of(ALICE));
	rp_unmap_cq(&cq);
	EXPECT_EQ(has, of(ALICE));
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
		CHILD_CHECK(!end_as(ALICE, &end));
		CHILD_CHECK(!take(&end, 64));
		CHILD_CHECK(write(sv[1], &c, 1) == 1);
		pause();
	}
	ASSERT_EQ(1, read(sv[0], &c, 1));
	EXPECT_LT(65536, of(ALICE));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, of(ALICE));
}

/* What was on the device comes back when it goes, the rest with its shells. */
TEST_F(users, removal)
{
	struct rpost_create_srq srq;
	struct rp_end end;
	long has;

	NEED_ROOT();
	RP_NEED_REMOVAL();
	ASSERT_EQ(0, end_as(ALICE, &end));
	ASSERT_EQ(0, take(&end, 1024));
	ASSERT_EQ(0, rp_create_srq(end.fd, end.pd, 1024, &srq));
	has = of(ALICE);
	ASSERT_EQ(0, rp_remove_device());
	/* Of a work request, more is on the device than in the module. */
	EXPECT_LT(of(ALICE), has / 2);
	EXPECT_LT(0, of(ALICE));
	ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_SRQ, srq.handle));
	rp_unmap_cq(&end.cq);
	close(end.channel);
	close(end.fd);
	ASSERT_EQ(0, rp_add_device());
	/* The ring that take() has mapped keeps the open file. */
	EXPECT_LT(0, of(ALICE));
}

/* --------------------------------------------------- what is estimated */

static int make_qp(struct rp_end *end)
{
	return take(end, 1);
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

	return rp_ioctl(open_as(ALICE), RPOST_IOC_ALLOC_PD, &cmd);
}

static int make_channel(struct rp_end *end)
{
	return rp_comp_channel(end->fd) < 0 ? -errno : 0;
}

static int make_async_channel(struct rp_end *end)
{
	int fd = open_as(ALICE);

	return rp_async_channel(fd, end->device) < 0 ? -errno : 0;
}

/* The smallest of each, where what is fixed matters. */
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
	};
	const int n = 150;
	long taken, has;
	struct rp_end end;
	unsigned int i;
	int j;

	NEED_ROOT();
	if (!access("/proc/lockdep", F_OK))
		SKIP(return, "a kernel with debugging aids takes more");
	ASSERT_EQ(0, end_as(ALICE, &end));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (j = 0; j < 20; j++)
			ASSERT_EQ(0, rows[i].make(&end));
		has = of(ALICE);
		taken = free_memory();
		for (j = 0; j < n; j++)
			ASSERT_EQ(0, rows[i].make(&end));
		taken -= free_memory();
		has = of(ALICE) - has;
		printf("# %s: %ld bytes taken, %ld charged\n", rows[i].what,
		       taken / n, has / n);
		/* Others may have taken some pages meanwhile. */
		EXPECT_LE(taken, has + MB / 4);
	}
}

/* ------------------------------------------------------ two at a time */

#define THREADS		4

struct racer {
	pthread_t thread;
	struct rp_end end;
	unsigned int taken;
	int ret;
};

/* Until nothing is left. */
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
		ASSERT_EQ(0, end_as(ALICE, &racers[i].end));
	}
	has = of(ALICE);
	ASSERT_EQ(0, rp_create_cq(racers[0].end.fd, racers[0].end.device, 64, -1,
				  &cq));
	each = of(ALICE) - has;
	limit = of(ALICE) + 60 * each + 5;
	ASSERT_EQ(0, set_limit(limit));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&racers[i].thread, NULL, race,
					    &racers[i]));
	for (i = 0; i < 100; i++)
		EXPECT_GE(limit, of(ALICE));
	for (i = 0; i < THREADS; i++) {
		pthread_join(racers[i].thread, NULL);
		EXPECT_EQ(-ENOMEM, racers[i].ret);
	}
	EXPECT_GE(limit, of(ALICE));
	/* Nobody was refused what there was: each could have asked for one. */
	EXPECT_LT(limit - THREADS * each, of(ALICE));
}

TEST_HARNESS_MAIN
