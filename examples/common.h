/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Code that the servers for many clients share, and their clients. */
#ifndef COMMON_H
#define COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* For a function that returns the error, as many of libibverbs do: errno = f(). */
static inline void check(int failed, const char *what)
{
	if (failed) {
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static inline void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "not as expected: %s\n", what);
		exit(1);
	}
}

/* Takes a number from the command line, or the usual one where text is NULL. */
static inline int number(const char *text, int usual)
{
	char *end;
	long n;

	if (!text)
		return usual;
	n = strtol(text, &end, 10);
	if (end == text || *end || n < 0 || n > INT_MAX) {
		fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	return n;
}

static inline struct rdma_addrinfo *address_of(const char *server, const char *port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
	int error;

	if (!server)
		hints.ai_flags = RAI_PASSIVE;
	/* Fails with errno as other functions do, or as getaddrinfo(3). */
	error = rdma_getaddrinfo(server, port, &hints, &info);
	check(error == -1, "rdma_getaddrinfo");
	if (error) {
		fprintf(stderr, "rdma_getaddrinfo: %s\n", gai_strerror(error));
		exit(1);
	}
	return info;
}

/* Makes an id that listens, and its channel. */
static inline struct rdma_cm_id *listener(const char *port)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_addrinfo *info = address_of(NULL, port);
	struct rdma_cm_id *id;

	check(!events, "rdma_create_event_channel");
	check(rdma_create_id(events, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	check(rdma_bind_addr(id, info->ai_src_addr), "rdma_bind_addr");
	check(rdma_listen(id, 16), "rdma_listen");
	rdma_freeaddrinfo(info);
	return id;
}

static inline void unlisten(struct rdma_cm_id *id)
{
	struct rdma_event_channel *events = id->channel;

	rdma_destroy_id(id);
	rdma_destroy_event_channel(events);
}

/* Makes an id with a queue pair for the server. */
static inline struct rdma_cm_id *client_of(const char *server, const char *port,
					   struct ibv_qp_init_attr *attr)
{
	struct rdma_addrinfo *info = address_of(server, port);
	struct rdma_cm_id *id;

	check(rdma_create_ep(&id, info, NULL, attr), "rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

/* Waits for a completion, by rdma_get_send_comp or rdma_get_recv_comp. */
static inline void await(struct rdma_cm_id *id,
			 int (*get)(struct rdma_cm_id *id, struct ibv_wc *wc),
			 struct ibv_wc *wc)
{
	check(get(id, wc) != 1, "rdma_get_..._comp");
	expect(!wc->status, ibv_wc_status_str(wc->status));
}

struct client;

/*
 * Handles an event of a server: a client comes, or one has gone.  Does nothing if
 * the channel is non-blocking and has none.  An id can be destroyed only when its
 * events are acknowledged.
 */
static inline void handle_event(struct rdma_event_channel *events,
				void (*admit)(struct rdma_cm_id *id),
				void (*release)(struct client *c, const char *why))
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(events, &event))
		return check(errno != EAGAIN, "rdma_get_cm_event");
	type = event->event;
	id = event->id;
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
		return admit(id);
	/* Of the listener's events only the loss of its device comes here. */
	errno = ENODEV;
	check(!id->context, "listener");
	if (type != RDMA_CM_EVENT_ESTABLISHED)
		release(id->context, rdma_event_str(type));
}

/*
 * Takes a completion event and asks for the next one.  The caller polls after
 * that, so that no completion comes unnoticed between.
 */
static inline int next_completions(struct ibv_comp_channel *channel)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(channel, &cq, &context))
		return -1;
	ibv_ack_cq_events(cq, 1);
	errno = ibv_req_notify_cq(cq, 0);
	return errno ? -1 : 0;
}

/* Adds a descriptor to an epoll.  Reading it must not wait: epoll says when to. */
static inline int watch(int loop, int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
	       epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

#endif
