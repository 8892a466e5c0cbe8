// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A connection whose server registers memory that its client reads and writes.
 */
#define _GNU_SOURCE
#include "memory.h"

/* Return the number in a "NAME: NUMBER" line of a file in /proc, or -1. */
long proc_number(const char *path, const char *name)
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

int memory_init(struct memory *m)
{
	m->refcnt = rp_module_number("refcnt");
	m->pinned = rp_pinned();
	m->huge = proc_number("/proc/meminfo", "HugePages_Total");
	m->buf = rp_pages(BUF);
	RP_TRY(rp_connect_pair(&m->c, &m->s, 0));
	return rp_reg_mr(m->c.fd, m->c.pd, m->buf, BUF,
			 RPOST_ACCESS_LOCAL_WRITE, &m->bmr);
}

/* Return 0 if neither objects nor pinned memory are left. */
int memory_exit(struct memory *m)
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

/* Return the status of one operation on a region at @offset, or an errno. */
int operate(struct memory *m, uint32_t opcode, struct rpost_reg_mr *mr,
	    uint64_t offset, uint32_t length)
{
	struct rp_send send = rp_send(opcode, 1, m->buf, length, m->bmr.lkey);
	struct rpost_wc wc;

	send.wr.remote_addr = mr->iova + offset;
	send.wr.rkey = mr->rkey;
	RP_TRY(rp_post_send(&m->c, &send));
	return rp_wait_cq(&m->c.cq, &wc) == 1 ? (int)wc.status : -ETIME;
}

/* Fill the buffer with new contents that have no byte 0. */
static void stir(struct memory *m, uint32_t length)
{
	uint32_t i;

	m->seed++;
	for (i = 0; i < length; i++)
		m->buf[i] = 1 + (m->seed * 31 + i * 7) % 255;
}

/* Write new contents to a region. */
int put(struct memory *m, struct rpost_reg_mr *mr, uint64_t offset,
	uint32_t length)
{
	stir(m, length);
	return operate(m, RPOST_WR_RDMA_WRITE, mr, offset, length);
}

/* Read the contents of a region into the buffer. */
int get(struct memory *m, struct rpost_reg_mr *mr, uint64_t offset,
	uint32_t length)
{
	memset(m->buf, 0xee, length);
	return operate(m, RPOST_WR_RDMA_READ, mr, offset, length);
}
