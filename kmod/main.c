// SPDX-License-Identifier: GPL-2.0
/*
 * The device node and its commands.
 */
#include <linux/fault-inject-usercopy.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/indirect_call_wrapper.h>
#include <linux/memcontrol.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "rpost.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

struct workqueue_struct *rpost_wq;

static LIST_HEAD(rpost_files);
static DEFINE_MUTEX(rpost_files_lock);

static_assert(sizeof(struct rpost_query) == 40);
static_assert(sizeof(struct rpost_destroy) == 16);
static_assert(sizeof(struct rpost_query_devices) == 24);
static_assert(sizeof(struct rpost_query_device) == 248);
static_assert(sizeof(struct rpost_query_port) == 72);
static_assert(sizeof(struct rpost_alloc_pd) == 16);
static_assert(sizeof(struct rpost_reg_mr) == 56);
static_assert(sizeof(struct rpost_create_comp_channel) == 16);
static_assert(sizeof(struct rpost_comp_event) == 8);
static_assert(sizeof(struct rpost_create_cq) == 64);
static_assert(sizeof(struct rpost_ring) == 128);
static_assert(offsetof(struct rpost_ring, head) == 64);
static_assert(sizeof(struct rpost_wc) == 64);
static_assert(offsetof(struct rpost_wc, reserved) <= RPOST_WC_SMALL_SIZE);
static_assert(sizeof(struct rpost_arm_cq) == 16);
static_assert(sizeof(struct rpost_poll_cq) == 16);
static_assert(sizeof(struct rpost_create_event_channel) == 16);
static_assert(sizeof(struct rpost_conn_param) == 272);
static_assert(sizeof(struct rpost_get_event) == 352);
static_assert(sizeof(struct rpost_create_id) == 24);
static_assert(sizeof(struct rpost_bind_addr) == 144);
static_assert(sizeof(struct rpost_resolve_addr) == 280);
static_assert(sizeof(struct rpost_resolve_route) == 16);
static_assert(sizeof(struct rpost_query_id) == 448);
static_assert(sizeof(struct rpost_listen) == 16);
static_assert(sizeof(struct rpost_connect) == 296);
static_assert(sizeof(struct rpost_accept) == 304);
static_assert(sizeof(struct rpost_reject) == 280);
static_assert(sizeof(struct rpost_disconnect) == 16);
static_assert(sizeof(struct rpost_migrate_id) == 16);
static_assert(sizeof(struct rpost_create_qp) == 72);
static_assert(sizeof(struct rpost_query_qp) == 232);
static_assert(sizeof(struct rpost_sge) == 16);
static_assert(sizeof(struct rpost_send_wr) == 64);
static_assert(sizeof(struct rpost_recv_wr) == 16);
static_assert(sizeof(struct rpost_post) == 32);
static_assert(sizeof(struct rpost_gid) == 32);
static_assert(sizeof(struct rpost_query_gids) == 32);
static_assert(sizeof(struct rpost_query_pkeys) == 32);
static_assert(sizeof(struct rpost_create_async_channel) == 16);
static_assert(sizeof(struct rpost_async_event) == 24);
static_assert(sizeof(struct rpost_resize_cq) == 40);
static_assert(sizeof(struct rpost_ah_attr) == 32);
static_assert(sizeof(struct rpost_create_ah) == 48);
static_assert(sizeof(struct rpost_ud_param) == 40);
static_assert(sizeof(struct rpost_ece) == 8);
static_assert(sizeof(struct rpost_path) == 64);
static_assert(sizeof(struct rpost_set_option) == 40);
static_assert(sizeof(struct rpost_notify) == 16);
static_assert(sizeof(struct rpost_establish) == 16);
static_assert(sizeof(struct rpost_join_mcast) == 160);
static_assert(sizeof(struct rpost_leave_mcast) == 144);
static_assert(sizeof(struct rpost_create_srq) == 40);
static_assert(sizeof(struct rpost_modify_srq) == 24);
static_assert(sizeof(struct rpost_query_srq) == 24);
static_assert(sizeof(struct rpost_qp_attr) == 128);
static_assert(sizeof(struct rpost_modify_qp) == 144);
static_assert(sizeof(struct rpost_init_qp_attr) == 144);
static_assert(sizeof(struct rpost_attach_mcast) == 32);
static_assert(sizeof(struct rpost_send_ring) == sizeof(struct rpost_ring));
static_assert(offsetof(struct rpost_send_ring, head) == 64);
static_assert(sizeof(struct rpost_setup_send_ring) == 32);
static_assert(sizeof(struct rpost_enter_send_ring) == 16);

#define CMD(name, type, last) \
	[RPOST_CMD_##name] = RPOST_ROW(rpost_##type, last, \
				       rpost_##type##_ioctl, false)
#define CMD_HW(name, type, last) \
	[RPOST_CMD_##name] = RPOST_ROW(rpost_##type, last, \
				       rpost_##type##_ioctl, true)

static const struct rpost_cmd_row rpost_cmds[] = {
	CMD_HW(QUERY, query, num_objects),
	CMD_HW(QUERY_DEVICES, query_devices, reserved),
	CMD_HW(QUERY_DEVICE, query_device, reserved),
	CMD_HW(QUERY_PORT, query_port, reserved),
	CMD_HW(DESTROY, destroy, handle),
	CMD_HW(ALLOC_PD, alloc_pd, handle),
	CMD_HW(REG_MR, reg_mr, reserved),
	CMD(CREATE_COMP_CHANNEL, create_comp_channel, reserved),
	CMD_HW(CREATE_CQ, create_cq, reserved),
	CMD(ARM_CQ, arm_cq, reserved),
	CMD(POLL_CQ, poll_cq, count),
	CMD(CREATE_EVENT_CHANNEL, create_event_channel, reserved),
	CMD(CREATE_ID, create_id, handle),
	CMD(BIND_ADDR, bind_addr, addr),
	CMD(RESOLVE_ADDR, resolve_addr, dst),
	CMD(RESOLVE_ROUTE, resolve_route, timeout_ms),
	CMD(QUERY_ID, query_id, dgid),
	CMD(LISTEN, listen, backlog),
	CMD(CONNECT, connect, param),
	CMD(ACCEPT, accept, param),
	CMD(REJECT, reject, private_data),
	CMD(DISCONNECT, disconnect, reserved),
	CMD(MIGRATE_ID, migrate_id, channel_fd),
	CMD_HW(CREATE_QP, create_qp, reserved),
	CMD(QUERY_QP, query_qp, reserved),
	[RPOST_CMD_POST_SEND] = RPOST_ROW(rpost_post, posted,
					  rpost_post_send_ioctl, false),
	[RPOST_CMD_POST_RECV] = RPOST_ROW(rpost_post, posted,
					  rpost_post_recv_ioctl, false),
	CMD(MODIFY_QP, modify_qp, attr),
	CMD_HW(CREATE_SRQ, create_srq, reserved),
	CMD_HW(MODIFY_SRQ, modify_srq, limit),
	CMD_HW(QUERY_SRQ, query_srq, limit),
	[RPOST_CMD_POST_SRQ_RECV] = RPOST_ROW(rpost_post, posted,
					      rpost_post_srq_recv_ioctl, false),
	CMD_HW(CREATE_AH, create_ah, attr),
	CMD(ATTACH_MCAST, attach_mcast, gid),
	[RPOST_CMD_DETACH_MCAST] = RPOST_ROW(rpost_attach_mcast, gid,
					     rpost_detach_mcast_ioctl, false),
	CMD_HW(RESIZE_CQ, resize_cq, reserved),
	CMD_HW(QUERY_GIDS, query_gids, gids),
	CMD_HW(QUERY_PKEYS, query_pkeys, pkeys),
	CMD(SET_OPTION, set_option, reserved),
	CMD(NOTIFY, notify, event),
	CMD(ESTABLISH, establish, reserved),
	CMD(INIT_QP_ATTR, init_qp_attr, attr),
	CMD(JOIN_MCAST, join_mcast, user_data),
	CMD(LEAVE_MCAST, leave_mcast, addr),
	CMD_HW(CREATE_ASYNC_CHANNEL, create_async_channel, fd),
	CMD_HW(SETUP_SEND_RING, setup_send_ring, data_offset),
	CMD_HW(ENTER_SEND_RING, enter_send_ring, reserved),
};

/**
 * rpost_copy_words() - copy a little from a program
 * @to: where, aligned to 8 bytes
 * @from: a user pointer
 * @bytes: a multiple of 4; some hundred at most
 *
 * For so little copy_from_user() takes longer to check where it may write, and to
 * start, than to copy.
 *
 * Return: 0, or -EFAULT, with anything in @to.
 */
int rpost_copy_words(void *to, const void __user *from, u32 bytes)
{
	const size_t whole = round_down(bytes, sizeof(u64));
	size_t i;

	if (should_fail_usercopy() || !user_read_access_begin(from, bytes))
		return -EFAULT;
	for (i = 0; i < whole; i += sizeof(u64))
		unsafe_get_user(*(u64 *)(to + i), (u64 __user *)(from + i),
				fault);
	if (whole < bytes)
		unsafe_get_user(*(u32 *)(to + i), (u32 __user *)(from + i),
				fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

/* Too short or too long is said first, even of what cannot be read. */
static int rpost_ucmd_check_size(const struct rpost_cmd_row *row, u32 usize)
{
	if (usize < row->min_size)
		return -EINVAL;
	return usize > RPOST_MAX_CMD_SIZE ? -E2BIG : 0;
}

/*
 * Copy a command's struct, each word of it once: what every program has, and then
 * what the size in it says.
 */
static int rpost_ucmd_copy(struct rpost_ucmd *ucmd,
			   const struct rpost_cmd_row *row)
{
	const u32 first = round_down(row->min_size, 4), ksize = row->ksize;
	void *cmd = &ucmd->cmd;
	u32 usize;
	int ret;

	if (rpost_copy_words(cmd, ucmd->ubuf, first)) {
		if (get_user(usize, (u32 __user *)ucmd->ubuf))
			return -EFAULT;
		return rpost_ucmd_check_size(row, usize) ?: -EFAULT;
	}
	/* Every struct begins alike. */
	usize = ucmd->cmd.query.size;
	ret = rpost_ucmd_check_size(row, usize);
	if (ret)
		return ret;
	ucmd->size = min(usize, ksize);
	if (ucmd->size > first &&
	    copy_from_user(cmd + first, ucmd->ubuf + first, ucmd->size - first))
		return -EFAULT;
	if (usize < ksize)
		memset(cmd + usize, 0, ksize - usize);
	if (usize > ksize) {
		ret = check_zeroed_user(ucmd->ubuf + ksize, usize - ksize);
		if (ret <= 0)
			return ret ?: -E2BIG;
	}
	return 0;
}

/**
 * rpost_ucmd_run() - copy a command in and handle it
 * @file: the open file
 * @filp: what the ioctl was called on
 * @row: the command's row
 * @arg: the ioctl's argument, a user pointer
 *
 * Return: 0 or a negative errno, see the table in rdma_post_abi.h.
 */
int rpost_ucmd_run(struct rpost_file *file, struct file *filp,
		   const struct rpost_cmd_row *row, unsigned long arg)
{
	struct rpost_ucmd ucmd rpost_uninitialized;
	u32 flags;
	int ret;

	/* Not @cmd: what a row's struct has is set by the copy, all of it. */
	ucmd.file = file;
	ucmd.filp = filp;
	ucmd.ubuf = (void __user *)arg;
	ret = rpost_ucmd_copy(&ucmd, row);
	if (ret)
		return ret;

	/* Only three commands know any flag. */
	flags = ucmd.cmd.query.flags;
	if (flags && row->handler != rpost_create_qp_ioctl &&
	    row->handler != rpost_create_cq_ioctl &&
	    row->handler != rpost_arm_cq_ioctl)
		return -EOPNOTSUPP;

	if (!row->hw)
		return INDIRECT_CALL_1(row->handler, rpost_post_send_ioctl,
				       &ucmd);
	if (down_read_killable(&file->rwsem))
		return -EINTR;
	ret = row->handler(&ucmd);
	up_read(&file->rwsem);
	return ret;
}

/**
 * rpost_respond() - copy a command's struct back to the program
 * @ucmd: the command
 *
 * Return: 0, or -EFAULT.
 */
int rpost_respond(struct rpost_ucmd *ucmd)
{
	/* @size is what the program said, not what may have changed since. */
	if (copy_to_user(ucmd->ubuf, &ucmd->cmd, ucmd->size))
		return -EFAULT;
	return 0;
}

/**
 * rpost_respond_fd() - give the program a new file
 * @ucmd: the command
 * @fd: where in its struct the descriptor goes
 * @filp: the file; in case of an error the reference is dropped
 *
 * Return: 0, -EMFILE, or -EFAULT.
 */
int rpost_respond_fd(struct rpost_ucmd *ucmd, s32 *fd, struct file *filp)
{
	int ret;

	*fd = get_unused_fd_flags(O_CLOEXEC);
	if (*fd < 0) {
		ret = *fd;
		goto err_file;
	}
	ret = rpost_respond(ucmd);
	if (ret)
		goto err_fd;
	fd_install(*fd, filp);
	return 0;

err_fd:
	put_unused_fd(*fd);
err_file:
	fput(filp);
	return ret;
}

/**
 * rpost_query_ioctl() - what this module is
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_query_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_query *cmd = &ucmd->cmd.query;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	cmd->abi_version = RPOST_ABI_VERSION;
	cmd->num_devices = rpost_device_count(ucmd->file);
	cmd->features = RPOST_FEATURE_ASYNC |
			RPOST_FEATURE_CM |
			RPOST_FEATURE_DATAGRAM |
			RPOST_FEATURE_QP |
			RPOST_FEATURE_RESIZE_CQ |
			RPOST_FEATURE_SEND_RING |
			RPOST_FEATURE_SMALL_RING |
			RPOST_FEATURE_SRQ |
			RPOST_FEATURE_TABLES;
	cmd->max_wr_bytes = RPOST_MAX_WR_BYTES;
	cmd->num_objects = READ_ONCE(ucmd->file->handles.num);
	cmd->num_refused = rpost_device_count_refused(ucmd->file);
	return rpost_respond(ucmd);
}

static long rpost_ioctl(struct file *filp, unsigned int nr, unsigned long arg)
{
	unsigned int cmd = _IOC_NR(nr);

	if (nr != _IO(RPOST_IOC_TYPE, cmd) || cmd >= ARRAY_SIZE(rpost_cmds))
		return -ENOTTY;
	cmd = array_index_nospec(cmd, ARRAY_SIZE(rpost_cmds));
	if (!rpost_cmds[cmd].handler)
		return -ENOTTY;
	return rpost_ucmd_run(filp->private_data, filp, &rpost_cmds[cmd], arg);
}

static int rpost_mmap(struct file *filp, struct vm_area_struct *vma)
{
	int ret = rpost_cq_mmap(filp->private_data, vma);

	return ret == -ENOENT ? rpost_sring_mmap(filp->private_data, vma) : ret;
}

static struct rpost_file *rpost_file_alloc(void)
{
	struct rpost_user *user = rpost_user_get();
	struct rpost_file *file;

	if (!user)
		return NULL;
	if (rpost_user_charge(user, RPOST_FILE_BYTES))
		goto err_user;
	file = kzalloc(sizeof(*file), RPOST_GFP);
	if (!file)
		goto err_charge;
	file->user = user;
	return file;

err_charge:
	rpost_user_uncharge(user, RPOST_FILE_BYTES);
err_user:
	rpost_user_put(user);
	return NULL;
}

static int rpost_open(struct inode *inode, struct file *filp)
{
	struct rpost_file *file;

	file = rpost_file_alloc();
	if (!file)
		return -ENOMEM;
	rpost_count(RPOST_COUNT_FILE, 1);
	kref_init(&file->kref);
	file->net = get_net(current->nsproxy->net_ns);
	file->memcg = get_mem_cgroup_from_mm(current->mm);
	rpost_handles_init(&file->handles);
	init_rwsem(&file->rwsem);
	spin_lock_init(&file->event_lock);
	mutex_init(&file->charge_lock);
	mutex_init(&file->poller_lock);
	rpost_ring_pool_init(&file->rings);
	INIT_LIST_HEAD(&file->contexts);
	INIT_LIST_HEAD(&file->event_channels);
	spin_lock_init(&file->async_lock);
	INIT_LIST_HEAD(&file->async_channels);

	mutex_lock(&rpost_files_lock);
	list_add_tail(&file->link, &rpost_files);
	mutex_unlock(&rpost_files_lock);

	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static void rpost_file_free(struct kref *kref)
{
	struct rpost_file *file = container_of(kref, struct rpost_file, kref);

	rpost_handles_destroy(&file->handles);
	rpost_scratch_free(file);
	mem_cgroup_put(file->memcg);
	rpost_user_uncharge(file->user, RPOST_FILE_BYTES);
	rpost_user_put(file->user);
	kfree(file);
	rpost_count(RPOST_COUNT_FILE, -1);
}

/**
 * rpost_file_put() - drop a reference on an open file
 * @file: the open file
 */
void rpost_file_put(struct rpost_file *file)
{
	kref_put(&file->kref, rpost_file_free);
}

/* The file ends if it can: a device may keep objects until it is removed. */
static void rpost_file_end(struct rpost_file *file)
{
	bool orphan;

	down_read(&file->rwsem);
	orphan = !rpost_file_destroy_all(file);
	file->orphan = orphan;
	up_read(&file->rwsem);
	if (orphan)
		return;

	mutex_lock(&rpost_files_lock);
	list_del(&file->link);
	mutex_unlock(&rpost_files_lock);
	rpost_file_put(file);
}

static int rpost_release(struct inode *inode, struct file *filp)
{
	struct rpost_file *file = filp->private_data;

	WRITE_ONCE(file->dead, true);
	rpost_event_channels_wake(file);
	/* Removal may end an orphan as soon as it has the rwsem. */
	kref_get(&file->kref);
	rpost_file_end(file);
	/* Held by an orphan, it could hold up the device's removal. */
	put_net(file->net);
	rpost_file_put(file);
	return 0;
}

/* A file that the removal has not seen yet, with a reference. */
static struct rpost_file *rpost_file_for_removal(u64 removal)
{
	struct rpost_file *file;

	mutex_lock(&rpost_files_lock);
	list_for_each_entry(file, &rpost_files, link) {
		if (file->removal == removal)
			continue;
		file->removal = removal;
		kref_get(&file->kref);
		mutex_unlock(&rpost_files_lock);
		return file;
	}
	mutex_unlock(&rpost_files_lock);
	return NULL;
}

/**
 * rpost_files_device_gone() - shut down every object on a device
 * @dev: the device, which is dead: nothing new is made on it
 *
 * A file that is being closed stays in the list until its objects are gone.
 */
void rpost_files_device_gone(struct rpost_device *dev)
{
	static DEFINE_MUTEX(one_at_a_time);
	static u64 removals;
	struct rpost_file *file;
	bool orphan;

	mutex_lock(&one_at_a_time);
	removals++;
	while ((file = rpost_file_for_removal(removals))) {
		down_write(&file->rwsem);
		rpost_file_shutdown_device(file, dev);
		orphan = file->orphan;
		up_write(&file->rwsem);
		if (orphan)
			rpost_file_end(file);
		rpost_file_put(file);
	}
	mutex_unlock(&one_at_a_time);
}

static const struct file_operations rpost_fops = {
	.owner		= THIS_MODULE,
	.open		= rpost_open,
	.release	= rpost_release,
	.unlocked_ioctl	= rpost_ioctl,
	.compat_ioctl	= compat_ptr_ioctl,
	.mmap		= rpost_mmap,
	.llseek		= noop_llseek,
};

static struct miscdevice rpost_misc = {
	.minor		= MISC_DYNAMIC_MINOR,
	.name		= "rdma_post",
	.nodename	= "rdma_post",
	.fops		= &rpost_fops,
	.mode		= 0666,
};

static int __init rpost_init(void)
{
	int ret;

	ret = rpost_admit_init();
	if (ret)
		return ret;
	rpost_wq = alloc_workqueue("rdma_post", WQ_UNBOUND, 0);
	if (!rpost_wq)
		return -ENOMEM;
	rpost_count_init();
	ret = rpost_device_register();
	if (ret)
		goto err_count;
	ret = misc_register(&rpost_misc);
	if (ret)
		goto err_device;
	return 0;

err_device:
	rpost_device_unregister();
err_count:
	rpost_count_exit();
	destroy_workqueue(rpost_wq);
	return ret;
}
module_init(rpost_init);

static void __exit rpost_exit(void)
{
	misc_deregister(&rpost_misc);
	rpost_device_unregister();
	rpost_count_exit();
	destroy_workqueue(rpost_wq);
}
module_exit(rpost_exit);

MODULE_DESCRIPTION("RDMA operations through ioctls");
MODULE_AUTHOR("The rdma_post developers");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
