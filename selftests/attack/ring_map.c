// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A completion ring in use, mapped twice.
 */
#define _GNU_SOURCE
#include "ring_map.h"

RP_USE_DEPTH()

int ring_map_init(struct ring_map *r)
{
	r->refcnt = rp_module_number("refcnt");
	r->page = getpagesize();
	RP_TRY(rp_connect_pair(&r->c, &r->s, 0));
	r->size = r->c.cq.cmd.mmap_size;
	r->offset = r->c.cq.cmd.mmap_offset;
	if (r->size < 5 * r->page)
		return -EINVAL;
	r->ring = map(r->c.fd, r->offset, r->size, RW, MAP_SHARED);
	return r->ring == MAP_FAILED ? -errno : 0;
}

int ring_map_close(struct ring_map *r)
{
	rp_end_close(&r->c);
	rp_end_close(&r->s);
	/* Unmap what is left; munmap() ignores pages that are not mapped. */
	munmap(r->ring, r->size);
	return rp_wait_refcnt(r->refcnt) == r->refcnt ? 0 : -EBUSY;
}

/* True if completions arrive. */
int works_for(struct ring_map *r, uint64_t n)
{
	struct rp_send send = rp_empty_send(RPOST_WR_RDMA_WRITE, 0);
	struct rpost_wc wc;
	uint64_t i;

	for (i = 0; i < n; i++) {
		send.wr.wr_id = i;
		RP_TRY(rp_post_send(&r->c, &send));
		if (rp_wait_cq(&r->c.cq, &wc) != 1)
			return -ETIME;
		if (wc.status != RPOST_WC_SUCCESS || wc.wr_id != i)
			return -EPROTO;
	}
	return 0;
}
