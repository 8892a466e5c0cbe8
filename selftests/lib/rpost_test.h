/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared code of the tests of the kernel interface: one function for each
 * command, and two connected queue pairs.  Functions return 0 or a negative
 * errno unless their comment says otherwise.
 *
 * A program that includes this skips itself if the host has no /dev/rdma_post
 * or no RDMA device with an address.  The addresses are RPOST_TEST_ADDR and
 * RPOST_TEST_ADDR6, or the first of the host's that belong to a device.
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

#define TEST_TIMEOUT_MS	20000	/* limit for what must happen */
#define TEST_QUIET_MS	30	/* time in which nothing may happen */
#define TEST_CHANCE_MS	20000	/* limit for what threads may meet */

/*
 * A time that the kernel counts in ticks may seem shorter by this: the count begins
 * at the last tick, 10 ms ago or more if an emulator is late with the next.
 */
#define TEST_TICKS_MS	100

/* A test may wait several times; with KASAN the harness's 30 s are too few. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

/* Failures are expected: do not print them. */
extern bool rp_mute;
/* The first call of RP_TRY() that has failed while rp_mute was set, or NULL. */
extern const char *rp_failed;

/* Run a command; return what it returns, or a negative errno. */
static inline int rp_ioctl(int fd, unsigned long nr, void *arg)
{
	int ret = ioctl(fd, nr, arg);

	return ret < 0 ? -errno : ret;
}

static inline int rp_open(void)
{
	return open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC);
}

/* Begin a query: what the answer does not write stays 0xa5. */
#define RP_QUERY(cmd)							\
	do {								\
		memset(cmd, 0xa5, sizeof(*(cmd)));			\
		(cmd)->size = sizeof(*(cmd));				\
		(cmd)->flags = 0;					\
	} while (0)

int rp_query_device(int fd, uint32_t device, struct rpost_query_device *cmd);
int rp_query_port(int fd, uint32_t device, uint32_t port, struct rpost_query_port *cmd);
uint32_t rp_first_device(int fd);
uint64_t rp_max_mr_size(int fd, uint32_t device);
bool rp_is_iwarp(int fd, uint32_t device);
bool rp_is_rxe(int fd, uint32_t device);

/* A fixture of ends, the member @m of @type, which @init opens and @close closes. */
#define RP_ENDS_FIXTURE(name, type, m, init, close)			\
FIXTURE(name) {								\
	type m;								\
	struct rpost_wc wc;						\
};									\
FIXTURE_SETUP(name)							\
{									\
	ASSERT_EQ(0, init);						\
}									\
FIXTURE_TEARDOWN(name)							\
{									\
	close(&self->m);						\
}

/* Skip a test for the reason that its setup has found: a SKIP there would not. */
#define RP_SKIP_IF_SETUP_SAID()						\
	do {								\
		if (self->skip)						\
			SKIP(return, "%s", self->skip);			\
	} while (0)

/*
 * End a test whose threads have not met, within TEST_CHANCE_MS, what only chance
 * brings.  All that must never be has been checked before; a test that has failed
 * stays failed.
 */
#define RP_SKIP_UNMET(met, fmt, ...)					\
	do {								\
		if (!(met) && _metadata->passed)			\
			SKIP(return, "unmet: " fmt, ##__VA_ARGS__);	\
	} while (0)

/* Skip a test of a feature that iWARP does not have. */
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

int rp_destroy(int fd, uint32_t type, uint32_t handle);
int rp_alloc_pd(int fd, uint32_t device, uint32_t *handle);
/* A region to register, which tests may change. */
struct rpost_reg_mr rp_mr(uint32_t pd, const void *addr, uint64_t length, uint32_t access);
int rp_reg_mr(int fd, uint32_t pd, void *addr, uint64_t length, uint32_t access,
	      struct rpost_reg_mr *mr);
int rp_comp_channel(int fd);
int rp_event_channel(int fd);

/* A completion queue and its ring. */
struct rp_cq {
	int fd;
	struct rpost_create_cq cmd;
	struct rpost_ring *ring;
	struct rpost_wc *wcs;	/* the size of an entry is rp_wc_size() */
};

/* The RPOST_CQ_* flags of all queues that rp_create_cq() creates. */
extern uint32_t rp_cq_flags;

static inline size_t rp_wc_size(const struct rp_cq *cq)
{
	return cq->cmd.flags & RPOST_CQ_SMALL_ENTRIES ?
	       RPOST_WC_SMALL_SIZE : sizeof(struct rpost_wc);
}

/* Return the start of the mapping, which may also hold other rings. */
static inline void *rp_cq_map(const struct rp_cq *cq)
{
	return (char *)cq->ring - cq->cmd.ring_offset;
}

static inline void rp_set_ring(struct rp_cq *cq, void *map)
{
	cq->ring = (void *)((char *)map + cq->cmd.ring_offset);
	cq->wcs = (void *)((char *)cq->ring + cq->cmd.entries_offset);
}

int rp_create_cq(int fd, uint32_t device, uint32_t cqe, int channel,
		 struct rp_cq *cq);

static inline void rp_unmap_cq(struct rp_cq *cq)
{
	munmap(rp_cq_map(cq), cq->cmd.mmap_size);
}

int rp_arm_cq(const struct rp_cq *cq, uint32_t flags);
int rp_resize_cq(const struct rp_cq *cq, uint32_t cqe, struct rpost_resize_cq *cmd);
int rp_use_resized(struct rp_cq *cq, const struct rpost_resize_cq *cmd);

static inline bool rp_need_poll(const struct rp_cq *cq)
{
	return __atomic_load_n(&cq->ring->flags, __ATOMIC_ACQUIRE) &
	       RPOST_RING_NEED_POLL;
}

int rp_ask_event(struct rp_cq *cq, uint32_t *arms);
int rp_poll_cq(struct rp_cq *cq, struct rpost_wc *wc);
int rp_fetch(struct rp_cq *cq);
int rp_poll_in_vain(struct rp_cq *cq);
uint64_t rp_now_ms(void);
long rp_cpu_us(void);
int rp_wait_cq(struct rp_cq *cq, struct rpost_wc *wc);
long rp_pinned(void);
/* A thread of the kernel unpins pages: wait until it has, and return what is pinned. */
long rp_pinned_soon(long want);

#define RP_DEBUGFS	"/sys/kernel/debug/rdma_post/"

long rp_debug_number(const char *file, const char *what);

/* ------------------------------------------------------ connections */

int rp_create_id_of(int fd, int channel, uint32_t port_space, uint32_t qp_type,
		    uint32_t *handle);

static inline int rp_create_id(int fd, int channel, uint32_t *handle)
{
	return rp_create_id_of(fd, channel, RPOST_PS_TCP, RPOST_QPT_RC, handle);
}

/* The host's addresses, found before main() runs; family 0 if none. */
extern struct sockaddr_in rp_addr4;
extern struct sockaddr_in6 rp_addr6;

void rp_addr(struct __kernel_sockaddr_storage *ss, uint16_t port);
void rp_group_addr(struct __kernel_sockaddr_storage *ss, const char *ip);
int rp_bind(int fd, uint32_t id, uint16_t port);

static inline int rp_query_id(int fd, uint32_t id, struct rpost_query_id *cmd)
{
	*cmd = (struct rpost_query_id) { .size = sizeof(*cmd), .id = id };
	return rp_ioctl(fd, RPOST_IOC_QUERY_ID, cmd);
}

/* Return the state of an id, RPOST_ID_*, or 255 if it has none. */
static inline uint32_t rp_id_state(int fd, uint32_t id)
{
	struct rpost_query_id cmd;

	return rp_query_id(fd, id, &cmd) ? 255 : cmd.state;
}

bool rp_id_reaches(int fd, uint32_t id, uint32_t state);
uint16_t rp_port(int fd, uint32_t id);
int rp_listen(int fd, uint32_t id, uint32_t backlog);
int rp_resolve_ip(int fd, uint32_t id, struct in_addr ip, uint16_t port,
		  uint32_t timeout_ms);
int rp_resolve_addr(int fd, uint32_t id, uint16_t port);
int rp_resolve_route(int fd, uint32_t id);
int rp_migrate(int fd, uint32_t id, int channel);
void rp_conn_param(struct rpost_conn_param *param);
int rp_connect(int fd, uint32_t id);
int rp_accept(int fd, uint32_t id);

static inline int rp_disconnect(int fd, uint32_t id)
{
	struct rpost_disconnect cmd = { .size = sizeof(cmd), .id = id };

	return rp_ioctl(fd, RPOST_IOC_DISCONNECT, &cmd);
}

int rp_get_event(int channel, struct rpost_get_event *event);
int rp_expect(int channel, uint32_t id, uint32_t type);

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

/*
 * The number of work requests that a queue holds.  A program that needs another
 * number defines RP_DEPTH before it includes this header, and has
 * RP_USE_DEPTH() after the include.
 */
#ifndef RP_DEPTH
#define RP_DEPTH	16
#endif

extern int rp_depth;

#define RP_USE_DEPTH()							\
	static void __attribute__((constructor)) rp_use_depth(void)	\
	{								\
		rp_depth = RP_DEPTH;					\
	}

#define RP_SGE		4
#define RP_INLINE	64

int rp_create_qp(struct rp_end *end, uint32_t flags);
int rp_end_init(struct rp_end *end);

static inline void rp_end_close(struct rp_end *end)
{
	rp_unmap_cq(&end->cq);
	close(end->channel);
	close(end->fd);
}

/* Check an expression in a child process, which has no harness. */
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
				fprintf(stderr, "# %s: %d\n", #call,	\
					rp_try);			\
			else if (!rp_failed)				\
				rp_failed = #call;			\
			return rp_try;					\
		}							\
	} while (0)

/*
 * Set the real and effective uid; the latter changes the effective
 * capabilities.
 */
static inline int rp_become(uid_t uid)
{
	return setresuid(uid, uid, 0) ? -errno : 0;
}

int rp_end_as(uid_t uid, struct rp_end *end);
int rp_end_add_channel(struct rp_end *end, uint32_t cqe);
int rp_listener(struct rp_end *server, uint32_t *listener);
int rp_client_addr(struct rp_end *client, uint16_t port);
int rp_resolve(struct rp_end *client, uint16_t port);

/* Create an id with its route resolved, but no queue pair. */
static inline int rp_client_route(struct rp_end *client, uint16_t port)
{
	RP_TRY(rp_create_id(client->fd, client->channel, &client->id));
	RP_TRY(rp_resolve(client, port));
	return 0;
}

int rp_take_request(struct rp_end *server, uint32_t listener);
int rp_establish(struct rp_end *end);
int rp_notify(struct rp_end *end, uint32_t event);
int rp_set_option(struct rp_end *end, uint32_t id, uint32_t level, uint32_t option,
		  uint32_t value);
int rp_join_mcast(struct rp_end *end, uint32_t id, const char *ip, uint64_t user_data);
int rp_leave_mcast(struct rp_end *end, uint32_t id, const char *ip);
int rp_reject(struct rp_end *end, uint32_t id, const void *data, uint32_t len);
int rp_ask(struct rp_end *client, struct rp_end *server, uint32_t listener,
	   uint32_t flags);
int rp_join(struct rp_end *client, struct rp_end *server, uint32_t listener,
	    uint32_t flags);
int rp_leave(struct rp_end *end);
int rp_connect_pair(struct rp_end *client, struct rp_end *server,
		    uint32_t flags);

/* ------------------------------------------------------------- posts */

/* Make one call; return how many were posted, or a negative errno. */
int rp_post_once(int fd, unsigned long nr, uint32_t qp, const void *block, uint32_t bytes);
/* Post @count, in as many calls as it takes; return 0 or a negative errno. */
int rp_post(int fd, unsigned long nr, uint32_t qp, const void *block, uint32_t bytes,
	    uint32_t count, uint32_t *posted);
int rp_post_recv(struct rp_end *end, uint64_t wr_id, void *addr,
		 uint32_t length, uint32_t lkey);

/* A work request with one entry, which tests may change. */
struct rp_send {
	struct rpost_send_wr wr;
	struct rpost_sge sge;
};

struct rp_send rp_send(uint32_t opcode, uint64_t wr_id, void *addr,
		       uint32_t length, uint32_t lkey);
struct rp_send rp_empty_send(uint32_t opcode, uint64_t wr_id);

static inline int rp_post_send(struct rp_end *end, struct rp_send *send)
{
	return rp_post(end->fd, RPOST_IOC_POST_SEND, end->qp, send,
		       send->wr.size, 1, NULL);
}

/* Send one, and wait for the completions of both ends. */
int rp_empty_message(struct rp_end *from, struct rp_end *to);

/* ----------------------------------------------- the host and the module */

static inline void rp_skip_all(const char *reason)
{
	printf("TAP version 13\n1..0 # SKIP %s\n", reason);
	fflush(stdout);
	_exit(4);
}

bool rp_addr_works(int fd, int channel, const void *addr, uint32_t addr_len);
void rp_try_addr(int fd, int channel, const struct sockaddr *sa);
void rp_find_addrs(int fd);

#define RP_PARAMETERS	"/sys/module/rdma_post/parameters/"

long rp_file_number(const char *path);
const char *rp_sysfs(const struct rpost_query_device *dev, const char *file);
long rp_module_number(const char *name);
int rp_late_address(struct in_addr *addr);
int rp_set_parameter(const char *name, const char *text);
int rp_set_number(const char *name, long value);
int rp_unload_module(void);
int rp_unload_soon(void);
int rp_load_module(const char *path, const char *params);
int rp_load_again(void);
long rp_wait_refcnt(long want);
long rp_wait_collected(long want);
int rp_wait_objects(int fd, int want);
bool rp_wait_asleep(const pid_t *tid);

static inline void rp_put_tid(pid_t *tid)
{
	__atomic_store_n(tid, gettid(), __ATOMIC_RELEASE);
}

/* True if there is something to read within @ms. */
static inline bool rp_readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, ms) == 1 && (pfd.revents & POLLIN);
}

/* True if there is nothing to read for TEST_QUIET_MS. */
static inline bool rp_quiet(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return !poll(&pfd, 1, TEST_QUIET_MS);
}

bool rp_quiet_cq(struct rp_cq *cq);
int rp_no_other(struct rp_end *end);
void *rp_pages(size_t bytes);

/* True if there is at least one byte and each of them is @value. */
static inline bool all_bytes(const void *p, size_t bytes, unsigned char value)
{
	const unsigned char *c = p;

	return c[0] == value && !memcmp(c, c + 1, bytes - 1);
}

int rp_ioctl_unanswered(int fd, unsigned long nr, const void *cmd, size_t size);

/* --------------------------------------------------- the kernel's log */

/*
 * Tell tools/run_tests.sh that the test makes the kernel warn.  @pattern is an
 * extended regular expression for the whole line without the time.  The program
 * still fails on any other warning, and also if this one is missing.
 */
static inline void rp_expect_log(const char *pattern)
{
	fprintf(stderr, "# the kernel will say: %s\n", pattern);
}

/* --------------------------------------------- devices that come and go */

#define RP_NO_REMOVAL	"RPOST_TEST_REMOVE and RPOST_TEST_ADD are not set"

/* True if there are commands to remove and add the device, see removal.c. */
static inline bool rp_can_remove(void)
{
	return getenv("RPOST_TEST_REMOVE") && getenv("RPOST_TEST_ADD");
}

/* Each test calls this, because a skip in FIXTURE_SETUP() does not skip it. */
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

/* The function of a thread that removes the device after 100 ms. */
static inline void *rp_remove_soon(void *unused)
{
	(void)unused;
	usleep(100000);
	return (void *)(intptr_t)rp_remove_device();
}

int rp_reg_mr_soon(const struct rp_end *end, void *addr, uint64_t length,
		   uint32_t access, struct rpost_reg_mr *mr);

#endif /* RPOST_TEST_H */
