// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A kernel module for the tests.  Writing to
 * /sys/module/qp_error/parameters/break moves those queue pairs of the kernel to
 * the error state that are connected to themselves on the RDMA device that was
 * added last: only rdma_post has such.  Reading returns their number.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <rdma/ib_verbs.h>

/* Larger than all queue pair numbers of rxe. */
#define QP_ERROR_NUMS	0x20000

static DEFINE_MUTEX(qp_error_lock);
static struct ib_device *qp_error_device;
static int qp_error_count;

static int qp_error_add(struct ib_device *ib_dev)
{
	mutex_lock(&qp_error_lock);
	qp_error_device = ib_dev;
	mutex_unlock(&qp_error_lock);
	return 0;
}

static void qp_error_remove(struct ib_device *ib_dev, void *client_data)
{
	mutex_lock(&qp_error_lock);
	if (qp_error_device == ib_dev)
		qp_error_device = NULL;
	mutex_unlock(&qp_error_lock);
}

static struct ib_client qp_error_client = {
	.name	= "qp_error",
	.add	= qp_error_add,
	.remove	= qp_error_remove,
};

/* The caller's reference to the restrack entry keeps the queue pair. */
static bool qp_error_break(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {}, error = { .qp_state = IB_QPS_ERR };
	struct ib_qp_init_attr init;

	if (!rdma_is_kernel_res(&qp->res) || qp->qp_type != IB_QPT_RC)
		return false;
	if (ib_query_qp(qp, &attr, IB_QP_DEST_QPN, &init) ||
	    attr.dest_qp_num != qp->qp_num)
		return false;
	return !ib_modify_qp(qp, &error, IB_QP_STATE);
}

static int qp_error_set(const char *val, const struct kernel_param *kp)
{
	struct rdma_restrack_entry *res;
	int count = 0;
	u32 num;

	mutex_lock(&qp_error_lock);
	for (num = 2; qp_error_device && num < QP_ERROR_NUMS; num++) {
		res = rdma_restrack_get_byid(qp_error_device, RDMA_RESTRACK_QP,
					     num);
		if (IS_ERR(res))
			continue;
		if (qp_error_break(container_of(res, struct ib_qp, res)))
			count++;
		rdma_restrack_put(res);
		cond_resched();
	}
	qp_error_count = count;
	mutex_unlock(&qp_error_lock);
	return 0;
}

static int qp_error_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(qp_error_count));
}

static const struct kernel_param_ops qp_error_ops = {
	.set = qp_error_set,
	.get = qp_error_get,
};

module_param_cb(break, &qp_error_ops, NULL, 0600);
MODULE_PARM_DESC(break, "Write: break queue pairs.  Read: how many were broken");

static int __init qp_error_init(void)
{
	return ib_register_client(&qp_error_client);
}
module_init(qp_error_init);

static void __exit qp_error_exit(void)
{
	ib_unregister_client(&qp_error_client);
}
module_exit(qp_error_exit);

MODULE_DESCRIPTION("Queue pairs in error, for the selftests of rdma_post");
MODULE_AUTHOR("The rdma_post developers");
MODULE_LICENSE("Dual BSD/GPL");
