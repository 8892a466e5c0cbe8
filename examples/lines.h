/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Code that event_server, srq_server and their client lines_client share. */
#ifndef LINES_H
#define LINES_H

#include <ctype.h>

#include "common.h"

#define PORT "7474"
#define LINE 32		/* bytes of a line */
#define AHEAD 4		/* lines that a client may send before the first answer */

/* The other side, if it finds no receive here, tries until there is one (7). */
static struct rdma_conn_param lines_param = {
	.retry_count = 7,
	.rnr_retry_count = 7,
};

/* A queue pair of either side.  Sends are inline, and each has a completion. */
static inline struct ibv_qp_init_attr lines_attr(void)
{
	return (struct ibv_qp_init_attr) {
		.cap = { .max_send_wr = 2 * AHEAD, .max_send_sge = 1,
			 .max_recv_wr = AHEAD, .max_recv_sge = 1,
			 .max_inline_data = LINE },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static inline void capitals(char *out, const char *line)
{
	int i;

	for (i = 0; i < LINE; i++)
		out[i] = toupper((unsigned char)line[i]);
}

#endif
