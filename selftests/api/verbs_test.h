/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers for API selftests of queue pairs without connection ids: a device,
 * and queue pairs that the test brings up itself, with both ends in one
 * program.
 *
 * Functions return 0, or an errno value after they have printed the error on
 * stderr, unless their comment says otherwise.
 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include "rdma_test.h"

#define TEST_QKEY	0x11111111u
#define TEST_PSN	0x123456u	/* sq_psn of a; for b one more */
#define GRH_BYTES	40

struct device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	union ibv_gid gid;		/* of IPv4 if there is one */
	uint8_t gid_index;
	uint8_t port;
};

int device_open(struct device *dev);
void device_close(struct device *dev);

/* A queue pair, its completion queue, and a buffer with ALL_RIGHTS. */
struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buf;
	struct ibv_mr *mr;
	bool own_cq;
};

/* Return 16 work requests of 4 entries, and 64 inline bytes. */
struct ibv_qp_cap side_cap(void);

/* The extended calls that each type of queue pair has. */
#define OPS_UD	(IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define OPS_UC	(OPS_UD | IBV_QP_EX_WITH_RDMA_WRITE | \
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
		 IBV_QP_EX_WITH_SEND_WITH_INV)
#define OPS_RC	(OPS_UC | IBV_QP_EX_WITH_RDMA_READ | \
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)

/* Return attributes for ibv_create_qp_ex() with all calls of the type. */
struct ibv_qp_init_attr_ex side_attr_ex(struct device *dev, struct ibv_cq *cq,
					enum ibv_qp_type type);

/* Set up all but the queue pair; if cq is NULL, create a completion queue. */
int side_prepare(struct device *dev, struct side *side, struct ibv_cq *cq);
int side_open(struct device *dev, struct side *side, enum ibv_qp_type type,
	      struct ibv_cq *cq, struct ibv_srq *srq);
void side_close(struct side *side);

/* Set the attributes of a step for ibv_modify_qp(); return their mask. */
int attr_init(struct device *dev, struct ibv_qp *qp, struct ibv_qp_attr *attr);
int attr_rtr(struct device *dev, struct ibv_qp *qp, uint32_t dest_qpn,
	     uint32_t psn, struct ibv_qp_attr *attr);
int attr_rts(struct ibv_qp *qp, uint32_t psn, struct ibv_qp_attr *attr);

/* Take all steps; the PSNs are of the first packet sent and received. */
int bring_up(struct device *dev, struct ibv_qp *qp, uint32_t dest_qpn,
	     uint32_t sq_psn, uint32_t rq_psn);
int bring_up_pair(struct device *dev, struct side *a, struct side *b);
int set_state(struct ibv_qp *qp, enum ibv_qp_state state);
/* Return the state by ibv_query_qp(), or -1. */
int query_state(struct ibv_qp *qp);

/* Return the address of the device's own port. */
struct ibv_ah_attr own_address(struct device *dev);

static inline struct ibv_sge side_sge(struct side *side, size_t offset,
				      size_t length)
{
	return (struct ibv_sge) {
		.addr = addr64(side->buf + offset),
		.length = (uint32_t)length,
		.lkey = side->mr->lkey,
	};
}

/* Post a work request with one entry, or with none if length is 0. */
int post_recv(struct side *side, uint64_t wr_id, size_t offset, size_t length);
int post_send(struct side *side, uint64_t wr_id, size_t offset, size_t length);

#endif
