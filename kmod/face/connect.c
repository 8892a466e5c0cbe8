// SPDX-License-Identifier: GPL-2.0
/*
 * Connections of ids: CONNECT, ACCEPT, REJECT, DISCONNECT.  On datagram ids,
 * CONNECT asks the peer for its address and ACCEPT answers.
 */
#include <rdma/ib_cm.h>

#include "core/device.h"
#include "queue/qp.h"

/*
 * Find the file's queue pair with this number; cma accepts any number.  The
 * reference makes DESTROY wait, until the id has named it.
 */
static struct rpost_qp *rpost_qp_by_num(struct rpost_file *file,
					struct ib_device *ib_dev, u32 qp_num)
{
	struct rpost_qp *qp;

	rcu_read_lock();
	hash_for_each_possible_rcu(file->qps, qp, by_num, qp_num) {
		/* With a reference its device stays. */
		if (qp->qp_num != qp_num || !refcount_inc_not_zero(&qp->obj.refs))
			continue;
		if (qp->obj.dev->ib_dev == ib_dev &&
		    !READ_ONCE(qp->obj.hidden) &&
		    rpost_device_alive(qp->obj.dev))
			goto out;
		rpost_obj_put(&qp->obj);
	}
	qp = NULL;
out:
	rcu_read_unlock();
	return qp;
}

/*
 * May the id name this number?  It @matters unless the id asks for an address.
 * Set @qp to a queue pair with a reference, or NULL.
 */
static int rpost_check_qp_num(struct rpost_id *id, u32 qp_num, bool matters, struct rpost_qp **qp)
{
	struct rdma_cm_id *cm_id = id->cm_id;

	*qp = NULL;
	if (id->qp)
		return 0;
	/* iWARP would take over any program's queue pair with this number. */
	if (!rdma_cap_ib_cm(cm_id->device, cm_id->port_num))
		return -EOPNOTSUPP;
	if (!matters)
		return 0;
	*qp = rpost_qp_by_num(id->obj.file, cm_id->device, qp_num);
	return *qp ? 0 : -EINVAL;
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

static int rpost_connect_locked(struct rpost_id *id, void *arg)
{
	const struct rpost_connect *cmd = arg;
	struct rdma_cm_id *cm_id = id->cm_id;
	struct rdma_ucm_ece ece = {
		.vendor_id = cmd->ece.vendor_id,
		.attr_mod = cmd->ece.attr_mod,
	};
	struct rdma_conn_param param;
	struct rpost_qp *qp;
	int ret;

	ret = rpost_conn_param(id, &param, &cmd->param);
	if (ret)
		return ret;
	/* The policy may be newer than the route. */
	ret = rpost_id_check_device(id, BIT(RPOST_ID_ROUTE_RESOLVED)) ? :
	      rpost_sockaddr_allowed(id->obj.file, &cm_id->route.addr.dst_addr, false);
	if (!ret && id->own_path)
		ret = rpost_path_allowed(id);
	if (ret)
		return ret;
	ret = rpost_check_qp_num(id, param.qp_num, cm_id->qp_type != IB_QPT_UD, &qp);
	if (ret)
		return ret;
	ret = rpost_id_move(id, BIT(RPOST_ID_ROUTE_RESOLVED), RPOST_ID_CONNECTING);
	if (ret)
		goto out;
	ret = rdma_connect_ece(cm_id, &param, &ece);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_CONNECTING), RPOST_ID_ROUTE_RESOLVED);
	else
		rpost_id_name_qp(id, cm_id->device, param.qp_num);
out:
	if (qp)
		rpost_obj_put(&qp->obj);
	return ret;
}

int rpost_connect_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_connect *cmd = &ucmd->cmd.connect;

	if (cmd->reserved || rpost_conn_param_reserved(&cmd->param))
		return -EOPNOTSUPP;
	return rpost_id_run(ucmd->file, cmd->id, rpost_connect_locked, cmd);
}

/*
 * cma rejects the connection if the private data is too long.  @max is for
 * connections; the answer to a request for an address (SIDR) takes less.
 */
static int rpost_check_private_data(struct rdma_cm_id *cm_id, u32 len, u32 max)
{
	if (cm_id->qp_type == IB_QPT_UD)
		max = IB_CM_SIDR_REP_PRIVATE_DATA_SIZE;
	if (rdma_cap_ib_cm(cm_id->device, cm_id->port_num) && len > max)
		return -EINVAL;
	return 0;
}

static int rpost_accept_check(struct rpost_id *id, const struct rpost_accept *cmd)
{
	int ret;

	if (cmd->qkey && id->cm_id->qp_type != IB_QPT_UD)
		return -EINVAL;
	/* The policy may be newer than the listening id. */
	ret = rpost_id_check_device(id, BIT(RPOST_ID_REQUEST)) ? :
	      rpost_sockaddr_allowed(id->obj.file, &id->cm_id->route.addr.src_addr, true);
	if (ret)
		return ret;
	return rpost_check_private_data(id->cm_id, cmd->param.private_data_len,
					IB_CM_REP_PRIVATE_DATA_SIZE);
}

static int rpost_accept_cm(struct rpost_id *id, struct rdma_conn_param *param,
			   struct rdma_ucm_ece *ece)
{
	struct rdma_cm_id *cm_id = id->cm_id;
	int ret;

	rdma_lock_handler(cm_id);
	ret = rdma_accept_ece(cm_id, param, ece);
	if (!ret)
		id->unaccepted = false;
	rdma_unlock_handler(cm_id);
	WRITE_ONCE(id->can_send, true);
	if (ret) {
		rpost_id_move(id, BIT(RPOST_ID_ACCEPTING), RPOST_ID_ERROR);
		return ret;
	}
	rpost_id_name_qp(id, cm_id->device, param->qp_num);
	if (cm_id->qp_type == IB_QPT_UD)
		rpost_id_move(id, BIT(RPOST_ID_ACCEPTING), RPOST_ID_CONNECTED);
	return 0;
}

static int rpost_accept_locked(struct rpost_id *id, void *arg)
{
	const struct rpost_accept *cmd = arg;
	struct rdma_ucm_ece ece = {
		.vendor_id = cmd->ece.vendor_id,
		.attr_mod = cmd->ece.attr_mod,
	};
	struct rdma_conn_param param;
	struct rpost_qp *qp;
	int ret;

	ret = rpost_conn_param(id, &param, &cmd->param);
	if (ret)
		return ret;
	ret = rpost_accept_check(id, cmd);
	if (ret)
		return ret;
	ret = rpost_check_qp_num(id, param.qp_num, true, &qp);
	if (ret)
		return ret;
	param.qkey = cmd->qkey;
	ret = rpost_id_move(id, BIT(RPOST_ID_REQUEST), RPOST_ID_ACCEPTING);
	if (!ret)
		ret = rpost_accept_cm(id, &param, &ece);
	if (qp)
		rpost_obj_put(&qp->obj);
	return ret;
}

int rpost_accept_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_accept *cmd = &ucmd->cmd.accept;
	int ret;

	if (cmd->reserved || cmd->reserved2 ||
	    rpost_conn_param_reserved(&cmd->param))
		return -EOPNOTSUPP;
	ret = rpost_check_qkey(cmd->qkey);
	if (ret)
		return ret;
	return rpost_id_run(ucmd->file, cmd->id, rpost_accept_locked, cmd);
}

static int rpost_establish_locked(struct rpost_id *id, void *arg)
{
	int ret = -EINVAL;

	rdma_lock_handler(id->cm_id);
	if (id->responded && (id->qp || id->qp_num))
		ret = rpost_id_move(id, RPOST_ID_MAY_REPLY, RPOST_ID_CONNECTED);
	if (!ret) {
		id->responded = false;
		ret = rdma_accept(id->cm_id, NULL);
		if (ret)
			rpost_id_move(id, BIT(RPOST_ID_CONNECTED), RPOST_ID_ERROR);
	}
	rdma_unlock_handler(id->cm_id);
	return ret;
}

int rpost_establish_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_establish *cmd = &ucmd->cmd.establish;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	return rpost_id_run(ucmd->file, cmd->id, rpost_establish_locked, cmd);
}

static int rpost_reject_locked(struct rpost_id *id, void *arg)
{
	const struct rpost_reject *cmd = arg;
	struct rdma_cm_id *cm_id = id->cm_id;
	u32 from = BIT(RPOST_ID_REQUEST);
	int ret;

	/* A listening or idle id has no device to ask. */
	if (!cm_id->device)
		return -EINVAL;
	ret = rpost_check_private_data(cm_id, cmd->private_data_len, IB_CM_REJ_PRIVATE_DATA_SIZE);
	if (ret)
		return ret;

	rdma_lock_handler(cm_id);
	if (id->responded)
		from |= RPOST_ID_MAY_REPLY;
	ret = rpost_id_move(id, from, RPOST_ID_ERROR);
	if (!ret) {
		id->responded = false;
		ret = rdma_reject(cm_id, cmd->private_data_len ?
					 cmd->private_data : NULL,
				  cmd->private_data_len, cmd->reason);
	}
	rdma_unlock_handler(cm_id);
	return ret;
}

int rpost_reject_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_reject *cmd = &ucmd->cmd.reject;

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
	return rpost_id_run(ucmd->file, cmd->id, rpost_reject_locked, cmd);
}

static int rpost_disconnect_locked(struct rpost_id *id, void *arg)
{
	/* Datagram ids have no connection to end. */
	if (id->cm_id->qp_type == IB_QPT_UD ||
	    (!rpost_id_connected(id) && READ_ONCE(id->state) != RPOST_ID_DISCONNECTED))
		return -ENOTCONN;
	if (id->qp)
		WRITE_ONCE(id->qp->failed, true);
	return rdma_disconnect(id->cm_id);
}

int rpost_disconnect_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_disconnect *cmd = &ucmd->cmd.disconnect;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	return rpost_id_run(ucmd->file, cmd->id, rpost_disconnect_locked, cmd);
}
