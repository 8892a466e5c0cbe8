// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post devices: the RDMA devices, and which of them programs may use. */
#include <string.h>

#include "rdma_dev.h"
#include "tool.h"

static void help(void)
{
	puts("Usage: rdma-post devices [-j]\n\n"
	     "Lists the RDMA devices of this network namespace: whether programs may use\n"
	     "them over " RPOST_DEVICE_PATH ", or why not; and their ports.\n\n"
	     "  -j, --json   print JSON\n"
	     "  -h, --help   print this\n\n"
	     "Exit status: 0 if a device is offered, 1 if none is, 2 for wrong usage or failure");
}

static void print_port_json(const struct rdma_port *port)
{
	json_object(NULL);
	json_number("port", port->num);
	json_string("state", rdma_state_name(port->state));
	json_string("link_layer", port->link_layer == 1 ? "infiniband" :
		    port->link_layer == 2 ? "ethernet" : NULL);
	json_string("netdev", port->netdev[0] ? port->netdev : NULL);
	if (port->mtu)
		json_number("mtu", port->mtu);
	else
		json_string("mtu", NULL);
	if (port->has_gids)
		json_number("gids", port->num_gids);
	else
		json_string("gids", NULL);
	json_end();
}

static void print_json(const struct rdma_devs *all)
{
	uint32_t p;
	size_t i;

	json_object(NULL);
	json_string("node", RPOST_DEVICE_PATH);
	json_string("node_error", all->error ? strerror(-all->error) : NULL);
	json_string("netns_mode", !all->has_mode ? NULL :
		    all->exclusive ? "exclusive" : "shared");
	json_array("devices");
	for (i = 0; i < all->num; i++) {
		const struct rdma_dev *dev = &all->devs[i];

		json_object(NULL);
		json_string("name", dev->name);
		json_number("index", dev->index);
		json_string("driver", dev->driver[0] ? dev->driver : NULL);
		json_bool("offered", dev->offered);
		json_string("reason", dev->reason);
		json_array("ports");
		for (p = 0; p < dev->num_ports; p++)
			print_port_json(&dev->ports[p]);
		json_end();
		json_end();
	}
	json_end();
	json_end();
}

static void print_port(const struct rdma_dev *dev, const struct rdma_port *port)
{
	char gids[16] = "-", num[16];

	if (port->has_gids)
		snprintf(gids, sizeof(gids), "%u", port->num_gids);
	snprintf(num, sizeof(num), "%u", port->num);
	text_color(TEXT_PLAIN, dev->name, 12);
	putchar(' ');
	text_color(TEXT_PLAIN, dev->driver[0] ? dev->driver : "-", 10);
	printf(" %-4s ", num);
	text_color(port->state == 4 ? TEXT_PLAIN : TEXT_RED,
		   rdma_state_name(port->state), 12);
	putchar(' ');
	text_color(TEXT_PLAIN, port->netdev[0] ? port->netdev : "-", 10);
	printf(" %4s  ", gids);
	text_color(dev->offered ? TEXT_GREEN : TEXT_RED,
		   dev->offered ? "yes" : "no", 0);
	if (dev->reason) {
		fputs(": ", stdout);
		text_put(dev->reason);
	}
	putchar('\n');
}

static void print_text(const struct rdma_devs *all)
{
	uint32_t p;
	size_t i;

	if (!all->num) {
		puts("no RDMA device in this network namespace; rdma-post doctor may know why");
		return;
	}
	text_color(TEXT_BOLD, "DEVICE       DRIVER     PORT STATE        NETDEV     GIDS  OFFERED", 0);
	putchar('\n');
	for (i = 0; i < all->num; i++)
		for (p = 0; p < all->devs[i].num_ports; p++)
			print_port(&all->devs[i], &all->devs[i].ports[p]);
}

/**
 * devices_command() - list the RDMA devices
 * @argc: number of arguments
 * @argv: they
 *
 * Return: the exit status.
 */
int devices_command(int argc, char **argv)
{
	struct tool_options options = { .help = help };
	int status = tool_options(argc, argv, &options);
	struct rdma_devs all;
	size_t i;

	if (status >= 0)
		return status;
	status = TOOL_FINDINGS;
	rdma_devs_get(&all);
	if (options.json)
		print_json(&all);
	else
		print_text(&all);
	for (i = 0; i < all.num; i++)
		if (all.devs[i].offered)
			status = TOOL_FINE;
	rdma_devs_free(&all);
	return status;
}
