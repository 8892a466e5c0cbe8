/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Injects failures into the module's callbacks, for tests that run as root on a
 * kernel with fault injection.  Functions return 0 or a negative errno unless
 * their comment says otherwise.
 */
#ifndef INJECTION_H
#define INJECTION_H

#include "rpost_test.h"

#define INJECT_BYTES	4096
#define INJECT_MS	60000	/* the connection manager repeats after 4 s */

/* A client, and a server with memory that the client may write to. */
struct injection {
	struct rp_end c, s;
	uint32_t listener;
	struct rpost_reg_mr mr;
	char *buf;
	bool able;
};

#define NEED_INJECTION()						\
	do {								\
		if (!self->in.able)					\
			SKIP(return, "needs root and a kernel with fault injection"); \
	} while (0)

int inject_init(struct injection *in);
int inject_begin(struct injection *in);
int inject_end(struct injection *in);
int inject(const char *point, long times);
long injected(const char *point);
bool wait_injected(const char *point, long before);
int inject_set_way(const char *way);
int inject_set_drain(const char *ms);
int inject_write(struct injection *in);
int inject_writes_work(struct injection *in);
int inject_next_works(struct injection *in);
unsigned int inject_points(bool registrations, unsigned int *missed);

#endif /* INJECTION_H */
