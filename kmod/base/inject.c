// SPDX-License-Identifier: GPL-2.0
/*
 * Fault injection for the selftests: each point has a directory
 * /sys/kernel/debug/rdma_post/fail_NAME with the usual attributes (see
 * Documentation/fault-injection of the kernel); "injected" counts their
 * failures.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/fault-inject.h>
#include <linux/seq_file.h>

#include "base/inject.h"

static const char * const rpost_inject_names[RPOST_NUM_INJECT] = {
	[RPOST_INJECT_BACKLOG] = "fail_backlog",
	[RPOST_INJECT_REQUEST] = "fail_request",
	[RPOST_INJECT_RING] = "fail_ring",
	[RPOST_INJECT_COMPLETION] = "fail_completion",
	[RPOST_INJECT_ASYNC] = "fail_async",
	[RPOST_INJECT_DRAIN] = "fail_drain",
	[RPOST_INJECT_DEREG] = "fail_dereg",
	[RPOST_INJECT_REG_POST] = "fail_reg_post",
	[RPOST_INJECT_REG_WC] = "fail_reg_wc",
	[RPOST_INJECT_REG_WAIT] = "fail_reg_wait",
	[RPOST_INJECT_DEVICE] = "fail_device",
	[RPOST_INJECT_DEVICE_ID] = "fail_device_id",
	[RPOST_INJECT_CHARGE] = "fail_charge",
	[RPOST_INJECT_DOMAIN] = "fail_domain",
};

static struct fault_attr rpost_inject_attrs[RPOST_NUM_INJECT];
static atomic_t rpost_injected[RPOST_NUM_INJECT];

/* Return true if this point is to fail. */
bool rpost_inject(enum rpost_inject_point point)
{
	/*
	 * A sweep with fail-nth takes a region that stays after a close for a
	 * leak, and cannot tell a completion that was lost from a late one.
	 */
	if (current->fail_nth && (point == RPOST_INJECT_DEREG ||
				  point == RPOST_INJECT_COMPLETION ||
				  point == RPOST_INJECT_RING))
		return false;
	if (!should_fail(&rpost_inject_attrs[point], 1))
		return false;
	atomic_inc(&rpost_injected[point]);
	return true;
}

static int rpost_injected_show(struct seq_file *s, void *unused)
{
	unsigned int i;

	for (i = 0; i < RPOST_NUM_INJECT; i++)
		seq_printf(s, "%s %d\n", rpost_inject_names[i],
			   atomic_read(&rpost_injected[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rpost_injected);

/*
 * Let root inject failures.  Nothing fails before root asks for it.  parent is the
 * module's directory in debugfs.
 */
void rpost_inject_init(struct dentry *parent)
{
	static const struct fault_attr none = FAULT_ATTR_INITIALIZER;
	unsigned int i;

	for (i = 0; i < RPOST_NUM_INJECT; i++) {
		rpost_inject_attrs[i] = none;
		/* Do not log injected failures. */
		rpost_inject_attrs[i].verbose = 0;
		fault_create_debugfs_attr(rpost_inject_names[i], parent,
					  &rpost_inject_attrs[i]);
	}
	debugfs_create_file("injected", 0400, parent, NULL,
			    &rpost_injected_fops);
}
