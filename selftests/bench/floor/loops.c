// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The loops: latency runs one operation at a time, echo a request and its answer, and
 * rate fills the queues.
 */
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "floor.h"

#define FLOOR_MAX_SAMPLES	SZ_1M
#define FLOOR_MIN_OPS		10

/**
 * struct floor_worker - a thread
 * @world: the case
 * @task: the thread, with a reference
 * @ready: the thread has warmed up
 * @finished: the thread has measured
 * @conns: its connections
 * @nconns: the number of its connections
 * @start: when it began, in ns
 * @end: when its last operation completed, in ns
 * @done: the number of operations
 * @error: 0, or the error that ended it
 */
struct floor_worker {
	struct floor_world *world;
	struct task_struct *task;
	struct completion ready;
	struct completion finished;
	struct floor_conn *conns;
	unsigned long nconns;
	u64 start;
	u64 end;
	u64 done;
	int error;
};

/* Post a batch of receives if fewer than @count are posted. */
static int floor_receive(struct floor_conn *conn, unsigned long count)
{
	int ret;

	if (!conn->world->config.sends || conn->recvs >= count)
		return 0;
	ret = ib_post_recv(conn->server->qp, conn->recv_wr, NULL);
	if (!ret)
		conn->recvs += conn->world->config.batch;
	return ret;
}

/*
 * If a driver works in a tasklet, the tasklet runs when bottom halves are
 * enabled again, without a wakeup of a thread.
 */
static int floor_post(struct floor_conn *conn, unsigned long count)
{
	int ret;

	ret = floor_receive(conn, count);
	if (ret)
		return ret;
	if (conn->world->config.sends)
		conn->recvs -= count;
	conn->pending += count;
	local_bh_disable();
	ret = ib_post_send(conn->client->qp, &conn->wr[0].wr, NULL);
	local_bh_enable();
	return ret;
}

/* Returns the number of sends that have completed, or an error. */
static int floor_poll(struct floor_conn *conn, struct ib_wc *wc, int max)
{
	int i, n, done = 0;

	n = ib_poll_cq(conn->send_cq, max, wc);
	for (i = 0; i < n; i++) {
		if (wc[i].status != IB_WC_SUCCESS)
			return -EIO;
		done += wc[i].wr_id;
	}
	conn->pending -= done;
	return n < 0 ? n : done;
}

static int floor_drain(struct floor_conn *conn, struct ib_wc *wc)
{
	int i, n;

	do {
		n = ib_poll_cq(conn->recv_cq, FLOOR_MAX_BATCH, wc);
		for (i = 0; i < n; i++)
			if (wc[i].status != IB_WC_SUCCESS)
				return -EIO;
	} while (n == FLOOR_MAX_BATCH);
	return n < 0 ? n : 0;
}

static int floor_sleep(struct floor_conn *conn, struct ib_wc *wc, int max)
{
	int ret;

	for (;;) {
		ret = floor_poll(conn, wc, max);
		if (ret)
			return ret;
		ret = ib_req_notify_cq(conn->send_cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		if (ret < 0)
			return ret;
		if (ret)
			continue;
		ret = floor_poll(conn, wc, max);
		if (ret)
			return ret;
		if (!wait_for_completion_timeout(&conn->completed, FLOOR_DEADLINE))
			return -ETIMEDOUT;
	}
}

/* Wait for at least one send to complete. */
static int floor_wait(struct floor_conn *conn, struct ib_wc *wc, int max)
{
	unsigned long end = jiffies + FLOOR_DEADLINE;
	int ret;

	if (conn->world->config.sleeps)
		return floor_sleep(conn, wc, max);
	for (;;) {
		ret = floor_poll(conn, wc, max);
		if (ret)
			return ret;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
}

static int floor_by_time(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static u32 floor_percentile(const u32 *ns, u32 count, u32 per_mille)
{
	u32 n = DIV_ROUND_UP((u64)count * per_mille, 1000);

	return ns[n ? n - 1 : 0];
}

static bool floor_go_on(struct floor_config *config, u64 start, u64 now, u64 done, u64 min)
{
	if (config->ops)
		return done < config->ops;
	return done < min || now - start < config->ms * NSEC_PER_MSEC;
}

static int floor_one(struct floor_conn *conn, struct ib_wc *wc)
{
	int ret;

	ret = floor_post(conn, 1);
	if (!ret)
		ret = floor_wait(conn, wc, 1);
	return ret < 0 ? ret : 0;
}

static void floor_times(const char *kind, u32 *ns, u64 count, u64 total)
{
	u32 n = min_t(u64, count, FLOOR_MAX_SAMPLES);

	sort(ns, n, sizeof(*ns), floor_by_time, NULL);
	snprintf(floor_result, sizeof(floor_result),
		 "{\"case\":\"%s\",\"done\":%llu,\"p50\":%u,\"p99\":%u,\"p999\":%u,\"min\":%u,\"rate\":%llu}",
		 kind, count, floor_percentile(ns, n, 500),
		 floor_percentile(ns, n, 990), floor_percentile(ns, n, 999),
		 ns[0], div64_u64(count * NSEC_PER_SEC, total));
}

static int floor_measure(struct floor_world *w, struct ib_wc *wc, u32 *ns)
{
	struct floor_config *config = &w->config;
	u64 i, start = 0, before, after, count = 0;
	u64 warm = max(config->size > SZ_64K ? 2ul : 64ul, 2 * config->conns);
	struct floor_conn *conn;
	int ret;

	for (i = 0, after = 0;
	     i < warm || floor_go_on(config, start, after, count, FLOOR_MIN_OPS);
	     i++) {
		if (i == warm)
			start = ktime_get_ns();
		conn = &w->conns[i % config->conns];
		ret = floor_receive(conn, 1);
		if (ret)
			return ret;
		before = ktime_get_ns();
		ret = floor_one(conn, wc);
		after = ktime_get_ns();
		if (!ret && config->sends)
			ret = floor_drain(conn, wc);
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
		if (ret)
			return ret;
		if (i < warm)
			continue;
		if (count < FLOOR_MAX_SAMPLES)
			ns[count] = min_t(u64, after - before, U32_MAX);
		count++;
		cond_resched();
	}
	floor_times("latency", ns, count, after - start);
	return 0;
}

int floor_latency(struct floor_world *w)
{
	struct ib_wc *wc = kcalloc(FLOOR_MAX_BATCH, sizeof(*wc), GFP_KERNEL);
	u32 *ns = kvmalloc_array(FLOOR_MAX_SAMPLES, sizeof(*ns), GFP_KERNEL);
	int ret = -ENOMEM;

	if (wc && ns)
		ret = floor_measure(w, wc, ns);
	kvfree(ns);
	kfree(wc);
	return ret;
}

static int floor_echo_poll(struct floor_conn *conn, bool server)
{
	struct floor_end *end = &conn->ends[server];
	struct ib_wc wc;
	int n;

	n = ib_poll_cq(server ? conn->recv_cq : conn->send_cq, 1, &wc);
	if (n <= 0)
		return n;
	if (wc.status != IB_WC_SUCCESS)
		return -EIO;
	if (wc.opcode == IB_WC_RECV)
		end->received++;
	else
		end->sent++;
	return n;
}

/* Wait for a completion that @count counts, and use it. */
static int floor_echo_wait(struct floor_conn *conn, bool server, unsigned int *count)
{
	struct ib_cq *cq = server ? conn->recv_cq : conn->send_cq;
	unsigned long end = jiffies + FLOOR_DEADLINE;
	int ret;

	while (!*count) {
		ret = floor_echo_poll(conn, server);
		if (ret < 0)
			return ret;
		if (ret)
			continue;
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		if (!conn->world->config.sleeps) {
			cond_resched();
			continue;
		}
		ret = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		if (!ret)
			ret = floor_echo_poll(conn, server);
		if (ret < 0)
			return ret;
		if (!ret && !wait_for_completion_timeout(&conn->completed, FLOOR_DEADLINE))
			return -ETIMEDOUT;
	}
	--*count;
	return 0;
}

static struct ib_qp *floor_echo_qp(struct floor_conn *conn, bool server)
{
	return (server ? conn->server : conn->client)->qp;
}

static int floor_echo_recv(struct floor_conn *conn, bool server)
{
	struct ib_recv_wr wr = {
		.sg_list = server ? &conn->recv_sge : &conn->sge,
		.num_sge = 1,
	};

	return ib_post_recv(floor_echo_qp(conn, server), &wr, NULL);
}

/* As in ../loops.c every 16th send is signaled. */
static int floor_echo_send(struct floor_conn *conn, bool server)
{
	struct floor_end *end = &conn->ends[server];
	struct ib_send_wr wr = {
		.sg_list = server ? &conn->recv_sge : &conn->sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
	};
	int ret = 0;

	if (end->posted && end->posted % 16 == 0)
		ret = floor_echo_wait(conn, server, &end->sent);
	if (ret)
		return ret;
	if (++end->posted % 16 == 0)
		wr.send_flags = IB_SEND_SIGNALED;
	local_bh_disable();
	ret = ib_post_send(floor_echo_qp(conn, server), &wr, NULL);
	local_bh_enable();
	return ret;
}

/* A request of each connection, and the answers to all of them. */
static int floor_echo_all(struct floor_world *w)
{
	struct floor_conn *conn;
	unsigned long i;
	int server, ret = 0;

	for (i = 0; i < w->config.conns && !ret; i++)
		ret = floor_echo_send(&w->conns[i], false);
	for (server = 1; server >= 0; server--) {
		for (i = 0; i < w->config.conns && !ret; i++) {
			conn = &w->conns[i];
			ret = floor_echo_wait(conn, server, &conn->ends[server].received);
			if (!ret)
				ret = floor_echo_recv(conn, server);
			if (!ret && server)
				ret = floor_echo_send(conn, server);
		}
	}
	return ret;
}

static int floor_echoes(struct floor_world *w, u32 *ns)
{
	struct floor_config *config = &w->config;
	u64 i, start, before, after, n = 0;
	int ret = 0;

	for (i = 0; i < config->recvs * config->conns && !ret; i++) {
		ret = floor_echo_recv(&w->conns[i / config->recvs], false);
		if (!ret)
			ret = floor_echo_recv(&w->conns[i / config->recvs], true);
	}
	for (i = 0; i < 64 && !ret; i++)
		ret = floor_echo_all(w);
	start = ktime_get_ns();
	after = start;
	for (i = 0; !ret && floor_go_on(config, start, after, i, FLOOR_MIN_OPS);
	     i += config->conns) {
		before = ktime_get_ns();
		ret = floor_echo_all(w);
		after = ktime_get_ns();
		if (n < FLOOR_MAX_SAMPLES)
			ns[n++] = min_t(u64, div64_u64(after - before, config->conns), U32_MAX);
		if (!ret && fatal_signal_pending(current))
			ret = -EINTR;
		cond_resched();
	}
	if (!ret)
		floor_times("echo", ns, div64_u64(i, config->conns),
			    div64_u64(after - start, config->conns));
	return ret;
}

int floor_echo(struct floor_world *w)
{
	u32 *ns;
	int ret;

	if (!w->config.sends || !w->config.recvs || w->config.recvs > w->config.depth)
		return -EINVAL;
	ns = kvmalloc_array(FLOOR_MAX_SAMPLES, sizeof(*ns), GFP_KERNEL);
	if (!ns)
		return -ENOMEM;
	ret = floor_echoes(w, ns);
	kvfree(ns);
	return ret;
}

/* Keep the queues full, and then wait for all work requests. */
static int floor_work(struct floor_worker *worker, struct ib_wc *wc, u64 ops, u64 limit_ns)
{
	struct floor_config *config = &worker->world->config;
	unsigned long deadline = jiffies + FLOOR_DEADLINE +
				 nsecs_to_jiffies(limit_ns);
	u64 posted = 0, i, now = ktime_get_ns(), min = 2 * config->batch;
	struct floor_conn *conn;
	bool more = true;
	int ret;

	worker->done = 0;
	worker->start = now;
	for (i = 0; more || worker->done < posted; i++) {
		conn = &worker->conns[i % worker->nconns];
		while (more && conn->pending + config->batch <= config->depth) {
			ret = floor_post(conn, config->batch);
			if (ret)
				return ret;
			posted += config->batch;
			more = ops ? posted < ops : posted < min ||
			       now - worker->start < limit_ns;
		}
		if (config->sleeps && conn->pending)
			ret = floor_sleep(conn, wc, FLOOR_MAX_BATCH);
		else
			ret = floor_poll(conn, wc, FLOOR_MAX_BATCH);
		if (ret < 0)
			return ret;
		worker->done += ret;
		if (!ret && time_after(jiffies, deadline))
			return -ETIMEDOUT;
		if (config->sends) {
			ret = floor_drain(conn, wc);
			if (ret)
				return ret;
		}
		now = ktime_get_ns();
		cond_resched();
	}
	worker->end = now;
	return 0;
}

static int floor_thread(void *arg)
{
	struct floor_worker *worker = arg;
	struct floor_config *config = &worker->world->config;
	struct ib_wc *wc = kcalloc(FLOOR_MAX_BATCH, sizeof(*wc), GFP_KERNEL);

	worker->error = wc ? floor_work(worker, wc, config->depth * worker->nconns, 0) :
			     -ENOMEM;
	complete(&worker->ready);
	wait_for_completion(&worker->world->go);
	if (!worker->error)
		worker->error = floor_work(worker, wc, config->ops / config->threads,
					   config->ms * NSEC_PER_MSEC);
	kfree(wc);
	complete(&worker->finished);
	return 0;
}

static int floor_start(struct floor_world *w, struct floor_worker *worker, unsigned long i)
{
	struct task_struct *task;

	worker->world = w;
	worker->nconns = w->config.conns / w->config.threads;
	worker->conns = w->conns + i * worker->nconns;
	init_completion(&worker->ready);
	init_completion(&worker->finished);
	task = kthread_create(floor_thread, worker, "floor/%lu", i);
	if (IS_ERR(task))
		return PTR_ERR(task);
	get_task_struct(task);
	worker->task = task;
	wake_up_process(task);
	wait_for_completion(&worker->ready);
	return 0;
}

/* Stop threads, even those that have ended, before the module is unloaded. */
static int floor_join(struct floor_worker *worker)
{
	if (!worker->task)
		return 0;
	wait_for_completion(&worker->finished);
	kthread_stop(worker->task);
	put_task_struct(worker->task);
	return worker->error;
}

int floor_rate(struct floor_world *w)
{
	u64 start = U64_MAX, end = 0, done = 0, rate;
	struct floor_worker *workers;
	int ret = 0, error;
	unsigned long i;

	workers = kcalloc(w->config.threads, sizeof(*workers), GFP_KERNEL);
	if (!workers)
		return -ENOMEM;
	for (i = 0; i < w->config.threads && !ret; i++)
		ret = floor_start(w, &workers[i], i);
	complete_all(&w->go);
	for (i = 0; i < w->config.threads; i++) {
		error = floor_join(&workers[i]);
		ret = ret ?: error;
		start = min(start, workers[i].start);
		end = max(end, workers[i].end);
		done += workers[i].done;
	}
	kfree(workers);
	if (ret)
		return ret;
	rate = div64_u64(done * NSEC_PER_SEC, end - start);
	snprintf(floor_result, sizeof(floor_result),
		 "{\"case\":\"rate\",\"done\":%llu,\"rate\":%llu,\"bytes\":%llu,\"mean\":%llu}",
		 done, rate, rate * w->config.size,
		 div64_u64(end - start, done));
	return 0;
}
