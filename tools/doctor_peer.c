// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* rdma-post doctor: does a connection work, to this host and to another? */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "doctor.h"

#define SECONDS		5
/* Nobody listens there; the answer that says so comes from the peer's RDMA. */
#define UNUSED_PORT	"1"
/* Of the InfiniBand specification, 12.6.7.2: why a connection is rejected. */
#define REJ_NO_LISTENER	8
#define REJ_PROGRAM	28

/* What another host needs so that it answers. */
#define ANSWER_ADVICE	"run rdma-post doctor there; let UDP port 4791 (RoCE) or TCP (iWARP) " \
			"through the firewalls of both hosts and between them; the MTU must be the same"

#define STUCK_ADVICE	"look at the kernel's log (dmesg) and, as root, at /proc/%d/stack"

struct route {
	bool found;
	bool local;
	uint32_t ifindex;
};

/* Returns what the connection said when it failed, to be freed. */
static char *conn_text(const struct conn *conn)
{
	const char *name = conn_stage_name(conn->stage);

	if (conn->stuck)
		return text_printf("at %s, process %d does not end in the kernel, even when killed",
				   name, conn->stuck);
	if (conn->late)
		return text_printf("%s has not ended after %d s", name, SECONDS);
	if (conn->err)
		return text_printf("%s failed: %s", name, strerror(conn->err));
	if (conn->stage >= CONN_SEND)
		return text_printf("%s failed: completion status %d", name, conn->status);
	return text_printf("%s failed: event %d, status %d", name, conn->event,
			   conn->status);
}

static char *loopback_advice(const struct conn *conn)
{
	if (conn->stuck)
		return text_printf(STUCK_ADVICE, conn->stuck);
	if (conn->err == ENOMEM)
		return text_printf("raise the limits that are named above: locked memory, cgroups, max_user_bytes");
	if (conn->stage <= CONN_ROUTE)
		return text_printf("ip link set lo up; look at ip route get and ip rule for the address");
	return text_printf("look at the kernel's log (dmesg), and at what a firewall does with the host's own address");
}

static void check_address(struct doctor *doc, struct rdma_dev *dev,
			  const struct rdma_port *port)
{
	const struct in6_addr *gid = &port->addrs[0].gid;
	struct conn conn = { .loopback = true };
	char text[INET6_ADDRSTRLEN];
	bool done;

	if (IN6_IS_ADDR_V4MAPPED(gid)) {
		struct sockaddr_in *in = (struct sockaddr_in *)&conn.addr;

		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, &gid->s6_addr[12], 4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&conn.addr;

		in6->sin6_family = AF_INET6;
		in6->sin6_addr = *gid;
	}
	rdma_addr_text(gid, text);
	conn_try(&conn, text, SECONDS);
	done = conn.stage == CONN_DONE && !conn.stuck;
	doctor_report(doc, (struct finding){
		.check = "loopback",
		.status = done ? DOCTOR_OK : DOCTOR_PROBLEM,
		.object = text_printf("%s port %u", dev->name, port->num),
		.what = done ? text_printf("a message to %s and back to this host has arrived", text) :
			text_printf("a message to its own address %s does not arrive", text),
		.why = done ? NULL : conn_text(&conn),
		.advice = done ? NULL : loopback_advice(&conn),
	});
	dev->no_queues |= !done && (conn.stage == CONN_OPEN || conn.stage == CONN_QUEUES);
}

/* Nothing tells which interface of IPoIB belongs to a port of InfiniBand. */
static void report_no_address(struct doctor *doc, const struct rdma_dev *dev,
			      const struct rdma_port *port)
{
	doctor_report(doc, (struct finding){
		.check = "loopback",
		.status = DOCTOR_UNKNOWN,
		.object = text_printf("%s port %u", dev->name, port->num),
		.what = text_printf("no message was sent: its IP address is not known"),
		.advice = text_printf("rdma-post doctor --to ADDRESS, with that of its IPoIB interface"),
	});
}

/**
 * check_loopback() - send a message over each port to its own address
 * @doc: the visit
 */
void check_loopback(struct doctor *doc)
{
	uint32_t p;
	size_t i;

	for (i = 0; i < doc->devs.num; i++) {
		struct rdma_dev *dev = &doc->devs.devs[i];

		for (p = 0; p < dev->num_ports; p++) {
			const struct rdma_port *port = &dev->ports[p];

			if (!dev->offered || port->state != PORT_ACTIVE)
				continue;
			if (dev->no_queues)
				doctor_skip(doc, "loopback",
					    text_printf("%s port %u", dev->name, port->num));
			else if (port->num_addrs)
				check_address(doc, dev, port);
			else if (port->link_layer == INFINIBAND)
				report_no_address(doc, dev, port);
		}
	}
}

static void peer_problem(struct doctor *doc, const char *check, char *what,
			 char *why, char *advice)
{
	doctor_report(doc, (struct finding){
		.check = check, .status = DOCTOR_PROBLEM,
		.object = text_printf("%s", doc->peer),
		.what = what, .why = why, .advice = advice,
	});
}

static void peer_ok(struct doctor *doc, const char *check, char *what)
{
	doctor_report(doc, (struct finding){
		.check = check, .object = text_printf("%s", doc->peer), .what = what,
	});
}

/*
 * Splits HOST, HOST:PORT, [HOST]:PORT; sets port to NULL without one.  Returns the
 * host, to be freed.
 */
static char *split_peer(const char *peer, char **port)
{
	bool bracket = peer[0] == '[';
	char *host = text_printf("%s", peer + bracket);
	char *end = host + strcspn(host, bracket ? "]" : ":");

	*port = NULL;
	if (bracket && *end)
		*end++ = '\0';
	/* More than one: an IPv6 address. */
	if (*end == ':' && !strchr(end + 1, ':')) {
		*end = '\0';
		*port = end + 1;
	}
	return host;
}

/**
 * doctor_peer_is_valid() - is this a host, perhaps with a port?
 * @peer: the argument of --to
 *
 * Return: true if so; names of hosts are not looked up.
 */
bool doctor_peer_is_valid(const char *peer)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *info = NULL;
	const char *close = peer[0] == '[' ? strchr(peer, ']') : NULL;
	char *port, *host = split_peer(peer, &port);
	bool valid = *host;

	if (peer[0] == '[')
		valid = valid && close && (!close[1] || port);
	if (port && port[strspn(port, "0123456789")])
		valid = valid && !getaddrinfo(NULL, port, &hints, &info);
	else if (port)	/* getaddrinfo() takes the lower 16 bits. */
		valid = valid && strlen(port) < 6 && atoi(port) > 0 && atoi(port) < 65536;
	if (info)
		freeaddrinfo(info);
	free(host);
	return valid;
}

static bool find_peer(struct doctor *doc, struct conn *conn, bool *has_port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *info;
	char *port, *host = split_peer(doc->peer, &port);
	int err;

	*has_port = port;
	progress_show("%s: looking for its address", host);
	err = getaddrinfo(host, *has_port ? port : UNUSED_PORT, &hints, &info);
	progress_end();
	free(host);
	if (err) {
		peer_problem(doc, "peer.name",
			     text_printf("its address is unknown: %s", gai_strerror(err)),
			     NULL, text_printf("use the IP address of its RDMA interface"));
		return false;
	}
	memcpy(&conn->addr, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(info);
	return true;
}

static void handle_route(const struct nlmsghdr *msg, void *arg)
{
	const struct rtmsg *rtm = NLMSG_DATA(msg);
	struct route *route = arg;

	if (msg->nlmsg_len < NLMSG_LENGTH(sizeof(*rtm)))
		return;
	route->found = true;
	route->local = rtm->rtm_type == RTN_LOCAL;
	route->ifindex = (uint32_t)nl_attr_uint(nl_attr(msg, sizeof(*rtm), RTA_OIF));
}

/* Asks for the way to an address.  Returns 0 or a negative errno. */
static int get_route(const struct sockaddr_storage *addr, struct route *route)
{
	bool v4 = addr->ss_family == AF_INET;
	struct {
		struct rtmsg rtm;
		struct nlattr dst;
		unsigned char addr[16];
	} req = { .rtm.rtm_family = addr->ss_family };
	size_t len = v4 ? 4 : 16;

	req.rtm.rtm_dst_len = len * 8;
	req.dst.nla_type = RTA_DST;
	req.dst.nla_len = NLA_HDRLEN + len;
	if (v4)
		memcpy(req.addr, &((const struct sockaddr_in *)addr)->sin_addr, len);
	else
		memcpy(req.addr, &((const struct sockaddr_in6 *)addr)->sin6_addr, len);
	route->found = false;
	return nl_request(NETLINK_ROUTE, RTM_GETROUTE, 0, &req,
			  sizeof(req.rtm) + NLA_HDRLEN + len, handle_route, route);
}

static bool is_address(const struct in6_addr *gid, const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET)
		return IN6_IS_ADDR_V4MAPPED(gid) &&
		       !memcmp(&gid->s6_addr[12],
			       &((const struct sockaddr_in *)addr)->sin_addr, 4);
	return !memcmp(gid, &((const struct sockaddr_in6 *)addr)->sin6_addr, 16);
}

/* Returns the device over which the route leads, or NULL. */
static const struct rdma_dev *device_of(const struct doctor *doc,
					const struct route *route,
					const struct sockaddr_storage *addr)
{
	const struct rdma_port *port;
	uint32_t p, a;
	size_t i;

	for (i = 0; i < doc->devs.num; i++) {
		for (p = 0; p < doc->devs.devs[i].num_ports; p++) {
			port = &doc->devs.devs[i].ports[p];
			for (a = 0; a < port->num_addrs; a++)
				if (route->local ? is_address(&port->addrs[a].gid, addr) :
				    port->addrs[a].ifindex == route->ifindex)
					return &doc->devs.devs[i];
		}
	}
	return NULL;
}

static bool has_infiniband(const struct doctor *doc)
{
	uint32_t p;
	size_t i;

	for (i = 0; i < doc->devs.num; i++)
		for (p = 0; p < doc->devs.devs[i].num_ports; p++)
			if (doc->devs.devs[i].ports[p].link_layer == INFINIBAND)
				return true;
	return false;
}

static bool check_route(struct doctor *doc, const struct conn *conn)
{
	char name[IF_NAMESIZE] = "?";
	const struct rdma_dev *dev;
	struct route route = {};
	int err = get_route(&conn->addr, &route);

	if (err || !route.found) {
		peer_problem(doc, "peer.route",
			     text_printf("there is no route to it: %s", strerror(-err)),
			     NULL, text_printf("ip route add, over the interface of an RDMA device"));
		return false;
	}
	if_indextoname(route.ifindex, name);
	dev = device_of(doc, &route, &conn->addr);
	if (dev) {
		peer_ok(doc, "peer.route",
			route.local ? text_printf("it is this host's, of %s", dev->name) :
			text_printf("the route is over %s, which %s uses", name, dev->name));
		return true;
	}
	/* Nothing tells which device an interface of IPoIB belongs to. */
	if (has_infiniband(doc))
		return true;
	peer_problem(doc, "peer.route",
		     text_printf("the route is over %s, which no RDMA device uses that programs may use", name),
		     NULL, text_printf("use an address of the peer in the network of the RDMA device, or ip route add over its interface (rdma-post devices)"));
	return false;
}

static void report_rejected(struct doctor *doc, const struct conn *conn, bool has_port)
{
	bool nobody = conn->status == REJ_NO_LISTENER;

	if (nobody && !has_port) {
		peer_ok(doc, "peer.connect", text_printf("its RDMA answers"));
	} else if (conn->status == REJ_PROGRAM) {
		peer_ok(doc, "peer.connect",
			text_printf("its RDMA answers; the program there has rejected this connection"));
	} else if (nobody) {
		peer_problem(doc, "peer.listener",
			     text_printf("its RDMA answers, but no program listens on this port"),
			     NULL, text_printf("start the program there; it must listen by rdma_cm (not by TCP), on this address or on all"));
	} else {
		peer_problem(doc, "peer.connect",
			     text_printf("it rejects the connection, reason %d", conn->status),
			     NULL, text_printf("look at the kernel's log of the peer"));
	}
}

/* iWARP: the host's TCP refuses, which tells nothing of its RDMA. */
static void report_refused(struct doctor *doc, bool has_port)
{
	if (has_port)
		peer_problem(doc, "peer.listener",
			     text_printf("the host is there, but no program listens on this port"),
			     NULL, text_printf("start the program there; it must listen by rdma_cm (not by TCP), on this address or on all"));
	else
		doctor_report(doc, (struct finding){
			.check = "peer.connect",
			.status = DOCTOR_NOTE,
			.object = text_printf("%s", doc->peer),
			.what = text_printf("the host is there; over iWARP only a program that listens tells whether its RDMA answers"),
			.advice = text_printf("doctor --to HOST:PORT, with the port of such a program"),
		});
}

static void report_peer(struct doctor *doc, const struct conn *conn, bool has_port)
{
	if (conn->stuck)
		peer_problem(doc, "peer.connect", text_printf("the try does not end"),
			     conn_text(conn), text_printf(STUCK_ADVICE, conn->stuck));
	else if (conn->stage == CONN_DONE)
		peer_ok(doc, "peer.connect", text_printf("a program there has accepted a connection"));
	else if (conn->stage <= CONN_ADDRESS)
		peer_problem(doc, "peer.address", text_printf("its address cannot be resolved"),
			     conn_text(conn),
			     text_printf("look whether it is up: ping, ip neigh; and whether the route is over an RDMA device"));
	else if (conn->err == ECONNREFUSED ||
		 (conn->event == RDMA_CM_EVENT_REJECTED &&
		  conn->status == -ECONNREFUSED))
		report_refused(doc, has_port);
	else if (conn->event == RDMA_CM_EVENT_REJECTED)
		report_rejected(doc, conn, has_port);
	else
		peer_problem(doc, "peer.connect",
			     conn->late || conn->event == RDMA_CM_EVENT_UNREACHABLE ?
			     text_printf("it does not answer by RDMA") :
			     text_printf("no connection"),
			     conn_text(conn), text_printf(ANSWER_ADVICE));
}

/* Can this process make queues on a device that is offered? */
static bool can_make_queues(const struct doctor *doc)
{
	size_t i;

	for (i = 0; i < doc->devs.num; i++)
		if (doc->devs.devs[i].offered && !doc->devs.devs[i].no_queues)
			return true;
	return false;
}

/**
 * check_peer() - is the host of --to reachable by RDMA?
 * @doc: the visit
 */
void check_peer(struct doctor *doc)
{
	struct conn conn = {};
	bool has_port;

	if (!doc->peer)
		return;
	if (doc->has < NEED_CONNECTION || !can_make_queues(doc)) {
		doctor_skip(doc, "peer", text_printf("peer"));
		return;
	}
	if (!find_peer(doc, &conn, &has_port) || !check_route(doc, &conn))
		return;
	conn_try(&conn, doc->peer, SECONDS);
	report_peer(doc, &conn, has_port);
}
