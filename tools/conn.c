// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tries to connect, over librdma_post.  A child does it, since some steps wait
 * for what may never come; what it has seen is in memory that it shares.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"
#include "conn.h"

#define RESOLVE_MS	2000
#define MESSAGE		"rdma-post"

/* Objects of the child. Its exit releases them. */
struct ends {
	struct conn *conn;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *client;
	struct rdma_cm_id *server;
	char buf[32];
};

const char *conn_stage_name(enum conn_stage stage)
{
	static const char *const names[] = {
		[CONN_OPEN] = "opening the device",
		[CONN_LISTEN] = "listening",
		[CONN_ADDRESS] = "resolving the address",
		[CONN_ROUTE] = "resolving the route",
		[CONN_QUEUES] = "making queues",
		[CONN_MEMORY] = "registering memory",
		[CONN_CONNECT] = "connecting",
		[CONN_SEND] = "sending",
		[CONN_RECEIVE] = "receiving",
		[CONN_DONE] = "done",
	};

	return names[stage];
}

/* Begins a step. */
static void stage(struct ends *e, enum conn_stage next)
{
	e->conn->stage = next;
}

/* Returns false, with the reason in the shared memory, if @failed. */
static bool check(struct ends *e, bool failed)
{
	if (failed)
		e->conn->err = errno;
	return !failed;
}

static bool make_queues(struct ends *e, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_send_sge = 1,
			.max_recv_wr = 1, .max_recv_sge = 1,
			.max_inline_data = sizeof(MESSAGE),
		},
		.qp_type = IBV_QPT_RC,
	};

	stage(e, CONN_QUEUES);
	return check(e, rdma_create_qp(id, NULL, &attr));
}

static bool listen_there(struct ends *e)
{
	struct sockaddr *addr = (struct sockaddr *)&e->conn->addr;

	stage(e, CONN_LISTEN);
	return check(e, rdma_create_id(e->channel, &e->listener, NULL, RDMA_PS_TCP) ||
			rdma_bind_addr(e->listener, addr) ||
			rdma_listen(e->listener, 1));
}

static bool resolve(struct ends *e)
{
	struct sockaddr_storage addr = e->conn->addr;

	if (e->conn->loopback) {
		/* Both families have the port there. */
		((struct sockaddr_in *)&addr)->sin_port =
			rdma_get_src_port(e->listener);
	}
	stage(e, CONN_ADDRESS);
	return check(e, rdma_create_id(e->channel, &e->client, NULL, RDMA_PS_TCP) ||
			rdma_resolve_addr(e->client, NULL, (struct sockaddr *)&addr,
					  RESOLVE_MS));
}

static bool connect_client(struct ends *e)
{
	struct rdma_conn_param param = { .retry_count = 3, .rnr_retry_count = 3 };

	if (!make_queues(e, e->client))
		return false;
	stage(e, CONN_CONNECT);
	return check(e, rdma_connect(e->client, &param));
}

static bool accept_client(struct ends *e)
{
	struct rdma_conn_param param = { .rnr_retry_count = 3 };
	struct ibv_mr *mr;

	if (!make_queues(e, e->server))
		return false;
	stage(e, CONN_MEMORY);
	mr = rdma_reg_msgs(e->server, e->buf, sizeof(e->buf));
	if (!check(e, !mr))
		return false;
	stage(e, CONN_CONNECT);
	return check(e, rdma_post_recv(e->server, NULL, e->buf, sizeof(e->buf), mr) ||
			rdma_accept(e->server, &param));
}

static bool transfer(struct ends *e)
{
	struct ibv_wc wc = {};

	stage(e, CONN_SEND);
	if (!check(e, rdma_post_send(e->client, NULL, MESSAGE, sizeof(MESSAGE),
				     NULL, IBV_SEND_INLINE | IBV_SEND_SIGNALED) ||
		      rdma_get_send_comp(e->client, &wc) != 1))
		return false;
	e->conn->status = wc.status;
	if (wc.status)
		return false;
	stage(e, CONN_RECEIVE);
	if (!check(e, rdma_get_recv_comp(e->server, &wc) != 1))
		return false;
	e->conn->status = wc.status;
	if (wc.status || strcmp(e->buf, MESSAGE))
		return false;
	stage(e, CONN_DONE);
	return false;
}

/* Goes on after an event; returns false at the end. */
static bool handle(struct ends *e, const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		stage(e, CONN_ROUTE);
		return check(e, rdma_resolve_route(e->client, RESOLVE_MS));
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return connect_client(e);
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* The listener has a port of its own, which others may find. */
		if (e->server)
			return check(e, rdma_reject(event->id, NULL, 0));
		e->server = event->id;
		return accept_client(e);
	case RDMA_CM_EVENT_ESTABLISHED:
		if (event->id != e->client)
			return true;
		if (e->conn->loopback)
			return transfer(e);
		stage(e, CONN_DONE);
		rdma_disconnect(e->client);
		return false;
	default:
		e->conn->event = event->event;
		e->conn->status = event->status;
		return false;
	}
}

static void try_it(struct conn *conn)
{
	struct ends e = { .conn = conn };
	struct rdma_cm_event *event;
	bool more = true;

	e.channel = rdma_create_event_channel();
	if (!check(&e, !e.channel))
		return;
	if ((conn->loopback && !listen_there(&e)) || !resolve(&e))
		return;
	while (more && check(&e, rdma_get_cm_event(e.channel, &event))) {
		more = handle(&e, event);
		rdma_ack_cm_event(event);
	}
}

/*
 * Close the child's copies of the outputs: a program that reads doctor's output until its
 * end would wait for a child that does not end.
 */
static void quiet(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
}

/* Waits a second for a child; one that sleeps in the kernel does not end. */
static bool has_ended(pid_t pid)
{
	int i;

	for (i = 0; i < 100; i++) {
		if (waitpid(pid, NULL, WNOHANG))
			return true;
		poll(NULL, 0, 10);
	}
	return false;
}

/* Waits for the end of a pipe, and tells so.  Returns false if the time was not enough. */
static bool wait_end_of(int fd, const struct conn *conn, const char *name, int seconds)
{
	struct pollfd end = { .fd = fd };
	int i, n = 0;

	for (i = 0; i < seconds && !n; i++) {
		if (i)
			progress_show("%s: %s, %d s of at most %d", name,
				      conn_stage_name(conn->stage), i, seconds);
		n = poll(&end, 1, 1000);
	}
	progress_end();
	return n;
}

/**
 * conn_try() - try to connect
 * @conn: with the address; gets what has come of it
 * @name: of what it is tried with
 * @seconds: for which it may take
 */
void conn_try(struct conn *conn, const char *name, int seconds)
{
	struct conn *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fds[2];
	pid_t pid;

	if (shared == MAP_FAILED || pipe2(fds, O_CLOEXEC)) {
		conn->err = errno;
		return;
	}
	*shared = *conn;
	fflush(NULL);
	pid = fork();
	if (!pid) {
		quiet();
		try_it(shared);
		_exit(0);
	}
	close(fds[1]);
	/* The pipe ends with the child, or shortly before. */
	if (pid > 0 && !wait_end_of(fds[0], shared, name, seconds)) {
		shared->late = true;
		kill(pid, SIGKILL);
	}
	if (pid < 0)
		shared->err = errno;
	else if (!has_ended(pid))
		shared->stuck = pid;
	close(fds[0]);
	*conn = *shared;
	munmap(shared, sizeof(*shared));
}
