/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The RDMA devices of this network namespace, as the kernel and the module tell. */
#ifndef RDMA_DEV_H
#define RDMA_DEV_H

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/rdma_post_abi.h>

/**
 * struct port_addr - an address of a port, which is one of its GIDs
 * @gid: the GID; an IPv4 address is mapped
 * @ifindex: its network interface, or 0
 */
struct port_addr {
	struct in6_addr gid;
	uint32_t ifindex;
};

/**
 * struct rdma_port - a port
 * @num: its number, from 1
 * @state: enum ibv_port_state
 * @link_layer: 1 InfiniBand, 2 Ethernet, 0 unknown
 * @mtu: bytes of a packet, or 0 if unknown
 * @ifindex: network interface, or 0
 * @netdev: its name, or empty
 * @has_gids: @num_gids is known
 * @num_gids: valid GIDs
 * @addrs: GIDs that are addresses, if the device is offered
 * @num_addrs: their number
 */
struct rdma_port {
	uint32_t num;
	uint32_t state;
	uint32_t link_layer;
	uint32_t mtu;
	uint32_t ifindex;
	char netdev[IF_NAMESIZE];
	bool has_gids;
	uint32_t num_gids;
	struct port_addr *addrs;
	uint32_t num_addrs;
};

/* Why a device is not offered. */
enum rdma_refusal {
	RDMA_NOT_FOUND_SAFE,
	RDMA_WITHDRAWN,		/* by devices=-DRIVER */
	RDMA_NEVER,		/* its driver opens all memory */
};

/**
 * struct rdma_dev - a device
 * @name: its name
 * @index: the kernel's index
 * @driver: its driver, or empty
 * @is_named: @driver is its name in devices=
 * @offered: programs may use it
 * @num: the module's number, if it is offered
 * @refusal: the kind of @reason
 * @reason: why it is not offered, or NULL
 * @no_queues: doctor has found that this process can make no queues there
 * @num_ports: its ports
 * @ports: they
 */
struct rdma_dev {
	char name[64];
	uint32_t index;
	char driver[64];
	bool is_named;
	bool offered;
	uint32_t num;
	enum rdma_refusal refusal;
	char *reason;
	bool no_queues;
	uint32_t num_ports;
	struct rdma_port *ports;
};

/**
 * struct rdma_devs - all devices
 * @fd: the open node, or -1
 * @error: negative errno: why the node cannot be opened or does not answer
 * @nl_error: negative errno: why the kernel does not list devices
 * @exclusive: devices belong to one network namespace each
 * @has_mode: @exclusive is known
 * @query: the module's answer, unless @error is set
 * @num: devices
 * @devs: they
 */
struct rdma_devs {
	int fd;
	int error;
	int nl_error;
	bool exclusive;
	bool has_mode;
	struct rpost_query query;
	size_t num;
	struct rdma_dev *devs;
};

void rdma_devs_get(struct rdma_devs *all);
void rdma_devs_free(struct rdma_devs *all);
const char *rdma_state_name(uint32_t state);
void rdma_addr_text(const struct in6_addr *gid, char text[INET6_ADDRSTRLEN]);

#endif /* RDMA_DEV_H */
