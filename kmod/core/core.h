/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands, and the objects that they make.
 */
#ifndef RPOST_CORE_H
#define RPOST_CORE_H

#include <linux/completion.h>
#include <linux/refcount.h>

#include "base/base.h"

struct rpost_context;
struct rpost_device;

/* ------------------------------------------------------------- file.c */

/**
 * struct rpost_ucmd - one ioctl while it is handled
 * @file: the open file
 * @filp: the file that the ioctl was called on: the device or an event channel
 * @context: its rwsem is held for reading, to keep the device; or NULL
 * @ubuf: the program's struct
 * @size: bytes of it that both the program and the kernel know
 * @cmd: the kernel's copy, made once; zero beyond the program's struct
 */
struct rpost_ucmd {
	struct rpost_file *file;
	struct file *filp;
	struct rpost_context *context;
	void __user *ubuf;
	u32 size;
	union {
#define RPOST_COMMAND(nr, name, type, first, size, flags) struct rpost_##type name;
#include "core/commands.h"
	} cmd;
};

/*
 * One command; core/commands.h has all, and says which is one that @creates.  @handler
 * validates it, carries it out, and responds.
 */
struct rpost_cmd_row {
	u32 ksize;
	u32 min_size;
	u32 flags;
	int (*handler)(struct rpost_ucmd *ucmd);
	bool creates;
};

#define RPOST_ROW(name, first, size, known, makes)			\
{									\
	.ksize = (size),						\
	.min_size = (first),						\
	.flags = (known),						\
	.handler = rpost_##name##_ioctl,				\
	.creates = (makes),						\
}

#define RPOST_COMMAND(nr, name, type, first, size, flags) \
	int rpost_##name##_ioctl(struct rpost_ucmd *ucmd);
#define RPOST_POST_COMMAND(...)
#include "core/commands.h"

int rpost_copy_words(void *to, const void __user *from, u32 bytes);
int rpost_ucmd_run(struct rpost_file *file, struct file *filp,
		   const struct rpost_cmd_row *row, unsigned long arg);
int rpost_respond(struct rpost_ucmd *ucmd);
struct rpost_file *rpost_file_create(void);
void rpost_file_close(struct rpost_file *file);
void rpost_file_put(struct rpost_file *file);
void rpost_file_retry_end(struct rpost_file *file);

/* ----------------------------------------------------------- tenant.c */

void rpost_tenant_open(struct rpost_tenant *tenant);
void rpost_tenant_close(struct rpost_tenant *tenant);
void rpost_tenants_exit(void);

/* ----------------------------------------------------------- object.c */

/**
 * struct rpost_obj - an object that the program names by a handle
 * @file: the open file that it belongs to
 * @type: enum rpost_obj_type
 * @handle: its handle in @file
 * @slot: the slot of @handle, or NULL: the module keeps the object for itself
 * @dev: the device that it is on, which @context holds; or NULL
 * @refs: one while it has a handle and is not claimed, and one for each command that
 *        uses it.  A command may sleep with it, but not wait for the program's memory.
 * @users: number of objects that depend on it; under @file->handles.lock.
 *         While there are any it cannot be destroyed (EBUSY).
 * @unused: completed by the last put; the destroyer waits for it
 * @hidden: the program has not been answered yet, and only removal finds the
 *          object
 * @ending: the program or the last close destroys it, so nobody will read its
 *          completions
 * @bytes: bytes that the file's user is charged for its memory in the kernel.
 *         Its queues on the device are charged separately, since they go first.
 * @cgroup: the rdma cgroup that is charged for it, or NULL
 * @context: the context of @file on @dev, with a reference; NULL without @dev
 * @rcu: lookups run under RCU
 *
 * Creation: reserve a handle, which no lookup finds; build the object; hide it,
 * so that only removal finds it; answer the program with no lock held, since
 * the program's memory may never arrive; publish it, which cannot fail.
 * Destruction: claim it, so that lookups no longer find it and no command uses
 * it; shut it down; free the handle and the memory.
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
	bool hidden;
	bool ending;
	unsigned long bytes;
	struct rdma_cgroup *cgroup;
	struct rpost_context *context;
	struct rcu_head rcu;
};

/**
 * struct rpost_type - what differs between objects of one type and those of another
 * @name: in fdinfo and debugfs
 * @bytes: estimated memory of an object in the module, the RDMA core and the driver,
 *         without its queues
 * @events: asynchronous events may name it
 * @shutdown: release all but memory.  It does nothing when it is called again,
 *            unless it has returned an error.
 * @free: free the memory, after shutdown
 * @stop: begin what shutdown will wait for; or NULL
 * @keep: keep an object that the program destroys, which is claimed; or NULL.  Return
 *        false if it must be destroyed.
 * @recheck: end what the object may do no longer, since a GID of the device has gone or
 *           has changed its namespace; or NULL
 * @abort: destroy an object that the program could not be told of, and leave what the
 *         device refuses to destroy to one that it depends on; or NULL: then the last
 *         close destroys it, if the program does not
 *
 * The callers of @shutdown, @keep, @recheck and @abort hold the rwsem of the object's
 * context, if it has one.
 */
struct rpost_type {
	const char *name;
	unsigned long bytes;
	bool events;
	int (*shutdown)(struct rpost_obj *obj);
	void (*free)(struct rpost_obj *obj);
	void (*stop)(struct rpost_obj *obj);
	bool (*keep)(struct rpost_obj *obj);
	void (*recheck)(struct rpost_obj *obj);
	void (*abort)(struct rpost_obj *obj);
};

/* These stand in face/main.c. */
extern const struct rpost_type rpost_types[RPOST_NUM_OBJ_TYPES];
extern const enum rpost_obj_type rpost_teardown_order[RPOST_NUM_OBJ_TYPES - 1];

int rpost_obj_reserve(struct rpost_file *file, struct rpost_obj *obj,
		      enum rpost_obj_type type, struct rpost_device *dev, gfp_t gfp);
int rpost_obj_take_bytes(struct rpost_obj *obj, unsigned long bytes);
void rpost_obj_give_bytes(struct rpost_obj *obj, unsigned long bytes);
int rpost_obj_reserve_inner(struct rpost_file *file, struct rpost_obj *obj,
			    enum rpost_obj_type type, struct rpost_device *dev);
void rpost_obj_unreserve(struct rpost_obj *obj);
void rpost_obj_give_handle(struct rpost_obj *obj);
int rpost_obj_take_handle(struct rpost_obj *obj, gfp_t gfp);
void rpost_obj_publish(struct rpost_obj *obj);
int rpost_obj_answer(struct rpost_ucmd *ucmd, struct rpost_obj *obj);
struct rpost_context *rpost_obj_context(struct rpost_file *file, u32 handle,
					enum rpost_obj_type type);
struct rpost_obj *rpost_obj_get(struct rpost_file *file, u32 handle, enum rpost_obj_type type);
struct rpost_obj *rpost_obj_next(struct rpost_file *file, u32 *index, enum rpost_obj_type type);
void rpost_obj_put(struct rpost_obj *obj);
struct rpost_obj *rpost_obj_use(struct rpost_file *file, u32 handle, enum rpost_obj_type type);
void rpost_obj_unuse(struct rpost_obj *obj);
struct rpost_obj *rpost_enter_get(struct rpost_ucmd *ucmd, u32 handle, enum rpost_obj_type type);
struct rpost_obj *rpost_enter_use(struct rpost_ucmd *ucmd, u32 handle, enum rpost_obj_type type);

/* The struct that begins with an object.  NULL and an ERR_PTR() stay what they are. */
#define rpost_obj_as(name, ptr)	container_of(ptr, struct rpost_##name, obj)

/* rpost_name_get() is rpost_obj_get() for one type. */
#define RPOST_OBJ_GETTER(name, type)					\
static_assert(!offsetof(struct rpost_##name, obj));			\
static inline struct rpost_##name *					\
rpost_##name##_get(struct rpost_file *file, u32 handle)			\
{									\
	return rpost_obj_as(name, rpost_obj_get(file, handle, type));	\
}

/* rpost_name_enter_get() is rpost_enter_get() for one type. */
#define RPOST_OBJ_ENTER_GETTER(name, type)				\
static_assert(!offsetof(struct rpost_##name, obj));			\
static inline struct rpost_##name *					\
rpost_##name##_enter_get(struct rpost_ucmd *ucmd, u32 handle)		\
{									\
	return rpost_obj_as(name, rpost_enter_get(ucmd, handle, type));	\
}

bool rpost_file_destroy_all(struct rpost_file *file);
void rpost_file_recheck(struct rpost_file *file, struct rpost_device *dev);
void rpost_file_shutdown_device(struct rpost_file *file, struct rpost_device *dev);

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

#endif /* RPOST_CORE_H */
