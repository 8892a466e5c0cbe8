// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests synchronous ids and endpoints: rdma_create_ep(3), rdma_get_request(3),
 * and calls that wait for their event.  The server is a thread; a failure means
 * that a call returns too early, with the wrong error, or never.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>

#include "rdma_test.h"

static const struct ibv_qp_init_attr qp_attr = {
	.cap = {
		.max_send_wr = 4, .max_recv_wr = 4,
		.max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 32,
	},
	.qp_type = IBV_QPT_RC,
};

static const struct rdma_conn_param conn_param = {
	.responder_resources = 2, .initiator_depth = 2,
	.retry_count = 7, .rnr_retry_count = 7,
};

struct server {
	struct rdma_cm_id *listen;
	int (*answer)(struct server *server, struct rdma_cm_id *id);
	int count;		/* requests to answer */
	pthread_t thread;
	sem_t joined;		/* posted when rdma_accept() has returned */
	uint8_t buf[4096];
	int failed;		/* the line of a failed check in the thread */
};

/* The thread cannot use the harness's assertions, so record the line. */
#define MUST(server, condition) do { \
	if (!(condition)) { \
		fprintf(stderr, "# server, line %d: %s\n", __LINE__, strerror(errno)); \
		(server)->failed = __LINE__; \
		return -1; \
	} \
} while (0)

static void *serve(void *arg)
{
	struct server *server = arg;
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < server->count; i++) {
		if (rdma_get_request(server->listen, &id)) {
			server->failed = __LINE__;
			break;
		}
		if (server->answer(server, id))
			break;
	}
	return NULL;
}

static int create_ep(struct rdma_cm_id **id, int flags, struct rdma_cm_id *listen,
		     const struct ibv_qp_init_attr *qp)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags, .ai_port_space = RDMA_PS_TCP,
	}, *info;
	struct ibv_qp_init_attr attr;
	char node[INET_ADDRSTRLEN], service[8];
	int ret;

	addr_text(node, service, listen);
	ret = rdma_getaddrinfo(node, service, &hints, &info);
	if (ret)
		return ret;
	if (qp)
		attr = *qp;
	ret = rdma_create_ep(id, info, NULL, qp ? &attr : NULL);
	rdma_freeaddrinfo(info);
	return ret;
}

static int start_server_for(int count, struct server *server,
			    const struct ibv_qp_init_attr *qp,
			    int (*answer)(struct server *, struct rdma_cm_id *))
{
	memset(server, 0, sizeof(*server));
	server->answer = answer;
	server->count = count;
	sem_init(&server->joined, 0, 0);
	if (create_ep(&server->listen, RAI_PASSIVE, NULL, qp) ||
	    rdma_listen(server->listen, 64))
		return -1;
	return pthread_create(&server->thread, NULL, serve, server);
}

static int start_server(struct server *server, const struct ibv_qp_init_attr *qp,
			int (*answer)(struct server *, struct rdma_cm_id *))
{
	return start_server_for(1, server, qp, answer);
}

/*
 * Wait until the server's rdma_accept() has returned.  If a client disconnects
 * earlier, the call may take the event of that: ib_cm has a thread on each CPU,
 * and may handle a DREQ before the RTU that preceded it.
 */
static int joined(struct server *server)
{
	struct timespec until = real_time_in(60000);

	return sem_timedwait(&server->joined, &until);
}

#define ASSERT_SERVED(server) do { \
	ASSERT_EQ(0, pthread_join((server)->thread, NULL)); \
	EXPECT_EQ(0, (server)->failed); \
	rdma_destroy_ep((server)->listen); \
} while (0)

static int connect_with(struct rdma_cm_id *id, const void *data, size_t len)
{
	struct rdma_conn_param param = conn_param;

	param.private_data = data;
	param.private_data_len = len;
	return rdma_connect(id, &param);
}

/*
 * Sleep until the other side has disconnected, then disconnect.  Until then the
 * queue pair must exist, because the other side may wait for its
 * acknowledgements.
 */
static int await_disconnect(struct rdma_cm_id *id)
{
	return readable(id->channel->fd, DEADLINE_MS) ? rdma_disconnect(id) : -1;
}

/*
 * Receive a message of 100 bytes and send it back changed.  The client
 * disconnects when it has the answer.
 */
static int answer_echo(struct server *server, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = conn_param;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	int i;

	MUST(server, id->qp && id->pd && id->verbs);
	MUST(server, id->channel == NULL || id->channel != server->listen->channel);
	mr = rdma_reg_msgs(id, server->buf, sizeof(server->buf));
	MUST(server, mr);
	MUST(server, !rdma_post_recv(id, CONTEXT, server->buf, 100, mr));
	MUST(server, !rdma_accept(id, &param));
	MUST(server, rdma_get_recv_comp(id, &wc) == 1);
	MUST(server, !wc.status && wc.byte_len == 100);
	for (i = 0; i < 100; i++)
		server->buf[i] ^= 0xff;
	MUST(server, !rdma_post_send(id, CONTEXT, server->buf, 100, mr, 0));
	MUST(server, !await_disconnect(id));
	MUST(server, !rdma_dereg_mr(mr));
	rdma_destroy_ep(id);
	return 0;
}

/* Send a message to answer_echo() and check the answer. */
static int echo(struct rdma_cm_id *id, unsigned int seed)
{
	uint8_t *buf = aligned_alloc(4096, 4096);
	struct ibv_mr *mr = rdma_reg_msgs(id, buf, 4096);
	struct ibv_wc wc;
	int i, ret = -1;

	fill(buf, 100, seed);
	if (mr && !rdma_post_recv(id, buf, buf + 200, 100, mr) &&
	    !connect_with(id, NULL, 0) &&
	    !rdma_post_send(id, buf, buf, 100, mr, IBV_SEND_SIGNALED) &&
	    rdma_get_send_comp(id, &wc) == 1 && !wc.status &&
	    rdma_get_recv_comp(id, &wc) == 1 && !wc.status &&
	    wc.wr_id == addr64(buf) && wc.byte_len == 100) {
		for (i = 200; i < 300; i++)
			buf[i] ^= 0xff;
		ret = filled(buf + 200, 100, seed) ? rdma_disconnect(id) : -1;
	}
	if (mr)
		ibv_dereg_mr(mr);
	free(buf);
	return ret;
}

TEST(endpoints)
{
	struct server server;
	struct rdma_cm_id *id;

	ASSERT_EQ(0, start_server(&server, &qp_attr, answer_echo));
	ASSERT_EQ(0, create_ep(&id, 0, server.listen, &qp_attr));
	EXPECT_NE(NULL, id->qp);
	EXPECT_NE(NULL, id->pd);
	EXPECT_NE(NULL, id->send_cq);
	EXPECT_NE(NULL, id->recv_cq_channel);
	EXPECT_EQ(rdma_get_src_port(server.listen), rdma_get_dst_port(id));
	EXPECT_EQ(0, echo(id, 1));
	rdma_destroy_ep(id);
	ASSERT_SERVED(&server);
}

/* Several clients use one listener, one after the other. */
TEST(clients_in_turn)
{
	struct server server;
	struct rdma_cm_id *id;
	int i;

	ASSERT_EQ(0, start_server_for(3, &server, &qp_attr, answer_echo));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, create_ep(&id, 0, server.listen, &qp_attr));
		EXPECT_EQ(0, echo(id, i + 1));
		rdma_destroy_ep(id);
	}
	ASSERT_SERVED(&server);
}

/* Each call on an id without a channel returns when its event has come. */
TEST(id_without_a_channel)
{
	struct ibv_qp_init_attr attr = qp_attr;
	struct sockaddr_storage addr;
	struct server server;
	struct rdma_cm_id *id;

	ASSERT_EQ(0, start_server(&server, &qp_attr, answer_echo));
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	set_port(&addr, rdma_get_src_port(server.listen));
	ASSERT_EQ(0, rdma_create_id(NULL, &id, CONTEXT, RDMA_PS_TCP));
	EXPECT_EQ(CONTEXT, id->context);
	EXPECT_NE(NULL, id->channel);
	ASSERT_EQ(0, rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 10000));
	EXPECT_NE(NULL, id->verbs);
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_ADDR_RESOLVED, id->event->event);
	ASSERT_EQ(0, rdma_resolve_route(id, 10000));
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_ROUTE_RESOLVED, id->event->event);
	EXPECT_EQ(1, id->route.num_paths);
	ASSERT_EQ(0, rdma_create_qp(id, NULL, &attr));
	EXPECT_EQ(0, echo(id, 1));
	rdma_destroy_qp(id);
	EXPECT_EQ(0, rdma_destroy_id(id));
	ASSERT_SERVED(&server);
}

/* The request's event stays with the id until the request is answered. */
static int answer_private_data(struct server *server, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = conn_param;
	struct rdma_cm_event *ev = id->event;
	uint8_t data[60];

	MUST(server, ev);
	MUST(server, ev->event == RDMA_CM_EVENT_CONNECT_REQUEST);
	MUST(server, ev->id == id);
	MUST(server, ev->listen_id == server->listen);
	MUST(server, ev->param.conn.private_data_len >= 40);
	MUST(server, filled(ev->param.conn.private_data, 40, 1));
	MUST(server, ev->param.conn.responder_resources == 2);
	fill(data, sizeof(data), 2);
	param.private_data = data;
	param.private_data_len = sizeof(data);
	MUST(server, !rdma_accept(id, &param));
	MUST(server, id->event && id->event->event == RDMA_CM_EVENT_ESTABLISHED);
	sem_post(&server->joined);
	MUST(server, !rdma_disconnect(id));
	MUST(server, id->event && id->event->event == RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(id);
	return 0;
}

TEST(private_data)
{
	struct server server;
	struct rdma_cm_id *id;
	uint8_t data[40];

	ASSERT_EQ(0, start_server(&server, &qp_attr, answer_private_data));
	ASSERT_EQ(0, create_ep(&id, 0, server.listen, &qp_attr));
	fill(data, sizeof(data), 1);
	ASSERT_EQ(0, connect_with(id, data, sizeof(data)));
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_ESTABLISHED, id->event->event);
	ASSERT_LE(60, id->event->param.conn.private_data_len);
	EXPECT_TRUE(filled(id->event->param.conn.private_data, 60, 2));
	ASSERT_EQ(0, joined(&server));
	EXPECT_EQ(0, rdma_disconnect(id));
	rdma_destroy_ep(id);
	ASSERT_SERVED(&server);
}

static int answer_reject(struct server *server, struct rdma_cm_id *id)
{
	static const char why[] = "not today";

	MUST(server, !rdma_reject(id, why, sizeof(why)));
	rdma_destroy_ep(id);
	return 0;
}

TEST(rejected)
{
	struct server server;
	struct rdma_cm_id *id;

	ASSERT_EQ(0, start_server(&server, &qp_attr, answer_reject));
	ASSERT_EQ(0, create_ep(&id, 0, server.listen, &qp_attr));
	EXPECT_ERRNO(ECONNREFUSED, connect_with(id, NULL, 0));
	/* The event has the reason. */
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED, id->event->event);
	ASSERT_LE(10, id->event->param.conn.private_data_len);
	EXPECT_STREQ("not today", (char *)id->event->param.conn.private_data);
	rdma_destroy_ep(id);
	ASSERT_SERVED(&server);
}

TEST(nobody_listens)
{
	struct rdma_cm_id *listen, *id;

	ASSERT_EQ(0, create_ep(&listen, RAI_PASSIVE, NULL, NULL));
	ASSERT_EQ(0, create_ep(&id, 0, listen, &qp_attr));
	rdma_destroy_ep(listen);
	EXPECT_ERRNO(ECONNREFUSED, connect_with(id, NULL, 0));
	rdma_destroy_ep(id);
}

#define HANG_UPS	30
#define CALLERS		8

/* Connect and hang up, again and again, each time as soon as the server has accepted. */
static void *hang_up(void *arg)
{
	struct rdma_cm_id *listen = arg, *id;
	int n = 0, tries;

	for (tries = 0; n < HANG_UPS; tries++) {
		if (tries > 10 * HANG_UPS)
			return "the server does not accept";
		if (create_ep(&id, 0, listen, &qp_attr))
			return "create_ep";
		if (!connect_with(id, NULL, 0)) {
			rdma_disconnect(id);
			n++;
		}
		rdma_destroy_ep(id);
	}
	return NULL;
}

/* rdma_accept() succeeds, even if its event says that the client has hung up since. */
static int answer_who_hangs_up(struct server *server, struct rdma_cm_id *id)
{
	MUST(server, !rdma_accept(id, NULL));
	MUST(server, id->event);
	MUST(server, id->event->event == RDMA_CM_EVENT_ESTABLISHED ||
		     id->event->event == RDMA_CM_EVENT_DISCONNECTED);
	MUST(server, !rdma_disconnect(id));
	rdma_destroy_ep(id);
	return 0;
}

TEST(clients_that_hang_up)
{
	pthread_t threads[CALLERS];
	struct server server;
	void *failed;
	int i;

	ASSERT_EQ(0, start_server_for(HANG_UPS * CALLERS, &server, &qp_attr,
				      answer_who_hangs_up));
	for (i = 0; i < CALLERS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, hang_up, server.listen));
	for (i = 0; i < CALLERS; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], &failed));
		EXPECT_EQ(NULL, failed) TH_LOG("%s", (char *)failed);
	}
	ASSERT_SERVED(&server);
}

/* 203.0.113.0/24 is reserved for documentation. */
TEST(no_such_host)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons(7471),
		.sin_addr.s_addr = inet_addr("203.0.113.77"),
	};
	struct rdma_cm_id *id;

	ASSERT_EQ(0, rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	errno = 0;
	if (!rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 200)) {
		EXPECT_EQ(0, rdma_destroy_id(id));
		SKIP(return, "there is a route to 203.0.113.77");
	}
	EXPECT_TRUE(errno == ENODEV || errno == ENETUNREACH ||
		    errno == EHOSTUNREACH || errno == ETIMEDOUT)
		TH_LOG("errno: %s", strerror(errno));
	EXPECT_EQ(0, rdma_destroy_id(id));
}

/*
 * There are no attributes of queue pairs, so the program creates them itself.
 */
static int answer_with_own_qp(struct server *server, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = qp_attr;

	MUST(server, !id->qp);
	MUST(server, !rdma_create_qp(id, NULL, &attr));
	return answer_echo(server, id);
}

TEST(own_queue_pairs)
{
	struct ibv_qp_init_attr attr = qp_attr;
	struct server server;
	struct rdma_cm_id *id;

	ASSERT_EQ(0, start_server(&server, NULL, answer_with_own_qp));
	ASSERT_EQ(0, create_ep(&id, 0, server.listen, NULL));
	EXPECT_EQ(NULL, id->qp);
	ASSERT_EQ(0, rdma_create_qp(id, NULL, &attr));
	EXPECT_EQ(0, echo(id, 1));
	rdma_destroy_ep(id);
	ASSERT_SERVED(&server);
}

/* The server disconnects; the client's calls must return. */
static int answer_hangs_up(struct server *server, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = conn_param;

	MUST(server, !rdma_accept(id, &param));
	sem_post(&server->joined);
	MUST(server, !rdma_disconnect(id));
	rdma_destroy_ep(id);
	return 0;
}

TEST(server_hangs_up)
{
	struct server server;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	char buf[10];

	ASSERT_EQ(0, start_server(&server, &qp_attr, answer_hangs_up));
	ASSERT_EQ(0, create_ep(&id, 0, server.listen, &qp_attr));
	mr = rdma_reg_msgs(id, buf, sizeof(buf));
	ASSERT_NE(NULL, mr);
	ASSERT_EQ(0, rdma_post_recv(id, CONTEXT, buf, sizeof(buf), mr));
	ASSERT_EQ(0, connect_with(id, NULL, 0));
	ASSERT_EQ(0, joined(&server));
	EXPECT_EQ(0, rdma_disconnect(id));
	ASSERT_EQ(1, rdma_get_recv_comp(id, &wc));
	EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, wc.status);
	EXPECT_EQ(addr64(CONTEXT), wc.wr_id);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	rdma_destroy_ep(id);
	ASSERT_SERVED(&server);
}

/* rdma_migrate_id() to a channel makes an id asynchronous. */
TEST(migrate_to_a_channel)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_conn_param param = conn_param;
	struct server server;
	struct rdma_cm_id *id;
	struct event ev;

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, start_server(&server, &qp_attr, answer_hangs_up));
	ASSERT_EQ(0, create_ep(&id, 0, server.listen, &qp_attr));
	ASSERT_EQ(0, rdma_migrate_id(id, channel));
	EXPECT_EQ(channel, id->channel);
	ASSERT_EQ(0, rdma_connect(id, &param));
	ASSERT_EQ(0, expect_event(channel, RDMA_CM_EVENT_ESTABLISHED, &ev));
	ASSERT_EQ(0, expect_event(channel, RDMA_CM_EVENT_DISCONNECTED, &ev));
	EXPECT_EQ(0, rdma_disconnect(id));
	ASSERT_SERVED(&server);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
}

/* rdma_migrate_id() without a channel makes an id synchronous. */
TEST(migrate_to_no_channel)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	set_port(&addr, htons(7471));
	ASSERT_EQ(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_migrate_id(id, NULL));
	EXPECT_NE(NULL, id->channel);
	EXPECT_NE(channel, id->channel);
	EXPECT_ERRNO(EINVAL, rdma_migrate_id(id, NULL));
	ASSERT_EQ(0, rdma_resolve_addr(id, NULL, (struct sockaddr *)&addr, 10000));
	EXPECT_NE(NULL, id->verbs);
	EXPECT_TRUE(no_event(channel));
	EXPECT_EQ(0, rdma_migrate_id(id, channel));
	EXPECT_EQ(channel, id->channel);
	EXPECT_EQ(0, rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void nothing(int sig)
{
	(void)sig;
}

TEST(get_request_interrupted)
{
	struct sigaction action = { .sa_handler = nothing };
	struct itimerval timer = {
		.it_value.tv_usec = 50 * 1000, .it_interval.tv_usec = 50 * 1000,
	};
	struct rdma_cm_id *listen, *id;

	ASSERT_EQ(0, create_ep(&listen, RAI_PASSIVE, NULL, &qp_attr));
	ASSERT_EQ(0, rdma_listen(listen, 1));
	ASSERT_EQ(0, sigaction(SIGALRM, &action, NULL));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &timer, NULL));
	EXPECT_ERRNO(EINTR, rdma_get_request(listen, &id));
	memset(&timer, 0, sizeof(timer));
	ASSERT_EQ(0, setitimer(ITIMER_REAL, &timer, NULL));
	rdma_destroy_ep(listen);
}

/* rdma_get_request(3) is for listening ids without a channel. */
TEST(get_request_elsewhere)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id, *got;

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_ERRNO(EINVAL, rdma_get_request(id, &got));
	EXPECT_EQ(0, rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST_HARNESS_MAIN
