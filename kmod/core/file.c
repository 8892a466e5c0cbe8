// SPDX-License-Identifier: GPL-2.0
/*
 * Open files, and how a command is copied in and answered.
 */
#include <linux/fault-inject-usercopy.h>
#include <linux/memcontrol.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>

#include "core/device.h"
#include "core/stats.h"

static atomic64_t rpost_last_file;

/* Longer structs are copied by copy_struct_from_user(), whose checks count for less there. */
#define RPOST_FEW_WORDS		64

/*
 * Copy a few words from the program: copy_from_user() takes longer to begin.  bytes is a
 * multiple of 8.  Return 0 or -EFAULT.
 */
int rpost_copy_words(void *to, const void __user *from, u32 bytes)
{
	const u64 __user *src = from;
	u64 *dst = to, *end = to + bytes;

	if (should_fail_usercopy() || !user_read_access_begin(src, bytes))
		return -EFAULT;
	for (; dst < end; dst++, src++)
		unsafe_get_user(*dst, src, fault);
	user_read_access_end();
	return 0;
fault:
	user_read_access_end();
	return -EFAULT;
}

/* Copy a command's struct, of the size that the program gives. */
static int rpost_ucmd_copy(struct rpost_ucmd *ucmd,
			   const struct rpost_cmd_row *row)
{
	u32 usize;

	if (get_user(usize, (u32 __user *)ucmd->ubuf))
		return -EFAULT;
	if (usize < row->min_size)
		return -EINVAL;
	if (usize > RPOST_MAX_CMD_SIZE)
		return -E2BIG;
	ucmd->size = min_t(u32, usize, row->ksize);
	if (usize == row->ksize && usize <= RPOST_FEW_WORDS && !(usize % sizeof(u64)))
		return rpost_copy_words(&ucmd->cmd, ucmd->ubuf, usize);
	return copy_struct_from_user(&ucmd->cmd, row->ksize, ucmd->ubuf, usize);
}

/*
 * Copy a command in and handle it.  filp is the file that the ioctl was called on,
 * and arg a user pointer.  For the errnos see the table in rdma_post_abi.h.
 */
int rpost_ucmd_run(struct rpost_file *file, struct file *filp,
		   const struct rpost_cmd_row *row, unsigned long arg)
{
	struct rpost_ucmd ucmd rpost_uninitialized;
	int ret;

	/* The copy initialises the command's struct in @cmd. */
	ucmd.file = file;
	ucmd.filp = filp;
	ucmd.ubuf = (void __user *)arg;
	ret = rpost_ucmd_copy(&ucmd, row);
	if (ret)
		return ret;

	if (ucmd.cmd.query.flags & ~row->flags)
		return -EOPNOTSUPP;

	this_cpu_inc(file->stats->commands);
	ucmd.context = NULL;
	ret = row->handler(&ucmd);
	rpost_leave_device(&ucmd);
	return ret;
}

/*
 * Copy a command's struct back to the program.  The command leaves its device: the copy may
 * wait for ever.  Return 0 or -EFAULT.
 */
int rpost_respond(struct rpost_ucmd *ucmd)
{
	rpost_leave_device(ucmd);
	/* @size was read once; the program may have changed its copy since. */
	return copy_to_user(ucmd->ubuf, &ucmd->cmd, ucmd->size) ? -EFAULT : 0;
}

static unsigned long rpost_file_bytes(void)
{
	return RPOST_FILE_BYTES + num_possible_cpus() * sizeof(struct rpost_stats);
}

/* Return a new file of the task, or NULL without memory or at the user's limit. */
struct rpost_file *rpost_file_create(void)
{
	struct rpost_user *user = rpost_user_get();
	struct rpost_file *file;

	if (!user)
		return NULL;
	file = kzalloc(sizeof(*file), RPOST_GFP);
	if (!file)
		goto err_user;
	file->user = user;
	if (rpost_charge(file, rpost_file_bytes()))
		goto err_free;
	file->stats = alloc_percpu_gfp(struct rpost_stats, RPOST_GFP);
	file->name = rpost_name_get();
	file->pid = task_tgid_nr(current);
	if (!file->stats || !file->name)
		goto err_charge;
	rpost_count(RPOST_COUNT_FILE, 1);
	file->id = atomic64_inc_return(&rpost_last_file);
	kref_init(&file->kref);
	file->net = get_net(current->nsproxy->net_ns);
	file->memcg = get_mem_cgroup_from_mm(current->mm);
	spin_lock_init(&file->handles.lock);
	hash_init(file->qps);
	hash_init(file->named);
	spin_lock_init(&file->event_lock);
	mutex_init(&file->charge_lock);
	mutex_init(&file->rings.lock);
	INIT_LIST_HEAD(&file->rings.pages);
	INIT_LIST_HEAD(&file->contexts);
	INIT_LIST_HEAD(&file->event_channels);
	spin_lock_init(&file->async_lock);
	INIT_LIST_HEAD(&file->async_channels);
	rpost_tenant_open(&file->tenant);
	return file;

err_charge:
	rpost_name_put(file->name);
	free_percpu(file->stats);
	rpost_uncharge(file, rpost_file_bytes());
err_free:
	kfree(file);
err_user:
	rpost_user_put(user);
	return NULL;
}

static void rpost_file_free(struct kref *kref)
{
	struct rpost_file *file = container_of(kref, struct rpost_file, kref);
	u32 i;

	rpost_tenant_close(&file->tenant);
	rpost_handles_destroy(&file->handles);
	for (i = 0; i < ARRAY_SIZE(file->scratch); i++)
		kfree(file->scratch[i]);
	mem_cgroup_put(file->memcg);
	free_percpu(file->stats);
	rpost_uncharge(file, rpost_file_bytes());
	rpost_user_put(file->user);
	rpost_name_put(file->name);
	kfree(file);
	rpost_count(RPOST_COUNT_FILE, -1);
}

void rpost_file_put(struct rpost_file *file)
{
	kref_put(&file->kref, rpost_file_free);
}

/* End the file; if a device refuses, it stays until a removal tries again. */
static void rpost_file_end(struct rpost_file *file)
{
	unsigned int removals;
	bool orphan = false;

	while (!orphan) {
		removals = READ_ONCE(file->removals);
		if (rpost_file_destroy_all(file)) {
			rpost_file_put(file);
			return;
		}
		/* A removal since then has not seen an orphan: try again. */
		mutex_lock(&file->charge_lock);
		orphan = removals == file->removals;
		file->orphan = orphan;
		mutex_unlock(&file->charge_lock);
	}
}

/*
 * Try again to end an orphan after a removal, which has shut down its objects on the
 * device.  The caller has a reference on the file.
 */
void rpost_file_retry_end(struct rpost_file *file)
{
	bool orphan;

	mutex_lock(&file->charge_lock);
	WRITE_ONCE(file->removals, file->removals + 1);
	orphan = file->orphan;
	file->orphan = false;
	mutex_unlock(&file->charge_lock);
	if (orphan)
		rpost_file_end(file);
}

/* The last close.  The caller has set @dead and woken the fetchers of events. */
void rpost_file_close(struct rpost_file *file)
{
	/* From rpost_file_end() on, a device removal may free the file. */
	kref_get(&file->kref);
	rpost_file_end(file);
	/* Now, as an orphan would pin it until a device is removed. */
	put_net(file->net);
	rpost_file_put(file);
}
