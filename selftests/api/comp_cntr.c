// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests completion counters, as ibv_create_comp_cntr(3), ibv_qp_attach_comp_cntr(3) and
 * ibv_query_comp_cntr_caps(3) say.  A failure means that a counter misses or adds
 * operations, or takes what the pages refuse.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <stdatomic.h>

#include "verbs_test.h"

#define NONE	"its providers have no counters"

struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

#pragma weak _ibv_query_comp_cntr_caps
#pragma weak ibv_create_comp_cntr
#pragma weak ibv_destroy_comp_cntr
#pragma weak ibv_set_comp_cntr
#pragma weak ibv_set_err_comp_cntr
#pragma weak ibv_inc_comp_cntr
#pragma weak ibv_inc_err_comp_cntr
#pragma weak ibv_read_comp_cntr
#pragma weak ibv_read_err_comp_cntr
#pragma weak ibv_qp_attach_comp_cntr

/* With newer headers the compiler compares these. */
int _ibv_query_comp_cntr_caps(struct ibv_context *context,
			      struct ibv_comp_cntr_caps *caps, size_t caps_size);
struct ibv_comp_cntr *ibv_create_comp_cntr(struct ibv_context *context,
					   struct ibv_comp_cntr_init_attr *cc_attr);
int ibv_destroy_comp_cntr(struct ibv_comp_cntr *comp_cntr);
int ibv_set_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value);
int ibv_set_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value);
int ibv_inc_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount);
int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount);
int ibv_read_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value);
int ibv_read_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value);
int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
			    struct ibv_qp_attach_comp_cntr_attr *attr);

/* The structs and bits of version 65, without the prefix ibv_. */
struct caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops;
};

struct init_attr {
	uint32_t comp_mask;
	uint32_t type;		/* work requests, or 1 for bytes */
	uint32_t flags;
};

struct attach_attr {
	uint32_t comp_mask;
	uint32_t op_mask;
};

enum {
	SEND = 1, RECV = 2, READ = 4, REMOTE_READ = 8, WRITE = 16, REMOTE_WRITE = 32,
};

/* Two queue pairs, yet to be connected, and a counter. */
FIXTURE(cntr) {
	struct device dev;
	struct side a, b;
	struct ibv_comp_cntr *cntr;
};

static struct ibv_comp_cntr *create(struct ibv_context *context)
{
	struct init_attr attr = {};

	return ibv_create_comp_cntr(context, (void *)&attr);
}

FIXTURE_SETUP(cntr)
{
	if (over_incumbent())
		return;
	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, side_open(&self->dev, &self->a, IBV_QPT_RC, NULL, NULL));
	ASSERT_EQ(0, side_open(&self->dev, &self->b, IBV_QPT_RC, NULL, NULL));
	self->cntr = create(self->dev.verbs);
	ASSERT_NE(NULL, self->cntr);
}

FIXTURE_TEARDOWN(cntr)
{
	if (over_incumbent())
		return;
	side_close(&self->a);
	side_close(&self->b);
	if (self->cntr)
		EXPECT_EQ(0, ibv_destroy_comp_cntr(self->cntr));
	device_close(&self->dev);
}

static int attach(struct ibv_qp *qp, struct ibv_comp_cntr *cntr, uint32_t ops)
{
	struct attach_attr attr = { .op_mask = ops };

	return ibv_qp_attach_comp_cntr(qp, cntr, (void *)&attr);
}

/* Post one operation that is not signaled. */
static int post(struct side *from, struct side *to, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = side_sge(from, 0, 8);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = addr64(to->buf), .rkey = to->mr->rkey },
	}, *bad;

	return ibv_post_send(from->qp, &wr, &bad);
}

/* Do the values become these, without a poll by the program, and stay so? */
static bool values_are(struct ibv_comp_cntr *cntr, uint64_t succeeded, uint64_t failed)
{
	uint64_t end = now_ms() + DEADLINE_MS, good, bad;
	int quiet = 0;

	do {
		if (ibv_read_comp_cntr(cntr, &good) || ibv_read_err_comp_cntr(cntr, &bad))
			return false;
		if (good != succeeded || bad != failed) {
			if (quiet)
				break;
			continue;
		}
		if (!quiet++)
			end = now_ms() + QUIET_MS;
	} while (now_ms() < end);
	if (good == succeeded && bad == failed)
		return true;
	fprintf(stderr, "# %llu succeeded, %llu failed\n", (unsigned long long)good,
		(unsigned long long)bad);
	return false;
}

TEST_F(cntr, capabilities)
{
	union {
		struct caps caps;
		uint8_t bytes[sizeof(struct caps) + 8];
	} c;

	if (over_incumbent())
		SKIP(return, NONE);
	memset(&c, POISON, sizeof(c));
	ASSERT_EQ(0, _ibv_query_comp_cntr_caps(self->dev.verbs, (void *)&c, sizeof(c.caps)));
	EXPECT_EQ(UINT64_MAX, c.caps.max_value);
	EXPECT_LT(0, (int32_t)c.caps.max_counters);
	EXPECT_EQ(SEND | RECV | READ | WRITE, c.caps.supported_qp_attach_ops);
	EXPECT_TRUE(all_bytes(c.bytes + sizeof(c.caps), 8, POISON));
	memset(&c, POISON, sizeof(c));
	ASSERT_EQ(0, _ibv_query_comp_cntr_caps(self->dev.verbs, (void *)&c, sizeof(c)));
	EXPECT_TRUE(all_bytes(c.bytes + sizeof(c.caps), 8, 0));
	memset(&c, POISON, sizeof(c));
	ASSERT_EQ(0, _ibv_query_comp_cntr_caps(self->dev.verbs, (void *)&c, 8));
	EXPECT_EQ(UINT64_MAX, c.caps.max_value);
	EXPECT_TRUE(all_bytes(c.bytes + 8, sizeof(c) - 8, POISON));
}

TEST_F(cntr, made_of_work_requests_only)
{
	struct init_attr attrs[] = { { .type = 1 }, { .flags = 1 }, { .comp_mask = 1 } };
	unsigned int i;

	if (over_incumbent())
		SKIP(return, NONE);
	for (i = 0; i < 3; i++) {
		EXPECT_NULL_ERRNO(EOPNOTSUPP, ibv_create_comp_cntr(self->dev.verbs,
								   (void *)&attrs[i]));
	}
}

TEST_F(cntr, set_and_increment)
{
	if (over_incumbent())
		SKIP(return, NONE);
	EXPECT_TRUE(values_are(self->cntr, 0, 0));
	EXPECT_EQ(0, ibv_set_comp_cntr(self->cntr, 7));
	EXPECT_TRUE(values_are(self->cntr, 7, 0));
	EXPECT_EQ(0, ibv_inc_err_comp_cntr(self->cntr, 3));
	EXPECT_EQ(0, ibv_inc_comp_cntr(self->cntr, 1));
	EXPECT_TRUE(values_are(self->cntr, 8, 3));
	EXPECT_EQ(0, ibv_set_err_comp_cntr(self->cntr, UINT64_MAX));
	EXPECT_TRUE(values_are(self->cntr, 8, UINT64_MAX));
	EXPECT_EQ(0, ibv_inc_err_comp_cntr(self->cntr, 1));
	EXPECT_TRUE(values_are(self->cntr, 8, 0));
}

TEST_F(cntr, attach_errors)
{
	struct attach_attr attr = { .comp_mask = 1, .op_mask = SEND };
	struct ibv_context *other;
	struct ibv_comp_cntr *second;
	struct ibv_qp *qp = self->a.qp;

	if (over_incumbent())
		SKIP(return, NONE);
	EXPECT_EQ(EINVAL, attach(qp, self->cntr, 0));
	EXPECT_EQ(EOPNOTSUPP, attach(qp, self->cntr, SEND | REMOTE_READ));
	EXPECT_EQ(EOPNOTSUPP, attach(qp, self->cntr, REMOTE_WRITE));
	EXPECT_EQ(EOPNOTSUPP, attach(qp, self->cntr, 64));
	EXPECT_EQ(EOPNOTSUPP, ibv_qp_attach_comp_cntr(qp, self->cntr, (void *)&attr));
	other = ibv_open_device(self->dev.verbs->device);
	ASSERT_NE(NULL, other);
	second = create(other);
	ASSERT_NE(NULL, second);
	EXPECT_EQ(EINVAL, attach(qp, second, SEND));
	EXPECT_EQ(0, ibv_destroy_comp_cntr(second));
	EXPECT_EQ(0, ibv_close_device(other));

	second = create(self->dev.verbs);
	ASSERT_NE(NULL, second);
	ASSERT_EQ(0, attach(qp, second, SEND | READ));
	EXPECT_EQ(EBUSY, attach(qp, self->cntr, WRITE | READ));
	EXPECT_EQ(EBUSY, attach(qp, second, SEND));
	EXPECT_EQ(0, attach(qp, second, RECV));
	EXPECT_EQ(EBUSY, ibv_destroy_comp_cntr(second));
	EXPECT_EQ(0, ibv_destroy_comp_cntr(self->cntr));
	self->cntr = second;

	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	EXPECT_EQ(EINVAL, attach(qp, second, WRITE));
	ASSERT_EQ(0, set_state(qp, IBV_QPS_ERR));
	EXPECT_EQ(EINVAL, attach(qp, second, WRITE));
	ASSERT_EQ(0, set_state(qp, IBV_QPS_RESET));
	EXPECT_EQ(0, attach(qp, second, WRITE));
}

TEST_F(cntr, operations_apart)
{
	struct ibv_comp_cntr *reads, *recvs;

	if (over_incumbent())
		SKIP(return, NONE);
	reads = create(self->dev.verbs);
	ASSERT_NE(NULL, reads);
	recvs = create(self->dev.verbs);
	ASSERT_NE(NULL, recvs);
	ASSERT_EQ(0, attach(self->a.qp, self->cntr, SEND | WRITE));
	ASSERT_EQ(0, attach(self->a.qp, reads, READ));
	ASSERT_EQ(0, attach(self->b.qp, recvs, RECV));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	ASSERT_EQ(0, post_recv(&self->b, 1, 0, 64));
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 64));
	ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_SEND));
	ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_RDMA_WRITE));
	ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_RDMA_WRITE_WITH_IMM));
	ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_RDMA_READ));
	EXPECT_TRUE(values_are(self->cntr, 3, 0));
	EXPECT_TRUE(values_are(reads, 1, 0));
	EXPECT_TRUE(values_are(recvs, 2, 0));
	/* The counters took no completions away, and made none. */
	EXPECT_TRUE(no_comp(self->a.cq));
	EXPECT_EQ(2, ibv_poll_cq(self->b.cq, 16, (struct ibv_wc[16]){}));

	side_close(&self->a);
	side_close(&self->b);
	EXPECT_EQ(0, ibv_destroy_comp_cntr(reads));
	EXPECT_EQ(0, ibv_destroy_comp_cntr(recvs));
}

/* A counter has the sum, also after a queue pair was destroyed. */
TEST_F(cntr, queue_pairs_together)
{
	unsigned int i;

	if (over_incumbent())
		SKIP(return, NONE);
	ASSERT_EQ(0, attach(self->a.qp, self->cntr, WRITE));
	ASSERT_EQ(0, attach(self->b.qp, self->cntr, WRITE | SEND));
	ASSERT_EQ(0, ibv_set_comp_cntr(self->cntr, 100));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	for (i = 0; i < 5; i++)
		ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_RDMA_WRITE));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, post(&self->b, &self->a, IBV_WR_RDMA_WRITE));
	EXPECT_TRUE(values_are(self->cntr, 108, 0));
	ASSERT_EQ(0, ibv_set_comp_cntr(self->cntr, 10));
	EXPECT_TRUE(values_are(self->cntr, 10, 0));
	ASSERT_EQ(0, ibv_destroy_qp(self->a.qp));
	self->a.qp = NULL;
	EXPECT_TRUE(values_are(self->cntr, 10, 0));
	EXPECT_EQ(EBUSY, ibv_destroy_comp_cntr(self->cntr));
	ASSERT_EQ(0, set_state(self->b.qp, IBV_QPS_ERR));
	ASSERT_EQ(0, post(&self->b, &self->b, IBV_WR_SEND));
	ASSERT_EQ(0, post(&self->b, &self->b, IBV_WR_RDMA_READ));
	EXPECT_TRUE(values_are(self->cntr, 10, 1));
	ASSERT_EQ(0, ibv_destroy_qp(self->b.qp));
	self->b.qp = NULL;
	EXPECT_TRUE(values_are(self->cntr, 10, 1));
}

/* Work requests that completed before their queue pair was attached do not count. */
TEST_F(cntr, from_then_on)
{
	struct ibv_comp_cntr *second;

	if (over_incumbent())
		SKIP(return, NONE);
	second = create(self->dev.verbs);
	ASSERT_NE(NULL, second);
	ASSERT_EQ(0, attach(self->a.qp, self->cntr, WRITE));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_RDMA_READ));
	ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_RDMA_WRITE));
	EXPECT_TRUE(values_are(self->cntr, 1, 0));
	ASSERT_EQ(0, set_state(self->a.qp, IBV_QPS_RESET));
	ASSERT_EQ(0, set_state(self->b.qp, IBV_QPS_RESET));
	ASSERT_EQ(0, attach(self->a.qp, second, READ));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	EXPECT_TRUE(values_are(second, 0, 0));
	ASSERT_EQ(0, post(&self->a, &self->b, IBV_WR_RDMA_READ));
	EXPECT_TRUE(values_are(second, 1, 0));
	EXPECT_TRUE(values_are(self->cntr, 1, 0));
	side_close(&self->a);
	EXPECT_EQ(0, ibv_destroy_comp_cntr(second));
}

/* The context keeps what the test has not destroyed; LeakSanitizer finds it from here. */
static struct ibv_context *closed __attribute__((used));

/* A context that is closed detaches its queue pairs. */
TEST_F(cntr, closed_context)
{
	struct ibv_comp_cntr *cntr;
	struct device dev;
	struct side side;
	uint64_t value;

	if (over_incumbent())
		SKIP(return, NONE);
	ASSERT_EQ(0, device_open(&dev));
	ASSERT_EQ(0, side_open(&dev, &side, IBV_QPT_RC, NULL, NULL));
	cntr = create(dev.verbs);
	ASSERT_NE(NULL, cntr);
	ASSERT_EQ(0, attach(side.qp, cntr, SEND));
	ASSERT_EQ(0, ibv_inc_comp_cntr(cntr, 4));
	closed = dev.verbs;
	ASSERT_EQ(0, ibv_close_device(dev.verbs));
	EXPECT_EQ(0, ibv_read_comp_cntr(cntr, &value));
	EXPECT_EQ(4, value);
	EXPECT_EQ(0, ibv_destroy_comp_cntr(cntr));
}

/* The queue pair of an id ends with the id, before the program frees it. */
TEST_F(cntr, of_an_id)
{
	struct pair_opts opts;
	struct pair p = {};
	struct ibv_comp_cntr *cntr;
	struct ibv_qp *qp;

	if (over_incumbent())
		SKIP(return, NONE);
	pair_defaults(&opts);
	ASSERT_EQ(0, pair_to_client_qp(&p, &opts));
	cntr = create(p.client.id->verbs);
	ASSERT_NE(NULL, cntr);
	ASSERT_EQ(0, attach(p.client.id->qp, cntr, WRITE));
	ASSERT_EQ(0, pair_connect(&p, &opts));
	ASSERT_EQ(0, pair_server_qp(&p, &opts));
	ASSERT_EQ(0, pair_accept(&p, &opts));
	EXPECT_EQ(EINVAL, attach(p.client.id->qp, cntr, SEND));
	ASSERT_EQ(0, pair_write(&p, 1, 0));
	EXPECT_TRUE(values_are(cntr, 1, 0));

	qp = p.client.id->qp;
	ASSERT_EQ(0, rdma_disconnect(p.client.id));
	ASSERT_EQ(0, rdma_destroy_id(p.client.id));
	p.client.id = NULL;
	EXPECT_TRUE(values_are(cntr, 1, 0));
	EXPECT_EQ(ENOENT, attach(qp, cntr, SEND));
	EXPECT_EQ(0, ibv_destroy_qp(qp));
	EXPECT_EQ(0, ibv_destroy_comp_cntr(cntr));
	pair_close(&p);
}

/* Threads that read, add, attach and end queue pairs while others post. */
struct threads {
	struct device *dev;
	struct ibv_comp_cntr *cntr;
	atomic_bool stop;
	atomic_int failed;
	uint64_t added;
};

static void *read_values(void *arg)
{
	struct threads *t = arg;
	uint64_t last = 0, value;

	while (!t->stop) {
		if (ibv_read_comp_cntr(t->cntr, &value) || value < last)
			t->failed++;
		last = value;
	}
	return NULL;
}

static void *add(void *arg)
{
	struct threads *t = arg;

	while (!t->stop) {
		if (ibv_inc_comp_cntr(t->cntr, 2))
			t->failed++;
		t->added += 2;
	}
	return NULL;
}

static void *attach_and_end(void *arg)
{
	struct threads *t = arg;
	struct side side = {};

	while (!t->stop) {
		if (side_open(t->dev, &side, IBV_QPT_RC, NULL, NULL) ||
		    attach(side.qp, t->cntr, WRITE) || attach(side.qp, t->cntr, READ))
			t->failed++;
		side_close(&side);
	}
	return NULL;
}

TEST_F(cntr, threads)
{
	void *(*const functions[])(void *) = { read_values, read_values, add, attach_and_end };
	struct threads t = { .dev = &self->dev, .cntr = self->cntr };
	pthread_t threads[4];
	unsigned int i;
	int done;

	if (over_incumbent())
		SKIP(return, NONE);
	ASSERT_EQ(0, attach(self->a.qp, self->cntr, WRITE));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, functions[i], &t));
	for (done = 0; done < 200;)
		done += !post(&self->a, &self->b, IBV_WR_RDMA_WRITE);
	t.stop = true;
	for (i = 0; i < 4; i++)
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	EXPECT_EQ(0, atomic_load(&t.failed));
	EXPECT_TRUE(values_are(self->cntr, 200 + t.added, 0));
}

TEST_HARNESS_MAIN
