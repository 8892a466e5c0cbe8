// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Traces the module's tracepoints in an instance of tracefs that is ours alone, so that
 * nobody's tracing disturbs us, and we disturb nobody's.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tool.h"
#include "tracefs.h"

#define INSTANCES	"instances/rdma-post."
#define EVENTS		"events/" MODULE_NAME
#define MAX_NAMES	16
/* The width of a task's name in what the kernel prints. */
#define TASK_WIDTH	16

static struct {
	char *dir;
	char *enabled;
	int fd;
	char buf[65536];
	size_t used;
	size_t done;
} instance = { .fd = -1 };

/* ------------------------------------------------------------ files */

/*
 * Returns where tracefs is mounted, to be freed, or NULL. Users mount things too, with
 * FUSE, so the file system has to say itself what it is.
 */
static char *mounted(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;
	char *found = NULL;
	struct statfs fs;

	while (mounts && !found && (entry = getmntent(mounts)))
		if (!strcmp(entry->mnt_type, "tracefs") &&
		    !statfs(entry->mnt_dir, &fs) && fs.f_type == TRACEFS_MAGIC)
			found = text_printf("%s", entry->mnt_dir);
	if (mounts)
		endmntent(mounts);
	return found;
}

/* Writes to a file of the instance.  Returns 0 or -1 with errno. */
static int put(const char *name, const char *text)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", instance.dir, name);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = write(fd, text, strlen(text));
	close(fd);
	return n < 0 ? -1 : 0;
}

/* Says why something of tracefs cannot be used. */
static int refused(const char *path)
{
	int err = errno;

	if ((err == EACCES || err == EPERM) && geteuid())
		return tool_error("trace: %s: only root may trace; try sudo", path);
	if (err == EPERM)
		return tool_error("trace: %s: %s; a kernel that is locked down (confidentiality) does not trace",
				  path, strerror(err));
	return tool_error("trace: %s: %s", path, strerror(err));
}

/* ---------------------------------------------------------- instance */

/* Removes what a process has left that was killed. */
static void sweep(const char *root)
{
	char *dir = text_printf("%s/instances", root), *path;
	DIR *instances = opendir(dir);
	const struct dirent *entry;
	int pid, end;

	while (instances && (entry = readdir(instances))) {
		if (sscanf(entry->d_name, "rdma-post.%d%n", &pid, &end) != 1 ||
		    (entry->d_name[end] && entry->d_name[end] != '.') || pid < 1 ||
		    !kill(pid, 0) || errno != ESRCH)
			continue;
		path = text_printf("%s/%s", dir, entry->d_name);
		/* It fails if a process that we do not see uses it. */
		rmdir(path);
		free(path);
	}
	if (instances)
		closedir(instances);
	free(dir);
}

/*
 * Makes the instance. Its name is taken if a process that had our number was killed, or
 * if one in another pid namespace has it; then the instance is in use, and stays.
 * Returns 0 or -1 with errno.
 */
static int make_instance(const char *root)
{
	int i, ret;

	for (i = 0; i < MAX_NAMES; i++) {
		free(instance.dir);
		instance.dir = i ? text_printf("%s/" INSTANCES "%d.%d", root, getpid(), i) :
				   text_printf("%s/" INSTANCES "%d", root, getpid());
		ret = mkdir(instance.dir, 0700);
		if (ret && errno == EEXIST && !rmdir(instance.dir))
			ret = mkdir(instance.dir, 0700);
		if (!ret)
			return 0;
		if (errno != EEXIST && errno != EBUSY)
			break;
	}
	return -1;
}

static void leave(void)
{
	tracefs_end();
}

static int create(const char *root)
{
	char *events = text_printf("%s/" EVENTS, root);
	struct stat st;
	int status = TOOL_FINE;

	if (stat(events, &st)) {
		if (errno != ENOENT)
			status = refused(root);
		else if (module_minor() < 0)
			status = tool_error("the module " MODULE_NAME " is not loaded; see rdma-post doctor");
		else
			status = tool_error("trace: %s: missing, though the module is loaded: by force, or its kernel has no CONFIG_EVENT_TRACING",
					    events);
	}
	free(events);
	if (status)
		return status;
	sweep(root);
	if (make_instance(root)) {
		status = refused(instance.dir);
		free(instance.dir);
		instance.dir = NULL;
		return status;
	}
	/* Memory may end at any time. */
	atexit(leave);
	return TOOL_FINE;
}

/* What an instance takes over from the options that an administrator has set. */
static void set_options(void)
{
	static const char *const options[] = {
		"context-info", "irq-info", "overwrite", "noraw", "nohex", "nobin",
		"nofields", "noblock", "noverbose", "noannotate", "nolatency-format",
		"nostacktrace", "nouserstacktrace", "norecord-tgid",
	};
	size_t i;

	/* Not all kernels have all of them. */
	for (i = 0; i < ARRAY_SIZE(options); i++)
		put("trace_options", options[i]);
	/* Do not wait until the buffer is half full. */
	put("buffer_percent", "0");
}

/* Turns events on, all if none is named. It takes some time for each: begin with all. */
static int enable(char *const *events, size_t num)
{
	char *name;
	size_t i;
	int ret;

	put("tracing_on", "0");
	for (i = 0; i < (num ? num : 1); i++) {
		name = num ? text_printf(EVENTS "/%s/enable", events[i]) :
			     text_printf(EVENTS "/enable");
		ret = put(name, "1");
		if (ret)
			refused(name);
		if (!instance.enabled)
			instance.enabled = text_printf("%s/%s", instance.dir, name);
		free(name);
		if (ret)
			return TOOL_FAILED;
	}
	put("tracing_on", "1");
	return TOOL_FINE;
}

static int set_up(const char *filter, char *const *events, size_t num_events)
{
	char *pipe = text_printf("%s/trace_pipe", instance.dir);

	set_options();
	instance.fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (instance.fd < 0 || put("trace_clock", "mono")) {
		refused(pipe);
		free(pipe);
		return TOOL_FAILED;
	}
	free(pipe);
	if (filter && put(EVENTS "/filter", filter))
		return tool_error("trace: the kernel does not take the filter \"%s\": %m; perhaps the module is older than this program",
				  filter);
	return enable(events, num_events);
}

/**
 * tracefs_begin() - begin to trace
 * @filter: which events the kernel lets pass, or NULL for all
 * @events: the kernel's names of tracepoints
 * @num_events: how many; 0 for all
 *
 * Signals that end the process must be blocked, so that tracefs_end() is called.
 *
 * Return: 0, or the exit status after a message.
 */
int tracefs_begin(const char *filter, char *const *events, size_t num_events)
{
	char *root = mounted();
	int status;

	if (!root && geteuid())
		return tool_error("trace: tracefs is not mounted here; as root: mount -t tracefs tracefs /sys/kernel/tracing");
	if (!root)
		return tool_error("trace: tracefs is not mounted; try mount -t tracefs tracefs /sys/kernel/tracing");
	status = create(root);
	free(root);
	if (status)
		return status;
	status = set_up(filter, events, num_events);
	if (status)
		tracefs_end();
	return status;
}

/* The file that has input when there are events. */
int tracefs_fd(void)
{
	return instance.fd;
}

/* Are the events still on?  They go with the module. */
bool tracefs_runs(void)
{
	char state[16];

	return !file_line(state, sizeof(state), "%s", instance.enabled) && *state == '1';
}

/**
 * tracefs_end() - end, and leave nothing behind
 *
 * Return: 0, or the exit status after a message.
 */
int tracefs_end(void)
{
	int status = TOOL_FINE;

	if (instance.fd >= 0)
		close(instance.fd);
	instance.fd = -1;
	/* This turns the events off, too, unless somebody else reads them. */
	if (instance.dir && rmdir(instance.dir)) {
		status = tool_error("trace: %s: %m; remove it by rmdir", instance.dir);
		put(EVENTS "/enable", "0");
	}
	free(instance.dir);
	free(instance.enabled);
	instance.dir = NULL;
	instance.enabled = NULL;
	return status;
}

/* ------------------------------------------------------------- lines */

/* Reads what there is.  Returns 0 or -1 with errno. */
int tracefs_read(void)
{
	ssize_t n;

	memmove(instance.buf, instance.buf + instance.done, instance.used - instance.done);
	instance.used -= instance.done;
	instance.done = 0;
	/* One line is never as long as the buffer. */
	if (instance.used == sizeof(instance.buf))
		instance.used = 0;
	n = read(instance.fd, instance.buf + instance.used,
		 sizeof(instance.buf) - instance.used);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	instance.used += n;
	return 0;
}

/* Parses what stands behind the task's name: -TID [CPU] FLAGS SECONDS: NAME: TEXT */
static bool parse(struct tracefs_line *line, char *rest)
{
	char *name, *text, *time;

	if (sscanf(rest, "-%d [%d]", &line->tid, &line->cpu) != 2)
		return false;
	name = strstr(rest, ": ");
	text = name ? strstr(name + 2, ": ") : NULL;
	if (!text)
		return false;
	for (time = name; time > rest && time[-1] != ' '; time--)
		;
	if (sscanf(time, "%llu.%6u", &line->seconds, &line->micros) != 2)
		return false;
	*name = '\0';
	*text = '\0';
	line->name = name + 2;
	line->text = text + 2;
	return true;
}

/**
 * tracefs_next() - take a line from what was read
 * @line: gets it; its strings are valid until the next tracefs_read()
 *
 * A task may have any name, for instance one with the end of a line in it. But the name
 * always has the same width, and begins with a space: lines about lost events do not.
 *
 * Return: false if there is none that is complete.
 */
bool tracefs_next(struct tracefs_line *line)
{
	char *start = instance.buf + instance.done, *end, *task;
	size_t left = instance.used - instance.done, skip = 0;

	/* Where a read ends within the name, the rest tells what it is. */
	if (left <= TASK_WIDTH)
		return false;
	if (*start == ' ' && start[TASK_WIDTH] == '-')
		skip = TASK_WIDTH;
	end = memchr(start + skip, '\n', left - skip);
	if (!end)
		return false;
	*end = '\0';
	instance.done = end + 1 - instance.buf;
	memset(line, 0, sizeof(*line));
	line->text = start;
	if (sscanf(start, "CPU:%d [LOST", &line->cpu) == 1) {
		line->lost = true;
		sscanf(start, "CPU:%*d [LOST %lu", &line->num_lost);
		return true;
	}
	if (!skip || !parse(line, start + skip))
		return true;
	line->known = true;
	for (task = start; *task == ' '; task++)
		;
	memcpy(line->task, task, start + skip - task);
	return true;
}
