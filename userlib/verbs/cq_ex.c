// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Extended completion queues: ibv_create_cq_ex(3). */
#include <string.h>

#include "core/internal.h"

static struct rpost_cq *cq_of(struct ibv_cq_ex *ex)
{
	return rpost_container_of(ex, struct rpost_cq, ex);
}

/* Takes the next completion.  The caller holds rpost_cq_lock(). */
static int take(struct rpost_cq *cq)
{
	uint32_t tail = __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE);

	if (cq->head == tail)
		return ENOENT;
	memcpy(&cq->current, rpost_cq_entry(cq, cq->head++),
	       RPOST_WC_SMALL_SIZE);
	__atomic_store_n(&cq->ring->head, cq->head, __ATOMIC_RELEASE);
	cq->ex.wr_id = cq->current.wr_id;
	cq->ex.status = cq->current.status;
	return 0;
}

/* Takes the next completion, as rpost_poll_cq() does. */
static int poll_one(struct rpost_cq *cq)
{
	uint32_t flags;
	int err, n;

	err = take(cq);
	if (!err)
		return 0;
	if (cq->lost)
		return cq->lost;
	flags = rpost_ring_flags(cq);
	if (flags & RPOST_RING_NEED_POLL) {
		n = rpost_cq_fetch(cq);
		if (n < 0)
			return -n;
	}
	err = take(cq);
	return err && (flags & RPOST_RING_OVERRUN) ? EOVERFLOW : err;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct rpost_cq *cq = cq_of(ex);
	int err;

	if (attr && attr->comp_mask)
		return EINVAL;
	rpost_cq_lock(cq);
	err = poll_one(cq);
	if (err)
		rpost_cq_unlock(cq);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	return poll_one(cq_of(ex));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	rpost_cq_unlock(cq_of(ex));
}

#define READ(type, name, member) \
	static type read_##name(struct ibv_cq_ex *ex) { return cq_of(ex)->current.member; }

READ(enum ibv_wc_opcode, opcode, opcode)
READ(uint32_t, vendor_err, vendor_err)
READ(uint32_t, byte_len, byte_len)
/* With IBV_WC_WITH_INV, returns the invalidated key, in host byte order. */
READ(__be32, imm_data, imm_data)
READ(uint32_t, qp_num, qp_num)
READ(uint32_t, src_qp, src_qp)
READ(unsigned int, wc_flags, wc_flags)
READ(uint32_t, slid, slid)
READ(uint8_t, sl, sl)
READ(uint8_t, dlid_path_bits, dlid_path_bits)
/* The id alone: the kernel does not tell the priority. */
READ(uint16_t, cvlan, vlan)

#define KNOWN_WC_FLAGS	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN)

static int check_attr(struct ibv_context *context,
		      const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS |
				IBV_CQ_INIT_ATTR_MASK_PD))
		return EOPNOTSUPP;
	if (attr->wc_flags & ~KNOWN_WC_FLAGS)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    (!attr->parent_domain || attr->parent_domain->context != context))
		return EINVAL;
	return 0;
}

/**
 * rpost_create_cq_ex() - make a completion queue, ibv_create_cq_ex(3)
 * @context: of the device
 * @attr: wc_flags may have IBV_WC_STANDARD_FLAGS and IBV_WC_EX_WITH_CVLAN, flags
 *        may have IBV_CREATE_CQ_ATTR_SINGLE_THREADED; a parent domain changes nothing
 *
 * A thread that polls holds rpost_cq_lock() from ibv_start_poll() to
 * ibv_end_poll().  Meanwhile it may request an event, but must not resize the
 * queue, or create or destroy queue pairs: a thread that destroys a queue pair
 * may hold file->qp_nums while it waits for rpost_cq_lock().
 *
 * Return: the completion queue, to be released by ibv_destroy_cq(), or NULL
 * with errno: EOPNOTSUPP for time stamps, flow tags, tag matching and
 * queues that may be overrun, else as ibv_create_cq().
 */
struct ibv_cq_ex *rpost_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr)
{
	struct rpost_cq *cq;
	int err;

	err = check_attr(context, attr);
	if (err)
		return rpost_null(err);
	cq = rpost_cq_create(context, attr->cqe, attr->cq_context,
			     attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;

	cq->single_threaded = (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
			      attr->flags;
	cq->ex.start_poll = start_poll;
	cq->ex.next_poll = next_poll;
	cq->ex.end_poll = end_poll;
	cq->ex.read_opcode = read_opcode;
	cq->ex.read_vendor_err = read_vendor_err;
	cq->ex.read_byte_len = read_byte_len;
	cq->ex.read_imm_data = read_imm_data;
	cq->ex.read_qp_num = read_qp_num;
	cq->ex.read_src_qp = read_src_qp;
	cq->ex.read_wc_flags = read_wc_flags;
	cq->ex.read_slid = read_slid;
	cq->ex.read_sl = read_sl;
	cq->ex.read_dlid_path_bits = read_dlid_path_bits;
	cq->ex.read_cvlan = read_cvlan;
	return &cq->ex;
}
