/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* An instance of ours in tracefs, which traces the module's tracepoints. */
#ifndef TRACEFS_H
#define TRACEFS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct tracefs_line - what the kernel has printed
 * @lost: it says that events were lost, on @cpu
 * @num_lost: how many, or 0 if that is not known
 * @known: it is an event: the further members are set
 * @text: what the event says; of a line that is no event all of it
 * @name: the event
 * @task: name of the task that was running
 * @tid: its number
 * @cpu: where it was running
 * @seconds: of the monotonic clock
 * @micros: and microseconds
 */
struct tracefs_line {
	bool lost;
	unsigned long num_lost;
	bool known;
	char *text;
	char *name;
	char task[17];
	int tid;
	int cpu;
	unsigned long long seconds;
	unsigned int micros;
};

int tracefs_begin(const char *filter, char *const *events, size_t num_events);
int tracefs_fd(void);
bool tracefs_runs(void);
int tracefs_read(void);
bool tracefs_next(struct tracefs_line *line);
int tracefs_end(void);

#endif /* TRACEFS_H */
