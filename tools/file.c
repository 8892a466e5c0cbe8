// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reads small files of /proc and /sys, the kernel's log, and answers of programs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool.h"

/* Of syslog(2). */
#define LOG_READ_ALL	3
#define LOG_SIZE	10

/* Reads the first line, without its end.  Returns 0 or a negative errno. */
int file_line(char *buf, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	ssize_t n;
	int fd;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	buf[0] = '\0';
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

static char *read_fd(int fd, size_t max, size_t *size)
{
	size_t room = max < 4096 ? max : 4096, n = 0;
	char *buf = tool_alloc(room + 1, 1), *more;
	ssize_t got;

	while ((got = read(fd, buf + n, room - n)) > 0) {
		n += got;
		if (n < room)
			continue;
		if (room >= max)
			break;
		room = room * 2 < max ? room * 2 : max;
		more = realloc(buf, room + 1);
		if (!more)
			break;
		buf = more;
	}
	if (got < 0) {
		free(buf);
		return NULL;
	}
	buf[n] = '\0';
	if (size)
		*size = n;
	return buf;
}

/*
 * Reads at most @max bytes.  Returns them with a NUL behind, to be freed, or
 * NULL with errno.
 */
char *file_read(const char *path, size_t max, size_t *size)
{
	char *buf;
	int fd;

	/* A FIFO must not hold us up. */
	fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	buf = read_fd(fd, max, size);
	close(fd);
	return buf;
}

/*
 * Opens a regular file whose path comes from others.  Nothing else is opened:
 * that alone does something on some devices.  Nor are files that the kernel
 * makes up.  Returns the file or a negative errno, EINVAL for no regular file.
 */
int file_open(const char *path)
{
	char link[sizeof("/proc/self/fd/-2147483648")];
	struct statfs fs;
	struct stat st;
	int place, fd;

	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -errno;
	if (fstat(place, &st) || fstatfs(place, &fs) || !S_ISREG(st.st_mode) ||
	    !st.st_size || fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC) {
		close(place);
		return -EINVAL;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(place);
	return fd;
}

bool file_exists(const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return !access(path, F_OK);
}

/* Returns the minor number of the module's node, or -1 if nothing tells it. */
int module_minor(void)
{
	char *misc = file_read("/proc/misc", 65536, NULL), *line, *rest = misc;
	int minor = -1, n;
	char name[64];

	while (rest && (line = strsep(&rest, "\n")))
		if (sscanf(line, "%d %63s", &n, name) == 2 &&
		    !strcmp(name, MODULE_NAME))
			minor = n;
	free(misc);
	return minor;
}

/* Returns the kernel's log, to be freed, or NULL if this user may not read it. */
char *file_kernel_log(void)
{
	int size = klogctl(LOG_SIZE, NULL, 0), n;
	char *log;

	if (size <= 0)
		return NULL;
	log = tool_alloc((size_t)size + 1, 1);
	n = klogctl(LOG_READ_ALL, log, size);
	if (n < 0) {
		free(log);
		return NULL;
	}
	log[n] = '\0';
	return log;
}

/* Runs a program.  Returns the first line that it prints, to be freed, or NULL. */
char *file_command(char *const argv[])
{
	int fds[2], status;
	char *out;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return NULL;
	pid = fork();
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, STDIN_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fds[1]);
	out = pid > 0 ? read_fd(fds[0], 65536, NULL) : NULL;
	close(fds[0]);
	if (pid < 0)
		return NULL;
	if (waitpid(pid, &status, 0) != pid || status) {
		free(out);
		return NULL;
	}
	if (out)
		out[strcspn(out, "\n")] = '\0';
	return out;
}
