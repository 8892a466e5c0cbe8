// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Steps of commands other than posts and connections. */
#define _GNU_SOURCE
#include "../mr/odp_pair.h"
#include "failnth_steps.h"
#include "udmabuf.h"

#define BUF_BYTES	(300 * 4096)
#define DMABUF_BYTES	(16 * 4096)

int scene_init(struct scene *s)
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

void scene_close(struct scene *s)
{
	close(s->other);
	rp_end_close(&s->c);
	rp_end_close(&s->s);
}

/* ------------------------------------------- calls without harm, by the list */

int fill_command(struct scene *s)
{
	return env_fill(&s->env, s->cmd, s->filled);
}

int run_command(struct scene *s)
{
	memcpy(s->arg, s->filled, s->cmd->size);
	return rp_ioctl(env_fd(&s->env, s->cmd), s->cmd->nr, s->arg);
}

/* Destroy the object, or close the channel, that the command made. */
int undo_command(struct scene *s)
{
	const struct field *object = made_object(s->cmd);
	const struct field *channel = made_channel(s->cmd);

	if (object)
		return rp_destroy(s->env.end.fd, object->reg,
				  *(uint32_t *)(s->arg + object->offset));
	if (channel && close(*(int *)(s->arg + channel->offset)))
		return -errno;
	return 0;
}

/* ------------------------------------------------------ files and channels */

static int keep_fd(struct scene *s, int fd)
{
	s->fd = fd;
	return fd < 0 ? fd : 0;
}

int open_file(struct scene *s)
{
	int fd = rp_open();

	return keep_fd(s, fd < 0 ? -errno : fd);
}

int close_file(struct scene *s)
{
	return close(s->fd) ? -errno : 0;
}

/*
 * The table of handles grows with the 64th object: create a few objects less,
 * then a few more.  The table does not shrink, so each sweep needs a new file.
 */
#define BEFORE_GROWTH	60
#define IN_GROWTH	8

int open_nearly_full(struct scene *s)
{
	int i;

	RP_TRY(open_file(s));
	s->channel = rp_event_channel(s->fd);
	RP_TRY(s->channel < 0 ? s->channel : 0);
	for (i = 0; i < BEFORE_GROWTH; i++)
		RP_TRY(rp_create_id(s->fd, s->channel, &s->made));
	return 0;
}

int grow_handles(struct scene *s)
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

int close_full(struct scene *s)
{
	close(s->channel);
	return close_file(s);
}

int create_comp_channel(struct scene *s)
{
	return keep_fd(s, rp_comp_channel(s->c.fd));
}

int create_async(struct scene *s)
{
	return keep_fd(s, rp_async_channel(s->c.fd, s->c.device));
}

/* Connect two ends, with posted receives and a region. */
int open_busy(struct scene *s)
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

int close_busy(struct scene *s)
{
	return close_end(&s->busy[0]);
}

int close_other(struct scene *s)
{
	return close_end(&s->busy[1]);
}

int map_ring(struct scene *s)
{
	s->map = mmap(NULL, s->c.cq.cmd.mmap_size, PROT_READ | PROT_WRITE,
		      MAP_SHARED, s->c.fd, s->c.cq.cmd.mmap_offset);
	return s->map == MAP_FAILED ? -errno : 0;
}

int unmap_ring(struct scene *s)
{
	return munmap(s->map, s->c.cq.cmd.mmap_size) ? -errno : 0;
}

/* ------------------------------------------------------ domains, regions */

int alloc_pd(struct scene *s)
{
	return rp_alloc_pd(s->c.fd, s->c.device, &s->made);
}

int destroy_pd(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_PD, s->made);
}

static int reg(struct scene *s, void *addr, uint64_t length, uint32_t access)
{
	struct rpost_reg_mr mr = rp_mr(s->c.pd, addr, length, RPOST_ACCESS_LOCAL_WRITE | access);
	int ret;

	mr.flags = RPOST_MR_NO_CACHE;
	ret = rp_ioctl(s->c.fd, RPOST_IOC_REG_MR, &mr);
	s->made = mr.handle;
	s->lkey = mr.lkey;
	return ret;
}

int reg_mr(struct scene *s)
{
	return reg(s, s->buf, BUF_BYTES, 0);
}

int destroy_mr(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_MR, s->made);
}

int map_untouched(struct scene *s)
{
	s->map = rp_pages(2 * 4096);
	return s->map ? 0 : -ENOMEM;
}

int reg_untouched(struct scene *s)
{
	return reg(s, s->map, 2 * 4096, 0);
}

/* Register memory that may be kept. */
int reg_map(struct scene *s)
{
	struct rpost_reg_mr mr;
	int ret = rp_reg_mr(s->c.fd, s->c.pd, s->map, 2 * 4096,
			    RPOST_ACCESS_LOCAL_WRITE, &mr);

	s->made = mr.handle;
	return ret;
}

/* Memory that will be kept after its next registration. */
int map_seen(struct scene *s)
{
	RP_TRY(map_untouched(s));
	RP_TRY(reg_map(s));
	return destroy_mr(s);
}

int map_registered(struct scene *s)
{
	RP_TRY(map_seen(s));
	return reg_map(s);
}

int map_kept(struct scene *s)
{
	RP_TRY(map_registered(s));
	return destroy_mr(s);
}

/* A thread of the kernel gives a region back that was kept. */
int unmap_kept(struct scene *s)
{
	uint64_t end = rp_now_ms() + TEST_TIMEOUT_MS;

	if (munmap(s->map, 2 * 4096))
		return -errno;
	while (rp_debug_number("objects", "watch") > 0) {
		if (rp_now_ms() > end)
			return -ETIME;
		usleep(1000);
	}
	return 0;
}

/* Undo reg_map(), also if it has failed. */
int end_map(struct scene *s)
{
	if (s->made)
		RP_TRY(destroy_mr(s));
	return unmap_kept(s);
}

int destroy_untouched(struct scene *s)
{
	RP_TRY(destroy_mr(s));
	return munmap(s->map, 2 * 4096) ? -errno : 0;
}

bool have_on_demand(struct scene *s)
{
	struct rpost_query_device dev;

	return !odp_allow(true) && !rp_query_device(s->c.fd, s->c.device, &dev) &&
	       dev.odp_general_caps;
}

int reg_on_demand(struct scene *s)
{
	return reg(s, s->buf, BUF_BYTES, RPOST_ACCESS_ON_DEMAND);
}

static int advise(struct scene *s, uint32_t lkey)
{
	struct rpost_sge sge = {
		.addr = (uintptr_t)s->buf, .length = BUF_BYTES, .lkey = lkey,
	};
	struct rpost_advise_mr cmd = {
		.size = sizeof(cmd),
		.flags = RPOST_ADVISE_FLUSH,
		.pd = s->c.pd,
		.advice = RPOST_ADVICE_PREFETCH_WRITE,
		.sges = (uintptr_t)&sge,
		.num_sge = 1,
	};

	return rp_ioctl(s->c.fd, RPOST_IOC_ADVISE_MR, &cmd);
}

int advise_mr(struct scene *s)
{
	return advise(s, s->lkey);
}

/* No region has the key. */
int advise_nothing(struct scene *s)
{
	int ret = advise(s, 0);

	return ret == -EFAULT ? 0 : ret ? ret : -EPROTO;
}

static int reg_fd(struct scene *s, int fd)
{
	struct rpost_reg_mr mr = {
		.size = sizeof(mr), .pd = s->c.pd,
		.access = RPOST_ACCESS_LOCAL_WRITE, .length = DMABUF_BYTES, .fd = fd,
	};
	int ret = rp_ioctl(s->c.fd, RPOST_IOC_REG_DMABUF_MR, &mr);

	s->made = mr.handle;
	return ret;
}

/* Call without a dma-buf. */
int ask_dmabuf(struct scene *s)
{
	int ret = reg_fd(s, -1);

	return ret == -EBADF || ret == -EOPNOTSUPP ? 0 : ret ? ret : -EPROTO;
}

/* Make a dma-buf, and see whether the device takes it. */
bool have_dmabuf(struct scene *s)
{
	const char *reason;

	s->fd = udmabuf(DMABUF_BYTES, &reason);
	return s->fd >= 0 && !reg_dmabuf(s) && !destroy_mr(s);
}

int reg_dmabuf(struct scene *s)
{
	return reg_fd(s, s->fd);
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

int create_cq(struct scene *s)
{
	return create_cq_with(s, -1, 0);
}

int create_cq_channel(struct scene *s)
{
	return create_cq_with(s, s->fd, 0);
}

int create_small_cq(struct scene *s)
{
	return create_cq_with(s, -1, RPOST_CQ_SMALL_ENTRIES |
				     RPOST_CQ_SHARED_PAGE);
}

int destroy_cq(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_CQ, s->made);
}

int destroy_cq_channel(struct scene *s)
{
	if (s->made)
		RP_TRY(destroy_cq(s));
	return close_file(s);
}

/* rxe cannot delay events. */
int modify_cq(struct scene *s)
{
	struct rpost_modify_cq cmd = {
		.size = sizeof(cmd), .handle = s->made, .period_us = 1,
	};
	int ret = rp_ioctl(s->c.fd, RPOST_IOC_MODIFY_CQ, &cmd);

	return ret == -EOPNOTSUPP ? 0 : ret;
}

int arm_cq(struct scene *s)
{
	return rp_arm_cq(&s->c.cq, 0);
}

/* ------------------------------------------------------------ queue pairs */

/* Keep the handle only if the queue pair exists. */
int made_qp(struct scene *s, int ret)
{
	if (ret)
		s->c.qp = 0;
	return ret;
}

int create_qp(struct scene *s)
{
	return made_qp(s, rp_create_own(&s->c, RPOST_QPT_RC, 0));
}

int create_qp_with_srq(struct scene *s)
{
	return made_qp(s, rp_create_own(&s->c, RPOST_QPT_RC, s->srq.handle));
}

int create_ud(struct scene *s)
{
	return made_qp(s, rp_create_own(&s->c, RPOST_QPT_UD, 0));
}

/* Needs more than a page for each array, and a device queue of its own. */
int create_large(struct scene *s)
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

int destroy_qp(struct scene *s)
{
	int ret = rp_destroy(s->c.fd, RPOST_OBJ_QP, s->c.qp);

	if (!ret)
		s->c.qp = 0;
	return ret;
}

int bring_up(struct scene *s)
{
	struct rpost_qp_attr attr = rp_init_attr(RPOST_QPT_RC,
						 s->addr.port_num);

	RP_TRY(rp_modify(&s->c, &attr));
	attr = rp_rtr_attr(RPOST_QPT_RC, &s->addr, s->c.qp_num);
	RP_TRY(rp_modify(&s->c, &attr));
	attr = rp_rts_attr(RPOST_QPT_RC);
	return rp_modify(&s->c, &attr);
}

/* Bring up a queue pair and post receives. */
int bring_up_new(struct scene *s)
{
	int i;

	RP_TRY(create_qp(s));
	RP_TRY(bring_up(s));
	for (i = 0; i < 4; i++)
		RP_TRY(rp_post_recv(&s->c, i, NULL, 0, 0));
	return 0;
}

int count_wrs(struct scene *s)
{
	struct rpost_count_wrs cmd;

	return rp_count_wrs(&s->c, RPOST_COUNT_WRS_START, &cmd);
}

int reset(struct scene *s)
{
	return rp_move(&s->c, RPOST_QPS_RESET);
}

/* ---------------------------------------------------------- other objects */

int create_srq(struct scene *s)
{
	struct rpost_create_srq cmd;
	int ret = rp_create_srq(s->c.fd, s->c.pd, 16, &cmd);

	s->made = cmd.handle;
	return ret;
}

int destroy_srq(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_SRQ, s->made);
}

int create_ah(struct scene *s)
{
	return rp_create_ah(s->c.fd, s->c.pd, &s->addr, &s->made);
}

int destroy_ah(struct scene *s)
{
	return rp_destroy(s->c.fd, RPOST_OBJ_AH, s->made);
}

int attach_mcast(struct scene *s)
{
	return rp_mcast(s->c.fd, RPOST_IOC_ATTACH_MCAST, s->c.qp, 3);
}

int detach_mcast(struct scene *s)
{
	return rp_mcast(s->c.fd, RPOST_IOC_DETACH_MCAST, s->c.qp, 3);
}
