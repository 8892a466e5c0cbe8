// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices.
 */
#include <linux/slab.h>
#include <linux/xarray.h>
#include <rdma/ib_cache.h>

#include "base/inject.h"
#include "core/device.h"

struct workqueue_struct *rpost_wq;

/* Devices by their number. */
static DEFINE_XARRAY_ALLOC1(rpost_devices);
static u32 rpost_next_device;

/* It ends what is on a removed device. */
static void (*rpost_gone)(struct rpost_device *dev);

static void rpost_device_free(struct kref *kref)
{
	struct rpost_device *dev = container_of(kref, struct rpost_device, kref);

	kfree_rcu(dev, rcu);
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

static struct ib_client rpost_client;

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
	rpost_gone(dev);
	rpost_device_put(dev);
}

/*
 * It is registered after rdma_cm's client, so its remove() is called first: queue
 * pairs are gone when cma reports the removal to their ids.
 */
static struct ib_client rpost_client = {
	.name	= "rdma_post",
	.add	= rpost_device_add,
	.remove	= rpost_device_remove,
	.rename	= rpost_device_rename,
};

/*
 * Begin to follow devices.  gone ends what is on a removed device, and returns when no
 * file uses the device any more.
 */
int rpost_device_register(void (*gone)(struct rpost_device *dev))
{
	rpost_gone = gone;
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
	static_assert(sizeof_field(struct rpost_query_device, name) == IB_DEVICE_NAME_MAX);
	spin_lock(&dev->name_lock);
	strscpy(name, dev->name, IB_DEVICE_NAME_MAX);
	spin_unlock(&dev->name_lock);
}

/*
 * Return the work requests of the longest queue that a program may ask for.  One entry
 * is reserved for the drain WR.
 */
u32 rpost_device_max_wr(struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;

	/* Both queues of a pair may share a completion queue. */
	return min3((u32)attr->max_qp_wr - 1, (u32)attr->max_cqe / 2 - 1, (u32)RPOST_MAX_WR);
}

/* If the device reports 0, reads have the limit of other sends. */
u32 rpost_device_max_sge_rd(const struct ib_device *ib_dev)
{
	return ib_dev->attrs.max_sge_rd ? : ib_dev->attrs.max_send_sge;
}

u32 rpost_device_max_srq_wr(struct ib_device *ib_dev)
{
	const struct ib_device_attr *attr = &ib_dev->attrs;

	return min3((u32)attr->max_srq_wr, (u32)attr->max_cqe, (u32)RPOST_MAX_WR);
}

/*
 * May the file's paths have this GID?  RoCE's GIDs are addresses of interfaces, and the
 * core takes the network namespace of a path from its GID.  A file has those of its own
 * namespace.  Set ifindex to the number of the GID's interface, or 0 if it has none.
 */
static bool rpost_gid_usable(const struct rpost_file *file,
			     const struct ib_gid_attr *gid, u32 *ifindex)
{
	struct net_device *ndev;
	bool usable;

	*ifindex = 0;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(gid);
	if (IS_ERR(ndev)) {
		/* It is -EINVAL for an entry that is being removed. */
		usable = PTR_ERR(ndev) == -ENODEV;
	} else {
		usable = net_eq(dev_net(ndev), file->net);
		*ifindex = ndev->ifindex;
	}
	rcu_read_unlock();
	return usable;
}

/*
 * May a path go on with this GID, of which it has a reference?  There may be none.  An
 * entry of the table that has gone may have been replaced by an equal one.
 */
bool rpost_gid_allowed(const struct rpost_file *file, const struct ib_gid_attr *gid)
{
	const struct ib_gid_attr *now;
	bool usable;
	u32 ifindex;

	/* InfiniBand's and iWARP's are no addresses of interfaces, and are set anew often. */
	if (!gid || !rdma_protocol_roce(gid->device, gid->port_num) ||
	    rpost_gid_usable(file, gid, &ifindex))
		return true;
	now = rdma_find_gid_by_port(gid->device, &gid->gid, gid->gid_type, gid->port_num, NULL);
	if (IS_ERR(now))
		return false;
	usable = rpost_gid_usable(file, now, &ifindex);
	rdma_put_gid_attr(now);
	return usable;
}

/*
 * Get a GID that programs may use.  Set ifindex to the number of the GID's interface, or
 * 0 if it has none.
 *
 * Return the GID, with a reference, or ERR_PTR() of -EINVAL.
 */
const struct ib_gid_attr *rpost_gid_get(const struct rpost_file *file,
					struct ib_device *ib_dev, u32 port,
					u32 index, u32 *ifindex)
{
	const struct ib_gid_attr *gid = rdma_get_gid_attr(ib_dev, port, index);

	if (IS_ERR(gid))
		return ERR_PTR(-EINVAL);
	if (!rpost_gid_usable(file, gid, ifindex)) {
		rdma_put_gid_attr(gid);
		return ERR_PTR(-EINVAL);
	}
	return gid;
}

/*
 * Set ids to the first room numbers of devices that the file is offered.  Return how many
 * there are.
 */
u32 rpost_devices_list(struct rpost_file *file, u32 *ids, u32 room)
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
