// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What all open files have done, at a time and between two times. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"
#include "tool.h"
#include "wait.h"

/* The keys that each sum has. */
static const char *const keys[SAMPLE_TOTALS][6] = {
	[SAMPLE_OPS] = { "total-ops-send", "total-ops-write", "total-ops-read",
			 "total-ops-atomic", "total-ops-recv" },
	[SAMPLE_OUT] = { "total-bytes-send", "total-bytes-write" },
	[SAMPLE_IN] = { "total-bytes-recv", "total-bytes-read" },
	[SAMPLE_COMPLETIONS] = { "total-completions" },
	[SAMPLE_ERRORS] = { "total-errors" },
	[SAMPLE_SLEEPS] = { "total-comp-sleeps", "total-cm-sleeps" },
	[SAMPLE_COMMANDS] = { "total-commands" },
};

/**
 * sample_take() - look at all files
 * @sample: gets them; to be freed by sample_free()
 *
 * Return: 0, or the exit status after a message.
 */
int sample_take(struct sample *sample)
{
	int status, fd;

	sample->time = wait_now();
	status = open_files_get(&sample->files);
	sample->cgroups = (struct cgroups) {};
	fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		cgroups_get(&sample->cgroups, fd);
		close(fd);
	}
	sample->took = wait_now() - sample->time;
	return status;
}

/**
 * sample_next() - when to take the next sample
 * @sample: the last
 * @interval: that the user wants, in nanoseconds
 *
 * To look at very many files must not keep a CPU busy.
 *
 * Return: the time, at which we will have slept for as long as we have worked.
 */
uint64_t sample_next(const struct sample *sample, uint64_t interval)
{
	uint64_t least = 2 * sample->took;

	return sample->time + (interval > least ? interval : least);
}

/**
 * sample_free() - free what sample_take() has allocated
 * @sample: it
 */
void sample_free(struct sample *sample)
{
	open_files_free(&sample->files);
	cgroups_free(&sample->cgroups);
}

/**
 * sample_before() - look for a file in an earlier sample
 * @before: the earlier one, or NULL
 * @file: the file
 *
 * Return: what was known of it, or NULL if it had not been opened.
 */
const struct fdinfo *sample_before(const struct sample *before, const struct open_file *file)
{
	const struct open_file *then = NULL;

	if (before && file->known)
		then = open_files_find(&before->files, file->info.file);
	return then ? &then->info : NULL;
}

/**
 * sample_missed() - was a file there at an earlier sample, and not seen?
 * @before: the earlier one, or NULL
 * @file: the file
 *
 * Numbers rise, so it was if a later one was seen: for instance its descriptor was on its
 * way to another process.
 *
 * Return: whether it was; then nothing tells what it has done since.
 */
bool sample_missed(const struct sample *before, const struct open_file *file)
{
	return before && file->known && !sample_before(before, file) &&
	       file->info.file <= before->files.last;
}

/* A counter that has gone back belongs to another file: the module was loaded again. */
static uint64_t grown(uint64_t then, uint64_t now)
{
	return now < then ? now : now - then;
}

/**
 * sample_total() - return what a file has done since it was opened
 * @info: of the file
 * @total: which sum
 *
 * Return: the sum.
 */
uint64_t sample_total(const struct fdinfo *info, enum sample_total total)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; keys[total][i]; i++)
		sum += fdinfo_number(info, keys[total][i]);
	return sum;
}

/**
 * sample_done() - return what a file has done since an earlier sample
 * @before: the earlier sample, or NULL for all since the file was opened
 * @file: the file
 * @total: which sum
 *
 * Return: the difference, or 0 if it is not known (sample_missed()).
 */
uint64_t sample_done(const struct sample *before, const struct open_file *file,
		     enum sample_total total)
{
	const struct fdinfo *then = sample_before(before, file);

	if (sample_missed(before, file))
		return 0;
	return grown(then ? sample_total(then, total) : 0,
		     sample_total(&file->info, total));
}

/**
 * sample_rate() - return what a file does in a second
 * @before: the earlier sample
 * @now: the later sample
 * @file: the file
 * @total: which sum
 *
 * Return: the rate, rounded.
 */
uint64_t sample_rate(const struct sample *before, const struct sample *now,
		     const struct open_file *file, enum sample_total total)
{
	double seconds = (now->time - before->time) / 1e9;

	return sample_done(before, file, total) / seconds + 0.5;
}

static void file_json(const struct sample *before, const struct open_file *file)
{
	const struct fdinfo *then = sample_before(before, file);
	bool missed = sample_missed(before, file);
	static const char prefix[] = "total-";
	char *name;
	size_t i;

	json_object(NULL);
	open_file_json(file);
	json_object("done");
	for (i = 0; i < file->info.num_values; i++) {
		const struct fdinfo_value *value = &file->info.values[i];

		if (strncmp(value->key, prefix, strlen(prefix)) || !value->is_number)
			continue;
		name = text_replace(value->key + strlen(prefix), '-', '_');
		json_optional(name, !missed,
			      grown(then ? fdinfo_number(then, value->key) : 0,
				    value->number));
		free(name);
	}
	json_end();
	json_end();
}

/**
 * sample_json() - print what all files have done, as an object in an array
 * @before: since this sample, or NULL for all since the files were opened
 * @now: until this sample
 */
void sample_json(const struct sample *before, const struct sample *now)
{
	size_t i;

	json_object(NULL);
	json_optional("nanoseconds", before != NULL,
		      before ? now->time - before->time : 0);
	json_array("files");
	for (i = 0; i < now->files.num; i++)
		file_json(before, &now->files.files[i]);
	json_end();
	open_files_json(&now->files);
	json_array("cgroups");
	cgroups_json(&now->cgroups);
	json_end();
	json_end();
}
