/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The list of all commands of the interface, in the order of their numbers:
 *
 *   RPOST_COMMAND(NAME, name, type, first, size, flags)
 *
 * NAME:  the command's number is RPOST_CMD_NAME
 * name:  its handler is rpost_name_ioctl()
 * type:  its argument is a struct rpost_type
 * first: size of the struct in its first version, the least that is accepted
 * size:  size of the struct now, which is the first one until it grows after a release
 * flags: flags that the command accepts
 *
 * RPOST_CREATE_COMMAND() is the same for a command that makes something.  If it fails for
 * want of what regions in the cache are charged for, these are given back, and it is run
 * again.  RPOST_POST_COMMAND() is for a post, whose work requests follow the struct, and
 * RPOST_CHANNEL_COMMAND() for a command of an event channel's descriptor.  A file that
 * includes this defines RPOST_COMMAND first, and also the others if it treats these
 * commands differently.  The module's table, the declarations of its handlers, the
 * names in the library's messages, and the tests of lengths, flags and layout are made from
 * this list.
 */
#ifndef RPOST_CREATE_COMMAND
#define RPOST_CREATE_COMMAND RPOST_COMMAND
#endif
#ifndef RPOST_POST_COMMAND
#define RPOST_POST_COMMAND RPOST_COMMAND
#endif
#ifndef RPOST_CHANNEL_COMMAND
#define RPOST_CHANNEL_COMMAND RPOST_COMMAND
#endif

RPOST_COMMAND(QUERY, query, query, 40, 40, 0)
RPOST_COMMAND(QUERY_DEVICES, query_devices, query_devices, 24, 24, 0)
RPOST_COMMAND(QUERY_DEVICE, query_device, query_device, 296, 296, 0)
RPOST_COMMAND(QUERY_PORT, query_port, query_port, 72, 72, 0)
RPOST_COMMAND(DESTROY, destroy, destroy, 16, 16, 0)
RPOST_CREATE_COMMAND(ALLOC_PD, alloc_pd, alloc_pd, 16, 16, 0)
RPOST_CREATE_COMMAND(REG_MR, reg_mr, reg_mr, 56, 56, RPOST_MR_NO_CACHE)
RPOST_CREATE_COMMAND(CREATE_COMP_CHANNEL, create_comp_channel, create_comp_channel, 16, 16, 0)
RPOST_CREATE_COMMAND(CREATE_CQ, create_cq, create_cq, 72, 72,
		     RPOST_CQ_SMALL_ENTRIES | RPOST_CQ_SHARED_PAGE)
RPOST_COMMAND(ARM_CQ, arm_cq, arm_cq, 16, 16, RPOST_ARM_SOLICITED)
RPOST_COMMAND(POLL_CQ, poll_cq, poll_cq, 16, 16, 0)
RPOST_CREATE_COMMAND(CREATE_EVENT_CHANNEL, create_event_channel, create_event_channel, 16, 16, 0)
RPOST_CREATE_COMMAND(CREATE_ID, create_id, create_id, 24, 24, 0)
RPOST_COMMAND(BIND_ADDR, bind_addr, bind_addr, 144, 144, 0)
RPOST_COMMAND(RESOLVE_ADDR, resolve_addr, resolve_addr, 280, 280, 0)
RPOST_COMMAND(RESOLVE_ROUTE, resolve_route, resolve_route, 16, 16, 0)
RPOST_COMMAND(QUERY_ID, query_id, query_id, 448, 448, 0)
RPOST_COMMAND(LISTEN, listen, listen, 16, 16, 0)
RPOST_COMMAND(CONNECT, connect, connect, 296, 296, 0)
RPOST_COMMAND(ACCEPT, accept, accept, 304, 304, 0)
RPOST_COMMAND(REJECT, reject, reject, 280, 280, 0)
RPOST_COMMAND(DISCONNECT, disconnect, disconnect, 16, 16, 0)
RPOST_CREATE_COMMAND(CREATE_QP, create_qp, create_qp, 72, 72,
		     RPOST_QP_SIG_ALL | RPOST_QP_ANY_MEMORY)
RPOST_COMMAND(QUERY_QP, query_qp, query_qp, 176, 176, 0)
RPOST_POST_COMMAND(POST_SEND, post_send, post, 16, 16, 0)
RPOST_POST_COMMAND(POST_RECV, post_recv, post, 16, 16, 0)
RPOST_COMMAND(MIGRATE_ID, migrate_id, migrate_id, 16, 16, 0)
RPOST_COMMAND(MODIFY_QP, modify_qp, modify_qp, 144, 144, 0)
RPOST_COMMAND(QUERY_GIDS, query_gids, query_gids, 32, 32, 0)
RPOST_COMMAND(QUERY_PKEYS, query_pkeys, query_pkeys, 32, 32, 0)
RPOST_CREATE_COMMAND(RESIZE_CQ, resize_cq, resize_cq, 48, 48, 0)
RPOST_CREATE_COMMAND(CREATE_SRQ, create_srq, create_srq, 40, 40, 0)
RPOST_CREATE_COMMAND(MODIFY_SRQ, modify_srq, modify_srq, 24, 24, 0)
RPOST_COMMAND(QUERY_SRQ, query_srq, query_srq, 24, 24, 0)
RPOST_POST_COMMAND(POST_SRQ_RECV, post_srq_recv, post, 16, 16, 0)
RPOST_CREATE_COMMAND(CREATE_AH, create_ah, create_ah, 56, 56, 0)
RPOST_CREATE_COMMAND(ATTACH_MCAST, attach_mcast, attach_mcast, 32, 32, 0)
RPOST_COMMAND(DETACH_MCAST, detach_mcast, attach_mcast, 32, 32, 0)
RPOST_CREATE_COMMAND(CREATE_ASYNC_CHANNEL, create_async_channel, create_async_channel, 16, 16, 0)
RPOST_COMMAND(SET_OPTION, set_option, set_option, 40, 40, 0)
RPOST_COMMAND(NOTIFY, notify, notify, 16, 16, 0)
RPOST_COMMAND(ESTABLISH, establish, establish, 16, 16, 0)
RPOST_COMMAND(INIT_QP_ATTR, init_qp_attr, init_qp_attr, 144, 144, 0)
RPOST_CREATE_COMMAND(JOIN_MCAST, join_mcast, join_mcast, 160, 160, 0)
RPOST_COMMAND(LEAVE_MCAST, leave_mcast, leave_mcast, 144, 144, 0)
RPOST_COMMAND(ADVISE_MR, advise_mr, advise_mr, 32, 32, RPOST_ADVISE_FLUSH)
RPOST_COMMAND(MODIFY_CQ, modify_cq, modify_cq, 24, 24, 0)
RPOST_COMMAND(WRITE_EVENT, write_event, write_event, 32, 32, 0)
RPOST_CREATE_COMMAND(SHARE_DEVICE, share_device, share_device, 16, 16, 0)
RPOST_COMMAND(QUERY_OBJECT, query_object, query_object, 48, 48, 0)
RPOST_COMMAND(COUNT_WRS, count_wrs, count_wrs, 96, 96, RPOST_COUNT_WRS_START)
RPOST_CREATE_COMMAND(REG_DMABUF_MR, reg_dmabuf_mr, reg_mr, 56, 56, 0)
RPOST_COMMAND(SET_POLICY, set_policy, set_policy, 80, 80,
	      RPOST_POLICY_CGROUP | RPOST_POLICY_REMOVE)
RPOST_COMMAND(GET_POLICY, get_policy, get_policy, 144, 144, RPOST_POLICY_CGROUP)
RPOST_CHANNEL_COMMAND(GET_EVENT, get_event, get_event, 352, 352, 0)

#undef RPOST_COMMAND
#undef RPOST_CREATE_COMMAND
#undef RPOST_POST_COMMAND
#undef RPOST_CHANNEL_COMMAND
