// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Devices, protection domains, completion queues and their events. */
#include <fcntl.h>
#include <pthread.h>

#include "pair.h"

static void devices(void)
{
	struct ibv_context **ctxs, *ctx;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	struct ibv_device **list;
	struct ibv_async_event async;
	int n = -1, m = -1;

	need(list = ibv_get_device_list(&n));
	ok(n >= 1 && list[n] == NULL);
	ok(!strncmp(ibv_get_device_name(list[0]), "rxe", 3));
	ok(list[0]->node_type == IBV_NODE_CA);
	need(ctx = ibv_open_device(list[0]));
	ok(!ibv_query_device(ctx, &attr));
	ok(attr.node_guid == ibv_get_device_guid(list[0]));
	ibv_free_device_list(list);
	ok(attr.phys_port_cnt == 1 && attr.max_qp > 0 && attr.max_sge > 0);
	printf("# fw %s wr %d sge %d cqe %d rd %d/%d cap %#x atomic %d\n",
	       attr.fw_ver, attr.max_qp_wr, attr.max_sge, attr.max_cqe,
	       attr.max_qp_rd_atom, attr.max_qp_init_rd_atom,
	       attr.device_cap_flags, attr.atomic_cap);
	ok(ctx->num_comp_vectors >= 1 && ctx->device->name[0] == 'r');
	ok(!ibv_query_port(ctx, 1, &port));
	ok(port.state == IBV_PORT_ACTIVE &&
	   port.link_layer == IBV_LINK_LAYER_ETHERNET);
	printf("# mtu %d/%d gids %d pkeys %d speed %d width %d flags %d\n",
	       port.active_mtu, port.max_mtu, port.gid_tbl_len,
	       port.pkey_tbl_len, port.active_speed, port.active_width,
	       port.flags);
	ok(ibv_query_port(ctx, 99, &port) == EINVAL);
	ok(!fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
	ok(ibv_get_async_event(ctx, &async) == -1 && errno == EAGAIN);
	ok(!ibv_close_device(ctx));

	need(ctxs = rdma_get_devices(&m));
	ok(m == n && ctxs[m] == NULL);
	rdma_free_devices(ctxs);
	ok(ibv_fork_init() == 0);
}

static void memory(void)
{
	static char buf[8192];
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	need(list = ibv_get_device_list(NULL));
	need(ctx = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	need(pd = ibv_alloc_pd(ctx));
	need(mr = ibv_reg_mr(pd, buf + 1, 100, IBV_ACCESS_LOCAL_WRITE));
	ok(mr->addr == buf + 1 && mr->length == 100 && mr->pd == pd);
	ok(mr->context == ctx);
	ok(ibv_dealloc_pd(pd) == EBUSY);
	ok(!ibv_dereg_mr(mr));
	ok(!ibv_reg_mr(pd, buf, 100, IBV_ACCESS_REMOTE_WRITE) &&
	   errno == EINVAL);
	ok(!ibv_reg_mr(pd, NULL, 4096, IBV_ACCESS_LOCAL_WRITE) &&
	   errno == EFAULT);
	ok(!ibv_reg_mr(pd, buf, 100, IBV_ACCESS_ON_DEMAND) &&
	   (errno == EOPNOTSUPP || errno == EINVAL));
	printf("# on demand: errno %d\n", errno);
	/* Constant data may be sent. */
	need(mr = ibv_reg_mr(pd, (void *)"constant", 8, 0));
	ok(!ibv_dereg_mr(mr));
	need(mr = ibv_reg_mr(pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE |
			     IBV_ACCESS_RELAXED_ORDERING));
	ok(!ibv_dereg_mr(mr));
	ok(!ibv_dealloc_pd(pd));
	ok(!ibv_close_device(ctx));
}

static void queues(void)
{
	struct ibv_comp_channel *ch;
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_cq *cq, *which;
	struct ibv_wc wc;
	void *context;

	need(list = ibv_get_device_list(NULL));
	need(ctx = ibv_open_device(list[0]));
	ibv_free_device_list(list);
	need(ch = ibv_create_comp_channel(ctx));
	ok(ch->context == ctx && ch->fd >= 0 && ch->refcnt == 0);
	need(cq = ibv_create_cq(ctx, 10, &wc, ch, 0));
	ok(cq->cqe >= 10 && cq->cq_context == &wc && cq->channel == ch);
	ok(ch->refcnt == 1);
	ok(ibv_destroy_comp_channel(ch) == EBUSY);
	ok(ibv_poll_cq(cq, 1, &wc) == 0);
	ok(!fcntl(ch->fd, F_SETFL, O_NONBLOCK));
	ok(ibv_get_cq_event(ch, &which, &context) == -1 && errno == EAGAIN);
	ok(!ibv_destroy_cq(cq));
	ok(!ibv_destroy_comp_channel(ch));
	ok(!ibv_create_cq(ctx, 0, NULL, NULL, 0) && errno == EINVAL);
	ok(!ibv_create_cq(ctx, 10, NULL, NULL, 1000) && errno == EINVAL);
	ok(!ibv_create_cq(ctx, 1 << 30, NULL, NULL, 0) && errno == EINVAL);
	ok(!ibv_close_device(ctx));
}

static bool event_within(struct ibv_comp_channel *ch, int ms)
{
	struct pollfd pfd = { .fd = ch->fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1;
}

static void take_event(struct ibv_cq *cq, void *context)
{
	struct ibv_cq *which;
	void *ctx;

	need(event_within(cq->channel, 5000));
	need(!ibv_get_cq_event(cq->channel, &which, &ctx));
	ok(which == cq && ctx == context);
	ibv_ack_cq_events(which, 1);
}

static void send_one(struct pair *p, int flags)
{
	need(!rdma_post_recvv(p->server, NULL, NULL, 0));
	need(!rdma_post_sendv(p->client, NULL, NULL, 0, flags));
	need(!one_wc(p->client->send_cq).status);
}

static void events(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct ibv_cq *cq;
	struct pair p;

	pair_connect(&p, &attr, NULL);
	cq = p.server->recv_cq;

	/* Not asked for, no event. */
	send_one(&p, 0);
	need(!one_wc(cq).status);
	ok(!event_within(cq->channel, 50));

	/* One event, however many completions. */
	ok(!ibv_req_notify_cq(cq, 0));
	send_one(&p, 0);
	take_event(cq, p.server);
	send_one(&p, 0);
	ok(!event_within(cq->channel, 50));
	ok(!one_wc(cq).status && !one_wc(cq).status);

	/* Asked twice, one event. */
	ok(!ibv_req_notify_cq(cq, 0));
	ok(!ibv_req_notify_cq(cq, 0));
	send_one(&p, 0);
	take_event(cq, p.server);
	ok(!one_wc(cq).status);
	ok(!event_within(cq->channel, 50));

	/* Asked again after each event. */
	for (int i = 0; i < 5; i++) {
		need(!ibv_req_notify_cq(cq, 0));
		send_one(&p, 0);
		take_event(cq, p.server);
		need(!one_wc(cq).status);
	}
	pair_disconnect(&p);
	pair_end(&p);
}

static void solicited(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct ibv_cq *cq;
	struct pair p;

	pair_connect(&p, &attr, NULL);
	cq = p.server->recv_cq;
	ok(!ibv_req_notify_cq(cq, 1));
	send_one(&p, 0);
	ok(!event_within(cq->channel, 50));
	need(!one_wc(cq).status);
	send_one(&p, IBV_SEND_SOLICITED);
	take_event(cq, p.server);
	need(!one_wc(cq).status);

	/* And back to any completion. */
	ok(!ibv_req_notify_cq(cq, 0));
	send_one(&p, 0);
	take_event(cq, p.server);
	need(!one_wc(cq).status);
	pair_disconnect(&p);
	pair_end(&p);
}

static void *ack_later(void *cq)
{
	poll(NULL, 0, 200);
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

/* ibv_destroy_cq() waits for acks, but says EBUSY at once. */
static void waits(void)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq, *which;
	struct rdma_cm_event *event;
	struct timespec a, b;
	pthread_t thread;
	void *context;
	struct pair p;

	pair_begin(&p);
	need(ch = ibv_create_comp_channel(p.client->verbs));
	need(cq = ibv_create_cq(p.client->verbs, 64, NULL, ch, 0));
	attr.send_cq = cq;
	attr.recv_cq = cq;
	need(!rdma_create_qp(p.client, NULL, &attr));
	need(!ibv_req_notify_cq(cq, 0));
	need(!rdma_post_recvv(p.client, NULL, NULL, 0));
	need(!rdma_connect(p.client, NULL));
	event = want_event(p.sch, RDMA_CM_EVENT_CONNECT_REQUEST);
	p.server = event->id;
	need(!rdma_ack_cm_event(event));
	/* Nobody answers: flush the receive by destroying the queue pair. */
	rdma_destroy_qp(p.client);
	if (!event_within(ch, 500)) {
		printf("# no event on destruction\n");
		goto out;
	}
	need(!ibv_get_cq_event(ch, &which, &context));
	ok(which == cq && context == NULL);
	clock_gettime(CLOCK_MONOTONIC, &a);
	need(!pthread_create(&thread, NULL, ack_later, cq));
	ok(!ibv_destroy_cq(cq));
	clock_gettime(CLOCK_MONOTONIC, &b);
	ok((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 >=
	   190);
	need(!pthread_join(thread, NULL));
	cq = NULL;
out:
	if (cq)
		ok(!ibv_destroy_cq(cq));
	ok(!ibv_destroy_comp_channel(ch));
	pair_end(&p);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		server_addr = argv[1];
	devices();
	memory();
	queues();
	events();
	solicited();
	waits();
	return tap_done();
}
