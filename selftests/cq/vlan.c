// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests what completions tell of VLANs.  A failure means that a program takes a
 * message for one of another VLAN.  Needs root and rxe.
 */
#include <kselftest_harness.h>
#include <ifaddrs.h>

#include "cq_pair.h"

#define LINK		"rpost_vlan"
#define ADDR		"10.98.0.1"
#define VLAN		42

FIXTURE(vlan) {
	struct cq_pair p;
	struct sockaddr_in addr;
	bool able;
};

FIXTURE_VARIANT(vlan) {
	uint32_t flags;		/* RPOST_CQ_* */
};

FIXTURE_VARIANT_ADD(vlan, plain) { 0 };
FIXTURE_VARIANT_ADD(vlan, small) { RPOST_CQ_SMALL_ENTRIES };

/* Does the first device tell VLANs? */
static bool tells(void)
{
	int fd = rp_open();
	bool is_rxe = rp_is_rxe(fd, rp_first_device(fd));

	close(fd);
	return is_rxe;
}

/* Makes a VLAN on the device's network interface. */
static int make_vlan(void)
{
	struct ifaddrs *list, *ifa;
	char command[256] = "";

	if (getifaddrs(&list))
		return -errno;
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_INET &&
		    ((struct sockaddr_in *)ifa->ifa_addr)->sin_addr.s_addr ==
		    rp_addr4.sin_addr.s_addr)
			snprintf(command, sizeof(command),
				 "ip link del " LINK " 2>/dev/null; "
				 "ip link add link %s name " LINK
				 " type vlan id %d && ip addr add " ADDR
				 "/24 dev " LINK " && ip link set " LINK " up",
				 ifa->ifa_name, VLAN);
	}
	freeifaddrs(list);
	return command[0] ? system(command) : -ENODEV;
}

/* Waits until the device has the GID of rp_addr4, without which ids cannot bind. */
static int wait_for_gid(void)
{
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rp_end end;
	uint32_t id;
	int ret;

	RP_TRY(rp_end_init(&end));
	do {
		RP_TRY(rp_create_id(end.fd, end.channel, &id));
		ret = rp_bind(end.fd, id, 0);
		RP_TRY(rp_destroy(end.fd, RPOST_OBJ_ID, id));
	} while (ret && rp_now_ms() < limit);
	rp_end_close(&end);
	return ret;
}

FIXTURE_SETUP(vlan)
{
	self->able = !geteuid() && tells();
	if (!self->able)
		return;
	self->addr = rp_addr4;
	ASSERT_EQ(0, make_vlan());
}

FIXTURE_TEARDOWN(vlan)
{
	if (!self->able)
		return;
	EXPECT_EQ(0, system("ip link del " LINK));
}

/* Returns the VLAN by which a message came, or a negative errno. */
static int seen_vlan(struct cq_pair *p)
{
	struct rp_send send;
	struct rpost_wc wc;

	send = rp_send(RPOST_WR_SEND, 1, p->buf, 8, p->cmr.lkey);
	RP_TRY(rp_post_recv(&p->s, 1, p->buf + CQ_BYTES, 64, p->smr.lkey));
	RP_TRY(rp_post_send(&p->c, &send));
	if (rp_wait_cq(&p->c.cq, &wc) != 1 || wc.status || wc.vlan)
		return -EIO;
	if (rp_wait_cq(&p->s.cq, &wc) != 1 || wc.status)
		return -EIO;
	return wc.vlan;
}

TEST_F(vlan, of_a_receive)
{
	if (!self->able)
		SKIP(return, "needs root and rxe");
	ASSERT_EQ(0, cq_pair_init(&self->p, variant->flags));
	EXPECT_EQ(0, seen_vlan(&self->p));
	cq_pair_close(&self->p);

	inet_pton(AF_INET, ADDR, &rp_addr4.sin_addr);
	ASSERT_EQ(0, wait_for_gid());
	ASSERT_EQ(0, cq_pair_init(&self->p, variant->flags));
	EXPECT_EQ(VLAN, seen_vlan(&self->p));
	cq_pair_close(&self->p);
	rp_addr4 = self->addr;
}

TEST_HARNESS_MAIN
