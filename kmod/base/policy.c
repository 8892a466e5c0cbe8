// SPDX-License-Identifier: GPL-2.0
/*
 * Policies: rates, bounds, peers, operations.  See struct rpost_policy.
 */
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "base/base.h"

#define RPOST_POLICY_HAS	(RPOST_POLICY_BYTES | RPOST_POLICY_OPS | RPOST_POLICY_LENGTH | \
				 RPOST_POLICY_PINNED | RPOST_POLICY_QPS | \
				 RPOST_POLICY_CONNECT | RPOST_POLICY_LISTEN)
#define RPOST_POLICY_FORBIDS	(RPOST_FORBID_LISTEN | RPOST_FORBID_REMOTE | \
				 RPOST_FORBID_ATOMIC | RPOST_FORBID_RAW | \
				 RPOST_FORBID_MULTICAST)
#define RPOST_MAX_BURST_US	(10 * USEC_PER_SEC)
#define RPOST_MAX_RATE		1000000000000000000ULL

/* A post that waits looks this often whether the policy has changed. */
#define RPOST_LOOK_NS		(100 * NSEC_PER_MSEC)

/* ------------------------------------------------------------ rules */

static bool rpost_addr_within(const u8 *addr, const u8 *net, unsigned int prefix)
{
	unsigned int bytes = prefix / 8, bits = prefix % 8;

	return !memcmp(addr, net, bytes) &&
	       (!bits || !((addr[bytes] ^ net[bytes]) >> (8 - bits)));
}

static bool rpost_peer_valid(const struct rpost_peer *peer)
{
	unsigned int bit;

	if (peer->prefix > 128 || peer->listen > 1 || peer->first_port > peer->last_port)
		return false;
	for (bit = peer->prefix; bit < 128; bit++) {
		if (peer->addr[bit / 8] & (0x80 >> bit % 8))
			return false;
	}
	return true;
}

static int rpost_rules_check(const struct rpost_policy_rules *says)
{
	if ((says->has & ~RPOST_POLICY_HAS) || (says->forbid & ~RPOST_POLICY_FORBIDS) ||
	    says->reserved)
		return -EOPNOTSUPP;
	if (says->num_peers > RPOST_MAX_PEERS ||
	    (says->peers && !says->num_peers) ||
	    says->burst_us > RPOST_MAX_BURST_US ||
	    says->bytes_per_s > RPOST_MAX_RATE || says->ops_per_s > RPOST_MAX_RATE ||
	    !(says->has & RPOST_POLICY_BYTES) != !says->bytes_per_s ||
	    !(says->has & RPOST_POLICY_OPS) != !says->ops_per_s)
		return -EINVAL;
	if ((!(says->has & RPOST_POLICY_LENGTH) && says->max_length) ||
	    (!(says->has & RPOST_POLICY_PINNED) && says->max_pinned) ||
	    (!(says->has & RPOST_POLICY_QPS) && says->max_qps) ||
	    (!(says->has & (RPOST_POLICY_BYTES | RPOST_POLICY_OPS)) && says->burst_us))
		return -EINVAL;
	return 0;
}

/* Copy a program's rules.  Return them, or ERR_PTR(). */
struct rpost_rules *rpost_rules_get(const struct rpost_policy_rules *says)
{
	struct rpost_rules *rules;
	u32 i, use;
	int ret;

	ret = rpost_rules_check(says);
	if (ret)
		return ERR_PTR(ret);
	rules = kmalloc(struct_size(rules, peers, says->num_peers), RPOST_GFP);
	if (!rules)
		return ERR_PTR(-ENOMEM);
	rules->says = *says;
	rules->says.peers = 0;
	ret = -EFAULT;
	if (copy_from_user(rules->peers, u64_to_user_ptr(says->peers),
			   array_size(says->num_peers, sizeof(*rules->peers))))
		goto err;
	for (i = 0; i < says->num_peers; i++) {
		ret = -EOPNOTSUPP;
		if (memchr_inv(rules->peers[i].reserved, 0, sizeof(rules->peers[i].reserved)))
			goto err;
		ret = -EINVAL;
		if (!rpost_peer_valid(&rules->peers[i]))
			goto err;
		use = rules->peers[i].listen ? RPOST_POLICY_LISTEN : RPOST_POLICY_CONNECT;
		if (!(says->has & use))
			goto err;
	}
	return rules;
err:
	kfree(rules);
	return ERR_PTR(ret);
}

/* Is what the peer of new rules allows a part of what the old ones allow? */
static bool rpost_peer_within(const struct rpost_peer *peer, const struct rpost_rules *old)
{
	const struct rpost_peer *of;
	u32 i;

	for (i = 0; i < old->says.num_peers; i++) {
		of = &old->peers[i];
		if (of->listen == peer->listen && of->prefix <= peer->prefix &&
		    of->first_port <= peer->first_port && of->last_port >= peer->last_port &&
		    rpost_addr_within(peer->addr, of->addr, of->prefix))
			return true;
	}
	return false;
}

/* Do the rules allow no more than the old ones? */
bool rpost_rules_within(const struct rpost_rules *rules, const struct rpost_rules *old)
{
	const struct rpost_policy_rules *now = &rules->says, *was = &old->says;
	u32 i, use;

	if ((was->has & ~now->has) || (was->forbid & ~now->forbid))
		return false;
	if (((was->has & RPOST_POLICY_BYTES) && now->bytes_per_s > was->bytes_per_s) ||
	    ((was->has & RPOST_POLICY_OPS) && now->ops_per_s > was->ops_per_s) ||
	    ((was->has & (RPOST_POLICY_BYTES | RPOST_POLICY_OPS)) &&
	     now->burst_us > was->burst_us) ||
	    ((was->has & RPOST_POLICY_LENGTH) && now->max_length > was->max_length) ||
	    ((was->has & RPOST_POLICY_PINNED) && now->max_pinned > was->max_pinned) ||
	    ((was->has & RPOST_POLICY_QPS) && now->max_qps > was->max_qps))
		return false;
	for (i = 0; i < now->num_peers; i++) {
		use = rules->peers[i].listen ? RPOST_POLICY_LISTEN : RPOST_POLICY_CONNECT;
		if ((was->has & use) && !rpost_peer_within(&rules->peers[i], old))
			return false;
	}
	return true;
}

/* Take over the rules and the reference on the cgroup.  Return NULL without memory. */
struct rpost_policy *rpost_policy_alloc(struct rpost_rules *rules, struct cgroup *cgroup)
{
	struct rpost_policy *policy = kzalloc(sizeof(*policy), RPOST_GFP);

	if (!policy)
		return NULL;
	RCU_INIT_POINTER(policy->rules, rules);
	policy->cgroup = cgroup;
	return policy;
}

/* ------------------------------------------------------------ rates */

static void rpost_policy_count(struct rpost_policy *policy, enum rpost_policy_count what, u64 n)
{
	atomic64_add(n, &policy->counts[what]);
}

static u64 rpost_rate(const struct rpost_rules *rules, enum rpost_pace pace)
{
	return pace == RPOST_PACE_BYTES ? rules->says.bytes_per_s : rules->says.ops_per_s;
}

/* Return the nanoseconds that a work request costs; 0 without a rate. */
static s64 rpost_cost(const struct rpost_rules *rules, enum rpost_pace pace, u32 bytes)
{
	u64 rate = rpost_rate(rules, pace);
	u32 n = pace == RPOST_PACE_BYTES ? bytes : 1;

	if (!rate)
		return 0;
	if (n / RPOST_MAX_COST_S >= rate)
		return RPOST_MAX_COST_S * (s64)NSEC_PER_SEC;
	return div64_u64((u64)n * NSEC_PER_SEC + rate - 1, rate);
}

static s64 rpost_burst(const struct rpost_rules *rules)
{
	return (s64)rules->says.burst_us * NSEC_PER_USEC;
}

/*
 * Return for how many nanoseconds nothing may be posted, or 0.  Set *in_debt to the policy
 * that says so.
 */
static s64 rpost_policies_debt(const struct rpost_tenant *tenant, struct rpost_policy **in_debt)
{
	const struct rpost_rules *rules;
	struct rpost_policy *policy;
	s64 now = ktime_get_ns(), debt, most = 0;
	int pace;

	for (policy = rcu_dereference(tenant->policy); policy;
	     policy = rcu_dereference(policy->parent)) {
		rules = rcu_dereference(policy->rules);
		for (pace = 0; pace < RPOST_NUM_PACES; pace++) {
			debt = atomic64_read(&policy->paid[pace]) - now - rpost_burst(rules);
			if (!rpost_rate(rules, pace) || debt <= most)
				continue;
			most = debt;
			*in_debt = policy;
		}
	}
	return most;
}

/*
 * Wait until no policy is in debt.  The caller holds nothing for which others wait.  Return
 * 0; -EINTR if the task is killed; or -ERESTARTNOINTR for another signal.
 */
int rpost_policy_wait(const struct rpost_tenant *tenant)
{
	struct rpost_policy *in_debt;
	bool waited = false;
	ktime_t time;

	for (;;) {
		rcu_read_lock();
		/* The policies may change meanwhile. */
		time = min_t(s64, rpost_policies_debt(tenant, &in_debt), RPOST_LOOK_NS);
		if (time) {
			rpost_policy_count(in_debt, RPOST_POLICY_COUNT_WAITS, !waited);
			rpost_policy_count(in_debt, RPOST_POLICY_COUNT_WAITED_NS, time);
		}
		rcu_read_unlock();
		if (!time)
			return 0;
		waited = true;
		set_current_state(TASK_INTERRUPTIBLE | TASK_FREEZABLE);
		schedule_hrtimeout(&time, HRTIMER_MODE_REL);
		if (fatal_signal_pending(current))
			return -EINTR;
		if (signal_pending(current))
			return -ERESTARTNOINTR;
	}
}

/* Return false, and charge nothing, if the policy is in debt. */
static bool rpost_pay(struct rpost_policy *policy, enum rpost_pace pace, s64 now, u32 bytes)
{
	const struct rpost_rules *rules = rcu_dereference(policy->rules);
	s64 old = atomic64_read(&policy->paid[pace]);
	s64 cost = rpost_cost(rules, pace, bytes);

	do {
		if (rpost_rate(rules, pace) && old > now + rpost_burst(rules))
			return false;
	} while (cost && !atomic64_try_cmpxchg(&policy->paid[pace], &old, max(old, now) + cost));
	return true;
}

/* Take back what a policy was charged for its first paces, except the time since then. */
static void rpost_unpay(struct rpost_policy *policy, int paces, u32 bytes, s64 since)
{
	const struct rpost_rules *rules = rcu_dereference(policy->rules);
	s64 cost;

	while (paces--) {
		cost = rpost_cost(rules, paces, bytes);
		atomic64_sub(cost - min(cost, since), &policy->paid[paces]);
	}
}

/* Take back what the policies below this one, or all, were charged. */
static void rpost_policies_refund(const struct rpost_tenant *tenant,
				  const struct rpost_policy *end, u32 bytes, s64 since)
{
	struct rpost_policy *policy;

	for (policy = rcu_dereference(tenant->policy); policy && policy != end;
	     policy = rcu_dereference(policy->parent))
		rpost_unpay(policy, RPOST_NUM_PACES, bytes, since);
}

/*
 * Charge a work request that is about to be posted.  Return the time (CLOCK_MONOTONIC, ns);
 * or 0, and charge nothing, if a policy is in debt, see rpost_policy_wait().
 */
s64 rpost_policy_charge(const struct rpost_tenant *tenant, u32 bytes)
{
	struct rpost_policy *policy;
	s64 now = ktime_get_ns();
	int pace = 0;

	rcu_read_lock();
	for (policy = rcu_dereference(tenant->policy); policy;
	     policy = rcu_dereference(policy->parent)) {
		for (pace = 0; pace < RPOST_NUM_PACES; pace++) {
			if (!rpost_pay(policy, pace, now, bytes))
				goto undo;
		}
	}
undo:
	if (policy) {
		rpost_unpay(policy, pace, bytes, 0);
		rpost_policies_refund(tenant, policy, bytes, 0);
	}
	rcu_read_unlock();
	return policy ? 0 : now;
}

/*
 * Take back the charge of a work request that was not posted.  when is from
 * rpost_policy_charge().  The time that has passed since has paid for it, or for what was
 * owed before, and is not taken back: what others were charged meanwhile stays.  If the rules
 * have changed since, it is not exactly what was charged.
 */
void rpost_policy_refund(const struct rpost_tenant *tenant, u32 bytes, s64 when)
{
	rcu_read_lock();
	rpost_policies_refund(tenant, NULL, bytes, ktime_get_ns() - when);
	rcu_read_unlock();
}

/* Count a work request that was posted. */
void rpost_policy_posted(const struct rpost_tenant *tenant, u32 bytes)
{
	struct rpost_policy *policy;

	rcu_read_lock();
	for (policy = rcu_dereference(tenant->policy); policy;
	     policy = rcu_dereference(policy->parent)) {
		rpost_policy_count(policy, RPOST_POLICY_COUNT_OPS, 1);
		rpost_policy_count(policy, RPOST_POLICY_COUNT_BYTES, bytes);
	}
	rcu_read_unlock();
}

/* Count a completion with an error. */
void rpost_policy_error(const struct rpost_tenant *tenant)
{
	struct rpost_policy *policy;

	rcu_read_lock();
	for (policy = rcu_dereference(tenant->policy); policy;
	     policy = rcu_dereference(policy->parent))
		rpost_policy_count(policy, RPOST_POLICY_COUNT_ERRORS, 1);
	rcu_read_unlock();
}

/* ------------------------------------------------------------ what is allowed */

static bool rpost_rules_meet(const struct rpost_rules *rules, const struct rpost_wish *wish)
{
	const struct rpost_peer *peer;
	u32 i;

	if (!(rules->says.has & (wish->listen ? RPOST_POLICY_LISTEN : RPOST_POLICY_CONNECT)))
		return true;
	for (i = 0; i < rules->says.num_peers; i++) {
		peer = &rules->peers[i];
		if (peer->listen != wish->listen)
			continue;
		/* Without an address only a peer that is every address will do. */
		if (wish->peer ? !rpost_addr_within(wish->peer->s6_addr, peer->addr, peer->prefix) :
				 peer->prefix)
			continue;
		if (wish->port < 0 ? !peer->first_port && peer->last_port == U16_MAX :
				     wish->port >= peer->first_port &&
				     wish->port <= peer->last_port)
			return true;
	}
	return false;
}

static bool rpost_rules_allow(const struct rpost_rules *rules, const struct rpost_wish *wish)
{
	return !(rules->says.forbid & wish->forbid) &&
	       (!(rules->says.has & RPOST_POLICY_LENGTH) ||
		wish->bytes <= rules->says.max_length) &&
	       (!(wish->peer || wish->anybody) || rpost_rules_meet(rules, wish));
}

/* See rpost_policy_allows(). */
int rpost_policy_ask(const struct rpost_tenant *tenant, const struct rpost_wish *wish)
{
	struct rpost_policy *policy;

	rcu_read_lock();
	for (policy = rcu_dereference(tenant->policy); policy;
	     policy = rcu_dereference(policy->parent)) {
		if (rpost_rules_allow(rcu_dereference(policy->rules), wish))
			continue;
		if (!wish->again)
			rpost_policy_count(policy, RPOST_POLICY_COUNT_REFUSALS, 1);
		break;
	}
	rcu_read_unlock();
	return policy ? -EPERM : 0;
}

/* ------------------------------------------------------------ bounds */

/*
 * Guards the charges, parents and rules of all policies: a charge goes up the chain of
 * parents, and a change of the chain moves the charges.  Taken inside rpost_tenant.lock.
 */
static DEFINE_SPINLOCK(rpost_bounds_lock);

#define rpost_locked(p)	rcu_dereference_protected(p, lockdep_is_held(&rpost_bounds_lock))

static bool rpost_rules_fit(const struct rpost_rules *rules, enum rpost_held what, unsigned long n)
{
	if (what == RPOST_HELD_QPS)
		return !(rules->says.has & RPOST_POLICY_QPS) || n <= rules->says.max_qps;
	return !(rules->says.has & RPOST_POLICY_PINNED) ||
	       n <= rules->says.max_pinned >> PAGE_SHIFT;
}

/* Add n, which may be negative, to what the policies from this one on have. */
static void rpost_policies_add(struct rpost_policy *policy, enum rpost_held what, unsigned long n)
{
	for (; policy; policy = rpost_locked(policy->parent))
		WRITE_ONCE(policy->held[what], policy->held[what] + n);
}

/* Return the policy from this one on whose bound n more would pass, or NULL. */
static struct rpost_policy *rpost_policies_full(struct rpost_policy *policy,
						enum rpost_held what, unsigned long n)
{
	for (; policy; policy = rpost_locked(policy->parent))
		if (!rpost_rules_fit(rpost_locked(policy->rules), what, policy->held[what] + n))
			break;
	return policy;
}

/*
 * Count n pages or queue pairs of a file, until rpost_policy_give().  Return false if that
 * would pass a bound; then *shared tells whether it is a cgroup's.
 */
bool rpost_policy_take(struct rpost_tenant *tenant, enum rpost_held what, unsigned long n,
		       bool *shared)
{
	struct rpost_policy *first, *full = NULL;

	spin_lock(&tenant->lock);
	first = rcu_dereference_protected(tenant->policy, lockdep_is_held(&tenant->lock));
	if (first && n) {
		spin_lock(&rpost_bounds_lock);
		full = rpost_policies_full(first, what, n);
		if (full) {
			*shared = full->cgroup;
			rpost_policy_count(full, RPOST_POLICY_COUNT_REFUSALS, 1);
		} else {
			rpost_policies_add(first, what, n);
		}
		spin_unlock(&rpost_bounds_lock);
	}
	if (!full)
		tenant->held[what] += n;
	spin_unlock(&tenant->lock);
	return !full;
}

void rpost_policy_give(struct rpost_tenant *tenant, enum rpost_held what, unsigned long n)
{
	struct rpost_policy *first;

	spin_lock(&tenant->lock);
	tenant->held[what] -= n;
	first = rcu_dereference_protected(tenant->policy, lockdep_is_held(&tenant->lock));
	if (first) {
		spin_lock(&rpost_bounds_lock);
		rpost_policies_add(first, what, -n);
		spin_unlock(&rpost_bounds_lock);
	}
	spin_unlock(&tenant->lock);
}

/* Let the file or policy of *at, which has held[], name another policy, or none. */
static void rpost_policy_point(struct rpost_policy __rcu **at, const unsigned long *held,
			       struct rpost_policy *to)
{
	struct rpost_policy *from;
	int what;

	spin_lock(&rpost_bounds_lock);
	from = rpost_locked(*at);
	rcu_assign_pointer(*at, to);
	for (what = 0; what < RPOST_NUM_HELD; what++) {
		rpost_policies_add(to, what, held[what]);
		rpost_policies_add(from, what, -held[what]);
	}
	spin_unlock(&rpost_bounds_lock);
	if (to)
		to->users++;
	if (from)
		from->users--;
}

/* The policies' mutex is held for these three. */
void rpost_policy_set_parent(struct rpost_policy *policy, struct rpost_policy *parent)
{
	rpost_policy_point(&policy->parent, policy->held, parent);
}

void rpost_policy_name(struct rpost_tenant *tenant, struct rpost_policy *policy)
{
	spin_lock(&tenant->lock);
	rpost_policy_point(&tenant->policy, tenant->held, policy);
	spin_unlock(&tenant->lock);
}

/* Return the old rules, which are still read until a grace period has passed. */
struct rpost_rules *rpost_policy_set_rules(struct rpost_policy *policy, struct rpost_rules *rules)
{
	spin_lock(&rpost_bounds_lock);
	rules = rcu_replace_pointer(policy->rules, rules, lockdep_is_held(&rpost_bounds_lock));
	spin_unlock(&rpost_bounds_lock);
	return rules;
}
