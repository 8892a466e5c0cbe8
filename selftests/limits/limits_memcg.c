// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the memory cgroup.  At its limit a program must get ENOMEM instead of
 * being killed, connection requests are charged to the listener, and every
 * charge is returned.
 */
#include <kselftest_harness.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "rpost_test.h"

#define MB		(1 << 20)

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

/*
 * Limit the cgroup to @bytes more than it is charged now.  At the limit, a page
 * fault or the opening of a file gets the program killed; only the module fails
 * with ENOMEM.  Return a file for unlimit_memory(), or an errno.
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
	snprintf(text, sizeof(text), "%lld", cg_settled_memory(cg) + bytes);
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

/* Create rings until one fails; return their number, and the error in @ret. */
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
	before = cg_settled_memory(&self->cg);
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
		EXPECT_GE(before + CG_MEMORY_SLACK,
			  cg_wait_memory(&self->cg, before + CG_MEMORY_SLACK));
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
 * Create queue pairs with slots and inline data up to the limit.  Return their
 * number, or 0 after an unexpected result.
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
	/* The last one failed; there are a domain and a CQ, too. */
	if (ret != -ENOMEM || rp_num_objects(end.fd) != n + 1)
		return 0;
	return n - 1;
}

/*
 * The module's allocations do not cause an OOM kill.  But rxe creates a socket
 * for each queue pair, whose inode is charged, too: if this allocation reaches
 * the limit, the kernel kills the program.
 */
TEST_F(memcg, queues)
{
	int limit, status, round, killed = 0;
	long long before;
	pid_t pid;

	NEED_MEMCG();
	before = cg_settled_memory(&self->cg);
	/* Fewer than three in four may be killed; bad luck gets more rounds. */
	for (round = 0; round < 4 || (4 * killed >= 3 * round && round < 12);
	     round++) {
		pid = fork();
		if (!pid) {
			prefer_to_be_killed();
			/* fork() does not inherit mlockall(). */
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
			/* Each queue pair takes 0.6 MB or more. */
			EXPECT_TRUE(WIFEXITED(status));
			EXPECT_LT(4, WEXITSTATUS(status));
			EXPECT_GT(24, WEXITSTATUS(status));
		}
		EXPECT_GE(before + CG_MEMORY_SLACK,
			  cg_wait_memory(&self->cg, before + CG_MEMORY_SLACK));
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
	before = cg_settled_memory(&self->cg);
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (rp_end_init(&end))
			_exit(1);
		while (cg_memory(&self->cg) < before + 4 * MB) {
			if (rp_create_cq(end.fd, end.device, 16384, -1, &cq))
				_exit(1);
		}
		kill(getpid(), SIGKILL);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_GE(before + CG_MEMORY_SLACK,
		  cg_wait_memory(&self->cg, before + CG_MEMORY_SLACK));
}

/*
 * Charged slab memory in bytes.  It is some seconds late, and imprecise by some
 * pages, because each CPU counts up to a page before it reports.
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
	return cg_settled(cg, slab, 2500);
}

/*
 * So many that half of their bytes is more than the error of slab(), and more
 * than what 7.2 keeps in each CPU's sheaf after kfree_rcu().
 */
#define REQUESTS	256
#define REQUEST_BYTES	500	/* the new id and its event take more */

/*
 * Send the requests without waiting for answers.  All must be sent soon: after
 * 102 s the first are given up, and their charges are returned.
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

/* Fork a client outside of the cgroup; it connects when it gets the port. */
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
 * Fetch requests and destroy their ids until @objects are left.  Clients repeat
 * a request that has no answer; after the id is destroyed, this is a new
 * request.
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

/* Requests that the clients repeat meanwhile are dropped, too. */
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

/* The listener is charged for the requests of others. */
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
		  rp_wait_objects(server.fd, objects + REQUESTS));
	wanted = before + REQUESTS * REQUEST_BYTES;
	EXPECT_LE(wanted, wait_slab(&self->cg, wanted));
	peak = settled_slab(&self->cg);
	/* The charge is returned with the requests; the file stays open. */
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

TEST_HARNESS_MAIN
