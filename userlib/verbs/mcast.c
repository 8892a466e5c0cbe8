// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Multicast groups that connection ids join. */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/*
 * One join.  The kernel's events name it by a number instead of its address: a
 * thread that has fetched an event may look it up after the join was freed.
 */
struct rpost_mc {
	uint64_t number;
	void *context;
	struct sockaddr_storage addr;
	bool send_only;
	bool attached;			/* id->qp, to mgid and mlid */
	union ibv_gid mgid;
	uint16_t mlid;
	unsigned int unacked;		/* events; under the id's lock */
	struct rpost_mc *next;
};

static void mc_add(struct rpost_id *priv, struct rpost_mc *mc)
{
	pthread_mutex_lock(&priv->lock);
	mc->next = priv->groups;
	priv->groups = mc;
	pthread_mutex_unlock(&priv->lock);
}

/* Removes @mc from the list, or the group with this address if @mc is NULL. */
static struct rpost_mc *mc_remove(struct rpost_id *priv,
				  const struct sockaddr *addr, socklen_t len,
				  const struct rpost_mc *mc)
{
	struct rpost_mc **pos, *found;

	pthread_mutex_lock(&priv->lock);
	for (pos = &priv->groups; *pos; pos = &(*pos)->next)
		if (mc ? *pos == mc : !memcmp(&(*pos)->addr, addr, len))
			break;
	found = *pos;
	if (found)
		*pos = found->next;
	pthread_mutex_unlock(&priv->lock);
	return found;
}

static void detach(struct rpost_id *priv, struct rpost_mc *mc)
{
	/* Fails if the id has another queue pair by now; that does no harm. */
	if (mc->attached && priv->id.qp)
		ibv_detach_mcast(priv->id.qp, &mc->mgid, mc->mlid);
}

static int join(struct rpost_id *priv, const struct sockaddr *addr,
		uint32_t join_flags, void *context)
{
	static atomic_ullong numbers;
	struct rpost_join_mcast cmd = {
		.id = rpost_id_handle(priv),
		.join_flags = join_flags,
		.addr_len = addr ? rpost_addr_len(addr) : 0,
	};
	struct rpost_mc *mc;
	int err;

	if (!cmd.addr_len)
		return EINVAL;
	mc = calloc(1, sizeof(*mc));
	if (!mc)
		return ENOMEM;
	mc->number = atomic_fetch_add(&numbers, 1) + 1;
	mc->context = context;
	mc->send_only = join_flags == RPOST_JOIN_SENDONLY;
	memcpy(&mc->addr, addr, cmd.addr_len);
	memcpy(&cmd.addr, addr, cmd.addr_len);
	cmd.user_data = mc->number;

	/* The event may come before the call returns. */
	mc_add(priv, mc);
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_JOIN_MCAST, &cmd);
	if (err)
		free(mc_remove(priv, NULL, 0, mc));
	return err;
}

/**
 * rdma_join_multicast_ex() - join a multicast group, rdma_join_multicast_ex(3)
 * @id: an id for datagrams, bound to a device
 * @mc_join_attr: the group's address and how to join it; comp_mask must name
 *                both
 * @context: handed back in the event's param.ud.private_data
 *
 * Results in RDMA_CM_EVENT_MULTICAST_JOIN, which has the address for sends, or
 * RDMA_CM_EVENT_MULTICAST_ERROR.  Fetching the event attaches the id's queue
 * pair to the group, if it has one and the join is not for sending only.
 *
 * Return: 0, or -1 with errno: EINVAL for another kind or state of id or an
 * address that is not a group's, EOPNOTSUPP for unknown flags and bits of
 * comp_mask, and for a device or a module without multicast; ENOMEM for too
 * many groups; in synchronous operation the error of the event.
 */
RPOST_API int rdma_join_multicast_ex(struct rdma_cm_id *id,
				     struct rdma_cm_join_mc_attr_ex *mc_join_attr,
				     void *context)
{
	struct rpost_id *priv = rpost_id(id);
	int err;

	if (mc_join_attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED)
		return rpost_fail(EOPNOTSUPP);
	if (!(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
	    !(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS))
		return rpost_fail(EINVAL);
	if (mc_join_attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return rpost_fail(EOPNOTSUPP);

	err = join(priv, mc_join_attr->addr, mc_join_attr->join_flags, context);
	if (err)
		return rpost_fail(err);
	return rpost_id_complete(priv);
}

/**
 * rdma_join_multicast() - join a multicast group, rdma_join_multicast(3)
 * @id: as for rdma_join_multicast_ex()
 * @addr: the group
 * @context: as for rdma_join_multicast_ex()
 *
 * Return: as rdma_join_multicast_ex().
 */
RPOST_API int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
				  void *context)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
			     RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = addr,
	};

	return rdma_join_multicast_ex(id, &attr, context);
}

/**
 * rdma_leave_multicast() - leave a multicast group, rdma_leave_multicast(3)
 * @id: the id
 * @addr: the group, as it was joined
 *
 * Detaches the id's queue pair.  Waits until the program has acknowledged the
 * events of the join that it has fetched, and drops the others.
 *
 * Return: 0, or -1 with errno: EINVAL for an address of an unknown family,
 * EADDRNOTAVAIL for a group that the id has not joined, ENODEV.
 */
RPOST_API int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct rpost_id *priv = rpost_id(id);
	struct rpost_leave_mcast cmd = {
		.id = rpost_id_handle(priv),
		.addr_len = addr ? rpost_addr_len(addr) : 0,
	};
	struct rpost_mc *mc;
	int err;

	if (!cmd.addr_len)
		return rpost_fail(EINVAL);
	mc = mc_remove(priv, addr, cmd.addr_len, NULL);
	if (!mc)
		return rpost_fail(EADDRNOTAVAIL);

	detach(priv, mc);
	memcpy(&cmd.addr, addr, cmd.addr_len);
	err = rpost_ioctl(priv->file->fd, RPOST_IOC_LEAVE_MCAST, &cmd);
	/* A failed join leaves no group in the kernel. */
	if (err == ENOENT)
		err = 0;
	rpost_id_drop_event(priv);
	rpost_id_wait_acks(priv, &mc->unacked);
	free(mc);
	return rpost_fail(err);
}

static struct rpost_mc *mc_find(struct rpost_id *priv, uint64_t number)
{
	struct rpost_mc *mc = priv->groups;

	while (mc && mc->number != number)
		mc = mc->next;
	return mc;
}

static void attach(struct rpost_event *evt, struct rpost_mc *mc)
{
	struct rdma_ud_param *ud = &evt->event.param.ud;
	struct ibv_qp *qp = evt->owner->id.qp;
	int err;

	mc->mgid = ud->ah_attr.grh.dgid;
	mc->mlid = ud->ah_attr.dlid;
	if (!qp || mc->send_only)
		return;
	err = ibv_attach_mcast(qp, &mc->mgid, mc->mlid);
	if (err) {
		evt->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		evt->event.status = -err;
	}
	mc->attached = !err;
}

bool rpost_mc_event(struct rpost_event *evt, uint64_t number)
{
	struct rpost_id *priv = evt->owner;
	struct rpost_mc *mc;

	pthread_mutex_lock(&priv->lock);
	mc = mc_find(priv, number);
	if (mc) {
		mc->unacked++;
		evt->mc = mc;
		evt->event.param.ud.private_data = mc->context;
		/* With the lock, so that detach() after mc_remove() sees it. */
		if (evt->event.event == RDMA_CM_EVENT_MULTICAST_JOIN)
			attach(evt, mc);
	}
	pthread_mutex_unlock(&priv->lock);
	return mc;
}

void rpost_mc_acked(struct rpost_id *priv, struct rpost_mc *mc)
{
	if (!--mc->unacked)
		pthread_cond_broadcast(&priv->acked);
}

void rpost_mc_free_all(struct rpost_id *priv)
{
	struct rpost_mc *mc;

	while ((mc = priv->groups)) {
		priv->groups = mc->next;
		free(mc);
	}
}
