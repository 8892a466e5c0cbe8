/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Control groups (version 2) for the tests, which need root for them.  Functions
 * return 0 or a negative errno unless their comment says otherwise.
 */
#ifndef RPOST_CGROUP_H
#define RPOST_CGROUP_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct cgroup {
	char path[128];
};

/* Where the hierarchy is mounted, or the empty string. */
static inline const char *cg_root(void)
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

static inline int cg_open(const char *dir, const char *file, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static inline int cg_put(const char *dir, const char *file, const char *text)
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

static inline int __attribute__((format(printf, 3, 4)))
cg_write(const struct cgroup *cg, const char *file, const char *format, ...)
{
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return cg_put(cg->path, file, text);
}

static inline int cg_read(const struct cgroup *cg, const char *file, char *text,
			  size_t size)
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

/* What stands behind a key, or all there is if it is NULL; -1 if nothing does. */
static inline long long cg_number(const struct cgroup *cg, const char *file,
				  const char *key)
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

/* Has the kernel the controller, and may it be used here? */
static inline bool cg_has(const char *controller)
{
	char text[32];

	if (!*cg_root())
		return false;
	snprintf(text, sizeof(text), "+%s", controller);
	return !cg_put(cg_root(), "cgroup.subtree_control", text);
}

static inline int cg_create(struct cgroup *cg, const char *name)
{
	snprintf(cg->path, sizeof(cg->path), "%s/rpost_%s_%d", cg_root(), name,
		 getpid());
	return mkdir(cg->path, 0755) ? -errno : 0;
}

/* Move this process there; NULL is the root. */
static inline int cg_enter(const struct cgroup *cg)
{
	return cg_put(cg ? cg->path : cg_root(), "cgroup.procs", "0");
}

/* Its last process may still be on its way out. */
static inline int cg_remove(const struct cgroup *cg)
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

#endif /* RPOST_CGROUP_H */
