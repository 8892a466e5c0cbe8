// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post: looks at /dev/rdma_post and who uses it. */
#include <string.h>

#include "tool.h"

static const struct tool_command commands[] = {
	{ "cdi", cdi_command, "a file by which container engines give the node" },
	{ "devices", devices_command, "the RDMA devices, and which programs may use" },
	{ "doctor", doctor_command, "why RDMA does not work here, and what to do" },
	{ "limit", limit_command, "what programs of a cgroup may do, how fast, and with whom" },
	{ "list", list_command, "who has the node open, and what for" },
	{ "run", run_command, "a program that may do what a policy allows" },
	{ "show", show_command, "all that is known of the open files of a process" },
	{ "stat", stat_command, "what programs have done, or do in a second" },
	{ "top", top_command, "the same, live" },
	{ "trace", trace_command, "what connections and queues do, as it happens" },
};

static void help(void)
{
	size_t i;

	puts("Usage: rdma-post COMMAND [OPTION...]\n"
	     "       rdma-post help [COMMAND]\n"
	     "       rdma-post version\n\n"
	     "Commands:");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	puts("\nEach command but run prints JSON with -j, and its help with --help. Options that take\n"
	     "no argument may also stand before it: rdma-post -j list\n\n"
	     "Exit status: 0 if all is fine, 1 for findings, 2 for wrong usage or failure");
}

/* Output that is lost must not look like success. */
static int finish(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return tool_error("cannot write: %m");
	return status;
}

static const struct tool_command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

/* Prints the help of the command that the first argument names, or of all. */
static int help_command(int argc, char **argv)
{
	const struct tool_command *command;
	char option[] = "--help";
	char *args[] = { NULL, option, NULL };

	for (; argc && argv[0][0] == '-'; argc--)
		argv++;
	if (!argc) {
		help();
		return TOOL_FINE;
	}
	command = find_command(argv[0]);
	if (command && argc == 1) {
		args[0] = argv[0];
		return command->run(2, args);
	}
	if (command)
		tool_error("help: %s: unexpected argument", argv[1]);
	else
		tool_error("help: %s: unknown command", argv[0]);
	return tool_usage(NULL);
}

static bool is_one_of(const char *name, const char *word, const char *option,
		      const char *letter)
{
	return !strcmp(name, word) || !strcmp(name, option) || !strcmp(name, letter);
}

/*
 * Moves the options before the command behind its name.  Without a command the last
 * option stands for it, since it may be --help.
 */
static void take_name(char **argv)
{
	char *name;
	int n = 1;

	while (argv[n][0] == '-' && argv[n + 1])
		n++;
	name = argv[n];
	memmove(argv + 2, argv + 1, (n - 1) * sizeof(*argv));
	argv[1] = name;
}

int main(int argc, char **argv)
{
	const struct tool_command *command;

	text_init();
	if (argc < 2) {
		tool_error("no command");
		return tool_usage(NULL);
	}
	take_name(argv);
	if (is_one_of(argv[1], "version", "--version", "-V")) {
		if (argc > 2) {
			tool_error("version: %s: unexpected argument", argv[2]);
			return tool_usage(NULL);
		}
		puts("rdma-post " TOOL_VERSION);
		return finish(TOOL_FINE);
	}
	if (is_one_of(argv[1], "help", "--help", "-h"))
		return finish(help_command(argc - 2, argv + 2));
	command = find_command(argv[1]);
	if (command)
		return finish(command->run(argc - 1, argv + 1));
	if (argv[1][0] == '-')
		tool_error("no command");
	else
		tool_error("%s: unknown command", argv[1]);
	return tool_usage(NULL);
}
