// SPDX-License-Identifier: GPL-2.0
/*
 * Sends: the program's work requests are checked, and the device's are built.
 */
#include <linux/nospec.h>

#include "post/post.h"

static_assert(RPOST_SEND_FENCE == (int)IB_SEND_FENCE);
static_assert(RPOST_SEND_SIGNALED == (int)IB_SEND_SIGNALED);
static_assert(RPOST_SEND_SOLICITED == (int)IB_SEND_SOLICITED);

#define RPOST_SEND_MASK							\
	(RPOST_SEND_FENCE | RPOST_SEND_SIGNALED |			\
	 RPOST_SEND_SOLICITED | RPOST_SEND_INLINE)

#define RPOST_QPT_CONNECTED	(BIT(RPOST_QPT_RC) | BIT(RPOST_QPT_UC))

/* RPOST_WR_* are the opcodes of verbs, see enum ib_wr_opcode. */
static_assert(RPOST_WR_RDMA_WRITE == (int)IB_WR_RDMA_WRITE);
static_assert(RPOST_WR_RDMA_WRITE_WITH_IMM == (int)IB_WR_RDMA_WRITE_WITH_IMM);
static_assert(RPOST_WR_SEND == (int)IB_WR_SEND);
static_assert(RPOST_WR_SEND_WITH_IMM == (int)IB_WR_SEND_WITH_IMM);
static_assert(RPOST_WR_RDMA_READ == (int)IB_WR_RDMA_READ);
static_assert(RPOST_WR_ATOMIC_CMP_AND_SWP == (int)IB_WR_ATOMIC_CMP_AND_SWP);
static_assert(RPOST_WR_ATOMIC_FETCH_AND_ADD == (int)IB_WR_ATOMIC_FETCH_AND_ADD);
static_assert(RPOST_WR_SEND_WITH_INV == (int)IB_WR_SEND_WITH_INV);

/**
 * struct rpost_opcode - properties of an opcode that programs use
 * @qp_types: bits of the types of queue pairs that have it
 * @access: required access to the program's memory, RPOST_ACCESS_*; without any the
 *          device only reads it, so that data may be inline
 * @wc_opcode: opcode of its completion, RPOST_WC_*
 * @more: rpost_build_more() sets further fields
 */
struct rpost_opcode {
	u32 qp_types;
	u8 access;
	u8 wc_opcode;
	bool more;
};

static const struct rpost_opcode rpost_opcodes[] = {
	[RPOST_WR_RDMA_WRITE] = {
		RPOST_QPT_CONNECTED, 0, RPOST_WC_RDMA_WRITE, false },
	[RPOST_WR_RDMA_WRITE_WITH_IMM] = {
		RPOST_QPT_CONNECTED, 0, RPOST_WC_RDMA_WRITE, true },
	[RPOST_WR_SEND] = {
		RPOST_QPT_CONNECTED | BIT(RPOST_QPT_UD), 0, RPOST_WC_SEND, false },
	[RPOST_WR_SEND_WITH_IMM] = {
		RPOST_QPT_CONNECTED | BIT(RPOST_QPT_UD), 0, RPOST_WC_SEND, true },
	[RPOST_WR_RDMA_READ] = {
		BIT(RPOST_QPT_RC), RPOST_ACCESS_LOCAL_WRITE, RPOST_WC_RDMA_READ, false },
	[RPOST_WR_ATOMIC_CMP_AND_SWP] = {
		BIT(RPOST_QPT_RC), RPOST_ACCESS_LOCAL_WRITE, RPOST_WC_COMP_SWAP, true },
	[RPOST_WR_ATOMIC_FETCH_AND_ADD] = {
		BIT(RPOST_QPT_RC), RPOST_ACCESS_LOCAL_WRITE, RPOST_WC_FETCH_ADD, true },
	[RPOST_WR_SEND_WITH_INV] = {
		BIT(RPOST_QPT_RC), 0, RPOST_WC_SEND, true },
};

/* The send has data that is copied into the queue pair's pages. */
static int rpost_build_data(struct rpost_qp *qp, struct rpost_swr *swr, const void *data, u32 len)
{
	swr->data = data;
	swr->data_len = len;
	swr->bytes = len;
	swr->wr.sg_list = &swr->sge;
	swr->wr.num_sge = 0;
	if (!len)
		return 0;
	swr->sge.length = len;
	swr->sge.lkey = qp->pd->local_dma_lkey;
	swr->wr.num_sge = 1;
	return rpost_qp_inline_room(qp);
}

static noinline int rpost_build_inline(struct rpost_qp *qp,
				       struct rpost_swr *swr,
				       const struct rpost_opcode *op,
				       const struct rpost_send_wr *wr)
{
	if (op->access || wr->num_sge ||
	    wr->inline_len > qp->max_inline ||
	    wr->size != ALIGN(sizeof(*wr) + wr->inline_len, 8))
		return -EINVAL;
	return rpost_build_data(qp, swr, wr + 1, wr->inline_len);
}

/* Copy a short send of any memory; -EFAULT if it has to be registered. */
static noinline int rpost_build_copy(struct rpost_qp *qp, struct rpost_swr *swr,
				     const struct rpost_sge *sges, u32 num,
				     const struct rpost_memory *memory)
{
	u32 bytes = rpost_memory_short(sges, num, qp->max_inline);
	int ret;

	if (!bytes || memory->uses.num)
		return -EFAULT;
	ret = rpost_memory_copy(swr, sges, num, bytes);
	return ret ? : rpost_build_data(qp, swr, swr->data, bytes);
}

/*
 * iWARP reads nothing into one entry that must have a key nevertheless.  Return 1, -EINVAL,
 * or an errno of rpost_queue_add_uses().
 */
static noinline int rpost_build_empty_read(struct rpost_qp *qp, struct rpost_swr *swr,
					   struct rpost_sge *sge, u32 num, u32 access)
{
	struct rpost_mr *used;

	if (!num || !rpost_mr_take(qp->pd, sge, access, false, &used))
		return -EINVAL;
	if (!used)
		return 1;
	return rpost_uses_add(&swr->uses, used) ? : rpost_queue_add_uses(&qp->sq) ? : 1;
}

static inline int rpost_build_sges(struct rpost_qp *qp, struct rpost_swr *swr,
				   const struct rpost_opcode *op,
				   struct rpost_send_wr *wr,
				   struct rpost_memory *memory)
{
	struct rpost_sge *sges = (struct rpost_sge *)(wr + 1);
	u32 num = wr->num_sge, max = qp->sq.max_sge, total;
	int n = 1;

	if (wr->opcode == RPOST_WR_RDMA_READ)
		max = qp->max_sge_rd;
	if (wr->inline_len || num > max ||
	    wr->size != sizeof(*wr) + num * sizeof(*sges))
		return -EINVAL;
	if (likely(rpost_check_one(qp->pd, sges, num, op->access))) {
		total = sges->length;
	} else {
		struct rpost_check check = {
			.pd = qp->pd, .memory = memory, .queue = &qp->sq,
			.uses = &swr->uses, .kind = &swr->kind, .access = op->access,
		};

		if (memory && !op->access) {
			n = rpost_build_copy(qp, swr, sges, num, memory);
			if (n != -EFAULT)
				return n;
		}
		n = rpost_check_many(&check, sges, num);
		if (n < 0)
			return n;
		total = check.total;
	}
	if (!n && wr->opcode == RPOST_WR_RDMA_READ && qp->iwarp) {
		n = rpost_build_empty_read(qp, swr, sges, num, op->access);
		if (n < 0)
			return n;
	}
	swr->wr.sg_list = (struct ib_sge *)sges;
	swr->wr.num_sge = n;
	swr->bytes = total;
	if (wr->opcode == RPOST_WR_ATOMIC_CMP_AND_SWP ||
	    wr->opcode == RPOST_WR_ATOMIC_FETCH_AND_ADD) {
		if (n != 1 || total != sizeof(u64) || wr->remote_addr & 7)
			return -EINVAL;
	}
	return 0;
}

/* Drop what work requests have that are not posted. */
static void rpost_drop_sends(struct rpost_swr *swrs, u32 n)
{
	struct rpost_swr *swr;

	for (swr = swrs; swr < swrs + n; swr++) {
		rpost_uses_drop(&swr->uses);
		if (swr->copied)
			kfree(swr->data);
		swr->copied = false;
	}
}

static noinline int rpost_build_ud(struct rpost_qp *qp, struct rpost_swr *swr,
				   const struct rpost_send_wr *wr)
{
	struct rpost_ah *ah = rpost_ah_get(qp->obj.file, wr->ah);

	if (!ah)
		return -ENOENT;
	/* Only removal clears ib_ah meanwhile; it has closed the queue, too. */
	if (ah->pd != qp->pd || READ_ONCE(ah->gone)) {
		rpost_obj_put(&ah->obj);
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

/* Set the fields that only some opcodes have. */
static void rpost_build_more(struct rpost_swr *swr, const struct rpost_send_wr *wr)
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
 * Check one work request and build the device's from it; rpost_fill_send() sets
 * the rest.
 */
static noinline int rpost_build_send(struct rpost_qp *qp, struct rpost_swr *swr,
				     struct rpost_send_wr *wr,
				     struct rpost_memory *memory)
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

	swr->wr.opcode = opcode;
	swr->wr.send_flags = flags & (RPOST_SEND_FENCE | RPOST_SEND_SOLICITED);
	swr->wr.ex.imm_data = 0;
	swr->rdma.remote_addr = wr->remote_addr;
	swr->rdma.rkey = wr->rkey;
	swr->ah = NULL;
	swr->data_len = 0;
	swr->copied = false;
	swr->uses.num = 0;
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
		ret = rpost_build_sges(qp, swr, op, wr, memory);
	/* This comes last because it takes a reference. */
	if (!ret && qp->qp_type == RPOST_QPT_UD)
		ret = rpost_build_ud(qp, swr, wr);
	if (unlikely(ret))
		rpost_drop_sends(swr, 1);
	return ret;
}

/*
 * One completion retires every unsignaled send before it, and drops their regions under
 * the completion queue's lock: bound how many.
 */
#define RPOST_UNSIGNALED_USES	64

/* How many sends in a row may go without IB_SEND_SIGNALED? */
static u32 rpost_most_unsignaled(const struct rpost_queue *sq)
{
	u32 most = sq->max_wr / 4;

	return unlikely(READ_ONCE(sq->uses)) ? min(most, RPOST_UNSIGNALED_USES) : most;
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
	if (unlikely(swr->uses.num)) {
		sq->uses[wqe - sq->wqes] = swr->uses;
		swr->uses.num = 0;
	}
	swr->wr.wr_cqe = &wqe->cqe;

	/*
	 * Slots come back only by completions, so signal some even if the
	 * program wants none.  Signal all datagrams, so that each releases its
	 * address handle, and all sends that are counted.
	 */
	if (swr->kind.signaled || swr->ah || READ_ONCE(qp->counting) ||
	    ++sq->unsignaled > rpost_most_unsignaled(sq)) {
		swr->wr.send_flags |= IB_SEND_SIGNALED;
		sq->unsignaled = 0;
	}
	if (swr->data_len) {
		to = rpost_inline_addr(qp, wqe - sq->wqes, &swr->sge.addr);
		memcpy(to, swr->data, swr->data_len);
		ib_dma_sync_single_for_device(qp->ib_qp->device, swr->sge.addr,
					      swr->data_len, DMA_TO_DEVICE);
	}
	if (unlikely(swr->copied)) {
		kfree(swr->data);
		swr->copied = false;
	}
}

/* Take back the last @n slots, whose sends the device has refused. */
static void rpost_send_refused(struct rpost_qp *qp, u32 n)
{
	struct rpost_queue *sq = &qp->sq;

	while (n--) {
		sq->head--;
		if (qp->ahs)
			rpost_qp_release_ah(qp, &sq->wqes[sq->head & sq->mask]);
		if (sq->uses)
			rpost_uses_drop(&sq->uses[sq->head & sq->mask]);
	}
	/* How many sends have gone without a signal is not known any more: signal the next. */
	sq->unsignaled = sq->max_wr;
}

/*
 * Post a chain of @n sends that have slots.  @done is set to the number that
 * the device has got.
 */
static int rpost_send_chain(struct rpost_qp *qp, struct rpost_swr *swrs, u32 n, u32 *done)
{
	const struct ib_send_wr *bad = &swrs[0].wr, *wr;
	u32 i;
	int ret;

	*done = n;
	ret = ib_post_send(qp->ib_qp, &swrs[0].wr, &bad);
	if (unlikely(ret)) {
		*done = 0;
		for (wr = &swrs[0].wr; wr && wr != bad; wr = wr->next)
			++*done;
		rpost_send_refused(qp, n - *done);
	}
	for (i = 0; i < *done; i++)
		rpost_stat_op(qp->obj.file, swrs[i].kind.opcode, swrs[i].bytes);
	return ret;
}

static int rpost_send_batch(struct rpost_qp *qp, struct rpost_swr *swrs, u32 n, u32 *posted)
{
	struct rpost_queue *sq = &qp->sq;
	u32 room, done = 0;
	struct rpost_swr *swr;
	bool signaled = false;
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
		/* Has the device got a signaled send? */
		signaled = sq->unsignaled < done;
	}
	spin_unlock_bh(&sq->lock);
	/* A driver's tasklet has run by now, see struct rpost_queue. */
	if (signaled)
		rpost_cq_posted(qp->send_cq);
	*posted += done;
	return ret;
}

/*
 * Ask the policies whether a work request may be posted, and charge it unless *paid says when
 * that was done.  Set *bytes to its length; one that is malformed is refused later.  Return
 * 0, -EPERM or RPOST_IN_DEBT.
 */
static int rpost_send_admit(struct rpost_qp *qp, const struct rpost_send_wr *wr, bool first,
			    u32 *bytes, s64 *paid)
{
	const struct rpost_tenant *tenant = &qp->obj.file->tenant;
	const struct rpost_sge *sges = (const struct rpost_sge *)(wr + 1);
	bool atomic = wr->opcode == RPOST_WR_ATOMIC_CMP_AND_SWP ||
		      wr->opcode == RPOST_WR_ATOMIC_FETCH_AND_ADD;
	struct rpost_wish wish = { .forbid = atomic ? RPOST_FORBID_ATOMIC : 0, .again = !first };
	u32 i, room = (wr->size - sizeof(*wr)) / sizeof(*sges);
	int ret;

	if (wr->send_flags & RPOST_SEND_INLINE)
		wish.bytes = wr->inline_len;
	else
		for (i = 0; i < min(wr->num_sge, room); i++)
			wish.bytes += sges[i].length;
	*bytes = min_t(u64, wish.bytes, U32_MAX);
	ret = rpost_policy_allows(tenant, &wish);
	if (ret)
		return ret;
	if (!*paid)
		*paid = rpost_policy_charge(tenant, *bytes);
	return *paid ? 0 : RPOST_IN_DEBT;
}

/*
 * Post sends to which policies apply, one by one: each is charged before the next one is
 * looked at.  What waits for memory is not charged again.
 */
static noinline int rpost_post_admitted(struct rpost_qp *qp, struct rpost_posting *post,
					struct rpost_memory *memory)
{
	const struct rpost_tenant *tenant = &qp->obj.file->tenant;
	struct rpost_send_wr *wr;
	struct rpost_swr swr rpost_uninitialized;
	u32 first, bytes;
	int ret = 0;
	s64 paid;

	while (!ret && post->posted < post->count) {
		first = post->posted;
		wr = post->wrs;
		paid = memory ? memory->paid : 0;
		/* The error of another than the first of all comes from the next post. */
		ret = rpost_send_admit(qp, wr, !first, &bytes, &paid);
		if (ret)
			break;
		if (memory)
			memory->paid = 0;
		ret = rpost_build_send(qp, &swr, wr, memory);
		if (!ret) {
			ret = rpost_send_batch(qp, &swr, 1, &post->posted);
			if (post->posted == first)
				rpost_drop_sends(&swr, 1);
			if (qp->qp_type == RPOST_QPT_UD)
				rpost_put_ahs(&swr, 1);
		}
		if (post->posted != first) {
			post->wrs += wr->size;
			rpost_policy_posted(tenant, bytes);
		} else if (ret == RPOST_NEEDS_MEMORY) {
			memory->paid = paid;
			memory->bytes = bytes;
		} else {
			rpost_policy_refund(tenant, bytes, paid);
		}
	}
	return ret;
}

/*
 * Check, build and post sends.  memory is the program's memory that the first of them
 * uses, if it has any.  Return 0, or a negative errno for the first that was not posted.
 */
int rpost_post_sends(struct rpost_obj *obj, struct rpost_posting *post,
		     struct rpost_memory *memory)
{
	struct rpost_qp *qp = rpost_obj_as(qp, obj);
	u32 i, first, max = post->scratch ? RPOST_POST_BATCH : 1;
	struct rpost_swr one rpost_uninitialized;
	struct rpost_swr *swrs = post->scratch ? post->scratch->swrs : &one;
	int ret = 0, err = 0;

	if (!(qp->qp_flags & RPOST_QP_ANY_MEMORY))
		memory = NULL;
	if (qp->id && !READ_ONCE(qp->id->can_send))
		return -EINVAL;
	/* Report this error before others; it is checked again under the lock. */
	ret = READ_ONCE(qp->sq.closed);
	if (ret)
		return ret;
	if (rpost_tenant_restricted(&qp->obj.file->tenant))
		return rpost_post_admitted(qp, post, memory);
	while (!ret && !err && post->posted < post->count) {
		for (i = 0; i < max && post->posted + i < post->count; i++) {
			struct rpost_send_wr *wr = post->wrs;
			u32 size = wr->size;

			err = rpost_build_send(qp, &swrs[i], wr, memory);
			if (err)
				break;
			post->wrs += size;
		}
		first = post->posted;
		if (i)
			ret = rpost_send_batch(qp, swrs, i, &post->posted);
		if (unlikely(post->posted - first != i))
			rpost_drop_sends(swrs, i);
		if (qp->qp_type == RPOST_QPT_UD)
			rpost_put_ahs(swrs, i);
	}
	return ret ? : err;
}
