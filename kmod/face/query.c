// SPDX-License-Identifier: GPL-2.0
/*
 * The commands that tell programs of the module, its devices, their ports, and the tables
 * of ports: GIDs and P_Keys.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_cache.h>

#include "compat/compat.h"
#include "face/face.h"
#include "memory/memory.h"
#include "queue/srq.h"

static_assert(RPOST_GID_IB == (int)IB_GID_TYPE_IB);
static_assert(RPOST_GID_ROCE_V1 == (int)IB_GID_TYPE_ROCE);
static_assert(RPOST_GID_ROCE_V2 == (int)IB_GID_TYPE_ROCE_UDP_ENCAP);

int rpost_query_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query *cmd = &ucmd->cmd.query;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	cmd->abi_version = RPOST_ABI_VERSION;
	cmd->num_devices = rpost_devices_list(ucmd->file, NULL, 0);
	cmd->features = 0;
	cmd->max_wr_bytes = RPOST_MAX_WR_BYTES;
	cmd->num_objects = READ_ONCE(ucmd->file->handles.num);
	cmd->num_refused = rpost_device_count_refused(ucmd->file);
	return rpost_respond(ucmd);
}

int rpost_query_devices_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_devices *cmd = &ucmd->cmd.query_devices;
	u32 room = min(cmd->count, 1024u);
	int ret = 0;
	u32 *ids;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	ids = kcalloc(room, sizeof(*ids), RPOST_GFP);
	if (!ids)
		return -ENOMEM;
	cmd->count = rpost_devices_list(ucmd->file, ids, room);
	if (copy_to_user(u64_to_user_ptr(cmd->devices), ids, min(room, cmd->count) * sizeof(*ids)))
		ret = -EFAULT;
	kfree(ids);
	return ret ? : rpost_respond(ucmd);
}

int rpost_query_device_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_device *cmd = &ucmd->cmd.query_device;
	const struct ib_device_attr *attr;
	struct rpost_device *dev;
	struct ib_device *ib_dev;
	u64 missing;

	dev = rpost_device_find(ucmd->file, cmd->device ? : rpost_share_device(ucmd->filp));
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ib_dev = dev->ib_dev;
	attr = &ib_dev->attrs;
	/* Kernel verbs have no work requests for these. */
	missing = RPOST_COMPAT_USER_CAPS;
	if (!rpost_srq_can_resize(ib_dev))
		missing |= IB_DEVICE_SRQ_RESIZE;

	*cmd = (struct rpost_query_device) {
		.size = cmd->size,
		.device = dev->id,
		.phys_port_cnt = ib_dev->phys_port_cnt,
		.node_guid = ib_dev->node_guid,
		.sys_image_guid = attr->sys_image_guid,
		.node_type = ib_dev->node_type,
		.transport = rdma_node_get_transport(ib_dev->node_type),
		.fw_ver = attr->fw_ver,
		.max_mr_size = rpost_mr_max_size(dev),
		.page_size_cap = attr->page_size_cap,
		.device_cap_flags = attr->device_cap_flags & ~missing,
		.vendor_id = attr->vendor_id,
		.vendor_part_id = attr->vendor_part_id,
		.hw_ver = attr->hw_ver,
		.max_qp = attr->max_qp,
		.max_qp_wr = rpost_device_max_wr(ib_dev),
		.max_send_sge = min(attr->max_send_sge, RPOST_MAX_SGE),
		.max_recv_sge = min(attr->max_recv_sge, RPOST_MAX_SGE),
		.max_sge_rd = min_t(u32, rpost_device_max_sge_rd(ib_dev), RPOST_MAX_SGE),
		.max_cq = attr->max_cq,
		.max_cqe = attr->max_cqe,
		.max_mr = attr->max_mr,
		.max_pd = attr->max_pd,
		.max_qp_rd_atom = attr->max_qp_rd_atom,
		.max_res_rd_atom = attr->max_res_rd_atom,
		.max_qp_init_rd_atom = attr->max_qp_init_rd_atom,
		.atomic_cap = attr->atomic_cap,
		.max_srq = attr->max_srq,
		.max_srq_wr = rpost_device_max_srq_wr(ib_dev),
		.max_srq_sge = min(attr->max_srq_sge, RPOST_MAX_SGE),
		.max_ah = attr->max_ah,
		.max_mcast_grp = attr->max_mcast_grp,
		.max_mcast_qp_attach = attr->max_mcast_qp_attach,
		.max_total_mcast_qp_attach = attr->max_total_mcast_qp_attach,
		.max_pkeys = attr->max_pkeys,
		.local_ca_ack_delay = attr->local_ca_ack_delay,
		.num_comp_vectors = ib_dev->num_comp_vectors,
		.max_inline_data = RPOST_MAX_INLINE,
		.index = ib_dev->index,
		.max_moderate_count = attr->cq_caps.max_cq_moderation_count,
		.max_moderate_us = attr->cq_caps.max_cq_moderation_period,
	};
	rpost_odp_query(dev, cmd);
	rpost_device_name(dev, cmd->name);

	rpost_device_unfind(dev);
	return rpost_respond(ucmd);
}

int rpost_query_port_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_port *cmd = &ucmd->cmd.query_port;
	struct ib_port_attr attr = {};
	struct rpost_device *dev;
	struct ib_device *ib_dev;
	int ret;

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ib_dev = dev->ib_dev;

	ret = -EINVAL;
	if (!rdma_is_port_valid(ib_dev, cmd->port))
		goto out;
	ret = ib_query_port(ib_dev, cmd->port, &attr);
	if (ret)
		goto out;

	*cmd = (struct rpost_query_port) {
		.size = cmd->size,
		.device = cmd->device,
		.port = cmd->port,
		.state = attr.state,
		.max_mtu = attr.max_mtu,
		.active_mtu = attr.active_mtu,
		.gid_tbl_len = attr.gid_tbl_len,
		.port_cap_flags = attr.port_cap_flags,
		.max_msg_sz = attr.max_msg_sz,
		.bad_pkey_cntr = attr.bad_pkey_cntr,
		.qkey_viol_cntr = attr.qkey_viol_cntr,
		.pkey_tbl_len = attr.pkey_tbl_len,
		.lid = attr.lid,
		.sm_lid = attr.sm_lid,
		.lmc = attr.lmc,
		.max_vl_num = attr.max_vl_num,
		.sm_sl = attr.sm_sl,
		.subnet_timeout = attr.subnet_timeout,
		.init_type_reply = attr.init_type_reply,
		.active_width = attr.active_width,
		.phys_state = attr.phys_state,
		.link_layer = rdma_port_get_link_layer(ib_dev, cmd->port),
		.active_speed = attr.active_speed,
		.grh_required = rdma_is_grh_required(ib_dev, cmd->port),
	};
out:
	rpost_device_unfind(dev);
	return ret ? : rpost_respond(ucmd);
}

static u32 rpost_gid_tbl_len(struct ib_device *ib_dev, u32 port)
{
	return ib_dev->port_data[port].immutable.gid_tbl_len;
}

static u32 rpost_gids_list(const struct rpost_file *file,
			   struct ib_device *ib_dev, u32 port, u32 first,
			   struct rpost_gid *gids, u32 room)
{
	u32 index, len = rpost_gid_tbl_len(ib_dev, port), n = 0, ifindex;
	const struct ib_gid_attr *attr;

	for (index = first; index < len && n < room; index++) {
		attr = rpost_gid_get(file, ib_dev, port, index, &ifindex);
		if (IS_ERR(attr))
			continue;
		gids[n] = (struct rpost_gid) {
			.index = index,
			.port = port,
			.type = attr->gid_type,
			.ndev_ifindex = ifindex,
		};
		memcpy(gids[n].gid, attr->gid.raw, sizeof(gids[n].gid));
		rdma_put_gid_attr(attr);
		n++;
	}
	return n;
}

/* Count the table entries from @cmd->first on, valid or not. */
static int rpost_query_gids_validate(const struct rpost_query_gids *cmd,
				     struct ib_device *ib_dev, u32 *total)
{
	u32 port, len = 0;

	if (!cmd->port) {
		rdma_for_each_port(ib_dev, port)
			len += rpost_gid_tbl_len(ib_dev, port);
		*total = len;
		return cmd->first ? -EINVAL : 0;
	}
	if (!rdma_is_port_valid(ib_dev, cmd->port))
		return -EINVAL;
	len = rpost_gid_tbl_len(ib_dev, cmd->port);
	if (cmd->first && cmd->first >= len)
		return -EINVAL;
	*total = len - cmd->first;
	return 0;
}

int rpost_query_gids_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_gids *cmd = &ucmd->cmd.query_gids;
	struct rpost_gid *gids = NULL;
	struct rpost_device *dev;
	struct ib_device *ib_dev;
	u32 port, room, n = 0;
	int ret;

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ib_dev = dev->ib_dev;
	ret = rpost_query_gids_validate(cmd, ib_dev, &room);
	if (ret)
		goto out;
	room = min(room, cmd->count);
	gids = rpost_kvcalloc(room, sizeof(*gids));
	if (!gids) {
		ret = -ENOMEM;
		goto out;
	}

	rdma_for_each_port(ib_dev, port) {
		if (!cmd->port || port == cmd->port)
			n += rpost_gids_list(ucmd->file, ib_dev, port, cmd->first,
					     gids + n, room - n);
	}
out:
	rpost_device_unfind(dev);
	if (!ret && copy_to_user(u64_to_user_ptr(cmd->gids), gids, array_size(n, sizeof(*gids))))
		ret = -EFAULT;
	cmd->count = n;
	kvfree(gids);
	return ret ? : rpost_respond(ucmd);
}

static int rpost_pkeys_list(struct ib_device *ib_dev, u32 port, u32 first, __be16 *pkeys, u32 count)
{
	u16 pkey;
	int ret;
	u32 i;

	for (i = 0; i < count; i++) {
		ret = ib_query_pkey(ib_dev, port, first + i, &pkey);
		if (ret)
			return ret;
		pkeys[i] = cpu_to_be16(pkey);
	}
	return 0;
}

int rpost_query_pkeys_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_pkeys *cmd = &ucmd->cmd.query_pkeys;
	struct rpost_device *dev;
	struct ib_device *ib_dev;
	__be16 *pkeys = NULL;
	u32 len;
	int ret;

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ib_dev = dev->ib_dev;
	ret = -EINVAL;
	if (!rdma_is_port_valid(ib_dev, cmd->port))
		goto out;
	len = ib_dev->port_data[cmd->port].immutable.pkey_tbl_len;
	if (cmd->first && cmd->first >= len)
		goto out;
	cmd->count = min(cmd->count, len - cmd->first);

	ret = -ENOMEM;
	pkeys = rpost_kvcalloc(cmd->count, sizeof(*pkeys));
	if (pkeys)
		ret = rpost_pkeys_list(ib_dev, cmd->port, cmd->first, pkeys, cmd->count);
out:
	rpost_device_unfind(dev);
	if (!ret && copy_to_user(u64_to_user_ptr(cmd->pkeys), pkeys,
				 cmd->count * sizeof(*pkeys)))
		ret = -EFAULT;
	kvfree(pkeys);
	return ret ? : rpost_respond(ucmd);
}
