// SPDX-License-Identifier: GPL-2.0
/*
 * Submission rings: work requests that the program writes to shared memory.
 * See struct rpost_sring.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "device.h"
#include "poller.h"

#define RPOST_SRING_BATCH	16
#define RPOST_SRING_MIN		4096

static_assert(RPOST_MAX_SGE * sizeof(struct rpost_sge) <= RPOST_MAX_INLINE);
static_assert(sizeof(struct rpost_send_wr) + RPOST_MAX_INLINE <= RPOST_SRING_MIN);
static_assert(RPOST_SRING_MIN <= RPOST_SRING_BLOCK);

/**
 * rpost_sring_set_flags() - change the flags that the program reads
 * @ring: the ring; its poller's lock is held
 * @set: RPOST_SEND_RING_* to set
 * @clear: RPOST_SEND_RING_* to clear
 */
void rpost_sring_set_flags(struct rpost_sring *ring, u32 set, u32 clear)
{
	u32 flags = (ring->flags & ~clear) | set;

	if (flags == ring->flags)
		return;
	ring->flags = flags;
	WRITE_ONCE(rpost_sring_hdr(ring)->flags, flags);
}

static void rpost_sring_fail(struct rpost_sring *ring, int error)
{
	ring->error = error;
	WRITE_ONCE(rpost_sring_hdr(ring)->error, -error);
}

/* Let the program write over the next @bytes. */
static void rpost_sring_advance(struct rpost_sring *ring, u32 bytes)
{
	ring->head += bytes;
	/* They have been read. */
	smp_store_release(&rpost_sring_hdr(ring)->head, ring->head);
}

/* Copy the next @bytes, which the program has written. */
static void rpost_sring_read(const struct rpost_sring *ring, void *to, u32 bytes)
{
	const void *data = ring->mem.wcs;
	u32 at = ring->head & (ring->bytes - 1);
	u32 first = min(bytes, ring->bytes - at);

	memcpy(to, data + at, first);
	memcpy(to + first, data, bytes - first);
}

/*
 * Copy whole work requests out of the ring.  Return their number, or -EINVAL
 * for an invalid tail or size.
 */
static int rpost_sring_copy(struct rpost_sring *ring, void *block)
{
	u32 bytes, size, n = 0, used = 0;

	/* Pairs with the program's release of @tail. */
	bytes = smp_load_acquire(&rpost_sring_hdr(ring)->tail) - ring->head;
	if (bytes > ring->bytes || bytes % 8)
		return -EINVAL;
	bytes = min_t(u32, bytes, RPOST_SRING_BLOCK);
	rpost_sring_read(ring, block, bytes);

	while (n < RPOST_SRING_BATCH &&
	       bytes - used >= sizeof(struct rpost_send_wr)) {
		size = ((const struct rpost_send_wr *)(block + used))->size;
		if (size < sizeof(struct rpost_send_wr) || size % 8)
			break;
		if (size > bytes - used)
			break;
		used += size;
		n++;
	}
	/* Even the longest valid work request fits in the block. */
	return n || !bytes ? n : -EINVAL;
}

static bool rpost_sring_may_post(const struct rpost_qp *qp)
{
	return (!qp->id || READ_ONCE(qp->id->can_send)) &&
	       !READ_ONCE(qp->sq.closed);
}

/* Can a work request that failed with @ret be posted later? */
static bool rpost_sring_waits(const struct rpost_qp *qp, int ret)
{
	return ret == -ENOMEM || ret == -ENOBUFS || ret == -EAGAIN ||
	       !rpost_sring_may_post(qp);
}

/**
 * rpost_sring_pending() - are there work requests to take?
 * @ring: the ring; its poller's lock is held
 *
 * Return: true if so.
 */
bool rpost_sring_pending(const struct rpost_sring *ring)
{
	return !ring->error &&
	       READ_ONCE(rpost_sring_hdr(ring)->tail) != ring->head;
}

/**
 * rpost_sring_post() - post the work requests in a ring
 * @ring: the ring; its poller's lock is held
 * @block: RPOST_SRING_BLOCK bytes, to copy them to
 *
 * Return: true if any were taken.
 */
bool rpost_sring_post(struct rpost_sring *ring, void *block)
{
	const struct rpost_send_wr *wr;
	struct rpost_qp *qp = ring->qp;
	u32 posted = 0, bytes;
	int ret, n;

	if (!rpost_sring_pending(ring))
		return false;
	if (!rpost_sring_may_post(qp)) {
		rpost_sring_set_flags(ring, RPOST_SEND_RING_BLOCKED, 0);
		return false;
	}
	n = rpost_sring_copy(ring, block);
	if (n <= 0) {
		if (n)
			rpost_sring_fail(ring, n);
		return false;
	}
	ret = rpost_post_ring(qp, block, n, &posted);
	bytes = rpost_block_bytes(block, posted);
	if (ret && !rpost_sring_waits(qp, ret)) {
		wr = block + bytes;
		ret = rpost_post_refused(qp, wr->wr_id);
		if (!ret) {
			posted++;
			bytes += wr->size;
		} else if (!rpost_sring_waits(qp, ret)) {
			rpost_sring_fail(ring, ret);
		}
	}
	/* The program that sees the new head then sees the flag, too. */
	if (ret)
		rpost_sring_set_flags(ring, RPOST_SEND_RING_BLOCKED, 0);
	else
		rpost_sring_set_flags(ring, 0, RPOST_SEND_RING_BLOCKED);
	if (bytes)
		rpost_sring_advance(ring, bytes);
	return posted;
}

static struct rpost_sring *rpost_sring_alloc(struct rpost_qp *qp, u32 bytes)
{
	struct rpost_sring *ring = kzalloc(sizeof(*ring), RPOST_GFP);

	if (!ring)
		return NULL;
	ring->qp = qp;
	ring->bytes = bytes;
	INIT_LIST_HEAD(&ring->link);
	if (rpost_ring_alloc(&ring->mem, qp->obj.file, NULL, 1, bytes)) {
		kfree(ring);
		return NULL;
	}
	return ring;
}

/* Take a poller for @ring, and keep others from setting up a ring for @qp. */
static int rpost_sring_begin(struct rpost_qp *qp, struct rpost_sring *ring)
{
	struct rpost_file *file = qp->obj.file;
	struct rpost_poller *poller;
	int ret = 0;

	mutex_lock(&file->poller_lock);
	if (qp->sring || qp->sring_begins) {
		ret = -EINVAL;
		goto out;
	}
	poller = rpost_poller_get(file);
	if (IS_ERR(poller)) {
		ret = PTR_ERR(poller);
		goto out;
	}
	ring->poller = poller;
	qp->sring_begins = true;
out:
	mutex_unlock(&file->poller_lock);
	return ret;
}

static void rpost_sring_publish(struct rpost_sring *ring)
{
	struct rpost_qp *qp = ring->qp;

	mutex_lock(&qp->obj.file->poller_lock);
	rpost_poller_add(ring->poller, ring);
	qp->sring_begins = false;
	/* Pairs with the acquires of @qp->sring. */
	smp_store_release(&qp->sring, ring);
	mutex_unlock(&qp->obj.file->poller_lock);
}

static void rpost_sring_give_up(struct rpost_sring *ring)
{
	struct rpost_qp *qp = ring->qp;

	mutex_lock(&qp->obj.file->poller_lock);
	qp->sring_begins = false;
	rpost_poller_put(ring->poller);
	mutex_unlock(&qp->obj.file->poller_lock);
}

static int rpost_setup_send_ring(struct rpost_ucmd *ucmd, struct rpost_qp *qp)
{
	struct rpost_setup_send_ring *cmd = &ucmd->cmd.setup_send_ring;
	struct rpost_sring *ring;
	int ret;

	if (!rpost_device_alive(qp->obj.dev))
		return -ENODEV;
	/* The poller has none of the program's memory. */
	if (qp->qp_flags & RPOST_QP_ANY_MEMORY)
		return -EOPNOTSUPP;
	if (!cmd->bytes || cmd->bytes > RPOST_MAX_WR_BYTES)
		return -EINVAL;
	cmd->bytes = roundup_pow_of_two(max_t(u32, cmd->bytes, RPOST_SRING_MIN));
	ring = rpost_sring_alloc(qp, cmd->bytes);
	if (!ring)
		return -ENOMEM;
	ret = rpost_sring_begin(qp, ring);
	/* Sleep without poller_lock, which other queue pairs need to end. */
	if (ret == -EAGAIN) {
		schedule_timeout_killable(HZ);
		ret = rpost_sring_begin(qp, ring);
		if (ret == -EAGAIN)
			ret = -EMFILE;
	}
	if (ret)
		goto err_free;

	cmd->mmap_offset = (u64)qp->obj.handle << PAGE_SHIFT;
	cmd->mmap_size = ring->mem.mem->num_pages << PAGE_SHIFT;
	cmd->data_offset = sizeof(struct rpost_send_ring);
	ret = rpost_respond(ucmd);
	if (ret)
		goto err_begun;
	ret = rpost_enter_object(ucmd, cmd->qp, RPOST_OBJ_QP);
	/* A removal meanwhile has not found the ring, so it has not stopped it. */
	if (!ret && !rpost_device_alive(qp->obj.dev))
		ret = -ENODEV;
	if (ret)
		goto err_begun;
	rpost_sring_publish(ring);
	return 0;

err_begun:
	rpost_sring_give_up(ring);
err_free:
	rpost_ring_free(&ring->mem);
	kfree(ring);
	return ret;
}

/**
 * rpost_setup_send_ring_ioctl() - give a queue pair a submission ring
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_setup_send_ring_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_obj *obj;
	u32 qp = ucmd->cmd.setup_send_ring.qp;
	int ret;

	/* Answering may sleep; until then the program cannot destroy it. */
	obj = rpost_enter_use(ucmd, qp, RPOST_OBJ_QP);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	ret = rpost_setup_send_ring(ucmd,
				    container_of(obj, struct rpost_qp, obj));
	rpost_obj_unuse(obj);
	return ret;
}

/**
 * rpost_enter_send_ring_ioctl() - wake the poller of a submission ring
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_enter_send_ring_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_enter_send_ring *cmd = &ucmd->cmd.enter_send_ring;
	struct rpost_sring *ring;
	struct rpost_obj *obj;
	int ret = 0;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	obj = rpost_enter_get(ucmd, cmd->qp, RPOST_OBJ_QP);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	/* Pairs with the release in rpost_sring_publish(). */
	ring = smp_load_acquire(&container_of(obj, struct rpost_qp, obj)->sring);
	if (!ring) {
		ret = -EINVAL;
	} else if (!ring->poller) {
		/* Removal or a DESTROY that the device refused has stopped it. */
		ret = -ENODEV;
	} else {
		rpost_poller_wake(ring->poller);
	}
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_sring_mmap() - map the submission ring of a queue pair
 * @file: the open file
 * @vma: the mapping; its offset in pages is the handle of the queue pair
 *
 * Return: 0 or a negative errno.
 */
int rpost_sring_mmap(struct rpost_file *file, struct vm_area_struct *vma)
{
	struct rpost_sring *ring;
	struct rpost_obj *obj;
	int ret = -ENOENT;

	if (vma->vm_pgoff > U32_MAX)
		return -EINVAL;
	obj = rpost_obj_get(file, vma->vm_pgoff, RPOST_OBJ_QP);
	if (!obj)
		return -ENOENT;
	/* Pairs with the release in rpost_sring_publish(). */
	ring = smp_load_acquire(&container_of(obj, struct rpost_qp, obj)->sring);
	if (ring)
		ret = rpost_ring_mmap(&ring->mem, vma);
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_sring_discard() - drop the work requests in a queue pair's ring
 * @qp: the queue pair, locked, with its send queue closed
 */
void rpost_sring_discard(struct rpost_qp *qp)
{
	struct rpost_file *file = qp->obj.file;
	struct rpost_sring *ring;
	u32 bytes;

	mutex_lock(&file->poller_lock);
	ring = qp->sring;
	if (ring && ring->poller) {
		mutex_lock(&ring->poller->lock);
		bytes = READ_ONCE(rpost_sring_hdr(ring)->tail) - ring->head;
		if (bytes <= ring->bytes && bytes % 8 == 0)
			rpost_sring_advance(ring, bytes);
		rpost_sring_set_flags(ring, 0, RPOST_SEND_RING_BLOCKED);
		mutex_unlock(&ring->poller->lock);
	}
	mutex_unlock(&file->poller_lock);
}

/**
 * rpost_sring_stop() - have the poller serve a queue pair's ring no longer
 * @qp: the queue pair, not locked
 *
 * It does nothing the second time, or without a ring.  At the end of the queue pair
 * it tells the program.
 */
void rpost_sring_stop(struct rpost_qp *qp)
{
	struct rpost_file *file = qp->obj.file;
	struct rpost_poller *poller;
	struct rpost_sring *ring;

	mutex_lock(&file->poller_lock);
	ring = qp->sring;
	poller = ring ? ring->poller : NULL;
	if (poller) {
		rpost_poller_remove(poller, ring);
		ring->poller = NULL;
		rpost_poller_put(poller);
	}
	/* It may still be mapped, or the device refuses to destroy the queue pair. */
	if (ring && qp->obj.ending)
		rpost_sring_fail(ring, -ENODEV);
	mutex_unlock(&file->poller_lock);
}

/* Copy the next work request without its data, or return false. */
static bool rpost_sring_next(struct rpost_sring *ring, struct rpost_send_wr *wr)
{
	u32 bytes;

	/* Pairs with the program's release of @tail. */
	bytes = smp_load_acquire(&rpost_sring_hdr(ring)->tail) - ring->head;
	if (bytes > ring->bytes || bytes < sizeof(*wr))
		return false;
	rpost_sring_read(ring, wr, sizeof(*wr));
	return wr->size >= sizeof(*wr) && wr->size <= bytes &&
	       wr->size % 8 == 0;
}

/* Flush @ring->bytes at most, as the program may still be writing. */
static void rpost_sring_flush_some(struct rpost_sring *ring)
{
	struct rpost_wc wc = {
		.status = RPOST_WC_WR_FLUSH_ERR,
		.opcode = RPOST_WC_SEND,
		.qp_num = ring->qp->qp_num,
	};
	struct rpost_send_wr wr;
	u32 bytes = 0;

	while (bytes < ring->bytes && rpost_sring_next(ring, &wr)) {
		wc.wr_id = wr.wr_id;
		rpost_cq_add(ring->qp->send_cq, &wc);
		bytes += wr.size;
		rpost_sring_advance(ring, wr.size);
		cond_resched();
	}
}

/**
 * rpost_sring_flush() - flush the work requests in a ring at removal
 * @qp: the queue pair, locked, without its @ib_qp and with its ring stopped
 *
 * The program finds @error set.  Work requests that it wrote before it could
 * see that are flushed, too.
 */
void rpost_sring_flush(struct rpost_qp *qp)
{
	struct rpost_sring *ring = qp->sring;

	if (!ring || ring->error)
		return;
	rpost_sring_flush_some(ring);
	rpost_sring_fail(ring, -ENODEV);
	/* Pairs with the program's barrier between @tail and @error. */
	smp_mb();
	rpost_sring_flush_some(ring);
}

/**
 * rpost_sring_free() - free the submission ring of a queue pair
 * @qp: the queue pair, shut down
 */
void rpost_sring_free(struct rpost_qp *qp)
{
	if (!qp->sring)
		return;
	rpost_ring_free(&qp->sring->mem);
	kfree(qp->sring);
}
