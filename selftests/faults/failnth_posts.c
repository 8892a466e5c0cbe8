// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Steps of posts, and of reads from channels. */
#define _GNU_SOURCE
#include "failnth_steps.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define MANY		12

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

/* Make a write with @len bytes of inline data. */
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

/* The file keeps the memory for this block from one post to the next. */
int post_many(struct scene *s)
{
	return post_inline(s, MANY);
}

/* This block needs more memory than the file keeps. */
int post_long(struct scene *s)
{
	return post_inline(s, RP_DEPTH);
}

int post_one(struct scene *s)
{
	struct rpost_send_wr wr = inline_write(s, 0);

	wr.send_flags = RPOST_SEND_SIGNALED;
	return post_sends(s, &wr, sizeof(wr), 1);
}

int post_datagram(struct scene *s)
{
	struct rp_send send = rp_empty_datagram(s->ah, s->c.qp_num, 1);

	return post_sends(s, &send, send.wr.size, 1);
}

/* Write from @n places of @bytes that are not registered. */
static int post_places(struct scene *s, char *from, uint32_t n, uint32_t bytes)
{
	struct {
		struct rpost_send_wr wr;
		struct rpost_sge sges[2];
	} send = {
		.wr = {
			.size = sizeof(send.wr) + n * sizeof(send.sges[0]),
			.opcode = RPOST_WR_RDMA_WRITE,
			.send_flags = RPOST_SEND_SIGNALED,
			.num_sge = n,
			.rkey = s->mr.rkey,
			.remote_addr = (uintptr_t)s->buf,
		},
	};
	uint32_t i;

	for (i = 0; i < n; i++) {
		send.sges[i].addr = (uintptr_t)from + i * 4096;
		send.sges[i].length = bytes;
	}
	return post_sends(s, &send, send.wr.size, 1);
}

int post_memory(struct scene *s)
{
	return post_places(s, s->map, 2, 1000);
}

/* Pages of posts are given back by a thread of the kernel: wait for it. */
static int await_pages(struct scene *s)
{
	const long want = s->mr.length / 4096;
	int i;

	for (i = 0; i < 10000; i++) {
		if (rp_debug_number("objects", "pinned_pages") == want)
			return 0;
		usleep(1000);
	}
	return -ETIME;
}

int complete_memory(struct scene *s)
{
	RP_TRY(complete_all(s));
	if (munmap(s->map, 2 * 4096))
		return -errno;
	return await_pages(s);
}

int complete_pages(struct scene *s)
{
	RP_TRY(complete_all(s));
	return await_pages(s);
}

int post_memory_again(struct scene *s)
{
	return post_places(s, s->buf, 1, 1000);
}

int post_copy(struct scene *s)
{
	return post_places(s, s->buf, 1, RP_INLINE);
}

int post_recv_memory(struct scene *s)
{
	return rp_post_recv(&s->c, 1, s->buf, 1000, 0);
}

/* The receives go with the queue pair. */
int renew_any(struct scene *s)
{
	RP_TRY(destroy_qp(s));
	RP_TRY(await_pages(s));
	return bring_up_new(s);
}

int complete_all(struct scene *s)
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

int post_recvs(struct scene *s)
{
	return post_receives(s, RPOST_IOC_POST_RECV, s->c.qp);
}

int post_srq_recvs(struct scene *s)
{
	return post_receives(s, RPOST_IOC_POST_SRQ_RECV, s->made);
}

/* ------------------------------------------------------- reads of channels */

/* Connect with channels for both kinds of events; @fd is asynchronous. */
int join_with_channels(struct scene *s)
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

int wait_readable(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int ready = poll(&pfd, 1, TEST_TIMEOUT_MS);

	return ready == 1 ? 0 : ready ? -errno : -ETIME;
}

int make_comp_event(struct scene *s)
{
	RP_TRY(arm_cq(s));
	RP_TRY(post_one(s));
	return wait_readable(s->made);
}

int read_comp_event(struct scene *s)
{
	struct rpost_comp_event events[4];

	return read(s->made, events, sizeof(events)) < 0 ? -errno : 0;
}

/* Receive one message, so that the limit is reached. */
int make_async_event(struct scene *s)
{
	RP_TRY(rp_reach_limit(&s->s, &s->c, s->srq.handle));
	return wait_readable(s->fd);
}

int read_async_event(struct scene *s)
{
	struct rpost_async_event events[4];

	return read(s->fd, events, sizeof(events)) < 0 ? -errno : 0;
}

int poll_channels(struct scene *s)
{
	struct pollfd pfds[] = {
		{ .fd = s->made, .events = POLLIN },
		{ .fd = s->fd, .events = POLLIN },
		{ .fd = s->c.channel, .events = POLLIN },
	};

	return poll(pfds, ARRAY_SIZE(pfds), 0) < 0 ? -errno : 0;
}
