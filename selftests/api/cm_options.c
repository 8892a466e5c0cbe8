// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests options of connection ids, path records, data and reasons of
 * rejections, enhanced connection establishment (ECE), and ids that move to
 * another channel.  A failure means that an option is lost or that bad input is
 * not refused as librdmacm refuses it.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <infiniband/sa.h>

#include "rdma_test.h"

/* InfiniBand specification, table 115. */
#define REJ_CONSUMER_DEFINED		28
#define REJ_VENDOR_OPTION_NOT_SUPPORTED	35

#define SET(id, option, value) \
	rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ ## option, &(value), sizeof(value))
#define SET_PATH(id, value, len) \
	rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &(value), len)

FIXTURE(opt) {
	PAIR_MEMBERS;
	struct sockaddr_storage addr;
};

FIXTURE_SETUP(opt)
{
	PAIR_SETUP(pair_listen);
	ASSERT_TRUE(test_addr(AF_INET, &self->addr));
}

FIXTURE_TEARDOWN(opt)
{
	pair_close(&self->p);
}

TEST_F(opt, values_have_their_length)
{
	struct rdma_cm_id *id = self->p.listen;
	uint8_t byte = 1;
	int value = 0;

	EXPECT_ERRNO(EINVAL, SET(id, TOS, value));
	EXPECT_ERRNO(EINVAL, SET(id, ACK_TIMEOUT, value));
	EXPECT_ERRNO(EINVAL, SET(id, REUSEADDR, byte));
	EXPECT_ERRNO(EINVAL, SET(id, AFONLY, byte));
	EXPECT_ERRNO(EINVAL, SET_PATH(id, value, sizeof(value)));
}

TEST_F(opt, options_that_do_not_exist)
{
	int value = 0;

	EXPECT_ERRNO(ENOSYS, rdma_set_option(self->p.listen, RDMA_OPTION_ID,
					     17, &value, sizeof(value)));
	EXPECT_ERRNO(ENOSYS, rdma_set_option(self->p.listen, RDMA_OPTION_IB,
					     17, &value, sizeof(value)));
	EXPECT_ERRNO(ENOSYS, rdma_set_option(self->p.listen, 17, 0, &value,
					     sizeof(value)));
}

TEST_F(opt, type_of_service)
{
	uint8_t tos = 0x20;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	EXPECT_EQ(0, SET(self->c->id, TOS, tos));
	ASSERT_EQ(0, pair_after_resolve(&self->p, &self->opts));
}

/* A type of service that is set before resolving is part of the path. */
TEST_F(opt, type_of_service_in_the_path)
{
	struct sockaddr_storage to = self->addr;
	uint8_t tos = 0x20;

	set_port(&to, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, end_client(self->c, RDMA_PS_TCP));
	ASSERT_EQ(0, SET(self->c->id, TOS, tos));
	ASSERT_EQ(0, end_resolve(self->c, NULL, &to));
	ASSERT_EQ(1, self->c->id->route.num_paths);
	EXPECT_EQ(tos, self->c->id->route.path_rec->traffic_class);
}

TEST_F(opt, ack_timeout)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t timeout = 19;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	EXPECT_EQ(0, SET(self->c->id, ACK_TIMEOUT, timeout));
	ASSERT_EQ(0, pair_after_resolve(&self->p, &self->opts));
	ASSERT_EQ(0, ibv_query_qp(self->c->id->qp, &attr, IBV_QP_TIMEOUT,
				  &init));
	EXPECT_EQ(timeout, attr.timeout);
}

static int bind_also(struct rdma_cm_id *id, struct sockaddr_storage *addr,
		     __be16 port)
{
	struct sockaddr_storage to = *addr;

	set_port(&to, port);
	return rdma_bind_addr(id, (struct sockaddr *)&to);
}

TEST_F(opt, addresses_in_use)
{
	struct rdma_event_channel *channel = self->s->channel;
	struct rdma_cm_id *one, *two;
	int on = 1, off = 0;

	ASSERT_EQ(0, rdma_create_id(channel, &one, NULL, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_create_id(channel, &two, NULL, RDMA_PS_TCP));
	EXPECT_EQ(0, SET(one, REUSEADDR, on));
	ASSERT_EQ(0, rdma_bind_addr(one, (struct sockaddr *)&self->addr));
	EXPECT_ERRNO(EADDRINUSE, bind_also(two, &self->addr,
					   rdma_get_src_port(one)));
	EXPECT_EQ(0, SET(two, REUSEADDR, off));
	EXPECT_ERRNO(EADDRINUSE, bind_also(two, &self->addr,
					   rdma_get_src_port(one)));
	EXPECT_EQ(0, SET(two, REUSEADDR, on));
	EXPECT_EQ(0, bind_also(two, &self->addr, rdma_get_src_port(one)));
	EXPECT_EQ(rdma_get_src_port(one), rdma_get_src_port(two));
	EXPECT_EQ(0, rdma_destroy_id(one));
	EXPECT_EQ(0, rdma_destroy_id(two));
}

static int bind_any(struct rdma_cm_id *id, int family, __be16 port)
{
	struct sockaddr_storage any = { .ss_family = family };

	set_port(&any, port);
	return rdma_bind_addr(id, (struct sockaddr *)&any);
}

/* An IPv6 wildcard covers IPv4, too, unless AFONLY is set. */
TEST_F(opt, one_address_family_only)
{
	struct rdma_event_channel *channel = self->s->channel;
	struct rdma_cm_id *v6, *v4;
	int only;

	for (only = 0; only < 2; only++) {
		ASSERT_EQ(0, rdma_create_id(channel, &v6, NULL, RDMA_PS_TCP));
		ASSERT_EQ(0, rdma_create_id(channel, &v4, NULL, RDMA_PS_TCP));
		EXPECT_EQ(0, SET(v6, AFONLY, only));
		ASSERT_EQ(0, bind_any(v6, AF_INET6, 0));
		EXPECT_EQ(only ? 0 : -1, bind_any(v4, AF_INET,
						  rdma_get_src_port(v6)));
		EXPECT_EQ(0, rdma_destroy_id(v4));
		EXPECT_EQ(0, rdma_destroy_id(v6));
	}
}

/* Convert a path record into its format on the wire. */
static void to_wire(struct ibv_path_record *to,
		    const struct ibv_sa_path_rec *from)
{
	memset(to, 0, sizeof(*to));
	to->dgid = from->dgid;
	to->sgid = from->sgid;
	to->dlid = from->dlid;
	to->slid = from->slid;
	to->flowlabel_hoplimit = htonl(ntohl(from->flow_label) << 8 |
				       from->hop_limit);
	to->tclass = from->traffic_class;
	to->reversible_numpath = from->reversible << 7 | from->numb_path;
	to->pkey = from->pkey;
	to->qosclass_sl = htons(from->sl);
	to->mtu = from->mtu_selector << 6 | from->mtu;
	to->rate = from->rate_selector << 6 | from->rate;
	to->packetlifetime = from->packet_life_time_selector << 6 |
			     from->packet_life_time;
	to->preference = from->preference;
}

TEST_F(opt, path_records)
{
	struct ibv_port_attr port;
	struct ibv_sa_path_rec *path;
	struct rdma_cm_id *id;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	id = self->c->id;
	ASSERT_EQ(1, id->route.num_paths);
	path = id->route.path_rec;
	ASSERT_NE(NULL, path);
	ASSERT_EQ(0, ibv_query_port(id->verbs, id->port_num, &port));
	EXPECT_EQ(0, memcmp(&path->sgid, &id->route.addr.addr.ibaddr.sgid, 16));
	EXPECT_EQ(0, memcmp(&path->dgid, &id->route.addr.addr.ibaddr.dgid, 16));
	EXPECT_EQ(0xffff, ntohs(path->pkey));
	EXPECT_EQ(1, path->reversible);
	EXPECT_EQ(2, path->mtu_selector);
	EXPECT_LE(IBV_MTU_256, path->mtu);
	EXPECT_GE(port.active_mtu, path->mtu);
	EXPECT_EQ(2, path->rate_selector);
	EXPECT_EQ(2, path->packet_life_time_selector);
	EXPECT_LT(0, path->packet_life_time);
	if (on_rxe(id)) {
		EXPECT_EQ(1, path->numb_path);
		EXPECT_EQ(64, path->hop_limit);
		EXPECT_EQ(0, path->traffic_class);
		EXPECT_EQ(0, path->sl);
	}
}

TEST_F(opt, path_of_the_programs_choice)
{
	struct ibv_path_data data = {
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY |
			 IBV_PATH_FLAG_BIDIRECTIONAL,
	};
	struct sockaddr_storage to = self->addr;
	struct pair other = {};
	struct end *c = self->c;

	/* Take the path from another id that has resolved the same address. */
	other.listen = self->p.listen;
	ASSERT_EQ(0, pair_resolve(&other, &self->opts));
	ASSERT_EQ(1, other.client.id->route.num_paths);
	to_wire(&data.path, other.client.id->route.path_rec);
	data.path.packetlifetime = 2 << 6 | 17;

	set_port(&to, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, end_client(c, RDMA_PS_TCP));
	EXPECT_ERRNO(EINVAL, SET_PATH(c->id, data, sizeof(data)));
	ASSERT_EQ(0, rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&to,
				       2000));
	ASSERT_EQ(0, expect_event(c->channel, RDMA_CM_EVENT_ADDR_RESOLVED,
				  &c->event));
	ASSERT_EQ(0, SET_PATH(c->id, data, sizeof(data)));
	ASSERT_EQ(0, expect_event(c->channel, RDMA_CM_EVENT_ROUTE_RESOLVED,
				  &c->event));
	ASSERT_EQ(1, c->id->route.num_paths);
	EXPECT_EQ(17, c->id->route.path_rec->packet_life_time);
	EXPECT_EQ(0, memcmp(&data.path.dgid, &c->id->route.path_rec->dgid, 16));
	ASSERT_EQ(0, pair_after_resolve(&self->p, &self->opts));
	other.listen = NULL;
	pair_close(&other);
}

TEST_F(opt, no_path_among_the_data)
{
	struct ibv_path_data data = { .flags = IBV_PATH_FLAG_ALTERNATE };
	struct rdma_cm_id *id;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	id = self->c->id;
	EXPECT_ERRNO(EINVAL, SET_PATH(id, data, sizeof(data)));
	EXPECT_ERRNO(EINVAL, SET_PATH(id, data, 0));
	EXPECT_EQ(1, id->route.num_paths);
}

TEST_F(opt, rejection_with_data)
{
	static const char data[] = "not today";
	struct event *ev = &self->c->event;

	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_reject(self->s->id, data, sizeof(data)));
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED, next_event(self->c->channel, ev));
	EXPECT_EQ(REJ_CONSUMER_DEFINED, ev->status);
	ASSERT_LE(sizeof(data), ev->conn.private_data_len);
	EXPECT_EQ(0, memcmp(data, ev->data, sizeof(data)));
}

TEST_F(opt, rejection_for_its_options)
{
	static const char data[] = "unknown vendor";
	struct event *ev = &self->c->event;

	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_reject_ece(self->s->id, data, sizeof(data)));
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED, next_event(self->c->channel, ev));
	EXPECT_EQ(REJ_VENDOR_OPTION_NOT_SUPPORTED, ev->status);
	EXPECT_EQ(0, memcmp(data, ev->data, sizeof(data)));
}

static struct ibv_qp *make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};

	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 2, NULL, NULL, 0);
	return attr.send_cq ? ibv_create_qp(id->pd, &attr) : NULL;
}

static void destroy_qp(struct ibv_qp *qp)
{
	struct ibv_cq *cq = qp->send_cq;

	ibv_destroy_qp(qp);
	ibv_destroy_cq(cq);
}

/*
 * Only the program's own queue pairs use ECE that the program sets; for those
 * of ids, the provider chooses it.
 */
TEST_F(opt, ece_both_ways)
{
	struct ibv_ece ece = { .vendor_id = 0x1234, .options = 0x5678 };
	struct ibv_qp *one, *two;
	struct ibv_ece got;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	one = make_qp(self->c->id);
	ASSERT_NE(NULL, one);
	ASSERT_EQ(0, rdma_set_local_ece(self->c->id, &ece));
	self->opts.connect.qp_num = one->qp_num;
	ASSERT_EQ(0, pair_connect(&self->p, &self->opts));
	memset(&got, POISON, sizeof(got));
	ASSERT_EQ(0, rdma_get_remote_ece(self->s->id, &got));
	EXPECT_EQ(ece.vendor_id, got.vendor_id);
	EXPECT_EQ(ece.options, got.options);
	EXPECT_EQ(0, got.comp_mask);

	ece.options = 0x9abc;
	two = make_qp(self->s->id);
	ASSERT_NE(NULL, two);
	ASSERT_EQ(0, rdma_set_local_ece(self->s->id, &ece));
	self->opts.accept.qp_num = two->qp_num;
	ASSERT_EQ(0, rdma_accept(self->s->id, &self->opts.accept));
	ASSERT_EQ(0, expect_event(self->c->channel,
				  RDMA_CM_EVENT_CONNECT_RESPONSE,
				  &self->c->event));
	ASSERT_EQ(0, rdma_get_remote_ece(self->c->id, &got));
	EXPECT_EQ(ece.vendor_id, got.vendor_id);
	EXPECT_EQ(ece.options, got.options);
	destroy_qp(one);
	destroy_qp(two);
}

TEST_F(opt, ece_refused)
{
	struct ibv_ece ece = { .vendor_id = 0 };

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	EXPECT_ERRNO(EINVAL, rdma_set_local_ece(self->c->id, &ece));
	EXPECT_ERRNO(EINVAL, rdma_set_local_ece(self->c->id, NULL));
	ece.vendor_id = 1;
	ece.comp_mask = 1;
	EXPECT_ERRNO(EINVAL, rdma_set_local_ece(self->c->id, &ece));
	ece.comp_mask = 0;
	EXPECT_ERRNO(EINVAL, rdma_get_remote_ece(self->c->id, NULL));
	/* Once the id has a queue pair, the provider chooses its ECE. */
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	EXPECT_ERRNO(EINVAL, rdma_set_local_ece(self->c->id, &ece));
	EXPECT_ERRNO(EINVAL, rdma_get_remote_ece(self->c->id, &ece));
	if (on_rxe(self->c->id)) {
		EXPECT_EQ(EOPNOTSUPP, ibv_query_ece(self->c->id->qp, &ece));
		EXPECT_EQ(EOPNOTSUPP, ibv_set_ece(self->c->id->qp, &ece));
	}
}

TEST_F(opt, extended_queue_pair)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	id = self->c->id;
	pd = ibv_alloc_pd(id->verbs);
	ASSERT_NE(NULL, pd);
	attr.pd = pd;
	ASSERT_EQ(0, rdma_create_qp_ex(id, &attr));
	EXPECT_EQ(pd, id->qp->pd);
	EXPECT_EQ(pd, id->pd);
	rdma_destroy_qp(id);
	EXPECT_EQ(NULL, id->qp);
	EXPECT_EQ(NULL, id->send_cq);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(opt, queue_pair_destroyed_as_any_other)
{
	struct ibv_cq *cq;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	cq = ibv_create_cq(self->c->id->verbs, 32, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	self->opts.client_qp.send_cq = self->opts.client_qp.recv_cq = cq;
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	EXPECT_EQ(0, ibv_destroy_qp(self->c->id->qp));
	self->c->id->qp = NULL;
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

/* An id that moves takes its waiting events to the new channel. */
TEST_F(opt, migration_with_events)
{
	struct rdma_event_channel *other = rdma_create_event_channel();
	struct sockaddr_storage to = self->addr;
	struct end *c = self->c;

	ASSERT_NE(NULL, other);
	set_port(&to, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, end_client(c, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_resolve_addr(c->id, NULL, (struct sockaddr *)&to,
				       2000));
	ASSERT_TRUE(readable(c->channel->fd, DEADLINE_MS));
	ASSERT_EQ(0, rdma_migrate_id(c->id, other));
	EXPECT_EQ(other, c->id->channel);
	EXPECT_TRUE(no_event(c->channel));
	ASSERT_EQ(0, expect_event(other, RDMA_CM_EVENT_ADDR_RESOLVED,
				  &c->event));
	ASSERT_EQ(0, rdma_migrate_id(c->id, c->channel));
	ASSERT_EQ(0, rdma_resolve_route(c->id, 10000));
	ASSERT_EQ(0, expect_event(c->channel, RDMA_CM_EVENT_ROUTE_RESOLVED,
				  &c->event));
	EXPECT_TRUE(no_event(other));
	rdma_destroy_event_channel(other);
}

TEST_F(opt, contexts_of_the_ids)
{
	struct ibv_context **list;
	int i, num = 0, found = 0;

	ASSERT_EQ(0, pair_resolve(&self->p, &self->opts));
	list = rdma_get_devices(&num);
	ASSERT_NE(NULL, list);
	for (i = 0; i < num; i++)
		found += list[i] == self->c->id->verbs;
	EXPECT_EQ(1, found);
	EXPECT_EQ(NULL, list[num]);
	rdma_free_devices(list);
}

TEST_HARNESS_MAIN
