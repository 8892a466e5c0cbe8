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

/* Declares and defines @name, which calls the header's inline with @args. */
#define REAL(type, name, params, args) \
	RPOST_API type name params; \
	type name params { return hdr_##name args; }

#undef ibv_poll_cq
REAL(int, ibv_poll_cq, (struct ibv_cq *cq, int num_entries, struct ibv_wc *wc),
     (cq, num_entries, wc))

#undef ibv_req_notify_cq
REAL(int, ibv_req_notify_cq, (struct ibv_cq *cq, int solicited_only),
     (cq, solicited_only))

#undef ibv_post_send
REAL(int, ibv_post_send, (struct ibv_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad_wr), (qp, wr, bad_wr))

#undef ibv_post_recv
REAL(int, ibv_post_recv, (struct ibv_qp *qp, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad_wr), (qp, wr, bad_wr))

#undef ibv_post_srq_recv
REAL(int, ibv_post_srq_recv, (struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
			      struct ibv_recv_wr **bad_recv_wr),
     (srq, recv_wr, bad_recv_wr))

#undef rdma_get_local_addr
REAL(struct sockaddr *, rdma_get_local_addr, (struct rdma_cm_id *id), (id))

#undef rdma_get_peer_addr
REAL(struct sockaddr *, rdma_get_peer_addr, (struct rdma_cm_id *id), (id))

#undef rdma_reg_msgs
REAL(struct ibv_mr *, rdma_reg_msgs,
     (struct rdma_cm_id *id, void *addr, size_t length), (id, addr, length))

#undef rdma_reg_read
REAL(struct ibv_mr *, rdma_reg_read,
     (struct rdma_cm_id *id, void *addr, size_t length), (id, addr, length))

#undef rdma_reg_write
REAL(struct ibv_mr *, rdma_reg_write,
     (struct rdma_cm_id *id, void *addr, size_t length), (id, addr, length))

#undef rdma_dereg_mr
REAL(int, rdma_dereg_mr, (struct ibv_mr *mr), (mr))

#undef rdma_post_recvv
REAL(int, rdma_post_recvv, (struct rdma_cm_id *id, void *context,
			    struct ibv_sge *sgl, int nsge),
     (id, context, sgl, nsge))

#undef rdma_post_sendv
REAL(int, rdma_post_sendv, (struct rdma_cm_id *id, void *context,
			    struct ibv_sge *sgl, int nsge, int flags),
     (id, context, sgl, nsge, flags))

#undef rdma_post_readv
REAL(int, rdma_post_readv, (struct rdma_cm_id *id, void *context,
			    struct ibv_sge *sgl, int nsge, int flags,
			    uint64_t remote_addr, uint32_t rkey),
     (id, context, sgl, nsge, flags, remote_addr, rkey))

#undef rdma_post_writev
REAL(int, rdma_post_writev, (struct rdma_cm_id *id, void *context,
			     struct ibv_sge *sgl, int nsge, int flags,
			     uint64_t remote_addr, uint32_t rkey),
     (id, context, sgl, nsge, flags, remote_addr, rkey))

#undef rdma_post_recv
REAL(int, rdma_post_recv, (struct rdma_cm_id *id, void *context, void *addr,
			   size_t length, struct ibv_mr *mr),
     (id, context, addr, length, mr))

#undef rdma_post_send
REAL(int, rdma_post_send, (struct rdma_cm_id *id, void *context, void *addr,
			   size_t length, struct ibv_mr *mr, int flags),
     (id, context, addr, length, mr, flags))

#undef rdma_post_read
REAL(int, rdma_post_read, (struct rdma_cm_id *id, void *context, void *addr,
			   size_t length, struct ibv_mr *mr, int flags,
			   uint64_t remote_addr, uint32_t rkey),
     (id, context, addr, length, mr, flags, remote_addr, rkey))

#undef rdma_post_write
REAL(int, rdma_post_write, (struct rdma_cm_id *id, void *context, void *addr,
			    size_t length, struct ibv_mr *mr, int flags,
			    uint64_t remote_addr, uint32_t rkey),
     (id, context, addr, length, mr, flags, remote_addr, rkey))

#undef rdma_post_ud_send
REAL(int, rdma_post_ud_send, (struct rdma_cm_id *id, void *context, void *addr,
			      size_t length, struct ibv_mr *mr, int flags,
			      struct ibv_ah *ah, uint32_t remote_qpn),
     (id, context, addr, length, mr, flags, ah, remote_qpn))

#undef rdma_get_send_comp
REAL(int, rdma_get_send_comp, (struct rdma_cm_id *id, struct ibv_wc *wc),
     (id, wc))

#undef rdma_get_recv_comp
REAL(int, rdma_get_recv_comp, (struct rdma_cm_id *id, struct ibv_wc *wc),
     (id, wc))
