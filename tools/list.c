// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post list: who has /dev/rdma_post open, and what for. */
#include <inttypes.h>
#include <stdlib.h>

#include "open_files.h"
#include "table.h"
#include "tool.h"

static void help(void)
{
	puts("Usage: rdma-post list [-j]\n\n"
	     "Lists the open files of /dev/rdma_post and the processes that hold them. A file\n"
	     "that several processes share is counted once: further holders follow with '\"'.\n"
	     "K, M and G are units of 1024 bytes. What is not known is '-'. Root with\n"
	     "CAP_SYS_PTRACE sees the files of all processes, others see their own.\n"
	     "rdma-post(8) says what is not found.\n\n"
	     "  -j, --json   print JSON\n"
	     "  -h, --help   print this\n\n"
	     "Exit status: 0, or 2 for wrong usage or failure");
}

static void print_json(const struct open_files *all)
{
	size_t i;

	json_object(NULL);
	json_array("files");
	for (i = 0; i < all->num; i++) {
		const struct open_file *file = &all->files[i];

		json_object(NULL);
		open_file_json(file);
		json_optional("objects", file->known,
			      fdinfo_sum(&file->info, "objects-"));
		json_optional("connections", file->known,
			      fdinfo_number(&file->info, "connections"));
		json_optional("bytes_charged", file->known,
			      fdinfo_number(&file->info, "bytes-charged"));
		json_optional("bytes_pinned", file->known,
			      fdinfo_number(&file->info, "bytes-pinned"));
		json_end();
	}
	json_end();
	open_files_json(all);
	json_end();
}

/* The cells that belong to the file, not to a holder. */
static void add_numbers(struct table *table, const struct fdinfo *info)
{
	char *devices = fdinfo_devices(info, ","), buf[UNITS_SIZE];

	table_cell(table, "%s", *devices ? devices : "-");
	table_cell(table, "%" PRIu64, fdinfo_sum(info, "objects-"));
	table_cell(table, "%" PRIu64, fdinfo_number(info, "connections"));
	table_cell(table, "%s", units(buf, fdinfo_number(info, "bytes-charged"), 1024));
	table_cell(table, "%s", units(buf, fdinfo_number(info, "bytes-pinned"), 1024));
	free(devices);
}

static void add_file(struct table *table, const struct open_file *file)
{
	size_t i, j;

	for (i = 0; i < file->num_holders; i++) {
		const struct holder *holder = &file->holders[i];

		if (file->known)
			table_cell(table, "%" PRIu64, file->info.file);
		else
			table_cell(table, "-");
		table_cell(table, "%d", holder->pid);
		table_cell(table, "%s", holder->user);
		table_cell(table, "%s", holder->program);
		table_cell(table, "%s", holder->container ? holder->container : "-");
		if (file->known && !i) {
			add_numbers(table, &file->info);
			continue;
		}
		for (j = 0; j < 5; j++)
			table_cell(table, "%s", i ? "\"" : "-");
	}
}

static void print_text(const struct open_files *all)
{
	static const char *const titles[] = {
		">FILE", ">PID", "USER", "PROGRAM", "CONTAINER", "DEVICE", ">OBJECTS",
		">CONNECTIONS", ">CHARGED", ">PINNED", NULL
	};
	struct table table = { .titles = titles };
	size_t i;

	for (i = 0; i < all->num; i++)
		add_file(&table, &all->files[i]);
	table_print(&table, "");
}

/**
 * list_command() - list the open files of /dev/rdma_post
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int list_command(int argc, char **argv)
{
	struct tool_options options = { .help = help };
	int status = tool_options(argc, argv, &options);
	struct open_files all;

	if (status >= 0)
		return status;
	status = open_files_get(&all);
	if (status)
		return status;
	if (options.json)
		print_json(&all);
	else
		print_text(&all);
	open_files_warn(&all);
	open_files_free(&all);
	return TOOL_FINE;
}
