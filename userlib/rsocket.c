// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rsocket(7), for programs that import its symbols.  librdma_post makes no
 * rsockets, so every descriptor is an ordinary one: programs can wait for it,
 * and operations that need an rsocket fail with EBADF.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "internal.h"

#include <rdma/rsocket.h>

/* <rdma/rsocket.h> declares them since version 65. */
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
		int timeout);

#pragma GCC diagnostic ignored "-Wunused-parameter"

/**
 * rsocket() - create an rsocket, rsocket(7)
 * @domain: address family
 * @type: socket type
 * @protocol: protocol
 *
 * Return: -1 with ENOSYS.
 */
RPOST_API int rsocket(int domain, int type, int protocol)
{
	return rpost_fail(ENOSYS);
}

/**
 * rpoll() - wait for descriptors, poll(2)
 * @fds: the descriptors
 * @nfds: their number
 * @timeout: milliseconds
 *
 * Return: as poll(2).
 */
RPOST_API int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	return poll(fds, nfds, timeout);
}

/**
 * rselect() - wait for descriptors, select(2)
 * @nfds: the highest descriptor, plus 1
 * @readfds: descriptors to wait for until they are readable, or NULL
 * @writefds: descriptors to wait for until they are writable, or NULL
 * @exceptfds: descriptors to wait for until they have a condition, or NULL
 * @timeout: the longest time to wait, or NULL
 *
 * Return: as select(2).
 */
RPOST_API int rselect(int nfds, fd_set *readfds, fd_set *writefds,
		      fd_set *exceptfds, struct timeval *timeout)
{
	return select(nfds, readfds, writefds, exceptfds, timeout);
}

/**
 * repoll_create() - make a set of descriptors to wait for, epoll_create1(2)
 * @flags: as for epoll_create1(2)
 *
 * Return: as epoll_create1(2).
 */
RPOST_API int repoll_create(int flags)
{
	return epoll_create1(flags);
}

/**
 * repoll_ctl() - change the set, epoll_ctl(2)
 * @epfd: from repoll_create()
 * @op: EPOLL_CTL_ADD and so on
 * @fd: the descriptor
 * @event: the events to wait for
 *
 * Return: as epoll_ctl(2).
 */
RPOST_API int repoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return epoll_ctl(epfd, op, fd, event);
}

/**
 * repoll_wait() - wait for the set, epoll_wait(2)
 * @epfd: from repoll_create()
 * @events: filled in
 * @maxevents: room in @events
 * @timeout: milliseconds
 *
 * Return: as epoll_wait(2).
 */
RPOST_API int repoll_wait(int epfd, struct epoll_event *events, int maxevents,
			  int timeout)
{
	return epoll_wait(epfd, events, maxevents, timeout);
}

#define NO_RSOCKET(type, name, params) \
	RPOST_API type name params { return (type)rpost_fail(EBADF); }

NO_RSOCKET(int, rbind, (int socket, const struct sockaddr *addr,
			socklen_t addrlen))
NO_RSOCKET(int, rlisten, (int socket, int backlog))
NO_RSOCKET(int, raccept, (int socket, struct sockaddr *addr,
			  socklen_t *addrlen))
NO_RSOCKET(int, rconnect, (int socket, const struct sockaddr *addr,
			   socklen_t addrlen))
NO_RSOCKET(int, rshutdown, (int socket, int how))
NO_RSOCKET(int, rclose, (int socket))
NO_RSOCKET(ssize_t, rrecv, (int socket, void *buf, size_t len, int flags))
NO_RSOCKET(ssize_t, rrecvfrom, (int socket, void *buf, size_t len, int flags,
				struct sockaddr *src_addr, socklen_t *addrlen))
NO_RSOCKET(ssize_t, rrecvmsg, (int socket, struct msghdr *msg, int flags))
NO_RSOCKET(ssize_t, rsend, (int socket, const void *buf, size_t len,
			    int flags))
NO_RSOCKET(ssize_t, rsendto, (int socket, const void *buf, size_t len,
			      int flags, const struct sockaddr *dest_addr,
			      socklen_t addrlen))
NO_RSOCKET(ssize_t, rsendmsg, (int socket, const struct msghdr *msg,
			       int flags))
NO_RSOCKET(ssize_t, rread, (int socket, void *buf, size_t count))
NO_RSOCKET(ssize_t, rreadv, (int socket, const struct iovec *iov, int iovcnt))
NO_RSOCKET(ssize_t, rwrite, (int socket, const void *buf, size_t count))
NO_RSOCKET(ssize_t, rwritev, (int socket, const struct iovec *iov, int iovcnt))
NO_RSOCKET(int, rgetpeername, (int socket, struct sockaddr *addr,
			       socklen_t *addrlen))
NO_RSOCKET(int, rgetsockname, (int socket, struct sockaddr *addr,
			       socklen_t *addrlen))
NO_RSOCKET(int, rsetsockopt, (int socket, int level, int optname,
			      const void *optval, socklen_t optlen))
NO_RSOCKET(int, rgetsockopt, (int socket, int level, int optname, void *optval,
			      socklen_t *optlen))
NO_RSOCKET(int, rfcntl, (int socket, int cmd, ...))
NO_RSOCKET(off_t, riomap, (int socket, void *buf, size_t len, int prot,
			   int flags, off_t offset))
NO_RSOCKET(int, riounmap, (int socket, void *buf, size_t len))
NO_RSOCKET(size_t, riowrite, (int socket, const void *buf, size_t count,
			      off_t offset, int flags))
