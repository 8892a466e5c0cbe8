// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The release of the running kernel.
 */
#include <stdio.h>
#include <sys/utsname.h>

#include "kernel_release.h"

/* Return the release as a number: 6.1 is 6001. */
unsigned int kernel_release(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	sscanf(u.release, "%u.%u", &major, &minor);
	return major * 1000 + minor;
}

/*
 * From 6.9 to before 7.2, when a queue pair stops while rxe handles the last
 * packet of a message, rxe handles that packet again with each receive that is
 * posted, and may crash if there is none (do_complete() in rxe_resp.c).
 * 6.12.117 has the fix.
 */
bool rxe_repeats_a_packet(void)
{
	unsigned int release = kernel_release(), sublevel = 0;
	struct utsname u;

	uname(&u);
	if (sscanf(u.release, "6.12.%u", &sublevel) == 1 && sublevel >= 117)
		return false;
	return release >= 6009 && release < 7002;
}
