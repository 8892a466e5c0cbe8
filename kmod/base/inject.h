/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fault injection in callbacks and devices: fail-nth reaches only memory that a
 * task uses itself.  It needs CONFIG_FAULT_INJECTION_DEBUG_FS.
 */
#ifndef RPOST_INJECT_H
#define RPOST_INJECT_H

#include <linux/types.h>

struct dentry;

enum rpost_inject_point {
	RPOST_INJECT_BACKLOG,		/* a connection request finds the backlog full */
	RPOST_INJECT_REQUEST,		/* a connection request finds no memory for its id */
	RPOST_INJECT_RING,		/* a completion finds its ring full, and is lost */
	RPOST_INJECT_COMPLETION,	/* a work request completes with an error */
	RPOST_INJECT_ASYNC,		/* an asynchronous event finds its channel full */
	RPOST_INJECT_DRAIN,		/* a device does not flush a stopped queue pair */
	RPOST_INJECT_DEREG,		/* a device refuses to deregister a region */
	RPOST_INJECT_REG_POST,		/* a device refuses a registration's work request */
	RPOST_INJECT_REG_WC,		/* that work request completes with an error */
	RPOST_INJECT_REG_WAIT,		/* that work request does not complete */
	RPOST_INJECT_DEVICE,		/* a new device finds no memory */
	RPOST_INJECT_DEVICE_ID,		/* a new device gets no number */
	RPOST_INJECT_CHARGE,		/* a user is at the limit */
	RPOST_INJECT_DOMAIN,		/* a post finds its queue pair's handle to be another's */
	RPOST_NUM_INJECT,
};

#ifdef CONFIG_FAULT_INJECTION_DEBUG_FS
bool rpost_inject(enum rpost_inject_point point);
void rpost_inject_init(struct dentry *parent);
#else
static inline bool rpost_inject(enum rpost_inject_point point)
{
	return false;
}

static inline void rpost_inject_init(struct dentry *parent)
{
}
#endif

#endif /* RPOST_INJECT_H */
