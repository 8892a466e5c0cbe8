// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests one open file in several processes.  Objects and keys belong to the
 * file: each process with a descriptor can use them, and they refer to the
 * memory of the process that registered it.  Pinned memory is charged to that
 * process, even after it has exited.  A failure means that a process reaches
 * another one's memory, or that the limit of the wrong process changes.
 */
#include <kselftest_harness.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "memory.h"
#include "pass_fd.h"

#define NOBODY	65534

FIXTURE(process) {
	struct memory m;
	size_t page;
	unsigned char *p;	/* two pages, registered for everything */
	struct rpost_reg_mr mr;
	int go[2], done[2];
};

FIXTURE_SETUP(process)
{
	self->page = getpagesize();
	ASSERT_EQ(0, memory_init(&self->m));
	self->p = rp_pages(2 * self->page);
	ASSERT_NE(NULL, self->p);
	memset(self->p, 'o', 2 * self->page);
	ASSERT_EQ(0, reg(&self->m, self->p, 2 * self->page, WRITE, &self->mr));
	ASSERT_EQ(0, pipe(self->go));
	ASSERT_EQ(0, pipe(self->done));
}

FIXTURE_TEARDOWN(process)
{
	EXPECT_EQ(0, memory_exit(&self->m));
}

static void say(const int *pipefd)
{
	if (write(pipefd[1], "x", 1) != 1)
		_exit(99);
}

static bool hear(const int *pipefd)
{
	struct pollfd pfd = { .fd = pipefd[0], .events = POLLIN };
	char byte;

	return poll(&pfd, 1, TEST_TIMEOUT_MS) == 1 &&
	       read(pipefd[0], &byte, 1) == 1;
}

/* Return the exit status of a child, or -1. */
static int ended(pid_t pid)
{
	int status = -1;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* Send from a region of the server's file to the client's buffer. */
static int send_from(struct memory *m, struct rpost_reg_mr *mr, uint32_t length)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 2, NULL, length, mr->lkey);

	send.sge.addr = mr->iova;
	return rp_post_send(&m->s, &send);
}

/* Wait for the message; return the status, or a negative errno. */
static int expect_message(struct memory *m, uint32_t length)
{
	struct rpost_wc wc;

	if (rp_wait_cq(&m->c.cq, &wc) != 1)
		return -ETIME;
	return wc.status == RPOST_WC_SUCCESS && wc.byte_len != length ?
		-EPROTO : (int)wc.status;
}

static int give_buffer(struct memory *m)
{
	memset(m->buf, 0xee, BUF);
	return rp_post_recv(&m->c, 1, m->buf, BUF, m->bmr.lkey);
}

/* -------------------------------------------------------------- fork */

/* The parent keeps the pages that the device uses; the child gets copies. */
TEST_F(process, fork_then_device_writes)
{
	struct memory *m = &self->m;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(hear(self->go));
		CHILD_CHECK(all_bytes(self->p, 2 * self->page, 'o'));
		memset(self->p, 'c', 2 * self->page);
		say(self->done);
		CHILD_CHECK(hear(self->go));
		CHILD_CHECK(all_bytes(self->p, 2 * self->page, 'c'));
		_exit(0);
	}
	/* The program writes to the second page before the device does. */
	self->p[self->page] = 'w';
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
	EXPECT_EQ(0, memcmp(m->buf, self->p, BUF));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, self->page, BUF));
	EXPECT_EQ(0, memcmp(m->buf, self->p + self->page, BUF));
	say(self->go);
	ASSERT_TRUE(hear(self->done));
	EXPECT_EQ(0, memcmp(m->buf, self->p + self->page, BUF));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
	EXPECT_EQ(0, memcmp(m->buf, self->p, BUF));
	say(self->go);
	EXPECT_EQ(0, ended(pid));
}

/* The same for a region that is only read, see pins_by_force(). */
TEST_F(process, fork_then_device_reads)
{
	struct memory *m = &self->m;
	struct rpost_reg_mr ro;
	unsigned char *q = rp_pages(self->page);
	pid_t pid;

	memset(q, 'q', self->page);
	ASSERT_EQ(0, reg(m, q, self->page, READ, &ro));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		memset(q, 'c', self->page);
		say(self->done);
		CHILD_CHECK(hear(self->go));
		_exit(0);
	}
	ASSERT_TRUE(hear(self->done));
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &ro, 0, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'q'));
	memset(q, 'n', self->page);
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &ro, 0, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'n'));
	say(self->go);
	EXPECT_EQ(0, ended(pid));
	ASSERT_EQ(0, dereg(m, &ro));
	munmap(q, self->page);
}

/* A child registers its own memory, which is freed after its exit. */
TEST_F(process, registered_by_a_child)
{
	struct memory *m = &self->m;
	struct rpost_reg_mr *shared;
	long before = rp_pinned();
	pid_t pid;

	shared = mmap(NULL, self->page, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)shared);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(rp_pinned() == 0);
		memset(self->p, 'c', 2 * self->page);
		CHILD_CHECK(!reg(m, self->p, 2 * self->page, WRITE, shared));
		CHILD_CHECK(rp_pinned() == 2 * (long)self->page);
		_exit(0);
	}
	EXPECT_EQ(0, ended(pid));
	EXPECT_EQ(before, rp_pinned());
	/* The same address by two keys: the memory of two processes. */
	EXPECT_EQ(self->mr.iova, shared->iova);
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, shared, 0, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'c'));
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &self->mr, 0, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'o'));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, shared, 0, BUF));
	EXPECT_TRUE(all_bytes(self->p, 2 * self->page, 'o'));
	/* The exited child is charged, not the process that deregisters. */
	ASSERT_EQ(0, dereg(m, shared));
	EXPECT_EQ(before, rp_pinned());
	ASSERT_EQ(0, dereg(m, &self->mr));
	EXPECT_EQ(before - 2 * (long)self->page, rp_pinned());
	munmap(shared, self->page);
}

/* After a child has deregistered a region, the parent is not charged for it. */
TEST_F(process, deregistered_by_a_child)
{
	struct memory *m = &self->m;
	long before = rp_pinned();
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(!dereg(m, &self->mr));
		CHILD_CHECK(rp_pinned() == 0);
		_exit(0);
	}
	EXPECT_EQ(0, ended(pid));
	EXPECT_EQ(before - 2 * (long)self->page, rp_pinned());
	EXPECT_EQ(-ENOENT, dereg(m, &self->mr));
}

/* Become nobody, who may lock so many bytes. */
static void become_nobody(size_t locked)
{
	const struct rlimit limit = { locked, locked };

	CHILD_CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit));
	CHILD_CHECK(!setgroups(0, NULL) && !setgid(NOBODY) && !setuid(NOBODY));
}

/* Register all that the limit allows, as nobody. */
static void register_to_the_limit(struct memory *m, unsigned char *p, size_t page)
{
	struct rpost_reg_mr mr;

	become_nobody(2 * page);
	CHILD_CHECK(!reg(m, p, page, WRITE, &mr));
	CHILD_CHECK(reg(m, p, 2 * page, WRITE, &mr) == -ENOMEM);
	CHILD_CHECK(!reg(m, p, page, WRITE, &mr));
	CHILD_CHECK(reg(m, p, 1, WRITE, &mr) == -ENOMEM);
}

/*
 * Each process has its own limit, as over uverbs, beside which counts what others
 * have left when they ended.
 */
TEST_F(process, limit_of_each_process)
{
	struct memory *m = &self->m;
	struct rpost_reg_mr mr;
	int pipes[2];
	pid_t pids[3];
	char byte;
	unsigned int i;

	if (geteuid())
		SKIP(return, "needs root to become nobody");
	ASSERT_EQ(0, pipe(pipes));
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (!pids[i]) {
			CHILD_CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
			/* The pages of the parent and of the others do not count here. */
			register_to_the_limit(m, self->p, self->page);
			CHILD_CHECK(write(pipes[1], "x", 1) == 1);
			pause();
			_exit(1);
		}
		ASSERT_TRUE(rp_readable(pipes[0], TEST_TIMEOUT_MS));
		ASSERT_EQ(1, read(pipes[0], &byte, 1));
	}
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		ASSERT_EQ(0, kill(pids[i], SIGKILL));
		ASSERT_EQ(pids[i], waitpid(pids[i], NULL, 0));
	}
	pids[0] = fork();
	ASSERT_LE(0, pids[0]);
	if (!pids[0]) {
		become_nobody(6 * self->page);
		CHILD_CHECK(reg(m, self->p, 1, WRITE, &mr) == -ENOMEM);
		_exit(0);
	}
	EXPECT_EQ(0, ended(pids[0]));
	close(pipes[0]);
	close(pipes[1]);
}

/* ------------------------------------ other ways to get a descriptor */

/* A socket holds the file and itself; the kernel's collector must free both. */
TEST_F(process, sent_in_a_circle)
{
	long before = rp_module_number("refcnt");
	int socks[2], fds[2];
	struct rp_end e;

	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	fds[0] = e.fd;
	fds[1] = socks[1];
	ASSERT_EQ(0, send_fds(socks[0], fds, 2));
	rp_end_close(&e);
	EXPECT_LT(before, rp_module_number("refcnt"));
	close(socks[0]);
	close(socks[1]);
	EXPECT_EQ(before, rp_wait_collected(before));
}

/* A descriptor's path in /proc opens the device anew, without objects. */
TEST_F(process, reopened)
{
	struct rp_end *s = &self->m.s;
	struct rpost_reg_mr mr;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, rp_num_objects(fd));
	EXPECT_EQ(-ENOENT, rp_destroy(fd, RPOST_OBJ_MR, self->mr.handle));
	EXPECT_EQ(-ENOENT, rp_reg_mr(fd, s->pd, self->p, 8, WRITE, &mr));
	close(fd);
	/* A descriptor opened with O_PATH cannot be used for commands. */
	fd = open(path, O_PATH | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, rp_num_objects(fd));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, s->cq.cmd.mmap_size, RW, MAP_SHARED,
				   fd, s->cq.cmd.mmap_offset));
	close(fd);
}

/* The variable that tells the executed program which objects to use. */
#define EXEC_VARIABLE	"RPOST_TEST_EXEC"

struct inherited {
	int fd;
	unsigned int objects, qp, lkey;
	unsigned long long iova;
};

static int use_inherited(const char *value)
{
	struct inherited in;
	struct rp_send send;
	struct rp_end end = { 0 };

	if (sscanf(value, "%d %u %u %u %llu", &in.fd, &in.objects, &in.qp,
		   &in.lkey, &in.iova) != 5)
		return 2;
	if (rp_num_objects(in.fd) != (int)in.objects || rp_pinned())
		return 3;
	send = rp_send(RPOST_WR_SEND, 2, NULL, 64, in.lkey);
	send.sge.addr = in.iova;
	end.fd = in.fd;
	end.qp = in.qp;
	return rp_post_send(&end, &send) ? 4 : 0;
}

static void __attribute__((constructor)) after_exec(void)
{
	const char *value = getenv(EXEC_VARIABLE);

	if (value)
		_exit(use_inherited(value));
}

/* In a child: register memory, then exec() a program that has the file. */
static void exec_with_file(FIXTURE_DATA(process) *self)
{
	struct memory *m = &self->m;
	struct rpost_reg_mr mr;
	char value[128];

	memset(self->p, 'e', 2 * self->page);
	CHILD_CHECK(!reg(m, self->p, self->page, READ, &mr));
	CHILD_CHECK(!fcntl(m->s.fd, F_SETFD, 0));
	snprintf(value, sizeof(value), "%d %d %u %u %llu", m->s.fd,
		 rp_num_objects(m->s.fd), m->s.qp, mr.lkey,
		 (unsigned long long)mr.iova);
	setenv(EXEC_VARIABLE, value, 1);
	execl("/proc/self/exe", "attack_process", NULL);
	_exit(1);
}

TEST_F(process, exec_with_the_file)
{
	struct memory *m = &self->m;
	pid_t pid;

	ASSERT_EQ(0, give_buffer(m));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		exec_with_file(self);
	ASSERT_EQ(0, ended(pid));
	/* The message comes from memory of the program before exec(). */
	ASSERT_EQ(RPOST_WC_SUCCESS, expect_message(m, 64));
	EXPECT_TRUE(all_bytes(m->buf, 64, 'e'));
}

/* ---------------------- clone() with either CLONE_FILES or CLONE_VM */

static pid_t clone_with(unsigned long flags)
{
	return syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
}

/* Shared descriptors, separate memory: commands read the caller's memory. */
TEST_F(process, files_shared_without_memory)
{
	struct memory *m = &self->m;
	uint32_t *told;
	pid_t pid;
	int fd;

	told = mmap(NULL, self->page, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)told);
	ASSERT_EQ(0, give_buffer(m));
	pid = clone_with(CLONE_FILES);
	ASSERT_LE(0, pid);
	if (!pid) {
		memset(self->p, 'c', 2 * self->page);
		/* The region is the parent's memory, not the child's copy. */
		CHILD_CHECK(!send_from(m, &self->mr, 64));
		/* Both have the file that the child opens. */
		told[0] = rp_open();
		CHILD_CHECK(!rp_alloc_pd(told[0], rp_first_device(told[0]),
					 &told[1]));
		CHILD_CHECK(!rp_reg_mr(told[0], told[1], self->p, self->page,
				       WRITE, &self->mr));
		told[2] = self->mr.handle;
		_exit(0);
	}
	EXPECT_EQ(0, ended(pid));
	ASSERT_EQ(RPOST_WC_SUCCESS, expect_message(m, 64));
	EXPECT_TRUE(all_bytes(m->buf, 64, 'o'));
	fd = told[0];
	EXPECT_EQ(2, rp_num_objects(fd));
	EXPECT_EQ(-EBUSY, rp_destroy(fd, RPOST_OBJ_PD, told[1]));
	EXPECT_EQ(0, rp_destroy(fd, RPOST_OBJ_MR, told[2]));
	EXPECT_EQ(0, rp_destroy(fd, RPOST_OBJ_PD, told[1]));
	EXPECT_EQ(0, close(fd));
	munmap(told, self->page);
}

/* The child closes the shared descriptors, which frees all objects. */
TEST_F(process, files_shared_and_closed)
{
	long before = rp_module_number("refcnt");
	struct rpost_reg_mr mr;
	struct rp_end e;
	pid_t pid;

	ASSERT_EQ(0, rp_end_init(&e));
	ASSERT_EQ(0, rp_reg_mr(e.fd, e.pd, self->p, self->page, WRITE, &mr));
	/* The mapping of the ring also holds the file. */
	rp_unmap_cq(&e.cq);
	pid = clone_with(CLONE_FILES);
	ASSERT_LE(0, pid);
	if (!pid) {
		close(e.channel);
		close(e.fd);
		_exit(0);
	}
	EXPECT_EQ(0, ended(pid));
	EXPECT_EQ(-1, rp_num_objects(e.fd));
	EXPECT_EQ(before, rp_wait_refcnt(before));
}

/* Shared memory, separate descriptors, as after vfork(). */
TEST_F(process, memory_shared_without_files)
{
	struct memory *m = &self->m;
	volatile int sent = -1;
	pid_t pid;

	ASSERT_EQ(0, give_buffer(m));
	pid = vfork();
	ASSERT_LE(0, pid);
	if (!pid) {
		sent = send_from(m, &self->mr, 64);
		close(m->s.fd);
		_exit(0);
	}
	EXPECT_EQ(0, ended(pid));
	EXPECT_EQ(0, sent);
	ASSERT_EQ(RPOST_WC_SUCCESS, expect_message(m, 64));
	EXPECT_TRUE(all_bytes(m->buf, 64, 'o'));
	/* The child closed only its own descriptor. */
	EXPECT_LT(0, rp_num_objects(m->s.fd));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, BUF));
}

/* ---------------------------- a descriptor that is received by socket */

/* Another process receives the file and uses it after the sender's exit. */
TEST_F(process, sender_dies)
{
	long refcnt = rp_module_number("refcnt"), before = rp_pinned();
	struct made {
		uint32_t pd, mr, lkey;
	} *made;
	struct rpost_reg_mr mr;
	int socks[2], fd;
	pid_t pid;

	made = mmap(NULL, self->page, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)made);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		fd = rp_open();
		CHILD_CHECK(!rp_alloc_pd(fd, rp_first_device(fd), &made->pd));
		CHILD_CHECK(!rp_reg_mr(fd, made->pd, self->p, 2 * self->page,
				       WRITE, &mr));
		made->mr = mr.handle;
		CHILD_CHECK(!send_fd(socks[0], fd));
		raise(SIGKILL);
	}
	EXPECT_EQ(-1, ended(pid));
	fd = recv_fd(socks[1]);
	ASSERT_LE(0, fd);
	EXPECT_EQ(2, rp_num_objects(fd));
	EXPECT_EQ(before, rp_pinned());
	/* Memory of the receiver, next to memory of the process that exited. */
	ASSERT_EQ(0, rp_reg_mr(fd, made->pd, self->p, self->page, WRITE, &mr));
	EXPECT_EQ(before + (long)self->page, rp_pinned());
	ASSERT_EQ(0, rp_destroy(fd, RPOST_OBJ_MR, made->mr));
	EXPECT_EQ(before + (long)self->page, rp_pinned());
	close(fd);
	EXPECT_EQ(before, rp_pinned());
	EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
	close(socks[0]);
	close(socks[1]);
	munmap(made, self->page);
}

TEST_HARNESS_MAIN
