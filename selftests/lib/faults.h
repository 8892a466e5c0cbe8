/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the tests of faults share: what must be back where it was, messages that
 * can be told from each other, and how many faults have been survived.
 */
#ifndef RPOST_FAULTS_H
#define RPOST_FAULTS_H

#include <signal.h>
#include <sys/wait.h>

#include "rpost_own.h"

#define RP_COUNTS	1024
#define COUNTS_MS	30000	/* for what ends behind a program's back */
#define REMOVAL_MS	120000	/* it takes 10 s with KASAN on a fast host */

/* ------------------------------------------------------ what is there */

static inline int rp_read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = 0;
	return n < 0 ? -errno : 0;
}

/* A number of /proc/vmstat, or 0. */
static inline long rp_vmstat(const char *name)
{
	static char buf[16384];
	char *at;

	if (rp_read_file("/proc/vmstat", buf, sizeof(buf)))
		return 0;
	at = strstr(buf, name);
	return at ? atol(at + strlen(name)) : 0;
}

/*
 * The module's objects, and the pages that the kernel has pinned, as text.
 * Only root can see the first; they are "" for others.
 */
static inline void rp_counts(char *buf)
{
	char refresh[64];

	if (rp_read_file("/sys/kernel/debug/rdma_post/objects", buf,
			 RP_COUNTS - 64))
		buf[0] = 0;
	/* The kernel adds up what its processors have counted. */
	rp_read_file("/proc/sys/vm/stat_refresh", refresh, sizeof(refresh));
	sprintf(buf + strlen(buf), "pins %ld\n",
		rp_vmstat("nr_foll_pin_acquired ") -
		rp_vmstat("nr_foll_pin_released "));
}

/* Wait until the counts are @want again: 0, or -ETIME after telling. */
static inline int rp_wait_counts(const char *want)
{
	uint64_t end = rp_now_ms() + COUNTS_MS;
	char now[RP_COUNTS];

	for (;;) {
		rp_counts(now);
		if (!strcmp(now, want))
			return 0;
		if (rp_now_ms() > end)
			break;
		usleep(5000);
	}
	fprintf(stderr, "# there was\n%s# there is\n%s", want, now);
	return -ETIME;
}

/* --------------------------------------------------- what was survived */

enum fault {
	FAULT_KILL,
	FAULT_CLOSE,
	FAULT_BACKLOG,
	FAULT_UNREACHABLE,
	FAULT_REMOVAL,
	FAULT_LINK,
	FAULT_UNLOAD,
	NUM_FAULTS,
};

static const char * const fault_names[NUM_FAULTS] = {
	[FAULT_KILL] = "kill -9",
	[FAULT_CLOSE] = "close under traffic",
	[FAULT_BACKLOG] = "backlog overrun",
	[FAULT_UNREACHABLE] = "unreachable",
	[FAULT_REMOVAL] = "device removal",
	[FAULT_LINK] = "link down",
	[FAULT_UNLOAD] = "module unload",
};

/* Shared with the processes in which the harness runs the tests. */
static unsigned int *faults;
static pid_t faults_pid;

static inline void survived(enum fault fault)
{
	__atomic_add_fetch(&faults[fault], 1, __ATOMIC_RELAXED);
}

/* In a test, or behind it: not if it failed, or was skipped. */
#define SURVIVED(fault)							\
	do {								\
		if (_metadata->passed && !_metadata->skip)		\
			survived(fault);				\
	} while (0)

static void __attribute__((constructor)) faults_init(void)
{
	faults = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (faults == MAP_FAILED)
		_exit(1);
	faults_pid = getpid();
}

static void __attribute__((destructor)) faults_print(void)
{
	unsigned int i, sum = 0;
	const char *sep = " (";

	if (getpid() != faults_pid)
		return;
	for (i = 0; i < NUM_FAULTS; i++)
		sum += faults[i];
	printf("# faults survived: %u", sum);
	for (i = 0; i < NUM_FAULTS; i++) {
		if (!faults[i])
			continue;
		printf("%s%s: %u", sep, fault_names[i], faults[i]);
		sep = ", ";
	}
	printf("%s\n", sum ? ")" : "");
}

/* ------------------------------------------------------------ messages */

#define MSG_BYTES	512

struct msg {
	uint64_t number;
	uint64_t sum;
	uint64_t words[MSG_BYTES / 8 - 2];
};

static inline uint64_t msg_sum(const struct msg *m)
{
	uint64_t sum = 0x9e3779b97f4a7c15 ^ m->number;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(m->words); i++)
		sum = (sum ^ m->words[i]) * 0x100000001b3;
	return sum;
}

static inline void msg_write(struct msg *m, uint64_t number)
{
	unsigned int i;

	m->number = number;
	for (i = 0; i < ARRAY_SIZE(m->words); i++)
		m->words[i] = (number + i) * 0xda942042e4dd58b5;
	m->sum = msg_sum(m);
}

/* Is it message @number, whole? */
static inline bool msg_is(const struct msg *m, uint64_t number)
{
	return m->number == number && m->sum == msg_sum(m) &&
	       m->words[1] == (number + 1) * 0xda942042e4dd58b5;
}

/* Memory of an end with room for RP_DEPTH messages. */
struct msgs {
	struct msg *m;
	struct rpost_reg_mr mr;
};

static inline int msgs_init(struct rp_end *end, struct msgs *msgs)
{
	msgs->m = rp_pages(RP_DEPTH * MSG_BYTES);
	if (!msgs->m)
		return -ENOMEM;
	return rp_reg_mr(end->fd, end->pd, msgs->m, RP_DEPTH * MSG_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			 &msgs->mr);
}

static inline int msgs_exit(struct rp_end *end, struct msgs *msgs)
{
	int ret = rp_destroy(end->fd, RPOST_OBJ_MR, msgs->mr.handle);

	munmap(msgs->m, RP_DEPTH * MSG_BYTES);
	return ret;
}

static inline int msg_post_recv(struct rp_end *end, struct msgs *msgs,
				uint64_t number)
{
	return rp_post_recv(end, number, &msgs->m[number % RP_DEPTH], MSG_BYTES,
			    msgs->mr.lkey);
}

static inline int msg_post_send(struct rp_end *end, struct msgs *msgs,
				uint64_t number)
{
	struct msg *m = &msgs->m[number % RP_DEPTH];
	struct rp_send send = rp_send(RPOST_WR_SEND, number, m, MSG_BYTES,
				      msgs->mr.lkey);

	msg_write(m, number);
	return rp_post_send(end, &send);
}

/* Up to half a dozen messages go from one end to the other, and are whole. */
static inline int msgs_exchange(struct rp_end *from, struct rp_end *to)
{
	const unsigned int n = RP_DEPTH < 6 ? RP_DEPTH : 6;
	struct msgs out, in;
	struct rpost_wc wc;
	unsigned int i;

	RP_TRY(msgs_init(from, &out));
	RP_TRY(msgs_init(to, &in));
	for (i = 0; i < n; i++)
		RP_TRY(msg_post_recv(to, &in, i));
	for (i = 0; i < n; i++)
		RP_TRY(msg_post_send(from, &out, i));
	for (i = 0; i < n; i++) {
		if (rp_wait_cq(&to->cq, &wc) != 1 || wc.status ||
		    wc.wr_id != i || !msg_is(&in.m[i], i) ||
		    rp_wait_cq(&from->cq, &wc) != 1 || wc.status ||
		    wc.wr_id != i) {
			fprintf(stderr, "# message %u: status %u of %llu\n", i,
				wc.status, (unsigned long long)wc.wr_id);
			return -EPROTO;
		}
	}
	RP_TRY(msgs_exit(from, &out));
	RP_TRY(msgs_exit(to, &in));
	return 0;
}

#endif /* RPOST_FAULTS_H */
