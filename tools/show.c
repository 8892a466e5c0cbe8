// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post show PID: all that the kernel tells of the open files of a process. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "open_files.h"
#include "table.h"
#include "tool.h"

static void help(void)
{
	puts("Usage: rdma-post show [-j] PID\n\n"
	     "Shows all that the kernel tells of the open files of /dev/rdma_post that a\n"
	     "process has: objects, memory, queues, limits, what it has done, connections.\n\n"
	     "  -j, --json   print JSON\n"
	     "  -h, --help   print this\n\n"
	     "Exit status: 0, 1 if the process has no such file, 2 for wrong usage or failure");
}

/* ----------------------------------------------------------- JSON */

static void values_json(const struct fdinfo *info)
{
	char *name;
	size_t i;

	json_object("values");
	for (i = 0; i < info->num_values; i++) {
		const struct fdinfo_value *value = &info->values[i];

		if (!strcmp(value->key, "device") || !strcmp(value->key, "file"))
			continue;
		/* jq needs no quotes then. */
		name = text_replace(value->key, '-', '_');
		if (value->is_number)
			json_number(name, value->number);
		else if (!strcmp(value->text, "none"))
			json_string(name, NULL);
		else
			json_string(name, value->text);
		free(name);
	}
	json_end();
}

static void number_json(const char *key, const char *text)
{
	json_optional(key, text != NULL, text ? strtoull(text, NULL, 10) : 0);
}

static void connections_json(const struct fdinfo *info)
{
	size_t i;

	json_array("connections");
	for (i = 0; i < info->num_connections; i++) {
		const struct fdinfo_connection *conn = &info->connections[i];

		json_object(NULL);
		number_json("id", conn->id);
		json_string("state", conn->state);
		json_bool("busy", conn->busy);
		json_string("device", conn->device);
		json_string("local", conn->src);
		json_string("peer", conn->dst);
		number_json("qp", conn->qp);
		json_optional("sq_used", conn->sq.known, conn->sq.used);
		json_optional("sq_size", conn->sq.known, conn->sq.size);
		json_optional("rq_used", conn->rq.known, conn->rq.used);
		json_optional("rq_size", conn->rq.known, conn->rq.size);
		json_end();
	}
	json_end();
}

static void print_json(const struct open_files *all, pid_t pid)
{
	size_t i;

	json_object(NULL);
	json_number("pid", pid);
	json_array("files");
	for (i = 0; i < all->num; i++) {
		if (!holder_find(&all->files[i], pid))
			continue;
		json_object(NULL);
		open_file_json(&all->files[i]);
		values_json(&all->files[i].info);
		connections_json(&all->files[i].info);
		json_end();
	}
	json_end();
	json_end();
}

/* ----------------------------------------------------------- text */

static bool starts(const char *key, const char *prefix)
{
	return !strncmp(key, prefix, strlen(prefix));
}

/* Returns the length of the name of a queue that key is the size or the use of, or 0. */
static size_t queue_name(const struct fdinfo *info, const char *key)
{
	const char *end = strrchr(key, '-');
	char other[64];
	uint64_t number;
	bool size;

	if (!end || end - key > 32)
		return 0;
	size = !strcmp(end, "-size");
	if (!size && strcmp(end, "-used"))
		return 0;
	snprintf(other, sizeof(other), "%.*s%s", (int)(end - key), key,
		 size ? "-used" : "-size");
	return fdinfo_get(info, other, &number) ? end - key : 0;
}

static void print_label(const char *key)
{
	char *label = text_replace(key, '-', ' ');

	fputs("    ", stdout);
	text_color(TEXT_PLAIN, label, 24);
	putchar(' ');
	free(label);
}

static void print_value(const struct fdinfo *info, const struct fdinfo_value *value,
			const char *label)
{
	size_t queue = queue_name(info, value->key);
	char buf[UNITS_SIZE], *key;

	if (queue) {
		if (strcmp(value->key + queue, "-used"))
			return;
		key = text_printf("%.*s-size", (int)queue, value->key);
		snprintf(buf, sizeof(buf), "%.*s", (int)queue, value->key);
		print_label(buf);
		printf("%s of %" PRIu64 " entries\n", value->text,
		       fdinfo_number(info, key));
		free(key);
		return;
	}
	print_label(label);
	text_put(value->text);
	if (value->is_number && strstr(value->key, "bytes")) {
		fputs(" bytes", stdout);
		if (value->number >= 10000)
			printf(" (%s)", units(buf, value->number, 1024));
	}
	putchar('\n');
}

/* Prints the values of a kind: those with a prefix, or, for NULL, all others. */
static void print_section(const struct fdinfo *info, const char *title, const char *prefix)
{
	size_t i;

	fputs("  ", stdout);
	text_color(TEXT_BOLD, title, 0);
	putchar('\n');
	for (i = 0; i < info->num_values; i++) {
		const struct fdinfo_value *value = &info->values[i];

		if (prefix && starts(value->key, prefix))
			print_value(info, value, value->key + strlen(prefix));
		else if (!prefix && !starts(value->key, "objects-") &&
			 !starts(value->key, "limit-") &&
			 !starts(value->key, "total-") && strcmp(value->key, "file"))
			print_value(info, value, value->key);
	}
}

static void fill_cell(struct table *table, const struct fdinfo_fill *fill)
{
	if (fill->known)
		table_cell(table, "%" PRIu64 "/%" PRIu64, fill->used, fill->size);
	else
		table_cell(table, "-");
}

static void print_connections(const struct fdinfo *info)
{
	static const char *const titles[] = {
		">ID", "STATE", "DEVICE", "LOCAL", "PEER", ">QP", ">SENDS", ">RECEIVES",
		NULL
	};
	struct table table = { .titles = titles };
	size_t i, j;

	if (!info->num_connections)
		return;
	for (i = 0; i < info->num_connections; i++) {
		const struct fdinfo_connection *conn = &info->connections[i];
		const char *const cells[] = {
			conn->id, conn->state, conn->device, conn->src, conn->dst, conn->qp
		};

		for (j = 0; j < ARRAY_SIZE(cells); j++)
			table_cell(&table, "%s%s", cells[j] ? cells[j] : "-",
				   j == 1 && conn->busy ? " (busy)" : "");
		fill_cell(&table, &conn->sq);
		fill_cell(&table, &conn->rq);
	}
	table_print(&table, "    ");
}

static void print_file(const struct open_file *file)
{
	size_t i, j;
	char *line;

	line = file->known ? text_printf("file %" PRIu64, file->info.file) :
			     text_printf("file");
	text_color(TEXT_BOLD, line, 0);
	free(line);
	putchar('\n');
	for (i = 0; i < file->num_holders; i++) {
		const struct holder *holder = &file->holders[i];

		printf("  held by process %d, ", holder->pid);
		text_put(holder->program);
		fputs(", user ", stdout);
		text_put(holder->user);
		fputs(holder->num_fds > 1 ? ", descriptors" : ", descriptor", stdout);
		for (j = 0; j < holder->num_fds; j++)
			printf(" %d", holder->fds[j]);
		fputs(", cgroup ", stdout);
		text_put(*holder->cgroup ? holder->cgroup : "-");
		putchar('\n');
	}
	if (!file->known)
		return;
	print_section(&file->info, "Objects", "objects-");
	print_section(&file->info, "At the moment", NULL);
	print_connections(&file->info);
	print_section(&file->info, "Limits", "limit-");
	print_section(&file->info, "Done since it was opened", "total-");
}

/* -------------------------------------------------------- command */

/* Says why there is nothing to show. */
static int nothing(pid_t pid)
{
	if (!file_exists("/proc/%d", pid))
		return tool_error("there is no process %d", pid);
	if (process_hidden(pid))
		return tool_error("process %d: only its user, and root with CAP_SYS_PTRACE, may look at its files",
				  pid);
	tool_error("process %d has no open file of /dev/rdma_post", pid);
	return TOOL_FINDINGS;
}

static int show(pid_t pid, bool json)
{
	struct open_files all;
	size_t i, found = 0;
	int status;

	status = open_files_get(&all);
	if (status)
		return status;
	for (i = 0; i < all.num; i++) {
		if (!holder_find(&all.files[i], pid))
			continue;
		if (!json && found)
			putchar('\n');
		if (!json)
			print_file(&all.files[i]);
		if (!all.files[i].known)
			tool_error("the kernel does not tell what the file has: not permitted, or the module is too old");
		found++;
	}
	if (!found)
		status = nothing(pid);
	else if (json)
		print_json(&all, pid);
	open_files_free(&all);
	return status;
}

/**
 * show_command() - show the open files of a process
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int show_command(int argc, char **argv)
{
	struct tool_options options = { .help = help, .operands = 1 };
	int status = tool_options(argc, argv, &options);
	pid_t pid;

	if (status >= 0)
		return status;
	if (optind == argc) {
		tool_error("show: no PID");
		return tool_usage("show");
	}
	pid = tool_pid("show", argv[optind]);
	if (!pid)
		return tool_usage("show");
	return show(pid, options.json);
}
