// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues.  See struct rpost_srq.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "device.h"
#include "srq.h"

#define RPOST_NO_SLOT	U32_MAX

/**
 * struct rpost_srq_cq - room for a shared receive queue's completions
 * @link: in @cqs of the shared receive queue
 * @cq: a completion queue of some of its queue pairs
 * @hwcq: the device queue of @cq that has the room
 * @users: number of these queue pairs
 */
struct rpost_srq_cq {
	struct list_head link;
	struct rpost_cq *cq;
	struct rpost_hwcq *hwcq;
	unsigned int users;
};

#define RPOST_MIN_SPARES	1024u

/**
 * rpost_srq_attach_cq() - get room for the receives of a new queue pair
 * @srq: the shared receive queue, with its qp_lock held
 * @cq: the completion queue of its receives
 *
 * Return: the device queue to use, until rpost_srq_detach_cq(), or an ERR_PTR.
 */
struct rpost_hwcq *rpost_srq_attach_cq(struct rpost_srq *srq,
				       struct rpost_cq *cq)
{
	struct rpost_srq_cq *room;
	struct rpost_hwcq *hwcq;

	lockdep_assert_held(&srq->qp_lock);

	list_for_each_entry(room, &srq->cqs, link) {
		if (room->cq == cq) {
			room->users++;
			return room->hwcq;
		}
	}
	room = kzalloc(sizeof(*room), RPOST_GFP);
	if (!room)
		return ERR_PTR(-ENOMEM);
	hwcq = rpost_cq_attach(cq, srq->max_slots);
	if (IS_ERR(hwcq)) {
		kfree(room);
		return hwcq;
	}
	room->cq = cq;
	room->hwcq = hwcq;
	room->users = 1;
	list_add_tail(&room->link, &srq->cqs);
	return hwcq;
}

/**
 * rpost_srq_detach_cq() - undo rpost_srq_attach_cq()
 * @srq: the shared receive queue, with its qp_lock held
 * @cq: the same; none of the queue pair's receives is outstanding
 */
void rpost_srq_detach_cq(struct rpost_srq *srq, struct rpost_cq *cq)
{
	struct rpost_srq_cq *room, *next;

	lockdep_assert_held(&srq->qp_lock);

	list_for_each_entry_safe(room, next, &srq->cqs, link) {
		if (room->cq != cq || --room->users)
			continue;
		rpost_cq_detach(room->hwcq, srq->max_slots);
		list_del(&room->link);
		kfree(room);
	}
}

/* Drop the low bits, so that neighbours share nodes of the table. */
static unsigned long rpost_srq_key(const struct ib_qp *ib_qp)
{
	BUILD_BUG_ON(sizeof(*ib_qp) < L1_CACHE_BYTES);
	return (unsigned long)ib_qp / L1_CACHE_BYTES;
}

/**
 * rpost_srq_add_qp() - let completions find a queue pair
 * @srq: the shared receive queue, with its qp_lock held
 * @qp: the queue pair, which has not received anything yet
 *
 * Return: 0, or -ENOMEM.
 */
int rpost_srq_add_qp(struct rpost_srq *srq, struct rpost_qp *qp)
{
	lockdep_assert_held(&srq->qp_lock);
	return xa_err(xa_store(&srq->qps, rpost_srq_key(qp->ib_qp), qp,
			       RPOST_GFP));
}

/**
 * rpost_srq_del_qp() - let completions no longer find a queue pair
 * @srq: the shared receive queue, with its qp_lock held since before @ib_qp was
 *       destroyed, so that no other has got its address
 * @ib_qp: the device's queue pair, whose completions have all been polled
 */
void rpost_srq_del_qp(struct rpost_srq *srq, struct ib_qp *ib_qp)
{
	lockdep_assert_held(&srq->qp_lock);
	xa_erase(&srq->qps, rpost_srq_key(ib_qp));
}

/**
 * rpost_srq_find_qp() - find the queue pair of a completion
 * @srq: the shared receive queue
 * @ib_qp: the device's queue pair
 *
 * Return: the queue pair, valid while the lock of its completion queue is held,
 * or NULL.
 */
struct rpost_qp *rpost_srq_find_qp(struct rpost_srq *srq, struct ib_qp *ib_qp)
{
	return xa_load(&srq->qps, rpost_srq_key(ib_qp));
}

/**
 * rpost_srq_may_lose() - a stopped queue pair may have lost a receive
 * @srq: the shared receive queue
 */
void rpost_srq_may_lose(struct rpost_srq *srq)
{
	spin_lock_bh(&srq->lock);
	srq->lost++;
	spin_unlock_bh(&srq->lock);
}

/**
 * rpost_srq_slot() - take a slot
 * @srq: the shared receive queue, with its lock held
 *
 * Return: the slot, or NULL if all are taken.
 */
struct rpost_srq_wqe *rpost_srq_slot(struct rpost_srq *srq)
{
	struct rpost_srq_wqe *wqe;

	lockdep_assert_held(&srq->lock);

	if (srq->free == RPOST_NO_SLOT && srq->lost &&
	    srq->num_slots < srq->max_slots) {
		srq->lost--;
		rpost_srq_slot_free(srq, &srq->wqes[srq->num_slots++]);
	}
	if (srq->free == RPOST_NO_SLOT)
		return NULL;
	wqe = &srq->wqes[srq->free];
	srq->free = wqe->next;
	return wqe;
}

/**
 * rpost_srq_slot_free() - give a slot back
 * @srq: the shared receive queue, with its lock held
 * @wqe: the slot
 */
void rpost_srq_slot_free(struct rpost_srq *srq, struct rpost_srq_wqe *wqe)
{
	lockdep_assert_held(&srq->lock);

	wqe->next = srq->free;
	srq->free = wqe - srq->wqes;
}

/* Called by the driver, in any context. */
static void rpost_srq_event(struct ib_event *event, void *context)
{
	struct rpost_srq *srq = context;
	struct rpost_async_event async = {
		.user_data = srq->user_data,
		.event = event->event,
		.obj_type = RPOST_OBJ_SRQ,
		.handle = srq->obj.handle,
	};

	/* The device may keep it, when its file and device have gone. */
	if (!READ_ONCE(srq->closing))
		rpost_async_post(srq->obj.dev, srq->obj.file, &async);
}

/* The device keeps it for ever, with its protection domain. */
static void rpost_srq_leak(struct rpost_srq *srq, int error)
{
	/* The first object of the domain that has leaked was logged. */
	if (!srq->pd->leaked)
		pr_warn_ratelimited("rdma_post: %s: shared receive queue not destroyed: %d\n",
				    srq->obj.dev->ib_dev->name, error);
	srq->leaked = true;
	srq->pd->leaked = true;
	rpost_leave_behind(&srq->ib_srq->res, srq->obj.dev);
}

/**
 * rpost_srq_shutdown() - destroy a shared receive queue on its device
 * @obj: the shared receive queue; no queue pair uses it
 *
 * Return: 0.
 */
int rpost_srq_shutdown(struct rpost_obj *obj)
{
	struct rpost_srq *srq = container_of(obj, struct rpost_srq, obj);
	int ret;

	if (!srq->ib_srq)
		return 0;
	spin_lock_bh(&srq->lock);
	WRITE_ONCE(srq->closing, true);
	spin_unlock_bh(&srq->lock);
	/* A queue pair that the device keeps needs it, see rpost_qp_leak(). */
	ret = ib_destroy_srq_user(srq->ib_srq, NULL);
	if (ret)
		rpost_srq_leak(srq, ret);
	srq->ib_srq = NULL;
	rpost_limit_give_wr(obj->file, srq->max_wr,
			    rpost_device_rq_bytes(srq->max_wr, srq->max_sge));
	return 0;
}

/**
 * rpost_srq_free() - free a shared receive queue's memory
 * @obj: the shared receive queue, shut down
 */
void rpost_srq_free(struct rpost_obj *obj)
{
	struct rpost_srq *srq = container_of(obj, struct rpost_srq, obj);

	rpost_obj_unuse(&srq->pd->obj);
	rpost_device_put(srq->obj.dev);
	xa_destroy(&srq->qps);
	if (srq->leaked)
		return;
	kvfree(srq->wqes);
	kfree_rcu(srq, obj.rcu);
}

static int rpost_create_srq_validate(const struct rpost_create_srq *cmd,
				     struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;

	if (!attr->max_srq || !ib_dev->ops.create_srq ||
	    !ib_dev->ops.post_srq_recv)
		return -EOPNOTSUPP;
	if (!cmd->max_wr || cmd->max_wr > rpost_device_max_srq_wr(ib_dev) ||
	    cmd->max_sge > min(attr->max_srq_sge, RPOST_MAX_SGE) ||
	    cmd->limit > cmd->max_wr)
		return -EINVAL;
	return 0;
}

static int rpost_srq_build(struct rpost_srq *srq,
			   const struct rpost_create_srq *cmd)
{
	struct ib_srq_init_attr attr = {
		.event_handler = rpost_srq_event,
		.srq_context = srq,
		.attr = {
			.max_wr = cmd->max_wr,
			.max_sge = max(cmd->max_sge, 1u),
			.srq_limit = cmd->limit,
		},
		.srq_type = IB_SRQT_BASIC,
	};
	u32 i, max_cqe = srq->obj.dev->ib_dev->attrs.max_cqe;
	int ret;

	mutex_init(&srq->qp_lock);
	INIT_LIST_HEAD(&srq->cqs);
	xa_init_flags(&srq->qps, XA_FLAGS_ACCOUNT);
	spin_lock_init(&srq->lock);
	srq->user_data = cmd->user_data;
	srq->max_wr = cmd->max_wr;
	srq->max_sge = cmd->max_sge;
	srq->num_slots = cmd->max_wr;
	srq->max_slots = min(cmd->max_wr + max(cmd->max_wr, RPOST_MIN_SPARES),
			     max_cqe);
	/* kmalloc() rounds up. */
	ret = rpost_obj_take_bytes(&srq->obj,
				   roundup_pow_of_two(srq->max_slots * sizeof(*srq->wqes)));
	if (ret)
		return ret;
	srq->wqes = rpost_kvcalloc(srq->max_slots, sizeof(*srq->wqes));
	if (!srq->wqes)
		return -ENOMEM;
	for (i = 0; i < srq->max_slots; i++) {
		srq->wqes[i].cqe.done = rpost_srq_done;
		srq->wqes[i].srq = srq;
		srq->wqes[i].next = i + 1;
	}
	srq->wqes[srq->num_slots - 1].next = RPOST_NO_SLOT;
	ret = rpost_limit_take_wr(srq->obj.file, srq->max_wr,
				  rpost_device_rq_bytes(srq->max_wr, srq->max_sge));
	if (ret)
		goto err_free;
	srq->ib_srq = ib_create_srq(srq->pd->ib_pd, &attr);
	ret = PTR_ERR_OR_ZERO(srq->ib_srq);
	if (ret)
		goto err_limit;
	return 0;

err_limit:
	rpost_limit_give_wr(srq->obj.file, srq->max_wr,
			    rpost_device_rq_bytes(srq->max_wr, srq->max_sge));
err_free:
	kvfree(srq->wqes);
	return ret;
}

/**
 * rpost_create_srq_ioctl() - create a shared receive queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_create_srq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_srq *cmd = &ucmd->cmd.create_srq;
	struct rpost_srq *srq;
	struct rpost_pd *pd;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	pd = rpost_pd_use(ucmd, cmd->pd);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ret = rpost_create_srq_validate(cmd, pd->obj.dev->ib_dev);
	if (ret)
		goto err_unuse;

	ret = -ENOMEM;
	srq = kzalloc(sizeof(*srq), RPOST_GFP);
	if (!srq)
		goto err_unuse;
	srq->pd = pd;
	ret = rpost_obj_reserve(ucmd->file, &srq->obj, RPOST_OBJ_SRQ,
				pd->obj.dev);
	if (ret)
		goto err_free;
	ret = rpost_srq_build(srq, cmd);
	if (ret)
		goto err_unreserve;

	cmd->handle = srq->obj.handle;
	rpost_device_hold(srq->obj.dev);
	return rpost_obj_answer(ucmd, &srq->obj, 0);

err_unreserve:
	rpost_obj_unreserve(&srq->obj);
err_free:
	kfree(srq);
err_unuse:
	rpost_obj_unuse(&pd->obj);
	return ret;
}

/**
 * rpost_modify_srq_ioctl() - set the limit of a shared receive queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_modify_srq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_modify_srq *cmd = &ucmd->cmd.modify_srq;
	struct ib_srq_attr attr = { .srq_limit = cmd->limit };
	struct rpost_obj *obj;
	struct rpost_srq *srq;
	int ret;

	if ((cmd->attr_mask & ~RPOST_SRQ_LIMIT) || cmd->max_wr)
		return -EOPNOTSUPP;
	obj = rpost_enter_get(ucmd, cmd->handle, RPOST_OBJ_SRQ);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	srq = container_of(obj, struct rpost_srq, obj);

	ret = -ENODEV;
	if (!srq->ib_srq)
		goto out;
	ret = -EINVAL;
	if (cmd->limit > srq->max_wr)
		goto out;
	ret = 0;
	if (cmd->attr_mask)
		ret = ib_modify_srq(srq->ib_srq, &attr, IB_SRQ_LIMIT);
out:
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_query_srq_ioctl() - report size and limit of a shared receive queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_query_srq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_srq *cmd = &ucmd->cmd.query_srq;
	struct ib_srq_attr attr = {};
	struct rpost_obj *obj;
	struct rpost_srq *srq;
	int ret;

	obj = rpost_enter_get(ucmd, cmd->handle, RPOST_OBJ_SRQ);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	srq = container_of(obj, struct rpost_srq, obj);
	ret = srq->ib_srq ? ib_query_srq(srq->ib_srq, &attr) : -ENODEV;
	cmd->max_wr = srq->max_wr;
	cmd->max_sge = srq->max_sge;
	cmd->limit = attr.srq_limit;
	rpost_obj_put(obj);
	return ret ? : rpost_respond(ucmd);
}
