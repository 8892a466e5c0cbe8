// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests what UD queue pairs send and receive, and what an attacker can do with
 * them.  A failure means that a datagram has wrong contents or reaches memory
 * that it must not reach.
 */
#include <kselftest_harness.h>

#include "ud_pair.h"

#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE)

UD_FIXTURE()

TEST_F(ud, sent_with_entries)
{
	struct rp_send send = ud_datagram(&self->p, 1);

	ASSERT_EQ(0, ud_receive(&self->p, 2));
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, UD_MSG);
	/* The header's place, the data, and the byte after it. */
	EXPECT_EQ('a', self->p.bbuf[RP_GRH]);
	EXPECT_EQ('a', self->p.bbuf[RP_GRH + UD_MSG - 1]);
	EXPECT_EQ('b', self->p.bbuf[RP_GRH + UD_MSG]);
	/* The header ends with this host's own address. */
	if (rp_addr4.sin_family)
		EXPECT_EQ(0, memcmp(self->p.bbuf + RP_GRH - 4,
				    &rp_addr4.sin_addr, 4));
}

TEST_F(ud, sent_inline_with_imm)
{
	struct {
		struct rpost_send_wr wr;
		char data[RP_INLINE];
	} send = { .wr = ud_datagram(&self->p, 1).wr };

	send.wr.opcode = RPOST_WR_SEND_WITH_IMM;
	send.wr.imm_data = htonl(0x12345678);
	send.wr.send_flags |= RPOST_SEND_INLINE;
	send.wr.num_sge = 0;
	send.wr.inline_len = RP_INLINE;
	send.wr.size = sizeof(send);
	memset(send.data, 'i', RP_INLINE);
	ASSERT_EQ(0, ud_receive(&self->p, 2));
	ASSERT_EQ(0, rp_post(self->p.a.fd, RPOST_IOC_POST_SEND, self->p.a.qp,
			     &send, sizeof(send), 1, NULL));
	memset(send.data, 'x', RP_INLINE);
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, RP_INLINE);
	EXPECT_EQ(htonl(0x12345678), self->wc.imm_data);
	EXPECT_EQ(RPOST_WC_F_WITH_IMM, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ('i', self->p.bbuf[RP_GRH]);
	EXPECT_EQ('i', self->p.bbuf[RP_GRH + RP_INLINE - 1]);
	EXPECT_EQ('b', self->p.bbuf[RP_GRH + RP_INLINE]);
}

TEST_F(ud, empty)
{
	struct rp_send send = rp_empty_datagram(self->p.ah, self->p.b.qp_num, 1);

	ASSERT_EQ(0, ud_receive(&self->p, 2));
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, 0);
	EXPECT_EQ('b', self->p.bbuf[RP_GRH]);
}

/* The receiver answers to the queue pair number in its completion. */
TEST_F(ud, answered)
{
	struct rp_send send = ud_datagram(&self->p, 1);
	uint32_t ah;

	ASSERT_EQ(0, ud_receive(&self->p, 2));
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, UD_MSG);
	ASSERT_EQ(0, rp_create_ah(self->p.b.fd, self->p.b.pd, &self->p.addr, &ah));
	ASSERT_EQ(0, rp_post_recv(&self->p.a, 3, self->p.abuf, UD_BYTES,
				  self->p.amr.lkey));
	send = rp_datagram(ah, self->wc.src_qp, 4, self->p.bbuf, UD_MSG,
			   self->p.bmr.lkey);
	ASSERT_EQ(0, rp_post_send(&self->p.b, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->p.a.cq, &self->wc));
	EXPECT_EQ(3, self->wc.wr_id);
	EXPECT_EQ(self->p.b.qp_num, self->wc.src_qp);
}

/* No such queue pair, or a wrong Q_Key: the send succeeds, the data is lost. */
TEST_F(ud, lost)
{
	struct rp_send send = ud_datagram(&self->p, 1);

	ASSERT_EQ(0, ud_receive(&self->p, 2));
	send.wr.remote_qpn = RP_NO_QPN;
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(1);
	send = ud_datagram(&self->p, 3);
	send.wr.remote_qkey = RP_QKEY + 1;
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(3);
	EXPECT_TRUE(rp_quiet_cq(&self->p.b.cq));
	/* The lost datagrams have not used the receive. */
	send = ud_datagram(&self->p, 4);
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(4);
	EXPECT_RECEIVED(2, UD_MSG);
}

/* More unsignaled sends than fit: all can be posted in the end. */
TEST_F(ud, unsignaled)
{
	struct rp_send send = ud_datagram(&self->p, 1);
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int i, ret;

	send.wr.send_flags = 0;
	for (i = 0; i < 10 * RP_DEPTH; i++) {
		do {
			ret = rp_post_send(&self->p.a, &send);
		} while (ret == -ENOMEM && rp_now_ms() < end);
		ASSERT_EQ(0, ret)
			TH_LOG("send %d", i);
	}
	EXPECT_TRUE(rp_quiet_cq(&self->p.a.cq));
	EXPECT_ALIVE();
}

TEST_F(ud, full_until_consumed)
{
	struct rp_send send = ud_datagram(&self->p, 1);
	int i;

	for (i = 0; i < RP_DEPTH; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	}
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(-ENOMEM, rp_post_send(&self->p.a, &send));
	for (i = 0; i < RP_DEPTH; i++) {
		EXPECT_SENT((unsigned int)i);
	}
	EXPECT_ALIVE();
}

/* --------------------------------------------------------- refusals */

TEST_F(ud, opcodes)
{
	const uint32_t bad[] = {
		RPOST_WR_RDMA_WRITE, RPOST_WR_RDMA_WRITE_WITH_IMM,
		RPOST_WR_RDMA_READ, RPOST_WR_ATOMIC_CMP_AND_SWP,
		RPOST_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct rp_send send;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		send = ud_datagram(&self->p, 1);
		send.sge.length = 8;
		send.wr.opcode = bad[i];
		EXPECT_EQ(-EINVAL, rp_post_send(&self->p.a, &send))
			TH_LOG("opcode %u", bad[i]);
	}
	send = ud_datagram(&self->p, 1);
	send.wr.opcode = RPOST_WR_SEND_WITH_INV;
	EXPECT_GT(0, rp_post_send(&self->p.a, &send));
	EXPECT_TRUE(rp_quiet_cq(&self->p.a.cq));
	EXPECT_ALIVE();
}

/* Handles that name no address handle of the queue pair's domain. */
TEST_F(ud, handles)
{
	struct rpost_create_srq srq;
	uint32_t foreign, pd, other, gone, i;
	struct rp_send block[3], send;
	uint32_t posted;

	ASSERT_EQ(0, rp_create_ah(self->p.b.fd, self->p.b.pd, &self->p.addr,
				  &foreign));
	ASSERT_EQ(0, rp_alloc_pd(self->p.a.fd, self->p.a.device, &pd));
	ASSERT_EQ(0, rp_create_ah(self->p.a.fd, pd, &self->p.addr, &other));
	ASSERT_EQ(0, rp_create_ah(self->p.a.fd, self->p.a.pd, &self->p.addr, &gone));
	ASSERT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_AH, gone));
	ASSERT_EQ(0, rp_create_srq(self->p.a.fd, self->p.a.pd, 1, &srq));
	/* Of other types, of another file or domain, or of no object. */
	const uint32_t bad[] = {
		0, UINT32_MAX, INT32_MAX, foreign + 1000, other, gone,
		self->p.a.qp, self->p.a.pd, self->p.amr.handle,
		self->p.a.cq.cmd.handle, srq.handle,
	};

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		send = ud_datagram(&self->p, 1);
		send.wr.ah = bad[i];
		EXPECT_EQ(-ENOENT, rp_post_send(&self->p.a, &send))
			TH_LOG("handle %u (%u)", bad[i], i);
	}
	EXPECT_TRUE(rp_quiet_cq(&self->p.a.cq));
	/* In the middle of a block: only the send before it is posted. */
	for (i = 0; i < 3; i++)
		block[i] = ud_datagram(&self->p, i);
	block[1].wr.ah = other;
	ASSERT_EQ(0, ud_receive(&self->p, 2));
	EXPECT_EQ(-ENOENT, rp_post(self->p.a.fd, RPOST_IOC_POST_SEND, self->p.a.qp,
				   block, sizeof(block), 3, &posted));
	EXPECT_EQ(1, posted);
	EXPECT_SENT(0);
	EXPECT_RECEIVED(2, UD_MSG);
	EXPECT_TRUE(rp_quiet_cq(&self->p.a.cq));
	EXPECT_ALIVE();
	/* Refused posts hold no reference to the address handle. */
	EXPECT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_AH, other));
	EXPECT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_PD, pd));
}

/* Forged keys of sends: a local protection error, and no byte leaves. */
TEST_F(ud, bad_keys_of_sends)
{
	struct rpost_reg_mr gone;
	struct rp_send send;
	unsigned int i;

	ASSERT_EQ(0, rp_reg_mr(self->p.a.fd, self->p.a.pd, self->p.abuf, UD_BYTES, ALL,
			       &gone));
	ASSERT_EQ(0, rp_destroy(self->p.a.fd, RPOST_OBJ_MR, gone.handle));
	const struct {
		void *addr;
		uint32_t lkey;
	} bad[] = {
		{ self->p.abuf, 0 },
		{ self->p.abuf, UINT32_MAX },
		{ self->p.abuf, self->p.amr.lkey ^ 1 },
		{ self->p.abuf, gone.lkey },
		{ self->p.bbuf, self->p.bmr.lkey },
		{ self->p.abuf - 1, self->p.amr.lkey },
		{ self->p.abuf + UD_BYTES - UD_MSG + 1, self->p.amr.lkey },
		{ (void *)0xffff888000000000, 0 },
		{ (void *)0xffffffff81000000, self->p.amr.lkey },
	};

	ASSERT_EQ(0, ud_receive(&self->p, 2));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		send = rp_datagram(self->p.ah, self->p.b.qp_num, 7, bad[i].addr,
				   UD_MSG, bad[i].lkey);
		ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
		ASSERT_EQ(1, rp_wait_cq(&self->p.a.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status)
			TH_LOG("key %u", i);
		EXPECT_EQ(7, self->wc.wr_id);
		EXPECT_TRUE(rp_quiet_cq(&self->p.b.cq));
		ASSERT_EQ(0, rp_move(&self->p.a, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_bring_up(&self->p.a, RPOST_QPT_UD, 0));
	}
	EXPECT_EQ('b', self->p.bbuf[RP_GRH]);
	send = ud_datagram(&self->p, 1);
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, UD_MSG);
}

/* Forged keys of receives: an error, and no byte is written. */
TEST_F(ud, bad_keys_of_receives)
{
	struct rp_send send = ud_datagram(&self->p, 1);
	struct rpost_reg_mr ro;
	unsigned int i;

	ASSERT_EQ(0, rp_reg_mr(self->p.b.fd, self->p.b.pd, self->p.bbuf, UD_BYTES, 0,
			       &ro));
	const struct {
		void *addr;
		uint32_t lkey;
	} bad[] = {
		{ self->p.bbuf, 0 },
		{ self->p.bbuf, ro.lkey },
		{ self->p.abuf, self->p.amr.lkey },
		{ self->p.bbuf + UD_BYTES, self->p.bmr.lkey },
		{ (void *)0xffff888000000000, 0 },
	};

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_EQ(0, rp_post_recv(&self->p.b, 7, bad[i].addr, UD_BYTES,
					  bad[i].lkey));
		ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
		EXPECT_SENT(1);
		ASSERT_EQ(1, rp_wait_cq(&self->p.b.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status)
			TH_LOG("key %u", i);
		EXPECT_EQ(7, self->wc.wr_id);
		EXPECT_EQ('b', self->p.bbuf[0]);
		EXPECT_EQ('b', self->p.bbuf[RP_GRH]);
		ASSERT_EQ(0, rp_move(&self->p.b, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_bring_up(&self->p.b, RPOST_QPT_UD, 0));
	}
	EXPECT_EQ('a', self->p.abuf[0]);
	EXPECT_ALIVE();
}

/* A receive that is too short: an error or a loss, but no byte beyond it. */
TEST_F(ud, short_receive)
{
	struct rp_send send = ud_datagram(&self->p, 1);

	ASSERT_EQ(0, rp_post_recv(&self->p.b, 2, self->p.bbuf, RP_GRH + UD_MSG - 1,
				  self->p.bmr.lkey));
	ASSERT_EQ(0, rp_post_send(&self->p.a, &send));
	EXPECT_SENT(1);
	usleep(TEST_QUIET_MS * 1000);
	if (rp_poll_cq(&self->p.b.cq, &self->wc) == 1)
		EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_EQ('b', self->p.bbuf[RP_GRH + UD_MSG - 1]);
	EXPECT_EQ('b', self->p.bbuf[RP_GRH + UD_MSG]);
}

/* A datagram that is longer than a packet. */
TEST_F(ud, too_long)
{
	static char big[16384];
	struct rpost_reg_mr mr;
	struct rp_send send;
	int ret;

	ASSERT_EQ(0, rp_reg_mr(self->p.a.fd, self->p.a.pd, big, sizeof(big), 0,
			       &mr));
	send = rp_datagram(self->p.ah, self->p.b.qp_num, 1, big, sizeof(big),
			   mr.lkey);
	ret = rp_post_send(&self->p.a, &send);
	if (!ret) {
		/* rxe drops it and reports success. */
		ASSERT_EQ(1, rp_wait_cq(&self->p.a.cq, &self->wc));
		EXPECT_TRUE(rp_quiet_cq(&self->p.b.cq));
	} else {
		EXPECT_EQ(-EINVAL, ret);
	}
}

TEST_HARNESS_MAIN
