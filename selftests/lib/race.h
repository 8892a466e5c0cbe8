/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads that repeat one step while another thread destroys the objects that
 * they use, and the results that each step may have.
 */
#ifndef RPOST_RACE_H
#define RPOST_RACE_H

#include <pthread.h>

#include "rpost_own.h"

#define RACE_MS	300

struct race;

/* A thread that repeats one step. */
struct worker {
	pthread_t thread;
	struct race *race;
	int (*step)(struct race *race);
	int errors[6];		/* errors that it may meet */
	bool succeeds;		/* is to succeed before the test ends */
	bool fails;
	unsigned long good, bad;
	int wrong;		/* the first error that it must not meet */
};

/* Data that the threads share; handles change while they run. */
struct race {
	long refcnt;
	struct rp_end client, server;
	struct rpost_reg_mr mr;
	char *mem;
	uint32_t listener;
	uint32_t handle;
	int channel;
	unsigned long rounds;	/* of run_race(), so far */
	bool stop;
	bool waits;		/* run_race() waits for something else than the workers' results */
};

static inline uint32_t load(const uint32_t *handle)
{
	return __atomic_load_n(handle, __ATOMIC_ACQUIRE);
}

static inline void store(uint32_t *handle, uint32_t value)
{
	__atomic_store_n(handle, value, __ATOMIC_RELEASE);
}

bool may_meet(const struct worker *w, int ret);
void *work(void *arg);
int start(struct race *race, struct worker *workers, unsigned int n);
int stop(struct race *race, struct worker *workers, unsigned int n);
const struct worker *unmet(const struct worker *w, unsigned int n);
bool go_on(uint64_t since, const struct worker *w, unsigned int n);
int no_change(struct race *r);
int run_race(struct race *race, struct worker *workers, unsigned int n,
	     int (*change)(struct race *race));
int run_over_removal(struct race *race, struct worker *workers, unsigned int n);

/* Skip a test one of whose @n workers, in the array @w, lacks a result. */
#define SKIP_UNMET(w, n)						\
	do {								\
		const struct worker *lacks = unmet(w, n);		\
									\
		RP_SKIP_UNMET(!lacks,					\
			      "worker %d succeeded %lu times and failed %lu times", \
			      (int)(lacks - (w)), lacks->good, lacks->bad); \
	} while (0)

/*
 * Let the workers in the array @w run while @change changes what they use again
 * and again.  The client has @objects in the end.
 */
#define RUN_RACE(r, w, change, objects)					\
	do {								\
		EXPECT_EQ(0, run_race(r, w, ARRAY_SIZE(w), change));	\
		EXPECT_EQ(objects, rp_num_objects((r)->client.fd));	\
		SKIP_UNMET(w, ARRAY_SIZE(w));				\
	} while (0)

int race_init(struct race *r);

/* ----------- steps of the client that more than one program uses */

int step_post_send(struct race *r);
int step_post_recv(struct race *r);
int step_poll(struct race *r);
int step_query_qp(struct race *r);

#endif /* RPOST_RACE_H */
