/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sweeps the failure points of a step: the kernel fails the nth allocation or
 * user copy of this thread, for each n until no failure is left.
 */
#ifndef FAILNTH_SWEEP_H
#define FAILNTH_SWEEP_H

#include "commands.h"

/* The sum over all tests, in shared memory: each test is a process. */
struct swept {
	unsigned int points;
	bool commands[MAX_COMMANDS];
};

extern struct swept *swept;
extern int nth_fd;

struct scene;

/**
 * struct sweep - a step whose failure points are swept
 * @name: the name in messages
 * @before: prepares the step; it is not swept
 * @step: the step, which returns 0 or a negative errno
 * @after: undoes the step; without @again also @before and a failed step
 * @again: a failed step has changed nothing, and is repeated
 * @whole: the step begins and ends without objects; after a failure, the sweep
 *         of the next failure point repeats it
 * @may_say: allowed errors other than missing memory, ended by a 0
 */
struct sweep {
	const char *name;
	int (*before)(struct scene *s);
	int (*step)(struct scene *s);
	int (*after)(struct scene *s);
	bool again;
	bool whole;
	int may_say[4];
};

bool have_injection(void);
void note_command(unsigned long nr);
int sweep(const struct sweep *sw, struct scene *s);

#endif /* FAILNTH_SWEEP_H */
