// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One row for each command:
 *
 *   ROW(NAME, number, weight, result, fields...)
 *
 * NAME:   as in RPOST_CMD_NAME
 * number: as published
 * weight: how often the fuzzer calls it
 * result: of a call without harm: struct field says what such a call is
 * fields: all but size and flags, in the struct's order, with their bytes
 *
 * EVENT_ROW is the row of a command whose result is an event.
 *
 * A command that is in rdma_post_abi.h, but not in kmod/core/commands.h or not here,
 * does not compile.  Names, bytes and order of the fields are the layout as it
 * was published: abi tests that they follow each other without a gap.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "commands.h"

#define COMMAND(nr, name, type, first, size, flags, on)			\
	typedef struct rpost_##type ARG_##nr;				\
	static const char NAME_##nr[] = #name;				\
	enum { SIZE_##nr = (size), FIRST_##nr = (first),		\
	       FLAGS_##nr = (flags), ON_##nr = (on) };
/* The rows of posts are of one work request without entries. */
#define ONE(name, type_wr)						\
	struct rpost_##name##_one {					\
		uint32_t size, flags, qp, reserved;			\
		struct rpost_##type_wr wr;				\
	};
ONE(post_send, send_wr)
ONE(post_recv, recv_wr)
ONE(post_srq_recv, recv_wr)

#define RPOST_COMMAND(...)		COMMAND(__VA_ARGS__, R_FILE)
#define RPOST_POST_COMMAND(nr, name, type, first, size, flags)		\
	COMMAND(nr, name, name##_one, sizeof(struct rpost_##name##_one), \
		sizeof(struct rpost_##name##_one), flags, R_FILE)
#define RPOST_CHANNEL_COMMAND(...)	COMMAND(__VA_ARGS__, R_EVENT)
#include "../../kmod/core/commands.h"

/* Each row is in a function, so that S can be another struct in each. */
#define ROW(NR, ...)		COMMAND_ROW(NR, false, __VA_ARGS__)
#define EVENT_ROW(NR, ...)	COMMAND_ROW(NR, true, __VA_ARGS__)
#define COMMAND_ROW(NR, event_, number, weight_, result, ...)		\
static const struct command *row_##NR(void)				\
{									\
	typedef ARG_##NR S;						\
	static const struct field fields[] = { __VA_ARGS__ };		\
	static const struct command row = {				\
		.name = NAME_##NR, .nr = RPOST_IOC_##NR,		\
		.on = (enum reg)ON_##NR, .size = SIZE_##NR,		\
		.first = FIRST_##NR, .flags = FLAGS_##NR,		\
		.want = (result), .event = (event_),			\
		.weight = (weight_),					\
		.num_fields = sizeof(fields) / sizeof(fields[0]),	\
		.fields = fields,					\
	};								\
									\
	_Static_assert(RPOST_IOC_##NR == 0xbd00 + (number), #NR);	\
	return &row;							\
}

/* Values that a field refuses, and by which error. */
#define BAD(err, ...)							\
	.error = -(err), .bad = { __VA_ARGS__ },			\
	.num_bad = sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t)
#define NOT_READ(...)	.error = 0

#define BYTES_OF(f)	sizeof(((S *)0)->f)
/* @bytes, or an error if that is not the field's size. */
#define EXACTLY(f, bytes) \
	((bytes) + 0 * sizeof(char[BYTES_OF(f) == (bytes) ? 1 : -1]))
#define F(f, bytes, ...) \
	{ .name = #f, .offset = offsetof(S, f), .size = bytes, __VA_ARGS__ }
#define FIX(f, bytes, ...)	F(f, EXACTLY(f, bytes), __VA_ARGS__)

#define NUM(f, bytes, m, ...) \
	FIX(f, bytes, .kind = K_INT, .max = m, ##__VA_ARGS__)
#define U8(f, m, ...)		NUM(f, 1, m, ##__VA_ARGS__)
#define U16(f, m, ...)		NUM(f, 2, m, ##__VA_ARGS__)
#define U32(f, m, ...)		NUM(f, 4, m, ##__VA_ARGS__)
#define U64(f, m, ...)		NUM(f, 8, m, ##__VA_ARGS__)
#define FLAGS(f, m, ...) \
	FIX(f, 4, .kind = K_FLAGS, .max = m, ##__VA_ARGS__)
#define AUTO(f, bytes, m, ...) \
	FIX(f, bytes, .kind = K_AUTO, .max = m, ##__VA_ARGS__)
#define IN(f, r, ...) \
	FIX(f, 4, .kind = K_REG, .reg = r, ##__VA_ARGS__)
/* 1000000: a number that no device has got yet. */
#define DEVICE(f) \
	IN(f, R_DEV, BAD(ENODEV, 0, 1000000, INT32_MAX, 0x80000000, UINT32_MAX))
#define OUT(f, r)		FIX(f, 4, .kind = K_OUT, .reg = r)
#define OUT64(f, r)		FIX(f, 8, .kind = K_OUT, .reg = r)
#define ANSWER(f, bytes)	FIX(f, bytes, .kind = K_ANSWER)
#define SOCK(f, ...)		FIX(f, 128, .kind = K_SOCK, ##__VA_ARGS__)
#define SOCK_LEN(f, ...)	AUTO(f, 4, 128, ##__VA_ARGS__)
#define GID(f, ...)		FIX(f, 16, .kind = K_GID, ##__VA_ARGS__)
#define BYTES(f)		FIX(f, 256, .kind = K_BYTES)
#define ADDR(f, ...)		FIX(f, 8, .kind = K_ADDR, ##__VA_ARGS__)
#define ZERO(f, ...)		F(f, BYTES_OF(f), .kind = K_ZERO, ##__VA_ARGS__)
/* Answers of which only the end is fixed. */
#define ANSWERS(f, last)						\
	F(f, offsetof(S, last) + BYTES_OF(last) - offsetof(S, f),	\
	  .kind = K_ANSWER)

#define IPV4	sizeof(struct sockaddr_in)

#define CONN_PARAM							\
	IN(param.qp_num, R_QPN), U8(param.responder_resources, 16),	\
	U8(param.initiator_depth, 16), U8(param.flow_control, 1),	\
	U8(param.retry_count, 8), U8(param.rnr_retry_count, 8),		\
	U8(param.srq, 1), U8(param.private_data_len, 255),		\
	ZERO(param.reserved), BYTES(param.private_data),		\
	U32(ece.vendor_id, 2), U32(ece.attr_mod, 2)

/* @bad is BAD, or NOT_READ if a call without harm does not look at the address. */
#define AH_ATTR(f, bad, ...)						\
	GID(f.dgid), U32(f.flow_label, 0x100000), U16(f.dlid, 2),	\
	FIX(f.sgid_index, 1, .kind = K_REG, .reg = R_GIDX, bad(EINVAL, 255)), \
	U8(f.hop_limit, 255), U8(f.traffic_class, 255), U8(f.sl, 16),	\
	U8(f.src_path_bits, 1), U8(f.static_rate, 20),			\
	U8(f.is_global, 2, bad(EINVAL, 2)), U8(f.port_num, 2, bad(EINVAL, 0, 2, 255)), \
	ZERO(f.reserved, ##__VA_ARGS__)

#define QP_ATTR(draining)						\
	FLAGS(attr.attr_mask, 0x3ffffff), U32(attr.qp_state, 7),	\
	U32(attr.cur_qp_state, 7), U32(attr.path_mtu, 6),		\
	U32(attr.path_mig_state, 3), U32(attr.qkey, 0),			\
	U32(attr.rq_psn, 0x1000000), U32(attr.sq_psn, 0x1000000),	\
	IN(attr.dest_qp_num, R_QPN), FLAGS(attr.access, 0x10030f),	\
	U32(attr.rate_limit, 2), U16(attr.pkey_index, 2),		\
	U16(attr.alt_pkey_index, 2), AH_ATTR(attr.ah, NOT_READ, .optional = true), \
	AH_ATTR(attr.alt_ah, NOT_READ, .optional = true),				\
	U8(attr.en_sqd_async_notify, 1),				\
	FIX(attr.sq_draining, 1, .kind = draining),			\
	U8(attr.max_rd_atomic, 17), U8(attr.max_dest_rd_atomic, 17),	\
	U8(attr.min_rnr_timer, 32), U8(attr.port_num, 2),		\
	U8(attr.timeout, 32), U8(attr.retry_cnt, 8), U8(attr.rnr_retry, 8), \
	U8(attr.alt_port_num, 2), U8(attr.alt_timeout, 32), ZERO(attr.reserved)

#define POST(r, which)							\
	IN(qp, r, .give = which), ZERO(reserved),			\
	F(wr, BYTES_OF(wr), .kind = K_UNUSED)

ROW(QUERY, 0x00, 1, 0,
    ANSWER(abi_version, 4), ANSWER(num_devices, 4), ANSWER(features, 8),
    ANSWER(max_wr_bytes, 4), ANSWER(num_objects, 4), ANSWER(num_refused, 4),
    ZERO(reserved))
ROW(QUERY_DEVICES, 0x01, 1, 0,
    ADDR(devices), U32(count, 4, .usual = 4, .out = true), ZERO(reserved))
ROW(QUERY_DEVICE, 0x02, 1, 0,
    DEVICE(device), ANSWERS(phys_port_cnt, reserved),
     ANSWERS(index, reserved2))
ROW(QUERY_PORT, 0x03, 1, 0,
    DEVICE(device), U32(port, 2, .usual = 1, BAD(EINVAL, 0, 256, 257, UINT32_MAX)),
    ANSWERS(state, reserved))
ROW(DESTROY, 0x04, 2, -ENOENT,
    AUTO(type, 4, 8, .usual = RPOST_OBJ_PD), IN(handle, R_PD, .give = G_BAD))
ROW(ALLOC_PD, 0x05, 3, 0,
    DEVICE(device), OUT(handle, R_PD))
ROW(REG_MR, 0x06, 6, 0,
    IN(pd, R_PD), FLAGS(access, 0x10034f, .usual = 0xf), ADDR(addr),
    U64(length, 0x40000, .usual = 0x10000), AUTO(iova, 8, 0),
    OUT(handle, R_MR), OUT(lkey, R_LKEY), OUT(rkey, R_RKEY), ZERO(fd))
ROW(CREATE_COMP_CHANNEL, 0x07, 2, 0,
    OUT(fd, R_COMP), ZERO(reserved))
ROW(CREATE_CQ, 0x08, 4, 0,
    DEVICE(device), U32(cqe, 256, .usual = 32, BAD(EINVAL, 0, 1 << 30, UINT32_MAX)),
    U32(comp_vector, 2, BAD(EINVAL, UINT32_MAX)),
    IN(channel_fd, R_COMP, .optional = true), U64(user_data, 8),
    OUT64(mmap_offset, R_OFF), OUT(mmap_size, R_LEN), ANSWER(entries_offset, 4),
    OUT(handle, R_CQ), ZERO(reserved), ANSWER(ring_offset, 4), ZERO(reserved2),
    ANSWER(shared_page, 8))
ROW(ARM_CQ, 0x09, 4, 0,
    IN(handle, R_CQ), ZERO(reserved))
ROW(POLL_CQ, 0x0a, 4, 0,
    IN(handle, R_CQ), ZERO(reserved))
ROW(CREATE_EVENT_CHANNEL, 0x0b, 2, 0,
    OUT(fd, R_EVENT), ZERO(reserved))
ROW(CREATE_ID, 0x0c, 5, 0,
    IN(channel_fd, R_EVENT),
    U32(port_space, RPOST_PS_IB, .usual = RPOST_PS_TCP),
    U32(qp_type, 4, .usual = RPOST_QPT_RC), OUT(handle, R_ID))
ROW(BIND_ADDR, 0x0d, 4, 0,
    IN(id, R_ID, .give = G_NEW), SOCK_LEN(addr_len, .usual = IPV4), SOCK(addr))
EVENT_ROW(RESOLVE_ADDR, 0x0e, 5, 0,
    IN(id, R_ID, .give = G_NEW), U32(timeout_ms, 2000, .usual = 1000),
    SOCK_LEN(src_len), SOCK_LEN(dst_len, .usual = IPV4),
    SOCK(src, .optional = true), SOCK(dst))
EVENT_ROW(RESOLVE_ROUTE, 0x0f, 5, -ENOENT,
    IN(id, R_ID, .give = G_BAD), U32(timeout_ms, 2000, .usual = 1000))
ROW(QUERY_ID, 0x10, 2, 0,
    IN(id, R_ID), ANSWERS(state, num_paths), ZERO(reserved), ANSWERS(src, dgid),
    ANSWER(paths, 128))
ROW(LISTEN, 0x11, 4, 0,
    IN(id, R_ID, .give = G_BOUND), U32(backlog, 8, .usual = 4))
EVENT_ROW(CONNECT, 0x12, 6, -ENOENT,
    IN(id, R_ID, .give = G_BAD), ZERO(reserved), CONN_PARAM)
EVENT_ROW(ACCEPT, 0x13, 6, -ENOENT,
    IN(id, R_ID, .give = G_BAD), ZERO(reserved), CONN_PARAM, U32(qkey, 0),
    ZERO(reserved2))
ROW(REJECT, 0x14, 3, -ENOENT,
    IN(id, R_ID, .give = G_BAD), U32(private_data_len, 256),
    BYTES(private_data), U32(reason, 64), ZERO(reserved))
EVENT_ROW(DISCONNECT, 0x15, 3, -ENOTCONN,
    IN(id, R_ID), ZERO(reserved))
ROW(CREATE_QP, 0x16, 6, 0,
    IN(id, R_ID, .give = G_BOUND, .optional = true), IN(pd, R_PD),
    IN(send_cq, R_CQ), IN(recv_cq, R_CQ), U32(max_send_wr, 64, .usual = 8),
    U32(max_recv_wr, 64, .usual = 8), U32(max_send_sge, 4, .usual = 2),
    U32(max_recv_sge, 4, .usual = 2), U32(max_inline_data, 1024, .usual = 64),
    OUT(handle, R_QP), OUT(qp_num, R_QPN), ZERO(reserved),
    U32(qp_type, 4, .usual = RPOST_QPT_RC), IN(srq, R_SRQ, .optional = true),
    U64(user_data, 8))
ROW(QUERY_QP, 0x17, 2, 0,
    IN(handle, R_QP), ANSWERS(qp_type, reserved), ANSWER(attr, 128))
ROW(POST_SEND, 0x18, 8, -ENOENT, POST(R_QP, G_BAD))
ROW(POST_RECV, 0x19, 6, 1, POST(R_QP, G_NEW))
ROW(MIGRATE_ID, 0x1a, 3, 0,
    IN(id, R_ID), IN(channel_fd, R_EVENT))
ROW(MODIFY_QP, 0x1b, 10, 0,
    IN(handle, R_QP), ZERO(reserved), QP_ATTR(K_UNUSED))
ROW(QUERY_GIDS, 0x1c, 2, 0,
    DEVICE(device), U32(port, 2, .usual = 1, BAD(EINVAL, 256, 257, UINT32_MAX)),
    U32(first, 1024, BAD(EINVAL, INT32_MAX, UINT32_MAX)),
    U32(count, 64, .usual = 4, .out = true), ADDR(gids))
ROW(QUERY_PKEYS, 0x1d, 2, 0,
    DEVICE(device), U32(port, 2, .usual = 1, BAD(EINVAL, 0, 256, 257, UINT32_MAX)),
    U32(first, 64, BAD(EINVAL, 0x10000, UINT32_MAX)),
    U32(count, 64, .usual = 4, .out = true), ADDR(pkeys))
ROW(RESIZE_CQ, 0x1e, 4, 0,
    IN(handle, R_CQ), U32(cqe, 256, .usual = 32, BAD(EINVAL, 0, 1 << 30, UINT32_MAX)),
    OUT64(mmap_offset, R_OFF),
    OUT(mmap_size, R_LEN), ZERO(reserved), ANSWER(ring_offset, 4),
    ZERO(reserved2), ANSWER(shared_page, 8))
ROW(CREATE_SRQ, 0x1f, 3, 0,
    IN(pd, R_PD), U32(max_wr, 64, .usual = 8, BAD(EINVAL, 0, UINT32_MAX)),
    U32(max_sge, 4, .usual = 2, BAD(EINVAL, UINT32_MAX)),
    U32(limit, 8, BAD(EINVAL, UINT32_MAX)), U64(user_data, 8), OUT(handle, R_SRQ), ZERO(reserved))
ROW(MODIFY_SRQ, 0x20, 3, 0,
    IN(handle, R_SRQ, .give = G_NEW),
    FLAGS(attr_mask, 3, .usual = RPOST_SRQ_LIMIT, BAD(EOPNOTSUPP, 4, UINT32_MAX)),
    U32(max_wr, 64, BAD(EOPNOTSUPP, 1)),
    U32(limit, 64, .usual = 1, BAD(EINVAL, UINT32_MAX)))
ROW(QUERY_SRQ, 0x21, 1, 0,
    IN(handle, R_SRQ, .give = G_NEW), ANSWER(max_wr, 4), ANSWER(max_sge, 4),
    ANSWER(limit, 4))
ROW(POST_SRQ_RECV, 0x22, 5, 1, POST(R_SRQ, G_NEW))
ROW(CREATE_AH, 0x23, 4, 0,
    IN(pd, R_PD), OUT(handle, R_AH), AH_ATTR(attr, BAD), ANSWER(dmac, 6),
    ANSWER(vlan, 2))
ROW(ATTACH_MCAST, 0x24, 3, -ENOENT,
    IN(qp, R_QP, .give = G_BAD), U32(lid, 0xc001), GID(gid, .usual = 0xff))
ROW(DETACH_MCAST, 0x25, 3, -ENOENT,
    IN(qp, R_QP, .give = G_BAD), U32(lid, 0xc001), GID(gid, .usual = 0xff))
ROW(CREATE_ASYNC_CHANNEL, 0x26, 2, 0,
    DEVICE(device), OUT(fd, R_ASYNC))
ROW(SET_OPTION, 0x27, 5, 0,
    IN(id, R_ID, .give = G_NEW), U32(level, 2), U32(option, 4), U32(value, 255),
    ADDR(data, .optional = true), U32(data_len, 144), ZERO(reserved))
ROW(NOTIFY, 0x28, 2, -ENOENT,
    IN(id, R_ID, .give = G_BAD), U32(event, 19, .usual = RPOST_ASYNC_COMM_EST))
ROW(ESTABLISH, 0x29, 3, -ENOENT,
    IN(id, R_ID, .give = G_BAD), ZERO(reserved))
ROW(INIT_QP_ATTR, 0x2a, 4, 0,
    IN(id, R_ID), ZERO(reserved), QP_ATTR(K_ANSWER))
EVENT_ROW(JOIN_MCAST, 0x2b, 4, -ENOENT,
    IN(id, R_ID, .give = G_BAD), U32(join_flags, 2),
    SOCK_LEN(addr_len, .usual = IPV4), ZERO(reserved), SOCK(addr),
    U64(user_data, 8))
ROW(LEAVE_MCAST, 0x2c, 3, -ENOENT,
    IN(id, R_ID, .give = G_BAD), SOCK_LEN(addr_len, .usual = IPV4), SOCK(addr))
ROW(ADVISE_MR, 0x2d, 3, -EFAULT,
    IN(pd, R_PD), U32(advice, 3, BAD(EINVAL, 3, UINT32_MAX)), ADDR(sges),
    U32(num_sge, 4, .usual = 1, BAD(EINVAL, 0, RPOST_MAX_ADVISE_SGE + 1, UINT32_MAX)),
    ZERO(reserved))
ROW(MODIFY_CQ, 0x2e, 2, -ENOENT,
    IN(handle, R_CQ, .give = G_BAD), U32(count, 4, .usual = 2),
    U32(period_us, 1000, .usual = 100), ZERO(reserved))
ROW(WRITE_EVENT, 0x2f, 3, 0,
    IN(id, R_ID), U32(event, 20, .usual = RPOST_EVENT_USER), U32(status, 4),
    ZERO(reserved), U64(user_data, 8))
ROW(SHARE_DEVICE, 0x30, 1, 0,
    DEVICE(device), OUT(fd, R_FILE))
ROW(QUERY_OBJECT, 0x31, 2, 0,
    AUTO(type, 4, 8, .usual = RPOST_OBJ_PD), IN(handle, R_PD), ANSWER(device, 4),
    ANSWER(pd, 4), ANSWER(lkey, 4), ANSWER(rkey, 4), ANSWER(length, 8),
    ANSWER(iova, 8))
ROW(COUNT_WRS, 0x32, 2, -EINVAL,
    IN(handle, R_QP, .give = G_NEW), ZERO(reserved), ANSWER(counts, 80))
ROW(REG_DMABUF_MR, 0x33, 2, -ENOENT,
    IN(pd, R_PD, .give = G_BAD), FLAGS(access, 0x10034f, .usual = 0xf),
    U64(addr, 0x40000), U64(length, 0x40000, .usual = 0x10000),
    U64(iova, 0x40000), OUT(handle, R_MR), OUT(lkey, R_LKEY),
    OUT(rkey, R_RKEY), U32(fd, 4))
#define RULES								\
	FLAGS(rules.has, 0x7f, .usual = 0),				\
	FLAGS(rules.forbid, 0x1f, .usual = 0),				\
	U64(rules.bytes_per_s, 0), U64(rules.ops_per_s, 0),		\
	U32(rules.burst_us, 0), U32(rules.max_qps, 0),			\
	U64(rules.max_length, 0), U64(rules.max_pinned, 0),		\
	ADDR(rules.peers, .optional = true), U32(rules.num_peers, 0),	\
	ZERO(rules.reserved)

ROW(SET_POLICY, 0x34, 1, 0,
    U32(cgroup_fd, 0), ZERO(reserved), RULES)
ROW(GET_POLICY, 0x35, 1, 0,
    U64(cgroup, 0), ANSWERS(rules.has, rules.max_pinned),
    ADDR(rules.peers, .optional = true), U32(rules.num_peers, 4, .out = true),
    ANSWER(rules.reserved, 4), ANSWERS(ops, pinned), ANSWER(num_qps, 4), ZERO(reserved))
ROW(GET_EVENT, 0x40, 8, 0,
    OUT(id, R_ID), ANSWER(listen_id, 4), ANSWER(event, 4), ANSWER(status, 4),
    OUT(param.qp_num, R_QPN),
    ANSWERS(param.responder_resources, param.private_data),
    OUT(ud.qp_num, R_QPN), ANSWER(ud.qkey, 4), ANSWER(ud.ah, 32),
    ANSWER(ece, 8), ANSWER(user_data, 8))

#pragma GCC diagnostic error "-Wswitch"
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
/* The command of a number, or NULL. */
const struct command *command_of(unsigned int nr)
{
	switch ((enum rpost_cmd)nr) {
#define RPOST_COMMAND(nr, name, type, first, size, flags) \
	case RPOST_CMD_##nr: return row_##nr();
#include "../../kmod/core/commands.h"
	}
	return NULL;
}

/* The first after @cmd, which may be NULL, in the order of their numbers. */
const struct command *next_command(const struct command *cmd)
{
	unsigned int nr = cmd ? (cmd->nr & (MAX_COMMANDS - 1)) + 1 : 0;
	const struct command *next = NULL;

	while (!next && nr < MAX_COMMANDS)
		next = command_of(nr++);
	return next;
}

static const struct field *out_field(const struct command *cmd,
				     const char *name)
{
	const struct field *field;

	for_each_field(field, cmd) {
		if (field->kind == K_OUT && !strcmp(field->name, name))
			return field;
	}
	return NULL;
}

/* The handle of the object that a call without harm makes, or NULL if it makes none. */
const struct field *made_object(const struct command *cmd)
{
	return cmd->want ? NULL : out_field(cmd, "handle");
}

/* The descriptor of the channel that the command makes, or NULL. */
const struct field *made_channel(const struct command *cmd)
{
	return out_field(cmd, "fd");
}

/* Does a call without harm write to the struct? */
bool command_answers(const struct command *cmd)
{
	const struct field *field;

	for_each_field(field, cmd) {
		if (field->kind == K_OUT || field->kind == K_ANSWER ||
		    field->out)
			return !cmd->want;
	}
	return false;
}

/* Does a call without harm pass a user pointer in the field? */
bool is_pointer(const struct field *field)
{
	return field->size == 8 && !field->optional &&
	       (field->kind == K_ADDR || field->kind == K_AUTO);
}
