/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory whose pages come late, or whose mapping changes meanwhile.
 */
#ifndef MAPPING_H
#define MAPPING_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Return a userfaultfd, opened with these flags, that gets the faults of missing
 * pages; or -1.
 */
int fault_fd(void *p, size_t bytes, unsigned int flags);

/* Eight pages that a thread changes. */
struct change {
	void *p;
	size_t page;
	unsigned long rounds;
	bool stop;
};

/* A thread: change the pages of a struct change, in seven ways, until it is told to stop. */
void *change_mappings(void *arg);

#endif /* MAPPING_H */
