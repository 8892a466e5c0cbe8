// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The module's tracepoints in words and in JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tool.h"
#include "trace_text.h"

/* Reasons of a REJECTED event that have a meaning for programs, see rdma/ib_cm.h. */
#define REJECTED_NO_LISTENER	8
#define REJECTED_BY_PROGRAM	28

static void state_text(const struct trace_event *event);
static void event_text(const struct trace_event *event);
static void post_text(const struct trace_event *event);
static void completion_text(const struct trace_event *event);
static void state_json(const struct trace_event *event);
static void event_json(const struct trace_event *event);
static void post_json(const struct trace_event *event);
static void completion_json(const struct trace_event *event);

static const struct {
	const char *name;
	const char *kernel_name;
	void (*text)(const struct trace_event *event);
	void (*json)(const struct trace_event *event);
} points[] = {
	{ "state", "rpost_id_move", state_text, state_json },
	{ "event", "rpost_event", event_text, event_json },
	{ "post", "rpost_post", post_text, post_json },
	{ "completion", "rpost_complete", completion_text, completion_json },
};

/* Returns the kernel's name of a tracepoint, or NULL. */
const char *trace_point(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (!strcmp(name, points[i].name))
			return points[i].kernel_name;
	return NULL;
}

/* ----------------------------------------------------------- parsing */

/* Returns a value, or NULL. */
static const char *word(const struct trace_event *event, const char *name)
{
	int i;

	for (i = 0; i < event->num_words; i++)
		if (!strcmp(event->words[i], name))
			return event->words[i] + strlen(name) + 1;
	return NULL;
}

static const char *text(const struct trace_event *event, const char *name)
{
	const char *value = word(event, name);

	return value ? value : "?";
}

static uint64_t number(const struct trace_event *event, const char *name)
{
	const char *value = word(event, name);

	return value ? strtoull(value, NULL, 0) : 0;
}

/* Returns an errno, or 0. */
static int error(const struct trace_event *event, const char *name)
{
	const char *value = word(event, name);
	int ret = value ? atoi(value) : 0;

	return ret < 0 ? -ret : 0;
}

/*
 * The module has cut the name, and put _ for odd characters. The process tells it in full
 * while it lives, unless it runs another program by now.
 */
static char *full_name(const char *opener, size_t length, int pid)
{
	char comm[64];
	size_t i;

	if (!file_line(comm, sizeof(comm), "/proc/%d/comm", pid)) {
		for (i = 0; i < length && comm[i]; i++)
			if (opener[i] != comm[i] && opener[i] != '_')
				break;
		if (i == length)
			return text_printf("%s", comm);
	}
	return text_printf("%.*s", (int)length, opener);
}

/* Returns the name of the program that has opened the file. */
static const char *program(const char *opener, int pid)
{
	static struct {
		char *opener;
		char *name;
	} cache[64], *place;
	const char *dot = strrchr(opener, '.');
	size_t length = dot ? (size_t)(dot - opener) : strlen(opener);

	place = &cache[(unsigned int)pid % ARRAY_SIZE(cache)];
	if (!place->opener || strcmp(place->opener, opener)) {
		free(place->opener);
		free(place->name);
		place->opener = text_printf("%s", opener);
		place->name = full_name(opener, length, pid);
	}
	return place->name;
}

/**
 * trace_parse() - find out what a line of the kernel says
 * @event: has the line, which is cut into words; gets the rest
 *
 * The lines of an older module have other words; they are shown as they are.
 */
void trace_parse(struct trace_event *event)
{
	char *rest = event->line->text, *sign, *next;
	size_t i;

	event->point = -1;
	if (strncmp(rest, "file=", 5))
		return;
	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (!strcmp(event->line->name, points[i].kernel_name))
			event->point = i;
	if (event->point < 0)
		return;
	while ((next = strsep(&rest, " ")) && event->num_words < TRACE_WORDS) {
		sign = strchr(next, '=');
		if (!sign)
			continue;
		*sign = '\0';
		event->words[event->num_words++] = next;
	}
	event->pid = number(event, "pid");
	event->program = program(text(event, "opener"), event->pid);
}

/* -------------------------------------------------------------- text */

static enum text_color color;

__attribute__((format(printf, 1, 2)))
static void say(const char *format, ...)
{
	va_list args;
	char *what;

	va_start(args, format);
	what = text_vprintf(format, args);
	va_end(args);
	text_color(color, what, 0);
	free(what);
}

static void state_text(const struct trace_event *event)
{
	int err = error(event, "ret");

	color = err ? TEXT_RED : TEXT_PLAIN;
	if (err)
		say("id %s: stays %s, cannot become %s: %s", text(event, "id"),
		    text(event, "from"), text(event, "to"), strerror(err));
	else
		say("id %s: from %s to %s", text(event, "id"), text(event, "from"),
		    text(event, "to"));
}

static void event_text(const struct trace_event *event)
{
	int status = atoi(text(event, "status"));

	color = status ? TEXT_RED : TEXT_GREEN;
	say("id %s: event %s", text(event, "id"), text(event, "event"));
	if (number(event, "listener"))
		say(" of listener %s", text(event, "listener"));
	if (status < 0)
		say(": %s", strerror(-status));
	else if (status == REJECTED_NO_LISTENER)
		say(": reason %d, no program listens there", status);
	else if (status == REJECTED_BY_PROGRAM)
		say(": reason %d, by the program there", status);
	else if (status)
		say(": reason %d", status);
}

static void post_text(const struct trace_event *event)
{
	const char *queue = text(event, "queue");
	int err = error(event, "ret");

	color = err ? TEXT_RED : TEXT_PLAIN;
	if (number(event, "qp"))
		say("qp %s: ", text(event, "qp"));
	else
		say("srq with handle %s: ", text(event, "handle"));
	say("posted %s", text(event, "posted"));
	if (err || number(event, "posted") != number(event, "count"))
		say(" of %s", text(event, "count"));
	say(" to the %s queue", !strcmp(queue, "recv") ? "receive" : queue);
	/* The module has this errno for a full queue alone. */
	if (err == ENOMEM)
		say(", which is full");
	else if (err)
		say(": %s", strerror(err));
}

/* Returns what a status of a completion means, or NULL. */
static const char *meaning(const char *status)
{
	static const char *const meanings[][2] = {
		{ "LOC_LEN_ERR", "more data than the buffer has room for" },
		{ "LOC_PROT_ERR", "a local key or address is wrong" },
		{ "WR_FLUSH_ERR", "the queue pair has stopped" },
		{ "REM_INV_REQ_ERR", "the peer takes no such request" },
		{ "REM_ACCESS_ERR", "the peer does not allow access there" },
		{ "REM_OP_ERR", "the peer has failed" },
		{ "RETRY_EXC_ERR", "the peer does not answer" },
		{ "RNR_RETRY_EXC_ERR", "the peer has posted no receive" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(meanings); i++)
		if (!strcmp(status, meanings[i][0]))
			return meanings[i][1];
	return NULL;
}

static void completion_text(const struct trace_event *event)
{
	const char *status = text(event, "status"), *means = meaning(status);
	bool failed = strcmp(status, "SUCCESS");
	uint64_t wr_id = number(event, "wr_id");

	color = failed ? TEXT_RED : TEXT_PLAIN;
	say("qp %s: %s ", text(event, "qp"), text(event, "opcode"));
	if (failed)
		say("failed: %s%s%s%s", status, means ? " (" : "", means ? means : "",
		    means ? ")" : "");
	else
		say("completed");
	if (number(event, "len"))
		say(", %s bytes", text(event, "len"));
	/* Most are small numbers or addresses. */
	say(wr_id < 65536 ? ", wr_id %" PRIu64 : ", wr_id %#" PRIx64, wr_id);
}

static void print_time(uint64_t time)
{
	time_t seconds = time / 1000000;
	struct tm tm;
	char buf[16];

	localtime_r(&seconds, &tm);
	strftime(buf, sizeof(buf), "%T", &tm);
	printf("%s.%06u  ", buf, (unsigned int)(time % 1000000));
}

void trace_titles(void)
{
	text_color(TEXT_BOLD, "TIME             PROGRAM              PID   FILE  WHAT", 0);
	putchar('\n');
}

void trace_event_text(const struct trace_event *event)
{
	const struct tracefs_line *line = event->line;

	if (!line->known) {
		text_put(line->text);
	} else if (event->point < 0) {
		print_time(event->time);
		color = TEXT_PLAIN;
		text_color(color, line->task, 15);
		say("  %7d      -  %s: %s", line->tid, line->name, line->text);
	} else {
		print_time(event->time);
		text_color(TEXT_PLAIN, event->program, 15);
		printf("  %7d  %5s  ", event->pid, text(event, "file"));
		points[event->point].text(event);
	}
	putchar('\n');
}

void trace_lost_text(const struct tracefs_line *line)
{
	color = TEXT_YELLOW;
	if (line->num_lost)
		say("... %lu events of CPU %d were lost ...", line->num_lost, line->cpu);
	else
		say("... events of CPU %d were lost ...", line->cpu);
	putchar('\n');
}

/* -------------------------------------------------------------- JSON */

static void error_json(const struct trace_event *event, const char *name)
{
	int err = error(event, name);

	json_optional("error", err, err);
}

static void state_json(const struct trace_event *event)
{
	json_number("id", number(event, "id"));
	json_string("from", word(event, "from"));
	json_string("to", word(event, "to"));
	error_json(event, "ret");
}

static void event_json(const struct trace_event *event)
{
	uint64_t listener = number(event, "listener");
	int status = atoi(text(event, "status"));

	json_number("id", number(event, "id"));
	json_optional("listener", listener, listener);
	json_string("name", word(event, "event"));
	error_json(event, "status");
	json_optional("reason", status > 0, status);
}

static void post_json(const struct trace_event *event)
{
	uint64_t qp = number(event, "qp");

	json_optional("qp", qp, qp);
	json_number("handle", number(event, "handle"));
	json_string("queue", word(event, "queue"));
	json_number("count", number(event, "count"));
	json_number("posted", number(event, "posted"));
	error_json(event, "ret");
}

static void completion_json(const struct trace_event *event)
{
	char wr_id[20];

	/* Many readers of JSON have no more than 53 bits. */
	snprintf(wr_id, sizeof(wr_id), "0x%" PRIx64, number(event, "wr_id"));
	json_number("qp", number(event, "qp"));
	json_number("cq", number(event, "cq"));
	json_string("wr_id", wr_id);
	json_string("opcode", word(event, "opcode"));
	json_string("status", word(event, "status"));
	json_number("bytes", number(event, "len"));
}

static void task_json(const struct tracefs_line *line)
{
	/* The kernel does not remember all names. */
	json_string("task", strcmp(line->task, "<...>") ? line->task : NULL);
	json_number("tid", line->tid);
	json_number("cpu", line->cpu);
}

void trace_event_json(const struct trace_event *event)
{
	const struct tracefs_line *line = event->line;

	json_line();
	if (event->point < 0 || !line->known) {
		json_optional("time_us", line->known, event->time);
		json_string("event", "other");
		json_string("name", line->name);
		json_string("text", line->text);
	} else {
		json_number("time_us", event->time);
		json_string("event", points[event->point].name);
		json_string("program", event->program);
		json_number("pid", event->pid);
		json_number("file", number(event, "file"));
		points[event->point].json(event);
	}
	if (line->known)
		task_json(line);
	json_end();
}

void trace_lost_json(const struct tracefs_line *line)
{
	json_line();
	json_string("event", "lost");
	json_optional("lost", line->num_lost, line->num_lost);
	json_number("cpu", line->cpu);
	json_end();
}
