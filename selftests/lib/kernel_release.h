/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The kernel that runs, for tests of what differs between kernels.
 */
#ifndef KERNEL_RELEASE_H
#define KERNEL_RELEASE_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/utsname.h>

/* 6.1 is 6001. */
static inline unsigned int kernel_release(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	sscanf(u.release, "%u.%u", &major, &minor);
	return major * 1000 + minor;
}

/*
 * Before 6.2, ib_core pins memory that is only read as if it were written to,
 * and by force: private memory of any protection, but no shared memory that is
 * mapped for reading.
 */
static inline bool pins_by_force(void)
{
	return kernel_release() < 6002;
}

/*
 * From 6.9 to before 7.2 rxe takes the last packet of a message again if the queue
 * pair is stopped at that moment: with each receive that is posted, and with none
 * it may crash (do_complete() in rxe_resp.c).  6.12.117 has it mended.
 */
static inline bool rxe_repeats_a_packet(void)
{
	unsigned int release = kernel_release(), sublevel = 0;
	struct utsname u;

	uname(&u);
	if (sscanf(u.release, "6.12.%u", &sublevel) == 1 && sublevel >= 117)
		return false;
	return release >= 6009 && release < 7002;
}

/*
 * Before 6.9 rxe sends, receives and completes for kernel queue pairs in
 * tasklets, which run when a post enables bottom halves again.
 */
static inline bool rxe_works_in_posts(void)
{
	return kernel_release() < 6009;
}

#endif /* KERNEL_RELEASE_H */
