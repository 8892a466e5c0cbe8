/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every failure point of a step, one after the other: the kernel lets the nth
 * allocation or user copy of this thread fail, for each n until none is left.
 * Include it before anything else that calls ioctl().
 */
#ifndef RPOST_FAILNTH_H
#define RPOST_FAILNTH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#define DEBUGFS		"/sys/kernel/debug"
#define MAX_NTH		5000
#define NUM_COMMANDS	256

/* What all tests of the program have swept; each is a process of its own. */
struct swept {
	unsigned int points;
	bool commands[NUM_COMMANDS];
};

static struct swept *swept;
static bool in_sweep[NUM_COMMANDS];
static bool armed;
static int nth_fd = -1;

static void __attribute__((constructor)) swept_init(void)
{
	swept = mmap(NULL, sizeof(*swept), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (swept == MAP_FAILED)
		_exit(1);
}

static inline int swept_ioctl(int fd, unsigned long nr, void *arg)
{
	if (armed)
		in_sweep[nr % NUM_COMMANDS] = true;
	return ioctl(fd, nr, arg);
}

#define ioctl(fd, nr, arg) swept_ioctl(fd, nr, arg)

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

/* Let allocations that may sleep fail too, and the log stay quiet. */
static bool have_injection(void)
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

/* User copies fail, too: this one's, if the count is about to end. */
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

/* Has the failure not been used up?  Sets the count back. */
static bool nth_left(void)
{
	char text[16] = "";
	bool left = pread(nth_fd, text, sizeof(text) - 1, 0) <= 0 ||
		    atoi(text) > 0;

	return set_nth(0) || left;
}

/*
 * What the module has, as it tells root, but for the thread for send rings: the file
 * keeps it, also when the ring cannot be made, until it is closed.
 */
static void read_objects(char *text, size_t size)
{
	int fd = open(DEBUGFS "/rdma_post/objects", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
	char *line, *end;

	text[n < 0 ? 0 : n] = 0;
	close(fd);
	line = strstr(text, "\npoller ");
	end = line ? strchr(line + 1, '\n') : NULL;
	if (end)
		memmove(line, end, strlen(end) + 1);
}

/* Is there what there was?  What ends behind the program's back may take time. */
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

struct scene;

/**
 * struct sweep - a step whose failure points are swept
 * @name: what it is
 * @before: brings everything to where the step begins; not swept
 * @step: the step: 0 or a negative errno
 * @after: undoes the step; without @again also what is left of one that failed,
 *         so that there is what there was before @before
 * @again: a step that failed has changed nothing, and is just repeated
 * @whole: the step begins with nothing and leaves nothing, so that the next
 *         point's is the next try
 * @may_say: errors besides those of memory that is short, up to a 0
 */
struct sweep {
	const char *name;
	int (*before)(struct scene *s);
	int (*step)(struct scene *s);
	int (*after)(struct scene *s);
	bool again;
	bool whole;
	int may_say[4];
};

static bool may_say(const struct sweep *sw, int ret)
{
	unsigned int i;

	for (i = 0; i < 4 && sw->may_say[i]; i++) {
		if (ret == -sw->may_say[i])
			return true;
	}
	/* ENOBUFS is what the network calls it. */
	return ret == -ENOMEM || ret == -EFAULT || ret == -ENFILE ||
	       ret == -ENOBUFS;
}

static int call(int (*fn)(struct scene *s), struct scene *s)
{
	return fn ? fn(s) : 0;
}

/* The next try, after a failure. */
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

/* One failure point; 1 if there was none. */
static int sweep_one(const struct sweep *sw, struct scene *s, int nth)
{
	char begin[1024], objects[1024];
	int ret, again = 0;
	bool left;

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
	/* What is optional may fail without harm. */
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

/* How many failure points a step has, or a negative errno. */
static int sweep(const struct sweep *sw, struct scene *s)
{
	const char *from = getenv("RPOST_TEST_NTH");
	time_t begun = time(NULL);
	unsigned int i;
	int nth, ret = 0;

	memset(in_sweep, 0, sizeof(in_sweep));
	for (nth = from ? atoi(from) : 1; nth < MAX_NTH && !ret; nth++)
		ret = sweep_one(sw, s, nth);
	if (ret != 1) {
		fprintf(stderr, "# %s, failure point %d: %d\n", sw->name,
			nth - 1, ret);
		return ret ? ret : -ELOOP;
	}
	for (i = 0; i < NUM_COMMANDS; i++)
		swept->commands[i] |= in_sweep[i];
	printf("# %s: %d failure points, %d s\n", sw->name, nth - 2,
	       (int)(time(NULL) - begun));
	fflush(stdout);
	return nth - 2;
}

#endif /* RPOST_FAILNTH_H */
