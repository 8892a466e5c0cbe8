// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages of the library to its user, on standard error. */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/internal.h"

/* libibverbs warns up to this limit. */
#define LOW_MEMLOCK	32768

static const char *const names[] = {
#define RPOST_COMMAND(nr, name, type, first, size, flags) \
	[RPOST_CMD_##nr] = #nr,
#include "../../kmod/core/commands.h"
};

static bool debug;

/* Read once: later a thread may change the environment. */
__attribute__((constructor)) static void read_environment(void)
{
	debug = rpost_env_is("RDMA_POST_DEBUG", "1");
}

/* Callers may hold locks, so that a thread must not end here. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	va_list args;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	va_start(args, format);
	vdprintf(STDERR_FILENO, format, args);
	va_end(args);
	pthread_setcancelstate(state, NULL);
}

void rpost_debug_failed(const char *what, int err)
{
	/* For %m: strerror() is not for threads. */
	errno = err;
	if (debug)
		say("librdma_post: %s: %m; rdma-post doctor looks for the cause\n", what);
	errno = err;
}

/* Is it an answer that the program or the library expects? */
static bool is_expected(unsigned int nr, const void *arg, int err)
{
	const struct rpost_destroy *destroy = arg;

	switch (nr) {
	case RPOST_CMD_GET_EVENT:
		return err == EAGAIN || err == EINTR;
	case RPOST_CMD_CREATE_ASYNC_CHANNEL:
		/* See rpost_async_open(). */
		return err == EOPNOTSUPP || err == EMFILE;
	case RPOST_CMD_POST_SEND:
	case RPOST_CMD_POST_RECV:
	case RPOST_CMD_POST_SRQ_RECV:
		/* The queue is full. */
		return err == ENOMEM;
	case RPOST_CMD_DESTROY:
		/* Sends use the address handle; see rpost_ah_reap(). */
		return err == EBUSY && destroy->type == RPOST_OBJ_AH;
	case RPOST_CMD_REG_DMABUF_MR:
		/* Programs ask so whether the device has dma-bufs. */
		return err == EOPNOTSUPP || err == EBADF;
	case RPOST_CMD_DISCONNECT:
		return err == ENOTCONN;
	case RPOST_CMD_LEAVE_MCAST:
		/* The join has failed. */
		return err == ENOENT;
	default:
		return false;
	}
}

void rpost_debug_command(unsigned long cmd, const void *arg, int err)
{
	unsigned int nr = _IOC_NR(cmd);

	if (debug && !is_expected(nr, arg, err))
		rpost_debug_failed(names[nr], err);
}

/* False if the administrator has loaded the module with memlock=0. */
static bool memlock_counts(void)
{
	int fd = open("/sys/module/rdma_post/parameters/memlock", O_RDONLY | O_CLOEXEC);
	char value = 'Y';

	if (fd < 0 || read(fd, &value, 1) != 1)
		value = 'Y';
	if (fd >= 0)
		close(fd);
	return value != 'N';
}

void rpost_warn_memlock(void)
{
	static atomic_bool done;
	struct rlimit limit;

	if (atomic_exchange(&done, true) || !geteuid() ||
	    getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur > LOW_MEMLOCK ||
	    !memlock_counts())
		return;
	say("librdma_post: warning: RLIMIT_MEMLOCK is %ju bytes: hardly any memory can be registered (ulimit -l)\n",
	    (uintmax_t)limit.rlim_cur);
}
