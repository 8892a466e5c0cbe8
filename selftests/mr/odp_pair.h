/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two connected ends, and untouched memory for regions on demand.  Functions
 * return 0 or a negative errno unless their comment says otherwise.
 */
#ifndef ODP_PAIR_H
#define ODP_PAIR_H

#include "rpost_own.h"

#define ODP		RPOST_ACCESS_ON_DEMAND
#define ODP_RW		(ODP | RPOST_ACCESS_LOCAL_WRITE)
#define ODP_ALL		(ODP_RW | RPOST_ACCESS_REMOTE_WRITE | \
			 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)
#define ODP_PAGES	16

/**
 * struct odp_pair - ends and memory
 * @a: posts operations
 * @b: its peer
 * @dev: what the device has
 * @page: bytes of a page
 * @amem: ODP_PAGES pages, which nobody has touched
 * @bmem: the same for @b
 * @amr: region of @amem
 * @bmr: region of @bmem
 * @has: the device has on-demand paging, and it is allowed
 */
struct odp_pair {
	struct rp_end a, b;
	struct rpost_query_device dev;
	size_t page;
	char *amem, *bmem;
	struct rpost_reg_mr amr, bmr;
	bool has;
};

#define NEED_ROOT_ODP()							\
	do {								\
		if (geteuid())						\
			SKIP(return, "the parameter odp needs root");	\
	} while (0)

/* Each test of regions calls this. */
#define NEED_ODP(p)							\
	do {								\
		NEED_ROOT_ODP();					\
		if (!(p)->has)						\
			SKIP(return, "the device has no on-demand paging"); \
	} while (0)

int odp_allow(bool allow);
char *odp_untouched(size_t bytes);
/* The number of pages that are present, or -1. */
int odp_present(const void *mem, size_t pages);
int odp_pair_init(struct odp_pair *p);
int odp_pair_close(struct odp_pair *p);
struct rp_send odp_op(const struct odp_pair *p, uint32_t opcode, size_t from,
		      size_t to, uint32_t length);
/* Post an operation of @a; return the status of its completion, or an error. */
int odp_run(struct odp_pair *p, struct rp_send *send);

#endif /* ODP_PAIR_H */
