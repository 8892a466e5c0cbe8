/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two connected ids in one process, by asynchronous calls. */
#ifndef PAIR_H
#define PAIR_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "tap.h"

static const char *server_addr = "10.0.0.1";

struct pair {
	struct rdma_event_channel *ch;	/* the client's */
	struct rdma_event_channel *sch;	/* the server's */
	struct rdma_cm_id *listen;
	struct rdma_cm_id *client;
	struct rdma_cm_id *server;
};

static inline struct sockaddr_in ip4(const char *host, int port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};

	need(inet_pton(AF_INET, host, &sin.sin_addr) == 1);
	return sin;
}

/* Fetches an event and insists on its type. */
static inline struct rdma_cm_event *
want_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, 10000) != 1) {
		printf("# no event, but wanted %s\n", rdma_event_str(type));
		need(!"event");
	}
	need(!rdma_get_cm_event(ch, &event));
	if (event->event != type || event->status) {
		printf("# wanted %s, got %s status %d\n", rdma_event_str(type),
		       rdma_event_str(event->event), event->status);
		need(!"event type");
	}
	return event;
}

static inline void eat_event(struct rdma_event_channel *ch,
			     enum rdma_cm_event_type type)
{
	need(!rdma_ack_cm_event(want_event(ch, type)));
}

static inline struct ibv_qp_init_attr plain_qp(void)
{
	return (struct ibv_qp_init_attr) {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = 16, .max_recv_wr = 16,
			.max_send_sge = 4, .max_recv_sge = 4,
			.max_inline_data = 64,
		},
	};
}

/* Everything up to the resolved route. */
static inline void pair_begin(struct pair *p)
{
	struct sockaddr_in sin = ip4(server_addr, 0);

	memset(p, 0, sizeof(*p));
	need(p->ch = rdma_create_event_channel());
	need(p->sch = rdma_create_event_channel());
	need(!rdma_create_id(p->sch, &p->listen, p, RDMA_PS_TCP));
	need(!rdma_bind_addr(p->listen, (struct sockaddr *)&sin));
	need(!rdma_listen(p->listen, 8));
	need(rdma_get_src_port(p->listen));

	sin.sin_port = rdma_get_src_port(p->listen);
	need(!rdma_create_id(p->ch, &p->client, p, RDMA_PS_TCP));
	need(!rdma_resolve_addr(p->client, NULL, (struct sockaddr *)&sin,
				2000));
	eat_event(p->ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	need(!rdma_resolve_route(p->client, 10000));
	eat_event(p->ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static inline void pair_connect(struct pair *p, struct ibv_qp_init_attr *attr,
				struct rdma_conn_param *param)
{
	struct ibv_qp_init_attr sattr = *attr;
	struct rdma_cm_event *event;

	pair_begin(p);
	need(!rdma_create_qp(p->client, NULL, attr));
	need(!rdma_connect(p->client, param));
	event = want_event(p->sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p->server = event->id;
	need(!rdma_create_qp(p->server, NULL, &sattr));
	need(!rdma_accept(p->server, param));
	need(!rdma_ack_cm_event(event));
	eat_event(p->ch, RDMA_CM_EVENT_ESTABLISHED);
	eat_event(p->sch, RDMA_CM_EVENT_ESTABLISHED);
}

static inline void pair_disconnect(struct pair *p)
{
	need(!rdma_disconnect(p->client));
	eat_event(p->sch, RDMA_CM_EVENT_DISCONNECTED);
	need(!rdma_disconnect(p->server));
	eat_event(p->ch, RDMA_CM_EVENT_DISCONNECTED);
}

static inline void pair_end(struct pair *p)
{
	struct rdma_cm_id *ids[] = { p->client, p->server, p->listen };
	int i;

	for (i = 0; i < 3; i++) {
		if (!ids[i])
			continue;
		if (ids[i]->qp)
			rdma_destroy_qp(ids[i]);
		need(!rdma_destroy_id(ids[i]));
	}
	rdma_destroy_event_channel(p->sch);
	rdma_destroy_event_channel(p->ch);
}

/* One completion, or bail out after ten seconds. */
static inline struct ibv_wc one_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n, i;

	for (i = 0; i < 100000; i++) {
		n = ibv_poll_cq(cq, 1, &wc);
		need(n >= 0);
		if (n)
			return wc;
		poll(NULL, 0, i > 1000);
	}
	need(!"completion");
	return wc;
}

#endif /* PAIR_H */
