// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of every kind that a program can have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_release.h"
#include "memory_kinds.h"
#include "udmabuf.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB	4U
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret	447
#endif

int kind_errno(const struct kind *k, bool write)
{
	if (pins_by_force())
		return write ? k->write_61 : k->read_61;
	return write ? k->write : k->read;
}

static char *kind_map(size_t bytes, int prot, int flags, int fd,
		      const char **reason)
{
	char *p = mmap(NULL, bytes, prot, flags, fd, 0);

	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED) {
		*reason = strerror(errno);
		return NULL;
	}
	return p;
}

char *kind_private(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, reason);
}

char *kind_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, reason);
}

char *kind_zero_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			open("/dev/zero", O_RDWR), reason);
}

char *kind_zero_private(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			open("/dev/zero", O_RDWR), reason);
}

/* Memory with PROT_NONE: mapped, but neither readable nor writable. */
char *kind_none(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			reason);
}

char *kind_read_only(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			reason);
}

int kind_memfd(size_t bytes, unsigned int flags)
{
	int fd = syscall(SYS_memfd_create, "rdma_post", MFD_CLOEXEC | flags);

	if (fd >= 0 && ftruncate(fd, bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

char *kind_memfd_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			kind_memfd(bytes, 0), reason);
}

char *kind_memfd_private(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			kind_memfd(bytes, 0), reason);
}

char *kind_memfd_read_only(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ, MAP_SHARED, kind_memfd(bytes, 0),
			reason);
}

/* A mapping that is longer than its file. */
char *kind_beyond_the_end(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			kind_memfd(bytes / 2, 0), reason);
}

/* Return a new unlinked file on disk, with its blocks allocated. */
int kind_file(size_t bytes)
{
	const char *dir = getenv("RPOST_TEST_DIR");
	char path[256], *zeros = calloc(1, bytes);
	int fd = -1;

	if (dir && zeros) {
		snprintf(path, sizeof(path), "%s/rdma_post.XXXXXX", dir);
		fd = mkstemp(path);
	}
	if (fd >= 0) {
		unlink(path);
		if (write(fd, zeros, bytes) != (ssize_t)bytes || fsync(fd)) {
			close(fd);
			fd = -1;
		}
	}
	free(zeros);
	return fd;
}

static char *kind_disk(size_t bytes, int prot, int flags,
		       const char **reason)
{
	int fd = kind_file(bytes);

	if (fd < 0) {
		*reason = "RPOST_TEST_DIR is not set, or has no room";
		return NULL;
	}
	return kind_map(bytes, prot, flags, fd, reason);
}

char *kind_file_shared(size_t bytes, const char **reason)
{
	return kind_disk(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, reason);
}

char *kind_file_private(size_t bytes, const char **reason)
{
	return kind_disk(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, reason);
}

char *kind_file_read_only(size_t bytes, const char **reason)
{
	return kind_disk(bytes, PROT_READ, MAP_SHARED, reason);
}

/* The program's code and constants. */
char *kind_text(size_t bytes, const char **reason)
{
	(void)bytes;
	(void)reason;
	return (char *)((uintptr_t)kind_text & ~4095ul);
}

/* The stack page in use.  Tests only read it. */
char *kind_stack(size_t bytes, const char **reason)
{
	char here;

	(void)bytes;
	(void)reason;
	return (char *)((uintptr_t)&here & ~4095ul);
}

bool huge_pages(long n)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "r+");
	long have = 0, want, got = 0;

	if (!f)
		return false;
	if (fscanf(f, "%ld", &have) != 1)
		have = 0;
	want = have + n;
	rewind(f);
	fprintf(f, "%ld", want);
	fclose(f);
	f = fopen("/proc/sys/vm/nr_hugepages", "r");
	if (!f || fscanf(f, "%ld", &got) != 1)
		got = 0;
	if (f)
		fclose(f);
	return got == want;
}

char *kind_huge(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, reason);
}

char *kind_huge_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			kind_memfd(bytes, MFD_HUGETLB), reason);
}

bool kind_is_huge(const struct kind *k)
{
	return k->make == kind_huge || k->make == kind_huge_shared;
}

char *kind_make(const struct kind *k, const char **reason)
{
	char *p;

	*reason = "no huge pages";
	if (kind_is_huge(k) && !huge_pages(1))
		return NULL;
	*reason = "";
	p = k->make(k->bytes, reason);
	if (!p && kind_is_huge(k))
		huge_pages(-1);
	return p;
}

char *kind_transparent_huge(size_t bytes, const char **reason)
{
	char *p = kind_private(2 * bytes, reason);

	if (!p)
		return NULL;
	p = (char *)(((uintptr_t)p + bytes - 1) & ~(bytes - 1));
	if (madvise(p, bytes, MADV_HUGEPAGE)) {
		*reason = "no transparent huge pages";
		return NULL;
	}
	memset(p, 0, bytes);
	return p;
}

/* Return a mapping of the kernel by its name in /proc/self/maps. */
static char *kind_named(const char *name, const char **reason)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start = 0, found = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, name) && sscanf(line, "%lx-", &start) == 1)
			found = start;
	}
	if (f)
		fclose(f);
	*reason = "not mapped";
	return (char *)found;
}

/* Page frames that have no struct page, or that cannot be pinned. */
char *kind_vvar(size_t bytes, const char **reason)
{
	(void)bytes;
	return kind_named("[vvar]", reason);
}

char *kind_dev_mem(size_t bytes, const char **reason)
{
	int fd = open("/dev/mem", O_RDWR);
	char *p;

	/* Firmware memory.  Tests never access it. */
	p = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				       MAP_SHARED, fd, 0xf0000);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED) {
		*reason = "/dev/mem cannot be mapped";
		return NULL;
	}
	return p;
}

char *kind_secret(size_t bytes, const char **reason)
{
	int fd = syscall(SYS_memfd_secret, 0);

	if (fd < 0 || ftruncate(fd, bytes)) {
		*reason = "no memfd_secret()";
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, reason);
}

/* Memory that a device driver maps into the program. */
char *kind_dma_buf(size_t bytes, const char **reason)
{
	int fd = udmabuf(bytes, reason);

	if (fd < 0)
		return NULL;
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, reason);
}
