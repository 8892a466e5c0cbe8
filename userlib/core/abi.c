// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The system calls, the open file, and assertions that constants of the ABI
 * equal those of verbs.
 */
#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include <rdma/rdma_post.h>

#include "core/internal.h"

#define SAME(abi, verbs) \
	static_assert((unsigned int)(abi) == (unsigned int)(verbs), #abi)

SAME(RPOST_NODE_CA, IBV_NODE_CA);
SAME(RPOST_NODE_RNIC, IBV_NODE_RNIC);
SAME(RPOST_TRANSPORT_IB, IBV_TRANSPORT_IB);
SAME(RPOST_TRANSPORT_IWARP, IBV_TRANSPORT_IWARP);

SAME(RPOST_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(RPOST_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(RPOST_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(RPOST_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(RPOST_ACCESS_ON_DEMAND, IBV_ACCESS_ON_DEMAND);
SAME(RPOST_ACCESS_RELAXED_ORDERING, IBV_ACCESS_RELAXED_ORDERING);

SAME(RPOST_ODP_SUPPORT, IBV_ODP_SUPPORT);
SAME(RPOST_ADVICE_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH);
SAME(RPOST_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
SAME(RPOST_ADVICE_PREFETCH_NO_FAULT, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);
SAME(RPOST_ADVISE_FLUSH, IBV_ADVISE_MR_FLAG_FLUSH);

SAME(RPOST_WC_SUCCESS, IBV_WC_SUCCESS);
SAME(RPOST_WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
SAME(RPOST_WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR);
SAME(RPOST_WC_LOC_EEC_OP_ERR, IBV_WC_LOC_EEC_OP_ERR);
SAME(RPOST_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
SAME(RPOST_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
SAME(RPOST_WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR);
SAME(RPOST_WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR);
SAME(RPOST_WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR);
SAME(RPOST_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
SAME(RPOST_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
SAME(RPOST_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
SAME(RPOST_WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
SAME(RPOST_WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(RPOST_WC_GENERAL_ERR, IBV_WC_GENERAL_ERR);

SAME(RPOST_WC_SEND, IBV_WC_SEND);
SAME(RPOST_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE);
SAME(RPOST_WC_RDMA_READ, IBV_WC_RDMA_READ);
SAME(RPOST_WC_COMP_SWAP, IBV_WC_COMP_SWAP);
SAME(RPOST_WC_FETCH_ADD, IBV_WC_FETCH_ADD);
SAME(RPOST_WC_RECV, IBV_WC_RECV);
SAME(RPOST_WC_RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
SAME(RPOST_WC_F_GRH, IBV_WC_GRH);
SAME(RPOST_WC_F_WITH_IMM, IBV_WC_WITH_IMM);
SAME(RPOST_WC_F_WITH_INV, IBV_WC_WITH_INV);

SAME(RPOST_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ADDR_RESOLVED);
SAME(RPOST_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ADDR_ERROR);
SAME(RPOST_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_ROUTE_RESOLVED);
SAME(RPOST_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_ROUTE_ERROR);
SAME(RPOST_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_REQUEST);
SAME(RPOST_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_CONNECT_RESPONSE);
SAME(RPOST_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_CONNECT_ERROR);
SAME(RPOST_EVENT_UNREACHABLE, RDMA_CM_EVENT_UNREACHABLE);
SAME(RPOST_EVENT_REJECTED, RDMA_CM_EVENT_REJECTED);
SAME(RPOST_EVENT_ESTABLISHED, RDMA_CM_EVENT_ESTABLISHED);
SAME(RPOST_EVENT_DISCONNECTED, RDMA_CM_EVENT_DISCONNECTED);
SAME(RPOST_EVENT_DEVICE_REMOVAL, RDMA_CM_EVENT_DEVICE_REMOVAL);
SAME(RPOST_EVENT_MULTICAST_JOIN, RDMA_CM_EVENT_MULTICAST_JOIN);
SAME(RPOST_EVENT_MULTICAST_ERROR, RDMA_CM_EVENT_MULTICAST_ERROR);
SAME(RPOST_EVENT_ADDR_CHANGE, RDMA_CM_EVENT_ADDR_CHANGE);
SAME(RPOST_EVENT_TIMEWAIT_EXIT, RDMA_CM_EVENT_TIMEWAIT_EXIT);

SAME(RPOST_ASYNC_CQ_ERR, IBV_EVENT_CQ_ERR);
SAME(RPOST_ASYNC_QP_FATAL, IBV_EVENT_QP_FATAL);
SAME(RPOST_ASYNC_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
SAME(RPOST_ASYNC_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
SAME(RPOST_ASYNC_COMM_EST, IBV_EVENT_COMM_EST);
SAME(RPOST_ASYNC_SQ_DRAINED, IBV_EVENT_SQ_DRAINED);
SAME(RPOST_ASYNC_PATH_MIG, IBV_EVENT_PATH_MIG);
SAME(RPOST_ASYNC_PATH_MIG_ERR, IBV_EVENT_PATH_MIG_ERR);
SAME(RPOST_ASYNC_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
SAME(RPOST_ASYNC_PORT_ACTIVE, IBV_EVENT_PORT_ACTIVE);
SAME(RPOST_ASYNC_PORT_ERR, IBV_EVENT_PORT_ERR);
SAME(RPOST_ASYNC_LID_CHANGE, IBV_EVENT_LID_CHANGE);
SAME(RPOST_ASYNC_PKEY_CHANGE, IBV_EVENT_PKEY_CHANGE);
SAME(RPOST_ASYNC_SM_CHANGE, IBV_EVENT_SM_CHANGE);
SAME(RPOST_ASYNC_SRQ_ERR, IBV_EVENT_SRQ_ERR);
SAME(RPOST_ASYNC_SRQ_LIMIT_REACHED, IBV_EVENT_SRQ_LIMIT_REACHED);
SAME(RPOST_ASYNC_QP_LAST_WQE_REACHED, IBV_EVENT_QP_LAST_WQE_REACHED);
SAME(RPOST_ASYNC_CLIENT_REREGISTER, IBV_EVENT_CLIENT_REREGISTER);
SAME(RPOST_ASYNC_GID_CHANGE, IBV_EVENT_GID_CHANGE);

SAME(RPOST_SRQ_MAX_WR, IBV_SRQ_MAX_WR);
SAME(RPOST_SRQ_LIMIT, IBV_SRQ_LIMIT);

SAME(RPOST_GID_IB, IBV_GID_TYPE_IB);
SAME(RPOST_GID_ROCE_V1, IBV_GID_TYPE_ROCE_V1);
SAME(RPOST_GID_ROCE_V2, IBV_GID_TYPE_ROCE_V2);

SAME(RPOST_PS_IPOIB, RDMA_PS_IPOIB);
SAME(RPOST_PS_TCP, RDMA_PS_TCP);
SAME(RPOST_PS_UDP, RDMA_PS_UDP);
SAME(RPOST_PS_IB, RDMA_PS_IB);

SAME(RPOST_QPT_RC, IBV_QPT_RC);
SAME(RPOST_QPT_UC, IBV_QPT_UC);
SAME(RPOST_QPT_UD, IBV_QPT_UD);

SAME(RPOST_QP_STATE, IBV_QP_STATE);
SAME(RPOST_QP_CUR_STATE, IBV_QP_CUR_STATE);
SAME(RPOST_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME(RPOST_QP_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(RPOST_QP_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(RPOST_QP_PORT, IBV_QP_PORT);
SAME(RPOST_QP_QKEY, IBV_QP_QKEY);
SAME(RPOST_QP_AV, IBV_QP_AV);
SAME(RPOST_QP_PATH_MTU, IBV_QP_PATH_MTU);
SAME(RPOST_QP_TIMEOUT, IBV_QP_TIMEOUT);
SAME(RPOST_QP_RETRY_CNT, IBV_QP_RETRY_CNT);
SAME(RPOST_QP_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(RPOST_QP_RQ_PSN, IBV_QP_RQ_PSN);
SAME(RPOST_QP_MAX_QP_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(RPOST_QP_ALT_PATH, IBV_QP_ALT_PATH);
SAME(RPOST_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(RPOST_QP_SQ_PSN, IBV_QP_SQ_PSN);
SAME(RPOST_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(RPOST_QP_PATH_MIG_STATE, IBV_QP_PATH_MIG_STATE);
SAME(RPOST_QP_DEST_QPN, IBV_QP_DEST_QPN);
SAME(RPOST_QP_RATE_LIMIT, IBV_QP_RATE_LIMIT);

SAME(RPOST_QPS_RESET, IBV_QPS_RESET);
SAME(RPOST_QPS_INIT, IBV_QPS_INIT);
SAME(RPOST_QPS_RTR, IBV_QPS_RTR);
SAME(RPOST_QPS_RTS, IBV_QPS_RTS);
SAME(RPOST_QPS_SQD, IBV_QPS_SQD);
SAME(RPOST_QPS_SQE, IBV_QPS_SQE);
SAME(RPOST_QPS_ERR, IBV_QPS_ERR);

SAME(RPOST_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE);
SAME(RPOST_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM);
SAME(RPOST_WR_SEND, IBV_WR_SEND);
SAME(RPOST_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM);
SAME(RPOST_WR_RDMA_READ, IBV_WR_RDMA_READ);
SAME(RPOST_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP);
SAME(RPOST_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
SAME(RPOST_WR_SEND_WITH_INV, IBV_WR_SEND_WITH_INV);

SAME(RPOST_SEND_FENCE, IBV_SEND_FENCE);
SAME(RPOST_SEND_SIGNALED, IBV_SEND_SIGNALED);
SAME(RPOST_SEND_SOLICITED, IBV_SEND_SOLICITED);
SAME(RPOST_SEND_INLINE, IBV_SEND_INLINE);

/* The library copies arrays of struct ibv_sge to struct rpost_sge. */
SAME(sizeof(struct rpost_sge), sizeof(struct ibv_sge));
SAME(offsetof(struct rpost_sge, addr), offsetof(struct ibv_sge, addr));
SAME(offsetof(struct rpost_sge, length), offsetof(struct ibv_sge, length));
SAME(offsetof(struct rpost_sge, lkey), offsetof(struct ibv_sge, lkey));

static_assert(sizeof(struct rpost_ring) == 128, "ring");
static_assert(sizeof(struct rpost_wc) == 64, "wc");

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rpost_file *current_file;		/* under file_lock */

unsigned int rpost_forks;

int rpost_call(int fd, unsigned long cmd, void *arg)
{
	int ret = ioctl(fd, cmd, arg);

	if (ret >= 0)
		return ret;
	/* The module does not know the command. */
	ret = errno == ENOTTY ? EOPNOTSUPP : errno;
	rpost_debug_command(cmd, arg, ret);
	return -ret;
}

int rpost_do_ioctl(int fd, unsigned long cmd, void *arg)
{
	int ret = rpost_call(fd, cmd, arg);

	return ret < 0 ? -ret : 0;
}

int rpost_destroy_handle(int fd, uint32_t type, uint32_t handle)
{
	struct rpost_destroy cmd = { .type = type, .handle = handle };

	return rpost_ioctl(fd, RPOST_IOC_DESTROY, &cmd);
}

static bool locked_for_fork;		/* under file_lock */

static void before_fork(void)
{
	/* If this is in a signal handler, the only thread may hold the locks itself. */
	if (rpost_is_alone())
		return;
	pthread_mutex_lock(&file_lock);
	rpost_maps_before_fork();
	locked_for_fork = true;
}

static void after_fork(void)
{
	if (!locked_for_fork)
		return;
	locked_for_fork = false;
	rpost_maps_after_fork();
	pthread_mutex_unlock(&file_lock);
}

/*
 * Objects that the child makes must not be in the parent's file: they would
 * outlive the child.
 */
static void after_fork_in_child(void)
{
	current_file = NULL;
	rpost_forks++;
	after_fork();
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

bool rpost_env_is(const char *name, const char *value)
{
	const char *env = secure_getenv(name);

	return env && !strcmp(env, value);
}

/* Returns a file over @fd, which stays open after an error. */
static struct rpost_file *file_over(int fd)
{
	struct rpost_query query = {};
	struct rpost_file *file;
	int err;

	err = rpost_ioctl(fd, RPOST_IOC_QUERY, &query);
	if (!err && query.abi_version != RPOST_ABI_VERSION)
		err = EPROTONOSUPPORT;
	if (err)
		return rpost_null(err);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;

	file->fd = fd;
	file->max_wr_bytes = query.max_wr_bytes;
	file->any_memory = rpost_env_is("RDMA_POST_ANY_MEMORY", "1");
	rpost_table_init(&file->ids);
	rpost_table_init(&file->objects);
	pthread_rwlock_init(&file->qp_nums, NULL);
	pthread_mutex_init(&file->lock, NULL);
	return file;
}

/* The descriptor of the last rdma_post_use(), also after a fork; under file_lock. */
static int used_fd = -1;

/* Returns a file over a descriptor that the program was started with, see rdma-post run. */
static struct rpost_file *file_inherited(const char *text)
{
	struct rpost_file *file = NULL;
	char *end;
	long fd = strtol(text, &end, 10);

	if (end == text || *end || fd < 0 || fd > INT_MAX)
		errno = EBADF;
	else
		file = rpost_file_import(fd);
	if (!file)
		rpost_debug_failed("RDMA_POST_FD", errno);
	return file;
}

static struct rpost_file *file_open(void)
{
	const char *inherited = secure_getenv("RDMA_POST_FD");
	struct rpost_file *file;
	int fd, err;

	if (used_fd >= 0)
		return rpost_file_import(used_fd);
	if (inherited)
		return file_inherited(inherited);
	fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		rpost_debug_failed("open " RPOST_DEVICE_PATH, errno);
		return NULL;
	}
	file = file_over(fd);
	if (!file) {
		err = errno;
		close(fd);
		errno = err;
	}
	return file;
}

struct rpost_file *rpost_file_import(int fd)
{
	struct rpost_file *file = file_over(fd);
	uint64_t random;
	int err;

	if (!file)
		return NULL;
	if (getrandom(&random, sizeof(random), 0) < 0) {
		err = errno;
		rpost_file_forget(file);
		return rpost_null(err);
	}
	/* 40 random bits, above what a process counts. */
	file->first_number = random << 24;
	return file;
}

void rpost_file_forget(struct rpost_file *file)
{
	pthread_mutex_destroy(&file->lock);
	pthread_rwlock_destroy(&file->qp_nums);
	pthread_mutex_destroy(&file->objects.lock);
	pthread_mutex_destroy(&file->ids.lock);
	free(file);
}

/*
 * Returns the file in which this process makes new channels and contexts, or
 * NULL with errno.  After a failure the next call tries again, since the module
 * may be loaded by then.
 */
struct rpost_file *rpost_file_get(void)
{
	struct rpost_file *file;

	pthread_mutex_lock(&file_lock);
	if (!current_file)
		current_file = file_open();
	file = current_file;
	pthread_mutex_unlock(&file_lock);
	if (file)
		rpost_warn_memlock();
	return file;
}

/* See <rdma/rdma_post.h>. */
RPOST_API int rdma_post_open(const struct rpost_policy_rules *rules)
{
	struct rpost_set_policy cmd = {};
	int fd = open(RPOST_DEVICE_PATH, O_RDWR | O_CLOEXEC), err = 0;

	if (fd < 0)
		return -1;
	if (rules) {
		cmd.rules = *rules;
		err = rpost_ioctl(fd, RPOST_IOC_SET_POLICY, &cmd);
	}
	if (err) {
		close(fd);
		return rpost_fail(err);
	}
	return fd;
}

/* See <rdma/rdma_post.h>. */
RPOST_API int rdma_post_use(int fd)
{
	struct rpost_file *file = NULL;

	pthread_mutex_lock(&file_lock);
	if (current_file)
		errno = EBUSY;
	else
		file = rpost_file_import(fd);
	if (file) {
		current_file = file;
		used_fd = fd;
	}
	pthread_mutex_unlock(&file_lock);
	return file ? 0 : -1;
}

void rpost_table_init(struct rpost_table *table)
{
	pthread_mutex_init(&table->lock, NULL);
}

static struct rpost_node **bucket(struct rpost_table *table, uint64_t key)
{
	return &table->bucket[key % ARRAY_SIZE(table->bucket)];
}

void rpost_table_add(struct rpost_table *table, struct rpost_node *node)
{
	struct rpost_node **head = bucket(table, node->key);

	pthread_mutex_lock(&table->lock);
	node->next = *head;
	*head = node;
	pthread_mutex_unlock(&table->lock);
}

void rpost_table_del(struct rpost_table *table, struct rpost_node *node)
{
	struct rpost_node **pos = bucket(table, node->key);

	pthread_mutex_lock(&table->lock);
	while (*pos && *pos != node)
		pos = &(*pos)->next;
	if (*pos)
		*pos = node->next;
	pthread_mutex_unlock(&table->lock);
}

struct rpost_node *rpost_table_find(struct rpost_table *table, uint64_t key)
{
	struct rpost_node *node = *bucket(table, key);

	while (node && node->key != key)
		node = node->next;
	return node;
}
