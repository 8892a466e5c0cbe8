/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection whose one side registers memory, and whose other side writes to
 * it and reads from it.
 */
#ifndef RPOST_ATTACK_MEMORY_H
#define RPOST_ATTACK_MEMORY_H

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
	unsigned char *buf;	/* the other side's */
	struct rpost_reg_mr bmr;
	unsigned int seed;
};

/* A number of a file in /proc that has "NAME: NUMBER" lines, or -1. */
static long proc_number(const char *path, const char *name)
{
	FILE *f = fopen(path, "r");
	size_t len = strlen(name);
	char line[256];
	long n = -1;

	while (f && n < 0 && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, len) && line[len] == ':')
			n = atol(line + len + 1);
	}
	if (f)
		fclose(f);
	return n;
}

static int memory_init(struct memory *m)
{
	m->refcnt = rp_module_number("refcnt");
	m->pinned = rp_pinned();
	m->huge = proc_number("/proc/meminfo", "HugePages_Total");
	m->buf = rp_pages(BUF);
	RP_TRY(rp_connect_pair(&m->c, &m->s, 0));
	return rp_reg_mr(m->c.fd, m->c.pd, m->buf, BUF,
			 RPOST_ACCESS_LOCAL_WRITE, &m->bmr);
}

/* 0 if nothing is left, not of the objects, nor of what they held. */
static int memory_exit(struct memory *m)
{
	rp_end_close(&m->c);
	rp_end_close(&m->s);
	munmap(m->buf, BUF);
	if (rp_wait_refcnt(m->refcnt) != m->refcnt)
		return -EBUSY;
	if (rp_pinned() != m->pinned)
		return -ENOMEM;
	if (proc_number("/proc/meminfo", "HugePages_Total") != m->huge)
		return -ENOSPC;
	return 0;
}

static inline int reg(struct memory *m, void *p, size_t bytes, uint32_t access,
		      struct rpost_reg_mr *mr)
{
	return rp_reg_mr(m->s.fd, m->s.pd, p, bytes, access, mr);
}

static inline int dereg(struct memory *m, struct rpost_reg_mr *mr)
{
	return rp_destroy(m->s.fd, RPOST_OBJ_MR, mr->handle);
}

/* The status of one operation on a region at @offset, or a negative errno. */
static inline int operate(struct memory *m, uint32_t opcode,
			  struct rpost_reg_mr *mr, uint64_t offset,
			  uint32_t length)
{
	struct rp_send send = rp_send(opcode, 1, m->buf, length, m->bmr.lkey);
	struct rpost_wc wc;

	send.wr.remote_addr = mr->iova + offset;
	send.wr.rkey = mr->rkey;
	RP_TRY(rp_post_send(&m->c, &send));
	return rp_wait_cq(&m->c.cq, &wc) == 1 ? (int)wc.status : -ETIME;
}

/* Something new in the buffer, never 0. */
static inline void stir(struct memory *m, uint32_t length)
{
	uint32_t i;

	m->seed++;
	for (i = 0; i < length; i++)
		m->buf[i] = 1 + (m->seed * 31 + i * 7) % 255;
}

/* Something new into a region. */
static inline int put(struct memory *m, struct rpost_reg_mr *mr,
		      uint64_t offset, uint32_t length)
{
	stir(m, length);
	return operate(m, RPOST_WR_RDMA_WRITE, mr, offset, length);
}

/* What is in a region, into the buffer. */
static inline int get(struct memory *m, struct rpost_reg_mr *mr,
		      uint64_t offset, uint32_t length)
{
	memset(m->buf, 0xee, length);
	return operate(m, RPOST_WR_RDMA_READ, mr, offset, length);
}

#endif /* RPOST_ATTACK_MEMORY_H */
