// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs.  See struct rpost_qp.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "rpost.h"

#define RPOST_DRAIN_SECONDS	10

/* One more than the program may post: the marker that drains the queue. */
static u32 rpost_queue_entries(const struct rpost_queue *q)
{
	return max(q->max_wr, 1u) + 1;
}

static int rpost_queue_init(struct rpost_qp *qp, struct rpost_queue *q,
			    u32 max_wr, u32 max_sge,
			    void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	u32 i, slots = roundup_pow_of_two(max(max_wr, 1u));

	spin_lock_init(&q->lock);
	q->max_wr = max_wr;
	q->max_sge = max_sge;
	q->mask = slots - 1;
	q->wqes = kvcalloc(slots, sizeof(*q->wqes), GFP_KERNEL_ACCOUNT);
	if (!q->wqes)
		return -ENOMEM;
	for (i = 0; i < slots; i++) {
		q->wqes[i].cqe.done = done;
		q->wqes[i].qp = qp;
	}
	return 0;
}

static void rpost_inline_free(struct rpost_qp *qp)
{
	struct rpost_inline_page *ip;

	while (qp->num_inline_pages) {
		ip = &qp->inline_pages[--qp->num_inline_pages];
		ib_dma_unmap_page(qp->dev->ib_dev, ip->dma, PAGE_SIZE,
				  DMA_TO_DEVICE);
		__free_page(ip->page);
	}
	kvfree(qp->inline_pages);
	qp->inline_pages = NULL;
}

static int rpost_inline_alloc(struct rpost_qp *qp, u32 max_inline)
{
	struct ib_device *ib_dev = qp->dev->ib_dev;
	struct rpost_inline_page *ip;
	u32 n;

	if (!max_inline)
		return 0;
	qp->max_inline = max_inline;
	qp->inline_stride = ALIGN(max_inline, 8);
	qp->inline_per_page = PAGE_SIZE / qp->inline_stride;
	n = DIV_ROUND_UP(qp->sq.mask + 1, qp->inline_per_page);
	qp->inline_pages = kvcalloc(n, sizeof(*ip), GFP_KERNEL_ACCOUNT);
	if (!qp->inline_pages)
		return -ENOMEM;

	while (qp->num_inline_pages < n) {
		ip = &qp->inline_pages[qp->num_inline_pages];
		ip->page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!ip->page)
			goto err;
		ip->dma = ib_dma_map_page(ib_dev, ip->page, 0, PAGE_SIZE,
					  DMA_TO_DEVICE);
		if (ib_dma_mapping_error(ib_dev, ip->dma)) {
			__free_page(ip->page);
			goto err;
		}
		qp->num_inline_pages++;
	}
	return 0;
err:
	rpost_inline_free(qp);
	return -ENOMEM;
}

static int rpost_qp_attach_cqs(struct rpost_qp *qp)
{
	u32 send = rpost_queue_entries(&qp->sq);
	u32 recv = rpost_queue_entries(&qp->rq);

	if (qp->send_cq == qp->recv_cq) {
		qp->send_hwcq = rpost_cq_attach(qp->send_cq, send + recv);
		qp->recv_hwcq = qp->send_hwcq;
		return PTR_ERR_OR_ZERO(qp->send_hwcq);
	}
	qp->send_hwcq = rpost_cq_attach(qp->send_cq, send);
	if (IS_ERR(qp->send_hwcq))
		return PTR_ERR(qp->send_hwcq);
	qp->recv_hwcq = rpost_cq_attach(qp->recv_cq, recv);
	if (IS_ERR(qp->recv_hwcq)) {
		rpost_cq_detach(qp->send_hwcq, send);
		return PTR_ERR(qp->recv_hwcq);
	}
	return 0;
}

static void rpost_qp_detach_cqs(struct rpost_qp *qp)
{
	rpost_cq_detach(qp->send_hwcq, rpost_queue_entries(&qp->sq));
	rpost_cq_detach(qp->recv_hwcq, rpost_queue_entries(&qp->rq));
}

/* Enters from the device, in any context. */
static void rpost_qp_event(struct ib_event *event, void *context)
{
	struct rpost_qp *qp = context;

	/*
	 * Data came before the message that completes the connection, which
	 * may be lost.  The cm_id outlives the queue pair.
	 */
	if (event->event == IB_EVENT_COMM_EST)
		rdma_notify(qp->id->cm_id, event->event);
}

static void rpost_marker_done(struct ib_cq *ib_cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct rpost_marker, cqe)->done);
}

/* Fetch what the device has; it may be unarmed, see enum rpost_cq_mode. */
static u32 rpost_qp_fetch(struct rpost_qp *qp)
{
	cond_resched();
	return rpost_cq_drain(qp->send_cq, RPOST_DRAIN_BATCH) +
	       rpost_cq_drain(qp->recv_cq, RPOST_DRAIN_BATCH);
}

/*
 * A device that has lost its way may never flush.  Destroying the queue pair
 * ends its completions, too.
 */
static int rpost_marker_wait(struct rpost_qp *qp, struct rpost_marker *marker)
{
	unsigned long end = jiffies + RPOST_DRAIN_SECONDS * HZ;

	do {
		if (rpost_qp_fetch(qp) ? try_wait_for_completion(&marker->done) :
		    wait_for_completion_timeout(&marker->done, 1))
			return 0;
	} while (time_before(jiffies, end));
	return -ETIMEDOUT;
}

/* The device's queues are first in, first out: this finds all that is ours. */
static void rpost_qp_fetch_rest(struct rpost_qp *qp)
{
	u32 n, left = qp->send_hwcq->size + qp->recv_hwcq->size;

	while (left) {
		n = rpost_qp_fetch(qp);
		if (!n)
			break;
		left -= min(n, left);
	}
}

static void rpost_queue_close(struct rpost_queue *q)
{
	spin_lock_bh(&q->lock);
	q->closing = true;
	spin_unlock_bh(&q->lock);
}

/*
 * Get all work requests back.  As ib_drain_qp(), but without its warnings, and
 * fetching completions itself.
 */
static int rpost_qp_drain(struct rpost_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_rdma_wr send_wr = {
		.wr = {
			.wr_cqe = &qp->send_marker.cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	struct ib_recv_wr recv_wr = { .wr_cqe = &qp->recv_marker.cqe };
	int ret, err;

	rpost_queue_close(&qp->sq);
	rpost_queue_close(&qp->rq);
	WRITE_ONCE(qp->failed, true);
	qp->send_marker.cqe.done = rpost_marker_done;
	qp->recv_marker.cqe.done = rpost_marker_done;
	init_completion(&qp->send_marker.done);
	init_completion(&qp->recv_marker.done);

	ret = ib_modify_qp(qp->ib_qp, &attr, IB_QP_STATE);
	if (!ret) {
		ret = ib_post_send(qp->ib_qp, &send_wr.wr, NULL);
		err = ib_post_recv(qp->ib_qp, &recv_wr, NULL);
		if (!ret)
			ret = rpost_marker_wait(qp, &qp->send_marker);
		if (!err)
			err = rpost_marker_wait(qp, &qp->recv_marker);
		ret = ret ? : err;
	}
	if (ret)
		pr_warn_ratelimited("rdma_post: %s: queue pair %u cannot be drained: %d\n",
				    dev_name(&qp->dev->ib_dev->dev), qp->qp_num,
				    ret);
	return ret;
}

/**
 * rpost_qp_shutdown() - drain a queue pair and give it back to its device
 * @obj: the queue pair
 *
 * Return: 0.
 */
int rpost_qp_shutdown(struct rpost_obj *obj)
{
	struct rpost_qp *qp = container_of(obj, struct rpost_qp, obj);
	int ret;

	mutex_lock(&qp->id->lock);
	if (qp->ib_qp) {
		ret = rpost_qp_drain(qp);
		rdma_destroy_qp(qp->id->cm_id);
		qp->ib_qp = NULL;
		qp->id->qp = NULL;
		if (ret)
			rpost_qp_fetch_rest(qp);
		rpost_qp_detach_cqs(qp);
		rpost_inline_free(qp);
	}
	mutex_unlock(&qp->id->lock);
	return 0;
}

/**
 * rpost_qp_free() - free a queue pair's memory
 * @obj: the queue pair, shut down
 */
void rpost_qp_free(struct rpost_obj *obj)
{
	struct rpost_qp *qp = container_of(obj, struct rpost_qp, obj);

	rpost_obj_unuse(&qp->id->obj);
	rpost_obj_unuse(&qp->pd->obj);
	rpost_obj_unuse(&qp->send_cq->obj);
	rpost_obj_unuse(&qp->recv_cq->obj);
	rpost_device_put(qp->dev);
	kvfree(qp->sq.wqes);
	kvfree(qp->rq.wqes);
	kfree_rcu(qp, obj.rcu);
}

static int rpost_create_qp_validate(const struct rpost_create_qp *cmd,
				    struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;
	u32 max_wr = rpost_device_max_wr(ib_dev);

	if (cmd->max_send_wr > max_wr || cmd->max_recv_wr > max_wr ||
	    cmd->max_send_sge > min(attr->max_send_sge, RPOST_MAX_SGE) ||
	    cmd->max_recv_sge > min(attr->max_recv_sge, RPOST_MAX_SGE) ||
	    cmd->max_inline_data > RPOST_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static int rpost_qp_build(struct rpost_qp *qp,
			  const struct rpost_create_qp *cmd)
{
	struct ib_qp_init_attr attr = {
		.event_handler = rpost_qp_event,
		.qp_context = qp,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	int ret;

	ret = rpost_queue_init(qp, &qp->sq, cmd->max_send_wr,
			       cmd->max_send_sge, rpost_send_done);
	if (ret)
		return ret;
	ret = rpost_queue_init(qp, &qp->rq, cmd->max_recv_wr,
			       cmd->max_recv_sge, rpost_recv_done);
	if (ret)
		goto err_queues;
	ret = rpost_inline_alloc(qp, cmd->max_inline_data);
	if (ret)
		goto err_queues;
	ret = rpost_qp_attach_cqs(qp);
	if (ret)
		goto err_inline;

	attr.send_cq = qp->send_hwcq->ib_cq;
	attr.recv_cq = qp->recv_hwcq->ib_cq;
	attr.cap.max_send_wr = rpost_queue_entries(&qp->sq);
	attr.cap.max_recv_wr = rpost_queue_entries(&qp->rq);
	/* Inline data takes an entry. */
	attr.cap.max_send_sge = max(cmd->max_send_sge, 1u);
	attr.cap.max_recv_sge = max(cmd->max_recv_sge, 1u);
	ret = rdma_create_qp(qp->id->cm_id, qp->pd->ib_pd, &attr);
	if (ret)
		goto err_detach;
	qp->ib_qp = qp->id->cm_id->qp;
	qp->qp_num = qp->ib_qp->qp_num;
	qp->max_sge_rd = min_t(u32, cmd->max_send_sge,
			       qp->dev->ib_dev->attrs.max_sge_rd);
	return 0;

err_detach:
	rpost_qp_detach_cqs(qp);
err_inline:
	rpost_inline_free(qp);
err_queues:
	kvfree(qp->sq.wqes);
	kvfree(qp->rq.wqes);
	return ret;
}

/* What a new queue pair depends on, each with a reference while it is made. */
struct rpost_qp_parts {
	struct rpost_obj *id;
	struct rpost_obj *pd;
	struct rpost_obj *send_cq;
	struct rpost_obj *recv_cq;
};

static void rpost_qp_put_parts(struct rpost_qp_parts *parts)
{
	if (parts->id)
		rpost_obj_put(parts->id);
	if (parts->pd)
		rpost_obj_put(parts->pd);
	if (parts->send_cq)
		rpost_obj_put(parts->send_cq);
	if (parts->recv_cq)
		rpost_obj_put(parts->recv_cq);
}

static int rpost_qp_get_parts(struct rpost_qp_parts *parts,
			      struct rpost_file *file,
			      const struct rpost_create_qp *cmd)
{
	parts->id = rpost_obj_get(file, cmd->id, RPOST_OBJ_ID);
	parts->pd = rpost_obj_get(file, cmd->pd, RPOST_OBJ_PD);
	parts->send_cq = rpost_obj_get(file, cmd->send_cq, RPOST_OBJ_CQ);
	parts->recv_cq = rpost_obj_get(file, cmd->recv_cq, RPOST_OBJ_CQ);
	if (parts->id && parts->pd && parts->send_cq && parts->recv_cq)
		return 0;
	rpost_qp_put_parts(parts);
	return -ENOENT;
}

static int rpost_qp_use_parts(struct rpost_qp_parts *parts)
{
	int ret;

	ret = rpost_obj_use(parts->id);
	if (ret)
		return ret;
	ret = rpost_obj_use(parts->pd);
	if (ret)
		goto err_id;
	ret = rpost_obj_use(parts->send_cq);
	if (ret)
		goto err_pd;
	ret = rpost_obj_use(parts->recv_cq);
	if (ret)
		goto err_send_cq;
	return 0;

err_send_cq:
	rpost_obj_unuse(parts->send_cq);
err_pd:
	rpost_obj_unuse(parts->pd);
err_id:
	rpost_obj_unuse(parts->id);
	return ret;
}

/* May the id have a queue pair on this device? */
static int rpost_id_check_qp(struct rpost_id *id, struct rpost_device *dev)
{
	if (!id->cm_id)
		return -ENODEV;
	if (id->qp || id->cm_id->device != dev->ib_dev)
		return -EINVAL;
	switch (READ_ONCE(id->state)) {
	case RPOST_ID_BOUND:
	case RPOST_ID_ADDR_RESOLVED:
	case RPOST_ID_ROUTE_QUERY:
	case RPOST_ID_ROUTE_RESOLVED:
	case RPOST_ID_REQUEST:
		return 0;
	default:
		return -EINVAL;
	}
}

static int rpost_create_qp_locked(struct rpost_ucmd *ucmd,
				  struct rpost_qp_parts *parts,
				  struct rpost_device *dev)
{
	struct rpost_create_qp *cmd = &ucmd->cmd.create_qp;
	struct rpost_id *id = container_of(parts->id, struct rpost_id, obj);
	struct rpost_qp *qp;
	int ret;

	ret = rpost_id_check_qp(id, dev);
	if (ret)
		return ret;
	qp = kzalloc(sizeof(*qp), GFP_KERNEL_ACCOUNT);
	if (!qp)
		return -ENOMEM;
	qp->dev = dev;
	qp->id = id;
	qp->pd = container_of(parts->pd, struct rpost_pd, obj);
	qp->send_cq = container_of(parts->send_cq, struct rpost_cq, obj);
	qp->recv_cq = container_of(parts->recv_cq, struct rpost_cq, obj);
	qp->qp_flags = cmd->flags;

	ret = rpost_qp_use_parts(parts);
	if (ret)
		goto err_free;
	ret = rpost_obj_reserve(ucmd->file, &qp->obj, RPOST_OBJ_QP);
	if (ret)
		goto err_unuse;
	ret = rpost_qp_build(qp, cmd);
	if (ret)
		goto err_unreserve;

	cmd->handle = qp->obj.handle;
	cmd->qp_num = qp->qp_num;
	ret = rpost_respond(ucmd);
	if (ret)
		goto err_destroy;
	rpost_device_hold(dev);
	id->qp = qp;
	rpost_obj_publish(&qp->obj);
	return 0;

err_destroy:
	/* Nothing has been posted. */
	rdma_destroy_qp(id->cm_id);
	rpost_qp_detach_cqs(qp);
	rpost_inline_free(qp);
	kvfree(qp->sq.wqes);
	kvfree(qp->rq.wqes);
err_unreserve:
	rpost_obj_unreserve(&qp->obj);
err_unuse:
	rpost_obj_unuse(parts->id);
	rpost_obj_unuse(parts->pd);
	rpost_obj_unuse(parts->send_cq);
	rpost_obj_unuse(parts->recv_cq);
err_free:
	kfree(qp);
	return ret;
}

/**
 * rpost_create_qp_ioctl() - create a queue pair on an id
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_create_qp_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_qp *cmd = &ucmd->cmd.create_qp;
	struct rpost_qp_parts parts;
	struct rpost_device *dev;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved || (cmd->flags & ~RPOST_QP_SIG_ALL))
		return -EOPNOTSUPP;
	ret = rpost_qp_get_parts(&parts, ucmd->file, cmd);
	if (ret)
		return ret;
	id = container_of(parts.id, struct rpost_id, obj);
	dev = container_of(parts.pd, struct rpost_pd, obj)->dev;
	ret = -ENODEV;
	if (!rpost_device_alive(dev))
		goto out_put;

	ret = -EINVAL;
	if (container_of(parts.send_cq, struct rpost_cq, obj)->dev != dev ||
	    container_of(parts.recv_cq, struct rpost_cq, obj)->dev != dev)
		goto out_put;
	ret = rpost_create_qp_validate(cmd, dev->ib_dev);
	if (ret)
		goto out_put;

	mutex_lock(&id->lock);
	ret = rpost_create_qp_locked(ucmd, &parts, dev);
	mutex_unlock(&id->lock);
out_put:
	rpost_qp_put_parts(&parts);
	return ret;
}

static void rpost_query_qp_fill(struct rpost_query_qp *cmd,
				const struct rpost_qp *qp,
				const struct ib_qp_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(&attr->ah_attr);

	*cmd = (struct rpost_query_qp) {
		.size = cmd->size,
		.handle = cmd->handle,
		.qp_state = attr->qp_state,
		.path_mtu = attr->path_mtu,
		.qkey = attr->qkey,
		.rq_psn = attr->rq_psn,
		.sq_psn = attr->sq_psn,
		.dest_qp_num = attr->dest_qp_num,
		.access = attr->qp_access_flags,
		.pkey_index = attr->pkey_index,
		.port_num = attr->port_num,
		.max_rd_atomic = attr->max_rd_atomic,
		.max_dest_rd_atomic = attr->max_dest_rd_atomic,
		.min_rnr_timer = attr->min_rnr_timer,
		.timeout = attr->timeout,
		.retry_cnt = attr->retry_cnt,
		.rnr_retry = attr->rnr_retry,
		.sq_draining = attr->sq_draining,
		.sgid_index = grh->sgid_index,
		.hop_limit = grh->hop_limit,
		.max_send_wr = qp->sq.max_wr,
		.max_recv_wr = qp->rq.max_wr,
		.max_send_sge = qp->sq.max_sge,
		.max_recv_sge = qp->rq.max_sge,
		.max_inline_data = qp->max_inline,
		.qp_flags = qp->qp_flags,
		.traffic_class = grh->traffic_class,
		.sl = rdma_ah_get_sl(&attr->ah_attr),
	};
	memcpy(cmd->dgid, &grh->dgid, sizeof(cmd->dgid));
}

/**
 * rpost_query_qp_ioctl() - state of a queue pair
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_query_qp_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_qp *cmd = &ucmd->cmd.query_qp;
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	struct rpost_obj *obj;
	struct rpost_qp *qp;
	int ret;

	obj = rpost_obj_get(ucmd->file, cmd->handle, RPOST_OBJ_QP);
	if (!obj)
		return -ENOENT;
	qp = container_of(obj, struct rpost_qp, obj);

	mutex_lock(&qp->id->lock);
	ret = -ENODEV;
	if (qp->ib_qp)
		ret = ib_query_qp(qp->ib_qp, &attr,
				  IB_QP_STATE | IB_QP_AV | IB_QP_CAP, &init);
	if (!ret)
		rpost_query_qp_fill(cmd, qp, &attr);
	mutex_unlock(&qp->id->lock);

	rpost_obj_put(obj);
	return ret ? : rpost_respond(ucmd);
}
