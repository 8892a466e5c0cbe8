// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs.  For ids, id_qp.c calls this file. */
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_post.h>

#include "core/internal.h"

#define KNOWN_ATTRS (((IBV_QP_DEST_QPN << 1) - 1) | IBV_QP_RATE_LIMIT)

#define KNOWN_INIT_ATTRS \
	(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS | \
	 IBV_QP_INIT_ATTR_MAX_TSO_HEADER | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)

/* Bytes of inline data, so that short sends of any memory are copied. */
#define ANY_MEMORY_INLINE	256

static uint32_t create_flags(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ?
	       attr->create_flags : 0;
}

/* Refuses what the module does not offer. */
static int check_attr(const struct ibv_qp_init_attr_ex *attr)
{
	uint32_t flags = create_flags(attr);

	if (attr->comp_mask & ~KNOWN_INIT_ATTRS)
		return EOPNOTSUPP;
	if (flags & ~RDMA_POST_QP_ANY_MEMORY)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER &&
	    attr->max_tso_header)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return rpost_qp_ex_check(attr->qp_type, attr->send_ops_flags);
	return 0;
}

static int check_type(const struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
		return 0;
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
	case IBV_QPT_DRIVER:
		return EOPNOTSUPP;
	default:
		return EINVAL;
	}
}

static int check_objects(const struct ibv_context *context,
			 const struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    attr->pd->context != context)
		return EINVAL;
	if ((attr->send_cq && attr->send_cq->context != context) ||
	    (attr->recv_cq && attr->recv_cq->context != context) ||
	    (attr->srq && attr->srq->context != context))
		return EINVAL;
	/* An empty queue needs none; the kernel gets the other one for both. */
	return attr->send_cq || attr->recv_cq ? 0 : EINVAL;
}

/*
 * Providers put inline data in place of the scatter/gather entries, so that
 * programs get room for it without asking, and some depend on that.
 */
static uint32_t inline_room(const struct ibv_qp_cap *cap, bool any_memory)
{
	uint32_t room = any_memory ? ANY_MEMORY_INLINE : sizeof(struct ibv_sge);

	return cap->max_inline_data || !cap->max_send_sge ?
	       cap->max_inline_data : room;
}

static int create_kernel_qp(struct rpost_file *file, uint32_t id,
			    struct rpost_qp *qp,
			    struct ibv_qp_init_attr_ex *attr)
{
	struct rpost_create_qp cmd = {
		.flags = attr->sq_sig_all ? RPOST_QP_SIG_ALL : 0,
		.id = id,
		.pd = attr->pd->handle,
		.send_cq = qp->ibv.send_cq->handle,
		.recv_cq = qp->ibv.recv_cq->handle,
		.max_send_wr = attr->cap.max_send_wr,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_sge = attr->cap.max_recv_sge,
		.max_inline_data = inline_room(&attr->cap, qp->any_memory),
		.qp_type = attr->qp_type,
		.srq = attr->srq ? attr->srq->handle : 0,
		.user_data = qp->async.node.key,
	};
	int err;

	if (qp->any_memory)
		cmd.flags |= RPOST_QP_ANY_MEMORY;
	pthread_rwlock_wrlock(&file->qp_nums);
	err = rpost_ioctl(file->fd, RPOST_IOC_CREATE_QP, &cmd);
	pthread_rwlock_unlock(&file->qp_nums);
	if (err)
		return err;

	attr->cap.max_send_wr = cmd.max_send_wr;
	attr->cap.max_recv_wr = cmd.max_recv_wr;
	attr->cap.max_send_sge = cmd.max_send_sge;
	attr->cap.max_recv_sge = cmd.max_recv_sge;
	attr->cap.max_inline_data = cmd.max_inline_data;
	qp->ibv.handle = cmd.handle;
	qp->ibv.qp_num = cmd.qp_num;
	return 0;
}

int rpost_qp_create(struct ibv_context *context, uint32_t id,
		    struct ibv_qp_init_attr_ex *attr, struct rpost_qp **out)
{
	struct rpost_file *file = rpost_ctx(context)->file;
	struct rpost_qp *qp;
	int err;

	err = check_attr(attr);
	if (!err)
		err = check_type(attr);
	if (!err)
		err = check_objects(context, attr);
	if (err)
		return err;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return ENOMEM;
	qp->ibv.context = context;
	qp->ibv.qp_context = attr->qp_context;
	qp->ibv.pd = attr->pd;
	qp->pd = attr->pd->handle;
	qp->ibv.send_cq = attr->send_cq ? attr->send_cq : attr->recv_cq;
	qp->ibv.recv_cq = attr->recv_cq ? attr->recv_cq : attr->send_cq;
	qp->ibv.srq = attr->srq;
	qp->ibv.qp_type = attr->qp_type;
	qp->ibv.state = id ? IBV_QPS_INIT : IBV_QPS_RESET;
	qp->of_cm = id;
	qp->sig_all = !!attr->sq_sig_all;
	qp->any_memory = file->any_memory ||
			 create_flags(attr) & RDMA_POST_QP_ANY_MEMORY;
	rpost_async_init(&qp->async, context, RPOST_OBJ_QP);
	err = create_kernel_qp(file, id, qp, attr);
	if (err) {
		free(qp);
		return err;
	}

	qp->cap = attr->cap;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		rpost_qp_ex_init(qp);
	rpost_async_add(&qp->async);
	rpost_made_add(context, &qp->made, RPOST_OBJ_QP, &qp->ibv.handle);
	*out = qp;
	return 0;
}

/**
 * rpost_create_qp_ex() - make a queue pair, ibv_create_qp_ex(3)
 * @context: of the device
 * @attr: its attributes; comp_mask must have IBV_QP_INIT_ATTR_PD, and cap is
 *        set to the actual sizes.  With IBV_QP_INIT_ATTR_SEND_OPS_FLAGS the
 *        queue pair supports ibv_wr_post(3).
 *
 * Return: the queue pair, in the RESET state, to be released by
 * ibv_destroy_qp(), or NULL with errno: EINVAL without a protection domain or
 * a completion queue, for objects of another context, or for sizes above the
 * device's; EOPNOTSUPP for other types than IBV_QPT_RC, IBV_QPT_UC and
 * IBV_QPT_UD, other bits of comp_mask, creation flags, and send_ops_flags that
 * the type or the module does not have; ENOMEM, EMFILE, ENODEV.
 */
struct ibv_qp *rpost_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr)
{
	struct rpost_qp *qp;
	int err;

	err = rpost_qp_create(context, 0, attr, &qp);
	return err ? rpost_null(err) : &qp->ibv;
}

/**
 * ibv_create_qp() - make a queue pair, ibv_create_qp(3)
 * @pd: the protection domain
 * @qp_init_attr: its attributes; cap is set to the actual sizes
 *
 * Return: as rpost_create_qp_ex().
 */
RPOST_API struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				       struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = qp_init_attr->qp_context,
		.send_cq = qp_init_attr->send_cq,
		.recv_cq = qp_init_attr->recv_cq,
		.srq = qp_init_attr->srq,
		.cap = qp_init_attr->cap,
		.qp_type = qp_init_attr->qp_type,
		.sq_sig_all = qp_init_attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = rpost_create_qp_ex(pd->context, &attr);
	if (qp)
		qp_init_attr->cap = attr.cap;
	return qp;
}

static void discard(struct rpost_qp *qp)
{
	rpost_cq_discard(qp->ibv.send_cq, qp->ibv.qp_num);
	if (qp->ibv.recv_cq != qp->ibv.send_cq)
		rpost_cq_discard(qp->ibv.recv_cq, qp->ibv.qp_num);
}

int rpost_qp_destroy_handle(struct rpost_qp *qp)
{
	struct rpost_file *file = rpost_ctx(qp->ibv.context)->file;
	int err;

	rpost_qp_update_cntrs(qp);
	pthread_rwlock_rdlock(&file->qp_nums);
	err = rpost_destroy_handle(file->fd, RPOST_OBJ_QP, qp->ibv.handle);
	if (!err)
		discard(qp);
	pthread_rwlock_unlock(&file->qp_nums);
	return err;
}

/**
 * ibv_destroy_qp() - destroy a queue pair, ibv_destroy_qp(3)
 * @qp: the queue pair; its id may have been destroyed
 *
 * Outstanding work requests do not complete, and completions that have not been
 * polled are dropped.  Waits until the program has acknowledged the
 * asynchronous events that ibv_get_async_event() returned for the queue pair.
 *
 * Return: 0, or an errno value: EBUSY while it is attached to a multicast
 * group.
 */
RPOST_API int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct rpost_qp *rqp = rpost_qp(qp);
	int err;

	/* The kernel would detach the groups instead. */
	if (!rqp->orphan && rpost_qp_has_groups(rqp))
		return EBUSY;
	if (!rqp->orphan) {
		err = rpost_qp_destroy_handle(rqp);
		if (err)
			return err;
	}
	rpost_qp_detach_cntrs(rqp);
	rpost_qp_leave_id(rqp);
	rpost_made_del(qp->context, &rqp->made);
	rpost_async_del(&rqp->async);
	rpost_async_wait(&rqp->async, &qp->mutex, &qp->cond,
			 &qp->events_completed);
	rpost_ah_reap(rpost_ctx(qp->context));
	rpost_qp_forget_groups(rqp);
	if (rqp->extended)
		rpost_qp_ex_fini(rqp);
	pthread_cond_destroy(&qp->cond);
	pthread_mutex_destroy(&qp->mutex);
	free(rqp);
	return 0;
}

/* Programs need not initialise fields that @mask does not name. */
static void attr_pack(struct rpost_qp_attr *out, const struct ibv_qp_attr *attr,
		      int mask)
{
	out->attr_mask = mask;
#define PACK(bit, to, from) \
	do { \
		if (mask & (bit)) \
			out->to = attr->from; \
	} while (0)
	PACK(IBV_QP_STATE, qp_state, qp_state);
	PACK(IBV_QP_CUR_STATE, cur_qp_state, cur_qp_state);
	PACK(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify,
	     en_sqd_async_notify);
	PACK(IBV_QP_ACCESS_FLAGS, access, qp_access_flags);
	PACK(IBV_QP_PKEY_INDEX, pkey_index, pkey_index);
	PACK(IBV_QP_PORT, port_num, port_num);
	PACK(IBV_QP_QKEY, qkey, qkey);
	PACK(IBV_QP_PATH_MTU, path_mtu, path_mtu);
	PACK(IBV_QP_TIMEOUT, timeout, timeout);
	PACK(IBV_QP_RETRY_CNT, retry_cnt, retry_cnt);
	PACK(IBV_QP_RNR_RETRY, rnr_retry, rnr_retry);
	PACK(IBV_QP_RQ_PSN, rq_psn, rq_psn);
	PACK(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, max_rd_atomic);
	PACK(IBV_QP_ALT_PATH, alt_pkey_index, alt_pkey_index);
	PACK(IBV_QP_ALT_PATH, alt_port_num, alt_port_num);
	PACK(IBV_QP_ALT_PATH, alt_timeout, alt_timeout);
	PACK(IBV_QP_MIN_RNR_TIMER, min_rnr_timer, min_rnr_timer);
	PACK(IBV_QP_SQ_PSN, sq_psn, sq_psn);
	PACK(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, max_dest_rd_atomic);
	PACK(IBV_QP_PATH_MIG_STATE, path_mig_state, path_mig_state);
	PACK(IBV_QP_DEST_QPN, dest_qp_num, dest_qp_num);
	PACK(IBV_QP_RATE_LIMIT, rate_limit, rate_limit);
#undef PACK
	/*
	 * Some programs pass the access of their regions.  These bits say nothing
	 * about what the peer may do, and the module refuses them.
	 */
	out->access &= ~(uint32_t)(IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND);
	if (mask & IBV_QP_AV)
		rpost_ah_attr_pack(&out->ah, &attr->ah_attr);
	if (mask & IBV_QP_ALT_PATH)
		rpost_ah_attr_pack(&out->alt_ah, &attr->alt_ah_attr);
}

void rpost_qp_attr_unpack(struct ibv_qp_attr *to, const struct rpost_qp_attr *from)
{
	RPOST_QP_MEMBERS(RPOST_COPY)
	to->qp_access_flags = from->access;
	to->rate_limit = from->rate_limit;
	rpost_ah_attr_unpack(&to->ah_attr, &from->ah);
	rpost_ah_attr_unpack(&to->alt_ah_attr, &from->alt_ah);
}

/**
 * ibv_modify_qp() - change a queue pair's attributes, ibv_modify_qp(3)
 * @qp: the queue pair; that of an id can be moved to IBV_QPS_ERR, from RTS to SQD and
 *      back, and once it was connected to RESET, and on from there
 * @attr: the attributes
 * @attr_mask: enum ibv_qp_attr_mask of those to change
 *
 * A move to IBV_QPS_RESET drops the queue pair's completions that have not been
 * polled.
 *
 * Return: 0, or an errno value: EINVAL for an invalid transition, or attributes
 * that it does not allow or lacks, EPERM for a privileged queue key, EOPNOTSUPP
 * for IBV_QP_CAP and unknown bits of @attr_mask;
 * ENOENT if the queue pair's id has been destroyed.
 */
RPOST_API int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			    int attr_mask)
{
	struct rpost_modify_qp cmd = { .handle = qp->handle };
	int err;

	if (attr_mask & (~KNOWN_ATTRS | IBV_QP_CAP))
		return EOPNOTSUPP;
	if (rpost_qp(qp)->orphan)
		return ENOENT;
	attr_pack(&cmd.attr, attr, attr_mask);
	err = rpost_ioctl(qp->context->cmd_fd, RPOST_IOC_MODIFY_QP, &cmd);
	if (err || !(attr_mask & IBV_QP_STATE))
		return err;

	qp->state = attr->qp_state;
	if (qp->state == IBV_QPS_RESET)
		discard(rpost_qp(qp));
	return 0;
}

/**
 * rpost_modify_qp_rate_limit() - limit a queue pair's rate,
 * ibv_modify_qp_rate_limit(3)
 * @qp: the queue pair
 * @attr: rate_limit in kbit/s; max_burst_sz and typical_pkt_sz must be 0
 *
 * Return: as ibv_modify_qp(), and EOPNOTSUPP for burst or packet sizes.
 */
int rpost_modify_qp_rate_limit(struct ibv_qp *qp,
			       struct ibv_qp_rate_limit_attr *attr)
{
	struct ibv_qp_attr qp_attr = { .rate_limit = attr->rate_limit };

	if (attr->comp_mask || attr->max_burst_sz || attr->typical_pkt_sz)
		return EOPNOTSUPP;
	return ibv_modify_qp(qp, &qp_attr, IBV_QP_RATE_LIMIT);
}

/**
 * ibv_query_qp() - get a queue pair's attributes, ibv_query_qp(3)
 * @qp: the queue pair
 * @attr: filled in, with all attributes
 * @attr_mask: enum ibv_qp_attr_mask of the attributes wanted
 * @init_attr: filled in with the attributes that the queue pair was made with
 *
 * Return: 0, or an errno value: EOPNOTSUPP for bits of @attr_mask from
 * IBV_QP_RATE_LIMIT on, as in libibverbs; ENOENT if the queue pair's id has
 * been destroyed.
 */
RPOST_API int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			   int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct rpost_qp *rqp = rpost_qp(qp);
	struct rpost_query_qp q = { .handle = qp->handle };
	int err;

	/* Programs may set all lower bits, also those that have no name. */
	if (attr_mask & ~(IBV_QP_RATE_LIMIT - 1))
		return EOPNOTSUPP;
	if (rqp->orphan)
		return ENOENT;
	err = rpost_ioctl(qp->context->cmd_fd, RPOST_IOC_QUERY_QP, &q);
	if (err)
		return err;

	memset(attr, 0, sizeof(*attr));
	rpost_qp_attr_unpack(attr, &q.attr);
	attr->cap = rqp->cap;

	memset(init_attr, 0, sizeof(*init_attr));
	init_attr->qp_context = qp->qp_context;
	init_attr->send_cq = qp->send_cq;
	init_attr->recv_cq = qp->recv_cq;
	init_attr->srq = qp->srq;
	init_attr->cap = rqp->cap;
	init_attr->qp_type = qp->qp_type;
	init_attr->sq_sig_all = rqp->sig_all;
	qp->state = attr->qp_state;
	return 0;
}
