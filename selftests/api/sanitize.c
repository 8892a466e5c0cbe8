// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * selftests/tools/sanitize.sh links this file into the tests, so that
 * sanitizers and valgrind see what they would miss.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

/*
 * The harness runs each test in a child that ends by _exit(), which does not
 * look for leaks.  A test that has failed may leave anything behind.
 */
void _exit(int status)
{
	if (!status && __lsan_do_recoverable_leak_check())
		abort();
	syscall(SYS_exit_group, status);
	__builtin_unreachable();
}
#endif

#ifdef RPOST_MEMCHECK
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <valgrind/memcheck.h>

#include "../../uapi/rdma/rdma_post_abi.h"

/* Return the array that a command fills, and its length in @bytes. */
static void *output_of(unsigned long cmd, const void *arg, size_t *bytes)
{
	const struct rpost_query_devices *devices = arg;
	const struct rpost_query_gids *gids = arg;
	const struct rpost_query_pkeys *pkeys = arg;

	switch (cmd) {
	case RPOST_IOC_QUERY_DEVICES:
		*bytes = devices->count * sizeof(uint32_t);
		return (void *)devices->devices;
	case RPOST_IOC_QUERY_GIDS:
		*bytes = gids->count * sizeof(struct rpost_gid);
		return (void *)gids->gids;
	case RPOST_IOC_QUERY_PKEYS:
		*bytes = pkeys->count * sizeof(__be16);
		return (void *)pkeys->pkeys;
	}
	*bytes = 0;
	return NULL;
}

/*
 * The device may write to this memory from now on, so call it initialized.
 * Valgrind then misses a send of memory that the program has not written.
 */
static void written_by_device(const struct rpost_reg_mr *mr)
{
	if (mr->access & RPOST_ACCESS_LOCAL_WRITE)
		VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(mr->addr, mr->length);
}

static void check_input(unsigned long cmd, const void *arg)
{
	const uint32_t *size = arg;
	size_t bytes;
	void *output;

	/* Both checks stop at the first byte that is not initialized. */
	if (VALGRIND_CHECK_MEM_IS_DEFINED(arg, sizeof(*size)) ||
	    VALGRIND_CHECK_MEM_IS_DEFINED(arg, *size))
		return;

	switch (cmd) {
	case RPOST_IOC_SET_OPTION: {
		const struct rpost_set_option *option = arg;

		VALGRIND_CHECK_MEM_IS_DEFINED(option->data, option->data_len);
		break;
	}
	default:
		output = output_of(cmd, arg, &bytes);
		VALGRIND_CHECK_MEM_IS_ADDRESSABLE(output, bytes);
		break;
	}
}

/* valgrind does not know these commands, and they do not encode sizes. */
int ioctl(int fd, unsigned long cmd, ...)
{
	size_t room = 0, bytes;
	va_list args;
	void *arg, *output;
	long ret;
	bool ours;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);

	ours = _IOC_TYPE(cmd) == RPOST_IOC_TYPE && arg;
	if (ours) {
		check_input(cmd, arg);
		output_of(cmd, arg, &room);
	}
	ret = syscall(SYS_ioctl, fd, cmd, arg);
	if (!ret && ours) {
		/* The struct was initialized; its count may have grown. */
		output = output_of(cmd, arg, &bytes);
		VALGRIND_MAKE_MEM_DEFINED(output, bytes < room ? bytes : room);
		if (cmd == RPOST_IOC_REG_MR)
			written_by_device(arg);
	}
	return ret;
}
#endif
