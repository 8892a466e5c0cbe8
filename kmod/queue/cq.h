/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion queues and channels.
 */
#ifndef RPOST_CQ_H
#define RPOST_CQ_H

#include "base/ring.h"
#include "core/fd.h"

struct rpost_cq;

/* ---------------------------------------------------------- channel.c */

/**
 * struct rpost_comp_channel - completion channel
 * @fd: its descriptor; each completion queue has a reference, too
 * @offered: handle of the queue whose event was offered last; under @fd.fetch
 * @lock: guards @ready, and event_link and events of the queues on it
 * @ready: completion queues that have events
 */
struct rpost_comp_channel {
	struct rpost_fd fd;
	u32 offered;
	spinlock_t lock;
	struct list_head ready;
};

struct rpost_comp_channel *rpost_comp_channel_get(struct rpost_file *file, int nr);
void rpost_comp_channel_post(struct rpost_cq *cq);
void rpost_comp_channel_forget(struct rpost_cq *cq);

/* ------------------------------------------------------------- hwcq.c */

/**
 * struct rpost_hwcq - a device's completion queue that feeds a rpost_cq
 * @link: in @cq->hwcqs
 * @cq: the completion queue that it feeds
 * @ib_cq: the queue on the device
 * @closing: its handlers do nothing any more, and must not use @cq
 * @size: number of entries
 * @used: entries that the work requests of the attached queue pairs can fill; under
 *        @cq->setup_lock
 *
 * @used never exceeds @size, so that a device queue never overruns, whatever the
 * program does: a lost completion would lose its work request.
 */
struct rpost_hwcq {
	struct list_head link;
	struct rpost_cq *cq;
	struct ib_cq *ib_cq;
	bool closing;
	u32 size;
	u32 used;
};

#define RPOST_POLL_BATCH	16
#define RPOST_POLL_BUDGET	(16 * RPOST_POLL_BATCH)
#define RPOST_POLL_MOST		1024	/* under a spinlock */
#define RPOST_MANY_HWCQS	32	/* of a queue that gets no more small ones */

struct rpost_hwcq *rpost_cq_attach(struct rpost_cq *cq, u32 entries);
int rpost_cq_grow(struct rpost_hwcq *hwcq, u32 entries);
void rpost_cq_detach(struct rpost_hwcq *hwcq, u32 entries);
u32 rpost_hwcq_poll_locked(struct rpost_hwcq *hwcq);
u32 rpost_hwcq_poll(struct rpost_hwcq *hwcq, u32 budget);
void rpost_hwcqs_destroy(struct rpost_cq *cq, struct list_head *hwcqs);

/* --------------------------------------------------------------- cq.c */

/**
 * struct rpost_cq - completion queue
 * @obj: its handle
 * @channel: gets its events; or NULL
 * @user_data: identifies it to the program
 * @comp_vector: of its device queues
 * @flags: RPOST_CQ_*
 * @setup_lock: held to map or replace the ring, and to attach or detach a queue
 *              pair.  mmap() takes it with the program's memory map locked, so
 *              the program's memory must not be touched with it held.
 * @hwcqs: device queues, made as queue pairs come
 * @ring: shared with the program.  It is replaced with @setup_lock, @lock and
 *        @arm_lock held, and freed after a grace period: posters read it under
 *        RCU.
 * @lock: guards @hwcqs, the ring's entries, and the members from @budget to
 *        @moderate_us.  It is taken in task context only.
 * @budget: completions that the poll under way may still take; a slot counts as
 *          one, too, if its queue's work requests use counted regions.  A batch
 *          that has begun ends, so it may become negative.  If some is left at the end,
 *          the device queues were empty.
 * @vain: POLL_CQ calls that have found nothing since the last completion, or post of a
 *        signaled send, while not armed
 * @exact: the program's last request was for solicited events only.  Then the
 *         device is armed as the program asks and never otherwise, as only the
 *         device can tell which completions are solicited.
 * @moderate_count: completions for which an event waits; also under @setup_lock
 * @moderate_us: microseconds for which it waits, or 0; also under @setup_lock
 * @arm_lock: guards the members from @armed to @muted, and the ring's flags and arm.
 *            Device handlers take it; it nests in @lock.
 * @armed: how the device is armed: IB_CQ_NEXT_COMP, IB_CQ_SOLICITED, or 0
 * @notify: ARM_CQ has requested an event, of the kind that @armed says
 * @muted: no queue pair can complete into the queue; interrupts are ignored
 * @events: events not yet read; under @channel->lock
 * @event_link: in @channel->ready; under @channel->lock
 *
 * The tasks that poll the device depend on @armed and on what the ring says:
 *
 *   not armed, RPOST_RING_NEED_POLL    posts, and the program by POLL_CQ
 *   armed, RPOST_RING_NEED_POLL        the program by POLL_CQ: the device was asked for
 *                                      solicited events only, delays events (MODIFY_CQ),
 *                                      has more completions than one poll takes, could
 *                                      not be armed, or has gone
 *   armed                              nobody: the interrupt comes
 *
 * The queue becomes armed when the program requests an event; unless it is @exact, also
 * when the program reads one, or has polled in vain for a while.  The interrupt notifies
 * the program if that has asked, and ends the armed state.  In any state a post that
 * lacks slots, the end or RESET of a queue pair and COUNT_WRS poll, and so does whoever
 * has just armed the device.
 *
 * A queue pair that is destroyed or reset mutes its completion queues, if no other uses
 * them, be it in RESET: the device's interrupt would tell of completions that are
 * dropped, and the program may destroy the queue next, and expects no event.  The
 * interrupt may come late: rxe before 6.9 calls by a tasklet, hardware has an event
 * queue, and any device may delay it (MODIFY_CQ).  So this lasts until a queue pair can
 * complete into the queue again, or the device is removed.  A muted queue ignores
 * interrupts and stays armed; at the end the device is armed again.  An interrupt that
 * is even later causes an event, as others do whose completion the program has polled.
 */
struct rpost_cq {
	struct rpost_obj obj;
	struct rpost_comp_channel *channel;
	u64 user_data;
	u32 comp_vector;
	u32 flags;
	struct mutex setup_lock;
	struct list_head hwcqs;
	struct rpost_cring __rcu *ring;
	spinlock_t lock;
	int budget;
	u32 vain;
	bool exact;
	u16 moderate_count;
	u16 moderate_us;
	spinlock_t arm_lock;
	u32 armed;
	bool notify;
	bool muted;
	unsigned int events;
	struct list_head event_link;
};

RPOST_OBJ_GETTER(cq, RPOST_OBJ_CQ)
RPOST_OBJ_ENTER_GETTER(cq, RPOST_OBJ_CQ)

int rpost_cq_shutdown(struct rpost_obj *obj);
void rpost_cq_free(struct rpost_obj *obj);
int rpost_cq_mmap(struct rpost_file *file, struct vm_area_struct *vma);
void rpost_cq_interrupt(struct rpost_cq *cq);
void rpost_cq_mute(struct rpost_cq *cq, unsigned int users);
void rpost_cq_unmute(struct rpost_cq *cq);
void rpost_cq_publish(struct rpost_cq *cq);
void rpost_cq_event_taken(struct rpost_cq *cq);
void rpost_cq_poll(struct rpost_cq *cq);
void rpost_cq_posted(struct rpost_cq *cq);
struct rpost_ring_seen rpost_cq_see(struct rpost_cq *cq);
u32 rpost_cq_size(struct rpost_cq *cq);

/* The lock of the queue is held.  The ring is valid until the lock is dropped. */
static inline struct rpost_cring *rpost_cq_ring(struct rpost_cq *cq)
{
	return rcu_dereference_protected(cq->ring, lockdep_is_held(&cq->lock));
}

#endif /* RPOST_CQ_H */
