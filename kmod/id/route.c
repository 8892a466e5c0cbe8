// SPDX-License-Identifier: GPL-2.0
/*
 * Queries for routes, and how the removal of a device ends them.
 *
 * Once cma has reported a removal to an id that queries a route, it looks at the
 * id's device (cma_cancel_route()).  If the id is being destroyed at that time,
 * the pointer is NULL, and the kernel crashes.  So no id may query a route when
 * cma learns of the removal: the module, which learns of it before cma does,
 * destroys such ids, and waits for those that their programs are destroying.
 */
#include <rdma/rdma_cm.h>

#include "core/device.h"
#include "id/id.h"

/*
 * List the id with its device, which waits for it from now on.  The caller holds
 * the id's lock, and has set RPOST_ID_ROUTE_QUERY: rpost_routes_device_gone()
 * sees either that state or no id.
 */
static int rpost_route_begin(struct rpost_id *id)
{
	struct rpost_device *dev = id->route_dev;
	int ret = -ENODEV;

	if (!dev)
		dev = rpost_device_of(id->cm_id->device);
	if (!dev)
		return ret;
	id->route_dev = dev;
	mutex_lock(&dev->routes_lock);
	if (rpost_device_alive(dev)) {
		list_move(&id->route_link, &dev->routes);
		ret = 0;
	}
	mutex_unlock(&dev->routes_lock);
	return ret;
}

/* Take an id, whose cm_id the caller has destroyed, from its device's list. */
void rpost_route_end(struct rpost_id *id)
{
	struct rpost_device *dev = id->route_dev;

	if (!dev)
		return;
	mutex_lock(&dev->routes_lock);
	list_del_init(&id->route_link);
	mutex_unlock(&dev->routes_lock);
	wake_up(&dev->routes_wait);
	id->route_dev = NULL;
	rpost_device_put(dev);
}

/* End all queries for routes.  The device is dead; cma has not heard of its removal. */
void rpost_routes_device_gone(struct rpost_device *dev)
{
	struct rpost_id *id, *next;

	mutex_lock(&dev->routes_lock);
	list_for_each_entry_safe(id, next, &dev->routes, route_link) {
		if (READ_ONCE(id->state) == RPOST_ID_ROUTE_QUERY)
			queue_work(rpost_wq, &id->removal_work);
		else
			list_del_init(&id->route_link);
	}
	mutex_unlock(&dev->routes_lock);
	wait_event(dev->routes_wait, list_empty_careful(&dev->routes));
}

static int rpost_resolve_route_locked(struct rpost_id *id, void *arg)
{
	const struct rpost_resolve_route *cmd = arg;
	int ret;

	ret = rpost_id_check_events(id) ? :
	      rpost_id_move(id, BIT(RPOST_ID_ADDR_RESOLVED), RPOST_ID_ROUTE_QUERY);
	if (ret)
		return ret;
	ret = rpost_id_check_device(id, BIT(RPOST_ID_ROUTE_QUERY)) ? :
	      rpost_route_begin(id) ? :
	      rdma_resolve_route(id->cm_id, cmd->timeout_ms);
	if (ret)
		rpost_id_move(id, BIT(RPOST_ID_ROUTE_QUERY), RPOST_ID_ADDR_RESOLVED);
	return ret;
}

int rpost_resolve_route_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_resolve_route *cmd = &ucmd->cmd.resolve_route;

	if (!cmd->timeout_ms || cmd->timeout_ms > RPOST_MAX_TIMEOUT_MS)
		return -EINVAL;
	return rpost_id_run(ucmd->file, cmd->id, rpost_resolve_route_locked, cmd);
}
