// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reads the options of all commands. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "tool.h"

/* For a command that has no others. */
static const struct option common[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ }
};

/* Reads seconds, maybe with a fraction.  Returns nanoseconds, or 0 after a message. */
static uint64_t read_interval(const char *command, const char *text)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end != text && !*end && seconds >= 0.1 && seconds <= 86400)
		return seconds * 1e9;
	tool_error("%s: %s: not a number of seconds from 0.1 to 86400", command, text);
	return 0;
}

/* Reads a number of samples.  Returns 0 after a message. */
static unsigned long read_count(const char *command, const char *text)
{
	unsigned long count;
	char *end;

	errno = 0;
	count = strtoul(text, &end, 10);
	if (!errno && end != text && !*end && *text != '-' && count)
		return count;
	tool_error("%s: %s: not a number of 1 or more", command, text);
	return 0;
}

/* Reads a PID.  Returns 0 after a message. */
pid_t tool_pid(const char *command, const char *text)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (!errno && end != text && !*end && pid >= 1 && pid <= INT_MAX)
		return pid;
	tool_error("%s: %s: not a PID", command, text);
	return 0;
}

/* Returns false for an option that is unknown, or whose argument is wrong. */
static bool take(const char *command, int opt, struct tool_options *options)
{
	switch (opt) {
	case 'j':
		options->json = true;
		return true;
	case 'q':
		options->quiet = true;
		return true;
	case 'p':
		options->program = optarg;
		return true;
	case 't':
		options->peer = optarg;
		return true;
	case 'o':
		options->output = optarg;
		return true;
	case 'i':
	case 's':
		options->interval = read_interval(command, optarg);
		return options->interval;
	case 'n':
		options->count = read_count(command, optarg);
		return options->count;
	case 'e':
		options->events = tool_grow(options->events, options->num_events,
					    sizeof(*options->events));
		options->events[options->num_events++] = optarg;
		return true;
	case TOOL_PID:
		options->pid = tool_pid(command, optarg);
		return options->pid;
	case TOOL_PROMETHEUS:
		options->prometheus = true;
		return true;
	default:
		return false;
	}
}

/**
 * tool_options() - read the options of a command
 * @argc: number of @argv
 * @argv: the command's name and its arguments; those that are no options are
 *	  from optind on
 * @options: what the command has; gets what the user has given
 *
 * Return: -1 to go on, or the exit status, after --help or a message.
 */
int tool_options(int argc, char **argv, struct tool_options *options)
{
	const struct option *known = options->known ? options->known : common;
	const char *letters = options->letters ? options->letters : "jh";
	char *command = argv[0];
	int opt;

	/* getopt's messages begin with it. */
	argv[0] = text_printf("rdma-post: %s", command);
	while ((opt = getopt_long(argc, argv, letters, known, NULL)) != -1) {
		if (opt == 'h') {
			options->help();
			return TOOL_FINE;
		}
		if (!take(command, opt, options))
			return tool_usage(command);
	}
	free(argv[0]);
	argv[0] = command;
	if (optind + options->operands < argc) {
		tool_error("%s: %s: unexpected argument", argv[0],
			   argv[optind + options->operands]);
		return tool_usage(argv[0]);
	}
	return -1;
}
