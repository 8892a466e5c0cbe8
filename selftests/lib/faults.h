/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared declarations of the fault tests: the counts that a test must restore,
 * messages with numbers, and the number of faults that were survived.
 */
#ifndef RPOST_FAULTS_H
#define RPOST_FAULTS_H

#include <signal.h>
#include <sys/wait.h>

#include "rpost_own.h"

#define RP_COUNTS	1024
#define COUNTS_MS	30000	/* for asynchronous cleanup */
#define REMOVAL_MS	120000	/* it takes 10 s with KASAN on a fast host */

/* ------------------------------------------------------------ counts */

int rp_read_file(const char *path, char *buf, size_t size);
long rp_vmstat(const char *name);
void rp_counts(char *buf);
int rp_wait_counts(const char *want);

/* -------------------------------------------------- survived faults */

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

/* Shared memory: the harness runs each test in a process of its own. */
extern unsigned int *faults;
extern pid_t faults_pid;

static inline void survived(enum fault fault)
{
	__atomic_add_fetch(&faults[fault], 1, __ATOMIC_RELAXED);
}

/* Count a fault as survived unless the test has failed or was skipped. */
#define SURVIVED(fault)							\
	do {								\
		if (_metadata->passed && !_metadata->skip)		\
			survived(fault);				\
	} while (0)

void __attribute__((destructor)) faults_print(void);

/* ------------------------------------------------------------ messages */

#define MSG_BYTES	512

struct msg {
	uint64_t number;
	uint64_t sum;
	uint64_t words[MSG_BYTES / 8 - 2];
};

uint64_t msg_sum(const struct msg *m);
void msg_write(struct msg *m, uint64_t number);

/* True if @m is message number @number and complete. */
static inline bool msg_is(const struct msg *m, uint64_t number)
{
	return m->number == number && m->sum == msg_sum(m) &&
	       m->words[1] == (number + 1) * 0xda942042e4dd58b5;
}

/* An end's memory for rp_depth messages. */
struct msgs {
	struct msg *m;
	struct rpost_reg_mr mr;
};

int msgs_init(struct rp_end *end, struct msgs *msgs);
int msgs_exit(struct rp_end *end, struct msgs *msgs);

static inline int msg_post_recv(struct rp_end *end, struct msgs *msgs,
				uint64_t number)
{
	return rp_post_recv(end, number, &msgs->m[number % rp_depth], MSG_BYTES,
			    msgs->mr.lkey);
}

int msg_post_send(struct rp_end *end, struct msgs *msgs, uint64_t number);
int msgs_exchange(struct rp_end *from, struct rp_end *to);

#endif /* RPOST_FAULTS_H */
