/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The commands and the fields of their structs, for all tests that go through
 * them.  A new command needs a row in kmod/core/commands.h and one in commands.c.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_post_abi.h>

/* Kinds of objects and values that a field names and a fuzzer register keeps. */
enum reg {
	R_NONE,
	R_PD = RPOST_OBJ_PD, R_MR, R_CQ, R_QP, R_ID, R_SRQ, R_AH,
	R_FILE, R_COMP, R_EVENT, R_ASYNC, R_DEV, R_LKEY, R_RKEY, R_QPN, R_OFF,
	R_LEN, R_RING, R_PORT, R_GIDX, NUM_REGS,
};

enum kind {
	K_INT,			/* up to @max, or any if that is 0 */
	K_FLAGS,		/* bits of @max */
	K_REG,
	K_OUT,			/* answer: goes to a register */
	K_ANSWER,		/* any other answer */
	K_UNUSED,		/* neither read nor written */
	K_SOCK,			/* a sockaddr_storage */
	K_GID,			/* 16 bytes */
	K_BYTES,		/* a byte, repeated */
	K_ADDR,			/* user memory */
	K_ZERO,			/* reserved */
	K_AUTO,			/* follows from other fields */
	K_ON,			/* the fuzzer's: the file, not in the struct */
	K_ARG,			/* the fuzzer's: enum arg, not in the struct */
};

/* The object that a call without harm names in a field of K_REG. */
enum give {
	G_OWN,			/* one that stays */
	G_NEW,
	G_BOUND,		/* a new id, bound to an address */
	G_BAD,			/* a handle that names nothing */
};

/**
 * struct field - a field of a command's struct
 * @name: name
 * @offset: in the struct; -1 if it is not there
 * @size: bytes
 * @kind: kind
 * @reg: what it names
 * @max: see enum kind
 * @usual: value in a call without harm; in K_GID each byte's
 * @give: object in a call without harm
 * @optional: may be 0, or no channel; a call without harm passes no memory in it.
 *	      Of K_ZERO: the kernel does not always look at it
 * @out: read and written
 * @error: of a call without harm but for one of the @num_bad values of @bad in it
 */
struct field {
	const char *name;
	int offset;
	unsigned int size;
	enum kind kind;
	enum reg reg;
	uint64_t max;
	uint64_t usual;
	enum give give;
	bool optional;
	bool out;
	int error;
	unsigned int num_bad;
	uint32_t bad[5];
};

/**
 * struct command - a command
 * @name: name
 * @nr: of the ioctl
 * @on: R_FILE, or R_EVENT for an event channel's
 * @size: bytes of its struct
 * @first: the least that it takes: its struct's size in the first version
 * @flags: those that it knows
 * @want: what a call without harm returns
 * @event: an event with its result comes after it has returned
 * @weight: how often the fuzzer calls it
 * @num_fields: how many
 * @fields: all but size and flags, in the struct's order
 */
struct command {
	const char *name;
	unsigned long nr;
	enum reg on;
	unsigned int size;
	unsigned int first;
	uint32_t flags;
	int want;
	bool event;
	unsigned int weight;
	unsigned int num_fields;
	const struct field *fields;
};

#define MAX_COMMANDS	256	/* numbers of ioctls */

const struct command *command_of(unsigned int nr);
const struct command *next_command(const struct command *cmd);
const struct field *made_object(const struct command *cmd);
const struct field *made_channel(const struct command *cmd);
bool command_answers(const struct command *cmd);
bool is_pointer(const struct field *field);

/* Do work requests follow the struct of a command, within its size? */
static inline bool is_post(unsigned long nr)
{
	return nr == RPOST_IOC_POST_SEND || nr == RPOST_IOC_POST_RECV ||
	       nr == RPOST_IOC_POST_SRQ_RECV;
}

#define for_each_command(cmd) \
	for (cmd = next_command(NULL); cmd; cmd = next_command(cmd))

#define for_each_field(field, cmd)					\
	for (field = (cmd)->fields; field < (cmd)->fields + (cmd)->num_fields; \
	     field++)

#endif /* COMMANDS_H */
