// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Lets each allocation and each user copy of each command fail, one after the
 * other, and then those of a whole life of a client and a server.  A failure
 * means that a command reports the wrong error, leaves something behind, or
 * does not work the next time.
 *
 * Needs root and a kernel with fault injection.  RPOST_TEST_NTH is the failure
 * point at which sweeps begin; with it, sweeps print more.
 */
#include <kselftest_harness.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "../mr/odp_pair.h"
#include "failnth_steps.h"
#include "failnth_sweep.h"

/* Takes the place of libc's ioctl() in all code of this program. */
int ioctl(int fd, unsigned long nr, ...)
{
	va_list args;
	void *arg;

	va_start(args, nr);
	arg = va_arg(args, void *);
	va_end(args);
	note_command(nr);
	return syscall(SYS_ioctl, fd, nr, arg);
}

FIXTURE(fail) {
	struct scene s;
	bool able;
};

FIXTURE_SETUP(fail)
{
	self->able = have_injection();
	if (!self->able)
		return;
	ASSERT_EQ(0, scene_init(&self->s));
	rp_mute = !getenv("RPOST_TEST_NTH");
}

FIXTURE_TEARDOWN(fail)
{
	if (!self->able)
		return;
	close(nth_fd);
	scene_close(&self->s);
}

#define NEED_INJECTION()						\
	do {								\
		if (!self->able)					\
			SKIP(return, "needs root and a kernel with fault injection"); \
	} while (0)

#define SWEEP_ALL(...)							\
	do {								\
		const struct sweep sweeps[] = { __VA_ARGS__ };		\
		unsigned int n;						\
									\
		for (n = 0; n < ARRAY_SIZE(sweeps); n++)		\
			EXPECT_LT(0, sweep(&sweeps[n], &self->s));	\
	} while (0)

/* The work request of a fast registration failed, or was lost. */
#define REG_SAYS	{ EIO, ETIMEDOUT }

/* Sweep each command of the list that can succeed in a call of its own. */
TEST_F_TIMEOUT(fail, commands, 900)
{
	struct scene *s = &self->s;

	NEED_INJECTION();
	for_each_command(s->cmd) {
		const bool reg = s->cmd->nr == RPOST_IOC_REG_MR;
		const struct sweep sw = {
			.name = s->cmd->name, .before = fill_command,
			.step = run_command, .after = undo_command, .again = true,
			.may_say = { reg ? EIO : 0, reg ? ETIMEDOUT : 0 },
		};

		/* fail.ids sweeps commands with events, with an id for each. */
		if (s->cmd->want || s->cmd->event)
			continue;
		ASSERT_EQ(0, env_init(&s->env));
		EXPECT_LT(0, sweep(&sw, s));
		env_close(&s->env);
	}
}

TEST_F(fail, files)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "open", .step = open_file, .after = close_file,
		    .again = true },
		  { .name = "close", .before = open_busy, .step = close_busy,
		    .after = close_other },
		  { .name = "more handles", .before = open_nearly_full,
		    .step = grow_handles, .after = close_full, .again = true },
		  { .name = "map a ring", .step = map_ring,
		    .after = unmap_ring, .again = true });
}

TEST_F(fail, domains_and_regions)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "destroy domain", .before = alloc_pd,
		    .step = destroy_pd, .again = true },
		  { .name = "register memory", .step = reg_mr,
		    .after = destroy_mr, .again = true, .may_say = REG_SAYS },
		  { .name = "register untouched memory",
		    .before = map_untouched, .step = reg_untouched,
		    .after = destroy_untouched, .again = true,
		    .may_say = REG_SAYS },
		  { .name = "destroy region", .before = reg_mr,
		    .step = destroy_mr, .again = true });
}

TEST_F(fail, cache)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "register memory to keep it", .before = map_seen,
		    .step = reg_map, .after = end_map, .may_say = REG_SAYS },
		  { .name = "keep region", .before = map_registered,
		    .step = destroy_mr, .after = unmap_kept, .again = true },
		  { .name = "register kept memory", .before = map_kept,
		    .step = reg_map, .after = end_map, .may_say = REG_SAYS });
}

TEST_F(fail, on_demand)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "advise nothing", .step = advise_nothing,
		    .again = true });
	if (have_on_demand(&self->s))
		SWEEP_ALL({ .name = "register on demand",
			    .step = reg_on_demand, .after = destroy_mr,
			    .again = true },
			  { .name = "advise", .before = reg_on_demand,
			    .step = advise_mr, .after = destroy_mr,
			    .again = true },
			  { .name = "destroy region on demand",
			    .before = reg_on_demand, .step = destroy_mr,
			    .again = true });
	EXPECT_EQ(0, odp_allow(false));
}

TEST_F(fail, dma_bufs)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "ask for dma-bufs", .step = ask_dmabuf,
		    .again = true });
	if (!have_dmabuf(&self->s))
		return;
	SWEEP_ALL({ .name = "register a dma-buf", .step = reg_dmabuf,
		    .after = destroy_mr, .again = true, .may_say = REG_SAYS },
		  { .name = "destroy region of a dma-buf", .before = reg_dmabuf,
		    .step = destroy_mr, .again = true });
	close(self->s.fd);
}

TEST_F(fail, completion_queues)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "create completion queue", .step = create_cq,
		    .after = destroy_cq, .again = true },
		  { .name = "create small completion queue",
		    .step = create_small_cq, .after = destroy_cq,
		    .again = true },
		  { .name = "create completion queue with channel",
		    .before = create_comp_channel, .step = create_cq_channel,
		    .after = destroy_cq_channel },
		  { .name = "delay events", .before = create_cq,
		    .step = modify_cq, .after = destroy_cq, .again = true },
		  { .name = "destroy completion queue", .before = create_cq,
		    .step = destroy_cq, .again = true });
}

TEST_F(fail, queue_pairs)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "create queue pair", .step = create_qp,
		    .after = destroy_qp, .again = true },
		  { .name = "create queue pair with shared receive queue",
		    .step = create_qp_with_srq, .after = destroy_qp,
		    .again = true },
		  { .name = "create datagram queue pair", .step = create_ud,
		    .after = destroy_qp, .again = true },
		  { .name = "create large queue pair", .step = create_large,
		    .after = destroy_qp, .again = true },
		  { .name = "create queue pair of an id",
		    .before = resolve_client, .step = create_qp_of_id,
		    .after = end_client, .again = true },
		  { .name = "destroy queue pair", .before = bring_up_new,
		    .step = destroy_qp, .again = true },
		  { .name = "bring up", .before = create_qp,
		    .step = bring_up, .after = destroy_qp },
		  { .name = "count work requests", .before = create_qp,
		    .step = count_wrs, .after = destroy_qp, .again = true },
		  /*
		   * The module's own injection, where the device does not
		   * flush, also fails.
		   */
		  { .name = "reset", .before = bring_up_new, .step = reset,
		    .after = destroy_qp, .again = true,
		    .may_say = { ETIMEDOUT } });
}

TEST_F(fail, other_objects)
{
	NEED_INJECTION();
	ASSERT_EQ(0, create_ud(&self->s));
	SWEEP_ALL({ .name = "destroy shared receive queue",
		    .before = create_srq, .step = destroy_srq, .again = true },
		  { .name = "destroy address handle", .before = create_ah,
		    .step = destroy_ah, .again = true },
		  { .name = "attach to group", .step = attach_mcast,
		    .after = detach_mcast, .again = true },
		  { .name = "detach from group", .before = attach_mcast,
		    .step = detach_mcast, .again = true });
}

TEST_F(fail, posts)
{
	long pages = rp_module_number("parameters/mr_cache_pages");
	struct scene *s = &self->s;

	NEED_INJECTION();
	ASSERT_EQ(0, rp_own_join(&s->c, &s->s, RPOST_QPT_RC));
	SWEEP_ALL({ .name = "post many sends", .step = post_many,
		    .after = complete_all, .again = true },
		  { .name = "post a long block", .step = post_long,
		    .after = complete_all, .again = true },
		  { .name = "post one send", .step = post_one,
		    .after = complete_all, .again = true });
	/* Regions that are kept would count as left behind. */
	ASSERT_EQ(0, rp_set_number("mr_cache_pages", 0));
	rp_qp_flags = RPOST_QP_ANY_MEMORY;
	ASSERT_EQ(0, destroy_qp(s));
	ASSERT_EQ(0, rp_destroy(s->s.fd, RPOST_OBJ_QP, s->s.qp));
	ASSERT_EQ(0, rp_own_join(&s->c, &s->s, RPOST_QPT_RC));
	SWEEP_ALL({ .name = "post new memory", .before = map_untouched,
		    .step = post_memory, .after = complete_memory, .again = true,
		    .may_say = REG_SAYS },
		  { .name = "post the same memory", .step = post_memory_again,
		    .after = complete_pages, .again = true, .may_say = REG_SAYS },
		  { .name = "post a copy", .step = post_copy,
		    .after = complete_all, .again = true },
		  { .name = "post receives into memory", .step = post_recv_memory,
		    .after = renew_any, .again = true, .may_say = REG_SAYS });
	rp_qp_flags = 0;
	ASSERT_EQ(0, rp_set_number("mr_cache_pages", pages));
	ASSERT_EQ(0, destroy_qp(s));
	ASSERT_EQ(0, create_ud(s));
	ASSERT_EQ(0, rp_bring_up(&s->c, RPOST_QPT_UD, 0));
	SWEEP_ALL({ .name = "post datagram", .step = post_datagram,
		    .after = complete_all, .again = true });
	ASSERT_EQ(0, destroy_qp(s));
	SWEEP_ALL({ .name = "post receives", .before = bring_up_new,
		    .step = post_recvs, .after = destroy_qp, .again = true },
		  { .name = "post shared receives", .before = create_srq,
		    .step = post_srq_recvs, .after = destroy_srq,
		    .again = true });
}

TEST_F(fail, reads)
{
	struct scene *s = &self->s;

	NEED_INJECTION();
	ASSERT_EQ(0, join_with_channels(s));
	SWEEP_ALL({ .name = "read completion event",
		    .before = make_comp_event, .step = read_comp_event,
		    .after = complete_all, .again = true },
		  { .name = "read asynchronous event",
		    .before = make_async_event, .step = read_async_event,
		    .again = true },
		  { .name = "wait for channels", .step = poll_channels,
		    .again = true });
}

TEST_F(fail, ids)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "create datagram id", .step = create_ud_id,
		    .after = destroy_id, .again = true },
		  { .name = "destroy id", .before = create_bound_id,
		    .step = destroy_id, .again = true },
		  { .name = "set path", .before = resolve_client,
		    .step = set_path, .after = end_client, .again = true },
		  { .name = "migrate", .before = create_id,
		    .step = migrate_id, .after = destroy_id, .again = true },
		  { .name = "resolve address", .before = create_client_id,
		    .step = resolve_addr, .after = end_client, .again = true },
		  { .name = "resolve route", .before = resolve_client,
		    .step = resolve_route, .after = end_client,
		    .again = true },
		  { .name = "join group", .before = create_ud_bound,
		    .step = join_mcast, .after = destroy_id, .again = true },
		  { .name = "leave group", .before = joined_mcast,
		    .step = leave_mcast, .after = destroy_id, .again = true });
}

TEST_F(fail, events)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "get event", .before = event_waits,
		    .step = get_event, .after = end_client, .again = true },
		  { .name = "get connection request",
		    .before = request_waits, .step = get_request,
		    .after = end_both, .again = true });
}

TEST_F_TIMEOUT(fail, connections, 900)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "connect", .before = ready_to_connect,
		    .step = connect_client, .after = end_both,
		    .again = true },
		  { .name = "accept", .before = ready_to_accept,
		    .step = accept_server, .after = end_both },
		  { .name = "reject", .before = ready_to_accept,
		    .step = reject_server, .after = end_both },
		  { .name = "disconnect", .before = connect_both,
		    .step = disconnect_client, .after = end_both },
		  { .name = "notify", .before = connect_both,
		    .step = notify_server, .after = end_both, .again = true },
		  { .name = "attributes of a connection",
		    .before = ready_to_connect, .step = init_qp_attr,
		    .after = end_both, .again = true },
		  { .name = "establish", .before = ready_to_establish,
		    .step = establish_client, .after = end_both });
}

/*
 * Run both sides from open to close in one thread.  The connection manager does
 * not always repeat a message in time that it could not allocate: ETIME.  REG_MR says what
 * REG_SAYS lists.
 */
TEST_F_TIMEOUT(fail, whole_life, 1800)
{
	NEED_INJECTION();
	SWEEP_ALL({ .name = "life of client and server", .step = whole_life,
		    .whole = true, .may_say = { EPROTO, ETIME, EIO, ETIMEDOUT } });
}

/* The tests above have swept every command. */
TEST_F(fail, no_command_is_missing)
{
	const struct command *cmd;

	NEED_INJECTION();
	for_each_command(cmd) {
		EXPECT_TRUE(swept->commands[_IOC_NR(cmd->nr)])
			TH_LOG("%s has not been swept", cmd->name);
	}
	printf("# failure points swept: %u\n", swept->points);
}

TEST_HARNESS_MAIN
