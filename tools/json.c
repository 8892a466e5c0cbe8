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

/* Returns the length of the UTF-8 sequence at @s, or 0 if it is none. */
static int utf8_length(const unsigned char *s)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	int n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 :
		s[0] >> 3 == 30 ? 4 : 0, i;
	uint32_t c;

	if (n < 2)
		return n;
	c = s[0] & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	return n;
}

static void put_string(const char *value)
{
	const unsigned char *s = (const unsigned char *)value;
	int n;

	putchar('"');
	for (; *s; s += n) {
		n = utf8_length(s);
		if (!n) {
			fputs("\\ufffd", stdout);
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			printf("\\%c", *s);
		} else if (*s < 0x20) {
			printf("\\u%04x", *s);
		} else {
			fwrite(s, 1, n, stdout);
		}
	}
	putchar('"');
}

static void begin_value(const char *key)
{
	if (depth) {
		printf("%s\n%*s", levels[depth - 1].filled ? "," : "",
		       2 * depth, "");
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

void json_array(const char *key)
{
	begin_level(key, '[', ']');
}

void json_end(void)
{
	assert(depth);
	depth--;
	if (levels[depth].filled)
		printf("\n%*s", 2 * depth, "");
	putchar(levels[depth].end);
	if (!depth)
		putchar('\n');
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

void json_bool(const char *key, bool value)
{
	begin_value(key);
	fputs(value ? "true" : "false", stdout);
}
