/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Submission rings: work requests in shared memory.
 */
#ifndef RPOST_SRING_H
#define RPOST_SRING_H

#include "qp.h"

/* Bytes that a poller copies at once; the longest work request fits. */
#define RPOST_SRING_BLOCK	8192

/**
 * struct rpost_sring - the submission ring of a queue pair
 * @qp: the queue pair
 * @poller: serves the ring; NULL once stopped.  Written under the file's
 *          poller_lock
 * @link: in @poller->rings
 * @mem: its pages, which the program maps
 * @bytes: size of the data in @mem, a power of two
 * @head: bytes taken; the program can overwrite its copy
 * @flags: RPOST_SEND_RING_*; the program can overwrite its copy
 * @error: the negative errno for which nothing more is taken, or 0
 *
 * The program writes @tail, the kernel writes @head.  The kernel reads @tail
 * with one load per use.  It copies the work requests before @tail, checks the
 * copy, and acts only on the copy.  If the queue is full it drops the rest of
 * the copy, and copies and checks the same bytes again later.  A @tail more
 * than @bytes ahead, or an invalid size, ends this ring (@error) only.
 *
 * Barriers, kernel in sring.c and program in userlib/sring.c:
 *
 *   @tail (acquire), then bytes     pairs with  bytes, then @tail (release)
 *   bytes, then @head (release)     pairs with  @head (acquire), then bytes
 *   @flags, full barrier, @tail     pairs with  @tail, full barrier, @flags
 *   @error, full barrier, @tail     pairs with  @tail, full barrier, @error
 *
 * By the third pair, either the program sees that the poller sleeps, and wakes
 * it, or the poller sees the new @tail and stays awake.  By the last, either
 * the program sees the @error or the kernel flushes what the program wrote.
 *
 * The poller's lock guards @link, @head, @flags and @error until the ring is
 * stopped.
 */
struct rpost_sring {
	struct rpost_qp *qp;
	struct rpost_poller *poller;
	struct list_head link;
	struct rpost_cring mem;
	u32 bytes;
	u32 head;
	u32 flags;
	int error;
};

static inline struct rpost_send_ring *
rpost_sring_hdr(const struct rpost_sring *ring)
{
	return (struct rpost_send_ring *)ring->mem.hdr;
}

void rpost_sring_set_flags(struct rpost_sring *ring, u32 set, u32 clear);
bool rpost_sring_pending(const struct rpost_sring *ring);
bool rpost_sring_post(struct rpost_sring *ring, void *block);
int rpost_sring_mmap(struct rpost_file *file, struct vm_area_struct *vma);
void rpost_sring_discard(struct rpost_qp *qp);
void rpost_sring_stop(struct rpost_qp *qp);
void rpost_sring_flush(struct rpost_qp *qp);
void rpost_sring_free(struct rpost_qp *qp);

#endif /* RPOST_SRING_H */
