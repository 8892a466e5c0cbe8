// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The server of wire.c: verifies messages until it is killed. */
#include <stdbool.h>

#include "wire.h"

#define MAX_CONNS	64

struct conn {
	struct rdma_cm_id *id;
	struct memory *mem;
	struct ibv_mr *mr;
	bool over;
};

static struct conn conns[MAX_CONNS];
static uint64_t last_verified;
static unsigned int wrong;

static void serve_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.responder_resources = 4,
		.initiator_depth = 4,
		.rnr_retry_count = 7,
	};
	struct hello hello;
	struct conn *c;
	int i;

	for (c = conns; c < conns + MAX_CONNS && c->id; c++)
		;
	if (c == conns + MAX_CONNS) {
		rdma_reject(id, NULL, 0);
		return;
	}
	*c = (struct conn) { .id = id, .mem = calloc(1, sizeof(*c->mem)) };
	create_qp(id);
	c->mr = ibv_reg_mr(id->pd, c->mem, sizeof(*c->mem),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ);
	if (!c->mr)
		die("ibv_reg_mr");
	for (i = 0; i < RECVS; i++)
		if (rdma_post_recv(id, NULL, &c->mem->notices[i],
				   sizeof(struct notice), c->mr))
			die("rdma_post_recv");
	hello = (struct hello) {
		.addr = (uintptr_t)c->mem,
		.rkey = c->mr->rkey,
		.wrong = wrong,
		.before = last_verified,
	};
	last_verified = 0;
	param.private_data = &hello;
	param.private_data_len = sizeof(hello);
	if (rdma_accept(id, &param))
		perror("# rdma_accept");
}

static void serve_messages(struct conn *c)
{
	struct memory *mem = c->mem;
	struct notice *notice;
	struct slot *slot;
	struct ibv_wc wc;

	while (ibv_poll_cq(c->id->recv_cq, 1, &wc) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			continue;
		notice = &mem->notices[mem->verified % RECVS];
		slot = &mem->slots[mem->verified % SLOTS];
		if (notice->number != mem->verified ||
		    slot->number != mem->verified ||
		    notice->sum != checksum(slot)) {
			printf("# message %llu is wrong: notice %llu, slot %llu\n",
			       (unsigned long long)mem->verified,
			       (unsigned long long)notice->number,
			       (unsigned long long)slot->number);
			wrong++;
		}
		mem->verified++;
		last_verified = mem->verified;
		if (!c->over && rdma_post_recv(c->id, NULL, notice,
					       sizeof(*notice), c->mr))
			perror("# rdma_post_recv");
	}
}

static void serve_end(struct conn *c)
{
	c->over = true;
	rdma_disconnect(c->id);
	serve_messages(c);
	printf("# served %llu messages, %u wrong\n",
	       (unsigned long long)c->mem->verified, wrong);
	rdma_destroy_qp(c->id);
	ibv_dereg_mr(c->mr);
	rdma_destroy_id(c->id);
	free(c->mem);
	c->id = NULL;
}

static void serve_event(struct rdma_cm_event *event)
{
	enum rdma_cm_event_type type = event->event;
	struct rdma_cm_id *id = event->id;
	struct conn *c;

	printf("# server: %s, status %d\n", rdma_event_str(type), event->status);
	rdma_ack_cm_event(event);
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		serve_request(id);
		return;
	}
	for (c = conns; c < conns + MAX_CONNS; c++) {
		if (c->id == id && type != RDMA_CM_EVENT_ESTABLISHED &&
		    type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			serve_end(c);
	}
}

void serve(struct sockaddr_in *addr)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	struct conn *c;

	if (!channel || rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)addr) ||
	    rdma_listen(listener, 16))
		die("listen");
	printf("# listening\n");
	for (;;) {
		event = next_event(channel, 1);
		/*
		 * A client that connects again is told of all acknowledged
		 * messages.
		 */
		for (c = conns; c < conns + MAX_CONNS; c++)
			if (c->id)
				serve_messages(c);
		if (event)
			serve_event(event);
	}
}
