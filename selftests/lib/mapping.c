// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* See mapping.h. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mapping.h"

int fault_fd(void *p, size_t bytes, unsigned int flags)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = {
		.range = { (uintptr_t)p, bytes },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC | flags);

	if (fd < 0)
		return -1;
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &area)) {
		close(fd);
		return -1;
	}
	return fd;
}

void *change_mappings(void *arg)
{
	struct change *c = arg;
	char *p;
	unsigned long i;

	for (i = 0; !__atomic_load_n(&c->stop, __ATOMIC_RELAXED); i++) {
		p = (char *)c->p + i * 5 % 8 * c->page;
		switch (i % 7) {
		case 0:
			munmap(p, c->page);
			break;
		case 1:
			mprotect(p, c->page, PROT_READ);
			break;
		case 2:
			madvise(p, c->page, MADV_DONTNEED);
			break;
		case 3:
			mremap(p, c->page, c->page,
			       MREMAP_MAYMOVE | MREMAP_FIXED, c->p);
			break;
		case 4:
			madvise(c->p, 8 * c->page, MADV_PAGEOUT);
			break;
		default:
			mmap(c->p, 8 * c->page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			break;
		}
		__atomic_fetch_add(&c->rounds, 1, __ATOMIC_RELAXED);
		if (i % 8 == 7)
			sched_yield();
	}
	return NULL;
}
