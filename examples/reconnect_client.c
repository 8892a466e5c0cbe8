// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A client of event_server that goes on when the server restarts: it connects
 * again, and asks once more what was not answered.  It keeps its memory and its
 * completion queue, and makes an id and a queue pair for each connection.
 *
 * Usage: reconnect_client SERVER [LINES [MS]]    100 lines, a pause after each
 */
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "lines.h"

#define PATIENCE 60		/* seconds until it gives a server up */

static struct ibv_comp_channel *completions;
static struct ibv_cq *cq;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char in[LINE];

/*
 * Returns the id of a connection.  A server that restarts refuses for a while.
 * Clients should not all try again at the same moments, so these are random.
 */
static struct rdma_cm_id *reach(struct rdma_addrinfo *info)
{
	struct ibv_qp_init_attr attr = lines_attr();
	time_t end = time(NULL) + PATIENCE;
	struct rdma_cm_id *id;

	attr.send_cq = attr.recv_cq = cq;
	for (;;) {
		if (!rdma_create_ep(&id, info, pd, &attr)) {
			if (!rdma_connect(id, &lines_param))
				return id;
			rdma_destroy_ep(id);
		}
		check(time(NULL) > end, "the server does not answer");
		usleep(10000 + random() % 40000);
	}
}

/*
 * Returns 1 with a completion of this connection, or 0 if the connection has
 * ended: the server's host says so in an event, and if that was lost, the
 * message that was sent fails.
 */
static int completion(struct rdma_cm_id *id, struct ibv_wc *wc)
{
	struct pollfd fds[2] = { { id->channel->fd, POLLIN, 0 },
				 { completions->fd, POLLIN, 0 } };

	for (;;) {
		/* The queue may have some of an earlier connection. */
		while (ibv_poll_cq(cq, 1, wc) > 0)
			if (wc->qp_num == id->qp->qp_num)
				return !wc->status;
		check(poll(fds, 2, -1) < 0, "poll");
		if (fds[0].revents)
			return 0;
		/* This asks for the next event, too, before the queue is polled. */
		check(next_completions(completions), "ibv_get_cq_event");
	}
}

/* Returns 1 if the line was answered, or 0 if the connection has ended. */
static int ask(struct rdma_cm_id *id, int number)
{
	char line[LINE] = {}, right[LINE];
	struct ibv_wc wc;

	snprintf(line, sizeof(line), "line %d", number);
	capitals(right, line);
	if (rdma_post_recv(id, in, in, LINE, mr) ||
	    rdma_post_send(id, NULL, line, LINE, NULL, IBV_SEND_INLINE))
		return 0;
	do {
		if (!completion(id, &wc))
			return 0;
	} while (wc.opcode != IBV_WC_RECV);
	expect(wc.byte_len == LINE && !memcmp(in, right, LINE), line);
	return 1;
}

/* Makes what the connections share, and an id that keeps the device open. */
static struct rdma_cm_id *open_device(struct rdma_addrinfo *info)
{
	struct rdma_cm_id *id;

	check(rdma_create_ep(&id, info, NULL, NULL), "rdma_create_ep");
	pd = ibv_alloc_pd(id->verbs);
	check(!pd, "ibv_alloc_pd");
	completions = ibv_create_comp_channel(id->verbs);
	check(!completions, "ibv_create_comp_channel");
	cq = ibv_create_cq(id->verbs, 3 * AHEAD, NULL, completions, 0);
	check(!cq || ibv_req_notify_cq(cq, 0), "ibv_create_cq");
	mr = ibv_reg_mr(pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	check(!mr, "ibv_reg_mr");
	return id;
}

static void leave(struct rdma_cm_id *id)
{
	rdma_disconnect(id);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	int lines, ms, done = 0;
	struct rdma_cm_id *device, *id = NULL;
	struct rdma_addrinfo *info;

	if (argc < 2) {
		fprintf(stderr, "usage: reconnect_client SERVER [LINES [MS]]\n");
		return 2;
	}
	lines = number(argv[2], 100);
	ms = number(argc > 3 ? argv[3] : NULL, 0);
	srandom(getpid());
	setlinebuf(stdout);
	info = address_of(argv[1], PORT);
	device = open_device(info);
	for (;;) {
		if (!id) {
			id = reach(info);
			printf("connected, %d lines answered\n", done);
		}
		if (done == lines)
			break;
		if (ask(id, done)) {
			done++;
			usleep(1000 * ms);
		} else {
			leave(id);
			id = NULL;
		}
	}
	printf("%d lines answered\n", done);
	leave(id);
	ibv_dereg_mr(mr);
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(completions);
	ibv_dealloc_pd(pd);
	rdma_destroy_ep(device);
	rdma_freeaddrinfo(info);
	return 0;
}
