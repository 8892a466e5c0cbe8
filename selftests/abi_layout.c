// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the interface looked like when it was published.  Compiled with -Wpadded
 * -Werror, for 64 and for 32 bits: no struct has padding, so that both see the
 * same layout.  Never linked.
 */
#include <stddef.h>

#include <rdma/rdma_post_abi.h>

#define SIZE(type, bytes) \
	_Static_assert(sizeof(struct rpost_##type) == (bytes), #type)

SIZE(query, 32);
SIZE(destroy, 16);
SIZE(query_devices, 24);
SIZE(query_device, 248);
SIZE(query_port, 72);
SIZE(alloc_pd, 16);
SIZE(reg_mr, 56);
SIZE(create_comp_channel, 16);
SIZE(comp_event, 8);
SIZE(create_cq, 56);
SIZE(ring, 128);
SIZE(wc, 64);
SIZE(arm_cq, 16);
SIZE(poll_cq, 16);
SIZE(create_event_channel, 16);
SIZE(conn_param, 272);
SIZE(get_event, 352);
SIZE(create_id, 24);
SIZE(bind_addr, 144);
SIZE(resolve_addr, 280);
SIZE(resolve_route, 16);
SIZE(query_id, 448);
SIZE(listen, 16);
SIZE(connect, 296);
SIZE(accept, 304);
SIZE(reject, 280);
SIZE(disconnect, 16);
SIZE(migrate_id, 16);
SIZE(create_qp, 72);
SIZE(query_qp, 232);
SIZE(sge, 16);
SIZE(send_wr, 64);
SIZE(recv_wr, 16);
SIZE(post, 32);
SIZE(gid, 32);
SIZE(query_gids, 32);
SIZE(query_pkeys, 32);
SIZE(create_async_channel, 16);
SIZE(async_event, 24);
SIZE(resize_cq, 32);
SIZE(ah_attr, 32);
SIZE(create_ah, 48);
SIZE(ud_param, 40);
SIZE(ece, 8);
SIZE(path, 64);
SIZE(set_option, 40);
SIZE(notify, 16);
SIZE(establish, 16);
SIZE(join_mcast, 160);
SIZE(leave_mcast, 144);
SIZE(create_srq, 40);
SIZE(modify_srq, 24);
SIZE(query_srq, 24);
SIZE(qp_attr, 128);
SIZE(modify_qp, 144);
SIZE(init_qp_attr, 144);
SIZE(attach_mcast, 32);

#define NUMBER(name, value) \
	_Static_assert(RPOST_IOC_##name == (value), #name)

_Static_assert(RPOST_ABI_VERSION == 1, "version");
NUMBER(QUERY, 0xbd00);
NUMBER(QUERY_DEVICES, 0xbd01);
NUMBER(QUERY_DEVICE, 0xbd02);
NUMBER(QUERY_PORT, 0xbd03);
NUMBER(DESTROY, 0xbd04);
NUMBER(ALLOC_PD, 0xbd05);
NUMBER(REG_MR, 0xbd06);
NUMBER(CREATE_COMP_CHANNEL, 0xbd07);
NUMBER(CREATE_CQ, 0xbd08);
NUMBER(ARM_CQ, 0xbd09);
NUMBER(POLL_CQ, 0xbd0a);
NUMBER(CREATE_EVENT_CHANNEL, 0xbd0b);
NUMBER(CREATE_ID, 0xbd0c);
NUMBER(BIND_ADDR, 0xbd0d);
NUMBER(RESOLVE_ADDR, 0xbd0e);
NUMBER(RESOLVE_ROUTE, 0xbd0f);
NUMBER(QUERY_ID, 0xbd10);
NUMBER(LISTEN, 0xbd11);
NUMBER(CONNECT, 0xbd12);
NUMBER(ACCEPT, 0xbd13);
NUMBER(REJECT, 0xbd14);
NUMBER(DISCONNECT, 0xbd15);
NUMBER(CREATE_QP, 0xbd16);
NUMBER(QUERY_QP, 0xbd17);
NUMBER(POST_SEND, 0xbd18);
NUMBER(POST_RECV, 0xbd19);
NUMBER(MIGRATE_ID, 0xbd1a);
NUMBER(MODIFY_QP, 0xbd1b);
NUMBER(QUERY_GIDS, 0xbd1c);
NUMBER(QUERY_PKEYS, 0xbd1d);
NUMBER(RESIZE_CQ, 0xbd1e);
NUMBER(CREATE_SRQ, 0xbd1f);
NUMBER(MODIFY_SRQ, 0xbd20);
NUMBER(QUERY_SRQ, 0xbd21);
NUMBER(POST_SRQ_RECV, 0xbd22);
NUMBER(CREATE_AH, 0xbd23);
NUMBER(ATTACH_MCAST, 0xbd24);
NUMBER(DETACH_MCAST, 0xbd25);
NUMBER(CREATE_ASYNC_CHANNEL, 0xbd26);
NUMBER(SET_OPTION, 0xbd27);
NUMBER(NOTIFY, 0xbd28);
NUMBER(ESTABLISH, 0xbd29);
NUMBER(INIT_QP_ATTR, 0xbd2a);
NUMBER(JOIN_MCAST, 0xbd2b);
NUMBER(LEAVE_MCAST, 0xbd2c);
NUMBER(GET_EVENT, 0xbd40);
