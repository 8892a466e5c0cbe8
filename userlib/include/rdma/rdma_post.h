/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The API of librdma_post besides that of librdmacm and libibverbs. */
#ifndef RDMA_POST_H
#define RDMA_POST_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_cma.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * RDMA_POST_QP_ANY_MEMORY - a queue pair takes memory that is not registered
 *
 * It is one of the create_flags of struct ibv_qp_init_attr_ex, for
 * ibv_create_qp_ex() and rdma_create_qp_ex(), with
 * IBV_QP_INIT_ATTR_CREATE_FLAGS; EOPNOTSUPP if the module or another library
 * does not have it.  In all entries of the queue pair's work requests the lkey 0
 * then stands for memory of the process that posts, as do calls with the mr
 * NULL: rdma_post_send(), rdma_post_write(), rdma_post_ud_send(),
 * rdma_post_recv_any() and rdma_post_read_any().
 *
 * The data of a send or write without other keys that is not longer than the
 * queue pair's inline data is copied by the call.  Other memory is pinned until
 * the work request completes, and must stay until then.  A post fails with EFAULT
 * if there is no memory, or if the process may not read it, or not write it for a
 * receive, read or atomic operation; EOVERFLOW for a range that wraps; ENOBUFS at
 * the limit of locked memory or without memory.  A shared receive queue does not
 * take such memory.
 *
 * RDMA_POST_ANY_MEMORY=1 in a program's environment has the same effect for all
 * of its queue pairs.
 */
#define RDMA_POST_QP_ANY_MEMORY	(1u << 31)

/**
 * rdma_post_recv_any() - rdma_post_recv() into memory that is not registered
 * @id: the id, with a queue pair with RDMA_POST_QP_ANY_MEMORY
 * @context: the wr_id of the completion
 * @addr: first byte
 * @length: bytes
 *
 * Return: 0, or -1 with errno as described there; ENOMEM if the queue is full.
 */
int rdma_post_recv_any(struct rdma_cm_id *id, void *context, void *addr,
		       size_t length);

/**
 * rdma_post_read_any() - rdma_post_read() into memory that is not registered
 * @id: the id, with a queue pair with RDMA_POST_QP_ANY_MEMORY
 * @context: the wr_id of the completion
 * @addr: first byte
 * @length: bytes
 * @flags: IBV_SEND_*
 * @remote_addr: the peer's memory
 * @rkey: its key
 *
 * Return: 0, or -1 with errno as described there; ENOMEM if the queue is full.
 */
int rdma_post_read_any(struct rdma_cm_id *id, void *context, void *addr,
		       size_t length, int flags, uint64_t remote_addr,
		       uint32_t rkey);

/* <rdma/rdma_post_abi.h> describes it: rates, bounds, peers, operations. */
struct rpost_policy_rules;

/**
 * rdma_post_open() - open the device anew, and restrict what can be done with it
 * @rules: what is allowed; or NULL for all that this process may do
 *
 * A server can so make a descriptor for each of its workers. The rules hold for whoever
 * uses the descriptor, and nobody can widen them; the policies of the cgroup in which this
 * process is hold as well. What a peer does to this side's memory is not counted: either
 * give peers no rights (RPOST_FORBID_REMOTE), or bound them at their side.
 *
 * Return: a descriptor, which programs do not inherit (FD_CLOEXEC), and which the caller
 * closes; or -1 with errno: as open(2); EINVAL for rules that make no sense; EOPNOTSUPP
 * for unknown restrictions, or if the module has none; EFAULT if @rules->peers does not
 * name @rules->num_peers peers; ENOMEM.
 */
int rdma_post_open(const struct rpost_policy_rules *rules);

/**
 * rdma_post_use() - use a descriptor of the device in place of an own one
 * @fd: a descriptor of rdma_post_open(), maybe of another process; it must stay open
 *
 * Event channels and devices that this process, and the children that it forks, open from
 * now on belong to the descriptor. All who use it share its bounds, and what one of them
 * leaves behind lives until the last one has closed it. A program that is started with
 * RDMA_POST_FD in its environment uses that descriptor from the beginning.
 *
 * Return: 0, or -1 with errno: EBUSY if the process has used the device already; EBADF or
 * EOPNOTSUPP if @fd is no such descriptor; EPROTONOSUPPORT for a module of another version;
 * ENOMEM.
 */
int rdma_post_use(int fd);

#ifdef __cplusplus
}
#endif

#endif /* RDMA_POST_H */
