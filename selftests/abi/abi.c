// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the rules of all commands: sizes, flags, reserved fields, pointers,
 * numbers, and 32-bit programs.  A failure means that programs of an earlier or
 * later version break, or that a refused command has an effect.
 */
#include <kselftest_harness.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>

#include "command_env.h"

#define ARENA_PAGES	4

FIXTURE(abi) {
	struct env env;
	char *arena;	/* its end is followed by a page without access */
	size_t arena_bytes;
	char before[ARENA_PAGES * 16384];
	const struct field *bad;	/* with a value that is refused */
};

static int call(FIXTURE_DATA(abi) *self, const struct command *cmd, void *arg)
{
	return rp_ioctl(env_fd(&self->env, cmd), cmd->nr, arg);
}

/* Fill a struct for @cmd whose first @bytes bytes end where the arena does. */
static void *prepare(FIXTURE_DATA(abi) *self, const struct command *cmd,
		     size_t bytes)
{
	char *arg = self->arena + self->arena_bytes - bytes;
	char filled[MAX_STRUCT];

	if (env_fill(&self->env, cmd, filled))
		return NULL;
	*(uint32_t *)filled = bytes;
	memset(self->arena, 0, self->arena_bytes);
	memcpy(arg, filled, cmd->size < bytes ? cmd->size : bytes);
	return arg;
}

/* Returns the lowest free file descriptor. */
static int next_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

FIXTURE_SETUP(abi)
{
	size_t page = getpagesize();
	int low = 0;

#ifdef MAP_32BIT
	low = MAP_32BIT;
#endif
	self->arena_bytes = ARENA_PAGES * page;
	ASSERT_GE(sizeof(self->before), self->arena_bytes);
	self->arena = mmap(NULL, self->arena_bytes + page, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | low, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->arena);
	ASSERT_EQ(0, mprotect(self->arena + self->arena_bytes, page, PROT_NONE));
	ASSERT_EQ(0, env_init(&self->env));
}

FIXTURE_TEARDOWN(abi)
{
	env_close(&self->env);
}

/* Expect that the call returns @want and changes nothing. */
static void refused(struct __test_metadata *_metadata,
		    FIXTURE_DATA(abi) *self, const struct command *cmd, void *arg,
		    int want)
{
	struct env *env = &self->env;
	int objects = rp_num_objects(env->end.fd), fd = next_fd();

	memcpy(self->before, self->arena, self->arena_bytes);
	EXPECT_EQ(want, call(self, cmd, arg))
		TH_LOG("%s size %u %s", cmd->name, *(uint32_t *)arg,
		       self->bad ? self->bad->name : "");
	EXPECT_EQ(0, memcmp(self->before, self->arena, self->arena_bytes))
		TH_LOG("%s wrote", cmd->name);
	EXPECT_EQ(objects, rp_num_objects(env->end.fd))
		TH_LOG("%s", cmd->name);
	EXPECT_EQ(fd, next_fd())
		TH_LOG("%s left a descriptor", cmd->name);
}

/* Expect the result in the command's row, objects included. */
static void accepted(struct __test_metadata *_metadata,
		     FIXTURE_DATA(abi) *self, const struct command *cmd, void *arg)
{
	struct env *env = &self->env;
	int objects = rp_num_objects(env->end.fd);

	ASSERT_NE(NULL, arg)
		TH_LOG("%s cannot be filled", cmd->name);
	EXPECT_EQ(cmd->want, call(self, cmd, arg))
		TH_LOG("%s size %u", cmd->name, *(uint32_t *)arg);
	EXPECT_EQ(objects + !!made_object(cmd), rp_num_objects(env->end.fd))
		TH_LOG("%s", cmd->name);
}

/* The kernel knows all commands of the list; unknown_commands has others. */
TEST_F(abi, every_command_has_a_row)
{
	const struct command *cmd;

	for_each_command(cmd)
		EXPECT_EQ(-EFAULT, call(self, cmd, NULL))
			TH_LOG("%s", cmd->name);
}

/* The fields in each row follow each other without a gap. */
TEST_F(abi, layout)
{
	const struct command *cmd;
	const struct field *field;
	unsigned int end;

	for_each_command(cmd) {
		end = 2 * sizeof(uint32_t);
		for_each_field(field, cmd) {
			EXPECT_EQ(end, field->offset)
				TH_LOG("%s.%s", cmd->name, field->name);
			end += field->size;
		}
		EXPECT_EQ(end, cmd->size)
			TH_LOG("%s", cmd->name);
	}
}

TEST_F(abi, exact_size)
{
	const struct command *cmd;

	for_each_command(cmd)
		accepted(_metadata, self, cmd,
			 prepare(self, cmd, cmd->size));
}

TEST_F(abi, too_small)
{
	const unsigned int small[] = { 0, 1, 4, 7, 8 };
	const struct command *cmd;
	unsigned int i;
	void *arg;

	for_each_command(cmd) {
		for (i = 0; i < ARRAY_SIZE(small); i++) {
			arg = prepare(self, cmd, cmd->size);
			ASSERT_NE(NULL, arg);
			*(uint32_t *)arg = small[i];
			refused(_metadata, self, cmd, arg, -EINVAL);
		}
		arg = prepare(self, cmd, cmd->size);
		ASSERT_NE(NULL, arg);
		*(uint32_t *)arg = cmd->first - 1;
		refused(_metadata, self, cmd, arg, -EINVAL);
	}
}

/* Bytes behind the struct of a post are a work request: see post_batch. */
TEST_F(abi, larger_with_zeros)
{
	const unsigned int more[] = { 1, 4, 8, 4096, 3 * 4096 };
	const struct command *cmd;
	unsigned int i, j;
	char *arg;

	for_each_command(cmd) {
		if (is_post(cmd->nr))
			continue;
		for (i = 0; i < ARRAY_SIZE(more); i++) {
			arg = prepare(self, cmd, cmd->size + more[i]);
			accepted(_metadata, self, cmd, arg);
			for (j = 0; j < more[i]; j++)
				ASSERT_EQ(0, arg[cmd->size + j])
					TH_LOG("%s wrote byte %u", cmd->name,
					       cmd->size + j);
		}
	}
}

TEST_F(abi, larger_with_something)
{
	const unsigned int more[] = { 1, 8, 4096, 3 * 4096 };
	const struct command *cmd;
	unsigned int i;
	char *arg;

	for_each_command(cmd) {
		if (is_post(cmd->nr))
			continue;
		for (i = 0; i < ARRAY_SIZE(more); i++) {
			arg = prepare(self, cmd, cmd->size + more[i]);
			ASSERT_NE(NULL, arg);
			arg[cmd->size] = 1;
			refused(_metadata, self, cmd, arg, -E2BIG);
			arg[cmd->size] = 0;
			arg[cmd->size + more[i] - 1] = (char)0x80;
			refused(_metadata, self, cmd, arg, -E2BIG);
		}
	}
}

/* The kernel writes nothing behind the size that the program gave. */
TEST_F(abi, answer_stays_inside)
{
	const struct command *cmd;
	unsigned int i;
	char *arg;

	for_each_command(cmd) {
		arg = prepare(self, cmd, cmd->size + 256);
		ASSERT_NE(NULL, arg);
		*(uint32_t *)arg = cmd->size;
		memset(arg + cmd->size, 0xa5, 256);
		EXPECT_EQ(cmd->want, call(self, cmd, arg));
		for (i = 0; i < 256; i++)
			ASSERT_EQ((char)0xa5, arg[cmd->size + i])
				TH_LOG("%s", cmd->name);
		EXPECT_EQ(cmd->size, *(uint32_t *)arg);
	}
}

TEST_F(abi, unknown_flags)
{
	const struct command *cmd;
	unsigned int bit;
	uint32_t *arg;

	for_each_command(cmd) {
		arg = prepare(self, cmd, cmd->size);
		ASSERT_NE(NULL, arg);
		for (bit = 0; bit < 32; bit++) {
			arg[1] = 1u << bit;
			if (!(cmd->flags & arg[1]))
				refused(_metadata, self, cmd, arg, -EOPNOTSUPP);
			arg[1] |= cmd->flags;
			if (arg[1] != cmd->flags)
				refused(_metadata, self, cmd, arg, -EOPNOTSUPP);
		}
	}
}

TEST_F(abi, reserved_fields)
{
	const struct command *cmd;
	const struct field *field;
	unsigned int i;
	char *arg;

	for_each_command(cmd) {
		for_each_field(field, cmd) {
			if (field->kind != K_ZERO || field->optional)
				continue;
			for (i = 0; i < field->size; i++) {
				arg = prepare(self, cmd, cmd->size);
				ASSERT_NE(NULL, arg);
				arg[field->offset + i] = 1;
				refused(_metadata, self, cmd, arg, -EOPNOTSUPP);
			}
		}
	}
}

/* Each value that a row says is refused, and what only the kernel writes stays. */
TEST_F(abi, refused_values)
{
	const struct field *field, *answer;
	const struct command *cmd;
	unsigned int i;
	char *arg;

	for_each_command(cmd) {
		for_each_field(field, cmd) {
			self->bad = field;
			for (i = 0; i < field->num_bad; i++) {
				arg = prepare(self, cmd, cmd->size);
				ASSERT_NE(NULL, arg);
				for_each_field(answer, cmd) {
					if (answer->kind == K_OUT || answer->kind == K_ANSWER)
						memset(arg + answer->offset, 0xa5, answer->size);
				}
				memcpy(arg + field->offset, &field->bad[i], field->size);
				refused(_metadata, self, cmd, arg, field->error);
			}
		}
	}
}

/* Fields that only the kernel writes may have any value before. */
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
		.reserved = 0xa5,
	};
	const char zeros[sizeof(port.reserved)] = { 0 };

	memset(port.reserved, 0xa5, sizeof(port.reserved));
	ASSERT_EQ(0, rp_ioctl(self->env.end.fd, RPOST_IOC_QUERY_DEVICE, &dev));
	ASSERT_EQ(0, rp_ioctl(self->env.end.fd, RPOST_IOC_QUERY_PORT, &port));
	ASSERT_EQ(0, rp_ioctl(self->env.end.fd, RPOST_IOC_QUERY_QP, &qp));
	EXPECT_EQ(0, dev.reserved);
	EXPECT_EQ(0, memcmp(zeros, port.reserved, sizeof(port.reserved)));
	EXPECT_EQ(0, qp.reserved);
}

TEST_F(abi, bad_pointer)
{
	struct env *env = &self->env;
	char *guard = self->arena + self->arena_bytes;
	int objects = rp_num_objects(env->end.fd);
	const struct command *cmd;
	char *arg;

	for_each_command(cmd) {
		EXPECT_EQ(-EFAULT, call(self, cmd, NULL));
		EXPECT_EQ(-EFAULT, call(self, cmd, guard));
		EXPECT_EQ(-EFAULT, call(self, cmd, (void *)-4096l));
		EXPECT_EQ(-EFAULT, call(self, cmd, (void *)(ULONG_MAX / 4 + 1)));
		/*
		 * Only the first byte, the size, or all but the last byte are
		 * mapped.
		 */
		EXPECT_EQ(-EFAULT, call(self, cmd, guard - 1));
		*(uint32_t *)(guard - 4) = cmd->size;
		EXPECT_EQ(-EFAULT, call(self, cmd, guard - 4));
		arg = guard - cmd->size + 1;
		memset(arg, 0, cmd->size - 1);
		memcpy(arg, &cmd->size, 4);
		EXPECT_EQ(-EFAULT, call(self, cmd, arg))
			TH_LOG("%s", cmd->name);
		/*
		 * All bytes up to the end of the mapping are 0; the size goes
		 * beyond.
		 */
		memset(self->arena, 0, self->arena_bytes);
		*(uint32_t *)self->arena = UINT32_MAX;
		EXPECT_EQ(-E2BIG, call(self, cmd, self->arena))
			TH_LOG("%s", cmd->name);
		*(uint32_t *)self->arena = self->arena_bytes + 8;
		EXPECT_EQ(-EFAULT, call(self, cmd, self->arena))
			TH_LOG("%s", cmd->name);
	}
	EXPECT_EQ(objects, rp_num_objects(env->end.fd));
}

/* A command that cannot write its struct creates and loses nothing. */
TEST_F(abi, answer_to_read_only_memory)
{
	struct env *env = &self->env;
	const struct command *cmd;
	void *arg;
	int objects, fd;

	for_each_command(cmd) {
		if (!command_answers(cmd))
			continue;
		arg = prepare(self, cmd, cmd->size);
		ASSERT_NE(NULL, arg);
		objects = rp_num_objects(env->end.fd);
		fd = next_fd();
		ASSERT_EQ(0, mprotect(self->arena, self->arena_bytes, PROT_READ));
		EXPECT_EQ(-EFAULT, call(self, cmd, arg))
			TH_LOG("%s", cmd->name);
		ASSERT_EQ(0, mprotect(self->arena, self->arena_bytes,
				      PROT_READ | PROT_WRITE));
		EXPECT_EQ(objects, rp_num_objects(env->end.fd))
			TH_LOG("%s", cmd->name);
		EXPECT_EQ(fd, next_fd())
			TH_LOG("%s", cmd->name);
		EXPECT_EQ(cmd->want, call(self, cmd, arg))
			TH_LOG("%s afterwards", cmd->name);
	}
}

/* Returns the kind of file that command @nr is for, or R_NONE. */
static enum reg on(unsigned int nr)
{
	const struct command *cmd = command_of(nr);

	return cmd ? cmd->on : R_NONE;
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
		if (on(nr) != R_FILE)
			EXPECT_EQ(-ENOTTY, rp_ioctl(env->end.fd, cmd, zeros))
				TH_LOG("command %u", nr);
		if (on(nr) != R_EVENT)
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
	const struct command *cmd;
	unsigned int nr;
	void *arg;

	for_each_command(cmd) {
		nr = _IOC_NR(cmd->nr);
		const unsigned long wrong[] = {
			_IOR(RPOST_IOC_TYPE, nr, uint32_t),
			_IOW(RPOST_IOC_TYPE, nr, uint32_t),
			_IOWR(RPOST_IOC_TYPE, nr, uint32_t),
			_IOC(_IOC_NONE, RPOST_IOC_TYPE, nr, 8),
			_IOC(_IOC_NONE, RPOST_IOC_TYPE, nr, cmd->size),
			_IO(RPOST_IOC_TYPE - 1, nr),
			_IO(RPOST_IOC_TYPE + 1, nr),
			_IO(RPOST_IOC_TYPE & 0x7f, nr),
		};
		unsigned int i;

		arg = prepare(self, cmd, cmd->size);
		ASSERT_NE(NULL, arg);
		for (i = 0; i < ARRAY_SIZE(wrong); i++) {
			struct command bad = *cmd;

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

/* Make a system call as a 32-bit program does. */
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
	const struct command *cmd;
	void *arg;

	if (!have_compat())
		SKIP(return, "the kernel runs no 32-bit programs");
	for_each_command(cmd) {
		arg = prepare(self, cmd, cmd->size);
		ASSERT_NE(NULL, arg);
		ASSERT_GT(1ul << 32, (unsigned long)arg);
		EXPECT_EQ(cmd->want,
			  compat_syscall(COMPAT_NR_IOCTL, env_fd(env, cmd), cmd->nr,
					 (unsigned long)arg, 0, 0))
			TH_LOG("%s", cmd->name);
	}
}

TEST_F(abi, compat_mmap)
{
	struct rp_cq *cq = &self->env.end.cq;
	struct rpost_poll_cq *poll_cmd = (void *)self->arena;
	struct rpost_ring *ring;
	long ret;

	if (!have_compat())
		SKIP(return, "the kernel runs no 32-bit programs");
	/* mmap2() needs a sixth argument in %ebp, which is not passed here. */
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
	};
	EXPECT_EQ(0, compat_syscall(COMPAT_NR_IOCTL, self->env.end.fd,
				    RPOST_IOC_POLL_CQ,
				    (unsigned long)poll_cmd, 0, 0));
	/* A 32-bit program can pass the ring's offset, in pages, to mmap2(). */
	EXPECT_GT(1ull << 32, cq->cmd.mmap_offset >> 12);
}
#else
TEST_F(abi, compat_commands)
{
	SKIP(return, "needs an x86-64 host");
}
#endif

TEST_HARNESS_MAIN
