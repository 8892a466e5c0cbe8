// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Attacks descriptors that name a device (SHARE_DEVICE) and QUERY_OBJECT: all
 * commands by such a descriptor, chains, circles and many of them, queries while
 * objects go, and processes that are killed.  A failure means that a descriptor
 * gives more or less than the file that it stands for, or that something stays.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "command_env.h"
#include "faults.h"
#include "pass_fd.h"
#include "share.h"

#define ROUNDS		500

FIXTURE(share) {
	char counts[RP_COUNTS];
	long refcnt;
	struct env env;
	int fd;			/* names the device */
};

FIXTURE_SETUP(share)
{
	rp_counts(self->counts);
	self->refcnt = rp_module_number("refcnt");
	ASSERT_EQ(0, env_init(&self->env));
	self->fd = share_device(self->env.end.fd, self->env.end.device);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(share)
{
	close(self->fd);
	env_close(&self->env);
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
}

/*
 * Each command, without harm, by the descriptor: as by the file, which only its own descriptor
 * restricts.
 */
TEST_F(share, all_commands)
{
	const struct command *cmd;
	char arg[MAX_STRUCT];
	int want;

	for_each_command(cmd) {
		if (cmd->on != R_FILE)
			continue;
		ASSERT_EQ(0, env_fill(&self->env, cmd, arg));
		want = cmd->nr == RPOST_IOC_SET_POLICY ? -EPERM : cmd->want;
		EXPECT_EQ(want, rp_ioctl(self->fd, cmd->nr, arg))
			TH_LOG("%s", cmd->name);
		if (made_channel(cmd))
			close(*(int *)(arg + made_channel(cmd)->offset));
	}
}

/* It opens nothing anew, and is no file to read, write, poll or take over. */
TEST_F(share, as_a_file)
{
	struct pollfd pfd = { .fd = self->fd, .events = POLLIN | POLLOUT };
	char path[64], byte = 0;
	uint32_t handle;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->fd);
	EXPECT_EQ(-1, open(path, O_RDWR));
	EXPECT_EQ(ENXIO, errno);
	EXPECT_EQ(-1, read(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_EQ(POLLIN | POLLOUT, pfd.revents);
	/* It is no channel. */
	EXPECT_EQ(-EBADF, rp_create_id(self->fd, self->fd, &handle));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED,
				   self->fd, 0));
}

/* Another file's: finds none of this file's objects. */
TEST_F(share, of_another_file)
{
	struct rp_end *end = &self->env.end, other;
	struct rpost_query_object cmd;
	struct rpost_reg_mr mr;
	uint32_t pd;
	int fd;

	/* Their handles are numbers that the other file does not have. */
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->env.mem, 64, 0, &mr));
	ASSERT_EQ(0, rp_alloc_pd(end->fd, end->device, &pd));
	ASSERT_EQ(0, rp_end_init(&other));
	fd = share_device(other.fd, other.device);
	ASSERT_LE(0, fd);
	rp_end_close(&other);
	EXPECT_EQ(0, query_object(self->fd, RPOST_OBJ_MR, mr.handle, &cmd));
	EXPECT_EQ(-ENOENT, query_object(fd, RPOST_OBJ_MR, mr.handle, &cmd));
	EXPECT_EQ(0, query_object(self->fd, RPOST_OBJ_PD, pd, &cmd));
	EXPECT_EQ(-ENOENT, query_object(fd, RPOST_OBJ_PD, pd, &cmd));
	EXPECT_EQ(2, rp_num_objects(fd));
	close(fd);
}

/* One made from another, whose maker closes, and again. */
TEST_F(share, chain)
{
	int i, fd = self->fd, objects = rp_num_objects(fd);

	for (i = 0; i < ROUNDS; i++) {
		fd = share_device(self->fd, self->env.end.device);
		ASSERT_LE(0, fd);
		close(self->fd);
		self->fd = fd;
	}
	EXPECT_EQ(self->env.end.device, named_device(fd));
	EXPECT_EQ(objects, rp_num_objects(fd));
	EXPECT_GE(self->refcnt + 4, rp_module_number("refcnt"));
}

/* As many as a process may have; then EMFILE, and one that is closed is free. */
TEST_F(share, many)
{
	struct rlimit was, few;
	int fds[300], fd, n = 0;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &was));
	few = was;
	few.rlim_cur = ARRAY_SIZE(fds);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &few));
	while ((fd = share_device(self->fd, self->env.end.device)) >= 0)
		fds[n++] = fd;
	EXPECT_EQ(-EMFILE, fd);
	ASSERT_LT(200, n);
	close(fds[--n]);
	fd = share_device(self->fd, self->env.end.device);
	EXPECT_EQ(fds[n], fd);
	while (n >= 0)
		close(fds[n--]);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &was));
}

/* A socket holds descriptors of both kinds and itself. */
TEST_F(share, sent_in_a_circle)
{
	int socks[2], i, objects = rp_num_objects(self->fd);
	long before = rp_module_number("refcnt");
	struct rp_end e;

	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	const int fds[] = { share_device(e.fd, e.device), socks[1], e.fd };

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, send_fds(socks[0], fds + i, 2));
	close(fds[0]);
	rp_end_close(&e);
	EXPECT_LT(before, rp_module_number("refcnt"));
	close(socks[0]);
	close(socks[1]);
	EXPECT_EQ(before, rp_wait_collected(before));
	EXPECT_EQ(objects, rp_num_objects(self->fd));
}

/* ------------------------------------------------------------- races */

struct racers {
	int fd;
	uint32_t device, pd;
	_Atomic uint32_t mr;
	_Atomic bool stop;
	unsigned int found, missed;
	int err;
};

/* Queries a region that comes and goes, by descriptors that come and go. */
static void *query(void *arg)
{
	struct racers *r = arg;
	struct rpost_query_object cmd;
	int fd, ret;

	while (!r->stop && !r->err) {
		fd = share_device(r->fd, r->device);
		if (fd < 0) {
			r->err = fd;
			break;
		}
		ret = query_object(fd, RPOST_OBJ_MR, r->mr, &cmd);
		r->found += !ret;
		r->missed += ret == -ENOENT;
		if (ret && ret != -ENOENT)
			r->err = ret;
		if (!ret && (cmd.pd != r->pd || cmd.device != r->device ||
			     cmd.length != 64))
			r->err = -EPROTO;
		close(fd);
	}
	return NULL;
}

TEST_F(share, objects_go_meanwhile)
{
	struct rp_end *end = &self->env.end;
	struct racers r = {
		.fd = self->fd, .device = end->device, .pd = end->pd,
	};
	struct rpost_reg_mr mr;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, pthread_create(&thread, NULL, query, &r));
	for (i = 0; i < ROUNDS || (!(r.found && r.missed) && !r.err); i++) {
		ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->env.mem, 64, 0,
				       &mr));
		r.mr = mr.handle;
		if (i & 1)
			sched_yield();
		ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, mr.handle));
	}
	r.stop = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, r.err);
	EXPECT_LT(0, r.found);
	EXPECT_LT(0, r.missed);
}

/* ------------------------------------------------------------- kills */

/* Makes objects by descriptors that it makes, sends some to itself, for ever. */
static void work(int fd, uint32_t device, int progress)
{
	void *page = rp_pages(getpagesize());
	struct rpost_query_object cmd;
	struct rpost_reg_mr mr;
	int socks[2], share;
	uint32_t pd;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, socks))
		_exit(1);
	for (;;) {
		share = share_device(fd, device);
		if (share < 0 || rp_alloc_pd(share, device, &pd) ||
		    rp_reg_mr(share, pd, page, 64, 0, &mr) ||
		    query_object(share, RPOST_OBJ_MR, mr.handle, &cmd) ||
		    send_fd(socks[0], share))
			_exit(2);
		close(share);
		share = recv_fd(socks[1]);
		if (rp_destroy(share, RPOST_OBJ_MR, mr.handle) ||
		    rp_destroy(share, RPOST_OBJ_PD, pd))
			_exit(3);
		close(share);
		if (write(progress, "x", 1) != 1)
			_exit(4);
	}
}

/*
 * A process that has the descriptor only is killed anywhere.  What it has made
 * belongs to the file, which is still open here: at most a domain and a region.
 */
TEST_F(share, killed)
{
	int objects = rp_num_objects(self->fd), left, status, i, pipes[2];
	char byte;
	pid_t pid;

	for (i = 0; i < 40; i++) {
		ASSERT_EQ(0, pipe(pipes));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			close(self->env.end.fd);
			work(self->fd, self->env.end.device, pipes[1]);
		}
		close(pipes[1]);
		ASSERT_EQ(1, read(pipes[0], &byte, 1));
		usleep(i * 37);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(SIGKILL, status);
		close(pipes[0]);
		left = rp_num_objects(self->fd) - objects;
		EXPECT_LE(0, left);
		EXPECT_GE(2 * (i + 1), left);
	}
}

/* The file's opener is killed; the other goes on, and ends it. */
TEST_F(share, opener_killed)
{
	int socks[2], status, fd;
	struct rpost_reg_mr mr;
	struct rp_end end;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (rp_end_init(&end) ||
		    send_fd(socks[1], share_device(end.fd, end.device)))
			_exit(1);
		for (;;)
			pause();
	}
	fd = recv_fd(socks[0]);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(SIGKILL, status);
	EXPECT_EQ(2, rp_num_objects(fd));
	ASSERT_EQ(0, rp_alloc_pd(fd, named_device(fd), &end.pd));
	EXPECT_EQ(0, rp_reg_mr(fd, end.pd, self->env.mem, 64, 0, &mr));
	close(fd);
	close(socks[0]);
	close(socks[1]);
}

TEST_HARNESS_MAIN
