// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests what the manual pages of the posts promise.  The comment above a test
 * quotes the page, and the name of the test begins with the page's; a failure
 * means that a program written by the page does not work.
 */
#include <kselftest_harness.h>

#include "rdma_test.h"

PAIR_FIXTURE(man, pair_open)

/*
 * rdma_post_read(3), rdma_post_write(3), rdma_post_send(3), and their vectors
 */

static int post_send(struct rdma_cm_id *id, void *context, void *addr, size_t length,
		     struct ibv_mr *mr, int flags, uint64_t remote, uint32_t rkey)
{
	(void)remote;
	(void)rkey;
	return rdma_post_send(id, context, addr, length, mr, flags);
}

static int post_sendv(struct rdma_cm_id *id, void *context, struct ibv_sge *list, int n,
		      int flags, uint64_t remote, uint32_t rkey)
{
	(void)remote;
	(void)rkey;
	return rdma_post_sendv(id, context, list, n, flags);
}

static const struct op {
	int (*post)(struct rdma_cm_id *id, void *context, void *addr, size_t length,
		    struct ibv_mr *mr, int flags, uint64_t remote, uint32_t rkey);
	int (*postv)(struct rdma_cm_id *id, void *context, struct ibv_sge *list, int n,
		     int flags, uint64_t remote, uint32_t rkey);
	enum ibv_wc_opcode opcode;
} op_read = { rdma_post_read, rdma_post_readv, IBV_WC_RDMA_READ },
  op_write = { rdma_post_write, rdma_post_writev, IBV_WC_RDMA_WRITE },
  op_send = { post_send, post_sendv, IBV_WC_SEND };

FIXTURE(op) {
	PAIR_MEMBERS;
};

/* Each operation is a variant of the fixture. */
#define OP_VARIANTS(fixture)						\
FIXTURE_VARIANT(fixture) { const struct op *op; };			\
FIXTURE_VARIANT_ADD(fixture, read) { &op_read };			\
FIXTURE_VARIANT_ADD(fixture, write) { &op_write };			\
FIXTURE_VARIANT_ADD(fixture, send) { &op_send }

OP_VARIANTS(op);

FIXTURE_SETUP(op)
{
	PAIR_SETUP(pair_open);
}

FIXTURE_TEARDOWN(op)
{
	pair_close(&self->p);
}

/*
 * "Returns 0 on success, or -1 on error. If an error occurs, errno will be set
 * to indicate the failure reason."
 */
TEST_F(op, returns_minus_one_and_errno)
{
	const struct op *op = variant->op;
	struct ibv_sge many[MANY_SGE];
	int i;

	for (i = 0; i < MANY_SGE; i++)
		many[i] = sge(self->c, 0, 1);
	EXPECT_ERRNO(EINVAL, op->postv(self->id, CONTEXT, many, MANY_SGE, IBV_SEND_SIGNALED,
				       self->remote, self->rkey));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	EXPECT_TRUE(all_bytes(self->c->buf, 100, POISON));
	EXPECT_TRUE(all_bytes(self->s->buf, 2000, POISON));
	/* The refused post does not harm the connection. */
	ASSERT_EQ(0, end_recv(self->s, NULL, 0, 10));
	EXPECT_EQ(0, op->postv(self->id, CONTEXT, many, 1, IBV_SEND_SIGNALED, self->remote,
			       self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, op->opcode, CONTEXT);
}

/*
 * "The user-defined context [...] will be returned [...] through the [...]
 * wr_id".  rdma_post_recv(3) says the same.
 */
TEST_F(op, returns_the_context)
{
	static const uintptr_t contexts[] = { 0, 1, UINTPTR_MAX, 0x123456789abcdef0 };
	const struct op *op = variant->op;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(contexts); i++) {
		if (op->opcode == IBV_WC_SEND)
			ASSERT_EQ(0, end_recv(self->s, (void *)~contexts[i], 0, 10));
		ASSERT_EQ(0, op->post(self->id, (void *)contexts[i], self->c->buf, 10,
				      self->c->mr, IBV_SEND_SIGNALED, self->remote, self->rkey));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, op->opcode, contexts[i]);
		if (op->opcode == IBV_WC_SEND)
			ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, ~contexts[i]);
	}
}

/*
 * rdma_post_read(3)
 */

/* "Both the remote and local data buffers must have been registered [...]" */
TEST_F(man, read_needs_a_registered_remote_buffer)
{
	ASSERT_EQ(0, end_read(self->c, 10, self->s->buf + BUF_SIZE, self->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->c->buf, 10, POISON));
}

TEST_F(man, read_needs_a_registered_local_buffer)
{
	char buf[100];
	struct ibv_sge list = {
		.addr = addr64(buf), .length = sizeof(buf),
		.lkey = self->c->mr->lkey,
	};

	memset(buf, POISON, sizeof(buf));
	fill(self->s->buf, 100, 1);
	ASSERT_EQ(0, rdma_post_readv(self->id, CONTEXT, &list, 1,
				     IBV_SEND_SIGNALED, self->remote, self->rkey));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(buf, sizeof(buf), POISON));
}

/* "[...] and the buffers must remain registered until the read completes." */
TEST_F(man, read_needs_the_remote_registration_to_stay)
{
	ASSERT_EQ(0, ibv_dereg_mr(self->s->mr));
	self->s->mr = NULL;
	ASSERT_EQ(0, end_read(self->c, 10, self->s->buf, self->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->c->buf, 10, POISON));
}

/*
 * rdma_post_readv(3)
 */

/* "nsge: The number of scatter-gather array entries." */
TEST_F(man, readv_uses_no_more_entries_than_told)
{
	struct ibv_sge list[] = { sge(self->c, 100, 50), { .lkey = 1, .length = 50 } };

	ASSERT_EQ(0, rdma_post_readv(self->id, CONTEXT, list, 1,
				     IBV_SEND_SIGNALED, self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_EQ(50, self->wc.byte_len);
}

/*
 * rdma_post_write(3), rdma_post_writev(3)
 */

/*
 * "Unless inline data is specified, the local data buffer must have been
 * registered [...]"
 */
TEST_F(man, write_needs_an_mr_unless_inline)
{
	char buf[100];

	memset(buf, 0, sizeof(buf));
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, buf, sizeof(buf), NULL,
				     IBV_SEND_SIGNALED, self->remote, self->rkey));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 200, POISON));
}

TEST_F(man, write_needs_the_local_registration_to_stay)
{
	uint32_t lkey = self->c->mr->lkey;
	struct ibv_sge list = sge(self->c, 0, 100);

	ASSERT_EQ(0, ibv_dereg_mr(self->c->mr));
	self->c->mr = NULL;
	ASSERT_EQ(lkey, list.lkey);
	ASSERT_EQ(0, rdma_post_writev(self->id, CONTEXT, &list, 1,
				      IBV_SEND_SIGNALED, self->remote, self->rkey));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 200, POISON));
}

/* "The remote buffer must always be registered." */
TEST_F(man, write_needs_a_registered_remote_buffer)
{
	char buf[32] = "inline";

	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, buf, sizeof(buf), NULL,
				     IBV_SEND_INLINE, self->remote - 4096,
				     self->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
}

/*
 * rdma_post_send(3), rdma_post_sendv(3)
 */

/*
 * "Unless the send request is using inline data, the [...] buffer must have
 * been registered"
 */
TEST_F(man, send_needs_an_mr_unless_inline)
{
	char buf[100];

	memset(buf, 0, sizeof(buf));
	ASSERT_EQ(0, end_recv(self->s, NULL, 0, 4000));
	ASSERT_EQ(0, rdma_post_send(self->id, CONTEXT, buf, sizeof(buf), NULL,
				    IBV_SEND_SIGNALED));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 4000, POISON));
}

/*
 * "The user is responsible for ensuring that the remote peer has queued a
 * receive request before issuing the send operations."
 */
TEST_F(man, send_needs_a_receive_at_the_peer)
{
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 10, IBV_SEND_SIGNALED));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_RNR_RETRY_EXC_ERR, CONTEXT);
}

/* If the retries are unlimited, a send waits for the receive. */
TEST(send_waits_for_the_receive)
{
	struct pair_opts opts;
	struct ibv_wc wc;
	struct pair p;

	pair_defaults(&opts);
	ASSERT_EQ(0, pair_open_patient(&p, &opts));
	fill(p.client.buf, 100, 1);
	ASSERT_EQ(0, end_send(&p.client, CONTEXT, 0, 100, IBV_SEND_SIGNALED));
	EXPECT_TRUE(no_comp(p.client.id->send_cq));
	ASSERT_EQ(0, end_recv(&p.server, NULL, 0, 100));
	ASSERT_COMP_OK(p.client.id->send_cq, &wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(p.server.id->recv_cq, &wc, IBV_WC_RECV, NULL);
	EXPECT_TRUE(filled(p.server.buf, 100, 1));
	pair_close(&p);
}

/* "For a list of supported flags, see ibv_post_send." */
TEST_F(man, send_takes_every_flag_of_ibv_post_send)
{
	static const int flags[] = {
		0, IBV_SEND_FENCE, IBV_SEND_SOLICITED, IBV_SEND_INLINE,
		IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_INLINE,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		fill(self->c->buf, 20, i + 1);
		ASSERT_EQ(0, end_recv(self->s, NULL, 0, 20));
		ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 20, flags[i] | IBV_SEND_SIGNALED));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
		ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, NULL);
		EXPECT_TRUE(filled(self->s->buf, 20, i + 1));
	}
}

/*
 * rdma_post_recv(3), rdma_post_recvv(3)
 */

/* "Posts a work request to the receive queue of the queue pair [...]" */
TEST_F(man, recv_posts_to_the_receive_queue)
{
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, 10));
	EXPECT_TRUE(no_comp(self->peer->recv_cq));
	ASSERT_EQ(0, end_send(self->c, NULL, 0, 10, 0));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_EQ(self->peer->qp->qp_num, self->wc.qp_num);
	EXPECT_TRUE(no_comp(self->peer->send_cq));
}

/*
 * Send what does not fit into the posted receive.  The first status of each pair is
 * by the specification; rxe has the second.
 */
#define ASSERT_TOO_LARGE() do { \
	ASSERT_EQ(0, rdma_post_send(self->id, CONTEXT, self->c->buf, 100, \
				    self->c->mr, IBV_SEND_SIGNALED)); \
	ASSERT_COMP_ANY(self->id->send_cq, &self->wc, IBV_WC_REM_INV_REQ_ERR, \
			IBV_WC_REM_OP_ERR, CONTEXT); \
	ASSERT_COMP_ANY(self->peer->recv_cq, &self->wc, IBV_WC_LOC_LEN_ERR, \
			IBV_WC_LOC_QP_OP_ERR, CONTEXT); \
} while (0)

/*
 * "[...] a receive buffer is posted and large enough to contain all sent data
 * [...]"
 */
TEST_F(man, recv_buffer_must_be_large_enough)
{
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, 99));
	ASSERT_TOO_LARGE();
	EXPECT_TRUE(all_bytes(self->s->buf + 99, 100, POISON));
}

/*
 * "The message buffer must have been registered before being posted, with the
 * mr parameter referencing the registration."
 */
TEST_F(man, recv_buffer_must_be_registered)
{
	char buf[100];
	struct ibv_sge list = {
		.addr = addr64(buf), .length = sizeof(buf),
		.lkey = self->s->mr->lkey,
	};

	memset(buf, POISON, sizeof(buf));
	memset(self->c->buf, 0, sizeof(buf));
	ASSERT_EQ(0, rdma_post_recvv(self->peer, CONTEXT, &list, 1));
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 100, IBV_SEND_SIGNALED));
	ASSERT_COMP_PROT(self->peer->recv_cq, &self->wc, CONTEXT);
	EXPECT_TRUE(all_bytes(buf, sizeof(buf), POISON));
}

/* "The buffer must remain registered until the receive completes." */
TEST_F(man, recv_buffer_must_stay_registered)
{
	ASSERT_EQ(0, end_recv(self->s, CONTEXT, 0, 100));
	ASSERT_EQ(0, ibv_dereg_mr(self->s->mr));
	self->s->mr = NULL;
	memset(self->c->buf, 0, 100);
	ASSERT_EQ(0, end_send(self->c, CONTEXT, 0, 100, IBV_SEND_SIGNALED));
	/* The device finds this error, over either library. */
	ASSERT_EQ(1, wait_comp(self->peer->recv_cq, &self->wc));
	EXPECT_TRUE(device_prot(self->wc.status))
		TH_LOG("status: %s", ibv_wc_status_str(self->wc.status));
	EXPECT_EQ(addr64(CONTEXT), self->wc.wr_id);
	EXPECT_TRUE(all_bytes(self->s->buf, 100, POISON));
}

TEST_F(man, recv_returns_minus_one_and_errno)
{
	struct ibv_sge many[MANY_SGE];
	int i;

	for (i = 0; i < MANY_SGE; i++)
		many[i] = sge(self->s, 0, 1);
	EXPECT_ERRNO(EINVAL, rdma_post_recvv(self->peer, CONTEXT, many, MANY_SGE));
}

/* rdma_post_recvv(3): "[...] the total buffer space is large enough [...]" */
TEST_F(man, recvv_buffers_must_be_large_enough)
{
	struct ibv_sge list[] = { sge(self->s, 0, 50), sge(self->s, 100, 49) };

	ASSERT_EQ(0, rdma_post_recvv(self->peer, CONTEXT, list, 2));
	ASSERT_TOO_LARGE();
	EXPECT_TRUE(all_bytes(self->s->buf + 149, 100, POISON));
}

/*
 * "[...] the buffer must remain registered until the [operation] completes."  A
 * send without a receive at the peer holds back what is posted after it, so
 * that its memory can be deregistered in the meantime.
 */
FIXTURE(held) {
	PAIR_MEMBERS;
	struct ibv_mr *mr;
	uint8_t *mem;		/* of mr */
};

OP_VARIANTS(held);

FIXTURE_SETUP(held)
{
	PAIR_SETUP(pair_open_patient);
	self->mem = self->c->buf + 4096;
	self->mr = rdma_reg_msgs(self->id, self->mem, 4096);
	ASSERT_NE(NULL, self->mr);
	ASSERT_EQ(0, end_send(self->c, NULL, 0, 10, 0));
}

FIXTURE_TEARDOWN(held)
{
	if (self->mr)
		rdma_dereg_mr(self->mr);
	pair_close(&self->p);
}

/*
 * Without its memory, what was posted fails.  If that is before the acknowledgement
 * of the first send has come, that send is flushed.
 */
TEST_F(held, needs_the_local_registration_to_stay)
{
	const struct op *op = variant->op;
	uint8_t *from = self->mem, *to = self->s->buf + 100;

	if (op->opcode == IBV_WC_RDMA_READ) {
		from = self->s->buf + 100;
		to = self->mem;
	}
	fill(from, 100, 1);
	ASSERT_EQ(0, op->post(self->id, CONTEXT, self->mem, 100, self->mr, IBV_SEND_SIGNALED,
			      self->remote + 100, self->rkey));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	ASSERT_EQ(0, rdma_dereg_mr(self->mr));
	self->mr = NULL;
	ASSERT_EQ(0, end_recv(self->s, self, 0, 10));
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, self);
	ASSERT_EQ(1, wait_comp(self->id->send_cq, &self->wc));
	if (!self->wc.wr_id) {
		EXPECT_EQ(IBV_WC_WR_FLUSH_ERR, self->wc.status);
		ASSERT_EQ(1, wait_comp(self->id->send_cq, &self->wc));
	}
	EXPECT_TRUE(device_prot(self->wc.status))
		TH_LOG("status: %s", ibv_wc_status_str(self->wc.status));
	EXPECT_EQ(addr64(CONTEXT), self->wc.wr_id);
	if (op->opcode == IBV_WC_SEND) {
		ASSERT_EQ(0, rdma_post_recv(self->peer, self, to, 100, self->s->mr));
		EXPECT_TRUE(no_comp(self->peer->recv_cq));
	}
	EXPECT_TRUE(all_bytes(to, 100, POISON));
}

/*
 * rpma_read(3): its two flags map to signaled and unsignaled posts and its
 * context to wr_id.
 */

/* "RPMA_F_COMPLETION_ON_ERROR - generate the completion on error" */
TEST_F(man, rpma_completion_on_error)
{
	fill(self->s->buf, 100, 1);
	ASSERT_EQ(0, rdma_post_read(self->id, CONTEXT, self->c->buf, 100,
				    self->c->mr, 0, self->remote, self->rkey));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	/* Reads complete in order, so the first has completed, too. */
	ASSERT_EQ(0, rdma_post_read(self->id, self, self->c->buf + 100, 100,
				    self->c->mr, IBV_SEND_SIGNALED,
				    self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, self);
	EXPECT_TRUE(filled(self->c->buf, 100, 1));
	ASSERT_EQ(0, rdma_post_read(self->id, CONTEXT, self->c->buf, 100,
				    self->c->mr, 0, self->remote, self->rkey + 1));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

/*
 * "RPMA_F_COMPLETION_ALWAYS - generate the completion regardless of result
 * [...]"
 */
TEST_F(man, rpma_completion_always)
{
	ASSERT_READ(self->c, 100, self->s->buf, self->rkey);
	ASSERT_EQ(0, rdma_post_read(self->id, self, self->c->buf, 100,
				    self->c->mr, IBV_SEND_SIGNALED,
				    self->remote, self->rkey + 1));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, self);
	EXPECT_TRUE(no_comp(self->id->send_cq));
}

TEST_HARNESS_MAIN
