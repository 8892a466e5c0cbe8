// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handles: what they name, whose they are, what depends on what, and what is
 * left when a program closes, forks, execs or hands its file on.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "rpost_own.h"

#define OBJECTS	7	/* that the fixture makes */
#define PARAM_MAX_OBJECTS "/sys/module/rdma_post/parameters/max_objects"

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

/* Every command that names an object, with a handle that is not one. */
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

/* Handles of another open file name nothing, even in the same process. */
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
		/* These need not be there. */
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
	/* None of them is in use by the failed attempts. */
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

	/* A region and a queue pair on a domain. */
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_CQ,
				     end->cq.cmd.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_ID, end->id));
	EXPECT_EQ(OBJECTS, rp_num_objects(end->fd));
	/* What was refused still works. */
	EXPECT_EQ(0, rp_query_id(end->fd, end->id, &query));
	EXPECT_EQ(RPOST_ID_BOUND, query.state);

	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_MR, self->mr.handle));
	EXPECT_EQ(-EBUSY, rp_destroy(end->fd, RPOST_OBJ_PD, end->pd));
	EXPECT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));

	/* Two queues: each is in use by itself. */
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
	/* An address handle and a shared receive queue on the domain. */
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

static int write_limit(long limit)
{
	FILE *f = fopen(PARAM_MAX_OBJECTS, "w");
	int ret;

	if (!f)
		return -errno;
	fprintf(f, "%ld\n", limit);
	ret = fclose(f) ? -errno : 0;
	return ret;
}

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
	if (!access(PARAM_MAX_OBJECTS, W_OK))
		ASSERT_EQ(0, write_limit(self->limit));
	rp_end_close(&self->end);
}

TEST_F(limit, emfile)
{
	struct rp_end *end = &self->end;
	struct rpost_reg_mr mr;
	uint32_t pd, id;
	struct rp_cq cq;
	int fd;

	if (access(PARAM_MAX_OBJECTS, W_OK))
		SKIP(return, "needs root");
	ASSERT_EQ(0, rp_create_id(end->fd, end->channel, &end->id));
	ASSERT_EQ(0, rp_bind(end->fd, end->id, 0));
	ASSERT_EQ(3, rp_num_objects(end->fd));
	ASSERT_EQ(0, write_limit(3));

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
	/* Channels are descriptors, which have a limit of their own. */
	fd = rp_comp_channel(end->fd);
	EXPECT_LE(0, fd);
	close(fd);

	/* Another file has its own count. */
	fd = rp_open();
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, rp_alloc_pd(fd, end->device, &pd));
	close(fd);

	/* One goes, one comes; nothing that failed is counted. */
	ASSERT_EQ(0, write_limit(4));
	EXPECT_EQ(0, rp_create_qp(end, 0));
	EXPECT_EQ(-EMFILE, rp_alloc_pd(end->fd, end->device, &pd));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));
	EXPECT_EQ(0, rp_alloc_pd(end->fd, end->device, &pd));
	ASSERT_EQ(0, rp_destroy(end->fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(3, rp_num_objects(end->fd));
}

/* A request for which there is no room is rejected; the listener goes on. */
TEST_F(limit, connection_request)
{
	struct rp_end *server = &self->end, client;
	struct rpost_get_event event;
	uint32_t listener;

	if (access(PARAM_MAX_OBJECTS, W_OK))
		SKIP(return, "needs root");
	ASSERT_EQ(0, rp_listener(server, &listener));
	ASSERT_EQ(0, rp_end_init(&client));
	ASSERT_EQ(0, rp_client_route(&client, rp_port(server->fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&client, 0));
	ASSERT_EQ(3, rp_num_objects(server->fd));
	ASSERT_EQ(0, write_limit(3));
	ASSERT_EQ(0, rp_connect(client.fd, client.id));
	ASSERT_EQ(0, rp_get_event(client.channel, &event));
	EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
	EXPECT_TRUE(rp_quiet(server->channel));
	EXPECT_EQ(3, rp_num_objects(server->fd));

	ASSERT_EQ(0, write_limit(self->limit));
	ASSERT_EQ(0, rp_leave(&client));
	EXPECT_EQ(0, rp_join(&client, server, listener, 0));
	rp_end_close(&client);
}

/* ------------------------------------------------------ the last close */

FIXTURE(last) {
	long refcnt;
	struct rp_end client, server;
	uint32_t listener;
};

FIXTURE_SETUP(last)
{
	self->refcnt = rp_module_number("refcnt");
	ASSERT_EQ(0, rp_end_init(&self->client));
	ASSERT_EQ(0, rp_end_init(&self->server));
	ASSERT_EQ(0, rp_listener(&self->server, &self->listener));
	ASSERT_EQ(0, rp_join(&self->client, &self->server, self->listener, 0));
}

FIXTURE_TEARDOWN(last)
{
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
}

TEST_F(last, all_alive)
{
	struct rpost_get_event event;
	struct rpost_reg_mr mr;
	struct rp_send send;
	void *mem = rp_pages(getpagesize());
	int i;

	/* Work under way on both sides, and memory that it uses. */
	ASSERT_EQ(0, rp_reg_mr(self->client.fd, self->client.pd, mem, 64,
			       RPOST_ACCESS_LOCAL_WRITE, &mr));
	for (i = 0; i < RP_DEPTH; i++) {
		send = rp_send(RPOST_WR_SEND, i, mem, 64, mr.lkey);
		ASSERT_EQ(0, rp_post_send(&self->client, &send));
		ASSERT_EQ(0, rp_post_recv(&self->client, i, mem, 64, mr.lkey));
	}
	rp_end_close(&self->client);
	ASSERT_EQ(0, rp_get_event(self->server.channel, &event));
	EXPECT_EQ(RPOST_EVENT_DISCONNECTED, event.event);
	EXPECT_EQ(self->server.id, event.id);
	rp_end_close(&self->server);
}

TEST_F(last, events_and_requests_queued)
{
	struct rp_end *clients = calloc(3, sizeof(*clients));
	struct pollfd pfd = { .fd = self->server.channel, .events = POLLIN };
	struct rpost_get_event event;
	int i;

	ASSERT_NE(NULL, clients);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, rp_end_init(&clients[i]));
		ASSERT_EQ(0, rp_client_route(&clients[i],
					     rp_port(self->server.fd,
						     self->listener)));
		ASSERT_EQ(0, rp_create_qp(&clients[i], 0));
		ASSERT_EQ(0, rp_connect(clients[i].fd, clients[i].id));
	}
	ASSERT_EQ(0, rp_disconnect(self->client.fd, self->client.id));
	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	usleep(TEST_QUIET_MS * 1000);

	/* Nothing was fetched. */
	rp_end_close(&self->server);
	rp_end_close(&self->client);
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, rp_get_event(clients[i].channel, &event));
		EXPECT_EQ(RPOST_EVENT_REJECTED, event.event);
		rp_end_close(&clients[i]);
	}
	free(clients);
}

/* Channels may outlive the file, as shells. */
TEST_F(last, channels_stay)
{
	struct pollfd pfd = { .fd = self->server.channel, .events = POLLIN };
	struct rpost_get_event event = { .size = sizeof(event) };
	int comp = rp_comp_channel(self->server.fd);

	ASSERT_LE(0, comp);
	rp_unmap_cq(&self->server.cq);
	close(self->server.fd);
	EXPECT_EQ(-ENODEV, rp_ioctl(self->server.channel, RPOST_IOC_GET_EVENT,
				    &event));
	EXPECT_EQ(1, poll(&pfd, 1, 0));
	EXPECT_NE(0, pfd.revents & POLLHUP);
	ASSERT_LT(self->refcnt, rp_module_number("refcnt"));
	close(self->server.channel);
	close(comp);
	EXPECT_EQ(0, rp_expect(self->client.channel, self->client.id,
			       RPOST_EVENT_DISCONNECTED));
	rp_end_close(&self->client);
}

struct waiter {
	pthread_t thread;
	int channel;
	int ret;
};

static void *wait_event(void *arg)
{
	struct rpost_get_event event = { .size = sizeof(event) };
	struct waiter *w = arg;

	w->ret = rp_ioctl(w->channel, RPOST_IOC_GET_EVENT, &event);
	return NULL;
}

TEST_F(last, close_wakes_fetchers)
{
	struct waiter w[2] = {
		{ .channel = self->server.channel, .ret = 1 },
		{ .channel = self->server.channel, .ret = 1 },
	};
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, wait_event,
					    &w[i]));
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(1, w[0].ret);
	rp_unmap_cq(&self->server.cq);
	close(self->server.fd);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(-ENODEV, w[i].ret);
	}
	close(self->server.channel);
	rp_end_close(&self->client);
}

/* The module stays while anything of it is in use. */
TEST_F(last, module_is_in_use)
{
	int comp = rp_comp_channel(self->client.fd);

	if (geteuid())
		SKIP(goto out, "needs root");
#define STAYS() do {							\
	ASSERT_LT(self->refcnt, rp_module_number("refcnt"));		\
	EXPECT_EQ(-1, syscall(SYS_delete_module, "rdma_post", O_NONBLOCK)); \
	EXPECT_EQ(EAGAIN, errno);					\
} while (0)
	STAYS();
	rp_end_close(&self->server);
	close(self->client.fd);
	/* The ring's mapping. */
	close(self->client.channel);
	close(comp);
	STAYS();
	rp_unmap_cq(&self->client.cq);
	EXPECT_EQ(self->refcnt, rp_wait_refcnt(self->refcnt));
	/* A channel alone. */
	ASSERT_EQ(0, rp_end_init(&self->client));
	comp = rp_comp_channel(self->client.fd);
	rp_end_close(&self->client);
	STAYS();
	close(comp);
	return;
out:
	close(comp);
	rp_end_close(&self->server);
	rp_end_close(&self->client);
}

TEST_HARNESS_MAIN
