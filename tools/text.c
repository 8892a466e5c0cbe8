// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Text for people: colours, errors, strings that are made. */
#include <ctype.h>
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

/* Prints a text whose parts may come from others, without control characters. */
void text_put(const char *text)
{
	for (; *text; text++)
		putchar(iscntrl((unsigned char)*text) ? '?' : *text);
}

/* Prints a text, padded to a width, in a colour. */
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
	for (width -= (int)strlen(text); width > 0; width--)
		putchar(' ');
}

static void *no_memory(void)
{
	fputs("rdma-post: out of memory\n", stderr);
	exit(TOOL_FAILED);
}

/* Returns a string that the caller frees. */
char *text_printf(const char *format, ...)
{
	va_list args;
	char *text;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	return n < 0 ? no_memory() : text;
}

/* Allocates an array of zeros. */
void *tool_alloc(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	return p ? p : no_memory();
}

/* Makes room for one more element behind @n; the new one is zero. */
void *tool_grow(void *array, size_t n, size_t size)
{
	char *p = reallocarray(array, n + 1, size);

	if (!p)
		return no_memory();
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
