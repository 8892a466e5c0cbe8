// SPDX-License-Identifier: GPL-2.0
/*
 * Send rings: work requests that the program writes to shared memory, and the
 * thread that posts them.  See struct rpost_sring and struct rpost_poller.
 */
#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "rpost.h"

/* What is copied at once: at least the longest work request. */
#define RPOST_SRING_BLOCK	8192
#define RPOST_SRING_BATCH	16
#define RPOST_SRING_MIN		4096
/* In us; see struct rpost_poller. */
#define RPOST_POLLER_PATIENCE	100
#define RPOST_POLLER_NAP	50

static_assert(RPOST_MAX_SGE * sizeof(struct rpost_sge) <= RPOST_MAX_INLINE);
static_assert(sizeof(struct rpost_send_wr) + RPOST_MAX_INLINE <= RPOST_SRING_MIN);
static_assert(RPOST_SRING_MIN <= RPOST_SRING_BLOCK);

static unsigned int max_pollers = 8;
module_param(max_pollers, uint, 0644);
MODULE_PARM_DESC(max_pollers, "Threads that serve send rings, of all users (8)");

static unsigned int max_user_pollers = 2;
module_param(max_user_pollers, uint, 0644);
MODULE_PARM_DESC(max_user_pollers,
		 "Threads that serve send rings, of one user (2)");

static unsigned int poller_idle_ms = 10;
module_param(poller_idle_ms, uint, 0644);
MODULE_PARM_DESC(poller_idle_ms,
		 "Milliseconds without work after which such a thread sleeps, up to 1000 (10)");

static DEFINE_MUTEX(rpost_pollers_lock);
static LIST_HEAD(rpost_pollers);

/* Who made the last pollers, and when; under rpost_pollers_lock. */
static struct {
	kuid_t uid;
	unsigned long at;
} rpost_pollers_made[16];
static unsigned int rpost_num_pollers_made;

static struct rpost_send_ring *rpost_sring_hdr(const struct rpost_sring *ring)
{
	return (struct rpost_send_ring *)ring->mem.hdr;
}

static void rpost_sring_set_flags(struct rpost_sring *ring, u32 set, u32 clear)
{
	u32 flags = (ring->flags & ~clear) | set;

	if (flags == ring->flags)
		return;
	ring->flags = flags;
	WRITE_ONCE(rpost_sring_hdr(ring)->flags, flags);
}

static void rpost_sring_fail(struct rpost_sring *ring, int error)
{
	ring->error = error;
	WRITE_ONCE(rpost_sring_hdr(ring)->error, -error);
}

/* The program may use the bytes again. */
static void rpost_sring_advance(struct rpost_sring *ring, u32 bytes)
{
	ring->head += bytes;
	/* After they were read. */
	smp_store_release(&rpost_sring_hdr(ring)->head, ring->head);
}

/* Copy what lies at the head, of which the program has shown so much. */
static void rpost_sring_read(const struct rpost_sring *ring, void *to, u32 bytes)
{
	const void *data = ring->mem.wcs;
	u32 at = ring->head & (ring->bytes - 1);
	u32 first = min(bytes, ring->bytes - at);

	memcpy(to, data + at, first);
	memcpy(to + first, data, bytes - first);
}

/*
 * Copy whole work requests out of the ring, once.  Returns how many, or -EINVAL
 * for what cannot be.
 */
static int rpost_sring_copy(struct rpost_sring *ring, void *block)
{
	u32 bytes, size, n = 0, used = 0;

	/* Before the bytes. */
	bytes = smp_load_acquire(&rpost_sring_hdr(ring)->tail) - ring->head;
	if (bytes > ring->bytes || bytes % 8)
		return -EINVAL;
	bytes = min_t(u32, bytes, RPOST_SRING_BLOCK);
	rpost_sring_read(ring, block, bytes);

	while (n < RPOST_SRING_BATCH &&
	       bytes - used >= sizeof(struct rpost_send_wr)) {
		size = ((const struct rpost_send_wr *)(block + used))->size;
		if (size < sizeof(struct rpost_send_wr) || size % 8)
			break;
		if (size > bytes - used)
			break;
		used += size;
		n++;
	}
	/* The longest would be here in one piece. */
	return n || !bytes ? n : -EINVAL;
}

/* Bytes of the first work requests of a block. */
static u32 rpost_block_bytes(const void *block, u32 count)
{
	u32 used = 0;

	while (count--)
		used += ((const struct rpost_send_wr *)(block + used))->size;
	return used;
}

static bool rpost_sring_may_post(const struct rpost_qp *qp)
{
	return (!qp->id || READ_ONCE(qp->id->can_send)) &&
	       !READ_ONCE(qp->sq.closed);
}

/* Does trying later help? */
static bool rpost_sring_waits(const struct rpost_qp *qp, int ret)
{
	return ret == -ENOMEM || ret == -ENOBUFS || ret == -EAGAIN ||
	       !rpost_sring_may_post(qp);
}

/* Post what is in a ring.  Returns whether there was anything to do. */
static bool rpost_sring_post(struct rpost_sring *ring, void *block)
{
	const struct rpost_send_wr *wr;
	struct rpost_qp *qp = ring->qp;
	u32 posted = 0, bytes;
	int ret, n;

	if (ring->error ||
	    READ_ONCE(rpost_sring_hdr(ring)->tail) == ring->head)
		return false;
	if (!rpost_sring_may_post(qp)) {
		rpost_sring_set_flags(ring, RPOST_SEND_RING_BLOCKED, 0);
		return false;
	}
	n = rpost_sring_copy(ring, block);
	if (n <= 0) {
		if (n)
			rpost_sring_fail(ring, n);
		return false;
	}
	ret = rpost_post_ring(qp, block, n, &posted);
	bytes = rpost_block_bytes(block, posted);
	if (ret && !rpost_sring_waits(qp, ret)) {
		wr = block + bytes;
		ret = rpost_post_refused(qp, wr->wr_id);
		if (!ret) {
			posted++;
			bytes += wr->size;
		} else if (!rpost_sring_waits(qp, ret)) {
			rpost_sring_fail(ring, ret);
		}
	}
	/* Before the program sees that there is room. */
	if (ret)
		rpost_sring_set_flags(ring, RPOST_SEND_RING_BLOCKED, 0);
	else
		rpost_sring_set_flags(ring, 0, RPOST_SEND_RING_BLOCKED);
	if (bytes)
		rpost_sring_advance(ring, bytes);
	return posted;
}

/* Look at each ring and its completions.  Returns whether there were any. */
static bool rpost_poller_round(struct rpost_poller *poller)
{
	struct rpost_sring *ring;
	struct rpost_queue *sq;
	bool busy = false;

	poller->outstanding = false;
	mutex_lock(&poller->lock);
	list_for_each_entry(ring, &poller->rings, link) {
		sq = &ring->qp->sq;
		/* First: posts that complete at once need no other mode then. */
		if (rpost_cq_poller_fetch(ring->qp->send_cq))
			busy = true;
		/* A hint. */
		if (READ_ONCE(sq->head) != READ_ONCE(sq->tail))
			poller->outstanding = true;
		if (rpost_sring_post(ring, poller->block)) {
			rpost_cq_poller_fetch(ring->qp->send_cq);
			busy = true;
		}
		cond_resched();
	}
	mutex_unlock(&poller->lock);
	return busy;
}

/*
 * There was nothing to do.  Whoever waits for this CPU may be what the poller waits
 * for, such as a thread in which the device works, or a program.
 */
static void rpost_poller_give_way(struct rpost_poller *poller)
{
	ktime_t now = ktime_get();

	if (!poller->since)
		poller->since = now;
	if (!poller->outstanding ||
	    ktime_us_delta(now, poller->since) < RPOST_POLLER_PATIENCE) {
		cpu_relax();
		yield();
		return;
	}
	/* An idle CPU takes over a thread that waits for one on another. */
	usleep_range_state(RPOST_POLLER_NAP, RPOST_POLLER_NAP + 20, TASK_IDLE);
	poller->since = 0;
}

static unsigned long rpost_poller_idle(void)
{
	return msecs_to_jiffies(min(READ_ONCE(poller_idle_ms), 1000U));
}

/*
 * Tell programs that nobody looks any more.  Returns how long to sleep: 0 if
 * there is something to do after all, and not for ever if something waits for
 * what nobody tells of, as for a program to consume its completions.
 */
static unsigned long rpost_poller_lie_down(struct rpost_poller *poller)
{
	unsigned long timeout = MAX_SCHEDULE_TIMEOUT;
	struct rpost_sring *ring;

	lockdep_assert_held(&poller->lock);

	list_for_each_entry(ring, &poller->rings, link)
		rpost_sring_set_flags(ring, RPOST_SEND_RING_NEED_WAKEUP, 0);
	/* Pairs with the program's barrier between @tail and @flags. */
	smp_mb();
	list_for_each_entry(ring, &poller->rings, link) {
		if (ring->error ||
		    READ_ONCE(rpost_sring_hdr(ring)->tail) == ring->head)
			continue;
		if (!(ring->flags & RPOST_SEND_RING_BLOCKED))
			return 0;
		timeout = max(rpost_poller_idle(), 1UL);
	}
	list_for_each_entry(ring, &poller->rings, link)
		rpost_cq_poller_leaves(ring->qp->send_cq);
	return timeout;
}

/* Returns false if only the time was over. */
static bool rpost_poller_sleep(struct rpost_poller *poller)
{
	struct rpost_sring *ring;
	unsigned long timeout;
	bool woken = true;

	mutex_lock(&poller->lock);
	poller->asleep = true;
	timeout = rpost_poller_lie_down(poller);
	mutex_unlock(&poller->lock);

	if (timeout)
		woken = wait_event_idle_timeout(poller->wait,
						READ_ONCE(poller->wake) ||
						kthread_should_stop(), timeout);

	mutex_lock(&poller->lock);
	/* Before the rings are looked at. */
	xchg(&poller->wake, false);
	poller->asleep = false;
	list_for_each_entry(ring, &poller->rings, link)
		rpost_sring_set_flags(ring, 0, RPOST_SEND_RING_NEED_WAKEUP);
	mutex_unlock(&poller->lock);
	return woken;
}

static int rpost_poller_run(void *data)
{
	struct rpost_poller *poller = data;
	unsigned long busy = jiffies;
	struct mem_cgroup *old;
	bool woken;

	old = set_active_memcg(poller->file->memcg);
	while (!kthread_should_stop()) {
		if (rpost_poller_round(poller)) {
			busy = jiffies;
			poller->since = 0;
		} else if (!READ_ONCE(poller->num_rings) ||
			   time_after_eq(jiffies, busy + rpost_poller_idle())) {
			/* If nobody woke it, one look is enough. */
			woken = rpost_poller_sleep(poller);
			busy = jiffies - (woken ? 0 : rpost_poller_idle());
			poller->since = 0;
		} else {
			rpost_poller_give_way(poller);
		}
		/* RCU's tasks would wait for one that never sleeps. */
		cond_resched_tasks_rcu_qs();
	}
	set_active_memcg(old);
	return 0;
}

/*
 * Has the user made as many in the last second as it may have?  To move a task
 * between cgroups has all that fork wait, on all of the host.
 */
static bool rpost_poller_too_soon(const struct rpost_user *user)
{
	unsigned int i, n = 0;

	lockdep_assert_held(&rpost_pollers_lock);

	for (i = 0; i < ARRAY_SIZE(rpost_pollers_made); i++)
		n += uid_eq(rpost_pollers_made[i].uid, user->uid) &&
		     time_before(jiffies, rpost_pollers_made[i].at + HZ);
	return !user->exempt && n >= READ_ONCE(max_user_pollers);
}

static void rpost_poller_note(kuid_t uid)
{
	unsigned int i = rpost_num_pollers_made++ % ARRAY_SIZE(rpost_pollers_made);

	rpost_pollers_made[i].uid = uid;
	rpost_pollers_made[i].at = jiffies;
}

static int rpost_poller_try_admit(struct rpost_poller *poller)
{
	const struct rpost_user *user = poller->file->user;
	unsigned int all = 0, own = 0;
	struct rpost_poller *other;
	int ret = 0;

	mutex_lock(&rpost_pollers_lock);
	list_for_each_entry(other, &rpost_pollers, link) {
		all++;
		own += other->file->user == user;
	}
	if (all >= READ_ONCE(max_pollers) ||
	    (!user->exempt && own >= READ_ONCE(max_user_pollers))) {
		ret = -EMFILE;
	} else if (rpost_poller_too_soon(user)) {
		ret = -EAGAIN;
	} else {
		list_add_tail(&poller->link, &rpost_pollers);
		if (!user->exempt)
			rpost_poller_note(user->uid);
	}
	mutex_unlock(&rpost_pollers_lock);
	return ret;
}

/* Count a poller, if this user may have one more, and make one now or soon. */
static int rpost_poller_admit(struct rpost_poller *poller)
{
	int ret = rpost_poller_try_admit(poller);

	if (ret != -EAGAIN)
		return ret;
	schedule_timeout_killable(HZ);
	ret = rpost_poller_try_admit(poller);
	return ret == -EAGAIN ? -EMFILE : ret;
}

static void rpost_poller_dismiss(struct rpost_poller *poller)
{
	mutex_lock(&rpost_pollers_lock);
	list_del(&poller->link);
	mutex_unlock(&rpost_pollers_lock);
}

/* It runs where the program runs that asks for it, and is no more urgent. */
static int rpost_poller_start(struct rpost_poller *poller)
{
	struct task_struct *task;
	int ret;

	task = kthread_create(rpost_poller_run, poller, "rdma_post-%d",
			      current->tgid);
	if (IS_ERR(task))
		return PTR_ERR(task);
	ret = cgroup_attach_task_all(current, task);
	if (ret) {
		kthread_stop(task);
		return ret;
	}
	get_task_struct(task);
	poller->task = task;
	wake_up_process(task);
	return 0;
}

static struct rpost_poller *rpost_poller_create(struct rpost_file *file)
{
	struct rpost_poller *poller;
	int ret = -ENOMEM;

	poller = kzalloc(sizeof(*poller), RPOST_GFP);
	if (!poller)
		return ERR_PTR(-ENOMEM);
	poller->file = file;
	mutex_init(&poller->lock);
	INIT_LIST_HEAD(&poller->rings);
	init_waitqueue_head(&poller->wait);
	poller->block = kmalloc(RPOST_SRING_BLOCK, RPOST_GFP);
	if (!poller->block)
		goto err_free;
	ret = rpost_poller_admit(poller);
	if (ret)
		goto err_block;
	ret = rpost_poller_start(poller);
	if (ret)
		goto err_dismiss;
	rpost_count(RPOST_COUNT_POLLER, 1);
	return poller;

err_dismiss:
	rpost_poller_dismiss(poller);
err_block:
	kfree(poller->block);
err_free:
	kfree(poller);
	return ERR_PTR(ret);
}

static void rpost_poller_end(struct rpost_poller *poller)
{
	poller->file->poller = NULL;
	kthread_stop(poller->task);
	put_task_struct(poller->task);
	rpost_poller_dismiss(poller);
	kfree(poller->block);
	kfree(poller);
	rpost_count(RPOST_COUNT_POLLER, -1);
}

/* Would one that is made now be in the same cgroups? */
static bool rpost_poller_fits(const struct rpost_poller *poller)
{
	bool same = true;

#ifdef CONFIG_CGROUPS
	rcu_read_lock();
	same = task_css_set(poller->task) == task_css_set(current);
	rcu_read_unlock();
#endif
	return same;
}

/* The file's poller, with one ring more. */
static struct rpost_poller *rpost_poller_get(struct rpost_file *file)
{
	struct rpost_poller *poller = file->poller;

	lockdep_assert_held(&file->poller_lock);

	if (poller && !poller->num_rings && !rpost_poller_fits(poller)) {
		rpost_poller_end(poller);
		poller = NULL;
	}
	if (!poller) {
		poller = rpost_poller_create(file);
		if (IS_ERR(poller))
			return poller;
		file->poller = poller;
	}
	if (!poller->num_rings)
		set_user_nice(poller->task, task_nice(current));
	WRITE_ONCE(poller->num_rings, poller->num_rings + 1);
	return poller;
}

static void rpost_poller_put(struct rpost_poller *poller)
{
	lockdep_assert_held(&poller->file->poller_lock);

	WRITE_ONCE(poller->num_rings, poller->num_rings - 1);
}

/**
 * rpost_poller_stop() - end the thread that has served an open file's rings
 * @file: the open file, without rings, and nobody makes one any more
 */
void rpost_poller_stop(struct rpost_file *file)
{
	mutex_lock(&file->poller_lock);
	if (file->poller)
		rpost_poller_end(file->poller);
	mutex_unlock(&file->poller_lock);
}

static struct rpost_sring *rpost_sring_alloc(struct rpost_qp *qp, u32 bytes)
{
	struct rpost_sring *ring = kzalloc(sizeof(*ring), RPOST_GFP);

	if (!ring)
		return NULL;
	ring->qp = qp;
	ring->bytes = bytes;
	INIT_LIST_HEAD(&ring->link);
	if (rpost_ring_alloc(&ring->mem, qp->obj.file->user, NULL, 1, bytes)) {
		kfree(ring);
		return NULL;
	}
	return ring;
}

/* Nobody else is about to give the queue pair a ring from here on. */
static int rpost_sring_begin(struct rpost_qp *qp, struct rpost_sring *ring)
{
	struct rpost_file *file = qp->obj.file;
	struct rpost_poller *poller;
	int ret = 0;

	mutex_lock(&file->poller_lock);
	if (qp->sring || qp->sring_begins) {
		ret = -EINVAL;
		goto out;
	}
	poller = rpost_poller_get(file);
	if (IS_ERR(poller)) {
		ret = PTR_ERR(poller);
		goto out;
	}
	ring->poller = poller;
	qp->sring_begins = true;
out:
	mutex_unlock(&file->poller_lock);
	return ret;
}

static void rpost_sring_publish(struct rpost_sring *ring)
{
	struct rpost_poller *poller = ring->poller;
	struct rpost_qp *qp = ring->qp;

	mutex_lock(&qp->obj.file->poller_lock);
	mutex_lock(&poller->lock);
	if (poller->asleep)
		rpost_sring_set_flags(ring, RPOST_SEND_RING_NEED_WAKEUP, 0);
	list_add_tail(&ring->link, &poller->rings);
	mutex_unlock(&poller->lock);
	qp->sring_begins = false;
	/* After all that it has. */
	smp_store_release(&qp->sring, ring);
	mutex_unlock(&qp->obj.file->poller_lock);
}

static void rpost_sring_give_up(struct rpost_sring *ring)
{
	struct rpost_qp *qp = ring->qp;

	mutex_lock(&qp->obj.file->poller_lock);
	qp->sring_begins = false;
	rpost_poller_put(ring->poller);
	mutex_unlock(&qp->obj.file->poller_lock);
}

static int rpost_setup_send_ring(struct rpost_ucmd *ucmd, struct rpost_qp *qp)
{
	struct rpost_setup_send_ring *cmd = &ucmd->cmd.setup_send_ring;
	struct rpost_sring *ring;
	int ret;

	if (!rpost_device_alive(qp->obj.dev))
		return -ENODEV;
	if (!cmd->bytes || cmd->bytes > RPOST_MAX_WR_BYTES)
		return -EINVAL;
	cmd->bytes = roundup_pow_of_two(max_t(u32, cmd->bytes, RPOST_SRING_MIN));
	ring = rpost_sring_alloc(qp, cmd->bytes);
	if (!ring)
		return -ENOMEM;
	ret = rpost_sring_begin(qp, ring);
	if (ret)
		goto err_free;

	cmd->mmap_offset = (u64)qp->obj.handle << PAGE_SHIFT;
	cmd->mmap_size = ring->mem.mem->num_pages << PAGE_SHIFT;
	cmd->data_offset = sizeof(struct rpost_send_ring);
	ret = rpost_respond(ucmd);
	if (ret)
		goto err_begun;
	rpost_sring_publish(ring);
	return 0;

err_begun:
	rpost_sring_give_up(ring);
err_free:
	rpost_ring_free(&ring->mem);
	kfree(ring);
	return ret;
}

/**
 * rpost_setup_send_ring_ioctl() - give a queue pair a ring
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_setup_send_ring_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_obj *obj;
	int ret;

	obj = rpost_obj_get(ucmd->file, ucmd->cmd.setup_send_ring.qp,
			    RPOST_OBJ_QP);
	if (!obj)
		return -ENOENT;
	ret = rpost_setup_send_ring(ucmd,
				    container_of(obj, struct rpost_qp, obj));
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_enter_send_ring_ioctl() - wake who serves a ring
 * @ucmd: the command
 *
 * Return: 0 or a negative errno.
 */
int rpost_enter_send_ring_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_enter_send_ring *cmd = &ucmd->cmd.enter_send_ring;
	struct rpost_sring *ring;
	struct rpost_obj *obj;
	int ret = 0;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	obj = rpost_obj_get(ucmd->file, cmd->qp, RPOST_OBJ_QP);
	if (!obj)
		return -ENOENT;
	/* Pairs with the release in rpost_sring_publish(). */
	ring = smp_load_acquire(&container_of(obj, struct rpost_qp, obj)->sring);
	if (!ring) {
		ret = -EINVAL;
	} else if (!ring->poller) {
		/* Removal, which the file's rwsem keeps out here, has stopped it. */
		ret = -ENODEV;
	} else {
		/* After what the program has written. */
		smp_store_release(&ring->poller->wake, true);
		wake_up(&ring->poller->wait);
	}
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_sring_mmap() - map a queue pair's send ring
 * @file: the open file
 * @vma: where; its offset is the queue pair's handle in pages
 *
 * Return: 0 or a negative errno.
 */
int rpost_sring_mmap(struct rpost_file *file, struct vm_area_struct *vma)
{
	struct rpost_sring *ring;
	struct rpost_obj *obj;
	int ret = -ENOENT;

	if (vma->vm_pgoff > U32_MAX)
		return -EINVAL;
	obj = rpost_obj_get(file, vma->vm_pgoff, RPOST_OBJ_QP);
	if (!obj)
		return -ENOENT;
	/* Pairs with the release in rpost_sring_publish(). */
	ring = smp_load_acquire(&container_of(obj, struct rpost_qp, obj)->sring);
	if (ring)
		ret = rpost_ring_mmap(&ring->mem, vma);
	rpost_obj_put(obj);
	return ret;
}

/**
 * rpost_sring_discard() - give up what is in a queue pair's ring
 * @qp: the queue pair, locked, whose send queue takes nothing
 */
void rpost_sring_discard(struct rpost_qp *qp)
{
	struct rpost_file *file = qp->obj.file;
	struct rpost_sring *ring;
	u32 bytes;

	mutex_lock(&file->poller_lock);
	ring = qp->sring;
	if (ring && ring->poller) {
		mutex_lock(&ring->poller->lock);
		bytes = READ_ONCE(rpost_sring_hdr(ring)->tail) - ring->head;
		if (bytes <= ring->bytes && bytes % 8 == 0)
			rpost_sring_advance(ring, bytes);
		rpost_sring_set_flags(ring, 0, RPOST_SEND_RING_BLOCKED);
		mutex_unlock(&ring->poller->lock);
	}
	mutex_unlock(&file->poller_lock);
}

/**
 * rpost_sring_stop() - the poller looks at a queue pair's ring no more
 * @qp: the queue pair, not locked
 *
 * Does nothing the second time, or without a ring.
 */
void rpost_sring_stop(struct rpost_qp *qp)
{
	struct rpost_file *file = qp->obj.file;
	struct rpost_poller *poller;
	struct rpost_sring *ring;

	mutex_lock(&file->poller_lock);
	ring = qp->sring;
	poller = ring ? ring->poller : NULL;
	if (poller) {
		mutex_lock(&poller->lock);
		list_del_init(&ring->link);
		rpost_cq_poller_leaves(qp->send_cq);
		mutex_unlock(&poller->lock);
		ring->poller = NULL;
		rpost_poller_put(poller);
	}
	mutex_unlock(&file->poller_lock);
}

/* Of a work request that is not to be posted only the beginning is of interest. */
static bool rpost_sring_next(struct rpost_sring *ring, struct rpost_send_wr *wr)
{
	u32 bytes;

	/* Before the bytes. */
	bytes = smp_load_acquire(&rpost_sring_hdr(ring)->tail) - ring->head;
	if (bytes > ring->bytes || bytes < sizeof(*wr))
		return false;
	rpost_sring_read(ring, wr, sizeof(*wr));
	return wr->size >= sizeof(*wr) && wr->size <= bytes &&
	       wr->size % 8 == 0;
}

/* At most what it holds: the program may go on writing. */
static void rpost_sring_flush_some(struct rpost_sring *ring)
{
	struct rpost_wc wc = {
		.status = RPOST_WC_WR_FLUSH_ERR,
		.opcode = RPOST_WC_SEND,
		.qp_num = ring->qp->qp_num,
	};
	struct rpost_send_wr wr;
	u32 bytes = 0;

	while (bytes < ring->bytes && rpost_sring_next(ring, &wr)) {
		wc.wr_id = wr.wr_id;
		rpost_cq_tell(ring->qp->send_cq, &wc);
		bytes += wr.size;
		rpost_sring_advance(ring, wr.size);
		cond_resched();
	}
}

/**
 * rpost_sring_flush() - complete what a ring holds when its device goes
 * @qp: the queue pair, locked, whose device's queues are empty, its ring stopped
 *
 * The program is told, too, and what it has written before it could know of it
 * completes as well.
 */
void rpost_sring_flush(struct rpost_qp *qp)
{
	struct rpost_sring *ring = qp->sring;

	if (!ring || ring->error)
		return;
	rpost_sring_flush_some(ring);
	rpost_sring_fail(ring, -ENODEV);
	/* Pairs with the program's barrier between @tail and @error. */
	smp_mb();
	rpost_sring_flush_some(ring);
}

/**
 * rpost_sring_free() - free a queue pair's ring
 * @qp: the queue pair, shut down
 */
void rpost_sring_free(struct rpost_qp *qp)
{
	if (!qp->sring)
		return;
	/* It may still be mapped. */
	rpost_sring_fail(qp->sring, -ENODEV);
	rpost_ring_free(&qp->sring->mem);
	kfree(qp->sring);
}
