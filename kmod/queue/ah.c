// SPDX-License-Identifier: GPL-2.0
/*
 * Address vectors and address handles.  See struct rpost_ah.
 */
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "memory/memory.h"
#include "queue/qp.h"

/* LIDs lead within an InfiniBand subnet, and name no address: only a peer ::/0 has them. */
static int rpost_ah_attr_allowed(const struct rpost_file *file, struct ib_device *ib_dev,
				 const struct rpost_ah_attr *attr)
{
	bool roce = rdma_protocol_roce(ib_dev, attr->port_num);
	struct in6_addr addr;
	struct rpost_wish wish = { .port = -1, .anybody = !roce };

	memcpy(&addr, attr->dgid, sizeof(addr));
	if (roce)
		wish.peer = &addr;
	if ((attr->is_global && rdma_is_multicast_addr(&addr)) ||
	    (!roce && attr->dlid >= be16_to_cpu(IB_MULTICAST_LID_BASE)))
		wish.forbid = RPOST_FORBID_MULTICAST;
	return rpost_policy_allows(&file->tenant, &wish);
}

/*
 * rdma_destroy_ah_attr() releases the GID of @to.  Return 0, -EOPNOTSUPP, -EINVAL or
 * -EPERM; after an error there is nothing to release.
 */
int rpost_ah_attr_build(const struct rpost_file *file,
			struct ib_device *ib_dev, struct rdma_ah_attr *to,
			const struct rpost_ah_attr *from)
{
	const struct ib_gid_attr *gid;
	union ib_gid dgid;
	u32 ifindex;
	int ret;

	if (memchr_inv(from->reserved, 0, sizeof(from->reserved)))
		return -EOPNOTSUPP;
	if (!rdma_is_port_valid(ib_dev, from->port_num) || from->is_global > 1)
		return -EINVAL;
	ret = rpost_ah_attr_allowed(file, ib_dev, from);
	if (ret)
		return ret;

	memset(to, 0, sizeof(*to));
	to->type = rdma_ah_find_type(ib_dev, from->port_num);
	rdma_ah_set_make_grd(to, false);
	rdma_ah_set_dlid(to, from->dlid);
	rdma_ah_set_sl(to, from->sl);
	rdma_ah_set_path_bits(to, from->src_path_bits);
	rdma_ah_set_static_rate(to, from->static_rate);
	rdma_ah_set_port_num(to, from->port_num);
	if (!from->is_global) {
		rdma_ah_set_ah_flags(to, 0);
		return 0;
	}
	gid = rpost_gid_get(file, ib_dev, from->port_num, from->sgid_index, &ifindex);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	memcpy(dgid.raw, from->dgid, sizeof(dgid));
	rdma_move_grh_sgid_attr(to, &dgid, from->flow_label, from->hop_limit,
				from->traffic_class, gid);
	return 0;
}

/*
 * Resolve the link address of a GID, and set it in @attr.  ib_pd is a domain on the
 * device.
 *
 * ib_modify_qp() expects kernel callers to have resolved it, but only
 * rdma_create_user_ah() exports the resolution.
 */
int rpost_ah_attr_resolve(struct ib_pd *ib_pd, struct rdma_ah_attr *attr)
{
	struct ib_ah *ib_ah;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE)
		return 0;
	ib_ah = rdma_create_user_ah(ib_pd, attr, NULL);
	if (IS_ERR(ib_ah))
		return PTR_ERR(ib_ah);
	rdma_destroy_ah(ib_ah, RDMA_DESTROY_AH_SLEEPABLE);
	return 0;
}

/* Return 0; or -EBUSY while sends on the device name the address handle. */
int rpost_ah_shutdown(struct rpost_obj *obj)
{
	struct rpost_ah *ah = rpost_obj_as(ah, obj);

	if (!ah->ib_ah)
		return 0;
	/* @pending cannot grow: lookups have ended, or queues are closed. */
	if (atomic_read(&ah->pending))
		return -EBUSY;
	rdma_destroy_ah(ah->ib_ah, RDMA_DESTROY_AH_SLEEPABLE);
	ah->ib_ah = NULL;
	return 0;
}

/* Posts cannot name it any more once its GID is not the file's. */
void rpost_ah_recheck(struct rpost_obj *obj)
{
	struct rpost_ah *ah = rpost_obj_as(ah, obj);

	if (ah->ib_ah && !rpost_gid_allowed(obj->file, ah->ib_ah->sgid_attr))
		WRITE_ONCE(ah->gone, true);
}

void rpost_ah_free(struct rpost_obj *obj)
{
	struct rpost_ah *ah = rpost_obj_as(ah, obj);

	rpost_obj_unuse(&ah->pd->obj);
	kfree_rcu(ah, obj.rcu);
}

static void rpost_ah_fill_link(struct rpost_create_ah *cmd, const struct rdma_ah_attr *attr)
{
	memset(cmd->dmac, 0, sizeof(cmd->dmac));
	cmd->vlan = 0xffff;
	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE)
		return;
	memcpy(cmd->dmac, attr->roce.dmac, sizeof(cmd->dmac));
	/* If the GID has been removed meanwhile, this leaves the field as it is. */
	rdma_read_gid_l2_fields(rdma_ah_read_grh(attr)->sgid_attr, &cmd->vlan, NULL);
}

int rpost_create_ah_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_create_ah *cmd = &ucmd->cmd.create_ah;
	struct rdma_ah_attr attr;
	struct rpost_pd *pd;
	struct rpost_ah *ah;
	int ret;

	pd = rpost_pd_use(ucmd, cmd->pd);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ret = rpost_ah_attr_build(ucmd->file, pd->obj.dev->ib_dev, &attr, &cmd->attr);
	if (ret)
		goto err_unuse;

	ret = -ENOMEM;
	ah = kzalloc(sizeof(*ah), RPOST_GFP);
	if (!ah)
		goto err_put_gid;
	ah->pd = pd;
	ret = rpost_obj_reserve(ucmd->file, &ah->obj, RPOST_OBJ_AH, pd->obj.dev, RPOST_GFP);
	if (ret)
		goto err_free;
	ah->ib_ah = rdma_create_user_ah(pd->ib_pd, &attr, NULL);
	ret = PTR_ERR_OR_ZERO(ah->ib_ah);
	if (ret)
		goto err_unreserve;

	cmd->handle = ah->obj.handle;
	rpost_ah_fill_link(cmd, &attr);
	rdma_destroy_ah_attr(&attr);
	return rpost_obj_answer(ucmd, &ah->obj);

err_unreserve:
	rpost_obj_unreserve(&ah->obj);
err_free:
	kfree(ah);
err_put_gid:
	rdma_destroy_ah_attr(&attr);
err_unuse:
	rpost_obj_unuse(&pd->obj);
	return ret;
}

/*
 * Compare groups by GID only: where LIDs mean nothing, a device attaches the
 * same GID with two LIDs once, but the core counts two and then cannot destroy
 * the queue pair.
 */
static struct rpost_mcast *rpost_mcast_find(struct rpost_qp *qp,
					    const struct rpost_attach_mcast *cmd)
{
	struct rpost_mcast *mcast;

	list_for_each_entry(mcast, &qp->mcasts, link) {
		if (!memcmp(mcast->gid.raw, cmd->gid, sizeof(cmd->gid)))
			return mcast;
	}
	return NULL;
}

/*
 * ib_attach_mcast() checks the LID for the port that the queue pair has then,
 * ib_detach_mcast() for a later one.  A LID valid on all ports can be detached.
 */
static bool rpost_mcast_lid_valid(struct ib_device *ib_dev, u32 lid)
{
	u32 port;

	rdma_for_each_port(ib_dev, port) {
		if (rdma_port_get_link_layer(ib_dev, port) != IB_LINK_LAYER_ETHERNET)
			return lid >= be16_to_cpu(IB_MULTICAST_LID_BASE) &&
			       lid != be16_to_cpu(IB_LID_PERMISSIVE);
	}
	return true;
}

static int rpost_mcast_attach(struct rpost_qp *qp, const struct rpost_attach_mcast *cmd)
{
	struct rpost_mcast *mcast;
	int ret;

	if (!rpost_mcast_lid_valid(qp->obj.dev->ib_dev, cmd->lid))
		return -EINVAL;
	if (rpost_mcast_find(qp, cmd))
		return 0;
	if (qp->num_mcasts >= RPOST_MAX_MCAST)
		return -ENOMEM;
	mcast = rpost_charged_zalloc(qp->obj.file, sizeof(*mcast), RPOST_MCAST_BYTES);
	if (!mcast)
		return -ENOMEM;
	mcast->lid = cmd->lid;
	memcpy(mcast->gid.raw, cmd->gid, sizeof(cmd->gid));
	ret = ib_attach_mcast(qp->ib_qp, &mcast->gid, mcast->lid);
	if (ret) {
		rpost_charged_free(qp->obj.file, mcast, RPOST_MCAST_BYTES);
		return ret;
	}
	list_add_tail(&mcast->link, &qp->mcasts);
	qp->num_mcasts++;
	return 0;
}

static int rpost_mcast_detach(struct rpost_qp *qp, struct rpost_mcast *mcast)
{
	int ret;

	ret = ib_detach_mcast(qp->ib_qp, &mcast->gid, mcast->lid);
	if (ret)
		return ret;
	list_del(&mcast->link);
	qp->num_mcasts--;
	rpost_charged_free(qp->obj.file, mcast, RPOST_MCAST_BYTES);
	return 0;
}

/* The queue pair is locked.  While it is attached, it cannot be destroyed. */
void rpost_qp_detach_mcasts(struct rpost_qp *qp)
{
	struct rpost_mcast *mcast, *next;

	list_for_each_entry_safe(mcast, next, &qp->mcasts, link)
		rpost_mcast_detach(qp, mcast);
}

static int rpost_mcast_change(struct rpost_ucmd *ucmd, bool attach)
{
	struct rpost_attach_mcast *cmd = &ucmd->cmd.attach_mcast;
	struct rpost_mcast *mcast;
	struct rpost_qp *qp;
	int ret;

	if (cmd->lid > U16_MAX)
		return -EINVAL;
	if (attach) {
		ret = rpost_policy_permits(&ucmd->file->tenant, RPOST_FORBID_MULTICAST);
		if (ret)
			return ret;
	}
	qp = rpost_qp_get(ucmd->file, cmd->qp);
	if (!qp)
		return -ENOENT;

	rpost_qp_lock(qp);
	if (!qp->ib_qp || (attach && qp->refused)) {
		ret = -ENODEV;
	} else if (attach) {
		ret = rpost_mcast_attach(qp, cmd);
	} else {
		mcast = rpost_mcast_find(qp, cmd);
		ret = mcast ? rpost_mcast_detach(qp, mcast) : -EINVAL;
	}
	rpost_qp_unlock(qp);

	rpost_obj_put(&qp->obj);
	return ret;
}

int rpost_attach_mcast_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_mcast_change(ucmd, true);
}

int rpost_detach_mcast_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_mcast_change(ucmd, false);
}

/*
 * The queue pair is for datagrams.  The send of @wqe has completed, was refused, or
 * is lost.
 */
void rpost_qp_release_ah(struct rpost_qp *qp, const struct rpost_wqe *wqe)
{
	u32 slot = wqe - qp->sq.wqes;

	if (qp->ahs[slot])
		atomic_dec(&qp->ahs[slot]->pending);
	qp->ahs[slot] = NULL;
}
