// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Measures connections and registrations, and the memory that they take. */
#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define MIN_OPS		5

/* A server of endpoints, which sleep themselves: one thread for each side. */
struct server {
	pthread_t thread;
	struct rdma_cm_id *listen;
	struct ibv_mr *mr;
	sem_t delivered, acked, down;
	uint64_t delivered_at, down_at;
};

static void serve_one(struct server *server)
{
	struct rdma_conn_param param = {};
	struct rdma_cm_id *id;
	struct ibv_wc wc;

	must(!rdma_get_request(server->listen, &id));
	must(!rdma_post_recv(id, NULL, server->mr->addr, 1, server->mr));
	must(!rdma_accept(id, &param));
	must(rdma_get_recv_comp(id, &wc) == 1 && !wc.status);
	server->delivered_at = now_ns();
	sem_post(&server->delivered);
	/* Once disconnected, the device would not acknowledge the send. */
	must(!sem_wait(&server->acked));
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	server->down_at = now_ns();
	sem_post(&server->down);
}

static void *serve(void *arg)
{
	for (;;)
		serve_one(arg);
	return NULL;
}

struct rdma_addrinfo *get_info(const char *port, int flags)
{
	struct rdma_addrinfo hints = {
		.ai_flags = flags, .ai_port_space = RDMA_PS_TCP,
	}, *info;

	must(!rdma_getaddrinfo(with_peer() ? config.peer : config.addr, port, &hints, &info));
	return info;
}

static uint64_t down_at(struct server *server)
{
	uint64_t now = now_ns();

	if (with_peer())
		return now;
	must(!sem_wait(&server->down));
	return server->down_at > now ? server->down_at : now;
}

/*
 * Measure set-up and tear-down, from the first call until both ends are done.
 * The connection counts as set up once the peer has the first message.
 */
static void connect_one(struct server *server, struct rdma_addrinfo *info,
			struct ibv_pd *pd, struct samples *up,
			struct samples *down)
{
	struct request request = conn_request(0, true);
	struct rdma_conn_param param = conn_param(&request, sizeof(request));
	struct ibv_qp_init_attr attr = queue_attr();
	struct rdma_cm_id *id;
	uint64_t before = now_ns();
	struct ibv_wc wc;

	/* No reads will be posted. */
	param.initiator_depth = 0;
	param.responder_resources = 0;
	must(!rdma_create_ep(&id, info, pd, &attr));
	must(!rdma_connect(id, &param));
	must(!rdma_post_send(id, NULL, server->mr->addr, 1, server->mr, IBV_SEND_SIGNALED));
	if (!with_peer())
		must(!sem_wait(&server->delivered));
	must(rdma_get_send_comp(id, &wc) == 1 && !wc.status);
	if (!with_peer())
		sem_post(&server->acked);
	samples_add(up, (with_peer() ? now_ns() : server->delivered_at) - before);

	before = now_ns();
	rdma_disconnect(id);
	rdma_destroy_ep(id);
	samples_add(down, down_at(server) - before);
}

/* Returns the server's port. */
static unsigned int start_server(struct server *server, struct world *w)
{
	struct ibv_qp_init_attr attr = queue_attr();
	struct rdma_addrinfo *info;

	sem_init(&server->delivered, 0, 0);
	sem_init(&server->acked, 0, 0);
	sem_init(&server->down, 0, 0);
	info = get_info("0", RAI_PASSIVE);
	must(!rdma_create_ep(&server->listen, info, w->pd, &attr));
	rdma_freeaddrinfo(info);
	must(!rdma_listen(server->listen, 16));
	must(!pthread_create(&server->thread, NULL, serve, server));
	return be16toh(rdma_get_src_port(server->listen));
}

/* The server's thread waits for clients until the program ends. */
static struct server server;
static struct rdma_addrinfo *info;
static struct world world;

static void connect_endpoint(struct samples *up, struct samples *down)
{
	connect_one(&server, info, world.pd, up, down);
}

void measure_connects(struct figures *f, void (*one)(struct samples *up, struct samples *down),
		      int warm, unsigned long conns, uint64_t min)
{
	struct samples up = {}, down = {};
	uint64_t start;

	while (warm--)
		one(&up, &down);
	samples_free(&up);
	samples_free(&down);
	all_ready();
	syscalls_begin();
	start = now_ns();
	do {
		one(&up, &down);
	} while (go_on(start, now_ns(), up.count, min));
	syscalls_end(f, up.count * conns);
	samples_figures(&up, f);
	f->value[F_DOWN_P50] = samples_percentile(&down, 0.5);
	f->value[F_DOWN_P99] = samples_percentile(&down, 0.99);
	samples_free(&up);
	samples_free(&down);
}

static void connect_endpoints(struct figures *f)
{
	char port[16];

	world_open(&world);
	server.mr = world.mr[1];
	snprintf(port, sizeof(port), "%lu", with_peer() ? config.port :
		 start_server(&server, &world));
	info = get_info(port, 0);
	measure_connects(f, connect_endpoint, 2, 1, MIN_OPS);
	rdma_freeaddrinfo(info);
}

/*
 * Many connections over an event channel, all at once or by the window: the time
 * is divided.
 */
static void connect_many(struct samples *up, struct samples *down)
{
	uint64_t before = now_ns(), middle;

	world_connect(&world, config.conns, config.window ? : config.conns, true);
	middle = now_ns();
	world_disconnect(&world);
	samples_add(up, (middle - before) / config.conns);
	samples_add(down, (now_ns() - middle) / config.conns);
}

static void connect_events(struct figures *f)
{
	world_open(&world);
	/* With many connections, one round is enough. */
	measure_connects(f, connect_many, 1, config.conns, config.conns < 100 ? MIN_OPS : 1);
	world_close(&world);
}

void run_connect(struct figures *f)
{
	config.depth = config.depth < 16 ? 16 : config.depth;
	if (!strcmp(config.api, "events"))
		connect_events(f);
	else if (!strcmp(config.api, "own") || !strcmp(config.api, "cqs"))
		connect_own(f);
	else
		connect_endpoints(f);
}

/*
 * Returns memory of which hardly two pages are neighbors.  With other memory that is
 * chance, and decides more than the library: rxe takes neighbors together.
 */
static void *allocate_apart(size_t size)
{
	char *part[2];
	size_t at;
	int i;

	for (i = 0; i < 2; i++) {
		part[i] = mmap(NULL, size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(part[i] != MAP_FAILED);
		madvise(part[i], size, MADV_NOHUGEPAGE);
	}
	for (at = 0; at < size; at += getpagesize())
		for (i = 0; i < 2; i++)
			part[i][at] = 1;
	munmap(part[1], size);
	return part[0];
}

void run_register(struct figures *f)
{
	struct samples both = {}, dereg = {};
	uint64_t start, before, middle, after;
	bool local = !strcmp(config.what, "local");
	int access = IBV_ACCESS_LOCAL_WRITE, i;
	size_t size = config.size;
	struct ibv_mr *mr;
	struct world w;
	void *buf;

	if (!local)
		access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	config.size = 64;
	world_open(&w);
	config.size = size;
	/* conns=1 means none; more connections exist beside the regions. */
	if (config.conns > 1)
		world_connect(&w, config.conns, 16, false);
	buf = allocate_apart(size);
	/* A cache of registrations keeps what has come back. */
	for (i = 0; i < 2; i++) {
		mr = ibv_reg_mr(w.pd, buf, size, IBV_ACCESS_LOCAL_WRITE);
		must(mr);
		must(!ibv_dereg_mr(mr));
	}
	all_ready();
	syscalls_begin();
	start = now_ns();
	do {
		before = now_ns();
		mr = ibv_reg_mr(w.pd, buf, size, access);
		must(mr);
		middle = now_ns();
		must(!ibv_dereg_mr(mr));
		after = now_ns();
		samples_add(&both, after - before);
		samples_add(&dereg, after - middle);
	} while (go_on(start, after, both.count, MIN_OPS));
	syscalls_end(f, both.count);
	samples_figures(&both, f);
	f->value[F_DEREG_P50] = samples_percentile(&dereg, 0.5);
	samples_free(&both);
	samples_free(&dereg);
	munmap(buf, size);
	world_disconnect(&w);
	world_close(&w);
}

/* Returns the sum of lines, in kB, of a file in /proc. */
static double proc_bytes(const char *path, const char *names)
{
	unsigned long long value;
	char line[256], name[64];
	double sum = 0;
	FILE *file = fopen(path, "r");

	must(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%60[^:]: %llu kB", name, &value) == 2) {
			strcat(name, " ");
			if (strstr(names, name))
				sum += value * 1024.0;
		}
	fclose(file);
	return sum;
}

/* Free pages in the lists of CPUs, which MemFree leaves out. */
static double percpu_free_bytes(void)
{
	FILE *file = fopen("/proc/zoneinfo", "r");
	unsigned long long count, sum = 0;
	char line[256];

	must(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " count: %llu", &count) == 1)
			sum += count;
	fclose(file);
	return (double)sum * getpagesize();
}

/*
 * Returns the bytes that are neither free nor of the page cache or of programs:
 * the memory of the kernel's queues and tables, however allocated.
 */
double kernel_bytes(void)
{
	return proc_bytes("/proc/meminfo", " MemTotal ") -
	       proc_bytes("/proc/meminfo", " MemFree Buffers Cached AnonPages ") -
	       percpu_free_bytes();
}

/* @pid is 0 for this process. */
double program_bytes(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid ? pid : getpid());
	return proc_bytes(path, " RssAnon ");
}

static void make_regions(struct world *w, struct ibv_mr **mrs)
{
	unsigned long i;

	for (i = 0; i < config.conns; i++) {
		mrs[i] = ibv_reg_mr(w->pd, w->buf[0], config.size, IBV_ACCESS_LOCAL_WRITE);
		must(mrs[i]);
	}
}

static void destroy_regions(struct ibv_mr **mrs)
{
	unsigned long i;

	for (i = 0; i < config.conns; i++)
		must(!ibv_dereg_mr(mrs[i]));
}

/* Both ends count together as one connection; a peer's end does not. */
void run_memory(struct figures *f)
{
	bool region = !strcmp(config.what, "region");
	struct ibv_mr **mrs = allocate(config.conns * sizeof(*mrs));
	double kernel, program, taken;
	struct world w;

	world_open(&w);
	/*
	 * Touch the benchmark's own memory before, so that it does not count.
	 */
	memset(w.conns, 0, config.conns * sizeof(*w.conns));
	/* Let memory that is freed late be freed before. */
	sleep(1);
	all_ready();
	kernel = kernel_bytes();
	program = program_bytes(0);
	all_ready();
	if (region)
		make_regions(&w, mrs);
	else
		world_connect(&w, config.conns, 16, false);
	sleep(1);
	all_ready();
	f->value[F_OPS] = config.conns;
	/* The growth of all processes; that of few connections may not show. */
	taken = kernel_bytes() - kernel;
	if (taken > 0)
		f->value[F_KERNEL_BYTES] = taken / (config.conns * config.procs);
	f->value[F_PROGRAM_BYTES] = (program_bytes(0) - program) / config.conns;
	all_ready();
	if (region)
		destroy_regions(mrs);
	else
		world_disconnect(&w);
	world_close(&w);
}
