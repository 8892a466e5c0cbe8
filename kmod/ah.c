// SPDX-License-Identifier: GPL-2.0
/*
 * Addresses: address vectors and address handles.  See struct rpost_ah.
 */
#include <linux/slab.h>

#include "rpost.h"

/**
 * rpost_ah_attr_fill() - tell a program an address
 * @to: the program's form
 * @from: the kernel's form
 */
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

/**
 * rpost_ah_attr_build() - take an address from a program
 * @ib_dev: the device
 * @to: the kernel's form; its GID index is not checked yet
 * @from: the program's form
 *
 * Return: 0, -EOPNOTSUPP or -EINVAL.
 */
int rpost_ah_attr_build(struct ib_device *ib_dev, struct rdma_ah_attr *to,
			const struct rpost_ah_attr *from)
{
	if (memchr_inv(from->reserved, 0, sizeof(from->reserved)))
		return -EOPNOTSUPP;
	if (!rdma_is_port_valid(ib_dev, from->port_num) || from->is_global > 1)
		return -EINVAL;

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
	rdma_ah_set_grh(to, NULL, from->flow_label, from->sgid_index,
			from->hop_limit, from->traffic_class);
	rdma_ah_set_dgid_raw(to, (void *)from->dgid);
	return 0;
}
