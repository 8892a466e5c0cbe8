// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How fast the time stamp counter runs that QEMU's emulator gives its guests:
 * the host's.  Prints kHz.  A guest on a busy host cannot measure it.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

/* The counter, and the time in ns, in the same moment as far as that goes. */
static uint64_t read_both(uint64_t *ns)
{
	uint64_t before, after, best = UINT64_MAX, tsc = 0;
	struct timespec ts;
	int i;

	for (i = 0; i < 1000; i++) {
		before = __rdtsc();
		clock_gettime(CLOCK_MONOTONIC, &ts);
		after = __rdtsc();
		if (after - before >= best)
			continue;
		best = after - before;
		tsc = before + best / 2;
		*ns = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	}
	return tsc;
}

int main(void)
{
	uint64_t ns[2], tsc[2];

	tsc[0] = read_both(&ns[0]);
	usleep(300000);
	tsc[1] = read_both(&ns[1]);
	printf("%llu\n", (unsigned long long)
	       ((double)(tsc[1] - tsc[0]) * 1e6 / (ns[1] - ns[0])));
	return 0;
}
