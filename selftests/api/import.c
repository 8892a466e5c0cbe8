// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests imports: ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3).  A
 * failure means that processes cannot share a protection domain, or that
 * objects end with the wrong process.
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../lib/pass_fd.h"
#include "rdma_test.h"

#define BYTES	4096

/* The exporter sends these numbers to the importer, beside the descriptor. */
struct told {
	uint32_t pd, mr, lkey, rkey;
};

struct objects {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char buf[BYTES];
};

FIXTURE(import) {
	struct objects own;
	struct ibv_context *verbs;	/* the import of own.verbs */
};

static bool make(struct objects *o)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		return false;
	o->verbs = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	o->pd = o->verbs ? ibv_alloc_pd(o->verbs) : NULL;
	o->mr = o->pd ? ibv_reg_mr(o->pd, o->buf, BYTES, IBV_ACCESS_LOCAL_WRITE) :
			NULL;
	return o->mr;
}

FIXTURE_SETUP(import)
{
	ASSERT_TRUE(make(&self->own));
	self->verbs = ibv_import_device(dup(self->own.verbs->cmd_fd));
	/* rxe's own provider has no imports. */
	if (!self->verbs) {
		EXPECT_EQ(EOPNOTSUPP, errno);
		ASSERT_TRUE(over_incumbent());
	}
}

#define NEED_IMPORTS() do {						\
	if (!self->verbs)						\
		SKIP(return, "the provider has no imports");		\
} while (0)

FIXTURE_TEARDOWN(import)
{
	EXPECT_EQ(0, ibv_dereg_mr(self->own.mr));
	EXPECT_EQ(0, ibv_dealloc_pd(self->own.pd));
	EXPECT_EQ(0, ibv_close_device(self->own.verbs));
	if (self->verbs)
		EXPECT_EQ(0, ibv_close_device(self->verbs));
}

/* Does a region in an imported domain have the exporter's keys? */
static bool same_mr(struct ibv_pd *pd, const struct told *told)
{
	struct ibv_mr *mr = ibv_import_mr(pd, told->mr);
	bool same = mr && mr->lkey == told->lkey && mr->rkey == told->rkey &&
		    mr->length == BYTES && mr->pd == pd && !mr->addr;

	if (mr)
		ibv_unimport_mr(mr);
	return same;
}

/* Makes and ends objects in a domain. */
static bool usable(struct ibv_pd *pd)
{
	static char buf[BYTES];
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_cq *cq = ibv_create_cq(pd->context, 8, NULL, NULL, 0);
	struct ibv_qp *qp;

	attr.send_cq = attr.recv_cq = cq;
	qp = mr && cq ? ibv_create_qp(pd, &attr) : NULL;
	return qp && !ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) &&
	       !ibv_dereg_mr(mr);
}

static struct told tell(const struct objects *o)
{
	return (struct told) {
		.pd = o->pd->handle, .mr = o->mr->handle,
		.lkey = o->mr->lkey, .rkey = o->mr->rkey,
	};
}

TEST_F(import, in_the_same_process)
{
	struct told told = tell(&self->own);
	struct ibv_pd *pd;

	NEED_IMPORTS();
	EXPECT_EQ(self->own.verbs->device, self->verbs->device);
	pd = ibv_import_pd(self->verbs, told.pd);
	ASSERT_NE(NULL, pd);
	EXPECT_EQ(self->verbs, pd->context);
	EXPECT_EQ(told.pd, pd->handle);
	EXPECT_TRUE(same_mr(pd, &told));
	EXPECT_TRUE(usable(pd));
	ibv_unimport_pd(pd);
	EXPECT_TRUE(usable(self->own.pd));
}

/* The exporter's region does not change. */
TEST_F(import, rereg)
{
	const int changes = IBV_REREG_MR_CHANGE_TRANSLATION |
			    IBV_REREG_MR_CHANGE_ACCESS;
	struct told told = tell(&self->own);
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	NEED_IMPORTS();
	pd = ibv_import_pd(self->verbs, told.pd);
	ASSERT_NE(NULL, pd);
	mr = ibv_import_mr(pd, told.mr);
	ASSERT_NE(NULL, mr);
	errno = 0;
	EXPECT_EQ(IBV_REREG_MR_ERR_INPUT,
		  ibv_rereg_mr(mr, changes, NULL, self->own.buf, BYTES, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(told.rkey, mr->rkey);
	ibv_unimport_mr(mr);
	EXPECT_TRUE(same_mr(pd, &told));
	ibv_unimport_pd(pd);
}

/* An importer may end the exporter's objects.  The exporter can only unimport. */
TEST_F(import, ended_by_the_importer)
{
	static struct objects o;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	NEED_IMPORTS();
	ASSERT_TRUE(make(&o));
	verbs = ibv_import_device(dup(o.verbs->cmd_fd));
	ASSERT_NE(NULL, verbs);
	pd = ibv_import_pd(verbs, o.pd->handle);
	ASSERT_NE(NULL, pd);
	mr = ibv_import_mr(pd, o.mr->handle);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	ASSERT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(ENOENT, ibv_dereg_mr(o.mr));
	ibv_unimport_mr(o.mr);
	EXPECT_TRUE(usable(o.pd));
	ASSERT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(ENOENT, ibv_dealloc_pd(o.pd));
	ibv_unimport_pd(o.pd);
	/* The context goes on. */
	o.pd = ibv_alloc_pd(o.verbs);
	ASSERT_NE(NULL, o.pd);
	EXPECT_TRUE(usable(o.pd));
	EXPECT_EQ(0, ibv_dealloc_pd(o.pd));
	EXPECT_EQ(0, ibv_close_device(verbs));
	EXPECT_EQ(0, ibv_close_device(o.verbs));
}

/*
 * The exporter closes its context, which ends its objects, but for a domain in
 * which an importer has some.  Returns the number of the step that failed, or 0.
 */
static int close_first(bool used)
{
	static struct objects o;
	static char buf[BYTES];
	struct ibv_context *verbs;
	struct ibv_pd *pd, *again;
	struct ibv_mr *mr = NULL;
	struct told told;

	if (!make(&o))
		return 1;
	told = tell(&o);
	verbs = ibv_import_device(dup(o.verbs->cmd_fd));
	pd = verbs ? ibv_import_pd(verbs, told.pd) : NULL;
	if (!pd || !same_mr(pd, &told))
		return 2;
	if (used)
		mr = ibv_reg_mr(pd, buf, BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (used != !!mr || ibv_close_device(o.verbs))
		return 3;
	errno = 0;
	if (ibv_import_mr(pd, told.mr) || errno != ENOENT)
		return 4;
	again = ibv_import_pd(verbs, told.pd);
	if (used != !!again || errno != ENOENT)
		return 5;
	if (used && (!usable(again) || ibv_dereg_mr(mr)))
		return 6;
	if (used)
		ibv_unimport_pd(again);
	if (ibv_dealloc_pd(pd) != (used ? 0 : ENOENT))
		return 7;
	if (!used)
		ibv_unimport_pd(pd);
	return ibv_close_device(verbs) ? 8 : 0;
}

/* In children, since the exporter's structs stay. */
TEST_F(import, exporter_closes_first)
{
	int status, used;
	pid_t pid;

	NEED_IMPORTS();
	for (used = 0; used < 2; used++) {
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid)
			_exit(close_first(used));
		status = -1;
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, WEXITSTATUS(status));
		EXPECT_EQ(0, WTERMSIG(status));
	}
}

static struct ibv_pd *parent_domain(struct ibv_context *verbs,
				    struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd };

	return ibv_alloc_parent_domain(verbs, &attr);
}

/* Descriptors of other files, which stay the caller's. */
TEST_F(import, errors_of_descriptors)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct ibv_comp_channel *comp = ibv_create_comp_channel(self->own.verbs);
	int closed, pipes[2], i;

	NEED_IMPORTS();
	ASSERT_NE(NULL, channel);
	ASSERT_NE(NULL, comp);
	ASSERT_EQ(0, pipe(pipes));
	const struct {
		int fd, err;
	} files[] = {
		{ -1, EBADF },
		{ INT_MAX, EBADF },
		{ open("/dev/null", O_RDWR), EOPNOTSUPP },
		{ open("/", O_RDONLY), EOPNOTSUPP },
		{ open("/", O_PATH), EBADF },
		{ socket(AF_INET, SOCK_STREAM, 0), EOPNOTSUPP },
		{ pipes[0], EOPNOTSUPP },
		{ channel->fd, EOPNOTSUPP },
		{ comp->fd, EOPNOTSUPP },
		{ self->verbs->async_fd, EOPNOTSUPP },
		/* All devices: it does not say which. */
		{ open("/dev/rdma_post", O_RDWR), ENODEV },
	};

	for (i = 0; i < (int)ARRAY_SIZE(files); i++) {
		errno = 0;
		EXPECT_EQ(NULL, ibv_import_device(files[i].fd));
		EXPECT_EQ(files[i].err, errno)
			TH_LOG("file %d", i);
		if (files[i].err != EBADF)
			EXPECT_LE(0, fcntl(files[i].fd, F_GETFD));
	}
	closed = dup(self->verbs->cmd_fd);
	close(closed);
	EXPECT_NULL_ERRNO(EBADF, ibv_import_device(closed));
	rdma_destroy_event_channel(channel);
	EXPECT_EQ(0, ibv_destroy_comp_channel(comp));
}

TEST_F(import, errors)
{
	struct ibv_pd *pd, *other = ibv_alloc_pd(self->own.verbs);

	NEED_IMPORTS();
	ASSERT_NE(NULL, other);
	EXPECT_NULL_ERRNO(ENOENT, ibv_import_pd(self->verbs, 0));
	EXPECT_NULL_ERRNO(ENOENT, ibv_import_pd(self->verbs, self->own.mr->handle));
	pd = ibv_import_pd(self->verbs, other->handle);
	ASSERT_NE(NULL, pd);
	EXPECT_NULL_ERRNO(EINVAL, ibv_import_mr(pd, self->own.mr->handle));
	/* Objects of the two contexts do not go together. */
	EXPECT_EQ(NULL, parent_domain(self->own.verbs, pd));
	EXPECT_NULL_ERRNO(ENOENT, ibv_import_mr(pd, other->handle));
	ibv_unimport_pd(pd);
	EXPECT_EQ(0, ibv_dealloc_pd(other));
}

/* More than there are channels for asynchronous events; then no descriptor. */
TEST_F(import, many)
{
	struct ibv_context *verbs[150];
	struct rlimit was, none = {};
	struct ibv_pd *pd;
	int i, fd;

	NEED_IMPORTS();
	for (i = 0; i < (int)ARRAY_SIZE(verbs); i++) {
		verbs[i] = ibv_import_device(dup(self->own.verbs->cmd_fd));
		ASSERT_NE(NULL, verbs[i]);
	}
	fd = dup(self->own.verbs->cmd_fd);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &was));
	none.rlim_max = was.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
	EXPECT_NULL_ERRNO(EMFILE, ibv_import_device(fd));
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &was));
	EXPECT_EQ(0, close(fd));
	for (i = 0; i < (int)ARRAY_SIZE(verbs); i++) {
		pd = ibv_import_pd(verbs[i], self->own.pd->handle);
		EXPECT_NE(NULL, pd);
		ibv_unimport_pd(pd);
		EXPECT_EQ(0, ibv_close_device(verbs[i]));
	}
	EXPECT_TRUE(usable(self->own.pd));
}

/* A child that makes objects, passes them on and dies. */
static void export(int sock)
{
	static struct objects o;
	struct told told;

	if (!make(&o))
		_exit(1);
	told = tell(&o);
	if (send(sock, &told, sizeof(told), 0) != sizeof(told) ||
	    send_fd(sock, o.verbs->cmd_fd))
		_exit(2);
	_exit(0);
}

TEST_F(import, from_a_process_that_died)
{
	struct ibv_context *verbs;
	int socks[2], status = -1, fd;
	struct told told;
	struct ibv_pd *pd;
	pid_t pid;

	NEED_IMPORTS();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		export(socks[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	ASSERT_EQ(sizeof(told), recv(socks[0], &told, sizeof(told), 0));
	fd = recv_fd(socks[0]);
	ASSERT_LE(0, fd);
	verbs = ibv_import_device(fd);
	ASSERT_NE(NULL, verbs);
	pd = ibv_import_pd(verbs, told.pd);
	ASSERT_NE(NULL, pd);
	EXPECT_TRUE(same_mr(pd, &told));
	EXPECT_TRUE(usable(pd));
	ibv_unimport_pd(pd);
	EXPECT_EQ(0, ibv_close_device(verbs));
	EXPECT_EQ(-1, fcntl(fd, F_GETFD));
	close(socks[0]);
	close(socks[1]);
}

/* A child that imports, leaves its objects behind, and dies. */
static void use_and_die(const struct objects *o)
{
	struct told told = tell(o);
	struct ibv_context *verbs = ibv_import_device(dup(o->verbs->cmd_fd));
	struct ibv_pd *pd = verbs ? ibv_import_pd(verbs, told.pd) : NULL;

	_exit(!pd || !same_mr(pd, &told) || !usable(pd));
}

TEST_F(import, by_a_process_that_dies)
{
	int status = -1;
	pid_t pid;

	NEED_IMPORTS();
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		use_and_die(&self->own);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_TRUE(usable(self->own.pd));
}

/* ------------------------------------------------------------- memory */

PAIR_FIXTURE(shared, pair_open)

struct region {
	uint64_t addr;
	uint32_t lkey, rkey;
};

/* A child that registers its own memory in its parent's domain. */
static void lend(int sock, const struct ibv_pd *from)
{
	uint8_t *mem = poisoned_pages(BUF_SIZE);
	struct ibv_context *verbs = ibv_import_device(dup(from->context->cmd_fd));
	struct ibv_pd *pd = verbs ? ibv_import_pd(verbs, from->handle) : NULL;
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, mem, BUF_SIZE,
					    IBV_ACCESS_LOCAL_WRITE |
					    IBV_ACCESS_REMOTE_READ) : NULL;
	struct region region = { .addr = addr64(mem) };
	char byte;

	if (mr) {
		region.lkey = mr->lkey;
		region.rkey = mr->rkey;
		fill(mem, BUF_SIZE, 7);
	}
	if (send(sock, &region, sizeof(region), 0) != sizeof(region) ||
	    recv(sock, &byte, 1, 0) != 1)
		_exit(1);
	_exit(!mr);
}

/* Queue pairs of the domain use the child's memory, at its addresses. */
TEST_F(shared, memory_of_the_importer)
{
	int socks[2], status = -1;
	struct region region;
	pid_t pid;

	if (over_incumbent())
		SKIP(return, "the provider has no imports");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_DGRAM, 0, socks));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		lend(socks[1], self->c->mr->pd);
	ASSERT_EQ(sizeof(region), recv(socks[0], &region, sizeof(region), 0));
	ASSERT_EQ(0, end_write_from(self->c, region.addr, BUF_SIZE, region.lkey,
				    self->s));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, BUF_SIZE, 7));
	ASSERT_EQ(1, send(socks[0], "x", 1, 0));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	close(socks[0]);
	close(socks[1]);
}

TEST_HARNESS_MAIN
