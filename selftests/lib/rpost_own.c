// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue pairs that the program creates and brings up itself.
 */
#define _GNU_SOURCE
#include "rpost_own.h"

int rp_modify(struct rp_end *end, const struct rpost_qp_attr *attr)
{
	struct rpost_modify_qp cmd = {
		.size = sizeof(cmd), .handle = end->qp, .attr = *attr,
	};

	return rp_ioctl(end->fd, RPOST_IOC_MODIFY_QP, &cmd);
}

int rp_move(struct rp_end *end, uint32_t state)
{
	const struct rpost_qp_attr attr = {
		.attr_mask = RPOST_QP_STATE, .qp_state = state,
	};

	return rp_modify(end, &attr);
}

/* Return the attributes that the connection manager gives for a state. */
int rp_init_qp_attr(struct rp_end *end, uint32_t state,
		    struct rpost_qp_attr *attr)
{
	struct rpost_init_qp_attr cmd = {
		.size = sizeof(cmd), .id = end->id, .attr.qp_state = state,
	};
	int ret = rp_ioctl(end->fd, RPOST_IOC_INIT_QP_ATTR, &cmd);

	*attr = cmd.attr;
	return ret;
}

/* Move the queue pair to a state with the connection manager's attributes. */
int rp_move_connected(struct rp_end *end, uint32_t state)
{
	struct rpost_qp_attr attr;

	RP_TRY(rp_init_qp_attr(end, state, &attr));
	return rp_modify(end, &attr);
}

int rp_connect_qp(struct rp_end *end, uint32_t qp_num)
{
	struct rpost_connect cmd = { .size = sizeof(cmd), .id = end->id };

	rp_conn_param(&cmd.param);
	cmd.param.qp_num = qp_num;
	return rp_ioctl(end->fd, RPOST_IOC_CONNECT, &cmd);
}

int rp_query_qp(struct rp_end *end, struct rpost_query_qp *cmd)
{
	RP_QUERY(cmd);
	cmd->handle = end->qp;
	return rp_ioctl(end->fd, RPOST_IOC_QUERY_QP, cmd);
}

/* Return the state of a queue pair, or a negative errno. */
int rp_qp_state(struct rp_end *end)
{
	struct rpost_query_qp cmd;
	int ret = rp_query_qp(end, &cmd);

	return ret ? ret : (int)cmd.attr.qp_state;
}

int rp_count_wrs(struct rp_end *end, uint32_t flags, struct rpost_count_wrs *cmd)
{
	RP_QUERY(cmd);
	cmd->flags = flags;
	cmd->handle = end->qp;
	cmd->reserved = 0;
	return rp_ioctl(end->fd, RPOST_IOC_COUNT_WRS, cmd);
}

int rp_query_gids(int fd, uint32_t device, uint32_t port, uint32_t first,
		  struct rpost_gid *gids, uint32_t *count)
{
	struct rpost_query_gids cmd = {
		.size = sizeof(cmd),
		.device = device,
		.port = port,
		.first = first,
		.count = *count,
		.gids = (uintptr_t)gids,
	};
	int ret = rp_ioctl(fd, RPOST_IOC_QUERY_GIDS, &cmd);

	*count = cmd.count;
	return ret;
}

/* Return the GID of the host's IPv4 address, or the first GID. */
int rp_own_gid(struct rp_end *end, struct rpost_gid *gid)
{
	struct rpost_gid gids[32];
	uint32_t count = 32, i;
	int ret;

	ret = rp_query_gids(end->fd, end->device, 0, 0, gids, &count);
	if (ret || !count)
		return ret ? ret : -ENOENT;
	*gid = gids[0];
	for (i = 0; i < count; i++) {
		if (gids[i].type == RPOST_GID_ROCE_V2 &&
		    !memcmp(gids[i].gid + 12, &rp_addr4.sin_addr, 4))
			*gid = gids[i];
	}
	return 0;
}

/* Return an address that leads back to this device. */
int rp_own_addr(struct rp_end *end, struct rpost_ah_attr *ah)
{
	struct rpost_query_port port;
	struct rpost_gid gid;

	RP_TRY(rp_own_gid(end, &gid));
	RP_TRY(rp_query_port(end->fd, end->device, gid.port, &port));
	*ah = (struct rpost_ah_attr) {
		.dlid = port.lid,
		.sgid_index = gid.index,
		.hop_limit = 64,
		.is_global = 1,
		.port_num = gid.port,
	};
	memcpy(ah->dgid, gid.gid, sizeof(ah->dgid));
	return 0;
}

/* Create a queue pair without an id; @srq may be 0. */
uint32_t rp_qp_flags;

int rp_create_own(struct rp_end *end, uint32_t type, uint32_t srq)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.flags = rp_qp_flags,
		.pd = end->pd,
		.send_cq = end->cq.cmd.handle,
		.recv_cq = end->cq.cmd.handle,
		.max_send_wr = rp_depth,
		.max_recv_wr = rp_depth,
		.max_send_sge = RP_SGE,
		.max_recv_sge = RP_SGE,
		.max_inline_data = RP_INLINE,
		.qp_type = type,
		.srq = srq,
		.user_data = (uintptr_t)end,
	};
	int ret = rp_ioctl(end->fd, RPOST_IOC_CREATE_QP, &cmd);

	end->id = 0;
	end->qp = cmd.handle;
	end->qp_num = cmd.qp_num;
	return ret;
}

struct rpost_qp_attr rp_init_attr(uint32_t type, uint8_t port)
{
	return (struct rpost_qp_attr) {
		.attr_mask = RP_MASK_INIT |
			     (type == RPOST_QPT_UD ? RPOST_QP_QKEY :
						     RPOST_QP_ACCESS_FLAGS),
		.qp_state = RPOST_QPS_INIT,
		.port_num = port,
		.qkey = RP_QKEY,
		.access = RPOST_ACCESS_REMOTE_WRITE | RPOST_ACCESS_REMOTE_READ |
			  RPOST_ACCESS_REMOTE_ATOMIC,
	};
}

struct rpost_qp_attr rp_rtr_attr(uint32_t type, const struct rpost_ah_attr *ah,
				 uint32_t dest)
{
	return (struct rpost_qp_attr) {
		.attr_mask = type == RPOST_QPT_UD ? RPOST_QP_STATE :
			     type == RPOST_QPT_UC ? RP_MASK_RTR :
						    RP_MASK_RTR_RC,
		.qp_state = RPOST_QPS_RTR,
		.ah = *ah,
		.path_mtu = 3,
		.dest_qp_num = dest,
		.rq_psn = RP_PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
}

struct rpost_qp_attr rp_rts_attr(uint32_t type)
{
	return (struct rpost_qp_attr) {
		.attr_mask = type == RPOST_QPT_RC ? RP_MASK_RTS_RC :
						    RP_MASK_RTS,
		.qp_state = RPOST_QPS_RTS,
		.sq_psn = RP_PSN,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
}

/* Move from RESET to RTS, connected to queue pair @dest at the address @ah. */
int rp_bring_up_by(struct rp_end *end, uint32_t type, const struct rpost_ah_attr *ah,
		   uint32_t dest)
{
	struct rpost_qp_attr attr = rp_init_attr(type, ah->port_num);

	RP_TRY(rp_modify(end, &attr));
	attr = rp_rtr_attr(type, ah, dest);
	RP_TRY(rp_modify(end, &attr));
	attr = rp_rts_attr(type);
	RP_TRY(rp_modify(end, &attr));
	return 0;
}

/* Move from RESET to RTS, connected to queue pair @dest of this host. */
int rp_bring_up(struct rp_end *end, uint32_t type, uint32_t dest)
{
	struct rpost_ah_attr ah;

	RP_TRY(rp_own_addr(end, &ah));
	return rp_bring_up_by(end, type, &ah, dest);
}

/* Connect two queue pairs of a type by hand; the ends are initialised. */
int rp_own_join(struct rp_end *a, struct rp_end *b, uint32_t type)
{
	RP_TRY(rp_create_own(a, type, 0));
	RP_TRY(rp_create_own(b, type, 0));
	RP_TRY(rp_bring_up(a, type, b->qp_num));
	RP_TRY(rp_bring_up(b, type, a->qp_num));
	return 0;
}

int rp_create_ah(int fd, uint32_t pd, const struct rpost_ah_attr *attr,
		 uint32_t *handle)
{
	struct rpost_create_ah cmd = {
		.size = sizeof(cmd), .pd = pd, .attr = *attr,
	};
	int ret = rp_ioctl(fd, RPOST_IOC_CREATE_AH, &cmd);

	*handle = cmd.handle;
	return ret;
}

/* Create an address handle that leads back to this device. */
int rp_own_ah(struct rp_end *end, uint32_t *handle)
{
	struct rpost_ah_attr attr;

	RP_TRY(rp_own_addr(end, &attr));
	return rp_create_ah(end->fd, end->pd, &attr, handle);
}

/* Return a send with one entry to queue pair @to of this host. */
struct rp_send rp_datagram(uint32_t ah, uint32_t to, uint64_t wr_id, void *addr,
			   uint32_t length, uint32_t lkey)
{
	struct rp_send send = rp_send(RPOST_WR_SEND, wr_id, addr, length, lkey);

	send.wr.ah = ah;
	send.wr.remote_qpn = to;
	send.wr.remote_qkey = RP_QKEY;
	return send;
}

/* Return a send without data to queue pair @to of this host. */
struct rp_send rp_empty_datagram(uint32_t ah, uint32_t to, uint64_t wr_id)
{
	struct rp_send send = rp_datagram(ah, to, wr_id, NULL, 0, 0);

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	return send;
}

/* RPOST_IOC_ATTACH_MCAST or RPOST_IOC_DETACH_MCAST for group 239.1.2.@x. */
int rp_mcast(int fd, unsigned long nr, uint32_t qp, uint8_t x)
{
	struct rpost_attach_mcast cmd = {
		.size = sizeof(cmd),
		.qp = qp,
		.gid = { 0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239,
			 1, 2, x },
	};

	return rp_ioctl(fd, nr, &cmd);
}

int rp_create_srq(int fd, uint32_t pd, uint32_t max_wr,
		  struct rpost_create_srq *cmd)
{
	*cmd = (struct rpost_create_srq) {
		.size = sizeof(*cmd),
		.pd = pd,
		.max_wr = max_wr,
		.max_sge = 2,
		.user_data = 0x5152,
	};
	return rp_ioctl(fd, RPOST_IOC_CREATE_SRQ, cmd);
}

int rp_query_srq(int fd, uint32_t srq, struct rpost_query_srq *cmd)
{
	RP_QUERY(cmd);
	cmd->handle = srq;
	return rp_ioctl(fd, RPOST_IOC_QUERY_SRQ, cmd);
}

int rp_srq_limit(int fd, uint32_t srq, uint32_t limit)
{
	struct rpost_modify_srq cmd = {
		.size = sizeof(cmd),
		.handle = srq,
		.attr_mask = RPOST_SRQ_LIMIT,
		.limit = limit,
	};

	return rp_ioctl(fd, RPOST_IOC_MODIFY_SRQ, &cmd);
}

int rp_post_srq_at(int fd, uint32_t srq, uint64_t wr_id, uint64_t addr,
		   uint32_t length, uint32_t lkey)
{
	struct rp_recv {
		struct rpost_recv_wr wr;
		struct rpost_sge sge;
	} block = {
		.wr = {
			.wr_id = wr_id,
			.size = sizeof(block),
			.num_sge = 1,
		},
		.sge = { addr, length, lkey },
	};

	if (!addr) {
		block.wr.num_sge = 0;
		block.wr.size = sizeof(block.wr);
	}
	return rp_post(fd, RPOST_IOC_POST_SRQ_RECV, srq, &block, block.wr.size,
		       1, NULL);
}

int rp_async_channel(int fd, uint32_t device)
{
	struct rpost_create_async_channel cmd = {
		.size = sizeof(cmd), .device = device,
	};
	int ret = rp_ioctl(fd, RPOST_IOC_CREATE_ASYNC_CHANNEL, &cmd);

	return ret ? ret : cmd.fd;
}

/* Wait for the next event of a type and skip others: 0 or -ETIME. */
int rp_async_wait(int channel, uint32_t type, struct rpost_async_event *event)
{
	struct pollfd pfd = { .fd = channel, .events = POLLIN };
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	do {
		if (poll(&pfd, 1, 100) != 1)
			continue;
		if (read(channel, event, sizeof(*event)) != sizeof(*event))
			return -errno;
		if (event->event == type)
			return 0;
	} while (rp_now_ms() < end);
	return -ETIME;
}

/* Send one message, which takes the receiver's shared queue to its limit. */
int rp_reach_limit(struct rp_end *sender, struct rp_end *receiver,
		   uint32_t srq)
{
	struct rp_send send = rp_empty_send(RPOST_WR_SEND, 1);
	struct rpost_wc wc;

	RP_TRY(rp_post_srq(receiver->fd, srq, 1, NULL, 0, 0));
	RP_TRY(rp_srq_limit(receiver->fd, srq, 1));
	RP_TRY(rp_post_send(sender, &send));
	if (rp_wait_cq(&sender->cq, &wc) != 1 || wc.status)
		return -EIO;
	return rp_wait_cq(&receiver->cq, &wc) == 1 && !wc.status ? 0 : -EIO;
}
