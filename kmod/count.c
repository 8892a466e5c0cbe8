// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of objects and resources, to find leaks:
 * /sys/kernel/debug/rdma_post/objects.
 */
#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "device.h"
#include "inject.h"

static const char * const rpost_count_names[RPOST_NUM_COUNTS] = {
	[RPOST_OBJ_PD] = "pd",
	[RPOST_OBJ_MR] = "mr",
	[RPOST_OBJ_CQ] = "cq",
	[RPOST_OBJ_QP] = "qp",
	[RPOST_OBJ_ID] = "id",
	[RPOST_OBJ_SRQ] = "srq",
	[RPOST_OBJ_AH] = "ah",
	[RPOST_COUNT_FILE] = "file",
	[RPOST_COUNT_EVENT_CHANNEL] = "event_channel",
	[RPOST_COUNT_COMP_CHANNEL] = "comp_channel",
	[RPOST_COUNT_ASYNC_CHANNEL] = "async_channel",
	[RPOST_COUNT_SHARE] = "share",
	[RPOST_COUNT_EVENT] = "event",
	[RPOST_COUNT_RING_PAGES] = "ring_pages",
	[RPOST_COUNT_PINNED_PAGES] = "pinned_pages",
	[RPOST_COUNT_KEPT] = "kept",
	[RPOST_COUNT_KEPT_PAGES] = "kept_pages",
	[RPOST_COUNT_WATCH] = "watch",
};

static atomic_long_t rpost_counts[RPOST_NUM_COUNTS];
static struct dentry *rpost_debugfs;

/* what is of enum rpost_obj_type or enum rpost_count.  n may be negative. */
void rpost_count(unsigned int what, long n)
{
	atomic_long_add(n, &rpost_counts[what]);
}

/* Like rpost_count(), and change the same counter of an open file. */
void rpost_file_count(struct rpost_file *file, unsigned int what, long n)
{
	atomic_long_add(n, &file->counts[what]);
	rpost_count(what, n);
}

static int rpost_objects_show(struct seq_file *s, void *unused)
{
	unsigned int i;

	for (i = 0; i < RPOST_NUM_COUNTS; i++) {
		if (rpost_count_names[i])
			seq_printf(s, "%s %ld\n", rpost_count_names[i],
				   atomic_long_read(&rpost_counts[i]));
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rpost_objects);

/* Create the module's directory in debugfs. */
void rpost_count_init(void)
{
	rpost_debugfs = debugfs_create_dir("rdma_post", NULL);
	debugfs_create_file("objects", 0400, rpost_debugfs, NULL,
			    &rpost_objects_fops);
	rpost_user_init(rpost_debugfs);
	rpost_inject_init(rpost_debugfs);
}

void rpost_count_exit(void)
{
	debugfs_remove_recursive(rpost_debugfs);
}
