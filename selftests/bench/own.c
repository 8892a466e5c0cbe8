// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections of a program that keeps what they need for the next.  With api=own
 * each end has a queue pair of the program's own, which is moved to RESET after
 * each connection; with api=cqs it keeps its completion queue and channel, and
 * makes a queue pair for each id.  With conns > 1 the program has so many more
 * queue pairs, which are idle.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define MIN_OPS		5

/* What an end keeps, and the queue pair of this connection. */
struct own_end {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *kept, *qp;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
};

static struct own_end client, server;
static struct rdma_cm_id *listener;
static struct rdma_addrinfo *info;
static sem_t delivered, acked, down;
static uint64_t delivered_at;

static struct ibv_qp_init_attr end_attr(const struct own_end *end)
{
	struct ibv_qp_init_attr attr = queue_attr();

	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	attr.cap.max_recv_wr = 1;
	return attr;
}

/* The program's end destroys them. */
static void make_idle(struct own_end *end)
{
	struct ibv_qp_init_attr attr = end_attr(end);
	unsigned long i;

	for (i = 1; i < config.conns; i++)
		must(ibv_create_qp(end->pd, &attr));
}

static void open_end(struct own_end *end, struct world *w, struct ibv_mr *mr)
{
	struct ibv_qp_init_attr attr;

	end->mr = mr;
	end->pd = w->pd;
	end->channel = ibv_create_comp_channel(w->verbs);
	must(end->channel);
	end->cq = ibv_create_cq(w->verbs, 2 * config.depth, NULL, end->channel, 0);
	must(end->cq);
	if (strcmp(config.api, "own"))
		return;
	make_idle(end);
	attr = end_attr(end);
	end->kept = ibv_create_qp(w->pd, &attr);
	must(end->kept);
}

static void move(struct own_end *end, struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	/* The library moves queue pairs of ids. */
	if (!end->kept)
		return;
	must(!rdma_init_qp_attr(id, &attr, &mask));
	must(!ibv_modify_qp(end->kept, &attr, mask));
}

/* Give the id a queue pair, and prepare the kept one for receives. */
static void begin(struct own_end *end, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = end_attr(end);

	if (!end->kept)
		must(!rdma_create_qp(id, end->pd, &attr));
	end->qp = end->kept ? end->kept : id->qp;
	move(end, id, IBV_QPS_INIT);
}

/* Have nothing of the connection in the kept queue pair, or destroy the id's. */
static void end(struct own_end *end, struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	rdma_disconnect(id);
	if (end->kept)
		must(!ibv_modify_qp(end->kept, &attr, IBV_QP_STATE));
	else
		rdma_destroy_qp(id);
	must(!rdma_destroy_id(id));
}

/* Wait for the completion of the only work request. */
static void wait_end(struct own_end *end)
{
	struct ibv_cq *cq;
	void *context;
	struct ibv_wc wc;
	int n;

	for (;;) {
		must(!ibv_req_notify_cq(end->cq, 0));
		n = ibv_poll_cq(end->cq, 1, &wc);
		must(n >= 0);
		if (n)
			break;
		must(!ibv_get_cq_event(end->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	check_wc(&wc);
}

static void serve_one(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)server.mr->addr, .length = 1,
		.lkey = server.mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct rdma_conn_param param = {};
	struct rdma_cm_id *id;

	must(!rdma_get_request(listener, &id));
	begin(&server, id);
	param.qp_num = server.qp->qp_num;
	must(!ibv_post_recv(server.qp, &wr, &bad));
	move(&server, id, IBV_QPS_RTR);
	move(&server, id, IBV_QPS_RTS);
	must(!rdma_accept(id, &param));
	wait_end(&server);
	delivered_at = now_ns();
	sem_post(&delivered);
	/* Once disconnected, the device would not acknowledge the send. */
	must(!sem_wait(&acked));
	end(&server, id);
	sem_post(&down);
}

static void *serve(void *arg)
{
	for (;;)
		serve_one();
	return arg;
}

static void send_byte(void)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)client.mr->addr, .length = 1,
		.lkey = client.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	must(!ibv_post_send(client.qp, &wr, &bad));
}

static void connect_one(struct samples *up, struct samples *ended)
{
	struct rdma_conn_param param = {
		.retry_count = 7, .rnr_retry_count = 7,
	};
	uint64_t before = now_ns();
	struct rdma_cm_id *id;

	must(!rdma_create_ep(&id, info, NULL, NULL));
	begin(&client, id);
	param.qp_num = client.qp->qp_num;
	if (rdma_connect(id, &param))
		die("rdma_connect: %m, event status %d", id->event ? id->event->status : 0);
	move(&client, id, IBV_QPS_RTR);
	move(&client, id, IBV_QPS_RTS);
	if (client.kept)
		must(!rdma_establish(id));
	send_byte();
	must(!sem_wait(&delivered));
	wait_end(&client);
	sem_post(&acked);
	samples_add(up, delivered_at - before);

	before = now_ns();
	end(&client, id);
	must(!sem_wait(&down));
	samples_add(ended, now_ns() - before);
}

void connect_own(struct figures *f)
{
	pthread_t thread;
	struct world w;
	char port[16];

	if (with_peer())
		die("api=%s: without peer only", config.api);
	world_open(&w);
	open_end(&client, &w, w.mr[0]);
	open_end(&server, &w, w.mr[1]);
	sem_init(&delivered, 0, 0);
	sem_init(&acked, 0, 0);
	sem_init(&down, 0, 0);
	info = get_info("0", RAI_PASSIVE);
	must(!rdma_create_ep(&listener, info, NULL, NULL));
	rdma_freeaddrinfo(info);
	must(!rdma_listen(listener, 16));
	must(!pthread_create(&thread, NULL, serve, NULL));
	snprintf(port, sizeof(port), "%u", be16toh(rdma_get_src_port(listener)));
	info = get_info(port, 0);
	measure_connects(f, connect_one, 2, 1, MIN_OPS);
	rdma_freeaddrinfo(info);
}
