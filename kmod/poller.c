// SPDX-License-Identifier: GPL-2.0
/*
 * The threads that serve submission rings.  See struct rpost_poller.
 */
#include <linux/cgroup.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "device.h"
#include "poller.h"

/* In us; see rpost_poller_give_way(). */
#define RPOST_POLLER_PATIENCE	100
#define RPOST_POLLER_NAP	50

static unsigned int max_pollers = 8;
module_param(max_pollers, uint, 0644);
MODULE_PARM_DESC(max_pollers,
		 "Threads that serve submission rings, of all users (8)");

static unsigned int max_user_pollers = 2;
module_param(max_user_pollers, uint, 0644);
MODULE_PARM_DESC(max_user_pollers,
		 "Threads that serve submission rings, of one user (2)");

static unsigned int poller_idle_ms = 10;
module_param(poller_idle_ms, uint, 0644);
MODULE_PARM_DESC(poller_idle_ms,
		 "Milliseconds without work before such a thread sleeps, up to 1000 (10)");

static DEFINE_MUTEX(rpost_pollers_lock);
static LIST_HEAD(rpost_pollers);

/* User and start time of the last pollers; under rpost_pollers_lock. */
static struct {
	kuid_t uid;
	unsigned long at;
} rpost_pollers_made[16];
static unsigned int rpost_num_pollers_made;

/* Post from each ring and poll its device.  Return true if there was work. */
static bool rpost_poller_round(struct rpost_poller *poller)
{
	struct rpost_sring *ring;
	struct rpost_queue *sq;
	bool busy = false;

	poller->outstanding = false;
	mutex_lock(&poller->lock);
	list_for_each_entry(ring, &poller->rings, link) {
		sq = &ring->qp->sq;
		/* Poll first: the program need not call from now on. */
		if (rpost_cq_poller_polls(ring->qp->send_cq))
			busy = true;
		/* A hint, as the queue is not locked. */
		if (READ_ONCE(sq->head) != READ_ONCE(sq->tail))
			poller->outstanding = true;
		if (rpost_sring_post(ring, poller->block)) {
			rpost_cq_poller_polls(ring->qp->send_cq);
			busy = true;
		}
		cond_resched();
	}
	mutex_unlock(&poller->lock);
	return busy;
}

/*
 * Give the CPU away after a round without work.  The next task may be the one
 * that the poller waits for: a thread of the device, or the program.
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
	/* This CPU, once idle, pulls a thread that waits for another CPU. */
	usleep_range_state(RPOST_POLLER_NAP, RPOST_POLLER_NAP + 20, TASK_IDLE);
	poller->since = 0;
}

static unsigned long rpost_poller_idle(void)
{
	return msecs_to_jiffies(min(READ_ONCE(poller_idle_ms), 1000U));
}

/*
 * Tell programs to wake the poller.  Return how long to sleep: 0 if a ring has
 * work after all; not for ever if a work request is blocked, since nothing
 * wakes the poller when a program consumes its completions.
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
		if (!rpost_sring_pending(ring))
			continue;
		if (!(ring->flags & RPOST_SEND_RING_BLOCKED))
			return 0;
		timeout = max(rpost_poller_idle(), 1UL);
	}
	list_for_each_entry(ring, &poller->rings, link)
		rpost_cq_poller_leaves(ring->qp->send_cq);
	return timeout;
}

/* Return false if nothing but the timeout ended the sleep. */
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
	/* Clear it before the next round reads the rings. */
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
			/* After a timeout, one round is enough. */
			woken = rpost_poller_sleep(poller);
			busy = jiffies - (woken ? 0 : rpost_poller_idle());
			poller->since = 0;
		} else {
			rpost_poller_give_way(poller);
		}
		/* Tasks RCU waits for each task, and this one may never sleep. */
		cond_resched_tasks_rcu_qs();
	}
	set_active_memcg(old);
	return 0;
}

/*
 * Has the user started max_user_pollers in the last second?  Every fork() on
 * the host waits while a new thread is moved to its cgroups.
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

/*
 * Count a poller.  Return -EMFILE at a limit, or -EAGAIN if the user has
 * started too many others in the last second.
 */
static int rpost_poller_admit(struct rpost_poller *poller)
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

static void rpost_poller_dismiss(struct rpost_poller *poller)
{
	mutex_lock(&rpost_pollers_lock);
	list_del(&poller->link);
	mutex_unlock(&rpost_pollers_lock);
}

/* Start the thread, in the cgroups of the current task. */
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
	rpost_file_count(file, RPOST_COUNT_POLLER, 1);
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
	struct rpost_file *file = poller->file;

	file->poller = NULL;
	kthread_stop(poller->task);
	put_task_struct(poller->task);
	rpost_poller_dismiss(poller);
	kfree(poller->block);
	kfree(poller);
	rpost_file_count(file, RPOST_COUNT_POLLER, -1);
}

/* Is the poller in the cgroups of the current task? */
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

/**
 * rpost_poller_get() - get the poller of an open file for one more ring
 * @file: the open file; its poller_lock is held
 *
 * Return: the poller, for rpost_poller_put(); or ERR_PTR(): -EMFILE at a limit,
 * -EAGAIN if the user may start one a second later, or another errno.
 */
struct rpost_poller *rpost_poller_get(struct rpost_file *file)
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

/**
 * rpost_poller_put() - undo rpost_poller_get()
 * @poller: the poller; the file's poller_lock is held
 */
void rpost_poller_put(struct rpost_poller *poller)
{
	lockdep_assert_held(&poller->file->poller_lock);

	WRITE_ONCE(poller->num_rings, poller->num_rings - 1);
}

/**
 * rpost_poller_add() - let a poller serve a ring
 * @poller: the poller
 * @ring: the ring, for which the caller has called rpost_poller_get()
 */
void rpost_poller_add(struct rpost_poller *poller, struct rpost_sring *ring)
{
	mutex_lock(&poller->lock);
	if (poller->asleep)
		rpost_sring_set_flags(ring, RPOST_SEND_RING_NEED_WAKEUP, 0);
	list_add_tail(&ring->link, &poller->rings);
	mutex_unlock(&poller->lock);
}

/**
 * rpost_poller_remove() - have a poller serve a ring no longer
 * @poller: the poller
 * @ring: the ring, which the poller does not use once this returns
 */
void rpost_poller_remove(struct rpost_poller *poller, struct rpost_sring *ring)
{
	mutex_lock(&poller->lock);
	list_del_init(&ring->link);
	rpost_cq_poller_leaves(ring->qp->send_cq);
	mutex_unlock(&poller->lock);
}

/**
 * rpost_poller_wake() - make a poller look at its rings
 * @poller: the poller
 */
void rpost_poller_wake(struct rpost_poller *poller)
{
	/* The poller that sees this sees what the program wrote before. */
	smp_store_release(&poller->wake, true);
	wake_up(&poller->wait);
}

/**
 * rpost_poller_stop() - end the thread that served an open file's rings
 * @file: the open file, at its last close, with all its rings stopped
 */
void rpost_poller_stop(struct rpost_file *file)
{
	mutex_lock(&file->poller_lock);
	if (file->poller)
		rpost_poller_end(file->poller);
	mutex_unlock(&file->poller_lock);
}
