/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A VLAN on the interface of rxe, whose address is a GID of the device.  Functions return 0
 * or a negative errno.
 */
#ifndef VLAN_LINK_H
#define VLAN_LINK_H

#include "rpost_test.h"

#define VLAN_LINK	"rpost_vlan"
#define VLAN_ADDR	"10.98.0.1"
#define VLAN_ID		42

/* May the VLAN be made here, and do completions tell it? */
bool vlan_possible(void);
int vlan_make(void);
/* Have rp_addr4 be the VLAN's address, and wait until ids can be bound to it. */
int vlan_use(void);
int vlan_remove(void);

#endif /* VLAN_LINK_H */
