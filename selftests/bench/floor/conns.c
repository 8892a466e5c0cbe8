// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Opens and closes the connections of a case, and their memory. */
#include <linux/inet.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "floor.h"

#define FLOOR_MAX_SLOTS		64
#define FLOOR_RESOLVE_MS	5000

static void floor_comp(struct ib_cq *cq, void *context)
{
	struct floor_conn *conn = context;

	complete(&conn->completed);
}

static size_t floor_buf_size(struct floor_world *w)
{
	return PAGE_ALIGN(w->slot * w->slots);
}

static struct ib_cq *floor_make_cq(struct floor_conn *conn)
{
	struct ib_cq_init_attr attr = {
		.cqe = 2 * conn->world->config.depth,
	};

	return ib_create_cq(conn->world->pd->device, floor_comp, NULL, conn, &attr);
}

static int floor_make_qp(struct floor_conn *conn, struct rdma_cm_id *id, struct ib_cq **cq)
{
	struct floor_config *config = &conn->world->config;
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = config->depth,
			.max_recv_wr = config->sends ? 2 * config->depth : 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
	};
	int ret;

	*cq = floor_make_cq(conn);
	if (IS_ERR(*cq)) {
		ret = PTR_ERR(*cq);
		*cq = NULL;
		return ret;
	}
	attr.send_cq = *cq;
	attr.recv_cq = *cq;
	return rdma_create_qp(id, conn->world->pd, &attr);
}

static struct rdma_conn_param floor_conn_param(struct floor_conn *conn)
{
	u8 depth = min(16, conn->world->pd->device->attrs.max_qp_rd_atom);

	return (struct rdma_conn_param) {
		.initiator_depth = depth,
		.responder_resources = depth,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static int floor_answer(struct floor_world *w, struct rdma_cm_id *id)
{
	struct floor_conn *conn = w->connecting;
	struct rdma_conn_param param;
	int ret;

	if (!conn || conn->server)
		return -EBUSY;
	id->context = conn;
	ret = floor_make_qp(conn, id, &conn->recv_cq);
	if (ret)
		return ret;
	param = floor_conn_param(conn);
	/* The client may be established before rdma_accept() returns. */
	conn->server = id;
	ret = rdma_accept(id, &param);
	if (ret) {
		conn->server = NULL;
		rdma_destroy_qp(id);
	}
	return ret;
}

static int floor_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct floor_conn *conn = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return floor_answer(id->context, id);
	if (conn && id == conn->client) {
		conn->type = event->event;
		conn->status = event->status;
		complete(&conn->event);
	}
	return 0;
}

/* Wait for the event of a call that was made. */
static int floor_expect(struct floor_conn *conn, enum rdma_cm_event_type type)
{
	if (!wait_for_completion_timeout(&conn->event, FLOOR_DEADLINE))
		return -ETIMEDOUT;
	if (conn->type == type)
		return 0;
	return conn->status < 0 ? conn->status : -ECONNREFUSED;
}

static void floor_prepare(struct floor_world *w, struct floor_conn *conn)
{
	struct floor_config *config = &w->config;
	size_t offset = (conn - w->conns) % w->slots * w->slot;
	unsigned long i;

	conn->sge = (struct ib_sge) {
		.addr = w->dma[0] + offset,
		.length = config->size,
		.lkey = w->pd->local_dma_lkey,
	};
	conn->recv_sge = (struct ib_sge) {
		.addr = w->dma[1] + offset,
		.length = config->size ?: 1,
		.lkey = w->pd->local_dma_lkey,
	};
	for (i = 0; i < config->batch; i++) {
		bool last = i == config->batch - 1;

		conn->wr[i] = (struct ib_rdma_wr) {
			.wr = {
				/*
				 * The number of work requests that this
				 * completion reports.
				 */
				.wr_id = config->last ? config->batch : 1,
				.next = last ? NULL : &conn->wr[i + 1].wr,
				.sg_list = &conn->sge,
				.num_sge = 1,
				.opcode = config->opcode,
				.send_flags = config->last && !last ?
					      0 : IB_SEND_SIGNALED,
			},
			.remote_addr = conn->recv_sge.addr,
			.rkey = w->pd->unsafe_global_rkey,
		};
		conn->recv_wr[i] = (struct ib_recv_wr) {
			.next = last ? NULL : &conn->recv_wr[i + 1],
			.sg_list = &conn->recv_sge,
			.num_sge = 1,
		};
	}
}

static int floor_connect(struct floor_world *w, struct floor_conn *conn)
{
	struct rdma_conn_param param;
	struct rdma_cm_id *id;
	int ret;

	conn->world = w;
	init_completion(&conn->event);
	init_completion(&conn->completed);
	floor_prepare(w, conn);
	w->connecting = conn;
	id = rdma_create_id(current->nsproxy->net_ns, floor_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->client = id;
	ret = rdma_resolve_addr(id, NULL, (struct sockaddr *)&w->addr, FLOOR_RESOLVE_MS);
	if (!ret)
		ret = floor_expect(conn, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!ret)
		ret = rdma_resolve_route(id, FLOOR_RESOLVE_MS);
	if (!ret)
		ret = floor_expect(conn, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!ret)
		ret = floor_make_qp(conn, id, &conn->send_cq);
	if (!ret) {
		param = floor_conn_param(conn);
		ret = rdma_connect(id, &param);
	}
	if (!ret)
		ret = floor_expect(conn, RDMA_CM_EVENT_ESTABLISHED);
	return ret;
}

static void floor_destroy(struct rdma_cm_id *id, struct ib_cq *cq)
{
	if (id) {
		rdma_disconnect(id);
		if (id->qp)
			rdma_destroy_qp(id);
		rdma_destroy_id(id);
	}
	if (cq)
		ib_destroy_cq(cq);
}

void floor_close(struct floor_world *w)
{
	struct ib_device *device = w->pd ? w->pd->device : NULL;
	unsigned long i;

	for (i = 0; w->conns && i < w->config.conns; i++) {
		floor_destroy(w->conns[i].client, w->conns[i].send_cq);
		floor_destroy(w->conns[i].server, w->conns[i].recv_cq);
	}
	kvfree(w->conns);
	for (i = 0; i < 2; i++) {
		if (w->dma[i])
			ib_dma_unmap_single(device, w->dma[i], floor_buf_size(w),
					    DMA_BIDIRECTIONAL);
		if (w->buf[i])
			free_pages_exact(w->buf[i], floor_buf_size(w));
	}
	if (w->pd)
		ib_dealloc_pd(w->pd);
	if (w->listen)
		rdma_destroy_id(w->listen);
}

static int floor_buffers(struct floor_world *w)
{
	struct floor_config *config = &w->config;
	u64 dma;
	int i;

	w->slot = ALIGN(config->size ?: 1, 64);
	w->slots = w->slot > SZ_64K ? 1 : min_t(size_t, config->conns, FLOOR_MAX_SLOTS);
	for (i = 0; i < 2; i++) {
		w->buf[i] = alloc_pages_exact(floor_buf_size(w), GFP_KERNEL | __GFP_ZERO);
		if (!w->buf[i])
			return -ENOMEM;
		dma = ib_dma_map_single(w->pd->device, w->buf[i],
					floor_buf_size(w), DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(w->pd->device, dma))
			return -EIO;
		w->dma[i] = dma;
	}
	return 0;
}

int floor_open(struct floor_world *w)
{
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	unsigned long i;
	int ret;

	init_completion(&w->go);
	w->addr.sin_family = AF_INET;
	w->addr.sin_addr.s_addr = in_aton(w->config.addr);
	id = rdma_create_id(current->nsproxy->net_ns, floor_event, w, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	w->listen = id;
	ret = rdma_bind_addr(id, (struct sockaddr *)&w->addr);
	if (ret)
		return ret;
	if (!id->device)
		return -ENODEV;
	w->addr.sin_port = ((struct sockaddr_in *)&id->route.addr.src_addr)->sin_port;
	ret = rdma_listen(id, 16);
	if (ret)
		return ret;
	pd = ib_alloc_pd(id->device, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	w->pd = pd;
	ret = floor_buffers(w);
	if (ret)
		return ret;
	w->conns = kvcalloc(w->config.conns, sizeof(*w->conns), GFP_KERNEL);
	if (!w->conns)
		return -ENOMEM;
	for (i = 0; i < w->config.conns && !ret; i++)
		ret = floor_connect(w, &w->conns[i]);
	return ret;
}
