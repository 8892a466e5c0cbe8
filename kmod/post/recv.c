// SPDX-License-Identifier: GPL-2.0
/*
 * Receives, of queue pairs and of shared receive queues.
 */
#include "post/post.h"

static void rpost_drop_recvs(struct rpost_rwr *rwrs, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		rpost_uses_drop(&rwrs[i].uses);
}

/* Check the entries, unless it is one with a good key.  @rq is NULL for an SRQ. */
static noinline int rpost_build_entries(struct rpost_pd *pd, struct rpost_queue *rq,
					struct rpost_rwr *rwr,
					struct rpost_sge *sges, u32 num,
					struct rpost_memory *memory)
{
	struct rpost_check check = {
		.pd = pd, .memory = memory, .queue = rq, .uses = &rwr->uses,
		.kind = &rwr->kind, .access = RPOST_ACCESS_LOCAL_WRITE,
	};

	return rpost_check_many(&check, sges, num);
}

static int rpost_build_recv(struct rpost_pd *pd, struct rpost_queue *rq,
			    u32 max_sge, struct rpost_rwr *rwr,
			    struct rpost_recv_wr *wr, struct rpost_memory *memory)
{
	struct rpost_sge *sges = (struct rpost_sge *)(wr + 1);
	int n = 1;

	if (wr->num_sge > max_sge ||
	    wr->size != sizeof(*wr) + wr->num_sge * sizeof(*sges))
		return -EINVAL;
	rwr->kind = (struct rpost_wqe_kind) { .opcode = RPOST_WC_RECV };
	rwr->uses.num = 0;
	if (!rpost_check_one(pd, sges, wr->num_sge, RPOST_ACCESS_LOCAL_WRITE))
		n = rpost_build_entries(pd, rq, rwr, sges, wr->num_sge, memory);
	if (n < 0)
		return n;
	rwr->wr_id = wr->wr_id;
	rwr->wr = (struct ib_recv_wr) {
		.sg_list = (struct ib_sge *)sges,
		.num_sge = n,
	};
	return 0;
}

/* Take back the last @n slots, whose receives the device has refused. */
static void rpost_recv_refused(struct rpost_queue *rq, u32 n)
{
	rq->head -= n;
	if (rq->uses)
		rpost_queue_drop_uses(rq, rq->head, rq->head + n);
}

static int rpost_recv_batch(struct rpost_qp *qp, struct rpost_rwr *rwrs, u32 n, u32 *posted)
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
		if (unlikely(rwrs[i].uses.num)) {
			rq->uses[wqe - rq->wqes] = rwrs[i].uses;
			rwrs[i].uses.num = 0;
		}
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
			rpost_recv_refused(rq, room - done);
		}
	}
	spin_unlock_bh(&rq->lock);
	*posted += done;
	return ret;
}

static int rpost_srq_batch(struct rpost_srq *srq, struct rpost_rwr *rwrs, u32 n, u32 *posted)
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
		if (unlikely(rwrs[i].uses.num)) {
			wqe->uses = rwrs[i].uses;
			rwrs[i].uses.num = 0;
		}
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

/*
 * Check, build and post receives of a queue pair, or of a shared receive queue.  The rest
 * is as in rpost_post_sends().
 */
int rpost_post_recvs(struct rpost_obj *obj, struct rpost_posting *post,
		     struct rpost_memory *memory)
{
	u32 i, first, max_sge, max = post->scratch ? RPOST_POST_BATCH : 1;
	struct rpost_rwr one rpost_uninitialized;
	struct rpost_rwr *rwrs = post->scratch ? post->scratch->rwrs : &one;
	struct rpost_srq *srq = NULL;
	struct rpost_queue *rq = NULL;
	struct rpost_qp *qp = NULL;
	int ret = 0, err = 0;
	struct rpost_pd *pd;

	if (obj->type == RPOST_OBJ_SRQ) {
		srq = rpost_obj_as(srq, obj);
		pd = srq->pd;
		max_sge = srq->max_sge;
	} else {
		qp = rpost_obj_as(qp, obj);
		if (qp->srq)
			return -EINVAL;
		pd = qp->pd;
		rq = &qp->rq;
		max_sge = rq->max_sge;
	}
	if (!qp || !(qp->qp_flags & RPOST_QP_ANY_MEMORY))
		memory = NULL;
	while (!ret && !err && post->posted < post->count) {
		for (i = 0; i < max && post->posted + i < post->count; i++) {
			struct rpost_recv_wr *wr = post->wrs;
			u32 size = wr->size;

			err = rpost_build_recv(pd, rq, max_sge, &rwrs[i], wr, memory);
			if (err)
				break;
			post->wrs += size;
		}
		first = post->posted;
		if (i && srq)
			ret = rpost_srq_batch(srq, rwrs, i, &post->posted);
		else if (i)
			ret = rpost_recv_batch(qp, rwrs, i, &post->posted);
		if (unlikely(post->posted - first != i))
			rpost_drop_recvs(rwrs, i);
	}
	return ret ? : err;
}
