/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies: the rates, bounds, peers and operations of a cgroup's or an open file's programs.
 */
#ifndef RPOST_POLICY_H
#define RPOST_POLICY_H

#include <linux/cgroup.h>
#include <linux/in6.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <rdma/rdma_post_abi.h>

/* The rules of a policy, which SET_POLICY replaces as a whole. */
struct rpost_rules {
	struct rcu_head rcu;
	struct rpost_policy_rules says;
	struct rpost_peer peers[];
};

/* Quantities that have a rate. */
enum rpost_pace {
	RPOST_PACE_BYTES,
	RPOST_PACE_OPS,
	RPOST_NUM_PACES,
};

/* Quantities that have a bound. */
enum rpost_held {
	RPOST_HELD_PAGES,
	RPOST_HELD_QPS,
	RPOST_NUM_HELD,
};

enum rpost_policy_count {
	RPOST_POLICY_COUNT_OPS,
	RPOST_POLICY_COUNT_BYTES,
	RPOST_POLICY_COUNT_ERRORS,
	RPOST_POLICY_COUNT_WAITS,
	RPOST_POLICY_COUNT_WAITED_NS,
	RPOST_POLICY_COUNT_REFUSALS,
	RPOST_NUM_POLICY_COUNTS,
};

/**
 * struct rpost_policy - a policy of an open file or of a cgroup
 * @parent: that of the next cgroup above which has one, or NULL: it applies, too
 * @rules: what it says
 * @paid: time (CLOCK_MONOTONIC, ns) until which what was posted has used up the rate, by
 *        enum rpost_pace.  It may be in the future: the policy's programs are in debt.
 * @held: pages and queue pairs of its files, by enum rpost_held; under the bounds' lock
 * @counts: by enum rpost_policy_count
 * @cgroup: its cgroup, with a reference; NULL if it is a file's
 * @link: in the list of cgroups' policies, by id; under the policies' mutex
 * @users: files and policies that name it; under the policies' mutex
 * @rcu: posts read policies under RCU
 *
 * A file names a policy of its own, or else that of the next cgroup, and all policies on
 * the way up apply.  @parent and @rules are read under RCU or under the bounds' lock, and
 * written under both the policies' mutex and that lock.  A policy that nobody names is
 * freed after a grace period.
 */
struct rpost_policy {
	struct rpost_policy __rcu *parent;
	struct rpost_rules __rcu *rules;
	atomic64_t paid[RPOST_NUM_PACES];
	unsigned long held[RPOST_NUM_HELD];
	atomic64_t counts[RPOST_NUM_POLICY_COUNTS];
	struct cgroup *cgroup;
	struct list_head link;
	unsigned int users;
	struct rcu_head rcu;
};

/**
 * struct rpost_tenant - the part of an open file that policies look at
 * @policy: the policy that it names, or NULL; read under RCU or @lock, written under the
 *          policies' mutex and @lock
 * @cgroup: that of its opener, with a reference
 * @link: in the list of all files; under the policies' mutex
 * @lock: guards @held
 * @held: what it has, by enum rpost_held
 */
struct rpost_tenant {
	struct rpost_policy __rcu *policy;
	struct cgroup *cgroup;
	struct list_head link;
	spinlock_t lock;
	unsigned long held[RPOST_NUM_HELD];
};

/**
 * struct rpost_wish - what a program wants to do
 * @forbid: it is one of RPOST_FORBID_*; or 0
 * @bytes: length of the work request; or 0
 * @again: a refusal is not counted, since the program will ask again
 * @peer: address to connect to, or to listen on; or NULL
 * @port: port there; negative for a path that names none
 * @listen: to listen
 * @anybody: to connect to whom no address names; then @port is negative
 */
struct rpost_wish {
	u32 forbid;
	u64 bytes;
	bool again;
	const struct in6_addr *peer;
	int port;
	bool listen;
	bool anybody;
};

/* The most seconds that one work request costs: a longer one stops its sender for no more. */
#define RPOST_MAX_COST_S	10

struct rpost_rules *rpost_rules_get(const struct rpost_policy_rules *says);
bool rpost_rules_within(const struct rpost_rules *rules, const struct rpost_rules *old);
struct rpost_policy *rpost_policy_alloc(struct rpost_rules *rules, struct cgroup *cgroup);

s64 rpost_policy_charge(const struct rpost_tenant *tenant, u32 bytes);
void rpost_policy_refund(const struct rpost_tenant *tenant, u32 bytes, s64 when);
int rpost_policy_wait(const struct rpost_tenant *tenant);
void rpost_policy_posted(const struct rpost_tenant *tenant, u32 bytes);
void rpost_policy_error(const struct rpost_tenant *tenant);
int rpost_policy_ask(const struct rpost_tenant *tenant, const struct rpost_wish *wish);
bool rpost_policy_take(struct rpost_tenant *tenant, enum rpost_held what, unsigned long n,
		       bool *shared);
void rpost_policy_give(struct rpost_tenant *tenant, enum rpost_held what, unsigned long n);
void rpost_policy_name(struct rpost_tenant *tenant, struct rpost_policy *policy);
void rpost_policy_set_parent(struct rpost_policy *policy, struct rpost_policy *parent);
struct rpost_rules *rpost_policy_set_rules(struct rpost_policy *policy, struct rpost_rules *rules);

/* Does a policy apply? */
static inline bool rpost_tenant_restricted(const struct rpost_tenant *tenant)
{
	return unlikely(rcu_access_pointer(tenant->policy));
}

/* May the program do this?  Return 0 or -EPERM. */
static inline int rpost_policy_allows(const struct rpost_tenant *tenant,
				      const struct rpost_wish *wish)
{
	return rpost_tenant_restricted(tenant) ? rpost_policy_ask(tenant, wish) : 0;
}

/* May the program do one of RPOST_FORBID_*?  Return 0 or -EPERM. */
static inline int rpost_policy_permits(const struct rpost_tenant *tenant, u32 forbid)
{
	return rpost_policy_allows(tenant, &(struct rpost_wish){ .forbid = forbid });
}

#endif /* RPOST_POLICY_H */
