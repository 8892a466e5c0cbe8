// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Random numbers that a seed repeats, by xorshift64*; and the time. */
#include <time.h>

#include "fuzz.h"

static uint64_t state = 1;

void rnd_seed(uint64_t seed)
{
	state = seed ? seed : 1;
}

uint64_t rnd64(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1dull;
}

uint32_t rnd(uint32_t below)
{
	return below ? (rnd64() >> 32) % below : 0;
}

bool one_in(uint32_t n)
{
	return !rnd(n);
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}
