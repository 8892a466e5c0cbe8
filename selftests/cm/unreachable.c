// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests connections that cannot be made: there is no route, no listener or no
 * answer, or more clients ask than a listener's backlog takes.  A failure means
 * that a client is never told, or that a listener stops serving.
 *
 * For a silent host, set RPOST_TEST_SILENT to an IPv4 address on the device's
 * network that has a neighbor entry, but no host that knows RDMA:
 *
 *   ip neigh add 10.0.0.99 lladdr 02:00:00:00:00:99 dev dummy0 nud permanent
 *   RPOST_TEST_SILENT=10.0.0.99
 */
#include <kselftest_harness.h>

#include "faults.h"

#define BACKLOG		4
#define CLIENTS		10

FIXTURE(nobody) {
	struct rp_end c;
	char counts[RP_COUNTS];
};

FIXTURE_SETUP(nobody)
{
	rp_counts(self->counts);
	ASSERT_EQ(0, rp_end_init(&self->c));
}

FIXTURE_TEARDOWN(nobody)
{
	rp_end_close(&self->c);
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	SURVIVED(FAULT_UNREACHABLE);
}

/* Resolve an IPv4 address. */
static int resolve(struct rp_end *c, uint32_t ip)
{
	struct in_addr addr = { .s_addr = htonl(ip) };

	RP_TRY(rp_create_id(c->fd, c->channel, &c->id));
	return rp_resolve_ip(c->fd, c->id, addr, 4711, 1000);
}

/* Returns the error of the command or of its event, as a negative errno. */
static int error_of(struct rp_end *c, int ret)
{
	struct rpost_get_event event;

	if (ret)
		return ret;
	ret = rp_get_event(c->channel, &event);
	if (ret)
		return ret;
	return event.event == RPOST_EVENT_ADDR_ERROR ? event.status : 0;
}

TEST_F(nobody, has_a_route_there)
{
	/* This address is reserved for documentation (TEST-NET-3). */
	int ret = error_of(&self->c, resolve(&self->c, 0xcb007101));

	if (!ret)
		SKIP(return, "there is a route to 203.0.113.1");
	EXPECT_TRUE(ret == -ENETUNREACH || ret == -ETIMEDOUT ||
		    ret == -ENODEV || ret == -EHOSTUNREACH) {
		TH_LOG("%d", ret);
	}
}

/* Connect, but do not wait for the answer. */
static int ask(struct rp_end *c, uint16_t port)
{
	RP_TRY(rp_client_route(c, port));
	RP_TRY(rp_create_qp(c, 0));
	return rp_connect(c->fd, c->id);
}

/* Returns a port that was free a moment ago. */
static uint16_t free_port(struct rp_end *end)
{
	uint16_t port = 0;
	uint32_t id;

	if (rp_create_id(end->fd, end->channel, &id))
		return 0;
	if (!rp_bind(end->fd, id, 0))
		port = rp_port(end->fd, id);
	rp_destroy(end->fd, RPOST_OBJ_ID, id);
	return port;
}

TEST_F(nobody, listens_at_the_port)
{
	struct rp_end *c = &self->c;
	struct rpost_get_event event;
	uint16_t port = free_port(c);

	ASSERT_LT(0, port);
	ASSERT_EQ(0, ask(c, port));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	/* The InfiniBand specification: the service ID is invalid. */
	EXPECT_EQ(8, event.status);
	EXPECT_EQ(0, rp_leave(c));
}

/* Send a request to a server that does not fetch it. */
static int ask_idle(struct rp_end *c, struct rp_end *s, uint32_t *listener)
{
	RP_TRY(rp_end_init(s));
	RP_TRY(rp_listener(s, listener));
	RP_TRY(ask(c, rp_port(s->fd, *listener)));
	if (!rp_readable(s->channel, TEST_TIMEOUT_MS))
		return -ETIME;
	return rp_quiet(c->channel) ? 0 : -EPROTO;
}

/* The request waits at the server, which does not fetch it. */
TEST_F(nobody, fetches_the_request)
{
	struct rp_end *c = &self->c, s;
	uint32_t listener;
	uint64_t began;

	ASSERT_EQ(0, ask_idle(c, &s, &listener));
	/* The client can leave before it has an answer. */
	began = rp_now_ms();
	EXPECT_EQ(0, rp_leave(c));
	EXPECT_GT(TEST_TIMEOUT_MS, rp_now_ms() - began);
	ASSERT_EQ(0, rp_take_request(&s, listener));
	/* The server gets no event, but ACCEPT fails. */
	EXPECT_TRUE(rp_id_reaches(s.fd, s.id, RPOST_ID_ERROR));
	EXPECT_TRUE(rp_quiet(s.channel));
	EXPECT_EQ(-EINVAL, rp_accept(s.fd, s.id));
	rp_end_close(&s);
}

/* The client is told after 102 s, later on a busy machine. */
#define SILENCE_S	400

/* The host drops each request of the connection manager. */
TEST_F_TIMEOUT(nobody, answers, SILENCE_S + 60)
{
	const char *silent = getenv("RPOST_TEST_SILENT");
	struct pollfd pfd = { .events = POLLIN };
	struct rp_end *c = &self->c;
	struct rpost_get_event event;
	uint64_t began;

	if (!silent)
		SKIP(return, "RPOST_TEST_SILENT is not set; it takes two minutes");
	ASSERT_EQ(0, resolve(c, ntohl(inet_addr(silent))));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ADDR_RESOLVED));
	ASSERT_EQ(0, rp_resolve_route(c->fd, c->id));
	ASSERT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ROUTE_RESOLVED));
	ASSERT_EQ(0, rp_create_qp(c, 0));
	ASSERT_EQ(0, rp_post_recv(c, 5, NULL, 0, 0));
	began = rp_now_ms();
	ASSERT_EQ(0, rp_connect(c->fd, c->id));
	pfd.fd = c->channel;
	ASSERT_EQ(1, poll(&pfd, 1, SILENCE_S * 1000));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_UNREACHABLE, event.event);
	EXPECT_EQ(-ETIMEDOUT, event.status);
	EXPECT_EQ(c->id, event.id);
	printf("# told after %llu ms\n",
	       (unsigned long long)(rp_now_ms() - began));
	EXPECT_TRUE(rp_quiet(c->channel));
	/* The id cannot connect again, and is destroyed at once. */
	EXPECT_EQ(-EINVAL, rp_connect(c->fd, c->id));
	began = rp_now_ms();
	EXPECT_EQ(0, rp_leave(c));
	EXPECT_GT(TEST_TIMEOUT_MS, rp_now_ms() - began);
}

/* ----------------------------------------- a server that does not go on */

/* Longer than the 6.4 s after which the connection manager repeats. */
#define STILL_S		8

/* Serve one client.  Returns 0, or the failed step as an exit status. */
static int serve_one(int socket)
{
	struct rp_end s;
	uint32_t listener;
	uint16_t port;

	if (rp_end_init(&s) || rp_listener(&s, &listener))
		return 1;
	port = rp_port(s.fd, listener);
	if (write(socket, &port, sizeof(port)) != sizeof(port))
		return 2;
	if (read(socket, &port, 1) != 1 || rp_take_request(&s, listener))
		return 3;
	/*
	 * There is one request, even if the client has repeated it meanwhile.
	 */
	if (!rp_quiet(s.channel))
		return 4;
	if (rp_create_qp(&s, 0) || rp_accept(s.fd, s.id))
		return 5;
	if (rp_expect(s.channel, s.id, RPOST_EVENT_ESTABLISHED) ||
	    write(socket, "x", 1) != 1 ||
	    rp_expect(s.channel, s.id, RPOST_EVENT_DISCONNECTED))
		return 6;
	rp_end_close(&s);
	return 0;
}

/* The server is stopped when the request comes, and continued later. */
TEST_F(nobody, runs_the_server_for_a_while)
{
	struct pollfd pfd = { .events = POLLIN };
	struct rp_end *c = &self->c;
	int sockets[2], status;
	uint16_t port;
	char told;
	pid_t pid;

	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		rp_end_close(c);
		close(sockets[0]);
		_exit(serve_one(sockets[1]));
	}
	close(sockets[1]);
	ASSERT_EQ(sizeof(port), read(sockets[0], &port, sizeof(port)));
	ASSERT_EQ(0, kill(pid, SIGSTOP));
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	ASSERT_EQ(0, ask(c, port));
	ASSERT_EQ(1, write(sockets[0], "x", 1));
	pfd.fd = c->channel;
	EXPECT_EQ(0, poll(&pfd, 1, STILL_S * 1000));
	ASSERT_EQ(0, kill(pid, SIGCONT));
	EXPECT_EQ(0, rp_expect(c->channel, c->id, RPOST_EVENT_ESTABLISHED));
	/*
	 * ib_cm's threads may look at a DREQ before the RTU that preceded it.
	 */
	EXPECT_EQ(1, read(sockets[0], &told, 1));
	EXPECT_EQ(0, rp_disconnect(c->fd, c->id));
	EXPECT_EQ(0, rp_leave(c));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFEXITED(status));
	EXPECT_EQ(0, WEXITSTATUS(status));
	close(sockets[0]);
}

/* The listener is destroyed before the server fetches the request. */
TEST_F(nobody, listens_any_more)
{
	struct rp_end *c = &self->c, s;
	struct rpost_get_event event;
	uint32_t listener;

	ASSERT_EQ(0, ask_idle(c, &s, &listener));
	EXPECT_EQ(0, rp_destroy(s.fd, RPOST_OBJ_ID, listener));
	ASSERT_EQ(0, rp_get_event(c->channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	EXPECT_EQ(c->id, event.id);
	EXPECT_EQ(0, rp_leave(c));
	rp_end_close(&s);
}

/* ----------------------------------------------- more than a listener takes */

FIXTURE(backlog) {
	struct rp_end s, c[CLIENTS];
	uint32_t listener;
	char counts[RP_COUNTS];
};

FIXTURE_SETUP(backlog)
{
	rp_counts(self->counts);
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_create_id(self->s.fd, self->s.channel, &self->listener));
	ASSERT_EQ(0, rp_bind(self->s.fd, self->listener, 0));
	ASSERT_EQ(0, rp_listen(self->s.fd, self->listener, BACKLOG));
}

FIXTURE_TEARDOWN(backlog)
{
	rp_end_close(&self->s);
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	SURVIVED(FAULT_BACKLOG);
}

static int new_client(struct rp_end *c, uint16_t port)
{
	RP_TRY(rp_end_init(c));
	return ask(c, port);
}

/*
 * Accept requests until @n connections are established.  A request that comes
 * late may be of a client that has died meanwhile: its id gets REJECTED.
 */
static int accept_all(struct rp_end *s, unsigned int n)
{
	uint64_t end = rp_now_ms() + 2 * COUNTS_MS;
	struct rpost_get_event event;
	int ret;

	while (n) {
		ret = rp_get_event(s->channel, &event);
		if (ret == -ETIME && rp_now_ms() < end)
			continue;
		if (ret)
			return ret;
		s->id = event.id;
		if (event.event == RPOST_EVENT_CONNECT_REQUEST) {
			RP_TRY(rp_create_qp(s, 0));
			RP_TRY(rp_accept(s->fd, s->id));
		} else if (event.event == RPOST_EVENT_ESTABLISHED) {
			n--;
		} else if (event.event != RPOST_EVENT_REJECTED) {
			fprintf(stderr, "# event %u\n", event.event);
			return -EPROTO;
		}
	}
	return 0;
}

/*
 * No more requests than the backlog wait.  The other clients repeat theirs
 * every four seconds, and are served once the server accepts.
 */
TEST_F(backlog, is_kept_by_the_living)
{
	struct pollfd pfd = { .fd = self->s.channel, .events = POLLIN };
	uint16_t port = rp_port(self->s.fd, self->listener);
	unsigned int i;

	for (i = 0; i < CLIENTS; i++)
		ASSERT_EQ(0, new_client(&self->c[i], port));
	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	usleep(TEST_QUIET_MS * 1000);
	/* The domain, the completion queue, the listener, and requests. */
	EXPECT_GE(3 + BACKLOG, rp_num_objects(self->s.fd));
	EXPECT_LT(3, rp_num_objects(self->s.fd));
	ASSERT_EQ(0, accept_all(&self->s, CLIENTS));
	for (i = 0; i < CLIENTS; i++) {
		EXPECT_EQ(0, rp_expect(self->c[i].channel, self->c[i].id,
				       RPOST_EVENT_ESTABLISHED));
		rp_end_close(&self->c[i]);
	}
}

TEST_F(backlog, is_kept_by_the_dead)
{
	struct pollfd pfd = { .fd = self->s.channel, .events = POLLIN };
	uint16_t port = rp_port(self->s.fd, self->listener);
	struct rp_end *s = &self->s, client;
	struct rpost_get_event event;
	unsigned int i, requests = 0;
	int pipefd[2];
	pid_t pid;
	char ok;

	for (i = 0; i < CLIENTS; i++) {
		ASSERT_EQ(0, pipe(pipefd));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			rp_end_close(s);
			ok = !new_client(&client, port);
			if (write(pipefd[1], &ok, 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
		ASSERT_EQ(1, read(pipefd[0], &ok, 1));
		EXPECT_EQ(1, ok);
		ASSERT_EQ(0, kill(pid, SIGKILL));
		ASSERT_EQ(pid, waitpid(pid, NULL, 0));
		close(pipefd[0]);
		close(pipefd[1]);
	}
	/*
	 * All clients of these requests are dead; the last request may be late.
	 */
	while (poll(&pfd, 1, 3000) == 1) {
		ASSERT_EQ(0, rp_get_event(s->channel, &event));
		if (event.event != RPOST_EVENT_CONNECT_REQUEST) {
			EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
			continue;
		}
		requests++;
		s->id = event.id;
		EXPECT_EQ(0, rp_destroy(s->fd, RPOST_OBJ_ID, s->id));
	}
	EXPECT_GE(CLIENTS, requests);
	EXPECT_LT(0, requests);
	/* The listener then serves a client that is alive. */
	ASSERT_EQ(0, new_client(&client, port));
	ASSERT_EQ(0, accept_all(s, 1));
	EXPECT_EQ(0, rp_expect(client.channel, client.id,
			       RPOST_EVENT_ESTABLISHED));
	EXPECT_EQ(0, msgs_exchange(&client, s));
	rp_end_close(&client);
}

TEST_HARNESS_MAIN
