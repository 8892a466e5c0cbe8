/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A fuzzer of /dev/rdma_post, guided by the coverage that KCOV tells.
 *
 * What it runs is a program: a list of calls, one in each line of its text:
 *
 *   open file=>f0
 *   alloc_pd on=f0 device=dev0 handle=>pd0
 *   & reg_mr on=f0 pd=pd0 addr=0x10000000 length=4096 lkey=>lkey0
 *
 * Results go to registers (f0, pd0), and later calls name them.  What a call
 * does not name is 0.  A second thread does the calls that begin with '&', and
 * does them N times with '&N'; it begins with the first of a group, and is
 * waited for before the next group, and at the end.  A call whose line ends in
 * '!N' has the Nth of its allocations, or of its copies, fail.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <rdma/rdma_post_abi.h>

#define MAX_FIELDS	72
#define MAX_CALLS	64
#define MAX_TEXT	32768
#define NUM_SLOTS	8
#define MAX_ARG		512

/* What registers hold; each kind has NUM_SLOTS of them. */
enum reg {
	R_NONE, R_FILE, R_PD, R_MR, R_CQ, R_QP, R_ID, R_SRQ, R_AH, R_COMP,
	R_EVENT, R_ASYNC, R_DEV, R_LKEY, R_RKEY, R_QPN, R_OFF, R_LEN, R_RING,
	R_PORT, R_GIDX, NUM_REGS,
	R_AUTO = 0xff,		/* the call knows itself what is right */
};

extern const char * const reg_names[NUM_REGS];

enum kind {
	K_INT,			/* up to @max, or any if that is 0 */
	K_FLAGS,		/* bits of @max */
	K_REG,
	K_OUT,
	K_SOCK,			/* a sockaddr_storage: SOCK() */
	K_GID,			/* 16 bytes: enum gid */
	K_BYTES,		/* a byte, repeated */
	K_ADDR,			/* user memory */
	K_ZERO,			/* reserved */
	K_AUTO,			/* found by the call, unless it is given */
	K_ON,			/* the file: not in the struct */
	K_ARG,			/* enum arg: not in the struct */
};

enum arg { ARG_OK, ARG_EDGE, ARG_READONLY, ARG_SHORT, ARG_NULL, NUM_ARGS };

#define SOCK_PORT	7000
#define SOCK(addr, port) ((addr) | (uint64_t)(port) << 8)
enum sock {
	S_NONE, S_V4, S_V6, S_ANY4, S_ANY6, S_LOOP4, S_NOWHERE4, S_NOWHERE6,
	S_MCAST4, S_MCAST6, S_IB, S_IBMCAST, S_UNIX, NUM_SOCKS,
};
enum gid { G_ZERO, G_V4, G_V6, G_LINK, G_MCAST4, G_MCAST6, G_NOWHERE,
	   NUM_GIDS };

extern const char * const sock_names[NUM_SOCKS];

struct field {
	const char *name;
	int offset;
	unsigned int size;
	enum kind kind;
	enum reg reg;
	uint64_t max;
};

/* Field @f of struct @s. */
#define FIELD(s, f, k, r, m)						\
	{ #f, offsetof(struct s, f), sizeof(((struct s *)0)->f), k, r, m }
#define INT(s, f, max)		FIELD(s, f, K_INT, R_NONE, max)
#define FLAGS(s, f, mask)	FIELD(s, f, K_FLAGS, R_NONE, mask)
#define IN(s, f, reg)		FIELD(s, f, K_REG, reg, 0)
#define OUT(s, f, reg)		FIELD(s, f, K_OUT, reg, 0)
#define SPACE(s, f, kind)	FIELD(s, f, kind, R_NONE, 0)
#define ZERO(s, f)		FIELD(s, f, K_ZERO, R_NONE, 0)

struct context;

/* What can be called: an ioctl, or something else, with a struct as well. */
struct desc {
	const char *name;
	unsigned long nr;	/* of the ioctl, or 0 */
	long (*run)(struct context *c, void *arg);
	unsigned int size;
	unsigned int weight;	/* how often to generate it */
	unsigned int num_fields;
	const struct field *fields;
};

extern const struct desc descs[];
extern const unsigned int num_descs;
extern const struct desc *others;
extern const unsigned int num_others;

unsigned int desc_count(void);
const struct desc *desc_get(unsigned int i);

struct value {
	bool set;
	uint8_t reg;		/* enum reg; R_NONE for a number */
	uint64_t val;		/* the number, or the slot */
};

struct call {
	const struct desc *desc;
	unsigned int async;	/* times, by the second thread; 0: not there */
	unsigned int fail;	/* which allocation fails, 0 for none */
	struct value values[MAX_FIELDS];
};

struct prog {
	unsigned int num_calls;
	struct call calls[MAX_CALLS];
};

/* prog.c */
int prog_parse(struct prog *prog, const char *text);
unsigned int prog_print(const struct prog *prog, char *text, size_t size);

/* random.c */
uint64_t rnd64(void);
uint32_t rnd(uint32_t below);
bool one_in(uint32_t n);
void rnd_seed(uint64_t seed);
uint64_t now_ms(void);

/* gen.c */
void prog_generate(struct prog *prog);
void prog_mutate(struct prog *prog, const struct prog *other);
extern bool gen_faults;

/* exec.c: where the memory of programs is */
#define MEM_ADDR	0x10000000ul	/* to be registered, read, written */
#define MEM_PAGES	64
#define MEM_READONLY	(MEM_ADDR + 0x100000)
#define BLOCK_ADDR	0x14000000ul	/* work requests */
#define BLOCK_BYTES	0x20000
#define ARG_ADDR	0x18000000ul
#define RING_ADDR	0x30000000ul	/* slot by slot */
#define RING_STRIDE	0x1000000ul

/* A thread of a program that runs. */
struct context {
	struct run *run;
	unsigned int thread;
	char *block;		/* work requests for the next post */
	uint32_t block_len;
	uint32_t block_count;
	int fail_fd;
};

struct run {
	const struct prog *prog;
	uint64_t regs[NUM_REGS][NUM_SLOTS];
	int wait_ms;		/* the longest wait, until some came to nothing */
	unsigned int in_vain;
	int kcov[2];
	bool leave_open;	/* to the exit */
	bool signals;		/* come all the time */
};

#define MAX_RESULTS	512

struct outcome {
	unsigned int commands;	/* ioctls that were called */
	unsigned int waits;	/* that ended with what was waited for */
	unsigned int waited_ms;
	bool device_gone;	/* at least once */
	unsigned int odd_errno;	/* that no program should see */
	unsigned int num_results;
	uint16_t results[MAX_RESULTS];	/* enum rpost_cmd and errno */
};

void exec_prog(const struct prog *prog, const int kcov[2], int wait_ms,
	       bool verbose);
void fill_sock(void *to, uint64_t value);
void fill_gid(void *to, uint64_t value);
extern struct outcome *outcome;
extern uint64_t boot_regs[NUM_REGS][NUM_SLOTS];
int find_devices(void);

/* cover.c */
int cover_open(int kcov[2]);
bool cover_begin(int kcov);
void cover_end(int kcov);
void cover_reset(void);
#define COVER_MAX	(1u << 20)
unsigned int cover_collect(uint32_t *offsets, unsigned int max);

/* link.c */
int link_remove(void);
int link_add(const char *netdev);
extern const char *link_netdev;

/* watch.c */
int watch_open(void);
bool watch_log(char *line, size_t size);
bool watch_objects(char *left, size_t size);
void watch_stacks(int pid, FILE *to);

#endif /* FUZZ_H */
