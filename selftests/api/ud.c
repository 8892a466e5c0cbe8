// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests datagrams without connection ids: address handles, sends, replies to a
 * sender, and multicast groups.  A failure means that datagrams get lost or
 * that a bad address is not refused.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <net/if.h>

#include "verbs_test.h"

FIXTURE(ud) {
	struct device dev;
	struct side a, b;
	struct ibv_ah *ah;
	struct ibv_wc wc;
};

FIXTURE_SETUP(ud)
{
	struct ibv_ah_attr attr;

	ASSERT_EQ(0, device_open(&self->dev));
	ASSERT_EQ(0, side_open(&self->dev, &self->a, IBV_QPT_UD, NULL, NULL));
	ASSERT_EQ(0, side_open(&self->dev, &self->b, IBV_QPT_UD, NULL, NULL));
	ASSERT_EQ(0, bring_up_pair(&self->dev, &self->a, &self->b));
	attr = own_address(&self->dev);
	self->ah = ibv_create_ah(self->dev.pd, &attr);
	ASSERT_NE(NULL, self->ah);
}

FIXTURE_TEARDOWN(ud)
{
	if (self->ah)
		EXPECT_EQ(0, ibv_destroy_ah(self->ah));
	side_close(&self->a);
	side_close(&self->b);
	device_close(&self->dev);
}

static int post_datagram(struct side *from, struct ibv_ah *ah, uint32_t qpn,
			 uint64_t wr_id, size_t length, unsigned int flags)
{
	struct ibv_sge sge = side_sge(from, 0, length);
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM,
		.send_flags = flags,
		.imm_data = htonl(0x87654321),
		.wr.ud = {
			.ah = ah,
			.remote_qpn = qpn,
			.remote_qkey = TEST_QKEY,
		},
	};

	return ibv_post_send(from->qp, &wr, &bad);
}

TEST_F(ud, handle)
{
	EXPECT_EQ(self->dev.verbs, self->ah->context);
	EXPECT_EQ(self->dev.pd, self->ah->pd);
}

TEST_F(ud, datagram)
{
	fill(self->a.buf, 700, 1);
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	ASSERT_EQ(0, post_datagram(&self->a, self->ah, self->b.qp->qp_num, 1,
				   700, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 1);
	EXPECT_EQ(self->a.qp->qp_num, self->wc.qp_num);
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, 2);
	EXPECT_EQ(self->b.qp->qp_num, self->wc.qp_num);
	EXPECT_EQ(self->a.qp->qp_num, self->wc.src_qp);
	EXPECT_EQ(700 + GRH_BYTES, self->wc.byte_len);
	EXPECT_TRUE(self->wc.wc_flags & IBV_WC_GRH);
	EXPECT_TRUE(self->wc.wc_flags & IBV_WC_WITH_IMM);
	EXPECT_EQ(htonl(0x87654321), self->wc.imm_data);
	EXPECT_TRUE(filled(self->b.buf + GRH_BYTES, 700, 1));
	EXPECT_TRUE(all_bytes(self->b.buf + GRH_BYTES + 700, 260, POISON));
}

TEST_F(ud, inline_datagram)
{
	fill(self->a.buf, 50, 1);
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	ASSERT_EQ(0, post_datagram(&self->a, self->ah, self->b.qp->qp_num, 1,
				   50, IBV_SEND_SIGNALED | IBV_SEND_INLINE));
	memset(self->a.buf, 0, 50);
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, 2);
	EXPECT_TRUE(filled(self->b.buf + GRH_BYTES, 50, 1));
}

/* Reply to the sender of a datagram. */
TEST_F(ud, reply)
{
	struct ibv_grh *grh = (struct ibv_grh *)self->b.buf;
	struct ibv_ah_attr attr;
	struct ibv_wc saved;
	struct ibv_ah *ah;
	uint32_t qpn;

	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	ASSERT_EQ(0, post_datagram(&self->a, self->ah, self->b.qp->qp_num, 1,
				   100, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, 2);
	qpn = self->wc.src_qp;
	saved = self->wc;
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 1);

	memset(&attr, 0xff, sizeof(attr));
	ASSERT_EQ(0, ibv_init_ah_from_wc(self->dev.verbs, self->dev.port,
					 &saved, grh, &attr));
	EXPECT_EQ(1, attr.is_global);
	EXPECT_EQ(self->dev.port, attr.port_num);
	EXPECT_EQ(0, memcmp(&self->dev.gid, &attr.grh.dgid, 16));
	EXPECT_EQ(self->dev.gid_index, attr.grh.sgid_index);
	EXPECT_EQ(0, attr.grh.flow_label);
	EXPECT_EQ(0, attr.grh.traffic_class);

	ah = ibv_create_ah_from_wc(self->dev.pd, &saved, grh,
				   self->dev.port);
	ASSERT_NE(NULL, ah);
	fill(self->b.buf, 200, 3);
	ASSERT_EQ(0, post_recv(&self->a, 3, 1000, 1000));
	ASSERT_EQ(0, post_datagram(&self->b, ah, qpn, 4, 200,
				   IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_RECV, 3);
	EXPECT_TRUE(filled(self->a.buf + 1000 + GRH_BYTES, 200, 3));
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_SEND, 4);
	EXPECT_EQ(0, ibv_destroy_ah(ah));
}

/* The headers are the test's, not a device's. */
TEST_F(ud, address_of_headers)
{
	struct ibv_wc wc = {
		.wc_flags = IBV_WC_GRH,
		.slid = 7,
		.sl = 3,
		.dlid_path_bits = 1,
	};
	struct ibv_ah_attr attr;
	uint8_t grh[GRH_BYTES] = {};

	/* Without a GRH only the link's address is used. */
	wc.wc_flags = 0;
	ASSERT_EQ(0, ibv_init_ah_from_wc(self->dev.verbs, self->dev.port, &wc,
					 (struct ibv_grh *)grh, &attr));
	EXPECT_EQ(0, attr.is_global);
	EXPECT_EQ(7, attr.dlid);
	EXPECT_EQ(3, attr.sl);
	EXPECT_EQ(1, attr.src_path_bits);
	EXPECT_EQ(self->dev.port, attr.port_num);
	wc.wc_flags = IBV_WC_GRH;

	/* An IPv6 header from fd00::99 to the device's GID. */
	memset(grh, 0, sizeof(grh));
	grh[0] = 0x6a;		/* version 6, traffic class 0xa1 */
	grh[1] = 0x12;
	grh[2] = 0x34;
	grh[3] = 0x56;		/* flow label 0x23456 */
	grh[6] = 17;
	grh[7] = 63;
	grh[8] = 0xfd;
	grh[23] = 0x99;
	memcpy(grh + 24, &self->dev.gid, 16);
	ASSERT_EQ(0, ibv_init_ah_from_wc(self->dev.verbs, self->dev.port, &wc,
					 (struct ibv_grh *)grh, &attr));
	EXPECT_EQ(1, attr.is_global);
	EXPECT_EQ(0xa1, attr.grh.traffic_class);
	EXPECT_EQ(0x23456, attr.grh.flow_label);
	EXPECT_EQ(63, attr.grh.hop_limit);
	EXPECT_EQ(self->dev.gid_index, attr.grh.sgid_index);
	EXPECT_EQ(0, memcmp(grh + 8, &attr.grh.dgid, 16));

	/* The destination is not an address of the port. */
	grh[39] ^= 0x55;
	EXPECT_NE(0, ibv_init_ah_from_wc(self->dev.verbs, self->dev.port, &wc,
					 (struct ibv_grh *)grh, &attr));
	/* The header is empty. */
	memset(grh, 0, sizeof(grh));
	EXPECT_NE(0, ibv_init_ah_from_wc(self->dev.verbs, self->dev.port, &wc,
					 (struct ibv_grh *)grh, &attr));
	EXPECT_EQ(NULL, ibv_create_ah_from_wc(self->dev.pd, &wc,
					      (struct ibv_grh *)grh,
					      self->dev.port));
}

/* A send to a queue pair that does not exist completes without an error. */
TEST_F(ud, lost)
{
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	ASSERT_EQ(0, post_datagram(&self->a, self->ah, 0xabcde, 1, 100,
				   IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND, 1);
	EXPECT_TRUE(no_comp(self->b.cq));
}

TEST_F(ud, handles_are_refused)
{
	struct ibv_ah_attr attr = own_address(&self->dev);

	attr.port_num = 77;
	EXPECT_EQ(NULL, ibv_create_ah(self->dev.pd, &attr));
	attr = own_address(&self->dev);
	attr.grh.sgid_index = 250;
	EXPECT_EQ(NULL, ibv_create_ah(self->dev.pd, &attr));
	/* RoCE addresses need a GRH. */
	attr = own_address(&self->dev);
	attr.is_global = 0;
	EXPECT_EQ(NULL, ibv_create_ah(self->dev.pd, &attr));
}

TEST_F(ud, posts_are_refused)
{
	struct ibv_sge sge = side_sge(&self->a, 0, 8);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma.remote_addr = 1,
	};
	struct ibv_ah_attr attr = own_address(&self->dev);
	struct ibv_pd *pd;
	struct ibv_ah *ah;

	if (over_incumbent())
		SKIP(return, "its providers do not look");
	EXPECT_EQ(EINVAL, post_datagram(&self->a, NULL, 1, 1, 8,
					IBV_SEND_SIGNALED));
	EXPECT_EQ(EINVAL, ibv_post_send(self->a.qp, &wr, &bad));
	EXPECT_EQ(&wr, bad);
	/* The handle is in another protection domain. */
	pd = ibv_alloc_pd(self->dev.verbs);
	ASSERT_NE(NULL, pd);
	ah = ibv_create_ah(pd, &attr);
	ASSERT_NE(NULL, ah);
	EXPECT_EQ(EINVAL, post_datagram(&self->a, ah, self->b.qp->qp_num, 1, 8,
					IBV_SEND_SIGNALED));
	EXPECT_EQ(EBUSY, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_destroy_ah(ah));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_TRUE(no_comp(self->a.cq));
}

/* A handle may be destroyed before the sends that use it complete. */
TEST_F(ud, handle_goes_early)
{
	struct ibv_ah_attr attr = own_address(&self->dev);
	struct ibv_ah *ah;
	uint64_t j;
	int i;

	if (over_incumbent())
		SKIP(return, "with its own provider, newer rxe loses such datagrams");
	for (i = 0; i < 20; i++) {
		ah = ibv_create_ah(self->dev.pd, &attr);
		ASSERT_NE(NULL, ah);
		for (j = 0; j < 4; j++) {
			ASSERT_EQ(0, post_recv(&self->b, j, 0, 1000));
			ASSERT_EQ(0, post_datagram(&self->a, ah,
						   self->b.qp->qp_num, 10 + j,
						   100, IBV_SEND_SIGNALED));
		}
		ASSERT_EQ(0, ibv_destroy_ah(ah));
		for (j = 0; j < 4; j++) {
			ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, j);
			ASSERT_COMP_OK(self->a.cq, &self->wc, IBV_WC_SEND,
				       10 + j);
		}
	}
}

static const union ibv_gid group = {
	/* ::ffff:239.1.2.3 */
	.raw = { [10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3 },
};

TEST_F(ud, groups)
{
	union ibv_gid other = group;

	ASSERT_EQ(0, ibv_attach_mcast(self->a.qp, &group, 0));
	/* Attaching twice has the effect of attaching once. */
	EXPECT_EQ(0, ibv_attach_mcast(self->a.qp, &group, 0));
	EXPECT_EQ(0, ibv_attach_mcast(self->b.qp, &group, 0));
	EXPECT_EQ(0, ibv_detach_mcast(self->a.qp, &group, 0));
	EXPECT_NE(0, ibv_detach_mcast(self->a.qp, &group, 0));
	EXPECT_EQ(0, ibv_detach_mcast(self->b.qp, &group, 0));
	other.raw[15]++;
	EXPECT_NE(0, ibv_detach_mcast(self->b.qp, &other, 0));
}

/* Destroying a queue pair in a group returns EBUSY and changes nothing. */
TEST_F(ud, destroyed_in_a_group)
{
	ASSERT_EQ(0, ibv_attach_mcast(self->b.qp, &group, 0));
	EXPECT_EQ(EBUSY, ibv_destroy_qp(self->b.qp));
	EXPECT_EQ(IBV_QPS_RTS, query_state(self->b.qp));
	ASSERT_EQ(0, post_recv(&self->b, 2, 0, 1000));
	ASSERT_EQ(0, post_datagram(&self->a, self->ah, self->b.qp->qp_num, 1,
				   100, IBV_SEND_SIGNALED));
	ASSERT_COMP_OK(self->b.cq, &self->wc, IBV_WC_RECV, 2);
	EXPECT_EQ(0, ibv_detach_mcast(self->b.qp, &group, 0));
}

/* A neighbour that the test makes on the device's network. */
struct neighbour {
	struct ibv_ah_attr attr;
	char addr[INET_ADDRSTRLEN];
	char ifname[IF_NAMESIZE];
};

#define NEIGHBOUR_MAC	"02:00:00:00:00:99"

static bool change_neighbour(const struct neighbour *n, const char *verb,
			     const char *rest)
{
	char command[200];

	snprintf(command, sizeof(command), "ip neigh %s %s dev %s %s", verb,
		 n->addr, n->ifname, rest);
	return !system(command);
}

static bool make_neighbour(struct device *dev, struct neighbour *n)
{
	struct ibv_gid_entry table[64];
	ssize_t i, count;

	n->attr = own_address(dev);
	n->attr.grh.dgid.raw[15] = 99;
	inet_ntop(AF_INET, n->attr.grh.dgid.raw + 12, n->addr, sizeof(n->addr));
	count = ibv_query_gid_table(dev->verbs, table, 64, 0);
	for (i = 0; i < count; i++)
		if (table[i].gid_index == dev->gid_index)
			if_indextoname(table[i].ndev_ifindex, n->ifname);
	return n->ifname[0] &&
	       change_neighbour(n, "replace",
				"lladdr " NEIGHBOUR_MAC " nud permanent");
}

TEST_F(ud, link_address)
{
	static const uint8_t mac[] = { 2, 0, 0, 0, 0, 0x99 };
	uint8_t seen[sizeof(mac)] = {};
	struct neighbour n = {};
	struct ibv_ah_attr bad;
	uint16_t vid = 7;

	if (!getenv("RPOST_TEST_LINK"))
		SKIP(return, "RPOST_TEST_LINK is not set");
	ASSERT_TRUE(make_neighbour(&self->dev, &n));
	EXPECT_EQ(0, ibv_resolve_eth_l2_from_gid(self->dev.verbs, &n.attr, seen,
						 &vid));
	EXPECT_EQ(0, memcmp(mac, seen, sizeof(mac)));
	EXPECT_EQ(0xffff, vid);
	memset(seen, 0, sizeof(seen));
	EXPECT_EQ(0, ibv_resolve_eth_l2_from_gid(self->dev.verbs, &n.attr, seen,
						 NULL));
	EXPECT_EQ(0, memcmp(mac, seen, sizeof(mac)));

	bad = n.attr;
	bad.port_num = 99;
	EXPECT_NE(0, ibv_resolve_eth_l2_from_gid(self->dev.verbs, &bad, seen, &vid));
	bad = n.attr;
	bad.grh.sgid_index = 255;
	EXPECT_NE(0, ibv_resolve_eth_l2_from_gid(self->dev.verbs, &bad, seen, &vid));
	EXPECT_TRUE(change_neighbour(&n, "del", ""));
}

TEST_HARNESS_MAIN
