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

/* Functions of version 57, which Debian 12's librdmacm does not have. */
int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
			  const char *service,
			  const struct rdma_addrinfo *hints);
int rdma_query_addrinfo(struct rdma_cm_id *id, struct rdma_addrinfo **info);
#pragma weak rdma_resolve_addrinfo
#pragma weak rdma_query_addrinfo

#define DNS	0x20
#define SA	0x10
#define RESOLVED	((enum rdma_cm_event_type)16)

FIXTURE(resolve) {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	char node[INET_ADDRSTRLEN], service[8];
	bool old_kernel;
};

FIXTURE_VARIANT(resolve) {
	bool sync;
};

FIXTURE_VARIANT_ADD(resolve, async) { false };
FIXTURE_VARIANT_ADD(resolve, sync) { true };

/* Does the kernel lack the command that writes events? */
static bool lacks_events(const char *node)
{
	struct rdma_cm_id *id;
	bool lacks;

	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return false;
	lacks = rdma_resolve_addrinfo(id, node, "1", NULL) && errno == EOPNOTSUPP;
	rdma_destroy_id(id);
	return lacks;
}

FIXTURE_SETUP(resolve)
{
	addr_text(self->node, self->service, NULL);
	self->old_kernel = rdma_resolve_addrinfo && lacks_events(self->node);
	if (!variant->sync) {
		self->channel = rdma_create_event_channel();
		ASSERT_NE(NULL, self->channel);
	}
	ASSERT_EQ(0, rdma_create_id(self->channel, &self->id, NULL, RDMA_PS_TCP));
}

FIXTURE_TEARDOWN(resolve)
{
	EXPECT_EQ(0, rdma_destroy_id(self->id));
	if (self->channel)
		rdma_destroy_event_channel(self->channel);
}

#define NEED_RESOLVE() do {						\
	if (!rdma_resolve_addrinfo)					\
		SKIP(return, "librdmacm is older than version 57");	\
	if (self->old_kernel)						\
		SKIP(return, "the kernel does not support it");		\
} while (0)

TEST_F(resolve, name)
{
	struct rdma_addrinfo *info = NULL, hints = {
		.ai_flags = DNS, .ai_port_space = RDMA_PS_TCP,
	};
	struct rdma_cm_event *ev;
	int i;

	NEED_RESOLVE();
	EXPECT_ERRNO(ENOENT, rdma_query_addrinfo(self->id, &info));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, rdma_resolve_addrinfo(self->id, self->node, "7471",
						   i ? NULL : &hints));
		EXPECT_ERRNO(EBUSY, rdma_resolve_addrinfo(self->id, self->node,
							  "7471", NULL));
		if (!variant->sync) {
			ASSERT_EQ(0, rdma_get_cm_event(self->channel, &ev));
			EXPECT_EQ(RESOLVED, ev->event);
			EXPECT_EQ(self->id, ev->id);
			EXPECT_EQ(0, ev->status);
			EXPECT_EQ(0, rdma_ack_cm_event(ev));
		}
		ASSERT_EQ(0, rdma_query_addrinfo(self->id, &info));
		ASSERT_EQ(sizeof(struct sockaddr_in), info->ai_dst_len);
		EXPECT_EQ(htons(7471), in(info->ai_dst_addr)->sin_port);
		EXPECT_EQ(inet_addr(self->node),
			  in(info->ai_dst_addr)->sin_addr.s_addr);
		rdma_freeaddrinfo(info);
		EXPECT_ERRNO(ENOENT, rdma_query_addrinfo(self->id, &info));
	}
}

/* rdma_destroy_id() frees addresses that the program has not taken. */
TEST_F(resolve, not_taken)
{
	NEED_RESOLVE();
	ASSERT_EQ(0, rdma_resolve_addrinfo(self->id, self->node, "7471", NULL));
}

TEST_F(resolve, errors)
{
	struct rdma_addrinfo *info, hints = { .ai_flags = RAI_NUMERICHOST };

	NEED_RESOLVE();
	EXPECT_ERRNO(EINVAL, rdma_resolve_addrinfo(NULL, self->node, NULL, NULL));
	EXPECT_ERRNO(EINVAL, rdma_query_addrinfo(NULL, &info));
	EXPECT_ERRNO(EINVAL, rdma_query_addrinfo(self->id, NULL));
	EXPECT_EQ(-1, rdma_resolve_addrinfo(self->id, "not.a.number", NULL, &hints));
	hints.ai_flags = SA;
	EXPECT_ERRNO(EOPNOTSUPP, rdma_resolve_addrinfo(self->id, self->node,
						       "1", &hints));
	hints.ai_flags = SA | DNS;
	EXPECT_ERRNO(EOPNOTSUPP, rdma_resolve_addrinfo(self->id, NULL, "1", &hints));
	/* Each left the id as it was. */
	EXPECT_ERRNO(ENOENT, rdma_query_addrinfo(self->id, &info));
	EXPECT_EQ(0, rdma_resolve_addrinfo(self->id, self->node, "1", NULL));
}

TEST_HARNESS_MAIN
