// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of ids: asking, answering, ending.  On ids for datagrams there is
 * one question, where to send to, and one answer.
 */
#include <rdma/ib_cm.h>

#include "rpost.h"

/*
 * The connection manager believes any number, and on the other side a number
 * stands for a connection: two with the same end each other.
 */
static bool rpost_qp_owned(struct rpost_file *file, struct ib_device *ib_dev,
			   u32 qp_num)
{
	struct rpost_obj *obj;
	struct rpost_qp *qp;
	bool owned = false;
	u32 index = 0;

	while (!owned && (obj = rpost_obj_next(file, &index, RPOST_OBJ_QP))) {
		qp = container_of(obj, struct rpost_qp, obj);
		owned = qp->qp_num == qp_num && qp->obj.dev->ib_dev == ib_dev &&
			rpost_device_alive(qp->obj.dev);
		rpost_obj_put(obj);
	}
	return owned;
}

/* @named: the number matters.  Who asks for an address says none. */
static int rpost_check_qp_num(const struct rpost_id *id, u32 qp_num, bool named)
{
	struct rdma_cm_id *cm_id = id->cm_id;

	if (id->qp)
		return 0;
	/* iWARP would take the queue pair over, whosever it is. */
	if (!rdma_cap_ib_cm(cm_id->device, cm_id->port_num))
		return -EOPNOTSUPP;
	return !named || rpost_qp_owned(id->obj.file, cm_id->device, qp_num) ?
		0 : -EINVAL;
}

static int rpost_conn_param(const struct rpost_id *id,
			    struct rdma_conn_param *to,
			    const struct rpost_conn_param *from)
{
	if (id->qp && (from->qp_num || from->srq))
		return -EOPNOTSUPP;
	if (from->srq > 1)
		return -EINVAL;
	*to = (struct rdma_conn_param) {
		.private_data = from->private_data_len ? from->private_data :
							 NULL,
		.private_data_len = from->private_data_len,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.flow_control = from->flow_control,
		.retry_count = from->retry_count,
		.rnr_retry_count = from->rnr_retry_count,
		.srq = from->srq,
		.qp_num = from->qp_num,
	};
	return 0;
}

static bool rpost_conn_param_reserved(const struct rpost_conn_param *param)
{
	return memchr_inv(param->reserved, 0, sizeof(param->reserved));
}

static int rpost_connect_locked(struct rpost_id *id,
				const struct rpost_connect *cmd)
{
	struct rdma_cm_id *cm_id = id->cm_id;
	struct rdma_ucm_ece ece = {
		.vendor_id = cmd->ece.vendor_id,
		.attr_mod = cmd->ece.attr_mod,
	};
	struct rdma_conn_param param;
	int ret;

	ret = rpost_conn_param(id, &param, &cmd->param);
	if (ret)
		return ret;
	if (!cm_id->device)
		return -EINVAL;
	ret = rpost_check_qp_num(id, param.qp_num,
				 cm_id->qp_type != IB_QPT_UD);
	if (ret)
		return ret;
	ret = rpost_id_move(id, BIT(RPOST_ID_ROUTE_RESOLVED),
			    RPOST_ID_CONNECTING);
	if (ret)
		return ret;
	ret = rdma_connect_ece(cm_id, &param, &ece);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_CONNECTING),
			      RPOST_ID_ROUTE_RESOLVED);
	return ret;
}

/**
 * rpost_connect_ioctl() - ask the other side for a connection
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_connect_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_connect *cmd = &ucmd->cmd.connect;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved || rpost_conn_param_reserved(&cmd->param))
		return -EOPNOTSUPP;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rpost_connect_locked(id, cmd);
	rpost_id_exit(id);
	return ret;
}

/*
 * cma rejects the connection if it is given more than fits.  @max is for
 * connections; the answer to a question for an address takes less.
 */
static int rpost_check_private_data(struct rdma_cm_id *cm_id, u32 len, u32 max)
{
	if (cm_id->qp_type == IB_QPT_UD)
		max = IB_CM_SIDR_REP_PRIVATE_DATA_SIZE;
	if (rdma_cap_ib_cm(cm_id->device, cm_id->port_num) && len > max)
		return -EINVAL;
	return 0;
}

static int rpost_accept_check(const struct rpost_id *id,
			      const struct rpost_accept *cmd)
{
	int ret;

	/* Then it has a device, too. */
	if (READ_ONCE(id->state) != RPOST_ID_REQUEST)
		return -EINVAL;
	if (cmd->qkey && id->cm_id->qp_type != IB_QPT_UD)
		return -EINVAL;
	ret = rpost_check_qp_num(id, cmd->param.qp_num, true);
	if (ret)
		return ret;
	return rpost_check_private_data(id->cm_id, cmd->param.private_data_len,
					IB_CM_REP_PRIVATE_DATA_SIZE);
}

static int rpost_accept_locked(struct rpost_id *id,
			       const struct rpost_accept *cmd)
{
	struct rdma_cm_id *cm_id = id->cm_id;
	struct rdma_ucm_ece ece = {
		.vendor_id = cmd->ece.vendor_id,
		.attr_mod = cmd->ece.attr_mod,
	};
	struct rdma_conn_param param;
	int ret;

	ret = rpost_conn_param(id, &param, &cmd->param);
	if (ret)
		return ret;
	ret = rpost_accept_check(id, cmd);
	if (ret)
		return ret;
	param.qkey = cmd->qkey;
	ret = rpost_id_move(id, BIT(RPOST_ID_REQUEST), RPOST_ID_ACCEPTING);
	if (ret)
		return ret;

	rdma_lock_handler(cm_id);
	ret = rdma_accept_ece(cm_id, &param, &ece);
	if (!ret)
		id->unaccepted = false;
	rdma_unlock_handler(cm_id);
	WRITE_ONCE(id->can_send, true);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_ACCEPTING), RPOST_ID_ERROR);
	else if (cm_id->qp_type == IB_QPT_UD)
		rpost_id_move(id, BIT(RPOST_ID_ACCEPTING), RPOST_ID_CONNECTED);
	return ret;
}

/**
 * rpost_accept_ioctl() - accept a connection request
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_accept_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_accept *cmd = &ucmd->cmd.accept;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved || cmd->reserved2 ||
	    rpost_conn_param_reserved(&cmd->param))
		return -EOPNOTSUPP;
	ret = rpost_check_qkey(cmd->qkey);
	if (ret)
		return ret;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rpost_accept_locked(id, cmd);
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_establish_ioctl() - complete a connection that has been answered
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_establish_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_establish *cmd = &ucmd->cmd.establish;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	rdma_lock_handler(id->cm_id);
	ret = -EINVAL;
	if (id->responded)
		ret = rpost_id_move(id, BIT(RPOST_ID_CONNECTING),
				    RPOST_ID_CONNECTED);
	if (!ret) {
		ret = rdma_accept(id->cm_id, NULL);
		if (ret)
			rpost_id_move(id, BIT(RPOST_ID_CONNECTED),
				      RPOST_ID_ERROR);
	}
	rdma_unlock_handler(id->cm_id);
	rpost_id_exit(id);
	return ret;
}

static int rpost_reject_locked(struct rpost_id *id,
			       const struct rpost_reject *cmd)
{
	struct rdma_cm_id *cm_id = id->cm_id;
	u32 from = BIT(RPOST_ID_REQUEST);
	int ret;

	/* A listening or idle id has no device to ask. */
	if (!cm_id->device)
		return -EINVAL;
	ret = rpost_check_private_data(cm_id, cmd->private_data_len,
				       IB_CM_REJ_PRIVATE_DATA_SIZE);
	if (ret)
		return ret;

	rdma_lock_handler(cm_id);
	if (id->responded)
		from |= BIT(RPOST_ID_CONNECTING);
	ret = rpost_id_move(id, from, RPOST_ID_ERROR);
	if (!ret)
		ret = rdma_reject(cm_id, cmd->private_data_len ?
					 cmd->private_data : NULL,
				  cmd->private_data_len, cmd->reason);
	rdma_unlock_handler(cm_id);
	return ret;
}

/**
 * rpost_reject_ioctl() - reject a connection request, or a response
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_reject_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_reject *cmd = &ucmd->cmd.reject;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (cmd->private_data_len > U8_MAX)
		return -EINVAL;
	switch (cmd->reason) {
	case 0:
		cmd->reason = RPOST_REJ_CONSUMER_DEFINED;
		break;
	case RPOST_REJ_CONSUMER_DEFINED:
	case RPOST_REJ_VENDOR_OPTION_NOT_SUPPORTED:
		break;
	default:
		return -EINVAL;
	}
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);
	ret = rpost_reject_locked(id, cmd);
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_disconnect_ioctl() - end a connection
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_disconnect_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_disconnect *cmd = &ucmd->cmd.disconnect;
	struct rpost_id *id;
	int ret = -ENOTCONN;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	switch (READ_ONCE(id->state)) {
	case RPOST_ID_ACCEPTING:
	case RPOST_ID_CONNECTED:
	case RPOST_ID_DISCONNECTED:
		/* Datagrams need no connection. */
		if (id->cm_id->qp_type == IB_QPT_UD)
			break;
		if (id->qp)
			WRITE_ONCE(id->qp->failed, true);
		ret = rdma_disconnect(id->cm_id);
		break;
	default:
		break;
	}
	rpost_id_exit(id);
	return ret;
}
