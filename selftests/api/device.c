// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests devices: their list, attributes, ports, GIDs and P_Keys, and the names
 * of constants.  A failure means that a program reads wrong attributes or has
 * memory behind a struct overwritten.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <fcntl.h>

#include "rdma_test.h"

FIXTURE(device) {
	PAIR_MEMBERS;
	struct ibv_context *verbs;
	uint8_t port;
};

FIXTURE_SETUP(device)
{
	PAIR_SETUP(pair_listen);
	self->id = self->p.listen;
	self->verbs = self->id->verbs;
	self->port = self->id->port_num;
	ASSERT_NE(NULL, self->verbs);
}

FIXTURE_TEARDOWN(device)
{
	pair_close(&self->p);
}

TEST(list)
{
	struct ibv_device **list;
	const char *name;
	int i, n = -1;

	list = ibv_get_device_list(&n);
	ASSERT_NE(NULL, list);
	ASSERT_LE(1, n);
	EXPECT_EQ(NULL, list[n]);
	for (i = 0; i < n; i++) {
		name = ibv_get_device_name(list[i]);
		ASSERT_NE(NULL, name);
		EXPECT_STREQ(list[i]->name, name);
		EXPECT_NE(0, strlen(list[i]->dev_name));
		EXPECT_NE(0, strlen(name));
		EXPECT_NE(0, ibv_get_device_guid(list[i]));
		EXPECT_EQ(list[i]->transport_type == IBV_TRANSPORT_IWARP ?
			  IBV_NODE_RNIC : IBV_NODE_CA, list[i]->node_type);
		EXPECT_LE(0, ibv_get_device_index(list[i]));
		if (i)
			EXPECT_NE(ibv_get_device_index(list[i - 1]),
				  ibv_get_device_index(list[i]));
	}
	ibv_free_device_list(list);
}

/* An open device stays valid when the list is freed. */
TEST(opened)
{
	struct ibv_device **list;
	struct ibv_device_attr attr;
	struct ibv_context *verbs;
	struct ibv_pd *pd;

	list = ibv_get_device_list(NULL);
	ASSERT_TRUE(list && list[0]);
	verbs = ibv_open_device(list[0]);
	ASSERT_NE(NULL, verbs);
	EXPECT_EQ(list[0], verbs->device);
	ibv_free_device_list(list);
	EXPECT_EQ(0, ibv_query_device(verbs, &attr));
	pd = ibv_alloc_pd(verbs);
	ASSERT_NE(NULL, pd);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(verbs));
}

/* Two contexts of a device share no objects. */
TEST(opened_twice)
{
	struct ibv_device **list;
	struct ibv_context *one, *two;
	struct ibv_pd *pd;

	list = ibv_get_device_list(NULL);
	ASSERT_TRUE(list && list[0]);
	one = ibv_open_device(list[0]);
	two = ibv_open_device(list[0]);
	ASSERT_TRUE(one && two);
	EXPECT_NE(one, two);
	ASSERT_EQ(0, ibv_close_device(one));
	pd = ibv_alloc_pd(two);
	ASSERT_NE(NULL, pd);
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
	EXPECT_EQ(0, ibv_close_device(two));
	ibv_free_device_list(list);
}

TEST(prepared_for_fork)
{
	EXPECT_EQ(0, ibv_fork_init());
	EXPECT_NE(IBV_FORK_DISABLED, ibv_is_fork_initialized());
}

TEST_F(device, attributes)
{
	struct ibv_device_attr attr;

	memset(&attr, POISON, sizeof(attr));
	ASSERT_EQ(0, ibv_query_device(self->verbs, &attr));
	EXPECT_LE(1, attr.phys_port_cnt);
	EXPECT_LE(1, attr.max_qp);
	EXPECT_LE(16, attr.max_qp_wr);
	EXPECT_LE(1, attr.max_sge);
	EXPECT_LE(1, attr.max_cq);
	EXPECT_LE(16, attr.max_cqe);
	EXPECT_LE(1, attr.max_mr);
	EXPECT_LE(1, attr.max_pd);
	EXPECT_LE(1, attr.max_qp_rd_atom);
	EXPECT_LE(1u << 20, attr.max_mr_size);
	EXPECT_EQ(ibv_get_device_guid(self->verbs->device), attr.node_guid);
	EXPECT_NE(0, attr.page_size_cap & 4096);
	EXPECT_LE(1, self->verbs->num_comp_vectors);
	EXPECT_GE(64, strnlen(attr.fw_ver, 64));
}

TEST_F(device, attributes_ex)
{
	struct ibv_device_attr_ex attr;
	struct ibv_device_attr orig;

	memset(&attr, POISON, sizeof(attr));
	ASSERT_EQ(0, ibv_query_device(self->verbs, &orig));
	ASSERT_EQ(0, ibv_query_device_ex(self->verbs, NULL, &attr));
	EXPECT_EQ(orig.max_qp, attr.orig_attr.max_qp);
	EXPECT_EQ(orig.max_sge, attr.orig_attr.max_sge);
	EXPECT_EQ(orig.node_guid, attr.orig_attr.node_guid);
}

TEST_F(device, port)
{
	struct ibv_port_attr attr;

	memset(&attr, POISON, sizeof(attr));
	ASSERT_EQ(0, ibv_query_port(self->verbs, self->port, &attr));
	EXPECT_EQ(IBV_PORT_ACTIVE, attr.state);
	EXPECT_LE(IBV_MTU_256, attr.active_mtu);
	EXPECT_LE(attr.active_mtu, attr.max_mtu);
	EXPECT_LE(1, attr.gid_tbl_len);
	EXPECT_LE(1, attr.pkey_tbl_len);
	EXPECT_LE(1u << 20, attr.max_msg_sz);
	EXPECT_TRUE(attr.link_layer == IBV_LINK_LAYER_ETHERNET ||
		    attr.link_layer == IBV_LINK_LAYER_INFINIBAND);
}

/* The room after the struct shows writes beyond its end. */
union port_room {
	struct ibv_port_attr attr;
	uint8_t bytes[sizeof(struct ibv_port_attr) + 64];
};

/* The inline function fills the struct as the caller's headers have it. */
TEST_F(device, port_to_its_end)
{
	union port_room room;
	size_t i;

	memset(&room, POISON, sizeof(room));
	ASSERT_EQ(0, ibv_query_port(self->verbs, self->port, &room.attr));
	EXPECT_NE(POISON | POISON << 8, room.attr.port_cap_flags2);
	for (i = sizeof(room.attr); i < sizeof(room); i++)
		EXPECT_EQ(POISON, room.bytes[i]);
}

/* The exported function fills the 48 bytes that the struct had at first. */
TEST_F(device, port_of_old_programs)
{
	union port_room room;
	size_t i;

	memset(&room, POISON, sizeof(room));
	ASSERT_EQ(0, (ibv_query_port)(self->verbs, self->port,
				      (struct _compat_ibv_port_attr *)&room));
	EXPECT_EQ(IBV_PORT_ACTIVE, room.attr.state);
	for (i = 48; i < sizeof(room); i++)
		EXPECT_EQ(POISON, room.bytes[i]);
}

TEST_F(device, no_such_port)
{
	struct ibv_port_attr attr;

	EXPECT_EQ(EINVAL, ibv_query_port(self->verbs, 99, &attr));
	EXPECT_EQ(EINVAL, ibv_query_port(self->verbs, 0, &attr));
}

/* On Ethernet, one of the GIDs holds the IPv4 address. */
TEST_F(device, gids)
{
	struct sockaddr_storage addr;
	struct ibv_port_attr attr;
	union ibv_gid gid, want;
	bool found = false;
	int i;

	ASSERT_EQ(0, ibv_query_port(self->verbs, self->port, &attr));
	if (attr.link_layer != IBV_LINK_LAYER_ETHERNET ||
	    self->verbs->device->transport_type != IBV_TRANSPORT_IB)
		SKIP(return, "the device is not RoCE");
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	memset(&want, 0, sizeof(want));
	want.raw[10] = want.raw[11] = 0xff;
	memcpy(want.raw + 12, &((struct sockaddr_in *)&addr)->sin_addr, 4);
	if (ibv_query_gid(self->verbs, self->port, 0, &gid) && errno == EOPNOTSUPP)
		SKIP(return, "ibv_query_gid() is not supported");
	for (i = 0; i < attr.gid_tbl_len; i++) {
		memset(&gid, POISON, sizeof(gid));
		if (!ibv_query_gid(self->verbs, self->port, i, &gid))
			found |= !memcmp(&gid, &want, sizeof(gid));
	}
	EXPECT_TRUE(found);
}

TEST_F(device, pkeys)
{
	__be16 pkey = 0;

	if (ibv_query_pkey(self->verbs, self->port, 0, &pkey) && errno == EOPNOTSUPP)
		SKIP(return, "ibv_query_pkey() is not supported");
	ASSERT_EQ(0, ibv_query_pkey(self->verbs, self->port, 0, &pkey));
	EXPECT_EQ(0x7fff, ntohs(pkey) & 0x7fff);
}

/* The descriptor is not readable before an event. */
TEST_F(device, async_events)
{
	struct ibv_async_event event;

	ASSERT_LE(0, self->verbs->async_fd);
	EXPECT_FALSE(readable(self->verbs->async_fd, 0));
	ASSERT_EQ(0, fcntl(self->verbs->async_fd, F_SETFL, O_NONBLOCK));
	EXPECT_ERRNO(EAGAIN, ibv_get_async_event(self->verbs, &event));
}

TEST(names)
{
	EXPECT_STREQ("success", ibv_wc_status_str(IBV_WC_SUCCESS));
	EXPECT_STREQ("Work Request Flushed Error",
		     ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR));
	EXPECT_STREQ("remote access error", ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
	EXPECT_STREQ("unknown", ibv_wc_status_str((enum ibv_wc_status)99));
	EXPECT_STREQ("active", ibv_port_state_str(IBV_PORT_ACTIVE));
	EXPECT_STREQ("InfiniBand channel adapter", ibv_node_type_str(IBV_NODE_CA));
	EXPECT_STREQ("last WQE reached",
		     ibv_event_type_str(IBV_EVENT_QP_LAST_WQE_REACHED));
}

TEST(rates)
{
	EXPECT_EQ(4, ibv_rate_to_mult(IBV_RATE_10_GBPS));
	EXPECT_EQ(IBV_RATE_10_GBPS, mult_to_ibv_rate(4));
	EXPECT_EQ(10000, ibv_rate_to_mbps(IBV_RATE_10_GBPS));
	EXPECT_EQ(IBV_RATE_10_GBPS, mbps_to_ibv_rate(10000));
	EXPECT_EQ(-1, ibv_rate_to_mult((enum ibv_rate)99));
}

TEST_HARNESS_MAIN
