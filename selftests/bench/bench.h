/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared declarations of the benchmark.  A function that fails prints the
 * reason and ends the program.
 */
#ifndef BENCH_H
#define BENCH_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MAX_BATCH	64

/* Parameters from the command line. */
struct config {
	char addr[64];		/* address of an RDMA device of this host */
	char peer[64];		/* address of a serving host, instead of addr */
	char op[16];		/* write, read or send */
	char mode[16];		/* poll or sleep for completions */
	char api[16];		/* connect: ep, events, own or cqs */
	char what[16];		/* memory: conn or region */
	unsigned long size;	/* size of a message or a region */
	unsigned long ms;	/* time to measure, unless ops is set */
	unsigned long ops;
	unsigned long depth;	/* work requests of a send queue */
	unsigned long recvs;	/* receives that wait at either end, for echo */
	unsigned long batch;	/* work requests of one call */
	unsigned long last;	/* signal only the last of a batch */
	unsigned long conns;	/* connections of a process, or regions */
	unsigned long window;	/* how many connect at once, 0 for all */
	unsigned long threads;	/* share the connections among them */
	unsigned long procs;
	unsigned long count;	/* count system calls */
	unsigned long any;	/* send memory without its key */
	unsigned long port;	/* of the server */
};

extern struct config config;

/* Figures that are printed unless they are NaN. */
enum figure {
	F_OPS,
	F_P50,			/* ns of one operation, like the next four */
	F_P99,
	F_P999,
	F_MIN,
	F_MEAN,
	F_RATE,			/* operations in a second */
	F_BYTES,		/* bytes in a second */
	F_DOWN_P50,		/* ns to disconnect */
	F_DOWN_P99,
	F_DEREG_P50,		/* ns to deregister, included in p50 */
	F_SYSCALLS,		/* for each operation, like the next */
	F_CPU,			/* ns of CPU time that the program takes */
	F_KERNEL_BYTES,		/* for each connection or region */
	F_PROGRAM_BYTES,
	F_RETRIES,		/* of clients, in all */
	F_SILENT,		/* ends of connections that were not reported */
	F_COUNT
};

struct figures {
	double value[F_COUNT];
};

void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);
/* End the program with errno's text unless the condition holds. */
#define must(cond) do { \
	if (!(cond)) \
		die("%s:%d: %s: %m", __FILE__, __LINE__, #cond); \
} while (0)

uint64_t now_ns(void);
/* Allocate memory and touch it. */
void *allocate(size_t size);
/* Return the memory of the kernel, and the anonymous memory of a process. */
double kernel_bytes(void);
double program_bytes(pid_t pid);

/* Measured times. */
struct samples {
	uint64_t *ns;
	size_t count, max;
	double sum;
};

void samples_add(struct samples *s, uint64_t ns);
void samples_free(struct samples *s);
/* Set F_P50, F_P99, F_P999, F_MIN, F_MEAN and F_OPS. */
void samples_figures(struct samples *s, struct figures *f);
double samples_percentile(struct samples *s, double share);

/* True until config.ops operations are done, or config.ms are over. */
static inline bool go_on(uint64_t start, uint64_t now, uint64_t done, uint64_t min)
{
	if (config.ops)
		return done < config.ops;
	return done < min || now - start < config.ms * 1000000;
}

/* Count system calls between begin and end, if config.count is set. */
void syscalls_begin(void);
void syscalls_end(struct figures *f, uint64_t ops);

/* Return the CPU time that the program has taken, in ns. */
uint64_t cpu_ns(void);

/* connect with api=own or api=cqs, see own.c. */
void connect_own(struct figures *f);
/* Resolve the address of the server, or of a listener. */
struct rdma_addrinfo *get_info(const char *port, int flags);
/* Take the times of @one, which has connected @conns connections, @warm times in vain before. */
void measure_connects(struct figures *f, void (*one)(struct samples *up, struct samples *down),
		      int warm, unsigned long conns, uint64_t min);

/* Wait for all processes before the measurement begins. */
void all_ready(void);

/*
 * The private data of a client's request and of the answer of a server in
 * another program.  All is big-endian, because the hosts may differ.
 */
struct request {
	uint64_t size;		/* size of a message */
	uint32_t index;		/* index of the connection at the client */
	uint32_t recvs;		/* receives that the server keeps posted */
};

struct answer {
	uint64_t addr;		/* address for RDMA operations */
	uint32_t rkey;
	uint32_t reserved;
};

/* A connection of the program to itself, or to the peer. */
struct conn {
	struct rdma_cm_id *client, *server;
	uint32_t index;
	unsigned int established;	/* established ends */
	unsigned int down;
	struct ibv_send_wr wr[MAX_BATCH];
	struct ibv_sge sge;
	struct ibv_recv_wr recv_wr[MAX_BATCH];
	struct ibv_sge recv_sge;
	unsigned long pending;	/* sends that have not completed */
	unsigned long recvs;	/* receives posted less sends posted */
	unsigned long sent[2];	/* by the client and the server, for echo */
};

struct world {
	struct sockaddr_storage addr;	/* address to connect to */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;	/* owns the device; listens without a peer */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	size_t slot, slots;	/* size and number of each buffer's slots */
	uint8_t *buf[2];	/* of the sender and of the receiver */
	struct ibv_mr *mr[2];
	struct conn *conns;
	unsigned long nconns;	/* number of connections so far */
};

static inline bool with_peer(void)
{
	return config.peer[0];
}

/* Parse an address into @addr; false if @text is none. */
bool parse_addr(const char *text, uint16_t port, struct sockaddr_storage *addr);
/* Return the size of a connection's slot, in whole cache lines. */
size_t slot_size(size_t size);
/* Return the number of slots for so many connections. */
size_t slot_count(size_t slot, unsigned long conns);
struct ibv_mr *register_buffer(struct ibv_pd *pd, size_t size);
/* The private data is not copied. */
struct rdma_conn_param conn_param(const void *data, size_t size);
struct request conn_request(uint32_t index, bool first_byte);

/* Open the device, a region for each side and, without a peer, a listener. */
void world_open(struct world *w);
void world_close(struct world *w);
/* Set up @count connections, @window at a time, and send a byte if asked. */
void world_connect(struct world *w, unsigned long count, unsigned long window, bool first_byte);
/* Disconnect and destroy all connections. */
void world_disconnect(struct world *w);

bool with_receives(void);
/* Return the queue sizes for the parameters. */
struct ibv_qp_init_attr queue_attr(void);
/* Prepare the work requests, which are posted again and again. */
void conn_prepare(struct world *w, struct conn *conn);
/* Post a batch of receives if there are fewer than @count. */
void conn_receive(struct conn *conn, unsigned long count);
/* Post @count sends, and the receives that they need. */
void conn_post(struct conn *conn, unsigned long count);
/* End the program if the work request failed. */
void check_wc(const struct ibv_wc *wc);
/* Take the receives' completions. */
void conn_drain(struct conn *conn);
/* Wait for one completion of a send. */
void conn_wait(struct conn *conn);
/* Wait for one completion of a receive, without sleeping if mode=poll. */
void end_wait(struct rdma_cm_id *id);

void run_latency(struct figures *f);
void run_echo(struct figures *f);
void run_rate(struct figures *f);
void run_connect(struct figures *f);
void run_restart(struct figures *f);
void run_register(struct figures *f);
void run_memory(struct figures *f);
void run_serve(struct figures *f);

#endif /* BENCH_H */
