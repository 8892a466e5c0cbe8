// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sends and puts buffers of 64 KiB through a communication library, each of them
 * allocated by malloc() or mmap(), filled, used and freed. Compares what has arrived.
 *
 *   buffers_fabric|buffers_ucx ADDRESS PORT COUNT
 *
 * Prints the time of all but the comparison, and how often rdma_post's registration
 * cache had the buffer.
 */
#include <dirent.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "buffers.h"

static unsigned char target[LENGTH] __attribute__((aligned(4096)));

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Several descriptors may be of one open file, which counts. */
static long cache_hits(void)
{
	DIR *dir = opendir("/proc/self/fdinfo");
	long most = 0, hits;
	struct dirent *d;
	char path[300], line[200];
	FILE *f;

	TRUE(dir);
	while ((d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", d->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		while (fgets(line, sizeof(line), f)) {
			if (sscanf(line, "rpost-total-cache-hits: %ld", &hits) == 1 &&
			    hits > most)
				most = hits;
		}
		fclose(f);
	}
	closedir(dir);
	return most;
}

static void fill(unsigned char *buf, unsigned int turn)
{
	memset(buf, turn % 251, LENGTH);
	for (int i = 0; i < LENGTH; i += 4096)
		memcpy(buf + i, &turn, sizeof(turn));
}

static void *allocate(bool mapped)
{
	void *buf = mapped ? mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : malloc(LENGTH);

	TRUE(buf && buf != MAP_FAILED);
	return buf;
}

static void give_back(bool mapped, void *buf)
{
	if (mapped)
		TRUE(munmap(buf, LENGTH) == 0);
	else
		free(buf);
}

static void use(bool put, bool mapped, int count)
{
	static unsigned char expected[LENGTH];
	long hits = cache_hits();
	double start, seconds = 0;

	/* The first ones make caches and connections. */
	for (int i = -10; i < count; i++) {
		unsigned char *buf;

		start = now();
		buf = allocate(mapped);
		fill(buf, i);
		transfer(put, buf);
		give_back(mapped, buf);
		if (i >= 0)
			seconds += now() - start;
		fill(expected, i);
		TRUE(!memcmp(target, expected, LENGTH));
	}
	printf("%s, %s: %d buffers, %.0f us each, %ld hits\n", put ? "put" : "send",
	       mapped ? "mmap" : "malloc", count, seconds / count * 1e6,
	       cache_hits() - hits);
}

int main(int argc, char **argv)
{
	TRUE(argc == 4);
	open_ends(argv[1], argv[2], target);
	for (int i = 0; i < 4; i++)
		use(i & 1, i & 2, atoi(argv[3]));
	close_ends();
	return 0;
}
