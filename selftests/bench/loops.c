// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The latency, echo and rate cases: one work request at a time, a request and
 * its answer, and as many as fit.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define WARM_UP		64
#define WINDOW		16	/* connections that are set up at once */
#define MIN_OPS		10

static void one_op(struct conn *conn)
{
	conn_post(conn, 1);
	conn_wait(conn);
}

void run_latency(struct figures *f)
{
	struct samples samples = {};
	uint64_t i, warm, start, before, after, cpu;
	struct conn *conn;
	struct world w;

	config.depth = config.depth < 64 ? 64 : config.depth;
	world_open(&w);
	world_connect(&w, config.conns, WINDOW, false);
	/* Two long messages are enough to warm up. */
	warm = config.size > 65536 ? 2 : WARM_UP;
	for (i = 0; i < warm || i < 2 * config.conns; i++) {
		conn = &w.conns[i % config.conns];
		one_op(conn);
		conn_drain(conn);
	}
	all_ready();
	syscalls_begin();
	cpu = cpu_ns();
	start = now_ns();
	for (i = 0, after = start; go_on(start, after, i, MIN_OPS); i++) {
		conn = &w.conns[i % config.conns];
		conn_receive(conn, 1);
		before = now_ns();
		one_op(conn);
		after = now_ns();
		samples_add(&samples, after - before);
		conn_drain(conn);
	}
	f->value[F_CPU] = (double)(cpu_ns() - cpu) / i;
	syscalls_end(f, i);
	samples_figures(&samples, f);
	f->value[F_RATE] = i / ((after - start) / 1e9);
	samples_free(&samples);
	world_disconnect(&w);
	world_close(&w);
}

/*
 * Every 16th send is signaled, and its completion is taken before the next:
 * programs that send answers do about that.
 */
static void echo_send(struct conn *conn, bool server)
{
	struct rdma_cm_id *id = server ? conn->server : conn->client;
	struct ibv_send_wr *bad, wr = {
		.sg_list = server ? &conn->recv_sge : &conn->sge, .num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	struct ibv_wc wc;

	if (conn->sent[server] && conn->sent[server] % 16 == 0) {
		while (!ibv_poll_cq(id->send_cq, 1, &wc))
			;
		check_wc(&wc);
	}
	if (++conn->sent[server] % 16 == 0)
		wr.send_flags = IBV_SEND_SIGNALED;
	must(!ibv_post_send(id->qp, &wr, &bad));
}

static void echo_recv(struct conn *conn, bool server)
{
	struct rdma_cm_id *id = server ? conn->server : conn->client;
	struct ibv_recv_wr *bad, wr = {
		.sg_list = server ? &conn->recv_sge : &conn->sge, .num_sge = 1,
	};

	must(!ibv_post_recv(id->qp, &wr, &bad));
}

static void echo_all(struct world *w)
{
	unsigned long i;
	int server;

	for (i = 0; i < config.conns; i++)
		echo_send(&w->conns[i], false);
	for (server = 1; server >= 0; server--) {
		for (i = 0; i < config.conns; i++) {
			struct conn *conn = &w->conns[i];

			end_wait(server ? conn->server : conn->client);
			echo_recv(conn, server);
			if (server)
				echo_send(conn, server);
		}
	}
}

void run_echo(struct figures *f)
{
	uint64_t i, start, before, after, cpu;
	struct samples samples = {};
	struct world w;

	if (!with_receives() || with_peer())
		die("echo needs op=send, and has both ends");
	config.depth = config.depth < 64 ? 64 : config.depth;
	world_open(&w);
	world_connect(&w, config.conns, WINDOW, false);
	if (config.recvs < 1 || config.recvs > 2 * config.depth)
		die("recvs=%lu: from 1 to %lu", config.recvs, 2 * config.depth);
	for (i = 0; i < config.recvs * config.conns; i++) {
		echo_recv(&w.conns[i / config.recvs], false);
		echo_recv(&w.conns[i / config.recvs], true);
	}
	for (i = 0; i < WARM_UP; i++)
		echo_all(&w);
	all_ready();
	syscalls_begin();
	cpu = cpu_ns();
	start = now_ns();
	for (i = 0, after = start; go_on(start, after, i, MIN_OPS);
	     i += config.conns) {
		before = now_ns();
		echo_all(&w);
		after = now_ns();
		samples_add(&samples, (after - before) / config.conns);
	}
	f->value[F_CPU] = (double)(cpu_ns() - cpu) / i;
	syscalls_end(f, i);
	samples_figures(&samples, f);
	f->value[F_RATE] = i / ((after - start) / 1e9);
	samples_free(&samples);
	world_disconnect(&w);
	world_close(&w);
}

/* A thread with its own connections. */
struct worker {
	pthread_t thread;
	struct conn *conns;
	unsigned long nconns;
	pthread_barrier_t *ready;
	uint64_t start, end, done;
};

static unsigned long collect(struct conn *conn)
{
	struct ibv_wc wc[MAX_BATCH];
	unsigned long done = 0;
	int i, n;

	n = ibv_poll_cq(conn->client->send_cq, MAX_BATCH, wc);
	must(n >= 0);
	for (i = 0; i < n; i++) {
		check_wc(&wc[i]);
		done += wc[i].wr_id;
	}
	conn->pending -= done;
	return done;
}

/* Sleep until the first completion if there is nothing else to do. */
static unsigned long sleep_and_collect(struct conn *conn)
{
	unsigned long before = conn->pending;

	conn_wait(conn);
	return before - conn->pending + collect(conn);
}

static void work(struct worker *worker, uint64_t ops, uint64_t ns)
{
	uint64_t posted = 0, i, now = now_ns(), min = 2 * config.batch;
	bool sleep = config.mode[0] == 's', more = true;
	struct conn *conn;

	worker->done = 0;
	worker->start = now;
	for (i = 0; more || worker->done < posted; i++) {
		conn = &worker->conns[i % worker->nconns];
		while (more && conn->pending + config.batch <= config.depth) {
			conn_post(conn, config.batch);
			posted += config.batch;
			more = ops ? posted < ops :
			       posted < min || now - worker->start < ns;
		}
		if (sleep && conn->pending)
			worker->done += sleep_and_collect(conn);
		else
			worker->done += collect(conn);
		conn_drain(conn);
		now = now_ns();
	}
	worker->end = now;
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;

	work(worker, config.depth * worker->nconns, 0);
	pthread_barrier_wait(worker->ready);
	/* All workers start to measure here. */
	pthread_barrier_wait(worker->ready);
	work(worker, config.ops / config.threads, config.ms * 1000000);
	return NULL;
}

void run_rate(struct figures *f)
{
	const unsigned long threads = config.threads;
	const unsigned long share = config.conns / threads;
	uint64_t start = UINT64_MAX, end = 0, done = 0, cpu;
	struct worker workers[threads];
	pthread_barrier_t ready;
	unsigned long i;
	struct world w;

	world_open(&w);
	world_connect(&w, config.conns, WINDOW, false);
	must(!pthread_barrier_init(&ready, NULL, threads + 1));
	for (i = 0; i < threads; i++) {
		workers[i] = (struct worker) {
			.conns = &w.conns[i * share], .nconns = share,
			.ready = &ready,
		};
		must(!pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]));
	}
	pthread_barrier_wait(&ready);
	all_ready();
	syscalls_begin();
	cpu = cpu_ns();
	pthread_barrier_wait(&ready);
	for (i = 0; i < threads; i++) {
		struct worker *worker = &workers[i];

		must(!pthread_join(worker->thread, NULL));
		start = worker->start < start ? worker->start : start;
		end = worker->end > end ? worker->end : end;
		done += worker->done;
	}
	f->value[F_CPU] = (double)(cpu_ns() - cpu) / done;
	syscalls_end(f, done);
	f->value[F_OPS] = done;
	f->value[F_RATE] = done / ((end - start) / 1e9);
	f->value[F_BYTES] = f->value[F_RATE] * config.size;
	f->value[F_MEAN] = 1e9 / f->value[F_RATE];
	world_disconnect(&w);
	world_close(&w);
}
