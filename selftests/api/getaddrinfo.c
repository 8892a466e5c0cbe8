// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests rdma_getaddrinfo(3): its addresses for names, services and hints must
 * be those that librdmacm finds.
 */
#include <kselftest_harness.h>
#include <arpa/inet.h>
#include <netdb.h>

#include "rdma_test.h"

static struct sockaddr_in *in(struct sockaddr *addr)
{
	return (struct sockaddr_in *)addr;
}

TEST(getaddrinfo_active)
{
	struct rdma_addrinfo *info = NULL, hints = { .ai_port_space = RDMA_PS_TCP };
	char node[INET_ADDRSTRLEN], service[8];
	struct sockaddr_storage addr;

	addr_text(node, service, NULL);
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_getaddrinfo(node, "7471", &hints, &info));
	ASSERT_NE(NULL, info);
	EXPECT_EQ(0, info->ai_flags);
	EXPECT_EQ(NULL, info->ai_next);
	EXPECT_EQ(0, info->ai_src_len);
	EXPECT_EQ(0, info->ai_connect_len);
	EXPECT_EQ(AF_INET, info->ai_family);
	EXPECT_EQ(IBV_QPT_RC, info->ai_qp_type);
	EXPECT_EQ(RDMA_PS_TCP, info->ai_port_space);
	ASSERT_EQ(sizeof(struct sockaddr_in), info->ai_dst_len);
	EXPECT_EQ(AF_INET, info->ai_dst_addr->sa_family);
	EXPECT_EQ(htons(7471), in(info->ai_dst_addr)->sin_port);
	EXPECT_EQ(((struct sockaddr_in *)&addr)->sin_addr.s_addr,
		  in(info->ai_dst_addr)->sin_addr.s_addr);
	rdma_freeaddrinfo(info);
}

TEST(getaddrinfo_passive)
{
	struct rdma_addrinfo *info = NULL, hints = {
		.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP,
	};
	char node[INET_ADDRSTRLEN], service[8];

	addr_text(node, service, NULL);
	ASSERT_EQ(0, rdma_getaddrinfo(node, "7471", &hints, &info));
	EXPECT_NE(0, info->ai_flags & RAI_PASSIVE);
	ASSERT_EQ(sizeof(struct sockaddr_in), info->ai_src_len);
	EXPECT_EQ(htons(7471), in(info->ai_src_addr)->sin_port);
	EXPECT_EQ(inet_addr(node), in(info->ai_src_addr)->sin_addr.s_addr);
	EXPECT_EQ(0, info->ai_dst_len);
	rdma_freeaddrinfo(info);
}

/* Without a node, any address of the host will do. */
TEST(getaddrinfo_passive_anywhere)
{
	struct rdma_addrinfo *info = NULL, hints = {
		.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_cm_id *id;

	ASSERT_EQ(0, rdma_getaddrinfo(NULL, "0", &hints, &info));
	ASSERT_NE(0, info->ai_src_len);
	ASSERT_EQ(0, rdma_create_ep(&id, info, NULL, NULL));
	rdma_freeaddrinfo(info);
	ASSERT_EQ(0, rdma_listen(id, 1));
	EXPECT_NE(0, rdma_get_src_port(id));
	rdma_destroy_ep(id);
}

TEST(getaddrinfo_numeric_only)
{
	struct rdma_addrinfo *info = NULL, hints = {
		.ai_flags = RAI_NUMERICHOST, .ai_port_space = RDMA_PS_TCP,
	};
	char node[INET_ADDRSTRLEN], service[8];

	addr_text(node, service, NULL);
	EXPECT_EQ(EAI_NONAME, rdma_getaddrinfo("localhost", "7471", &hints, &info));
	ASSERT_EQ(0, rdma_getaddrinfo(node, "7471", &hints, &info));
	EXPECT_EQ(sizeof(struct sockaddr_in), info->ai_dst_len);
	rdma_freeaddrinfo(info);
}

TEST(getaddrinfo_without_hints)
{
	char node[INET_ADDRSTRLEN], service[8];
	struct rdma_addrinfo *info = NULL;

	addr_text(node, service, NULL);
	ASSERT_EQ(0, rdma_getaddrinfo(node, "7471", NULL, &info));
	EXPECT_EQ(IBV_QPT_RC, info->ai_qp_type);
	EXPECT_EQ(RDMA_PS_TCP, info->ai_port_space);
	rdma_freeaddrinfo(info);
}

TEST(getaddrinfo_of_datagrams)
{
	struct rdma_addrinfo *info = NULL, hints = { .ai_port_space = RDMA_PS_UDP };
	char node[INET_ADDRSTRLEN], service[8];

	addr_text(node, service, NULL);
	ASSERT_EQ(0, rdma_getaddrinfo(node, "7471", &hints, &info));
	EXPECT_EQ(IBV_QPT_UD, info->ai_qp_type);
	EXPECT_EQ(RDMA_PS_UDP, info->ai_port_space);
	rdma_freeaddrinfo(info);
}

TEST(getaddrinfo_of_nothing)
{
	struct rdma_addrinfo *info = NULL;

	EXPECT_ERRNO(EINVAL, rdma_getaddrinfo(NULL, NULL, NULL, &info));
	EXPECT_NE(0, rdma_getaddrinfo("no.such.host.invalid", "7471", NULL, &info));
}

TEST(getaddrinfo_of_a_source)
{
	struct sockaddr_storage addr;
	struct rdma_addrinfo *info = NULL, hints = {
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = (struct sockaddr *)&addr,
		.ai_src_len = sizeof(struct sockaddr_in),
	};
	char node[INET_ADDRSTRLEN], service[8];

	addr_text(node, service, NULL);
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	ASSERT_EQ(0, rdma_getaddrinfo(node, "7471", &hints, &info));
	ASSERT_EQ(sizeof(struct sockaddr_in), info->ai_src_len);
	EXPECT_EQ(inet_addr(node), in(info->ai_src_addr)->sin_addr.s_addr);
	rdma_freeaddrinfo(info);
}

/* Without names, the hints give the addresses. */
TEST(getaddrinfo_of_a_destination)
{
	struct sockaddr_storage addr;
	struct rdma_addrinfo *info = NULL, hints = {
		.ai_family = AF_INET,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_dst_addr = (struct sockaddr *)&addr,
		.ai_dst_len = sizeof(struct sockaddr_in),
	};

	ASSERT_TRUE(test_addr(AF_INET, &addr));
	set_port(&addr, htons(7471));
	ASSERT_EQ(0, rdma_getaddrinfo(NULL, NULL, &hints, &info));
	EXPECT_EQ(AF_INET, info->ai_family);
	EXPECT_EQ(IBV_QPT_RC, info->ai_qp_type);
	EXPECT_EQ(RDMA_PS_TCP, info->ai_port_space);
	ASSERT_EQ(sizeof(struct sockaddr_in), info->ai_dst_len);
	EXPECT_EQ(0, memcmp(&addr, info->ai_dst_addr, info->ai_dst_len));
	rdma_freeaddrinfo(info);
}

TEST(getaddrinfo_of_a_family)
{
	struct rdma_addrinfo *info = NULL, hints = {
		.ai_flags = RAI_NUMERICHOST | RAI_FAMILY,
		.ai_family = AF_INET6,
		.ai_port_space = RDMA_PS_TCP,
	};
	struct sockaddr_in6 *in6;

	ASSERT_EQ(0, rdma_getaddrinfo("::1", "7471", &hints, &info));
	EXPECT_EQ(AF_INET6, info->ai_family);
	ASSERT_EQ(sizeof(struct sockaddr_in6), info->ai_dst_len);
	in6 = (struct sockaddr_in6 *)info->ai_dst_addr;
	EXPECT_EQ(AF_INET6, in6->sin6_family);
	EXPECT_EQ(htons(7471), in6->sin6_port);
	EXPECT_EQ(0, memcmp(&in6addr_loopback, &in6->sin6_addr, 16));
	rdma_freeaddrinfo(info);
	EXPECT_NE(0, rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info));
}

TEST_HARNESS_MAIN
