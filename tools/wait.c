// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Waits for the next interval, for a key, or for a signal. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"
#include "wait.h"

static volatile sig_atomic_t ended, resized, stopped;
static sigset_t normal;

static void note(int sig)
{
	if (sig == SIGWINCH)
		resized = 1;
	else if (sig == SIGTSTP)
		stopped = 1;
	else
		ended = sig;
}

/**
 * wait_init() - let signals come only while wait_until() waits
 * @terminal: those that concern a full screen, too
 *
 * What is ignored stays so: nohup(1) does that.
 */
void wait_init(bool terminal)
{
	static const int signals[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP
	};
	const size_t num = terminal ? ARRAY_SIZE(signals) : 4;
	struct sigaction action = { .sa_handler = note }, old;
	sigset_t blocked;
	size_t i;

	sigemptyset(&blocked);
	for (i = 0; i < num; i++) {
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_IGN)
			continue;
		sigaddset(&blocked, signals[i]);
		sigaction(signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &blocked, &normal);
}

/* Stops, as the terminal's user wants, until the shell continues us. */
void wait_stop(void)
{
	kill(getpid(), SIGSTOP);
}

/* Ends by the signal that has come, as programs do that do not handle it. */
void wait_end(int sig)
{
	signal(sig, SIG_DFL);
	sigprocmask(SIG_SETMASK, &normal, NULL);
	raise(sig);
}

/**
 * wait_until() - wait
 * @until: for this time of the monotonic clock, in nanoseconds
 * @fd: for input of this file, unless it is -1
 * @sig: gets a signal that ends the program; SIGPIPE if nobody reads standard
 *	 output any more, even if there is nothing to write
 *
 * Return: what has come.
 */
enum wait_for wait_until(uint64_t until, int fd, int *sig)
{
	struct pollfd polls[] = {
		{ .fd = fd, .events = POLLIN }, { .fd = STDOUT_FILENO },
	};
	uint64_t now = wait_now(), left = until > now ? until - now : 0;
	struct timespec time = { left / 1000000000, left % 1000000000 };
	int n = ppoll(polls, 2, &time, &normal);
	sigset_t blocked;

	/* If there is input already, ppoll() returns before it lets signals come. */
	if (n > 0) {
		sigprocmask(SIG_SETMASK, &normal, &blocked);
		sigprocmask(SIG_SETMASK, &blocked, NULL);
	}
	if (ended) {
		*sig = ended;
		return WAIT_SIGNAL;
	}
	if (stopped) {
		stopped = 0;
		return WAIT_STOP;
	}
	if (resized) {
		resized = 0;
		return WAIT_RESIZE;
	}
	/* A socket whose peer has gone tells only POLLHUP. */
	if (n > 0 && polls[1].revents & (POLLERR | POLLHUP | POLLNVAL)) {
		*sig = SIGPIPE;
		return WAIT_SIGNAL;
	}
	return n > 0 ? WAIT_INPUT : n ? WAIT_RESIZE : WAIT_TIME;
}

/* The monotonic clock in nanoseconds. */
uint64_t wait_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}
