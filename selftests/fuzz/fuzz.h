/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A fuzzer of /dev/rdma_post, guided by coverage from KCOV.  A find is a
 * process that hangs, an object that stays behind, an error that no program
 * should see, or a complaint of the kernel.
 *
 * A program is a list of calls, one in each line of its text:
 *
 *   open file=>f0
 *   alloc_pd on=f0 device=dev0 handle=>pd0
 *   & reg_mr on=f0 pd=pd0 addr=0x10000000 length=4096 lkey=>lkey0
 *
 * Results go to registers (f0, pd0), which later calls name.  A field that a
 * call does not name is 0.  Calls that begin with '&' run in a second thread, N
 * times with '&N': the thread starts at the first call of a group, and is
 * joined before the next group and at the end.  In a call whose line ends in
 * '!N', the Nth allocation or user copy fails.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "commands.h"

#define MAX_FIELDS	72
#define MAX_CALLS	64
#define MAX_TEXT	32768
#define NUM_SLOTS	8
#define MAX_ARG		512

/* The names of registers by enum reg; each kind has NUM_SLOTS of them. */
extern const char * const reg_names[NUM_REGS];

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

/* The field @f of struct @s. */
#define FIELD(s, f, k, r, m)						\
	{ .name = #f, .offset = offsetof(struct s, f),			\
	  .size = sizeof(((struct s *)0)->f), .kind = k, .reg = r, .max = m }
#define INT(s, f, max)		FIELD(s, f, K_INT, R_NONE, max)
#define FLAGS(s, f, mask)	FIELD(s, f, K_FLAGS, R_NONE, mask)
#define IN(s, f, reg)		FIELD(s, f, K_REG, reg, 0)
#define OUT(s, f, reg)		FIELD(s, f, K_OUT, reg, 0)
#define SPACE(s, f, kind)	FIELD(s, f, kind, R_NONE, 0)

struct context;

/* A call: an ioctl, or another function that takes a struct. */
struct desc {
	const char *name;
	unsigned long nr;	/* of the ioctl, or 0 */
	long (*run)(struct context *c, void *arg);
	unsigned int size;
	unsigned int weight;	/* how often it is generated */
	unsigned int num_fields;
	const struct field *fields;
};

extern const struct desc others[];
extern const unsigned int num_others;
extern const struct desc blocks[];
extern const unsigned int num_blocks;

/* A row of the tables of calls that are not ioctls. */
#define RUN(name, args, fn, table, weight)				\
	{ name, 0, fn, sizeof(struct args), weight,			\
	  sizeof(table) / sizeof((table)[0]), table }

unsigned int desc_count(void);
const struct desc *desc_get(unsigned int i);

struct value {
	bool set;
	uint8_t reg;		/* enum reg, R_NONE: a number */
	uint64_t val;		/* the number, or the slot */
};

struct call {
	const struct desc *desc;
	unsigned int async;	/* runs in the second thread, or 0 */
	unsigned int fail;	/* failing allocation, or 0 */
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

/* exec.c: addresses of a program's memory */
#define MEM_ADDR	0x10000000ul	/* for regions, reads, writes */
#define MEM_PAGES	64
#define MEM_READONLY	(MEM_ADDR + 0x100000)
#define BLOCK_ADDR	0x14000000ul	/* work requests */
#define BLOCK_BYTES	0x20000
#define ARG_ADDR	0x18000000ul
#define RING_ADDR	0x30000000ul	/* slot by slot */
#define RING_STRIDE	0x1000000ul

/* A thread of a program. */
struct context {
	struct run *run;
	unsigned int thread;
	char *block;		/* work requests for the next post, behind its struct */
	uint32_t block_len;
	int fail_fd;
};

struct run {
	const struct prog *prog;
	uint64_t regs[NUM_REGS][NUM_SLOTS];
	int wait_ms;		/* halved after each wait in vain */
	unsigned int in_vain;
	int kcov[2];
	bool leave_open;	/* until the process exits */
	bool signals;		/* SIGALRM comes every 200 ms */
};

#define MAX_RESULTS	512

struct outcome {
	unsigned int commands;	/* ioctls that ran */
	unsigned int waits;	/* that were not in vain */
	unsigned int waited_ms;
	bool device_gone;	/* at least once */
	unsigned int odd_errno;	/* one that no program should see */
	unsigned int num_results;
	uint16_t results[MAX_RESULTS];	/* command and errno */
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
