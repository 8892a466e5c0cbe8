// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two ends of a connection, and posts to them.
 */
#define _GNU_SOURCE
#include "rpost_test.h"

int rp_depth = RP_DEPTH;

int rp_create_qp(struct rp_end *end, uint32_t flags)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.id = end->id,
		.pd = end->pd,
		.send_cq = end->cq.cmd.handle,
		.recv_cq = end->cq.cmd.handle,
		.max_send_wr = rp_depth,
		.max_recv_wr = rp_depth,
		.max_send_sge = RP_SGE,
		.max_recv_sge = RP_SGE,
		.max_inline_data = RP_INLINE,
	};
	int ret = rp_ioctl(end->fd, RPOST_IOC_CREATE_QP, &cmd);

	end->qp = cmd.handle;
	end->qp_num = cmd.qp_num;
	return ret;
}

/* Open the device for an end and create its objects except the id. */
int rp_end_init(struct rp_end *end)
{
	int ret;

	memset(end, 0, sizeof(*end));
	end->fd = rp_open();
	if (end->fd < 0)
		return -errno;
	end->device = rp_first_device(end->fd);
	end->channel = rp_event_channel(end->fd);
	if (end->channel < 0)
		return end->channel;
	ret = rp_alloc_pd(end->fd, end->device, &end->pd);
	if (ret)
		return ret;
	return rp_create_cq(end->fd, end->device, 4 * rp_depth, -1, &end->cq);
}

/* rp_end_init() with a file that root opens while it is user @uid. */
int rp_end_as(uid_t uid, struct rp_end *end)
{
	int ret;

	if (geteuid())
		return rp_end_init(end);
	RP_TRY(rp_become(uid));
	ret = rp_end_init(end);
	RP_TRY(rp_become(0));
	return ret;
}

/* Replace the CQ of an end by one with a channel; return the channel. */
int rp_end_add_channel(struct rp_end *end, uint32_t cqe)
{
	int channel = rp_comp_channel(end->fd);

	if (channel < 0)
		return channel;
	rp_unmap_cq(&end->cq);
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_CQ, end->cq.cmd.handle));
	RP_TRY(rp_create_cq(end->fd, end->device, cqe, channel, &end->cq));
	return channel;
}

/* Create an id that listens on a port that the kernel chooses. */
int rp_listener(struct rp_end *server, uint32_t *listener)
{
	RP_TRY(rp_create_id(server->fd, server->channel, listener));
	RP_TRY(rp_bind(server->fd, *listener, 0));
	RP_TRY(rp_listen(server->fd, *listener, 4));
	return 0;
}

/* Create an id and resolve its address. */
int rp_client_addr(struct rp_end *client, uint16_t port)
{
	RP_TRY(rp_create_id(client->fd, client->channel, &client->id));
	RP_TRY(rp_resolve_addr(client->fd, client->id, port));
	RP_TRY(rp_expect(client->channel, client->id,
			 RPOST_EVENT_ADDR_RESOLVED));
	return 0;
}

/* Create an id and resolve its address and its route. */
int rp_resolve(struct rp_end *client, uint16_t port)
{
	RP_TRY(rp_resolve_addr(client->fd, client->id, port));
	RP_TRY(rp_expect(client->channel, client->id,
			 RPOST_EVENT_ADDR_RESOLVED));
	RP_TRY(rp_resolve_route(client->fd, client->id));
	RP_TRY(rp_expect(client->channel, client->id,
			 RPOST_EVENT_ROUTE_RESOLVED));
	return 0;
}

/* Fetch the connection request of @listener; its id is @server->id. */
int rp_take_request(struct rp_end *server, uint32_t listener)
{
	struct rpost_get_event event;

	RP_TRY(rp_get_event(server->channel, &event));
	if (event.event != RPOST_EVENT_CONNECT_REQUEST ||
	    event.listen_id != listener) {
		fprintf(stderr, "# event %u, not a request\n", event.event);
		return -EPROTO;
	}
	server->id = event.id;
	return 0;
}

int rp_establish(struct rp_end *end)
{
	struct rpost_establish cmd = { .size = sizeof(cmd), .id = end->id };

	return rp_ioctl(end->fd, RPOST_IOC_ESTABLISH, &cmd);
}

int rp_notify(struct rp_end *end, uint32_t event)
{
	struct rpost_notify cmd = {
		.size = sizeof(cmd), .id = end->id, .event = event,
	};

	return rp_ioctl(end->fd, RPOST_IOC_NOTIFY, &cmd);
}

int rp_set_option(struct rp_end *end, uint32_t id, uint32_t level, uint32_t option,
		  uint32_t value)
{
	struct rpost_set_option cmd = {
		.size = sizeof(cmd),
		.id = id,
		.level = level,
		.option = option,
		.value = value,
	};

	return rp_ioctl(end->fd, RPOST_IOC_SET_OPTION, &cmd);
}

int rp_join_mcast(struct rp_end *end, uint32_t id, const char *ip, uint64_t user_data)
{
	struct rpost_join_mcast cmd = {
		.size = sizeof(cmd),
		.id = id,
		.addr_len = sizeof(struct sockaddr_in),
		.user_data = user_data,
	};

	rp_group_addr(&cmd.addr, ip);
	return rp_ioctl(end->fd, RPOST_IOC_JOIN_MCAST, &cmd);
}

int rp_leave_mcast(struct rp_end *end, uint32_t id, const char *ip)
{
	struct rpost_leave_mcast cmd = {
		.size = sizeof(cmd),
		.id = id,
		.addr_len = sizeof(struct sockaddr_in),
	};

	rp_group_addr(&cmd.addr, ip);
	return rp_ioctl(end->fd, RPOST_IOC_LEAVE_MCAST, &cmd);
}

int rp_reject(struct rp_end *end, uint32_t id, const void *data, uint32_t len)
{
	struct rpost_reject cmd = {
		.size = sizeof(cmd),
		.id = id,
		.private_data_len = len,
	};

	if (len && len <= sizeof(cmd.private_data))
		memcpy(cmd.private_data, data, len);
	return rp_ioctl(end->fd, RPOST_IOC_REJECT, &cmd);
}

/* Send a connection request from @client; the server has not answered it. */
int rp_ask(struct rp_end *client, struct rp_end *server, uint32_t listener,
	   uint32_t flags)
{
	RP_TRY(rp_client_route(client, rp_port(server->fd, listener)));
	RP_TRY(rp_create_qp(client, flags));
	RP_TRY(rp_connect(client->fd, client->id));
	RP_TRY(rp_take_request(server, listener));
	return 0;
}

/* Connect two ends by a listener of the server. */
int rp_join(struct rp_end *client, struct rp_end *server, uint32_t listener,
	    uint32_t flags)
{
	RP_TRY(rp_ask(client, server, listener, flags));
	RP_TRY(rp_create_qp(server, flags));
	RP_TRY(rp_accept(server->fd, server->id));
	RP_TRY(rp_expect(client->channel, client->id, RPOST_EVENT_ESTABLISHED));
	RP_TRY(rp_expect(server->channel, server->id, RPOST_EVENT_ESTABLISHED));
	return 0;
}

/* Destroy an end's queue pair and id, and discard their completions. */
int rp_leave(struct rp_end *end)
{
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_QP, end->qp));
	RP_TRY(rp_destroy(end->fd, RPOST_OBJ_ID, end->id));
	end->cq.ring->head = __atomic_load_n(&end->cq.ring->tail,
					     __ATOMIC_ACQUIRE);
	return 0;
}

/* Connect two ends, each with its own open file. */
int rp_connect_pair(struct rp_end *client, struct rp_end *server,
		    uint32_t flags)
{
	uint32_t listener;

	RP_TRY(rp_end_init(client));
	RP_TRY(rp_end_init(server));
	RP_TRY(rp_listener(server, &listener));
	RP_TRY(rp_join(client, server, listener, flags));
	RP_TRY(rp_destroy(server->fd, RPOST_OBJ_ID, listener));
	return 0;
}

int rp_post_once(int fd, unsigned long nr, uint32_t qp, const void *block, uint32_t bytes)
{
	uint64_t words[(sizeof(struct rpost_post) + bytes + 7) / 8];
	struct rpost_post *cmd = (void *)words;

	*cmd = (struct rpost_post) { .size = sizeof(*cmd) + bytes, .qp = qp };
	memcpy(cmd + 1, block, bytes);
	return rp_ioctl(fd, nr, cmd);
}

int rp_post(int fd, unsigned long nr, uint32_t qp, const void *block, uint32_t bytes,
	    uint32_t count, uint32_t *posted)
{
	const void *end = block + bytes;
	uint32_t done = 0;
	int ret = 0;

	while (ret >= 0 && done < count) {
		ret = rp_post_once(fd, nr, qp, block, end - block) ? : -EPROTO;
		for (; ret > 0; ret--, done++)
			block += ((const struct rpost_recv_wr *)block)->size;
	}
	if (posted)
		*posted = done;
	return ret;
}

int rp_post_recv(struct rp_end *end, uint64_t wr_id, void *addr,
		 uint32_t length, uint32_t lkey)
{
	struct {
		struct rpost_recv_wr wr;
		struct rpost_sge sge;
	} block = {
		.wr = { .wr_id = wr_id, .size = sizeof(block), .num_sge = 1 },
		.sge = { (uintptr_t)addr, length, lkey },
	};

	return rp_post(end->fd, RPOST_IOC_POST_RECV, end->qp, &block,
		       sizeof(block), 1, NULL);
}

struct rp_send rp_send(uint32_t opcode, uint64_t wr_id, void *addr,
		       uint32_t length, uint32_t lkey)
{
	return (struct rp_send) {
		.wr = {
			.wr_id = wr_id,
			.size = sizeof(struct rp_send),
			.opcode = opcode,
			.send_flags = RPOST_SEND_SIGNALED,
			.num_sge = 1,
		},
		.sge = { (uintptr_t)addr, length, lkey },
	};
}

struct rp_send rp_empty_send(uint32_t opcode, uint64_t wr_id)
{
	struct rp_send send = rp_send(opcode, wr_id, NULL, 0, 0);

	send.wr.num_sge = 0;
	send.wr.size = sizeof(send.wr);
	return send;
}

int rp_empty_message(struct rp_end *from, struct rp_end *to)
{
	struct rp_send send = rp_empty_send(RPOST_WR_SEND, 1);
	struct rpost_wc wc;

	RP_TRY(rp_post_recv(to, 2, NULL, 0, 0));
	RP_TRY(rp_post_send(from, &send));
	if (rp_wait_cq(&from->cq, &wc) != 1 || wc.status)
		return -EIO;
	return rp_wait_cq(&to->cq, &wc) == 1 && !wc.status ? 0 : -EIO;
}
