// SPDX-License-Identifier: GPL-2.0
/*
 * Options of ids, and commands for programs that own their queue pairs.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/rdma_cm_ib.h>

#include "core/device.h"
#include "queue/qp.h"

#define RPOST_MAX_PATH_RECORDS	64
/* The InfiniBand specification codes times as powers of two. */
#define RPOST_MAX_TIME_CODE	31

static int rpost_set_id_option(struct rpost_id *id, void *arg)
{
	const struct rpost_set_option *cmd = arg;
	struct rdma_cm_id *cm_id = id->cm_id;

	switch (cmd->option) {
	case RPOST_OPTION_ID_TOS:
		if (cmd->value > U8_MAX)
			return -EINVAL;
		rdma_set_service_type(cm_id, cmd->value);
		return 0;
	case RPOST_OPTION_ID_REUSEADDR:
		return cmd->value > 1 ? -EINVAL :
		       rdma_set_reuseaddr(cm_id, cmd->value);
	case RPOST_OPTION_ID_AFONLY:
		return cmd->value > 1 ? -EINVAL :
		       rdma_set_afonly(cm_id, cmd->value);
	case RPOST_OPTION_ID_ACK_TIMEOUT:
		/* cma shifts by this value. */
		return cmd->value > RPOST_MAX_TIME_CODE ? -EINVAL :
		       rdma_set_ack_timeout(cm_id, cmd->value);
	default:
		return -EOPNOTSUPP;
	}
}

/* The layers below shift by these or look them up without a check. */
static bool rpost_path_valid(const struct sa_path_rec *path)
{
	return path->mtu >= IB_MTU_256 && path->mtu <= IB_MTU_4096 &&
	       (path->rate == IB_RATE_PORT_CURRENT ||
		ib_rate_to_mbps(path->rate) > 0) &&
	       path->packet_life_time <= RPOST_MAX_TIME_CODE;
}

static int rpost_set_ib_path(struct rpost_id *id, void *arg)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_ROUTE_RESOLVED };
	struct rdma_cm_id *cm_id = id->cm_id;
	struct sa_path_rec *path = arg;
	struct sa_path_rec opa;
	int ret;

	ret = rpost_id_check_device(id, BIT(RPOST_ID_ADDR_RESOLVED));
	if (ret)
		return ret;
	if (!rdma_cap_ib_cm(cm_id->device, cm_id->port_num))
		return -EOPNOTSUPP;
	/* The path leads wherever it says. */
	ret = rpost_path_allowed(id);
	if (ret)
		return ret;
	/* cma would leak the path of a resolution that failed. */
	if (cm_id->route.path_rec)
		return -EINVAL;
	if (rdma_cap_opa_ah(cm_id->device, cm_id->port_num)) {
		sa_convert_path_ib_to_opa(&opa, path);
		path = &opa;
	}
	ret = rpost_id_check_events(id);
	if (ret)
		return ret;
	ret = rpost_id_move(id, BIT(RPOST_ID_ADDR_RESOLVED), RPOST_ID_ROUTE_QUERY);
	if (ret)
		return ret;
	ret = rdma_set_ib_path(cm_id, path);
	if (ret) {
		rpost_id_move(id, BIT(RPOST_ID_ROUTE_QUERY), RPOST_ID_ADDR_RESOLVED);
		return ret;
	}
	id->own_path = true;
	rdma_lock_handler(cm_id);
	ret = rpost_id_handler(cm_id, &event);
	rdma_unlock_handler(cm_id);
	return ret;
}

/* Get the first record for both directions and all messages. */
static int rpost_get_ib_path(const struct rpost_set_option *cmd, struct sa_path_rec *path)
{
	const u32 want = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	u32 i, n = cmd->data_len / sizeof(struct ib_path_rec_data);
	struct ib_path_rec_data *data;
	int ret = -EINVAL;

	if (cmd->value || !n || n > RPOST_MAX_PATH_RECORDS ||
	    cmd->data_len % sizeof(*data))
		return -EINVAL;
	data = memdup_user(u64_to_user_ptr(cmd->data), cmd->data_len);
	if (IS_ERR(data))
		return PTR_ERR(data);
	for (i = 0; i < n; i++) {
		if (data[i].flags != want)
			continue;
		memset(path, 0, sizeof(*path));
		path->rec_type = SA_PATH_REC_TYPE_IB;
		ib_sa_unpack_path(data[i].path_rec, path);
		if (rpost_path_valid(path))
			ret = 0;
		break;
	}
	kfree(data);
	return ret;
}

int rpost_set_option_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_set_option *cmd = &ucmd->cmd.set_option;
	struct sa_path_rec path;

	if (cmd->reserved || cmd->level > RPOST_OPTION_IB)
		return -EOPNOTSUPP;
	if (cmd->level == RPOST_OPTION_IB) {
		if (cmd->option != RPOST_OPTION_IB_PATH)
			return -EOPNOTSUPP;
		return rpost_get_ib_path(cmd, &path) ? :
		       rpost_id_run(ucmd->file, cmd->id, rpost_set_ib_path, &path);
	}
	if (cmd->data || cmd->data_len)
		return -EINVAL;
	return rpost_id_run(ucmd->file, cmd->id, rpost_set_id_option, cmd);
}

static int rpost_notify_locked(struct rpost_id *id, void *arg)
{
	const struct rpost_notify *cmd = arg;
	int ret;

	rdma_lock_handler(id->cm_id);
	ret = id->cm_id->device ? rdma_notify(id->cm_id, cmd->event) : -EINVAL;
	rdma_unlock_handler(id->cm_id);
	return ret;
}

int rpost_notify_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_notify *cmd = &ucmd->cmd.notify;

	/* ib_cm copies the alternate path without the references it holds. */
	if (cmd->event == RPOST_ASYNC_PATH_MIG)
		return -EOPNOTSUPP;
	if (cmd->event != RPOST_ASYNC_COMM_EST)
		return -EINVAL;
	return rpost_id_run(ucmd->file, cmd->id, rpost_notify_locked, cmd);
}

static int rpost_init_qp_attr_locked(struct rpost_id *id, void *arg)
{
	struct rpost_init_qp_attr *cmd = arg;
	struct ib_qp_attr attr = { .qp_state = cmd->attr.qp_state };
	int ret = -EINVAL, mask = 0;

	rdma_lock_handler(id->cm_id);
	if (id->cm_id->device)
		ret = rdma_init_qp_attr(id->cm_id, &attr, &mask);
	rdma_unlock_handler(id->cm_id);
	if (ret)
		return ret == -ENOENT ? -EINVAL : ret;
	/* Without a connection cma returns INIT's attributes for any state. */
	if (cmd->attr.qp_state != RPOST_QPS_INIT && (mask & IB_QP_PORT))
		return -EINVAL;

	cmd->attr.attr_mask = mask;
	rpost_qp_attr_fill(&cmd->attr, &attr);
	return 0;
}

int rpost_init_qp_attr_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_init_qp_attr *cmd = &ucmd->cmd.init_qp_attr;

	if (cmd->reserved || memchr_inv(cmd->attr.reserved, 0, sizeof(cmd->attr.reserved)))
		return -EOPNOTSUPP;
	if (cmd->attr.qp_state > RPOST_QPS_ERR)
		return -EINVAL;
	return rpost_id_run(ucmd->file, cmd->id, rpost_init_qp_attr_locked, cmd) ? :
	       rpost_respond(ucmd);
}
