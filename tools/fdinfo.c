// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reads /proc/PID/fdinfo/FD of an open /dev/rdma_post. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fdinfo.h"
#include "tool.h"

#define FDINFO_MAX	(1 << 20)

static bool parse_number(const char *text, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return !errno && !*end;
}

static struct fdinfo_fill parse_fill(char *text)
{
	struct fdinfo_fill fill = { };
	char *slash = strchr(text, '/');

	if (!slash)
		return fill;
	*slash = '\0';
	fill.known = parse_number(text, &fill.used) &&
		     parse_number(slash + 1, &fill.size);
	return fill;
}

static void parse_word(struct fdinfo_connection *conn, char *word)
{
	char *value = strchr(word, '=');

	if (!value) {
		if (!strcmp(word, "busy"))
			conn->busy = true;
		return;
	}
	*value++ = '\0';
	if (!strcmp(word, "id"))
		conn->id = value;
	else if (!strcmp(word, "state"))
		conn->state = value;
	else if (!strcmp(word, "device"))
		conn->device = value;
	else if (!strcmp(word, "src"))
		conn->src = value;
	else if (!strcmp(word, "dst"))
		conn->dst = value;
	else if (!strcmp(word, "qp"))
		conn->qp = value;
	else if (!strcmp(word, "sq"))
		conn->sq = parse_fill(value);
	else if (!strcmp(word, "rq"))
		conn->rq = parse_fill(value);
}

static void parse_connection(struct fdinfo *info, char *text)
{
	struct fdinfo_connection *conn;
	char *word, *rest = NULL;

	info->connections = tool_grow(info->connections, info->num_connections,
				      sizeof(*conn));
	conn = &info->connections[info->num_connections++];
	for (word = strtok_r(text, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		parse_word(conn, word);
}

static void parse_line(struct fdinfo *info, char *line)
{
	static const char prefix[] = "rpost-";
	struct fdinfo_value *value;
	char *text;

	if (strncmp(line, prefix, strlen(prefix)))
		return;
	line += strlen(prefix);
	text = strchr(line, ':');
	if (!text)
		return;
	*text++ = '\0';
	text += strspn(text, " \t");
	if (!strcmp(line, "connection")) {
		parse_connection(info, text);
		return;
	}
	info->values = tool_grow(info->values, info->num_values, sizeof(*value));
	value = &info->values[info->num_values++];
	value->key = line;
	value->text = text;
	value->is_number = parse_number(text, &value->number);
	if (!strcmp(line, "file") && value->is_number) {
		info->has_file = true;
		info->file = value->number;
	}
}

/**
 * fdinfo_read() - read what there is to know about an open file
 * @info: gets it; to be freed by fdinfo_free() also after an error
 * @path: /proc/PID/fdinfo/FD
 *
 * Return: 0 or a negative errno.
 */
int fdinfo_read(struct fdinfo *info, const char *path)
{
	char *line, *rest = NULL;

	memset(info, 0, sizeof(*info));
	info->buf = file_read(path, FDINFO_MAX, NULL);
	if (!info->buf)
		return -errno;
	for (line = strtok_r(info->buf, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		parse_line(info, line);
	return 0;
}

/**
 * fdinfo_free() - free what fdinfo_read() has allocated
 * @info: it
 */
void fdinfo_free(struct fdinfo *info)
{
	free(info->buf);
	free(info->values);
	free(info->connections);
}

/**
 * fdinfo_get() - look for a number
 * @info: the open file
 * @key: without "rpost-"
 * @number: gets the number
 *
 * Return: whether there is one.
 */
bool fdinfo_get(const struct fdinfo *info, const char *key, uint64_t *number)
{
	size_t i;

	for (i = 0; i < info->num_values; i++) {
		if (strcmp(info->values[i].key, key))
			continue;
		*number = info->values[i].number;
		return info->values[i].is_number;
	}
	return false;
}

/**
 * fdinfo_number() - return a number
 * @info: the open file
 * @key: without "rpost-"
 *
 * Return: the number, or 0 if there is none.
 */
uint64_t fdinfo_number(const struct fdinfo *info, const char *key)
{
	uint64_t number = 0;

	fdinfo_get(info, key, &number);
	return number;
}

/**
 * fdinfo_sum() - add all numbers of a kind
 * @info: the open file
 * @prefix: of the keys
 *
 * Return: the sum.
 */
uint64_t fdinfo_sum(const struct fdinfo *info, const char *prefix)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < info->num_values; i++)
		if (info->values[i].is_number &&
		    !strncmp(info->values[i].key, prefix, strlen(prefix)))
			sum += info->values[i].number;
	return sum;
}

/**
 * fdinfo_devices() - join the names of the devices
 * @info: the open file
 * @separator: what is between them
 *
 * Return: a string that the caller frees, empty without a device.
 */
char *fdinfo_devices(const struct fdinfo *info, const char *separator)
{
	char *all = text_printf("%s", ""), *more;
	size_t i;

	for (i = 0; i < info->num_values; i++) {
		const char *name = info->values[i].text;

		if (strcmp(info->values[i].key, "device"))
			continue;
		more = text_printf("%s%s%.*s", all, *all ? separator : "",
				   (int)strcspn(name, " "), name);
		free(all);
		all = more;
	}
	return all;
}
