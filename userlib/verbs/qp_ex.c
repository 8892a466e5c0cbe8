// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ibv_wr_*(), which build work requests one by one: see ibv_wr_post(3).
 *
 * Each call packs a work request into the block, setters add its data, and
 * ibv_wr_complete() posts the block.  After an error ibv_wr_complete() posts
 * nothing and returns the first error.  Only the module knows how full the
 * queue is: without room for all, it posts the first work requests, and
 * ibv_wr_complete() returns ENOMEM.
 */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/* Room for a few work requests; take() doubles it. */
#define FIRST_ROOM	1024

#define OPS_UD	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC	(OPS_UD | IBV_QP_EX_WITH_SEND_WITH_INV | \
		 IBV_QP_EX_WITH_RDMA_WRITE | \
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define OPS_RC	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ | \
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

#define KNOWN_FLAGS	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | \
			 IBV_SEND_SOLICITED | IBV_SEND_INLINE)

static_assert(1 << RPOST_WR_SEND_WITH_INV == IBV_QP_EX_WITH_SEND_WITH_INV,
	      "opcodes and flags");

int rpost_qp_ex_check(enum ibv_qp_type type, uint64_t ops)
{
	uint64_t known = type == IBV_QPT_RC ? OPS_RC :
			 type == IBV_QPT_UC ? OPS_UC :
			 type == IBV_QPT_UD ? OPS_UD : 0;

	return ops & ~known ? EOPNOTSUPP : 0;
}

static struct rpost_qp *of(struct ibv_qp_ex *ex)
{
	return rpost_container_of(ex, struct rpost_qp, ex);
}

static void fail(struct rpost_wr_list *list, int err)
{
	if (!list->err)
		list->err = err;
}

/* Returns room for @size more bytes, zeroed, or NULL after an error. */
static void *take(struct rpost_wr_list *list, size_t size)
{
	struct rpost_block *block = &list->block;
	size_t room = block->room ? block->room : FIRST_ROOM;
	void *pos;

	if (list->err)
		return NULL;
	while (room - block->used < size)
		room *= 2;
	if (room != block->room) {
		pos = realloc(block->buf, room);
		if (!pos) {
			fail(list, ENOMEM);
			return NULL;
		}
		block->buf = pos;
		block->room = room;
	}
	pos = block->buf + block->used;
	block->used += size;
	memset(pos, 0, size);
	return pos;
}

/* Returns the work request that setters change, or NULL after an error. */
static struct rpost_send_wr *last_wr(struct rpost_wr_list *list)
{
	if (!list->err && list->block.used <= sizeof(struct rpost_post))
		fail(list, EINVAL);
	return list->err ? NULL : (void *)(list->block.buf + list->last);
}

static struct rpost_send_wr *begin(struct ibv_qp_ex *ex, uint32_t opcode)
{
	struct rpost_qp *qp = of(ex);
	struct rpost_wr_list *list = &qp->list;
	struct rpost_send_wr *wr;

	/* An opcode is its bit in enum ibv_qp_create_send_ops_flags. */
	if (ex->wr_flags & ~KNOWN_FLAGS ||
	    rpost_qp_ex_check(qp->ibv.qp_type, 1U << opcode)) {
		fail(list, EOPNOTSUPP);
		return NULL;
	}
	wr = take(list, sizeof(*wr));
	if (!wr)
		return NULL;
	list->last = list->block.used - sizeof(*wr);
	wr->wr_id = ex->wr_id;
	wr->size = sizeof(*wr);
	wr->opcode = opcode;
	/* The setters decide whether data is inline. */
	wr->send_flags = ex->wr_flags & ~IBV_SEND_INLINE;
	return wr;
}

/* --------------------------------------------------- work requests */

static void wr_remote(struct ibv_qp_ex *ex, uint32_t opcode, uint32_t rkey,
		      uint64_t remote_addr, __be32 imm_data)
{
	struct rpost_send_wr *wr = begin(ex, opcode);

	if (!wr)
		return;
	wr->remote_addr = remote_addr;
	wr->rkey = rkey;
	wr->imm_data = imm_data;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	wr_remote(ex, RPOST_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	wr_remote(ex, RPOST_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	wr_remote(ex, RPOST_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr,
		  imm_data);
}

static void wr_atomic(struct ibv_qp_ex *ex, uint32_t opcode, uint32_t rkey,
		      uint64_t remote_addr, uint64_t compare_add, uint64_t swap)
{
	struct rpost_send_wr *wr = begin(ex, opcode);

	if (!wr)
		return;
	wr->remote_addr = remote_addr;
	wr->rkey = rkey;
	wr->compare_add = compare_add;
	wr->swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	wr_atomic(ex, RPOST_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare,
		  swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	wr_atomic(ex, RPOST_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, RPOST_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct rpost_send_wr *wr = begin(ex, RPOST_WR_SEND_WITH_IMM);

	if (wr)
		wr->imm_data = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct rpost_send_wr *wr = begin(ex, RPOST_WR_SEND_WITH_INV);

	if (wr)
		wr->rkey = invalidate_rkey;
}

/* ------------------------------------------------------- unsupported */

static void unsupported(struct ibv_qp_ex *ex)
{
	fail(&of(ex)->list, EOPNOTSUPP);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *bind_info)
{
	(void)mw;
	(void)rkey;
	(void)bind_info;
	unsupported(ex);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	(void)invalidate_rkey;
	unsupported(ex);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	(void)hdr;
	(void)hdr_sz;
	(void)mss;
	unsupported(ex);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	(void)remote_srqn;
	unsupported(ex);
}

/* --------------------------------------------------------- setters */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct rpost_qp *qp = of(ex);
	struct rpost_send_wr *wr = last_wr(&qp->list);

	if (!wr)
		return;
	if (qp->ibv.qp_type != IBV_QPT_UD || !ah || rpost_ah(ah)->pd != qp->pd) {
		fail(&qp->list, EINVAL);
		return;
	}
	wr->ah = ah->handle;
	wr->remote_qpn = remote_qpn;
	wr->remote_qkey = remote_qkey;
}

/* As last_wr(), but fails if the work request has data already. */
static struct rpost_send_wr *without_data(struct rpost_wr_list *list)
{
	struct rpost_send_wr *wr = last_wr(list);

	if (!wr)
		return NULL;
	if (wr->size != sizeof(*wr)) {
		fail(list, EINVAL);
		return NULL;
	}
	return wr;
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct rpost_qp *qp = of(ex);
	struct rpost_wr_list *list = &qp->list;
	struct rpost_send_wr *wr = without_data(list);
	size_t size = num_sge * sizeof(*sg_list);
	void *sges;

	if (!wr || !num_sge)
		return;
	if (num_sge > qp->cap.max_send_sge) {
		fail(list, EINVAL);
		return;
	}
	sges = take(list, size);
	if (!sges)
		return;
	memcpy(sges, sg_list, size);
	/* take() may have moved the block. */
	wr = last_wr(list);
	wr->num_sge = (uint32_t)num_sge;
	wr->size += (uint32_t)size;
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = {
		.addr = addr,
		.length = length,
		.lkey = lkey,
	};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct rpost_qp *qp = of(ex);
	struct rpost_wr_list *list = &qp->list;
	struct rpost_send_wr *wr = without_data(list);
	size_t i, size, len = 0;
	char *data;

	if (!wr)
		return;
	for (i = 0; i < num_buf; i++) {
		if (buf_list[i].length > qp->cap.max_inline_data - len) {
			fail(list, EINVAL);
			return;
		}
		len += buf_list[i].length;
	}
	size = (len + 7) & ~(size_t)7;
	data = take(list, size);
	if (!data)
		return;
	for (i = 0; i < num_buf; i++) {
		if (!buf_list[i].length)
			continue;
		memcpy(data, buf_list[i].addr, buf_list[i].length);
		data += buf_list[i].length;
	}
	wr = last_wr(list);
	wr->send_flags |= RPOST_SEND_INLINE;
	wr->inline_len = (uint32_t)len;
	wr->size += (uint32_t)size;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {
		.addr = addr,
		.length = length,
	};

	wr_set_inline_data_list(ex, 1, &buf);
}

/* ---------------------------------------------------- from start to end */

static void wr_start(struct ibv_qp_ex *ex)
{
	struct rpost_wr_list *list = &of(ex)->list;

	pthread_mutex_lock(&list->lock);
	list->block.used = sizeof(struct rpost_post);
	list->err = 0;
}

/*
 * Finds errors that the module would find after it has posted earlier work
 * requests.
 */
static bool is_complete(const struct rpost_qp *qp,
			const struct rpost_send_wr *wr)
{
	const struct rpost_sge *sge = (const void *)(wr + 1);

	if (qp->ibv.qp_type == IBV_QPT_UD)
		return wr->ah;
	switch (wr->opcode) {
	case RPOST_WR_RDMA_READ:
		return !(wr->send_flags & RPOST_SEND_INLINE);
	case RPOST_WR_ATOMIC_CMP_AND_SWP:
	case RPOST_WR_ATOMIC_FETCH_AND_ADD:
		return wr->num_sge == 1 && sge->length == sizeof(uint64_t) &&
		       !(wr->remote_addr % sizeof(uint64_t));
	default:
		return true;
	}
}

static int check_list(const struct rpost_qp *qp)
{
	const struct rpost_block *block = &qp->list.block;
	const struct rpost_send_wr *wr;
	uint32_t count = 0;
	size_t pos;

	for (pos = sizeof(struct rpost_post); pos < block->used; pos += wr->size) {
		wr = (void *)(block->buf + pos);
		if (!is_complete(qp, wr))
			return EINVAL;
		count++;
	}
	/* The module returns ENOMEM if the queue has too little room left. */
	return count > qp->cap.max_send_wr ? ENOMEM : 0;
}

/*
 * Posts as many work requests from *@pos of the block as one call takes, and moves *@pos
 * behind the posted ones.  The command takes the place of the last bytes before them.
 */
static int post_some(struct rpost_qp *qp, size_t *pos)
{
	size_t max = rpost_ctx(qp->ibv.context)->file->max_wr_bytes;
	const struct rpost_block *block = &qp->list.block;
	size_t head = sizeof(struct rpost_post), end = *pos;
	const struct rpost_send_wr *wr;
	int n;

	while (end < block->used) {
		wr = (void *)(block->buf + end);
		if (end + wr->size - *pos > max)
			break;
		end += wr->size;
	}
	if (end == *pos)
		return EINVAL;
	n = rpost_post_sends(qp, block->buf + *pos - head, end - *pos + head);
	if (n < 0)
		return -n;
	while (n--)
		*pos += ((const struct rpost_send_wr *)(block->buf + *pos))->size;
	return 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct rpost_qp *qp = of(ex);
	struct rpost_wr_list *list = &qp->list;
	size_t pos = sizeof(struct rpost_post);
	int err = list->err;

	if (!err)
		err = check_list(qp);
	while (!err && pos < list->block.used)
		err = post_some(qp, &pos);
	pthread_mutex_unlock(&list->lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	pthread_mutex_unlock(&of(ex)->list.lock);
}

void rpost_qp_ex_init(struct rpost_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	pthread_mutex_init(&qp->list.lock, NULL);
	qp->extended = true;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_send_tso = wr_send_tso;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
}

void rpost_qp_ex_fini(struct rpost_qp *qp)
{
	pthread_mutex_destroy(&qp->list.lock);
	free(qp->list.block.buf);
}

/**
 * ibv_qp_to_qp_ex() - get the extended form of a queue pair,
 * ibv_create_qp_ex(3)
 * @qp: the queue pair
 *
 * ibv_wr_complete() returns EOPNOTSUPP for operations that its type does not
 * have.  Others are posted even if send_ops_flags did not name them; providers
 * of rdma-core do the same (mlx5), or have no function for the call (rxe).
 * wr_atomic_write and wr_flush are NULL: librpma 1.3 looks whether a queue pair
 * has them.
 *
 * Return: the same object, or NULL for one that was made without
 * IBV_QP_INIT_ATTR_SEND_OPS_FLAGS.
 */
RPOST_API struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct rpost_qp *rqp = rpost_qp(qp);

	return rqp->extended ? &rqp->ex : NULL;
}
