// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of objects and resources, to find leaks.
 */
#include "base/base.h"

static atomic_long_t rpost_counts[RPOST_NUM_COUNTS];

/* what is of enum rpost_obj_type or enum rpost_count.  n may be negative. */
void rpost_count(unsigned int what, long n)
{
	atomic_long_add(n, &rpost_counts[what]);
}

/* Like rpost_count(), and change the same counter of an open file. */
void rpost_file_count(struct rpost_file *file, unsigned int what, long n)
{
	atomic_long_add(n, &file->counts[what]);
	rpost_count(what, n);
}

long rpost_count_read(unsigned int what)
{
	return atomic_long_read(&rpost_counts[what]);
}
