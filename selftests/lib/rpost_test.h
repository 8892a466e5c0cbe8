/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the tests of the kernel interface share: one call for each command, and
 * two connected queue pairs.  Functions return 0 or a negative errno unless
 * their comment says otherwise.
 *
 * A program that includes this skips itself if the host has no /dev/rdma_post
 * or no RDMA device with an address: RPOST_TEST_ADDR and RPOST_TEST_ADDR6, or
 * the first of the host's addresses that has a device.
 */
#ifndef RPOST_TEST_H
#define RPOST_TEST_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_post_abi.h>

#define TEST_TIMEOUT_MS	20000	/* for what must happen */
#define TEST_QUIET_MS	30	/* for what must not */
#define TEST_CHANCE_MS	100000	/* for what must be met, by threads that race */

/* The harness's 30 s are few for several such waits, with KASAN. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

/* Failures are expected, and not worth a line. */
static bool rp_mute;

/* Run a command: 0, or the negative errno. */
static inline int rp_ioctl(int fd, unsigned long nr, void *arg)
{
	return ioctl(fd, nr, arg) ? -errno : 0;
}

static inline int rp_open(void)
{
	return open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC);
}

/* The device that RPOST_TEST_DEVICE names, else the first, or 0. */
static inline uint32_t rp_first_device(int fd)
{
	const char *name = getenv("RPOST_TEST_DEVICE");
	uint32_t ids[64] = { 0 }, i;
	struct rpost_query_devices cmd = {
		.size = sizeof(cmd),
		.devices = (uintptr_t)ids,
		.count = 64,
	};
	struct rpost_query_device device = { .size = sizeof(device) };

	if (rp_ioctl(fd, RPOST_IOC_QUERY_DEVICES, &cmd))
		return 0;
	if (!name)
		return ids[0];
	for (i = 0; i < 64 && ids[i]; i++) {
		device.device = ids[i];
		if (!rp_ioctl(fd, RPOST_IOC_QUERY_DEVICE, &device) &&
		    !strcmp((char *)device.name, name))
			return ids[i];
	}
	return 0;
}

/* Bytes in the largest region, or 0. */
static inline uint64_t rp_max_mr_size(int fd, uint32_t device)
{
	struct rpost_query_device cmd = {
		.size = sizeof(cmd),
		.device = device,
	};

	return rp_ioctl(fd, RPOST_IOC_QUERY_DEVICE, &cmd) ? 0 : cmd.max_mr_size;
}

static inline bool rp_is_iwarp(int fd, uint32_t device)
{
	struct rpost_query_device cmd = {
		.size = sizeof(cmd),
		.device = device,
	};

	return !rp_ioctl(fd, RPOST_IOC_QUERY_DEVICE, &cmd) &&
	       cmd.transport == RPOST_TRANSPORT_IWARP;
}

/* Is it rxe (RXE_VENDOR_ID), for tests of how it works? */
static inline bool rp_is_rxe(int fd, uint32_t device)
{
	struct rpost_query_device cmd = {
		.size = sizeof(cmd),
		.device = device,
	};

	return !rp_ioctl(fd, RPOST_IOC_QUERY_DEVICE, &cmd) &&
	       cmd.vendor_id == 0xffffff;
}

/* For tests of what iWARP does not have. */
#define RP_SKIP_IWARP(fd, what)						\
	do {								\
		if (rp_is_iwarp(fd, rp_first_device(fd)))		\
			SKIP(return, "iWARP has no " what);		\
	} while (0)

static inline int rp_num_objects(int fd)
{
	struct rpost_query cmd = { .size = sizeof(cmd) };

	return rp_ioctl(fd, RPOST_IOC_QUERY, &cmd) ? -1 : (int)cmd.num_objects;
}

static inline int rp_destroy(int fd, uint32_t type, uint32_t handle)
{
	struct rpost_destroy cmd = {
		.size = sizeof(cmd),
		.type = type,
		.handle = handle,
	};

	return rp_ioctl(fd, RPOST_IOC_DESTROY, &cmd);
}

static inline int rp_alloc_pd(int fd, uint32_t device, uint32_t *handle)
{
	struct rpost_alloc_pd cmd = { .size = sizeof(cmd), .device = device };
	int ret = rp_ioctl(fd, RPOST_IOC_ALLOC_PD, &cmd);

	*handle = cmd.handle;
	return ret;
}

static inline int rp_reg_mr(int fd, uint32_t pd, void *addr, uint64_t length,
			    uint32_t access, struct rpost_reg_mr *mr)
{
	*mr = (struct rpost_reg_mr) {
		.size = sizeof(*mr),
		.pd = pd,
		.access = access,
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = (uintptr_t)addr,
	};
	return rp_ioctl(fd, RPOST_IOC_REG_MR, mr);
}

static inline int rp_comp_channel(int fd)
{
	struct rpost_create_comp_channel cmd = { .size = sizeof(cmd) };
	int ret = rp_ioctl(fd, RPOST_IOC_CREATE_COMP_CHANNEL, &cmd);

	return ret ? ret : cmd.fd;
}

static inline int rp_event_channel(int fd)
{
	struct rpost_create_event_channel cmd = { .size = sizeof(cmd) };
	int ret = rp_ioctl(fd, RPOST_IOC_CREATE_EVENT_CHANNEL, &cmd);

	return ret ? ret : cmd.fd;
}

/* A completion queue and its ring. */
struct rp_cq {
	int fd;
	struct rpost_create_cq cmd;
	struct rpost_ring *ring;
	struct rpost_wc *wcs;	/* as far as the size of an entry goes */
};

/* RPOST_CQ_* of all that are made. */
static uint32_t rp_cq_flags;

static inline size_t rp_wc_size(const struct rp_cq *cq)
{
	return cq->cmd.flags & RPOST_CQ_SMALL_ENTRIES ?
	       RPOST_WC_SMALL_SIZE : sizeof(struct rpost_wc);
}

/* What is mapped, in which there may be other rings, too. */
static inline void *rp_cq_map(const struct rp_cq *cq)
{
	return (char *)cq->ring - cq->cmd.ring_offset;
}

static inline void rp_set_ring(struct rp_cq *cq, void *map)
{
	cq->ring = (void *)((char *)map + cq->cmd.ring_offset);
	cq->wcs = (void *)((char *)cq->ring + cq->cmd.entries_offset);
}

static inline int rp_create_cq(int fd, uint32_t device, uint32_t cqe,
			       int channel, struct rp_cq *cq)
{
	void *map;
	int ret;

	*cq = (struct rp_cq) {
		.fd = fd,
		.cmd = {
			.size = sizeof(cq->cmd),
			.flags = rp_cq_flags,
			.device = device,
			.cqe = cqe,
			.channel_fd = channel,
			.user_data = (uintptr_t)cq,
		},
	};
	ret = rp_ioctl(fd, RPOST_IOC_CREATE_CQ, &cq->cmd);
	if (ret)
		return ret;
	map = mmap(NULL, cq->cmd.mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fd, cq->cmd.mmap_offset);
	if (map == MAP_FAILED)
		return -errno;
	rp_set_ring(cq, map);
	return 0;
}

static inline void rp_unmap_cq(struct rp_cq *cq)
{
	munmap(rp_cq_map(cq), cq->cmd.mmap_size);
}

static inline int rp_arm_cq(const struct rp_cq *cq, uint32_t flags)
{
	struct rpost_arm_cq cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.handle = cq->cmd.handle,
	};

	return rp_ioctl(cq->fd, RPOST_IOC_ARM_CQ, &cmd);
}

static inline bool rp_need_poll(const struct rp_cq *cq)
{
	return __atomic_load_n(&cq->ring->flags, __ATOMIC_ACQUIRE) &
	       RPOST_RING_NEED_POLL;
}

/*
 * Ask for an event as struct rpost_ring says; @arms counts.  Look at the ring
 * again before sleeping.
 */
static inline int rp_ask_event(struct rp_cq *cq, uint32_t *arms)
{
	if (!rp_need_poll(cq)) {
		__atomic_store_n(&cq->ring->arm, ++*arms, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	return rp_need_poll(cq) ? rp_arm_cq(cq, 0) : 0;
}

/* One completion if there is one: 1, 0, or a negative errno. */
static inline int rp_poll_cq(struct rp_cq *cq, struct rpost_wc *wc)
{
	struct rpost_poll_cq cmd = {
		.size = sizeof(cmd),
		.handle = cq->cmd.handle,
	};
	uint32_t head = cq->ring->head;
	int ret;

	if (head == __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE)) {
		if (!(__atomic_load_n(&cq->ring->flags, __ATOMIC_RELAXED) &
		      RPOST_RING_NEED_POLL))
			return 0;
		ret = rp_ioctl(cq->fd, RPOST_IOC_POLL_CQ, &cmd);
		if (ret)
			return ret;
		if (head == __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE))
			return 0;
	}
	memset(wc, 0, sizeof(*wc));
	memcpy(wc, (char *)cq->wcs + (head & (cq->cmd.cqe - 1)) * rp_wc_size(cq),
	       rp_wc_size(cq));
	__atomic_store_n(&cq->ring->head, head + 1, __ATOMIC_RELEASE);
	return 1;
}

static inline uint64_t rp_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/* Wait for a completion: 1, 0 after the time limit, or a negative errno. */
static inline int rp_wait_cq(struct rp_cq *cq, struct rpost_wc *wc)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	memset(wc, 0xa5, sizeof(*wc));
	do {
		ret = rp_poll_cq(cq, wc);
	} while (!ret && rp_now_ms() < end);
	return ret;
}

/* Memory of this process that the kernel counts as pinned, in bytes, or -1. */
static inline long rp_pinned(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	long kb = -1;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmPin: %ld kB", &kb) == 1)
			break;
	}
	fclose(f);
	return kb < 0 ? -1 : kb * 1024;
}

#define RP_DEBUGFS	"/sys/kernel/debug/rdma_post/"

/* What stands behind a name in a file of RP_DEBUGFS, or -1. */
static inline long rp_debug_number(const char *file, const char *what)
{
	char path[64], name[32];
	long n, found = -1;
	FILE *f;

	snprintf(path, sizeof(path), RP_DEBUGFS "%s", file);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (fscanf(f, "%31s %ld", name, &n) == 2) {
		if (!strcmp(name, what))
			found = n;
	}
	fclose(f);
	return found;
}

/* ------------------------------------------------------ connections */

static inline int rp_create_id_of(int fd, int channel, uint32_t port_space,
				  uint32_t qp_type, uint32_t *handle)
{
	struct rpost_create_id cmd = {
		.size = sizeof(cmd),
		.channel_fd = channel,
		.port_space = port_space,
		.qp_type = qp_type,
	};
	int ret = rp_ioctl(fd, RPOST_IOC_CREATE_ID, &cmd);

	*handle = cmd.handle;
	return ret;
}

static inline int rp_create_id(int fd, int channel, uint32_t *handle)
{
	return rp_create_id_of(fd, channel, RPOST_PS_TCP, RPOST_QPT_RC, handle);
}

/* The host's addresses, found before main() runs; family 0 if there is none. */
static struct sockaddr_in rp_addr4;
static struct sockaddr_in6 rp_addr6;

static inline void rp_addr(struct __kernel_sockaddr_storage *ss, uint16_t port)
{
	struct sockaddr_in sin = rp_addr4;

	sin.sin_port = htons(port);
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, &sin, sizeof(sin));
}

static inline int rp_bind(int fd, uint32_t id, uint16_t port)
{
	struct rpost_bind_addr cmd = {
		.size = sizeof(cmd),
		.id = id,
		.addr_len = sizeof(struct sockaddr_in),
	};

	rp_addr(&cmd.addr, port);
	return rp_ioctl(fd, RPOST_IOC_BIND_ADDR, &cmd);
}

static inline int rp_query_id(int fd, uint32_t id, struct rpost_query_id *cmd)
{
	*cmd = (struct rpost_query_id) { .size = sizeof(*cmd), .id = id };
	return rp_ioctl(fd, RPOST_IOC_QUERY_ID, cmd);
}

/* State of an id, RPOST_ID_*, or 255 if there is none. */
static inline uint32_t rp_id_state(int fd, uint32_t id)
{
	struct rpost_query_id cmd;

	return rp_query_id(fd, id, &cmd) ? 255 : cmd.state;
}

/* Of a change that no event tells. */
static inline bool rp_id_reaches(int fd, uint32_t id, uint32_t state)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (rp_id_state(fd, id) != state)
		if (rp_now_ms() > end)
			return false;
	return true;
}

static inline uint16_t rp_port(int fd, uint32_t id)
{
	struct rpost_query_id cmd;
	struct sockaddr_in sin;

	if (rp_query_id(fd, id, &cmd))
		return 0;
	memcpy(&sin, &cmd.src, sizeof(sin));
	return ntohs(sin.sin_port);
}

static inline int rp_listen(int fd, uint32_t id, uint32_t backlog)
{
	struct rpost_listen cmd = {
		.size = sizeof(cmd),
		.id = id,
		.backlog = backlog,
	};

	return rp_ioctl(fd, RPOST_IOC_LISTEN, &cmd);
}

static inline int rp_resolve_addr(int fd, uint32_t id, uint16_t port)
{
	struct rpost_resolve_addr cmd = {
		.size = sizeof(cmd),
		.id = id,
		.timeout_ms = 10000,
		.dst_len = sizeof(struct sockaddr_in),
	};

	rp_addr(&cmd.dst, port);
	return rp_ioctl(fd, RPOST_IOC_RESOLVE_ADDR, &cmd);
}

static inline int rp_resolve_route(int fd, uint32_t id)
{
	struct rpost_resolve_route cmd = {
		.size = sizeof(cmd),
		.id = id,
		.timeout_ms = 10000,
	};

	return rp_ioctl(fd, RPOST_IOC_RESOLVE_ROUTE, &cmd);
}

static inline void rp_conn_param(struct rpost_conn_param *param)
{
	*param = (struct rpost_conn_param) {
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static inline int rp_connect(int fd, uint32_t id)
{
	struct rpost_connect cmd = { .size = sizeof(cmd), .id = id };

	rp_conn_param(&cmd.param);
	return rp_ioctl(fd, RPOST_IOC_CONNECT, &cmd);
}

static inline int rp_accept(int fd, uint32_t id)
{
	struct rpost_accept cmd = { .size = sizeof(cmd), .id = id };

	rp_conn_param(&cmd.param);
	return rp_ioctl(fd, RPOST_IOC_ACCEPT, &cmd);
}

static inline int rp_disconnect(int fd, uint32_t id)
{
	struct rpost_disconnect cmd = { .size = sizeof(cmd), .id = id };

	return rp_ioctl(fd, RPOST_IOC_DISCONNECT, &cmd);
}

/* The next event: 0, or a negative errno, -ETIME after the time limit. */
static inline int rp_get_event(int channel, struct rpost_get_event *event)
{
	struct pollfd pfd = { .fd = channel, .events = POLLIN };
	int ready;

	memset(event, 0xa5, sizeof(*event));
	event->size = sizeof(*event);
	event->flags = 0;
	memset(&event->param, 0, sizeof(event->param));
	event->id = 0;
	event->listen_id = 0;
	event->event = 0;
	event->status = 0;
	ready = poll(&pfd, 1, TEST_TIMEOUT_MS);
	if (ready != 1)
		return ready ? -errno : -ETIME;
	return rp_ioctl(channel, RPOST_IOC_GET_EVENT, event);
}

/* Expect an event of an id: 0, or what came instead. */
static inline int rp_expect(int channel, uint32_t id, uint32_t type)
{
	struct rpost_get_event event;
	int ret = rp_get_event(channel, &event);

	if (ret)
		return ret;
	if (event.event != type || event.status || (id && event.id != id)) {
		if (!rp_mute)
			fprintf(stderr, "# event %u status %d of id %u, not %u of %u\n",
				event.event, event.status, event.id, type, id);
		return -EPROTO;
	}
	return 0;
}

/* One end of a connection. */
struct rp_end {
	int fd;
	int channel;
	uint32_t device;
	uint32_t pd;
	uint32_t id;
	uint32_t qp;
	uint32_t qp_num;
	struct rp_cq cq;
};

#ifndef RP_DEPTH
#define RP_DEPTH	16
#endif
#define RP_SGE		4
#define RP_INLINE	64

static inline int rp_create_qp(struct rp_end *end, uint32_t flags)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.id = end->id,
		.pd = end->pd,
		.send_cq = end->cq.cmd.handle,
		.recv_cq = end->cq.cmd.handle,
		.max_send_wr = RP_DEPTH,
		.max_recv_wr = RP_DEPTH,
		.max_send_sge = RP_SGE,
		.max_recv_sge = RP_SGE,
		.max_inline_data = RP_INLINE,
	};
	int ret = rp_ioctl(end->fd, RPOST_IOC_CREATE_QP, &cmd);

	end->qp = cmd.handle;
	end->qp_num = cmd.qp_num;
	return ret;
}

/* What an end needs besides its id. */
static inline int rp_end_init(struct rp_end *end)
{
	int ret;

	memset(end, 0, sizeof(*end));
	end->fd = rp_open();
	if (end->fd < 0)
		return -errno;
	end->device = rp_first_device(end->fd);
	end->channel = rp_event_channel(end->fd);
	if (end->channel < 0)
		return end->channel;
	ret = rp_alloc_pd(end->fd, end->device, &end->pd);
	if (ret)
		return ret;
	return rp_create_cq(end->fd, end->device, 4 * RP_DEPTH, -1, &end->cq);
}

static inline void rp_end_close(struct rp_end *end)
{
	rp_unmap_cq(&end->cq);
	close(end->channel);
	close(end->fd);
}

/* In a child process, which has no harness. */
#define CHILD_CHECK(expr) do {						\
	if (!(expr)) {							\
		fprintf(stderr, "# line %d: %s\n", __LINE__, #expr);	\
		_exit(1);						\
	}								\
} while (0)

#define RP_TRY(call)							\
	do {								\
		int rp_try = (call);					\
									\
		if (rp_try) {						\
			if (!rp_mute)					\
				fprintf(stderr, "# " #call ": %d\n",	\
					rp_try);			\
			return rp_try;					\
		}							\
	} while (0)

/* An end's completion queue becomes one with a channel, which is returned. */
static inline int rp_end_add_channel(struct rp_end *end, uint32_t cqe)
{
	int channel = rp_comp_channel(end->fd);

	if (channel < 0)
		return channel;
	rp_unmap_cq(&end->cq);
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_CQ, end->cq.cmd.handle));
	RP_TRY(rp_create_cq(end->fd, end->device, cqe, channel, &end->cq));
	return channel;
}

/* An id that listens on a port of the kernel's choice. */
static inline int rp_listener(struct rp_end *server, uint32_t *listener)
{
	RP_TRY(rp_create_id(server->fd, server->channel, listener));
	RP_TRY(rp_bind(server->fd, *listener, 0));
	RP_TRY(rp_listen(server->fd, *listener, 4));
	return 0;
}

/* An id with its address resolved. */
static inline int rp_client_addr(struct rp_end *client, uint16_t port)
{
	RP_TRY(rp_create_id(client->fd, client->channel, &client->id));
	RP_TRY(rp_resolve_addr(client->fd, client->id, port));
	RP_TRY(rp_expect(client->channel, client->id,
			 RPOST_EVENT_ADDR_RESOLVED));
	return 0;
}

/* Resolve the address and the route of an id. */
static inline int rp_resolve(struct rp_end *client, uint16_t port)
{
	RP_TRY(rp_resolve_addr(client->fd, client->id, port));
	RP_TRY(rp_expect(client->channel, client->id,
			 RPOST_EVENT_ADDR_RESOLVED));
	RP_TRY(rp_resolve_route(client->fd, client->id));
	RP_TRY(rp_expect(client->channel, client->id,
			 RPOST_EVENT_ROUTE_RESOLVED));
	return 0;
}

/* An id with its route resolved, but no queue pair. */
static inline int rp_client_route(struct rp_end *client, uint16_t port)
{
	RP_TRY(rp_create_id(client->fd, client->channel, &client->id));
	RP_TRY(rp_resolve(client, port));
	return 0;
}

/* Take the request that @listener got, as @server->id. */
static inline int rp_take_request(struct rp_end *server, uint32_t listener)
{
	struct rpost_get_event event;

	RP_TRY(rp_get_event(server->channel, &event));
	if (event.event != RPOST_EVENT_CONNECT_REQUEST ||
	    event.listen_id != listener) {
		fprintf(stderr, "# event %u, not a request\n", event.event);
		return -EPROTO;
	}
	server->id = event.id;
	return 0;
}

/* @client has asked and not been answered. */
static inline int rp_ask(struct rp_end *client, struct rp_end *server,
			 uint32_t listener, uint32_t flags)
{
	RP_TRY(rp_client_route(client, rp_port(server->fd, listener)));
	RP_TRY(rp_create_qp(client, flags));
	RP_TRY(rp_connect(client->fd, client->id));
	RP_TRY(rp_take_request(server, listener));
	return 0;
}

/* Connect two ends by a listener of the server's. */
static inline int rp_join(struct rp_end *client, struct rp_end *server,
			  uint32_t listener, uint32_t flags)
{
	RP_TRY(rp_ask(client, server, listener, flags));
	RP_TRY(rp_create_qp(server, flags));
	RP_TRY(rp_accept(server->fd, server->id));
	RP_TRY(rp_expect(client->channel, client->id, RPOST_EVENT_ESTABLISHED));
	RP_TRY(rp_expect(server->channel, server->id, RPOST_EVENT_ESTABLISHED));
	return 0;
}

/* Destroy an end's queue pair and id, and forget what came of them. */
static inline int rp_leave(struct rp_end *end)
{
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_ID, end->id));
	end->cq.ring->head = __atomic_load_n(&end->cq.ring->tail,
					     __ATOMIC_ACQUIRE);
	return 0;
}

/* Connect two ends, each with an open file of its own. */
static inline int rp_connect_pair(struct rp_end *client, struct rp_end *server,
				  uint32_t flags)
{
	uint32_t listener;

	RP_TRY(rp_end_init(client));
	RP_TRY(rp_end_init(server));
	RP_TRY(rp_listener(server, &listener));
	RP_TRY(rp_join(client, server, listener, flags));
	RP_TRY(rp_destroy(server->fd, RPOST_OBJ_ID, listener));
	return 0;
}

/* ------------------------------------------------------------- posts */

static inline int rp_post(int fd, unsigned long nr, uint32_t qp, void *block,
			  uint32_t bytes, uint32_t count, uint32_t *posted)
{
	struct rpost_post cmd = {
		.size = sizeof(cmd),
		.qp = qp,
		.count = count,
		.wrs = (uintptr_t)block,
		.wrs_size = bytes,
	};
	int ret = rp_ioctl(fd, nr, &cmd);

	if (posted)
		*posted = cmd.posted;
	return ret;
}

static inline int rp_post_recv(struct rp_end *end, uint64_t wr_id, void *addr,
			       uint32_t length, uint32_t lkey)
{
	struct {
		struct rpost_recv_wr wr;
		struct rpost_sge sge;
	} block = {
		.wr = { .wr_id = wr_id, .size = sizeof(block), .num_sge = 1 },
		.sge = { (uintptr_t)addr, length, lkey },
	};

	return rp_post(end->fd, RPOST_IOC_POST_RECV, end->qp, &block,
		       sizeof(block), 1, NULL);
}

/* One work request with one entry, for the tests to change. */
struct rp_send {
	struct rpost_send_wr wr;
	struct rpost_sge sge;
};

static inline struct rp_send rp_send(uint32_t opcode, uint64_t wr_id,
				     void *addr, uint32_t length, uint32_t lkey)
{
	return (struct rp_send) {
		.wr = {
			.wr_id = wr_id,
			.size = sizeof(struct rp_send),
			.opcode = opcode,
			.send_flags = RPOST_SEND_SIGNALED,
			.num_sge = 1,
		},
		.sge = { (uintptr_t)addr, length, lkey },
	};
}

static inline int rp_post_send(struct rp_end *end, struct rp_send *send)
{
	return rp_post(end->fd, RPOST_IOC_POST_SEND, end->qp, send,
		       send->wr.size, 1, NULL);
}

/* ------------------------------------------------ the host and the module */

static inline void rp_skip_all(const char *reason)
{
	printf("TAP version 13\n1..0 # SKIP %s\n", reason);
	fflush(stdout);
	_exit(4);
}

/* Does an address belong to an RDMA device? */
static inline bool rp_addr_works(int fd, int channel, const void *addr,
				 uint32_t addr_len)
{
	struct rpost_bind_addr cmd = {
		.size = sizeof(cmd),
		.addr_len = addr_len,
	};
	struct rpost_query_id query = { 0 };
	bool works;

	memcpy(&cmd.addr, addr, addr_len);
	if (rp_create_id(fd, channel, &cmd.id))
		return false;
	works = !rp_ioctl(fd, RPOST_IOC_BIND_ADDR, &cmd) &&
		!rp_query_id(fd, cmd.id, &query) && query.device;
	rp_destroy(fd, RPOST_OBJ_ID, cmd.id);
	return works;
}

static inline void rp_try_addr(int fd, int channel, const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET && !rp_addr4.sin_family &&
	    rp_addr_works(fd, channel, sa, sizeof(rp_addr4)))
		memcpy(&rp_addr4, sa, sizeof(rp_addr4));
	if (sa->sa_family == AF_INET6 && !rp_addr6.sin6_family &&
	    !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)sa)->sin6_addr) &&
	    rp_addr_works(fd, channel, sa, sizeof(rp_addr6)))
		memcpy(&rp_addr6, sa, sizeof(rp_addr6));
}

static inline void rp_find_addrs(int fd)
{
	const char *env4 = getenv("RPOST_TEST_ADDR");
	const char *env6 = getenv("RPOST_TEST_ADDR6");
	struct ifaddrs *list = NULL, *ifa;
	int channel = rp_event_channel(fd);

	if (env4 && inet_pton(AF_INET, env4, &rp_addr4.sin_addr) == 1)
		rp_addr4.sin_family = AF_INET;
	if (env6 && inet_pton(AF_INET6, env6, &rp_addr6.sin6_addr) == 1)
		rp_addr6.sin6_family = AF_INET6;
	if (!getifaddrs(&list)) {
		for (ifa = list; ifa; ifa = ifa->ifa_next) {
			if (ifa->ifa_addr)
				rp_try_addr(fd, channel, ifa->ifa_addr);
		}
		freeifaddrs(list);
	}
	close(channel);
}

static void __attribute__((constructor)) rp_need_device(void)
{
	int fd = rp_open();

	if (fd < 0)
		rp_skip_all(errno == ENOENT ? "no " RPOST_DEVICE_PATH :
					      RPOST_DEVICE_PATH " does not open");
	if (!rp_first_device(fd))
		rp_skip_all("no RDMA device");
	rp_find_addrs(fd);
	if (!rp_addr4.sin_family)
		rp_skip_all("no IPv4 address on an RDMA device");
	close(fd);
}

/* A number in one of the module's files in sysfs, or -1. */
static inline long rp_module_number(const char *name)
{
	char path[128];
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/rdma_post/%s", name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

/* Wait until the module's use count is @want; the last that was seen. */
static inline long rp_wait_refcnt(long want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	long seen;

	while ((seen = rp_module_number("refcnt")) != want &&
	       rp_now_ms() < end)
		usleep(1000);
	return seen;
}

/*
 * Wait until a thread that has put its number into @tid sleeps, as it does in
 * the call that comes next.
 */
static inline bool rp_wait_asleep(const pid_t *tid)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	char path[64], state = 0;
	pid_t id;
	FILE *f;

	while (state != 'S' && rp_now_ms() < end) {
		usleep(1000);
		id = __atomic_load_n(tid, __ATOMIC_ACQUIRE);
		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
		f = id ? fopen(path, "r") : NULL;
		if (!f)
			continue;
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		fclose(f);
	}
	return state == 'S';
}

static inline void rp_put_tid(pid_t *tid)
{
	__atomic_store_n(tid, gettid(), __ATOMIC_RELEASE);
}

/* Is there something to read within @ms? */
static inline bool rp_readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1 && (pfd.revents & POLLIN);
}

/* Does nothing happen for a while? */
static inline bool rp_quiet(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return !poll(&pfd, 1, TEST_QUIET_MS);
}

/* Does no completion come for a while? */
static inline bool rp_quiet_cq(struct rp_cq *cq)
{
	uint64_t end = rp_now_ms() + TEST_QUIET_MS;
	struct rpost_wc wc;

	do {
		if (rp_poll_cq(cq, &wc))
			return false;
	} while (rp_now_ms() < end);
	return true;
}

static inline void *rp_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Has each of @bytes bytes, at least one, this value? */
static inline bool all_bytes(const void *p, size_t bytes, unsigned char value)
{
	const unsigned char *c = p;

	return c[0] == value && !memcmp(c, c + 1, bytes - 1);
}

/* Run a command whose struct, of @size bytes, cannot be written back. */
static inline int rp_ioctl_unanswered(int fd, unsigned long nr, const void *cmd,
				      size_t size)
{
	void *page = rp_pages(4096);
	int ret;

	if (!page)
		return -ENOMEM;
	memcpy(page, cmd, size);
	if (mprotect(page, 4096, PROT_READ))
		return -errno;
	ret = rp_ioctl(fd, nr, page);
	munmap(page, 4096);
	return ret;
}

/* --------------------------------------------- devices that come and go */

#define RP_NO_REMOVAL	"RPOST_TEST_REMOVE and RPOST_TEST_ADD are not set"

/* Are there commands for it, as in removal.c? */
static inline bool rp_can_remove(void)
{
	return getenv("RPOST_TEST_REMOVE") && getenv("RPOST_TEST_ADD");
}

/* A skip in a fixture's setup would not keep the test from running. */
#define RP_NEED_REMOVAL()						\
	do {								\
		if (!rp_can_remove())					\
			SKIP(return, RP_NO_REMOVAL);			\
	} while (0)

static inline int rp_remove_device(void)
{
	return system(getenv("RPOST_TEST_REMOVE"));
}

static inline int rp_add_device(void)
{
	return system(getenv("RPOST_TEST_ADD"));
}

/* For a thread. */
static inline void *rp_remove_soon(void *unused)
{
	(void)unused;
	usleep(100000);
	return (void *)(intptr_t)rp_remove_device();
}

/*
 * Register memory when a device that is new has an address, which fast
 * registration needs.
 */
static inline int rp_reg_mr_soon(const struct rp_end *end, void *addr,
				 uint64_t length, uint32_t access,
				 struct rpost_reg_mr *mr)
{
	uint64_t until = rp_now_ms() + TEST_TIMEOUT_MS;
	int ret;

	do {
		ret = rp_reg_mr(end->fd, end->pd, addr, length, access, mr);
	} while (ret == -ENETDOWN && rp_now_ms() < until && !usleep(10000));
	return ret;
}

#endif /* RPOST_TEST_H */
