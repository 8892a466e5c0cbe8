// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/PID/fdinfo/FD of an open file: Documentation/fdinfo.rst explains each
 * key.
 *
 * The reader waits for nothing that may take long, unless the program closes the
 * file meanwhile (Documentation/fdinfo.rst).  It sums over the objects, with a
 * reference on one at a time; a busy id it does not wait for.  The output has a
 * bound, however many objects there are, because procfs begins again with twice
 * the memory if there is too little.
 */
#include <linux/fs.h>
#include <linux/inet.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <rdma/ib.h>

#include "core/device.h"
#include "core/stats.h"
#include "core/trace.h"
#include "face/face.h"
#include "memory/cache.h"
#include "queue/srq.h"

#define RPOST_FDINFO_IDS	64
#define RPOST_FDINFO_DEVICES	8

/* The sum over queues of one kind: the entries that they have, and those in use. */
struct rpost_fill {
	u64 size;
	u64 used;
};

/*
 * The sum over all objects of a file.  @ids are the handles of the first of @num_ids ids.
 * @devices are the first devices that have objects, each with a reference.  In @cq an entry
 * is in use until the program has consumed it.
 */
struct rpost_fdinfo_sum {
	struct rpost_fill sq;
	struct rpost_fill rq;
	struct rpost_fill srq;
	struct rpost_fill cq;
	u32 num_ids;
	u32 ids[RPOST_FDINFO_IDS];
	u32 num_devices;
	bool more_devices;
	struct rpost_device *devices[RPOST_FDINFO_DEVICES];
};

static const struct trace_print_flags rpost_fdinfo_states[] = {
	RPOST_ID_STATES
};

static_assert(ARRAY_SIZE(rpost_fdinfo_states) == RPOST_ID_REMOVED + 1);

/* The names of verbs, without WC and ERR. */
static const char * const rpost_fdinfo_errors[] = {
	[IB_WC_LOC_LEN_ERR] = "loc-len",
	[IB_WC_LOC_QP_OP_ERR] = "loc-qp-op",
	[IB_WC_LOC_EEC_OP_ERR] = "loc-eec-op",
	[IB_WC_LOC_PROT_ERR] = "loc-prot",
	[IB_WC_WR_FLUSH_ERR] = "wr-flush",
	[IB_WC_MW_BIND_ERR] = "mw-bind",
	[IB_WC_BAD_RESP_ERR] = "bad-resp",
	[IB_WC_LOC_ACCESS_ERR] = "loc-access",
	[IB_WC_REM_INV_REQ_ERR] = "rem-inv-req",
	[IB_WC_REM_ACCESS_ERR] = "rem-access",
	[IB_WC_REM_OP_ERR] = "rem-op",
	[IB_WC_RETRY_EXC_ERR] = "retry-exc",
	[IB_WC_RNR_RETRY_EXC_ERR] = "rnr-retry-exc",
	[IB_WC_LOC_RDD_VIOL_ERR] = "loc-rdd-viol",
	[IB_WC_REM_INV_RD_REQ_ERR] = "rem-inv-rd-req",
	[IB_WC_REM_ABORT_ERR] = "rem-abort",
	[IB_WC_INV_EECN_ERR] = "inv-eecn",
	[IB_WC_INV_EEC_STATE_ERR] = "inv-eec-state",
	[IB_WC_FATAL_ERR] = "fatal",
	[IB_WC_RESP_TIMEOUT_ERR] = "resp-timeout",
	[IB_WC_GENERAL_ERR] = "general",
};

static_assert(ARRAY_SIZE(rpost_fdinfo_errors) == ARRAY_SIZE(((struct rpost_file *)0)->errors));

static void rpost_fdinfo_u64(struct seq_file *s, const char *key, u64 value)
{
	seq_printf(s, "rpost-%s:\t%llu\n", key, value);
}

/* ------------------------------------------------------ counters */

static void rpost_stats_sum(const struct rpost_file *file, struct rpost_stats *sum)
{
	const struct rpost_stats *part;
	unsigned int cpu, i;

	memset(sum, 0, sizeof(*sum));
	for_each_possible_cpu(cpu) {
		part = per_cpu_ptr(file->stats, cpu);
		for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
			((u64 *)sum)[i] += READ_ONCE(((const u64 *)part)[i]);
	}
}

static void rpost_fdinfo_errors_show(struct seq_file *s, struct rpost_file *file)
{
	u64 num, all = 0;
	unsigned int i;

	for (i = IB_WC_LOC_LEN_ERR; i < ARRAY_SIZE(rpost_fdinfo_errors); i++) {
		num = atomic_long_read(&file->errors[i]);
		all += num;
		if (num)
			seq_printf(s, "rpost-total-errors-%s:\t%llu\n",
				   rpost_fdinfo_errors[i], num);
	}
	rpost_fdinfo_u64(s, "total-errors", all);
}

static void rpost_fdinfo_totals(struct seq_file *s, struct rpost_file *file)
{
	struct rpost_stats sum;

	rpost_stats_sum(file, &sum);
	rpost_fdinfo_u64(s, "total-ops-send", sum.ops[RPOST_WC_SEND]);
	rpost_fdinfo_u64(s, "total-ops-write", sum.ops[RPOST_WC_RDMA_WRITE]);
	rpost_fdinfo_u64(s, "total-ops-read", sum.ops[RPOST_WC_RDMA_READ]);
	rpost_fdinfo_u64(s, "total-ops-atomic", sum.ops[RPOST_WC_COMP_SWAP] +
						sum.ops[RPOST_WC_FETCH_ADD]);
	rpost_fdinfo_u64(s, "total-ops-recv", sum.ops[RPOST_STAT_RECV]);
	rpost_fdinfo_u64(s, "total-bytes-send", sum.bytes[RPOST_WC_SEND]);
	rpost_fdinfo_u64(s, "total-bytes-write", sum.bytes[RPOST_WC_RDMA_WRITE]);
	rpost_fdinfo_u64(s, "total-bytes-read", sum.bytes[RPOST_WC_RDMA_READ]);
	rpost_fdinfo_u64(s, "total-bytes-recv", sum.bytes[RPOST_STAT_RECV]);
	rpost_fdinfo_u64(s, "total-completions", sum.completions);
	rpost_fdinfo_u64(s, "total-overruns", sum.overruns);
	rpost_fdinfo_u64(s, "total-commands", sum.commands);
	rpost_fdinfo_u64(s, "total-comp-events", sum.comp_events);
	rpost_fdinfo_u64(s, "total-comp-wakeups", sum.comp_wakeups);
	rpost_fdinfo_u64(s, "total-comp-sleeps", sum.comp_sleeps);
	rpost_fdinfo_u64(s, "total-cache-hits", sum.cache_hits);
	rpost_fdinfo_u64(s, "total-cm-events", sum.cm_events);
	rpost_fdinfo_u64(s, "total-cm-sleeps", sum.cm_sleeps);
	rpost_fdinfo_errors_show(s, file);
}

static void rpost_fdinfo_objects(struct seq_file *s, const struct rpost_file *file,
				 const char *key, unsigned int what)
{
	seq_printf(s, "rpost-objects-%s:\t%ld\n", key, atomic_long_read(&file->counts[what]));
}

static void rpost_fdinfo_gauges(struct seq_file *s, struct rpost_file *file)
{
	unsigned int i;

	for (i = RPOST_OBJ_PD; i < RPOST_NUM_OBJ_TYPES; i++)
		rpost_fdinfo_objects(s, file, rpost_types[i].name, i);
	rpost_fdinfo_objects(s, file, "comp-channel", RPOST_COUNT_COMP_CHANNEL);
	rpost_fdinfo_objects(s, file, "event-channel", RPOST_COUNT_EVENT_CHANNEL);
	rpost_fdinfo_objects(s, file, "async-channel", RPOST_COUNT_ASYNC_CHANNEL);
	rpost_fdinfo_objects(s, file, "share", RPOST_COUNT_SHARE);
	rpost_fdinfo_u64(s, "bytes-charged", atomic_long_read(&file->bytes));
	rpost_fdinfo_u64(s, "bytes-pinned", PAGE_SIZE *
			 atomic_long_read(&file->counts[RPOST_COUNT_PINNED_PAGES]));
	rpost_fdinfo_u64(s, "bytes-cached", PAGE_SIZE *
			 atomic_long_read(&file->counts[RPOST_COUNT_KEPT_PAGES]));
	rpost_fdinfo_u64(s, "cached-mr", atomic_long_read(&file->counts[RPOST_COUNT_KEPT]));
	rpost_fdinfo_u64(s, "bytes-rings", PAGE_SIZE *
			 atomic_long_read(&file->counts[RPOST_COUNT_RING_PAGES]));
	rpost_fdinfo_u64(s, "wr", atomic_long_read(&file->num_wr));
	rpost_fdinfo_u64(s, "cqe", atomic_long_read(&file->num_cqe));
}

static void rpost_fdinfo_limits(struct seq_file *s, struct rpost_file *file)
{
	rpost_fdinfo_u64(s, "limit-objects", rpost_limit_objects());
	rpost_fdinfo_u64(s, "limit-wr", rpost_limit_wr());
	rpost_fdinfo_u64(s, "limit-cqe", rpost_limit_cqe());
	if (rpost_user_pin_limit())
		rpost_fdinfo_u64(s, "limit-user-pinned", PAGE_SIZE * rpost_user_pin_limit());
	if (file->user->exempt)
		seq_puts(s, "rpost-limit-user-bytes:\tnone\n");
	else
		rpost_fdinfo_u64(s, "limit-user-bytes", rpost_user_limit());
}

/* ------------------------------------------------------- objects */

/* A hint, as the queue is not locked. */
static u32 rpost_queue_used(const struct rpost_queue *q)
{
	u32 tail = READ_ONCE(q->tail);

	return min(READ_ONCE(q->head) - tail, q->max_wr);
}

static void rpost_fdinfo_add_device(struct rpost_fdinfo_sum *seen, struct rpost_device *dev)
{
	u32 i;

	for (i = 0; i < seen->num_devices; i++) {
		if (seen->devices[i] == dev)
			return;
	}
	if (seen->num_devices == RPOST_FDINFO_DEVICES) {
		seen->more_devices = true;
		return;
	}
	kref_get(&dev->kref);
	seen->devices[seen->num_devices++] = dev;
}

static void rpost_fdinfo_add(struct rpost_fdinfo_sum *seen, struct rpost_obj *obj)
{
	struct rpost_srq *srq;
	struct rpost_qp *qp;
	struct rpost_cq *cq;

	if (obj->dev)
		rpost_fdinfo_add_device(seen, obj->dev);
	switch (obj->type) {
	case RPOST_OBJ_QP:
		qp = rpost_obj_as(qp, obj);
		seen->sq.size += qp->sq.max_wr;
		seen->sq.used += rpost_queue_used(&qp->sq);
		seen->rq.size += qp->rq.max_wr;
		seen->rq.used += rpost_queue_used(&qp->rq);
		break;
	case RPOST_OBJ_SRQ:
		srq = rpost_obj_as(srq, obj);
		seen->srq.size += READ_ONCE(srq->max_wr);
		seen->srq.used += READ_ONCE(srq->used);
		break;
	case RPOST_OBJ_CQ:
		cq = rpost_obj_as(cq, obj);
		seen->cq.size += rpost_cq_size(cq);
		seen->cq.used += rpost_cq_see(cq).waiting;
		break;
	case RPOST_OBJ_ID:
		if (seen->num_ids < RPOST_FDINFO_IDS)
			seen->ids[seen->num_ids] = obj->handle;
		seen->num_ids++;
		break;
	default:
		break;
	}
}

static void rpost_fdinfo_fill(struct seq_file *s, const char *key, const struct rpost_fill *fill)
{
	seq_printf(s, "rpost-%s-size:\t%llu\nrpost-%s-used:\t%llu\n", key,
		   fill->size, key, fill->used);
}

static void rpost_fdinfo_devices(struct seq_file *s, struct rpost_fdinfo_sum *seen)
{
	char name[IB_DEVICE_NAME_MAX];
	u32 i;

	for (i = 0; i < seen->num_devices; i++) {
		rpost_device_name(seen->devices[i], name);
		seq_printf(s, "rpost-device:\t%s%s\n", name,
			   rpost_device_alive(seen->devices[i]) ? "" : " removed");
		rpost_device_put(seen->devices[i]);
	}
	if (seen->more_devices)
		seq_puts(s, "rpost-devices-left-out:\tyes\n");
}

/* --------------------------------------------------- connections */

static void rpost_fdinfo_addr(struct seq_file *s, const char *key,
			      const struct sockaddr_storage *from)
{
	/* cma may set it again as an iWARP connection comes up. */
	struct sockaddr_storage addr = *from;

	switch (addr.ss_family) {
	case AF_INET:
	case AF_INET6:
		seq_printf(s, " %s=%pISpsc", key, &addr);
		break;
	case AF_IB:
		seq_printf(s, " %s=[%pI6c]", key, &((struct sockaddr_ib *)&addr)->sib_addr);
		break;
	}
}

/* In these states cma may be writing the address, or there is none. */
#define RPOST_ID_NO_SRC	(BIT(RPOST_ID_IDLE) | BIT(RPOST_ID_ADDR_QUERY))
#define RPOST_ID_NO_DST	(BIT(RPOST_ID_IDLE) | BIT(RPOST_ID_BOUND) | \
			 BIT(RPOST_ID_LISTEN))

static void rpost_fdinfo_cm_id(struct seq_file *s, struct rpost_id *id, u32 state)
{
	struct rdma_cm_id *cm_id = id->cm_id;
	char name[IB_DEVICE_NAME_MAX];
	struct ib_device *ib_dev;
	struct rpost_device *dev;

	lockdep_assert_held(&id->lock);

	/* @cm_id, which stays, keeps its device. */
	ib_dev = READ_ONCE(cm_id->device);
	dev = ib_dev ? rpost_device_of(ib_dev) : NULL;
	if (dev && !dev->refused) {
		rpost_device_name(dev, name);
		seq_printf(s, " device=%s", name);
	}
	if (dev)
		rpost_device_put(dev);
	if (!(BIT(state) & RPOST_ID_NO_SRC))
		rpost_fdinfo_addr(s, "src", &cm_id->route.addr.src_addr);
	if (!(BIT(state) & RPOST_ID_NO_DST))
		rpost_fdinfo_addr(s, "dst", &cm_id->route.addr.dst_addr);
}

static void rpost_fdinfo_qp(struct seq_file *s, const struct rpost_id *id)
{
	const struct rpost_qp *qp = id->qp;

	lockdep_assert_held(&id->lock);

	if (!qp) {
		if (id->qp_num)
			seq_printf(s, " qp=%u", id->qp_num);
		return;
	}
	seq_printf(s, " qp=%u sq=%u/%u", qp->qp_num, rpost_queue_used(&qp->sq), qp->sq.max_wr);
	if (!qp->srq)
		seq_printf(s, " rq=%u/%u", rpost_queue_used(&qp->rq), qp->rq.max_wr);
}

static void rpost_fdinfo_id(struct seq_file *s, struct rpost_file *file, u32 handle)
{
	struct rpost_id *id = rpost_id_get(file, handle);
	u32 state;

	if (!id)
		return;
	state = READ_ONCE(id->state);
	seq_printf(s, "rpost-connection:\tid=%u state=%s", handle, rpost_fdinfo_states[state].name);
	/* The holder may wait for the device or for the other side. */
	if (mutex_trylock(&id->lock)) {
		if (id->cm_id)
			rpost_fdinfo_cm_id(s, id, READ_ONCE(id->state));
		rpost_fdinfo_qp(s, id);
		mutex_unlock(&id->lock);
	} else {
		seq_puts(s, " busy");
	}
	seq_putc(s, '\n');
	rpost_obj_put(&id->obj);
}

static void rpost_fdinfo_ids(struct seq_file *s, struct rpost_file *file,
			     const struct rpost_fdinfo_sum *seen)
{
	u32 i, shown = min_t(u32, seen->num_ids, RPOST_FDINFO_IDS);

	rpost_fdinfo_u64(s, "connections", seen->num_ids);
	if (shown < seen->num_ids)
		rpost_fdinfo_u64(s, "connections-left-out", seen->num_ids - shown);
	for (i = 0; i < shown && !seq_has_overflowed(s); i++)
		rpost_fdinfo_id(s, file, seen->ids[i]);
}

/* Show what an open file has and does.  The caller keeps the file open. */
void rpost_file_fdinfo(struct seq_file *s, struct rpost_file *file)
{
	struct rpost_fdinfo_sum seen = { };
	struct rpost_obj *obj;
	u32 index = 0;

	while ((obj = rpost_obj_next(file, &index, RPOST_NUM_OBJ_TYPES))) {
		rpost_fdinfo_add(&seen, obj);
		rpost_obj_put(obj);
		cond_resched();
	}

	rpost_fdinfo_u64(s, "file", file->id);
	rpost_fdinfo_devices(s, &seen);
	rpost_fdinfo_gauges(s, file);
	rpost_fdinfo_fill(s, "sq", &seen.sq);
	rpost_fdinfo_fill(s, "rq", &seen.rq);
	rpost_fdinfo_fill(s, "srq", &seen.srq);
	rpost_fdinfo_fill(s, "cq", &seen.cq);
	rpost_fdinfo_limits(s, file);
	rpost_fdinfo_totals(s, file);
	rpost_fdinfo_ids(s, file, &seen);
}
