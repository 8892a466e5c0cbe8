/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads that do the same thing again and again while another destroys what
 * they use, and what they may meet.
 */
#ifndef RPOST_RACE_H
#define RPOST_RACE_H

#include <pthread.h>

#include "rpost_own.h"

#define RACE_MS	300

struct race;

/* A thread that does the same thing again and again. */
struct worker {
	pthread_t thread;
	struct race *race;
	int (*step)(struct race *race);
	int errors[6];		/* that it may meet */
	bool succeeds;		/* must, before the test ends */
	bool fails;
	unsigned long good, bad;
	int wrong;		/* one that it may not */
};

/* What threads share; handles change under them. */
struct race {
	long refcnt;
	struct rp_end client, server;
	struct rpost_reg_mr mr;
	char *mem;
	uint32_t listener;
	uint32_t handle;
	int channel;
	bool stop;
};

static inline uint32_t load(const uint32_t *handle)
{
	return __atomic_load_n(handle, __ATOMIC_ACQUIRE);
}

static inline void store(uint32_t *handle, uint32_t value)
{
	__atomic_store_n(handle, value, __ATOMIC_RELEASE);
}

static inline bool may_meet(const struct worker *w, int ret)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(w->errors); i++) {
		if (ret == w->errors[i])
			return true;
	}
	return false;
}

static inline void *work(void *arg)
{
	struct worker *w = arg;
	int ret;

	while (!__atomic_load_n(&w->race->stop, __ATOMIC_RELAXED)) {
		ret = w->step(w->race);
		if (!ret) {
			w->good++;
		} else if (may_meet(w, ret)) {
			w->bad++;
			sched_yield();
		} else {
			__atomic_store_n(&w->wrong, ret, __ATOMIC_RELAXED);
			break;
		}
	}
	return NULL;
}

static inline int start(struct race *race, struct worker *workers, unsigned int n)
{
	unsigned int i;

	race->stop = false;
	for (i = 0; i < n; i++) {
		workers[i].race = race;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return -1;
	}
	return 0;
}

/* Stop the workers; 0 if all met what they may, or the first wrong error. */
static inline int stop(struct race *race, struct worker *workers, unsigned int n)
{
	unsigned int i;
	int wrong = 0;

	__atomic_store_n(&race->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].wrong && !wrong) {
			fprintf(stderr, "# worker %u met %d\n", i,
				workers[i].wrong);
			wrong = workers[i].wrong;
		}
	}
	return wrong;
}

/* Has every worker met what it must?  Slow machines get more time for it. */
static inline bool all_met(const struct worker *w, unsigned int n)
{
	const struct worker *end = w + n;

	for (; w < end; w++) {
		if (__atomic_load_n(&w->wrong, __ATOMIC_RELAXED))
			return true;
		if ((w->succeeds && !__atomic_load_n(&w->good, __ATOMIC_RELAXED)) ||
		    (w->fails && !__atomic_load_n(&w->bad, __ATOMIC_RELAXED)))
			return false;
	}
	return true;
}

static inline bool go_on(uint64_t since, const struct worker *w, unsigned int n)
{
	uint64_t ms = rp_now_ms() - since;

	return ms < RACE_MS || (ms < TEST_CHANCE_MS && !all_met(w, n));
}

/* ------------------------- steps of more than one program: the client's */

static inline int step_post_send(struct race *r)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, r->mem, 8, r->mr.lkey);

	return rp_post(r->client.fd, RPOST_IOC_POST_SEND, load(&r->client.qp),
		       &send, sizeof(send), 1, NULL);
}

static inline int step_post_recv(struct race *r)
{
	struct rpost_recv_wr recv = { .wr_id = 2, .size = sizeof(recv) };

	return rp_post(r->client.fd, RPOST_IOC_POST_RECV, load(&r->client.qp),
		       &recv, sizeof(recv), 1, NULL);
}

static inline int step_poll(struct race *r)
{
	struct rp_cq *cq = &r->client.cq;
	struct rpost_poll_cq cmd = {
		.size = sizeof(cmd),
		.handle = cq->cmd.handle,
	};
	int ret = rp_ioctl(cq->fd, RPOST_IOC_POLL_CQ, &cmd);

	cq->ring->head = __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE);
	return ret;
}

static inline int step_query_qp(struct race *r)
{
	struct rpost_query_qp cmd = {
		.size = sizeof(cmd),
		.handle = load(&r->client.qp),
	};

	return rp_ioctl(r->client.fd, RPOST_IOC_QUERY_QP, &cmd);
}

#endif /* RPOST_RACE_H */
