// SPDX-License-Identifier: GPL-2.0
/*
 * Devices, their port, and the parameters that select their behaviour.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/rdma_netlink.h>

#include "rdmasim.h"

MODULE_DESCRIPTION("RDMA device in software whose behaviour can be chosen, for tests");
MODULE_LICENSE("GPL");
MODULE_ALIAS_RDMA_LINK("sim");

DEFINE_SPINLOCK(sim_dev_lock);
LIST_HEAD(sim_devs);
struct workqueue_struct *sim_wq;
/* The parent of all devices, for which memory is mapped. */
struct platform_device *sim_parent;

/* ------------------------------------------------- parameters */

struct sim_options sim_options = {
	.max_sge = SIM_MAX_SGE,
	.max_wr = 16384,
	.max_pages = 512,
	.driver_id = RDMA_DRIVER_UNKNOWN,
};

module_param_named(engine, sim_options.engine, charp, 0644);
MODULE_PARM_DESC(engine, "inline, softirq, hardirq or work (default)");
module_param_named(notify, sim_options.notify, charp, 0644);
MODULE_PARM_DESC(notify, "engine (default), locked, softirq, hardirq or work");
module_param_named(purge, sim_options.purge, bool, 0644);
MODULE_PARM_DESC(purge, "completions go with RESET and destroy");
module_param_named(no_last_wqe, sim_options.no_last_wqe, bool, 0644);
MODULE_PARM_DESC(no_last_wqe, "LAST_WQE_REACHED is never told");
module_param_named(last_wqe_late, sim_options.last_wqe_late, uint, 0644);
MODULE_PARM_DESC(last_wqe_late, "LAST_WQE_REACHED is late, in ms");
module_param_named(no_user_mr, sim_options.no_user_mr, bool, 0644);
MODULE_PARM_DESC(no_user_mr, "reg_user_mr() is refused");
module_param_named(no_dma_lkey, sim_options.no_dma_lkey, bool, 0644);
MODULE_PARM_DESC(no_dma_lkey, "there is no local DMA lkey");
module_param_named(no_fast_reg, sim_options.no_fast_reg, bool, 0644);
MODULE_PARM_DESC(no_fast_reg, "there is no fast registration");
module_param_named(no_sge_rd, sim_options.no_sge_rd, bool, 0644);
MODULE_PARM_DESC(no_sge_rd, "max_sge_rd is 0");
module_param_named(round_up, sim_options.round_up, bool, 0644);
MODULE_PARM_DESC(round_up, "queues are larger than asked for");
module_param_named(bad_rkeys, sim_options.bad_rkeys, uint, 0644);
MODULE_PARM_DESC(bad_rkeys, "what is not checked of keys, see README.rst");
module_param_named(slow_destroy, sim_options.slow_destroy, uint, 0644);
MODULE_PARM_DESC(slow_destroy, "a queue pair's end takes so long, in ms");
module_param_named(fail_destroy_qp, sim_options.fail_destroy_qp, uint, 0644);
MODULE_PARM_DESC(fail_destroy_qp, "so many ends of queue pairs fail");
module_param_named(fail_dereg_mr, sim_options.fail_dereg_mr, uint, 0644);
MODULE_PARM_DESC(fail_dereg_mr, "so many ends of regions fail");
module_param_named(max_sge, sim_options.max_sge, uint, 0644);
MODULE_PARM_DESC(max_sge, "pieces in a work request");
module_param_named(max_wr, sim_options.max_wr, uint, 0644);
MODULE_PARM_DESC(max_wr, "work requests in a queue");
module_param_named(max_pages, sim_options.max_pages, uint, 0644);
MODULE_PARM_DESC(max_pages, "pages in a fast registration");
module_param_named(driver_id, sim_options.driver_id, uint, 0644);
MODULE_PARM_DESC(driver_id, "says that it is another driver's device");

/* When the parameter is cleared, the waiting work requests complete. */
static int sim_set_never_flushes(const char *val, const struct kernel_param *kp)
{
	int ret = param_set_bool(val, kp);

	if (!ret && !sim_options.never_flushes)
		sim_qps_kick();
	return ret;
}

static const struct kernel_param_ops sim_never_flushes_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = sim_set_never_flushes,
	.get = param_get_bool,
};

module_param_cb(never_flushes, &sim_never_flushes_ops,
		&sim_options.never_flushes, 0644);
MODULE_PARM_DESC(never_flushes, "nothing completes in the error state, until this is 0");

/* Return the device on a network device, or any, with a reference; or NULL. */
static struct sim_dev *sim_find(const struct net_device *ndev)
{
	struct sim_dev *dev, *found = NULL;

	spin_lock_irq(&sim_dev_lock);
	list_for_each_entry(dev, &sim_devs, link) {
		if ((ndev && dev->ndev != ndev) ||
		    !ib_device_try_get(&dev->ib_dev))
			continue;
		found = dev;
		break;
	}
	spin_unlock_irq(&sim_dev_lock);
	return found;
}

static void sim_raise_of_port(enum ib_event_type type)
{
	struct ib_event event = { .element.port_num = SIM_PORT, .event = type };
	struct sim_dev *dev = sim_find(NULL);

	if (!dev)
		return;
	event.device = &dev->ib_dev;
	ib_dispatch_event(&event);
	ib_device_put(event.device);
}

static int sim_set_raise(const char *val, const struct kernel_param *kp)
{
	unsigned int type;
	int ret = kstrtouint(val, 0, &type);

	if (ret)
		return ret;
	switch (type) {
	case IB_EVENT_DEVICE_FATAL:
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
		sim_raise_of_port(type);
		return 0;
	}
	if (type >= IB_EVENT_GID_CHANGE)
		return -EINVAL;
	sim_qps_raise(type);
	return 0;
}

static const struct kernel_param_ops sim_raise_ops = {
	.set = sim_set_raise,
};

module_param_cb(raise, &sim_raise_ops, NULL, 0200);
MODULE_PARM_DESC(raise, "deliver this event (enum ib_event_type) of the device, its port, or all queues");

/**
 * sim_fail() - decide whether a call fails
 * @left: the parameter with the number of calls that still have to fail
 *
 * Return: true if the call must fail.
 */
bool sim_fail(uint *left)
{
	uint now = READ_ONCE(*left);

	while (now) {
		uint seen = cmpxchg(left, now, now - 1);

		if (seen == now)
			return true;
		now = seen;
	}
	return false;
}

static int sim_choose(const char *value, enum sim_context fallback)
{
	static const char * const names[] = {
		[SIM_INLINE] = "inline",
		[SIM_SOFTIRQ] = "softirq",
		[SIM_HARDIRQ] = "hardirq",
		[SIM_WORK] = "work",
		[SIM_ENGINE] = "engine",
		[SIM_LOCKED] = "locked",
	};

	return value ? sysfs_match_string(names, value) : fallback;
}

static int sim_choose_contexts(struct sim_dev *dev)
{
	int engine, notify;

	kernel_param_lock(THIS_MODULE);
	engine = sim_choose(sim_options.engine, SIM_WORK);
	notify = sim_choose(sim_options.notify, SIM_ENGINE);
	kernel_param_unlock(THIS_MODULE);
	if (engine < 0 || engine > SIM_WORK || notify < SIM_SOFTIRQ)
		return -EINVAL;
	/* A device must not call the consumer from its own post. */
	if (engine == SIM_INLINE && notify >= SIM_ENGINE)
		notify = SIM_HARDIRQ;
	dev->engine = engine;
	dev->notify = notify;
	return 0;
}

/* ------------------------------------------------- the port */

/**
 * sim_port_up() - check whether the port can send and receive
 * @dev: the device
 *
 * Return: true if it can.
 */
bool sim_port_up(const struct sim_dev *dev)
{
	return netif_running(dev->ndev) && netif_carrier_ok(dev->ndev);
}

static enum ib_mtu sim_port_ib_mtu(const struct sim_dev *dev)
{
	/* Leave room for RoCE's headers. */
	int mtu = READ_ONCE(dev->ndev->mtu) - 80;

	return mtu < 256 ? IB_MTU_256 : iboe_get_mtu(dev->ndev->mtu);
}

/**
 * sim_port_mtu() - get the largest size of a datagram
 * @dev: the device
 *
 * Return: bytes.
 */
u32 sim_port_mtu(const struct sim_dev *dev)
{
	return ib_mtu_enum_to_int(sim_port_ib_mtu(dev));
}

static int sim_query_port(struct ib_device *ib_dev, u32 port,
			  struct ib_port_attr *attr)
{
	struct sim_dev *dev = to_sim_dev(ib_dev);
	bool up = sim_port_up(dev);

	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = sim_port_ib_mtu(dev);
	attr->gid_tbl_len = SIM_GID_TABLE;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = BIT(30);
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

static int sim_port_immutable(struct ib_device *ib_dev, u32 port,
			      struct ib_port_immutable *immutable)
{
	immutable->pkey_tbl_len = 1;
	immutable->gid_tbl_len = SIM_GID_TABLE;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer sim_link_layer(struct ib_device *ib_dev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int sim_query_pkey(struct ib_device *ib_dev, u32 port, u16 index,
			  u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

/* ------------------------------------------------- the device */

static int sim_query_device(struct ib_device *ib_dev,
			    struct ib_device_attr *attr, struct ib_udata *udata)
{
	uint max_sge = clamp(sim_options.max_sge, 1u, (uint)SIM_MAX_SGE);
	uint max_wr = clamp(sim_options.max_wr, 1u, (uint)SIM_MAX_WR);

	if (udata && (udata->inlen || udata->outlen))
		return -EOPNOTSUPP;
	attr->sys_image_guid = ib_dev->node_guid;
	attr->max_mr_size = U64_MAX;
	attr->page_size_cap = PAGE_MASK & GENMASK_ULL(30, 0);
	attr->max_qp = 65536;
	attr->max_qp_wr = max_wr;
	attr->device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_PORT_ACTIVE_EVENT |
				 IB_DEVICE_CURR_QP_STATE_MOD;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	if (!sim_options.no_dma_lkey)
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	if (!sim_options.no_fast_reg) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len = clamp(sim_options.max_pages,
							 1u, 65536u);
	}
	attr->max_send_sge = max_sge;
	attr->max_recv_sge = max_sge;
	attr->max_srq_sge = max_sge;
	attr->max_sge_rd = sim_options.no_sge_rd ? 0 : max_sge;
	attr->max_cq = 65536;
	attr->max_cqe = SIM_MAX_CQE;
	attr->cq_caps.max_cq_moderation_count = SIM_MAX_MODERATION;
	attr->cq_caps.max_cq_moderation_period = SIM_MAX_MODERATION;
	attr->max_mr = 1 << 20;
	attr->max_pd = 65536;
	attr->max_qp_rd_atom = SIM_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = SIM_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = SIM_MAX_RD_ATOMIC * 1024;
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->max_mcast_grp = 8192;
	attr->max_mcast_qp_attach = 64;
	attr->max_total_mcast_qp_attach = 65536;
	attr->max_ah = 65536;
	attr->max_srq = 65536;
	attr->max_srq_wr = max_wr;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 1;
	return 0;
}

struct sim_pd {
	struct ib_pd ibpd;
};

static int sim_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return udata ? -EOPNOTSUPP : 0;
}

static int sim_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int sim_enable_driver(struct ib_device *ib_dev)
{
	struct sim_dev *dev = to_sim_dev(ib_dev);

	spin_lock_irq(&sim_dev_lock);
	list_add_tail(&dev->link, &sim_devs);
	spin_unlock_irq(&sim_dev_lock);
	return 0;
}

static void sim_dealloc_driver(struct ib_device *ib_dev)
{
	struct sim_dev *dev = to_sim_dev(ib_dev);

	spin_lock_irq(&sim_dev_lock);
	list_del_init(&dev->link);
	spin_unlock_irq(&sim_dev_lock);
	sim_qps_end(dev);
	WARN_ON(!xa_empty(&dev->mrs) || !list_empty(&dev->mcasts));
	xa_destroy(&dev->mrs);
	dev_put(dev->ndev);
}

static const struct ib_device_ops sim_dev_ops = {
	.owner = THIS_MODULE,
	/* rdmasim has no number of its own; sim_set_ops() may set another's. */
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.alloc_pd = sim_alloc_pd,
	.dealloc_driver = sim_dealloc_driver,
	.dealloc_pd = sim_dealloc_pd,
	.enable_driver = sim_enable_driver,
	.get_link_layer = sim_link_layer,
	.get_port_immutable = sim_port_immutable,
	.query_device = sim_query_device,
	.query_pkey = sim_query_pkey,
	.query_port = sim_query_port,

	INIT_RDMA_OBJ_SIZE(ib_pd, sim_pd, ibpd),
};

static void sim_set_ops(struct sim_dev *dev)
{
	ib_set_device_ops(&dev->ib_dev, &sim_dev_ops);
	ib_set_device_ops(&dev->ib_dev, &sim_cq_ops);
	ib_set_device_ops(&dev->ib_dev, &sim_datagram_ops);
	ib_set_device_ops(&dev->ib_dev, &sim_mr_ops);
	ib_set_device_ops(&dev->ib_dev, &sim_post_ops);
	ib_set_device_ops(&dev->ib_dev, &sim_qp_ops);
	ib_set_device_ops(&dev->ib_dev, &sim_srq_ops);
	if (!sim_options.no_fast_reg)
		ib_set_device_ops(&dev->ib_dev, &sim_fast_reg_ops);
	dev->ib_dev.ops.driver_id = sim_options.driver_id;
}

static int sim_add(const char *name, struct net_device *ndev)
{
	struct ib_device *ib_dev;
	struct sim_dev *dev;
	int ret;

	dev = ib_alloc_device(sim_dev, ib_dev);
	if (!dev)
		return -ENOMEM;
	ib_dev = &dev->ib_dev;
	INIT_LIST_HEAD(&dev->link);
	INIT_LIST_HEAD(&dev->mcasts);
	spin_lock_init(&dev->mcast_lock);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	dev_hold(ndev);
	dev->ndev = ndev;
	sim_set_ops(dev);

	strscpy(ib_dev->node_desc, "rdmasim", sizeof(ib_dev->node_desc));
	ib_dev->dev.parent = &sim_parent->dev;
	ib_dev->node_type = RDMA_NODE_IB_CA;
	ib_dev->phys_port_cnt = SIM_PORT;
	ib_dev->num_comp_vectors = num_possible_cpus();
	if (!sim_options.no_dma_lkey)
		ib_dev->local_dma_lkey = SIM_LOCAL_DMA_LKEY;
	addrconf_addr_eui48((u8 *)&ib_dev->node_guid, ndev->dev_addr);

	ret = sim_choose_contexts(dev);
	if (!ret)
		ret = ib_device_set_netdev(ib_dev, ndev, SIM_PORT);
	if (!ret)
		ret = ib_register_device(ib_dev, name, &sim_parent->dev);
	if (ret)
		ib_dealloc_device(ib_dev);
	return ret;
}

static int sim_newlink(const char *name, struct net_device *ndev)
{
	struct sim_dev *dev = sim_find(ndev);

	if (dev) {
		ib_device_put(&dev->ib_dev);
		return -EEXIST;
	}
	return sim_add(name, ndev);
}

static struct rdma_link_ops sim_link_ops = {
	.type = "sim",
	.newlink = sim_newlink,
};

static void sim_port_event(struct sim_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ib_dev,
		.element.port_num = SIM_PORT,
		.event = sim_port_up(dev) ? IB_EVENT_PORT_ACTIVE :
					    IB_EVENT_PORT_ERR,
	};

	ib_dispatch_event(&event);
}

static int sim_netdev_event(struct notifier_block *nb, unsigned long type,
			    void *arg)
{
	struct sim_dev *dev = sim_find(netdev_notifier_info_to_dev(arg));

	if (!dev)
		return NOTIFY_DONE;
	switch (type) {
	case NETDEV_UNREGISTER:
		ib_unregister_device_queued(&dev->ib_dev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		sim_port_event(dev);
		break;
	}
	ib_device_put(&dev->ib_dev);
	return NOTIFY_DONE;
}

static struct notifier_block sim_netdev_notifier = {
	.notifier_call = sim_netdev_event,
};

static bool sim_none_left(void)
{
	bool none;

	spin_lock_irq(&sim_dev_lock);
	none = list_empty(&sim_devs);
	spin_unlock_irq(&sim_dev_lock);
	return none;
}

static int __init sim_init(void)
{
	const struct platform_device_info parent = {
		.name = "rdmasim",
		.id = PLATFORM_DEVID_NONE,
		.dma_mask = DMA_BIT_MASK(64),
	};
	int ret = -ENOMEM;

	sim_parent = platform_device_register_full(&parent);
	if (IS_ERR(sim_parent))
		return PTR_ERR(sim_parent);
	dma_set_max_seg_size(&sim_parent->dev, UINT_MAX);
	sim_wq = alloc_workqueue("rdmasim", WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!sim_wq)
		goto err_parent;
	ret = register_netdevice_notifier(&sim_netdev_notifier);
	if (ret)
		goto err_wq;
	rdma_link_register(&sim_link_ops);
	return 0;

err_wq:
	destroy_workqueue(sim_wq);
err_parent:
	platform_device_unregister(sim_parent);
	return ret;
}

static void __exit sim_exit(void)
{
	struct sim_dev *dev;

	rdma_link_unregister(&sim_link_ops);
	unregister_netdevice_notifier(&sim_netdev_notifier);
	/* Wait for devices that another thread is removing. */
	while (!sim_none_left()) {
		dev = sim_find(NULL);
		if (dev)
			ib_unregister_device_and_put(&dev->ib_dev);
		else
			msleep(20);
	}
	destroy_workqueue(sim_wq);
	platform_device_unregister(sim_parent);
}

module_init(sim_init);
module_exit(sim_exit);
