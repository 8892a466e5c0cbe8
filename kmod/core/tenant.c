// SPDX-License-Identifier: GPL-2.0
/*
 * Which policies apply to an open file: SET_POLICY and GET_POLICY.  See struct
 * rpost_policy.
 */
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "core/core.h"

#if !IS_ENABLED(CONFIG_CGROUPS)
#error "Policies hang at cgroups: this needs CONFIG_CGROUPS"
#endif

/* A policy goes within twice this time after its cgroup. */
#define RPOST_SWEEP_TIME	(5 * HZ)

/* Guards the lists, and what files and policies name. */
static DEFINE_MUTEX(rpost_policies_lock);
static LIST_HEAD(rpost_policies);	/* of cgroups, by id */
static LIST_HEAD(rpost_tenants);

static void rpost_policies_sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(rpost_sweep_work, rpost_policies_sweep);

/* Return the policy of a cgroup or of the next one above that has one, or NULL. */
static struct rpost_policy *rpost_policy_above(struct cgroup *cgroup)
{
	struct rpost_policy *policy, *best = NULL;

	lockdep_assert_held(&rpost_policies_lock);

	list_for_each_entry(policy, &rpost_policies, link) {
		if (cgroup_is_descendant(cgroup, policy->cgroup) &&
		    (!best || policy->cgroup->level > best->cgroup->level))
			best = policy;
	}
	return best;
}

static struct rpost_policy *rpost_policy_parent(const struct rpost_policy *policy)
{
	return rcu_dereference_protected(policy->parent, lockdep_is_held(&rpost_policies_lock));
}

static struct rpost_policy *rpost_tenant_policy(const struct rpost_tenant *tenant)
{
	return rcu_dereference_protected(tenant->policy, lockdep_is_held(&rpost_policies_lock));
}

/* Return the policy of a file's own, or NULL. */
static struct rpost_policy *rpost_tenant_own(const struct rpost_tenant *tenant)
{
	struct rpost_policy *policy = rpost_tenant_policy(tenant);

	return policy && !policy->cgroup ? policy : NULL;
}

/* Have the files and policies that name a cgroup's policy, or none, name another one. */
static void rpost_policies_move(struct rpost_policy *from, struct rpost_policy *to,
				struct cgroup *below)
{
	struct rpost_policy *policy;
	struct rpost_tenant *tenant;

	list_for_each_entry(policy, &rpost_policies, link) {
		if (policy != to && rpost_policy_parent(policy) == from &&
		    cgroup_is_descendant(policy->cgroup, below))
			rpost_policy_set_parent(policy, to);
	}
	list_for_each_entry(tenant, &rpost_tenants, link) {
		cond_resched();
		if (!cgroup_is_descendant(tenant->cgroup, below))
			continue;
		policy = rpost_tenant_own(tenant);
		if (policy && rpost_policy_parent(policy) == from)
			rpost_policy_set_parent(policy, to);
		else if (!policy && rpost_tenant_policy(tenant) == from)
			rpost_policy_name(tenant, to);
	}
}

static void rpost_policy_free(struct rcu_head *rcu)
{
	struct rpost_policy *policy = container_of(rcu, struct rpost_policy, rcu);

	kfree(rcu_dereference_protected(policy->rules, true));
	if (policy->cgroup)
		cgroup_put(policy->cgroup);
	kfree(policy);
}

/* Nobody names the policy any more.  Its readers go on to those above. */
static void rpost_policy_end(struct rpost_policy *policy)
{
	struct rpost_policy *parent = rpost_policy_parent(policy);

	WARN_ON_ONCE(policy->users);
	if (parent)
		parent->users--;
	call_rcu(&policy->rcu, rpost_policy_free);
}

/* Take the policy of a cgroup away. */
static void rpost_policy_remove(struct rpost_policy *policy)
{
	list_del(&policy->link);
	rpost_policies_move(policy, rpost_policy_parent(policy), policy->cgroup);
	rpost_policy_end(policy);
}

static void rpost_sweep_later(void)
{
	queue_delayed_work(system_power_efficient_wq, &rpost_sweep_work, RPOST_SWEEP_TIME);
}

static void rpost_policies_sweep(struct work_struct *work)
{
	struct rpost_policy *policy, *next;

	mutex_lock(&rpost_policies_lock);
	list_for_each_entry_safe_reverse(policy, next, &rpost_policies, link) {
		/* A file that somebody still has stays under it. */
		if (!(READ_ONCE(policy->cgroup->self.flags) & CSS_ONLINE) && !policy->users)
			rpost_policy_remove(policy);
	}
	if (!list_empty(&rpost_policies))
		rpost_sweep_later();
	mutex_unlock(&rpost_policies_lock);
}

void rpost_tenants_exit(void)
{
	cancel_delayed_work_sync(&rpost_sweep_work);
	mutex_lock(&rpost_policies_lock);
	while (!list_empty(&rpost_policies))
		rpost_policy_remove(list_first_entry(&rpost_policies, struct rpost_policy, link));
	mutex_unlock(&rpost_policies_lock);
	rcu_barrier();
}

/* The file of a task comes under the policies of its cgroup, until rpost_tenant_close(). */
void rpost_tenant_open(struct rpost_tenant *tenant)
{
	struct rpost_policy *policy;

	rcu_read_lock();
	do {
		tenant->cgroup = task_dfl_cgroup(current);
	} while (!cgroup_tryget(tenant->cgroup));
	rcu_read_unlock();

	spin_lock_init(&tenant->lock);
	mutex_lock(&rpost_policies_lock);
	policy = rpost_policy_above(tenant->cgroup);
	if (policy)
		rpost_policy_name(tenant, policy);
	list_add(&tenant->link, &rpost_tenants);
	mutex_unlock(&rpost_policies_lock);
}

void rpost_tenant_close(struct rpost_tenant *tenant)
{
	struct rpost_policy *policy;

	mutex_lock(&rpost_policies_lock);
	list_del(&tenant->link);
	policy = rpost_tenant_own(tenant);
	rpost_policy_name(tenant, NULL);
	if (policy)
		rpost_policy_end(policy);
	mutex_unlock(&rpost_policies_lock);
	cgroup_put(tenant->cgroup);
}

/* ------------------------------------------------------------ commands */

/* Take over the reference on the cgroup, and the rules. */
static int rpost_set_cgroup_policy(struct cgroup *cgroup, struct rpost_rules *rules)
{
	struct rpost_policy *policy, *above, *fresh = rpost_policy_alloc(rules, cgroup);
	struct list_head *at;

	if (!fresh)
		return -ENOMEM;
	mutex_lock(&rpost_policies_lock);
	above = rpost_policy_above(cgroup);
	if (above && above->cgroup == cgroup) {
		kfree_rcu(rpost_policy_set_rules(above, rules), rcu);
		RCU_INIT_POINTER(fresh->rules, NULL);
		rpost_policy_free(&fresh->rcu);
	} else {
		list_for_each(at, &rpost_policies) {
			policy = list_entry(at, struct rpost_policy, link);
			if (cgroup_id(policy->cgroup) > cgroup_id(cgroup))
				break;
		}
		if (above)
			rpost_policy_set_parent(fresh, above);
		list_add_tail(&fresh->link, at);
		rpost_policies_move(above, fresh, cgroup);
		rpost_sweep_later();
	}
	mutex_unlock(&rpost_policies_lock);
	return 0;
}

static int rpost_remove_cgroup_policy(struct cgroup *cgroup)
{
	struct rpost_policy *policy;
	int ret = -ENOENT;

	mutex_lock(&rpost_policies_lock);
	policy = rpost_policy_above(cgroup);
	if (policy && policy->cgroup == cgroup) {
		rpost_policy_remove(policy);
		ret = 0;
	}
	mutex_unlock(&rpost_policies_lock);
	cgroup_put(cgroup);
	return ret;
}

/* Take over the rules. */
static int rpost_set_own_policy(struct rpost_tenant *tenant, struct rpost_rules *rules)
{
	struct rpost_policy *policy, *fresh = rpost_policy_alloc(rules, NULL);
	const struct rpost_rules *old;
	int ret = 0;

	if (!fresh) {
		kfree(rules);
		return -ENOMEM;
	}
	mutex_lock(&rpost_policies_lock);
	policy = rpost_tenant_own(tenant);
	if (!policy) {
		rpost_policy_set_parent(fresh, rpost_tenant_policy(tenant));
		rpost_policy_name(tenant, fresh);
		mutex_unlock(&rpost_policies_lock);
		return 0;
	}
	old = rcu_dereference_protected(policy->rules, lockdep_is_held(&rpost_policies_lock));
	if (rpost_rules_within(rules, old)) {
		kfree_rcu(rpost_policy_set_rules(policy, rules), rcu);
		RCU_INIT_POINTER(fresh->rules, NULL);
	} else {
		ret = -EPERM;
	}
	mutex_unlock(&rpost_policies_lock);
	rpost_policy_free(&fresh->rcu);
	return ret;
}

int rpost_set_policy_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_set_policy *cmd = &ucmd->cmd.set_policy;
	bool remove = cmd->flags & RPOST_POLICY_REMOVE;
	struct cgroup *cgroup = NULL;
	struct rpost_rules *rules;
	int ret;

	if (cmd->reserved)
		return -EOPNOTSUPP;
	if (remove && (!(cmd->flags & RPOST_POLICY_CGROUP) ||
		       memchr_inv(&cmd->rules, 0, sizeof(cmd->rules))))
		return -EINVAL;
	if (!(cmd->flags & RPOST_POLICY_CGROUP)) {
		if (cmd->cgroup_fd)
			return -EINVAL;
		/* Only the opener narrows the file, and not by a descriptor of SHARE_DEVICE. */
		if (ucmd->filp->private_data != ucmd->file ||
		    task_tgid_nr(current) != ucmd->file->pid)
			return -EPERM;
		rules = rpost_rules_get(&cmd->rules);
		return IS_ERR(rules) ? PTR_ERR(rules) :
				       rpost_set_own_policy(&ucmd->file->tenant, rules);
	}
	if (!capable(CAP_SYS_RESOURCE))
		return -EPERM;
	cgroup = cgroup_get_from_fd(cmd->cgroup_fd);
	if (IS_ERR(cgroup))
		return -EBADF;
	if (remove)
		return rpost_remove_cgroup_policy(cgroup);
	rules = rpost_rules_get(&cmd->rules);
	if (IS_ERR(rules)) {
		cgroup_put(cgroup);
		return PTR_ERR(rules);
	}
	ret = rpost_set_cgroup_policy(cgroup, rules);
	if (ret) {
		kfree(rules);
		cgroup_put(cgroup);
	}
	return ret;
}

/* Copy the rules' peers, as far as there is room, to @to. */
static void rpost_policy_fill(struct rpost_get_policy *cmd, const struct rpost_policy *policy,
			      struct rpost_peer *peers)
{
	const struct rpost_rules *rules;
	u64 user_peers = cmd->rules.peers;
	u32 room = cmd->rules.num_peers;

	rules = rcu_dereference_protected(policy->rules, lockdep_is_held(&rpost_policies_lock));
	cmd->rules = rules->says;
	cmd->rules.peers = user_peers;
	memcpy(peers, rules->peers, min(room, rules->says.num_peers) * sizeof(*peers));
	cmd->cgroup = policy->cgroup ? cgroup_id(policy->cgroup) : 0;
	cmd->ops = atomic64_read(&policy->counts[RPOST_POLICY_COUNT_OPS]);
	cmd->bytes = atomic64_read(&policy->counts[RPOST_POLICY_COUNT_BYTES]);
	cmd->errors = atomic64_read(&policy->counts[RPOST_POLICY_COUNT_ERRORS]);
	cmd->waits = atomic64_read(&policy->counts[RPOST_POLICY_COUNT_WAITS]);
	cmd->waited_us = div_u64(atomic64_read(&policy->counts[RPOST_POLICY_COUNT_WAITED_NS]),
				 NSEC_PER_USEC);
	cmd->refusals = atomic64_read(&policy->counts[RPOST_POLICY_COUNT_REFUSALS]);
	cmd->pinned = (u64)READ_ONCE(policy->held[RPOST_HELD_PAGES]) << PAGE_SHIFT;
	cmd->num_qps = READ_ONCE(policy->held[RPOST_HELD_QPS]);
}

/* The file has no policy of its own. */
static void rpost_policy_fill_none(struct rpost_get_policy *cmd)
{
	*cmd = (struct rpost_get_policy) {
		.size = cmd->size,
		.rules.peers = cmd->rules.peers,
	};
}

/* Return the policy that the program asks for, or NULL. */
static const struct rpost_policy *rpost_policy_asked(struct rpost_tenant *tenant,
						     const struct rpost_get_policy *cmd)
{
	const struct rpost_policy *policy;

	if (!(cmd->flags & RPOST_POLICY_CGROUP))
		return rpost_tenant_own(tenant);
	list_for_each_entry(policy, &rpost_policies, link) {
		if (cgroup_id(policy->cgroup) > cmd->cgroup)
			return policy;
	}
	return NULL;
}

int rpost_get_policy_ioctl(struct rpost_ucmd *ucmd)
{
	struct rpost_get_policy *cmd = &ucmd->cmd.get_policy;
	u32 room = cmd->rules.num_peers, num;
	const struct rpost_policy *policy;
	struct rpost_peer *peers;
	int ret = 0;

	if (cmd->reserved || cmd->rules.reserved)
		return -EOPNOTSUPP;
	if (room > RPOST_MAX_PEERS)
		return -EINVAL;
	if (!(cmd->flags & RPOST_POLICY_CGROUP) && cmd->cgroup)
		return -EINVAL;
	if ((cmd->flags & RPOST_POLICY_CGROUP) && !capable(CAP_SYS_RESOURCE))
		return -EPERM;
	peers = kcalloc(RPOST_MAX_PEERS, sizeof(*peers), RPOST_GFP);
	if (!peers)
		return -ENOMEM;
	mutex_lock(&rpost_policies_lock);
	policy = rpost_policy_asked(&ucmd->file->tenant, cmd);
	if (policy)
		rpost_policy_fill(cmd, policy, peers);
	else if (cmd->flags & RPOST_POLICY_CGROUP)
		ret = -ENOENT;
	else
		rpost_policy_fill_none(cmd);
	mutex_unlock(&rpost_policies_lock);
	num = min(room, cmd->rules.num_peers);
	if (!ret && copy_to_user(u64_to_user_ptr(cmd->rules.peers), peers,
				 num * sizeof(*peers)))
		ret = -EFAULT;
	kfree(peers);
	return ret ? : rpost_respond(ucmd);
}
