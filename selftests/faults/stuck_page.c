// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A command waits for a page of the program that never comes: userfaultfd does
 * not answer.  Meanwhile other objects are destroyed, other programs work,
 * unloading the module is refused, and the device is removed.  A failure means
 * that one of these has waited for the page.
 *
 * Each must end within a second while the page is missing.  On a busy host a
 * removal alone may take longer; then some removals are measured without a
 * stuck command, and three times the slowest is allowed.  The test prints each
 * time in ms.
 *
 * Needs root, RPOST_TEST_REMOVE and RPOST_TEST_ADD; see removal.c.  With
 * RPOST_TEST_MODULE, the module is unloaded after one of the commands and
 * loaded again; see unload.c.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "command_env.h"
#include "fdinfo.h"

#define PAGE		4096
#define LIMIT_MS	1000
#define HANG_MS		60000	/* the step has waited for the page */
#define MAX_ALONE	10

/* The page that the command waits for. */
enum stuck {
	STUCK_ANSWER,	/* the struct can be read, but not written */
	STUCK_STRUCT,	/* the whole struct */
	STUCK_DATA,	/* memory that the struct points to */
	STUCK_WRITE,	/* memory that can be read, but not written */
};

FIXTURE(stuck) {
	struct env env;
	struct rp_end other, spare;
	int uffd;
	char *arg;		/* a page */
	char filled[MAX_STRUCT];	/* the struct before the call */
	const struct command *cmd;
	int ret;
	bool done;
	int32_t returned;
	pthread_t thread;
	long refcnt;
};

FIXTURE_VARIANT(stuck) {
	const struct command *cmd;
	enum stuck what;
};

static bool has_data(const struct command *cmd)
{
	const struct field *field;

	for_each_field(field, cmd) {
		if (is_pointer(field))
			return true;
	}
	return false;
}

static void add_variant(const struct command *cmd, enum stuck what,
			const char *suffix)
{
	static struct {
		struct __fixture_variant_metadata meta;
		FIXTURE_VARIANT(stuck) data;
		char name[64];
	} all[2 * MAX_COMMANDS], *v = all;

	v->data.cmd = cmd;
	v->data.what = what;
	snprintf(v->name, sizeof(v->name), "%s%s", cmd->name, suffix);
	v->meta.name = v->name;
	v->meta.data = &v->data;
	__register_fixture_variant(&_stuck_fixture_object, &v->meta);
	v++;
}

/* Add variants as FIXTURE_VARIANT_ADD() does, from the list of commands. */
static void __attribute__((constructor)) add_variants(void)
{
	const struct command *cmd;

	for_each_command(cmd) {
		if (command_answers(cmd))
			add_variant(cmd, STUCK_ANSWER, "");
		if (has_data(cmd))
			add_variant(cmd, STUCK_DATA, "_data");
	}
	/*
	 * The struct is read in the same way for all commands: one is enough.
	 */
	add_variant(command_of(RPOST_CMD_DESTROY), STUCK_STRUCT, "_struct");
	add_variant(command_of(RPOST_CMD_REG_MR), STUCK_WRITE, "_read_only");
}

static bool in_data(enum stuck what)
{
	return what == STUCK_DATA || what == STUCK_WRITE;
}

static int watch(int uffd, void *page, uint64_t mode)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)page, PAGE }, .mode = mode,
	};
	struct uffdio_writeprotect wp = {
		.range = reg.range, .mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	if (ioctl(uffd, UFFDIO_REGISTER, &reg))
		return -errno;
	if (mode == UFFDIO_REGISTER_MODE_WP &&
	    ioctl(uffd, UFFDIO_WRITEPROTECT, &wp))
		return -errno;
	return 0;
}

/* Fill a call so that all its handles name objects. */
static int fill(struct env *env, const struct command *cmd, void *arg)
{
	const struct field *field;
	uint32_t handle;

	RP_TRY(env_fill(env, cmd, arg));
	for_each_field(field, cmd) {
		if (field->kind != K_REG || field->give != G_BAD)
			continue;
		handle = env_own(env, field->reg);
		memcpy((char *)arg + field->offset, &handle, sizeof(handle));
	}
	return 0;
}

FIXTURE_SETUP(stuck)
{
	struct rp_end *end = &self->env.end;
	struct uffdio_api api = {
		.api = UFFD_API, .features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};

	self->uffd = -1;
	if (!rp_can_remove())
		return;
	self->uffd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (self->uffd < 0)
		return;
	ASSERT_EQ(0, ioctl(self->uffd, UFFDIO_API, &api));
	self->refcnt = rp_module_number("refcnt");
	self->cmd = variant->cmd;
	ASSERT_EQ(0, rp_end_init(end));
	ASSERT_EQ(0, rp_end_init(&self->other));
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_alloc_pd(end->fd, end->device, &self->spare.pd));
	ASSERT_EQ(0, rp_client_addr(end, 7000));
	ASSERT_EQ(0, rp_resolve_route(end->fd, end->id));
	ASSERT_TRUE(rp_readable(end->channel, TEST_TIMEOUT_MS));

	self->env.mem = rp_pages(ENV_BYTES);
	self->arg = rp_pages(PAGE);
	ASSERT_EQ(0, fill(&self->env, self->cmd, self->filled));
	memcpy(self->arg, self->filled, self->cmd->size);
	if (variant->what == STUCK_WRITE) {
		((struct rpost_reg_mr *)self->arg)->access =
			RPOST_ACCESS_REMOTE_READ;
		memset(self->env.mem, 0, PAGE);
	}
	if (variant->what == STUCK_DATA)
		ASSERT_EQ(0, madvise(self->env.mem, PAGE, MADV_DONTNEED));
	if (variant->what == STUCK_STRUCT)
		ASSERT_EQ(0, madvise(self->arg, PAGE, MADV_DONTNEED));
	ASSERT_EQ(0, watch(self->uffd,
			   in_data(variant->what) ? self->env.mem : self->arg,
			   variant->what == STUCK_ANSWER ||
			   variant->what == STUCK_WRITE ?
			   UFFDIO_REGISTER_MODE_WP :
			   UFFDIO_REGISTER_MODE_MISSING));
	/* A fetch fails when the event is gone, instead of sleeping. */
	ASSERT_EQ(0, fcntl(end->channel, F_SETFL, O_NONBLOCK));
}

static void *run_command(void *arg)
{
	FIXTURE_DATA(stuck) *self = arg;

	self->ret = rp_ioctl(env_fd(&self->env, self->cmd), self->cmd->nr,
			     self->arg);
	__atomic_store_n(&self->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Wait until the command needs the page; false if it ended without. */
static bool wait_stuck(FIXTURE_DATA(stuck) *self)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (!__atomic_load_n(&self->done, __ATOMIC_ACQUIRE) && rp_now_ms() < end) {
		if (rp_readable(self->uffd, 10))
			return true;
	}
	return false;
}

/* Let the page come. */
static int release(int uffd, void *page)
{
	struct uffdio_range range = { (uintptr_t)page, PAGE };

	/* UFFDIO_UNREGISTER on 6.1 does not wake threads that wait to write. */
	return ioctl(uffd, UFFDIO_UNREGISTER, &range) ||
	       ioctl(uffd, UFFDIO_WAKE, &range) ? -errno : 0;
}

struct timed {
	int (*call)(FIXTURE_DATA(stuck) *self);
	FIXTURE_DATA(stuck) *self;
	int ret;
};

static void *timed_call(void *arg)
{
	struct timed *timed = arg;

	timed->ret = timed->call(timed->self);
	return NULL;
}

static int destroy_spare(FIXTURE_DATA(stuck) *self)
{
	return rp_destroy(self->env.end.fd, RPOST_OBJ_PD, self->spare.pd);
}

static int destroy_id(FIXTURE_DATA(stuck) *self)
{
	return rp_destroy(self->env.end.fd, RPOST_OBJ_ID, self->env.end.id);
}

/* Destroy the named objects: EBUSY is allowed, but not waiting. */
static int destroy_named(FIXTURE_DATA(stuck) *self)
{
	const struct field *field;

	for_each_field(field, self->cmd) {
		if (field->kind == K_REG && field->reg <= R_AH)
			rp_destroy(self->env.end.fd, field->reg,
				   *(uint32_t *)(self->filled + field->offset));
	}
	return 0;
}

static int use_other(FIXTURE_DATA(stuck) *self)
{
	uint32_t pd;

	RP_TRY(rp_alloc_pd(self->other.fd, self->other.device, &pd));
	return rp_destroy(self->other.fd, RPOST_OBJ_PD, pd);
}

static int read_fdinfo(FIXTURE_DATA(stuck) *self)
{
	static char text[FDINFO_BYTES];

	RP_TRY(fdinfo_read(self->env.end.fd, text) < 0);
	return fdinfo_number(text, "connections") >= 1 ? 0 : -EPROTO;
}

static int unload(FIXTURE_DATA(stuck) *self)
{
	(void)self;
	return rp_unload_module();
}

static int remove_it(FIXTURE_DATA(stuck) *self)
{
	(void)self;
	return rp_remove_device();
}

static const struct {
	const char *name;
	int (*call)(FIXTURE_DATA(stuck) *self);
	int want;
} steps[] = {
	{ "fdinfo", read_fdinfo, 0 },
	{ "destroy", destroy_spare, 0 },
	{ "destroy id", destroy_id, 0 },
	{ "other", use_other, 0 },
	{ "rmmod", unload, -EWOULDBLOCK },
	{ "remove", remove_it, 0 },
	{ "destroy named", destroy_named, 0 },
};

/*
 * Run a step.  Returns its time in ms, or HANG_MS if it only ended after the
 * page was released.
 */
static long run_step(FIXTURE_DATA(stuck) *self, struct timed *timed,
		     void *page, bool *released)
{
	uint64_t begin = rp_now_ms();
	struct timespec until;
	pthread_t thread;

	if (pthread_create(&thread, NULL, timed_call, timed))
		return -1;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += HANG_MS / 1000;
	if (!pthread_timedjoin_np(thread, NULL, &until))
		return rp_now_ms() - begin;
	if (!*released)
		release(self->uffd, page);
	*released = true;
	pthread_join(thread, NULL);
	return HANG_MS;
}

/* Returns the allowed time.  If @ms is more than LIMIT_MS, measure removals. */
static long allowed_ms(long ms)
{
	long allowed = LIMIT_MS, alone;
	uint64_t begin;
	int i;

	for (i = 0; i < MAX_ALONE && ms > allowed; i++) {
		if (rp_add_device())
			return -1;
		begin = rp_now_ms();
		if (rp_remove_device())
			return -1;
		alone = rp_now_ms() - begin;
		printf("# a removal alone: %ld\n", alone);
		if (allowed < LIMIT_MS + 3 * alone)
			allowed = LIMIT_MS + 3 * alone;
	}
	return allowed;
}

FIXTURE_TEARDOWN(stuck)
{
	if (self->uffd < 0)
		return;
	close(self->uffd);
	EXPECT_EQ(0, rp_add_device());
}

TEST_F(stuck, holds_nobody_up)
{
	void *page = in_data(variant->what) ? self->env.mem : self->arg;
	bool reloads = getenv("RPOST_TEST_MODULE") &&
		       variant->cmd->nr == RPOST_IOC_REG_MR &&
		       variant->what == STUCK_DATA;
	long ms, slowest = 0;
	uint64_t begin;
	bool released = false;
	struct timed timed;
	unsigned int i;

	RP_NEED_REMOVAL();
	if (self->uffd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, run_command, self));
	if (!wait_stuck(self)) {
		ASSERT_EQ(STUCK_WRITE, variant->what);
		ASSERT_EQ(0, pthread_join(self->thread, NULL));
		ASSERT_EQ(0, self->ret);
		ASSERT_EQ(0, rp_remove_device());
		SKIP(return, "the kernel does not write to what a device reads");
	}

	printf("# %s:", self->cmd->name);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		timed = (struct timed) { .call = steps[i].call, .self = self };
		ms = run_step(self, &timed, page, &released);
		printf(" %s %s%ld", steps[i].name, ms == HANG_MS ? ">" : "", ms);
		EXPECT_EQ(steps[i].want, timed.ret);
		if (slowest < ms)
			slowest = ms;
	}
	EXPECT_FALSE(released);
	if (!released)
		EXPECT_EQ(0, release(self->uffd, page));
	EXPECT_EQ(0, pthread_join(self->thread, NULL));
	begin = rp_now_ms();
	rp_end_close(&self->env.end);
	rp_end_close(&self->other);
	if (made_channel(self->cmd) && !self->ret)
		close(*(int *)(self->arg + made_channel(self->cmd)->offset));
	/* Now no reference is left, and the module can be unloaded. */
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
	if (reloads)
		EXPECT_EQ(0, rp_unload_soon());
	ms = rp_now_ms() - begin;
	printf(", then %s in %ld (result %d)\n", reloads ? "unloaded" : "unused",
	       ms, self->ret);
	if (reloads)
		EXPECT_EQ(0, rp_load_again());
	if (slowest < ms)
		slowest = ms;
	EXPECT_GE(allowed_ms(slowest), slowest);
	/* The harness ends the test without flushing stdout. */
	fflush(stdout);
}

TEST_HARNESS_MAIN
