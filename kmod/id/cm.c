// SPDX-License-Identifier: GPL-2.0
/*
 * Connection ids.  See struct rpost_id and enum rpost_id_state.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_sa.h>

#include "base/inject.h"
#include "core/device.h"
#include "core/trace.h"
#include "id/id.h"

static_assert(RPOST_EVENT_ADDR_RESOLVED == (int)RDMA_CM_EVENT_ADDR_RESOLVED);
static_assert(RPOST_EVENT_ESTABLISHED == (int)RDMA_CM_EVENT_ESTABLISHED);
static_assert(RPOST_EVENT_TIMEWAIT_EXIT == (int)RDMA_CM_EVENT_TIMEWAIT_EXIT);
static_assert(RPOST_PS_IPOIB == (int)RDMA_PS_IPOIB);
static_assert(RPOST_PS_IB == (int)RDMA_PS_IB);
static_assert(RPOST_PS_TCP == (int)RDMA_PS_TCP);
static_assert(RPOST_PS_UDP == (int)RDMA_PS_UDP);
static_assert(RPOST_QPT_RC == (int)IB_QPT_RC);
static_assert(RPOST_QPT_UC == (int)IB_QPT_UC);
static_assert(RPOST_QPT_UD == (int)IB_QPT_UD);

/*
 * Change the state of an id, as nothing else does after its creation, if it is in one of
 * the states in the mask from.  Return 0, -ENODEV if the device has gone, or -EINVAL.
 */
int rpost_id_move(struct rpost_id *id, u32 from, enum rpost_id_state to)
{
	enum rpost_id_state old;
	int ret = 0;

	spin_lock(&id->state_lock);
	old = id->state;
	if (BIT(old) & from)
		WRITE_ONCE(id->state, to);
	else
		ret = old == RPOST_ID_REMOVED ? -ENODEV : -EINVAL;
	spin_unlock(&id->state_lock);
	if (from)
		trace_rpost_id_move(&id->obj, old, to, ret);
	return ret;
}

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
	/*
	 * Since 6.0 UNREACHABLE may only mean that a neighbour's address
	 * changed, so later events count.
	 */
	[RDMA_CM_EVENT_ESTABLISHED] = {
		BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ACCEPTING) |
		BIT(RPOST_ID_ERROR), RPOST_ID_CONNECTED },
	[RDMA_CM_EVENT_DISCONNECTED] = {
		BIT(RPOST_ID_CONNECTED) | BIT(RPOST_ID_ACCEPTING) |
		BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ERROR),
		RPOST_ID_DISCONNECTED },
	/* The program replies by ESTABLISH or REJECT. */
	[RDMA_CM_EVENT_CONNECT_RESPONSE] = { 0 },
	[RDMA_CM_EVENT_DEVICE_REMOVAL] = { U32_MAX, RPOST_ID_REMOVED },
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = { 0 },
};

static void rpost_id_removal_work(struct work_struct *work);

static struct rpost_id *rpost_id_alloc(struct rpost_file *file, gfp_t gfp)
{
	struct rpost_id *id = kzalloc(sizeof(*id), gfp);
	int ret;

	if (!id)
		return ERR_PTR(-ENOMEM);
	mutex_init(&id->lock);
	spin_lock_init(&id->state_lock);
	INIT_WORK(&id->removal_work, rpost_id_removal_work);
	INIT_LIST_HEAD(&id->requests);
	INIT_LIST_HEAD(&id->events);
	INIT_LIST_HEAD(&id->joins);
	INIT_LIST_HEAD(&id->route_link);
	ret = rpost_obj_reserve(file, &id->obj, RPOST_OBJ_ID, NULL, gfp);
	if (ret) {
		kfree(id);
		return ERR_PTR(ret);
	}
	return id;
}

static void rpost_id_follow(struct rpost_id *id, enum rdma_cm_event_type event)
{
	rpost_id_move(id, rpost_event_moves[event].from, rpost_event_moves[event].to);
	switch (event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		/* A datagram queue pair's answer had an invalid queue key. */
		rpost_id_move(id, BIT(RPOST_ID_CONNECTING), RPOST_ID_ERROR);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		id->responded = true;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED:
		/*
		 * From now on the queue pair is either ready or in the error
		 * state, and the device sends or flushes as verbs require.
		 */
		WRITE_ONCE(id->can_send, true);
		break;
	default:
		break;
	}
}

static void rpost_event_private_data(struct rpost_conn_param *to, const void *data, u8 len)
{
	if (!data)
		return;
	to->private_data_len = len;
	memcpy(to->private_data, data, len);
}

static void rpost_event_conn(struct rpost_conn_param *to, const struct rdma_conn_param *from)
{
	to->qp_num = from->qp_num;
	to->responder_resources = from->responder_resources;
	to->initiator_depth = from->initiator_depth;
	to->flow_control = from->flow_control;
	to->retry_count = from->retry_count;
	to->rnr_retry_count = from->rnr_retry_count;
	to->srq = from->srq;
	rpost_event_private_data(to, from->private_data, from->private_data_len);
}

static void rpost_event_ud(struct rpost_ud_param *to, const struct rdma_ud_param *from)
{
	to->qp_num = from->qp_num;
	to->qkey = from->qkey;
	rpost_ah_attr_fill(&to->ah, &from->ah_attr);
}

static void rpost_event_fill(struct rpost_event *event,
			     struct rdma_cm_id *cm_id,
			     const struct rdma_cm_event *from)
{
	struct rpost_get_event *to = &event->event;
	const struct rdma_ud_param *ud = &from->param.ud;

	to->event = from->event;
	to->status = from->status;
	switch (from->event) {
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		rpost_event_ud(&to->ud, ud);
		fallthrough;
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		/* Here it is the context given to rdma_join_multicast(). */
		event->join = ud->private_data;
		to->user_data = event->join->user_data;
		return;
	default:
		break;
	}

	to->ece.vendor_id = from->ece.vendor_id;
	to->ece.attr_mod = from->ece.attr_mod;
	if (cm_id->qp_type != IB_QPT_UD) {
		rpost_event_conn(&to->param, &from->param.conn);
		return;
	}
	rpost_event_private_data(&to->param, ud->private_data, ud->private_data_len);
	/* iWARP has no datagrams, but cma lets a program try. */
	if (from->event == RDMA_CM_EVENT_ESTABLISHED &&
	    rdma_cap_ib_cm(cm_id->device, cm_id->port_num))
		rpost_event_ud(&to->ud, ud);
}

/* Create an id for a connection request that came in on @listener. */
static struct rpost_id *rpost_id_accept_request(struct rpost_id *listener, struct rdma_cm_id *cm_id)
{
	struct rpost_id *id;

	/*
	 * cma knows devices that are not offered, or not yet added here.  This
	 * errno makes it reject the request.
	 */
	if (!rpost_device_id(cm_id->device))
		return ERR_PTR(-ENODEV);
	/* cma drops the request, which comes again; SIDR ones are refused. */
	if (rpost_inject(RPOST_INJECT_BACKLOG) ||
	    !atomic_add_unless(&listener->backlog, -1, 0))
		return ERR_PTR(-ENOMEM);
	id = rpost_inject(RPOST_INJECT_REQUEST) ? ERR_PTR(-ENOMEM) :
	     rpost_id_alloc(listener->obj.file, RPOST_GFP_NOWAIT);
	if (IS_ERR(id)) {
		atomic_inc(&listener->backlog);
		return id;
	}
	id->state = RPOST_ID_REQUEST;
	id->unaccepted = true;
	id->cm_id = cm_id;
	cm_id->context = id;
	return id;
}

/*
 * @listener: the id that listens, for a request; else NULL.
 * @cm_id: NULL if it has been destroyed, for DEVICE_REMOVAL.
 */
static void rpost_id_report(struct rpost_id *id, struct rpost_id *listener,
			    struct rdma_cm_id *cm_id,
			    const struct rdma_cm_event *cm_event)
{
	struct rpost_event *event;

	/* A lost event would leave its program waiting for ever. */
	event = kzalloc(sizeof(*event), RPOST_GFP_EVENT) ? :
		kzalloc(sizeof(*event), GFP_KERNEL | __GFP_NOFAIL);
	rpost_count(RPOST_COUNT_EVENT, 1);
	rpost_event_fill(event, cm_id, cm_event);
	event->id = id;
	event->event.id = id->obj.handle;
	event->event.listen_id = listener ? listener->obj.handle : 0;
	trace_rpost_event(&id->obj, &event->event);
	rpost_event_queue(event, listener);
}

static int rpost_id_take_event(struct rdma_cm_id *cm_id, struct rdma_cm_event *cm_event)
{
	struct rpost_id *listener, *id = cm_id->context;

	if (cm_event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		listener = id;
		id = rpost_id_accept_request(listener, cm_id);
		if (IS_ERR(id))
			return PTR_ERR(id);
		rpost_id_report(id, listener, cm_id, cm_event);
		return 0;
	}

	rpost_id_follow(id, cm_event->event);
	if (!id->unaccepted)
		rpost_id_report(id, NULL, cm_id, cm_event);
	if (cm_event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		queue_work(rpost_wq, &id->removal_work);
	return 0;
}

/*
 * cma calls this with its handler_mutex held, so that calls for one cm_id are
 * serialised.  It may sleep.  A non-zero result makes cma destroy the cm_id; only
 * a request that cannot be taken returns one, a negative errno.
 */
int rpost_id_handler(struct rdma_cm_id *cm_id, struct rdma_cm_event *cm_event)
{
	struct rpost_id *id = cm_id->context;
	struct mem_cgroup *old;
	int ret;

	if (cm_event->event >= ARRAY_SIZE(rpost_event_moves))
		return 0;
	old = set_active_memcg(id->obj.file->memcg);
	ret = rpost_id_take_event(cm_id, cm_event);
	set_active_memcg(old);
	if (cm_event->event == RDMA_CM_EVENT_ESTABLISHED && id->hung_up)
		rdma_disconnect(cm_id);
	return ret;
}

/* Return false if others have destroyed the cm_id, or are doing so. */
static bool rpost_id_destroy_cm_id(struct rpost_id *id)
{
	struct rdma_cm_id *cm_id;

	mutex_lock(&id->lock);
	cm_id = id->cm_id;
	id->cm_id = NULL;
	mutex_unlock(&id->lock);
	if (!cm_id)
		return false;
	/*
	 * rdma_destroy_id() waits for handlers, by a mutex that it frees.  addr_handler() may
	 * still be in its mutex_unlock() then, so wait for its work before.
	 */
	rdma_addr_cancel(&cm_id->route.addr.dev_addr);
	rdma_destroy_id(cm_id);
	rpost_route_end(id);
	return true;
}

static void rpost_id_removal_work(struct work_struct *work)
{
	struct rpost_id *id = container_of(work, struct rpost_id, removal_work);
	const struct rdma_cm_event event = {
		.event = RDMA_CM_EVENT_DEVICE_REMOVAL,
	};
	struct mem_cgroup *old;

	if (!rpost_id_destroy_cm_id(id))
		return;
	/* cma has told the id only if it still had its cm_id. */
	if (rpost_id_move(id, U32_MAX ^ BIT(RPOST_ID_REMOVED), RPOST_ID_REMOVED))
		return;
	old = set_active_memcg(id->obj.file->memcg);
	rpost_id_report(id, NULL, NULL, &event);
	set_active_memcg(old);
}

void rpost_join_drop(struct rpost_id *id, struct rpost_join *join)
{
	rpost_events_drop_join(id, join);
	id->num_joins--;
	rpost_charged_free(id->obj.file, join, RPOST_JOIN_BYTES);
}

/* Close the connection of an id, which has no queue pair.  Return 0. */
int rpost_id_shutdown(struct rpost_obj *obj)
{
	struct rpost_id *id = rpost_obj_as(id, obj);
	struct rpost_join *join, *next;

	/*
	 * After this nothing queues the work: the id is in no list, and cma has
	 * no cm_id to report.  If the work has taken the cm_id it still runs.
	 */
	rpost_id_destroy_cm_id(id);
	cancel_work_sync(&id->removal_work);
	rpost_id_name_qp(id, NULL, 0);
	rpost_events_drop(id);
	/* The cm_id was destroyed, and so has left the groups. */
	list_for_each_entry_safe(join, next, &id->joins, link)
		rpost_join_drop(id, join);
	return 0;
}

void rpost_id_free(struct rpost_obj *obj)
{
	struct rpost_id *id = rpost_obj_as(id, obj);

	rpost_fd_put(&id->channel->fd);
	kfree_rcu(id, obj.rcu);
}

void rpost_id_destroy_unpublished(struct rpost_id *id)
{
	rpost_id_shutdown(&id->obj);
	rpost_obj_unreserve(&id->obj);
	rpost_id_free(&id->obj);
}

static int rpost_create_id_validate(const struct rpost_create_id *cmd)
{
	u32 types;

	switch (cmd->port_space) {
	case RPOST_PS_TCP:
		types = BIT(RPOST_QPT_RC);
		break;
	case RPOST_PS_UDP:
	case RPOST_PS_IPOIB:
		types = BIT(RPOST_QPT_UD);
		break;
	case RPOST_PS_IB:
		types = BIT(RPOST_QPT_RC) | BIT(RPOST_QPT_UC) |
			BIT(RPOST_QPT_UD);
		break;
	default:
		return -EINVAL;
	}
	return cmd->qp_type <= RPOST_QPT_UD && (BIT(cmd->qp_type) & types) ?
		0 : -EINVAL;
}

int rpost_create_id_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_id *cmd = &ucmd->cmd.create_id;
	struct rpost_event_channel *channel;
	struct rdma_cm_id *cm_id;
	struct rpost_id *id;
	int ret;

	ret = rpost_create_id_validate(cmd);
	if (ret)
		return ret;
	channel = rpost_event_channel_get(ucmd->file, cmd->channel_fd);
	if (!channel)
		return -EBADF;
	id = rpost_id_alloc(ucmd->file, RPOST_GFP);
	if (IS_ERR(id)) {
		rpost_fd_put(&channel->fd);
		return PTR_ERR(id);
	}
	id->channel = channel;
	cm_id = __rdma_create_kernel_id(ucmd->file->net, rpost_id_handler, id,
					cmd->port_space, cmd->qp_type, ucmd->file->name);
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

/* Unlock an id, and drop a reference on it. */
void rpost_id_exit(struct rpost_id *id)
{
	mutex_unlock(&id->lock);
	rpost_obj_put(&id->obj);
}

/*
 * Call fn with the id locked, which has a cm_id.  Return what fn does, -ENOENT, or -ENODEV
 * if the cm_id has been destroyed.
 */
int rpost_id_run(struct rpost_file *file, u32 handle,
		 int (*fn)(struct rpost_id *id, void *arg), void *arg)
{
	struct rpost_id *id = rpost_id_get(file, handle);
	int ret;

	if (!id)
		return -ENOENT;
	mutex_lock(&id->lock);
	ret = id->cm_id ? fn(id, arg) : -ENODEV;
	rpost_id_exit(id);
	return ret;
}

/*
 * May a command cause one more event?  Resolving and WRITE_EVENT can be repeated without
 * end, and each time cause an event.  All other causes of events occur once, or drop their
 * events.  Return 0, or -ENOMEM while too many events have not been fetched.
 */
int rpost_id_check_events(const struct rpost_id *id)
{
	return READ_ONCE(id->num_events) < RPOST_MAX_EVENTS ? 0 : -ENOMEM;
}

/*
 * Check an address of len valid bytes from a program, and clear its padding.  Return 0,
 * -EINVAL for a bad length, or -EAFNOSUPPORT.
 */
int rpost_sockaddr(struct sockaddr_storage *addr, u32 len)
{
	u32 need;

	if (len < sizeof(addr->ss_family) || len > sizeof(*addr))
		return -EINVAL;
	switch (addr->ss_family) {
	case AF_INET:
		need = sizeof(struct sockaddr_in);
		break;
	case AF_INET6:
		need = sizeof(struct sockaddr_in6);
		break;
	case AF_IB:
		need = sizeof(struct sockaddr_ib);
		break;
	default:
		return -EAFNOSUPPORT;
	}
	if (len < need)
		return -EINVAL;
	memset((void *)addr + need, 0, sizeof(*addr) - need);
	if (addr->ss_family == AF_INET)
		memset(((struct sockaddr_in *)addr)->sin_zero, 0,
		       sizeof_field(struct sockaddr_in, sin_zero));
	return 0;
}

/*
 * Policies know the ports of rdma_cm's port spaces.  Return the port of an address of
 * InfiniBand, or -1 for a service id of another kind.
 */
static int rpost_sockaddr_ib_port(const struct sockaddr_ib *ib)
{
	u64 sid = be64_to_cpu(ib->sib_sid), space = sid & RDMA_IB_IP_PS_MASK;

	if (space != RDMA_IB_IP_PS_TCP && space != RDMA_IB_IP_PS_UDP &&
	    space != RDMA_IB_IP_PS_IB)
		return -1;
	return be64_to_cpu(ib->sib_sid_mask) == U64_MAX ? (int)(sid & U16_MAX) : -1;
}

/*
 * May the id, which is locked and in one of these states, use the device that cma has given
 * it?  Where the address is any, the loopback's, or of AF_IB, cma looks at the devices of all
 * network namespaces, and on RoCE takes no GID, which a path could then choose.  The
 * interface may also have lost the address, or have left the namespace.
 *
 * In none of the states does cma look for a device.  Return 0; -EINVAL in another state or
 * without a device; -ENODEV, or -EADDRNOTAVAIL.
 */
int rpost_id_check_device(const struct rpost_id *id, u32 states)
{
	const struct rdma_cm_id *cm_id = id->cm_id;
	enum rpost_id_state state = READ_ONCE(id->state);
	const struct ib_gid_attr *gid;

	if (state == RPOST_ID_REMOVED)
		return -ENODEV;
	if (!(BIT(state) & states) || !cm_id->device)
		return -EINVAL;
	gid = cm_id->route.addr.dev_addr.sgid_attr;
	if (!rdma_dev_access_netns(cm_id->device, id->obj.file->net) ||
	    (!gid && rdma_protocol_roce(cm_id->device, cm_id->port_num)))
		return -ENODEV;
	return rpost_gid_allowed(id->obj.file, gid) ? 0 : -EADDRNOTAVAIL;
}

/* May the program give an id a path, which leads wherever it says? */
int rpost_path_allowed(const struct rpost_id *id)
{
	return rpost_policy_allows(&id->obj.file->tenant, &(struct rpost_wish){
		.forbid = RPOST_FORBID_RAW, .port = -1, .anybody = true });
}

/* Do policies let the program listen on this address, or connect to it?  It may be none. */
int rpost_sockaddr_allowed(const struct rpost_file *file, const void *addr, bool listen)
{
	const struct sockaddr_in6 *in6 = addr;
	const struct sockaddr_in *in = addr;
	const struct sockaddr_ib *ib = addr;
	struct in6_addr peer = {};
	struct rpost_wish wish = {
		.forbid = listen ? RPOST_FORBID_LISTEN : 0,
		.peer = &peer, .port = -1, .listen = listen,
	};

	switch (in->sin_family) {
	case AF_INET:
		ipv6_addr_set_v4mapped(in->sin_addr.s_addr, &peer);
		wish.port = ntohs(in->sin_port);
		break;
	case AF_INET6:
		peer = in6->sin6_addr;
		wish.port = ntohs(in6->sin6_port);
		break;
	case AF_IB:
		memcpy(&peer, &ib->sib_addr, sizeof(peer));
		wish.port = rpost_sockaddr_ib_port(ib);
		break;
	}
	return rpost_policy_allows(&file->tenant, &wish);
}

static int rpost_bind_addr_locked(struct rpost_id *id, void *addr)
{
	int ret = rpost_id_move(id, BIT(RPOST_ID_IDLE), RPOST_ID_BOUND);

	if (ret)
		return ret;
	ret = rdma_bind_addr(id->cm_id, addr);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_BOUND), RPOST_ID_IDLE);
	return ret;
}

int rpost_bind_addr_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_bind_addr *cmd = &ucmd->cmd.bind_addr;

	return rpost_sockaddr(&cmd->addr, cmd->addr_len) ? :
	       rpost_id_run(ucmd->file, cmd->id, rpost_bind_addr_locked, &cmd->addr);
}

static int rpost_resolve_addr_locked(struct rpost_id *id, void *arg)
{
	struct rpost_resolve_addr *cmd = arg;
	enum rpost_id_state old;
	int ret;

	/* While the id is locked, only removal leaves these states. */
	old = READ_ONCE(id->state);
	ret = rpost_sockaddr_allowed(id->obj.file, &cmd->dst, false) ? :
	      rpost_id_check_events(id) ? :
	      rpost_id_move(id, BIT(RPOST_ID_IDLE) | BIT(RPOST_ID_BOUND), RPOST_ID_ADDR_QUERY);
	if (ret)
		return ret;
	ret = rdma_resolve_addr(id->cm_id, cmd->src_len ? (struct sockaddr *)&cmd->src : NULL,
				(struct sockaddr *)&cmd->dst, cmd->timeout_ms);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_ADDR_QUERY), old);
	return ret;
}

int rpost_resolve_addr_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_resolve_addr *cmd = &ucmd->cmd.resolve_addr;
	int ret;

	if (!cmd->timeout_ms || cmd->timeout_ms > RPOST_MAX_TIMEOUT_MS)
		return -EINVAL;
	if (cmd->src_len) {
		ret = rpost_sockaddr(&cmd->src, cmd->src_len);
		if (ret)
			return ret;
	}
	return rpost_sockaddr(&cmd->dst, cmd->dst_len) ? :
	       rpost_id_run(ucmd->file, cmd->id, rpost_resolve_addr_locked, cmd);
}

static void rpost_path_fill(struct rpost_path *to, struct sa_path_rec *from)
{
	struct sa_path_rec ib;

	if (from->rec_type == SA_PATH_REC_TYPE_OPA) {
		sa_convert_path_opa_to_ib(&ib, from);
		from = &ib;
	}
	*to = (struct rpost_path) {
		.dlid = htons(ntohl(sa_path_get_dlid(from))),
		.slid = htons(ntohl(sa_path_get_slid(from))),
		.flow_label = from->flow_label,
		.raw_traffic = sa_path_get_raw_traffic(from),
		.reversible = from->reversible,
		.pkey = from->pkey,
		.hop_limit = from->hop_limit,
		.traffic_class = from->traffic_class,
		.numb_path = from->numb_path,
		.sl = from->sl,
		.mtu_selector = from->mtu_selector,
		.mtu = from->mtu,
		.rate_selector = from->rate_selector,
		.rate = from->rate,
		.packet_life_time_selector = from->packet_life_time_selector,
		.packet_life_time = from->packet_life_time,
		.preference = from->preference,
	};
	memcpy(to->dgid, from->dgid.raw, sizeof(to->dgid));
	memcpy(to->sgid, from->sgid.raw, sizeof(to->sgid));
}

/* In earlier states cma may be writing the paths. */
#define RPOST_ID_HAS_PATHS						\
	(BIT(RPOST_ID_ROUTE_RESOLVED) | BIT(RPOST_ID_REQUEST) |		\
	 BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ACCEPTING) |		\
	 BIT(RPOST_ID_CONNECTED) | BIT(RPOST_ID_DISCONNECTED) |		\
	 BIT(RPOST_ID_ERROR))

static void rpost_query_id_paths(struct rpost_query_id *cmd, const struct rdma_route *route)
{
	int i;

	if (!(BIT(cmd->state) & RPOST_ID_HAS_PATHS) || !route->path_rec)
		return;
	cmd->num_paths = min_t(int, route->num_pri_alt_paths, ARRAY_SIZE(cmd->paths));
	for (i = 0; i < cmd->num_paths; i++)
		rpost_path_fill(&cmd->paths[i], &route->path_rec[i]);
	if (cmd->num_paths)
		cmd->path_mtu = route->path_rec->mtu;
}

static int rpost_query_id_locked(struct rpost_id *id, void *arg)
{
	struct rdma_cm_id *cm_id = id->cm_id;
	struct rdma_route *route = &cm_id->route;
	struct rpost_query_id *cmd = arg;
	int ret = 0;

	static_assert(sizeof(cmd->src) == sizeof(route->addr.src_addr));

	*cmd = (struct rpost_query_id) { .size = cmd->size, .id = cmd->id };

	/* Exclude cma's handlers, which write the route. */
	rdma_lock_handler(cm_id);
	cmd->state = READ_ONCE(id->state);
	memcpy(&cmd->src, &route->addr.src_addr, sizeof(cmd->src));
	/* In these states it has a family, but no address. */
	if (!(BIT(cmd->state) & (BIT(RPOST_ID_IDLE) | BIT(RPOST_ID_BOUND) | BIT(RPOST_ID_LISTEN))))
		memcpy(&cmd->dst, &route->addr.dst_addr, sizeof(cmd->dst));
	if (cm_id->device) {
		if (rdma_dev_access_netns(cm_id->device, id->obj.file->net))
			cmd->device = rpost_device_id(cm_id->device);
		ret = cmd->device ? 0 : -ENODEV;
		cmd->port_num = cm_id->port_num;
		cmd->pkey = cpu_to_be16(ib_addr_get_pkey(&route->addr.dev_addr));
		rdma_read_gids(cm_id, (union ib_gid *)cmd->sgid, (union ib_gid *)cmd->dgid);
	}
	rpost_query_id_paths(cmd, route);
	rdma_unlock_handler(cm_id);
	return ret;
}

int rpost_query_id_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_id *cmd = &ucmd->cmd.query_id;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	return rpost_id_run(ucmd->file, cmd->id, rpost_query_id_locked, cmd) ? :
	       rpost_respond(ucmd);
}

static int rpost_listen_locked(struct rpost_id *id, void *arg)
{
	const struct rpost_listen *cmd = arg;
	enum rpost_id_state old = READ_ONCE(id->state);
	u32 backlog = cmd->backlog;
	int ret;

	if (!backlog || backlog > RPOST_MAX_BACKLOG)
		backlog = RPOST_MAX_BACKLOG;
	ret = rpost_sockaddr_allowed(id->obj.file, &id->cm_id->route.addr.src_addr, true) ? :
	      rpost_id_move(id, BIT(RPOST_ID_IDLE) | BIT(RPOST_ID_BOUND), RPOST_ID_LISTEN);
	if (ret)
		return ret;
	atomic_set(&id->backlog, backlog);
	ret = rdma_listen(id->cm_id, backlog);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_LISTEN), old);
	return ret;
}

int rpost_listen_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_listen *cmd = &ucmd->cmd.listen;

	return rpost_id_run(ucmd->file, cmd->id, rpost_listen_locked, cmd);
}

int rpost_migrate_id_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_migrate_id *cmd = &ucmd->cmd.migrate_id;
	struct rpost_event_channel *channel;
	struct rpost_id *id;

	channel = rpost_event_channel_get(ucmd->file, cmd->channel_fd);
	if (!channel)
		return -EBADF;
	id = rpost_id_get(ucmd->file, cmd->id);
	if (!id) {
		rpost_fd_put(&channel->fd);
		return -ENOENT;
	}
	mutex_lock(&id->lock);
	rpost_events_migrate(id, channel);
	rpost_id_exit(id);
	return 0;
}
