// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that an attacker's work requests complete with a local protection error
 * and move no data when their keys are forged, guessed, of another process or
 * of a destroyed region, when their range leaves the region, or when the region
 * does not grant the access.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "keys_ends.h"

#define OP_RECV		100	/* in addition to RPOST_WR_* */

/* Post one operation of the attacker with a list of entries. */
static int post_op(struct keys *k, uint32_t op, const struct rpost_sge *sges,
		   uint32_t num)
{
	struct {
		union {
			struct rpost_send_wr send;
			struct rpost_recv_wr recv;
		};
		struct rpost_sge sges[RP_SGE];
	} block = { 0 };
	size_t head = sizeof(block.send), list = num * sizeof(*sges);

	if (op == OP_RECV) {
		head = sizeof(block.recv);
		block.recv = (struct rpost_recv_wr) {
			.wr_id = 7, .size = head + list, .num_sge = num,
		};
	} else {
		block.send = (struct rpost_send_wr) {
			.wr_id = 7,
			.size = head + list,
			.opcode = op,
			.send_flags = RPOST_SEND_SIGNALED,
			.num_sge = num,
			.rkey = k->victim_mr.rkey,
			.remote_addr = k->victim_mr.iova,
			.compare_add = 0x7676767676767676,
			.swap = 0x7676767676767676,
		};
	}
	memcpy((char *)&block + head, sges, list);
	return rp_post(k->attacker.fd,
		       op == OP_RECV ? RPOST_IOC_POST_RECV :
				       RPOST_IOC_POST_SEND,
		       k->attacker.qp, &block, head + list, 1, NULL);
}

/* Post what the victim needs for the operation. */
static int post_counterpart(struct keys *k, uint32_t op)
{
	struct rp_send send;

	switch (op) {
	case RPOST_WR_SEND:
	case RPOST_WR_SEND_WITH_IMM:
	case RPOST_WR_RDMA_WRITE_WITH_IMM:
		return rp_post_recv(&k->victim, 9, k->victim_mem, KEYS_MSG,
				    k->victim_mr.lkey);
	case OP_RECV:
		send = rp_send(RPOST_WR_SEND, 9, k->victim_mem, KEYS_MSG,
			       k->victim_mr.lkey);
		return rp_post_send(&k->victim, &send);
	}
	return 0;
}

/*
 * True if the queue pair enters the error state.  A worker of rxe adds the
 * completion first and changes the state a moment later.
 */
static bool stops(struct rp_end *end)
{
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;

	while (rp_qp_state(end) != RPOST_QPS_ERR && rp_now_ms() < until)
		usleep(1000);
	return rp_qp_state(end) == RPOST_QPS_ERR;
}

/* Run the operation on a new connection; return its status or an errno. */
static int run_op(struct keys *k, uint32_t op, const struct rpost_sge *sges,
		  uint32_t num)
{
	struct rpost_wc wc;
	int status, ret;

	RP_TRY(rp_join(&k->attacker, &k->victim, k->listener, 0));
	if (op != OP_RECV)
		RP_TRY(post_counterpart(k, op));
	status = post_op(k, op, sges, num);
	if (!status && op == OP_RECV)
		RP_TRY(post_counterpart(k, op));
	if (!status) {
		ret = rp_wait_cq(&k->attacker.cq, &wc);
		status = ret == 1 ? (int)wc.status : -ETIME;
		if (ret == 1 && (wc.wr_id != 7 ||
				 wc.qp_num != k->attacker.qp_num))
			status = -EPROTO;
	}
	/* The victim's send fails if the attacker's receive does. */
	if (status > 0 && op == OP_RECV) {
		if (rp_wait_cq(&k->victim.cq, &wc) != 1 || !wc.status)
			status = -EPROTO;
	}
	/* siw reports the error in the completion and keeps the connection. */
	if (status > 0 && !rp_is_iwarp(k->attacker.fd, k->attacker.device) &&
	    !stops(&k->attacker))
		status = -EISCONN;
	RP_TRY(rp_leave(&k->attacker));
	RP_TRY(rp_leave(&k->victim));
	return status;
}

/*
 * Expect a protection error and no memory changed.  An atomic operation changes
 * the victim's memory before its response finds no place.
 */
static void attack(struct __test_metadata *_metadata, struct keys *k,
		   uint32_t op, uint64_t addr, uint32_t length, uint32_t lkey)
{
	struct rpost_sge sge = { addr, length, lkey };

	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, run_op(k, op, &sge, 1))
		TH_LOG("op %u addr %#llx length %#x lkey %#x (good %#llx %#x)",
		       op, (long long)addr, length, lkey,
		       (long long)k->mr.addr, k->mr.lkey);
	EXPECT_TRUE(all_bytes(k->mem, k->bytes, 'a'));
	if (is_atomic(op))
		memset(k->victim_mem, 'v', 8);
	EXPECT_TRUE(all_bytes(k->victim_mem, k->bytes, 'v'));
}

/* One operation for each variant. */
FIXTURE(op) {
	struct keys k;
	uint32_t length;
	bool writes;	/* writes to the attacker's memory */
};

FIXTURE_VARIANT(op) {
	uint32_t op;
};

FIXTURE_VARIANT_ADD(op, send) { .op = RPOST_WR_SEND };
FIXTURE_VARIANT_ADD(op, write) { .op = RPOST_WR_RDMA_WRITE };
FIXTURE_VARIANT_ADD(op, read) { .op = RPOST_WR_RDMA_READ };
FIXTURE_VARIANT_ADD(op, cmp_swp) { .op = RPOST_WR_ATOMIC_CMP_AND_SWP };
FIXTURE_VARIANT_ADD(op, fetch_add) { .op = RPOST_WR_ATOMIC_FETCH_AND_ADD };
FIXTURE_VARIANT_ADD(op, recv) { .op = OP_RECV };

FIXTURE_SETUP(op)
{
	ASSERT_EQ(0, keys_ends_init(&self->k));
	self->length = is_atomic(variant->op) ? 8 : KEYS_MSG;
	self->writes = is_atomic(variant->op) ||
		       variant->op == RPOST_WR_RDMA_READ ||
		       variant->op == OP_RECV;
}

FIXTURE_TEARDOWN(op)
{
	keys_ends_close(&self->k);
}

/* Skip operations that iWARP does not have. */
#define NEED_OP(entries)						\
	do {								\
		if (is_atomic(variant->op))				\
			RP_SKIP_IWARP(self->k.attacker.fd,		\
				      "atomic operations");		\
		if (variant->op == RPOST_WR_RDMA_READ && (entries) > 1)	\
			RP_SKIP_IWARP(self->k.attacker.fd,		\
				      "reads into more than one entry");\
	} while (0)

/*
 * With the right key the operation succeeds; otherwise the attacks prove
 * nothing.
 */
TEST_F(op, right_key)
{
	struct keys *k = &self->k;
	struct rpost_sge sge = { k->mr.addr, self->length, k->mr.lkey };

	NEED_OP(1);
	EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, variant->op, &sge, 1));
	EXPECT_EQ(self->writes ? 'v' : 'a', k->mem[k->bytes / 4]);
	/* The last bytes of the region. */
	sge.addr = k->mr.addr + k->mr.length - self->length;
	EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, variant->op, &sge, 1));
	/* Without the right to write, operations that only read it succeed. */
	if (!self->writes) {
		sge.lkey = k->ro.lkey;
		EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, variant->op, &sge, 1));
	}
}

TEST_F(op, forged)
{
	const uint32_t keys[] = { 0, 1, 0x100, 0x80000000, UINT32_MAX,
				  self->k.mr.lkey ^ 1, self->k.mr.lkey ^ 0x100,
				  __builtin_bswap32(self->k.mr.lkey) };
	unsigned int i;

	NEED_OP(1);
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		/* The next number may be the key of another region. */
		if (keys[i] == self->k.ro.lkey)
			continue;
		attack(_metadata, &self->k, variant->op, self->k.mr.addr,
		       self->length, keys[i]);
	}
	/* A privileged key would open all addresses, also the kernel's. */
	attack(_metadata, &self->k, variant->op, 0xffff888000000000,
	       self->length, 0);
	attack(_metadata, &self->k, variant->op, 0xffffffff81000000,
	       self->length, 0);
	attack(_metadata, &self->k, variant->op, 0, self->length, 0);
}

TEST_F(op, of_others)
{
	struct keys *k = &self->k;
	struct rpost_reg_mr mr;
	uint32_t pd;

	NEED_OP(1);
	/* The victim's region, by its keys and address. */
	attack(_metadata, k, variant->op, k->victim_mr.addr, self->length,
	       k->victim_mr.lkey);
	attack(_metadata, k, variant->op, k->victim_mr.addr, self->length,
	       k->victim_mr.rkey);
	/* A region in another protection domain of the attacker. */
	ASSERT_EQ(0, rp_alloc_pd(k->attacker.fd, k->attacker.device, &pd));
	ASSERT_EQ(0, rp_reg_mr(k->attacker.fd, pd, k->mem, k->bytes, KEYS_RW, &mr));
	attack(_metadata, k, variant->op, mr.addr, self->length, mr.lkey);
	/* A region that has been deregistered. */
	ASSERT_EQ(0, rp_reg_mr(k->attacker.fd, k->attacker.pd, k->mem,
			       k->bytes, KEYS_RW, &mr));
	ASSERT_EQ(0, rp_destroy(k->attacker.fd, RPOST_OBJ_MR, mr.handle));
	attack(_metadata, k, variant->op, mr.addr, self->length, mr.lkey);
}

TEST_F(op, outside)
{
	struct keys *k = &self->k;
	const uint64_t first = k->mr.addr, end = first + k->mr.length;
	const uint64_t addrs[] = {
		first - 1, first - self->length, end - self->length + 1,
		end - 1, end, 0, first - (1ull << 32), first + (1ull << 32),
		UINT64_MAX, UINT64_MAX - self->length + 1,
	};
	const uint32_t lengths[] = { k->mr.length + 1, 0x7fffffff, 0x80000000 };
	unsigned int i;

	NEED_OP(1);
	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		/* See past_the_end. */
		if (variant->op == OP_RECV && addrs[i] >= first && addrs[i] < end)
			continue;
		attack(_metadata, k, variant->op, addrs[i], self->length,
		       k->mr.lkey);
	}
	if (is_atomic(variant->op) || variant->op == OP_RECV)
		return;
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		attack(_metadata, k, variant->op, first, lengths[i],
		       k->mr.lkey);
}

/* Has a receive of KEYS_MSG bytes changed @num bytes at @addr only? */
static bool changed_only(struct keys *k, uint64_t addr, unsigned int num)
{
	char *to = (char *)(uintptr_t)addr;
	bool only;

	only = all_bytes(k->mem, to - k->mem, 'a') && all_bytes(to, num, 'v') &&
	       all_bytes(to + num, k->mem + k->bytes - to - num, 'a');
	memset(to, 'a', num);
	return only;
}

/* The last entry of a receive may reach past the region; no message does. */
TEST_F(op, past_the_end)
{
	const uint32_t lengths[] = { KEYS_MSG + 1, 0x7fffffff, 0x80000000, UINT32_MAX };
	struct keys *k = &self->k;
	const uint64_t end = k->mr.addr + k->mr.length;
	struct rpost_sge sge, list[2];
	unsigned int i, rest;
	int status;

	if (variant->op != OP_RECV)
		return;
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		sge = (struct rpost_sge) { end - KEYS_MSG, lengths[i], k->mr.lkey };
		EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, OP_RECV, &sge, 1));
		EXPECT_TRUE(changed_only(k, end - KEYS_MSG, KEYS_MSG));
	}
	for (rest = 1; rest < KEYS_MSG; rest += KEYS_MSG - 2) {
		sge = (struct rpost_sge) { end - rest, KEYS_MSG, k->mr.lkey };
		status = run_op(k, OP_RECV, &sge, 1);
		EXPECT_LT(RPOST_WC_SUCCESS, status);
		EXPECT_NE(RPOST_WC_WR_FLUSH_ERR, status);
		EXPECT_TRUE(all_bytes(k->mem, k->bytes - k->bytes / 4 - rest, 'a'));
		EXPECT_TRUE(all_bytes(k->mem + k->bytes - k->bytes / 4, k->bytes / 4, 'a'));
		memset(k->mem, 'a', k->bytes);
	}
	/* The last entry only: in others, the message would have a hole. */
	list[0] = (struct rpost_sge) { k->mr.addr, KEYS_MSG / 2, k->mr.lkey };
	list[1] = (struct rpost_sge) { end - KEYS_MSG / 2, KEYS_MSG, k->mr.lkey };
	EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, OP_RECV, list, 2));
	EXPECT_TRUE(all_bytes(k->mem + k->bytes - k->bytes / 4, k->bytes / 4, 'a'));
	memset(k->mem, 'a', k->bytes);
	sge = list[0];
	list[0] = list[1];
	list[1] = sge;
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, run_op(k, OP_RECV, list, 2));
	EXPECT_TRUE(all_bytes(k->mem, k->bytes, 'a'));
}

TEST_F(op, without_local_write)
{
	struct keys *k = &self->k;

	NEED_OP(1);
	if (self->writes)
		attack(_metadata, k, variant->op, k->ro.addr, self->length,
		       k->ro.lkey);
	else
		ASSERT_NE(k->ro.lkey, k->mr.lkey);
}

/* The bad entry is first, in the middle, or last: no memory is changed. */
TEST_F(op, one_of_a_list)
{
	struct keys *k = &self->k;
	const struct rpost_sge good = { k->mr.addr, KEYS_MSG / 2 - 8, k->mr.lkey };
	struct rpost_sge list[3];
	unsigned int i;

	NEED_OP(3);
	if (is_atomic(variant->op))
		return;
	memset(k->mem, 'b', k->bytes / 4);
	for (i = 0; i < 3; i++) {
		list[0] = good;
		list[1] = good;
		list[2] = good;
		list[i].addr = (uintptr_t)k->mem;
		list[i].lkey ^= 0x5500;
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, run_op(k, variant->op, list, 3))
			TH_LOG("entry %u", i);
		EXPECT_TRUE(all_bytes(k->mem, k->bytes / 4, 'b'));
		EXPECT_EQ(NULL, memchr(k->victim_mem, 'b', k->bytes));
	}
}

/* An entry of 0 bytes names no memory, so its key is not checked. */
TEST_F(op, empty_entries)
{
	struct keys *k = &self->k;
	const struct rpost_sge list[] = {
		{ 0, 0, 0 },
		{ UINT64_MAX, 0, UINT32_MAX },
		{ k->mr.addr, self->length, k->mr.lkey },
		{ k->victim_mr.addr, 0, k->victim_mr.lkey },
	};

	NEED_OP(4);
	if (is_atomic(variant->op)) {
		EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, variant->op, list + 2, 1));
		return;
	}
	EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, variant->op, list, 4));
	EXPECT_EQ(self->writes ? 'v' : 'a', k->mem[k->bytes / 4]);
	if (variant->op != OP_RECV)
		EXPECT_EQ(RPOST_WC_SUCCESS, run_op(k, variant->op, list, 2));
}

FIXTURE(keys) {
	struct keys k;
};

FIXTURE_SETUP(keys)
{
	ASSERT_EQ(0, keys_ends_init(&self->k));
}

FIXTURE_TEARDOWN(keys)
{
	keys_ends_close(&self->k);
}

/* All keys with one bit flipped, and the neighbours of a real key. */
TEST_F(keys, guessed)
{
	struct keys *k = &self->k;
	uint32_t guess;
	int i;

	for (i = 0; i < 32 + 16; i++) {
		if (i < 32)
			guess = k->mr.lkey ^ 1u << i;
		else
			guess = k->mr.lkey + (i - 40) * (i % 2 ? 0x100 : 1);
		if (guess == k->mr.lkey || guess == k->ro.lkey)
			continue;
		attack(_metadata, k, i % 3 ? RPOST_WR_RDMA_WRITE :
					     RPOST_WR_RDMA_READ,
		       k->mr.addr, KEYS_MSG, guess);
	}
}

/* Earlier requests must succeed, and later ones must be flushed. */
TEST_F(keys, in_its_turn)
{
	struct keys *k = &self->k;
	struct rp_send block[4];
	struct rpost_wc wc;
	uint32_t posted;
	int i;

	ASSERT_EQ(0, rp_join(&k->attacker, &k->victim, k->listener, 0));
	for (i = 0; i < 4; i++) {
		block[i] = rp_send(RPOST_WR_RDMA_WRITE, i,
				   (void *)(uintptr_t)k->mr.addr, KEYS_MSG,
				   i == 2 ? 0 : k->mr.lkey);
		block[i].wr.remote_addr = k->victim_mr.addr + i * 100;
		block[i].wr.rkey = k->victim_mr.rkey;
	}
	ASSERT_EQ(0, rp_post(k->attacker.fd, RPOST_IOC_POST_SEND,
			     k->attacker.qp, block, sizeof(block), 4, &posted));
	EXPECT_EQ(4, posted);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(1, rp_wait_cq(&k->attacker.cq, &wc));
		EXPECT_EQ(i, wc.wr_id);
		/*
		 * Since 6.9, rxe also flushes requests that are not
		 * acknowledged.
		 */
		EXPECT_TRUE(wc.status == (i == 2 ? RPOST_WC_LOC_PROT_ERR :
						   RPOST_WC_WR_FLUSH_ERR) ||
			    (i < 2 && wc.status == RPOST_WC_SUCCESS))
			TH_LOG("%d: status %u", i, wc.status);
		if (wc.status == RPOST_WC_SUCCESS)
			EXPECT_EQ('a', k->victim_mem[i * 100]);
	}
	EXPECT_EQ('v', k->victim_mem[200]);
	EXPECT_EQ('v', k->victim_mem[300]);
	EXPECT_TRUE(stops(&k->attacker));

	/* The queue pair is in the error state. */
	ASSERT_EQ(0, rp_post_send(&k->attacker, &block[0]));
	ASSERT_EQ(1, rp_wait_cq(&k->attacker.cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	ASSERT_EQ(0, rp_post_recv(&k->attacker, 1, k->mem, 8, 0));
	ASSERT_EQ(1, rp_wait_cq(&k->attacker.cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
}

/* An error completes, also without RPOST_SEND_SIGNALED. */
TEST_F(keys, unsignaled)
{
	struct keys *k = &self->k;
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 5, k->mem, 8, 0);
	struct rpost_wc wc;

	ASSERT_EQ(0, rp_join(&k->attacker, &k->victim, k->listener, 0));
	send.wr.send_flags = 0;
	send.wr.remote_addr = k->victim_mr.addr;
	send.wr.rkey = k->victim_mr.rkey;
	ASSERT_EQ(0, rp_post_send(&k->attacker, &send));
	ASSERT_EQ(1, rp_wait_cq(&k->attacker.cq, &wc));
	EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, wc.status);
	EXPECT_EQ(5, wc.wr_id);
}

/* An unused receive is flushed, whatever its key is. */
TEST_F(keys, receive_never_used)
{
	struct keys *k = &self->k;
	struct rpost_wc wc;
	int i;

	ASSERT_EQ(0, rp_join(&k->attacker, &k->victim, k->listener, 0));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, rp_post_recv(&k->attacker, i, k->mem, 8, 0));
	ASSERT_EQ(0, rp_disconnect(k->attacker.fd, k->attacker.id));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(1, rp_wait_cq(&k->attacker.cq, &wc));
		EXPECT_EQ(i, wc.wr_id);
		EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
	}
}

/* --------------------------- a region that is deregistered meanwhile */

struct churn {
	struct keys *k;
	uint32_t lkey;
	bool stop;
	unsigned long rounds;
};

static void *churn(void *arg)
{
	struct churn *c = arg;
	struct rpost_reg_mr mr;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED)) {
		if (rp_reg_mr(c->k->attacker.fd, c->k->attacker.pd, c->k->mem,
			      c->k->bytes, KEYS_RW, &mr))
			break;
		__atomic_store_n(&c->lkey, mr.lkey, __ATOMIC_RELAXED);
		usleep(c->rounds % 4 * 50);
		if (rp_destroy(c->k->attacker.fd, RPOST_OBJ_MR, mr.handle))
			break;
		/* Let a request find no region, on one processor as well. */
		if (++c->rounds % 16 == 0)
			usleep(200);
	}
	return NULL;
}

TEST_F(keys, region_goes_meanwhile)
{
	unsigned int good = 0, prot = 0, wait = 0;
	struct keys *k = &self->k;
	struct churn c = { .k = k };
	uint64_t end = rp_now_ms() + 700, last = rp_now_ms() + TEST_CHANCE_MS;
	struct rp_send send;
	struct rpost_wc wc;
	pthread_t thread;

	memset(k->mem, 'v', k->bytes);
	ASSERT_EQ(0, pthread_create(&thread, NULL, churn, &c));
	do {
		ASSERT_EQ(0, rp_join(&k->attacker, &k->victim, k->listener, 0));
		do {
			usleep(wait++ % 8 * 10);
			send = rp_send(RPOST_WR_RDMA_WRITE, 1, k->mem, KEYS_MSG,
				       __atomic_load_n(&c.lkey,
						       __ATOMIC_RELAXED));
			send.wr.remote_addr = k->victim_mr.addr;
			send.wr.rkey = k->victim_mr.rkey;
			ASSERT_EQ(0, rp_post_send(&k->attacker, &send));
			ASSERT_EQ(1, rp_wait_cq(&k->attacker.cq, &wc));
			good += wc.status == RPOST_WC_SUCCESS;
		} while (wc.status == RPOST_WC_SUCCESS && rp_now_ms() < end);
		if (wc.status) {
			/* The device finds that the region is gone. */
			EXPECT_TRUE(wc.status == RPOST_WC_LOC_PROT_ERR ||
				    wc.status == RPOST_WC_LOC_QP_OP_ERR ||
				    wc.status == RPOST_WC_WR_FLUSH_ERR)
				TH_LOG("status %u", wc.status);
			prot++;
		}
		ASSERT_EQ(0, rp_leave(&k->attacker));
		ASSERT_EQ(0, rp_leave(&k->victim));
		EXPECT_TRUE(all_bytes(k->victim_mem, k->bytes, 'v'));
	} while (rp_now_ms() < end ||
		 ((!prot || !__atomic_load_n(&c.rounds, __ATOMIC_RELAXED)) &&
		  rp_now_ms() < last));
	__atomic_store_n(&c.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_LT(0, c.rounds);
	TH_LOG("%u good, %u refused, region changed %lu times", good, prot,
	       c.rounds);
	RP_SKIP_UNMET(prot, "no region went before its request");
}

TEST_HARNESS_MAIN
