// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that each event of an id with a device finds id->verbs set, while the
 * device is removed and added: programs use id->verbs without looking.  The
 * connection manager knows a device before the library does, and for longer.
 *
 * RPOST_TEST_REMOVE is a command that removes the device, RPOST_TEST_ADD one
 * that brings it back; see selftests/faults/removal.c.
 */
#include <kselftest_harness.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rdma_test.h"

#define ROUNDS		8
#define ANSWER_MS	300	/* after this the device may have gone */
#define LOST_MS		2000	/* after this an answer counts as lost */

/*
 * Over rdma-core a program ends by itself, before the removal: uverbs removes rxe
 * only after the last program has closed it, and the kernel crashes if an id that
 * queries a route is destroyed at the same time (kmod/id/route.c).
 */
#define STAY_MS		200

/* What the children have counted, one after the other, in shared memory. */
struct seen {
	unsigned int resolved, routed, requests;
	unsigned int without_verbs;
};

/* Both ends, in one process. */
struct ends {
	struct rdma_event_channel *client, *server;
	struct rdma_cm_id *listen;
	struct sockaddr_storage addr;
	struct seen *seen;
	int answer_ms;
};

/* Listen on any address, which needs no device. */
static int ends_open(struct ends *ends)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	ends->client = rdma_create_event_channel();
	ends->server = rdma_create_event_channel();
	if (!ends->client || !ends->server ||
	    set_nonblock(ends->client->fd, true) ||
	    set_nonblock(ends->server->fd, true))
		return -1;
	if (rdma_create_id(ends->server, &ends->listen, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(ends->listen, (struct sockaddr *)&any) ||
	    rdma_listen(ends->listen, 4))
		return -1;
	if (!test_addr(AF_INET, &ends->addr))
		return -1;
	set_port(&ends->addr, rdma_get_src_port(ends->listen));
	return 0;
}

/* Wait for an event of this type, count it, and return its id. */
static struct rdma_cm_id *wait_event(struct ends *ends,
				     struct rdma_event_channel *channel,
				     enum rdma_cm_event_type type,
				     unsigned int *count)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	bool expected;

	if (!readable(channel->fd, ends->answer_ms) ||
	    rdma_get_cm_event(channel, &event))
		return NULL;
	expected = event->event == type;
	id = event->id;
	if (expected) {
		(*count)++;
		if (!id->verbs)
			ends->seen->without_verbs++;
	}
	if (rdma_ack_cm_event(event))
		return NULL;
	return expected ? id : NULL;
}

static bool serve(struct ends *ends)
{
	struct rdma_cm_id *id;

	id = wait_event(ends, ends->server, RDMA_CM_EVENT_CONNECT_REQUEST,
			&ends->seen->requests);
	if (!id)
		return false;
	rdma_reject(id, NULL, 0);
	return !rdma_destroy_id(id);
}

/* Return true if a request has arrived. */
static bool ask(struct ends *ends)
{
	struct rdma_conn_param conn = {};
	struct pair_opts opts;
	struct rdma_cm_id *id;
	bool ret;

	pair_defaults(&opts);
	if (rdma_create_id(ends->client, &id, NULL, RDMA_PS_TCP))
		return false;
	ret = !rdma_resolve_addr(id, NULL, (struct sockaddr *)&ends->addr,
				 ends->answer_ms) &&
	      wait_event(ends, ends->client, RDMA_CM_EVENT_ADDR_RESOLVED,
			 &ends->seen->resolved) &&
	      !rdma_resolve_route(id, ends->answer_ms) &&
	      wait_event(ends, ends->client, RDMA_CM_EVENT_ROUTE_RESOLVED,
			 &ends->seen->routed) &&
	      !rdma_create_qp(id, NULL, &opts.client_qp) &&
	      !rdma_connect(id, &conn) && serve(ends);
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return ret;
}

/* Ask until the device has gone. */
static bool ask_while_there(struct ends *ends)
{
	uint64_t end = now_ms() + (over_incumbent() ? STAY_MS : DEADLINE_MS);

	ends->answer_ms = ANSWER_MS;
	while (ask(ends))
		if (now_ms() > end)
			return over_incumbent();
	return true;
}

/* Ask until the device is there. */
static bool ask_until_there(struct ends *ends)
{
	uint64_t end = now_ms() + DEADLINE_MS;

	ends->answer_ms = LOST_MS;
	while (!ask(ends))
		if (now_ms() > end)
			return false;
	return true;
}

struct child {
	pid_t pid;
	int socket;
};

/* Start a child that opens its ends now and asks when it gets a byte. */
static int child_start(struct child *child, struct seen *seen,
		       bool (*ask_all)(struct ends *ends))
{
	struct ends ends = { .seen = seen };
	int sockets[2];
	char byte = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return -1;
	child->socket = sockets[0];
	child->pid = fork();
	if (child->pid)
		close(sockets[1]);
	else if (ends_open(&ends) || write(sockets[1], &byte, 1) != 1 ||
		 read(sockets[1], &byte, 1) != 1)
		_exit(1);
	else
		_exit(!ask_all(&ends));
	return read(child->socket, &byte, 1) == 1 ? 0 : -1;
}

static int child_go(struct child *child)
{
	return write(child->socket, "", 1) == 1 ? 0 : -1;
}

static int child_end(struct child *child)
{
	int status;

	close(child->socket);
	return waitpid(child->pid, &status, 0) == child->pid ? status : -1;
}

FIXTURE(hotplug) {
	const char *remove, *add;
	struct seen *seen;
};

FIXTURE_SETUP(hotplug)
{
	self->remove = getenv("RPOST_TEST_REMOVE");
	self->add = getenv("RPOST_TEST_ADD");
	self->seen = mmap(NULL, sizeof(*self->seen), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->seen);
}

FIXTURE_TEARDOWN(hotplug)
{
	munmap(self->seen, sizeof(*self->seen));
}

TEST_F(hotplug, events_have_verbs)
{
	struct child before, after;
	int i;

	if (!self->remove || !self->add)
		SKIP(return, "RPOST_TEST_REMOVE and RPOST_TEST_ADD are not set");
	for (i = 0; i < ROUNDS; i++) {
		/* It listens while there is no device, and as it comes. */
		ASSERT_EQ(0, child_start(&after, self->seen, ask_until_there));
		ASSERT_EQ(0, child_start(&before, self->seen, ask_while_there));
		ASSERT_EQ(0, child_go(&before));
		if (over_incumbent())
			EXPECT_EQ(0, child_end(&before));
		ASSERT_EQ(0, system(self->remove));
		if (!over_incumbent())
			EXPECT_EQ(0, child_end(&before));
		ASSERT_EQ(0, child_go(&after));
		ASSERT_EQ(0, system(self->add));
		EXPECT_EQ(0, child_end(&after));
	}
	printf("# %u addresses and %u routes resolved, %u requests\n",
	       self->seen->resolved, self->seen->routed, self->seen->requests);
	EXPECT_LE(ROUNDS, self->seen->resolved);
	EXPECT_LE(ROUNDS, self->seen->routed);
	EXPECT_LE(ROUNDS, self->seen->requests);
	EXPECT_EQ(0, self->seen->without_verbs);
}

TEST_HARNESS_MAIN
