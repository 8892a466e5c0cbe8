// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests access to completion rings other than by loads and stores of the
 * process that mapped them: by system calls, by other processes, and after the
 * queue is destroyed.  A failure means that such access reaches other memory or
 * stops completions.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "ring_map.h"

FIXTURE(ring) {
	struct ring_map r;
};

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, ring_map_init(&self->r));
}

FIXTURE_TEARDOWN(ring)
{
	EXPECT_EQ(0, ring_map_close(&self->r));
}

TEST_F(ring, proc_self_mem)
{
	struct rpost_ring *ring = (void *)self->r.ring;
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	char *copy = malloc(self->r.size);
	uint32_t head = 0x12345678;

	ASSERT_LE(0, fd);
	ASSERT_NE(NULL, copy);
	ASSERT_EQ(0, works(&self->r));
	ASSERT_EQ((ssize_t)self->r.size, pread64(fd, copy, self->r.size,
				      (uintptr_t)self->r.ring));
	EXPECT_EQ(0, memcmp(copy, self->r.ring, self->r.size));
	ASSERT_EQ(4, pwrite64(fd, &head, 4, (uintptr_t)&ring->head));
	EXPECT_EQ(head, ring->head);
	/* FOLL_FORCE must not make a read-only mapping of the ring writable. */
	ASSERT_EQ(0, mprotect(self->r.ring, self->r.size, PROT_READ));
	EXPECT_EQ(-1, pwrite64(fd, &head, 4, (uintptr_t)&ring->head));
	free(copy);
	close(fd);
}

/* In a child, which has the file but no mapping: map the ring again. */
static void map_again(FIXTURE_DATA(ring) *self)
{
	if (mmap(self->r.ring, self->r.size, RW, MAP_SHARED | MAP_FIXED,
		 self->r.c.fd, self->r.offset) == MAP_FAILED)
		_exit(1);
}

/* In a child: become traced, then wait to be killed. */
static void be_traced(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	_exit(1);
}

/* Read and write the ring by the mapping of another process. */
static void cross(struct __test_metadata *_metadata, FIXTURE_DATA(ring) *self,
		  pid_t pid)
{
	char *copy = malloc(self->r.size);
	struct iovec local = { copy, self->r.size };
	struct iovec remote = { self->r.ring, self->r.size };
	struct rpost_ring *ring = (void *)self->r.ring;

	EXPECT_EQ((ssize_t)self->r.size, process_vm_readv(pid, &local, 1,
							&remote, 1, 0));
	EXPECT_EQ(0, memcmp(copy, self->r.ring, self->r.size));
	memset(copy, 0xff, self->r.size);
	EXPECT_EQ((ssize_t)self->r.size, process_vm_writev(pid, &local, 1,
							 &remote, 1, 0));
	EXPECT_EQ(UINT32_MAX, ring->head);
	/* An address that the child has not mapped cannot be read. */
	remote.iov_base = self->r.c.cq.ring;
	EXPECT_EQ(-1, process_vm_readv(pid, &local, 1, &remote, 1, 0));
	free(copy);
}

/* Access by ptrace() and by process_vm_readv() and process_vm_writev(). */
TEST_F(ring, other_process)
{
	struct rpost_ring *ring = (void *)self->r.ring;
	int status = -1;
	long word;
	pid_t pid;

	ring->head = 77;
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		map_again(self);
		be_traced();
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(WIFSTOPPED(status));
	/* Some kernels are built without process_vm_readv(). */
	if (!process_vm_readv(pid, NULL, 0, NULL, 0, 0))
		cross(_metadata, self, pid);
	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, pid, &ring->head, NULL);
	EXPECT_EQ(0, errno);
	EXPECT_EQ(ring->head, (uint32_t)word);
	EXPECT_EQ(0, ptrace(PTRACE_POKEDATA, pid, &ring->head, 42));
	EXPECT_EQ(42, ring->head);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
}

/* True if a file contains these bytes. */
static bool contains(const char *path, const char *word, size_t len)
{
	FILE *f = fopen(path, "r");
	bool found = false;
	char *p, *mem;
	size_t n;

	if (!f)
		return false;
	mem = malloc(64 << 20);
	n = mem ? fread(mem, 1, 64 << 20, f) : 0;
	p = mem;
	while (n && !found && (p = memmem(p, mem + n - p, word, len)))
		found = true;
	free(mem);
	fclose(f);
	return found;
}

TEST_F(ring, core_dump)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	char dir[] = "/tmp/rpost.XXXXXX", path[64], pattern[64] = "";
	char *mem = rp_pages(self->r.page);
	int status = -1, i;
	FILE *f;
	pid_t pid;

	f = fopen("/proc/sys/kernel/core_pattern", "r");
	ASSERT_NE(NULL, f);
	EXPECT_NE(NULL, fgets(pattern, sizeof(pattern), f));
	fclose(f);
	if (strcmp(pattern, "core\n") || geteuid())
		SKIP(return, "core dumps do not go to ./core here");
	ASSERT_NE(NULL, mkdtemp(dir));
	/* Compute the words, so that the program's text lacks them. */
	for (i = 0; i < 16; i++) {
		mem[i] = 'A' + i * 7 % 26;
		((char *)self->r.ring)[2 * self->r.page + i] = 'z' - i * 5 % 26;
	}
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		map_again(self);
		if (chdir(dir) || setrlimit(RLIMIT_CORE, &unlimited))
			_exit(1);
		signal(SIGABRT, SIG_DFL);
		abort();
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status) && WCOREDUMP(status));
	snprintf(path, sizeof(path), "%s/core", dir);
	if (access(path, R_OK))
		snprintf(path, sizeof(path), "%s/core.%d", dir, pid);
	EXPECT_TRUE(contains(path, mem, 16));
	EXPECT_FALSE(contains(path, self->r.ring + 2 * self->r.page, 16));
	unlink(path);
	rmdir(dir);
}

/* A pipe keeps a page of the ring after the ring is destroyed. */
TEST_F(ring, vmsplice)
{
	struct iovec iov = { self->r.ring, self->r.page };
	char *copy = malloc(self->r.page);
	int pipefd[2];

	ASSERT_NE(NULL, copy);
	ASSERT_EQ(0, pipe(pipefd));
	self->r.ring[self->r.page - 1] = 0x42;
	ASSERT_EQ((ssize_t)self->r.page, vmsplice(pipefd[1], &iov, 1, 0));
	ASSERT_EQ(0, rp_destroy(self->r.c.fd, RPOST_OBJ_QP, self->r.c.qp));
	ASSERT_EQ(0, munmap(self->r.ring, self->r.size));
	rp_unmap_cq(&self->r.c.cq);
	ASSERT_EQ(0, rp_destroy(self->r.c.fd, RPOST_OBJ_CQ,
				self->r.c.cq.cmd.handle));
	ASSERT_EQ((ssize_t)self->r.page, read(pipefd[0], copy, self->r.page));
	EXPECT_EQ(0x42, copy[self->r.page - 1]);
	close(pipefd[0]);
	close(pipefd[1]);
	free(copy);
}

/* The structs of commands lie in the ring that the commands work on. */
TEST_F(ring, commands_in_the_ring)
{
	struct rpost_poll_cq *poll_cmd = (void *)(self->r.ring + 4 * self->r.page);
	struct rp_send *send = (void *)(self->r.ring + 3 * self->r.page);
	struct rpost_resize_cq *resize = (void *)self->r.ring;
	struct rpost_wc wc;

	*send = rp_empty_send(RPOST_WR_RDMA_WRITE, 5);
	ASSERT_EQ(0, rp_post_send(&self->r.c, send));
	*poll_cmd = (struct rpost_poll_cq) {
		.size = sizeof(*poll_cmd),
		.handle = self->r.c.cq.cmd.handle,
	};
	EXPECT_LE(0, rp_ioctl(self->r.c.fd, RPOST_IOC_POLL_CQ, poll_cmd));
	ASSERT_EQ(1, rp_wait_cq(&self->r.c.cq, &wc));
	EXPECT_EQ(5, wc.wr_id);
	*resize = (struct rpost_resize_cq) {
		.size = sizeof(*resize),
		.handle = self->r.c.cq.cmd.handle,
		.cqe = 2 * self->r.c.cq.cmd.cqe,
	};
	EXPECT_EQ(0, rp_ioctl(self->r.c.fd, RPOST_IOC_RESIZE_CQ, resize));
	/* The command's answer was written to the old ring. */
	EXPECT_EQ(0, resize->cqe & (resize->cqe - 1));
	EXPECT_LT(self->r.size, resize->mmap_size);
}

/* UFFDIO_REGISTER is refused, except for asynchronous write tracking. */
TEST_F(ring, userfaultfd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uintptr_t)self->r.ring, self->r.size },
	};
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)self->r.ring, self->r.size },
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, ioctl(fd, UFFDIO_API, &api));
	reg.mode = UFFDIO_REGISTER_MODE_MISSING;
	EXPECT_EQ(-1, ioctl(fd, UFFDIO_REGISTER, &reg));
	reg.mode = UFFDIO_REGISTER_MODE_MINOR;
	EXPECT_EQ(-1, ioctl(fd, UFFDIO_REGISTER, &reg));
	reg.mode = UFFDIO_REGISTER_MODE_WP;
	EXPECT_EQ(-1, ioctl(fd, UFFDIO_REGISTER, &reg));
	close(fd);

	fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	ASSERT_LE(0, fd);
	/* UFFD_FEATURE_WP_ASYNC, since 6.7 */
	api = (struct uffdio_api) { .api = UFFD_API, .features = 1ull << 15 };
	if (!ioctl(fd, UFFDIO_API, &api) && !ioctl(fd, UFFDIO_REGISTER, &reg)) {
		EXPECT_EQ(0, ioctl(fd, UFFDIO_WRITEPROTECT, &wp));
		EXPECT_EQ(0, works(&self->r));
		self->r.ring[self->r.page] = 1;
		EXPECT_EQ(0, memcmp(self->r.ring, self->r.c.cq.ring, self->r.size));
	}
	close(fd);
	EXPECT_EQ(0, works(&self->r));
}

/* A mapping keeps the file open, and so all of its objects. */
TEST_F(ring, mapping_keeps_the_file)
{
	struct rp_end end;
	long before;

	before = rp_module_number("refcnt");
	ASSERT_EQ(0, rp_end_init(&end));
	close(end.channel);
	close(end.fd);
	EXPECT_LT(before, rp_module_number("refcnt"));
	/* A mapping of a part keeps the file, too. */
	ASSERT_EQ(0, munmap(end.cq.ring, self->r.page));
	EXPECT_LT(before, rp_module_number("refcnt"));
	ASSERT_EQ(0, munmap((char *)end.cq.ring + self->r.page,
			    end.cq.cmd.mmap_size - self->r.page));
	EXPECT_EQ(before, rp_wait_refcnt(before));
}

/* Check in a child which of the rings fork() has mapped. */
static int child_of_fork(FIXTURE_DATA(ring) *self, bool inherits,
			 int hold)
{
	struct rpost_ring *ring = (void *)self->r.ring;
	char byte;

	if (mapped(self->r.c.cq.ring, self->r.page) ||
	    mapped(self->r.ring, self->r.page) != inherits)
		return 2;
	if (!inherits)
		map_again(self);
	ring->head = 0xc0ffee;
	/* Wait until the parent has destroyed the queue. */
	if (read(hold, &byte, 1))
		return 3;
	if (try_map(self->r.c.fd, self->r.offset, self->r.size, RW, MAP_SHARED) !=
	    -ENOENT)
		return 4;
	return ring->head == 0xbead ? 0 : 5;
}

/*
 * A child inherits the open file but not the rings, which it can map.  Some
 * kernels allow MADV_DOFORK, so that the child inherits them; that does no
 * harm.
 */
TEST_F(ring, fork)
{
	bool inherits = !madvise(self->r.ring, self->r.size, MADV_DOFORK);
	struct rpost_ring *ring = (void *)self->r.ring;
	int status = -1, pipefd[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(pipefd[1]);
		_exit(child_of_fork(self, inherits, pipefd[0]));
	}
	while (__atomic_load_n(&ring->head, __ATOMIC_RELAXED) != 0xc0ffee &&
	       !waitpid(pid, &status, WNOHANG))
		usleep(1000);
	ASSERT_EQ(-1, status) TH_LOG("the child ended: %#x", status);
	ASSERT_EQ(0, rp_destroy(self->r.c.fd, RPOST_OBJ_QP, self->r.c.qp));
	ASSERT_EQ(0, rp_destroy(self->r.c.fd, RPOST_OBJ_CQ,
				self->r.c.cq.cmd.handle));
	ring->head = 0xbead;
	ASSERT_EQ(0, munmap(self->r.ring, self->r.size));
	close(pipefd[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(pipefd[0]);
}

TEST_HARNESS_MAIN
