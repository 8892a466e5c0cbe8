// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post trace: what connections and queues do, as it happens. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "open_files.h"
#include "tool.h"
#include "tracefs.h"
#include "trace_text.h"
#include "wait.h"

/* So many files of a process fit into a filter. */
#define MAX_FILES	64

static struct {
	bool json;
	unsigned long count;
	unsigned long printed;
	unsigned long lost;
} trace;

static void help(void)
{
	puts("Usage: rdma-post trace [-e EVENT[,EVENT...]] [--pid PID] [-n COUNT]\n"
	     "                       [-s SECONDS] [-j]\n\n"
	     "Shows what programs do over /dev/rdma_post as it happens, from the module's\n"
	     "tracepoints. Only root may trace.\n\n"
	     "  -e, --event EVENT      only these, any of:\n"
	     "                           state       a connection's id has another state\n"
	     "                           event       of the connection manager\n"
	     "                           post        work requests were posted\n"
	     "                           completion  a work request has completed\n"
	     "      --pid PID          only files that this process opens, has opened, or has\n"
	     "                         at the begin\n"
	     "  -n, --count COUNT      end after so many events\n"
	     "  -s, --seconds SECONDS  end after this time\n"
	     "  -j, --json             print a JSON object in each line\n"
	     "  -h, --help             print this\n\n"
	     "Exit status: 0, or 2 for wrong usage or failure");
}

/* ----------------------------------------------------------- filter */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads names of events.  Returns the tracepoints, each once, or NULL after a message. */
static char **read_events(const struct tool_options *options, size_t *num)
{
	char **names = tool_alloc(1, sizeof(*names)), *list, *rest, *word;
	const char *name;
	size_t i, n = 0;

	for (i = 0; i < options->num_events; i++) {
		list = rest = text_printf("%s", options->events[i]);
		while ((word = strsep(&rest, ","))) {
			name = trace_point(word);
			if (!name) {
				tool_error("trace: %s: no such event; there are state, event, post, completion",
					   word);
				free(list);
				free(names);
				return NULL;
			}
			names = tool_grow(names, n, sizeof(*names));
			names[n++] = (char *)name;
		}
		free(list);
	}
	qsort(names, n, sizeof(*names), compare_names);
	for (i = 0, *num = 0; i < n; i++)
		if (!i || strcmp(names[i], names[i - 1]))
			names[(*num)++] = names[i];
	return names;
}

/*
 * Makes a filter for the kernel: what a process opens, and what it has now from others.
 * Returns NULL after a message.
 */
static char *make_filter(pid_t pid)
{
	char *filter = text_printf("pid == %d", pid), *more;
	struct open_files all;
	size_t i, n = 0;

	if (!file_exists("/proc/%d", pid)) {
		tool_error("trace: there is no process %d", pid);
		free(filter);
		return NULL;
	}
	if (open_files_get(&all)) {
		free(filter);
		return NULL;
	}
	for (i = 0; i < all.num; i++) {
		const struct open_file *file = &all.files[i];

		if (!file->known || !holder_find(file, pid))
			continue;
		if (n++ == MAX_FILES) {
			tool_error("trace: process %d has more than %d files; of those that others have opened some are not shown",
				   pid, MAX_FILES);
			break;
		}
		more = text_printf("%s || file == %" PRIu64, filter, file->info.file);
		free(filter);
		filter = more;
	}
	open_files_free(&all);
	return filter;
}

/* ------------------------------------------------------------ lines */

/* Returns the time of the day, in microseconds since 1970, of a time that a line has. */
static uint64_t day_time(const struct tracefs_line *line)
{
	uint64_t then = line->seconds * 1000000ull + line->micros;
	uint64_t since = wait_now() / 1000 - then;
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000ull + now.tv_nsec / 1000 - since;
}

static void print_line(struct tracefs_line *line)
{
	struct trace_event event;

	if (line->lost) {
		trace.lost += line->num_lost;
		if (trace.json)
			trace_lost_json(line);
		else
			trace_lost_text(line);
		return;
	}
	memset(&event, 0, sizeof(event));
	event.line = line;
	if (line->known) {
		event.time = day_time(line);
		trace_parse(&event);
	}
	if (trace.json)
		trace_event_json(&event);
	else
		trace_event_text(&event);
	trace.printed++;
}

/* Prints what has come.  Returns false at the end; @status gets a failure. */
static bool print_lines(int *status)
{
	struct tracefs_line line;

	if (tracefs_read()) {
		*status = tool_error("trace: cannot read the kernel's events: %m");
		return false;
	}
	while (tracefs_next(&line)) {
		print_line(&line);
		if (trace.count && trace.printed == trace.count)
			break;
	}
	return !fflush(stdout) && (!trace.count || trace.printed < trace.count);
}

/* Returns the exit status, and the signal that has ended it. */
static int run(uint64_t nanoseconds, int *sig)
{
	uint64_t end = nanoseconds ? wait_now() + nanoseconds : UINT64_MAX, next;
	enum wait_for what = WAIT_INPUT;
	int status = TOOL_FINE;

	for (;;) {
		next = wait_now() + 1000000000;
		what = wait_until(next < end ? next : end, tracefs_fd(), sig);
		/* One more read: nobody who ends it waits for a full buffer to be printed. */
		if (what == WAIT_SIGNAL && *sig == SIGPIPE)
			return TOOL_FINE;
		if (!print_lines(&status) || what == WAIT_SIGNAL || wait_now() >= end)
			return status;
		if (what == WAIT_TIME && !tracefs_runs())
			return tool_error("trace: the module " MODULE_NAME " was unloaded");
	}
}

static int begin(const struct tool_options *options, char **events, size_t num_events)
{
	char *filter = NULL;
	int status;

	if (options->pid) {
		filter = make_filter(options->pid);
		if (!filter)
			return TOOL_FAILED;
	}
	status = tracefs_begin(filter, events, num_events);
	free(filter);
	return status;
}

static int trace_run(const struct tool_options *options, char **events, size_t num_events)
{
	int status, end, sig = 0, err;

	trace.json = options->json;
	trace.count = options->count;
	wait_init(false);
	/* A reader that has gone must not keep us from removing the instance. */
	signal(SIGPIPE, SIG_IGN);
	status = begin(options, events, num_events);
	if (status)
		return status;
	if (!trace.json)
		trace_titles();
	if (!fflush(stdout))
		status = run(options->interval, &sig);
	err = errno;
	end = tracefs_end();
	if (sig == SIGPIPE || (ferror(stdout) && err == EPIPE))
		wait_end(SIGPIPE);
	if (trace.lost)
		tool_error("trace: %lu events were lost: they came faster than they were read; --pid and --event choose some",
			   trace.lost);
	errno = err;
	return status ? status : end;
}

/**
 * trace_command() - show what programs do as it happens
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int trace_command(int argc, char **argv)
{
	static const struct option known[] = {
		{ "event", required_argument, NULL, 'e' },
		{ "pid", required_argument, NULL, TOOL_PID },
		{ "count", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct tool_options options = {
		.help = help, .known = known, .letters = "e:n:s:jh",
	};
	int status = tool_options(argc, argv, &options);
	size_t num_events;
	char **events;

	if (status >= 0)
		return status;
	events = read_events(&options, &num_events);
	if (!events)
		return tool_usage("trace");
	status = trace_run(&options, events, num_events);
	free(events);
	free(options.events);
	return status;
}
