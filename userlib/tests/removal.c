// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device goes away under a connection.  Run last in a guest: it takes
 * rxe0 away.
 */
#include "pair.h"

static char buf[4096];

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct ibv_device_attr dev;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct pair p;
	int i, removals = 0;

	if (argc > 1)
		server_addr = argv[1];
	pair_connect(&p, &attr, NULL);
	need(mr = rdma_reg_msgs(p.client, buf, sizeof(buf)));
	need(pd = ibv_alloc_pd(p.client->verbs));
	for (i = 0; i < 3; i++)
		need(!rdma_post_recv(p.client, NULL, buf, 8, mr));
	ctx = p.client->verbs;

	need(!system("rdma link del rxe0"));
	ok(ibv_query_device(ctx, &dev) == ENODEV);
	for (i = 0; i < 3; i++)
		ok(one_wc(p.client->recv_cq).status == IBV_WC_WR_FLUSH_ERR);
	/* The listening id, and both ends. */
	for (i = 0; i < 10 && removals < 3; i++) {
		struct pollfd pfd[2] = {
			{ p.ch->fd, POLLIN, 0 }, { p.sch->fd, POLLIN, 0 },
		};
		struct rdma_cm_event *event;

		if (poll(pfd, 2, 5000) <= 0)
			break;
		need(!rdma_get_cm_event(pfd[0].revents ? p.ch : p.sch, &event));
		printf("# %s\n", rdma_event_str(event->event));
		removals += event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
		need(!rdma_ack_cm_event(event));
	}
	ok(removals == 3);
	ok(rdma_post_sendv(p.client, NULL, NULL, 0, 0) == -1);
	printf("# post: errno %d\n", errno);
	ok(rdma_disconnect(p.client) == -1);
	printf("# disconnect: errno %d\n", errno);
	ok(!ibv_alloc_pd(ctx) && errno == ENODEV);
	ok(!ibv_dereg_mr(mr));
	ok(!ibv_dealloc_pd(pd));
	pair_end(&p);

	/* And it comes back as another one. */
	need(!system("rdma link add rxe0 type rxe netdev dummy0"));
	attr = plain_qp();
	pair_connect(&p, &attr, NULL);
	ok(p.client->verbs != ctx);
	pair_disconnect(&p);
	pair_end(&p);
	return tap_done();
}
