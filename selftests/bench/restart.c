// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A service that restarts: a server with many clients is killed with all
 * connections up and started again, and all clients connect to it at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define PORT_OFFSET	2	/* the two ports before are serve.sh's */
#define RESOLVE_MS	5000
#define RETRY_NS	50000000ull
#define SILENT_NS	3000000000ull
#define MAX_TRIES	20

enum stage { DOWN, BEGUN, SENT, UP };

struct client {
	struct rdma_cm_id *id;
	enum stage stage;
	unsigned int tries;
	uint64_t not_before;	/* when a failed client tries again */
};

/* All clients are in this process; one thread drives them. */
static struct {
	struct sockaddr_storage addr;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;	/* owns the device */
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct client *all;
	unsigned long up, down;
	unsigned long retries, silent;
	uint64_t from;		/* since when the server listens */
	struct samples *samples;
} clients;

/* Starts the server before this process opens the device, and again. */
static struct {
	int commands, reports;
	pid_t server;
} supervisor;

static int start_server(pid_t *pid)
{
	int out[2];

	must(!pipe(out));
	*pid = fork();
	must(*pid >= 0);
	if (!*pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		must(dup2(out[1], STDOUT_FILENO) >= 0);
		close(out[0]);
		close(out[1]);
		run_serve(NULL);
		_exit(0);
	}
	close(out[1]);
	return out[0];
}

/* Each command kills the server, waits for its end and starts another one. */
static void supervise(int commands, int reports)
{
	char line[128];
	pid_t pid;
	ssize_t n;
	int out;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	do {
		out = start_server(&pid);
		n = read(out, line, sizeof(line));
		if (n <= 0)
			die("restart: the server has not started");
		must(write(reports, &pid, sizeof(pid)) == sizeof(pid));
		n = read(commands, line, 1);
		must(!kill(pid, SIGKILL));
		must(waitpid(pid, NULL, 0) == pid);
		close(out);
	} while (n == 1);
	_exit(0);
}

static void start_supervisor(void)
{
	int commands[2], reports[2];
	pid_t pid;

	must(!pipe(commands) && !pipe(reports));
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		close(commands[1]);
		close(reports[0]);
		supervise(commands[0], reports[1]);
	}
	close(commands[0]);
	close(reports[1]);
	supervisor.commands = commands[1];
	supervisor.reports = reports[0];
}

/* Wait until the server listens. */
static void take_report(void)
{
	if (read(supervisor.reports, &supervisor.server, sizeof(pid_t)) != sizeof(pid_t))
		die("restart: there is no server");
}

static void open_clients(void)
{
	struct rdma_cm_event *event;

	must(parse_addr(config.addr, config.port, &clients.addr));
	clients.channel = rdma_create_event_channel();
	must(clients.channel);
	must(!rdma_create_id(clients.channel, &clients.id, NULL, RDMA_PS_TCP));
	must(!rdma_resolve_addr(clients.id, NULL, (struct sockaddr *)&clients.addr, RESOLVE_MS));
	must(!rdma_get_cm_event(clients.channel, &event));
	must(event->event == RDMA_CM_EVENT_ADDR_RESOLVED);
	rdma_ack_cm_event(event);
	clients.pd = ibv_alloc_pd(clients.id->verbs);
	must(clients.pd);
	clients.cq = ibv_create_cq(clients.id->verbs, 2 * config.conns, NULL, NULL, 0);
	must(clients.cq);
	clients.mr = register_buffer(clients.pd, 64);
	must(!fcntl(clients.channel->fd, F_SETFL, O_NONBLOCK));
	clients.all = allocate(config.conns * sizeof(*clients.all));
}

static void begin(struct client *client)
{
	if (client->tries++ == MAX_TRIES)
		die("restart: client %td is lost", client - clients.all);
	client->stage = BEGUN;
	must(!rdma_create_id(clients.channel, &client->id, client, RDMA_PS_TCP));
	must(!rdma_resolve_addr(client->id, NULL, (struct sockaddr *)&clients.addr, RESOLVE_MS));
}

static void end(struct client *client)
{
	if (client->stage == UP) {
		clients.up--;
		clients.down++;
	}
	rdma_disconnect(client->id);
	if (client->id->qp)
		rdma_destroy_qp(client->id);
	must(!rdma_destroy_id(client->id));
	client->id = NULL;
	client->stage = DOWN;
}

static void connect_client(struct client *client)
{
	struct request request = conn_request(client - clients.all, true);
	struct rdma_conn_param param = conn_param(&request, sizeof(request));
	struct ibv_qp_init_attr attr = queue_attr();

	attr.send_cq = clients.cq;
	attr.recv_cq = clients.cq;
	must(!rdma_create_qp(client->id, clients.pd, &attr));
	must(!rdma_connect(client->id, &param));
}

static void send_byte(struct client *client)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)clients.mr->addr, .length = 1,
		.lkey = clients.mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = client - clients.all, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	}, *bad;

	must(!ibv_post_send(client->id->qp, &wr, &bad));
	client->stage = SENT;
}

/* Take the acknowledgements of first bytes. */
static void poll_bytes(void)
{
	struct client *client;
	struct ibv_wc wc;

	while (ibv_poll_cq(clients.cq, 1, &wc) > 0) {
		client = &clients.all[wc.wr_id];
		/* If the connection ends, an event says so. */
		if (wc.status || client->stage != SENT || wc.qp_num != client->id->qp->qp_num)
			continue;
		client->stage = UP;
		clients.up++;
		samples_add(clients.samples, now_ns() - clients.from);
	}
}

/* Try again later, as the client of either library has to. */
static void fail(struct client *client)
{
	client->not_before = now_ns() + RETRY_NS;
	clients.retries++;
	end(client);
}

/* Take one event; return false if there is none. */
static bool step(bool restarted)
{
	enum rdma_cm_event_type type;
	struct rdma_cm_event *event;
	struct client *client;

	if (rdma_get_cm_event(clients.channel, &event)) {
		must(errno == EAGAIN || errno == EINTR);
		return false;
	}
	type = event->event;
	client = event->id->context;
	rdma_ack_cm_event(event);
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		must(!rdma_resolve_route(client->id, RESOLVE_MS));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_client(client);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		send_byte(client);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (restarted)
			fail(client);
		else
			end(client);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		fail(client);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		die("%s, which was not expected", rdma_event_str(type));
	}
	return true;
}

/* Wait a little for an event. */
static void nap(void)
{
	struct pollfd fd = { .fd = clients.channel->fd, .events = POLLIN };

	must(poll(&fd, 1, 1) >= 0 || errno == EINTR);
}

/* Connect all clients that are down, at once, until all have sent a byte. */
static void connect_all(bool restarted)
{
	unsigned long i;

	for (i = 0; i < config.conns; i++)
		if (clients.all[i].stage == DOWN)
			begin(&clients.all[i]);
	while (clients.up < config.conns) {
		struct client *client;

		if (!step(restarted))
			nap();
		poll_bytes();
		for (i = 0; clients.retries && i < config.conns; i++) {
			client = &clients.all[i];
			if (client->stage == DOWN && client->not_before < now_ns())
				begin(client);
		}
	}
}

/*
 * Kill the server.  A client that has not heard of the end of its connection
 * when the server has been listening again for some time gives it up.
 */
static uint64_t restart_server(void)
{
	uint64_t before = now_ns(), took;
	struct pollfd fd = { .fd = supervisor.reports, .events = POLLIN };
	unsigned long i;

	clients.down = 0;
	must(write(supervisor.commands, "k", 1) == 1);
	do {
		while (step(false))
			;
		nap();
	} while (!poll(&fd, 1, 0));
	take_report();
	took = now_ns() - before;
	for (before = now_ns(); clients.down < config.conns;) {
		if (!step(false))
			nap();
		if (now_ns() - before > SILENT_NS)
			break;
	}
	clients.silent += config.conns - clients.down;
	for (i = 0; i < config.conns; i++) {
		if (clients.all[i].stage == UP)
			end(&clients.all[i]);
		clients.all[i].tries = 0;
	}
	return took;
}

static void measure_memory(struct figures *f, double kernel, double program)
{
	double taken = kernel_bytes() - kernel;

	if (taken > 0)
		f->value[F_KERNEL_BYTES] = taken / config.conns;
	taken = program_bytes(0) + program_bytes(supervisor.server) - program;
	f->value[F_PROGRAM_BYTES] = taken / config.conns;
}

static void close_clients(void)
{
	unsigned long i;

	for (i = 0; i < config.conns; i++)
		end(&clients.all[i]);
	must(!ibv_destroy_cq(clients.cq));
	must(!ibv_dereg_mr(clients.mr));
	must(!ibv_dealloc_pd(clients.pd));
	must(!rdma_destroy_id(clients.id));
	rdma_destroy_event_channel(clients.channel);
}

void run_restart(struct figures *f)
{
	struct samples first = {}, up = {}, down = {};
	uint64_t start, rounds = 0;
	double kernel, program;

	if (with_peer() || config.procs > 1)
		die("restart: without peer and with one process only");
	config.depth = config.depth < 16 ? 16 : config.depth;
	config.port += PORT_OFFSET;
	start_supervisor();
	take_report();
	open_clients();
	kernel = kernel_bytes();
	program = program_bytes(0) + program_bytes(supervisor.server);
	clients.samples = &first;
	clients.from = now_ns();
	connect_all(false);
	clients.retries = 0;
	clients.samples = &up;
	all_ready();
	start = now_ns();
	do {
		samples_add(&down, restart_server());
		clients.from = now_ns();
		connect_all(true);
	} while (go_on(start, now_ns(), ++rounds, 1));
	samples_figures(&up, f);
	f->value[F_DOWN_P50] = samples_percentile(&down, 0.5);
	f->value[F_RETRIES] = clients.retries;
	f->value[F_SILENT] = clients.silent;
	sleep(1);
	measure_memory(f, kernel, program);
	samples_free(&first);
	samples_free(&up);
	samples_free(&down);
	close_clients();
	close(supervisor.commands);
	must(wait(NULL) > 0);
}
