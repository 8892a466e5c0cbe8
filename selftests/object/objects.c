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

/* Handles of another open file name nothing, even in one process. */
TEST_F(objects, another_file)
{
	int other = rp_open();
	uint32_t type;

	ASSERT_LE(0, other);
	for (type = RPOST_OBJ_PD; type <= RPOST_OBJ_AH; type++)
		EXPECT_EQ(-ENOENT, rp_destroy(other, type, self->handles[type]));
	EXPECT_EQ(0, rp_num_objects(other));
	EXPECT_EQ(OBJECTS, rp_num_objects(self->end.fd));
	close(other);
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
