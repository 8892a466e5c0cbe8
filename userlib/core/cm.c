// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Connection ids: creating, destroying, binding and resolving. */
#include <endian.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

#define MAX_TIMEOUT_MS	3600000

static_assert(sizeof(struct __kernel_sockaddr_storage) ==
	      sizeof(struct sockaddr_storage), "sockaddr_storage");

struct rpost_id *rpost_id_alloc(struct rdma_event_channel *channel,
				void *context, enum rdma_port_space ps,
				enum ibv_qp_type qp_type)
{
	struct rpost_id *priv;

	priv = calloc(1, sizeof(*priv));
	if (!priv)
		return NULL;
	priv->file = rpost_channel(channel)->file;
	priv->id.channel = channel;
	priv->id.context = context;
	priv->id.ps = ps;
	priv->id.qp_type = qp_type;
	pthread_mutex_init(&priv->lock, NULL);
	pthread_cond_init(&priv->acked, NULL);
	return priv;
}

void rpost_id_add(struct rpost_id *priv, uint32_t handle)
{
	priv->node.key = handle;
	rpost_table_add(&priv->file->ids, &priv->node);
}

void rpost_id_free(struct rpost_id *priv)
{
	if (priv->ctx)
		rpost_default_pd_put(priv->ctx);
	free(priv->id.route.path_rec);
	free(priv->qp_init_attr);
	free(priv->connect);
	rdma_freeaddrinfo(priv->addrinfo);
	pthread_cond_destroy(&priv->acked);
	pthread_mutex_destroy(&priv->lock);
	free(priv);
}

int rpost_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		    void *context, enum rdma_port_space ps,
		    enum ibv_qp_type qp_type)
{
	struct rpost_create_id cmd = { .port_space = ps, .qp_type = qp_type };
	bool sync = !channel;
	struct rpost_id *priv;
	int err = ENOMEM;

	if (sync)
		channel = rdma_create_event_channel();
	if (!channel)
		return -1;
	priv = rpost_id_alloc(channel, context, ps, qp_type);
	if (!priv)
		goto destroy_channel;

	cmd.channel_fd = channel->fd;
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_CREATE_ID, &cmd);
	if (err)
		goto free;
	priv->sync = sync;
	rpost_id_add(priv, cmd.handle);
	*id = &priv->id;
	return 0;

free:
	rpost_id_free(priv);
destroy_channel:
	if (sync)
		rdma_destroy_event_channel(channel);
	return rpost_fail(err);
}

/**
 * rdma_create_id() - make a connection id, rdma_create_id(3)
 * @channel: event channel for its events, or NULL for synchronous operation, in
 *           which a call waits for the event that it causes and puts it into
 *           id->event
 * @id: set to the id, to be released by rdma_destroy_id()
 * @context: the id's context
 * @ps: RDMA_PS_TCP and RDMA_PS_IB for connections, RDMA_PS_UDP and
 *      RDMA_PS_IPOIB for datagrams
 *
 * Return: 0, or -1 with errno: EINVAL for a port space that does not exist,
 * EOPNOTSUPP for one that the module does not support, EMFILE, ENOMEM; without
 * a channel, also as rdma_create_event_channel().
 */
RPOST_API int rdma_create_id(struct rdma_event_channel *channel,
			     struct rdma_cm_id **id, void *context,
			     enum rdma_port_space ps)
{
	bool datagrams = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;

	return rpost_id_create(channel, id, context, ps,
			       datagrams ? IBV_QPT_UD : IBV_QPT_RC);
}

void rpost_id_wait_acks(struct rpost_id *priv, const unsigned int *unacked)
{
	pthread_mutex_lock(&priv->lock);
	while (*unacked)
		pthread_cond_wait(&priv->acked, &priv->lock);
	pthread_mutex_unlock(&priv->lock);
}

/**
 * rdma_destroy_id() - destroy a connection id, rdma_destroy_id(3)
 * @id: the id
 *
 * Waits until the program has acknowledged the events that it has fetched for
 * the id, including connection requests of a listening id.  Drops the other
 * events, and leaves multicast groups.  A queue pair that the kernel's connection
 * manager owns goes with the id, and ibv_destroy_qp() frees the struct later.
 * Other queue pairs stay, and so do the completion queues that rdma_create_qp()
 * made.
 *
 * Return: 0, or -1 with errno.
 */
RPOST_API int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct rpost_id *priv = rpost_id(id);
	int err;

	err = rpost_id_leave_qp(priv);
	if (err)
		return rpost_fail(err);
	err = rpost_destroy_handle(priv->file->fd, RPOST_OBJ_ID,
				   rpost_id_handle(priv));
	if (err)
		return rpost_fail(err);

	rpost_id_drop_event(priv);
	rpost_table_del(&priv->file->ids, &priv->node);
	rpost_id_wait_acks(priv, &priv->unacked);
	rpost_mc_free_all(priv);
	if (priv->sync)
		rdma_destroy_event_channel(id->channel);
	rpost_id_free(priv);
	return 0;
}

/**
 * rdma_migrate_id() - move an id to another event channel, rdma_migrate_id(3)
 * @id: the id
 * @channel: event channel for its events from now on, or NULL for synchronous
 *           operation
 *
 * Unfetched events on the old channel move along.  Waits until the program has
 * acknowledged the events that it has fetched.
 *
 * Return: 0, or -1 with errno: EINVAL if the id is synchronous already.
 */
RPOST_API int rdma_migrate_id(struct rdma_cm_id *id,
			      struct rdma_event_channel *channel)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_migrate_id cmd = { .id = rpost_id_handle(priv) };
	bool sync = !channel;
	int err;

	if (sync && priv->sync)
		return rpost_fail(EINVAL);
	if (sync)
		channel = rdma_create_event_channel();
	if (!channel)
		return -1;

	cmd.channel_fd = channel->fd;
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_MIGRATE_ID, &cmd);
	if (err) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return rpost_fail(err);
	}

	rpost_id_drop_event(priv);
	if (priv->sync)
		rdma_destroy_event_channel(id->channel);
	priv->sync = sync;
	id->channel = channel;
	rpost_id_wait_acks(priv, &priv->unacked);
	return 0;
}

static int bind_device(struct rpost_id *priv, const struct rpost_query_id *q)
{
	struct rdma_cm_id *id = &priv->id;
	struct rpost_ctx *ctx;
	struct ibv_pd *pd;

	ctx = rpost_cm_ctx(priv->file, q->device);
	if (!ctx)
		return errno;
	pd = rpost_default_pd_get(ctx);
	if (!pd)
		return errno;

	priv->ctx = ctx;
	id->verbs = &ctx->verbs.context;
	id->port_num = q->port_num;
	if (!id->pd)
		id->pd = pd;
	return 0;
}

static void fill_path(struct ibv_sa_path_rec *to, const struct rpost_path *from)
{
	memcpy(to->dgid.raw, from->dgid, sizeof(from->dgid));
	memcpy(to->sgid.raw, from->sgid, sizeof(from->sgid));
	RPOST_PATH_MEMBERS(RPOST_COPY)
	to->numb_path = 1;	/* a record describes one path */
}

static int fill_paths(struct rpost_id *priv, const struct rpost_query_id *q)
{
	struct rdma_route *route = &priv->id.route;
	struct ibv_sa_path_rec *paths;
	int i, count = q->num_paths;

	if (!count)
		return 0;
	if (count > (int)ARRAY_SIZE(q->paths))
		count = ARRAY_SIZE(q->paths);
	/* Existing records do not move: the program may be reading them. */
	paths = route->num_paths >= count ? route->path_rec :
		realloc(route->path_rec, count * sizeof(*paths));
	if (!paths)
		return ENOMEM;

	memset(paths, 0, count * sizeof(*paths));
	for (i = 0; i < count; i++)
		fill_path(&paths[i], &q->paths[i]);
	route->path_rec = paths;
	route->num_paths = count;
	return 0;
}

int rpost_id_query(struct rpost_id *priv, bool paths)
{
	struct rdma_addr *addr = &priv->id.route.addr;
	struct rpost_query_id q = { .id = rpost_id_handle(priv) };
	int err;

	err = rpost_ioctl(priv->file->fd, RPOST_IOC_QUERY_ID, &q);
	if (err)
		return err;

	if (q.src.ss_family)
		memcpy(&addr->src_storage, &q.src, sizeof(q.src));
	if (q.dst.ss_family)
		memcpy(&addr->dst_storage, &q.dst, sizeof(q.dst));
	if (q.device) {
		memcpy(addr->addr.ibaddr.sgid.raw, q.sgid, sizeof(q.sgid));
		memcpy(addr->addr.ibaddr.dgid.raw, q.dgid, sizeof(q.dgid));
		addr->addr.ibaddr.pkey = q.pkey;
		if (!priv->ctx)
			err = bind_device(priv, &q);
	}
	if (!err && paths)
		err = fill_paths(priv, &q);
	return err;
}

socklen_t rpost_addr_len(const struct sockaddr *addr)
{
	if (!addr)
		return 0;
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	case AF_IB:
		return sizeof(struct sockaddr_ib);
	default:
		return 0;
	}
}

/* Returns 0 or an errno value. */
static int check_addr(const struct sockaddr *addr)
{
	if (!addr)
		return EINVAL;
	return rpost_addr_len(addr) ? 0 : EAFNOSUPPORT;
}

/**
 * rdma_bind_addr() - bind an id to a local address, rdma_bind_addr(3)
 * @id: the id, not bound yet
 * @addr: AF_INET, AF_INET6 or AF_IB address, which may be a wildcard; with port
 *        0 the kernel chooses one, see rdma_get_src_port()
 *
 * Return: 0, or -1 with errno: EINVAL for a bound id, EAFNOSUPPORT, EADDRINUSE,
 * EADDRNOTAVAIL, ENODEV for an address without an RDMA device, EACCES for a
 * privileged port.
 */
RPOST_API int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_bind_addr cmd = { .id = rpost_id_handle(priv) };
	int err;

	err = check_addr(addr);
	if (err)
		return rpost_fail(err);
	cmd.addr_len = rpost_addr_len(addr);
	memcpy(&cmd.addr, addr, cmd.addr_len);
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_BIND_ADDR, &cmd);
	if (!err)
		err = rpost_id_query(priv, false);
	return rpost_fail(err);
}

/* The kernel takes 1 to MAX_TIMEOUT_MS; 0 is shortest, below 0 is longest. */
static uint32_t clamp_timeout(int timeout_ms)
{
	if (timeout_ms < 0 || timeout_ms > MAX_TIMEOUT_MS)
		return MAX_TIMEOUT_MS;
	return timeout_ms ? timeout_ms : 1;
}

/**
 * rdma_resolve_addr() - find the device and address for a destination,
 * rdma_resolve_addr(3)
 * @id: the id
 * @src_addr: address to bind to, or NULL; ignored for a bound id
 * @dst_addr: AF_INET, AF_INET6 or AF_IB address of the other side
 * @timeout_ms: milliseconds until it fails, at most an hour
 *
 * Results in RDMA_CM_EVENT_ADDR_RESOLVED or RDMA_CM_EVENT_ADDR_ERROR.
 *
 * Return: 0, or -1 with errno: as rdma_bind_addr(), and in synchronous
 * operation the error of the event (ETIMEDOUT, EHOSTUNREACH, ENODEV, ...).
 */
RPOST_API int rdma_resolve_addr(struct rdma_cm_id *id,
				struct sockaddr *src_addr,
				struct sockaddr *dst_addr, int timeout_ms)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_resolve_addr cmd = {
		.id = rpost_id_handle(priv),
		.timeout_ms = clamp_timeout(timeout_ms),
	};
	int err;

	err = check_addr(dst_addr);
	if (!err && src_addr)
		err = check_addr(src_addr);
	if (err)
		return rpost_fail(err);

	if (!id->route.addr.src_addr.sa_family)
		cmd.src_len = rpost_addr_len(src_addr);
	cmd.dst_len = rpost_addr_len(dst_addr);
	if (cmd.src_len)
		memcpy(&cmd.src, src_addr, cmd.src_len);
	memcpy(&cmd.dst, dst_addr, cmd.dst_len);
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_RESOLVE_ADDR, &cmd);
	if (err)
		return rpost_fail(err);

	memcpy(&id->route.addr.dst_storage, dst_addr, cmd.dst_len);
	return rpost_id_complete(priv);
}

/**
 * rdma_resolve_route() - find the route to the destination,
 * rdma_resolve_route(3)
 * @id: the id, with its address resolved
 * @timeout_ms: milliseconds until it fails, at most an hour
 *
 * Results in RDMA_CM_EVENT_ROUTE_RESOLVED or RDMA_CM_EVENT_ROUTE_ERROR.
 *
 * Return: 0, or -1 with errno: EINVAL in another state, and in synchronous
 * operation the error of the event.
 */
RPOST_API int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_resolve_route cmd = {
		.id = rpost_id_handle(priv),
		.timeout_ms = clamp_timeout(timeout_ms),
	};
	int err;

	err = rpost_ioctl(priv->file->fd, RPOST_IOC_RESOLVE_ROUTE, &cmd);
	if (err)
		return rpost_fail(err);
	return rpost_id_complete(priv);
}

static __be16 port_of(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		return htobe16((uint16_t)be64toh(((const struct sockaddr_ib *)addr)->sib_sid));
	default:
		return 0;
	}
}

/**
 * rdma_get_src_port() - get the local port, rdma_get_src_port(3)
 * @id: the id
 *
 * Return: the port in network byte order, 0 if the id is not bound.
 */
RPOST_API __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

/**
 * rdma_get_dst_port() - get the other side's port, rdma_get_dst_port(3)
 * @id: the id
 *
 * Return: the port in network byte order, 0 if the id has no destination.
 */
RPOST_API __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}
