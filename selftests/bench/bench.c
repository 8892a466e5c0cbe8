// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The benchmark's program.  It measures one case over the public API of
 * librdmacm and libibverbs, with whichever library it finds under these names,
 * and prints one line of JSON.  It has both ends of each connection, unless
 * another program serves as its peer.
 *
 * Usage: bench CASE [NAME=VALUE]...
 *
 *   latency   one work request at a time, until it has completed
 *   echo      a message on each connection, and the answers to all of them
 *   rate      depth work requests at a time, posted in batches
 *   connect   connect until the first byte has arrived, then disconnect;
 *             api=events: conns connections, window of them at once;
 *             api=own: with a queue pair of the program's, again and again;
 *             api=cqs: the same with a completion queue
 *   restart   conns clients connect at once to a server that was killed with
 *             their connections up, and started again
 *   register  register and deregister a region; conns > 1: beside so many
 *             connections; what=local: without access for the peer
 *   memory    memory of conns connections or regions
 *   serve     be the peer, at addr and port, until SIGTERM or SIGINT
 *
 *   addr=10.0.0.1 op=write|read|send mode=poll|sleep api=ep|events|own|cqs
 *   what=conn|region|local size=64 ms=200 ops=0 depth=1 recvs=2 batch=1 last=0
 *   conns=1 window=0 threads=1 procs=1 count=0 any=0
 *   peer=ADDR port=18515
 *
 * Times are in ns.  count=1 counts system calls; it needs root, makes them
 * slower, and counts those of programs that start later, too.  With any=1
 * librdma_post sends and writes from memory that is not registered.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define LIMIT	300		/* seconds, for each case */
#define MAX_CPUS	4096

struct config config = {
	.addr = "10.0.0.1", .op = "write", .mode = "poll", .api = "ep",
	.what = "conn", .size = 64, .ms = 200, .depth = 1, .recvs = 2, .batch = 1,
	.conns = 1, .threads = 1, .procs = 1, .port = 18515,
};

/* Memory that the processes share. */
static struct shared {
	pthread_barrier_t ready;
	struct figures figures[];
} *shared;

static int counters[MAX_CPUS];
static unsigned int ncounters;
static uint64_t counted;

void die(const char *format, ...)
{
	int error = errno;
	va_list args;

	fprintf(stderr, "bench: ");
	va_start(args, format);
	errno = error;
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void samples_add(struct samples *s, uint64_t ns)
{
	if (s->count == s->max) {
		s->max = s->max ? 2 * s->max : 4096;
		s->ns = realloc(s->ns, s->max * sizeof(*s->ns));
		must(s->ns);
	}
	s->ns[s->count++] = ns;
	s->sum += ns;
}

void samples_free(struct samples *s)
{
	free(s->ns);
	*s = (struct samples) {};
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Return the smallest sorted time that at least @share do not exceed. */
static double percentile(const struct samples *s, double share)
{
	size_t n = ceil(share * s->count);

	return s->ns[n ? n - 1 : 0];
}

double samples_percentile(struct samples *s, double share)
{
	if (!s->count)
		die("nothing was measured");
	qsort(s->ns, s->count, sizeof(*s->ns), by_time);
	return percentile(s, share);
}

void samples_figures(struct samples *s, struct figures *f)
{
	f->value[F_P50] = samples_percentile(s, 0.5);
	f->value[F_P99] = percentile(s, 0.99);
	f->value[F_P999] = percentile(s, 0.999);
	f->value[F_MIN] = s->ns[0];
	f->value[F_MEAN] = s->sum / s->count;
	f->value[F_OPS] = s->count;
}

/*
 * Open a counter of the system call event on each CPU.  A counter of a task
 * would make the kernel change its scheduler's code at both ends; QEMU before
 * 8.1 may run the old code, and the kernel dies of an unknown breakpoint.
 */
static void open_counters(void)
{
	static const char path[] = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr),
	};
	long cpu, cpus = sysconf(_SC_NPROCESSORS_CONF);
	FILE *file = fopen(path, "r");
	unsigned long long id;
	char filter[64];
	int fd;

	if (!file || fscanf(file, "%llu", &id) != 1)
		die("%s: %m", path);
	fclose(file);
	attr.config = id;
	/* Later threads have higher ids; readv() reads these counters. */
	snprintf(filter, sizeof(filter), "common_pid >= %d && id != %d", getpid(), SYS_readv);
	for (cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++) {
		fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, 0);
		if (fd < 0 && errno == ENODEV)
			continue;
		if (fd < 0)
			die("perf_event_open: %m");
		if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter))
			die("%s: %m", filter);
		counters[ncounters++] = fd;
	}
}

static uint64_t read_counters(void)
{
	uint64_t value, sum = 0;
	struct iovec into = { &value, sizeof(value) };
	unsigned int i;

	for (i = 0; i < ncounters; i++) {
		must(readv(counters[i], &into, 1) == sizeof(value));
		sum += value;
	}
	return sum;
}

void syscalls_begin(void)
{
	if (ncounters)
		counted = read_counters();
}

void syscalls_end(struct figures *f, uint64_t ops)
{
	if (ncounters)
		f->value[F_SYSCALLS] = (double)(read_counters() - counted) / ops;
}

void all_ready(void)
{
	pthread_barrier_wait(&shared->ready);
}

static const struct {
	const char *name;
	void (*run)(struct figures *f);
} cases[] = {
	{ "latency", run_latency },
	{ "echo", run_echo },
	{ "rate", run_rate },
	{ "connect", run_connect },
	{ "restart", run_restart },
	{ "register", run_register },
	{ "memory", run_memory },
	{ "serve", run_serve },
};

static const struct {
	const char *name;
	char *text;		/* or NULL */
	unsigned long *number;
	size_t size;		/* size of the text */
} params[] = {
	{ "addr", config.addr, NULL, sizeof(config.addr) },
	{ "peer", config.peer, NULL, sizeof(config.peer) },
	{ "op", config.op, NULL, sizeof(config.op) },
	{ "mode", config.mode, NULL, sizeof(config.mode) },
	{ "api", config.api, NULL, sizeof(config.api) },
	{ "what", config.what, NULL, sizeof(config.what) },
	{ "size", NULL, &config.size, 0 },
	{ "ms", NULL, &config.ms, 0 },
	{ "ops", NULL, &config.ops, 0 },
	{ "depth", NULL, &config.depth, 0 },
	{ "recvs", NULL, &config.recvs, 0 },
	{ "batch", NULL, &config.batch, 0 },
	{ "last", NULL, &config.last, 0 },
	{ "conns", NULL, &config.conns, 0 },
	{ "window", NULL, &config.window, 0 },
	{ "threads", NULL, &config.threads, 0 },
	{ "procs", NULL, &config.procs, 0 },
	{ "count", NULL, &config.count, 0 },
	{ "any", NULL, &config.any, 0 },
	{ "port", NULL, &config.port, 0 },
};

/* Combine the figures of all processes: their sum or their median. */
static const struct {
	const char *name;
	bool sum;		/* otherwise the median */
} figure_names[F_COUNT] = {
	[F_OPS] = { "ops", true },
	[F_P50] = { "p50", false },
	[F_P99] = { "p99", false },
	[F_P999] = { "p999", false },
	[F_MIN] = { "min", false },
	[F_MEAN] = { "mean", false },
	[F_RATE] = { "rate", true },
	[F_BYTES] = { "bytes", true },
	[F_DOWN_P50] = { "down_p50", false },
	[F_DOWN_P99] = { "down_p99", false },
	[F_DEREG_P50] = { "dereg_p50", false },
	[F_SYSCALLS] = { "syscalls", false },
	[F_CPU] = { "cpu", false },
	[F_KERNEL_BYTES] = { "kernel_bytes", false },
	[F_PROGRAM_BYTES] = { "program_bytes", false },
	[F_RETRIES] = { "retries", true },
	[F_SILENT] = { "silent", true },
};

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* A number with a suffix K or M, or none */
static unsigned long parse_number(const char *arg, const char *text)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (*end == 'K')
		value <<= 10;
	else if (*end == 'M')
		value <<= 20;
	if (errno || end == text || (*end && end[1]))
		die("%s: not a number", arg);
	return value;
}

static void parse(const char *arg)
{
	const char *value = strchr(arg, '=');
	size_t i;

	for (i = 0; value && i < ARRAY_SIZE(params); i++) {
		if (strlen(params[i].name) != (size_t)(value - arg) ||
		    strncmp(params[i].name, arg, value - arg))
			continue;
		value++;
		if (params[i].number)
			*params[i].number = parse_number(arg, value);
		else if (strlen(value) < params[i].size)
			strcpy(params[i].text, value);
		else
			break;
		return;
	}
	die("%s: not understood", arg);
}

static double median(double *values, size_t count)
{
	size_t i, k;

	for (i = 1; i < count; i++) {
		double value = values[i];

		for (k = i; k && values[k - 1] > value; k--)
			values[k] = values[k - 1];
		values[k] = value;
	}
	return count % 2 ? values[count / 2] :
	       (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double merged(enum figure figure)
{
	double values[config.procs], sum = 0;
	size_t i;

	for (i = 0; i < config.procs; i++) {
		values[i] = shared->figures[i].value[figure];
		if (isnan(values[i]))
			return NAN;
		sum += values[i];
	}
	return figure_names[figure].sum ? sum : median(values, config.procs);
}

static void print(const char *name)
{
	double value;
	size_t i;

	printf("{\"case\":\"%s\"", name);
	for (i = 0; i < ARRAY_SIZE(params); i++)
		if (params[i].number)
			printf(",\"%s\":%lu", params[i].name, *params[i].number);
		else
			printf(",\"%s\":\"%s\"", params[i].name, params[i].text);
	for (i = 0; i < F_COUNT; i++) {
		value = merged(i);
		if (!isnan(value))
			printf(",\"%s\":%.10g", i == F_OPS ? "done" : figure_names[i].name, value);
	}
	printf("}\n");
}

static void share(void)
{
	pthread_barrierattr_t attr;
	size_t i, k;

	shared = mmap(NULL, sizeof(*shared) + config.procs * sizeof(shared->figures[0]),
		      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(shared != MAP_FAILED);
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	must(!pthread_barrier_init(&shared->ready, &attr, config.procs));
	for (i = 0; i < config.procs; i++)
		for (k = 0; k < F_COUNT; k++)
			shared->figures[i].value[k] = NAN;
}

/*
 * If one process fails, the others would wait for it: end the process group.
 * The children also end when the first process is killed.
 */
static void run_processes(void (*run)(struct figures *f))
{
	pid_t parent = getpid();
	int status, failed = 0;
	size_t i;

	for (i = 0; i < config.procs; i++) {
		pid_t pid = fork();

		must(pid >= 0);
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(1);
			alarm(LIMIT);
			run(&shared->figures[i]);
			_exit(0);
		}
	}
	while (!failed && wait(&status) > 0)
		failed = status;
	if (failed) {
		signal(SIGTERM, SIG_IGN);
		kill(0, SIGTERM);
		die("a process ended with status %#x", failed);
	}
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	size_t i;

	if (argc < 2)
		die("usage: bench CASE [NAME=VALUE]...");
	for (i = 2; i < (size_t)argc; i++)
		parse(argv[i]);
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (!strcmp(cases[i].name, argv[1]))
			break;
	if (i == ARRAY_SIZE(cases))
		die("%s: no such case", argv[1]);
	if (!config.procs || !config.conns || !config.threads ||
	    !config.batch || config.batch > MAX_BATCH ||
	    config.batch > config.depth || config.conns % config.threads ||
	    (config.count && config.procs > 1) || config.port > 65000 ||
	    config.window > config.conns)
		die("these numbers do not go together");

	/* A connection may need four descriptors. */
	must(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	must(!setrlimit(RLIMIT_NOFILE, &limit));
	/* The system's libraries have no such thing, and need the key. */
	config.any = config.any && dlsym(RTLD_DEFAULT, "rdma_post_recv_any");
	/* Set the variable before librdma_post reads it, as a user would. */
	if (config.any)
		must(!setenv("RDMA_POST_ANY_MEMORY", "1", 1));
	share();
	if (config.count)
		open_counters();
	if (config.procs == 1) {
		if (cases[i].run != run_serve)
			alarm(LIMIT);
		cases[i].run(&shared->figures[0]);
	} else {
		setpgid(0, 0);
		run_processes(cases[i].run);
	}
	if (cases[i].run != run_serve)
		print(cases[i].name);
	return 0;
}
