// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Limits of an open file and of its program: queue entries, locked memory, the
 * memory cgroup, privileged ports, and those that are fixed.  Each is run into,
 * and what was charged comes back.  RPOST_TEST_LATE is a command that names an
 * address whose resolution takes its time and then fails.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "rpost_own.h"

#define PARAMETER	"/sys/module/rdma_post/parameters/"
#define NOBODY		65534
#define MB		(1 << 20)

/* ------------------------------------------------------- queue entries */

FIXTURE(entries) {
	struct rp_end end;
	long max_wr, max_cqe;
	bool skip;
};

static int set_parameter(const char *name, long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	return cg_put(PARAMETER, name, text);
}

FIXTURE_SETUP(entries)
{
	self->max_wr = rp_module_number("parameters/max_wr");
	self->max_cqe = rp_module_number("parameters/max_cqe");
	ASSERT_LT(0, self->max_wr);
	ASSERT_LT(0, self->max_cqe);
	self->skip = access(PARAMETER "max_wr", W_OK);
	ASSERT_EQ(0, rp_end_init(&self->end));
}

FIXTURE_TEARDOWN(entries)
{
	rp_end_close(&self->end);
	if (self->skip)
		return;
	EXPECT_EQ(0, set_parameter("max_wr", self->max_wr));
	EXPECT_EQ(0, set_parameter("max_cqe", self->max_cqe));
}

#define NEED_ROOT()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "needs root");			\
	} while (0)

/* Each queue has an entry more than the program asks for, to be drained. */
#define QP_ENTRIES	(2 * (RP_DEPTH + 1))

TEST_F(entries, work_requests)
{
	struct rp_end *end = &self->end;
	struct rpost_create_srq srq;
	uint32_t first;
	int fd;

	NEED_ROOT();
	ASSERT_EQ(0, set_parameter("max_wr", 2 * QP_ENTRIES + 7));
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	first = end->qp;
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_srq(end->fd, end->pd, 8, &srq));
	EXPECT_EQ(4, rp_num_objects(end->fd));
	/* Shared receive queues count by themselves. */
	ASSERT_EQ(0, rp_create_srq(end->fd, end->pd, 7, &srq));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, first));
	EXPECT_EQ(-EMFILE, rp_create_srq(end->fd, end->pd, QP_ENTRIES + 1,
					 &srq));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_UD, 0));
	EXPECT_EQ(-EMFILE, rp_create_srq(end->fd, end->pd, 1, &srq));

	/* Each open file has its own. */
	fd = end->fd;
	close(end->channel);
	rp_unmap_cq(&end->cq);
	ASSERT_EQ(0, rp_end_init(end));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(end, RPOST_QPT_RC, 0));
	close(fd);
}

/* What fails takes nothing: it can fail without end. */
TEST_F(entries, failures_take_nothing)
{
	struct rp_end *end = &self->end;
	const struct rpost_create_qp qp = {
		.size = sizeof(qp),
		.pd = end->pd,
		.send_cq = end->cq.cmd.handle,
		.recv_cq = end->cq.cmd.handle,
		.max_send_wr = RP_DEPTH,
		.max_recv_wr = RP_DEPTH,
	};
	const struct rpost_create_srq srq = {
		.size = sizeof(srq),
		.pd = end->pd,
		.max_wr = QP_ENTRIES,
		.max_sge = 1,
	};
	int i;

	NEED_ROOT();
	ASSERT_EQ(0, set_parameter("max_wr", QP_ENTRIES));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end->fd,
						       RPOST_IOC_CREATE_QP, &qp,
						       sizeof(qp)));
		EXPECT_EQ(-EFAULT, rp_ioctl_unanswered(end->fd,
						       RPOST_IOC_CREATE_SRQ,
						       &srq, sizeof(srq)));
	}
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
}

/*
 * A completion queue has entries on the device when a queue pair needs them: as
 * many as the program asked for, or if there are not so many left, no more than
 * are needed.
 */
TEST_F(entries, completions)
{
	struct rp_end *end = &self->end;
	struct rp_end other = *end;

	NEED_ROOT();
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 128, -1, &other.cq));
	ASSERT_EQ(0, set_parameter("max_cqe", 4 * RP_DEPTH + RP_DEPTH));
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(&other, RPOST_QPT_RC, 0));
	EXPECT_EQ(4, rp_num_objects(end->fd));
	ASSERT_EQ(0, set_parameter("max_cqe", 4 * RP_DEPTH + QP_ENTRIES));
	ASSERT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
	/* They go with the completion queue. */
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, other.qp));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_CQ, other.cq.cmd.handle));
	rp_unmap_cq(&other.cq);
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 128, -1, &other.cq));
	EXPECT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
	rp_unmap_cq(&other.cq);
}

TEST_F(entries, come_back_when_the_device_goes)
{
	struct rp_end *end = &self->end;
	struct rpost_create_srq srq;

	NEED_ROOT();
	RP_NEED_REMOVAL();
	ASSERT_EQ(0, set_parameter("max_wr", QP_ENTRIES + 8));
	ASSERT_EQ(0, set_parameter("max_cqe", 4 * RP_DEPTH));
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_srq(end->fd, end->pd, 8, &srq));
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, rp_add_device());

	/* The shells of the old ones are still there. */
	rp_unmap_cq(&end->cq);
	end->device = rp_first_device(end->fd);
	ASSERT_EQ(0, rp_alloc_pd(end->fd, end->device, &end->pd));
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 4 * RP_DEPTH, -1,
				  &end->cq));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, rp_create_srq(end->fd, end->pd, 8, &srq));
}

/* The other side is told; nothing of the request stays. */
TEST_F(entries, requests_beyond_max_objects_are_rejected)
{
	long max_objects = rp_module_number("parameters/max_objects");
	struct rp_end *server = &self->end, clients[2];
	struct rpost_get_event event;
	uint32_t listener;
	int i;

	NEED_ROOT();
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, rp_end_init(&clients[i]));
	ASSERT_EQ(0, rp_listener(server, &listener));
	/* The server has three, and a client has four. */
	ASSERT_EQ(0, set_parameter("max_objects", 4));
	ASSERT_EQ(0, rp_ask(&clients[0], server, listener, 0));
	EXPECT_EQ(4, rp_num_objects(server->fd));
	ASSERT_EQ(0, rp_client_route(&clients[1], rp_port(server->fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&clients[1], 0));
	ASSERT_EQ(0, rp_connect(clients[1].fd, clients[1].id));
	EXPECT_EQ(0, rp_get_event(clients[1].channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	EXPECT_EQ(4, rp_num_objects(server->fd));
	EXPECT_EQ(0, set_parameter("max_objects", max_objects));
	/* The one that there was room for goes on. */
	ASSERT_EQ(0, rp_create_qp(server, 0));
	ASSERT_EQ(0, rp_accept(server->fd, server->id));
	EXPECT_EQ(0, rp_expect(server->channel, server->id,
			       RPOST_EVENT_ESTABLISHED));
	for (i = 0; i < 2; i++)
		rp_end_close(&clients[i]);
}

/* What a server of a thousand clients needs is there by default. */
TEST_F(entries, enough_for_a_thousand_connections)
{
	const long each = 2 * (128 + 1);

	if (self->max_wr != 1048576 || self->max_cqe != 4194304)
		SKIP(return, "not the module's defaults");
	EXPECT_LE(1000 * each, self->max_wr);
	/* A completion queue for all doubles as they come; or two for each. */
	EXPECT_LE(2 * 1000 * each, self->max_cqe);
	EXPECT_LE(1000 * 5, rp_module_number("parameters/max_objects"));
}

/* ------------------------------------------------------- locked memory */

FIXTURE(memlock) {
	struct rp_end end;
	char *mem;
	bool skip;
};

FIXTURE_SETUP(memlock)
{
	const struct rlimit limit = { MB, MB };

	/* Also a program without privileges has the limit. */
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	self->skip = !geteuid() && setresuid(NOBODY, NOBODY, NOBODY);
	ASSERT_EQ(0, rp_end_init(&self->end));
	self->mem = rp_pages(2 * MB);
	ASSERT_NE(NULL, self->mem);
	ASSERT_EQ(0, rp_pinned());
}

FIXTURE_TEARDOWN(memlock)
{
	rp_end_close(&self->end);
	EXPECT_EQ(0, rp_pinned());
}

TEST_F(memlock, enomem)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr a, b;

	if (self->skip)
		SKIP(return, "cannot give up root");
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, MB + 1, 0,
				     &a));
	EXPECT_EQ(0, rp_pinned());
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &a));
	EXPECT_EQ(MB / 2, rp_pinned());
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2 + 1, 0,
				     &b));
	EXPECT_EQ(MB / 2, rp_pinned());
	EXPECT_EQ(3, rp_num_objects(end->fd));
	/* What is pinned twice counts twice. */
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &b));
	EXPECT_EQ(MB, rp_pinned());
	EXPECT_EQ(-ENOMEM, rp_reg_mr(end->fd, end->pd, self->mem, 1, 0, &a));

	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, b.handle));
	EXPECT_EQ(MB / 2, rp_pinned());
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB / 2, 0, &b));
}

/* One limit for all that a program has open. */
TEST_F(memlock, across_open_files)
{
	struct rpost_reg_mr mr;
	struct rp_end other;

	if (self->skip)
		SKIP(return, "cannot give up root");
	ASSERT_EQ(0, rp_end_init(&other));
	ASSERT_EQ(0, rp_reg_mr(other.fd, other.pd, self->mem, MB, 0, &mr));
	EXPECT_EQ(-ENOMEM, rp_reg_mr(self->end.fd, self->end.pd, self->mem,
				     4096, 0, &mr));
	rp_end_close(&other);
	EXPECT_EQ(0, rp_pinned());
	EXPECT_EQ(0, rp_reg_mr(self->end.fd, self->end.pd, self->mem, MB, 0,
			       &mr));
}

/* Whoever destroys the region, its program gets the charge back. */
TEST_F(memlock, destroyed_by_another_process)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr mr;
	int status;
	pid_t pid;

	if (self->skip)
		SKIP(return, "cannot give up root");
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB, 0, &mr));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(rp_pinned() || rp_destroy(end->fd, RPOST_OBJ_MR, mr.handle) ||
		      rp_pinned());
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_EQ(0, rp_pinned());
	EXPECT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, MB, 0, &mr));
}

/* ------------------------------------------------------- memory cgroup */

FIXTURE(memcg) {
	struct cgroup cg;
	bool skip;
};

FIXTURE_SETUP(memcg)
{
	self->skip = geteuid() || !cg_has("memory");
	if (self->skip)
		return;
	ASSERT_EQ(0, cg_create(&self->cg, "memcg"));
	ASSERT_EQ(0, cg_enter(&self->cg));
}

FIXTURE_TEARDOWN(memcg)
{
	if (self->skip)
		return;
	EXPECT_EQ(0, cg_enter(NULL));
	EXPECT_EQ(0, cg_remove(&self->cg));
}

#define NEED_MEMCG()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "no memory cgroup, or not root");	\
	} while (0)

static long long current(const struct cgroup *cg)
{
	return cg_number(cg, "memory.current", NULL);
}

/* Charges come back a bit later, and each CPU keeps some in reserve. */
#define MEMORY_SLACK	(2 * MB)

static long long wait_current(const struct cgroup *cg, long long most)
{
	uint64_t end = rp_now_ms() + 2 * TEST_TIMEOUT_MS;
	long long now;

	do {
		now = current(cg);
	} while (now > most && rp_now_ms() < end && !usleep(10000));
	return now;
}

/* A number of the cgroup's, when it stays the same for @ms, and is not 0. */
static long long settled(const struct cgroup *cg,
			 long long (*number)(const struct cgroup *cg), int ms)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long long before, now = number(cg);

	do {
		before = now;
		usleep(ms * 1000);
		now = number(cg);
	} while ((!now || now != before) && rp_now_ms() < end);
	return now;
}

/* Without the charges that are still to come back. */
static long long settled_current(const struct cgroup *cg)
{
	return settled(cg, current, 500);
}

/*
 * Let the cgroup have no more than @bytes above what it has now.  Whatever needs
 * memory at the limit, but for the module, gets the program killed: a page
 * fault, or opening a file.  Returns a file for unlimit_memory(), or an errno.
 */
static int limit_memory(const struct cgroup *cg, long long bytes)
{
	char text[32];
	int fd;

	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return -errno;
	fd = cg_open(cg->path, "memory.max", O_WRONLY);
	if (fd < 0)
		return fd;
	snprintf(text, sizeof(text), "%lld", settled_current(cg) + bytes);
	return pwrite(fd, text, strlen(text), 0) < 0 ? -errno : fd;
}

static int unlimit_memory(int fd)
{
	int ret = pwrite(fd, "max", 3, 0) < 0 ? -errno : 0;

	close(fd);
	return ret;
}

#define RING_CQE	16384	/* a ring of 1 MB */
#define MAX_RINGS	64

/* Rings until no more can be had; how many, and the error. */
static int fill_with_rings(int fd, uint32_t device, uint32_t *handles, int *ret)
{
	struct rpost_create_cq cmd;
	int n;

	for (n = 0; n < MAX_RINGS; n++) {
		cmd = (struct rpost_create_cq) {
			.size = sizeof(cmd),
			.device = device,
			.cqe = RING_CQE,
			.channel_fd = -1,
		};
		*ret = rp_ioctl(fd, RPOST_IOC_CREATE_CQ, &cmd);
		if (*ret)
			break;
		handles[n] = cmd.handle;
	}
	return n;
}

TEST_F(memcg, rings)
{
	uint32_t handles[MAX_RINGS], device;
	long long before;
	int fd, i, n, limit, ret = 0, round;

	NEED_MEMCG();
	fd = rp_open();
	ASSERT_LE(0, fd);
	device = rp_first_device(fd);
	before = settled_current(&self->cg);
	for (round = 0; round < 3; round++) {
		limit = limit_memory(&self->cg, 16 * MB);
		ASSERT_LE(0, limit);
		n = fill_with_rings(fd, device, handles, &ret);
		ASSERT_EQ(0, unlimit_memory(limit));
		EXPECT_EQ(-ENOMEM, ret);
		EXPECT_LE(10, n);
		EXPECT_GE(18, n);
		EXPECT_EQ(n, rp_num_objects(fd));
		for (i = 0; i < n; i++)
			ASSERT_EQ(0, rp_destroy(fd, RPOST_OBJ_CQ, handles[i]));
		EXPECT_GE(before + MEMORY_SLACK,
			  wait_current(&self->cg, before + MEMORY_SLACK));
	}
	EXPECT_EQ(0, cg_number(&self->cg, "memory.events", "oom_kill"));
	close(fd);
}

static void prefer_to_be_killed(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1000", 4) != 4)
		_exit(0);
	close(fd);
}

/*
 * Queue pairs, with their slots and inline data, up to the limit: how many, or 0
 * if anything was not as it should be.
 */
static int queues_until_enomem(void)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.max_send_wr = 4096,
		.max_send_sge = 1,
		.max_inline_data = 128,
	};
	struct rp_end end;
	int n, ret = 0;

	if (rp_end_init(&end))
		return 0;
	cmd.pd = end.pd;
	cmd.send_cq = end.cq.cmd.handle;
	cmd.recv_cq = end.cq.cmd.handle;
	for (n = 0; n < 64 && !ret; n++)
		ret = rp_ioctl(end.fd, RPOST_IOC_CREATE_QP, &cmd);
	/* The last was refused, and there are a domain and a completion queue. */
	if (ret != -ENOMEM || rp_num_objects(end.fd) != n + 1)
		return 0;
	return n - 1;
}

/*
 * Not an OOM kill by what the module allocates.  But rxe makes a socket for each
 * queue pair, whose inode is charged, too: if the limit is reached just there,
 * the kernel kills.
 */
TEST_F(memcg, queues)
{
	int limit, status, round, killed = 0;
	long long before;
	pid_t pid;

	NEED_MEMCG();
	before = settled_current(&self->cg);
	/* Less than three in four: more rounds where the first were unlucky. */
	for (round = 0; round < 4 || (4 * killed >= 3 * round && round < 12);
	     round++) {
		pid = fork();
		if (!pid) {
			prefer_to_be_killed();
			/* What is locked is not inherited. */
			if (limit_memory(&self->cg, 12 * MB) < 0)
				_exit(0);
			_exit(queues_until_enomem());
		}
		ASSERT_LT(0, pid);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		limit = cg_open(self->cg.path, "memory.max", O_WRONLY);
		ASSERT_LE(0, limit);
		ASSERT_EQ(0, unlimit_memory(limit));
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
			killed++;
		} else {
			/* Each takes 0.6 MB at least. */
			EXPECT_TRUE(WIFEXITED(status));
			EXPECT_LT(4, WEXITSTATUS(status));
			EXPECT_GT(24, WEXITSTATUS(status));
		}
		EXPECT_GE(before + MEMORY_SLACK,
			  wait_current(&self->cg, before + MEMORY_SLACK));
	}
	EXPECT_GT(3 * round, 4 * killed);
	EXPECT_EQ(killed, cg_number(&self->cg, "memory.events", "oom_kill"));
}

TEST_F(memcg, comes_back_at_the_end_of_a_process)
{
	long long before;
	struct rp_end end;
	struct rp_cq cq;
	int status;
	pid_t pid;

	NEED_MEMCG();
	before = settled_current(&self->cg);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (rp_end_init(&end))
			_exit(1);
		while (current(&self->cg) < before + 4 * MB) {
			if (rp_create_cq(end.fd, end.device, 16384, -1, &cq))
				_exit(1);
		}
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_GE(before + MEMORY_SLACK,
		  wait_current(&self->cg, before + MEMORY_SLACK));
}

/*
 * Slab memory, in bytes: some seconds late, and precise to some pages, since each
 * CPU counts up to a page before it says so.
 */
static long long slab(const struct cgroup *cg)
{
	return cg_number(cg, "memory.stat", "slab");
}

static long long wait_slab(const struct cgroup *cg, long long least)
{
	uint64_t end = rp_now_ms() + 2 * TEST_TIMEOUT_MS;
	long long now;

	do {
		now = slab(cg);
	} while (now < least && rp_now_ms() < end && !usleep(100000));
	return now;
}

static long long settled_slab(const struct cgroup *cg)
{
	return settled(cg, slab, 2500);
}

/*
 * Many, so that half of their bytes is more than slab() may be wrong by, and than what
 * 7.2 keeps in a sheaf of each CPU after kfree_rcu().
 */
#define REQUESTS	256
#define REQUEST_BYTES	500	/* the new id and its event are more */

/*
 * Ask, and wait for no answer.  All within a short time: the first give up after
 * 102 s, and what they asked for is gone then.
 */
static int ask(struct rp_end *client, uint16_t port)
{
	uint32_t ids[REQUESTS], i;

	for (i = 0; i < REQUESTS; i++) {
		RP_TRY(rp_client_route(client, port));
		RP_TRY(rp_create_qp(client, 0));
		ids[i] = client->id;
	}
	for (i = 0; i < REQUESTS; i++)
		RP_TRY(rp_connect(client->fd, ids[i]));
	return 0;
}

/* A program outside of the cgroup that asks when it is told the port. */
static pid_t fork_client(int socket)
{
	struct rp_end client;
	uint16_t port;
	char ret = 1;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (!cg_enter(NULL) && !rp_end_init(&client) &&
	    read(socket, &port, sizeof(port)) == sizeof(port))
		ret = ask(&client, port) != 0;
	if (write(socket, &ret, 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/*
 * Take requests and destroy them, until there are @objects.  Clients ask again while
 * they have no answer, which makes a new request if it comes after that.
 */
static int drop_requests(struct rp_end *server, int objects)
{
	struct rpost_get_event event;

	while (rp_num_objects(server->fd) > objects) {
		RP_TRY(rp_get_event(server->channel, &event));
		if (event.event == RPOST_EVENT_CONNECT_REQUEST)
			RP_TRY(rp_destroy(server->fd, RPOST_OBJ_ID, event.id));
	}
	return 0;
}

/* Requests that come again meanwhile are dropped as well. */
static long long drop_until(const struct cgroup *cg, struct rp_end *server,
			    int objects, long long most)
{
	uint64_t end = rp_now_ms() + 2 * TEST_TIMEOUT_MS;
	long long now;

	do {
		RP_TRY(drop_requests(server, objects));
		now = slab(cg);
	} while (now > most && rp_now_ms() < end && !usleep(100000));
	return now;
}

static int wait_objects(int fd, int want)
{
	uint64_t end = rp_now_ms() + 2 * TEST_TIMEOUT_MS;
	int now;

	while ((now = rp_num_objects(fd)) < want && rp_now_ms() < end)
		usleep(500);
	return now;
}

/* What others cause is charged to who listens, not to nobody. */
TEST_F(memcg, requests_are_charged_to_the_listener)
{
	int sockets[2], status, objects;
	long long before, peak, wanted, now;
	struct rp_end server;
	uint32_t listener;
	uint16_t port;
	char ret = 1;
	pid_t pid;

	NEED_MEMCG();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork_client(sockets[1]);
	ASSERT_LE(0, pid);
	ASSERT_EQ(0, rp_end_init(&server));
	ASSERT_EQ(0, rp_create_id(server.fd, server.channel, &listener));
	ASSERT_EQ(0, rp_bind(server.fd, listener, 0));
	ASSERT_EQ(0, rp_listen(server.fd, listener, REQUESTS));
	objects = rp_num_objects(server.fd);
	before = settled_slab(&self->cg);
	ASSERT_LE(0, before);

	port = rp_port(server.fd, listener);
	ASSERT_EQ(sizeof(port), write(sockets[0], &port, sizeof(port)));
	ASSERT_EQ(1, read(sockets[0], &ret, 1));
	EXPECT_EQ(0, ret);
	EXPECT_EQ(objects + REQUESTS,
		  wait_objects(server.fd, objects + REQUESTS));
	wanted = before + REQUESTS * REQUEST_BYTES;
	EXPECT_LE(wanted, wait_slab(&self->cg, wanted));
	peak = settled_slab(&self->cg);
	/* It comes back with the requests, while the file stays open. */
	wanted = peak - REQUESTS * REQUEST_BYTES / 2;
	now = drop_until(&self->cg, &server, objects, wanted);
	EXPECT_LE(0, now);
	EXPECT_GE(wanted, now);
	printf("# slab: %lld, %lld with %u requests, %lld without\n", before,
	       peak, REQUESTS, now);
	fflush(stdout);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	rp_end_close(&server);
}

/* ----------------------------------------------- the device goes away */

/*
 * The process lives on, and has back what its registered memory was charged
 * with, whichever way it was registered.
 */
FIXTURE(gone) {
	const char *skip;
	char way[32];
	struct cgroup cg;
	bool in_cgroup;
};

FIXTURE_VARIANT(gone) {
	const char *way;
};

FIXTURE_VARIANT_ADD(gone, direct) {
	.way = "direct",
};

FIXTURE_VARIANT_ADD(gone, fast) {
	.way = "fast",
};

static const struct cgroup parameters = {
	.path = "/sys/module/rdma_post/parameters",
};

FIXTURE_SETUP(gone)
{
	struct rpost_reg_mr mr;
	struct rp_end end;

	if (!rp_can_remove()) {
		self->skip = RP_NO_REMOVAL;
		return;
	}
	if (access(PARAMETER "registration", W_OK)) {
		self->skip = "needs root";
		return;
	}
	ASSERT_EQ(0, cg_read(&parameters, "registration", self->way,
			     sizeof(self->way)));
	ASSERT_EQ(0, cg_put(PARAMETER, "registration", variant->way));
	ASSERT_EQ(0, rp_end_init(&end));
	if (rp_reg_mr(end.fd, end.pd, rp_pages(1), 1, 0, &mr) == -EOPNOTSUPP)
		self->skip = "the driver cannot register this way";
	rp_end_close(&end);
}

FIXTURE_TEARDOWN(gone)
{
	if (self->in_cgroup) {
		EXPECT_EQ(0, cg_enter(NULL));
		EXPECT_EQ(0, cg_remove(&self->cg));
	}
	if (self->way[0])
		EXPECT_EQ(0, cg_put(PARAMETER, "registration", self->way));
}

/* A skip in the setup would not keep the test from running. */
#define NEED_GONE()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "%s", self->skip);			\
	} while (0)

/* In steps, between which the device goes and another one comes. */
static int pin_to_the_limit(int socket)
{
	const struct rlimit limit = { MB, MB };
	struct rpost_reg_mr mr, old[2];
	struct rp_end end;
	char *mem, byte;

	RP_TRY(setrlimit(RLIMIT_MEMLOCK, &limit));
	RP_TRY(setresuid(NOBODY, NOBODY, NOBODY));
	mem = rp_pages(2 * MB);
	RP_TRY(!mem);
	RP_TRY(rp_end_init(&end));
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, MB / 2, 0, &old[0]));
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem + MB, MB / 2, 0, &old[1]));
	RP_TRY(rp_pinned() != MB);
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, 1, 0, &mr) != -ENOMEM);

	RP_TRY(write(socket, "x", 1) != 1 || read(socket, &byte, 1) != 1);
	RP_TRY(rp_pinned());
	/* The shells of the old ones are still there. */
	RP_TRY(rp_num_objects(end.fd) != 4);
	end.device = rp_first_device(end.fd);
	RP_TRY(rp_alloc_pd(end.fd, end.device, &end.pd));
	RP_TRY(rp_reg_mr_soon(&end, mem, MB, 0, &mr));
	RP_TRY(rp_pinned() != MB);
	RP_TRY(rp_reg_mr(end.fd, end.pd, mem, 1, 0, &mr) != -ENOMEM);
	/* They give nothing back twice. */
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_MR, old[0].handle));
	RP_TRY(rp_destroy(end.fd, RPOST_OBJ_MR, old[1].handle));
	RP_TRY(rp_pinned() != MB);
	rp_end_close(&end);
	RP_TRY(rp_pinned());
	return 0;
}

TEST_F(gone, locked_memory_comes_back)
{
	int sockets[2], status;
	char byte = 0;
	pid_t pid;

	NEED_GONE();
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(sockets[0]);
		_exit(pin_to_the_limit(sockets[1]) != 0);
	}
	close(sockets[1]);
	ASSERT_EQ(1, read(sockets[0], &byte, 1));
	EXPECT_EQ(0, rp_remove_device());
	EXPECT_EQ(0, rp_add_device());
	EXPECT_EQ(1, write(sockets[0], "x", 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

#define REGIONS		16
#define REGION_BYTES	MB	/* rxe's limit is 2 MB for the fast way */
#define PINNED_BYTES	(REGIONS * REGION_BYTES)

TEST_F(gone, the_cgroups_memory_comes_back)
{
	struct rpost_reg_mr mr[REGIONS];
	struct rp_cq rings[4];
	long long before;
	struct rp_end end;
	unsigned int i;
	char *mem;

	NEED_GONE();
	if (!cg_has("memory"))
		SKIP(return, "no memory cgroup");
	ASSERT_EQ(0, cg_create(&self->cg, "gone"));
	self->in_cgroup = true;
	ASSERT_EQ(0, cg_enter(&self->cg));
	ASSERT_EQ(0, rp_end_init(&end));
	before = settled_current(&self->cg);
	mem = rp_pages(PINNED_BYTES);
	ASSERT_NE(NULL, mem);
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		ASSERT_EQ(0, rp_reg_mr(end.fd, end.pd, mem + i * REGION_BYTES,
				       REGION_BYTES, RPOST_ACCESS_LOCAL_WRITE,
				       &mr[i]));
	for (i = 0; i < ARRAY_SIZE(rings); i++)
		ASSERT_EQ(0, rp_create_cq(end.fd, end.device, RING_CQE, -1,
					  &rings[i]));
	EXPECT_EQ(PINNED_BYTES, rp_pinned());
	/* Nobody else has the memory any more, and it stays. */
	ASSERT_EQ(0, munmap(mem, PINNED_BYTES));
	usleep(TEST_QUIET_MS * 1000);
	/* @before had the reserves in it, which others may have had drained. */
	EXPECT_LE(before + PINNED_BYTES + ARRAY_SIZE(rings) * MB - MEMORY_SLACK,
		  (unsigned long long)current(&self->cg));

	EXPECT_EQ(0, rp_remove_device());
	EXPECT_EQ(0, rp_pinned());
	/* Rings can still be read, until they are destroyed. */
	for (i = 0; i < ARRAY_SIZE(rings); i++) {
		EXPECT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_CQ,
					rings[i].cmd.handle));
		rp_unmap_cq(&rings[i]);
	}
	EXPECT_GE(before + MEMORY_SLACK,
		  wait_current(&self->cg, before + MEMORY_SLACK));
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		EXPECT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_MR, mr[i].handle));
	EXPECT_EQ(0, rp_add_device());
	rp_end_close(&end);
}

/* -------------------------------------------------------- what is fixed */

#define MAX_ASYNC_CHANNELS	16
#define MAX_BACKLOG		1024
#define MAX_EVENTS		8

FIXTURE(fixed) {
	struct rp_end end;
};

FIXTURE_SETUP(fixed)
{
	ASSERT_EQ(0, rp_end_init(&self->end));
}

FIXTURE_TEARDOWN(fixed)
{
	rp_end_close(&self->end);
}

TEST_F(fixed, asynchronous_channels)
{
	struct rp_end *end = &self->end, other;
	int fds[MAX_ASYNC_CHANNELS], i, fd;

	for (i = 0; i < MAX_ASYNC_CHANNELS; i++) {
		fds[i] = rp_async_channel(end->fd, end->device);
		ASSERT_LE(0, fds[i]);
	}
	EXPECT_EQ(-EMFILE, rp_async_channel(end->fd, end->device));
	/* Each open file has its own. */
	ASSERT_EQ(0, rp_end_init(&other));
	fd = rp_async_channel(other.fd, other.device);
	EXPECT_LE(0, fd);
	close(fd);
	rp_end_close(&other);
	EXPECT_EQ(-EMFILE, rp_async_channel(end->fd, end->device));
	close(fds[3]);
	fds[3] = rp_async_channel(end->fd, end->device);
	EXPECT_LE(0, fds[3]);
	EXPECT_EQ(-EMFILE, rp_async_channel(end->fd, end->device));
	for (i = 0; i < MAX_ASYNC_CHANNELS; i++)
		close(fds[i]);
}

/* Events of all programs, fetched by none, or -1. */
static long events_waiting(void)
{
	return rp_debug_number("objects", "event");
}

/* An address that resolution waits for in vain: who asks for it is told late. */
static int late_address(struct __kernel_sockaddr_storage *ss)
{
	const char *command = getenv("RPOST_TEST_LATE");
	FILE *f = popen(command, "re");
	char text[INET_ADDRSTRLEN + 1] = "";
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(4711),
	};

	if (!f)
		return -errno;
	if (fscanf(f, "%16s", text) != 1)
		text[0] = 0;
	if (pclose(f) || inet_pton(AF_INET, text, &sin.sin_addr) != 1)
		return -EINVAL;
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, &sin, sizeof(sin));
	return 0;
}

/* Resolve it, and wait for the event, but do not fetch it. */
static int resolve_late(struct rp_end *end, uint32_t id,
			const struct __kernel_sockaddr_storage *ss)
{
	struct rpost_resolve_addr cmd = {
		.size = sizeof(cmd),
		.id = id,
		.timeout_ms = 10,
		.dst = *ss,
		.dst_len = sizeof(struct sockaddr_in),
	};
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;
	long before = events_waiting();
	struct rpost_query_id query;

	RP_TRY(rp_ioctl(end->fd, RPOST_IOC_RESOLVE_ADDR, &cmd));
	do {
		usleep(1000);
		RP_TRY(rp_query_id(end->fd, id, &query));
	} while ((query.state != RPOST_ID_BOUND || events_waiting() == before) &&
		 rp_now_ms() < until);
	/* From where it is counted to where the id has it. */
	usleep(10 * TEST_QUIET_MS * 1000);
	return events_waiting() == before + 1 ? 0 : -ETIME;
}

TEST_F(fixed, events_of_an_id)
{
	struct __kernel_sockaddr_storage ss;
	struct rp_end *end = &self->end;
	struct rpost_get_event event;
	uint32_t other;
	int i;

	if (!getenv("RPOST_TEST_LATE"))
		SKIP(return, "RPOST_TEST_LATE is not set");
	if (events_waiting() < 0)
		SKIP(return, "cannot read what debugfs has of the module");
	ASSERT_EQ(0, late_address(&ss));
	ASSERT_EQ(0, rp_create_id(end->fd, end->channel, &end->id));
	ASSERT_EQ(0, rp_create_id(end->fd, end->channel, &other));
	for (i = 0; i < MAX_EVENTS; i++)
		ASSERT_EQ(0, resolve_late(end, end->id, &ss));
	EXPECT_EQ(-ENOMEM, resolve_late(end, end->id, &ss));
	/* Each id has its own. */
	EXPECT_EQ(0, resolve_late(end, other, &ss));
	ASSERT_EQ(0, rp_get_event(end->channel, &event));
	EXPECT_EQ(RPOST_EVENT_ADDR_ERROR, event.event);
	EXPECT_EQ(end->id, event.id);
	EXPECT_EQ(0, resolve_late(end, end->id, &ss));
	EXPECT_EQ(-ENOMEM, resolve_late(end, end->id, &ss));
	for (i = 0; i < MAX_EVENTS + 1; i++) {
		ASSERT_EQ(0, rp_get_event(end->channel, &event));
		EXPECT_EQ(RPOST_EVENT_ADDR_ERROR, event.event);
	}
	EXPECT_TRUE(rp_quiet(end->channel));
	EXPECT_EQ(0, resolve_late(end, end->id, &ss));
}

/* These can ask without a queue pair of their own. */
static int new_datagram_id(struct rp_end *end, uint32_t *id)
{
	return rp_create_id_of(end->fd, end->channel, RPOST_PS_UDP, RPOST_QPT_UD,
			       id);
}

static int ask_for_address(struct rp_end *client, uint16_t port)
{
	RP_TRY(new_datagram_id(client, &client->id));
	RP_TRY(rp_resolve(client, port));
	return rp_connect(client->fd, client->id);
}

/* Its request waits, and it is not there to repeat it. */
static int ask_and_go(struct rp_end *client, struct rp_end *server, uint16_t port)
{
	int objects = rp_num_objects(server->fd);

	RP_TRY(ask_for_address(client, port));
	if (wait_objects(server->fd, objects + 1) != objects + 1)
		return -ETIME;
	return rp_destroy(client->fd, RPOST_OBJ_ID, client->id);
}

/* The kernel answers for who listens, where it would ignore a connection. */
static int refused(struct rp_end *client)
{
	struct rpost_get_event event;

	RP_TRY(rp_get_event(client->channel, &event));
	return event.event == RPOST_EVENT_UNREACHABLE &&
	       event.id == client->id ? 0 : -EPROTO;
}

TEST_F(fixed, backlog)
{
	struct rp_end *server = &self->end, client;
	struct rpost_get_event event;
	uint32_t listener, i;
	uint16_t port;
	int full;

	ASSERT_EQ(0, rp_end_init(&client));
	ASSERT_EQ(0, new_datagram_id(server, &listener));
	ASSERT_EQ(0, rp_bind(server->fd, listener, 0));
	ASSERT_EQ(0, rp_listen(server->fd, listener, UINT32_MAX));
	port = rp_port(server->fd, listener);
	full = rp_num_objects(server->fd) + MAX_BACKLOG;
	for (i = 0; i < MAX_BACKLOG; i++)
		ASSERT_EQ(0, ask_and_go(&client, server, port));
	EXPECT_EQ(full, rp_num_objects(server->fd));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, ask_for_address(&client, port));
		EXPECT_EQ(0, refused(&client));
	}
	/* Two that are fetched are two more that can wait. */
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, rp_get_event(server->channel, &event));
		EXPECT_EQ(RPOST_EVENT_CONNECT_REQUEST, event.event);
	}
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, ask_and_go(&client, server, port));
	ASSERT_EQ(0, ask_for_address(&client, port));
	EXPECT_EQ(0, refused(&client));
	EXPECT_TRUE(rp_quiet(client.channel));
	rp_end_close(&client);
}

/* -------------------------------------------------------------- ports */

static int bind_any(int fd, uint32_t id, uint16_t port)
{
	const struct sockaddr_in any = {
		.sin_family = AF_INET, .sin_port = htons(port),
	};
	struct rpost_bind_addr cmd = {
		.size = sizeof(cmd), .id = id, .addr_len = sizeof(any),
	};

	memcpy(&cmd.addr, &any, sizeof(any));
	return rp_ioctl(fd, RPOST_IOC_BIND_ADDR, &cmd);
}

static int try_port(uint16_t port)
{
	int fd = rp_open(), channel, ret;
	uint32_t id;

	if (fd < 0)
		return -errno;
	channel = rp_event_channel(fd);
	ret = rp_create_id(fd, channel, &id);
	if (!ret)
		ret = bind_any(fd, id, port);
	/* A bind that failed can be followed by one that does not. */
	if (ret == -EACCES)
		RP_TRY(bind_any(fd, id, 0));
	close(channel);
	close(fd);
	return ret;
}

TEST(privileged_ports_need_the_capability)
{
	if (geteuid())
		SKIP(return, "needs root");
	EXPECT_EQ(0, try_port(1023));
	ASSERT_EQ(0, setresuid(NOBODY, NOBODY, NOBODY));
	EXPECT_EQ(-EACCES, try_port(1));
	EXPECT_EQ(-EACCES, try_port(1023));
	EXPECT_EQ(0, try_port(1024));
}

/* Root of a user namespace that has its own network is nobody here. */
TEST(privileged_ports_in_a_user_namespace)
{
	if (!geteuid())
		ASSERT_EQ(0, setresuid(NOBODY, NOBODY, NOBODY));
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		SKIP(return, "no user namespaces for users");
	EXPECT_EQ(-EACCES, try_port(1023));
	EXPECT_EQ(0, try_port(1024));
}

TEST_HARNESS_MAIN
