// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions of librdmacm and libibverbs that are not implemented, because
 * kernel verbs or the module do not support them.
 *
 * Most programs are linked so that every symbol they use must exist.  Each
 * function here only fails with EOPNOTSUPP, as its manual page says.  A
 * function that gets implemented moves to another file.
 */
#include "internal.h"

/* Returns an errno value. */
#define ERRNO_STUB(name, params) \
	RPOST_API int name params { return EOPNOTSUPP; }

/* Returns -1 and sets errno. */
#define MINUS_ONE_STUB(name, params) \
	RPOST_API int name params { return rpost_fail(EOPNOTSUPP); }

/* Returns NULL and sets errno. */
#define NULL_STUB(type, name, params) \
	RPOST_API type *name params { return rpost_null(EOPNOTSUPP); }

/* Releases objects that no function of the library makes. */
#define VOID_STUB(name, params) \
	RPOST_API void name params { }

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ------------------------------------------------------------ devices */

NULL_STUB(struct ibv_dm, ibv_import_dm, (struct ibv_context *context,
					 uint32_t dm_handle))
VOID_STUB(ibv_unimport_dm, (struct ibv_dm *dm))

/* ------------------------------------------------- memory and queues */

NULL_STUB(struct ibv_mr, ibv_reg_dmabuf_mr, (struct ibv_pd *pd, uint64_t offset,
					     size_t length, uint64_t iova,
					     int fd, int access))

/* -------------------------------------------------------- queue pairs */

/* 0 promises nothing.  The kernel has no function that tells it. */
RPOST_API int ibv_query_qp_data_in_order(struct ibv_qp *qp,
					 enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

ERRNO_STUB(ibv_set_ece, (struct ibv_qp *qp, struct ibv_ece *ece))
ERRNO_STUB(ibv_query_ece, (struct ibv_qp *qp, struct ibv_ece *ece))
