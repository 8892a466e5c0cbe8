// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: why RDMA does not work here, and what to do. */
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

static const struct {
	const char *name;
	void (*run)(struct doctor *doc);
	enum doctor_need needs;
} checks[] = {
	{ "module", check_module, NEED_NOTHING },
	{ "node", check_node, NEED_MODULE },
	{ "device", check_devices, NEED_NODE },
	{ "port", check_ports, NEED_DEVICE },
	{ "limits", check_limits, NEED_NOTHING },
	{ "library", check_library, NEED_NOTHING },
	{ "loopback", check_loopback, NEED_MEMORY },
	{ "program", check_program, NEED_NOTHING },
	{ "peer", check_peer, NEED_NOTHING },
};

static const struct {
	const char *name;
	const char *mark;
	enum text_color color;
} statuses[] = {
	[DOCTOR_OK] = { "ok", "ok", TEXT_GREEN },
	[DOCTOR_NOTE] = { "note", "note", TEXT_YELLOW },
	[DOCTOR_PROBLEM] = { "problem", "PROBLEM", TEXT_RED },
	[DOCTOR_UNKNOWN] = { "unknown", "unknown", TEXT_YELLOW },
	[DOCTOR_SKIPPED] = { "skipped", "skipped", TEXT_PLAIN },
};

static void help(void)
{
	puts("Usage: rdma-post doctor [OPTION...]\n\n"
	     "Looks for what keeps programs from using RDMA over " RPOST_DEVICE_PATH ", and\n"
	     "says what to do. Run it as the user who has the trouble, and where the trouble\n"
	     "is, for instance in the container; as root it can read the kernel's log, too.\n\n"
	     "  -p, --program FILE   which libraries rdma-post-run would give this program\n"
	     "  -t, --to HOST[:PORT] is this host reachable by RDMA; does a program listen\n"
	     "  -j, --json           print JSON\n"
	     "  -q, --quiet          only what is not all right\n"
	     "  -h, --help           print this\n\n"
	     "Exit status: 0 without a problem, 1 with, 2 for wrong usage or failure");
}

static void print_more(const char *label, const char *text)
{
	if (!text)
		return;
	printf("         %-4s ", label);
	text_put(text);
	putchar('\n');
}

static void print_finding(const struct finding *f)
{
	text_color(statuses[f->status].color, statuses[f->status].mark, 8);
	putchar(' ');
	if (f->object) {
		text_color(f->status == DOCTOR_PROBLEM ? TEXT_BOLD : TEXT_PLAIN,
			   f->object, 0);
		fputs(": ", stdout);
	}
	text_put(f->what);
	printf(" [%s]\n", f->check);
	print_more("why:", f->why);
	print_more("try:", f->advice);
}

/* Does the user want to see it? */
static bool is_wanted(const struct doctor *doc, enum doctor_status status)
{
	return !doc->quiet || (status != DOCTOR_OK && status != DOCTOR_SKIPPED);
}

/* Takes the strings of a finding over. Text comes at once: what follows may take long. */
void doctor_report(struct doctor *doc, struct finding finding)
{
	doc->findings = tool_grow(doc->findings, doc->num,
				  sizeof(*doc->findings));
	doc->findings[doc->num++] = finding;
	if (!doc->json && is_wanted(doc, finding.status)) {
		print_finding(&finding);
		fflush(stdout);
	}
}

/* Says that a check, of an object, needs what is not there. Takes the object over. */
void doctor_skip(struct doctor *doc, const char *check, char *object)
{
	doctor_report(doc, (struct finding){
		.check = check,
		.status = DOCTOR_SKIPPED,
		.object = object,
		.what = text_printf("not looked at, because of the problem above"),
	});
}

bool doctor_in_container(void)
{
	return file_exists("/run/.containerenv") || file_exists("/.dockerenv") ||
	       file_exists("/run/systemd/container");
}

static size_t count(const struct doctor *doc, enum doctor_status status)
{
	size_t i, n = 0;

	for (i = 0; i < doc->num; i++)
		n += doc->findings[i].status == status;
	return n;
}

static void print_json(const struct doctor *doc)
{
	size_t i;

	json_object(NULL);
	json_string("version", TOOL_VERSION);
	json_number("problems", count(doc, DOCTOR_PROBLEM));
	json_array("findings");
	for (i = 0; i < doc->num; i++) {
		const struct finding *f = &doc->findings[i];

		json_object(NULL);
		json_string("check", f->check);
		json_string("status", statuses[f->status].name);
		json_string("object", f->object);
		json_string("what", f->what);
		json_string("why", f->why);
		json_string("try", f->advice);
		json_end();
	}
	json_end();
	json_end();
}

static void print_summary(const struct doctor *doc)
{
	size_t problems = count(doc, DOCTOR_PROBLEM);
	size_t notes = count(doc, DOCTOR_NOTE);

	if (problems)
		printf("%zu problem%s", problems, problems == 1 ? "" : "s");
	else
		printf("no problem");
	printf(", %zu note%s, %zu all right\n", notes, notes == 1 ? "" : "s",
	       count(doc, DOCTOR_OK));
}

static void run_checks(struct doctor *doc)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		if (doc->has >= checks[i].needs)
			checks[i].run(doc);
		else
			doctor_skip(doc, checks[i].name, text_printf("%s", checks[i].name));
	}
}

static void release(struct doctor *doc)
{
	size_t i;

	for (i = 0; i < doc->num; i++) {
		free(doc->findings[i].object);
		free(doc->findings[i].what);
		free(doc->findings[i].why);
		free(doc->findings[i].advice);
	}
	free(doc->findings);
	free(doc->libs);
	rdma_devs_free(&doc->devs);
}

/**
 * doctor_command() - look for what is wrong
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int doctor_command(int argc, char **argv)
{
	static const struct option known[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "program", required_argument, NULL, 'p' },
		{ "to", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct tool_options options = {
		.help = help, .known = known, .letters = "jqp:t:h",
	};
	int status = tool_options(argc, argv, &options);
	struct doctor doc = {
		.program = options.program,
		.peer = options.peer,
		.json = options.json,
		.quiet = options.quiet,
	};

	if (status >= 0)
		return status;
	if (doc.peer && !doctor_peer_is_valid(doc.peer)) {
		tool_error("doctor: %s: not HOST, HOST:PORT or [ADDRESS]:PORT", doc.peer);
		return tool_usage("doctor");
	}
	rdma_devs_get(&doc.devs);
	run_checks(&doc);
	if (options.json)
		print_json(&doc);
	else if (!options.quiet)
		print_summary(&doc);
	status = count(&doc, DOCTOR_PROBLEM) ? TOOL_FINDINGS : TOOL_FINE;
	release(&doc);
	return status;
}
