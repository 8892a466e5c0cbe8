// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the library with a module of the first release.  A failure means that a
 * function which that module lacks does harm, or fails with another error than
 * EOPNOTSUPP or ENOSYS.  abi_compat.sh loads such a module; with another one
 * all tests are skipped.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_post_abi.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ADDR "10.0.0.1"

/* A function that the system lacks may fail with these errors. */
static bool not_there(int err)
{
	return err == EOPNOTSUPP || err == ENOSYS;
}

#define EXPECT_NOT_THERE(call) do { \
	errno = 0; \
	EXPECT_EQ(-1, call); \
	EXPECT_TRUE(not_there(errno)) \
		TH_LOG("%s: %s", #call, strerror(errno)); \
} while (0)

#define EXPECT_NOT_THERE_NULL(call) do { \
	errno = 0; \
	EXPECT_EQ(NULL, call); \
	EXPECT_TRUE(not_there(errno)) \
		TH_LOG("%s: %s", #call, strerror(errno)); \
} while (0)

#define EXPECT_NOT_THERE_ERR(call) do { \
	int err_ = call; \
	EXPECT_TRUE(not_there(err_)) \
		TH_LOG("%s: %s", #call, strerror(err_)); \
} while (0)

FIXTURE(old) {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool wrong;
};

static int module_features(uint64_t *features)
{
	struct rpost_query query = { .size = sizeof(query) };
	int fd = open(RPOST_DEVICE_PATH, O_RDWR);
	int ret;

	if (fd < 0)
		return -1;
	ret = ioctl(fd, RPOST_IOC_QUERY, &query);
	close(fd);
	*features = query.features;
	return ret;
}

FIXTURE_SETUP(old)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	uint64_t features;

	ASSERT_EQ(0, module_features(&features));
	self->wrong = features;
	inet_pton(AF_INET, ADDR, &in.sin_addr);
	self->channel = rdma_create_event_channel();
	ASSERT_NE(NULL, self->channel);
	ASSERT_EQ(0, rdma_create_id(self->channel, &self->id, NULL,
				    RDMA_PS_TCP));
	ASSERT_EQ(0, rdma_bind_addr(self->id, (struct sockaddr *)&in));
	ASSERT_NE(NULL, self->id->verbs);
}

FIXTURE_TEARDOWN(old)
{
	rdma_destroy_id(self->id);
	rdma_destroy_event_channel(self->channel);
}

#define NEW_MODULE "the module has features"

TEST_F(old, ids)
{
	struct rdma_cm_id *id;

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	EXPECT_NOT_THERE(rdma_create_id(self->channel, &id, NULL, RDMA_PS_UDP));
	EXPECT_NOT_THERE(rdma_create_id(self->channel, &id, NULL,
					RDMA_PS_IPOIB));
	EXPECT_NOT_THERE(rdma_create_id(NULL, &id, NULL, RDMA_PS_UDP));
}

TEST_F(old, options)
{
	uint8_t tos = 1;
	int on = 1, off = 0;

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	EXPECT_NOT_THERE(rdma_set_option(self->id, RDMA_OPTION_ID,
					 RDMA_OPTION_ID_TOS, &tos, sizeof(tos)));
	EXPECT_NOT_THERE(rdma_set_option(self->id, RDMA_OPTION_ID,
					 RDMA_OPTION_ID_REUSEADDR, &on,
					 sizeof(on)));
	/* The option is off already, so switching it off succeeds. */
	EXPECT_EQ(0, rdma_set_option(self->id, RDMA_OPTION_ID,
				     RDMA_OPTION_ID_REUSEADDR, &off,
				     sizeof(off)));
}

TEST_F(old, connections_of_the_programs_queue_pairs)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_ece ece = { .vendor_id = 1 };
	int mask;

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	EXPECT_NOT_THERE(rdma_init_qp_attr(self->id, &attr, &mask));
	EXPECT_NOT_THERE(rdma_establish(self->id));
	EXPECT_NOT_THERE(rdma_notify(self->id, IBV_EVENT_COMM_EST));
	EXPECT_NOT_THERE(rdma_set_local_ece(self->id, &ece));
	EXPECT_NOT_THERE(rdma_reject_ece(self->id, NULL, 0));
}

TEST_F(old, multicast)
{
	struct sockaddr_in group = { .sin_family = AF_INET };

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	EXPECT_NOT_THERE(rdma_join_multicast(self->id,
					     (struct sockaddr *)&group, NULL));
	EXPECT_EQ(-1, rdma_leave_multicast(self->id,
					   (struct sockaddr *)&group));
	EXPECT_EQ(EADDRNOTAVAIL, errno);
}

TEST_F(old, queues)
{
	struct ibv_srq_init_attr srq_attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_cq *cq;
	int type;

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	cq = ibv_create_cq(self->id->verbs, 16, NULL, NULL, 0);
	ASSERT_NE(NULL, cq);
	attr.send_cq = attr.recv_cq = cq;
	for (type = IBV_QPT_RC; type <= IBV_QPT_UD; type++) {
		attr.qp_type = type;
		EXPECT_NOT_THERE_NULL(ibv_create_qp(self->id->pd, &attr));
	}
	EXPECT_NOT_THERE_NULL(ibv_create_srq(self->id->pd, &srq_attr));
	EXPECT_NOT_THERE(rdma_create_srq(self->id, NULL, &srq_attr));
	EXPECT_NOT_THERE_ERR(ibv_resize_cq(cq, 64));

	/* An id can have a queue pair; the connection manager moves it. */
	attr.qp_type = IBV_QPT_RC;
	ASSERT_EQ(0, rdma_create_qp(self->id, NULL, &attr));
	EXPECT_NOT_THERE_ERR(ibv_modify_qp(self->id->qp, &(struct ibv_qp_attr) {
			.qp_state = IBV_QPS_ERR,
		}, IBV_QP_STATE));
	rdma_destroy_qp(self->id);
	EXPECT_EQ(0, ibv_destroy_cq(cq));
}

TEST_F(old, addresses_and_tables)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	union ibv_gid gid;
	__be16 pkey;

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	EXPECT_NOT_THERE_NULL(ibv_create_ah(self->id->pd, &attr));
	EXPECT_NOT_THERE(ibv_query_gid(self->id->verbs, 1, 0, &gid));
	EXPECT_NOT_THERE(ibv_query_pkey(self->id->verbs, 1, 0, &pkey));
}

/* A context has a descriptor of its own, which does not tell the device. */
TEST_F(old, imports)
{
	struct ibv_pd *pd = self->id->pd;
	static char buf[64];
	struct ibv_mr *mr;
	int fd;

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	fd = dup(self->id->verbs->cmd_fd);
	ASSERT_LE(0, fd);
	EXPECT_NOT_THERE_NULL(ibv_import_device(fd));
	EXPECT_EQ(0, close(fd));
	EXPECT_NOT_THERE_NULL(ibv_import_pd(self->id->verbs, pd->handle));
	mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	ASSERT_NE(NULL, mr);
	EXPECT_NOT_THERE_NULL(ibv_import_mr(pd, mr->handle));
	EXPECT_EQ(0, ibv_dereg_mr(mr));
}

TEST_F(old, no_asynchronous_events)
{
	struct ibv_context *context = self->id->verbs;
	struct ibv_async_event event;

	if (self->wrong)
		SKIP(return, NEW_MODULE);
	/* No event comes, which is not an error. */
	if (fcntl(context->async_fd, F_SETFL, O_NONBLOCK))
		return;
	EXPECT_EQ(-1, ibv_get_async_event(context, &event));
}

TEST_HARNESS_MAIN
