// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Endpoints: synchronous ids that are made from struct rdma_addrinfo. */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

#define RESOLVE_TIMEOUT_MS	2000

static int passive(struct rpost_id *priv, const struct rdma_addrinfo *res,
		   struct ibv_pd *pd, const struct ibv_qp_init_attr *attr)
{
	if (rdma_bind_addr(&priv->id, res->ai_src_addr))
		return -1;
	if (!attr)
		return 0;

	priv->qp_init_attr = malloc(sizeof(*attr));
	if (!priv->qp_init_attr)
		return -1;
	*priv->qp_init_attr = *attr;
	priv->qp_init_attr->qp_type = res->ai_qp_type;
	if (pd)
		priv->id.pd = pd;
	return 0;
}

static int save_connect_data(struct rpost_id *priv,
			     const struct rdma_addrinfo *res)
{
	if (!res->ai_connect_len)
		return 0;
	priv->connect = malloc(res->ai_connect_len);
	if (!priv->connect)
		return -1;
	memcpy(priv->connect, res->ai_connect, res->ai_connect_len);
	priv->connect_len = res->ai_connect_len;
	return 0;
}

static int route(struct rpost_id *priv, const struct rdma_addrinfo *res)
{
	if (!res->ai_route_len)
		return rdma_resolve_route(&priv->id, RESOLVE_TIMEOUT_MS);
	if (rdma_set_option(&priv->id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
			    res->ai_route, res->ai_route_len))
		return -1;
	return rpost_id_complete(priv);
}

static int active(struct rpost_id *priv, const struct rdma_addrinfo *res,
		  struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *id = &priv->id;

	if (res->ai_connect_len > UINT8_MAX)
		return rpost_fail(EINVAL);
	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr,
			      RESOLVE_TIMEOUT_MS) || route(priv, res))
		return -1;
	if (attr) {
		attr->qp_type = res->ai_qp_type;
		if (rdma_create_qp(id, pd, attr))
			return -1;
	}
	return save_connect_data(priv, res);
}

/**
 * rdma_create_ep() - make an endpoint, rdma_create_ep(3)
 * @id: set to the id, to be released by rdma_destroy_ep(); it operates
 *      synchronously
 * @res: from rdma_getaddrinfo(); with RAI_PASSIVE the id is bound and ready to
 *       listen, otherwise its address and route are resolved
 * @pd: protection domain for queue pairs, or NULL for the default one; ignored
 *      without @qp_init_attr
 * @qp_init_attr: attributes of a queue pair, or NULL for none; an active
 *                endpoint gets it at once, a passive endpoint for each request
 *                that rdma_get_request() returns; qp_type is taken from @res
 *
 * Return: 0, or -1 with errno: as rdma_create_id(), rdma_bind_addr(),
 * rdma_resolve_addr(), rdma_resolve_route() and rdma_create_qp().
 */
RPOST_API int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
			     struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct rdma_cm_id *new;
	int err, ret;

	if (rpost_id_create(NULL, &new, NULL, res->ai_port_space,
			    res->ai_qp_type))
		return -1;

	if (res->ai_flags & RAI_PASSIVE)
		ret = passive(rpost_id(new), res, pd, qp_init_attr);
	else
		ret = active(rpost_id(new), res, pd, qp_init_attr);
	if (ret) {
		err = errno;
		rdma_destroy_ep(new);
		return rpost_fail(err);
	}
	*id = new;
	return 0;
}

/**
 * rdma_destroy_ep() - release an endpoint, rdma_destroy_ep(3)
 * @id: the id; the call also destroys its queue pair, the completion queues
 *      that rdma_create_qp() made, and its shared receive queue
 */
RPOST_API void rdma_destroy_ep(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}

/*
 * Waits for the next request of a listening id.  Returns NULL with errno after
 * an event of another kind.
 */
static struct rdma_cm_event *next_request(struct rpost_id *priv)
{
	struct rdma_cm_event *event;

	for (;;) {
		if (rdma_get_cm_event(priv->id.channel, &event))
			return NULL;
		if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST &&
		    !event->status)
			return event;
		if (event->id == &priv->id) {
			priv->id.event = event;
			return rpost_null(rpost_event_errno(event));
		}
		/* An event of a request whose id has not left this channel. */
		rdma_ack_cm_event(event);
	}
}

/**
 * rdma_get_request() - wait for a connection request, rdma_get_request(3)
 * @listen: a listening id that operates synchronously
 * @id: set to the id of the request, which keeps the event until rdma_accept(),
 *      rdma_reject() or rdma_destroy_id(); it operates synchronously, and has a
 *      queue pair if the listening endpoint has attributes for one
 *
 * Return: 0, or -1 with errno: EINVAL for an id that operates asynchronously,
 * EINTR, ENODEV when the device has gone, and as rdma_create_qp(), after which
 * the request is rejected.
 */
RPOST_API int rdma_get_request(struct rdma_cm_id *listen,
			       struct rdma_cm_id **id)
{
	struct rpost_id *priv = rpost_id(listen);
	struct ibv_qp_init_attr attr;
	struct rdma_cm_event *event;
	struct rpost_event *evt;
	int err;

	if (!priv->sync)
		return rpost_fail(EINVAL);
	rpost_id_drop_event(priv);
	event = next_request(priv);
	if (!event)
		return -1;

	/* The new id keeps the event; @listen may be destroyed first. */
	evt = rpost_container_of(event, struct rpost_event, event);
	rpost_event_disown(evt);
	event->id->event = event;

	if (priv->qp_init_attr) {
		attr = *priv->qp_init_attr;
		if (rdma_create_qp(event->id, listen->pd, &attr)) {
			err = errno;
			rdma_destroy_id(event->id);
			return rpost_fail(err);
		}
	}
	*id = event->id;
	return 0;
}
