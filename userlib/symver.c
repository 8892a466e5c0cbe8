// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Versions of symbols that exist only so that the dynamic linker finds them.
 * The static library does not have them.
 *
 * IBVERBS_1.0 is for programs from before 2007, which use other structs; they
 * find no device.  IBVERBS_PRIVATE_34 (rdma-core 34 to 56 in Debian 12 and 13)
 * and IBVERBS_PRIVATE_65 (unstable) are the interface between libibverbs and
 * its providers: with them the dynamic linker can load libmlx5, libefa and so
 * on for programs that link them.  These providers find no device.
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

#define VERSION(target, name, version) \
	__asm__(".symver rpost_none_" #target ", " #name "@" version)

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

#define ONLY_34(how, name) VERSION(how, name, "IBVERBS_PRIVATE_34")
#define ONLY_65(how, name) VERSION(how, name, "IBVERBS_PRIVATE_65")
#define BOTH(how, name) ONLY_34(how, name); ONLY_65(how, name)

BOTH(flag, verbs_allow_disassociate_destroy);
BOTH(nothing, __ioctl_final_num_attrs);
BOTH(nothing, __verbs_log);
BOTH(null, _verbs_init_and_alloc_context);
BOTH(error, execute_ioctl);
BOTH(error, ibv_cmd_advise_mr);
BOTH(error, ibv_cmd_alloc_dm);
ONLY_65(error, ibv_cmd_alloc_dmah);
BOTH(error, ibv_cmd_alloc_mw);
BOTH(error, ibv_cmd_alloc_pd);
BOTH(error, ibv_cmd_attach_mcast);
BOTH(error, ibv_cmd_close_xrcd);
BOTH(error, ibv_cmd_create_ah);
ONLY_65(error, ibv_cmd_create_comp_cntr);
BOTH(error, ibv_cmd_create_counters);
BOTH(error, ibv_cmd_create_cq);
BOTH(error, ibv_cmd_create_cq_ex);
BOTH(error, ibv_cmd_create_cq_ex2);
BOTH(error, ibv_cmd_create_flow);
BOTH(error, ibv_cmd_create_flow_action_esp);
BOTH(error, ibv_cmd_create_qp);
BOTH(error, ibv_cmd_create_qp_ex);
BOTH(error, ibv_cmd_create_qp_ex2);
BOTH(error, ibv_cmd_create_rwq_ind_table);
BOTH(error, ibv_cmd_create_srq);
BOTH(error, ibv_cmd_create_srq_ex);
BOTH(error, ibv_cmd_create_wq);
BOTH(error, ibv_cmd_dealloc_mw);
BOTH(error, ibv_cmd_dealloc_pd);
BOTH(error, ibv_cmd_dereg_mr);
BOTH(error, ibv_cmd_destroy_ah);
ONLY_65(error, ibv_cmd_destroy_comp_cntr);
BOTH(error, ibv_cmd_destroy_counters);
BOTH(error, ibv_cmd_destroy_cq);
BOTH(error, ibv_cmd_destroy_flow);
BOTH(error, ibv_cmd_destroy_flow_action);
BOTH(error, ibv_cmd_destroy_qp);
BOTH(error, ibv_cmd_destroy_rwq_ind_table);
BOTH(error, ibv_cmd_destroy_srq);
BOTH(error, ibv_cmd_destroy_wq);
BOTH(error, ibv_cmd_detach_mcast);
ONLY_65(error, ibv_cmd_export_dmabuf_fd);
BOTH(error, ibv_cmd_free_dm);
ONLY_65(error, ibv_cmd_free_dmah);
BOTH(error, ibv_cmd_get_context);
ONLY_65(error, ibv_cmd_inc_comp_cntr);
ONLY_65(error, ibv_cmd_inc_err_comp_cntr);
BOTH(error, ibv_cmd_modify_cq);
BOTH(error, ibv_cmd_modify_flow_action_esp);
BOTH(error, ibv_cmd_modify_qp);
BOTH(error, ibv_cmd_modify_qp_ex);
BOTH(error, ibv_cmd_modify_srq);
BOTH(error, ibv_cmd_modify_wq);
BOTH(error, ibv_cmd_open_qp);
BOTH(error, ibv_cmd_open_xrcd);
BOTH(error, ibv_cmd_poll_cq);
BOTH(error, ibv_cmd_post_recv);
BOTH(error, ibv_cmd_post_send);
BOTH(error, ibv_cmd_post_srq_recv);
ONLY_65(error, ibv_cmd_qp_attach_comp_cntr);
ONLY_65(error, ibv_cmd_query_comp_cntr_caps);
BOTH(error, ibv_cmd_query_context);
BOTH(error, ibv_cmd_query_device_any);
BOTH(error, ibv_cmd_query_mr);
BOTH(error, ibv_cmd_query_port);
ONLY_65(error, ibv_cmd_query_port_speed);
BOTH(error, ibv_cmd_query_qp);
BOTH(error, ibv_cmd_query_srq);
ONLY_65(error, ibv_cmd_read_comp_cntr);
BOTH(error, ibv_cmd_read_counters);
ONLY_65(error, ibv_cmd_read_err_comp_cntr);
BOTH(error, ibv_cmd_reg_dm_mr);
BOTH(error, ibv_cmd_reg_dmabuf_mr);
BOTH(error, ibv_cmd_reg_mr);
ONLY_65(error, ibv_cmd_reg_mr_ex);
BOTH(error, ibv_cmd_req_notify_cq);
BOTH(error, ibv_cmd_rereg_mr);
BOTH(error, ibv_cmd_resize_cq);
ONLY_65(error, ibv_cmd_set_comp_cntr);
ONLY_65(error, ibv_cmd_set_err_comp_cntr);
ONLY_65(null, ibv_dmabuf_heap_alloc);
ONLY_65(null, ibv_dmabuf_heap_cc_shared_init);
ONLY_65(nothing, ibv_dmabuf_heap_destroy);
ONLY_65(nothing, ibv_dmabuf_heap_free);
BOTH(minus_one, ibv_read_ibdev_sysfs_file);
BOTH(nothing, verbs_init_cq);
BOTH(null, verbs_open_device);
ONLY_34(nothing, verbs_register_driver_34);
ONLY_65(nothing, verbs_register_driver_65);
BOTH(nothing, verbs_set_ops);
BOTH(nothing, verbs_uninit_context);

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

#define QUERY_GID_TYPE(version) \
	__asm__(".symver rpost_query_gid_type, ibv_query_gid_type@" version)

QUERY_GID_TYPE("IBVERBS_PRIVATE_34");
QUERY_GID_TYPE("IBVERBS_PRIVATE_65");

/* The headers of version 56 declare it, so programs call it. */
RPOST_API const char *rpost_wr_opcode_str(enum ibv_wr_opcode opcode);
const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode);

const char *rpost_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	return ibv_wr_opcode_str(opcode);
}

#define WR_OPCODE_STR(version) \
	__asm__(".symver rpost_wr_opcode_str, ibv_wr_opcode_str@" version)

WR_OPCODE_STR("IBVERBS_PRIVATE_34");
WR_OPCODE_STR("IBVERBS_PRIVATE_65");
