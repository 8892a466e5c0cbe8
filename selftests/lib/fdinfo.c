// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * /proc/PID/fdinfo of an open file.
 */
#define _GNU_SOURCE
#include "fdinfo.h"

int fdinfo_read_of(pid_t pid, int fd, char text[FDINFO_BYTES])
{
	int in, n, ret = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	in = open(path, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		return -errno;
	do {
		n = read(in, text + ret, FDINFO_BYTES - 1 - ret);
		if (n < 0)
			ret = -errno;
		else
			ret += n;
	} while (n > 0);
	close(in);
	text[ret < 0 ? 0 : ret] = 0;
	return ret;
}

const char *fdinfo_text(const char *text, const char *key)
{
	char line[64];
	const char *at;
	int n = snprintf(line, sizeof(line), "\nrpost-%s:\t", key);

	at = strstr(text, line);
	return at ? at + n : NULL;
}

long long fdinfo_number(const char *text, const char *key)
{
	const char *at = fdinfo_text(text, key);
	unsigned long long value;
	char *end;

	if (!at)
		return -1;
	value = strtoull(at, &end, 10);
	return end == at || *end != '\n' ? -2 : (long long)value;
}

long long fdinfo_get(int fd, const char *key)
{
	char *text = malloc(FDINFO_BYTES);
	long long value = -3;

	if (text && fdinfo_read(fd, text) > 0)
		value = fdinfo_number(text, key);
	free(text);
	return value;
}

int fdinfo_lines(const char *text, const char *key)
{
	int n = 0;

	while ((text = fdinfo_text(text, key)))
		n++;
	return n;
}

bool fdinfo_connection(const char *text, uint32_t id, char line[256])
{
	char begin[32];
	int n = snprintf(begin, sizeof(begin), "id=%u ", id);

	while ((text = fdinfo_text(text, "connection"))) {
		if (strncmp(text, begin, n))
			continue;
		snprintf(line, 256, "%.*s", (int)strcspn(text, "\n"), text);
		return true;
	}
	return false;
}
