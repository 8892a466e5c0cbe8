// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Inline functions of <rdma/rdma_verbs.h>, <rdma/rdma_cma.h> and
 * <infiniband/verbs.h> as exported functions, for languages that cannot use a
 * C header.  Their manual pages are rdma_post_write(3) and so on.
 */

/* The headers define the inlines under these names. */
#define ibv_poll_cq		hdr_ibv_poll_cq
#define ibv_req_notify_cq	hdr_ibv_req_notify_cq
#define ibv_post_send		hdr_ibv_post_send
#define ibv_post_recv		hdr_ibv_post_recv
#define ibv_post_srq_recv	hdr_ibv_post_srq_recv
#define rdma_get_local_addr	hdr_rdma_get_local_addr
#define rdma_get_peer_addr	hdr_rdma_get_peer_addr
#define rdma_reg_msgs		hdr_rdma_reg_msgs
#define rdma_reg_read		hdr_rdma_reg_read
#define rdma_reg_write		hdr_rdma_reg_write
#define rdma_dereg_mr		hdr_rdma_dereg_mr
#define rdma_post_recvv		hdr_rdma_post_recvv
#define rdma_post_sendv		hdr_rdma_post_sendv
#define rdma_post_readv		hdr_rdma_post_readv
#define rdma_post_writev	hdr_rdma_post_writev
#define rdma_post_recv		hdr_rdma_post_recv
#define rdma_post_send		hdr_rdma_post_send
#define rdma_post_read		hdr_rdma_post_read
#define rdma_post_write		hdr_rdma_post_write
#define rdma_post_ud_send	hdr_rdma_post_ud_send
#define rdma_get_send_comp	hdr_rdma_get_send_comp
#define rdma_get_recv_comp	hdr_rdma_get_recv_comp

#include "core/internal.h"

/* Exports the header's inline under its own name. */
#define REAL(name) \
	RPOST_API extern __typeof__(hdr_##name) real_##name __asm__(#name) \
		__attribute__((alias("hdr_" #name)))

REAL(ibv_poll_cq);
REAL(ibv_req_notify_cq);
REAL(ibv_post_send);
REAL(ibv_post_recv);
REAL(ibv_post_srq_recv);
REAL(rdma_get_local_addr);
REAL(rdma_get_peer_addr);
REAL(rdma_reg_msgs);
REAL(rdma_reg_read);
REAL(rdma_reg_write);
REAL(rdma_dereg_mr);
REAL(rdma_post_recvv);
REAL(rdma_post_sendv);
REAL(rdma_post_readv);
REAL(rdma_post_writev);
REAL(rdma_post_recv);
REAL(rdma_post_send);
REAL(rdma_post_read);
REAL(rdma_post_write);
REAL(rdma_post_ud_send);
REAL(rdma_get_send_comp);
REAL(rdma_get_recv_comp);
