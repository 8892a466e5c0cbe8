/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * rdma-post doctor: checks and what they find.
 *
 * A check is a function with a row in the table in doctor.c.  It reports at
 * least one finding, of which text and JSON are made.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include "rdma_dev.h"
#include "tool.h"

/* enum ibv_port_state, and the link layer of struct rpost_query_port */
#define PORT_ACTIVE	4
#define INFINIBAND	1

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_NOTE,		/* good to know; RDMA works nevertheless */
	DOCTOR_PROBLEM,
	DOCTOR_UNKNOWN,		/* could not be looked at */
	DOCTOR_SKIPPED,		/* makes no sense after another problem */
};

/**
 * struct finding - what a check has found; all strings but @check are freed
 * @check: the check, "SUBJECT.WHAT"; a stable name
 * @status: how bad it is
 * @object: what it is about: a device, a file, a host
 * @what: what is so
 * @why: why, or NULL
 * @advice: what to try, or NULL
 */
struct finding {
	const char *check;
	enum doctor_status status;
	char *object;
	char *what;
	char *why;
	char *advice;
};

/*
 * Things that checks need, each with those before it.  A connection takes an address and
 * queues, and a message also takes memory that may be registered.
 */
enum doctor_need {
	NEED_NOTHING, NEED_MODULE, NEED_NODE, NEED_DEVICE, NEED_CONNECTION, NEED_MEMORY,
};

/**
 * struct doctor - one visit
 * @devs: the devices
 * @program: the argument of --program, or NULL
 * @peer: the argument of --to, or NULL
 * @json: print JSON at the end, instead of text at once
 * @quiet: print only what is not all right
 * @libs: the folder with librdma_post under the names of the system's libraries,
 *	  or NULL
 * @has: what the checks so far have found to be there
 * @findings: in the order of the checks
 * @num: findings
 */
struct doctor {
	struct rdma_devs devs;
	const char *program;
	const char *peer;
	bool json;
	bool quiet;
	char *libs;
	enum doctor_need has;
	struct finding *findings;
	size_t num;
};

void doctor_report(struct doctor *doc, struct finding finding);
void doctor_skip(struct doctor *doc, const char *check, char *object);
bool doctor_in_container(void);

void check_module(struct doctor *doc);
void check_node(struct doctor *doc);
void check_devices(struct doctor *doc);
void check_ports(struct doctor *doc);
void check_limits(struct doctor *doc);
void check_library(struct doctor *doc);
void check_loopback(struct doctor *doc);
void check_program(struct doctor *doc);
void check_peer(struct doctor *doc);

bool doctor_peer_is_valid(const char *peer);

#endif /* DOCTOR_H */
