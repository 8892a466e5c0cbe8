// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Asks the kernel by netlink. */
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tool.h"

#define MAX_BODY	512

/* Handles the messages of one datagram.  Returns 1 to go on, 0, or an error. */
static int handle_datagram(const struct nlmsghdr *msg, size_t size,
			   nl_handler handle, void *arg)
{
	for (; NLMSG_OK(msg, size); msg = NLMSG_NEXT(msg, size)) {
		if (msg->nlmsg_type == NLMSG_DONE)
			return 0;
		if (msg->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)NLMSG_DATA(msg))->error;
		handle(msg, arg);
	}
	return 1;
}

static int receive(int fd, nl_handler handle, void *arg)
{
	union {
		struct nlmsghdr align;
		char bytes[32768];
	} buf;
	ssize_t n;
	int ret;

	do {
		n = recv(fd, buf.bytes, sizeof(buf), MSG_TRUNC);
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if ((size_t)n > sizeof(buf))
			return -EMSGSIZE;
		ret = handle_datagram(&buf.align, n, handle, arg);
	} while (ret > 0);
	return ret;
}

/*
 * Sends a request with @body behind the header, and calls @handle for each
 * message of the answer.  Returns 0 or a negative errno.
 */
int nl_request(int protocol, uint16_t type, uint16_t flags, const void *body,
	       size_t len, nl_handler handle, void *arg)
{
	struct {
		struct nlmsghdr hdr;
		char body[MAX_BODY];
	} req = {
		.hdr.nlmsg_len = NLMSG_LENGTH(len),
		.hdr.nlmsg_type = type,
		.hdr.nlmsg_flags = flags | NLM_F_REQUEST | NLM_F_ACK,
	};
	struct timeval limit = { .tv_sec = 5 };
	int fd, ret;

	if (len > MAX_BODY)
		return -EINVAL;
	if (len)
		memcpy(req.body, body, len);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, &req, req.hdr.nlmsg_len, 0) < 0)
		ret = -errno;
	else
		ret = receive(fd, handle, arg);
	close(fd);
	return ret;
}

/* Returns an attribute that stands @skip bytes behind the header, or NULL. */
const struct nlattr *nl_attr(const struct nlmsghdr *msg, size_t skip,
			     uint16_t type)
{
	const char *p = (const char *)NLMSG_DATA(msg) + NLMSG_ALIGN(skip);
	const char *end = (const char *)msg + msg->nlmsg_len;
	const struct nlattr *attr;

	while (p + sizeof(*attr) <= end) {
		attr = (const struct nlattr *)p;
		if (attr->nla_len < sizeof(*attr) || p + attr->nla_len > end)
			break;
		if ((attr->nla_type & NLA_TYPE_MASK) == type)
			return attr;
		p += NLA_ALIGN(attr->nla_len);
	}
	return NULL;
}

/* Returns the number of any width, or 0 without the attribute. */
uint64_t nl_attr_uint(const struct nlattr *attr)
{
	uint64_t u64 = 0;
	uint32_t u32;
	uint16_t u16;

	switch (attr ? attr->nla_len - NLA_HDRLEN : 0) {
	case 1:
		return *(const uint8_t *)(attr + 1);
	case 2:
		memcpy(&u16, attr + 1, sizeof(u16));
		return u16;
	case 4:
		memcpy(&u32, attr + 1, sizeof(u32));
		return u32;
	case 8:
		memcpy(&u64, attr + 1, sizeof(u64));
	}
	return u64;
}

/* Returns the string, which is empty without the attribute. */
const char *nl_attr_string(const struct nlattr *attr)
{
	const char *text;
	size_t len;

	if (!attr || attr->nla_len <= NLA_HDRLEN)
		return "";
	text = (const char *)attr + NLA_HDRLEN;
	len = attr->nla_len - NLA_HDRLEN;
	return text[len - 1] ? "" : text;
}
