// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests ibv_create_qp_ex(): each type of queue pair gets its extended calls,
 * and unsupported attributes must be refused.
 */
#include <kselftest_harness.h>

#include "verbs_test.h"

FIXTURE(creation) {
	struct device dev;
	struct ibv_cq *cq;
	struct ibv_qp_init_attr_ex init;
};

FIXTURE_SETUP(creation)
{
	ASSERT_EQ(0, device_open(&self->dev));
	self->cq = ibv_create_cq(self->dev.verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, self->cq);
	self->init = side_attr_ex(&self->dev, self->cq, IBV_QPT_RC);
}

FIXTURE_TEARDOWN(creation)
{
	/* Refused queue pairs hold no reference to the queue. */
	EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	device_close(&self->dev);
}

static int try_create(struct device *dev, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp_ex(dev->verbs, init);
	if (!qp)
		return errno ? errno : -1;
	ibv_destroy_qp(qp);
	return 0;
}

TEST_F(creation, without_extended_calls)
{
	struct ibv_qp *qp;

	self->init.comp_mask = IBV_QP_INIT_ATTR_PD;
	qp = ibv_create_qp_ex(self->dev.verbs, &self->init);
	ASSERT_NE(NULL, qp);
	EXPECT_EQ(NULL, ibv_qp_to_qp_ex(qp));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
}

TEST_F(creation, calls_that_a_type_lacks)
{
	self->init.qp_type = IBV_QPT_UC;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
	self->init.qp_type = IBV_QPT_UD;
	self->init.send_ops_flags = OPS_UC;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
	self->init.qp_type = IBV_QPT_RC;
	self->init.send_ops_flags = OPS_RC | IBV_QP_EX_WITH_TSO;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
	self->init.send_ops_flags = OPS_RC | 1ull << 40;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
	self->init.send_ops_flags = OPS_RC;
	EXPECT_EQ(0, try_create(&self->dev, &self->init));
}

TEST_F(creation, calls_of_user_queue_pairs)
{
	if (over_incumbent())
		SKIP(return, "rxe's user queue pairs have them");
	self->init.send_ops_flags = OPS_RC | IBV_QP_EX_WITH_LOCAL_INV;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
	self->init.send_ops_flags = OPS_RC | IBV_QP_EX_WITH_BIND_MW;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
	self->init.send_ops_flags = OPS_RC | IBV_QP_EX_WITH_ATOMIC_WRITE;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
	/* Older headers do not name this bit, IBV_QP_EX_WITH_FLUSH. */
	self->init.send_ops_flags = OPS_RC | 1 << 11;
	EXPECT_EQ(EOPNOTSUPP, try_create(&self->dev, &self->init));
}

TEST_F(creation, bits_that_are_not_known)
{
	self->init.comp_mask |= 1 << 20;
	EXPECT_NE(0, try_create(&self->dev, &self->init));
	self->init.comp_mask &= ~(1 << 20);
	self->init.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	self->init.create_flags = IBV_QP_CREATE_SCATTER_FCS;
	EXPECT_NE(0, try_create(&self->dev, &self->init));
	self->init.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
	self->init.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH;
	EXPECT_NE(0, try_create(&self->dev, &self->init));
	self->init.comp_mask &= ~IBV_QP_INIT_ATTR_RX_HASH;
	EXPECT_EQ(0, try_create(&self->dev, &self->init));
}

TEST_F(creation, without_a_domain)
{
	if (over_incumbent())
		SKIP(return, "its providers do not look");
	self->init.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	EXPECT_EQ(EINVAL, try_create(&self->dev, &self->init));
	self->init.comp_mask |= IBV_QP_INIT_ATTR_PD;
	self->init.pd = NULL;
	EXPECT_EQ(EINVAL, try_create(&self->dev, &self->init));
	self->init.pd = self->dev.pd;
	self->init.send_cq = self->init.recv_cq = NULL;
	EXPECT_EQ(EINVAL, try_create(&self->dev, &self->init));
}

TEST_F(creation, work_queues)
{
	struct ibv_rwq_ind_table_init_attr table = {};
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ,
		.max_wr = 4,
		.max_sge = 1,
		.pd = self->dev.pd,
		.cq = self->cq,
	};
	struct ibv_qp_open_attr open = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM,
	};

	EXPECT_NULL_ERRNO(EOPNOTSUPP, ibv_create_wq(self->dev.verbs, &wq));
	EXPECT_NULL_ERRNO(EOPNOTSUPP, ibv_create_rwq_ind_table(self->dev.verbs, &table));
	EXPECT_NULL_ERRNO(EOPNOTSUPP, ibv_open_qp(self->dev.verbs, &open));
}

TEST_HARNESS_MAIN
