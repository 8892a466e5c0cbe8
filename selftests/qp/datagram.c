// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Datagrams: address handles, UD queue pairs, multicast groups, and what an
 * attacker does with them.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rpost_own.h"

#define BUF	4096
#define MSG	100
#define ALL	(RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE)

/* Two datagram queue pairs; @a has an address handle for this host. */
FIXTURE(ud) {
	struct rp_end a, b;
	struct rpost_ah_attr addr;
	uint32_t ah;
	char *abuf, *bbuf;
	struct rpost_reg_mr amr, bmr;
	struct rpost_wc wc;
};

FIXTURE_SETUP(ud)
{
	self->abuf = rp_pages(BUF);
	self->bbuf = rp_pages(BUF);
	memset(self->abuf, 'a', BUF);
	memset(self->bbuf, 'b', BUF);
	ASSERT_EQ(0, rp_own_pair(&self->a, &self->b, RPOST_QPT_UD));
	ASSERT_EQ(0, rp_own_addr(&self->a, &self->addr));
	ASSERT_EQ(0, rp_create_ah(self->a.fd, self->a.pd, &self->addr,
				  &self->ah));
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->abuf, BUF, ALL,
			       &self->amr));
	ASSERT_EQ(0, rp_reg_mr(self->b.fd, self->b.pd, self->bbuf, BUF, ALL,
			       &self->bmr));
}

FIXTURE_TEARDOWN(ud)
{
	rp_end_close(&self->a);
	rp_end_close(&self->b);
}

static int receive(FIXTURE_DATA(ud) *self, uint64_t wr_id)
{
	return rp_post_recv(&self->b, wr_id, self->bbuf, BUF, self->bmr.lkey);
}

static struct rp_send datagram(FIXTURE_DATA(ud) *self, uint64_t wr_id)
{
	return rp_datagram(self->ah, self->b.qp_num, wr_id, self->abuf, MSG,
			   self->amr.lkey);
}

#define EXPECT_SENT(id) do {						\
	ASSERT_EQ(1, rp_wait_cq(&self->a.cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(RPOST_WC_SEND, self->wc.opcode);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
} while (0)

#define EXPECT_RECEIVED(id, len) do {					\
	ASSERT_EQ(1, rp_wait_cq(&self->b.cq, &self->wc));		\
	ASSERT_EQ(RPOST_WC_SUCCESS, self->wc.status);			\
	EXPECT_EQ(RPOST_WC_RECV, self->wc.opcode);			\
	EXPECT_EQ(id, self->wc.wr_id);					\
	EXPECT_EQ(RP_GRH + (len), self->wc.byte_len);			\
	EXPECT_EQ(self->a.qp_num, self->wc.src_qp);			\
	EXPECT_EQ(self->b.qp_num, self->wc.qp_num);			\
	EXPECT_EQ(RPOST_WC_F_GRH, self->wc.wc_flags & RPOST_WC_F_GRH);	\
} while (0)

/* The queues still work. */
#define EXPECT_ALIVE() do {						\
	struct rp_send alive = datagram(self, 4444);			\
									\
	ASSERT_EQ(0, receive(self, 5555));				\
	ASSERT_EQ(0, rp_post_send(&self->a, &alive));			\
	EXPECT_SENT(4444);						\
	EXPECT_RECEIVED(5555, MSG);					\
} while (0)

TEST_F(ud, sent_with_entries)
{
	struct rp_send send = datagram(self, 1);

	ASSERT_EQ(0, receive(self, 2));
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, MSG);
	/* The header's place, the data, and what was there. */
	EXPECT_EQ('a', self->bbuf[RP_GRH]);
	EXPECT_EQ('a', self->bbuf[RP_GRH + MSG - 1]);
	EXPECT_EQ('b', self->bbuf[RP_GRH + MSG]);
	/* The last bytes of the header are our own address. */
	if (rp_addr4.sin_family)
		EXPECT_EQ(0, memcmp(self->bbuf + RP_GRH - 4,
				    &rp_addr4.sin_addr, 4));
}

TEST_F(ud, sent_inline_with_imm)
{
	struct {
		struct rpost_send_wr wr;
		char data[RP_INLINE];
	} send = { .wr = datagram(self, 1).wr };

	send.wr.opcode = RPOST_WR_SEND_WITH_IMM;
	send.wr.imm_data = htonl(0x12345678);
	send.wr.send_flags |= RPOST_SEND_INLINE;
	send.wr.num_sge = 0;
	send.wr.inline_len = RP_INLINE;
	send.wr.size = sizeof(send);
	memset(send.data, 'i', RP_INLINE);
	ASSERT_EQ(0, receive(self, 2));
	ASSERT_EQ(0, rp_post(self->a.fd, RPOST_IOC_POST_SEND, self->a.qp,
			     &send, sizeof(send), 1, NULL));
	memset(send.data, 'x', RP_INLINE);
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, RP_INLINE);
	EXPECT_EQ(htonl(0x12345678), self->wc.imm_data);
	EXPECT_EQ(RPOST_WC_F_WITH_IMM, self->wc.wc_flags & RPOST_WC_F_WITH_IMM);
	EXPECT_EQ('i', self->bbuf[RP_GRH]);
	EXPECT_EQ('i', self->bbuf[RP_GRH + RP_INLINE - 1]);
	EXPECT_EQ('b', self->bbuf[RP_GRH + RP_INLINE]);
}

TEST_F(ud, empty)
{
	struct rp_send send = rp_empty_datagram(self->ah, self->b.qp_num, 1);

	ASSERT_EQ(0, receive(self, 2));
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, 0);
	EXPECT_EQ('b', self->bbuf[RP_GRH]);
}

/* To itself, and back by the number in the completion. */
TEST_F(ud, answered)
{
	struct rp_send send = datagram(self, 1);
	uint32_t ah;

	ASSERT_EQ(0, receive(self, 2));
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, MSG);
	ASSERT_EQ(0, rp_create_ah(self->b.fd, self->b.pd, &self->addr, &ah));
	ASSERT_EQ(0, rp_post_recv(&self->a, 3, self->abuf, BUF,
				  self->amr.lkey));
	send = rp_datagram(ah, self->wc.src_qp, 4, self->bbuf, MSG,
			   self->bmr.lkey);
	ASSERT_EQ(0, rp_post_send(&self->b, &send));
	ASSERT_EQ(1, rp_wait_cq(&self->a.cq, &self->wc));
	EXPECT_EQ(3, self->wc.wr_id);
	EXPECT_EQ(self->b.qp_num, self->wc.src_qp);
}

/* Nobody is there, or has another key: sent, and lost. */
TEST_F(ud, lost)
{
	struct rp_send send = datagram(self, 1);

	ASSERT_EQ(0, receive(self, 2));
	send.wr.remote_qpn = RP_NO_QPN;
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(1);
	send = datagram(self, 3);
	send.wr.remote_qkey = RP_QKEY + 1;
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(3);
	EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
	/* The receive is still there. */
	send = datagram(self, 4);
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(4);
	EXPECT_RECEIVED(2, MSG);
}

/* Far more unsignaled sends than fit: none is ever stuck. */
TEST_F(ud, unsignaled)
{
	struct rp_send send = datagram(self, 1);
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int i, ret;

	send.wr.send_flags = 0;
	for (i = 0; i < 10 * RP_DEPTH; i++) {
		do {
			ret = rp_post_send(&self->a, &send);
		} while (ret == -ENOMEM && rp_now_ms() < end);
		ASSERT_EQ(0, ret)
			TH_LOG("send %d", i);
	}
	EXPECT_TRUE(rp_quiet_cq(&self->a.cq));
	EXPECT_ALIVE();
}

TEST_F(ud, full_until_consumed)
{
	struct rp_send send = datagram(self, 1);
	int i;

	for (i = 0; i < RP_DEPTH; i++) {
		send.wr.wr_id = i;
		ASSERT_EQ(0, rp_post_send(&self->a, &send));
	}
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(-ENOMEM, rp_post_send(&self->a, &send));
	for (i = 0; i < RP_DEPTH; i++) {
		EXPECT_SENT((unsigned int)i);
	}
	EXPECT_ALIVE();
}

/* ---------------------------------------------------- what is refused */

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
		send = datagram(self, 1);
		send.sge.length = 8;
		send.wr.opcode = bad[i];
		EXPECT_EQ(-EINVAL, rp_post_send(&self->a, &send))
			TH_LOG("opcode %u", bad[i]);
	}
	send = datagram(self, 1);
	send.wr.opcode = RPOST_WR_SEND_WITH_INV;
	EXPECT_GT(0, rp_post_send(&self->a, &send));
	EXPECT_TRUE(rp_quiet_cq(&self->a.cq));
	EXPECT_ALIVE();
}

/* Handles that are no address of this domain's. */
TEST_F(ud, handles)
{
	struct rpost_create_srq srq;
	uint32_t foreign, pd, other, gone, i;
	struct rp_send block[3], send;
	uint32_t posted;

	ASSERT_EQ(0, rp_create_ah(self->b.fd, self->b.pd, &self->addr,
				  &foreign));
	ASSERT_EQ(0, rp_alloc_pd(self->a.fd, self->a.device, &pd));
	ASSERT_EQ(0, rp_create_ah(self->a.fd, pd, &self->addr, &other));
	ASSERT_EQ(0, rp_create_ah(self->a.fd, self->a.pd, &self->addr, &gone));
	ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_AH, gone));
	ASSERT_EQ(0, rp_create_srq(self->a.fd, self->a.pd, 1, &srq));
	/* Numbers above all handles of this file. */
	const uint32_t bad[] = {
		0, UINT32_MAX, INT32_MAX, foreign + 1000, other, gone,
		self->a.qp, self->a.pd, self->amr.handle,
		self->a.cq.cmd.handle, srq.handle,
	};

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		send = datagram(self, 1);
		send.wr.ah = bad[i];
		EXPECT_EQ(-ENOENT, rp_post_send(&self->a, &send))
			TH_LOG("handle %u (%u)", bad[i], i);
	}
	EXPECT_TRUE(rp_quiet_cq(&self->a.cq));
	/* In the middle of a block: exactly what came before is posted. */
	for (i = 0; i < 3; i++)
		block[i] = datagram(self, i);
	block[1].wr.ah = other;
	ASSERT_EQ(0, receive(self, 2));
	EXPECT_EQ(-ENOENT, rp_post(self->a.fd, RPOST_IOC_POST_SEND, self->a.qp,
				   block, sizeof(block), 3, &posted));
	EXPECT_EQ(1, posted);
	EXPECT_SENT(0);
	EXPECT_RECEIVED(2, MSG);
	EXPECT_TRUE(rp_quiet_cq(&self->a.cq));
	EXPECT_ALIVE();
	/* What was refused holds nothing. */
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_AH, other));
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_PD, pd));
}

/* Forged keys on sends: a local protection error, and no byte leaves. */
TEST_F(ud, bad_keys_of_sends)
{
	struct rpost_reg_mr gone;
	struct rp_send send;
	unsigned int i;

	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->abuf, BUF, ALL,
			       &gone));
	ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_MR, gone.handle));
	const struct {
		void *addr;
		uint32_t lkey;
	} bad[] = {
		{ self->abuf, 0 },
		{ self->abuf, UINT32_MAX },
		{ self->abuf, self->amr.lkey ^ 1 },
		{ self->abuf, gone.lkey },
		{ self->bbuf, self->bmr.lkey },
		{ self->abuf - 1, self->amr.lkey },
		{ self->abuf + BUF - MSG + 1, self->amr.lkey },
		{ (void *)0xffff888000000000, 0 },
		{ (void *)0xffffffff81000000, self->amr.lkey },
	};

	ASSERT_EQ(0, receive(self, 2));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		send = rp_datagram(self->ah, self->b.qp_num, 7, bad[i].addr,
				   MSG, bad[i].lkey);
		ASSERT_EQ(0, rp_post_send(&self->a, &send));
		ASSERT_EQ(1, rp_wait_cq(&self->a.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status)
			TH_LOG("key %u", i);
		EXPECT_EQ(7, self->wc.wr_id);
		EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
		ASSERT_EQ(0, rp_move(&self->a, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_bring_up(&self->a, RPOST_QPT_UD, 0));
	}
	EXPECT_EQ('b', self->bbuf[RP_GRH]);
	send = datagram(self, 1);
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(1);
	EXPECT_RECEIVED(2, MSG);
}

/* Forged keys on receives. */
TEST_F(ud, bad_keys_of_receives)
{
	struct rp_send send = datagram(self, 1);
	struct rpost_reg_mr ro;
	unsigned int i;

	ASSERT_EQ(0, rp_reg_mr(self->b.fd, self->b.pd, self->bbuf, BUF, 0,
			       &ro));
	const struct {
		void *addr;
		uint32_t lkey;
	} bad[] = {
		{ self->bbuf, 0 },
		{ self->bbuf, ro.lkey },
		{ self->abuf, self->amr.lkey },
		{ self->bbuf + 1, self->bmr.lkey },
		{ (void *)0xffff888000000000, 0 },
	};

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ASSERT_EQ(0, rp_post_recv(&self->b, 7, bad[i].addr, BUF,
					  bad[i].lkey));
		ASSERT_EQ(0, rp_post_send(&self->a, &send));
		EXPECT_SENT(1);
		ASSERT_EQ(1, rp_wait_cq(&self->b.cq, &self->wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, self->wc.status)
			TH_LOG("key %u", i);
		EXPECT_EQ(7, self->wc.wr_id);
		EXPECT_EQ('b', self->bbuf[0]);
		EXPECT_EQ('b', self->bbuf[RP_GRH]);
		ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_RESET));
		ASSERT_EQ(0, rp_bring_up(&self->b, RPOST_QPT_UD, 0));
	}
	EXPECT_EQ('a', self->abuf[0]);
	EXPECT_ALIVE();
}

/* No room for the header: an error or lost, but never beyond the entry. */
TEST_F(ud, short_receive)
{
	struct rp_send send = datagram(self, 1);

	ASSERT_EQ(0, rp_post_recv(&self->b, 2, self->bbuf, RP_GRH + MSG - 1,
				  self->bmr.lkey));
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_SENT(1);
	usleep(TEST_QUIET_MS * 1000);
	if (rp_poll_cq(&self->b.cq, &self->wc) == 1)
		EXPECT_NE(RPOST_WC_SUCCESS, self->wc.status);
	EXPECT_EQ('b', self->bbuf[RP_GRH + MSG - 1]);
	EXPECT_EQ('b', self->bbuf[RP_GRH + MSG]);
}

/* Longer than a packet. */
TEST_F(ud, too_long)
{
	static char big[16384];
	struct rpost_reg_mr mr;
	struct rp_send send;
	int ret;

	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, big, sizeof(big), 0,
			       &mr));
	send = rp_datagram(self->ah, self->b.qp_num, 1, big, sizeof(big),
			   mr.lkey);
	ret = rp_post_send(&self->a, &send);
	if (!ret) {
		/* rxe sends nothing, and says that it did. */
		ASSERT_EQ(1, rp_wait_cq(&self->a.cq, &self->wc));
		EXPECT_TRUE(rp_quiet_cq(&self->b.cq));
	} else {
		EXPECT_EQ(-EINVAL, ret);
	}
}

/* ------------------------------------------------------ address handles */

TEST_F(ud, ah_errors)
{
	struct rpost_create_ah cmd, good = {
		.size = sizeof(good), .pd = self->a.pd, .attr = self->addr,
	};
	struct rpost_query_port port = {
		.size = sizeof(port), .device = self->a.device,
		.port = self->addr.port_num,
	};
	int objects = rp_num_objects(self->a.fd);

	ASSERT_EQ(0, rp_ioctl(self->a.fd, RPOST_IOC_QUERY_PORT, &port));
#define REFUSED(err, field, value) do {					\
	cmd = good;							\
	cmd.field = (value);						\
	EXPECT_EQ(err, rp_ioctl(self->a.fd, RPOST_IOC_CREATE_AH, &cmd))	\
		TH_LOG(#field " = " #value);				\
	EXPECT_EQ(0, cmd.handle);					\
} while (0)
	REFUSED(-ENOENT, pd, 0);
	REFUSED(-ENOENT, pd, self->a.qp);
	REFUSED(-EINVAL, attr.port_num, 0);
	REFUSED(-EINVAL, attr.port_num, 2);
	REFUSED(-EINVAL, attr.port_num, 255);
	REFUSED(-EINVAL, attr.sgid_index, 255);
	REFUSED(-EINVAL, attr.is_global, 2);
	REFUSED(-EOPNOTSUPP, attr.reserved[0], 1);
	REFUSED(-EOPNOTSUPP, attr.reserved[1], 1);
	if (port.link_layer == 2)
		REFUSED(-EINVAL, attr.is_global, 0);
#undef REFUSED
	EXPECT_EQ(objects, rp_num_objects(self->a.fd));
	EXPECT_EQ(-EBUSY, rp_destroy(self->a.fd, RPOST_OBJ_PD, self->a.pd));
}

/* An address to which no route leads. */
TEST_F(ud, ah_without_a_route)
{
	struct rpost_ah_attr attr = self->addr;
	uint32_t ah;
	int ret;

	attr.dgid[12] = 192;
	attr.dgid[13] = 0;
	attr.dgid[14] = 2;
	attr.dgid[15] = 77;
	ret = rp_create_ah(self->a.fd, self->a.pd, &attr, &ah);
	EXPECT_TRUE(!ret || ret == -EINVAL || ret == -ENETUNREACH ||
		    ret == -EHOSTUNREACH)
		TH_LOG("%d", ret);
	memset(attr.dgid, 0, sizeof(attr.dgid));
	EXPECT_GT(0, rp_create_ah(self->a.fd, self->a.pd, &attr, &ah));
}

/* Made and destroyed again and again, as many as there may be at a time. */
TEST_F(ud, many_ahs)
{
	enum { N = 200 };
	uint32_t ahs[N];
	int i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < N; i++) {
			ASSERT_EQ(0, rp_create_ah(self->a.fd, self->a.pd,
						  &self->addr, &ahs[i]));
		}
		for (i = 0; i < N; i++) {
			ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_AH,
						ahs[i]));
		}
	}
	EXPECT_EQ(-ENOENT, rp_destroy(self->a.fd, RPOST_OBJ_AH, ahs[0]));
	EXPECT_ALIVE();
}

/* Destroy an address, fetching completions while sends still name it. */
static int destroy_ah(struct rp_end *end, uint32_t ah)
{
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rpost_wc wc;
	int ret;

	do {
		ret = rp_destroy(end->fd, RPOST_OBJ_AH, ah);
		if (ret != -EBUSY)
			break;
		while (rp_poll_cq(&end->cq, &wc) == 1)
			;
	} while (rp_now_ms() < until);
	return ret;
}

/* While sends that name it are under way: now or a little later. */
TEST_F(ud, ah_destroyed_with_sends)
{
	struct rp_send send;
	uint32_t ah;
	int i, round, ret;

	for (round = 0; round < 50; round++) {
		ASSERT_EQ(0, rp_create_ah(self->a.fd, self->a.pd, &self->addr,
					  &ah));
		for (i = 0; i < RP_DEPTH / 2; i++) {
			send = datagram(self, i);
			send.wr.ah = ah;
			/* Signaled or not. */
			if (round % 2)
				send.wr.send_flags = 0;
			ret = rp_post_send(&self->a, &send);
			if (ret == -ENOMEM)
				break;
			ASSERT_EQ(0, ret);
		}
		ASSERT_EQ(0, destroy_ah(&self->a, ah));
		while (rp_poll_cq(&self->a.cq, &self->wc) == 1)
			;
	}
	usleep(TEST_QUIET_MS * 1000);
	while (rp_poll_cq(&self->a.cq, &self->wc) == 1)
		;
	EXPECT_ALIVE();
}

/* What the queue pair held on to ends with it. */
TEST_F(ud, ah_after_the_queue_pair)
{
	struct rp_send send = datagram(self, 1);
	int i;

	for (i = 0; i < RP_DEPTH; i++) {
		ASSERT_EQ(0, rp_post_send(&self->a, &send));
	}
	ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_QP, self->a.qp));
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_AH, self->ah));
	ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_MR, self->amr.handle));
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_PD, self->a.pd));
	/* So it does with a reset. */
	for (i = 0; i < 3; i++) {
		uint32_t ah;

		ASSERT_EQ(0, rp_create_ah(self->b.fd, self->b.pd, &self->addr,
					  &ah));
		send = rp_empty_datagram(ah, 5, 1);
		ASSERT_EQ(0, rp_post_send(&self->b, &send));
		ASSERT_EQ(0, rp_move(&self->b, RPOST_QPS_RESET));
		EXPECT_EQ(0, rp_destroy(self->b.fd, RPOST_OBJ_AH, ah));
		ASSERT_EQ(0, rp_bring_up(&self->b, RPOST_QPT_UD, 0));
	}
}

/* ---------------------------------------------------------- multicast */

static int mcast_lid(struct rp_end *end, unsigned long nr, uint32_t qp,
		     const uint8_t *gid, uint32_t lid)
{
	struct rpost_attach_mcast cmd = {
		.size = sizeof(cmd), .qp = qp, .lid = lid,
	};

	memcpy(cmd.gid, gid, sizeof(cmd.gid));
	return rp_ioctl(end->fd, nr, &cmd);
}

static int mcast(struct rp_end *end, unsigned long nr, uint32_t qp,
		 const uint8_t *gid)
{
	return mcast_lid(end, nr, qp, gid, 0);
}

/* 239.1.2.x as a GID. */
static const uint8_t *group(uint8_t x)
{
	static uint8_t gid[16] = {
		0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2,
	};

	gid[15] = x;
	return gid;
}

#define ATTACH(end, x) \
	mcast(end, RPOST_IOC_ATTACH_MCAST, (end)->qp, group(x))
#define DETACH(end, x) \
	mcast(end, RPOST_IOC_DETACH_MCAST, (end)->qp, group(x))

TEST_F(ud, groups)
{
	int ret, i;

	ret = ATTACH(&self->a, 1);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	ASSERT_EQ(0, ret);
	/* Twice is once. */
	EXPECT_EQ(0, ATTACH(&self->a, 1));
	EXPECT_EQ(0, DETACH(&self->a, 1));
	EXPECT_EQ(-EINVAL, DETACH(&self->a, 1));
	EXPECT_EQ(-EINVAL, DETACH(&self->a, 2));
	/* Two queue pairs, several groups, in any order. */
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, ATTACH(&self->a, i));
		EXPECT_EQ(0, ATTACH(&self->b, i));
	}
	EXPECT_EQ(0, DETACH(&self->a, 3));
	EXPECT_EQ(0, DETACH(&self->b, 0));
	/* Destroyed with groups: no EBUSY, and nothing left. */
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_QP, self->a.qp));
	EXPECT_EQ(-ENOENT, ATTACH(&self->a, 1));
	EXPECT_EQ(-ENOENT, DETACH(&self->a, 1));
}

/* A group is its GID: the queue pair is in it once, and can be destroyed. */
TEST_F(ud, group_with_two_lids)
{
	int ret = ATTACH(&self->a, 1);

	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	ASSERT_EQ(0, ret);
	ret = mcast_lid(&self->a, RPOST_IOC_ATTACH_MCAST, self->a.qp, group(1),
			0xc001);
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, DETACH(&self->a, 1));
	EXPECT_EQ(-EINVAL, DETACH(&self->a, 1));
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_QP, self->a.qp));
}

TEST_F(ud, group_errors)
{
	uint8_t gid[16] = { 0 };
	struct rp_end rc = self->a;

	EXPECT_EQ(-EINVAL, mcast(&self->a, RPOST_IOC_ATTACH_MCAST, self->a.qp,
				 gid));
	EXPECT_EQ(-EINVAL, mcast(&self->a, RPOST_IOC_ATTACH_MCAST, self->a.qp,
				 self->addr.dgid));
	EXPECT_EQ(-ENOENT, mcast(&self->a, RPOST_IOC_ATTACH_MCAST, self->a.pd,
				 group(1)));
	EXPECT_EQ(-ENOENT, mcast(&self->a, RPOST_IOC_ATTACH_MCAST, self->ah,
				 group(1)));
	EXPECT_EQ(-ENOENT, mcast(&self->a, RPOST_IOC_ATTACH_MCAST, 0,
				 group(1)));
	/* Other types of queue pair. */
	ASSERT_EQ(0, rp_create_own(&rc, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EINVAL, ATTACH(&rc, 1));
	EXPECT_EQ(-EINVAL, DETACH(&rc, 1));
}

/* As many as the device has, and what happens then. */
TEST_F(ud, many_groups)
{
	int i, n, ret = 0;

	for (n = 0; n < 250 && !ret; n++)
		ret = ATTACH(&self->a, n);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no multicast");
	EXPECT_TRUE(!ret || ret == -ENOMEM || ret == -EINVAL ||
		    ret == -ENOSPC)
		TH_LOG("group %d: %d", n, ret);
	if (ret)
		n--;
	EXPECT_LT(4, n);
	for (i = 0; i < n; i += 2) {
		EXPECT_EQ(0, DETACH(&self->a, i));
	}
}

/* ---------------------------------------------------------------- races */

struct race {
	FIXTURE_DATA(ud) *self;
	uint32_t ah;
	bool stop;
	int wrong;
	unsigned int good, refused;
};

static void *send_for_ever(void *arg)
{
	struct race *r = arg;
	struct rp_send send = datagram(r->self, 1);
	struct rpost_wc wc;
	int ret;

	while (!__atomic_load_n(&r->stop, __ATOMIC_RELAXED)) {
		send.wr.ah = __atomic_load_n(&r->ah, __ATOMIC_RELAXED);
		ret = rp_post_send(&r->self->a, &send);
		if (!ret)
			r->good++;
		else if (ret == -ENOENT)
			r->refused++;
		else if (ret != -ENOMEM)
			r->wrong = ret;
		while (rp_poll_cq(&r->self->a.cq, &wc) == 1)
			;
	}
	return NULL;
}

/* Addresses come and go while another thread sends to them. */
TEST_F(ud, ahs_race_with_sends)
{
	struct race r = { .self = self };
	uint64_t end = rp_now_ms() + 400;
	int rounds = 0, ret;
	pthread_t thread;
	uint32_t ah;

	ASSERT_EQ(0, pthread_create(&thread, NULL, send_for_ever, &r));
	do {
		ASSERT_EQ(0, rp_create_ah(self->a.fd, self->a.pd, &self->addr,
					  &ah));
		__atomic_store_n(&r.ah, ah, __ATOMIC_RELAXED);
		usleep(rounds % 5 * 50);
		do {
			ret = rp_destroy(self->a.fd, RPOST_OBJ_AH, ah);
			if (ret == -EBUSY)
				__atomic_store_n(&r.ah, 0, __ATOMIC_RELAXED);
			sched_yield();
		} while (ret == -EBUSY);
		ASSERT_EQ(0, ret);
		rounds++;
	} while (rp_now_ms() < end ||
		 ((!__atomic_load_n(&r.good, __ATOMIC_RELAXED) ||
		   !__atomic_load_n(&r.refused, __ATOMIC_RELAXED)) &&
		  rp_now_ms() < end + TEST_CHANCE_MS));
	__atomic_store_n(&r.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, r.wrong);
	EXPECT_LT(0, r.good);
	EXPECT_LT(0, r.refused);
}

TEST_HARNESS_MAIN
