// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Helpers for API selftests without ids; verbs_test.h describes them. */
#include <stdio.h>
#include <stdlib.h>

#include "verbs_test.h"

static int complain(const char *what, int err)
{
	fprintf(stderr, "# %s: %s\n", what, strerror(err));
	return err;
}

static bool is_ip4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static int find_gid(struct device *dev)
{
	struct ibv_gid_entry table[64];
	ssize_t i, n, best = -1;

	n = ibv_query_gid_table(dev->verbs, table, 64, 0);
	if (n < 0)
		return complain("ibv_query_gid_table", (int)-n);
	for (i = 0; i < n; i++)
		if (best < 0 || is_ip4(&table[i].gid))
			best = i;
	if (best < 0)
		return complain("no GID", ENOENT);
	dev->gid = table[best].gid;
	dev->gid_index = (uint8_t)table[best].gid_index;
	dev->port = (uint8_t)table[best].port_num;
	return 0;
}

int device_open(struct device *dev)
{
	struct ibv_device **list;

	memset(dev, 0, sizeof(*dev));
	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		return complain("no device", ENODEV);
	dev->verbs = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!dev->verbs)
		return complain("ibv_open_device", errno);
	dev->pd = ibv_alloc_pd(dev->verbs);
	if (!dev->pd)
		return complain("ibv_alloc_pd", errno);
	return find_gid(dev);
}

void device_close(struct device *dev)
{
	if (dev->pd && ibv_dealloc_pd(dev->pd))
		complain("ibv_dealloc_pd", errno);
	if (dev->verbs)
		ibv_close_device(dev->verbs);
}

struct ibv_qp_cap side_cap(void)
{
	return (struct ibv_qp_cap) {
		.max_send_wr = 16,
		.max_recv_wr = 16,
		.max_send_sge = 4,
		.max_recv_sge = 4,
		.max_inline_data = 64,
	};
}

struct ibv_qp_init_attr_ex side_attr_ex(struct device *dev, struct ibv_cq *cq,
					enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex) {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = side_cap(),
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev->pd,
		.send_ops_flags = type == IBV_QPT_RC ? OPS_RC :
				  type == IBV_QPT_UC ? OPS_UC : OPS_UD,
	};
}

int side_prepare(struct device *dev, struct side *side, struct ibv_cq *cq)
{
	memset(side, 0, sizeof(*side));
	if (posix_memalign((void **)&side->buf, 4096, BUF_SIZE)) {
		side->buf = NULL;
		return complain("memory", ENOMEM);
	}
	memset(side->buf, POISON, BUF_SIZE);
	side->mr = ibv_reg_mr(dev->pd, side->buf, BUF_SIZE, ALL_RIGHTS);
	if (!side->mr)
		return complain("ibv_reg_mr", errno);
	side->own_cq = !cq;
	side->cq = cq ? cq : ibv_create_cq(dev->verbs, 64, NULL, NULL, 0);
	return side->cq ? 0 : complain("ibv_create_cq", errno);
}

int side_open(struct device *dev, struct side *side, enum ibv_qp_type type,
	      struct ibv_cq *cq, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.cap = side_cap(),
		.qp_type = type,
		.srq = srq,
	};
	int err;

	err = side_prepare(dev, side, cq);
	if (err)
		return err;
	attr.send_cq = attr.recv_cq = side->cq;
	side->qp = ibv_create_qp(dev->pd, &attr);
	return side->qp ? 0 : complain("ibv_create_qp", errno);
}

void side_close(struct side *side)
{
	if (side->qp && ibv_destroy_qp(side->qp))
		complain("ibv_destroy_qp", errno);
	if (side->own_cq && side->cq && ibv_destroy_cq(side->cq))
		complain("ibv_destroy_cq", errno);
	if (side->mr && ibv_dereg_mr(side->mr))
		complain("ibv_dereg_mr", errno);
	free(side->buf);
	memset(side, 0, sizeof(*side));
}

int attr_init(struct device *dev, struct ibv_qp *qp, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_INIT,
		.port_num = dev->port,
		.qkey = TEST_QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	if (qp->qp_type == IBV_QPT_UC)
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
}

int attr_rtr(struct device *dev, struct ibv_qp *qp, uint32_t dest_qpn,
	     uint32_t psn, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE;

	*attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = own_address(dev),
	};
	if (qp->qp_type == IBV_QPT_UD)
		return mask;
	mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return mask;
}

int attr_rts(struct ibv_qp *qp, uint32_t psn, struct ibv_qp_attr *attr)
{
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	*attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = 20,
		.retry_cnt = 6,
		.rnr_retry = 5,
		.max_rd_atomic = 3,
	};
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return mask;
}

int bring_up(struct device *dev, struct ibv_qp *qp, uint32_t dest_qpn,
	     uint32_t sq_psn, uint32_t rq_psn)
{
	struct ibv_qp_attr attr;
	int err, mask;

	mask = attr_init(dev, qp, &attr);
	err = ibv_modify_qp(qp, &attr, mask);
	if (err)
		return complain("to INIT", err);
	mask = attr_rtr(dev, qp, dest_qpn, rq_psn, &attr);
	err = ibv_modify_qp(qp, &attr, mask);
	if (err)
		return complain("to RTR", err);
	mask = attr_rts(qp, sq_psn, &attr);
	err = ibv_modify_qp(qp, &attr, mask);
	return err ? complain("to RTS", err) : 0;
}

int bring_up_pair(struct device *dev, struct side *a, struct side *b)
{
	int err;

	err = bring_up(dev, a->qp, b->qp->qp_num, TEST_PSN, TEST_PSN + 1);
	return err ? err : bring_up(dev, b->qp, a->qp->qp_num, TEST_PSN + 1,
				    TEST_PSN);
}

int set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

int query_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err;

	err = ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
	if (err) {
		complain("ibv_query_qp", err);
		return -1;
	}
	return attr.qp_state;
}

struct ibv_ah_attr own_address(struct device *dev)
{
	return (struct ibv_ah_attr) {
		.is_global = 1,
		.grh = {
			.dgid = dev->gid,
			.sgid_index = dev->gid_index,
			.hop_limit = 64,
		},
		.port_num = dev->port,
	};
}

int post_recv(struct side *side, uint64_t wr_id, size_t offset, size_t length)
{
	struct ibv_sge sge = side_sge(side, offset, length);
	struct ibv_recv_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = length > 0,
	};

	return ibv_post_recv(side->qp, &wr, &bad);
}

int post_send(struct side *side, uint64_t wr_id, size_t offset, size_t length)
{
	struct ibv_sge sge = side_sge(side, offset, length);
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = length > 0,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	return ibv_post_send(side->qp, &wr, &bad);
}
