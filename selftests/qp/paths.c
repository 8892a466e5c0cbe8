// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests that a path lives as long as its GID is its network namespace's.  A failure means
 * that a program goes on to send from an address that its namespace does not have any
 * more, or that it cannot go on with one that it still has.  Needs root and rxe.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "rpost_own.h"
#include "vlan_link.h"

#define VLAN_ADDR6	"fd98::1"
#define IP(command)	(!system("ip " command))

struct scene {
	bool able;
	struct sockaddr_in addr;
	struct rp_end a, b, other_a, other_b;
	pid_t child;		/* its namespace gets the interface */
};

static int scene_make(struct scene *s)
{
	s->able = vlan_possible();
	if (!s->able)
		return 0;
	s->addr = rp_addr4;
	RP_TRY(rp_own_pair(&s->other_a, &s->other_b, RPOST_QPT_RC));
	RP_TRY(vlan_make());
	return vlan_use();
}

static void scene_end(struct scene *s)
{
	if (!s->able)
		return;
	if (s->child) {
		kill(s->child, SIGKILL);
		waitpid(s->child, NULL, 0);
	}
	if (s->a.fd)
		rp_end_close(&s->a);
	if (s->b.fd)
		rp_end_close(&s->b);
	vlan_remove();
	rp_addr4 = s->addr;
	rp_end_close(&s->other_a);
	rp_end_close(&s->other_b);
}

FIXTURE(path) {
	struct scene s;
};

FIXTURE_VARIANT(path) {
	bool moved;		/* the interface, to another namespace */
	bool unlinked;		/* the interface is deleted */
};

FIXTURE_VARIANT_ADD(path, address_removed) { };
FIXTURE_VARIANT_ADD(path, interface_moved) { .moved = true };
FIXTURE_VARIANT_ADD(path, interface_deleted) { .unlinked = true };

FIXTURE_SETUP(path)
{
	ASSERT_EQ(0, scene_make(&self->s));
}

FIXTURE_TEARDOWN(path)
{
	scene_end(&self->s);
}

FIXTURE(address) {
	struct scene s;
};

FIXTURE_SETUP(address)
{
	ASSERT_EQ(0, scene_make(&self->s));
}

FIXTURE_TEARDOWN(address)
{
	scene_end(&self->s);
}

#define NEED_VLAN()							\
	do {								\
		if (!self->s.able)					\
			SKIP(return, "needs root and rxe");		\
	} while (0)

/* Return a process in a new namespace, which waits, or a negative errno. */
static pid_t other_namespace(void)
{
	int pipes[2];
	char byte = 0;
	pid_t pid;

	RP_TRY(pipe(pipes));
	pid = fork();
	if (!pid) {
		if (!unshare(CLONE_NEWNET) && write(pipes[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	close(pipes[1]);
	if (read(pipes[0], &byte, 1) != 1)
		pid = -EIO;
	close(pipes[0]);
	return pid;
}

/* The namespace loses the VLAN's address. */
static int lose(struct scene *s, const FIXTURE_VARIANT(path) *variant)
{
	char command[80];

	if (variant->unlinked)
		return vlan_remove();
	if (!variant->moved)
		return IP("addr del " VLAN_ADDR "/24 dev " VLAN_LINK) ? 0 : -EIO;
	s->child = other_namespace();
	if (s->child < 0)
		return s->child;
	snprintf(command, sizeof(command), "ip link set " VLAN_LINK " netns %d", s->child);
	return system(command) ? -EIO : 0;
}

static bool reaches(struct rp_end *end, int state)
{
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;

	while (rp_qp_state(end) != state) {
		if (rp_now_ms() > limit)
			return false;
		usleep(1000);
	}
	return true;
}

/* The queue pair has ended, and its receive is flushed. */
static void expect_ended(struct __test_metadata *_metadata, struct rp_end *end)
{
	struct rpost_wc wc;

	EXPECT_TRUE(reaches(end, RPOST_QPS_ERR));
	ASSERT_EQ(1, rp_wait_cq(&end->cq, &wc));
	EXPECT_EQ(RPOST_WC_WR_FLUSH_ERR, wc.status);
}

TEST_F(path, of_own_queue_pairs)
{
	struct rpost_qp_attr attr;
	struct rpost_ah_attr ah;

	NEED_VLAN();
	ASSERT_EQ(0, rp_own_pair(&self->s.a, &self->s.b, RPOST_QPT_RC));
	ASSERT_EQ(0, rp_own_addr(&self->s.a, &ah));
	ASSERT_EQ(0, rp_empty_message(&self->s.a, &self->s.b));
	ASSERT_EQ(0, rp_post_recv(&self->s.a, 3, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_recv(&self->s.b, 3, NULL, 0, 0));
	ASSERT_EQ(0, lose(&self->s, variant));
	expect_ended(_metadata, &self->s.a);
	expect_ended(_metadata, &self->s.b);

	/* It cannot have the path again. */
	ASSERT_EQ(0, rp_move(&self->s.a, RPOST_QPS_RESET));
	attr = rp_init_attr(RPOST_QPT_RC, ah.port_num);
	ASSERT_EQ(0, rp_modify(&self->s.a, &attr));
	attr = rp_rtr_attr(RPOST_QPT_RC, &ah, self->s.b.qp_num);
	EXPECT_EQ(-EINVAL, rp_modify(&self->s.a, &attr));

	/* Paths with other GIDs go on, and this queue pair may have one. */
	EXPECT_EQ(0, rp_empty_message(&self->s.other_a, &self->s.other_b));
	rp_addr4 = self->s.addr;
	ASSERT_EQ(0, rp_move(&self->s.a, RPOST_QPS_RESET));
	ASSERT_EQ(0, rp_move(&self->s.b, RPOST_QPS_RESET));
	ASSERT_EQ(0, rp_bring_up(&self->s.a, RPOST_QPT_RC, self->s.b.qp_num));
	ASSERT_EQ(0, rp_bring_up(&self->s.b, RPOST_QPT_RC, self->s.a.qp_num));
	EXPECT_EQ(0, rp_empty_message(&self->s.a, &self->s.b));
}

TEST_F(path, of_connections)
{
	NEED_VLAN();
	ASSERT_EQ(0, rp_connect_pair(&self->s.a, &self->s.b, 0));
	ASSERT_EQ(0, rp_empty_message(&self->s.a, &self->s.b));
	ASSERT_EQ(0, rp_post_recv(&self->s.a, 3, NULL, 0, 0));
	ASSERT_EQ(0, rp_post_recv(&self->s.b, 3, NULL, 0, 0));
	ASSERT_EQ(0, lose(&self->s, variant));
	expect_ended(_metadata, &self->s.a);
	expect_ended(_metadata, &self->s.b);
	EXPECT_EQ(0, rp_empty_message(&self->s.other_a, &self->s.other_b));
}

/* What was resolved before does not help. */
TEST_F(path, of_a_route)
{
	uint32_t listener;

	NEED_VLAN();
	ASSERT_EQ(0, rp_end_init(&self->s.a));
	ASSERT_EQ(0, rp_end_init(&self->s.b));
	ASSERT_EQ(0, rp_listener(&self->s.b, &listener));
	ASSERT_EQ(0, rp_client_route(&self->s.a, rp_port(self->s.b.fd, listener)));
	ASSERT_EQ(0, rp_create_qp(&self->s.a, 0));
	ASSERT_EQ(0, lose(&self->s, variant));
	EXPECT_TRUE(reaches(&self->s.a, RPOST_QPS_ERR));
	EXPECT_EQ(-EADDRNOTAVAIL, rp_connect(self->s.a.fd, self->s.a.id));
}

TEST_F(path, of_a_request)
{
	uint32_t listener;

	NEED_VLAN();
	ASSERT_EQ(0, rp_end_init(&self->s.a));
	ASSERT_EQ(0, rp_end_init(&self->s.b));
	ASSERT_EQ(0, rp_listener(&self->s.b, &listener));
	ASSERT_EQ(0, rp_ask(&self->s.a, &self->s.b, listener, 0));
	ASSERT_EQ(0, rp_create_qp(&self->s.b, 0));
	ASSERT_EQ(0, lose(&self->s, variant));
	EXPECT_TRUE(reaches(&self->s.a, RPOST_QPS_ERR));
	EXPECT_TRUE(reaches(&self->s.b, RPOST_QPS_ERR));
	EXPECT_EQ(-EADDRNOTAVAIL, rp_accept(self->s.b.fd, self->s.b.id));
}

static int datagram(struct rp_end *end, uint32_t ah)
{
	struct rp_send send = rp_empty_datagram(ah, RP_NO_QPN, 1);
	struct rpost_wc wc;

	RP_TRY(rp_post_send(end, &send));
	return rp_wait_cq(&end->cq, &wc) != 1 || wc.status ? -EIO : 0;
}

TEST_F(path, of_address_handles)
{
	uint32_t ah, other;

	NEED_VLAN();
	ASSERT_EQ(0, rp_end_init(&self->s.a));
	ASSERT_EQ(0, rp_own_ah(&self->s.a, &ah));
	ASSERT_EQ(0, rp_end_init(&self->s.b));
	ASSERT_EQ(0, rp_create_own(&self->s.b, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, rp_bring_up(&self->s.b, RPOST_QPT_RC, self->s.b.qp_num));
	rp_addr4 = self->s.addr;
	ASSERT_EQ(0, rp_own_ah(&self->s.a, &other));
	ASSERT_EQ(0, rp_create_own(&self->s.a, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, rp_bring_up(&self->s.a, RPOST_QPT_UD, 0));
	ASSERT_EQ(0, datagram(&self->s.a, ah));
	ASSERT_EQ(0, lose(&self->s, variant));
	/* Until the device has been looked at, a datagram may go, or fail. */
	EXPECT_TRUE(reaches(&self->s.b, RPOST_QPS_ERR));
	usleep(TEST_TICKS_MS * 1000);
	rp_mute = true;
	EXPECT_EQ(-ENOENT, datagram(&self->s.a, ah));
	rp_mute = false;
	EXPECT_EQ(0, datagram(&self->s.a, other));
	EXPECT_EQ(0, rp_destroy(self->s.a.fd, RPOST_OBJ_AH, ah));
	EXPECT_EQ(0, rp_destroy(self->s.a.fd, RPOST_OBJ_AH, other));
}

/* Connections of an interface that goes down wait, and go on when it is up again. */
TEST_F(address, of_an_interface_that_is_down)
{
	NEED_VLAN();
	ASSERT_EQ(0, rp_own_pair(&self->s.a, &self->s.b, RPOST_QPT_RC));
	ASSERT_TRUE(IP("link set " VLAN_LINK " down"));
	usleep(TEST_QUIET_MS * 1000);
	EXPECT_EQ(RPOST_QPS_RTS, rp_qp_state(&self->s.a));
	ASSERT_TRUE(IP("link set " VLAN_LINK " up"));
	EXPECT_EQ(0, rp_empty_message(&self->s.a, &self->s.b));
}

/* Bring a queue pair up with the VLAN's address of IPv6 at both ends. */
static int bring_up_ipv6(struct rp_end *end)
{
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rpost_ah_attr ah;
	struct rpost_gid gids[32];
	uint32_t count, i;

	RP_TRY(rp_own_addr(end, &ah));
	inet_pton(AF_INET6, VLAN_ADDR6, ah.dgid);
	do {
		count = ARRAY_SIZE(gids);
		RP_TRY(rp_query_gids(end->fd, end->device, 0, 0, gids, &count));
		for (i = 0; i < count; i++) {
			if (memcmp(gids[i].gid, ah.dgid, sizeof(ah.dgid)))
				continue;
			ah.sgid_index = gids[i].index;
			return rp_bring_up_by(end, RPOST_QPT_RC, &ah, end->qp_num);
		}
		usleep(1000);
	} while (rp_now_ms() < limit);
	return -EADDRNOTAVAIL;
}

/* The kernel takes the addresses of IPv6 away from an interface that is down. */
TEST_F(address, of_ipv6_that_is_down)
{
	NEED_VLAN();
	ASSERT_TRUE(IP("addr add " VLAN_ADDR6 "/64 dev " VLAN_LINK " nodad"));
	ASSERT_EQ(0, rp_end_init(&self->s.a));
	ASSERT_EQ(0, rp_create_own(&self->s.a, RPOST_QPT_RC, 0));
	ASSERT_EQ(0, bring_up_ipv6(&self->s.a));
	ASSERT_EQ(0, rp_empty_message(&self->s.a, &self->s.a));
	ASSERT_EQ(0, rp_post_recv(&self->s.a, 3, NULL, 0, 0));
	ASSERT_TRUE(IP("link set " VLAN_LINK " down"));
	expect_ended(_metadata, &self->s.a);
}

struct flapping {
	bool stop, failed;
};

static void *bring_up_all_the_time(void *arg)
{
	struct flapping *f = arg;
	struct rp_end *end = calloc(1, sizeof(*end));

	f->failed = !end || rp_end_init(end) || rp_create_own(end, RPOST_QPT_RC, 0);
	while (!f->failed && !__atomic_load_n(&f->stop, __ATOMIC_RELAXED)) {
		rp_bring_up(end, RPOST_QPT_RC, end->qp_num);
		f->failed = rp_move(end, RPOST_QPS_RESET);
	}
	if (!f->failed)
		rp_bring_up(end, RPOST_QPT_RC, end->qp_num);
	return end;
}

/* Can the queue pair send from the VLAN's address? */
static bool has_path(struct rp_end *end)
{
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };
	struct rpost_query_qp query;

	memcpy(gid + 12, &rp_addr4.sin_addr, 4);
	return rp_query_qp(end, &query) ||
	       ((query.attr.qp_state == RPOST_QPS_RTR || query.attr.qp_state == RPOST_QPS_RTS) &&
		!memcmp(gid, query.attr.ah.dgid, sizeof(gid)));
}

/* A path that is set while its GID goes: none is left with it. */
TEST_F(address, set_meanwhile)
{
	uint64_t limit;
	struct flapping f = { };
	struct rp_end *end;
	pthread_t thread;
	int i;

	NEED_VLAN();
	rp_mute = true;
	ASSERT_EQ(0, pthread_create(&thread, NULL, bring_up_all_the_time, &f));
	for (i = 0; i < 20; i++) {
		EXPECT_TRUE(IP("addr del " VLAN_ADDR "/24 dev " VLAN_LINK));
		EXPECT_TRUE(IP("addr add " VLAN_ADDR "/24 dev " VLAN_LINK));
	}
	EXPECT_TRUE(IP("addr del " VLAN_ADDR "/24 dev " VLAN_LINK));
	__atomic_store_n(&f.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, (void **)&end);
	rp_mute = false;
	EXPECT_FALSE(f.failed);
	ASSERT_NE(NULL, end);
	limit = rp_now_ms() + TEST_TIMEOUT_MS;
	while (has_path(end) && rp_now_ms() < limit)
		usleep(1000);
	EXPECT_FALSE(has_path(end));
	rp_end_close(end);
	free(end);
}

TEST_HARNESS_MAIN
