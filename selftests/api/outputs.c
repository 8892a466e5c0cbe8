// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A call that fails leaves what its pointers lead to as it was, wherever
 * rdma-core's libraries do.  Programs rely on it: libfabric passes the address
 * of a pointer of its own to ibv_get_cq_event() and goes on to use it.
 *
 * Calls that write to their outputs in rdma-core, although they fail, are left
 * out: ibv_get_device_list(), ibv_init_ah_from_wc(), ibv_query_port().
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <netdb.h>

#include "verbs_test.h"

#define NO_PORT 200

/* What a call may write to. */
#define POISONED(type, name) \
	type name; \
	memset(&name, POISON, sizeof(name))

#define EXPECT_UNTOUCHED(name) \
	EXPECT_TRUE(all_bytes(&(name), sizeof(name), POISON)) \
		TH_LOG(#name " was written to")

static int set_nonblock(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* ------------------------------------------------------------- verbs */

FIXTURE(verbs) {
	struct device dev;
	struct side side;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;		/* on the channel */
};

FIXTURE_SETUP(verbs)
{
	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, side_open(&self->dev, &self->side, IBV_QPT_RC, NULL, NULL));
	self->channel = ibv_create_comp_channel(self->dev.verbs);
	ASSERT_NE(NULL, self->channel);
	ASSERT_EQ(0, set_nonblock(self->channel->fd));
	self->cq = ibv_create_cq(self->dev.verbs, 4, self, self->channel, 0);
	ASSERT_NE(NULL, self->cq);
}

FIXTURE_TEARDOWN(verbs)
{
	EXPECT_EQ(0, ibv_destroy_cq(self->cq));
	EXPECT_EQ(0, ibv_destroy_comp_channel(self->channel));
	side_close(&self->side);
	device_close(&self->dev);
}

TEST_F(verbs, get_cq_event)
{
	POISONED(struct ibv_cq *, cq);
	POISONED(void *, context);
	int i;

	/* After a request it may look at the queue first, more than once. */
	for (i = 0; i < 4; i++) {
		errno = 0;
		EXPECT_EQ(-1, ibv_get_cq_event(self->channel, &cq, &context));
		EXPECT_EQ(EAGAIN, errno);
		EXPECT_UNTOUCHED(cq);
		EXPECT_UNTOUCHED(context);
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	}
}

TEST_F(verbs, get_async_event)
{
	POISONED(struct ibv_async_event, event);

	ASSERT_EQ(0, set_nonblock(self->dev.verbs->async_fd));
	errno = 0;
	EXPECT_EQ(-1, ibv_get_async_event(self->dev.verbs, &event));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_UNTOUCHED(event);
}

/* Events of another context of the same device are that context's. */
TEST_F(verbs, get_async_event_of_another_context)
{
	struct ibv_qp_attr to_sqd = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};
	POISONED(struct ibv_async_event, event);
	struct ibv_async_event got;
	struct device other;
	struct side side;

	ASSERT_EQ(0, device_open(&other));
	ASSERT_EQ(0, side_open(&other, &side, IBV_QPT_RC, NULL, NULL));
	ASSERT_EQ(0, bring_up(&other, side.qp, side.qp->qp_num, TEST_PSN,
			      TEST_PSN));
	ASSERT_EQ(0, ibv_modify_qp(side.qp, &to_sqd, IBV_QP_STATE |
				   IBV_QP_EN_SQD_ASYNC_NOTIFY));
	ASSERT_TRUE(readable(other.verbs->async_fd, DEADLINE_MS));

	ASSERT_EQ(0, set_nonblock(self->dev.verbs->async_fd));
	errno = 0;
	EXPECT_EQ(-1, ibv_get_async_event(self->dev.verbs, &event));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_UNTOUCHED(event);

	ASSERT_EQ(0, ibv_get_async_event(other.verbs, &got));
	EXPECT_EQ(IBV_EVENT_SQ_DRAINED, got.event_type);
	ibv_ack_async_event(&got);
	side_close(&side);
	device_close(&other);
}

TEST_F(verbs, poll_cq)
{
	POISONED(struct ibv_wc, wc);

	EXPECT_EQ(0, ibv_poll_cq(self->cq, 1, &wc));
	EXPECT_UNTOUCHED(wc);
}

TEST_F(verbs, query_device_ex)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	POISONED(struct ibv_device_attr_ex, attr);

	EXPECT_EQ(EINVAL, ibv_query_device_ex(self->dev.verbs, &input, &attr));
	EXPECT_UNTOUCHED(attr);
}

TEST_F(verbs, query_gid)
{
	POISONED(struct ibv_gid_entry, entry);
	POISONED(union ibv_gid, gid);

	EXPECT_EQ(-1, ibv_query_gid(self->dev.verbs, NO_PORT, 0, &gid));
	EXPECT_UNTOUCHED(gid);
	EXPECT_EQ(-1, ibv_query_gid(self->dev.verbs, self->dev.port, 1 << 20,
				    &gid));
	EXPECT_UNTOUCHED(gid);
	EXPECT_NE(0, ibv_query_gid_ex(self->dev.verbs, NO_PORT, 0, &entry, 0));
	EXPECT_UNTOUCHED(entry);
	EXPECT_NE(0, ibv_query_gid_ex(self->dev.verbs, self->dev.port, 1 << 20,
				      &entry, 0));
	EXPECT_UNTOUCHED(entry);
	EXPECT_NE(0, ibv_query_gid_ex(self->dev.verbs, self->dev.port, 0,
				      &entry, 1));
	EXPECT_UNTOUCHED(entry);
	EXPECT_GT(0, ibv_query_gid_table(self->dev.verbs, &entry, 1, 1));
	EXPECT_UNTOUCHED(entry);
	EXPECT_GT(0, ibv_query_gid_table(self->dev.verbs, &entry, 0, 0));
	EXPECT_UNTOUCHED(entry);
}

TEST_F(verbs, query_pkey)
{
	POISONED(__be16, pkey);

	EXPECT_EQ(-1, ibv_query_pkey(self->dev.verbs, NO_PORT, 0, &pkey));
	EXPECT_UNTOUCHED(pkey);
	EXPECT_EQ(-1, ibv_query_pkey(self->dev.verbs, self->dev.port, 1 << 16,
				     &pkey));
	EXPECT_UNTOUCHED(pkey);
	EXPECT_EQ(-1, ibv_query_pkey(self->dev.verbs, self->dev.port, -1,
				     &pkey));
	EXPECT_UNTOUCHED(pkey);
}

TEST_F(verbs, query_qp)
{
	POISONED(struct ibv_qp_init_attr, init);
	POISONED(struct ibv_qp_attr, attr);

	EXPECT_EQ(EOPNOTSUPP, ibv_query_qp(self->side.qp, &attr, 1 << 26,
					   &init));
	EXPECT_UNTOUCHED(attr);
	EXPECT_UNTOUCHED(init);
}

TEST_F(verbs, query_of_what_no_device_has)
{
	POISONED(struct ibv_values_ex, values);
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	POISONED(uint32_t, num);
	struct ibv_srq *srq;

	srq = ibv_create_srq(self->dev.pd, &attr);
	ASSERT_NE(NULL, srq);
	EXPECT_NE(0, ibv_get_srq_num(srq, &num));
	EXPECT_UNTOUCHED(num);
	EXPECT_EQ(0, ibv_destroy_srq(srq));

	EXPECT_NE(0, ibv_query_rt_values_ex(self->dev.verbs, &values));
	EXPECT_UNTOUCHED(values);
}

/* What is made tells how large it is, but not if it is not made. */
TEST_F(verbs, create)
{
	struct ibv_srq_init_attr_ex srq_ex = {
		.attr = { .max_wr = 1 << 30, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = self->dev.pd,
	};
	struct ibv_qp_init_attr_ex qp_ex = {
		.send_cq = self->cq,
		.recv_cq = self->cq,
		.cap = { .max_send_wr = 1 << 30, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = self->dev.pd,
	};
	struct ibv_qp_init_attr qp = {
		.send_cq = self->cq,
		.recv_cq = self->cq,
		.cap = { .max_recv_wr = 1 << 30, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_srq_init_attr srq = {
		.attr = { .max_wr = 1 << 30, .max_sge = 1 },
	};
	struct ibv_srq_init_attr_ex srq_ex_was = srq_ex;
	struct ibv_qp_init_attr_ex qp_ex_was = qp_ex;
	struct ibv_srq_init_attr srq_was = srq;
	struct ibv_qp_init_attr qp_was = qp;

	EXPECT_EQ(NULL, ibv_create_qp(self->dev.pd, &qp));
	EXPECT_EQ(0, memcmp(&qp, &qp_was, sizeof(qp)));
	EXPECT_EQ(NULL, ibv_create_qp_ex(self->dev.verbs, &qp_ex));
	EXPECT_EQ(0, memcmp(&qp_ex, &qp_ex_was, sizeof(qp_ex)));
	EXPECT_EQ(NULL, ibv_create_srq(self->dev.pd, &srq));
	EXPECT_EQ(0, memcmp(&srq, &srq_was, sizeof(srq)));
	EXPECT_EQ(NULL, ibv_create_srq_ex(self->dev.verbs, &srq_ex));
	EXPECT_EQ(0, memcmp(&srq_ex, &srq_ex_was, sizeof(srq_ex)));
}

/* ------------------------------------------------------ connections */

FIXTURE(ids) {
	struct pair p;
	struct pair_opts opts;
	struct rdma_cm_id *id;		/* the client's */
};

FIXTURE_SETUP(ids)
{
	pair_defaults(&self->opts);
	ASSERT_EQ(0, pair_listen(&self->p, &self->opts));
	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	self->id = self->p.client.id;
}

FIXTURE_TEARDOWN(ids)
{
	pair_close(&self->p);
}

TEST_F(ids, create_id)
{
	POISONED(struct rdma_cm_id *, id);

	EXPECT_EQ(-1, rdma_create_id(self->id->channel, &id, NULL, 0x777));
	EXPECT_UNTOUCHED(id);
	EXPECT_EQ(-1, rdma_create_id(NULL, &id, NULL, 0x777));
	EXPECT_UNTOUCHED(id);
}

TEST_F(ids, get_cm_event)
{
	POISONED(struct rdma_cm_event *, event);

	ASSERT_EQ(0, set_nonblock(self->id->channel->fd));
	errno = 0;
	EXPECT_EQ(-1, rdma_get_cm_event(self->id->channel, &event));
	EXPECT_EQ(EAGAIN, errno);
	EXPECT_UNTOUCHED(event);
}

TEST_F(ids, get_request)
{
	POISONED(struct rdma_cm_id *, id);

	EXPECT_EQ(-1, rdma_get_request(self->p.listen, &id));
	EXPECT_UNTOUCHED(id);
}

TEST_F(ids, getaddrinfo)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };
	POISONED(struct rdma_addrinfo *, res);

	EXPECT_EQ(-1, rdma_getaddrinfo(NULL, NULL, NULL, &res));
	EXPECT_UNTOUCHED(res);
	EXPECT_EQ(EAI_NONAME, rdma_getaddrinfo("no address", "1", &hints, &res));
	EXPECT_UNTOUCHED(res);
}

TEST_F(ids, create_ep)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
		.ai_port_space = RDMA_PS_TCP,
	};
	POISONED(struct rdma_cm_id *, id);
	struct rdma_addrinfo *res;

	/* Of the addresses for documentation, none is any host's. */
	ASSERT_EQ(0, rdma_getaddrinfo("192.0.2.1", "7471", &hints, &res));
	EXPECT_EQ(-1, rdma_create_ep(&id, res, NULL, NULL));
	EXPECT_UNTOUCHED(id);
	rdma_freeaddrinfo(res);
}

TEST_F(ids, init_qp_attr)
{
	POISONED(struct ibv_qp_attr, attr);
	POISONED(int, mask);
	struct rdma_cm_id *id;

	/* It has no device yet. */
	ASSERT_EQ(0, rdma_create_id(self->id->channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_EQ(-1, rdma_init_qp_attr(id, &attr, &mask));
	EXPECT_UNTOUCHED(attr);
	EXPECT_UNTOUCHED(mask);
	EXPECT_EQ(0, rdma_destroy_id(id));
}

TEST_F(ids, get_remote_ece)
{
	POISONED(struct ibv_ece, ece);

	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	EXPECT_EQ(-1, rdma_get_remote_ece(self->id, &ece));
	EXPECT_UNTOUCHED(ece);
}

TEST_F(ids, create_qp)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1 << 30, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	EXPECT_EQ(-1, rdma_create_qp(self->id, NULL, &attr));
	EXPECT_EQ(1u << 30, attr.cap.max_send_wr);
	EXPECT_EQ(NULL, self->id->qp);
	EXPECT_EQ(NULL, self->id->send_cq);
	EXPECT_EQ(NULL, self->id->recv_cq);
}

TEST_F(ids, create_srq)
{
	struct ibv_srq_init_attr attr = {
		.attr = { .max_wr = 1 << 30, .max_sge = 1 },
	};

	EXPECT_EQ(-1, rdma_create_srq(self->id, NULL, &attr));
	EXPECT_EQ(1u << 30, attr.attr.max_wr);
	EXPECT_EQ(NULL, self->id->srq);
}

TEST_F(ids, get_comp)
{
	POISONED(struct ibv_wc, wc);

	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, set_nonblock(self->id->send_cq_channel->fd));
	ASSERT_EQ(0, set_nonblock(self->id->recv_cq_channel->fd));
	EXPECT_EQ(-1, rdma_get_send_comp(self->id, &wc));
	EXPECT_UNTOUCHED(wc);
	EXPECT_EQ(-1, rdma_get_recv_comp(self->id, &wc));
	EXPECT_UNTOUCHED(wc);
}

TEST_HARNESS_MAIN
