// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that an attacker's work requests on the victim's memory complete with a
 * remote access error and move no data when the victim did not grant the
 * access, when the key is forged or of another domain, or when the range leaves
 * the region.
 */
#include <kselftest_harness.h>

#include "keys_ends.h"

FIXTURE(keys) {
	struct keys k;
};

FIXTURE_SETUP(keys)
{
	ASSERT_EQ(0, keys_ends_init(&self->k));
}

FIXTURE_TEARDOWN(keys)
{
	keys_ends_close(&self->k);
}

/* Run one operation on the victim's memory; return its status. */
static int remote_op(struct keys *k, uint32_t op, uint64_t addr, uint32_t rkey)
{
	struct rp_send send = rp_send(op, 3, (void *)(uintptr_t)k->mr.addr,
				      is_atomic(op) ? 8 : KEYS_MSG, k->mr.lkey);
	struct rpost_wc wc;
	int status;

	RP_TRY(rp_join(&k->attacker, &k->victim, k->listener, 0));
	send.wr.remote_addr = addr;
	send.wr.rkey = rkey;
	send.wr.compare_add = 1;
	status = rp_post_send(&k->attacker, &send);
	if (!status)
		status = rp_wait_cq(&k->attacker.cq, &wc) == 1 ?
			 (int)wc.status : -ETIME;
	RP_TRY(rp_leave(&k->attacker));
	RP_TRY(rp_leave(&k->victim));
	return status;
}

TEST_F(keys, remote_access)
{
	const struct {
		uint32_t op, access;
	} needs[] = {
		{ RPOST_WR_RDMA_WRITE, RPOST_ACCESS_REMOTE_WRITE },
		{ RPOST_WR_RDMA_READ, RPOST_ACCESS_REMOTE_READ },
		{ RPOST_WR_ATOMIC_FETCH_AND_ADD, RPOST_ACCESS_REMOTE_ATOMIC },
	};
	struct keys *k = &self->k;
	struct rpost_reg_mr mr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(needs); i++) {
		ASSERT_EQ(0, rp_reg_mr(k->victim.fd, k->victim.pd,
				       k->victim_mem, k->bytes,
				       KEYS_RW | (KEYS_ALL & ~needs[i].access),
				       &mr));
		EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR,
			  remote_op(k, needs[i].op, mr.addr, mr.rkey))
			TH_LOG("op %u", needs[i].op);
		EXPECT_TRUE(all_bytes(k->mem, k->bytes, 'a'));
		EXPECT_TRUE(all_bytes(k->victim_mem, k->bytes, 'v'));
		ASSERT_EQ(0, rp_destroy(k->victim.fd, RPOST_OBJ_MR,
					mr.handle));
		/*
		 * A right alone is not enough, nor is the key of a region that
		 * is gone.
		 */
		ASSERT_EQ(0, rp_reg_mr(k->victim.fd, k->victim.pd,
				       k->victim_mem, k->bytes,
				       KEYS_RW | needs[i].access, &mr));
		EXPECT_EQ(RPOST_WC_SUCCESS,
			  remote_op(k, needs[i].op, mr.addr, mr.rkey))
			TH_LOG("op %u", needs[i].op);
		memset(k->mem, 'a', k->bytes);
		memset(k->victim_mem, 'v', k->bytes);
		ASSERT_EQ(0, rp_destroy(k->victim.fd, RPOST_OBJ_MR,
					mr.handle));
		EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR,
			  remote_op(k, needs[i].op, mr.addr, mr.rkey))
			TH_LOG("op %u", needs[i].op);
		EXPECT_TRUE(all_bytes(k->victim_mem, k->bytes, 'v'));
	}
}

TEST_F(keys, remote_keys)
{
	struct keys *k = &self->k;
	struct rpost_reg_mr mr;
	uint32_t pd;

	/* Keys of another domain, of no region, and of the attacker. */
	ASSERT_EQ(0, rp_alloc_pd(k->victim.fd, k->victim.device, &pd));
	ASSERT_EQ(0, rp_reg_mr(k->victim.fd, pd, k->victim_mem, k->bytes, KEYS_ALL,
			       &mr));
	const struct {
		uint64_t addr;
		uint32_t rkey;
	} bad[] = {
		{ mr.addr, mr.rkey },
		{ k->victim_mr.addr, 0 },
		{ 0xffff888000000000, 0 },
		{ k->victim_mr.addr, k->victim_mr.rkey ^ 1 },
		{ k->victim_mr.addr, UINT32_MAX },
		{ k->mr.addr, k->mr.lkey },
		{ k->victim_mr.addr - 1, k->victim_mr.rkey },
		{ k->victim_mr.addr + k->bytes - KEYS_MSG + 1, k->victim_mr.rkey },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR,
			  remote_op(k, RPOST_WR_RDMA_WRITE, bad[i].addr,
				    bad[i].rkey))
			TH_LOG("key %u", i);
		EXPECT_EQ(RPOST_WC_REM_ACCESS_ERR,
			  remote_op(k, RPOST_WR_RDMA_READ, bad[i].addr,
				    bad[i].rkey))
			TH_LOG("key %u", i);
		EXPECT_TRUE(all_bytes(k->mem, k->bytes, 'a'));
		EXPECT_TRUE(all_bytes(k->victim_mem, k->bytes, 'v'));
	}
}

TEST_HARNESS_MAIN
