// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Calls that are not commands: files, mappings, rings, processes.  Each takes a
 * struct, as commands do.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"

/* ---------------------------------------------------------------- files */

struct file_args {
	uint64_t file;
	uint64_t fd;
};

static long run_open(struct context *c, void *arg)
{
	struct file_args *a = arg;
	int fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC);

	(void)c;
	a->file = fd;
	return fd < 0 ? -errno : 0;
}

/* Returns true for descriptors of the fuzzer itself. */
static bool own_fd(uint64_t fd)
{
	return fd < 64 || fd > 1023;
}

static long run_close(struct context *c, void *arg)
{
	struct file_args *a = arg;

	(void)c;
	if (own_fd(a->fd))
		return -EBADF;
	return close(a->fd) ? -errno : 0;
}

static long run_dup(struct context *c, void *arg)
{
	struct file_args *a = arg;
	int fd = dup(a->fd);

	(void)c;
	a->file = fd;
	return fd < 0 ? -errno : 0;
}

static const struct field open_fields[] = { OUT(file_args, file, R_FILE) };
static const struct field close_file[] = { IN(file_args, fd, R_FILE) };
static const struct field close_event[] = { IN(file_args, fd, R_EVENT) };
static const struct field close_comp[] = { IN(file_args, fd, R_COMP) };
static const struct field close_async[] = { IN(file_args, fd, R_ASYNC) };
static const struct field dup_fields[] = {
	IN(file_args, fd, R_FILE),
	OUT(file_args, file, R_FILE),
};

struct io_args {
	uint64_t fd;
	uint64_t ms;
	uint64_t addr;
	uint64_t len;
};

/* Returns how long to wait: shorter after each wait that was in vain. */
static uint64_t patience(const struct context *c, uint64_t ms)
{
	uint64_t most = c->run->wait_ms >> c->run->in_vain;

	return ms < most ? ms : most;
}

static void waited(struct context *c, uint64_t begin, bool in_vain)
{
	if (in_vain) {
		if (c->run->in_vain < 10)
			c->run->in_vain++;
		return;
	}
	__atomic_fetch_add(&outcome->waits, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&outcome->waited_ms, now_ms() - begin,
			   __ATOMIC_RELAXED);
}

static long run_poll(struct context *c, void *arg)
{
	struct io_args *a = arg;
	struct pollfd pfd = { .fd = a->fd, .events = POLLIN };
	uint64_t begin = now_ms();
	int ret = poll(&pfd, 1, patience(c, a->ms));

	waited(c, begin, !ret);
	return ret < 0 ? -errno : ret;
}

static long run_read(struct context *c, void *arg)
{
	struct io_args *a = arg;
	long ret;

	/* Without signals, a read that blocks could sleep for ever. */
	if (own_fd(a->fd) ||
	    !(c->run->signals || (fcntl(a->fd, F_GETFL) & O_NONBLOCK)))
		return -EBADF;
	ret = read(a->fd, (void *)(uintptr_t)a->addr, a->len & 0xffff);
	return ret < 0 ? -errno : ret;
}

static void ignore(int signal)
{
	(void)signal;
}

/* From now on reads and GET_EVENT sleep until a signal comes. */
static long run_blocking(struct context *c, void *arg)
{
	const struct itimerval often = { { 0, 200000 }, { 0, 200000 } };
	const struct sigaction action = { .sa_handler = ignore };
	struct io_args *a = arg;

	if (own_fd(a->fd))
		return -EBADF;
	if (sigaction(SIGALRM, &action, NULL) ||
	    setitimer(ITIMER_REAL, &often, NULL))
		return -errno;
	c->run->signals = true;
	return fcntl(a->fd, F_SETFL, 0) ? -errno : 0;
}

static const struct field blocking_event[] = { IN(io_args, fd, R_EVENT) };
static const struct field blocking_comp[] = { IN(io_args, fd, R_COMP) };
static const struct field blocking_async[] = { IN(io_args, fd, R_ASYNC) };
static const struct field poll_event[] = {
	IN(io_args, fd, R_EVENT), INT(io_args, ms, 2000),
};
static const struct field poll_comp[] = {
	IN(io_args, fd, R_COMP), INT(io_args, ms, 500),
};
static const struct field poll_async[] = {
	IN(io_args, fd, R_ASYNC), INT(io_args, ms, 500),
};
static const struct field read_comp[] = {
	IN(io_args, fd, R_COMP), SPACE(io_args, addr, K_ADDR),
	INT(io_args, len, 32),
};
static const struct field read_async[] = {
	IN(io_args, fd, R_ASYNC), SPACE(io_args, addr, K_ADDR),
	INT(io_args, len, 96),
};

/* --------------------------------------------------------------- memory */

struct map_args {
	uint64_t fd;
	uint64_t offset;
	uint64_t len;
	uint64_t prot;
	uint64_t private;
	uint64_t ring;		/* in: the slot of its register */
	uint64_t addr;
	uint64_t value;
	uint64_t word;
	uint64_t ms;
};

static bool is_ring(uint64_t addr)
{
	return addr >= RING_ADDR &&
	       addr < RING_ADDR + NUM_SLOTS * RING_STRIDE;
}

static bool is_ours(uint64_t addr, uint64_t len)
{
	if (is_ring(addr))
		return len <= RING_ADDR + NUM_SLOTS * RING_STRIDE - addr;
	return addr >= MEM_ADDR && addr < BLOCK_ADDR &&
	       len <= BLOCK_ADDR - addr;
}

/* Map a ring at the address of its register. */
static long run_mmap(struct context *c, void *arg)
{
	struct map_args *a = arg;
	char *at = (char *)RING_ADDR + a->ring % NUM_SLOTS * RING_STRIDE;
	void *p;

	(void)c;
	if (a->len > RING_STRIDE)
		a->len = RING_STRIDE;
	p = mmap(at, a->len, a->prot & 7,
		 (a->private ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED, a->fd,
		 a->offset);
	a->ring = p == MAP_FAILED ? 0 : (uintptr_t)p;
	return p == MAP_FAILED ? -errno : 0;
}

static long run_munmap(struct context *c, void *arg)
{
	struct map_args *a = arg;

	(void)c;
	if (!is_ours(a->addr, a->len))
		return -EINVAL;
	return munmap((void *)(uintptr_t)a->addr, a->len) ? -errno : 0;
}

static long run_mprotect(struct context *c, void *arg)
{
	struct map_args *a = arg;

	(void)c;
	if (!is_ours(a->addr, a->len))
		return -EINVAL;
	return mprotect((void *)(uintptr_t)a->addr, a->len, a->prot & 7) ?
	       -errno : 0;
}

static long run_madvise(struct context *c, void *arg)
{
	struct map_args *a = arg;

	(void)c;
	if (!is_ours(a->addr, a->len))
		return -EINVAL;
	return madvise((void *)(uintptr_t)a->addr, a->len, MADV_DONTNEED) ?
	       -errno : 0;
}

/* A ring may be gone or read-only, so let the kernel touch it. */
static long peek(uint64_t addr, uint32_t *value)
{
	static _Thread_local int null[2];
	long ret;

	if (!null[1] && pipe2(null, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	ret = write(null[1], (void *)(uintptr_t)addr, 4);
	if (ret != 4)
		return -EFAULT;
	return read(null[0], value, 4) == 4 ? 0 : -EFAULT;
}

static long poke(uint64_t addr, uint32_t value)
{
	static _Thread_local int pipes[2];

	if (!pipes[1] && pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	if (write(pipes[1], &value, 4) != 4)
		return -EAGAIN;
	if (read(pipes[0], (void *)(uintptr_t)addr, 4) == 4)
		return 0;
	/* No other thread reads from this pipe. */
	return read(pipes[0], &value, 4) == 4 ? -EFAULT : -EIO;
}

static long run_ring_write(struct context *c, void *arg)
{
	struct map_args *a = arg;

	(void)c;
	if (!is_ring(a->addr))
		return -EINVAL;
	return poke(a->addr + a->word % 1024 * 4, a->value);
}

#define RING_WORD(member) (offsetof(struct rpost_ring, member) / 4)

/* Wait for a completion, and consume all completions in the ring. */
static long run_wait_cq(struct context *c, void *arg)
{
	struct map_args *a = arg;
	uint32_t head = 0, tail = 0;
	uint64_t ms = patience(c, a->ms), begin = now_ms();

	if (!is_ring(a->addr))
		return -EINVAL;
	do {
		if (peek(a->addr + RING_WORD(head) * 4, &head) ||
		    peek(a->addr + RING_WORD(tail) * 4, &tail))
			return -EFAULT;
		if (head != tail)
			break;
		usleep(1000);
	} while (now_ms() - begin < ms);
	waited(c, begin, head == tail);
	return poke(a->addr + RING_WORD(head) * 4, tail);
}

static const struct field mmap_fields[] = {
	IN(map_args, fd, R_FILE),
	IN(map_args, offset, R_OFF),
	IN(map_args, len, R_LEN),
	FLAGS(map_args, prot, 7),
	INT(map_args, private, 1),
	OUT(map_args, ring, R_RING),
};
static const struct field munmap_ring[] = {
	IN(map_args, addr, R_RING), IN(map_args, len, R_LEN),
};
static const struct field munmap_mem[] = {
	SPACE(map_args, addr, K_ADDR), INT(map_args, len, 0x10000),
};
static const struct field mprotect_ring[] = {
	IN(map_args, addr, R_RING), IN(map_args, len, R_LEN),
	FLAGS(map_args, prot, 7),
};
static const struct field mprotect_mem[] = {
	SPACE(map_args, addr, K_ADDR), INT(map_args, len, 0x10000),
	FLAGS(map_args, prot, 7),
};
static const struct field madvise_mem[] = {
	SPACE(map_args, addr, K_ADDR), INT(map_args, len, 0x10000),
};
static const struct field ring_write[] = {
	IN(map_args, addr, R_RING), INT(map_args, word, 40),
	INT(map_args, value, 0),
};
static const struct field wait_cq[] = {
	IN(map_args, addr, R_RING), INT(map_args, ms, 500),
};

/* ------------------------------------------------------------- processes */

struct proc_args {
	uint64_t ms;
	uint64_t bytes;
};

/* Fork a process that keeps all descriptors open for a while. */
static long run_fork(struct context *c, void *arg)
{
	struct proc_args *a = arg;
	int pid = fork();

	(void)c;
	if (pid)
		return pid < 0 ? -errno : 0;
	*(volatile char *)MEM_ADDR = 1;
	usleep(a->ms % 100 * 1000);
	_exit(0);
}

/* Leave all descriptors open until the process exits. */
static long run_leave(struct context *c, void *arg)
{
	(void)arg;
	c->run->leave_open = true;
	return 0;
}

static long run_sleep(struct context *c, void *arg)
{
	struct proc_args *a = arg;

	(void)c;
	usleep(a->ms % 200 * 1000);
	return 0;
}

/* Drop the privileges of this thread. */
static long run_nobody(struct context *c, void *arg)
{
	(void)c;
	(void)arg;
	return syscall(SYS_setresuid, 65534, 65534, 65534) ? -errno : 0;
}

static long run_memlock(struct context *c, void *arg)
{
	struct proc_args *a = arg;
	struct rlimit limit = { a->bytes, a->bytes };

	(void)c;
	return setrlimit(RLIMIT_MEMLOCK, &limit) ? -errno : 0;
}

/* NULL without the option -d. */
const char *link_netdev;

static long run_remove_device(struct context *c, void *arg)
{
	(void)c;
	(void)arg;
	if (!link_netdev)
		return -EPERM;
	outcome->device_gone = true;
	return link_remove();
}

static long run_add_device(struct context *c, void *arg)
{
	int ret;

	(void)arg;
	if (!link_netdev)
		return -EPERM;
	ret = link_add(link_netdev);
	if (!ret && !find_devices()) {
		memcpy(c->run->regs[R_DEV], boot_regs[R_DEV],
		       sizeof(boot_regs[R_DEV]));
		memcpy(c->run->regs[R_GIDX], boot_regs[R_GIDX],
		       sizeof(boot_regs[R_GIDX]));
	}
	return ret;
}

static const struct field ms_field[] = { INT(proc_args, ms, 100) };
static const struct field memlock[] = { INT(proc_args, bytes, 0x10000) };
static const struct field nothing[] = { SPACE(proc_args, ms, K_ZERO) };

const struct desc others[] = {
	RUN("open", file_args, run_open, open_fields, 2),
	RUN("close", file_args, run_close, close_file, 2),
	RUN("close_event", file_args, run_close, close_event, 1),
	RUN("close_comp", file_args, run_close, close_comp, 1),
	RUN("close_async", file_args, run_close, close_async, 1),
	RUN("dup", file_args, run_dup, dup_fields, 1),
	RUN("poll_event", io_args, run_poll, poll_event, 3),
	RUN("poll_comp", io_args, run_poll, poll_comp, 2),
	RUN("poll_async", io_args, run_poll, poll_async, 1),
	RUN("blocking_event", io_args, run_blocking, blocking_event, 1),
	RUN("blocking_comp", io_args, run_blocking, blocking_comp, 1),
	RUN("blocking_async", io_args, run_blocking, blocking_async, 1),
	RUN("read_comp", io_args, run_read, read_comp, 2),
	RUN("read_async", io_args, run_read, read_async, 2),
	RUN("mmap", map_args, run_mmap, mmap_fields, 4),
	RUN("munmap", map_args, run_munmap, munmap_ring, 2),
	RUN("munmap_mem", map_args, run_munmap, munmap_mem, 2),
	RUN("mprotect", map_args, run_mprotect, mprotect_ring, 1),
	RUN("mprotect_mem", map_args, run_mprotect, mprotect_mem, 1),
	RUN("madvise", map_args, run_madvise, madvise_mem, 1),
	RUN("ring_write", map_args, run_ring_write, ring_write, 5),
	RUN("wait_cq", map_args, run_wait_cq, wait_cq, 4),
	RUN("fork", proc_args, run_fork, ms_field, 1),
	RUN("sleep", proc_args, run_sleep, ms_field, 1),
	RUN("nobody", proc_args, run_nobody, nothing, 1),
	RUN("leave", proc_args, run_leave, nothing, 1),
	RUN("remove_device", proc_args, run_remove_device, nothing, 0),
	RUN("add_device", proc_args, run_add_device, nothing, 0),
	RUN("memlock", proc_args, run_memlock, memlock, 1),
};

const unsigned int num_others = sizeof(others) / sizeof(others[0]);
