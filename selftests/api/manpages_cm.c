// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests what the manual pages of ids, addresses and events promise, where the
 * programs of these subjects do not.  The comment above a test quotes the page;
 * a failure means that a program written by the page does not work.
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <pthread.h>

#include "rdma_test.h"

/* By the InfiniBand specification, for RDMA_PS_TCP. */
#define ACCEPT_DATA	196

PAIR_FIXTURE(cm, pair_listen)

static bool all_zero(struct sockaddr *addr)
{
	return all_bytes(addr, sizeof(struct sockaddr_in), 0);
}

/*
 * rdma_get_local_addr(3), rdma_get_peer_addr(3): "If the rdma_cm_id is not
 * [bound to an address, or connected], the contents of the sockaddr structure
 * will be set to all zeroes."
 */
TEST_F(cm, addresses_that_an_id_does_not_have)
{
	struct rdma_cm_id *id;

	ASSERT_EQ(0, rdma_create_id(self->s->channel, &id, NULL, RDMA_PS_TCP));
	EXPECT_TRUE(all_zero(rdma_get_local_addr(id)));
	EXPECT_TRUE(all_zero(rdma_get_peer_addr(id)));
	EXPECT_EQ(0, rdma_destroy_id(id));
	EXPECT_FALSE(all_zero(rdma_get_local_addr(self->p.listen)));
}

/* Resolve the listener's address, from this source. */
static int resolve(struct pair *p, struct sockaddr *source)
{
	struct sockaddr_storage to;

	if (!test_addr(AF_INET, &to))
		return -1;
	set_port(&to, rdma_get_src_port(p->listen));
	return end_resolve(&p->client, source, &to);
}

/*
 * rdma_bind_addr(3): "[...] it may also be called on the active side of a
 * connection before calling rdma_resolve_addr to bind to a specific address."
 */
TEST_F(cm, client_binds_first)
{
	struct sockaddr_storage addr;
	__be16 port;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, end_client(self->c, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_bind_addr(self->c->id, (struct sockaddr *)&addr));
	port = rdma_get_src_port(self->c->id);
	ASSERT_NE(0, port);
	ASSERT_EQ(0, resolve(&self->p, NULL));
	EXPECT_EQ(port, rdma_get_src_port(self->c->id));
	ASSERT_EQ(0, pair_after_resolve(&self->p, &self->opts));
	EXPECT_EQ(port, rdma_get_dst_port(self->s->id));
}

/*
 * rdma_resolve_addr(3): "If a source address is given, the rdma_cm_id is bound
 * to that address, the same as if rdma_bind_addr were called."
 */
TEST_F(cm, client_names_its_source)
{
	struct sockaddr_storage source;
	struct rdma_cm_id *id;
	__be16 port;

	/* Find a free port. */
	ASSERT_TRUE(test_addr(AF_INET, &source));
	ASSERT_EQ(0, rdma_create_id(self->s->channel, &id, NULL, RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_bind_addr(id, (struct sockaddr *)&source));
	port = rdma_get_src_port(id);
	ASSERT_EQ(0, end_client(self->c, RDMA_PS_TCP));
	set_port(&source, port);
	EXPECT_ERRNO(EADDRINUSE,
		     rdma_resolve_addr(self->c->id, (struct sockaddr *)&source,
				       rdma_get_local_addr(self->p.listen), 10000));
	EXPECT_EQ(0, rdma_destroy_id(id));
	ASSERT_EQ(0, resolve(&self->p, (struct sockaddr *)&source));
	EXPECT_EQ(port, rdma_get_src_port(self->c->id));
	EXPECT_EQ(0, memcmp(&source, rdma_get_local_addr(self->c->id),
			    sizeof(struct sockaddr_in)));
	ASSERT_EQ(0, pair_after_resolve(&self->p, &self->opts));
	EXPECT_EQ(port, rdma_get_dst_port(self->s->id));
}

/*
 * rdma_listen(3): "If the rdma_cm_id is bound to a specific IP address, the
 * listen will be restricted to that address [...]"
 */
TEST_F(cm, listener_of_one_address)
{
	struct sockaddr_storage other;
	struct end *c = self->c;

	if (!test_addr(AF_INET6, &other))
		SKIP(return, "no RDMA device has an address of this family");
	set_port(&other, rdma_get_src_port(self->p.listen));
	ASSERT_EQ(0, end_client(c, RDMA_PS_TCP));
	ASSERT_EQ(0, end_resolve(c, NULL, &other));
	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, rdma_connect(c->id, &self->opts.connect));
	EXPECT_EQ(RDMA_CM_EVENT_REJECTED, next_event(c->channel, &c->event));
	EXPECT_TRUE(no_event(self->s->channel));
}

/*
 * rdma_create_qp(3): "One default protection domain is allocated per RDMA
 * device."
 */
TEST_F(cm, one_default_domain)
{
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	ASSERT_EQ(self->c->id->verbs, self->s->id->verbs);
	EXPECT_EQ(self->c->id->pd, self->s->id->pd);
	EXPECT_EQ(self->c->id->pd, self->c->id->qp->pd);
	EXPECT_EQ(self->c->id->pd, self->s->id->qp->pd);
}

/*
 * rdma_create_ep(3): "The QP will be associated with the specified protection
 * domain, if provided [...]"
 */
TEST_F(cm, endpoint_of_a_domain)
{
	struct rdma_addrinfo *info, hints = { .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = self->opts.client_qp;
	char node[INET_ADDRSTRLEN], service[8];
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	pd = ibv_alloc_pd(self->p.listen->verbs);
	ASSERT_NE(NULL, pd);
	addr_text(node, service, self->p.listen);
	ASSERT_EQ(0, rdma_getaddrinfo(node, service, &hints, &info));
	ASSERT_EQ(0, rdma_create_ep(&id, info, pd, &attr));
	rdma_freeaddrinfo(info);
	EXPECT_EQ(pd, id->pd);
	EXPECT_EQ(pd, id->qp->pd);
	rdma_destroy_ep(id);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

/*
 * rdma_get_cm_event(3): "Any additional space in the buffer will be zeroed
 * out."
 */
TEST_F(cm, zeros_after_private_data)
{
	struct event *ev = &self->s->event;
	char data[5];

	fill(data, sizeof(data), 1);
	self->opts.connect.private_data = data;
	self->opts.connect.private_data_len = sizeof(data);
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_LE(sizeof(data), ev->conn.private_data_len);
	EXPECT_TRUE(filled(ev->data, sizeof(data), 1));
	EXPECT_TRUE(all_bytes(ev->data + sizeof(data),
			      ev->conn.private_data_len - sizeof(data), 0));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	/* The server has sent none. */
	ev = &self->c->event;
	EXPECT_TRUE(all_bytes(ev->data, ev->conn.private_data_len, 0));
}

/* rdma_accept(3): "[...] limited to 196 bytes for RDMA_PS_TCP [...]" */
TEST_F(cm, data_of_the_answer)
{
	char data[ACCEPT_DATA + 1];

	fill(data, sizeof(data), 1);
	self->opts.accept.private_data = data;
	self->opts.accept.private_data_len = ACCEPT_DATA;
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	if (on_iwarp(self->c->id))
		SKIP(return, "the limit is InfiniBand's");
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
	ASSERT_LE(ACCEPT_DATA, self->c->event.conn.private_data_len);
	EXPECT_TRUE(filled(self->c->event.data, ACCEPT_DATA, 1));
}

TEST_F(cm, data_of_the_answer_too_long)
{
	char data[ACCEPT_DATA + 1];

	memset(data, 1, sizeof(data));
	self->opts.accept.private_data = data;
	self->opts.accept.private_data_len = sizeof(data);
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	if (on_iwarp(self->c->id))
		SKIP(return, "the limit is InfiniBand's");
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	EXPECT_ERRNO(EINVAL, rdma_accept(self->s->id, &self->opts.accept));
}

/*
 * rdma_accept(3): "This value must be less than or equal to the local RDMA
 * device attribute [...]"
 */
TEST_F(cm, answer_deeper_than_the_device)
{
	struct rdma_conn_param *param = &self->opts.accept;
	struct ibv_device_attr dev;

	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	ASSERT_EQ(0, ibv_query_device(self->s->id->verbs, &dev));
	if (dev.max_qp_rd_atom >= RDMA_MAX_RESP_RES - 1 ||
	    dev.max_qp_init_rd_atom >= RDMA_MAX_INIT_DEPTH - 1)
		SKIP(return, "the device takes whatever can be said");
	param->responder_resources = dev.max_qp_rd_atom + 1;
	EXPECT_ERRNO(EINVAL, rdma_accept(self->s->id, param));
	param->responder_resources = 4;
	param->initiator_depth = dev.max_qp_init_rd_atom + 1;
	EXPECT_ERRNO(EINVAL, rdma_accept(self->s->id, param));
	param->initiator_depth = 4;
	EXPECT_EQ(0, pair_accept(&self->p, &self->opts));
}

/* rdma_connect(3), flow_control: "This value is exchanged with the remote peer" */
TEST_F(cm, flow_control)
{
	int on;

	for (on = 0; on < 2; on++) {
		self->opts.connect.flow_control = on;
		self->opts.accept.flow_control = !on;
		ASSERT_EQ(0, pair_request(&self->p, &self->opts));
		if (on_iwarp(self->c->id))
			SKIP(return, "iWARP does not exchange it");
		EXPECT_EQ(on, self->s->event.conn.flow_control);
		ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
		ASSERT_EQ(0, pair_accept(&self->p, &self->opts));
		EXPECT_EQ(!on, self->c->event.conn.flow_control);
		end_close(self->c);
		end_close(self->s);
		rdma_destroy_event_channel(self->c->channel);
		self->c->channel = NULL;
	}
}

/*
 * rdma_accept(3), srq: "[...] ignored by the library if a QP has been created";
 * rdma_get_cm_event(3): "Specifies if the sender is using a shared-receive queue."
 */
TEST_F(cm, shared_queue_of_the_sender)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };

	self->opts.connect.srq = 1;
	ASSERT_EQ(0, pair_request(&self->p, &self->opts));
	if (on_iwarp(self->c->id))
		SKIP(return, "iWARP does not tell");
	EXPECT_EQ(0, self->s->event.conn.srq);
	ASSERT_EQ(0, rdma_create_srq(self->s->id, NULL, &attr));
	ASSERT_EQ(0, pair_server_qp(&self->p, &self->opts));
	EXPECT_EQ(0, pair_accept(&self->p, &self->opts));
	EXPECT_EQ(1, self->c->event.conn.srq);
	rdma_destroy_qp(self->s->id);
	rdma_destroy_srq(self->s->id);
}

/*
 * rdma_destroy_event_channel(3): "Release all resources [...] and closes the
 * associated file descriptor."
 */
TEST_F(cm, channel_and_its_descriptor)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	int fd;

	ASSERT_NE(NULL, channel);
	fd = channel->fd;
	EXPECT_NE(self->s->channel->fd, fd);
	EXPECT_LE(0, fcntl(fd, F_GETFD));
	rdma_destroy_event_channel(channel);
	EXPECT_ERRNO(EBADF, fcntl(fd, F_GETFD));
}

struct move {
	struct rdma_cm_id *id;
	struct rdma_event_channel *to;
};

static void *move_in_thread(void *arg)
{
	struct move *move = arg;

	return (void *)(intptr_t)rdma_migrate_id(move->id, move->to);
}

/*
 * rdma_migrate_id(3): "This call will block while there are any unacknowledged
 * events on the current event channel."
 */
TEST_F(cm, migration_waits_for_acks)
{
	struct move move = { .to = rdma_create_event_channel() };
	struct rdma_cm_event *ev;
	struct timespec ts;
	pthread_t thread;
	void *ret = NULL;

	ASSERT_NE(NULL, move.to);
	ASSERT_EQ(0, pair_after_listen(&self->p, &self->opts));
	move.id = self->s->id;
	ASSERT_EQ(0, rdma_disconnect(self->c->id));
	ASSERT_EQ(0, rdma_get_cm_event(self->s->channel, &ev));
	ASSERT_EQ(self->s->id, ev->id);
	ASSERT_EQ(0, pthread_create(&thread, NULL, move_in_thread, &move));
	ts = real_time_in(50);
	EXPECT_EQ(ETIMEDOUT, pthread_timedjoin_np(thread, &ret, &ts));
	ASSERT_EQ(0, rdma_ack_cm_event(ev));
	ASSERT_EQ(0, pthread_join(thread, &ret));
	EXPECT_EQ(NULL, ret);
	EXPECT_EQ(move.to, self->s->id->channel);
	end_close(self->s);
	rdma_destroy_event_channel(move.to);
}

TEST_HARNESS_MAIN
