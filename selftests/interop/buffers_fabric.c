// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Two connected endpoints (FI_EP_MSG) of libfabric's provider for verbs, for buffers.c. */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "buffers.h"

#define OK(call)	TRUE((call) == 0)

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_pep *listener;
static struct fid_ep *ep[2];
static struct fid_cq *cq[2];
static struct fid_mr *target_mr;
static unsigned char *target;

static struct fi_info *get_info(const char *addr, const char *port, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *found;

	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_MSG;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->fabric_attr->prov_name = strdup("verbs");
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      FI_MR_VIRT_ADDR;
	OK(fi_getinfo(FI_VERSION(1, 14), addr, port, flags, hints, &found));
	fi_freeinfo(hints);
	return found;
}

static void open_end(int i, struct fi_info *of)
{
	struct fi_cq_attr attr = { .size = 16, .format = FI_CQ_FORMAT_CONTEXT };

	OK(fi_endpoint(domain, of, &ep[i], NULL));
	OK(fi_cq_open(domain, &attr, &cq[i], NULL));
	OK(fi_ep_bind(ep[i], &eq->fid, 0));
	OK(fi_ep_bind(ep[i], &cq[i]->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep[i]));
}

static struct fi_info *next_event(uint32_t wanted)
{
	struct fi_eq_cm_entry entry;
	uint32_t event;

	TRUE(fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0) >= 0);
	TRUE(event == wanted);
	return entry.info;
}

static void complete(int i)
{
	struct fi_cq_entry entry;
	ssize_t n;

	do
		n = fi_cq_read(cq[i], &entry, 1);
	while (n == -FI_EAGAIN);
	TRUE(n == 1);
}

void open_ends(const char *addr, const char *port, void *memory)
{
	struct fi_eq_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_info *passive = get_info(addr, port, FI_SOURCE), *request;

	target = memory;
	info = get_info(addr, port, 0);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	OK(fi_eq_open(fabric, &attr, &eq, NULL));
	OK(fi_passive_ep(fabric, passive, &listener, NULL));
	OK(fi_pep_bind(listener, &eq->fid, 0));
	OK(fi_listen(listener));
	OK(fi_domain(fabric, info, &domain, NULL));
	OK(fi_mr_reg(domain, target, LENGTH, FI_RECV | FI_REMOTE_WRITE, 0, 0, 0,
		     &target_mr, NULL));
	open_end(0, info);
	OK(fi_connect(ep[0], info->dest_addr, NULL, 0));
	request = next_event(FI_CONNREQ);
	open_end(1, request);
	OK(fi_accept(ep[1], NULL, 0));
	next_event(FI_CONNECTED);
	next_event(FI_CONNECTED);
	fi_freeinfo(request);
	fi_freeinfo(passive);
}

void transfer(bool put, void *buf)
{
	struct fid_mr *mr;
	void *desc;

	OK(fi_mr_reg(domain, buf, LENGTH, put ? FI_WRITE : FI_SEND, 0, 0, 0, &mr, NULL));
	desc = fi_mr_desc(mr);
	if (put) {
		OK(fi_write(ep[0], buf, LENGTH, desc, 0, (uintptr_t)target,
			    fi_mr_key(target_mr), NULL));
	} else {
		OK(fi_recv(ep[1], target, LENGTH, fi_mr_desc(target_mr), 0, NULL));
		OK(fi_send(ep[0], buf, LENGTH, desc, 0, NULL));
		complete(1);
	}
	complete(0);
	OK(fi_close(&mr->fid));
}

void close_ends(void)
{
	OK(fi_close(&ep[0]->fid));
	OK(fi_close(&ep[1]->fid));
	OK(fi_close(&cq[0]->fid));
	OK(fi_close(&cq[1]->fid));
	OK(fi_close(&target_mr->fid));
	OK(fi_close(&listener->fid));
	OK(fi_close(&eq->fid));
	OK(fi_close(&domain->fid));
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
}
