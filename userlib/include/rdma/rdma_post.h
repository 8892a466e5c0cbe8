/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What librdma_post has beside librdmacm's and libibverbs' API.
 */
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
 * @bytes: of work requests that the ring has room for, or 0 for as many as suit
 *         the queue pair; each takes 64, and its entries or inline data
 *
 * From the first post on that succeeds after this, a thread of the kernel posts to
 * the send queue and fetches its completions, as long as there is something to do; a
 * post that finds it asleep wakes it by a system call.  What is wrong with a work
 * request is told by the post as far as the library can see it; otherwise the work
 * request completes with IBV_WC_LOC_QP_OP_ERR.  A post may be accepted although the
 * send queue is full: it waits in the ring.  If the device is removed then, it
 * completes, too, for which the completion queue has to have room.
 *
 * With a ring the address handle of a datagram has to stay until that completes.
 *
 * Programs that cannot be changed get the same for all connected queue pairs from
 * RDMA_POST_SUBMISSION_RING=1 in their environment, as far as there are threads.
 *
 * Return: 0, or -1 with errno: EINVAL without a queue pair, or for one that has a
 * ring, or too many bytes; EMFILE if there are as many such threads as this user,
 * or all, may have; EOPNOTSUPP if the module has no rings; ENOMEM, ENODEV.
 */
int rdma_post_setup_ring(struct rdma_cm_id *id, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* RDMA_POST_H */
