/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rdma_post: RDMA through ioctls on /dev/rdma_post.
 *
 * Documentation/architecture.rst explains lifetimes and locks as a whole; the
 * part that concerns one struct stands above it here.
 *
 * Lock order, outermost first:
 *
 *   rpost_file.rwsem            creation and destruction against removal
 *   rpost_device.async_lock
 *   rpost_pd.fast_lock          the device's completion is waited for
 *   rpost_id.lock               or rpost_qp.lock, of one without an id
 *   rpost_srq.qp_lock
 *   rpost_file.poller_lock      a thread is made or waited for
 *   rpost_cq.setup_lock         the program's memory map is outside of it; or cma's
 *                               handler_mutex, which is held while
 *                               rpost_id_handler() runs
 *   rpost_file.charge_lock
 *   rpost_poller.lock           the poller's, for a round
 *   rpost_id.state_lock, rpost_file.event_lock, rpost_handles.lock
 *   rpost_queue.lock            posts; bottom halves disabled
 *   rpost_cq.lock               completions; bottom halves disabled
 *   rpost_srq.lock              slots; bottom halves disabled
 *   rpost_comp_channel.lock     bottom halves disabled
 *   rpost_file.async_lock       interrupts disabled
 *   rpost_async_channel.lock    interrupts disabled
 *   rpost_comp_channel.readers  interrupts disabled; devices have locks of their
 *                               own when they take its lock
 *
 * The fetch locks of channels are taken by readers only, with nothing held.
 */
#ifndef RPOST_H
#define RPOST_H

#include <linux/completion.h>
#include <linux/irq_poll.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/refcount.h>
#include <linux/rhashtable.h>
#include <linux/rwsem.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_post_abi.h>

#include "handle.h"

#define RPOST_MAX_SGE		32
#define RPOST_MAX_WR		65536
#define RPOST_MAX_INLINE	1024
#define RPOST_MAX_MCAST		64
#define RPOST_MAX_WR_BYTES	65536
#define RPOST_MAX_BACKLOG	1024
#define RPOST_MAX_EVENTS	8
#define RPOST_MAX_CMD_SIZE	65536

/*
 * What has this is not cleared by the compiler (CONFIG_INIT_STACK_ALL_ZERO), which
 * costs a post as much as its checks do.  Its owner writes all that it reads.
 */
#if __has_attribute(uninitialized)
#define rpost_uninitialized __attribute__((uninitialized))
#else
#define rpost_uninitialized
#endif

/*
 * For all that is allocated because of a program: charged to its memory cgroup,
 * and an error at its limit, where the kernel would otherwise kill a program.
 */
#define RPOST_GFP	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/*
 * The same in kernel threads that many programs share: none of them may wait for
 * what the memory cgroup of one has to say.  An event cannot do without memory,
 * and is charged beyond the limit.
 */
#define RPOST_GFP_NOWAIT	(GFP_NOWAIT | __GFP_ACCOUNT | __GFP_NOWARN)
#define RPOST_GFP_EVENT		(GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN)

struct rpost_ah;
struct rpost_comp_channel;
struct rpost_context;
struct rpost_cq;
struct rpost_device;
struct rpost_event_channel;
struct rpost_id;
struct rpost_poller;
struct rpost_qp;
struct rpost_scratch;
struct rpost_sring;
struct rpost_srq;
struct rpost_user;

/* ------------------------------------------------------------- main.c */

#define RPOST_NUM_SCRATCH	2

/* Destroys connection ids, which may take long, on any CPU. */
extern struct workqueue_struct *rpost_wq;

/**
 * struct rpost_ring_pool - pages that the small rings of a file share
 * @lock: guards what is in it
 * @pages: struct rpost_ring_page; where something was freed last, first
 */
struct rpost_ring_pool {
	struct mutex lock;
	struct list_head pages;
};

/**
 * struct rpost_file - one open of /dev/rdma_post
 * @kref: held by the open file and by each of its event channels
 * @net: network namespace of the opener; devices and connections are its.  Held
 *       until the last close
 * @handles: of its objects
 * @user: who has opened it, charged for all that it has
 * @num_wr: work requests that all queues have room for
 * @num_cqe: entries of all device queues of completions
 * @memcg: memory cgroup of the opener, charged for what others make the module
 *         allocate for the file
 * @rwsem: read: a command creates or destroys something on a device; write:
 *         removal of a device.  So when removal has it, each of the file's
 *         objects on the device is either complete and found, or gone.
 *         Taken before any reference on an object.  One for each file, because
 *         a command may wait for the program's memory with it.
 * @removal: the last removal that has seen the file
 * @charge_lock: guards @contexts and what objects are charged to
 * @contexts: struct rpost_context, one for each device that has objects
 * @dead: the last closer has begun: event channels give out nothing any more
 * @orphan: it is closed, but a device has refused to give up something; it stays
 *          in the list, and the next removal tries again.  Under @rwsem
 * @event_lock: guards the events of all channels and who gets them
 * @event_channels: all of them
 * @async_lock: guards @async_channels
 * @async_channels: struct rpost_async_channel, on all devices, a few on each
 * @scratch: memory that posts leave for the next; who takes it out has it
 * @rings: of queues with RPOST_CQ_SHARED_PAGE
 * @poller_lock: guards @poller; a ring begins or ends
 * @poller: the thread that serves the file's send rings; NULL before the first
 * @link: in the list of all files, which device removal walks
 */
struct rpost_file {
	struct kref kref;
	struct net *net;
	struct rpost_handles handles;
	struct rpost_user *user;
	atomic_long_t num_wr;
	atomic_long_t num_cqe;
	struct mem_cgroup *memcg;
	struct rw_semaphore rwsem;
	u64 removal;
	struct mutex charge_lock;
	struct list_head contexts;
	bool dead;
	bool orphan;
	spinlock_t event_lock;
	struct list_head event_channels;
	spinlock_t async_lock;
	struct list_head async_channels;
	struct rpost_scratch *scratch[RPOST_NUM_SCRATCH];
	struct rpost_ring_pool rings;
	struct mutex poller_lock;
	struct rpost_poller *poller;
	struct list_head link;
};

/**
 * struct rpost_ucmd - one ioctl while it is handled
 * @file: the open file
 * @filp: what the ioctl was called on: @file's, or one of its event channels'
 * @ubuf: the program's struct
 * @size: how much of it the program and the kernel both know
 * @cmd: the kernel's copy, read once; the tail that the program does not know
 *       is zero
 */
struct rpost_ucmd {
	struct rpost_file *file;
	struct file *filp;
	void __user *ubuf;
	u32 size;
	union {
		struct rpost_query query;
		struct rpost_destroy destroy;
		struct rpost_query_devices query_devices;
		struct rpost_query_device query_device;
		struct rpost_query_port query_port;
		struct rpost_alloc_pd alloc_pd;
		struct rpost_reg_mr reg_mr;
		struct rpost_create_comp_channel create_comp_channel;
		struct rpost_create_cq create_cq;
		struct rpost_arm_cq arm_cq;
		struct rpost_poll_cq poll_cq;
		struct rpost_create_event_channel create_event_channel;
		struct rpost_create_id create_id;
		struct rpost_bind_addr bind_addr;
		struct rpost_resolve_addr resolve_addr;
		struct rpost_resolve_route resolve_route;
		struct rpost_query_id query_id;
		struct rpost_listen listen;
		struct rpost_connect connect;
		struct rpost_accept accept;
		struct rpost_reject reject;
		struct rpost_disconnect disconnect;
		struct rpost_migrate_id migrate_id;
		struct rpost_create_qp create_qp;
		struct rpost_query_qp query_qp;
		struct rpost_post post;
		struct rpost_get_event get_event;
		struct rpost_modify_qp modify_qp;
		struct rpost_query_gids query_gids;
		struct rpost_query_pkeys query_pkeys;
		struct rpost_resize_cq resize_cq;
		struct rpost_create_srq create_srq;
		struct rpost_modify_srq modify_srq;
		struct rpost_query_srq query_srq;
		struct rpost_create_ah create_ah;
		struct rpost_attach_mcast attach_mcast;
		struct rpost_create_async_channel create_async_channel;
		struct rpost_set_option set_option;
		struct rpost_notify notify;
		struct rpost_establish establish;
		struct rpost_init_qp_attr init_qp_attr;
		struct rpost_join_mcast join_mcast;
		struct rpost_leave_mcast leave_mcast;
		struct rpost_setup_send_ring setup_send_ring;
		struct rpost_enter_send_ring enter_send_ring;
	} cmd;
};

/**
 * struct rpost_cmd_row - one command
 * @ksize: size of its struct in this kernel
 * @min_size: size of its struct in the first version of the ABI
 * @hw: the file's rwsem is held
 * @handler: validates, looks up, acts, responds, puts
 */
struct rpost_cmd_row {
	u32 ksize;
	u32 min_size;
	bool hw;
	int (*handler)(struct rpost_ucmd *ucmd);
};

#define RPOST_ROW(type, last, fn, hold) {				\
	.ksize = sizeof(struct type) +					\
		 BUILD_BUG_ON_ZERO(sizeof(struct type) >		\
				   sizeof_field(struct rpost_ucmd, cmd)),\
	.min_size = offsetofend(struct type, last),			\
	.hw = (hold),							\
	.handler = (fn),						\
}

int rpost_copy_words(void *to, const void __user *from, u32 bytes);
int rpost_ucmd_run(struct rpost_file *file, struct file *filp,
		   const struct rpost_cmd_row *row, unsigned long arg);
int rpost_respond(struct rpost_ucmd *ucmd);
int rpost_respond_fd(struct rpost_ucmd *ucmd, s32 *fd, struct file *filp);
void rpost_file_put(struct rpost_file *file);
void rpost_files_device_gone(struct rpost_device *dev);
int rpost_query_ioctl(struct rpost_ucmd *ucmd);

/* ----------------------------------------------------------- object.c */

/**
 * struct rpost_obj - what a handle stands for
 * @file: the open file that it belongs to
 * @type: enum rpost_obj_type
 * @handle: its number in @file
 * @slot: of @handle
 * @dev: the device that it is on, or NULL; the reference is its type's
 * @refs: one while it can be found, one for each command that is using it
 *        just now.  A command may sleep with it, but not for the program.
 * @users: other objects that depend on it; under the lock of
 *         @file->handles.
 *         While there are any it cannot be destroyed (EBUSY).
 * @unused: completed by the last put, for the one who destroys
 * @ending: the program or the last close destroys it, so that nobody will look
 *          at what comes of it any more
 * @bytes: what the file's user is charged for its memory; what it has on the device
 *         is charged by itself, since that goes first
 * @cgroup: the rdma cgroup that is charged for it
 * @context: what it is counted in, or NULL if nothing is charged
 * @rcu: lookups run under RCU
 *
 * Life: reserve (a handle, not yet found) - build the object - answer the
 * program - publish (cannot fail).  Death: claim (found no more, commands that
 * use it have finished) - destroy - free the handle and the memory.
 */
struct rpost_obj {
	struct rpost_file *file;
	enum rpost_obj_type type;
	u32 handle;
	struct rpost_slot *slot;
	struct rpost_device *dev;
	refcount_t refs;
	unsigned int users;
	struct completion unused;
	bool ending;
	unsigned long bytes;
	struct rdma_cgroup *cgroup;
	struct rpost_context *context;
	struct rcu_head rcu;
};

int rpost_obj_reserve(struct rpost_file *file, struct rpost_obj *obj,
		      enum rpost_obj_type type, struct rpost_device *dev);
int rpost_obj_take_bytes(struct rpost_obj *obj, unsigned long bytes);
int rpost_obj_reserve_nowait(struct rpost_file *file, struct rpost_obj *obj,
			     enum rpost_obj_type type);
void rpost_obj_unreserve(struct rpost_obj *obj);
void rpost_obj_publish(struct rpost_obj *obj);
struct rpost_obj *rpost_obj_get(struct rpost_file *file, u32 handle,
				enum rpost_obj_type type);
struct rpost_obj *rpost_obj_next(struct rpost_file *file, u32 *index,
				 enum rpost_obj_type type);
void rpost_obj_put(struct rpost_obj *obj);
struct rpost_obj *rpost_obj_use(struct rpost_file *file, u32 handle,
				enum rpost_obj_type type);
void rpost_obj_unuse(struct rpost_obj *obj);
int rpost_destroy_ioctl(struct rpost_ucmd *ucmd);
bool rpost_file_destroy_all(struct rpost_file *file);
void rpost_file_shutdown_device(struct rpost_file *file,
				struct rpost_device *dev);

/* ------------------------------------------------------------ count.c */

/**
 * enum rpost_count - what is counted beside the types of objects
 * @RPOST_COUNT_FILE: opens of /dev/rdma_post, with a channel left of them
 * @RPOST_COUNT_EVENT_CHANNEL: struct rpost_event_channel
 * @RPOST_COUNT_COMP_CHANNEL: struct rpost_comp_channel
 * @RPOST_COUNT_ASYNC_CHANNEL: struct rpost_async_channel
 * @RPOST_COUNT_EVENT: struct rpost_event
 * @RPOST_COUNT_RING_PAGES: pages of rings
 * @RPOST_COUNT_POLLER: struct rpost_poller
 * @RPOST_COUNT_PINNED_PAGES: pages of programs that regions pin
 * @RPOST_NUM_COUNTS: more than any of them
 */
enum rpost_count {
	RPOST_COUNT_FILE = RPOST_OBJ_AH + 1,
	RPOST_COUNT_EVENT_CHANNEL,
	RPOST_COUNT_COMP_CHANNEL,
	RPOST_COUNT_ASYNC_CHANNEL,
	RPOST_COUNT_EVENT,
	RPOST_COUNT_RING_PAGES,
	RPOST_COUNT_POLLER,
	RPOST_COUNT_PINNED_PAGES,
	RPOST_NUM_COUNTS,
};

void rpost_count(unsigned int what, long n);
void rpost_count_init(void);
void rpost_count_exit(void);

/* ------------------------------------------------------------ limit.c */

void *rpost_kvmalloc(size_t bytes, gfp_t zero);

static inline void *rpost_kvcalloc(size_t n, size_t size)
{
	return rpost_kvmalloc(array_size(n, size), __GFP_ZERO);
}

int rpost_limit_take_wr(struct rpost_file *file, u32 n, unsigned long bytes);
void rpost_limit_give_wr(struct rpost_file *file, u32 n, unsigned long bytes);
int rpost_limit_take_cqe(struct rpost_file *file, u32 n);
void rpost_limit_give_cqe(struct rpost_file *file, u32 n);

/* ------------------------------------------------------------- user.c */

/* What an open file takes before it has any object: its struct, handles and pages. */
#define RPOST_FILE_BYTES		SZ_16K
#define RPOST_CHANNEL_BYTES		SZ_1K
#define RPOST_ASYNC_CHANNEL_BYTES	SZ_8K
#define RPOST_JOIN_BYTES		SZ_1K
#define RPOST_MCAST_BYTES		256

/**
 * struct rpost_user - whom open files are charged to
 * @node: in the table of users
 * @uid: id in the initial user namespace.  A user namespace is one user, the owner
 *       of the outermost that it is in: its ids cost nothing
 * @exempt: without a limit, since CAP_SYS_RESOURCE was there when the file was
 *          opened.  The same id without it is another user, so that what a daemon of
 *          root's has leaves a container of root's its share
 * @refs: open files; under the lock of the table
 * @bytes: what they have
 *
 * A file belongs to the user who opened it, whoever has it later, as its network
 * namespace and its memory cgroup do.  It has a reference until nothing of it is
 * charged any more.
 */
struct rpost_user {
	struct hlist_node node;
	kuid_t uid;
	bool exempt;
	unsigned int refs;
	atomic_long_t bytes;
};

struct rpost_user *rpost_user_get(void);
void rpost_user_put(struct rpost_user *user);
int rpost_user_charge(struct rpost_user *user, unsigned long bytes);
void rpost_user_uncharge(struct rpost_user *user, unsigned long bytes);
unsigned long rpost_device_rq_bytes(u32 entries, u32 sges);
unsigned long rpost_device_cq_bytes(u32 entries);
unsigned long rpost_qp_device_bytes(const struct rpost_qp *qp);
unsigned long rpost_qp_own_bytes(const struct rpost_create_qp *cmd);
void rpost_user_init(struct dentry *parent);

/* ----------------------------------------------------------- rdmacg.c */

#ifdef CONFIG_CGROUP_RDMA
int rpost_obj_charge(struct rpost_obj *obj);
void rpost_obj_uncharge(struct rpost_obj *obj);
#else
static inline int rpost_obj_charge(struct rpost_obj *obj)
{
	return 0;
}

static inline void rpost_obj_uncharge(struct rpost_obj *obj)
{
}
#endif

/* ------------------------------------------------------------ admit.c */

/**
 * enum rpost_verdict - may programs use a driver's devices?
 * @RPOST_NOT_OFFERED: only if the administrator names the driver
 * @RPOST_OFFERED: yes
 * @RPOST_NEVER: not even then
 */
enum rpost_verdict {
	RPOST_NOT_OFFERED,
	RPOST_OFFERED,
	RPOST_NEVER,
};

/**
 * struct rpost_driver - what the module knows of a driver
 * @id: enum rdma_driver_id
 * @name: by which the administrator names it; NULL for a driver without a row
 * @verdict: whether its devices are offered
 * @direct: its reg_user_mr() and dereg_mr() need nothing of a caller in user space
 * @no_fastreg: fast registration does not work: it finds the offset in the first
 *              page from the region's address, which must then be a DMA address
 * @no_iova: a directly registered region has only its own address as a name
 * @one_unused: a queue has a power of two of entries, of which one is never used
 */
struct rpost_driver {
	u32 id;
	const char *name;
	enum rpost_verdict verdict;
	bool direct;
	bool no_fastreg;
	bool no_iova;
	bool one_unused;
};

int rpost_admit_init(void);
void rpost_admit(struct rpost_device *dev);

/* ----------------------------------------------------------- target.c */

struct dentry;

/**
 * struct rpost_target - a device's page that no program has registered
 * @bytes: the page, or NULL
 * @dma: its address for the device
 * @file: tells them to root
 */
struct rpost_target {
	u8 *bytes;
	u64 dma;
	struct dentry *file;
};

void rpost_target_init(struct dentry *dir);
void rpost_target_add(struct rpost_device *dev);
void rpost_target_del(struct rpost_device *dev);

/* ----------------------------------------------------------- device.c */

/**
 * struct rpost_device - an RDMA device that has kernel verbs
 * @kref: held by the table of devices and by each object on the device
 * @ib_dev: valid while a file's rwsem is held and @dead is false, and for as
 *          long as an object on the device has not been shut down
 * @driver: what is known of its driver
 * @refused: programs may not use it: it is counted, and nothing is made on it
 * @id: its number; never used again
 * @name_lock: guards @name
 * @name: a copy, since a rename frees the string that dev_name() returns
 * @dead: removal has begun, and is about to take each file's rwsem
 * @refuses: and it does not give its regions up
 * @stuck: it did not flush a queue pair in the time that it had, and none since;
 *         a hint, written without a lock
 * @prompt: its last posts, of those looked at, that had completed when they
 *          returned; a hint, written without a lock
 * @event_handler: gets the device's and its ports' events
 * @async_lock: guards @async_channels
 * @async_channels: struct rpost_async_channel of all files
 * @target: for selftests/attack/probe.c
 * @rcu: lookups run under RCU
 */
struct rpost_device {
	struct kref kref;
	struct ib_device *ib_dev;
	const struct rpost_driver *driver;
	bool refused;
	u32 id;
	spinlock_t name_lock;
	char name[IB_DEVICE_NAME_MAX];
	bool dead;
	bool refuses;
	bool stuck;
	u32 prompt;
	struct ib_event_handler event_handler;
	struct mutex async_lock;
	struct list_head async_channels;
	struct rpost_target target;
	struct rcu_head rcu;
};

int rpost_device_register(void);
void rpost_device_unregister(void);
unsigned int rpost_device_count(struct rpost_file *file);
unsigned int rpost_device_count_refused(struct rpost_file *file);
struct rpost_device *rpost_device_find(struct rpost_file *file, u32 id);
void rpost_leave_behind(struct rdma_restrack_entry *res, struct rpost_device *dev);
bool rpost_device_alive(struct rpost_device *dev);
void rpost_device_hold(struct rpost_device *dev);
void rpost_device_put(struct rpost_device *dev);
u32 rpost_device_id(struct ib_device *ib_dev);
u32 rpost_device_max_wr(struct ib_device *ib_dev);
u32 rpost_device_max_sge_rd(const struct ib_device *ib_dev);
u32 rpost_device_max_srq_wr(struct ib_device *ib_dev);
int rpost_query_devices_ioctl(struct rpost_ucmd *ucmd);
int rpost_query_device_ioctl(struct rpost_ucmd *ucmd);
int rpost_query_port_ioctl(struct rpost_ucmd *ucmd);

/* ----------------------------------------------------------- tables.c */

int rpost_query_gids_ioctl(struct rpost_ucmd *ucmd);
int rpost_query_pkeys_ioctl(struct rpost_ucmd *ucmd);

/* ------------------------------------------------------------ async.c */

void rpost_async_post(struct rpost_device *dev, struct rpost_file *file,
		      const struct rpost_async_event *event);
void rpost_async_forget(struct rpost_device *dev, const struct rpost_obj *obj);
void rpost_async_device_add(struct rpost_device *dev);
void rpost_async_device_gone(struct rpost_device *dev);
int rpost_create_async_channel_ioctl(struct rpost_ucmd *ucmd);

/**
 * struct rpost_pd - protection domain
 * @obj: its handle
 * @ib_pd: NULL once shut down
 * @bad_mr: a region that is never made valid.  Its key stands in for every key
 *          that the program may not use: the device then fails the work
 *          request as verbs want it, in its turn and with the right status.
 * @bad_lkey: its key, which posts use; 0 if there is none
 * @local_dma_lkey: the privileged key, for the module's own memory
 * @mrs: the live regions by lkey; posts look here
 * @refused: regions without a handle, of registrations that failed, that the
 *           device has refused to give up so far
 * @leaked: the device has kept something for ever, so that nothing it needs may
 *          be freed
 * @fast_lock: one fast registration at a time; guards what follows
 * @fast_cq: completions of @fast_qp
 * @fast_qp: takes the work requests of fast registrations, and nothing else.
 *           Programs register before they connect, so it is connected to
 *           itself.  Made by the first registration, and by the next one after
 *           an error; destroyed at any time when no request is in it.
 */
struct rpost_pd {
	struct rpost_obj obj;
	struct ib_pd *ib_pd;
	struct ib_mr *bad_mr;
	u32 bad_lkey;
	u32 local_dma_lkey;
	struct rhashtable mrs;
	struct llist_head refused;
	bool leaked;
	struct mutex fast_lock;
	struct ib_cq *fast_cq;
	struct ib_qp *fast_qp;
};

int rpost_alloc_pd_ioctl(struct rpost_ucmd *ucmd);
struct rpost_pd *rpost_pd_use(struct rpost_file *file, u32 handle);
int rpost_pd_shutdown(struct rpost_obj *obj);
void rpost_pd_free(struct rpost_obj *obj);

/* --------------------------------------------------------------- mr.c */

/**
 * struct rpost_mr - memory region
 * @obj: its handle
 * @pd: depends on it
 * @ib_mr: NULL once shut down
 * @umem: with fast registration, the memory, pinned until the device has given
 *        up @ib_mr; NULL if the driver keeps it
 * @node: in the domain's table
 * @refused: in the domain's list, if it has no handle
 * @listed: it is in the table
 * @lkey: key of @node
 * @iova: address of the first byte, as keys are used with it
 * @length: bytes
 * @access: RPOST_ACCESS_*
 * @num_pages: pages that it pins
 *
 * Posts read it under RCU and keep no reference.  Between the check and its use
 * by the device a key can become invalid, or be given to something else.  The
 * device looks it up in the domain of the queue pair.  So the check must be made
 * in that domain: then the key can only be that of another of its regions, since
 * its privileged keys live as long as the domain and so cannot be given anew.
 * In another domain the same key could be the privileged one.  Therefore a shared
 * receive queue, and an address handle, must be of the queue pair's domain.
 */
struct rpost_mr {
	struct rpost_obj obj;
	struct rpost_pd *pd;
	struct ib_mr *ib_mr;
	struct ib_umem *umem;
	struct rhash_head node;
	struct llist_node refused;
	bool listed;
	u32 lkey;
	u64 iova;
	u64 length;
	u32 access;
	unsigned long num_pages;
};

int rpost_mr_table_init(struct rpost_pd *pd);
int rpost_reg_mr_ioctl(struct rpost_ucmd *ucmd);
u64 rpost_mr_max_size(const struct rpost_device *dev);
int rpost_mr_shutdown(struct rpost_obj *obj);
void rpost_mr_free(struct rpost_obj *obj);
int rpost_mr_retry_refused(struct rpost_pd *pd);
int rpost_dereg_mr(struct rpost_device *dev, struct ib_mr *ib_mr);
bool rpost_mr_check(struct rpost_pd *pd, const struct rpost_sge *sge,
		    u32 access);

/* ---------------------------------------------------------- fastreg.c */

bool rpost_fastreg_possible(const struct rpost_device *dev);
u64 rpost_fastreg_max_size(const struct ib_device *ib_dev);
int rpost_fastreg_mr(struct rpost_mr *mr, const struct rpost_reg_mr *cmd);
void rpost_fastreg_destroy(struct rpost_pd *pd);

/* ------------------------------------------------------------- ring.c */

/**
 * struct rpost_ring_mem - what rings are made of
 * @refs: a ring of its own, or a page that is shared, and each mapping
 * @user: charged for the pages until the last reference has gone
 * @num_pages: how many
 * @pages: single ones, for mappings
 */
struct rpost_ring_mem {
	refcount_t refs;
	struct rpost_user *user;
	unsigned int num_pages;
	struct page *pages[];
};

/**
 * struct rpost_ring_page - a page that small rings share
 * @link: in the pool
 * @pool: of the file whose rings they are: who can map one can map them all
 * @mem: the page
 * @used: which of its RPOST_RING_UNITS units are taken
 *
 * The queues of a connection are often so small that the rings of both fit in a
 * page, with room to spare.
 */
struct rpost_ring_page {
	struct list_head link;
	struct rpost_ring_pool *pool;
	struct rpost_ring_mem *mem;
	unsigned long used;
};

#define RPOST_RING_UNITS	32

/**
 * struct rpost_cring - a ring of completions that the program maps
 * @hdr: its control words, see struct rpost_ring
 * @wcs: its entries, struct rpost_wc as far as @entry_size goes
 * @mem: what it is made of
 * @shared: the page, if it is one that is shared
 * @entry_size: bytes of an entry
 * @entries: a power of two
 * @tail: entries written, private: the program may scribble on its copy.
 *        Written under the owner's lock, read by posters without.
 * @fired: last @hdr->arm that was answered, private
 * @flags: RPOST_RING_*, private
 *
 * One producer, under the owner's lock.
 */
struct rpost_cring {
	struct rpost_ring *hdr;
	void *wcs;
	struct rpost_ring_mem *mem;
	struct rpost_ring_page *shared;
	size_t entry_size;
	u32 entries;
	u32 tail;
	u32 fired;
	u32 flags;
};

/**
 * struct rpost_ring_seen - how far the program had consumed at some time
 * @tail: entries written
 * @waiting: those of them that it had not taken out
 */
struct rpost_ring_seen {
	u32 tail;
	u32 waiting;
};

/**
 * rpost_ring_consumed() - had the program taken an entry out?
 * @seen: from rpost_ring_see(), after the entry was written
 * @pos: number of the entry, plus 1
 *
 * Return: false if the entry waited.
 */
static inline bool rpost_ring_consumed(struct rpost_ring_seen seen, u32 pos)
{
	return seen.tail - pos >= seen.waiting;
}

/**
 * rpost_ring_entry() - an entry by its number
 * @ring: the ring
 * @pos: the number, which counts freely
 *
 * Return: the entry, of which @ring->entry_size bytes are there.
 */
static inline struct rpost_wc *rpost_ring_entry(const struct rpost_cring *ring,
						u32 pos)
{
	return ring->wcs + (pos & (ring->entries - 1)) * ring->entry_size;
}

/**
 * rpost_ring_next() - the entry to fill next
 * @ring: the ring
 *
 * Return: the entry, or NULL if the program has not consumed the one that was
 * there.  Each further call gives the next; rpost_ring_publish() shows them.
 */
static inline struct rpost_wc *rpost_ring_next(struct rpost_cring *ring)
{
	/* The program has read the entries before @head. */
	u32 head = smp_load_acquire(&ring->hdr->head);
	u32 tail = ring->tail;

	if (tail - head >= ring->entries)
		return NULL;
	WRITE_ONCE(ring->tail, tail + 1);
	return rpost_ring_entry(ring, tail);
}

void rpost_ring_pool_init(struct rpost_ring_pool *pool);
int rpost_ring_alloc(struct rpost_cring *ring, struct rpost_user *user,
		     struct rpost_ring_pool *pool, u32 entries, u32 entry_size);
u32 rpost_ring_offset(const struct rpost_cring *ring);
void rpost_ring_free(struct rpost_cring *ring);
void rpost_ring_copy(struct rpost_cring *to, const struct rpost_cring *from,
		     u32 begin, u32 end);
void rpost_ring_take_over(struct rpost_cring *to,
			  const struct rpost_cring *from, u32 head);
int rpost_ring_mmap(struct rpost_cring *ring, struct vm_area_struct *vma);
struct rpost_ring_seen rpost_ring_see(struct rpost_cring *ring);
void rpost_ring_overrun(struct rpost_cring *ring);
void rpost_ring_publish(struct rpost_cring *ring);
bool rpost_ring_take_arm(struct rpost_cring *ring);
bool rpost_ring_armed(const struct rpost_cring *ring);
void rpost_ring_set_flags(struct rpost_cring *ring, u32 set, u32 clear);

/* --------------------------------------------------------------- cq.c */

/**
 * struct rpost_comp_channel - completion channel, behind a file descriptor
 * @kref: held by the file and by each completion queue
 * @file: the open file whose queues report here; holds a reference
 * @fetch: one reader at a time, so that an event is read once
 * @lock: guards @ready, and event_link and events of the queues on it
 * @ready: completion queues that have events
 * @wait: who polls the descriptor
 * @fasync: who gets SIGIO
 * @readers: who sleeps in a read; its lock, which devices take in their handlers,
 *           guards what follows
 * @sleepers: how many
 * @kicked: completion queues that one of them is to fetch for
 *
 * A device that tells of completions in a thread while a reader sleeps and waits
 * for them does not need ksoftirqd, which would only wake the reader: it is woken
 * at once, and fetches.  Whoever has slept looks at @kicked before it leaves, so that nothing
 * stays there without a sleeper.
 */
struct rpost_comp_channel {
	struct kref kref;
	struct rpost_file *file;
	struct mutex fetch;
	spinlock_t lock;
	struct list_head ready;
	wait_queue_head_t wait;
	struct fasync_struct *fasync;
	wait_queue_head_t readers;
	unsigned int sleepers;
	struct list_head kicked;
};

/**
 * enum rpost_cq_mode - who fetches completions from the device
 * @RPOST_CQ_IDLE: who posts sends, and the program by ioctl.  First, when the
 *                 program has neither polled nor armed: the device stays
 *                 unarmed, because an arm cannot be made weaker, and the
 *                 program's first could be for solicited events only.  Again,
 *                 when posts complete before they return and nobody waits: an
 *                 interrupt would tell what the poster finds anyway.
 * @RPOST_CQ_AUTO: the device is always armed and its interrupt fills the ring;
 *                 the program polls and arms in shared memory
 * @RPOST_CQ_EXACT: the program has asked for solicited events.  Only the device
 *                  knows which they are, so it is armed as the program asks,
 *                  and unarmed in between; the program polls by ioctl.
 * @RPOST_CQ_POLLED: as AUTO, but the poller of send rings is awake, and fetches;
 *                   the device is not armed again until the poller sleeps.
 */
enum rpost_cq_mode {
	RPOST_CQ_IDLE,
	RPOST_CQ_AUTO,
	RPOST_CQ_EXACT,
	RPOST_CQ_POLLED,
};

/**
 * struct rpost_hwcq - a device's completion queue that feeds a rpost_cq
 * @link: in @cq->hwcqs
 * @cq: whom it feeds
 * @ib_cq: the device's
 * @iop: runs rpost_hwcq_poll() in softirq context after an interrupt
 * @work: for a device that tells of completions in a thread: fetches what it can, and
 *        leaves the rest to @iop
 * @srq: it gets completions of a shared receive queue, whose lock is not for
 *       interrupts; under the lock of @cq
 * @shown: @work has fetched, and left the rest; under the lock of @cq
 * @owed: the same, and somebody had asked for an event, which others may give first
 * @thread: that @work has interrupted, not to be looked into
 * @lingerer: the same, which rpost_hwcq_linger() has kept until a post came; or NULL
 * @switches: how often it had given up its CPU by then
 * @skip: how often not to keep it
 * @backoff: what @skip was last, halved with each success; these four are @iop's
 * @size: entries
 * @used: entries that the work requests of the attached queue pairs can fill
 *
 * @used never exceeds @size: a lost completion would lose the request it
 * belongs to.  So a device queue never overruns, whatever the program does.
 */
struct rpost_hwcq {
	struct list_head link;
	struct rpost_cq *cq;
	struct ib_cq *ib_cq;
	struct irq_poll iop;
	struct irq_work work;
	bool srq;
	bool shown;
	bool owed;
	const void *thread;
	const void *lingerer;
	unsigned long switches;
	u32 skip;
	u32 backoff;
	u32 size;
	u32 used;
};

#define RPOST_POLL_BATCH	16
#define RPOST_POLL_BUDGET	(16 * RPOST_POLL_BATCH)
#define RPOST_DRAIN_BATCH	1024	/* with bottom halves disabled */
#define RPOST_LINGER_NS		10000	/* with bottom halves disabled */
#define RPOST_LINGER_SKIP_SWITCHED	7U
#define RPOST_LINGER_SKIP_MAX	127U
/* A post is prompt if it has completed when it returns. */
#define RPOST_PROMPT_SAMPLE	8	/* one in so many tells of the device */
#define RPOST_PROMPT_DEVICE	8	/* in a row */
#define RPOST_PROMPT_MIN	4U	/* prompt posts before interrupts end */
#define RPOST_PROMPT_MAX	4096U	/* where that was of no use before */

struct rpost_queue;

/**
 * struct rpost_cq - completion queue
 * @obj: its handle
 * @channel: gets its events, or NULL
 * @user_data: the program's name for it
 * @comp_vector: for its device queues
 * @flags: RPOST_CQ_*
 * @cqe: entries in the ring; written under @setup_lock
 * @setup_lock: the ring is mapped or replaced, or a queue pair attached or detached,
 *              by one at a time.  The program's memory map is locked when it is
 *              taken for mapping, so that its memory must not be touched with it.
 * @lock: guards all that follows; posts are not under it
 * @hwcqs: device queues, made as queue pairs come
 * @mode: who fetches
 * @notify: an event has been asked for by ioctl: IB_CQ_SOLICITED or
 *          IB_CQ_NEXT_COMP, or 0
 * @armed: the device has been armed, once
 * @prompt_posts: posts of a queue pair, one after the other, that must have
 *                completed when they return before @mode becomes idle again
 * @idle_posts: posts since then that found their completions
 * @sq_empty: after the last completion of a send there was none left in its queue, and
 *            none has been posted since; a hint, posts clear it without @lock
 * @ring: shared with the program.  Replaced under @setup_lock and @lock, freed
 *        after a grace period: posters look at it under RCU.
 * @event_link: in @channel->ready; under @channel->lock
 * @events: events not yet read; under @channel->lock
 * @kick_link: in @channel->kicked
 */
struct rpost_cq {
	struct rpost_obj obj;
	struct rpost_comp_channel *channel;
	u64 user_data;
	u32 comp_vector;
	u32 flags;
	u32 cqe;
	struct mutex setup_lock;
	spinlock_t lock;
	struct list_head hwcqs;
	enum rpost_cq_mode mode;
	u32 notify;
	bool armed;
	u32 prompt_posts;
	u32 idle_posts;
	bool sq_empty;
	struct rpost_cring __rcu *ring;
	struct list_head event_link;
	unsigned int events;
	struct list_head kick_link;
};

int rpost_create_cq_ioctl(struct rpost_ucmd *ucmd);
int rpost_arm_cq_ioctl(struct rpost_ucmd *ucmd);
int rpost_poll_cq_ioctl(struct rpost_ucmd *ucmd);
int rpost_resize_cq_ioctl(struct rpost_ucmd *ucmd);
int rpost_cq_shutdown(struct rpost_obj *obj);
void rpost_cq_free(struct rpost_obj *obj);
int rpost_cq_mmap(struct rpost_file *file, struct vm_area_struct *vma);
void rpost_cq_deliver(struct rpost_cq *cq, bool interrupt);
u32 rpost_cq_drain(struct rpost_cq *cq, u32 budget);
void rpost_cq_posted(struct rpost_cq *cq, struct rpost_queue *sq, u32 head);
void rpost_cq_complete(struct rpost_cq *cq, struct ib_wc *wc);
struct rpost_ring_seen rpost_cq_see(struct rpost_cq *cq);
void rpost_cq_tell(struct rpost_cq *cq, const struct rpost_wc *wc);
u32 rpost_cq_poller_fetch(struct rpost_cq *cq);
void rpost_cq_poller_leaves(struct rpost_cq *cq);

/* hwcq.c */
struct rpost_hwcq *rpost_cq_attach(struct rpost_cq *cq, u32 entries);
void rpost_cq_detach(struct rpost_hwcq *hwcq, u32 entries);
void rpost_cq_kicked(struct rpost_cq *cq);
void rpost_hwcq_arm(struct rpost_hwcq *hwcq);
u32 rpost_hwcq_process(struct rpost_hwcq *hwcq, u32 budget);
u32 rpost_hwcq_drain(struct rpost_hwcq *hwcq, u32 budget);
void rpost_hwcqs_destroy(struct rpost_cq *cq, struct list_head *hwcqs);

/**
 * rpost_cq_ring() - a completion queue's ring
 * @cq: the queue, with its lock held
 *
 * Return: the ring, until the lock is given back.
 */
static inline struct rpost_cring *rpost_cq_ring(struct rpost_cq *cq)
{
	return rcu_dereference_protected(cq->ring,
					 lockdep_is_held(&cq->lock));
}

int rpost_create_comp_channel_ioctl(struct rpost_ucmd *ucmd);
struct rpost_comp_channel *rpost_comp_channel_get(struct rpost_file *file,
						  int fd);
void rpost_comp_channel_put(struct rpost_comp_channel *channel);
void rpost_comp_channel_post(struct rpost_cq *cq);
bool rpost_comp_channel_kick(struct rpost_cq *cq);
void rpost_comp_channel_forget(struct rpost_cq *cq);

/* ------------------------------------------------------- event.c, cm.c */

/**
 * struct rpost_event_channel - event channel, behind a file descriptor
 * @kref: held by the file and by each id
 * @file: the open file whose ids report here; holds a reference
 * @fetch: one fetcher at a time, so that events come in order
 * @events: struct rpost_event, oldest first; under @file->event_lock
 * @link: in @file->event_channels; under @file->event_lock
 * @wait: fetchers
 */
struct rpost_event_channel {
	struct kref kref;
	struct rpost_file *file;
	struct mutex fetch;
	struct list_head events;
	struct list_head link;
	wait_queue_head_t wait;
};

/**
 * struct rpost_event - an event that waits to be fetched
 * @link: in the channel's list, unless @fetching
 * @id_link: in the list of @id
 * @id: whose event it is; for a request, the new id; NULL if that has been destroyed,
 *      or the join left, while @fetching
 * @fetching: it is on its way to the program, and in no channel's list
 * @join: serial number of the join that it comes from, or 0
 * @event: what the program will get
 *
 * A request owns its new id, which is not published yet: whoever drops the
 * event destroys the id; fetching publishes it.  Nobody waits for an event that is
 * on its way to the program, since that may wait for the program's memory: who
 * destroys its id takes it from the id, and the fetcher forgets it.
 *
 * All of it is under the file's event_lock.
 */
struct rpost_event {
	struct list_head link;
	struct list_head id_link;
	struct rpost_id *id;
	bool fetching;
	u64 join;
	struct rpost_get_event event;
};

/**
 * struct rpost_join - a multicast group that an id has joined
 * @link: in the id's list, the last first, as cma has them
 * @serial: never the same twice for an id
 * @user_data: the program's name for it
 * @addr: the group
 */
struct rpost_join {
	struct list_head link;
	u64 serial;
	u64 user_data;
	struct sockaddr_storage addr;
};

/**
 * struct rpost_id - connection id
 * @obj: its handle
 * @lock: one command on the id at a time; guards @cm_id and @qp.  Handlers
 *        never take it: commands wait for handlers with it held.
 * @cm_id: NULL once destroyed
 * @qp: its queue pair, or NULL
 * @state_lock: guards changes of @state
 * @state: changed by rpost_id_move() only; read without a lock
 * @can_send: the queue pair has left the states in which sends are refused
 * @responded: without a queue pair: the other side has answered, and the
 *             program must too; under cma's handler_mutex
 * @unaccepted: from a request that the program has not accepted, so that it gets
 *              no events: as ucma has it, @state tells when the program tries;
 *              under cma's handler_mutex
 * @channel: where its events go; under the file's event_lock
 * @listener: until its request has been fetched, the id that listens; under the
 *            file's event_lock
 * @request_link: in the list of @listener; under the file's event_lock
 * @requests: ids of requests that have not been fetched, oldest first; under the
 *            file's event_lock
 * @events: struct rpost_event that have not been fetched, oldest first; under the
 *          file's event_lock
 * @num_events: how many of them are in the channel's list; under the file's
 *              event_lock, but the limit looks at it without
 * @backlog: requests that may still be queued (while listening)
 * @joins: struct rpost_join; read under @lock or the file's event_lock, written
 *         under both
 * @num_joins: how many; under @lock
 * @join_serial: the last; under @lock
 * @removal_work: destroys @cm_id after the device has gone, which the handler
 *                itself must not do
 */
struct rpost_id {
	struct rpost_obj obj;
	struct mutex lock;
	struct rdma_cm_id *cm_id;
	struct rpost_qp *qp;
	spinlock_t state_lock;
	enum rpost_id_state state;
	bool can_send;
	bool responded;
	bool unaccepted;
	struct rpost_event_channel *channel;
	struct rpost_id *listener;
	struct list_head request_link;
	struct list_head requests;
	struct list_head events;
	unsigned int num_events;
	atomic_t backlog;
	struct list_head joins;
	unsigned int num_joins;
	u64 join_serial;
	struct work_struct removal_work;
};

/**
 * rpost_id_connected() - does the connection exist at this moment?
 * @id: the id
 *
 * Return: true from the end of accepting or connecting until disconnection.
 */
static inline bool rpost_id_connected(const struct rpost_id *id)
{
	enum rpost_id_state state = READ_ONCE(id->state);

	return state == RPOST_ID_CONNECTED || state == RPOST_ID_ACCEPTING;
}

int rpost_create_event_channel_ioctl(struct rpost_ucmd *ucmd);
struct rpost_event_channel *rpost_event_channel_get(struct rpost_file *file,
						    int fd);
void rpost_event_channel_put(struct rpost_event_channel *channel);
void rpost_event_channels_wake(struct rpost_file *file);
void rpost_event_free(struct rpost_event *event);
void rpost_event_queue(struct rpost_event *event, struct rpost_id *listener);
void rpost_events_drop(struct rpost_id *id);
void rpost_events_drop_join(struct rpost_id *id, struct rpost_join *join);
void rpost_events_migrate(struct rpost_id *id, struct rpost_event_channel *to);

int rpost_id_move(struct rpost_id *id, u32 from, enum rpost_id_state to);
int rpost_id_handler(struct rdma_cm_id *cm_id, struct rdma_cm_event *cm_event);
struct rpost_id *rpost_id_enter(struct rpost_file *file, u32 handle);
void rpost_id_exit(struct rpost_id *id);
int rpost_id_check_events(const struct rpost_id *id);
int rpost_sockaddr(struct sockaddr_storage *to,
		   const struct __kernel_sockaddr_storage *from, u32 len);
int rpost_id_shutdown(struct rpost_obj *obj);
void rpost_id_free(struct rpost_obj *obj);
void rpost_id_destroy_unpublished(struct rpost_id *id);
int rpost_create_id_ioctl(struct rpost_ucmd *ucmd);
int rpost_bind_addr_ioctl(struct rpost_ucmd *ucmd);
int rpost_resolve_addr_ioctl(struct rpost_ucmd *ucmd);
int rpost_resolve_route_ioctl(struct rpost_ucmd *ucmd);
int rpost_query_id_ioctl(struct rpost_ucmd *ucmd);
int rpost_listen_ioctl(struct rpost_ucmd *ucmd);
int rpost_connect_ioctl(struct rpost_ucmd *ucmd);
int rpost_accept_ioctl(struct rpost_ucmd *ucmd);
int rpost_reject_ioctl(struct rpost_ucmd *ucmd);
int rpost_disconnect_ioctl(struct rpost_ucmd *ucmd);
int rpost_migrate_id_ioctl(struct rpost_ucmd *ucmd);

/* --------------------------------------- connect.c, option.c, mcast.c */

int rpost_establish_ioctl(struct rpost_ucmd *ucmd);
int rpost_set_option_ioctl(struct rpost_ucmd *ucmd);
int rpost_notify_ioctl(struct rpost_ucmd *ucmd);
int rpost_init_qp_attr_ioctl(struct rpost_ucmd *ucmd);
int rpost_join_mcast_ioctl(struct rpost_ucmd *ucmd);
int rpost_leave_mcast_ioctl(struct rpost_ucmd *ucmd);
void rpost_joins_free(struct rpost_id *id);

/* ---------------------------------------- qp.c, hold.c, post.c, comp.c */

/**
 * struct rpost_wqe_kind - what a slot knows of its work request
 * @opcode: RPOST_WC_* of its completion
 * @signaled: the program wants a completion on success too
 * @refused: it stands for one from a ring that could not be posted
 * @bad_key: it names memory that it may not use, see struct rpost_pd
 * @waits: it has completed, with an entry in the ring
 */
struct rpost_wqe_kind {
	u8 opcode;
	u8 signaled : 1;
	u8 refused : 1;
	bool bad_key;
	bool waits;
};

/**
 * struct rpost_wqe - a work request between post and completion, 32 bytes
 * @cqe: names it to the device; the completion leads back here
 * @qp: whose it is; the device's own may be gone when a completion is fetched
 * @wr_id: the program's name for it
 * @pos: entries in the ring with that of its completion
 * @kind: the rest
 */
struct rpost_wqe {
	struct ib_cqe cqe;
	struct rpost_qp *qp;
	u64 wr_id;
	u32 pos;
	struct rpost_wqe_kind kind;
};

/**
 * struct rpost_queue - send or receive queue
 * @lock: one poster at a time, so that slots are taken in the order in which
 *        the device sees the work requests.  Also the bracket of disabled
 *        bottom halves in which a driver's tasklet waits for the end of the
 *        post, instead of waking ksoftirqd (rxe before 6.9).
 * @wqes: slots, @mask + 1 of them; entry number i is at i & @mask
 * @mask: a power of two less 1
 * @max_wr: work requests that the program may have in the queue
 * @max_sge: scatter/gather entries in each
 * @room: while no more slots than this are taken, there is nothing to look at
 *        before a post; 0 while a send is held, see struct rpost_hold, and then
 *        changed under the lock of the completion queue, too
 * @head: slots taken; under @lock
 * @free: slots that can be taken again, a lower bound; under @lock
 * @unsignaled: slots taken since the last that the device was told to signal;
 *              under @lock
 * @closed: why nothing may be posted (an errno), or 0; under @lock, and looked at
 *          without it first
 * @prompt: the last posts that had completed when they returned, or, while that is
 *          not known of the device, those since one was looked at; a hint,
 *          written by posters without @lock
 * @tail: slots that have completed; written by completions, under the lock of
 *        the completion queue.  A completion ends every slot up to its own:
 *        queues complete in order.  Released after the slot was read, and
 *        acquired before it is reused.
 *
 * As in verbs, a slot can be taken again when the program has consumed its
 * completion.  So a program that sizes its completion queue by its queues, and
 * takes a full queue as a sign to poll, never overruns.
 */
struct rpost_queue {
	spinlock_t lock;
	struct rpost_wqe *wqes;
	u32 mask;
	u32 max_wr;
	u32 max_sge;
	u32 room;
	u32 head;
	u32 free;
	u32 unsignaled;
	int closed;
	u32 prompt;
	u32 tail ____cacheline_aligned_in_smp;
};

/**
 * struct rpost_hold - a send that waits for room on the device
 * @room: work requests that the device is asked to have room for
 * @pos: number of the slot of the send that is held
 * @wr: the send, checked and built
 * @sges: its entries; NULL if nothing is ever held
 * @work: posts it when there is room
 * @delay: until @work looks again, in jiffies
 * @kicked: a completion has had @work run; under the lock of the completion queue
 *
 * Some drivers make the queue of a device a power of two of entries, one of which
 * is never used.  A program that asks for a power of two would cost twice the
 * memory that it needs, of the largest thing that a connection has.  So the device
 * is asked for one less, and the last send that a full queue takes is held here
 * until another completes.  There is never more than one: its slot is the last.
 *
 * It is posted by who posts next, or by @work, which is run when half of the sends
 * before it have completed: to run it costs more than a post.  Where nobody
 * fetches completions, see enum rpost_cq_mode, @work does after a while, with
 * growing delays.  When the queue pair is drained the device does not get it: it
 * is flushed by the module, after all others.
 *
 * It has one under the send queue's lock; whoever says that it has one or has none
 * any more has the lock of the completion queue, too.
 */
struct rpost_hold {
	u32 room;
	u32 pos;
	struct ib_atomic_wr wr;
	struct ib_sge *sges;
	struct delayed_work work;
	unsigned long delay;
	bool kicked;
};

/**
 * struct rpost_inline_page - a page of inline data, mapped for the device
 * @page: the page
 * @dma: its address for the device
 */
struct rpost_inline_page {
	struct page *page;
	u64 dma;
};

/**
 * struct rpost_marker - the last work request of a queue
 * @cqe: names it to the device
 * @done: it has come back
 */
struct rpost_marker {
	struct ib_cqe cqe;
	struct completion done;
};

/**
 * struct rpost_mcast - a multicast group that a queue pair is attached to
 * @link: in the queue pair's list
 * @gid: the group
 * @lid: its local id
 */
struct rpost_mcast {
	struct list_head link;
	union ib_gid gid;
	u16 lid;
};

/**
 * struct rpost_qp - queue pair
 * @obj: its handle
 * @id: depends on it, and cma changes its states; NULL if the program does
 * @lock: guards @ib_qp, @state and @mcasts of a queue pair without an id; else
 *        @id->lock does, see rpost_qp_lock()
 * @pd: depends on it
 * @send_cq: depends on it
 * @recv_cq: depends on it
 * @srq: depends on it; NULL if @rq is its own
 * @send_hwcq: device queue of @send_cq
 * @recv_hwcq: device queue of @recv_cq; the same if the queues are
 * @ib_qp: NULL once shut down
 * @ahs: by slot of @sq, where a datagram goes that the device has; NULL if it is
 *       not a datagram queue pair
 * @qp_type: RPOST_QPT_*
 * @qp_flags: RPOST_QP_*
 * @qp_num: outlives @ib_qp
 * @user_data: the program's name for it
 * @state: where the program has moved it, without an id
 * @max_sge_rd: scatter/gather entries in a read
 * @iwarp: a read names its one entry to the peer, even if it is empty
 * @failed: a work request has failed, or the program has disconnected or
 *          destroyed or stopped it, so that others are flushed
 * @discard: the program is not told of completions any more
 * @leaked: the device has kept it, so that nothing of it may be freed
 * @stopped: moved to the error state on the way to its end or to RESET; stays
 *           true if it could not be reset
 * @can_take: when it was stopped, it could have taken receives of @srq
 * @stopped_at: when that was, in jiffies
 * @max_inline: bytes of inline data in a send
 * @inline_stride: bytes between two slots' inline data
 * @inline_per_page: slots whose inline data share a page
 * @inline_pages: by slot, in pages
 * @num_inline_pages: how many; one only when it is needed for the first time,
 *                    then under @sq.lock
 * @inline_page: the only one
 * @mcasts: struct rpost_mcast
 * @num_mcasts: how many
 * @send_marker: drains @sq
 * @recv_marker: drains @rq
 * @last_wqe: completed when the device takes no more from @srq
 * @hold: a send for which the device has no room
 * @sring: send ring, or NULL; set once, under the file's poller_lock, freed with
 *         the queue pair
 * @sring_begins: it is being made; under the file's poller_lock
 * @sq: send queue
 * @rq: receive queue; without slots if there is a @srq
 *
 * A slot belongs to the poster from the moment it is taken until
 * ib_post_send() returns without error for it, then to the device, then to the
 * completion, which reads it and gives it back.  Shutting down stops posters
 * (closed), moves the queue pair to the error state, and waits for a marker on
 * each queue; then all slots have come back.  The device has no entry more for that
 * of the send queue: it is posted when one has come back.  A datagram needs an address, which
 * a marker has not; so all that such a send queue holds completes to the
 * module, and it is drained when that has happened.
 */
struct rpost_qp {
	struct rpost_obj obj;
	struct rpost_id *id;
	struct mutex lock;
	struct rpost_pd *pd;
	struct rpost_cq *send_cq;
	struct rpost_cq *recv_cq;
	struct rpost_srq *srq;
	struct rpost_hwcq *send_hwcq;
	struct rpost_hwcq *recv_hwcq;
	struct ib_qp *ib_qp;
	struct rpost_ah **ahs;
	u32 qp_type;
	u32 qp_flags;
	u32 qp_num;
	u64 user_data;
	u32 state;
	u32 max_sge_rd;
	bool iwarp;
	bool failed;
	bool discard;
	bool leaked;
	bool stopped;
	bool can_take;
	unsigned long stopped_at;
	u32 max_inline;
	u32 inline_stride;
	u32 inline_per_page;
	struct rpost_inline_page *inline_pages;
	u32 num_inline_pages;
	struct rpost_inline_page inline_page;
	struct list_head mcasts;
	unsigned int num_mcasts;
	struct rpost_marker send_marker;
	struct rpost_marker recv_marker;
	struct completion last_wqe;
	struct rpost_hold hold;
	struct rpost_sring *sring;
	bool sring_begins;
	struct rpost_queue sq;
	struct rpost_queue rq;
};

/**
 * rpost_qp_lock() - lock out changes of a queue pair
 * @qp: the queue pair
 */
static inline void rpost_qp_lock(struct rpost_qp *qp)
{
	mutex_lock(qp->id ? &qp->id->lock : &qp->lock);
}

/**
 * rpost_qp_unlock() - undo rpost_qp_lock()
 * @qp: the queue pair
 */
static inline void rpost_qp_unlock(struct rpost_qp *qp)
{
	mutex_unlock(qp->id ? &qp->id->lock : &qp->lock);
}

/**
 * rpost_qp_stopped() - has anything but a bad key stopped the queue pair?
 * @qp: the queue pair
 *
 * Return: true if so.
 */
static inline bool rpost_qp_stopped(const struct rpost_qp *qp)
{
	return READ_ONCE(qp->failed) || (qp->id && !rpost_id_connected(qp->id));
}

/**
 * rpost_holds() - is a send held?
 * @qp: the queue pair, with the lock of its send queue or of its completion queue,
 *      or with its queues closed
 *
 * Return: true if so.
 */
static inline bool rpost_holds(const struct rpost_qp *qp)
{
	return !qp->sq.room && qp->hold.sges;
}

int rpost_hold_init(struct rpost_qp *qp);
int rpost_hold_make_room(struct rpost_qp *qp);
bool rpost_hold_back(struct rpost_qp *qp, const struct ib_atomic_wr *wr);
void rpost_hold_cancel(struct rpost_qp *qp);
void rpost_hold_kick(struct rpost_qp *qp);
bool rpost_hold_drained(struct rpost_qp *qp);
void rpost_hold_flush(struct rpost_qp *qp);
void rpost_hold_stop(struct rpost_qp *qp);

int rpost_create_qp_ioctl(struct rpost_ucmd *ucmd);
int rpost_query_qp_ioctl(struct rpost_ucmd *ucmd);
int rpost_modify_qp_ioctl(struct rpost_ucmd *ucmd);
int rpost_attach_mcast_ioctl(struct rpost_ucmd *ucmd);
int rpost_detach_mcast_ioctl(struct rpost_ucmd *ucmd);
void rpost_qp_detach_mcasts(struct rpost_qp *qp);
int rpost_qp_inline_room(struct rpost_qp *qp);
int rpost_qp_reset(struct rpost_qp *qp);
void rpost_qp_open(struct rpost_qp *qp, u32 state);
void rpost_qp_stop_early(struct rpost_obj *obj);
int rpost_qp_shutdown(struct rpost_obj *obj);
void rpost_qp_free(struct rpost_obj *obj);
void rpost_scratch_free(struct rpost_file *file);
int rpost_post_send_ioctl(struct rpost_ucmd *ucmd);
int rpost_post_recv_ioctl(struct rpost_ucmd *ucmd);
int rpost_post_srq_recv_ioctl(struct rpost_ucmd *ucmd);
int rpost_post_ring(struct rpost_qp *qp, void *block, u32 count, u32 *posted);
int rpost_post_refused(struct rpost_qp *qp, u64 wr_id);
void rpost_send_done(struct ib_cq *ib_cq, struct ib_wc *wc);
void rpost_recv_done(struct ib_cq *ib_cq, struct ib_wc *wc);
void rpost_srq_done(struct ib_cq *ib_cq, struct ib_wc *wc);

/**
 * rpost_inline_addr() - where a slot's inline data lives
 * @qp: queue pair
 * @slot: number of the slot, below the number of slots
 * @dma: out: the address for the device
 *
 * Return: the address for the CPU.
 */
static inline void *rpost_inline_addr(struct rpost_qp *qp, u32 slot, u64 *dma)
{
	struct rpost_inline_page *ip = &qp->inline_pages[slot / qp->inline_per_page];
	u32 offset = slot % qp->inline_per_page * qp->inline_stride;

	*dma = ip->dma + offset;
	return page_address(ip->page) + offset;
}

/* ----------------------------------------------------------- sring.c */

/**
 * struct rpost_sring - a queue pair's send ring
 * @qp: whose it is
 * @poller: serves it; NULL once stopped.  Under the file's poller_lock
 * @link: in @poller->rings
 * @mem: what the program maps
 * @bytes: of data in @mem, a power of two
 * @head: bytes taken, private: the program may scribble on its copy
 * @flags: RPOST_SEND_RING_*, private
 * @error: why nothing more is taken (a negative errno), or 0
 *
 * Of two indices each has one writer: @tail is the program's, @head the poller's.
 * The kernel reads one word that the program writes, @tail, once for each time
 * that it looks, and the work requests before it, once: they are copied and then
 * checked, and what is done depends on the copy alone.  If the queue is full
 * the rest of a copy is forgotten, and the same bytes are a new copy, which is
 * checked anew, the next time.  A @tail further away than the ring is long,
 * or a size that cannot be, ends the ring (@error), and nothing else.
 *
 * Barriers, kernel in sring.c and program in userlib/sring.c:
 *
 *   @tail (acquire), then bytes     pairs with  bytes, then @tail (release)
 *   bytes, then @head (release)     pairs with  @head (acquire), then bytes
 *   @flags, full barrier, @tail     pairs with  @tail, full barrier, @flags
 *   @error, full barrier, @tail     pairs with  @tail, full barrier, @error
 *
 * By the third, either the program sees that the poller sleeps, and wakes it, or the
 * poller sees the new tail, and does not go to sleep.  By the last, either the
 * program sees that the device has gone or what it wrote is flushed.
 *
 * @link, @head, @flags and @error are under the poller's lock.
 */
struct rpost_sring {
	struct rpost_qp *qp;
	struct rpost_poller *poller;
	struct list_head link;
	struct rpost_cring mem;
	u32 bytes;
	u32 head;
	u32 flags;
	int error;
};

/**
 * struct rpost_poller - the thread that serves an open file's send rings
 * @file: the open file
 * @task: the thread
 * @link: in the list of all pollers
 * @lock: held by the thread for a round of all rings; guards @rings and @asleep
 * @rings: struct rpost_sring
 * @num_rings: those in @rings, and those that are being made or stopped; written
 *             under the file's poller_lock.  Without any the thread sleeps
 * @asleep: it does not look at the rings: RPOST_SEND_RING_NEED_WAKEUP is set
 * @wait: where it sleeps
 * @wake: it is to look again
 * @outstanding: the last round found work requests that the device has; the thread's
 * @since: of rounds with nothing to do, when the first was, or 0; the thread's
 * @block: where work requests are copied to
 *
 * The thread needs no memory of the program's: work requests have keys, and
 * inline data is in the ring.  It posts as a program's own call does, and fetches
 * the completions of the rings' send queues.
 *
 * After each round with nothing to do the thread gives its CPU away, explicitly
 * (yield()): the device may work in a thread which waits there, and what asks a
 * thread of the kernel to give way is not seen by cond_resched() everywhere, and
 * else at the next tick, milliseconds later.  If that does not help while the
 * device has work requests, its thread may be waiting on the CPU of a program that
 * spins.  So from time to time the poller sleeps: an idle CPU gets that thread.
 *
 * It stays until the file is closed, and its next ring finds it.  Only a program that
 * has moved to other cgroups meanwhile gets a new one: a new thread
 * is moved by cgroup_attach_task_all(), for which all that fork have to wait.
 *
 * A ring is stopped before its queue pair is shut down, and before the queue
 * pair's lock is taken: it is taken out of @rings under @lock, and the thread does
 * not look at it any more.  The thread never takes a queue pair's lock, a
 * semaphore of the file's, or a reference on the file, so that who waits for it
 * with any of them does not wait for ever.
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

int rpost_setup_send_ring_ioctl(struct rpost_ucmd *ucmd);
int rpost_enter_send_ring_ioctl(struct rpost_ucmd *ucmd);
int rpost_sring_mmap(struct rpost_file *file, struct vm_area_struct *vma);
void rpost_sring_discard(struct rpost_qp *qp);
void rpost_sring_stop(struct rpost_qp *qp);
void rpost_sring_flush(struct rpost_qp *qp);
void rpost_sring_free(struct rpost_qp *qp);
void rpost_poller_stop(struct rpost_file *file);

/* -------------------------------------------------------------- ah.c */

/**
 * struct rpost_ah - address handle
 * @obj: its handle
 * @pd: depends on it
 * @ib_ah: NULL once shut down
 * @pending: sends that name it and that the device has; while there are any it
 *           cannot be destroyed (EBUSY).  Taken under the send queue's lock,
 *           with a reference on @obj, and given back by the completion.  So when
 *           removal has shut down the queue pairs there are none.
 */
struct rpost_ah {
	struct rpost_obj obj;
	struct rpost_pd *pd;
	struct ib_ah *ib_ah;
	atomic_t pending;
};

void rpost_ah_attr_fill(struct rpost_ah_attr *to,
			const struct rdma_ah_attr *from);
int rpost_ah_attr_build(struct ib_device *ib_dev, struct rdma_ah_attr *to,
			const struct rpost_ah_attr *from);
int rpost_ah_attr_resolve(struct ib_pd *ib_pd, struct rdma_ah_attr *attr);
void rpost_qp_release_ah(struct rpost_qp *qp, const struct rpost_wqe *wqe);
int rpost_create_ah_ioctl(struct rpost_ucmd *ucmd);
int rpost_ah_shutdown(struct rpost_obj *obj);
void rpost_ah_free(struct rpost_obj *obj);

/* ------------------------------------------------------------- srq.c */

/**
 * struct rpost_srq_wqe - a receive between post and completion
 * @cqe: names it to the device
 * @srq: whose it is
 * @wr_id: the program's name for it
 * @next: the next free slot
 * @bad_key: it names memory that it may not use
 */
struct rpost_srq_wqe {
	struct ib_cqe cqe;
	struct rpost_srq *srq;
	u64 wr_id;
	u32 next;
	bool bad_key;
};

/**
 * struct rpost_srq_cq - room for a shared receive queue's completions
 * @link: in the shared receive queue's list
 * @cq: completion queue of some of its queue pairs
 * @hwcq: device queue with the room
 * @users: how many
 */
struct rpost_srq_cq {
	struct list_head link;
	struct rpost_cq *cq;
	struct rpost_hwcq *hwcq;
	unsigned int users;
};

/**
 * struct rpost_srq - shared receive queue
 * @obj: its handle
 * @pd: depends on it
 * @ib_srq: NULL once shut down; under the file's rwsem
 * @user_data: the program's name for it
 * @max_wr: work requests that the program may have in it
 * @max_sge: scatter/gather entries in each
 * @qp_lock: a queue pair begins or ends; guards @cqs
 * @cqs: where its receives complete.  All that is posted may complete to any
 *       of them, so each has room for all of it.
 * @qps: its queue pairs by their struct ib_qp, to find whose a completion is.
 *       Only the address is looked at: the device's may be gone by then.
 * @lock: guards all that follows, and the order of posts
 * @wqes: slots, @max_slots of them
 * @max_slots: how many there are, and how many completions @cqs have room for
 * @num_slots: how many have been used
 * @lost: receives that may never complete
 * @free: first free slot, or RPOST_NO_SLOT
 * @closing: nothing may be posted any more
 *
 * Receives do not complete in the order in which they were posted, so each slot
 * comes back by itself, to a list.  It can be taken again at once.
 *
 * When a queue pair is stopped within a message, its receive should be flushed;
 * since 6.9 rxe forgets it.  Its slot never comes back, and nobody knows which
 * it was.  So for each queue pair that has been stopped the program may use one
 * more slot, once it has run out of them, as long as there are any.
 */
struct rpost_srq {
	struct rpost_obj obj;
	struct rpost_pd *pd;
	struct ib_srq *ib_srq;
	u64 user_data;
	u32 max_wr;
	u32 max_sge;
	struct mutex qp_lock;
	struct list_head cqs;
	struct xarray qps;
	spinlock_t lock;
	struct rpost_srq_wqe *wqes;
	u32 max_slots;
	u32 num_slots;
	u32 lost;
	u32 free;
	bool closing;
};

#define RPOST_NO_SLOT	U32_MAX

int rpost_create_srq_ioctl(struct rpost_ucmd *ucmd);
int rpost_modify_srq_ioctl(struct rpost_ucmd *ucmd);
int rpost_query_srq_ioctl(struct rpost_ucmd *ucmd);
int rpost_srq_shutdown(struct rpost_obj *obj);
void rpost_srq_free(struct rpost_obj *obj);
struct rpost_hwcq *rpost_srq_attach_cq(struct rpost_srq *srq,
				       struct rpost_cq *cq);
void rpost_srq_detach_cq(struct rpost_srq *srq, struct rpost_cq *cq);
int rpost_srq_add_qp(struct rpost_srq *srq, struct rpost_qp *qp);
void rpost_srq_del_qp(struct rpost_srq *srq, struct ib_qp *ib_qp);
struct rpost_qp *rpost_srq_find_qp(struct rpost_srq *srq, struct ib_qp *ib_qp);
void rpost_srq_may_lose(struct rpost_srq *srq);
struct rpost_srq_wqe *rpost_srq_slot(struct rpost_srq *srq);
void rpost_srq_slot_free(struct rpost_srq *srq, struct rpost_srq_wqe *wqe);

/* --------------------------------------------------------- qp_attr.c */

int rpost_check_qkey(u32 qkey);
void rpost_qp_attr_fill(struct rpost_qp_attr *to,
			const struct ib_qp_attr *from);

#endif /* RPOST_H */
