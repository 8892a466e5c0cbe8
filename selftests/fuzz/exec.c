// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Runs a program in a process of its own. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"

#define MAX_LOOPED	60	/* calls of the second thread */

struct outcome *outcome;
uint64_t boot_regs[NUM_REGS][NUM_SLOTS];
static bool verbose;

/* ---------------------------------------------------------------- values */

static void fill_sock4(struct sockaddr_in *to, const char *addr)
{
	to->sin_family = AF_INET;
	inet_pton(AF_INET, addr, &to->sin_addr);
}

static void fill_sock6(struct sockaddr_in6 *to, const char *addr)
{
	to->sin6_family = AF_INET6;
	inet_pton(AF_INET6, addr, &to->sin6_addr);
}

/* Like struct sockaddr_ib of <rdma/ib.h>, from its start. */
struct sock_ib {
	unsigned short family;
	uint16_t pkey;
	uint32_t flowinfo;
	uint8_t addr[16];
	uint64_t sid, sid_mask, scope_id;
};

static const char * const sock_addrs[NUM_SOCKS] = {
	[S_V4] = "10.0.0.1", [S_V6] = "fd00::1", [S_ANY4] = "0.0.0.0",
	[S_ANY6] = "::", [S_LOOP4] = "127.0.0.1", [S_NOWHERE4] = "10.0.0.77",
	[S_NOWHERE6] = "fd00::77", [S_MCAST4] = "239.1.2.3",
	[S_MCAST6] = "ff0e::123",
};

static unsigned int sock_len(uint64_t value)
{
	switch (value & 0xff) {
	case S_NONE:
		return 0;
	case S_V6:
	case S_ANY6:
	case S_NOWHERE6:
	case S_MCAST6:
		return sizeof(struct sockaddr_in6);
	case S_IB:
	case S_IBMCAST:
		return sizeof(struct sock_ib);
	default:
		return sizeof(struct sockaddr_in);
	}
}

void fill_sock(void *to, uint64_t value)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
		struct sock_ib ib;
	} s = { 0 };
	unsigned int kind = value & 0xff, port = value >> 8;

	if (port && port < 256)
		port += SOCK_PORT;
	if (kind >= NUM_SOCKS) {
		s.v4.sin_family = kind;
	} else if (kind == S_UNIX) {
		s.v4.sin_family = AF_UNIX;
	} else if (kind == S_IB || kind == S_IBMCAST) {
		s.ib.family = 27;	/* AF_IB */
		s.ib.pkey = 0xffff;
		fill_gid(s.ib.addr, kind == S_IB ? G_LINK : G_MCAST6);
		s.ib.sid = htonl(0x01060000 + port);
		s.ib.sid_mask = ~0ull;
	} else if (sock_len(value) == sizeof(s.v6)) {
		fill_sock6(&s.v6, sock_addrs[kind]);
		s.v6.sin6_port = htons(port);
	} else if (kind != S_NONE) {
		fill_sock4(&s.v4, sock_addrs[kind]);
		s.v4.sin_port = htons(port);
	}
	memcpy(to, &s, sizeof(s));
}

void fill_gid(void *to, uint64_t value)
{
	static const char * const gids[NUM_GIDS] = {
		[G_ZERO] = "::", [G_V4] = "::ffff:10.0.0.1",
		[G_V6] = "fd00::1", [G_LINK] = "fe80::1",
		[G_MCAST4] = "ff0e::ffff:239.1.2.3", [G_MCAST6] = "ff0e::123",
		[G_NOWHERE] = "::ffff:10.0.0.77",
	};

	if (value < NUM_GIDS)
		inet_pton(AF_INET6, gids[value], to);
	else
		memset(to, value, 16);
}

/* ---------------------------------------------------------------- structs */

static const struct value *find(const struct call *call, const char *name)
{
	unsigned int i;

	for (i = 0; i < call->desc->num_fields; i++) {
		if (!strcmp(call->desc->fields[i].name, name))
			return &call->values[i];
	}
	return NULL;
}

static uint64_t number(const struct context *c, const struct value *value)
{
	if (value->reg && value->reg < NUM_REGS)
		return c->run->regs[value->reg][value->val % NUM_SLOTS];
	return value->val;
}

static uint64_t sock_len_of(const struct call *call, const char *name)
{
	const struct value *value = find(call, name);

	return value && value->set ? sock_len(value->val) : 0;
}

/* Compute a field that depends on the call or on its other fields. */
static uint64_t auto_value(const struct context *c, const struct call *call,
			   const struct field *field)
{
	const char *name = field->name;

	if (!strcmp(name, "size"))
		return is_post(call->desc->nr) ? sizeof(struct rpost_post) + c->block_len :
						 call->desc->size;
	if (!strcmp(name, "addr_len"))
		return sock_len_of(call, "addr");
	if (!strcmp(name, "src_len"))
		return sock_len_of(call, "src");
	if (!strcmp(name, "dst_len"))
		return sock_len_of(call, "dst");
	if (!strcmp(name, "iova"))
		return number(c, find(call, "addr"));
	if (!strcmp(name, "type"))
		return call->desc->fields[call->desc->num_fields - 1].reg;
	return 0;
}

static void put_field(const struct context *c, const struct call *call,
		      unsigned int i, char *arg)
{
	const struct field *field = &call->desc->fields[i];
	const struct value *value = &call->values[i];
	char *to = arg + field->offset;
	uint64_t n;

	if (field->offset < 0)
		return;
	if (field->kind == K_OUT) {
		if (call->desc->nr)
			return;
		n = value->val;
	} else if (value->set) {
		n = number(c, value);
	} else if (field->kind == K_AUTO) {
		n = auto_value(c, call, field);
	} else {
		n = field->reg == R_COMP ? -1 : 0;
	}
	if (field->kind == K_SOCK && value->set)
		fill_sock(to, n);
	else if (field->kind == K_GID && value->set)
		fill_gid(to, n);
	else if (field->size > 8)
		memset(to, n, field->size);
	else
		memcpy(to, &n, field->size);
}

static void take_outputs(const struct context *c, const struct call *call,
			 const char *arg)
{
	const struct field *field;
	unsigned int i;
	uint64_t n;

	for (i = 0; i < call->desc->num_fields; i++) {
		field = &call->desc->fields[i];
		if (field->kind != K_OUT)
			continue;
		n = 0;
		memcpy(&n, arg + field->offset, field->size);
		if (field->reg == R_EVENT || field->reg == R_COMP ||
		    field->reg == R_ASYNC)
			fcntl(n, F_SETFL, O_NONBLOCK);
		if (n && call->values[i].set)
			c->run->regs[field->reg][call->values[i].val %
						 NUM_SLOTS] = n;
	}
}

/* ------------------------------------------------------------------ calls */

/* Place the struct of a call: mapped well, partly, read-only or not at all. */
static char *place_arg(const struct context *c, const struct call *call,
		       const char *arg, unsigned int size)
{
	const struct value *value = find(call, "arg");
	char *base = (char *)ARG_ADDR + c->thread * 0x100000;
	char *to = base;

	switch (value->set ? value->val % NUM_ARGS : ARG_OK) {
	case ARG_EDGE:		/* a page ends with it */
		to = base + 4096 - size;
		break;
	case ARG_READONLY:
		memcpy(base, arg, size);
		return base + 0x10000;
	case ARG_SHORT:		/* a page ends within it */
		to = base + 4096 - 8;
		memcpy(to, arg, 8);
		return to;
	case ARG_NULL:
		return NULL;
	}
	memcpy(to, arg, size);
	return to;
}

/*
 * Put the struct of a post before its work requests, and place both as place_arg() does if
 * they fit into a page.
 */
static char *place_post(const struct context *c, const struct call *call, const char *arg)
{
	unsigned int size = sizeof(struct rpost_post) + c->block_len;
	char *post = c->block - sizeof(struct rpost_post);

	memcpy(post, arg, sizeof(struct rpost_post));
	return size > 4096 ? post : place_arg(c, call, post, size);
}

static void set_fail(const struct context *c, unsigned int nth)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", nth);

	/* This write may be what fails, so try twice. */
	if (c->fail_fd >= 0 && pwrite(c->fail_fd, text, n, 0) != n &&
	    pwrite(c->fail_fd, text, n, 0) != n)
		return;
}

static void note(const struct call *call, long ret)
{
	unsigned int nr = _IOC_NR(call->desc->nr), n;
	unsigned int err = ret < 0 ? -ret : 0;

	/* Report errors of the kernel's own, and of a missing command. */
	if (err > EHWPOISON || err == ENOSYS)
		outcome->odd_errno = err;
	err &= 0xff;
	__atomic_fetch_add(&outcome->commands, 1, __ATOMIC_RELAXED);
	n = __atomic_fetch_add(&outcome->num_results, 1, __ATOMIC_RELAXED);
	if (n < MAX_RESULTS)
		outcome->results[n] = nr << 8 | err;
}

static long run_command(const struct context *c, const struct call *call,
			char *arg)
{
	const struct value *on = find(call, "on");
	int fd = on->set ? (int)number(c, on) : -1;
	bool post = is_post(call->desc->nr);
	char *to = post ? place_post(c, call, arg) :
			  place_arg(c, call, arg, call->desc->size);
	long ret;

	ret = ioctl(fd, call->desc->nr, to) < 0 ? -errno : 0;
	if (!ret && to && !post)
		memcpy(arg, to, call->desc->size);
	/* An empty register says nothing about the command. */
	if (fd > 0)
		note(call, ret);
	return ret;
}

static void run_call(struct context *c, const struct call *call)
{
	char arg[MAX_ARG] __attribute__((aligned(8))) = { 0 };
	unsigned int i;
	long ret;

	for (i = 0; i < call->desc->num_fields; i++)
		put_field(c, call, i, arg);
	if (call->fail)
		set_fail(c, call->fail);
	ret = call->desc->run ? call->desc->run(c, arg) :
				run_command(c, call, arg);
	if (call->fail)
		set_fail(c, 0);
	if (is_post(call->desc->nr))
		c->block_len = 0;
	if (ret >= 0)
		take_outputs(c, call, arg);
	if (verbose)
		fprintf(stderr, "# %s%s = %ld%s%s\n", c->thread ? "& " : "",
			call->desc->name, ret, ret < 0 ? " " : "",
			ret < 0 ? strerrorname_np(-ret) : "");
}

/* ---------------------------------------------------------------- threads */

struct group {
	struct context context;
	pthread_t thread;
	bool running;
	unsigned int begin, end, times;
};

static void context_init(struct context *c, struct run *run, unsigned int n)
{
	*c = (struct context) {
		.run = run,
		.thread = n,
		.block = (char *)BLOCK_ADDR + n * (BLOCK_BYTES / 2) + sizeof(struct rpost_post),
		.fail_fd = open("/proc/thread-self/fail-nth",
				O_RDWR | O_CLOEXEC),
	};
}

static void *run_group(void *data)
{
	struct group *group = data;
	struct run *run = group->context.run;
	unsigned int i, n;

	context_init(&group->context, run, 1);
	cover_begin(run->kcov[1]);
	for (n = 0; n < group->times; n++) {
		for (i = group->begin; i < group->end; i++)
			run_call(&group->context, &run->prog->calls[i]);
	}
	cover_end(run->kcov[1]);
	close(group->context.fail_fd);
	return NULL;
}

static void group_wait(struct group *group)
{
	sigset_t alarm;

	if (!group->running)
		return;
	/* Signals must go to the thread that may sleep. */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	pthread_join(group->thread, NULL);
	pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
	group->running = false;
}

/*
 * Start the next calls of the second thread.  Returns the index of the first
 * call after them.
 */
static unsigned int group_start(struct group *group, unsigned int begin)
{
	const struct prog *prog = group->context.run->prog;
	unsigned int end = begin + 1;

	group_wait(group);
	while (end < prog->num_calls && prog->calls[end].async)
		end++;
	group->begin = begin;
	group->end = end;
	group->times = prog->calls[begin].async;
	if (group->times > MAX_LOOPED / (end - begin))
		group->times = 1 + MAX_LOOPED / (end - begin);
	group->running = !pthread_create(&group->thread, NULL, run_group,
					 group);
	return end;
}

static bool map_at(unsigned long addr, size_t bytes, int prot)
{
	return mmap((void *)addr, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS |
		    MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Map pages for a thread's arguments, and the same pages read-only. */
static bool map_args(unsigned long addr)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	bool ok;

	ok = fd >= 0 && !ftruncate(fd, 4096) &&
	     mmap((void *)addr, 4096, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED &&
	     mmap((void *)(addr + 0x10000), 4096, PROT_READ,
		  MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
	close(fd);
	return ok;
}

static void close_all(void)
{
	int fd;

	munmap((void *)RING_ADDR, NUM_SLOTS * RING_STRIDE);
	for (fd = 64; fd < 256; fd++)
		close(fd);
}

/* Runs in the program's process, and does not return. */
void exec_prog(const struct prog *prog, const int kcov[2], int wait_ms,
	       bool loud)
{
	struct run run = {
		.prog = prog,
		.kcov = { kcov[0], kcov[1] },
		.wait_ms = wait_ms,
	};
	struct group group = { .context.run = &run };
	struct context c;
	unsigned int i = 0;

	verbose = loud;
	memcpy(run.regs, boot_regs, sizeof(run.regs));
	context_init(&c, &run, 0);
	if (!map_at(MEM_ADDR, MEM_PAGES * 4096, PROT_READ | PROT_WRITE) ||
	    !map_at(MEM_READONLY, 16 * 4096, PROT_READ) ||
	    !map_at(BLOCK_ADDR, BLOCK_BYTES, PROT_READ | PROT_WRITE) ||
	    !map_args(ARG_ADDR) || !map_args(ARG_ADDR + 0x100000))
		_exit(2);
	cover_begin(kcov[0]);
	while (i < prog->num_calls) {
		if (prog->calls[i].async)
			i = group_start(&group, i);
		else
			run_call(&c, &prog->calls[i++]);
	}
	group_wait(&group);
	if (!run.leave_open)
		close_all();
	cover_end(kcov[0]);
	_exit(0);
}

/* Put the numbers of devices and the GID index in registers. */
int find_devices(void)
{
	uint32_t ids[NUM_SLOTS] = { 0 };
	struct rpost_query_devices devices = {
		.size = sizeof(devices),
		.devices = (uintptr_t)ids,
		.count = NUM_SLOTS,
	};
	struct rpost_gid gids[32];
	struct rpost_query_gids cmd = {
		.size = sizeof(cmd), .port = 1, .count = 32,
		.gids = (uintptr_t)gids,
	};
	int fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC), ret = -1;
	uint8_t want[16];
	uint32_t i;

	if (fd < 0)
		return -1;
	if (ioctl(fd, RPOST_IOC_QUERY_DEVICES, &devices) || !ids[0])
		goto out;
	for (i = 0; i < NUM_SLOTS; i++)
		boot_regs[R_DEV][i] = ids[i];
	cmd.device = ids[0];
	if (ioctl(fd, RPOST_IOC_QUERY_GIDS, &cmd))
		goto out;
	fill_gid(want, G_V4);
	for (i = 0; i < cmd.count; i++) {
		if (!memcmp(gids[i].gid, want, 16)) {
			boot_regs[R_GIDX][0] = gids[i].index;
			ret = 0;
		}
	}
out:
	close(fd);
	return ret;
}
