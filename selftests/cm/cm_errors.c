// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests invalid values and addresses in connection commands, and how events are
 * fetched.  A failure means that the kernel accepts an invalid value, or loses
 * or duplicates an event.
 */
#include <kselftest_harness.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>

#include "rpost_test.h"

#define NOBODY	65534

FIXTURE(errors) {
	struct rp_end e;
};

FIXTURE_SETUP(errors)
{
	ASSERT_EQ(0, rp_end_init(&self->e));
	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &self->e.id));
}

FIXTURE_TEARDOWN(errors)
{
	rp_end_close(&self->e);
}

static int bind_to(struct rp_end *end, const void *addr, uint32_t len)
{
	struct rpost_bind_addr cmd = {
		.size = sizeof(cmd), .id = end->id, .addr_len = len,
	};

	memcpy(&cmd.addr, addr, sizeof(cmd.addr));
	return rp_ioctl(end->fd, RPOST_IOC_BIND_ADDR, &cmd);
}

static int resolve(struct rp_end *end, const void *src, uint32_t src_len,
		   const void *dst, uint32_t dst_len, uint32_t timeout_ms)
{
	struct rpost_resolve_addr cmd = {
		.size = sizeof(cmd),
		.id = end->id,
		.timeout_ms = timeout_ms,
		.src_len = src_len,
		.dst_len = dst_len,
	};

	if (src)
		memcpy(&cmd.src, src, sizeof(cmd.src));
	memcpy(&cmd.dst, dst, sizeof(cmd.dst));
	return rp_ioctl(end->fd, RPOST_IOC_RESOLVE_ADDR, &cmd);
}

/* Write to @ss an IPv4 address that is not the host's. */
static void elsewhere(struct __kernel_sockaddr_storage *ss, const char *ip)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(1) };

	inet_pton(AF_INET, ip, &sin.sin_addr);
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, &sin, sizeof(sin));
}

TEST_F(errors, create_id)
{
	const struct {
		uint32_t port_space, qp_type;
		int want;
	} rows[] = {
		{ RPOST_PS_UDP, RPOST_QPT_RC, -EINVAL },
		{ RPOST_PS_UDP, RPOST_QPT_UC, -EINVAL },
		{ RPOST_PS_UDP, RPOST_QPT_UD, 0 },
		{ RPOST_PS_IPOIB, RPOST_QPT_RC, -EINVAL },
		{ RPOST_PS_IPOIB, RPOST_QPT_UD, 0 },
		{ RPOST_PS_TCP, RPOST_QPT_UC, -EINVAL },
		{ RPOST_PS_TCP, RPOST_QPT_UD, -EINVAL },
		{ 0, RPOST_QPT_RC, -EINVAL },
		{ 0x107, RPOST_QPT_RC, -EINVAL },
		{ UINT32_MAX, RPOST_QPT_RC, -EINVAL },
		{ RPOST_PS_TCP, 0, -EINVAL },
		{ RPOST_PS_TCP, 1, -EINVAL },
		{ RPOST_PS_TCP, UINT32_MAX, -EINVAL },
		{ RPOST_PS_IB, RPOST_QPT_RC, 0 },
		{ RPOST_PS_IB, RPOST_QPT_UC, 0 },
		{ RPOST_PS_IB, RPOST_QPT_UD, 0 },
		{ RPOST_PS_IB, 0, -EINVAL },
		{ RPOST_PS_IB, UINT32_MAX, -EINVAL },
	};
	struct rpost_create_id cmd;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		cmd = (struct rpost_create_id) {
			.size = sizeof(cmd),
			.channel_fd = self->e.channel,
			.port_space = rows[i].port_space,
			.qp_type = rows[i].qp_type,
		};
		EXPECT_EQ(rows[i].want, rp_ioctl(self->e.fd,
						 RPOST_IOC_CREATE_ID, &cmd))
			TH_LOG("port space %#x type %u", rows[i].port_space,
			       rows[i].qp_type);
		EXPECT_EQ(!rows[i].want, !!cmd.handle);
	}
	EXPECT_EQ(8, rp_num_objects(self->e.fd));
}

TEST_F(errors, channel_of_an_id)
{
	int other = rp_open(), comp = rp_comp_channel(self->e.fd);
	int foreign = rp_event_channel(other);
	const int bad[] = { -1, INT32_MIN, 0, 9999, self->e.fd, comp, foreign };
	unsigned int i;
	uint32_t id;

	ASSERT_LE(0, foreign);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EBADF, rp_create_id(self->e.fd, bad[i], &id))
			TH_LOG("descriptor %d", bad[i]);
		EXPECT_EQ(0, id);
	}
	EXPECT_EQ(3, rp_num_objects(self->e.fd));
	close(foreign);
	close(comp);
	close(other);
}

TEST_F(errors, address_lengths_and_families)
{
	struct __kernel_sockaddr_storage ss, bad;
	const uint32_t lengths[] = { 0, 1, 2, 15, 129, 4096, UINT32_MAX };
	const int families[] = { 0, AF_UNIX, AF_NETLINK, 255 };
	unsigned int i;

	rp_addr(&ss, 0);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ(-EINVAL, bind_to(&self->e, &ss, lengths[i]));
		EXPECT_EQ(-EINVAL, resolve(&self->e, NULL, 0, &ss, lengths[i],
					   100));
		if (lengths[i])
			EXPECT_EQ(-EINVAL, resolve(&self->e, &ss, lengths[i],
						   &ss, 16, 100));
	}
	for (i = 0; i < ARRAY_SIZE(families); i++) {
		bad = ss;
		bad.ss_family = families[i];
		EXPECT_EQ(-EAFNOSUPPORT, bind_to(&self->e, &bad, 16));
		EXPECT_EQ(-EAFNOSUPPORT, resolve(&self->e, NULL, 0, &bad, 16,
						 100));
		EXPECT_EQ(-EAFNOSUPPORT, resolve(&self->e, &bad, 16, &ss, 16,
						 100));
	}
	/* A size that ends within an IPv6 address. */
	bad = ss;
	bad.ss_family = AF_INET6;
	EXPECT_EQ(-EINVAL, bind_to(&self->e, &bad, 16));
	EXPECT_EQ(RPOST_ID_IDLE, rp_id_state(self->e.fd, self->e.id));
	EXPECT_TRUE(rp_quiet(self->e.channel));
	EXPECT_EQ(0, bind_to(&self->e, &ss, sizeof(struct sockaddr_in)));
}

TEST_F(errors, timeouts)
{
	struct __kernel_sockaddr_storage ss;
	struct rpost_resolve_route route = { .size = sizeof(route) };
	const uint32_t bad[] = { 0, 3600001, UINT32_MAX };
	unsigned int i;

	rp_addr(&ss, 1);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(-EINVAL, resolve(&self->e, NULL, 0, &ss, 16, bad[i]));
	EXPECT_EQ(RPOST_ID_IDLE, rp_id_state(self->e.fd, self->e.id));
	ASSERT_EQ(0, resolve(&self->e, NULL, 0, &ss, 16, 3600000));
	ASSERT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ADDR_RESOLVED));
	route.id = self->e.id;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		route.timeout_ms = bad[i];
		EXPECT_EQ(-EINVAL, rp_ioctl(self->e.fd, RPOST_IOC_RESOLVE_ROUTE,
					    &route));
	}
	EXPECT_EQ(RPOST_ID_ADDR_RESOLVED, rp_id_state(self->e.fd, self->e.id));
	route.timeout_ms = 3600000;
	ASSERT_EQ(0, rp_ioctl(self->e.fd, RPOST_IOC_RESOLVE_ROUTE, &route));
	EXPECT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ROUTE_RESOLVED));
}

TEST_F(errors, bind_to_addresses)
{
	struct __kernel_sockaddr_storage ss;
	uint32_t first = self->e.id;
	uint16_t port;
	int ret;

	elsewhere(&ss, "192.0.2.77");
	ret = bind_to(&self->e, &ss, 16);
	EXPECT_TRUE(ret == -EADDRNOTAVAIL || ret == -ENODEV)
		TH_LOG("%d", ret);
	EXPECT_EQ(RPOST_ID_IDLE, rp_id_state(self->e.fd, first));
	/* After the error, the id can still be bound to a local address. */
	ASSERT_EQ(0, rp_bind(self->e.fd, first, 0));
	EXPECT_EQ(-EINVAL, rp_bind(self->e.fd, first, 0));
	ASSERT_EQ(0, rp_listen(self->e.fd, first, 1));
	port = rp_port(self->e.fd, first);
	ASSERT_NE(0, port);

	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &self->e.id));
	EXPECT_EQ(-EADDRINUSE, rp_bind(self->e.fd, self->e.id, port));
	EXPECT_EQ(RPOST_ID_IDLE, rp_id_state(self->e.fd, self->e.id));
	ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_ID, first));
	EXPECT_EQ(0, rp_bind(self->e.fd, self->e.id, port));
	EXPECT_EQ(port, rp_port(self->e.fd, self->e.id));
}

/* An idle id that listens is bound to a port that the kernel chooses. */
TEST_F(errors, listen_unbound)
{
	ASSERT_EQ(0, rp_listen(self->e.fd, self->e.id, UINT32_MAX));
	EXPECT_EQ(RPOST_ID_LISTEN, rp_id_state(self->e.fd, self->e.id));
	EXPECT_NE(0, rp_port(self->e.fd, self->e.id));
}

TEST_F(errors, privileged_port)
{
	int status = -1, fd, channel;
	uint32_t id;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root to become nobody");
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
			_exit(1);
		fd = rp_open();
		channel = rp_event_channel(fd);
		if (channel < 0 || rp_create_id(fd, channel, &id))
			_exit(2);
		if (rp_bind(fd, id, 1023) != -EACCES)
			_exit(3);
		if (rp_bind(fd, id, 0))
			_exit(4);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	/* With the capability, any free port can be bound. */
	EXPECT_EQ(0, rp_bind(self->e.fd, self->e.id, 1023));
}

/* An address without a device fails with an error or with an event. */
TEST_F(errors, resolve_nowhere)
{
	struct __kernel_sockaddr_storage ss;
	struct rpost_get_event event;
	int ret;

	elsewhere(&ss, "192.0.2.1");
	ret = resolve(&self->e, NULL, 0, &ss, 16, 500);
	if (!ret) {
		ASSERT_EQ(0, rp_get_event(self->e.channel, &event));
		if (event.event == RPOST_EVENT_ADDR_RESOLVED)
			SKIP(return, "this host routes it to a device");
		EXPECT_EQ(RPOST_EVENT_ADDR_ERROR, event.event);
		EXPECT_GT(0, event.status);
		EXPECT_EQ(self->e.id, event.id);
		EXPECT_EQ(RPOST_ID_BOUND, rp_id_state(self->e.fd, self->e.id));
	} else {
		EXPECT_EQ(RPOST_ID_IDLE, rp_id_state(self->e.fd, self->e.id));
	}
}

/* The source is IPv4, the destination IPv6. */
TEST_F(errors, resolve_mixed_families)
{
	struct __kernel_sockaddr_storage ss, six = { 0 };
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_addr = IN6ADDR_LOOPBACK_INIT,
	};

	rp_addr(&ss, 0);
	memcpy(&six, &sin6, sizeof(sin6));
	EXPECT_GT(0, resolve(&self->e, &ss, 16, &six, sizeof(sin6), 100));
	EXPECT_EQ(RPOST_ID_IDLE, rp_id_state(self->e.fd, self->e.id));
	EXPECT_TRUE(rp_quiet(self->e.channel));
}

TEST_F(errors, ipv6)
{
	struct __kernel_sockaddr_storage ss = { 0 };
	struct rp_end server;
	struct rpost_query_id query;
	struct sockaddr_in6 sin6;

	if (!rp_addr6.sin6_family)
		SKIP(return, "no IPv6 address on an RDMA device");
	ASSERT_EQ(0, rp_end_init(&server));
	ASSERT_EQ(0, rp_create_id(server.fd, server.channel, &server.id));
	sin6 = rp_addr6;
	sin6.sin6_port = 0;
	memcpy(&ss, &sin6, sizeof(sin6));
	EXPECT_EQ(-EINVAL, bind_to(&server, &ss, sizeof(sin6) - 1));
	ASSERT_EQ(0, bind_to(&server, &ss, sizeof(sin6)));
	uint32_t listener = server.id;

	ASSERT_EQ(0, rp_listen(server.fd, listener, 1));
	sin6.sin6_port = htons(rp_port(server.fd, listener));
	memcpy(&ss, &sin6, sizeof(sin6));
	ASSERT_EQ(0, resolve(&self->e, NULL, 0, &ss, sizeof(sin6), 2000));
	ASSERT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ADDR_RESOLVED));
	ASSERT_EQ(0, rp_resolve_route(self->e.fd, self->e.id));
	ASSERT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ROUTE_RESOLVED));
	ASSERT_EQ(0, rp_create_qp(&self->e, 0));
	ASSERT_EQ(0, rp_connect(self->e.fd, self->e.id));
	ASSERT_EQ(0, rp_take_request(&server, listener));
	ASSERT_EQ(0, rp_create_qp(&server, 0));
	ASSERT_EQ(0, rp_accept(server.fd, server.id));
	ASSERT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ESTABLISHED));
	ASSERT_EQ(0, rp_query_id(server.fd, server.id, &query));
	EXPECT_EQ(AF_INET6, query.src.ss_family);
	EXPECT_EQ(AF_INET6, query.dst.ss_family);
	rp_end_close(&server);
}

/* ------------------------------------------------------- fetching events */

static int make_event(struct rp_end *end)
{
	struct pollfd pfd = { .fd = end->channel, .events = POLLIN };
	int ret = rp_resolve_addr(end->fd, end->id, 1);

	if (!ret && poll(&pfd, 1, TEST_TIMEOUT_MS) != 1)
		ret = -ETIME;
	return ret;
}

TEST_F(errors, nonblocking_channel)
{
	struct rpost_get_event event = { .size = sizeof(event), .id = 77 };

	ASSERT_EQ(0, fcntl(self->e.channel, F_SETFL, O_NONBLOCK));
	EXPECT_EQ(-EAGAIN, rp_ioctl(self->e.channel, RPOST_IOC_GET_EVENT,
				    &event));
	EXPECT_EQ(77, event.id);
	ASSERT_EQ(0, make_event(&self->e));
	EXPECT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ADDR_RESOLVED));
	event.param.private_data_len = 0;
	EXPECT_EQ(-EAGAIN, rp_ioctl(self->e.channel, RPOST_IOC_GET_EVENT,
				    &event));
}

/* An event that could not be copied to the program is not lost. */
TEST_F(errors, event_to_bad_memory)
{
	size_t page = getpagesize();
	struct rpost_get_event *event = rp_pages(page);

	ASSERT_EQ(0, make_event(&self->e));
	event->size = sizeof(*event);
	ASSERT_EQ(0, mprotect(event, page, PROT_READ));
	EXPECT_EQ(-EFAULT, rp_ioctl(self->e.channel, RPOST_IOC_GET_EVENT,
				    event));
	EXPECT_EQ(-EFAULT, rp_ioctl(self->e.channel, RPOST_IOC_GET_EVENT,
				    NULL));
	EXPECT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ADDR_RESOLVED));
	EXPECT_TRUE(rp_quiet(self->e.channel));
}

struct fetcher {
	int channel;
	int ret;
	pid_t tid;
	struct rpost_get_event event;
};

static void *fetch(void *arg)
{
	struct fetcher *f = arg;

	f->event = (struct rpost_get_event) { .size = sizeof(f->event) };
	rp_put_tid(&f->tid);
	f->ret = rp_ioctl(f->channel, RPOST_IOC_GET_EVENT, &f->event);
	return NULL;
}

TEST_F(errors, sleeping_for_an_event)
{
	struct fetcher f = { .channel = self->e.channel, .ret = 1 };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, fetch, &f));
	ASSERT_TRUE(rp_wait_asleep(&f.tid));
	EXPECT_EQ(1, f.ret);
	ASSERT_EQ(0, rp_resolve_addr(self->e.fd, self->e.id, 1));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, f.ret);
	EXPECT_EQ(RPOST_EVENT_ADDR_RESOLVED, f.event.event);
	EXPECT_EQ(self->e.id, f.event.id);
}

static void on_signal(int sig)
{
	(void)sig;
}

TEST_F(errors, signal_while_sleeping)
{
	struct fetcher f = { .channel = self->e.channel, .ret = 1 };
	struct sigaction sa = { .sa_handler = on_signal };
	pthread_t thread;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, fetch, &f));
	ASSERT_TRUE(rp_wait_asleep(&f.tid));
	ASSERT_EQ(0, pthread_kill(thread, SIGUSR1));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-EINTR, f.ret);
	/* The signal has lost no event. */
	ASSERT_EQ(0, make_event(&self->e));
	EXPECT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ADDR_RESOLVED));
}

/* Two threads wait for one event: one gets it, the other sleeps on. */
TEST_F(errors, two_fetchers)
{
	struct fetcher f[2] = {
		{ .channel = self->e.channel, .ret = 1 },
		{ .channel = self->e.channel, .ret = 1 },
	};
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, fetch, &f[i]));
	ASSERT_EQ(0, rp_resolve_addr(self->e.fd, self->e.id, 1));
	while (__atomic_load_n(&f[0].ret, __ATOMIC_RELAXED) +
	       __atomic_load_n(&f[1].ret, __ATOMIC_RELAXED) > 1 &&
	       rp_now_ms() < end)
		usleep(1000);
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(1, f[0].ret + f[1].ret);
	ASSERT_EQ(0, rp_resolve_route(self->e.fd, self->e.id));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
		EXPECT_EQ(0, f[i].ret);
	}
	EXPECT_NE(f[0].event.event, f[1].event.event);
}

/* Destroying an id drops its events, and leaves those of other ids. */
TEST_F(errors, destroy_drops_events)
{
	uint32_t other;

	ASSERT_EQ(0, make_event(&self->e));
	ASSERT_EQ(0, rp_create_id(self->e.fd, self->e.channel, &other));
	ASSERT_EQ(0, rp_resolve_addr(self->e.fd, other, 1));
	ASSERT_TRUE(rp_id_reaches(self->e.fd, other, RPOST_ID_ADDR_RESOLVED));
	ASSERT_EQ(0, rp_destroy(self->e.fd, RPOST_OBJ_ID, self->e.id));
	EXPECT_EQ(0, rp_expect(self->e.channel, other,
			       RPOST_EVENT_ADDR_RESOLVED));
	EXPECT_TRUE(rp_quiet(self->e.channel));
}

/* CONNECT refuses parameters that only events use. */
TEST_F(errors, connection_parameters)
{
	struct rpost_connect cmd = { .size = sizeof(cmd) };
	struct rp_end server;
	uint32_t listener;

	ASSERT_EQ(0, rp_end_init(&server));
	ASSERT_EQ(0, rp_listener(&server, &listener));
	ASSERT_EQ(0, rp_client_route(&self->e, rp_port(server.fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&self->e, 0));
	cmd.id = self->e.id;
	rp_conn_param(&cmd.param);
	cmd.param.qp_num = 1;
	EXPECT_EQ(-EOPNOTSUPP, rp_ioctl(self->e.fd, RPOST_IOC_CONNECT, &cmd));
	cmd.param.qp_num = 0;
	cmd.param.srq = 1;
	EXPECT_EQ(-EOPNOTSUPP, rp_ioctl(self->e.fd, RPOST_IOC_CONNECT, &cmd));
	EXPECT_EQ(RPOST_ID_ROUTE_RESOLVED, rp_id_state(self->e.fd, self->e.id));
	/* Retry counts above 7 are taken as 7. */
	cmd.param.srq = 0;
	cmd.param.retry_count = 255;
	cmd.param.rnr_retry_count = 255;
	EXPECT_EQ(0, rp_ioctl(self->e.fd, RPOST_IOC_CONNECT, &cmd));
	ASSERT_EQ(0, rp_take_request(&server, listener));
	ASSERT_EQ(0, rp_create_qp(&server, 0));
	ASSERT_EQ(0, rp_accept(server.fd, server.id));
	EXPECT_EQ(0, rp_expect(self->e.channel, self->e.id,
			       RPOST_EVENT_ESTABLISHED));
	rp_end_close(&server);
}

TEST_HARNESS_MAIN
