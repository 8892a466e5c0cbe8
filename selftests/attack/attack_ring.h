/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A completion ring in use, mapped twice: one mapping to attack, one to see
 * whether completions still come.
 */
#ifndef RPOST_ATTACK_RING_H
#define RPOST_ATTACK_RING_H

/* A ring of five pages. */
#define RP_DEPTH	64

#include "rpost_test.h"

#define RW		(PROT_READ | PROT_WRITE)

FIXTURE(ring) {
	long refcnt;
	size_t page, size;
	uint64_t offset;
	struct rp_end c, s;
	struct rpost_wc wc;
	char *ring;	/* the mapping under attack; c.cq.ring is left alone */
};

static void *map(int fd, uint64_t offset, size_t size, int prot, int flags)
{
	return mmap(NULL, size, prot, flags, fd, offset);
}

/* Map and unmap: 0, or the negative errno. */
static int try_map(int fd, uint64_t offset, size_t size, int prot, int flags)
{
	void *p = map(fd, offset, size, prot, flags);

	if (p == MAP_FAILED)
		return -errno;
	munmap(p, size);
	return 0;
}

FIXTURE_SETUP(ring)
{
	self->refcnt = rp_module_number("refcnt");
	self->page = getpagesize();
	ASSERT_EQ(0, rp_connect_pair(&self->c, &self->s, 0));
	self->size = self->c.cq.cmd.mmap_size;
	self->offset = self->c.cq.cmd.mmap_offset;
	ASSERT_LE(5 * self->page, self->size);
	self->ring = map(self->c.fd, self->offset, self->size, RW, MAP_SHARED);
	ASSERT_NE(MAP_FAILED, (void *)self->ring);
}

FIXTURE_TEARDOWN(ring)
{
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	/* What is left of it; pages that are not mapped do not matter. */
	munmap(self->ring, self->size);
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
}

/* Do completions come? */
static int works_for(FIXTURE_DATA(ring) *self, uint64_t n)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 0, NULL, 0, 0);
	struct rpost_wc wc;
	uint64_t i;

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	for (i = 0; i < n; i++) {
		send.wr.wr_id = i;
		RP_TRY(rp_post_send(&self->c, &send));
		if (rp_wait_cq(&self->c.cq, &wc) != 1)
			return -ETIME;
		if (wc.status != RPOST_WC_SUCCESS || wc.wr_id != i)
			return -EPROTO;
	}
	return 0;
}

static int works(FIXTURE_DATA(ring) *self)
{
	return works_for(self, 2);
}

/* Is anything mapped there? */
static bool mapped(void *p, size_t size)
{
	return !msync(p, size, MS_ASYNC);
}

#endif /* RPOST_ATTACK_RING_H */
