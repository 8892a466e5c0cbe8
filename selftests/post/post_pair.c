// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two connected ends, and work requests of the client.
 */
#define _GNU_SOURCE
#include "post_pair.h"

#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)

int post_pair_init(struct post_pair *p, size_t bytes, uint32_t qp_flags)
{
	p->bytes = bytes;
	p->cbuf = rp_pages(bytes);
	p->sbuf = rp_pages(bytes);
	if (!p->cbuf || !p->sbuf)
		return -ENOMEM;
	RP_TRY(rp_end_init(&p->c));
	RP_TRY(rp_end_init(&p->s));
	RP_TRY(rp_listener(&p->s, &p->listener));
	RP_TRY(rp_join(&p->c, &p->s, p->listener, qp_flags));
	RP_TRY(rp_reg_mr(p->c.fd, p->c.pd, p->cbuf, bytes, ALL, &p->cmr));
	return rp_reg_mr(p->s.fd, p->s.pd, p->sbuf, bytes, ALL, &p->smr);
}

/* Fill the client's buffer with different bytes, the server's with one. */
void post_pair_fill(struct post_pair *p)
{
	size_t i;

	for (i = 0; i < p->bytes; i++)
		p->cbuf[i] = i * 7 + 1;
	memset(p->sbuf, 's', p->bytes);
}

void post_pair_close(struct post_pair *p)
{
	rp_end_close(&p->c);
	rp_end_close(&p->s);
}

/* Return an operation from the client's buffer on the server's. */
struct rp_send pair_op(const struct post_pair *p, uint32_t opcode,
		       uint64_t wr_id, uint32_t length)
{
	struct rp_send send = rp_send(opcode, wr_id, p->cbuf, length,
				      p->cmr.lkey);

	send.wr.remote_addr = p->smr.addr;
	send.wr.rkey = p->smr.rkey;
	return send;
}

/* Return a write of 8 bytes to a place that depends on @wr_id. */
struct rp_send pair_write(const struct post_pair *p, uint64_t wr_id)
{
	struct rp_send send = pair_op(p, RPOST_WR_RDMA_WRITE, wr_id, 8);

	send.wr.remote_addr += wr_id % 64 * 8;
	return send;
}

int pair_recv(struct post_pair *p, uint64_t wr_id, uint32_t length)
{
	return rp_post_recv(&p->s, wr_id, p->sbuf, length, p->smr.lkey);
}
