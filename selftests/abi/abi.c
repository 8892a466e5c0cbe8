// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What holds for every command alike: sizes, flags, reserved fields, pointers,
 * numbers, and 32-bit programs.
 */
#include <kselftest_harness.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

#include "abi_rows.h"

#define ARENA_PAGES	4

static int call(struct env *env, const struct row *row, void *arg)
{
	int fd = row->nr == RPOST_IOC_GET_EVENT ? env->end.channel :
						  env->end.fd;

	return rp_ioctl(fd, row->nr, arg);
}

/* A struct for the row whose first @bytes bytes end where the arena does. */
static void *prepare(struct env *env, const struct row *row, size_t bytes)
{
	char *arg = env->arena + env->arena_bytes - bytes;
	size_t used = row->size < bytes ? row->size : bytes;
	char cmd[512] = { 0 };

	if (row->fill(env, cmd))
		return NULL;
	*(uint32_t *)cmd = bytes;
	memset(env->arena, 0, env->arena_bytes);
	memcpy(arg, cmd, used);
	return arg;
}

/* The lowest file descriptor that is free. */
static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

FIXTURE(abi) {
	struct env env;
	char before[ARENA_PAGES * 16384];
};

FIXTURE_SETUP(abi)
{
	struct env *env = &self->env;
	size_t page = getpagesize();
	int low = 0;

#ifdef MAP_32BIT
	low = MAP_32BIT;
#endif
	env->arena_bytes = ARENA_PAGES * page;
	ASSERT_GE(sizeof(self->before), env->arena_bytes);
	env->arena = mmap(NULL, env->arena_bytes + page, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | low, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)env->arena);
	ASSERT_EQ(0, mprotect(env->arena + env->arena_bytes, page, PROT_NONE));
	env->mem = rp_pages(page);
	ASSERT_NE(NULL, env->mem);

	ASSERT_EQ(0, rp_end_init(&env->end));
	ASSERT_EQ(0, fcntl(env->end.channel, F_SETFL, O_NONBLOCK));
	ASSERT_EQ(0, rp_create_id(env->end.fd, env->end.channel, &env->end.id));
	ASSERT_EQ(0, rp_bind(env->end.fd, env->end.id, 0));
	ASSERT_EQ(0, rp_create_qp(&env->end, 0));
}

FIXTURE_TEARDOWN(abi)
{
	rp_end_close(&self->env.end);
}

/* Expect @want and that the call changed nothing. */
static void refused(struct __test_metadata *_metadata,
		    FIXTURE_DATA(abi) *self, const struct row *row, void *arg,
		    int want)
{
	struct env *env = &self->env;
	int objects = rp_num_objects(env->end.fd), fd = next_fd();

	memcpy(self->before, env->arena, env->arena_bytes);
	EXPECT_EQ(want, call(env, row, arg))
		TH_LOG("%s size %u", row->name, *(uint32_t *)arg);
	EXPECT_EQ(0, memcmp(self->before, env->arena, env->arena_bytes))
		TH_LOG("%s wrote", row->name);
	EXPECT_EQ(objects, rp_num_objects(env->end.fd))
		TH_LOG("%s", row->name);
	EXPECT_EQ(fd, next_fd())
		TH_LOG("%s left a descriptor", row->name);
}

/* Expect the row's own result, objects included. */
static void accepted(struct __test_metadata *_metadata,
		     FIXTURE_DATA(abi) *self, const struct row *row, void *arg)
{
	struct env *env = &self->env;
	int objects = rp_num_objects(env->end.fd);

	ASSERT_NE(NULL, arg)
		TH_LOG("%s cannot be filled", row->name);
	EXPECT_EQ(row->want, call(env, row, arg))
		TH_LOG("%s size %u", row->name, *(uint32_t *)arg);
	EXPECT_EQ(objects + row->makes_object, rp_num_objects(env->end.fd))
		TH_LOG("%s", row->name);
}

/* The least size that the command takes. */
static unsigned int least(const struct row *row)
{
	return row->first ? row->first : row->size;
}

#define for_each_row(row) \
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++)

TEST_F(abi, every_command_has_a_row)
{
	bool seen[256] = { false };
	const struct row *row;
	unsigned int nr;

	for_each_row(row)
		seen[_IOC_NR(row->nr)] = true;
	for (nr = 0; nr <= RPOST_CMD_LEAVE_MCAST; nr++)
		EXPECT_TRUE(seen[nr])
			TH_LOG("command %u", nr);
	EXPECT_TRUE(seen[RPOST_CMD_SETUP_SEND_RING]);
	EXPECT_TRUE(seen[RPOST_CMD_ENTER_SEND_RING]);
	EXPECT_TRUE(seen[RPOST_CMD_GET_EVENT]);
}

TEST_F(abi, exact_size)
{
	const struct row *row;

	for_each_row(row)
		accepted(_metadata, self, row,
			 prepare(&self->env, row, row->size));
}

TEST_F(abi, too_small)
{
	const unsigned int small[] = { 0, 1, 4, 7, 8 };
	const struct row *row;
	unsigned int i;
	void *arg;

	for_each_row(row) {
		for (i = 0; i < ARRAY_SIZE(small); i++) {
			arg = prepare(&self->env, row, row->size);
			ASSERT_NE(NULL, arg);
			*(uint32_t *)arg = small[i];
			refused(_metadata, self, row, arg, -EINVAL);
		}
		arg = prepare(&self->env, row, row->size);
		ASSERT_NE(NULL, arg);
		*(uint32_t *)arg = least(row) - 1;
		refused(_metadata, self, row, arg, -EINVAL);
	}
}

/* A program of the first version, and any version in between. */
TEST_F(abi, as_in_the_first_version)
{
	const struct row *row;
	unsigned int size, i;
	char *arg;

	for_each_row(row) {
		for (size = least(row); size < row->size; size += 4) {
			/* Up to the guard page, and with a canary behind. */
			accepted(_metadata, self, row,
				 prepare(&self->env, row, size));
			arg = prepare(&self->env, row, row->size + 64);
			ASSERT_NE(NULL, arg);
			*(uint32_t *)arg = size;
			memset(arg + size, 0xa5, row->size + 64 - size);
			accepted(_metadata, self, row, arg);
			for (i = size; i < row->size + 64; i++)
				ASSERT_EQ((char)0xa5, arg[i])
					TH_LOG("%s size %u", row->name, size);
			EXPECT_EQ(size, *(uint32_t *)arg);
		}
	}
}

TEST_F(abi, larger_with_zeros)
{
	const unsigned int more[] = { 1, 4, 8, 4096, 3 * 4096 };
	const struct row *row;
	unsigned int i, j;
	char *arg;

	for_each_row(row) {
		for (i = 0; i < ARRAY_SIZE(more); i++) {
			arg = prepare(&self->env, row, row->size + more[i]);
			accepted(_metadata, self, row, arg);
			for (j = 0; j < more[i]; j++)
				ASSERT_EQ(0, arg[row->size + j])
					TH_LOG("%s wrote byte %u", row->name,
					       row->size + j);
		}
	}
}

TEST_F(abi, larger_with_something)
{
	const unsigned int more[] = { 1, 8, 4096, 3 * 4096 };
	const struct row *row;
	unsigned int i;
	char *arg;

	for_each_row(row) {
		for (i = 0; i < ARRAY_SIZE(more); i++) {
			arg = prepare(&self->env, row, row->size + more[i]);
			ASSERT_NE(NULL, arg);
			arg[row->size] = 1;
			refused(_metadata, self, row, arg, -E2BIG);
			arg[row->size] = 0;
			arg[row->size + more[i] - 1] = (char)0x80;
			refused(_metadata, self, row, arg, -E2BIG);
		}
	}
}

/* Nothing is written behind the size that the program gave. */
TEST_F(abi, answer_stays_inside)
{
	const struct row *row;
	unsigned int i;
	char *arg;

	for_each_row(row) {
		arg = prepare(&self->env, row, row->size + 256);
		ASSERT_NE(NULL, arg);
		*(uint32_t *)arg = row->size;
		memset(arg + row->size, 0xa5, 256);
		EXPECT_EQ(row->want, call(&self->env, row, arg));
		for (i = 0; i < 256; i++)
			ASSERT_EQ((char)0xa5, arg[row->size + i])
				TH_LOG("%s", row->name);
		EXPECT_EQ(row->size, *(uint32_t *)arg);
	}
}

TEST_F(abi, unknown_flags)
{
	const struct row *row;
	unsigned int bit;
	uint32_t *arg;

	for_each_row(row) {
		arg = prepare(&self->env, row, row->size);
		ASSERT_NE(NULL, arg);
		for (bit = 0; bit < 32; bit++) {
			arg[1] = 1u << bit;
			if (!(row->known_flags & arg[1]))
				refused(_metadata, self, row, arg, -EOPNOTSUPP);
			arg[1] |= row->known_flags;
			if (arg[1] != row->known_flags)
				refused(_metadata, self, row, arg, -EOPNOTSUPP);
		}
	}
}

TEST_F(abi, reserved_fields)
{
	const struct row *row;
	const struct span *span;
	unsigned int i;
	char *arg;

	for_each_row(row) {
		for (span = row->reserved;
		     span < row->reserved + ARRAY_SIZE(row->reserved); span++) {
			for (i = 0; i < span->length; i++) {
				arg = prepare(&self->env, row, row->size);
				ASSERT_NE(NULL, arg);
				arg[span->offset + i] = 1;
				refused(_metadata, self, row, arg, -EOPNOTSUPP);
			}
		}
	}
}

/* What the kernel alone writes may hold anything before. */
TEST_F(abi, reserved_answers_are_zero)
{
	struct rpost_query_device dev = {
		.size = sizeof(dev),
		.device = self->env.end.device,
		.reserved = 0xa5a5a5a5,
	};
	struct rpost_query_port port = {
		.size = sizeof(port),
		.device = self->env.end.device,
		.port = 1,
	};
	struct rpost_query_qp qp = {
		.size = sizeof(qp),
		.handle = self->env.end.qp,
		.reserved = { 0xa5, 0xa5 },
	};
	const char zeros[sizeof(port.reserved)] = { 0 };

	memset(port.reserved, 0xa5, sizeof(port.reserved));
	ASSERT_EQ(0, rp_ioctl(self->env.end.fd, RPOST_IOC_QUERY_DEVICE, &dev));
	ASSERT_EQ(0, rp_ioctl(self->env.end.fd, RPOST_IOC_QUERY_PORT, &port));
	ASSERT_EQ(0, rp_ioctl(self->env.end.fd, RPOST_IOC_QUERY_QP, &qp));
	EXPECT_EQ(0, dev.reserved);
	EXPECT_EQ(0, memcmp(zeros, port.reserved, sizeof(port.reserved)));
	EXPECT_EQ(0, memcmp(zeros, qp.reserved, sizeof(qp.reserved)));
}

TEST_F(abi, bad_pointer)
{
	struct env *env = &self->env;
	char *guard = env->arena + env->arena_bytes;
	int objects = rp_num_objects(env->end.fd);
	const struct row *row;
	char *arg;

	for_each_row(row) {
		EXPECT_EQ(-EFAULT, call(env, row, NULL));
		EXPECT_EQ(-EFAULT, call(env, row, guard));
		EXPECT_EQ(-EFAULT, call(env, row, (void *)-4096l));
		EXPECT_EQ(-EFAULT, call(env, row, (void *)(ULONG_MAX / 4 + 1)));
		/* The first byte, the size, all but the last byte mapped. */
		EXPECT_EQ(-EFAULT, call(env, row, guard - 1));
		*(uint32_t *)(guard - 4) = row->size;
		EXPECT_EQ(-EFAULT, call(env, row, guard - 4));
		arg = guard - row->size + 1;
		memset(arg, 0, row->size - 1);
		memcpy(arg, &row->size, 4);
		EXPECT_EQ(-EFAULT, call(env, row, arg))
			TH_LOG("%s", row->name);
		/* Zeros up to the end of the mapping, and a size beyond it. */
		memset(env->arena, 0, env->arena_bytes);
		*(uint32_t *)env->arena = UINT32_MAX;
		EXPECT_EQ(-E2BIG, call(env, row, env->arena))
			TH_LOG("%s", row->name);
		*(uint32_t *)env->arena = env->arena_bytes + 8;
		EXPECT_EQ(-EFAULT, call(env, row, env->arena))
			TH_LOG("%s", row->name);
	}
	EXPECT_EQ(objects, rp_num_objects(env->end.fd));
}

/* A struct that cannot be written back: nothing is made, nothing is lost. */
TEST_F(abi, answer_to_read_only_memory)
{
	struct env *env = &self->env;
	const struct row *row;
	void *arg;
	int objects, fd;

	for_each_row(row) {
		if (!row->answers)
			continue;
		arg = prepare(env, row, row->size);
		ASSERT_NE(NULL, arg);
		objects = rp_num_objects(env->end.fd);
		fd = next_fd();
		ASSERT_EQ(0, mprotect(env->arena, env->arena_bytes, PROT_READ));
		EXPECT_EQ(-EFAULT, call(env, row, arg))
			TH_LOG("%s", row->name);
		ASSERT_EQ(0, mprotect(env->arena, env->arena_bytes,
				      PROT_READ | PROT_WRITE));
		EXPECT_EQ(objects, rp_num_objects(env->end.fd))
			TH_LOG("%s", row->name);
		EXPECT_EQ(fd, next_fd())
			TH_LOG("%s", row->name);
		EXPECT_EQ(row->want, call(env, row, arg))
			TH_LOG("%s afterwards", row->name);
	}
}

TEST_F(abi, unknown_commands)
{
	struct env *env = &self->env;
	int comp = rp_comp_channel(env->end.fd);
	unsigned long cmd;
	char zeros[512] = { 0 };
	unsigned int nr;

	ASSERT_LE(0, comp);
	*(uint32_t *)zeros = 256;
	for (nr = 0; nr < 256; nr++) {
		cmd = _IO(RPOST_IOC_TYPE, nr);
		if (nr > RPOST_CMD_LEAVE_MCAST &&
		    nr != RPOST_CMD_SETUP_SEND_RING &&
		    nr != RPOST_CMD_ENTER_SEND_RING)
			EXPECT_EQ(-ENOTTY, rp_ioctl(env->end.fd, cmd, zeros))
				TH_LOG("command %u", nr);
		if (nr != RPOST_CMD_GET_EVENT)
			EXPECT_EQ(-ENOTTY,
				  rp_ioctl(env->end.channel, cmd, zeros))
				TH_LOG("command %u", nr);
		EXPECT_EQ(-ENOTTY, rp_ioctl(comp, cmd, zeros))
			TH_LOG("command %u", nr);
	}
	close(comp);
}

TEST_F(abi, wrong_command_encoding)
{
	const struct row *row;
	unsigned int nr;
	void *arg;

	for_each_row(row) {
		nr = _IOC_NR(row->nr);
		const unsigned long wrong[] = {
			_IOR(RPOST_IOC_TYPE, nr, uint32_t),
			_IOW(RPOST_IOC_TYPE, nr, uint32_t),
			_IOWR(RPOST_IOC_TYPE, nr, uint32_t),
			_IOC(_IOC_NONE, RPOST_IOC_TYPE, nr, 8),
			_IOC(_IOC_NONE, RPOST_IOC_TYPE, nr, row->size),
			_IO(RPOST_IOC_TYPE - 1, nr),
			_IO(RPOST_IOC_TYPE + 1, nr),
			_IO(RPOST_IOC_TYPE & 0x7f, nr),
		};
		unsigned int i;

		arg = prepare(&self->env, row, row->size);
		ASSERT_NE(NULL, arg);
		for (i = 0; i < ARRAY_SIZE(wrong); i++) {
			struct row bad = *row;

			bad.nr = wrong[i];
			refused(_metadata, self, &bad, arg, -ENOTTY);
		}
	}
}

/* ------------------------------------------------------ 32-bit programs */

#ifdef __x86_64__
#define COMPAT_NR_GETPID	20
#define COMPAT_NR_IOCTL		54
#define COMPAT_NR_MMAP2		192

/* A system call as a 32-bit program makes it. */
static long compat_syscall(long nr, unsigned long a, unsigned long b,
			   unsigned long c, unsigned long d, unsigned long e)
{
	long ret;

	asm volatile("int $0x80"
		     : "=a" (ret)
		     : "a" (nr), "b" (a), "c" (b), "d" (c), "S" (d), "D" (e)
		     : "memory", "cc", "r8", "r9", "r10", "r11");
	return (int)ret;
}

static sigjmp_buf no_compat;

static void on_segv(int sig)
{
	siglongjmp(no_compat, sig);
}

static bool have_compat(void)
{
	bool have = false;

	signal(SIGSEGV, on_segv);
	if (!sigsetjmp(no_compat, 1))
		have = compat_syscall(COMPAT_NR_GETPID, 0, 0, 0, 0, 0) ==
		       getpid();
	signal(SIGSEGV, SIG_DFL);
	return have;
}

TEST_F(abi, compat_commands)
{
	struct env *env = &self->env;
	const struct row *row;
	void *arg;
	int fd;

	if (!have_compat())
		SKIP(return, "the kernel runs no 32-bit programs");
	for_each_row(row) {
		arg = prepare(env, row, row->size);
		ASSERT_NE(NULL, arg);
		ASSERT_GT(1ul << 32, (unsigned long)arg);
		fd = row->nr == RPOST_IOC_GET_EVENT ? env->end.channel :
						      env->end.fd;
		EXPECT_EQ(row->want, compat_syscall(COMPAT_NR_IOCTL, fd,
						    row->nr,
						    (unsigned long)arg, 0, 0))
			TH_LOG("%s", row->name);
	}
}

TEST_F(abi, compat_mmap)
{
	struct rp_cq *cq = &self->env.end.cq;
	struct rpost_poll_cq *poll_cmd = (void *)self->env.arena;
	struct rpost_ring *ring;
	long ret;

	if (!have_compat())
		SKIP(return, "the kernel runs no 32-bit programs");
	/* The sixth argument, the offset in pages, is in %ebp: not here. */
	ret = compat_syscall(COMPAT_NR_IOCTL, self->env.end.fd,
			     RPOST_IOC_POLL_CQ, 4, 0, 0);
	EXPECT_EQ(-EFAULT, ret);
	ring = mmap(NULL, cq->cmd.mmap_size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_32BIT, self->env.end.fd,
		    cq->cmd.mmap_offset);
	ASSERT_NE(MAP_FAILED, (void *)ring);
	EXPECT_EQ(RPOST_RING_NEED_POLL, ring->flags);
	*poll_cmd = (struct rpost_poll_cq) {
		.size = sizeof(*poll_cmd),
		.handle = cq->cmd.handle,
		.count = 0xa5a5a5a5,
	};
	EXPECT_EQ(0, compat_syscall(COMPAT_NR_IOCTL, self->env.end.fd,
				    RPOST_IOC_POLL_CQ,
				    (unsigned long)poll_cmd, 0, 0));
	EXPECT_EQ(0, poll_cmd->count);
	EXPECT_EQ(0, ring->flags);
	/* What a 32-bit program can pass as an offset in pages. */
	EXPECT_GT(1ull << 32, cq->cmd.mmap_offset >> 12);
}
#else
TEST_F(abi, compat_commands)
{
	SKIP(return, "needs an x86-64 host");
}
#endif

TEST_HARNESS_MAIN
