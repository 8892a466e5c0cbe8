/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of every kind that a program can have, and what registering it must
 * say: the same over rdma_post and over uverbs, so that both are held to it.
 *
 * RPOST_TEST_DIR is a directory on a file system of a disk, for its files.
 */
#ifndef MEMORY_KINDS_H
#define MEMORY_KINDS_H

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_release.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB	4U
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret	447
#endif

#define KIND_BYTES	8192
#define HUGE_BYTES	(2ul << 20)

/* <linux/udmabuf.h> may be missing. */
struct kind_udmabuf {
	__u32 memfd;
	__u32 flags;
	__u64 offset;
	__u64 size;
};

#define KIND_UDMABUF_CREATE	_IOW('u', 0x42, struct kind_udmabuf)

/**
 * struct kind - a kind of memory
 * @make: gives @bytes of it, or NULL with the reason why there is none here
 * @bytes: how much of it to register
 * @read: errno of a registration that is only read, or 0
 * @write: errno of one that is written to, or 0
 * @read_61: the same on a kernel that pins by force, see pins_by_force()
 * @write_61: the same
 * @no_loads: the program itself cannot look at it
 */
struct kind {
	char *(*make)(size_t bytes, const char **reason);
	size_t bytes;
	int read, write;
	int read_61, write_61;
	bool no_loads;
};

/*
 * A kernel that pins by force is before 6.4, too, and lets shared files of disks
 * be pinned for writing.
 */
static inline int kind_errno(const struct kind *k, bool write)
{
	if (pins_by_force())
		return write ? k->write_61 : k->read_61;
	return write ? k->write : k->read;
}

static inline char *kind_map(size_t bytes, int prot, int flags, int fd,
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

static inline char *kind_private(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, reason);
}

static inline char *kind_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, reason);
}

static inline char *kind_zero_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			open("/dev/zero", O_RDWR), reason);
}

static inline char *kind_zero_private(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			open("/dev/zero", O_RDWR), reason);
}

/* Memory that is there and must not be touched: never written, never read. */
static inline char *kind_none(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			reason);
}

static inline char *kind_read_only(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			reason);
}

static inline int kind_memfd(size_t bytes, unsigned int flags)
{
	int fd = syscall(SYS_memfd_create, "rdma_post", MFD_CLOEXEC | flags);

	if (fd >= 0 && ftruncate(fd, bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline char *kind_memfd_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			kind_memfd(bytes, 0), reason);
}

static inline char *kind_memfd_private(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			kind_memfd(bytes, 0), reason);
}

static inline char *kind_memfd_read_only(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ, MAP_SHARED, kind_memfd(bytes, 0),
			reason);
}

/* The file ends before the mapping does. */
static inline char *kind_beyond_the_end(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			kind_memfd(bytes / 2, 0), reason);
}

/* A file of a disk that nobody else has, with its blocks. */
static inline int kind_file(size_t bytes)
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

static inline char *kind_disk(size_t bytes, int prot, int flags,
			      const char **reason)
{
	int fd = kind_file(bytes);

	if (fd < 0) {
		*reason = "RPOST_TEST_DIR is not set, or has no room";
		return NULL;
	}
	return kind_map(bytes, prot, flags, fd, reason);
}

static inline char *kind_file_shared(size_t bytes, const char **reason)
{
	return kind_disk(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, reason);
}

static inline char *kind_file_private(size_t bytes, const char **reason)
{
	return kind_disk(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, reason);
}

static inline char *kind_file_read_only(size_t bytes, const char **reason)
{
	return kind_disk(bytes, PROT_READ, MAP_SHARED, reason);
}

/* The code of the program, and its constants. */
static inline char *kind_text(size_t bytes, const char **reason)
{
	(void)bytes;
	(void)reason;
	return (char *)((uintptr_t)kind_text & ~4095ul);
}

/* The page that is in use just now: nobody writes to it. */
static inline char *kind_stack(size_t bytes, const char **reason)
{
	char here;

	(void)bytes;
	(void)reason;
	return (char *)((uintptr_t)&here & ~4095ul);
}

/* Huge pages: @n more, or fewer if negative.  False if it cannot be had. */
static inline bool huge_pages(long n)
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

static inline char *kind_huge(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, reason);
}

static inline char *kind_huge_shared(size_t bytes, const char **reason)
{
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			kind_memfd(bytes, MFD_HUGETLB), reason);
}

static inline bool kind_is_huge(const struct kind *k)
{
	return k->make == kind_huge || k->make == kind_huge_shared;
}

static inline char *kind_transparent_huge(size_t bytes, const char **reason)
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

/* A mapping of the kernel's by its name in /proc/self/maps. */
static inline char *kind_named(const char *name, const char **reason)
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

/* Page frames without a struct page, or as good as. */
static inline char *kind_vvar(size_t bytes, const char **reason)
{
	(void)bytes;
	return kind_named("[vvar]", reason);
}

static inline char *kind_dev_mem(size_t bytes, const char **reason)
{
	int fd = open("/dev/mem", O_RDWR);
	char *p;

	/* The firmware's memory, which is never touched. */
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

static inline char *kind_secret(size_t bytes, const char **reason)
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

/* Memory as a device's driver shows it to programs. */
static inline char *kind_dma_buf(size_t bytes, const char **reason)
{
	struct kind_udmabuf create = { .size = bytes };
	int dev = open("/dev/udmabuf", O_RDWR), memfd, fd = -1;

	if (dev < 0) {
		*reason = "no /dev/udmabuf";
		return NULL;
	}
	memfd = kind_memfd(bytes, MFD_ALLOW_SEALING);
	if (memfd >= 0 && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		create.memfd = memfd;
		fd = ioctl(dev, KIND_UDMABUF_CREATE, &create);
	}
	close(memfd);
	close(dev);
	return kind_map(bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, reason);
}

/*
 * Name, bytes, then the errno of registering it for reading and for writing, on
 * newer kernels and on one that pins by force, and whether loads work.
 */
#define KINDS(row)							\
	row(private, KIND_BYTES, 0, 0, 0, 0, true)			\
	row(shared, KIND_BYTES, 0, 0, 0, 0, true)			\
	row(zero_shared, KIND_BYTES, 0, 0, 0, 0, true)			\
	row(zero_private, KIND_BYTES, 0, 0, 0, 0, true)			\
	row(none, KIND_BYTES, EFAULT, EFAULT, 0, EFAULT, false)		\
	row(read_only, KIND_BYTES, 0, EFAULT, 0, EFAULT, true)		\
	row(memfd_shared, KIND_BYTES, 0, 0, 0, 0, true)			\
	row(memfd_private, KIND_BYTES, 0, 0, 0, 0, true)		\
	row(memfd_read_only, KIND_BYTES, 0, EFAULT, EFAULT, EFAULT, true) \
	row(beyond_the_end, KIND_BYTES, EFAULT, EFAULT, EFAULT, EFAULT, true) \
	row(file_shared, KIND_BYTES, 0, EFAULT, 0, 0, true)		\
	row(file_private, KIND_BYTES, 0, 0, 0, 0, true)			\
	row(file_read_only, KIND_BYTES, 0, EFAULT, EFAULT, EFAULT, true) \
	row(text, 4096, 0, EFAULT, 0, EFAULT, true)			\
	row(stack, 4096, 0, 0, 0, 0, false)				\
	row(huge, HUGE_BYTES, 0, 0, 0, 0, true)				\
	row(huge_shared, HUGE_BYTES, 0, 0, 0, 0, true)			\
	row(transparent_huge, HUGE_BYTES, 0, 0, 0, 0, true)		\
	row(vvar, 4096, EFAULT, EFAULT, EFAULT, EFAULT, false)		\
	row(dev_mem, KIND_BYTES, EFAULT, EFAULT, EFAULT, EFAULT, false)	\
	row(secret, KIND_BYTES, EFAULT, EFAULT, EFAULT, EFAULT, true)	\
	row(dma_buf, KIND_BYTES, EFAULT, EFAULT, 0, 0, true)

/* The variants of a fixture "kind", which have a struct kind of that name. */
#define KIND_VARIANT(name, size, r, w, r61, w61, loads)			\
	FIXTURE_VARIANT_ADD(kind, name)					\
	{								\
		.kind = { kind_##name, size, r, w, r61, w61, !(loads) },	\
	};

#endif /* MEMORY_KINDS_H */
