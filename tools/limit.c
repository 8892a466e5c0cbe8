// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post limit: policies of cgroups. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cgroups.h"
#include "table.h"
#include "tool.h"

#define LIMIT_REMOVE	400
#define LIMIT_FROM	401

/**
 * struct limit - what the arguments say
 * @policy: the policy
 * @remove: --remove
 * @json: --json
 * @help: --help
 * @from: --from, or NULL
 */
struct limit {
	struct policy policy;
	bool remove;
	bool json;
	bool help;
	const char *from;
};

static const struct option known[] = {
	POLICY_OPTIONS,
	{ "remove", no_argument, NULL, LIMIT_REMOVE },
	{ "from", required_argument, NULL, LIMIT_FROM },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ }
};

static void help(void)
{
	puts("Usage: rdma-post limit [-j]\n"
	     "       rdma-post limit CGROUP OPTION...\n"
	     "       rdma-post limit CGROUP --remove\n"
	     "       rdma-post limit --from FILE\n\n"
	     "Without CGROUP, prints the policies that cgroups have, and what they have counted.\n"
	     "With options, sets the policy of a cgroup, in place of the one that it has: it\n"
	     "holds for all files that its processes, and those of cgroups below it, have\n"
	     "opened or will open, until the cgroup or the module goes. CGROUP is the name of\n"
	     "a cgroup (version 2), as user.slice, or its directory. This needs root.\n\n"
	     POLICY_HELP
	     "      --remove             take the policy away\n"
	     "      --from FILE          set the policies of a file, each line of which has a\n"
	     "                           cgroup and its options; a cgroup that is not there is\n"
	     "                           reported and skipped\n"
	     "  -j, --json               print JSON\n"
	     "  -h, --help               print this\n\n"
	     "BYTES and NUMBER may have K, M, G or T (1000, ...) or Ki, Mi, Gi or Ti (1024, ...).\n\n"
	     "Exit status: 0 if all is fine, 2 for wrong usage or failure");
}

static int open_node(void)
{
	int fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		tool_error("limit: cannot open " RPOST_DEVICE_PATH ": %m");
	return fd;
}

/* Returns the directory of a cgroup, or -1 with errno after a message. */
static int open_cgroup(const char *cgroups, const char *name)
{
	char *path = *name == '/' ? text_printf("%s", name) : text_printf("%s/%s", cgroups, name);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = errno;

	if (fd < 0)
		tool_error("limit: %s: %m", path);
	free(path);
	errno = err;
	return fd;
}

static int say_failed(const char *name, int err)
{
	switch (err) {
	case EPERM:
		return tool_error("limit: needs root (CAP_SYS_RESOURCE)");
	case EBADF:
		return tool_error("limit: %s: not a directory of a cgroup (version 2)", name);
	case ENOENT:
		return tool_error("limit: %s: has no policy", name);
	case ENOTTY:
		return tool_error("limit: the module is older than this program, and has no policies");
	default:
		return tool_error("limit: %s: %s", name, strerror(err));
	}
}

/* @skip: a cgroup that is not there does not matter */
static int set(const char *cgroups, const char *name, const struct policy *policy, bool remove,
	       bool skip)
{
	struct rpost_set_policy cmd = {
		.size = sizeof(cmd), .flags = RPOST_POLICY_CGROUP,
	};
	int fd, status = TOOL_FINE;

	cmd.cgroup_fd = open_cgroup(cgroups, name);
	if (cmd.cgroup_fd < 0)
		return skip && errno == ENOENT ? TOOL_FINE : TOOL_FAILED;
	fd = open_node();
	if (fd < 0) {
		close(cmd.cgroup_fd);
		return TOOL_FAILED;
	}
	if (remove)
		cmd.flags |= RPOST_POLICY_REMOVE;
	else
		cmd.rules = policy->rules;
	if (ioctl(fd, RPOST_IOC_SET_POLICY, &cmd))
		status = say_failed(name, errno);
	close(fd);
	close(cmd.cgroup_fd);
	return status;
}

static void add_row(struct table *table, const struct cgroup *cgroup)
{
	char ops[UNITS_SIZE], bytes[UNITS_SIZE], pinned[UNITS_SIZE];
	const struct rpost_get_policy *now = &cgroup->now;
	char *text = policy_text(&cgroup->policy);

	table_cell(table, "%s", cgroup->name);
	table_cell(table, "%s", units(ops, now->ops, 1000));
	table_cell(table, "%s", units(bytes, now->bytes, 1024));
	table_cell(table, "%llu", (unsigned long long)now->errors);
	table_cell(table, "%llu", (unsigned long long)now->waits);
	table_cell(table, "%llu", (unsigned long long)now->refusals);
	table_cell(table, "%s", units(pinned, now->pinned, 1024));
	table_cell(table, "%u", now->num_qps);
	table_cell(table, "%s", text);
	free(text);
}

static int list(bool json)
{
	static const char *const titles[] = {
		"CGROUP", ">OPS", ">BYTES", ">ERRORS", ">WAITS", ">REFUSED", ">PINNED",
		">CONNECTIONS", "POLICY", NULL
	};
	struct table table = { .titles = titles };
	struct cgroups cgroups;
	int fd = open_node(), err;
	size_t i;

	if (fd < 0)
		return TOOL_FAILED;
	err = cgroups_get(&cgroups, fd);
	close(fd);
	if (err) {
		cgroups_free(&cgroups);
		return say_failed("list", err);
	}
	if (json) {
		json_array(NULL);
		cgroups_json(&cgroups);
		json_end();
	}
	for (i = 0; !json && i < cgroups.num; i++)
		add_row(&table, &cgroups.all[i]);
	if (table.num_cells)
		table_print(&table, "");
	else if (!json)
		puts("No cgroup has a policy.");
	cgroups_free(&cgroups);
	return TOOL_FINE;
}

/* Returns false after a message. */
static bool take_options(int argc, char **argv, struct limit *limit)
{
	char *name = argv[0];
	int opt;

	/* For messages of getopt_long(); 0 has it begin anew. */
	optind = 0;
	argv[0] = text_printf("rdma-post: %s", name);
	while ((opt = getopt_long(argc, argv, "jh", known, NULL)) != -1) {
		if (opt == 'h')
			limit->help = true;
		else if (opt == 'j')
			limit->json = true;
		else if (opt == LIMIT_REMOVE)
			limit->remove = true;
		else if (opt == LIMIT_FROM)
			limit->from = optarg;
		else if (!policy_take(name, opt, optarg, &limit->policy))
			break;
	}
	free(argv[0]);
	argv[0] = name;
	return opt == -1 && (limit->help || policy_finish(name, &limit->policy));
}

/* Returns false after a message. */
static bool makes_sense(int operands, const struct limit *limit)
{
	bool changes = limit->policy.given || limit->remove;

	if (operands > 1)
		tool_error("limit: more than one cgroup");
	else if (limit->from && (operands || changes || limit->json))
		tool_error("limit: --from stands alone");
	else if (operands && limit->json)
		tool_error("limit: --json is for the list");
	else if (operands && limit->policy.given == limit->remove)
		tool_error("limit: give options of a policy, or --remove");
	else if (!operands && changes)
		tool_error("limit: no cgroup");
	else
		return true;
	return false;
}

/* Sets the policy that a line has; it is changed. */
static int take_line(const char *cgroups, char *line)
{
	char command[] = "limit", *args[4 * RPOST_MAX_PEERS] = { command }, *word;
	struct limit limit = {};
	int n = 1;

	for (word = strtok(line, " \t\n"); word; word = strtok(NULL, " \t\n")) {
		if (*word == '#')
			break;
		if (n == ARRAY_SIZE(args) - 1)
			return tool_error("limit: more words than a policy has");
		args[n++] = word;
	}
	args[n] = NULL;
	if (n == 1)
		return TOOL_FINE;
	if (!take_options(n, args, &limit))
		return TOOL_FAILED;
	if (optind == n || limit.from || limit.help || !makes_sense(n - optind, &limit))
		return tool_error("limit: a line has a cgroup and options of its policy");
	return set(cgroups, args[optind], &limit.policy, limit.remove, true);
}

/* Sets the policies of a file. */
static int take_file(const char *cgroups, const char *path)
{
	FILE *file = fopen(path, "re");
	int status = TOOL_FINE, n = 0;
	char *line = NULL;
	size_t size = 0;

	if (!file)
		return tool_error("limit: %s: %m", path);
	while (getline(&line, &size, file) >= 0) {
		n++;
		if (take_line(cgroups, line))
			status = tool_error("limit: %s: line %d", path, n);
	}
	if (ferror(file))
		status = tool_error("limit: %s: %m", path);
	free(line);
	fclose(file);
	return status;
}

int limit_command(int argc, char **argv)
{
	struct limit limit = {};
	const char *name;
	char *cgroups;
	int status;

	if (!take_options(argc, argv, &limit))
		return tool_usage(argv[0]);
	if (limit.help) {
		help();
		return TOOL_FINE;
	}
	if (!makes_sense(argc - optind, &limit))
		return tool_usage(argv[0]);
	name = argv[optind];
	if (!name && !limit.from)
		return list(limit.json);
	cgroups = cgroups_find();
	if (!cgroups)
		return tool_error("limit: no cgroups (version 2) are mounted");
	if (limit.from)
		status = take_file(cgroups, limit.from);
	else
		status = set(cgroups, name, &limit.policy, limit.remove, false);
	free(cgroups);
	return status;
}
