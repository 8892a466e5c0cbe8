// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Posts into memory that is not registered, for which the stock headers have no
 * call: their rdma_post_recv() and rdma_post_read() need a region.
 */
#include <rdma/rdma_post.h>

#include "core/internal.h"

/* Makes an entry of a range; returns 0 or an errno value. */
static int entry_of(struct ibv_sge *sge, void *addr, size_t length)
{
	if (length > UINT32_MAX)
		return EINVAL;
	*sge = (struct ibv_sge) {
		.addr = (uintptr_t)addr,
		.length = (uint32_t)length,
	};
	return 0;
}

/* See <rdma/rdma_post.h>. */
RPOST_API int rdma_post_recv_any(struct rdma_cm_id *id, void *context,
				 void *addr, size_t length)
{
	struct ibv_sge sge;
	int err = entry_of(&sge, addr, length);

	return err ? rpost_fail(err) : rdma_post_recvv(id, context, &sge, 1);
}

/* See <rdma/rdma_post.h>. */
RPOST_API int rdma_post_read_any(struct rdma_cm_id *id, void *context,
				 void *addr, size_t length, int flags,
				 uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_sge sge;
	int err = entry_of(&sge, addr, length);

	return err ? rpost_fail(err) :
		     rdma_post_readv(id, context, &sge, 1, flags, remote_addr,
				     rkey);
}
