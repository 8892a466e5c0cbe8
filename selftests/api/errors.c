// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests refused posts and failed work requests.  A refused post must return the
 * right error and change nothing; after an error the queue pair must flush its
 * work requests.
 */
#include <kselftest_harness.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "rdma_test.h"

PAIR_FIXTURE(errors, pair_open_patient)

/* Check that the connection still works. */
#define ASSERT_WORKS() do { \
	fill(self->c->buf, 100, 77); \
	memset(self->s->buf, POISON, 100); \
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf, 100, \
				     self->c->mr, IBV_SEND_SIGNALED, \
				     self->remote, self->rkey)); \
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT); \
	ASSERT_TRUE(filled(self->s->buf, 100, 77)); \
	ASSERT_TRUE(no_comp(self->id->send_cq)); \
} while (0)

/*
 * A send that waits for a receive holds up the queue.  Two thirds of a second
 * pass until it is repeated, so each test uses only one.
 */
static int hold_queue(struct end *end)
{
	return end_send(end, (void *)0, 0, 1, IBV_SEND_SIGNALED);
}

static int release_queue(struct end *peer)
{
	return end_recv(peer, NULL, 0, 1);
}

/* A full queue returns ENOMEM; completions make room again. */
TEST_F(errors, send_queue_full)
{
	unsigned int max = 1, i;

	ASSERT_EQ(0, hold_queue(self->c));
	while (!rdma_post_write(self->id, (void *)(uintptr_t)max, self->c->buf,
				1, self->c->mr, IBV_SEND_SIGNALED,
				self->remote, self->rkey)) {
		max++;
		ASSERT_GT(10000, max);
	}
	EXPECT_EQ(ENOMEM, errno);
	EXPECT_LE(self->opts.client_qp.cap.max_send_wr, max);
	EXPECT_TRUE(no_comp(self->id->send_cq));
	ASSERT_EQ(0, release_queue(self->s));
	for (i = 0; i < max; i++) {
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, i ?
			       IBV_WC_RDMA_WRITE : IBV_WC_SEND, (uintptr_t)i);
	}
	ASSERT_WORKS();
}

TEST_F(errors, list_longer_than_the_queue)
{
	struct ibv_sge list = sge(self->c, 0, 1);
	struct ibv_send_wr wr[100], *bad = NULL;
	unsigned int i, taken;

	ASSERT_EQ(0, hold_queue(self->c));
	for (i = 0; i < 100; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i + 1, .next = i < 99 ? wr + i + 1 : NULL,
			.sg_list = &list, .num_sge = 1,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { self->remote, self->rkey },
		};
	ASSERT_EQ(ENOMEM, ibv_post_send(self->id->qp, wr, &bad));
	ASSERT_NE(NULL, bad);
	taken = bad - wr;
	EXPECT_LE(self->opts.client_qp.cap.max_send_wr, taken + 1);
	ASSERT_GT(100, taken);
	ASSERT_EQ(0, release_queue(self->s));
	for (i = 0; i <= taken; i++) {
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, i ?
			       IBV_WC_RDMA_WRITE : IBV_WC_SEND, (uintptr_t)i);
	}
	ASSERT_WORKS();
}

TEST_F(errors, recv_queue_full)
{
	unsigned int max = 0, i;

	while (!rdma_post_recv(self->peer, (void *)(uintptr_t)max, self->s->buf,
			       100, self->s->mr)) {
		max++;
		ASSERT_GT(10000, max);
	}
	EXPECT_EQ(ENOMEM, errno);
	EXPECT_LE(self->opts.server_qp.cap.max_recv_wr, max);
	for (i = 0; i < max; i++) {
		ASSERT_EQ(0, end_send(self->c, NULL, 0, 1, IBV_SEND_SIGNALED));
		ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV,
			       (uintptr_t)i);
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, NULL);
	}
	/* The receive queue is empty now and takes receives again. */
	ASSERT_EQ(0, end_recv(self->s, NULL, 0, 100));
}

TEST_F(errors, list_of_receives_longer_than_the_queue)
{
	struct ibv_sge list = sge(self->s, 0, 100);
	struct ibv_recv_wr wr[100], *bad = NULL;
	unsigned int i, taken;

	for (i = 0; i < 100; i++)
		wr[i] = (struct ibv_recv_wr) {
			.wr_id = i, .next = i < 99 ? wr + i + 1 : NULL,
			.sg_list = &list, .num_sge = 1,
		};
	ASSERT_EQ(ENOMEM, ibv_post_recv(self->peer->qp, wr, &bad));
	ASSERT_NE(NULL, bad);
	taken = bad - wr;
	EXPECT_LE(self->opts.server_qp.cap.max_recv_wr, taken);
	ASSERT_GT(100, taken);
	for (i = 0; i < taken; i++) {
		ASSERT_EQ(0, end_send(self->c, NULL, 0, 1, IBV_SEND_SIGNALED));
		ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, NULL);
		ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV,
			       (uintptr_t)i);
	}
	EXPECT_TRUE(no_comp(self->peer->recv_cq));
	ASSERT_WORKS();
}

TEST_F(errors, too_many_entries)
{
	struct ibv_sge many[MANY_SGE];
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int i;

	ASSERT_EQ(0, ibv_query_qp(self->id->qp, &attr, IBV_QP_CAP, &init));
	ASSERT_GT(MANY_SGE, init.cap.max_send_sge);
	for (i = 0; i < MANY_SGE; i++)
		many[i] = sge(self->c, i, 1);
	EXPECT_ERRNO(EINVAL, rdma_post_writev(self->id, CONTEXT, many,
					      init.cap.max_send_sge + 1,
					      IBV_SEND_SIGNALED, self->remote,
					      self->rkey));
	EXPECT_ERRNO(EINVAL, rdma_post_readv(self->id, CONTEXT, many, MANY_SGE,
					     IBV_SEND_SIGNALED, self->remote,
					     self->rkey));
	EXPECT_ERRNO(EINVAL, rdma_post_sendv(self->id, CONTEXT, many,
					     init.cap.max_send_sge + 1,
					     IBV_SEND_SIGNALED));
	EXPECT_ERRNO(EINVAL, rdma_post_recvv(self->id, CONTEXT, many,
					     init.cap.max_recv_sge + 1));
	ASSERT_WORKS();
}

TEST_F(errors, inline_too_long)
{
	uint32_t max = self->opts.client_qp.cap.max_inline_data;
	char *buf = calloc(1, max + 1);

	ASSERT_NE(NULL, buf);
	ASSERT_LE(64, max);
	EXPECT_ERRNO(EINVAL, rdma_post_write(self->id, CONTEXT, buf, max + 1,
					     NULL, IBV_SEND_INLINE |
					     IBV_SEND_SIGNALED, self->remote,
					     self->rkey));
	EXPECT_ERRNO(EINVAL, rdma_post_send(self->id, CONTEXT, buf, max + 1,
					    NULL, IBV_SEND_INLINE));
	/* Data of the greatest length still fit. */
	fill(buf, max, 1);
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, buf, max, NULL,
				     IBV_SEND_INLINE | IBV_SEND_SIGNALED,
				     self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, max, 1));
	free(buf);
	ASSERT_WORKS();
}

/* The limit is on the sum of the entries. */
TEST_F(errors, inline_vector_too_long)
{
	uint32_t max = self->opts.client_qp.cap.max_inline_data;
	struct ibv_sge list[2];
	char *buf = calloc(2, max);

	ASSERT_NE(NULL, buf);
	list[0] = (struct ibv_sge) { .addr = addr64(buf), .length = max };
	list[1] = (struct ibv_sge) { .addr = addr64(buf + max), .length = 1 };
	EXPECT_ERRNO(EINVAL, rdma_post_writev(self->id, CONTEXT, list, 2,
					      IBV_SEND_INLINE | IBV_SEND_SIGNALED,
					      self->remote, self->rkey));
	free(buf);
	ASSERT_WORKS();
}

static struct ibv_send_wr one_wr(enum ibv_wr_opcode opcode, struct ibv_sge *list)
{
	return (struct ibv_send_wr) {
		.wr_id = addr64(CONTEXT), .sg_list = list, .num_sge = 1,
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
	};
}

TEST_F(errors, no_such_opcode)
{
	struct ibv_sge list = sge(self->c, 0, 8);
	struct ibv_send_wr wr = one_wr((enum ibv_wr_opcode)99, &list), *bad = NULL;
	int ret;

	if (over_incumbent() && on_rxe(self->id))
		SKIP(return, "rxe's provider passes on any opcode");
	ret = ibv_post_send(self->id->qp, &wr, &bad);
	EXPECT_TRUE(ret == EINVAL || ret == EOPNOTSUPP)
		TH_LOG("%s", strerror(ret));
	EXPECT_EQ(&wr, bad);
	ASSERT_WORKS();
}

/* A program may not use opcodes of in-kernel users. */
TEST_F(errors, kernel_opcodes)
{
	struct ibv_sge list = sge(self->c, 0, 8);
	struct ibv_send_wr wr, *bad;
	int opcode, ret;

	if (over_incumbent())
		SKIP(return, "rxe's provider passes them on, and the kernel's part crashes");
	/* IB_WR_REG_MR, IB_WR_REG_MR_INTEGRITY, and the opcode after them. */
	for (opcode = 0x20; opcode <= 0x22; opcode++) {
		wr = one_wr((enum ibv_wr_opcode)opcode, &list);
		bad = NULL;
		ret = ibv_post_send(self->id->qp, &wr, &bad);
		EXPECT_TRUE(ret == EINVAL || ret == EOPNOTSUPP)
			TH_LOG("opcode %#x: %s", opcode, strerror(ret));
		EXPECT_EQ(&wr, bad);
	}
	ASSERT_WORKS();
}

TEST_F(errors, atomic_of_another_size)
{
	struct ibv_sge list = sge(self->c, 0, 4);
	struct ibv_send_wr wr = one_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &list), *bad;

	wr.wr.atomic.remote_addr = self->remote;
	wr.wr.atomic.rkey = self->rkey;
	EXPECT_EQ(EINVAL, ibv_post_send(self->id->qp, &wr, &bad));
	EXPECT_EQ(&wr, bad);
	ASSERT_WORKS();
}

TEST_F(errors, create_qp_beyond_the_device)
{
	struct ibv_qp_init_attr attr = self->opts.client_qp;
	struct ibv_device_attr dev;
	struct rdma_cm_id *id;
	struct pair p = self->p;

	ASSERT_EQ(0, ibv_query_device(self->id->verbs, &dev));
	memset(&p.client, 0, sizeof(p.client));
	ASSERT_EQ(0, pair_resolve(&p, &self->opts));
	id = p.client.id;
	attr.cap.max_send_wr = dev.max_qp_wr + 1;
	EXPECT_EQ(-1, rdma_create_qp(id, NULL, &attr));
	EXPECT_TRUE(errno == EINVAL || errno == ENOMEM);
	EXPECT_EQ(NULL, id->qp);
	attr = self->opts.client_qp;
	attr.cap.max_send_sge = dev.max_sge + 1;
	EXPECT_EQ(-1, rdma_create_qp(id, NULL, &attr));
	EXPECT_TRUE(errno == EINVAL || errno == ENOMEM);
	attr = self->opts.client_qp;
	attr.cap.max_recv_wr = dev.max_qp_wr + 1;
	EXPECT_EQ(-1, rdma_create_qp(id, NULL, &attr));
	EXPECT_TRUE(errno == EINVAL || errno == ENOMEM);
	EXPECT_EQ(NULL, id->qp);
	/* The id can still get a queue pair. */
	EXPECT_EQ(0, pair_client_qp(&p, &self->opts));
	end_close(&p.client);
	rdma_destroy_event_channel(p.client.channel);
	ASSERT_WORKS();
}

/* A device may complete the request before it moves the queue pair to ERROR. */
static bool in_error_state(struct ibv_qp *qp)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	do {
		if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
			return false;
		if (attr.qp_state == IBV_QPS_ERR)
			return true;
		usleep(1000);
	} while (now_ms() < end);
	return false;
}

/* After an error, the rest of both queues is flushed in order. */
TEST_F(errors, error_flushes_the_rest)
{
	uintptr_t i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, end_recv(self->c, (void *)i, 0, 100));
	/* The peer has no receive yet, so the writes behind wait. */
	ASSERT_EQ(0, hold_queue(self->c));
	ASSERT_EQ(0, rdma_post_write(self->id, (void *)1, self->c->buf, 10,
				     self->c->mr, 0, 0, 0));
	for (i = 2; i < 6; i++)
		ASSERT_EQ(0, rdma_post_write(self->id, (void *)i, self->c->buf,
					     10, self->c->mr, 0, self->remote,
					     self->rkey));
	ASSERT_EQ(0, end_recv(self->s, NULL, 5000, 100));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, 0ul);
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, 1ul);
	for (i = 2; i < 6; i++)
		ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, i);
	for (i = 0; i < 4; i++)
		ASSERT_COMP(self->id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, i);
	EXPECT_TRUE(all_bytes(self->s->buf, 4096, POISON));
	EXPECT_TRUE(no_comp(self->id->send_cq));
	EXPECT_TRUE(in_error_state(self->id->qp));
}

/* A bad local key moves the queue pair to the error state. */
TEST_F(errors, local_key_stops_the_queue_pair)
{
	struct ibv_sge list = sge(self->c, 0, 8);

	list.lkey++;
	ASSERT_EQ(0, rdma_post_sendv(self->id, CONTEXT, &list, 1, 0));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
	EXPECT_EQ(self->id->qp->qp_num, self->wc.qp_num);
	ASSERT_TRUE(in_error_state(self->id->qp));
	ASSERT_EQ(0, rdma_post_write(self->id, self, self->c->buf, 8,
				     self->c->mr, 0, self->remote, self->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, self);
	EXPECT_TRUE(all_bytes(self->s->buf, 8, POISON));
}

/* A program may move its queue pair to the error state. */
TEST_F(errors, modify_to_error)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp_init_attr init;
	int ret;

	ASSERT_EQ(0, end_recv(self->c, CONTEXT, 0, 100));
	ret = ibv_modify_qp(self->id->qp, &attr, IBV_QP_STATE);
	if (ret == EOPNOTSUPP)
		SKIP(return, "ibv_modify_qp() is not supported");
	ASSERT_EQ(0, ret);
	ASSERT_COMP(self->id->recv_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	ASSERT_EQ(0, ibv_query_qp(self->id->qp, &attr, IBV_QP_STATE, &init));
	EXPECT_EQ(IBV_QPS_ERR, attr.qp_state);
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf, 10,
				     self->c->mr, 0, self->remote, self->rkey));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_WR_FLUSH_ERR, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, 100, POISON));
}

/* The remote side of a failed write gets no completion. */
TEST_F(errors, peer_of_an_error)
{
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->c->buf, 10,
				     self->c->mr, 0, self->remote, self->rkey + 1));
	ASSERT_COMP(self->id->send_cq, &self->wc, IBV_WC_REM_ACCESS_ERR, CONTEXT);
	EXPECT_TRUE(no_comp(self->peer->send_cq));
	EXPECT_TRUE(no_comp(self->peer->recv_cq));
}

/* When descriptors run out, calls that need one fail with EMFILE. */
TEST(no_descriptors_left)
{
	struct rlimit limit;
	struct pair p;
	int fd;

	if (under_valgrind())
		SKIP(return, "valgrind keeps the limit to itself");
	ASSERT_EQ(0, pair_open(&p, NULL));
	fd = dup(0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = fd;
	close(fd);
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_NULL_ERRNO(EMFILE, rdma_create_event_channel());
	EXPECT_NULL_ERRNO(EMFILE, ibv_create_comp_channel(p.client.id->verbs));
	limit.rlim_cur = limit.rlim_max;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	pair_close(&p);
}

TEST_HARNESS_MAIN
