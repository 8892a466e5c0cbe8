// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post top: what programs do, live. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "sample.h"
#include "table.h"
#include "tool.h"
#include "wait.h"

enum column_id {
	TOP_PID, TOP_USER, TOP_OPS, TOP_OUT, TOP_IN, TOP_COMPLETIONS, TOP_ERRORS,
	TOP_SLEEPS, TOP_COMMANDS, TOP_CONNECTIONS, TOP_OBJECTS, TOP_CHARGED, TOP_PINNED,
	TOP_DEVICE, TOP_CONTAINER, TOP_PROGRAM, TOP_COLUMNS,
};

/* What a column has, and how important it is: a narrow terminal shows rank 0 only. */
static const struct column {
	const char *title;
	int width;
	enum { TEXT, COUNT, BYTES } kind;
	int rank;
} columns[TOP_COLUMNS] = {
	[TOP_PID]	  = { "PID", 7, COUNT, 0 },
	[TOP_USER]	  = { "USER", 8, TEXT, 1 },
	[TOP_OPS]	  = { "OPS/s", 7, COUNT, 0 },
	[TOP_OUT]	  = { "OUT/s", 7, BYTES, 0 },
	[TOP_IN]	  = { "IN/s", 7, BYTES, 0 },
	[TOP_COMPLETIONS] = { "COMPL/s", 7, COUNT, 7 },
	[TOP_ERRORS]	  = { "ERR/s", 6, COUNT, 2 },
	[TOP_SLEEPS]	  = { "SLEEP/s", 7, COUNT, 5 },
	[TOP_COMMANDS]	  = { "CMD/s", 7, COUNT, 8 },
	[TOP_CONNECTIONS] = { "CONNS", 6, COUNT, 3 },
	[TOP_OBJECTS]	  = { "OBJECTS", 7, COUNT, 9 },
	[TOP_CHARGED]	  = { "CHARGED", 7, BYTES, 4 },
	[TOP_PINNED]	  = { "PINNED", 7, BYTES, 10 },
	[TOP_DEVICE]	  = { "DEVICE", 10, TEXT, 11 },
	[TOP_CONTAINER]	  = { "CONTAINER", 20, TEXT, 6 },
	[TOP_PROGRAM]	  = { "PROGRAM", 8, TEXT, 0 },
};

#define TOP_RANKS	12

struct row {
	const struct open_file *file;
	uint64_t numbers[TOP_COLUMNS];
	char *devices;
};

static struct {
	int rows;
	int columns;
	bool shown[TOP_COLUMNS];
	enum column_id sort;
	bool entered;
	struct termios normal;
} screen = { .sort = TOP_OPS };

static void help(void)
{
	puts("Usage: rdma-post top [-i SECONDS] [-n COUNT] [-j]\n\n"
	     "Shows live what the open files of /dev/rdma_post do, and who has them. The\n"
	     "terminal's width decides on the columns; the title of that by which they are\n"
	     "sorted is not reversed. Rates are per second, K of bytes is 1024.\n\n"
	     "  -i, --interval SECONDS  between two screens, 0.1 or more; 2 if not given\n"
	     "  -n, --count COUNT       end after so many screens\n"
	     "  -j, --json              print JSON, as rdma-post stat -i does\n"
	     "  -h, --help              print this\n\n"
	     "Keys: left and right, or < and >: sort by another column; q: end.\n\n"
	     "Exit status: 0, or 2 for wrong usage or failure");
}

/* ------------------------------------------------------- terminal */

static void enter(void)
{
	struct termios keys = screen.normal;

	screen.entered = true;
	keys.c_lflag &= ~(ICANON | ECHO);
	keys.c_cc[VMIN] = 0;
	keys.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
	/* The other screen, without cursor. */
	fputs("\033[?1049h\033[?25l\033[2J", stdout);
	fflush(stdout);
}

/* Called at the exit, too: memory may end at any time. */
static void leave(void)
{
	if (!screen.entered)
		return;
	screen.entered = false;
	fputs("\033[0m\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &screen.normal);
}

static void stop(void)
{
	leave();
	wait_stop();
	enter();
}

static int used_width(void)
{
	int i, width = 0;

	for (i = 0; i < TOP_COLUMNS; i++)
		if (screen.shown[i])
			width += columns[i].width + 1;
	return width - 1;
}

/* Adds columns in the order of their ranks while there is room. */
static void measure(void)
{
	struct winsize size;
	int rank, i;

	screen.rows = 24;
	screen.columns = 80;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col) {
		screen.rows = size.ws_row;
		screen.columns = size.ws_col;
	}
	memset(screen.shown, 0, sizeof(screen.shown));
	for (rank = 0; rank < TOP_RANKS; rank++) {
		for (i = 0; i < TOP_COLUMNS; i++) {
			if (columns[i].rank != rank)
				continue;
			screen.shown[i] = true;
			if (rank && used_width() > screen.columns)
				screen.shown[i] = false;
		}
	}
}

/* Moves to the next column that is shown. */
static void move_sort(int by)
{
	int i = screen.sort;

	do
		i += by;
	while (i >= 0 && i < TOP_COLUMNS && !screen.shown[i]);
	if (i >= 0 && i < TOP_COLUMNS)
		screen.sort = i;
}

/* Returns false if the user wants to end. */
static bool keys(void)
{
	char buf[64];
	ssize_t n = read(STDIN_FILENO, buf, sizeof(buf)), i;

	if (n <= 0)
		return false;
	for (i = 0; i < n; i++) {
		/* An arrow is ESC [ C or ESC O C. */
		bool arrow = i >= 2 && buf[i - 2] == '\033' &&
			     (buf[i - 1] == '[' || buf[i - 1] == 'O');

		if (buf[i] == 'q' || buf[i] == 'Q')
			return false;
		if (buf[i] == '<' || (arrow && buf[i] == 'D'))
			move_sort(-1);
		else if (buf[i] == '>' || (arrow && buf[i] == 'C'))
			move_sort(1);
	}
	return true;
}

/* ----------------------------------------------------------- rows */

static void fill_row(struct row *row, const struct sample *before,
		     const struct sample *now, const struct open_file *file)
{
	static const enum column_id rates[SAMPLE_TOTALS] = {
		[SAMPLE_OPS] = TOP_OPS, [SAMPLE_OUT] = TOP_OUT, [SAMPLE_IN] = TOP_IN,
		[SAMPLE_COMPLETIONS] = TOP_COMPLETIONS, [SAMPLE_ERRORS] = TOP_ERRORS,
		[SAMPLE_SLEEPS] = TOP_SLEEPS, [SAMPLE_COMMANDS] = TOP_COMMANDS,
	};
	int i;

	row->file = file;
	row->devices = fdinfo_devices(&file->info, ",");
	row->numbers[TOP_PID] = file->holders[0].pid;
	for (i = 0; i < SAMPLE_TOTALS; i++)
		row->numbers[rates[i]] = sample_rate(before, now, file, i);
	row->numbers[TOP_CONNECTIONS] = fdinfo_number(&file->info, "connections");
	row->numbers[TOP_OBJECTS] = fdinfo_sum(&file->info, "objects-");
	row->numbers[TOP_CHARGED] = fdinfo_number(&file->info, "bytes-charged");
	row->numbers[TOP_PINNED] = fdinfo_number(&file->info, "bytes-pinned");
}

static const char *row_text(const struct row *row, enum column_id column)
{
	const struct holder *holder = &row->file->holders[0];

	switch (column) {
	case TOP_USER:
		return holder->user;
	case TOP_DEVICE:
		return *row->devices ? row->devices : "-";
	case TOP_CONTAINER:
		return holder->container ? holder->container : "-";
	default:
		return holder->program;
	}
}

/* Numbers fall, texts and pids rise. */
static int compare_rows(const void *a, const void *b)
{
	const struct row *ra = a, *rb = b;
	uint64_t na = ra->numbers[screen.sort], nb = rb->numbers[screen.sort];
	int order = 0;

	if (columns[screen.sort].kind == TEXT)
		order = strcmp(row_text(ra, screen.sort), row_text(rb, screen.sort));
	else if (screen.sort != TOP_PID)
		order = (na < nb) - (na > nb);
	return order ? order : ra->file->holders[0].pid - rb->file->holders[0].pid;
}

/* --------------------------------------------------------- screen */

/* Prints a cell of a width, cut to what is left of the line. */
static void put_cell(const char *text, int width, bool right, int *left)
{
	int len = strnlen(text, width), pad, i;

	if (width > *left)
		width = *left;
	if (len > width)
		len = width;
	pad = width - len;
	*left -= width;
	for (i = 0; right && i < pad; i++)
		putchar(' ');
	for (i = 0; i < len; i++)
		putchar(text[i] < 0x20 || text[i] > 0x7e ? '?' : text[i]);
	for (i = 0; !right && i < pad; i++)
		putchar(' ');
}

/* The last column gets the rest of the line. */
static int cell_width(int column, int left)
{
	return column == TOP_PROGRAM ? left : columns[column].width;
}

static void print_titles(void)
{
	int left = screen.columns, i;

	for (i = 0; i < TOP_COLUMNS; i++) {
		if (!screen.shown[i])
			continue;
		fputs(i == (int)screen.sort ? "\033[0;1m" : "\033[0;7m", stdout);
		put_cell(columns[i].title, cell_width(i, left), columns[i].kind != TEXT,
			 &left);
		fputs("\033[0;7m", stdout);
		put_cell("", 1, false, &left);
	}
	fputs("\033[0m", stdout);
}

static void print_row(const struct row *row)
{
	int left = screen.columns, i;
	char buf[UNITS_SIZE];

	for (i = 0; i < TOP_COLUMNS; i++) {
		const char *text = buf;

		if (!screen.shown[i])
			continue;
		if (columns[i].kind == TEXT)
			text = row_text(row, i);
		else if (i == TOP_PID)
			snprintf(buf, sizeof(buf), "%" PRIu64, row->numbers[i]);
		else if (!row->file->known)
			text = "-";
		else
			units(buf, row->numbers[i], columns[i].kind == BYTES ? 1024 : 1000);
		put_cell(text, cell_width(i, left), columns[i].kind != TEXT, &left);
		put_cell("", 1, false, &left);
	}
}

static void print_summary(const struct row *rows, size_t num, const struct open_files *all)
{
	uint64_t ops = 0, out = 0, in = 0;
	char buf[3][UNITS_SIZE], *line;
	int left = screen.columns;
	size_t i;

	for (i = 0; i < num; i++) {
		ops += rows[i].numbers[TOP_OPS];
		out += rows[i].numbers[TOP_OUT];
		in += rows[i].numbers[TOP_IN];
	}
	line = text_printf("%zu file%s%s: %s ops/s, %s/s out, %s/s in", num,
			   num == 1 ? "" : "s", all->num_hidden ? " (own)" : "",
			   units(buf[0], ops, 1000), units(buf[1], out, 1024),
			   units(buf[2], in, 1024));
	put_cell(line, left, false, &left);
	free(line);
}

static uint64_t in_second(uint64_t then, uint64_t now, double seconds)
{
	return (now - then) / seconds + 0.5;
}

/* Prints what a cgroup that has a policy does. */
static void print_cgroup(const struct sample *before, const struct sample *now,
			 const struct cgroup *cgroup)
{
	const struct cgroup *then = cgroups_before(&before->cgroups, cgroup);
	const struct rpost_get_policy none = {}, *was = then ? &then->now : &none;
	double seconds = (now->time - before->time) / 1e9;
	char ops[UNITS_SIZE], bytes[UNITS_SIZE], *line;
	const struct rpost_get_policy *is = &cgroup->now;
	int left = screen.columns;

	line = text_printf("%s: %s ops/s, %s/s, %" PRIu64 " waits/s, %" PRIu64 " refused/s",
			   cgroup->name, units(ops, in_second(was->ops, is->ops, seconds), 1000),
			   units(bytes, in_second(was->bytes, is->bytes, seconds), 1024),
			   in_second(was->waits, is->waits, seconds),
			   in_second(was->refusals, is->refusals, seconds));
	put_cell(line, left, false, &left);
	free(line);
}

/* Goes to the begin of a line; lines count from 1. */
static void go(int line)
{
	printf("\033[%d;1H", line);
}

static void draw(const struct sample *before, const struct sample *now)
{
	size_t num = now->files.num, i;
	struct row *rows = tool_alloc(num, sizeof(*rows));
	int line = 3, left = screen.columns;

	for (i = 0; i < num; i++)
		fill_row(&rows[i], before, now, &now->files.files[i]);
	qsort(rows, num, sizeof(*rows), compare_rows);
	go(1);
	print_summary(rows, num, &now->files);
	go(2);
	print_titles();
	for (i = 0; i < num && line < screen.rows; i++) {
		go(line++);
		print_row(&rows[i]);
	}
	for (i = 0; i < now->cgroups.num && line < screen.rows; i++) {
		go(line++);
		print_cgroup(before, now, &now->cgroups.all[i]);
	}
	go(line);
	fputs("\033[J", stdout);
	if (screen.rows > 3) {
		go(screen.rows);
		put_cell("q: end   < >: sort by another column", left, false, &left);
	}
	for (i = 0; i < num; i++)
		free(rows[i].devices);
	free(rows);
}

/* ----------------------------------------------------------- loop */

/* Shows a screen until the next one is due.  Returns false if that was all. */
static bool show(const struct sample *before, const struct sample *now,
		 uint64_t until, int *sig)
{
	for (;;) {
		draw(before, now);
		if (fflush(stdout))
			return false;
		switch (wait_until(until, STDIN_FILENO, sig)) {
		case WAIT_TIME:
			return true;
		case WAIT_INPUT:
			if (!keys())
				return false;
			break;
		case WAIT_STOP:
			stop();
			/* fallthrough */
		case WAIT_RESIZE:
			measure();
			fputs("\033[2J", stdout);
			break;
		case WAIT_SIGNAL:
			return false;
		}
	}
}

static int live(uint64_t interval, unsigned long count, struct sample *before, int *sig)
{
	/* The first screen should not be long in coming. */
	uint64_t until = sample_next(before, interval < 500000000 ? interval : 500000000);
	enum wait_for what;
	struct sample now;
	unsigned long i;
	bool more;
	int status;

	while ((what = wait_until(until, -1, sig)) != WAIT_TIME) {
		if (what == WAIT_SIGNAL)
			return TOOL_FINE;
		if (what == WAIT_STOP)
			stop();
	}
	measure();
	for (i = 0, more = true; more && (!count || i < count); i++) {
		status = sample_take(&now);
		if (status)
			return status;
		more = show(before, &now, sample_next(&now, interval), sig);
		sample_free(before);
		*before = now;
	}
	return TOOL_FINE;
}

static int top(uint64_t interval, unsigned long count)
{
	struct sample before;
	int status, sig = 0;

	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &screen.normal))
		return tool_error("top: needs a terminal; see rdma-post stat -i");
	status = sample_take(&before);
	if (status)
		return status;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	wait_init(true);
	atexit(leave);
	enter();
	status = live(interval, count, &before, &sig);
	leave();
	if (status)
		tool_error("top: cannot look at the files any more");
	open_files_warn(&before.files);
	sample_free(&before);
	if (sig)
		wait_end(sig);
	return status;
}

/**
 * top_command() - show live what programs do
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int top_command(int argc, char **argv)
{
	static const struct option known[] = {
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'n' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct tool_options options = {
		.help = help, .known = known, .letters = "i:n:jh",
		.interval = 2000000000,
	};
	int status = tool_options(argc, argv, &options);

	if (status >= 0)
		return status;
	return options.json ? stat_rates(options.interval, options.count, true) :
			      top(options.interval, options.count);
}
