/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Control groups (version 2) for the tests.  They need root.  Functions return
 * 0 or a negative errno unless their comment says otherwise.
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

const char *cg_root(void);
int cg_open(const char *dir, const char *file, int flags);
int cg_put(const char *dir, const char *file, const char *text);
int __attribute__((format(printf, 3, 4))) cg_write(const struct cgroup *cg,
		  const char *file, const char *format, ...);
int cg_read(const struct cgroup *cg, const char *file, char *text, size_t size);
long long cg_number(const struct cgroup *cg, const char *file, const char *key);
bool cg_has(const char *controller);

static inline int cg_create(struct cgroup *cg, const char *name)
{
	snprintf(cg->path, sizeof(cg->path), "%s/rpost_%s_%d", cg_root(), name,
		 getpid());
	return mkdir(cg->path, 0755) ? -errno : 0;
}

/* Move this process into @cg; NULL is the root cgroup. */
static inline int cg_enter(const struct cgroup *cg)
{
	return cg_put(cg ? cg->path : cg_root(), "cgroup.procs", "0");
}

int cg_remove(const struct cgroup *cg);

/* The kernel returns charges late, and each CPU keeps some in reserve. */
#define CG_MEMORY_SLACK	(2 << 20)

long long cg_memory(const struct cgroup *cg);
long long cg_wait_memory(const struct cgroup *cg, long long most);
long long cg_settled(const struct cgroup *cg,
		     long long (*number)(const struct cgroup *cg), int ms);
long long cg_settled_memory(const struct cgroup *cg);

#endif /* RPOST_CGROUP_H */
