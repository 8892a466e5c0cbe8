// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of addresses and queue pairs, as programs get them.
 */
#include "core/device.h"

void rpost_ah_attr_fill(struct rpost_ah_attr *to,
			const struct rdma_ah_attr *from)
{
	const struct ib_global_route *grh;

	*to = (struct rpost_ah_attr) {
		.dlid = rdma_ah_get_dlid(from),
		.sl = rdma_ah_get_sl(from),
		.src_path_bits = rdma_ah_get_path_bits(from),
		.static_rate = rdma_ah_get_static_rate(from),
		.port_num = rdma_ah_get_port_num(from),
	};
	if (!(rdma_ah_get_ah_flags(from) & IB_AH_GRH))
		return;
	grh = rdma_ah_read_grh(from);
	to->is_global = 1;
	memcpy(to->dgid, grh->dgid.raw, sizeof(to->dgid));
	to->flow_label = grh->flow_label;
	to->sgid_index = grh->sgid_index;
	to->hop_limit = grh->hop_limit;
	to->traffic_class = grh->traffic_class;
}

/* Convert attributes for a program.  to->attr_mask is left to the caller. */
void rpost_qp_attr_fill(struct rpost_qp_attr *to,
			const struct ib_qp_attr *from)
{
	*to = (struct rpost_qp_attr) {
		.attr_mask = to->attr_mask,
		.qp_state = from->qp_state,
		.cur_qp_state = from->cur_qp_state,
		.path_mtu = from->path_mtu,
		.path_mig_state = from->path_mig_state,
		.qkey = from->qkey,
		.rq_psn = from->rq_psn,
		.sq_psn = from->sq_psn,
		.dest_qp_num = from->dest_qp_num,
		.access = from->qp_access_flags,
		.rate_limit = from->rate_limit,
		.pkey_index = from->pkey_index,
		.alt_pkey_index = from->alt_pkey_index,
		.en_sqd_async_notify = from->en_sqd_async_notify,
		.sq_draining = from->sq_draining,
		.max_rd_atomic = from->max_rd_atomic,
		.max_dest_rd_atomic = from->max_dest_rd_atomic,
		.min_rnr_timer = from->min_rnr_timer,
		.port_num = from->port_num,
		.timeout = from->timeout,
		.retry_cnt = from->retry_cnt,
		.rnr_retry = from->rnr_retry,
		.alt_port_num = from->alt_port_num,
		.alt_timeout = from->alt_timeout,
	};
	rpost_ah_attr_fill(&to->ah, &from->ah_attr);
	rpost_ah_attr_fill(&to->alt_ah, &from->alt_ah_attr);
}
