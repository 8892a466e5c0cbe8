// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the limits of an open file and of its program: queue entries,
 * privileged ports, and fixed limits.  A failure means that a limit does not
 * hold, or that failed calls count against it.  RPOST_TEST_LATE is a command
 * that prints an address whose resolution takes a while and then fails.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <sched.h>

#include "rpost_own.h"

#define NOBODY		65534

/* ------------------------------------------------------- queue entries */

FIXTURE(entries) {
	struct rp_end end;
	long max_wr, max_cqe;
	bool skip;
};

FIXTURE_SETUP(entries)
{
	self->max_wr = rp_module_number("parameters/max_wr");
	self->max_cqe = rp_module_number("parameters/max_cqe");
	ASSERT_LT(0, self->max_wr);
	ASSERT_LT(0, self->max_cqe);
	self->skip = access(RP_PARAMETERS "max_wr", W_OK);
	ASSERT_EQ(0, rp_end_init(&self->end));
}

FIXTURE_TEARDOWN(entries)
{
	rp_end_close(&self->end);
	if (self->skip)
		return;
	EXPECT_EQ(0, rp_set_number("max_wr", self->max_wr));
	EXPECT_EQ(0, rp_set_number("max_cqe", self->max_cqe));
}

#define NEED_ROOT()							\
	do {								\
		if (self->skip)						\
			SKIP(return, "needs root");			\
	} while (0)

/* The module adds an entry to each queue, for the drain WR. */
#define QP_ENTRIES	(2 * (RP_DEPTH + 1))

TEST_F(entries, work_requests)
{
	struct rp_end *end = &self->end;
	struct rpost_create_srq srq;
	uint32_t first;
	int fd;

	NEED_ROOT();
	ASSERT_EQ(0, rp_set_number("max_wr", 2 * QP_ENTRIES + 7));
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	first = end->qp;
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_srq(end->fd, end->pd, 8, &srq));
	EXPECT_EQ(4, rp_num_objects(end->fd));
	/* The entries of a shared receive queue count separately. */
	ASSERT_EQ(0, rp_create_srq(end->fd, end->pd, 7, &srq));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, first));
	EXPECT_EQ(-EMFILE, rp_create_srq(end->fd, end->pd, QP_ENTRIES + 1,
					 &srq));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_UD, 0));
	EXPECT_EQ(-EMFILE, rp_create_srq(end->fd, end->pd, 1, &srq));

	/* Each open file has its own limit. */
	fd = end->fd;
	close(end->channel);
	rp_unmap_cq(&end->cq);
	ASSERT_EQ(0, rp_end_init(end));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(end, RPOST_QPT_RC, 0));
	close(fd);
}

/* A call that fails takes no entries. */
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
	ASSERT_EQ(0, rp_set_number("max_wr", QP_ENTRIES));
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
 * A completion queue takes entries on the device when a queue pair needs them:
 * as many as the program asked for, or only as many as are needed if fewer are
 * left.
 */
TEST_F(entries, completions)
{
	struct rp_end *end = &self->end;
	struct rp_end other = *end;

	NEED_ROOT();
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 128, -1, &other.cq));
	ASSERT_EQ(0, rp_set_number("max_cqe", 4 * RP_DEPTH + RP_DEPTH));
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(&other, RPOST_QPT_RC, 0));
	EXPECT_EQ(4, rp_num_objects(end->fd));
	ASSERT_EQ(0, rp_set_number("max_cqe", 4 * RP_DEPTH + QP_ENTRIES));
	ASSERT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
	/* The entries are freed with the completion queue. */
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, other.qp));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_CQ, other.cq.cmd.handle));
	rp_unmap_cq(&other.cq);
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 128, -1, &other.cq));
	EXPECT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
	rp_unmap_cq(&other.cq);
}

/*
 * A program that keeps to the little that is left gets a queue of the device for each queue
 * pair, all of which a poll visits with a lock held: so not without end.
 */
TEST_F(entries, many_queues)
{
	struct rp_end *end = &self->end;
	struct rp_end other = *end;
	int i, ret = 0;

	NEED_ROOT();
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 1, -1, &other.cq));
	for (i = 0; i < 64 && !ret; i++) {
		ASSERT_EQ(0, rp_set_number("max_cqe", (i + 1) * QP_ENTRIES));
		ret = rp_create_own(&other, RPOST_QPT_RC, 0);
	}
	EXPECT_EQ(-EMFILE, ret);
	EXPECT_EQ(32 + 1, i);
	/* There may be a large one more. */
	ASSERT_EQ(0, rp_set_number("max_cqe", self->max_cqe));
	EXPECT_EQ(0, rp_create_own(&other, RPOST_QPT_RC, 0));
	rp_unmap_cq(&other.cq);
}

TEST_F(entries, come_back_when_the_device_goes)
{
	struct rp_end *end = &self->end;
	struct rpost_create_srq srq;

	NEED_ROOT();
	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_set_number("max_wr", QP_ENTRIES + 8));
	ASSERT_EQ(0, rp_set_number("max_cqe", 4 * RP_DEPTH));
	ASSERT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_create_srq(end->fd, end->pd, 8, &srq));
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, rp_add_device());

	/* The old objects still exist, but have no entries. */
	rp_unmap_cq(&end->cq);
	end->device = rp_first_device(end->fd);
	ASSERT_EQ(0, rp_alloc_pd(end->fd, end->device, &end->pd));
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 4 * RP_DEPTH, -1,
				  &end->cq));
	EXPECT_EQ(0, rp_create_own(end, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, rp_create_srq(end->fd, end->pd, 8, &srq));
}

/* A client beyond the limit is rejected; its request leaves nothing. */
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
	/* The server has three objects, and each client has four. */
	ASSERT_EQ(0, rp_set_number("max_objects", 4));
	ASSERT_EQ(0, rp_ask(&clients[0], server, listener, 0));
	EXPECT_EQ(4, rp_num_objects(server->fd));
	ASSERT_EQ(0, rp_client_route(&clients[1], rp_port(server->fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&clients[1], 0));
	ASSERT_EQ(0, rp_connect(clients[1].fd, clients[1].id));
	EXPECT_EQ(0, rp_get_event(clients[1].channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	EXPECT_EQ(4, rp_num_objects(server->fd));
	EXPECT_EQ(0, rp_set_number("max_objects", max_objects));
	/* The first client's request can still be accepted. */
	ASSERT_EQ(0, rp_create_qp(server, 0));
	ASSERT_EQ(0, rp_accept(server->fd, server->id));
	EXPECT_EQ(0, rp_expect(server->channel, server->id,
			       RPOST_EVENT_ESTABLISHED));
	for (i = 0; i < 2; i++)
		rp_end_close(&clients[i]);
}

/* The defaults suffice for a server of a thousand clients. */
TEST_F(entries, enough_for_a_thousand_connections)
{
	const long each = 2 * (128 + 1);

	if (self->max_wr != 1048576 || self->max_cqe != 4194304)
		SKIP(return, "not the module's defaults");
	EXPECT_LE(1000 * each, self->max_wr);
	/*
	 * One queue for all doubles as it grows; or each client has two queues.
	 */
	EXPECT_LE(2 * 1000 * each, self->max_cqe);
	EXPECT_LE(1000 * 5, rp_module_number("parameters/max_objects"));
}

/* -------------------------------------------------------- fixed limits */

#define MAX_ASYNC_CHANNELS	128
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
	/* Each open file has its own limit. */
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

/* Returns the number of unfetched events of all programs, or -1. */
static long events_waiting(void)
{
	return rp_debug_number("objects", "event");
}

/* Resolve the address and wait for the event, but do not fetch it. */
static int resolve_late(struct rp_end *end, uint32_t id, struct in_addr addr)
{
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;
	long before = events_waiting();
	struct rpost_query_id query;

	RP_TRY(rp_resolve_ip(end->fd, id, addr, 4711, 10));
	do {
		usleep(1000);
		RP_TRY(rp_query_id(end->fd, id, &query));
	} while ((query.state != RPOST_ID_BOUND || events_waiting() == before) &&
		 rp_now_ms() < until);
	return events_waiting() == before + 1 ? 0 : -ETIME;
}

TEST_F(fixed, events_of_an_id)
{
	struct rp_end *end = &self->end;
	struct rpost_get_event event;
	struct in_addr late;
	uint32_t other;
	int i;

	if (!getenv("RPOST_TEST_LATE"))
		SKIP(return, "RPOST_TEST_LATE is not set");
	if (events_waiting() < 0)
		SKIP(return, "cannot read what debugfs has of the module");
	ASSERT_EQ(0, rp_late_address(&late));
	ASSERT_EQ(0, rp_create_id(end->fd, end->channel, &end->id));
	ASSERT_EQ(0, rp_create_id(end->fd, end->channel, &other));
	for (i = 0; i < MAX_EVENTS; i++)
		ASSERT_EQ(0, resolve_late(end, end->id, late));
	/*
	 * Each id has its own limit.  An event counts a moment before its id has
	 * it, but the kernel ends one resolution after the other: when this one
	 * counts, the first id has all of its events.
	 */
	EXPECT_EQ(0, resolve_late(end, other, late));
	EXPECT_EQ(-ENOMEM, resolve_late(end, end->id, late));
	ASSERT_EQ(0, rp_get_event(end->channel, &event));
	EXPECT_EQ(RPOST_EVENT_ADDR_ERROR, event.event);
	EXPECT_EQ(end->id, event.id);
	EXPECT_EQ(0, resolve_late(end, end->id, late));
	EXPECT_EQ(0, resolve_late(end, other, late));
	EXPECT_EQ(-ENOMEM, resolve_late(end, end->id, late));
	for (i = 0; i < MAX_EVENTS + 2; i++) {
		ASSERT_EQ(0, rp_get_event(end->channel, &event));
		EXPECT_EQ(RPOST_EVENT_ADDR_ERROR, event.event);
	}
	EXPECT_TRUE(rp_quiet(end->channel));
	EXPECT_EQ(0, resolve_late(end, end->id, late));
}

/* Ids for datagrams can ask without a queue pair. */
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

/* Leave a request at the server; the client is gone and cannot repeat it. */
static int ask_and_go(struct rp_end *client, struct rp_end *server, uint16_t port)
{
	int objects = rp_num_objects(server->fd);

	RP_TRY(ask_for_address(client, port));
	if (rp_wait_objects(server->fd, objects + 1) != objects + 1)
		return -ETIME;
	return rp_destroy(client->fd, RPOST_OBJ_ID, client->id);
}

/* The kernel refuses a datagram request, where it would drop a connection's. */
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
	/* After two requests are fetched, two more can wait. */
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
	/* After a failed bind, the id can be bound to another port. */
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

/* Root of a user namespace with its own network has no capability here. */
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
