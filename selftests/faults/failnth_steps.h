/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The steps that failnth sweeps, except for commands that env_fill() can fill,
 * and the calls before and after them.  Each returns 0 or a negative errno.
 */
#ifndef FAILNTH_STEPS_H
#define FAILNTH_STEPS_H

#include "command_env.h"

/**
 * struct scene - the objects of the steps
 * @c: one side
 * @s: the other, with an open file of its own
 * @addr: this host's own address
 * @srq: a shared receive queue of @c
 * @ah: an address handle of @c
 * @mr: @buf, registered with @s
 * @buf: memory
 * @listener: an id of @s
 * @other: an event channel of @c
 * @made: the handle that the step has made
 * @lkey: of the region that the step has made
 * @fd: a file that the step has opened, or a dma-buf
 * @cq: a completion queue that the step has made
 * @map: memory that the step has mapped
 * @event: the last event
 * @posted: sends whose completions have not been seen
 * @busy: a pair of sides besides @c and @s
 * @cmd: the command that run_command() calls
 * @env: the objects of @cmd
 * @filled: its struct before the call
 * @arg: its struct after the call
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
	uint32_t lkey;
	int fd, channel;
	struct rp_cq cq;
	void *map;
	struct rpost_get_event event;
	uint32_t posted;
	struct rp_end busy[2];
	const struct command *cmd;
	struct env env;
	char filled[MAX_STRUCT] __attribute__((aligned(8)));
	char arg[MAX_STRUCT] __attribute__((aligned(8)));
};

int scene_init(struct scene *s);
void scene_close(struct scene *s);

/* ------------------------------------------- calls without harm, by the list */

int fill_command(struct scene *s);
int run_command(struct scene *s);
int undo_command(struct scene *s);

/* ------------------------------------------------------ files and channels */

int open_file(struct scene *s);
int close_file(struct scene *s);
int open_nearly_full(struct scene *s);
int grow_handles(struct scene *s);
int close_full(struct scene *s);
int create_comp_channel(struct scene *s);
int create_async(struct scene *s);
int open_busy(struct scene *s);
int close_busy(struct scene *s);
int close_other(struct scene *s);
int map_ring(struct scene *s);
int unmap_ring(struct scene *s);

/* ------------------------------------------------------ domains, regions */

int alloc_pd(struct scene *s);
int destroy_pd(struct scene *s);
int reg_mr(struct scene *s);
int destroy_mr(struct scene *s);
int map_untouched(struct scene *s);
int reg_untouched(struct scene *s);
int reg_map(struct scene *s);
int map_seen(struct scene *s);
int map_registered(struct scene *s);
int map_kept(struct scene *s);
int unmap_kept(struct scene *s);
int end_map(struct scene *s);
int destroy_untouched(struct scene *s);
bool have_on_demand(struct scene *s);
int reg_on_demand(struct scene *s);
int advise_mr(struct scene *s);
int advise_nothing(struct scene *s);
int ask_dmabuf(struct scene *s);
bool have_dmabuf(struct scene *s);
int reg_dmabuf(struct scene *s);

/* ------------------------------------------------------ completion queues */

int create_cq(struct scene *s);
int create_cq_channel(struct scene *s);
int create_small_cq(struct scene *s);
int destroy_cq(struct scene *s);
int destroy_cq_channel(struct scene *s);
int modify_cq(struct scene *s);
int arm_cq(struct scene *s);

/* ------------------------------------------------------------ queue pairs */

int made_qp(struct scene *s, int ret);
int create_qp(struct scene *s);
int create_qp_with_srq(struct scene *s);
int create_ud(struct scene *s);
int create_large(struct scene *s);
int destroy_qp(struct scene *s);
int bring_up(struct scene *s);
int bring_up_new(struct scene *s);
int count_wrs(struct scene *s);
int reset(struct scene *s);

/* ---------------------------------------------------------- other objects */

int create_srq(struct scene *s);
int destroy_srq(struct scene *s);
int create_ah(struct scene *s);
int destroy_ah(struct scene *s);
int attach_mcast(struct scene *s);
int detach_mcast(struct scene *s);

/* ------------------------------------------------------------------ posts */

int post_many(struct scene *s);
int post_long(struct scene *s);
int post_one(struct scene *s);
int post_datagram(struct scene *s);
int post_memory(struct scene *s);
int complete_memory(struct scene *s);
int complete_pages(struct scene *s);
int post_memory_again(struct scene *s);
int post_copy(struct scene *s);
int post_recv_memory(struct scene *s);
int renew_any(struct scene *s);
int complete_all(struct scene *s);
int post_recvs(struct scene *s);
int post_srq_recvs(struct scene *s);

/* ------------------------------------------------------- reads of channels */

int join_with_channels(struct scene *s);
int wait_readable(int fd);
int make_comp_event(struct scene *s);
int read_comp_event(struct scene *s);
int make_async_event(struct scene *s);
int read_async_event(struct scene *s);
int poll_channels(struct scene *s);

/* -------------------------------------------------------------------- ids */

int create_id(struct scene *s);
int create_ud_id(struct scene *s);
int destroy_id(struct scene *s);
int bind_id(struct scene *s);
int create_bound_id(struct scene *s);
int create_ud_bound(struct scene *s);
int migrate_id(struct scene *s);
int join_mcast(struct scene *s);
int joined_mcast(struct scene *s);
int leave_mcast(struct scene *s);

/* ------------------------------------------------------------ connections */

int end_client(struct scene *s);
int end_both(struct scene *s);
int create_client_id(struct scene *s);
int resolve_addr(struct scene *s);
int resolve_client(struct scene *s);
int create_qp_of_id(struct scene *s);
int resolve_route(struct scene *s);
int set_path(struct scene *s);
int event_waits(struct scene *s);
int get_event(struct scene *s);
int ready_to_connect(struct scene *s);
int connect_client(struct scene *s);
int request_waits(struct scene *s);
int get_request(struct scene *s);
int ready_to_accept(struct scene *s);
int accept_server(struct scene *s);
int reject_server(struct scene *s);
int connect_both(struct scene *s);
int disconnect_client(struct scene *s);
int notify_server(struct scene *s);
int init_qp_attr(struct scene *s);
int ready_to_establish(struct scene *s);
int establish_client(struct scene *s);

/* ----------------------------------------------------------- a whole life */

int life(struct scene *s, struct rp_end *c, struct rp_end *srv, int *channels);
int whole_life(struct scene *s);

#endif /* FAILNTH_STEPS_H */
