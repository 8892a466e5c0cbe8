// SPDX-License-Identifier: GPL-2.0
/*
 * Connection ids.  See struct rpost_id and enum rpost_id_state.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cm.h>

#include "rpost.h"
#include "trace.h"

#define RPOST_MAX_TIMEOUT_MS	3600000

static_assert(RPOST_EVENT_ADDR_RESOLVED == (int)RDMA_CM_EVENT_ADDR_RESOLVED);
static_assert(RPOST_EVENT_ESTABLISHED == (int)RDMA_CM_EVENT_ESTABLISHED);
static_assert(RPOST_EVENT_TIMEWAIT_EXIT == (int)RDMA_CM_EVENT_TIMEWAIT_EXIT);

/*
 * The only place where a state changes.  @from is a mask of states; @to is
 * entered if the id is in one of them.
 */
static int rpost_id_move(struct rpost_id *id, u32 from, enum rpost_id_state to)
{
	enum rpost_id_state old;
	int ret = 0;

	spin_lock(&id->state_lock);
	old = id->state;
	if (BIT(old) & from)
		id->state = to;
	else
		ret = old == RPOST_ID_REMOVED ? -ENODEV : -EINVAL;
	spin_unlock(&id->state_lock);

	trace_rpost_id_move(id->obj.handle, old, to, ret);
	return ret;
}

/* What an event does to the state, by event. */
static const struct {
	u32 from;
	enum rpost_id_state to;
} rpost_event_moves[] = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = {
		BIT(RPOST_ID_ADDR_QUERY), RPOST_ID_ADDR_RESOLVED },
	[RDMA_CM_EVENT_ADDR_ERROR] = {
		BIT(RPOST_ID_ADDR_QUERY), RPOST_ID_BOUND },
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = {
		BIT(RPOST_ID_ROUTE_QUERY), RPOST_ID_ROUTE_RESOLVED },
	[RDMA_CM_EVENT_ROUTE_ERROR] = {
		BIT(RPOST_ID_ROUTE_QUERY), RPOST_ID_ADDR_RESOLVED },
	[RDMA_CM_EVENT_CONNECT_ERROR] = {
		BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ACCEPTING),
		RPOST_ID_ERROR },
	[RDMA_CM_EVENT_UNREACHABLE] = {
		BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ACCEPTING) |
		BIT(RPOST_ID_REQUEST), RPOST_ID_ERROR },
	[RDMA_CM_EVENT_REJECTED] = {
		BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ACCEPTING) |
		BIT(RPOST_ID_REQUEST), RPOST_ID_ERROR },
	[RDMA_CM_EVENT_ESTABLISHED] = {
		BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ACCEPTING),
		RPOST_ID_CONNECTED },
	[RDMA_CM_EVENT_DISCONNECTED] = {
		BIT(RPOST_ID_CONNECTED) | BIT(RPOST_ID_ACCEPTING) |
		BIT(RPOST_ID_CONNECTING), RPOST_ID_DISCONNECTED },
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = { U32_MAX, RPOST_ID_REMOVED },
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = { 0 },
};

static void rpost_id_removal_work(struct work_struct *work)
{
	struct rpost_id *id = container_of(work, struct rpost_id, removal_work);
	struct rdma_cm_id *cm_id;

	mutex_lock(&id->lock);
	cm_id = id->cm_id;
	id->cm_id = NULL;
	mutex_unlock(&id->lock);
	if (cm_id)
		rdma_destroy_id(cm_id);
}

static struct rpost_id *rpost_id_alloc(struct rpost_file *file)
{
	struct rpost_id *id;
	int ret;

	id = kzalloc(sizeof(*id), GFP_KERNEL_ACCOUNT);
	if (!id)
		return ERR_PTR(-ENOMEM);
	mutex_init(&id->lock);
	spin_lock_init(&id->state_lock);
	INIT_WORK(&id->removal_work, rpost_id_removal_work);
	ret = rpost_obj_reserve(file, &id->obj, RPOST_OBJ_ID);
	if (ret) {
		kfree(id);
		return ERR_PTR(ret);
	}
	return id;
}

/*
 * From now on the queue pair is either ready or in the error state, and the
 * device does with sends what verbs want.
 */
static void rpost_id_track_send(struct rpost_id *id,
				enum rdma_cm_event_type event)
{
	if (event == RDMA_CM_EVENT_ESTABLISHED ||
	    event == RDMA_CM_EVENT_CONNECT_ERROR ||
	    event == RDMA_CM_EVENT_REJECTED)
		WRITE_ONCE(id->can_send, true);
}

static void rpost_event_fill(struct rpost_get_event *to,
			     const struct rdma_cm_event *from)
{
	const struct rdma_conn_param *conn = &from->param.conn;

	to->event = from->event;
	to->status = from->status;
	to->param.qp_num = conn->qp_num;
	to->param.responder_resources = conn->responder_resources;
	to->param.initiator_depth = conn->initiator_depth;
	to->param.flow_control = conn->flow_control;
	to->param.retry_count = conn->retry_count;
	to->param.rnr_retry_count = conn->rnr_retry_count;
	to->param.srq = conn->srq;
	if (conn->private_data) {
		to->param.private_data_len = conn->private_data_len;
		memcpy(to->param.private_data, conn->private_data,
		       conn->private_data_len);
	}
}

/* Make an id for a connection request that came in on @listener. */
static struct rpost_id *rpost_id_accept_request(struct rpost_id *listener,
						struct rdma_cm_id *cm_id)
{
	struct rpost_id *id;

	/* By this errno the request is ignored, and comes again. */
	if (!atomic_add_unless(&listener->backlog, -1, 0))
		return ERR_PTR(-ENOMEM);
	id = rpost_id_alloc(listener->obj.file);
	if (IS_ERR(id)) {
		atomic_inc(&listener->backlog);
		return id;
	}
	id->state = RPOST_ID_REQUEST;
	id->cm_id = cm_id;
	cm_id->context = id;
	return id;
}

/*
 * Enters from cma, with its handler_mutex held and sleeping allowed; calls for
 * one cm_id come one after the other.  A result that is not 0 makes cma
 * destroy the cm_id, which only a request that cannot be taken wants.
 */
static int rpost_id_handler(struct rdma_cm_id *cm_id,
			    struct rdma_cm_event *cm_event)
{
	struct rpost_id *listener = NULL, *id = cm_id->context;
	struct rpost_event *event;

	if (cm_event->event >= ARRAY_SIZE(rpost_event_moves))
		return 0;

	if (cm_event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		listener = id;
		id = rpost_id_accept_request(listener, cm_id);
		if (IS_ERR(id))
			return PTR_ERR(id);
	} else {
		rpost_id_move(id, rpost_event_moves[cm_event->event].from,
			      rpost_event_moves[cm_event->event].to);
		rpost_id_track_send(id, cm_event->event);
	}

	/* A lost event would leave its program waiting for ever. */
	event = kzalloc(sizeof(*event), GFP_KERNEL | __GFP_NOFAIL);
	rpost_event_fill(&event->event, cm_event);
	event->id = id;
	event->event.id = id->obj.handle;
	event->event.listen_id = listener ? listener->obj.handle : 0;
	trace_rpost_event(id->obj.handle, cm_event->event, cm_event->status);
	rpost_event_queue(event, listener);

	if (cm_event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		schedule_work(&id->removal_work);
	return 0;
}

/**
 * rpost_id_shutdown() - close an id's connection
 * @obj: the id; it has no queue pair
 *
 * Return: 0.
 */
int rpost_id_shutdown(struct rpost_obj *obj)
{
	struct rpost_id *id = container_of(obj, struct rpost_id, obj);
	struct rdma_cm_id *cm_id;

	mutex_lock(&id->lock);
	cm_id = id->cm_id;
	id->cm_id = NULL;
	mutex_unlock(&id->lock);

	/* Waits for handlers; after that, no more work is scheduled. */
	if (cm_id)
		rdma_destroy_id(cm_id);
	cancel_work_sync(&id->removal_work);
	rpost_events_drop(id);
	return 0;
}

/**
 * rpost_id_free() - free an id's memory
 * @obj: the id, shut down
 */
void rpost_id_free(struct rpost_obj *obj)
{
	struct rpost_id *id = container_of(obj, struct rpost_id, obj);

	rpost_event_channel_put(id->channel);
	kfree_rcu(id, obj.rcu);
}

/**
 * rpost_id_destroy_unpublished() - destroy the id of an unfetched request
 * @id: the id
 */
void rpost_id_destroy_unpublished(struct rpost_id *id)
{
	rpost_id_shutdown(&id->obj);
	rpost_obj_unreserve(&id->obj);
	rpost_id_free(&id->obj);
}

/**
 * rpost_create_id_ioctl() - create a connection id
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_create_id_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_id *cmd = &ucmd->cmd.create_id;
	struct rpost_event_channel *channel;
	struct rdma_cm_id *cm_id;
	struct rpost_id *id;
	int ret;

	switch (cmd->port_space) {
	case RPOST_PS_TCP:
	case RPOST_PS_IB:
		break;
	case RPOST_PS_UDP:
	case RPOST_PS_IPOIB:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
	switch (cmd->qp_type) {
	case RPOST_QPT_RC:
		break;
	case RPOST_QPT_UC:
	case RPOST_QPT_UD:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}

	channel = rpost_event_channel_get(ucmd->file, cmd->channel_fd);
	if (!channel)
		return -EBADF;
	id = rpost_id_alloc(ucmd->file);
	if (IS_ERR(id)) {
		rpost_event_channel_put(channel);
		return PTR_ERR(id);
	}
	id->channel = channel;
	cm_id = rdma_create_id(ucmd->file->net, rpost_id_handler, id,
			       cmd->port_space, IB_QPT_RC);
	if (IS_ERR(cm_id)) {
		ret = PTR_ERR(cm_id);
		goto err;
	}
	id->cm_id = cm_id;

	cmd->handle = id->obj.handle;
	ret = rpost_respond(ucmd);
	if (ret)
		goto err;
	rpost_obj_publish(&id->obj);
	return 0;
err:
	rpost_id_destroy_unpublished(id);
	return ret;
}

/* Look an id up and lock it, with its cm_id. */
static struct rpost_id *rpost_id_enter(struct rpost_file *file, u32 handle)
{
	struct rpost_obj *obj = rpost_obj_get(file, handle, RPOST_OBJ_ID);
	struct rpost_id *id;

	if (!obj)
		return ERR_PTR(-ENOENT);
	id = container_of(obj, struct rpost_id, obj);
	mutex_lock(&id->lock);
	if (!id->cm_id) {
		mutex_unlock(&id->lock);
		rpost_obj_put(obj);
		return ERR_PTR(-ENODEV);
	}
	return id;
}

static void rpost_id_exit(struct rpost_id *id)
{
	mutex_unlock(&id->lock);
	rpost_obj_put(&id->obj);
}

/*
 * Resolving can be repeated without end, and each time ends with an event.
 * Everything else that events come from happens once.
 */
static int rpost_id_check_events(const struct rpost_id *id)
{
	return READ_ONCE(id->num_events) < RPOST_MAX_EVENTS ? 0 : -ENOMEM;
}

static int rpost_sockaddr(struct sockaddr_storage *to,
			  const struct __kernel_sockaddr_storage *from, u32 len)
{
	u32 need;

	memset(to, 0, sizeof(*to));
	if (len < sizeof(from->ss_family) || len > sizeof(*from))
		return -EINVAL;
	switch (from->ss_family) {
	case AF_INET:
		need = sizeof(struct sockaddr_in);
		break;
	case AF_INET6:
		need = sizeof(struct sockaddr_in6);
		break;
	default:
		return -EAFNOSUPPORT;
	}
	if (len < need)
		return -EINVAL;
	memcpy(to, from, need);
	return 0;
}

/**
 * rpost_bind_addr_ioctl() - give an id a local address
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_bind_addr_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_bind_addr *cmd = &ucmd->cmd.bind_addr;
	struct sockaddr_storage addr;
	struct rpost_id *id;
	int ret;

	ret = rpost_sockaddr(&addr, &cmd->addr, cmd->addr_len);
	if (ret)
		return ret;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	ret = rpost_id_move(id, BIT(RPOST_ID_IDLE), RPOST_ID_BOUND);
	if (!ret) {
		ret = rdma_bind_addr(id->cm_id, (struct sockaddr *)&addr);
		if (ret)
			rpost_id_move(id, BIT(RPOST_ID_BOUND), RPOST_ID_IDLE);
	}
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_resolve_addr_ioctl() - begin to resolve an address
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_resolve_addr_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_resolve_addr *cmd = &ucmd->cmd.resolve_addr;
	struct sockaddr_storage src, dst;
	enum rpost_id_state old;
	struct rpost_id *id;
	int ret;

	if (!cmd->timeout_ms || cmd->timeout_ms > RPOST_MAX_TIMEOUT_MS)
		return -EINVAL;
	if (cmd->src_len) {
		ret = rpost_sockaddr(&src, &cmd->src, cmd->src_len);
		if (ret)
			return ret;
	}
	ret = rpost_sockaddr(&dst, &cmd->dst, cmd->dst_len);
	if (ret)
		return ret;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	/* Nobody else leaves these two states while the id is locked. */
	old = READ_ONCE(id->state);
	ret = rpost_id_check_events(id);
	if (!ret)
		ret = rpost_id_move(id, BIT(RPOST_ID_IDLE) |
					BIT(RPOST_ID_BOUND),
				    RPOST_ID_ADDR_QUERY);
	if (!ret) {
		ret = rdma_resolve_addr(id->cm_id,
					cmd->src_len ? (struct sockaddr *)&src :
						       NULL,
					(struct sockaddr *)&dst,
					cmd->timeout_ms);
		if (ret)
			rpost_id_move(id, BIT(RPOST_ID_ADDR_QUERY), old);
	}
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_resolve_route_ioctl() - begin to resolve a route
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_resolve_route_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_resolve_route *cmd = &ucmd->cmd.resolve_route;
	struct rpost_id *id;
	int ret;

	if (!cmd->timeout_ms || cmd->timeout_ms > RPOST_MAX_TIMEOUT_MS)
		return -EINVAL;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	ret = rpost_id_check_events(id);
	if (!ret)
		ret = rpost_id_move(id, BIT(RPOST_ID_ADDR_RESOLVED),
				    RPOST_ID_ROUTE_QUERY);
	if (!ret) {
		ret = rdma_resolve_route(id->cm_id, cmd->timeout_ms);
		if (ret)
			rpost_id_move(id, BIT(RPOST_ID_ROUTE_QUERY),
				      RPOST_ID_ADDR_RESOLVED);
	}
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_query_id_ioctl() - what an id knows about its ends
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_query_id_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_id *cmd = &ucmd->cmd.query_id;
	struct rdma_cm_id *cm_id;
	struct rdma_route *route;
	struct rpost_id *id;

	static_assert(sizeof(cmd->src) == sizeof(route->addr.src_addr));

	if (cmd->reserved)
		return -EOPNOTSUPP;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);
	cm_id = id->cm_id;
	route = &cm_id->route;

	*cmd = (struct rpost_query_id) { .size = cmd->size, .id = cmd->id };

	/* cma writes the route in its handlers. */
	rdma_lock_handler(cm_id);
	cmd->state = READ_ONCE(id->state);
	memcpy(&cmd->src, &route->addr.src_addr, sizeof(cmd->src));
	/* Binding leaves a family there, but no address. */
	if (!(BIT(cmd->state) & (BIT(RPOST_ID_IDLE) | BIT(RPOST_ID_BOUND) |
				 BIT(RPOST_ID_LISTEN))))
		memcpy(&cmd->dst, &route->addr.dst_addr, sizeof(cmd->dst));
	if (cm_id->device) {
		cmd->device = rpost_device_id(cm_id->device);
		cmd->port_num = cm_id->port_num;
		cmd->pkey = cpu_to_be16(ib_addr_get_pkey(&route->addr.dev_addr));
		rdma_read_gids(cm_id, (union ib_gid *)cmd->sgid,
			       (union ib_gid *)cmd->dgid);
	}
	if (route->num_pri_alt_paths && route->path_rec) {
		cmd->num_paths = route->num_pri_alt_paths;
		cmd->path_mtu = route->path_rec->mtu;
	}
	rdma_unlock_handler(cm_id);

	rpost_id_exit(id);
	return rpost_respond(ucmd);
}

/**
 * rpost_listen_ioctl() - listen for connection requests
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_listen_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_listen *cmd = &ucmd->cmd.listen;
	u32 backlog = cmd->backlog;
	enum rpost_id_state old;
	struct rpost_id *id;
	int ret;

	if (!backlog || backlog > RPOST_MAX_BACKLOG)
		backlog = RPOST_MAX_BACKLOG;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	old = READ_ONCE(id->state);
	ret = rpost_id_move(id, BIT(RPOST_ID_IDLE) | BIT(RPOST_ID_BOUND),
			    RPOST_ID_LISTEN);
	if (!ret) {
		atomic_set(&id->backlog, backlog);
		ret = rdma_listen(id->cm_id, backlog);
		if (ret)
			rpost_id_move(id, BIT(RPOST_ID_LISTEN), old);
	}
	rpost_id_exit(id);
	return ret;
}

static int rpost_conn_param(struct rdma_conn_param *to,
			    const struct rpost_conn_param *from)
{
	if (from->qp_num || from->srq ||
	    memchr_inv(from->reserved, 0, sizeof(from->reserved)))
		return -EOPNOTSUPP;
	*to = (struct rdma_conn_param) {
		.private_data = from->private_data_len ? from->private_data :
							 NULL,
		.private_data_len = from->private_data_len,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.flow_control = from->flow_control,
		.retry_count = from->retry_count,
		.rnr_retry_count = from->rnr_retry_count,
	};
	return 0;
}

/**
 * rpost_connect_ioctl() - ask the other side for a connection
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_connect_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_connect *cmd = &ucmd->cmd.connect;
	struct rdma_conn_param param;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	ret = rpost_conn_param(&param, &cmd->param);
	if (ret)
		return ret;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	ret = -EINVAL;
	if (!id->qp)
		goto out;
	ret = rpost_id_move(id, BIT(RPOST_ID_ROUTE_RESOLVED),
			    RPOST_ID_CONNECTING);
	if (ret)
		goto out;
	ret = rdma_connect(id->cm_id, &param);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_CONNECTING),
			      RPOST_ID_ROUTE_RESOLVED);
out:
	rpost_id_exit(id);
	return ret;
}

/* cma rejects the connection if it is given more than fits. */
static int rpost_check_private_data(struct rdma_cm_id *cm_id, u32 len, u32 max)
{
	if (rdma_cap_ib_cm(cm_id->device, cm_id->port_num) && len > max)
		return -EINVAL;
	return 0;
}

/**
 * rpost_accept_ioctl() - accept a connection request
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_accept_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_accept *cmd = &ucmd->cmd.accept;
	struct rdma_conn_param param;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	ret = rpost_conn_param(&param, &cmd->param);
	if (ret)
		return ret;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	ret = -EINVAL;
	if (!id->qp)
		goto out;
	ret = rpost_check_private_data(id->cm_id, param.private_data_len,
				       IB_CM_REP_PRIVATE_DATA_SIZE);
	if (ret)
		goto out;
	ret = rpost_id_move(id, BIT(RPOST_ID_REQUEST), RPOST_ID_ACCEPTING);
	if (ret)
		goto out;

	rdma_lock_handler(id->cm_id);
	ret = rdma_accept(id->cm_id, &param);
	rdma_unlock_handler(id->cm_id);
	WRITE_ONCE(id->can_send, true);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_ACCEPTING), RPOST_ID_ERROR);
out:
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_reject_ioctl() - reject a connection request
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_reject_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_reject *cmd = &ucmd->cmd.reject;
	struct rpost_id *id;
	int ret;

	if (cmd->private_data_len > U8_MAX)
		return -EINVAL;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	/* A listening or idle id has no device to ask. */
	ret = -EINVAL;
	if (!id->cm_id->device)
		goto out;
	ret = rpost_check_private_data(id->cm_id, cmd->private_data_len,
				       IB_CM_REJ_PRIVATE_DATA_SIZE);
	if (ret)
		goto out;
	ret = rpost_id_move(id, BIT(RPOST_ID_REQUEST), RPOST_ID_ERROR);
	if (ret)
		goto out;
	ret = rdma_reject(id->cm_id,
			  cmd->private_data_len ? cmd->private_data : NULL,
			  cmd->private_data_len, IB_CM_REJ_CONSUMER_DEFINED);
out:
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_disconnect_ioctl() - end a connection
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_disconnect_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_disconnect *cmd = &ucmd->cmd.disconnect;
	struct rpost_id *id;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	id = rpost_id_enter(ucmd->file, cmd->id);
	if (IS_ERR(id))
		return PTR_ERR(id);

	switch (READ_ONCE(id->state)) {
	case RPOST_ID_ACCEPTING:
	case RPOST_ID_CONNECTED:
	case RPOST_ID_DISCONNECTED:
		if (id->qp)
			WRITE_ONCE(id->qp->failed, true);
		ret = rdma_disconnect(id->cm_id);
		break;
	default:
		ret = -ENOTCONN;
		break;
	}
	rpost_id_exit(id);
	return ret;
}

/**
 * rpost_migrate_id_ioctl() - let an id report to another channel
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_migrate_id_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_migrate_id *cmd = &ucmd->cmd.migrate_id;
	struct rpost_event_channel *channel;
	struct rpost_obj *obj;
	struct rpost_id *id;

	channel = rpost_event_channel_get(ucmd->file, cmd->channel_fd);
	if (!channel)
		return -EBADF;
	obj = rpost_obj_get(ucmd->file, cmd->id, RPOST_OBJ_ID);
	if (!obj) {
		rpost_event_channel_put(channel);
		return -ENOENT;
	}
	id = container_of(obj, struct rpost_id, obj);
	mutex_lock(&id->lock);
	rpost_events_migrate(id, channel);
	mutex_unlock(&id->lock);
	rpost_obj_put(obj);
	return 0;
}
