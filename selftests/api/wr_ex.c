// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests work requests that a program builds with ibv_wr_*(): ibv_wr_complete()
 * must post all or none of them, as they were built.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <pthread.h>

#include "verbs_test.h"

/* rxe's provider needs the flag, though the manual page does not. */
#define INLINE	(over_incumbent() ? IBV_SEND_INLINE : 0)

FIXTURE(wr_ex) {
	struct device dev;
	struct side a, b;
	struct ibv_qp_ex *ex;	/* of a */
	struct ibv_ah *ah;
	struct ibv_wc wc;
};

FIXTURE_VARIANT(wr_ex) {
	enum ibv_qp_type type;
};

FIXTURE_VARIANT_ADD(wr_ex, rc) { .type = IBV_QPT_RC };
FIXTURE_VARIANT_ADD(wr_ex, uc) { .type = IBV_QPT_UC };
FIXTURE_VARIANT_ADD(wr_ex, ud) { .type = IBV_QPT_UD };

FIXTURE_SETUP(wr_ex)
{
	struct ibv_qp_init_attr_ex init;
	struct ibv_ah_attr addr;

	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, side_prepare(&self->dev, &self->a, NULL));
	init = side_attr_ex(&self->dev, self->a.cq, variant->type);
	self->a.qp = ibv_create_qp_ex(self->dev.verbs, &init);
	ASSERT_NE(NULL, self->a.qp);
	EXPECT_LE(16, init.cap.max_send_wr);
	EXPECT_LE(64, init.cap.max_inline_data);
	self->ex = ibv_qp_to_qp_ex(self->a.qp);
	ASSERT_NE(NULL, self->ex);
	EXPECT_EQ(self->a.qp, &self->ex->qp_base);
	EXPECT_EQ(IBV_QPS_RESET, self->a.qp->state);
	ASSERT_EQ(0, side_open(&self->dev, &self->b, variant->type, NULL, NULL));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	if (variant->type == IBV_QPT_UD) {
		addr = own_address(&self->dev);
		self->ah = ibv_create_ah(self->dev.pd, &addr);
		ASSERT_NE(NULL, self->ah);
	}
}

FIXTURE_TEARDOWN(wr_ex)
{
	side_close(&self->a);
	side_close(&self->b);
	if (self->ah)
		EXPECT_EQ(0, ibv_destroy_ah(self->ah));
	device_close(&self->dev);
}

static void begin(struct ibv_qp_ex *ex, uint64_t wr_id, unsigned int flags)
{
	ex->wr_id = wr_id;
	ex->wr_flags = flags;
}

static void set_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah, struct side *to)
{
	if (ah)
		ibv_wr_set_ud_addr(ex, ah, to->qp->qp_num, TEST_QKEY);
}

/* Return the offset of a message's data in the receiver's buffer. */
static size_t skip(struct ibv_ah *ah)
{
	return ah ? GRH_BYTES : 0;
}

/* Build and complete a batch. */
#define EXPECT_BATCH(want, ...) do { \
	ibv_wr_start(self->ex); \
	__VA_ARGS__; \
	EXPECT_EQ(want, ibv_wr_complete(self->ex)); \
} while (0)

/* Build a send by this call, with the data that a setter sets. */
#define BUILD(wr_id, flags, call, ...) do { \
	begin(self->ex, wr_id, flags); \
	call; \
	set_addr(self->ex, self->ah, &self->b); \
	__VA_ARGS__; \
} while (0)

#define SEND_ONE(wr_id, flags, call, ...) \
	EXPECT_BATCH(0, BUILD(wr_id, (flags) | IBV_SEND_SIGNALED, call, __VA_ARGS__))

/* Expect that a message has been sent, and received with what fill() wrote. */
#define ASSERT_ARRIVES(sent, received, len, seed) do { \
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, sent); \
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, received); \
	EXPECT_EQ((len) + skip(self->ah), self->wc.byte_len); \
	EXPECT_TRUE(filled(self->b.buf + skip(self->ah), len, seed)); \
} while (0)

TEST_F(wr_ex, send)
{
	struct ibv_sge sges[3];

	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	fill(self->a.buf, 300, 1);
	SEND_ONE(0xfedcba9876543210, 0, ibv_wr_send(self->ex),
		 ibv_wr_set_sge(self->ex, self->a.mr->lkey, addr64(self->a.buf), 300));
	ASSERT_ARRIVES(0xfedcba9876543210, 2, 300, 1);
	EXPECT_FALSE(self->wc.wc_flags & IBV_WC_WITH_IMM);

	/* Send from several places, with immediate data. */
	memset(self->b.buf, POISON, 1000);
	ASSERT_EQ(0, post_recv(&self->b, 3, 0, 1000));
	sges[0] = side_sge(&self->a, 0, 100);
	sges[1] = side_sge(&self->a, 100, 1);
	sges[2] = side_sge(&self->a, 101, 199);
	SEND_ONE(4, 0, ibv_wr_send_imm(self->ex, htonl(0x1234abcd)),
		 ibv_wr_set_sge_list(self->ex, 3, sges));
	ASSERT_ARRIVES(4, 3, 300, 1);
	EXPECT_TRUE(self->wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(htonl(0x1234abcd), self->wc.imm_data);
}

/* The setter copies the data. */
TEST_F(wr_ex, inline_data)
{
	uint8_t data[64];

	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	fill(data, 64, 1);
	SEND_ONE(1, INLINE, ibv_wr_send(self->ex),
		 ibv_wr_set_inline_data(self->ex, data, 64);
		 memset(data, 0, 64));
	ASSERT_ARRIVES(1, 2, 64, 1);
}

TEST_F(wr_ex, inline_data_list)
{
	uint8_t data[64];
	struct ibv_data_buf bufs[] = {
		{ .addr = data, .length = 20 },
		{ .addr = NULL, .length = 0 },
		{ .addr = data + 20, .length = 13 },
	};

	if (over_incumbent())
		SKIP(return, "rxe's provider sends no bytes of a list");
	ASSERT_EQ(0, post_recv(&self->b, 3, 0, 1000));
	fill(data, 33, 2);
	SEND_ONE(4, INLINE, ibv_wr_send(self->ex), ibv_wr_set_inline_data_list(self->ex, 3, bufs));
	ASSERT_ARRIVES(4, 3, 33, 2);
}

/* Build several in one batch; only the last is signaled. */
TEST_F(wr_ex, batch)
{
	int i;

	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, post_recv(&self->b, 20 + i, i * 512, 512));
		fill(self->a.buf + i * 256, 200, i + 1);
	}
	ibv_wr_start(self->ex);
	for (i = 0; i < 8; i++) {
		BUILD(10 + i, (i & 1 ? INLINE : 0) | (i == 7 ? IBV_SEND_SIGNALED : 0),
		      ibv_wr_send(self->ex));
		/* Setters may come in any order, with either kind of data. */
		if (i & 1)
			ibv_wr_set_inline_data(self->ex,
					       self->a.buf + i * 256, 60);
		else
			ibv_wr_set_sge(self->ex, self->a.mr->lkey,
				       addr64(self->a.buf + i * 256), 200);
	}
	ASSERT_EQ(0, ibv_wr_complete(self->ex));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 17);
	EXPECT_TRUE(no_comp(self->a.cq));
	for (i = 0; i < 8; i++) {
		ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV,
			       (uint64_t)(20 + i));
		EXPECT_TRUE(filled(self->b.buf + i * 512 + skip(self->ah),
				   i & 1 ? 60 : 200, i + 1));
	}
}

TEST_F(wr_ex, of_no_bytes)
{
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	SEND_ONE(1, 0, ibv_wr_send(self->ex), ibv_wr_set_sge_list(self->ex, 0, NULL));
	ASSERT_ARRIVES(1, 2, 0, 0);
}

static void build_send(struct ibv_qp_ex *ex, struct ibv_ah *ah,
		       struct side *from, struct side *to, uint64_t wr_id)
{
	begin(ex, wr_id, IBV_SEND_SIGNALED);
	ibv_wr_send(ex);
	set_addr(ex, ah, to);
	ibv_wr_set_sge(ex, from->mr->lkey, addr64(from->buf), 8);
}

#define BUILD_SEND(wr_id) build_send(self->ex, self->ah, &self->a, &self->b, wr_id)

TEST_F(wr_ex, aborted)
{
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	ibv_wr_start(self->ex);
	BUILD_SEND(1);
	BUILD_SEND(2);
	ibv_wr_abort(self->ex);
	EXPECT_TRUE(no_comp(self->a.cq));
	/* Later work requests are not affected. */
	EXPECT_BATCH(0, BUILD_SEND(3));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 3);
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, 2);
	EXPECT_TRUE(no_comp(self->a.cq));
}

/* If one work request is refused, none is posted. */
TEST_F(wr_ex, refused)
{
	struct ibv_sge sges[40];
	uint8_t data[4096] = {};
	int i;

	for (i = 0; i < 40; i++)
		sges[i] = side_sge(&self->a, 0, 1);
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));

	ibv_wr_start(self->ex);
	BUILD_SEND(1);
	BUILD(2, IBV_SEND_SIGNALED, ibv_wr_send(self->ex),
	      ibv_wr_set_sge_list(self->ex, 40, sges));
	EXPECT_NE(0, ibv_wr_complete(self->ex));
	EXPECT_TRUE(no_comp(self->a.cq));

	ibv_wr_start(self->ex);
	BUILD_SEND(3);
	BUILD(4, IBV_SEND_SIGNALED, ibv_wr_send(self->ex),
	      ibv_wr_set_inline_data(self->ex, data, sizeof(data)));
	EXPECT_NE(0, ibv_wr_complete(self->ex));
	EXPECT_TRUE(no_comp(self->a.cq));

	EXPECT_BATCH(0, BUILD_SEND(5));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 5);
}

/* The offset of wr_flush in struct ibv_qp_ex of headers after version 44. */
#define WR_FLUSH (offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *))

/* ibv_wr_complete() refuses operations that in-kernel verbs lack. */
TEST_F(wr_ex, calls_of_others)
{
	void (*wr_flush)(void);

	if (over_incumbent())
		SKIP(return, "its providers leave such calls out");
	EXPECT_BATCH(EOPNOTSUPP, BUILD_SEND(1); ibv_wr_local_inv(self->ex, 1));
	EXPECT_BATCH(EOPNOTSUPP, ibv_wr_send_tso(self->ex, self->a.buf, 8, 8));
	EXPECT_BATCH(EOPNOTSUPP, ibv_wr_bind_mw(self->ex, NULL, 1, NULL));
	/* Programs look whether it has these. */
	EXPECT_TRUE(!self->ex->wr_atomic_write);
	memcpy(&wr_flush, (char *)self->ex + WR_FLUSH, sizeof(wr_flush));
	EXPECT_TRUE(!wr_flush);
	EXPECT_BATCH(EOPNOTSUPP, ibv_wr_set_xrc_srqn(self->ex, 1));
	/* A setter comes without a work request, or data are set twice. */
	EXPECT_BATCH(EINVAL, ibv_wr_set_sge(self->ex, 1, 1, 1));
	EXPECT_BATCH(EINVAL, BUILD_SEND(1); ibv_wr_set_sge(self->ex, 1, 1, 1));
	/* An RC or UC request has an address, or a UD request has none. */
	ibv_wr_start(self->ex);
	BUILD_SEND(1);
	begin(self->ex, 1, IBV_SEND_SIGNALED);
	ibv_wr_send(self->ex);
	if (!self->ah)
		ibv_wr_set_ud_addr(self->ex, NULL, 1, 1);
	EXPECT_EQ(EINVAL, ibv_wr_complete(self->ex));
	/* The queue pair does not support the flag or the operation. */
	EXPECT_BATCH(EOPNOTSUPP, BUILD_SEND(1); begin(self->ex, 1, IBV_SEND_IP_CSUM);
		     ibv_wr_send(self->ex));
	EXPECT_BATCH(variant->type == IBV_QPT_RC ? EINVAL : EOPNOTSUPP,
		     BUILD_SEND(1); begin(self->ex, 1, 0);
		     ibv_wr_atomic_fetch_add(self->ex, 1, 8, 1));
	EXPECT_TRUE(no_comp(self->a.cq));
	/* An empty batch succeeds. */
	EXPECT_BATCH(0, );
}

/* If the list is longer than the queue, nothing is posted. */
TEST_F(wr_ex, queue_full)
{
	int i;

	if (over_incumbent())
		SKIP(return, "only providers know how long their queues are");
	ibv_wr_start(self->ex);
	for (i = 0; i < 2000; i++)
		BUILD_SEND(i);
	EXPECT_EQ(ENOMEM, ibv_wr_complete(self->ex));
	EXPECT_TRUE(no_comp(self->a.cq));
	EXPECT_EQ(IBV_QPS_RTS, query_state(self->a.qp));
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	EXPECT_BATCH(0, BUILD_SEND(5));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 5);
}

#define BUILD_RDMA(wr_id, call, offset, len) \
	BUILD(wr_id, IBV_SEND_SIGNALED, call, \
	      ibv_wr_set_sge(self->ex, self->a.mr->lkey, addr64(self->a.buf + (offset)), len))

TEST_F(wr_ex, rdma)
{
	struct ibv_qp_ex *ex = self->ex;
	uint64_t remote = addr64(self->b.buf + 8192), word = 41;
	uint32_t rkey = self->b.mr->rkey;

	if (variant->type == IBV_QPT_UD)
		SKIP(return, "no datagrams");
	fill(self->a.buf, 3000, 1);
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 0));
	ibv_wr_start(ex);
	BUILD_RDMA(1, ibv_wr_rdma_write(ex, rkey, remote), 0, 2000);
	BUILD_RDMA(3, ibv_wr_rdma_write_imm(ex, rkey, remote + 2000, htonl(77)), 2000, 1000);
	ASSERT_EQ(0, ibv_wr_complete(ex));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_RDMA_WRITE, 1);
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_RDMA_WRITE, 3);
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV_RDMA_WITH_IMM, 2);
	EXPECT_EQ(htonl(77), self->wc.imm_data);
	EXPECT_TRUE(filled(self->b.buf + 8192, 3000, 1));
	if (variant->type == IBV_QPT_UC)
		return;

	memcpy(self->b.buf + 16384, &word, 8);
	ibv_wr_start(ex);
	BUILD_RDMA(4, ibv_wr_rdma_read(ex, rkey, remote), 8192, 3000);
	BUILD_RDMA(5, ibv_wr_atomic_fetch_add(ex, rkey, remote + 8192, 9), 16384, 8);
	BUILD_RDMA(6, ibv_wr_atomic_cmp_swp(ex, rkey, remote + 8192, 50, 1234), 16392, 8);
	ASSERT_EQ(0, ibv_wr_complete(ex));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_RDMA_READ, 4);
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_FETCH_ADD, 5);
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_COMP_SWAP, 6);
	EXPECT_TRUE(filled(self->a.buf + 8192, 3000, 1));
	EXPECT_EQ(0, memcmp(self->a.buf + 16384, &word, 8));
	word = 50;
	EXPECT_EQ(0, memcmp(self->a.buf + 16392, &word, 8));
	word = 1234;
	EXPECT_EQ(0, memcmp(self->b.buf + 16384, &word, 8));
}

/* A message with an invalid R_Key is received with an error. */
TEST_F(wr_ex, send_with_invalidation)
{
	if (variant->type != IBV_QPT_RC)
		SKIP(return, "only of reliable connections");
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	EXPECT_BATCH(0, BUILD_RDMA(1, ibv_wr_send_inv(self->ex, 0xdeadbe00), 0, 8));
	ASSERT_EQ(1, wait_comp(self->b.cq, &self->wc));
	EXPECT_EQ(2, self->wc.wr_id);
	EXPECT_NE(IBV_WC_SUCCESS, self->wc.status);
}

struct poster {
	struct ibv_qp_ex *ex;
	struct ibv_ah *ah;
	struct side *from, *to;
	uint64_t id;
	int err;
};

static void *post_twos(void *arg)
{
	struct poster *p = arg;
	int i;

	for (i = 0; i < 4 && !p->err; i++) {
		ibv_wr_start(p->ex);
		build_send(p->ex, p->ah, p->from, p->to, p->id);
		build_send(p->ex, p->ah, p->from, p->to, p->id + 1);
		p->err = ibv_wr_complete(p->ex);
	}
	return NULL;
}

/*
 * ibv_wr_start() locks out other threads until the batch is complete, so that
 * the two work requests of a batch are adjacent.
 */
TEST_F(wr_ex, threads)
{
	struct poster p[2] = {
		{ .ex = self->ex, .ah = self->ah, .from = &self->a,
		  .to = &self->b, .id = 10 },
		{ .ex = self->ex, .ah = self->ah, .from = &self->a,
		  .to = &self->b, .id = 20 },
	};
	pthread_t thread[2];
	uint64_t first;
	int i;

	for (i = 0; i < 16; i++)
		ASSERT_EQ(0, post_recv(&self->b, i, 0, 1000));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, post_twos, &p[i]));
	for (i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		ASSERT_EQ(0, p[i].err);
	}
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(1, wait_comp(self->a.cq, &self->wc));
		ASSERT_EQ(IBV_WC_SUCCESS, self->wc.status);
		first = self->wc.wr_id;
		EXPECT_TRUE(first == 10 || first == 20);
		ASSERT_EQ(1, wait_comp(self->a.cq, &self->wc));
		EXPECT_EQ(first + 1, self->wc.wr_id);
	}
}

TEST_HARNESS_MAIN
