// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the states of connection ids: calls that make no sense in a state must
 * be refused without harm, and calls that succeed must set the ids' members.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <fcntl.h>

#include "rdma_test.h"

PAIR_FIXTURE(states, pair_listen)

TEST_F(states, new_id)
{
	struct rdma_event_channel *channel = self->s->channel;
	struct rdma_cm_id *id;

	EXPECT_EQ(FD_CLOEXEC, fcntl(channel->fd, F_GETFD));
	ASSERT_EQ(0, rdma_create_id(channel, &id, CONTEXT, RDMA_PS_TCP));
	EXPECT_EQ(channel, id->channel);
	EXPECT_EQ(CONTEXT, id->context);
	EXPECT_EQ(RDMA_PS_TCP, id->ps);
	EXPECT_EQ(IBV_QPT_RC, id->qp_type);
	EXPECT_EQ(NULL, id->verbs);
	EXPECT_EQ(NULL, id->pd);
	EXPECT_EQ(NULL, id->qp);
	EXPECT_EQ(0, rdma_get_src_port(id));
	EXPECT_EQ(0, rdma_get_dst_port(id));
	EXPECT_EQ(0, rdma_destroy_id(id));
}

TEST_F(states, bind_in_use)
{
	struct rdma_cm_id *id;
	struct sockaddr_storage addr;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	set_port(&addr, rdma_get_src_port(self->p.listen));
	EXPECT_NE(0, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, rdma_create_id(self->s->channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_ERRNO(EADDRINUSE, rdma_bind_addr(id, (struct sockaddr *)&addr));
	/* The id is still usable and can be bound to another port. */
	set_port(&addr, 0);
	EXPECT_EQ(0, rdma_bind_addr(id, (struct sockaddr *)&addr));
	EXPECT_EQ(0, rdma_destroy_id(id));
}

TEST_F(states, bind_to_a_foreign_address)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = inet_addr("203.0.113.77"),
	};
	struct rdma_cm_id *id;

	ASSERT_EQ(0, rdma_create_id(self->s->channel, &id, NULL, RDMA_PS_TCP));
	errno = 0;
	EXPECT_EQ(-1, rdma_bind_addr(id, (struct sockaddr *)&addr));
	EXPECT_TRUE(errno == EADDRNOTAVAIL || errno == ENODEV)
		TH_LOG("errno: %s", strerror(errno));
	EXPECT_EQ(0, rdma_destroy_id(id));
}

/* Calls that are wrong in the state of their id. */
#define EXPECT_EINVAL(call) EXPECT_ERRNO(EINVAL, call)

TEST_F(states, too_early)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_create_id(self->s->channel, &id, CONTEXT, RDMA_PS_TCP));
	EXPECT_EQ(CONTEXT, id->context);
	EXPECT_EINVAL(rdma_reject(id, NULL, 0));
	/* The refused call has not harmed the id. */
	ASSERT_EQ(0, rdma_bind_addr(id, (struct sockaddr *)&addr));
	EXPECT_NE(NULL, id->verbs);
	ASSERT_NE(NULL, id->pd);
	EXPECT_EQ(id->verbs, id->pd->context);
	EXPECT_EINVAL(rdma_bind_addr(id, (struct sockaddr *)&addr));
	EXPECT_EINVAL(rdma_resolve_route(id, 1000));
	EXPECT_EINVAL(rdma_connect(id, &self->opts.connect));
	EXPECT_EQ(-1, rdma_disconnect(id));
	EXPECT_TRUE(errno == EINVAL || errno == ENOTCONN);
	ASSERT_EQ(0, rdma_listen(id, 1));
	EXPECT_EINVAL(rdma_connect(id, &self->opts.connect));
	EXPECT_EQ(0, rdma_destroy_id(id));
}

TEST_F(states, address_without_a_route)
{
	__be16 port = rdma_get_src_port(self->p.listen);
	struct end *c = self->c;
	struct sockaddr_storage addr;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	set_port(&addr, port);
	ASSERT_EQ(0, end_client(c, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&addr,
				       10000));
	ASSERT_EQ(0, expect_event(c->channel, RDMA_CM_EVENT_ADDR_RESOLVED,
				  &c->event));
	EXPECT_EQ(self->p.listen->verbs, c->id->verbs);
	EXPECT_EQ(self->p.listen->port_num, c->id->port_num);
	EXPECT_NE(NULL, c->id->pd);
	EXPECT_EQ(port, rdma_get_dst_port(c->id));
	EXPECT_NE(0, rdma_get_src_port(c->id));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	EXPECT_EINVAL(rdma_connect(c->id, &self->opts.connect));
	ASSERT_EQ(0, rdma_resolve_route(c->id, 10000));
	ASSERT_EQ(0, expect_event(c->channel, RDMA_CM_EVENT_ROUTE_RESOLVED,
				  &c->event));
	EXPECT_EQ(0, pair_connect(&self->p, &self->opts));
}

TEST_F(states, too_early_for_a_device)
{
	struct rdma_cm_id *id;

	if (over_incumbent())
		SKIP(return, "librdmacm follows a null pointer");
	ASSERT_EQ(0, rdma_create_id(self->s->channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_EINVAL(rdma_resolve_route(id, 1000));
	EXPECT_EINVAL(rdma_connect(id, &self->opts.connect));
	EXPECT_EINVAL(rdma_accept(id, &self->opts.accept));
	EXPECT_EINVAL(rdma_create_qp(id, NULL, &self->opts.client_qp));
	EXPECT_EQ(NULL, id->qp);
	EXPECT_EQ(0, rdma_destroy_id(id));
}

TEST_F(states, too_late)
{
	struct sockaddr_storage addr;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	set_port(&addr, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	EXPECT_EINVAL(rdma_create_qp(self->c->id, NULL, &self->opts.client_qp));
	EXPECT_EINVAL(rdma_resolve_addr(self->c->id, NULL,
					(struct sockaddr *)&addr, 1000));
	EXPECT_EINVAL(rdma_resolve_route(self->c->id, 1000));
	EXPECT_EINVAL(rdma_connect(self->c->id, &self->opts.connect));
	EXPECT_EINVAL(rdma_listen(self->c->id, 1));
	EXPECT_EINVAL(rdma_bind_addr(self->c->id, (struct sockaddr *)&addr));
	/* The connection still works. */
	fill(self->c->buf, 100, 1);
	ASSERT_EQ(0, end_write(self->c, 100, self->s->buf, self->s->mr->rkey));
	ASSERT_COMP_OK(self->c->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT);
	EXPECT_TRUE(filled(self->s->buf, 100, 1));
}

TEST_F(states, capabilities_are_at_least_as_wished)
{
	struct ibv_qp_cap wish = self->opts.client_qp.cap;
	struct ibv_qp_cap *cap = &self->opts.client_qp.cap;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	EXPECT_LE(wish.max_send_wr, cap->max_send_wr);
	EXPECT_LE(wish.max_recv_wr, cap->max_recv_wr);
	EXPECT_LE(wish.max_send_sge, cap->max_send_sge);
	EXPECT_LE(wish.max_recv_sge, cap->max_recv_sge);
	EXPECT_LE(wish.max_inline_data, cap->max_inline_data);
	ASSERT_EQ(0, ibv_query_qp(self->c->id->qp, &attr, IBV_QP_CAP, &init));
	EXPECT_LE(wish.max_send_wr, init.cap.max_send_wr);
	EXPECT_LE(wish.max_recv_sge, init.cap.max_recv_sge);
	EXPECT_EQ(cap->max_inline_data, init.cap.max_inline_data);
}

/* rdma_create_qp(3): the struct returns the queue pair's properties. */
TEST_F(states, create_qp_returns_the_queues_it_made)
{
	struct ibv_qp_init_attr attr = self->opts.client_qp;

	attr.qp_context = CONTEXT;
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_create_qp(self->c->id, NULL, &attr));
	EXPECT_EQ(CONTEXT, self->c->id->qp->qp_context);
	ASSERT_NE(NULL, attr.send_cq);
	EXPECT_EQ(self->c->id->send_cq, attr.send_cq);
	EXPECT_EQ(self->c->id->recv_cq, attr.recv_cq);
	EXPECT_EQ(self->c->id->qp->send_cq, attr.send_cq);
	EXPECT_NE(NULL, self->c->id->send_cq_channel);
	EXPECT_EQ(self->c->id->send_cq_channel, attr.send_cq->channel);
	EXPECT_EQ(self->c->id, attr.send_cq->cq_context);
	EXPECT_EQ(self->c->id, attr.recv_cq->cq_context);
	EXPECT_LE(self->opts.client_qp.cap.max_send_wr, attr.send_cq->cqe);
	rdma_destroy_qp(self->c->id);
	EXPECT_EQ(NULL, self->c->id->qp);
	EXPECT_EQ(NULL, self->c->id->send_cq);
	EXPECT_EQ(NULL, self->c->id->recv_cq_channel);
}

TEST(devices_are_those_of_the_ids)
{
	struct ibv_context **list;
	struct pair_opts opts;
	bool found = false;
	struct pair p;
	int i, n = -1;

	list = rdma_get_devices(&n);
	ASSERT_NE(NULL, list);
	ASSERT_LE(1, n);
	EXPECT_EQ(NULL, list[n]);
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_listen(&p, &opts));
	for (i = 0; i < n; i++)
		found |= list[i] == p.listen->verbs;
	EXPECT_TRUE(found);
	rdma_free_devices(list);
	pair_close(&p);
}

TEST(event_names)
{
	EXPECT_STREQ("RDMA_CM_EVENT_ADDR_RESOLVED",
		     rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED));
	EXPECT_STREQ("RDMA_CM_EVENT_TIMEWAIT_EXIT",
		     rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT));
	EXPECT_STREQ("UNKNOWN EVENT", rdma_event_str(99));
}

TEST(create_id_of_a_bad_kind)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	EXPECT_EQ(-1, rdma_create_id(channel, &id, NULL, (enum rdma_port_space)0x7777));
	EXPECT_TRUE(errno == EINVAL || errno == EPROTONOSUPPORT)
		TH_LOG("errno: %s", strerror(errno));
	rdma_destroy_event_channel(channel);
}

TEST(bad_address_family)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr addr = { .sa_family = AF_UNIX };
	struct rdma_cm_id *id;

	ASSERT_NE(NULL, channel);
	ASSERT_EQ(0, rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	errno = 0;
	EXPECT_EQ(-1, rdma_bind_addr(id, &addr));
	EXPECT_TRUE(errno == EINVAL || errno == EAFNOSUPPORT);
	errno = 0;
	EXPECT_EQ(-1, rdma_resolve_addr(id, NULL, &addr, 1000));
	EXPECT_TRUE(errno == EINVAL || errno == EAFNOSUPPORT);
	EXPECT_EQ(0, rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

TEST_HARNESS_MAIN
