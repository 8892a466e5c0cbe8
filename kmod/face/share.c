// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors that name a device, for other processes.  See struct rpost_share.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "face/face.h"
#include "memory/memory.h"
#include "queue/cq.h"

/**
 * struct rpost_share - what a descriptor of SHARE_DEVICE refers to
 * @base: the file of /dev/rdma_post, on which a reference is held
 * @file: the open file that @base refers to
 * @device: number of the device
 *
 * A receiver of a descriptor of /dev/rdma_post cannot know which device it was sent
 * for.  So the sender makes one of these.  It stands for @base in everything: the
 * same commands find the same objects, and rings can be mapped.  The last close of
 * @base ends the objects, so they remain until all of these are closed, too.
 *
 * A descriptor that is made from another refers to the same @base, so descriptors
 * make no chains.  Each keeps nothing alive but @base, which refers to no other file.
 *
 * The opener of @base is charged for a descriptor, as for all objects that are made
 * by it.  Memory that is registered by it is that of the calling process, and counts
 * against that process's RLIMIT_MEMLOCK.
 */
struct rpost_share {
	struct file *base;
	struct rpost_file *file;
	u32 device;
};

static long rpost_share_ioctl(struct file *filp, unsigned int nr, unsigned long arg)
{
	struct rpost_share *share = filp->private_data;

	return rpost_file_ioctl(share->file, filp, nr, arg);
}

static int rpost_share_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct rpost_share *share = filp->private_data;

	return rpost_cq_mmap(share->file, vma);
}

static void rpost_share_fdinfo(struct seq_file *s, struct file *filp)
{
	struct rpost_share *share = filp->private_data;

	rpost_file_fdinfo(s, share->file);
}

static void rpost_share_free(struct rpost_share *share)
{
	rpost_uncharge(share->file, RPOST_SHARE_BYTES);
	rpost_file_count(share->file, RPOST_COUNT_SHARE, -1);
	fput(share->base);
	kfree(share);
}

static int rpost_share_release(struct inode *inode, struct file *filp)
{
	rpost_share_free(filp->private_data);
	return 0;
}

static const struct file_operations rpost_share_fops = {
	.owner		= THIS_MODULE,
	.release	= rpost_share_release,
	.unlocked_ioctl	= rpost_share_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= rpost_share_mmap,
	.show_fdinfo	= rpost_share_fdinfo,
	.llseek		= noop_llseek,
};

static struct rpost_share *rpost_share_of(struct file *filp)
{
	return filp->f_op == &rpost_share_fops ? filp->private_data : NULL;
}

/* Return the number of a descriptor's device, or 0 for a file of /dev/rdma_post. */
u32 rpost_share_device(struct file *filp)
{
	struct rpost_share *share = rpost_share_of(filp);

	return share ? share->device : 0;
}

int rpost_share_device_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_share_device *cmd = &ucmd->cmd.share_device;
	struct rpost_share *share, *from = rpost_share_of(ucmd->filp);
	struct rpost_device *dev;
	struct file *filp;

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	rpost_device_unfind(dev);
	if (rpost_charge(ucmd->file, RPOST_SHARE_BYTES))
		return -ENOMEM;
	share = kmalloc(sizeof(*share), RPOST_GFP);
	if (!share) {
		rpost_uncharge(ucmd->file, RPOST_SHARE_BYTES);
		return -ENOMEM;
	}
	share->base = get_file(from ? from->base : ucmd->filp);
	share->file = ucmd->file;
	share->device = cmd->device;
	rpost_file_count(share->file, RPOST_COUNT_SHARE, 1);

	filp = anon_inode_getfile("[rdma_post_share]", &rpost_share_fops, share,
				  (share->base->f_flags & O_ACCMODE) | O_CLOEXEC);
	if (IS_ERR(filp)) {
		rpost_share_free(share);
		return PTR_ERR(filp);
	}
	return rpost_respond_fd(ucmd, &cmd->fd, filp);
}

/* Tell the keys of a region, which is alive. */
static void rpost_query_mr(struct rpost_query_object *cmd, struct rpost_mr *mr)
{
	cmd->pd = mr->pd->obj.handle;
	cmd->lkey = mr->lkey;
	cmd->rkey = mr->ib_mr->rkey;
	cmd->length = mr->length;
	cmd->iova = mr->iova;
}

int rpost_query_object_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query_object *cmd = &ucmd->cmd.query_object;
	struct rpost_obj *obj;
	bool alive;

	if (cmd->type != RPOST_OBJ_PD && cmd->type != RPOST_OBJ_MR)
		return -EINVAL;
	obj = rpost_enter_get(ucmd, cmd->handle, cmd->type);
	if (IS_ERR(obj))
		return PTR_ERR(obj);
	cmd->device = obj->dev->id;
	cmd->pd = cmd->handle;
	cmd->lkey = 0;
	cmd->rkey = 0;
	cmd->length = 0;
	cmd->iova = 0;
	/*
	 * mr->ib_mr is not NULL on a device that is alive.  Only two shut a region
	 * down: DESTROY, which first waits for references like this one; and
	 * removal, which first says that the device is not alive and waits for
	 * this command.
	 */
	alive = rpost_device_alive(obj->dev);
	if (alive && cmd->type == RPOST_OBJ_MR)
		rpost_query_mr(cmd, container_of(obj, struct rpost_mr, obj));
	rpost_obj_put(obj);
	return alive ? rpost_respond(ucmd) : -ENODEV;
}
