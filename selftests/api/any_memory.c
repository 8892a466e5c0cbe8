// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests posts from and into memory that is not registered, which only librdma_post
 * has: by a flag of the queue pair, and by the environment.
 */
#include <kselftest_harness.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_post.h>

#include "rdma_test.h"

#pragma weak rdma_post_recv_any
#pragma weak rdma_post_read_any

#define LEN	20000
#define ONLY	"only librdma_post has this"

/* A pair whose queue pairs take any memory, and memory that is not registered. */
FIXTURE(any) {
	PAIR_MEMBERS;
	uint8_t *mem, *to;
};

static int any_qp(struct rdma_cm_id *id, const struct ibv_qp_init_attr *from)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = from->cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = RDMA_POST_QP_ANY_MEMORY,
	};

	return rdma_create_qp_ex(id, &attr);
}

static int any_pair(struct pair *p, struct pair_opts *opts)
{
	if (over_incumbent())
		return 0;
	if (pair_to_resolve(p, opts) || any_qp(p->client.id, &opts->client_qp) ||
	    end_buffer(&p->client, opts->size) || pair_connect(p, opts) ||
	    any_qp(p->server.id, &opts->server_qp) ||
	    end_buffer(&p->server, opts->size))
		return -1;
	return pair_accept(p, opts);
}

FIXTURE_SETUP(any)
{
	pair_defaults(&self->opts);
	self->opts.client_qp.cap.max_inline_data = 0;
	self->c = &self->p.client;
	self->s = &self->p.server;
	ASSERT_EQ(0, any_pair(&self->p, &self->opts));
	if (over_incumbent())
		return;
	self->id = self->c->id;
	self->peer = self->s->id;
	self->remote = addr64(self->s->buf);
	self->rkey = self->s->mr->rkey;
	self->mem = poisoned_pages(BUF_SIZE);
	self->to = poisoned_pages(BUF_SIZE);
	ASSERT_NE(NULL, self->mem);
	ASSERT_NE(NULL, self->to);
}

FIXTURE_TEARDOWN(any)
{
	pair_close(&self->p);
}

TEST_F(any, send_and_receive)
{
	if (over_incumbent())
		SKIP(return, ONLY);
	fill(self->mem, LEN, 1);
	ASSERT_EQ(0, rdma_post_recv_any(self->peer, CONTEXT, self->to, BUF_SIZE));
	ASSERT_EQ(0, rdma_post_send(self->id, CONTEXT, self->mem, LEN, NULL,
				    IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_EQ(LEN, self->wc.byte_len);
	EXPECT_TRUE(filled(self->to, LEN, 1));
}

TEST_F(any, write_and_read)
{
	if (over_incumbent())
		SKIP(return, ONLY);
	fill(self->mem, LEN, 2);
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->mem, LEN, NULL,
				     IBV_SEND_SIGNALED, self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, LEN, 2));
	ASSERT_EQ(0, rdma_post_read_any(self->id, CONTEXT, self->to, LEN,
					IBV_SEND_SIGNALED, self->remote,
					self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT);
	EXPECT_TRUE(filled(self->to, LEN, 2));
	EXPECT_TRUE(all_bytes(self->to + LEN, 64, POISON));
}

/* Short data is copied even if the program has asked for no inline data. */
TEST_F(any, short_data_is_copied)
{
	if (over_incumbent())
		SKIP(return, ONLY);
	fill(self->mem, 256, 3);
	ASSERT_EQ(0, rdma_post_recv_any(self->peer, CONTEXT, self->to, BUF_SIZE));
	ASSERT_EQ(0, rdma_post_send(self->id, CONTEXT, self->mem, 256, NULL,
				    IBV_SEND_SIGNALED));
	memset(self->mem, 0, 256);
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_SEND, CONTEXT);
	ASSERT_COMP_OK(self->peer->recv_cq, &self->wc, IBV_WC_RECV, CONTEXT);
	EXPECT_TRUE(filled(self->to, 256, 3));
}

TEST_F(any, errors)
{
	if (over_incumbent())
		SKIP(return, ONLY);
	ASSERT_EQ(0, mprotect(self->mem, BUF_SIZE, PROT_READ));
	EXPECT_ERRNO(EFAULT, rdma_post_recv_any(self->peer, NULL, self->mem, LEN));
	EXPECT_ERRNO(EFAULT, rdma_post_read_any(self->id, NULL, self->mem, 8, 0,
						self->remote, self->rkey));
	EXPECT_ERRNO(EFAULT, rdma_post_send(self->id, NULL, NULL, 8, NULL, 0));
	EXPECT_ERRNO(EFAULT, rdma_post_send(self->id, NULL, NULL, LEN, NULL, 0));
	EXPECT_ERRNO(EINVAL, rdma_post_recv_any(self->peer, NULL, self->to,
						(size_t)-1));
	EXPECT_ERRNO(EINVAL, rdma_post_read_any(self->id, NULL, self->to,
						(size_t)-1, 0, self->remote,
						self->rkey));
	/* Read-only memory can be sent. */
	ASSERT_EQ(0, rdma_post_write(self->id, CONTEXT, self->mem, LEN, NULL,
				     IBV_SEND_SIGNALED, self->remote, self->rkey));
	ASSERT_COMP_OK(self->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(all_bytes(self->s->buf, LEN, POISON));
}

PAIR_FIXTURE(plain, pair_open)

/* Without the flag nothing has changed. */
TEST_F(plain, not_asked_for)
{
	ASSERT_EQ(0, end_write_from(self->c, addr64(self->c->buf), 64, 0, self->s));
	ASSERT_COMP_PROT(self->id->send_cq, &self->wc, CONTEXT);
}

TEST_F(plain, other_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = self->opts.client_qp.cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = 1u << 30,
	};

	rdma_destroy_qp(self->id);
	EXPECT_EQ(-1, rdma_create_qp_ex(self->id, &attr));
	if (!over_incumbent())
		EXPECT_EQ(EOPNOTSUPP, errno);
}

/* A program that knows nothing of it, in an environment that asks for it. */
TEST(environment)
{
	static const uint8_t constant[LEN] = { 1, 2, 3 };
	struct ibv_wc wc;
	struct pair p = {};
	int status;
	pid_t pid;

	if (over_incumbent())
		SKIP(return, ONLY);
	/* The library opens its file anew in a child. */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		setenv("RDMA_POST_ANY_MEMORY", "1", 1);
		if (pair_open(&p, NULL) ||
		    rdma_post_write(p.client.id, CONTEXT, (void *)constant, LEN,
				    NULL, IBV_SEND_SIGNALED, addr64(p.server.buf),
				    p.server.mr->rkey) ||
		    wait_comp(p.client.id->send_cq, &wc) != 1 || wc.status ||
		    memcmp(constant, p.server.buf, LEN))
			_exit(1);
		pair_close(&p);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
