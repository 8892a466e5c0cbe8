/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A completion ring in use, mapped twice: one mapping to attack, and one that
 * shows whether completions still arrive.  Functions return 0 or a negative
 * errno unless their comment says otherwise.
 */
#ifndef RING_MAP_H
#define RING_MAP_H

/* A ring of five pages. */
#define RP_DEPTH	64

#include "rpost_test.h"

#define RW		(PROT_READ | PROT_WRITE)

struct ring_map {
	long refcnt;
	size_t page, size;
	uint64_t offset;
	struct rp_end c, s;
	char *ring;	/* mapping under attack; c.cq.ring is left alone */
};

static inline void *map(int fd, uint64_t offset, size_t size, int prot, int flags)
{
	return mmap(NULL, size, prot, flags, fd, offset);
}

/* Map and unmap; return 0 or a negative errno. */
static inline int try_map(int fd, uint64_t offset, size_t size, int prot, int flags)
{
	void *p = map(fd, offset, size, prot, flags);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

int ring_map_init(struct ring_map *r);
int ring_map_close(struct ring_map *r);
int works_for(struct ring_map *r, uint64_t n);

static inline int works(struct ring_map *r)
{
	return works_for(r, 2);
}

/* True if anything is mapped there. */
static inline bool mapped(void *p, size_t size)
{
	return !msync(p, size, MS_ASYNC);
}

#endif /* RING_MAP_H */
