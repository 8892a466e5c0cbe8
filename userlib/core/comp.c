// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reading the shared completion ring.
 *
 * Barriers, program here and kernel in kmod/base/ring.c:
 *
 *   @tail (acquire), then entry      pairs with  entry, then @tail (release)
 *   @flags (acquire), then @tail     pairs with  @tail, then @flags (release)
 *   entry, then @head (release)      pairs with  @head (acquire), then entry
 *   @arm, full barrier, @flags       pairs with  @flags, full barrier, @arm
 *
 * By the second pair, a program that reads RPOST_RING_OVERRUN finds all entries
 * before the loss, and one that finds RPOST_RING_NEED_POLL clear finds all that
 * were written before the device was armed.  By the last, either the interrupt
 * of a later completion sees the @arm, or the program sees RPOST_RING_NEED_POLL,
 * and requests the event by system call.  So a program that polls once more after
 * ibv_req_notify_cq() and finds nothing can sleep.
 */
#include <string.h>

#include "core/internal.h"

/*
 * struct rpost_wc begins with the members of struct ibv_wc, at the same
 * offsets.  After the last of them struct ibv_wc has only padding.
 */
#define SAME_PLACE(member) \
	static_assert(offsetof(struct ibv_wc, member) == \
		      offsetof(struct rpost_wc, member) && \
		      sizeof(((struct ibv_wc *)0)->member) == \
		      sizeof(((struct rpost_wc *)0)->member), #member)

SAME_PLACE(wr_id);
SAME_PLACE(status);
SAME_PLACE(opcode);
SAME_PLACE(vendor_err);
SAME_PLACE(byte_len);
SAME_PLACE(imm_data);
SAME_PLACE(qp_num);
SAME_PLACE(src_qp);
SAME_PLACE(wc_flags);
SAME_PLACE(pkey_index);
SAME_PLACE(slid);
SAME_PLACE(sl);
SAME_PLACE(dlid_path_bits);
static_assert(sizeof(struct ibv_wc) <= RPOST_WC_SMALL_SIZE &&
	      offsetof(struct ibv_wc, dlid_path_bits) + 8 >
	      sizeof(struct ibv_wc), "no more than that");

static void copy_wc(struct ibv_wc *dst, const struct rpost_wc *src)
{
	memcpy(dst, src, sizeof(*dst));
}

/* Copies entries from the ring.  Reads the ring's @flags before its tail. */
static int consume(struct rpost_cq *cq, int num_entries, struct ibv_wc *wc,
		   uint32_t *flags)
{
	bool alone = rpost_is_alone();
	uint32_t head, tail;
	int n = 0;

	if (!alone)
		rpost_cq_lock(cq);
	*flags = rpost_ring_flags(cq);
	head = cq->head;
	tail = __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE);
	while (n < num_entries && head != tail)
		copy_wc(&wc[n++], rpost_cq_entry(cq, head++));
	if (n) {
		cq->head = head;
		__atomic_store_n(&cq->ring->head, head, __ATOMIC_RELEASE);
	}
	if (!alone)
		rpost_cq_unlock(cq);
	return n;
}

/*
 * The kernel does not write the entries between @head and @tail, so the library
 * may move them: the entries of other queue pairs move up to the tail.
 */
void rpost_cq_discard(struct ibv_cq *ibv_cq, uint32_t qp_num)
{
	struct rpost_cq *cq = rpost_cq(ibv_cq);
	uint32_t from, to;

	rpost_cq_lock(cq);
	from = __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE);
	to = from;
	while (from != cq->head) {
		from--;
		if (rpost_cq_entry(cq, from)->qp_num == qp_num)
			continue;
		to--;
		if (to != from)
			memcpy(rpost_cq_entry(cq, to), rpost_cq_entry(cq, from),
			       RPOST_WC_SMALL_SIZE);
	}
	if (cq->head != to) {
		cq->head = to;
		__atomic_store_n(&cq->ring->head, to, __ATOMIC_RELEASE);
	}
	rpost_cq_unlock(cq);
}

/* Has the kernel poll the device.  Returns how many entries are new, or a negative errno value. */
int rpost_cq_fetch(struct rpost_cq *cq)
{
	struct rpost_poll_cq cmd = { .size = sizeof(cmd), .handle = cq->ibv.handle };

	return rpost_call(cq->ibv.context->cmd_fd, RPOST_IOC_POLL_CQ, &cmd);
}

/**
 * rpost_poll_cq() - take completions from the ring, ibv_poll_cq(3)
 * @ibv_cq: the completion queue
 * @num_entries: room in @wc
 * @wc: filled with completions, oldest first
 *
 * Makes a system call only if the ring has fewer than @num_entries and says
 * RPOST_RING_NEED_POLL.
 *
 * Return: the number of completions in @wc; fewer than @num_entries if the ring
 * has no more, after one system call if that is needed; or a negative errno
 * value: -EOVERFLOW if the ring has been overrun and all its entries are
 * consumed.
 */
int rpost_poll_cq(struct ibv_cq *ibv_cq, int num_entries, struct ibv_wc *wc)
{
	struct rpost_cq *cq = rpost_cq(ibv_cq);
	uint32_t flags;
	int ret, n;

	n = consume(cq, num_entries, wc, &flags);
	if (n >= num_entries)
		return n;

	if (cq->lost)
		return n ? n : -cq->lost;
	if (flags & RPOST_RING_NEED_POLL) {
		ret = rpost_cq_fetch(cq);
		if (ret < 0)
			return n ? n : ret;
		n += consume(cq, num_entries - n, wc + n, &flags);
	}
	return !n && (flags & RPOST_RING_OVERRUN) ? -EOVERFLOW : n;
}

static int arm_by_call(struct rpost_cq *cq, uint32_t flags)
{
	struct rpost_arm_cq cmd = { .flags = flags, .handle = cq->ibv.handle };

	return rpost_ioctl(cq->ibv.context->cmd_fd, RPOST_IOC_ARM_CQ, &cmd);
}

/*
 * Requests an event in the ring.  Returns false if the ring says
 * RPOST_RING_NEED_POLL before or after that: the device may not be armed.
 */
static bool arm_ring(struct rpost_cq *cq)
{
	if (rpost_ring_flags(cq) & RPOST_RING_NEED_POLL)
		return false;
	/* A higher number is a new request: it differs from @fired. */
	__atomic_store_n(&cq->ring->arm, ++cq->arm, __ATOMIC_RELAXED);
	/* Pairs with smp_mb() in rpost_ring_take_arm(). */
	atomic_thread_fence(memory_order_seq_cst);
	return !(rpost_ring_flags(cq) & RPOST_RING_NEED_POLL);
}

/**
 * rpost_req_notify_cq() - request an event, ibv_req_notify_cq(3)
 * @ibv_cq: the completion queue
 * @solicited_only: nonzero to get the event only with the next receive of a
 *                  message with the solicited flag, or with an error
 *
 * Return: 0 or an errno value.
 */
int rpost_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct rpost_cq *cq = rpost_cq(ibv_cq);
	int err = 0;

	pthread_mutex_lock(&cq->arm_lock);
	if (solicited_only)
		err = arm_by_call(cq, RPOST_ARM_SOLICITED);
	else if (!arm_ring(cq))
		err = arm_by_call(cq, 0);
	pthread_mutex_unlock(&cq->arm_lock);
	return err;
}
