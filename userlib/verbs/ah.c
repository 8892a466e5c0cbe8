// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Address handles, and multicast groups of queue pairs. */
#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

/* An IPv4 header without options, as in the last half of a struct ibv_grh. */
struct ip4_header {
	uint8_t version_ihl;
	uint8_t tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	uint8_t ttl;
	uint8_t protocol;
	__be16 check;
	__be32 saddr;
	__be32 daddr;
};

#define IP4_OFFSET	(sizeof(struct ibv_grh) - sizeof(struct ip4_header))
#define IP4_PLAIN	0x45	/* version 4, 5 words */

/* The next header of InfiniBand and RoCE v1; RoCE v2 has UDP. */
#define IB_GRH_NEXT_HDR	0x1b

void rpost_ah_attr_pack(struct rpost_ah_attr *to, const struct ibv_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	RPOST_AH_MEMBERS(RPOST_COPY)
	if (!from->is_global)
		return;
	to->is_global = 1;
	memcpy(to->dgid, from->grh.dgid.raw, sizeof(to->dgid));
	to->flow_label = from->grh.flow_label;
	to->sgid_index = from->grh.sgid_index;
	to->hop_limit = from->grh.hop_limit;
	to->traffic_class = from->grh.traffic_class;
}

void rpost_ah_attr_unpack(struct ibv_ah_attr *to, const struct rpost_ah_attr *from)
{
	memset(to, 0, sizeof(*to));
	RPOST_AH_MEMBERS(RPOST_COPY)
	to->is_global = from->is_global;
	memcpy(to->grh.dgid.raw, from->dgid, sizeof(from->dgid));
	to->grh.flow_label = from->flow_label;
	to->grh.sgid_index = from->sgid_index;
	to->grh.hop_limit = from->hop_limit;
	to->grh.traffic_class = from->traffic_class;
}

/* Fails with EBUSY while sends use the kernel's address handle. */
static int destroy(struct rpost_ah *ah)
{
	return rpost_destroy_handle(ah->ibv.context->cmd_fd, RPOST_OBJ_AH,
				    ah->ibv.handle);
}

void rpost_ah_reap(struct rpost_ctx *ctx)
{
	struct rpost_ah **pos, *ah;

	pthread_mutex_lock(&ctx->ah_lock);
	pos = &ctx->dead_ahs;
	while ((ah = *pos)) {
		if (destroy(ah) == EBUSY) {
			pos = &ah->next;
			continue;
		}
		*pos = ah->next;
		free(ah);
	}
	pthread_mutex_unlock(&ctx->ah_lock);
}

void rpost_ah_forget(struct rpost_ctx *ctx)
{
	struct rpost_ah *ah;

	rpost_ah_reap(ctx);
	while ((ah = ctx->dead_ahs)) {
		ctx->dead_ahs = ah->next;
		free(ah);
	}
}

/**
 * ibv_create_ah() - make an address handle, ibv_create_ah(3)
 * @pd: the protection domain
 * @attr: the address; its grh is ignored unless is_global is set
 *
 * Return: the address handle, to be released by ibv_destroy_ah(), or NULL with
 * errno: EINVAL for an invalid port, GID index or address, ENODEV, EMFILE,
 * ENOMEM.
 */
RPOST_API struct ibv_ah *ibv_create_ah(struct ibv_pd *pd,
				       struct ibv_ah_attr *attr)
{
	struct rpost_create_ah cmd = { .pd = pd->handle };
	struct rpost_ah *ah;
	int err;

	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;

	rpost_ah_reap(rpost_ctx(pd->context));
	rpost_ah_attr_pack(&cmd.attr, attr);
	err = rpost_ioctl(pd->context->cmd_fd, RPOST_IOC_CREATE_AH, &cmd);
	if (err) {
		free(ah);
		return rpost_null(err);
	}
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle = cmd.handle;
	ah->pd = pd->handle;
	rpost_made_add(pd->context, &ah->made, RPOST_OBJ_AH, &ah->ibv.handle);
	return &ah->ibv;
}

/**
 * ibv_destroy_ah() - release an address handle, ibv_create_ah(3)
 * @ah: the address handle; outstanding sends may still use it
 *
 * Return: 0 or an errno value.
 */
RPOST_API int ibv_destroy_ah(struct ibv_ah *ah)
{
	struct rpost_ctx *ctx = rpost_ctx(ah->context);
	int err;

	rpost_ah_reap(ctx);
	err = destroy(rpost_ah(ah));
	if (!err || err == EBUSY)
		rpost_made_del(ah->context, &rpost_ah(ah)->made);
	if (!err) {
		free(rpost_ah(ah));
	} else if (err == EBUSY) {
		pthread_mutex_lock(&ctx->ah_lock);
		rpost_ah(ah)->next = ctx->dead_ahs;
		ctx->dead_ahs = rpost_ah(ah);
		pthread_mutex_unlock(&ctx->ah_lock);
		err = 0;
	}
	return err;
}

static int create_and_destroy(struct rpost_ctx *ctx, struct rpost_create_ah *cmd)
{
	struct ibv_pd *pd = rpost_default_pd_get(ctx);
	int err;

	if (!pd)
		return errno;
	cmd->pd = pd->handle;
	err = rpost_ioctl(ctx->file->fd, RPOST_IOC_CREATE_AH, cmd);
	if (!err)
		rpost_destroy_handle(ctx->file->fd, RPOST_OBJ_AH, cmd->handle);
	rpost_default_pd_put(ctx);
	return err;
}

/**
 * ibv_resolve_eth_l2_from_gid() - find the link address of a GID
 * @context: of the device
 * @attr: the address
 * @eth_mac: set to the link address
 * @vid: set to the VLAN of the source's GID, or 0xffff; or NULL
 *
 * libibverbs asks rtnetlink.  Here the kernel tells where the datagrams of an
 * address handle go, which the call makes and destroys.
 *
 * Return: 0, or an errno value: EINVAL for an address that is not on Ethernet or
 * as ibv_create_ah(), EOPNOTSUPP.
 */
RPOST_API int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
					  struct ibv_ah_attr *attr,
					  uint8_t eth_mac[ETHERNET_LL_SIZE],
					  uint16_t *vid)
{
	struct rpost_create_ah cmd = {};
	struct ibv_port_attr port;
	int err;

	err = ibv_query_port(context, attr->port_num, &port);
	if (err)
		return err;
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return EINVAL;
	rpost_ah_attr_pack(&cmd.attr, attr);
	err = create_and_destroy(rpost_ctx(context), &cmd);
	if (err)
		return err;
	memcpy(eth_mac, cmd.dmac, ETHERNET_LL_SIZE);
	if (vid)
		*vid = cmd.vlan;
	return 0;
}

/* Returns the index of a GID, or -1; @types is a mask of bits RPOST_GID_*. */
static int gid_index(struct ibv_context *context, uint32_t port,
		     const union ibv_gid *gid, unsigned int types)
{
	struct rpost_gid table[32];
	struct rpost_query_gids cmd;
	uint32_t i, first = 0;
	int err;

	for (;;) {
		cmd = (struct rpost_query_gids) {
			.device = rpost_ctx(context)->dev->num,
			.port = port,
			.first = first,
			.count = ARRAY_SIZE(table),
			.gids = (uintptr_t)table,
		};
		err = rpost_ioctl(context->cmd_fd, RPOST_IOC_QUERY_GIDS, &cmd);
		if (err)
			return rpost_fail(err);
		for (i = 0; i < cmd.count; i++)
			if (types & 1U << table[i].type &&
			    !memcmp(table[i].gid, gid->raw, sizeof(gid->raw)))
				return (int)table[i].index;
		if (cmd.count < ARRAY_SIZE(table))
			return rpost_fail(ENOENT);
		first = table[cmd.count - 1].index + 1;
	}
}

static uint16_t ip4_checksum(const struct ip4_header *ip4)
{
	uint16_t words[sizeof(*ip4) / 2];
	uint32_t sum = 0;
	size_t i;

	memcpy(words, ip4, sizeof(words));
	for (i = 0; i < ARRAY_SIZE(words); i++)
		sum += words[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/*
 * With IPv4 the first 20 of the 40 bytes are undefined, and may look like the
 * start of a GRH.  In a GRH the last 20 bytes are mostly the destination GID,
 * which matches the checksum of an IPv4 header by chance only.
 */
static bool is_ip4(const struct ibv_grh *grh, const struct ip4_header *ip4)
{
	if (ip4->version_ihl != IP4_PLAIN)
		return false;
	return be32toh(grh->version_tclass_flow) >> 28 != 6 ||
	       ip4_checksum(ip4) == 0xffff;
}

static void map_ip4(union ibv_gid *gid, __be32 addr)
{
	memset(gid, 0, sizeof(*gid));
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, &addr, sizeof(addr));
}

static int route_by_ip4(struct ibv_context *context, uint8_t port_num,
			const struct ip4_header *ip4,
			struct ibv_global_route *route)
{
	union ibv_gid local;
	int index;

	map_ip4(&local, ip4->daddr);
	index = gid_index(context, port_num, &local, 1U << RPOST_GID_ROCE_V2);
	if (index < 0)
		return -1;
	route->sgid_index = (uint8_t)index;
	map_ip4(&route->dgid, ip4->saddr);
	route->hop_limit = ip4->ttl;
	route->traffic_class = ip4->tos;
	return 0;
}

static int route_by_grh(struct ibv_context *context, uint8_t port_num,
			const struct ibv_grh *grh,
			struct ibv_global_route *route)
{
	uint32_t flow = be32toh(grh->version_tclass_flow);
	unsigned int types;
	int index;

	if (flow >> 28 != 6)
		return rpost_fail(EPROTONOSUPPORT);
	if (grh->next_hdr == IB_GRH_NEXT_HDR)
		types = 1U << RPOST_GID_IB | 1U << RPOST_GID_ROCE_V1;
	else if (grh->next_hdr == IPPROTO_UDP)
		types = 1U << RPOST_GID_ROCE_V2;
	else
		return rpost_fail(EPROTONOSUPPORT);

	index = gid_index(context, port_num, &grh->dgid, types);
	if (index < 0)
		return -1;
	route->sgid_index = (uint8_t)index;
	route->dgid = grh->sgid;
	route->flow_label = flow & 0xfffff;
	route->traffic_class = flow >> 20 & 0xff;
	route->hop_limit = grh->hop_limit;
	return 0;
}

/**
 * ibv_init_ah_from_wc() - fill in the address of a datagram's sender,
 * ibv_create_ah_from_wc(3)
 * @context: of the device
 * @port_num: port, counted from 1
 * @wc: completion of the receive
 * @grh: the first 40 bytes of its buffer, ignored unless wc_flags has
 *       IBV_WC_GRH; with RoCE v2 over IPv4 the last 20 are the IPv4 header
 * @ah_attr: filled in
 *
 * Return: 0, or -1 with errno: ENOENT if the datagram's destination is not one
 * of the port's GIDs, as for multicast; EPROTONOSUPPORT for other headers;
 * EINVAL for a port that the device does not have.
 */
RPOST_API int ibv_init_ah_from_wc(struct ibv_context *context,
				  uint8_t port_num, struct ibv_wc *wc,
				  struct ibv_grh *grh,
				  struct ibv_ah_attr *ah_attr)
{
	struct ip4_header ip4;

	memset(ah_attr, 0, sizeof(*ah_attr));
	ah_attr->dlid = wc->slid;
	ah_attr->sl = wc->sl;
	ah_attr->src_path_bits = wc->dlid_path_bits;
	ah_attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;

	ah_attr->is_global = 1;
	memcpy(&ip4, (char *)grh + IP4_OFFSET, sizeof(ip4));
	if (is_ip4(grh, &ip4))
		return route_by_ip4(context, port_num, &ip4, &ah_attr->grh);
	return route_by_grh(context, port_num, grh, &ah_attr->grh);
}

/**
 * ibv_create_ah_from_wc() - make an address handle for a datagram's sender,
 * ibv_create_ah_from_wc(3)
 * @pd: the protection domain
 * @wc: completion of the receive
 * @grh: as for ibv_init_ah_from_wc()
 * @port_num: port, counted from 1
 *
 * Return: the address handle, to be released by ibv_destroy_ah(), or NULL with
 * errno as ibv_init_ah_from_wc() and ibv_create_ah().
 */
RPOST_API struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd,
					       struct ibv_wc *wc,
					       struct ibv_grh *grh,
					       uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* A group that a queue pair is attached to. */
struct rpost_group {
	union ibv_gid gid;
	uint16_t lid;
	struct rpost_group *next;
};

/* Returns the link to the group, or the end.  The caller holds ibv.mutex. */
static struct rpost_group **find_group(struct rpost_qp *qp,
				       const union ibv_gid *gid, uint16_t lid)
{
	struct rpost_group **pos = &qp->groups;

	while (*pos && ((*pos)->lid != lid ||
			memcmp(&(*pos)->gid, gid, sizeof(*gid))))
		pos = &(*pos)->next;
	return pos;
}

bool rpost_qp_has_groups(struct rpost_qp *qp)
{
	bool has;

	pthread_mutex_lock(&qp->ibv.mutex);
	has = qp->groups;
	pthread_mutex_unlock(&qp->ibv.mutex);
	return has;
}

void rpost_qp_forget_groups(struct rpost_qp *qp)
{
	struct rpost_group *group;

	while ((group = qp->groups)) {
		qp->groups = group->next;
		free(group);
	}
}

static int change_group(struct rpost_qp *qp, unsigned long ioc,
			const union ibv_gid *gid, uint16_t lid)
{
	struct rpost_attach_mcast cmd = { .qp = qp->ibv.handle, .lid = lid };

	memcpy(cmd.gid, gid->raw, sizeof(cmd.gid));
	return rpost_ioctl(qp->ibv.context->cmd_fd, ioc, &cmd);
}

/**
 * ibv_attach_mcast() - let a queue pair receive a group's datagrams,
 * ibv_attach_mcast(3)
 * @qp: a queue pair of IBV_QPT_UD
 * @gid: the group's GID
 * @lid: the group's local id, in host byte order
 *
 * rdma_join_multicast(3) joins the group itself.  To attach a group again
 * changes nothing.
 *
 * Return: 0, or an errno value: EINVAL for another type of queue pair or a GID
 * that is not a group's, ENOMEM.
 */
RPOST_API int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			       uint16_t lid)
{
	struct rpost_qp *rqp = rpost_qp(qp);
	struct rpost_group **pos, *group;
	int err = 0;

	group = calloc(1, sizeof(*group));
	if (!group)
		return ENOMEM;
	group->gid = *gid;
	group->lid = lid;

	pthread_mutex_lock(&qp->mutex);
	pos = find_group(rqp, gid, lid);
	if (!*pos) {
		err = change_group(rqp, RPOST_IOC_ATTACH_MCAST, gid, lid);
		if (!err) {
			*pos = group;
			group = NULL;
		}
	}
	pthread_mutex_unlock(&qp->mutex);
	free(group);
	return err;
}

/**
 * ibv_detach_mcast() - undo ibv_attach_mcast(3)
 * @qp: the queue pair
 * @gid: the group's GID
 * @lid: the group's local id
 *
 * Return: 0, or an errno value: EINVAL for a group that is not attached.
 */
RPOST_API int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid,
			       uint16_t lid)
{
	struct rpost_qp *rqp = rpost_qp(qp);
	struct rpost_group **pos, *group;
	int err;

	pthread_mutex_lock(&qp->mutex);
	err = change_group(rqp, RPOST_IOC_DETACH_MCAST, gid, lid);
	pos = find_group(rqp, gid, lid);
	group = *pos;
	if (!err && group) {
		*pos = group->next;
		free(group);
	}
	pthread_mutex_unlock(&qp->mutex);
	return err;
}
