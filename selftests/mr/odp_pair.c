// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two connected ends, and untouched memory for regions on demand.
 */
#define _GNU_SOURCE
#include "odp_pair.h"

int odp_allow(bool allow)
{
	return rp_set_parameter("odp", allow ? "Y" : "N");
}

char *odp_untouched(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	/* A page is a page. */
	madvise(mem, bytes, MADV_NOHUGEPAGE);
	return mem;
}

int odp_present(const void *mem, size_t pages)
{
	unsigned char vec[ODP_PAGES];
	size_t i;
	int n = 0;

	if (pages > ODP_PAGES ||
	    mincore((void *)mem, pages * getpagesize(), vec))
		return -1;
	for (i = 0; i < pages; i++)
		n += vec[i] & 1;
	return n;
}

int odp_pair_init(struct odp_pair *p)
{
	size_t bytes;

	memset(p, 0, sizeof(*p));
	p->page = getpagesize();
	bytes = ODP_PAGES * p->page;
	if (!geteuid())
		RP_TRY(odp_allow(true));
	p->amem = odp_untouched(bytes);
	p->bmem = odp_untouched(bytes);
	if (!p->amem || !p->bmem)
		return -ENOMEM;
	RP_TRY(rp_own_pair(&p->a, &p->b, RPOST_QPT_RC));
	RP_TRY(rp_query_device(p->a.fd, p->a.device, &p->dev));
	p->has = p->dev.odp_general_caps & RPOST_ODP_SUPPORT;
	if (!p->has)
		return 0;
	RP_TRY(rp_reg_mr(p->a.fd, p->a.pd, p->amem, bytes, ODP_ALL, &p->amr));
	return rp_reg_mr(p->b.fd, p->b.pd, p->bmem, bytes, ODP_ALL, &p->bmr);
}

int odp_pair_close(struct odp_pair *p)
{
	rp_end_close(&p->a);
	rp_end_close(&p->b);
	/* A test that failed may have left it another user. */
	rp_become(0);
	return geteuid() ? 0 : odp_allow(false);
}

struct rp_send odp_op(const struct odp_pair *p, uint32_t opcode, size_t from,
		      size_t to, uint32_t length)
{
	struct rp_send send = rp_send(opcode, 1, p->amem + from, length,
				      p->amr.lkey);

	send.wr.remote_addr = (uintptr_t)p->bmem + to;
	send.wr.rkey = p->bmr.rkey;
	return send;
}

int odp_run(struct odp_pair *p, struct rp_send *send)
{
	struct rpost_wc wc;

	RP_TRY(rp_post_send(&p->a, send));
	return rp_wait_cq(&p->a.cq, &wc) == 1 ? (int)wc.status : -ETIMEDOUT;
}
