/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What event_server, srq_server and their client lines_client have in common. */
#ifndef LINES_H
#define LINES_H

#include <ctype.h>
#include <errno.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORT "7474"
#define LINE 32		/* bytes of a line */
#define AHEAD 4		/* lines that a client may send before the first answer */

static inline void check(int failed, const char *what)
{
	if (failed) {
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

/* A queue pair of either side.  What is sent is inline, and always completes. */
static inline struct ibv_qp_init_attr lines_attr(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = { .max_send_wr = 2 * AHEAD, .max_send_sge = 1,
			 .max_recv_wr = AHEAD, .max_recv_sge = 1,
			 .max_inline_data = LINE },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

/* Who finds no receive at the other side tries until there is one (7). */
static struct rdma_conn_param lines_param = {
	.retry_count = 7,
	.rnr_retry_count = 7,
};

static inline struct rdma_addrinfo *address_of(const char *server)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;

	if (!server)
		hints.ai_flags = RAI_PASSIVE;
	check(rdma_getaddrinfo(server, PORT, &hints, &info), "rdma_getaddrinfo");
	return info;
}

/* Makes an id that listens, and its channel. */
static inline struct rdma_cm_id *listener(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct rdma_addrinfo *info = address_of(NULL);
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

/*
 * Takes the next event of the servers' ids.  Returns NULL if there is none, which
 * happens only if the channel is non-blocking.  Ids can be destroyed only when
 * their events are acknowledged.
 */
static inline struct rdma_cm_id *next_event(struct rdma_event_channel *events,
					    enum rdma_cm_event_type *type)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (rdma_get_cm_event(events, &event)) {
		check(errno != EAGAIN, "rdma_get_cm_event");
		return NULL;
	}
	*type = event->event;
	id = event->id;
	rdma_ack_cm_event(event);
	if (*type != RDMA_CM_EVENT_CONNECT_REQUEST && !id->context) {
		fprintf(stderr, "listener: %s\n", rdma_event_str(*type));
		exit(1);
	}
	return id;
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

static inline void capitals(char *out, const char *line)
{
	int i;

	for (i = 0; i < LINE; i++)
		out[i] = toupper((unsigned char)line[i]);
}

#endif
