// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The memory that the kernel charges to a control group.
 */
#define _GNU_SOURCE
#include "cgroup.h"
#include "rpost_test.h"

/* Return the charged memory in bytes. */
long long cg_memory(const struct cgroup *cg)
{
	return cg_number(cg, "memory.current", NULL);
}

/* Wait until at most @most bytes are charged; return the last number read. */
long long cg_wait_memory(const struct cgroup *cg, long long most)
{
	uint64_t end = rp_now_ms() + 2 * TEST_TIMEOUT_MS;
	long long now;

	do {
		now = cg_memory(cg);
	} while (now > most && rp_now_ms() < end && !usleep(10000));
	return now;
}

/* Wait until @number is not 0 and has not changed for @ms; return it. */
long long cg_settled(const struct cgroup *cg,
		     long long (*number)(const struct cgroup *cg), int ms)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long long before, now = number(cg);

	do {
		before = now;
		usleep(ms * 1000);
		now = number(cg);
	} while ((!now || now != before) && rp_now_ms() < end);
	return now;
}

/* Return the charged memory once the kernel has returned late charges. */
long long cg_settled_memory(const struct cgroup *cg)
{
	return cg_settled(cg, cg_memory, 500);
}
