// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Versions of symbols that exist only so that the dynamic linker finds them.
 * The static library does not have them.
 *
 * IBVERBS_1.0 is for programs from before 2007, which use other structs; they
 * find no device.  IBVERBS_PRIVATE_N is the interface between libibverbs and its
 * providers: with them the dynamic linker can load libmlx5, libefa and so on for
 * programs that link them.  These providers find no device.  A release of
 * rdma-core has one of these nodes: 34 to 56 have 34, 57 and 58 have 57, 59 to
 * 63 have 59, 64 has 64, 65 has 65.  Here each node has every name of 44 to 65.
 *
 * Each symbol is an alias of one of four functions, which ignore their
 * arguments and fail in different ways, or of a flag.
 */
#include "internal.h"

RPOST_API int rpost_none_error(void);
RPOST_API int rpost_none_minus_one(void);
RPOST_API void *rpost_none_null(void);
RPOST_API long rpost_none_nothing(void);
RPOST_API extern bool rpost_none_flag;

int rpost_none_error(void)
{
	return ENOSYS;
}

int rpost_none_minus_one(void)
{
	return rpost_fail(ENOSYS);
}

void *rpost_none_null(void)
{
	return rpost_null(ENOSYS);
}

long rpost_none_nothing(void)
{
	return 0;
}

/* verbs_allow_disassociate_destroy, which providers read. */
bool rpost_none_flag;

#define VERSION_OF(symbol, name, version) \
	__asm__(".symver " #symbol ", " #name "@" version)

#define VERSION(how, name, version) \
	VERSION_OF(rpost_none_##how, name, version)

/* ------------------------------------------------------- IBVERBS_1.0 */

#define OLD(how, name) VERSION(how, name, "IBVERBS_1.0")

OLD(null, ibv_alloc_pd);
OLD(null, ibv_create_ah);
OLD(null, ibv_create_cq);
OLD(null, ibv_create_qp);
OLD(null, ibv_create_srq);
OLD(nothing, ibv_get_device_guid);
OLD(null, ibv_get_device_list);
OLD(null, ibv_get_device_name);
OLD(null, ibv_open_device);
OLD(null, ibv_reg_mr);
OLD(minus_one, ibv_close_device);
OLD(minus_one, ibv_get_async_event);
OLD(minus_one, ibv_get_cq_event);
OLD(minus_one, ibv_query_gid);
OLD(minus_one, ibv_query_pkey);
OLD(nothing, ibv_ack_async_event);
OLD(nothing, ibv_ack_cq_events);
OLD(nothing, ibv_free_device_list);
OLD(error, ibv_attach_mcast);
OLD(error, ibv_dealloc_pd);
OLD(error, ibv_dereg_mr);
OLD(error, ibv_destroy_ah);
OLD(error, ibv_destroy_cq);
OLD(error, ibv_destroy_qp);
OLD(error, ibv_destroy_srq);
OLD(error, ibv_detach_mcast);
OLD(error, ibv_modify_qp);
OLD(error, ibv_modify_srq);
OLD(error, ibv_query_device);
OLD(error, ibv_query_port);
OLD(error, ibv_query_qp);
OLD(error, ibv_query_srq);
OLD(error, ibv_resize_cq);

/* Before IBVERBS_PRIVATE, providers called it to register. */
VERSION(nothing, ibv_register_driver, "IBVERBS_1.1");

/* --------------------------------------------------- IBVERBS_PRIVATE */

#define PRIVATE_OF(symbol, name)				\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_34");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_57");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_59");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_64");		\
	VERSION_OF(symbol, name, "IBVERBS_PRIVATE_65")

#define PRIVATE(how, name) PRIVATE_OF(rpost_none_##how, name)

PRIVATE(flag, verbs_allow_disassociate_destroy);
PRIVATE(nothing, __ioctl_final_num_attrs);
PRIVATE(nothing, __verbs_log);
PRIVATE(null, _verbs_init_and_alloc_context);
PRIVATE(error, execute_ioctl);
PRIVATE(error, ibv_cmd_advise_mr);
PRIVATE(error, ibv_cmd_alloc_dm);
PRIVATE(error, ibv_cmd_alloc_dmah);
PRIVATE(error, ibv_cmd_alloc_mw);
PRIVATE(error, ibv_cmd_alloc_pd);
PRIVATE(error, ibv_cmd_attach_mcast);
PRIVATE(error, ibv_cmd_close_xrcd);
PRIVATE(error, ibv_cmd_create_ah);
PRIVATE(error, ibv_cmd_create_comp_cntr);
PRIVATE(error, ibv_cmd_create_counters);
PRIVATE(error, ibv_cmd_create_cq);
PRIVATE(error, ibv_cmd_create_cq_ex);
PRIVATE(error, ibv_cmd_create_cq_ex2);
PRIVATE(error, ibv_cmd_create_flow);
PRIVATE(error, ibv_cmd_create_flow_action_esp);
PRIVATE(error, ibv_cmd_create_qp);
PRIVATE(error, ibv_cmd_create_qp_ex);
PRIVATE(error, ibv_cmd_create_qp_ex2);
PRIVATE(error, ibv_cmd_create_rwq_ind_table);
PRIVATE(error, ibv_cmd_create_srq);
PRIVATE(error, ibv_cmd_create_srq_ex);
PRIVATE(error, ibv_cmd_create_wq);
PRIVATE(error, ibv_cmd_dealloc_mw);
PRIVATE(error, ibv_cmd_dealloc_pd);
PRIVATE(error, ibv_cmd_dereg_mr);
PRIVATE(error, ibv_cmd_destroy_ah);
PRIVATE(error, ibv_cmd_destroy_comp_cntr);
PRIVATE(error, ibv_cmd_destroy_counters);
PRIVATE(error, ibv_cmd_destroy_cq);
PRIVATE(error, ibv_cmd_destroy_flow);
PRIVATE(error, ibv_cmd_destroy_flow_action);
PRIVATE(error, ibv_cmd_destroy_qp);
PRIVATE(error, ibv_cmd_destroy_rwq_ind_table);
PRIVATE(error, ibv_cmd_destroy_srq);
PRIVATE(error, ibv_cmd_destroy_wq);
PRIVATE(error, ibv_cmd_detach_mcast);
PRIVATE(error, ibv_cmd_export_dmabuf_fd);
PRIVATE(error, ibv_cmd_free_dm);
PRIVATE(error, ibv_cmd_free_dmah);
PRIVATE(error, ibv_cmd_get_context);
PRIVATE(error, ibv_cmd_inc_comp_cntr);
PRIVATE(error, ibv_cmd_inc_err_comp_cntr);
PRIVATE(error, ibv_cmd_modify_cq);
PRIVATE(error, ibv_cmd_modify_flow_action_esp);
PRIVATE(error, ibv_cmd_modify_qp);
PRIVATE(error, ibv_cmd_modify_qp_ex);
PRIVATE(error, ibv_cmd_modify_srq);
PRIVATE(error, ibv_cmd_modify_wq);
PRIVATE(error, ibv_cmd_open_qp);
PRIVATE(error, ibv_cmd_open_xrcd);
PRIVATE(error, ibv_cmd_poll_cq);
PRIVATE(error, ibv_cmd_post_recv);
PRIVATE(error, ibv_cmd_post_send);
PRIVATE(error, ibv_cmd_post_srq_recv);
PRIVATE(error, ibv_cmd_qp_attach_comp_cntr);
PRIVATE(error, ibv_cmd_query_comp_cntr_caps);
PRIVATE(error, ibv_cmd_query_context);
PRIVATE(error, ibv_cmd_query_device_any);
PRIVATE(error, ibv_cmd_query_mr);
PRIVATE(error, ibv_cmd_query_port);
PRIVATE(error, ibv_cmd_query_port_speed);
PRIVATE(error, ibv_cmd_query_qp);
PRIVATE(error, ibv_cmd_query_srq);
PRIVATE(error, ibv_cmd_read_comp_cntr);
PRIVATE(error, ibv_cmd_read_counters);
PRIVATE(error, ibv_cmd_read_err_comp_cntr);
PRIVATE(error, ibv_cmd_reg_dm_mr);
PRIVATE(error, ibv_cmd_reg_dmabuf_mr);
PRIVATE(error, ibv_cmd_reg_mr);
PRIVATE(error, ibv_cmd_reg_mr_ex);
PRIVATE(error, ibv_cmd_req_notify_cq);
PRIVATE(error, ibv_cmd_rereg_mr);
PRIVATE(error, ibv_cmd_resize_cq);
PRIVATE(error, ibv_cmd_set_comp_cntr);
PRIVATE(error, ibv_cmd_set_err_comp_cntr);
PRIVATE(null, ibv_dmabuf_heap_alloc);
PRIVATE(null, ibv_dmabuf_heap_cc_shared_init);
PRIVATE(nothing, ibv_dmabuf_heap_destroy);
PRIVATE(nothing, ibv_dmabuf_heap_free);
PRIVATE(minus_one, ibv_read_ibdev_sysfs_file);
PRIVATE(nothing, verbs_init_cq);
PRIVATE(null, verbs_open_device);
VERSION(nothing, verbs_register_driver_34, "IBVERBS_PRIVATE_34");
VERSION(nothing, verbs_register_driver_57, "IBVERBS_PRIVATE_57");
VERSION(nothing, verbs_register_driver_59, "IBVERBS_PRIVATE_59");
VERSION(nothing, verbs_register_driver_64, "IBVERBS_PRIVATE_64");
VERSION(nothing, verbs_register_driver_65, "IBVERBS_PRIVATE_65");
PRIVATE(nothing, verbs_set_ops);
PRIVATE(nothing, verbs_uninit_context);

/*
 * Programs called it before it was private.  @type is an
 * enum ibv_gid_type_sysfs, in which InfiniBand and RoCE v1 are both 0.
 */
RPOST_API int rpost_query_gid_type(struct ibv_context *context,
				   uint8_t port_num, unsigned int index,
				   unsigned int *type);

int rpost_query_gid_type(struct ibv_context *context, uint8_t port_num,
			 unsigned int index, unsigned int *type)
{
	struct ibv_gid_entry entry;
	int err;

	err = ibv_query_gid_ex(context, port_num, index, &entry, 0);
	if (!err)
		*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return rpost_fail(err);
}

PRIVATE_OF(rpost_query_gid_type, ibv_query_gid_type);

/* The headers of version 56 declare it, so programs call it. */
RPOST_API const char *rpost_wr_opcode_str(enum ibv_wr_opcode opcode);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

const char *rpost_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	return ibv_wr_opcode_str(opcode);
}

PRIVATE_OF(rpost_wr_opcode_str, ibv_wr_opcode_str);
