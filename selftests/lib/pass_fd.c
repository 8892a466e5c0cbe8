// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pass file descriptors to another process, see unix(7).
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "pass_fd.h"

int send_fds(int sock, const int *fds, unsigned int n)
{
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

int recv_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	int fd = -1;

	if (recvmsg(sock, &msg, 0) != 1)
		return -errno;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg && cmsg->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(cmsg), sizeof(fd));
	return fd;
}
