// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests which objects an id destroys and which the program must, if either has
 * created them; and threads that are cancelled while they wait.  A failure
 * means that an object leaks, or is destroyed twice or too early.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <time.h>

#include "rdma_test.h"

FIXTURE(own) {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;		/* bound, or NULL */
	struct ibv_pd *pd;
	struct ibv_qp_init_attr attr;
};

FIXTURE_SETUP(own)
{
	struct sockaddr_storage addr;

	ASSERT_TRUE(test_addr(AF_INET, &addr) || test_addr(AF_INET6, &addr));
	set_port(&addr, 0);
	self->channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->channel);
	ASSERT_EQ(0, rdma_create_id(self->channel, &self->id, NULL,
				    RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_bind_addr(self->id, (struct sockaddr *)&addr));
	self->pd = ibv_alloc_pd(self->id->verbs);
	ASSERT_NE(NULL, self->pd);
	self->attr = (struct ibv_qp_init_attr) {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
}

/* Free the domain last; an object that has leaked would keep it busy. */
FIXTURE_TEARDOWN(own)
{
	if (self->id)
		EXPECT_EQ(0, rdma_destroy_id(self->id));
	EXPECT_EQ(0, ibv_dealloc_pd(self->pd));
	rdma_destroy_event_channel(self->channel);
}

TEST_F(own, queues_that_the_program_destroys)
{
	struct ibv_comp_channel *send_channel, *recv_channel;

	ASSERT_EQ(0, rdma_create_qp(self->id, self->pd, &self->attr));
	send_channel = self->id->send_cq_channel;
	recv_channel = self->id->recv_cq_channel;
	ASSERT_EQ(0, ibv_destroy_qp(self->id->qp));
	ASSERT_EQ(0, ibv_destroy_cq(self->id->send_cq));
	ASSERT_EQ(0, ibv_destroy_cq(self->id->recv_cq));
	ASSERT_EQ(0, ibv_destroy_comp_channel(send_channel));
	ASSERT_EQ(0, ibv_destroy_comp_channel(recv_channel));
}

/* Many programs destroy the id first, against rdma_destroy_id(3). */
TEST_F(own, queues_outlive_the_id)
{
	struct ibv_comp_channel *send_channel, *recv_channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_wc wc;
	struct ibv_qp *qp;

	ASSERT_EQ(0, rdma_create_qp(self->id, self->pd, &self->attr));
	send_channel = self->id->send_cq_channel;
	recv_channel = self->id->recv_cq_channel;
	send_cq = self->id->send_cq;
	recv_cq = self->id->recv_cq;
	qp = self->id->qp;
	ASSERT_EQ(0, rdma_destroy_id(self->id));
	self->id = NULL;
	EXPECT_EQ(0, ibv_poll_cq(send_cq, 1, &wc));
	ASSERT_EQ(0, ibv_destroy_qp(qp));
	ASSERT_EQ(0, ibv_destroy_cq(send_cq));
	ASSERT_EQ(0, ibv_destroy_cq(recv_cq));
	ASSERT_EQ(0, ibv_destroy_comp_channel(send_channel));
	ASSERT_EQ(0, ibv_destroy_comp_channel(recv_channel));
}

TEST_F(own, queue_pair_that_the_program_has_put_there)
{
	struct ibv_cq *cq = ibv_create_cq(self->id->verbs, 8, NULL, NULL, 0);

	ASSERT_NE(NULL, cq);
	self->attr.send_cq = cq;
	self->attr.recv_cq = cq;
	self->id->qp = ibv_create_qp(self->pd, &self->attr);
	ASSERT_NE(NULL, self->id->qp);
	EXPECT_EQ(EBUSY, ibv_destroy_cq(cq));
	rdma_destroy_qp(self->id);
	EXPECT_EQ(NULL, self->id->qp);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

#define MOVES	200

/* An id whose queue pair the program has put into another id. */
struct moved {
	struct rdma_cm_id *id;
	struct ibv_qp *qp;
	pthread_barrier_t start;
};

static void *destroy_moved_qp(void *arg)
{
	struct moved *moved = arg;

	pthread_barrier_wait(&moved->start);
	return (void *)(intptr_t)ibv_destroy_qp(moved->qp);
}

/* One thread destroys the id that had it first, one the queue pair. */
TEST_F(own, moved_queue_pair_and_its_first_id)
{
	struct ibv_cq *cq = ibv_create_cq(self->id->verbs, 8, NULL, NULL, 0);
	struct sockaddr_storage addr;
	struct rdma_cm_id *first;
	struct moved moved;
	pthread_t thread;
	void *status;
	int i;

	ASSERT_NE(NULL, cq);
	self->attr.send_cq = cq;
	self->attr.recv_cq = cq;
	memcpy(&addr, rdma_get_local_addr(self->id), sizeof(struct sockaddr_in6));
	set_port(&addr, 0);
	ASSERT_EQ(0, pthread_barrier_init(&moved.start, NULL, 2));
	for (i = 0; i < MOVES; i++) {
		ASSERT_EQ(0, rdma_create_id(self->channel, &first, NULL,
					    RDMA_PS_TCP));
		ASSERT_EQ(0, rdma_bind_addr(first, (struct sockaddr *)&addr));
		ASSERT_EQ(0, rdma_create_qp(first, self->pd, &self->attr));
		moved.qp = first->qp;
		first->qp = NULL;
		ASSERT_EQ(0, pthread_create(&thread, NULL, destroy_moved_qp,
					    &moved));
		pthread_barrier_wait(&moved.start);
		EXPECT_EQ(0, rdma_destroy_id(first));
		ASSERT_EQ(0, pthread_join(thread, &status));
		EXPECT_EQ(NULL, status);
	}
	pthread_barrier_destroy(&moved.start);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_F(own, shared_receive_queue_of_an_endpoint)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};

	ASSERT_EQ(0, rdma_create_srq(self->id, self->pd, &attr));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(self->pd));
	rdma_destroy_ep(self->id);
	self->id = NULL;
}

static void *waits(void *arg)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(arg, &event);
	return NULL;
}

/* Cancel one thread at once, and one that sleeps. */
TEST_F(own, cancelled_while_it_waits)
{
	struct timespec end;
	pthread_t thread;
	void *result;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, waits,
					    self->channel));
		if (i)
			usleep(100000);
		ASSERT_EQ(0, pthread_cancel(thread));
		end = real_time_in(DEADLINE_MS);
		ASSERT_EQ(0, pthread_timedjoin_np(thread, &result, &end));
		EXPECT_EQ(PTHREAD_CANCELED, result);
	}
	EXPECT_TRUE(no_event(self->channel));
}

TEST_HARNESS_MAIN
