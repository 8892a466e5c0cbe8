/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Submissions: several posts and polls in one call.
 */
#ifndef RPOST_SUBMIT_H
#define RPOST_SUBMIT_H

#include "rpost_test.h"

#define SUBMISSION_BYTES	8192

/**
 * struct submission - parts, and the command that does them
 * @cmd: @done and @posted after the call
 * @parts: one after the other
 */
struct submission {
	struct rpost_submit cmd;
	uint64_t parts[SUBMISSION_BYTES / sizeof(uint64_t)];
};

void submission_begin(struct submission *s);
struct rpost_submit_part *submission_add(struct submission *s, uint32_t command,
					 uint32_t handle, uint32_t count,
					 const void *wrs, uint32_t bytes);
int submission_run(int fd, struct submission *s);

/* Add a receive of @length bytes. */
void submission_recv(struct submission *s, uint32_t command, uint32_t handle,
		     uint64_t wr_id, void *addr, uint32_t length, uint32_t lkey);

static inline void submission_send(struct submission *s, uint32_t qp,
				   const struct rp_send *send)
{
	submission_add(s, RPOST_CMD_POST_SEND, qp, 1, send, send->wr.size);
}

static inline void submission_poll(struct submission *s, uint32_t cq, uint32_t count)
{
	submission_add(s, RPOST_CMD_POLL_CQ, cq, count, NULL, 0);
}

#endif /* RPOST_SUBMIT_H */
