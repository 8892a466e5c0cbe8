// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Submission rings, by which posts need no system call.  rdma_post_abi.h
 * describes the indices and barriers at struct rpost_send_ring.
 *
 * The first post of a queue pair is a system call, which fails unless the queue
 * pair takes sends.  Later posts use the ring, until the queue pair is reset.
 */
/* mmap() needs an offset of 64 bits, in 32-bit programs as well. */
#define _FILE_OFFSET_BITS 64

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/rdma_post.h>

#include "internal.h"

#define WR_BYTES	128	/* with up to four entries */
#define MAX_TAKEN	16	/* RPOST_SRING_BATCH of the module */
#define MIN_BYTES	4096

#define KNOWN_FLAGS \
	(RPOST_SEND_FENCE | RPOST_SEND_SIGNALED | RPOST_SEND_SOLICITED | \
	 RPOST_SEND_INLINE)

/* Protected by the queue pair's sring_lock. */
struct rpost_sring {
	struct rpost_send_ring *hdr;
	char *data;
	uint32_t bytes;			/* a power of two */
	uint32_t tail;
	uint32_t max_sge_rd;
	size_t map_size;
};

/* ------------------------------------------------------------- posting */

static bool is_one_word(const struct rpost_send_wr *wr)
{
	const struct rpost_sge *sge = (const void *)(wr + 1);
	uint32_t i, used = 0;
	uint64_t bytes = 0;

	for (i = 0; i < wr->num_sge; i++) {
		used += !!sge[i].length;
		bytes += sge[i].length;
	}
	return used == 1 && bytes == sizeof(uint64_t) &&
	       !(wr->remote_addr % sizeof(uint64_t));
}

/* Returns the error that the module would return, as far as is known here. */
static int check(const struct rpost_qp *qp, const struct rpost_sring *ring,
		 const struct rpost_send_wr *wr)
{
	bool is_inline = wr->send_flags & RPOST_SEND_INLINE;
	enum ibv_qp_type type = qp->ibv.qp_type;

	if (wr->send_flags & ~KNOWN_FLAGS)
		return EOPNOTSUPP;
	switch (wr->opcode) {
	case RPOST_WR_SEND:
	case RPOST_WR_SEND_WITH_IMM:
		return 0;
	case RPOST_WR_RDMA_WRITE:
	case RPOST_WR_RDMA_WRITE_WITH_IMM:
		return type == IBV_QPT_RC || type == IBV_QPT_UC ? 0 : EINVAL;
	case RPOST_WR_SEND_WITH_INV:
		return type == IBV_QPT_RC ? 0 : EINVAL;
	case RPOST_WR_RDMA_READ:
		return type == IBV_QPT_RC && !is_inline &&
		       wr->num_sge <= ring->max_sge_rd ? 0 : EINVAL;
	case RPOST_WR_ATOMIC_CMP_AND_SWP:
	case RPOST_WR_ATOMIC_FETCH_AND_ADD:
		return type == IBV_QPT_RC && !is_inline && is_one_word(wr) ?
		       0 : EINVAL;
	default:
		return EOPNOTSUPP;
	}
}

static void wake(const struct rpost_qp *qp)
{
	struct rpost_enter_send_ring cmd = {
		.size = sizeof(cmd),
		.qp = qp->ibv.handle,
	};

	/* If it fails the device has gone, and its removal flushes the ring. */
	rpost_ioctl(qp->ibv.context->cmd_fd, RPOST_IOC_ENTER_SEND_RING, &cmd);
}

/* Writes @bytes of @from to the ring.  Returns 0 or an errno value. */
static int put(const struct rpost_qp *qp, struct rpost_sring *ring,
	       const char *from, uint32_t bytes)
{
	uint32_t at = ring->tail & (ring->bytes - 1);
	uint32_t first = ring->bytes - at < bytes ? ring->bytes - at : bytes;
	uint32_t head, tail = ring->tail + bytes;
	int err;

	memcpy(ring->data + at, from, first);
	memcpy(ring->data, from + first, bytes - first);
	__atomic_store_n(&ring->hdr->tail, tail, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	err = (int)__atomic_load_n(&ring->hdr->error, __ATOMIC_ACQUIRE);
	if (err) {
		/* The call waits while a removal flushes the ring. */
		wake(qp);
		head = __atomic_load_n(&ring->hdr->head, __ATOMIC_ACQUIRE);
		if ((int32_t)(head - tail) < 0)
			return err;
	}
	ring->tail = tail;
	if (__atomic_load_n(&ring->hdr->flags, __ATOMIC_RELAXED) &
	    RPOST_SEND_RING_NEED_WAKEUP)
		wake(qp);
	return 0;
}

/*
 * Writes as many valid work requests from *@pos as fit into the ring, and moves
 * *@pos and *@posted behind them.
 */
static int put_some(const struct rpost_qp *qp, struct rpost_sring *ring,
		    const struct rpost_block *block, const char **pos,
		    uint32_t *posted)
{
	const struct rpost_send_wr *wr = (const void *)*pos;
	uint32_t flags, room, n = 0, used = 0;
	int err, bad = 0;

	err = (int)__atomic_load_n(&ring->hdr->error, __ATOMIC_ACQUIRE);
	if (err)
		return err;
	/* In this order: the poller sets BLOCKED before it moves the head. */
	flags = __atomic_load_n(&ring->hdr->flags, __ATOMIC_ACQUIRE);
	room = ring->bytes - (ring->tail - __atomic_load_n(&ring->hdr->head,
							   __ATOMIC_ACQUIRE));
	while (*posted + n < block->count && room - used >= wr->size) {
		bad = check(qp, ring, wr);
		if (bad)
			break;
		used += wr->size;
		n++;
		wr = (const void *)(*pos + used);
	}
	if (n) {
		err = put(qp, ring, *pos, used);
		if (err)
			return err;
		*pos += used;
		*posted += n;
		return bad;
	}
	if (bad)
		return bad;
	if (flags & RPOST_SEND_RING_NEED_WAKEUP)
		wake(qp);
	if (flags & RPOST_SEND_RING_BLOCKED)
		return ENOMEM;
	/* The poller is about to take some. */
	sched_yield();
	return 0;
}

static int post_to_ring(struct rpost_qp *qp, struct rpost_sring *ring,
			const struct rpost_block *block, uint32_t *posted)
{
	const char *pos = block->buf;
	int err = 0;

	*posted = 0;
	pthread_mutex_lock(&qp->sring_lock);
	while (!err && *posted < block->count)
		err = put_some(qp, ring, block, &pos, posted);
	pthread_mutex_unlock(&qp->sring_lock);
	return err;
}

/* ------------------------------------------------- beginning and end */

static int map_ring(struct rpost_qp *qp, struct rpost_sring *ring,
		    const struct rpost_setup_send_ring *cmd)
{
	void *map = mmap(NULL, cmd->mmap_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED, qp->ibv.context->cmd_fd, cmd->mmap_offset);

	if (map == MAP_FAILED)
		return errno;
	madvise(map, cmd->mmap_size, MADV_DONTFORK);
	ring->hdr = map;
	ring->data = (char *)map + cmd->data_offset;
	ring->bytes = cmd->bytes;
	ring->map_size = cmd->mmap_size;
	return 0;
}

/*
 * Room for a full send queue, and for a batch that the poller has posted but
 * whose room it has not given back yet: the program may already have polled
 * completions of the batch, and post as many work requests again.
 */
static uint32_t suitable_bytes(const struct rpost_qp *qp)
{
	uint32_t max = rpost_ctx(qp->ibv.context)->file->max_wr_bytes;
	uint64_t bytes = ((uint64_t)qp->cap.max_send_wr + MAX_TAKEN) * WR_BYTES;

	if (bytes < MIN_BYTES)
		bytes = MIN_BYTES;
	return bytes < max ? (uint32_t)bytes : max;
}

/* The caller holds sring_lock.  Returns 0 or an errno value. */
static int make_ring(struct rpost_qp *qp, uint32_t bytes)
{
	struct rpost_ctx *ctx = rpost_ctx(qp->ibv.context);
	struct rpost_setup_send_ring cmd = {
		.size = sizeof(cmd),
		.qp = qp->ibv.handle,
		.bytes = bytes ? bytes : suitable_bytes(qp),
	};
	struct rpost_query_device device;
	struct rpost_sring *ring;
	int err;

	if (!(ctx->file->features & RPOST_FEATURE_SEND_RING) || qp->any_memory)
		return EOPNOTSUPP;
	if (qp->sring || qp->orphan)
		return EINVAL;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	err = rpost_query_device(ctx->verbs.context.cmd_fd, ctx->dev->num, &device);
	if (!err)
		err = rpost_ioctl(qp->ibv.context->cmd_fd,
				  RPOST_IOC_SETUP_SEND_RING, &cmd);
	if (!err)
		err = map_ring(qp, ring, &cmd);
	if (err) {
		free(ring);
		return err;
	}
	ring->max_sge_rd = qp->cap.max_send_sge < device.max_sge_rd ?
			   qp->cap.max_send_sge : device.max_sge_rd;
	qp->sring = ring;
	return 0;
}

/*
 * Makes posts use the ring, for the queue pair takes sends.  It makes no ring
 * for datagrams unasked: programs may destroy their address handles once they
 * are posted.
 */
static void use_ring(struct rpost_qp *qp)
{
	pthread_mutex_lock(&qp->sring_lock);
	if (!qp->sring && !qp->sring_tried && qp->ibv.qp_type != IBV_QPT_UD)
		make_ring(qp, 0);
	qp->sring_tried = true;
	if (qp->sring)
		__atomic_store_n(&qp->sring_on, qp->sring, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&qp->sring_lock);
}

int rpost_post_sends(struct rpost_qp *qp, const struct rpost_block *block,
		     uint32_t *posted)
{
	struct rpost_sring *ring = __atomic_load_n(&qp->sring_on,
						   __ATOMIC_ACQUIRE);
	int err;

	if (ring) {
		rpost_hurry();
		return post_to_ring(qp, ring, block, posted);
	}
	if (__atomic_load_n(&rpost_recvs_wait, __ATOMIC_RELAXED))
		err = rpost_submit_sends(qp, block, posted);
	else
		err = rpost_post_block(qp->ibv.context, qp->ibv.handle,
				       RPOST_IOC_POST_SEND, block, posted, NULL);
	if (!err && (qp->sring || (!qp->sring_tried &&
				   rpost_ctx(qp->ibv.context)->file->use_rings)))
		use_ring(qp);
	return err;
}

void rpost_sring_init(struct rpost_qp *qp)
{
	pthread_mutex_init(&qp->sring_lock, NULL);
}

void rpost_sring_pause(struct rpost_qp *qp)
{
	pthread_mutex_lock(&qp->sring_lock);
	__atomic_store_n(&qp->sring_on, NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&qp->sring_lock);
}

void rpost_sring_end(struct rpost_qp *qp)
{
	__atomic_store_n(&qp->sring_on, NULL, __ATOMIC_RELEASE);
	if (!qp->sring)
		return;
	munmap(qp->sring->hdr, qp->sring->map_size);
	free(qp->sring);
	qp->sring = NULL;
}

/* See <rdma/rdma_post.h>. */
RPOST_API int rdma_post_setup_ring(struct rdma_cm_id *id, size_t bytes)
{
	struct rpost_qp *qp;
	int err;

	if (!id->qp || bytes > UINT32_MAX)
		return rpost_fail(EINVAL);
	qp = rpost_qp(id->qp);
	pthread_mutex_lock(&qp->sring_lock);
	err = make_ring(qp, (uint32_t)bytes);
	pthread_mutex_unlock(&qp->sring_lock);
	return rpost_fail(err);
}
