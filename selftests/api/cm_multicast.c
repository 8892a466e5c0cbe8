// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests multicast groups by connection ids.  A member must receive the
 * datagrams that are sent to its group until it leaves; an id that has joined
 * only to send must receive none.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>

#include "verbs_test.h"

#define MSG_SIZE 1024
#define MULTICAST_QPN 0xffffffu
#define GROUP "239.255.17.4"
#define OTHER_GROUP "239.255.17.5"

static struct sockaddr *group(struct sockaddr_storage *addr, const char *text)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;

	memset(addr, 0, sizeof(*addr));
	in->sin_family = AF_INET;
	inet_pton(AF_INET, text, &in->sin_addr);
	return (struct sockaddr *)addr;
}

/* An id for multicast; some tests give it a queue pair. */
FIXTURE(mcast) {
	struct sockaddr_storage addr, group;
	struct end e;
	struct ibv_ah *ah;
};

FIXTURE_SETUP(mcast)
{
	ASSERT_TRUE(test_addr(AF_INET, &self->addr));
	self->e.channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->e.channel);
	ASSERT_EQ(0, rdma_create_id(self->e.channel, &self->e.id, NULL,
				    RDMA_PS_UDP));
	ASSERT_EQ(0, rdma_bind_addr(self->e.id, (struct sockaddr *)&self->addr));
	ASSERT_NE(NULL, self->e.id->verbs);
}

FIXTURE_TEARDOWN(mcast)
{
	if (self->ah)
		EXPECT_EQ(0, ibv_destroy_ah(self->ah));
	end_close(&self->e);
	rdma_destroy_event_channel(self->e.channel);
}

static int join(struct end *e, struct sockaddr *addr, void *context)
{
	if (rdma_join_multicast(e->id, addr, context))
		return -1;
	return expect_event(e->channel, RDMA_CM_EVENT_MULTICAST_JOIN,
			    &e->event);
}

TEST_F(mcast, join_tells_where_to_send)
{
	struct event *ev = &self->e.event;

	ASSERT_EQ(0, end_ud_qp(&self->e));
	ASSERT_EQ(0, join(&self->e, group(&self->group, GROUP), CONTEXT));
	EXPECT_EQ(self->e.id, ev->id);
	EXPECT_EQ(CONTEXT, (void *)ev->ud.private_data);
	EXPECT_EQ(MULTICAST_QPN, ev->ud.qp_num);
	EXPECT_EQ(RDMA_UDP_QKEY, ev->ud.qkey);
	EXPECT_EQ(1, ev->ud.ah_attr.is_global);
	EXPECT_EQ(self->e.id->port_num, ev->ud.ah_attr.port_num);
	self->ah = ibv_create_ah(self->e.id->pd, &ev->ud.ah_attr);
	EXPECT_NE(NULL, self->ah);
	EXPECT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&self->group));
}

static int send_to_group(struct end *e, struct ibv_ah *ah, unsigned int seed)
{
	struct ibv_wc wc;

	fill(e->buf, MSG_SIZE, seed);
	if (rdma_post_ud_send(e->id, CONTEXT, e->buf, MSG_SIZE, e->mr, 0, ah,
			      MULTICAST_QPN))
		return -1;
	return wait_comp(e->id->send_cq, &wc) == 1 && !wc.status ? 0 : -1;
}

TEST_F(mcast, members_hear_it_until_they_leave)
{
	struct end *e = &self->e;
	uint8_t *to = e->buf;
	struct ibv_wc wc;

	ASSERT_EQ(0, end_ud_qp(e));
	to = e->buf + 8192;
	ASSERT_EQ(0, join(e, group(&self->group, GROUP), CONTEXT));
	self->ah = ibv_create_ah(e->id->pd, &e->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	ASSERT_EQ(0, rdma_post_recv(e->id, to, to, GRH_BYTES + MSG_SIZE, e->mr));
	ASSERT_EQ(0, send_to_group(e, self->ah, 5));
	ASSERT_COMP_OK(e->id->recv_cq, &wc, IBV_WC_RECV, to);
	EXPECT_EQ(GRH_BYTES + MSG_SIZE, wc.byte_len);
	EXPECT_TRUE(filled(to + GRH_BYTES, MSG_SIZE, 5));

	memset(to, POISON, GRH_BYTES + MSG_SIZE);
	ASSERT_EQ(0, rdma_leave_multicast(e->id,
					  (struct sockaddr *)&self->group));
	ASSERT_EQ(0, rdma_post_recv(e->id, to, to, GRH_BYTES + MSG_SIZE, e->mr));
	ASSERT_EQ(0, send_to_group(e, self->ah, 6));
	EXPECT_TRUE(no_comp(e->id->recv_cq));
	EXPECT_TRUE(all_bytes(to, GRH_BYTES + MSG_SIZE, POISON));
}

TEST_F(mcast, program_attaches_its_own)
{
	struct end *e = &self->e;
	struct event *ev = &e->event;

	/*
	 * The id has no queue pair when the event comes, so none is attached.
	 */
	ASSERT_EQ(0, join(e, group(&self->group, GROUP), NULL));
	EXPECT_EQ(NULL, ev->ud.private_data);
	ASSERT_EQ(0, end_ud_qp(e));
	EXPECT_EQ(0, ibv_attach_mcast(e->id->qp, &ev->ud.ah_attr.grh.dgid,
				      ev->ud.ah_attr.dlid));
	EXPECT_EQ(0, ibv_detach_mcast(e->id->qp, &ev->ud.ah_attr.grh.dgid,
				      ev->ud.ah_attr.dlid));
}

/* errno tells that the queue pair is still there. */
TEST_F(mcast, queue_pair_in_a_group_stays)
{
	struct end *e = &self->e;
	struct event *ev = &e->event;
	struct ibv_qp *qp;

	if (over_incumbent())
		SKIP(return, "librdmacm forgets a queue pair that it cannot destroy");
	ASSERT_EQ(0, join(e, group(&self->group, GROUP), NULL));
	ASSERT_EQ(0, end_ud_qp(e));
	qp = e->id->qp;
	ASSERT_EQ(0, ibv_attach_mcast(qp, &ev->ud.ah_attr.grh.dgid, 0));
	errno = 0;
	rdma_destroy_qp(e->id);
	EXPECT_EQ(EBUSY, errno);
	ASSERT_EQ(qp, e->id->qp);
	EXPECT_EQ(0, ibv_detach_mcast(qp, &ev->ud.ah_attr.grh.dgid, 0));
	errno = 0;
	rdma_destroy_qp(e->id);
	EXPECT_EQ(0, errno);
	EXPECT_EQ(NULL, e->id->qp);
}

TEST_F(mcast, several_groups)
{
	struct sockaddr_storage other;
	int one, two;

	ASSERT_EQ(0, end_ud_qp(&self->e));
	ASSERT_EQ(0, join(&self->e, group(&self->group, GROUP), &one));
	EXPECT_EQ(&one, self->e.event.ud.private_data);
	ASSERT_EQ(0, join(&self->e, group(&other, OTHER_GROUP), &two));
	EXPECT_EQ(&two, self->e.event.ud.private_data);
	EXPECT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&self->group));
	EXPECT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&other));
	EXPECT_ERRNO(EADDRNOTAVAIL, rdma_leave_multicast(self->e.id, (struct sockaddr *)&other));
}

/* Destroying the id leaves the group. */
TEST_F(mcast, joined_to_the_end)
{
	ASSERT_EQ(0, join(&self->e, group(&self->group, GROUP), CONTEXT));
	ASSERT_EQ(0, rdma_destroy_id(self->e.id));
	ASSERT_EQ(0, rdma_create_id(self->e.channel, &self->e.id, NULL,
				    RDMA_PS_UDP));
	EXPECT_TRUE(no_event(self->e.channel));
}

TEST_F(mcast, left_before_the_event_is_fetched)
{
	ASSERT_EQ(0, end_ud_qp(&self->e));
	ASSERT_EQ(0, rdma_join_multicast(self->e.id,
					 group(&self->group, GROUP), CONTEXT));
	ASSERT_EQ(0, rdma_leave_multicast(self->e.id,
					  (struct sockaddr *)&self->group));
	EXPECT_TRUE(no_event(self->e.channel));
}

/* An id that joins only to send is not attached and receives nothing. */
TEST_F(mcast, send_only)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = group(&self->group, GROUP),
	};
	struct end *e = &self->e;
	uint8_t *to;

	ASSERT_EQ(0, end_ud_qp(e));
	to = e->buf + 8192;
	ASSERT_EQ(0, rdma_join_multicast_ex(e->id, &attr, CONTEXT));
	ASSERT_EQ(0, expect_event(e->channel, RDMA_CM_EVENT_MULTICAST_JOIN,
				  &e->event));
	EXPECT_EQ(CONTEXT, (void *)e->event.ud.private_data);
	self->ah = ibv_create_ah(e->id->pd, &e->event.ud.ah_attr);
	ASSERT_NE(NULL, self->ah);
	ASSERT_EQ(0, rdma_post_recv(e->id, to, to, GRH_BYTES + MSG_SIZE, e->mr));
	ASSERT_EQ(0, send_to_group(e, self->ah, 7));
	EXPECT_TRUE(no_comp(e->id->recv_cq));
	EXPECT_EQ(0, rdma_leave_multicast(e->id, attr.addr));
}

TEST_F(mcast, what_is_refused)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_RESERVED,
		.addr = group(&self->group, GROUP),
	};
	struct sockaddr_storage none = { .ss_family = AF_UNSPEC };

	EXPECT_EQ(-1, rdma_join_multicast_ex(self->e.id, &attr, NULL));
	attr.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	EXPECT_EQ(-1, rdma_join_multicast_ex(self->e.id, &attr, NULL));
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	EXPECT_EQ(-1, rdma_join_multicast_ex(self->e.id, &attr, NULL));
	EXPECT_ERRNO(EINVAL, rdma_join_multicast(self->e.id, (struct sockaddr *)&none, NULL));
	EXPECT_ERRNO(EADDRNOTAVAIL, rdma_leave_multicast(self->e.id,
							 (struct sockaddr *)&self->group));
	EXPECT_TRUE(no_event(self->e.channel));
}

TEST(synchronous_multicast)
{
	struct sockaddr_storage addr, to;
	struct rdma_cm_id *id;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
	ASSERT_EQ(0, rdma_bind_addr(id, (struct sockaddr *)&addr));
	ASSERT_EQ(0, rdma_join_multicast(id, group(&to, GROUP), CONTEXT));
	ASSERT_NE(NULL, id->event);
	EXPECT_EQ(RDMA_CM_EVENT_MULTICAST_JOIN, id->event->event);
	EXPECT_EQ(CONTEXT, (void *)id->event->param.ud.private_data);
	EXPECT_EQ(0, rdma_destroy_id(id));
}

TEST_HARNESS_MAIN
