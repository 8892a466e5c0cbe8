// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The commands, and what their structs hold.
 */
#include "fuzz.h"

/* What all commands have. */
#define HEAD(s, flag_mask, on)						\
	{ "on", -1, 0, K_ON, on, 0 },					\
	{ "arg", -1, 0, K_ARG, R_NONE, NUM_ARGS - 1 },			\
	FIELD(s, size, K_AUTO, R_NONE, 0),				\
	FLAGS(s, flags, flag_mask)

#define CONN_PARAM(s)							\
	IN(s, param.qp_num, R_QPN),					\
	INT(s, param.responder_resources, 16),				\
	INT(s, param.initiator_depth, 16),				\
	INT(s, param.flow_control, 1),					\
	INT(s, param.retry_count, 8),					\
	INT(s, param.rnr_retry_count, 8),				\
	INT(s, param.srq, 1),						\
	INT(s, param.private_data_len, 255),				\
	ZERO(s, param.reserved),					\
	SPACE(s, param.private_data, K_BYTES),				\
	INT(s, ece.vendor_id, 2),					\
	INT(s, ece.attr_mod, 2)

#define AH_ATTR(s, f)							\
	SPACE(s, f.dgid, K_GID),					\
	INT(s, f.flow_label, 0x100000),					\
	INT(s, f.dlid, 2),						\
	IN(s, f.sgid_index, R_GIDX),					\
	INT(s, f.hop_limit, 255),					\
	INT(s, f.traffic_class, 255),					\
	INT(s, f.sl, 16),						\
	INT(s, f.src_path_bits, 1),					\
	INT(s, f.static_rate, 20),					\
	INT(s, f.is_global, 2),						\
	INT(s, f.port_num, 2),						\
	ZERO(s, f.reserved)

#define QP_ATTR(s)							\
	FLAGS(s, attr.attr_mask, 0x3ffffff),				\
	INT(s, attr.qp_state, 7),					\
	INT(s, attr.cur_qp_state, 7),					\
	INT(s, attr.path_mtu, 6),					\
	INT(s, attr.path_mig_state, 3),					\
	INT(s, attr.qkey, 0),						\
	INT(s, attr.rq_psn, 0x1000000),					\
	INT(s, attr.sq_psn, 0x1000000),					\
	IN(s, attr.dest_qp_num, R_QPN),					\
	FLAGS(s, attr.access, 0x10030f),				\
	INT(s, attr.rate_limit, 2),					\
	INT(s, attr.pkey_index, 2),					\
	INT(s, attr.alt_pkey_index, 2),					\
	AH_ATTR(s, attr.ah),						\
	AH_ATTR(s, attr.alt_ah),					\
	INT(s, attr.en_sqd_async_notify, 1),				\
	INT(s, attr.max_rd_atomic, 17),					\
	INT(s, attr.max_dest_rd_atomic, 17),				\
	INT(s, attr.min_rnr_timer, 32),					\
	INT(s, attr.port_num, 2),					\
	INT(s, attr.timeout, 32),					\
	INT(s, attr.retry_cnt, 8),					\
	INT(s, attr.rnr_retry, 8),					\
	INT(s, attr.alt_port_num, 2),					\
	INT(s, attr.alt_timeout, 32),					\
	ZERO(s, attr.reserved)

static const struct field query[] = {
	HEAD(rpost_query, 0, R_FILE),
};

static const struct field query_devices[] = {
	HEAD(rpost_query_devices, 0, R_FILE),
	SPACE(rpost_query_devices, devices, K_ADDR),
	INT(rpost_query_devices, count, 4),
	ZERO(rpost_query_devices, reserved),
};

static const struct field query_device[] = {
	HEAD(rpost_query_device, 0, R_FILE),
	IN(rpost_query_device, device, R_DEV),
};

static const struct field query_port[] = {
	HEAD(rpost_query_port, 0, R_FILE),
	IN(rpost_query_port, device, R_DEV),
	INT(rpost_query_port, port, 2),
};

static const struct field query_gids[] = {
	HEAD(rpost_query_gids, 0, R_FILE),
	IN(rpost_query_gids, device, R_DEV),
	INT(rpost_query_gids, port, 2),
	INT(rpost_query_gids, first, 1024),
	INT(rpost_query_gids, count, 64),
	SPACE(rpost_query_gids, gids, K_ADDR),
};

static const struct field query_pkeys[] = {
	HEAD(rpost_query_pkeys, 0, R_FILE),
	IN(rpost_query_pkeys, device, R_DEV),
	INT(rpost_query_pkeys, port, 2),
	INT(rpost_query_pkeys, first, 64),
	INT(rpost_query_pkeys, count, 64),
	SPACE(rpost_query_pkeys, pkeys, K_ADDR),
};

static const struct field create_async_channel[] = {
	HEAD(rpost_create_async_channel, 0, R_FILE),
	IN(rpost_create_async_channel, device, R_DEV),
	OUT(rpost_create_async_channel, fd, R_ASYNC),
};

static const struct field alloc_pd[] = {
	HEAD(rpost_alloc_pd, 0, R_FILE),
	IN(rpost_alloc_pd, device, R_DEV),
	OUT(rpost_alloc_pd, handle, R_PD),
};

static const struct field reg_mr[] = {
	HEAD(rpost_reg_mr, 0, R_FILE),
	IN(rpost_reg_mr, pd, R_PD),
	FLAGS(rpost_reg_mr, access, 0x10030f),
	SPACE(rpost_reg_mr, addr, K_ADDR),
	INT(rpost_reg_mr, length, 0x40000),
	FIELD(rpost_reg_mr, iova, K_AUTO, R_NONE, 0),
	ZERO(rpost_reg_mr, reserved),
	OUT(rpost_reg_mr, handle, R_MR),
	OUT(rpost_reg_mr, lkey, R_LKEY),
	OUT(rpost_reg_mr, rkey, R_RKEY),
};

static const struct field create_comp_channel[] = {
	HEAD(rpost_create_comp_channel, 0, R_FILE),
	ZERO(rpost_create_comp_channel, reserved),
	OUT(rpost_create_comp_channel, fd, R_COMP),
};

static const struct field create_cq[] = {
	HEAD(rpost_create_cq, RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE, R_FILE),
	IN(rpost_create_cq, device, R_DEV),
	INT(rpost_create_cq, cqe, 256),
	INT(rpost_create_cq, comp_vector, 2),
	IN(rpost_create_cq, channel_fd, R_COMP),
	INT(rpost_create_cq, user_data, 8),
	ZERO(rpost_create_cq, reserved),
	OUT(rpost_create_cq, handle, R_CQ),
	OUT(rpost_create_cq, mmap_offset, R_OFF),
	OUT(rpost_create_cq, mmap_size, R_LEN),
	ZERO(rpost_create_cq, reserved2),
};

static const struct field resize_cq[] = {
	HEAD(rpost_resize_cq, 0, R_FILE),
	IN(rpost_resize_cq, handle, R_CQ),
	INT(rpost_resize_cq, cqe, 256),
	ZERO(rpost_resize_cq, reserved),
	OUT(rpost_resize_cq, mmap_offset, R_OFF),
	OUT(rpost_resize_cq, mmap_size, R_LEN),
	ZERO(rpost_resize_cq, reserved2),
};

static const struct field arm_cq[] = {
	HEAD(rpost_arm_cq, RPOST_ARM_SOLICITED, R_FILE),
	IN(rpost_arm_cq, handle, R_CQ),
	ZERO(rpost_arm_cq, reserved),
};

static const struct field poll_cq[] = {
	HEAD(rpost_poll_cq, 0, R_FILE),
	IN(rpost_poll_cq, handle, R_CQ),
};

static const struct field create_ah[] = {
	HEAD(rpost_create_ah, 0, R_FILE),
	IN(rpost_create_ah, pd, R_PD),
	AH_ATTR(rpost_create_ah, attr),
	OUT(rpost_create_ah, handle, R_AH),
};

static const struct field create_event_channel[] = {
	HEAD(rpost_create_event_channel, 0, R_FILE),
	ZERO(rpost_create_event_channel, reserved),
	OUT(rpost_create_event_channel, fd, R_EVENT),
};

static const struct field get_event[] = {
	HEAD(rpost_get_event, 0, R_EVENT),
	OUT(rpost_get_event, id, R_ID),
	OUT(rpost_get_event, param.qp_num, R_QPN),
	OUT(rpost_get_event, ud.qp_num, R_QPN),
};

static const struct field create_id[] = {
	HEAD(rpost_create_id, 0, R_FILE),
	IN(rpost_create_id, channel_fd, R_EVENT),
	INT(rpost_create_id, port_space, RPOST_PS_IB),
	INT(rpost_create_id, qp_type, 4),
	OUT(rpost_create_id, handle, R_ID),
};

static const struct field bind_addr[] = {
	HEAD(rpost_bind_addr, 0, R_FILE),
	IN(rpost_bind_addr, id, R_ID),
	FIELD(rpost_bind_addr, addr_len, K_AUTO, R_NONE, 128),
	SPACE(rpost_bind_addr, addr, K_SOCK),
};

static const struct field resolve_addr[] = {
	HEAD(rpost_resolve_addr, 0, R_FILE),
	IN(rpost_resolve_addr, id, R_ID),
	INT(rpost_resolve_addr, timeout_ms, 2000),
	FIELD(rpost_resolve_addr, src_len, K_AUTO, R_NONE, 128),
	FIELD(rpost_resolve_addr, dst_len, K_AUTO, R_NONE, 128),
	SPACE(rpost_resolve_addr, src, K_SOCK),
	SPACE(rpost_resolve_addr, dst, K_SOCK),
};

static const struct field resolve_route[] = {
	HEAD(rpost_resolve_route, 0, R_FILE),
	IN(rpost_resolve_route, id, R_ID),
	INT(rpost_resolve_route, timeout_ms, 2000),
};

static const struct field query_id[] = {
	HEAD(rpost_query_id, 0, R_FILE),
	IN(rpost_query_id, id, R_ID),
	ZERO(rpost_query_id, reserved),
};

static const struct field listen[] = {
	HEAD(rpost_listen, 0, R_FILE),
	IN(rpost_listen, id, R_ID),
	INT(rpost_listen, backlog, 8),
};

static const struct field connect[] = {
	HEAD(rpost_connect, 0, R_FILE),
	IN(rpost_connect, id, R_ID),
	ZERO(rpost_connect, reserved),
	CONN_PARAM(rpost_connect),
};

static const struct field accept[] = {
	HEAD(rpost_accept, 0, R_FILE),
	IN(rpost_accept, id, R_ID),
	ZERO(rpost_accept, reserved),
	CONN_PARAM(rpost_accept),
	INT(rpost_accept, qkey, 0),
	ZERO(rpost_accept, reserved2),
};

static const struct field reject[] = {
	HEAD(rpost_reject, 0, R_FILE),
	IN(rpost_reject, id, R_ID),
	INT(rpost_reject, private_data_len, 256),
	SPACE(rpost_reject, private_data, K_BYTES),
	INT(rpost_reject, reason, 64),
	ZERO(rpost_reject, reserved),
};

static const struct field disconnect[] = {
	HEAD(rpost_disconnect, 0, R_FILE),
	IN(rpost_disconnect, id, R_ID),
	ZERO(rpost_disconnect, reserved),
};

static const struct field migrate_id[] = {
	HEAD(rpost_migrate_id, 0, R_FILE),
	IN(rpost_migrate_id, id, R_ID),
	IN(rpost_migrate_id, channel_fd, R_EVENT),
};

static const struct field set_option[] = {
	HEAD(rpost_set_option, 0, R_FILE),
	IN(rpost_set_option, id, R_ID),
	INT(rpost_set_option, level, 2),
	INT(rpost_set_option, option, 4),
	INT(rpost_set_option, value, 255),
	SPACE(rpost_set_option, data, K_ADDR),
	INT(rpost_set_option, data_len, 144),
	ZERO(rpost_set_option, reserved),
};

static const struct field notify[] = {
	HEAD(rpost_notify, 0, R_FILE),
	IN(rpost_notify, id, R_ID),
	INT(rpost_notify, event, 19),
};

static const struct field establish[] = {
	HEAD(rpost_establish, 0, R_FILE),
	IN(rpost_establish, id, R_ID),
	ZERO(rpost_establish, reserved),
};

static const struct field join_mcast[] = {
	HEAD(rpost_join_mcast, 0, R_FILE),
	IN(rpost_join_mcast, id, R_ID),
	INT(rpost_join_mcast, join_flags, 2),
	FIELD(rpost_join_mcast, addr_len, K_AUTO, R_NONE, 128),
	ZERO(rpost_join_mcast, reserved),
	SPACE(rpost_join_mcast, addr, K_SOCK),
	INT(rpost_join_mcast, user_data, 8),
};

static const struct field leave_mcast[] = {
	HEAD(rpost_leave_mcast, 0, R_FILE),
	IN(rpost_leave_mcast, id, R_ID),
	FIELD(rpost_leave_mcast, addr_len, K_AUTO, R_NONE, 128),
	SPACE(rpost_leave_mcast, addr, K_SOCK),
};

static const struct field create_srq[] = {
	HEAD(rpost_create_srq, 0, R_FILE),
	IN(rpost_create_srq, pd, R_PD),
	INT(rpost_create_srq, max_wr, 64),
	INT(rpost_create_srq, max_sge, 4),
	INT(rpost_create_srq, limit, 8),
	INT(rpost_create_srq, user_data, 8),
	ZERO(rpost_create_srq, reserved),
	OUT(rpost_create_srq, handle, R_SRQ),
};

static const struct field modify_srq[] = {
	HEAD(rpost_modify_srq, 0, R_FILE),
	IN(rpost_modify_srq, handle, R_SRQ),
	FLAGS(rpost_modify_srq, attr_mask, 3),
	ZERO(rpost_modify_srq, max_wr),
	INT(rpost_modify_srq, limit, 64),
};

static const struct field query_srq[] = {
	HEAD(rpost_query_srq, 0, R_FILE),
	IN(rpost_query_srq, handle, R_SRQ),
};

static const struct field create_qp[] = {
	HEAD(rpost_create_qp, RPOST_QP_SIG_ALL, R_FILE),
	IN(rpost_create_qp, id, R_ID),
	IN(rpost_create_qp, pd, R_PD),
	IN(rpost_create_qp, send_cq, R_CQ),
	IN(rpost_create_qp, recv_cq, R_CQ),
	INT(rpost_create_qp, max_send_wr, 64),
	INT(rpost_create_qp, max_recv_wr, 64),
	INT(rpost_create_qp, max_send_sge, 4),
	INT(rpost_create_qp, max_recv_sge, 4),
	INT(rpost_create_qp, max_inline_data, 1024),
	ZERO(rpost_create_qp, reserved),
	INT(rpost_create_qp, qp_type, 4),
	IN(rpost_create_qp, srq, R_SRQ),
	INT(rpost_create_qp, user_data, 8),
	OUT(rpost_create_qp, handle, R_QP),
	OUT(rpost_create_qp, qp_num, R_QPN),
};

static const struct field modify_qp[] = {
	HEAD(rpost_modify_qp, 0, R_FILE),
	IN(rpost_modify_qp, handle, R_QP),
	ZERO(rpost_modify_qp, reserved),
	QP_ATTR(rpost_modify_qp),
};

static const struct field init_qp_attr[] = {
	HEAD(rpost_init_qp_attr, 0, R_FILE),
	IN(rpost_init_qp_attr, id, R_ID),
	ZERO(rpost_init_qp_attr, reserved),
	QP_ATTR(rpost_init_qp_attr),
};

static const struct field attach_mcast[] = {
	HEAD(rpost_attach_mcast, 0, R_FILE),
	IN(rpost_attach_mcast, qp, R_QP),
	INT(rpost_attach_mcast, lid, 0xc001),
	SPACE(rpost_attach_mcast, gid, K_GID),
};

static const struct field query_qp[] = {
	HEAD(rpost_query_qp, 0, R_FILE),
	IN(rpost_query_qp, handle, R_QP),
};

static const struct field post[] = {
	HEAD(rpost_post, 0, R_FILE),
	IN(rpost_post, qp, R_QP),
	FIELD(rpost_post, count, K_AUTO, R_NONE, 16),
	FIELD(rpost_post, wrs, K_AUTO, R_NONE, 0),
	FIELD(rpost_post, wrs_size, K_AUTO, R_NONE, 0x10000),
};

static const struct field post_srq[] = {
	HEAD(rpost_post, 0, R_FILE),
	IN(rpost_post, qp, R_SRQ),
	FIELD(rpost_post, count, K_AUTO, R_NONE, 16),
	FIELD(rpost_post, wrs, K_AUTO, R_NONE, 0),
	FIELD(rpost_post, wrs_size, K_AUTO, R_NONE, 0x10000),
};

static const struct field setup_send_ring[] = {
	HEAD(rpost_setup_send_ring, 0, R_FILE),
	IN(rpost_setup_send_ring, qp, R_QP),
	INT(rpost_setup_send_ring, bytes, 0x11000),
};

static const struct field enter_send_ring[] = {
	HEAD(rpost_enter_send_ring, 0, R_FILE),
	IN(rpost_enter_send_ring, qp, R_QP),
	ZERO(rpost_enter_send_ring, reserved),
};

/* One destroy for each type, so that handles and types go together. */
#define DESTROY(type_reg)						\
	{ HEAD(rpost_destroy, 0, R_FILE),				\
	  FIELD(rpost_destroy, type, K_AUTO, R_NONE, 8),					\
	  IN(rpost_destroy, handle, type_reg) }

static const struct field destroy_pd[] = DESTROY(R_PD);
static const struct field destroy_mr[] = DESTROY(R_MR);
static const struct field destroy_cq[] = DESTROY(R_CQ);
static const struct field destroy_qp[] = DESTROY(R_QP);
static const struct field destroy_id[] = DESTROY(R_ID);
static const struct field destroy_srq[] = DESTROY(R_SRQ);
static const struct field destroy_ah[] = DESTROY(R_AH);

#define CALL(name, NR, type, table, weight)				\
	{ name, RPOST_IOC_##NR, NULL, sizeof(struct type), weight,	\
	  sizeof(table) / sizeof((table)[0]), table }
#define CMD(name, NR, weight)	CALL(#name, NR, rpost_##name, name, weight)

const struct desc descs[] = {
	CMD(query, QUERY, 1),
	CMD(query_devices, QUERY_DEVICES, 1),
	CMD(query_device, QUERY_DEVICE, 1),
	CMD(query_port, QUERY_PORT, 1),
	CMD(query_gids, QUERY_GIDS, 2),
	CMD(query_pkeys, QUERY_PKEYS, 2),
	CMD(create_async_channel, CREATE_ASYNC_CHANNEL, 2),
	CMD(alloc_pd, ALLOC_PD, 3),
	CMD(reg_mr, REG_MR, 6),
	CMD(create_comp_channel, CREATE_COMP_CHANNEL, 2),
	CMD(create_cq, CREATE_CQ, 4),
	CMD(resize_cq, RESIZE_CQ, 4),
	CMD(arm_cq, ARM_CQ, 4),
	CMD(poll_cq, POLL_CQ, 4),
	CMD(create_ah, CREATE_AH, 4),
	CMD(create_event_channel, CREATE_EVENT_CHANNEL, 2),
	CMD(get_event, GET_EVENT, 8),
	CMD(create_id, CREATE_ID, 5),
	CMD(bind_addr, BIND_ADDR, 4),
	CMD(resolve_addr, RESOLVE_ADDR, 5),
	CMD(resolve_route, RESOLVE_ROUTE, 5),
	CMD(query_id, QUERY_ID, 2),
	CMD(listen, LISTEN, 4),
	CMD(connect, CONNECT, 6),
	CMD(accept, ACCEPT, 6),
	CMD(reject, REJECT, 3),
	CMD(disconnect, DISCONNECT, 3),
	CMD(migrate_id, MIGRATE_ID, 3),
	CMD(set_option, SET_OPTION, 5),
	CMD(notify, NOTIFY, 2),
	CMD(establish, ESTABLISH, 3),
	CMD(join_mcast, JOIN_MCAST, 4),
	CMD(leave_mcast, LEAVE_MCAST, 3),
	CMD(create_srq, CREATE_SRQ, 3),
	CMD(modify_srq, MODIFY_SRQ, 3),
	CMD(query_srq, QUERY_SRQ, 1),
	CMD(create_qp, CREATE_QP, 6),
	CMD(modify_qp, MODIFY_QP, 10),
	CMD(init_qp_attr, INIT_QP_ATTR, 4),
	CMD(query_qp, QUERY_QP, 2),
	CALL("attach_mcast", ATTACH_MCAST, rpost_attach_mcast, attach_mcast, 3),
	CALL("detach_mcast", DETACH_MCAST, rpost_attach_mcast, attach_mcast, 3),
	CMD(setup_send_ring, SETUP_SEND_RING, 2),
	CMD(enter_send_ring, ENTER_SEND_RING, 2),
	CALL("post_send", POST_SEND, rpost_post, post, 8),
	CALL("post_recv", POST_RECV, rpost_post, post, 6),
	CALL("post_srq_recv", POST_SRQ_RECV, rpost_post, post_srq, 5),
	CALL("destroy_pd", DESTROY, rpost_destroy, destroy_pd, 1),
	CALL("destroy_mr", DESTROY, rpost_destroy, destroy_mr, 2),
	CALL("destroy_cq", DESTROY, rpost_destroy, destroy_cq, 2),
	CALL("destroy_qp", DESTROY, rpost_destroy, destroy_qp, 3),
	CALL("destroy_id", DESTROY, rpost_destroy, destroy_id, 3),
	CALL("destroy_srq", DESTROY, rpost_destroy, destroy_srq, 2),
	CALL("destroy_ah", DESTROY, rpost_destroy, destroy_ah, 2),
};

const unsigned int num_descs = sizeof(descs) / sizeof(descs[0]);

unsigned int desc_count(void)
{
	return num_descs + num_others;
}

const struct desc *desc_get(unsigned int i)
{
	return i < num_descs ? &descs[i] : &others[i - num_descs];
}
