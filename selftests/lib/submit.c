// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Submissions, part by part.
 */
#define _GNU_SOURCE
#include "submit.h"

void submission_begin(struct submission *s)
{
	s->cmd = (struct rpost_submit) {
		.size = sizeof(s->cmd),
		.parts = (uintptr_t)s->parts,
	};
}

/* Return the part; a test that has no room is wrong. */
struct rpost_submit_part *submission_add(struct submission *s, uint32_t command,
					 uint32_t handle, uint32_t count,
					 const void *wrs, uint32_t bytes)
{
	struct rpost_submit_part *part = (void *)((char *)s->parts + s->cmd.bytes);

	if (sizeof(*part) + bytes > sizeof(s->parts) - s->cmd.bytes)
		abort();
	*part = (struct rpost_submit_part) {
		.command = command,
		.handle = handle,
		.count = count,
		.size = sizeof(*part) + bytes,
	};
	if (bytes)
		memcpy(part + 1, wrs, bytes);
	s->cmd.bytes += part->size;
	s->cmd.count++;
	return part;
}

void submission_recv(struct submission *s, uint32_t command, uint32_t handle,
		     uint64_t wr_id, void *addr, uint32_t length, uint32_t lkey)
{
	const struct {
		struct rpost_recv_wr wr;
		struct rpost_sge sge;
	} recv = {
		.wr = { .wr_id = wr_id, .size = sizeof(recv), .num_sge = 1 },
		.sge = { (uintptr_t)addr, length, lkey },
	};

	submission_add(s, command, handle, 1, &recv, sizeof(recv));
}

/* Call the kernel, with answers that it must overwrite. */
int submission_run(int fd, struct submission *s)
{
	s->cmd.done = 0xa5a5a5a5;
	s->cmd.posted = 0xa5a5a5a5;
	return rp_ioctl(fd, RPOST_IOC_SUBMIT, &s->cmd);
}
