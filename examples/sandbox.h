/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How sandbox, a supervisor, and its sandbox_worker talk. */
#ifndef SANDBOX_H
#define SANDBOX_H

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

/* From the supervisor: the queue pair's next state.  The last step has no mask. */
struct step {
	struct ibv_qp_attr attr;
	int mask;
	bool first;		/* this side speaks first */
};

static inline void tell(int sock, const void *data, size_t size)
{
	check(send(sock, data, size, MSG_NOSIGNAL) != (ssize_t)size, "send");
}

static inline void learn(int sock, void *data, size_t size)
{
	expect(recv(sock, data, size, 0) == (ssize_t)size, "the other process");
}

/* Sends the descriptor, or receives one if it is -1.  Returns it. */
static inline int pass(int sock, int fd)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(fd))] = {};
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			      .msg_controllen = sizeof(room) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);

	if (fd < 0) {
		expect(recvmsg(sock, &msg, 0) > 0 && msg.msg_controllen, "a descriptor");
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
		return fd;
	}
	*header = (struct cmsghdr){ CMSG_LEN(sizeof(fd)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	check(sendmsg(sock, &msg, MSG_NOSIGNAL) < 0, "sendmsg");
	return fd;
}

#endif
