/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A connection that is made to see whether one can be made. */
#ifndef TOOL_CONN_H
#define TOOL_CONN_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <sys/socket.h>

/* How far it has come: the step that it is at, or that has failed. */
enum conn_stage {
	CONN_OPEN,
	CONN_LISTEN,
	CONN_ADDRESS,
	CONN_ROUTE,
	CONN_QUEUES,
	CONN_MEMORY,
	CONN_CONNECT,
	CONN_SEND,
	CONN_RECEIVE,
	CONN_DONE,
};

/**
 * struct conn - a try
 * @addr: the address to connect to
 * @loopback: listen there as well, and send a message
 * @stage: how far it has come
 * @err: errno of the step, or 0
 * @event: enum rdma_cm_event_type if an event has ended it
 * @status: that event's status
 * @late: the time is over
 * @stuck: the process that tries, if the kernel does not let it end; else 0
 */
struct conn {
	struct sockaddr_storage addr;
	bool loopback;
	enum conn_stage stage;
	int err;
	enum rdma_cm_event_type event;
	int status;
	bool late;
	pid_t stuck;
};

void conn_try(struct conn *conn, const char *name, int seconds);
const char *conn_stage_name(enum conn_stage stage);

#endif /* TOOL_CONN_H */
