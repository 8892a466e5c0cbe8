// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Waits of rsocket(7), for programs that import its symbols.  librdma_post makes no
 * rsockets, so every descriptor is an ordinary one, and operations that need an
 * rsocket fail with EBADF (symbols.txt).
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "core/internal.h"

#include <rdma/rsocket.h>

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
