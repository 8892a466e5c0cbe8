// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests extended completion queues, ibv_create_cq_ex(3).  A failure means that
 * batches lose completions, that a field is wrong, or that an unknown attribute
 * is not refused.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "rdma_test.h"

#define CQE	64
#define WRS	32
#define SIZE	100

FIXTURE(cq_ex) {
	struct pair p;
	struct end *c, *s;
	struct ibv_comp_channel *channel;
	struct ibv_cq_ex *send, *recv;	/* client's sends, server's receives */
	struct ibv_wc wc;
};

FIXTURE_VARIANT(cq_ex) {
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(cq_ex, locked) { .flags = 0 };
FIXTURE_VARIANT_ADD(cq_ex, single_threaded) { .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED };

static struct ibv_cq_ex *create(struct ibv_context *verbs, void *context,
				struct ibv_comp_channel *channel, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = CQE, .cq_context = context, .channel = channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS |
			    (over_incumbent() ? 0 : IBV_WC_EX_WITH_CVLAN),
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};

	return ibv_create_cq_ex(verbs, &attr);
}

FIXTURE_SETUP(cq_ex)
{
	struct ibv_context *verbs;
	struct pair_opts opts;

	pair_defaults(&opts);
	opts.client_qp.cap.max_send_wr = opts.server_qp.cap.max_recv_wr = WRS;
	ASSERT_EQ(0, pair_to_resolve(&self->p, &opts));
	verbs = self->p.client.id->verbs;
	self->channel = ibv_create_comp_channel(verbs);
	ASSERT_NE(NULL, self->channel);
	self->send = create(verbs, self, NULL, variant->flags);
	ASSERT_NE(NULL, self->send)
		TH_LOG("ibv_create_cq_ex: %s", strerror(errno));
	self->recv = create(verbs, self->channel, self->channel, variant->flags);
	ASSERT_NE(NULL, self->recv);
	opts.client_qp.send_cq = ibv_cq_ex_to_cq(self->send);
	opts.server_qp.recv_cq = ibv_cq_ex_to_cq(self->recv);
	ASSERT_EQ(0, pair_after_resolve(&self->p, &opts));
	self->c = &self->p.client;
	self->s = &self->p.server;
}

FIXTURE_TEARDOWN(cq_ex)
{
	pair_close(&self->p);
	if (self->send) {
		EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(self->send)));
	}
	if (self->recv) {
		EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(self->recv)));
	}
	if (self->channel) {
		EXPECT_EQ(0, ibv_destroy_comp_channel(self->channel));
	}
}

static int post_recv(struct end *end, unsigned long i)
{
	return end_recv(end, (void *)i, i * SIZE, SIZE);
}

static int post_send(struct end *end, unsigned long i, uint32_t len)
{
	return end_send(end, (void *)i, 0, len, IBV_SEND_SIGNALED);
}

/*
 * End a batch in which ibv_next_poll() returned @err.  By ibv_create_cq_ex(3)
 * this is needed after an error, too.  But rdma_rxe's provider has already
 * ended the batch and would skip the next completion.
 */
static void end_batch(struct ibv_cq_ex *cq, int err)
{
	struct ibv_device_attr attr;

	if (err && over_incumbent() && !ibv_query_device(cq->context, &attr) &&
	    attr.vendor_id == 0xffffff)
		return;
	ibv_end_poll(cq);
}

TEST_F(cq_ex, fields)
{
	EXPECT_EQ(self, self->send->cq_context);
	EXPECT_EQ(self->c->id->verbs, self->send->context);
	EXPECT_EQ(NULL, self->send->channel);
	EXPECT_EQ(self->channel, self->recv->channel);
	EXPECT_LE(CQE, self->send->cqe);
	EXPECT_EQ((void *)self->send, (void *)ibv_cq_ex_to_cq(self->send));
}

TEST_F(cq_ex, nothing_there)
{
	struct ibv_poll_cq_attr attr = {};

	EXPECT_EQ(ENOENT, ibv_start_poll(self->send, &attr));
	/* The call must not leave the queue locked. */
	EXPECT_EQ(ENOENT, ibv_start_poll(self->send, &attr));
	EXPECT_EQ(0, ibv_poll_cq(ibv_cq_ex_to_cq(self->send), 1, &self->wc));
}

TEST_F(cq_ex, attributes_of_the_future)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };

	if (over_incumbent() && on_rxe(self->c->id))
		SKIP(return, "rdma_rxe's provider does not look at them");
	EXPECT_EQ(EINVAL, ibv_start_poll(self->send, &attr));
}

TEST_F(cq_ex, batch_in_order)
{
	unsigned long i;
	int err;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, post_recv(self->s, i));
	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, post_send(self->c, i, i + 1));
	for (i = 0; i < 8;) {
		ASSERT_EQ(0, start_poll(self->recv));
		do {
			EXPECT_EQ(i, self->recv->wr_id);
			EXPECT_EQ(IBV_WC_SUCCESS, self->recv->status);
			EXPECT_EQ(IBV_WC_RECV, ibv_wc_read_opcode(self->recv));
			EXPECT_EQ(i + 1, ibv_wc_read_byte_len(self->recv));
			i++;
			err = ibv_next_poll(self->recv);
		} while (!err);
		EXPECT_EQ(ENOENT, err);
		end_batch(self->recv, err);
	}
	EXPECT_TRUE(no_comp(ibv_cq_ex_to_cq(self->recv)));
	for (i = 0; i < 8;) {
		ASSERT_EQ(0, start_poll(self->send));
		do {
			EXPECT_EQ(i++, self->send->wr_id);
			EXPECT_EQ(IBV_WC_SEND, ibv_wc_read_opcode(self->send));
			err = ibv_next_poll(self->send);
		} while (!err);
		end_batch(self->send, err);
	}
}

/* After a batch of one, the next batch or ibv_poll_cq() gets the rest. */
TEST_F(cq_ex, batches_of_one)
{
	unsigned long i;

	for (i = 0; i < 9; i++)
		ASSERT_EQ(0, post_recv(self->s, i));
	for (i = 0; i < 9; i++)
		ASSERT_EQ(0, post_send(self->c, i, SIZE));
	for (i = 0; i < 9; i += 3) {
		ASSERT_EQ(0, start_poll(self->recv));
		EXPECT_EQ(i, self->recv->wr_id);
		ibv_end_poll(self->recv);
		ASSERT_COMP_OK(ibv_cq_ex_to_cq(self->recv), &self->wc,
			       IBV_WC_RECV, i + 1);
		ASSERT_EQ(0, start_poll(self->recv));
		EXPECT_EQ(i + 2, self->recv->wr_id);
		ibv_end_poll(self->recv);
	}
}

TEST_F(cq_ex, immediate_data)
{
	struct ibv_sge list = sge(self->c, 0, 10);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &list, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = htobe32(0x12345678),
	};

	ASSERT_EQ(0, post_recv(self->s, 0));
	ASSERT_EQ(0, ibv_post_send(self->c->id->qp, &wr, &bad));
	ASSERT_EQ(0, start_poll(self->recv));
	EXPECT_EQ(htobe32(0x12345678), ibv_wc_read_imm_data(self->recv));
	EXPECT_EQ(IBV_WC_WITH_IMM, ibv_wc_read_wc_flags(self->recv) & IBV_WC_WITH_IMM);
	EXPECT_EQ(self->s->id->qp->qp_num, ibv_wc_read_qp_num(self->recv));
	EXPECT_EQ(10, ibv_wc_read_byte_len(self->recv));
	/* On Ethernet these are of no use for RC, but they can be read. */
	ibv_wc_read_src_qp(self->recv);
	ibv_wc_read_slid(self->recv);
	ibv_wc_read_sl(self->recv);
	ibv_wc_read_dlid_path_bits(self->recv);
	if (!over_incumbent()) {
		EXPECT_EQ(0, ibv_wc_read_cvlan(self->recv));
	}
	ibv_end_poll(self->recv);
}

TEST_F(cq_ex, errors)
{
	ASSERT_EQ(0, rdma_post_write(self->c->id, (void *)7, self->c->buf, 10,
				     self->c->mr, IBV_SEND_SIGNALED,
				     addr64(self->s->buf), 0xdeadbeef));
	ASSERT_EQ(0, start_poll(self->send));
	EXPECT_EQ(7, self->send->wr_id);
	EXPECT_EQ(IBV_WC_REM_ACCESS_ERR, self->send->status);
	ibv_wc_read_vendor_err(self->send);
	ibv_end_poll(self->send);
}

/* Ask for an event between ibv_start_poll() and ibv_end_poll(). */
TEST_F(cq_ex, events)
{
	struct ibv_cq *cq = ibv_cq_ex_to_cq(self->recv), *got;
	unsigned long i;
	void *context;

	ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, post_recv(self->s, i));
		EXPECT_FALSE(readable(self->channel->fd, 0));
		ASSERT_EQ(0, post_send(self->c, i, SIZE));
		ASSERT_TRUE(readable(self->channel->fd, DEADLINE_MS));
		ASSERT_EQ(0, ibv_get_cq_event(self->channel, &got, &context));
		EXPECT_EQ(cq, got);
		EXPECT_EQ(self->channel, context);
		ibv_ack_cq_events(got, 1);
		ASSERT_EQ(0, start_poll(self->recv));
		EXPECT_EQ(i, self->recv->wr_id);
		ASSERT_EQ(0, ibv_req_notify_cq(cq, 0));
		EXPECT_EQ(ENOENT, ibv_next_poll(self->recv));
		end_batch(self->recv, ENOENT);
	}
}

/* One batch gets five times as many completions as the queue has entries. */
TEST_F(cq_ex, long_batch)
{
	unsigned long i, done = 0;

	if (over_incumbent() && on_rxe(self->c->id))
		SKIP(return, "rdma_rxe's provider ends a batch that finds nothing");
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, post_recv(self->s, i) || post_send(self->c, i, 0));
	ASSERT_EQ(0, start_poll(self->send));
	for (;;) {
		ASSERT_EQ(IBV_WC_SUCCESS, self->send->status);
		ASSERT_EQ(done, self->send->wr_id);
		if (++done == 5 * CQE)
			break;
		ASSERT_COMP_OK(ibv_cq_ex_to_cq(self->recv), &self->wc,
			       IBV_WC_RECV, (done - 1) % 32);
		ASSERT_EQ(0, post_recv(self->s, i % 32));
		ASSERT_EQ(0, post_send(self->c, i++, 0));
		while (ibv_next_poll(self->send) == ENOENT)
			sched_yield();
	}
	ibv_end_poll(self->send);
}

/* Attributes that are not supported must be refused. */
FIXTURE(cq_ex_attr) {
	PAIR_MEMBERS;
	struct ibv_context *verbs;
	struct ibv_cq_init_attr_ex attr;
};

FIXTURE_SETUP(cq_ex_attr)
{
	PAIR_SETUP(pair_listen);
	self->id = self->p.listen;
	self->verbs = self->id->verbs;
	self->attr.cqe = 10;
	self->attr.wc_flags = IBV_WC_STANDARD_FLAGS;
}

FIXTURE_TEARDOWN(cq_ex_attr)
{
	pair_close(&self->p);
}

#define EXPECT_NO_CQ(want_errno) do { \
	errno = 0; \
	EXPECT_EQ(NULL, ibv_create_cq_ex(self->verbs, &self->attr)); \
	EXPECT_EQ(want_errno, errno); \
} while (0)

TEST_F(cq_ex_attr, time_stamps_and_others)
{
	static const uint64_t flags[] = {
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, IBV_WC_EX_WITH_FLOW_TAG,
		IBV_WC_EX_WITH_TM_INFO,
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, 1ull << 40,
	};
	size_t i;

	if (over_incumbent() && !on_rxe(self->id))
		SKIP(return, "the device may have them");
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		self->attr.wc_flags = IBV_WC_STANDARD_FLAGS | flags[i];
		EXPECT_NO_CQ(EOPNOTSUPP);
	}
}

TEST_F(cq_ex_attr, unknown_bits)
{
	self->attr.comp_mask = 1 << 20;
	if (over_incumbent())
		SKIP(return, "rdma_rxe's provider does not look at them");
	EXPECT_NO_CQ(EOPNOTSUPP);
	self->attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
	self->attr.flags = 1 << 20;
	EXPECT_NO_CQ(EOPNOTSUPP);
	self->attr.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	EXPECT_NO_CQ(EOPNOTSUPP);
}

TEST_F(cq_ex_attr, sizes)
{
	struct ibv_device_attr device;

	ASSERT_EQ(0, ibv_query_device(self->verbs, &device));
	self->attr.cqe = 0;
	EXPECT_NO_CQ(EINVAL);
	self->attr.cqe = device.max_cqe + 1;
	EXPECT_NO_CQ(EINVAL);
	self->attr.cqe = 10;
	self->attr.comp_vector = 1 << 20;
	EXPECT_NO_CQ(EINVAL);
}

TEST_F(cq_ex_attr, parent_domain)
{
	struct ibv_td_init_attr td_attr = {};
	struct ibv_parent_domain_init_attr attr = {};
	struct ibv_cq_ex *cq;
	struct ibv_pd *pd, *parent;
	struct ibv_td *td;
	struct ibv_mr *mr;
	char buf[100];

	pd = ibv_alloc_pd(self->verbs);
	ASSERT_NE(NULL, pd);
	td = ibv_alloc_td(self->verbs, &td_attr);
	if (!td) {
		EXPECT_EQ(EOPNOTSUPP, errno);
		EXPECT_EQ(0, ibv_dealloc_pd(pd));
		SKIP(return, "the device's provider has no thread domains");
	}
	EXPECT_NULL_ERRNO(EINVAL, ibv_alloc_parent_domain(self->verbs, &attr));
	attr.pd = pd;
	attr.td = td;
	parent = ibv_alloc_parent_domain(self->verbs, &attr);
	ASSERT_NE(NULL, parent);
	EXPECT_EQ(self->verbs, parent->context);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_EQ(EBUSY, ibv_dealloc_td(td));
	self->attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	self->attr.parent_domain = parent;
	cq = ibv_create_cq_ex(self->verbs, &self->attr);
	ASSERT_NE(NULL, cq);
	EXPECT_EQ(0, ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	/* A parent domain can be used as a protection domain. */
	mr = ibv_reg_mr(parent, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	EXPECT_EQ(parent, mr->pd);
	EXPECT_EQ(0, ibv_dereg_mr(mr));
	EXPECT_EQ(0, ibv_dealloc_pd(parent));
	EXPECT_EQ(0, ibv_dealloc_td(td));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(cq_ex_attr, moderation)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE };
	struct ibv_device_attr_ex device;
	struct ibv_cq *cq;

	ASSERT_EQ(0, ibv_query_device_ex(self->verbs, NULL, &device));
	cq = ibv_create_cq(self->verbs, 10, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	EXPECT_EQ(device.cq_mod_caps.max_cq_count ? 0 : EOPNOTSUPP, ibv_modify_cq(cq, &attr));
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* Several threads poll one queue; each completion goes to one of them. */
#define MESSAGES 400

struct poller {
	struct ibv_cq_ex *cq;
	unsigned char *seen;
	unsigned int *count;
	int bad;
};

static void *poll_batches(void *arg)
{
	struct poller *p = arg;
	struct ibv_poll_cq_attr attr = {};
	uint64_t end = now_ms() + DEADLINE_MS;
	int err;

	while (__atomic_load_n(p->count, __ATOMIC_RELAXED) < MESSAGES &&
	       now_ms() < end) {
		if (ibv_start_poll(p->cq, &attr)) {
			sched_yield();
			continue;
		}
		do {
			p->bad |= p->cq->status != IBV_WC_SUCCESS ||
				  p->cq->wr_id >= MESSAGES;
			if (p->cq->wr_id < MESSAGES)
				p->bad |= p->seen[p->cq->wr_id]++;
			__atomic_add_fetch(p->count, 1, __ATOMIC_RELAXED);
			err = ibv_next_poll(p->cq);
		} while (!err);
		end_batch(p->cq, err);
	}
	return NULL;
}

TEST_F(cq_ex, threads)
{
	unsigned char seen[MESSAGES] = {};
	unsigned int count = 0;
	struct poller p = { .cq = self->send, .seen = seen, .count = &count };
	struct poller q = p;
	pthread_t threads[2];
	unsigned long i;

	if (variant->flags)
		SKIP(return, "the queue is for one thread");
	ASSERT_EQ(0, pthread_create(&threads[0], NULL, poll_batches, &p));
	ASSERT_EQ(0, pthread_create(&threads[1], NULL, poll_batches, &q));
	for (i = 0; i < MESSAGES; i++) {
		while (i - __atomic_load_n(&count, __ATOMIC_RELAXED) >= WRS)
			sched_yield();
		ASSERT_EQ(0, rdma_post_write(self->c->id, (void *)i, self->c->buf,
					     10, self->c->mr, IBV_SEND_SIGNALED,
					     addr64(self->s->buf),
					     self->s->mr->rkey));
	}
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	EXPECT_EQ(MESSAGES, count);
	EXPECT_EQ(0, p.bad | q.bad);
}

TEST_HARNESS_MAIN
