// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Asking for completion events, and waiting for them.
 *
 * Who asks through the ring, finds nothing and calls ibv_get_cq_event() would be put
 * to sleep and be woken up again, which often takes longer than what it waits for.
 * So ibv_get_cq_event() looks at the ring for a while first:
 *
 *   retract  The arm is taken back, as if the program had not asked: the kernel has
 *            no event to deliver and nobody to wake.
 *   spin     Until the tail is not what it was when the program asked.  That is
 *            what an event would tell, and it is reported as one.
 *   ask      If the time is over the arm is given again, and the tail looked at
 *            again, in this order: either the kernel sees the arm or the program the
 *            tail (comp.c).  Then the channel is read, as without all this.
 *
 * That no wake-up is lost rests on the following.
 *
 * - A tail that has moved is reported even after the arm has been given again.
 * - The kernel may have taken the arm before it was retracted.  Then it says so in
 *   @fired, and an event is in the channel or will be.
 * - A device that is removed wakes who has armed a queue.  So the program asks,
 *   after it has armed again, whether the device is still there: the module first
 *   says that it is not, and looks at the arms then.
 * - The kernel may want to be asked by call meanwhile (RPOST_RING_NEED_POLL), since
 *   nobody seems to wait; or completions are lost (RPOST_RING_OVERRUN).  Either
 *   ends the spin.
 * - Other threads that wait read the channel; those that ask while one spins give an
 *   arm, which stands.
 *
 * There may be an event too many, if the kernel and the program meet within a few
 * instructions, or several threads ask.  Programs have to expect that: their
 * completion may also be found by who polls once more before it sleeps.  Those
 * pile up if nobody reads them.  So @due counts the answers that are in the channel,
 * and as long as there is one it is read.
 *
 * Only one queue of a channel can be looked at: with several on one channel it is
 * read at once.  It is as well if the descriptor does not block, of which the
 * library reminds itself from time to time, and in the child of a fork, which has no
 * rings.  A spin in vain costs the next waits theirs, as long as it happens again
 * twice as many.
 *
 * The spinning thread has no lock.  It has the queue marked, and who takes away the
 * ring or the queue waits until it has stopped.
 */
#include <fcntl.h>
#include <time.h>

#include "internal.h"

#define PAUSES		32	/* of the CPU, between looks at the clock */
#define BACKOFF_MAX	1024
#define LOOK_EVERY	128	/* spins, at the descriptor's flags */

/* ------------------------------------------------------------- asking */

static uint32_t fired(const struct rpost_cq *cq)
{
	return __atomic_load_n(&cq->ring->fired, __ATOMIC_ACQUIRE);
}

static uint32_t tail_of(const struct rpost_cq *cq)
{
	return __atomic_load_n(&cq->ring->tail, __ATOMIC_ACQUIRE);
}

/* With a full barrier, for what is looked at next. */
static void write_arm(struct rpost_cq *cq, uint32_t arm)
{
	__atomic_store_n(&cq->ring->arm, arm, __ATOMIC_RELAXED);
	/* Pairs with smp_mb() in rpost_ring_take_arm(). */
	atomic_thread_fence(memory_order_seq_cst);
}

/* Under arm_lock, as all that follows unless it says otherwise. */
static void note_answer(struct rpost_cq *cq)
{
	struct rpost_wait *wait = &cq->wait;

	if (wait->armed && fired(cq) == cq->arm) {
		wait->armed = false;
		wait->due++;
	}
}

static int arm_by_call(struct rpost_cq *cq, uint32_t flags)
{
	struct rpost_arm_cq cmd = {
		.size = sizeof(cmd),
		.flags = flags,
		.handle = cq->ibv.handle,
	};

	cq->wait.called = true;
	return rpost_ioctl(cq->ibv.context->cmd_fd, RPOST_IOC_ARM_CQ, &cmd);
}

/* False if the kernel does not look at the ring, or may not have. */
static bool arm_ring(struct rpost_cq *cq)
{
	if (rpost_ring_flags(cq) & RPOST_RING_NEED_POLL)
		return false;
	note_answer(cq);
	/* Counting up never hits what has been answered already. */
	write_arm(cq, ++cq->arm);
	/* Another thread's request or the kernel may have set it. */
	cq->wait.armed = !(rpost_ring_flags(cq) & RPOST_RING_NEED_POLL);
	cq->wait.tail = tail_of(cq);
	return cq->wait.armed;
}

static int ask(struct rpost_cq *cq)
{
	return arm_ring(cq) ? 0 : arm_by_call(cq, 0);
}

/**
 * rpost_req_notify_cq() - what ibv_req_notify_cq(3) calls
 * @ibv_cq: the completion queue
 * @solicited_only: nonzero for an event only with the next completion of a
 *                  send with the solicited flag, or with an error
 *
 * Return: 0 or an errno value.
 */
int rpost_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct rpost_cq *cq = rpost_cq(ibv_cq);
	int err;

	pthread_mutex_lock(&cq->arm_lock);
	err = solicited_only ? arm_by_call(cq, RPOST_ARM_SOLICITED) : ask(cq);
	pthread_mutex_unlock(&cq->arm_lock);
	return err;
}

/* The caller has no lock of the queue, but it cannot be destroyed. */
void rpost_event_fetched(struct rpost_cq *cq)
{
	if (cq->forks != rpost_forks)
		return;
	pthread_mutex_lock(&cq->arm_lock);
	note_answer(cq);
	if (cq->wait.due)
		cq->wait.due--;
	cq->wait.called = false;
	pthread_mutex_unlock(&cq->arm_lock);
}

/* ----------------------------------------------------------- spinning */

enum look {
	LOOK_NOTHING,
	LOOK_CAME,	/* a completion */
	LOOK_ANSWERED,	/* an event is in the channel, or will be */
	LOOK_STOP,	/* nothing, but the ring cannot be looked at any longer */
};

/* What the ring said before. */
struct spin {
	uint32_t tail;
	uint32_t arm;
	uint32_t fired;
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* No spin begins after completions have been lost. */
static bool has_come(const struct rpost_cq *cq, const struct spin *spin)
{
	return (rpost_ring_flags(cq) & RPOST_RING_OVERRUN) ||
	       tail_of(cq) != spin->tail;
}

/* Without a lock. */
static enum look look(const struct rpost_cq *cq, const struct spin *spin)
{
	if (has_come(cq, spin))
		return LOOK_CAME;
	if (fired(cq) != spin->fired)
		return LOOK_ANSWERED;
	if ((rpost_ring_flags(cq) & RPOST_RING_NEED_POLL) ||
	    atomic_load_explicit(&cq->wait.kept_out, memory_order_relaxed))
		return LOOK_STOP;
	return LOOK_NOTHING;
}

/* LOOK_NOTHING if the time is over. */
static enum look spin_for(const struct rpost_cq *cq, const struct spin *spin,
			  unsigned int limit_ns)
{
	uint64_t now, end = 0;
	unsigned int i;
	enum look seen;

	for (i = 1;; i++) {
		seen = look(cq, spin);
		if (seen != LOOK_NOTHING)
			return seen;
		relax();
		if (i % PAUSES)
			continue;
		now = now_ns();
		if (!end)
			end = now + limit_ns;
		else if (now >= end)
			return LOOK_NOTHING;
	}
}

/* Is there an arm that has not been answered, and no event in the channel? */
static bool may_spin(struct rpost_cq *cq)
{
	struct rpost_wait *wait = &cq->wait;

	note_answer(cq);
	if (!wait->armed || wait->called || wait->due || wait->spinning ||
	    wait->kept_out || cq->lost)
		return false;
	if (rpost_ring_flags(cq) & (RPOST_RING_NEED_POLL | RPOST_RING_OVERRUN))
		return false;
	/* Else the kernel is about to answer. */
	if (tail_of(cq) != wait->tail)
		return false;
	if (wait->skip) {
		wait->skip--;
		return false;
	}
	return true;
}

/* Under the channel's lock. */
static bool is_blocking(struct rpost_comp_channel *channel)
{
	int flags;

	if (channel->unlooked) {
		channel->unlooked--;
	} else {
		flags = fcntl(channel->ibv.fd, F_GETFL);
		channel->nonblock = flags < 0 || (flags & O_NONBLOCK);
		channel->unlooked = LOOK_EVERY - 1;
	}
	return !channel->nonblock;
}

static void retract(struct rpost_cq *cq, struct spin *spin)
{
	struct rpost_wait *wait = &cq->wait;

	*spin = (struct spin) {
		.tail = wait->tail,
		.arm = cq->arm,
		.fired = fired(cq),
	};
	write_arm(cq, spin->fired);
	wait->armed = false;
	wait->spinning = true;
	if (has_come(cq, spin)) {
		/* It may have been taken or not: so that it is known when it is. */
		write_arm(cq, cq->arm);
		wait->armed = true;
	}
}

/* The queue, marked as spinning, or NULL. */
static struct rpost_cq *begin(struct rpost_comp_channel *channel,
			      struct spin *spin)
{
	struct rpost_cq *cq;

	pthread_mutex_lock(&channel->lock);
	cq = channel->cqs;
	if (cq && cq->next)
		cq = NULL;
	if (cq) {
		pthread_mutex_lock(&cq->arm_lock);
		if (may_spin(cq) && is_blocking(channel)) {
			retract(cq, spin);
			pthread_mutex_unlock(&cq->arm_lock);
		} else {
			pthread_mutex_unlock(&cq->arm_lock);
			cq = NULL;
		}
	}
	pthread_mutex_unlock(&channel->lock);
	return cq;
}

/* Takes note of an answer to what has been retracted. */
static void give_up(struct rpost_cq *cq, const struct spin *spin)
{
	uint32_t answered = fired(cq);

	if (answered == spin->arm)
		cq->wait.due++;
	/* Else what has been written to retract it would ask again. */
	if (!cq->wait.armed)
		write_arm(cq, answered);
}

/* True if there is something to report, else the kernel will. */
static bool ask_again(struct rpost_cq *cq, const struct spin *spin)
{
	struct rpost_ctx *ctx = rpost_ctx(cq->ibv.context);
	struct rpost_query_device device;

	if (ask(cq))
		return true;
	/* What has come since the ring is not filled by itself is the device's. */
	if ((rpost_ring_flags(cq) & RPOST_RING_NEED_POLL) && rpost_cq_fetch(cq))
		return true;
	return has_come(cq, spin) ||
	       rpost_query_device(ctx->file, ctx->dev->num, &device);
}

static void adapt(struct rpost_wait *wait, enum look seen)
{
	switch (seen) {
	case LOOK_CAME:
		wait->backoff /= 2;
		break;
	case LOOK_NOTHING:
		wait->backoff = wait->backoff ? 2 * wait->backoff : 1;
		if (wait->backoff > BACKOFF_MAX)
			wait->backoff = BACKOFF_MAX;
		wait->skip = wait->backoff;
		break;
	case LOOK_ANSWERED:
	case LOOK_STOP:
		break;
	}
}

/* True if there is something to report. */
static bool end(struct rpost_cq *cq, const struct spin *spin, enum look seen)
{
	bool came = seen == LOOK_CAME;

	if (came)
		return true;
	pthread_mutex_lock(&cq->arm_lock);
	if (seen == LOOK_ANSWERED)
		give_up(cq, spin);
	else
		came = ask_again(cq, spin);
	pthread_mutex_unlock(&cq->arm_lock);
	return came;
}

/* The mark goes, and with it what keeps the queue from being destroyed. */
static void unmark(struct rpost_cq *cq, enum look seen)
{
	struct rpost_wait *wait = &cq->wait;

	pthread_mutex_lock(&cq->arm_lock);
	adapt(wait, seen);
	wait->spinning = false;
	if (wait->kept_out)
		pthread_cond_broadcast(&wait->spun);
	pthread_mutex_unlock(&cq->arm_lock);
}

struct rpost_cq *rpost_spin_for_event(struct rpost_comp_channel *channel)
{
	struct rpost_file *file = rpost_ctx(channel->ibv.context)->file;
	struct rpost_cq *cq;
	struct spin spin;
	enum look seen;
	bool came;

	if (!file->spin_ns || channel->forks != rpost_forks)
		return NULL;
	/* As read(2) is, which need not follow. */
	pthread_testcancel();
	cq = begin(channel, &spin);
	if (!cq)
		return NULL;

	seen = spin_for(cq, &spin, file->spin_ns);
	came = end(cq, &spin, seen);
	if (came) {
		pthread_mutex_lock(&file->objects.lock);
		cq->comp_events_reported++;
		pthread_mutex_unlock(&file->objects.lock);
	}
	unmark(cq, seen);
	return came ? cq : NULL;
}

void rpost_channel_nonblock(struct rpost_comp_channel *channel)
{
	if (channel->forks != rpost_forks)
		return;
	pthread_mutex_lock(&channel->lock);
	channel->nonblock = true;
	channel->unlooked = LOOK_EVERY;
	pthread_mutex_unlock(&channel->lock);
}

void rpost_keep_spinners_out(struct rpost_cq *cq)
{
	/* Those of the parent do not stop here. */
	if (cq->forks != rpost_forks)
		return;
	pthread_mutex_lock(&cq->arm_lock);
	cq->wait.kept_out++;
	while (cq->wait.spinning)
		pthread_cond_wait(&cq->wait.spun, &cq->arm_lock);
	pthread_mutex_unlock(&cq->arm_lock);
}

void rpost_let_spinners_in(struct rpost_cq *cq)
{
	if (cq->forks == rpost_forks)
		cq->wait.kept_out--;
}
