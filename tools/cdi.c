// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post cdi: a file by which container engines give the node to a container. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_post_abi.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool.h"

/* The first version that has all that the file uses. */
#define CDI_VERSION	"0.3.0"
#define CDI_KIND	"rdma_post.local/node"
#define CDI_DEVICE	"all"
/* UCX looks for the node in this directory. */
#define OTHER_NAME	"/dev/infiniband/rdma_post"

static const struct option known[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ }
};

static void help(void)
{
	puts("Usage: rdma-post cdi generate [-o FILE]\n\n"
	     "Prints a file of the Container Device Interface (CDI). With it an engine gives\n"
	     "a container " RPOST_DEVICE_PATH ", also as " OTHER_NAME ",\n"
	     "and nothing else:\n\n"
	     "  rdma-post cdi generate --output /etc/cdi/rdma_post.json\n"
	     "  podman run --device " CDI_KIND "=" CDI_DEVICE " ...\n\n"
	     "  -o, --output FILE  write FILE, which ends in .json, in place of standard output\n"
	     "  -h, --help         print this\n\n"
	     "Exit status: 0 if all is fine, 2 for wrong usage or failure");
}

/*
 * The second name is a mount: engines without privileges make a node by mounting
 * the one of the same name, and the host may have it only under the first name.
 */
static void print_edits(void)
{
	json_object("containerEdits");
	json_array("deviceNodes");
	json_object(NULL);
	json_string("path", RPOST_DEVICE_PATH);
	json_string("permissions", "rw");
	json_end();
	json_end();
	json_array("mounts");
	json_object(NULL);
	json_string("hostPath", RPOST_DEVICE_PATH);
	json_string("containerPath", OTHER_NAME);
	json_array("options");
	json_string(NULL, "bind");
	json_string(NULL, "nosuid");
	json_string(NULL, "noexec");
	json_end();
	json_end();
	json_end();
	json_end();
}

static void print_spec(void)
{
	json_object(NULL);
	json_string("cdiVersion", CDI_VERSION);
	json_string("kind", CDI_KIND);
	json_array("devices");
	json_object(NULL);
	json_string("name", CDI_DEVICE);
	print_edits();
	json_end();
	json_end();
	json_end();
}

static bool output_is_valid(const char *path)
{
	const char *name = strrchr(path, '/');
	struct stat st;
	size_t len;

	name = name ? name + 1 : path;
	len = strlen(name);
	if (len < sizeof(".json") || strcmp(name + len - strlen(".json"), ".json")) {
		tool_error("cdi: %s: must end in .json, or engines do not read it", path);
		return false;
	}
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		tool_error("cdi: %s: not a regular file", path);
		return false;
	}
	return true;
}

/* Makes @tmp, prints into it, and gives it the name @path.  Returns -1 with errno. */
static int replace_file(const char *path, char *tmp)
{
	int fd = mkstemp(tmp), err;

	if (fd < 0)
		return -1;
	if (fchmod(fd, 0644) || dup2(fd, STDOUT_FILENO) < 0)
		goto failed;
	print_spec();
	if (fflush(stdout) || ferror(stdout) || fsync(fd) || rename(tmp, path))
		goto failed;
	close(fd);
	return 0;

failed:
	err = errno;
	/* Or else the end of the program would try to write it once more. */
	__fpurge(stdout);
	clearerr(stdout);
	close(fd);
	unlink(tmp);
	errno = err;
	return -1;
}

/* A reader sees the old file or the new one, never a part. */
static int write_file(const char *path)
{
	char *tmp = text_printf("%s.XXXXXX", path);
	int status = TOOL_FINE;

	if (replace_file(path, tmp))
		status = tool_error("cdi: %s: cannot write: %m", path);
	free(tmp);
	return status;
}

/**
 * cdi_command() - print or write a CDI file
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int cdi_command(int argc, char **argv)
{
	struct tool_options options = {
		.help = help, .known = known, .letters = "o:jh", .operands = 1,
	};
	int status = tool_options(argc, argv, &options);

	if (status >= 0)
		return status;
	if (optind == argc || strcmp(argv[optind], "generate")) {
		if (optind == argc)
			tool_error("cdi: no subcommand; there is \"generate\"");
		else
			tool_error("cdi: %s: unknown subcommand; there is \"generate\"",
				   argv[optind]);
		return tool_usage(argv[0]);
	}
	if (options.output && !output_is_valid(options.output))
		return TOOL_FAILED;
	if (!file_exists(RPOST_DEVICE_PATH))
		fputs("rdma-post: note: " RPOST_DEVICE_PATH " is not there now; containers with it start once the module is loaded\n",
		      stderr);
	if (options.output)
		return write_file(options.output);
	print_spec();
	return TOOL_FINE;
}
