// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that commands withstand arguments that change while the kernel reads
 * them.  Another thread changes them at full speed, or userfaultfd(2) stops the
 * kernel while it copies.  A failure means that a command reads an argument
 * twice, or writes beyond the size that it was given first.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "command_env.h"
#include "path.h"

#define FLIP_MS		30	/* for each command */
#define FLIP_CALLS	200	/* at most, for each command */
#define CANARY		64

/* ------------------------------------------------------------ flipped */

/* A thread that changes and restores one word of a struct at a time. */
struct flipper {
	pthread_t thread;
	uint32_t *words;
	uint32_t num;
	uint32_t good[MAX_STRUCT / 4];
	bool stop;
};

static void *flip(void *arg)
{
	struct flipper *f = arg;
	const uint32_t nasty[] = {
		0, 1, 2, 7, 8, 16, f->num * 4 - 4, f->num * 4 + 4, 4095, 4096,
		65536, 65537, 0x7fffffff, 0x80000000, 0xfffffff8, UINT32_MAX,
	};
	uint32_t x = 1, i, n;

	while (!__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		x = x * 1664525 + 1013904223;
		i = (x >> 8) % f->num;
		n = (x >> 20) % (ARRAY_SIZE(nasty) + 4);
		__atomic_store_n(&f->words[i],
				 n < ARRAY_SIZE(nasty) ? nasty[n] :
				 f->good[i] ^ 1u << (x & 31), __ATOMIC_RELAXED);
		for (n = 0; n < (x >> 28) * 8; n++)
			__asm__ volatile("" ::: "memory");
		__atomic_store_n(&f->words[i], f->good[i], __ATOMIC_RELAXED);
	}
	return NULL;
}

/* True for errors of rdma_post_abi.h and of the connection manager. */
static bool documented(int ret)
{
	const int fine[] = {
		0, EINVAL, E2BIG, EOPNOTSUPP, ENOENT, EOVERFLOW, ENOTCONN,
		EBUSY, ENOMEM, EMFILE, ENODEV, EBADF, EFAULT, EPERM, EACCES,
		EAGAIN, EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, ENETUNREACH,
		EHOSTUNREACH, EMSGSIZE, ENOBUFS,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fine); i++) {
		if (ret == -fine[i])
			return true;
	}
	return false;
}

/* One command, until its time is over: how many calls succeeded and failed. */
static void flip_row(struct __test_metadata *_metadata, const struct command *row,
		     unsigned int *good, unsigned int *bad)
{
	static uint32_t arena[1024] __attribute__((aligned(64)));
	char *canary = (char *)arena + row->size;
	struct flipper f = { .words = arena, .num = row->size / 4 };
	uint64_t until;
	struct env env;
	int i, base, ret;

	ASSERT_GE(sizeof(f.good), row->size);
	ASSERT_EQ(0, env_init(&env));
	base = dup(env.end.fd);
	ASSERT_LE(0, base);
	memset(canary, 0xa5, CANARY);
	ASSERT_EQ(0, env_fill(&env, row, f.good));
	ASSERT_EQ(0, pthread_create(&f.thread, NULL, flip, &f));
	until = rp_now_ms() + FLIP_MS;
	for (i = 0; i < FLIP_CALLS && rp_now_ms() < until; i++) {
		memcpy(arena, f.good, row->size);
		ret = rp_ioctl(env_fd(&env, row), row->nr, arena);
		EXPECT_TRUE(ret == row->want || documented(ret))
			TH_LOG("%s: %d", row->name, ret);
		if (ret == row->want)
			++*good;
		else
			++*bad;
		/* Close the descriptors that the command has created. */
		syscall(SYS_close_range, base + 1, ~0u, 0);
	}
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(f.thread, NULL));
	for (i = 0; i < CANARY; i++)
		ASSERT_EQ((char)0xa5, canary[i])
			TH_LOG("%s wrote at %d behind its struct", row->name, i);
	close(base);
	env_close(&env);
}

FIXTURE(flipped) {
};

FIXTURE_SETUP(flipped)
{
	(void)self;
}

FIXTURE_TEARDOWN(flipped)
{
	(void)self;
}

/*
 * Another thread changes each word of each command's struct while the command
 * runs.  Each call must succeed or end with a documented error, must not write
 * behind the struct, and must leave no object behind.
 */
TEST_F(flipped, all_commands)
{
	unsigned int good = 0, bad = 0;
	const struct command *row;

	for_each_command(row)
		flip_row(_metadata, row, &good, &bad);
	EXPECT_LT(0, good);
	EXPECT_LT(0, bad);
	TH_LOG("%u calls as asked, %u with another result", good, bad);
}

/* ------------------------------------- commands that are stopped */

/*
 * Two pages and a thread that calls one command on them.  The first read of the
 * second page stops the thread; if the page is write-protected, the first write
 * does.
 */
FIXTURE(stopped) {
	struct env env;
	size_t page;
	char *area;
	char *copy;	/* next contents of the second page */
	int uffd;
	pthread_t thread;
	int fd;
	unsigned long nr;
	void *arg;
	int ret;
};

FIXTURE_SETUP(stopped)
{
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register reg = {
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};

	self->page = getpagesize();
	self->area = rp_pages(2 * self->page);
	self->copy = rp_pages(self->page);
	ASSERT_NE(NULL, self->area);
	ASSERT_NE(NULL, self->copy);
	memset(self->area, 0, self->page);
	ASSERT_EQ(0, env_init(&self->env));
	self->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (self->uffd < 0)
		SKIP(return, "no userfaultfd for faults in the kernel");
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_API, &api));
	reg.range.start = (uintptr_t)self->area + self->page;
	reg.range.len = self->page;
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_REGISTER, &reg));
}

FIXTURE_TEARDOWN(stopped)
{
	if (self->uffd >= 0)
		close(self->uffd);
	env_close(&self->env);
	munmap(self->area, 2 * self->page);
	munmap(self->copy, self->page);
}

static void *call(void *arg)
{
	FIXTURE_DATA(stopped) *self = arg;

	self->ret = rp_ioctl(self->fd, self->nr, self->arg);
	return NULL;
}

/* Start a command; return 0 once it has stopped at the second page. */
static int stop_in(FIXTURE_DATA(stopped) *self, int fd, unsigned long nr,
		   void *arg)
{
	struct pollfd pfd = { .fd = self->uffd, .events = POLLIN };
	struct uffd_msg msg;

	self->fd = fd;
	self->nr = nr;
	self->arg = arg;
	self->ret = 1;
	if (pthread_create(&self->thread, NULL, call, self))
		return -EAGAIN;
	if (poll(&pfd, 1, TEST_TIMEOUT_MS) != 1 ||
	    read(self->uffd, &msg, sizeof(msg)) != sizeof(msg))
		return -ETIME;
	return msg.event == UFFD_EVENT_PAGEFAULT ? 0 : -EPROTO;
}

/* Fill the second page from @copy. */
static int put_copy(FIXTURE_DATA(stopped) *self, uint64_t mode)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)self->area + self->page,
		.src = (uintptr_t)self->copy,
		.len = self->page,
		.mode = mode,
	};

	return ioctl(self->uffd, UFFDIO_COPY, &copy) ? -errno : 0;
}

/* Fill the second page from @copy, and return the command's result. */
static int go_on(FIXTURE_DATA(stopped) *self)
{
	int ret = put_copy(self, 0);

	if (ret)
		return ret;
	pthread_join(self->thread, NULL);
	return self->ret;
}

static int protect(FIXTURE_DATA(stopped) *self, bool on)
{
	struct uffdio_writeprotect wp = {
		.range = { (uintptr_t)self->area + self->page, self->page },
		.mode = on ? UFFDIO_WRITEPROTECT_MODE_WP : 0,
	};

	return ioctl(self->uffd, UFFDIO_WRITEPROTECT, &wp) ? -errno : 0;
}

/* Discard the second page, so that the next access stops again. */
static void forget(FIXTURE_DATA(stopped) *self)
{
	madvise(self->area + self->page, self->page, MADV_DONTNEED);
}

/*
 * The size and the flags change after the command has read them and before it
 * reads the rest.  The command must use the first values and write no further.
 */
TEST_F(stopped, size_and_flags)
{
	const uint32_t sizes[] = { 0, 65536, 8, UINT32_MAX, 4096 };
	const struct command *row;
	uint32_t cmd[128], *head;
	unsigned int i, k, first;

	for_each_command(row) {
		/* Two of them, by turns. */
		first = _IOC_NR(row->nr) % 4;
		for (k = first; k <= first + 1; k++) {
			ASSERT_EQ(0, env_fill(&self->env, row, cmd));
			head = (uint32_t *)(self->area + self->page) - 2;
			memcpy(head, cmd, 8);
			memset(self->copy, 0xa5, self->page);
			memcpy(self->copy, cmd + 2, row->size - 8);
			forget(self);
			ASSERT_EQ(0, stop_in(self, env_fd(&self->env, row),
					     row->nr, head))
				TH_LOG("%s", row->name);
			head[0] = sizes[k];
			head[1] = UINT32_MAX;
			EXPECT_EQ(row->want, go_on(self))
				TH_LOG("%s, then size %u", row->name, sizes[k]);
			for (i = row->size - 8; i < self->page - 8; i++)
				ASSERT_EQ((char)0xa5,
					  self->area[self->page + i])
					TH_LOG("%s wrote at %u", row->name, i);
			/* Close channels; objects end with the file. */
			syscall(SYS_close_range, self->uffd + 1, ~0u, 0);
		}
	}
}

/*
 * A command that creates an object is stopped while it writes its answer.  A
 * program can guess the new handle, but using it must be ENOENT for all types
 * until the command has succeeded.
 */
TEST_F(stopped, in_the_answer)
{
	uint32_t cmd[128], *arg, last, type, handle;
	struct rp_end *end = &self->env.end;
	const struct command *row;
	int objects;

	for_each_command(row) {
		if (!made_object(row))
			continue;
		ASSERT_EQ(0, env_fill(&self->env, row, cmd));
		ASSERT_EQ(0, rp_alloc_pd(end->fd, end->device, &last));
		ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_PD, last));
		objects = rp_num_objects(end->fd);
		memcpy(self->copy, cmd, row->size);
		forget(self);
		arg = (uint32_t *)(self->area + self->page);
		/* The command reads the page and stops when it writes to it. */
		ASSERT_EQ(0, put_copy(self, UFFDIO_COPY_MODE_WP));
		ASSERT_EQ(0, stop_in(self, env_fd(&self->env, row), row->nr,
				     arg))
			TH_LOG("%s", row->name);
		for (handle = last + 1; handle < last + 4; handle++) {
			for (type = RPOST_OBJ_PD; type <= RPOST_OBJ_AH; type++)
				EXPECT_EQ(-ENOENT, rp_destroy(end->fd, type,
							      handle))
					TH_LOG("%s", row->name);
		}
		ASSERT_EQ(0, protect(self, false));
		ASSERT_EQ(0, pthread_join(self->thread, NULL));
		EXPECT_EQ(0, self->ret)
			TH_LOG("%s", row->name);
		EXPECT_EQ(objects + 1, rp_num_objects(end->fd))
			TH_LOG("%s", row->name);
	}
}

/*
 * A command stops in its answer, and the program closes the file before the
 * command goes on.  The command must succeed, and the object ends with the file.
 */
TEST_F(stopped, closed_in_the_answer)
{
	const struct command *row;
	uint32_t cmd[128], *arg;
	struct env env;

	for_each_command(row) {
		if (!made_object(row))
			continue;
		ASSERT_EQ(0, env_init(&env));
		ASSERT_EQ(0, env_fill(&env, row, cmd));
		memcpy(self->copy, cmd, row->size);
		forget(self);
		arg = (uint32_t *)(self->area + self->page);
		ASSERT_EQ(0, put_copy(self, UFFDIO_COPY_MODE_WP));
		ASSERT_EQ(0, stop_in(self, env_fd(&env, row), row->nr, arg));
		env_close(&env);
		ASSERT_EQ(0, protect(self, false));
		ASSERT_EQ(0, pthread_join(self->thread, NULL));
		EXPECT_EQ(0, self->ret)
			TH_LOG("%s", row->name);
	}
}

/*
 * The header of a path changes after the command has read it and before it
 * reads the path record.  The command must use the first contents.
 */
TEST_F(stopped, in_a_path)
{
	struct rp_end c = self->env.end;
	struct ib_path_rec_data data;
	struct rpost_set_option cmd;
	struct rpost_ah_attr addr;
	const size_t first = offsetof(struct ib_path_rec_data, path_rec);
	char *start = self->area + self->page - first;

	ASSERT_EQ(0, rp_own_addr(&c, &addr));
	ASSERT_EQ(0, rp_client_addr(&c, 4711));
	rp_pack_path(&data, addr.dgid, addr.dgid);
	memcpy(start, &data, first);
	memcpy(self->copy, data.path_rec, sizeof(data) - first);
	forget(self);
	cmd = (struct rpost_set_option) {
		.size = sizeof(cmd),
		.id = c.id,
		.level = RPOST_OPTION_IB,
		.option = RPOST_OPTION_IB_PATH,
		.data = (uintptr_t)start,
		.data_len = sizeof(data),
	};
	ASSERT_EQ(0, stop_in(self, c.fd, RPOST_IOC_SET_OPTION, &cmd));
	memset(start, 0, first);
	cmd.data_len = UINT32_MAX;
	EXPECT_EQ(0, go_on(self));
	EXPECT_EQ(0, rp_expect(c.channel, c.id, RPOST_EVENT_ROUTE_RESOLVED));
	/* The changed contents are not a valid path. */
	ASSERT_EQ(0, rp_client_addr(&c, 4711));
	EXPECT_EQ(-EINVAL, rp_set_path(&c, start, sizeof(data)));
}

/* ------------------------------------------------- stopped in a post */

/*
 * A post of two writes is stopped between them.  Changes to a work request that
 * was copied must have no effect, and a post must not use objects that were
 * destroyed meanwhile.
 */
struct two {
	struct rp_send first, second;
};

static struct two two_writes(struct rpost_reg_mr *mr, struct rpost_reg_mr *to)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 1,
				      (void *)(uintptr_t)mr->addr, 8, mr->lkey);

	send.wr.remote_addr = to->addr;
	send.wr.rkey = to->rkey;
	return (struct two) { send, send };
}

/* A post, whose last work request is in the next page, and @more before. */
static struct rpost_post *the_post(FIXTURE_DATA(stopped) *self, unsigned int more)
{
	return (void *)(self->area + self->page - more * sizeof(struct rp_send) -
			sizeof(struct rpost_post));
}

/* Post the first @more times, then the second, and return once the post has stopped there. */
static int stop_post(FIXTURE_DATA(stopped) *self, struct rp_end *end,
		     const struct two *block, unsigned int more)
{
	struct rpost_post *cmd = the_post(self, more);
	struct rp_send *sends = (void *)(cmd + 1);
	unsigned int i;

	*cmd = (struct rpost_post) {
		.size = sizeof(*cmd) + (more + 1) * sizeof(*sends), .qp = end->qp,
	};
	for (i = 0; i < more; i++)
		sends[i] = block->first;
	memcpy(self->copy, &block->second, sizeof(block->second));
	forget(self);
	return stop_in(self, end->fd, RPOST_IOC_POST_SEND, cmd);
}

TEST_F(stopped, in_a_post)
{
	struct rpost_reg_mr mr, secret, to;
	char *mem = rp_pages(4 * self->page);
	struct rp_end a, v;
	const unsigned int more[] = { 1, 5, 20 };
	struct rpost_post *cmd;
	struct rp_send *seen;
	unsigned int i, k;
	struct rpost_wc wc;
	struct two block;
	uint32_t pd;

	rp_depth = 32;
	memset(mem, 'm', self->page);
	memset(mem + self->page, 's', self->page);
	memset(mem + 2 * self->page, 'v', self->page);
	ASSERT_EQ(0, rp_own_pair(&a, &v, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_alloc_pd(a.fd, a.device, &pd));
	ASSERT_EQ(0, rp_reg_mr(a.fd, a.pd, mem, self->page, 0, &mr));
	ASSERT_EQ(0, rp_reg_mr(a.fd, pd, mem + self->page, self->page, 0,
			       &secret));
	ASSERT_EQ(0, rp_reg_mr(v.fd, v.pd, mem + 2 * self->page, self->page,
			       RPOST_ACCESS_LOCAL_WRITE |
			       RPOST_ACCESS_REMOTE_WRITE, &to));
	block = two_writes(&mr, &to);

	/*
	 * Copied requests are overwritten with others.  A post is copied to the stack, to
	 * memory that the file keeps, or to its own.
	 */
	for (k = 0; k < ARRAY_SIZE(more); k++) {
		cmd = the_post(self, more[k]);
		ASSERT_EQ(0, stop_post(self, &a, &block, more[k]));
		for (i = 0, seen = (void *)(cmd + 1); i < more[k]; i++, seen++) {
			seen->sge.addr = secret.addr;
			seen->sge.lkey = secret.lkey;
			seen->wr.size = UINT32_MAX;
			seen->wr.num_sge = UINT32_MAX;
			seen->wr.opcode = UINT32_MAX;
		}
		cmd->size = UINT32_MAX;
		cmd->flags = UINT32_MAX;
		cmd->qp = UINT32_MAX;
		EXPECT_EQ((int)more[k] + 1, go_on(self));
		for (i = 0; i <= more[k]; i++) {
			ASSERT_EQ(1, rp_wait_cq(&a.cq, &wc));
			EXPECT_EQ(RPOST_WC_SUCCESS, wc.status);
		}
		EXPECT_EQ(0, memcmp(mem, mem + 2 * self->page, 8));
		memset(mem + 2 * self->page, 'v', self->page);
	}

	/* The region is deregistered meanwhile. */
	ASSERT_EQ(0, stop_post(self, &a, &block, 1));
	ASSERT_EQ(0, rp_destroy(a.fd, RPOST_OBJ_MR, mr.handle));
	EXPECT_EQ(2, go_on(self));
	ASSERT_EQ(1, rp_wait_cq(&a.cq, &wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, wc.status);
	ASSERT_EQ(1, rp_wait_cq(&a.cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ('v', mem[2 * self->page]);

	/* The queue pair is destroyed meanwhile. */
	ASSERT_EQ(0, stop_post(self, &a, &block, 1));
	ASSERT_EQ(0, rp_destroy(a.fd, RPOST_OBJ_QP, a.qp));
	EXPECT_EQ(-ENOENT, go_on(self));

	/* The file is closed meanwhile. */
	ASSERT_EQ(0, rp_create_own(&a, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_bring_up(&a, RPOST_QPT_RC, v.qp_num));
	ASSERT_EQ(0, stop_post(self, &a, &block, 1));
	rp_end_close(&a);
	EXPECT_EQ(2, go_on(self));
	EXPECT_EQ('v', mem[2 * self->page]);
	rp_end_close(&v);
	munmap(mem, 4 * self->page);
}

TEST_HARNESS_MAIN
