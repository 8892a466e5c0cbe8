// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What selftests/sanitize.sh links into the tests, so that the tools see what they
 * would miss.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>

/*
 * The harness runs each test in a child that ends here, where nobody looks for
 * leaks.  A test that failed leaves behind what it wants.
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
#include <stdint.h>
#include <valgrind/memcheck.h>

#include "../../uapi/rdma/rdma_post_abi.h"

static void check_input(unsigned long cmd, const void *arg)
{
	const uint32_t *size = arg;

	/* The two stop at the first byte that is not initialized. */
	if (VALGRIND_CHECK_MEM_IS_DEFINED(arg, sizeof(*size)) ||
	    VALGRIND_CHECK_MEM_IS_DEFINED(arg, *size))
		return;

	switch (cmd) {
	case RPOST_IOC_POST_SEND:
	case RPOST_IOC_POST_RECV:
	case RPOST_IOC_POST_SRQ_RECV: {
		const struct rpost_post *post = arg;

		VALGRIND_CHECK_MEM_IS_DEFINED(post->wrs, post->wrs_size);
		break;
	}
	case RPOST_IOC_SET_OPTION: {
		const struct rpost_set_option *option = arg;

		VALGRIND_CHECK_MEM_IS_DEFINED(option->data, option->data_len);
		break;
	}
	case RPOST_IOC_QUERY_DEVICES: {
		const struct rpost_query_devices *query = arg;

		VALGRIND_CHECK_MEM_IS_ADDRESSABLE(query->devices,
						  query->count *
						  sizeof(uint32_t));
		break;
	}
	case RPOST_IOC_QUERY_GIDS: {
		const struct rpost_query_gids *query = arg;

		VALGRIND_CHECK_MEM_IS_ADDRESSABLE(query->gids, query->count *
						  sizeof(struct rpost_gid));
		break;
	}
	case RPOST_IOC_QUERY_PKEYS: {
		const struct rpost_query_pkeys *query = arg;

		VALGRIND_CHECK_MEM_IS_ADDRESSABLE(query->pkeys,
						  query->count *
						  sizeof(__be16));
		break;
	}
	}
}

/* The structs themselves were initialized before. */
static void mark_output(unsigned long cmd, const void *arg, uint32_t room)
{
	switch (cmd) {
	case RPOST_IOC_QUERY_DEVICES: {
		const struct rpost_query_devices *query = arg;

		if (room > query->count)
			room = query->count;
		VALGRIND_MAKE_MEM_DEFINED(query->devices,
					  room * sizeof(uint32_t));
		break;
	}
	case RPOST_IOC_QUERY_GIDS: {
		const struct rpost_query_gids *query = arg;

		VALGRIND_MAKE_MEM_DEFINED(query->gids, query->count *
					  sizeof(struct rpost_gid));
		break;
	}
	case RPOST_IOC_QUERY_PKEYS: {
		const struct rpost_query_pkeys *query = arg;

		VALGRIND_MAKE_MEM_DEFINED(query->pkeys,
					  query->count * sizeof(__be16));
		break;
	}
	}
}

/* The commands do not encode sizes, and valgrind does not know them. */
int ioctl(int fd, unsigned long cmd, ...)
{
	uint32_t room = 0;
	va_list args;
	void *arg;
	long ret;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);

	if (_IOC_TYPE(cmd) == RPOST_IOC_TYPE && arg) {
		check_input(cmd, arg);
		if (cmd == RPOST_IOC_QUERY_DEVICES)
			room = ((struct rpost_query_devices *)arg)->count;
	}
	ret = syscall(SYS_ioctl, fd, cmd, arg);
	if (!ret && _IOC_TYPE(cmd) == RPOST_IOC_TYPE && arg)
		mark_output(cmd, arg, room);
	return ret;
}
#endif
