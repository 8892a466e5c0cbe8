/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection whose server registers memory that its client reads and writes.
 */
#ifndef MEMORY_H
#define MEMORY_H

#include "memory_kinds.h"
#include "rpost_test.h"

#define RW	(PROT_READ | PROT_WRITE)
#define READ	RPOST_ACCESS_REMOTE_READ
#define WRITE	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ)
#define BUF	4096

struct memory {
	long refcnt, pinned, huge;
	struct rp_end c, s;
	unsigned char *buf;	/* the client's */
	struct rpost_reg_mr bmr;
	unsigned int seed;
};

long proc_number(const char *path, const char *name);
int memory_init(struct memory *m);
int memory_exit(struct memory *m);

static inline int reg(struct memory *m, void *p, size_t bytes, uint32_t access,
		      struct rpost_reg_mr *mr)
{
	return rp_reg_mr(m->s.fd, m->s.pd, p, bytes, access, mr);
}

static inline int dereg(struct memory *m, struct rpost_reg_mr *mr)
{
	return rp_destroy(m->s.fd, RPOST_OBJ_MR, mr->handle);
}

int operate(struct memory *m, uint32_t opcode, struct rpost_reg_mr *mr,
	    uint64_t offset, uint32_t length);
int put(struct memory *m, struct rpost_reg_mr *mr, uint64_t offset,
	uint32_t length);
int get(struct memory *m, struct rpost_reg_mr *mr, uint64_t offset,
	uint32_t length);

#endif /* MEMORY_H */
