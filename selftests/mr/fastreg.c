// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests both ways to register memory, and what only fast registration has: a
 * size limit, large pages, and a hidden queue pair.  A failure means that a
 * region covers wrong memory, or that pins or queue pairs stay behind.  The
 * module parameter is the host's, so this needs root and no other test beside
 * it.
 */
#include <kselftest_harness.h>
#include <sys/wait.h>

#include "race.h"

#define PARAMETER	"/sys/module/rdma_post/parameters/registration"
#define QP_ERROR	"/sys/module/qp_error/parameters/break"
#define OBJECTS		RP_DEBUGFS "objects"
#define HUGE_PAGE	(2ul << 20)
#define ALL		(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
			 RPOST_ACCESS_REMOTE_READ)

/* ------------------------------------------------- the parameter */

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Read the value without its newline. */
static int get_way(char *way, size_t size)
{
	FILE *f = fopen(PARAMETER, "re");
	int ret = -EIO;

	if (!f)
		return -errno;
	if (fgets(way, size, f)) {
		way[strcspn(way, "\n")] = 0;
		ret = 0;
	}
	fclose(f);
	return ret;
}

static int set_way(const char *way)
{
	return write_text(PARAMETER, way);
}

/* Returns one of the module's counts, or -1. */
static long count(const char *what)
{
	return rp_debug_number("objects", what);
}

FIXTURE(fastreg) {
	size_t page;
	char way[16];
	const char *skip;
	struct rp_end c, s;
	char *mem, *to;
	uint64_t direct_size, size;
};

FIXTURE_SETUP(fastreg)
{
	struct rpost_reg_mr mr;

	self->page = getpagesize();
	if (get_way(self->way, sizeof(self->way)) || set_way("direct")) {
		self->skip = "needs root to set the parameter 'registration'";
		return;
	}
	ASSERT_EQ(0, rp_connect_pair(&self->c, &self->s, 0));
	self->direct_size = rp_max_mr_size(self->c.fd, self->c.device);
	ASSERT_EQ(0, set_way("fast"));
	self->size = rp_max_mr_size(self->c.fd, self->c.device);
	self->mem = rp_pages(16 * self->page);
	self->to = rp_pages(16 * self->page);
	ASSERT_NE(NULL, self->mem);
	ASSERT_NE(NULL, self->to);
	if (rp_reg_mr(self->c.fd, self->c.pd, self->mem, 1, 0, &mr) ==
	    -EOPNOTSUPP) {
		self->skip = "the device has no fast registration";
		return;
	}
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
}

FIXTURE_TEARDOWN(fastreg)
{
	if (self->way[0])
		EXPECT_EQ(0, set_way(self->way));
	if (self->mem) {
		rp_end_close(&self->c);
		rp_end_close(&self->s);
	}
}

static int reg(struct rp_end *end, void *addr, uint64_t length,
	       struct rpost_reg_mr *mr)
{
	return rp_reg_mr(end->fd, end->pd, addr, length, ALL, mr);
}

/* Write from one region to another.  Returns the status or a negative errno. */
static int write_mr(struct rp_end *end, const struct rpost_reg_mr *from,
		    const struct rpost_reg_mr *to, uint64_t offset,
		    uint32_t length)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 1, NULL, length,
				      from->lkey);
	struct rpost_wc wc;
	int ret;

	send.sge.addr = from->iova + offset;
	send.wr.remote_addr = to->iova + offset;
	send.wr.rkey = to->rkey;
	ret = rp_post_send(end, &send);
	if (ret)
		return ret;
	return rp_wait_cq(&end->cq, &wc) == 1 ? (int)wc.status : -ETIME;
}

TEST_F(fastreg, parameter)
{
	static const char * const ways[] = { "auto", "direct", "fast" };
	static const char * const bad[] = { "", "slow", "fas", "faster", "0" };
	char way[16];
	unsigned int i;

	RP_SKIP_IF_SETUP_SAID();
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_EQ(0, set_way(ways[i]));
		ASSERT_EQ(0, get_way(way, sizeof(way)));
		EXPECT_STREQ(ways[i], way);
	}
	/* An empty write is ignored, so begin with the second. */
	for (i = 1; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, set_way(bad[i]))
			TH_LOG("%s", bad[i]);
		ASSERT_EQ(0, get_way(way, sizeof(way)));
		EXPECT_STREQ("fast", way);
	}
}

/* Regions of both kinds work together in one domain. */
TEST_F(fastreg, beside_direct)
{
	struct rpost_reg_mr from, to, direct;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, set_way("direct"));
	if (reg(&self->c, self->mem + self->page, self->page, &direct))
		SKIP(return, "the driver cannot be called directly");
	ASSERT_EQ(0, reg(&self->s, self->to, 2 * self->page, &to));
	ASSERT_EQ(0, set_way("fast"));
	ASSERT_EQ(0, reg(&self->c, self->mem, self->page, &from));
	EXPECT_NE(direct.lkey, from.lkey);

	memset(self->mem, 'f', self->page);
	memset(self->mem + self->page, 'd', self->page);
	ASSERT_EQ(RPOST_WC_SUCCESS,
		  write_mr(&self->c, &from, &to, 0, self->page));
	to.iova += self->page;
	ASSERT_EQ(RPOST_WC_SUCCESS,
		  write_mr(&self->c, &direct, &to, 0, self->page));
	EXPECT_EQ('f', self->to[0]);
	EXPECT_EQ('f', self->to[self->page - 1]);
	EXPECT_EQ('d', self->to[self->page]);
	EXPECT_EQ('d', self->to[2 * self->page - 1]);
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, direct.handle));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, from.handle));
}

/* The hidden queue pair is not an object, and ends with the domain. */
TEST_F(fastreg, domain)
{
	struct rpost_reg_mr mr;
	uint32_t pd;
	int objects, i;

	RP_SKIP_IF_SETUP_SAID();
	objects = rp_num_objects(self->c.fd);
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, rp_alloc_pd(self->c.fd, self->c.device, &pd));
		ASSERT_EQ(0, rp_reg_mr(self->c.fd, pd, self->mem, self->page,
				       ALL, &mr));
		EXPECT_EQ(objects + 2, rp_num_objects(self->c.fd));
		EXPECT_EQ(-EBUSY, rp_destroy(self->c.fd, RPOST_OBJ_PD, pd));
		ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
		ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_PD, pd));
	}
}

/* The peer can write neither before the region nor behind it. */
TEST_F(fastreg, edges)
{
	struct rpost_reg_mr from, to;

	RP_SKIP_IF_SETUP_SAID();
	memset(self->mem, 'e', 4 * self->page);
	ASSERT_EQ(0, reg(&self->c, self->mem, 4 * self->page, &from));
	ASSERT_EQ(0, reg(&self->s, self->to + 100, 2 * self->page, &to));
	from.iova += 100;
	ASSERT_EQ(RPOST_WC_SUCCESS,
		  write_mr(&self->c, &from, &to, 0, 2 * self->page));
	EXPECT_EQ(0, self->to[99]);
	EXPECT_EQ('e', self->to[100]);
	EXPECT_EQ('e', self->to[2 * self->page + 99]);
	EXPECT_EQ(0, self->to[2 * self->page + 100]);
	EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR,
		  write_mr(&self->c, &from, &to, 1, 2 * self->page));
	EXPECT_EQ(0, self->to[2 * self->page + 100]);
}

/* ------------------------------------------------- sizes */

TEST_F(fastreg, too_large)
{
	struct rpost_reg_mr mr;
	long pinned = rp_pinned();
	size_t i, odd;
	char *mem;

	RP_SKIP_IF_SETUP_SAID();
	EXPECT_LE(self->size, self->direct_size);
	if (self->size > 64ul << 20)
		SKIP(return, "the device takes more memory than is tried here");
	mem = rp_pages(self->size + 2 * self->page);
	ASSERT_NE(NULL, mem);
	/*
	 * Huge pages and pages that are neighbors by chance need less entries.
	 */
	madvise(mem, self->size + 2 * self->page, MADV_NOHUGEPAGE);
	for (odd = 0; odd < 2; odd++) {
		for (i = odd; i < self->size / self->page + 2; i += 2)
			mem[i * self->page] = 1;
	}
	EXPECT_EQ(-EMSGSIZE, reg(&self->c, mem, self->size + 1, &mr));
	EXPECT_EQ(-EMSGSIZE, reg(&self->c, mem + 1, self->size, &mr));
	EXPECT_EQ(-EMSGSIZE, reg(&self->c, mem, self->size + 2 * self->page,
				 &mr));
	EXPECT_EQ(pinned, rp_pinned());
	ASSERT_EQ(0, reg(&self->c, mem, self->size, &mr));
	EXPECT_EQ(pinned + (long)self->size, rp_pinned());
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
	ASSERT_EQ(0, reg(&self->c, mem + 1, self->size - 1, &mr));
	ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(pinned, rp_pinned());
}

/* The region is larger than the limit, but has few pieces. */
TEST_F(fastreg, huge_pages)
{
	const size_t bytes = 3 * HUGE_PAGE, odd = 4099;
	struct rpost_reg_mr from, to;
	uint64_t ends[3];
	unsigned int i;
	char *src, *dst;

	RP_SKIP_IF_SETUP_SAID();
	write_text("/proc/sys/vm/nr_hugepages", "6");
	src = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	dst = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (src == MAP_FAILED || dst == MAP_FAILED)
		SKIP(return, "no huge pages to be had");
	memset(dst, 0, bytes);
	for (i = 0; i < bytes; i++)
		src[i] = i * 13 + (i >> 12);
	ASSERT_EQ(0, reg(&self->c, src + odd, bytes - 2 * odd, &from));
	ASSERT_EQ(0, reg(&self->s, dst + odd, bytes - 2 * odd, &to));
	ends[0] = 0;
	ends[1] = HUGE_PAGE - odd - 1000;
	ends[2] = bytes - 2 * odd - 2000;
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		ASSERT_EQ(RPOST_WC_SUCCESS,
			  write_mr(&self->c, &from, &to, ends[i], 2000));
		EXPECT_EQ(0, memcmp(src + odd + ends[i], dst + odd + ends[i],
				    2000));
		EXPECT_EQ(0, dst[odd + ends[i] - 1]);
		EXPECT_EQ(0, dst[odd + ends[i] + 2000]);
	}
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, from.handle));
	EXPECT_EQ(0, rp_destroy(self->s.fd, RPOST_OBJ_MR, to.handle));
	munmap(src, bytes);
	munmap(dst, bytes);
	write_text("/proc/sys/vm/nr_hugepages", "0");
}

/* ------------------------------------------------- many at once */

/* Register and deregister in the domain that all threads share. */
static int step_reg(struct race *r)
{
	struct rpost_reg_mr mr;
	int ret = rp_reg_mr(r->client.fd, r->client.pd, r->mem, 5000, ALL, &mr);

	if (ret)
		return ret;
	return rp_destroy(r->client.fd, RPOST_OBJ_MR, mr.handle);
}

TEST_F(fastreg, threads)
{
	struct worker w[] = { [0 ... 5] = { .step = step_reg, .succeeds = true } };
	struct race r = { .client = self->c, .mem = self->mem };
	int objects;

	RP_SKIP_IF_SETUP_SAID();
	objects = rp_num_objects(self->c.fd);
	EXPECT_EQ(0, run_race(&r, w, ARRAY_SIZE(w), no_change));
	EXPECT_EQ(objects, rp_num_objects(self->c.fd));
}

/* Returns how many queue pairs were broken, or a negative errno. */
static int break_queue_pairs(void)
{
	int broken = -EIO, ret = write_text(QP_ERROR, "1");
	FILE *f;

	if (ret)
		return ret;
	f = fopen(QP_ERROR, "re");
	if (!f)
		return -errno;
	if (fscanf(f, "%d", &broken) != 1)
		broken = -EIO;
	fclose(f);
	return broken;
}

static int break_again(struct race *r)
{
	int ret = break_queue_pairs();

	if (ret > 0)
		r->waits = false;
	return ret < 0 ? ret : 0;
}

/* The queue pair fails between registrations and during them. */
TEST_F(fastreg, queue_pair_in_error)
{
	struct rpost_reg_mr from, to;
	/* A registration fails if its queue pair fails twice. */
	struct worker w[] = {
		[0 ... 2] = { .step = step_reg, .errors = { -EIO }, .succeeds = true },
	};
	struct race r = { .client = self->c, .mem = self->mem, .waits = true };
	int i;

	RP_SKIP_IF_SETUP_SAID();
	if (access(QP_ERROR, W_OK))
		SKIP(return, "the test module qp_error is not loaded");
	ASSERT_EQ(0, reg(&self->s, self->to, self->page, &to));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(0, reg(&self->c, self->mem, self->page, &from));
		EXPECT_LE(1, break_queue_pairs());
		/* Existing regions still work. */
		memset(self->mem, 'a' + i, self->page);
		ASSERT_EQ(RPOST_WC_SUCCESS,
			  write_mr(&self->c, &from, &to, 0, self->page));
		EXPECT_EQ('a' + i, self->to[self->page - 1]);
		ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, from.handle));
	}

	EXPECT_EQ(0, run_race(&r, w, ARRAY_SIZE(w), break_again));
	ASSERT_EQ(0, reg(&self->c, self->mem, self->page, &from));
	RP_SKIP_UNMET(!r.waits, "no queue pair failed");
}

/* A child registers its own memory in its parent's domain until killed. */
TEST_F(fastreg, killed_child)
{
	struct race r = { .client = self->c, .mem = self->mem };
	struct rpost_reg_mr mr;
	int objects, pipes[2], i, status;
	char byte;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	objects = rp_num_objects(self->c.fd);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, pipe(pipes));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			if (step_reg(&r) || write(pipes[1], "x", 1) != 1)
				_exit(1);
			while (!step_reg(&r))
				;
			_exit(2);
		}
		ASSERT_EQ(1, read(pipes[0], &byte, 1));
		usleep(i * 300);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		close(pipes[0]);
		close(pipes[1]);
		/* Its last region may stay, since the file is shared. */
		ASSERT_EQ(0, reg(&self->c, self->mem, 100, &mr));
		ASSERT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, mr.handle));
	}
	EXPECT_GE(objects + 10, rp_num_objects(self->c.fd));
}

/* Killed children with files of their own leave nothing behind. */
TEST_F(fastreg, killed_processes)
{
	long pinned = count("pinned_pages"), pds = count("pd");
	struct race r = { .mem = self->mem };
	uint64_t end;
	pid_t pids[8];
	unsigned int i, rounds = 0;
	int pipefd[2];
	char byte = 0;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, pipe(pipefd));
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = fork();
		ASSERT_LE(0, pids[i]);
		if (pids[i])
			continue;
		while (!rp_end_init(&r.client) && !step_reg(&r)) {
			rp_end_close(&r.client);
			if (!rounds++)
				CHILD_CHECK(write(pipefd[1], &byte, 1) == 1);
		}
		_exit(1);
	}
	/* Each child has begun its second round. */
	for (i = 0; i < ARRAY_SIZE(pids); i++)
		ASSERT_EQ(1, read(pipefd[0], &byte, 1));
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		EXPECT_EQ(0, waitpid(pids[i], NULL, WNOHANG));
		ASSERT_EQ(0, kill(pids[i], SIGKILL));
		ASSERT_EQ(pids[i], waitpid(pids[i], NULL, 0));
	}
	close(pipefd[0]);
	close(pipefd[1]);
	if (pds < 0)
		SKIP(return, "cannot read " OBJECTS);
	end = rp_now_ms() + TEST_TIMEOUT_MS;
	while ((count("pd") != pds || count("pinned_pages") != pinned) &&
	       rp_now_ms() < end)
		usleep(1000);
	EXPECT_EQ(pds, count("pd"));
	EXPECT_EQ(pinned, count("pinned_pages"));
}

/* ------------------------------------------------- the device goes away */

TEST_F(fastreg, removal)
{
	struct rpost_reg_mr mr;
	struct worker w[] = {
		[0 ... 3] = { .step = step_reg, .errors = { -ENODEV }, .succeeds = true },
	};
	struct race r = { .client = self->c, .mem = self->mem };
	unsigned int i;

	RP_SKIP_IF_SETUP_SAID();
	RP_NEED_REMOVAL();
	ASSERT_EQ(0, reg(&self->c, self->mem, self->page, &mr));
	EXPECT_EQ(0, run_over_removal(&r, w, ARRAY_SIZE(w)));
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		EXPECT_LT(0, w[i].good);
		EXPECT_LT(0, w[i].bad);
	}
	EXPECT_EQ(-ENODEV, reg(&self->c, self->mem, self->page, &mr));
	EXPECT_EQ(0, count("pinned_pages"));
	EXPECT_EQ(0, rp_add_device());
}

TEST_HARNESS_MAIN
