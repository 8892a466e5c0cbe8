// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connection ids, asynchronously: what events say, and what is refused. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "pair.h"

static void channels(void)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct pollfd pfd;

	need(ch = rdma_create_event_channel());
	ok(fcntl(ch->fd, F_GETFD) & FD_CLOEXEC);
	ok(!fcntl(ch->fd, F_SETFL, fcntl(ch->fd, F_GETFL) | O_NONBLOCK));
	ok(rdma_get_cm_event(ch, &event) == -1 && errno == EAGAIN);
	pfd = (struct pollfd) { .fd = ch->fd, .events = POLLIN };
	ok(poll(&pfd, 1, 0) == 0);
	ok(rdma_ack_cm_event(NULL) == -1 && errno == EINVAL);

	ok(!rdma_create_id(ch, &id, &pfd, RDMA_PS_TCP));
	ok(id->channel == ch && id->context == &pfd && id->ps == RDMA_PS_TCP);
	ok(id->qp_type == IBV_QPT_RC && !id->verbs && !id->qp && !id->pd);
	ok(rdma_get_src_port(id) == 0 && rdma_get_dst_port(id) == 0);
	ok(!rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}

static void binding(void)
{
	struct sockaddr_in sin = ip4(server_addr, 0), any = ip4("0.0.0.0", 0);
	struct sockaddr_in none = ip4("192.0.2.1", 0);
	struct rdma_event_channel *ch;
	struct rdma_cm_id *a, *b;
	__be16 port;

	need(ch = rdma_create_event_channel());
	need(!rdma_create_id(ch, &a, NULL, RDMA_PS_TCP));
	need(!rdma_create_id(ch, &b, NULL, RDMA_PS_TCP));
	ok(rdma_bind_addr(a, (struct sockaddr *)&none) == -1);
	printf("# foreign address: errno %d\n", errno);
	ok(!rdma_bind_addr(a, (struct sockaddr *)&sin));
	ok(a->verbs && a->port_num == 1 && a->pd);
	ok(a->pd->context == a->verbs);
	ok(rdma_get_local_addr(a)->sa_family == AF_INET);
	ok(((struct sockaddr_in *)rdma_get_local_addr(a))->sin_addr.s_addr ==
	   sin.sin_addr.s_addr);
	port = rdma_get_src_port(a);
	ok(port);
	ok(rdma_bind_addr(a, (struct sockaddr *)&sin) == -1 &&
	   errno == EINVAL);
	ok(!rdma_listen(a, 1));
	sin.sin_port = port;
	ok(rdma_bind_addr(b, (struct sockaddr *)&sin) == -1 &&
	   errno == EADDRINUSE);
	ok(!rdma_bind_addr(b, (struct sockaddr *)&any));
	ok(!b->verbs && !b->pd);
	ok(!rdma_listen(b, 0));
	ok(rdma_get_src_port(b) && rdma_get_src_port(b) != port);
	ok(!rdma_destroy_id(a) && !rdma_destroy_id(b));
	rdma_destroy_event_channel(ch);
}

static void order(void)
{
	struct sockaddr_in sin = ip4(server_addr, 7471);
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;

	need(ch = rdma_create_event_channel());
	need(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	ok(rdma_connect(id, NULL) == -1 && errno == EINVAL);
	ok(rdma_disconnect(id) == -1);
	ok(rdma_reject(id, NULL, 0) == -1);
	need(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&sin, 10000));
	eat_event(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
	ok(id->verbs && id->pd && id->port_num == 1);
	ok(rdma_get_dst_port(id) == htons(7471) && rdma_get_src_port(id));
	ok(!rdma_create_qp(id, NULL, &attr));
	ok(id->qp && id->send_cq && id->recv_cq && id->send_cq_channel);
	ok(id->send_cq->cq_context == id && id->recv_cq->cq_context == id);
	ok(id->qp->pd == id->pd && attr.send_cq == id->send_cq);
	ok(id->send_cq->channel == id->send_cq_channel);
	ok(id->send_cq->cqe >= 16 && id->qp->qp_context == NULL);
	ok(rdma_create_qp(id, NULL, &attr) == -1 && errno == EINVAL);
	ok(rdma_connect(id, NULL) == -1 && errno == EINVAL);
	rdma_destroy_qp(id);
	ok(!id->qp && !id->send_cq && !id->recv_cq && !id->send_cq_channel);
	ok(!rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}

/* What either side proposes is what the other one sees. */
static void parameters(void)
{
	struct ibv_qp_init_attr attr = plain_qp(), sattr = plain_qp();
	struct rdma_conn_param param = {
		.private_data = "request", .private_data_len = 8,
		.responder_resources = 3, .initiator_depth = 5,
		.flow_control = 1, .retry_count = 30, .rnr_retry_count = 6,
	};
	struct rdma_cm_event *event;
	struct ibv_device_attr dev;
	struct pair p;

	pair_begin(&p);
	ok(p.client->route.num_paths >= 1 && p.client->route.path_rec);
	need(!rdma_create_qp(p.client, NULL, &attr));
	need(!ibv_query_device(p.client->verbs, &dev));
	if (dev.max_qp_rd_atom < 254) {
		param.responder_resources = dev.max_qp_rd_atom + 1;
		ok(rdma_connect(p.client, &param) == -1 && errno == EINVAL);
		param.responder_resources = 3;
	}
	ok(!rdma_connect(p.client, &param));

	event = want_event(p.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p.server = event->id;
	ok(event->listen_id == p.listen && p.server != p.listen);
	ok(p.server->context == p.listen->context);
	ok(p.server->channel == p.sch && p.server->verbs && p.server->pd);
	ok(p.server->port_num == 1 && p.server->ps == RDMA_PS_TCP);
	ok(event->param.conn.private_data_len >= 8 &&
	   !memcmp(event->param.conn.private_data, "request", 8));
	ok(event->param.conn.responder_resources == 5);
	ok(event->param.conn.initiator_depth == 3);
	ok(event->param.conn.rnr_retry_count == 6);
	printf("# retry %u len %u flow %u srq %u\n",
	       event->param.conn.retry_count,
	       event->param.conn.private_data_len,
	       event->param.conn.flow_control, event->param.conn.srq);
	ok(event->param.conn.qp_num == p.client->qp->qp_num);
	ok(rdma_get_src_port(p.server) == rdma_get_src_port(p.listen));
	ok(rdma_get_dst_port(p.server) == rdma_get_src_port(p.client));
	ok(((struct sockaddr_in *)rdma_get_peer_addr(p.server))->sin_family ==
	   AF_INET);
	ok(!memcmp(&p.server->route.addr.addr.ibaddr.sgid,
		   &p.client->route.addr.addr.ibaddr.dgid, 16));

	need(!rdma_create_qp(p.server, NULL, &sattr));
	param.private_data = "answer";
	param.private_data_len = 7;
	param.responder_resources = 2;
	param.initiator_depth = 1;
	ok(!rdma_accept(p.server, &param));
	ok(!rdma_ack_cm_event(event));
	event = want_event(p.ch, RDMA_CM_EVENT_ESTABLISHED);
	ok(event->id == p.client);
	ok(event->param.conn.private_data_len >= 7 &&
	   !memcmp(event->param.conn.private_data, "answer", 7));
	ok(event->param.conn.responder_resources == 1);
	ok(event->param.conn.initiator_depth == 2);
	ok(event->param.conn.qp_num == p.server->qp->qp_num);
	need(!rdma_ack_cm_event(event));
	eat_event(p.sch, RDMA_CM_EVENT_ESTABLISHED);
	pair_disconnect(&p);
	pair_end(&p);
}

static void rejection(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_event *event;
	struct pair p;

	pair_begin(&p);
	need(!rdma_create_qp(p.client, NULL, &attr));
	need(!rdma_connect(p.client, NULL));
	event = want_event(p.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	ok(!rdma_reject(event->id, "no", 3));
	ok(!rdma_destroy_id(event->id));
	ok(!rdma_ack_cm_event(event));
	need(!rdma_get_cm_event(p.ch, &event));
	ok(event->event == RDMA_CM_EVENT_REJECTED && event->status == 28);
	ok(event->param.conn.private_data_len >= 3 &&
	   !memcmp(event->param.conn.private_data, "no", 3));
	ok(event->id == p.client);
	need(!rdma_ack_cm_event(event));
	pair_end(&p);
}

static void nobody(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_event *event;
	struct pair p;

	pair_begin(&p);
	need(!rdma_destroy_id(p.listen));
	p.listen = NULL;
	need(!rdma_create_qp(p.client, NULL, &attr));
	need(!rdma_connect(p.client, NULL));
	need(!rdma_get_cm_event(p.ch, &event));
	ok(event->event == RDMA_CM_EVENT_REJECTED);
	printf("# status %d\n", event->status);
	need(!rdma_ack_cm_event(event));
	pair_end(&p);
}

/* The queue pair outlives its id, as a struct. */
static void orphan(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_wc wc;
	struct pair p;

	pair_begin(&p);
	id = p.client;
	need(cq = ibv_create_cq(id->verbs, 64, NULL, NULL, 0));
	attr.send_cq = cq;
	attr.recv_cq = cq;
	need(!rdma_create_qp(id, NULL, &attr));
	ok(!id->send_cq && !id->recv_cq && id->qp->send_cq == cq);
	need(!rdma_post_recvv(id, cq, NULL, 0));
	qp = id->qp;
	ok(ibv_destroy_cq(cq) == EBUSY);
	ok(!rdma_destroy_id(id));
	p.client = NULL;
	ok(!ibv_destroy_qp(qp));
	ok(ibv_poll_cq(cq, 1, &wc) >= 0);
	ok(!ibv_destroy_cq(cq));
	pair_end(&p);
}

/* ibv_destroy_qp() on a queue pair that rdma_create_qp() made. */
static void foreign_destroy(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct pair p;

	pair_connect(&p, &attr, NULL);
	ok(!ibv_destroy_qp(p.client->qp));
	p.client->qp = NULL;
	ok(!rdma_destroy_id(p.client));
	p.client = NULL;
	eat_event(p.sch, RDMA_CM_EVENT_DISCONNECTED);
	pair_end(&p);
}

static void *ack_later(void *event)
{
	poll(NULL, 0, 200);
	need(!rdma_ack_cm_event(event));
	return NULL;
}

/* rdma_destroy_id() waits for the acknowledgement. */
static void waits(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_cm_event *event;
	struct timespec a, b;
	pthread_t thread;
	struct pair p;

	pair_connect(&p, &attr, NULL);
	need(!rdma_disconnect(p.client));
	need(!rdma_disconnect(p.server));
	event = want_event(p.ch, RDMA_CM_EVENT_DISCONNECTED);
	clock_gettime(CLOCK_MONOTONIC, &a);
	need(!pthread_create(&thread, NULL, ack_later, event));
	rdma_destroy_qp(p.client);
	ok(!rdma_destroy_id(p.client));
	clock_gettime(CLOCK_MONOTONIC, &b);
	ok((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >=
	   190);
	need(!pthread_join(thread, NULL));
	p.client = NULL;
	/* The server's DISCONNECTED is dropped with its id. */
	pair_end(&p);
}

static void migrate(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct rdma_event_channel *other;
	struct rdma_cm_event *event;
	struct pair p;

	pair_connect(&p, &attr, NULL);
	need(other = rdma_create_event_channel());
	need(!rdma_disconnect(p.client));
	need(!rdma_disconnect(p.server));
	poll(NULL, 0, 200);
	ok(!rdma_migrate_id(p.client, other));
	ok(p.client->channel == other);
	event = want_event(other, RDMA_CM_EVENT_DISCONNECTED);
	ok(event->id == p.client);
	need(!rdma_ack_cm_event(event));
	eat_event(p.sch, RDMA_CM_EVENT_DISCONNECTED);
	pair_end(&p);
	rdma_destroy_event_channel(other);
}

static void options(void)
{
	struct rdma_event_channel *ch;
	struct rdma_cm_id *id;
	int zero = 0;
	uint8_t tos = 4;

	need(ch = rdma_create_event_channel());
	need(!rdma_create_id(ch, &id, NULL, RDMA_PS_TCP));
	ok(!rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
			    &zero, sizeof(zero)));
	ok(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos,
			   2) == -1 && errno == EINVAL);
	ok(rdma_set_option(id, RDMA_OPTION_ID, 99, &zero, 4) == -1 &&
	   errno == ENOSYS);
	need(!rdma_destroy_id(id));
	rdma_destroy_event_channel(ch);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		server_addr = argv[1];
	channels();
	binding();
	order();
	parameters();
	rejection();
	nobody();
	orphan();
	foreign_destroy();
	waits();
	migrate();
	options();
	return tap_done();
}
