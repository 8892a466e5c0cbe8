// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A kernel module for the tests: makes queries for routes slow, and their
 * cancellation, so that others can destroy the id meanwhile.  The first slow
 * cancellation makes queries fast again.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>

/* RDMA_CM_ROUTE_QUERY in drivers/infiniband/core/cma_priv.h */
#define SLOW_ROUTES_QUERY	3

static unsigned int slow_routes_query_ms;
module_param_named(query_ms, slow_routes_query_ms, uint, 0600);
MODULE_PARM_DESC(query_ms, "Milliseconds for a query; a slow cancellation sets 0");

static unsigned int slow_routes_cancel_ms;
module_param_named(cancel_ms, slow_routes_cancel_ms, uint, 0600);
MODULE_PARM_DESC(cancel_ms, "Milliseconds for a cancellation");

/* cma handles one query after the other. */
static int slow_routes_work(struct kprobe *probe, struct pt_regs *regs)
{
	mdelay(READ_ONCE(slow_routes_query_ms));
	return 0;
}

static int slow_routes_cancel(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int ms = READ_ONCE(slow_routes_cancel_ms);

	if (!ms || regs_get_kernel_argument(regs, 1) != SLOW_ROUTES_QUERY)
		return 0;
	WRITE_ONCE(slow_routes_query_ms, 0);
	mdelay(ms);
	return 0;
}

static struct kprobe slow_routes_probes[] = {
	{ .symbol_name = "cma_work_handler", .pre_handler = slow_routes_work },
	{ .symbol_name = "cma_cancel_operation",
	  .pre_handler = slow_routes_cancel },
};

static struct kprobe *slow_routes_list[] = {
	&slow_routes_probes[0], &slow_routes_probes[1],
};

static int __init slow_routes_init(void)
{
	return register_kprobes(slow_routes_list, ARRAY_SIZE(slow_routes_list));
}
module_init(slow_routes_init);

static void __exit slow_routes_exit(void)
{
	unregister_kprobes(slow_routes_list, ARRAY_SIZE(slow_routes_list));
}
module_exit(slow_routes_exit);

MODULE_DESCRIPTION("Slow queries for routes, for the selftests of rdma_post");
MODULE_AUTHOR("The rdma_post developers");
MODULE_LICENSE("Dual BSD/GPL");
