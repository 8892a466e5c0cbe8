// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Threads that register, move data and deregister, and give their memory new
 * pages in between, beside threads that make the cache of registrations lose
 * what it keeps.  A failure means that stale memory was used; lifetimes and
 * locks are seen by a kernel with KASAN and lockdep.
 */
#define _GNU_SOURCE
#include <kselftest_harness.h>
#include <pthread.h>
#include <sys/wait.h>

#include "mr_cache.h"

#define WORKERS		2
#define PAGES		4
#define ROUNDS		120

struct race {
	struct cache_pair p[WORKERS];
	char *common;
	unsigned int running;
	int failed;
};

static bool ends(struct race *r)
{
	return !__atomic_load_n(&r->running, __ATOMIC_ACQUIRE);
}

/* Give the memory new pages, swap it out, or leave it. */
static int renew(struct cache_pair *p, unsigned int turn)
{
	switch (turn % 4) {
	case 0:
		return madvise(p->mem, p->bytes, MADV_DONTNEED) ? -errno : 0;
	case 1:
		return mmap(p->mem, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			    MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p->mem ? 0 : -errno;
	case 2:
		madvise(p->mem, p->bytes, MADV_PAGEOUT);
		return 0;
	default:
		return 0;
	}
}

/* What nobody else touches: all data must be right. */
static int work(struct cache_pair *p, unsigned int turn)
{
	struct rpost_reg_mr mr;

	RP_TRY(renew(p, turn));
	RP_TRY(cache_reg(p, &mr));
	RP_TRY(cache_move(p, &mr));
	return cache_dereg(p, &mr);
}

struct worker {
	struct race *race;
	struct cache_pair *p;
};

static void *worker(void *arg)
{
	struct worker *w = arg;
	unsigned int turn;
	int ret = 0;

	for (turn = 0; turn < ROUNDS && !ret; turn++)
		ret = work(w->p, turn);
	if (ret)
		w->race->failed = ret;
	__atomic_sub_fetch(&w->race->running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Registers memory that others change at any time. */
static void *registrar(void *arg)
{
	struct race *r = arg;
	size_t page = getpagesize();
	struct rpost_reg_mr mr;
	unsigned int turn;

	for (turn = 0; !ends(r); turn++) {
		struct cache_pair *p = &r->p[turn % WORKERS];

		if (!rp_reg_mr(p->c.fd, p->c.pd, r->common + turn % PAGES * page, page,
			       RPOST_ACCESS_LOCAL_WRITE, &mr))
			cache_dereg(p, &mr);
	}
	return NULL;
}

static void *changer(void *arg)
{
	struct race *r = arg;
	size_t page = getpagesize();
	unsigned int turn;

	for (turn = 0; !ends(r); turn++) {
		char *at = r->common + turn % PAGES * page;

		switch (turn % 5) {
		case 0:
			madvise(at, page, MADV_DONTNEED);
			break;
		case 1:
			munmap(at, page);
			break;
		case 2:
			mprotect(r->common, PAGES * page, PROT_READ);
			break;
		default:
			mmap(r->common, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			     MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		}
	}
	return NULL;
}

/* Forks, ends domains with what they keep, and lets the kernel shrink. */
static void *loser(void *arg)
{
	struct race *r = arg;
	int drop = open("/proc/sys/vm/drop_caches", O_WRONLY);
	char *mem = rp_pages(getpagesize());
	struct rpost_reg_mr mr;
	unsigned int i;
	uint32_t pd;
	pid_t pid;

	while (mem && !ends(r)) {
		struct cache_pair *p = &r->p[0];

		if (!rp_alloc_pd(p->c.fd, p->c.device, &pd)) {
			for (i = 0; i < 3; i++) {
				if (!rp_reg_mr(p->c.fd, pd, mem, getpagesize(), 0, &mr))
					cache_dereg(p, &mr);
			}
			rp_destroy(p->c.fd, RPOST_OBJ_PD, pd);
		}
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		if (drop >= 0 && write(drop, "2", 1) < 0)
			break;
	}
	close(drop);
	return NULL;
}

TEST(all_at_once)
{
	void *(*const others[])(void *) = { registrar, registrar, changer, loser };
	pthread_t threads[WORKERS + ARRAY_SIZE(others)];
	struct worker workers[WORKERS];
	struct race r = { .running = WORKERS };
	long pinned = rp_pinned();
	int swap = cache_swap_on();
	unsigned int i, n = 0;
	long long hits = 0;

	if (swap != -ENOENT && swap != -ENOSYS)
		ASSERT_EQ(0, swap);
	rp_mute = true;
	r.common = rp_pages(PAGES * getpagesize());
	ASSERT_NE(NULL, r.common);
	for (i = 0; i < WORKERS; i++) {
		ASSERT_EQ(0, cache_pair_init(&r.p[i], PAGES));
	}
	for (i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker) { &r, &r.p[i] };
		ASSERT_EQ(0, pthread_create(&threads[n++], NULL, worker, &workers[i]));
	}
	for (i = 0; i < ARRAY_SIZE(others); i++) {
		ASSERT_EQ(0, pthread_create(&threads[n++], NULL, others[i], &r));
	}
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, pthread_join(threads[i], NULL));
	}
	EXPECT_EQ(0, r.failed);
	for (i = 0; i < WORKERS; i++) {
		hits += cache_hits(&r.p[i]);
		cache_pair_close(&r.p[i]);
	}
	EXPECT_LT(0, hits);
	TH_LOG("%lld registrations from the cache, %s swap", hits, swap ? "without" : "with");
	EXPECT_EQ(pinned, rp_pinned());
	if (!swap)
		EXPECT_EQ(0, cache_swap_off());
}

TEST_HARNESS_MAIN
