// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Event channels, and the events of connection ids. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/internal.h"

/* The id of the event has gone; fetch another event. */
#define SKIP	(-1)

/**
 * rdma_create_event_channel() - make an event channel,
 * rdma_create_event_channel(3)
 *
 * The channel's fd is the kernel's.  poll(2) and epoll(7) report it readable
 * while it has an event, and the program may make it non-blocking.
 *
 * Return: the channel, to be released by rdma_destroy_event_channel(), or NULL
 * with errno: the error of opening /dev/rdma_post (ENOENT, EACCES, ...),
 * EPROTONOSUPPORT for a module that speaks another ABI, ENODEV if there is no
 * device and the process has not seen one before, EMFILE, ENOMEM.
 */
RPOST_API struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rpost_create_event_channel cmd = {};
	struct rpost_channel *channel;
	struct rpost_file *file;
	int err;

	file = rpost_cm_file_get();
	if (!file)
		return NULL;
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;

	err = rpost_ioctl(file->fd, RPOST_IOC_CREATE_EVENT_CHANNEL, &cmd);
	if (err) {
		free(channel);
		return rpost_null(err);
	}
	channel->file = file;
	channel->channel.fd = cmd.fd;
	return &channel->channel;
}

/**
 * rdma_destroy_event_channel() - release an event channel,
 * rdma_destroy_event_channel(3)
 * @channel: the channel; its ids must have been destroyed and its events
 *           acknowledged
 */
RPOST_API void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	free(rpost_channel(channel));
}

/* Finds an id, and counts one more event that is not acknowledged. */
static struct rpost_id *id_of_event(struct rpost_file *file, uint32_t handle)
{
	struct rpost_node *node;
	struct rpost_id *priv = NULL;

	pthread_mutex_lock(&file->ids.lock);
	node = rpost_table_find(&file->ids, handle);
	if (node) {
		priv = rpost_container_of(node, struct rpost_id, node);
		pthread_mutex_lock(&priv->lock);
		priv->unacked++;
		pthread_mutex_unlock(&priv->lock);
	}
	pthread_mutex_unlock(&file->ids.lock);
	return priv;
}

static void event_done(struct rpost_id *priv, struct rpost_mc *mc)
{
	pthread_mutex_lock(&priv->lock);
	if (mc)
		rpost_mc_acked(priv, mc);
	if (!--priv->unacked)
		pthread_cond_broadcast(&priv->acked);
	pthread_mutex_unlock(&priv->lock);
}

/* Acknowledges an event to its owner, but does not free it. */
void rpost_event_disown(struct rpost_event *evt)
{
	event_done(evt->owner, NULL);
	evt->owner = NULL;
}

static void copy_param(struct rpost_event *evt, const struct rpost_get_event *cmd)
{
	const struct rpost_conn_param *param = &cmd->param;
	struct rdma_conn_param *conn = &evt->event.param.conn;
	struct rdma_ud_param *ud = &evt->event.param.ud;
	const void *data = NULL;

	if (param->private_data_len) {
		memcpy(evt->private_data, param->private_data, param->private_data_len);
		data = evt->private_data;
	}
	if (evt->owner->id.qp_type == IBV_QPT_UD) {
		rpost_ah_attr_unpack(&ud->ah_attr, &cmd->ud.ah);
		ud->qp_num = cmd->ud.qp_num;
		ud->qkey = cmd->ud.qkey;
		ud->private_data = data;
		ud->private_data_len = param->private_data_len;
	} else {
		conn->qp_num = param->qp_num;
		conn->responder_resources = param->responder_resources;
		conn->initiator_depth = param->initiator_depth;
		conn->flow_control = param->flow_control;
		conn->retry_count = param->retry_count;
		conn->rnr_retry_count = param->rnr_retry_count;
		conn->srq = param->srq;
		conn->private_data = data;
		conn->private_data_len = param->private_data_len;
	}
}

/* Makes the id of a connection request.  Returns 0 or SKIP. */
static int accept_request(struct rpost_event *evt,
			  const struct rpost_get_event *cmd)
{
	struct rpost_id *listen = evt->owner;
	struct rpost_id *priv;

	priv = rpost_id_alloc(listen->id.channel, listen->id.context,
			      listen->id.ps, listen->id.qp_type);
	if (!priv) {
		/* The kernel rejects the request. */
		rpost_destroy_handle(listen->file->fd, RPOST_OBJ_ID, cmd->id);
		return SKIP;
	}
	rpost_id_add(priv, cmd->id);
	priv->responder_resources = cmd->param.responder_resources;
	priv->initiator_depth = cmd->param.initiator_depth;
	priv->remote_ece = cmd->ece;

	if ((listen->sync && rdma_migrate_id(&priv->id, NULL)) ||
	    rpost_id_query(priv, true)) {
		rdma_destroy_id(&priv->id);
		return SKIP;
	}
	evt->event.listen_id = &listen->id;
	evt->event.id = &priv->id;
	return 0;
}

/* The other side has accepted: bring up the queue pair and confirm. */
static void follow_response(struct rpost_event *evt)
{
	struct rdma_cm_event *event = &evt->event;
	int err;

	if (!rpost_id_user_qp(evt->owner))
		return;
	err = rpost_id_ready_qp(evt->owner);
	if (!err)
		err = rpost_id_establish(evt->owner);
	if (err)
		rpost_id_fail_qp(evt->owner);
	event->event = err ? RDMA_CM_EVENT_CONNECT_ERROR :
			     RDMA_CM_EVENT_ESTABLISHED;
	event->status = -err;
	evt->owner->ended = err;
}

/* Updates the id after an event. */
static void follow_event(struct rpost_event *evt)
{
	struct rdma_cm_event *event = &evt->event;
	bool route;
	int err;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		route = event->event == RDMA_CM_EVENT_ROUTE_RESOLVED;
		err = rpost_id_query(evt->owner, route);
		if (err) {
			event->event = route ? RDMA_CM_EVENT_ROUTE_ERROR : RDMA_CM_EVENT_ADDR_ERROR;
			event->status = -err;
		}
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		follow_response(evt);
		break;
	case RDMA_CM_EVENT_REJECTED:
		rpost_id_fail_qp(evt->owner);
		evt->owner->ended = true;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		/* An UNREACHABLE before it told of a neighbour's change. */
		evt->owner->ended = false;
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		evt->owner->ended = true;
		break;
	default:
		break;
	}
}

/*
 * Version 57 has added this event, and a member @arg of the union @param, which
 * the headers may not have.
 */
static void copy_arg(struct rdma_cm_event *event, uint64_t arg)
{
	memset(&event->param, 0, sizeof(event->param));
	memcpy(&event->param, &arg, sizeof(arg));
}

/* Handles an event other than a connection request.  Returns 0 or SKIP. */
static int id_event(struct rpost_event *evt, const struct rpost_get_event *cmd)
{
	evt->event.id = &evt->owner->id;
	switch ((uint32_t)evt->event.event) {
	case RPOST_EVENT_USER:
		copy_arg(&evt->event, cmd->user_data);
		return 0;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		return rpost_mc_event(evt, cmd->user_data) ? 0 : SKIP;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		evt->owner->remote_ece = cmd->ece;
		break;
	default:
		break;
	}
	follow_event(evt);
	return 0;
}

/* Returns 0, an errno value, or SKIP. */
static int fetch(struct rdma_event_channel *channel, struct rpost_event *evt)
{
	struct rpost_file *file = rpost_channel(channel)->file;
	struct rpost_get_event cmd = {};
	int err, type;
	bool request;

	/* A cancellation point, as librdmacm's write(2) is. */
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	err = rpost_ioctl(channel->fd, RPOST_IOC_GET_EVENT, &cmd);
	pthread_setcanceltype(type, NULL);
	if (err)
		return err;

	memset(evt, 0, sizeof(*evt));
	request = cmd.event == RPOST_EVENT_CONNECT_REQUEST;
	evt->event.event = cmd.event;
	evt->event.status = cmd.status;
	evt->owner = id_of_event(file, request ? cmd.listen_id : cmd.id);
	if (!evt->owner) {
		if (request)
			rpost_destroy_handle(file->fd, RPOST_OBJ_ID, cmd.id);
		return SKIP;
	}

	copy_param(evt, &cmd);
	if (request)
		err = accept_request(evt, &cmd);
	else
		err = id_event(evt, &cmd);
	if (err)
		event_done(evt->owner, NULL);
	return err;
}

/**
 * rdma_get_cm_event() - wait for the next event, rdma_get_cm_event(3)
 * @channel: the event channel
 * @event: set to the event, to be released by rdma_ack_cm_event()
 *
 * The call drops events of ids that have been destroyed.
 *
 * Return: 0, or -1 with errno: EAGAIN if there is none and the channel is
 * non-blocking, EINTR, ENOMEM.
 */
RPOST_API int rdma_get_cm_event(struct rdma_event_channel *channel,
				struct rdma_cm_event **event)
{
	struct rpost_event *evt;
	int err;

	if (!channel || !event)
		return rpost_fail(EINVAL);
	/* Allocate first: a fetched event cannot be put back. */
	evt = malloc(sizeof(*evt));
	if (!evt)
		return -1;

	pthread_cleanup_push(free, evt);
	do {
		err = fetch(channel, evt);
	} while (err == SKIP);
	pthread_cleanup_pop(err);
	if (err)
		return rpost_fail(err);
	*event = &evt->event;
	return 0;
}

/**
 * rdma_ack_cm_event() - release an event, rdma_ack_cm_event(3)
 * @event: from rdma_get_cm_event()
 *
 * Return: 0, or -1 with errno EINVAL for NULL.
 */
RPOST_API int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct rpost_event *evt;

	if (!event)
		return rpost_fail(EINVAL);
	evt = rpost_container_of(event, struct rpost_event, event);
	if (evt->owner)
		event_done(evt->owner, evt->mc);
	free(evt);
	return 0;
}

int rpost_id_write_event(struct rpost_id *priv, uint32_t event, int status,
			 uint64_t arg)
{
	struct rpost_write_event cmd = {
		.id = rpost_id_handle(priv),
		.event = event,
		.status = status,
		.user_data = arg,
	};

	return rpost_ioctl(priv->file->fd, RPOST_IOC_WRITE_EVENT, &cmd);
}

/**
 * rdma_write_cm_event() - append an event to a channel, rdma_write_cm_event(3)
 * @id: the id, to whose channel it goes
 * @event: RDMA_CM_EVENT_USER
 * @status: the event's status
 * @arg: the event's param.arg
 *
 * A synchronous id drops the event.
 *
 * Return: 0, or -1 with errno: EINVAL for another event or the id of a request
 * that is not accepted, ENOMEM while eight events of the id have not been
 * fetched, EOPNOTSUPP.
 */
RPOST_API int rdma_write_cm_event(struct rdma_cm_id *id,
				  enum rdma_cm_event_type event, int status,
				  uint64_t arg)
{
	int err = EINVAL;

	if (id && (uint32_t)event == RPOST_EVENT_USER)
		err = rpost_id_write_event(rpost_id(id), event, status, arg);
	return rpost_fail(err);
}

void rpost_id_drop_event(struct rpost_id *priv)
{
	if (!priv->sync || !priv->id.event)
		return;
	rdma_ack_cm_event(priv->id.event);
	priv->id.event = NULL;
}

/* Returns an errno value for an event that tells of a failure. */
int rpost_event_errno(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	if (event->status < 0)
		return -event->status;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		return EHOSTUNREACH;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return ENODEV;
	default:
		/* A positive status is the transport's reason, not an errno. */
		return ECONNABORTED;
	}
}

/*
 * Has an operation failed?  Not if the other side has hung up at once:
 * RDMA_CM_EVENT_DISCONNECTED then comes in place of _ESTABLISHED.  An iWARP device
 * says _ESTABLISHED in place of _CONNECT_RESPONSE.
 */
static bool is_failure(const struct rdma_cm_event *event)
{
	return event->status || event->event == RDMA_CM_EVENT_REJECTED ||
	       event->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

/* An event that may come at any time, and does not end an operation. */
static bool is_notice(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_ADDR_CHANGE ||
	       event == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
	       (uint32_t)event == RPOST_EVENT_USER;
}

int rpost_id_complete(struct rpost_id *priv)
{
	struct rdma_cm_event *event;

	if (!priv->sync)
		return 0;

	do {
		rpost_id_drop_event(priv);
		if (rdma_get_cm_event(priv->id.channel, &priv->id.event))
			return -1;
		event = priv->id.event;
	} while (is_notice(event->event));

	return rpost_fail(is_failure(event) ? rpost_event_errno(event) : 0);
}
