// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post run: a program that may do with the node what a policy allows. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy.h"
#include "tool.h"

/* LANDLOCK_ACCESS_FS_IOCTL_DEV, which Linux has since 6.10 */
#define FS_IOCTL_DEV	(1ULL << 15)

/* Exit status if the program was not started, as of rdma-post-run(1). */
#define RUN_FAILED	125

static const struct option known[] = {
	POLICY_OPTIONS,
	{ "help", no_argument, NULL, 'h' },
	{ }
};

static void help(void)
{
	puts("Usage: rdma-post run OPTION... -- PROGRAM [ARGUMENT...]\n\n"
	     "Runs a program over the node, as rdma-post-run does, with a descriptor to which a\n"
	     "policy applies. Neither the program nor what it starts can open the node, make\n"
	     "another one, open /dev/infiniband, or get privileges by a set-user-ID program.\n"
	     "This needs no privileges, but Landlock in the kernel. It does not restrain root,\n"
	     "nor other processes that do what the program asks.\n\n"
	     POLICY_HELP
	     "  -h, --help               print this\n\n"
	     "BYTES and NUMBER may have K, M, G or T (1000, ...) or Ki, Mi, Gi or Ti (1024, ...).\n\n"
	     "Exit status: that of the program, or 125 if it was not started");
}

static int failed(const char *what)
{
	tool_error("run: %s: %m", what);
	return RUN_FAILED;
}

/* Programs use low numbers by themselves, as sh does up to 9. */
#define FIRST_FD	100

/* Returns the narrowed descriptor, which programs inherit, or -1 after a message. */
static int open_narrowed(const struct policy *policy)
{
	struct rpost_set_policy cmd = { .size = sizeof(cmd), .rules = policy->rules };
	int fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC), kept = -1;

	if (fd < 0) {
		tool_error("run: " RPOST_DEVICE_PATH ": %m; see rdma-post doctor");
		return -1;
	}
	if (!ioctl(fd, RPOST_IOC_SET_POLICY, &cmd)) {
		kept = fcntl(fd, F_DUPFD, FIRST_FD);
		if (kept < 0)
			tool_error("run: no descriptor from %d on: %m", FIRST_FD);
	} else if (errno == ENOTTY) {
		tool_error("run: the module is older than this program, and has no policies");
	} else {
		tool_error("run: cannot set the policy: %m");
	}
	close(fd);
	return kept;
}

/* Lets programs open what is below a path, or is there. */
static bool let_open(int ruleset, int dir, const char *name, uint64_t access)
{
	struct landlock_path_beneath_attr beneath = { .allowed_access = access };
	struct stat st;
	int err;

	beneath.parent_fd = openat(dir, name, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	/* What has gone meanwhile needs no rule. */
	if (beneath.parent_fd < 0)
		return errno == ENOENT;
	/* What a link leads to has a rule of its own; what cannot be looked at gets none. */
	if (fstat(beneath.parent_fd, &st) || S_ISLNK(st.st_mode)) {
		close(beneath.parent_fd);
		return true;
	}
	if (!S_ISDIR(st.st_mode))
		beneath.allowed_access &= ~LANDLOCK_ACCESS_FS_REFER;
	err = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
	close(beneath.parent_fd);
	return !err;
}

/* Lets programs open all in a directory but these. */
static bool let_open_others(int ruleset, const char *path, const char *const *but,
			    uint64_t access)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	bool good = dir;
	size_t i;

	while (good && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		for (i = 0; but[i] && strcmp(entry->d_name, but[i]); i++)
			;
		if (!but[i])
			good = let_open(ruleset, dirfd(dir), entry->d_name, access);
	}
	if (dir)
		closedir(dir);
	return good;
}

/*
 * Landlock allows what has a rule, so all in / and /dev gets one but the nodes. What it
 * restricts is opening files and making nodes; a program that it restricts can neither
 * mount nor trace others.
 */
static int keep_from_nodes(void)
{
	static const char *const dev[] = { "dev", NULL };
	static const char *const nodes[] = { "rdma_post", "infiniband", NULL };
	uint64_t access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
			  LANDLOCK_ACCESS_FS_REFER;
	struct landlock_ruleset_attr attr;
	int ruleset, version;

	version = syscall(SYS_landlock_create_ruleset, NULL, 0,
			  LANDLOCK_CREATE_RULESET_VERSION);
	if (version < 2) {
		tool_error("run: the kernel has no Landlock, or one before Linux 5.19 "
			   "(is landlock in /sys/kernel/security/lsm?)");
		return RUN_FAILED;
	}
	/* An open for neither reading nor writing is not one of the others. */
	if (version >= 5)
		access |= FS_IOCTL_DEV;
	attr = (struct landlock_ruleset_attr) {
		.handled_access_fs = access | LANDLOCK_ACCESS_FS_MAKE_CHAR,
	};
	ruleset = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return failed("landlock_create_ruleset");
	if (!let_open_others(ruleset, "/", dev, access) ||
	    !let_open_others(ruleset, "/dev", nodes, access))
		return failed("landlock_add_rule");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return failed("PR_SET_NO_NEW_PRIVS");
	if (syscall(SYS_landlock_restrict_self, ruleset, 0))
		return failed("landlock_restrict_self");
	close(ruleset);
	return TOOL_FINE;
}

/* Runs rdma-post-run, which is beside this program or in the PATH. */
static int run(char **argv)
{
	char *self = realpath("/proc/self/exe", NULL), *slash = self ? strrchr(self, '/') : NULL;
	char *beside;

	argv[-1] = "rdma-post-run";
	if (slash) {
		*slash = '\0';
		beside = text_printf("%s/rdma-post-run", self);
		execv(beside, argv - 1);
		free(beside);
	}
	free(self);
	execvp(argv[-1], argv - 1);
	return failed("rdma-post-run");
}

int run_command(int argc, char **argv)
{
	struct policy policy = {};
	char *name = argv[0], fd_text[16];
	int opt, fd, status;

	argv[0] = text_printf("rdma-post: %s", name);
	while ((opt = getopt_long(argc, argv, "+h", known, NULL)) != -1) {
		if (opt == 'h') {
			help();
			return TOOL_FINE;
		}
		if (!policy_take(name, opt, optarg, &policy)) {
			tool_usage(name);
			return RUN_FAILED;
		}
	}
	free(argv[0]);
	argv[0] = name;
	if (optind == argc || !policy.given || !policy_finish(name, &policy)) {
		if (optind == argc)
			tool_error("run: no program");
		else if (!policy.given)
			tool_error("run: no options; rdma-post-run runs a program without");
		tool_usage(name);
		return RUN_FAILED;
	}
	fd = open_narrowed(&policy);
	if (fd < 0)
		return RUN_FAILED;
	snprintf(fd_text, sizeof(fd_text), "%d", fd);
	if (setenv("RDMA_POST_FD", fd_text, 1))
		return failed("RDMA_POST_FD");
	status = keep_from_nodes();
	return status ? status : run(argv + optind);
}
