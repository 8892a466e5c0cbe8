// SPDX-License-Identifier: GPL-2.0
/*
 * A page of random bytes for each device, which no program has registered.
 * selftests/attack/probe.c tries to read it with keys that might open all
 * memory, which it could not try on any other page.
 * /sys/kernel/debug/rdma_post/target/NUMBER shows its addresses to tasks with
 * CAP_SYS_RAWIO, which may read all memory anyway, unless the kernel is locked
 * down.
 */
#include <linux/capability.h>
#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/random.h>
#include <linux/seq_file.h>

#include "device.h"

#define RPOST_TARGET_SHOWN	32

static struct dentry *rpost_target_dir;

static int rpost_target_show(struct seq_file *s, void *unused)
{
	const struct rpost_target *target = s->private;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	seq_printf(s, "%llx %llx %*phN\n", (u64)(uintptr_t)target->bytes,
		   target->dma, RPOST_TARGET_SHOWN, target->bytes);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(rpost_target);

/**
 * rpost_target_add() - allocate a device's page; without memory it has none
 * @dev: the device, with its number
 */
void rpost_target_add(struct rpost_device *dev)
{
	struct rpost_target *target = &dev->target;
	char name[16];

	if (dev->refused)
		return;
	target->bytes = (void *)__get_free_page(GFP_KERNEL);
	if (!target->bytes)
		return;
	get_random_bytes(target->bytes, PAGE_SIZE);
	target->dma = ib_dma_map_single(dev->ib_dev, target->bytes, PAGE_SIZE,
					DMA_TO_DEVICE);
	if (ib_dma_mapping_error(dev->ib_dev, target->dma)) {
		free_page((unsigned long)target->bytes);
		target->bytes = NULL;
		return;
	}
	snprintf(name, sizeof(name), "%u", dev->id);
	target->file = debugfs_create_file(name, 0400, rpost_target_dir, target,
					   &rpost_target_fops);
}

/**
 * rpost_target_del() - undo rpost_target_add()
 * @dev: the device
 */
void rpost_target_del(struct rpost_device *dev)
{
	struct rpost_target *target = &dev->target;

	if (!target->bytes)
		return;
	/* This waits for readers of the file. */
	debugfs_remove(target->file);
	ib_dma_unmap_single(dev->ib_dev, target->dma, PAGE_SIZE, DMA_TO_DEVICE);
	free_page((unsigned long)target->bytes);
	target->bytes = NULL;
}

/**
 * rpost_target_init() - create the directory for the files
 * @dir: the module's directory in debugfs, which removes it
 */
void rpost_target_init(struct dentry *dir)
{
	rpost_target_dir = debugfs_create_dir("target", dir);
}
