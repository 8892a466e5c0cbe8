// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Posts: a list of work requests is packed and posted by one system call. */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/* Longer lists take several calls; a longer work request is malloc()ed. */
#define STACK_BLOCK	4096

/* The receive queue of a queue pair, or a shared one. */
struct recv_queue {
	struct ibv_context *context;
	uint32_t handle;
	uint32_t max_sge;
	unsigned long cmd;
};

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Posts @bytes of a block, which begin with room for the command. */
static int post_block(struct ibv_context *context, uint32_t handle, unsigned long ioc,
		      char *block, size_t bytes)
{
	struct rpost_post *cmd = (struct rpost_post *)block;

	*cmd = (struct rpost_post) { .size = (uint32_t)bytes, .qp = handle };
	return rpost_call(context->cmd_fd, ioc, cmd);
}

int rpost_post_sends(struct rpost_qp *qp, char *block, size_t bytes)
{
	return post_block(qp->ibv.context, qp->ibv.handle, RPOST_IOC_POST_SEND, block, bytes);
}

/* 64 bits: the sum of the lengths may exceed 32. */
static uint64_t inline_length(const struct ibv_send_wr *wr)
{
	uint64_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	return len;
}

/* Most lists have one entry: a loop is faster than a call of memcpy(). */
static void pack_sges(struct rpost_sge *out, const struct ibv_sge *sge, int num)
{
	static_assert(sizeof(*out) == sizeof(*sge), "entries are copied");

	for (; num > 0; num--)
		memcpy(out++, sge++, sizeof(*out));
}

/* For other opcodes the union has an address in place of wr.ud.ah. */
static bool is_datagram(const struct rpost_qp *rqp,
			const struct ibv_send_wr *wr)
{
	return (wr->opcode == IBV_WR_SEND ||
		wr->opcode == IBV_WR_SEND_WITH_IMM) &&
	       wr->wr.ud.ah && rpost_ah(wr->wr.ud.ah)->pd == rqp->pd;
}

/* Returns the size of the packed work request, or 0 if it is invalid. */
static size_t send_size(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	const struct rpost_qp *rqp = rpost_qp((struct ibv_qp *)qp);
	const struct ibv_qp_cap *cap = &rqp->cap;
	uint64_t len;

	if (qp->qp_type == IBV_QPT_UD && !is_datagram(rqp, wr))
		return 0;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > cap->max_send_sge)
		return 0;
	if (!(wr->send_flags & IBV_SEND_INLINE))
		return sizeof(struct rpost_send_wr) +
		       wr->num_sge * sizeof(struct rpost_sge);
	len = inline_length(wr);
	if (len > cap->max_inline_data)
		return 0;
	return align8(sizeof(struct rpost_send_wr) + len);
}

static void pack_inline(char *dst, const struct ibv_send_wr *wr)
{
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		if (!wr->sg_list[i].length)
			continue;
		memcpy(dst, (void *)(uintptr_t)wr->sg_list[i].addr,
		       wr->sg_list[i].length);
		dst += wr->sg_list[i].length;
	}
}

static void pack_remote(struct rpost_send_wr *out, const struct ibv_qp *qp,
			const struct ibv_send_wr *wr)
{
	if (qp->qp_type == IBV_QPT_UD) {
		/* They share unions with fields of RDMA and atomics. */
		out->ah = wr->wr.ud.ah->handle;
		out->remote_qpn = wr->wr.ud.remote_qpn;
		out->remote_qkey = wr->wr.ud.remote_qkey;
	}
	/* Programs need not initialise fields that the opcode does not use. */
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		out->imm_data = wr->imm_data;
		/* fall through */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
		out->remote_addr = wr->wr.rdma.remote_addr;
		out->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_SEND_WITH_IMM:
		out->imm_data = wr->imm_data;
		break;
	case IBV_WR_SEND_WITH_INV:
		out->rkey = wr->invalidate_rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		out->swap = wr->wr.atomic.swap;
		/* fall through */
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		out->compare_add = wr->wr.atomic.compare_add;
		out->remote_addr = wr->wr.atomic.remote_addr;
		out->rkey = wr->wr.atomic.rkey;
		break;
	default:
		break;
	}
}

static void pack_send(struct rpost_block *block, const struct ibv_qp *qp,
		      const struct ibv_send_wr *wr, size_t size)
{
	struct rpost_send_wr *out = (void *)(block->buf + block->used);
	char *end = (char *)out + size;
	char *tail = (char *)(out + 1);

	memset(out, 0, sizeof(*out));
	out->wr_id = wr->wr_id;
	out->size = (uint32_t)size;
	out->opcode = wr->opcode;
	out->send_flags = wr->send_flags;
	pack_remote(out, qp, wr);
	if (wr->send_flags & IBV_SEND_INLINE) {
		out->inline_len = (uint32_t)inline_length(wr);
		pack_inline(tail, wr);
		tail += out->inline_len;
		memset(tail, 0, end - tail);
	} else if (wr->num_sge) {
		out->num_sge = wr->num_sge;
		pack_sges((struct rpost_sge *)tail, wr->sg_list, wr->num_sge);
	}
	block->used += size;
}

/* Returns the size of the packed work request, or 0 if it is invalid. */
static size_t recv_size(const struct recv_queue *rq,
			const struct ibv_recv_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
		return 0;
	return sizeof(struct rpost_recv_wr) +
	       wr->num_sge * sizeof(struct rpost_sge);
}

static void pack_recv(struct rpost_block *block, const struct ibv_recv_wr *wr,
		      size_t size)
{
	struct rpost_recv_wr *out = (void *)(block->buf + block->used);

	out->wr_id = wr->wr_id;
	out->size = (uint32_t)size;
	out->num_sge = wr->num_sge;
	pack_sges((struct rpost_sge *)(out + 1), wr->sg_list, wr->num_sge);
	block->used += size;
}

/* Allocates a block for a work request that the stack has no room for. */
static int grow(struct ibv_context *context, struct rpost_block *block,
		size_t size)
{
	if (size > rpost_ctx(context)->file->max_wr_bytes)
		return EINVAL;
	block->room = block->used + size;
	block->buf = malloc(block->room);
	return block->buf ? 0 : ENOMEM;
}

static struct rpost_block stack_block(struct ibv_context *context, uint64_t *stack)
{
	uint32_t max = rpost_ctx(context)->file->max_wr_bytes;

	return (struct rpost_block) {
		.buf = (char *)stack,
		.room = sizeof(struct rpost_post) + (max < STACK_BLOCK ? max : STACK_BLOCK),
		.used = sizeof(struct rpost_post),
	};
}

#define STACK_WORDS	((sizeof(struct rpost_post) + STACK_BLOCK) / sizeof(uint64_t))

/*
 * Packs as many work requests from *@wr as fit into one block, posts them, and moves *@wr
 * behind the posted ones.  An invalid work request ends the block, and so may one that is
 * not posted; the next call, in which it is the first, fails.
 */
static int send_some(struct ibv_qp *qp, struct ibv_send_wr **wr)
{
	uint64_t stack[STACK_WORDS];
	struct rpost_block block = stack_block(qp->context, stack);
	struct ibv_send_wr *next = *wr;
	size_t size;
	int err, n;

	do {
		size = send_size(qp, next);
		if (!size || size > block.room - block.used) {
			if (next != *wr)
				break;
			err = size ? grow(qp->context, &block, size) : EINVAL;
			if (err)
				return err;
		}
		pack_send(&block, qp, next, size);
		next = next->next;
	} while (next);
	n = rpost_post_sends(rpost_qp(qp), block.buf, block.used);
	if (block.buf != (char *)stack)
		free(block.buf);
	for (; n > 0 && *wr != next; n--)
		*wr = (*wr)->next;
	return -n;
}

static int recv_some(const struct recv_queue *rq, struct ibv_recv_wr **wr)
{
	uint64_t stack[STACK_WORDS];
	struct rpost_block block = stack_block(rq->context, stack);
	struct ibv_recv_wr *next = *wr;
	size_t size;
	int err, n;

	do {
		size = recv_size(rq, next);
		if (!size || size > block.room - block.used) {
			if (next != *wr)
				break;
			err = size ? grow(rq->context, &block, size) : EINVAL;
			if (err)
				return err;
		}
		pack_recv(&block, next, size);
		next = next->next;
	} while (next);
	n = post_block(rq->context, rq->handle, rq->cmd, block.buf, block.used);
	if (block.buf != (char *)stack)
		free(block.buf);
	for (; n > 0 && *wr != next; n--)
		*wr = (*wr)->next;
	return -n;
}

static int post_recvs(const struct recv_queue *rq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad_wr)
{
	int err = 0;

	while (wr && !err)
		err = recv_some(rq, &wr);
	if (err)
		*bad_wr = wr;
	return err;
}

/**
 * rpost_post_send() - post to a send queue, ibv_post_send(3)
 * @qp: the queue pair
 * @wr: list of work requests
 * @bad_wr: set to the first one that was not posted if the call fails
 *
 * On any device the call copies inline data, which needs no registration.
 *
 * Return: 0, or an errno value: ENOMEM when the queue is full, EINVAL for a
 * queue pair that is not connected yet, too many entries, too much inline
 * data, a datagram without an address handle of the queue pair's protection
 * domain, or an opcode that its type does not have, EOPNOTSUPP for an opcode or
 * flag that the module does not have.
 */
int rpost_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr)
{
	int err = 0;

	while (wr && !err)
		err = send_some(qp, &wr);
	if (err)
		*bad_wr = wr;
	return err;
}

/**
 * rpost_post_recv() - post to a receive queue, ibv_post_recv(3)
 * @qp: the queue pair
 * @wr: list of work requests
 * @bad_wr: set to the first one that was not posted if the call fails
 *
 * Return: 0, or an errno value: ENOMEM when the queue is full, EINVAL for too
 * many entries.
 */
int rpost_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr)
{
	const struct recv_queue rq = {
		.context = qp->context,
		.handle = qp->handle,
		.max_sge = rpost_qp(qp)->cap.max_recv_sge,
		.cmd = RPOST_IOC_POST_RECV,
	};

	return post_recvs(&rq, wr, bad_wr);
}

/**
 * rpost_post_srq_recv() - post to a shared receive queue, ibv_post_srq_recv(3)
 * @srq: the shared receive queue
 * @wr: list of work requests
 * @bad_wr: set to the first one that was not posted if the call fails
 *
 * Return: 0, or an errno value: ENOMEM when the queue is full, EINVAL for too
 * many entries.
 */
int rpost_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	const struct recv_queue rq = {
		.context = srq->context,
		.handle = srq->handle,
		.max_sge = rpost_srq(srq)->max_sge,
		.cmd = RPOST_IOC_POST_SRQ_RECV,
	};

	return post_recvs(&rq, wr, bad_wr);
}
