// SPDX-License-Identifier: GPL-2.0
/*
 * Several posts and polls in one call, see struct rpost_submit.
 */
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "post.h"

static int rpost_submit_check_part(const struct rpost_submit_part *part, u32 bytes)
{
	if (bytes < sizeof(*part) || part->size < sizeof(*part) ||
	    part->size > bytes || part->size % 8)
		return -EINVAL;
	switch (part->command) {
	case RPOST_CMD_POST_SEND:
	case RPOST_CMD_POST_RECV:
	case RPOST_CMD_POST_SRQ_RECV:
		if (!part->count)
			return -EINVAL;
		return rpost_check_wrs(part->command, part + 1,
				       part->size - sizeof(*part), part->count);
	case RPOST_CMD_POLL_CQ:
		return part->count || part->size != sizeof(*part) ? -EINVAL : 0;
	}
	return -EINVAL;
}

/* Do @count parts make up the block? */
static int rpost_submit_check(const void *block, u32 bytes, u32 count)
{
	int ret = 0;

	while (count-- && !ret) {
		ret = rpost_submit_check_part(block, bytes);
		if (!ret) {
			u32 size = ((const struct rpost_submit_part *)block)->size;

			block += size;
			bytes -= size;
		}
	}
	return ret ? : bytes ? -EINVAL : 0;
}

/* Complete the receives that are left of a queue pair whose device has gone. */
static void rpost_submit_flush(struct rpost_obj *obj, const struct rpost_post *cmd,
			       const void *wrs)
{
	struct rpost_qp *qp = container_of(obj, struct rpost_qp, obj);
	struct rpost_wc wc = {
		.status = RPOST_WC_WR_FLUSH_ERR,
		.opcode = RPOST_WC_RECV,
		.qp_num = qp->qp_num,
	};
	u32 i;

	/* Those that the device had come first: removal drains with this lock held. */
	rpost_qp_lock(qp);
	rpost_qp_unlock(qp);
	for (i = 0; i < cmd->count && !READ_ONCE(qp->discard); i++) {
		const struct rpost_recv_wr *wr = wrs;

		wc.wr_id = wr->wr_id;
		if (i >= cmd->posted)
			rpost_cq_add(qp->recv_cq, &wc);
		wrs += wr->size;
	}
}

static enum rpost_obj_type rpost_submit_type(u32 command)
{
	switch (command) {
	case RPOST_CMD_POLL_CQ:
		return RPOST_OBJ_CQ;
	case RPOST_CMD_POST_SRQ_RECV:
		return RPOST_OBJ_SRQ;
	default:
		return RPOST_OBJ_QP;
	}
}

static int rpost_submit_part(struct rpost_obj *obj, struct rpost_submit_part *part,
			     struct rpost_scratch *scratch, u32 *posted)
{
	struct rpost_post cmd = { .count = part->count };
	int ret;

	if (part->command == RPOST_CMD_POLL_CQ) {
		rpost_cq_fetch(container_of(obj, struct rpost_cq, obj));
		return 0;
	}
	/* Its posts may have to wait for pages, without a reference on it. */
	if (part->command != RPOST_CMD_POST_SRQ_RECV &&
	    container_of(obj, struct rpost_qp, obj)->qp_flags & RPOST_QP_ANY_MEMORY)
		return -EOPNOTSUPP;
	ret = rpost_post_wrs(obj, part->command, &cmd, part + 1, scratch, NULL);
	if (ret == -ENODEV && part->command == RPOST_CMD_POST_RECV) {
		rpost_submit_flush(obj, &cmd, part + 1);
		ret = 0;
	}
	*posted = ret ? cmd.posted : 0;
	return ret;
}

static int rpost_submit_run(struct rpost_file *file, struct rpost_submit *cmd,
			    const struct rpost_block *block)
{
	struct rpost_submit_part *part = block->data;
	enum rpost_obj_type type;
	struct rpost_obj *obj = NULL;
	int ret = 0;

	for (; cmd->done < cmd->count; cmd->done++) {
		u32 size = part->size;

		/* A receive and a send often are of the same queue pair. */
		type = rpost_submit_type(part->command);
		if (obj && (obj->handle != part->handle || obj->type != type)) {
			rpost_obj_put(obj);
			obj = NULL;
		}
		if (!obj)
			obj = rpost_obj_get(file, part->handle, type);
		if (!obj)
			return -ENOENT;
		ret = rpost_submit_part(obj, part, block->scratch, &cmd->posted);
		if (ret)
			break;
		part = (void *)part + size;
		cond_resched();
	}
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_submit_ioctl() - do several posts and polls
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_submit_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_submit *cmd = &ucmd->cmd.submit;
	struct rpost_submit __user *to = ucmd->ubuf;
	struct rpost_block block rpost_uninitialized;
	int ret = -EINVAL;

	/* As in a post: nothing is done if the program cannot be told. */
	if (put_user(cmd->count, &to->done) || put_user(0, &to->posted))
		return -EFAULT;
	cmd->done = 0;
	cmd->posted = 0;
	if (!cmd->count || cmd->bytes > RPOST_MAX_WR_BYTES)
		goto out;
	ret = rpost_block_copy(&block, ucmd->file, cmd->parts, cmd->bytes,
			       cmd->bytes > RPOST_STACK_BYTES);
	if (ret)
		goto out;
	ret = rpost_submit_check(block.data, cmd->bytes, cmd->count);
	if (!ret)
		ret = rpost_submit_run(ucmd->file, cmd, &block);
	rpost_block_free(&block, ucmd->file);
out:
	if (ret && (put_user(cmd->done, &to->done) ||
		    put_user(cmd->posted, &to->posted)))
		ret = -EFAULT;
	return ret;
}
