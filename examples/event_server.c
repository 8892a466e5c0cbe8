// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An event loop: one thread waits in epoll for events of the connection manager
 * and for completions of all clients (lines_client), and answers each line.
 *
 * Usage: event_server [CLIENTS]    ends when so many have gone, 1 by default
 */
#include <unistd.h>

#include "lines.h"

struct client {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	int lines;
	char in[AHEAD][LINE];
};

static int loop, gone;

/*
 * rdma_create_qp() makes the completion queues and their channels, too.  The
 * receives are posted before the client can send.
 */
static int prepare(struct client *c)
{
	struct ibv_qp_init_attr attr = lines_attr();
	int i;

	if (rdma_create_qp(c->id, NULL, &attr))
		return -1;
	c->mr = rdma_reg_msgs(c->id, c->in, sizeof(c->in));
	if (!c->mr || ibv_req_notify_cq(c->id->recv_cq, 0) ||
	    watch(loop, c->id->recv_cq_channel->fd, c))
		return -1;
	for (i = 0; i < AHEAD; i++)
		if (rdma_post_recv(c->id, c->in[i], c->in[i], LINE, c->mr))
			return -1;
	return 0;
}

/* Destroying the queue pair closes its channel, which ends the watch. */
static void release(struct client *c, const char *why)
{
	printf("a client has gone after %d lines: %s\n", c->lines, why);
	gone++;
	if (c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->mr)
		rdma_dereg_mr(c->mr);
	rdma_destroy_id(c->id);
	free(c);
}

/* Destroying an id that was not accepted rejects the client. */
static void admit(struct rdma_cm_id *id)
{
	struct client *c = calloc(1, sizeof(*c));

	check(!c, "calloc");
	c->id = id;
	id->context = c;
	if (prepare(c) || rdma_accept(id, &lines_param))
		release(c, strerror(errno));
}

/* Sends the answer inline, so that its buffer is free when the call returns. */
static int answer(struct client *c, char *line)
{
	char out[LINE];
	struct ibv_wc wc;

	capitals(out, line);
	c->lines++;
	/* The completions of earlier answers make room for this one. */
	while (ibv_poll_cq(c->id->send_cq, 1, &wc) > 0)
		;
	return rdma_post_recv(c->id, line, line, LINE, c->mr) ||
	       rdma_post_send(c->id, NULL, out, LINE, NULL, IBV_SEND_INLINE);
}

static const char *on_completions(struct client *c)
{
	struct ibv_wc wc;

	if (next_completions(c->id->recv_cq_channel))
		return errno == EAGAIN ? NULL : strerror(errno);
	while (ibv_poll_cq(c->id->recv_cq, 1, &wc) > 0) {
		if (wc.status || wc.byte_len != LINE)
			return wc.status ? ibv_wc_status_str(wc.status) : "no line";
		if (answer(c, (char *)wc.wr_id))
			return strerror(errno);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int clients = number(argc > 1 ? argv[1] : NULL, 1);
	struct rdma_cm_id *id = listener(PORT);
	struct epoll_event event;
	const char *why;

	loop = epoll_create1(EPOLL_CLOEXEC);
	check(loop < 0 || watch(loop, id->channel->fd, NULL), "epoll");
	while (gone < clients) {
		/* One at a time: the next could be about what this one releases. */
		check(epoll_wait(loop, &event, 1, -1) < 0, "epoll_wait");
		if (!event.data.ptr)
			handle_event(id->channel, admit, release);
		else if ((why = on_completions(event.data.ptr)))
			release(event.data.ptr, why);
	}
	close(loop);
	unlisten(id);
	return 0;
}
