/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pass file descriptors to another process, see unix(7).
 */
#ifndef PASS_FD_H
#define PASS_FD_H

/* Send one or two descriptors; return 0 or a negative errno. */
int send_fds(int sock, const int *fds, unsigned int n);

static inline int send_fd(int sock, int fd)
{
	return send_fds(sock, &fd, 1);
}

/* Return the received descriptor, or -1 or a negative errno. */
int recv_fd(int sock);

#endif /* PASS_FD_H */
