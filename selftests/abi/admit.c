// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tests which devices are offered: the module parameter "devices", the counts
 * of QUERY, and the log.  A failure means that a device is offered that must
 * not be, or the reverse.
 *
 * Needs root and RPOST_TEST_MODULE, the module's file: the module is loaded
 * several times, in the end with its former "devices".  selftests/rdmasim with
 * driver_id=1 needs its name in "devices" to be offered.
 */
#include <kselftest_harness.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "cgroup.h"
#include "rpost_test.h"

#define SIM		"/sys/module/rdmasim/parameters"

FIXTURE(admit) {
	const char *path;
	char before[128];
	int driver_id;	/* rdmasim's, if changed; else -1 */
	int kmsg;
	int fd;
};

/* Unload the module if it is loaded. */
static int unload_module(void)
{
	int ret = rp_unload_soon();

	return ret == -ENOENT ? 0 : ret;
}

static int load_module(const char *path, const char *devices)
{
	char args[256];

	snprintf(args, sizeof(args), "devices=\"%s\"", devices);
	return rp_load_module(path, args);
}

/* Add rdmasim's device again, with @driver_id as its driver. */
static int sim_becomes(int driver_id)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", driver_id);
	RP_TRY(cg_put(SIM, "driver_id", text));
	rp_remove_device();
	return rp_add_device();
}

FIXTURE_SETUP(admit)
{
	FILE *f = fopen("/sys/module/rdma_post/parameters/devices", "r");

	self->fd = -1;
	self->driver_id = -1;
	self->kmsg = -1;
	self->path = getenv("RPOST_TEST_MODULE");
	if (f) {
		if (fgets(self->before, sizeof(self->before), f))
			self->before[strcspn(self->before, "\n")] = 0;
		fclose(f);
	}
	if (!self->path || geteuid())
		SKIP(return, "needs root, and the module's file in RPOST_TEST_MODULE");
	self->kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, self->kmsg);
	ASSERT_EQ(0, unload_module());
	ASSERT_LE(0, lseek(self->kmsg, 0, SEEK_END));
}

FIXTURE_TEARDOWN(admit)
{
	if (self->fd >= 0)
		close(self->fd);
	if (self->kmsg < 0)
		return;
	close(self->kmsg);
	if (self->driver_id >= 0)
		EXPECT_EQ(0, sim_becomes(self->driver_id));
	EXPECT_EQ(0, unload_module());
	EXPECT_EQ(0, load_module(self->path, self->before));
}

static int query(FIXTURE_DATA(admit) *self, struct rpost_query *cmd)
{
	*cmd = (struct rpost_query) {
		.size = sizeof(*cmd),
		.num_devices = 0xa5a5a5a5,
		.num_refused = 0xa5a5a5a5,
	};
	if (self->fd < 0)
		self->fd = rp_open();
	return self->fd < 0 ? -errno : rp_ioctl(self->fd, RPOST_IOC_QUERY, cmd);
}

/* Returns how many new lines of the log contain both strings. */
static int lines(FIXTURE_DATA(admit) *self, const char *one, const char *other)
{
	char line[8192];
	int count = 0;
	ssize_t n;

	for (;;) {
		n = read(self->kmsg, line, sizeof(line) - 1);
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return count;
		line[n] = 0;
		count += strstr(line, one) && strstr(line, other);
	}
}

/* With this parameter, no device of these tests is offered. */
#define NONE	"-rxe,-siw,-rdmasim,-mlx5"

TEST_F(admit, offered)
{
	struct rpost_query cmd;

	ASSERT_EQ(0, load_module(self->path, ""));
	ASSERT_EQ(0, query(self, &cmd));
	EXPECT_LT(0, cmd.num_devices);
	EXPECT_EQ(0, cmd.num_refused);
	EXPECT_EQ(0, lines(self, "rdma_post: ", "not offered"));
}

/* Refused devices are counted and logged once, and cannot be used. */
TEST_F(admit, refused)
{
	struct rpost_query_devices devices = { .size = sizeof(devices) };
	struct rpost_query_device device = { .size = sizeof(device) };
	struct rpost_query cmd;
	uint32_t all, pd, i;

	ASSERT_EQ(0, load_module(self->path, ""));
	ASSERT_EQ(0, query(self, &cmd));
	all = cmd.num_devices;
	close(self->fd);
	self->fd = -1;
	ASSERT_EQ(0, unload_module());

	ASSERT_EQ(0, load_module(self->path, NONE));
	ASSERT_EQ(0, query(self, &cmd));
	EXPECT_EQ(0, cmd.num_devices);
	EXPECT_EQ(all, cmd.num_refused);
	EXPECT_EQ(all, lines(self, "rdma_post: ", "not offered"));

	ASSERT_EQ(0, rp_ioctl(self->fd, RPOST_IOC_QUERY_DEVICES, &devices));
	EXPECT_EQ(0, devices.count);
	/* Devices get the first numbers, even those that are not offered. */
	for (i = 0; i < all + 2; i++) {
		device.device = i;
		EXPECT_EQ(-ENODEV, rp_ioctl(self->fd, RPOST_IOC_QUERY_DEVICE,
					    &device));
		EXPECT_EQ(-ENODEV, rp_alloc_pd(self->fd, i, &pd));
	}
	EXPECT_EQ(0, rp_num_objects(self->fd));
}

/* QUERY refuses a reserved field that is set. */
TEST_F(admit, reserved_of_query)
{
	struct rpost_query cmd = {
		.size = sizeof(cmd), .reserved = 0xa5a5a5a5,
	};

	ASSERT_EQ(0, load_module(self->path, NONE));
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	EXPECT_EQ(-EOPNOTSUPP, rp_ioctl(self->fd, RPOST_IOC_QUERY, &cmd));
	cmd.reserved = 0;
	EXPECT_EQ(0, rp_ioctl(self->fd, RPOST_IOC_QUERY, &cmd));
	EXPECT_LT(0, cmd.num_refused);
}

/*
 * One more device than in @others is refused because of its driver, and the log
 * says so once.
 */
static void expect_never(struct __test_metadata *_metadata, FIXTURE_DATA(admit) *self,
			 const char *name, const struct rpost_query *others)
{
	struct rpost_query cmd;
	char driver[64];
	int i;

	snprintf(driver, sizeof(driver), "its driver (%s) gives any peer", name);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, query(self, &cmd));
		EXPECT_EQ(others->num_devices, cmd.num_devices);
		EXPECT_EQ(others->num_refused + 1, cmd.num_refused);
	}
	EXPECT_EQ(1, lines(self, "not offered: ", driver));
}

/* Some drivers open all memory to peers; no parameter makes them offered. */
TEST_F(admit, never_offered)
{
	static const struct {
		int id;
		const char *name;
	} drivers[] = {
		{ RDMA_DRIVER_HFI1, "hfi1" }, { RDMA_DRIVER_QIB, "qib" },
	};
	static const char * const devices[] = { "", "rdmasim", "mlx5,rdmasim" };
	struct rpost_query others;
	uint32_t i, j;
	FILE *f;

	f = rp_can_remove() ? fopen(SIM "/driver_id", "r") : NULL;
	if (!f)
		SKIP(return, "needs rdmasim, RPOST_TEST_REMOVE and RPOST_TEST_ADD");
	ASSERT_EQ(1, fscanf(f, "%d", &self->driver_id));
	fclose(f);
	for (i = 0; i < ARRAY_SIZE(drivers); i++) {
		/* The device is added while the module is loaded. */
		ASSERT_EQ(0, rp_remove_device());
		ASSERT_EQ(0, load_module(self->path, ""));
		ASSERT_EQ(0, query(self, &others));
		ASSERT_EQ(0, sim_becomes(drivers[i].id));
		expect_never(_metadata, self, drivers[i].name, &others);
		/* The module is loaded while the device exists. */
		for (j = 0; j < ARRAY_SIZE(devices); j++) {
			close(self->fd);
			self->fd = -1;
			ASSERT_EQ(0, unload_module());
			ASSERT_EQ(0, load_module(self->path, devices[j]));
			expect_never(_metadata, self, drivers[i].name, &others);
		}
		close(self->fd);
		self->fd = -1;
		ASSERT_EQ(0, unload_module());
		EXPECT_EQ(-EINVAL, load_module(self->path, drivers[i].name));
		EXPECT_EQ(1, lines(self, "rdma_post: devices=", "is never offered"));
	}
}

TEST_F(admit, good_names)
{
	static const char * const good[] = {
		"rxe", "efa,mthca", "-hfi1", "mlx5,-rxe", "rdmasim",
		"some_module,efa",
	};
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		EXPECT_EQ(0, load_module(self->path, good[i]))
			TH_LOG("devices=%s", good[i]);
		EXPECT_EQ(0, unload_module());
	}
	/*
	 * The log mentions each name that is in no row of the module's table.
	 */
	EXPECT_EQ(2, lines(self, "rdma_post: ", "name of a module"));
}

/* The module does not load, and the log says why. */
TEST_F(admit, bad_names)
{
	static const char * const bad[] = {
		"hfi1", "qib", "efa,hfi1", ",", "efa,", ",efa", "efa,,mthca",
		"-", "efa,-", "--efa", "e fa", "*",
		"an_exceedingly_long_name_that_no_module_of_any_kernel_that_there_is_can_have",
	};
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, load_module(self->path, bad[i]))
			TH_LOG("devices=%s", bad[i]);
		EXPECT_EQ(1, lines(self, "rdma_post: devices=", bad[i]))
			TH_LOG("devices=%s", bad[i]);
	}
}

TEST_HARNESS_MAIN
