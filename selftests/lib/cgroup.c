// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Control groups (version 2): helpers for the tests.
 */
#define _GNU_SOURCE
#include "cgroup.h"

/* Return the mount point of the cgroup2 hierarchy, or the empty string. */
const char *cg_root(void)
{
	static char root[64];
	struct mntent *entry;
	FILE *f;

	if (*root)
		return root;
	f = setmntent("/proc/mounts", "r");
	while (f && !*root && (entry = getmntent(f))) {
		if (!strcmp(entry->mnt_type, "cgroup2"))
			snprintf(root, sizeof(root), "%s", entry->mnt_dir);
	}
	if (f)
		endmntent(f);
	return root;
}

int cg_open(const char *dir, const char *file, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cg_put(const char *dir, const char *file, const char *text)
{
	int fd = cg_open(dir, file, O_WRONLY);
	int ret = 0;

	if (fd < 0)
		return fd;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int __attribute__((format(printf, 3, 4))) cg_write(const struct cgroup *cg,
		  const char *file, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return cg_put(cg->path, file, text);
}

int cg_read(const struct cgroup *cg, const char *file, char *text, size_t size)
{
	int fd = cg_open(cg->path, file, O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = 0;
	return 0;
}

/*
 * Return the number after @key in @file, or the file's only number if @key is
 * NULL; -1 if there is no such number.
 */
long long cg_number(const struct cgroup *cg, const char *file, const char *key)
{
	char text[8192], *at = text;
	size_t len = key ? strlen(key) : 0;

	if (cg_read(cg, file, text, sizeof(text)))
		return -1;
	if (!key)
		return atoll(text);
	while (at) {
		if (!strncmp(at, key, len) && at[len] == ' ')
			return atoll(at + len);
		at = strchr(at, '\n');
		at += !!at;
	}
	return -1;
}

/* True if the kernel has the controller and the tests can enable it. */
bool cg_has(const char *controller)
{
	char text[32];

	if (!*cg_root())
		return false;
	snprintf(text, sizeof(text), "+%s", controller);
	return !cg_put(cg_root(), "cgroup.subtree_control", text);
}

/* A cgroup stays busy until its last process has exited, so try again. */
int cg_remove(const struct cgroup *cg)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	int tries;

	for (tries = 0; tries < 1000; tries++) {
		if (!rmdir(cg->path))
			return 0;
		if (errno != EBUSY)
			break;
		nanosleep(&pause, NULL);
	}
	return -errno;
}
