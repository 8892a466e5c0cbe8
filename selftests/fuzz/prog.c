// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Prints programs as text, and parses them. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

const char * const reg_names[NUM_REGS] = {
	[R_FILE] = "f", [R_PD] = "pd", [R_MR] = "mr", [R_CQ] = "cq",
	[R_QP] = "qp", [R_ID] = "id", [R_SRQ] = "srq", [R_AH] = "ah",
	[R_COMP] = "cc", [R_EVENT] = "ec", [R_ASYNC] = "ac", [R_DEV] = "dev",
	[R_LKEY] = "lkey", [R_RKEY] = "rkey", [R_QPN] = "qpn", [R_OFF] = "off",
	[R_LEN] = "len", [R_RING] = "ring", [R_PORT] = "port",
	[R_GIDX] = "gix",
};

const char * const sock_names[NUM_SOCKS] = {
	"none", "v4", "v6", "any4", "any6", "loop4", "nowhere4", "nowhere6",
	"mcast4", "mcast6", "ib", "ibmcast", "unix",
};

struct text {
	char *to;
	size_t size, len;
};

static void add(struct text *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->to + t->len, t->size - t->len, format, args);
	va_end(args);
	if (n > 0)
		t->len += n;
	if (t->len >= t->size)
		t->len = t->size - 1;
}

static void print_value(struct text *t, const struct field *field,
			const struct value *value)
{
	add(t, " %s=%s", field->name, field->kind == K_OUT ? ">" : "");
	if (value->reg && value->reg < NUM_REGS)
		add(t, "%s%u", reg_names[value->reg], (unsigned int)value->val);
	else if (field->kind == K_SOCK && (value->val & 0xff) < NUM_SOCKS)
		add(t, "%s:%u", sock_names[value->val & 0xff],
		    (unsigned int)(value->val >> 8));
	else if (value->val < 1024)
		add(t, "%u", (unsigned int)value->val);
	else
		add(t, "0x%llx", (unsigned long long)value->val);
}

/* Returns the length of the text without the NUL. */
unsigned int prog_print(const struct prog *prog, char *text, size_t size)
{
	struct text t = { text, size, 0 };
	const struct call *call;
	unsigned int i, f;

	text[0] = '\0';
	for (i = 0; i < prog->num_calls; i++) {
		call = &prog->calls[i];
		if (call->async == 1)
			add(&t, "& ");
		else if (call->async)
			add(&t, "&%u ", call->async);
		add(&t, "%s", call->desc->name);
		for (f = 0; f < call->desc->num_fields; f++) {
			if (call->values[f].set)
				print_value(&t, &call->desc->fields[f],
					    &call->values[f]);
		}
		if (call->fail)
			add(&t, " !%u", call->fail);
		add(&t, "\n");
	}
	return t.len;
}

static const struct desc *find_desc(const char *name)
{
	unsigned int i;

	for (i = 0; i < desc_count(); i++) {
		if (!strcmp(desc_get(i)->name, name))
			return desc_get(i);
	}
	return NULL;
}

static bool parse_sock(struct value *value, const char *text)
{
	const char *colon = strchr(text, ':');
	unsigned int i;

	for (i = 0; colon && i < NUM_SOCKS; i++) {
		if (strlen(sock_names[i]) == (size_t)(colon - text) &&
		    !strncmp(sock_names[i], text, colon - text)) {
			value->val = SOCK(i, strtoul(colon + 1, NULL, 0));
			return true;
		}
	}
	return false;
}

static bool parse_reg(struct value *value, const char *text)
{
	size_t letters = strcspn(text, "0123456789");
	unsigned int i;

	for (i = 1; i < NUM_REGS; i++) {
		if (strlen(reg_names[i]) == letters &&
		    !strncmp(reg_names[i], text, letters)) {
			value->reg = i;
			value->val = strtoul(text + letters, NULL, 10) %
				     NUM_SLOTS;
			return true;
		}
	}
	return false;
}

static int parse_field(struct call *call, char *word)
{
	char *text = strchr(word, '=');
	struct value *value;
	unsigned int i;
	char *end;

	if (!text)
		return -1;
	*text++ = '\0';
	for (i = 0; i < call->desc->num_fields; i++) {
		if (!strcmp(call->desc->fields[i].name, word))
			break;
	}
	if (i == call->desc->num_fields)
		return -1;
	value = &call->values[i];
	value->set = true;
	if (*text == '>')
		text++;
	if (call->desc->fields[i].kind == K_SOCK && parse_sock(value, text))
		return 0;
	if (parse_reg(value, text))
		return 0;
	value->val = strtoull(text, &end, 0);
	return *end ? -1 : 0;
}

static int parse_line(struct call *call, char *line)
{
	char *word, *save;

	memset(call, 0, sizeof(*call));
	word = strtok_r(line, " ", &save);
	if (word && *word == '&') {
		call->async = word[1] ? strtoul(word + 1, NULL, 10) : 1;
		word = strtok_r(NULL, " ", &save);
	}
	call->desc = word ? find_desc(word) : NULL;
	if (!call->desc)
		return -1;
	while ((word = strtok_r(NULL, " ", &save))) {
		if (*word == '!')
			call->fail = strtoul(word + 1, NULL, 10);
		else if (parse_field(call, word))
			return -1;
	}
	return 0;
}

/*
 * Returns 0, or the number of the line that cannot be parsed.  '#' begins a
 * comment.
 */
int prog_parse(struct prog *prog, const char *text)
{
	char *copy = strdup(text), *line, *save;
	int n = 0, ret = 0;

	prog->num_calls = 0;
	for (line = strtok_r(copy, "\n", &save); line && !ret;
	     line = strtok_r(NULL, "\n", &save)) {
		n++;
		if (*line == '#')
			continue;
		if (prog->num_calls == MAX_CALLS ||
		    parse_line(&prog->calls[prog->num_calls], line))
			ret = n;
		else
			prog->num_calls++;
	}
	free(copy);
	return ret;
}
