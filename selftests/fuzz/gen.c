// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Generates programs, new ones or from others. */
#include <string.h>

#include "fuzz.h"

bool gen_faults;

/* ---------------------------------------------------------------- values */

static uint64_t boundary(void)
{
	static const uint64_t numbers[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255,
		256, 4095, 4096, 65535, 65536, 0x7fffffff, 0x80000000,
		0xffffffff, 0x100000000, 0x7fffffffffffffff, ~0ull,
	};

	return numbers[rnd(sizeof(numbers) / sizeof(numbers[0]))];
}

static uint64_t any_int(uint64_t max)
{
	switch (rnd(8)) {
	case 0:
		return boundary();
	case 1:
		return max + rnd(3) - 1;
	case 2:
		return 1ull << rnd(33);
	case 3:
		return rnd64() >> rnd(64);
	default:
		return max && max < 0xffffffff ? rnd(max + 1) : rnd(16);
	}
}

static uint64_t any_flags(uint64_t mask)
{
	uint64_t bits = 0;
	unsigned int n;

	if (one_in(20))
		return rnd64();
	for (n = rnd(4); n; n--)
		bits |= 1ull << rnd(32);
	return one_in(3) ? bits & mask : rnd64() & mask;
}

static uint64_t any_addr(void)
{
	switch (rnd(12)) {
	case 0:
		return boundary();
	case 1:
		return MEM_READONLY + rnd(0x10000);
	case 2:			/* the end of the mapping */
		return MEM_ADDR + MEM_PAGES * 4096 - rnd(4096);
	case 3:
		return ~0ull - rnd(65536);
	case 4:
		return RING_ADDR + rnd(NUM_SLOTS) * RING_STRIDE;
	case 5:
		return 0xffff888000000000 + ((uint64_t)rnd(1 << 18) << 12);
	default:
		return MEM_ADDR + rnd(MEM_PAGES) * 4096 +
		       (one_in(2) ? 0 : rnd(4096));
	}
}

static uint64_t any_sock(void)
{
	static const uint8_t usual[] = { S_V4, S_V4, S_V4, S_V6, S_ANY4, S_LOOP4 };
	uint64_t kind = one_in(3) ? rnd(NUM_SOCKS) :
				    usual[rnd(sizeof(usual))];

	return SOCK(kind, one_in(12) ? rnd(65536) : rnd(4));
}

/* ----------------------------------------------------------------- calls */

/* Returns the slots, as bits, that calls before @end set. */
static unsigned int slots_set(const struct prog *prog, unsigned int end,
			      enum reg reg)
{
	const struct call *call;
	unsigned int i, f, slots = reg == R_DEV || reg == R_GIDX ? 1 : 0;

	for (i = 0; i < end && i < prog->num_calls; i++) {
		call = &prog->calls[i];
		for (f = 0; f < call->desc->num_fields; f++) {
			if (call->desc->fields[f].kind == K_OUT &&
			    call->desc->fields[f].reg == reg &&
			    call->values[f].set)
				slots |= 1 << (call->values[f].val % NUM_SLOTS);
		}
	}
	return slots;
}

static void pick_reg(struct value *value, const struct prog *prog,
		     unsigned int at, enum reg reg)
{
	unsigned int slots, i;

	value->set = true;
	value->reg = R_NONE;
	if (one_in(40)) {
		value->val = one_in(2) ? rnd(64) : boundary();
		return;
	}
	/* Memory that is not registered. */
	if (reg == R_LKEY && one_in(4)) {
		value->val = 0;
		return;
	}
	if (one_in(60))
		reg = 1 + rnd(NUM_REGS - 1);
	slots = slots_set(prog, at, reg);
	if (!slots)
		slots = 1;
	do {
		i = rnd(NUM_SLOTS);
	} while (!(slots & (1 << i)));
	value->reg = reg;
	value->val = i;
}

static void pick_value(const struct prog *prog, unsigned int at,
		       struct call *call, unsigned int f, unsigned int slot)
{
	const struct field *field = &call->desc->fields[f];
	struct value *value = &call->values[f];

	value->set = true;
	value->reg = R_NONE;
	switch (field->kind) {
	case K_INT:
		value->val = any_int(field->max);
		break;
	case K_FLAGS:
		value->val = any_flags(field->max);
		break;
	case K_REG:
	case K_ON:
		pick_reg(value, prog, at, field->reg);
		break;
	case K_OUT:
		value->reg = field->reg;
		value->val = slot;
		break;
	case K_SOCK:
		value->val = any_sock();
		break;
	case K_GID:
		value->val = one_in(20) ? rnd(256) : rnd(NUM_GIDS);
		break;
	case K_BYTES:
		value->val = rnd(256);
		break;
	case K_ADDR:
		value->val = any_addr();
		break;
	case K_ARG:
		value->val = rnd(NUM_ARGS);
		break;
	case K_ZERO:
		value->val = one_in(2) ? 1 : rnd64();
		break;
	case K_AUTO:
		value->val = any_int(field->max);
		break;
	case K_ANSWER:
	case K_UNUSED:
		break;
	}
}

static bool rare(const struct field *field)
{
	return field->kind == K_ARG || field->kind == K_ZERO ||
	       field->kind == K_AUTO || !strcmp(field->name, "flags");
}

/*
 * Returns a value that is right more often than not, or 0.  Calls that are not
 * commands go by the field's name.
 */
static uint64_t usual_value(const struct field *field)
{
	if (field->kind == K_ADDR)
		return strcmp(field->name, "addr") ? 0 : MEM_ADDR;
	if (field->kind != K_INT && field->kind != K_FLAGS)
		return 0;
	if (!strcmp(field->name, "ms"))
		return 500;
	return strcmp(field->name, "prot") ? field->usual : 3;
}

static void usual_values(struct call *call)
{
	unsigned int f;
	uint64_t n;

	for (f = 0; f < call->desc->num_fields; f++) {
		n = usual_value(&call->desc->fields[f]);
		if (n && !one_in(8))
			call->values[f] = (struct value) { true, R_NONE, n };
	}
}

static const struct desc *pick_desc(void)
{
	unsigned int total = 0, i, n;

	for (i = 0; i < desc_count(); i++)
		total += desc_get(i)->weight;
	n = rnd(total);
	for (i = 0; n >= desc_get(i)->weight; i++)
		n -= desc_get(i)->weight;
	return desc_get(i);
}

static void make_call(const struct prog *prog, unsigned int at,
		      struct call *call)
{
	unsigned int f, slot = rnd(one_in(4) ? NUM_SLOTS : 3);

	memset(call, 0, sizeof(*call));
	call->desc = pick_desc();
	for (f = 0; f < call->desc->num_fields; f++) {
		if (!one_in(rare(&call->desc->fields[f]) ? 40 : 12) ||
		    call->desc->fields[f].kind != K_OUT) {
			if (!rare(&call->desc->fields[f]) || one_in(40))
				pick_value(prog, at, call, f, slot);
		}
	}
	usual_values(call);
	if (one_in(10))
		call->async = one_in(2) ? 1 : 1 + rnd(20);
	if (gen_faults && one_in(15))
		call->fail = 1 + rnd(one_in(3) ? 60 : 12);
}

/* -------------------------------------------------------------- programs */

static void insert_at(struct prog *prog, unsigned int at,
		      const struct call *call)
{
	if (prog->num_calls == MAX_CALLS)
		return;
	memmove(&prog->calls[at + 1], &prog->calls[at],
		(prog->num_calls - at) * sizeof(*call));
	prog->calls[at] = *call;
	prog->num_calls++;
}

static void remove_at(struct prog *prog, unsigned int at)
{
	prog->num_calls--;
	memmove(&prog->calls[at], &prog->calls[at + 1],
		(prog->num_calls - at) * sizeof(prog->calls[0]));
}

static void insert_new(struct prog *prog)
{
	unsigned int at = rnd(prog->num_calls + 1);
	struct call call;

	/* Most calls are useful only after all objects exist. */
	if (one_in(2))
		at = prog->num_calls - rnd(prog->num_calls / 3 + 1);
	make_call(prog, at, &call);
	insert_at(prog, at, &call);
}

static void change_field(struct prog *prog)
{
	unsigned int at, f, tries;
	struct call *call;

	if (!prog->num_calls)
		return;
	at = rnd(prog->num_calls);
	call = &prog->calls[at];
	if (!call->desc->num_fields)
		return;
	for (tries = 0; tries < 4; tries++) {
		f = rnd(call->desc->num_fields);
		if (!rare(&call->desc->fields[f]) || one_in(4))
			break;
	}
	if (call->values[f].set && one_in(6)) {
		call->values[f].set = false;
		call->values[f].reg = R_NONE;
		call->values[f].val = 0;
	} else if (call->desc->fields[f].kind == K_INT && one_in(3)) {
		call->values[f].set = true;
		call->values[f].val += rnd(3) - 1;
	} else if (call->desc->fields[f].kind == K_FLAGS && one_in(2)) {
		call->values[f].set = true;
		call->values[f].val ^= 1ull << rnd(26);
	} else {
		pick_value(prog, at, call, f, rnd(4));
	}
}

static void change_way(struct prog *prog)
{
	struct call *call;

	if (!prog->num_calls)
		return;
	call = &prog->calls[rnd(prog->num_calls)];
	if (gen_faults && one_in(2))
		call->fail = call->fail ? 0 : 1 + rnd(40);
	else
		call->async = call->async ? 0 : one_in(2) ? 1 : 1 + rnd(30);
}

/* Let the second thread run some calls while the first runs others. */
static void make_race(struct prog *prog)
{
	unsigned int at, n, i, times = one_in(2) ? 1 : 1 + rnd(30);

	if (prog->num_calls < 2)
		return;
	at = prog->num_calls - 1 - rnd(prog->num_calls / 2);
	n = 1 + rnd(3);
	for (i = at; i < at + n && i < prog->num_calls; i++)
		prog->calls[i].async = times;
}

static void copy_call(struct prog *prog)
{
	struct call call;

	if (!prog->num_calls)
		return;
	call = prog->calls[rnd(prog->num_calls)];
	insert_at(prog, rnd(prog->num_calls + 1), &call);
}

static void splice(struct prog *prog, const struct prog *other)
{
	unsigned int at, from, n;

	if (!other->num_calls)
		return;
	at = rnd(prog->num_calls + 1);
	from = rnd(other->num_calls);
	n = 1 + rnd(other->num_calls - from);
	if (one_in(3)) {	/* all of it, at the end */
		at = prog->num_calls;
		from = 0;
		n = other->num_calls;
	}
	while (n-- && prog->num_calls < MAX_CALLS)
		insert_at(prog, at++, &other->calls[from++]);
}

void prog_generate(struct prog *prog)
{
	unsigned int n = 4 + rnd(24);
	struct call call;

	prog->num_calls = 0;
	while (n--) {
		make_call(prog, prog->num_calls, &call);
		insert_at(prog, prog->num_calls, &call);
	}
}

void prog_mutate(struct prog *prog, const struct prog *other)
{
	do {
		switch (rnd(16)) {
		case 0 ... 3:
			insert_new(prog);
			break;
		case 4 ... 9:
			change_field(prog);
			break;
		case 10:
			change_way(prog);
			break;
		case 11:
			make_race(prog);
			break;
		case 12:
			copy_call(prog);
			break;
		case 13:
			splice(prog, other);
			break;
		default:
			if (prog->num_calls > 3)
				remove_at(prog, rnd(prog->num_calls));
		}
	} while (!one_in(3));
}
