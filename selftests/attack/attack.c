// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * An attacker and a victim: their objects, and the operations of the attacker.
 */
#define _GNU_SOURCE
#include "attack.h"

/* Move a queue pair from any state to RTS with empty queues. */
int renew(struct attack *t, struct rp_end *end, uint32_t dest)
{
	struct rpost_qp_attr attr;

	RP_TRY(rp_move(end, RPOST_QPS_RESET));
	end->cq.ring->head = __atomic_load_n(&end->cq.ring->tail,
					     __ATOMIC_ACQUIRE);
	attr = rp_init_attr(t->type, t->here.port_num);
	RP_TRY(rp_modify(end, &attr));
	attr = rp_rtr_attr(t->type, &t->here, dest);
	RP_TRY(rp_modify(end, &attr));
	attr = rp_rts_attr(t->type);
	return rp_modify(end, &attr);
}

int attack_init(struct attack *t, uint32_t type, uint32_t op, bool with_srq)
{
	t->type = type;
	t->op = op;
	uname(&t->uts);
	t->bytes = 4 * getpagesize();
	t->mem = rp_pages(t->bytes);
	t->victim_mem = rp_pages(t->bytes);
	t->other_mem = rp_pages(t->bytes);
	if (!t->mem || !t->victim_mem || !t->other_mem)
		return -ENOMEM;
	memset(t->mem, 'a', t->bytes);
	memset(t->victim_mem, 'v', t->bytes);
	memset(t->other_mem, 'o', t->bytes);
	RP_TRY(rp_end_init(&t->v));
	RP_TRY(rp_end_init(&t->a));
	/* Register right after the domain: their keys may be close. */
	RP_TRY(rp_reg_mr(t->a.fd, t->a.pd, t->mem + t->bytes / 4, t->bytes / 2,
			 RW, &t->mr));
	RP_TRY(rp_reg_mr(t->a.fd, t->a.pd, t->mem + t->bytes / 4, t->bytes / 2,
			 0, &t->ro));
	RP_TRY(rp_reg_mr(t->v.fd, t->v.pd, t->victim_mem, t->bytes, ALL,
			 &t->victim_mr));
	RP_TRY(rp_alloc_pd(t->a.fd, t->a.device, &t->other_pd));
	RP_TRY(rp_reg_mr(t->a.fd, t->other_pd, t->other_mem, t->bytes, ALL,
			 &t->other));
	t->srq = (struct rpost_create_srq) {
		.size = sizeof(t->srq),
		.pd = t->a.pd,
		.max_wr = 64,
		.max_sge = RP_SGE,
	};
	if (with_srq)
		RP_TRY(rp_ioctl(t->a.fd, RPOST_IOC_CREATE_SRQ, &t->srq));
	RP_TRY(rp_own_addr(&t->a, &t->here));
	RP_TRY(rp_create_own(&t->a, type, t->srq.handle));
	RP_TRY(rp_create_own(&t->v, type, 0));
	if (type == RPOST_QPT_UD) {
		RP_TRY(rp_create_ah(t->a.fd, t->a.pd, &t->here, &t->ah));
		RP_TRY(rp_create_ah(t->v.fd, t->v.pd, &t->here, &t->victim_ah));
	}
	return renew_both(t);
}

void attack_close(struct attack *t)
{
	rp_end_close(&t->a);
	rp_end_close(&t->v);
	munmap(t->mem, t->bytes);
	munmap(t->victim_mem, t->bytes);
	munmap(t->other_mem, t->bytes);
}

/* True if the memory that no attack may change still has its contents. */
bool untouched(struct attack *t)
{
	struct utsname now;

	uname(&now);
	return all_bytes(t->mem, t->bytes / 4, 'a') &&
	       all_bytes(t->mem + t->bytes / 4 * 3, t->bytes / 4, 'a') &&
	       all_bytes(t->victim_mem, t->bytes, 'v') &&
	       all_bytes(t->other_mem, t->bytes, 'o') &&
	       !memcmp(&now, &t->uts, sizeof(now));
}

/* Post the operation @wr_id with a list of entries. */
static int post_list(struct attack *t, uint64_t wr_id,
			    const struct rpost_sge *sges, uint32_t num)
{
	struct {
		union {
			struct rpost_send_wr send;
			struct rpost_recv_wr recv;
		};
		struct rpost_sge sges[RP_SGE];
	} block = { 0 };
	size_t head = sizeof(block.send), list = num * sizeof(*sges);
	unsigned long nr = RPOST_IOC_POST_SEND;
	uint32_t to = t->a.qp;

	if (t->op == OP_RECV) {
		head = sizeof(block.recv);
		block.recv.wr_id = wr_id;
		block.recv.size = head + list;
		block.recv.num_sge = num;
		nr = t->srq.handle ? RPOST_IOC_POST_SRQ_RECV :
				     RPOST_IOC_POST_RECV;
		if (t->srq.handle)
			to = t->srq.handle;
	} else {
		block.send = (struct rpost_send_wr) {
			.wr_id = wr_id,
			.size = head + list,
			.opcode = t->op,
			.send_flags = RPOST_SEND_SIGNALED,
			.num_sge = num,
			.rkey = t->victim_mr.rkey,
			.remote_addr = t->victim_mr.iova,
		};
		if (t->type == RPOST_QPT_UD) {
			block.send.ah = t->ah;
			block.send.remote_qpn = t->v.qp_num;
			block.send.remote_qkey = RP_QKEY;
		}
	}
	memcpy((char *)&block + head, sges, list);
	return rp_post(t->a.fd, nr, to, &block, head + list, 1, NULL);
}

/* Post a send of @length bytes by the victim. */
static int victim_sends(struct attack *t, uint32_t length)
{
	struct rp_send send;

	if (t->type == RPOST_QPT_UD)
		send = rp_datagram(t->victim_ah, t->a.qp_num, 9, t->victim_mem,
				   length - RP_GRH, t->victim_mr.lkey);
	else
		send = rp_send(RPOST_WR_SEND, 9, t->victim_mem, length,
			       t->victim_mr.lkey);
	return rp_post_send(&t->v, &send);
}

/*
 * Post the operation with a list of entries, and a valid operation after it.
 * Return the status of the first, or a negative errno; a message for a receive
 * reaches up to entry @bad.  If the first fails, -EISCONN means that the second
 * was not flushed.
 */
int attack_run(struct attack *t, const struct rpost_sge *sges, uint32_t num,
	       uint32_t bad)
{
	const uint32_t len = is_atomic(t->op) ? 8 : LEN;
	const struct rpost_sge good = { t->mr.addr, len, t->mr.lkey };
	uint32_t i, total = 0;
	struct rpost_wc wc;
	int ret, status;

	for (i = 0; i <= bad; i++)
		total += sges[i].length;
	if (needs_receive(t->op))
		RP_TRY(rp_post_recv(&t->v, 9, t->victim_mem, t->bytes,
				    t->victim_mr.lkey));
	ret = post_list(t, 7, sges, num);
	if (ret)
		return ret;
	if (!t->srq.handle && !t->alone)
		RP_TRY(post_list(t, 8, &good, 1));
	if (t->op == OP_RECV)
		RP_TRY(victim_sends(t, total));
	if (rp_wait_cq(&t->a.cq, &wc) != 1)
		return -ETIME;
	status = wc.status;
	if (wc.wr_id != 7 || wc.qp_num != t->a.qp_num)
		return -EPROTO;
	if (status && !t->srq.handle && !t->alone) {
		if (rp_wait_cq(&t->a.cq, &wc) != 1)
			return -ETIME;
		if (wc.wr_id != 8 || wc.status != RPOST_WC_WR_FLUSH_ERR)
			return -EISCONN;
	}
	if (status && t->op == OP_RECV) {
		if (rp_wait_cq(&t->v.cq, &wc) != 1)
			return -ETIME;
		if (t->type == RPOST_QPT_RC && !wc.status)
			return -EPROTO;
	}
	return status;
}

/* Bring up the queue pairs that the operation has stopped or advanced. */
int attack_again(struct attack *t)
{
	/* A packet was sent, or a receive is still posted: renew both sides. */
	if (writes_local(t->op) || needs_receive(t->op))
		return renew_both(t);
	return renew(t, &t->a, t->v.qp_num);
}
