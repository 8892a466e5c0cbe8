// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs.  See struct rpost_qp.
 */
#include <linux/delay.h>
#include <linux/kmemleak.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "queue/srq.h"

/* The program's work requests, and one for the drain WR. */
static u32 rpost_queue_entries(const struct rpost_queue *q)
{
	return max(q->max_wr, 1u) + 1;
}

/* Entries that count for the file's limit; a shared queue counts by itself. */
static u32 rpost_qp_entries(const struct rpost_qp *qp)
{
	return rpost_queue_entries(&qp->sq) +
	       (qp->srq ? 0 : rpost_queue_entries(&qp->rq));
}

/* Estimate the bytes from the sizes of the queues. */
static unsigned long rpost_qp_device_bytes(const struct rpost_qp *qp)
{
	unsigned long bytes = rpost_device_sq_bytes(rpost_sq_entries(qp), qp->sq.max_sge);

	if (!qp->srq)
		bytes += rpost_device_rq_bytes(qp->rq.max_wr + 1, qp->rq.max_sge);
	return bytes;
}

/* Add up slots, addresses, and pages for inline data of a validated command. */
static unsigned long rpost_qp_own_bytes(const struct rpost_create_qp *cmd)
{
	unsigned long sends = roundup_pow_of_two(max(cmd->max_send_wr, 1u));
	unsigned long recvs = roundup_pow_of_two(max(cmd->max_recv_wr, 1u));
	unsigned long bytes = (sends + recvs) * sizeof(struct rpost_wqe);
	unsigned int per_page;

	if (cmd->qp_type == RPOST_QPT_UD)
		bytes += sends * sizeof(struct rpost_ah *);
	if (cmd->max_inline_data) {
		per_page = PAGE_SIZE / ALIGN(cmd->max_inline_data, 8);
		bytes += DIV_ROUND_UP(sends, per_page) *
			 (PAGE_SIZE + sizeof(struct rpost_inline_page));
	}
	return bytes;
}

static int rpost_queue_init(struct rpost_qp *qp, struct rpost_queue *q,
			    u32 max_wr, u32 max_sge,
			    void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	u32 i, slots = roundup_pow_of_two(max(max_wr, 1u));

	spin_lock_init(&q->lock);
	/* Without an id, MODIFY_QP opens it (rpost_qp_open()). */
	q->closed = qp->id ? 0 : -EINVAL;
	q->max_wr = max_wr;
	q->max_sge = max_sge;
	q->mask = slots - 1;
	q->wqes = rpost_kvcalloc(slots, sizeof(*q->wqes));
	if (!q->wqes)
		return -ENOMEM;
	for (i = 0; i < slots; i++) {
		q->wqes[i].cqe.done = done;
		q->wqes[i].qp = qp;
	}
	return 0;
}

static int rpost_queues_init(struct rpost_qp *qp, const struct rpost_create_qp *cmd)
{
	int ret;

	static_assert(sizeof(struct rpost_wqe) <= 32);

	ret = rpost_queue_init(qp, &qp->sq, cmd->max_send_wr, cmd->max_send_sge, rpost_send_done);
	if (ret)
		return ret;
	ret = rpost_queue_init(qp, &qp->rq, cmd->max_recv_wr, cmd->max_recv_sge, rpost_recv_done);
	if (ret || qp->qp_type != RPOST_QPT_UD)
		return ret;
	qp->ahs = rpost_kvcalloc(qp->sq.mask + 1, sizeof(*qp->ahs));
	return qp->ahs ? 0 : -ENOMEM;
}

static void rpost_queues_free(struct rpost_qp *qp)
{
	kvfree(qp->sq.uses);
	kvfree(qp->rq.uses);
	kvfree(qp->sq.wqes);
	kvfree(qp->rq.wqes);
	kvfree(qp->ahs);
}

static void rpost_inline_free(struct rpost_qp *qp)
{
	struct rpost_inline_page *ip;
	u32 n = qp->num_inline_pages;

	WRITE_ONCE(qp->num_inline_pages, 0);
	while (n) {
		ip = &qp->inline_pages[--n];
		ib_dma_unmap_page(qp->obj.dev->ib_dev, ip->dma, PAGE_SIZE, DMA_TO_DEVICE);
		__free_page(ip->page);
	}
	if (qp->inline_pages != &qp->inline_page)
		kvfree(qp->inline_pages);
	qp->inline_pages = NULL;
}

static int rpost_inline_alloc(struct rpost_qp *qp, u32 max_inline)
{
	struct ib_device *ib_dev = qp->obj.dev->ib_dev;
	struct rpost_inline_page *ip;
	u32 n;

	if (!max_inline)
		return 0;
	qp->max_inline = max_inline;
	qp->inline_stride = ALIGN(max_inline, 8);
	qp->inline_per_page = PAGE_SIZE / qp->inline_stride;
	n = DIV_ROUND_UP(qp->sq.mask + 1, qp->inline_per_page);
	/* One page is allocated when needed: many programs never use it. */
	if (n == 1)
		return 0;
	qp->inline_pages = rpost_kvcalloc(n, sizeof(*ip));
	if (!qp->inline_pages)
		return -ENOMEM;

	while (qp->num_inline_pages < n) {
		ip = &qp->inline_pages[qp->num_inline_pages];
		ip->page = alloc_page(RPOST_GFP | __GFP_ZERO);
		if (!ip->page)
			goto err;
		ip->dma = ib_dma_map_page(ib_dev, ip->page, 0, PAGE_SIZE, DMA_TO_DEVICE);
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

/*
 * Make sure that there is a page for inline data, which the queue pair takes.  Return 0,
 * -ENOBUFS, or the errno of a closed queue.
 */
int rpost_qp_inline_room(struct rpost_qp *qp)
{
	struct ib_device *ib_dev = qp->obj.dev->ib_dev;
	struct rpost_queue *sq = &qp->sq;
	struct page *page;
	int ret = 0;
	u64 dma;

	if (READ_ONCE(qp->num_inline_pages))
		return 0;
	page = alloc_page(RPOST_GFP | __GFP_ZERO);
	if (!page)
		return -ENOBUFS;

	spin_lock_bh(&sq->lock);
	if (sq->closed) {
		/* The device may be gone. */
		ret = sq->closed;
	} else if (!qp->num_inline_pages) {
		dma = ib_dma_map_page(ib_dev, page, 0, PAGE_SIZE, DMA_TO_DEVICE);
		if (ib_dma_mapping_error(ib_dev, dma)) {
			ret = -ENOBUFS;
		} else {
			qp->inline_page.page = page;
			qp->inline_page.dma = dma;
			qp->inline_pages = &qp->inline_page;
			WRITE_ONCE(qp->num_inline_pages, 1);
			page = NULL;
		}
	}
	spin_unlock_bh(&sq->lock);
	if (page)
		__free_page(page);
	return ret;
}

static int rpost_qp_attach_cqs(struct rpost_qp *qp)
{
	u32 send = rpost_sq_entries(qp);
	u32 recv = rpost_queue_entries(&qp->rq);

	rpost_qp_unmute_cqs(qp);
	if (qp->send_cq == qp->recv_cq && !qp->srq) {
		qp->send_hwcq = rpost_cq_attach(qp->send_cq, send + recv);
		qp->recv_hwcq = qp->send_hwcq;
		return PTR_ERR_OR_ZERO(qp->send_hwcq);
	}
	qp->send_hwcq = rpost_cq_attach(qp->send_cq, send);
	if (IS_ERR(qp->send_hwcq))
		return PTR_ERR(qp->send_hwcq);
	qp->recv_hwcq = qp->srq ? rpost_srq_attach_cq(qp->srq, qp->recv_cq) :
				  rpost_cq_attach(qp->recv_cq, recv);
	if (IS_ERR(qp->recv_hwcq)) {
		rpost_cq_detach(qp->send_hwcq, send);
		return PTR_ERR(qp->recv_hwcq);
	}
	return 0;
}

static void rpost_qp_detach_cqs(struct rpost_qp *qp)
{
	rpost_cq_detach(qp->send_hwcq, rpost_sq_entries(qp));
	if (qp->srq)
		rpost_srq_detach_cq(qp->srq, qp->recv_cq);
	else
		rpost_cq_detach(qp->recv_hwcq, rpost_queue_entries(&qp->rq));
}

/* The driver calls this in any context. */
static void rpost_qp_event(struct ib_event *event, void *context)
{
	struct rpost_qp *qp = context;

	/* Its id, file and device may have gone. */
	if (READ_ONCE(qp->leaked))
		return;
	/*
	 * Data has arrived before the message that completes the connection,
	 * which may be lost.  The cm_id outlives the queue pair.
	 */
	if (event->event == IB_EVENT_COMM_EST && qp->id)
		rdma_notify(qp->id->cm_id, event->event);
	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		complete_all(&qp->last_wqe);
	if (event->event <= IB_EVENT_GID_CHANGE && !READ_ONCE(qp->discard))
		rpost_async_post(&qp->obj, qp->user_data, event->event);
}

/* Release the address handles of sends that a device has lost. */
static void rpost_qp_release_ahs(struct rpost_qp *qp)
{
	u32 i;

	if (!qp->ahs)
		return;
	for (i = 0; i <= qp->sq.mask; i++)
		rpost_qp_release_ah(qp, &qp->sq.wqes[i]);
}

/* If this is the @last chance, ask three times, as rpost_dereg_mr() does. */
static int rpost_qp_destroy_ib_qp(struct rpost_qp *qp, bool last)
{
	int ret = 0, tries = last && !READ_ONCE(qp->obj.dev->refuses) ? 3 : 1;

	if (qp->id) {
		rdma_destroy_qp(qp->id->cm_id);
		qp->id->qp = NULL;
	} else {
		while ((ret = ib_destroy_qp(qp->ib_qp)) && --tries)
			msleep(20);
	}
	if (!ret)
		qp->ib_qp = NULL;
	return ret;
}

/*
 * The device keeps it for ever, with all that it needs: the RDMA core destroys
 * neither its completion queues nor its shared receive queue then.
 */
static void rpost_qp_leak(struct rpost_qp *qp, int error)
{
	pr_warn_ratelimited("rdma_post: %s: queue pair %u not destroyed: %d\n",
			    qp->obj.dev->ib_dev->name, qp->ib_qp->qp_num, error);
	if (!rpost_device_alive(qp->obj.dev))
		WRITE_ONCE(qp->obj.dev->refuses, true);
	WRITE_ONCE(qp->leaked, true);
	qp->pd->leaked = true;
	rpost_leave_behind(&qp->ib_qp->res, qp->obj.dev);
	/* It is not reported, nor is what it points to. */
	kmemleak_not_leak(qp);
	qp->ib_qp = NULL;
}

/* Complete the rest when @ib_qp has been destroyed or leaked. */
static void rpost_qp_flush(struct rpost_qp *qp, struct ib_qp *ib_qp, bool drained)
{
	if (!drained || qp->srq)
		rpost_qp_fetch_rest(qp);
	if (qp->srq && !qp->leaked)
		rpost_srq_del_qp(qp->srq, ib_qp);
	rpost_qp_detach_cqs(qp);
}

/* Does it count as a connected queue pair for policies?  Return 1 or 0. */
static long rpost_qp_connects(const struct rpost_qp *qp)
{
	return qp->qp_type != RPOST_QPT_UD;
}

/* Return the driver's errno if it refuses, or leak the queue pair if @last. */
static int rpost_qp_give_back(struct rpost_qp *qp, bool last)
{
	struct ib_qp *ib_qp = qp->ib_qp;
	bool drained;
	int ret;

	drained = !rpost_qp_drain(qp, -ENODEV);
	rpost_qp_detach_mcasts(qp);
	if (qp->srq)
		mutex_lock(&qp->srq->qp_lock);
	ret = rpost_qp_destroy_ib_qp(qp, last);
	if (ret && last) {
		rpost_qp_leak(qp, ret);
		ret = 0;
	}
	qp->refused = ret;
	if (!ret)
		rpost_qp_flush(qp, ib_qp, drained);
	if (qp->srq)
		mutex_unlock(&qp->srq->qp_lock);
	if (ret)
		return ret;

	rpost_limit_give_wr(qp->obj.file, rpost_qp_entries(qp), rpost_qp_device_bytes(qp));
	rpost_policy_give(&qp->obj.file->tenant, RPOST_HELD_QPS, rpost_qp_connects(qp));
	rpost_qp_release_ahs(qp);
	rpost_queue_drop_all_uses(&qp->sq, qp->send_cq);
	rpost_queue_drop_all_uses(&qp->rq, qp->recv_cq);
	if (!qp->leaked)
		rpost_inline_free(qp);
	return 0;
}

/*
 * Drain a queue pair and destroy it on its device.  Return 0, or the driver's errno; then
 * it is still there, but can only be destroyed.
 */
int rpost_qp_shutdown(struct rpost_obj *obj)
{
	struct rpost_qp *qp = rpost_obj_as(qp, obj);
	int ret = 0;

	if (obj->ending)
		rpost_qp_discard(qp);
	/*
	 * Skip this at the last close, which destroys the ids, too, and at
	 * removal, when cma has them destroyed: that ends their connections.
	 */
	if (obj->ending && !obj->file->dead && rpost_device_alive(obj->dev)) {
		if (qp->id)
			rpost_id_hang_up(qp->id);
		rpost_ids_hang_up(obj->file, obj->dev->ib_dev, qp->qp_num);
	}
	rpost_qp_lock(qp);
	if (qp->ib_qp)
		ret = rpost_qp_give_back(qp, !rpost_device_alive(obj->dev));
	rpost_qp_unlock(qp);
	return ret;
}

static void rpost_qp_unuse_parts(struct rpost_qp *qp)
{
	if (qp->id)
		rpost_obj_unuse(&qp->id->obj);
	if (qp->pd)
		rpost_obj_unuse(&qp->pd->obj);
	if (qp->send_cq)
		rpost_obj_unuse(&qp->send_cq->obj);
	if (qp->recv_cq)
		rpost_obj_unuse(&qp->recv_cq->obj);
	if (qp->srq)
		rpost_obj_unuse(&qp->srq->obj);
}

void rpost_qp_free(struct rpost_obj *obj)
{
	struct rpost_qp *qp = rpost_obj_as(qp, obj);

	spin_lock(&obj->file->handles.lock);
	hash_del_rcu(&qp->by_num);
	spin_unlock(&obj->file->handles.lock);
	rpost_qp_unuse_parts(qp);
	rpost_queue_uncharge_uses(&qp->sq);
	rpost_queue_uncharge_uses(&qp->rq);
	if (qp->leaked)
		return;
	rpost_queues_free(qp);
	kfree_rcu(qp, obj.rcu);
}

static int rpost_create_qp_validate(struct rpost_create_qp *cmd, struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;
	u32 max_wr = rpost_device_max_wr(ib_dev);

	switch (cmd->qp_type) {
	case 0:
		cmd->qp_type = RPOST_QPT_RC;
		break;
	case RPOST_QPT_RC:
		break;
	case RPOST_QPT_UC:
	case RPOST_QPT_UD:
		if (cmd->id)
			return -EINVAL;
		break;
	default:
		return -EINVAL;
	}
	if (cmd->srq) {
		cmd->max_recv_wr = 0;
		cmd->max_recv_sge = 0;
	}
	if (cmd->max_send_wr > max_wr || cmd->max_recv_wr > max_wr ||
	    cmd->max_send_sge > min(attr->max_send_sge, RPOST_MAX_SGE) ||
	    cmd->max_recv_sge > min(attr->max_recv_sge, RPOST_MAX_SGE) ||
	    cmd->max_inline_data > RPOST_MAX_INLINE)
		return -EINVAL;
	return 0;
}

static int rpost_qp_create_ib_qp(struct rpost_qp *qp, struct ib_qp_init_attr *attr)
{
	struct ib_qp *ib_qp;
	int ret, err;

	if (!qp->id) {
		ib_qp = ib_create_qp_kernel(qp->pd->ib_pd, attr, qp->obj.file->name);
		if (IS_ERR(ib_qp))
			return PTR_ERR(ib_qp);
		qp->ib_qp = ib_qp;
	} else {
		ret = rdma_create_qp(qp->id->cm_id, qp->pd->ib_pd, attr);
		if (ret)
			return ret;
		qp->ib_qp = qp->id->cm_id->qp;
		/* cma has given it its own name. */
		WRITE_ONCE(qp->ib_qp->res.kern_name, qp->obj.file->name);
	}
	if (!qp->srq)
		return 0;
	ret = rpost_srq_add_qp(qp->srq, qp);
	err = ret ? rpost_qp_destroy_ib_qp(qp, true) : 0;
	if (err)
		rpost_qp_leak(qp, err);
	return ret;
}

/* Create the queue pair on the device. */
static int rpost_qp_take(struct rpost_qp *qp, const struct rpost_create_qp *cmd)
{
	struct ib_qp_init_attr attr = {
		.event_handler = rpost_qp_event,
		.qp_context = qp,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = qp->qp_type,
	};
	int ret;

	if (qp->srq) {
		lockdep_assert_held(&qp->srq->qp_lock);
		attr.srq = qp->srq->ib_srq;
	}
	ret = rpost_qp_attach_cqs(qp);
	if (ret)
		return ret;
	attr.send_cq = qp->send_hwcq->ib_cq;
	attr.recv_cq = qp->recv_hwcq->ib_cq;
	attr.cap.max_send_wr = rpost_sq_entries(qp);
	/* Inline data takes an entry. */
	attr.cap.max_send_sge = max(cmd->max_send_sge, 1u);
	if (!qp->srq) {
		attr.cap.max_recv_wr = rpost_queue_entries(&qp->rq);
		attr.cap.max_recv_sge = max(cmd->max_recv_sge, 1u);
	}
	ret = rpost_qp_create_ib_qp(qp, &attr);
	if (ret)
		rpost_qp_detach_cqs(qp);
	return ret;
}

static int rpost_qp_build(struct rpost_qp *qp, const struct rpost_create_qp *cmd)
{
	bool shared;
	int ret;

	ret = rpost_obj_take_bytes(&qp->obj, rpost_qp_own_bytes(cmd));
	if (ret)
		return ret;
	ret = rpost_queues_init(qp, cmd);
	if (ret)
		goto err_queues;
	ret = rpost_inline_alloc(qp, cmd->max_inline_data);
	if (ret)
		goto err_queues;
	ret = rpost_limit_take_wr(qp->obj.file, rpost_qp_entries(qp), rpost_qp_device_bytes(qp));
	if (ret)
		goto err_inline;
	ret = -EMFILE;
	if (!rpost_policy_take(&qp->obj.file->tenant, RPOST_HELD_QPS, rpost_qp_connects(qp),
			       &shared))
		goto err_limit;

	if (qp->srq)
		mutex_lock(&qp->srq->qp_lock);
	ret = rpost_qp_take(qp, cmd);
	if (qp->srq)
		mutex_unlock(&qp->srq->qp_lock);
	if (ret)
		goto err_policy;
	qp->qp_num = qp->ib_qp->qp_num;
	qp->max_sge_rd = min_t(u32, cmd->max_send_sge,
			       rpost_device_max_sge_rd(qp->obj.dev->ib_dev));
	qp->iwarp = rdma_protocol_iwarp(qp->obj.dev->ib_dev, rdma_start_port(qp->obj.dev->ib_dev));
	return 0;

err_policy:
	rpost_policy_give(&qp->obj.file->tenant, RPOST_HELD_QPS, rpost_qp_connects(qp));
err_limit:
	rpost_limit_give_wr(qp->obj.file, rpost_qp_entries(qp), rpost_qp_device_bytes(qp));
err_inline:
	rpost_inline_free(qp);
err_queues:
	rpost_queues_free(qp);
	return ret;
}

/*
 * Enter the device, and use all that a queue pair depends on; the caller unuses
 * it, also after an error.
 */
static int rpost_qp_use_parts(struct rpost_qp *qp, struct rpost_ucmd *ucmd)
{
	const struct rpost_create_qp *cmd = &ucmd->cmd.create_qp;
	struct rpost_file *file = ucmd->file;
	struct rpost_pd *pd = rpost_pd_use(ucmd, cmd->pd);
	struct rpost_device *dev;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	qp->pd = pd;
	dev = pd->obj.dev;
	qp->send_cq = rpost_obj_as(cq, rpost_obj_use(file, cmd->send_cq, RPOST_OBJ_CQ));
	qp->recv_cq = rpost_obj_as(cq, rpost_obj_use(file, cmd->recv_cq, RPOST_OBJ_CQ));
	if (cmd->srq)
		qp->srq = rpost_obj_as(srq, rpost_obj_use(file, cmd->srq, RPOST_OBJ_SRQ));
	if (cmd->id)
		qp->id = rpost_obj_as(id, rpost_obj_use(file, cmd->id, RPOST_OBJ_ID));
	if (!qp->send_cq || !qp->recv_cq || (cmd->srq && !qp->srq) || (cmd->id && !qp->id))
		return -ENOENT;
	if (qp->id)
		qp->state = RPOST_QPS_RTS;

	if (qp->send_cq->obj.dev != dev || qp->recv_cq->obj.dev != dev)
		return -EINVAL;
	/* An SRQ checks keys in its own domain, see struct rpost_mr. */
	if (qp->srq && qp->srq->pd != qp->pd)
		return -EINVAL;
	return 0;
}

/* May the id have a queue pair on this device? */
static int rpost_id_check_qp(struct rpost_id *id, struct rpost_device *dev)
{
	if (!id->cm_id)
		return -ENODEV;
	if (id->qp || id->cm_id->device != dev->ib_dev ||
	    id->cm_id->qp_type != IB_QPT_RC)
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

static int rpost_create_qp_locked(struct rpost_ucmd *ucmd, struct rpost_qp *qp)
{
	struct rpost_create_qp *cmd = &ucmd->cmd.create_qp;
	struct rpost_device *dev = qp->pd->obj.dev;
	int ret;

	if (qp->id) {
		ret = rpost_id_check_qp(qp->id, dev);
		if (ret)
			return ret;
	}
	ret = rpost_obj_reserve(ucmd->file, &qp->obj, RPOST_OBJ_QP, dev, RPOST_GFP);
	if (ret)
		return ret;
	ret = rpost_qp_build(qp, cmd);
	if (ret)
		goto err_unreserve;

	cmd->handle = qp->obj.handle;
	cmd->qp_num = qp->qp_num;
	if (qp->id)
		qp->id->qp = qp;
	qp->obj.hidden = true;
	spin_lock(&ucmd->file->handles.lock);
	hash_add_rcu(ucmd->file->qps, &qp->by_num, qp->qp_num);
	spin_unlock(&ucmd->file->handles.lock);
	return 0;

err_unreserve:
	rpost_obj_unreserve(&qp->obj);
	return ret;
}

int rpost_create_qp_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_qp *cmd = &ucmd->cmd.create_qp;
	struct rpost_qp *qp;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (!cmd->id) {
		ret = rpost_policy_permits(&ucmd->file->tenant, RPOST_FORBID_RAW);
		if (ret)
			return ret;
	}
	qp = kzalloc(sizeof(*qp), RPOST_GFP);
	if (!qp)
		return -ENOMEM;
	mutex_init(&qp->lock);
	INIT_LIST_HEAD(&qp->mcasts);
	init_completion(&qp->last_wqe);
	ret = rpost_qp_use_parts(qp, ucmd);
	if (ret)
		goto err;
	ret = rpost_create_qp_validate(cmd, qp->pd->obj.dev->ib_dev);
	if (ret)
		goto err;
	qp->qp_type = cmd->qp_type;
	qp->qp_flags = cmd->flags;
	qp->user_data = cmd->user_data;

	rpost_qp_lock(qp);
	ret = rpost_create_qp_locked(ucmd, qp);
	rpost_qp_unlock(qp);
	if (ret)
		goto err;
	return rpost_obj_answer(ucmd, &qp->obj);
err:
	rpost_qp_unuse_parts(qp);
	if (!qp->leaked)
		kfree(qp);
	return ret;
}
