// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the rdma cgroup: the objects that are charged, its limits, and that
 * every charge is returned to the cgroup that was charged.
 */
#include <kselftest_harness.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "rpost_own.h"

/* A cgroup's charge on the test's device, or its limit. */
struct charge {
	int handles;
	int objects;
};

FIXTURE(rdmacg) {
	bool skip;
	struct cgroup cg;
	char device[64];
	int fd;
	uint32_t dev;
};

FIXTURE_SETUP(rdmacg)
{
	struct rpost_query_device query;

	self->skip = geteuid() || !cg_has("rdma");
	if (self->skip)
		return;
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	self->dev = rp_first_device(self->fd);
	ASSERT_EQ(0, rp_query_device(self->fd, self->dev, &query));
	snprintf(self->device, sizeof(self->device), "%s", query.name);
	ASSERT_EQ(0, cg_create(&self->cg, "rdmacg"));
	ASSERT_EQ(0, cg_enter(&self->cg));
}

/* Each test calls this, because a skip in FIXTURE_SETUP() does not skip it. */
#define NEED_RDMACG()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "no rdma cgroup, or not root");	\
	} while (0)

static int set_limit(const FIXTURE_DATA(rdmacg) *self, const char *what)
{
	return cg_write(&self->cg, "rdma.max", "%s %s", self->device, what);
}

/*
 * Older kernels do not free the limits of a removed cgroup, and use freed
 * memory when the device is removed: so remove the limits first.
 */
FIXTURE_TEARDOWN(rdmacg)
{
	if (self->skip)
		return;
	close(self->fd);
	EXPECT_EQ(0, set_limit(self, "hca_handle=max hca_object=max"));
	EXPECT_EQ(0, cg_enter(NULL));
	EXPECT_EQ(0, cg_remove(&self->cg));
}

static struct charge charged(struct __test_metadata *_metadata,
			     const FIXTURE_DATA(rdmacg) *self,
			     const struct cgroup *cg)
{
	struct charge now = { 0, 0 };
	char text[4096], *line;
	size_t len = strlen(self->device);

	ASSERT_EQ(0, cg_read(cg, "rdma.current", text, sizeof(text)));
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		if (strncmp(line, self->device, len) || line[len] != ' ')
			continue;
		ASSERT_EQ(2, sscanf(line + len, " hca_handle=%d hca_object=%d",
				    &now.handles, &now.objects));
	}
	return now;
}

#define EXPECT_CHARGE(cg, want_handles, want_objects)			\
	do {								\
		struct charge now = charged(_metadata, self, cg);	\
									\
		EXPECT_EQ(want_handles, now.handles);			\
		EXPECT_EQ(want_objects, now.objects);			\
	} while (0)

/* The charged objects, in the order of their creation. */
enum { PD, CQ, MR, SRQ, AH, QP, NUM };

static const uint32_t types[NUM] = {
	RPOST_OBJ_PD, RPOST_OBJ_CQ, RPOST_OBJ_MR, RPOST_OBJ_SRQ, RPOST_OBJ_AH,
	RPOST_OBJ_QP,
};

struct set {
	struct rp_end end;
	uint32_t handles[NUM];
	void *buf;
};

static int make(struct set *set, int what)
{
	struct rp_end *end = &set->end;
	struct rpost_create_srq srq;
	struct rpost_reg_mr mr;
	int ret;

	switch (what) {
	case PD:
		ret = rp_alloc_pd(end->fd, end->device, &end->pd);
		set->handles[PD] = end->pd;
		return ret;
	case CQ:
		ret = rp_create_cq(end->fd, end->device, 64, -1, &end->cq);
		set->handles[CQ] = end->cq.cmd.handle;
		return ret;
	case MR:
		ret = rp_reg_mr(end->fd, end->pd, set->buf, 4096, 0, &mr);
		set->handles[MR] = mr.handle;
		return ret;
	case SRQ:
		ret = rp_create_srq(end->fd, end->pd, 8, &srq);
		set->handles[SRQ] = srq.handle;
		return ret;
	case AH:
		return rp_own_ah(end, &set->handles[AH]);
	default:
		ret = rp_create_own(end, RPOST_QPT_UD, 0);
		set->handles[QP] = end->qp;
		return ret;
	}
}

static int unmake(struct set *set, int what)
{
	if (what == CQ)
		rp_unmap_cq(&set->end.cq);
	return rp_destroy(set->end.fd, types[what], set->handles[what]);
}

static struct set new_set(const FIXTURE_DATA(rdmacg) *self)
{
	return (struct set) {
		.end = { .fd = self->fd, .device = self->dev },
		.buf = rp_pages(4096),
	};
}

TEST_F(rdmacg, charges_what_uverbs_charges)
{
	uint32_t id;
	struct set set;
	int channel, comp, i;

	NEED_RDMACG();
	set = new_set(self);
	EXPECT_CHARGE(&self->cg, 0, 0);
	/* Channels and ids are not objects of a device. */
	channel = rp_event_channel(self->fd);
	comp = rp_comp_channel(self->fd);
	ASSERT_EQ(0, rp_create_id(self->fd, channel, &id));
	ASSERT_EQ(0, rp_bind(self->fd, id, 0));
	EXPECT_CHARGE(&self->cg, 0, 0);

	for (i = 0; i < NUM; i++) {
		ASSERT_EQ(0, make(&set, i));
		EXPECT_CHARGE(&self->cg, 1, i + 1);
	}
	while (i--) {
		ASSERT_EQ(0, unmake(&set, i));
		EXPECT_CHARGE(&self->cg, i ? 1 : 0, i);
	}
	close(channel);
	close(comp);
}

TEST_F(rdmacg, limit_of_objects)
{
	struct set set;
	char limit[32];
	int i;

	NEED_RDMACG();
	set = new_set(self);
	for (i = 0; i < NUM; i++) {
		snprintf(limit, sizeof(limit), "hca_object=%d", i);
		ASSERT_EQ(0, set_limit(self, limit));
		EXPECT_EQ(-EAGAIN, make(&set, i));
		/* The failed command has changed nothing. */
		EXPECT_EQ(i, rp_num_objects(self->fd));
		EXPECT_CHARGE(&self->cg, i ? 1 : 0, i);

		snprintf(limit, sizeof(limit), "hca_object=%d", i + 1);
		ASSERT_EQ(0, set_limit(self, limit));
		ASSERT_EQ(0, make(&set, i));
	}
	/* A returned charge can be used again. */
	ASSERT_EQ(0, unmake(&set, QP));
	ASSERT_EQ(0, make(&set, QP));
	EXPECT_EQ(-EAGAIN, make(&set, MR));
	ASSERT_EQ(0, set_limit(self, "hca_object=max"));
	EXPECT_EQ(0, make(&set, MR));
}

TEST_F(rdmacg, limit_of_handles)
{
	uint32_t pd;
	int fd;

	NEED_RDMACG();
	ASSERT_EQ(0, set_limit(self, "hca_handle=1"));
	fd = rp_open();
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, rp_alloc_pd(self->fd, self->dev, &pd));
	EXPECT_EQ(-EAGAIN, rp_alloc_pd(fd, self->dev, &pd));
	EXPECT_EQ(0, rp_num_objects(fd));
	EXPECT_CHARGE(&self->cg, 1, 1);
	/* A second object of the same file needs no second handle. */
	EXPECT_EQ(0, rp_alloc_pd(self->fd, self->dev, &pd));
	EXPECT_CHARGE(&self->cg, 1, 2);
	close(self->fd);
	EXPECT_CHARGE(&self->cg, 0, 0);
	EXPECT_EQ(0, rp_alloc_pd(fd, self->dev, &pd));
	self->fd = fd;
}

TEST_F(rdmacg, what_fails_is_not_charged)
{
	const struct rpost_alloc_pd cmd = {
		.size = sizeof(cmd), .device = self->dev,
	};
	struct rpost_ah_attr ah = { .sgid_index = 200, .is_global = 1,
				    .port_num = 1 };
	struct rpost_reg_mr mr;
	struct set set;
	uint32_t handle;

	NEED_RDMACG();
	set = new_set(self);
	/* The answer cannot be written, so the command fails. */
	EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(self->fd, RPOST_IOC_ALLOC_PD,
					       &cmd, sizeof(cmd)));
	EXPECT_CHARGE(&self->cg, 0, 0);

	ASSERT_EQ(0, make(&set, PD));
	EXPECT_EQ(-EFAULT, rp_reg_mr(self->fd, set.end.pd, NULL, 4096, 0, &mr));
	EXPECT_NE(0, rp_create_ah(self->fd, set.end.pd, &ah, &handle));
	EXPECT_CHARGE(&self->cg, 1, 1);
}

TEST_F(rdmacg, comes_back_to_who_was_charged)
{
	struct cgroup other;
	struct set set;
	int i;

	NEED_RDMACG();
	set = new_set(self);
	ASSERT_EQ(0, cg_create(&other, "other"));
	ASSERT_EQ(0, make(&set, PD));
	ASSERT_EQ(0, make(&set, CQ));

	/* The handle stays charged where the first object was. */
	ASSERT_EQ(0, cg_enter(&other));
	ASSERT_EQ(0, make(&set, MR));
	ASSERT_EQ(0, make(&set, SRQ));
	EXPECT_CHARGE(&self->cg, 1, 2);
	EXPECT_CHARGE(&other, 0, 2);
	ASSERT_EQ(0, unmake(&set, CQ));
	EXPECT_CHARGE(&self->cg, 1, 1);
	EXPECT_CHARGE(&other, 0, 2);

	/* A cgroup can be removed while it is charged. */
	ASSERT_EQ(0, cg_enter(&self->cg));
	ASSERT_EQ(0, cg_remove(&other));
	for (i = SRQ; i > CQ; i--)
		ASSERT_EQ(0, unmake(&set, i));
	ASSERT_EQ(0, unmake(&set, PD));
	EXPECT_CHARGE(&self->cg, 0, 0);
}

/* Create one of each in two open files, and a connection. */
static int live(const FIXTURE_DATA(rdmacg) *self)
{
	struct rp_end client, server;
	struct set set = new_set(self);
	int i;

	set.end.fd = rp_open();
	for (i = 0; i < NUM; i++)
		RP_TRY(make(&set, i));
	return rp_connect_pair(&client, &server, 0);
}

static pid_t fork_live(const FIXTURE_DATA(rdmacg) *self)
{
	int ready[2];
	char ret = 1;
	pid_t pid;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		ret = live(self) != 0;
		if (write(ready[1], &ret, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &ret, 1) != 1)
		ret = 1;
	close(ready[0]);
	return ret ? -1 : pid;
}

TEST_F(rdmacg, comes_back_at_the_end_of_a_process)
{
	int status;
	pid_t pid;

	NEED_RDMACG();
	pid = fork_live(self);
	ASSERT_LT(0, pid);
	/* Each end of the connection has a domain, a CQ and a QP. */
	EXPECT_CHARGE(&self->cg, 3, NUM + 6);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_CHARGE(&self->cg, 0, 0);
}

TEST_F(rdmacg, comes_back_when_the_device_goes)
{
	struct set set;
	uint32_t pd;
	int i;

	NEED_RDMACG();
	RP_NEED_REMOVAL();
	set = new_set(self);
	for (i = 0; i < NUM; i++)
		ASSERT_EQ(0, make(&set, i));
	EXPECT_CHARGE(&self->cg, 1, NUM);
	/* The removal in this process charges nothing. */
	ASSERT_EQ(0, rp_remove_device());
	EXPECT_CHARGE(&self->cg, 0, 0);

	/* The new device has the same name but no charges. */
	ASSERT_EQ(0, rp_add_device());
	EXPECT_CHARGE(&self->cg, 0, 0);
	ASSERT_EQ(0, rp_alloc_pd(self->fd, rp_first_device(self->fd), &pd));
	EXPECT_CHARGE(&self->cg, 1, 1);
	/* Objects of the removed device are not charged any more. */
	while (i--)
		ASSERT_EQ(0, unmake(&set, i));
	EXPECT_CHARGE(&self->cg, 1, 1);
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_PD, pd));
	EXPECT_CHARGE(&self->cg, 0, 0);
}

TEST_HARNESS_MAIN
