// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A command waits for a page of the program's that never comes (userfaultfd, and
 * nobody answers).  Meanwhile objects are destroyed, other programs go on, the device
 * is removed, and the module says that it is in use.  Prints what each took, in ms.
 *
 * Needs root, RPOST_TEST_REMOVE and RPOST_TEST_ADD; see removal.c.
 */
#include <kselftest_harness.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "rpost_own.h"

#define PAGE		4096
#define LIMIT_MS	1000	/* and what two removals take, where nothing is stuck */
#define HANG_MS		10000	/* for what does not come by itself */

/* What the command finds missing. */
enum stuck {
	STUCK_ANSWER,	/* its struct can be read, but not written */
	STUCK_STRUCT,	/* its struct */
	STUCK_DATA,	/* what its struct points to */
};

FIXTURE(stuck) {
	struct rp_end end, other, spare;
	struct rpost_create_srq srq;
	int uffd;
	long removal_ms;
	char *cmd, *data;	/* a page each */
	unsigned long nr;
	int fd, ret;
	int32_t returned;
	pthread_t thread;
	long refcnt;
};

FIXTURE_VARIANT(stuck) {
	const char *name;
	unsigned long nr;
	size_t size;
	enum stuck what;
};

#define STUCK(name_, what_, cmd, type)					\
	FIXTURE_VARIANT_ADD(stuck, name_) {				\
		.name = #name_, .nr = RPOST_IOC_##cmd,			\
		.size = sizeof(struct type), .what = STUCK_##what_,	\
	}

STUCK(query, ANSWER, QUERY, rpost_query);
STUCK(query_devices, ANSWER, QUERY_DEVICES, rpost_query_devices);
STUCK(query_devices_list, DATA, QUERY_DEVICES, rpost_query_devices);
STUCK(query_device, ANSWER, QUERY_DEVICE, rpost_query_device);
STUCK(query_port, ANSWER, QUERY_PORT, rpost_query_port);
STUCK(query_gids, ANSWER, QUERY_GIDS, rpost_query_gids);
STUCK(query_gids_list, DATA, QUERY_GIDS, rpost_query_gids);
STUCK(query_pkeys_list, DATA, QUERY_PKEYS, rpost_query_pkeys);
STUCK(destroy_struct, STRUCT, DESTROY, rpost_destroy);
STUCK(alloc_pd, ANSWER, ALLOC_PD, rpost_alloc_pd);
STUCK(reg_mr, ANSWER, REG_MR, rpost_reg_mr);
STUCK(reg_mr_memory, DATA, REG_MR, rpost_reg_mr);
STUCK(create_cq, ANSWER, CREATE_CQ, rpost_create_cq);
STUCK(resize_cq, ANSWER, RESIZE_CQ, rpost_resize_cq);
STUCK(poll_cq, ANSWER, POLL_CQ, rpost_poll_cq);
STUCK(create_qp, ANSWER, CREATE_QP, rpost_create_qp);
STUCK(query_qp, ANSWER, QUERY_QP, rpost_query_qp);
STUCK(create_srq, ANSWER, CREATE_SRQ, rpost_create_srq);
STUCK(query_srq, ANSWER, QUERY_SRQ, rpost_query_srq);
STUCK(create_ah, ANSWER, CREATE_AH, rpost_create_ah);
STUCK(post_send_list, DATA, POST_SEND, rpost_post);
STUCK(setup_send_ring, ANSWER, SETUP_SEND_RING, rpost_setup_send_ring);
STUCK(create_comp_channel, ANSWER, CREATE_COMP_CHANNEL, rpost_create_comp_channel);
STUCK(create_async_channel, ANSWER, CREATE_ASYNC_CHANNEL, rpost_create_async_channel);
STUCK(create_event_channel, ANSWER, CREATE_EVENT_CHANNEL, rpost_create_event_channel);
STUCK(create_id, ANSWER, CREATE_ID, rpost_create_id);
STUCK(query_id, ANSWER, QUERY_ID, rpost_query_id);
STUCK(get_event, ANSWER, GET_EVENT, rpost_get_event);

/* What each command says; those with the same layout share a line. */
static void fill_cmd(struct rp_end *end, uint32_t srq, unsigned long nr,
		     void *at, void *data)
{
	struct rpost_ah_attr addr = { 0 };

	switch (nr) {
	case RPOST_IOC_QUERY_DEVICES:
		((struct rpost_query_devices *)at)->devices = (uintptr_t)data;
		((struct rpost_query_devices *)at)->count = 4;
		break;
	case RPOST_IOC_QUERY_DEVICE:
		((struct rpost_query_device *)at)->device = end->device;
		break;
	case RPOST_IOC_QUERY_PORT:
		((struct rpost_query_port *)at)->device = end->device;
		((struct rpost_query_port *)at)->port = 1;
		break;
	case RPOST_IOC_QUERY_GIDS:
	case RPOST_IOC_QUERY_PKEYS:
		*(struct rpost_query_gids *)at = (struct rpost_query_gids) {
			.device = end->device, .port = 1, .count = 1,
			.gids = (uintptr_t)data,
		};
		break;
	case RPOST_IOC_ALLOC_PD:
		((struct rpost_alloc_pd *)at)->device = end->device;
		break;
	case RPOST_IOC_REG_MR:
		*(struct rpost_reg_mr *)at = (struct rpost_reg_mr) {
			.pd = end->pd, .access = RPOST_ACCESS_LOCAL_WRITE,
			.addr = (uintptr_t)data, .iova = (uintptr_t)data,
			.length = PAGE,
		};
		break;
	case RPOST_IOC_CREATE_CQ:
		*(struct rpost_create_cq *)at = (struct rpost_create_cq) {
			.device = end->device, .cqe = 8, .channel_fd = -1,
		};
		break;
	case RPOST_IOC_RESIZE_CQ:
		((struct rpost_resize_cq *)at)->handle = end->cq.cmd.handle;
		((struct rpost_resize_cq *)at)->cqe = 512;
		break;
	case RPOST_IOC_POLL_CQ:
		((struct rpost_poll_cq *)at)->handle = end->cq.cmd.handle;
		break;
	case RPOST_IOC_CREATE_QP:
		*(struct rpost_create_qp *)at = (struct rpost_create_qp) {
			.pd = end->pd, .send_cq = end->cq.cmd.handle,
			.recv_cq = end->cq.cmd.handle, .max_send_wr = 4,
			.max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1,
		};
		break;
	case RPOST_IOC_QUERY_QP:
		((struct rpost_query_qp *)at)->handle = end->qp;
		break;
	case RPOST_IOC_CREATE_SRQ:
		*(struct rpost_create_srq *)at = (struct rpost_create_srq) {
			.pd = end->pd, .max_wr = 8, .max_sge = 1,
		};
		break;
	case RPOST_IOC_QUERY_SRQ:
		((struct rpost_query_srq *)at)->handle = srq;
		break;
	case RPOST_IOC_CREATE_AH:
		rp_own_addr(end, &addr);
		((struct rpost_create_ah *)at)->pd = end->pd;
		((struct rpost_create_ah *)at)->attr = addr;
		break;
	case RPOST_IOC_POST_SEND:
		*(struct rpost_post *)at = (struct rpost_post) {
			.qp = end->qp, .count = 1, .wrs = (uintptr_t)data,
			.wrs_size = sizeof(struct rpost_send_wr),
		};
		break;
	case RPOST_IOC_SETUP_SEND_RING:
		((struct rpost_setup_send_ring *)at)->qp = end->qp;
		((struct rpost_setup_send_ring *)at)->bytes = PAGE;
		break;
	case RPOST_IOC_CREATE_ASYNC_CHANNEL:
		((struct rpost_create_async_channel *)at)->device = end->device;
		break;
	case RPOST_IOC_CREATE_ID:
		*(struct rpost_create_id *)at = (struct rpost_create_id) {
			.channel_fd = end->channel, .port_space = RPOST_PS_TCP,
			.qp_type = RPOST_QPT_RC,
		};
		break;
	case RPOST_IOC_QUERY_ID:
		((struct rpost_query_id *)at)->id = end->id;
		break;
	default:
		break;
	}
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

FIXTURE_SETUP(stuck)
{
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
	self->removal_ms = rp_now_ms();
	ASSERT_EQ(0, rp_remove_device());
	self->removal_ms = rp_now_ms() - self->removal_ms;
	ASSERT_EQ(0, rp_add_device());
	self->refcnt = rp_module_number("refcnt");
	ASSERT_EQ(0, rp_end_init(&self->end));
	ASSERT_EQ(0, rp_end_init(&self->other));
	ASSERT_EQ(0, rp_create_own(&self->end, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_srq(self->end.fd, self->end.pd, 8, &self->srq));
	ASSERT_EQ(0, rp_alloc_pd(self->end.fd, self->end.device, &self->spare.pd));
	ASSERT_EQ(0, rp_client_addr(&self->end, 7000));
	ASSERT_EQ(0, rp_resolve_route(self->end.fd, self->end.id));
	ASSERT_TRUE(rp_readable(self->end.channel, TEST_TIMEOUT_MS));

	self->cmd = rp_pages(PAGE);
	self->data = rp_pages(PAGE);
	memset(self->cmd, 0, PAGE);
	fill_cmd(&self->end, self->srq.handle, variant->nr, self->cmd,
		 self->data);
	*(uint32_t *)self->cmd = variant->size;
	if (variant->what != STUCK_DATA)
		memset(self->data, 0, PAGE);
	if (variant->what == STUCK_STRUCT)
		ASSERT_EQ(0, madvise(self->cmd, PAGE, MADV_DONTNEED));
	ASSERT_EQ(0, watch(self->uffd, variant->what == STUCK_DATA ?
			   self->data : self->cmd,
			   variant->what == STUCK_ANSWER ?
			   UFFDIO_REGISTER_MODE_WP :
			   UFFDIO_REGISTER_MODE_MISSING));
	/* When its event is gone it says so. */
	ASSERT_EQ(0, fcntl(self->end.channel, F_SETFL, O_NONBLOCK));
	self->nr = variant->nr;
	self->fd = variant->nr == RPOST_IOC_GET_EVENT ? self->end.channel :
							self->end.fd;
}

static void *run_command(void *arg)
{
	FIXTURE_DATA(stuck) *self = arg;

	self->ret = rp_ioctl(self->fd, self->nr, self->cmd);
	return NULL;
}

/* The page comes after all. */
static int release(int uffd, void *page)
{
	struct uffdio_range range = { (uintptr_t)page, PAGE };

	/* The second for those who wait to write, whom 6.1 forgets. */
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
	return rp_destroy(self->end.fd, RPOST_OBJ_PD, self->spare.pd);
}

static int destroy_id(FIXTURE_DATA(stuck) *self)
{
	return rp_destroy(self->end.fd, RPOST_OBJ_ID, self->end.id);
}

/* Whatever the command names: it may be in use, but that is said at once. */
static int destroy_named(FIXTURE_DATA(stuck) *self)
{
	rp_destroy(self->end.fd, RPOST_OBJ_QP, self->end.qp);
	rp_destroy(self->end.fd, RPOST_OBJ_SRQ, self->srq.handle);
	rp_destroy(self->end.fd, RPOST_OBJ_CQ, self->end.cq.cmd.handle);
	rp_destroy(self->end.fd, RPOST_OBJ_PD, self->end.pd);
	return 0;
}

static int use_other(FIXTURE_DATA(stuck) *self)
{
	uint32_t pd;

	RP_TRY(rp_alloc_pd(self->other.fd, self->other.device, &pd));
	return rp_destroy(self->other.fd, RPOST_OBJ_PD, pd);
}

static int unload(FIXTURE_DATA(stuck) *self)
{
	(void)self;
	return syscall(SYS_delete_module, "rdma_post", O_NONBLOCK) ? -errno : 0;
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
	{ "destroy", destroy_spare, 0 },
	{ "destroy id", destroy_id, 0 },
	{ "other", use_other, 0 },
	{ "rmmod", unload, -EWOULDBLOCK },
	{ "remove", remove_it, 0 },
	{ "destroy named", destroy_named, 0 },
};

/* Run it: how long it took in ms; HANG_MS if it only ended with the command. */
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

FIXTURE_TEARDOWN(stuck)
{
	if (self->uffd < 0)
		return;
	close(self->uffd);
	EXPECT_EQ(0, rp_add_device());
}

TEST_F(stuck, holds_nobody_up)
{
	void *page = variant->what == STUCK_DATA ? self->data : self->cmd;
	uint64_t begin;
	bool released = false;
	struct timed timed;
	unsigned int i;
	long ms;

	RP_NEED_REMOVAL();
	if (self->uffd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_EQ(0, pthread_create(&self->thread, NULL, run_command, self));
	/* It waits for the page. */
	ASSERT_TRUE(rp_readable(self->uffd, TEST_TIMEOUT_MS));

	printf("# %s:", variant->name);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		timed = (struct timed) { .call = steps[i].call, .self = self };
		ms = run_step(self, &timed, page, &released);
		printf(" %s %s%ld", steps[i].name, ms == HANG_MS ? ">" : "", ms);
		EXPECT_EQ(steps[i].want, timed.ret);
		EXPECT_GE(LIMIT_MS + 2 * self->removal_ms, ms);
	}
	EXPECT_FALSE(released);
	if (!released)
		EXPECT_EQ(0, release(self->uffd, page));
	EXPECT_EQ(0, pthread_join(self->thread, NULL));
	begin = rp_now_ms();
	rp_end_close(&self->end);
	rp_end_close(&self->other);
	if (variant->nr == RPOST_IOC_CREATE_COMP_CHANNEL && !self->ret)
		close(((struct rpost_create_comp_channel *)self->cmd)->fd);
	if (variant->nr == RPOST_IOC_CREATE_ASYNC_CHANNEL && !self->ret)
		close(((struct rpost_create_async_channel *)self->cmd)->fd);
	if (variant->nr == RPOST_IOC_CREATE_EVENT_CHANNEL && !self->ret)
		close(((struct rpost_create_event_channel *)self->cmd)->fd);
	/* Then it can be unloaded. */
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
	ms = rp_now_ms() - begin;
	printf(", then unused in %ld (result %d)\n", ms, self->ret);
	EXPECT_GE(LIMIT_MS, ms);
}

TEST_HARNESS_MAIN
