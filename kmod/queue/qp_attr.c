// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of queue pairs: MODIFY_QP and QUERY_QP; and their counts: COUNT_WRS.
 */
#include <linux/capability.h>

#include "compat/compat.h"
#include "memory/memory.h"
#include "queue/qp.h"
#include "queue/srq.h"

#define RPOST_QP_MASK							\
	(RPOST_QP_STATE | RPOST_QP_CUR_STATE |				\
	 RPOST_QP_EN_SQD_ASYNC_NOTIFY | RPOST_QP_ACCESS_FLAGS |		\
	 RPOST_QP_PKEY_INDEX | RPOST_QP_PORT | RPOST_QP_QKEY |		\
	 RPOST_QP_AV | RPOST_QP_PATH_MTU | RPOST_QP_TIMEOUT |		\
	 RPOST_QP_RETRY_CNT | RPOST_QP_RNR_RETRY | RPOST_QP_RQ_PSN |	\
	 RPOST_QP_MAX_QP_RD_ATOMIC | RPOST_QP_ALT_PATH |		\
	 RPOST_QP_MIN_RNR_TIMER | RPOST_QP_SQ_PSN |			\
	 RPOST_QP_MAX_DEST_RD_ATOMIC | RPOST_QP_PATH_MIG_STATE |	\
	 RPOST_QP_DEST_QPN | RPOST_QP_RATE_LIMIT)

#define RPOST_QP_ACCESS_MASK						\
	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE |		\
	 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC |	\
	 RPOST_ACCESS_FLUSH_GLOBAL | RPOST_ACCESS_FLUSH_PERSISTENT)

/* Rights that no peer can use, since the kernel has no flush. */
#define RPOST_QP_ACCESS_VOID						\
	((RPOST_ACCESS_FLUSH_GLOBAL | RPOST_ACCESS_FLUSH_PERSISTENT) &	\
	 ~RPOST_COMPAT_ACCESS_FLUSH)

#define RPOST_PSN_MASK		0xffffff

static_assert(RPOST_QP_STATE == (int)IB_QP_STATE);
static_assert(RPOST_QP_AV == (int)IB_QP_AV);
static_assert(RPOST_QP_ALT_PATH == (int)IB_QP_ALT_PATH);
static_assert(RPOST_QP_PATH_MIG_STATE == (int)IB_QP_PATH_MIG_STATE);
static_assert(RPOST_QP_DEST_QPN == (int)IB_QP_DEST_QPN);
static_assert(RPOST_QP_RATE_LIMIT == (int)IB_QP_RATE_LIMIT);
static_assert(RPOST_QPS_ERR == (int)IB_QPS_ERR);

/* Return 0, or -EPERM if the program may not use the queue key. */
int rpost_check_qkey(u32 qkey)
{
	if ((qkey & IB_QP_SET_QKEY) && !capable(CAP_NET_RAW))
		return -EPERM;
	return 0;
}

/*
 * Drivers rely on the checks of uverbs, and some on values that its programs
 * never pass.  Fields without their mask bit are ignored.
 */
static int rpost_qp_attr_check(const struct rpost_qp_attr *attr, struct ib_device *ib_dev)
{
	u32 mask = attr->attr_mask;

	if ((mask & ~RPOST_QP_MASK) ||
	    memchr_inv(attr->reserved, 0, sizeof(attr->reserved)))
		return -EOPNOTSUPP;
	if ((mask & RPOST_QP_ACCESS_FLAGS) &&
	    (attr->access & ~RPOST_QP_ACCESS_MASK))
		return -EOPNOTSUPP;
	if (((mask & RPOST_QP_STATE) && attr->qp_state > RPOST_QPS_ERR) ||
	    ((mask & RPOST_QP_CUR_STATE) &&
	     attr->cur_qp_state > RPOST_QPS_ERR) ||
	    ((mask & RPOST_QP_PORT) &&
	     !rdma_is_port_valid(ib_dev, attr->port_num)) ||
	    ((mask & RPOST_QP_PATH_MTU) &&
	     (attr->path_mtu < IB_MTU_256 || attr->path_mtu > IB_MTU_4096)) ||
	    ((mask & RPOST_QP_PATH_MIG_STATE) &&
	     attr->path_mig_state > IB_MIG_ARMED) ||
	    ((mask & RPOST_QP_TIMEOUT) && attr->timeout > 31) ||
	    ((mask & RPOST_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31) ||
	    ((mask & RPOST_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
	    ((mask & RPOST_QP_RNR_RETRY) && attr->rnr_retry > 7))
		return -EINVAL;
	if (mask & RPOST_QP_QKEY)
		return rpost_check_qkey(attr->qkey);
	return 0;
}

static bool rpost_pkey_index_valid(struct rpost_qp *qp, const struct rpost_qp_attr *attr)
{
	u32 port = attr->attr_mask & RPOST_QP_PORT ? attr->port_num :
						     qp->ib_qp->port;
	struct ib_device *ib_dev = qp->obj.dev->ib_dev;

	return rdma_is_port_valid(ib_dev, port) &&
	       attr->pkey_index < ib_dev->port_data[port].immutable.pkey_tbl_len;
}

/*
 * Find the paths.  A neighbour that does not answer takes a second, so the queue
 * pair is not locked: the program's calls wait side by side, and removal once for
 * all of them.
 */
static int rpost_qp_attr_paths(struct rpost_qp *qp, struct ib_qp_attr *to,
			       const struct rpost_qp_attr *from)
{
	struct ib_device *ib_dev = qp->obj.dev->ib_dev;
	int ret;

	/* cma sets them. */
	if (!rpost_qp_is_own(qp) &&
	    (from->attr_mask & (RPOST_QP_AV | RPOST_QP_ALT_PATH)))
		return -EINVAL;
	if (from->attr_mask & (RPOST_QP_AV | RPOST_QP_ALT_PATH)) {
		ret = rpost_policy_permits(&qp->obj.file->tenant, RPOST_FORBID_RAW);
		if (ret)
			return ret;
	}
	if (from->attr_mask & RPOST_QP_AV) {
		ret = rpost_ah_attr_build(qp->obj.file, ib_dev, &to->ah_attr, &from->ah);
		ret = ret ? : rpost_ah_attr_resolve(qp->pd->ib_pd, &to->ah_attr);
		if (ret)
			return ret;
	}
	if (from->attr_mask & RPOST_QP_ALT_PATH) {
		if (from->alt_port_num != from->alt_ah.port_num)
			return -EINVAL;
		return rpost_ah_attr_build(qp->obj.file, ib_dev, &to->alt_ah_attr, &from->alt_ah);
	}
	return 0;
}

/* As in uverbs, the path must have the port of the queue pair. */
static int rpost_qp_attr_port(struct rpost_qp *qp, struct ib_qp_attr *to,
			      struct rpost_qp_attr *from)
{
	if (!(from->attr_mask & RPOST_QP_AV))
		return 0;
	if ((from->attr_mask & RPOST_QP_STATE) &&
	    from->qp_state == RPOST_QPS_RTR)
		return from->ah.port_num == qp->ib_qp->port ? 0 : -EINVAL;
	if (!(from->attr_mask & RPOST_QP_PORT)) {
		from->attr_mask |= RPOST_QP_PORT;
		to->port_num = from->ah.port_num;
	}
	return to->port_num == from->ah.port_num ? 0 : -EINVAL;
}

static void rpost_qp_attr_build(struct ib_qp_attr *to, const struct rpost_qp_attr *from)
{
	*to = (struct ib_qp_attr) {
		.qp_state = from->qp_state,
		.cur_qp_state = from->cur_qp_state,
		.path_mtu = from->path_mtu,
		.path_mig_state = from->path_mig_state,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn & RPOST_PSN_MASK,
		.sq_psn = from->sq_psn & RPOST_PSN_MASK,
		.dest_qp_num = from->dest_qp_num,
		.qp_access_flags = from->access & ~RPOST_QP_ACCESS_VOID,
		.pkey_index = from->pkey_index,
		.alt_pkey_index = from->alt_pkey_index,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.alt_port_num = from->alt_port_num,
		.alt_timeout = from->alt_timeout,
		.rate_limit = from->rate_limit,
	};
}

/*
 * May the program make this move?  Until the connection manager has brought a queue
 * pair up, from INIT to RTS, it would not notice a move of the program's.  Later it
 * moves the queue pair to the error state only, at any time.
 */
static bool rpost_qp_may_move(const struct rpost_qp *qp, u32 from, u32 to)
{
	if (rpost_qp_is_own(qp) || to == RPOST_QPS_ERR)
		return true;
	if (to == RPOST_QPS_RESET)
		return BIT(READ_ONCE(qp->id->state)) &
		       (BIT(RPOST_ID_CONNECTED) | BIT(RPOST_ID_DISCONNECTED));
	return (from == RPOST_QPS_RTS || from == RPOST_QPS_SQD) &&
	       (to == RPOST_QPS_RTS || to == RPOST_QPS_SQD);
}

/* Have verbs these attributes and this transition, and may the program make it? */
static int rpost_qp_check(struct rpost_qp *qp, const struct rpost_qp_attr *to)
{
	struct ib_qp_init_attr init = {};
	u32 mask = to->attr_mask, next;
	struct ib_qp_attr now = {};
	int ret;

	if ((mask & RPOST_QP_PKEY_INDEX) && !rpost_pkey_index_valid(qp, to))
		return -EINVAL;
	/* iWARP has other states, and the drivers check them. */
	if (!rdma_ib_or_roce(qp->obj.dev->ib_dev, rdma_start_port(qp->obj.dev->ib_dev)))
		return !qp->id || !(mask & RPOST_QP_STATE) ||
		       to->qp_state == RPOST_QPS_ERR ? 0 : -EINVAL;
	ret = ib_query_qp(qp->ib_qp, &now, IB_QP_STATE, &init);
	if (ret)
		return ret;
	if ((mask & RPOST_QP_CUR_STATE) && to->cur_qp_state != now.qp_state)
		return -EINVAL;
	next = mask & RPOST_QP_STATE ? to->qp_state : now.qp_state;
	if ((mask & RPOST_QP_STATE) && !rpost_qp_may_move(qp, now.qp_state, next))
		return -EINVAL;
	/* ib_modify_qp_is_ok() does not know of rates; since 6.9 rxe checks some only. */
	mask &= ~RPOST_QP_RATE_LIMIT;
	return ib_modify_qp_is_ok(now.qp_state, next, qp->qp_type, mask) ?
		0 : -EINVAL;
}

/*
 * Are the GIDs of all paths still the file's?  The connection manager sets the path of an
 * id when the peer has answered.
 */
static bool rpost_qp_paths_allowed(const struct rpost_qp *qp)
{
	const struct rpost_file *file = qp->obj.file;
	const struct ib_gid_attr *of_id = NULL;

	if (!rpost_qp_is_own(qp))
		of_id = qp->id->cm_id->route.addr.dev_addr.sgid_attr;
	/* Only InfiniBand has alternate paths. */
	return rpost_gid_allowed(file, of_id) &&
	       rpost_gid_allowed(file, qp->ib_qp->av_sgid_attr);
}

/* Change the device's queue pair, but not to RESET. */
static int rpost_qp_modify(struct rpost_qp *qp, struct ib_qp_attr *attr, struct rpost_qp_attr *from)
{
	bool moves = from->attr_mask & RPOST_QP_STATE;
	bool stops = moves && from->qp_state == RPOST_QPS_ERR;
	int ret;

	ret = rpost_qp_attr_port(qp, attr, from);
	if (ret)
		return ret;
	/*
	 * Set it first: flushed work requests may complete at once.  It stays
	 * true if the device refuses: a work request may have failed meanwhile.
	 */
	if (stops)
		WRITE_ONCE(qp->failed, true);
	/* It may leave RESET; not so if a reset failed. */
	if (moves && !qp->discard)
		rpost_qp_unmute_cqs(qp);
	ret = ib_modify_qp(qp->ib_qp, attr, from->attr_mask);
	if (ret || !moves)
		return ret;
	/* In the error state the device flushes. */
	if (qp->id)
		WRITE_ONCE(qp->id->can_send, true);
	if (!rpost_qp_is_own(qp))
		return 0;
	qp->state = from->qp_state;
	rpost_qp_open(qp, qp->state);
	if (!stops)
		WRITE_ONCE(qp->failed, false);
	return 0;
}

/*
 * Move a queue pair, which is locked as its handler is, to the error state if it has lost
 * a path.  Return true if it has been moved.
 */
static bool rpost_qp_recheck_locked(struct rpost_qp *qp)
{
	struct rpost_qp_attr to = { .attr_mask = RPOST_QP_STATE, .qp_state = RPOST_QPS_ERR };
	struct ib_qp_attr now = {}, attr = { .qp_state = IB_QPS_ERR };
	struct ib_qp_init_attr init = {};

	if (rpost_qp_paths_allowed(qp) ||
	    ib_query_qp(qp->ib_qp, &now, IB_QP_STATE, &init) ||
	    now.qp_state == IB_QPS_RESET || now.qp_state == IB_QPS_ERR)
		return false;
	/* An own queue pair in INIT has the path of before its last RESET. */
	if (now.qp_state == IB_QPS_INIT && rpost_qp_is_own(qp))
		return false;
	return !rpost_qp_modify(qp, &attr, &to);
}

/* End the connection of a queue pair that has lost a path. */
void rpost_qp_recheck(struct rpost_obj *obj)
{
	struct rpost_qp *qp = rpost_obj_as(qp, obj);
	bool ended = false;

	rpost_qp_lock(qp);
	if (qp->ib_qp && !qp->refused) {
		rpost_qp_lock_handler(qp);
		ended = rpost_qp_recheck_locked(qp);
		rpost_qp_unlock_handler(qp);
		if (ended && !rpost_qp_is_own(qp))
			rpost_id_hang_up_locked(qp->id);
	}
	rpost_qp_unlock(qp);
	if (ended && !qp->id)
		rpost_ids_hang_up(obj->file, obj->dev->ib_dev, qp->qp_num);
}

static int rpost_qp_modify_locked(struct rpost_qp *qp, struct ib_qp_attr *attr,
				  struct rpost_qp_attr *from)
{
	bool resets = (from->attr_mask & RPOST_QP_STATE) && from->qp_state == RPOST_QPS_RESET;
	int ret = -ENODEV;

	rpost_qp_lock(qp);
	/* Ask again: some waited long for the lock, and removal waits for them. */
	if (qp->ib_qp && !qp->refused && rpost_device_alive(qp->obj.dev)) {
		rpost_qp_lock_handler(qp);
		ret = rpost_qp_check(qp, from);
		if (!ret && !resets) {
			ret = rpost_qp_modify(qp, attr, from);
			/* A GID may have gone before the core knew whose path it is. */
			rpost_qp_recheck_locked(qp);
		}
		rpost_qp_unlock_handler(qp);
		if (!ret && resets)
			ret = rpost_qp_reset(qp);
	}
	rpost_qp_unlock(qp);
	return ret;
}

int rpost_modify_qp_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_modify_qp *cmd = &ucmd->cmd.modify_qp;
	struct rpost_device *dev;
	struct ib_qp_attr attr;
	struct rpost_qp *qp;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	qp = rpost_qp_enter_get(ucmd, cmd->handle);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	dev = qp->obj.dev;

	rpost_qp_attr_build(&attr, &cmd->attr);
	ret = rpost_device_alive(dev) ? 0 : -ENODEV;
	ret = ret ? : rpost_qp_attr_check(&cmd->attr, dev->ib_dev);
	ret = ret ? : rpost_qp_attr_paths(qp, &attr, &cmd->attr);
	ret = ret ? : rpost_qp_modify_locked(qp, &attr, &cmd->attr);

	rdma_destroy_ah_attr(&attr.ah_attr);
	rdma_destroy_ah_attr(&attr.alt_ah_attr);
	rpost_obj_put(&qp->obj);
	return ret;
}

static void rpost_query_qp_fill(struct rpost_query_qp *cmd,
				const struct rpost_qp *qp,
				const struct ib_qp_attr *attr)
{
	*cmd = (struct rpost_query_qp) {
		.size = cmd->size,
		.handle = cmd->handle,
		.qp_type = qp->qp_type,
		.qp_flags = qp->qp_flags,
		.srq = qp->srq ? qp->srq->obj.handle : 0,
		.max_send_wr = qp->sq.max_wr,
		.max_recv_wr = qp->rq.max_wr,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->max_inline,
	};
	rpost_qp_attr_fill(&cmd->attr, attr);
}

int rpost_query_qp_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_qp *cmd = &ucmd->cmd.query_qp;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	struct rpost_qp *qp;
	int ret;

	qp = rpost_qp_get(ucmd->file, cmd->handle);
	if (!qp)
		return -ENOENT;

	rpost_qp_lock(qp);
	ret = -ENODEV;
	if (qp->ib_qp)
		ret = ib_query_qp(qp->ib_qp, &attr, RPOST_QP_MASK, &init);
	if (!ret)
		rpost_query_qp_fill(cmd, qp, &attr);
	rpost_qp_unlock(qp);

	rpost_obj_put(&qp->obj);
	return ret ? : rpost_respond(ucmd);
}

/* In other states there may be sends that the device does not signal. */
static int rpost_qp_start_counting(struct rpost_qp *qp)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	int ret;

	if (!qp->ib_qp)
		return -ENODEV;
	rpost_qp_lock_handler(qp);
	ret = ib_query_qp(qp->ib_qp, &attr, IB_QP_STATE, &init);
	if (!ret && attr.qp_state != IB_QPS_RESET && attr.qp_state != IB_QPS_INIT)
		ret = -EINVAL;
	if (!ret)
		WRITE_ONCE(qp->counting, true);
	rpost_qp_unlock_handler(qp);
	return ret;
}

static void rpost_qp_copy_counts(struct rpost_qp *qp, struct rpost_wrs_count *counts)
{
	spin_lock(&qp->send_cq->lock);
	memcpy(counts, qp->counts, RPOST_WRS_RECV * sizeof(*counts));
	spin_unlock(&qp->send_cq->lock);
	spin_lock(&qp->recv_cq->lock);
	counts[RPOST_WRS_RECV] = qp->counts[RPOST_WRS_RECV];
	spin_unlock(&qp->recv_cq->lock);
}

int rpost_count_wrs_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_count_wrs *cmd = &ucmd->cmd.count_wrs;
	struct rpost_qp *qp;
	int ret = 0;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	qp = rpost_qp_get(ucmd->file, cmd->handle);
	if (!qp)
		return -ENOENT;

	rpost_qp_lock(qp);
	if (cmd->flags & RPOST_COUNT_WRS_START)
		ret = rpost_qp_start_counting(qp);
	else if (!qp->counting)
		ret = -EINVAL;
	if (!ret) {
		/* Removal of the device has polled it for the last time. */
		if (qp->ib_qp)
			rpost_qp_fetch_rest(qp);
		rpost_qp_copy_counts(qp, cmd->counts);
	}
	rpost_qp_unlock(qp);

	rpost_obj_put(&qp->obj);
	return ret ? : rpost_respond(ucmd);
}
