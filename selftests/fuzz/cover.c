// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Measures coverage by KCOV, with an area for each of a program's two threads.
 * Only the module is instrumented, so all addresses are in its code.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

#define KCOV_PATH	"/sys/kernel/debug/kcov"
#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_DISABLE	_IO('c', 101)
#define KCOV_TRACE_PC	0
#define COVER_WORDS	(256 << 10)

static uint64_t *areas[2];
static uint64_t text_base;

/* Returns the address of the module's code, or 0. */
static uint64_t module_base(void)
{
	unsigned long long base = 0;
	FILE *f = fopen("/sys/module/rdma_post/sections/.text", "r");

	if (!f)
		return 0;
	if (fscanf(f, "%llx", &base) != 1)
		base = 0;
	fclose(f);
	return base;
}

/* Returns 0, or a negative errno if there is no KCOV. */
int cover_open(int kcov[2])
{
	int i;

	kcov[0] = -1;
	kcov[1] = -1;
	text_base = module_base();
	if (!text_base)
		return -ENOENT;
	for (i = 0; i < 2; i++) {
		kcov[i] = open(KCOV_PATH, O_RDWR | O_CLOEXEC);
		if (kcov[i] < 0 || ioctl(kcov[i], KCOV_INIT_TRACE, COVER_WORDS))
			return -errno;
		areas[i] = mmap(NULL, COVER_WORDS * 8, PROT_READ | PROT_WRITE,
				MAP_SHARED, kcov[i], 0);
		if (areas[i] == MAP_FAILED)
			return -errno;
		/*
		 * The kernel writes to these areas itself; child processes need
		 * no copy.
		 */
		madvise(areas[i], COVER_WORDS * 8, MADV_DONTFORK);
	}
	return 0;
}

bool cover_begin(int kcov)
{
	return kcov >= 0 && !ioctl(kcov, KCOV_ENABLE, KCOV_TRACE_PC);
}

void cover_end(int kcov)
{
	if (kcov >= 0)
		ioctl(kcov, KCOV_DISABLE, 0);
}

void cover_reset(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (areas[i])
			areas[i][0] = 0;
	}
}

/* Collect offsets into the module's code, possibly with duplicates. */
unsigned int cover_collect(uint32_t *offsets, unsigned int max)
{
	unsigned int n = 0, a;
	uint64_t count, i, offset;

	for (a = 0; a < 2; a++) {
		if (!areas[a])
			continue;
		count = areas[a][0];
		if (count > COVER_WORDS - 1)
			count = COVER_WORDS - 1;
		for (i = 1; i <= count && n < max; i++) {
			offset = areas[a][i] - text_base;
			if (offset < COVER_MAX)
				offsets[n++] = offset;
		}
	}
	return n;
}
