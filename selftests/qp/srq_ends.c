// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two senders, and two receivers that share a receive queue.
 */
#define _GNU_SOURCE
#include "srq_ends.h"

int srq_join(struct rp_end *sender, struct rp_end *receiver, uint32_t srq)
{
	RP_TRY(rp_create_own(sender, RPOST_QPT_RC, 0));
	RP_TRY(rp_create_own(receiver, RPOST_QPT_RC, srq));
	RP_TRY(rp_bring_up(sender, RPOST_QPT_RC, receiver->qp_num));
	RP_TRY(rp_bring_up(receiver, RPOST_QPT_RC, sender->qp_num));
	return 0;
}

int srq_ends_init(struct srq_ends *e)
{
	e->buf = rp_pages(SRQ_BYTES);
	if (!e->buf)
		return -ENOMEM;
	memset(e->buf, 'r', SRQ_BYTES);
	RP_TRY(rp_end_init(&e->s1));
	RP_TRY(rp_end_init(&e->s2));
	RP_TRY(rp_end_init(&e->r1));
	RP_TRY(rp_query_device(e->r1.fd, e->r1.device, &e->dev));
	RP_TRY(e->dev.max_srq ? 0 : -EOPNOTSUPP);
	RP_TRY(rp_create_srq(e->r1.fd, e->r1.pd, SRQ_SLOTS, &e->srq));
	RP_TRY(rp_reg_mr(e->r1.fd, e->r1.pd, e->buf, SRQ_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			 &e->mr));
	e->r2 = e->r1;
	RP_TRY(srq_join(&e->s1, &e->r1, e->srq.handle));
	return srq_join(&e->s2, &e->r2, e->srq.handle);
}

void srq_ends_close(struct srq_ends *e)
{
	rp_end_close(&e->s1);
	rp_end_close(&e->s2);
	rp_end_close(&e->r1);
}

/* Send a message of 8 bytes and wait for the sender's completion. */
int srq_message(struct rp_end *sender, const char *text)
{
	struct {
		struct rpost_send_wr wr;
		char data[8];
	} send = {
		.wr = {
			.wr_id = 99,
			.size = sizeof(send),
			.opcode = RPOST_WR_SEND,
			.send_flags = RPOST_SEND_SIGNALED | RPOST_SEND_INLINE,
			.inline_len = 8,
		},
	};
	struct rpost_wc wc;

	memcpy(send.data, text, strnlen(text, 8));
	RP_TRY(rp_post(sender->fd, RPOST_IOC_POST_SEND, sender->qp, &send,
		       sizeof(send), 1, NULL));
	if (rp_wait_cq(&sender->cq, &wc) != 1)
		return -ETIME;
	return wc.status ? -EIO : 0;
}

/* Post receive number @i into its own place. */
int srq_give(struct srq_ends *e, uint32_t i)
{
	return rp_post_srq(e->r1.fd, e->srq.handle, i,
			   e->buf + i % 64 * 64, 64, e->mr.lkey);
}
