// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests shared receive queues: two connections take their receives from one
 * queue.  A failure means that a receive is lost or goes wrong, or that the
 * events or the limits of the queue do.
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <pthread.h>

#include "rdma_test.h"

#define WRS	16
#define SIZE	64	/* of each message */

FIXTURE(srq) {
	struct pair p[2];
	struct ibv_context *verbs;
	struct ibv_srq *srq;
	struct ibv_srq_init_attr attr;
	uint8_t *buf;
	struct ibv_mr *mr;
	struct ibv_wc wc;
};

FIXTURE_SETUP(srq)
{
	struct pair_opts opts;
	struct pair *p = self->p;
	int i;

	/* All ids use the device's default protection domain. */
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_to_client_qp(&p[0], &opts));
	self->verbs = p[0].client.id->verbs;
	self->attr.attr.max_wr = WRS;
	self->attr.attr.max_sge = 2;
	self->attr.srq_context = &self->attr;
	self->srq = ibv_create_srq(p[0].client.id->pd, &self->attr);
	ASSERT_NE(NULL, self->srq)
		TH_LOG("ibv_create_srq: %s", strerror(errno));
	opts.server_qp.srq = self->srq;
	ASSERT_EQ(0, pair_connect(&p[0], &opts));
	ASSERT_EQ(0, pair_server_qp(&p[0], &opts));
	ASSERT_EQ(0, pair_accept(&p[0], &opts));
	/*
	 * opts.server_qp.cap has 0 receives now, with which no receive CQ would
	 * be created.
	 */
	pair_defaults(&opts);
	opts.server_qp.srq = self->srq;
	ASSERT_EQ(0, pair_open(&p[1], &opts));
	ASSERT_EQ(p[0].server.id->pd, p[1].server.id->pd);

	self->buf = aligned_alloc(4096, 65536);
	memset(self->buf, POISON, 65536);
	self->mr = ibv_reg_mr(self->srq->pd, self->buf, 65536, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, self->mr);
	/* Read the asynchronous events of the ids without blocking. */
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, fcntl(self->verbs->async_fd, F_SETFL, O_NONBLOCK));
}

FIXTURE_TEARDOWN(srq)
{
	pair_close(&self->p[1]);
	end_close(&self->p[0].client);
	end_close(&self->p[0].server);
	if (self->srq) {
		EXPECT_EQ(0, ibv_destroy_srq(self->srq));
	}
	if (self->mr) {
		EXPECT_EQ(0, ibv_dereg_mr(self->mr));
	}
	pair_close(&self->p[0]);
	free(self->buf);
}

static int post_recv(struct ibv_srq *srq, struct ibv_mr *mr, unsigned int slot)
{
	struct ibv_sge sge = {
		.addr = addr64((uint8_t *)mr->addr + slot * SIZE),
		.length = SIZE, .lkey = mr->lkey,
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = slot, .sg_list = &sge, .num_sge = 1,
	};

	return ibv_post_srq_recv(srq, &wr, &bad);
}

static int send_message(struct end *end, unsigned int seed)
{
	fill(end->buf, SIZE, seed);
	return end_send(end, (void *)(unsigned long)seed, 0, SIZE, IBV_SEND_SIGNALED);
}

TEST_F(srq, fields)
{
	EXPECT_EQ(self->verbs, self->srq->context);
	EXPECT_EQ(&self->attr, self->srq->srq_context);
	EXPECT_EQ(self->p[0].client.id->pd, self->srq->pd);
	EXPECT_LE(WRS, self->attr.attr.max_wr);
	EXPECT_LE(2, self->attr.attr.max_sge);
}

TEST_F(srq, made_with_an_absurd_limit)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 1, .max_sge = 1, .srq_limit = UINT32_MAX },
	};
	struct ibv_srq *srq;

	srq = ibv_create_srq(self->srq->pd, &attr);
	ASSERT_NE(NULL, srq);
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* Each message, from either sender, takes the queue's next buffer. */
TEST_F(srq, two_connections)
{
	struct rdma_cm_id *server;
	unsigned int i, slot;

	for (i = 0; i < WRS; i++)
		ASSERT_EQ(0, post_recv(self->srq, self->mr, i));
	for (i = 0; i < 3 * WRS; i++) {
		slot = i % WRS;
		server = self->p[i % 2].server.id;
		ASSERT_EQ(0, send_message(&self->p[i % 2].client, i + 1));
		ASSERT_COMP_OK(self->p[i % 2].client.id->send_cq, &self->wc,
			       IBV_WC_SEND, i + 1ul);
		ASSERT_COMP_OK(server->recv_cq, &self->wc, IBV_WC_RECV,
			       (unsigned long)slot);
		EXPECT_EQ(server->qp->qp_num, self->wc.qp_num);
		EXPECT_EQ(SIZE, self->wc.byte_len);
		ASSERT_TRUE(filled(self->buf + slot * SIZE, SIZE, i + 1));
		ASSERT_EQ(0, post_recv(self->srq, self->mr, slot));
	}
	EXPECT_TRUE(all_bytes(self->buf + WRS * SIZE, 65536 - WRS * SIZE, POISON));
}

TEST_F(srq, entries_are_scattered_to)
{
	struct ibv_sge list[2] = {
		{ .addr = addr64(self->buf), .length = 10, .lkey = self->mr->lkey },
		{ .addr = addr64(self->buf + 1000), .length = SIZE - 10,
		  .lkey = self->mr->lkey },
	};
	struct ibv_recv_wr *bad, wr = {
		.wr_id = 7, .sg_list = list, .num_sge = 2,
	};
	uint8_t joined[SIZE];

	ASSERT_EQ(0, ibv_post_srq_recv(self->srq, &wr, &bad));
	ASSERT_EQ(0, send_message(&self->p[1].client, 3));
	ASSERT_COMP_OK(self->p[1].server.id->recv_cq, &self->wc, IBV_WC_RECV, 7ul);
	memcpy(joined, self->buf, 10);
	memcpy(joined + 10, self->buf + 1000, SIZE - 10);
	EXPECT_TRUE(filled(joined, SIZE, 3));
}

/* perftest 25 posts such receives. */
TEST_F(srq, receive_that_is_longer_than_its_region)
{
	struct ibv_sge sge = { .length = 4096 };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_mr *mr;
	unsigned int i;

	mr = ibv_reg_mr(self->srq->pd, self->buf, 2 * SIZE, IBV_ACCESS_LOCAL_WRITE);
	ASSERT_NE(NULL, mr);
	sge.lkey = mr->lkey;
	/* The second one has no room for the message. */
	for (i = 0; i < 2; i++) {
		wr.wr_id = i;
		sge.addr = addr64(self->buf) + SIZE + i;
		ASSERT_EQ(0, ibv_post_srq_recv(self->srq, &wr, &bad));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, send_message(&self->p[1].client, i + 1));
		ASSERT_EQ(1, wait_comp(self->p[1].server.id->recv_cq, &self->wc));
		EXPECT_EQ(i, self->wc.wr_id);
		EXPECT_EQ(i == 1, self->wc.status != IBV_WC_SUCCESS);
		EXPECT_NE(IBV_WC_WR_FLUSH_ERR, self->wc.status);
		EXPECT_TRUE(all_bytes(self->buf, SIZE, POISON));
		EXPECT_TRUE(i == 1 || filled(self->buf + SIZE, SIZE, 1));
		EXPECT_TRUE(all_bytes(self->buf + 2 * SIZE, 4096, POISON));
	}
	EXPECT_EQ(0, ibv_dereg_mr(mr));
}

/* The receives before the refused one stay posted. */
TEST_F(srq, list_with_a_bad_one)
{
	struct ibv_sge sge = {
		.addr = addr64(self->buf), .length = SIZE, .lkey = self->mr->lkey,
	};
	struct ibv_recv_wr wr[3] = {
		{ .wr_id = 0, .next = &wr[1], .sg_list = &sge, .num_sge = 1 },
		{ .wr_id = 1, .next = &wr[2], .sg_list = &sge, .num_sge = 1000 },
		{ .wr_id = 2, .sg_list = &sge, .num_sge = 1 },
	}, *bad = NULL;

	EXPECT_NE(0, ibv_post_srq_recv(self->srq, wr, &bad));
	EXPECT_EQ(&wr[1], bad);
	ASSERT_EQ(0, send_message(&self->p[0].client, 1));
	ASSERT_COMP_OK(self->p[0].server.id->recv_cq, &self->wc, IBV_WC_RECV, 0ul);
	EXPECT_TRUE(filled(self->buf, SIZE, 1));
	ASSERT_EQ(0, post_recv(self->srq, self->mr, 5));
	ASSERT_EQ(0, send_message(&self->p[0].client, 2));
	ASSERT_COMP_OK(self->p[0].server.id->recv_cq, &self->wc, IBV_WC_RECV, 5ul);
}

TEST_F(srq, full)
{
	struct ibv_recv_wr *bad = NULL, wr = { .wr_id = 99 };
	unsigned int i;
	int err = 0;

	for (i = 0; i < 1 << 16 && !err; i++)
		err = post_recv(self->srq, self->mr, 0);
	EXPECT_EQ(ENOMEM, err);
	EXPECT_LT(WRS, i);
	EXPECT_EQ(ENOMEM, ibv_post_srq_recv(self->srq, &wr, &bad));
	EXPECT_EQ(&wr, bad);
	/* A message has consumed a receive, so there is room again. */
	ASSERT_EQ(0, send_message(&self->p[0].client, 1));
	ASSERT_COMP_OK(self->p[0].server.id->recv_cq, &self->wc, IBV_WC_RECV, 0ul);
	EXPECT_EQ(0, post_recv(self->srq, self->mr, 0));
}

/* A queue pair with a shared receive queue accepts no receives. */
TEST_F(srq, queue_pair_takes_no_receives)
{
	struct end *s = &self->p[0].server;
	struct ibv_sge list = sge(s, 0, SIZE);
	struct ibv_recv_wr *bad, wr = { .sg_list = &list, .num_sge = 1 };

	EXPECT_NE(0, ibv_post_recv(s->id->qp, &wr, &bad));
	EXPECT_EQ(self->srq, s->id->qp->srq);
}

TEST_F(srq, empty_queue_is_not_ready)
{
	ASSERT_EQ(0, send_message(&self->p[0].client, 1));
	ASSERT_COMP(self->p[0].client.id->send_cq, &self->wc,
		    IBV_WC_RNR_RETRY_EXC_ERR, 1ul);
	/* The other connection still works. */
	ASSERT_EQ(0, post_recv(self->srq, self->mr, 0));
	ASSERT_EQ(0, send_message(&self->p[1].client, 2));
	ASSERT_COMP_OK(self->p[1].server.id->recv_cq, &self->wc, IBV_WC_RECV, 0ul);
	EXPECT_TRUE(filled(self->buf, SIZE, 2));
}

/* The end of a connection flushes no receives of the shared queue. */
TEST_F(srq, survives_a_connection)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, post_recv(self->srq, self->mr, i));
	ASSERT_EQ(0, rdma_disconnect(self->p[0].client.id));
	ASSERT_EQ(0, expect_event(self->p[0].server.channel,
				  RDMA_CM_EVENT_DISCONNECTED,
				  &self->p[0].server.event));
	EXPECT_TRUE(no_comp(self->p[0].server.id->recv_cq));
	rdma_destroy_qp(self->p[0].server.id);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(0, send_message(&self->p[1].client, i + 1));
		ASSERT_COMP_OK(self->p[1].server.id->recv_cq, &self->wc,
			       IBV_WC_RECV, (unsigned long)i);
		EXPECT_TRUE(filled(self->buf + i * SIZE, SIZE, i + 1));
	}
}

TEST_F(srq, attributes)
{
	struct ibv_srq_attr attr;

	memset(&attr, POISON, sizeof(attr));
	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	EXPECT_LE(WRS, attr.max_wr);
	EXPECT_LE(2, attr.max_sge);
	EXPECT_EQ(0, attr.srq_limit);
	attr.srq_limit = 5;
	ASSERT_EQ(0, ibv_modify_srq(self->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	EXPECT_EQ(5, attr.srq_limit);
	/* The refused change must change nothing. */
	attr.srq_limit = attr.max_wr + 1;
	EXPECT_EQ(EINVAL, ibv_modify_srq(self->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	EXPECT_EQ(5, attr.srq_limit);
}

/* The receives that are in the queue stay there. */
TEST_F(srq, resize)
{
	struct ibv_srq_attr attr, larger = { .max_wr = 4 * WRS, .srq_limit = 7 };
	struct ibv_device_attr device;
	unsigned int i;

	ASSERT_EQ(0, ibv_query_device(self->verbs, &device));
	if (!(device.device_cap_flags & IBV_DEVICE_SRQ_RESIZE)) {
		EXPECT_NE(0, ibv_modify_srq(self->srq, &larger, IBV_SRQ_MAX_WR));
		return;
	}
	for (i = 0; i < WRS; i++)
		ASSERT_EQ(0, post_recv(self->srq, self->mr, i));
	ASSERT_EQ(0, ibv_modify_srq(self->srq, &larger, IBV_SRQ_MAX_WR));
	ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
	EXPECT_LE(4 * WRS, attr.max_wr);
	EXPECT_EQ(0, attr.srq_limit);
	for (; i < 4 * WRS; i++)
		ASSERT_EQ(0, post_recv(self->srq, self->mr, i));
	attr.max_wr = WRS;
	EXPECT_EQ(EINVAL, ibv_modify_srq(self->srq, &attr, IBV_SRQ_MAX_WR));
	for (i = 0; i < 4 * WRS; i++) {
		ASSERT_EQ(0, send_message(&self->p[1].client, i + 1));
		ASSERT_COMP_OK(self->p[1].client.id->send_cq, &self->wc,
			       IBV_WC_SEND, i + 1ul);
		ASSERT_COMP_OK(self->p[1].server.id->recv_cq, &self->wc,
			       IBV_WC_RECV, (unsigned long)i);
		EXPECT_TRUE(filled(self->buf + i * SIZE, SIZE, i + 1));
	}
	ASSERT_EQ(0, ibv_modify_srq(self->srq, &attr, IBV_SRQ_MAX_WR));
}

static int next_async(struct ibv_context *verbs, struct ibv_async_event *event)
{
	if (!readable(verbs->async_fd, DEADLINE_MS)) {
		fprintf(stderr, "# no asynchronous event\n");
		return -1;
	}
	return ibv_get_async_event(verbs, event);
}

static bool no_async(struct ibv_context *verbs)
{
	struct ibv_async_event event;

	if (!readable(verbs->async_fd, QUIET_MS))
		return true;
	if (ibv_get_async_event(verbs, &event))
		return true;
	fprintf(stderr, "# event %s\n", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	return false;
}

/* One event comes when fewer receives than the limit are left. */
TEST_F(srq, limit_event)
{
	struct ibv_srq_attr attr = { .srq_limit = 4 };
	struct ibv_async_event event;
	unsigned int i, round;

	for (i = 0; i < 8; i++)
		ASSERT_EQ(0, post_recv(self->srq, self->mr, i));
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, ibv_modify_srq(self->srq, &attr, IBV_SRQ_LIMIT));
		for (i = 0; i < 3; i++) {
			ASSERT_EQ(0, send_message(&self->p[0].client, i + 1));
			ASSERT_COMP_OK(self->p[0].server.id->recv_cq, &self->wc,
				       IBV_WC_RECV, i + round * 8ul);
		}
		EXPECT_TRUE(no_async(self->verbs));
		for (; i < 6; i++) {
			ASSERT_EQ(0, send_message(&self->p[1].client, i + 1));
			ASSERT_COMP_OK(self->p[1].server.id->recv_cq, &self->wc,
				       IBV_WC_RECV, i + round * 8ul);
		}
		memset(&event, POISON, sizeof(event));
		ASSERT_EQ(0, next_async(self->verbs, &event));
		EXPECT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
		EXPECT_EQ(self->srq, event.element.srq);
		ibv_ack_async_event(&event);
		ASSERT_EQ(0, ibv_query_srq(self->srq, &attr));
		EXPECT_EQ(0, attr.srq_limit);
		attr.srq_limit = 4;
		for (; i < 8; i++) {
			ASSERT_EQ(0, send_message(&self->p[1].client, i + 1));
			ASSERT_COMP_OK(self->p[1].server.id->recv_cq, &self->wc,
				       IBV_WC_RECV, i + round * 8ul);
		}
		EXPECT_TRUE(no_async(self->verbs));
		for (i = 0; i < 8; i++)
			ASSERT_EQ(0, post_recv(self->srq, self->mr, i + 8));
	}
}

struct destroyer {
	struct ibv_srq *srq;
	int result;
	bool done;
};

static void *destroy(void *arg)
{
	struct destroyer *d = arg;

	d->result = ibv_destroy_srq(d->srq);
	__atomic_store_n(&d->done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* ibv_get_async_event(3): destroying waits for the acknowledgement. */
TEST_F(srq, destroy_waits_for_acks)
{
	struct destroyer d = { .srq = self->srq };
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	struct ibv_async_event event;
	pthread_t thread;
	unsigned int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, post_recv(self->srq, self->mr, i));
	ASSERT_EQ(0, ibv_modify_srq(self->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, send_message(&self->p[0].client, 1));
	ASSERT_EQ(0, next_async(self->verbs, &event));
	ASSERT_EQ(IBV_EVENT_SRQ_LIMIT_REACHED, event.event_type);
	rdma_destroy_qp(self->p[0].server.id);
	rdma_destroy_qp(self->p[1].server.id);
	ASSERT_EQ(0, pthread_create(&thread, NULL, destroy, &d));
	usleep(100 * 1000);
	EXPECT_FALSE(__atomic_load_n(&d.done, __ATOMIC_ACQUIRE));
	ibv_ack_async_event(&event);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, d.result);
	self->srq = NULL;
}

/* An event that was not fetched goes with its queue. */
TEST_F(srq, event_of_a_queue_that_is_gone)
{
	struct ibv_srq_attr attr = { .srq_limit = 2 };
	unsigned int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, post_recv(self->srq, self->mr, i));
	ASSERT_EQ(0, ibv_modify_srq(self->srq, &attr, IBV_SRQ_LIMIT));
	ASSERT_EQ(0, send_message(&self->p[0].client, 1));
	ASSERT_TRUE(readable(self->verbs->async_fd, DEADLINE_MS));
	rdma_destroy_qp(self->p[0].server.id);
	rdma_destroy_qp(self->p[1].server.id);
	ASSERT_EQ(0, ibv_destroy_srq(self->srq));
	self->srq = NULL;
	EXPECT_TRUE(no_async(self->verbs));
}

TEST_F(srq, destroy_order)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *srq;
	struct ibv_pd *pd;

	EXPECT_EQ(EBUSY, ibv_destroy_srq(self->srq));
	/* The queue still works. */
	ASSERT_EQ(0, post_recv(self->srq, self->mr, 0));
	ASSERT_EQ(0, send_message(&self->p[0].client, 1));
	ASSERT_COMP_OK(self->p[0].server.id->recv_cq, &self->wc, IBV_WC_RECV, 0ul);
	pd = ibv_alloc_pd(self->verbs);
	ASSERT_NE(NULL, pd);
	srq = ibv_create_srq(pd, &init);
	ASSERT_NE(NULL, srq);
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(srq, more_than_the_device_has)
{
	struct ibv_srq_init_attr init = {};
	struct ibv_device_attr device;

	ASSERT_EQ(0, ibv_query_device(self->verbs, &device));
	ASSERT_LE(1, device.max_srq);
	init.attr.max_wr = device.max_srq_wr + 1;
	init.attr.max_sge = 1;
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_srq(self->srq->pd, &init));
	init.attr.max_wr = 1;
	init.attr.max_sge = device.max_srq_sge + 1;
	EXPECT_NULL_ERRNO(EINVAL, ibv_create_srq(self->srq->pd, &init));
}

TEST_F(srq, extended)
{
	struct ibv_srq_init_attr_ex init = {
		.srq_context = self,
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = self->srq->pd,
	};
	struct ibv_srq *srq;
	uint32_t num;

	srq = ibv_create_srq_ex(self->verbs, &init);
	ASSERT_NE(NULL, srq);
	EXPECT_EQ(self, srq->srq_context);
	EXPECT_LE(4, init.attr.max_wr);
	EXPECT_EQ(EOPNOTSUPP, ibv_get_srq_num(srq, &num));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
	init.srq_type = IBV_SRQT_TM;
	init.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	errno = 0;
	EXPECT_EQ(NULL, ibv_create_srq_ex(self->verbs, &init));
	/* libibverbs asks the device's provider, which returns EINVAL. */
	EXPECT_TRUE(errno == EOPNOTSUPP || (over_incumbent() && errno == EINVAL));
}

TEST_HARNESS_MAIN
