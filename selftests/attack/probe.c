// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests whether a device keeps the promises of Documentation/security.rst, for
 * a host with an unknown device, before it is trusted.  It connects two queue
 * pairs of the device to each other; no other host takes part.  Each test is
 * one promise: "ok" if it holds, "not ok", with what was reached, if it does
 * not.  The exit status says the same.
 *
 * RPOST_TEST_DEVICE names the device; the default is the first.  Keys that
 * might open all memory are used for reads of a single page, which the module
 * selftests/target keeps for this purpose; without it that test is skipped.  On
 * iWARP, ids connect the queue pairs, so the device needs an address.
 */
#include <kselftest_harness.h>
#include <inttypes.h>

#include "rpost_own.h"

#define RW	RPOST_ACCESS_LOCAL_WRITE
#define ALL	(RW | RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_REMOTE_READ | \
		 RPOST_ACCESS_REMOTE_ATOMIC)
#define LEN	32
#define EDGE	64	/* bytes around the region in its first and last page */

/*
 * The peer uses keys of the victim.  The victim's region is in the middle half
 * of @victim_mem; @other_mem is a region of another domain of the victim's
 * file, and @mem is the peer's own.
 */
FIXTURE(holds) {
	struct rp_end peer, victim;
	struct rpost_ah_attr here;
	uint32_t listener, other_pd;
	size_t page;
	char *mem, *victim_mem, *other_mem;
	struct rpost_reg_mr mr, victim_mr, other;
	uint64_t target_addr, target_dma;
	char target[2 * LEN + 1];
	bool iwarp;
};

typedef FIXTURE_DATA(holds) probe;

/* Find the page that the test module keeps for the device; false if none. */
static bool find_target(probe *p)
{
	struct rpost_query_device cmd;
	char path[64];
	FILE *f;
	int n;

	if (rp_query_device(p->victim.fd, p->victim.device, &cmd))
		return false;
	snprintf(path, sizeof(path), "/sys/kernel/debug/rdma_post_target/%u",
		 cmd.index);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fscanf(f, "%" SCNx64 " %" SCNx64 " %64s", &p->target_addr,
		   &p->target_dma, p->target);
	fclose(f);
	return n == 3;
}

static void clear(probe *p)
{
	memset(p->mem, 'a', p->page);
	memset(p->victim_mem, 'v', 4 * p->page);
	memset(p->other_mem, 'o', p->page);
}

static int own_up(probe *p, struct rp_end *end, uint32_t dest)
{
	struct rpost_qp_attr attr;

	RP_TRY(rp_move(end, RPOST_QPS_RESET));
	end->cq.ring->head = __atomic_load_n(&end->cq.ring->tail,
					     __ATOMIC_ACQUIRE);
	attr = rp_init_attr(RPOST_QPT_RC, p->here.port_num);
	RP_TRY(rp_modify(end, &attr));
	attr = rp_rtr_attr(RPOST_QPT_RC, &p->here, dest);
	RP_TRY(rp_modify(end, &attr));
	attr = rp_rts_attr(RPOST_QPT_RC);
	return rp_modify(end, &attr);
}

/* Connect the two queue pairs, for the first time or after an error. */
static int join(probe *p)
{
	if (!p->iwarp) {
		RP_TRY(own_up(p, &p->peer, p->victim.qp_num));
		return own_up(p, &p->victim, p->peer.qp_num);
	}
	if (p->peer.qp) {
		RP_TRY(rp_leave(&p->peer));
		RP_TRY(rp_leave(&p->victim));
	}
	return rp_join(&p->peer, &p->victim, p->listener, 0);
}

static int prepare(probe *p)
{
	p->page = getpagesize();
	p->mem = rp_pages(p->page);
	p->victim_mem = rp_pages(4 * p->page);
	p->other_mem = rp_pages(p->page);
	if (!p->mem || !p->victim_mem || !p->other_mem)
		return -ENOMEM;
	clear(p);
	RP_TRY(rp_end_init(&p->peer));
	RP_TRY(rp_end_init(&p->victim));
	/* Register right after the domain: their keys may be close. */
	RP_TRY(rp_reg_mr(p->victim.fd, p->victim.pd,
			 p->victim_mem + p->page + EDGE,
			 2 * p->page - 2 * EDGE, ALL, &p->victim_mr));
	RP_TRY(rp_reg_mr(p->peer.fd, p->peer.pd, p->mem, p->page, ALL, &p->mr));
	RP_TRY(rp_alloc_pd(p->victim.fd, p->victim.device, &p->other_pd));
	RP_TRY(rp_reg_mr(p->victim.fd, p->other_pd, p->other_mem, p->page, ALL,
			 &p->other));
	p->iwarp = rp_is_iwarp(p->victim.fd, p->victim.device);
	if (p->iwarp)
		return rp_listener(&p->victim, &p->listener);
	RP_TRY(rp_own_addr(&p->peer, &p->here));
	RP_TRY(rp_create_own(&p->peer, RPOST_QPT_RC, 0));
	return rp_create_own(&p->victim, RPOST_QPT_RC, 0);
}

FIXTURE_SETUP(holds)
{
	ASSERT_EQ(0, prepare(self));
	ASSERT_EQ(0, join(self));
}

FIXTURE_TEARDOWN(holds)
{
	rp_end_close(&self->peer);
	rp_end_close(&self->victim);
	munmap(self->mem, self->page);
	munmap(self->victim_mem, 4 * self->page);
	munmap(self->other_mem, self->page);
}

static int peer_posts(probe *p, uint32_t op, uint64_t addr, uint32_t len,
		      uint32_t rkey)
{
	struct rp_send send = rp_send(op, 1, p->mem, len, p->mr.lkey);

	send.wr.remote_addr = addr;
	send.wr.rkey = rkey;
	send.wr.compare_add = 1;
	return rp_post_send(&p->peer, &send);
}

static int peer_status(probe *p)
{
	struct rpost_wc wc;

	return rp_wait_cq(&p->peer.cq, &wc) == 1 ? (int)wc.status : -ETIME;
}

/*
 * Run one operation of the peer on @mem; return the status or an errno.  On
 * iWARP a write completes before the victim's device has checked it (RFC 5040,
 * 5.1), but a refused write ends the connection, so that a read after it fails.
 */
static int peer_does(probe *p, uint32_t op, uint64_t addr, uint32_t len,
		     uint32_t rkey)
{
	int status, ret;

	RP_TRY(peer_posts(p, op, addr, len, rkey));
	status = peer_status(p);
	if (status || !p->iwarp || op != RPOST_WR_RDMA_WRITE)
		return status;
	ret = peer_posts(p, RPOST_WR_RDMA_READ, p->victim_mr.iova, LEN,
			 p->victim_mr.rkey);
	if (ret == -ENOTCONN)
		return RPOST_WC_WR_FLUSH_ERR;
	return ret ?: peer_status(p);
}

/* The operation must fail and move no data in either direction. */
static void refused(struct __test_metadata *_metadata, probe *p, uint32_t op,
		    uint64_t addr, uint32_t len, uint32_t rkey, const char *what)
{
	int status = peer_does(p, op, addr, len, rkey);

	EXPECT_LT(0, status)
		TH_LOG("%s: DOES NOT HOLD: operation %u of %u bytes at %#llx with key %#x was done",
		       what, op, len, (long long)addr, rkey);
	EXPECT_TRUE(op == RPOST_WR_RDMA_WRITE || all_bytes(p->mem, p->page, 'a'))
		TH_LOG("%s: DOES NOT HOLD: bytes came from %#llx by key %#x",
		       what, (long long)addr, rkey);
	EXPECT_TRUE(all_bytes(p->victim_mem, 4 * p->page, 'v'))
		TH_LOG("%s: DOES NOT HOLD: the victim's memory has changed", what);
	EXPECT_TRUE(all_bytes(p->other_mem, p->page, 'o'))
		TH_LOG("%s: DOES NOT HOLD: memory of another domain has changed",
		       what);
	clear(p);
	ASSERT_EQ(0, join(p));
}

static bool has_atomics(probe *p)
{
	struct rpost_query_device cmd;

	return !rp_query_device(p->victim.fd, p->victim.device, &cmd) &&
	       cmd.atomic_cap;
}

static void all_refused(struct __test_metadata *_metadata, probe *p,
			uint64_t addr, uint32_t rkey, const char *what)
{
	refused(_metadata, p, RPOST_WR_RDMA_READ, addr, LEN, rkey, what);
	refused(_metadata, p, RPOST_WR_RDMA_WRITE, addr, LEN, rkey, what);
	if (has_atomics(p))
		refused(_metadata, p, RPOST_WR_ATOMIC_FETCH_AND_ADD, addr, 8, rkey,
			what);
}

/* Granted access must work; otherwise the other tests prove nothing. */
TEST_F(holds, granted_access_works)
{
	const uint64_t addr = self->victim_mr.iova;
	const uint32_t rkey = self->victim_mr.rkey;

	ASSERT_EQ(0, peer_does(self, RPOST_WR_RDMA_READ, addr, LEN, rkey));
	EXPECT_TRUE(all_bytes(self->mem, LEN, 'v'));
	clear(self);
	ASSERT_EQ(0, peer_does(self, RPOST_WR_RDMA_WRITE, addr, LEN, rkey));
	EXPECT_TRUE(all_bytes(self->victim_mem + self->page + EDGE, LEN, 'a'));
	clear(self);
	if (!has_atomics(self))
		return;
	ASSERT_EQ(0, peer_does(self, RPOST_WR_ATOMIC_FETCH_AND_ADD, addr, 8,
			       rkey));
	EXPECT_TRUE(all_bytes(self->mem, 8, 'v'));
	EXPECT_EQ('v' + 1, self->victim_mem[self->page + EDGE]);
}

/* ------------------------------------------------ a hostile peer's keys */

/* Keys by which some devices open all memory, and keys near a domain's own. */
TEST_F(holds, no_key_opens_all_memory)
{
	const uint32_t near = self->victim_mr.rkey;
	const uint32_t step = self->iwarp ? 256 : 1;
	uint64_t addrs[2];
	uint32_t n = 0, i, k, key;

	if (!find_target(self))
		SKIP(return, "the test module target is not loaded");
	addrs[n++] = self->target_addr;
	if (self->target_dma != self->target_addr)
		addrs[n++] = self->target_dma;
	for (k = 0; k < n; k++) {
		for (i = 0; i < 16; i++) {
			key = i < 8 ? i : ~(i - 8);
			if (key != near)
				refused(_metadata, self, RPOST_WR_RDMA_READ,
					addrs[k], LEN, key, "key of all memory");
		}
	}
	/* Keys around the key of the domain's first region. */
	for (i = 0; i < 3 * 256; i += step) {
		key = ((near >> 8) - 2 + i / 256) << 8 | (i & 255);
		if (key != near)
			refused(_metadata, self, RPOST_WR_RDMA_READ, addrs[n - 1],
				LEN, key, "key near the domain's");
	}
}

/* The index of a region with other low bits than its key has. */
TEST_F(holds, no_key_that_is_almost_a_regions)
{
	uint32_t i;

	for (i = 0; i < 8; i++)
		all_refused(_metadata, self, self->victim_mr.iova,
			    self->victim_mr.rkey ^ 1 << i, "almost a region's key");
}

TEST_F(holds, no_key_of_another_domain)
{
	all_refused(_metadata, self, self->other.iova, self->other.rkey,
		    "key of another domain");
	all_refused(_metadata, self, self->mr.iova, self->mr.rkey,
		    "key of another file");
	all_refused(_metadata, self, self->victim_mr.iova, self->other.rkey,
		    "key of another domain");
}

/* The key of a deregistered region, also when new regions take its place. */
TEST_F(holds, no_stale_key)
{
	struct rpost_reg_mr gone, next[8];
	uint32_t i;

	ASSERT_EQ(0, rp_reg_mr(self->victim.fd, self->victim.pd,
			       self->victim_mem, self->page, ALL, &gone));
	ASSERT_EQ(0, peer_does(self, RPOST_WR_RDMA_READ, gone.iova, LEN,
			       gone.rkey));
	clear(self);
	ASSERT_EQ(0, rp_destroy(self->victim.fd, RPOST_OBJ_MR, gone.handle));
	all_refused(_metadata, self, gone.iova, gone.rkey, "stale key");
	for (i = 0; i < ARRAY_SIZE(next); i++) {
		ASSERT_EQ(0, rp_reg_mr(self->victim.fd, self->victim.pd,
				       self->victim_mem, self->page, ALL,
				       &next[i]));
		EXPECT_NE(gone.rkey, next[i].rkey);
		if (gone.rkey != next[i].rkey)
			refused(_metadata, self, RPOST_WR_RDMA_READ, gone.iova,
				LEN, gone.rkey, "stale key");
	}
}

TEST_F(holds, no_byte_beyond_a_region)
{
	const uint64_t begin = self->victim_mr.iova;
	const uint64_t end = begin + self->victim_mr.length;
	const uint32_t rkey = self->victim_mr.rkey;

	ASSERT_EQ(0, peer_does(self, RPOST_WR_RDMA_READ, end - LEN, LEN, rkey));
	clear(self);
	all_refused(_metadata, self, begin - 8, rkey, "before a region");
	all_refused(_metadata, self, end, rkey, "behind a region");
	refused(_metadata, self, RPOST_WR_RDMA_READ, begin - 1, LEN, rkey,
		"one byte before a region");
	refused(_metadata, self, RPOST_WR_RDMA_WRITE, begin - 1, LEN, rkey,
		"one byte before a region");
	refused(_metadata, self, RPOST_WR_RDMA_READ, end - LEN + 1, LEN, rkey,
		"one byte beyond a region");
	refused(_metadata, self, RPOST_WR_RDMA_WRITE, end - LEN + 1, LEN, rkey,
		"one byte beyond a region");
}

TEST_F(holds, no_range_wraps_around)
{
	const uint32_t rkey = self->victim_mr.rkey;
	struct rpost_reg_mr top = rp_mr(self->victim.pd, self->victim_mem, self->page, ALL);
	int ret;

	top.iova = -2ull * self->page;
	all_refused(_metadata, self, -8ull, rkey, "around the end of addresses");
	refused(_metadata, self, RPOST_WR_RDMA_READ, UINT64_MAX, LEN, rkey,
		"around the end of addresses");
	/* A region at the end of the addresses, if the driver allows it. */
	ret = rp_ioctl(self->victim.fd, RPOST_IOC_REG_MR, &top);
	if (ret == -EOPNOTSUPP)
		return;
	ASSERT_EQ(0, ret);
	ret = peer_does(self, RPOST_WR_RDMA_READ, top.iova, LEN, top.rkey);
	clear(self);
	/* rxe of 6.12 refuses all access to such a region. */
	ASSERT_TRUE(!ret || ret == RPOST_WC_REM_ACCESS_ERR);
	all_refused(_metadata, self, -8ull, top.rkey, "around the end, from near");
	refused(_metadata, self, RPOST_WR_RDMA_READ,
		top.iova + self->page - LEN + 1, LEN, top.rkey,
		"one byte beyond a region at the end");
}

TEST_F(holds, no_access_that_was_not_granted)
{
	const struct {
		uint32_t op, len, access;
		const char *what;
	} needs[] = {
		{ RPOST_WR_RDMA_READ, LEN, RPOST_ACCESS_REMOTE_READ, "read" },
		{ RPOST_WR_RDMA_WRITE, LEN, RPOST_ACCESS_REMOTE_WRITE, "write" },
		{ RPOST_WR_ATOMIC_FETCH_AND_ADD, 8, RPOST_ACCESS_REMOTE_ATOMIC,
		  "atomic" },
	};
	struct rpost_reg_mr mr;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(needs); i++) {
		if (needs[i].op == RPOST_WR_ATOMIC_FETCH_AND_ADD &&
		    !has_atomics(self))
			continue;
		ASSERT_EQ(0, rp_reg_mr(self->victim.fd, self->victim.pd,
				       self->victim_mem, self->page,
				       ALL & ~needs[i].access, &mr));
		refused(_metadata, self, needs[i].op, mr.iova, needs[i].len,
			mr.rkey, needs[i].what);
		ASSERT_EQ(0, rp_destroy(self->victim.fd, RPOST_OBJ_MR,
					mr.handle));
	}
}

/* ------------------------------------------- a hostile program's own keys */

/* A work request must not send memory that the program may not read. */
TEST_F(holds, no_local_key_that_is_not_the_programs)
{
	struct rp_send send;
	struct rpost_wc wc;
	uint64_t addr;
	uint32_t i;

	addr = find_target(self) ? self->target_addr : (uintptr_t)self->victim_mem;
	const uint32_t keys[] = {
		0, 1, UINT32_MAX, self->mr.lkey ^ 1, self->mr.lkey - 256,
		self->mr.lkey - 512, self->victim_mr.lkey, self->other.lkey,
		self->mr.lkey,
	};

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		send = rp_send(RPOST_WR_RDMA_WRITE, 1, (void *)(uintptr_t)addr,
			       LEN, keys[i]);
		send.wr.remote_addr = self->victim_mr.iova;
		send.wr.rkey = self->victim_mr.rkey;
		ASSERT_EQ(0, rp_post_send(&self->peer, &send));
		ASSERT_EQ(1, rp_wait_cq(&self->peer.cq, &wc));
		EXPECT_EQ(RPOST_WC_LOC_PROT_ERR, wc.status)
			TH_LOG("DOES NOT HOLD: local key %#x at %#llx", keys[i],
			       (long long)addr);
		EXPECT_TRUE(all_bytes(self->victim_mem, 4 * self->page, 'v'))
			TH_LOG("DOES NOT HOLD: bytes have left by key %#x", keys[i]);
		clear(self);
		ASSERT_EQ(0, join(self));
	}
}

TEST_F(holds, no_shared_receives_across_domains)
{
	struct rpost_create_srq srq;
	struct rp_end end = self->victim;
	int ret;

	ret = rp_create_srq(end.fd, self->other_pd, 4, &srq);
	if (ret == -EOPNOTSUPP)
		SKIP(return, "the device has no shared receive queues");
	ASSERT_EQ(0, ret);
	EXPECT_EQ(-EINVAL, rp_create_own(&end, RPOST_QPT_RC, srq.handle))
		TH_LOG("DOES NOT HOLD: a queue pair has another domain's receives");
}

TEST_HARNESS_MAIN
