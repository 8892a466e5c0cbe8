/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The API of librdma_post besides that of librdmacm and libibverbs. */
#ifndef RDMA_POST_H
#define RDMA_POST_H

#include <stddef.h>

#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * rdma_post_setup_ring() - post to an id's queue pair without system calls
 * @id: the id, with a queue pair
 * @bytes: size of the submission ring, or 0 for one that suits the queue pair;
 *         a work request takes 64 bytes and its entries or inline data
 *
 * The next successful post is a system call.  After it, posts go to the ring: a
 * kernel thread, the poller, posts from there to the send queue and polls the
 * device for its completions.  It sleeps when there is no work; a post that
 * finds it asleep wakes it by a system call.
 *
 * A post fails if the library finds an error in a work request.  If only the
 * module can find it, the work request completes with IBV_WC_LOC_QP_OP_ERR.  If
 * the send queue is full, work requests wait in the ring.  They complete if the
 * device is removed, and the completion queue needs room for them.
 *
 * With a ring, a datagram's address handle has to stay until it completes.
 *
 * RDMA_POST_SUBMISSION_RING=1 in a program's environment has the same effect
 * for all connected queue pairs, within the module's limit of pollers.
 *
 * Return: 0, or -1 with errno: EINVAL without a queue pair, for one that has a
 * ring, or for too many bytes; EMFILE at the limit of pollers of this user or
 * of all users; EOPNOTSUPP if the module has no rings; ENOMEM, ENODEV.
 */
int rdma_post_setup_ring(struct rdma_cm_id *id, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* RDMA_POST_H */
