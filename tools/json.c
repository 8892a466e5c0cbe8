// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writes JSON.  A key is NULL in an array, and for the outermost object.  No
 * library is needed for so little.
 */
#include <assert.h>
#include <inttypes.h>

#include "tool.h"

#define MAX_DEPTH	8

static struct {
	char end;
	bool filled;
} levels[MAX_DEPTH];
static int depth;
/* The outermost object stands in one line. */
static bool one_line;

static void put_string(const char *value)
{
	const unsigned char *s = (const unsigned char *)value;
	int n;

	putchar('"');
	for (; *s; s += n) {
		n = text_utf8_length(s);
		if (!n) {
			fputs("\\ufffd", stdout);
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			printf("\\%c", *s);
		} else if (*s < 0x20 || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0)) {
			/* Control characters, U+0080 to U+009F among them. */
			printf("\\u%04x", s[n - 1]);
		} else {
			fwrite(s, 1, n, stdout);
		}
	}
	putchar('"');
}

static void begin_value(const char *key)
{
	if (depth) {
		fputs(levels[depth - 1].filled ? "," : "", stdout);
		if (!one_line)
			printf("\n%*s", 2 * depth, "");
		else if (levels[depth - 1].filled)
			putchar(' ');
		levels[depth - 1].filled = true;
	}
	if (key) {
		put_string(key);
		fputs(": ", stdout);
	}
}

static void begin_level(const char *key, char start, char end)
{
	assert(depth < MAX_DEPTH);
	begin_value(key);
	putchar(start);
	levels[depth].end = end;
	levels[depth++].filled = false;
}

void json_object(const char *key)
{
	begin_level(key, '{', '}');
}

/* Begins an outermost object that stands in one line. */
void json_line(void)
{
	one_line = true;
	begin_level(NULL, '{', '}');
}

void json_array(const char *key)
{
	begin_level(key, '[', ']');
}

void json_end(void)
{
	assert(depth);
	depth--;
	if (levels[depth].filled && !one_line)
		printf("\n%*s", 2 * depth, "");
	putchar(levels[depth].end);
	if (!depth) {
		putchar('\n');
		one_line = false;
	}
}

/* A value of NULL is null. */
void json_string(const char *key, const char *value)
{
	begin_value(key);
	if (value)
		put_string(value);
	else
		fputs("null", stdout);
}

void json_number(const char *key, uint64_t value)
{
	begin_value(key);
	printf("%" PRIu64, value);
}

/* What is not known is null. */
void json_optional(const char *key, bool known, uint64_t value)
{
	if (known)
		json_number(key, value);
	else
		json_string(key, NULL);
}

void json_bool(const char *key, bool value)
{
	begin_value(key);
	fputs(value ? "true" : "false", stdout);
}
