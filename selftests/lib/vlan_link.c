// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ifaddrs.h>

#include "vlan_link.h"

bool vlan_possible(void)
{
	int fd = rp_open();
	bool is_rxe = rp_is_rxe(fd, rp_first_device(fd));

	close(fd);
	return is_rxe && !geteuid();
}

int vlan_make(void)
{
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;
	struct ifaddrs *list, *ifa;
	char command[256] = "";
	int failed;

	if (getifaddrs(&list))
		return -errno;
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_INET &&
		    ((struct sockaddr_in *)ifa->ifa_addr)->sin_addr.s_addr ==
		    rp_addr4.sin_addr.s_addr)
			snprintf(command, sizeof(command),
				 "ip link del " VLAN_LINK " 2>/dev/null; "
				 "ip link add link %s name " VLAN_LINK
				 " type vlan id %d && ip addr add " VLAN_ADDR
				 "/24 dev " VLAN_LINK " && ip link set " VLAN_LINK " up",
				 ifa->ifa_name, VLAN_ID);
	}
	freeifaddrs(list);
	if (!command[0])
		return -ENODEV;
	/* The id is taken as long as a namespace goes that has the old one. */
	while ((failed = system(command)) && rp_now_ms() < limit)
		usleep(100000);
	return failed ? -ENODEV : 0;
}

int vlan_use(void)
{
	uint64_t limit = rp_now_ms() + TEST_TIMEOUT_MS;
	struct rp_end end;
	uint32_t id;
	int ret;

	inet_pton(AF_INET, VLAN_ADDR, &rp_addr4.sin_addr);
	RP_TRY(rp_end_init(&end));
	do {
		RP_TRY(rp_create_id(end.fd, end.channel, &id));
		ret = rp_bind(end.fd, id, 0);
		RP_TRY(rp_destroy(end.fd, RPOST_OBJ_ID, id));
	} while (ret && rp_now_ms() < limit);
	rp_end_close(&end);
	return ret;
}

int vlan_remove(void)
{
	return system("ip link del " VLAN_LINK " 2>/dev/null") ? -ENODEV : 0;
}
