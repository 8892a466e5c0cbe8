/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An attacker and a victim, each with its own open file and queue pair, which
 * the tests can bring up again after each attack.
 */
#ifndef RPOST_ATTACK_H
#define RPOST_ATTACK_H

#include <sys/utsname.h>

#include "rpost_own.h"

#define LEN	48	/* bytes of an entry, enough for a datagram's header */
#define RW	RPOST_ACCESS_LOCAL_WRITE
#define ALL	(RW | RPOST_ACCESS_REMOTE_WRITE | \
		 RPOST_ACCESS_REMOTE_READ | RPOST_ACCESS_REMOTE_ATOMIC)
#define OP_RECV	100	/* beside RPOST_WR_* */

/*
 * The attacker's region @mr is the middle half of @mem; @ro is the same memory,
 * registered without the right to write.  An attack must neither read nor write
 * the rest of @mem, @victim_mem, or @other_mem, which is a region of another
 * domain.
 */
struct attack {
	uint32_t type;
	uint32_t op;
	struct rp_end a, v;
	struct rpost_ah_attr here;
	struct rpost_create_srq srq;
	uint32_t ah, victim_ah, other_pd;
	size_t bytes;
	char *mem, *victim_mem, *other_mem;
	struct rpost_reg_mr mr, ro, victim_mr, other;
	struct utsname uts;
	bool alone;	/* post nothing after the attack; it would be flushed */
};

static inline bool is_atomic(uint32_t op)
{
	return op == RPOST_WR_ATOMIC_CMP_AND_SWP ||
	       op == RPOST_WR_ATOMIC_FETCH_AND_ADD;
}

/* True if the operation writes to memory of the process that posts it. */
static inline bool writes_local(uint32_t op)
{
	return op == OP_RECV || op == RPOST_WR_RDMA_READ || is_atomic(op);
}

static inline bool needs_receive(uint32_t op)
{
	return op == RPOST_WR_SEND || op == RPOST_WR_SEND_WITH_IMM ||
	       op == RPOST_WR_SEND_WITH_INV ||
	       op == RPOST_WR_RDMA_WRITE_WITH_IMM;
}

int renew(struct attack *t, struct rp_end *end, uint32_t dest);

static inline int renew_both(struct attack *t)
{
	RP_TRY(renew(t, &t->a, t->v.qp_num));
	return renew(t, &t->v, t->a.qp_num);
}

int attack_init(struct attack *t, uint32_t type, uint32_t op, bool with_srq);
void attack_close(struct attack *t);
bool untouched(struct attack *t);
int attack_run(struct attack *t, const struct rpost_sge *sges, uint32_t num,
	       uint32_t bad);
int attack_again(struct attack *t);

#endif /* RPOST_ATTACK_H */
