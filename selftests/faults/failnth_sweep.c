// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sweeps the failure points of a step. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "failnth_sweep.h"
#include "rpost_test.h"

#define DEBUGFS		"/sys/kernel/debug"
#define MAX_NTH		5000

struct swept *swept;
int nth_fd = -1;
static bool in_sweep[MAX_COMMANDS];
static bool armed;

static void __attribute__((constructor)) swept_init(void)
{
	swept = mmap(NULL, sizeof(*swept), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (swept == MAP_FAILED)
		_exit(1);
}

/* failnth's ioctl() calls this before each command. */
void note_command(unsigned long nr)
{
	if (armed)
		in_sweep[nr % MAX_COMMANDS] = true;
}

static bool write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n > 0;
}

/* Let allocations that may sleep fail as well, without messages in the log. */
bool have_injection(void)
{
	static const char * const what[] = {
		"failslab", "fail_page_alloc", "fail_usercopy",
	};
	char path[128];
	unsigned int i;

	if (geteuid() || access("/proc/thread-self/fail-nth", W_OK))
		return false;
	if (access(DEBUGFS "/failslab", F_OK) &&
	    mount("none", DEBUGFS, "debugfs", 0, NULL))
		return false;
	for (i = 0; i < sizeof(what) / sizeof(what[0]); i++) {
		snprintf(path, sizeof(path), DEBUGFS "/%s/verbose", what[i]);
		if (!write_to(path, "0"))
			return false;
	}
	if (!write_to(DEBUGFS "/failslab/ignore-gfp-wait", "N") ||
	    !write_to(DEBUGFS "/fail_page_alloc/ignore-gfp-wait", "N") ||
	    !write_to(DEBUGFS "/fail_page_alloc/ignore-gfp-highmem", "N") ||
	    !write_to(DEBUGFS "/fail_page_alloc/min-order", "0"))
		return false;
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return nth_fd >= 0;
}

/*
 * A user copy of this write fails if an earlier count ends at it, so try again.
 */
static int set_nth(int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", nth), i;

	armed = nth > 0;
	for (i = 0; i < 3; i++) {
		if (pwrite(nth_fd, text, n, 0) == n)
			return 0;
	}
	return -errno;
}

/* Returns true if no failure was injected.  Ends the injection. */
static bool nth_left(void)
{
	char text[16] = "";
	bool left = pread(nth_fd, text, sizeof(text) - 1, 0) <= 0 ||
		    atoi(text) > 0;

	return set_nth(0) || left;
}

/* Read the numbers of the module's objects. */
static void read_objects(char *text, size_t size)
{
	int fd = open(DEBUGFS "/rdma_post/objects", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n < 0 ? 0 : n] = 0;
	close(fd);
}

/* Returns true if the objects are as before; some may end later. */
static bool objects_are(const char *before)
{
	char now[1024];
	int i;

	for (i = 0; i < 10000; i++) {
		read_objects(now, sizeof(now));
		if (!strcmp(now, before))
			return true;
		usleep(1000);
	}
	fprintf(stderr, "# before:\n%s# now:\n%s", before, now);
	return false;
}

static bool may_say(const struct sweep *sw, int ret)
{
	unsigned int i;

	for (i = 0; i < 4 && sw->may_say[i]; i++) {
		if (ret == -sw->may_say[i])
			return true;
	}
	/* The network stack reports missing memory as ENOBUFS, too. */
	return ret == -ENOMEM || ret == -EFAULT || ret == -ENFILE ||
	       ret == -ENOBUFS;
}

static int call(int (*fn)(struct scene *s), struct scene *s)
{
	return fn ? fn(s) : 0;
}

/* After a failure, repeat the step. */
static int try_again(const struct sweep *sw, struct scene *s)
{
	int ret = 0;

	if (!sw->again) {
		ret = call(sw->after, s);
		if (!ret)
			ret = call(sw->before, s);
	}
	return ret ? ret : sw->step(s);
}

/* Sweep one failure point.  Returns 1 if there is none. */
static int sweep_one(const struct sweep *sw, struct scene *s, int nth)
{
	char begin[1024], objects[1024];
	int ret, again = 0;
	bool left;

	rp_failed = NULL;
	read_objects(begin, sizeof(begin));
	ret = call(sw->before, s);
	if (ret)
		return ret;
	read_objects(objects, sizeof(objects));
	ret = set_nth(nth);
	if (ret)
		return ret;
	ret = sw->step(s);
	left = nth_left();
	if (ret && (left || !may_say(sw, ret)))
		return ret;
	/* A failure in optional work does not fail the step. */
	if (!left)
		swept->points++;
	if (ret && (sw->again || sw->whole) && !objects_are(objects))
		return -EPROTO;
	if (ret && !sw->whole)
		again = try_again(sw, s);
	if (again) {
		fprintf(stderr, "# %d, and the next try %d\n", ret, again);
		return -EPROTO;
	}
	ret = call(sw->after, s);
	if (!ret && !sw->again && !objects_are(begin))
		return -EPROTO;
	return ret ? ret : left;
}

/* Returns the number of a step's failure points, or a negative errno. */
int sweep(const struct sweep *sw, struct scene *s)
{
	const char *from = getenv("RPOST_TEST_NTH");
	time_t begun = time(NULL);
	unsigned int i;
	int nth, ret = 0;

	memset(in_sweep, 0, sizeof(in_sweep));
	for (nth = from ? atoi(from) : 1; nth < MAX_NTH && !ret; nth++)
		ret = sweep_one(sw, s, nth);
	if (ret != 1) {
		fprintf(stderr, "# %s, failure point %d: %d %s\n", sw->name,
			nth - 1, ret, rp_failed ? rp_failed : "");
		return ret ? ret : -ELOOP;
	}
	for (i = 0; i < MAX_COMMANDS; i++)
		swept->commands[i] |= in_sweep[i];
	printf("# %s: %d failure points, %d s\n", sw->name, nth - 2,
	       (int)(time(NULL) - begun));
	return nth - 2;
}

