// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of queue pairs: what programs change and ask for.
 */
#include "rpost.h"

/**
 * rpost_qp_attr_fill() - tell a program a queue pair's attributes
 * @to: the program's form; @to->attr_mask is left to the caller
 * @from: the kernel's form
 */
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
