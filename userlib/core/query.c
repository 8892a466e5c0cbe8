// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queries of devices and ports: attributes, GIDs and partitions. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/* Capabilities that a device may have, but that the module does not offer. */
#define NOT_OFFERED \
	(IBV_DEVICE_RAW_MULTI | \
	 IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_UD_IP_CSUM | IBV_DEVICE_XRC | \
	 IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW_TYPE_2A | \
	 IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_RC_IP_CSUM | \
	 IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING | \
	 IBV_DEVICE_RAW_SCATTER_FCS | IBV_DEVICE_PCI_WRITE_END_PADDING)

/* No device has more GIDs. */
#define MAX_GIDS	UINT16_MAX

static int min_int(uint32_t a, uint32_t b)
{
	uint32_t min = a < b ? a : b;

	return min < INT32_MAX ? (int)min : INT32_MAX;
}

/* Copies as much as the program's struct has room for, and clears the rest. */
static void copy_out(void *dst, size_t dst_size, const void *src,
		     size_t src_size)
{
	memset(dst, 0, dst_size);
	memcpy(dst, src, dst_size < src_size ? dst_size : src_size);
}

static void device_attr(struct ibv_device_attr *attr,
			const struct rpost_query_device *q)
{
	memset(attr, 0, sizeof(*attr));
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "%u.%u.%u",
		 (unsigned int)(q->fw_ver >> 32) & 0xffff,
		 (unsigned int)(q->fw_ver >> 16) & 0xffff,
		 (unsigned int)q->fw_ver & 0xffff);
	attr->node_guid = q->node_guid;
	attr->sys_image_guid = q->sys_image_guid;
	attr->max_mr_size = q->max_mr_size;
	attr->page_size_cap = q->page_size_cap;
	attr->vendor_id = q->vendor_id;
	attr->vendor_part_id = q->vendor_part_id;
	attr->hw_ver = q->hw_ver;
	attr->max_qp = min_int(q->max_qp, INT32_MAX);
	attr->max_qp_wr = min_int(q->max_qp_wr, INT32_MAX);
	attr->device_cap_flags = (unsigned int)(q->device_cap_flags &
						~NOT_OFFERED);
	attr->max_sge = min_int(q->max_send_sge, q->max_recv_sge);
	attr->max_sge_rd = min_int(q->max_sge_rd, INT32_MAX);
	attr->max_cq = min_int(q->max_cq, INT32_MAX);
	attr->max_cqe = min_int(q->max_cqe, INT32_MAX);
	attr->max_mr = min_int(q->max_mr, INT32_MAX);
	attr->max_pd = min_int(q->max_pd, INT32_MAX);
	attr->max_qp_rd_atom = min_int(q->max_qp_rd_atom, INT32_MAX);
	attr->max_res_rd_atom = min_int(q->max_res_rd_atom, INT32_MAX);
	attr->max_qp_init_rd_atom = min_int(q->max_qp_init_rd_atom, INT32_MAX);
	attr->atomic_cap = q->atomic_cap;
	attr->max_mcast_grp = min_int(q->max_mcast_grp, INT32_MAX);
	attr->max_mcast_qp_attach = min_int(q->max_mcast_qp_attach, INT32_MAX);
	attr->max_total_mcast_qp_attach =
		min_int(q->max_total_mcast_qp_attach, INT32_MAX);
	attr->max_ah = min_int(q->max_ah, INT32_MAX);
	attr->max_srq = min_int(q->max_srq, INT32_MAX);
	attr->max_srq_wr = min_int(q->max_srq_wr, INT32_MAX);
	attr->max_srq_sge = min_int(q->max_srq_sge, INT32_MAX);
	attr->max_pkeys = (uint16_t)min_int(q->max_pkeys, UINT16_MAX);
	attr->local_ca_ack_delay = rpost_at_most_u8(q->local_ca_ack_delay);
	attr->phys_port_cnt = rpost_at_most_u8(q->phys_port_cnt);
}

/**
 * ibv_query_device() - get a device's attributes, ibv_query_device(3)
 * @context: of the device
 * @attr: filled in; attributes of features that the module does not offer
 *        (memory windows, raw queue pairs, reliable datagrams) are 0
 *
 * Return: 0, or an errno value: ENODEV if the device has gone.
 */
RPOST_API int ibv_query_device(struct ibv_context *context,
			       struct ibv_device_attr *attr)
{
	struct rpost_ctx *ctx = rpost_ctx(context);
	struct rpost_query_device q;
	int err;

	err = rpost_query_device(ctx->verbs.context.cmd_fd, ctx->dev->num, &q);
	if (!err)
		device_attr(attr, &q);
	return err;
}

/**
 * rpost_query_device_ex() - get all attributes, ibv_query_device_ex(3)
 * @context: of the device
 * @input: NULL, or with a comp_mask of 0
 * @attr: filled in; capabilities that the module does not offer (time stamps,
 *        segmentation, hashing, work queues, rate limits, raw packets, tag
 *        matching, device memory) are 0, and so is on-demand paging
 *        if the administrator does not allow it
 * @attr_size: size of the program's struct
 *
 * Return: 0, or an errno value: EINVAL for a struct without the attributes of
 * ibv_query_device(), ENODEV if the device has gone.
 */
int rpost_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct rpost_ctx *ctx = rpost_ctx(context);
	struct ibv_device_attr_ex all = {};
	struct rpost_query_device q;
	int err;

	if ((input && input->comp_mask) ||
	    attr_size < offsetof(struct ibv_device_attr_ex, comp_mask))
		return EINVAL;
	err = rpost_query_device(ctx->verbs.context.cmd_fd, ctx->dev->num, &q);
	if (err)
		return err;

	device_attr(&all.orig_attr, &q);
	all.device_cap_flags_ex = q.device_cap_flags & ~NOT_OFFERED;
	all.phys_port_cnt_ex = q.phys_port_cnt;
	all.cq_mod_caps.max_cq_count = (uint16_t)q.max_moderate_count;
	all.cq_mod_caps.max_cq_period = (uint16_t)q.max_moderate_us;
	all.odp_caps.general_caps = q.odp_general_caps;
	all.odp_caps.per_transport_caps.rc_odp_caps = q.odp_rc_caps;
	all.odp_caps.per_transport_caps.uc_odp_caps = q.odp_uc_caps;
	all.odp_caps.per_transport_caps.ud_odp_caps = q.odp_ud_caps;
	all.xrc_odp_caps = q.odp_xrc_caps;
	copy_out(attr, attr_size, &all, sizeof(all));
	return 0;
}

/* Version 56 has added active_speed_ex, which the headers may not have. */
union port_attr {
	struct ibv_port_attr attr;
	struct {
		uint8_t older[52];
		uint32_t active_speed_ex;
	} newer;
};

/* The highest value of active_speed. */
#define SPEED_NDR 128

static_assert(offsetof(struct ibv_port_attr, port_cap_flags2) == 48,
	      "struct ibv_port_attr");

/**
 * rpost_query_port() - get a port's attributes, ibv_query_port(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @port_attr: filled in
 * @port_attr_len: size of the program's struct
 *
 * Return: 0, or an errno value as ibv_query_port().
 */
int rpost_query_port(struct ibv_context *context, uint8_t port_num,
		     struct ibv_port_attr *port_attr, size_t port_attr_len)
{
	struct rpost_query_port q = {
		.device = rpost_ctx(context)->dev->num,
		.port = port_num,
	};
	union port_attr all;
	struct ibv_port_attr *attr = &all.attr;
	int err;

	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_QUERY_PORT, &q);
	if (err)
		return err;

	memset(&all, 0, sizeof(all));
	attr->state = q.state;
	attr->max_mtu = q.max_mtu;
	attr->active_mtu = q.active_mtu;
	attr->gid_tbl_len = q.gid_tbl_len;
	attr->port_cap_flags = q.port_cap_flags;
	attr->max_msg_sz = q.max_msg_sz;
	attr->bad_pkey_cntr = q.bad_pkey_cntr;
	attr->qkey_viol_cntr = q.qkey_viol_cntr;
	attr->pkey_tbl_len = q.pkey_tbl_len;
	attr->lid = q.lid;
	attr->sm_lid = q.sm_lid;
	attr->lmc = q.lmc;
	attr->max_vl_num = q.max_vl_num;
	attr->sm_sl = q.sm_sl;
	attr->subnet_timeout = q.subnet_timeout;
	attr->init_type_reply = q.init_type_reply;
	attr->active_width = q.active_width;
	attr->active_speed = q.active_speed <= SPEED_NDR ? q.active_speed :
							 SPEED_NDR;
	attr->phys_state = q.phys_state;
	attr->link_layer = q.link_layer;
	if (q.grh_required)
		attr->flags |= IBV_QPF_GRH_REQUIRED;

	all.newer.active_speed_ex = q.active_speed;

	copy_out(port_attr, port_attr_len, &all, sizeof(all));
	return 0;
}

#undef ibv_query_port

/**
 * ibv_query_port() - get a port's attributes, ibv_query_port(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @port_attr: filled in, without port_cap_flags2, which the struct of old
 *             programs does not have; new programs use rpost_query_port()
 *
 * Return: 0, or an errno value: EINVAL for a port that the device does not
 * have, ENODEV if the device has gone.
 */
RPOST_API int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			     struct _compat_ibv_port_attr *port_attr)
{
	return rpost_query_port(context, port_num,
				(struct ibv_port_attr *)port_attr,
				offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* Looks up one entry of a GID table.  Returns ENODATA if it is empty. */
static int query_gid(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct rpost_gid *gid)
{
	struct rpost_query_gids cmd = {
		.device = rpost_ctx(context)->dev->num,
		.port = port,
		.first = index,
		.count = 1,
		.gids = (uintptr_t)gid,
	};
	int err;

	if (!port)
		return EINVAL;
	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_QUERY_GIDS, &cmd);
	if (err)
		return err;
	/* If the entry is empty, the kernel returns the next valid one. */
	return cmd.count && gid->port == port && gid->index == index ?
	       0 : ENODATA;
}

static void copy_gid(void *entry, size_t entry_size,
		     const struct rpost_gid *gid)
{
	struct ibv_gid_entry out = {
		.gid_index = gid->index,
		.port_num = gid->port,
		.gid_type = gid->type,
		.ndev_ifindex = gid->ndev_ifindex,
	};

	memcpy(out.gid.raw, gid->gid, sizeof(out.gid.raw));
	copy_out(entry, entry_size, &out, sizeof(out));
}

/**
 * ibv_query_gid() - get an entry of a port's GID table, ibv_query_gid(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @index: index in the table
 * @gid: set to the GID, or to 0 for an empty entry
 *
 * Return: 0, or -1 with errno: EINVAL for a port or an index that the device
 * does not have, ENODEV if it has gone.
 */
RPOST_API int ibv_query_gid(struct ibv_context *context, uint8_t port_num,
			    int index, union ibv_gid *gid)
{
	struct rpost_gid entry;
	int err;

	err = query_gid(context, port_num, index, &entry);
	if (err && err != ENODATA)
		return rpost_fail(err);
	if (err)
		memset(gid, 0, sizeof(*gid));
	else
		memcpy(gid->raw, entry.gid, sizeof(gid->raw));
	return 0;
}

/**
 * _ibv_query_gid_ex() - get an entry of a GID table, ibv_query_gid_ex(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @gid_index: index in the table
 * @entry: filled in
 * @flags: must be 0
 * @entry_size: size of the program's struct
 *
 * Return: 0, or an errno value: ENODATA for an empty entry, EINVAL for a port
 * or an index that the device does not have, ENODEV if it has gone.
 */
RPOST_API int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
				uint32_t gid_index, struct ibv_gid_entry *entry,
				uint32_t flags, size_t entry_size)
{
	struct rpost_gid gid;
	int err;

	if (flags || !entry_size)
		return EINVAL;
	err = query_gid(context, port_num, gid_index, &gid);
	if (!err)
		copy_gid(entry, entry_size, &gid);
	return err;
}

/**
 * _ibv_query_gid_table() - get all GIDs of a device, ibv_query_gid_table(3)
 * @context: of the device
 * @entries: filled in with the valid entries of all ports
 * @max_entries: room in @entries
 * @flags: must be 0
 * @entry_size: size of the program's struct
 *
 * Return: how many entries there are, or a negative errno value: -EINVAL if
 * there are more than @max_entries, -ENODEV if the device has gone, -ENOMEM.
 */
RPOST_API ssize_t _ibv_query_gid_table(struct ibv_context *context,
				       struct ibv_gid_entry *entries,
				       size_t max_entries, uint32_t flags,
				       size_t entry_size)
{
	struct rpost_query_gids cmd = { .device = rpost_ctx(context)->dev->num };
	struct rpost_gid *gids;
	uint32_t i;
	int err;

	if (flags || !entry_size || !max_entries)
		return -EINVAL;
	/* Ask for one more, to find out whether the room is enough. */
	cmd.count = (max_entries < MAX_GIDS ? max_entries : MAX_GIDS) + 1;
	gids = calloc(cmd.count, sizeof(*gids));
	if (!gids)
		return -ENOMEM;
	cmd.gids = (uintptr_t)gids;

	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_QUERY_GIDS, &cmd);
	if (!err && cmd.count > max_entries)
		err = EINVAL;
	for (i = 0; !err && i < cmd.count; i++)
		copy_gid((char *)entries + i * entry_size, entry_size,
			 &gids[i]);
	free(gids);
	return err ? -err : (ssize_t)cmd.count;
}

/**
 * ibv_query_pkey() - get an entry of a port's P_Key table, ibv_query_pkey(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @index: index in the table
 * @pkey: set to the P_Key, in network byte order
 *
 * Return: 0, or -1 with errno: EINVAL for a port or an index that the device
 * does not have, ENODEV if it has gone.
 */
RPOST_API int ibv_query_pkey(struct ibv_context *context, uint8_t port_num,
			     int index, __be16 *pkey)
{
	struct rpost_query_pkeys cmd = {
		.device = rpost_ctx(context)->dev->num,
		.port = port_num,
		.first = index,
		.count = 1,
		.pkeys = (uintptr_t)pkey,
	};
	int err;

	err = rpost_ioctl(context->cmd_fd, RPOST_IOC_QUERY_PKEYS, &cmd);
	if (!err && !cmd.count)
		err = EINVAL;
	return rpost_fail(err);
}

/**
 * ibv_get_pkey_index() - find a P_Key in a port's table, ibv_get_pkey_index(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @pkey: the P_Key, in network byte order
 *
 * Return: its first index in the table, or -1 with errno: EINVAL if it is not
 * in the table or the device does not have the port.
 */
RPOST_API int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
				 __be16 pkey)
{
	__be16 entry;
	int i;

	for (i = 0; !ibv_query_pkey(context, port_num, i, &entry); i++)
		if (entry == pkey)
			return i;
	return -1;
}
