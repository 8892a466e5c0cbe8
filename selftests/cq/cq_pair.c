// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two connected ends; the server's completion queue has a channel.
 */
#define _GNU_SOURCE
#include "cq_pair.h"

/* Creates completion queues with @flags, RPOST_CQ_*. */
int cq_pair_init(struct cq_pair *p, uint32_t flags)
{
	rp_cq_flags = flags;
	p->buf = rp_pages(2 * CQ_BYTES);
	if (!p->buf)
		return -ENOMEM;
	RP_TRY(rp_end_init(&p->c));
	RP_TRY(rp_end_init(&p->s));
	p->comp = rp_end_add_channel(&p->s, 4 * RP_DEPTH);
	if (p->comp < 0)
		return p->comp;
	RP_TRY(rp_listener(&p->s, &p->listener));
	RP_TRY(rp_join(&p->c, &p->s, p->listener, 0));
	RP_TRY(rp_reg_mr(p->c.fd, p->c.pd, p->buf, CQ_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE, &p->cmr));
	return rp_reg_mr(p->s.fd, p->s.pd, p->buf + CQ_BYTES, CQ_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			 &p->smr);
}

void cq_pair_close(struct cq_pair *p)
{
	close(p->comp);
	rp_end_close(&p->c);
	rp_end_close(&p->s);
	munmap(p->buf, 2 * CQ_BYTES);
}
