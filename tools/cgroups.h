/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Cgroups that have a policy. */
#ifndef CGROUPS_H
#define CGROUPS_H

#include <stddef.h>

#include "policy.h"

/**
 * struct cgroup - a cgroup that has a policy
 * @name: its path below where cgroups are mounted
 * @policy: its policy
 * @now: what the kernel tells of it
 */
struct cgroup {
	char *name;
	struct policy policy;
	struct rpost_get_policy now;
};

/**
 * struct cgroups - all of them
 * @num: number of @all
 * @all: they, by id
 */
struct cgroups {
	size_t num;
	struct cgroup *all;
};

char *cgroups_find(void);
int cgroups_get(struct cgroups *cgroups, int fd);
void cgroups_free(struct cgroups *cgroups);
const struct cgroup *cgroups_before(const struct cgroups *before, const struct cgroup *cgroup);
void cgroups_json(const struct cgroups *cgroups);

#endif /* CGROUPS_H */
