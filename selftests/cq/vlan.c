// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests what completions tell of VLANs.  A failure means that a program takes a
 * message for one of another VLAN.  Needs root and rxe.
 */
#include <kselftest_harness.h>

#include "cq_pair.h"
#include "vlan_link.h"

FIXTURE(vlan) {
	struct cq_pair p;
	struct sockaddr_in addr;
	bool able;
};

FIXTURE_VARIANT(vlan) {
	uint32_t flags;		/* RPOST_CQ_* */
};

FIXTURE_VARIANT_ADD(vlan, plain) { 0 };
FIXTURE_VARIANT_ADD(vlan, small) { RPOST_CQ_SMALL_ENTRIES };

FIXTURE_SETUP(vlan)
{
	self->able = vlan_possible();
	if (!self->able)
		return;
	self->addr = rp_addr4;
	ASSERT_EQ(0, vlan_make());
}

FIXTURE_TEARDOWN(vlan)
{
	if (!self->able)
		return;
	EXPECT_EQ(0, vlan_remove());
}

/* Returns the VLAN by which a message came, or a negative errno. */
static int seen_vlan(struct cq_pair *p)
{
	struct rp_send send;
	struct rpost_wc wc;

	send = rp_send(RPOST_WR_SEND, 1, p->buf, 8, p->cmr.lkey);
	RP_TRY(rp_post_recv(&p->s, 1, p->buf + CQ_BYTES, 64, p->smr.lkey));
	RP_TRY(rp_post_send(&p->c, &send));
	if (rp_wait_cq(&p->c.cq, &wc) != 1 || wc.status || wc.vlan)
		return -EIO;
	if (rp_wait_cq(&p->s.cq, &wc) != 1 || wc.status)
		return -EIO;
	return wc.vlan;
}

TEST_F(vlan, of_a_receive)
{
	if (!self->able)
		SKIP(return, "needs root and rxe");
	ASSERT_EQ(0, cq_pair_init(&self->p, variant->flags));
	EXPECT_EQ(0, seen_vlan(&self->p));
	cq_pair_close(&self->p);

	ASSERT_EQ(0, vlan_use());
	ASSERT_EQ(0, cq_pair_init(&self->p, variant->flags));
	EXPECT_EQ(VLAN_ID, seen_vlan(&self->p));
	cq_pair_close(&self->p);
	rp_addr4 = self->addr;
}

TEST_HARNESS_MAIN
