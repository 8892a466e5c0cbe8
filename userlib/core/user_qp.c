// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs that the kernel's connection manager does not own.  The program
 * brings them up with attributes from the connection manager; the library does
 * that for ids of datagrams and of unreliable connections.
 */
#include <string.h>

#include "core/internal.h"

/* Returns 0 or an errno value. */
static int query_attr(struct rpost_id *priv, uint32_t state,
		      struct rpost_init_qp_attr *cmd)
{
	*cmd = (struct rpost_init_qp_attr) {
		.id = rpost_id_handle(priv),
		.attr.qp_state = state,
	};

	return rpost_ioctl(priv->file->fd, RPOST_IOC_INIT_QP_ATTR, cmd);
}

/**
 * rdma_init_qp_attr() - get attributes for the next state of a queue pair,
 * rdma_init_qp_attr(3)
 * @id: the id that connects the queue pair, bound to a device
 * @qp_attr: qp_state is the state to reach; filled in
 * @qp_attr_mask: set to enum ibv_qp_attr_mask, for ibv_modify_qp()
 *
 * Return: 0, or -1 with errno: EINVAL for a state that the connection is not
 * ready for.
 */
RPOST_API int rdma_init_qp_attr(struct rdma_cm_id *id,
				struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	struct rpost_init_qp_attr cmd;
	int err;

	if (!id || !qp_attr || !qp_attr_mask)
		return rpost_fail(EINVAL);
	err = query_attr(rpost_id(id), qp_attr->qp_state, &cmd);
	if (err)
		return rpost_fail(err);

	memset(&qp_attr->cap, 0, sizeof(qp_attr->cap));
	rpost_qp_attr_unpack(qp_attr, &cmd.attr);
	*qp_attr_mask = (int)cmd.attr.attr_mask;
	return 0;
}

int rpost_id_establish(struct rpost_id *priv)
{
	struct rpost_establish cmd = { .id = rpost_id_handle(priv) };

	return rpost_ioctl(priv->file->fd, RPOST_IOC_ESTABLISH, &cmd);
}

/**
 * rdma_establish() - complete a connection, rdma_establish(3)
 * @id: the id, without a queue pair, after RDMA_CM_EVENT_CONNECT_RESPONSE
 *
 * The other side gets RDMA_CM_EVENT_ESTABLISHED.
 *
 * Return: 0, or -1 with errno: EINVAL in another state or for an id with a
 * queue pair.
 */
RPOST_API int rdma_establish(struct rdma_cm_id *id)
{
	if (id->qp)
		return rpost_fail(EINVAL);
	return rpost_fail(rpost_id_establish(rpost_id(id)));
}

/**
 * rdma_notify() - report an event of a queue pair, rdma_notify(3)
 * @id: the id that connects the queue pair
 * @event: IBV_EVENT_COMM_EST: the queue pair has received data, so that the
 *         connection is established
 *
 * Return: 0, or -1 with errno: EISCONN for a connection that is established
 * already, EINVAL for another event or an id in a state without such events,
 * EOPNOTSUPP for IBV_EVENT_PATH_MIG.
 */
RPOST_API int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_notify cmd = {
		.id = rpost_id_handle(priv),
		.event = event,
	};

	return rpost_fail(rpost_ioctl(priv->file->fd, RPOST_IOC_NOTIFY, &cmd));
}

static int modify(struct rpost_id *priv, struct ibv_qp *qp,
		  enum ibv_qp_state state)
{
	struct rpost_init_qp_attr cmd;
	struct ibv_qp_attr attr = {};
	int err;

	err = query_attr(priv, state, &cmd);
	if (err)
		return err;
	rpost_qp_attr_unpack(&attr, &cmd.attr);
	return ibv_modify_qp(qp, &attr, (int)cmd.attr.attr_mask);
}

int rpost_id_init_qp(struct rpost_id *priv, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	int err;

	err = modify(priv, qp, IBV_QPS_INIT);
	if (err || qp->qp_type != IBV_QPT_UD)
		return err;
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* Returns the queue pair whose state follows the connection, or NULL. */
static struct ibv_qp *connected_qp(const struct rpost_id *priv)
{
	return priv->id.qp_type == IBV_QPT_UD ? NULL : rpost_id_user_qp(priv);
}

int rpost_id_ready_qp(struct rpost_id *priv)
{
	struct ibv_qp *qp = connected_qp(priv);
	int err;

	if (!qp)
		return 0;
	/* The connection has set the rights of the peer, which INIT gives. */
	err = modify(priv, qp, IBV_QPS_INIT);
	if (!err)
		err = modify(priv, qp, IBV_QPS_RTR);
	return err ? err : modify(priv, qp, IBV_QPS_RTS);
}

void rpost_id_fail_qp(struct rpost_id *priv)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = connected_qp(priv);

	if (qp)
		ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}
