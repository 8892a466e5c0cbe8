// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of connection ids.  See struct rpost_join.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <net/ipv6.h>
#include <rdma/ib.h>
#include <rdma/ib_sa.h>

#include "id/id.h"

/* For the unspecified address an InfiniBand subnet manager chooses a group. */
static bool rpost_is_group(const struct rdma_cm_id *cm_id, const struct sockaddr_storage *addr)
{
	const struct in6_addr *in6 = &((struct sockaddr_in6 *)addr)->sin6_addr;
	const struct ib_addr *ib = &((struct sockaddr_ib *)addr)->sib_addr;
	__be32 in = ((struct sockaddr_in *)addr)->sin_addr.s_addr;
	bool roce = rdma_protocol_roce(cm_id->device, cm_id->port_num);

	switch (addr->ss_family) {
	case AF_INET:
		return ipv4_is_multicast(in) || (!roce && !in);
	case AF_INET6:
		return ipv6_addr_is_multicast(in6) ||
		       (!roce && ipv6_addr_any(in6));
	default:
		return !roce && (ib->sib_addr8[0] == 0xff || ib_addr_any(ib));
	}
}

static int rpost_join_check(const struct rpost_id *id, const struct sockaddr_storage *addr)
{
	struct rdma_cm_id *cm_id = id->cm_id;
	int ret;

	/* cma would warn of an id with a queue pair that it knows. */
	if (cm_id->qp_type != IB_QPT_UD || cm_id->qp)
		return -EINVAL;
	ret = rpost_id_check_device(id, BIT(RPOST_ID_BOUND) | BIT(RPOST_ID_ADDR_RESOLVED));
	if (ret)
		return ret;
	if (!rdma_protocol_roce(cm_id->device, cm_id->port_num) &&
	    !rdma_cap_ib_mcast(cm_id->device, cm_id->port_num))
		return -EOPNOTSUPP;
	if (!rpost_is_group(cm_id, addr))
		return -EINVAL;
	return id->num_joins < RPOST_MAX_MCAST ? 0 : -ENOMEM;
}

static void rpost_join_add(struct rpost_id *id, struct rpost_join *join)
{
	struct rpost_file *file = id->obj.file;

	id->num_joins++;
	spin_lock(&file->event_lock);
	list_add(&join->link, &id->joins);
	spin_unlock(&file->event_lock);
}

static int rpost_join_locked(struct rpost_id *id, void *arg)
{
	const struct rpost_join_mcast *cmd = arg;
	u8 join_state = cmd->join_flags == RPOST_JOIN_SENDONLY ?
			BIT(SENDONLY_FULLMEMBER_JOIN) : BIT(FULLMEMBER_JOIN);
	struct rpost_join *join;
	int ret;

	ret = rpost_join_check(id, &cmd->addr);
	if (ret)
		return ret;
	join = rpost_charged_zalloc(id->obj.file, sizeof(*join), RPOST_JOIN_BYTES);
	if (!join)
		return -ENOMEM;
	join->addr = cmd->addr;
	join->user_data = cmd->user_data;
	/* Add it first: the event may come before the call returns. */
	rpost_join_add(id, join);
	ret = rdma_join_multicast(id->cm_id, (struct sockaddr *)&join->addr, join_state, join);
	if (ret)
		rpost_join_drop(id, join);
	/* cma returns ENOTSUPP, which programs do not know. */
	return ret == -ENOTSUPP ? -EOPNOTSUPP : ret;
}

int rpost_join_mcast_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_join_mcast *cmd = &ucmd->cmd.join_mcast;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (cmd->join_flags > RPOST_JOIN_SENDONLY)
		return -EINVAL;
	return rpost_policy_permits(&ucmd->file->tenant, RPOST_FORBID_MULTICAST) ? :
	       rpost_sockaddr(&cmd->addr, cmd->addr_len) ? :
	       rpost_id_run(ucmd->file, cmd->id, rpost_join_locked, cmd);
}

static int rpost_leave_locked(struct rpost_id *id, void *arg)
{
	struct sockaddr_storage *addr = arg;
	struct rpost_join *join;

	/* cma finds the same join: its list has the same order. */
	list_for_each_entry(join, &id->joins, link) {
		if (memcmp(&join->addr, addr, sizeof(*addr)))
			continue;
		/* This waits for the handler. */
		rdma_leave_multicast(id->cm_id, (struct sockaddr *)&join->addr);
		rpost_join_drop(id, join);
		return 0;
	}
	return -ENOENT;
}

int rpost_leave_mcast_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_leave_mcast *cmd = &ucmd->cmd.leave_mcast;

	return rpost_sockaddr(&cmd->addr, cmd->addr_len) ? :
	       rpost_id_run(ucmd->file, cmd->id, rpost_leave_locked, &cmd->addr);
}
