// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receives that wait for the next call, with which they go (RPOST_IOC_SUBMIT).
 *
 * With RDMA_POST_LATE_RECV=1, a single receive that takes the place of one that has
 * completed waits here for the next call of the library that enters the kernel,
 * whichever that is, if the device has enough others; see may_wait().  The peer
 * cannot learn by a message of a receive that the device has not got, but it can in
 * another way.  If the program then waits for the peer in another way, it waits for
 * ever; therefore it has to be asked for.
 *
 * Receives wait only while the process has a single thread: another thread could need
 * the receive while this one makes no call.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "internal.h"

#define MAX_PARTS	32
#define WAITING_BYTES	1536
#define MAX_WAITING	16	/* receives of a queue pair */
#define ENOUGH		4	/* times as many are with the device */
#define MAX_SGE		4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A signal handler that forks finds this set if it has interrupted a change. */
static volatile sig_atomic_t changing;

/*
 * The receives that wait, each part of another queue pair.  Changed under lock, or by
 * the only thread.
 */
static struct {
	struct rpost_file *file;
	uint32_t parts;
	uint32_t used;
	struct rpost_qp *qps[MAX_PARTS];
	uint64_t buf[WAITING_BYTES / sizeof(uint64_t)];
} waiting;

bool rpost_recvs_wait;			/* there are some */

static void lock_waiting(void)
{
	if (!rpost_is_alone())
		pthread_mutex_lock(&lock);
	changing = true;
	atomic_signal_fence(memory_order_seq_cst);
}

static void unlock_waiting(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	changing = false;
	if (!rpost_is_alone())
		pthread_mutex_unlock(&lock);
}

/* ------------------------------------------------------------ submitting */

static int submit(int fd, const void *parts, uint32_t bytes, uint32_t count,
		  struct rpost_submit *cmd)
{
	*cmd = (struct rpost_submit) {
		.size = sizeof(*cmd),
		.parts = (uintptr_t)parts,
		.bytes = bytes,
		.count = count,
	};
	return ioctl(fd, RPOST_IOC_SUBMIT, cmd) ? errno : 0;
}

/* @qp->may_wait, so its completion queue counts. */
static uint32_t *recvs_seen(const struct rpost_qp *qp)
{
	return &rpost_cq(qp->ibv.recv_cq)->recvs[qp->ibv.qp_num % RPOST_NUM_RECVS];
}

/* The device has as many receives of @qp now, or more. */
static void set_queued(struct rpost_qp *qp, uint32_t queued)
{
	qp->queued = queued;
	qp->recvs_seen = *recvs_seen(qp);
}

static void part_is_posted(struct rpost_qp *qp, const struct rpost_submit_part *part)
{
	uint32_t done = *recvs_seen(qp) - qp->recvs_seen;

	set_queued(qp, qp->queued + part->count > done ?
		       qp->queued + part->count - done : 0);
	qp->waiting = 0;
}

/* Leaves out the first @n receives of a part. */
static void cut_part(struct rpost_submit_part *part, uint32_t n)
{
	char *wr = (char *)(part + 1), *end = (char *)part + part->size;
	uint32_t bytes = 0, i;

	for (i = 0; i < n; i++)
		bytes += ((struct rpost_recv_wr *)(wr + bytes))->size;
	memmove(wr, wr + bytes, end - wr - bytes);
	part->size -= bytes;
	part->count -= n;
}

/* Posts the receives that wait.  Those for which there is no room wait on. */
static void post_waiting(void)
{
	char *from = (char *)waiting.buf, *to = from, *end = from + waiting.used;
	uint32_t i = 0, kept = 0, size, n;
	struct rpost_submit_part *part;
	struct rpost_submit cmd;
	int err = 0;

	while (i < waiting.parts) {
		err = submit(waiting.file->fd, from, (uint32_t)(end - from),
			     waiting.parts - i, &cmd);
		n = err ? cmd.done : waiting.parts - i;
		for (; n; n--, i++) {
			part = (void *)from;
			part_is_posted(waiting.qps[i], part);
			from += part->size;
		}
		if (!err)
			break;
		part = (void *)from;
		size = part->size;
		waiting.qps[i]->waiting = 0;
		/* Another error ends what the queue pair could receive. */
		if (err == ENOMEM || err == ENOBUFS) {
			cut_part(part, cmd.posted);
			waiting.qps[i]->waiting = part->count;
			waiting.qps[kept++] = waiting.qps[i];
			n = part->size;
			memmove(to, part, n);
			to += n;
		}
		from += size;
		i++;
	}
	waiting.parts = kept;
	waiting.used = (uint32_t)(to - (char *)waiting.buf);
	__atomic_store_n(&rpost_recvs_wait, kept > 0, __ATOMIC_RELAXED);
}

void rpost_post_waiting(void)
{
	int err = errno;

	/* A signal handler forks, and the call that it has interrupted posts them. */
	if (rpost_is_alone() && changing)
		return;
	lock_waiting();
	if (waiting.parts)
		post_waiting();
	unlock_waiting();
	errno = err;
}

int rpost_post_waiting_of(struct rpost_qp *qp)
{
	bool still;

	if (!__atomic_load_n(&rpost_recvs_wait, __ATOMIC_RELAXED))
		return 0;
	rpost_post_waiting();
	lock_waiting();
	still = qp->waiting;
	unlock_waiting();
	return still ? ENOMEM : 0;
}

/* ------------------------------------------------- receives that may wait */

/*
 * A receive may wait if it takes the place of one that the program has seen
 * complete since the last call, and if the device has four times as many as wait.
 */
static bool may_wait(const struct rpost_qp *qp)
{
	const struct rpost_cq *cq = rpost_cq(qp->ibv.recv_cq);
	uint32_t done = *recvs_seen(qp) - qp->recvs_seen;
	uint32_t unseen = __atomic_load_n(&cq->ring->tail, __ATOMIC_RELAXED) - cq->head;
	uint32_t left;

	if (qp->waiting >= MAX_WAITING || qp->waiting >= done)
		return false;
	if (qp->queued < done + unseen)
		return false;
	left = qp->queued - done - unseen;
	return left / ENOUGH > qp->waiting;
}

/* Begins a part at @at, and moves @at behind it. */
static struct rpost_submit_part *add_part(uint32_t *at, uint32_t command,
					  uint32_t handle)
{
	struct rpost_submit_part *part = (void *)((char *)waiting.buf + *at);

	*part = (struct rpost_submit_part) {
		.command = command,
		.handle = handle,
		.size = sizeof(*part),
	};
	*at += sizeof(*part);
	return part;
}

/* Finds the part of @qp, or begins one, with room for @bytes more.  NULL if full. */
static struct rpost_submit_part *part_of(struct rpost_qp *qp, uint32_t bytes)
{
	struct rpost_submit_part *part = NULL;
	uint32_t at = 0, i;

	if (sizeof(waiting.buf) - waiting.used < sizeof(*part) + bytes)
		return NULL;
	for (i = 0; i < waiting.parts; i++) {
		part = (void *)((char *)waiting.buf + at);
		at += part->size;
	}
	/* In the others there is no room behind the last receive. */
	if (i && waiting.qps[i - 1] == qp)
		return part;
	if (qp->waiting || i == MAX_PARTS)
		return NULL;
	waiting.qps[waiting.parts++] = qp;
	return add_part(&waiting.used, RPOST_CMD_POST_RECV, qp->ibv.handle);
}

bool rpost_recv_waits(struct rpost_qp *qp, const struct ibv_recv_wr *wr)
{
	uint32_t sges = (uint32_t)wr->num_sge, bytes;
	struct rpost_submit_part *part = NULL;
	struct rpost_recv_wr *out;
	uint64_t length = 0;
	uint32_t i;

	if (!qp->may_wait || !rpost_is_alone() || sges > MAX_SGE ||
	    sges > qp->cap.max_recv_sge)
		return false;
	for (i = 0; i < sges; i++)
		length += wr->sg_list[i].length;
	bytes = sizeof(*out) + sges * (uint32_t)sizeof(struct rpost_sge);

	lock_waiting();
	if (length <= INT32_MAX && may_wait(qp) &&
	    (!waiting.parts || waiting.file == rpost_ctx(qp->ibv.context)->file))
		part = part_of(qp, bytes);
	if (part) {
		out = (void *)((char *)part + part->size);
		out->wr_id = wr->wr_id;
		out->size = bytes;
		out->num_sge = sges;
		for (i = 0; i < sges; i++)
			memcpy((struct rpost_sge *)(out + 1) + i, &wr->sg_list[i],
			       sizeof(struct rpost_sge));
		part->size += bytes;
		part->count++;
		waiting.used += bytes;
		waiting.file = rpost_ctx(qp->ibv.context)->file;
		qp->waiting++;
		__atomic_store_n(&rpost_recvs_wait, true, __ATOMIC_RELAXED);
	}
	unlock_waiting();
	return part;
}

/* A post by a call of its own has been answered with the number of receives. */
void rpost_recvs_queued(struct rpost_qp *qp, uint32_t queued)
{
	if (qp->may_wait && rpost_is_alone())
		set_queued(qp, queued);
}

void rpost_submit_init(struct rpost_qp *qp)
{
	const struct rpost_file *file = rpost_ctx(qp->ibv.context)->file;
	struct rpost_cq *cq = rpost_cq(qp->ibv.recv_cq);

	if (!file->late_recvs || qp->ibv.qp_type != IBV_QPT_RC || qp->ibv.srq ||
	    file->first_number || qp->any_memory)
		return;
	qp->may_wait = cq->recvs;
}

/* --------------------------------------------------------- sends and polls */

/* The first @done parts are posted, and the first @posted receives of the next. */
static void are_posted(uint32_t done, uint32_t posted)
{
	struct rpost_submit_part *part = (void *)waiting.buf;
	char *next, *end = (char *)part + waiting.used;
	uint32_t i;

	for (i = 0; i < done; i++) {
		part_is_posted(waiting.qps[i], part);
		part = (void *)((char *)part + part->size);
	}
	waiting.parts -= done;
	waiting.used = 0;
	if (waiting.parts) {
		next = (char *)part + part->size;
		cut_part(part, posted);
		waiting.qps[done]->waiting = part->count;
		memmove((char *)part + part->size, next, end - next);
		waiting.used = part->size + (uint32_t)(end - next);
		memmove(waiting.buf, part, waiting.used);
		memmove(waiting.qps, waiting.qps + done,
			waiting.parts * sizeof(waiting.qps[0]));
	}
	__atomic_store_n(&rpost_recvs_wait, waiting.parts > 0, __ATOMIC_RELAXED);
}

/* Returns false if the receives that wait are to be posted first. */
static bool submit_sends(struct rpost_qp *qp, const struct rpost_block *block,
			 uint32_t *posted, int *err)
{
	const struct rpost_file *file = rpost_ctx(qp->ibv.context)->file;
	uint32_t parts, bytes = waiting.used;
	struct rpost_submit_part *part;
	struct rpost_submit cmd;

	if (waiting.parts && waiting.file != file)
		return false;
	if (sizeof(waiting.buf) - bytes < block->used + sizeof(*part))
		return false;
	part = add_part(&bytes, RPOST_CMD_POST_SEND, qp->ibv.handle);
	memcpy(part + 1, block->buf, block->used);
	part->count = block->count;
	part->size += (uint32_t)block->used;
	bytes += (uint32_t)block->used;
	parts = waiting.parts;
	*err = submit(file->fd, waiting.buf, bytes, parts + 1, &cmd);
	if (*err && cmd.done < parts) {
		are_posted(cmd.done, cmd.posted);
		return false;
	}
	are_posted(parts, 0);
	*posted = *err ? cmd.posted : block->count;
	return true;
}

int rpost_submit_sends(struct rpost_qp *qp, const struct rpost_block *block,
		       uint32_t *posted)
{
	bool done = false;
	int err = 0;

	/* Posts of any memory need a call of their own. */
	if (!qp->any_memory) {
		lock_waiting();
		done = submit_sends(qp, block, posted, &err);
		unlock_waiting();
	}
	if (!done)
		err = rpost_post_block(qp->ibv.context, qp->ibv.handle,
				       RPOST_IOC_POST_SEND, block, posted, NULL);
	return err;
}

/* Posts the receives that wait, and polls @cq. */
int rpost_submit_fetch(struct rpost_cq *cq)
{
	const struct rpost_file *file = rpost_ctx(cq->ibv.context)->file;
	uint32_t bytes, parts;
	struct rpost_submit cmd;
	int err = EAGAIN;

	lock_waiting();
	bytes = waiting.used;
	parts = waiting.parts;
	if (waiting.file == file &&
	    sizeof(waiting.buf) - bytes >= sizeof(struct rpost_submit_part)) {
		add_part(&bytes, RPOST_CMD_POLL_CQ, cq->ibv.handle);
		err = submit(file->fd, waiting.buf, bytes, parts + 1, &cmd);
		are_posted(err ? cmd.done : parts, err ? cmd.posted : 0);
	}
	unlock_waiting();
	return err;
}

/* -------------------------------------------------------------- ends, forks */

static void drop_waiting(const struct rpost_qp *qp)
{
	char *from = (char *)waiting.buf, *to = from;
	uint32_t i, size, kept = 0;

	for (i = 0; i < waiting.parts; i++, from += size) {
		size = ((struct rpost_submit_part *)from)->size;
		if (waiting.qps[i] == qp)
			continue;
		memmove(to, from, size);
		to += size;
		waiting.qps[kept++] = waiting.qps[i];
	}
	waiting.parts = kept;
	waiting.used = (uint32_t)(to - (char *)waiting.buf);
	__atomic_store_n(&rpost_recvs_wait, kept > 0, __ATOMIC_RELAXED);
}

void rpost_submit_forget_qp(struct rpost_qp *qp)
{
	lock_waiting();
	qp->queued = 0;
	qp->waiting = 0;
	drop_waiting(qp);
	unlock_waiting();
}

void rpost_submit_before_fork(void)
{
	pthread_mutex_lock(&lock);
}

void rpost_submit_after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/* The receives that wait are the parent's. */
void rpost_submit_in_child(void)
{
	if (changing)
		return;
	waiting.parts = 0;
	waiting.used = 0;
	rpost_recvs_wait = false;
}
