/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Intervals and signals of commands that run for long. */
#ifndef WAIT_H
#define WAIT_H

#include <stdbool.h>
#include <stdint.h>

/**
 * enum wait_for - what has come
 * @WAIT_TIME: the time
 * @WAIT_INPUT: there is input
 * @WAIT_RESIZE: the terminal has another size
 * @WAIT_STOP: the user wants to stop the program (Ctrl-Z)
 * @WAIT_SIGNAL: a signal that ends the program
 */
enum wait_for { WAIT_TIME, WAIT_INPUT, WAIT_RESIZE, WAIT_STOP, WAIT_SIGNAL };

void wait_init(bool terminal);
enum wait_for wait_until(uint64_t until, int fd, int *sig);
void wait_stop(void);
void wait_end(int sig);
uint64_t wait_now(void);

#endif /* WAIT_H */
