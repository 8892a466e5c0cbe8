// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Usage: hold share | hold many | hold fuse DIRECTORY
 *
 * Holds a file of /dev/rdma_post until a signal, as files.sh needs it: only by a
 * descriptor that names a device; by 1030 descriptors; or by one behind a descriptor on
 * a FUSE file system of another user, which refuses stat() even to root. Prints a line
 * when it is ready.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <rdma/rdma_post_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

static void hold_share(void)
{
	struct rpost_share_device share = { .size = sizeof(share) };
	struct rpost_query_devices query = {
		.size = sizeof(query), .devices = (uintptr_t)&share.device, .count = 1,
	};
	int fd = open(RPOST_DEVICE_PATH, O_RDWR);

	if (fd < 0 || ioctl(fd, RPOST_IOC_QUERY_DEVICES, &query) || !query.count)
		err(1, "%s", RPOST_DEVICE_PATH);
	if (ioctl(fd, RPOST_IOC_SHARE_DEVICE, &share))
		err(1, "SHARE_DEVICE");
	close(fd);
}

static void hold_many(void)
{
	struct rlimit limit = { 2048, 2048 };
	int fd, i;

	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "setrlimit");
	fd = open(RPOST_DEVICE_PATH, O_RDWR);
	for (i = 1; i < 1030 && fd >= 0; i++)
		if (dup(fd) < 0)
			fd = -1;
	if (fd < 0)
		err(1, "%s", RPOST_DEVICE_PATH);
}

/* Nobody answers for the file system: the kernel refuses before it asks. */
static void hold_fuse(const char *dir)
{
	int fuse = open("/dev/fuse", O_RDWR), low;
	char options[128];

	if (fuse < 0)
		err(1, "/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d",
		 fuse, 65534, 65534);
	if (mount("hold", dir, "fuse", 0, options))
		err(1, "mount");
	low = open(dir, O_PATH);
	if (low < 0 || umount2(dir, MNT_DETACH) || open(RPOST_DEVICE_PATH, O_RDWR) < low)
		err(1, "%s", dir);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "share"))
		hold_share();
	else if (argc == 2 && !strcmp(argv[1], "many"))
		hold_many();
	else if (argc == 3 && !strcmp(argv[1], "fuse"))
		hold_fuse(argv[2]);
	else
		errx(2, "usage: hold share | hold many | hold fuse DIRECTORY");
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
