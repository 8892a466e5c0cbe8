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
SIZE(get_event, 296);
SIZE(create_id, 24);
SIZE(bind_addr, 144);
SIZE(resolve_addr, 280);
SIZE(resolve_route, 16);
SIZE(query_id, 320);
SIZE(listen, 16);
SIZE(connect, 288);
SIZE(accept, 288);
SIZE(reject, 272);
SIZE(disconnect, 16);
SIZE(migrate_id, 16);
SIZE(create_qp, 56);
SIZE(query_qp, 96);
SIZE(sge, 16);
SIZE(send_wr, 64);
SIZE(recv_wr, 16);
SIZE(post, 32);

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
NUMBER(GET_EVENT, 0xbd40);
