/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The module's tracepoints in words and in JSON. */
#ifndef TRACE_TEXT_H
#define TRACE_TEXT_H

#include <stdint.h>

#include "tracefs.h"

#define TRACE_WORDS	16

/**
 * struct trace_event - an event
 * @line: what the kernel has printed
 * @time: microseconds since 1970
 * @point: index of the tracepoint, or negative if it is not one that we know
 * @pid: of the process that has opened the file
 * @program: its name
 * @num_words: number of @words
 * @words: of the form name=value, with a NUL in place of the sign
 */
struct trace_event {
	struct tracefs_line *line;
	uint64_t time;
	int point;
	int pid;
	const char *program;
	int num_words;
	char *words[TRACE_WORDS];
};

const char *trace_point(const char *name);
void trace_parse(struct trace_event *event);
void trace_titles(void);
void trace_event_text(const struct trace_event *event);
void trace_event_json(const struct trace_event *event);
void trace_lost_text(const struct tracefs_line *line);
void trace_lost_json(const struct tracefs_line *line);

#endif /* TRACE_TEXT_H */
