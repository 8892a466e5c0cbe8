/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work requests on their way through post.c, check.c, send.c, recv.c and any_memory.c.
 */
#ifndef RPOST_POST_H
#define RPOST_POST_H

#include "core/stats.h"
#include "memory/memory.h"
#include "queue/srq.h"

#define RPOST_POST_BATCH	16
#define RPOST_SCRATCH_BYTES	1536
#define RPOST_MAX_MSG		0x80000000u

/*
 * Internal errno: the work request names unregistered memory.  rpost_post_rest() registers
 * it and tries again.
 */
#define RPOST_NEEDS_MEMORY	(-ERESTARTSYS)

/* Internal errno: a policy lets no more through now.  rpost_post_rest() waits. */
#define RPOST_IN_DEBT		(-ERESTARTNOHAND)

/* Can the rest of a post be posted later? */
static inline bool rpost_post_waits(int ret)
{
	return ret == RPOST_NEEDS_MEMORY || ret == RPOST_IN_DEBT;
}

/**
 * struct rpost_memory - memory that a work request waits for
 * @sges: entries of the work request, some with the lkey 0
 * @num: number of @sges
 * @access: RPOST_ACCESS_* that it needs
 * @uses: uses of regions with that memory, in the order of these entries, for
 *        the next attempt to post the work request
 * @paid: when policies have charged it, from rpost_policy_charge(); or 0
 * @bytes: what they have charged it for
 */
struct rpost_memory {
	struct rpost_sge *sges;
	u32 num;
	u32 access;
	struct rpost_uses uses;
	s64 paid;
	u32 bytes;
};

/* The copied entries are checked and then passed to the device in place. */
static_assert(sizeof(struct rpost_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct rpost_sge, addr) == offsetof(struct ib_sge, addr));
static_assert(offsetof(struct rpost_sge, length) == offsetof(struct ib_sge, length));
static_assert(offsetof(struct rpost_sge, lkey) == offsetof(struct ib_sge, lkey));

/**
 * struct rpost_swr - a checked work request on its way to the send queue
 * @wr: for the device; its entries are in the copied command
 * @rdma: the same for RDMA
 * @atomic: the same for atomics
 * @ud: the same for datagrams
 * @ah: address of a datagram, with a reference
 * @sge: scatter/gather entry for inline data
 * @data: inline data, in the copied command or, if @copied, in memory of its own
 * @data_len: bytes of @data
 * @bytes: bytes that it moves
 * @wr_id: identifies it to the program
 * @copied: see @data
 * @kind: opcode and flags for its slot
 * @uses: the counted regions that it uses, until its slot has them
 */
struct rpost_swr {
	union {
		struct ib_send_wr wr;
		struct ib_rdma_wr rdma;
		struct ib_atomic_wr atomic;
		struct ib_ud_wr ud;
	};
	struct rpost_ah *ah;
	struct ib_sge sge;
	const void *data;
	u32 data_len;
	u32 bytes;
	u64 wr_id;
	bool copied;
	struct rpost_wqe_kind kind;
	struct rpost_uses uses;
};

/* A checked work request on its way to a receive queue, with fields as in struct rpost_swr. */
struct rpost_rwr {
	struct ib_recv_wr wr;
	u64 wr_id;
	struct rpost_wqe_kind kind;
	struct rpost_uses uses;
};

/**
 * struct rpost_scratch - memory for the posts of one call
 * @swrs: a batch of sends, or
 * @rwrs: of receives
 * @block: the program's command with its work requests, if they fit
 *
 * Allocating it for each call costs more than checking a work request, so an
 * open file keeps the memory of the last calls.  It belongs to the call from
 * rpost_scratch_take() to rpost_scratch_give(), and is not cleared: a call
 * reads only what it has written.
 */
struct rpost_scratch {
	union {
		struct rpost_swr swrs[RPOST_POST_BATCH];
		struct rpost_rwr rwrs[RPOST_POST_BATCH];
	};
	u64 block[RPOST_SCRATCH_BYTES / sizeof(u64)];
};

static_assert(sizeof(struct rpost_scratch) <= 4096);

/**
 * struct rpost_posting - a post while it is carried out
 * @cmd: the kernel's copy, with the work requests: in @small, in @scratch, or by itself
 * @qp_num: of the queue pair; 0 for a shared receive queue, or if there is none
 * @wrs: the next work request to be built; the first that is not posted while it waits
 * @count: how many work requests there are
 * @posted: how many of them are posted
 * @scratch: for a batch; NULL to post them one by one
 * @small: room for most posts
 */
struct rpost_posting {
	struct rpost_post *cmd;
	u32 qp_num;
	void *wrs;
	u32 count;
	u32 posted;
	struct rpost_scratch *scratch;
	u64 small[32];
};

/**
 * struct rpost_check - how the entries of a work request are checked
 * @pd: the domain of the regions
 * @memory: entries with the lkey 0 stand for memory of the task; NULL if they are
 *          bad keys
 * @queue: gets room for the uses; NULL if it is a shared receive queue, which has it
 * @uses: out: the counted regions that the work request uses
 * @kind: its opcode; out: whether an entry names memory that the program may not use
 * @access: required access to the regions, RPOST_ACCESS_*
 * @total: out: bytes of all entries
 */
struct rpost_check {
	struct rpost_pd *pd;
	struct rpost_memory *memory;
	struct rpost_queue *queue;
	struct rpost_uses *uses;
	struct rpost_wqe_kind *kind;
	u32 access;
	u32 total;
};

int rpost_post(struct rpost_file *file, u32 command, unsigned long arg);
int rpost_check_many(struct rpost_check *check, struct rpost_sge *sges, u32 num);
u32 rpost_queue_make_room(struct rpost_queue *q, struct rpost_cq *cq, u32 n);
int rpost_post_sends(struct rpost_obj *obj, struct rpost_posting *post,
		     struct rpost_memory *memory);
int rpost_post_recvs(struct rpost_obj *obj, struct rpost_posting *post,
		     struct rpost_memory *memory);
int rpost_memory_get(struct rpost_file *file, u32 qp, struct rpost_memory *memory);
int rpost_memory_find(const struct rpost_check *check, struct rpost_sge *sges, u32 num);
u32 rpost_memory_short(const struct rpost_sge *sges, u32 num, u32 max);
int rpost_memory_copy(struct rpost_swr *swr, const struct rpost_sge *sges, u32 num, u32 bytes);

/*
 * Is this the usual list: one entry, with a good key?  If not, rpost_check_many()
 * has to check the entries.  access is RPOST_ACCESS_*.
 */
static inline bool rpost_check_one(struct rpost_pd *pd,
				   const struct rpost_sge *sge, u32 num,
				   u32 access)
{
	return num == 1 && sge->length && sge->length <= RPOST_MAX_MSG &&
	       rpost_mr_check(pd, sge, access);
}

static inline u32 rpost_queue_free(const struct rpost_queue *q)
{
	return q->max_wr - (q->head - q->free);
}

/*
 * Return the number of slots that can be taken, at most n.  cq is the completion queue of
 * the queue, which is locked.
 */
static inline u32 rpost_queue_room(struct rpost_queue *q, struct rpost_cq *cq, u32 n)
{
	lockdep_assert_held(&q->lock);

	return likely(rpost_queue_free(q) >= n) ? n : rpost_queue_make_room(q, cq, n);
}

/* The queue is locked, and has a free slot. */
static inline struct rpost_wqe *rpost_queue_slot(struct rpost_queue *q, u64 wr_id,
						 struct rpost_wqe_kind kind)
{
	struct rpost_wqe *wqe = &q->wqes[q->head++ & q->mask];

	wqe->wr_id = wr_id;
	wqe->kind = kind;
	return wqe;
}

#endif /* RPOST_POST_H */
