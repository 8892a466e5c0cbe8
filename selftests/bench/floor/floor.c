// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The benchmark's floor: the loops of ../loops.c with no program in between.  A
 * case is written to /sys/module/floor/parameters/run as bench takes it, such as
 *
 *   latency op=write size=64 mode=poll ms=200
 *   rate op=write size=64 depth=64 batch=16 conns=4 threads=4
 *
 * and the figures are read back from there, as one line of JSON.
 */
#include <linux/completion.h>
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nsproxy.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/sort.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define FLOOR_MAX_BATCH		64
#define FLOOR_MAX_CONNS		1024
#define FLOOR_MAX_THREADS	64
#define FLOOR_MAX_SAMPLES	SZ_1M
#define FLOOR_MAX_SLOTS		64
#define FLOOR_DEADLINE		(20 * HZ)
#define FLOOR_RESOLVE_MS	5000
#define FLOOR_MIN_OPS		10

/**
 * struct floor_config - what is to be measured
 * @kind:	latency or rate
 * @op:		write, read or send
 * @mode:	poll or sleep
 * @addr:	an IPv4 address of the device
 * @size:	of a message
 * @ms:		how long to measure, unless @ops says
 * @ops:	how many operations, or 0
 * @depth:	of a send queue
 * @batch:	work requests of one call
 * @last:	signal the last of a batch only
 * @conns:	connections
 * @threads:	among which the connections are shared out
 * @opcode:	by @op
 * @sends:	whether the operation needs receives
 * @sleeps:	by @mode
 */
struct floor_config {
	char kind[16];
	char op[16];
	char mode[16];
	char addr[16];
	unsigned long size;
	unsigned long ms;
	unsigned long ops;
	unsigned long depth;
	unsigned long batch;
	unsigned long last;
	unsigned long conns;
	unsigned long threads;
	enum ib_wr_opcode opcode;
	bool sends;
	bool sleeps;
};

struct floor_world;

/**
 * struct floor_conn - one connection of the host to itself
 * @world:	of which it is one
 * @client:	the end that posts
 * @server:	the other
 * @send_cq:	the client's
 * @recv_cq:	the server's
 * @event:	something has come for the client
 * @status:	0, or what has failed
 * @type:	the client's last event
 * @completed:	the handler of @send_cq has been called
 * @wr:		a batch
 * @sge:	what it sends
 * @recv_wr:	receives for a batch
 * @recv_sge:	where they go
 * @pending:	sends that have not completed
 * @recvs:	receives posted less sends posted
 */
struct floor_conn {
	struct floor_world *world;
	struct rdma_cm_id *client;
	struct rdma_cm_id *server;
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
	struct completion event;
	int status;
	enum rdma_cm_event_type type;
	struct completion completed;
	struct ib_rdma_wr wr[FLOOR_MAX_BATCH];
	struct ib_sge sge;
	struct ib_recv_wr recv_wr[FLOOR_MAX_BATCH];
	struct ib_sge recv_sge;
	unsigned long pending;
	unsigned long recvs;
};

/**
 * struct floor_world - everything that a case needs
 * @config:	the case
 * @addr:	where @listen listens
 * @listen:	the listener
 * @pd:		a domain with a key for all memory
 * @slot:	size of a message's place in the buffers
 * @slots:	how many places they have
 * @buf:	what is sent, and where it arrives
 * @dma:	their addresses for the device
 * @conns:	the connections
 * @connecting:	the one that is being made
 * @go:		the threads may begin to measure
 */
struct floor_world {
	struct floor_config config;
	struct sockaddr_in addr;
	struct rdma_cm_id *listen;
	struct ib_pd *pd;
	size_t slot;
	size_t slots;
	void *buf[2];
	u64 dma[2];
	struct floor_conn *conns;
	struct floor_conn *connecting;
	struct completion go;
};

/**
 * struct floor_worker - a thread
 * @world:	the case
 * @task:	the thread, which is held
 * @ready:	it is warm
 * @finished:	it has measured
 * @conns:	its connections
 * @nconns:	how many
 * @start:	when it began, in ns
 * @end:	when its last operation had completed
 * @done:	operations
 * @error:	0, or why it gave up
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

static DEFINE_MUTEX(floor_lock);
static char floor_result[512] = "{}";

static void floor_comp(struct ib_cq *cq, void *context)
{
	struct floor_conn *conn = context;

	complete(&conn->completed);
}

static size_t floor_buf_size(struct floor_world *w)
{
	return PAGE_ALIGN(w->slot * w->slots);
}

static struct ib_cq *floor_make_cq(struct floor_conn *conn)
{
	struct ib_cq_init_attr attr = {
		.cqe = 2 * conn->world->config.depth,
	};

	return ib_create_cq(conn->world->pd->device, floor_comp, NULL, conn,
			    &attr);
}

static int floor_make_qp(struct floor_conn *conn, struct rdma_cm_id *id,
			 struct ib_cq **cq)
{
	struct floor_config *config = &conn->world->config;
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = config->depth,
			.max_recv_wr = config->sends ? 2 * config->depth : 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
	};
	int ret;

	*cq = floor_make_cq(conn);
	if (IS_ERR(*cq)) {
		ret = PTR_ERR(*cq);
		*cq = NULL;
		return ret;
	}
	attr.send_cq = *cq;
	attr.recv_cq = *cq;
	return rdma_create_qp(id, conn->world->pd, &attr);
}

static struct rdma_conn_param floor_conn_param(struct floor_conn *conn)
{
	u8 depth = min(16, conn->world->pd->device->attrs.max_qp_rd_atom);

	return (struct rdma_conn_param) {
		.initiator_depth = depth,
		.responder_resources = depth,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static int floor_answer(struct floor_world *w, struct rdma_cm_id *id)
{
	struct floor_conn *conn = w->connecting;
	struct rdma_conn_param param;
	int ret;

	if (!conn || conn->server)
		return -EBUSY;
	id->context = conn;
	ret = floor_make_qp(conn, id, &conn->recv_cq);
	if (ret)
		return ret;
	param = floor_conn_param(conn);
	/* The client may be established before this returns. */
	conn->server = id;
	ret = rdma_accept(id, &param);
	if (ret) {
		conn->server = NULL;
		rdma_destroy_qp(id);
	}
	return ret;
}

static int floor_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct floor_conn *conn = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return floor_answer(id->context, id);
	if (conn && id == conn->client) {
		conn->type = event->event;
		conn->status = event->status;
		complete(&conn->event);
	}
	return 0;
}

/* For what has been started to bring its event about. */
static int floor_expect(struct floor_conn *conn, enum rdma_cm_event_type type)
{
	if (!wait_for_completion_timeout(&conn->event, FLOOR_DEADLINE))
		return -ETIMEDOUT;
	if (conn->type == type)
		return 0;
	return conn->status < 0 ? conn->status : -ECONNREFUSED;
}

static void floor_prepare(struct floor_world *w, struct floor_conn *conn)
{
	struct floor_config *config = &w->config;
	size_t offset = (conn - w->conns) % w->slots * w->slot;
	unsigned long i;

	conn->sge = (struct ib_sge) {
		.addr = w->dma[0] + offset,
		.length = config->size,
		.lkey = w->pd->local_dma_lkey,
	};
	conn->recv_sge = (struct ib_sge) {
		.addr = w->dma[1] + offset,
		.length = config->size ?: 1,
		.lkey = w->pd->local_dma_lkey,
	};
	for (i = 0; i < config->batch; i++) {
		bool last = i == config->batch - 1;

		conn->wr[i] = (struct ib_rdma_wr) {
			.wr = {
				/* How many have completed with this one. */
				.wr_id = config->last ? config->batch : 1,
				.next = last ? NULL : &conn->wr[i + 1].wr,
				.sg_list = &conn->sge,
				.num_sge = 1,
				.opcode = config->opcode,
				.send_flags = config->last && !last ?
					      0 : IB_SEND_SIGNALED,
			},
			.remote_addr = conn->recv_sge.addr,
			.rkey = w->pd->unsafe_global_rkey,
		};
		conn->recv_wr[i] = (struct ib_recv_wr) {
			.next = last ? NULL : &conn->recv_wr[i + 1],
			.sg_list = &conn->recv_sge,
			.num_sge = 1,
		};
	}
}

static int floor_connect(struct floor_world *w, struct floor_conn *conn)
{
	struct rdma_conn_param param;
	struct rdma_cm_id *id;
	int ret;

	conn->world = w;
	init_completion(&conn->event);
	init_completion(&conn->completed);
	floor_prepare(w, conn);
	w->connecting = conn;
	id = rdma_create_id(current->nsproxy->net_ns, floor_event, conn,
			    RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->client = id;
	ret = rdma_resolve_addr(id, NULL, (struct sockaddr *)&w->addr,
				FLOOR_RESOLVE_MS);
	if (!ret)
		ret = floor_expect(conn, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!ret)
		ret = rdma_resolve_route(id, FLOOR_RESOLVE_MS);
	if (!ret)
		ret = floor_expect(conn, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!ret)
		ret = floor_make_qp(conn, id, &conn->send_cq);
	if (!ret) {
		param = floor_conn_param(conn);
		ret = rdma_connect(id, &param);
	}
	if (!ret)
		ret = floor_expect(conn, RDMA_CM_EVENT_ESTABLISHED);
	return ret;
}

static void floor_destroy(struct rdma_cm_id *id, struct ib_cq *cq)
{
	if (id) {
		rdma_disconnect(id);
		if (id->qp)
			rdma_destroy_qp(id);
		rdma_destroy_id(id);
	}
	if (cq)
		ib_destroy_cq(cq);
}

static void floor_close(struct floor_world *w)
{
	struct ib_device *device = w->pd ? w->pd->device : NULL;
	unsigned long i;

	for (i = 0; w->conns && i < w->config.conns; i++) {
		floor_destroy(w->conns[i].client, w->conns[i].send_cq);
		floor_destroy(w->conns[i].server, w->conns[i].recv_cq);
	}
	kvfree(w->conns);
	for (i = 0; i < 2; i++) {
		if (w->dma[i])
			ib_dma_unmap_single(device, w->dma[i],
					    floor_buf_size(w),
					    DMA_BIDIRECTIONAL);
		if (w->buf[i])
			free_pages_exact(w->buf[i], floor_buf_size(w));
	}
	if (w->pd)
		ib_dealloc_pd(w->pd);
	if (w->listen)
		rdma_destroy_id(w->listen);
}

static int floor_buffers(struct floor_world *w)
{
	struct floor_config *config = &w->config;
	u64 dma;
	int i;

	w->slot = ALIGN(config->size ?: 1, 64);
	w->slots = w->slot > SZ_64K ? 1 : min_t(size_t, config->conns,
						FLOOR_MAX_SLOTS);
	for (i = 0; i < 2; i++) {
		w->buf[i] = alloc_pages_exact(floor_buf_size(w),
					      GFP_KERNEL | __GFP_ZERO);
		if (!w->buf[i])
			return -ENOMEM;
		dma = ib_dma_map_single(w->pd->device, w->buf[i],
					floor_buf_size(w), DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(w->pd->device, dma))
			return -EIO;
		w->dma[i] = dma;
	}
	return 0;
}

static int floor_open(struct floor_world *w)
{
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	unsigned long i;
	int ret;

	init_completion(&w->go);
	w->addr.sin_family = AF_INET;
	w->addr.sin_addr.s_addr = in_aton(w->config.addr);
	id = rdma_create_id(current->nsproxy->net_ns, floor_event, w,
			    RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	w->listen = id;
	ret = rdma_bind_addr(id, (struct sockaddr *)&w->addr);
	if (ret)
		return ret;
	if (!id->device)
		return -ENODEV;
	w->addr.sin_port =
		((struct sockaddr_in *)&id->route.addr.src_addr)->sin_port;
	ret = rdma_listen(id, 16);
	if (ret)
		return ret;
	pd = ib_alloc_pd(id->device, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	w->pd = pd;
	ret = floor_buffers(w);
	if (ret)
		return ret;
	w->conns = kvcalloc(w->config.conns, sizeof(*w->conns), GFP_KERNEL);
	if (!w->conns)
		return -ENOMEM;
	for (i = 0; i < w->config.conns && !ret; i++)
		ret = floor_connect(w, &w->conns[i]);
	return ret;
}

/* A batch, if there are not as many receives. */
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
 * Drivers whose work is done in a tasklet run it when bottom halves are enabled
 * again, instead of waking up a thread.
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

/* How many sends have completed, or an error. */
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
		ret = ib_req_notify_cq(conn->send_cq, IB_CQ_NEXT_COMP |
				       IB_CQ_REPORT_MISSED_EVENTS);
		if (ret < 0)
			return ret;
		if (ret)
			continue;
		ret = floor_poll(conn, wc, max);
		if (ret)
			return ret;
		if (!wait_for_completion_timeout(&conn->completed,
						 FLOOR_DEADLINE))
			return -ETIMEDOUT;
	}
}

/* Waits for at least one send to complete. */
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

static bool floor_go_on(struct floor_config *config, u64 start, u64 now,
			u64 done, u64 min)
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
	i = min_t(u64, count, FLOOR_MAX_SAMPLES);
	sort(ns, i, sizeof(*ns), floor_by_time, NULL);
	snprintf(floor_result, sizeof(floor_result),
		 "{\"case\":\"latency\",\"done\":%llu,\"p50\":%u,\"p99\":%u,\"p999\":%u,\"min\":%u,\"rate\":%llu}",
		 count, floor_percentile(ns, i, 500),
		 floor_percentile(ns, i, 990), floor_percentile(ns, i, 999),
		 ns[0], div64_u64(count * NSEC_PER_SEC, after - start));
	return 0;
}

static int floor_latency(struct floor_world *w)
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

/* Keeps the queues full, and then waits for what is in them. */
static int floor_work(struct floor_worker *worker, struct ib_wc *wc, u64 ops,
		      u64 limit_ns)
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
		while (more &&
		       conn->pending + config->batch <= config->depth) {
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

	worker->error = wc ? floor_work(worker, wc,
					config->depth * worker->nconns, 0) :
			     -ENOMEM;
	complete(&worker->ready);
	wait_for_completion(&worker->world->go);
	if (!worker->error)
		worker->error = floor_work(worker, wc,
					   config->ops / config->threads,
					   config->ms * NSEC_PER_MSEC);
	kfree(wc);
	complete(&worker->finished);
	return 0;
}

static int floor_start(struct floor_world *w, struct floor_worker *worker,
		       unsigned long i)
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

/* Also those that have ended are reaped here, before the module can go. */
static int floor_join(struct floor_worker *worker)
{
	if (!worker->task)
		return 0;
	wait_for_completion(&worker->finished);
	kthread_stop(worker->task);
	put_task_struct(worker->task);
	return worker->error;
}

static int floor_rate(struct floor_world *w)
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

static int floor_parse_one(struct floor_config *config, char *word)
{
	const struct {
		const char *name;
		char *text;
		unsigned long *number;
	} params[] = {
		{ .name = "op", .text = config->op },
		{ .name = "mode", .text = config->mode },
		{ .name = "addr", .text = config->addr },
		{ .name = "size", .number = &config->size },
		{ .name = "ms", .number = &config->ms },
		{ .name = "ops", .number = &config->ops },
		{ .name = "depth", .number = &config->depth },
		{ .name = "batch", .number = &config->batch },
		{ .name = "last", .number = &config->last },
		{ .name = "conns", .number = &config->conns },
		{ .name = "threads", .number = &config->threads },
	};
	char *name = strsep(&word, "="), *end;
	unsigned int i;

	for (i = 0; word && i < ARRAY_SIZE(params); i++) {
		if (strcmp(name, params[i].name))
			continue;
		if (params[i].text)
			return strscpy(params[i].text, word,
				       sizeof(config->op)) < 0 ? -EINVAL : 0;
		*params[i].number = memparse(word, &end);
		return end == word || *end ? -EINVAL : 0;
	}
	return -EINVAL;
}

static int floor_check(struct floor_config *config)
{
	if (!strcmp(config->op, "write"))
		config->opcode = IB_WR_RDMA_WRITE;
	else if (!strcmp(config->op, "read"))
		config->opcode = IB_WR_RDMA_READ;
	else if (!strcmp(config->op, "send"))
		config->opcode = IB_WR_SEND;
	else
		return -EINVAL;
	config->sends = config->opcode == IB_WR_SEND;
	config->sleeps = !strcmp(config->mode, "sleep");
	if (!config->batch || config->batch > FLOOR_MAX_BATCH ||
	    config->batch > config->depth || config->depth > SZ_4K ||
	    !config->conns || config->conns > FLOOR_MAX_CONNS ||
	    !config->threads || config->threads > FLOOR_MAX_THREADS ||
	    config->conns % config->threads || config->ms > 60 * MSEC_PER_SEC ||
	    config->size > SZ_4M)
		return -EINVAL;
	return 0;
}

static int floor_parse(struct floor_config *config, char *line)
{
	char *word = strsep(&line, " ");
	int ret = 0;

	if (strscpy(config->kind, word, sizeof(config->kind)) < 0)
		return -EINVAL;
	while (!ret && line) {
		word = strsep(&line, " ");
		if (*word)
			ret = floor_parse_one(config, word);
	}
	return ret ?: floor_check(config);
}

static int floor_run(struct floor_world *w, char *line)
{
	struct floor_config *config = &w->config;
	bool latency;
	int ret;

	*config = (struct floor_config) {
		.op = "write", .mode = "poll", .addr = "10.0.0.1", .size = 64,
		.ms = 200, .depth = 1, .batch = 1, .conns = 1, .threads = 1,
	};
	ret = floor_parse(config, line);
	if (ret)
		return ret;
	latency = !strcmp(config->kind, "latency");
	if (latency)
		config->depth = max(config->depth, 64ul);
	else if (strcmp(config->kind, "rate"))
		return -EINVAL;
	ret = floor_open(w);
	if (!ret)
		ret = latency ? floor_latency(w) : floor_rate(w);
	floor_close(w);
	return ret;
}

static int floor_set(const char *val, const struct kernel_param *kp)
{
	struct floor_world *w = kzalloc(sizeof(*w), GFP_KERNEL);
	char *line = kstrdup(val, GFP_KERNEL);
	int ret = -ENOMEM;

	if (w && line) {
		mutex_lock(&floor_lock);
		strscpy(floor_result, "{}", sizeof(floor_result));
		ret = floor_run(w, strim(line));
		mutex_unlock(&floor_lock);
	}
	kfree(line);
	kfree(w);
	return ret;
}

static int floor_get(char *buf, const struct kernel_param *kp)
{
	int ret;

	mutex_lock(&floor_lock);
	ret = sysfs_emit(buf, "%s\n", floor_result);
	mutex_unlock(&floor_lock);
	return ret;
}

static const struct kernel_param_ops floor_ops = {
	.set = floor_set,
	.get = floor_get,
};

module_param_cb(run, &floor_ops, NULL, 0600);
MODULE_PARM_DESC(run, "Write: a case to measure.  Read: the figures");

MODULE_DESCRIPTION("The same loops in the kernel, for the benchmark of rdma_post");
MODULE_AUTHOR("The rdma_post developers");
MODULE_LICENSE("Dual BSD/GPL");
