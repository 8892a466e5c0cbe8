// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Describes the commands of ../lib/commands.c as calls. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static struct desc descs[MAX_COMMANDS];
static unsigned int num_descs;

/* Add the fields that all commands have. */
static unsigned int add_head(struct field *fields, const struct command *cmd)
{
	const struct field head[] = {
		{ .name = "on", .offset = -1, .kind = K_ON, .reg = cmd->on },
		{ .name = "arg", .offset = -1, .kind = K_ARG,
		  .max = NUM_ARGS - 1 },
		{ .name = "size", .size = 4, .kind = K_AUTO },
		{ .name = "flags", .offset = 4, .size = 4, .kind = K_FLAGS,
		  .max = cmd->flags },
	};

	memcpy(fields, head, sizeof(head));
	return sizeof(head) / sizeof(head[0]);
}

static struct field *add_desc(const struct command *cmd, const char *name)
{
	struct field *fields = calloc(MAX_FIELDS, sizeof(*fields));
	unsigned int n = add_head(fields, cmd);
	const struct field *field;

	if (n + cmd->num_fields > MAX_FIELDS)
		abort();
	for_each_field(field, cmd) {
		if (field->kind != K_ANSWER && field->kind != K_UNUSED)
			fields[n++] = *field;
	}
	descs[num_descs++] = (struct desc) {
		.name = name, .nr = cmd->nr, .size = cmd->size,
		.weight = cmd->weight, .num_fields = n, .fields = fields,
	};
	return &fields[n - 1];
}

/* Add one destroy call for each type, so that the handle fits the type. */
static void add_destroys(const struct command *cmd)
{
	static char names[R_AH + 1][16];
	enum reg reg;

	for (reg = R_PD; reg <= R_AH; reg++) {
		snprintf(names[reg], sizeof(names[reg]), "destroy_%s",
			 reg_names[reg]);
		add_desc(cmd, names[reg])->reg = reg;
	}
}

static void __attribute__((constructor)) add_descs(void)
{
	const struct command *cmd;

	for_each_command(cmd) {
		if (cmd->nr == RPOST_IOC_DESTROY)
			add_destroys(cmd);
		else
			add_desc(cmd, cmd->name);
	}
}

unsigned int desc_count(void)
{
	return num_descs + num_others + num_blocks;
}

const struct desc *desc_get(unsigned int i)
{
	if (i < num_descs)
		return &descs[i];
	i -= num_descs;
	return i < num_others ? &others[i] : &blocks[i - num_others];
}
