// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues.  See struct rpost_srq.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "compat/compat.h"
#include "memory/memory.h"
#include "queue/srq.h"

/* Slots that are moved between two lists at once. */
#define RPOST_SRQ_BATCH		64u

/*
 * Room for a shared receive queue's completions, in @hwcq, which is of a completion queue
 * that @users of its queue pairs have.
 */
struct rpost_srq_cq {
	struct list_head link;
	struct rpost_cq *cq;
	struct rpost_hwcq *hwcq;
	unsigned int users;
};

#define RPOST_MIN_SPARES	1024u

/*
 * Get room for the receives of a new queue pair, which complete on @cq.  Call with
 * qp_lock held.  Return the device queue to use, until rpost_srq_detach_cq(), or an
 * ERR_PTR().
 */
struct rpost_hwcq *rpost_srq_attach_cq(struct rpost_srq *srq, struct rpost_cq *cq)
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

/* Call with qp_lock held.  None of the queue pair's receives is outstanding. */
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

/* Let completions find a queue pair, which has not received anything yet. */
int rpost_srq_add_qp(struct rpost_srq *srq, struct rpost_qp *qp)
{
	lockdep_assert_held(&srq->qp_lock);
	return xa_err(xa_store(&srq->qps, rpost_srq_key(qp->ib_qp), qp, RPOST_GFP));
}

/*
 * Let completions no longer find a queue pair.  All of its completions have been
 * polled, and qp_lock has been held since before ib_qp was destroyed, so that no
 * other has got its address.
 */
void rpost_srq_del_qp(struct rpost_srq *srq, struct ib_qp *ib_qp)
{
	lockdep_assert_held(&srq->qp_lock);
	xa_erase(&srq->qps, rpost_srq_key(ib_qp));
}

/*
 * Return the queue pair of a completion, valid while the lock of its completion
 * queue is held, or NULL.
 */
struct rpost_qp *rpost_srq_find_qp(struct rpost_srq *srq, struct ib_qp *ib_qp)
{
	return xa_load(&srq->qps, rpost_srq_key(ib_qp));
}

/* Note that a stopped queue pair may have lost a receive. */
void rpost_srq_may_lose(struct rpost_srq *srq)
{
	spin_lock_bh(&srq->lock);
	srq->lost++;
	spin_unlock_bh(&srq->lock);
}

/* Move @n slots.  Return false, and move none, if there are fewer. */
static bool rpost_srq_move(struct rpost_srq_wqe **from, struct rpost_srq_wqe **to, u32 n)
{
	struct rpost_srq_wqe *first = *from, **end = from;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!*end)
			return false;
		end = &(*end)->next;
	}
	if (n) {
		*from = *end;
		*end = *to;
		*to = first;
	}
	return true;
}

/*
 * Move @n slots of lists that posts use, a few with the lock held.  Return false, and
 * move none, if there are fewer.
 */
static bool rpost_srq_move_many(struct rpost_srq *srq, struct rpost_srq_wqe **from,
				struct rpost_srq_wqe **to, u32 n)
{
	u32 some, done = 0;
	bool moved = true;

	while (moved && done < n) {
		some = min(n - done, RPOST_SRQ_BATCH);
		spin_lock_bh(&srq->lock);
		moved = rpost_srq_move(from, to, some);
		spin_unlock_bh(&srq->lock);
		done += moved ? some : 0;
		cond_resched();
	}
	if (!moved)
		rpost_srq_move_many(srq, to, from, done);
	return moved;
}

/* Call with the queue's lock held.  Return NULL if all slots are taken. */
struct rpost_srq_wqe *rpost_srq_slot(struct rpost_srq *srq)
{
	struct rpost_srq_wqe *wqe;

	lockdep_assert_held(&srq->lock);

	if (!srq->free && srq->lost &&
	    rpost_srq_move(&srq->spares, &srq->free, 1))
		srq->lost--;
	wqe = srq->free;
	if (!wqe)
		return NULL;
	srq->free = wqe->next;
	WRITE_ONCE(srq->used, srq->used + 1);
	return wqe;
}

/* Call with the queue's lock held. */
void rpost_srq_slot_free(struct rpost_srq *srq, struct rpost_srq_wqe *wqe)
{
	lockdep_assert_held(&srq->lock);

	if (unlikely(wqe->uses.num))
		rpost_uses_drop(&wqe->uses);
	wqe->next = srq->free;
	srq->free = wqe;
	WRITE_ONCE(srq->used, srq->used - 1);
}

/* The driver calls this in any context. */
static void rpost_srq_event(struct ib_event *event, void *context)
{
	struct rpost_srq *srq = context;

	/* The device may keep it, when its file and device have gone. */
	if (!READ_ONCE(srq->closing))
		rpost_async_post(&srq->obj, srq->user_data, event->event);
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

/*
 * Drop the uses of receives that have not completed, or never will.  There may
 * be millions, so the spinlock is held for one receive at a time.
 */
static void rpost_srq_drop_uses(struct rpost_srq *srq)
{
	struct rpost_srq_slots *slots;
	u32 i;

	mutex_lock(&srq->qp_lock);
	for (slots = srq->slots; slots; slots = slots->next) {
		for (i = 0; i < slots->num; i++) {
			spin_lock_bh(&srq->lock);
			rpost_uses_drop(&slots->wqes[i].uses);
			spin_unlock_bh(&srq->lock);
			cond_resched();
		}
	}
	mutex_unlock(&srq->qp_lock);
}

/*
 * No queue pair uses the shared receive queue.  Return 0, even if the device keeps
 * it for ever.
 */
int rpost_srq_shutdown(struct rpost_obj *obj)
{
	struct rpost_srq *srq = rpost_obj_as(srq, obj);
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
	rpost_srq_drop_uses(srq);
	rpost_limit_give_wr(obj->file, srq->max_wr,
			    rpost_device_rq_bytes(srq->max_wr, srq->max_sge));
	return 0;
}

static void rpost_srq_free_slots(struct rpost_srq *srq)
{
	struct rpost_srq_slots *slots, *next;

	for (slots = srq->slots; slots; slots = next) {
		next = slots->next;
		kvfree(slots);
	}
}

void rpost_srq_free(struct rpost_obj *obj)
{
	struct rpost_srq *srq = rpost_obj_as(srq, obj);

	rpost_obj_unuse(&srq->pd->obj);
	xa_destroy(&srq->qps);
	if (srq->leaked)
		return;
	rpost_srq_free_slots(srq);
	kfree_rcu(srq, obj.rcu);
}

/* Get room for @n more receives where any may complete, or nowhere. */
static int rpost_srq_grow_cqs(struct rpost_srq *srq, u32 n)
{
	struct rpost_srq_cq *room;
	int ret = 0;

	list_for_each_entry(room, &srq->cqs, link) {
		ret = rpost_cq_grow(room->hwcq, n);
		if (ret)
			break;
	}
	if (ret)
		list_for_each_entry_continue_reverse(room, &srq->cqs, link)
			rpost_cq_detach(room->hwcq, n);
	return ret;
}

/*
 * Have slots for @max_wr receives, and as many spare ones, but at least
 * RPOST_MIN_SPARES; fewer if the device's completion queues cannot hold all.
 */
static int rpost_srq_add_slots(struct rpost_srq *srq, u32 max_wr)
{
	u32 max_cqe = srq->obj.dev->ib_dev->attrs.max_cqe;
	u32 i, n, max = min(max_wr + max(max_wr, RPOST_MIN_SPARES), max_cqe);
	struct rpost_srq_slots *slots;
	size_t bytes;
	int ret;

	if (max <= srq->max_slots)
		return 0;
	n = max - srq->max_slots;
	/* kmalloc() rounds up. */
	bytes = roundup_pow_of_two(struct_size(slots, wqes, n));
	ret = rpost_obj_take_bytes(&srq->obj, bytes);
	if (ret)
		return ret;
	ret = -ENOMEM;
	slots = rpost_kvcalloc(1, struct_size(slots, wqes, n));
	if (!slots)
		goto err_bytes;
	ret = rpost_srq_grow_cqs(srq, n);
	if (ret)
		goto err_free;
	for (i = 0; i < n; i++) {
		slots->wqes[i].cqe.done = rpost_srq_done;
		slots->wqes[i].srq = srq;
		slots->wqes[i].next = &slots->wqes[i + 1];
	}
	slots->num = n;
	slots->next = srq->slots;
	srq->slots = slots;
	srq->max_slots = max;
	spin_lock_bh(&srq->lock);
	slots->wqes[n - 1].next = srq->spares;
	srq->spares = slots->wqes;
	spin_unlock_bh(&srq->lock);
	return 0;

err_free:
	kvfree(slots);
err_bytes:
	rpost_obj_give_bytes(&srq->obj, bytes);
	return ret;
}

static int rpost_create_srq_validate(const struct rpost_create_srq *cmd, struct ib_device *ib_dev)
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

static int rpost_srq_build(struct rpost_srq *srq, const struct rpost_create_srq *cmd)
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
	int ret;

	mutex_init(&srq->qp_lock);
	INIT_LIST_HEAD(&srq->cqs);
	xa_init_flags(&srq->qps, XA_FLAGS_ACCOUNT);
	spin_lock_init(&srq->lock);
	srq->user_data = cmd->user_data;
	srq->max_wr = cmd->max_wr;
	srq->max_sge = cmd->max_sge;
	ret = rpost_srq_add_slots(srq, cmd->max_wr);
	if (ret)
		return ret;
	rpost_srq_move(&srq->spares, &srq->free, cmd->max_wr);
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
	rpost_srq_free_slots(srq);
	return ret;
}

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
	ret = rpost_obj_reserve(ucmd->file, &srq->obj, RPOST_OBJ_SRQ, pd->obj.dev, RPOST_GFP);
	if (ret)
		goto err_free;
	ret = rpost_srq_build(srq, cmd);
	if (ret)
		goto err_unreserve;

	cmd->handle = srq->obj.handle;
	return rpost_obj_answer(ucmd, &srq->obj);

err_unreserve:
	rpost_obj_unreserve(&srq->obj);
err_free:
	kfree(srq);
err_unuse:
	rpost_obj_unuse(&pd->obj);
	return ret;
}

bool rpost_srq_can_resize(const struct ib_device *ib_dev)
{
	return (ib_dev->attrs.device_cap_flags & IB_DEVICE_SRQ_RESIZE) &&
	       rpost_compat_can_resize_srq(ib_dev);
}

static int rpost_modify_srq_validate(const struct rpost_modify_srq *cmd,
				     const struct rpost_srq *srq)
{
	struct ib_device *ib_dev = srq->obj.dev->ib_dev;
	bool resize = cmd->attr_mask & RPOST_SRQ_MAX_WR;

	if (resize && !rpost_srq_can_resize(ib_dev))
		return -EOPNOTSUPP;
	if (resize && (!cmd->max_wr ||
		       cmd->max_wr > rpost_device_max_srq_wr(ib_dev)))
		return -EINVAL;
	if (cmd->limit > (resize ? cmd->max_wr : srq->max_wr))
		return -EINVAL;
	return 0;
}

/* Ask the device, and resize the queue with it; under @srq->qp_lock. */
static int rpost_srq_resize(struct rpost_srq *srq, struct ib_srq_attr *attr,
			    enum ib_srq_attr_mask mask)
{
	u32 old = srq->max_wr, new = attr->max_wr, n = max(old, new) - min(old, new);
	struct rpost_srq_wqe *moved = NULL;
	bool moves, grows = new > old;
	int ret;

	/* While the device copies its queue, it has both. */
	ret = rpost_limit_take_wr(srq->obj.file, new, rpost_device_rq_bytes(new, srq->max_sge));
	if (ret)
		return ret;
	/* If that fails, the spare slots may still be enough. */
	ret = grows ? rpost_srq_add_slots(srq, new) : 0;
	moves = rpost_srq_move_many(srq, grows ? &srq->spares : &srq->free, &moved, n);
	if (!moves) {
		if (!ret)
			ret = grows ? -ENOMEM : -EINVAL;
		goto out;
	}
	ret = ib_modify_srq(srq->ib_srq, attr, mask);
	rpost_srq_move_many(srq, &moved, !ret == grows ? &srq->free : &srq->spares, n);
	if (!ret) {
		WRITE_ONCE(srq->max_wr, new);
		new = old;
	}
out:
	rpost_limit_give_wr(srq->obj.file, new, rpost_device_rq_bytes(new, srq->max_sge));
	return ret;
}

int rpost_modify_srq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_modify_srq *cmd = &ucmd->cmd.modify_srq;
	struct ib_srq_attr attr = {
		.max_wr = cmd->max_wr,
		.srq_limit = cmd->limit,
	};
	struct rpost_srq *srq;
	int ret;

	if ((cmd->attr_mask & ~(RPOST_SRQ_LIMIT | RPOST_SRQ_MAX_WR)) ||
	    (cmd->max_wr && !(cmd->attr_mask & RPOST_SRQ_MAX_WR)))
		return -EOPNOTSUPP;
	srq = rpost_srq_enter_get(ucmd, cmd->handle);
	if (IS_ERR(srq))
		return PTR_ERR(srq);

	mutex_lock(&srq->qp_lock);
	ret = srq->ib_srq ? rpost_modify_srq_validate(cmd, srq) : -ENODEV;
	if (!ret && (cmd->attr_mask & RPOST_SRQ_MAX_WR) &&
	    cmd->max_wr != srq->max_wr)
		ret = rpost_srq_resize(srq, &attr, cmd->attr_mask);
	else if (!ret && (cmd->attr_mask & RPOST_SRQ_LIMIT))
		ret = ib_modify_srq(srq->ib_srq, &attr, IB_SRQ_LIMIT);
	mutex_unlock(&srq->qp_lock);
	rpost_obj_put(&srq->obj);
	return ret;
}

int rpost_query_srq_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_srq *cmd = &ucmd->cmd.query_srq;
	struct ib_srq_attr attr = {};
	struct rpost_srq *srq;
	int ret;

	srq = rpost_srq_enter_get(ucmd, cmd->handle);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	/* rxe does not guard its queue against ib_modify_srq(). */
	mutex_lock(&srq->qp_lock);
	ret = srq->ib_srq ? ib_query_srq(srq->ib_srq, &attr) : -ENODEV;
	cmd->max_wr = srq->max_wr;
	mutex_unlock(&srq->qp_lock);
	cmd->max_sge = srq->max_sge;
	cmd->limit = attr.srq_limit;
	rpost_obj_put(&srq->obj);
	return ret ? : rpost_respond(ucmd);
}
