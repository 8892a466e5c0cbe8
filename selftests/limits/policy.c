// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests policies of open files and of cgroups.  A failure means that a program does more,
 * faster, or with others, than an administrator or the opener has allowed, or that it is
 * kept from what is allowed.
 */
#include <kselftest_harness.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cgroup.h"
#include "mapping.h"
#include "path.h"
#include "rpost_own.h"
#include "share.h"

#define PAGES		16
#define MB		1000000ull
#define RW		RPOST_ACCESS_LOCAL_WRITE

static struct rpost_set_policy policy_of(uint32_t has, uint32_t forbid)
{
	return (struct rpost_set_policy) {
		.size = sizeof(struct rpost_set_policy),
		.rules = { .has = has, .forbid = forbid },
	};
}

static int set(int fd, const struct rpost_set_policy *policy)
{
	struct rpost_set_policy cmd = *policy;

	return rp_ioctl(fd, RPOST_IOC_SET_POLICY, &cmd);
}

static int get(int fd, struct rpost_get_policy *cmd)
{
	*cmd = (struct rpost_get_policy) { .size = sizeof(*cmd) };
	return rp_ioctl(fd, RPOST_IOC_GET_POLICY, cmd);
}

static int set_peers(int fd, uint32_t has, const struct rpost_peer *peers, uint32_t n)
{
	struct rpost_set_policy cmd = policy_of(has, 0);

	cmd.rules.peers = (uintptr_t)peers;
	cmd.rules.num_peers = n;
	return set(fd, &cmd);
}

/* The host's address, with its @bits before which all is free, and ports. */
static struct rpost_peer peer(int bits, uint16_t first, uint16_t last, bool listen)
{
	struct rpost_peer peer = {
		.addr = { [10] = 0xff, [11] = 0xff }, .prefix = 96 + bits,
		.listen = listen, .first_port = first, .last_port = last,
	};
	uint32_t ip = ntohl(rp_addr4.sin_addr.s_addr);

	ip = htonl(bits ? ip & ~0u << (32 - bits) : 0);
	memcpy(peer.addr + 12, &ip, 4);
	return peer;
}

static const struct rpost_peer everybody = { .last_port = 65535 };

FIXTURE(own) {
	struct rp_end a, b;
	char *mem;
};

FIXTURE_SETUP(own)
{
	ASSERT_EQ(0, rp_end_init(&self->a));
	ASSERT_EQ(0, rp_end_init(&self->b));
	self->mem = rp_pages(PAGES * getpagesize());
	ASSERT_NE(NULL, self->mem);
}

FIXTURE_TEARDOWN(own)
{
	rp_end_close(&self->a);
	rp_end_close(&self->b);
}

/* ------------------------------------------------- bad input */

TEST_F(own, wrong_rules)
{
	const struct {
		struct rpost_policy_rules rules;
		int want;
	} calls[] = {
		{ { .has = 1 << 7 }, -EOPNOTSUPP },
		{ { .forbid = 1 << 5 }, -EOPNOTSUPP },
		{ { .has = RPOST_POLICY_BYTES }, -EINVAL },
		{ { .has = RPOST_POLICY_OPS }, -EINVAL },
		{ { .bytes_per_s = 1 }, -EINVAL },
		{ { .ops_per_s = 1 }, -EINVAL },
		{ { .burst_us = 1 }, -EINVAL },
		{ { .has = RPOST_POLICY_OPS, .ops_per_s = 1, .burst_us = 10000001 }, -EINVAL },
		{ { .has = RPOST_POLICY_OPS, .ops_per_s = 1000000000000000001 }, -EINVAL },
		{ { .has = RPOST_POLICY_BYTES, .bytes_per_s = ~0ull }, -EINVAL },
		{ { .peers = 1 }, -EINVAL },
		{ { .max_length = 1 }, -EINVAL },
		{ { .max_pinned = 1 }, -EINVAL },
		{ { .max_qps = 1 }, -EINVAL },
		{ { .reserved = 1 }, -EOPNOTSUPP },
		{ { .num_peers = RPOST_MAX_PEERS + 1 }, -EINVAL },
		{ { .num_peers = ~0u }, -EINVAL },
		{ { .has = RPOST_POLICY_CONNECT, .num_peers = 1 }, -EFAULT },
		{ { .has = RPOST_POLICY_LISTEN, .peers = (uintptr_t)&everybody,
		    .num_peers = 1 }, -EINVAL },
	};
	struct rpost_set_policy cmd;
	struct rpost_get_policy now;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		cmd = policy_of(0, 0);
		cmd.rules = calls[i].rules;
		EXPECT_EQ(calls[i].want, set(self->a.fd, &cmd))
			TH_LOG("call %u", i);
	}
	cmd = policy_of(0, 0);
	cmd.reserved = 1;
	EXPECT_EQ(-EOPNOTSUPP, set(self->a.fd, &cmd));
	cmd = policy_of(0, 0);
	cmd.cgroup_fd = 1;
	EXPECT_EQ(-EINVAL, set(self->a.fd, &cmd));
	cmd = policy_of(0, 0);
	cmd.flags = RPOST_POLICY_REMOVE;
	EXPECT_EQ(-EINVAL, set(self->a.fd, &cmd));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_FALSE(now.rules.has || now.rules.forbid);
}

TEST_F(own, wrong_peers)
{
	struct rpost_peer wrong[] = {
		{ .prefix = 129, .last_port = 65535 },
		{ .listen = 2, .last_port = 65535 },
		{ .first_port = 2, .last_port = 1 },
		{ .addr = { 1 }, .last_port = 65535 },
		{ .addr = { 0x0a, 1 }, .prefix = 15, .last_port = 65535 },
	};
	const struct rpost_peer reserved = { .last_port = 65535, .reserved = { 0, 1 } };
	struct rpost_get_policy now;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		EXPECT_EQ(-EINVAL, set_peers(self->a.fd, RPOST_POLICY_CONNECT |
					     RPOST_POLICY_LISTEN, &wrong[i], 1))
			TH_LOG("peer %u", i);
	EXPECT_EQ(-EOPNOTSUPP, set_peers(self->a.fd, RPOST_POLICY_CONNECT, &reserved, 1));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_FALSE(now.rules.has || now.rules.forbid);
}

/* A policy of a file gets narrower, and never wider. */
TEST_F(own, narrower)
{
	const struct rpost_peer net = peer(24, 100, 200, false);
	const struct rpost_peer host = peer(32, 150, 160, false);
	const struct rpost_peer other_ports = peer(32, 150, 201, false);
	struct rpost_set_policy cmd, wider;
	struct rpost_get_policy now;

	cmd = policy_of(0x1f, RPOST_FORBID_ATOMIC);
	cmd.rules.bytes_per_s = 1000;
	cmd.rules.ops_per_s = 100;
	cmd.rules.burst_us = 10;
	cmd.rules.max_length = 50;
	cmd.rules.max_pinned = 4096;
	cmd.rules.max_qps = 1;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	EXPECT_EQ(0, set(self->a.fd, &cmd));
#define WIDER(field)							\
	do {								\
		wider = cmd;						\
		wider.rules.field++;					\
		EXPECT_EQ(-EPERM, set(self->a.fd, &wider));		\
	} while (0)
	WIDER(bytes_per_s);
	WIDER(ops_per_s);
	WIDER(burst_us);
	WIDER(max_length);
	WIDER(max_pinned);
	WIDER(max_qps);
	wider = cmd;
	wider.rules.forbid = 0;
	EXPECT_EQ(-EPERM, set(self->a.fd, &wider));
	wider = cmd;
	wider.rules.has &= ~RPOST_POLICY_QPS;
	wider.rules.max_qps = 0;
	EXPECT_EQ(-EPERM, set(self->a.fd, &wider));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(0, memcmp(&cmd.rules, &now.rules, sizeof(now.rules)));
	cmd.rules.bytes_per_s = 1;
	cmd.rules.max_qps = 0;
	EXPECT_EQ(0, set(self->a.fd, &cmd));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(1, now.rules.bytes_per_s);

	/* And so do peers. */
	ASSERT_EQ(0, set_peers(self->b.fd, RPOST_POLICY_CONNECT, &net, 1));
	EXPECT_EQ(-EPERM, set_peers(self->b.fd, RPOST_POLICY_CONNECT, &everybody, 1));
	EXPECT_EQ(-EPERM, set_peers(self->b.fd, RPOST_POLICY_CONNECT, &other_ports, 1));
	EXPECT_EQ(-EPERM, set_peers(self->b.fd, 0, NULL, 0));
	EXPECT_EQ(0, set_peers(self->b.fd, RPOST_POLICY_CONNECT, &host, 1));
	EXPECT_EQ(-EPERM, set_peers(self->b.fd, RPOST_POLICY_CONNECT, &net, 1));
	EXPECT_EQ(0, set_peers(self->b.fd, RPOST_POLICY_CONNECT, NULL, 0));
}

/* ------------------------------------------------- operations */

TEST_F(own, forbidden)
{
	const struct rpost_set_policy cmd = policy_of(0, 0x1f);
	struct rpost_reg_mr mr;
	struct rpost_get_policy now;
	uint32_t id;

	ASSERT_EQ(0, set(self->a.fd, &cmd));
	EXPECT_EQ(-EPERM, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EPERM, rp_create_own(&self->a, RPOST_QPT_UD, 0));
	EXPECT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 4096, RW, &mr));
	EXPECT_EQ(-EPERM, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 4096,
				    RPOST_ACCESS_REMOTE_READ, &mr));
	EXPECT_EQ(-EPERM, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 4096,
				    RW | RPOST_ACCESS_REMOTE_WRITE, &mr));
	EXPECT_EQ(-EPERM, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 4096,
				    RW | RPOST_ACCESS_REMOTE_ATOMIC, &mr));
	ASSERT_EQ(0, rp_create_id(self->a.fd, self->a.channel, &id));
	ASSERT_EQ(0, rp_bind(self->a.fd, id, 0));
	EXPECT_EQ(-EPERM, rp_listen(self->a.fd, id, 1));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(6, now.refusals);
	EXPECT_EQ(4096, now.pinned);
}

/* ------------------------------------------------- bounds */

TEST_F(own, pinned)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_PINNED, 0);
	struct rpost_reg_mr mr[2];
	struct rpost_get_policy now;

	/* What is registered before counts, too. */
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 4096, RW, &mr[0]));
	cmd.rules.max_pinned = 3 * 4096 + 4095;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	EXPECT_EQ(-ENOMEM, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 3 * 4096, RW, &mr[1]));
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 2 * 4096, RW, &mr[1]));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(3 * 4096, now.pinned);
	EXPECT_EQ(1, now.refusals);
	ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_MR, mr[1].handle));
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 2 * 4096, RW, &mr[1]));
	EXPECT_EQ(0, rp_reg_mr(self->b.fd, self->b.pd, self->mem, 9 * 4096, RW, &mr[1]));
}

TEST_F(own, queue_pairs)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_QPS, 0);
	struct rpost_get_policy now;
	uint32_t first;

	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	cmd.rules.max_qps = 2;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_UC, 0));
	first = self->a.qp;
	EXPECT_EQ(-EMFILE, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, rp_create_own(&self->a, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(2, now.num_qps);
	ASSERT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_QP, first));
	EXPECT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
}

/* ------------------------------------------------- peers */

/* Where it may connect to, by ids, by own queue pairs and by address handles. */
TEST_F(own, peers)
{
	const struct rpost_peer here = peer(32, 0, 65535, false);
	struct rpost_peer elsewhere = here;
	struct rpost_ah_attr ah;
	uint32_t handle, id;

	elsewhere.addr[15] ^= 1;
	ASSERT_EQ(0, rp_own_addr(&self->a, &ah));
	ASSERT_EQ(0, set_peers(self->a.fd, RPOST_POLICY_CONNECT, &elsewhere, 1));
	ASSERT_EQ(0, rp_create_id(self->a.fd, self->a.channel, &id));
	EXPECT_EQ(-EPERM, rp_resolve_addr(self->a.fd, id, 1000));
	EXPECT_EQ(-EPERM, rp_create_ah(self->a.fd, self->a.pd, &ah, &handle));
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EPERM, rp_bring_up(&self->a, RPOST_QPT_RC, 1));

	ASSERT_EQ(0, set_peers(self->b.fd, RPOST_POLICY_CONNECT, &here, 1));
	ASSERT_EQ(0, rp_create_id(self->b.fd, self->b.channel, &id));
	EXPECT_EQ(0, rp_resolve_addr(self->b.fd, id, 1000));
	EXPECT_EQ(0, rp_create_ah(self->b.fd, self->b.pd, &ah, &handle));
	ASSERT_EQ(0, rp_create_own(&self->b, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, rp_bring_up(&self->b, RPOST_QPT_RC, 1));
}

TEST_F(own, ports)
{
	const struct rpost_peer peers[] = {
		peer(32, 1000, 1001, false), peer(0, 2000, 2000, true),
	};
	struct rpost_ah_attr ah;
	uint32_t handle, id;

	ASSERT_EQ(0, set_peers(self->a.fd, RPOST_POLICY_CONNECT | RPOST_POLICY_LISTEN, peers, 2));
	ASSERT_EQ(0, rp_create_id(self->a.fd, self->a.channel, &id));
	EXPECT_EQ(-EPERM, rp_resolve_addr(self->a.fd, id, 999));
	EXPECT_EQ(-EPERM, rp_resolve_addr(self->a.fd, id, 1002));
	EXPECT_EQ(-EPERM, rp_resolve_addr(self->a.fd, id, 2000));
	EXPECT_EQ(0, rp_resolve_addr(self->a.fd, id, 1001));
	/* Other paths name no port. */
	ASSERT_EQ(0, rp_own_addr(&self->a, &ah));
	EXPECT_EQ(-EPERM, rp_create_ah(self->a.fd, self->a.pd, &ah, &handle));

	ASSERT_EQ(0, rp_create_id(self->a.fd, self->a.channel, &id));
	ASSERT_EQ(0, rp_bind(self->a.fd, id, 2001));
	EXPECT_EQ(-EPERM, rp_listen(self->a.fd, id, 1));
	ASSERT_EQ(0, rp_create_id(self->a.fd, self->a.channel, &id));
	ASSERT_EQ(0, rp_bind(self->a.fd, id, 2000));
	EXPECT_EQ(0, rp_listen(self->a.fd, id, 1));
	/* It would listen on any address, and on any port. */
	ASSERT_EQ(0, rp_create_id(self->a.fd, self->a.channel, &id));
	EXPECT_EQ(-EPERM, rp_listen(self->a.fd, id, 1));
}

/* Groups, by an address handle or a queue pair; rdma_cm's are IPv4's, too. */
TEST_F(own, groups)
{
	const struct rpost_set_policy cmd = policy_of(0, RPOST_FORBID_MULTICAST);
	struct rpost_attach_mcast attach = { .size = sizeof(attach) };
	const uint8_t gids[][16] = {
		{ 0xff, 0x0e, [15] = 1 },
		{ [10] = 0xff, [11] = 0xff, 239, 1, 1, 1 },
	};
	struct rpost_ah_attr ah;
	uint32_t handle;
	unsigned int i;

	ASSERT_EQ(0, rp_own_addr(&self->a, &ah));
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	attach.qp = self->a.qp;
	for (i = 0; i < ARRAY_SIZE(gids); i++) {
		memcpy(ah.dgid, gids[i], sizeof(ah.dgid));
		EXPECT_EQ(-EPERM, rp_create_ah(self->a.fd, self->a.pd, &ah, &handle));
		memcpy(attach.gid, gids[i], sizeof(attach.gid));
		EXPECT_EQ(-EPERM, rp_ioctl(self->a.fd, RPOST_IOC_ATTACH_MCAST, &attach));
	}
}

/* Paths that a queue pair of before is given by hand, and those of an id */
TEST_F(own, paths_by_hand)
{
	const struct rpost_set_policy cmd = policy_of(0, RPOST_FORBID_RAW);
	struct ib_path_rec_data path;
	struct rp_end client;
	struct rpost_gid gid;
	uint32_t listener;

	ASSERT_EQ(0, rp_listener(&self->b, &listener));
	ASSERT_EQ(0, rp_client_addr(&self->a, rp_port(self->b.fd, listener)));
	ASSERT_EQ(0, rp_own_gid(&self->a, &gid));
	rp_pack_path(&path, gid.gid, gid.gid);
	/* rp_create_own() forgets the id. */
	client = self->a;
	ASSERT_EQ(0, rp_create_own(&self->a, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	EXPECT_EQ(-EPERM, rp_bring_up(&self->a, RPOST_QPT_RC, 1));
	EXPECT_EQ(-EPERM, rp_set_path(&client, &path, sizeof(path)));
}

/* A policy that is newer than a route, a listening id or a request. */
TEST_F(own, later)
{
	const struct rpost_set_policy no_listen = policy_of(0, RPOST_FORBID_LISTEN);
	uint32_t listener;
	int other;

	ASSERT_EQ(0, rp_listener(&self->b, &listener));
	ASSERT_EQ(0, rp_client_route(&self->a, rp_port(self->b.fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&self->a, 0));
	ASSERT_EQ(0, set_peers(self->a.fd, RPOST_POLICY_CONNECT, NULL, 0));
	EXPECT_EQ(-EPERM, rp_connect(self->a.fd, self->a.id));
	other = rp_event_channel(self->a.fd);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, rp_migrate(self->a.fd, self->a.id, other));
	EXPECT_EQ(-EPERM, rp_connect(self->a.fd, self->a.id));
	close(other);

	rp_end_close(&self->a);
	ASSERT_EQ(0, rp_end_init(&self->a));
	ASSERT_EQ(0, rp_ask(&self->a, &self->b, listener, 0));
	ASSERT_EQ(0, rp_create_qp(&self->b, 0));
	ASSERT_EQ(0, set(self->b.fd, &no_listen));
	EXPECT_EQ(-EPERM, rp_accept(self->b.fd, self->b.id));
}

/* ------------------------------------------------- posts */

static int write_some(struct rp_end *end, const struct rpost_reg_mr *from,
		      const struct rpost_reg_mr *to, char *mem, uint32_t bytes)
{
	struct rp_send send = rp_send(RPOST_WR_RDMA_WRITE, 1, mem, bytes, from->lkey);
	struct rpost_wc wc;

	send.wr.remote_addr = (uintptr_t)mem;
	send.wr.rkey = to->rkey;
	RP_TRY(rp_post_send(end, &send));
	return rp_wait_cq(&end->cq, &wc) == 1 ? (int)wc.status : -ETIME;
}

TEST_F(own, lengths_and_atomics)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_LENGTH, RPOST_FORBID_ATOMIC);
	struct rpost_reg_mr from, to;
	struct rp_send send;

	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->mem, 8192, RW, &from));
	ASSERT_EQ(0, rp_reg_mr(self->b.fd, self->b.pd, self->mem, 8192,
			       RW | RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_REMOTE_ATOMIC, &to));
	cmd.rules.max_length = 4096;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	rp_mute = true;
	EXPECT_EQ(-EPERM, write_some(&self->a, &from, &to, self->mem, 4097));
	rp_mute = false;
	EXPECT_EQ(0, write_some(&self->a, &from, &to, self->mem, 4096));
	send = rp_send(RPOST_WR_ATOMIC_FETCH_AND_ADD, 1, self->mem, 8, from.lkey);
	send.wr.remote_addr = (uintptr_t)self->mem;
	send.wr.rkey = to.rkey;
	EXPECT_EQ(-EPERM, rp_post_send(&self->a, &send));
}

/* A send that is not the first is refused by the next call, which counts it. */
TEST_F(own, refused_in_a_list)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_LENGTH, RPOST_FORBID_ATOMIC);
	struct rpost_send_wr wrs[3];
	struct rpost_get_policy now;
	uint32_t posted;

	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	cmd.rules.max_length = 4096;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	wrs[0] = rp_empty_send(RPOST_WR_RDMA_WRITE, 1).wr;
	wrs[1] = wrs[0];
	wrs[2] = rp_empty_send(RPOST_WR_ATOMIC_FETCH_AND_ADD, 2).wr;
	EXPECT_EQ(-EPERM, rp_post(self->a.fd, RPOST_IOC_POST_SEND, self->a.qp, wrs,
				  sizeof(wrs), 3, &posted));
	EXPECT_EQ(2, posted);
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(1, now.refusals);
	EXPECT_EQ(2, now.ops);
}

/* A send whose memory is not there costs nothing of the rate. */
TEST_F(own, failed_is_not_charged)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_BYTES, 0);
	struct rp_send send;
	struct rpost_get_policy now;
	char *none;

	rp_qp_flags = RPOST_QP_ANY_MEMORY;
	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)none);
	cmd.rules.bytes_per_s = 1;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	send = rp_send(RPOST_WR_SEND, 1, none, 4096, 0);
	EXPECT_EQ(-EFAULT, rp_post_send(&self->a, &send));
	EXPECT_EQ(-EFAULT, rp_post_send(&self->a, &send));
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(0, now.waits);
	EXPECT_EQ(0, now.ops);
	munmap(none, 4096);
}

/* A post that waits for a page */
struct parked {
	struct rp_end *end;
	struct rp_send send;
	int ret;
};

static void *post_parked(void *arg)
{
	struct parked *parked = arg;

	parked->ret = rp_post_send(parked->end, &parked->send);
	return NULL;
}

/*
 * A send has cost 4 s, and waits for its page.  When it fails, the 4 s have passed: what
 * another send has cost meanwhile is not taken back with it.
 */
TEST_F(own, failed_has_paid_with_time)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_BYTES, 0);
	char *mem = rp_pages(4096), *late = rp_pages(4096);
	int fd = fault_fd(late, 4096, O_NONBLOCK);
	struct uffdio_range range = { (uintptr_t)late, 4096 };
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct parked parked = { .end = &self->a };
	struct rp_send send;
	pthread_t thread;
	uint64_t begin;

	ASSERT_NE(NULL, mem);
	ASSERT_NE(NULL, late);
	if (fd < 0)
		SKIP(return, "no userfaultfd");
	rp_qp_flags = RPOST_QP_ANY_MEMORY;
	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	cmd.rules.bytes_per_s = 1024;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	memset(mem, 1, 4096);
	send = rp_send(RPOST_WR_SEND, 1, mem, 4096, 0);
	parked.send = rp_send(RPOST_WR_SEND, 2, late, 4096, 0);
	begin = rp_now_ms();
	ASSERT_EQ(0, pthread_create(&thread, NULL, post_parked, &parked));
	ASSERT_EQ(1, poll(&pfd, 1, TEST_TIMEOUT_MS));
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	ASSERT_EQ(0, munmap(late, 4096));
	ASSERT_EQ(0, ioctl(fd, UFFDIO_WAKE, &range));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(-EFAULT, parked.ret);
	ASSERT_EQ(0, rp_post_send(&self->a, &send));
	EXPECT_LE(8000 - 1, rp_now_ms() - begin);
	close(fd);
}

#define LENGTH		65536
#define MOST_QPS	64
#define BATCH		8

FIXTURE(rate) {
	struct rp_end a, b;
	struct rp_end from[MOST_QPS], to[MOST_QPS];
	struct rpost_reg_mr mr, peers_mr;
	struct rpost_set_policy policy;
	char *mem;
};

FIXTURE_VARIANT(rate) {
	unsigned int qps;
	unsigned int batch;
	uint32_t length;
	uint64_t bytes_per_s;
	uint64_t ops_per_s;
	unsigned int seconds;
};

FIXTURE_VARIANT_ADD(rate, of_one_queue_pair) { 1, 1, LENGTH, MB, 0, 10 };
FIXTURE_VARIANT_ADD(rate, of_64_queue_pairs) { MOST_QPS, 1, LENGTH, MB, 0, 10 };
FIXTURE_VARIANT_ADD(rate, of_batches) { 1, BATCH, LENGTH, MB, 0, 3 };
FIXTURE_VARIANT_ADD(rate, of_operations) { 1, 1, 64, 0, 50, 3 };

FIXTURE_SETUP(rate)
{
	unsigned int i;

	ASSERT_EQ(0, rp_end_init(&self->a));
	ASSERT_EQ(0, rp_end_init(&self->b));
	self->mem = rp_pages(LENGTH);
	ASSERT_NE(NULL, self->mem);
	for (i = 0; i < variant->qps; i++) {
		self->from[i] = self->a;
		self->to[i] = self->b;
		ASSERT_EQ(0, rp_own_join(&self->from[i], &self->to[i], RPOST_QPT_RC));
	}
	ASSERT_EQ(0, rp_reg_mr(self->a.fd, self->a.pd, self->mem, LENGTH, RW, &self->mr));
	ASSERT_EQ(0, rp_reg_mr(self->b.fd, self->b.pd, self->mem, LENGTH,
			       RW | RPOST_ACCESS_REMOTE_WRITE, &self->peers_mr));
	self->policy = policy_of(variant->bytes_per_s ? RPOST_POLICY_BYTES : RPOST_POLICY_OPS, 0);
	self->policy.rules.bytes_per_s = variant->bytes_per_s;
	self->policy.rules.ops_per_s = variant->ops_per_s;
	self->policy.rules.burst_us = 1000000;
	ASSERT_EQ(0, set(self->a.fd, &self->policy));
}

FIXTURE_TEARDOWN(rate)
{
	rp_end_close(&self->a);
	rp_end_close(&self->b);
}

/* Write a batch from one queue pair. */
static int write_batch(FIXTURE_DATA(rate) *self, const FIXTURE_VARIANT(rate) *variant,
		       unsigned int qp)
{
	struct rp_end *end = &self->from[qp];
	struct rp_send sends[BATCH];
	struct rpost_wc wc;
	unsigned int i;

	for (i = 0; i < variant->batch; i++) {
		sends[i] = rp_send(RPOST_WR_RDMA_WRITE, i, self->mem, variant->length,
				   self->mr.lkey);
		sends[i].wr.remote_addr = (uintptr_t)self->mem;
		sends[i].wr.rkey = self->peers_mr.rkey;
	}
	RP_TRY(rp_post(end->fd, RPOST_IOC_POST_SEND, end->qp, sends,
		       variant->batch * sizeof(*sends), variant->batch, NULL));
	for (i = 0; i < variant->batch; i++)
		if (rp_wait_cq(&self->a.cq, &wc) != 1 || wc.status)
			return -EIO;
	return 0;
}

/*
 * The rate holds within 5 %, once the burst is used up.  A machine that stands still for
 * longer than the burst loses what it could not post meanwhile.
 */
TEST_F(rate, holds)
{
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rpost_get_policy first, now;
	unsigned int qp = 0;
	uint64_t start, ms, unit, done;

	do {
		ASSERT_EQ(0, write_batch(self, variant, 0));
		ASSERT_EQ(0, get(self->a.fd, &first));
	} while (!first.waits && rp_now_ms() < limit);
	ASSERT_LT(0, first.waits);
	start = rp_now_ms();
	do {
		ASSERT_EQ(0, write_batch(self, variant, qp++ % variant->qps));
		ms = rp_now_ms() - start;
	} while (ms < variant->seconds * 1000);
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_EQ(now.ops * variant->length, now.bytes);
	EXPECT_LT(first.waits, now.waits);

	/* What is posted last is not paid for yet. */
	unit = variant->batch * (variant->bytes_per_s ? variant->length : 1);
	done = variant->bytes_per_s ? now.bytes - first.bytes : now.ops - first.ops;
	ms *= variant->bytes_per_s + variant->ops_per_s;
	TH_LOG("%llu of %llu", (unsigned long long)done, (unsigned long long)ms / 1000);
	EXPECT_GE(ms / 1000 * 105 / 100 + unit, done);
	EXPECT_LE(ms / 1000 * 95 / 100, done + unit);
}

#define THREADS	8

struct sender {
	struct rp_end end;
	bool failed;
};

static bool stop;

static void *send_all_the_time(void *arg)
{
	struct sender *s = arg;
	struct rp_send send = rp_empty_send(RPOST_WR_SEND, 1);

	/* Nobody receives: only posting counts. */
	while (!s->failed && !__atomic_load_n(&stop, __ATOMIC_RELAXED))
		s->failed = rp_post_send(&s->end, &send) == -EINTR;
	return NULL;
}

/* Threads that post at once cannot pass it together. */
TEST_F(own, threads)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_OPS, 0);
	struct sender senders[THREADS] = {};
	struct rpost_get_policy now;
	pthread_t threads[THREADS];
	uint64_t start, ms;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		senders[i].end = self->a;
		ASSERT_EQ(0, rp_own_join(&senders[i].end, &self->b, RPOST_QPT_RC));
	}
	cmd.rules.ops_per_s = 10;
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	stop = false;
	rp_mute = true;
	start = rp_now_ms();
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, send_all_the_time, &senders[i]));
	sleep(3);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_FALSE(senders[i].failed);
	}
	rp_mute = false;
	ms = rp_now_ms() - start;
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_GE(10 * ms / 1000 + 2, now.ops);
	EXPECT_LT(10 * ms / 1000 / 2, now.ops);
}

/* Who waits holds up nobody: not DESTROY, not the last close; and it can be killed. */
TEST_F(own, killed_in_debt)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_BYTES, 0);
	int status, pipes[2];
	struct rp_send send;
	struct rpost_reg_mr mr;
	uint64_t start;
	char byte = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(pipes));
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(!rp_own_pair(&self->a, &self->b, RPOST_QPT_RC));
		CHILD_CHECK(!rp_reg_mr(self->a.fd, self->a.pd, self->mem, 4096, RW, &mr));
		cmd.rules.bytes_per_s = 1;
		CHILD_CHECK(!set(self->a.fd, &cmd));
		send = rp_send(RPOST_WR_SEND, 1, self->mem, 4096, mr.lkey);
		/* This costs ten seconds, the most of one work request. */
		CHILD_CHECK(!rp_post_send(&self->a, &send));
		CHILD_CHECK(write(pipes[1], &byte, 1) == 1);
		rp_post_send(&self->a, &send);
		_exit(0);
	}
	ASSERT_EQ(1, read(pipes[0], &byte, 1));
	usleep(TEST_TICKS_MS * 1000);
	start = rp_now_ms();
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(WIFSIGNALED(status));
	EXPECT_GT(5000, rp_now_ms() - start);
	close(pipes[0]);
	close(pipes[1]);
}

struct waiter {
	struct rp_end *end;
	int ret;
};

static void *post_in_debt(void *arg)
{
	struct rp_send send = rp_empty_send(RPOST_WR_SEND, 1);
	struct waiter *w = arg;

	w->ret = rp_post_send(w->end, &send);
	return NULL;
}

/* Have a thread wait in a post from an end that is joined. */
static int wait_in_debt(struct waiter *waiter, char *mem, pthread_t *thread)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_BYTES, 0);
	struct rp_end *end = waiter->end;
	struct rpost_reg_mr mr;
	struct rp_send send;

	RP_TRY(rp_reg_mr(end->fd, end->pd, mem, 4096, RW, &mr));
	cmd.rules.bytes_per_s = 1000;
	RP_TRY(set(end->fd, &cmd));
	send = rp_send(RPOST_WR_SEND, 1, mem, 4096, mr.lkey);
	RP_TRY(rp_post_send(end, &send));
	rp_mute = true;
	RP_TRY(pthread_create(thread, NULL, post_in_debt, waiter));
	usleep(TEST_TICKS_MS * 1000);
	return 0;
}

/* A queue pair can be destroyed while a post on it waits, which then fails. */
TEST_F(own, destroyed_in_debt)
{
	struct waiter waiter = { .end = &self->a };
	pthread_t thread;
	uint64_t start;

	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	ASSERT_EQ(0, wait_in_debt(&waiter, self->mem, &thread));
	start = rp_now_ms();
	EXPECT_EQ(0, rp_destroy(self->a.fd, RPOST_OBJ_QP, self->a.qp));
	EXPECT_GT(3000, rp_now_ms() - start);
	pthread_join(thread, NULL);
	rp_mute = false;
	EXPECT_EQ(-ENOENT, waiter.ret);
}

/* Nor is the removal of the device held up. */
TEST_F(own, removed_in_debt)
{
	struct waiter waiter = { .end = &self->a };
	pthread_t thread;
	uint64_t start;

	RP_NEED_REMOVAL();
	ASSERT_EQ(0, rp_own_join(&self->a, &self->b, RPOST_QPT_RC));
	ASSERT_EQ(0, wait_in_debt(&waiter, self->mem, &thread));
	start = rp_now_ms();
	EXPECT_EQ(0, rp_remove_device());
	EXPECT_GT(3000, rp_now_ms() - start);
	pthread_join(thread, NULL);
	rp_mute = false;
	EXPECT_EQ(-ENODEV, waiter.ret);
	EXPECT_EQ(0, rp_add_device());
}

/* Only who has opened the file narrows it, and by a descriptor of the device. */
TEST_F(own, of_others)
{
	const struct rpost_set_policy cmd = policy_of(0, RPOST_FORBID_RAW);
	struct rpost_get_policy now;
	int status;
	pid_t pid;

	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(set(self->a.fd, &cmd) == -EPERM);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	ASSERT_EQ(0, get(self->a.fd, &now));
	EXPECT_FALSE(now.rules.has || now.rules.forbid);
}

/* The file's policy holds for a descriptor of SHARE_DEVICE, which cannot set it. */
TEST_F(own, of_a_device)
{
	const struct rpost_set_policy cmd = policy_of(0, RPOST_FORBID_RAW);
	struct rp_end imported = self->a;
	struct rpost_get_policy now;

	imported.fd = share_device(self->a.fd, self->a.device);
	ASSERT_LE(0, imported.fd);
	EXPECT_EQ(-EPERM, set(imported.fd, &cmd));
	ASSERT_EQ(0, set(self->a.fd, &cmd));
	EXPECT_EQ(-EPERM, rp_create_own(&imported, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, get(imported.fd, &now));
	EXPECT_EQ(RPOST_FORBID_RAW, now.rules.forbid);
	close(imported.fd);
}

/* ------------------------------------------------- cgroups */

static int set_group(int fd, int cgroup_fd, const struct rpost_set_policy *policy, uint32_t flags)
{
	struct rpost_set_policy cmd = *policy;

	cmd.flags = RPOST_POLICY_CGROUP | flags;
	cmd.cgroup_fd = cgroup_fd;
	return rp_ioctl(fd, RPOST_IOC_SET_POLICY, &cmd);
}

FIXTURE(group) {
	const char *skip;
	struct cgroup outer, inner;
	int outer_fd, inner_fd, fd;
};

FIXTURE_SETUP(group)
{
	if (geteuid() || !cg_root()) {
		self->skip = "no cgroups, or not root";
		return;
	}
	ASSERT_EQ(0, cg_create(&self->outer, "policy"));
	self->inner = self->outer;
	strcat(self->inner.path, "/inner");
	ASSERT_EQ(0, mkdir(self->inner.path, 0755));
	self->outer_fd = open(self->outer.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	self->inner_fd = open(self->inner.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ASSERT_LE(0, self->outer_fd);
	ASSERT_LE(0, self->inner_fd);
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(group)
{
	const struct rpost_set_policy none = policy_of(0, 0);

	if (self->skip)
		return;
	rp_mute = true;
	set_group(self->fd, self->inner_fd, &none, RPOST_POLICY_REMOVE);
	set_group(self->fd, self->outer_fd, &none, RPOST_POLICY_REMOVE);
	rp_mute = false;
	cg_enter(NULL);
	close(self->outer_fd);
	close(self->inner_fd);
	rmdir(self->inner.path);
	EXPECT_EQ(0, cg_remove(&self->outer));
	close(self->fd);
}

static int next_group(int fd, struct rpost_get_policy *cmd, uint64_t after)
{
	*cmd = (struct rpost_get_policy) {
		.size = sizeof(*cmd), .flags = RPOST_POLICY_CGROUP, .cgroup = after,
	};
	return rp_ioctl(fd, RPOST_IOC_GET_POLICY, cmd);
}

static uint64_t group_id(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : st.st_ino;
}

TEST_F(group, set_and_listed)
{
	struct rpost_set_policy a = policy_of(RPOST_POLICY_QPS, 0), none = policy_of(0, 0);
	struct rpost_set_policy b = policy_of(0, RPOST_FORBID_RAW);
	struct rpost_get_policy now;

	RP_SKIP_IF_SETUP_SAID();
	a.rules.max_qps = 7;
	EXPECT_EQ(-ENOENT, next_group(self->fd, &now, 0));
	ASSERT_EQ(0, set_group(self->fd, self->inner_fd, &b, 0));
	ASSERT_EQ(0, set_group(self->fd, self->outer_fd, &a, 0));
	ASSERT_EQ(0, next_group(self->fd, &now, 0));
	EXPECT_EQ(group_id(self->outer_fd), now.cgroup);
	EXPECT_EQ(7, now.rules.max_qps);
	ASSERT_EQ(0, next_group(self->fd, &now, now.cgroup));
	EXPECT_EQ(group_id(self->inner_fd), now.cgroup);
	EXPECT_EQ(RPOST_FORBID_RAW, now.rules.forbid);
	EXPECT_EQ(-ENOENT, next_group(self->fd, &now, now.cgroup));
	/* An administrator can widen one. */
	a.rules.max_qps = 8;
	ASSERT_EQ(0, set_group(self->fd, self->outer_fd, &a, 0));
	ASSERT_EQ(0, next_group(self->fd, &now, 0));
	EXPECT_EQ(8, now.rules.max_qps);
	EXPECT_EQ(0, set_group(self->fd, self->outer_fd, &none, RPOST_POLICY_REMOVE));
	EXPECT_EQ(-ENOENT, set_group(self->fd, self->outer_fd, &none, RPOST_POLICY_REMOVE));
	EXPECT_EQ(0, set_group(self->fd, self->inner_fd, &none, RPOST_POLICY_REMOVE));
	EXPECT_EQ(-ENOENT, next_group(self->fd, &now, 0));
}

TEST_F(group, wrong)
{
	const struct rpost_set_policy none = policy_of(0, 0);
	struct rpost_get_policy now;
	int status;
	pid_t pid;

	RP_SKIP_IF_SETUP_SAID();
	EXPECT_EQ(-EBADF, set_group(self->fd, -1, &none, 0));
	EXPECT_EQ(-EBADF, set_group(self->fd, self->fd, &none, 0));
	EXPECT_EQ(-EBADF, set_group(self->fd, 1 << 20, &none, 0));
	EXPECT_EQ(-ENOENT, next_group(self->fd, &now, 0));
	ASSERT_EQ(0, setresuid(-1, 65534, -1));
	EXPECT_EQ(-EPERM, set_group(self->fd, self->outer_fd, &none, 0));
	EXPECT_EQ(-EPERM, next_group(self->fd, &now, 0));
	ASSERT_EQ(0, setresuid(-1, 0, -1));
	/* The root of a container is not the host's. */
	pid = fork();
	ASSERT_LE(0, pid);
	if (!pid) {
		CHILD_CHECK(!unshare(CLONE_NEWUSER));
		CHILD_CHECK(set_group(self->fd, self->outer_fd, &none, 0) == -EPERM);
		CHILD_CHECK(next_group(self->fd, &now, 0) == -EPERM);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

/* It holds for files that are open, files to come, and those of cgroups below. */
TEST_F(group, of_files)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_QPS, 0), none = policy_of(0, 0);
	struct rp_end before, after, below, outside;
	struct rpost_get_policy now;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, rp_end_init(&outside));
	ASSERT_EQ(0, cg_enter(&self->outer));
	ASSERT_EQ(0, rp_end_init(&before));
	ASSERT_EQ(0, rp_create_own(&before, RPOST_QPT_RC, 0));
	cmd.rules.max_qps = 2;
	ASSERT_EQ(0, set_group(self->fd, self->outer_fd, &cmd, 0));
	ASSERT_EQ(0, next_group(self->fd, &now, 0));
	EXPECT_EQ(1, now.num_qps);
	ASSERT_EQ(0, rp_end_init(&after));
	ASSERT_EQ(0, cg_enter(&self->inner));
	ASSERT_EQ(0, rp_end_init(&below));
	ASSERT_EQ(0, cg_enter(NULL));
	ASSERT_EQ(0, rp_create_own(&below, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(&before, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(&after, RPOST_QPT_RC, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(&below, RPOST_QPT_RC, 0));
	EXPECT_EQ(0, rp_create_own(&outside, RPOST_QPT_RC, 0));
	/* One in between, with what it has. */
	cmd.rules.max_qps = 5;
	ASSERT_EQ(0, set_group(self->fd, self->inner_fd, &cmd, 0));
	ASSERT_EQ(0, next_group(self->fd, &now, group_id(self->outer_fd)));
	EXPECT_EQ(1, now.num_qps);
	EXPECT_EQ(-EMFILE, rp_create_own(&below, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, next_group(self->fd, &now, 0));
	EXPECT_EQ(2, now.num_qps);
	rp_end_close(&before);
	ASSERT_EQ(0, rp_create_own(&below, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, set_group(self->fd, self->outer_fd, &none, RPOST_POLICY_REMOVE));
	EXPECT_EQ(0, rp_create_own(&after, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, next_group(self->fd, &now, 0));
	EXPECT_EQ(2, now.num_qps);
	ASSERT_EQ(0, set_group(self->fd, self->inner_fd, &none, RPOST_POLICY_REMOVE));
	rp_end_close(&after);
	rp_end_close(&below);
	rp_end_close(&outside);
}

/* Return how many empty sends could be posted in two seconds, or a negative errno. */
static int posts_in_two_seconds(struct rp_end *end, struct rp_end *peer)
{
	uint64_t limit = rp_now_ms() + 2000;
	int n;

	for (n = 0; rp_now_ms() < limit; n++)
		RP_TRY(rp_empty_message(end, peer));
	return n;
}

/* The rate of the cgroup above holds as well, for all files below together. */
TEST_F(group, rates_above)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_OPS, 0);
	struct rpost_get_policy outer, inner;
	struct rp_end a, b, other_a, other_b;
	int n;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, cg_enter(&self->inner));
	ASSERT_EQ(0, rp_own_pair(&a, &b, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_own_pair(&other_a, &other_b, RPOST_QPT_RC));
	ASSERT_EQ(0, cg_enter(NULL));
	cmd.rules.ops_per_s = 10;
	ASSERT_EQ(0, set_group(self->fd, self->outer_fd, &cmd, 0));
	cmd.rules.ops_per_s = 1000000;
	ASSERT_EQ(0, set_group(self->fd, self->inner_fd, &cmd, 0));
	n = posts_in_two_seconds(&a, &b);
	EXPECT_LE(10, n);
	EXPECT_GE(22, n);
	n = posts_in_two_seconds(&other_a, &other_b);
	EXPECT_LE(10, n);
	EXPECT_GE(22, n);
	ASSERT_EQ(0, next_group(self->fd, &outer, 0));
	ASSERT_EQ(0, next_group(self->fd, &inner, outer.cgroup));
	EXPECT_EQ(outer.ops, inner.ops);
	EXPECT_LT(0, outer.waits);
	EXPECT_EQ(0, inner.waits);
	rp_end_close(&a);
	rp_end_close(&b);
	rp_end_close(&other_a);
	rp_end_close(&other_b);
}

/* A policy goes within ten seconds after its cgroup; with a file that is left, later. */
TEST_F(group, goes)
{
	struct rpost_set_policy cmd = policy_of(RPOST_POLICY_QPS, 0);
	struct rpost_get_policy now;
	uint64_t start;
	struct rp_end end;

	RP_SKIP_IF_SETUP_SAID();
	ASSERT_EQ(0, set_group(self->fd, self->inner_fd, &cmd, 0));
	ASSERT_EQ(0, cg_enter(&self->inner));
	ASSERT_EQ(0, rp_end_init(&end));
	ASSERT_EQ(0, cg_enter(NULL));
	ASSERT_EQ(0, rmdir(self->inner.path));
	sleep(11);
	EXPECT_EQ(0, next_group(self->fd, &now, 0));
	EXPECT_EQ(-EMFILE, rp_create_own(&end, RPOST_QPT_RC, 0));
	rp_end_close(&end);
	start = rp_now_ms();
	while (!next_group(self->fd, &now, 0) && rp_now_ms() < start + TEST_TIMEOUT_MS)
		usleep(100000);
	EXPECT_GE(10000 + TEST_TICKS_MS, rp_now_ms() - start);
}

TEST_HARNESS_MAIN
