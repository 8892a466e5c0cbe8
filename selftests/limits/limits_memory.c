// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the limit of registered memory: RLIMIT_MEMLOCK applies to all files of
 * a program together, and the charge is returned when the region is destroyed
 * and when the device is removed.
 */
#include <kselftest_harness.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "rpost_test.h"

#define NOBODY		65534
#define MB		(1 << 20)

FIXTURE(memlock) {
	struct rp_end end;
	char *mem;
	bool skip;
};

FIXTURE_SETUP(memlock)
{
	const struct rlimit limit = { MB, MB };

	/* A program without privileges is subject to the limit. */
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	self->skip = !geteuid() && setresuid(NOBODY, NOBODY, NOBODY);
	ASSERT_EQ(0, rp_end_init(&self->end));
	self->mem = rp_pages(2 * MB);
	ASSERT_NE(NULL, self->mem);
	ASSERT_EQ(0, rp_pinned());
}

FIXTURE_TEARDOWN(memlock)
{
	rp_end_close(&self->end);
	EXPECT_EQ(0, rp_pinned());
}

TEST_F(memlock, enomem)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr a, b;

	if (self->skip)
		SKIP(return, "cannot give up root");
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, MB + 1, 0,
				     &a));
	EXPECT_EQ(0, rp_pinned());
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &a));
	EXPECT_EQ(MB / 2, rp_pinned());
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2 + 1, 0,
				     &b));
	EXPECT_EQ(MB / 2, rp_pinned());
	EXPECT_EQ(3, rp_num_objects(end->fd));
	/* Memory that is registered twice counts twice. */
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &b));
	EXPECT_EQ(MB, rp_pinned());
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, 1, 0, &a));

	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, b.handle));
	EXPECT_EQ(MB / 2, rp_pinned());
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &b));
}

/* All open files of a program have one limit together. */
TEST_F(memlock, across_open_files)
{
	struct rpost_reg_mr mr;
	struct rp_end other;

	if (self->skip)
		SKIP(return, "cannot give up root");
	ASSERT_EQ(0, rp_end_init(&other));
	ASSERT_EQ(0, rp_reg_mr(other.fd, other.pd, self->mem, MB, 0, &mr));
	EXPECT_EQ(-ENOMEM, rp_reg_mr(self->end.fd, self->end.pd, self->mem,
				     4096, 0, &mr));
	rp_end_close(&other);
	EXPECT_EQ(0, rp_pinned());
	EXPECT_EQ(0, rp_reg_mr(self->end.fd, self->end.pd, self->mem, MB, 0,
			       &mr));
}

/* The owner's charge is returned if another process destroys the region. */
TEST_F(memlock, destroyed_by_another_process)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr mr;
	int status;
	pid_t pid;

	if (self->skip)
		SKIP(return, "cannot give up root");
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB, 0, &mr));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(rp_pinned() || rp_destroy(end->fd, RPOST_OBJ_MR, mr.handle) ||
		      rp_pinned());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, rp_pinned());
	EXPECT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB, 0, &mr));
}

/* ------------------------------------- processes that have ended */

struct owner {
	pid_t pid;
	int fd;		/* the byte 'x' ends the child, and 'e' lets it execute a program */
	uint32_t mr;
};

/* Fork a child that registers three quarters of the limit, and keeps the region. */
static int fork_owner(struct rp_end *end, char *mem, struct owner *owner)
{
	struct rpost_reg_mr mr;
	int fds[2];
	char byte;

	RP_TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	owner->fd = fds[1];
	owner->pid = fork();
	if (!owner->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (rp_reg_mr(end->fd, end->pd, mem, 3 * MB / 4, 0, &mr))
			mr.handle = 0;
		if (write(fds[0], &mr.handle, sizeof(mr.handle)) < 0 ||
		    read(fds[0], &byte, 1) != 1)
			_exit(1);
		if (byte == 'e')
			execl("/bin/sh", "sh", "-c", "kill -STOP $$", NULL);
		_exit(byte != 'x');
	}
	close(fds[0]);
	return owner->pid > 0 && read(owner->fd, &owner->mr, sizeof(owner->mr)) ==
	       sizeof(owner->mr) && owner->mr ? 0 : -1;
}

/*
 * The pages that a process has left pinned, in a file that others have open, count
 * beside the pages of the process that registers.  Those of a living process do not.
 */
TEST_F(memlock, left_by_a_process)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr mr;
	struct owner owner;
	int status;

	if (self->skip)
		SKIP(return, "cannot give up root");
	ASSERT_EQ(0, fork_owner(end, self->mem, &owner));
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB, 0, &mr));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, mr.handle));

	ASSERT_EQ(1, write(owner.fd, "x", 1));
	ASSERT_EQ(owner.pid, waitpid(owner.pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, MB / 4 + 1, 0, &mr));
	EXPECT_EQ(0, rp_pinned());
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 4, 0, &mr));
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, 1, 0, &mr));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, owner.mr));
	EXPECT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, 3 * MB / 4, 0, &mr));
}

/* So do the pages that a process had pinned before it executed another program. */
TEST_F(memlock, left_by_exec)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr mr;
	struct owner owner;
	int status;

	if (self->skip)
		SKIP(return, "cannot give up root");
	ASSERT_EQ(0, fcntl(end->fd, F_SETFD, 0));
	ASSERT_EQ(0, fork_owner(end, self->mem, &owner));
	ASSERT_EQ(1, write(owner.fd, "e", 1));
	ASSERT_EQ(owner.pid, waitpid(owner.pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &mr));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, owner.mr));
	EXPECT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &mr));
	kill(owner.pid, SIGKILL);
	waitpid(owner.pid, NULL, 0);
}

/* A process that ends with its own file takes nothing from others, not even at its end. */
TEST_F(memlock, of_a_process_that_ends)
{
	struct rp_end *end = &self->end, own;
	struct rpost_reg_mr mr;
	pid_t pid, done;
	unsigned int i;

	if (self->skip)
		SKIP(return, "cannot give up root");
	for (i = 0; i < 20; i++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(rp_end_init(&own) ||
			      rp_reg_mr(own.fd, own.pd, self->mem, 3 * MB / 4, 0, &mr));
		do {
			int status;

			done = waitpid(pid, &status, WNOHANG);
			ASSERT_EQ(0, done ? status : 0);
			ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB, 0, &mr));
			ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, mr.handle));
		} while (!done);
	}
}

/* ------------------------------------- the device is removed */

/*
 * The device is removed: the process gets the charge of its registered memory
 * back, for either way of registration.
 */
FIXTURE(gone) {
	const char *skip;
	char way[32];
	struct cgroup cg;
	bool in_cgroup;
};

FIXTURE_VARIANT(gone) {
	const char *way;
};

FIXTURE_VARIANT_ADD(gone, direct) {
	.way = "direct",
};

FIXTURE_VARIANT_ADD(gone, fast) {
	.way = "fast",
};

static const struct cgroup parameters = {
	.path = "/sys/module/rdma_post/parameters",
};

FIXTURE_SETUP(gone)
{
	struct rpost_reg_mr mr;
	struct rp_end end;

	if (!rp_can_remove()) {
		self->skip = RP_NO_REMOVAL;
		return;
	}
	if (access(RP_PARAMETERS "registration", W_OK)) {
		self->skip = "needs root";
		return;
	}
	ASSERT_EQ(0, cg_read(&parameters, "registration", self->way,
			     sizeof(self->way)));
	ASSERT_EQ(0, rp_set_parameter("registration", variant->way));
	ASSERT_EQ(0, rp_end_init(&end));
	if (rp_reg_mr(end.fd, end.pd, rp_pages(1), 1, 0, &mr) == -EOPNOTSUPP)
		self->skip = "the driver cannot register this way";
	rp_end_close(&end);
}

FIXTURE_TEARDOWN(gone)
{
	if (self->in_cgroup) {
		EXPECT_EQ(0, cg_enter(NULL));
		EXPECT_EQ(0, cg_remove(&self->cg));
	}
	if (self->way[0])
		EXPECT_EQ(0, rp_set_parameter("registration", self->way));
}

/* Register before and after the parent replaces the device. */
static int pin_to_the_limit(int socket)
{
	const struct rlimit limit = { MB, MB };
	struct rpost_reg_mr mr, old[2];
	struct rp_end end;
	char *mem, byte;

	RP_TRY(setrlimit(RLIMIT_MEMLOCK, &limit));
	RP_TRY(setresuid(NOBODY, NOBODY, NOBODY));
	mem = rp_pages(2 * MB);
	RP_TRY(!mem);
	RP_TRY(rp_end_init(&end));
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, MB / 2, 0, &old[0]));
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem + MB, MB / 2, 0, &old[1]));
	RP_TRY(rp_pinned() != MB);
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, 1, 0, &mr) != -ENOMEM);

	RP_TRY(write(socket, "x", 1) != 1 || read(socket, &byte, 1) != 1);
	RP_TRY(rp_pinned());
	/* The objects of the removed device still have their handles. */
	RP_TRY(rp_num_objects(end.fd) != 4);
	end.device = rp_first_device(end.fd);
	RP_TRY(rp_alloc_pd(end.fd, end.device, &end.pd));
	RP_TRY(rp_reg_mr_soon(&end, mem, MB, 0, &mr));
	RP_TRY(rp_pinned() != MB);
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, 1, 0, &mr) != -ENOMEM);
	/* Destroying them must not return a charge twice. */
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_MR, old[0].handle));
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_MR, old[1].handle));
	RP_TRY(rp_pinned() != MB);
	rp_end_close(&end);
	RP_TRY(rp_pinned());
	return 0;
}

TEST_F(gone, locked_memory_comes_back)
{
	int sockets[2], status;
	char byte = 0;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(sockets[0]);
		_exit(pin_to_the_limit(sockets[1]) != 0);
	}
	close(sockets[1]);
	ASSERT_EQ(1, read(sockets[0], &byte, 1));
	EXPECT_EQ(0, rp_remove_device());
	EXPECT_EQ(0, rp_add_device());
	EXPECT_EQ(1, write(sockets[0], "x", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

#define RING_CQE	16384	/* a ring of 1 MB */
#define REGIONS		16
#define REGION_BYTES	MB	/* rxe allows 2 MB for fast registration */
#define PINNED_BYTES	(REGIONS * REGION_BYTES)

TEST_F(gone, the_cgroups_memory_comes_back)
{
	struct rpost_reg_mr mr[REGIONS];
	struct rp_cq rings[4];
	long long before;
	struct rp_end end;
	unsigned int i;
	char *mem;

	RP_SKIP_IF_SETUP_SAID();
	if (!cg_has("memory"))
		SKIP(return, "no memory cgroup");
	ASSERT_EQ(0, cg_create(&self->cg, "gone"));
	self->in_cgroup = true;
	ASSERT_EQ(0, cg_enter(&self->cg));
	ASSERT_EQ(0, rp_end_init(&end));
	before = cg_settled_memory(&self->cg);
	mem = rp_pages(PINNED_BYTES);
	ASSERT_NE(NULL, mem);
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		ASSERT_EQ(0, rp_reg_mr(end.fd, end.pd, mem + i * REGION_BYTES,
				       REGION_BYTES, RPOST_ACCESS_LOCAL_WRITE,
				       &mr[i]));
	for (i = 0; i < ARRAY_SIZE(rings); i++)
		ASSERT_EQ(0, rp_create_cq(end.fd, end.device, RING_CQE, -1,
					  &rings[i]));
	EXPECT_EQ(PINNED_BYTES, rp_pinned());
	/* Now only the regions hold the memory. */
	ASSERT_EQ(0, munmap(mem, PINNED_BYTES));
	usleep(TEST_QUIET_MS * 1000);
	/* @before includes reserves that may have been drained since. */
	EXPECT_LE(before + PINNED_BYTES + ARRAY_SIZE(rings) * MB - CG_MEMORY_SLACK,
		  (unsigned long long)cg_memory(&self->cg));

	EXPECT_EQ(0, rp_remove_device());
	EXPECT_EQ(0, rp_pinned());
	/* A ring stays readable, and charged, until it is destroyed. */
	for (i = 0; i < ARRAY_SIZE(rings); i++) {
		EXPECT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_CQ,
					rings[i].cmd.handle));
		rp_unmap_cq(&rings[i]);
	}
	EXPECT_GE(before + CG_MEMORY_SLACK,
		  cg_wait_memory(&self->cg, before + CG_MEMORY_SLACK));
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		EXPECT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_MR, mr[i].handle));
	EXPECT_EQ(0, rp_add_device());
	rp_end_close(&end);
}

TEST_HARNESS_MAIN
