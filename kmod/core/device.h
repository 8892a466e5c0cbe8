/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RDMA devices, and their use by open files.
 */
#ifndef RPOST_DEVICE_H
#define RPOST_DEVICE_H

#include <linux/rwsem.h>

#include "core/core.h"

/* ---------------------------------------------------------- context.c */

/**
 * struct rpost_context - the use of a device by an open file, as in verbs
 * @kref: held by each object on @dev and by each command that uses @dev
 * @link: in @file->contexts; under @file->charge_lock
 * @dev_link: in @dev->contexts; under @dev->contexts_lock
 * @file: the open file; holds a reference
 * @dev: the device; holds a reference
 * @rwsem: read: a command creates, changes, destroys or queries something on the
 *         device; write: removal.  So removal finds each of the file's objects
 *         on the device either complete or gone.  A command takes it before any
 *         reference on an object, because DESTROY waits for references with it
 *         held, and drops it before touching the program's memory.
 * @tried: the last round in which removal tried it; only removal uses it
 * @recheck: @recheck_work is queued, and has not begun; under @dev->contexts_lock
 * @recheck_work: ends the paths that have lost their GID; it has a reference
 * @cgroup: charged for a device handle while @num_charged is not 0
 * @num_charged: number of charged objects; under @file->charge_lock
 *
 * Removal waits only for files that use the device, and only while the device
 * carries out their commands, or the RDMA core waits for a neighbour, which it
 * does for a second.  The exception is a registration, whose memory the driver
 * pins with @rwsem held.  rpost_mr_fault_in() makes the pages present before, unless
 * they are more than the memory.  A program that withdraws them in between delays
 * the removal of this device, and its own commands there, until it returns them or
 * is killed.
 */
struct rpost_context {
	struct kref kref;
	struct list_head link;
	struct list_head dev_link;
	struct rpost_file *file;
	struct rpost_device *dev;
	struct rw_semaphore rwsem;
	unsigned int tried;
	bool recheck;
	struct delayed_work recheck_work;
	struct rdma_cgroup *cgroup;
	unsigned int num_charged;
};

struct rpost_context *rpost_context_get(struct rpost_file *file, struct rpost_device *dev);
void rpost_context_put(struct rpost_context *context);
struct rpost_device *rpost_enter_device(struct rpost_ucmd *ucmd, u32 id);
int rpost_enter_object(struct rpost_ucmd *ucmd, u32 handle, enum rpost_obj_type type);
void rpost_leave_device(struct rpost_ucmd *ucmd);
void rpost_contexts_device_gone(struct rpost_device *dev);
void rpost_contexts_recheck(struct rpost_device *dev);

/* ------------------------------------------------------------ admit.c */

/* May programs use a driver's devices? */
enum rpost_verdict {
	RPOST_NOT_OFFERED,	/* only if the administrator names the driver */
	RPOST_OFFERED,
	RPOST_NEVER,		/* whatever the administrator says */
};

/**
 * struct rpost_driver - properties of a driver, found by reading its source
 * @id: enum rdma_driver_id
 * @name: its name for the administrator; NULL for drivers without a row
 * @verdict: whether its devices are offered
 * @direct: its reg_user_mr() and dereg_mr() work without an ib_udata
 * @no_fastreg: fast registration fails: the driver takes the offset in the
 *              first page from the region's address, as if it were a DMA
 *              address
 * @no_iova: direct registration ignores an iova other than the address
 * @odp: its regions on demand were read for untrusted programs
 * @odp_no_recv: receives of kernel queue pairs cannot wait for a page
 * @odp_whole_pages: as RPOST_ODP_WHOLE_PAGES
 */
struct rpost_driver {
	u32 id;
	const char *name;
	enum rpost_verdict verdict;
	bool direct;
	bool no_fastreg;
	bool no_iova;
	bool odp;
	bool odp_no_recv;
	bool odp_whole_pages;
};

int rpost_admit_init(void);
void rpost_admit(struct rpost_device *dev);

/* ----------------------------------------------------------- device.c */

/**
 * struct rpost_device - an RDMA device that has kernel verbs
 * @kref: held by the table of devices, by each context, asynchronous channel and id with
 *        a query for a route on the device, and for a while by who has looked it up
 * @ib_dev: valid with a reference on it (rpost_device_find()), with a context's
 *          rwsem held and @dead false, and until the last object on the device
 *          has been shut down
 * @driver: properties of its driver
 * @refused: programs may not use it; it is only counted
 * @id: its number, allocated cyclically so that it is not reused
 * @name_lock: guards @name
 * @name: a copy, since a rename frees the string that dev_name() returns
 * @dead: removal has begun, and will take each context's rwsem
 * @refuses: the driver has refused a last request to destroy a region or queue
 *           pair, and later ones are not repeated
 * @stuck: a drain has timed out (drain_ms) and none has succeeded since; a
 *         hint, written without a lock
 * @event_handler: receives the events of the device and its ports
 * @async_lock: guards @async_channels
 * @async_channels: struct rpost_async_channel of all files
 * @contexts_lock: guards @contexts
 * @contexts: struct rpost_context of all open files that use it
 * @routes_lock: guards @routes
 * @routes: struct rpost_id that may query a route, see id/route.c
 * @routes_wait: removal waits here until @routes is empty
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
	struct ib_event_handler event_handler;
	struct mutex async_lock;
	struct list_head async_channels;
	struct mutex contexts_lock;
	struct list_head contexts;
	struct mutex routes_lock;
	struct list_head routes;
	wait_queue_head_t routes_wait;
	struct rcu_head rcu;
};

/* Its work ends what belongs to removed devices and GIDs, and may take long. */
extern struct workqueue_struct *rpost_wq;

int rpost_device_register(void (*gone)(struct rpost_device *dev));
void rpost_device_unregister(void);
u32 rpost_devices_list(struct rpost_file *file, u32 *ids, u32 room);
unsigned int rpost_device_count_refused(struct rpost_file *file);
struct rpost_device *rpost_device_find(struct rpost_file *file, u32 id);
void rpost_device_unfind(struct rpost_device *dev);
void rpost_leave_behind(struct rdma_restrack_entry *res, struct rpost_device *dev);
bool rpost_device_alive(struct rpost_device *dev);
void rpost_device_put(struct rpost_device *dev);
struct rpost_device *rpost_device_of(struct ib_device *ib_dev);
u32 rpost_device_id(struct ib_device *ib_dev);
void rpost_device_name(struct rpost_device *dev, char name[IB_DEVICE_NAME_MAX]);
u32 rpost_device_max_wr(struct ib_device *ib_dev);
u32 rpost_device_max_sge_rd(const struct ib_device *ib_dev);
u32 rpost_device_max_srq_wr(struct ib_device *ib_dev);
const struct ib_gid_attr *rpost_gid_get(const struct rpost_file *file,
					struct ib_device *ib_dev, u32 port,
					u32 index, u32 *ifindex);
bool rpost_gid_allowed(const struct rpost_file *file, const struct ib_gid_attr *gid);

/* ------------------------------------------------------------- attr.c */

void rpost_ah_attr_fill(struct rpost_ah_attr *to, const struct rdma_ah_attr *from);
void rpost_qp_attr_fill(struct rpost_qp_attr *to, const struct ib_qp_attr *from);

/* ------------------------------------------------------------ async.c */

void rpost_async_post(const struct rpost_obj *obj, u64 user_data, u32 event);
void rpost_async_forget(struct rpost_device *dev, const struct rpost_obj *obj);
void rpost_async_device_add(struct rpost_device *dev);
void rpost_async_device_gone(struct rpost_device *dev);

#endif /* RPOST_DEVICE_H */
