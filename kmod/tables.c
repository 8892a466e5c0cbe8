// SPDX-License-Identifier: GPL-2.0
/*
 * The tables of a device's ports: GIDs and P_Keys.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_cache.h>

#include "device.h"

static_assert(RPOST_GID_IB == (int)IB_GID_TYPE_IB);
static_assert(RPOST_GID_ROCE_V1 == (int)IB_GID_TYPE_ROCE);
static_assert(RPOST_GID_ROCE_V2 == (int)IB_GID_TYPE_ROCE_UDP_ENCAP);

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
	struct rpost_gid *gids;
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
		goto err;
	room = min(room, cmd->count);
	gids = rpost_kvcalloc(max(room, 1u), sizeof(*gids));
	if (!gids) {
		ret = -ENOMEM;
		goto err;
	}

	if (cmd->port) {
		n = rpost_gids_list(ucmd->file, ib_dev, cmd->port, cmd->first,
				    gids, room);
	} else {
		rdma_for_each_port(ib_dev, port)
			n += rpost_gids_list(ucmd->file, ib_dev, port, 0,
					     gids + n, room - n);
	}
	rpost_device_unfind(dev);
	if (copy_to_user(u64_to_user_ptr(cmd->gids), gids,
			 array_size(n, sizeof(*gids))))
		ret = -EFAULT;
	cmd->count = n;
	kvfree(gids);
	return ret ? : rpost_respond(ucmd);

err:
	rpost_device_unfind(dev);
	return ret;
}

static int rpost_pkeys_list(struct ib_device *ib_dev, u32 port, u32 first,
			    __be16 *pkeys, u32 count)
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
	__be16 *pkeys;
	u32 len;
	int ret;

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	ib_dev = dev->ib_dev;
	ret = -EINVAL;
	if (!rdma_is_port_valid(ib_dev, cmd->port))
		goto err;
	len = ib_dev->port_data[cmd->port].immutable.pkey_tbl_len;
	if (cmd->first && cmd->first >= len)
		goto err;
	cmd->count = min(cmd->count, len - cmd->first);

	ret = -ENOMEM;
	pkeys = rpost_kvcalloc(max(cmd->count, 1u), sizeof(*pkeys));
	if (!pkeys)
		goto err;
	ret = rpost_pkeys_list(ib_dev, cmd->port, cmd->first, pkeys,
			       cmd->count);
	rpost_device_unfind(dev);
	if (!ret && copy_to_user(u64_to_user_ptr(cmd->pkeys), pkeys,
				 cmd->count * sizeof(*pkeys)))
		ret = -EFAULT;
	kvfree(pkeys);
	return ret ? : rpost_respond(ucmd);

err:
	rpost_device_unfind(dev);
	return ret;
}
