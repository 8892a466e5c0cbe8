// SPDX-License-Identifier: GPL-2.0
/*
 * Posts: work requests from the program to the device.
 *
 * A command is copied once into kernel memory with its work requests, which are checked
 * and built there, in batches.  Each batch goes to the device as one chain.  The
 * memory is kept for later posts, see struct rpost_scratch.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/trace.h"
#include "post/post.h"

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

static void rpost_post_free(const struct rpost_posting *post, struct rpost_file *file)
{
	const void *cmd = post->cmd;

	if (cmd != post->small && !(post->scratch && cmd == post->scratch->block))
		kvfree(cmd);
	if (post->scratch)
		rpost_scratch_give(file, post->scratch);
}

/*
 * Copy a command of @size bytes.  Return 0, -EFAULT, or -ENOBUFS: ENOMEM would mean a full
 * queue.
 */
static int rpost_post_copy(struct rpost_posting *post, struct rpost_file *file,
			   const void __user *from, u32 size)
{
	post->cmd = (void *)post->small;
	post->scratch = NULL;
	if (size <= sizeof(post->small))
		return rpost_copy_words(post->small, from, size);

	post->scratch = rpost_scratch_take(file);
	if (post->scratch && size <= sizeof(post->scratch->block))
		post->cmd = (void *)post->scratch->block;
	else
		post->cmd = rpost_kvmalloc(size, 0);
	if (post->cmd && !copy_from_user(post->cmd, from, size))
		return 0;
	rpost_post_free(post, file);
	return post->cmd ? -EFAULT : -ENOBUFS;
}

/* Count the work requests of a command, which have @bytes; -EINVAL if they do not add up. */
static int rpost_count_wrs(u32 command, const void *wrs, u32 bytes)
{
	u32 min = command == RPOST_CMD_POST_SEND ? sizeof(struct rpost_send_wr) :
						   sizeof(struct rpost_recv_wr);
	u32 size, count = 0;

	static_assert(offsetof(struct rpost_send_wr, size) == offsetof(struct rpost_recv_wr, size));

	do {
		if (bytes < min)
			return -EINVAL;
		size = ((const struct rpost_recv_wr *)wrs)->size;
		if (size < min || size > bytes || size % 8)
			return -EINVAL;
		wrs += size;
		bytes -= size;
		count++;
	} while (bytes);
	return count;
}

/*
 * Post those of the work requests that are not posted yet.  Return 0, or a negative errno
 * for the first that was not posted.
 */
static int rpost_post_wrs(struct rpost_file *file, u32 command, struct rpost_posting *post,
			  struct rpost_memory *memory)
{
	bool srq = command == RPOST_CMD_POST_SRQ_RECV;
	struct rpost_obj *obj;
	int ret;

	obj = rpost_obj_get(file, post->cmd->qp, srq ? RPOST_OBJ_SRQ : RPOST_OBJ_QP);
	if (!obj)
		return -ENOENT;
	if (!srq)
		post->qp_num = rpost_obj_as(qp, obj)->qp_num;
	if (command == RPOST_CMD_POST_SEND)
		ret = rpost_post_sends(obj, post, memory);
	else
		ret = rpost_post_recvs(obj, post, memory);
	rpost_obj_put(obj);
	return ret;
}

/* Go on with a post, which has ended with ret, until nothing of it has to wait any more. */
static noinline int rpost_post_rest(struct rpost_file *file, u32 command, int ret,
				    struct rpost_posting *post, struct rpost_memory *memory)
{
	do {
		ret = ret == RPOST_NEEDS_MEMORY ?
		      rpost_memory_get(file, post->cmd->qp, memory) :
		      rpost_policy_wait(&file->tenant);
		if (ret)
			return ret;
		ret = rpost_post_wrs(file, command, post, memory);
		/* It is left if the post has failed before it was needed. */
		rpost_uses_drop(&memory->uses);
	} while (rpost_post_waits(ret));
	return ret;
}

/*
 * Carry out a post: command is RPOST_CMD_POST_*, and arg the program's struct.  Return how
 * many work requests were posted, or a negative errno if none was.
 */
int rpost_post(struct rpost_file *file, u32 command, unsigned long arg)
{
	const struct rpost_post __user *from = (void __user *)arg;
	struct rpost_memory memory rpost_uninitialized;
	struct rpost_posting post rpost_uninitialized;
	u32 size;
	int ret;

	if (get_user(size, &from->size))
		return -EFAULT;
	if (size < sizeof(*from))
		return -EINVAL;
	if (size > sizeof(*from) + RPOST_MAX_WR_BYTES)
		return -E2BIG;
	if (size % sizeof(u64))
		return -EINVAL;
	ret = rpost_post_copy(&post, file, from, size);
	if (ret)
		return ret;
	this_cpu_inc(file->stats->commands);
	post.wrs = post.cmd + 1;
	post.qp_num = 0;
	post.posted = 0;
	ret = -EOPNOTSUPP;
	if (post.cmd->flags || post.cmd->reserved)
		goto out;
	ret = rpost_count_wrs(command, post.wrs, size - sizeof(*from));
	if (ret < 0)
		goto out;
	post.count = ret;
	if (post.count > 1 && !post.scratch)
		post.scratch = rpost_scratch_take(file);
	memory.uses.num = 0;
	memory.paid = 0;
	ret = rpost_post_wrs(file, command, &post, &memory);
	if (unlikely(rpost_post_waits(ret))) {
		ret = rpost_post_rest(file, command, ret, &post, &memory);
		if (memory.paid)
			rpost_policy_refund(&file->tenant, memory.bytes, memory.paid);
	}
	if (post.posted)
		ret = post.posted;
	trace_rpost_post(file, post.cmd->qp, post.qp_num, command == RPOST_CMD_POST_SEND,
			 post.count, post.posted, min(ret, 0));
out:
	rpost_post_free(&post, file);
	return ret;
}
