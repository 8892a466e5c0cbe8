// SPDX-License-Identifier: GPL-2.0
/*
 * Posts: work requests from the program to the device.
 *
 * A block of work requests is copied once into kernel memory, and checked and
 * built there, in batches.  Each batch goes to the device as one chain.  The
 * memory is kept for later posts, see struct rpost_scratch.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/trace.h"
#include "post/any_memory.h"

/*
 * A block of the program, copied to @data: that is in @small, in @scratch, or by itself.
 * @scratch is for a batch, and may be NULL.
 */
struct rpost_block {
	void *data;
	struct rpost_scratch *scratch;
	u64 small[32];
};

/* Return the size of the first @count work requests in a block. */
static u32 rpost_block_bytes(const void *block, u32 count)
{
	u32 used = 0;

	while (count--)
		used += ((const struct rpost_recv_wr *)(block + used))->size;
	return used;
}

/* Without memory return NULL: then work requests are posted one by one. */
static struct rpost_scratch *rpost_scratch_take(struct rpost_file *file)
{
	struct rpost_scratch *scratch;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++) {
		if (!READ_ONCE(file->scratch[i]))
			continue;
		scratch = xchg(&file->scratch[i], NULL);
		if (scratch)
			return scratch;
	}
	return kmalloc(sizeof(*scratch), RPOST_GFP);
}

static void rpost_scratch_give(struct rpost_file *file, struct rpost_scratch *scratch)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(file->scratch); i++) {
		if (!READ_ONCE(file->scratch[i]) &&
		    !cmpxchg(&file->scratch[i], NULL, scratch))
			return;
	}
	kfree(scratch);
}

static void rpost_block_free(const struct rpost_block *block, struct rpost_file *file)
{
	if (block->data != block->small &&
	    !(block->scratch && block->data == block->scratch->block))
		kvfree(block->data);
	if (block->scratch)
		rpost_scratch_give(file, block->scratch);
}

/*
 * Copy the work requests of @cmd.  Return 0, -EFAULT, or -ENOBUFS: ENOMEM would mean
 * a full queue.
 */
static int rpost_block_copy(struct rpost_block *block, struct rpost_file *file,
			    const struct rpost_post *cmd)
{
	u32 size = cmd->wrs_size;

	block->data = block->small;
	block->scratch = cmd->count > 1 ? rpost_scratch_take(file) : NULL;
	if (size > sizeof(block->small)) {
		if (block->scratch && size <= sizeof(block->scratch->block))
			block->data = block->scratch->block;
		else
			block->data = rpost_kvmalloc(size, 0);
	}
	if (block->data &&
	    !copy_from_user(block->data, u64_to_user_ptr(cmd->wrs), size))
		return 0;
	rpost_block_free(block, file);
	return block->data ? -EFAULT : -ENOBUFS;
}

/* Do the work requests add up to their block? */
static int rpost_check_wrs(u32 command, const struct rpost_post *cmd, const void *wrs)
{
	u32 min = command == RPOST_CMD_POST_SEND ? sizeof(struct rpost_send_wr) :
						   sizeof(struct rpost_recv_wr);
	u32 size, i, bytes = cmd->wrs_size;

	static_assert(offsetof(struct rpost_send_wr, size) == offsetof(struct rpost_recv_wr, size));

	for (i = 0; i < cmd->count; i++) {
		if (bytes < min)
			return -EINVAL;
		size = ((const struct rpost_recv_wr *)wrs)->size;
		if (size < min || size > bytes || size % 8)
			return -EINVAL;
		wrs += size;
		bytes -= size;
	}
	return bytes ? -EINVAL : 0;
}

/*
 * Post those of the work requests that are not posted yet.  All but their sizes may be
 * changed.  Return 0, or a negative errno for the first that was not posted.
 */
static int rpost_post_wrs(struct rpost_ucmd *ucmd, u32 command,
			  const struct rpost_block *block, struct rpost_memory *memory)
{
	struct rpost_post *cmd = &ucmd->cmd.post_send;
	void *wrs = block->data + rpost_block_bytes(block->data, cmd->posted);
	bool srq = command == RPOST_CMD_POST_SRQ_RECV, send = command == RPOST_CMD_POST_SEND;
	struct rpost_obj *obj;
	int ret;

	obj = rpost_obj_get(ucmd->file, cmd->qp, srq ? RPOST_OBJ_SRQ : RPOST_OBJ_QP);
	if (!obj)
		return -ENOENT;
	if (send)
		ret = rpost_post_sends(obj, cmd, wrs, block->scratch, memory);
	else
		ret = rpost_post_recvs(obj, cmd, wrs, block->scratch, memory);
	if (likely(!rpost_post_waits(ret)))
		trace_rpost_post(obj, srq ? 0 : rpost_obj_as(qp, obj)->qp_num, send,
				 cmd->count, cmd->posted, ret);
	rpost_obj_put(obj);
	return ret;
}

/* Go on with a post, which has ended with ret, until nothing of it has to wait any more. */
static noinline int rpost_post_rest(struct rpost_ucmd *ucmd, u32 command, int ret,
				    const struct rpost_block *block,
				    struct rpost_memory *memory)
{
	do {
		ret = ret == RPOST_NEEDS_MEMORY ? rpost_memory_get(ucmd, memory) :
						  rpost_policy_wait(&ucmd->file->tenant);
		/* The call, restarted, would post the first work requests again. */
		if (ret == -ERESTARTNOINTR && ucmd->cmd.post_send.posted)
			return -EINTR;
		if (ret)
			return ret;
		/* If a queue pair of another domain has the handle now, the keys are refused. */
		ret = rpost_post_wrs(ucmd, command, block, memory);
		/* It is left if the post has failed before it was needed. */
		rpost_uses_drop(&memory->uses);
	} while (rpost_post_waits(ret));
	return ret;
}

static int rpost_post(struct rpost_ucmd *ucmd, u32 command)
{
	struct rpost_post *cmd = &ucmd->cmd.post_send;
	struct rpost_post __user *to = ucmd->ubuf;
	struct rpost_memory memory rpost_uninitialized;
	struct rpost_block block rpost_uninitialized;
	int ret = -EINVAL;

	memory.uses.num = 0;
	memory.paid = false;
	/*
	 * Write it first, so that nothing is posted if the program cannot be
	 * told.  Most posts take all work requests, and so write it only once.
	 */
	cmd->posted = 0;
	if (put_user(cmd->count, &to->posted))
		return -EFAULT;
	if (!cmd->count || cmd->wrs_size > RPOST_MAX_WR_BYTES)
		goto out;
	ret = rpost_block_copy(&block, ucmd->file, cmd);
	if (ret)
		goto out;
	ret = rpost_check_wrs(command, cmd, block.data) ? :
	      rpost_post_wrs(ucmd, command, &block, &memory);
	if (unlikely(rpost_post_waits(ret)))
		ret = rpost_post_rest(ucmd, command, ret, &block, &memory);
	rpost_block_free(&block, ucmd->file);
out:
	if (cmd->posted != cmd->count && put_user(cmd->posted, &to->posted))
		ret = -EFAULT;
	return ret;
}

int rpost_post_send_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, RPOST_CMD_POST_SEND);
}

int rpost_post_recv_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, RPOST_CMD_POST_RECV);
}

int rpost_post_srq_recv_ioctl(struct rpost_ucmd *ucmd)
{
	return rpost_post(ucmd, RPOST_CMD_POST_SRQ_RECV);
}
