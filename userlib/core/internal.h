/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Declarations that the files of librdma_post share; not installed. */
#ifndef RPOST_INTERNAL_H
#define RPOST_INTERNAL_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include <rdma/rdma_post_abi.h>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define RPOST_HAVE_SINGLE_THREADED 1
#endif

#define RPOST_API __attribute__((visibility("default")))

#define rpost_container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Members that structs of the ABI, of verbs and of uverbs have under the same names.
 * LIST(RPOST_COPY) copies them.
 */
#define RPOST_COPY(member)	to->member = from->member;
#define RPOST_AH_MEMBERS(X) \
	X(dlid) X(sl) X(src_path_bits) X(static_rate) X(port_num)
#define RPOST_PATH_MEMBERS(X) \
	X(dlid) X(slid) X(raw_traffic) X(flow_label) X(hop_limit) X(traffic_class) \
	X(reversible) X(numb_path) X(pkey) X(sl) X(mtu_selector) X(mtu) X(rate_selector) \
	X(rate) X(packet_life_time_selector) X(packet_life_time) X(preference)
#define RPOST_QP_MEMBERS(X) \
	X(qp_state) X(cur_qp_state) X(path_mtu) X(path_mig_state) X(qkey) X(rq_psn) X(sq_psn) \
	X(dest_qp_num) X(pkey_index) X(alt_pkey_index) X(en_sqd_async_notify) X(sq_draining) \
	X(max_rd_atomic) X(max_dest_rd_atomic) X(min_rnr_timer) X(port_num) X(timeout) \
	X(retry_cnt) X(rnr_retry) X(alt_port_num) X(alt_timeout)

/* ---------------------------------------------------------- the file */

/* An entry of a struct rpost_table, embedded in the object. */
struct rpost_node {
	uint64_t key;
	struct rpost_node *next;
};

/*
 * True if the process has one thread.  Then locks can be skipped: no second thread can
 * appear during the call.  False if the C library does not know.
 */
static inline bool rpost_is_alone(void)
{
#if RPOST_HAVE_SINGLE_THREADED
	return __libc_single_threaded;
#else
	return false;
#endif
}

/* Finds the object that an event of the kernel names by number. */
struct rpost_table {
	pthread_mutex_t lock;
	struct rpost_node *bucket[256];
};

/*
 * One open of /dev/rdma_post, which owns the kernel's objects.  A process has
 * one; a child of fork() gets another with the first channel or device that it
 * opens, while objects that it inherited go on using the parent's file.  Only
 * exit closes a file, since its objects may be in use until then.
 */
struct rpost_file {
	int fd;
	uint32_t max_wr_bytes;
	bool any_memory;		/* RDMA_POST_ANY_MEMORY=1 */
	/*
	 * Numbers of objects begin here, at random in an importer: events of all
	 * processes that have the file go to each of them.
	 */
	uint64_t first_number;
	struct rpost_table ids;		/* by handle */
	struct rpost_table objects;	/* struct rpost_async, by number */
	/*
	 * Held for writing to create a queue pair, and for reading to destroy
	 * one, until its completions have left the rings: a new queue pair must
	 * not get its number before.
	 */
	pthread_rwlock_t qp_nums;
	pthread_mutex_t lock;		/* protects contexts */
	struct rpost_ctx *contexts;	/* of connection ids */
};

/* A mapping of one ring, or of a page that several rings share. */
struct rpost_map {
	const struct rpost_file *file;
	uint64_t page;			/* shared_page of the rings, or 0 */
	size_t size;
	char *addr;
	unsigned int users;		/* rings */
	unsigned int forks;		/* rpost_forks; children do not have it */
	struct rpost_map *next;
};

/*
 * Returns the mapping that @page has already, and frees @spare; or @spare, mapped
 * as @offset and @size of CREATE_CQ or RESIZE_CQ say; or NULL with errno.  @page is
 * 0 for a ring that shares none.  @spare is zero.
 */
struct rpost_map *rpost_map_get(struct rpost_map *spare, const struct rpost_file *file,
				uint64_t page, uint64_t offset, size_t size);
/* @map may be NULL. */
void rpost_map_put(struct rpost_map *map);
void rpost_maps_before_fork(void);
void rpost_maps_after_fork(void);

struct rpost_file *rpost_file_get(void);
/*
 * rpost_file_get() for connections: NULL with ENODEV until a call has seen a device, of
 * this process, or of its parent before fork().
 */
struct rpost_file *rpost_cm_file_get(void);
/* Return a file over the descriptor of another process, or NULL with errno. */
struct rpost_file *rpost_file_import(int fd);
/* Frees an imported file, whose descriptor stays open. */
void rpost_file_forget(struct rpost_file *file);

/* How many forks lie between this process and the first. */
extern unsigned int rpost_forks;

void rpost_table_init(struct rpost_table *table);
void rpost_table_add(struct rpost_table *table, struct rpost_node *node);
void rpost_table_del(struct rpost_table *table, struct rpost_node *node);
/* The caller holds @table->lock. */
struct rpost_node *rpost_table_find(struct rpost_table *table, uint64_t key);

/*
 * With RDMA_POST_DEBUG=1, say on standard error what has failed, why, and what to do.  Sets
 * errno to @err.
 */
void rpost_debug_failed(const char *what, int err);
/* Calls rpost_debug_failed() for a command, unless its failure is expected. */
void rpost_debug_command(unsigned long cmd, const void *arg, int err);

/* Is it set to @value?  Never for a program with other rights than its caller. */
bool rpost_env_is(const char *name, const char *value);
/* Warns once of a limit of locked memory that is too low for most programs. */
void rpost_warn_memlock(void);

/* Runs a command.  Returns what it returns, or a negative errno value. */
int rpost_call(int fd, unsigned long cmd, void *arg);
int rpost_do_ioctl(int fd, unsigned long cmd, void *arg);
/* Runs a command, each of whose structs begins with its size.  Returns 0 or an errno value. */
#define rpost_ioctl(fd, cmd, arg) \
	((arg)->size = sizeof(*(arg)), rpost_do_ioctl(fd, cmd, arg))

int rpost_destroy_handle(int fd, uint32_t type, uint32_t handle);

/* Sets errno to @err and returns -1; returns 0 if @err is 0. */
static inline int rpost_fail(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

static inline void *rpost_null(int err)
{
	errno = err;
	return NULL;
}

/* ----------------------------------------------- devices and contexts */

/* A device; kept until exit, since programs keep pointers to it. */
struct rpost_dev {
	struct ibv_device ibv;
	/* NULL.  Providers such as libmlx5 compare it to find their devices. */
	const void *provider;
	uint32_t num;
	int index;			/* the kernel's, or -1 */
	__be64 guid;
	struct rpost_dev *next;
};

/*
 * A kernel object that was made in a context.  ibv_close_device() ends it if
 * the program has not destroyed it.
 */
struct rpost_made {
	struct rpost_made *prev;
	struct rpost_made *next;
	uint32_t type;			/* enum rpost_obj_type */
	uint32_t *handle;		/* in the program's struct */
};

/* When the library registers on demand although the program does not ask for it. */
enum rpost_odp_use {
	RPOST_ODP_NEVER,
	RPOST_ODP_INSTEAD,		/* if the memory may not be locked */
	RPOST_ODP_ALWAYS,		/* if the device can */
};

struct rpost_ctx {
	struct rpost_file *file;
	struct rpost_dev *dev;
	struct rpost_ctx *next;
	bool has_odp;
	enum rpost_odp_use odp_use;
	uint32_t mr_flags;		/* RPOST_MR_* of all regions */
	unsigned int forks;		/* rpost_forks, when it was opened */
	bool imported;			/* @file is its own */
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;
	pthread_mutex_t pd_lock;	/* protects default_pd and its users */
	struct ibv_pd *default_pd;
	unsigned int default_pd_users;
	pthread_mutex_t ah_lock;	/* protects dead_ahs */
	struct rpost_ah *dead_ahs;
	pthread_mutex_t made_lock;	/* protects made */
	struct rpost_made made;		/* list head */
	struct verbs_context verbs;	/* ends in struct ibv_context */
};

static inline struct rpost_ctx *rpost_ctx(struct ibv_context *context)
{
	return rpost_container_of(context, struct rpost_ctx, verbs.context);
}

enum rpost_odp_use rpost_odp_use(const struct rpost_query_device *query);
int rpost_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		    uint32_t flags, struct ibv_sge *sges, uint32_t num_sge);

void rpost_made_add(struct ibv_context *context, struct rpost_made *made,
		    uint32_t type, uint32_t *handle);
void rpost_made_del(struct ibv_context *context, struct rpost_made *made);

static inline uint8_t rpost_at_most_u8(uint32_t value)
{
	return value < UINT8_MAX ? value : UINT8_MAX;
}

/* Asks about a handle of the context's device.  Returns 0 or an errno value. */
int rpost_query_object(struct ibv_context *context, uint32_t type,
		       uint32_t handle, struct rpost_query_object *cmd);
int rpost_query_device(int fd, uint32_t num, struct rpost_query_device *cmd);
int rpost_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
int rpost_query_port(struct ibv_context *context, uint8_t port_num,
		     struct ibv_port_attr *port_attr, size_t port_attr_len);

/* Returns the context of connection ids on device @num.  NULL with errno. */
struct rpost_ctx *rpost_cm_ctx(struct rpost_file *file, uint32_t num);

struct ibv_pd *rpost_default_pd_get(struct rpost_ctx *ctx);
void rpost_default_pd_put(struct rpost_ctx *ctx);

/* ---------------------------------------- protection domains and memory */

struct ibv_td *rpost_alloc_td(struct ibv_context *context,
			      struct ibv_td_init_attr *attr);
int rpost_dealloc_td(struct ibv_td *td);
struct ibv_pd *
rpost_alloc_parent_domain(struct ibv_context *context,
			  struct ibv_parent_domain_init_attr *attr);

/* ------------------------------------------------ asynchronous events */

/*
 * Part of each queue that the kernel's events may concern.  They name it by a
 * number instead of its address: a thread that has fetched an event, but not
 * yet looked it up, may be too late and must not reach freed memory.
 */
struct rpost_async {
	struct rpost_node node;		/* in file->objects; key is the number */
	struct ibv_context *context;
	uint32_t type;			/* enum rpost_obj_type */
	uint32_t reported;		/* events, under file->objects.lock */
};

int rpost_async_open(struct rpost_file *file, uint32_t device);
/* Gives the object a number, for user_data of the command that creates it. */
void rpost_async_init(struct rpost_async *async, struct ibv_context *context,
		      uint32_t type);
/* The program gets the object's events from add() until del(). */
void rpost_async_add(struct rpost_async *async);
void rpost_async_del(struct rpost_async *async);
/*
 * Waits until the program has acknowledged the events that it got.  The caller
 * has called rpost_async_del().
 */
void rpost_async_wait(const struct rpost_async *async, pthread_mutex_t *mutex,
		      pthread_cond_t *cond, const uint32_t *completed);

/* ---------------------------------------------------------- completions */

struct rpost_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	struct rpost_made made;
	struct rpost_async async;	/* also for completion events */
	uint32_t comp_events_reported;	/* under file->objects.lock */
	/*
	 * A thread that consumes entries holds poll_lock; for an extended queue
	 * from start_poll() to end_poll().  A thread that requests an event
	 * holds arm_lock.  ibv_resize_cq() holds both; poll_lock comes first.
	 */
	pthread_mutex_t poll_lock;
	pthread_mutex_t arm_lock;
	bool single_threaded;		/* polled without the lock */
	uint32_t arm;			/* the last request, under arm_lock */
	uint32_t head;			/* under poll_lock */
	struct rpost_wc current;	/* if extended; under poll_lock */
	uint32_t mask;
	struct rpost_ring *ring;
	char *entries;			/* of RPOST_WC_SMALL_SIZE bytes each */
	struct rpost_map *map;		/* or NULL */
	uint32_t entries_offset;	/* from @ring */
	atomic_int lost;		/* errno if the ring has gone, or 0 */
};

static inline struct rpost_cq *rpost_cq(struct ibv_cq *cq)
{
	return rpost_container_of(cq, struct rpost_cq, ibv);
}

static inline struct rpost_wc *rpost_cq_entry(const struct rpost_cq *cq,
					      uint32_t pos)
{
	return (void *)(cq->entries + (size_t)(pos & cq->mask) * RPOST_WC_SMALL_SIZE);
}

/* Call this before reading @tail, see comp.c. */
static inline uint32_t rpost_ring_flags(const struct rpost_cq *cq)
{
	return __atomic_load_n(&cq->ring->flags, __ATOMIC_ACQUIRE);
}

static inline void rpost_cq_lock(struct rpost_cq *cq)
{
	if (!cq->single_threaded)
		pthread_mutex_lock(&cq->poll_lock);
}

static inline void rpost_cq_unlock(struct rpost_cq *cq)
{
	if (!cq->single_threaded)
		pthread_mutex_unlock(&cq->poll_lock);
}

/* Creates an ordinary or extended queue.  NULL with errno. */
struct rpost_cq *rpost_cq_create(struct ibv_context *context, uint32_t cqe,
				 void *cq_context,
				 struct ibv_comp_channel *channel,
				 uint32_t comp_vector);
/* For ibv_close_device(): destroys the kernel's object; the struct stays. */
void rpost_cq_destroy_handle(struct rpost_cq *cq);
struct ibv_cq_ex *rpost_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr);
int rpost_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int rpost_cq_fetch(struct rpost_cq *cq);
int rpost_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int rpost_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* Removes a queue pair's completions from the ring. */
void rpost_cq_discard(struct ibv_cq *cq, uint32_t qp_num);

/* ------------------------------------------------ shared receive queues */

struct rpost_srq {
	struct ibv_srq ibv;
	struct rpost_made made;
	struct rpost_async async;
	uint32_t max_sge;
};

static inline struct rpost_srq *rpost_srq(struct ibv_srq *srq)
{
	return rpost_container_of(srq, struct rpost_srq, ibv);
}

int rpost_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr);

/* ---------------------------------------------------------- queue pairs */

/* Queues and channels that rdma_create_qp() made, since the id had none. */
struct rpost_default_cqs {
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_comp_channel *send_channel;
	struct ibv_comp_channel *recv_channel;
};

/* Packed work requests, after a struct rpost_post. */
struct rpost_block {
	char *buf;
	size_t room;
	size_t used;
};

/* Work requests that ibv_wr_*() build, see ibv_wr_post(3). */
struct rpost_wr_list {
	pthread_mutex_t lock;		/* from start to complete or abort */
	struct rpost_block block;
	size_t last;			/* where the last work request begins */
	int err;			/* the first error */
};

struct rpost_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
		/* Of later versions' members (wr_flush) programs see that they are NULL. */
		char ex_room[sizeof(struct ibv_qp_ex) + 4 * sizeof(void *)];
	};
	bool extended;			/* ex and list are valid */
	struct rpost_wr_list list;
	struct rpost_made made;
	struct rpost_async async;
	struct rpost_group *groups;	/* of multicast, under ibv.mutex */
	struct rpost_cntr_use *cntr_uses;	/* under ibv.mutex */
	struct rpost_id *id;
	bool of_cm;			/* cma owns it, and knows it as its id's */
	bool orphan;			/* id and kernel object are gone */
	uint32_t pd;			/* handle, since ibv.pd may be freed */
	struct ibv_qp_cap cap;
	bool sig_all;
	bool any_memory;		/* RPOST_QP_ANY_MEMORY */
};

static inline struct rpost_qp *rpost_qp(struct ibv_qp *qp)
{
	return rpost_container_of(qp, struct rpost_qp, ibv);
}

int rpost_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr);
int rpost_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);

/*
 * Makes a queue pair of any type; @id is the handle of its connection id, or 0.
 * Sets @attr->cap to the actual sizes.  Returns 0 or an errno value.
 */
int rpost_qp_create(struct ibv_context *context, uint32_t id,
		    struct ibv_qp_init_attr_ex *attr, struct rpost_qp **qp);
struct ibv_qp *rpost_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr);
int rpost_modify_qp_rate_limit(struct ibv_qp *qp,
			       struct ibv_qp_rate_limit_attr *attr);
/* Destroys the kernel's object and drops its unpolled completions. */
int rpost_qp_destroy_handle(struct rpost_qp *qp);
void rpost_qp_attr_unpack(struct ibv_qp_attr *to, const struct rpost_qp_attr *from);
void rpost_ah_attr_pack(struct rpost_ah_attr *to, const struct ibv_ah_attr *from);
void rpost_ah_attr_unpack(struct ibv_ah_attr *to, const struct rpost_ah_attr *from);
/* For ibv_wr_*(); @ops has bits of enum ibv_qp_create_send_ops_flags. */
int rpost_qp_ex_check(enum ibv_qp_type type, uint64_t ops);
void rpost_qp_ex_init(struct rpost_qp *qp);
void rpost_qp_ex_fini(struct rpost_qp *qp);

/*
 * Posts work requests, which end at @bytes of @block; it begins with room for a struct
 * rpost_post.  Returns how many were posted, or a negative errno value if none was.
 */
int rpost_post_sends(struct rpost_qp *qp, char *block, size_t bytes);

struct rpost_ah {
	struct ibv_ah ibv;
	struct rpost_made made;
	uint32_t pd;			/* handle, since ibv.pd may be freed */
	struct rpost_ah *next;		/* in ctx->dead_ahs */
};

static inline struct rpost_ah *rpost_ah(struct ibv_ah *ah)
{
	return rpost_container_of(ah, struct rpost_ah, ibv);
}

/* Tries again to destroy the address handles that sends were using. */
void rpost_ah_reap(struct rpost_ctx *ctx);
/* Frees the address handles of a context that is being closed. */
void rpost_ah_forget(struct rpost_ctx *ctx);
bool rpost_qp_has_groups(struct rpost_qp *qp);
void rpost_qp_forget_groups(struct rpost_qp *qp);
/* Completion counters get what a queue pair, which will be destroyed, has counted. */
void rpost_qp_update_cntrs(struct rpost_qp *qp);
void rpost_qp_detach_cntrs(struct rpost_qp *qp);

/* Separates a queue pair, which is being destroyed, from its id. */
void rpost_qp_leave_id(struct rpost_qp *qp);

/*
 * Separates an id, which is being destroyed, from its queue pair.
 * ibv_destroy_qp() frees the struct later.  Returns 0 or an errno value.
 */
int rpost_id_leave_qp(struct rpost_id *priv);

/* ------------------------------------------------------- connection ids */

struct rpost_channel {
	struct rdma_event_channel channel;
	struct rpost_file *file;
};

static inline struct rpost_channel *
rpost_channel(struct rdma_event_channel *channel)
{
	return rpost_container_of(channel, struct rpost_channel, channel);
}

struct rpost_id {
	struct rdma_cm_id id;
	struct rpost_file *file;
	struct rpost_node node;		/* in file->ids; key is the handle */
	struct rpost_ctx *ctx;		/* the id counts in default_pd_users */
	struct rpost_qp *qp;
	struct rpost_default_cqs default_cqs;
	bool sync;
	bool ended;			/* connection has ended or failed */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	struct ibv_qp_init_attr *qp_init_attr;	/* of a listening endpoint */
	void *connect;			/* ai_connect of struct rdma_addrinfo */
	size_t connect_len;
	struct rdma_addrinfo *addrinfo;	/* for rdma_query_addrinfo(); under lock */
	bool resolving;			/* until the program has it; under lock */
	struct rpost_ece local_ece;	/* for the next connect or accept */
	struct rpost_ece remote_ece;	/* of the last request or response */
	pthread_mutex_t lock;
	pthread_cond_t acked;
	unsigned int unacked;		/* events; under lock */
	struct rpost_mc *groups;	/* joined or joining; under lock */
};

static inline struct rpost_id *rpost_id(struct rdma_cm_id *id)
{
	return rpost_container_of(id, struct rpost_id, id);
}

static inline uint32_t rpost_id_handle(const struct rpost_id *id)
{
	return (uint32_t)id->node.key;
}

/*
 * Returns the id's queue pair if the connection manager does not own it, or
 * NULL.  The program may have put it into the id.
 */
static inline struct ibv_qp *rpost_id_user_qp(const struct rpost_id *id)
{
	bool of_cm = id->qp && id->qp->of_cm && id->id.qp == &id->qp->ibv;

	return of_cm ? NULL : id->id.qp;
}

struct rpost_event {
	struct rdma_cm_event event;
	struct rpost_id *owner;		/* counts it in unacked; or NULL */
	struct rpost_mc *mc;		/* counts it in unacked; or NULL */
	uint8_t private_data[RPOST_MAX_PRIVATE_DATA];
};

int rpost_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		    void *context, enum rdma_port_space ps,
		    enum ibv_qp_type qp_type);
struct rpost_id *rpost_id_alloc(struct rdma_event_channel *channel,
				void *context, enum rdma_port_space ps,
				enum ibv_qp_type qp_type);
void rpost_id_add(struct rpost_id *priv, uint32_t handle);
void rpost_id_free(struct rpost_id *priv);
/* Updates the id's addresses from the kernel.  Returns 0 or an errno value. */
int rpost_id_query(struct rpost_id *priv, bool paths);
/* Waits until @unacked, a count of events of the id or of one of its joins, is 0. */
void rpost_id_wait_acks(struct rpost_id *priv, const unsigned int *unacked);
/* Acknowledges the event that a synchronous id refers to. */
void rpost_id_drop_event(struct rpost_id *priv);
/* Waits for the end of an operation of a synchronous id; on others returns 0 at once. */
int rpost_id_complete(struct rpost_id *priv);
/* Appends an event, RPOST_EVENT_*, to the id's channel.  Returns an errno value. */
int rpost_id_write_event(struct rpost_id *priv, uint32_t event, int status,
			 uint64_t arg);
void rpost_event_disown(struct rpost_event *evt);
int rpost_event_errno(const struct rdma_cm_event *event);
/* Returns the bytes of an address, 0 for an unknown family. */
socklen_t rpost_addr_len(const struct sockaddr *addr);

/* Brings a new queue pair to INIT, or to RTS if it is for datagrams. */
int rpost_id_init_qp(struct rpost_id *priv, struct ibv_qp *qp);
/* Bring a connection's rpost_id_user_qp() to RTS, or to the error state. */
int rpost_id_ready_qp(struct rpost_id *priv);
void rpost_id_fail_qp(struct rpost_id *priv);
/* Confirms a connection.  Returns 0 or an errno value. */
int rpost_id_establish(struct rpost_id *priv);

/*
 * Looks up the join that an event is about, counts the event, and attaches the
 * queue pair.  Returns false if the program has left the group.
 */
bool rpost_mc_event(struct rpost_event *evt, uint64_t number);
/* The caller holds @priv->lock. */
void rpost_mc_acked(struct rpost_id *priv, struct rpost_mc *mc);
void rpost_mc_free_all(struct rpost_id *priv);

#endif /* RPOST_INTERNAL_H */
