/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Queue pairs, their queues, and address handles.
 */
#ifndef RPOST_QP_H
#define RPOST_QP_H

#include "id/id.h"
#include "queue/cq.h"

/* --------------------------------------------------------------- qp.c */

/**
 * struct rpost_wqe_kind - opcode and flags of a work request
 * @opcode: RPOST_WC_* of its completion
 * @signaled: the program wants a completion on success, too
 * @bad_key: it names memory that it may not use, see struct rpost_pd
 * @waits: it has completed, and its slot is free once the program has consumed
 *         the completion
 */
struct rpost_wqe_kind {
	u8 opcode;
	bool signaled;
	bool bad_key;
	bool waits;
};

/**
 * struct rpost_wqe - a work request between post and completion, 32 bytes
 * @cqe: identifies it to the device, whose completion points to it
 * @qp: the queue pair; the ib_qp that the completion names may have been freed
 * @wr_id: identifies it to the program
 * @pos: number of the ring entry of its completion, plus 1
 * @kind: opcode and flags
 */
struct rpost_wqe {
	struct ib_cqe cqe;
	struct rpost_qp *qp;
	u64 wr_id;
	u32 pos;
	struct rpost_wqe_kind kind;
};

/**
 * struct rpost_uses - counted regions that a work request uses
 * @num: how many
 * @mr: the region, if it is one
 * @mrs: the regions, if they are more
 *
 * A region that the module has registered itself stays until the work request
 * has completed, or will not be posted.
 */
struct rpost_uses {
	u32 num;
	union {
		struct rpost_mr *mr;
		struct rpost_mr **mrs;
	};
};

/**
 * struct rpost_queue - send or receive queue
 * @lock: held for a post, so that slots are taken in the order in which the
 *        device gets the work requests.  It disables bottom halves, so that a
 *        driver's tasklet runs after the post, and not in ksoftirqd (rxe
 *        before 6.9).
 * @wqes: @mask + 1 slots; slot number i is at i & @mask
 * @mask: a power of two, minus 1
 * @max_wr: work requests that the program may have in the queue
 * @max_sge: scatter/gather entries in each
 * @head: number of slots ever taken; under @lock
 * @free: number of slots ever freed, as far as the last post looked; under @lock
 * @unsignaled: slots taken since the last one signaled on the device; under
 *              @lock
 * @closed: the negative errno of posts, or 0; written under @lock
 * @tail: number of slots ever completed; completions write it, under the lock
 *        of the completion queue.  Queues complete in order, so a completion
 *        ends every slot up to its own.  Released after the slot was read, and
 *        acquired before it is reused.
 * @uses: for each slot the counted regions that it uses; NULL before the first.
 *        The poster fills one in, and whoever ends the slot drops them.
 *
 * As in verbs, a slot is free once the program has consumed its completion.  So
 * a program whose completion queue is as large as its queues, and which polls
 * when a queue is full, never overruns it.
 */
struct rpost_queue {
	spinlock_t lock;
	struct rpost_wqe *wqes;
	u32 mask;
	u32 max_wr;
	u32 max_sge;
	u32 head;
	u32 free;
	u32 unsignaled;
	int closed;
	u32 tail ____cacheline_aligned_in_smp;
	struct rpost_uses *uses;
};

/* A page of inline data, and its address for the device. */
struct rpost_inline_page {
	struct page *page;
	u64 dma;
};

/* The last work request of a queue, if @posted; its completion completes @done. */
struct rpost_drain_wr {
	struct ib_cqe cqe;
	struct completion done;
	bool posted;
};

/* A multicast group that a queue pair is attached to, in its list. */
struct rpost_mcast {
	struct list_head link;
	union ib_gid gid;
	u16 lid;
};

/**
 * struct rpost_qp - queue pair
 * @obj: its handle
 * @id: depends on it, and cma changes its state; NULL if the program does
 * @lock: guards @ib_qp, @state and @mcasts of a queue pair without an id; else
 *        @id->lock does, see rpost_qp_lock()
 * @pd: depends on it
 * @send_cq: depends on it
 * @recv_cq: depends on it
 * @srq: depends on it; NULL if receives go to @rq
 * @send_hwcq: device queue of @send_cq
 * @recv_hwcq: device queue of @recv_cq; may be the same
 * @ib_qp: NULL once shut down
 * @ahs: for each slot of @sq, the address handle of a datagram on the device;
 *       NULL if it is not a datagram queue pair
 * @qp_type: RPOST_QPT_*
 * @qp_flags: RPOST_QP_*
 * @qp_num: its number, valid after @ib_qp has gone, too
 * @by_num: in @qps of its file, by @qp_num
 * @user_data: identifies it to the program
 * @released: the program has moved it to RESET since @id was connected; from then on
 *            the program moves it, and cma to the error state only
 * @state: the state that the program has moved it to; RTS while cma moves it, since it
 *         may have work requests then
 * @max_sge_rd: scatter/gather entries in a read
 * @iwarp: the device is iWARP, where a read needs an entry even if it is empty
 * @failed: it has been stopped or disconnected, or a work request has failed,
 *          so that others are flushed
 * @discard: the program gets no completions any more
 * @refused: the device has refused to destroy it, and it can only be destroyed;
 *           written under its lock
 * @leaked: the device has kept it, so that nothing of it may be freed
 * @stopped: moved to the error state before its end or RESET; stays true if it
 *           could not be reset
 * @can_take: it could have taken receives of @srq when it was stopped
 * @counting: the program has asked for @counts; set under the lock of the queue pair, and
 *            never cleared
 * @stopped_at: time of @stopped in jiffies
 * @max_inline: bytes of inline data in a send
 * @inline_stride: bytes between two slots' inline data
 * @inline_per_page: slots whose inline data share a page
 * @inline_pages: pages of inline data, in the order of slots
 * @num_inline_pages: number of @inline_pages; a single one is allocated when it
 *                    is needed first, under @sq.lock
 * @inline_page: the single one
 * @mcasts: struct rpost_mcast
 * @num_mcasts: number of @mcasts
 * @send_drain_wr: drains @sq
 * @recv_drain_wr: drains @rq
 * @last_wqe: completed when the device takes no more from @srq
 * @counts: completed work requests, by enum rpost_wrs; of receives under the lock of
 *          @recv_cq, of the others under that of @send_cq
 * @sq: send queue
 * @rq: receive queue; without slots if there is a @srq
 *
 * A slot belongs to the poster that takes it, then to the device that gets the
 * work request, then to the completion, which reads and retires the slot, then to
 * the program until it has consumed the completion.
 * Shutdown closes the queues, moves the queue pair to the error state, and
 * waits until a drain WR on @sq and on @rq has completed; then no slot is in
 * use.  The SQ has no spare entry for its drain WR, which is posted when there
 * is room, see rpost_drain_sq().  A datagram queue pair has no address for
 * a drain WR: all its sends are signaled on the device, and its SQ is drained
 * when they have completed.
 *
 * The library makes completion counters of verbs from @counts, and has the device polled
 * when the program reads one.  So the module has no object that queue pairs and their
 * ends must know, and a queue pair without a counter pays for a test of @counting.  With
 * it, the device signals all sends: it would report the last unsignaled ones with a later
 * send only, which may never come.
 */
struct rpost_qp {
	struct rpost_obj obj;
	struct rpost_id *id;
	struct mutex lock;
	struct rpost_pd *pd;
	struct rpost_cq *send_cq;
	struct rpost_cq *recv_cq;
	struct rpost_srq *srq;
	struct rpost_hwcq *send_hwcq;
	struct rpost_hwcq *recv_hwcq;
	struct ib_qp *ib_qp;
	struct rpost_ah **ahs;
	u32 qp_type;
	u32 qp_flags;
	u32 qp_num;
	struct hlist_node by_num;
	u64 user_data;
	bool released;
	u32 state;
	u32 max_sge_rd;
	bool iwarp;
	bool failed;
	bool discard;
	bool refused;
	bool leaked;
	bool stopped;
	bool can_take;
	bool counting;
	unsigned long stopped_at;
	u32 max_inline;
	u32 inline_stride;
	u32 inline_per_page;
	struct rpost_inline_page *inline_pages;
	u32 num_inline_pages;
	struct rpost_inline_page inline_page;
	struct list_head mcasts;
	unsigned int num_mcasts;
	struct rpost_drain_wr send_drain_wr;
	struct rpost_drain_wr recv_drain_wr;
	struct completion last_wqe;
	struct rpost_wrs_count counts[RPOST_NUM_WRS];
	struct rpost_queue sq;
	struct rpost_queue rq;
};

RPOST_OBJ_GETTER(qp, RPOST_OBJ_QP)
RPOST_OBJ_ENTER_GETTER(qp, RPOST_OBJ_QP)

/* Keep others from changing a queue pair. */
static inline void rpost_qp_lock(struct rpost_qp *qp)
{
	mutex_lock(qp->id ? &qp->id->lock : &qp->lock);
}

static inline void rpost_qp_unlock(struct rpost_qp *qp)
{
	mutex_unlock(qp->id ? &qp->id->lock : &qp->lock);
}

/*
 * Keep cma from moving a queue pair, which is locked.  cma's handlers modify the
 * state, too, and not every driver has a lock.
 */
static inline void rpost_qp_lock_handler(struct rpost_qp *qp)
{
	if (qp->id)
		rdma_lock_handler(qp->id->cm_id);
}

static inline void rpost_qp_unlock_handler(struct rpost_qp *qp)
{
	if (qp->id)
		rdma_unlock_handler(qp->id->cm_id);
}

/*
 * Return true if the program moves the queue pair, false if the connection manager
 * does.
 */
static inline bool rpost_qp_is_own(const struct rpost_qp *qp)
{
	return !qp->id || READ_ONCE(qp->released);
}

/* Has anything stopped the queue pair but a bad key that has not been reported yet? */
static inline bool rpost_qp_stopped(const struct rpost_qp *qp)
{
	return READ_ONCE(qp->failed) ||
	       (!rpost_qp_is_own(qp) && !rpost_id_connected(qp->id));
}

/* Return the work requests of the device's send queue, at least one for the drain WR. */
static inline u32 rpost_sq_entries(const struct rpost_qp *qp)
{
	return max(qp->sq.max_wr, 1u);
}

int rpost_qp_inline_room(struct rpost_qp *qp);
int rpost_qp_shutdown(struct rpost_obj *obj);
void rpost_qp_free(struct rpost_obj *obj);

/*
 * Return the address of a slot's inline data for the CPU, and set @dma to that for
 * the device.
 */
static inline void *rpost_inline_addr(struct rpost_qp *qp, u32 slot, u64 *dma)
{
	struct rpost_inline_page *ip = &qp->inline_pages[slot / qp->inline_per_page];
	u32 offset = slot % qp->inline_per_page * qp->inline_stride;

	*dma = ip->dma + offset;
	return page_address(ip->page) + offset;
}

/* ------------------------------------------------------------ drain.c */

void rpost_qp_discard(struct rpost_qp *qp);
void rpost_qp_unmute_cqs(struct rpost_qp *qp);
int rpost_qp_drain(struct rpost_qp *qp, int error);
void rpost_qp_fetch_rest(struct rpost_qp *qp);
void rpost_queue_drop_all_uses(struct rpost_queue *q, struct rpost_cq *cq);
int rpost_qp_reset(struct rpost_qp *qp);
void rpost_qp_open(struct rpost_qp *qp, u32 state);
void rpost_qp_stop_early(struct rpost_obj *obj);

/* ------------------------------------------------------------- comp.c */

void rpost_send_done(struct ib_cq *ib_cq, struct ib_wc *wc);
void rpost_recv_done(struct ib_cq *ib_cq, struct ib_wc *wc);
void rpost_srq_done(struct ib_cq *ib_cq, struct ib_wc *wc);

/* ------------------------------------------------------------- uses.c */

static inline struct rpost_mr *rpost_uses_at(const struct rpost_uses *uses, u32 i)
{
	return uses->num == 1 ? uses->mr : uses->mrs[i];
}

int rpost_uses_add(struct rpost_uses *uses, struct rpost_mr *mr);
void rpost_uses_drop(struct rpost_uses *uses);
int rpost_queue_add_uses(struct rpost_queue *q);
void rpost_queue_uncharge_uses(struct rpost_queue *q);
void rpost_queue_drop_uses(struct rpost_queue *q, u32 from, u32 to);

/* --------------------------------------------------------- qp_attr.c */

int rpost_check_qkey(u32 qkey);
void rpost_qp_recheck(struct rpost_obj *obj);

/* -------------------------------------------------------------- ah.c */

/**
 * struct rpost_ah - address handle
 * @obj: its handle
 * @pd: depends on it
 * @ib_ah: NULL once shut down
 * @pending: number of sends on the device that name it; if there are any it
 *           cannot be destroyed (EBUSY).  The poster increments it under the
 *           send queue's lock, with a reference on @obj; the completion
 *           decrements it.  It is 0 when removal has shut the queue pairs down.
 * @gone: its GID is not the file's any more; never cleared
 */
struct rpost_ah {
	struct rpost_obj obj;
	struct rpost_pd *pd;
	struct ib_ah *ib_ah;
	atomic_t pending;
	bool gone;
};

RPOST_OBJ_GETTER(ah, RPOST_OBJ_AH)

int rpost_ah_attr_build(const struct rpost_file *file,
			struct ib_device *ib_dev, struct rdma_ah_attr *to,
			const struct rpost_ah_attr *from);
int rpost_ah_attr_resolve(struct ib_pd *ib_pd, struct rdma_ah_attr *attr);
void rpost_qp_detach_mcasts(struct rpost_qp *qp);
void rpost_qp_release_ah(struct rpost_qp *qp, const struct rpost_wqe *wqe);
int rpost_ah_shutdown(struct rpost_obj *obj);
void rpost_ah_recheck(struct rpost_obj *obj);
void rpost_ah_free(struct rpost_obj *obj);

#endif /* RPOST_QP_H */
