// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One function for each command, functions that wait for its results, and the
 * addresses and device of the host.
 */
#define _GNU_SOURCE
#include "rpost_test.h"

bool rp_mute;
const char *rp_failed;

/* The harness ends a test's process by _exit(), which loses stdio's buffers. */
static void __attribute__((constructor)) rp_buffer_lines(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

int rp_query_device(int fd, uint32_t device, struct rpost_query_device *cmd)
{
	RP_QUERY(cmd);
	cmd->device = device;
	return rp_ioctl(fd, RPOST_IOC_QUERY_DEVICE, cmd);
}

int rp_query_port(int fd, uint32_t device, uint32_t port, struct rpost_query_port *cmd)
{
	RP_QUERY(cmd);
	cmd->device = device;
	cmd->port = port;
	return rp_ioctl(fd, RPOST_IOC_QUERY_PORT, cmd);
}

/* Return the device that RPOST_TEST_DEVICE names, else the first, or 0. */
uint32_t rp_first_device(int fd)
{
	const char *name = getenv("RPOST_TEST_DEVICE");
	uint32_t ids[64] = { 0 }, i;
	struct rpost_query_devices cmd = {
		.size = sizeof(cmd),
		.devices = (uintptr_t)ids,
		.count = 64,
	};
	struct rpost_query_device device;

	if (rp_ioctl(fd, RPOST_IOC_QUERY_DEVICES, &cmd))
		return 0;
	if (!name)
		return ids[0];
	for (i = 0; i < 64 && ids[i]; i++) {
		if (!rp_query_device(fd, ids[i], &device) &&
		    !strcmp((char *)device.name, name))
			return ids[i];
	}
	return 0;
}

/* Return the size of the largest region, or 0. */
uint64_t rp_max_mr_size(int fd, uint32_t device)
{
	struct rpost_query_device cmd;

	return rp_query_device(fd, device, &cmd) ? 0 : cmd.max_mr_size;
}

bool rp_is_iwarp(int fd, uint32_t device)
{
	struct rpost_query_device cmd;

	return !rp_query_device(fd, device, &cmd) &&
	       cmd.transport == RPOST_TRANSPORT_IWARP;
}

/* True if the device is rxe (RXE_VENDOR_ID), for tests of its behaviour. */
bool rp_is_rxe(int fd, uint32_t device)
{
	struct rpost_query_device cmd;

	return !rp_query_device(fd, device, &cmd) &&
	       cmd.vendor_id == 0xffffff;
}

int rp_destroy(int fd, uint32_t type, uint32_t handle)
{
	struct rpost_destroy cmd = {
		.size = sizeof(cmd),
		.type = type,
		.handle = handle,
	};

	return rp_ioctl(fd, RPOST_IOC_DESTROY, &cmd);
}

int rp_alloc_pd(int fd, uint32_t device, uint32_t *handle)
{
	struct rpost_alloc_pd cmd = { .size = sizeof(cmd), .device = device };
	int ret = rp_ioctl(fd, RPOST_IOC_ALLOC_PD, &cmd);

	*handle = cmd.handle;
	return ret;
}

struct rpost_reg_mr rp_mr(uint32_t pd, const void *addr, uint64_t length, uint32_t access)
{
	return (struct rpost_reg_mr) {
		.size = sizeof(struct rpost_reg_mr),
		.pd = pd,
		.access = access,
		.addr = (uintptr_t)addr,
		.length = length,
		.iova = (uintptr_t)addr,
	};
}

int rp_reg_mr(int fd, uint32_t pd, void *addr, uint64_t length, uint32_t access,
	      struct rpost_reg_mr *mr)
{
	*mr = rp_mr(pd, addr, length, access);
	return rp_ioctl(fd, RPOST_IOC_REG_MR, mr);
}

int rp_comp_channel(int fd)
{
	struct rpost_create_comp_channel cmd = { .size = sizeof(cmd) };
	int ret = rp_ioctl(fd, RPOST_IOC_CREATE_COMP_CHANNEL, &cmd);

	return ret ? ret : cmd.fd;
}

int rp_event_channel(int fd)
{
	struct rpost_create_event_channel cmd = { .size = sizeof(cmd) };
	int ret = rp_ioctl(fd, RPOST_IOC_CREATE_EVENT_CHANNEL, &cmd);

	return ret ? ret : cmd.fd;
}

uint32_t rp_cq_flags;

int rp_create_cq(int fd, uint32_t device, uint32_t cqe, int channel,
		 struct rp_cq *cq)
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

int rp_arm_cq(const struct rp_cq *cq, uint32_t flags)
{
	struct rpost_arm_cq cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.handle = cq->cmd.handle,
	};

	return rp_ioctl(cq->fd, RPOST_IOC_ARM_CQ, &cmd);
}

int rp_resize_cq(const struct rp_cq *cq, uint32_t cqe, struct rpost_resize_cq *cmd)
{
	*cmd = (struct rpost_resize_cq) {
		.size = sizeof(*cmd), .handle = cq->cmd.handle, .cqe = cqe,
	};
	return rp_ioctl(cq->fd, RPOST_IOC_RESIZE_CQ, cmd);
}

/* Map the ring that a resize has made and use it; the old one stays mapped. */
int rp_use_resized(struct rp_cq *cq, const struct rpost_resize_cq *cmd)
{
	void *map = mmap(NULL, cmd->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 cq->fd, cmd->mmap_offset);

	if (map == MAP_FAILED)
		return -errno;
	cq->cmd.cqe = cmd->cqe;
	cq->cmd.mmap_size = cmd->mmap_size;
	cq->cmd.mmap_offset = cmd->mmap_offset;
	cq->cmd.ring_offset = cmd->ring_offset;
	rp_set_ring(cq, map);
	return 0;
}

/*
 * Request an event as struct rpost_ring describes; @arms counts requests.  The
 * caller looks at the ring again before it sleeps.
 */
int rp_ask_event(struct rp_cq *cq, uint32_t *arms)
{
	if (!rp_need_poll(cq)) {
		__atomic_store_n(&cq->ring->arm, ++*arms, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	}
	return rp_need_poll(cq) ? rp_arm_cq(cq, 0) : 0;
}

/* Have the module poll the device. */
int rp_fetch(struct rp_cq *cq)
{
	struct rpost_poll_cq cmd = {
		.size = sizeof(cmd),
		.handle = cq->cmd.handle,
	};
	int ret = rp_ioctl(cq->fd, RPOST_IOC_POLL_CQ, &cmd);

	return ret < 0 ? ret : 0;
}

/* Take one completion: 1, 0 if there is none, or a negative errno. */
int rp_poll_cq(struct rp_cq *cq, struct rpost_wc *wc)
{
	uint32_t head = cq->ring->head;
	int ret;

	if (head == __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE)) {
		if (!(__atomic_load_n(&cq->ring->flags, __ATOMIC_RELAXED) &
		      RPOST_RING_NEED_POLL))
			return 0;
		ret = rp_fetch(cq);
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

/* Poll an empty queue until the module arms the device. */
int rp_poll_in_vain(struct rp_cq *cq)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rpost_wc wc;
	int ret;

	while (rp_need_poll(cq)) {
		ret = rp_poll_cq(cq, &wc);
		if (ret)
			return ret < 0 ? ret : -EBUSY;
		if (rp_now_ms() > end)
			return -ETIMEDOUT;
	}
	return 0;
}

uint64_t rp_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ull + ts.tv_nsec / 1000000;
}

/* The CPU time that this process has used. */
long rp_cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#define BUSY_POLLS	1000

/*
 * Wait for a completion: 1, 0 after the time limit, or a negative errno.  After
 * many polls it sleeps in between, and leaves the CPU to others.
 */
int rp_wait_cq(struct rp_cq *cq, struct rpost_wc *wc)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;
	unsigned int polls = 0;
	int ret;

	memset(wc, 0xa5, sizeof(*wc));
	do {
		if (polls++ > BUSY_POLLS)
			usleep(100);
		ret = rp_poll_cq(cq, wc);
	} while (!ret && rp_now_ms() < end);
	return ret;
}

/* Return the bytes that the kernel counts as pinned by this process, or -1. */
long rp_pinned(void)
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

long rp_pinned_soon(long want)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (rp_pinned() != want && rp_now_ms() < end)
		usleep(1000);
	return rp_pinned();
}

/* Return the number after a name in a file of RP_DEBUGFS, or -1. */
long rp_debug_number(const char *file, const char *what)
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

int rp_create_id_of(int fd, int channel, uint32_t port_space, uint32_t qp_type,
		    uint32_t *handle)
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

struct sockaddr_in rp_addr4;

struct sockaddr_in6 rp_addr6;

void rp_addr(struct __kernel_sockaddr_storage *ss, uint16_t port)
{
	struct sockaddr_in sin = rp_addr4;

	sin.sin_port = htons(port);
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, &sin, sizeof(sin));
}

/* The IPv4 address of a multicast group. */
void rp_group_addr(struct __kernel_sockaddr_storage *ss, const char *ip)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	inet_pton(AF_INET, ip, &sin.sin_addr);
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, &sin, sizeof(sin));
}

int rp_bind(int fd, uint32_t id, uint16_t port)
{
	struct rpost_bind_addr cmd = {
		.size = sizeof(cmd),
		.id = id,
		.addr_len = sizeof(struct sockaddr_in),
	};

	rp_addr(&cmd.addr, port);
	return rp_ioctl(fd, RPOST_IOC_BIND_ADDR, &cmd);
}

/* Poll for the state, because no event reports this change. */
bool rp_id_reaches(int fd, uint32_t id, uint32_t state)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	while (rp_id_state(fd, id) != state)
		if (rp_now_ms() > end)
			return false;
	return true;
}

uint16_t rp_port(int fd, uint32_t id)
{
	struct rpost_query_id cmd;
	struct sockaddr_in sin;

	if (rp_query_id(fd, id, &cmd))
		return 0;
	memcpy(&sin, &cmd.src, sizeof(sin));
	return ntohs(sin.sin_port);
}

int rp_listen(int fd, uint32_t id, uint32_t backlog)
{
	struct rpost_listen cmd = {
		.size = sizeof(cmd),
		.id = id,
		.backlog = backlog,
	};

	return rp_ioctl(fd, RPOST_IOC_LISTEN, &cmd);
}

int rp_resolve_ip(int fd, uint32_t id, struct in_addr ip, uint16_t port,
		  uint32_t timeout_ms)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = ip,
	};
	struct rpost_resolve_addr cmd = {
		.size = sizeof(cmd),
		.id = id,
		.timeout_ms = timeout_ms,
		.dst_len = sizeof(sin),
	};

	memcpy(&cmd.dst, &sin, sizeof(sin));
	return rp_ioctl(fd, RPOST_IOC_RESOLVE_ADDR, &cmd);
}

int rp_resolve_addr(int fd, uint32_t id, uint16_t port)
{
	return rp_resolve_ip(fd, id, rp_addr4.sin_addr, port, 10000);
}

int rp_resolve_route(int fd, uint32_t id)
{
	struct rpost_resolve_route cmd = {
		.size = sizeof(cmd),
		.id = id,
		.timeout_ms = 10000,
	};

	return rp_ioctl(fd, RPOST_IOC_RESOLVE_ROUTE, &cmd);
}

int rp_migrate(int fd, uint32_t id, int channel)
{
	struct rpost_migrate_id cmd = {
		.size = sizeof(cmd), .id = id, .channel_fd = channel,
	};

	return rp_ioctl(fd, RPOST_IOC_MIGRATE_ID, &cmd);
}

void rp_conn_param(struct rpost_conn_param *param)
{
	*param = (struct rpost_conn_param) {
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

int rp_connect(int fd, uint32_t id)
{
	struct rpost_connect cmd = { .size = sizeof(cmd), .id = id };

	rp_conn_param(&cmd.param);
	return rp_ioctl(fd, RPOST_IOC_CONNECT, &cmd);
}

int rp_accept(int fd, uint32_t id)
{
	struct rpost_accept cmd = { .size = sizeof(cmd), .id = id };

	rp_conn_param(&cmd.param);
	return rp_ioctl(fd, RPOST_IOC_ACCEPT, &cmd);
}

/* Wait for the next event: 0, -ETIME, or another negative errno. */
int rp_get_event(int channel, struct rpost_get_event *event)
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

/* Expect an event of an id: 0, -EPROTO for another event, or an errno. */
int rp_expect(int channel, uint32_t id, uint32_t type)
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

/* True if an address belongs to an RDMA device. */
bool rp_addr_works(int fd, int channel, const void *addr, uint32_t addr_len)
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

void rp_try_addr(int fd, int channel, const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET && !rp_addr4.sin_family &&
	    rp_addr_works(fd, channel, sa, sizeof(rp_addr4)))
		memcpy(&rp_addr4, sa, sizeof(rp_addr4));
	if (sa->sa_family == AF_INET6 && !rp_addr6.sin6_family &&
	    !IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)sa)->sin6_addr) &&
	    rp_addr_works(fd, channel, sa, sizeof(rp_addr6)))
		memcpy(&rp_addr6, sa, sizeof(rp_addr6));
}

void rp_find_addrs(int fd)
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
