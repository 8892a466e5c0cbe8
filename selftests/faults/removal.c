// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Removes the device under load.  A failure means that a program is not told,
 * that commands on a removed device do not fail with ENODEV, or that objects
 * stay behind.
 *
 * RPOST_TEST_REMOVE is a command that removes the device, RPOST_TEST_ADD one
 * that brings it back; without them the tests are skipped:
 *
 *   RPOST_TEST_REMOVE="rdma link del rxe0"
 *   RPOST_TEST_ADD="rdma link add rxe0 type rxe netdev dummy0"
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "faults.h"
#include "share.h"

#define BUF_SIZE	4096

FIXTURE(removal) {
	struct rp_end c, s;
	char *buf;
	struct rpost_reg_mr cmr, smr;
	uint32_t listener;
	char counts[RP_COUNTS];
};

FIXTURE_SETUP(removal)
{
	if (!rp_can_remove())
		return;
	rp_counts(self->counts);
	self->buf = rp_pages(2 * BUF_SIZE);
	ASSERT_NE(NULL, self->buf);
	ASSERT_EQ(0, rp_end_init(&self->c));
	ASSERT_EQ(0, rp_end_init(&self->s));
	ASSERT_EQ(0, rp_listener(&self->s, &self->listener));
	ASSERT_EQ(0, rp_join(&self->c, &self->s, self->listener, 0));
	ASSERT_EQ(0, rp_reg_mr(self->c.fd, self->c.pd, self->buf, BUF_SIZE,
			       RPOST_ACCESS_LOCAL_WRITE, &self->cmr));
	ASSERT_EQ(0, rp_reg_mr(self->s.fd, self->s.pd, self->buf + BUF_SIZE,
			       BUF_SIZE, RPOST_ACCESS_LOCAL_WRITE |
			       RPOST_ACCESS_REMOTE_WRITE, &self->smr));
}

FIXTURE_TEARDOWN(removal)
{
	if (!rp_can_remove())
		return;
	rp_end_close(&self->c);
	rp_end_close(&self->s);
	EXPECT_EQ(0, rp_add_device());
	EXPECT_EQ(0, rp_wait_counts(self->counts));
	SURVIVED(FAULT_REMOVAL);
}

/* Fetch events until @ids different ids have DEVICE_REMOVAL. */
static int wait_removals(int channel, unsigned int ids)
{
	struct rpost_get_event event;
	uint32_t last = 0;
	int ret = 0;

	while (ids && !ret) {
		ret = rp_get_event(channel, &event);
		if (ret || event.event != RPOST_EVENT_DEVICE_REMOVAL ||
		    event.id == last)
			continue;
		last = event.id;
		ids--;
	}
	return ret;
}

TEST_F(removal, under_load)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 1, self->buf, 64,
				      self->cmr.lkey);
	struct rpost_query_qp query;
	uint64_t end = rp_now_ms() + REMOVAL_MS;
	struct rpost_query_object object;
	struct rpost_reg_mr mr;
	struct rpost_wc wc;
	pthread_t thread;
	int ret, share, posted = 0;
	uint32_t pd;
	void *status;

	RP_NEED_REMOVAL();
	share = share_device(self->c.fd, self->c.device);
	ASSERT_LE(0, share);
	send.wr.remote_addr = (uintptr_t)self->buf + BUF_SIZE;
	send.wr.rkey = self->smr.rkey;
	ASSERT_EQ(0, rp_post_recv(&self->s, 77, self->buf, 0, 0));
	do {
		ret = rp_post_send(&self->c, &send);
		if (!ret && !posted++)
			ASSERT_EQ(0, pthread_create(&thread, NULL,
						    rp_remove_soon, NULL));
		while (rp_poll_cq(&self->c.cq, &wc) == 1)
			;
	} while ((!ret || ret == -ENOMEM) && rp_now_ms() < end);
	EXPECT_EQ(-ENODEV, ret);
	ASSERT_LT(0, posted);
	/* Removal returns and the program is told. */
	ASSERT_EQ(0, pthread_join(thread, &status));
	EXPECT_EQ(NULL, status);
	EXPECT_EQ(0, wait_removals(self->c.channel, 1));
	EXPECT_EQ(0, wait_removals(self->s.channel, 2));
	ASSERT_EQ(1, rp_wait_cq(&self->s.cq, &wc));
	EXPECT_EQ(77, wc.wr_id);
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);

	/* Every command but DESTROY fails. */
	EXPECT_EQ(0, rp_first_device(self->c.fd));
	EXPECT_EQ(-ENODEV, rp_alloc_pd(self->c.fd, self->c.device, &pd));
	EXPECT_EQ(-ENODEV, rp_reg_mr(self->c.fd, self->c.pd, self->buf, 64, 0,
				     &mr));
	EXPECT_EQ(-ENODEV, rp_post_send(&self->c, &send));
	EXPECT_EQ(-ENODEV, rp_post_recv(&self->c, 1, NULL, 0, 0));
	EXPECT_EQ(-ENODEV, rp_query_qp(&self->c, &query));
	EXPECT_EQ(-ENODEV, rp_disconnect(self->c.fd, self->c.id));
	/* There is no event any more for which to sleep. */
	EXPECT_EQ(-ENODEV, rp_arm_cq(&self->c.cq, 0));
	EXPECT_EQ(-ENODEV, rp_arm_cq(&self->c.cq, RPOST_ARM_SOLICITED));
	EXPECT_EQ(-ENODEV, share_device(share, self->c.device));
	EXPECT_EQ(-ENODEV, named_device(share));
	EXPECT_EQ(-ENODEV, query_object(share, RPOST_OBJ_MR, self->cmr.handle,
					&object));
	EXPECT_EQ(-ENODEV, query_object(share, RPOST_OBJ_PD, self->c.pd,
					&object));

	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_ID, self->c.id));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_MR, self->cmr.handle));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_CQ,
				self->c.cq.cmd.handle));
	EXPECT_EQ(0, rp_destroy(share, RPOST_OBJ_PD, self->c.pd));
	EXPECT_EQ(0, rp_num_objects(self->c.fd));
	close(share);
}

/* Queue pairs that no id owns, with datagrams and a shared receive queue. */
TEST_F(removal, of_own_queue_pairs)
{
	struct rp_end ud, rc, peer;
	struct rpost_resize_cq resize;
	uint64_t end = rp_now_ms() + REMOVAL_MS;
	struct rpost_create_srq srq, more;
	struct rpost_async_event event;
	struct rpost_query_srq query;
	struct rpost_ah_attr addr;
	struct rp_send send, write;
	struct rpost_wc wc;
	uint32_t ah, count = 1;
	struct rpost_gid gid;
	pthread_t thread;
	void *status;
	int async, ret;

	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_end_init(&ud));
	ASSERT_EQ(0, rp_end_init(&peer));
	rc = ud;
	async = rp_async_channel(ud.fd, ud.device);
	ASSERT_LE(0, async);
	ASSERT_EQ(0, rp_create_srq(ud.fd, ud.pd, 8, &srq));
	ASSERT_EQ(0, rp_own_addr(&ud, &addr));
	ASSERT_EQ(0, rp_create_ah(ud.fd, ud.pd, &addr, &ah));
	ASSERT_EQ(0, rp_create_own(&ud, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_bring_up(&ud, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_create_own(&rc, RPOST_QPT_RC, srq.handle));
	ASSERT_EQ(0, rp_create_own(&peer, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_bring_up(&rc, RPOST_QPT_RC, peer.qp_num));
	ASSERT_EQ(0, rp_bring_up(&peer, RPOST_QPT_RC, rc.qp_num));
	ret = rp_mcast(ud.fd, RPOST_IOC_ATTACH_MCAST, ud.qp, 3);
	ASSERT_TRUE(!ret || ret == -EOPNOTSUPP);
	ASSERT_EQ(0, rp_post_recv(&peer, 77, NULL, 0, 0));
	send = rp_empty_datagram(ah, ud.qp_num, 1);
	write = rp_empty_send(RPOST_WR_SEND, 1);

	ASSERT_EQ(0, pthread_create(&thread, NULL, rp_remove_soon, NULL));
	do {
		ret = rp_post_send(&ud, &send);
		rp_post_srq(ud.fd, srq.handle, 1, NULL, 0, 0);
		rp_post_send(&peer, &write);
		while (rp_poll_cq(&ud.cq, &wc) == 1)
			;
	} while ((!ret || ret == -ENOMEM) && rp_now_ms() < end);
	EXPECT_EQ(-ENODEV, ret);
	ASSERT_EQ(0, pthread_join(thread, &status));
	EXPECT_EQ(NULL, status);
	EXPECT_EQ(0, rp_async_wait(async, RPOST_ASYNC_DEVICE_FATAL, &event));
	EXPECT_EQ(0, event.handle);
	/* No event follows DEVICE_FATAL. */
	EXPECT_TRUE(rp_quiet(async));

	/* Every command but DESTROY fails. */
	EXPECT_EQ(-ENODEV, rp_move(&ud, RPOST_QPS_ERR));
	EXPECT_EQ(-ENODEV, rp_qp_state(&rc));
	EXPECT_EQ(-ENODEV, rp_post_srq(ud.fd, srq.handle, 1, NULL, 0, 0));
	EXPECT_EQ(-ENODEV, rp_srq_limit(ud.fd, srq.handle, 1));
	EXPECT_EQ(-ENODEV, rp_query_srq(ud.fd, srq.handle, &query));
	EXPECT_EQ(-ENODEV, rp_create_srq(ud.fd, ud.pd, 8, &more));
	EXPECT_EQ(-ENODEV, rp_create_ah(ud.fd, ud.pd, &addr, &count));
	EXPECT_EQ(-ENODEV, rp_mcast(ud.fd, RPOST_IOC_ATTACH_MCAST, ud.qp, 3));
	EXPECT_EQ(-ENODEV, rp_mcast(ud.fd, RPOST_IOC_DETACH_MCAST, ud.qp, 3));
	EXPECT_EQ(-ENODEV, rp_create_own(&peer, RPOST_QPT_RC, 0));
	EXPECT_EQ(-ENODEV, rp_async_channel(ud.fd, ud.device));
	EXPECT_EQ(-ENODEV, rp_query_gids(ud.fd, ud.device, 0, 0, &gid,
					 &count));
	EXPECT_EQ(-ENODEV, rp_resize_cq(&ud.cq, 128, &resize));
	EXPECT_EQ(-EBUSY, rp_destroy(ud.fd, RPOST_OBJ_SRQ, srq.handle));
	EXPECT_EQ(0, rp_destroy(ud.fd, RPOST_OBJ_QP, ud.qp));
	EXPECT_EQ(0, rp_destroy(ud.fd, RPOST_OBJ_QP, rc.qp));
	EXPECT_EQ(0, rp_destroy(ud.fd, RPOST_OBJ_AH, ah));
	EXPECT_EQ(0, rp_destroy(ud.fd, RPOST_OBJ_SRQ, srq.handle));
	EXPECT_EQ(0, rp_destroy(ud.fd, RPOST_OBJ_CQ, ud.cq.cmd.handle));
	EXPECT_EQ(0, rp_destroy(ud.fd, RPOST_OBJ_PD, ud.pd));
	EXPECT_EQ(0, rp_num_objects(ud.fd));
	close(async);
	rp_end_close(&ud);
	rp_end_close(&peer);
}

/* The counts stay, with what the removal has flushed. */
TEST_F(removal, counts)
{
	struct rpost_count_wrs cmd;
	struct rp_end end;

	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_end_init(&end));
	ASSERT_EQ(0, rp_create_own(&end, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_count_wrs(&end, RPOST_COUNT_WRS_START, &cmd));
	ASSERT_EQ(0, rp_bring_up(&end, RPOST_QPT_RC, end.qp_num));
	ASSERT_EQ(0, rp_post_recv(&end, 1, NULL, 0, 0));
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, rp_count_wrs(&end, 0, &cmd));
	EXPECT_EQ(0, cmd.counts[RPOST_WRS_RECV].succeeded);
	EXPECT_EQ(1, cmd.counts[RPOST_WRS_RECV].failed);
	EXPECT_EQ(-ENODEV, rp_count_wrs(&end, RPOST_COUNT_WRS_START, &cmd));
	rp_end_close(&end);
}

/* A thread that sleeps in a read of the channel. */
struct reader {
	int async;
	pid_t tid;
};

static void *read_async(void *arg)
{
	struct rpost_async_event event;
	struct reader *r = arg;

	rp_put_tid(&r->tid);
	do {
		if (read(r->async, &event, sizeof(event)) != sizeof(event))
			return (void *)1;
	} while (event.event != RPOST_ASYNC_DEVICE_FATAL);
	return NULL;
}

TEST_F(removal, wakes_readers)
{
	struct reader r = { 0 };
	pthread_t thread;
	void *status;

	RP_NEED_REMOVAL();
	r.async = rp_async_channel(self->c.fd, self->c.device);
	ASSERT_LE(0, r.async);
	ASSERT_EQ(0, pthread_create(&thread, NULL, read_async, &r));
	ASSERT_TRUE(rp_wait_asleep(&r.tid));
	ASSERT_EQ(0, rp_remove_device());
	ASSERT_EQ(0, pthread_join(thread, &status));
	EXPECT_EQ(NULL, status);
	close(r.async);
}

/* Mapped rings stay readable, with their completions, and are writable. */
TEST_F(removal, mappings)
{
	struct rp_send send = rp_empty_send(RPOST_WR_RDMA_WRITE, 9);
	struct rp_cq *cq = &self->c.cq;
	const size_t size = cq->cmd.mmap_size;
	struct rpost_ring *again;

	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_post_send(&self->c, &send));
	ASSERT_EQ(1, rp_wait_cq(cq, &(struct rpost_wc){ 0 }));
	ASSERT_EQ(0, rp_remove_device());
	EXPECT_EQ(9, cq->wcs[0].wr_id);
	again = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, cq->fd,
		     cq->cmd.mmap_offset);
	ASSERT_NE(MAP_FAILED, (void *)again);
	memset(again, 0xff, size);
	EXPECT_EQ(UINT32_MAX, cq->ring->head);
	EXPECT_EQ(0, rp_fetch(cq));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_QP, self->c.qp));
	EXPECT_EQ(0, rp_destroy(self->c.fd, RPOST_OBJ_CQ, cq->cmd.handle));
	cq->ring->head = 42;
	EXPECT_EQ(42, again->head);
	EXPECT_EQ(0, munmap(again, size));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, size, PROT_READ, MAP_SHARED, cq->fd,
				   cq->cmd.mmap_offset));
	EXPECT_EQ(ENOENT, errno);
}

/* Closing the file destroys the objects that removal has left. */
TEST_F(removal, then_close)
{
	long refcnt = rp_module_number("refcnt");

	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_remove_device());
	EXPECT_LT(0, rp_num_objects(self->c.fd));
	EXPECT_EQ(refcnt, rp_module_number("refcnt"));
}

TEST_HARNESS_MAIN
