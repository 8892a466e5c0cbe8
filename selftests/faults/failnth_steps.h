/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The steps that failnth sweeps: one for each command and variant, and what
 * goes before and after it.  Each returns 0 or a negative errno.
 */
#ifndef RPOST_FAILNTH_STEPS_H
#define RPOST_FAILNTH_STEPS_H


#include "path.h"
#include "rpost_own.h"

#define BUF_BYTES	(300 * 4096)
#define MANY		12

/**
 * struct scene - what the steps work on
 * @c: one side
 * @s: the other, with an open file of its own
 * @addr: this host's own address
 * @srq: a shared receive queue of @c
 * @ah: an address handle of @c
 * @mr: @buf, registered with @s
 * @buf: memory
 * @listener: an id of @s
 * @other: an event channel of @c
 * @made: what the step has made
 * @fd: a file that the step has opened
 * @cq: a completion queue that the step has made
 * @map: memory that the step has mapped
 * @event: what came
 * @posted: sends whose completions have not been seen
 * @busy: a pair of sides besides @c and @s
 */
struct scene {
	struct rp_end c, s;
	struct rpost_ah_attr addr;
	struct rpost_create_srq srq;
	uint32_t ah;
	struct rpost_reg_mr mr;
	char *buf;
	uint32_t listener;
	int other;
	uint32_t made;
	int fd, channel;
	struct rp_cq cq;
	void *map;
	struct rpost_get_event event;
	uint32_t posted;
	struct rp_end busy[2];
};

static int scene_init(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	RP_TRY(rp_end_init(&s->c));
	RP_TRY(rp_end_init(&s->s));
	RP_TRY(fcntl(s->c.channel, F_SETFL, O_NONBLOCK));
	RP_TRY(fcntl(s->s.channel, F_SETFL, O_NONBLOCK));
	RP_TRY(rp_own_addr(&s->c, &s->addr));
	RP_TRY(rp_create_srq(s->c.fd, s->c.pd, 8, &s->srq));
	RP_TRY(rp_create_ah(s->c.fd, s->c.pd, &s->addr, &s->ah));
	s->other = rp_event_channel(s->c.fd);
	if (s->other < 0)
		return s->other;
	s->buf = rp_pages(BUF_BYTES);
	if (!s->buf)
		return -ENOMEM;
	memset(s->buf, 1, BUF_BYTES);
	return rp_reg_mr(s->s.fd, s->s.pd, s->buf, BUF_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE | RPOST_ACCESS_REMOTE_WRITE,
			 &s->mr);
}

static void scene_close(struct scene *s)
{
	close(s->other);
	rp_end_close(&s->c);
	rp_end_close(&s->s);
}

/* ---------------------------------------------------------------- queries */

static int query(struct scene *s)
{
	struct rpost_query cmd = { .size = sizeof(cmd) };

	return rp_ioctl(s->c.fd, RPOST_IOC_QUERY, &cmd);
}

static int query_devices(struct scene *s)
{
	uint32_t ids[4];
	struct rpost_query_devices cmd = {
		.size = sizeof(cmd), .devices = (uintptr_t)ids, .count = 4,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_QUERY_DEVICES, &cmd);
}

static int query_device(struct scene *s)
{
	struct rpost_query_device cmd = {
		.size = sizeof(cmd), .device = s->c.device,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_QUERY_DEVICE, &cmd);
}

static int query_port(struct scene *s)
{
	struct rpost_query_port cmd = {
		.size = sizeof(cmd), .device = s->c.device, .port = 1,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_QUERY_PORT, &cmd);
}

static int query_gids(struct scene *s)
{
	struct rpost_gid gids[32];
	uint32_t count = 32;

	return rp_query_gids(s->c.fd, s->c.device, 0, 0, gids, &count);
}

static int query_pkeys(struct scene *s)
{
	__be16 pkeys[4];
	struct rpost_query_pkeys cmd = {
		.size = sizeof(cmd), .device = s->c.device, .port = 1,
		.count = 4, .pkeys = (uintptr_t)pkeys,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_QUERY_PKEYS, &cmd);
}

static int query_qp(struct scene *s)
{
	struct rpost_query_qp cmd;

	return rp_query_qp(&s->c, &cmd);
}

static int query_srq(struct scene *s)
{
	struct rpost_query_srq cmd;

	return rp_query_srq(s->c.fd, s->srq.handle, &cmd);
}

static int query_id(struct scene *s)
{
	struct rpost_query_id cmd;

	return rp_query_id(s->c.fd, s->c.id, &cmd);
}

/* ------------------------------------------------------ files and channels */

static int keep_fd(struct scene *s, int fd)
{
	s->fd = fd;
	return fd < 0 ? fd : 0;
}

static int open_file(struct scene *s)
{
	int fd = rp_open();

	return keep_fd(s, fd < 0 ? -errno : fd);
}

static int close_file(struct scene *s)
{
	return close(s->fd) ? -errno : 0;
}

/*
 * The table of handles grows at the 64th object: a few before that, and then a
 * few more.  It does not become smaller, so that each sweep needs a new file.
 */
#define BEFORE_GROWTH	60
#define IN_GROWTH	8

static int open_nearly_full(struct scene *s)
{
	int i;

	RP_TRY(open_file(s));
	s->channel = rp_event_channel(s->fd);
	RP_TRY(s->channel < 0 ? s->channel : 0);
	for (i = 0; i < BEFORE_GROWTH; i++)
		RP_TRY(rp_create_id(s->fd, s->channel, &s->made));
	return 0;
}

static int grow_handles(struct scene *s)
{
	uint32_t made[IN_GROWTH];
	int i, ret = 0;

	for (i = 0; i < IN_GROWTH && !ret; i++)
		ret = rp_create_id(s->fd, s->channel, &made[i]);
	if (!ret)
		return 0;
	for (i--; i--;)
		RP_TRY(rp_destroy(s->fd, RPOST_OBJ_ID, made[i]));
	return ret;
}

static int close_full(struct scene *s)
{
	close(s->channel);
	return close_file(s);
}

static int create_event_channel(struct scene *s)
{
	return keep_fd(s, rp_event_channel(s->c.fd));
}

static int create_comp_channel(struct scene *s)
{
	return keep_fd(s, rp_comp_channel(s->c.fd));
}

static int create_async(struct scene *s)
{
	return keep_fd(s, rp_async_channel(s->c.fd, s->c.device));
}

/* A connection with receives and a region. */
static int open_busy(struct scene *s)
{
	struct rpost_reg_mr mr;
	int i;

	RP_TRY(rp_connect_pair(&s->busy[0], &s->busy[1], 0));
	RP_TRY(rp_reg_mr(s->busy[0].fd, s->busy[0].pd, s->buf, BUF_BYTES,
			 RPOST_ACCESS_LOCAL_WRITE, &mr));
	for (i = 0; i < 4; i++)
		RP_TRY(rp_post_recv(&s->busy[0], i, s->buf, 64, mr.lkey));
	return 0;
}

static int close_end(struct rp_end *end)
{
	rp_unmap_cq(&end->cq);
	if (close(end->channel))
		return -errno;
	return close(end->fd) ? -errno : 0;
}

static int close_busy(struct scene *s)
{
	return close_end(&s->busy[0]);
}

static int close_other(struct scene *s)
{
	return close_end(&s->busy[1]);
}

static int map_ring(struct scene *s)
{
	s->map = mmap(NULL, s->c.cq.cmd.mmap_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED, s->c.fd, s->c.cq.cmd.mmap_offset);
	return s->map == MAP_FAILED ? -errno : 0;
}

static int unmap_ring(struct scene *s)
{
	return munmap(s->map, s->c.cq.cmd.mmap_size) ? -errno : 0;
}

/* ------------------------------------------------------ domains, regions */

static int alloc_pd(struct scene *s)
{
	return rp_alloc_pd(s->c.fd, s->c.device, &s->made);
}

static int destroy_pd(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_PD, s->made);
}

static int reg(struct scene *s, void *addr, uint64_t length)
{
	struct rpost_reg_mr mr;
	int ret = rp_reg_mr(s->c.fd, s->c.pd, addr, length,
			    RPOST_ACCESS_LOCAL_WRITE, &mr);

	s->made = mr.handle;
	return ret;
}

static int reg_mr(struct scene *s)
{
	return reg(s, s->buf, BUF_BYTES);
}

static int destroy_mr(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_MR, s->made);
}

static int map_untouched(struct scene *s)
{
	s->map = rp_pages(2 * 4096);
	return s->map ? 0 : -ENOMEM;
}

static int reg_untouched(struct scene *s)
{
	return reg(s, s->map, 2 * 4096);
}

static int destroy_untouched(struct scene *s)
{
	RP_TRY(destroy_mr(s));
	return munmap(s->map, 2 * 4096) ? -errno : 0;
}

/* ------------------------------------------------------ completion queues */

static int create_cq_with(struct scene *s, int channel, uint32_t flags)
{
	struct rpost_create_cq cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.device = s->c.device,
		.cqe = flags ? 16 : 200,
		.channel_fd = channel,
	};
	int ret = rp_ioctl(s->c.fd, RPOST_IOC_CREATE_CQ, &cmd);

	s->made = ret ? 0 : cmd.handle;
	return ret;
}

static int create_cq(struct scene *s)
{
	return create_cq_with(s, -1, 0);
}

static int create_cq_channel(struct scene *s)
{
	return create_cq_with(s, s->fd, 0);
}

static int create_small_cq(struct scene *s)
{
	return create_cq_with(s, -1, RPOST_CQ_SMALL_ENTRIES |
				     RPOST_CQ_SHARED_PAGE);
}

static int destroy_cq(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_CQ, s->made);
}

static int destroy_cq_channel(struct scene *s)
{
	if (s->made)
		RP_TRY(destroy_cq(s));
	return close_file(s);
}

static int resize_cq(struct scene *s)
{
	struct rpost_resize_cq cmd = {
		.size = sizeof(cmd),
		.handle = s->c.cq.cmd.handle,
		.cqe = 300,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_RESIZE_CQ, &cmd);
}

static int arm_cq(struct scene *s)
{
	struct rpost_arm_cq cmd = {
		.size = sizeof(cmd), .handle = s->c.cq.cmd.handle,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_ARM_CQ, &cmd);
}

static int poll_cq(struct scene *s)
{
	struct rpost_poll_cq cmd = {
		.size = sizeof(cmd), .handle = s->c.cq.cmd.handle,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_POLL_CQ, &cmd);
}

/* ------------------------------------------------------------ queue pairs */

/* The handle is kept only if there is one, for those who tidy up. */
static int made_qp(struct scene *s, int ret)
{
	if (ret)
		s->c.qp = 0;
	return ret;
}

static int create_qp(struct scene *s)
{
	return made_qp(s, rp_create_own(&s->c, RPOST_QPT_RC, 0));
}

static int create_qp_with_srq(struct scene *s)
{
	return made_qp(s, rp_create_own(&s->c, RPOST_QPT_RC, s->srq.handle));
}

static int create_ud(struct scene *s)
{
	return made_qp(s, rp_create_own(&s->c, RPOST_QPT_UD, 0));
}

/* More than a page of everything, and a device's queue of its own. */
static int create_large(struct scene *s)
{
	struct rpost_create_qp cmd = {
		.size = sizeof(cmd),
		.pd = s->c.pd,
		.send_cq = s->c.cq.cmd.handle,
		.recv_cq = s->c.cq.cmd.handle,
		.max_send_wr = 500,
		.max_recv_wr = 500,
		.max_send_sge = 8,
		.max_recv_sge = 8,
		.max_inline_data = 128,
		.qp_type = RPOST_QPT_RC,
	};
	int ret = rp_ioctl(s->c.fd, RPOST_IOC_CREATE_QP, &cmd);

	s->c.qp = cmd.handle;
	return made_qp(s, ret);
}

static int destroy_qp(struct scene *s)
{
	int ret = rp_destroy(s->c.fd, RPOST_OBJ_QP, s->c.qp);

	if (!ret)
		s->c.qp = 0;
	return ret;
}

static int bring_up(struct scene *s)
{
	struct rpost_qp_attr attr = rp_init_attr(RPOST_QPT_RC,
						 s->addr.port_num);

	RP_TRY(rp_modify(&s->c, &attr));
	attr = rp_rtr_attr(RPOST_QPT_RC, &s->addr, s->c.qp_num);
	RP_TRY(rp_modify(&s->c, &attr));
	attr = rp_rts_attr(RPOST_QPT_RC);
	return rp_modify(&s->c, &attr);
}

/* With receives in it. */
static int bring_up_new(struct scene *s)
{
	int i;

	RP_TRY(create_qp(s));
	RP_TRY(bring_up(s));
	for (i = 0; i < 4; i++)
		RP_TRY(rp_post_recv(&s->c, i, NULL, 0, 0));
	return 0;
}

static int setup_send_ring(struct scene *s)
{
	struct rpost_setup_send_ring cmd = {
		.size = sizeof(cmd), .qp = s->c.qp, .bytes = 4096,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_SETUP_SEND_RING, &cmd);
}

static int enter_send_ring(struct scene *s)
{
	struct rpost_enter_send_ring cmd = { .size = sizeof(cmd), .qp = s->c.qp };

	return rp_ioctl(s->c.fd, RPOST_IOC_ENTER_SEND_RING, &cmd);
}

static int create_with_ring(struct scene *s)
{
	RP_TRY(create_qp(s));
	return setup_send_ring(s);
}

static int reset(struct scene *s)
{
	return rp_move(&s->c, RPOST_QPS_RESET);
}

/* ---------------------------------------------------------- other objects */

static int create_srq(struct scene *s)
{
	struct rpost_create_srq cmd;
	int ret = rp_create_srq(s->c.fd, s->c.pd, 16, &cmd);

	s->made = cmd.handle;
	return ret;
}

static int destroy_srq(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_SRQ, s->made);
}

static int modify_srq(struct scene *s)
{
	return rp_srq_limit(s->c.fd, s->srq.handle, 0);
}

static int create_ah(struct scene *s)
{
	return rp_create_ah(s->c.fd, s->c.pd, &s->addr, &s->made);
}

static int destroy_ah(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_AH, s->made);
}

static int attach_mcast(struct scene *s)
{
	return rp_mcast(s->c.fd, RPOST_IOC_ATTACH_MCAST, s->c.qp, 3);
}

static int detach_mcast(struct scene *s)
{
	return rp_mcast(s->c.fd, RPOST_IOC_DETACH_MCAST, s->c.qp, 3);
}

/* ------------------------------------------------------------------ posts */

static int post_sends(struct scene *s, void *block, uint32_t bytes,
		      uint32_t count)
{
	uint32_t posted = 0;
	int ret = rp_post(s->c.fd, RPOST_IOC_POST_SEND, s->c.qp, block, bytes,
			  count, &posted);

	s->posted += posted;
	return ret;
}

/* Inline data. */
static struct rpost_send_wr inline_write(struct scene *s, uint32_t len)
{
	return (struct rpost_send_wr) {
		.size = sizeof(struct rpost_send_wr) + len,
		.opcode = RPOST_WR_RDMA_WRITE,
		.send_flags = RPOST_SEND_SIGNALED | RPOST_SEND_INLINE,
		.inline_len = len,
		.rkey = s->mr.rkey,
		.remote_addr = (uintptr_t)s->buf,
	};
}

struct inline_send {
	struct rpost_send_wr wr;
	char data[RP_INLINE];
};

static int post_inline(struct scene *s, uint32_t count)
{
	struct inline_send block[RP_DEPTH];
	uint32_t i;

	for (i = 0; i < count; i++) {
		block[i].wr = inline_write(s, sizeof(block[i].data));
		memset(block[i].data, i, sizeof(block[i].data));
	}
	return post_sends(s, block, count * sizeof(block[0]), count);
}

/* Memory for a batch of these is kept from one post to the next. */
static int post_many(struct scene *s)
{
	return post_inline(s, MANY);
}

/* They do not fit into it. */
static int post_long(struct scene *s)
{
	return post_inline(s, RP_DEPTH);
}

static int post_one(struct scene *s)
{
	struct rpost_send_wr wr = inline_write(s, 0);

	wr.send_flags = RPOST_SEND_SIGNALED;
	return post_sends(s, &wr, sizeof(wr), 1);
}

static int post_datagram(struct scene *s)
{
	struct rp_send send = rp_empty_datagram(s->ah, s->c.qp_num, 1);

	return post_sends(s, &send, send.wr.size, 1);
}

static int complete_all(struct scene *s)
{
	struct rpost_wc wc;

	for (; s->posted; s->posted--) {
		if (rp_wait_cq(&s->c.cq, &wc) != 1)
			return -ETIME;
		if (wc.status)
			return -EIO;
	}
	return 0;
}

static int post_receives(struct scene *s, unsigned long nr, uint32_t handle)
{
	struct rpost_recv_wr block[8] = { 0 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(block); i++)
		block[i].size = sizeof(block[i]);
	return rp_post(s->c.fd, nr, handle, block, sizeof(block),
		       ARRAY_SIZE(block), NULL);
}

static int post_recvs(struct scene *s)
{
	return post_receives(s, RPOST_IOC_POST_RECV, s->c.qp);
}

static int post_srq_recvs(struct scene *s)
{
	return post_receives(s, RPOST_IOC_POST_SRQ_RECV, s->made);
}

/* ------------------------------------------------------- reads of channels */

/* Queue pairs that complete with events; @fd is for asynchronous ones. */
static int join_with_channels(struct scene *s)
{
	int channel = rp_comp_channel(s->c.fd);

	if (channel < 0)
		return channel;
	s->made = channel;
	rp_unmap_cq(&s->c.cq);
	RP_TRY(rp_create_cq(s->c.fd, s->c.device, 64, channel, &s->c.cq));
	RP_TRY(create_async(s));
	RP_TRY(fcntl(channel, F_SETFL, O_NONBLOCK));
	RP_TRY(fcntl(s->fd, F_SETFL, O_NONBLOCK));
	RP_TRY(rp_create_own(&s->c, RPOST_QPT_RC, s->srq.handle));
	RP_TRY(rp_create_own(&s->s, RPOST_QPT_RC, 0));
	RP_TRY(rp_bring_up(&s->c, RPOST_QPT_RC, s->s.qp_num));
	return rp_bring_up(&s->s, RPOST_QPT_RC, s->c.qp_num);
}

static int wait_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int ready = poll(&pfd, 1, TEST_TIMEOUT_MS);

	return ready == 1 ? 0 : ready ? -errno : -ETIME;
}

static int make_comp_event(struct scene *s)
{
	RP_TRY(arm_cq(s));
	RP_TRY(post_one(s));
	return wait_readable(s->made);
}

static int read_comp_event(struct scene *s)
{
	struct rpost_comp_event events[4];

	return read(s->made, events, sizeof(events)) < 0 ? -errno : 0;
}

/* One message, by which the limit of the shared receive queue is reached. */
static int make_async_event(struct scene *s)
{
	RP_TRY(rp_reach_limit(&s->s, &s->c, s->srq.handle));
	return wait_readable(s->fd);
}

static int read_async_event(struct scene *s)
{
	struct rpost_async_event events[4];

	return read(s->fd, events, sizeof(events)) < 0 ? -errno : 0;
}

static int poll_channels(struct scene *s)
{
	struct pollfd pfds[] = {
		{ .fd = s->made, .events = POLLIN },
		{ .fd = s->fd, .events = POLLIN },
		{ .fd = s->c.channel, .events = POLLIN },
	};

	return poll(pfds, ARRAY_SIZE(pfds), 0) < 0 ? -errno : 0;
}

#include "failnth_cm.h"

#endif /* RPOST_FAILNTH_STEPS_H */
