// SPDX-License-Identifier: GPL-2.0
/*
 * Descriptors that name a device, for other processes.  See struct rpost_share.
 */
#include <linux/file.h>
#include <linux/module.h>

#include "core/fd.h"
#include "face/face.h"
#include "memory/memory.h"
#include "queue/cq.h"

/**
 * struct rpost_share - what a descriptor of SHARE_DEVICE refers to
 * @fd: the descriptor
 * @base: the file of /dev/rdma_post, on which a reference is held
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
	struct rpost_fd fd;
	struct file *base;
	u32 device;
};

static_assert(!offsetof(struct rpost_share, fd));

static long rpost_share_ioctl(struct file *filp, unsigned int nr, unsigned long arg)
{
	struct rpost_share *share = filp->private_data;

	return rpost_file_ioctl(share->fd.file, filp, nr, arg);
}

static int rpost_share_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct rpost_share *share = filp->private_data;

	return rpost_cq_mmap(share->fd.file, vma);
}

static void rpost_share_fdinfo(struct seq_file *s, struct file *filp)
{
	struct rpost_share *share = filp->private_data;

	rpost_file_fdinfo(s, share->fd.file);
}

static void rpost_share_free(struct rpost_fd *fd)
{
	fput(container_of(fd, struct rpost_share, fd)->base);
}

static const struct file_operations rpost_share_fops = {
	.owner		= THIS_MODULE,
	.release	= rpost_fd_release,
	.unlocked_ioctl	= rpost_share_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= rpost_share_mmap,
	.show_fdinfo	= rpost_share_fdinfo,
	.llseek		= noop_llseek,
};

static const struct rpost_fd_type rpost_share_type = {
	.fops = &rpost_share_fops,
	.name = "[rdma_post_share]",
	.count = RPOST_COUNT_SHARE,
	.bytes = RPOST_SHARE_BYTES,
	.free = rpost_share_free,
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

	dev = rpost_device_find(ucmd->file, cmd->device);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	rpost_device_unfind(dev);
	share = rpost_fd_alloc(ucmd->file, &rpost_share_type, sizeof(*share));
	if (!share)
		return -ENOMEM;
	share->base = get_file(from ? from->base : ucmd->filp);
	share->device = cmd->device;
	return rpost_fd_open(ucmd, &share->fd, &cmd->fd, share->base->f_flags & O_ACCMODE);
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
		rpost_query_mr(cmd, rpost_obj_as(mr, obj));
	rpost_obj_put(obj);
	return alive ? rpost_respond(ucmd) : -ENODEV;
}
