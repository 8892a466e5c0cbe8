// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests queries of devices and ports: the bytes of a program's struct that they
 * fill, the tables of GIDs and P_Keys, and features that are missing.  A
 * failure means wrong attributes, or writes beyond an older program's struct.
 */
#include <kselftest_harness.h>
#include <net/if.h>

#include "rdma_test.h"

#define ENTRIES 256

FIXTURE(query) {
	PAIR_MEMBERS;
	struct ibv_context *verbs;
	struct ibv_port_attr attr;
	uint8_t port;
};

FIXTURE_SETUP(query)
{
	PAIR_SETUP(pair_listen);
	self->id = self->p.listen;
	self->verbs = self->id->verbs;
	self->port = self->id->port_num;
	ASSERT_EQ(0, ibv_query_port(self->verbs, self->port, &self->attr));
}

FIXTURE_TEARDOWN(query)
{
	pair_close(&self->p);
}

/* A struct and the bytes behind it. */
union room {
	struct ibv_device_attr_ex device;
	struct ibv_port_attr port;
	uint8_t bytes[1024];
};

static bool poisoned_from(const union room *room, size_t from)
{
	return all_bytes(room->bytes + from, sizeof(*room) - from, POISON);
}

static int query_device(struct ibv_context *verbs, union room *room, size_t size)
{
	struct verbs_context *vctx = verbs_get_ctx_op(verbs, query_device_ex);

	memset(room, POISON, sizeof(*room));
	return vctx ? vctx->query_device_ex(verbs, NULL, &room->device, size) : -1;
}

static int query_port(struct ibv_context *verbs, uint8_t port, union room *room,
		      size_t size)
{
	struct verbs_context *vctx = verbs_get_ctx_op(verbs, query_port);

	memset(room, POISON, sizeof(*room));
	return vctx ? vctx->query_port(verbs, port, &room->port, size) : -1;
}

TEST_F(query, device_ex_is_written_to_its_end)
{
	union room room;

	ASSERT_EQ(0, query_device(self->verbs, &room, sizeof(room.device)));
	EXPECT_TRUE(poisoned_from(&room, sizeof(room.device)));
	EXPECT_EQ(0, room.device.comp_mask);
	EXPECT_EQ(room.device.orig_attr.phys_port_cnt, room.device.phys_port_cnt_ex);
	EXPECT_EQ(room.device.orig_attr.device_cap_flags,
		  (uint32_t)room.device.device_cap_flags_ex);
}

/* Programs that were built with older headers have a shorter struct. */
TEST_F(query, device_ex_of_old_programs)
{
	static const size_t sizes[] = {
		offsetof(struct ibv_device_attr_ex, comp_mask),
		offsetof(struct ibv_device_attr_ex, odp_caps),
		offsetof(struct ibv_device_attr_ex, tso_caps),
		offsetof(struct ibv_device_attr_ex, max_dm_size),
		offsetof(struct ibv_device_attr_ex, phys_port_cnt_ex),
	};
	struct ibv_device_attr orig;
	union room room;
	size_t i;

	ASSERT_EQ(0, ibv_query_device(self->verbs, &orig));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(0, query_device(self->verbs, &room, sizes[i]));
		EXPECT_EQ(orig.max_qp, room.device.orig_attr.max_qp);
		EXPECT_EQ(orig.phys_port_cnt, room.device.orig_attr.phys_port_cnt);
		EXPECT_TRUE(poisoned_from(&room, sizes[i]))
			TH_LOG("size %zu", sizes[i]);
	}
}

TEST_F(query, device_ex_without_the_attributes)
{
	union room room;

	if (over_incumbent())
		SKIP(return, "libibverbs writes the attributes into any struct");
	EXPECT_EQ(EINVAL, query_device(self->verbs, &room,
				       offsetof(struct ibv_device_attr_ex,
						comp_mask) - 1));
	EXPECT_TRUE(poisoned_from(&room, 0));
}

TEST_F(query, device_ex_input)
{
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_device_attr_ex attr;

	EXPECT_EQ(EINVAL, ibv_query_device_ex(self->verbs, &input, &attr));
	input.comp_mask = 0;
	EXPECT_EQ(0, ibv_query_device_ex(self->verbs, &input, &attr));
}

/* The device announces memory windows only if it has them. */
TEST_F(query, what_is_not_there_is_not_announced)
{
	struct ibv_device_attr_ex attr;
	struct ibv_pd *pd;
	struct ibv_mw *mw;

	ASSERT_EQ(0, ibv_query_device_ex(self->verbs, NULL, &attr));
	pd = ibv_alloc_pd(self->verbs);
	ASSERT_NE(NULL, pd);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	if (mw) {
		EXPECT_EQ(0, ibv_dealloc_mw(mw));
	} else {
		EXPECT_EQ(EOPNOTSUPP, errno);
	}
	EXPECT_EQ(!!mw, !!(attr.device_cap_flags_ex &
			   (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
			    IBV_DEVICE_MEM_WINDOW_TYPE_2B)));
	EXPECT_EQ(0, ibv_dealloc_pd(pd));
}

TEST_F(query, port_lengths)
{
	static const size_t sizes[] = { 52, 48, 40, 52 + 8 };
	union room room;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (over_incumbent() && sizes[i] > 52)
			continue;
		ASSERT_EQ(0, query_port(self->verbs, self->port, &room, sizes[i]));
		EXPECT_EQ(self->attr.state, room.port.state);
		EXPECT_EQ(self->attr.pkey_tbl_len, room.port.pkey_tbl_len);
		EXPECT_TRUE(poisoned_from(&room, sizes[i]))
			TH_LOG("size %zu", sizes[i]);
	}
}

TEST_F(query, no_raw_clock)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	EXPECT_EQ(EOPNOTSUPP, ibv_query_rt_values_ex(self->verbs, &values));
}

TEST_F(query, gid_ex_is_gid)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid, zero = {};
	int i, err, valid = 0;

	for (i = 0; i < self->attr.gid_tbl_len; i++) {
		memset(&gid, POISON, sizeof(gid));
		memset(&entry, POISON, sizeof(entry));
		ASSERT_EQ(0, ibv_query_gid(self->verbs, self->port, i, &gid));
		err = ibv_query_gid_ex(self->verbs, self->port, i, &entry, 0);
		if (err) {
			ASSERT_EQ(ENODATA, err);
			EXPECT_EQ(0, memcmp(&gid, &zero, sizeof(gid)));
			continue;
		}
		valid++;
		EXPECT_EQ(0, memcmp(&gid, &entry.gid, sizeof(gid)));
		EXPECT_EQ(i, entry.gid_index);
		EXPECT_EQ(self->port, entry.port_num);
		EXPECT_GE(IBV_GID_TYPE_ROCE_V2, entry.gid_type);
	}
	EXPECT_LE(1, valid);
}

/* The table has the device's address with its type and interface. */
TEST_F(query, gid_of_the_address)
{
	struct ibv_gid_entry entries[ENTRIES];
	struct sockaddr_storage addr;
	union ibv_gid want = {};
	char name[IF_NAMESIZE];
	ssize_t i, n, found = 0;

	if (self->attr.link_layer != IBV_LINK_LAYER_ETHERNET ||
	    self->verbs->device->transport_type != IBV_TRANSPORT_IB)
		SKIP(return, "the device is not RoCE");
	ASSERT_TRUE(test_addr(AF_INET, &addr));
	want.raw[10] = want.raw[11] = 0xff;
	memcpy(want.raw + 12, &((struct sockaddr_in *)&addr)->sin_addr, 4);
	n = ibv_query_gid_table(self->verbs, entries, ENTRIES, 0);
	ASSERT_LE(1, n);
	for (i = 0; i < n; i++) {
		if (memcmp(&entries[i].gid, &want, sizeof(want)))
			continue;
		found++;
		EXPECT_NE(NULL, if_indextoname(entries[i].ndev_ifindex, name));
		EXPECT_TRUE(entries[i].gid_type == IBV_GID_TYPE_ROCE_V1 ||
			    entries[i].gid_type == IBV_GID_TYPE_ROCE_V2);
	}
	EXPECT_LE(1, found);
}

TEST_F(query, gids_that_do_not_exist)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	EXPECT_EQ(-1, ibv_query_gid(self->verbs, self->port, 1 << 20, &gid));
	EXPECT_EQ(-1, ibv_query_gid(self->verbs, self->port, -1, &gid));
	EXPECT_EQ(-1, ibv_query_gid(self->verbs, 99, 0, &gid));
	EXPECT_EQ(-1, ibv_query_gid(self->verbs, 0, 0, &gid));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(self->verbs, self->port, 1 << 20, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(self->verbs, 99, 0, &entry, 0));
	EXPECT_EQ(EINVAL, ibv_query_gid_ex(self->verbs, 0, 0, &entry, 0));
	EXPECT_NE(0, ibv_query_gid_ex(self->verbs, self->port, 0, &entry, 1));
}

TEST_F(query, gid_table_is_every_valid_entry)
{
	struct ibv_gid_entry entries[ENTRIES], entry;
	ssize_t n, seen = 0;
	uint32_t port;
	int i;

	n = ibv_query_gid_table(self->verbs, entries, ENTRIES, 0);
	ASSERT_LE(1, n);
	for (port = 1; port < 255; port++) {
		struct ibv_port_attr attr;

		if (ibv_query_port(self->verbs, port, &attr))
			break;
		for (i = 0; i < attr.gid_tbl_len; i++) {
			memset(&entry, 0, sizeof(entry));
			if (ibv_query_gid_ex(self->verbs, port, i, &entry, 0))
				continue;
			ASSERT_LT(seen, n);
			EXPECT_EQ(0, memcmp(&entry, &entries[seen], sizeof(entry)));
			seen++;
		}
	}
	EXPECT_EQ(n, seen);
}

TEST_F(query, gid_table_of_another_length)
{
	struct ibv_gid_entry entries[ENTRIES];
	ssize_t n;

	n = ibv_query_gid_table(self->verbs, entries, ENTRIES, 0);
	ASSERT_LE(2, n)
		TH_LOG("the device has one GID");
	EXPECT_EQ(n, ibv_query_gid_table(self->verbs, entries, n, 0));
	EXPECT_EQ(-EINVAL, ibv_query_gid_table(self->verbs, entries, n - 1, 0));
	EXPECT_EQ(-EINVAL, ibv_query_gid_table(self->verbs, entries, 0, 0));
	EXPECT_GT(0, ibv_query_gid_table(self->verbs, entries, ENTRIES, 1));
}

/* Newer headers may have longer entries. */
TEST_F(query, gid_entries_of_another_size)
{
	static const size_t sizes[] = {
		sizeof(struct ibv_gid_entry), sizeof(struct ibv_gid_entry) + 8,
	};
	struct ibv_gid_entry entries[ENTRIES], *entry;
	uint8_t room[ENTRIES * 48];
	ssize_t i, n;
	size_t s;

	n = ibv_query_gid_table(self->verbs, entries, ENTRIES, 0);
	ASSERT_LE(1, n);
	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		memset(room, POISON, sizeof(room));
		ASSERT_EQ(n, _ibv_query_gid_table(self->verbs, (void *)room,
						  ENTRIES, 0, sizes[s]));
		for (i = 0; i < n; i++) {
			entry = (void *)(room + i * sizes[s]);
			EXPECT_EQ(0, memcmp(entry, &entries[i], sizeof(*entry)));
			EXPECT_TRUE(all_bytes((uint8_t *)(entry + 1),
					      sizes[s] - sizeof(*entry), 0));
		}
		EXPECT_TRUE(all_bytes(room + n * sizes[s],
				      sizeof(room) - n * sizes[s], POISON));
	}
}

TEST_F(query, pkeys_and_their_indices)
{
	__be16 pkey, missing = 0;
	int i, index;

	for (i = 0; i < self->attr.pkey_tbl_len; i++) {
		ASSERT_EQ(0, ibv_query_pkey(self->verbs, self->port, i, &pkey));
		index = ibv_get_pkey_index(self->verbs, self->port, pkey);
		ASSERT_LE(0, index);
		EXPECT_LE(index, i);
	}
	EXPECT_EQ(-1, ibv_query_pkey(self->verbs, self->port, i, &pkey));
	EXPECT_EQ(-1, ibv_query_pkey(self->verbs, self->port, -1, &pkey));
	EXPECT_EQ(-1, ibv_query_pkey(self->verbs, 99, 0, &pkey));
	/* The invalid P_Key is in no table without empty entries. */
	for (i = 0; i < self->attr.pkey_tbl_len; i++) {
		ASSERT_EQ(0, ibv_query_pkey(self->verbs, self->port, i, &pkey));
		if (pkey == missing)
			SKIP(return, "the table has an empty entry");
	}
	EXPECT_EQ(-1, ibv_get_pkey_index(self->verbs, self->port, missing));
}

/* Contexts of ibv_open_device() and of ids have the same attributes. */
TEST_F(query, both_kinds_of_context)
{
	struct ibv_device_attr_ex one, two;
	struct ibv_context *verbs;

	verbs = ibv_open_device(self->verbs->device);
	ASSERT_NE(NULL, verbs);
	memset(&one, 0, sizeof(one));
	memset(&two, 0, sizeof(two));
	ASSERT_EQ(0, ibv_query_device_ex(verbs, NULL, &one));
	ASSERT_EQ(0, ibv_query_device_ex(self->verbs, NULL, &two));
	EXPECT_EQ(0, memcmp(&one, &two, sizeof(one)));
	EXPECT_EQ(0, ibv_close_device(verbs));
}

TEST_HARNESS_MAIN
