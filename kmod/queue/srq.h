/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared receive queues.
 */
#ifndef RPOST_SRQ_H
#define RPOST_SRQ_H

#include <linux/xarray.h>

#include "queue/qp.h"

/* ------------------------------------------------------------- srq.c */

/*
 * A receive between post and completion, with the counted regions that it uses, or a slot
 * in a list.  With a @bad_key it names memory that the program may not use.
 */
struct rpost_srq_wqe {
	struct ib_cqe cqe;
	struct rpost_srq *srq;
	u64 wr_id;
	struct rpost_srq_wqe *next;
	struct rpost_uses uses;
	bool bad_key;
};

/* Slots that were allocated together; @next were allocated before. */
struct rpost_srq_slots {
	struct rpost_srq_slots *next;
	u32 num;
	struct rpost_srq_wqe wqes[];
};

/**
 * struct rpost_srq - shared receive queue
 * @obj: its handle
 * @pd: depends on it
 * @ib_srq: NULL once shut down; under the context's rwsem
 * @user_data: identifies it to the program
 * @max_wr: work requests that the program may have in it; written under
 *          @qp_lock
 * @max_sge: scatter/gather entries in each
 * @qp_lock: held while a queue pair is added or removed, or the queue is modified
 *           or queried; guards @cqs, @slots and @max_slots
 * @cqs: struct rpost_srq_cq.  Any receive may complete on any of them, so each
 *       has room for all receives.
 * @qps: its queue pairs by the address of their struct ib_qp, to find the queue
 *       pair of a completion.  The address is not followed: the ib_qp may have
 *       been freed by then.
 * @slots: all slots, @max_slots of them
 * @max_slots: also the room for completions in each of @cqs
 * @lock: guards all that follows, and the order of posts
 * @lost: number of receives that may never complete
 * @free: the free slots
 * @spares: the slots that have not come into use
 * @used: receives that have slots; read without @lock, too
 * @closing: posts fail, and events are not reported
 * @leaked: the device keeps it, so that its memory may not be freed
 *
 * Receives complete in any order, so each slot returns to a free list by
 * itself, and can be taken again at once.
 *
 * A queue pair that is stopped within a message should flush its receive; since
 * 6.9 rxe forgets it, and its slot, which cannot be identified, never returns.
 * So once the program has run out of slots, it may use one spare slot for each
 * queue pair that has been stopped, while there are any.
 *
 * Resizing moves slots from @spares to @free, or back.  New slots are allocated
 * beside the old ones, to which outstanding receives point.
 */
struct rpost_srq {
	struct rpost_obj obj;
	struct rpost_pd *pd;
	struct ib_srq *ib_srq;
	u64 user_data;
	u32 max_wr;
	u32 max_sge;
	struct mutex qp_lock;
	struct list_head cqs;
	struct xarray qps;
	struct rpost_srq_slots *slots;
	u32 max_slots;
	spinlock_t lock;
	u32 lost;
	struct rpost_srq_wqe *free;
	struct rpost_srq_wqe *spares;
	u32 used;
	bool closing;
	bool leaked;
};

RPOST_OBJ_ENTER_GETTER(srq, RPOST_OBJ_SRQ)

bool rpost_srq_can_resize(const struct ib_device *ib_dev);
int rpost_srq_shutdown(struct rpost_obj *obj);
void rpost_srq_free(struct rpost_obj *obj);
struct rpost_hwcq *rpost_srq_attach_cq(struct rpost_srq *srq, struct rpost_cq *cq);
void rpost_srq_detach_cq(struct rpost_srq *srq, struct rpost_cq *cq);
int rpost_srq_add_qp(struct rpost_srq *srq, struct rpost_qp *qp);
void rpost_srq_del_qp(struct rpost_srq *srq, struct ib_qp *ib_qp);
struct rpost_qp *rpost_srq_find_qp(struct rpost_srq *srq, struct ib_qp *ib_qp);
void rpost_srq_may_lose(struct rpost_srq *srq);
struct rpost_srq_wqe *rpost_srq_slot(struct rpost_srq *srq);
void rpost_srq_slot_free(struct rpost_srq *srq, struct rpost_srq_wqe *wqe);

#endif /* RPOST_SRQ_H */
