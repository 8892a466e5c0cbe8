// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams: address handles, headers, multicast groups, and queue pair 1.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>

#include "rdmasim.h"

#define SIM_IB_QPN_MULTICAST	0xffffff

/* ------------------------------------------------- headers */

static bool sim_path_is_ipv4(const struct sim_path *path)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)&path->sgid);
}

/* Build the header that the receiver sees; IPv4 uses only its last 20 bytes. */
static void sim_header(union rdma_network_hdr *hdr, const struct sim_path *path,
		       u32 length)
{
	struct iphdr *ip = &hdr->roce4grh;

	memset(hdr, 0, sizeof(*hdr));
	/* Add the UDP header, the BTH, the DETH and the ICRC. */
	length += 8 + 12 + 8 + 4;
	if (!sim_path_is_ipv4(path)) {
		hdr->ibgrh.version_tclass_flow =
			cpu_to_be32(6u << 28 | path->traffic_class << 20);
		hdr->ibgrh.paylen = cpu_to_be16(length);
		hdr->ibgrh.next_hdr = IPPROTO_UDP;
		hdr->ibgrh.hop_limit = path->hop_limit;
		hdr->ibgrh.sgid = path->sgid;
		hdr->ibgrh.dgid = path->dgid;
		return;
	}
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = path->traffic_class;
	ip->tot_len = cpu_to_be16(sizeof(*ip) + length);
	ip->frag_off = htons(IP_DF);
	ip->ttl = path->hop_limit;
	ip->protocol = IPPROTO_UDP;
	memcpy(&ip->saddr, path->sgid.raw + 12, sizeof(ip->saddr));
	memcpy(&ip->daddr, path->dgid.raw + 12, sizeof(ip->daddr));
	ip_send_check(ip);
}

/* ------------------------------------------------- delivery */

static bool sim_qkey_fits(const struct sim_qp *qp, const struct sim_qp *peer,
			  u32 qkey)
{
	/* The high bit selects the Q_Key of the sender. */
	if (qkey & BIT(31))
		qkey = qp->attr.qkey;
	return peer->ibqp.qp_type == IB_QPT_GSI ? qkey == IB_QP1_QKEY :
						  qkey == peer->attr.qkey;
}

static void sim_deliver(struct sim_qp *qp, struct sim_qp *peer,
			const struct sim_swqe *wqe)
{
	const struct sim_path *path = &wqe->ud.path;
	struct ib_wc wc = {
		.opcode = IB_WC_RECV,
		.byte_len = SIM_GRH_BYTES + wqe->length,
		.src_qp = qp->ibqp.qp_num,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.network_hdr_type = sim_path_is_ipv4(path) ? RDMA_NETWORK_IPV4 :
							     RDMA_NETWORK_IPV6,
	};
	union rdma_network_hdr hdr;
	unsigned long flags;

	if (!sim_qkey_fits(qp, peer, wqe->ud.qkey))
		return;
	spin_lock_irqsave(&peer->datagram_lock, flags);
	if (sim_receive_begin(peer))
		goto out;
	if (wqe->opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = wqe->ex.imm;
	}
	sim_header(&hdr, path, wqe->length);
	qp->message.num = 0;
	sim_sg_add_kernel(&qp->message, &hdr, sizeof(hdr));
	memcpy(&qp->message.seg[1], qp->from.seg,
	       qp->from.num * sizeof(*qp->from.seg));
	qp->message.num += qp->from.num;

	if (sim_sg_add_local(&peer->to, sim_receive_pd(peer), peer->rwqe->sge,
			     peer->rwqe->num_sge, IB_ACCESS_LOCAL_WRITE))
		wc.status = IB_WC_LOC_PROT_ERR;
	else if (sim_sg_length(&peer->to) < wc.byte_len)
		wc.status = IB_WC_LOC_LEN_ERR;
	else
		sim_sg_copy(&peer->to, &qp->message);
	if (wc.status) {
		sim_qp_stop(peer);
		sim_qp_event(peer, IB_EVENT_QP_FATAL);
	}
	sim_receive_end(peer, &wc, wqe->flags & IB_SEND_SOLICITED);
out:
	spin_unlock_irqrestore(&peer->datagram_lock, flags);
}

/* ------------------------------------------------- receivers */

static bool sim_has_gid(struct sim_dev *dev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;

	attr = rdma_find_gid_by_port(&dev->ib_dev, gid,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, SIM_PORT, NULL);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

static struct sim_qp *sim_find_gsi(const union ib_gid *gid)
{
	struct sim_qp *qp = NULL;
	struct sim_dev *dev;
	unsigned long flags;

	spin_lock_irqsave(&sim_dev_lock, flags);
	list_for_each_entry(dev, &sim_devs, link) {
		if (!dev->gsi || !sim_has_gid(dev, gid))
			continue;
		qp = dev->gsi;
		refcount_inc(&qp->refs);
		break;
	}
	spin_unlock_irqrestore(&sim_dev_lock, flags);
	return qp;
}

static struct sim_qp *sim_find_peer(const struct sim_swqe *wqe)
{
	struct sim_qp *peer;

	if (wqe->ud.qpn == 1)
		return sim_find_gsi(&wqe->ud.path.dgid);
	peer = sim_qp_get(wqe->ud.qpn);
	if (!peer)
		return NULL;
	if (peer->ibqp.qp_type == IB_QPT_UD &&
	    sim_has_gid(peer->dev, &wqe->ud.path.dgid))
		return peer;
	sim_qp_put(peer);
	return NULL;
}

/* Hold the @index-th queue pair of a group, which may change between calls. */
static struct sim_qp *sim_mcast_get(struct sim_dev *dev, const union ib_gid *gid,
				    unsigned int index)
{
	struct sim_mcast *mcast;
	struct sim_qp *qp = NULL;
	unsigned long flags;

	spin_lock_irqsave(&dev->mcast_lock, flags);
	list_for_each_entry(mcast, &dev->mcasts, link) {
		if (memcmp(&mcast->gid, gid, sizeof(*gid)) || index--)
			continue;
		qp = mcast->qp;
		refcount_inc(&qp->refs);
		break;
	}
	spin_unlock_irqrestore(&dev->mcast_lock, flags);
	return qp;
}

/* Members of a group are on one network, that is, on one device. */
static void sim_multicast(struct sim_qp *qp, const struct sim_swqe *wqe)
{
	struct sim_qp *peer;
	unsigned int i;

	for (i = 0; ; i++) {
		peer = sim_mcast_get(qp->dev, &wqe->ud.path.dgid, i);
		if (!peer)
			return;
		sim_deliver(qp, peer, wqe);
		sim_qp_put(peer);
	}
}

/**
 * sim_datagram() - send a datagram
 * @qp: the sender; the data is in @qp->from
 * @wqe: the work request
 *
 * Return: the status.  The datagram is lost if its receiver does not exist or
 * is not ready.
 */
int sim_datagram(struct sim_qp *qp, const struct sim_swqe *wqe)
{
	struct sim_qp *peer;

	if (wqe->length > sim_port_mtu(qp->dev))
		return IB_WC_LOC_LEN_ERR;
	if (!sim_port_up(qp->dev))
		return IB_WC_SUCCESS;
	if (rdma_is_multicast_addr((struct in6_addr *)&wqe->ud.path.dgid)) {
		if (wqe->ud.qpn == SIM_IB_QPN_MULTICAST)
			sim_multicast(qp, wqe);
		return IB_WC_SUCCESS;
	}
	peer = sim_find_peer(wqe);
	if (peer) {
		if (sim_port_up(peer->dev))
			sim_deliver(qp, peer, wqe);
		sim_qp_put(peer);
	}
	return IB_WC_SUCCESS;
}

/* ------------------------------------------------- verbs */

static int sim_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct sim_qp *qp = to_sim_qp(ibqp);
	struct sim_mcast *mcast = kmalloc(sizeof(*mcast), GFP_KERNEL), *old;
	struct sim_dev *dev = qp->dev;

	if (!mcast)
		return -ENOMEM;
	mcast->gid = *gid;
	mcast->qp = qp;
	spin_lock_irq(&dev->mcast_lock);
	list_for_each_entry(old, &dev->mcasts, link) {
		if (old->qp == qp && !memcmp(&old->gid, gid, sizeof(*gid))) {
			kfree(mcast);
			mcast = NULL;
			break;
		}
	}
	if (mcast)
		list_add_tail(&mcast->link, &dev->mcasts);
	spin_unlock_irq(&dev->mcast_lock);
	return 0;
}

static bool sim_mcast_leave(struct sim_qp *qp, const union ib_gid *gid)
{
	struct sim_dev *dev = qp->dev;
	struct sim_mcast *mcast;
	bool found = false;

	spin_lock_irq(&dev->mcast_lock);
	list_for_each_entry(mcast, &dev->mcasts, link) {
		if (mcast->qp != qp ||
		    (gid && memcmp(&mcast->gid, gid, sizeof(*gid))))
			continue;
		list_del(&mcast->link);
		kfree(mcast);
		found = true;
		break;
	}
	spin_unlock_irq(&dev->mcast_lock);
	return found;
}

static int sim_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return sim_mcast_leave(to_sim_qp(ibqp), gid) ? 0 : -EINVAL;
}

/**
 * sim_mcast_leave_all() - take a queue pair out of all groups
 * @qp: the queue pair
 */
void sim_mcast_leave_all(struct sim_qp *qp)
{
	while (sim_mcast_leave(qp, NULL))
		;
}

static void sim_path_init(struct sim_path *path, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	path->sgid = grh->sgid_attr->gid;
	path->dgid = grh->dgid;
	path->hop_limit = grh->hop_limit;
	path->traffic_class = grh->traffic_class;
}

static int sim_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			 struct ib_udata *udata)
{
	struct sim_ah *ah = to_sim_ah(ibah);

	if (udata || !(rdma_ah_get_ah_flags(init->ah_attr) & IB_AH_GRH))
		return -EINVAL;
	ah->attr = *init->ah_attr;
	sim_path_init(&ah->path, init->ah_attr);
	return 0;
}

static int sim_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = to_sim_ah(ibah)->attr;
	return 0;
}

static int sim_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

const struct ib_device_ops sim_datagram_ops = {
	.attach_mcast = sim_attach_mcast,
	.create_ah = sim_create_ah,
	.create_user_ah = sim_create_ah,
	.destroy_ah = sim_destroy_ah,
	.detach_mcast = sim_detach_mcast,
	.query_ah = sim_query_ah,

	INIT_RDMA_OBJ_SIZE(ib_ah, sim_ah, ibah),
};
