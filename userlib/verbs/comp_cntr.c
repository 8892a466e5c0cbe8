// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion counters, which libibverbs has since version 65.  The module counts the
 * completed work requests of each queue pair; a counter is the sum over the queue pairs
 * that it is attached to.
 *
 * The headers of the build may be older, so structs are declared here; with newer headers
 * the compiler compares them, and the functions.
 */
#include <stdlib.h>
#include <string.h>

#include "core/internal.h"

struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

/* The structs and enums of version 65, without the prefix ibv_. */
struct comp_cntr_caps {
	uint64_t max_value;
	uint32_t max_counters;
	uint32_t supported_qp_attach_ops;
};

enum { TYPE_WRS };

struct comp_cntr_init_attr {
	uint32_t comp_mask;
	uint32_t type;
	uint32_t flags;
};

struct qp_attach_comp_cntr_attr {
	uint32_t comp_mask;
	uint32_t op_mask;
};

enum {
	OP_SEND		= 1 << 0,
	OP_RECV		= 1 << 1,
	OP_RDMA_READ	= 1 << 2,
	OP_RDMA_WRITE	= 1 << 4,
};

/* Devices do not tell what the peer reads and writes. */
#define KNOWN_OPS	(OP_SEND | OP_RECV | OP_RDMA_READ | OP_RDMA_WRITE)

/* A counter has two values. */
enum { SUCCEEDED, FAILED, VALUES };

/* It begins as struct ibv_comp_cntr. */
struct comp_cntr {
	struct ibv_context *context;
	uint32_t handle;		/* 0: it is no object of the kernel */
	pthread_mutex_t lock;
	uint64_t values[VALUES];	/* under lock; update() adds what is new */
	struct rpost_cntr_use *uses;	/* under lock */
};

/* A counter's use of a queue pair. */
struct rpost_cntr_use {
	struct comp_cntr *cntr;
	struct rpost_qp *qp;
	uint32_t ops;
	uint64_t before[VALUES];	/* under cntr->lock: counts at the last look */
	struct rpost_cntr_use *next_of_cntr;
	struct rpost_cntr_use *next_of_qp;
};

/* Version 65 has this macro. */
#ifdef IBV_DEVICE_CC_DMA_BOUNCE
#define SAME(ours, theirs) static_assert((int)(ours) == (int)(theirs), #ours)
SAME(sizeof(struct comp_cntr_caps), sizeof(struct ibv_comp_cntr_caps));
SAME(offsetof(struct comp_cntr_caps, supported_qp_attach_ops),
     offsetof(struct ibv_comp_cntr_caps, supported_qp_attach_ops));
SAME(sizeof(struct comp_cntr_init_attr), sizeof(struct ibv_comp_cntr_init_attr));
SAME(offsetof(struct comp_cntr_init_attr, type),
     offsetof(struct ibv_comp_cntr_init_attr, type));
SAME(sizeof(struct qp_attach_comp_cntr_attr), sizeof(struct ibv_qp_attach_comp_cntr_attr));
SAME(offsetof(struct qp_attach_comp_cntr_attr, op_mask),
     offsetof(struct ibv_qp_attach_comp_cntr_attr, op_mask));
SAME(offsetof(struct comp_cntr, handle), offsetof(struct ibv_comp_cntr, handle));
SAME(TYPE_WRS, IBV_COMP_CNTR_TYPE_WRS);
SAME(OP_SEND, IBV_QP_ATTACH_COMP_CNTR_OP_SEND);
SAME(OP_RECV, IBV_QP_ATTACH_COMP_CNTR_OP_RECV);
SAME(OP_RDMA_READ, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_READ);
SAME(OP_RDMA_WRITE, IBV_QP_ATTACH_COMP_CNTR_OP_RDMA_WRITE);
#endif

static struct comp_cntr *cntr_of(struct ibv_comp_cntr *comp_cntr)
{
	return (struct comp_cntr *)comp_cntr;
}

/**
 * _ibv_query_comp_cntr_caps() - what completion counters can do,
 * ibv_query_comp_cntr_caps(3)
 * @context: of the device
 * @caps: filled in
 * @caps_size: size of the program's struct
 *
 * Return: 0.
 */
RPOST_API int _ibv_query_comp_cntr_caps(struct ibv_context *context,
					struct ibv_comp_cntr_caps *caps,
					size_t caps_size)
{
	/* Only the program's memory bounds how many there are. */
	const struct comp_cntr_caps all = {
		.max_value = UINT64_MAX,
		.max_counters = INT32_MAX,
		.supported_qp_attach_ops = KNOWN_OPS,
	};

	(void)context;
	memset(caps, 0, caps_size);
	memcpy(caps, &all, caps_size < sizeof(all) ? caps_size : sizeof(all));
	return 0;
}

/**
 * ibv_create_comp_cntr() - make a completion counter, ibv_create_comp_cntr(3)
 * @context: of the device whose queue pairs it counts for
 * @cc_attr: type must be IBV_COMP_CNTR_TYPE_WRS, the rest 0
 *
 * Return: the counter, both of whose values are 0, to be released by
 * ibv_destroy_comp_cntr(), or NULL with errno: EOPNOTSUPP for another type, flags, or bits
 * of comp_mask, ENOMEM.
 */
RPOST_API struct ibv_comp_cntr *
ibv_create_comp_cntr(struct ibv_context *context, struct ibv_comp_cntr_init_attr *cc_attr)
{
	const struct comp_cntr_init_attr *attr = (const void *)cc_attr;
	struct comp_cntr *cntr;

	if (attr->comp_mask || attr->type != TYPE_WRS || attr->flags)
		return rpost_null(EOPNOTSUPP);
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return NULL;
	cntr->context = context;
	pthread_mutex_init(&cntr->lock, NULL);
	return (struct ibv_comp_cntr *)cntr;
}

/**
 * ibv_destroy_comp_cntr() - destroy a completion counter, ibv_create_comp_cntr(3)
 * @comp_cntr: the counter
 *
 * Return: 0, or EBUSY while it is attached to a queue pair.
 */
RPOST_API int ibv_destroy_comp_cntr(struct ibv_comp_cntr *comp_cntr)
{
	struct comp_cntr *cntr = cntr_of(comp_cntr);
	bool busy;

	pthread_mutex_lock(&cntr->lock);
	busy = cntr->uses;
	pthread_mutex_unlock(&cntr->lock);
	if (busy)
		return EBUSY;
	pthread_mutex_destroy(&cntr->lock);
	free(cntr);
	return 0;
}

/*
 * Adds to @sum what the queue pair has counted since the last look, after the module has
 * polled the device for it.  The counter is locked, or does not know the use yet.  Returns 0
 * or an errno value.
 */
static int add_counts(struct rpost_cntr_use *use, uint32_t flags, uint64_t sum[VALUES])
{
	static const struct {
		uint32_t op;
		enum rpost_wrs wrs;
	} ops[] = {
		{ OP_SEND, RPOST_WRS_SEND },
		{ OP_RECV, RPOST_WRS_RECV },
		{ OP_RDMA_READ, RPOST_WRS_RDMA_READ },
		{ OP_RDMA_WRITE, RPOST_WRS_RDMA_WRITE },
	};
	struct rpost_count_wrs cmd = {
		.flags = flags,
		.handle = use->qp->ibv.handle,
	};
	uint64_t now[VALUES] = {};
	unsigned int i;
	int err;

	err = rpost_ioctl(use->qp->ibv.context->cmd_fd, RPOST_IOC_COUNT_WRS, &cmd);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		if (use->ops & ops[i].op) {
			now[SUCCEEDED] += cmd.counts[ops[i].wrs].succeeded;
			now[FAILED] += cmd.counts[ops[i].wrs].failed;
		}
	}
	for (i = 0; i < VALUES; i++) {
		sum[i] += now[i] - use->before[i];
		use->before[i] = now[i];
	}
	return 0;
}

/* Updates both values of a counter, which is locked.  Returns 0 or an errno value. */
static int update(struct comp_cntr *cntr)
{
	struct rpost_cntr_use *use;
	int err = 0;

	for (use = cntr->uses; use && !err; use = use->next_of_cntr) {
		err = add_counts(use, 0, cntr->values);
		/* It is being destroyed, after rpost_qp_update_cntrs(). */
		if (err == ENOENT)
			err = 0;
	}
	return err;
}

static int read_value(struct ibv_comp_cntr *comp_cntr, unsigned int which, uint64_t *value)
{
	struct comp_cntr *cntr = cntr_of(comp_cntr);
	int err;

	pthread_mutex_lock(&cntr->lock);
	err = update(cntr);
	if (!err)
		*value = cntr->values[which];
	pthread_mutex_unlock(&cntr->lock);
	return err;
}

static int set_value(struct ibv_comp_cntr *comp_cntr, unsigned int which, uint64_t value)
{
	struct comp_cntr *cntr = cntr_of(comp_cntr);
	int err;

	pthread_mutex_lock(&cntr->lock);
	err = update(cntr);
	if (!err)
		cntr->values[which] = value;
	pthread_mutex_unlock(&cntr->lock);
	return err;
}

static int inc_value(struct ibv_comp_cntr *comp_cntr, unsigned int which, uint64_t amount)
{
	struct comp_cntr *cntr = cntr_of(comp_cntr);

	pthread_mutex_lock(&cntr->lock);
	cntr->values[which] += amount;
	pthread_mutex_unlock(&cntr->lock);
	return 0;
}

/**
 * ibv_set_comp_cntr() - set the number of work requests that have succeeded,
 * ibv_create_comp_cntr(3)
 * @comp_cntr: the counter
 * @value: the number
 *
 * Return: as ibv_read_comp_cntr().
 */
RPOST_API int ibv_set_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value)
{
	return set_value(comp_cntr, SUCCEEDED, value);
}

/**
 * ibv_set_err_comp_cntr() - set the number of work requests that have failed,
 * ibv_create_comp_cntr(3)
 * @comp_cntr: the counter
 * @value: the number
 *
 * Return: as ibv_read_comp_cntr().
 */
RPOST_API int ibv_set_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t value)
{
	return set_value(comp_cntr, FAILED, value);
}

/**
 * ibv_inc_comp_cntr() - add to the number of work requests that have succeeded,
 * ibv_create_comp_cntr(3)
 * @comp_cntr: the counter
 * @amount: what to add
 *
 * Return: 0.
 */
RPOST_API int ibv_inc_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount)
{
	return inc_value(comp_cntr, SUCCEEDED, amount);
}

/**
 * ibv_inc_err_comp_cntr() - add to the number of work requests that have failed,
 * ibv_create_comp_cntr(3)
 * @comp_cntr: the counter
 * @amount: what to add
 *
 * Return: 0.
 */
RPOST_API int ibv_inc_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t amount)
{
	return inc_value(comp_cntr, FAILED, amount);
}

/**
 * ibv_read_comp_cntr() - get the number of work requests that have succeeded,
 * ibv_create_comp_cntr(3)
 * @comp_cntr: the counter
 * @value: set to the number
 *
 * It has all that the device has completed, signaled or not, whether or not the program has
 * polled.  This takes a system call for each queue pair that the counter is attached to.
 * While one of them is drained, by a move to RESET or the removal of its device, the call
 * waits for that (drain_ms), which no signal interrupts, and other calls for the counter wait
 * for this one.
 *
 * Return: 0, or an errno value: EBADF if the context's cmd_fd has been closed.
 */
RPOST_API int ibv_read_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value)
{
	return read_value(comp_cntr, SUCCEEDED, value);
}

/**
 * ibv_read_err_comp_cntr() - get the number of work requests that have failed,
 * ibv_create_comp_cntr(3)
 * @comp_cntr: the counter
 * @value: set to the number
 *
 * Return: as ibv_read_comp_cntr().
 */
RPOST_API int ibv_read_err_comp_cntr(struct ibv_comp_cntr *comp_cntr, uint64_t *value)
{
	return read_value(comp_cntr, FAILED, value);
}

static bool overlaps(const struct rpost_qp *qp, uint32_t ops)
{
	const struct rpost_cntr_use *use;

	for (use = qp->cntr_uses; use; use = use->next_of_qp)
		if (use->ops & ops)
			return true;
	return false;
}

/* The caller holds the queue pair's mutex.  Returns 0 or an errno value. */
static int attach(struct rpost_qp *qp, struct comp_cntr *cntr, uint32_t ops)
{
	uint64_t older[VALUES] = {};
	struct rpost_cntr_use *use;
	int err;

	if (overlaps(qp, ops))
		return EBUSY;
	use = malloc(sizeof(*use));
	if (!use)
		return ENOMEM;
	*use = (struct rpost_cntr_use) {
		.cntr = cntr,
		.qp = qp,
		.ops = ops,
		.next_of_qp = qp->cntr_uses,
	};
	err = add_counts(use, RPOST_COUNT_WRS_START, older);
	if (err) {
		free(use);
		return err;
	}
	qp->cntr_uses = use;
	pthread_mutex_lock(&cntr->lock);
	use->next_of_cntr = cntr->uses;
	cntr->uses = use;
	pthread_mutex_unlock(&cntr->lock);
	return 0;
}

/**
 * ibv_qp_attach_comp_cntr() - have a queue pair's operations counted,
 * ibv_qp_attach_comp_cntr(3)
 * @qp: the queue pair, in the RESET or INIT state; it is detached when it is destroyed
 * @comp_cntr: the counter
 * @attr: op_mask has enum ibv_qp_attach_comp_cntr_op of the operations, comp_mask is 0
 *
 * A receive counts as one, whatever message has taken it.  The device signals each send of
 * the queue pair, which costs time.
 *
 * Return: 0, or an errno value: EINVAL in another state, without operations, or for a
 * counter of another context; EOPNOTSUPP for operations of the peer and bits of comp_mask;
 * EBUSY if the queue pair has a counter for one of the operations; ENOENT if the queue
 * pair's id has been destroyed, ENOMEM, ENODEV.
 */
RPOST_API int ibv_qp_attach_comp_cntr(struct ibv_qp *qp, struct ibv_comp_cntr *comp_cntr,
				      struct ibv_qp_attach_comp_cntr_attr *attr)
{
	const struct qp_attach_comp_cntr_attr *a = (const void *)attr;
	struct comp_cntr *cntr = cntr_of(comp_cntr);
	int err;

	if (a->comp_mask || a->op_mask & ~KNOWN_OPS)
		return EOPNOTSUPP;
	if (!a->op_mask || cntr->context != qp->context)
		return EINVAL;
	if (rpost_qp(qp)->orphan)
		return ENOENT;
	pthread_mutex_lock(&qp->mutex);
	err = attach(rpost_qp(qp), cntr, a->op_mask);
	pthread_mutex_unlock(&qp->mutex);
	return err;
}

void rpost_qp_update_cntrs(struct rpost_qp *qp)
{
	struct rpost_cntr_use *use;

	pthread_mutex_lock(&qp->ibv.mutex);
	for (use = qp->cntr_uses; use; use = use->next_of_qp) {
		pthread_mutex_lock(&use->cntr->lock);
		/* After an error DESTROY fails, too. */
		add_counts(use, 0, use->cntr->values);
		pthread_mutex_unlock(&use->cntr->lock);
	}
	pthread_mutex_unlock(&qp->ibv.mutex);
}

static void detach(const struct rpost_cntr_use *use)
{
	struct comp_cntr *cntr = use->cntr;
	struct rpost_cntr_use **pos;

	pthread_mutex_lock(&cntr->lock);
	for (pos = &cntr->uses; *pos != use; pos = &(*pos)->next_of_cntr)
		;
	*pos = use->next_of_cntr;
	pthread_mutex_unlock(&cntr->lock);
}

void rpost_qp_detach_cntrs(struct rpost_qp *qp)
{
	struct rpost_cntr_use *use;

	pthread_mutex_lock(&qp->ibv.mutex);
	while ((use = qp->cntr_uses)) {
		qp->cntr_uses = use->next_of_qp;
		detach(use);
		free(use);
	}
	pthread_mutex_unlock(&qp->ibv.mutex);
}
