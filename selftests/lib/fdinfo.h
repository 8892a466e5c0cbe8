/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * /proc/PID/fdinfo of an open file, see Documentation/fdinfo.rst.
 */
#ifndef RPOST_FDINFO_H
#define RPOST_FDINFO_H

#include "rpost_test.h"

#define FDINFO_BYTES	65536

/* Read it all, with a 0 at the end; return its bytes or a negative errno. */
int fdinfo_read_of(pid_t pid, int fd, char text[FDINFO_BYTES]);

static inline int fdinfo_read(int fd, char text[FDINFO_BYTES])
{
	return fdinfo_read_of(getpid(), fd, text);
}

/* Return the first value of "rpost-KEY:", or NULL.  It ends with its line. */
const char *fdinfo_text(const char *text, const char *key);
/* Return the number of this key, -1 if it is not there, or -2 if there is none. */
long long fdinfo_number(const char *text, const char *key);
/* Read the number of an own file's key. */
long long fdinfo_get(int fd, const char *key);
/* Return how many lines have the key. */
int fdinfo_lines(const char *text, const char *key);
/* Copy the line of a connection id; false if there is none. */
bool fdinfo_connection(const char *text, uint32_t id, char line[256]);

#endif /* RPOST_FDINFO_H */
