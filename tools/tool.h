/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma-post: what its commands share.
 *
 * A command is one file with a function, a row in the table in main.c, and a
 * declaration here.
 */
#ifndef TOOL_H
#define TOOL_H

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit status of every command. */
enum {
	TOOL_FINE	= 0,
	TOOL_FINDINGS	= 1,	/* doctor: a problem; devices, show: there is none */
	TOOL_FAILED	= 2,	/* wrong usage, or the command cannot work */
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/**
 * struct tool_command - one command
 * @name: what the user writes
 * @run: gets the command's arguments, with its name as the first, and returns
 *	 the exit status
 * @help: one line
 */
struct tool_command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
};

int cdi_command(int argc, char **argv);
int devices_command(int argc, char **argv);
int doctor_command(int argc, char **argv);
int limit_command(int argc, char **argv);
int list_command(int argc, char **argv);
int run_command(int argc, char **argv);
int show_command(int argc, char **argv);
int stat_command(int argc, char **argv);
int top_command(int argc, char **argv);
int trace_command(int argc, char **argv);

/* options.c */

/* The values of options that have no letter. */
#define TOOL_PROMETHEUS	256
#define TOOL_PID	257

/**
 * struct tool_options - options of a command
 * @help: prints the command's help
 * @known: of getopt_long(); NULL for --json and --help alone
 * @letters: of getopt_long(), for @known
 * @operands: how many arguments that are no options it has at most
 * @json: --json, -j
 * @prometheus: --prometheus
 * @quiet: --quiet, -q
 * @program: --program, -p, or NULL
 * @peer: --to, -t, or NULL
 * @output: --output, -o, or NULL
 * @interval: --interval, -i, or --seconds, -s, in nanoseconds
 * @count: --count, -n
 * @pid: --pid
 * @events: the arguments of --event, -e; to be freed
 * @num_events: how many
 *
 * The command sets the first four, and the values of what the user does not give.
 */
struct tool_options {
	void (*help)(void);
	const struct option *known;
	const char *letters;
	int operands;
	bool json;
	bool prometheus;
	bool quiet;
	const char *program;
	const char *peer;
	const char *output;
	uint64_t interval;
	unsigned long count;
	pid_t pid;
	const char **events;
	size_t num_events;
};

pid_t tool_pid(const char *command, const char *text);
int tool_options(int argc, char **argv, struct tool_options *options);

/* text.c */
enum text_color { TEXT_PLAIN, TEXT_BOLD, TEXT_RED, TEXT_GREEN, TEXT_YELLOW };

void text_init(void);
int text_utf8_length(const unsigned char *s);
void text_put(const char *text);
void text_color(enum text_color color, const char *text, int width);
char *text_vprintf(const char *format, va_list args)
	__attribute__((format(printf, 1, 0)));
char *text_printf(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
char *text_replace(const char *text, char from, char to);
void *tool_no_memory(void);
void *tool_alloc(size_t n, size_t size);
void *tool_grow(void *array, size_t n, size_t size);
int tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
int tool_usage(const char *command);

/* progress.c */
void progress_show(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
void progress_end(void);

/* json.c: one object or array on standard output */
void json_object(const char *key);
void json_line(void);
void json_array(const char *key);
void json_end(void);
void json_string(const char *key, const char *value);
void json_number(const char *key, uint64_t value);
void json_optional(const char *key, bool known, uint64_t value);
void json_bool(const char *key, bool value);

/* file.c */
#define MODULE_NAME	"rdma_post"

int module_minor(void);
int file_line(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
char *file_read(const char *path, size_t max, size_t *size);
int file_open(const char *path);
bool file_exists(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
char *file_kernel_log(void);
char *file_command(char *const argv[]);

/* nl.c */
struct nlattr;
struct nlmsghdr;

/* Called for each message of the answer. */
typedef void (*nl_handler)(const struct nlmsghdr *msg, void *arg);

int nl_request(int protocol, uint16_t type, uint16_t flags, const void *body,
	       size_t len, nl_handler handle, void *arg);
const struct nlattr *nl_attr(const struct nlmsghdr *msg, size_t skip,
			     uint16_t type);
uint64_t nl_attr_uint(const struct nlattr *attr);
const char *nl_attr_string(const struct nlattr *attr);

#endif /* TOOL_H */
