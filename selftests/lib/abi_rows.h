/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every command with a way to call it without harm, for abi.c.
 */
#ifndef ABI_ROWS_H
#define ABI_ROWS_H

#include "rpost_own.h"

#define BAD_HANDLE	0x7ffffff0

/* What commands work with, and a place for their structs before a guard. */
struct env {
	struct rp_end end;	/* its id is bound and has a queue pair */
	char *arena;
	size_t arena_bytes;
	char *mem;
	struct rpost_recv_wr recv;
};

struct span {
	unsigned int offset, length;
};

/* One command: how to call it without harm, and what it says then. */
struct row {
	const char *name;
	unsigned long nr;
	unsigned int size;
	unsigned int first;	/* size in the first version, if it has grown */
	int (*fill)(struct env *env, void *arg);
	int want;
	uint32_t known_flags;
	bool makes_object;
	bool answers;
	struct span reserved[4];
};

static int fill_nothing(struct env *env, void *arg)
{
	(void)env;
	(void)arg;
	return 0;
}

static int fill_device(struct env *env, void *arg)
{
	struct rpost_query_device *cmd = arg;

	cmd->device = env->end.device;
	return 0;
}

static int fill_port(struct env *env, void *arg)
{
	struct rpost_query_port *cmd = arg;

	cmd->device = env->end.device;
	cmd->port = 1;
	return 0;
}

static int fill_destroy(struct env *env, void *arg)
{
	struct rpost_destroy *cmd = arg;

	(void)env;
	cmd->type = RPOST_OBJ_PD;
	cmd->handle = BAD_HANDLE;
	return 0;
}

static int fill_alloc_pd(struct env *env, void *arg)
{
	struct rpost_alloc_pd *cmd = arg;

	cmd->device = env->end.device;
	return 0;
}

static int fill_reg_mr(struct env *env, void *arg)
{
	struct rpost_reg_mr *cmd = arg;

	cmd->pd = env->end.pd;
	cmd->addr = (uintptr_t)env->mem;
	cmd->iova = cmd->addr;
	cmd->length = 64;
	return 0;
}

static int fill_create_cq(struct env *env, void *arg)
{
	struct rpost_create_cq *cmd = arg;

	cmd->device = env->end.device;
	cmd->cqe = 4;
	cmd->channel_fd = -1;
	return 0;
}

static int fill_cq(struct env *env, void *arg)
{
	struct rpost_poll_cq *cmd = arg;

	cmd->handle = env->end.cq.cmd.handle;
	return 0;
}

static int fill_create_id(struct env *env, void *arg)
{
	struct rpost_create_id *cmd = arg;

	cmd->channel_fd = env->end.channel;
	cmd->port_space = RPOST_PS_TCP;
	cmd->qp_type = RPOST_QPT_RC;
	return 0;
}

static int fill_bind(struct env *env, void *arg)
{
	struct rpost_bind_addr *cmd = arg;

	cmd->addr_len = sizeof(struct sockaddr_in);
	rp_addr(&cmd->addr, 0);
	return rp_create_id(env->end.fd, env->end.channel, &cmd->id);
}

static int fill_resolve_addr(struct env *env, void *arg)
{
	struct rpost_resolve_addr *cmd = arg;

	cmd->timeout_ms = 1000;
	cmd->dst_len = sizeof(struct sockaddr_in);
	rp_addr(&cmd->dst, 1);
	return rp_create_id(env->end.fd, env->end.channel, &cmd->id);
}

static int fill_resolve_route(struct env *env, void *arg)
{
	struct rpost_resolve_route *cmd = arg;

	(void)env;
	cmd->id = BAD_HANDLE;
	cmd->timeout_ms = 1000;
	return 0;
}

static int fill_listen(struct env *env, void *arg)
{
	struct rpost_listen *cmd = arg;

	return rp_create_id(env->end.fd, env->end.channel, &cmd->id);
}

/* The commands that name an id next. */
static int fill_id(struct env *env, void *arg)
{
	struct rpost_query_id *cmd = arg;

	cmd->id = env->end.id;
	return 0;
}

static int fill_no_id(struct env *env, void *arg)
{
	struct rpost_query_id *cmd = arg;

	(void)env;
	cmd->id = BAD_HANDLE;
	return 0;
}

static int fill_migrate(struct env *env, void *arg)
{
	struct rpost_migrate_id *cmd = arg;

	cmd->id = env->end.id;
	cmd->channel_fd = env->end.channel;
	return 0;
}

static int fill_create_qp(struct env *env, void *arg)
{
	struct rpost_create_qp *cmd = arg;
	int ret;

	cmd->pd = env->end.pd;
	cmd->send_cq = env->end.cq.cmd.handle;
	cmd->recv_cq = cmd->send_cq;
	cmd->max_send_wr = 1;
	cmd->max_send_sge = 1;
	ret = rp_create_id(env->end.fd, env->end.channel, &cmd->id);
	return ret ? ret : rp_bind(env->end.fd, cmd->id, 0);
}

static int fill_qp(struct env *env, void *arg)
{
	struct rpost_query_qp *cmd = arg;

	cmd->handle = env->end.qp;
	return 0;
}

static int fill_post(struct env *env, void *arg)
{
	struct rpost_post *cmd = arg;

	/* Each call gets an empty queue. */
	if (rp_destroy(env->end.fd, RPOST_OBJ_QP, env->end.qp) ||
	    rp_create_qp(&env->end, 0))
		return -EIO;
	env->recv = (struct rpost_recv_wr) { .size = sizeof(env->recv) };
	cmd->qp = env->end.qp;
	cmd->count = 1;
	cmd->wrs = (uintptr_t)&env->recv;
	cmd->wrs_size = sizeof(env->recv);
	return 0;
}

static int fill_post_send(struct env *env, void *arg)
{
	static struct rpost_send_wr wr = { .size = sizeof(wr) };
	struct rpost_post *cmd = arg;

	(void)env;
	cmd->qp = BAD_HANDLE;
	cmd->count = 1;
	cmd->wrs = (uintptr_t)&wr;
	cmd->wrs_size = sizeof(wr);
	return 0;
}

/* Leave one event on the channel. */
static int fill_event(struct env *env, void *arg)
{
	struct rpost_resolve_addr cmd = { .size = sizeof(cmd) };
	struct pollfd pfd = { .fd = env->end.channel, .events = POLLIN };
	int ret;

	(void)arg;
	ret = fill_resolve_addr(env, &cmd);
	if (!ret)
		ret = rp_ioctl(env->end.fd, RPOST_IOC_RESOLVE_ADDR, &cmd);
	if (!ret && poll(&pfd, 1, TEST_TIMEOUT_MS) != 1)
		ret = -ETIME;
	return ret;
}

/* -------------------------------------- commands of the second release */

static int fill_gids(struct env *env, void *arg)
{
	struct rpost_query_gids *cmd = arg;

	cmd->device = env->end.device;
	return 0;
}

static int fill_pkeys(struct env *env, void *arg)
{
	struct rpost_query_pkeys *cmd = arg;

	cmd->device = env->end.device;
	cmd->port = 1;
	return 0;
}

static int fill_async(struct env *env, void *arg)
{
	struct rpost_create_async_channel *cmd = arg;

	cmd->device = env->end.device;
	return 0;
}

static int fill_resize_cq(struct env *env, void *arg)
{
	struct rpost_create_cq create = { .size = sizeof(create) };
	struct rpost_resize_cq *cmd = arg;
	int ret;

	fill_create_cq(env, &create);
	ret = rp_ioctl(env->end.fd, RPOST_IOC_CREATE_CQ, &create);
	cmd->handle = create.handle;
	cmd->cqe = 8;
	return ret;
}

static int fill_create_srq(struct env *env, void *arg)
{
	struct rpost_create_srq *cmd = arg;

	cmd->pd = env->end.pd;
	cmd->max_wr = 1;
	cmd->max_sge = 1;
	return 0;
}

static int make_srq(struct env *env, uint32_t *handle)
{
	struct rpost_create_srq cmd = { .size = sizeof(cmd) };
	int ret;

	fill_create_srq(env, &cmd);
	ret = rp_ioctl(env->end.fd, RPOST_IOC_CREATE_SRQ, &cmd);
	*handle = cmd.handle;
	return ret;
}

static int fill_modify_srq(struct env *env, void *arg)
{
	struct rpost_modify_srq *cmd = arg;

	cmd->attr_mask = RPOST_SRQ_LIMIT;
	cmd->limit = 1;
	return make_srq(env, &cmd->handle);
}

static int fill_query_srq(struct env *env, void *arg)
{
	struct rpost_query_srq *cmd = arg;

	return make_srq(env, &cmd->handle);
}

static int fill_post_srq(struct env *env, void *arg)
{
	struct rpost_post *cmd = arg;

	env->recv = (struct rpost_recv_wr) { .size = sizeof(env->recv) };
	cmd->count = 1;
	cmd->wrs = (uintptr_t)&env->recv;
	cmd->wrs_size = sizeof(env->recv);
	return make_srq(env, &cmd->qp);
}

static int fill_create_ah(struct env *env, void *arg)
{
	struct rpost_create_ah *cmd = arg;

	cmd->pd = env->end.pd;
	return rp_own_addr(&env->end, &cmd->attr);
}

static int fill_modify_qp(struct env *env, void *arg)
{
	struct rpost_modify_qp *cmd = arg;

	cmd->handle = env->end.qp;
	cmd->attr.attr_mask = RPOST_QP_STATE;
	cmd->attr.qp_state = RPOST_QPS_ERR;
	return 0;
}

static int fill_init_qp_attr(struct env *env, void *arg)
{
	struct rpost_init_qp_attr *cmd = arg;

	cmd->attr.qp_state = RPOST_QPS_INIT;
	cmd->id = env->end.id;
	return 0;
}

static int fill_no_qp(struct env *env, void *arg)
{
	struct rpost_attach_mcast *cmd = arg;

	(void)env;
	cmd->qp = BAD_HANDLE;
	cmd->gid[0] = 0xff;
	cmd->gid[1] = 0x0e;
	return 0;
}

static int fill_set_option(struct env *env, void *arg)
{
	struct rpost_set_option *cmd = arg;

	cmd->level = RPOST_OPTION_ID;
	cmd->option = RPOST_OPTION_ID_TOS;
	return rp_create_id(env->end.fd, env->end.channel, &cmd->id);
}

static int fill_notify(struct env *env, void *arg)
{
	struct rpost_notify *cmd = arg;

	(void)env;
	cmd->id = BAD_HANDLE;
	cmd->event = RPOST_ASYNC_COMM_EST;
	return 0;
}

static int fill_group(struct __kernel_sockaddr_storage *addr, uint32_t *len)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };

	inet_pton(AF_INET, "239.1.2.3", &sin.sin_addr);
	memcpy(addr, &sin, sizeof(sin));
	*len = sizeof(sin);
	return 0;
}

static int fill_join(struct env *env, void *arg)
{
	struct rpost_join_mcast *cmd = arg;

	(void)env;
	cmd->id = BAD_HANDLE;
	return fill_group(&cmd->addr, &cmd->addr_len);
}

static int fill_leave(struct env *env, void *arg)
{
	struct rpost_leave_mcast *cmd = arg;

	(void)env;
	cmd->id = BAD_HANDLE;
	return fill_group(&cmd->addr, &cmd->addr_len);
}

static int fill_enter_send_ring(struct env *env, void *arg)
{
	struct rpost_enter_send_ring *cmd = arg;

	(void)env;
	cmd->qp = BAD_HANDLE;
	return 0;
}

static int fill_setup_send_ring(struct env *env, void *arg)
{
	struct rpost_setup_send_ring *cmd = arg;
	struct rp_end end = env->end;
	int ret = rp_create_own(&end, RPOST_QPT_RC, 0);

	/* A queue pair has one. */
	cmd->qp = end.qp;
	cmd->bytes = 4096;
	return ret;
}

#define FIELD(type, field) { offsetof(struct rpost_##type, field), \
			     sizeof(((struct rpost_##type *)0)->field) }
#define ROW(NAME, type, fn, result) \
	.name = #NAME, .nr = RPOST_IOC_##NAME, \
	.size = sizeof(struct rpost_##type), .fill = fill_##fn, .want = result
/* The first version ended with @last. */
#define GREW(type, last) \
	.first = offsetof(struct rpost_##type, last) + \
		 sizeof(((struct rpost_##type *)0)->last)

static const struct row rows[] = {
	{ ROW(QUERY, query, nothing, 0), .answers = true,
	  GREW(query, num_objects), .reserved = { FIELD(query, reserved) } },
	{ ROW(QUERY_DEVICES, query_devices, nothing, 0), .answers = true,
	  .reserved = { FIELD(query_devices, reserved) } },
	{ ROW(QUERY_DEVICE, query_device, device, 0), .answers = true },
	{ ROW(QUERY_PORT, query_port, port, 0), .answers = true },
	{ ROW(DESTROY, destroy, destroy, -ENOENT) },
	{ ROW(ALLOC_PD, alloc_pd, alloc_pd, 0), .answers = true,
	  .makes_object = true },
	{ ROW(REG_MR, reg_mr, reg_mr, 0), .answers = true,
	  .makes_object = true, .reserved = { FIELD(reg_mr, reserved) } },
	{ ROW(CREATE_COMP_CHANNEL, create_comp_channel, nothing, 0),
	  .answers = true,
	  .reserved = { FIELD(create_comp_channel, reserved) } },
	{ ROW(CREATE_CQ, create_cq, create_cq, 0), .answers = true,
	  GREW(create_cq, reserved), .makes_object = true,
	  .known_flags = RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE,
	  .reserved = { FIELD(create_cq, reserved),
			FIELD(create_cq, reserved2) } },
	{ ROW(ARM_CQ, arm_cq, cq, 0), .known_flags = RPOST_ARM_SOLICITED,
	  .reserved = { FIELD(arm_cq, reserved) } },
	{ ROW(POLL_CQ, poll_cq, cq, 0), .answers = true },
	{ ROW(CREATE_EVENT_CHANNEL, create_event_channel, nothing, 0),
	  .answers = true,
	  .reserved = { FIELD(create_event_channel, reserved) } },
	{ ROW(CREATE_ID, create_id, create_id, 0), .answers = true,
	  .makes_object = true },
	{ ROW(BIND_ADDR, bind_addr, bind, 0) },
	{ ROW(RESOLVE_ADDR, resolve_addr, resolve_addr, 0) },
	{ ROW(RESOLVE_ROUTE, resolve_route, resolve_route, -ENOENT) },
	{ ROW(QUERY_ID, query_id, id, 0), .answers = true,
	  GREW(query_id, dgid),
	  .reserved = { FIELD(query_id, reserved) } },
	{ ROW(LISTEN, listen, listen, 0) },
	{ ROW(CONNECT, connect, no_id, -ENOENT), GREW(connect, param),
	  .reserved = { FIELD(connect, reserved),
			FIELD(connect, param.reserved) } },
	{ ROW(ACCEPT, accept, no_id, -ENOENT), GREW(accept, param),
	  .reserved = { FIELD(accept, reserved), FIELD(accept, param.reserved),
			FIELD(accept, reserved2) } },
	{ ROW(REJECT, reject, no_id, -ENOENT), GREW(reject, private_data),
	  .reserved = { FIELD(reject, reserved) } },
	{ ROW(DISCONNECT, disconnect, id, -ENOTCONN),
	  .reserved = { FIELD(disconnect, reserved) } },
	{ ROW(MIGRATE_ID, migrate_id, migrate, 0) },
	{ ROW(CREATE_QP, create_qp, create_qp, 0), .answers = true,
	  GREW(create_qp, reserved), .makes_object = true, .known_flags = RPOST_QP_SIG_ALL,
	  .reserved = { FIELD(create_qp, reserved) } },
	{ ROW(QUERY_QP, query_qp, qp, 0), .answers = true,
	  GREW(query_qp, reserved) },
	{ ROW(POST_SEND, post, post_send, -ENOENT) },
	{ ROW(POST_RECV, post, post, 0), .answers = true },
	{ ROW(GET_EVENT, get_event, event, 0), .answers = true,
	  GREW(get_event, param) },
	{ ROW(MODIFY_QP, modify_qp, modify_qp, 0),
	  .reserved = { FIELD(modify_qp, reserved),
			FIELD(modify_qp, attr.reserved) } },
	{ ROW(QUERY_GIDS, query_gids, gids, 0), .answers = true },
	{ ROW(QUERY_PKEYS, query_pkeys, pkeys, 0), .answers = true },
	{ ROW(RESIZE_CQ, resize_cq, resize_cq, 0), .answers = true,
	  GREW(resize_cq, reserved),
	  .reserved = { FIELD(resize_cq, reserved),
			FIELD(resize_cq, reserved2) } },
	{ ROW(CREATE_SRQ, create_srq, create_srq, 0), .answers = true,
	  .makes_object = true, .reserved = { FIELD(create_srq, reserved) } },
	{ ROW(MODIFY_SRQ, modify_srq, modify_srq, 0) },
	{ ROW(QUERY_SRQ, query_srq, query_srq, 0), .answers = true },
	{ ROW(POST_SRQ_RECV, post, post_srq, 0), .answers = true },
	{ ROW(CREATE_AH, create_ah, create_ah, 0), .answers = true,
	  .makes_object = true,
	  .reserved = { FIELD(create_ah, attr.reserved) } },
	{ ROW(ATTACH_MCAST, attach_mcast, no_qp, -ENOENT) },
	{ ROW(DETACH_MCAST, attach_mcast, no_qp, -ENOENT) },
	{ ROW(CREATE_ASYNC_CHANNEL, create_async_channel, async, 0),
	  .answers = true },
	{ ROW(SET_OPTION, set_option, set_option, 0),
	  .reserved = { FIELD(set_option, reserved) } },
	{ ROW(NOTIFY, notify, notify, -ENOENT) },
	{ ROW(ESTABLISH, establish, no_id, -ENOENT),
	  .reserved = { FIELD(establish, reserved) } },
	{ ROW(INIT_QP_ATTR, init_qp_attr, init_qp_attr, 0), .answers = true,
	  .reserved = { FIELD(init_qp_attr, reserved) } },
	{ ROW(JOIN_MCAST, join_mcast, join, -ENOENT),
	  .reserved = { FIELD(join_mcast, reserved) } },
	{ ROW(LEAVE_MCAST, leave_mcast, leave, -ENOENT) },
	{ ROW(SETUP_SEND_RING, setup_send_ring, setup_send_ring, 0),
	  .answers = true },
	{ ROW(ENTER_SEND_RING, enter_send_ring, enter_send_ring, -ENOENT),
	  .reserved = { FIELD(enter_send_ring, reserved) } },
};

#endif /* ABI_ROWS_H */
