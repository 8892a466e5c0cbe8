// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests the tables of a port, GIDs and partition keys.  A failure means that
 * they differ from sysfs, or that the kernel writes behind the given array.
 */
#include <kselftest_harness.h>
#include <net/if.h>

#include "rpost_own.h"

#define CANARY	0xa5

FIXTURE(tables) {
	int fd;
	uint32_t device;
	struct rpost_query_device dev;
	struct rpost_query_port port;
	struct rpost_gid gids[64];
	uint32_t count;
};

FIXTURE_SETUP(tables)
{
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	self->device = rp_first_device(self->fd);
	ASSERT_EQ(0, rp_query_device(self->fd, self->device, &self->dev));
	ASSERT_EQ(0, rp_query_port(self->fd, self->device, 1, &self->port));
	memset(self->gids, CANARY, sizeof(self->gids));
	self->count = ARRAY_SIZE(self->gids);
	ASSERT_EQ(0, rp_query_gids(self->fd, self->device, 0, 0, self->gids,
				   &self->count));
	ASSERT_LT(0, self->count);
	ASSERT_GE(ARRAY_SIZE(self->gids), self->count);
}

FIXTURE_TEARDOWN(tables)
{
	close(self->fd);
}

/* Returns a line of a port's file in sysfs, or an empty string. */
static const char *sysfs(FIXTURE_DATA(tables) *self, uint32_t port,
			 const char *file, uint32_t index)
{
	char path[64];

	snprintf(path, sizeof(path), "ports/%u/%s/%u", port, file, index);
	return rp_sysfs(&self->dev, path);
}

static void gid_text(const uint8_t *gid, char *text)
{
	int i;

	for (i = 0; i < 16; i += 2)
		text += sprintf(text, "%s%02x%02x", i ? ":" : "", gid[i],
				gid[i + 1]);
}

TEST_F(tables, gids_match_sysfs)
{
	const struct rpost_gid *g;
	char text[64];
	const char *type;

	for (g = self->gids; g < self->gids + self->count; g++) {
		EXPECT_LE(1, g->port);
		EXPECT_GE(self->dev.phys_port_cnt, g->port);
		gid_text(g->gid, text);
		EXPECT_STREQ(sysfs(self, g->port, "gids", g->index), text);
		type = sysfs(self, g->port, "gid_attrs/types", g->index);
		EXPECT_STREQ(type, g->type == RPOST_GID_ROCE_V2 ? "RoCE v2" :
				   "IB/RoCE v1");
		if (g->ndev_ifindex)
			EXPECT_EQ(if_nametoindex(sysfs(self, g->port,
						       "gid_attrs/ndevs",
						       g->index)),
				  g->ndev_ifindex);
		/* Entries are in the order of ports and indices. */
		if (g > self->gids)
			EXPECT_TRUE(g[-1].port < g->port ||
				    (g[-1].port == g->port &&
				     g[-1].index < g->index));
	}
	for (; g < self->gids + ARRAY_SIZE(self->gids); g++) {
		ASSERT_EQ(CANARY, g->gid[0]);
	}
}

/* Query one port, with too little room, and from a later entry on. */
TEST_F(tables, gids_in_pieces)
{
	struct rpost_gid gids[64];
	uint32_t i, count, of_port = 0;

	for (i = 0; i < self->count; i++)
		of_port += self->gids[i].port == 1;
	count = ARRAY_SIZE(gids);
	ASSERT_EQ(0, rp_query_gids(self->fd, self->device, 1, 0, gids, &count));
	ASSERT_EQ(of_port, count);
	EXPECT_EQ(0, memcmp(gids, self->gids, count * sizeof(*gids)));
	for (i = 0; i < of_port; i++) {
		memset(gids, CANARY, sizeof(gids));
		count = i;
		ASSERT_EQ(0, rp_query_gids(self->fd, self->device, 1, 0, gids,
					   &count));
		EXPECT_EQ(i, count);
		EXPECT_EQ(0, memcmp(gids, self->gids, i * sizeof(*gids)));
		EXPECT_EQ(CANARY, gids[i].gid[0]);
		/* Begin at an entry that exists. */
		count = 1;
		ASSERT_EQ(0, rp_query_gids(self->fd, self->device, 1,
					   self->gids[i].index, gids, &count));
		EXPECT_EQ(1, count);
		EXPECT_EQ(0, memcmp(gids, &self->gids[i], sizeof(*gids)));
	}
	/* Begin behind the last entry. */
	if (self->gids[of_port - 1].index + 1 < self->port.gid_tbl_len) {
		count = 64;
		ASSERT_EQ(0, rp_query_gids(self->fd, self->device, 1,
					   self->gids[of_port - 1].index + 1,
					   gids, &count));
		EXPECT_EQ(0, count);
	}
	count = UINT32_MAX;
	ASSERT_EQ(0, rp_query_gids(self->fd, self->device, 0, 0, gids, &count));
	EXPECT_EQ(self->count, count);
}

TEST_F(tables, gid_errors)
{
	struct rpost_gid gid;
	uint32_t count = 1;

	EXPECT_EQ(-EINVAL, rp_query_gids(self->fd, self->device, self->dev.phys_port_cnt + 1, 0,
					 &gid, &count));
	EXPECT_EQ(-EINVAL, rp_query_gids(self->fd, self->device, 1, self->port.gid_tbl_len,
					 &gid, &count));
	EXPECT_EQ(-EINVAL, rp_query_gids(self->fd, self->device, 1, self->port.gid_tbl_len + 1,
					 &gid, &count));
	EXPECT_EQ(-EFAULT, rp_query_gids(self->fd, self->device, 1, 0, NULL,
					 &count));
	EXPECT_EQ(-EFAULT, rp_query_gids(self->fd, self->device, 1, 0,
					 (void *)-4096l, &count));
	EXPECT_EQ(1, count);
}

static int query_pkeys(FIXTURE_DATA(tables) *self, uint32_t port,
		       uint32_t first, uint16_t *pkeys, uint32_t *count)
{
	struct rpost_query_pkeys cmd = {
		.size = sizeof(cmd),
		.device = self->device,
		.port = port,
		.first = first,
		.count = *count,
		.pkeys = (uintptr_t)pkeys,
	};
	int ret = rp_ioctl(self->fd, RPOST_IOC_QUERY_PKEYS, &cmd);

	*count = cmd.count;
	return ret;
}

TEST_F(tables, pkeys_match_sysfs)
{
	uint16_t pkeys[256];
	uint32_t count, i;

	memset(pkeys, CANARY, sizeof(pkeys));
	count = ARRAY_SIZE(pkeys);
	ASSERT_EQ(0, query_pkeys(self, 1, 0, pkeys, &count));
	EXPECT_EQ(self->port.pkey_tbl_len < count ? self->port.pkey_tbl_len :
						    count, count);
	EXPECT_LT(0, count);
	for (i = 0; i < count; i++) {
		EXPECT_EQ(strtoul(sysfs(self, 1, "pkeys", i), NULL, 16),
			  ntohs(pkeys[i]));
	}
	if (count < ARRAY_SIZE(pkeys))
		EXPECT_EQ(0xa5a5, pkeys[count]);
	count = 0;
	ASSERT_EQ(0, query_pkeys(self, 1, 0, NULL, &count));
	EXPECT_EQ(0, count);
}

TEST_F(tables, pkey_errors)
{
	uint32_t count = 1;
	uint16_t pkey;

	EXPECT_EQ(-EINVAL, query_pkeys(self, self->dev.phys_port_cnt + 1, 0, &pkey, &count));
	EXPECT_EQ(-EINVAL, query_pkeys(self, 1, self->port.pkey_tbl_len, &pkey, &count));
	EXPECT_EQ(-EFAULT, query_pkeys(self, 1, 0, NULL, &count));
	EXPECT_EQ(1, count);
}

TEST_HARNESS_MAIN
