/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of an open file, for /proc/PID/fdinfo.
 */
#ifndef RPOST_STATS_H
#define RPOST_STATS_H

#include <linux/minmax.h>
#include <linux/percpu.h>

#include "base/base.h"

/* Received messages, beside the opcodes RPOST_WC_SEND to RPOST_WC_FETCH_ADD. */
#define RPOST_STAT_RECV		(RPOST_WC_FETCH_ADD + 1)
#define RPOST_NUM_STAT_OPS	(RPOST_STAT_RECV + 1)

/**
 * struct rpost_stats - a CPU's part of the counters of an open file
 * @ops: by opcode: how many the device has got and, of receives, completed
 *       without an error
 * @bytes: by opcode: their bytes
 * @completions: completions for the program
 * @overruns: completions that its ring had no room for
 * @commands: ioctls
 * @comp_events: events for completion channels
 * @comp_wakeups: of these, events for which a task was waiting
 * @comp_sleeps: reads of completion channels that have slept
 * @cache_hits: registrations that the cache had
 * @cm_events: events for event channels
 * @cm_sleeps: times that a task has slept for one of these
 *
 * Posts and completions count here without a lock or a cache line that another
 * CPU writes.  Only the sum over all CPUs means something.
 */
struct rpost_stats {
	u64 ops[RPOST_NUM_STAT_OPS];
	u64 bytes[RPOST_NUM_STAT_OPS];
	u64 completions;
	u64 overruns;
	u64 commands;
	u64 comp_events;
	u64 comp_wakeups;
	u64 comp_sleeps;
	u64 cache_hits;
	u64 cm_events;
	u64 cm_sleeps;
};

/* op is the opcode of the operation's completion, or RPOST_STAT_RECV. */
static inline void rpost_stat_op(struct rpost_file *file, u8 op, u32 bytes)
{
	this_cpu_inc(file->stats->ops[op]);
	this_cpu_add(file->stats->bytes[op], bytes);
}

/* Count a completion with an error.  A device may have other statuses than verbs. */
static inline void rpost_stat_error(struct rpost_file *file, u32 status)
{
	atomic_long_inc(&file->errors[min_t(u32, status, IB_WC_GENERAL_ERR)]);
	rpost_policy_error(&file->tenant);
}

#endif /* RPOST_STATS_H */
