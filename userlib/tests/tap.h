/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The parts of TAP that this test needs. */
#ifndef TAP_H
#define TAP_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

/* Reports one test point; returns @pass. */
static inline bool tap_ok(bool pass, const char *what, const char *file,
			  int line)
{
	tap_failed += !pass;
	printf("%sok %d %s\n", pass ? "" : "not ", ++tap_count, what);
	if (!pass)
		printf("# %s:%d: errno %d (%s)\n", file, line, errno,
		       strerror(errno));
	fflush(stdout);
	return pass;
}

#define ok(cond)	tap_ok(!!(cond), #cond, __FILE__, __LINE__)

/* Ends the test if @cond is false, since the rest depends on it. */
#define need(cond) \
	do { \
		if (!(cond)) { \
			tap_ok(false, #cond, __FILE__, __LINE__); \
			printf("Bail out! %s\n", #cond); \
			exit(1); \
		} \
	} while (0)

static inline int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif /* TAP_H */
