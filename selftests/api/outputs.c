// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a call that fails leaves its outputs unchanged, wherever
 * rdma-core's libraries do.  Programs rely on this: libfabric passes the
 * address of one of its pointers to ibv_get_cq_event() and uses the pointer
 * afterwards.
 *
 * Calls that write to their outputs in rdma-core although they fail are left
 * out: ibv_init_ah_from_wc(), ibv_query_port().
 *
 * A new function is either called here or listed in no_outputs.txt;
 * selftests/tools/symbols.sh compares.
 */
#include <fcntl.h>
#include <kselftest_harness.h>
#include <netdb.h>
#include <sys/resource.h>
#include <unistd.h>

#include "verbs_test.h"

#define NO_PORT 200

/* Define an output of a call, filled with a pattern. */
#define POISONED(type, name) \
	type name; \
	memset(&name, POISON, sizeof(name))

#define EXPECT_UNTOUCHED(name) \
	EXPECT_TRUE(all_bytes(&(name), sizeof(name), POISON)) \
		TH_LOG(#name " was written to")

/* Expect that a call returns this and writes to none of its outputs. */
#define EXPECT_KEEPS(want, call, name) do { \
	EXPECT_EQ(want, call); \
	EXPECT_UNTOUCHED(name); \
} while (0)

#define EXPECT_REFUSED(call, name) do { \
	EXPECT_NE(0, call); \
	EXPECT_UNTOUCHED(name); \
} while (0)

/* Expect that a call fails, and keeps an output that is not a pattern. */
#define EXPECT_SAME(want, call, name) do { \
	typeof(name) was = name; \
	EXPECT_EQ(want, call); \
	EXPECT_EQ(0, memcmp(&(name), &was, sizeof(was))) \
		TH_LOG(#name " was written to"); \
} while (0)

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
	ASSERT_EQ(0, set_nonblock(self->channel->fd, true));
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

	/* After ibv_req_notify_cq(), the library may poll the queue first. */
	for (i = 0; i < 4; i++) {
		EXPECT_ERRNO(EAGAIN, ibv_get_cq_event(self->channel, &cq,
						      &context));
		EXPECT_UNTOUCHED(cq);
		EXPECT_UNTOUCHED(context);
		ASSERT_EQ(0, ibv_req_notify_cq(self->cq, 0));
	}
}

TEST_F(verbs, get_async_event)
{
	POISONED(struct ibv_async_event, event);

	ASSERT_EQ(0, set_nonblock(self->dev.verbs->async_fd, true));
	EXPECT_ERRNO(EAGAIN, ibv_get_async_event(self->dev.verbs, &event));
	EXPECT_UNTOUCHED(event);
}

/* An event of one context is not given to another of the same device. */
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

	ASSERT_EQ(0, set_nonblock(self->dev.verbs->async_fd, true));
	EXPECT_ERRNO(EAGAIN, ibv_get_async_event(self->dev.verbs, &event));
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

	EXPECT_KEEPS(0, ibv_poll_cq(self->cq, 1, &wc), wc);
}

TEST_F(verbs, query_device_ex)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	POISONED(struct ibv_device_attr_ex, attr);

	EXPECT_KEEPS(EINVAL, ibv_query_device_ex(self->dev.verbs, &input, &attr), attr);
}

TEST_F(verbs, query_gid)
{
	POISONED(struct ibv_gid_entry, entry);
	POISONED(union ibv_gid, gid);

	EXPECT_KEEPS(-1, ibv_query_gid(self->dev.verbs, NO_PORT, 0, &gid), gid);
	EXPECT_KEEPS(-1, ibv_query_gid(self->dev.verbs, self->dev.port, 1 << 20, &gid), gid);
	EXPECT_REFUSED(ibv_query_gid_ex(self->dev.verbs, NO_PORT, 0, &entry, 0), entry);
	EXPECT_NE(0, ibv_query_gid_ex(self->dev.verbs, self->dev.port, 1 << 20,
				      &entry, 0));
	EXPECT_UNTOUCHED(entry);
	EXPECT_REFUSED(ibv_query_gid_ex(self->dev.verbs, self->dev.port, 0, &entry, 1), entry);
	EXPECT_GT(0, ibv_query_gid_table(self->dev.verbs, &entry, 1, 1));
	EXPECT_UNTOUCHED(entry);
	EXPECT_GT(0, ibv_query_gid_table(self->dev.verbs, &entry, 0, 0));
	EXPECT_UNTOUCHED(entry);
}

TEST_F(verbs, query_pkey)
{
	POISONED(__be16, pkey);

	EXPECT_KEEPS(-1, ibv_query_pkey(self->dev.verbs, NO_PORT, 0, &pkey), pkey);
	EXPECT_KEEPS(-1, ibv_query_pkey(self->dev.verbs, self->dev.port, 1 << 16, &pkey), pkey);
	EXPECT_KEEPS(-1, ibv_query_pkey(self->dev.verbs, self->dev.port, -1, &pkey), pkey);
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
	EXPECT_REFUSED(ibv_get_srq_num(srq, &num), num);
	EXPECT_EQ(0, ibv_destroy_srq(srq));

	EXPECT_REFUSED(ibv_query_rt_values_ex(self->dev.verbs, &values), values);
}

/* The sizes in the attributes are written only if the object is created. */
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
	struct ibv_cq_init_attr_ex cq_ex = {
		.cqe = 1 << 30,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};

	EXPECT_SAME(NULL, ibv_create_qp(self->dev.pd, &qp), qp);
	EXPECT_SAME(NULL, ibv_create_qp_ex(self->dev.verbs, &qp_ex), qp_ex);
	EXPECT_SAME(NULL, ibv_create_srq(self->dev.pd, &srq), srq);
	EXPECT_SAME(NULL, ibv_create_srq_ex(self->dev.verbs, &srq_ex), srq_ex);
	EXPECT_SAME(NULL, ibv_create_cq_ex(self->dev.verbs, &cq_ex), cq_ex);
}

TEST_F(verbs, link_address)
{
	struct ibv_ah_attr attr = own_address(&self->dev);
	POISONED(uint16_t, vid);
	struct {
		uint8_t bytes[ETHERNET_LL_SIZE];
	} mac, poison;

	memset(&poison, POISON, sizeof(poison));
	mac = poison;
	attr.port_num = 99;
	EXPECT_NE(0, ibv_resolve_eth_l2_from_gid(self->dev.verbs, &attr,
						 mac.bytes, &vid));
	EXPECT_EQ(0, memcmp(&mac, &poison, sizeof(mac)));
	EXPECT_UNTOUCHED(vid);
}

/* Let commands fail that the library itself does not refuse. */
static int break_commands(struct ibv_context *verbs)
{
	int saved = dup(verbs->cmd_fd), full = open("/dev/full", O_RDWR);

	if (saved < 0 || full < 0 || dup2(full, verbs->cmd_fd) < 0)
		return -1;
	close(full);
	return saved;
}

static int mend_commands(struct ibv_context *verbs, int saved)
{
	if (dup2(saved, verbs->cmd_fd) < 0)
		return -1;
	return close(saved);
}

TEST_F(verbs, query_of_a_device_that_fails)
{
	struct ibv_srq_init_attr srq_init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	POISONED(struct ibv_qp_init_attr, qp_init);
	POISONED(struct ibv_device_attr, device);
	POISONED(struct ibv_srq_attr, srq_attr);
	POISONED(struct ibv_qp_attr, qp_attr);
	struct ibv_srq *srq;
	int saved;

	srq = ibv_create_srq(self->dev.pd, &srq_init);
	ASSERT_NE(NULL, srq);
	saved = break_commands(self->dev.verbs);
	ASSERT_LE(0, saved);
	EXPECT_NE(0, ibv_query_device(self->dev.verbs, &device));
	/* libibverbs clears them first. */
	if (!over_incumbent())
		EXPECT_UNTOUCHED(device);
	EXPECT_REFUSED(ibv_query_srq(srq, &srq_attr), srq_attr);
	EXPECT_NE(0, ibv_query_qp(self->side.qp, &qp_attr, IBV_QP_STATE,
				  &qp_init));
	EXPECT_UNTOUCHED(qp_attr);
	EXPECT_UNTOUCHED(qp_init);
	ASSERT_EQ(0, mend_commands(self->dev.verbs, saved));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* A change that fails leaves the members of the objects as they were. */
TEST_F(verbs, modify)
{
	struct ibv_srq_init_attr srq_init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
	};
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_srq_attr limit = { .srq_limit = 1 << 30 };
	struct ibv_srq_attr limit_was = limit;
	struct ibv_mr mr_was = *self->side.mr;
	struct ibv_qp_attr error_was = error;
	enum ibv_qp_state state = self->side.qp->state;
	int saved, cqe = self->cq->cqe;
	struct ibv_srq *srq;

	srq = ibv_create_srq(self->dev.pd, &srq_init);
	ASSERT_NE(NULL, srq);
	EXPECT_NE(0, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	EXPECT_EQ(0, memcmp(&limit, &limit_was, sizeof(limit)));
	EXPECT_NE(0, ibv_resize_cq(self->cq, 1 << 30));
	EXPECT_EQ(cqe, self->cq->cqe);

	saved = break_commands(self->dev.verbs);
	ASSERT_LE(0, saved);
	limit.srq_limit = limit_was.srq_limit = 1;
	EXPECT_NE(0, ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	EXPECT_EQ(0, memcmp(&limit, &limit_was, sizeof(limit)));
	EXPECT_NE(0, ibv_resize_cq(self->cq, 2 * cqe));
	EXPECT_EQ(cqe, self->cq->cqe);
	EXPECT_NE(0, ibv_modify_qp(self->side.qp, &error, IBV_QP_STATE));
	EXPECT_EQ(state, self->side.qp->state);
	EXPECT_EQ(0, memcmp(&error, &error_was, sizeof(error)));
	EXPECT_NE(0, ibv_rereg_mr(self->side.mr, IBV_REREG_MR_CHANGE_TRANSLATION,
				  NULL, self->side.buf, 64, 0));
	EXPECT_EQ(0, memcmp(self->side.mr, &mr_was, sizeof(mr_was)));
	ASSERT_EQ(0, mend_commands(self->dev.verbs, saved));
	EXPECT_EQ(0, ibv_destroy_srq(srq));
}

/* Both libraries set the number to 0. */
TEST(lists_of_devices)
{
	struct rlimit was, no_file;
	int num = -1;

	ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &was));
	no_file = was;
	no_file.rlim_cur = 0;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &no_file));
	EXPECT_EQ(NULL, rdma_get_devices(&num));
	EXPECT_EQ(0, num);
	num = -1;
	EXPECT_EQ(NULL, ibv_get_device_list(&num));
	EXPECT_EQ(0, num);
	/* Sanitizers need files when the program ends. */
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &was));
}

/* No installed header declares it. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf,
			size_t size);

TEST(read_sysfs_file)
{
	POISONED(uint64_t, buf);

	EXPECT_KEEPS(-1, ibv_read_sysfs_file("/sys", "no_file", (char *)&buf, sizeof(buf)), buf);
}

/* ------------------------------------------------------ connections */

PAIR_FIXTURE(ids, pair_to_resolve)

TEST_F(ids, create_id)
{
	POISONED(struct rdma_cm_id *, id);

	EXPECT_KEEPS(-1, rdma_create_id(self->id->channel, &id, NULL, 0x777), id);
	EXPECT_KEEPS(-1, rdma_create_id(NULL, &id, NULL, 0x777), id);
}

TEST_F(ids, get_cm_event)
{
	POISONED(struct rdma_cm_event *, event);

	ASSERT_EQ(0, set_nonblock(self->id->channel->fd, true));
	EXPECT_ERRNO(EAGAIN, rdma_get_cm_event(self->id->channel, &event));
	EXPECT_UNTOUCHED(event);
}

TEST_F(ids, get_request)
{
	POISONED(struct rdma_cm_id *, id);

	EXPECT_KEEPS(-1, rdma_get_request(self->p.listen, &id), id);
}

TEST_F(ids, getaddrinfo)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST };
	POISONED(struct rdma_addrinfo *, res);

	EXPECT_KEEPS(-1, rdma_getaddrinfo(NULL, NULL, NULL, &res), res);
	EXPECT_KEEPS(EAI_NONAME, rdma_getaddrinfo("no address", "1", &hints, &res), res);
}

TEST_F(ids, create_ep)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
		.ai_port_space = RDMA_PS_TCP,
	};
	POISONED(struct rdma_cm_id *, id);
	struct rdma_addrinfo *res;

	/* 192.0.2.0/24 is reserved for documentation. */
	ASSERT_EQ(0, rdma_getaddrinfo("192.0.2.1", "7471", &hints, &res));
	EXPECT_KEEPS(-1, rdma_create_ep(&id, res, NULL, NULL), id);
	rdma_freeaddrinfo(res);
}

TEST_F(ids, init_qp_attr)
{
	POISONED(struct ibv_qp_attr, attr);
	POISONED(int, mask);
	struct rdma_cm_id *id;

	/* The id has no device yet. */
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
	EXPECT_KEEPS(-1, rdma_get_remote_ece(self->id, &ece), ece);
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

/* An id that has addresses keeps them. */
TEST_F(ids, addresses)
{
	struct sockaddr_storage addr;

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	EXPECT_SAME(-1, rdma_bind_addr(self->id, (struct sockaddr *)&addr), self->id->route);
	addr.ss_family = AF_UNIX;
	EXPECT_SAME(-1, rdma_resolve_addr(self->id, NULL, (struct sockaddr *)&addr, 1000),
		    self->id->route);
}

/*
 * rdma-core enters queues and a domain of its own into the attributes, so this
 * has queues and a domain.
 */
TEST_F(ids, create_qp_ex)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 1 << 30, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = self->id->pd,
	};

	attr.send_cq = ibv_create_cq(self->id->verbs, 4, NULL, NULL, 0);
	ASSERT_NE(NULL, attr.send_cq);
	attr.recv_cq = attr.send_cq;
	EXPECT_SAME(-1, rdma_create_qp_ex(self->id, &attr), attr);
	EXPECT_EQ(NULL, self->id->qp);
	EXPECT_EQ(NULL, self->id->send_cq);
	EXPECT_EQ(NULL, self->id->recv_cq);
	EXPECT_EQ(0, ibv_destroy_cq(attr.send_cq));
}

TEST_F(ids, create_srq_ex)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1 << 30, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = self->id->pd,
	};

	EXPECT_SAME(-1, rdma_create_srq_ex(self->id, &attr), attr);
	EXPECT_EQ(NULL, self->id->srq);
}

/* The id is not one for datagrams. */
TEST_F(ids, join_multicast_ex)
{
	struct sockaddr_in group = { .sin_family = AF_INET };
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = (struct sockaddr *)&group,
	};
	struct sockaddr_in group_was;

	group.sin_addr.s_addr = htonl(0xefc0a001);
	group_was = group;
	EXPECT_SAME(-1, rdma_join_multicast_ex(self->id, &attr, self), attr);
	EXPECT_EQ(0, memcmp(&group, &group_was, sizeof(group)));
}

TEST_F(ids, get_comp)
{
	POISONED(struct ibv_wc, wc);

	ASSERT_EQ(0, pair_client_qp(&self->p, &self->opts));
	ASSERT_EQ(0, set_nonblock(self->id->send_cq_channel->fd, true));
	ASSERT_EQ(0, set_nonblock(self->id->recv_cq_channel->fd, true));
	EXPECT_KEEPS(-1, rdma_get_send_comp(self->id, &wc), wc);
	EXPECT_KEEPS(-1, rdma_get_recv_comp(self->id, &wc), wc);
}

TEST_HARNESS_MAIN
