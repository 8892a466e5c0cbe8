// SPDX-License-Identifier: GPL-2.0
/*
 * Decides which devices programs may use.
 *
 * Only the device checks the keys that a peer names; the module cannot.
 * Drivers give callers in the kernel more than uverbs gives programs: keys that
 * open all memory, privileged queue pairs.  So a device is offered only if its
 * driver was read with untrusted programs in mind and found safe, or if the
 * administrator names the driver.  Documentation/devices.rst has the findings,
 * one row for each row here.
 */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/string.h>

#include "compat/compat.h"
#include "core/device.h"

static char *devices = "";
module_param(devices, charp, 0444);
MODULE_PARM_DESC(devices,
		 "Comma-separated drivers whose devices are offered though they were not found safe (efa,mthca), or not offered though they were (-rxe)");

/* The names of modules are not longer. */
#define RPOST_MAX_NAME	(MODULE_NAME_LEN - 1)

static const struct rpost_driver rpost_drivers[] = {
	{ .id = RDMA_DRIVER_BNXT_RE, .name = "bnxt_re", .direct = true },
	{ .id = RDMA_DRIVER_CXGB4, .name = "cxgb4", .direct = true },
	{ .id = RDMA_DRIVER_EFA, .name = "efa" },
	{ .id = RDMA_DRIVER_ERDMA, .name = "erdma", .direct = true },
	{ .id = RDMA_DRIVER_HFI1, .name = "hfi1", .verdict = RPOST_NEVER },
	{ .id = RDMA_DRIVER_HNS, .name = "hns" },
	{ .id = RPOST_COMPAT_DRIVER_IONIC, .name = "ionic" },
	{ .id = RDMA_DRIVER_IRDMA, .name = "irdma" },
	{ .id = RPOST_COMPAT_DRIVER_MANA, .name = "mana" },
	{ .id = RDMA_DRIVER_MLX4, .name = "mlx4", .direct = true,
	  .verdict = RPOST_OFFERED },
	{ .id = RDMA_DRIVER_MLX5, .name = "mlx5", .direct = true,
	  .odp = true, .odp_no_recv = true, .verdict = RPOST_OFFERED },
	{ .id = RDMA_DRIVER_MTHCA, .name = "mthca" },
	{ .id = RDMA_DRIVER_OCRDMA, .name = "ocrdma", .no_fastreg = true },
	{ .id = RDMA_DRIVER_QEDR, .name = "qedr" },
	{ .id = RDMA_DRIVER_QIB, .name = "qib", .verdict = RPOST_NEVER },
	{ .id = RDMA_DRIVER_RXE, .name = "rxe", .direct = true,
	  .odp = true, .odp_whole_pages = true, .verdict = RPOST_OFFERED },
	{ .id = RDMA_DRIVER_SIW, .name = "siw", .direct = true, .no_iova = true },
	{ .id = RDMA_DRIVER_USNIC, .name = "usnic" },
	{ .id = RDMA_DRIVER_VMW_PVRDMA, .name = "vmw_pvrdma", .direct = true },
};

/* Every driver without a row has these properties. */
static const struct rpost_driver rpost_unread_driver;

static bool rpost_is_named(const char *name, bool minus)
{
	const size_t len = strlen(name);
	const char *p = devices;
	size_t n;

	for (; *p; p += n + (p[n] == ',')) {
		n = strcspn(p, ",");
		if (n == len + minus && (*p == '-') == minus &&
		    !memcmp(p + minus, name, len))
			return true;
	}
	return false;
}

static const struct rpost_driver *rpost_driver_by_name(const char *name, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rpost_drivers); i++) {
		if (strlen(rpost_drivers[i].name) == len &&
		    !memcmp(rpost_drivers[i].name, name, len))
			return &rpost_drivers[i];
	}
	return NULL;
}

/* Check one name of the parameter, without its '-'. */
static int rpost_check_name(const char *name, size_t len, bool minus)
{
	const struct rpost_driver *driver = rpost_driver_by_name(name, len);
	size_t i;

	if (!len || len > RPOST_MAX_NAME) {
		pr_err("rdma_post: devices=%s: a name is empty or too long\n",
		       devices);
		return -EINVAL;
	}
	for (i = 0; i < len; i++) {
		if (!isalnum(name[i]) && name[i] != '_') {
			pr_err("rdma_post: devices=%s: '%.*s' is not a driver's name\n",
			       devices, (int)len, name);
			return -EINVAL;
		}
	}
	if (driver && driver->verdict == RPOST_NEVER && !minus) {
		pr_err("rdma_post: devices=%s: %s gives any peer all of the kernel's memory, and is never offered\n",
		       devices, driver->name);
		return -EINVAL;
	}
	if (!driver)
		pr_notice("rdma_post: devices: taking %.*s for the name of a module, since no driver that was read has this name\n",
			  (int)len, name);
	return 0;
}

/* Check the devices parameter.  Return 0, or -EINVAL with a line in the log. */
int rpost_admit_init(void)
{
	const char *p = devices;
	bool minus;
	size_t n;
	int ret;

	while (*p) {
		n = strcspn(p, ",");
		minus = *p == '-';
		ret = rpost_check_name(p + minus, n - minus, minus);
		if (ret)
			return ret;
		p += n;
		if (*p && !*++p)
			return rpost_check_name(p, 0, false);
	}
	return 0;
}

static const struct rpost_driver *rpost_find_driver(const struct ib_device *ib_dev)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rpost_drivers); i++) {
		if (rpost_drivers[i].id == ib_dev->ops.driver_id)
			return &rpost_drivers[i];
	}
	return &rpost_unread_driver;
}

/*
 * Return the driver's name: from its row; else the name of its module; else, if
 * it is built in, the name of its parent device's driver.
 */
static const char *rpost_driver_name(const struct rpost_driver *driver,
				     const struct ib_device *ib_dev)
{
	const struct device *parent = ib_dev->dev.parent;

	if (driver->name)
		return driver->name;
	if (ib_dev->ops.owner)
		return module_name(ib_dev->ops.owner);
	return parent && parent->driver ? parent->driver->name : "";
}

/* Set driver and refused of a new device.  A refusal is logged. */
void rpost_admit(struct rpost_device *dev)
{
	const char *device = dev_name(&dev->ib_dev->dev), *name;

	dev->driver = rpost_find_driver(dev->ib_dev);
	name = rpost_driver_name(dev->driver, dev->ib_dev);
	dev->refused = true;
	if (rpost_is_named(name, true)) {
		pr_notice("rdma_post: %s: not offered, as devices= says\n", device);
	} else if (dev->driver->verdict == RPOST_NEVER) {
		pr_notice("rdma_post: %s: not offered: its driver (%s) gives any peer all of the kernel's memory\n",
			  device, name);
	} else if (dev->driver->verdict == RPOST_OFFERED || rpost_is_named(name, false)) {
		dev->refused = false;
	} else if (!*name) {
		pr_notice("rdma_post: %s: not offered: its driver is unknown and has no name for devices=\n",
			  device);
	} else {
		pr_notice("rdma_post: %s: not offered: its driver (%s) was not found safe for untrusted programs; to offer it, read rdma_post(4) and load this module with devices=%s\n",
			  device, name, name);
	}
}
