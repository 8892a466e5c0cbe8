// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests handles: their types, their files, dependencies between objects, and
 * the limit of objects.  A failure means that a handle names a wrong object, or
 * that an object is destroyed while another uses it.
 */
#include <kselftest_harness.h>

#include "rpost_own.h"

#define OBJECTS	7	/* that the fixture creates */
#define MAX_OBJECTS	RP_PARAMETERS "max_objects"

/* One object of each type; the id is bound. */
FIXTURE(objects) {
	long refcnt;
	struct rp_end end;
	struct rpost_reg_mr mr;
	void *mem;
	struct rpost_create_srq srq;
	uint32_t ah;
	uint32_t handles[RPOST_OBJ_AH + 1];
};

FIXTURE_SETUP(objects)
{
	struct rp_end *end = &self->end;

	self->refcnt = rp_module_number("refcnt");
	ASSERT_LE(0, self->refcnt);
	self->mem = rp_pages(getpagesize());
	ASSERT_NE(NULL, self->mem);
	ASSERT_EQ(0, rp_end_init(end));
	ASSERT_EQ(0, rp_create_id(end->fd, end->channel, &end->id));
	ASSERT_EQ(0, rp_bind(end->fd, end->id, 0));
	ASSERT_EQ(0, rp_create_qp(end, 0));
	ASSERT_EQ(0, rp_reg_mr(end->fd, end->pd, self->mem, 64,
			       RPOST_ACCESS_LOCAL_WRITE, &self->mr));
	ASSERT_EQ(0, rp_create_srq(end->fd, end->pd, 4, &self->srq));
	ASSERT_EQ(0, rp_own_ah(end, &self->ah));
	self->handles[RPOST_OBJ_SRQ] = self->srq.handle;
	self->handles[RPOST_OBJ_AH] = self->ah;
	self->handles[RPOST_OBJ_PD] = end->pd;
	self->handles[RPOST_OBJ_MR] = self->mr.handle;
	self->handles[RPOST_OBJ_CQ] = end->cq.cmd.handle;
	self->handles[RPOST_OBJ_QP] = end->qp;
	self->handles[RPOST_OBJ_ID] = end->id;
}

FIXTURE_TEARDOWN(objects)
{
	rp_end_close(&self->end);
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
}

TEST_F(objects, counted)
{
	const uint32_t order[] = { RPOST_OBJ_QP, RPOST_OBJ_ID, RPOST_OBJ_CQ,
				   RPOST_OBJ_MR, RPOST_OBJ_AH, RPOST_OBJ_SRQ,
				   RPOST_OBJ_PD };
	unsigned int i;

	ASSERT_EQ(OBJECTS, rp_num_objects(self->end.fd));
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		EXPECT_NE(0, self->handles[order[i]]);
		EXPECT_EQ(0, rp_destroy(self->end.fd, order[i],
					self->handles[order[i]]));
		EXPECT_EQ(OBJECTS - 1 - (int)i, rp_num_objects(self->end.fd));
	}
}

TEST_F(objects, double_destroy)
{
	uint32_t pd;

	ASSERT_EQ(0, rp_alloc_pd(self->end.fd, self->end.device, &pd));
	EXPECT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(-ENOENT, rp_destroy(self->end.fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_QP, self->end.qp));
	EXPECT_EQ(-ENOENT, rp_destroy(self->end.fd, RPOST_OBJ_QP,
				      self->end.qp));
	EXPECT_EQ(OBJECTS - 1, rp_num_objects(self->end.fd));
}

TEST_F(objects, handles_are_not_reused_at_once)
{
	uint32_t last = self->end.qp, pd, id;
	int i;

	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, rp_alloc_pd(self->end.fd, self->end.device, &pd));
		ASSERT_EQ(0, rp_create_id(self->end.fd, self->end.channel,
					  &id));
		EXPECT_LT(last, pd);
		EXPECT_LT(pd, id);
		last = id;
		ASSERT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_PD, pd));
		ASSERT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_ID, id));
	}
	EXPECT_EQ(OBJECTS, rp_num_objects(self->end.fd));
}

TEST_F(objects, wrong_type)
{
	uint32_t type, as;

	for (type = RPOST_OBJ_PD; type <= RPOST_OBJ_AH; type++) {
		for (as = RPOST_OBJ_PD; as <= RPOST_OBJ_AH; as++) {
			if (as == type)
				continue;
			EXPECT_EQ(-ENOENT, rp_destroy(self->end.fd, as,
						      self->handles[type]))
				TH_LOG("%u as %u", type, as);
		}
		EXPECT_EQ(-ENOENT, rp_destroy(self->end.fd, type, 0));
		EXPECT_EQ(-ENOENT, rp_destroy(self->end.fd, type, INT32_MAX));
		EXPECT_EQ(-ENOENT, rp_destroy(self->end.fd, type, UINT32_MAX));
		EXPECT_EQ(-EINVAL, rp_destroy(self->end.fd, 0,
					      self->handles[type]));
		EXPECT_EQ(-EINVAL, rp_destroy(self->end.fd, RPOST_OBJ_AH + 1,
					      self->handles[type]));
		EXPECT_EQ(-EINVAL, rp_destroy(self->end.fd, UINT32_MAX,
					      self->handles[type]));
	}
	EXPECT_EQ(OBJECTS, rp_num_objects(self->end.fd));
}

/* Every command that names an object refuses the handles of @handles. */
static void names_nothing(struct __test_metadata *_metadata, struct rp_end *end,
			  const uint32_t *handles)
{
	const uint32_t qp = handles[RPOST_OBJ_QP], id = handles[RPOST_OBJ_ID];
	uint32_t pd = handles[RPOST_OBJ_PD], cq = handles[RPOST_OBJ_CQ];
	struct rpost_poll_cq poll_cmd = { .size = sizeof(poll_cmd) };
	struct rpost_arm_cq arm = { .size = sizeof(arm), .handle = cq };
	struct rpost_migrate_id migrate = {
		.size = sizeof(migrate),
		.id = id,
		.channel_fd = end->channel,
	};
	struct rpost_query_qp query = { .size = sizeof(query), .handle = qp };
	struct rpost_reject reject = { .size = sizeof(reject), .id = id };
	struct rpost_recv_wr recv = { .size = sizeof(recv) };
	struct rpost_send_wr send = { .size = sizeof(send) };
	struct rpost_query_id query_id;
	struct rpost_reg_mr mr;
	char mem[64];

	poll_cmd.handle = cq;
	EXPECT_EQ(-ENOENT, rp_reg_mr(end->fd, pd, mem, 64, 0, &mr));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_POLL_CQ, &poll_cmd));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_ARM_CQ, &arm));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_QUERY_QP, &query));
	EXPECT_EQ(-ENOENT, rp_query_id(end->fd, id, &query_id));
	EXPECT_EQ(-ENOENT, rp_bind(end->fd, id, 0));
	EXPECT_EQ(-ENOENT, rp_resolve_addr(end->fd, id, 1));
	EXPECT_EQ(-ENOENT, rp_resolve_route(end->fd, id));
	EXPECT_EQ(-ENOENT, rp_listen(end->fd, id, 1));
	EXPECT_EQ(-ENOENT, rp_connect(end->fd, id));
	EXPECT_EQ(-ENOENT, rp_accept(end->fd, id));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_REJECT, &reject));
	EXPECT_EQ(-ENOENT, rp_disconnect(end->fd, id));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_MIGRATE_ID, &migrate));
	EXPECT_EQ(-ENOENT, rp_post(end->fd, RPOST_IOC_POST_RECV, qp, &recv,
				   sizeof(recv), 1, NULL));
	EXPECT_EQ(-ENOENT, rp_post(end->fd, RPOST_IOC_POST_SEND, qp, &send,
				   sizeof(send), 1, NULL));
}

/* The same for the commands of the second release. */
static void names_nothing_new(struct __test_metadata *_metadata,
			      struct rp_end *end, const uint32_t *handles)
{
	const uint32_t qp = handles[RPOST_OBJ_QP], id = handles[RPOST_OBJ_ID];
	uint32_t srq = handles[RPOST_OBJ_SRQ], pd = handles[RPOST_OBJ_PD], ah;
	const struct {
		unsigned long nr;
		uint32_t size, handle;
	} simple[] = {
		{ RPOST_IOC_MODIFY_QP, sizeof(struct rpost_modify_qp), qp },
		{ RPOST_IOC_QUERY_SRQ, sizeof(struct rpost_query_srq), srq },
		{ RPOST_IOC_NOTIFY, sizeof(struct rpost_notify), id },
		{ RPOST_IOC_ESTABLISH, sizeof(struct rpost_establish), id },
		{ RPOST_IOC_INIT_QP_ATTR, sizeof(struct rpost_init_qp_attr),
		  id },
		{ RPOST_IOC_SET_OPTION, sizeof(struct rpost_set_option), id },
	};
	struct rpost_resize_cq resize = {
		.size = sizeof(resize),
		.handle = handles[RPOST_OBJ_CQ],
		.cqe = 4,
	};
	struct rpost_attach_mcast mcast = {
		.size = sizeof(mcast), .qp = qp, .gid = { 0xff, 0x0e },
	};
	struct rpost_leave_mcast leave = {
		.size = sizeof(leave),
		.id = id,
		.addr_len = sizeof(struct sockaddr_in),
		.addr.ss_family = AF_INET,
	};
	const struct rpost_ah_attr nowhere = { .is_global = 1 };
	struct rpost_create_srq create;
	uint32_t cmd[64];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(simple); i++) {
		memset(cmd, 0, sizeof(cmd));
		cmd[0] = simple[i].size;
		cmd[2] = simple[i].handle;
		if (simple[i].nr == RPOST_IOC_NOTIFY)
			cmd[3] = RPOST_ASYNC_COMM_EST;
		EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, simple[i].nr, cmd)) {
			TH_LOG("command %#lx", simple[i].nr);
		}
	}
	EXPECT_EQ(-ENOENT, rp_srq_limit(end->fd, srq, 1));
	EXPECT_EQ(-ENOENT, rp_post_srq(end->fd, srq, 1, NULL, 0, 0));
	EXPECT_EQ(-ENOENT, rp_create_srq(end->fd, pd, 1, &create));
	EXPECT_EQ(-ENOENT, rp_create_ah(end->fd, pd, &nowhere, &ah));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_RESIZE_CQ, &resize));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_ATTACH_MCAST, &mcast));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_DETACH_MCAST, &mcast));
	EXPECT_EQ(-ENOENT, rp_ioctl(end->fd, RPOST_IOC_LEAVE_MCAST, &leave));
}

TEST_F(objects, commands_check_the_type)
{
	uint32_t shifted[RPOST_OBJ_AH + 1] = { 0 }, type;

	for (type = RPOST_OBJ_PD; type <= RPOST_OBJ_AH; type++)
		shifted[type] = self->handles[type % RPOST_OBJ_AH + 1];
	names_nothing(_metadata, &self->end, shifted);
	names_nothing_new(_metadata, &self->end, shifted);
	memset(shifted, 0, sizeof(shifted));
	names_nothing(_metadata, &self->end, shifted);
	names_nothing_new(_metadata, &self->end, shifted);
	memset(shifted, 0xff, sizeof(shifted));
	names_nothing(_metadata, &self->end, shifted);
	names_nothing_new(_metadata, &self->end, shifted);
	EXPECT_EQ(OBJECTS, rp_num_objects(self->end.fd));
}

/* Handles of another open file name nothing, even in one process. */
TEST_F(objects, another_file)
{
	struct rp_end other = self->end;
	uint32_t type;

	other.fd = rp_open();
	ASSERT_LE(0, other.fd);
	other.channel = rp_event_channel(other.fd);
	ASSERT_LE(0, other.channel);
	names_nothing(_metadata, &other, self->handles);
	names_nothing_new(_metadata, &other, self->handles);
	for (type = RPOST_OBJ_PD; type <= RPOST_OBJ_AH; type++)
		EXPECT_EQ(-ENOENT, rp_destroy(other.fd, type,
					      self->handles[type]));
	EXPECT_EQ(0, rp_num_objects(other.fd));
	EXPECT_EQ(OBJECTS, rp_num_objects(self->end.fd));
	close(other.channel);
	close(other.fd);
}

TEST_F(objects, create_qp_names_its_parts)
{
	struct rpost_create_qp cmd, good = {
		.size = sizeof(good),
		.pd = self->end.pd,
		.send_cq = self->end.cq.cmd.handle,
		.recv_cq = self->end.cq.cmd.handle,
		.max_send_wr = 1,
		.max_recv_wr = 1,
	};
	uint32_t *const parts[] = { &cmd.id, &cmd.pd, &cmd.send_cq,
				    &cmd.recv_cq, &cmd.srq };
	unsigned int i, type;

	ASSERT_EQ(0, rp_create_id(self->end.fd, self->end.channel, &good.id));
	ASSERT_EQ(0, rp_bind(self->end.fd, good.id, 0));
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		cmd = good;
		*parts[i] = 0;
		/* The id and the shared receive queue are optional. */
		if (parts[i] != &cmd.id && parts[i] != &cmd.srq)
			EXPECT_EQ(-ENOENT, rp_ioctl(self->end.fd,
						    RPOST_IOC_CREATE_QP, &cmd));
		for (type = RPOST_OBJ_PD; type <= RPOST_OBJ_AH; type++) {
			cmd = good;
			*parts[i] = self->handles[type];
			if (*parts[i] == *(&good.id + (parts[i] - &cmd.id)) ||
			    (parts[i] == &cmd.id && type == RPOST_OBJ_ID) ||
			    (parts[i] == &cmd.srq && type == RPOST_OBJ_SRQ))
				continue;
			EXPECT_EQ(-ENOENT, rp_ioctl(self->end.fd,
						    RPOST_IOC_CREATE_QP, &cmd));
			EXPECT_EQ(0, cmd.handle);
		}
	}
	EXPECT_EQ(OBJECTS + 1, rp_num_objects(self->end.fd));
	/* The failed calls have left no object in use. */
	EXPECT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_ID, good.id));
	EXPECT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_QP, self->end.qp));
	EXPECT_EQ(0, rp_destroy(self->end.fd, RPOST_OBJ_CQ,
				self->end.cq.cmd.handle));
}

TEST_F(objects, busy)
{
	struct rp_end *end = &self->end;
	struct rpost_query_id query;
	struct rp_cq other;

	/* A region and a queue pair use the domain. */
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_CQ,
				     end->cq.cmd.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_ID, end->id));
	EXPECT_EQ(OBJECTS, rp_num_objects(end->fd));
	/* The id that was not destroyed still works. */
	EXPECT_EQ(0, rp_query_id(end->fd, end->id, &query));
	EXPECT_EQ(RPOST_ID_BOUND, query.state);

	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, self->mr.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));

	/* With two completion queues, each is in use. */
	ASSERT_EQ(0, rp_create_cq(end->fd, end->device, 4, -1, &other));
	struct rpost_create_qp qp = {
		.size = sizeof(qp),
		.id = end->id,
		.pd = end->pd,
		.send_cq = end->cq.cmd.handle,
		.recv_cq = other.cmd.handle,
	};
	ASSERT_EQ(0, rp_ioctl(end->fd, RPOST_IOC_CREATE_QP, &qp));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_CQ,
				     end->cq.cmd.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_CQ, other.cmd.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, qp.handle));

	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_CQ, other.cmd.handle));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_CQ, end->cq.cmd.handle));
	/* An address handle and a shared receive queue use the domain. */
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_AH, self->ah));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_SRQ, self->srq.handle));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_ID, end->id));
	EXPECT_EQ(0, rp_num_objects(end->fd));
	rp_unmap_cq(&other);
}

/* --------------------------------------------------------- the limit */

FIXTURE(limit) {
	struct rp_end end;
	long limit;
};

FIXTURE_SETUP(limit)
{
	self->limit = rp_module_number("parameters/max_objects");
	ASSERT_LT(0, self->limit);
	ASSERT_EQ(0, rp_end_init(&self->end));
}

FIXTURE_TEARDOWN(limit)
{
	if (!access(MAX_OBJECTS, W_OK))
		ASSERT_EQ(0, rp_set_number("max_objects", self->limit));
	rp_end_close(&self->end);
}

TEST_F(limit, emfile)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr mr;
	uint32_t pd, id;
	struct rp_cq cq;
	int fd;

	if (access(MAX_OBJECTS, W_OK))
		SKIP(return, "needs root");
	ASSERT_EQ(0, rp_create_id(end->fd, end->channel, &end->id));
	ASSERT_EQ(0, rp_bind(end->fd, end->id, 0));
	ASSERT_EQ(3, rp_num_objects(end->fd));
	ASSERT_EQ(0, rp_set_number("max_objects", 3));

	EXPECT_EQ(-EMFILE, rp_alloc_pd(end->fd, end->device, &pd));
	EXPECT_EQ(0, pd);
	EXPECT_EQ(-EMFILE, rp_create_id(end->fd, end->channel, &id));
	EXPECT_EQ(0, id);
	EXPECT_EQ(-EMFILE, rp_create_cq(end->fd, end->device, 4, -1, &cq));
	EXPECT_EQ(0, cq.cmd.handle);
	EXPECT_EQ(-EMFILE, rp_reg_mr(end->fd, end->pd, &pd, 4, 0, &mr));
	EXPECT_EQ(0, mr.handle);
	EXPECT_EQ(-EMFILE, rp_create_qp(end, 0));
	EXPECT_EQ(0, end->qp);
	EXPECT_EQ(3, rp_num_objects(end->fd));
	/*
	 * Channels are descriptors; only the limit of descriptors counts them.
	 */
	fd = rp_comp_channel(end->fd);
	EXPECT_LE(0, fd);
	close(fd);

	/* Another file has its own count. */
	fd = rp_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, rp_alloc_pd(fd, end->device, &pd));
	close(fd);

	/* An object that ends makes room for one; failed calls take none. */
	ASSERT_EQ(0, rp_set_number("max_objects", 4));
	EXPECT_EQ(0, rp_create_qp(end, 0));
	EXPECT_EQ(-EMFILE, rp_alloc_pd(end->fd, end->device, &pd));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));
	EXPECT_EQ(0, rp_alloc_pd(end->fd, end->device, &pd));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(3, rp_num_objects(end->fd));
}

/* A request beyond the limit is rejected, and the listener goes on. */
TEST_F(limit, connection_request)
{
	struct rp_end *server = &self->end, client;
	struct rpost_get_event event;
	uint32_t listener;

	if (access(MAX_OBJECTS, W_OK))
		SKIP(return, "needs root");
	ASSERT_EQ(0, rp_listener(server, &listener));
	ASSERT_EQ(0, rp_end_init(&client));
	ASSERT_EQ(0, rp_client_route(&client, rp_port(server->fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&client, 0));
	ASSERT_EQ(3, rp_num_objects(server->fd));
	ASSERT_EQ(0, rp_set_number("max_objects", 3));
	ASSERT_EQ(0, rp_connect(client.fd, client.id));
	ASSERT_EQ(0, rp_get_event(client.channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	EXPECT_TRUE(rp_quiet(server->channel));
	EXPECT_EQ(3, rp_num_objects(server->fd));

	ASSERT_EQ(0, rp_set_number("max_objects", self->limit));
	ASSERT_EQ(0, rp_leave(&client));
	EXPECT_EQ(0, rp_join(&client, server, listener, 0));
	rp_end_close(&client);
}

TEST_HARNESS_MAIN
