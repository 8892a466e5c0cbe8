/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs that the program creates and brings up itself, connected by hand
 * or for datagrams; address handles, shared receive queues and asynchronous
 * channels.  Functions return 0 or a negative errno unless their comment says
 * otherwise.
 */
#ifndef RPOST_OWN_H
#define RPOST_OWN_H

#include "rpost_test.h"

#define RP_QKEY		0x1234
#define RP_NO_QPN	0xfffff0	/* no queue pair has this number */
#define RP_GRH		40	/* bytes before a datagram's data */
#define RP_PSN		0x123456

#define RP_MASK_INIT	(RPOST_QP_STATE | RPOST_QP_PKEY_INDEX | RPOST_QP_PORT)
#define RP_MASK_RTR	(RPOST_QP_STATE | RPOST_QP_AV | RPOST_QP_PATH_MTU | \
			 RPOST_QP_DEST_QPN | RPOST_QP_RQ_PSN)
#define RP_MASK_RTR_RC	(RP_MASK_RTR | RPOST_QP_MAX_DEST_RD_ATOMIC | \
			 RPOST_QP_MIN_RNR_TIMER)
#define RP_MASK_RTS	(RPOST_QP_STATE | RPOST_QP_SQ_PSN)
#define RP_MASK_RTS_RC	(RP_MASK_RTS | RPOST_QP_TIMEOUT | \
			 RPOST_QP_RETRY_CNT | RPOST_QP_RNR_RETRY | \
			 RPOST_QP_MAX_QP_RD_ATOMIC)

/* RPOST_QP_* flags of the queue pairs that rp_create_own() makes. */
extern uint32_t rp_qp_flags;

int rp_modify(struct rp_end *end, const struct rpost_qp_attr *attr);
int rp_move(struct rp_end *end, uint32_t state);
int rp_init_qp_attr(struct rp_end *end, uint32_t state,
		    struct rpost_qp_attr *attr);
int rp_move_connected(struct rp_end *end, uint32_t state);
int rp_connect_qp(struct rp_end *end, uint32_t qp_num);
int rp_query_qp(struct rp_end *end, struct rpost_query_qp *cmd);
int rp_qp_state(struct rp_end *end);
int rp_count_wrs(struct rp_end *end, uint32_t flags, struct rpost_count_wrs *cmd);
int rp_query_gids(int fd, uint32_t device, uint32_t port, uint32_t first,
		  struct rpost_gid *gids, uint32_t *count);
int rp_own_gid(struct rp_end *end, struct rpost_gid *gid);
int rp_own_addr(struct rp_end *end, struct rpost_ah_attr *ah);
int rp_create_own(struct rp_end *end, uint32_t type, uint32_t srq);
struct rpost_qp_attr rp_init_attr(uint32_t type, uint8_t port);
struct rpost_qp_attr rp_rtr_attr(uint32_t type, const struct rpost_ah_attr *ah,
				 uint32_t dest);
struct rpost_qp_attr rp_rts_attr(uint32_t type);
int rp_bring_up(struct rp_end *end, uint32_t type, uint32_t dest);
int rp_bring_up_by(struct rp_end *end, uint32_t type, const struct rpost_ah_attr *ah,
		   uint32_t dest);
int rp_own_join(struct rp_end *a, struct rp_end *b, uint32_t type);

static inline int rp_own_pair(struct rp_end *a, struct rp_end *b, uint32_t type)
{
	RP_TRY(rp_end_init(a));
	RP_TRY(rp_end_init(b));
	return rp_own_join(a, b, type);
}

/* ------------------------------------------------------------ datagrams */

int rp_create_ah(int fd, uint32_t pd, const struct rpost_ah_attr *attr,
		 uint32_t *handle);
int rp_own_ah(struct rp_end *end, uint32_t *handle);
struct rp_send rp_datagram(uint32_t ah, uint32_t to, uint64_t wr_id, void *addr,
			   uint32_t length, uint32_t lkey);
struct rp_send rp_empty_datagram(uint32_t ah, uint32_t to, uint64_t wr_id);
int rp_mcast(int fd, unsigned long nr, uint32_t qp, uint8_t x);

/* ------------------------------------------------- shared receive queues */

int rp_create_srq(int fd, uint32_t pd, uint32_t max_wr,
		  struct rpost_create_srq *cmd);
int rp_query_srq(int fd, uint32_t srq, struct rpost_query_srq *cmd);
int rp_srq_limit(int fd, uint32_t srq, uint32_t limit);
int rp_post_srq_at(int fd, uint32_t srq, uint64_t wr_id, uint64_t addr,
		   uint32_t length, uint32_t lkey);

static inline int rp_post_srq(int fd, uint32_t srq, uint64_t wr_id, void *addr,
			      uint32_t length, uint32_t lkey)
{
	return rp_post_srq_at(fd, srq, wr_id, (uintptr_t)addr, length, lkey);
}

/* --------------------------------------------------- asynchronous events */

int rp_async_channel(int fd, uint32_t device);
int rp_async_wait(int channel, uint32_t type, struct rpost_async_event *event);
int rp_reach_limit(struct rp_end *sender, struct rp_end *receiver,
		   uint32_t srq);

#endif /* RPOST_OWN_H */
