// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which devices are offered: the module's parameter "devices", what QUERY says of
 * devices that are not offered, and what the log says.  Only as root and where
 * RPOST_TEST_MODULE is the module's file: it is loaded again, in the end with the
 * "devices" that it had.
 */
#include <kselftest_harness.h>
#include <sys/syscall.h>

#include "rpost_test.h"

FIXTURE(admit) {
	const char *path;
	char before[128];
	int kmsg;
	int fd;
};

static int unload_module(void)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	/* What delays the last reference is the kernel's. */
	do {
		ret = syscall(SYS_delete_module, "rdma_post", O_NONBLOCK) ?
			-errno : 0;
		if (ret == -EAGAIN)
			usleep(10000);
	} while (ret == -EAGAIN && rp_now_ms() < end);
	return ret == -ENOENT ? 0 : ret;
}

static int load_module(const char *path, const char *devices)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;
	char args[256];

	if (fd < 0)
		return -errno;
	snprintf(args, sizeof(args), "devices=\"%s\"", devices);
	ret = syscall(SYS_finit_module, fd, args, 0) ? -errno : 0;
	close(fd);
	return ret;
}

FIXTURE_SETUP(admit)
{
	FILE *f = fopen("/sys/module/rdma_post/parameters/devices", "r");

	self->fd = -1;
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

/* How many new lines of the log have both strings. */
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

TEST_F(admit, offered)
{
	struct rpost_query cmd;

	ASSERT_EQ(0, load_module(self->path, ""));
	ASSERT_EQ(0, query(self, &cmd));
	EXPECT_LT(0, cmd.num_devices);
	EXPECT_EQ(0, cmd.num_refused);
	EXPECT_EQ(0, lines(self, "rdma_post: ", "not offered"));
}

/* The devices are counted, told of once each, and nothing can be made on them. */
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

	ASSERT_EQ(0, load_module(self->path, "-rxe,-siw,-rdmasim"));
	ASSERT_EQ(0, query(self, &cmd));
	EXPECT_EQ(0, cmd.num_devices);
	EXPECT_EQ(all, cmd.num_refused);
	EXPECT_EQ(all, lines(self, "rdma_post: ", "not offered"));

	ASSERT_EQ(0, rp_ioctl(self->fd, RPOST_IOC_QUERY_DEVICES, &devices));
	EXPECT_EQ(0, devices.count);
	/* They have numbers, which are the first ones. */
	for (i = 0; i < all + 2; i++) {
		device.device = i;
		EXPECT_EQ(-ENODEV, rp_ioctl(self->fd, RPOST_IOC_QUERY_DEVICE,
					    &device));
		EXPECT_EQ(-ENODEV, rp_alloc_pd(self->fd, i, &pd));
	}
	EXPECT_EQ(0, rp_num_objects(self->fd));
}

/* A program of the first release, and a word that means nothing yet. */
TEST_F(admit, old_and_new_programs)
{
	struct rpost_query cmd = {
		.size = offsetof(struct rpost_query, num_refused),
		.num_refused = 0xa5a5a5a5,
		.reserved = 0xa5a5a5a5,
	};

	ASSERT_EQ(0, load_module(self->path, "-rxe,-siw,-rdmasim"));
	self->fd = rp_open();
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, rp_ioctl(self->fd, RPOST_IOC_QUERY, &cmd));
	EXPECT_EQ(0xa5a5a5a5, cmd.num_refused);
	EXPECT_EQ(0xa5a5a5a5, cmd.reserved);
	cmd.size = sizeof(cmd);
	EXPECT_EQ(-EOPNOTSUPP, rp_ioctl(self->fd, RPOST_IOC_QUERY, &cmd));
	cmd.reserved = 0;
	EXPECT_EQ(0, rp_ioctl(self->fd, RPOST_IOC_QUERY, &cmd));
	EXPECT_LT(0, cmd.num_refused);
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
	/* Those that no row of the table has are told. */
	EXPECT_EQ(2, lines(self, "rdma_post: ", "name of a module"));
}

/* Not loaded, and the log says why. */
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
