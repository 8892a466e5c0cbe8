// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Helpers that the API selftests share; rdma_test.h describes them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rdma_test.h"

static int complain(const char *what)
{
	fprintf(stderr, "# %s: %s\n", what, strerror(errno));
	return -1;
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct timespec real_time_in(unsigned int ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += ms % 1000 * 1000000;
	ts.tv_sec += ms / 1000 + ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

bool over_incumbent(void)
{
	return !dlsym(RTLD_DEFAULT, "rdma_post_writev");
}

bool under_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return false;
#endif
}

bool under_valgrind(void)
{
	return getenv("RPOST_TEST_VALGRIND");
}

bool on_rxe(struct rdma_cm_id *id)
{
	struct ibv_device_attr attr;

	/* RXE_VENDOR_ID, which is no vendor's. */
	return !ibv_query_device(id->verbs, &attr) && attr.vendor_id == 0xffffff;
}

bool on_iwarp(struct rdma_cm_id *id)
{
	return id->verbs->device->transport_type == IBV_TRANSPORT_IWARP;
}

static const char *addr_variable(int family)
{
	return family == AF_INET ? "RPOST_TEST_ADDR" : "RPOST_TEST_ADDR6";
}

bool test_addr(int family, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	const char *text = getenv(addr_variable(family));

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	return text && inet_pton(family, text, family == AF_INET ?
				 (void *)&in->sin_addr :
				 (void *)&in6->sin6_addr) == 1;
}

void set_port(struct sockaddr_storage *addr, __be16 port)
{
	/* sockaddr_in and sockaddr_in6 have the port at the same offset. */
	((struct sockaddr_in *)addr)->sin_port = port;
}

void addr_text(char node[INET_ADDRSTRLEN], char service[8], struct rdma_cm_id *id)
{
	struct sockaddr_storage addr;

	test_addr(AF_INET, &addr);
	inet_ntop(AF_INET, &((struct sockaddr_in *)&addr)->sin_addr, node,
		  INET_ADDRSTRLEN);
	sprintf(service, "%u", id ? ntohs(rdma_get_src_port(id)) : 0);
}

static bool has_device(struct sockaddr *addr)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;
	bool ret;

	if (!channel)
		return false;
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
		rdma_destroy_event_channel(channel);
		return false;
	}
	ret = !rdma_bind_addr(id, addr) && id->verbs;
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return ret;
}

static bool usable(struct ifaddrs *ifa, int family)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ifa->ifa_addr;

	if (!ifa->ifa_addr || ifa->ifa_addr->sa_family != family ||
	    !(ifa->ifa_flags & IFF_UP) || (ifa->ifa_flags & IFF_LOOPBACK))
		return false;
	if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		return false;
	return has_device(ifa->ifa_addr);
}

/* Print the first address of the family that has an RDMA device. */
static void find_addr(struct ifaddrs *list, int family, FILE *out)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct ifaddrs *ifa;

	for (ifa = list; ifa && !*text; ifa = ifa->ifa_next)
		if (usable(ifa, family))
			inet_ntop(family, family == AF_INET ?
				  (void *)&((struct sockaddr_in *)ifa->ifa_addr)->sin_addr :
				  (void *)&((struct sockaddr_in6 *)ifa->ifa_addr)->sin6_addr,
				  text, sizeof(text));
	fprintf(out, "%s\n", text);
}

static void find_addrs(int fd)
{
	FILE *out = fdopen(fd, "w");
	struct ifaddrs *list;

	if (!out || getifaddrs(&list))
		_exit(1);
	find_addr(list, AF_INET, out);
	find_addr(list, AF_INET6, out);
	_exit(fclose(out) ? 1 : 0);
}

/*
 * Every test runs in a child of main().  The search opens devices, which a
 * child must not inherit, so it runs in a process of its own.
 */
static void __attribute__((constructor)) need_addrs(void)
{
	static const int family[] = { AF_INET, AF_INET6 };
	char line[INET6_ADDRSTRLEN + 1];
	int fds[2], i;
	FILE *in;
	pid_t pid;

	if (getenv(addr_variable(AF_INET)))
		return;
	if (pipe(fds))
		abort();
	pid = fork();
	if (!pid)
		find_addrs(fds[1]);
	close(fds[1]);
	in = fdopen(fds[0], "r");
	for (i = 0; in && i < 2 && fgets(line, sizeof(line), in); i++) {
		line[strcspn(line, "\n")] = 0;
		if (*line)
			setenv(addr_variable(family[i]), line, 0);
	}
	if (in)
		fclose(in);
	waitpid(pid, NULL, 0);
	if (!getenv(addr_variable(AF_INET))) {
		puts("TAP version 13\n"
		     "1..0 # SKIP no RDMA device has an address (or set RPOST_TEST_ADDR)");
		exit(4);
	}
}

static uint32_t pattern_step(uint32_t x)
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ x << 5;
}

void fill(void *buf, size_t len, unsigned int seed)
{
	uint32_t x = seed * 2654435761u | 1;
	uint8_t *p = buf;

	while (len--) {
		x = pattern_step(x);
		*p++ = x >> 11;
	}
}

bool filled(const void *buf, size_t len, unsigned int seed)
{
	uint32_t x = seed * 2654435761u | 1;
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		x = pattern_step(x);
		if (p[i] != (uint8_t)(x >> 11)) {
			fprintf(stderr, "# pattern %u: byte %zu of %zu is wrong\n",
				seed, i, len);
			return false;
		}
	}
	return true;
}

bool all_bytes(const void *buf, size_t len, uint8_t value)
{
	const uint8_t *p = buf;
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != value) {
			fprintf(stderr, "# byte %zu of %zu is %#x, not %#x\n",
				i, len, p[i], value);
			return false;
		}
	return true;
}

bool readable(int fd, int timeout_ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, timeout_ms) == 1 && pfd.revents & POLLIN;
}

int set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL) & ~O_NONBLOCK;

	return fcntl(fd, F_SETFL, flags | (on ? O_NONBLOCK : 0));
}

int next_event(struct rdma_event_channel *channel, struct event *event)
{
	struct rdma_cm_event *ev;

	memset(event, POISON, sizeof(*event));
	if (!readable(channel->fd, DEADLINE_MS)) {
		fprintf(stderr, "# no event\n");
		return -1;
	}
	if (rdma_get_cm_event(channel, &ev))
		return complain("rdma_get_cm_event");
	event->type = ev->event;
	event->status = ev->status;
	event->id = ev->id;
	event->listen_id = ev->listen_id;
	event->conn = ev->param.conn;
	event->ud = ev->param.ud;
	if (ev->param.conn.private_data) {
		memcpy(event->data, ev->param.conn.private_data,
		       ev->param.conn.private_data_len);
		event->conn.private_data = event->data;
	}
	if (rdma_ack_cm_event(ev))
		return complain("rdma_ack_cm_event");
	return event->type;
}

bool no_event(struct rdma_event_channel *channel)
{
	return !readable(channel->fd, QUIET_MS);
}

int expect_event(struct rdma_event_channel *channel,
		 enum rdma_cm_event_type type, struct event *event)
{
	int got = next_event(channel, event);

	if (got < 0)
		fprintf(stderr, "# instead of %s\n", rdma_event_str(type));
	else if (got != (int)type || event->status)
		fprintf(stderr, "# %s, status %d, instead of %s\n",
			rdma_event_str(got), event->status, rdma_event_str(type));
	else
		return 0;
	return -1;
}

int wait_comp(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t end = now_ms() + DEADLINE_MS;
	int ret;

	memset(wc, POISON, sizeof(*wc));
	do {
		ret = ibv_poll_cq(cq, 1, wc);
		if (ret)
			return ret;
		sched_yield();
	} while (now_ms() < end);
	return 0;
}

int start_poll(struct ibv_cq_ex *cq)
{
	struct ibv_poll_cq_attr attr = {};
	uint64_t end = now_ms() + DEADLINE_MS;
	int err;

	do {
		err = ibv_start_poll(cq, &attr);
		if (err != ENOENT)
			return err;
		sched_yield();
	} while (now_ms() < end);
	return err;
}

bool no_comp(struct ibv_cq *cq)
{
	uint64_t end = now_ms() + QUIET_MS;
	struct ibv_wc wc;

	do {
		if (ibv_poll_cq(cq, 1, &wc)) {
			fprintf(stderr, "# unexpected completion: wr_id %#llx, %s\n",
				(long long)wc.wr_id, ibv_wc_status_str(wc.status));
			return false;
		}
		sched_yield();
	} while (now_ms() < end);
	return true;
}

bool device_prot(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_PROT_ERR ||
	       status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_WR_FLUSH_ERR;
}

void pair_defaults(struct pair_opts *opts)
{
	static const struct ibv_qp_init_attr qp = {
		.cap = {
			.max_send_wr = 16, .max_recv_wr = 16,
			.max_send_sge = 4, .max_recv_sge = 4,
			.max_inline_data = 64,
		},
		.qp_type = IBV_QPT_RC,
	};
	/* A sender whose peer has posted no receive fails at once. */
	static const struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4,
		.retry_count = 7, .rnr_retry_count = 0,
	};

	memset(opts, 0, sizeof(*opts));
	opts->family = AF_INET;
	opts->size = BUF_SIZE;
	opts->client_qp = opts->server_qp = qp;
	opts->connect = opts->accept = param;
}

int end_buffer(struct end *end, size_t size)
{
	end->buf = aligned_alloc(4096, (size + 4095) & ~4095ul);
	if (!end->buf)
		return complain("aligned_alloc");
	memset(end->buf, POISON, size);
	end->mr = ibv_reg_mr(end->id->pd, end->buf, size, ALL_RIGHTS);
	return end->mr ? 0 : complain("ibv_reg_mr");
}

int end_write(struct end *end, size_t len, const void *to, uint32_t rkey)
{
	return rdma_post_write(end->id, CONTEXT, end->buf, len, end->mr,
			       IBV_SEND_SIGNALED, addr64(to), rkey);
}

int end_read(struct end *end, size_t len, const void *from, uint32_t rkey)
{
	return rdma_post_read(end->id, CONTEXT, end->buf, len, end->mr,
			      IBV_SEND_SIGNALED, addr64(from), rkey);
}

int end_recv(struct end *end, const void *context, size_t offset, size_t len)
{
	return rdma_post_recv(end->id, (void *)context, end->buf + offset, len, end->mr);
}

int end_send(struct end *end, const void *context, size_t offset, size_t len, int flags)
{
	return rdma_post_send(end->id, (void *)context, end->buf + offset, len, end->mr, flags);
}

int end_write_from(struct end *end, uint64_t addr, uint32_t len, uint32_t lkey,
		   struct end *to)
{
	struct ibv_sge list = { .addr = addr, .length = len, .lkey = lkey };

	return rdma_post_writev(end->id, CONTEXT, &list, 1, IBV_SEND_SIGNALED,
				addr64(to->buf), to->mr->rkey);
}

int pair_write(struct pair *p, uintptr_t context, int flags)
{
	return rdma_post_write(p->client.id, (void *)context, p->client.buf, 64,
			       p->client.mr, flags, addr64(p->server.buf),
			       p->server.mr->rkey);
}

uint8_t *poisoned_pages(size_t size)
{
	uint8_t *mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		return NULL;
	return memset(mem, POISON, size);
}

int pair_listen(struct pair *p, struct pair_opts *opts)
{
	struct sockaddr_storage addr;

	memset(p, 0, sizeof(*p));
	if (!test_addr(opts->family, &addr)) {
		errno = EADDRNOTAVAIL;
		return complain("no address to listen on");
	}
	p->server.channel = rdma_create_event_channel();
	if (!p->server.channel)
		return complain("rdma_create_event_channel");
	if (rdma_create_id(p->server.channel, &p->listen, NULL, RDMA_PS_TCP))
		return complain("rdma_create_id");
	if (rdma_bind_addr(p->listen, (struct sockaddr *)&addr))
		return complain("rdma_bind_addr");
	if (rdma_listen(p->listen, 4))
		return complain("rdma_listen");
	return 0;
}

int end_client(struct end *end, enum rdma_port_space ps)
{
	end->channel = rdma_create_event_channel();
	if (!end->channel)
		return complain("rdma_create_event_channel");
	if (rdma_create_id(end->channel, &end->id, NULL, ps))
		return complain("rdma_create_id");
	return 0;
}

int end_resolve(struct end *end, struct sockaddr *from, struct sockaddr_storage *to)
{
	if (rdma_resolve_addr(end->id, from, (struct sockaddr *)to, 10000))
		return complain("rdma_resolve_addr");
	if (expect_event(end->channel, RDMA_CM_EVENT_ADDR_RESOLVED, &end->event))
		return -1;
	if (rdma_resolve_route(end->id, 10000))
		return complain("rdma_resolve_route");
	return expect_event(end->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, &end->event);
}

int pair_resolve(struct pair *p, struct pair_opts *opts)
{
	struct sockaddr_storage addr;

	test_addr(opts->family, &addr);
	set_port(&addr, rdma_get_src_port(p->listen));
	return end_client(&p->client, RDMA_PS_TCP) ||
	       end_resolve(&p->client, NULL, &addr) ? -1 : 0;
}

/* rdma_create_qp() creates completion queues for this id alone. */
static int end_qp(struct end *end, struct ibv_qp_init_attr *attr, size_t size)
{
	struct ibv_qp_init_attr copy = *attr;

	if (rdma_create_qp(end->id, NULL, &copy))
		return complain("rdma_create_qp");
	attr->cap = copy.cap;
	return end_buffer(end, size);
}

const struct ibv_qp_init_attr ud_qp = {
	.cap = {
		.max_send_wr = 8, .max_recv_wr = 8,
		.max_send_sge = 1, .max_recv_sge = 1,
		.max_inline_data = 64,
	},
	.qp_type = IBV_QPT_UD,
	.sq_sig_all = 1,
};

int end_ud_qp(struct end *end)
{
	struct ibv_qp_init_attr attr = ud_qp;

	return end_qp(end, &attr, BUF_SIZE);
}

int pair_client_qp(struct pair *p, struct pair_opts *opts)
{
	return end_qp(&p->client, &opts->client_qp, opts->size);
}

int pair_connect(struct pair *p, struct pair_opts *opts)
{
	struct end *s = &p->server;

	if (rdma_connect(p->client.id, &opts->connect))
		return complain("rdma_connect");
	if (expect_event(s->channel, RDMA_CM_EVENT_CONNECT_REQUEST, &s->event))
		return -1;
	s->id = s->event.id;
	return 0;
}

int pair_server_qp(struct pair *p, struct pair_opts *opts)
{
	return end_qp(&p->server, &opts->server_qp, opts->size);
}

int pair_accept(struct pair *p, struct pair_opts *opts)
{
	struct end *c = &p->client, *s = &p->server;

	if (rdma_accept(s->id, &opts->accept))
		return complain("rdma_accept");
	if (expect_event(c->channel, RDMA_CM_EVENT_ESTABLISHED, &c->event))
		return -1;
	return expect_event(s->channel, RDMA_CM_EVENT_ESTABLISHED, &s->event);
}

int pair_to_resolve(struct pair *p, struct pair_opts *opts)
{
	return pair_listen(p, opts) || pair_resolve(p, opts) ? -1 : 0;
}

int pair_to_client_qp(struct pair *p, struct pair_opts *opts)
{
	return pair_to_resolve(p, opts) || pair_client_qp(p, opts) ? -1 : 0;
}

int pair_to_connect(struct pair *p, struct pair_opts *opts)
{
	return pair_to_client_qp(p, opts) || pair_connect(p, opts) ? -1 : 0;
}

int pair_after_listen(struct pair *p, struct pair_opts *opts)
{
	return pair_resolve(p, opts) || pair_after_resolve(p, opts) ? -1 : 0;
}

int pair_after_resolve(struct pair *p, struct pair_opts *opts)
{
	return pair_client_qp(p, opts) || pair_connect(p, opts) ||
	       pair_server_qp(p, opts) || pair_accept(p, opts) ? -1 : 0;
}

int pair_request(struct pair *p, struct pair_opts *opts)
{
	return pair_resolve(p, opts) || pair_client_qp(p, opts) ||
	       pair_connect(p, opts) ? -1 : 0;
}

int pair_open(struct pair *p, struct pair_opts *opts)
{
	struct pair_opts defaults;

	if (!opts) {
		pair_defaults(&defaults);
		opts = &defaults;
	}
	return pair_to_connect(p, opts) || pair_server_qp(p, opts) ||
	       pair_accept(p, opts) ? -1 : 0;
}

int pair_open_patient(struct pair *p, struct pair_opts *opts)
{
	opts->connect.rnr_retry_count = 7;
	opts->accept.rnr_retry_count = 7;
	return pair_open(p, opts);
}

void end_close(struct end *end)
{
	if (end->mr)
		ibv_dereg_mr(end->mr);
	if (end->id && end->id->qp)
		rdma_destroy_qp(end->id);
	if (end->id)
		rdma_destroy_id(end->id);
	free(end->buf);
	end->mr = NULL;
	end->id = NULL;
	end->buf = NULL;
}

void pair_close(struct pair *p)
{
	end_close(&p->client);
	end_close(&p->server);
	if (p->listen)
		rdma_destroy_id(p->listen);
	if (p->client.channel)
		rdma_destroy_event_channel(p->client.channel);
	if (p->server.channel)
		rdma_destroy_event_channel(p->server.channel);
	memset(p, 0, sizeof(*p));
}
