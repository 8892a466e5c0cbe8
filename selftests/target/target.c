// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A kernel module for the tests: a page of random bytes for each RDMA device, which
 * no program has registered.  selftests/attack/probe.c tries to read it with keys
 * that might open all memory, which it could not try on any other page.
 *
 * /sys/kernel/debug/rdma_post_target/INDEX, where INDEX is the device's in the RDMA
 * core, has the page's address in the kernel, its address for the device, and its
 * first bytes.
 */
#include <linux/debugfs.h>
#include <linux/gfp.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#define TARGET_SHOWN	32

struct target {
	u8 *bytes;
	u64 dma;
	struct dentry *file;
};

static struct dentry *target_dir;
static struct ib_client target_client;

static int target_show(struct seq_file *s, void *unused)
{
	const struct target *target = s->private;

	seq_printf(s, "%llx %llx %*phN\n", (u64)(uintptr_t)target->bytes,
		   target->dma, TARGET_SHOWN, target->bytes);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(target);

static int target_add(struct ib_device *ib_dev)
{
	struct target *target;
	char name[16];

	target = kzalloc(sizeof(*target), GFP_KERNEL);
	if (!target)
		return -ENOMEM;
	target->bytes = (void *)__get_free_page(GFP_KERNEL);
	if (!target->bytes)
		goto err_free;
	get_random_bytes(target->bytes, PAGE_SIZE);
	target->dma = ib_dma_map_single(ib_dev, target->bytes, PAGE_SIZE,
					DMA_TO_DEVICE);
	if (ib_dma_mapping_error(ib_dev, target->dma))
		goto err_page;
	snprintf(name, sizeof(name), "%u", ib_dev->index);
	target->file = debugfs_create_file(name, 0400, target_dir, target,
					   &target_fops);
	ib_set_client_data(ib_dev, &target_client, target);
	return 0;

err_page:
	free_page((unsigned long)target->bytes);
err_free:
	kfree(target);
	return -ENOMEM;
}

static void target_remove(struct ib_device *ib_dev, void *client_data)
{
	struct target *target = client_data;

	/* This waits for readers of the file. */
	debugfs_remove(target->file);
	ib_dma_unmap_single(ib_dev, target->dma, PAGE_SIZE, DMA_TO_DEVICE);
	free_page((unsigned long)target->bytes);
	kfree(target);
}

static struct ib_client target_client = {
	.name	= "rdma_post_target",
	.add	= target_add,
	.remove	= target_remove,
};

static int __init target_init(void)
{
	int ret;

	target_dir = debugfs_create_dir("rdma_post_target", NULL);
	ret = ib_register_client(&target_client);
	if (ret)
		debugfs_remove(target_dir);
	return ret;
}
module_init(target_init);

static void __exit target_exit(void)
{
	ib_unregister_client(&target_client);
	debugfs_remove(target_dir);
}
module_exit(target_exit);

MODULE_DESCRIPTION("A page for tests of rdma_post to aim at");
MODULE_AUTHOR("The rdma_post developers");
MODULE_LICENSE("Dual BSD/GPL");
