// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Text for people: colours, errors, strings that are made. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static bool colors;

/* Uses colours on terminals only, and not against the user's wish. */
void text_init(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	colors = isatty(STDOUT_FILENO) && !(no && *no) &&
		 term && strcmp(term, "dumb");
}

/* Returns the length of the UTF-8 sequence at @s, or 0 if it is none. */
int text_utf8_length(const unsigned char *s)
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

/* Does a character control the terminal, or the order or the end of the line? */
static bool is_control(const unsigned char *s)
{
	uint32_t c = s[0] >> 5 == 6 ? (s[0] & 0x1f) << 6 | (s[1] & 0x3f) :
		s[0] >> 4 == 14 ? (s[0] & 0xf) << 12 | (s[1] & 0x3f) << 6 | (s[2] & 0x3f) : s[0];

	return c < 0x20 || (c >= 0x7f && c < 0xa0) ||
	       c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/*
 * Prints a text whose parts may come from others: control characters, those of
 * U+0080 to U+009F and of the direction of writing, too, and what is no UTF-8 become
 * question marks.
 */
void text_put(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	int n;

	for (; *s; s += n) {
		n = text_utf8_length(s);
		if (!n || is_control(s)) {
			putchar('?');
			n = n ? n : 1;
		} else {
			fwrite(s, 1, n, stdout);
		}
	}
}

/* Prints a text, padded to a width in characters, in a colour. */
void text_color(enum text_color color, const char *text, int width)
{
	static const char *const codes[] = {
		[TEXT_BOLD] = "1", [TEXT_RED] = "1;31",
		[TEXT_GREEN] = "32", [TEXT_YELLOW] = "33",
	};
	bool use = colors && color != TEXT_PLAIN;

	if (use)
		printf("\033[%sm", codes[color]);
	text_put(text);
	if (use)
		printf("\033[0m");
	/* The first byte of a character counts, those that follow do not. */
	for (; *text; text++)
		width -= (*text & 0xc0) != 0x80;
	for (; width > 0; width--)
		putchar(' ');
}

/* Does not return. */
void *tool_no_memory(void)
{
	fputs("rdma-post: out of memory\n", stderr);
	exit(TOOL_FAILED);
}

/* Returns a string that the caller frees. */
char *text_vprintf(const char *format, va_list args)
{
	char *text;

	return vasprintf(&text, format, args) < 0 ? tool_no_memory() : text;
}

/* Returns a string that the caller frees. */
char *text_printf(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = text_vprintf(format, args);
	va_end(args);
	return text;
}

/* Returns a copy, to be freed, in which another character stands for each @from. */
char *text_replace(const char *text, char from, char to)
{
	char *copy = text_printf("%s", text), *c;

	for (c = copy; *c; c++)
		if (*c == from)
			*c = to;
	return copy;
}

/* Allocates an array of zeros. */
void *tool_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	return p ? p : tool_no_memory();
}

/* Makes room for one more element behind @n; the new one is zero. */
void *tool_grow(void *array, size_t n, size_t size)
{
	char *p = reallocarray(array, n + 1, size);

	if (!p)
		return tool_no_memory();
	memset(p + n * size, 0, size);
	return p;
}

/* Says what failed, and returns the exit status for it. */
int tool_error(const char *format, ...)
{
	va_list args;

	fputs("rdma-post: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return TOOL_FAILED;
}

/* Says where help is, after a message about an argument. */
int tool_usage(const char *command)
{
	fprintf(stderr, "rdma-post: see rdma-post %s%s--help\n",
		command ? command : "", command ? " " : "");
	return TOOL_FAILED;
}
