// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Compiled with -Wpadded -Werror, for 64 and for 32 bits: no struct of the
 * interface has padding, so that both see the same layout.  Never linked.
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
