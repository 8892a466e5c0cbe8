// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What librdmacm and libibverbs export and is not implemented, because kernel
 * verbs cannot do it or the module does not.
 *
 * Programs are mostly linked so that every symbol they mention must exist.
 * Each function here fails as its manual page says, with EOPNOTSUPP, and does
 * nothing else.  Functions move out of this file when they come to life.
 */
#include "internal.h"

/* An errno value is returned. */
#define ERRNO_STUB(name, params) \
	RPOST_API int name params { return EOPNOTSUPP; }

/* -1 is returned and errno set. */
#define MINUS_ONE_STUB(name, params) \
	RPOST_API int name params { return rpost_fail(EOPNOTSUPP); }

/* NULL is returned and errno set. */
#define NULL_STUB(type, name, params) \
	RPOST_API type *name params { return rpost_null(EOPNOTSUPP); }

/* Releases objects of which there are none. */
#define VOID_STUB(name, params) \
	RPOST_API void name params { }

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ------------------------------------------------------------ devices */

/* As on a kernel that cannot tell the index. */
RPOST_API int ibv_get_device_index(struct ibv_device *device)
{
	return -1;
}

NULL_STUB(struct ibv_context, ibv_import_device, (int cmd_fd))
NULL_STUB(struct ibv_pd, ibv_import_pd, (struct ibv_context *context,
					 uint32_t pd_handle))
VOID_STUB(ibv_unimport_pd, (struct ibv_pd *pd))
NULL_STUB(struct ibv_mr, ibv_import_mr, (struct ibv_pd *pd,
					 uint32_t mr_handle))
VOID_STUB(ibv_unimport_mr, (struct ibv_mr *mr))
NULL_STUB(struct ibv_dm, ibv_import_dm, (struct ibv_context *context,
					 uint32_t dm_handle))
VOID_STUB(ibv_unimport_dm, (struct ibv_dm *dm))
/* The kernel resolves what address handles need. */
ERRNO_STUB(ibv_resolve_eth_l2_from_gid, (struct ibv_context *context,
					 struct ibv_ah_attr *attr,
					 uint8_t eth_mac[ETHERNET_LL_SIZE],
					 uint16_t *vid))

/* ------------------------------------------------- memory and queues */

NULL_STUB(struct ibv_mr, ibv_reg_dmabuf_mr, (struct ibv_pd *pd, uint64_t offset,
					     size_t length, uint64_t iova,
					     int fd, int access))

/* -------------------------------------------------------- queue pairs */

/* No device promises it by way of this module. */
RPOST_API int ibv_query_qp_data_in_order(struct ibv_qp *qp,
					 enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

ERRNO_STUB(ibv_set_ece, (struct ibv_qp *qp, struct ibv_ece *ece))
ERRNO_STUB(ibv_query_ece, (struct ibv_qp *qp, struct ibv_ece *ece))
