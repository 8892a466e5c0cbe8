/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Calls of every command without harm. Functions return 0 or a negative errno.
 */
#ifndef COMMAND_ENV_H
#define COMMAND_ENV_H

#include "commands.h"
#include "rpost_own.h"

#define ENV_BYTES	0x10000

/* Bytes that hold any command's struct. */
#define MAX_STRUCT	512

/**
 * struct env - what the calls work with
 * @end: its id is bound and has a queue pair
 * @mem: ENV_BYTES that commands may register, read and write
 * @new_qp: what the last call was given as a new queue pair, or 0
 */
struct env {
	struct rp_end end;
	void *mem;
	uint32_t new_qp;
};

int env_init(struct env *env);
void env_close(struct env *env);
int env_own(struct env *env, enum reg reg);
int env_fill(struct env *env, const struct command *cmd, void *arg);
int env_fd(const struct env *env, const struct command *cmd);

#endif /* COMMAND_ENV_H */
