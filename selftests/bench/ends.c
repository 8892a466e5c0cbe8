// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connections of the program to itself, all of them driven by one thread. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define RESOLVE_MS	5000
#define MAX_SLOTS	64

bool with_receives(void)
{
	return !strcmp(config.op, "send");
}

static enum ibv_wr_opcode opcode(void)
{
	if (with_receives())
		return IBV_WR_SEND;
	if (!strcmp(config.op, "read"))
		return IBV_WR_RDMA_READ;
	if (!strcmp(config.op, "write"))
		return IBV_WR_RDMA_WRITE;
	die("op=%s: not known", config.op);
}

/*
 * There are up to depth receives for the sends to come and one for each of the
 * depth sends under way.
 */
struct ibv_qp_init_attr queue_attr(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = {
			.max_send_wr = config.depth,
			.max_recv_wr = with_receives() ? 2 * config.depth : 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
}

static struct rdma_conn_param conn_param(struct conn *conn)
{
	return (struct rdma_conn_param) {
		.private_data = &conn->index,
		.private_data_len = sizeof(conn->index),
		.initiator_depth = 16, .responder_resources = 16,
		.retry_count = 7, .rnr_retry_count = 7,
	};
}

void *allocate(size_t size)
{
	void *buf = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(buf != MAP_FAILED);
	return buf;
}

void world_open(struct world *w)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&w->addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&w->addr;
	int i;

	memset(w, 0, sizeof(*w));
	if (inet_pton(AF_INET, config.addr, &in->sin_addr) == 1)
		in->sin_family = AF_INET;
	else if (inet_pton(AF_INET6, config.addr, &in6->sin6_addr) == 1)
		in6->sin6_family = AF_INET6;
	else
		die("addr=%s: no address", config.addr);
	w->channel = rdma_create_event_channel();
	must(w->channel);
	must(!rdma_create_id(w->channel, &w->listen, NULL, RDMA_PS_TCP));
	must(!rdma_bind_addr(w->listen, (struct sockaddr *)&w->addr));
	in->sin_port = rdma_get_src_port(w->listen);
	w->verbs = w->listen->verbs;
	if (!w->verbs)
		die("addr=%s: not of an RDMA device", config.addr);
	must(!rdma_listen(w->listen, 1024));
	w->pd = ibv_alloc_pd(w->verbs);
	must(w->pd);

	/* A line of its own for each connection, while that is not too much. */
	w->slot = (config.size + 63) & ~63ul;
	if (!w->slot)
		w->slot = 64;
	w->slots = config.conns < MAX_SLOTS ? config.conns : MAX_SLOTS;
	if (w->slot > 65536)
		w->slots = 1;
	for (i = 0; i < 2; i++) {
		w->buf[i] = allocate(w->slot * w->slots);
		w->mr[i] = ibv_reg_mr(w->pd, w->buf[i], w->slot * w->slots,
				      IBV_ACCESS_LOCAL_WRITE |
				      IBV_ACCESS_REMOTE_WRITE |
				      IBV_ACCESS_REMOTE_READ);
		must(w->mr[i]);
	}
	w->conns = calloc(config.conns, sizeof(*w->conns));
	must(w->conns);
}

void world_close(struct world *w)
{
	int i;

	free(w->conns);
	for (i = 0; i < 2; i++) {
		must(!ibv_dereg_mr(w->mr[i]));
		munmap(w->buf[i], w->slot * w->slots);
	}
	must(!rdma_destroy_id(w->listen));
	must(!ibv_dealloc_pd(w->pd));
	rdma_destroy_event_channel(w->channel);
}

void conn_prepare(struct world *w, struct conn *conn)
{
	size_t offset = conn->index % w->slots * w->slot;
	unsigned long i;

	conn->sge = (struct ibv_sge) {
		.addr = (uintptr_t)(w->buf[0] + offset),
		.length = config.size, .lkey = w->mr[0]->lkey,
	};
	conn->recv_sge = (struct ibv_sge) {
		.addr = (uintptr_t)(w->buf[1] + offset),
		.length = config.size ? config.size : 1,
		.lkey = w->mr[1]->lkey,
	};
	for (i = 0; i < config.batch; i++) {
		bool last = i == config.batch - 1;

		conn->wr[i] = (struct ibv_send_wr) {
			/* How many have completed with this one. */
			.wr_id = config.last ? config.batch : 1,
			.next = last ? NULL : &conn->wr[i + 1],
			.sg_list = &conn->sge, .num_sge = 1,
			.opcode = opcode(),
			.send_flags = config.last && !last ?
				      0 : IBV_SEND_SIGNALED,
			.wr.rdma.remote_addr = conn->recv_sge.addr,
			.wr.rdma.rkey = w->mr[1]->rkey,
		};
		conn->recv_wr[i] = (struct ibv_recv_wr) {
			.next = last ? NULL : &conn->recv_wr[i + 1],
			.sg_list = &conn->recv_sge, .num_sge = 1,
		};
	}
}

void conn_receive(struct conn *conn, unsigned long count)
{
	struct ibv_recv_wr *bad;

	if (!with_receives() || conn->recvs >= count)
		return;
	must(!ibv_post_recv(conn->server->qp, conn->recv_wr, &bad));
	conn->recvs += config.batch;
}

void conn_post(struct conn *conn, unsigned long count)
{
	struct ibv_send_wr *bad;

	conn_receive(conn, count);
	if (with_receives())
		conn->recvs -= count;
	conn->pending += count;
	if (ibv_post_send(conn->client->qp, conn->wr, &bad))
		die("ibv_post_send: %m");
}

void check_wc(const struct ibv_wc *wc)
{
	if (wc->status)
		die("a work request failed: %s", ibv_wc_status_str(wc->status));
}

void conn_drain(struct conn *conn)
{
	struct ibv_wc wc[16];
	int i, n;

	do {
		n = ibv_poll_cq(conn->server->recv_cq, 16, wc);
		must(n >= 0);
		for (i = 0; i < n; i++)
			check_wc(&wc[i]);
	} while (n == 16);
}

static int poll_one(struct ibv_cq *cq, struct ibv_wc *wc)
{
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
	} while (!n);
	return n;
}

void conn_wait(struct conn *conn)
{
	struct ibv_wc wc;
	int n;

	if (config.mode[0] == 's')
		n = rdma_get_send_comp(conn->client, &wc);
	else
		n = poll_one(conn->client->send_cq, &wc);
	must(n == 1);
	check_wc(&wc);
	conn->pending -= wc.wr_id;
}

static void make_qp(struct world *w, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = queue_attr();

	must(!rdma_create_qp(id, w->pd, &attr));
}

/* The other end's first byte comes without waiting for this one's event. */
static void answer(struct world *w, struct rdma_cm_event *event,
		   bool first_byte)
{
	struct rdma_conn_param param;
	struct conn *conn;
	uint32_t index;

	must(event->param.conn.private_data_len >= sizeof(index));
	memcpy(&index, event->param.conn.private_data, sizeof(index));
	must(index < config.conns);
	conn = &w->conns[index];
	conn->server = event->id;
	conn->server->context = conn;
	make_qp(w, conn->server);
	if (first_byte) {
		struct ibv_recv_wr wr = {
			.sg_list = &conn->recv_sge, .num_sge = 1,
		}, *bad;

		must(!ibv_post_recv(conn->server->qp, &wr, &bad));
	}
	param = conn_param(conn);
	must(!rdma_accept(conn->server, &param));
}

static void send_byte(struct conn *conn)
{
	struct ibv_sge sge = conn->sge;
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	sge.length = 1;
	must(!ibv_post_send(conn->client->qp, &wr, &bad));
	conn->pending++;
}

/* Takes one event, and does what follows from it. */
static void step(struct world *w, bool first_byte)
{
	struct rdma_cm_event *event;
	struct rdma_conn_param param;
	struct conn *conn;

	must(!rdma_get_cm_event(w->channel, &event));
	conn = event->id->context;
	if (event->status)
		die("%s: %d", rdma_event_str(event->event), event->status);
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		must(!rdma_resolve_route(conn->client, RESOLVE_MS));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(w, conn->client);
		param = conn_param(conn);
		must(!rdma_connect(conn->client, &param));
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		answer(w, event, first_byte);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		conn->established++;
		if (first_byte && event->id == conn->client)
			send_byte(conn);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		conn->down++;
		/* Without an answer the other end would ask again. */
		if (event->id == conn->server)
			must(!rdma_disconnect(conn->server));
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		die("%s, which was not expected", rdma_event_str(event->event));
	}
	rdma_ack_cm_event(event);
}

static void begin(struct world *w, struct conn *conn, uint32_t index)
{
	conn->index = index;
	conn_prepare(w, conn);
	must(!rdma_create_id(w->channel, &conn->client, conn, RDMA_PS_TCP));
	must(!rdma_resolve_addr(conn->client, NULL,
				(struct sockaddr *)&w->addr, RESOLVE_MS));
}

static void receive_byte(struct conn *conn)
{
	struct ibv_wc wc;

	must(poll_one(conn->server->recv_cq, &wc) == 1);
	check_wc(&wc);
	conn_wait(conn);
}

void world_connect(struct world *w, unsigned long count, unsigned long window,
		   bool first_byte)
{
	unsigned long begun, done, i;

	for (begun = done = 0; done < count;) {
		for (; begun < count && begun - done < window; begun++)
			begin(w, &w->conns[begun], begun);
		step(w, first_byte);
		while (done < begun && w->conns[done].established == 2) {
			if (first_byte)
				receive_byte(&w->conns[done]);
			done++;
		}
	}
	w->nconns = count;
	for (i = 0; i < count; i++)
		w->conns[i].pending = 0;
}

void world_disconnect(struct world *w)
{
	unsigned long i;

	for (i = 0; i < w->nconns; i++)
		must(!rdma_disconnect(w->conns[i].client));
	for (i = 0; i < w->nconns; i++) {
		struct conn *conn = &w->conns[i];

		while (conn->down < 2)
			step(w, false);
		rdma_destroy_qp(conn->client);
		rdma_destroy_qp(conn->server);
		must(!rdma_destroy_id(conn->client));
		must(!rdma_destroy_id(conn->server));
	}
	memset(w->conns, 0, w->nconns * sizeof(*w->conns));
	w->nconns = 0;
}
