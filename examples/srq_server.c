// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A shared receive queue: all clients (lines_client) send into the same few
 * buffers, so memory follows the traffic and not the number of clients.  They
 * share a completion queue, too, where the queue pair's number tells the client.
 *
 * Usage: srq_server [CLIENTS]    ends when so many have gone, 1 by default
 */
#include <poll.h>

#include "lines.h"

#define BUFFERS 8
#define MAX_CLIENTS 64

struct client {
	struct rdma_cm_id *id;		/* NULL if there is none */
	int lines;
};

static struct client clients[MAX_CLIENTS + 1], *end = clients + MAX_CLIENTS;
static int gone;			/* clients */
static char in[BUFFERS][LINE];
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_srq *srq;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;

/* Posts a receive for whichever client sends next. */
static void post(char *buffer)
{
	struct ibv_sge sge = { (uintptr_t)buffer, LINE, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = sge.addr, .sg_list = &sge, .num_sge = 1 }, *bad;

	check(errno = ibv_post_srq_recv(srq, &wr, &bad), "ibv_post_srq_recv");
}

/* The listener is bound to no device: the first client tells which it is. */
static void prepare(struct ibv_context *verbs)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = BUFFERS, .max_sge = 1 } };
	int i, cqes = BUFFERS + MAX_CLIENTS * 2 * AHEAD;

	check(!(pd = ibv_alloc_pd(verbs)), "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, in, sizeof(in), IBV_ACCESS_LOCAL_WRITE);
	check(!mr, "ibv_reg_mr");
	check(!(srq = ibv_create_srq(pd, &attr)), "ibv_create_srq");
	check(!(channel = ibv_create_comp_channel(verbs)), "ibv_create_comp_channel");
	check(!(cq = ibv_create_cq(verbs, cqes, NULL, channel, 0)), "ibv_create_cq");
	check(errno = ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
	for (i = 0; i < BUFFERS; i++)
		post(in[i]);
}

/* Answers lines.  A buffer can take the next line when its answer is posted. */
static void poll_completions(void)
{
	char out[LINE], *line;
	struct client *c;
	struct ibv_wc wc;
	int bad;

	while (ibv_poll_cq(cq, 1, &wc) > 0) {
		for (c = clients; c < end; c++)
			if (c->id && c->id->qp->qp_num == wc.qp_num)
				break;
		line = (char *)wc.wr_id;
		bad = wc.status && wc.status != IBV_WC_WR_FLUSH_ERR;
		if (c->id && line && !wc.status) {
			capitals(out, line);
			c->lines++;
			/* Behind a shorter line is what another client has sent. */
			bad = wc.byte_len != LINE ||
			      rdma_post_send(c->id, NULL, out, LINE, NULL, IBV_SEND_INLINE);
		}
		if (line)
			post(line);
		/* An event will tell that it has gone. */
		if (c->id && bad)
			rdma_disconnect(c->id);
	}
}

/* Takes the client's last lines first: their buffers belong to all. */
static void release(struct client *c, const char *why)
{
	rdma_disconnect(c->id);
	poll_completions();
	printf("a client has gone after %d lines: %s\n", c->lines, why);
	rdma_destroy_qp(c->id);
	rdma_destroy_id(c->id);
	c->id = NULL;
	gone++;
}

/*
 * A client that finds no buffer tries again after a time that this side sets; it
 * would be 655 ms.  12 means 0.64 ms.
 */
static void admit(struct rdma_cm_id *id)
{
	struct ibv_qp_attr sooner = { .min_rnr_timer = 12 };
	struct ibv_qp_init_attr attr = lines_attr();
	struct client *c = clients;

	if (!pd)
		prepare(id->verbs);
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;		/* in place of max_recv_wr */
	while (c->id)
		c++;
	if (c == end || rdma_create_qp(id, pd, &attr)) {
		rdma_destroy_id(id);	/* rejects the client */
		return;
	}
	*c = (struct client){ .id = id };
	id->context = c;
	if (rdma_accept(id, &lines_param) ||
	    (errno = ibv_modify_qp(id->qp, &sooner, IBV_QP_MIN_RNR_TIMER)))
		release(c, strerror(errno));
}

int main(int argc, char **argv)
{
	int until = number(argc > 1 ? argv[1] : NULL, 1);
	struct rdma_cm_id *id = listener(PORT);
	struct pollfd fds[2] = { { id->channel->fd, POLLIN, 0 }, { -1, POLLIN, 0 } };

	while (gone < until) {
		fds[1].fd = channel ? channel->fd : -1;
		check(poll(fds, 2, -1) < 0, "poll");
		if (fds[0].revents)
			handle_event(id->channel, admit, release);
		if (fds[1].revents) {
			check(next_completions(channel), "next_completions");
			poll_completions();
		}
	}
	unlisten(id);
	if (!pd)
		return 0;
	ibv_destroy_cq(cq);
	ibv_destroy_comp_channel(channel);
	ibv_destroy_srq(srq);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
	return 0;
}
