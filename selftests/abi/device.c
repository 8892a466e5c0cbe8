// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests what QUERY commands tell of the interface, of devices and of ports.  A
 * failure means that a program gets wrong properties or limits.
 */
#include <kselftest_harness.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>

#include "rpost_test.h"

#define NEW_NAME	"rpost_of_another_length"
#define RENAMES		6	/* even: the device keeps its name */

FIXTURE(device) {
	int fd;
	uint32_t device;
	char name[IB_DEVICE_NAME_MAX];	/* while it may have another one */
};

FIXTURE_SETUP(device)
{
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	self->device = rp_first_device(self->fd);
	ASSERT_NE(0, self->device);
}

static int rename_device(const char *from, const char *to)
{
	char command[192];

	snprintf(command, sizeof(command), "rdma dev set %s name %s", from, to);
	return system(command);
}

FIXTURE_TEARDOWN(device)
{
	if (self->name[0])
		rename_device(NEW_NAME, self->name);
	close(self->fd);
}

static int query_devices(int fd, uint32_t *ids, uint32_t *count)
{
	struct rpost_query_devices cmd = {
		.size = sizeof(cmd),
		.devices = (uintptr_t)ids,
		.count = *count,
	};
	int ret = rp_ioctl(fd, RPOST_IOC_QUERY_DEVICES, &cmd);

	*count = cmd.count;
	return ret;
}

TEST_F(device, query)
{
	struct rpost_query cmd = {
		.size = sizeof(cmd),
		.abi_version = 0xa5a5a5a5,
		.num_devices = 0xa5a5a5a5,
		.features = 0xa5a5a5a5,
		.max_wr_bytes = 0xa5a5a5a5,
		.num_objects = 0xa5a5a5a5,
	};
	uint32_t count = 0, pd;

	ASSERT_EQ(0, rp_ioctl(self->fd, RPOST_IOC_QUERY, &cmd));
	EXPECT_EQ(sizeof(cmd), cmd.size);
	EXPECT_EQ(0, cmd.flags);
	EXPECT_EQ(RPOST_ABI_VERSION, cmd.abi_version);
	EXPECT_EQ(0, cmd.features);
	EXPECT_LE(sizeof(struct rpost_send_wr), cmd.max_wr_bytes);
	EXPECT_NE(0xa5a5a5a5, cmd.max_wr_bytes);
	EXPECT_EQ(0, cmd.num_objects);

	ASSERT_EQ(0, query_devices(self->fd, NULL, &count));
	EXPECT_EQ(count, cmd.num_devices);

	ASSERT_EQ(0, rp_alloc_pd(self->fd, self->device, &pd));
	EXPECT_EQ(1, rp_num_objects(self->fd));
	ASSERT_EQ(0, rp_destroy(self->fd, RPOST_OBJ_PD, pd));
	EXPECT_EQ(0, rp_num_objects(self->fd));
}

TEST_F(device, query_devices)
{
	uint32_t all, count, i, ids[64], again[64];

	all = 0;
	ASSERT_EQ(0, query_devices(self->fd, NULL, &all));
	ASSERT_LE(1, all);
	ASSERT_GE(ARRAY_SIZE(ids), all);

	memset(ids, 0xa5, sizeof(ids));
	count = ARRAY_SIZE(ids);
	ASSERT_EQ(0, query_devices(self->fd, ids, &count));
	ASSERT_EQ(all, count);
	for (i = 0; i < count; i++) {
		EXPECT_NE(0, ids[i]);
		EXPECT_NE(0xa5a5a5a5, ids[i]);
		if (i)
			EXPECT_LT(ids[i - 1], ids[i]);
	}
	for (; i < ARRAY_SIZE(ids); i++)
		ASSERT_EQ(0xa5a5a5a5, ids[i]);

	/*
	 * With too little room, QUERY_DEVICES fills it and returns the total.
	 */
	for (i = 1; i < all; i++) {
		memset(again, 0xa5, sizeof(again));
		count = i;
		ASSERT_EQ(0, query_devices(self->fd, again, &count));
		EXPECT_EQ(all, count);
		EXPECT_EQ(0, memcmp(ids, again, i * sizeof(*ids)));
		EXPECT_EQ(0xa5a5a5a5, again[i]);
	}

	/* The count may be larger than any array. */
	count = UINT32_MAX;
	ASSERT_EQ(0, query_devices(self->fd, again, &count));
	EXPECT_EQ(all, count);
	EXPECT_EQ(0, memcmp(ids, again, all * sizeof(*ids)));
}

TEST_F(device, query_devices_bad_pointer)
{
	uint32_t count = 1;

	EXPECT_EQ(-EFAULT, query_devices(self->fd, NULL, &count));
	EXPECT_EQ(1, count);
	EXPECT_EQ(-EFAULT, query_devices(self->fd, (void *)-4096l, &count));
	EXPECT_EQ(1, count);
}

/* All files see the same numbers, as long as the devices exist. */
TEST_F(device, numbers_stay)
{
	int other = rp_open();

	ASSERT_LE(0, other);
	EXPECT_EQ(self->device, rp_first_device(other));
	close(other);
	EXPECT_EQ(self->device, rp_first_device(self->fd));
}

TEST_F(device, query_device)
{
	struct rpost_query_device dev;
	unsigned int guid[4];
	uint8_t bytes[8];
	int i;

	ASSERT_EQ(0, rp_query_device(self->fd, self->device, &dev));
	EXPECT_EQ(sizeof(dev), dev.size);
	EXPECT_EQ(0, dev.flags);
	EXPECT_EQ(self->device, dev.device);

	/* The name ends with a 0, followed by zeros. */
	ASSERT_NE(NULL, memchr(dev.name, 0, sizeof(dev.name)));
	ASSERT_LT(0, strlen((char *)dev.name));
	for (i = strlen((char *)dev.name); i < (int)sizeof(dev.name); i++)
		EXPECT_EQ(0, dev.name[i]);

	ASSERT_EQ(4, sscanf(rp_sysfs(&dev, "node_guid"),
			    "%4x:%4x:%4x:%4x", guid, guid + 1, guid + 2,
			    guid + 3));
	for (i = 0; i < 4; i++) {
		bytes[2 * i] = guid[i] >> 8;
		bytes[2 * i + 1] = guid[i];
	}
	EXPECT_EQ(0, memcmp(bytes, &dev.node_guid, sizeof(bytes)));
	EXPECT_EQ(atoi(rp_sysfs(&dev, "node_type")), dev.node_type);
	EXPECT_EQ(dev.node_type == RPOST_NODE_RNIC ? RPOST_TRANSPORT_IWARP :
						     RPOST_TRANSPORT_IB,
		  dev.transport);

	EXPECT_LE(1, dev.phys_port_cnt);
	EXPECT_LE(1, dev.max_send_sge);
	EXPECT_LE(1, dev.max_recv_sge);
	EXPECT_LE(1, dev.max_sge_rd);
	EXPECT_LE(dev.max_sge_rd, dev.max_send_sge);
	EXPECT_LE(1, dev.max_qp);
	EXPECT_LE(1, dev.max_cq);
	EXPECT_LE(1, dev.max_cqe);
	EXPECT_LE(1, dev.max_mr);
	EXPECT_LE(1, dev.max_pd);
	EXPECT_LE(1, dev.num_comp_vectors);
	EXPECT_LE(1, dev.max_inline_data);
	EXPECT_LE(4096, dev.max_mr_size);
	EXPECT_NE(0, dev.page_size_cap & 4096);
	EXPECT_GE(2, dev.atomic_cap);
	EXPECT_EQ(0, dev.reserved);
}

/* Returns the index that netlink tells, or -1. */
static int netlink_index(const char *name)
{
	char command[128];
	int index = -1;
	FILE *f;

	snprintf(command, sizeof(command), "rdma dev show %s", name);
	f = popen(command, "r");
	if (f && fscanf(f, "%d:", &index) != 1)
		index = -1;
	if (f)
		pclose(f);
	return index;
}

TEST_F(device, index)
{
	uint32_t i, ids[64], count = ARRAY_SIZE(ids);
	struct rpost_query_device dev;

	if (system("rdma dev >/dev/null 2>&1"))
		SKIP(return, "needs the program rdma");
	ASSERT_EQ(0, query_devices(self->fd, ids, &count));
	for (i = 0; i < count; i++) {
		ASSERT_EQ(0, rp_query_device(self->fd, ids[i], &dev));
		EXPECT_EQ(netlink_index((char *)dev.name), (int)dev.index);
	}
}

struct names {
	pthread_t thread;
	int fd;
	uint32_t device;
	char names[2][IB_DEVICE_NAME_MAX];
	unsigned int seen[2];
	bool stop, wrong;
};

static void *ask_for_name(void *arg)
{
	struct rpost_query_device dev;
	struct names *n = arg;
	unsigned int i;

	while (!__atomic_load_n(&n->stop, __ATOMIC_RELAXED)) {
		n->wrong |= rp_query_device(n->fd, n->device, &dev) != 0;
		for (i = 0; i < 2; i++) {
			if (!memcmp(dev.name, n->names[i], sizeof(dev.name)))
				break;
		}
		if (i < 2)
			__atomic_add_fetch(&n->seen[i], 1, __ATOMIC_RELAXED);
		else
			n->wrong = true;
	}
	return NULL;
}

/* A name is read whole, old or new, and new once it has changed. */
TEST_F(device, renamed)
{
	struct names n = { .fd = self->fd, .device = self->device };
	struct rpost_query_device dev;
	unsigned int i, seen;
	uint64_t end;

	if (geteuid() || system("rdma dev >/dev/null 2>&1"))
		SKIP(return, "needs root and the program rdma");
	ASSERT_EQ(0, rp_query_device(self->fd, self->device, &dev));
	strcpy(self->name, (char *)dev.name);
	strcpy(n.names[0], self->name);
	strcpy(n.names[1], NEW_NAME);
	ASSERT_EQ(0, pthread_create(&n.thread, NULL, ask_for_name, &n));
	for (i = 0; i < RENAMES; i++) {
		EXPECT_EQ(0, rename_device(n.names[i % 2], n.names[!(i % 2)]));
		EXPECT_EQ(0, rp_query_device(self->fd, self->device, &dev));
		EXPECT_EQ(0, memcmp(n.names[!(i % 2)], dev.name, sizeof(dev.name)));
		/* The thread sees the new name as well. */
		seen = __atomic_load_n(&n.seen[!(i % 2)], __ATOMIC_RELAXED);
		end = rp_now_ms() + TEST_TIMEOUT_MS;
		while (__atomic_load_n(&n.seen[!(i % 2)], __ATOMIC_RELAXED) == seen &&
		       rp_now_ms() < end)
			sched_yield();
		EXPECT_LT(seen, __atomic_load_n(&n.seen[!(i % 2)], __ATOMIC_RELAXED));
	}
	__atomic_store_n(&n.stop, true, __ATOMIC_RELAXED);
	ASSERT_EQ(0, pthread_join(n.thread, NULL));
	EXPECT_FALSE(n.wrong);
	self->name[0] = 0;
}

TEST_F(device, query_port)
{
	struct rpost_query_device dev;
	struct rpost_query_port port;
	uint32_t n;

	ASSERT_EQ(0, rp_query_device(self->fd, self->device, &dev));
	for (n = 1; n <= dev.phys_port_cnt; n++) {
		ASSERT_EQ(0, rp_query_port(self->fd, self->device, n, &port));
		EXPECT_EQ(n, port.port);
		EXPECT_EQ(self->device, port.device);
		EXPECT_GE(5, port.state);
		EXPECT_LE(1, port.active_mtu);
		/*
		 * siw takes active_mtu from the interface; a dummy has no
		 * limit.
		 */
		if (dev.transport != RPOST_TRANSPORT_IWARP)
			EXPECT_LE(port.active_mtu, port.max_mtu);
		EXPECT_GE(5, port.max_mtu);
		EXPECT_LE(1, port.gid_tbl_len);
		EXPECT_GE(65536, port.gid_tbl_len);
		EXPECT_LE(1, port.max_msg_sz);
		EXPECT_TRUE(port.link_layer == 1 || port.link_layer == 2);
		EXPECT_GE(1, port.grh_required);
	}
	EXPECT_EQ(-EINVAL, rp_query_port(self->fd, self->device, n, &port));
}

TEST_F(device, query_port_matches_sysfs)
{
	struct rpost_query_device dev;
	struct rpost_query_port port;
	const char *layer;

	ASSERT_EQ(0, rp_query_device(self->fd, self->device, &dev));
	ASSERT_EQ(0, rp_query_port(self->fd, self->device, 1, &port));
	layer = rp_sysfs(&dev, "ports/1/link_layer");
	EXPECT_STREQ(layer, port.link_layer == 1 ? "InfiniBand" : "Ethernet");
	EXPECT_EQ((unsigned int)atoi(rp_sysfs(&dev, "ports/1/state")),
		  port.state);
	EXPECT_EQ((unsigned int)atoi(rp_sysfs(&dev, "ports/1/phys_state")),
		  port.phys_state);
}

/* The device takes its limits, and refuses one more than each. */
TEST_F(device, limits_are_true)
{
	struct rpost_query_device dev;
	struct rp_end end;
	struct rpost_create_qp good, qp, before;
	unsigned int i;

	ASSERT_EQ(0, rp_query_device(self->fd, self->device, &dev));
	ASSERT_EQ(0, rp_end_init(&end));
	ASSERT_EQ(0, rp_create_id(end.fd, end.channel, &end.id));
	ASSERT_EQ(0, rp_bind(end.fd, end.id, 0));
	good = (struct rpost_create_qp) {
		.size = sizeof(good),
		.id = end.id,
		.pd = end.pd,
		.send_cq = end.cq.cmd.handle,
		.recv_cq = end.cq.cmd.handle,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
	};
	const struct {
		uint32_t *field;
		uint32_t max;
	} limits[] = {
		{ &qp.max_send_wr, dev.max_qp_wr },
		{ &qp.max_recv_wr, dev.max_qp_wr },
		{ &qp.max_send_sge, dev.max_send_sge },
		{ &qp.max_recv_sge, dev.max_recv_sge },
		{ &qp.max_inline_data, dev.max_inline_data },
	};

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		qp = good;
		*limits[i].field = limits[i].max;
		ASSERT_EQ(0, rp_ioctl(end.fd, RPOST_IOC_CREATE_QP, &qp))
			TH_LOG("limit %u", i);
		EXPECT_LE(limits[i].max, *limits[i].field);
		ASSERT_EQ(0, rp_destroy(end.fd, RPOST_OBJ_QP, qp.handle));
		qp = good;
		*limits[i].field = limits[i].max + 1;
		before = qp;
		EXPECT_EQ(-EINVAL, rp_ioctl(end.fd, RPOST_IOC_CREATE_QP, &qp))
			TH_LOG("limit %u", i);
		EXPECT_EQ(0, memcmp(&before, &qp, sizeof(qp)));
		*limits[i].field = UINT32_MAX;
		EXPECT_EQ(-EINVAL, rp_ioctl(end.fd, RPOST_IOC_CREATE_QP, &qp))
			TH_LOG("limit %u", i);
	}
	/* The failed commands have left no object behind. */
	EXPECT_EQ(3, rp_num_objects(end.fd));
	rp_end_close(&end);
}

TEST_F(device, read_and_write_do_nothing)
{
	char byte = 0;

	EXPECT_EQ(-1, read(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, write(self->fd, &byte, 1));
	EXPECT_EQ(EINVAL, errno);
}

TEST_HARNESS_MAIN
