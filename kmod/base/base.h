/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rdma_post: RDMA through ioctls on /dev/rdma_post.
 *
 * Documentation/architecture.rst explains lifetimes and locks as a whole.  The
 * comment above each struct explains its own.
 *
 * Lock order, outermost first:
 *
 *   rpost_context.rwsem         read: creation, destruction, changes of a queue
 *                               pair; write: removal.  Also tried for reading
 *                               under rpost_kept.lock
 *   rpost_device.async_lock
 *   rpost_pd.fast_lock          held while the device registers a region
 *   rpost_id.lock               or rpost_qp.lock of a queue pair without an id
 *   rpost_srq.qp_lock
 *   rpost_cq.setup_lock         taken inside mmap_lock; or cma's handler_mutex,
 *                               which cma holds during rpost_id_handler()
 *   rpost_file.charge_lock
 *   rpost_ring_pool.lock        held for a short time; the pages of small rings
 *   rpost_policies_lock
 *   rpost_device.contexts_lock  also taken inside the core's lock of a port's GIDs
 *   rpost_id.state_lock, rpost_file.event_lock, rpost_handles.lock,
 *   rpost_users_lock
 *   rpost_tenant.lock, then the policies' rpost_bounds_lock
 *   rpost_queue.lock            posts; bottom halves disabled
 *   rpost_cq.lock               held while the device's queues are polled
 *   rpost_srq.lock              slots
 *   the locks of rpost_watches  the kernel's, of a list_lru
 *   rpost_kept.lock             interrupts disabled; taken inside mmap_lock by
 *                               notifiers
 *   rpost_cq.arm_lock           interrupts disabled; taken by completion
 *                               handlers, under the driver's own locks
 *   rpost_comp_channel.lock     interrupts disabled
 *   rpost_file.async_lock       interrupts disabled
 *   rpost_async_channel.lock    interrupts disabled
 *
 * Only readers take the fetch lock of a channel, before any other lock.
 */
#ifndef RPOST_BASE_H
#define RPOST_BASE_H

#include <linux/hashtable.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_post_abi.h>

#include "base/handle.h"
#include "base/policy.h"

struct dentry;
struct rpost_file;

#define RPOST_MAX_SGE		32
#define RPOST_MAX_WR		65536
#define RPOST_MAX_INLINE	1024
#define RPOST_MAX_MCAST		64
#define RPOST_MAX_WR_BYTES	65536
#define RPOST_MAX_BACKLOG	1024
#define RPOST_MAX_EVENTS	8
#define RPOST_MAX_CMD_SIZE	65536

/*
 * Exempt from CONFIG_INIT_STACK_ALL_ZERO, which costs a post as much as its
 * checks do.  The user must initialise every field that it reads.
 */
#if __has_attribute(uninitialized)
#define rpost_uninitialized __attribute__((uninitialized))
#else
#define rpost_uninitialized
#endif

/*
 * For memory that a program makes the module allocate.  It is charged to the
 * program's memory cgroup; at the cgroup's limit the allocation fails instead
 * of having a task killed.
 */
#define RPOST_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/*
 * RPOST_GFP for kernel threads that serve many programs: such a thread must not
 * wait for the memory cgroup of one program.  Events must not be lost, so they are charged
 * beyond the limit.
 */
#define RPOST_GFP_NOWAIT	(GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN)
#define RPOST_GFP_EVENT		(GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN)

/* ------------------------------------------------------------ count.c */

#define RPOST_NUM_OBJ_TYPES	(RPOST_OBJ_AH + 1)

/* Counters other than those of the types of objects. */
enum rpost_count {
	RPOST_COUNT_FILE = RPOST_NUM_OBJ_TYPES,
	RPOST_COUNT_EVENT_CHANNEL,
	RPOST_COUNT_COMP_CHANNEL,
	RPOST_COUNT_ASYNC_CHANNEL,
	RPOST_COUNT_SHARE,
	RPOST_COUNT_EVENT,
	RPOST_COUNT_RING_PAGES,
	RPOST_COUNT_PINNED_PAGES,
	RPOST_COUNT_KEPT,	/* regions that the cache keeps and nobody uses */
	RPOST_COUNT_KEPT_PAGES,
	RPOST_COUNT_WATCH,
	RPOST_NUM_COUNTS,
};

void rpost_count(unsigned int what, long n);
void rpost_file_count(struct rpost_file *file, unsigned int what, long n);
long rpost_count_read(unsigned int what);

/* ------------------------------------------------------- core/file.c */

#define RPOST_NUM_SCRATCH	2
#define RPOST_QP_HASH_BITS	6	/* of both tables of numbers */
#define RPOST_NUM_GHOSTS	256

/**
 * struct rpost_ring_pool - pages that the small rings of a file share
 * @lock: guards @pages, and which units of a page are used
 * @pages: struct rpost_ring_mem; the one that was freed from last is first
 * @last: number of the page that was added last
 */
struct rpost_ring_pool {
	struct mutex lock;
	struct list_head pages;
	u64 last;
};

/**
 * struct rpost_file - one open of /dev/rdma_post
 * @kref: held by the open file, its descriptors, contexts and watches
 * @net: network namespace of the opener, to which its devices and connections
 *       belong; a reference is held until the last close
 * @handles: the handles of its objects
 * @qps: struct rpost_qp by number; read under RCU, written under @handles.lock
 * @named: struct rpost_id by the number that it has named; under @handles.lock
 * @stats: what it has done so far
 * @id: its number, which no other file gets
 * @user: the user who opened it, charged for all its memory
 * @tenant: the policies that apply to it
 * @name: names its objects to the RDMA core, see struct rpost_name
 * @pid: process that opened it, in the initial namespace
 * @num_wr: capacity of all its queues in work requests
 * @num_cqe: capacity of all its device completion queues in entries
 * @bytes: bytes that @user is charged for it
 * @counts: how many of each enum rpost_obj_type and enum rpost_count it has; of
 *          RPOST_COUNT_EVENT and RPOST_COUNT_FILE only the module keeps count
 * @errors: completions with an error so far, by status
 * @memcg: memory cgroup of the opener, charged for allocations of kernel
 *         threads
 * @charge_lock: guards @contexts, the charges of objects, @removals and @orphan
 * @contexts: struct rpost_context, one for each device that has objects
 * @removals: number of device removals that have shut down objects of the file
 * @dead: the last close has begun; no event can be fetched any more
 * @orphan: it is closed, but a device refused to destroy an object of it; the
 *          removal of a device tries again
 * @event_lock: guards the events of all channels and the channel of each id
 * @event_channels: struct rpost_event_channel
 * @async_lock: guards @async_channels
 * @async_channels: struct rpost_async_channel of all devices
 * @scratch: memory kept between posts; a post takes it with xchg()
 * @rings: pages for the rings of queues with RPOST_CQ_SHARED_PAGE
 * @ghosts: hashes of memory that was deregistered lately, see memory/again.c
 */
struct rpost_file {
	struct kref kref;
	struct net *net;
	struct rpost_handles handles;
	DECLARE_HASHTABLE(qps, RPOST_QP_HASH_BITS);
	DECLARE_HASHTABLE(named, RPOST_QP_HASH_BITS);
	struct rpost_stats __percpu *stats;
	u64 id;
	struct rpost_user *user;
	struct rpost_tenant tenant;
	const char *name;
	pid_t pid;
	atomic_long_t num_wr;
	atomic_long_t num_cqe;
	atomic_long_t bytes;
	atomic_long_t counts[RPOST_NUM_COUNTS];
	atomic_long_t errors[IB_WC_GENERAL_ERR + 1];
	struct mem_cgroup *memcg;
	struct mutex charge_lock;
	struct list_head contexts;
	unsigned int removals;
	bool dead;
	bool orphan;
	spinlock_t event_lock;
	struct list_head event_channels;
	spinlock_t async_lock;
	struct list_head async_channels;
	struct rpost_scratch *scratch[RPOST_NUM_SCRATCH];
	struct rpost_ring_pool rings;
	u32 ghosts[RPOST_NUM_GHOSTS];
};

/* ------------------------------------------------------------ limit.c */

unsigned int rpost_limit_objects(void);
unsigned int rpost_limit_wr(void);
unsigned int rpost_limit_cqe(void);

void *rpost_kvmalloc(size_t bytes, gfp_t zero);

static inline void *rpost_kvcalloc(size_t n, size_t size)
{
	return rpost_kvmalloc(array_size(n, size), __GFP_ZERO);
}

int rpost_limit_take_wr(struct rpost_file *file, u32 n, unsigned long bytes);
void rpost_limit_give_wr(struct rpost_file *file, u32 n, unsigned long bytes);
int rpost_limit_take_cqe(struct rpost_file *file, u32 n);
void rpost_limit_give_cqe(struct rpost_file *file, u32 n);

/* ------------------------------------------------------------- name.c */

/* The rdma command of iproute2 shows 15 bytes and not more. */
#define RPOST_NAME_SIZE	16

const char *rpost_name_get(void);
void rpost_name_put(const char *text);
void rpost_names_free(void);

/* ------------------------------------------------------------- user.c */

/* Charged for an open file without objects: its struct, handles and pages. */
#define RPOST_FILE_BYTES		SZ_16K
#define RPOST_CHANNEL_BYTES		SZ_2K
#define RPOST_ASYNC_CHANNEL_BYTES	SZ_8K
#define RPOST_SHARE_BYTES		SZ_1K
#define RPOST_JOIN_BYTES		SZ_1K
#define RPOST_MCAST_BYTES		256

/**
 * struct rpost_kept - regions that the cache keeps for a user, see memory/cache.c
 * @lock: guards the following, and the cache of each domain of the user's
 * @idle: struct rpost_mr that nobody uses, the one that was used last at the end
 * @pages: pages that they pin
 * @doomed: those that @reap has yet to deregister
 * @num_doomed: number of regions that are about to be deregistered
 * @ending: the domain of the one that @reap deregisters now, or NULL
 * @wait: tasks wait here until @num_doomed is 0, or @ending is another
 * @reap: deregisters them one after the other
 * @ended: struct rpost_watch whose notifiers are to be removed; without @lock
 * @work: removes them, when changes of the memory that are under way have ended
 *
 * Programs can make both work items as slow as they like.  So each user has its
 * own, and none waits for another's.
 */
struct rpost_kept {
	spinlock_t lock;
	struct list_head idle;
	unsigned long pages;
	struct list_head doomed;
	unsigned long num_doomed;
	struct rpost_pd *ending;
	wait_queue_head_t wait;
	struct work_struct reap;
	struct llist_head ended;
	struct work_struct work;
};

/**
 * struct rpost_pinner - the pages that a process has pinned through a user's files
 * @node: in the user's table; once the process is known to have ended in none, and
 *        @pages are in the user's @pages_left
 * @mm: the process's memory; holds a reference on the struct, not on the memory
 * @pages: pages of all regions, and of those that are about to be registered
 * @kept: those of @pages that regions of the cache have which nobody uses; under the
 *        lock of the user's struct rpost_kept
 *
 * The other members are under the user's pin_lock.  The struct is freed with the
 * last page.
 */
struct rpost_pinner {
	struct hlist_node node;
	struct mm_struct *mm;
	unsigned long pages;
	unsigned long kept;
};

#define RPOST_PINNER_BITS	6

/**
 * struct rpost_user - a user, charged for open files
 * @node: in the table of users
 * @uid: id in the initial user namespace.  The ids of all other namespaces
 *       count as the owner of the outermost one below the initial namespace,
 *       since an owner can create any number of ids.
 * @exempt: there is no limit, because the opener had CAP_SYS_RESOURCE.  Opens
 *          by the same id without it have another struct, so that root's
 *          daemons do not use up the share of root's containers.
 * @refs: number of open files; under rpost_users_lock
 * @bytes: bytes charged for those files and all that belongs to them
 * @refused: changes each time that @bytes, or pinned memory, would pass a bound that other
 *           processes' regions count for
 * @kept: regions that the cache keeps
 * @pin_lock: guards the following
 * @pinners: struct rpost_pinner, by @mm
 * @pages: pages of them all, and @pages_left
 * @pages_left: pages that processes have left pinned which are known to have ended
 * @left_at: time in jiffies when the last one of them was found
 *
 * A file stays charged to the user who opened it, whoever uses it later, as it
 * keeps its network namespace and memory cgroup.  It holds a reference until
 * all of its charges are gone.
 */
struct rpost_user {
	struct hlist_node node;
	kuid_t uid;
	bool exempt;
	unsigned int refs;
	atomic_long_t bytes;
	atomic_long_t refused;
	struct rpost_kept kept;
	struct mutex pin_lock;
	DECLARE_HASHTABLE(pinners, RPOST_PINNER_BITS);
	unsigned long pages;
	unsigned long pages_left;
	unsigned long left_at;
};

struct rpost_user *rpost_user_get(void);
void rpost_user_put(struct rpost_user *user);
int rpost_charge(struct rpost_file *file, unsigned long bytes);
void rpost_uncharge(struct rpost_file *file, unsigned long bytes);
void *rpost_charged_zalloc(struct rpost_file *file, size_t size, unsigned long bytes);
void rpost_charged_free(struct rpost_file *file, void *mem, unsigned long bytes);
unsigned long rpost_device_sq_bytes(u32 entries, u32 sges);
unsigned long rpost_device_rq_bytes(u32 entries, u32 sges);
unsigned long rpost_device_cq_bytes(u32 entries);
unsigned long rpost_user_limit(void);
void rpost_user_init(struct dentry *parent, void (*kept_init)(struct rpost_kept *kept));
void rpost_users_each(void (*look)(struct rpost_user *user, void *arg), void *arg);

#endif /* RPOST_BASE_H */
