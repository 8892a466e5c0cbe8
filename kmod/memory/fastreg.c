// SPDX-License-Identifier: GPL-2.0
/*
 * Fast registration: the module pins and maps the memory itself, and has the
 * device register it by a work request.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_umem.h>

#include "base/inject.h"
#include "compat/compat.h"
#include "memory/cache.h"

/* Access rights that a work request can grant. */
#define RPOST_FASTREG_ACCESS						\
	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE |		\
	 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

/* The device needs microseconds; the limit is for one that has died. */
#define RPOST_FASTREG_TIMEOUT	(10 * HZ)

/* A registration that the device works on, and whether it is done. */
struct rpost_fastreg_req {
	struct ib_cqe cqe;
	bool done;
	enum ib_wc_status status;
};

/*
 * Does a device have fast registration?  A queue pair takes the work request only when it
 * is connected.  On iWARP that needs a TCP connection, so iWARP does without it.
 */
bool rpost_fastreg_possible(const struct rpost_device *dev)
{
	const struct ib_device *ib_dev = dev->ib_dev;

	return (ib_dev->attrs.device_cap_flags &
		IB_DEVICE_MEM_MGT_EXTENSIONS) &&
	       ib_dev->attrs.max_fast_reg_page_list_len &&
	       ib_dev->ops.alloc_mr && ib_dev->ops.map_mr_sg &&
	       !dev->driver->no_fastreg &&
	       !rdma_protocol_iwarp(ib_dev, rdma_start_port(ib_dev));
}

/* Some drivers keep no more than 32 bits of a region's length. */
#define RPOST_FASTREG_MAX_SIZE	((u64)U32_MAX & PAGE_MASK)

static u32 rpost_fastreg_max_pages(const struct ib_device *ib_dev)
{
	return min_t(u32, ib_dev->attrs.max_fast_reg_page_list_len, INT_MAX);
}

/* Return the bytes of the largest region, for memory that begins at a page boundary. */
u64 rpost_fastreg_max_size(const struct ib_device *ib_dev)
{
	return min((u64)rpost_fastreg_max_pages(ib_dev) << PAGE_SHIFT,
		   RPOST_FASTREG_MAX_SIZE);
}

/* ------------------------------------------------- the queue pair */

/* Destroy a domain's queue pair for registrations.  Nothing is being registered. */
void rpost_fastreg_destroy(struct rpost_pd *pd)
{
	struct ib_qp *qp = pd->fast_qp;
	struct ib_cq *cq;
	int ret;

	if (!qp)
		return;
	pd->fast_qp = NULL;
	cq = qp->send_cq;
	ret = ib_destroy_qp(qp);
	if (ret) {
		/* The device keeps it, and all that it needs, for ever. */
		pr_warn_ratelimited("rdma_post: queue pair for registrations not destroyed: %d\n",
				    ret);
		pd->leaked = true;
		rpost_leave_behind(&qp->res, pd->obj.dev);
		rpost_leave_behind(&cq->res, pd->obj.dev);
	} else {
		ib_free_cq(cq);
	}
}

/* The attributes by which ib_modify_qp() takes a queue pair to each state. */
static const int rpost_fastreg_masks[] = {
	[IB_QPS_INIT] = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	[IB_QPS_RTR] = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
		       IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	[IB_QPS_RTS] = IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
		       IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC,
};

/* Use the port's first valid GID for both ends of the path. */
static int rpost_fastreg_gid(struct ib_device *ib_dev, u32 port, int len,
			     struct rdma_ah_attr *ah_attr)
{
	const struct ib_gid_attr *gid;
	union ib_gid dgid;
	int i;

	for (i = 0; i < len; i++) {
		gid = rdma_get_gid_attr(ib_dev, port, i);
		if (IS_ERR(gid))
			continue;
		if (ah_attr->type == RDMA_AH_ATTR_TYPE_ROCE &&
		    rdma_read_gid_l2_fields(gid, NULL, ah_attr->roce.dmac)) {
			rdma_put_gid_attr(gid);
			continue;
		}
		dgid = gid->gid;
		rdma_move_grh_sgid_attr(ah_attr, &dgid, 0, 1, 0, gid);
		return 0;
	}
	return -ENETDOWN;
}

static int rpost_fastreg_connect(struct ib_qp *qp, u32 port,
				 const struct ib_port_attr *port_attr)
{
	struct ib_device *ib_dev = qp->device;
	/* No packet uses this path, so any number will do. */
	u32 psn = get_random_u32() & 0xffffff;
	struct ib_qp_attr attr = {
		.port_num = port,
		.path_mtu = port_attr->active_mtu,
		.dest_qp_num = qp->qp_num,
		.rq_psn = psn,
		.sq_psn = psn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	struct rdma_ah_attr *ah_attr = &attr.ah_attr;
	int ret = 0;

	ah_attr->type = rdma_ah_find_type(ib_dev, port);
	rdma_ah_set_port_num(ah_attr, port);
	rdma_ah_set_dlid(ah_attr, port_attr->lid);
	if (rdma_is_grh_required(ib_dev, port))
		ret = rpost_fastreg_gid(ib_dev, port, port_attr->gid_tbl_len, ah_attr);
	if (attr.path_mtu < IB_MTU_256 || attr.path_mtu > IB_MTU_4096)
		attr.path_mtu = IB_MTU_1024;

	for (attr.qp_state = IB_QPS_INIT; !ret && attr.qp_state <= IB_QPS_RTS;
	     attr.qp_state++)
		ret = ib_modify_qp(qp, &attr, rpost_fastreg_masks[attr.qp_state]);
	rdma_destroy_ah_attr(ah_attr);
	return ret;
}

/*
 * Nothing is ever sent, so the port need not be active, but it must have an
 * address.  Active ports are tried first, as the driver knows more of them.
 */
static int rpost_fastreg_connect_any(struct ib_qp *qp)
{
	struct ib_device *ib_dev = qp->device;
	struct ib_qp_attr reset = { .qp_state = IB_QPS_RESET };
	struct ib_port_attr attr;
	int ret = -ENETDOWN;
	bool active, is_active;
	u32 port;

	for (active = true; ; active = false) {
		rdma_for_each_port(ib_dev, port) {
			if (ib_query_port(ib_dev, port, &attr))
				continue;
			is_active = attr.state == IB_PORT_ACTIVE;
			if (is_active != active)
				continue;
			ret = rpost_fastreg_connect(qp, port, &attr);
			if (!ret)
				return 0;
			if (ib_modify_qp(qp, &reset, IB_QP_STATE))
				return ret;
		}
		if (!active)
			return ret;
	}
}

static int rpost_fastreg_create(struct rpost_pd *pd)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq;
	struct ib_qp *qp;
	int ret;

	cq = __ib_alloc_cq(pd->obj.dev->ib_dev, pd, 4, 0, IB_POLL_DIRECT,
			   pd->obj.file->name);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	attr.send_cq = cq;
	attr.recv_cq = cq;
	qp = ib_create_qp_kernel(pd->ib_pd, &attr, pd->obj.file->name);
	if (IS_ERR(qp)) {
		ib_free_cq(cq);
		return PTR_ERR(qp);
	}
	pd->fast_qp = qp;
	ret = rpost_fastreg_connect_any(qp);
	if (ret)
		rpost_fastreg_destroy(pd);
	return ret;
}

/* ------------------------------------------------- the work request */

static void rpost_fastreg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct rpost_fastreg_req *req =
		container_of(wc->wr_cqe, struct rpost_fastreg_req, cqe);

	if (rpost_inject(RPOST_INJECT_REG_WAIT))
		return;
	req->status = wc->status;
	if (rpost_inject(RPOST_INJECT_REG_WC))
		req->status = IB_WC_GENERAL_ERR;
	req->done = true;
}

/*
 * Only this function polls the completion queue, so that nothing touches @req
 * any more when it has returned.
 */
static int rpost_fastreg_wait(struct rpost_pd *pd,
			      const struct rpost_fastreg_req *req)
{
	unsigned long end = jiffies + RPOST_FASTREG_TIMEOUT;
	bool late = false;

	for (;;) {
		ib_process_cq_direct(pd->fast_qp->send_cq, -1);
		if (req->done)
			return 0;
		if (!rpost_device_alive(pd->obj.dev))
			return -ENODEV;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (late)
			return -ETIMEDOUT;
		/* Poll once more: this task may not have run for long. */
		late = time_after(jiffies, end);
		usleep_range(10, 50);
	}
}

/* Try once; -EAGAIN if the queue pair was unusable and nothing was done. */
static int rpost_fastreg_try(struct rpost_pd *pd, struct ib_mr *ib_mr,
			     u32 access)
{
	struct rpost_fastreg_req req = { .cqe.done = rpost_fastreg_done };
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &req.cqe,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = ib_mr,
		.access = access,
	};
	int ret;

	ib_update_fast_reg_key(ib_mr, ib_inc_rkey(ib_mr->rkey));
	wr.key = ib_mr->rkey;

	ret = -EIO;
	if (!rpost_inject(RPOST_INJECT_REG_POST)) {
		/* Softirqs that the post raises run at local_bh_enable(). */
		local_bh_disable();
		ret = ib_post_send(pd->fast_qp, &wr.wr, NULL);
		local_bh_enable();
	}
	if (ret) {
		ret = -EAGAIN;
		goto err;
	}
	ret = rpost_fastreg_wait(pd, &req);
	if (ret)
		goto err;
	switch (req.status) {
	case IB_WC_SUCCESS:
		return 0;
	case IB_WC_WR_FLUSH_ERR:
		ret = -EAGAIN;
		break;
	default:
		ret = -EIO;
	}
err:
	/* The queue pair is in error, or still has the request. */
	rpost_fastreg_destroy(pd);
	return ret;
}

static int rpost_fastreg_run(struct rpost_pd *pd, struct ib_mr *ib_mr,
			     u32 access)
{
	bool fresh;
	int ret;

	if (mutex_lock_killable(&pd->fast_lock))
		return -EINTR;
	do {
		fresh = !pd->fast_qp;
		ret = rpost_device_alive(pd->obj.dev) ? 0 : -ENODEV;
		if (!ret && pd->leaked)
			ret = -EIO;
		if (ret)
			break;
		if (fresh)
			ret = rpost_fastreg_create(pd);
		if (!ret)
			ret = rpost_fastreg_try(pd, ib_mr, access);
	} while (ret == -EAGAIN && !fresh);
	mutex_unlock(&pd->fast_lock);

	return ret == -EAGAIN ? -EIO : ret;
}

/* ------------------------------------------------- the memory */

/*
 * Use pages larger than the system's only for memory that would need too many
 * otherwise.
 */
static int rpost_fastreg_page_size(struct ib_umem *umem,
				   const struct rpost_reg_mr *cmd,
				   unsigned long *page_size)
{
	const struct ib_device *ib_dev = umem->ibdev;
	u32 max = rpost_fastreg_max_pages(ib_dev);
	unsigned long sizes;
	u64 blocks;

	*page_size = PAGE_SIZE;
	blocks = ib_umem_num_dma_blocks(umem, PAGE_SIZE);
	if (blocks <= max)
		return blocks;

	sizes = ib_dev->attrs.page_size_cap & GENMASK(PMD_SHIFT, PAGE_SHIFT);
	*page_size = ib_umem_find_best_pgsz(umem, sizes | PAGE_SIZE, cmd->iova);
	if (!*page_size)
		return -EMSGSIZE;
	blocks = ib_umem_num_dma_blocks(umem, *page_size);
	return blocks <= max ? blocks : -EMSGSIZE;
}

/*
 * The umem's list has whole pages, and the device must not be given the bytes
 * around the region.  sg_offset cannot leave them out: siw ignores it.
 */
static int rpost_fastreg_sgl(struct sg_table *sgt, struct ib_umem *umem)
{
	struct scatterlist *from, *to = NULL;
	u64 left = umem->length;
	u32 offset, len;
	int i, ret;

	ret = sg_alloc_table(sgt, umem->sgt_append.sgt.nents,
			     RPOST_GFP);
	if (ret)
		return ret;
	offset = ib_umem_offset(umem);
	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, from, i) {
		to = to ? sg_next(to) : sgt->sgl;
		len = min_t(u64, sg_dma_len(from) - offset, left);
		sg_dma_address(to) = sg_dma_address(from) + offset;
		sg_dma_len(to) = len;
		left -= len;
		offset = 0;
	}
	return 0;
}

static int rpost_fastreg_map(struct ib_mr *ib_mr, struct ib_umem *umem,
			     const struct rpost_reg_mr *cmd,
			     unsigned long page_size)
{
	struct sg_table sgt;
	int nents, ret;

	ret = rpost_fastreg_sgl(&sgt, umem);
	if (ret)
		return ret;
	nents = sgt.orig_nents;
	ret = ib_map_mr_sg(ib_mr, sgt.sgl, nents, NULL, page_size);
	sg_free_table(&sgt);
	if (ret < 0)
		return ret;
	if (ret != nents || ib_mr->length != cmd->length)
		return -EMSGSIZE;
	/* The program's address has the same offset in its page. */
	ib_mr->iova = cmd->iova;
	return 0;
}

static struct ib_umem *rpost_fastreg_pin(struct ib_device *ib_dev,
					 const struct rpost_reg_mr *cmd, u32 access)
{
	struct rpost_pin_cred cred;
	struct ib_umem *umem;
	int ret;

	ret = rpost_pin_cred_begin(&cred);
	if (ret)
		return ERR_PTR(ret);
	umem = rpost_compat_umem_get(ib_dev, cmd->addr, cmd->length, access);
	rpost_pin_cred_end(&cred);
	return umem;
}

/*
 * Register memory of the task, or of a dma-buf that is not NULL, by fast registration.
 * The region gets ib_mr and umem, both or none.  The command has been validated.  Even
 * after an error the caller must shut the region down.
 */
int rpost_fastreg_mr(struct rpost_mr *mr, const struct rpost_reg_mr *cmd,
		     struct dma_buf *dmabuf)
{
	struct rpost_pd *pd = mr->pd;
	struct ib_device *ib_dev = pd->obj.dev->ib_dev;
	u32 access = cmd->access & RPOST_FASTREG_ACCESS;
	unsigned long page_size;
	struct ib_umem *umem;
	struct ib_mr *ib_mr;
	int ret;

	if (cmd->access & RPOST_COMPAT_ACCESS_FLUSH)
		return -EOPNOTSUPP;
	/* Even the largest pages would be too many: do not pin them first. */
	if (cmd->length > RPOST_FASTREG_MAX_SIZE ||
	    cmd->length >> PMD_SHIFT > rpost_fastreg_max_pages(ib_dev))
		return -EMSGSIZE;

	umem = dmabuf ? rpost_dmabuf_get(pd->obj.dev, cmd, dmabuf) :
		rpost_fastreg_pin(ib_dev, cmd, access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ret = rpost_fastreg_page_size(umem, cmd, &page_size);
	if (ret < 0)
		goto err_umem;
	ib_mr = ib_alloc_mr(pd->ib_pd, IB_MR_TYPE_MEM_REG, ret);
	if (IS_ERR(ib_mr)) {
		ret = PTR_ERR(ib_mr);
		goto err_umem;
	}
	mr->ib_mr = ib_mr;
	mr->umem = umem;
	ret = rpost_fastreg_map(ib_mr, umem, cmd, page_size);
	return ret ? : rpost_fastreg_run(pd, ib_mr, access);

err_umem:
	ib_umem_release(umem);
	return ret;
}
