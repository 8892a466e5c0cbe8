// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Checks that the interface still looks as it was published.  A failure of the
 * build means that programs see another layout.  Compiled for 64 and for 32
 * bits with -Wpadded -Werror: no struct has padding, so both have the same
 * layout.  Never linked.  The numbers and fields of commands are in
 * selftests/lib/commands.c.
 */
#include <stddef.h>

#include <rdma/rdma_post_abi.h>

#define SIZE(type, bytes) \
	_Static_assert(sizeof(struct rpost_##type) == (bytes), #type)

#define RPOST_COMMAND(nr, name, type, first, size, flags) SIZE(type, size);
#include "../../kmod/core/commands.h"

SIZE(comp_event, 8);
SIZE(ring, 128);
SIZE(wc, 64);
SIZE(conn_param, 272);
SIZE(sge, 16);
SIZE(send_wr, 64);
SIZE(recv_wr, 16);
SIZE(gid, 32);
SIZE(async_event, 24);
SIZE(ah_attr, 32);
SIZE(ud_param, 40);
SIZE(ece, 8);
SIZE(path, 64);
SIZE(qp_attr, 128);

#define AT(type, field, bytes) \
	_Static_assert(offsetof(struct rpost_##type, field) == (bytes), \
		       #type "." #field)

/* These structs belong to no command; for others see lib/commands.c. */
AT(send_wr, remote_addr, 40);
AT(send_wr, ah, 40);
AT(send_wr, compare_add, 48);
AT(send_wr, remote_qpn, 48);
AT(send_wr, swap, 56);
AT(send_wr, remote_qkey, 56);
AT(gid, gid, 0);
AT(gid, index, 16);
AT(gid, port, 20);
AT(gid, type, 24);
AT(gid, ndev_ifindex, 28);
AT(async_event, user_data, 0);
AT(async_event, event, 8);
AT(async_event, obj_type, 12);
AT(async_event, handle, 16);
AT(async_event, port, 20);
AT(path, dgid, 0);
AT(path, sgid, 16);
AT(path, dlid, 32);
AT(path, slid, 34);
AT(path, flow_label, 36);
AT(path, raw_traffic, 40);
AT(path, reversible, 44);
AT(path, pkey, 48);
AT(path, hop_limit, 50);
AT(path, traffic_class, 51);
AT(path, numb_path, 52);
AT(path, sl, 53);
AT(path, mtu_selector, 54);
AT(path, mtu, 55);
AT(path, rate_selector, 56);
AT(path, rate, 57);
AT(path, packet_life_time_selector, 58);
AT(path, packet_life_time, 59);
AT(path, preference, 60);
AT(path, reserved, 61);

_Static_assert(RPOST_ABI_VERSION == 1, "version");
