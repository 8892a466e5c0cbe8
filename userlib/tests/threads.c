// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Many threads on the same objects, and a child of fork(). */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define POSTERS	3
#define POSTS	400

static char buf[4096] __attribute__((aligned(4096)));

struct work {
	struct pair *p;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	atomic_int polled, inflight;
	atomic_uchar seen[POSTERS * POSTS];
	int number;
	atomic_int next_number;
};

static void *poster(void *arg)
{
	struct work *w = arg;
	int me = atomic_fetch_add(&w->next_number, 1);
	int i = 0;

	while (i < POSTS) {
		if (atomic_fetch_add(&w->inflight, 1) >= 14) {
			atomic_fetch_sub(&w->inflight, 1);
			sched_yield();
			continue;
		}
		need(!rdma_post_write(w->p->client,
				      (void *)(uintptr_t)(me * POSTS + i), buf,
				      8, w->mr, 0, (uintptr_t)buf + 64,
				      w->mr->rkey));
		i++;
	}
	return NULL;
}

static void *poller(void *arg)
{
	struct work *w = arg;
	struct ibv_wc wc[4];
	int n, i;

	while (atomic_load(&w->polled) < POSTERS * POSTS) {
		n = ibv_poll_cq(w->cq, 4, wc);
		need(n >= 0);
		for (i = 0; i < n; i++) {
			need(!wc[i].status && wc[i].wr_id < POSTERS * POSTS);
			atomic_fetch_add(&w->seen[wc[i].wr_id], 1);
		}
		atomic_fetch_add(&w->polled, n);
		atomic_fetch_sub(&w->inflight, n);
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* Sleeps between completions, as an event loop would. */
static void *sleeper(void *arg)
{
	struct work *w = arg;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;
	int n;

	while (atomic_load(&w->polled) < POSTERS * POSTS) {
		need(!ibv_req_notify_cq(w->cq, 0));
		while ((n = ibv_poll_cq(w->cq, 1, &wc)) > 0) {
			need(!wc.status);
			atomic_fetch_add(&w->seen[wc.wr_id], 1);
			atomic_fetch_add(&w->polled, 1);
			atomic_fetch_sub(&w->inflight, 1);
		}
		if (atomic_load(&w->polled) == POSTERS * POSTS)
			break;
		struct pollfd pfd = { w->cq->channel->fd, POLLIN, 0 };

		/* A completion without its event would end in a timeout. */
		n = poll(&pfd, 1, 3000);
		need(n == 1);
		need(!ibv_get_cq_event(w->cq->channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	return NULL;
}

static void run(struct pair *p, int pollers, void *(*poll_fn)(void *))
{
	struct work *w = calloc(1, sizeof(*w));
	pthread_t threads[POSTERS + 2];
	int i, n = 0, once = 0;

	need(w);
	w->p = p;
	w->cq = p->client->send_cq;
	need(w->mr = ibv_reg_mr(p->client->pd, buf, sizeof(buf),
				IBV_ACCESS_LOCAL_WRITE |
				IBV_ACCESS_REMOTE_WRITE));
	for (i = 0; i < POSTERS; i++)
		need(!pthread_create(&threads[n++], NULL, poster, w));
	for (i = 0; i < pollers; i++)
		need(!pthread_create(&threads[n++], NULL, poll_fn, w));
	while (n--)
		need(!pthread_join(threads[n], NULL));
	for (i = 0; i < POSTERS * POSTS; i++)
		once += w->seen[i] == 1;
	ok(once == POSTERS * POSTS);
	ok(atomic_load(&w->polled) == POSTERS * POSTS);
	need(!ibv_dereg_mr(w->mr));
	free(w);
}

static void *connector(void *arg)
{
	struct ibv_qp_init_attr attr;
	struct pair p;
	int i;

	for (i = 0; i < 4; i++) {
		attr = plain_qp();
		pair_connect(&p, &attr, NULL);
		pair_disconnect(&p);
		pair_end(&p);
	}
	atomic_fetch_add((atomic_int *)arg, 1);
	return NULL;
}

static void connections(void)
{
	pthread_t threads[4];
	atomic_int done = 0;
	int i;

	for (i = 0; i < 4; i++)
		need(!pthread_create(&threads[i], NULL, connector, &done));
	for (i = 0; i < 4; i++)
		need(!pthread_join(threads[i], NULL));
	ok(done == 4);
}

/* A child has connections of its own while the parent's goes on. */
static void child(struct pair *mine)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct ibv_wc wc;
	struct pair p;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	need(pid >= 0);
	if (!pid) {
		pair_connect(&p, &attr, NULL);
		pair_disconnect(&p);
		pair_end(&p);
		_exit(0);
	}
	need(waitpid(pid, &status, 0) == pid);
	ok(WIFEXITED(status) && !WEXITSTATUS(status));
	ok(!rdma_post_recvv(mine->server, NULL, NULL, 0));
	ok(!rdma_post_sendv(mine->client, NULL, NULL, 0, 0));
	ok(rdma_get_recv_comp(mine->server, &wc) == 1 && !wc.status);
	ok(rdma_get_send_comp(mine->client, &wc) == 1 && !wc.status);
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr attr = plain_qp();
	struct pair p;

	if (argc > 1)
		server_addr = argv[1];
	pair_connect(&p, &attr, NULL);
	run(&p, 1, poller);
	run(&p, 2, poller);
	run(&p, 1, sleeper);
	child(&p);
	pair_disconnect(&p);
	pair_end(&p);
	connections();
	return tap_done();
}
