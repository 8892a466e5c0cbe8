/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The functions of a communication library that buffers.c calls. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define LENGTH	(64 << 10)

/* Fails unless it holds. */
#define TRUE(what)							\
	do {								\
		if (!(what)) {						\
			fprintf(stderr, "%s:%d: %s\n", __FILE__,	\
				__LINE__, #what);			\
			exit(1);					\
		}							\
	} while (0)

/* Makes two connected ends in this process; the target is the memory of the second one. */
void open_ends(const char *addr, const char *port, void *target);
/* Sends or puts the buffer of LENGTH bytes to the target, and returns when it is there. */
void transfer(bool put, void *buf);
void close_ends(void);

#endif /* BUFFERS_H */
