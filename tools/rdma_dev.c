// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Finds the RDMA devices: netlink lists those that the kernel has, the module
 * those that it offers.  Neither needs sysfs, which a container may not have.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "rdma_dev.h"
#include "tool.h"

#define NLDEV(cmd)	RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_##cmd)
#define ATTR(msg, name)	nl_attr(msg, 0, RDMA_NLDEV_##name)

static const char *const driver_names[] = {
	[RDMA_DRIVER_MLX5] = "mlx5", [RDMA_DRIVER_MLX4] = "mlx4",
	[RDMA_DRIVER_CXGB4] = "cxgb4", [RDMA_DRIVER_MTHCA] = "mthca",
	[RDMA_DRIVER_BNXT_RE] = "bnxt_re", [RDMA_DRIVER_OCRDMA] = "ocrdma",
	[RDMA_DRIVER_IRDMA] = "irdma", [RDMA_DRIVER_VMW_PVRDMA] = "vmw_pvrdma",
	[RDMA_DRIVER_QEDR] = "qedr", [RDMA_DRIVER_HNS] = "hns",
	[RDMA_DRIVER_USNIC] = "usnic", [RDMA_DRIVER_RXE] = "rxe",
	[RDMA_DRIVER_HFI1] = "hfi1", [RDMA_DRIVER_QIB] = "qib",
	[RDMA_DRIVER_EFA] = "efa", [RDMA_DRIVER_SIW] = "siw",
	[RDMA_DRIVER_ERDMA] = "erdma",
	/* Older headers lack these. */
	[RDMA_DRIVER_ERDMA + 1] = "mana", [RDMA_DRIVER_ERDMA + 2] = "ionic",
};

const char *rdma_state_name(uint32_t state)
{
	static const char *const names[] = {
		"unknown", "down", "initializing", "armed", "active", "deferred",
	};

	return names[state < ARRAY_SIZE(names) ? state : 0];
}

static struct rdma_dev *add_dev(struct rdma_devs *all, const char *name)
{
	struct rdma_dev *dev;

	all->devs = tool_grow(all->devs, all->num, sizeof(*all->devs));
	dev = &all->devs[all->num++];
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	return dev;
}

static void set_ports(struct rdma_dev *dev, uint32_t num)
{
	uint32_t i;

	dev->num_ports = num < 256 ? num : 256;
	dev->ports = tool_alloc(dev->num_ports, sizeof(*dev->ports));
	for (i = 0; i < dev->num_ports; i++)
		dev->ports[i].num = i + 1;
}

static void handle_dev(const struct nlmsghdr *msg, void *arg)
{
	struct rdma_dev *dev;

	dev = add_dev(arg, nl_attr_string(ATTR(msg, ATTR_DEV_NAME)));
	dev->index = (uint32_t)nl_attr_uint(ATTR(msg, ATTR_DEV_INDEX));
	set_ports(dev, (uint32_t)nl_attr_uint(ATTR(msg, ATTR_PORT_INDEX)));
}

static void handle_port(const struct nlmsghdr *msg, void *arg)
{
	uint64_t num = nl_attr_uint(ATTR(msg, ATTR_PORT_INDEX));
	struct rdma_dev *dev = arg;
	struct rdma_port *port;

	if (!num || num > dev->num_ports)
		return;
	port = &dev->ports[num - 1];
	port->state = (uint32_t)nl_attr_uint(ATTR(msg, ATTR_PORT_STATE));
	port->ifindex = (uint32_t)nl_attr_uint(ATTR(msg, ATTR_NDEV_INDEX));
	snprintf(port->netdev, sizeof(port->netdev), "%s",
		 nl_attr_string(ATTR(msg, ATTR_NDEV_NAME)));
}

static void handle_mode(const struct nlmsghdr *msg, void *arg)
{
	const struct nlattr *attr = ATTR(msg, SYS_ATTR_NETNS_MODE);
	struct rdma_devs *all = arg;

	all->has_mode = attr;
	all->exclusive = attr && !nl_attr_uint(attr);
}

static void handle_driver(const struct nlmsghdr *msg, void *arg)
{
	uint64_t id = nl_attr_uint(ATTR(msg, ATTR_UVERBS_DRIVER_ID));
	struct rdma_dev *dev = arg;

	if (id >= ARRAY_SIZE(driver_names) || !driver_names[id])
		return;
	snprintf(dev->driver, sizeof(dev->driver), "%s", driver_names[id]);
	dev->is_named = true;
}

/* The request for one device; uverbs knows the id of its driver. */
struct dev_request {
	struct nlattr index_attr;
	uint32_t index;
	struct nlattr type_attr;
	char type[8];
};

static void find_driver(struct rdma_dev *dev, struct dev_request *req)
{
	char path[128], link[256];
	ssize_t n;

	/* Without this folder the kernel would load ib_uverbs. */
	if (file_exists("/sys/class/infiniband_verbs"))
		nl_request(NETLINK_RDMA, NLDEV(GET_CHARDEV), 0, req,
			   sizeof(*req), handle_driver, dev);
	if (dev->driver[0])
		return;
	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/device/driver", dev->name);
	n = readlink(path, link, sizeof(link) - 1);
	if (n <= 0)
		return;
	link[n] = '\0';
	snprintf(dev->driver, sizeof(dev->driver), "%.63s",
		 strrchr(link, '/') ? strrchr(link, '/') + 1 : link);
}

static void list_kernels(struct rdma_devs *all)
{
	size_t i;

	/* Without ib_core the kernel would load it. */
	if (file_exists("/sys/module") && !file_exists("/sys/module/ib_core")) {
		all->nl_error = -ENOENT;
		return;
	}
	all->nl_error = nl_request(NETLINK_RDMA, NLDEV(GET), NLM_F_DUMP, NULL,
				   0, handle_dev, all);
	nl_request(NETLINK_RDMA, NLDEV(SYS_GET), 0, NULL, 0, handle_mode, all);
	for (i = 0; i < all->num; i++) {
		struct dev_request req = {
			.index_attr = { NLA_HDRLEN + sizeof(req.index),
					RDMA_NLDEV_ATTR_DEV_INDEX },
			.index = all->devs[i].index,
			.type_attr = { NLA_HDRLEN + sizeof("uverbs"),
				       RDMA_NLDEV_ATTR_CHARDEV_TYPE },
			.type = "uverbs",
		};

		nl_request(NETLINK_RDMA, NLDEV(PORT_GET), NLM_F_DUMP, &req,
			   offsetof(struct dev_request, type_attr),
			   handle_port, &all->devs[i]);
		find_driver(&all->devs[i], &req);
	}
}

static void add_addr(struct rdma_port *port, const struct in6_addr *gid,
		     uint32_t ifindex)
{
	struct port_addr *addr;

	port->addrs = tool_grow(port->addrs, port->num_addrs,
				sizeof(*port->addrs));
	addr = &port->addrs[port->num_addrs++];
	addr->gid = *gid;
	addr->ifindex = ifindex;
}

/* The GID of an iWARP port is none of its interface's addresses. */
static void netdev_addrs(struct rdma_port *port)
{
	struct ifaddrs *list, *ifa;
	struct in6_addr gid;

	if (getifaddrs(&list))
		return;
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (!ifa->ifa_addr || strcmp(ifa->ifa_name, port->netdev))
			continue;
		if (ifa->ifa_addr->sa_family == AF_INET) {
			memset(&gid, 0, sizeof(gid));
			memset(&gid.s6_addr[10], 0xff, 2);
			memcpy(&gid.s6_addr[12],
			       &((struct sockaddr_in *)ifa->ifa_addr)->sin_addr, 4);
		} else if (ifa->ifa_addr->sa_family == AF_INET6) {
			gid = ((struct sockaddr_in6 *)ifa->ifa_addr)->sin6_addr;
		} else {
			continue;
		}
		if (!IN6_IS_ADDR_LINKLOCAL(&gid))
			add_addr(port, &gid, port->ifindex);
	}
	freeifaddrs(list);
}

static void query_gids(int fd, struct rdma_dev *dev, struct rdma_port *port,
		       uint32_t room)
{
	struct rpost_gid *gids = tool_alloc(room, sizeof(*gids));
	struct rpost_query_gids cmd = {
		.size = sizeof(cmd), .device = dev->num, .port = port->num,
		.count = room, .gids = (uintptr_t)gids,
	};
	uint32_t i;

	if (ioctl(fd, RPOST_IOC_QUERY_GIDS, &cmd))
		cmd.count = 0;
	port->has_gids = true;
	port->num_gids = cmd.count;
	for (i = 0; i < cmd.count; i++) {
		struct in6_addr gid;

		memcpy(&gid, gids[i].gid, sizeof(gid));
		if (!port->ifindex)
			port->ifindex = gids[i].ndev_ifindex;
		/* GIDs of InfiniBand and iWARP are no addresses. */
		if (gids[i].type != RPOST_GID_IB && !IN6_IS_ADDR_LINKLOCAL(&gid))
			add_addr(port, &gid, gids[i].ndev_ifindex);
	}
	free(gids);
}

static void query_port(int fd, struct rdma_dev *dev, struct rdma_port *port)
{
	struct rpost_query_port cmd = {
		.size = sizeof(cmd), .device = dev->num, .port = port->num,
	};

	if (ioctl(fd, RPOST_IOC_QUERY_PORT, &cmd))
		return;
	port->state = cmd.state;
	port->link_layer = cmd.link_layer;
	if (cmd.active_mtu >= 1 && cmd.active_mtu <= 5)
		port->mtu = 128u << cmd.active_mtu;
	query_gids(fd, dev, port, cmd.gid_tbl_len);
	if (port->ifindex && !port->netdev[0])
		if_indextoname(port->ifindex, port->netdev);
	if (cmd.link_layer == 2 && !port->num_addrs && port->netdev[0])
		netdev_addrs(port);
}

/* Adds what the module tells of one of its devices. */
static void add_offered(struct rdma_devs *all, uint32_t num)
{
	struct rpost_query_device cmd = { .size = sizeof(cmd), .device = num };
	struct rdma_dev *dev = NULL;
	uint32_t p;
	size_t i;

	if (ioctl(all->fd, RPOST_IOC_QUERY_DEVICE, &cmd))
		return;
	cmd.name[sizeof(cmd.name) - 1] = '\0';
	for (i = 0; i < all->num; i++)
		if (!strcmp(all->devs[i].name, (char *)cmd.name))
			dev = &all->devs[i];
	if (!dev) {
		dev = add_dev(all, (char *)cmd.name);
		dev->index = cmd.index;
		set_ports(dev, cmd.phys_port_cnt);
	}
	dev->offered = true;
	dev->num = num;
	for (p = 0; p < dev->num_ports; p++)
		query_port(all->fd, dev, &dev->ports[p]);
}

static void list_offered(struct rdma_devs *all)
{
	uint32_t nums[1024];
	struct rpost_query_devices cmd = {
		.size = sizeof(cmd), .count = ARRAY_SIZE(nums),
		.devices = (uintptr_t)nums,
	};
	uint32_t i;

	if (ioctl(all->fd, RPOST_IOC_QUERY_DEVICES, &cmd)) {
		all->error = -errno;
		return;
	}
	for (i = 0; i < cmd.count && i < ARRAY_SIZE(nums); i++)
		add_offered(all, nums[i]);
}

static void open_node(struct rdma_devs *all)
{
	all->query.size = sizeof(all->query);
	all->fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (all->fd < 0 || ioctl(all->fd, RPOST_IOC_QUERY, &all->query))
		all->error = -errno;
	else if (all->query.abi_version != RPOST_ABI_VERSION)
		all->error = -EPROTONOSUPPORT;
}

/* Counts the GIDs of a port by sysfs. */
static void sysfs_gids(const struct rdma_dev *dev, struct rdma_port *port)
{
	char gid[64];
	int i;

	for (i = 0; !file_line(gid, sizeof(gid),
			       "/sys/class/infiniband/%s/ports/%u/gids/%d",
			       dev->name, port->num, i); i++) {
		port->has_gids = true;
		port->num_gids += gid[strspn(gid, "0:")] != '\0';
	}
}

static bool is_withdrawn(const char *driver)
{
	char devices[1024], *name, *rest = devices;

	file_line(devices, sizeof(devices),
		  "/sys/module/rdma_post/parameters/devices");
	while ((name = strsep(&rest, ",")))
		if (name[0] == '-' && !strcmp(name + 1, driver))
			return true;
	return false;
}

/* The kernel's log has the module's own words, if this user may read it. */
static char *logged_reason(const char *log, const char *name)
{
	char *begin = text_printf("rdma_post: %s: not offered", name);
	const char *p, *last = NULL;
	char *reason = NULL;

	for (p = log; p && (p = strstr(p, begin)); p++)
		last = p;
	if (last) {
		last += strlen(begin);
		last += strspn(last, ":, ");
		reason = text_printf("%.*s", (int)strcspn(last, "\n"), last);
	}
	free(begin);
	return reason;
}

/* Sets why the module does not offer a device. */
static void find_reason(struct rdma_dev *dev, const char *log)
{
	dev->reason = logged_reason(log, dev->name);
	/* The module knows names that are not known here. */
	if (dev->reason && sscanf(dev->reason, "its driver (%63[^)])", dev->driver) == 1)
		dev->is_named = true;
	if (is_withdrawn(dev->driver) ||
	    (dev->reason && !strncmp(dev->reason, "as devices=", strlen("as devices="))))
		dev->refusal = RDMA_WITHDRAWN;
	else if (!strcmp(dev->driver, "hfi1") || !strcmp(dev->driver, "qib"))
		dev->refusal = RDMA_NEVER;
	if (dev->reason)
		return;
	if (!dev->driver[0])
		dev->reason = text_printf("its driver was not found safe for untrusted programs");
	else if (dev->refusal == RDMA_WITHDRAWN)
		dev->reason = text_printf("as devices= says (-%s)", dev->driver);
	else
		dev->reason = text_printf(dev->refusal == RDMA_NEVER ?
					  "its driver (%s) gives any peer all of the kernel's memory" :
					  "its driver (%s) was not found safe for untrusted programs",
					  dev->driver);
}

/* Sets why the node offers no device. */
static void find_error(const struct rdma_devs *all, struct rdma_dev *dev)
{
	if (all->error == -ENOENT)
		dev->reason = text_printf("there is no " RPOST_DEVICE_PATH);
	else
		dev->reason = text_printf(RPOST_DEVICE_PATH ": %s",
					  strerror(-all->error));
}

/* Finds all devices; rdma_devs_free() releases them. */
void rdma_devs_get(struct rdma_devs *all)
{
	char *log = NULL;
	uint32_t p;
	size_t i;

	memset(all, 0, sizeof(*all));
	open_node(all);
	list_kernels(all);
	if (!all->error)
		list_offered(all);
	for (i = 0; i < all->num; i++) {
		struct rdma_dev *dev = &all->devs[i];

		if (dev->offered)
			continue;
		if (!log)
			log = file_kernel_log();
		if (all->error)
			find_error(all, dev);
		else
			find_reason(dev, log);
		for (p = 0; p < dev->num_ports; p++)
			sysfs_gids(dev, &dev->ports[p]);
	}
	free(log);
}

void rdma_devs_free(struct rdma_devs *all)
{
	uint32_t p;
	size_t i;

	for (i = 0; i < all->num; i++) {
		for (p = 0; p < all->devs[i].num_ports; p++)
			free(all->devs[i].ports[p].addrs);
		free(all->devs[i].ports);
		free(all->devs[i].reason);
	}
	free(all->devs);
	if (all->fd >= 0)
		close(all->fd);
}

/* Writes a GID as the IPv4 or IPv6 address that it is. */
void rdma_addr_text(const struct in6_addr *gid, char text[INET6_ADDRSTRLEN])
{
	if (IN6_IS_ADDR_V4MAPPED(gid))
		inet_ntop(AF_INET, &gid->s6_addr[12], text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid, text, INET6_ADDRSTRLEN);
}
