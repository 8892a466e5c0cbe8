/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory of every kind that a program can have, and the result of registering
 * it.  The same table tests rdma_post and uverbs, so both must give the same
 * results, but for shared files on disk before 6.5: uverbs lets them be registered for
 * writing.
 *
 * RPOST_TEST_DIR is a directory on a disk file system, for the files.
 */
#ifndef MEMORY_KINDS_H
#define MEMORY_KINDS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define KIND_BYTES	8192
#define HUGE_BYTES	(2ul << 20)

/**
 * struct kind - a kind of memory
 * @make: returns @bytes of it, or NULL and the reason why the host has none
 * @bytes: the size to register
 * @read: errno of registering it for reading, or 0
 * @write: errno of registering it for writing, or 0
 * @read_61: @read on a kernel that pins by force, see pins_by_force()
 * @write_61: @write on such a kernel
 * @no_loads: the program itself cannot read it
 */
struct kind {
	char *(*make)(size_t bytes, const char **reason);
	size_t bytes;
	int read, write;
	int read_61, write_61;
	bool no_loads;
};

/*
 * The errno of registering @k on this kernel, for writing or only for reading.
 */
int kind_errno(const struct kind *k, bool write);

/* Reserve @n more huge pages, or fewer if @n is negative; false on failure. */
bool huge_pages(long n);
bool kind_is_huge(const struct kind *k);
/* Make memory of @k, with a huge page for it; NULL and the reason on failure. */
char *kind_make(const struct kind *k, const char **reason);

/* Return a file descriptor, or -1. */
int kind_memfd(size_t bytes, unsigned int flags);
int kind_file(size_t bytes);

/*
 * Name, bytes, then the errno of registering it for reading and for writing,
 * first on newer kernels, then on kernels that pin by force; last, whether the
 * program can load from it.
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
	row(file_shared, KIND_BYTES, 0, EFAULT, 0, EFAULT, true)	\
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

#define KIND_MAKE(name, size, r, w, r61, w61, loads)			\
	char *kind_##name(size_t bytes, const char **reason);

KINDS(KIND_MAKE)

/* A variant of the fixture "kind" for each struct kind, with the same name. */
#define KIND_VARIANT(name, size, r, w, r61, w61, loads)			\
	FIXTURE_VARIANT_ADD(kind, name)					\
	{								\
		.kind = { kind_##name, size, r, w, r61, w61, !(loads) },	\
	};

#endif /* MEMORY_KINDS_H */
