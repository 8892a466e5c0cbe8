// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of the program to itself or to a peer, driven by one thread.
 */
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

/* Up to depth receives for later sends, and depth for sends in progress. */
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

struct rdma_conn_param conn_param(const void *data, size_t size)
{
	return (struct rdma_conn_param) {
		.private_data = data, .private_data_len = size,
		.initiator_depth = 16, .responder_resources = 16,
		.retry_count = 7, .rnr_retry_count = 7,
	};
}

struct request conn_request(uint32_t index, bool first_byte)
{
	unsigned long recvs = with_receives() ? 2 * config.depth : first_byte;

	return (struct request) {
		.size = htobe64(config.size), .index = htobe32(index),
		.recvs = htobe32(recvs),
	};
}

void *allocate(size_t size)
{
	void *buf = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	must(buf != MAP_FAILED);
	return buf;
}

bool parse_addr(const char *text, uint16_t port, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		addr->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		addr->ss_family = AF_INET6;
	else
		return false;
	/* The port has the same offset in both structs. */
	in->sin_port = htobe16(port);
	return true;
}

static void listen_here(struct world *w)
{
	if (!parse_addr(config.addr, 0, &w->addr))
		die("addr=%s: no address", config.addr);
	must(!rdma_bind_addr(w->id, (struct sockaddr *)&w->addr));
	((struct sockaddr_in *)&w->addr)->sin_port = rdma_get_src_port(w->id);
	if (!w->id->verbs)
		die("addr=%s: not of an RDMA device", config.addr);
	must(!rdma_listen(w->id, 1024));
}

static void look_for_peer(struct world *w)
{
	struct rdma_cm_event *event;

	if (!parse_addr(config.peer, config.port, &w->addr))
		die("peer=%s: no address", config.peer);
	must(!rdma_resolve_addr(w->id, NULL, (struct sockaddr *)&w->addr, RESOLVE_MS));
	must(!rdma_get_cm_event(w->channel, &event));
	if (event->event != RDMA_CM_EVENT_ADDR_RESOLVED)
		die("peer=%s: %s: %d", config.peer, rdma_event_str(event->event), event->status);
	rdma_ack_cm_event(event);
}

/* Each connection has its own cache lines, up to a limit of memory. */
size_t slot_size(size_t size)
{
	return size ? (size + 63) & ~63ul : 64;
}

size_t slot_count(size_t slot, unsigned long conns)
{
	if (slot > 65536)
		return 1;
	return conns < MAX_SLOTS ? conns : MAX_SLOTS;
}

struct ibv_mr *register_buffer(struct ibv_pd *pd, size_t size)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, allocate(size), size,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				       IBV_ACCESS_REMOTE_READ);

	must(mr);
	return mr;
}

void world_open(struct world *w)
{
	int i;

	memset(w, 0, sizeof(*w));
	w->channel = rdma_create_event_channel();
	must(w->channel);
	must(!rdma_create_id(w->channel, &w->id, NULL, RDMA_PS_TCP));
	if (with_peer())
		look_for_peer(w);
	else
		listen_here(w);
	w->verbs = w->id->verbs;
	w->pd = ibv_alloc_pd(w->verbs);
	must(w->pd);

	w->slot = slot_size(config.size);
	w->slots = slot_count(w->slot, config.conns);
	for (i = 0; i < 2; i++) {
		w->mr[i] = register_buffer(w->pd, w->slot * w->slots);
		w->buf[i] = w->mr[i]->addr;
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
	must(!rdma_destroy_id(w->id));
	must(!ibv_dealloc_pd(w->pd));
	rdma_destroy_event_channel(w->channel);
}

void conn_prepare(struct world *w, struct conn *conn)
{
	size_t offset = conn->index % w->slots * w->slot;
	unsigned long i;

	conn->sge = (struct ibv_sge) {
		.addr = (uintptr_t)(w->buf[0] + offset),
		.length = config.size, .lkey = config.any ? 0 : w->mr[0]->lkey,
	};
	conn->recv_sge = (struct ibv_sge) {
		.addr = (uintptr_t)(w->buf[1] + offset),
		.length = config.size ? config.size : 1,
		.lkey = w->mr[1]->lkey,
	};
	for (i = 0; i < config.batch; i++) {
		bool last = i == config.batch - 1;

		conn->wr[i] = (struct ibv_send_wr) {
			/* The requests that complete with this one. */
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

	/* A peer posts its receives itself. */
	if (!with_receives() || with_peer() || conn->recvs >= count)
		return;
	must(!ibv_post_recv(conn->server->qp, conn->recv_wr, &bad));
	conn->recvs += config.batch;
}

void conn_post(struct conn *conn, unsigned long count)
{
	struct ibv_send_wr *bad;

	conn_receive(conn, count);
	if (with_receives() && !with_peer())
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

	if (!with_receives() || with_peer())
		return;
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

void end_wait(struct rdma_cm_id *id)
{
	struct ibv_wc wc;
	int n;

	if (config.mode[0] == 's')
		n = rdma_get_recv_comp(id, &wc);
	else
		n = poll_one(id->recv_cq, &wc);
	must(n == 1);
	check_wc(&wc);
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

/* Accept; the first byte may arrive before this end's ESTABLISHED event. */
static void answer(struct world *w, struct rdma_cm_event *event, bool first_byte)
{
	struct rdma_conn_param param;
	struct request request;
	struct conn *conn;
	uint32_t index;

	must(event->param.conn.private_data_len >= sizeof(request));
	memcpy(&request, event->param.conn.private_data, sizeof(request));
	index = be32toh(request.index);
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
	param = conn_param(NULL, 0);
	must(!rdma_accept(conn->server, &param));
}

/* Take the address and the rkey of the peer's memory from its answer. */
static void learn(struct conn *conn, const struct rdma_cm_event *event)
{
	struct answer answer;
	unsigned long i;

	if (event->param.conn.private_data_len < sizeof(answer))
		die("peer=%s: not a server of this program", config.peer);
	memcpy(&answer, event->param.conn.private_data, sizeof(answer));
	for (i = 0; i < config.batch; i++) {
		conn->wr[i].wr.rdma.remote_addr = be64toh(answer.addr);
		conn->wr[i].wr.rdma.rkey = be32toh(answer.rkey);
	}
}

static void request(struct conn *conn, bool first_byte)
{
	struct request request = conn_request(conn->index, first_byte);
	struct rdma_conn_param param = conn_param(&request, sizeof(request));

	must(!rdma_connect(conn->client, &param));
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

/* Take one event and react to it. */
static void step(struct world *w, bool first_byte)
{
	struct rdma_cm_event *event;
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
		request(conn, first_byte);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		answer(w, event, first_byte);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		conn->established++;
		if (with_peer())
			learn(conn, event);
		if (first_byte && event->id == conn->client)
			send_byte(conn);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		conn->down++;
		/* Otherwise the other end repeats its request. */
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
	must(!rdma_resolve_addr(conn->client, NULL, (struct sockaddr *)&w->addr, RESOLVE_MS));
}

/* With a peer, the send's completion says that the byte arrived. */
static void receive_byte(struct conn *conn)
{
	struct ibv_wc wc;

	if (!with_peer()) {
		must(poll_one(conn->server->recv_cq, &wc) == 1);
		check_wc(&wc);
	}
	conn_wait(conn);
}

/* Return the number of a connection's ends in this program. */
static unsigned int ends(void)
{
	return with_peer() ? 1 : 2;
}

void world_connect(struct world *w, unsigned long count, unsigned long window, bool first_byte)
{
	unsigned long begun, done, i;

	for (begun = done = 0; done < count;) {
		for (; begun < count && begun - done < window; begun++)
			begin(w, &w->conns[begun], begun);
		step(w, first_byte);
		while (done < begun && w->conns[done].established == ends()) {
			if (first_byte)
				receive_byte(&w->conns[done]);
			done++;
		}
	}
	w->nconns = count;
	for (i = 0; i < count; i++)
		w->conns[i].pending = 0;
}

static void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	must(!rdma_destroy_id(id));
}

void world_disconnect(struct world *w)
{
	unsigned long i;

	for (i = 0; i < w->nconns; i++)
		must(!rdma_disconnect(w->conns[i].client));
	for (i = 0; i < w->nconns; i++) {
		struct conn *conn = &w->conns[i];

		while (conn->down < ends())
			step(w, false);
		destroy(conn->client);
		if (conn->server)
			destroy(conn->server);
	}
	memset(w->conns, 0, w->nconns * sizeof(*w->conns));
	w->nconns = 0;
}
