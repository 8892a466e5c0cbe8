/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The two ends of a connection, for the tests of rpma.c. */
#ifndef RPMA_H
#define RPMA_H

#include <errno.h>
#include <librpma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE	(64 << 10)
#define MSG	512

extern const char *addr, *port, *side;
/* The server reports its steps to the client, which waits for them. */
extern int ready_fd, go_fd;

void fail(int line, const char *what, long value);

/* Fails unless the library's function returns the value. */
#define IS(call, value)							\
	do {								\
		long got_ = (call);					\
		if (got_ != (value))					\
			fail(__LINE__, #call, got_);			\
	} while (0)
#define OK(call)	IS(call, 0)
#define TRUE(what)	IS(!!(what), 1)

/* The server's private data for its client. */
struct hello {
	uint8_t mr_size, cfg_size;
	uint8_t mr[32], cfg[8];
};

/* One end of a connection and its memory. */
struct end {
	struct rpma_peer *peer;
	struct rpma_ep *ep;
	struct rpma_conn_cfg *cfg;
	struct rpma_conn *conn;
	struct rpma_cq *cq, *rcq;
	struct rpma_mr_local *mr;
	struct rpma_mr_remote *remote;
	struct hello hello;
	unsigned char *mem;
};

void fill(unsigned char *mem, size_t len, unsigned int seed);
void open_peer(struct end *e, enum rpma_util_ibv_context_type type);
void next_event(struct end *e, enum rpma_conn_event wanted);
void listen_here(struct end *e);
struct rpma_conn_private_data describe(struct end *e);
struct rpma_conn_req *next_request(struct end *e);
void answer(struct end *e, struct rpma_conn_req *req);
void server_open(struct end *e);
void client_open(struct end *e);
void close_peer(struct end *e);
void server_close(struct end *e);
void client_close(struct end *e);
struct ibv_wc completion(struct rpma_cq *cq, const void *context,
			 enum ibv_wc_opcode opcode);
void no_completion(struct rpma_cq *cq);

#endif /* RPMA_H */
