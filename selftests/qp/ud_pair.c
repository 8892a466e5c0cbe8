// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two UD queue pairs.
 */
#define _GNU_SOURCE
#include "ud_pair.h"

#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE)

int ud_pair_init(struct ud_pair *p)
{
	p->abuf = rp_pages(UD_BYTES);
	p->bbuf = rp_pages(UD_BYTES);
	if (!p->abuf || !p->bbuf)
		return -ENOMEM;
	memset(p->abuf, 'a', UD_BYTES);
	memset(p->bbuf, 'b', UD_BYTES);
	RP_TRY(rp_own_pair(&p->a, &p->b, RPOST_QPT_UD));
	RP_TRY(rp_own_addr(&p->a, &p->addr));
	RP_TRY(rp_create_ah(p->a.fd, p->a.pd, &p->addr, &p->ah));
	RP_TRY(rp_reg_mr(p->a.fd, p->a.pd, p->abuf, UD_BYTES, ALL, &p->amr));
	return rp_reg_mr(p->b.fd, p->b.pd, p->bbuf, UD_BYTES, ALL, &p->bmr);
}

void ud_pair_close(struct ud_pair *p)
{
	rp_end_close(&p->a);
	rp_end_close(&p->b);
}

int ud_receive(struct ud_pair *p, uint64_t wr_id)
{
	return rp_post_recv(&p->b, wr_id, p->bbuf, UD_BYTES, p->bmr.lkey);
}

/* Return a datagram from @a to @b. */
struct rp_send ud_datagram(const struct ud_pair *p, uint64_t wr_id)
{
	return rp_datagram(p->ah, p->b.qp_num, wr_id, p->abuf, UD_MSG,
			   p->amr.lkey);
}
