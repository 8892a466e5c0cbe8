// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What programs do beside commands: files, mappings, rings, work requests,
 * processes.  Each takes a struct, as commands do.
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

/* Descriptors below these are the fuzzer's own. */
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

/* How long to wait: what does not come is not waited for again and again. */
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

	/* Without signals it could sleep for ever. */
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

/* Reads and GET_EVENT sleep from now on, until a signal comes. */
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

/* The ring takes the place that belongs to its register. */
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

/* Rings may be gone or not be writable: let the kernel touch them for us. */
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
	/* Nobody else reads. */
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

/* Wait for a completion, and consume everything that is there. */
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

/* -------------------------------------------------------- work requests */

struct wr_args {
	struct rpost_send_wr wr;
	struct rpost_recv_wr recv;
	struct rpost_sge sge[2];
	uint64_t num_sge;
	uint64_t inline_len;
	uint64_t size;
	uint64_t data;
};

static void *block_room(struct context *c, uint32_t bytes)
{
	char *to = c->block + c->block_len;

	if (c->block_len + bytes > BLOCK_BYTES / 2)
		return NULL;
	memset(to, 0, bytes);
	c->block_len += bytes;
	c->block_count++;
	return to;
}

static long run_send_wr(struct context *c, void *arg)
{
	struct wr_args *a = arg;
	bool is_inline = a->wr.send_flags & RPOST_SEND_INLINE;
	uint32_t data = is_inline ? (a->inline_len & 0x1fff) :
				    2 * sizeof(a->sge[0]);
	uint32_t bytes = sizeof(a->wr) + ((data + 7) & ~7);
	struct rpost_send_wr *wr;

	if (!is_inline)
		bytes = sizeof(a->wr) +
			(a->num_sge < 3 ? a->num_sge : 2) * sizeof(a->sge[0]);
	wr = block_room(c, bytes);
	if (!wr)
		return -ENOSPC;
	*wr = a->wr;
	wr->size = a->size ? a->size : bytes;
	wr->num_sge = a->num_sge;
	wr->inline_len = a->inline_len;
	if (is_inline)
		memset(wr + 1, a->data, data);
	else
		memcpy(wr + 1, a->sge, bytes - sizeof(*wr));
	return 0;
}

static long run_recv_wr(struct context *c, void *arg)
{
	struct wr_args *a = arg;
	uint32_t n = a->num_sge < 3 ? a->num_sge : 2;
	uint32_t bytes = sizeof(a->recv) + n * sizeof(a->sge[0]);
	struct rpost_recv_wr *wr = block_room(c, bytes);

	if (!wr)
		return -ENOSPC;
	*wr = a->recv;
	wr->size = a->size ? a->size : bytes;
	wr->num_sge = a->num_sge;
	memcpy(wr + 1, a->sge, n * sizeof(a->sge[0]));
	return 0;
}

#define SGES								\
	INT(wr_args, num_sge, 3),					\
	INT(wr_args, size, 128),					\
	SPACE(wr_args, sge[0].addr, K_ADDR),				\
	INT(wr_args, sge[0].length, 0x4000),				\
	IN(wr_args, sge[0].lkey, R_LKEY),				\
	SPACE(wr_args, sge[1].addr, K_ADDR),				\
	INT(wr_args, sge[1].length, 0x4000),				\
	IN(wr_args, sge[1].lkey, R_LKEY)

#define SEND_COMMON							\
	INT(wr_args, wr.wr_id, 0),					\
	INT(wr_args, wr.opcode, 11),					\
	FLAGS(wr_args, wr.send_flags, 15),				\
	INT(wr_args, wr.imm_data, 2),					\
	FIELD(wr_args, wr.reserved, K_ZERO, R_NONE, 0),			\
	INT(wr_args, inline_len, 300),					\
	INT(wr_args, data, 255),					\
	SGES

static const struct field send_wr[] = {
	SEND_COMMON,
	IN(wr_args, wr.rkey, R_RKEY),
	SPACE(wr_args, wr.remote_addr, K_ADDR),
	INT(wr_args, wr.compare_add, 2),
	INT(wr_args, wr.swap, 2),
};
static const struct field datagram_wr[] = {
	SEND_COMMON,
	IN(wr_args, wr.ah, R_AH),
	IN(wr_args, wr.remote_qpn, R_QPN),
	INT(wr_args, wr.remote_qkey, 0),
};
static const struct field recv_wr[] = {
	INT(wr_args, recv.wr_id, 0),
	SGES,
};

/* ---------------------------------------------------------- path records */

/* struct ib_path_rec_data of <rdma/ib_user_sa.h>, at the start of the memory */
struct path_args {
	uint32_t flags;
	uint32_t reserved;
	uint8_t head[8];	/* service id */
	uint8_t dgid[16];
	uint8_t sgid[16];
	uint8_t dlid[2];
	uint8_t slid[2];
	uint8_t hop_flow[4];
	uint8_t tclass;
	uint8_t reversible_numb;
	uint8_t pkey[2];
	uint8_t qos_sl[2];
	uint8_t mtu;
	uint8_t rate;
	uint8_t life;
	uint8_t preference;
	uint8_t tail[6];
};

static long run_path_rec(struct context *c, void *arg)
{
	(void)c;
	memcpy((void *)MEM_ADDR, arg, sizeof(struct path_args));
	return 0;
}

static const struct field path_rec[] = {
	FLAGS(path_args, flags, 0x3f),
	SPACE(path_args, dgid, K_GID),
	SPACE(path_args, sgid, K_GID),
	SPACE(path_args, dlid, K_BYTES),
	SPACE(path_args, pkey, K_BYTES),
	SPACE(path_args, hop_flow, K_BYTES),
	INT(path_args, reversible_numb, 255),
	SPACE(path_args, qos_sl, K_BYTES),
	INT(path_args, mtu, 255),
	INT(path_args, rate, 255),
	INT(path_args, life, 255),
};

/* ------------------------------------------------------------- processes */

struct proc_args {
	uint64_t ms;
	uint64_t bytes;
};

/* A process that has everything open for a while. */
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

/* What is open is left to the exit. */
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

/* No privileges any more, for this thread. */
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

/* Only where the fuzzer may, see -d. */
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

#define CALL(name, args, fn, table, weight)				\
	{ name, 0, fn, sizeof(struct args), weight,			\
	  sizeof(table) / sizeof((table)[0]), table }

static const struct desc table[] = {
	CALL("open", file_args, run_open, open_fields, 2),
	CALL("close", file_args, run_close, close_file, 2),
	CALL("close_event", file_args, run_close, close_event, 1),
	CALL("close_comp", file_args, run_close, close_comp, 1),
	CALL("close_async", file_args, run_close, close_async, 1),
	CALL("dup", file_args, run_dup, dup_fields, 1),
	CALL("poll_event", io_args, run_poll, poll_event, 3),
	CALL("poll_comp", io_args, run_poll, poll_comp, 2),
	CALL("poll_async", io_args, run_poll, poll_async, 1),
	CALL("blocking_event", io_args, run_blocking, blocking_event, 1),
	CALL("blocking_comp", io_args, run_blocking, blocking_comp, 1),
	CALL("blocking_async", io_args, run_blocking, blocking_async, 1),
	CALL("read_comp", io_args, run_read, read_comp, 2),
	CALL("read_async", io_args, run_read, read_async, 2),
	CALL("mmap", map_args, run_mmap, mmap_fields, 4),
	CALL("munmap", map_args, run_munmap, munmap_ring, 2),
	CALL("munmap_mem", map_args, run_munmap, munmap_mem, 2),
	CALL("mprotect", map_args, run_mprotect, mprotect_ring, 1),
	CALL("mprotect_mem", map_args, run_mprotect, mprotect_mem, 1),
	CALL("madvise", map_args, run_madvise, madvise_mem, 1),
	CALL("ring_write", map_args, run_ring_write, ring_write, 5),
	CALL("wait_cq", map_args, run_wait_cq, wait_cq, 4),
	CALL("send_wr", wr_args, run_send_wr, send_wr, 8),
	CALL("datagram_wr", wr_args, run_send_wr, datagram_wr, 5),
	CALL("recv_wr", wr_args, run_recv_wr, recv_wr, 6),
	CALL("path_rec", path_args, run_path_rec, path_rec, 2),
	CALL("fork", proc_args, run_fork, ms_field, 1),
	CALL("sleep", proc_args, run_sleep, ms_field, 1),
	CALL("nobody", proc_args, run_nobody, nothing, 1),
	CALL("leave", proc_args, run_leave, nothing, 1),
	CALL("remove_device", proc_args, run_remove_device, nothing, 0),
	CALL("add_device", proc_args, run_add_device, nothing, 0),
	CALL("memlock", proc_args, run_memlock, memlock, 1),
};

const struct desc *others = table;
const unsigned int num_others = sizeof(table) / sizeof(table[0]);
