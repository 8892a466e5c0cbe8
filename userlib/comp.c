// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reading the shared completion ring.
 *
 * Barriers, program here and kernel in kmod/ring.c:
 *
 *   @tail (acquire), then entry      pairs with  entry, then @tail (release)
 *   @flags (acquire), then @tail     pairs with  @tail, then @flags (release)
 *   entry, then @head (release)      pairs with  @head (acquire), then entry
 *   @arm, full barrier, @tail        pairs with  @tail, full barrier, @arm
 *   @arm, full barrier, @flags       pairs with  @flags, full barrier, @arm
 *
 * (@arm is written in notify.c.)
 * By the second, who is told of a loss finds all that came before it; by the
 * fourth, either the kernel sees the arm or the program the new tail: a
 * program that polls once more after ibv_req_notify_cq() and finds nothing can
 * sleep.  By the last, either the kernel goes on looking at the arm or the
 * program sees that it does not.
 */
#include <string.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define HAVE_SINGLE_THREADED 1
#endif

#include "internal.h"

/* A completion begins as the program's does, which ends with padding. */
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

/*
 * Who is alone needs no lock: no other thread begins before it is given back.
 * False if the C library cannot tell.
 */
static bool is_alone(void)
{
#if HAVE_SINGLE_THREADED
	return __libc_single_threaded;
#else
	return false;
#endif
}

/* Also tells the ring's flags, as they were before the ring was looked at. */
static int consume(struct rpost_cq *cq, int num_entries, struct ibv_wc *wc,
		   uint32_t *flags)
{
	bool alone = is_alone();
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
 * The program has what lies between head and tail: the kernel has written it
 * and does not look at it again.  What stays moves up to the tail.
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

/* Has the kernel fetch completions from the device.  0 or an errno value. */
int rpost_cq_fetch(struct rpost_cq *cq)
{
	struct rpost_poll_cq cmd = {
		.size = sizeof(cmd),
		.handle = cq->ibv.handle,
	};

	return rpost_ioctl(cq->ibv.context->cmd_fd, RPOST_IOC_POLL_CQ, &cmd);
}

/**
 * rpost_poll_cq() - what ibv_poll_cq(3) calls
 * @ibv_cq: the completion queue
 * @num_entries: room in @wc
 * @wc: filled with completions, oldest first
 *
 * Makes a system call only if the ring is empty and the kernel asks for it.
 *
 * Return: how many completions there are in @wc, or a negative errno value:
 * -EOVERFLOW once the queue has been overrun and what it held is consumed.
 */
int rpost_poll_cq(struct ibv_cq *ibv_cq, int num_entries, struct ibv_wc *wc)
{
	struct rpost_cq *cq = rpost_cq(ibv_cq);
	uint32_t flags;
	int err, n;

	n = consume(cq, num_entries, wc, &flags);
	if (n || num_entries <= 0)
		return n;

	if (cq->lost)
		return -cq->lost;
	if (flags & RPOST_RING_NEED_POLL) {
		err = rpost_cq_fetch(cq);
		if (err)
			return -err;
		n = consume(cq, num_entries, wc, &flags);
	}
	return !n && (flags & RPOST_RING_OVERRUN) ? -EOVERFLOW : n;
}
