/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The release of the running kernel, for tests whose result depends on it.
 */
#ifndef KERNEL_RELEASE_H
#define KERNEL_RELEASE_H

#include <stdbool.h>

/* Return the release as a number: 6.1 is 6001. */
unsigned int kernel_release(void);

/*
 * Before 6.2, ib_core pins memory for reading with FOLL_WRITE and FOLL_FORCE,
 * so private memory of any protection can be registered, but a shared read-only
 * mapping cannot.
 */
static inline bool pins_by_force(void)
{
	return kernel_release() < 6002;
}

bool rxe_repeats_a_packet(void);

/*
 * Before 6.9, rxe sends, receives and completes for kernel queue pairs in
 * tasklets, which run when a post enables bottom halves again.
 */
static inline bool rxe_works_in_posts(void)
{
	return kernel_release() < 6009;
}

#endif /* KERNEL_RELEASE_H */
