/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What all open files have done, at a time and between two times. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "cgroups.h"
#include "open_files.h"

/**
 * enum sample_total - sums of what a file has done
 * @SAMPLE_OPS: operations of all kinds
 * @SAMPLE_OUT: bytes sent and written
 * @SAMPLE_IN: bytes received and read
 * @SAMPLE_COMPLETIONS: completions
 * @SAMPLE_ERRORS: completions with an error
 * @SAMPLE_SLEEPS: times that a task has slept for an event
 * @SAMPLE_COMMANDS: ioctls
 * @SAMPLE_TOTALS: number of sums
 */
enum sample_total {
	SAMPLE_OPS,
	SAMPLE_OUT,
	SAMPLE_IN,
	SAMPLE_COMPLETIONS,
	SAMPLE_ERRORS,
	SAMPLE_SLEEPS,
	SAMPLE_COMMANDS,
	SAMPLE_TOTALS,
};

/**
 * struct sample - all files at a time
 * @files: they
 * @cgroups: those that have a policy; none without privileges
 * @time: when they were looked at, in nanoseconds of the monotonic clock
 * @took: how long that took
 */
struct sample {
	struct open_files files;
	struct cgroups cgroups;
	uint64_t time;
	uint64_t took;
};

int sample_take(struct sample *sample);
uint64_t sample_next(const struct sample *sample, uint64_t interval);
void sample_free(struct sample *sample);
const struct fdinfo *sample_before(const struct sample *before, const struct open_file *file);
bool sample_missed(const struct sample *before, const struct open_file *file);
uint64_t sample_total(const struct fdinfo *info, enum sample_total total);
uint64_t sample_done(const struct sample *before, const struct open_file *file,
		     enum sample_total total);
uint64_t sample_rate(const struct sample *before, const struct sample *now,
		     const struct open_file *file, enum sample_total total);
void sample_json(const struct sample *before, const struct sample *now);
int stat_rates(uint64_t interval, unsigned long count, bool json);

#endif /* SAMPLE_H */
