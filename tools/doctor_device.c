// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: are there devices that programs may use, and are they up? */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "doctor.h"

/* Below this, headers take more than a twentieth of each packet. */
#define GOOD_MTU	1024

static void report_none(struct doctor *doc)
{
	const struct rdma_devs *devs = &doc->devs;

	doctor_report(doc, (struct finding){
		.check = "device.none",
		.status = DOCTOR_PROBLEM,
		.object = text_printf("devices"),
		.what = text_printf("there is no RDMA device in this network namespace"),
		.why = devs->exclusive ?
			text_printf("each RDMA device belongs to one network namespace (rdma system: netns exclusive)") :
			text_printf("no adapter, or its driver is not loaded"),
		.advice = devs->exclusive ?
			text_printf("on the host: rdma dev set DEVICE netns NAMESPACE") :
			text_printf("load the adapter's driver (lspci -k names it); without an adapter: rdma link add rxe0 type rxe netdev INTERFACE"),
	});
}

static void report_mode(struct doctor *doc)
{
	const struct rdma_devs *devs = &doc->devs;

	doctor_report(doc, (struct finding){
		.check = "device.namespaces",
		.status = devs->has_mode ? DOCTOR_OK : DOCTOR_UNKNOWN,
		.object = text_printf("devices"),
		.what = !devs->has_mode ?
			text_printf("the namespace mode of RDMA is unknown: %s",
				    devs->nl_error ? strerror(-devs->nl_error) :
				    "the kernel does not tell it") :
			devs->exclusive ?
			text_printf("each RDMA device belongs to one network namespace (exclusive)") :
			text_printf("all network namespaces share the RDMA devices (shared)"),
	});
}

/* The module is loaded, and takes its parameter only when it is loaded. */
static char *refusal_advice(const struct rdma_dev *dev)
{
	switch (dev->refusal) {
	case RDMA_NEVER:
		return text_printf("use another device");
	case RDMA_WITHDRAWN:
		return text_printf("load the module without -%s in devices=: look in /etc/modprobe.d, then modprobe -r rdma_post && modprobe rdma_post",
				   dev->is_named ? dev->driver : "DRIVER");
	case RDMA_NOT_FOUND_SAFE:
		if (dev->is_named)
			return text_printf("read \"Devices that are not offered\" in rdma_post(4), test the device with the probe as it says, and then modprobe -r rdma_post && modprobe rdma_post devices=%s; at each boot: echo options rdma_post devices=%s >/etc/modprobe.d/rdma_post.conf",
					   dev->driver, dev->driver);
		break;
	}
	return text_printf("use another device, or run doctor as root: the kernel's log may tell more");
}

static void report_refused(struct doctor *doc, const struct rdma_dev *dev,
			   bool others)
{
	doctor_report(doc, (struct finding){
		.check = "device.refused",
		.status = others ? DOCTOR_NOTE : DOCTOR_PROBLEM,
		.object = text_printf("%s", dev->name),
		.what = text_printf("the module does not offer this device"),
		.why = text_printf("%s", dev->reason),
		.advice = refusal_advice(dev),
	});
}

/**
 * check_devices() - are there devices, and are they offered?
 * @doc: the visit
 */
void check_devices(struct doctor *doc)
{
	const struct rdma_devs *devs = &doc->devs;
	size_t i, offered = 0;

	for (i = 0; i < devs->num; i++)
		offered += devs->devs[i].offered;
	if (offered)
		doc->has = NEED_DEVICE;
	if (!devs->num)
		report_none(doc);
	else
		report_mode(doc);
	for (i = 0; i < devs->num; i++) {
		const struct rdma_dev *dev = &devs->devs[i];

		if (!dev->offered)
			report_refused(doc, dev, offered);
		else
			doctor_report(doc, (struct finding){
				.check = "device.offered",
				.object = text_printf("%s", dev->name),
				.what = text_printf("programs may use this device%s%s",
						    dev->driver[0] ? ", driver " : "",
						    dev->driver),
			});
	}
}

/* Returns the interface's flags and MTU; false if it is not in this namespace. */
static bool get_interface(const char *name, short *flags, int *mtu)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = {};
	bool found;

	memcpy(req.ifr_name, name, strnlen(name, IFNAMSIZ - 1));
	found = fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &req);
	*flags = req.ifr_flags;
	if (found && !ioctl(fd, SIOCGIFMTU, &req))
		*mtu = req.ifr_mtu;
	if (fd >= 0)
		close(fd);
	return found;
}

/* Can programs here use the port? */
static bool is_usable(const struct rdma_port *port)
{
	return port->state == PORT_ACTIVE && port->num_gids &&
	       (port->link_layer == INFINIBAND || port->num_addrs);
}

static bool any_usable(const struct doctor *doc)
{
	uint32_t p;
	size_t i;

	for (i = 0; i < doc->devs.num; i++)
		for (p = 0; p < doc->devs.devs[i].num_ports; p++)
			if (doc->devs.devs[i].offered &&
			    is_usable(&doc->devs.devs[i].ports[p]))
				return true;
	return false;
}

/* A port that does not work is no problem if another does. */
static enum doctor_status port_status(const struct doctor *doc)
{
	return any_usable(doc) ? DOCTOR_NOTE : DOCTOR_PROBLEM;
}

static void report_state(struct doctor *doc, const char *object,
			 const struct rdma_port *port)
{
	short flags = 0;
	bool netdev;
	int mtu;

	netdev = port->netdev[0] && get_interface(port->netdev, &flags, &mtu);
	doctor_report(doc, (struct finding){
		.check = "port.state",
		.status = port_status(doc),
		.object = text_printf("%s", object),
		.what = text_printf("the port is %s", rdma_state_name(port->state)),
		.why = !netdev ? NULL : flags & IFF_UP ?
			text_printf("its interface %s is up, but has no carrier", port->netdev) :
			text_printf("its interface %s is down", port->netdev),
		.advice = netdev && !(flags & IFF_UP) ?
			text_printf("ip link set %s up", port->netdev) :
			port->link_layer == INFINIBAND ?
			text_printf("look at the cable, and for a subnet manager (opensm)") :
			text_printf("look at the cable and the switch"),
	});
}

static void report_gids(struct doctor *doc, const char *object,
			const struct rdma_port *port)
{
	const char *netdev = port->netdev[0] ? port->netdev : "INTERFACE";

	if (port->link_layer == INFINIBAND) {
		doctor_report(doc, (struct finding){
			.check = "port.gid",
			.status = port_status(doc),
			.object = text_printf("%s", object),
			.what = text_printf("the port has no GID"),
			.advice = text_printf("look for a subnet manager (opensm)"),
		});
		return;
	}
	doctor_report(doc, (struct finding){
		.check = !port->netdev[0] ? "port.namespace" :
			 port->num_gids ? "port.address" : "port.gid",
		.status = port_status(doc),
		.object = text_printf("%s", object),
		.what = port->netdev[0] && !port->num_gids ?
			text_printf("the port has no GID") :
			text_printf("the port has no address that programs here can use"),
		.why = port->netdev[0] ?
			text_printf("its interface %s has no IP address%s", netdev,
				    port->num_gids ? " but a link-local one" : "") :
			text_printf("its interface is not in this network namespace"),
		.advice = port->netdev[0] ?
			text_printf("ip addr add ADDRESS/PREFIX dev %s", netdev) :
			text_printf("move the interface here: ip link set INTERFACE netns PID; or run in its namespace"),
	});
}

static void report_mtu(struct doctor *doc, const char *object,
		       const struct rdma_port *port)
{
	bool small = port->mtu && port->mtu < GOOD_MTU;
	short flags;
	int mtu = 0;

	if (port->netdev[0])
		get_interface(port->netdev, &flags, &mtu);
	doctor_report(doc, (struct finding){
		.check = "port.mtu",
		.status = small ? DOCTOR_NOTE : port->mtu ? DOCTOR_OK : DOCTOR_UNKNOWN,
		.object = text_printf("%s", object),
		.what = !port->mtu ? text_printf("the MTU is unknown") :
			small ?
			text_printf("only %u bytes fit into a packet", port->mtu) :
			text_printf("%u bytes of data fit into a packet", port->mtu),
		.why = small && mtu ?
			text_printf("its interface %s has an MTU of %d", port->netdev, mtu) :
			NULL,
		.advice = small ?
			text_printf("ip link set %s mtu 1500, or 4200 if all hosts and switches can",
				    port->netdev[0] ? port->netdev : "INTERFACE") :
			NULL,
	});
}

static void check_port(struct doctor *doc, const struct rdma_dev *dev,
		       const struct rdma_port *port)
{
	char *object = text_printf("%s port %u", dev->name, port->num);
	char text[INET6_ADDRSTRLEN] = "";

	if (port->state != PORT_ACTIVE) {
		report_state(doc, object, port);
	} else if (!is_usable(port)) {
		report_gids(doc, object, port);
	} else {
		doc->has = NEED_CONNECTION;
		if (port->num_addrs)
			rdma_addr_text(&port->addrs[0].gid, text);
		doctor_report(doc, (struct finding){
			.check = "port.state",
			.object = text_printf("%s", object),
			.what = text_printf("active%s%s, %u GID%s%s%s",
					    port->netdev[0] ? " on " : "",
					    port->netdev, port->num_gids,
					    port->num_gids == 1 ? "" : "s",
					    text[0] ? ", address " : "", text),
		});
		report_mtu(doc, object, port);
	}
	free(object);
}

/**
 * check_ports() - are the ports of the devices up, and do they have addresses?
 * @doc: the visit
 */
void check_ports(struct doctor *doc)
{
	uint32_t p;
	size_t i;

	for (i = 0; i < doc->devs.num; i++)
		for (p = 0; p < doc->devs.devs[i].num_ports; p++)
			if (doc->devs.devs[i].offered)
				check_port(doc, &doc->devs.devs[i],
					   &doc->devs.devs[i].ports[p]);
}
