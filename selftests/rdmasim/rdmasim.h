/* SPDX-License-Identifier: GPL-2.0 */
/*
 * rdmasim: an RDMA device in software, whose behaviour parameters select.
 *
 * All queue pairs are on this host.  A device moves data by copying it from one
 * region to another.  README.rst describes the parameters.
 *
 * Locks, outermost first; all are taken with interrupts disabled, because a
 * device may work in any context:
 *
 *   sim_dev_lock	list of devices, and their QP1
 *   sim_qp.lock	state of a queue pair and its receive side
 *   sim_rq.lock	receives, of a queue pair or shared
 *   sim_sq.lock	sends
 *   sim_cq.lock	completions
 *
 * The xarrays' own locks are innermost.
 */
#ifndef RDMASIM_H
#define RDMASIM_H

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/platform_device.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#define SIM_PORT		1
#define SIM_MAX_SGE		32
#define SIM_MAX_INLINE		1024
#define SIM_MAX_WR		131072
#define SIM_MAX_CQE		1048576
#define SIM_MAX_MODERATION	60000
#define SIM_MAX_RD_ATOMIC	128
#define SIM_GRH_BYTES		40
#define SIM_GID_TABLE		1024

/* Gives kernel users local access to all memory. */
#define SIM_LOCAL_DMA_LKEY	0xffffff00u

/* ------------------------------------------------------------- main.c */

/**
 * enum sim_context - where the device works, or calls completion handlers
 * @SIM_INLINE: in the post itself (engine only)
 * @SIM_SOFTIRQ: in a softirq
 * @SIM_HARDIRQ: in a hard interrupt
 * @SIM_WORK: in a kernel thread
 * @SIM_ENGINE: where the device works (completions only)
 * @SIM_LOCKED: where the device works, under the completion queue's lock
 */
enum sim_context {
	SIM_INLINE,
	SIM_SOFTIRQ,
	SIM_HARDIRQ,
	SIM_WORK,
	SIM_ENGINE,
	SIM_LOCKED,
};

/* Checks of rkeys that are left out, as in the parameter bad_rkeys. */
#define SIM_BAD_RKEY_ZERO	BIT(0)	/* 0 opens kernel memory */
#define SIM_BAD_RKEY_DOMAIN	BIT(1)	/* the protection domain */
#define SIM_BAD_RKEY_STALE	BIT(2)	/* the 8 bits that vary */
#define SIM_BAD_RKEY_RANGE	BIT(3)	/* one byte on either side */
#define SIM_BAD_RKEY_ACCESS	BIT(4)	/* the access that was granted */
#define SIM_BAD_RKEY_SRQ	BIT(5)	/* the SRQ's domain */

/**
 * struct sim_options - the parameters
 * @engine: where devices work, see enum sim_context
 * @notify: where completion handlers are called, see enum sim_context
 * @never_flushes: a queue pair in the error state completes no request
 * @purge: RESET and destroying a queue pair remove its completions
 * @no_last_wqe: IB_EVENT_QP_LAST_WQE_REACHED never occurs
 * @no_user_mr: reg_user_mr() is refused
 * @no_dma_lkey: there is no local DMA lkey
 * @no_fast_reg: there is no fast registration
 * @no_sge_rd: max_sge_rd is 0
 * @round_up: queues are larger than requested
 * @bad_rkeys: SIM_BAD_RKEY_*
 * @slow_destroy: time that destroying a queue pair takes, in ms
 * @last_wqe_late: delay of IB_EVENT_QP_LAST_WQE_REACHED, in ms
 * @fail_destroy_qp: number of the next destructions of queue pairs that fail
 * @fail_dereg_mr: number of the next deregistrations that fail
 * @max_sge: entries of a work request
 * @max_wr: work requests of a queue
 * @max_pages: pages of a fast registration
 * @driver_id: the driver that the device reports, enum rdma_driver_id
 *
 * Limits, @engine, @notify, @no_dma_lkey, @no_fast_reg and @driver_id are read
 * when a device is created, the others when they are needed.
 */
struct sim_options {
	char *engine;
	char *notify;
	bool never_flushes;
	bool purge;
	bool no_last_wqe;
	bool no_user_mr;
	bool no_dma_lkey;
	bool no_fast_reg;
	bool no_sge_rd;
	bool round_up;
	uint bad_rkeys;
	uint slow_destroy;
	uint last_wqe_late;
	uint fail_destroy_qp;
	uint fail_dereg_mr;
	uint max_sge;
	uint max_wr;
	uint max_pages;
	uint driver_id;
};

extern struct sim_options sim_options;
extern struct workqueue_struct *sim_wq;
extern struct platform_device *sim_parent;

/**
 * struct sim_dev - a device
 * @ib_dev: the RDMA core's part
 * @link: entry in the list of devices
 * @ndev: the network device with the port's addresses
 * @engine: where it works
 * @notify: where it calls completion handlers
 * @gsi: queue pair 1, or NULL; under sim_dev_lock
 * @mcast_lock: guards @mcasts
 * @mcasts: list of struct sim_mcast, members of groups
 * @mrs: regions by their keys without the low 8 bits
 * @next_mr: index in @mrs from which to search for a free one
 */
struct sim_dev {
	struct ib_device ib_dev;
	struct list_head link;
	struct net_device *ndev;
	enum sim_context engine;
	enum sim_context notify;
	struct sim_qp *gsi;
	spinlock_t mcast_lock;
	struct list_head mcasts;
	struct xarray mrs;
	u32 next_mr;
};

static inline struct sim_dev *to_sim_dev(struct ib_device *ib_dev)
{
	return container_of(ib_dev, struct sim_dev, ib_dev);
}

extern spinlock_t sim_dev_lock;
extern struct list_head sim_devs;

bool sim_port_up(const struct sim_dev *dev);
u32 sim_port_mtu(const struct sim_dev *dev);
bool sim_fail(uint *left);

/* --------------------------------------------------------------- mr.c */

/**
 * enum sim_mr_kind - how a region was created
 * @SIM_MR_DMA: all memory by its DMA address
 * @SIM_MR_USER: memory of a program
 * @SIM_MR_FAST: by IB_WR_REG_MR
 */
enum sim_mr_kind {
	SIM_MR_DMA,
	SIM_MR_USER,
	SIM_MR_FAST,
};

/**
 * struct sim_mr - memory region
 * @ibmr: the RDMA core's part
 * @kind: how it was created
 * @refs: one, plus one for each access in progress
 * @gone: completed when @refs drops to 0
 * @valid: the key can be used
 * @key: lkey and rkey
 * @access: IB_ACCESS_*
 * @iova: address of its start in work requests
 * @length: in bytes
 * @umem: a program's memory, or NULL
 * @pages: DMA addresses of its pages
 * @num_pages: number of @pages
 * @max_pages: capacity of @pages
 * @page_shift: log2 of the page size
 */
struct sim_mr {
	struct ib_mr ibmr;
	enum sim_mr_kind kind;
	refcount_t refs;
	struct completion gone;
	bool valid;
	u32 key;
	int access;
	u64 iova;
	u64 length;
	struct ib_umem *umem;
	u64 *pages;
	u32 num_pages;
	u32 max_pages;
	u8 page_shift;
};

static inline struct sim_mr *to_sim_mr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct sim_mr, ibmr);
}

/**
 * struct sim_seg - a piece of memory that was checked
 * @mr: its region, with a reference; NULL for the kernel's own
 * @addr: where it begins: for work requests, or in the kernel if @mr is NULL
 * @length: in bytes
 */
struct sim_seg {
	struct sim_mr *mr;
	u64 addr;
	u64 length;
};

/**
 * struct sim_sg - the pieces of a message
 * @num: number of @seg
 * @seg: the pieces; one more than the entries of a request, for the GRH
 */
struct sim_sg {
	unsigned int num;
	struct sim_seg seg[SIM_MAX_SGE + 1];
};

int sim_sg_add_local(struct sim_sg *sg, struct ib_pd *pd,
		     const struct ib_sge *sge, unsigned int num, int access);
int sim_sg_add_remote(struct sim_sg *sg, struct ib_pd *pd, u32 rkey, u64 addr,
		      u64 length, int access);
void sim_sg_add_kernel(struct sim_sg *sg, void *addr, u64 length);
u64 sim_sg_length(const struct sim_sg *sg);
void sim_sg_put(struct sim_sg *sg);
void sim_sg_copy(const struct sim_sg *to, const struct sim_sg *from);
void *sim_seg_pointer(const struct sim_seg *seg, u64 offset, u64 *room);

int sim_mr_register(struct ib_pd *pd, struct ib_mr *ibmr, u32 key, int access);
int sim_mr_invalidate(struct ib_pd *pd, u32 key);
struct ib_mr *sim_get_dma_mr(struct ib_pd *pd, int access);
extern const struct ib_device_ops sim_mr_ops;
extern const struct ib_device_ops sim_fast_reg_ops;

/* --------------------------------------------------------------- cq.c */

/**
 * struct sim_cq - completion queue
 * @ibcq: the RDMA core's part
 * @dev: its device
 * @lock: guards the fields below
 * @ring: the completions
 * @size: capacity of @ring
 * @head: index of the oldest
 * @count: number of entries in use
 * @armed: requested notification, enum ib_cq_notify_flags, or 0
 * @overrun: a completion did not fit; the queue has stopped
 * @moderate_count: completions for which a notification waits
 * @moderate_us: microseconds for which it waits, or 0
 * @delayed: completions for which it has waited
 * @timer: ends the wait
 * @irq: calls the completion handler in a hard interrupt
 * @tasklet: calls it in a softirq
 * @work: calls it in a thread
 */
struct sim_cq {
	struct ib_cq ibcq;
	struct sim_dev *dev;
	spinlock_t lock;
	struct ib_wc *ring;
	u32 size;
	u32 head;
	u32 count;
	unsigned int armed;
	bool overrun;
	u16 moderate_count;
	u16 moderate_us;
	u32 delayed;
	struct delayed_work timer;
	struct irq_work irq;
	struct tasklet_struct tasklet;
	struct work_struct work;
};

static inline struct sim_cq *to_sim_cq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct sim_cq, ibcq);
}

void sim_cq_call(struct sim_cq *cq);
void sim_cq_add(struct ib_cq *ibcq, const struct ib_wc *wc, bool solicited);
void sim_cq_purge(struct ib_cq *ibcq, const struct ib_qp *ibqp);
extern const struct ib_device_ops sim_cq_ops;

/* -------------------------------------------------------------- srq.c */

/**
 * struct sim_rwqe - a receive
 * @cqe: the owner's identification; shares memory with @wr_id
 * @wr_id: the owner's number, see @cqe
 * @num_sge: number of @sge
 * @sge: the entries
 */
struct sim_rwqe {
	union {
		struct ib_cqe *cqe;
		u64 wr_id;
	};
	u32 num_sge;
	struct ib_sge sge[];
};

/**
 * struct sim_rq - receives, of a queue pair or shared
 * @lock: guards the fields below
 * @ring: entries of struct sim_rwqe with @max_sge entries each
 * @max_sge: see @ring
 * @size: capacity of @ring
 * @head: index of the oldest
 * @count: number of entries in use
 */
struct sim_rq {
	spinlock_t lock;
	void *ring;
	u32 max_sge;
	u32 size;
	u32 head;
	u32 count;
};

/**
 * struct sim_srq - shared receive queue
 * @ibsrq: the RDMA core's part
 * @rq: its receives
 * @limit: number of receives below which the event occurs, or 0.  Under
 *	@rq's lock
 */
struct sim_srq {
	struct ib_srq ibsrq;
	struct sim_rq rq;
	u32 limit;
};

static inline struct sim_srq *to_sim_srq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct sim_srq, ibsrq);
}

int sim_rq_init(struct sim_rq *rq, u32 size, u32 max_sge);
void sim_rq_free(struct sim_rq *rq);
int sim_rq_post(struct sim_rq *rq, const struct ib_recv_wr *wr);
bool sim_rq_take(struct sim_rq *rq, struct sim_rwqe *to);
bool sim_srq_take(struct sim_srq *srq, struct sim_rwqe *to);
extern const struct ib_device_ops sim_srq_ops;

/* --------------------------------------------------------------- qp.c */

/**
 * struct sim_path - path of a datagram
 * @sgid: source
 * @dgid: destination
 * @hop_limit: of the header
 * @traffic_class: of the header
 */
struct sim_path {
	union ib_gid sgid;
	union ib_gid dgid;
	u8 hop_limit;
	u8 traffic_class;
};

struct sim_ah {
	struct ib_ah ibah;
	struct rdma_ah_attr attr;
	struct sim_path path;
};

static inline struct sim_ah *to_sim_ah(struct ib_ah *ibah)
{
	return container_of(ibah, struct sim_ah, ibah);
}

/**
 * struct sim_swqe - a send
 * @cqe: the owner's identification; shares memory with @wr_id
 * @wr_id: the owner's number, see @cqe
 * @opcode: IB_WR_*
 * @flags: IB_SEND_*
 * @ex: immediate data (@ex.imm), or the key to be invalidated (@ex.rkey)
 * @remote_addr: remote address of RDMA and atomic operations
 * @rkey: remote key of these operations
 * @compare_add: operand of atomic operations
 * @swap: second operand of atomic operations
 * @ud: destination of datagrams
 * @reg: arguments of registrations
 * @length: size of the message in bytes
 * @num_sge: number of @sge; with IB_SEND_INLINE, @sge holds the data
 * @sge: the entries
 */
struct sim_swqe {
	union {
		struct ib_cqe *cqe;
		u64 wr_id;
	};
	enum ib_wr_opcode opcode;
	int flags;
	union {
		__be32 imm;
		u32 rkey;
	} ex;
	u64 remote_addr;
	u32 rkey;
	u64 compare_add;
	u64 swap;
	struct {
		struct sim_path path;
		u32 qpn;
		u32 qkey;
	} ud;
	struct {
		struct ib_mr *mr;
		u32 key;
		int access;
	} reg;
	u32 length;
	u32 num_sge;
	struct ib_sge sge[];
};

/**
 * struct sim_sq - send queue
 * @lock: guards the fields below
 * @ring: struct sim_swqe
 * @stride: size of an entry of @ring in bytes
 * @size: capacity of @ring
 * @head: index of the oldest
 * @count: number of entries in use
 */
struct sim_sq {
	spinlock_t lock;
	void *ring;
	u32 stride;
	u32 size;
	u32 head;
	u32 count;
};

/**
 * struct sim_qp - queue pair
 * @ibqp: the RDMA core's part
 * @dev: its device
 * @srq: its shared receive queue, or NULL
 * @cap: capacity of its queues
 * @signal_all: each send completes
 * @refs: one, plus one for each message that arrives
 * @gone: completed when @refs drops to 0
 * @lock: guards @attr, @state, @busy, @last_wqe, @comm_est, @sqd_told
 * @datagram_lock: serializes datagrams that arrive from several senders
 * @attr: the modified attributes
 * @state: its state; may be read without @lock
 * @busy: a message is being received; its receiver owns @rwqe and @to
 * @last_wqe: IB_EVENT_QP_LAST_WQE_REACHED was delivered
 * @comm_est: IB_EVENT_COMM_EST was delivered
 * @sqd_told: IB_EVENT_SQ_DRAINED was delivered
 * @sq: sends
 * @rq: receives
 * @kicks: calls of the engine since it began; the caller that finds 0 runs it
 * @tries: attempts of the oldest send without an answer
 * @rnr_tries: attempts of the oldest send with the peer not ready
 * @rnr_timer: delay before the next attempt, from the peer's RNR NAK
 * @waiting: the engine waits for @rnr_timer or for an answer
 * @irq: runs the engine in a hard interrupt
 * @tasklet: runs the engine in a softirq
 * @work: runs the engine in a thread
 * @retry: runs the engine after a delay
 * @late: delivers IB_EVENT_QP_LAST_WQE_REACHED after a delay
 * @from: memory of the current send; the engine owns it
 * @remote: memory of the peer; the engine owns it
 * @message: a datagram's header and @from; the engine owns it
 * @to: memory for the message that is being received
 * @rwqe: the receive of that message
 */
struct sim_qp {
	struct ib_qp ibqp;
	struct sim_dev *dev;
	struct sim_srq *srq;
	struct ib_qp_cap cap;
	bool signal_all;
	refcount_t refs;
	struct completion gone;
	spinlock_t lock;
	spinlock_t datagram_lock;
	struct ib_qp_attr attr;
	enum ib_qp_state state;
	bool busy;
	bool last_wqe;
	bool comm_est;
	bool sqd_told;
	struct sim_sq sq;
	struct sim_rq rq;
	atomic_t kicks;
	unsigned int tries;
	unsigned int rnr_tries;
	u8 rnr_timer;
	bool waiting;
	struct irq_work irq;
	struct tasklet_struct tasklet;
	struct work_struct work;
	struct delayed_work retry;
	struct delayed_work late;
	struct sim_sg from;
	struct sim_sg remote;
	struct sim_sg message;
	struct sim_sg to;
	struct sim_rwqe *rwqe;
};

static inline struct sim_qp *to_sim_qp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct sim_qp, ibqp);
}

static inline bool sim_is_datagram(const struct sim_qp *qp)
{
	return qp->ibqp.qp_type == IB_QPT_UD || qp->ibqp.qp_type == IB_QPT_GSI;
}

struct sim_qp *sim_qp_get(u32 qpn);
void sim_qp_put(struct sim_qp *qp);
void sim_qp_event(struct sim_qp *qp, enum ib_event_type type);
void sim_qp_fail(struct sim_qp *qp);
void sim_qp_stop(struct sim_qp *qp);
void sim_qps_kick(void);
void sim_qps_raise(enum ib_event_type type);
void sim_qps_end(struct sim_dev *dev);
extern const struct ib_device_ops sim_qp_ops;

/* ------------------------------------------------------------- post.c */

int sim_sq_init(struct sim_sq *sq, const struct ib_qp_cap *cap);
void sim_sq_free(struct sim_sq *sq);
struct sim_swqe *sim_sq_first(struct sim_sq *sq);
void sim_sq_retire(struct sim_sq *sq);
extern const struct ib_device_ops sim_post_ops;

/* ----------------------------------------------------------- engine.c */

/* Results beside a status: no acknowledgment, or receiver not ready. */
#define SIM_NO_ANSWER	-1
#define SIM_NOT_READY	-2

void sim_engine_init(struct sim_qp *qp);
void sim_engine_kick(struct sim_qp *qp);
void sim_engine_stop(struct sim_qp *qp);
bool sim_can_receive(const struct sim_qp *qp);
int sim_receive_begin(struct sim_qp *qp);
void sim_receive_end(struct sim_qp *qp, const struct ib_wc *wc, bool solicited);
struct ib_pd *sim_receive_pd(const struct sim_qp *qp);

/* -------------------------------------------------------- connected.c */

int sim_connected(struct sim_qp *qp, const struct sim_swqe *wqe);

/* --------------------------------------------------------- datagram.c */

/**
 * struct sim_mcast - a queue pair in a multicast group
 * @link: entry in its device's list
 * @gid: the group
 * @qp: the queue pair
 */
struct sim_mcast {
	struct list_head link;
	union ib_gid gid;
	struct sim_qp *qp;
};

int sim_datagram(struct sim_qp *qp, const struct sim_swqe *wqe);
void sim_mcast_leave_all(struct sim_qp *qp);
extern const struct ib_device_ops sim_datagram_ops;

#endif /* RDMASIM_H */
