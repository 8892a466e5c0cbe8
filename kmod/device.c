// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <rdma/ib_cache.h>

#include "compat/compat.h"
#include "device.h"
#include "inject.h"
#include "srq.h"

/* Devices by their number. */
static DEFINE_XARRAY_ALLOC1(rpost_devices);
static u32 rpost_next_device;

/* Ends what is on a removed device. */
static void (*rpost_device_gone)(struct rpost_device *dev);

static void rpost_device_free(struct kref *kref)
{
	struct rpost_device *dev = container_of(kref, struct rpost_device, kref);

	kfree_rcu(dev, rcu);
}

/* The caller has a reference already. */
void rpost_device_hold(struct rpost_device *dev)
{
	kref_get(&dev->kref);
}

void rpost_device_put(struct rpost_device *dev)
{
	kref_put(&dev->kref, rpost_device_free);
}

/*
 * Let a device keep an object after the module unloads.  The object's restrack entry
 * names its creator.
 */
void rpost_leave_behind(struct rdma_restrack_entry *res, struct rpost_device *dev)
{
	/* The old name is a string of this module, which may be unloaded. */
	res->kern_name = dev->ib_dev->name;
}

/* If true, the device stays until the caller drops its context's rwsem. */
bool rpost_device_alive(struct rpost_device *dev)
{
	return !READ_ONCE(dev->dead);
}

/*
 * Look up a device that the file's network namespace has.  Return it with a reference,
 * and with one on its ib_dev, which delays the end of the removal until
 * ib_device_put(); or ERR_PTR(-ENODEV).  rpost_device_unfind() drops both.
 */
struct rpost_device *rpost_device_find(struct rpost_file *file, u32 id)
{
	struct rpost_device *dev;

	rcu_read_lock();
	dev = xa_load(&rpost_devices, id);
	/* Removal sets @dead, and continues after a grace period. */
	if (dev && (dev->refused || !rpost_device_alive(dev) ||
		    !ib_device_try_get(dev->ib_dev)))
		dev = NULL;
	if (dev)
		kref_get(&dev->kref);
	rcu_read_unlock();
	if (!dev)
		return ERR_PTR(-ENODEV);
	if (!rdma_dev_access_netns(dev->ib_dev, file->net)) {
		rpost_device_unfind(dev);
		return ERR_PTR(-ENODEV);
	}
	return dev;
}

void rpost_device_unfind(struct rpost_device *dev)
{
	ib_device_put(dev->ib_dev);
	rpost_device_put(dev);
}

static int rpost_device_add(struct ib_device *ib_dev);
static void rpost_device_remove(struct ib_device *ib_dev, void *client_data);
static void rpost_device_rename(struct ib_device *ib_dev, void *client_data);

/*
 * Registered after rdma_cm's client, so its remove() is called first: queue
 * pairs are gone when cma reports the removal to their ids.
 */
static struct ib_client rpost_client = {
	.name	= "rdma_post",
	.add	= rpost_device_add,
	.remove	= rpost_device_remove,
	.rename	= rpost_device_rename,
};

/* The RDMA core calls add() and rename() under its lock against renames. */
static void rpost_device_rename(struct ib_device *ib_dev, void *client_data)
{
	struct rpost_device *dev = client_data;

	spin_lock(&dev->name_lock);
	strscpy(dev->name, dev_name(&ib_dev->dev), sizeof(dev->name));
	spin_unlock(&dev->name_lock);
}

static int rpost_device_add(struct ib_device *ib_dev)
{
	struct rpost_device *dev;
	int ret;

	if (rpost_inject(RPOST_INJECT_DEVICE))
		return -ENOMEM;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	kref_init(&dev->kref);
	dev->ib_dev = ib_dev;
	rpost_admit(dev);

	spin_lock_init(&dev->name_lock);
	mutex_init(&dev->contexts_lock);
	INIT_LIST_HEAD(&dev->contexts);
	mutex_init(&dev->routes_lock);
	INIT_LIST_HEAD(&dev->routes);
	init_waitqueue_head(&dev->routes_wait);
	rpost_device_rename(ib_dev, dev);
	rpost_async_device_add(dev);

	ret = -ENOMEM;
	if (!rpost_inject(RPOST_INJECT_DEVICE_ID))
		ret = xa_alloc_cyclic(&rpost_devices, &dev->id, dev,
				      xa_limit_31b, &rpost_next_device,
				      GFP_KERNEL);
	if (ret < 0) {
		ib_unregister_event_handler(&dev->event_handler);
		rpost_device_put(dev);
		return ret;
	}
	ib_set_client_data(ib_dev, &rpost_client, dev);
	return 0;
}

static void rpost_device_remove(struct ib_device *ib_dev, void *client_data)
{
	struct rpost_device *dev = client_data;

	xa_erase(&rpost_devices, dev->id);

	ib_set_client_data(ib_dev, &rpost_client, NULL);
	/*
	 * A command that has seen the device alive has a reference on @ib_dev,
	 * for which ib_core waits, or a context's rwsem, for which this waits.
	 */
	WRITE_ONCE(dev->dead, true);
	synchronize_rcu();
	rpost_device_gone(dev);
	rpost_device_put(dev);
}

/*
 * Begin to follow devices.  gone ends what is on a removed device, and lasts until no
 * file uses it.
 */
int rpost_device_register(void (*gone)(struct rpost_device *dev))
{
	rpost_device_gone = gone;
	return ib_register_client(&rpost_client);
}

void rpost_device_unregister(void)
{
	ib_unregister_client(&rpost_client);
	xa_destroy(&rpost_devices);
}

/*
 * The caller keeps the device from being removed.  Return 0 if programs may not use it:
 * not yet, not any more, or never.
 */
u32 rpost_device_id(struct ib_device *ib_dev)
{
	struct rpost_device *dev;
	u32 id;

	/* Removal clears the client data before cma reports the removal. */
	rcu_read_lock();
	dev = ib_get_client_data(ib_dev, &rpost_client);
	id = dev && !dev->refused ? dev->id : 0;
	rcu_read_unlock();
	return id;
}

/*
 * Find a device of the RDMA core, admitted or not, which the caller keeps from being
 * freed.  Return it with a reference, to be dropped by rpost_device_put(), or NULL: not
 * yet added, or removed.
 */
struct rpost_device *rpost_device_of(struct ib_device *ib_dev)
{
	struct rpost_device *dev;

	rcu_read_lock();
	dev = ib_get_client_data(ib_dev, &rpost_client);
	/* Removal drops its reference after a grace period. */
	if (dev)
		kref_get(&dev->kref);
	rcu_read_unlock();
	return dev;
}

/* Set name to the device's name at this moment. */
void rpost_device_name(struct rpost_device *dev, char name[IB_DEVICE_NAME_MAX])
{
	static_assert(sizeof_field(struct rpost_query_device, name) ==
		      IB_DEVICE_NAME_MAX);
	spin_lock(&dev->name_lock);
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
	spin_unlock(&dev->name_lock);
}

/*
 * Set name to the device's name at this moment.  The caller keeps the device from being
 * freed.  Return false if programs may not use it: not yet, not any more, or never.
 */
bool rpost_device_name_of(struct ib_device *ib_dev, char name[IB_DEVICE_NAME_MAX])
{
	struct rpost_device *dev;

	rcu_read_lock();
	dev = ib_get_client_data(ib_dev, &rpost_client);
	/* Removal frees it after a grace period. */
	if (dev && !dev->refused)
		rpost_device_name(dev, name);
	else
		dev = NULL;
	rcu_read_unlock();
	return dev;
}

/*
 * Return the work requests of the longest queue that a program may ask for.  One entry
 * is reserved for the drain WR.
 */
u32 rpost_device_max_wr(struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;

	/* Both queues of a pair may share a completion queue. */
	return min3((u32)attr->max_qp_wr - 1, (u32)attr->max_cqe / 2 - 1,
		    (u32)RPOST_MAX_WR);
}

/* If the device reports 0, reads have the limit of other sends. */
u32 rpost_device_max_sge_rd(const struct ib_device *ib_dev)
{
	return ib_dev->attrs.max_sge_rd ? : ib_dev->attrs.max_send_sge;
}

u32 rpost_device_max_srq_wr(struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;

	return min3((u32)attr->max_srq_wr, (u32)attr->max_cqe,
		    (u32)RPOST_MAX_WR);
}

/*
 * Get a GID that programs may use.  Set ifindex to the number of the GID's interface, or
 * 0 if it has none.
 *
 * RoCE's GIDs are addresses of interfaces, and the core takes the network namespace of a
 * path from its GID.  A file gets those of its own namespace.
 *
 * Return the GID, with a reference, or ERR_PTR() of -EINVAL.
 */
const struct ib_gid_attr *rpost_gid_get(const struct rpost_file *file,
					struct ib_device *ib_dev, u32 port,
					u32 index, u32 *ifindex)
{
	const struct ib_gid_attr *gid = rdma_get_gid_attr(ib_dev, port, index);
	struct net_device *ndev;
	bool usable;

	if (IS_ERR(gid))
		return ERR_PTR(-EINVAL);

	*ifindex = 0;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(gid);
	if (IS_ERR(ndev)) {
		/* -EINVAL for an entry that is being removed */
		usable = PTR_ERR(ndev) == -ENODEV;
	} else {
		usable = net_eq(dev_net(ndev), file->net);
		*ifindex = ndev->ifindex;
	}
	rcu_read_unlock();

	if (!usable) {
		rdma_put_gid_attr(gid);
		return ERR_PTR(-EINVAL);
	}
	return gid;
}

static u32 rpost_devices_list(struct rpost_file *file, u32 *ids, u32 room)
{
	struct rpost_device *dev;
	unsigned long id;
	u32 count = 0;

	xa_for_each(&rpost_devices, id, dev) {
		dev = rpost_device_find(file, id);
		if (IS_ERR(dev))
			continue;
		if (count < room)
			ids[count] = id;
		count++;
		rpost_device_unfind(dev);
	}
	return count;
}

/* Count the devices that the file is offered. */
unsigned int rpost_device_count(struct rpost_file *file)
{
	return rpost_devices_list(file, NULL, 0);
}

/* Count the devices that the file is not offered. */
unsigned int rpost_device_count_refused(struct rpost_file *file)
{
	struct rpost_device *dev;
	unsigned int count = 0;
	unsigned long id;

	/* Removal waits for a grace period, as in rpost_device_find(). */
	rcu_read_lock();
	xa_for_each(&rpost_devices, id, dev)
		count += dev->refused && rpost_device_alive(dev) &&
			 rdma_dev_access_netns(dev->ib_dev, file->net);
	rcu_read_unlock();
	return count;
}

int rpost_query_devices_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_devices *cmd = &ucmd->cmd.query_devices;
	u32 room = min(cmd->count, 1024u);
	u32 *ids = NULL;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (room) {
		ids = kcalloc(room, sizeof(*ids), RPOST_GFP);
		if (!ids)
			return -ENOMEM;
	}
	cmd->count = rpost_devices_list(ucmd->file, ids, room);
	ret = 0;
	if (copy_to_user(u64_to_user_ptr(cmd->devices), ids,
			 min(room, cmd->count) * sizeof(*ids)))
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

	dev = rpost_device_find(ucmd->file, cmd->device ? :
				rpost_share_device(ucmd->filp));
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
		.max_sge_rd = min_t(u32, rpost_device_max_sge_rd(ib_dev),
				    RPOST_MAX_SGE),
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
