// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two workers of UCX in one process, for buffers.c. UCX_TLS says how they connect. */
#include <ucp/api/ucp.h>

#include "buffers.h"

#define OK(call)	TRUE((call) == UCS_OK)

static ucp_context_h context;
static ucp_worker_h worker[2];
static ucp_ep_h ep;
static ucp_mem_h target_mem;
static ucp_rkey_h rkey;
static unsigned char *target;

static void finish(ucs_status_ptr_t request)
{
	ucs_status_t status;

	TRUE(!UCS_PTR_IS_ERR(request));
	if (!request)
		return;
	do {
		ucp_worker_progress(worker[0]);
		ucp_worker_progress(worker[1]);
		status = ucp_request_check_status(request);
	} while (status == UCS_INPROGRESS);
	ucp_request_free(request);
	OK(status);
}

void open_ends(const char *addr, const char *port, void *memory)
{
	ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_RMA | UCP_FEATURE_TAG,
	};
	ucp_worker_params_t worker_params = { .field_mask = 0 };
	ucp_mem_map_params_t map_params = {
		.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
			      UCP_MEM_MAP_PARAM_FIELD_LENGTH,
		.address = memory,
		.length = LENGTH,
	};
	ucp_ep_params_t ep_params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_address_t *address;
	ucp_config_t *config;
	size_t size;
	void *packed;

	(void)addr;
	(void)port;
	target = memory;
	OK(ucp_config_read(NULL, NULL, &config));
	OK(ucp_init(&params, config, &context));
	ucp_config_release(config);
	for (int i = 0; i < 2; i++)
		OK(ucp_worker_create(context, &worker_params, &worker[i]));
	OK(ucp_worker_get_address(worker[1], &address, &size));
	ep_params.address = address;
	OK(ucp_ep_create(worker[0], &ep_params, &ep));
	ucp_worker_release_address(worker[1], address);
	OK(ucp_mem_map(context, &map_params, &target_mem));
	OK(ucp_rkey_pack(context, target_mem, &packed, &size));
	OK(ucp_ep_rkey_unpack(ep, packed, &rkey));
	ucp_rkey_buffer_release(packed);
}

void transfer(bool put, void *buf)
{
	ucp_request_param_t param = { .op_attr_mask = 0 };
	ucs_status_ptr_t arrived = NULL;

	if (put) {
		finish(ucp_put_nbx(ep, buf, LENGTH, (uintptr_t)target, rkey, &param));
	} else {
		arrived = ucp_tag_recv_nbx(worker[1], target, LENGTH, 1, -1, &param);
		finish(ucp_tag_send_nbx(ep, buf, LENGTH, 1, &param));
		finish(arrived);
	}
	finish(ucp_ep_flush_nbx(ep, &param));
}

void close_ends(void)
{
	ucp_request_param_t param = { .op_attr_mask = 0 };

	ucp_rkey_destroy(rkey);
	OK(ucp_mem_unmap(context, target_mem));
	finish(ucp_ep_close_nbx(ep, &param));
	ucp_worker_destroy(worker[0]);
	ucp_worker_destroy(worker[1]);
	ucp_cleanup(context);
}
