// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Addresses for names and services, found by getaddrinfo(3). */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

#define KNOWN_FLAGS \
	(RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY)

/* Of version 57; librdmacm then took them for rdma_resolve_addrinfo(). */
#ifndef RAI_SA
#define RAI_SA	0x00000010
#define RAI_DNS	0x00000020
#endif

/* From <infiniband/ib.h>. */
#ifndef AF_IB
#define AF_IB	27
#endif

static int socktype_of(const struct rdma_addrinfo *hints)
{
	switch (hints->ai_qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	default:
		return 0;
	}
}

static int protocol_of(const struct rdma_addrinfo *hints, int socktype)
{
	switch (hints->ai_port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		if (socktype == SOCK_STREAM)
			return IPPROTO_TCP;
		return socktype == SOCK_DGRAM ? IPPROTO_UDP : 0;
	default:
		return 0;
	}
}

static void hints_to_ai(struct addrinfo *ai, const struct rdma_addrinfo *hints)
{
	memset(ai, 0, sizeof(*ai));
	if (!hints)
		return;
	if (hints->ai_flags & RAI_PASSIVE)
		ai->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ai->ai_flags |= AI_NUMERICHOST;
	ai->ai_family = hints->ai_family;
	ai->ai_socktype = socktype_of(hints);
	ai->ai_protocol = protocol_of(hints, ai->ai_socktype);
}

static int copy_addr(struct sockaddr **dst, socklen_t *dst_len,
		     const struct sockaddr *src, socklen_t src_len)
{
	if (!src_len)
		return 0;
	*dst = malloc(src_len);
	if (!*dst)
		return EAI_MEMORY;
	memcpy(*dst, src, src_len);
	*dst_len = src_len;
	return 0;
}

/* Types that @hints leaves open follow from the kind of socket. */
static void set_types(struct rdma_addrinfo *rai,
		      const struct rdma_addrinfo *hints,
		      const struct addrinfo *ai)
{
	bool datagrams = ai->ai_socktype == SOCK_DGRAM;

	rai->ai_qp_type = datagrams ? IBV_QPT_UD : IBV_QPT_RC;
	rai->ai_port_space = datagrams ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (hints && hints->ai_qp_type)
		rai->ai_qp_type = hints->ai_qp_type;
	if (hints && hints->ai_port_space)
		rai->ai_port_space = hints->ai_port_space;
}

static int from_ai(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints,
		   const struct addrinfo *ai)
{
	rai->ai_family = ai->ai_family;
	set_types(rai, hints, ai);
	if (hints && (hints->ai_flags & RAI_PASSIVE)) {
		rai->ai_flags = RAI_PASSIVE;
		return copy_addr(&rai->ai_src_addr, &rai->ai_src_len,
				 ai->ai_addr, ai->ai_addrlen);
	}
	if (copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr,
		      ai->ai_addrlen))
		return EAI_MEMORY;
	if (!hints)
		return 0;
	return copy_addr(&rai->ai_src_addr, &rai->ai_src_len,
			 hints->ai_src_addr, hints->ai_src_len);
}

static int from_hints(struct rdma_addrinfo *rai,
		      const struct rdma_addrinfo *hints)
{
	rai->ai_flags = hints->ai_flags;
	rai->ai_family = hints->ai_family;
	rai->ai_qp_type = hints->ai_qp_type;
	rai->ai_port_space = hints->ai_port_space;
	if (copy_addr(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr,
		      hints->ai_src_len))
		return EAI_MEMORY;
	return copy_addr(&rai->ai_dst_addr, &rai->ai_dst_len,
			 hints->ai_dst_addr, hints->ai_dst_len);
}

static int append_all(struct rdma_addrinfo **list,
		      const struct rdma_addrinfo *hints,
		      const struct addrinfo *ai)
{
	int socktype = ai->ai_socktype;
	int err;

	/* Take each address once, for the kind of socket that comes first. */
	for (; ai; ai = ai->ai_next) {
		if (ai->ai_socktype != socktype)
			continue;
		*list = calloc(1, sizeof(**list));
		if (!*list)
			return EAI_MEMORY;
		err = from_ai(*list, hints, ai);
		if (err)
			return err;
		list = &(*list)->ai_next;
	}
	return 0;
}

static int append_found(const char *node, const char *service,
			const struct rdma_addrinfo *hints,
			struct rdma_addrinfo **list)
{
	struct addrinfo ai_hints, *ai;
	int err;

	if (!node && !service) {
		*list = calloc(1, sizeof(**list));
		return *list ? from_hints(*list, hints) : EAI_MEMORY;
	}

	hints_to_ai(&ai_hints, hints);
	err = getaddrinfo(node, service, &ai_hints, &ai);
	if (err)
		return err;
	err = append_all(list, hints, ai);
	freeaddrinfo(ai);
	return err;
}

/**
 * rdma_freeaddrinfo() - release a list of rdma_getaddrinfo()
 * @res: the list, or NULL
 */
RPOST_API void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}

/* Sets @res to a list.  Returns 0 or an EAI_* code. */
static int look_up(const char *node, const char *service,
		   const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	struct rdma_addrinfo *list = NULL;
	int err;

	if (hints && (hints->ai_flags & ~KNOWN_FLAGS))
		return EAI_BADFLAGS;
	if (hints && hints->ai_family == AF_IB)
		return EAI_FAMILY;

	err = append_found(node, service, hints, &list);
	if (err) {
		rdma_freeaddrinfo(list);
		return err;
	}
	*res = list;
	return 0;
}

/**
 * rdma_getaddrinfo() - find addresses for names, rdma_getaddrinfo(3)
 * @node: name or numeric address of the other side, or with RAI_PASSIVE of this
 *        side, or NULL
 * @service: name or number of the port, or NULL
 * @hints: types, flags and addresses wanted, or NULL
 * @res: set to a list, to be released by rdma_freeaddrinfo()
 *
 * The call looks up no routes: ai_route is empty, as it is without a route
 * resolution service.
 *
 * Return: 0; or -1 with errno EINVAL if @node, @service and @hints are all
 * NULL, and as rdma_create_event_channel(), since a program often begins with
 * this call; or an EAI_* code as getaddrinfo(3), for gai_strerror(): EAI_FAMILY for
 * AF_IB, EAI_BADFLAGS for unknown flags.
 */
RPOST_API int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints,
			       struct rdma_addrinfo **res)
{
	if (!node && !service && !hints)
		return rpost_fail(EINVAL);
	if (!rpost_cm_file_get())
		return -1;
	return look_up(node, service, hints, res);
}

static int errno_of(int err)
{
	switch (err) {
	case 0:
		return 0;
	case EAI_SYSTEM:
		return errno;
	case EAI_AGAIN:
		return EAGAIN;
	case EAI_MEMORY:
		return ENOMEM;
	case EAI_BADFLAGS:
	case EAI_SOCKTYPE:
		return EINVAL;
	case EAI_FAMILY:
		return EAFNOSUPPORT;
	default:
		return ENOENT;
	}
}

/* Looks the name up, and tells the channel.  Returns 0 or an errno value. */
static int resolve(struct rpost_id *priv, const char *node, const char *service,
		   const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *info = NULL, without_dns;
	int err;

	if (!node && !service && !hints)
		return EINVAL;
	if (hints && hints->ai_flags & RAI_SA)
		return EOPNOTSUPP;
	if (hints) {
		without_dns = *hints;
		without_dns.ai_flags &= ~RAI_DNS;
		hints = &without_dns;
	}
	err = errno_of(look_up(node, service, hints, &info));
	if (err)
		return err;

	/* Another thread that gets the event asks for what was found. */
	pthread_mutex_lock(&priv->lock);
	err = rpost_id_write_event(priv, RPOST_EVENT_ADDRINFO_RESOLVED, 0, 0);
	if (!err)
		priv->addrinfo = info;
	pthread_mutex_unlock(&priv->lock);
	if (err)
		rdma_freeaddrinfo(info);
	return err;
}

/**
 * rdma_resolve_addrinfo() - find addresses for names, rdma_resolve_addrinfo(3)
 * @id: the id, which gets RDMA_CM_EVENT_ADDRINFO_RESOLVED
 * @node: as in rdma_getaddrinfo()
 * @service: as in rdma_getaddrinfo()
 * @hints: as in rdma_getaddrinfo(), and RAI_DNS, which changes nothing
 *
 * As in librdmacm, the call itself waits for the name service.
 *
 * Return: 0, or -1 with errno: EOPNOTSUPP for services of InfiniBand (RAI_SA),
 * EBUSY if the program has not taken what was found before, ENOENT if nothing
 * was found, EINVAL also for the id of a request that is not accepted, EAGAIN,
 * EAFNOSUPPORT, ENOMEM.
 */
RPOST_API int rdma_resolve_addrinfo(struct rdma_cm_id *id, const char *node,
				    const char *service,
				    const struct rdma_addrinfo *hints)
{
	struct rpost_id *priv;
	bool busy;
	int err;

	if (!id)
		return rpost_fail(EINVAL);
	priv = rpost_id(id);
	pthread_mutex_lock(&priv->lock);
	busy = priv->resolving;
	priv->resolving = true;
	pthread_mutex_unlock(&priv->lock);
	if (busy)
		return rpost_fail(EBUSY);

	err = resolve(priv, node, service, hints);
	if (err) {
		pthread_mutex_lock(&priv->lock);
		priv->resolving = false;
		pthread_mutex_unlock(&priv->lock);
		return rpost_fail(err);
	}
	return rpost_id_complete(priv);
}

/**
 * rdma_query_addrinfo() - take what was found, rdma_query_addrinfo(3)
 * @id: the id
 * @info: set to a list, to be released by rdma_freeaddrinfo()
 *
 * Return: 0, or -1 with errno: EINVAL for NULL, ENOENT if there is nothing.
 */
RPOST_API int rdma_query_addrinfo(struct rdma_cm_id *id,
				  struct rdma_addrinfo **info)
{
	struct rdma_addrinfo *found;
	struct rpost_id *priv;

	if (!id || !info)
		return rpost_fail(EINVAL);
	priv = rpost_id(id);
	pthread_mutex_lock(&priv->lock);
	found = priv->addrinfo;
	priv->addrinfo = NULL;
	if (found)
		priv->resolving = false;
	pthread_mutex_unlock(&priv->lock);
	if (!found)
		return rpost_fail(ENOENT);
	*info = found;
	return 0;
}
