// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Versions of symbols that exist only so that the dynamic linker finds them.
 * The static library does not have them.
 *
 * IBVERBS_1.0 is for programs from before 2007, which use other structs; they
 * find no device.  IBVERBS_PRIVATE_N is the interface between libibverbs and its
 * providers: with them the dynamic linker can load libmlx5, libefa and so on for
 * programs that link them.  These providers find no device.  A release of
 * rdma-core has one of these nodes: 34 to 56 have 34, 57 and 58 have 57, 59 to
 * 63 have 59, 64 has 64, 65 has 65.  Here each node has every name of 44 to 65.
 *
 * Each symbol, with but two exceptions, is an alias of one of four functions, which
 * ignore their arguments and fail in different ways, or of a flag; symver.h, made from
 * symbols.txt, says of which.
 */
#include "core/internal.h"

RPOST_API int rpost_none_errno(void);
RPOST_API int rpost_none_minus_one(void);
RPOST_API void *rpost_none_null(void);
RPOST_API long rpost_none_0(void);
RPOST_API extern bool rpost_none_flag;

int rpost_none_errno(void)
{
	return ENOSYS;
}

int rpost_none_minus_one(void)
{
	return rpost_fail(ENOSYS);
}

void *rpost_none_null(void)
{
	return rpost_null(ENOSYS);
}

long rpost_none_0(void)
{
	return 0;
}

/* verbs_allow_disassociate_destroy, which providers read. */
bool rpost_none_flag;

#define VERSION_OF(symbol, name, version) \
	__asm__(".symver " #symbol ", " #name "@" version)

#define FAILS(how, name, version) VERSION_OF(rpost_none_##how, name, version)

#include "symver.h"

#define PRIVATE_OF(symbol, name)				\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_34");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_57");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_59");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_64");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_65")

/*
 * Programs called it before it was private.  @type is an
 * enum ibv_gid_type_sysfs, in which InfiniBand and RoCE v1 are both 0.
 */
RPOST_API int rpost_query_gid_type(struct ibv_context *context, uint8_t port_num,
				   unsigned int index, unsigned int *type)
{
	struct ibv_gid_entry entry;
	int err;

	err = ibv_query_gid_ex(context, port_num, index, &entry, 0);
	if (!err)
		*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return rpost_fail(err);
}

PRIVATE_OF(rpost_query_gid_type, ibv_query_gid_type);

/* The headers of version 56 declare it, so programs call it. */
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

RPOST_API const char *rpost_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	return ibv_wr_opcode_str(opcode);
}

PRIVATE_OF(rpost_wr_opcode_str, ibv_wr_opcode_str);
