// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The peer of other programs' connections.  One thread accepts them, sends the
 * address of its memory, posts the requested receives, and posts them again
 * when they are used.  A failing client does not end it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "bench.h"

#define BACKLOG		1024
#define MAX_SIZE	(1ull << 30)
#define MAX_RECVS	8192
#define MAX_REGIONS	64
#define RNR_10_US	1	/* a value of ibv_qp_attr.min_rnr_timer */

struct served {
	LIST_ENTRY(served) entry;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_sge sge;	/* where messages arrive */
	uint32_t recvs;
};

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;
static struct ibv_pd *pd;
static struct ibv_comp_channel *completions;
static LIST_HEAD(, served) all_served = LIST_HEAD_INITIALIZER(all_served);
/* Memory shared by the connections with messages of one size. */
static struct region {
	size_t slot;
	struct ibv_mr *mr;
} regions[MAX_REGIONS];
static size_t nregions;

static void open_listener(void)
{
	struct sockaddr_storage addr;

	if (!parse_addr(config.addr, config.port, &addr))
		die("addr=%s: no address", config.addr);
	channel = rdma_create_event_channel();
	must(channel);
	must(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	if (rdma_bind_addr(listener, (struct sockaddr *)&addr))
		die("addr=%s port=%lu: %m", config.addr, config.port);
	if (!listener->verbs)
		die("addr=%s: not of an RDMA device", config.addr);
	pd = ibv_alloc_pd(listener->verbs);
	must(pd);
	completions = ibv_create_comp_channel(listener->verbs);
	must(completions);
	must(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
	must(!fcntl(completions->fd, F_SETFL, O_NONBLOCK));
	must(!rdma_listen(listener, BACKLOG));
}

static struct region *find_region(size_t slot)
{
	struct region *region;

	for (region = regions; region < &regions[nregions]; region++)
		if (region->slot == slot)
			return region;
	if (nregions == MAX_REGIONS)
		return NULL;
	region->slot = slot;
	region->mr = register_buffer(pd, slot * slot_count(slot, SIZE_MAX));
	nregions++;
	return region;
}

/* Post all receives, or as many as have completed. */
static int post_receives(struct served *served, uint32_t count)
{
	struct ibv_recv_wr wr[MAX_BATCH], *bad;
	uint32_t i, n;

	for (; count; count -= n) {
		n = count < MAX_BATCH ? count : MAX_BATCH;
		for (i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr) {
				.next = i == n - 1 ? NULL : &wr[i + 1],
				.sg_list = &served->sge, .num_sge = 1,
			};
		if (ibv_post_recv(served->id->qp, wr, &bad))
			return -1;
	}
	return 0;
}

/* Request the next event first, then poll: no completion is missed. */
static void take(struct served *served)
{
	struct ibv_wc wc[MAX_BATCH];
	int i, n, good;

	must(!ibv_req_notify_cq(served->cq, 0));
	do {
		n = ibv_poll_cq(served->cq, MAX_BATCH, wc);
		must(n >= 0);
		for (i = good = 0; i < n; i++)
			good += !wc[i].status;
		/* After an error the connection ends, so stop. */
		if (post_receives(served, good))
			return;
	} while (n);
}

static int make_qp(struct served *served)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = served->recvs ? served->recvs : 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};

	served->cq = ibv_create_cq(listener->verbs, attr.cap.max_recv_wr, served, completions, 0);
	if (!served->cq)
		return -1;
	attr.send_cq = served->cq;
	attr.recv_cq = served->cq;
	if (ibv_req_notify_cq(served->cq, 0))
		return -1;
	return rdma_create_qp(served->id, pd, &attr);
}

/* Keep the id, whose event may not be acknowledged yet. */
static void forget(struct served *served)
{
	if (served->id->qp)
		rdma_destroy_qp(served->id);
	if (served->cq)
		must(!ibv_destroy_cq(served->cq));
	LIST_REMOVE(served, entry);
	free(served);
}

static int accept_request(struct served *served, const struct request *request,
			  const struct rdma_conn_param *wanted)
{
	size_t slot = slot_size(be64toh(request->size));
	struct region *region = find_region(slot);
	size_t number = be32toh(request->index) % slot_count(slot, SIZE_MAX);
	struct rdma_conn_param param;
	struct answer answer;

	if (!region) {
		errno = ENOSPC;
		return -1;
	}
	served->recvs = be32toh(request->recvs);
	served->sge = (struct ibv_sge) {
		.addr = (uintptr_t)region->mr->addr + number * slot,
		.length = slot, .lkey = region->mr->lkey,
	};
	answer = (struct answer) {
		.addr = htobe64(served->sge.addr),
		.rkey = htobe32(region->mr->rkey),
	};
	if (make_qp(served) || post_receives(served, served->recvs))
		return -1;
	param = conn_param(&answer, sizeof(answer));
	param.initiator_depth = wanted->initiator_depth;
	param.responder_resources = wanted->responder_resources;
	return rdma_accept(served->id, &param);
}

/* Return false if the id must be destroyed. */
static bool serve_request(struct rdma_cm_event *event)
{
	struct request request;
	struct served *served;

	if (event->param.conn.private_data_len < sizeof(request))
		goto reject;
	memcpy(&request, event->param.conn.private_data, sizeof(request));
	if (be64toh(request.size) > MAX_SIZE || be32toh(request.recvs) > MAX_RECVS)
		goto reject;
	served = calloc(1, sizeof(*served));
	must(served);
	served->id = event->id;
	served->id->context = served;
	LIST_INSERT_HEAD(&all_served, served, entry);
	if (!accept_request(served, &request, &event->param.conn))
		return true;
	fprintf(stderr, "bench: serve: a connection is refused: %m\n");
	forget(served);
reject:
	rdma_reject(event->id, NULL, 0);
	return false;
}

/*
 * A sender that finds no receive should try again soon, instead of after 655
 * ms.  iWARP has no such timer.
 */
static void established(struct served *served)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = RNR_10_US };

	if (served->recvs)
		ibv_modify_qp(served->id->qp, &attr, IBV_QP_MIN_RNR_TIMER);
}

static void step(void)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	bool keep = true;

	if (rdma_get_cm_event(channel, &event)) {
		must(errno == EAGAIN || errno == EINTR);
		return;
	}
	id = event->id;
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		keep = serve_request(event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(id->context);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		die("the device is gone");
	default:
		if (id == listener)
			die("%s, which was not expected", rdma_event_str(event->event));
		/* The connection has ended, or was never established. */
		rdma_disconnect(id);
		forget(id->context);
		keep = false;
	}
	rdma_ack_cm_event(event);
	if (!keep)
		must(!rdma_destroy_id(id));
}

static void complete(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(completions, &cq, &context)) {
		must(errno == EAGAIN || errno == EINTR);
		return;
	}
	ibv_ack_cq_events(cq, 1);
	take(context);
}

static void close_listener(void)
{
	while (!LIST_EMPTY(&all_served)) {
		struct rdma_cm_id *id = LIST_FIRST(&all_served)->id;

		rdma_disconnect(id);
		forget(id->context);
		must(!rdma_destroy_id(id));
	}
	must(!rdma_destroy_id(listener));
	while (nregions) {
		struct ibv_mr *mr = regions[--nregions].mr;
		size_t size = mr->length;
		void *buf = mr->addr;

		must(!ibv_dereg_mr(mr));
		munmap(buf, size);
	}
	must(!ibv_destroy_comp_channel(completions));
	must(!ibv_dealloc_pd(pd));
	rdma_destroy_event_channel(channel);
}

static int open_signals(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	must(!sigprocmask(SIG_BLOCK, &signals, NULL));
	fd = signalfd(-1, &signals, 0);
	must(fd >= 0);
	return fd;
}

void run_serve(struct figures *f)
{
	struct pollfd fds[3] = {
		{ .events = POLLIN }, { .events = POLLIN }, { .events = POLLIN },
	};

	(void)f;
	fds[0].fd = open_signals();
	open_listener();
	fds[1].fd = channel->fd;
	fds[2].fd = completions->fd;
	printf("listening on %s, port %lu\n", config.addr, config.port);
	fflush(stdout);
	while (!fds[0].revents) {
		must(poll(fds, 3, -1) > 0);
		if (fds[2].revents)
			complete();
		if (fds[1].revents)
			step();
	}
	close_listener();
	close(fds[0].fd);
}
