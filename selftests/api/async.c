// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests asynchronous events of ports, devices and queue pairs; srq.c tests
 * those of shared receive queues.  A failure means that an event is lost or
 * comes to the wrong context.
 *
 * If RPOST_TEST_LINK is set, the tests create and remove an interface with
 * rdma_rxe on it.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "rdma_test.h"

#define LINK "rpostev0"

static int run(const char *command)
{
	int status = system(command);

	if (status)
		fprintf(stderr, "# %s: status %d\n", command, status);
	return status;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_context *verbs = NULL;
	struct ibv_device **list;
	int i;

	list = ibv_get_device_list(NULL);
	for (i = 0; list && list[i] && !verbs; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			verbs = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return verbs;
}

static int next_async(struct ibv_context *verbs, struct ibv_async_event *event)
{
	memset(event, POISON, sizeof(*event));
	if (!readable(verbs->async_fd, DEADLINE_MS)) {
		fprintf(stderr, "# no asynchronous event\n");
		return -1;
	}
	return ibv_get_async_event(verbs, event);
}

/* Get the next event of this type and skip others. */
static int wait_async(struct ibv_context *verbs, enum ibv_event_type type,
		      struct ibv_async_event *event)
{
	while (!next_async(verbs, event)) {
		if (event->event_type == type)
			return 0;
		ibv_ack_async_event(event);
	}
	return -1;
}

/* Wait until the port has the address; another GID may change first. */
static int wait_gid(struct ibv_context *verbs, const char *mapped,
		    struct ibv_async_event *event)
{
	union ibv_gid gid, wanted;
	int i;

	if (inet_pton(AF_INET6, mapped, wanted.raw) != 1)
		return -1;
	while (!wait_async(verbs, IBV_EVENT_GID_CHANGE, event)) {
		ibv_ack_async_event(event);
		for (i = 0; i < 16; i++)
			if (!ibv_query_gid(verbs, 1, i, &gid) &&
			    !memcmp(&gid, &wanted, sizeof(gid)))
				return 0;
	}
	return -1;
}

static void drain(struct ibv_context *verbs)
{
	struct ibv_async_event event;

	while (readable(verbs->async_fd, QUIET_MS) &&
	       !ibv_get_async_event(verbs, &event))
		ibv_ack_async_event(&event);
}

static bool is_of_port(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		return true;
	default:
		return false;
	}
}

/* Return true if no event comes for a while, except for those of ports. */
static bool no_more(struct ibv_context *verbs)
{
	struct ibv_async_event event;

	if (fcntl(verbs->async_fd, F_SETFL, O_NONBLOCK))
		return false;
	for (;;) {
		/* Another context's event may make the descriptor readable. */
		readable(verbs->async_fd, QUIET_MS);
		errno = 0;
		if (ibv_get_async_event(verbs, &event))
			return errno == EAGAIN;
		ibv_ack_async_event(&event);
		if (!is_of_port(event.event_type))
			return false;
	}
}

FIXTURE(link) {
	struct ibv_context *verbs;
	struct ibv_async_event event;
};

/*
 * The device disappears some time after its link, and keeps its name until
 * then.  Delete the RDMA link first: if it goes with its interface and that
 * takes a second, rxe of 7.2 closes the socket of all its devices, and
 * multicast fails.
 */
#define NO_LINK								\
	"rdma link del " LINK " 2>/dev/null; "				\
	"ip link del " LINK " 2>/dev/null; n=0; "			\
	"while [ -e /sys/class/infiniband/" LINK " ]; do "		\
	"n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.1; done"

FIXTURE_SETUP(link)
{
	if (!getenv("RPOST_TEST_LINK"))
		SKIP(return, "RPOST_TEST_LINK is not set");
	/* A test that timed out may have left the interface. */
	ASSERT_EQ(0, run(NO_LINK));
	ASSERT_EQ(0, run("ip link add " LINK " type dummy && "
			 "ip link set " LINK " up && "
			 "rdma link add " LINK " type rxe netdev " LINK));
	self->verbs = open_device(LINK);
	ASSERT_NE(NULL, self->verbs);
	usleep(100 * 1000);
	drain(self->verbs);
}

FIXTURE_TEARDOWN(link)
{
	if (!self->verbs)
		return;
	EXPECT_EQ(0, ibv_close_device(self->verbs));
	EXPECT_EQ(0, run(NO_LINK));
}

TEST_F(link, port_down_and_up)
{
	struct ibv_port_attr attr;
	int i;

	if (!self->verbs)
		return;
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, run("ip link set " LINK " down"));
		ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_PORT_ERR,
					&self->event));
		EXPECT_EQ(1, self->event.element.port_num);
		ibv_ack_async_event(&self->event);
		ASSERT_EQ(0, ibv_query_port(self->verbs, 1, &attr));
		EXPECT_NE(IBV_PORT_ACTIVE, attr.state);
		ASSERT_EQ(0, run("ip link set " LINK " up"));
		ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_PORT_ACTIVE,
					&self->event));
		EXPECT_EQ(1, self->event.element.port_num);
		ibv_ack_async_event(&self->event);
		ASSERT_EQ(0, ibv_query_port(self->verbs, 1, &attr));
		EXPECT_EQ(IBV_PORT_ACTIVE, attr.state);
	}
}

TEST_F(link, gid_change)
{
	if (!self->verbs)
		return;
	ASSERT_EQ(0, run("ip addr add 10.9.9.9/24 dev " LINK));
	ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_GID_CHANGE, &self->event));
	EXPECT_EQ(1, self->event.element.port_num);
	ibv_ack_async_event(&self->event);
	usleep(100 * 1000);
	drain(self->verbs);
	ASSERT_EQ(0, run("ip addr del 10.9.9.9/24 dev " LINK));
	ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_GID_CHANGE, &self->event));
	ibv_ack_async_event(&self->event);
}

/* Each context of a device gets the events of its ports. */
TEST_F(link, every_context)
{
	struct ibv_context *other;

	if (!self->verbs)
		return;
	other = open_device(LINK);
	ASSERT_NE(NULL, other);
	ASSERT_EQ(0, run("ip link set " LINK " down"));
	ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_PORT_ERR, &self->event));
	ibv_ack_async_event(&self->event);
	ASSERT_EQ(0, wait_async(other, IBV_EVENT_PORT_ERR, &self->event));
	ibv_ack_async_event(&self->event);
	EXPECT_EQ(0, ibv_close_device(other));
}

/* Another device's context gets none of them. */
TEST_F(link, other_device)
{
	struct sockaddr_storage addr;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;

	if (!self->verbs)
		return;
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	channel = rdma_create_event_channel();
	ASSERT_EQ(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_bind_addr(id, (struct sockaddr *)&addr));
	drain(id->verbs);
	ASSERT_EQ(0, run("ip link set " LINK " down"));
	ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_PORT_ERR, &self->event));
	ibv_ack_async_event(&self->event);
	EXPECT_FALSE(readable(id->verbs->async_fd, QUIET_MS));
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
}

struct getter {
	struct ibv_context *verbs;
	struct ibv_async_event event;
	int result;
	bool done;
};

static void *get_blocking(void *arg)
{
	struct getter *g = arg;

	do {
		g->result = ibv_get_async_event(g->verbs, &g->event);
		if (!g->result)
			ibv_ack_async_event(&g->event);
	} while (!g->result && g->event.event_type != IBV_EVENT_PORT_ERR);
	__atomic_store_n(&g->done, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F(link, blocking)
{
	struct getter g = { .verbs = self->verbs };
	pthread_t thread;

	if (!self->verbs)
		return;
	ASSERT_EQ(0, pthread_create(&thread, NULL, get_blocking, &g));
	usleep(100 * 1000);
	EXPECT_FALSE(__atomic_load_n(&g.done, __ATOMIC_ACQUIRE));
	ASSERT_EQ(0, run("ip link set " LINK " down"));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, g.result);
}

/* IBV_EVENT_DEVICE_FATAL comes at removal; objects can still be destroyed. */
TEST_F(link, removal)
{
	struct ibv_device_attr attr;
	struct ibv_cq *cq;
	struct ibv_pd *pd;

	if (!self->verbs)
		return;
	if (over_incumbent())
		SKIP(return, "the kernel keeps rdma_rxe until its users have closed it");
	pd = ibv_alloc_pd(self->verbs);
	cq = ibv_create_cq(self->verbs, 10, NULL, NULL, 0);
	ASSERT_TRUE(pd && cq);
	ASSERT_EQ(0, run("rdma link del " LINK));
	ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_DEVICE_FATAL, &self->event));
	ibv_ack_async_event(&self->event);
	EXPECT_EQ(ENODEV, ibv_query_device(self->verbs, &attr));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/* Wait until so many ids have got DEVICE_REMOVAL; skip other events. */
static int await_removals(struct rdma_event_channel *channel, int ids)
{
	struct event event;

	while (ids) {
		if (next_event(channel, &event) < 0)
			return -1;
		ids -= event.type == RDMA_CM_EVENT_DEVICE_REMOVAL;
	}
	return 0;
}

/*
 * Each id gets an event, posts are flushed, and the device that comes back is
 * another one.
 */
TEST_F(link, removal_of_a_connection)
{
	struct ibv_context *old;
	struct ibv_pd *pd;
	struct ibv_wc wc;
	struct pair p;
	uintptr_t i;

	if (!self->verbs)
		return;
	if (over_incumbent())
		SKIP(return, "the kernel keeps rdma_rxe until its users have closed it");
	ASSERT_EQ(0, setenv("RPOST_TEST_ADDR", "10.9.9.9", 1));
	ASSERT_EQ(0, run("ip addr add 10.9.9.9/24 dev " LINK));
	ASSERT_EQ(0, wait_gid(self->verbs, "::ffff:10.9.9.9", &self->event));
	ASSERT_EQ(0, pair_open(&p, NULL));
	old = p.client.id->verbs;
	EXPECT_STREQ(LINK, ibv_get_device_name(old->device));
	pd = ibv_alloc_pd(old);
	ASSERT_NE(NULL, pd);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, end_recv(&p.client, (void *)i, 0, 8));

	ASSERT_EQ(0, run("rdma link del " LINK));
	for (i = 0; i < 3; i++)
		ASSERT_COMP(p.client.id->recv_cq, &wc, IBV_WC_WR_FLUSH_ERR, i);
	EXPECT_EQ(0, await_removals(p.client.channel, 1));
	EXPECT_EQ(0, await_removals(p.server.channel, 2));
	EXPECT_ERRNO(ENODEV, rdma_post_sendv(p.client.id, NULL, NULL, 0, 0));
	EXPECT_ERRNO(ENODEV, rdma_disconnect(p.client.id));
	EXPECT_NULL_ERRNO(ENODEV, ibv_alloc_pd(old));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_dereg_mr(p.client.mr));
	p.client.mr = NULL;
	pair_close(&p);

	ASSERT_EQ(0, run("rdma link add " LINK " type rxe netdev " LINK));
	ASSERT_EQ(0, pair_open(&p, NULL));
	EXPECT_NE(old, p.client.id->verbs);
	EXPECT_STREQ(LINK, ibv_get_device_name(p.client.id->verbs->device));
	pair_close(&p);
}

/* ------------------------------------ tests that change no link */

FIXTURE(async) {
	struct pair p;
	struct ibv_context *verbs;
	struct ibv_async_event event;
};

FIXTURE_SETUP(async)
{
	struct pair_opts opts;

	pair_defaults(&opts);
	ASSERT_EQ(0, pair_listen(&self->p, &opts));
	self->verbs = self->p.listen->verbs;
	drain(self->verbs);
}

FIXTURE_TEARDOWN(async)
{
	pair_close(&self->p);
}

TEST_F(async, nothing_without_blocking)
{
	ASSERT_EQ(0, fcntl(self->verbs->async_fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERRNO(EAGAIN, ibv_get_async_event(self->verbs, &self->event));
	ASSERT_EQ(0, fcntl(self->verbs->async_fd, F_SETFL, 0));
}

static void nothing(int sig)
{
	(void)sig;
}

TEST_F(async, interrupted)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval timer = {
		.it_value.tv_usec = 50 * 1000, .it_interval.tv_usec = 50 * 1000,
	};

	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &timer, NULL));
	EXPECT_ERRNO(EINTR, ibv_get_async_event(self->verbs, &self->event));
}

/* A connection that is established and ends causes no asynchronous event. */
TEST_F(async, quiet)
{
	pair_close(&self->p);
	ASSERT_EQ(0, pair_open(&self->p, NULL));
	self->verbs = self->p.listen->verbs;
	ASSERT_EQ(0, rdma_disconnect(self->p.client.id));
	ASSERT_EQ(0, expect_event(self->p.server.channel, RDMA_CM_EVENT_DISCONNECTED,
				  &self->p.server.event));
	EXPECT_TRUE(no_more(self->verbs));
}

struct destroyer {
	struct rdma_cm_id *id;
	bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;

	rdma_destroy_qp(d->id);
	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/*
 * In the error state, a queue pair with a shared receive queue gets
 * LAST_WQE_REACHED; its destruction waits for the acknowledgement.
 */
TEST_F(async, last_wqe)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct pair_opts opts;
	struct destroyer d = {};
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	pthread_t thread;

	pair_close(&self->p);
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_to_client_qp(&self->p, &opts));
	self->verbs = self->p.client.id->verbs;
	srq = ibv_create_srq(self->p.client.id->pd, &init);
	ASSERT_NE(NULL, srq);
	opts.server_qp.srq = srq;
	ASSERT_EQ(0, pair_connect(&self->p, &opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &opts));
	ASSERT_EQ(0, pair_accept(&self->p, &opts));
	qp = self->p.server.id->qp;

	ASSERT_EQ(0, ibv_modify_qp(qp, &error, IBV_QP_STATE));
	if (!readable(self->verbs->async_fd, 500)) {
		end_close(&self->p.server);
		EXPECT_EQ(0, ibv_destroy_srq(srq));
		SKIP(return, "the device's driver does not report it");
	}
	ASSERT_EQ(0, ibv_get_async_event(self->verbs, &self->event));
	EXPECT_EQ(IBV_EVENT_QP_LAST_WQE_REACHED, self->event.event_type);
	EXPECT_EQ(qp, self->event.element.qp);

	d.id = self->p.server.id;
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy, &d));
	usleep(100 * 1000);
	EXPECT_FALSE(__atomic_load_n(&d.done, __ATOMIC_ACQUIRE));
	ibv_ack_async_event(&self->event);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* A completion queue that is too small: whoever waits for events learns of it. */
TEST_F(async, overrun)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	struct pair_opts opts;
	struct ibv_cq *cq;
	int i;

	pair_close(&self->p);
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_to_resolve(&self->p, &opts));
	self->verbs = self->p.client.id->verbs;
	cq = ibv_create_cq(self->verbs, 1, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	opts.client_qp.send_cq = cq;
	opts.client_qp.recv_cq = cq;
	ASSERT_EQ(0, pair_after_resolve(&self->p, &opts));
	drain(self->verbs);
	/* Nobody polls meanwhile. */
	for (i = 0; i < 16 && !readable(self->verbs->async_fd, 10); i++)
		ASSERT_EQ(0, ibv_post_send(self->p.client.id->qp, &wr, &bad));
	ASSERT_TRUE(readable(self->verbs->async_fd, DEADLINE_MS));
	ASSERT_EQ(0, ibv_get_async_event(self->verbs, &self->event));
	EXPECT_EQ(IBV_EVENT_CQ_ERR, self->event.event_type);
	EXPECT_EQ(cq, self->event.element.cq);
	ibv_ack_async_event(&self->event);
	drain(self->verbs);
	pair_close(&self->p);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* An object's event comes only to the context of the object. */
TEST_F(async, contexts_are_apart)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_context *other, *import = NULL;
	struct pair_opts opts;
	struct ibv_recv_wr *bad, wr = { .wr_id = 1 };
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_srq *srq;
	struct ibv_wc wc;

	pair_close(&self->p);
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_to_client_qp(&self->p, &opts));
	self->verbs = self->p.client.id->verbs;
	other = ibv_open_device(self->verbs->device);
	ASSERT_NE(NULL, other);
	/* rxe's own provider has no imports. */
	if (!over_incumbent()) {
		import = ibv_import_device(dup(self->verbs->cmd_fd));
		ASSERT_TRUE(import || errno == EOPNOTSUPP);
	}
	srq = ibv_create_srq(self->p.client.id->pd, &init);
	ASSERT_NE(NULL, srq);
	opts.server_qp.srq = srq;
	ASSERT_EQ(0, pair_connect(&self->p, &opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &opts));
	ASSERT_EQ(0, pair_accept(&self->p, &opts));
	ASSERT_EQ(0, ibv_post_srq_recv(srq, &wr, &bad));
	ASSERT_EQ(0, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, end_send(&self->p.client, NULL, 0, 0, 0));
	ASSERT_COMP_OK(self->p.server.id->recv_cq, &wc, IBV_WC_RECV, 1ul);
	ASSERT_EQ(0, wait_async(self->verbs, IBV_EVENT_SRQ_LIMIT_REACHED,
				&self->event));
	EXPECT_EQ(srq, self->event.element.srq);
	ibv_ack_async_event(&self->event);
	EXPECT_TRUE(no_more(other));
	EXPECT_EQ(0, ibv_close_device(other));
	if (import) {
		EXPECT_TRUE(no_more(import));
		EXPECT_EQ(0, ibv_close_device(import));
	}
	end_close(&self->p.server);
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

TEST_HARNESS_MAIN
