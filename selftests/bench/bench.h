/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of the benchmark share.  A function that fails says why and ends
 * the program.
 */
#ifndef BENCH_H
#define BENCH_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_BATCH	64

/* What is to be measured, from the command line. */
struct config {
	char addr[64];		/* of an RDMA device of this host */
	char peer[64];		/* of a host that serves, instead */
	char op[16];		/* write, read or send */
	char mode[16];		/* poll, or sleep for completions */
	char api[16];		/* connect: ep or events */
	char what[16];		/* memory: conn or region */
	unsigned long size;	/* of a message or a region */
	unsigned long ms;	/* how long to measure, unless ops says */
	unsigned long ops;
	unsigned long depth;	/* of a send queue */
	unsigned long batch;	/* work requests of one call */
	unsigned long last;	/* signal the last of a batch only */
	unsigned long conns;	/* connections of a process, or regions */
	unsigned long threads;	/* among which they are shared out */
	unsigned long procs;
	unsigned long count;	/* count system calls */
	unsigned long ring;	/* submission rings */
	unsigned long port;	/* of the server */
};

extern struct config config;

/* What is printed, unless it is NaN. */
enum figure {
	F_OPS,
	F_P50,			/* ns of one operation, as all of these */
	F_P99,
	F_P999,
	F_MIN,
	F_MEAN,
	F_RATE,			/* operations in a second */
	F_BYTES,		/* bytes in a second */
	F_DOWN_P50,		/* ns of a tear-down */
	F_DOWN_P99,
	F_DEREG_P50,		/* ns, of those that are in p50 */
	F_SYSCALLS,		/* of an operation */
	F_KERNEL_BYTES,		/* of a connection or region */
	F_PROGRAM_BYTES,
	F_COUNT
};

struct figures {
	double value[F_COUNT];
};

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);
/* Ends the program with errno's text if the condition does not hold. */
#define must(cond) do { \
	if (!(cond)) \
		die("%s:%d: %s: %m", __FILE__, __LINE__, #cond); \
} while (0)

uint64_t now_ns(void);
/* Memory that is there already. */
void *allocate(size_t size);

/* Times, for their percentiles. */
struct samples {
	uint64_t *ns;
	size_t count, max;
	double sum;
};

void samples_add(struct samples *s, uint64_t ns);
void samples_free(struct samples *s);
/* As F_P50, F_P99, F_P999, F_MIN and F_MEAN. */
void samples_figures(struct samples *s, struct figures *f);
double samples_percentile(struct samples *s, double share);

/* True while there is to be measured: by config's ops, or else by its ms. */
static inline bool go_on(uint64_t start, uint64_t now, uint64_t done,
			 uint64_t min)
{
	if (config.ops)
		return done < config.ops;
	return done < min || now - start < config.ms * 1000000;
}

/* System calls of the program since syscalls_begin(), if config says so. */
void syscalls_begin(void);
void syscalls_end(struct figures *f, uint64_t ops);

/* All processes wait here for each other before they measure. */
void all_ready(void);

/*
 * What comes with a client's request, and with the server's answer to it where
 * the server is another program.  All of it is big-endian: there the host may be
 * another, too.
 */
struct request {
	uint64_t size;		/* of a message */
	uint32_t index;		/* of the connection, at the client */
	uint32_t recvs;		/* that the server posts, and keeps posted */
};

struct answer {
	uint64_t addr;		/* where messages may be written to */
	uint32_t rkey;
	uint32_t reserved;
};

/* One connection, of the program to itself unless there is a peer. */
struct conn {
	struct rdma_cm_id *client, *server;
	uint32_t index;
	unsigned int established;	/* ends that are */
	unsigned int down;
	struct ibv_send_wr wr[MAX_BATCH];
	struct ibv_sge sge;
	struct ibv_recv_wr recv_wr[MAX_BATCH];
	struct ibv_sge recv_sge;
	unsigned long pending;	/* sends that have not completed */
	unsigned long recvs;	/* receives posted less sends posted */
};

struct world {
	struct sockaddr_storage addr;	/* to which connections are made */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;	/* has the device; listens without a peer */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	size_t slot, slots;	/* of each buffer: their size and number */
	uint8_t *buf[2];	/* what is sent, and where it arrives */
	struct ibv_mr *mr[2];
	struct conn *conns;
	unsigned long nconns;	/* made so far */
};

static inline bool with_peer(void)
{
	return config.peer[0];
}

/* Whether text is an address; addr gets it. */
bool parse_addr(const char *text, uint16_t port, struct sockaddr_storage *addr);
/* The size of a buffer for a message, with lines of its own. */
size_t slot_size(size_t size);
/* How many of them there are for so many connections. */
size_t slot_count(size_t slot, unsigned long conns);
struct ibv_mr *register_buffer(struct ibv_pd *pd, size_t size);
/* With private data, which is not copied. */
struct rdma_conn_param conn_param(const void *data, size_t size);
struct request conn_request(uint32_t index, bool first_byte);

/* A device, a region for each side and, without a peer, a listener. */
void world_open(struct world *w);
void world_close(struct world *w);
/* Connects so many, this many at a time; brings a byte across each, if asked. */
void world_connect(struct world *w, unsigned long count, unsigned long window,
		   bool first_byte);
/* Disconnects and destroys all of them. */
void world_disconnect(struct world *w);

bool with_receives(void);
/* Queues' sizes for config. */
struct ibv_qp_init_attr queue_attr(void);
/* Makes the work requests that are posted again and again. */
void conn_prepare(struct world *w, struct conn *conn);
/* Posts the receives that so many sends need, if they are not there: a batch. */
void conn_receive(struct conn *conn, unsigned long count);
/* Posts so many, and the receives that they need. */
void conn_post(struct conn *conn, unsigned long count);
/* Ends the program if the work request failed. */
void check_wc(const struct ibv_wc *wc);
/* Takes what has arrived. */
void conn_drain(struct conn *conn);
/* Waits for one completion of a send. */
void conn_wait(struct conn *conn);

void run_latency(struct figures *f);
void run_rate(struct figures *f);
void run_connect(struct figures *f);
void run_register(struct figures *f);
void run_memory(struct figures *f);
void run_serve(struct figures *f);

#endif /* BENCH_H */
