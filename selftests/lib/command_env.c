// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Arguments for a harmless call of each command, and the objects that they name.
 */
#define _GNU_SOURCE
#include "command_env.h"

#define BAD_HANDLE	0x7ffffff0

int env_init(struct env *env)
{
	struct rp_end *end = &env->end;

	memset(env, 0, sizeof(*env));
	env->mem = rp_pages(ENV_BYTES);
	if (!env->mem)
		return -ENOMEM;
	RP_TRY(rp_end_init(end));
	RP_TRY(fcntl(end->channel, F_SETFL, O_NONBLOCK));
	RP_TRY(rp_create_id(end->fd, end->channel, &end->id));
	RP_TRY(rp_bind(end->fd, end->id, 0));
	return rp_create_qp(end, 0);
}

void env_close(struct env *env)
{
	rp_end_close(&env->end);
	munmap(env->mem, ENV_BYTES);
}

/* The descriptor that a command is called on. */
int env_fd(const struct env *env, const struct command *cmd)
{
	return cmd->on == R_EVENT ? env->end.channel : env->end.fd;
}

/* A queue pair that takes receives. */
static int new_qp(struct env *env)
{
	struct rp_end end = env->end;
	struct rpost_ah_attr addr;
	struct rpost_qp_attr attr;

	if (env->new_qp)
		RP_TRY(rp_destroy(end.fd, RPOST_OBJ_QP, env->new_qp));
	env->new_qp = 0;
	RP_TRY(rp_own_addr(&end, &addr));
	RP_TRY(rp_create_own(&end, RPOST_QPT_RC, 0));
	env->new_qp = end.qp;
	attr = rp_init_attr(RPOST_QPT_RC, addr.port_num);
	return rp_modify(&end, &attr);
}

/* The object or channel that stays, or 0. */
int env_own(struct env *env, enum reg reg)
{
	switch (reg) {
	case R_DEV:
		return env->end.device;
	case R_PD:
		return env->end.pd;
	case R_CQ:
		return env->end.cq.cmd.handle;
	case R_QP:
		return env->end.qp;
	case R_ID:
		return env->end.id;
	case R_EVENT:
		return env->end.channel;
	case R_COMP:
		return -1;
	default:
		return 0;
	}
}

static int new_object(struct env *env, const struct field *field,
		      uint32_t *handle)
{
	struct rp_end *end = &env->end;
	struct rpost_create_srq srq;

	switch (field->reg) {
	case R_QP:
		RP_TRY(new_qp(env));
		*handle = env->new_qp;
		return 0;
	case R_SRQ:
		RP_TRY(rp_create_srq(end->fd, end->pd, 8, &srq));
		*handle = srq.handle;
		return 0;
	case R_ID:
		RP_TRY(rp_create_id(end->fd, end->channel, handle));
		return field->give == G_BOUND ? rp_bind(end->fd, *handle, 0) : 0;
	default:
		return -EINVAL;
	}
}

static int fill_object(struct env *env, const struct field *field, void *to)
{
	uint32_t handle = BAD_HANDLE;

	if (field->give == G_OWN)
		handle = env_own(env, field->reg);
	else if (field->give != G_BAD)
		RP_TRY(new_object(env, field, &handle));
	memcpy(to, &handle, field->size);
	return 0;
}

static int fill_field(struct env *env, const struct field *field, void *to)
{
	uint64_t n = is_pointer(field) ? (uintptr_t)env->mem : field->usual;

	if (field->kind == K_REG)
		return fill_object(env, field, to);
	if (field->kind == K_SOCK && !field->optional)
		rp_addr(to, 0);
	else if (field->kind == K_GID)
		memset(to, field->usual, field->size);
	else if (field->size <= sizeof(n))
		memcpy(to, &n, field->size);
	return 0;
}

/* Leave one event on the channel. */
static int make_event(struct env *env)
{
	struct rpost_resolve_addr cmd;

	RP_TRY(env_fill(env, command_of(RPOST_CMD_RESOLVE_ADDR), &cmd));
	RP_TRY(rp_ioctl(env->end.fd, RPOST_IOC_RESOLVE_ADDR, &cmd));
	return rp_readable(env->end.channel, TEST_TIMEOUT_MS) ? 0 : -ETIME;
}

/* Fill a command's struct; what its row cannot say is here. */
int env_fill(struct env *env, const struct command *cmd, void *arg)
{
	const struct rpost_send_wr send = { .size = sizeof(send) };
	const struct rpost_recv_wr recv = { .size = sizeof(recv) };
	union {
		struct rpost_create_ah create_ah;
		struct rpost_modify_qp modify_qp;
		struct rpost_init_qp_attr init_qp_attr;
	} *any = arg;
	const struct field *field;

	memset(arg, 0, cmd->size);
	memcpy(arg, &cmd->size, sizeof(uint32_t));
	for_each_field(field, cmd)
		RP_TRY(fill_field(env, field, (char *)arg + field->offset));

	switch (_IOC_NR(cmd->nr)) {
	case RPOST_CMD_POST_SEND:
		memcpy((struct rpost_post *)arg + 1, &send, sizeof(send));
		return 0;
	case RPOST_CMD_POST_RECV:
	case RPOST_CMD_POST_SRQ_RECV:
		memcpy((struct rpost_post *)arg + 1, &recv, sizeof(recv));
		return 0;
	case RPOST_CMD_CREATE_AH:
		return rp_own_addr(&env->end, &any->create_ah.attr);
	case RPOST_CMD_MODIFY_QP:
		any->modify_qp.attr.attr_mask = RPOST_QP_STATE;
		any->modify_qp.attr.qp_state = RPOST_QPS_ERR;
		return 0;
	case RPOST_CMD_INIT_QP_ATTR:
		any->init_qp_attr.attr.qp_state = RPOST_QPS_INIT;
		return 0;
	case RPOST_CMD_GET_EVENT:
		return make_event(env);
	default:
		return 0;
	}
}
