// SPDX-License-Identifier: GPL-2.0
/*
 * The device node and its commands.
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/seq_file.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#include "base/inject.h"
#include "face/face.h"
#include "id/id.h"
#include "memory/cache.h"
#include "post/post.h"

#define RPOST_COMMAND(nr, name, type, first, size, flags) \
	static_assert(sizeof(struct rpost_##type) == (size));
#include "core/commands.h"

static const struct rpost_cmd_row rpost_cmds[] = {
#define RPOST_COMMAND(nr, name, type, first, size, flags) \
	[RPOST_CMD_##nr] = RPOST_ROW(name, first, size, flags, false),
#define RPOST_CREATE_COMMAND(nr, name, type, first, size, flags) \
	[RPOST_CMD_##nr] = RPOST_ROW(name, first, size, flags, true),
#define RPOST_POST_COMMAND(...)
#define RPOST_CHANNEL_COMMAND(...)
#include "core/commands.h"
};

/*
 * An id may have RPOST_MAX_EVENTS events.  A queue pair of rxe has a socket and saves its
 * responses; a domain has a queue pair for fast registration.
 */
const struct rpost_type rpost_types[RPOST_NUM_OBJ_TYPES] = {
	[RPOST_OBJ_PD] = {
		.name = "pd",
		.bytes = SZ_32K,
		.shutdown = rpost_pd_shutdown,
		.free = rpost_pd_free,
	},
	[RPOST_OBJ_MR] = {
		.name = "mr",
		.bytes = SZ_4K,
		.shutdown = rpost_mr_shutdown,
		.free = rpost_mr_free,
		.keep = rpost_cache_keep,
		.abort = rpost_mr_abort,
	},
	[RPOST_OBJ_CQ] = {
		.name = "cq",
		.bytes = SZ_2K,
		.events = true,
		.shutdown = rpost_cq_shutdown,
		.free = rpost_cq_free,
	},
	[RPOST_OBJ_QP] = {
		.name = "qp",
		.bytes = SZ_16K,
		.events = true,
		.shutdown = rpost_qp_shutdown,
		.free = rpost_qp_free,
		.stop = rpost_qp_stop_early,
		.recheck = rpost_qp_recheck,
	},
	[RPOST_OBJ_ID] = {
		.name = "id",
		.bytes = SZ_8K,
		.shutdown = rpost_id_shutdown,
		.free = rpost_id_free,
	},
	[RPOST_OBJ_SRQ] = {
		.name = "srq",
		.bytes = SZ_4K,
		.events = true,
		.shutdown = rpost_srq_shutdown,
		.free = rpost_srq_free,
	},
	[RPOST_OBJ_AH] = {
		.name = "ah",
		.bytes = SZ_1K,
		.shutdown = rpost_ah_shutdown,
		.free = rpost_ah_free,
		.recheck = rpost_ah_recheck,
	},
};

/* Objects come before those that they depend on. */
const enum rpost_obj_type rpost_teardown_order[RPOST_NUM_OBJ_TYPES - 1] = {
	RPOST_OBJ_QP, RPOST_OBJ_SRQ, RPOST_OBJ_AH, RPOST_OBJ_MR, RPOST_OBJ_ID,
	RPOST_OBJ_CQ, RPOST_OBJ_PD,
};

static void rpost_device_gone(struct rpost_device *dev)
{
	rpost_async_device_gone(dev);
	rpost_contexts_device_gone(dev);
	rpost_routes_device_gone(dev);
}

/* Before a command fails for want of memory, give back what the cache keeps. */
static noinline int rpost_create_run(struct rpost_file *file, struct file *filp,
				     const struct rpost_cmd_row *row,
				     unsigned long arg)
{
	long refused = atomic_long_read(&file->user->refused);
	int ret = rpost_ucmd_run(file, filp, row, arg);

	if ((ret == -ENOMEM || ret == -EAGAIN) &&
	    rpost_cache_give_back(file->user, ret, refused))
		ret = rpost_ucmd_run(file, filp, row, arg);
	return ret;
}

long rpost_file_ioctl(struct rpost_file *file, struct file *filp, unsigned int nr,
		      unsigned long arg)
{
	unsigned int cmd = _IOC_NR(nr);

	if (nr != _IO(RPOST_IOC_TYPE, cmd) || cmd >= ARRAY_SIZE(rpost_cmds))
		return -ENOTTY;
	switch (cmd) {
	case RPOST_CMD_POST_SEND:
	case RPOST_CMD_POST_RECV:
	case RPOST_CMD_POST_SRQ_RECV:
		return rpost_post(file, cmd, arg);
	}
	cmd = array_index_nospec(cmd, ARRAY_SIZE(rpost_cmds));
	if (!rpost_cmds[cmd].handler)
		return -ENOTTY;
	if (rpost_cmds[cmd].creates)
		return rpost_create_run(file, filp, &rpost_cmds[cmd], arg);
	return rpost_ucmd_run(file, filp, &rpost_cmds[cmd], arg);
}

static long rpost_ioctl(struct file *filp, unsigned int nr, unsigned long arg)
{
	return rpost_file_ioctl(filp->private_data, filp, nr, arg);
}

static void rpost_fdinfo(struct seq_file *s, struct file *filp)
{
	rpost_file_fdinfo(s, filp->private_data);
}

static int rpost_mmap(struct file *filp, struct vm_area_struct *vma)
{
	return rpost_cq_mmap(filp->private_data, vma);
}

static int rpost_open(struct inode *inode, struct file *filp)
{
	/* Landlock lets an open for neither pass, whose descriptor takes ioctls. */
	if (!(filp->f_mode & (FMODE_READ | FMODE_WRITE)))
		return -EACCES;
	filp->private_data = rpost_file_create();
	if (!filp->private_data)
		return -ENOMEM;
	return nonseekable_open(inode, filp);
}

static int rpost_release(struct inode *inode, struct file *filp)
{
	struct rpost_file *file = filp->private_data;

	WRITE_ONCE(file->dead, true);
	rpost_event_channels_wake(file);
	rpost_file_close(file);
	return 0;
}

static const struct file_operations rpost_fops = {
	.owner		= THIS_MODULE,
	.open		= rpost_open,
	.release	= rpost_release,
	.unlocked_ioctl	= rpost_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= rpost_mmap,
	.show_fdinfo	= rpost_fdinfo,
	.llseek		= noop_llseek,
};

static struct miscdevice rpost_misc = {
	.minor		= MISC_DYNAMIC_MINOR,
	.name		= "rdma_post",
	.nodename	= "rdma_post",
	.fops		= &rpost_fops,
	.mode		= 0666,
};

static const char * const rpost_count_names[RPOST_NUM_COUNTS] = {
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

static struct dentry *rpost_debugfs;

static int rpost_objects_show(struct seq_file *s, void *unused)
{
	unsigned int i;

	for (i = RPOST_OBJ_PD; i < RPOST_NUM_COUNTS; i++)
		seq_printf(s, "%s %ld\n",
			   i < RPOST_NUM_OBJ_TYPES ? rpost_types[i].name :
						     rpost_count_names[i],
			   rpost_count_read(i));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rpost_objects);

static int __init rpost_init(void)
{
	int ret;

	ret = rpost_admit_init();
	if (ret)
		return ret;
	rpost_wq = alloc_workqueue("rdma_post", WQ_UNBOUND, 0);
	if (!rpost_wq)
		return -ENOMEM;
	ret = rpost_cache_init();
	if (ret)
		goto err_wq;
	rpost_debugfs = debugfs_create_dir("rdma_post", NULL);
	debugfs_create_file("objects", 0400, rpost_debugfs, NULL, &rpost_objects_fops);
	rpost_user_init(rpost_debugfs, rpost_cache_user_init);
	rpost_inject_init(rpost_debugfs);
	ret = rpost_device_register(rpost_device_gone);
	if (ret)
		goto err_debugfs;
	ret = misc_register(&rpost_misc);
	if (ret)
		goto err_device;
	return 0;

err_device:
	rpost_device_unregister();
err_debugfs:
	debugfs_remove_recursive(rpost_debugfs);
	rpost_cache_exit();
err_wq:
	destroy_workqueue(rpost_wq);
	return ret;
}
module_init(rpost_init);

static void __exit rpost_exit(void)
{
	misc_deregister(&rpost_misc);
	rpost_device_unregister();
	/* It may have the last references on closed files. */
	rpost_cache_exit();
	debugfs_remove_recursive(rpost_debugfs);
	destroy_workqueue(rpost_wq);
	rpost_tenants_exit();
	rpost_names_free();
}
module_exit(rpost_exit);

MODULE_DESCRIPTION("RDMA operations through ioctls");
MODULE_AUTHOR("The rdma_post developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
