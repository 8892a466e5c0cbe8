/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations for the server (serve.c) and the clients (wire.c). */
#ifndef WIRE_H
#define WIRE_H

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT		7471
#define SLOTS		16	/* more than RECVS: none is written before */
#define RECVS		8	/* it has been verified */
#define WINDOW		8
#define SLOT_BYTES	10000	/* some packets */
#define LIMIT_S		150	/* for what must happen */

struct slot {
	uint64_t number;
	uint8_t data[SLOT_BYTES - 8];
};

struct notice {
	uint64_t number;
	uint64_t sum;
};

struct memory {
	struct slot slots[SLOTS];
	struct notice notices[SLOTS];
	uint64_t verified;
};

struct hello {
	uint64_t addr;
	uint32_t rkey;
	uint32_t wrong;
	uint64_t before;	/* messages verified on the last connection */
};

void die(const char *what);
double now(void);
uint64_t checksum(const struct slot *slot);
/* NULL if none comes in time. */
struct rdma_cm_event *next_event(struct rdma_event_channel *channel, int ms);
void create_qp(struct rdma_cm_id *id);
/* Until the program is killed. */
void serve(struct sockaddr_in *addr);

#endif /* WIRE_H */
