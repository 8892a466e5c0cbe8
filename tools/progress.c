// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* A line about what is going on, for whoever waits at a terminal. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool.h"

static bool shown;

/**
 * progress_show() - say what takes so long
 * @format: of printf(); the text replaces the one before
 *
 * It is on standard error, and on terminals only.
 */
void progress_show(const char *format, ...)
{
	const char *term = getenv("TERM");
	char *text, *c;
	va_list args;

	if (!isatty(STDERR_FILENO) || !term || !strcmp(term, "dumb"))
		return;
	/* What was found before comes first. */
	fflush(stdout);
	va_start(args, format);
	text = text_vprintf(format, args);
	va_end(args);
	for (c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	fprintf(stderr, "\r\033[K%s", text);
	free(text);
	fflush(stderr);
	shown = true;
}

/* Removes the line. */
void progress_end(void)
{
	if (!shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	shown = false;
}
