/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the files of librdma_post share.  Programs never see this.
 */
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

#define RPOST_API __attribute__((visibility("default")))

#define rpost_container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---------------------------------------------------------- the file */

/* An entry of a struct rpost_table, embedded in what it stands for. */
struct rpost_node {
	uint64_t key;
	struct rpost_node *next;
};

/* Finds objects by the number by which the kernel's events name them. */
struct rpost_table {
	pthread_mutex_t lock;
	struct rpost_node *bucket[256];
};

/*
 * One open of /dev/rdma_post.  Whatever lives in the kernel belongs to one
 * file.  A process has one; a child of fork() gets its own with the first
 * channel or device that it opens, while what it inherited goes on naming the
 * parent's file.  Files are never closed but by exit: their objects may be in
 * use to the end.
 */
struct rpost_file {
	int fd;
	uint32_t max_wr_bytes;
	uint64_t features;		/* RPOST_FEATURE_* of the module */
	bool send_rings;		/* for queue pairs that do not ask */
	unsigned int spin_ns;		/* before a wait for completions sleeps */
	struct rpost_table ids;		/* by handle */
	struct rpost_table objects;	/* struct rpost_async, by number */
	/*
	 * Written to make queue pairs, read to destroy them: a number is not
	 * used again before its completions have left the rings.
	 */
	pthread_rwlock_t qp_nums;
	pthread_mutex_t lock;		/* protects contexts */
	struct rpost_ctx *contexts;	/* those of connection ids */
};

struct rpost_file *rpost_file_get(void);

/* How many forks lie between this process and the first: see notify.c. */
extern unsigned int rpost_forks;

void rpost_table_init(struct rpost_table *table);
void rpost_table_add(struct rpost_table *table, struct rpost_node *node);
void rpost_table_del(struct rpost_table *table, struct rpost_node *node);
/* The caller holds @table->lock. */
struct rpost_node *rpost_table_find(struct rpost_table *table, uint64_t key);

/* Returns 0 or an errno value. */
int rpost_ioctl(int fd, unsigned long cmd, void *arg);
int rpost_destroy_handle(int fd, uint32_t type, uint32_t handle);

/* Sets errno and returns -1; or returns 0 for 0. */
static inline int rpost_fail(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

/* Sets errno and returns NULL. */
static inline void *rpost_null(int err)
{
	errno = err;
	return NULL;
}

/* ----------------------------------------------- devices and contexts */

/* A device by its number; kept until exit, since programs keep pointers. */
struct rpost_dev {
	struct ibv_device ibv;
	/* By what stands here libmlx5 and others tell which devices are theirs. */
	const void *provider;		/* NULL */
	uint32_t num;
	__be64 guid;
	struct rpost_dev *next;
};

/*
 * What a context has made and the program has not destroyed, in the kernel's
 * eyes: ibv_close_device() ends it.
 */
struct rpost_made {
	struct rpost_made *prev;
	struct rpost_made *next;
	uint32_t type;			/* enum rpost_obj_type */
	uint32_t *handle;		/* of the program's struct */
};

struct rpost_ctx {
	struct rpost_file *file;
	struct rpost_dev *dev;
	struct rpost_ctx *next;
	uint8_t max_responder_resources;
	uint8_t max_initiator_depth;
	pthread_mutex_t pd_lock;	/* protects the two below */
	struct ibv_pd *default_pd;
	unsigned int default_pd_users;
	pthread_mutex_t ah_lock;	/* protects dead_ahs */
	struct rpost_ah *dead_ahs;
	pthread_mutex_t made_lock;	/* protects made */
	struct rpost_made made;		/* head of a ring */
	struct verbs_context verbs;	/* ends in struct ibv_context */
};

static inline struct rpost_ctx *rpost_ctx(struct ibv_context *context)
{
	return rpost_container_of(context, struct rpost_ctx, verbs.context);
}

void rpost_made_add(struct ibv_context *context, struct rpost_made *made,
		    uint32_t type, uint32_t *handle);
void rpost_made_del(struct ibv_context *context, struct rpost_made *made);

static inline uint8_t rpost_at_most_u8(uint32_t value)
{
	return value < UINT8_MAX ? value : UINT8_MAX;
}

int rpost_query_device(struct rpost_file *file, uint32_t num,
		       struct rpost_query_device *cmd);
int rpost_query_device_ex(struct ibv_context *context,
			  const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *attr, size_t attr_size);
int rpost_query_port(struct ibv_context *context, uint8_t port_num,
		     struct ibv_port_attr *port_attr, size_t port_attr_len);

/* The context that connection ids on device @num share; NULL and errno. */
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
 * What a queue has that the kernel's events may concern.  They name it by a
 * number and not by its address, so that an event that another thread has
 * fetched but not looked up cannot lead to freed memory.
 */
struct rpost_async {
	struct rpost_node node;		/* in file->objects; key is the number */
	struct ibv_context *context;
	uint32_t type;			/* enum rpost_obj_type */
	uint32_t reported;		/* events, under file->objects.lock */
};

int rpost_async_open(struct rpost_file *file, uint32_t device);
/* Gives the object a number, for the user_data of the call that makes it. */
void rpost_async_init(struct rpost_async *async, struct ibv_context *context,
		      uint32_t type);
/* From here on the program gets the object's events, and from there no more. */
void rpost_async_add(struct rpost_async *async);
void rpost_async_del(struct rpost_async *async);
/* After rpost_async_del(): until what the program got is acknowledged. */
void rpost_async_wait(const struct rpost_async *async, pthread_mutex_t *mutex,
		      pthread_cond_t *cond, const uint32_t *completed);

/* ---------------------------------------------------------- completions */

struct rpost_comp_channel {
	struct ibv_comp_channel ibv;
	unsigned int forks;		/* rpost_forks, when it was made */
	pthread_mutex_t lock;		/* protects all that follows */
	struct rpost_cq *cqs;		/* those that use it */
	bool nonblock;			/* so the descriptor was, at a look */
	unsigned int unlooked;		/* spins until the next */
};

static inline struct rpost_comp_channel *
rpost_comp_channel(struct ibv_comp_channel *channel)
{
	return rpost_container_of(channel, struct rpost_comp_channel, ibv);
}

/* What the program waits for: see notify.c.  Under the queue's arm_lock. */
struct rpost_wait {
	bool armed;		/* by @arm, not known to have been answered */
	bool called;		/* by a call; no event has come since */
	uint32_t tail;		/* when @arm was written */
	unsigned int due;	/* events in the channel, answers to @arm */
	bool spinning;		/* a thread does, and has the queue in use */
	atomic_uint kept_out;	/* none may begin to */
	pthread_cond_t spun;
	unsigned int backoff;	/* waits without it that the next failure costs */
	unsigned int skip;	/* waits without it that are left */
};

struct rpost_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	};
	unsigned int forks;		/* rpost_forks, when it was made */
	struct rpost_cq *next;		/* on its channel, under the lock there */
	struct rpost_made made;
	struct rpost_async async;	/* completion events name it, too */
	uint32_t comp_events_reported;	/* under file->objects.lock */
	/*
	 * One consumer of the ring at a time; an extended queue's has the lock
	 * from start_poll() to end_poll(), where it may arm the queue.  A new
	 * ring comes under both locks, taken in this order.
	 */
	pthread_mutex_t poll_lock;
	pthread_mutex_t arm_lock;
	bool single_threaded;		/* polled without the lock */
	uint32_t arm;			/* last one asked by, under arm_lock */
	struct rpost_wait wait;
	uint32_t head;			/* under poll_lock */
	struct rpost_wc current;	/* of start_poll(), under poll_lock */
	uint32_t mask;
	uint32_t ring_offset;		/* in the mapping, maybe behind others' */
	struct rpost_ring *ring;
	char *entries;			/* struct rpost_wc, as far as that goes */
	size_t entry_size;
	size_t map_size;
	uint32_t entries_offset;	/* from @ring */
	atomic_int lost;		/* errno: resized, but not mapped */
};

static inline struct rpost_cq *rpost_cq(struct ibv_cq *cq)
{
	return rpost_container_of(cq, struct rpost_cq, ibv);
}

static inline struct rpost_wc *rpost_cq_entry(const struct rpost_cq *cq,
					      uint32_t pos)
{
	return (void *)(cq->entries + (size_t)(pos & cq->mask) * cq->entry_size);
}

/* Before the tail is looked at: see comp.c. */
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

/* Any kind of queue.  NULL and errno. */
struct rpost_cq *rpost_cq_create(struct ibv_context *context, uint32_t cqe,
				 void *cq_context,
				 struct ibv_comp_channel *channel,
				 uint32_t comp_vector);
/* The context goes away, and has ended the kernel's object. */
void rpost_cq_forget(struct rpost_cq *cq);
struct ibv_cq_ex *rpost_create_cq_ex(struct ibv_context *context,
				     struct ibv_cq_init_attr_ex *attr);
int rpost_cq_fetch(struct rpost_cq *cq);
int rpost_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int rpost_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/*
 * Waits for an event without sleeping.  The queue, whose event is counted, or NULL:
 * then the channel is to be read.
 */
struct rpost_cq *rpost_spin_for_event(struct rpost_comp_channel *channel);
/* The channel has been read: an event of the queue's; that it does not block. */
void rpost_event_fetched(struct rpost_cq *cq);
void rpost_channel_nonblock(struct rpost_comp_channel *channel);
/* In between no thread uses the ring without one of the queue's locks. */
void rpost_keep_spinners_out(struct rpost_cq *cq);
void rpost_let_spinners_in(struct rpost_cq *cq);
/* Removes the completions of a queue pair that nobody has polled. */
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

/* The queues and channels that rdma_create_qp() made because it had to. */
struct rpost_own_cqs {
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_comp_channel *send_channel;
	struct ibv_comp_channel *recv_channel;
};

/* What newer headers than those of version 44 have behind wr_abort. */
struct rpost_qp_ex_tail {
	void (*wr_atomic_write)(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t remote_addr, const void *atomic_wr);
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey,
			 uint64_t remote_addr, size_t len, uint8_t type,
			 uint8_t level);
};

#define RPOST_QP_EX_TAIL \
	(offsetof(struct ibv_qp_ex, wr_abort) + sizeof(void *))

/* Packed work requests. */
struct rpost_block {
	char *buf;
	size_t room;
	size_t used;
	uint32_t count;
};

/* What ibv_wr_*() gather between ibv_wr_start() and ibv_wr_complete(). */
struct rpost_wr_list {
	pthread_mutex_t lock;		/* held in between */
	struct rpost_block block;
	size_t last;			/* where the last work request begins */
	int err;			/* the first error */
};

struct rpost_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
		char ex_room[RPOST_QP_EX_TAIL + sizeof(struct rpost_qp_ex_tail)];
	};
	bool extended;			/* ex is valid, and list */
	struct rpost_wr_list list;
	struct rpost_made made;
	struct rpost_async async;
	struct rpost_group *groups;	/* of multicast, under ibv.mutex */
	struct rpost_id *id;
	bool orphan;			/* the id is gone, and the kernel's object */
	uint32_t pd;			/* the kernel's: a parent domain may go */
	struct ibv_qp_cap cap;
	bool sig_all;
	pthread_mutex_t sring_lock;	/* protects sring, and posts to it */
	struct rpost_sring *sring;
	struct rpost_sring *sring_on;	/* where posts go; NULL for calls */
	bool sring_tried;
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
 * Sets @attr->cap to what there is.  Returns 0 or an errno value.
 */
int rpost_qp_create(struct ibv_context *context, uint32_t id,
		    struct ibv_qp_init_attr_ex *attr, struct rpost_qp **qp);
struct ibv_qp *rpost_create_qp_ex(struct ibv_context *context,
				  struct ibv_qp_init_attr_ex *attr);
int rpost_modify_qp_rate_limit(struct ibv_qp *qp,
			       struct ibv_qp_rate_limit_attr *attr);
/* Destroys the kernel's object, and the completions that nobody has polled. */
int rpost_qp_destroy_handle(struct rpost_qp *qp);
void rpost_qp_attr_unpack(struct ibv_qp_attr *attr,
			  const struct rpost_qp_attr *in);
void rpost_ah_attr_pack(struct rpost_ah_attr *out,
			const struct ibv_ah_attr *attr);
void rpost_ah_attr_unpack(struct ibv_ah_attr *attr,
			  const struct rpost_ah_attr *in);
/* The ibv_wr_*() of a queue pair; @ops is enum ibv_qp_create_send_ops_flags. */
int rpost_qp_ex_check(enum ibv_qp_type type, uint64_t ops);
void rpost_qp_ex_init(struct rpost_qp *qp);
void rpost_qp_ex_fini(struct rpost_qp *qp);

/* Posts a block; @posted says how many were taken, also on failure. */
int rpost_post_block(struct ibv_context *context, uint32_t handle,
		     unsigned long ioc, const struct rpost_block *block,
		     uint32_t *posted);

/* The same for a send queue, by its ring if that is in use. */
int rpost_post_sends(struct rpost_qp *qp, const struct rpost_block *block,
		     uint32_t *posted);

/* Send rings: posts go by system call again; the kernel's object has gone. */
void rpost_sring_init(struct rpost_qp *qp);
void rpost_sring_pause(struct rpost_qp *qp);
void rpost_sring_end(struct rpost_qp *qp);

struct rpost_ah {
	struct ibv_ah ibv;
	struct rpost_made made;
	uint32_t pd;			/* the kernel's: a parent domain may go */
	struct rpost_ah *next;		/* in ctx->dead_ahs */
};

static inline struct rpost_ah *rpost_ah(struct ibv_ah *ah)
{
	return rpost_container_of(ah, struct rpost_ah, ibv);
}

/* Tries again to destroy the address handles that sends were using. */
void rpost_ah_reap(struct rpost_ctx *ctx);
/* The context goes away. */
void rpost_ah_forget(struct rpost_ctx *ctx);
bool rpost_qp_has_groups(struct rpost_qp *qp);
void rpost_qp_forget_groups(struct rpost_qp *qp);

/*
 * Leaves the struct to ibv_destroy_qp(); its id goes away.  Returns 0 or an
 * errno value.
 */
int rpost_qp_orphan(struct rpost_qp *qp);

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
	struct rpost_ctx *ctx;		/* holds a use of its default PD */
	struct rpost_qp *qp;
	struct rpost_own_cqs own;
	bool sync;
	bool ended;			/* has had its last connection event */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	struct ibv_qp_init_attr *qp_init_attr;	/* of a listening endpoint */
	void *connect;			/* of struct rdma_addrinfo */
	size_t connect_len;
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

static inline bool rpost_id_has(const struct rpost_id *id, uint64_t feature)
{
	return id->file->features & feature;
}

/*
 * The kernel's connection manager owns the queue pairs of RC ids.  Those of
 * others are the library's: cma joins no group for an id that has one.
 */
static inline bool rpost_id_lends_qp(const struct rpost_id *id)
{
	return id->id.qp_type == IBV_QPT_RC;
}

/*
 * The queue pair that the library brings up: of another type, or one that the
 * program has put into the id itself.  NULL if there is none.
 */
static inline struct ibv_qp *rpost_id_own_qp(const struct rpost_id *id)
{
	bool lent = rpost_id_lends_qp(id) && id->qp &&
		    id->id.qp == &id->qp->ibv;

	return lent ? NULL : id->id.qp;
}

struct rpost_event {
	struct rdma_cm_event event;
	struct rpost_id *owner;		/* counts it as unacked, or NULL */
	struct rpost_mc *mc;		/* counts it, too, or NULL */
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
/* Fills in what the kernel knows about the id.  Returns 0 or an errno value. */
int rpost_id_query(struct rpost_id *priv, bool paths);
/* Lets go of the event that a synchronous id refers to. */
void rpost_id_drop_event(struct rpost_id *priv);
/* Waits for @want on a synchronous id; on others returns 0 at once. */
int rpost_id_complete(struct rpost_id *priv, enum rdma_cm_event_type want);
void rpost_event_disown(struct rpost_event *evt);
int rpost_event_errno(const struct rdma_cm_event *event);
/* Bytes of an address, 0 for a family that is not known. */
socklen_t rpost_addr_len(const struct sockaddr *addr);

/* Brings a new queue pair to where it takes receives, datagrams' to RTS. */
int rpost_id_init_qp(struct rpost_id *priv, struct ibv_qp *qp);
/* Brings the library's queue pair of a connection to RTS, or to the error state. */
int rpost_id_ready_qp(struct rpost_id *priv);
void rpost_id_fail_qp(struct rpost_id *priv);
/* Confirms a connection.  Returns 0 or an errno value. */
int rpost_id_establish(struct rpost_id *priv);

/*
 * Looks up the join that an event is about, counts the event, and attaches the
 * queue pair.  Returns false for a group that has been left meanwhile.
 */
bool rpost_mc_event(struct rpost_event *evt, uint64_t number);
/* With the lock of its id held. */
void rpost_mc_acked(struct rpost_id *priv, struct rpost_mc *mc);
void rpost_mc_free_all(struct rpost_id *priv);

#endif /* RPOST_INTERNAL_H */
