// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post: looks at /dev/rdma_post and who uses it. */
#include <string.h>

#include "tool.h"

static const struct tool_command commands[] = {
	{ "cdi", cdi_command, "a file by which container engines give the node" },
	{ "devices", devices_command, "the RDMA devices, and which programs may use" },
	{ "doctor", doctor_command, "why RDMA does not work here, and what to do" },
	{ "list", list_command, "who has the node open, and what for" },
	{ "show", show_command, "all that is known of the open files of a process" },
	{ "stat", stat_command, "what programs have done, or do in a second" },
	{ "top", top_command, "the same, live" },
	{ "trace", trace_command, "what connections and queues do, as it happens" },
};

static void help(void)
{
	size_t i;

	puts("Usage: rdma-post COMMAND [OPTION...]\n"
	     "       rdma-post --help | --version\n\n"
	     "Commands; each has --help:");
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].help);
	puts("\nEach command prints JSON with -j.\n\n"
	     "Exit status: 0 if all is fine, 1 for findings, 2 for wrong usage or failure");
}

/* Output that is lost must not look like success. */
static int finish(int status)
{
	if (fflush(stdout) || ferror(stdout))
		return tool_error("cannot write: %m");
	return status;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	size_t i;

	text_init();
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		help();
		return finish(TOOL_FINE);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		puts("rdma-post " TOOL_VERSION);
		return finish(TOOL_FINE);
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(name, commands[i].name))
			return finish(commands[i].run(argc - 1, argv + 1));
	if (argc < 2)
		tool_error("no command");
	else
		tool_error("%s: unknown command", name);
	return tool_usage(NULL);
}
