// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Removes the first RDMA device and brings it back, as rdma(8) does with "link
 * del" and "link add", but in the calling thread, so that coverage counts.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

#define LINK_NAME	"rxe0"
#define LINK_TYPE	"rxe"

struct request {
	struct nlmsghdr head;
	char attrs[256];
};

static void add_attr(struct request *req, int type, const void *data,
		     unsigned int len)
{
	struct nlattr *attr = (void *)((char *)req +
				       NLMSG_ALIGN(req->head.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy(attr + 1, data, len);
	req->head.nlmsg_len = NLMSG_ALIGN(req->head.nlmsg_len) +
			      NLA_ALIGN(attr->nla_len);
}

static void begin(struct request *req, int cmd, int flags)
{
	memset(req, 0, sizeof(*req));
	req->head.nlmsg_len = NLMSG_LENGTH(0);
	req->head.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, cmd);
	req->head.nlmsg_flags = NLM_F_REQUEST | flags;
}

/* Returns the number of the device LINK_NAME in a part of a dump. */
static int find_index(const char *reply, int len)
{
	const struct nlmsghdr *head;
	const struct nlattr *attr;
	int left, index, ours;

	for (head = (const void *)reply; NLMSG_OK(head, (unsigned int)len);
	     head = NLMSG_NEXT(head, len)) {
		if (head->nlmsg_type == NLMSG_DONE)
			return -ENODEV;
		index = -1;
		ours = 0;
		attr = NLMSG_DATA(head);
		left = head->nlmsg_len - NLMSG_LENGTH(0);
		while (left >= NLA_HDRLEN && attr->nla_len >= NLA_HDRLEN) {
			if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
				memcpy(&index, attr + 1, sizeof(index));
			if (attr->nla_type == RDMA_NLDEV_ATTR_DEV_NAME)
				ours = !strcmp((const char *)(attr + 1),
					       LINK_NAME);
			left -= NLA_ALIGN(attr->nla_len);
			attr = (const void *)((const char *)attr +
					      NLA_ALIGN(attr->nla_len));
		}
		if (ours && index >= 0)
			return index;
	}
	return -EAGAIN;
}

static int link_index(int fd)
{
	char reply[16384] __attribute__((aligned(8)));
	struct request req;
	int n, ret;

	begin(&req, RDMA_NLDEV_CMD_GET, NLM_F_ACK | NLM_F_DUMP);
	if (send(fd, &req, req.head.nlmsg_len, 0) < 0)
		return -errno;
	do {
		n = recv(fd, reply, sizeof(reply), 0);
		if (n < 0)
			return -errno;
		ret = find_index(reply, n);
	} while (ret == -EAGAIN);
	return ret;
}

static int answer(int fd, struct request *req)
{
	struct {
		struct nlmsghdr head;
		struct nlmsgerr error;
		char rest[4096];
	} reply;
	int n;

	if (send(fd, req, req->head.nlmsg_len, 0) < 0)
		return -errno;
	do {
		n = recv(fd, &reply, sizeof(reply), 0);
		if (n < 0)
			return -errno;
	} while (reply.head.nlmsg_type != NLMSG_ERROR);
	return reply.error.error;
}

static int nl_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	return fd < 0 ? -errno : fd;
}

/* Returns 0 or a negative errno. */
int link_remove(void)
{
	struct request req;
	int fd = nl_open(), index, ret;

	if (fd < 0)
		return fd;
	index = link_index(fd);
	ret = index;
	close(fd);
	if (index < 0)
		return ret;
	fd = nl_open();
	if (fd < 0)
		return fd;
	begin(&req, RDMA_NLDEV_CMD_DELLINK, NLM_F_ACK);
	add_attr(&req, RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	ret = answer(fd, &req);
	close(fd);
	return ret;
}

/* On the interface @netdev.  Returns 0 or a negative errno such as -EEXIST. */
int link_add(const char *netdev)
{
	struct request req;
	int fd = nl_open(), ret;

	if (fd < 0)
		return fd;
	begin(&req, RDMA_NLDEV_CMD_NEWLINK, NLM_F_ACK);
	add_attr(&req, RDMA_NLDEV_ATTR_DEV_NAME, LINK_NAME, sizeof(LINK_NAME));
	add_attr(&req, RDMA_NLDEV_ATTR_LINK_TYPE, LINK_TYPE, sizeof(LINK_TYPE));
	add_attr(&req, RDMA_NLDEV_ATTR_NDEV_NAME, netdev, strlen(netdev) + 1);
	ret = answer(fd, &req);
	close(fd);
	return ret;
}
