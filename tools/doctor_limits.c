// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: limits of locked memory and of cgroups. */
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor.h"

#define CGROUPS		"/sys/fs/cgroup"
/* One message may lie in two pages; with less, nothing can be received. */
#define LITTLE_MEMLOCK	(2 * sysconf(_SC_PAGESIZE))
#define GOOD_MEMLOCK	(64u << 20)
/* Objects of a small program with one connection. */
#define FEW_OBJECTS	8
#define LITTLE_MEMORY	(16u << 20)
/* PROC_CGROUP_INIT_INO of the kernel */
#define HOST_CGROUPS	"cgroup:[4026531835]"

/* CAP_IPC_LOCK counts in the initial user namespace only, which maps all users. */
static bool may_lock_all(void)
{
	unsigned int first, parent, count;
	char map[64];
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	file_line(map, sizeof(map), "/proc/self/uid_map");
	if (sscanf(map, "%u %u %u", &first, &parent, &count) != 3 ||
	    first || parent || count != UINT32_MAX)
		return false;
	return !syscall(SYS_capget, &head, data) &&
	       data[0].effective & 1u << CAP_IPC_LOCK;
}

/* Returns true if some memory can be registered. */
static bool check_memlock(struct doctor *doc)
{
	struct rlimit limit;
	bool all = may_lock_all(), little;
	char memlock[4];

	file_line(memlock, sizeof(memlock), "/sys/module/" MODULE_NAME "/parameters/memlock");
	if (memlock[0] == 'N') {
		doctor_report(doc, (struct finding){
			.check = "limits.memlock",
			.object = text_printf("locked memory"),
			.what = text_printf("the module has memlock=0: the memory cgroup and max_user_pinned bound it"),
		});
		return true;
	}
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (all || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= GOOD_MEMLOCK) {
		doctor_report(doc, (struct finding){
			.check = "limits.memlock",
			.object = text_printf("locked memory"),
			.what = all ? text_printf("no limit, by CAP_IPC_LOCK") :
				limit.rlim_cur == RLIM_INFINITY ? text_printf("no limit") :
				text_printf("%ju KiB", (uintmax_t)limit.rlim_cur / 1024),
		});
		return true;
	}
	little = limit.rlim_cur < (rlim_t)LITTLE_MEMLOCK;
	doctor_report(doc, (struct finding){
		.check = "limits.memlock",
		.status = little ? DOCTOR_PROBLEM : DOCTOR_NOTE,
		.object = text_printf("locked memory"),
		.what = text_printf("this user may lock %ju KiB, and all registered memory counts",
				    (uintmax_t)limit.rlim_cur / 1024),
		.advice = text_printf("ulimit -l KIB up to the hard limit; memlock in /etc/security/limits.conf; LimitMEMLOCK= of a service; --ulimit memlock=-1 of a container"),
	});
	return !little;
}

/* Sets the path of this process's cgroup below CGROUPS; false without cgroup v2. */
static bool own_cgroup(char *path, size_t size)
{
	char *text = file_read("/proc/self/cgroup", 65536, NULL), *line, *rest = text;
	bool found = false;

	while (rest && (line = strsep(&rest, "\n"))) {
		if (strncmp(line, "0::/", 4))
			continue;
		found = file_exists(CGROUPS "/cgroup.controllers");
		snprintf(path, size, "%s", line + 3);
	}
	free(text);
	return found;
}

/* Returns the value behind NAME= in a line of rdma.max, or UINT64_MAX for "max". */
static uint64_t rdma_value(const char *line, const char *name)
{
	const char *value = strstr(line, name);

	if (!value || !strncmp(value + strlen(name), "max", 3))
		return UINT64_MAX;
	return strtoull(value + strlen(name), NULL, 10);
}

/* Returns a line's device if it is offered, or NULL. */
static struct rdma_dev *offered_dev(const struct doctor *doc, const char *line)
{
	size_t i, len;

	for (i = 0; i < doc->devs.num; i++) {
		struct rdma_dev *dev = &doc->devs.devs[i];

		len = strlen(dev->name);
		if (!strncmp(line, dev->name, len) && line[len] == ' ')
			return dev->offered ? dev : NULL;
	}
	return NULL;
}

/* Returns what @line's device uses of @name, by rdma.current of the same group. */
static uint64_t rdma_used(const char *cgroup, const char *line, const char *name)
{
	char *path = text_printf(CGROUPS "%s/rdma.current", cgroup);
	char *text = file_read(path, 65536, NULL), *other, *rest = text;
	size_t len = strcspn(line, " ") + 1;
	uint64_t used = 0;

	while (rest && (other = strsep(&rest, "\n")))
		if (!strncmp(other, line, len))
			used = rdma_value(other, name);
	free(text);
	free(path);
	return used;
}

static void check_rdma_line(struct doctor *doc, struct rdma_dev *dev, const char *cgroup,
			    const char *line)
{
	static const struct {
		const char *name;
		uint64_t few;
	} kinds[] = { { "hca_handle=", 1 }, { "hca_object=", FEW_OBJECTS } };
	uint64_t max, used;
	bool full;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		max = rdma_value(line, kinds[i].name);
		if (max == UINT64_MAX)
			continue;
		used = rdma_used(cgroup, line, kinds[i].name);
		full = max < used + kinds[i].few;
		dev->no_queues |= full;
		doctor_report(doc, (struct finding){
			.check = "limits.rdma_cgroup",
			.status = full ? DOCTOR_PROBLEM : DOCTOR_NOTE,
			.object = text_printf("cgroup %s", cgroup[0] ? cgroup : "/"),
			.what = text_printf("%s is limited to %s%ju, of which %ju are used",
					    dev->name, kinds[i].name, (uintmax_t)max,
					    (uintmax_t)used),
			.advice = full ?
				text_printf("raise rdma.max in " CGROUPS "%s", cgroup) : NULL,
		});
	}
}

static void check_rdma(struct doctor *doc, const char *cgroup)
{
	char *path = text_printf(CGROUPS "%s/rdma.max", cgroup);
	char *text = file_read(path, 65536, NULL), *line, *rest = text;
	struct rdma_dev *dev;

	while (rest && (line = strsep(&rest, "\n"))) {
		dev = offered_dev(doc, line);
		if (dev)
			check_rdma_line(doc, dev, cgroup, line);
	}
	free(text);
	free(path);
}

/* Returns what the kernel takes back before it fails: page cache, and slabs. */
static uint64_t reclaimable(const char *cgroup)
{
	static const char *const names[] = {
		"active_file ", "inactive_file ", "slab_reclaimable ",
	};
	char *path = text_printf(CGROUPS "%s/memory.stat", cgroup);
	char *text = file_read(path, 65536, NULL), *line, *rest = text;
	uint64_t sum = 0;
	size_t i;

	while (rest && (line = strsep(&rest, "\n")))
		for (i = 0; i < ARRAY_SIZE(names); i++)
			if (!strncmp(line, names[i], strlen(names[i])))
				sum += strtoull(line + strlen(names[i]), NULL, 10);
	free(text);
	free(path);
	return sum;
}

static void check_memory(struct doctor *doc, const char *cgroup)
{
	char max[32], current[32];
	uint64_t left, limit, used, back;

	if (file_line(max, sizeof(max), CGROUPS "%s/memory.max", cgroup) ||
	    !strcmp(max, "max") ||
	    file_line(current, sizeof(current), CGROUPS "%s/memory.current", cgroup))
		return;
	limit = strtoull(max, NULL, 10);
	used = strtoull(current, NULL, 10);
	back = reclaimable(cgroup);
	used -= back < used ? back : used;
	left = limit > used ? limit - used : 0;
	if (left < LITTLE_MEMORY && doc->has > NEED_DEVICE)
		doc->has = NEED_DEVICE;
	doctor_report(doc, (struct finding){
		.check = "limits.memory_cgroup",
		.status = left < LITTLE_MEMORY ? DOCTOR_PROBLEM : DOCTOR_NOTE,
		.object = text_printf("cgroup %s", cgroup[0] ? cgroup : "/"),
		.what = text_printf("memory is limited to %ju KiB, of which %ju KiB are left",
				    (uintmax_t)limit / 1024, (uintmax_t)left / 1024),
		.why = left < LITTLE_MEMORY ?
			text_printf("queues, rings and registered memory count, and fail with ENOMEM") :
			NULL,
		.advice = left < LITTLE_MEMORY ?
			text_printf("raise memory.max in " CGROUPS "%s", cgroup) : NULL,
	});
}

static bool in_namespace(void)
{
	char link[64] = "";

	return readlink("/proc/self/ns/cgroup", link, sizeof(link) - 1) > 0 &&
	       strcmp(link, HOST_CGROUPS);
}

static void check_cgroups(struct doctor *doc)
{
	char cgroup[PATH_MAX];
	size_t num;

	if (!own_cgroup(cgroup, sizeof(cgroup))) {
		doctor_report(doc, (struct finding){
			.check = "limits.cgroup",
			.status = DOCTOR_UNKNOWN,
			.object = text_printf("cgroup"),
			.what = text_printf("limits are not looked at: no cgroup v2 in " CGROUPS),
		});
		return;
	}
	num = doc->num;
	/* Each group above counts, too; a namespace's root has limits, the host's none. */
	if (!strcmp(cgroup, "/"))
		cgroup[0] = '\0';
	for (;;) {
		check_rdma(doc, cgroup);
		check_memory(doc, cgroup);
		if (!cgroup[0])
			break;
		*strrchr(cgroup, '/') = '\0';
	}
	if (in_namespace())
		doctor_report(doc, (struct finding){
			.check = "limits.cgroup_namespace",
			.status = DOCTOR_UNKNOWN,
			.object = text_printf("cgroup"),
			.what = text_printf("limits of the groups above this cgroup namespace cannot be seen"),
			.advice = text_printf("if there is ENOMEM or EAGAIN nevertheless, look on the host at memory.max and rdma.max"),
		});
	if (doc->num == num)
		doctor_report(doc, (struct finding){
			.check = "limits.cgroup",
			.object = text_printf("cgroup"),
			.what = text_printf("no limit of RDMA objects or memory"),
		});
}

/**
 * check_limits() - limits of memory and of objects
 * @doc: the visit
 */
void check_limits(struct doctor *doc)
{
	if (check_memlock(doc) && doc->has == NEED_CONNECTION)
		doc->has = NEED_MEMORY;
	check_cgroups(doc);
}
