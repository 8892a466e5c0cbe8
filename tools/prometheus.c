// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The text format of Prometheus.  Each open file has its own series, so that a
 * counter never goes back.  Other labels than the file's number may change.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "prometheus.h"
#include "tool.h"

/* A metric has a series for each key that begins with @key, or of this one. */
static const struct metric {
	const char *name;
	const char *key;
	const char *label;	/* whose value is the rest of the key */
	const char *type;
	const char *help;
} metrics[] = {
	{ "operations_total", "total-ops-", "operation", "counter",
	  "Operations that a device has got, and receives that have completed." },
	{ "bytes_total", "total-bytes-", "operation", "counter",
	  "Bytes of these operations." },
	{ "completions_total", "total-completions", NULL, "counter",
	  "Completions for the program." },
	{ "overruns_total", "total-overruns", NULL, "counter",
	  "Completions for which a ring had no room." },
	{ "errors_total", "total-errors", NULL, "counter",
	  "Completions with an error." },
	{ "errors_by_status_total", "total-errors-", "status", "counter",
	  "Completions with an error, by status; a status that has not come is missing." },
	{ "commands_total", "total-commands", NULL, "counter",
	  "Commands (ioctl) of the device." },
	{ "completion_events_total", "total-comp-events", NULL, "counter",
	  "Events for completion channels." },
	{ "completion_wakeups_total", "total-comp-wakeups", NULL, "counter",
	  "Events for which a task was waiting." },
	{ "completion_sleeps_total", "total-comp-sleeps", NULL, "counter",
	  "Times that a reader of a completion channel has slept." },
	{ "connection_events_total", "total-cm-events", NULL, "counter",
	  "Events of connections." },
	{ "connection_sleeps_total", "total-cm-sleeps", NULL, "counter",
	  "Times that a task has slept for an event of a connection." },
	{ "objects", "objects-", "kind", "gauge", "Objects by kind." },
	{ "connections", "connections", NULL, "gauge", "Connection ids." },
	{ "charged_bytes", "bytes-charged", NULL, "gauge",
	  "Bytes that the user is charged." },
	{ "pinned_bytes", "bytes-pinned", NULL, "gauge",
	  "Bytes of pages that memory regions pin." },
};

/* Prints a label; what is not ASCII becomes '?', since values must be UTF-8. */
static void print_label(const char *name, const char *value)
{
	printf("%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			printf("\\%c", *value);
		else if (*value < 0x20 || *value > 0x7e)
			putchar('?');
		else
			putchar(*value);
	}
	putchar('"');
}

static void print_series(const struct metric *metric, const struct open_file *file,
			 const char *rest, uint64_t value)
{
	const struct holder *holder = &file->holders[0];
	char *devices = fdinfo_devices(&file->info, ",");

	printf("rdma_post_%s{pid=\"%d\",", metric->name, holder->pid);
	print_label("user", holder->user);
	putchar(',');
	print_label("program", holder->program);
	putchar(',');
	/* An empty label is one that is not there. */
	print_label("container", holder->container ? holder->container : "");
	putchar(',');
	print_label("cgroup", holder->cgroup);
	putchar(',');
	print_label("device", devices);
	printf(",file=\"%" PRIu64 "\"", file->info.file);
	if (metric->label) {
		putchar(',');
		print_label(metric->label, rest);
	}
	printf("} %" PRIu64 "\n", value);
	free(devices);
}

static void print_file(const struct metric *metric, const struct open_file *file)
{
	size_t len = strlen(metric->key), i;

	for (i = 0; i < file->info.num_values; i++) {
		const struct fdinfo_value *value = &file->info.values[i];

		if (value->is_number && !strncmp(value->key, metric->key, len) &&
		    !value->key[len] == !metric->label)
			print_series(metric, file, value->key + len, value->number);
	}
}

/* Of cgroups that have a policy. */
static const struct cgroup_metric {
	const char *name;
	const char *type;
	size_t offset;		/* in struct rpost_get_policy */
	double unit;
	const char *help;
} cgroup_metrics[] = {
	{ "operations_total", "counter", offsetof(struct rpost_get_policy, ops), 1,
	  "Operations that programs of a cgroup with a policy have posted." },
	{ "bytes_total", "counter", offsetof(struct rpost_get_policy, bytes), 1,
	  "Bytes of these operations." },
	{ "errors_total", "counter", offsetof(struct rpost_get_policy, errors), 1,
	  "Completions with an error, of programs of the cgroup." },
	{ "waits_total", "counter", offsetof(struct rpost_get_policy, waits), 1,
	  "How often posts have waited for the cgroup's rate." },
	{ "waited_seconds_total", "counter", offsetof(struct rpost_get_policy, waited_us), 1e-6,
	  "Time that posts have waited for the cgroup's rate." },
	{ "refusals_total", "counter", offsetof(struct rpost_get_policy, refusals), 1,
	  "Commands and operations that the cgroup's policy has not allowed." },
	{ "pinned_bytes", "gauge", offsetof(struct rpost_get_policy, pinned), 1,
	  "Bytes of pages that programs of the cgroup have pinned." },
};

static void print_cgroup(const struct cgroup_metric *metric, const struct cgroup *cgroup)
{
	uint64_t value;

	memcpy(&value, (const char *)&cgroup->now + metric->offset, sizeof(value));
	printf("rdma_post_cgroup_%s{", metric->name);
	print_label("cgroup", cgroup->name);
	printf("} %.15g\n", value * metric->unit);
}

static void print_header(const char *prefix, const char *name, const char *type,
			 const char *help)
{
	printf("# HELP rdma_post_%s%s %s\n# TYPE rdma_post_%s%s %s\n", prefix, name, help,
	       prefix, name, type);
}

/**
 * prometheus_print() - print all files, and the cgroups that have a policy
 * @now: they
 */
void prometheus_print(const struct sample *now)
{
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(metrics); i++) {
		print_header("", metrics[i].name, metrics[i].type, metrics[i].help);
		for (n = 0; n < now->files.num; n++)
			if (now->files.files[n].known)
				print_file(&metrics[i], &now->files.files[n]);
	}
	for (i = 0; now->cgroups.num && i < ARRAY_SIZE(cgroup_metrics); i++) {
		print_header("cgroup_", cgroup_metrics[i].name, cgroup_metrics[i].type,
			     cgroup_metrics[i].help);
		for (n = 0; n < now->cgroups.num; n++)
			print_cgroup(&cgroup_metrics[i], &now->cgroups.all[n]);
	}
}
