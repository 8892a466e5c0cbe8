/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What /proc/PID/fdinfo/FD of an open /dev/rdma_post says: Documentation/fdinfo.rst. */
#ifndef FDINFO_H
#define FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct fdinfo_value - a line that is no connection
 * @key: without "rpost-"
 * @text: the value
 * @is_number: it is a number
 * @number: this number
 */
struct fdinfo_value {
	const char *key;
	const char *text;
	bool is_number;
	uint64_t number;
};

/**
 * struct fdinfo_fill - entries of a queue
 * @known: there is such a queue
 * @used: entries in use
 * @size: all entries
 */
struct fdinfo_fill {
	bool known;
	uint64_t used;
	uint64_t size;
};

/**
 * struct fdinfo_connection - a line of a connection; what it does not tell is NULL
 * @id: handle
 * @state: of the id
 * @device: name
 * @src: own address
 * @dst: address of the peer
 * @qp: number of the queue pair
 * @sq: its send queue
 * @rq: its receive queue
 * @busy: a command holds the id, so that no more is known
 */
struct fdinfo_connection {
	const char *id;
	const char *state;
	const char *device;
	const char *src;
	const char *dst;
	const char *qp;
	struct fdinfo_fill sq;
	struct fdinfo_fill rq;
	bool busy;
};

/**
 * struct fdinfo - an open file
 * @buf: holds the strings
 * @has_file: the open file has a number; without it the module is older than fdinfo
 * @file: this number
 * @num_values: number of @values
 * @values: all lines but those of connections, in the kernel's order
 * @num_connections: number of @connections
 * @connections: the lines of connections
 */
struct fdinfo {
	char *buf;
	bool has_file;
	uint64_t file;
	size_t num_values;
	struct fdinfo_value *values;
	size_t num_connections;
	struct fdinfo_connection *connections;
};

int fdinfo_read(struct fdinfo *info, const char *path);
void fdinfo_free(struct fdinfo *info);
bool fdinfo_get(const struct fdinfo *info, const char *key, uint64_t *number);
uint64_t fdinfo_number(const struct fdinfo *info, const char *key);
uint64_t fdinfo_sum(const struct fdinfo *info, const char *prefix);
char *fdinfo_devices(const struct fdinfo *info, const char *separator);

#endif /* FDINFO_H */
