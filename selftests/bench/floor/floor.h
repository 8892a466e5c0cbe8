/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Structures that the files of the module share. */
#ifndef FLOOR_H
#define FLOOR_H

#include <linux/completion.h>
#include <linux/in.h>
#include <linux/sizes.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define FLOOR_MAX_BATCH		64
#define FLOOR_DEADLINE		(20 * HZ)

/**
 * struct floor_config - a case
 * @kind: latency, echo or rate
 * @op: write, read or send
 * @mode: poll or sleep
 * @addr: an IPv4 address of the device
 * @size: the size of a message
 * @ms: how long to measure, if @ops is 0
 * @ops: the number of operations, or 0
 * @depth: the depth of a send queue
 * @batch: the number of work requests of one call
 * @last: signal only the last of a batch
 * @conns: the number of connections
 * @threads: the number of threads, which share the connections
 * @recvs: the number of receives at each end of an echo
 * @opcode: the opcode of @op
 * @sends: whether the operation needs receives
 * @sleeps: whether @mode is sleep
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
	unsigned long recvs;
	enum ib_wr_opcode opcode;
	bool sends;
	bool sleeps;
};

struct floor_world;

/**
 * struct floor_end - one end of a connection in an echo
 * @posted: sends posted
 * @sent: completions of sends that were not used yet
 * @received: completions of receives that were not used yet
 */
struct floor_end {
	unsigned long posted;
	unsigned int sent;
	unsigned int received;
};

/**
 * struct floor_conn - one connection of the host to itself
 * @world: the case
 * @client: the end that posts
 * @server: the other end
 * @send_cq: the client's completion queue
 * @recv_cq: the server's completion queue
 * @event: the client has an event
 * @status: 0, or the error
 * @type: the client's last event
 * @completed: the handler of a completion queue was called
 * @wr: a batch
 * @sge: the data of each work request
 * @recv_wr: receives for a batch
 * @recv_sge: the memory of the receives
 * @pending: sends that have not completed
 * @recvs: receives posted less sends posted
 * @ends: the client's and the server's part in an echo
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
	struct floor_end ends[2];
};

/**
 * struct floor_world - everything that a case needs
 * @config: the case
 * @addr: the address of @listen
 * @listen: the listener
 * @pd: a domain with a key for all memory
 * @slot: the size of a message's place in the buffers
 * @slots: the number of places
 * @buf: the buffers that messages are sent from and arrive in
 * @dma: the device's addresses of the buffers
 * @conns: the connections
 * @connecting: the connection that is being made
 * @go: the threads may begin to measure
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

/* The result of the last case, a line of JSON. */
extern char floor_result[512];

int floor_open(struct floor_world *w);
void floor_close(struct floor_world *w);
int floor_latency(struct floor_world *w);
int floor_echo(struct floor_world *w);
int floor_rate(struct floor_world *w);

#endif /* FLOOR_H */
