// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests registered memory that others use at the same time: direct I/O, pipes,
 * userfaultfd, and threads that change mappings.  A failure means that data is
 * wrong, that a kill hangs, or that memory does not come back.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "kernel_release.h"
#include "mapping.h"
#include "memory.h"

#define RACE_MS		300
#define FILE_BYTES	(64 << 10)

FIXTURE(io) {
	struct memory m;
	size_t page;
	unsigned char *p;	/* FILE_BYTES, registered */
	struct rpost_reg_mr mr;
};

FIXTURE_SETUP(io)
{
	self->page = getpagesize();
	ASSERT_EQ(0, memory_init(&self->m));
	self->p = rp_pages(FILE_BYTES);
	ASSERT_NE(NULL, self->p);
	memset(self->p, 'o', FILE_BYTES);
	ASSERT_EQ(0, reg(&self->m, self->p, FILE_BYTES, WRITE, &self->mr));
}

FIXTURE_TEARDOWN(io)
{
	EXPECT_EQ(0, memory_exit(&self->m));
	munmap(self->p, FILE_BYTES);
}

/* ----------------------------------------------------------- direct I/O */

struct direct {
	int fd;
	unsigned char *p;
	unsigned long rounds;
	bool wrong, stop;
};

/* Read the first half of the file into the first half of the memory. */
static void *read_direct(void *arg)
{
	struct direct *d = arg;

	while (!__atomic_load_n(&d->stop, __ATOMIC_RELAXED) && !d->wrong) {
		if (pread(d->fd, d->p, FILE_BYTES / 2, 0) != FILE_BYTES / 2 ||
		    !all_bytes(d->p, FILE_BYTES / 2, 'f'))
			d->wrong = true;
		__atomic_fetch_add(&d->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Returns a file of 'f', open for direct I/O, or -1. */
static int direct_file(const char *dir)
{
	char path[256];
	void *block;
	int fd;

	snprintf(path, sizeof(path), "%s/rdma_post.XXXXXX", dir);
	fd = mkostemp(path, O_DIRECT);
	if (fd < 0)
		return -1;
	unlink(path);
	block = rp_pages(FILE_BYTES);
	memset(block, 'f', FILE_BYTES);
	if (pwrite(fd, block, FILE_BYTES, 0) != FILE_BYTES) {
		close(fd);
		fd = -1;
	}
	munmap(block, FILE_BYTES);
	return fd;
}

/* A disk and the device use the same pages at the same time. */
static void both_at_once(struct __test_metadata *_metadata,
			 FIXTURE_DATA(io) *self, int fd)
{
	uint64_t end = rp_now_ms() + RACE_MS;
	uint64_t last = rp_now_ms() + TEST_CHANCE_MS;
	struct direct d = { .fd = fd, .p = self->p };
	struct memory *m = &self->m;
	unsigned char *copy = rp_pages(self->page);
	pthread_t thread;
	size_t half = FILE_BYTES / 2, at;

	/* Read once before, so that the whole half has the file's data. */
	ASSERT_EQ(half, (size_t)pread(fd, self->p, half, 0));
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_direct, &d));
	while (rp_now_ms() < end ||
	       (__atomic_load_n(&d.rounds, __ATOMIC_RELAXED) < 10 &&
		rp_now_ms() < last)) {
		ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &self->mr, 0, BUF));
		EXPECT_TRUE(all_bytes(m->buf, BUF, 'f'));
		ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, half, BUF));
		/*
		 * Write the data that the device has brought to the disk, and
		 * read it.
		 */
		at = half + rp_now_ms() % 8 * self->page;
		ASSERT_EQ(self->page, (size_t)pwrite(fd, self->p + half,
						     self->page, at));
		ASSERT_EQ(self->page, (size_t)pread(fd, copy, self->page, at));
		EXPECT_EQ(0, memcmp(copy, m->buf, self->page));
	}
	__atomic_store_n(&d.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_FALSE(d.wrong);
	EXPECT_LE(1, d.rounds);
	munmap(copy, self->page);
}

TEST_F(io, direct_disk)
{
	const char *dir = getenv("RPOST_TEST_DIR");
	int fd = dir ? direct_file(dir) : -1;

	if (fd < 0)
		SKIP(return, "RPOST_TEST_DIR is no directory for direct I/O");
	both_at_once(_metadata, self, fd);
	close(fd);
}

TEST_F(io, direct_tmpfs)
{
	int fd = direct_file("/dev/shm");

	if (fd < 0)
		SKIP(return, "no direct I/O on /dev/shm");
	both_at_once(_metadata, self, fd);
	close(fd);
}

/* ---------------------------------------------------------------- pipes */

/* Pages in a pipe, given away or not, stay the region's until it ends. */
TEST_F(io, pipes)
{
	struct iovec iov = { self->p, 4 * self->page };
	struct memory *m = &self->m;
	const unsigned int flags[] = { 0, SPLICE_F_GIFT };
	unsigned char *copy = malloc(self->page);
	int a[2], b[2], fd;
	unsigned int i;

	ASSERT_NE(NULL, copy);
	ASSERT_EQ(0, pipe(a));
	ASSERT_EQ(0, pipe(b));
	fd = kind_memfd(4 * self->page, 0);
	for (i = 0; i < 2; i++) {
		memset(self->p, 'v', 4 * self->page);
		ASSERT_EQ(4 * self->page, (size_t)vmsplice(a[1], &iov, 1,
							   flags[i]));
		ASSERT_EQ(2 * self->page, (size_t)tee(a[0], b[1],
						      2 * self->page, 0));
		ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, self->page));
		/* The pipe holds the page itself. */
		ASSERT_EQ(self->page, (size_t)read(b[0], copy, self->page));
		EXPECT_EQ(0, memcmp(copy, m->buf, self->page));
		ASSERT_EQ(self->page, (size_t)read(b[0], copy, self->page));
		EXPECT_TRUE(all_bytes(copy, self->page, 'v'));
		/* Splice to a file, which may move the pages or copy them. */
		ASSERT_EQ(4 * self->page,
			  (size_t)splice(a[0], NULL, fd, (loff_t[1]){ 0 },
					 4 * self->page, SPLICE_F_MOVE));
		ASSERT_EQ(self->page, (size_t)pread(fd, copy, self->page, 0));
		EXPECT_EQ(0, memcmp(copy, m->buf, self->page));
		/* The region still works, and the file keeps its data. */
		ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &self->mr, 0, self->page));
		EXPECT_EQ(0, memcmp(self->p, m->buf, self->page));
		ASSERT_EQ(1, pread(fd, copy, 1, 3 * self->page));
		EXPECT_EQ('v', copy[0]);
	}
	/* The pages stay in the pipe after the region has ended. */
	ASSERT_EQ(4 * self->page, (size_t)vmsplice(a[1], &iov, 1, 0));
	ASSERT_EQ(0, dereg(m, &self->mr));
	ASSERT_EQ(self->page, (size_t)read(a[0], copy, self->page));
	EXPECT_EQ(0, memcmp(copy, self->p, self->page));
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
	close(fd);
	free(copy);
}

/* ----------------------------------------------------------- userfaultfd */

#define WAITS_NOT	"no userfaultfd, or pinning does not wait for it"

/* Fill missing pages with 'u' until the thread is cancelled. */
static void *fill_pages(void *arg)
{
	size_t page = getpagesize();
	unsigned char *from = rp_pages(page);
	struct uffdio_copy copy = { .len = page };
	struct uffd_msg msg;
	int fd = *(int *)arg;

	memset(from, 'u', page);
	while (read(fd, &msg, sizeof(msg)) == sizeof(msg)) {
		copy.src = (uintptr_t)from;
		copy.dst = msg.arg.pagefault.address & ~(uint64_t)(page - 1);
		ioctl(fd, UFFDIO_COPY, &copy);
	}
	return NULL;
}

/* The registration waits for pages that the program fills in. */
TEST_F(io, faults_of_the_program)
{
	const size_t bytes = 8 * self->page;
	unsigned char *p = rp_pages(bytes);
	int fd = fault_fd(p, bytes, 0);
	struct memory *m = &self->m;
	struct rpost_reg_mr mr;
	pthread_t thread;

	if (fd < 0 || pins_by_force())
		SKIP(return, WAITS_NOT);
	ASSERT_EQ(0, pthread_create(&thread, NULL, fill_pages, &fd));
	ASSERT_EQ(0, reg(m, p, bytes, WRITE, &mr));
	ASSERT_EQ(RPOST_WC_SUCCESS, get(m, &mr, 3 * self->page, BUF));
	EXPECT_TRUE(all_bytes(m->buf, BUF, 'u'));
	ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &mr, 3 * self->page, BUF));
	EXPECT_EQ(0, memcmp(m->buf, p + 3 * self->page, BUF));
	ASSERT_EQ(0, dereg(m, &mr));
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	close(fd);
	munmap(p, bytes);
}

/* Without faults of the kernel, a missing page is an invalid address. */
TEST_F(io, faults_of_users_only)
{
	unsigned char *p = rp_pages(self->page);
	int fd = fault_fd(p, self->page, UFFD_USER_MODE_ONLY);
	struct rpost_reg_mr mr;

	if (fd < 0)
		SKIP(return, "no userfaultfd for users");
	EXPECT_EQ(-EFAULT, reg(&self->m, p, self->page, WRITE, &mr));
	EXPECT_EQ(-EFAULT, rp_ioctl(self->m.s.fd, RPOST_IOC_QUERY, p));
	close(fd);
	munmap(p, self->page);
}

/* Report that a fault waits, and leave it waiting. */
static void *tell_of_fault(void *arg)
{
	const int *fds = arg;
	struct uffd_msg msg;
	int n;

	if (read(fds[0], &msg, sizeof(msg)) != sizeof(msg))
		_exit(1);
	/* Other commands on the file still work. */
	n = rp_num_objects(fds[2]);
	if (write(fds[1], &n, sizeof(n)) != sizeof(n))
		_exit(1);
	return NULL;
}

static void register_for_ever(int pipefd)
{
	size_t page = getpagesize();
	unsigned char *p = rp_pages(2 * page);
	struct rpost_reg_mr mr;
	struct rp_end end;
	pthread_t thread;
	int fds[3];

	if (rp_end_init(&end))
		_exit(1);
	fds[0] = fault_fd(p + page, page, 0);
	fds[1] = pipefd;
	fds[2] = end.fd;
	if (pthread_create(&thread, NULL, tell_of_fault, fds))
		_exit(1);
	rp_reg_mr(end.fd, end.pd, p, 2 * page, WRITE, &mr);
	_exit(1);
}

TEST_F(io, killed_in_a_fault)
{
	int fd = fault_fd(self->p, self->page, 0);
	int pipefd[2], status = 0, n = -1;
	long refcnt;
	pid_t pid;

	if (fd < 0 || pins_by_force())
		SKIP(return, WAITS_NOT);
	close(fd);
	refcnt = rp_module_number("refcnt");
	ASSERT_EQ(0, pipe(pipefd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		register_for_ever(pipefd[1]);
	close(pipefd[1]);
	ASSERT_EQ(sizeof(n), (size_t)read(pipefd[0], &n, sizeof(n)));
	EXPECT_LE(2, n);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_EQ(refcnt, rp_wait_refcnt(refcnt));
	close(pipefd[0]);
}

/* -------------------------------------- memory that changes meanwhile */

TEST_F(io, changed_while_registered)
{
	uint64_t end = rp_now_ms() + RACE_MS;
	uint64_t last = rp_now_ms() + TEST_CHANCE_MS;
	struct change c = { .p = rp_pages(8 * self->page),
			    .page = self->page };
	unsigned int good = 0, bad = 0;
	struct memory *m = &self->m;
	struct rpost_reg_mr mr;
	pthread_t thread;
	int ret;

	ASSERT_EQ(0, pthread_create(&thread, NULL, change_mappings, &c));
	while (rp_now_ms() < end ||
	       ((!good || !bad || !__atomic_load_n(&c.rounds, __ATOMIC_RELAXED)) &&
		rp_now_ms() < last)) {
		ret = reg(m, c.p, 8 * self->page, WRITE, &mr);
		if (ret) {
			ASSERT_EQ(-EFAULT, ret);
			bad++;
			continue;
		}
		good++;
		/* Whatever was changed, the region works as a whole. */
		ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &mr, 2 * self->page, BUF));
		ASSERT_EQ(0, dereg(m, &mr));
	}
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_LT(0, c.rounds);
	munmap(c.p, 8 * self->page);
	RP_SKIP_UNMET(good && bad, "%u good, %u bad", good, bad);
}

struct exchange {
	unsigned char *p;
	size_t bytes;
	int fd;
	unsigned long rounds;
	bool stop;
};

/* Map a file and anonymous memory in turn. */
static void *exchange_mappings(void *arg)
{
	struct exchange *e = arg;

	while (!__atomic_load_n(&e->stop, __ATOMIC_RELAXED)) {
		mmap(e->p, e->bytes, RW, MAP_SHARED | MAP_FIXED, e->fd, 0);
		sched_yield();
		mmap(e->p, e->bytes, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		sched_yield();
		__atomic_fetch_add(&e->rounds, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * Pages of a file on disk never get into a region that can be written to, not even if
 * they are mapped while others of the region are pinned.
 */
TEST_F(io, file_exchanged_for_memory)
{
	uint64_t last = rp_now_ms() + TEST_CHANCE_MS, end = rp_now_ms() + RACE_MS;
	const size_t most = 1024 * self->page, bytes = 2 * self->page;
	unsigned char *p = rp_pages(most + bytes), *copy = malloc(bytes);
	struct exchange e = { .bytes = bytes };
	unsigned int good = 0, bad = 0;
	size_t before = most;
	struct memory *m = &self->m;
	struct rpost_reg_mr mr;
	pthread_t thread;
	int ret;

	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, copy);
	e.fd = kind_file(bytes);
	if (e.fd < 0)
		SKIP(return, "RPOST_TEST_DIR is not set");
	while ((ret = reg(m, p, before + bytes, WRITE, &mr)) == -EMSGSIZE)
		before /= 2;
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, dereg(m, &mr));
	e.p = p + before;
	ASSERT_EQ(0, pthread_create(&thread, NULL, exchange_mappings, &e));
	while (rp_now_ms() < end || ((!good || !bad) && rp_now_ms() < last)) {
		ret = reg(m, p, before + bytes, WRITE, &mr);
		if (ret) {
			ASSERT_EQ(-EFAULT, ret);
			bad++;
			continue;
		}
		good++;
		ASSERT_EQ(RPOST_WC_SUCCESS, put(m, &mr, before, BUF));
		ASSERT_EQ(BUF, pread(e.fd, copy, BUF, 0));
		EXPECT_NE(0, memcmp(copy, m->buf, BUF));
		ASSERT_EQ(0, dereg(m, &mr));
	}
	__atomic_store_n(&e.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_LT(0, e.rounds);
	munmap(p, most + bytes);
	free(copy);
	close(e.fd);
	RP_SKIP_UNMET(good && bad, "%u good, %u bad", good, bad);
}

/* ------------------------------------------------ memory comes back */

/* Register memory in few pieces.  Returns their number, or 0. */
static unsigned int reg_all(struct memory *m, unsigned char *p, size_t bytes,
			    struct rpost_reg_mr *mrs, unsigned int max)
{
	uint64_t most = rp_max_mr_size(m->s.fd, m->s.device);
	size_t piece = most < bytes ? most : bytes, done;
	unsigned int n = 0;

	for (done = 0; done < bytes; done += piece) {
		if (piece > bytes - done)
			piece = bytes - done;
		if (n == max || reg(m, p + done, piece, WRITE, &mrs[n++]))
			return 0;
	}
	return n;
}

static long available_kb(void)
{
	return proc_number("/proc/meminfo", "MemAvailable");
}

/* Wait until the available memory changes little within a second. */
static long settled_kb(void)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long before, now = available_kb();

	do {
		before = now;
		usleep(1000000);
		now = available_kb();
	} while (labs(now - before) > now / 512 && rp_now_ms() < end);
	return now;
}

/* Register much more memory than may be missing afterwards. */
TEST_F(io, comes_back)
{
	long kb = settled_kb(), left, after;
	struct memory *m = &self->m;
	uint64_t end;
	struct rpost_reg_mr mrs[64];
	unsigned int i, j, n;
	unsigned char *p;
	size_t bytes;

	ASSERT_LT(0, kb);
	bytes = ((size_t)kb < (1 << 19) ? kb / 8 : 1 << 16) * 1024 &
		~(self->page - 1);
	for (i = 0; i < 6; i++) {
		p = rp_pages(bytes);
		ASSERT_NE(NULL, p);
		n = reg_all(m, p, bytes, mrs, ARRAY_SIZE(mrs));
		ASSERT_LT(0, n);
		EXPECT_LE((long)bytes, rp_pinned());
		ASSERT_EQ(0, munmap(p, bytes));
		/* The memory is still pinned, and not available. */
		if (!i) {
			left = available_kb();
			EXPECT_LT(left, kb - (long)(bytes / 1024) / 2);
		}
		for (j = 0; j < n; j++) {
			ASSERT_EQ(0, dereg(m, &mrs[j]));
		}
	}
	end = rp_now_ms() + TEST_TIMEOUT_MS;
	do {
		after = available_kb();
	} while (after <= kb - (long)(bytes / 1024) && rp_now_ms() < end &&
		 !usleep(10000));
	EXPECT_GT(after, kb - (long)(bytes / 1024));
}

TEST_HARNESS_MAIN
