// SPDX-License-Identifier: GPL-2.0
/*
 * Posts: work requests from the program to the device.
 *
 * A block of work requests is copied once, into kernel memory, and everything
 * is checked and built there.  It is done in batches, each of which goes to
 * the device as one chain.  Memory for that is kept, see struct rpost_scratch.
 */
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rpost.h"
#include "trace.h"

#define RPOST_POST_BATCH	16
#define RPOST_STACK_BYTES	256
#define RPOST_SCRATCH_BYTES	1536
#define RPOST_MAX_MSG		0x80000000u

/* Entries are checked where they were copied to, and used from there. */
static_assert(sizeof(struct rpost_sge) == sizeof(struct ib_sge));
static_assert(offsetof(struct rpost_sge, addr) == offsetof(struct ib_sge, addr));
static_assert(offsetof(struct rpost_sge, length) ==
	      offsetof(struct ib_sge, length));
static_assert(offsetof(struct rpost_sge, lkey) == offsetof(struct ib_sge, lkey));
static_assert(RPOST_SEND_FENCE == (int)IB_SEND_FENCE);
static_assert(RPOST_SEND_SIGNALED == (int)IB_SEND_SIGNALED);
static_assert(RPOST_SEND_SOLICITED == (int)IB_SEND_SOLICITED);

#define RPOST_SEND_MASK							\
	(RPOST_SEND_FENCE | RPOST_SEND_SIGNALED |			\
	 RPOST_SEND_SOLICITED | RPOST_SEND_INLINE)

#define RPOST_QPT_CONNECTED	(BIT(RPOST_QPT_RC) | BIT(RPOST_QPT_UC))

/**
 * struct rpost_opcode - what an opcode of programs means
 * @opcode: for the device
 * @qp_types: queue pairs on which it exists
 * @access: to the program's memory
 * @wc_opcode: of its completion
 * @inline_ok: data may be inline
 * @more: it needs more than an address and a key of the other side
 */
struct rpost_opcode {
	enum ib_wr_opcode opcode;
	u32 qp_types;
	u8 access;
	u8 wc_opcode;
	bool inline_ok;
	bool more;
};

static const struct rpost_opcode rpost_opcodes[] = {
	[RPOST_WR_RDMA_WRITE] = {
		IB_WR_RDMA_WRITE, RPOST_QPT_CONNECTED,
		0, RPOST_WC_RDMA_WRITE, true, false },
	[RPOST_WR_RDMA_WRITE_WITH_IMM] = {
		IB_WR_RDMA_WRITE_WITH_IMM, RPOST_QPT_CONNECTED,
		0, RPOST_WC_RDMA_WRITE, true, true },
	[RPOST_WR_SEND] = {
		IB_WR_SEND, RPOST_QPT_CONNECTED | BIT(RPOST_QPT_UD),
		0, RPOST_WC_SEND, true, false },
	[RPOST_WR_SEND_WITH_IMM] = {
		IB_WR_SEND_WITH_IMM, RPOST_QPT_CONNECTED | BIT(RPOST_QPT_UD),
		0, RPOST_WC_SEND, true, true },
	[RPOST_WR_RDMA_READ] = {
		IB_WR_RDMA_READ, BIT(RPOST_QPT_RC),
		RPOST_ACCESS_LOCAL_WRITE, RPOST_WC_RDMA_READ, false, false },
	[RPOST_WR_ATOMIC_CMP_AND_SWP] = {
		IB_WR_ATOMIC_CMP_AND_SWP, BIT(RPOST_QPT_RC),
		RPOST_ACCESS_LOCAL_WRITE, RPOST_WC_COMP_SWAP, false, true },
	[RPOST_WR_ATOMIC_FETCH_AND_ADD] = {
		IB_WR_ATOMIC_FETCH_AND_ADD, BIT(RPOST_QPT_RC),
		RPOST_ACCESS_LOCAL_WRITE, RPOST_WC_FETCH_ADD, false, true },
	[RPOST_WR_SEND_WITH_INV] = {
		IB_WR_SEND_WITH_INV, BIT(RPOST_QPT_RC),
		0, RPOST_WC_SEND, true, true },
};

/**
 * struct rpost_swr - a checked work request on its way to the send queue
 * @wr: for the device; its entries are in the block
 * @rdma: the same for RDMA
 * @atomic: the same for atomics
 * @ud: the same for datagrams
 * @ah: address of a datagram, with a reference
 * @sge: the entry for inline data
 * @data: inline data, in the block
 * @data_len: bytes of it
 * @wr_id: the program's
 * @kind: what its slot has to know
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
	u64 wr_id;
	struct rpost_wqe_kind kind;
};

/*
 * Check the entries of a work request and leave the empty ones out.  The first
 * whose key the program may not use gets the key that the device refuses, and
 * is the last: what comes after it no longer matters.  Returns how many there
 * are.
 */
static noinline int rpost_check_many(struct rpost_pd *pd,
				     struct rpost_sge *sges, u32 num,
				     u32 access, u32 *total, bool *bad_key)
{
	u32 i, n = 0, sum = 0;
	bool bad = false;

	for (i = 0; i < num && !bad; i++) {
		if (!sges[i].length)
			continue;
		if (n != i)
			sges[n] = sges[i];
		if (unlikely(!rpost_mr_check(pd, &sges[n], access))) {
			if (!pd->bad_lkey)
				return -EINVAL;
			bad = true;
			sges[n].lkey = pd->bad_lkey;
			/* A sum that wrapped could look empty. */
			sges[n].length = min(sges[n].length, RPOST_MAX_MSG / 2);
		}
		if (sges[n].length > RPOST_MAX_MSG - sum)
			return -EINVAL;
		sum += sges[n].length;
		n++;
	}
	*total = sum;
	*bad_key = bad;
	return n;
}

/* The same; most have one entry, with a good key. */
static inline int rpost_check_sges(struct rpost_pd *pd, struct rpost_sge *sges,
				   u32 num, u32 access, u32 *total,
				   bool *bad_key)
{
	if (num != 1 || !sges->length || sges->length > RPOST_MAX_MSG ||
	    !rpost_mr_check(pd, sges, access))
		return rpost_check_many(pd, sges, num, access, total, bad_key);
	*total = sges->length;
	*bad_key = false;
	return 1;
}

static noinline int rpost_build_inline(struct rpost_qp *qp,
				       struct rpost_swr *swr,
				       const struct rpost_opcode *op,
				       const struct rpost_send_wr *wr)
{
	if (!op->inline_ok || wr->num_sge ||
	    wr->inline_len > qp->max_inline ||
	    wr->size != ALIGN(sizeof(*wr) + wr->inline_len, 8))
		return -EINVAL;
	swr->data = wr + 1;
	swr->data_len = wr->inline_len;
	swr->wr.sg_list = &swr->sge;
	swr->wr.num_sge = 0;
	if (wr->inline_len) {
		int ret = rpost_qp_inline_room(qp);

		if (ret)
			return ret;
		swr->sge.length = wr->inline_len;
		swr->sge.lkey = qp->pd->local_dma_lkey;
		swr->wr.num_sge = 1;
	}
	return 0;
}

static inline int rpost_build_sges(struct rpost_qp *qp, struct rpost_swr *swr,
				   const struct rpost_opcode *op,
				   struct rpost_send_wr *wr)
{
	struct rpost_sge *sges = (struct rpost_sge *)(wr + 1);
	u32 num = wr->num_sge, max = qp->sq.max_sge, total;
	int n;

	if (op->opcode == IB_WR_RDMA_READ)
		max = qp->max_sge_rd;
	if (wr->inline_len || num > max ||
	    wr->size != sizeof(*wr) + num * sizeof(*sges))
		return -EINVAL;
	n = rpost_check_sges(qp->pd, sges, num, op->access, &total,
			     &swr->kind.bad_key);
	if (n < 0)
		return n;
	if (!n && op->opcode == IB_WR_RDMA_READ && qp->iwarp) {
		if (!num || !rpost_mr_check(qp->pd, sges, op->access))
			return -EINVAL;
		n = 1;
	}
	swr->wr.sg_list = (struct ib_sge *)sges;
	swr->wr.num_sge = n;
	if (op->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	    op->opcode == IB_WR_ATOMIC_FETCH_AND_ADD) {
		if (n != 1 || total != sizeof(u64) || wr->remote_addr & 7)
			return -EINVAL;
	}
	return 0;
}

static noinline int rpost_build_ud(struct rpost_qp *qp, struct rpost_swr *swr,
				   const struct rpost_send_wr *wr)
{
	struct rpost_obj *obj;
	struct rpost_ah *ah;

	obj = rpost_obj_get(qp->obj.file, wr->ah, RPOST_OBJ_AH);
	if (!obj)
		return -ENOENT;
	ah = container_of(obj, struct rpost_ah, obj);
	/* Without the device's, the queue is closed, too. */
	if (ah->pd != qp->pd) {
		rpost_obj_put(obj);
		return -ENOENT;
	}
	swr->ah = ah;
	swr->ud = (struct ib_ud_wr) { .wr = swr->wr, .ah = ah->ib_ah };
	swr->ud.remote_qpn = wr->remote_qpn;
	swr->ud.remote_qkey = wr->remote_qkey;
	return 0;
}

static void rpost_put_ahs(struct rpost_swr *swrs, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		if (swrs[i].ah)
			rpost_obj_put(&swrs[i].ah->obj);
	}
}

/* What belongs to some opcodes only. */
static void rpost_build_more(struct rpost_swr *swr,
			     const struct rpost_send_wr *wr)
{
	switch (wr->opcode) {
	case RPOST_WR_RDMA_WRITE_WITH_IMM:
	case RPOST_WR_SEND_WITH_IMM:
		swr->wr.ex.imm_data = wr->imm_data;
		break;
	case RPOST_WR_SEND_WITH_INV:
		swr->wr.ex.invalidate_rkey = wr->rkey;
		break;
	case RPOST_WR_ATOMIC_CMP_AND_SWP:
	case RPOST_WR_ATOMIC_FETCH_AND_ADD:
		swr->atomic.remote_addr = wr->remote_addr;
		swr->atomic.compare_add = wr->compare_add;
		swr->atomic.swap = wr->swap;
		swr->atomic.compare_add_mask = 0;
		swr->atomic.swap_mask = 0;
		swr->atomic.rkey = wr->rkey;
		break;
	}
}

/*
 * Check one work request and build the device's from it, but for what
 * rpost_fill_send() adds.
 */
static noinline int rpost_build_send(struct rpost_qp *qp, struct rpost_swr *swr,
				     struct rpost_send_wr *wr)
{
	u32 opcode = wr->opcode, flags = wr->send_flags;
	const struct rpost_opcode *op;
	int ret;

	if (wr->reserved || (flags & ~RPOST_SEND_MASK) ||
	    opcode >= ARRAY_SIZE(rpost_opcodes))
		return -EOPNOTSUPP;
	opcode = array_index_nospec(opcode, ARRAY_SIZE(rpost_opcodes));
	op = &rpost_opcodes[opcode];
	if (!op->qp_types)
		return -EOPNOTSUPP;
	wr->opcode = opcode;
	if (!(op->qp_types & BIT(qp->qp_type)))
		return -EINVAL;

	swr->wr.opcode = op->opcode;
	swr->wr.send_flags = flags & (RPOST_SEND_FENCE | RPOST_SEND_SOLICITED);
	swr->wr.ex.imm_data = 0;
	swr->rdma.remote_addr = wr->remote_addr;
	swr->rdma.rkey = wr->rkey;
	swr->ah = NULL;
	swr->data_len = 0;
	swr->wr_id = wr->wr_id;
	swr->kind = (struct rpost_wqe_kind) {
		.opcode = op->wc_opcode,
		.signaled = (flags & RPOST_SEND_SIGNALED) ||
			    (qp->qp_flags & RPOST_QP_SIG_ALL),
	};
	if (op->more)
		rpost_build_more(swr, wr);
	if (flags & RPOST_SEND_INLINE)
		ret = rpost_build_inline(qp, swr, op, wr);
	else
		ret = rpost_build_sges(qp, swr, op, wr);
	/* Last: it takes a reference. */
	if (!ret && qp->qp_type == RPOST_QPT_UD)
		ret = rpost_build_ud(qp, swr, wr);
	return ret;
}

/*
 * Free the slots whose completions the program has consumed, if there are less
 * than @n.  Returns how many can be taken.
 */
static u32 rpost_queue_reclaim(struct rpost_queue *q, struct rpost_cq *cq,
			       u32 n)
{
	struct rpost_ring_seen seen;
	struct rpost_wqe *wqe;
	u32 tail;

	if (q->head - q->free + n > q->room) {
		/* Pairs with the release in rpost_queue_retire(). */
		tail = smp_load_acquire(&q->tail);
		seen = rpost_cq_see(cq);
		while (q->free != tail) {
			wqe = &q->wqes[q->free & q->mask];
			if (wqe->kind.waits && !rpost_ring_consumed(seen, wqe->pos))
				break;
			q->free++;
		}
	}
	return q->max_wr - (q->head - q->free);
}

/* How many of @n slots can be taken now? */
static u32 rpost_queue_room(struct rpost_queue *q, struct rpost_cq *cq, u32 n)
{
	u32 room;

	lockdep_assert_held(&q->lock);

	room = rpost_queue_reclaim(q, cq, n);
	if (room < n) {
		/* Completions may wait for a program that does not poll. */
		rpost_cq_drain(cq, RPOST_DRAIN_BATCH);
		room = rpost_queue_reclaim(q, cq, n);
	}
	return min(room, n);
}

/* Take the next slot, for which there is room. */
static struct rpost_wqe *rpost_queue_slot(struct rpost_queue *q, u64 wr_id,
					  struct rpost_wqe_kind kind)
{
	struct rpost_wqe *wqe = &q->wqes[q->head++ & q->mask];

	wqe->wr_id = wr_id;
	wqe->kind = kind;
	return wqe;
}

static void rpost_fill_send(struct rpost_qp *qp, struct rpost_swr *swr)
{
	struct rpost_queue *sq = &qp->sq;
	struct rpost_wqe *wqe = rpost_queue_slot(sq, swr->wr_id, swr->kind);
	void *to;

	if (unlikely(swr->ah)) {
		qp->ahs[wqe - sq->wqes] = swr->ah;
		atomic_inc(&swr->ah->pending);
	}
	swr->wr.wr_cqe = &wqe->cqe;

	/*
	 * Only completions give slots back.  A program that wants none but on
	 * errors must not fill its queue for ever.  And addresses must be known
	 * to be free, see struct rpost_qp.
	 */
	if (swr->kind.signaled || swr->ah || ++sq->unsignaled > sq->max_wr / 4) {
		swr->wr.send_flags |= IB_SEND_SIGNALED;
		sq->unsignaled = 0;
	}
	if (swr->data_len) {
		to = rpost_inline_addr(qp, wqe - sq->wqes, &swr->sge.addr);
		memcpy(to, swr->data, swr->data_len);
		ib_dma_sync_single_for_device(qp->ib_qp->device, swr->sge.addr,
					      swr->data_len, DMA_TO_DEVICE);
	}
}

/* What was refused never completes. */
static void rpost_send_refused(struct rpost_qp *qp, u32 n)
{
	struct rpost_queue *sq = &qp->sq;

	while (n--) {
		sq->head--;
		if (qp->ahs)
			rpost_qp_release_ah(qp, &sq->wqes[sq->head & sq->mask]);
	}
	sq->unsignaled = sq->max_wr;
}

/*
 * Post a chain of @n, whose slots were taken.  Says how many are on their way; one
 * that the queue pair holds is.
 */
static int rpost_send_chain(struct rpost_qp *qp, struct rpost_swr *swrs, u32 n,
			    u32 *done)
{
	const struct ib_send_wr *bad = &swrs[0].wr, *wr;
	struct rpost_queue *sq = &qp->sq;
	bool held = false;
	int ret = 0;

	*done = 0;
	if (unlikely(sq->head - sq->free > sq->room)) {
		ret = rpost_hold_make_room(qp);
		if (!ret)
			held = rpost_hold_back(qp, &swrs[n - 1].atomic);
		if (held && n > 1)
			swrs[n - 2].wr.next = NULL;
	}
	if (!ret && n > held)
		ret = ib_post_send(qp->ib_qp, &swrs[0].wr, &bad);
	if (!ret) {
		*done = n;
		return 0;
	}
	if (held)
		rpost_hold_cancel(qp);
	for (wr = &swrs[0].wr; wr && wr != bad; wr = wr->next)
		++*done;
	rpost_send_refused(qp, n - *done);
	return ret;
}

static int rpost_send_batch(struct rpost_qp *qp, struct rpost_swr *swrs, u32 n,
			    u32 *posted)
{
	struct rpost_queue *sq = &qp->sq;
	u32 room, done = 0, head;
	struct rpost_swr *swr;
	int ret = 0, err;

	spin_lock_bh(&sq->lock);
	if (sq->closed) {
		ret = sq->closed;
		spin_unlock_bh(&sq->lock);
		return ret;
	}
	room = rpost_queue_room(sq, qp->send_cq, n);
	if (room < n)
		ret = -ENOMEM;
	for (swr = swrs; swr < swrs + room; swr++) {
		rpost_fill_send(qp, swr);
		swr->wr.next = &(swr + 1)->wr;
	}
	if (room) {
		swrs[room - 1].wr.next = NULL;
		err = rpost_send_chain(qp, swrs, room, &done);
		if (err)
			ret = err;
	}
	head = sq->head;
	if (done && READ_ONCE(qp->send_cq->sq_empty))
		WRITE_ONCE(qp->send_cq->sq_empty, false);
	spin_unlock_bh(&sq->lock);
	/* A driver's tasklet has run now, see struct rpost_queue. */
	if (done && swrs[done - 1].wr.send_flags & IB_SEND_SIGNALED)
		rpost_cq_posted(qp->send_cq, sq, head);
	*posted += done;
	return ret;
}

/**
 * struct rpost_rwr - a checked work request on its way to the receive queue
 * @wr: for the device; its entries are in the block
 * @wr_id: the program's
 * @kind: what its slot has to know
 */
struct rpost_rwr {
	struct ib_recv_wr wr;
	u64 wr_id;
	struct rpost_wqe_kind kind;
};

/**
 * struct rpost_scratch - memory for the posts of one call
 * @swrs: a batch of sends, or
 * @rwrs: of receives
 * @block: what the program has posted, if it is not longer
 *
 * To allocate it for each call costs more than to check a work request, so an
 * open file keeps what was allocated for the last calls.  It belongs to the
 * call between rpost_scratch_take() and rpost_scratch_give(), and nothing is
 * left of what it held before: all that is read has been written by the call.
 */
struct rpost_scratch {
	union {
		struct rpost_swr swrs[RPOST_POST_BATCH];
		struct rpost_rwr rwrs[RPOST_POST_BATCH];
	};
	u64 block[RPOST_SCRATCH_BYTES / sizeof(u64)];
};

static_assert(sizeof(struct rpost_scratch) <= 4096);

/* NULL if there is no memory: then work requests go one by one. */
static struct rpost_scratch *rpost_scratch_take(struct rpost_file *file)
{
	struct rpost_scratch *scratch;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++) {
		if (!READ_ONCE(file->scratch[i]))
			continue;
		scratch = xchg(&file->scratch[i], NULL);
		if (scratch)
			return scratch;
	}
	return kmalloc(sizeof(*scratch), RPOST_GFP);
}

static void rpost_scratch_give(struct rpost_file *file,
			       struct rpost_scratch *scratch)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++) {
		/* Who takes it next sees nothing of this call's. */
		if (!READ_ONCE(file->scratch[i]) &&
		    !cmpxchg(&file->scratch[i], NULL, scratch))
			return;
	}
	kfree(scratch);
}

/**
 * rpost_scratch_free() - free what an open file has kept for its posts
 * @file: the open file, which nobody posts on any more
 */
void rpost_scratch_free(struct rpost_file *file)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++)
		kfree(file->scratch[i]);
}

static int rpost_build_recv(struct rpost_pd *pd, u32 max_sge,
			    struct rpost_rwr *rwr, struct rpost_recv_wr *wr)
{
	struct rpost_sge *sges = (struct rpost_sge *)(wr + 1);
	u32 total;
	int n;

	if (wr->num_sge > max_sge ||
	    wr->size != sizeof(*wr) + wr->num_sge * sizeof(*sges))
		return -EINVAL;
	rwr->kind = (struct rpost_wqe_kind) { .opcode = RPOST_WC_RECV };
	n = rpost_check_sges(pd, sges, wr->num_sge, RPOST_ACCESS_LOCAL_WRITE,
			     &total, &rwr->kind.bad_key);
	if (n < 0)
		return n;
	rwr->wr_id = wr->wr_id;
	rwr->wr = (struct ib_recv_wr) {
		.sg_list = (struct ib_sge *)sges,
		.num_sge = n,
	};
	return 0;
}

static int rpost_recv_batch(struct rpost_qp *qp, struct rpost_rwr *rwrs, u32 n,
			    u32 *posted)
{
	struct rpost_queue *rq = &qp->rq;
	const struct ib_recv_wr *bad = &rwrs[0].wr, *wr;
	struct rpost_wqe *wqe;
	u32 i, room, done;
	int ret = 0, err;

	spin_lock_bh(&rq->lock);
	if (rq->closed) {
		ret = rq->closed;
		spin_unlock_bh(&rq->lock);
		return ret;
	}
	room = rpost_queue_room(rq, qp->recv_cq, n);
	if (room < n)
		ret = -ENOMEM;
	for (i = 0; i < room; i++) {
		wqe = rpost_queue_slot(rq, rwrs[i].wr_id, rwrs[i].kind);
		rwrs[i].wr.wr_cqe = &wqe->cqe;
		if (i)
			rwrs[i - 1].wr.next = &rwrs[i].wr;
	}
	done = room;
	if (room) {
		err = ib_post_recv(qp->ib_qp, &rwrs[0].wr, &bad);
		if (err) {
			ret = err;
			done = 0;
			for (wr = &rwrs[0].wr; wr && wr != bad; wr = wr->next)
				done++;
			rq->head -= room - done;
		}
	}
	spin_unlock_bh(&rq->lock);
	*posted += done;
	return ret;
}

static int rpost_srq_batch(struct rpost_srq *srq, struct rpost_rwr *rwrs, u32 n,
			   u32 *posted)
{
	const struct ib_recv_wr *bad, *wr;
	struct rpost_srq_wqe *wqe;
	int ret = 0;
	u32 i;

	spin_lock_bh(&srq->lock);
	if (srq->closing) {
		spin_unlock_bh(&srq->lock);
		return -ENODEV;
	}
	for (i = 0; i < n; i++) {
		wqe = rpost_srq_slot(srq);
		if (!wqe)
			break;
		wqe->wr_id = rwrs[i].wr_id;
		wqe->bad_key = rwrs[i].kind.bad_key;
		rwrs[i].wr.wr_cqe = &wqe->cqe;
		if (i)
			rwrs[i - 1].wr.next = &rwrs[i].wr;
	}
	if (i) {
		bad = &rwrs[0].wr;
		ret = ib_post_srq_recv(srq->ib_srq, &rwrs[0].wr, &bad);
		*posted += i;
		for (wr = ret ? bad : NULL; wr; wr = wr->next) {
			rpost_srq_slot_free(srq, container_of(wr->wr_cqe,
							      struct rpost_srq_wqe,
							      cqe));
			--*posted;
		}
	}
	spin_unlock_bh(&srq->lock);
	return ret ? : i < n ? -ENOMEM : 0;
}

/* Without @scratch they are posted one by one.  @block is the kernel's. */
static int rpost_post_sends(struct rpost_obj *obj, struct rpost_post *cmd,
			    void *block, struct rpost_scratch *scratch)
{
	struct rpost_qp *qp = container_of(obj, struct rpost_qp, obj);
	u32 i, max = scratch ? RPOST_POST_BATCH : 1;
	struct rpost_swr one rpost_uninitialized;
	struct rpost_swr *swrs = scratch ? scratch->swrs : &one;
	int ret = 0, err = 0;

	if (qp->id && !READ_ONCE(qp->id->can_send))
		return -EINVAL;
	/* Looked at again under the lock: a wrong state is told of first. */
	ret = READ_ONCE(qp->sq.closed);
	if (ret)
		return ret;
	while (!ret && !err && cmd->posted < cmd->count) {
		for (i = 0; i < max && cmd->posted + i < cmd->count; i++) {
			struct rpost_send_wr *wr = block;
			u32 size = wr->size;

			err = rpost_build_send(qp, &swrs[i], wr);
			if (err)
				break;
			block += size;
		}
		if (i)
			ret = rpost_send_batch(qp, swrs, i, &cmd->posted);
		if (qp->qp_type == RPOST_QPT_UD)
			rpost_put_ahs(swrs, i);
	}
	return ret ? : err;
}

static int rpost_post_recvs(struct rpost_obj *obj, struct rpost_post *cmd,
			    void *block, struct rpost_scratch *scratch)
{
	u32 i, max_sge, max = scratch ? RPOST_POST_BATCH : 1;
	struct rpost_rwr one rpost_uninitialized;
	struct rpost_rwr *rwrs = scratch ? scratch->rwrs : &one;
	struct rpost_srq *srq = NULL;
	struct rpost_qp *qp = NULL;
	int ret = 0, err = 0;
	struct rpost_pd *pd;

	if (obj->type == RPOST_OBJ_SRQ) {
		srq = container_of(obj, struct rpost_srq, obj);
		pd = srq->pd;
		max_sge = srq->max_sge;
	} else {
		qp = container_of(obj, struct rpost_qp, obj);
		if (qp->srq)
			return -EINVAL;
		pd = qp->pd;
		max_sge = qp->rq.max_sge;
	}
	while (!ret && !err && cmd->posted < cmd->count) {
		for (i = 0; i < max && cmd->posted + i < cmd->count; i++) {
			struct rpost_recv_wr *wr = block;
			u32 size = wr->size;

			err = rpost_build_recv(pd, max_sge, &rwrs[i], wr);
			if (err)
				break;
			block += size;
		}
		if (i && srq)
			ret = rpost_srq_batch(srq, rwrs, i, &cmd->posted);
		else if (i)
			ret = rpost_recv_batch(qp, rwrs, i, &cmd->posted);
	}
	return ret ? : err;
}

/* Do @count work requests of at least @min bytes make up the block? */
static int rpost_check_block(const void *block, u32 bytes, u32 count, u32 min)
{
	u32 size, i;

	static_assert(offsetof(struct rpost_send_wr, size) ==
		      offsetof(struct rpost_recv_wr, size));

	for (i = 0; i < count; i++) {
		if (bytes < min)
			return -EINVAL;
		size = ((const struct rpost_recv_wr *)block)->size;
		if (size < min || size > bytes || size % 8)
			return -EINVAL;
		block += size;
		bytes -= size;
	}
	return bytes ? -EINVAL : 0;
}

static int rpost_copy_block(void *block, const struct rpost_post *cmd,
			    u32 small)
{
	const void __user *wrs = u64_to_user_ptr(cmd->wrs);

	if (cmd->wrs_size <= small && cmd->wrs_size % sizeof(u64) == 0)
		return rpost_copy_words(block, wrs, cmd->wrs_size);
	return copy_from_user(block, wrs, cmd->wrs_size) ? -EFAULT : 0;
}

static int rpost_post(struct rpost_ucmd *ucmd, u32 min_size,
		      enum rpost_obj_type type,
		      int (*post)(struct rpost_obj *obj, struct rpost_post *cmd,
				  void *block, struct rpost_scratch *scratch))
{
	struct rpost_post *cmd = &ucmd->cmd.post;
	u32 __user *posted = &((struct rpost_post __user *)ucmd->ubuf)->posted;
	u64 small[RPOST_STACK_BYTES / sizeof(u64)] rpost_uninitialized;
	struct rpost_scratch *scratch = NULL;
	struct rpost_obj *obj;
	void *block = small;
	int ret = -EINVAL;

	/*
	 * First, to post nothing if the program could not be told; and what it
	 * will be told most of the time, to write it once.
	 */
	cmd->posted = 0;
	if (put_user(cmd->count, posted))
		return -EFAULT;
	if (!cmd->count || cmd->wrs_size > RPOST_MAX_WR_BYTES)
		goto out;
	if (cmd->count > 1)
		scratch = rpost_scratch_take(ucmd->file);
	if (cmd->wrs_size > sizeof(small)) {
		if (scratch && cmd->wrs_size <= sizeof(scratch->block))
			block = scratch->block;
		else
			block = rpost_kvmalloc(cmd->wrs_size, 0);
		/* ENOMEM says that the queue is full. */
		ret = -ENOBUFS;
		if (!block)
			goto out;
	}
	ret = rpost_copy_block(block, cmd, sizeof(small));
	if (ret)
		goto out;
	ret = rpost_check_block(block, cmd->wrs_size, cmd->count, min_size);
	if (ret)
		goto out;

	ret = -ENOENT;
	obj = rpost_obj_get(ucmd->file, cmd->qp, type);
	if (!obj)
		goto out;
	ret = post(obj, cmd, block, scratch);
	trace_rpost_post(type == RPOST_OBJ_QP ?
			 container_of(obj, struct rpost_qp, obj)->qp_num : 0,
			 post == rpost_post_sends, cmd->posted, ret);
	rpost_obj_put(obj);
out:
	if (block != small && !(scratch && block == scratch->block))
		kvfree(block);
	if (scratch)
		rpost_scratch_give(ucmd->file, scratch);
	if (cmd->posted != cmd->count && put_user(cmd->posted, posted))
		ret = -EFAULT;
	return ret;
}

/**
 * rpost_post_send_ioctl() - post to the send queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_post_send_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, sizeof(struct rpost_send_wr), RPOST_OBJ_QP,
			  rpost_post_sends);
}

/**
 * rpost_post_recv_ioctl() - post to the receive queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_post_recv_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, sizeof(struct rpost_recv_wr), RPOST_OBJ_QP,
			  rpost_post_recvs);
}

/**
 * rpost_post_srq_recv_ioctl() - post to a shared receive queue
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_post_srq_recv_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, sizeof(struct rpost_recv_wr), RPOST_OBJ_SRQ,
			  rpost_post_recvs);
}

/**
 * rpost_post_ring() - post work requests that came from a ring
 * @qp: the queue pair
 * @block: work requests, of sizes that are right, in the kernel's memory; they
 *         are changed, but for their sizes
 * @count: how many
 * @posted: out: how many were taken
 *
 * Return: 0, or a negative errno for the first that was not taken.
 */
int rpost_post_ring(struct rpost_qp *qp, void *block, u32 count, u32 *posted)
{
	struct rpost_scratch *scratch = rpost_scratch_take(qp->obj.file);
	struct rpost_post cmd = { .count = count };
	int ret;

	ret = rpost_post_sends(&qp->obj, &cmd, block, scratch);
	trace_rpost_post(qp->qp_num, true, cmd.posted, ret);
	if (scratch)
		rpost_scratch_give(qp->obj.file, scratch);
	*posted = cmd.posted;
	return ret;
}

/* Complete without the device, once that holds nothing that comes before. */
static int rpost_post_complete(struct rpost_qp *qp, u64 wr_id)
{
	const struct rpost_wqe_kind kind = {
		.opcode = RPOST_WC_SEND, .signaled = true, .refused = true,
	};
	struct ib_wc wc = { .status = IB_WC_LOC_QP_OP_ERR };
	struct rpost_queue *sq = &qp->sq;
	int ret;

	spin_lock_bh(&sq->lock);
	ret = sq->closed;
	/* Pairs with the release in rpost_queue_retire(). */
	if (!ret && smp_load_acquire(&sq->tail) != sq->head)
		ret = -EAGAIN;
	if (!ret && !rpost_queue_room(sq, qp->send_cq, 1))
		ret = -ENOMEM;
	if (!ret) {
		wc.wr_cqe = &rpost_queue_slot(sq, wr_id, kind)->cqe;
		rpost_cq_complete(qp->send_cq, &wc);
	}
	spin_unlock_bh(&sq->lock);
	return ret;
}

/**
 * rpost_post_refused() - complete a work request that cannot be posted
 * @qp: the queue pair, which takes sends
 * @wr_id: the program's name for it
 *
 * In its turn, with RPOST_WC_LOC_QP_OP_ERR.  In its place the device gets one
 * whose key it refuses, see struct rpost_pd.  A datagram would need an address;
 * as all of them are signaled, it is enough to wait.
 *
 * Return: 0; -ENOMEM or -EAGAIN to try later; another errno if the device takes
 * nothing.
 */
int rpost_post_refused(struct rpost_qp *qp, u64 wr_id)
{
	struct rpost_swr swr = {
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.num_sge = 1,
		.sge.length = 1,
		.sge.lkey = qp->pd->bad_lkey,
		.wr_id = wr_id,
		.kind = {
			.opcode = RPOST_WC_SEND, .signaled = true,
			.refused = true, .bad_key = true,
		},
	};
	u32 posted = 0;

	if (qp->qp_type == RPOST_QPT_UD)
		return rpost_post_complete(qp, wr_id);
	if (!qp->pd->bad_lkey)
		return -EOPNOTSUPP;
	swr.wr.sg_list = &swr.sge;
	return rpost_send_batch(qp, &swr, 1, &posted);
}
