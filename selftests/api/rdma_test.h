/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the API selftests share: two ends of a connection in one program, events
 * and completions with a deadline, patterns.
 *
 * Functions return 0, or -1 after they have said on stderr what went wrong,
 * unless their comment says otherwise.
 */
#ifndef RDMA_TEST_H
#define RDMA_TEST_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#define DEADLINE_MS	20000	/* for anything that must happen */
#define QUIET_MS	30	/* for anything that must not */

/* The harness's 30 s are few for several such waits, with KASAN. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT	600

#define POISON		0xa5
#define BUF_SIZE	65536

/*
 * True if the program runs over rdma-core's libraries: they have the posting
 * calls as inline functions only, librdma_post exports them, too.
 */
bool over_incumbent(void);

/* True if selftests/tools/sanitize.sh runs the program under valgrind. */
bool under_valgrind(void);

/* True if the id's device is one of the kernel's rdma_rxe. */
bool on_rxe(struct rdma_cm_id *id);

/*
 * The address of an RDMA device, from RPOST_TEST_ADDR or RPOST_TEST_ADDR6 or
 * found among the host's interfaces before main() runs.  False if the family
 * has none; a program without any address at all skips itself.
 */
bool test_addr(int family, struct sockaddr_storage *addr);
void set_port(struct sockaddr_storage *addr, __be16 port);

void fill(void *buf, size_t len, unsigned int seed);
/* True if buf holds what fill() makes of the seed. */
bool filled(const void *buf, size_t len, unsigned int seed);
/* True if every byte is the value. */
bool all_bytes(const void *buf, size_t len, uint8_t value);

/* An event that has been acknowledged. */
struct event {
	enum rdma_cm_event_type type;
	int status;
	struct rdma_cm_id *id;
	struct rdma_cm_id *listen_id;
	struct rdma_conn_param conn;	/* private_data points to data */
	struct rdma_ud_param ud;	/* as it came: private_data may be gone */
	uint8_t data[256];
};

/* The type of the next event, -1 after the deadline. */
int next_event(struct rdma_event_channel *channel, struct event *event);
/* True if no event comes for a while. */
bool no_event(struct rdma_event_channel *channel);
/* The next event must be of this type, with status 0. */
int expect_event(struct rdma_event_channel *channel,
		 enum rdma_cm_event_type type, struct event *event);
uint64_t now_ms(void);
/* True if the descriptor becomes readable in this time. */
bool readable(int fd, int timeout_ms);

/* Polls for one completion: 1, 0 after the deadline, below 0 for an error. */
int wait_comp(struct ibv_cq *cq, struct ibv_wc *wc);
/* True if no completion comes for a while. */
bool no_comp(struct ibv_cq *cq);

/*
 * True for what devices say of a local key that does not fit: LOC_PROT_ERR in
 * the InfiniBand specification (10.7.3.1), LOC_QP_OP_ERR or, newer ones,
 * WR_FLUSH_ERR from rdma_rxe.
 */
bool device_prot(enum ibv_wc_status status);

struct end {
	struct rdma_cm_id *id;
	struct rdma_event_channel *channel;
	uint8_t *buf;
	struct ibv_mr *mr;	/* of buf, with every right */
	struct event event;	/* the last one */
};

struct pair {
	struct rdma_cm_id *listen;
	struct end client, server;
};

struct pair_opts {
	int family;
	size_t size;		/* of each end's buffer */
	struct ibv_qp_init_attr client_qp, server_qp;
	struct rdma_conn_param connect, accept;
};

/* 16 work requests of 4 entries, 64 bytes inline; no automatic completions. */
void pair_defaults(struct pair_opts *opts);

/* The steps of a connection; each needs the ones before it. */
int pair_listen(struct pair *p, struct pair_opts *opts);
int pair_resolve(struct pair *p, struct pair_opts *opts);
int pair_client_qp(struct pair *p, struct pair_opts *opts);
int pair_connect(struct pair *p, struct pair_opts *opts);
int pair_server_qp(struct pair *p, struct pair_opts *opts);
int pair_accept(struct pair *p, struct pair_opts *opts);
/* All of the steps; opts may be NULL. */
int pair_open(struct pair *p, struct pair_opts *opts);
void pair_close(struct pair *p);

int end_buffer(struct end *end, size_t size);
void end_close(struct end *end);

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

/* For use in a test: the next completion, with one of two states. */
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
 * A local key that does not fit: over the incumbent as the device has it, else
 * LOC_PROT_ERR, since the module looks before a device does.
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

#endif
