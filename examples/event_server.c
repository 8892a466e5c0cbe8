// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An event loop: one thread waits in epoll for events of the connection manager
 * and for completions of all clients (lines_client), and answers each line.
 *
 * Usage: event_server [CLIENTS]    ends when so many have gone, 1 by default
 */
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "lines.h"

struct client {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	int lines;
	char in[AHEAD][LINE];
};

static int loop, gone;

/* Reading must not wait: epoll says when there is something. */
static int watch(int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
	       epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

/*
 * Lets a client in.  rdma_create_qp() makes the completion queues and their
 * channels, too.  The receives are posted before the client can send.
 */
static int admit(struct client *c)
{
	struct ibv_qp_init_attr attr = lines_attr();
	int i;

	if (rdma_create_qp(c->id, NULL, &attr))
		return -1;
	c->mr = rdma_reg_msgs(c->id, c->in, sizeof(c->in));
	if (!c->mr || ibv_req_notify_cq(c->id->recv_cq, 0) ||
	    watch(c->id->recv_cq_channel->fd, c))
		return -1;
	for (i = 0; i < AHEAD; i++)
		if (rdma_post_recv(c->id, c->in[i], c->in[i], LINE, c->mr))
			return -1;
	return rdma_accept(c->id, &lines_param);
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
		if (wc.status)
			return ibv_wc_status_str(wc.status);
		if (answer(c, (char *)wc.wr_id))
			return strerror(errno);
	}
	return NULL;
}

static void on_event(struct rdma_event_channel *events)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id = next_event(events, &type);
	struct client *c;

	if (!id)
		return;
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		id->context = c = calloc(1, sizeof(*c));
		check(!c, "calloc");
		c->id = id;
		if (admit(c))
			release(c, strerror(errno));
	} else if (type != RDMA_CM_EVENT_ESTABLISHED) {
		release(id->context, rdma_event_str(type));
	}
}

int main(int argc, char **argv)
{
	struct rdma_cm_id *id = listener();
	int clients = argc > 1 ? atoi(argv[1]) : 1;
	struct epoll_event event;
	const char *why;

	loop = epoll_create1(EPOLL_CLOEXEC);
	check(loop < 0 || watch(id->channel->fd, NULL), "epoll");
	while (gone < clients) {
		/* One at a time: the next could be about what this one releases. */
		check(epoll_wait(loop, &event, 1, -1) < 0, "epoll_wait");
		if (!event.data.ptr)
			on_event(id->channel);
		else if ((why = on_completions(event.data.ptr)))
			release(event.data.ptr, why);
	}
	close(loop);
	unlisten(id);
	return 0;
}
