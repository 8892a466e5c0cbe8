/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The threads that serve submission rings.
 */
#ifndef RPOST_POLLER_H
#define RPOST_POLLER_H

#include "sring.h"

/**
 * struct rpost_poller - the thread that serves an open file's submission rings
 * @file: the open file
 * @task: the thread
 * @link: in the list of all pollers
 * @lock: the thread holds it for a round of all rings; guards @rings, @asleep
 * @rings: struct rpost_sring
 * @num_rings: rings in @rings, and rings that are set up or stopped just now;
 *             written under the file's poller_lock.  At 0 the thread sleeps
 * @asleep: the thread does not look at rings; RPOST_SEND_RING_NEED_WAKEUP is
 *          set in each
 * @wait: the thread sleeps here
 * @wake: the thread is to look at its rings again
 * @outstanding: the last round found work requests on the device; thread only
 * @since: time of the first of the last rounds without work, or 0; thread only
 * @block: the thread copies work requests to here
 *
 * The thread needs none of the program's memory: work requests have keys, and
 * inline data is in the ring.  It posts as POST_SEND does, and polls the device
 * for the @send_cq of each ring's queue pair.
 *
 * After each round without work the thread calls yield(), because the device
 * may work in a thread that waits for the same CPU.  cond_resched() does not
 * give way on every kernel, and the tick comes milliseconds later.  If work
 * requests stay on the device, its thread may wait for the CPU of a program
 * that spins.  Then the poller sleeps now and then: an idle CPU pulls that
 * thread.
 *
 * The thread stays until the file is closed, for later rings.  A new one starts
 * only if it has no ring and the program has moved to other cgroups, since
 * cgroup_attach_task_all() makes every fork() on the host wait.
 *
 * Before a queue pair is shut down, and before its lock is taken,
 * rpost_sring_stop() removes its ring from @rings under @lock.  The thread
 * takes no queue pair's lock, no rwsem of a context and no reference on the
 * file, so a task may wait for the thread while it holds any of them.
 */
struct rpost_poller {
	struct rpost_file *file;
	struct task_struct *task;
	struct list_head link;
	struct mutex lock;
	struct list_head rings;
	unsigned int num_rings;
	bool asleep;
	wait_queue_head_t wait;
	bool wake;
	bool outstanding;
	ktime_t since;
	void *block;
};

struct rpost_poller *rpost_poller_get(struct rpost_file *file);
void rpost_poller_put(struct rpost_poller *poller);
void rpost_poller_add(struct rpost_poller *poller, struct rpost_sring *ring);
void rpost_poller_remove(struct rpost_poller *poller, struct rpost_sring *ring);
void rpost_poller_wake(struct rpost_poller *poller);
void rpost_poller_stop(struct rpost_file *file);

#endif /* RPOST_POLLER_H */
