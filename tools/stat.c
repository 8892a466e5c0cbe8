// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post stat: what programs have done, or do in a second. */
#include <inttypes.h>
#include <stdlib.h>

#include "prometheus.h"
#include "sample.h"
#include "table.h"
#include "tool.h"
#include "wait.h"

/* In nanoseconds. */
#define LONG_INTERVAL	3000000000ull

static void help(void)
{
	puts("Usage: rdma-post stat [-i SECONDS] [-n COUNT] [-j]\n"
	     "       rdma-post stat --prometheus\n\n"
	     "Shows what each open file of /dev/rdma_post has done since it was opened, or,\n"
	     "with -i, does in a second: operations, bytes out (sends and writes) and in\n"
	     "(receives and reads), completions, errors, sleeps, commands. Root sees the\n"
	     "same of each cgroup that has a policy, with what has waited or was refused.\n\n"
	     "  -i, --interval SECONDS  rates, for each interval of 0.1 or more seconds\n"
	     "  -n, --count COUNT       end after so many intervals (of 1 second without -i)\n"
	     "      --prometheus        print totals in Prometheus' format\n"
	     "  -j, --json              print JSON; with -i what was done in each interval\n"
	     "  -h, --help              print this\n\n"
	     "Exit status: 0, or 2 for wrong usage or failure");
}

static void add_file(struct table *table, const struct sample *before,
		     const struct sample *now, const struct open_file *file)
{
	const struct holder *holder = &file->holders[0];
	bool tells = file->known && !sample_missed(before, file);
	char buf[UNITS_SIZE];
	uint64_t value;
	int i;

	if (file->known)
		table_cell(table, "%" PRIu64, file->info.file);
	else
		table_cell(table, "-");
	table_cell(table, "%d", holder->pid);
	table_cell(table, "%s", holder->user);
	table_cell(table, "%s", holder->program);
	for (i = 0; i < SAMPLE_TOTALS; i++) {
		if (!tells) {
			table_cell(table, "-");
			continue;
		}
		value = before ? sample_rate(before, now, file, i) :
				 sample_done(NULL, file, i);
		if (i == SAMPLE_OUT || i == SAMPLE_IN)
			table_cell(table, "%s", units(buf, value, 1024));
		else
			table_cell(table, "%" PRIu64, value);
	}
}

static uint64_t cgroup_value(const struct sample *before, const struct sample *now,
			     uint64_t then_value, uint64_t value)
{
	if (!before)
		return value;
	return (value - then_value) / ((now->time - before->time) / 1e9) + 0.5;
}

static void add_cgroup(struct table *table, const struct sample *before,
		       const struct sample *now, const struct cgroup *cgroup)
{
	const struct cgroup *then = cgroups_before(before ? &before->cgroups : NULL, cgroup);
	const struct rpost_get_policy none = {}, *was = then ? &then->now : &none;
	const struct rpost_get_policy *is = &cgroup->now;
	char buf[UNITS_SIZE];

	table_cell(table, "%s", cgroup->name);
	table_cell(table, "%" PRIu64, cgroup_value(before, now, was->ops, is->ops));
	table_cell(table, "%s", units(buf, cgroup_value(before, now, was->bytes, is->bytes), 1024));
	table_cell(table, "%" PRIu64, cgroup_value(before, now, was->errors, is->errors));
	table_cell(table, "%" PRIu64, cgroup_value(before, now, was->waits, is->waits));
	table_cell(table, "%" PRIu64, cgroup_value(before, now, was->refusals, is->refusals));
}

static void print_cgroups(const struct sample *before, const struct sample *now)
{
	static const char *const totals[] = {
		"CGROUP", ">OPS", ">BYTES", ">ERRORS", ">WAITS", ">REFUSED", NULL
	};
	static const char *const rates[] = {
		"CGROUP", ">OPS/s", ">BYTES/s", ">ERRORS/s", ">WAITS/s", ">REFUSED/s", NULL
	};
	struct table table = { .titles = before ? rates : totals };
	size_t i;

	for (i = 0; i < now->cgroups.num; i++)
		add_cgroup(&table, before, now, &now->cgroups.all[i]);
	if (now->cgroups.num) {
		putchar('\n');
		table_print(&table, "");
	}
}

static void print_text(const struct sample *before, const struct sample *now)
{
	static const char *const totals[] = {
		">FILE", ">PID", "USER", "PROGRAM", ">OPS", ">OUT", ">IN",
		">COMPLETIONS", ">ERRORS", ">SLEEPS", ">COMMANDS", NULL
	};
	static const char *const rates[] = {
		">FILE", ">PID", "USER", "PROGRAM", ">OPS/s", ">OUT/s", ">IN/s",
		">COMPLETIONS/s", ">ERRORS/s", ">SLEEPS/s", ">COMMANDS/s", NULL
	};
	struct table table = { .titles = before ? rates : totals };
	size_t i;

	for (i = 0; i < now->files.num; i++)
		add_file(&table, before, now, &now->files.files[i]);
	table_print(&table, "");
	print_cgroups(before, now);
}

static int totals(bool json, bool prometheus)
{
	struct sample now;
	int status = sample_take(&now);

	if (status)
		return status;
	if (prometheus) {
		prometheus_print(&now);
	} else if (json) {
		json_object(NULL);
		json_array("samples");
		sample_json(NULL, &now);
		json_end();
		json_end();
	} else {
		print_text(NULL, &now);
	}
	open_files_warn(&now.files);
	sample_free(&now);
	return TOOL_FINE;
}

/* Waits, and says so if that takes long. */
static enum wait_for wait_interval(uint64_t until, uint64_t interval, int *sig)
{
	enum wait_for what;

	if (interval >= LONG_INTERVAL)
		progress_show("waiting for the end of an interval of %g s", interval / 1e9);
	what = wait_until(until, -1, sig);
	progress_end();
	return what;
}

/**
 * stat_rates() - print what files do, for each interval
 * @interval: in nanoseconds
 * @count: of intervals, 0 for no end
 * @json: print JSON, else text
 *
 * A signal ends it in good order.
 *
 * Return: the exit status.
 */
int stat_rates(uint64_t interval, unsigned long count, bool json)
{
	struct sample before, now;
	unsigned long i;
	int status, sig = 0;

	wait_init(false);
	status = sample_take(&before);
	if (status)
		return status;
	open_files_warn(&before.files);
	if (json) {
		json_object(NULL);
		json_array("samples");
	}
	for (i = 0; !count || i < count; i++) {
		if (wait_interval(sample_next(&before, interval), interval, &sig) == WAIT_SIGNAL)
			break;
		status = sample_take(&now);
		if (status)
			break;
		if (json)
			sample_json(&before, &now);
		else
			print_text(&before, &now);
		if (!json && i + 1 != count)
			putchar('\n');
		if (fflush(stdout))
			break;
		sample_free(&before);
		before = now;
	}
	sample_free(&before);
	if (json) {
		json_end();
		json_end();
	}
	return status;
}

/**
 * stat_command() - print what programs have done or do
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int stat_command(int argc, char **argv)
{
	static const struct option known[] = {
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'n' },
		{ "prometheus", no_argument, NULL, TOOL_PROMETHEUS },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct tool_options options = {
		.help = help, .known = known, .letters = "i:n:jh",
	};
	int status = tool_options(argc, argv, &options);
	bool rates = options.interval || options.count;

	if (status >= 0)
		return status;
	if (options.prometheus && (options.json || rates)) {
		tool_error("stat: --prometheus goes with no other option");
		return tool_usage("stat");
	}
	if (!rates)
		return totals(options.json, options.prometheus);
	return stat_rates(options.interval ? options.interval : 1000000000,
			  options.count, options.json);
}
