// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Usage: fuzz [-t SECONDS] [-s SEED] [-l LOG] [-o FILE] CORPUS
 *        fuzz -r PROGRAM
 *
 * Runs all programs in the directory CORPUS, then generates programs, and keeps
 * those that reach code, or get an error from a command, that no other has.
 *
 *   -t SECONDS  time to generate programs, 60 by default; 0: only run CORPUS
 *   -s SEED     seed of all random numbers; by default from the clock
 *   -l LOG      write each program here before it runs, below "=== NUMBER";
 *               "+++" and what it has reached follow if it is kept, "!!!" and
 *               the reason if it is a find
 *   -o FILE     write the offsets in the module's code that were reached
 *   -F          let no allocations fail
 *   -d NETDEV   let programs remove the device rxe0, which is on this interface
 *   -r PROGRAM  run one program, and print the result of each call
 *
 * Exit status: 0; 1 after a find; 2 for errors of the fuzzer.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define FIRST_WAIT_MS	3000
#define SLOW_MS		20000
#define KILL_MS		60000
#define HANG_MS		240000
#define MAX_CORPUS	4096
#define MAX_TRACE	(512 << 10)
#define REPORT_MS	20000

static struct prog *corpus[MAX_CORPUS];
static unsigned int corpus_size;
static uint8_t reached[COVER_MAX];	/* by offset into the code */
static uint8_t said[1 << 16];		/* by command and errno */
static unsigned int num_reached, num_said;
static uint32_t *trace;
static unsigned int trace_len;
static int kcov[2];
static FILE *run_log;
static unsigned long executions, commands, slow, waits, waited_ms;
static int wait_ms = FIRST_WAIT_MS;
static uint64_t started, reported;
static bool found;

/* ---------------------------------------------------------------- running */

static void find(const char *what, const struct prog *prog, const char *detail)
{
	static char text[MAX_TEXT];

	prog_print(prog, text, sizeof(text));
	printf("fuzz: FIND: %s:%s\n%s", what, detail, text);
	fflush(stdout);
	fprintf(run_log, "!!! %s:%s\n", what, detail);
	fflush(run_log);
	found = true;
}

static void told_slow(int pid, const struct prog *prog)
{
	static char text[MAX_TEXT];

	prog_print(prog, text, sizeof(text));
	printf("fuzz: a program has run for %d s:\n%s", SLOW_MS / 1000, text);
	watch_stacks(pid, stdout);
	fflush(stdout);
	slow++;
}

/* Wait for all processes of a program.  Returns false if one hangs. */
static bool reap(int pid, const struct prog *prog)
{
	uint64_t begin = now_ms(), t;
	bool told = false, killed = false;
	int status, ret;

	for (;;) {
		ret = waitpid(-1, &status, WNOHANG);
		if (ret < 0)
			return true;
		if (ret > 0)
			continue;
		t = now_ms() - begin;
		if (t > SLOW_MS && !told) {
			told_slow(pid, prog);
			told = true;
		}
		if (t > KILL_MS && !killed) {
			kill(pid, SIGKILL);
			killed = true;
		}
		if (t > HANG_MS)
			return false;
		usleep(t < 50 ? 500 : 5000);
	}
}

static void report(void)
{
	double seconds = (now_ms() - started) / 1000.0;

	printf("fuzz: %.0f s, %lu executions (%.1f/s), %lu commands, %u places, %u answers, corpus %u, %lu slow\n",
	       seconds, executions, executions / (seconds ? seconds : 1),
	       commands, num_reached, num_said, corpus_size, slow);
	fflush(stdout);
	reported = now_ms();
}

/* Add the device again, and learn its new number. */
static void bring_device_back(void)
{
	int ret = link_add(link_netdev), i;

	for (i = 0; i < 100 && find_devices(); i++)
		usleep(10000);
	if (i == 100) {
		fprintf(stderr, "fuzz: the device does not come back: %s\n",
			strerror(-ret));
		exit(2);
	}
}

static void run(const struct prog *prog, int patience, bool verbose)
{
	static char text[MAX_TEXT];
	char detail[512];
	int pid;

	prog_print(prog, text, sizeof(text));
	fprintf(run_log, "=== %lu\n%s", executions, text);
	fflush(run_log);
	fflush(stdout);
	cover_reset();
	memset(outcome, 0, sizeof(*outcome));
	pid = fork();
	if (pid < 0) {
		perror("fuzz: fork");
		exit(2);
	}
	if (!pid)
		exec_prog(prog, kcov, patience, verbose);
	if (!reap(pid, prog))
		find("hang", prog, " it cannot be killed");
	executions++;
	commands += outcome->commands;
	waits += outcome->waits;
	waited_ms += outcome->waited_ms;
	trace_len = cover_collect(trace, MAX_TRACE);
	if (!found && watch_objects(detail, sizeof(detail)))
		find("left behind", prog, detail);
	if (outcome->odd_errno) {
		snprintf(detail, sizeof(detail), " %u", outcome->odd_errno);
		find("errno", prog, detail);
	}
	if (!found && outcome->device_gone)
		bring_device_back();
	if (watch_log(detail, sizeof(detail)))
		find("the kernel says", prog, detail);
	if (now_ms() - reported > REPORT_MS)
		report();
}

/* Returns how much of the last run is new, and remembers it if @keep. */
static unsigned int news(bool keep)
{
	unsigned int i, n = 0, results = outcome->num_results;

	if (results > MAX_RESULTS)
		results = MAX_RESULTS;
	for (i = 0; i < trace_len; i++) {
		if (reached[trace[i]])
			continue;
		n++;
		if (keep) {
			reached[trace[i]] = 1;
			num_reached++;
		}
	}
	for (i = 0; i < results; i++) {
		if (said[outcome->results[i]])
			continue;
		n++;
		if (keep) {
			said[outcome->results[i]] = 1;
			num_said++;
		}
	}
	return n;
}

/* Remember new places and answers of the last run, and log them. */
static void remember(const char *mark, const char *name)
{
	unsigned int i, n = news(false);

	fprintf(run_log, "%s %s", mark, name);
	for (i = 0; i < trace_len; i++) {
		if (reached[trace[i]])
			continue;
		reached[trace[i]] = 1;
		num_reached++;
		fprintf(run_log, " %x", trace[i]);
	}
	fprintf(run_log, "%s\n", n ? "" : " nothing");
	news(true);
}

/* ----------------------------------------------------------------- corpus */

static void corpus_add(const struct prog *prog)
{
	struct prog *copy;

	if (corpus_size == MAX_CORPUS)
		return;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return;
	*copy = *prog;
	corpus[corpus_size++] = copy;
}

static int read_prog(const char *path, struct prog *prog)
{
	static char text[MAX_TEXT];
	FILE *f = fopen(path, "r");
	size_t n;
	int line;

	if (!f) {
		perror(path);
		return -1;
	}
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	line = prog_parse(prog, text);
	if (line)
		fprintf(stderr, "fuzz: %s:%d makes no sense\n", path, line);
	return line ? -1 : 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Run all programs of the directory.  Returns how many cannot be parsed. */
static int corpus_run(const char *path)
{
	static struct prog prog;
	struct dirent **names;
	char file[512];
	int n, i, bad = 0;

	n = scandir(path, &names, NULL, by_name);
	if (n < 0) {
		perror(path);
		exit(2);
	}
	for (i = 0; i < n && !found; i++) {
		if (names[i]->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (read_prog(file, &prog)) {
			bad++;
			continue;
		}
		run(&prog, wait_ms, false);
		remember("---", names[i]->d_name);
		corpus_add(&prog);
		/* Later waits take at most 50 ms and five average waits. */
		if (waits > 20)
			wait_ms = 50 + 5 * waited_ms / waits;
	}
	printf("fuzz: corpus: %u programs, %lu commands, %u places, %u answers, waits of %d ms\n",
	       corpus_size, commands, num_reached, num_said, wait_ms);
	fflush(stdout);
	return bad;
}

/* Leave out calls that are not needed to reach the new places. */
static void minimize(struct prog *prog, unsigned int want)
{
	static struct prog shorter;
	unsigned int n, i;

	for (n = prog->num_calls / 2; n && !found; n /= 2) {
		for (i = prog->num_calls; i >= n && !found; i -= n) {
			shorter = *prog;
			shorter.num_calls -= n;
			memmove(&shorter.calls[i - n], &shorter.calls[i],
				(prog->num_calls - i) * sizeof(struct call));
			run(&shorter, wait_ms, false);
			if (news(false) >= want)
				*prog = shorter;
		}
	}
}

/* Keep a program that has reached something, in its shortest form. */
static void keep(struct prog *prog, unsigned int want)
{
	unsigned int n;

	/* Run it again: results that come by chance are not kept. */
	run(prog, wait_ms, false);
	n = news(false);
	if (!n || found) {
		news(true);
		return;
	}
	minimize(prog, n < want ? n : want);
	if (found)
		return;
	run(prog, wait_ms, false);
	remember("+++", "kept");
	corpus_add(prog);
}

static void fuzz(uint64_t seconds)
{
	static struct prog prog, none;
	uint64_t begin = now_ms();
	unsigned int n;

	while (!found && now_ms() - begin < seconds * 1000) {
		if (corpus_size && !one_in(20)) {
			/* Prefer programs that were added late. */
			n = one_in(3) ? corpus_size - 1 -
					rnd((corpus_size + 3) / 4) :
					rnd(corpus_size);
			prog = *corpus[n];
			prog_mutate(&prog, corpus[rnd(corpus_size)]);
		} else {
			prog_generate(&prog);
			prog_mutate(&prog, corpus_size ?
				    corpus[rnd(corpus_size)] : &none);
		}
		run(&prog, wait_ms, false);
		n = news(false);
		if (n && !found)
			keep(&prog, n);
	}
}

/* ------------------------------------------------------------------ set-up */

static bool write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Returns true if allocations can be made to fail silently. */
static bool have_faults(void)
{
	static const char * const files[] = {
		"failslab/verbose", "fail_page_alloc/verbose",
		"failslab/ignore-gfp-wait", "fail_page_alloc/ignore-gfp-wait",
	};
	char path[128];
	unsigned int i;

	if (access("/proc/self/fail-nth", W_OK))
		return false;
	for (i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s", files[i]);
		if (!write_to(path, i < 2 ? "0" : "N"))
			return false;
	}
	write_to("/sys/kernel/debug/fail_usercopy/verbose", "0");
	return true;
}

static void set_up(bool faults)
{
	int fd, ret;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	trace = malloc(MAX_TRACE * sizeof(*trace));
	if (outcome == MAP_FAILED || !trace || find_devices()) {
		fprintf(stderr, "fuzz: no %s with a device\n",
			RPOST_DEVICE_PATH);
		exit(2);
	}
	ret = cover_open(kcov);
	if (ret)
		printf("fuzz: no coverage (%s): blind\n", strerror(-ret));
	if (watch_open())
		printf("fuzz: cannot read the kernel's log\n");
	gen_faults = faults && have_faults();
	/* Enabled tracepoints run code of the module, too. */
	write_to("/sys/kernel/tracing/events/rdma_post/enable", "1");
	/* Descriptors below 64 are the fuzzer's own. */
	do {
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (fd >= 0 && fd < 63);
}

static void write_coverage(const char *path)
{
	FILE *f = fopen(path, "w");
	unsigned int i;

	if (!f) {
		perror(path);
		return;
	}
	for (i = 0; i < COVER_MAX; i++) {
		if (reached[i])
			fprintf(f, "%x\n", i);
	}
	fclose(f);
}

static int replay(const char *path)
{
	static struct prog prog;

	if (read_prog(path, &prog))
		return 2;
	run(&prog, FIRST_WAIT_MS, true);
	news(true);
	printf("fuzz: %lu commands, %u places\n", commands, num_reached);
	return found;
}

int main(int argc, char **argv)
{
	const char *one = NULL, *coverage = NULL;
	uint64_t seconds = 60, seed = time(NULL) ^ (uint64_t)getpid() << 32;
	bool faults = true;
	int opt, bad = 0;

	started = now_ms();
	reported = started;
	run_log = fopen("/dev/null", "w");
	while ((opt = getopt(argc, argv, "t:s:l:o:r:Fd:")) != -1) {
		switch (opt) {
		case 't':
			seconds = strtoul(optarg, NULL, 10);
			break;
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'l':
			run_log = fopen(optarg, "w");
			break;
		case 'o':
			coverage = optarg;
			break;
		case 'r':
			one = optarg;
			break;
		case 'd':
			link_netdev = optarg;
			break;
		case 'F':
			faults = false;
			break;
		default:
			return 2;
		}
	}
	if (!run_log || (!one && optind + 1 != argc)) {
		fprintf(stderr, "usage: fuzz [-t SECONDS] [-s SEED] [-l LOG] [-o FILE] [-F] [-d NETDEV] CORPUS\n");
		return 2;
	}
	set_up(faults);
	if (one)
		return replay(one);
	printf("fuzz: seed %llu, allocations %s\n", (unsigned long long)seed,
	       gen_faults ? "fail" : "do not fail");
	rnd_seed(seed);
	bad = corpus_run(argv[optind]);
	fuzz(seconds);
	report();
	if (coverage)
		write_coverage(coverage);
	printf("fuzz: %s\n", found ? "a find" : "no finds");
	return found ? 1 : bad ? 2 : 0;
}
