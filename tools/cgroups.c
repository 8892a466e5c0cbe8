// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cgroups that have a policy. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cgroups.h"
#include "tool.h"

/* A cgroup's id is the handle of its directory, see open_by_handle_at(2). */
#define HANDLE_OF_KERNFS	0xfe

/**
 * cgroups_find() - find where cgroups (version 2) are mounted
 *
 * Return: the directory, to be freed; or NULL.
 */
char *cgroups_find(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount = NULL;
	char *dir;

	while (mounts && (mount = getmntent(mounts)))
		if (!strcmp(mount->mnt_type, "cgroup2"))
			break;
	dir = mount ? text_printf("%s", mount->mnt_dir) : NULL;
	if (mounts)
		endmntent(mounts);
	return dir;
}

/* Returns the name of a cgroup, to be freed. */
static char *name_of(const char *dir, int dir_fd, uint64_t id)
{
	struct {
		struct file_handle handle;
		uint64_t id;
	} of = {
		.handle = { .handle_bytes = sizeof(id), .handle_type = HANDLE_OF_KERNFS },
		.id = id,
	};
	size_t skip = strlen(dir);
	char link[32], path[PATH_MAX];
	ssize_t length = -1;
	int fd;

	fd = open_by_handle_at(dir_fd, &of.handle, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		length = readlink(link, path, sizeof(path) - 1);
		close(fd);
	}
	if (length < 0)
		return text_printf("%s%llu", errno == ESTALE ? "(gone) " : "",
				   (unsigned long long)id);
	path[length] = '\0';
	if (strncmp(path, dir, skip))
		return text_printf("%s", path);
	return text_printf("%s", path[skip] == '/' ? path + skip + 1 : ".");
}

static void get_all(struct cgroups *cgroups, int fd, const char *dir, int dir_fd)
{
	struct cgroup *cgroup;
	uint64_t last = 0;

	for (;;) {
		cgroups->all = tool_grow(cgroups->all, cgroups->num, sizeof(*cgroup));
		cgroup = &cgroups->all[cgroups->num];
		cgroup->now.size = sizeof(cgroup->now);
		cgroup->now.flags = RPOST_POLICY_CGROUP;
		cgroup->now.cgroup = last;
		cgroup->now.rules.peers = (uintptr_t)cgroup->policy.peers;
		cgroup->now.rules.num_peers = RPOST_MAX_PEERS;
		if (ioctl(fd, RPOST_IOC_GET_POLICY, &cgroup->now))
			return;
		last = cgroup->now.cgroup;
		cgroup->policy.rules = cgroup->now.rules;
		cgroup->name = name_of(dir, dir_fd, last);
		cgroups->num++;
	}
}

/**
 * cgroups_get() - get all cgroups that have a policy
 * @cgroups: gets them; to be freed by cgroups_free(), also after an error
 * @fd: of the device
 *
 * Return: 0, or an errno value: EPERM without privileges, ENOTTY with an old module.
 */
int cgroups_get(struct cgroups *cgroups, int fd)
{
	char *dir = cgroups_find();
	int dir_fd, err;

	*cgroups = (struct cgroups) {};
	if (!dir)
		return 0;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	get_all(cgroups, fd, dir, dir_fd);
	err = errno == ENOENT ? 0 : errno;
	if (dir_fd >= 0)
		close(dir_fd);
	free(dir);
	return err;
}

/**
 * cgroups_free() - free what cgroups_get() has allocated
 * @cgroups: it
 */
void cgroups_free(struct cgroups *cgroups)
{
	while (cgroups->num)
		free(cgroups->all[--cgroups->num].name);
	free(cgroups->all);
}

/**
 * cgroups_before() - look for a cgroup among those of an earlier time
 * @before: these, or NULL
 * @cgroup: the cgroup
 *
 * Return: it, with counters that are not higher; or NULL.
 */
const struct cgroup *cgroups_before(const struct cgroups *before, const struct cgroup *cgroup)
{
	const struct rpost_get_policy *now = &cgroup->now, *was;
	size_t i;

	for (i = 0; before && i < before->num; i++) {
		was = &before->all[i].now;
		if (was->cgroup == now->cgroup && was->ops <= now->ops &&
		    was->bytes <= now->bytes && was->errors <= now->errors &&
		    was->waits <= now->waits && was->refusals <= now->refusals)
			return &before->all[i];
	}
	return NULL;
}

/**
 * cgroups_json() - print cgroups as objects in an array
 * @cgroups: they
 */
void cgroups_json(const struct cgroups *cgroups)
{
	const struct rpost_get_policy *now;
	char *text;
	size_t i;

	for (i = 0; i < cgroups->num; i++) {
		now = &cgroups->all[i].now;
		text = policy_text(&cgroups->all[i].policy);
		json_object(NULL);
		json_string("cgroup", cgroups->all[i].name);
		json_number("id", now->cgroup);
		json_string("policy", text);
		json_number("operations", now->ops);
		json_number("bytes", now->bytes);
		json_number("errors", now->errors);
		json_number("waits", now->waits);
		json_number("waited_us", now->waited_us);
		json_number("refusals", now->refusals);
		json_number("pinned_bytes", now->pinned);
		json_number("connections", now->num_qps);
		json_end();
		free(text);
	}
}
