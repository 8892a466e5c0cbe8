// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connecting, accepting, rejecting and disconnecting. */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/* The default, and the most that the CM messages have bits for. */
#define RETRIES	7

static bool is_ud(const struct rpost_id *priv)
{
	return priv->id.qp_type == IBV_QPT_UD;
}

static int check_param(const struct rpost_id *priv,
		       const struct rdma_conn_param *param)
{
	const struct rpost_ctx *ctx = priv->ctx;

	if (!ctx)
		return EINVAL;
	if (!param || is_ud(priv))
		return 0;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > ctx->max_responder_resources)
		return EINVAL;
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > ctx->max_initiator_depth)
		return EINVAL;
	return 0;
}

static uint8_t min_u8(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

/* A depth that @param leaves open is the device's maximum, up to the limit. */
static void choose_depths(struct rpost_id *priv,
			  const struct rdma_conn_param *param,
			  uint8_t responder_limit, uint8_t initiator_limit)
{
	const struct rpost_ctx *ctx = priv->ctx;

	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		priv->responder_resources = param->responder_resources;
	else
		priv->responder_resources =
			min_u8(responder_limit, ctx->max_responder_resources);

	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		priv->initiator_depth = param->initiator_depth;
	else
		priv->initiator_depth =
			min_u8(initiator_limit, ctx->max_initiator_depth);
}

static int fill_private_data(const struct rpost_id *priv,
			     struct rpost_conn_param *out,
			     const struct rdma_conn_param *param)
{
	size_t len = param && param->private_data ? param->private_data_len : 0;

	if (priv->connect_len + len > UINT8_MAX)
		return EINVAL;
	if (priv->connect_len)
		memcpy(out->private_data, priv->connect, priv->connect_len);
	if (len)
		memcpy(out->private_data + priv->connect_len,
		       param->private_data, len);
	out->private_data_len = (uint8_t)(priv->connect_len + len);
	return 0;
}

/* cma knows the queue pairs that it owns; others need a number. */
static void fill_qp(const struct rpost_id *priv, struct rpost_conn_param *out,
		    const struct rdma_conn_param *param)
{
	const struct ibv_qp *qp = rpost_id_user_qp(priv);

	if (qp) {
		out->qp_num = qp->qp_num;
		out->srq = !!qp->srq;
	} else if (!(priv->qp && priv->qp->of_cm) && param) {
		out->qp_num = param->qp_num;
		out->srq = !!param->srq;
	}
}

static int fill_param(const struct rpost_id *priv,
		      struct rpost_conn_param *out,
		      const struct rdma_conn_param *param)
{
	fill_qp(priv, out, param);
	out->responder_resources = priv->responder_resources;
	out->initiator_depth = priv->initiator_depth;
	out->flow_control = param ? !!param->flow_control : 0;
	out->retry_count = param ? param->retry_count : RETRIES;
	out->rnr_retry_count = param ? param->rnr_retry_count : RETRIES;
	return fill_private_data(priv, out, param);
}

/**
 * rdma_connect() - ask the other side for a connection, rdma_connect(3)
 * @id: the id, with its route resolved; if it has no queue pair, qp_num and srq
 *      of the parameters describe one that the program owns
 * @conn_param: parameters, or NULL for no private data, 7 retries of either
 *              kind, and the device's maximum of reads and atomics, which
 *              RDMA_MAX_RESP_RES and RDMA_MAX_INIT_DEPTH stand for, too
 *
 * Private data of struct rdma_addrinfo precedes that of @conn_param.
 *
 * Results in RDMA_CM_EVENT_ESTABLISHED, _REJECTED, _UNREACHABLE or
 * _CONNECT_ERROR.  An id without a queue pair gets _CONNECT_RESPONSE instead of
 * _ESTABLISHED.  An id for datagrams asks for the other side's queue pair,
 * which the event names.
 *
 * Return: 0, or -1 with errno: EINVAL in another state, for depths above the
 * device's, or for more private data than the transport carries; in synchronous
 * operation ECONNREFUSED if the other side rejected, ETIMEDOUT, and other
 * errors of the event.
 */
RPOST_API int rdma_connect(struct rdma_cm_id *id,
			   struct rdma_conn_param *conn_param)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_connect cmd = {
		.id = rpost_id_handle(priv),
		.ece = priv->local_ece,
	};
	int err;

	err = check_param(priv, conn_param);
	if (err)
		return rpost_fail(err);
	choose_depths(priv, conn_param, UINT8_MAX, UINT8_MAX);
	err = fill_param(priv, &cmd.param, conn_param);
	if (!err)
		err = rpost_ioctl(priv->file->fd, RPOST_IOC_CONNECT, &cmd);
	if (err)
		return rpost_fail(err);

	free(priv->connect);
	priv->connect = NULL;
	priv->connect_len = 0;
	return rpost_id_complete(priv);
}

/**
 * rdma_listen() - listen for connection requests, rdma_listen(3)
 * @id: the id, bound
 * @backlog: requests that may wait to be fetched; below 1, and above the
 *           module's maximum, it means the maximum
 *
 * Return: 0, or -1 with errno: EINVAL in another state, EADDRINUSE.
 */
RPOST_API int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_listen cmd = {
		.id = rpost_id_handle(priv),
		.backlog = backlog > 0 ? backlog : 0,
	};
	int err;

	err = rpost_ioctl(priv->file->fd, RPOST_IOC_LISTEN, &cmd);
	if (!err)
		err = rpost_id_query(priv, false);
	return rpost_fail(err);
}

/**
 * rdma_accept() - accept a connection request, rdma_accept(3)
 * @id: the id of the request; if it has no queue pair, qp_num and srq of the
 *      parameters describe one that the program owns and has brought up
 * @conn_param: as for rdma_connect(), but default depths are the request's
 *
 * Results in RDMA_CM_EVENT_ESTABLISHED or RDMA_CM_EVENT_CONNECT_ERROR; in
 * RDMA_CM_EVENT_DISCONNECTED if the other side was established and has hung up since,
 * which is a success in synchronous operation, too; on ids for datagrams, in no event.
 *
 * Return: 0, or -1 with errno as rdma_connect().
 */
RPOST_API int rdma_accept(struct rdma_cm_id *id,
			  struct rdma_conn_param *conn_param)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_accept cmd = {
		.id = rpost_id_handle(priv),
		.ece = priv->local_ece,
	};
	int err;

	err = check_param(priv, conn_param);
	if (err)
		return rpost_fail(err);
	choose_depths(priv, conn_param, priv->responder_resources,
		      priv->initiator_depth);
	err = fill_param(priv, &cmd.param, conn_param);
	if (!err)
		err = rpost_id_ready_qp(priv);
	if (!err)
		err = rpost_ioctl(priv->file->fd, RPOST_IOC_ACCEPT, &cmd);
	if (err) {
		rpost_id_fail_qp(priv);
		return rpost_fail(err);
	}
	if (is_ud(priv)) {
		rpost_id_drop_event(priv);
		return 0;
	}
	return rpost_id_complete(priv);
}

static int reject(struct rdma_cm_id *id, const void *private_data,
		  uint8_t private_data_len, uint32_t reason)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_reject cmd = {
		.id = rpost_id_handle(priv),
		.reason = reason,
	};
	int err;

	if (private_data && private_data_len) {
		memcpy(cmd.private_data, private_data, private_data_len);
		cmd.private_data_len = private_data_len;
	}
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_REJECT, &cmd);
	if (err)
		return rpost_fail(err);
	rpost_id_drop_event(priv);
	return 0;
}

/**
 * rdma_reject() - reject a connection request or response, rdma_reject(3)
 * @id: the id of the request; the program should destroy it afterwards
 * @private_data: sent with the rejection, or NULL
 * @private_data_len: bytes of @private_data
 *
 * Return: 0, or -1 with errno: EINVAL for an id without a request or response
 * to answer, or for more private data than the transport carries.
 */
RPOST_API int rdma_reject(struct rdma_cm_id *id, const void *private_data,
			  uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len, 0);
}

/**
 * rdma_reject_ece() - reject the options of a connection, rdma_reject(3)
 * @id: as for rdma_reject()
 * @private_data: sent with the rejection, or NULL
 * @private_data_len: bytes of @private_data
 *
 * Return: as rdma_reject().
 */
RPOST_API int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			      uint8_t private_data_len)
{
	return reject(id, private_data, private_data_len,
		      RPOST_REJ_VENDOR_OPTION_NOT_SUPPORTED);
}

/*
 * DISCONNECT stops the queue pair of a connection if cma owns it.  The library
 * stops other queue pairs, and any queue pair without a connection.
 */
static int stop_qp(struct rpost_id *priv, bool connected)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = priv->id.qp;

	if (!qp || (connected && !rpost_id_user_qp(priv)))
		return 0;
	/* A queue pair of iWARP ends with its connection. */
	if (qp->context->device->transport_type == IBV_TRANSPORT_IWARP)
		return 0;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* As in librdmacm, it is an error only if no connection was requested. */
static int not_connected(struct rpost_id *priv)
{
	struct rpost_query_id q = { .id = rpost_id_handle(priv) };
	int err;

	err = rpost_ioctl(priv->file->fd, RPOST_IOC_QUERY_ID, &q);
	if (err)
		return err;
	switch (q.state) {
	case RPOST_ID_IDLE:
	case RPOST_ID_BOUND:
	case RPOST_ID_ADDR_QUERY:
	case RPOST_ID_ADDR_RESOLVED:
	case RPOST_ID_ROUTE_QUERY:
	case RPOST_ID_ROUTE_RESOLVED:
		return EINVAL;
	default:
		return 0;
	}
}

/**
 * rdma_disconnect() - end a connection, or answer its end, rdma_disconnect(3)
 * @id: the id
 *
 * In any state of the id its queue pair goes to the error state, which flushes
 * its work requests.  If there was a connection, both sides get
 * RDMA_CM_EVENT_DISCONNECTED; in synchronous operation the call waits for it
 * unless the connection has ended or failed already.
 *
 * Return: 0, also if a connection was requested but not established; or -1 with
 * errno: EINVAL if none has been requested, ENODEV when the device has gone.
 */
RPOST_API int rdma_disconnect(struct rdma_cm_id *id)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_disconnect cmd = { .id = rpost_id_handle(priv) };
	bool connected;
	int err;

	if (!id->verbs)
		return rpost_fail(EINVAL);
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_DISCONNECT, &cmd);
	connected = err != ENOTCONN;
	if (err && connected)
		return rpost_fail(err);
	err = stop_qp(priv, connected);
	if (!err && !connected)
		err = not_connected(priv);
	if (err || !connected || priv->ended)
		return rpost_fail(err);
	return rpost_id_complete(priv);
}
