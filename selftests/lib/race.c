// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that repeat one step until they are stopped.
 */
#define _GNU_SOURCE
#include <kselftest.h>

#include "race.h"

bool may_meet(const struct worker *w, int ret)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(w->errors); i++) {
		if (ret == w->errors[i])
			return true;
	}
	return false;
}

void *work(void *arg)
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

int start(struct race *race, struct worker *workers, unsigned int n)
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

/*
 * Stop the workers; return 0, or the first error that a worker must not meet.
 */
int stop(struct race *race, struct worker *workers, unsigned int n)
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

/* Return a worker that lacks a result which it is to meet, or NULL. */
const struct worker *unmet(const struct worker *w, unsigned int n)
{
	const struct worker *end = w + n;

	for (; w < end; w++) {
		if ((w->succeeds && !__atomic_load_n(&w->good, __ATOMIC_RELAXED)) ||
		    (w->fails && !__atomic_load_n(&w->bad, __ATOMIC_RELAXED)))
			return w;
	}
	return NULL;
}

static bool any_wrong(const struct worker *w, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (__atomic_load_n(&w[i].wrong, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* Wait longer for results that no worker has met, unless one has met a wrong one. */
bool go_on(uint64_t since, const struct worker *w, unsigned int n)
{
	uint64_t ms = rp_now_ms() - since;

	return ms < RACE_MS ||
	       (ms < TEST_CHANCE_MS && unmet(w, n) && !any_wrong(w, n));
}

int no_change(struct race *r)
{
	(void)r;
	usleep(1000);
	return 0;
}

/*
 * Start the workers, call @change until each has its results, and stop them.
 * Return 0, or what start(), @change or stop() has returned.
 */
int run_race(struct race *race, struct worker *workers, unsigned int n,
	     int (*change)(struct race *race))
{
	uint64_t since = rp_now_ms();
	int ret, wrong;

	ret = start(race, workers, n);
	if (ret)
		return ret;
	race->rounds = 0;
	do {
		ret = change(race);
		race->rounds++;
	} while (!ret && (go_on(since, workers, n) ||
			  (race->waits && rp_now_ms() < since + TEST_CHANCE_MS)));
	wrong = stop(race, workers, n);
	return ret ? ret : wrong;
}

static void let_run(const struct worker *w, unsigned int n)
{
	uint64_t since = rp_now_ms();

	while (go_on(since, w, n))
		usleep(1000);
}

/*
 * Run the workers, remove the device, and stop them when each has failed, too.  Return 0,
 * or what start(), rp_remove_device() or stop() has returned.
 */
int run_over_removal(struct race *race, struct worker *workers, unsigned int n)
{
	unsigned int i;
	int ret, wrong;

	ret = start(race, workers, n);
	if (ret)
		return ret;
	let_run(workers, n);
	ret = rp_remove_device();
	for (i = 0; i < n; i++)
		workers[i].fails = true;
	let_run(workers, n);
	wrong = stop(race, workers, n);
	return ret ? ret : wrong;
}

/* Two ends that are not connected, and a region of the client's. */
int race_init(struct race *r)
{
	r->mem = rp_pages(getpagesize());
	RP_TRY(r->mem ? 0 : -ENOMEM);
	RP_TRY(rp_end_init(&r->client));
	RP_TRY(rp_end_init(&r->server));
	return rp_reg_mr(r->client.fd, r->client.pd, r->mem, 64, RPOST_ACCESS_LOCAL_WRITE, &r->mr);
}

int step_post_send(struct race *r)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, 1, r->mem, 8, r->mr.lkey);

	return rp_post(r->client.fd, RPOST_IOC_POST_SEND, load(&r->client.qp),
		       &send, sizeof(send), 1, NULL);
}

int step_post_recv(struct race *r)
{
	struct rpost_recv_wr recv = { .wr_id = 2, .size = sizeof(recv) };

	return rp_post(r->client.fd, RPOST_IOC_POST_RECV, load(&r->client.qp),
		       &recv, sizeof(recv), 1, NULL);
}

int step_poll(struct race *r)
{
	struct rp_cq *cq = &r->client.cq;
	int ret = rp_fetch(cq);

	cq->ring->head = __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE);
	return ret;
}

int step_query_qp(struct race *r)
{
	struct rp_end end = { .fd = r->client.fd, .qp = load(&r->client.qp) };
	struct rpost_query_qp cmd;

	return rp_query_qp(&end, &cmd);
}
