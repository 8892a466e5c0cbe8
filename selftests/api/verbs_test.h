/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For API selftests of queue pairs without connection ids: a device, queue
 * pairs that the test brings up itself, both ends in one program.
 *
 * Functions return 0, or an errno value after they have said on stderr what
 * went wrong, unless their comment says otherwise.
 */
#ifndef VERBS_TEST_H
#define VERBS_TEST_H

#include "rdma_test.h"

#define TEST_QKEY	0x11111111u
#define TEST_PSN	0x123456u	/* the second queue pair's is one more */
#define GRH_BYTES	40

struct device {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	union ibv_gid gid;		/* RoCE v2 over IPv4, if there is one */
	uint8_t gid_index;
	uint8_t port;
};

int device_open(struct device *dev);
void device_close(struct device *dev);

/* A queue pair, the queue of its completions, and a buffer with all rights. */
struct side {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buf;
	struct ibv_mr *mr;
	bool own_cq;
};

/* 16 work requests of 4 entries, 64 bytes inline; no automatic completions. */
struct ibv_qp_cap side_cap(void);
/* What the side needs beside the queue pair; a queue of its own if cq is NULL. */
int side_prepare(struct device *dev, struct side *side, struct ibv_cq *cq);
int side_open(struct device *dev, struct side *side, enum ibv_qp_type type,
	      struct ibv_cq *cq, struct ibv_srq *srq);
void side_close(struct side *side);

/* What ibv_modify_qp() takes for each step; returns the mask. */
int attr_init(struct device *dev, struct ibv_qp *qp, struct ibv_qp_attr *attr);
int attr_rtr(struct device *dev, struct ibv_qp *qp, uint32_t dest_qpn,
	     uint32_t psn, struct ibv_qp_attr *attr);
int attr_rts(struct ibv_qp *qp, uint32_t psn, struct ibv_qp_attr *attr);

/* All the steps; PSNs are given for what the queue pair sends and receives. */
int bring_up(struct device *dev, struct ibv_qp *qp, uint32_t dest_qpn,
	     uint32_t sq_psn, uint32_t rq_psn);
int bring_up_pair(struct device *dev, struct side *a, struct side *b);
int set_state(struct ibv_qp *qp, enum ibv_qp_state state);
/* The state by ibv_query_qp(), or -1. */
int query_state(struct ibv_qp *qp);

/* The address of this very port. */
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

/* As the calls they are named after; the work request has one entry or none. */
int post_recv(struct side *side, uint64_t wr_id, size_t offset, size_t length);
int post_send(struct side *side, uint64_t wr_id, size_t offset, size_t length);

#endif
