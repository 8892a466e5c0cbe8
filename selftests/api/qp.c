// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests queue pairs without connection ids: their states, data in both
 * directions, and posts that are refused.  A failure means that a queue pair
 * accepts a wrong transition or post, or loses data.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <unistd.h>

#include "verbs_test.h"

FIXTURE(qp) {
	struct device dev;
	struct side a, b;
	struct ibv_wc wc;
};

FIXTURE_VARIANT(qp) {
	enum ibv_qp_type type;
};

FIXTURE_VARIANT_ADD(qp, rc) { .type = IBV_QPT_RC };
FIXTURE_VARIANT_ADD(qp, uc) { .type = IBV_QPT_UC };
FIXTURE_VARIANT_ADD(qp, ud) { .type = IBV_QPT_UD };

FIXTURE_SETUP(qp)
{
	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, side_open(&self->dev, &self->a, variant->type, NULL, NULL));
	ASSERT_EQ(0, side_open(&self->dev, &self->b, variant->type, NULL, NULL));
}

FIXTURE_TEARDOWN(qp)
{
	side_close(&self->a);
	side_close(&self->b);
	device_close(&self->dev);
}

TEST_F(qp, as_made)
{
	struct ibv_qp *qp = self->a.qp;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	EXPECT_EQ(self->dev.verbs, qp->context);
	EXPECT_EQ(self->dev.pd, qp->pd);
	EXPECT_EQ(self->a.cq, qp->send_cq);
	EXPECT_EQ(self->a.cq, qp->recv_cq);
	EXPECT_EQ(NULL, qp->srq);
	EXPECT_EQ(variant->type, qp->qp_type);
	EXPECT_EQ(IBV_QPS_RESET, qp->state);
	EXPECT_NE(0, qp->qp_num);
	EXPECT_NE(self->b.qp->qp_num, qp->qp_num);
	/* The program has not asked for extended calls. */
	EXPECT_EQ(NULL, ibv_qp_to_qp_ex(qp));

	ASSERT_EQ(0, ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CAP, &init));
	EXPECT_EQ(IBV_QPS_RESET, attr.qp_state);
	EXPECT_LE(16, attr.cap.max_send_wr);
	EXPECT_LE(16, attr.cap.max_recv_wr);
	EXPECT_LE(4, attr.cap.max_send_sge);
	EXPECT_LE(4, attr.cap.max_recv_sge);
	EXPECT_LE(64, attr.cap.max_inline_data);
	EXPECT_EQ(self->a.cq, init.send_cq);
	EXPECT_EQ(self->a.cq, init.recv_cq);
	EXPECT_EQ(NULL, init.srq);
	EXPECT_EQ(variant->type, init.qp_type);
	EXPECT_EQ(0, init.sq_sig_all);
	EXPECT_LE(16, init.cap.max_send_wr);
}

TEST_F(qp, states)
{
	struct ibv_qp *qp = self->a.qp;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int mask;

	mask = attr_init(&self->dev, qp, &attr);
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, mask));
	EXPECT_EQ(IBV_QPS_INIT, qp->state);
	EXPECT_EQ(IBV_QPS_INIT, query_state(qp));
	mask = attr_rtr(&self->dev, qp, self->b.qp->qp_num, TEST_PSN, &attr);
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, mask));
	EXPECT_EQ(IBV_QPS_RTR, qp->state);
	EXPECT_EQ(IBV_QPS_RTR, query_state(qp));
	mask = attr_rts(qp, TEST_PSN + 1, &attr);
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, mask));
	EXPECT_EQ(IBV_QPS_RTS, qp->state);

	memset(&attr, 0xff, sizeof(attr));
	memset(&init, 0xff, sizeof(init));
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, (IBV_QP_DEST_QPN << 1) - 1, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(self->dev.port, attr.port_num);
	EXPECT_EQ(0, attr.pkey_index);
	EXPECT_EQ(TEST_PSN + 1, attr.sq_psn);
	if (variant->type == IBV_QPT_UD) {
		EXPECT_EQ(TEST_QKEY, attr.qkey);
		return;
	}
	EXPECT_EQ(IBV_MTU_1024, attr.path_mtu);
	EXPECT_EQ(self->b.qp->qp_num, attr.dest_qp_num);
	EXPECT_EQ(TEST_PSN, attr.rq_psn);
	EXPECT_EQ(1, attr.ah_attr.is_global);
	EXPECT_EQ(0, memcmp(&self->dev.gid, &attr.ah_attr.grh.dgid, 16));
	EXPECT_EQ(self->dev.gid_index, attr.ah_attr.grh.sgid_index);
	EXPECT_EQ(self->dev.port, attr.ah_attr.port_num);
	EXPECT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
	if (variant->type != IBV_QPT_RC)
		return;
	EXPECT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
	EXPECT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC);
	EXPECT_EQ(20, attr.timeout);
	EXPECT_EQ(6, attr.retry_cnt);
	EXPECT_EQ(5, attr.rnr_retry);
	EXPECT_EQ(12, attr.min_rnr_timer);
	EXPECT_LE(3, attr.max_rd_atomic);
	EXPECT_LE(4, attr.max_dest_rd_atomic);
}

/*
 * ibv_query_qp() ignores unnamed bits below IBV_QP_RATE_LIMIT; pyverbs asks for
 * 0x1ffffff.  Greater bits are not supported by uverbs.
 */
TEST_F(qp, queried_with_any_bits)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int bit;

	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	for (bit = 0; bit < 31; bit++) {
		EXPECT_EQ(1 << bit < IBV_QP_RATE_LIMIT ? 0 : EOPNOTSUPP,
			  ibv_query_qp(self->a.qp, &attr, 1 << bit, &init))
			TH_LOG("bit %d", bit);
	}
	attr.qp_state = IBV_QPS_UNKNOWN;
	ASSERT_EQ(0, ibv_query_qp(self->a.qp, &attr, 0x1ffffff, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(EOPNOTSUPP, ibv_query_qp(self->a.qp, &attr, -1, &init));
}

/* These attributes may change in RTS without a change of state. */
TEST_F(qp, changed_in_rts)
{
	struct ibv_qp *qp = self->a.qp;
	struct ibv_qp_attr attr = {
		/* The right to bind memory windows is taken, if only by name. */
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_MW_BIND,
		.min_rnr_timer = 20,
		.qkey = TEST_QKEY + 1,
	};
	struct ibv_qp_init_attr init;
	int mask = variant->type == IBV_QPT_UD ? IBV_QP_QKEY :
		   variant->type == IBV_QPT_UC ? IBV_QP_ACCESS_FLAGS :
		   IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER;

	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	/* A change to RTS from RTS is allowed. */
	attr.qp_state = IBV_QPS_RTS;
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask));
	EXPECT_EQ(IBV_QPS_RTS, qp->state);
	ASSERT_EQ(0, ibv_query_qp(qp, &attr, mask, &init));
	if (variant->type == IBV_QPT_UD) {
		EXPECT_EQ(TEST_QKEY + 1, attr.qkey);
		return;
	}
	EXPECT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
	EXPECT_FALSE(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
	if (variant->type == IBV_QPT_RC)
		EXPECT_EQ(20, attr.min_rnr_timer);
}

/* Programs give these rights whatever the kernel and the device support. */
TEST_F(qp, flush_rights)
{
	/* IBV_ACCESS_FLUSH_GLOBAL, IBV_ACCESS_FLUSH_PERSISTENT of newer headers */
	struct ibv_qp_attr attr = {
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | 1 << 8 | 1 << 9,
	};
	struct ibv_qp_init_attr init;
	int mask = IBV_QP_ACCESS_FLAGS;

	if (variant->type == IBV_QPT_UD)
		return;
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	ASSERT_EQ(0, ibv_modify_qp(self->a.qp, &attr, mask));
	ASSERT_EQ(0, ibv_query_qp(self->a.qp, &attr, mask, &init));
	EXPECT_TRUE(attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
	EXPECT_FALSE(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ);
}

/* A change that is refused must change nothing. */
TEST_F(qp, refused)
{
	struct ibv_qp *qp = self->a.qp;
	struct ibv_qp_attr attr;
	int mask;

	EXPECT_EQ(EINVAL, set_state(qp, IBV_QPS_RTS));
	EXPECT_EQ(EINVAL, set_state(qp, IBV_QPS_RTR));
	EXPECT_EQ(IBV_QPS_RESET, qp->state);

	mask = attr_init(&self->dev, qp, &attr);
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, mask & ~IBV_QP_PKEY_INDEX));
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, mask & ~IBV_QP_PORT));
	/* The transition does not take this attribute. */
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, mask | IBV_QP_SQ_PSN));
	EXPECT_NE(0, ibv_modify_qp(qp, &attr, mask | 1 << 30));
	attr.port_num = 77;
	EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, mask));
	attr.port_num = self->dev.port;
	/* Over rdma-core, rxe accepts any P_Key index. */
	if (!over_incumbent()) {
		attr.pkey_index = 9999;
		EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, mask));
	}
	EXPECT_EQ(IBV_QPS_RESET, qp->state);
	EXPECT_EQ(IBV_QPS_RESET, query_state(qp));

	mask = attr_init(&self->dev, qp, &attr);
	ASSERT_EQ(0, ibv_modify_qp(qp, &attr, mask));
	mask = attr_rtr(&self->dev, qp, self->b.qp->qp_num, 0, &attr);
	if (variant->type != IBV_QPT_UD) {
		EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, mask & ~IBV_QP_AV));
		EXPECT_EQ(EINVAL, ibv_modify_qp(qp, &attr, mask & ~IBV_QP_RQ_PSN));
		attr.ah_attr.grh.sgid_index = 250;
		EXPECT_NE(0, ibv_modify_qp(qp, &attr, mask));
	}
	EXPECT_EQ(IBV_QPS_INIT, qp->state);
	EXPECT_EQ(IBV_QPS_INIT, query_state(qp));
	EXPECT_NE(0, set_state(qp, 77));
}

/* A queue pair in the RESET state accepts no work requests. */
TEST_F(qp, posts_before_their_time)
{
	if (over_incumbent())
		SKIP(return, "its providers do not look at the state");
	EXPECT_EQ(EINVAL, post_recv(&self->a, 1, 0, 64));
	if (variant->type != IBV_QPT_UD)
		EXPECT_EQ(EINVAL, post_send(&self->a, 1, 0, 64));
	EXPECT_TRUE(no_comp(self->a.cq));
}

TEST_F(qp, receives_are_flushed)
{
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	ASSERT_EQ(0, post_recv(&self->a, 5, 0, 64));
	ASSERT_EQ(0, post_recv(&self->a, 6, 64, 64));
	ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_ERR, self->a.qp->state);
	EXPECT_EQ(IBV_QPS_ERR, query_state(self->a.qp));
	ASSERT_COMP(self->a.cq, &self->wc, IBV_WC_WR_FLUSH_ERR, 5);
	EXPECT_EQ(self->a.qp->qp_num, self->wc.qp_num);
	ASSERT_EQ(1, wait_comp(self->a.cq, &self->wc));
	EXPECT_EQ(6, self->wc.wr_id);
	EXPECT_TRUE(no_comp(self->a.cq));
	/* Over rdma-core, rxe does not flush receives that are posted now. */
	if (over_incumbent())
		return;
	ASSERT_EQ(0, post_recv(&self->a, 7, 0, 64));
	ASSERT_COMP(self->a.cq, &self->wc, IBV_WC_WR_FLUSH_ERR, 7);
	EXPECT_TRUE(no_comp(self->a.cq));
}

/* RESET makes a queue pair usable again. */
TEST_F(qp, used_again)
{
	struct ibv_wc wc;
	int i;

	if (variant->type == IBV_QPT_UD)
		SKIP(return, "see datagrams");
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
		fill(self->a.buf, 100, i + 1);
		ASSERT_EQ(0, post_recv(&self->b, 20 + i, 0, 200));
		ASSERT_EQ(0, post_recv(&self->b, 90, 0, 200));
		ASSERT_EQ(0, post_send(&self->a, 10 + i, 0, 100));
		ASSERT_COMP(self->b.cq, &wc, IBV_WC_SUCCESS, 20 + i);
		EXPECT_EQ(100, wc.byte_len);
		EXPECT_TRUE(filled(self->b.buf, 100, i + 1));
		ASSERT_COMP(self->a.cq, &wc, IBV_WC_SUCCESS, 10 + i);
		ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
		ASSERT_EQ(0, set_state(self->b.qp, IBV_QPS_RESET));
		EXPECT_EQ(IBV_QPS_RESET, self->a.qp->state);
		EXPECT_EQ(IBV_QPS_RESET, query_state(self->a.qp));
		/* RESET has discarded the receive that was left. */
		EXPECT_TRUE(no_comp(self->b.cq));
	}
}

FIXTURE(rc) {
	struct device dev;
	struct side a, b;
	struct ibv_wc wc;
};

FIXTURE_SETUP(rc)
{
	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, side_open(&self->dev, &self->a, IBV_QPT_RC, NULL, NULL));
	ASSERT_EQ(0, side_open(&self->dev, &self->b, IBV_QPT_RC, NULL, NULL));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
}

FIXTURE_TEARDOWN(rc)
{
	side_close(&self->a);
	side_close(&self->b);
	device_close(&self->dev);
}

static int post_rdma(struct side *from, struct side *to,
		     enum ibv_wr_opcode opcode, size_t length)
{
	struct ibv_sge sge = side_sge(from, 0, length);
	struct ibv_send_wr *bad, wr = {
		.wr_id = opcode,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(0x12345678),
		.wr.rdma = {
			.remote_addr = addr64(to->buf + 8192),
			.rkey = to->mr->rkey,
		},
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr64(to->buf + 8192);
		wr.wr.atomic.rkey = to->mr->rkey;
		wr.wr.atomic.compare_add = 5;
	}
	return ibv_post_send(from->qp, &wr, &bad);
}

TEST_F(rc, operations)
{
	uint64_t word = 37;

	fill(self->a.buf, 5000, 1);
	ASSERT_EQ(0, post_rdma(&self->a, &self->b, IBV_WR_RDMA_WRITE, 5000));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_RDMA_WRITE,
		       IBV_WR_RDMA_WRITE);
	EXPECT_EQ(self->a.qp->qp_num, self->wc.qp_num);
	EXPECT_TRUE(filled(self->b.buf + 8192, 5000, 1));

	fill(self->b.buf + 8192, 5000, 2);
	ASSERT_EQ(0, post_rdma(&self->a, &self->b, IBV_WR_RDMA_READ, 5000));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_RDMA_READ,
		       IBV_WR_RDMA_READ);
	EXPECT_TRUE(filled(self->a.buf, 5000, 2));

	ASSERT_EQ(0, post_recv(&self->b, 9, 0, 0));
	ASSERT_EQ(0, post_rdma(&self->a, &self->b, IBV_WR_RDMA_WRITE_WITH_IMM,
			       300));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_RDMA_WRITE,
		       IBV_WR_RDMA_WRITE_WITH_IMM);
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV_RDMA_WITH_IMM, 9);
	EXPECT_EQ(htonl(0x12345678), self->wc.imm_data);

	ASSERT_EQ(0, post_recv(&self->b, 10, 0, 300));
	ASSERT_EQ(0, post_rdma(&self->a, &self->b, IBV_WR_SEND_WITH_IMM, 300));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND,
		       IBV_WR_SEND_WITH_IMM);
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, 10);
	EXPECT_EQ(htonl(0x12345678), self->wc.imm_data);
	EXPECT_EQ(300, self->wc.byte_len);

	memcpy(self->b.buf + 8192, &word, sizeof(word));
	ASSERT_EQ(0, post_rdma(&self->a, &self->b, IBV_WR_ATOMIC_FETCH_AND_ADD,
			       8));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_FETCH_ADD,
		       IBV_WR_ATOMIC_FETCH_AND_ADD);
	EXPECT_EQ(0, memcmp(self->a.buf, &word, sizeof(word)));
	word += 5;
	EXPECT_EQ(0, memcmp(self->b.buf + 8192, &word, sizeof(word)));
}

/* A message with an invalid R_Key is received with an error. */
TEST_F(rc, send_with_invalidation)
{
	struct ibv_sge sge = side_sge(&self->a, 0, 100);
	struct ibv_send_wr *bad, wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = 0xdeadbe00,
	};

	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 100));
	ASSERT_EQ(0, ibv_post_send(self->a.qp, &wr, &bad));
	ASSERT_EQ(1, wait_comp(self->b.cq, &self->wc));
	EXPECT_EQ(2, self->wc.wr_id);
	EXPECT_NE(IBV_WC_SUCCESS, self->wc.status);
}

/*
 * Opcodes that in-kernel queue pairs lack are refused; the work requests before
 * them are posted.
 */
TEST_F(rc, opcodes_of_others)
{
	static const unsigned int opcodes[] = {
		IBV_WR_LOCAL_INV, IBV_WR_BIND_MW, IBV_WR_TSO, 14,
		IBV_WR_ATOMIC_WRITE, 99,
	};
	struct ibv_sge sge = side_sge(&self->a, 0, 8);
	struct ibv_send_wr *bad, wr[2] = {
		{ .wr_id = 1, .next = &wr[1], .opcode = IBV_WR_SEND,
		  .sg_list = &sge, .num_sge = 1,
		  .send_flags = IBV_SEND_SIGNALED },
		{ .wr_id = 2, .sg_list = &sge, .num_sge = 1,
		  .send_flags = IBV_SEND_SIGNALED },
	};
	size_t i;

	if (over_incumbent())
		SKIP(return, "rxe's user queue pairs can some of them");
	for (i = 0; i < ARRAY_SIZE(opcodes); i++) {
		wr[1].opcode = opcodes[i];
		ASSERT_EQ(0, post_recv(&self->b, 3, 0, 8));
		bad = NULL;
		ASSERT_EQ(EOPNOTSUPP, ibv_post_send(self->a.qp, wr, &bad));
		EXPECT_EQ(&wr[1], bad);
		ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 1);
		ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, 3);
		EXPECT_TRUE(no_comp(self->a.cq));
	}
}

TEST_F(rc, no_such_calls)
{
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };
	struct ibv_ece ece = {};
	int ret;

	ret = ibv_modify_qp_rate_limit(self->a.qp, &rate);
	EXPECT_TRUE(ret == EINVAL || ret == EOPNOTSUPP)
		TH_LOG("rate limit: %d", ret);
	EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(self->a.qp, &ece));
	EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(self->a.qp, &ece));
	EXPECT_EQ(0, ibv_query_qp_data_in_order(self->a.qp, IBV_WR_RDMA_WRITE,
						0));
	EXPECT_NE(0, ibv_attach_mcast(self->a.qp, &self->dev.gid, 0));
}

TEST(creation_is_refused)
{
	struct ibv_qp_init_attr attr = {
		.cap = side_cap(),
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_device_attr limits;
	struct device dev;
	struct ibv_cq *cq;

	ASSERT_EQ(0, device_open(&dev));
	ASSERT_EQ(0, ibv_query_device(dev.verbs, &limits));
	cq = ibv_create_cq(dev.verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	attr.send_cq = attr.recv_cq = cq;

	attr.cap.max_send_wr = limits.max_qp_wr + 1;
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_qp(dev.pd, &attr));
	attr.cap = side_cap();
	attr.cap.max_recv_sge = limits.max_sge + 1;
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_qp(dev.pd, &attr));
	attr.cap = side_cap();
	attr.qp_type = 77;
	EXPECT_EQ(NULL, ibv_create_qp(dev.pd, &attr));
	EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP);
	attr.qp_type = IBV_QPT_RAW_PACKET;
	EXPECT_EQ(NULL, ibv_create_qp(dev.pd, &attr));
	EXPECT_TRUE(errno == EINVAL || errno == EOPNOTSUPP || errno == EPERM);
	/* The refused queue pairs hold no reference to the queue. */
	EXPECT_EQ(0, ibv_destroy_cq(cq));
	device_close(&dev);
}

TEST(in_use)
{
	struct device dev;
	struct side side;

	ASSERT_EQ(0, device_open(&dev));
	ASSERT_EQ(0, side_open(&dev, &side, IBV_QPT_RC, NULL, NULL));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(dev.pd));
	EXPECT_EQ(EBUSY, ibv_destroy_cq(side.cq));
	side_close(&side);
	device_close(&dev);
}

/* A program may break an id's connection by modifying its queue pair. */
TEST(queue_pair_of_an_id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;
	struct pair p;
	int i;

	ASSERT_EQ(0, pair_open(&p, NULL));
	ASSERT_EQ(0, ibv_query_qp(p.client.id->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_RTS, attr.qp_state);
	EXPECT_EQ(p.server.id->qp->qp_num, attr.dest_qp_num);
	/* Attributes may come with the state that it has. */
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .min_rnr_timer = 1 };
	EXPECT_EQ(0, ibv_modify_qp(p.client.id->qp, &attr,
				   IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER));
	EXPECT_EQ(0, set_state(p.client.id->qp, IBV_QPS_SQD));
	EXPECT_EQ(IBV_QPS_SQD, query_state(p.client.id->qp));
	/* A device can refuse it while it drains the queue. */
	for (i = 0; i < 5000 && set_state(p.client.id->qp, IBV_QPS_RTS) == EINVAL; i++)
		usleep(1000);
	EXPECT_EQ(IBV_QPS_RTS, query_state(p.client.id->qp));
	ASSERT_EQ(0, end_recv(&p.client, (void *)5, 0, 64));
	ASSERT_EQ(0, set_state(p.client.id->qp, IBV_QPS_ERR));
	EXPECT_EQ(IBV_QPS_ERR, query_state(p.client.id->qp));
	ASSERT_COMP(p.client.id->recv_cq, &wc, IBV_WC_WR_FLUSH_ERR, 5);
	EXPECT_EQ(0, set_state(p.client.id->qp, IBV_QPS_RESET));
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_INIT, .port_num = p.client.id->port_num,
	};
	EXPECT_EQ(0, ibv_modify_qp(p.client.id->qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
				   IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
	EXPECT_EQ(0, end_recv(&p.client, (void *)6, 0, 64));
	pair_close(&p);
}

TEST_HARNESS_MAIN
