/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connection ids and their events.
 */
#ifndef RPOST_ID_H
#define RPOST_ID_H

#include <rdma/rdma_cm.h>

#include "core/fd.h"

/* ------------------------------------------------------- event.c, cm.c */

/**
 * struct rpost_event_channel - event channel
 * @fd: its descriptor; each id that reports here has a reference, too
 * @events: struct rpost_event, oldest first; under event_lock of the open file
 * @link: in event_channels of the open file; under its event_lock
 */
struct rpost_event_channel {
	struct rpost_fd fd;
	struct list_head events;
	struct list_head link;
};

/**
 * struct rpost_event - an event that waits to be fetched
 * @link: in the channel's list, unless @fetching
 * @id_link: in the list of @id
 * @id: the id that reports it; for a request, the new id.  NULL if a fetcher
 *      has the event and the id was destroyed, or the group left.
 * @fetching: a fetcher is copying it to the program; no channel lists it
 * @join: the join that reported it, while the event is in the list of @id; or NULL
 * @event: the data for the program
 *
 * The event of a request owns the new id, which is not published yet: fetching
 * it publishes the id, dropping it destroys the id.  Nobody waits for an event
 * that is being fetched, since the copy may wait for the program's memory for
 * ever: destroying its id detaches it, and the fetcher frees it.
 *
 * The file's event_lock guards all fields.
 */
struct rpost_event {
	struct list_head link;
	struct list_head id_link;
	struct rpost_id *id;
	bool fetching;
	const struct rpost_join *join;
	struct rpost_get_event event;
};

/*
 * A multicast group that an id has joined, in the id's list, which has the order of cma's
 * own: newest first.
 */
struct rpost_join {
	struct list_head link;
	u64 user_data;
	struct sockaddr_storage addr;
};

/**
 * struct rpost_id - connection id
 * @obj: its handle
 * @lock: serialises commands on the id; guards @cm_id, @qp, @qp_num and @joins.
 *        Handlers must not take it, because commands wait for handlers with it
 *        held.
 * @cm_id: NULL once destroyed
 * @qp: its queue pair, or NULL
 * @qp_num: without @qp: the number that the last successful CONNECT or ACCEPT
 *          has named, or 0; DESTROY of that queue pair clears it; written under
 *          @lock and the lock of the file's handles
 * @qp_dev: the device of that queue pair, only to compare with
 * @by_qp_num: in @named of its file, unless @qp_num is 0
 * @state_lock: guards changes of @state
 * @state: changed by rpost_id_move() only; read without a lock
 * @own_path: the program has set the path; under @lock
 * @can_send: the queue pair has left the states that refuse sends
 * @responded: without @qp: the peer has answered and the program has not
 *             replied yet; under cma's handler_mutex
 * @hung_up: its queue pair went while the connection was being made, so the
 *           handler disconnects once it is established; under cma's
 *           handler_mutex
 * @unaccepted: the program has not accepted the request yet.  As in ucma, no
 *              events are reported for the id; if @state changes, ACCEPT fails.
 *              Under cma's handler_mutex
 * @channel: receives its events; under the file's event_lock
 * @listener: the listening id, until the request has been fetched; under the
 *            file's event_lock
 * @request_link: in @listener->requests; under the file's event_lock
 * @requests: ids of unfetched requests, oldest first; under the file's
 *            event_lock
 * @events: unfetched struct rpost_event, oldest first; under the file's
 *          event_lock
 * @num_events: how many @events the channel lists; written under the file's
 *              event_lock, read without it by rpost_id_check_events()
 * @backlog: requests that may still be queued (while listening)
 * @joins: struct rpost_join; read under @lock or the file's event_lock, written
 *         under both
 * @num_joins: length of @joins; under @lock
 * @route_dev: the device whose list @route_link is in, with a reference, from
 *             the first query for a route until @cm_id is destroyed; under @lock,
 *             and once @cm_id is NULL only its destroyer's
 * @route_link: in @route_dev->routes; under its routes_lock
 * @removal_work: destroys @cm_id when its device is removed; a handler must not
 *                destroy its own cm_id
 */
struct rpost_id {
	struct rpost_obj obj;
	struct mutex lock;
	struct rdma_cm_id *cm_id;
	struct rpost_qp *qp;
	u32 qp_num;
	struct ib_device *qp_dev;
	struct hlist_node by_qp_num;
	spinlock_t state_lock;
	enum rpost_id_state state;
	bool own_path;
	bool can_send;
	bool responded;
	bool hung_up;
	bool unaccepted;
	struct rpost_event_channel *channel;
	struct rpost_id *listener;
	struct list_head request_link;
	struct list_head requests;
	struct list_head events;
	unsigned int num_events;
	atomic_t backlog;
	struct list_head joins;
	unsigned int num_joins;
	struct rpost_device *route_dev;
	struct list_head route_link;
	struct work_struct removal_work;
};

RPOST_OBJ_GETTER(id, RPOST_OBJ_ID)

/*
 * Return true from ACCEPT, or on the active side from establishment, until disconnection.
 */
static inline bool rpost_id_connected(const struct rpost_id *id)
{
	enum rpost_id_state state = READ_ONCE(id->state);

	return state == RPOST_ID_CONNECTED || state == RPOST_ID_ACCEPTING;
}

/* The longest timeout of RESOLVE_ADDR and RESOLVE_ROUTE */
#define RPOST_MAX_TIMEOUT_MS	3600000

struct rpost_event_channel *rpost_event_channel_get(struct rpost_file *file, int nr);
void rpost_event_channels_wake(struct rpost_file *file);
void rpost_event_queue(struct rpost_event *event, struct rpost_id *listener);
void rpost_events_drop(struct rpost_id *id);
void rpost_events_drop_join(struct rpost_id *id, struct rpost_join *join);
void rpost_events_migrate(struct rpost_id *id, struct rpost_event_channel *to);

int rpost_id_move(struct rpost_id *id, u32 from, enum rpost_id_state to);
int rpost_id_handler(struct rdma_cm_id *cm_id, struct rdma_cm_event *cm_event);
int rpost_id_run(struct rpost_file *file, u32 handle,
		 int (*fn)(struct rpost_id *id, void *arg), void *arg);
void rpost_id_exit(struct rpost_id *id);
int rpost_id_check_events(const struct rpost_id *id);
int rpost_sockaddr(struct sockaddr_storage *addr, u32 len);
int rpost_id_check_device(const struct rpost_id *id, u32 states);
int rpost_path_allowed(const struct rpost_id *id);
int rpost_sockaddr_allowed(const struct rpost_file *file, const void *addr, bool listen);
int rpost_id_shutdown(struct rpost_obj *obj);
void rpost_id_free(struct rpost_obj *obj);
void rpost_id_destroy_unpublished(struct rpost_id *id);
void rpost_join_drop(struct rpost_id *id, struct rpost_join *join);

/* ------------------------------------------------------------ route.c */

void rpost_route_end(struct rpost_id *id);
void rpost_routes_device_gone(struct rpost_device *dev);

/* ---------------------------------------------------------- hang_up.c */

/*
 * States in which the program may reply to a response.  A neighbour's new
 * address moves the id to RPOST_ID_ERROR, but does not end the connection.
 */
#define RPOST_ID_MAY_REPLY	(BIT(RPOST_ID_CONNECTING) | BIT(RPOST_ID_ERROR))

void rpost_id_name_qp(struct rpost_id *id, struct ib_device *ib_dev, u32 qp_num);
void rpost_id_hang_up_locked(struct rpost_id *id);
void rpost_id_hang_up(struct rpost_id *id);
void rpost_ids_hang_up(struct rpost_file *file, struct ib_device *ib_dev, u32 qp_num);

#endif /* RPOST_ID_H */
