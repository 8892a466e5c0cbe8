/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Helpers that the API selftests share: two ends of a connection in one
 * program, events and completions with a deadline, data patterns.
 *
 * Functions return 0, or -1 after they have printed the error on stderr, unless
 * their comment says otherwise.
 */
#ifndef RDMA_TEST_H
#define RDMA_TEST_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define DEADLINE_MS	20000	/* for anything that must happen */
#define QUIET_MS	30	/* for anything that must not */

/* The harness's 30 s are too short for several such waits under KASAN. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

#define POISON		0xa5
#define BUF_SIZE	65536

/* The context of a post; wr_id must return all of its bits. */
#define CONTEXT		((void *)(uintptr_t)0xfedcba9876543210)
#define MANY_SGE	1000	/* more than any queue pair takes */
#define ALL_RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
			 IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

/*
 * Return true if the program runs over rdma-core's libraries.  These have the
 * posting calls only as inline functions; librdma_post exports them, too.
 */
bool over_incumbent(void);

/* Return true if selftests/tools/sanitize.sh runs the program in valgrind. */
bool under_valgrind(void);

/* Return true if the program is built for ASan or TSan. */
bool under_sanitizer(void);

/* Return true if the id's device is the kernel's rdma_rxe. */
bool on_rxe(struct rdma_cm_id *id);
bool on_iwarp(struct rdma_cm_id *id);

/*
 * Get the address of an RDMA device.  It comes from RPOST_TEST_ADDR or
 * RPOST_TEST_ADDR6; without RPOST_TEST_ADDR, the host's interfaces are searched
 * before main() runs.  Return false if the family has no address; a program
 * that has no IPv4 address skips itself.
 */
bool test_addr(int family, struct sockaddr_storage *addr);
void set_port(struct sockaddr_storage *addr, __be16 port);
/* Get the IPv4 address as text, and as port the id's, or 0 without an id. */
void addr_text(char node[INET_ADDRSTRLEN], char service[8], struct rdma_cm_id *id);

void fill(void *buf, size_t len, unsigned int seed);
/* Return true if buf holds the pattern that fill() writes for this seed. */
bool filled(const void *buf, size_t len, unsigned int seed);
/* Return true if every byte has the value. */
bool all_bytes(const void *buf, size_t len, uint8_t value);

/* A copy of an event, which has been acknowledged. */
struct event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id;
	struct rdma_conn_param conn;	/* private_data points to data */
	struct rdma_ud_param ud;	/* raw; private_data may be gone */
	uint8_t data[256];
};

/* Return the type of the next event, or -1 after the deadline. */
int next_event(struct rdma_event_channel *channel, struct event *event);
/* Return true if no event comes within QUIET_MS. */
bool no_event(struct rdma_event_channel *channel);
/* Get the next event; it must have this type and status 0. */
int expect_event(struct rdma_event_channel *channel,
		 enum rdma_cm_event_type type, struct event *event);
uint64_t now_ms(void);
/*
 * Return the time in @ms by CLOCK_REALTIME, for pthread_timedjoin_np() and
 * sem_timedwait().
 */
struct timespec real_time_in(unsigned int ms);
/* Return true if the descriptor becomes readable within the timeout. */
bool readable(int fd, int timeout_ms);
/* Return the result of fcntl(). */
int set_nonblock(int fd, bool on);

/*
 * Poll for one completion; return 1, 0 after the deadline, or below 0 on error.
 */
int wait_comp(struct ibv_cq *cq, struct ibv_wc *wc);
/* Repeat ibv_start_poll() until there is a completion or the deadline. */
int start_poll(struct ibv_cq_ex *cq);
/* Return true if no completion comes within QUIET_MS. */
bool no_comp(struct ibv_cq *cq);

/*
 * Return true if a device may report this status for a bad local key:
 * LOC_PROT_ERR in the InfiniBand specification (10.7.3.1); LOC_QP_OP_ERR, or
 * WR_FLUSH_ERR in newer kernels, with rdma_rxe.
 */
bool device_prot(enum ibv_wc_status status);

struct end {
	struct rdma_cm_id *id;
	struct rdma_event_channel *channel;
	uint8_t *buf;
	struct ibv_mr *mr;	/* of buf, with ALL_RIGHTS */
	struct event event;	/* the last one */
};

struct pair {
	struct rdma_cm_id *listen;
	struct end client, server;
};

struct pair_opts {
	int family;
	size_t size;		/* of the buffer of each end */
	struct ibv_qp_init_attr client_qp, server_qp;
	struct rdma_conn_param connect, accept;
};

/* Set 16 work requests of 4 entries, 64 inline bytes, and no sq_sig_all. */
void pair_defaults(struct pair_opts *opts);

/* Each step of a connection needs the steps before it. */
int pair_listen(struct pair *p, struct pair_opts *opts);
int pair_resolve(struct pair *p, struct pair_opts *opts);
int pair_client_qp(struct pair *p, struct pair_opts *opts);
int pair_connect(struct pair *p, struct pair_opts *opts);
int pair_server_qp(struct pair *p, struct pair_opts *opts);
int pair_accept(struct pair *p, struct pair_opts *opts);
/* pair_to_X() takes all steps up to X. */
int pair_to_resolve(struct pair *p, struct pair_opts *opts);
int pair_to_client_qp(struct pair *p, struct pair_opts *opts);
int pair_to_connect(struct pair *p, struct pair_opts *opts);
/* pair_after_X() takes all steps after X. */
int pair_after_listen(struct pair *p, struct pair_opts *opts);
int pair_after_resolve(struct pair *p, struct pair_opts *opts);
/* Take the steps from a listener to a request at the server. */
int pair_request(struct pair *p, struct pair_opts *opts);
/* Take all steps; opts may be NULL. */
int pair_open(struct pair *p, struct pair_opts *opts);
/* Take all steps, for queue pairs whose sends wait for the peer's receive. */
int pair_open_patient(struct pair *p, struct pair_opts *opts);
void pair_close(struct pair *p);

/* Make a channel and an id. */
int end_client(struct end *end, enum rdma_port_space ps);
/* Resolve an address, from this source unless it is NULL, and the route to it. */
int end_resolve(struct end *end, struct sockaddr *from, struct sockaddr_storage *to);
int end_buffer(struct end *end, size_t size);
void end_close(struct end *end);

extern const struct ibv_qp_init_attr ud_qp;
/* Create a queue pair for datagrams, and a buffer of BUF_SIZE. */
int end_ud_qp(struct end *end);

/* Post a signaled operation with CONTEXT; return the result of the call. */
int end_write(struct end *end, size_t len, const void *to, uint32_t rkey);
int end_read(struct end *end, size_t len, const void *from, uint32_t rkey);
/* Post a receive or a send at an offset of the end's buffer. */
int end_recv(struct end *end, const void *context, size_t offset, size_t len);
int end_send(struct end *end, const void *context, size_t offset, size_t len, int flags);
/* Post a write from local memory that is given by an address and a key. */
int end_write_from(struct end *end, uint64_t addr, uint32_t len, uint32_t lkey,
		   struct end *to);

/* Write the first 64 bytes of the client's buffer to the server's. */
int pair_write(struct pair *p, uintptr_t context, int flags);

/* Map memory that is not registered and fill it with POISON, or return NULL. */
uint8_t *poisoned_pages(size_t size);

static inline uint64_t addr64(const void *p)
{
	return (uintptr_t)p;
}

static inline struct ibv_sge sge(struct end *end, size_t offset, size_t length)
{
	return (struct ibv_sge) {
		.addr = addr64(end->buf + offset),
		.length = (uint32_t)length,
		.lkey = end->mr->lkey,
	};
}

/*
 * The members of a fixture with a connection.  @steps is a function like
 * pair_open().  A test takes the remaining steps itself; members that these
 * would set are NULL or 0.
 */
#define PAIR_MEMBERS							\
	struct pair p;							\
	struct pair_opts opts;						\
	struct end *c, *s;						\
	struct rdma_cm_id *id, *peer;	/* the client's, the server's */	\
	uint64_t remote;		/* the server's buffer */	\
	uint32_t rkey;							\
	struct event event;						\
	struct ibv_wc wc

#define PAIR_SETUP(steps) do {						\
	pair_defaults(&self->opts);					\
	self->c = &self->p.client;					\
	self->s = &self->p.server;					\
	ASSERT_EQ(0, steps(&self->p, &self->opts));			\
	self->id = self->c->id;						\
	self->peer = self->s->id;					\
	self->remote = addr64(self->s->buf);				\
	self->rkey = self->s->mr ? self->s->mr->rkey : 0;		\
} while (0)

#define PAIR_FIXTURE(name, steps)					\
FIXTURE(name) {								\
	PAIR_MEMBERS;							\
};									\
FIXTURE_SETUP(name)							\
{									\
	PAIR_SETUP(steps);						\
}									\
FIXTURE_TEARDOWN(name)							\
{									\
	pair_close(&self->p);						\
}

/* A fixture with a connection, for tests of memory regions. */
#define MR_FIXTURE(name)						\
FIXTURE(name) {								\
	PAIR_MEMBERS;							\
	struct ibv_mr *mr;	/* a test's region, for the teardown */ \
	uint8_t *mem;		/* BUF_SIZE, not registered */ \
};									\
FIXTURE_SETUP(name)							\
{									\
	PAIR_SETUP(pair_open);						\
	self->mem = poisoned_pages(BUF_SIZE);				\
	ASSERT_NE(NULL, self->mem);					\
}									\
FIXTURE_TEARDOWN(name)							\
{									\
	if (self->mr)							\
		ibv_dereg_mr(self->mr);					\
	pair_close(&self->p);						\
}

/* Expect that the call returns -1 and sets errno. */
#define EXPECT_ERRNO(err, call) do { \
	errno = 0; \
	EXPECT_EQ(-1, call); \
	EXPECT_EQ(err, errno) \
		TH_LOG("errno: %s", strerror(errno)); \
} while (0)

/* Expect that the call returns NULL and sets errno. */
#define EXPECT_NULL_ERRNO(err, call) do { \
	errno = 0; \
	EXPECT_EQ(NULL, call); \
	EXPECT_EQ(err, errno) \
		TH_LOG("errno: %s", strerror(errno)); \
} while (0)

/* Expect that the next completion has one of two states. */
#define ASSERT_COMP_ANY(cq, wc, want_status, or_status, want_context) do { \
	ASSERT_EQ(1, wait_comp(cq, wc)) \
		TH_LOG("no completion"); \
	ASSERT_TRUE((wc)->status == (want_status) || \
		    (wc)->status == (or_status)) \
		TH_LOG("%s instead of %s", ibv_wc_status_str((wc)->status), \
		       ibv_wc_status_str(want_status)); \
	ASSERT_EQ(addr64((void *)(uintptr_t)(want_context)), (wc)->wr_id); \
} while (0)

#define ASSERT_COMP(cq, wc, want_status, want_context) \
	ASSERT_COMP_ANY(cq, wc, want_status, want_status, want_context)

/*
 * Expect the completion of a bad local key.  Over rdma-core it has the device's
 * status.  Over librdma_post it has LOC_PROT_ERR, since the module checks the
 * key before the device does.
 */
#define ASSERT_COMP_PROT(cq, wc, want_context) do { \
	ASSERT_EQ(1, wait_comp(cq, wc)) \
		TH_LOG("no completion"); \
	ASSERT_TRUE(over_incumbent() ? device_prot((wc)->status) : \
		    (wc)->status == IBV_WC_LOC_PROT_ERR) \
		TH_LOG("status: %s", ibv_wc_status_str((wc)->status)); \
	ASSERT_EQ(addr64((void *)(uintptr_t)(want_context)), (wc)->wr_id); \
} while (0)

#define ASSERT_COMP_OK(cq, wc, want_opcode, want_context) do { \
	ASSERT_COMP(cq, wc, IBV_WC_SUCCESS, want_context); \
	ASSERT_EQ((unsigned int)(want_opcode), (wc)->opcode); \
} while (0)

/* Write or read the first bytes of the end's buffer, in a fixture with a connection. */
#define ASSERT_WRITE(by, len, to, rkey) do { \
	struct end *_end = by; \
	ASSERT_EQ(0, end_write(_end, len, to, rkey)); \
	ASSERT_COMP_OK(_end->id->send_cq, &self->wc, IBV_WC_RDMA_WRITE, CONTEXT); \
} while (0)

#define ASSERT_READ(by, len, from, rkey) do { \
	struct end *_end = by; \
	ASSERT_EQ(0, end_read(_end, len, from, rkey)); \
	ASSERT_COMP_OK(_end->id->send_cq, &self->wc, IBV_WC_RDMA_READ, CONTEXT); \
} while (0)

#endif
